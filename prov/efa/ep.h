/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Endpoints: ep.c, notify.c. */
#ifndef KEFA_EP_H
#define KEFA_EP_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <kofi/provider.h>
#include "../../compat/bh.h"
#include "av.h"
#include "domain.h"
#include "hw.h"
#include "kefa.h"

struct kefa_copy;
struct seq_file;

#define KEFA_TX_FLAGS	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | \
			 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | \
			 FI_REMOTE_CQ_DATA | FI_MORE)
#define KEFA_RX_FLAGS	(FI_COMPLETION | FI_MORE)
/* Flags that may be defaults. Remote CQ data and FI_MORE concern single operations. */
#define KEFA_TX_DEFAULTS	(KEFA_TX_FLAGS & ~(FI_REMOTE_CQ_DATA | FI_MORE))
#define KEFA_RX_DEFAULTS	(KEFA_RX_FLAGS & ~FI_MORE)

/* The upper half of an operation's id. */
#define KEFA_OP_USE	BIT_ULL(32)

/* Interval of checks whether readers still poll; if not, events are enabled. */
#ifndef KEFA_WATCH_MS
#define KEFA_WATCH_MS	20
#endif

/* Time after which sends that nobody waits for are polled for, if nothing else is. */
#ifndef KEFA_LAZY_MS
#define KEFA_LAZY_MS	20
#endif

/* Longest time between two looks at what fi_flush() waits for. */
#define KEFA_QUIET_MS	50

enum {
	/* Maximum work requests that wait for one doorbell, and parts of one RMA. */
	KEFA_HELD_MAX		= 16,
	KEFA_KEPT_MAX		= 16,	/* maximum of kefa_side.kept */
	/* Maximum receives that wait for one doorbell. */
	KEFA_RECVS_MAX		= 16,
	/* Copy buffers of an endpoint, for injects and data that the device can't gather. */
	KEFA_COPIES		= 32,
	/* Retries of the device, before the provider resends to a receiver that is not ready. */
	KEFA_RNR_TRIES		= 3,
};

enum kefa_ep_state {
	KEFA_EP_OPEN,
	KEFA_EP_ENABLED,
	KEFA_EP_STOPPED,	/* being closed, or without device */
};

/**
 * enum kefa_quiet - how an operation's success is reported
 * @KEFA_TOLD: by a completion
 * @KEFA_QUIET: not at all
 * @KEFA_LAZY: by a completion that nobody waits for
 */
enum kefa_quiet {
	KEFA_TOLD,
	KEFA_QUIET,
	KEFA_LAZY,
};

/**
 * struct kefa_side - one direction of an endpoint
 * @base: the core's part; its size is the number of slots. Its op_flags change under
 *	kefa_ep.lock
 * @nfree: number of free slots; under kefa_ep.lock
 * @kept: number of slots that only registrations and invalidations may take, so that dead peers
 *	can't hold all; 0 until the endpoint has regions. Under kefa_ep.lock
 * @quiet: enum kefa_quiet of plain calls; under kefa_ep.lock
 * @unflagged: enum kefa_quiet of messages without FI_COMPLETION, since the endpoint was enabled
 * @counted: operations that ended are counted one by one, for counters or with kefa_ep.split;
 *	since the endpoint was enabled
 * @notify: completions were written and the reader hasn't been notified; under
 *	kefa_ep.lock
 * @wanted: posts were refused for lack of a resource of enum kefa_short, and the ULP
 *	hasn't been notified since; under kefa_ep.lock
 * @room: the resource is available again and the ULP must be notified; under kefa_ep.lock
 */
struct kefa_side {
	struct kofi_side	base;
	u32			nfree;
	u32			kept;
	u8			quiet;
	u8			unflagged;
	bool			counted;
	bool			notify;
	bool			wanted;
	bool			room;
};

/**
 * struct kefa_limits - lengths of plain calls that may take the fast path
 * @send: one more than the longest send on the fast path, 0 for none
 * @inject: one more than the longest inject on the fast path, 0 for none
 * @read: one more than the longest read on the fast path, 0 for none
 * @write: one more than the longest write on the fast path, 0 for none
 * @recv: one more than the longest receive on the fast path, 0 for none
 *
 * A limit is 0 if the endpoint isn't enabled, lacks the capability, or has default flags
 * that the fast path doesn't handle.
 */
struct kefa_limits {
	size_t	send;
	size_t	inject;
	size_t	read;
	size_t	write;
	size_t	recv;
};

/**
 * struct kefa_ep_stats - counters of an endpoint; under kefa_ep.lock
 * @sends: sends posted
 * @recvs: receives posted
 * @reads: reads posted
 * @writes: writes posted
 * @tx_bytes: bytes of posted sends, reads and writes
 * @rx_bytes: bytes received
 * @doorbells: lists of work requests posted
 * @bounced: sends and writes whose data was copied
 * @again: posts refused with -EAGAIN
 * @map_failed: posts refused with -EAGAIN for lack of DMA space
 * @errors: operations that failed
 * @rnr: work requests that are resent
 * @stale: completions that match no outstanding operation
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
 * struct kefa_news - notifications to send after releasing the lock
 * @cq: completion queues that were written to, or NULL
 * @room: for each direction, tx first: a refused post may succeed now
 */
struct kefa_news {
	struct kofi_cq	*cq[2];
	bool		room[2];
};

struct kefa_ep;

/**
 * struct kefa_ep_kind - functions of the endpoints of a fabric
 * @init: allocate memory for operations, and set depths of the queue pair
 * @fini: undo @init; the endpoint isn't enabled, or is stopped
 * @started: the endpoint is enabled; under kefa_ep.lock
 * @limits: decide which calls may take the fast path, as the state or flags have changed;
 *	under kefa_ep.lock
 * @linger: before the endpoint is halted: wait for a short time until answers are sent that peers
 *	wait for; NULL if there are none
 * @poll: poll for about a number of completions, and return how many there were; under kefa_ep.lock
 * @retry: DMA space may be available: post what waits for it; NULL if the worker does that; under
 *	kefa_ep.lock
 * @keep: kefa_keep() all memory that the device has, and return the number of bytes that
 *	can't be kept; under kefa_ep.lock
 * @fail: the queue pair is destroyed: complete all outstanding operations with a positive
 *	errno; under kefa_ep.lock
 * @revoke: the queue pair is destroyed: destroy the regions that the endpoint registered
 *	itself; NULL if it registers none
 * @mr_ops: data calls of the ULP's regions that name the endpoint; NULL if the domain's queue pair
 *	registers such regions
 * @reg: with @mr_ops, register a mapped region of the ULP, with FI_COMPLETION and FI_MORE. Any
 *	context but hard interrupts
 * @inval: invalidate a region that @reg registered
 * @revoked: a region of the endpoint was destroyed instead of being invalidated; with a
 *	positive errno peers may still reach it
 * @end: free the endpoint's own mapped memory, or leak it if the device may still reach it
 * @scan: note which address handles operations use: kefa_ahs_scan(); under kefa_ep.lock
 * @evict: remove an idle peer in no address vector; true if there was one. NULL for none; under
 *	kefa_dev.lock
 * @read: kofi_source.poll; any process context
 * @show: print additional lines in debugfs; NULL for none
 * @read_split: @read for endpoints with kefa_ep.split; NULL if the kind has none
 * @soft: function of kefa_ep.soft; NULL if the kind can't be served in softirqs
 *
 * All but @linger, @poll, @retry, @reg, @inval and @read are called under kefa_dev.lock, in process
 * context.
 */
struct kefa_ep_kind {
	int (*init)(struct kefa_ep *ep, struct kefa_hw_qp_attr *attr);
	void (*fini)(struct kefa_ep *ep);
	void (*started)(struct kefa_ep *ep);
	void (*limits)(struct kefa_ep *ep);
	void (*linger)(struct kefa_ep *ep);
	unsigned int (*poll)(struct kefa_ep *ep, unsigned int budget);
	void (*retry)(struct kefa_ep *ep);
	size_t (*keep)(struct kefa_ep *ep);
	void (*fail)(struct kefa_ep *ep, int err);
	void (*revoke)(struct kefa_ep *ep);
	const struct fi_ops_mr *mr_ops;
	int (*reg)(struct kefa_mr *mr, u64 access, u64 flags, void *context);
	int (*inval)(struct kefa_mr *mr, u64 flags, void *context);
	void (*revoked)(struct kefa_mr *mr, int err);
	void (*end)(struct kefa_ep *ep, bool reaches);
	void (*scan)(struct kefa_ep *ep, u32 scan);
	bool (*evict)(struct kefa_ep *ep);
	bool (*read)(void *arg, bool last, struct kofi_cq_reader *reader);
	void (*show)(struct seq_file *s, struct kefa_ep *ep);
	bool (*read_split)(void *arg, bool last, struct kofi_cq_reader *reader);
	work_func_t soft;
};

/**
 * struct kefa_ep - an endpoint
 * @ep_fid: the object
 * @kind: functions for the endpoint's fabric
 * @dom: domain of the endpoint
 * @caps: capabilities with which the endpoint was opened
 * @av: bound address vector
 * @dma: device that DMA mappings are for
 * @copy_mem: memory of all of @copies
 * @max_map: largest piece that can be mapped
 * @cpu: CPU whose vector the queue pair should have, or -1
 * @work_cpu: CPU of @work, or WORK_CPU_UNBOUND
 * @rnr_retry: retries of the queue pair; under kefa_dev.lock
 * @softirq: @soft serves the endpoint instead of @work, as no handler may sleep. @work only posts
 *	what is held
 * @split: the device has a completion queue for sends, because nobody waits for some of them. It is
 *	polled whenever that for receives is. See progress.c
 * @tells_tx: somebody can be notified at the completion queue for sends, by a handler or a wait
 *	object
 * @by_readers: only readers of completion queues wait for completions: there are neither
 *	handlers nor counters
 * @rcu: frees the endpoint
 * @list: in @dom->eps; under kefa_dev.lock
 * @lock: protects @nheld to @ncopies
 * @nheld: number of work requests that wait for a doorbell
 * @nrecvs: number of receives that wait for a doorbell
 * @worker: the task that calls handlers for completions of this endpoint, or that a softirq has
 *	interrupted which does; or NULL. Its posts wait for one doorbell, which the worker rings
 *	afterwards
 * @state: enum kefa_ep_state
 * @stop_err: errno of operations that complete after the endpoint stopped
 * @polled: a reader has polled since the last run of @idle, and didn't go to sleep
 * @watched: @idle is queued, to check whether readers still poll or, with @split, to poll for sends
 *	that nobody waits for
 * @had_qp: @hq must be destroyed
 * @tx_armed: with @split, the next completion of a send raises an event, or one has been raised and
 *	the worker, @idle or a reader that was woken is going to poll and arm
 * @tx_late: with @split, sends are outstanding for long, so their next completion should raise an
 *	event
 * @tx_epoch: with @split, changes when the ULP begins to wait for outstanding sends: fi_expedite()
 * @tx_hurry_more: with @split, the ULP did so while @tx_hurry wasn't 0
 * @tx_hurry: with @split, number of outstanding work requests that were posted in the previous
 *	@tx_epoch. All others were posted in this one
 * @nawaited: with @split, number of outstanding operations of the sending side that somebody waits
 *	for: those with FI_COMPLETION, and registrations
 * @limits: limits of the fast path
 * @tx: sending side
 * @rx: receiving side
 * @stats: counters
 * @nregs: number of registrations and invalidations posted
 * @nregs_done: number of registrations and invalidations completed
 * @hq: the queue pair
 * @held: the @nheld work requests that wait for a doorbell
 * @recvs: the @nrecvs receives that wait for a doorbell, followed by the one that is being
 *	posted
 * @wrs: memory of the work requests of @held
 * @reader: the reader that polls, if it can take completions, see struct kofi_cq_reader
 * @wcs: completions being processed; not on the stack, which would have to be cleared
 * @copies: free copy buffers, those that have memory first
 * @ncopies: number of @copies
 * @work: polls and calls handlers
 * @soft: does the same in softirqs; a work item of its own for lockdep
 * @bh: runs @soft
 * @events: number of the device's events
 * @idle: checks whether readers still poll
 * @map_retry: notifies the ULP some time after a post failed for lack of DMA space, or of an entry
 *	in a queue that can't notify it
 *
 * The members are grouped by their writers, so that the only cache lines that CPUs contend
 * for are those that @lock protects. First come members that are only read once the
 * endpoint is enabled, then members that are written when posting and completing, and last
 * members that the interrupt writes, which may run on any CPU.
 */
struct kefa_ep {
	struct fid_ep		ep_fid;
	const struct kefa_ep_kind	*kind;
	struct kefa_domain	*dom;
	u64			caps;
	struct kefa_av		*av;
	struct device		*dma;
	struct kefa_copy	*copy_mem;
	size_t			max_map;
	int			cpu;
	int			work_cpu;
	u32			rnr_retry;
	bool			softirq;
	bool			split;
	bool			tells_tx;
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
	bool			polled;
	bool			watched;
	bool			had_qp;
	bool			tx_armed;
	bool			tx_late;
	bool			tx_epoch;
	bool			tx_hurry_more;
	u32			tx_hurry;
	u32			nawaited;
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
	struct kofi_cq_reader	*reader;
	struct ib_wc		wcs[KEFA_POLL_BATCH];
	struct list_head	copies;
	unsigned int		ncopies;

	struct work_struct	work ____cacheline_aligned_in_smp;
	struct work_struct	soft;
	struct compat_bh	bh;
	atomic64_t		events;
	struct delayed_work	idle;
	struct delayed_work	map_retry;
};

/* io.h has the inline functions for posting and polling. */

void kefa_ep_init(struct kefa_ep *ep, const struct kefa_ep_kind *kind,
		  struct kefa_domain *dom, const struct fi_info *info, u64 caps,
		  work_func_t work);
int kefa_ep_add(struct kefa_ep *ep);
void kefa_ep_stop(struct kefa_ep *ep);
int kefa_ep_bind(struct fid *fid, struct fid *bfid, u64 flags);
int kefa_ep_await(struct kefa_ep *ep, bool (*busy)(struct kefa_ep *ep, const void *arg),
		  const void *arg, unsigned int timeout_ms);
int kefa_ep_control(struct fid *fid, int command, void *arg);
int kefa_ep_getopt(const struct kofi_opt *opts, size_t n, int optname, void *optval,
		   size_t *optlen);
int kefa_ep_setopt(int optname, const void *optval, size_t optlen);
int kefa_set_rnr(struct kefa_ep *ep, u32 *option, size_t value, u32 max, u32 any);
void kefa_ep_halt(struct kefa_ep *ep, int err);
void kefa_ep_teardown(struct kefa_ep *ep);

static inline struct kefa_ep *to_kefa_ep(struct fid_ep *ep)
{
	return container_of(ep, struct kefa_ep, ep_fid);
}

/**
 * kefa_ep_kick() - queue an endpoint's worker, or its softirq
 * @ep: the endpoint
 *
 * The worker runs on the CPU that the ULP asked for with FI_AFFINITY, whichever CPU the
 * device interrupts; without FI_AFFINITY, and with kefa_ep.softirq, on this CPU.
 *
 * Context: Any.
 */
static inline void kefa_ep_kick(struct kefa_ep *ep)
{
	if (ep->softirq)
		compat_bh_queue(&ep->bh);
	else
		queue_work_on(ep->work_cpu, kefa_wq, &ep->work);
}

/**
 * kefa_ep_kick_held() - have posts that are held for the next one posted, if it doesn't come
 * @ep: the endpoint, of a kind whose worker posts them
 *
 * With kefa_ep.softirq, too, this is the worker: a softirq would run as soon as the caller releases
 * kefa_ep.lock, before the next post.
 *
 * Context: Any.
 */
static inline void kefa_ep_kick_held(struct kefa_ep *ep)
{
	queue_work_on(ep->work_cpu, kefa_wq, &ep->work);
}

/**
 * kefa_not_enabled() - check whether an endpoint accepts posts
 * @ep: the endpoint
 *
 * Callers check under RCU before they map memory, because kefa_ep_halt() is followed by a
 * grace period, and again under the lock before they use the queue pair.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, -ENODEV, -FI_EOPBADSTATE.
 */
static inline int kefa_not_enabled(const struct kefa_ep *ep)
{
	/* Pairs with kefa_ep_start(), which has set up the endpoint, and with kefa_ep_halt(). */
	if (smp_load_acquire(&ep->state) == KEFA_EP_ENABLED)
		return 0;
	return READ_ONCE(ep->stop_err) == ENODEV ? -ENODEV : -FI_EOPBADSTATE;
}

/* notify.c */

void kefa_ep_event(void *arg);
void kefa_ep_wake(struct kefa_ep *ep);
void kefa_ep_unlock_tell(struct kefa_ep *ep, bool in_worker) __releases(&ep->lock);
void kefa_ep_idle(struct work_struct *work);
void kefa_ep_map_retry(struct work_struct *work);
bool kefa_ep_arm(struct kefa_ep *ep);
void kefa_ep_want_tx(struct kefa_ep *ep);
bool kefa_ep_awaits_tx(const struct kefa_ep *ep);
void kefa_ep_hurry(struct kefa_ep *ep);
void kefa_ep_expedite(struct fid_ep *ep_fid);
void kefa_ep_tx_posted(struct kefa_ep *ep, bool awaited);
int kefa_ep_cq_full(struct kefa_ep *ep, struct kefa_side *side);
void kefa_ep_read_end(struct kefa_ep *ep, bool found, int self) __releases(&ep->lock);
struct kefa_news kefa_ep_news(struct kefa_ep *ep);
void kefa_ep_tell(struct kefa_ep *ep, struct kefa_news news, bool in_worker);

#endif /* KEFA_EP_H */
