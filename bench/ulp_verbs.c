// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A minimal ULP on kernel verbs without kOFI: it maps memory, posts, polls completions,
 * unmaps, and passes completions on. On EFA it is the baseline for kOFI, on rxe the
 * alternative.
 *
 * Operations embed their work requests, and there are no slots, limits or removal.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include "../compat/bh.h"
#include "verbs.h"

MODULE_DESCRIPTION("Benchmarks of kOFI: a ULP on kernel verbs");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI_BENCH);

#define KBV_INLINE	32

/**
 * struct kbv_op - an operation
 * @op: the harness' part
 * @dma: DMA address of the mapped memory
 * @len: length of the mapped memory in bytes, or 0
 * @dir: direction of the mapping
 * @mr: region to register with
 * @sg: memory for @mr
 * @list: the same memory in single pages, last page first; or NULL
 * @inval: the region is being invalidated
 */
struct kbv_op {
	struct kb_op		op;
	u64			dma;
	u32			len;
	enum dma_data_direction	dir;
	struct ib_mr		*mr;
	struct scatterlist	sg;
	struct scatterlist	*list;
	bool			inval;
};

/**
 * struct kbv_end - an end
 * @end: the harness' part
 * @q: the queue pair
 * @more: other queue pairs, which are idle
 * @event: there may be completions
 * @wait: wait queue for @event
 * @work: polls completions
 * @bh: runs @work in a softirq instead
 * @wcs: buffer for completions
 * @ops: operations
 */
struct kbv_end {
	struct kb_end		end;
	struct kb_qp		q;
	struct kb_qp		*more;
	bool			event;
	wait_queue_head_t	wait;
	struct work_struct	work;
	struct compat_bh	bh;
	struct ib_wc		wcs[KB_POLL];
	struct kbv_op		ops[KB_MAX_BATCH];
};

static struct workqueue_struct *kbv_wq;

static struct kbv_end *to_kbv(struct kb_end *end)
{
	return container_of(end, struct kbv_end, end);
}

/* --- completions --- */

/* Pass a completion to its operation. */
static void kbv_done(struct kb_op *op, int err)
{
	op->end->failed += !!err;
	WRITE_ONCE(op->end->done, op->end->done + 1);
}

static u32 kbv_pages(const struct kbv_end *kbv)
{
	return kbv->end.test->size / PAGE_SIZE;
}

static void kbv_complete(struct kbv_end *kbv, const struct ib_wc *wc)
{
	struct kbv_op *op = (void *)(uintptr_t)wc->wr_id;

	if (op->len)
		ib_dma_unmap_single(kbv->q.dev, op->dma, op->len, op->dir);
	else if (op->inval && unlikely(op->list))
		ib_dma_unmap_sg(kbv->q.dev, op->list, kbv_pages(kbv), DMA_BIDIRECTIONAL);
	else if (op->inval)
		ib_dma_unmap_sg(kbv->q.dev, &op->sg, 1, DMA_BIDIRECTIONAL);
	op->op.done(&op->op, wc->status);
}

static int kbv_take(struct kbv_end *kbv)
{
	int i, n;

	local_bh_disable();
	n = ib_poll_cq(kbv->q.cq, KB_POLL, kbv->wcs);
	local_bh_enable();
	for (i = 0; i < n; i++)
		kbv_complete(kbv, &kbv->wcs[i]);
	return n;
}

static int kbv_arm(struct kbv_end *kbv)
{
	int ret;

	local_bh_disable();
	ret = ib_req_notify_cq(kbv->q.cq, IB_CQ_NEXT_COMP |
					  IB_CQ_REPORT_MISSED_EVENTS);
	local_bh_enable();
	return ret;
}

/* Poll until the queue is empty and armed for the next completion. */
static void kbv_take_all(struct kbv_end *kbv)
{
	do {
		while (kbv_take(kbv) == KB_POLL)
			;
	} while (kbv_arm(kbv) > 0);
}

static void kbv_work(struct work_struct *work)
{
	kbv_take_all(container_of(work, struct kbv_end, work));
}

static void kbv_event(struct ib_cq *cq, void *context)
{
	struct kbv_end *kbv = context;

	if (kbv->end.test->mode == KB_HANDLER) {
		queue_work(kbv_wq, &kbv->work);
		return;
	}
	if (kbv->end.test->mode == KB_SOFTIRQ) {
		compat_bh_queue(&kbv->bh);
		return;
	}
	WRITE_ONCE(kbv->event, true);
	wake_up(&kbv->wait);
}

static int kbv_poll(struct kb_end *end)
{
	int n = kbv_take(to_kbv(end));

	return n < 0 ? n : 0;
}

static int kbv_sleep(struct kb_end *end)
{
	struct kbv_end *kbv = to_kbv(end);

	wait_event(kbv->wait, READ_ONCE(kbv->event));
	WRITE_ONCE(kbv->event, false);
	kbv_take_all(kbv);
	return 0;
}

/* --- posting --- */

static int kbv_map(struct kbv_end *kbv, struct kbv_op *op,
		   enum dma_data_direction dir)
{
	op->len = kbv->end.test->size;
	op->dir = dir;
	if (!op->len)
		return 0;
	op->dma = ib_dma_map_single(kbv->q.dev, op->op.buf, op->len, dir);
	return ib_dma_mapping_error(kbv->q.dev, op->dma) ? -EAGAIN : 0;
}

static int kbv_post(struct kbv_end *kbv, const struct ib_send_wr *wr)
{
	int ret;

	local_bh_disable();
	ret = ib_post_send(kbv->q.qp, wr, NULL);
	local_bh_enable();
	return ret;
}

/* Set the SGE of a send, read or write: mapped memory, or inline data. */
static int kbv_sge(struct kbv_end *kbv, struct kbv_op *op,
		   struct ib_send_wr *wr, struct ib_sge *sge,
		   enum dma_data_direction dir)
{
	u32 size = kbv->end.test->size;

	wr->wr_id = (uintptr_t)op;
	wr->sg_list = sge;
	wr->num_sge = 1;
	wr->send_flags = IB_SEND_SIGNALED;
	sge->length = size;
	if (wr->opcode == IB_WR_SEND && size && size <= KBV_INLINE) {
		wr->send_flags |= IB_SEND_INLINE;
		sge->addr = (uintptr_t)op->op.buf;
		op->len = 0;
		return 0;
	}
	sge->lkey = kbv->q.pd->local_dma_lkey;
	if (kbv_map(kbv, op, dir))
		return -EAGAIN;
	sge->addr = op->dma;
	return 0;
}

static int kbv_post_send(struct kbv_end *kbv, struct kbv_op *op)
{
	struct ib_srd_wr wr = { .wr.opcode = IB_WR_SEND };
	struct ib_sge sge = { };

	if (kbv_sge(kbv, op, &wr.wr, &sge, DMA_TO_DEVICE))
		return -EAGAIN;
	wr.ah = kbv->q.ah;
	wr.remote_qpn = kbv->end.peer.qpn;
	wr.remote_qkey = kbv->end.peer.qkey;
	return kbv_post(kbv, &wr.wr);
}

static int kbv_post_srd_rdma(struct kbv_end *kbv, struct kbv_op *op,
			     enum ib_wr_opcode opcode,
			     enum dma_data_direction dir)
{
	struct ib_srd_rdma_wr wr = { .wr.wr.opcode = opcode };
	struct ib_sge sge = { };

	if (kbv_sge(kbv, op, &wr.wr.wr, &sge, dir))
		return -EAGAIN;
	wr.wr.ah = kbv->q.ah;
	wr.wr.remote_qpn = kbv->end.peer.qpn;
	wr.wr.remote_qkey = kbv->end.peer.qkey;
	wr.remote_addr = kbv->end.peer.addr;
	wr.rkey = kbv->end.peer.rkey;
	return kbv_post(kbv, &wr.wr.wr);
}

static int kbv_post_rc_rdma(struct kbv_end *kbv, struct kbv_op *op,
			    enum ib_wr_opcode opcode,
			    enum dma_data_direction dir)
{
	struct ib_rdma_wr wr = { .wr.opcode = opcode };
	struct ib_sge sge = { };

	if (kbv_sge(kbv, op, &wr.wr, &sge, dir))
		return -EAGAIN;
	wr.remote_addr = kbv->end.peer.addr;
	wr.rkey = kbv->end.peer.rkey;
	return kbv_post(kbv, &wr.wr);
}

static int kbv_post_rdma(struct kbv_end *kbv, struct kbv_op *op,
			 enum ib_wr_opcode opcode, enum dma_data_direction dir)
{
	return kbv->q.srd ? kbv_post_srd_rdma(kbv, op, opcode, dir) :
			    kbv_post_rc_rdma(kbv, op, opcode, dir);
}

static int kbv_post_recv(struct kbv_end *kbv, struct kbv_op *op)
{
	struct ib_sge sge = { };
	struct ib_recv_wr wr = {
		.wr_id = (uintptr_t)op,
		.sg_list = &sge,
		.num_sge = 1,
	};
	int ret;

	if (kbv_map(kbv, op, DMA_FROM_DEVICE))
		return -EAGAIN;
	sge.addr = op->dma;
	sge.length = op->len;
	sge.lkey = kbv->q.pd->local_dma_lkey;
	local_bh_disable();
	ret = ib_post_recv(kbv->q.qp, &wr, NULL);
	local_bh_enable();
	return ret;
}

/* Map and describe memory in one piece. */
static int kbv_describe(struct kbv_end *kbv, struct kbv_op *op)
{
	sg_init_one(&op->sg, op->op.buf, kbv->end.test->size);
	if (ib_dma_map_sg(kbv->q.dev, &op->sg, 1, DMA_BIDIRECTIONAL) != 1)
		return -EAGAIN;
	return ib_map_mr_sg(op->mr, &op->sg, 1, NULL, PAGE_SIZE) == 1 ? 0 : -EINVAL;
}

static int kbv_describe_pages(struct kbv_end *kbv, struct kbv_op *op)
{
	u32 i, n = kbv_pages(kbv);

	for (i = 0; i < n; i++)
		sg_set_page(&op->list[i], virt_to_page(op->op.buf + (n - 1 - i) * PAGE_SIZE),
			    PAGE_SIZE, 0);
	if (ib_dma_map_sg(kbv->q.dev, op->list, n, DMA_BIDIRECTIONAL) != n)
		return -EAGAIN;
	return ib_map_mr_sg(op->mr, op->list, n, NULL, PAGE_SIZE) == n ? 0 : -EINVAL;
}

static int kbv_post_reg(struct kbv_end *kbv, struct kbv_op *op)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.wr.send_flags = IB_SEND_SIGNALED,
		.wr.wr_id = (uintptr_t)op,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
			  IB_ACCESS_REMOTE_READ,
		.mr = op->mr,
	};
	int ret;

	ret = op->list ? kbv_describe_pages(kbv, op) : kbv_describe(kbv, op);
	if (ret)
		return ret;
	efa_inc_fast_reg_key_gen(op->mr);
	wr.key = op->mr->rkey;
	op->len = 0;
	op->inval = false;
	return kbv_post(kbv, &wr.wr);
}

static int kbv_post_inv(struct kbv_end *kbv, struct kbv_op *op)
{
	struct ib_send_wr wr = {
		.opcode = IB_WR_LOCAL_INV,
		.send_flags = IB_SEND_SIGNALED,
		.wr_id = (uintptr_t)op,
		.ex.invalidate_rkey = op->mr->lkey,
	};

	op->len = 0;
	op->inval = true;
	return kbv_post(kbv, &wr);
}

static int kbv_post_kind(struct kbv_end *kbv, enum kb_kind kind)
{
	u32 i, n = kbv->end.test->batch;
	int ret = 0;

	switch (kind) {
	case KB_SEND:
	case KB_INJECT:
		for (i = 0; i < n && !ret; i++)
			ret = kbv_post_send(kbv, &kbv->ops[i]);
		return ret;
	case KB_RECV:
		for (i = 0; i < n && !ret; i++)
			ret = kbv_post_recv(kbv, &kbv->ops[i]);
		return ret;
	case KB_WRITE:
		for (i = 0; i < n && !ret; i++)
			ret = kbv_post_rdma(kbv, &kbv->ops[i],
					    IB_WR_RDMA_WRITE, DMA_TO_DEVICE);
		return ret;
	case KB_READ:
		for (i = 0; i < n && !ret; i++)
			ret = kbv_post_rdma(kbv, &kbv->ops[i],
					    IB_WR_RDMA_READ, DMA_FROM_DEVICE);
		return ret;
	case KB_REG:
		for (i = 0; i < n && !ret; i++)
			ret = kbv_post_reg(kbv, &kbv->ops[i]);
		return ret;
	case KB_INV:
		for (i = 0; i < n && !ret; i++)
			ret = kbv_post_inv(kbv, &kbv->ops[i]);
		return ret;
	default:
		return -EOPNOTSUPP;
	}
}

static int kbv_post_batch(struct kb_end *end)
{
	return kbv_post_kind(to_kbv(end), end->test->kind);
}

static int kbv_post_undo(struct kb_end *end)
{
	return kbv_post_kind(to_kbv(end),
			     end->test->kind == KB_REG ? KB_INV : KB_REG);
}

/* --- setting up; nothing of this is counted --- */

static bool kbv_registers(const struct kb_test *test)
{
	return test->kind == KB_REG || test->kind == KB_INV;
}

static int kbv_open_op(struct kbv_end *kbv, struct kbv_op *op,
		       const struct kb_test *test)
{
	size_t size = PAGE_ALIGN(max(test->size, 1U));

	op->op.end = &kbv->end;
	op->op.done = kbv_done;
	op->op.buf = alloc_pages_exact(size, GFP_KERNEL | __GFP_ZERO);
	if (!op->op.buf)
		return -ENOMEM;
	if (!kbv_registers(test))
		return 0;
	if (test->scattered) {
		op->list = kcalloc(size / PAGE_SIZE, sizeof(*op->list), GFP_KERNEL);
		if (!op->list)
			return -ENOMEM;
		sg_init_table(op->list, size / PAGE_SIZE);
	}
	op->mr = ib_alloc_mr(kbv->q.pd, IB_MR_TYPE_MEM_REG, size / PAGE_SIZE);
	return PTR_ERR_OR_ZERO(op->mr);
}

static void kbv_close_op(struct kbv_op *op, const struct kb_test *test)
{
	if (!IS_ERR_OR_NULL(op->mr))
		ib_dereg_mr(op->mr);
	kfree(op->list);
	if (op->op.buf)
		free_pages_exact(op->op.buf, PAGE_ALIGN(max(test->size, 1U)));
}

static int kbv_open_more(struct kbv_end *kbv, const struct kb_test *test)
{
	int ret = 0;
	u32 i;

	if (!test->eps)
		return 0;
	kbv->more = kcalloc(test->eps, sizeof(*kbv->more), GFP_KERNEL);
	if (!kbv->more)
		return -ENOMEM;
	for (i = 0; i < test->eps && !ret; i++)
		ret = kb_qp_open(&kbv->more[i], test->device, KB_DEPTH,
				 kbv_event, kbv);
	return ret;
}

static int kbv_open_all(struct kbv_end *kbv, const struct kb_test *test)
{
	u32 i;
	int ret;

	ret = kb_qp_open(&kbv->q, test->device, KB_DEPTH, kbv_event, kbv) ?:
	      kbv_open_more(kbv, test);
	for (i = 0; i < test->batch && !ret; i++)
		ret = kbv_open_op(kbv, &kbv->ops[i], test);
	return ret;
}

static void kbv_close(struct kb_end *end)
{
	struct kbv_end *kbv = to_kbv(end);
	const struct kb_test *test = end->test;
	u32 i;

	if (!IS_ERR_OR_NULL(kbv->q.qp)) {
		ib_destroy_qp(kbv->q.qp);
		kbv->q.qp = NULL;
	}
	for (i = 0; i < test->batch; i++)
		kbv_close_op(&kbv->ops[i], test);
	for (i = 0; kbv->more && i < test->eps; i++)
		kb_qp_close(&kbv->more[i]);
	kfree(kbv->more);
	kb_qp_close(&kbv->q);
	cancel_work_sync(&kbv->work);
	compat_bh_cancel_sync(&kbv->bh);
	kfree(kbv);
}

static struct kb_end *kbv_open(const struct kb_test *test)
{
	struct kbv_end *kbv = kzalloc(sizeof(*kbv), GFP_KERNEL);
	int ret;

	if (!kbv)
		return ERR_PTR(-ENOMEM);
	kbv->end.test = test;
	init_waitqueue_head(&kbv->wait);
	INIT_WORK(&kbv->work, kbv_work);
	compat_bh_init(&kbv->bh, &kbv->work);
	ret = kbv_open_all(kbv, test);
	if (ret) {
		kbv_close(&kbv->end);
		return ERR_PTR(ret);
	}
	kb_qp_addr(&kbv->q, &kbv->end.addr);
	return &kbv->end;
}

static int kbv_connect(struct kb_end *end)
{
	struct kbv_end *kbv = to_kbv(end);
	int ret;

	ret = kb_qp_connect(&kbv->q, &end->peer);
	if (!ret && end->test->mode != KB_POLLED)
		ret = kbv_arm(kbv);
	return ret < 0 ? ret : 0;
}

/* Measure the memory of a queue pair, for driver and device together. */
static int kbv_memory_qps(const struct kb_test *test, u32 depth)
{
	struct kb_qp *qps;
	s64 before;
	int ret = 0;
	u32 i;

	qps = kcalloc(KB_OBJECTS, sizeof(*qps), GFP_KERNEL);
	if (!qps)
		return -ENOMEM;
	before = kb_memory_used();
	for (i = 0; i < KB_OBJECTS && !ret; i++)
		ret = kb_qp_open(&qps[i], test->device, depth, NULL, NULL);
	if (!ret)
		kb_printf("memory qp%u %lld\n", depth,
			  (kb_memory_used() - before) / KB_OBJECTS);
	for (i = 0; i < KB_OBJECTS; i++)
		kb_qp_close(&qps[i]);
	kfree(qps);
	return ret;
}

static int kbv_memory(const struct kb_test *test)
{
	return kbv_memory_qps(test, KB_DEEP) ?:
	       kbv_memory_qps(test, KB_SHALLOW);
}

static struct kb_ulp kbv_ulp = {
	.name		= "verbs",
	.open		= kbv_open,
	.connect	= kbv_connect,
	.close		= kbv_close,
	.post		= kbv_post_batch,
	.post_undo	= kbv_post_undo,
	.poll		= kbv_poll,
	.sleep		= kbv_sleep,
	.memory		= kbv_memory,
};

static int __init kbv_init(void)
{
	kbv_wq = alloc_workqueue("kofi_bench", WQ_MEM_RECLAIM | COMPAT_WQ_PERCPU, 0);
	if (!kbv_wq)
		return -ENOMEM;
	kb_register(&kbv_ulp);
	return 0;
}
module_init(kbv_init);

static void __exit kbv_exit(void)
{
	kb_deregister(&kbv_ulp);
	destroy_workqueue(kbv_wq);
}
module_exit(kbv_exit);
