/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Endpoints: ep.c, post.c, plain.c, progress.c. */
#ifndef KEFA_EP_H
#define KEFA_EP_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <kofi/provider.h>
#include "av.h"
#include "domain.h"
#include "hw.h"
#include "kefa.h"
#include "op.h"
#include "rest.h"
#include "rnr.h"

struct seq_file;

#define KEFA_TX_FLAGS	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | \
			 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | \
			 FI_REMOTE_CQ_DATA | FI_MORE)
#define KEFA_RX_FLAGS	(FI_COMPLETION | FI_MORE)
/* What can be said for all operations: data and what follows are one's own. */
#define KEFA_TX_DEFAULTS	(KEFA_TX_FLAGS & ~(FI_REMOTE_CQ_DATA | FI_MORE))
#define KEFA_RX_DEFAULTS	(KEFA_RX_FLAGS & ~FI_MORE)

/* So often somebody looks whether readers still poll, without which events go on. */
#ifndef KEFA_WATCH_MS
#define KEFA_WATCH_MS	20
#endif

enum {
	/* Work requests that wait for one doorbell, and parts of one RMA. */
	KEFA_HELD_MAX		= 16,
	/* Receives that do. */
	KEFA_RECVS_MAX		= 16,
	/* Buffers of an endpoint for what the device can't gather or must keep. */
	KEFA_COPIES		= 16,
	/* Reads and writes of many pieces that can be under way. */
	KEFA_RESTS		= 16,
	/* Pieces of one of them that are, beyond those posted with it. */
	KEFA_REST_PARTS		= 16,
	/* A receiver that is not ready: when to try again, and tries of the device. */
	KEFA_RNR_DELAY_MS	= 10,
	KEFA_RNR_TRIES		= 3,
};

/**
 * enum kefa_short - what a post was refused for want of
 * @KEFA_SHORT_SLOT: a slot
 * @KEFA_SHORT_COPY: a buffer for a copy
 * @KEFA_SHORT_REST: room for one more transfer of many pieces
 * @KEFA_SHORT_DMA: DMA space, which no completion need bring back
 */
enum kefa_short {
	KEFA_SHORT_SLOT,
	KEFA_SHORT_COPY,
	KEFA_SHORT_REST,
	KEFA_SHORT_DMA,
};

enum kefa_ep_state {
	KEFA_EP_OPEN,
	KEFA_EP_ENABLED,
	KEFA_EP_STOPPED,	/* closed, or without device */
};

/**
 * struct kefa_side - one direction of an endpoint
 * @base: what the core shares; its size is the number of slots. kefa_ep.lock to change
 *	its op_flags
 * @nfree: number of free slots; kefa_ep.lock
 * @first: list of the free slots, the one that was freed last first, as its memory is
 *	still in the cache; kefa_ep.lock
 * @quiet: plain calls don't complete: see kofi_side_quiet(); kefa_ep.lock
 * @notify: completions were written of which nobody was told; kefa_ep.lock
 * @wanted: posts were refused for want of a slot, a copy or DMA space, and the ULP
 *	hasn't been told since; kefa_ep.lock
 * @room: the ULP is to be told: there is some again; kefa_ep.lock
 * @ended: list of the slots of operations that ended and aren't reported yet, oldest
 *	first; kefa_ep.lock
 * @ended_tail: where the next one is linked to @ended; kefa_ep.lock
 * @nended: number of slots on @ended; kefa_ep.lock
 */
struct kefa_side {
	struct kofi_side	base;
	u32			nfree;
	struct kefa_op		*first;
	bool			quiet;
	bool			notify;
	bool			wanted;
	bool			room;
	struct kefa_op		*ended;
	struct kefa_op		**ended_tail;
	u32			nended;
};

/**
 * struct kefa_limits - which plain calls may take the short way of plain.c
 * @send: for each kind the bytes from which on none does; so 0 if the endpoint isn't
 *	enabled, hasn't got the capability, or has flags of which plain.c knows
 *	nothing
 * @inject: likewise
 * @read: likewise
 * @write: likewise
 * @recv: likewise
 */
struct kefa_limits {
	size_t	send;
	size_t	inject;
	size_t	read;
	size_t	write;
	size_t	recv;
};

/**
 * struct kefa_ep_stats - what an endpoint counts; kefa_ep.lock
 * @sends: sends posted
 * @recvs: receives posted
 * @reads: reads posted
 * @writes: writes posted
 * @tx_bytes: bytes posted to be sent, read or written
 * @rx_bytes: bytes received
 * @doorbells: lists of work requests posted
 * @bounced: sends and writes whose data was copied
 * @again: posts refused for now
 * @map_failed: of these for want of DMA space
 * @errors: operations that failed
 * @rnr: work requests to be sent again
 * @stale: completions of nothing that was outstanding
 * @revoked: regions destroyed because an invalidation failed
 */
struct kefa_ep_stats {
	u64	sends;
	u64	recvs;
	u64	reads;
	u64	writes;
	u64	tx_bytes;
	u64	rx_bytes;
	u64	doorbells;
	u64	bounced;
	u64	again;
	u64	map_failed;
	u64	errors;
	u64	rnr;
	u64	stale;
	u64	revoked;
};

/**
 * struct kefa_news - what readers are to be told when the lock is released
 * @cq: completion queues written to, or NULL
 * @room: by direction, tx first: a refused post may succeed now
 */
struct kefa_news {
	struct kofi_cq	*cq[2];
	bool		room[2];
};

struct kefa_ep;

/**
 * struct kefa_ep_kind - what differs between endpoints of fabric efa-direct and efa
 * @init: allocate what operations need, and set depths of the queue pair
 * @fini: undo @init; the endpoint isn't enabled, or not any more
 * @started: the endpoint is enabled; under kefa_ep.lock
 * @poll: kefa_ep_poll(); under kefa_ep.lock
 * @keep: kefa_keep() all memory that the device has, and return bytes that can't be kept;
 *	under kefa_ep.lock
 * @fail: complete all that is outstanding with a positive errno, as the queue pair is
 *	gone; under kefa_ep.lock
 * @revoke: take registrations of the endpoint's own back, as the queue pair is gone; NULL if it
 *	has none
 * @revoked: a region of the endpoint's was destroyed in place of its invalidation, or with a
 *	positive errno it may be reached still
 * @end: free mapped memory of the endpoint's own, or let it be if the device may still
 *	reach it
 * @scan: note which address handles operations use: kefa_ahs_scan(); under kefa_ep.lock
 * @read: kofi_source.poll; any process context
 * @show: the endpoint's own lines in debugfs; NULL for none
 *
 * All but @poll and @read are called under kefa_dev.lock, in process context.
 */
struct kefa_ep_kind {
	int (*init)(struct kefa_ep *ep, struct kefa_hw_qp_attr *attr);
	void (*fini)(struct kefa_ep *ep);
	void (*started)(struct kefa_ep *ep);
	unsigned int (*poll)(struct kefa_ep *ep, unsigned int budget);
	size_t (*keep)(struct kefa_ep *ep);
	void (*fail)(struct kefa_ep *ep, int err);
	void (*revoke)(struct kefa_ep *ep);
	void (*revoked)(struct kefa_mr *mr, int err);
	void (*end)(struct kefa_ep *ep, bool reaches);
	void (*scan)(struct kefa_ep *ep, u32 scan);
	bool (*read)(void *arg, bool last);
	void (*show)(struct seq_file *s, struct kefa_ep *ep);
};

/**
 * struct kefa_ep - an endpoint
 * @ep_fid: the object
 * @kind: what it does differently than those of the other fabric
 * @dom: its domain
 * @caps: as opened
 * @av: its address vector
 * @dma: the device that mappings are for
 * @nops: slots of both sides
 * @ops: the slots, the sending side's first
 * @again: by slot of the sending side, what may be sent again; or NULL
 * @rest_mem: memory of all of @rests and @rests_free
 * @copy_mem: memory of all of @copies
 * @max_map: longest piece that can be mapped
 * @cpu: CPU whose vector the queue pair should have, or -1
 * @work_cpu: where @work runs, or WORK_CPU_UNBOUND
 * @rnr_ms: for so long what finds no receiver is sent again; kefa_dev.lock
 * @rnr_retry: of the queue pair; kefa_dev.lock
 * @by_readers: nobody but readers of completion queues waits for what completes: there
 *	are neither handlers nor counters
 * @rcu: frees the endpoint
 * @list: in @dom->eps; kefa_dev.lock
 * @lock: protects what follows, up to @work
 * @nheld: work requests that wait for a doorbell
 * @nrecvs: receives that do
 * @worker: the task that calls handlers of what completed here, or NULL. What it posts
 *	waits for one doorbell, which the worker rings afterwards
 * @state: enum kefa_ep_state
 * @stop_err: what operations complete with once it is stopped
 * @ah_wanted: an address handle is to go once operations are done
 * @polled: a reader has polled since the worker looked, and didn't go to sleep
 * @watched: @idle is queued
 * @had_qp: @hq is to be unmade
 * @limits: of the short way
 * @tx: sending side
 * @rx: receiving side
 * @stats: counters
 * @nregs: registrations and invalidations posted
 * @nregs_done: how many of them are done
 * @hq: the queue pair
 * @held: the @nheld work requests
 * @recvs: the @nrecvs receives, and behind them the one that is being posted
 * @wrs: the work requests of @held, but for those that are kept in @again
 * @wcs: completions that are being looked at; no stack has to be cleared for them
 * @rnr_first: slot of the first that is to be sent again, plus 1; 0 for none
 * @rnr_tail: where the next one is linked
 * @rests: reads and writes that aren't posted altogether, oldest first
 * @rests_free: room for more of them
 * @copies: buffers that aren't in use, those that have memory first
 * @work: polls and calls handlers
 * @events: counts the device's events
 * @idle: looks whether readers still poll
 * @rnr_work: sends again
 * @map_retry: has the ULP told after a while if it found no DMA space
 *
 * The fields are in order of who writes them, so that no CPU waits for a cache line that
 * another one has but for @lock's. First come those that are only read once the endpoint
 * is enabled; then those that posting and taking completions write; last what the
 * interrupt writes, which comes to any CPU.
 */
struct kefa_ep {
	struct fid_ep		ep_fid;
	const struct kefa_ep_kind	*kind;
	struct kefa_domain	*dom;
	u64			caps;
	struct kefa_av		*av;
	struct device		*dma;
	u32			nops;
	struct kefa_op		*ops;
	struct kefa_again	*again;
	struct kefa_rest	*rest_mem;
	struct kefa_copy	*copy_mem;
	size_t			max_map;
	int			cpu;
	int			work_cpu;
	u32			rnr_ms;
	u8			rnr_retry;
	bool			by_readers;
	struct rcu_head		rcu;
	struct list_head	list;

	/* protects what follows, up to work */
	spinlock_t		lock ____cacheline_aligned_in_smp;
	unsigned int		nheld;
	unsigned int		nrecvs;
	struct task_struct	*worker;
	enum kefa_ep_state	state;
	int			stop_err;
	bool			ah_wanted;
	bool			polled;
	bool			watched;
	bool			had_qp;
	struct kefa_limits	limits;
	struct kefa_side	tx;
	struct kefa_side	rx;
	struct kefa_ep_stats	stats;
	u32			nregs;
	u32			nregs_done;
	struct kefa_hw_qp	hq;
	struct kefa_wr		*held[KEFA_HELD_MAX];
	struct kefa_recv_wr	recvs[KEFA_RECVS_MAX];
	struct kefa_wr		wrs[KEFA_HELD_MAX];
	struct ib_wc		wcs[KEFA_POLL_BATCH];
	u32			rnr_first;
	u32			*rnr_tail;
	struct list_head	rests;
	struct list_head	rests_free;
	struct list_head	copies;

	struct work_struct	work ____cacheline_aligned_in_smp;
	atomic64_t		events;
	struct delayed_work	idle;
	struct delayed_work	rnr_work;
	struct delayed_work	map_retry;
};

/* See path.h for what is inline of posting and completing. */

int kefa_ep_open(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **ep, void *context);
void kefa_ep_init(struct kefa_ep *ep, const struct kefa_ep_kind *kind,
		  struct kefa_domain *dom, const struct fi_info *info, u64 caps,
		  work_func_t work);
int kefa_ep_add(struct kefa_ep *ep);
void kefa_ep_stop(struct kefa_ep *ep);
int kefa_ep_bind(struct fid *fid, struct fid *bfid, u64 flags);
int kefa_ep_control(struct fid *fid, int command, void *arg);
int kefa_set_rnr(struct kefa_ep *ep, int optname, size_t value);
extern const struct fi_ops_cm kefa_cm_ops;
void kefa_ep_halt(struct kefa_ep *ep, int err);
void kefa_ep_teardown(struct kefa_ep *ep);

static inline struct kefa_ep *to_kefa_ep(struct fid_ep *ep)
{
	return container_of(ep, struct kefa_ep, ep_fid);
}

/**
 * kefa_ep_kick() - have an endpoint's worker run
 * @ep: the endpoint
 *
 * On the CPU that the ULP asked for by FI_AFFINITY, wherever the device's interrupt
 * comes to; otherwise on this one.
 *
 * Context: Any.
 */
static inline void kefa_ep_kick(struct kefa_ep *ep)
{
	queue_work_on(ep->work_cpu, kefa_wq, &ep->work);
}

/* progress.c */

void kefa_ep_event(void *arg);
void kefa_ep_work(struct work_struct *work);
unsigned int kefa_ep_poll(struct kefa_ep *ep, unsigned int budget);
void kefa_ep_flush(struct kefa_ep *ep);
void kefa_ep_refused(struct kefa_ep *ep, unsigned int n, int err);
void kefa_rx_refused(struct kefa_ep *ep, unsigned int n, int err);
void kefa_rx_flush(struct kefa_ep *ep);
void kefa_rx_hold(struct kefa_ep *ep, bool more);
void kefa_ep_fail_all(struct kefa_ep *ep, int err);
void kefa_ep_unlock_tell(struct kefa_ep *ep, bool in_worker) __releases(&ep->lock);
void kefa_ep_watch(struct kefa_ep *ep);
bool kefa_ep_arm(struct kefa_ep *ep);
void kefa_ep_read_end(struct kefa_ep *ep, bool found, int self) __releases(&ep->lock);
struct kefa_news kefa_ep_news(struct kefa_ep *ep);
void kefa_ep_tell(struct kefa_ep *ep, struct kefa_news news, bool in_worker);
void kefa_ep_idle(struct work_struct *work);
bool kefa_ep_read(void *arg, bool last);
void kefa_ep_map_retry(struct work_struct *work);

/* post.c */

extern const struct kofi_req_ops kefa_req_ops;
int kefa_not_enabled(const struct kefa_ep *ep);
int kefa_again(struct kefa_ep *ep, struct kefa_side *side, enum kefa_short what);
int kefa_again_locked(struct kefa_ep *ep, struct kefa_side *side,
		      enum kefa_short what);

/* plain.c */

void kefa_plain_limits(struct kefa_ep *ep);
extern const struct fi_ops_msg kefa_msg_ops;
extern const struct fi_ops_rma kefa_rma_ops;

#endif /* KEFA_EP_H */
