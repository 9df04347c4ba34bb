/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reads and writes of many pieces: rest.c. */
#ifndef KEFA_REST_H
#define KEFA_REST_H

#include <linux/list.h>
#include <linux/types.h>
#include <linux/uio.h>

struct kefa_av_key;
struct kefa_ep;
struct kefa_op;
struct kofi_req;

/**
 * struct kefa_rest - the pieces of a read or write that aren't posted yet
 * @list: in kefa_direct.rests_free or kefa_direct.rests; under kefa_ep.lock
 * @head: the operation, which counts this as one of its parts
 * @iter: local memory
 * @kvec: copy of a single segment for @iter, because the caller's kvec may become invalid
 * @raddr: address of the next piece in the peer's memory
 * @rkey: key of the peer's memory
 * @qpn: number of the peer's queue pair
 * @qkey: Q_Key of the peer's queue pair
 * @data: remote CQ data, for the last piece
 * @has_data: @data is valid
 */
struct kefa_rest {
	struct list_head	list;
	struct kefa_op		*head;
	struct iov_iter		iter;
	struct kvec		kvec;
	u64			raddr;
	u32			rkey;
	u32			qpn;
	u32			qkey;
	u32			data;
	bool			has_data;
};

enum {
	/* Maximum outstanding reads and writes of many pieces. */
	KEFA_RESTS		= 16,
	/* Maximum outstanding pieces of such a read or write. */
	KEFA_REST_PARTS		= 16,
};

int kefa_rests_init(struct kefa_ep *ep);
void kefa_rests_fini(struct kefa_ep *ep);
void kefa_rests_go(struct kefa_ep *ep);
void kefa_rests_fail(struct kefa_ep *ep, int err);
void kefa_rests_give_up(struct kefa_ep *ep, const struct kefa_av_key *key);

#endif /* KEFA_REST_H */
