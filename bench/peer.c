// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The peer, on raw verbs. It works only while nothing is counted: it uses no events, and
 * polls after a window has ended.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "verbs.h"

#define KB_PEER_WAIT	(60 * HZ)

static int wait_for(struct kb_peer *peer, unsigned int count)
{
	unsigned long end = jiffies + KB_PEER_WAIT;
	struct ib_wc wc;
	int n;

	while (count) {
		local_bh_disable();
		n = ib_poll_cq(peer->q.cq, 1, &wc);
		local_bh_enable();
		if (n < 0 || (n && wc.status != IB_WC_SUCCESS))
			return -EIO;
		count -= n;
		if (n)
			continue;
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		usleep_range(50, 100);
	}
	return 0;
}

static int post(struct kb_peer *peer, const struct ib_send_wr *wr)
{
	int ret;

	local_bh_disable();
	ret = ib_post_send(peer->q.qp, wr, NULL);
	local_bh_enable();
	return ret;
}

/* Register memory that the ULP may read and write until the end of the test. */
static int open_region(struct kb_peer *peer)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.wr.send_flags = IB_SEND_SIGNALED,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
			  IB_ACCESS_REMOTE_READ,
	};
	struct scatterlist sg;
	int ret;

	peer->mr = ib_alloc_mr(peer->q.pd, IB_MR_TYPE_MEM_REG,
			       peer->size / PAGE_SIZE);
	if (IS_ERR(peer->mr))
		return PTR_ERR(peer->mr);
	sg_init_one(&sg, peer->buf, peer->size);
	sg_dma_address(&sg) = peer->dma;
	sg_dma_len(&sg) = peer->size;
	ret = ib_map_mr_sg(peer->mr, &sg, 1, NULL, PAGE_SIZE);
	if (ret != 1)
		return ret < 0 ? ret : -EINVAL;
	if (peer->q.srd)
		efa_inc_fast_reg_key_gen(peer->mr);
	wr.mr = peer->mr;
	wr.key = peer->mr->rkey;
	return post(peer, &wr.wr) ?: wait_for(peer, 1);
}

static int open_peer(struct kb_peer *peer, const struct kb_test *test, bool packets)
{
	int ret;

	ret = kb_qp_open(&peer->q, test->peer, KB_DEPTH, NULL, NULL);
	if (ret)
		return ret;
	if (packets)
		peer->stride = ALIGN(test->size + KB_HEADERS, SMP_CACHE_BYTES);
	peer->size = PAGE_ALIGN(packets ? peer->stride * test->batch : max(test->size, 1U));
	peer->buf = alloc_pages_exact(peer->size, GFP_KERNEL | __GFP_ZERO);
	if (!peer->buf)
		return -ENOMEM;
	peer->dma = ib_dma_map_single(peer->q.dev, peer->buf, peer->size,
				      DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(peer->q.dev, peer->dma)) {
		free_pages_exact(peer->buf, peer->size);
		peer->buf = NULL;
		return -ENOMEM;
	}
	return 0;
}

struct kb_peer *kb_peer_open(const struct kb_test *test, bool packets, struct kb_addr *addr)
{
	struct kb_peer *peer = kzalloc(sizeof(*peer), GFP_KERNEL);
	int ret;

	if (!peer)
		return ERR_PTR(-ENOMEM);
	ret = open_peer(peer, test, packets);
	if (ret) {
		kb_peer_close(peer);
		return ERR_PTR(ret);
	}
	kb_qp_addr(&peer->q, addr);
	return peer;
}

/* Connect, then register memory, which an RC queue pair can't do before. */
int kb_peer_connect(struct kb_peer *peer, const struct kb_addr *addr)
{
	return kb_qp_connect(&peer->q, addr);
}

int kb_peer_region(struct kb_peer *peer, struct kb_addr *addr)
{
	int ret = open_region(peer);

	if (ret)
		return ret;
	addr->addr = peer->mr->iova;
	addr->rkey = peer->mr->rkey;
	return 0;
}

void kb_peer_close(struct kb_peer *peer)
{
	if (!IS_ERR_OR_NULL(peer->q.qp)) {
		ib_destroy_qp(peer->q.qp);
		peer->q.qp = NULL;
	}
	if (!IS_ERR_OR_NULL(peer->mr))
		ib_dereg_mr(peer->mr);
	if (peer->buf) {
		ib_dma_unmap_single(peer->q.dev, peer->dma, peer->size,
				    DMA_BIDIRECTIONAL);
		free_pages_exact(peer->buf, peer->size);
	}
	kb_qp_close(&peer->q);
	kfree(peer);
}

/* Post receives for a batch of messages. */
int kb_peer_recv(struct kb_peer *peer, const struct kb_test *test)
{
	struct ib_sge sge = {
		.addr = peer->dma,
		.length = peer->size,
		.lkey = peer->q.pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	int ret = 0;
	u32 i;

	local_bh_disable();
	for (i = 0; i < test->batch && !ret; i++)
		ret = ib_post_recv(peer->q.qp, &wr, NULL);
	local_bh_enable();
	return ret;
}

static int send_one(struct kb_peer *peer, const struct kb_addr *to, u64 addr, u32 len)
{
	struct ib_sge sge = {
		.addr = addr,
		.length = len,
		.lkey = peer->q.pd->local_dma_lkey,
	};
	struct ib_srd_wr wr = {
		.wr.opcode = IB_WR_SEND,
		.wr.send_flags = IB_SEND_SIGNALED,
		.wr.sg_list = &sge,
		.wr.num_sge = 1,
		.ah = peer->q.ah,
		.remote_qpn = to->qpn,
		.remote_qkey = to->qkey,
	};

	return post(peer, &wr.wr);
}

/* Send a batch of messages. */
int kb_peer_send(struct kb_peer *peer, struct kb_end *end)
{
	const struct kb_test *test = end->test;
	u32 i, at, len = test->size;
	int ret = 0;

	for (i = 0; i < test->batch && !ret; i++) {
		at = i * peer->stride;
		if (end->ulp->packet)
			len = end->ulp->packet(end, i, peer->buf + at);
		ret = send_one(peer, &end->addr, peer->dma + at, len);
	}
	return ret;
}

/* Send the packets before the first batch, which the ULP answers with one packet. */
int kb_peer_greet(struct kb_peer *peer, struct kb_end *end)
{
	const struct kb_test one = { .batch = 1 };
	int i, ret = kb_peer_recv(peer, &one);

	for (i = -KB_GREETINGS; i < 0 && !ret; i++) {
		ret = send_one(peer, &end->addr, peer->dma,
			       end->ulp->packet(end, i, peer->buf)) ?: wait_for(peer, 1);
	}
	return ret ?: wait_for(peer, 1);
}

/* Poll the completions of a batch. */
int kb_peer_drain(struct kb_peer *peer, const struct kb_test *test)
{
	return wait_for(peer, test->batch);
}
