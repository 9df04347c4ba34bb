// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A ULP on kOFI, fabric efa-direct, that does the same as ulp_verbs.c. The provider
 * handles mapping, slots, limits and removal.
 */
#include <kofi/cm.h>
#include <kofi/domain.h>
#include <kofi/efa_ext.h>
#include <kofi/endpoint.h>
#include <kofi/eq.h>
#include <kofi/errno.h>
#include <kofi/rma.h>
#include <linux/bvec.h>
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "bench.h"

MODULE_DESCRIPTION("Benchmarks of kOFI: a ULP on efa-direct");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_BENCH);

#define KBE_CQ		1024
#define KBE_CHUNK	256	/* addresses inserted at a time */
/* An inject has no completion: number of steps after which it has surely completed. */
#define KBE_STEPS	20

/**
 * struct kbe_op - an operation
 * @op: the harness' part
 * @mr: region to register with
 * @iov: memory for @mr
 * @bvec: memory of a message
 * @pages: the same memory in single pages, last page first; or NULL
 */
struct kbe_op {
	struct kb_op	op;
	struct fid_mr	*mr;
	struct kvec	iov;
	struct bio_vec	bvec;
	struct bio_vec	*pages;
};

/* Endpoints of one CPU in KB_PAIR. */
#define KBE_LANES	2
/* Maximum number of polls of an endpoint. */
#define KBE_LOOKS	100000

/**
 * struct kbe_lane - an endpoint that only one CPU uses
 * @ep: the endpoint
 * @cq: completion queue of the endpoint
 * @mr: region of the endpoint
 * @buf: memory
 */
struct kbe_lane {
	struct fid_ep	*ep;
	struct fid_cq	*cq;
	struct fid_mr	*mr;
	void		*buf;
} ____cacheline_aligned;

/**
 * struct kbe_end - an end
 * @end: the harness' part
 * @info: entry of the device
 * @fabric: the fabric
 * @domain: the domain
 * @av: the address vector
 * @cq: the completion queue
 * @tx_cq: with kb_test.apart, the completion queue for sends, and NULL otherwise
 * @ep: the endpoint
 * @more: other endpoints, which are idle
 * @peer: the harness' peer
 * @steps: number of steps since an inject
 * @entries: buffer for completions
 * @ops: operations
 * @lanes: endpoints for KB_PAIR, by CPU
 */
struct kbe_end {
	struct kb_end		end;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct fid_av		*av;
	struct fid_cq		*cq;
	struct fid_cq		*tx_cq;
	struct fid_ep		*ep;
	struct fid_ep		**more;
	fi_addr_t		peer;
	u32			steps;
	struct fi_cq_msg_entry	entries[KB_POLL];
	struct kbe_op		ops[KB_MAX_BATCH];
	struct kbe_lane		lanes[KB_PAIR_CPUS][KBE_LANES];
};

static struct kbe_end *to_kbe(struct kb_end *end)
{
	return container_of(end, struct kbe_end, end);
}

/* --- completions --- */

/* Pass a completion to its operation. */
static void kbe_done(struct kb_op *op, int err)
{
	op->end->failed += !!err;
	WRITE_ONCE(op->end->done, op->end->done + 1);
}

static void kbe_failed(struct fid_cq *cq)
{
	struct fi_cq_err_entry error = { };
	struct kbe_op *op;

	if (fi_cq_readerr(cq, &error, 0) != 1)
		return;
	op = error.op_context;
	pr_err("kofi_bench_efa: error %d, status %d\n", error.err,
	       error.prov_errno);
	op->op.done(&op->op, error.err);
}

static void kbe_hand_over(struct kbe_end *kbe, ssize_t n)
{
	struct kbe_op *op;
	ssize_t i;

	for (i = 0; i < n; i++) {
		op = kbe->entries[i].op_context;
		op->op.done(&op->op, 0);
	}
}

static ssize_t kbe_take(struct kbe_end *kbe)
{
	ssize_t n;

	n = fi_cq_read(kbe->cq, kbe->entries, KB_POLL);
	if (n == -FI_EAVAIL)
		kbe_failed(kbe->cq);
	kbe_hand_over(kbe, n);
	return n;
}

/* Take completions of messages that were sent beside receives. They aren't operations. */
static void kbe_take_sent(struct kbe_end *kbe)
{
	ssize_t n;

	while ((n = fi_cq_read(kbe->tx_cq, kbe->entries, KB_POLL)) > 0)
		;
	if (n == -FI_EAVAIL)
		kbe_failed(kbe->tx_cq);
}

static void kbe_handler(struct fid_cq *cq, void *context)
{
	struct kbe_end *kbe = context;

	if (kbe->tx_cq)
		kbe_take_sent(kbe);
	while (kbe_take(kbe) != -EAGAIN)
		;
}

static int kbe_poll(struct kb_end *end)
{
	struct kbe_end *kbe = to_kbe(end);

	if (end->test->kind == KB_INJECT && ++kbe->steps == KBE_STEPS)
		end->done = end->test->batch;
	else if (end->test->kind != KB_INJECT)
		kbe_take(kbe);
	return 0;
}

static int kbe_sleep(struct kb_end *end)
{
	struct kbe_end *kbe = to_kbe(end);
	ssize_t n;

	n = fi_cq_sread(kbe->cq, kbe->entries, KB_POLL, NULL, -1);
	if (n == -FI_EAVAIL)
		kbe_failed(kbe->cq);
	else if (n < 0 && n != -EAGAIN)
		return n;
	kbe_hand_over(kbe, n);
	return 0;
}

/* --- posting --- */

static ssize_t kbe_post_reg(struct kbe_op *op)
{
	const struct fi_mr_attr attr = {
		.type		= FI_MR_KVEC,
		.mr_iov		= &op->iov,
		.iov_count	= 1,
		.access		= FI_REMOTE_READ | FI_REMOTE_WRITE,
		.context	= op,
	};

	return fi_mr_post_reg(op->mr, &attr, FI_COMPLETION);
}

static ssize_t kbe_post_reg_pages(struct kbe_op *op, u32 size)
{
	const struct fi_mr_attr attr = {
		.type		= FI_MR_BVEC,
		.bvec		= op->pages,
		.iov_count	= size / PAGE_SIZE,
		.access		= FI_REMOTE_READ | FI_REMOTE_WRITE,
		.context	= op,
	};

	return fi_mr_post_reg(op->mr, &attr, FI_COMPLETION);
}

static ssize_t kbe_post_msg(struct kbe_end *kbe, struct kbe_op *op, bool recv)
{
	struct fi_msg msg = { .addr = kbe->peer, .context = op };

	iov_iter_bvec(&msg.msg_iter, recv ? ITER_DEST : ITER_SOURCE, &op->bvec, 1,
		      op->bvec.bv_len);
	return recv ? fi_recvmsg(kbe->ep, &msg, FI_COMPLETION) :
		      fi_sendmsg(kbe->ep, &msg, FI_COMPLETION);
}

static ssize_t kbe_post_rma(struct kbe_end *kbe, struct kbe_op *op, bool read)
{
	const struct kb_addr *to = &kbe->end.peer;
	const struct fi_rma_iov rma = {
		.addr = to->addr, .len = op->bvec.bv_len, .key = to->rkey,
	};
	struct fi_msg_rma msg = {
		.addr = kbe->peer, .rma_iov = &rma, .rma_iov_count = 1, .context = op,
	};

	iov_iter_bvec(&msg.msg_iter, read ? ITER_DEST : ITER_SOURCE, &op->bvec, 1,
		      op->bvec.bv_len);
	return read ? fi_readmsg(kbe->ep, &msg, FI_COMPLETION) :
		      fi_writemsg(kbe->ep, &msg, FI_COMPLETION);
}

static int kbe_post_msgs(struct kbe_end *kbe, enum kb_kind kind)
{
	u32 i, n = kbe->end.test->batch;
	struct kbe_op *op = kbe->ops;
	ssize_t ret = 0;

	switch (kind) {
	case KB_SEND:
	case KB_RECV:
		for (i = 0; i < n && !ret; i++, op++)
			ret = kbe_post_msg(kbe, op, kind == KB_RECV);
		return ret;
	case KB_WRITE:
	case KB_READ:
		for (i = 0; i < n && !ret; i++, op++)
			ret = kbe_post_rma(kbe, op, kind == KB_READ);
		return ret;
	default:
		return -EOPNOTSUPP;
	}
}

static int kbe_post_kind(struct kbe_end *kbe, enum kb_kind kind)
{
	u32 i, n = kbe->end.test->batch, size = kbe->end.test->size;
	const struct kb_addr *to = &kbe->end.peer;
	struct kbe_op *op = kbe->ops;
	ssize_t ret = 0;

	switch (kind) {
	case KB_SEND:
		for (i = 0; i < n && !ret; i++, op++)
			ret = fi_send(kbe->ep, op->op.buf, size, NULL,
				      kbe->peer, op);
		return ret;
	case KB_INJECT:
		kbe->steps = 0;
		for (i = 0; i < n && !ret; i++, op++)
			ret = fi_inject(kbe->ep, op->op.buf, size, kbe->peer);
		return ret;
	case KB_RECV:
		for (i = 0; i < n && !ret; i++, op++)
			ret = fi_recv(kbe->ep, op->op.buf, size, NULL,
				      FI_ADDR_UNSPEC, op);
		return ret;
	case KB_WRITE:
		for (i = 0; i < n && !ret; i++, op++)
			ret = fi_write(kbe->ep, op->op.buf, size, NULL,
				       kbe->peer, to->addr, to->rkey, op);
		return ret;
	case KB_READ:
		for (i = 0; i < n && !ret; i++, op++)
			ret = fi_read(kbe->ep, op->op.buf, size, NULL,
				      kbe->peer, to->addr, to->rkey, op);
		return ret;
	case KB_REG:
		for (i = 0; i < n && !ret && kbe->end.test->scattered; i++, op++)
			ret = kbe_post_reg_pages(op, size);
		for (; i < n && !ret; i++, op++)
			ret = kbe_post_reg(op);
		return ret;
	case KB_INV:
		for (i = 0; i < n && !ret; i++, op++)
			ret = fi_mr_post_inval(op->mr, FI_COMPLETION, op);
		return ret;
	default:
		return -EOPNOTSUPP;
	}
}

/* Post receives, and send as many messages. */
static int kbe_post_apart(struct kbe_end *kbe)
{
	u32 i, n = kbe->end.test->batch, size = kbe->end.test->size;
	struct kbe_op *op = kbe->ops;
	ssize_t ret = 0;

	for (i = 0; i < n && !ret; i++, op++)
		ret = fi_recv(kbe->ep, op->op.buf, size, NULL, FI_ADDR_UNSPEC, op) ?:
		      fi_send(kbe->ep, op->op.buf, size, NULL, kbe->peer, op);
	return ret;
}

static int kbe_post_batch(struct kb_end *end)
{
	if (end->test->apart)
		return end->test->kind == KB_RECV ? kbe_post_apart(to_kbe(end)) : -EOPNOTSUPP;
	if (end->test->msg)
		return kbe_post_msgs(to_kbe(end), end->test->kind);
	return kbe_post_kind(to_kbe(end), end->test->kind);
}

static int kbe_post_undo(struct kb_end *end)
{
	return kbe_post_kind(to_kbe(end),
			     end->test->kind == KB_REG ? KB_INV : KB_REG);
}

/* --- two CPUs --- */

static int kbe_lane_wait(struct kbe_lane *lane, u32 count)
{
	struct fi_cq_msg_entry entries[KB_POLL];
	u32 left = KBE_LOOKS;
	ssize_t n;

	while (count && left--) {
		n = fi_cq_read(lane->cq, entries, KB_POLL);
		if (n == -FI_EAVAIL) {
			kbe_failed(lane->cq);
			return -EIO;
		}
		if (n > 0)
			count -= n;
		else
			/* QEMU runs the other CPU while this one is idle. */
			usleep_range(5, 10);
	}
	return count ? -ETIMEDOUT : 0;
}

static int kbe_lane_send(struct kbe_end *kbe, struct kbe_lane *lane)
{
	u32 i, n = kbe->end.test->batch;
	ssize_t ret = 0;

	for (i = 0; i < n && !ret; i++)
		ret = fi_send(lane->ep, lane->buf, kbe->end.test->size, NULL, kbe->peer, lane);
	return ret ?: kbe_lane_wait(lane, n);
}

static int kbe_lane_reg(struct kbe_end *kbe, struct kbe_lane *lane)
{
	const struct kvec iov = { .iov_base = lane->buf, .iov_len = kbe->end.test->size };
	const struct fi_mr_attr attr = {
		.type		= FI_MR_KVEC,
		.mr_iov		= &iov,
		.iov_count	= 1,
		.access		= FI_REMOTE_READ | FI_REMOTE_WRITE,
	};
	int ret;

	ret = fi_mr_post_reg(lane->mr, &attr, FI_COMPLETION) ?: kbe_lane_wait(lane, 1);
	if (ret)
		return ret;
	return fi_mr_post_inval(lane->mr, FI_COMPLETION, lane) ?: kbe_lane_wait(lane, 1);
}

static int kbe_pair(struct kb_end *end, unsigned int cpu)
{
	struct kbe_end *kbe = to_kbe(end);
	struct kbe_lane *lanes = kbe->lanes[cpu];
	int ret = 0;
	u32 i;

	if (end->test->kind == KB_SEND)
		return kbe_lane_send(kbe, lanes);
	for (i = 0; i < end->test->batch && !ret; i++)
		ret = kbe_lane_reg(kbe, &lanes[i % KBE_LANES]);
	return ret;
}

/* --- setting up; nothing of this is counted --- */

static int kbe_find(const char *device, struct fi_info **info)
{
	struct fi_info *hints = fi_allocinfo();
	int ret = -ENOMEM;

	if (!hints)
		return ret;
	hints->caps = FI_MSG | FI_RMA;
	hints->mode = FI_RX_CQ_DATA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->name = kstrdup(device, GFP_KERNEL);
	hints->fabric_attr->prov_name = kstrdup(FI_EFA_PROV_NAME, GFP_KERNEL);
	hints->fabric_attr->name = kstrdup(FI_EFA_FABRIC_DIRECT, GFP_KERNEL);
	if (hints->domain_attr->name && hints->fabric_attr->prov_name &&
	    hints->fabric_attr->name)
		ret = fi_getinfo(FI_VERSION(2, 0), NULL, NULL, 0, hints, info);
	fi_freeinfo(hints);
	return ret;
}

static int kbe_open_ep(struct kbe_end *kbe, struct fid_ep **ep)
{
	return fi_endpoint(kbe->domain, kbe->info, ep, NULL) ?:
	       fi_ep_bind(*ep, &kbe->av->fid, 0) ?:
	       fi_ep_bind(*ep, &kbe->cq->fid, kbe->tx_cq ? FI_RECV : FI_TRANSMIT | FI_RECV) ?:
	       (kbe->tx_cq ? fi_ep_bind(*ep, &kbe->tx_cq->fid, FI_TRANSMIT) : 0) ?:
	       fi_enable(*ep);
}

static int kbe_open_lane(struct kbe_end *kbe, struct kbe_lane *lane, unsigned int cpu)
{
	struct fi_cq_attr cq_attr = {
		.size			= KBE_CQ,
		.flags			= FI_AFFINITY,
		.format			= FI_CQ_FORMAT_MSG,
		.wait_obj		= FI_WAIT_NONE,
		.signaling_vector	= cpu,
	};
	struct fi_mr_alloc_attr mr_attr = {
		.max_pages	= 1,
		.access		= FI_REMOTE_READ | FI_REMOTE_WRITE,
	};
	int ret;

	lane->buf = (void *)get_zeroed_page(GFP_KERNEL);
	if (!lane->buf)
		return -ENOMEM;
	ret = fi_cq_open(kbe->domain, &cq_attr, &lane->cq, NULL) ?:
	      fi_endpoint(kbe->domain, kbe->info, &lane->ep, NULL) ?:
	      fi_ep_bind(lane->ep, &kbe->av->fid, 0) ?:
	      fi_ep_bind(lane->ep, &lane->cq->fid, FI_TRANSMIT | FI_RECV) ?:
	      fi_enable(lane->ep);
	if (ret)
		return ret;
	mr_attr.cq = lane->cq;
	mr_attr.ep = lane->ep;
	return fi_mr_alloc(kbe->domain, &mr_attr, &lane->mr, lane);
}

static int kbe_open_lanes(struct kbe_end *kbe, const struct kb_test *test)
{
	unsigned int cpu, i;
	int ret = 0;

	if (test->mode != KB_PAIR)
		return 0;
	if (test->size > PAGE_SIZE || (test->kind != KB_SEND && test->kind != KB_REG))
		return -EOPNOTSUPP;
	for (cpu = 0; cpu < KB_PAIR_CPUS; cpu++)
		for (i = 0; i < KBE_LANES && !ret; i++)
			ret = kbe_open_lane(kbe, &kbe->lanes[cpu][i], cpu);
	return ret;
}

static int kbe_open_fabric(struct kbe_end *kbe, const struct kb_test *test)
{
	struct fi_cq_attr cq_attr = {
		.size		= KBE_CQ,
		.format		= FI_CQ_FORMAT_MSG,
		.wait_obj	= test->mode == KB_SLEEPING ? FI_WAIT_UNSPEC :
							      FI_WAIT_NONE,
		.handler	= test->mode == KB_HANDLER || test->mode == KB_SOFTIRQ ?
				  kbe_handler : NULL,
		.handler_context = kbe,
		.flags		= test->mode == KB_SOFTIRQ ? FI_CQ_SOFTIRQ : 0,
	};
	struct fi_cq_attr tx_attr = {
		.size		= KBE_CQ,
		.format		= FI_CQ_FORMAT_MSG,
		.wait_obj	= FI_WAIT_NONE,
	};
	struct fi_av_attr av_attr = { };

	return kbe_find(test->device, &kbe->info) ?:
	       fi_fabric(kbe->info->fabric_attr, &kbe->fabric, NULL) ?:
	       fi_domain(kbe->fabric, kbe->info, &kbe->domain, NULL) ?:
	       fi_av_open(kbe->domain, &av_attr, &kbe->av, NULL) ?:
	       fi_cq_open(kbe->domain, &cq_attr, &kbe->cq, NULL) ?:
	       (test->apart ? fi_cq_open(kbe->domain, &tx_attr, &kbe->tx_cq, NULL) : 0) ?:
	       kbe_open_ep(kbe, &kbe->ep);
}

static int kbe_open_pages(struct kbe_op *op, size_t size)
{
	size_t i, n = size / PAGE_SIZE;

	op->pages = kcalloc(n, sizeof(*op->pages), GFP_KERNEL);
	if (!op->pages)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		bvec_set_page(&op->pages[i], virt_to_page(op->op.buf + (n - 1 - i) * PAGE_SIZE),
			      PAGE_SIZE, 0);
	return 0;
}

static int kbe_open_op(struct kbe_end *kbe, struct kbe_op *op,
		       const struct kb_test *test)
{
	size_t size = PAGE_ALIGN(max(test->size, 1U));
	const struct fi_mr_alloc_attr attr = {
		.max_pages	= size / PAGE_SIZE,
		.access		= FI_REMOTE_READ | FI_REMOTE_WRITE,
		.cq		= kbe->cq,
		.ep		= test->own ? kbe->ep : NULL,
	};
	int ret = 0;

	op->op.end = &kbe->end;
	op->op.done = kbe_done;
	op->op.buf = alloc_pages_exact(size, GFP_KERNEL | __GFP_ZERO);
	if (!op->op.buf)
		return -ENOMEM;
	op->iov.iov_base = op->op.buf;
	op->iov.iov_len = test->size;
	bvec_set_page(&op->bvec, virt_to_page(op->op.buf), test->size, 0);
	if (test->kind != KB_REG && test->kind != KB_INV)
		return 0;
	if (test->scattered)
		ret = kbe_open_pages(op, size);
	return ret ?: fi_mr_alloc(kbe->domain, &attr, &op->mr, NULL);
}

static int kbe_open_more(struct kbe_end *kbe, const struct kb_test *test)
{
	int ret = 0;
	u32 i;

	if (!test->eps)
		return 0;
	kbe->more = kcalloc(test->eps, sizeof(*kbe->more), GFP_KERNEL);
	if (!kbe->more)
		return -ENOMEM;
	for (i = 0; i < test->eps && !ret; i++)
		ret = kbe_open_ep(kbe, &kbe->more[i]);
	return ret;
}

#define KBE_CLOSE(obj)	((obj) ? fi_close(&(obj)->fid) : 0)

static int kbe_close_lane(struct kbe_lane *lane)
{
	int ret = KBE_CLOSE(lane->mr);

	ret |= KBE_CLOSE(lane->ep);
	ret |= KBE_CLOSE(lane->cq);
	free_page((unsigned long)lane->buf);
	return ret;
}

static void kbe_close(struct kb_end *end)
{
	struct kbe_end *kbe = to_kbe(end);
	const struct kb_test *test = end->test;
	int ret = 0;
	u32 i;

	for (i = 0; kbe->more && i < test->eps; i++)
		ret |= KBE_CLOSE(kbe->more[i]);
	kfree(kbe->more);
	for (i = 0; i < KB_PAIR_CPUS * KBE_LANES; i++)
		ret |= kbe_close_lane(&kbe->lanes[i / KBE_LANES][i % KBE_LANES]);
	for (i = 0; i < test->batch; i++) {
		ret |= KBE_CLOSE(kbe->ops[i].mr);
		kfree(kbe->ops[i].pages);
		if (kbe->ops[i].op.buf)
			free_pages_exact(kbe->ops[i].op.buf,
					 PAGE_ALIGN(max(test->size, 1U)));
	}
	ret |= KBE_CLOSE(kbe->ep);
	ret |= KBE_CLOSE(kbe->tx_cq);
	ret |= KBE_CLOSE(kbe->cq);
	ret |= KBE_CLOSE(kbe->av);
	ret |= KBE_CLOSE(kbe->domain);
	ret |= KBE_CLOSE(kbe->fabric);
	WARN_ON(ret);
	fi_freeinfo(kbe->info);
	kfree(kbe);
}

static struct kb_end *kbe_open(const struct kb_test *test)
{
	struct kbe_end *kbe = kzalloc(sizeof(*kbe), GFP_KERNEL);
	struct fi_efa_addr addr;
	size_t len = sizeof(addr);
	int ret;
	u32 i;

	if (!kbe)
		return ERR_PTR(-ENOMEM);
	kbe->end.test = test;
	ret = kbe_open_fabric(kbe, test) ?: kbe_open_more(kbe, test) ?:
	      kbe_open_lanes(kbe, test);
	for (i = 0; i < test->batch && !ret; i++)
		ret = kbe_open_op(kbe, &kbe->ops[i], test);
	if (!ret)
		ret = fi_getname(&kbe->ep->fid, &addr, &len);
	if (ret) {
		kbe_close(&kbe->end);
		return ERR_PTR(ret);
	}
	memcpy(kbe->end.addr.gid, addr.gid, sizeof(addr.gid));
	kbe->end.addr.qpn = addr.qpn;
	kbe->end.addr.qkey = addr.qkey;
	return &kbe->end;
}

/* Insert addresses on the peer's device that no endpoint has. */
static int kbe_insert_others(struct kbe_end *kbe, const struct fi_efa_addr *addr,
			     u32 count)
{
	struct fi_efa_addr *others;
	u32 i, n, done = 0;
	int ret = 0;

	others = kcalloc(KBE_CHUNK, sizeof(*others), GFP_KERNEL);
	if (!others)
		return -ENOMEM;
	while (done < count && ret >= 0) {
		n = min_t(u32, count - done, KBE_CHUNK);
		for (i = 0; i < n; i++) {
			others[i] = *addr;
			others[i].qpn = (done + i) & 0x7fff;
			others[i].qkey = 0x40000000 + done + i;
		}
		ret = fi_av_insert(kbe->av, others, n, NULL, 0, NULL);
		done += n;
	}
	kfree(others);
	return ret < 0 ? ret : 0;
}

/* Insert the peer last, so that its index is the highest. */
static int kbe_connect(struct kb_end *end)
{
	struct kbe_end *kbe = to_kbe(end);
	struct fi_efa_addr addr = { };
	u32 others = end->test->addrs;
	int ret;

	memcpy(addr.gid, end->peer.gid, sizeof(addr.gid));
	addr.qpn = end->peer.qpn;
	addr.qkey = end->peer.qkey;
	ret = kbe_insert_others(kbe, &addr, others);
	if (ret)
		return ret;
	ret = fi_av_insert(kbe->av, &addr, 1, &kbe->peer, 0, NULL);
	return ret < 0 ? ret : 0;
}

/* --- memory --- */

static int kbe_memory_domains(struct kbe_end *kbe)
{
	struct fid_domain **domains;
	s64 before;
	int ret = 0;
	u32 i;

	domains = kcalloc(KB_OBJECTS, sizeof(*domains), GFP_KERNEL);
	if (!domains)
		return -ENOMEM;
	before = kb_memory_used();
	for (i = 0; i < KB_OBJECTS && !ret; i++)
		ret = fi_domain(kbe->fabric, kbe->info, &domains[i], NULL);
	if (!ret)
		kb_printf("memory domain %lld\n",
			  (kb_memory_used() - before) / KB_OBJECTS);
	for (i = 0; i < KB_OBJECTS; i++)
		KBE_CLOSE(domains[i]);
	kfree(domains);
	return ret;
}

static int kbe_memory_eps(struct kbe_end *kbe, u32 depth)
{
	struct fid_ep **eps;
	s64 before;
	int ret = 0;
	u32 i;

	eps = kcalloc(KB_OBJECTS, sizeof(*eps), GFP_KERNEL);
	if (!eps)
		return -ENOMEM;
	kbe->info->tx_attr->size = depth;
	kbe->info->rx_attr->size = depth;
	before = kb_memory_used();
	for (i = 0; i < KB_OBJECTS && !ret; i++)
		ret = kbe_open_ep(kbe, &eps[i]);
	if (!ret)
		kb_printf("memory endpoint%u %lld\n", depth,
			  (kb_memory_used() - before) / KB_OBJECTS);
	for (i = 0; i < KB_OBJECTS; i++)
		KBE_CLOSE(eps[i]);
	kfree(eps);
	return ret;
}

static int kbe_memory_addrs(struct kbe_end *kbe)
{
	struct fi_efa_addr addr = { };
	s64 before;
	int ret;

	memcpy(addr.gid, kbe->end.addr.gid, sizeof(addr.gid));
	before = kb_memory_used();
	ret = kbe_insert_others(kbe, &addr, KB_ENTRIES);
	if (!ret)
		kb_printf("memory address %lld\n",
			  (kb_memory_used() - before) / KB_ENTRIES);
	return ret;
}

static int kbe_memory(const struct kb_test *test)
{
	struct kb_end *end = kbe_open(test);
	struct kbe_end *kbe = to_kbe(end);
	int ret;

	if (IS_ERR(end))
		return PTR_ERR(end);
	ret = kbe_memory_domains(kbe) ?: kbe_memory_eps(kbe, KB_DEEP) ?:
	      kbe_memory_eps(kbe, KB_SHALLOW) ?: kbe_memory_addrs(kbe);
	kbe_close(end);
	return ret;
}

static struct kb_ulp kbe_ulp = {
	.name		= "efa",
	.open		= kbe_open,
	.connect	= kbe_connect,
	.close		= kbe_close,
	.post		= kbe_post_batch,
	.post_undo	= kbe_post_undo,
	.poll		= kbe_poll,
	.sleep		= kbe_sleep,
	.pair		= kbe_pair,
	.memory		= kbe_memory,
};

static int __init kbe_init(void)
{
	kb_register(&kbe_ulp);
	return 0;
}
module_init(kbe_init);

static void __exit kbe_exit(void)
{
	kb_deregister(&kbe_ulp);
}
module_exit(kbe_exit);
