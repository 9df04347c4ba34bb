// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofiblk's transport: see fabric.h. An operation that is refused with -EAGAIN waits in a
 * lane of its queue until the provider calls the queue's handler, which it does at least
 * once after each refusal. If a peer has no receive posted, the provider sends the message
 * again for up to KB_RNR_MS.
 *
 * A device can fail at any time. Data calls are made under RCU. After a grace period the
 * endpoints are closed, which ends posted operations. Only then do waiting operations fail,
 * so that when an invalidation fails with -ENODEV, peers can't reach the memory any more.
 */
#define pr_fmt(fmt) "kofiblk: " fmt

#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <kofi/cm.h>
#include "fabric.h"

MODULE_DESCRIPTION("kofiblk: common code of client and server");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("0.1");
MODULE_IMPORT_NS(KOFI);

#define KB_REGS		512	/* entries for registrations and invalidations in a CQ */
#define KB_BATCH	16
/* How long a peer may lack a receive that it has promised, in milliseconds. */
#define KB_RNR_MS	5000
#define KB_BUFS_SIZE	SZ_32K	/* bytes of receive buffers per allocation */
#define KB_BUF_ALIGN	64

struct kb_recv {
	struct kb_op	op;
	void		*buf;
};

struct kb_bufs {
	struct list_head	list;
	void			*mem;
	struct kb_recv		recvs[];
};

static DEFINE_MUTEX(kb_fabrics_lock);	/* protects kb_fabrics */
static LIST_HEAD(kb_fabrics);
static struct workqueue_struct *kb_wq;

/* Convert FI_* errors, which the block layer and users don't know, to errnos. */
static int kb_errno(int err)
{
	if (err == -FI_ETRUNC)
		return -EMSGSIZE;
	/* The peer had no receive for KB_RNR_MS. */
	if (err == -EAGAIN)
		return -ETIMEDOUT;
	return err < -FI_EOTHER + 1 ? -EIO : err;
}

/* --- posting --- */

static void kb_op_fail(struct kb_queue *q, struct kb_op *op, int err)
{
	op->done(q, op, kb_errno(err), 0);
}

/* Return: true if the operation has ended, false if it must wait. */
static noinline bool kb_op_refused(struct kb_queue *q, struct kb_op *op, int err)
{
	/*
	 * Calls may fail with -ENODEV before the endpoints and regions are closed. Until
	 * then peers may reach the memory, so the operation must not end yet.
	 */
	if (err == -ENODEV)
		kb_fabric_lost(q->fabric);
	if (err == -EAGAIN || err == -ENODEV)
		return false;
	kb_op_fail(q, op, err);
	return true;
}

/* Return: false if the operation must wait. */
static __always_inline bool kb_op_post(struct kb_queue *q, struct kb_op *op)
{
	int ret;

	rcu_read_lock();
	ret = READ_ONCE(q->up) ? op->post(q, op) : -EAGAIN;
	rcu_read_unlock();
	return likely(!ret) || kb_op_refused(q, op, ret);
}

/* Post operations of a lane until one is refused, and put that one back at the head. */
static void kb_lane_pump(struct kb_queue *q, struct list_head *lane)
	__must_hold(&q->lock)
{
	struct kb_op *op;
	bool posted;

	while ((op = list_first_entry_or_null(lane, struct kb_op, list))) {
		list_del(&op->list);
		spin_unlock_bh(&q->lock);
		posted = kb_op_post(q, op);
		spin_lock_bh(&q->lock);
		if (posted)
			continue;
		if (!q->closed) {
			list_add(&op->list, lane);
			return;
		}
		spin_unlock_bh(&q->lock);
		kb_op_fail(q, op, -ENODEV);
		spin_lock_bh(&q->lock);
	}
}

/*
 * Post waiting operations. Only one thread at a time does so, and puts a refused operation
 * back into its lane before the next one is tried.
 */
static void kb_pump(struct kb_queue *q)
{
	int i;

	for (i = 0; i < KB_LANES && list_empty_careful(&q->lanes[i]); i++)
		;
	if (i == KB_LANES)
		return;
	spin_lock_bh(&q->lock);
	q->pump_again = true;
	while (q->pump_again && !q->pumping && READ_ONCE(q->up)) {
		q->pump_again = false;
		q->pumping = true;
		for (i = 0; i < KB_LANES; i++)
			kb_lane_pump(q, &q->lanes[i]);
		q->pumping = false;
	}
	spin_unlock_bh(&q->lock);
}

/* @tried: the operation was just refused; otherwise it waits behind others of its lane. */
static noinline void kb_op_wait(struct kb_queue *q, struct kb_op *op, bool tried)
{
	struct list_head *lane = &q->lanes[op->lane];
	bool first, closed;

	spin_lock_bh(&q->lock);
	closed = q->closed;
	first = list_empty(lane);
	if (!closed)
		list_add_tail(&op->list, lane);
	spin_unlock_bh(&q->lock);
	if (closed)
		kb_op_fail(q, op, -ENODEV);
	/* The handler may have been called before the operation was in its lane. */
	else if (tried || first)
		kb_pump(q);
}

void kb_submit(struct kb_queue *q, struct kb_op *op)
{
	bool empty;

	/* The operation may complete at once and end @q's last user; kb_fabric_down() waits. */
	rcu_read_lock();
	empty = list_empty_careful(&q->lanes[op->lane]);
	if (unlikely(!empty) || unlikely(!kb_op_post(q, op)))
		kb_op_wait(q, op, empty);
	rcu_read_unlock();
}
EXPORT_SYMBOL_NS_GPL(kb_submit, KOFIBLK);

/* --- completing --- */

static void kb_cq_error(struct kb_queue *q)
{
	struct fi_cq_err_entry e = { };

	/* Another reader may have taken the error. */
	if (fi_cq_readerr(q->cq, &e, 0) != 1 || !e.op_context)
		return;
	kb_op_fail(q, e.op_context, e.err ? -e.err : -EIO);
}

static void kb_recv_written(struct kb_queue *q, struct kb_op *op, u32 data);

static void kb_cq_drain(struct fid_cq *cq, void *context)
{
	struct fi_cq_data_entry done[KB_BATCH];
	struct kb_queue *q = context;
	struct kb_op *op;
	ssize_t n, i;

	do {
		n = fi_cq_read(cq, done, KB_BATCH);
		for (i = 0; i < n; i++) {
			op = done[i].op_context;
			/* Immediate data consumed a receive without a message. */
			if (done[i].flags & FI_REMOTE_WRITE)
				kb_recv_written(q, op, done[i].data);
			else
				op->done(q, op, 0, done[i].len);
		}
		if (n == -FI_EAVAIL)
			kb_cq_error(q);
		/* Also without completions: the provider calls the handler when there is room. */
		kb_pump(q);
	} while (n > 0 || n == -FI_EAVAIL);
}

void kb_fabric_lost(struct kb_fabric *f)
{
	if (!xchg(&f->gone, true))
		queue_work(kb_wq, &f->gone_work);
}
EXPORT_SYMBOL_NS_GPL(kb_fabric_lost, KOFIBLK);

static void kb_queue_close_ep(struct kb_queue *q)
{
	if (!q->ep)
		return;
	fi_close(&q->ep->fid);
	q->ep = NULL;
	kb_cq_drain(q->cq, q);
}

/* kb_lane_pump() itself fails an operation that it has taken out of a lane. */
static void kb_queue_end_waits(struct kb_queue *q)
{
	struct kb_op *op, *next;
	LIST_HEAD(waiting);
	int i;

	spin_lock_bh(&q->lock);
	q->closed = true;
	for (i = 0; i < KB_LANES; i++)
		list_splice_tail_init(&q->lanes[i], &waiting);
	spin_unlock_bh(&q->lock);
	list_for_each_entry_safe(op, next, &waiting, list)
		kb_op_fail(q, op, -ENODEV);
}

/* End all operations, posted or waiting. */
static void kb_fabric_down(struct kb_fabric *f)
{
	u16 i;

	for (i = 0; i < f->nqueues; i++)
		WRITE_ONCE(f->queues[i].up, false);
	synchronize_rcu();
	/* kb_gone() and the last kb_fabric_put() may run concurrently. */
	mutex_lock(&f->down_lock);
	for (i = 0; i < f->nqueues; i++)
		kb_queue_close_ep(&f->queues[i]);
	mutex_unlock(&f->down_lock);
	for (i = 0; i < f->nqueues; i++)
		kb_queue_end_waits(&f->queues[i]);
}

static void kb_gone(struct work_struct *work)
{
	struct kb_fabric *f = container_of(work, struct kb_fabric, gone_work);
	unsigned int noio = memalloc_noio_save();

	kb_fabric_down(f);
	f->role->gone(f);
	memalloc_noio_restore(noio);
}

static void kb_eq_handler(struct fid_eq *eq, void *context)
{
	struct fi_eq_device_entry entry;
	struct kb_fabric *f = context;
	ssize_t ret;
	u32 event;

	for (;;) {
		struct fi_eq_err_entry error = { };

		ret = fi_eq_read(eq, &event, &entry, sizeof(entry), 0);
		if (ret == -FI_EAVAIL)
			fi_eq_readerr(eq, &error, 0);
		else if (ret > 0 && event == FI_DEVICE_REMOVED)
			kb_fabric_lost(f);
		else if (ret < 0 && ret != -FI_EOVERRUN)
			break;
	}
	/* An unexpected error could hide the device's removal. */
	if (WARN_ON_ONCE(ret != -EAGAIN))
		kb_fabric_lost(f);
}

/* --- receives --- */

static int kb_recv_post(struct kb_queue *q, struct kb_op *op)
{
	struct kb_recv *recv = container_of(op, struct kb_recv, op);
	int ret;

	ret = fi_recv(q->ep, recv->buf, q->recv_len, NULL, FI_ADDR_UNSPEC, op);
	return ret == -EMSGSIZE ? -EIO : ret;
}

/* A message that is too long is the peer's fault. Any other error is the device's. */
static void kb_recv_done(struct kb_queue *q, struct kb_op *op, int err,
			 size_t len)
{
	struct kb_recv *recv = container_of(op, struct kb_recv, op);

	if (!err) {
		/* If @up is false, the handler may run concurrently with the final drain. */
		if (READ_ONCE(q->up))
			q->fabric->role->received(q, recv->buf, len);
	} else if (err != -EMSGSIZE && READ_ONCE(q->up)) {
		kb_fabric_lost(q->fabric);
		return;
	}
	if (READ_ONCE(q->up))
		kb_submit(q, op);
}

/* Any peer that can reach the endpoint can send immediate data. */
static void kb_recv_written(struct kb_queue *q, struct kb_op *op, u32 data)
{
	void *user;

	if (!READ_ONCE(q->up))
		return;
	rcu_read_lock();
	user = rcu_dereference(q->users[data / KB_IMM_USER(1)]);
	if (user && q->fabric->role->written)
		q->fabric->role->written(user, data);
	rcu_read_unlock();
	kb_submit(q, op);
}

static int kb_bufs_add(struct kb_queue *q)
{
	size_t stride = ALIGN(q->recv_len, KB_BUF_ALIGN);
	u32 i, count = min_t(u32, KB_BUFS_SIZE / stride, q->recvs_max - q->recvs);
	struct kb_bufs *bufs;

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
		bufs->recvs[i].op.lane = KB_LANE_RECV;
		bufs->recvs[i].op.post = kb_recv_post;
		bufs->recvs[i].op.done = kb_recv_done;
		kb_submit(q, &bufs->recvs[i].op);
	}
	return 0;
}

u32 kb_credits_take(struct kb_queue *q, u32 want)
{
	unsigned int noio = memalloc_noio_save();
	u32 n;

	mutex_lock(&q->credits_lock);
	want = min(want, q->recvs_max - q->promised);
	while (q->recvs < q->promised + want && !kb_bufs_add(q))
		;
	n = min(want, q->recvs - q->promised);
	q->promised += n;
	mutex_unlock(&q->credits_lock);
	memalloc_noio_restore(noio);
	return n;
}
EXPORT_SYMBOL_NS_GPL(kb_credits_take, KOFIBLK);

void kb_credits_give(struct kb_queue *q, u32 n)
{
	mutex_lock(&q->credits_lock);
	q->promised -= n;
	mutex_unlock(&q->credits_lock);
}
EXPORT_SYMBOL_NS_GPL(kb_credits_give, KOFIBLK);

int kb_user_add(struct kb_queue *q, void *user)
{
	int i, ret = -ENOSPC;

	mutex_lock(&q->credits_lock);
	for (i = 0; i < KB_USERS && ret < 0; i++) {
		if (rcu_access_pointer(q->users[i]))
			continue;
		rcu_assign_pointer(q->users[i], user);
		ret = i;
	}
	mutex_unlock(&q->credits_lock);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(kb_user_add, KOFIBLK);

void kb_user_del(struct kb_queue *q, void *user)
{
	int i;

	mutex_lock(&q->credits_lock);
	for (i = 0; i < KB_USERS; i++)
		if (rcu_access_pointer(q->users[i]) == user)
			RCU_INIT_POINTER(q->users[i], NULL);
	mutex_unlock(&q->credits_lock);
}
EXPORT_SYMBOL_NS_GPL(kb_user_del, KOFIBLK);

/* --- transfers --- */

static int kb_rma_post(struct kb_queue *q, struct kb_op *op)
{
	struct kb_rma *rma = container_of(op, struct kb_rma, op);
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

void kb_rma_submit(struct kb_queue *q, struct kb_rma *rma)
{
	rma->op.post = kb_rma_post;
	kb_submit(q, &rma->op);
}
EXPORT_SYMBOL_NS_GPL(kb_rma_submit, KOFIBLK);

/* --- peers --- */

int kb_peer_get(struct kb_fabric *f, const void *addr, fi_addr_t *peer)
{
	unsigned int noio = memalloc_noio_save();
	int ret = fi_av_insert(f->av, addr, 1, peer, 0, NULL);

	memalloc_noio_restore(noio);
	if (ret == 1)
		return 0;
	return ret < 0 ? kb_errno(ret) : -EADDRNOTAVAIL;
}
EXPORT_SYMBOL_NS_GPL(kb_peer_get, KOFIBLK);

void kb_peer_put(struct kb_fabric *f, fi_addr_t peer)
{
	unsigned int noio = memalloc_noio_save();

	/* Ignore the error of a device that is gone. */
	fi_av_remove(f->av, &peer, 1, 0);
	memalloc_noio_restore(noio);
}
EXPORT_SYMBOL_NS_GPL(kb_peer_put, KOFIBLK);

/* --- opening and closing --- */

static int kb_find(const struct kb_select *select, u64 caps,
		   struct fi_info **info)
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

static size_t kb_option(struct kb_fabric *f, int option)
{
	size_t value, len = sizeof(value);

	if (fi_getopt(&f->queues[0].ep->fid, FI_OPT_ENDPOINT, option, &value,
		      &len))
		return f->info->ep_attr->max_msg_size;
	return value;
}

/* Limit how long a peer without receives can hold slots that it shares with others. */
static int kb_bound_rnr(struct fid_ep *ep)
{
	const size_t ms = KB_RNR_MS;
	int ret = fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_RNR_TIMEOUT, &ms,
			    sizeof(ms));

	/* Providers without the option have their own limit. */
	return ret == -ENOPROTOOPT || ret == -EOPNOTSUPP ? 0 : ret;
}

static int kb_queue_open(struct kb_fabric *f, struct kb_queue *q, u16 index)
{
	struct fi_cq_attr attr = {
		.size		= f->info->tx_attr->size +
				  f->info->rx_attr->size + KB_REGS,
		.flags		= FI_AFFINITY,
		.format		= FI_CQ_FORMAT_DATA,
		.signaling_vector = cpumask_nth(index % num_online_cpus(), cpu_online_mask),
		.handler	= kb_cq_drain,
		.handler_context = q,
	};
	int ret;

	ret = fi_cq_open(f->domain, &attr, &q->cq, NULL) ?:
	      fi_endpoint(f->domain, f->info, &q->ep, NULL) ?:
	      kb_bound_rnr(q->ep) ?:
	      fi_ep_bind(q->ep, &f->av->fid, 0) ?:
	      fi_ep_bind(q->ep, &q->cq->fid, FI_TRANSMIT | FI_RECV) ?:
	      fi_enable(q->ep);
	if (ret)
		return ret;
	q->addrlen = sizeof(q->addr);
	return fi_getname(&q->ep->fid, q->addr, &q->addrlen);
}

static void kb_queue_close(struct kb_queue *q)
{
	struct kb_bufs *bufs, *next;

	if (q->cq)
		fi_close(&q->cq->fid);
	list_for_each_entry_safe(bufs, next, &q->bufs, list) {
		kfree(bufs->mem);
		kfree(bufs);
	}
}

static void kb_queue_init(struct kb_fabric *f, u16 index)
{
	struct kb_queue *q = &f->queues[index];
	int i;

	q->fabric = f;
	spin_lock_init(&q->lock);
	for (i = 0; i < KB_LANES; i++)
		INIT_LIST_HEAD(&q->lanes[i]);
	mutex_init(&q->credits_lock);
	q->recvs_max = f->info->rx_attr->size;
	INIT_LIST_HEAD(&q->bufs);
}

static void kb_fabric_close(struct kb_fabric *f)
{
	u16 i;

	if (xchg(&f->gone, true))
		flush_work(&f->gone_work);
	kb_fabric_down(f);
	for (i = 0; i < f->nqueues; i++)
		kb_queue_close(&f->queues[i]);
	if (f->av)
		fi_close(&f->av->fid);
	if (f->domain)
		fi_close(&f->domain->fid);
	if (f->eq)
		fi_close(&f->eq->fid);
	/* kb_fabric_lost() may have set @gone before the flush above, and queued work after it. */
	flush_work(&f->gone_work);
	if (f->fabric)
		fi_close(&f->fabric->fid);
	fi_freeinfo(f->info);
	kfree(f->owner);
	kfree(f->queues);
	kfree(f);
}

static int kb_fabric_open(struct kb_fabric *f, const struct kb_select *select)
{
	const u64 read = FI_MSG | FI_RMA | FI_READ | FI_REMOTE_READ;
	struct fi_eq_attr eq_attr = {
		.handler		= kb_eq_handler,
		.handler_context	= f,
	};
	struct fi_av_attr av_attr = {};
	u16 i, count;
	int ret;

	f->can_write = true;
	ret = kb_find(select, read | FI_WRITE | FI_REMOTE_WRITE, &f->info);
	if (ret == -ENODATA) {
		f->can_write = false;
		ret = kb_find(select, read, &f->info);
	}
	if (ret)
		return ret;
	f->can_imm = f->can_write &&
		     f->info->domain_attr->cq_data_size >= sizeof(u32);
	count = min3(num_online_cpus(), KB_QUEUES_MAX,
		     (unsigned int)max(f->info->domain_attr->cq_cnt, 1UL));
	f->queues = kcalloc(count, sizeof(*f->queues), GFP_KERNEL);
	if (!f->queues)
		return -ENOMEM;
	ret = fi_fabric(f->info->fabric_attr, &f->fabric, NULL) ?:
	      fi_eq_open(f->fabric, &eq_attr, &f->eq, NULL) ?:
	      fi_domain(f->fabric, f->info, &f->domain, NULL) ?:
	      fi_av_open(f->domain, &av_attr, &f->av, NULL);
	for (i = 0; i < count && !ret; i++) {
		kb_queue_init(f, i);
		f->nqueues++;
		ret = kb_queue_open(f, &f->queues[i], i);
	}
	if (ret)
		return ret;
	f->max_msg = kb_option(f, FI_OPT_MAX_MSG_SIZE);
	f->max_rma = kb_option(f, FI_OPT_MAX_RMA_SIZE);
	for (i = 0; i < count; i++) {
		f->queues[i].recv_len = min(f->role->recv_len, f->max_msg);
		f->queues[i].up = true;
	}
	/* Last, because from here on a removal closes the endpoints. */
	return fi_domain_bind(f->domain, &f->eq->fid, 0);
}

static struct kb_fabric *kb_fabric_new(const struct kb_role *role,
				       const struct kb_select *select)
{
	struct kb_fabric *f = kzalloc(sizeof(*f), GFP_KERNEL);
	int ret;

	if (!f)
		return ERR_PTR(-ENOMEM);
	f->role = role;
	f->refs = 1;
	INIT_WORK(&f->gone_work, kb_gone);
	mutex_init(&f->down_lock);
	if (select->owner)
		f->owner = kstrdup(select->owner, GFP_KERNEL);
	ret = select->owner && !f->owner ? -ENOMEM : kb_fabric_open(f, select);
	if (ret) {
		kb_fabric_close(f);
		return ERR_PTR(kb_errno(ret));
	}
	pr_info("%s uses %s of %s, %u queues%s%s\n", role->name,
		f->info->domain_attr->name, f->info->fabric_attr->name,
		f->nqueues, f->can_write ? "" : ", without RDMA write",
		f->owner ? ", in a domain for one peer" : "");
	list_add(&f->list, &kb_fabrics);
	return f;
}

static bool kb_is(const char *wanted, const char *name)
{
	return !wanted || !strcasecmp(wanted, name);
}

static bool kb_owned_by(const struct kb_fabric *f, const char *owner)
{
	return f->owner && owner ? !strcmp(f->owner, owner) : !f->owner && !owner;
}

struct kb_fabric *kb_fabric_get(const struct kb_role *role,
				const struct kb_select *select)
{
	unsigned int noio = memalloc_noio_save();
	struct kb_fabric *f;

	mutex_lock(&kb_fabrics_lock);
	list_for_each_entry(f, &kb_fabrics, list)
		if (f->role == role && !READ_ONCE(f->gone) &&
		    kb_owned_by(f, select->owner) &&
		    kb_is(select->prov, f->info->fabric_attr->prov_name) &&
		    kb_is(select->fabric, f->info->fabric_attr->name) &&
		    kb_is(select->domain, f->info->domain_attr->name)) {
			f->refs++;
			goto out;
		}
	f = kb_fabric_new(role, select);
out:
	mutex_unlock(&kb_fabrics_lock);
	memalloc_noio_restore(noio);
	return f;
}
EXPORT_SYMBOL_NS_GPL(kb_fabric_get, KOFIBLK);

void kb_fabric_put(struct kb_fabric *f)
{
	unsigned int noio = memalloc_noio_save();
	bool last;

	mutex_lock(&kb_fabrics_lock);
	last = !--f->refs;
	if (last)
		list_del(&f->list);
	mutex_unlock(&kb_fabrics_lock);
	if (last)
		kb_fabric_close(f);
	memalloc_noio_restore(noio);
}
EXPORT_SYMBOL_NS_GPL(kb_fabric_put, KOFIBLK);

static int __init kb_common_init(void)
{
	kb_wq = alloc_workqueue("kofiblk", WQ_MEM_RECLAIM | COMPAT_WQ_PERCPU, 0);
	return kb_wq ? 0 : -ENOMEM;
}
module_init(kb_common_init);

static void __exit kb_common_exit(void)
{
	destroy_workqueue(kb_wq);
}
module_exit(kb_common_exit);
