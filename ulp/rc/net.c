// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Datagrams, transfers and grants over a fabric of kOFI: see net.h. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <kofi/domain.h>
#include <kofi/endpoint.h>
#include "net.h"

#define KRC_QUEUE_BUFS	256	/* datagrams to send, for each queue */
#define KRC_RMAS_MIN	32	/* slots for transfers of a device with few */
#define KRC_DIRECT	"efa-direct"

unsigned int krc_datagram = 4608;
unsigned int krc_max_queues = 8;
bool krc_rma = true;
bool krc_softirq_initiators = true;
char *krc_fabric = KRC_DIRECT;

static void krc_received(struct kulp_queue *kq, void *buf, size_t len)
{
	krc_message(kq->context, buf, len);
}

static void krc_drained(struct kulp_queue *kq)
{
	struct krc_queue *q = READ_ONCE(kq->context);

	if (q)
		krc_queue_run(q);
}

static void krc_fabric_gone(struct kulp_fabric *f)
{
	struct krc_queue *q = READ_ONCE(f->queues[0].context);

	if (q)
		krc_link_gone(q->net->link);
}

static struct kulp_role krc_role __ro_after_init = {
	.name		= "kofi_rc",
	.messages_only	= true,
	.received	= krc_received,
	.drained	= krc_drained,
	.gone		= krc_fabric_gone,
};

/*
 * The engine works in any context but hard IRQ. Initiators complete requests in softirqs. Targets
 * have ib_core wake a worker, which costs nothing more if the caller is a worker, too.
 */
static void krc_role_limit(struct kulp_role *role)
{
	role->recv_len = krc_datagram;
	role->max_queues = krc_max_queues;
	role->rma = krc_rma;
	/* Workers serve the other fabric's endpoints anyhow. */
	role->softirq_too = krc_softirq_initiators && !strcmp(krc_fabric, KRC_DIRECT);
}

/**
 * krc_net_setup() - set the limits of devices
 *
 * Context: Before the first device is opened.
 */
void __init krc_net_setup(void)
{
	krc_role_limit(&krc_role);
}

static void krc_bvec_set(struct bio_vec *bvec, void *mem, u32 len)
{
	bvec->bv_page = virt_to_page(mem);
	bvec->bv_offset = offset_in_page(mem);
	bvec->bv_len = len;
}

static int krc_buf_post(struct kulp_queue *kq, struct kulp_op *op)
{
	struct krc_buf *buf = container_of(op, struct krc_buf, op);
	struct fi_msg msg = { .addr = buf->conn->peer, .context = op };

	if (!buf->piece_len)
		return fi_send(kq->ep, buf->head, buf->head_len, NULL, buf->conn->peer, op);
	krc_bvec_set(&buf->bvec[0], buf->head, buf->head_len);
	krc_bvec_set(&buf->bvec[1], buf->piece, buf->piece_len);
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, buf->bvec, ARRAY_SIZE(buf->bvec),
		      buf->head_len + buf->piece_len);
	return fi_sendmsg(kq->ep, &msg, FI_COMPLETION);
}

static void krc_buf_done(struct kulp_queue *kq, struct kulp_op *op, int err, size_t len)
{
	krc_sent(container_of(op, struct krc_buf, op), err);
}

/**
 * krc_net_send() - send a datagram
 * @buf: the datagram, for which krc_sent() follows
 *
 * Context: Process or softirq.
 */
void krc_net_send(struct krc_buf *buf)
{
	kulp_submit(buf->queue->kulp, &buf->op);
}

/**
 * krc_net_lost() - give up a device
 * @q: one of its queues
 *
 * All datagrams and transfers end, and krc_link_gone() is called.
 * Context: Process or softirq.
 */
void krc_net_lost(struct krc_queue *q)
{
	pr_warn("kofi_rc: an operation doesn't end, so %s is reopened\n",
		q->kulp->fabric->info->domain_attr->name);
	kulp_fabric_lost(q->kulp->fabric);
}

/* --- transfers by the device --- */

static void krc_transferred(struct kulp_queue *kq, struct kulp_op *op, int err, size_t len)
{
	krc_rma_done(container_of(op, struct krc_swr, rma.op), err);
}

/*
 * Describe local memory by bio_vecs, which take the place of its pieces. Return: the number of
 * bio_vecs.
 */
static u32 krc_rma_bvecs(struct krc_swr *w)
{
	struct bio_vec *bvecs = (struct bio_vec *)w->sge;
	const struct krc_sge *sge;
	u32 n = 0;

	static_assert(sizeof(struct bio_vec) == sizeof(struct krc_sge));
	for (sge = w->sge; sge < w->sge + w->nsge; sge++)
		if (sge->len)
			krc_bvec_set(&bvecs[n++], (void *)(uintptr_t)sge->addr, sge->len);
	return n;
}

/**
 * krc_net_rma() - have the device write or read
 * @w: the WRITE or READ, with krc_swr.rma.iov, for which krc_rma_done() follows
 *
 * Context: Process or softirq.
 */
void krc_net_rma(struct krc_swr *w)
{
	struct krc_conn *c = w->conn;
	u32 n = krc_rma_bvecs(w);

	w->rma.op.lane = KULP_LANE_SEND;
	w->rma.op.done = krc_transferred;
	w->rma.peer = c->peer;
	w->rma.has_imm = false;
	iov_iter_bvec(&w->rma.iter, w->op == KRC_OP_READ ? ITER_DEST : ITER_SOURCE,
		      (struct bio_vec *)w->sge, n, w->total);
	kulp_rma_submit(c->queue->kulp, &w->rma);
}

/* --- grants --- */

static u64 krc_grant_access(u32 access)
{
	return (access & KRC_ACCESS_REMOTE_READ ? FI_REMOTE_READ : 0) |
	       (access & KRC_ACCESS_REMOTE_WRITE ? FI_REMOTE_WRITE : 0);
}

/* The region keeps its pages until the grant is over. */
static int krc_grant_register(struct krc_queue *q, struct krc_grant *g)
{
	const struct krc_mr *mr = g->mr;
	const u64 *pages = mr->pages;
	u32 size = 1U << mr->map.shift, first = mr->map.iova & (size - 1), npages = mr->npages;
	u32 len, n;
	u64 left = mr->map.length;
	struct fi_mr_attr attr = {
		.type		= FI_MR_BVEC,
		.access		= krc_grant_access(g->access),
		.context	= &g->op,
	};
	int ret;

	/* The peer won't be told of it any more. */
	if (READ_ONCE(mr->state) != KRC_MR_VALID)
		return -ECANCELED;
	spin_lock_bh(&q->bvecs_lock);
	for (n = 0; left && n < npages; n++, left -= len, first = 0) {
		len = min_t(u64, left, size - first);
		krc_bvec_set(&q->bvecs[n], (void *)(uintptr_t)(pages[n] + first), len);
	}
	attr.bvec = q->bvecs;
	attr.iov_count = n;
	ret = fi_mr_post_reg(g->fid, &attr, FI_COMPLETION);
	spin_unlock_bh(&q->bvecs_lock);
	return ret;
}

static int krc_grant_post(struct kulp_queue *kq, struct kulp_op *op)
{
	struct krc_grant *g = container_of(op, struct krc_grant, op);

	if (READ_ONCE(g->state) == KRC_GRANT_REGISTERING)
		return krc_grant_register(g->queue, g);
	return fi_mr_post_inval(g->fid, FI_COMPLETION, op);
}

static void krc_grant_done(struct kulp_queue *kq, struct kulp_op *op, int err, size_t len)
{
	struct krc_grant *g = container_of(op, struct krc_grant, op);
	size_t keylen = sizeof(g->key);

	if (READ_ONCE(g->state) != KRC_GRANT_REGISTERING) {
		krc_grant_revoked(g, err);
		return;
	}
	if (!err)
		fi_mr_raw_attr(g->fid, &g->base, (u8 *)&g->key, &keylen, 0);
	krc_granted(g, err);
}

/**
 * krc_net_grant() - have the device register or invalidate
 * @g: the grant, whose state tells; krc_granted() or krc_grant_revoked() follows
 *
 * Context: Process or softirq.
 */
void krc_net_grant(struct krc_grant *g)
{
	g->op.lane = READ_ONCE(g->state) == KRC_GRANT_REGISTERING ? KULP_LANE_REG :
								     KULP_LANE_INVAL;
	kulp_submit(g->queue->kulp, &g->op);
}

/**
 * krc_net_open_grant() - get a region of the device for a new grant
 * @g: the grant
 *
 * Context: Process, sleeps.
 * Return: 0 or a negative errno.
 */
int krc_net_open_grant(struct krc_grant *g)
{
	const struct krc_queue *q = g->queue;
	struct kulp_queue *kq = q->kulp;
	const struct fi_mr_alloc_attr attr = {
		.max_pages = KRC_MR_PAGES,
		.access = (q->can_read ? FI_REMOTE_READ : 0) | (q->can_write ? FI_REMOTE_WRITE : 0),
		.cq = kq->cq, .ep = kq->ep, .flags = FI_RETIRE,
	};

	g->op.post = krc_grant_post;
	g->op.done = krc_grant_done;
	return fi_mr_alloc(kq->fabric->domain, &attr, &g->fid, NULL);
}

/**
 * krc_net_gone() - check whether the device of a grant was removed
 * @g: the grant
 *
 * Context: Any.
 * Return: true or false.
 */
bool krc_net_gone(const struct krc_grant *g)
{
	return READ_ONCE(g->fid->fid.dead);
}

/**
 * krc_net_close() - close a region of the device, whose keys are never valid again
 * @g: the grant, without a request of the device
 *
 * Context: Process, sleeps.
 * Return: 0; -EIO, once, if the peer may reach the region until the device is reset; or another
 * negative errno. With an error the region stays.
 */
int krc_net_close(struct krc_grant *g)
{
	return fi_close(&g->fid->fid);
}

/**
 * krc_net_stuck() - tell that a device may still reach memory
 * @q: one of its queues
 *
 * Context: Process.
 */
void krc_net_stuck(struct krc_queue *q)
{
	pr_err_ratelimited("kofi_rc: %s doesn't revoke a peer's access to memory, whose user waits: reset it\n",
			   q->kulp->fabric->info->domain_attr->name);
}

/* The caller has closed the device, so all datagrams have ended. */
static void krc_queue_fini(struct krc_queue *q)
{
	struct krc_buf *buf, *next;

	cancel_work_sync(&q->work);
	list_for_each_entry_safe(buf, next, &q->free, list)
		kfree(buf);
	kfree(q->bvecs);
}

static void krc_net_free(struct krc_net *net)
{
	u32 i;

	/* There are no connections, so no grant has memory. */
	for (i = 0; i < net->nqueues; i++)
		krc_grants_fini(&net->queues[i]);
	if (!IS_ERR_OR_NULL(net->fabric))
		kulp_fabric_put(net->fabric);
	for (i = 0; i < net->nqueues; i++)
		krc_queue_fini(&net->queues[i]);
	kfree(net->queues);
	kfree(net);
}

/**
 * krc_net_put() - drop a reference to a device
 * @net: the device, or NULL
 *
 * Context: Process, sleeps.
 */
void krc_net_put(struct krc_net *net)
{
	if (net && refcount_dec_and_test(&net->refs))
		krc_net_free(net);
}

/* Each datagram is an allocation of its own, so that its header is within a page. */
static int krc_bufs_alloc(struct krc_queue *q)
{
	int node = q->kulp->fabric->info->domain_attr->numa_node;
	struct krc_buf *buf;
	u32 i;

	q->bvecs = kmalloc_array_node(KRC_MR_PAGES, sizeof(*q->bvecs), GFP_KERNEL, node);
	if (!q->bvecs)
		return -ENOMEM;

	for (i = 0; i < KRC_QUEUE_BUFS; i++) {
		buf = kzalloc_node(sizeof(*buf), GFP_KERNEL, node);
		if (!buf)
			return -ENOMEM;
		buf->queue = q;
		buf->op.lane = KULP_LANE_SEND;
		buf->op.post = krc_buf_post;
		buf->op.done = krc_buf_done;
		list_add_tail(&buf->list, &q->free);
		q->nfree++;
	}
	return 0;
}

/*
 * Slots for transfers. A datagram has one, and so has a grant that is being registered or
 * invalidated: these always find one, if the device has as many.
 */
static u32 krc_slots_for_rma(const struct fi_info *info)
{
	const size_t others = KRC_QUEUE_BUFS + KRC_GRANTS_MAX;

	return max(info->tx_attr->size, others + KRC_RMAS_MIN) - others;
}

static int krc_net_init(struct krc_net *net)
{
	struct kulp_fabric *f = net->fabric;
	u32 i;
	int ret = 0;

	net->queues = kcalloc(f->nqueues, sizeof(*net->queues), GFP_KERNEL);
	if (!net->queues)
		return -ENOMEM;
	for (i = 0; i < f->nqueues && !ret; i++) {
		krc_queue_init(&net->queues[i]);
		net->queues[i].net = net;
		net->queues[i].kulp = &f->queues[i];
		net->queues[i].can_write = f->can_write;
		net->queues[i].can_read = f->can_read;
		net->queues[i].max_rma = f->max_rma;
		net->queues[i].rma_slots = krc_slots_for_rma(f->info);
		net->nqueues++;
		ret = krc_bufs_alloc(&net->queues[i]);
	}
	if (ret)
		return ret;
	/* Nothing arrives yet, because there are no receives. */
	for (i = 0; i < net->nqueues; i++)
		/* But krc_fabric_gone() may come, which dereferences what it finds. */
		smp_store_release(&f->queues[i].context, &net->queues[i]);
	/*
	 * From here on krc_fabric_gone() finds the link. kulp_fabric.gone was set before it looked:
	 * without the barrier, either could miss what the other has written.
	 */
	smp_mb();
	return READ_ONCE(f->gone) ? -ENODEV : 0;
}

/**
 * krc_net_open() - open a device
 * @link: the link, for krc_link_gone()
 * @owner: the link's name
 * @domain: name of the domain, or NULL for any
 *
 * Context: Process, sleeps.
 * Return: the device, with a reference; or an error pointer.
 */
struct krc_net *krc_net_open(struct krc_link *link, const char *owner, char *domain)
{
	const struct kulp_select select = {
		.fabric = krc_fabric, .domain = domain, .owner = owner,
	};
	struct krc_net *net = kzalloc(sizeof(*net), GFP_KERNEL);
	int ret;

	if (!net)
		return ERR_PTR(-ENOMEM);
	refcount_set(&net->refs, 1);
	net->link = link;
	net->fabric = kulp_fabric_get(&krc_role, &select);
	ret = IS_ERR(net->fabric) ? PTR_ERR(net->fabric) : krc_net_init(net);
	if (!ret)
		return net;
	krc_net_free(net);
	return ERR_PTR(ret);
}
