/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shares of what the peers of an endpoint use together: fair.c. */
#ifndef KEFA_RDM_FAIR_H
#define KEFA_RDM_FAIR_H

#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/types.h>

struct kefa_rdm;
struct kefa_rop;
struct kefa_rpeer;

/**
 * struct kefa_fair - shares of an endpoint's peers; protected by kefa_ep.lock
 * @begun: number of receives whose message has begun, and whose rest the peer has to send
 * @untold: messages in multi-receive buffers that have arrived, and whose completion waits for
 *	room in the completion queue, oldest first
 * @stall: number of checks, one each KEFA_SILENT_MS, after which a message without progress kills
 *	a peer that is in no address vector
 * @early: bytes of memory that early packets use, of kefa_rdm.kept
 * @since: time since when early packets have used kefa_rx_most(), or 0
 * @next: time of the next receive that is posted although the budget is used up, or 0
 * @pace: milliseconds between such receives
 * @tick: the pump is due at @next
 */
struct kefa_fair {
	u32			begun;
	struct list_head	untold;
	u32			stall;
	u64			early;
	ktime_t			since;
	ktime_t			next;
	u32			pace;
	bool			tick;
};

void kefa_fair_init(struct kefa_rdm *rdm);
bool kefa_fair_may_begin(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer);
void kefa_rop_wait(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_rop_waited(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_fair_check(struct kefa_rdm *rdm);

#endif /* KEFA_RDM_FAIR_H */
