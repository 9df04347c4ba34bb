// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Devices, queues and operations: see <kofi/ulp.h>. An operation that is refused with -EAGAIN waits
 * in a lane of its queue until the provider calls the queue's handler, which it does at least once
 * after each refusal. If a peer has no receive posted, the provider sends the message again for up
 * to KULP_RNR_MS.
 *
 * A device can fail at any time. Data calls are made under RCU. After a grace period the
 * endpoints are closed, which ends posted operations. Only then do waiting operations fail,
 * so that when an invalidation fails with -ENODEV, peers can't reach the memory any more.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <kofi/cm.h>
#include <kofi/ulp.h>
#include "auth.h"

static_assert(KULP_ADDR_MAX >= FI_ADDR_MAX);

MODULE_DESCRIPTION("kOFI: what ULPs share");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("0.1");
MODULE_IMPORT_NS(KOFI);

#define KULP_REGS		512	/* entries for registrations and invalidations in a CQ */
#define KULP_BATCH	16
/* Time for which a peer may lack a receive that it has promised, in milliseconds. */
#define KULP_RNR_MS	5000
#define KULP_BUFS_SIZE	SZ_32K	/* bytes of receive buffers per allocation */
#define KULP_BUF_ALIGN	64

struct kulp_recv {
	struct kulp_op	op;
	void		*buf;
};

struct kulp_bufs {
	struct list_head	list;
	void			*mem;
	struct kulp_recv		recvs[];
};

/* Held while a device is opened, which takes minutes if its admin queue doesn't answer. */
static DEFINE_MUTEX(kulp_opening_lock);
static DEFINE_MUTEX(kulp_fabrics_lock);	/* protects kulp_fabrics */
static LIST_HEAD(kulp_fabrics);
static struct workqueue_struct *kulp_wq;

/* Convert FI_* errors, which the block layer and users don't know, to errnos. */
static int kulp_errno(int err)
{
	if (err == -FI_ETRUNC)
		return -EMSGSIZE;
	/* The peer had no receive for KULP_RNR_MS. */
	if (err == -EAGAIN)
		return -ETIMEDOUT;
	return err < -FI_EOTHER + 1 ? -EIO : err;
}

/* --- posting --- */

static void kulp_op_fail(struct kulp_queue *q, struct kulp_op *op, int err)
{
	op->done(q, op, kulp_errno(err), 0);
}

/* Return: true if the operation has ended, false if it must wait. */
static noinline bool kulp_op_refused(struct kulp_queue *q, struct kulp_op *op, int err)
{
	/*
	 * Calls may fail with -ENODEV before the endpoints and regions are closed. Until
	 * then peers may reach the memory, so the operation must not end yet.
	 */
	if (err == -ENODEV)
		kulp_fabric_lost(q->fabric);
	if (err == -EAGAIN || err == -ENODEV)
		return false;
	kulp_op_fail(q, op, err);
	return true;
}

/* Called under RCU. Return: false if the operation must wait. */
static __always_inline bool kulp_op_post(struct kulp_queue *q, struct kulp_op *op)
{
	int ret = READ_ONCE(q->up) ? op->post(q, op) : -EAGAIN;

	return likely(!ret) || kulp_op_refused(q, op, ret);
}

/* Post operations of a lane until one is refused, and put that one back at the head. */
static void kulp_lane_pump(struct kulp_queue *q, struct list_head *lane)
	__must_hold(&q->lock)
{
	struct kulp_op *op;
	bool posted;

	while ((op = list_first_entry_or_null(lane, struct kulp_op, list))) {
		list_del(&op->list);
		spin_unlock_bh(&q->lock);
		rcu_read_lock();
		posted = kulp_op_post(q, op);
		rcu_read_unlock();
		spin_lock_bh(&q->lock);
		if (posted) {
			WRITE_ONCE(q->nwaiting, q->nwaiting - 1);
			continue;
		}
		if (!q->closed) {
			list_add(&op->list, lane);
			return;
		}
		spin_unlock_bh(&q->lock);
		kulp_op_fail(q, op, -ENODEV);
		spin_lock_bh(&q->lock);
	}
}

/*
 * Post waiting operations. Only one thread at a time does so, and puts a refused operation
 * back into its lane before the next one is tried. Registrations and invalidations may share the
 * room of sends, of which there may always be more, so they go first.
 */
static void kulp_pump(struct kulp_queue *q)
{
	int i;

	/* An operation that is about to wait is tried once more after that. */
	if (!READ_ONCE(q->nwaiting))
		return;
	spin_lock_bh(&q->lock);
	q->pump_again = true;
	while (q->pump_again && !q->pumping && READ_ONCE(q->up)) {
		q->pump_again = false;
		q->pumping = true;
		for (i = KULP_LANES; i--;)
			kulp_lane_pump(q, &q->lanes[i]);
		q->pumping = false;
	}
	spin_unlock_bh(&q->lock);
}

/* @tried: the operation was just refused; otherwise it waits behind others of its lane. */
static noinline void kulp_op_wait(struct kulp_queue *q, struct kulp_op *op, bool tried)
{
	struct list_head *lane = &q->lanes[op->lane];
	bool first, closed;

	spin_lock_bh(&q->lock);
	closed = q->closed;
	first = list_empty(lane);
	if (!closed) {
		list_add_tail(&op->list, lane);
		WRITE_ONCE(q->nwaiting, q->nwaiting + 1);
	}
	spin_unlock_bh(&q->lock);
	if (closed)
		kulp_op_fail(q, op, -ENODEV);
	/* The handler may have been called before the operation was in its lane. */
	else if (tried || first)
		kulp_pump(q);
}

void kulp_submit(struct kulp_queue *q, struct kulp_op *op)
{
	bool empty;

	/* The operation may complete at once and end @q's last user; kulp_fabric_down() waits. */
	rcu_read_lock();
	empty = list_empty_careful(&q->lanes[op->lane]);
	if (unlikely(!empty) || unlikely(!kulp_op_post(q, op)))
		kulp_op_wait(q, op, empty);
	rcu_read_unlock();
}
EXPORT_SYMBOL_NS_GPL(kulp_submit, KOFI_ULP);

void kulp_expedite(struct kulp_queue *q)
{
	rcu_read_lock();
	if (READ_ONCE(q->up))
		fi_expedite(q->ep);
	rcu_read_unlock();
}
EXPORT_SYMBOL_NS_GPL(kulp_expedite, KOFI_ULP);

/* --- completing --- */

static noinline void kulp_cq_error(struct kulp_queue *q)
{
	struct fi_cq_err_entry e = { };

	/* Another reader may have taken the error. */
	if (fi_cq_readerr(q->cq, &e, 0) != 1 || !e.op_context)
		return;
	kulp_op_fail(q, e.op_context, e.err ? -e.err : -EIO);
}

static void kulp_recv_written(struct kulp_queue *q, struct kulp_op *op, u32 data);

static noinline void kulp_drained(struct kulp_queue *q)
{
	if (q->fabric->role->drained)
		q->fabric->role->drained(q);
}

static void kulp_op_done(struct kulp_queue *q, struct kulp_op *op, size_t len)
{
	unsigned long now = jiffies;

	if (op->lane == KULP_LANE_SEND && READ_ONCE(q->moved) != now)
		WRITE_ONCE(q->moved, now);
	op->done(q, op, 0, len);
}

bool kulp_fabric_moves(const struct kulp_fabric *f, unsigned long since)
{
	u16 i;

	for (i = 0; i < f->nqueues; i++)
		if (time_after_eq(READ_ONCE(f->queues[i].moved), since))
			return true;
	return false;
}
EXPORT_SYMBOL_NS_GPL(kulp_fabric_moves, KOFI_ULP);

/* Return: the number of completions that were handled, or an error: there are none. */
static __always_inline ssize_t kulp_cq_take(struct kulp_queue *q, struct fid_cq *cq)
{
	struct fi_cq_data_entry done[KULP_BATCH];
	struct kulp_op *op;
	ssize_t n, i;

	n = fi_cq_read(cq, done, KULP_BATCH);
	for (i = 0; i < n; i++) {
		op = done[i].op_context;
		if (done[i].flags & FI_REMOTE_WRITE)
			kulp_recv_written(q, op, done[i].data);
		else
			kulp_op_done(q, op, done[i].len);
	}
	if (n == -FI_EAVAIL) {
		kulp_cq_error(q);
		n = 1;
	}
	if (n > 0)
		kulp_drained(q);
	/* Also without completions: the provider calls the handler when there is room. */
	kulp_pump(q);
	return n;
}

static void kulp_cq_drain(struct fid_cq *cq, void *context)
{
	while (kulp_cq_take(context, cq) > 0)
		;
}

int kulp_poll(struct kulp_queue *q)
{
	ssize_t n = 0;

	/* kulp_fabric_down() waits for it, and then drains the queue itself. */
	rcu_read_lock();
	if (q->polled && READ_ONCE(q->up))
		n = kulp_cq_take(q, q->cq);
	rcu_read_unlock();
	return max_t(ssize_t, n, 0);
}
EXPORT_SYMBOL_NS_GPL(kulp_poll, KOFI_ULP);

void kulp_fabric_lost(struct kulp_fabric *f)
{
	if (!xchg(&f->gone, true))
		queue_work(kulp_wq, &f->gone_work);
}
EXPORT_SYMBOL_NS_GPL(kulp_fabric_lost, KOFI_ULP);

/* Regions may name the endpoint, and are closed before it: kulp_queue_close(). */
static void kulp_queue_end(struct kulp_queue *q)
{
	if (!q->ep || q->ended)
		return;
	q->ended = true;
	fi_disable(q->ep);
	kulp_cq_drain(q->cq, q);
}

/* kulp_lane_pump() itself fails an operation that it has taken out of a lane. */
static void kulp_queue_end_waits(struct kulp_queue *q)
{
	struct kulp_op *op, *next;
	LIST_HEAD(waiting);
	int i;

	spin_lock_bh(&q->lock);
	q->closed = true;
	for (i = 0; i < KULP_LANES; i++)
		list_splice_tail_init(&q->lanes[i], &waiting);
	spin_unlock_bh(&q->lock);
	list_for_each_entry_safe(op, next, &waiting, list)
		kulp_op_fail(q, op, -ENODEV);
}

/* End all operations, posted or waiting. */
static void kulp_fabric_down(struct kulp_fabric *f)
{
	u16 i;

	for (i = 0; i < f->nqueues; i++)
		WRITE_ONCE(f->queues[i].up, false);
	synchronize_rcu();
	/* kulp_gone(), kulp_fabric_end() and the last kulp_fabric_put() may run concurrently. */
	mutex_lock(&f->down_lock);
	for (i = 0; i < f->nqueues; i++)
		kulp_queue_end(&f->queues[i]);
	mutex_unlock(&f->down_lock);
	for (i = 0; i < f->nqueues; i++)
		kulp_queue_end_waits(&f->queues[i]);
}

void kulp_fabric_end(struct kulp_fabric *f)
{
	unsigned int noio = memalloc_noio_save();

	kulp_fabric_lost(f);
	/* The work item may not run yet, or not be queued yet. */
	kulp_fabric_down(f);
	memalloc_noio_restore(noio);
}
EXPORT_SYMBOL_NS_GPL(kulp_fabric_end, KOFI_ULP);

static void kulp_gone(struct work_struct *work)
{
	struct kulp_fabric *f = container_of(work, struct kulp_fabric, gone_work);
	unsigned int noio = memalloc_noio_save();

	kulp_fabric_down(f);
	f->role->gone(f);
	memalloc_noio_restore(noio);
}

static void kulp_eq_handler(struct fid_eq *eq, void *context)
{
	struct fi_eq_device_entry entry;
	struct kulp_fabric *f = context;
	ssize_t ret;
	u32 event;

	for (;;) {
		struct fi_eq_err_entry error = { };

		ret = fi_eq_read(eq, &event, &entry, sizeof(entry), 0);
		if (ret == -FI_EAVAIL)
			fi_eq_readerr(eq, &error, 0);
		else if (ret > 0 && event == FI_DEVICE_REMOVED)
			kulp_fabric_lost(f);
		else if (ret < 0 && ret != -FI_EOVERRUN)
			break;
	}
	/* An unexpected error could hide the device's removal. */
	if (WARN_ON_ONCE(ret != -EAGAIN))
		kulp_fabric_lost(f);
}

/* --- receives --- */

static int kulp_recv_post(struct kulp_queue *q, struct kulp_op *op)
{
	struct kulp_recv *recv = container_of(op, struct kulp_recv, op);
	int ret;

	ret = fi_recv(q->ep, recv->buf, q->recv_len, NULL, FI_ADDR_UNSPEC, op);
	return ret == -EMSGSIZE ? -EIO : ret;
}

/*
 * A message that is too long is the peer's fault, as are one whose packets don't all arrive, and
 * an RDMA write with data to an endpoint for messages alone: -EPROTO. Any other error is the
 * device's.
 */
static bool kulp_recv_spoilt(const struct kulp_fabric *f, int err)
{
	return err == -EMSGSIZE || err == -EPROTO || (f->parts && err != -ENODEV);
}

static void kulp_recv_done(struct kulp_queue *q, struct kulp_op *op, int err, size_t len)
{
	struct kulp_recv *recv = container_of(op, struct kulp_recv, op);

	if (!err) {
		/* If @up is false, the handler may run concurrently with the final drain. */
		if (READ_ONCE(q->up))
			q->fabric->role->received(q, recv->buf, len);
	} else if (!kulp_recv_spoilt(q->fabric, err) && READ_ONCE(q->up)) {
		kulp_fabric_lost(q->fabric);
		return;
	}
	if (READ_ONCE(q->up))
		kulp_submit(q, op);
}

/*
 * Any peer that can reach the endpoint can send immediate data. @op is a receive that the data has
 * consumed without a message; or NULL, as some fabrics need none.
 */
static void kulp_recv_written(struct kulp_queue *q, struct kulp_op *op, u32 data)
{
	void *user;

	if (!READ_ONCE(q->up))
		return;
	rcu_read_lock();
	user = rcu_dereference(q->users[data / KULP_IMM_USER(1)]);
	if (user && q->fabric->role->written)
		q->fabric->role->written(user, data);
	rcu_read_unlock();
	if (op)
		kulp_submit(q, op);
}

static int kulp_bufs_add(struct kulp_queue *q)
{
	size_t stride = ALIGN(q->recv_len, KULP_BUF_ALIGN);
	u32 i, count = min_t(u32, KULP_BUFS_SIZE / stride, q->recvs_max - q->recvs);
	struct kulp_bufs *bufs;

	bufs = kzalloc(struct_size(bufs, recvs, count), GFP_KERNEL);
	if (!bufs)
		return -ENOMEM;
	bufs->mem = kmalloc_node(count * stride, GFP_KERNEL,
				 q->fabric->info->domain_attr->numa_node);
	if (!bufs->mem) {
		kfree(bufs);
		return -ENOMEM;
	}
	list_add(&bufs->list, &q->bufs);
	q->recvs += count;
	for (i = 0; i < count; i++) {
		bufs->recvs[i].buf = bufs->mem + i * stride;
		bufs->recvs[i].op.lane = KULP_LANE_RECV;
		bufs->recvs[i].op.post = kulp_recv_post;
		bufs->recvs[i].op.done = kulp_recv_done;
		kulp_submit(q, &bufs->recvs[i].op);
	}
	return 0;
}

u32 kulp_credits_take(struct kulp_queue *q, u32 want)
{
	unsigned int noio = memalloc_noio_save();
	u32 n;

	mutex_lock(&q->credits_lock);
	want = min(want, q->recvs_max - q->promised);
	while (q->recvs < q->promised + want && !kulp_bufs_add(q))
		;
	n = min(want, q->recvs - q->promised);
	q->promised += n;
	mutex_unlock(&q->credits_lock);
	memalloc_noio_restore(noio);
	return n;
}
EXPORT_SYMBOL_NS_GPL(kulp_credits_take, KOFI_ULP);

void kulp_credits_give(struct kulp_queue *q, u32 n)
{
	mutex_lock(&q->credits_lock);
	q->promised -= n;
	mutex_unlock(&q->credits_lock);
}
EXPORT_SYMBOL_NS_GPL(kulp_credits_give, KOFI_ULP);

int kulp_user_add(struct kulp_queue *q, void *user)
{
	int i, ret = -ENOSPC;

	mutex_lock(&q->credits_lock);
	for (i = 0; i < KULP_USERS && ret < 0; i++) {
		if (rcu_access_pointer(q->users[i]))
			continue;
		rcu_assign_pointer(q->users[i], user);
		ret = i;
	}
	mutex_unlock(&q->credits_lock);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(kulp_user_add, KOFI_ULP);

void kulp_user_del(struct kulp_queue *q, void *user)
{
	int i;

	mutex_lock(&q->credits_lock);
	for (i = 0; i < KULP_USERS; i++)
		if (rcu_access_pointer(q->users[i]) == user)
			RCU_INIT_POINTER(q->users[i], NULL);
	mutex_unlock(&q->credits_lock);
}
EXPORT_SYMBOL_NS_GPL(kulp_user_del, KOFI_ULP);

/* --- transfers --- */

int kulp_rma_post(struct kulp_queue *q, struct kulp_op *op)
{
	struct kulp_rma *rma = container_of(op, struct kulp_rma, op);
	const struct fi_msg_rma msg = {
		.msg_iter	= rma->iter,
		.addr		= rma->peer,
		.rma_iov	= &rma->iov,
		.rma_iov_count	= 1,
		.context	= op,
		.data		= rma->imm,
	};

	rma->iov.len = iov_iter_count(&rma->iter);
	if (iov_iter_rw(&rma->iter) != WRITE)
		return fi_readmsg(q->ep, &msg, FI_COMPLETION);
	return fi_writemsg(q->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE |
			   (rma->has_imm ? FI_REMOTE_CQ_DATA : 0));
}
EXPORT_SYMBOL_NS_GPL(kulp_rma_post, KOFI_ULP);

void kulp_rma_submit(struct kulp_queue *q, struct kulp_rma *rma)
{
	rma->op.post = kulp_rma_post;
	kulp_submit(q, &rma->op);
}
EXPORT_SYMBOL_NS_GPL(kulp_rma_submit, KOFI_ULP);

/* --- peers --- */

int kulp_peer_get(struct kulp_fabric *f, const void *addr, fi_addr_t *peer)
{
	unsigned int noio = memalloc_noio_save();
	int ret = fi_av_insert(f->av, addr, 1, peer, 0, NULL);

	memalloc_noio_restore(noio);
	if (ret == 1)
		return 0;
	return ret < 0 ? kulp_errno(ret) : -EADDRNOTAVAIL;
}
EXPORT_SYMBOL_NS_GPL(kulp_peer_get, KOFI_ULP);

void kulp_peer_put(struct kulp_fabric *f, fi_addr_t peer)
{
	unsigned int noio = memalloc_noio_save();

	/* Ignore the error of a device that is gone. */
	fi_av_remove(f->av, &peer, 1, 0);
	memalloc_noio_restore(noio);
}
EXPORT_SYMBOL_NS_GPL(kulp_peer_put, KOFI_ULP);

/* --- opening and closing --- */

static int kulp_find(const struct kulp_select *select, u64 caps, struct fi_info **info)
{
	struct fi_info *hints;
	int ret;

	hints = fi_allocinfo_for(select->prov, select->fabric, select->domain);
	if (!hints)
		return -ENOMEM;
	hints->caps = caps;
	/* Remote CQ data may consume receives: credits cover immediate data as well as replies. */
	hints->mode = FI_RX_CQ_DATA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	ret = fi_getinfo(FI_VERSION(2, 0), NULL, NULL, 0, hints, info);
	fi_freeinfo(hints);
	return ret;
}

/*
 * Use what else the device of kulp_fabric.info can do. Return: 1 if it can; 0 if it can't; or a
 * negative errno.
 */
static int kulp_fabric_add(struct kulp_fabric *f, const struct kulp_select *select, u64 caps)
{
	struct kulp_select chosen = *select;
	struct fi_info *info;
	int ret;

	chosen.fabric = f->info->fabric_attr->name;
	ret = kulp_find(&chosen, caps, &info);
	if (ret)
		return ret == -ENODATA ? 0 : ret;
	fi_freeinfo(f->info);
	f->info = info;
	return 1;
}

/* The fabric is chosen without regard to optional RDMA, because the peer's device may differ. */
static int kulp_fabric_choose(struct kulp_fabric *f, const struct kulp_select *select, u64 caps)
{
	const u64 reads = FI_RMA | FI_READ | FI_REMOTE_READ;
	const u64 writes = FI_RMA | FI_WRITE | FI_REMOTE_WRITE;
	int ret;

	ret = kulp_find(select, caps, &f->info);
	if (ret || (f->role->messages_only && !f->role->rma))
		return ret;
	/* Some devices have reads alone. */
	ret = f->role->messages_only ? kulp_fabric_add(f, select, caps | reads) : 1;
	if (ret < 0)
		return ret;
	f->can_read = ret;
	ret = kulp_fabric_add(f, select, caps | (f->can_read ? reads : 0) | writes);
	if (ret < 0)
		return ret;
	f->can_write = ret;
	return 0;
}

/* Return: whether the device would have been opened with this fabric if none had been named. */
static bool kulp_fabric_usual(const struct kulp_fabric *f, const struct kulp_select *select,
			      u64 caps)
{
	const struct kulp_select unnamed = {
		.prov	= f->info->fabric_attr->prov_name,
		.domain	= f->info->domain_attr->name,
	};
	struct fi_info *info;
	bool usual;

	if (!select->fabric)
		return true;
	if (kulp_find(&unnamed, caps, &info))
		return false;
	usual = !strcmp(info->fabric_attr->name, f->info->fabric_attr->name);
	fi_freeinfo(info);
	return usual;
}

static size_t kulp_option(struct kulp_fabric *f, int option)
{
	size_t value, len = sizeof(value);

	if (fi_getopt(&f->queues[0].ep->fid, FI_OPT_ENDPOINT, option, &value, &len))
		return f->info->ep_attr->max_msg_size;
	return value;
}

/* Limit how long a peer without receives can hold slots that it shares with others. */
static int kulp_bound_rnr(struct fid_ep *ep)
{
	const size_t ms = KULP_RNR_MS;
	int ret = fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_RNR_TIMEOUT, &ms, sizeof(ms));

	/* Providers without the option have their own limit. */
	return ret == -ENOPROTOOPT || ret == -EOPNOTSUPP ? 0 : ret;
}

static struct fi_cq_attr kulp_cq_attr(struct kulp_fabric *f, u16 index)
{
	struct kulp_queue *q = &f->queues[index];
	u16 vector = index % f->nvectors;
	struct fi_cq_attr attr = {
		.size		= f->info->tx_attr->size +
				  f->info->rx_attr->size + KULP_REGS,
		.flags		= FI_AFFINITY,
		.format		= FI_CQ_FORMAT_DATA,
		.signaling_vector = cpumask_nth(vector % num_online_cpus(), cpu_online_mask),
	};

	if (q->polled)
		return attr;
	attr.handler = kulp_cq_drain;
	attr.handler_context = q;
	if (f->role->softirq || index >= f->nvectors)
		attr.flags |= FI_CQ_SOFTIRQ;
	return attr;
}

static int kulp_queue_open(struct kulp_fabric *f, struct kulp_queue *q, u16 index)
{
	struct fi_cq_attr attr = kulp_cq_attr(f, index);
	u64 bind = FI_TRANSMIT | FI_RECV;
	int ret;

	/* One who polls finds the ends of messages at no cost. */
	if (f->role->lazy && !q->polled)
		bind |= FI_LAZY_COMPLETION;
	ret = fi_cq_open(f->domain, &attr, &q->cq, NULL) ?:
	      fi_endpoint(f->domain, f->info, &q->ep, NULL) ?:
	      kulp_bound_rnr(q->ep) ?:
	      fi_ep_bind(q->ep, &f->av->fid, 0) ?:
	      fi_ep_bind(q->ep, &q->cq->fid, bind) ?:
	      fi_enable(q->ep);
	if (ret)
		return ret;
	q->addrlen = sizeof(q->addr);
	return fi_getname(&q->ep->fid, q->addr, &q->addrlen);
}

static void kulp_queue_close(struct kulp_queue *q)
{
	struct kulp_bufs *bufs, *next;

	if (q->ep)
		fi_close(&q->ep->fid);
	if (q->cq)
		fi_close(&q->cq->fid);
	list_for_each_entry_safe(bufs, next, &q->bufs, list) {
		kfree(bufs->mem);
		kfree(bufs);
	}
}

static void kulp_queue_init(struct kulp_fabric *f, u16 index)
{
	struct kulp_queue *q = &f->queues[index];
	int i;

	q->fabric = f;
	spin_lock_init(&q->lock);
	for (i = 0; i < KULP_LANES; i++)
		INIT_LIST_HEAD(&q->lanes[i]);
	mutex_init(&q->credits_lock);
	q->recvs_max = f->info->rx_attr->size;
	INIT_LIST_HEAD(&q->bufs);
}

static void kulp_fabric_close(struct kulp_fabric *f)
{
	u16 i;

	if (xchg(&f->gone, true))
		flush_work(&f->gone_work);
	kulp_fabric_down(f);
	for (i = 0; i < f->nqueues; i++)
		kulp_queue_close(&f->queues[i]);
	if (f->av)
		fi_close(&f->av->fid);
	if (f->domain)
		fi_close(&f->domain->fid);
	if (f->eq)
		fi_close(&f->eq->fid);
	/* kulp_fabric_lost() may have set @gone before that flush, and queued work after it. */
	flush_work(&f->gone_work);
	if (f->fabric)
		fi_close(&f->fabric->fid);
	fi_freeinfo(f->info);
	kfree(f->owner);
	kfree(f->queues);
	kfree(f);
}

/* Second queues are as many as the first ones, and those that are polled take what is left. */
static void kulp_count_queues(struct kulp_fabric *f, unsigned int polled)
{
	const struct fi_domain_attr *attr = f->info->domain_attr;
	unsigned int room = max(min_not_zero(attr->cq_cnt, attr->ep_cnt), 1UL);
	bool two = f->role->softirq_too && room > 1;

	f->nvectors = min3(max_t(unsigned int, num_online_cpus(), f->role->min_queues),
			   (unsigned int)f->role->max_queues, two ? room / 2 : room);
	f->nsoftirq = two ? f->nvectors : 0;
	f->polled = polled;
	f->npolled = min3(polled, num_online_cpus(), room - f->nvectors - f->nsoftirq);
}

/* Close the second queues: the device has too few, as others use it. Nothing was posted yet. */
static void kulp_queues_drop(struct kulp_fabric *f)
{
	struct kulp_queue *q;

	while (f->nqueues > f->nvectors) {
		q = &f->queues[--f->nqueues];
		kulp_queue_end(q);
		kulp_queue_close(q);
		memset(q, 0, sizeof(*q));
	}
	f->nsoftirq = 0;
}

static int kulp_queues_open(struct kulp_fabric *f)
{
	int ret;

	while (f->nqueues < f->nvectors + f->nsoftirq + f->npolled) {
		const u16 i = f->nqueues++;
		const bool polled = i >= f->nvectors + f->nsoftirq;

		kulp_queue_init(f, i);
		f->queues[i].polled = polled;
		ret = kulp_queue_open(f, &f->queues[i], i);
		if (!ret)
			continue;
		if (i < f->nvectors || polled)
			return ret;
		kulp_queues_drop(f);
	}
	return 0;
}

static int kulp_fabric_open(struct kulp_fabric *f, const struct kulp_select *select)
{
	const u64 caps = f->role->messages_only ? FI_MSG :
			 FI_MSG | FI_RMA | FI_READ | FI_REMOTE_READ;
	struct fi_eq_attr eq_attr = {
		.handler		= kulp_eq_handler,
		.handler_context	= f,
	};
	struct fi_av_attr av_attr = {};
	unsigned int i;
	int ret;

	ret = kulp_fabric_choose(f, select, caps);
	if (ret)
		return ret;
	f->usual = kulp_fabric_usual(f, select, caps);
	/* So that the loss of a message doesn't end communication with its receiver for ever. */
	f->info->tx_attr->msg_order = 0;
	f->info->rx_attr->msg_order = 0;
	f->can_imm = f->can_write &&
		     f->info->domain_attr->cq_data_size >= sizeof(u32);
	kulp_count_queues(f, select->polled);
	f->queues = kcalloc(f->nvectors + f->nsoftirq + f->npolled, sizeof(*f->queues),
			    GFP_KERNEL);
	if (!f->queues)
		return -ENOMEM;
	ret = fi_fabric(f->info->fabric_attr, &f->fabric, NULL) ?:
	      fi_eq_open(f->fabric, &eq_attr, &f->eq, NULL) ?:
	      fi_domain(f->fabric, f->info, &f->domain, NULL) ?:
	      fi_av_open(f->domain, &av_attr, &f->av, NULL) ?:
	      kulp_queues_open(f);
	if (ret)
		return ret;
	f->max_msg = kulp_option(f, FI_OPT_MAX_MSG_SIZE);
	f->max_rma = kulp_option(f, FI_OPT_MAX_RMA_SIZE);
	f->parts = f->info->nic && f->max_msg > f->info->nic->link_attr.mtu;
	for (i = 0; i < f->nqueues; i++) {
		f->queues[i].recv_len = min(f->role->recv_len, f->max_msg);
		f->queues[i].moved = jiffies;
		f->queues[i].up = true;
	}
	/* Last, because from here on a removal closes the endpoints. */
	return fi_domain_bind(f->domain, &f->eq->fid, 0);
}

static struct kulp_fabric *kulp_fabric_new(const struct kulp_role *role,
					   const struct kulp_select *select)
{
	struct kulp_fabric *f = kzalloc(sizeof(*f), GFP_KERNEL);
	int ret;

	if (!f)
		return ERR_PTR(-ENOMEM);
	f->role = role;
	f->refs = 1;
	INIT_WORK(&f->gone_work, kulp_gone);
	mutex_init(&f->down_lock);
	if (select->owner)
		f->owner = kstrdup(select->owner, GFP_KERNEL);
	ret = select->owner && !f->owner ? -ENOMEM : kulp_fabric_open(f, select);
	if (ret) {
		kulp_fabric_close(f);
		return ERR_PTR(kulp_errno(ret));
	}
	pr_info("%s uses %s of %s, %u queues, %u of them polled%s%s%s\n", role->name,
		f->info->domain_attr->name, f->info->fabric_attr->name,
		f->nqueues, f->npolled,
		f->nsoftirq ? ", with second ones for softirqs" : "",
		f->can_write || role->messages_only ? "" : ", without RDMA write",
		f->owner ? ", in a domain of its own" : "");
	mutex_lock(&kulp_fabrics_lock);
	list_add(&f->list, &kulp_fabrics);
	mutex_unlock(&kulp_fabrics_lock);
	return f;
}

static bool kulp_is(const char *wanted, const char *name)
{
	return !wanted || !strcasecmp(wanted, name);
}

static bool kulp_owned_by(const struct kulp_fabric *f, const char *owner)
{
	return f->owner && owner ? !strcmp(f->owner, owner) : !f->owner && !owner;
}

/* Return: a device that is open, with a reference; or NULL. */
static struct kulp_fabric *kulp_fabric_known(const struct kulp_role *role,
					     const struct kulp_select *select)
{
	struct kulp_fabric *f, *found = NULL;

	mutex_lock(&kulp_fabrics_lock);
	list_for_each_entry(f, &kulp_fabrics, list)
		if (f->role == role && !READ_ONCE(f->gone) &&
		    kulp_owned_by(f, select->owner) && f->polled >= select->polled &&
		    kulp_is(select->prov, f->info->fabric_attr->prov_name) &&
		    (select->fabric ? kulp_is(select->fabric, f->info->fabric_attr->name) :
				      f->usual) &&
		    kulp_is(select->domain, f->info->domain_attr->name)) {
			f->refs++;
			found = f;
			break;
		}
	mutex_unlock(&kulp_fabrics_lock);
	return found;
}

struct kulp_fabric *kulp_fabric_get(const struct kulp_role *role, const struct kulp_select *select)
{
	unsigned int noio = memalloc_noio_save();
	struct kulp_fabric *f = kulp_fabric_known(role, select);

	if (!f) {
		mutex_lock(&kulp_opening_lock);
		/* Another task may have opened it. */
		f = kulp_fabric_known(role, select) ?: kulp_fabric_new(role, select);
		mutex_unlock(&kulp_opening_lock);
	}
	memalloc_noio_restore(noio);
	return f;
}
EXPORT_SYMBOL_NS_GPL(kulp_fabric_get, KOFI_ULP);

void kulp_fabric_put(struct kulp_fabric *f)
{
	unsigned int noio = memalloc_noio_save();
	bool last;

	mutex_lock(&kulp_fabrics_lock);
	last = !--f->refs;
	if (last)
		list_del(&f->list);
	mutex_unlock(&kulp_fabrics_lock);
	if (last)
		kulp_fabric_close(f);
	memalloc_noio_restore(noio);
}
EXPORT_SYMBOL_NS_GPL(kulp_fabric_put, KOFI_ULP);

static int __init kulp_init(void)
{
	kulp_wq = alloc_workqueue("kofi_ulp", WQ_MEM_RECLAIM | COMPAT_WQ_PERCPU, 0);
	return kulp_wq ? 0 : -ENOMEM;
}
module_init(kulp_init);

static void __exit kulp_exit(void)
{
	kulp_auth_exit();
	destroy_workqueue(kulp_wq);
}
module_exit(kulp_exit);
