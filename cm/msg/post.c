// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posts of connected endpoints, and credits. A message becomes a tagged one on the lane; reads,
 * writes and atomic operations are passed on. A post takes no lock of the connection. A post other
 * than a receive is counted while it looks at the state, so that the end can wait for it before it
 * flushes the tag. A receive that was posted meanwhile sees in @tell_at that the end has begun, and
 * has the tag flushed again: nothing of it leaves this machine.
 *
 * A side sends no more messages than the peer has posted receives. The peer tells of its receives
 * by notes: several at a time as long as the ULP posts many, and at the latest after KMSG_NOTE_MS.
 */
#include <linux/delay.h>
#include <linux/limits.h>
#include <linux/uio.h>
#include "msg.h"

/* Longest time until a peer is told of receives, in milliseconds. */
#define KMSG_NOTE_MS	2

/* Maximum number of receives that a peer is told of at once, and that it can have posted. */
#define KMSG_STEP_MAX	64
#define KMSG_CREDIT_MAX	BIT(30)

/* Flags of a receive that a connection doesn't have. */
#define KMSG_RX_BAD	(FI_MULTI_RECV | FI_PEEK | FI_CLAIM | FI_DISCARD)

static __always_inline struct kmsg_ep *to_kmsg_ep(struct fid_ep *ep)
{
	return container_of(ep, struct kmsg_ep, ep_fid);
}

/* Error of a post in a state in which none of its kind is possible. */
static ssize_t kmsg_no(const struct kmsg_ep *ep)
{
	if (READ_ONCE(ep->removed))
		return -ENODEV;
	return READ_ONCE(ep->state) == KMSG_ENDED ? -ENOTCONN : -FI_EOPBADSTATE;
}

/* --- sends --- */

static void kmsg_tell_room(struct kmsg_ep *ep)
{
	if (xchg(&ep->starved, false))
		kmsg_lane_tell_room(ep->lane);
}

/*
 * Take a credit after the first attempt has found none, and has taken it nevertheless. Whoever
 * gives a credit back looks for others that were refused meanwhile.
 */
static noinline bool kmsg_credit_retry(struct kmsg_ep *ep)
{
	WRITE_ONCE(ep->starved, true);
	/* Full barriers: a peer's credit is added either before or after, and then it is told. */
	while (atomic_inc_return(&ep->credit) > 0)
		if (atomic_dec_return(&ep->credit) >= 0)
			return true;
	return false;
}

static __always_inline bool kmsg_credit_get(struct kmsg_ep *ep)
{
	return likely(atomic_dec_return(&ep->credit) >= 0) || kmsg_credit_retry(ep);
}

static noinline void kmsg_credit_put(struct kmsg_ep *ep)
{
	if (atomic_inc_return(&ep->credit) > 0)
		kmsg_tell_room(ep);
}

/* Begin a post. Return: whether the endpoint is connected; kmsg_post_end() is due anyhow. */
static __always_inline bool kmsg_send_begin(struct kmsg_ep *ep)
{
	atomic_inc(&ep->posting);
	/* Pairs with kmsg_posts_wait(). */
	smp_mb__after_atomic();
	return likely(READ_ONCE(ep->state) == KMSG_CONNECTED);
}

static __always_inline void kmsg_post_end(struct kmsg_ep *ep)
{
	/* The end sees all that was posted. */
	smp_mb__before_atomic();
	atomic_dec(&ep->posting);
}

/*
 * Error of a send without a credit. A message that is too long doesn't wait for one, nor does one
 * of an endpoint that has no messages.
 */
static noinline ssize_t kmsg_starved(const struct kmsg_ep *ep, size_t len)
{
	if (~ep->caps & (FI_MSG | FI_SEND))
		return -EOPNOTSUPP;
	return len > ep->max_msg_size ? -EMSGSIZE : -EAGAIN;
}

/* Send by an expression of the lane's endpoint @on. */
#define KMSG_SEND(ep, on, len, post)					\
({									\
	ssize_t __ret;							\
									\
	if (unlikely(!kmsg_send_begin(ep))) {				\
		__ret = kmsg_no(ep);					\
	} else if (unlikely(!kmsg_credit_get(ep))) {			\
		__ret = kmsg_starved(ep, len);				\
	} else {							\
		struct fid_ep *on = (ep)->on;				\
									\
		__ret = (post);						\
		if (unlikely(__ret))					\
			kmsg_credit_put(ep);				\
	}								\
	kmsg_post_end(ep);						\
	__ret;								\
})

static ssize_t kmsg_send(struct fid_ep *ep_fid, const void *buf, size_t len, void *desc,
			 fi_addr_t dest, void *context)
{
	struct kmsg_ep *ep = to_kmsg_ep(ep_fid);

	return KMSG_SEND(ep, on, len, on->tagged->send(on, buf, len, NULL, ep->peer,
						       ep->tx_tag, context));
}

static ssize_t kmsg_inject(struct fid_ep *ep_fid, const void *buf, size_t len, fi_addr_t dest)
{
	struct kmsg_ep *ep = to_kmsg_ep(ep_fid);

	return KMSG_SEND(ep, on, len, on->tagged->inject(on, buf, len, ep->peer, ep->tx_tag));
}

/*
 * Read, write, or begin an atomic operation. It needs no receive of the peer. The lane finds it by
 * the tag when the connection ends, together with the messages to the peer.
 */
static noinline ssize_t kmsg_far(struct kmsg_ep *ep, struct kofi_req *req)
{
	ssize_t ret;

	if (req->what & ~ep->caps)
		return -EOPNOTSUPP;
	if (unlikely(!kmsg_send_begin(ep))) {
		ret = kmsg_no(ep);
	} else {
		req->addr = ep->peer;
		req->tag = ep->tx_tag;
		ret = ep->on->req->tx(ep->on, req);
	}
	kmsg_post_end(ep);
	return ret;
}

static ssize_t kmsg_tx(struct fid_ep *ep_fid, struct kofi_req *req)
{
	struct kmsg_ep *ep = to_kmsg_ep(ep_fid);

	if (unlikely(req->what != (FI_MSG | FI_SEND)))
		return kmsg_far(ep, req);
	req->what = FI_TAGGED | FI_SEND;
	req->addr = ep->peer;
	req->tag = ep->tx_tag;
	return KMSG_SEND(ep, on, iov_iter_count(&req->iter), on->req->tx(on, req));
}

/* --- receives --- */

static __always_inline bool kmsg_can_recv(const struct kmsg_ep *ep)
{
	/* Pairs with kmsg_set_state(): the lane is set before. */
	const enum kmsg_state state = smp_load_acquire(&ep->state);

	return likely(state != KMSG_IDLE && state != KMSG_ENDED);
}

/* Count a receive. The full barrier pairs with kmsg_posts_wait(). */
static __always_inline ssize_t kmsg_recv_posted(struct kmsg_ep *ep)
{
	if (likely(atomic64_inc_return(&ep->posted) < READ_ONCE(ep->tell_at)))
		return 0;
	return kmsg_credit_due(ep);
}

static ssize_t kmsg_recv(struct fid_ep *ep_fid, void *buf, size_t len, void *desc, fi_addr_t src,
			 void *context)
{
	struct kmsg_ep *ep = to_kmsg_ep(ep_fid);
	struct fid_ep *on;
	ssize_t ret;

	if (unlikely(!kmsg_can_recv(ep)))
		return kmsg_no(ep);
	on = ep->on;
	ret = on->ops->recv_tag(on, buf, len, ep->rx_tag, context);
	return unlikely(ret) ? ret : kmsg_recv_posted(ep);
}

static ssize_t kmsg_rx(struct fid_ep *ep_fid, struct kofi_req *req)
{
	struct kmsg_ep *ep = to_kmsg_ep(ep_fid);
	ssize_t ret;

	if (req->what != (FI_MSG | FI_RECV))
		return -EOPNOTSUPP;
	if (req->flags & KMSG_RX_BAD)
		return -FI_EBADFLAGS;
	req->what = FI_TAGGED | FI_RECV;
	req->addr = FI_ADDR_UNSPEC;
	req->tag = ep->rx_tag;
	req->ignore = 0;
	if (unlikely(!kmsg_can_recv(ep)))
		return kmsg_no(ep);
	ret = ep->on->req->rx(ep->on, req);
	return unlikely(ret) ? ret : kmsg_recv_posted(ep);
}

const struct fi_ops_msg kmsg_msg_ops = {
	.recv		= kmsg_recv,
	.recvv		= kofi_req_recvv,
	.recvmsg	= kofi_req_recvmsg,
	.send		= kmsg_send,
	.sendv		= kofi_req_sendv,
	.sendmsg	= kofi_req_sendmsg,
	.inject		= kmsg_inject,
	.senddata	= kofi_req_senddata,
	.injectdata	= kofi_req_injectdata,
};

const struct kofi_req_ops kmsg_req_ops = {
	.tx	= kmsg_tx,
	.rx	= kmsg_rx,
};

/**
 * kmsg_posts_wait() - wait for the posts that have seen an earlier state
 * @ep: the endpoint, whose state has changed so that nothing else is posted
 *
 * Posts don't sleep. A receive is either posted before the call, or finds @ep->tell_at changed.
 * Whoever waits for a credit is told, because the next post fails.
 */
void kmsg_posts_wait(struct kmsg_ep *ep)
{
	/* Pairs with kmsg_send_begin() and kmsg_recv_posted(). */
	smp_mb();
	while (atomic_read_acquire(&ep->posting))
		usleep_range(10, 20);
	kmsg_tell_room(ep);
}

/* --- credits --- */

/* Have posts call kmsg_credit_due() from some number on; after the end, all of them do. */
static void kmsg_credit_at(struct kmsg_ep *ep, s64 at)
{
	lockdep_assert_held(&ep->lock);
	if (ep->state != KMSG_ENDED)
		WRITE_ONCE(ep->tell_at, at);
}

/* Count the receives. Posts from now on call kmsg_credit_due(), until @tell_at is set again. */
static u64 kmsg_credit_count(struct kmsg_ep *ep)
{
	lockdep_assert_held(&ep->lock);
	WRITE_ONCE(ep->tell_at, 0);
	/* Pairs with the post, which counts first. */
	smp_mb();
	return atomic64_read(&ep->posted);
}

/* The next post is the first one that the peer doesn't know of. */
static void kmsg_credit_told(struct kmsg_ep *ep, u64 told)
{
	lockdep_assert_held(&ep->lock);
	ep->told = told;
	kmsg_credit_at(ep, told + 1);
}

/**
 * kmsg_credit_take() - get the number of receives, for a message that tells the peer of it
 * @ep: the endpoint
 *
 * Return: the number.
 */
u64 kmsg_credit_take(struct kmsg_ep *ep)
{
	u64 posted;

	spin_lock_bh(&ep->lock);
	posted = kmsg_credit_count(ep);
	ep->step = clamp_t(u64, posted / 4, 1, KMSG_STEP_MAX);
	kmsg_credit_told(ep, posted);
	spin_unlock_bh(&ep->lock);
	return posted;
}

/**
 * kmsg_credit_due() - have the peer told of receives; or have them ended, if the connection has
 * @ep: the endpoint
 *
 * Context: Process or softirq context.
 * Return: 0.
 */
noinline ssize_t kmsg_credit_due(struct kmsg_ep *ep)
{
	u64 posted;

	spin_lock_bh(&ep->lock);
	posted = kmsg_credit_count(ep);
	if (ep->state == KMSG_ENDED) {
		queue_work(kmsg_wq, &ep->end);
	} else if (ep->state != KMSG_CONNECTED) {
		/* The connection's begin looks again. */
		kmsg_credit_at(ep, S64_MAX);
	} else if (posted == ep->told) {
		kmsg_credit_told(ep, posted);
	} else if (posted - ep->told >= ep->step) {
		kmsg_credit_at(ep, S64_MAX);
		mod_delayed_work(kmsg_wq, &ep->note, 0);
	} else {
		kmsg_credit_at(ep, ep->told + ep->step);
		queue_delayed_work(kmsg_wq, &ep->note, msecs_to_jiffies(KMSG_NOTE_MS));
	}
	spin_unlock_bh(&ep->lock);
	return 0;
}

/* Learn from the number of receives in a note how many to wait for. */
static void kmsg_credit_learn(struct kmsg_ep *ep, u64 n)
{
	const u64 step = n < ep->step ? n / 2 : max_t(u64, ep->step, n / 4);

	ep->step = clamp_t(u64, step, 1, KMSG_STEP_MAX);
}

static void kmsg_credit_note(struct work_struct *work)
{
	struct kmsg_ep *ep = container_of(to_delayed_work(work), struct kmsg_ep, note);
	struct kmsg_conn *conn = ep->conn;
	u64 posted, told;
	int ret = 0;

	mutex_lock(&conn->lock);
	spin_lock_bh(&ep->lock);
	told = ep->told;
	posted = kmsg_credit_count(ep);
	kmsg_credit_learn(ep, posted - told);
	kmsg_credit_told(ep, posted);
	spin_unlock_bh(&ep->lock);
	if (posted != told)
		ret = kmsg_conn_credit(conn, posted);
	if (ret) {
		spin_lock_bh(&ep->lock);
		ep->told = told;
		kmsg_credit_at(ep, S64_MAX);
		spin_unlock_bh(&ep->lock);
	}
	mutex_unlock(&conn->lock);
}

/**
 * kmsg_credit_add() - learn how many receives the peer has posted
 * @ep: the endpoint
 * @posted: their number since the beginning
 *
 * Return: 0, or -EPROTO for less than before, or for more than there can be.
 */
int kmsg_credit_add(struct kmsg_ep *ep, u64 posted)
{
	const u64 more = posted - ep->limit;

	lockdep_assert_held(&ep->conn->lock);
	if (posted < ep->limit || more > KMSG_CREDIT_MAX ||
	    max(atomic_read(&ep->credit), 0) + more > KMSG_CREDIT_MAX)
		return -EPROTO;
	ep->limit = posted;
	if (atomic_add_return(more, &ep->credit) > 0)
		kmsg_tell_room(ep);
	return 0;
}

/**
 * kmsg_credit_init() - initialize the credits of a new endpoint
 * @ep: the endpoint
 */
void kmsg_credit_init(struct kmsg_ep *ep)
{
	INIT_DELAYED_WORK(&ep->note, kmsg_credit_note);
	ep->step = 1;
	ep->tell_at = S64_MAX;
}
