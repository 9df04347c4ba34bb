/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A device of kOFI as a link uses it: its queues, each with datagrams to send. Connections hold
 * references, because they use a queue until they are destroyed, also when the device is gone.
 */
#ifndef KRC_NET_H
#define KRC_NET_H

#include <linux/refcount.h>
#include "conn.h"

struct krc_link;

/**
 * struct krc_net - an open device
 * @refs: references
 * @link: the link
 * @fabric: the device
 * @nqueues: number of @queues
 * @queues: one for each queue of @fabric
 */
struct krc_net {
	refcount_t		refs;
	struct krc_link		*link;
	struct kulp_fabric	*fabric;
	u32			nqueues;
	struct krc_queue	*queues;
};

void krc_net_setup(void);
struct krc_net *krc_net_open(struct krc_link *link, const char *owner, char *domain);
void krc_net_put(struct krc_net *net);

static inline struct krc_net *krc_net_get(struct krc_net *net)
{
	refcount_inc(&net->refs);
	return net;
}

extern unsigned int krc_datagram;
extern unsigned int krc_max_queues;
extern char *krc_fabric;
extern bool krc_rma;
extern bool krc_softirq_initiators;

/* link.c */

void krc_link_gone(struct krc_link *link);

#endif /* KRC_NET_H */
