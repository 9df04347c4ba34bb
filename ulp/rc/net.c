// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Datagrams over a fabric of kOFI: see net.h. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <kofi/endpoint.h>
#include "net.h"

#define KRC_QUEUE_BUFS	256	/* datagrams to send, for each queue */

unsigned int krc_datagram = 4608;
unsigned int krc_max_queues = 8;
char *krc_fabric = "efa-direct";

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

/**
 * krc_net_setup() - set the limits of devices
 *
 * Context: Before the first device is opened.
 */
void __init krc_net_setup(void)
{
	krc_role.recv_len = krc_datagram;
	krc_role.max_queues = krc_max_queues;
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
 * All datagrams end, and krc_link_gone() is called.
 * Context: Process or softirq.
 */
void krc_net_lost(struct krc_queue *q)
{
	pr_warn("kofi_rc: a datagram doesn't end, so %s is reopened\n",
		q->kulp->fabric->info->domain_attr->name);
	kulp_fabric_lost(q->kulp->fabric);
}

/* The caller has closed the device, so all datagrams have ended. */
static void krc_queue_fini(struct krc_queue *q)
{
	struct krc_buf *buf, *next;

	cancel_work_sync(&q->work);
	list_for_each_entry_safe(buf, next, &q->free, list)
		kfree(buf);
}

static void krc_net_free(struct krc_net *net)
{
	u32 i;

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
		net->nqueues++;
		ret = krc_bufs_alloc(&net->queues[i]);
	}
	if (ret)
		return ret;
	/* Nothing arrives yet, because there are no receives. */
	for (i = 0; i < net->nqueues; i++)
		WRITE_ONCE(f->queues[i].context, &net->queues[i]);
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
