// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A peer that reads and writes memory of the second endpoint by packets that a case makes up. */
#include <linux/vmalloc.h>
#include "efa_rdm_far.h"

void far_close(struct far *far)
{
	if (far->mr)
		WARN_ON(fi_close(&far->mr->fid));
	far->mr = NULL;
}

static void far_free(void *data)
{
	struct far *far = data;

	far_close(far);
	vunmap(far->mem);
	free_pages_exact(far->pages, FAR_BYTES);
	kvfree(far->data);
}

struct kefa_rpeer *far_peer(struct rdm_end *end)
{
	struct kefa_rdm *rdm = rdm_of(end);
	struct kefa_rpeer *peer;

	spin_lock_bh(&rdm->ep.lock);
	peer = kefa_peers_at(&rdm->peers, end->peer);
	spin_unlock_bh(&rdm->ep.lock);
	return peer;
}

void far_delay(struct far *far)
{
	far->rdm->backoffs.first_us = 3600U * USEC_PER_SEC;
	far->rdm->backoffs.max_us = 3600U * USEC_PER_SEC;
}

void far_delay_end(struct far *far)
{
	struct kefa_rpeer *peer = far_peer(&far->pair->end[1]);
	struct kefa_rdm *rdm = far->rdm;

	spin_lock_bh(&rdm->ep.lock);
	if (peer->backoff.waiting) {
		timerqueue_del(&rdm->backoffs.queue, &peer->backoff.timer);
		peer->backoff.timer.expires = 0;
		timerqueue_add(&rdm->backoffs.queue, &peer->backoff.timer);
	}
	kefa_rdm_pump(rdm);
	spin_unlock_bh(&rdm->ep.lock);
}

void far_end(struct far *far)
{
	struct rdm_pair *pair = far->pair;

	kunit_release_action(far->test, far_free, far);
	rdm_pair_end(pair);
}

struct far *far_new(struct kunit *test, const struct rdm_opts *opts)
{
	struct rdm_opts all = opts ? *opts : (struct rdm_opts) { };
	struct far *far = kunit_kzalloc(test, sizeof(*far), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, far);
	all.rma = true;
	far->test = test;
	far->pair = rdm_ready_pair(test, &all);
	far->rdm = rdm_of(&far->pair->end[1]);
	far->pages = alloc_pages_exact(FAR_BYTES, GFP_KERNEL | __GFP_ZERO);
	far->data = kvzalloc(FAR_BYTES, GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, far->pages && far->data);
	far->mem = rdm_scattered(test, far->pages, FAR_BYTES);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, far_free, far), 0);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(far->pair->domain, far->mem, FAR_BYTES,
					FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &far->mr, NULL),
			0);
	return far;
}

struct fi_rma_iov far_piece(struct far *far, u64 off, size_t len)
{
	return (struct fi_rma_iov) {
		.addr = far->mr->base_addr + off, .len = len, .key = fi_mr_key(far->mr),
	};
}

static void far_iov(struct kefa_rma_iov *to, const struct fi_rma_iov *from, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		to[i].addr = cpu_to_le64(from[i].addr);
		to[i].len = cpu_to_le64(from[i].len);
		to[i].key = cpu_to_le64(from[i].key);
	}
}

/* Address of the first endpoint, or of another peer on its device. */
static struct fi_efa_addr far_name(struct far *far, u32 who)
{
	struct fi_efa_addr name = far->pair->end[0].name;

	name.qpn += 100 * who;
	name.qkey += 0x10000 * who;
	return name;
}

fi_addr_t far_friend(struct far *far, u32 who)
{
	const struct fi_efa_addr name = far_name(far, who);
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	KUNIT_EXPECT_EQ(far->test, fi_av_insert(far->pair->end[1].av, &name, 1, &addr, 0, NULL), 1);
	return addr;
}

/* Have the second endpoint receive a packet of a peer. */
static void far_inject(struct far *far, u32 who, const u8 *packet, size_t len)
{
	struct efake_wr *recv = efake_recv(far->pair->end[1].qp, 0);
	const struct kefa_wc wc = {
		.len = len, .src_qpn = far_name(far, who).qpn, .slid = RDM_SLID,
	};

	efake_wr_write(recv, packet, len);
	efake_recv_done(recv, &wc);
	efake_settle_all();
}

void far_send(struct far *far, const struct far_pkt *p)
{
	static u8 packet[SZ_16K] __aligned(8);
	struct kefa_rma_iov iov[KEFA_IOV_MAX], from[KEFA_IOV_MAX];
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(p->type),
		.flags		= p->flags | KEFA_PKT_CONNID_HDR,
		.has_connid	= true,
		.connid		= far_name(far, p->who).qkey,
		.recv_length	= p->window,
		.seg_offset	= p->off,
		.seg_length	= p->len,
		.msg_length	= p->total,
		.cq_data	= p->value,
		.msg_id		= p->msg_id,
		.atomic_datatype = p->datatype,
		.atomic_op	= p->op,
		.rma_iov_count	= p->n,
		.rma_iov	= iov,
		.read_iov_count	= p->nfrom,
		.read_iov	= from,
	};
	const bool request = pkt.row->flags & KEFA_ROW_REQ;
	size_t hdr;
	u32 i;

	pkt.send_id = request ? p->id ?: FAR_ID : p->to;
	pkt.recv_id = request || p->type == KEFA_CTS_PKT ? p->id ?: FAR_ID : p->to;
	if (p->type == KEFA_READRSP_PKT)
		pkt.send_id = p->id ?: FAR_ID;
	far_iov(iov, p->mem, p->n);
	far_iov(from, p->from, p->nfrom);
	for (i = 0; i < p->n && !p->total; i++)
		pkt.msg_length += p->mem[i].len;
	hdr = kefa_build(&pkt, packet, sizeof(packet));
	if (p->len)
		memcpy(packet + hdr, p->data, p->len);
	far_inject(far, p->who, packet, hdr + p->len);
}

static bool far_take_to(struct far *far, u32 qpn, u8 type, u32 status)
{
	struct efake_wr *wr;
	unsigned int i;
	size_t len;

	efake_settle_all();
	for (i = 0; (wr = efake_sent(far->pair->end[1].qp, i)); i++) {
		if (wr->opcode != IB_WR_SEND || (qpn && wr->qpn != qpn))
			continue;
		len = efake_wr_read(wr, far->got, sizeof(far->got));
		if (far->got[0] != type)
			continue;
		KUNIT_EXPECT_EQ(far->test, kefa_parse(far->got, len, &far->hdr), KEFA_OK);
		efake_wr_done(wr, status);
		efake_settle_all();
		return true;
	}
	return false;
}

bool far_take(struct far *far, u8 type, u32 status)
{
	return far_take_to(far, 0, type, status);
}

bool far_take_of(struct far *far, u32 who, u8 type, u32 status)
{
	return far_take_to(far, far_name(far, who).qpn, type, status);
}

unsigned int far_take_each(struct far *far, u32 who, u8 type, u32 status)
{
	unsigned int n;

	for (n = 0; n < 1000 && far_take_of(far, who, type, status); n++)
		;
	return n;
}

void far_take_all(struct far *far)
{
	unsigned int n;

	for (n = 0; far->pair->end[1].qp->nsent && n < 1000; n++) {
		efake_wr_done(efake_sent(far->pair->end[1].qp, 0), 0);
		efake_settle_all();
	}
}

u64 far_dropped(struct far *far, enum kefa_drop why)
{
	return far->rdm->stats.dropped[why];
}
