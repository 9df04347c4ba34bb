/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Peers in the same kernel: local.c. */
#ifndef KEFA_RDM_LOCAL_H
#define KEFA_RDM_LOCAL_H

#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include "rdm.h"

struct kefa_src;

/* Cost of the slots, by kefa_local_cost(), that an endpoint handles in one turn. */
#define KEFA_LOCAL_BATCH	16

/**
 * struct kefa_ts_queue - send slots in order, linked by kefa_ts.next
 * @head: the first slot, or NULL
 * @tail: where the next one is linked
 */
struct kefa_ts_queue {
	struct kefa_ts	*head;
	struct kefa_ts	**tail;
};

/* Queues of packets that wait for an endpoint. Answers don't wait for requests. */
enum kefa_local_in {
	KEFA_LOCAL_ANSWERS,
	KEFA_LOCAL_REQUESTS,
	KEFA_LOCAL_INS
};

/**
 * struct kefa_local - an endpoint, as those in the same kernel see it
 * @node: entry in the table of all of them, while @up is set
 * @refs: one reference of the endpoint, and one of each peer that stands for it
 * @rcu: frees the structure
 * @gid: GID of the endpoint's device
 * @qpn: queue pair of the endpoint
 * @connid: connid of the endpoint
 * @mtu: MTU of the endpoint's device
 * @rdm: the endpoint; valid under @lock while @up is set
 * @nout: number of the endpoint's send slots that are in queues of local peers, are being handled
 *	by these, or are in @done; under the endpoint's lock
 * @more: @in isn't empty, as there was more than a turn can handle; under the endpoint's lock
 * @next: earliest time to take another packet with a budget used up; under the endpoint's lock
 * @now: slot whose packet is being handled; under the endpoint's lock. Such a slot is the
 *	endpoint's, which may change it
 * @rs: receive slot for a packet that has to be kept, or NULL; under the endpoint's lock
 * @lock: a leaf, taken inside kefa_ep.lock of any endpoint; two of them are never held together
 * @up: the endpoint takes packets; under @lock
 * @news: a slot was added to @in or @done since the endpoint last looked; under @lock
 * @in: send slots of others with packets for the endpoint; under @lock
 * @done: send slots of the endpoint that others have handled; under @lock
 * @idle: woken when a slot is added to @done without @up
 */
struct kefa_local {
	struct hlist_node	node;
	refcount_t		refs;
	struct rcu_head		rcu;
	u8			gid[16];
	u32			qpn;
	u32			connid;
	u32			mtu;
	struct kefa_rdm		*rdm;
	u32			nout;
	bool			more;
	ktime_t			next;
	struct kefa_ts		*now;
	struct kefa_rs		*rs;

	/* protects what follows */
	spinlock_t		lock ____cacheline_aligned_in_smp;
	bool			up;
	bool			news;
	struct kefa_ts_queue	in[KEFA_LOCAL_INS];
	struct kefa_ts_queue	done;
	wait_queue_head_t	idle;
};

struct kefa_local *kefa_local_new(struct kefa_rdm *rdm);
void kefa_local_put(struct kefa_local *local);
void kefa_local_start(struct kefa_rdm *rdm);
void kefa_local_meet(struct kefa_rdm *rdm, struct kefa_rpeer *peer);
void kefa_local_wake(struct kefa_local *local);
void kefa_local_post(struct kefa_rdm *rdm, struct kefa_ts *ts, enum kefa_local_in in);
void kefa_local_refuse(struct kefa_ts *ts);
void kefa_local_return(struct kefa_ts *first, struct kefa_ts *last);
u8 kefa_local_packets(struct kefa_rdm *rdm, struct kefa_ts *ts, u32 *admits);
unsigned int kefa_local_take(struct kefa_rdm *rdm);
bool kefa_local_news(struct kefa_local *local);
void kefa_local_end(struct kefa_rdm *rdm);
struct kefa_rpeer *kefa_local_sender(struct kefa_rdm *rdm, const struct kefa_local *local);
void kefa_local_src(const struct kefa_rdm *rdm, struct kefa_pkt *pkt, struct kefa_src *src);
void kefa_local_gather(const struct kefa_rdm *rdm, const struct kefa_held *held, void *to);
struct kefa_held *kefa_local_keep(struct kefa_rdm *rdm, const struct kefa_held *held);

/**
 * kefa_local_due() - check whether kefa_local_take() has something to do
 * @local: the endpoint
 *
 * Context: Under the endpoint's lock.
 * Return: whether it has. For a slot that is added meanwhile, the endpoint is woken.
 */
static inline bool kefa_local_due(const struct kefa_local *local)
{
	return READ_ONCE(local->news) || local->more;
}

/* Add a slot to the end of a queue. */
static __always_inline void kefa_tsq_add(struct kefa_ts_queue *q, struct kefa_ts *ts)
{
	ts->next = NULL;
	*q->tail = ts;
	q->tail = &ts->next;
}

/**
 * kefa_local_cost() - get the part of a turn that a slot takes
 * @ts: the slot
 *
 * Context: Under kefa_ep.lock of the endpoint that handles the slot.
 * Return: the cost: 1, and 1 more for each 16 KiB of a message.
 */
static __always_inline unsigned int kefa_local_cost(const struct kefa_ts *ts)
{
	return 1 + ts->seg.len / SZ_16K;
}

/**
 * kefa_local_pass() - pass a slot to a peer in the same kernel
 * @rdm: the endpoint, enabled
 * @ts: slot of the packet or message, in KEFA_TS_POSTED
 * @in: queue of the peer
 *
 * If the peer is gone, the packet is lost, as the device would report it.
 *
 * Context: Under kefa_ep.lock.
 */
static __always_inline void kefa_local_pass(struct kefa_rdm *rdm, struct kefa_ts *ts,
					    enum kefa_local_in in)
{
	struct kefa_local *to = ts->peer->local;
	bool up;

	lockdep_assert_held(&rdm->ep.lock);
	rdm->local->nout++;
	rdm->stats.local++;
	spin_lock(&to->lock);
	up = to->up;
	if (likely(up)) {
		kefa_tsq_add(&to->in[in], ts);
		if (!to->news)
			kefa_local_wake(to);
	}
	spin_unlock(&to->lock);
	if (likely(up))
		return;
	ts->next = NULL;
	kefa_local_refuse(ts);
}

/* fast_local.c */

unsigned int kefa_local_reap(struct kefa_rdm *rdm, struct kefa_ts *ts);
struct kefa_ts *kefa_local_answers(struct kefa_rdm *rdm, struct kefa_ts *ts, unsigned int *n);
struct kefa_ts *kefa_local_requests(struct kefa_rdm *rdm, struct kefa_ts *ts, unsigned int *n);

#endif /* KEFA_RDM_LOCAL_H */
