// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fabric efa: writes that the target reads by RDMA, because the initiator's device can't write. */
#include "crew.h"
#include "efa_rdm_far.h"

#define LEN	100000

static struct kefa_rdm *first(struct far *far)
{
	return rdm_of(&far->pair->end[0]);
}

/* Endpoints that can read each other's memory, and can't write to it. */
static struct far *fetch_new(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .rdma = true });
	int i;

	for (i = 0; i < 2; i++)
		far_peer(&far->pair->end[i])->features &= ~KEFA_FEATURE_RDMA_WRITE;
	return far;
}

static ssize_t do_write(struct far *far, u8 *from, size_t len, u64 flags, long ctx)
{
	struct fi_rma_iov rma[2] = { far_piece(far, 3, len / 3),
				     far_piece(far, 60001, len - len / 3) };
	struct kvec iov = { from, len };
	struct fi_msg_rma msg = {
		.addr = far->pair->end[0].peer, .rma_iov = rma, .rma_iov_count = 2,
		.context = (void *)ctx, .data = 1ULL << 40,
	};
	ssize_t ret;

	efa_fill(from, len, ctx);
	memset(far->pages, 0xa5, FAR_BYTES);
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, len);
	ret = fi_writemsg(far->pair->end[0].ep, &msg, flags | FI_COMPLETION);
	/* The array is used until the completion. */
	if (!ret)
		rdm_run(far->pair);
	return ret;
}

static void expect_there(struct far *far, const u8 *from, size_t len)
{
	KUNIT_ASSERT_EQ(far->test, memcmp(far->mem + 3, from, len / 3), 0);
	KUNIT_ASSERT_EQ(far->test, memcmp(far->mem + 60001, from + len / 3, len - len / 3), 0);
	KUNIT_EXPECT_EQ(far->test, far->mem[2], 0xa5);
	KUNIT_EXPECT_EQ(far->test, far->mem[60001 + len - len / 3], 0xa5);
}

/* --- both ends --- */

static void fetch_writes(struct kunit *test)
{
	struct far *far = fetch_new(test);
	struct rdm_comp comp;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		u8 *from = i & 1 ? far->data : far->pair->out;

		KUNIT_EXPECT_EQ(test, do_write(far, from, LEN, i & 2 ? FI_REMOTE_CQ_DATA :
					       FI_DELIVERY_COMPLETE, i + 1), 0);
		rdm_expect(test, &far->pair->end[0], i + 1, LEN);
		expect_there(far, from, LEN);
		KUNIT_EXPECT_EQ(test, first(far)->stats.sent[KEFA_LONGREAD_RTW_PKT], i + 1ULL);
		comp = rdm_read(&far->pair->end[1]);
		KUNIT_EXPECT_EQ(test, comp.ret, i & 2 ? 1 : -EAGAIN);
		KUNIT_EXPECT_EQ(test, comp.entry.data, i & 2 ? 1ULL << 40 : 0);
	}
	KUNIT_EXPECT_EQ(test, far->rdm->stats.sent[KEFA_EOR_PKT], 4ULL);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].remote), 4ULL * LEN);
	KUNIT_EXPECT_EQ(test, first(far)->stats.writes, 0ULL);
	/* Short ones have their data in the packet. */
	KUNIT_EXPECT_EQ(test, do_write(far, far->data, SZ_64K - 1, 0, 9), 0);
	KUNIT_EXPECT_EQ(test, first(far)->stats.sent[KEFA_LONGREAD_RTW_PKT], 4ULL);
	KUNIT_EXPECT_EQ(test, first(far)->stats.sent[KEFA_LONGCTS_RTW_PKT], 1ULL);
	rdm_read_all(&far->pair->end[0], 0);
	rdm_expect_whole(test, far->pair);
}

/* The target doesn't read, or its device refuses: the data is sent. */
static void fetch_nacked(struct kunit *test)
{
	struct far *far = fetch_new(test);
	unsigned int i, dc;

	for (i = 0; i < 3; i++) {
		for (dc = 0; dc < 2; dc++) {
			const u8 again = dc ? KEFA_DC_LONGCTS_RTW_PKT : KEFA_LONGCTS_RTW_PKT;
			const u64 sent = first(far)->stats.sent[again];
			const u64 nacks = far->rdm->stats.sent[KEFA_READ_NACK_PKT];

			if (i == 2)
				far->rdm->self.features &= ~KEFA_FEATURE_RDMA_READ;
			else
				far->pair->net.bad_reads = i + 1;
			KUNIT_EXPECT_EQ(test, do_write(far, far->data, LEN, dc ?
						       FI_DELIVERY_COMPLETE : 0, 5), 0);
			rdm_expect(test, &far->pair->end[0], 5, LEN);
			expect_there(far, far->data, LEN);
			KUNIT_EXPECT_EQ(test, far->rdm->stats.sent[KEFA_READ_NACK_PKT], nacks + 1);
			KUNIT_EXPECT_EQ(test, first(far)->stats.sent[again], sent + 1);
		}
	}
	rdm_expect_nothing(test, &far->pair->end[1]);
	KUNIT_EXPECT_EQ(test, first(far)->stats.deaths, 0ULL);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	rdm_expect_whole(test, far->pair);
}

/* All regions are in use, or the memory doesn't fit into one: by long-CTS. */
static void fetch_no_region(struct kunit *test)
{
	struct far *far = fetch_new(test);

	efake_fail(far->pair->fake, EFAKE_MR_MAP, 1, -EINVAL);
	KUNIT_EXPECT_EQ(test, do_write(far, far->data, LEN, 0, 5), 0);
	rdm_expect(test, &far->pair->end[0], 5, LEN);
	expect_there(far, far->data, LEN);
	KUNIT_EXPECT_EQ(test, first(far)->stats.sent[KEFA_LONGREAD_RTW_PKT], 0ULL);
	KUNIT_EXPECT_EQ(test, first(far)->stats.sent[KEFA_LONGCTS_RTW_PKT], 1ULL);
	rdm_expect_whole(test, far->pair);
}

static void fetch_chaos(struct kunit *test)
{
	struct far *far = fetch_new(test);
	unsigned int i;

	far->pair->net.reorder = 300;
	far->pair->net.rnr = 50;
	far->pair->net.late = 300;
	far->pair->net.bad_read = 100;
	for (i = 0; i < (rdm_long ? 60 : 10); i++) {
		rdm_of(&far->pair->end[1])->lim.read_segment = PAGE_SIZE << i % 5;
		KUNIT_EXPECT_EQ(test, do_write(far, far->data, LEN - i, i & 1 ?
					       FI_DELIVERY_COMPLETE : 0, 7), 0);
		rdm_expect(test, &far->pair->end[0], 7, LEN - i);
		expect_there(far, far->data, LEN - i);
	}
	KUNIT_EXPECT_EQ(test, first(far)->stats.deaths, 0ULL);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	rdm_expect_whole(test, far->pair);
}

/* --- the target, by hand --- */

/* The peer's memory that it lets the second endpoint read: a region of the same device. */
static struct fi_rma_iov theirs(struct far *far, struct fid_mr **mr, size_t len)
{
	KUNIT_ASSERT_EQ(far->test, fi_mr_reg(far->pair->domain, far->pair->out, len,
					     FI_REMOTE_READ, 0, 0, 0, mr, NULL), 0);
	return (struct fi_rma_iov) { (*mr)->base_addr, len, fi_mr_key(*mr) };
}

static void ask(struct far *far, const struct fi_rma_iov *from, u16 flags, size_t len)
{
	struct far_pkt p = {
		.type = KEFA_LONGREAD_RTW_PKT, .flags = flags, .n = 3,
		.mem = { far_piece(far, 100, 10), far_piece(far, 5000, len / 2),
			 far_piece(far, 70000, len - len / 2 - 10) },
		.nfrom = 2,
		.from = { { from->addr, 7000, from->key },
			  { from->addr + 7000, len - 7000, from->key } },
	};

	far_send(far, &p);
}

static struct efake_wr *read_of(struct far *far)
{
	struct efake_wr *wr;
	unsigned int i;

	for (i = 0; (wr = efake_sent(far->pair->end[1].qp, i)); i++)
		if (wr->opcode == IB_WR_RDMA_READ)
			return wr;
	return NULL;
}

static void fetch_pieces(struct kunit *test)
{
	struct far *far = fetch_new(test);
	struct efake_wr *wr;
	struct fi_rma_iov from;
	struct fid_mr *mr;
	unsigned int n = 0;

	from = theirs(far, &mr, 50000);
	efa_fill(far->pair->out, 50000, 4);
	ask(far, &from, KEFA_REQ_OPT_CQ_DATA_HDR, 50000);
	while ((wr = read_of(far))) {
		rdm_expect_nothing(test, &far->pair->end[1]);
		KUNIT_EXPECT_FALSE(test, far_take(far, KEFA_EOR_PKT, 0));
		efake_wr_done(wr, efake_wr_rdma(wr));
		efake_settle_all();
		n++;
	}
	KUNIT_EXPECT_GT(test, n, 13U);
	KUNIT_EXPECT_EQ(test, rdm_read(&far->pair->end[1]).ret, 1);
	KUNIT_EXPECT_TRUE(test, far_take(far, KEFA_EOR_PKT, 0));
	KUNIT_EXPECT_EQ(test, far->hdr.send_id, (u32)FAR_ID);
	KUNIT_ASSERT_MEMEQ(test, far->mem + 100, far->pair->out, 10);
	KUNIT_ASSERT_EQ(test, memcmp(far->mem + 5000, far->pair->out + 10, 25000), 0);
	KUNIT_ASSERT_EQ(test, memcmp(far->mem + 70000, far->pair->out + 25010, 24990), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	rdm_expect_whole(test, far->pair);
}

static void closer(struct kofi_thread *thread)
{
	thread->ret = fi_close(thread->arg);
}

/* Reads don't use the region's key: its close waits for them, and the peer is refused. */
static void fetch_closed(struct kunit *test)
{
	struct far *far = fetch_new(test);
	struct kofi_thread thread;
	struct fi_rma_iov from;
	struct efake_wr *wr;
	struct fid_mr *mr;

	from = theirs(far, &mr, 50000);
	ask(far, &from, KEFA_REQ_OPT_CQ_DATA_HDR, 50000);
	KUNIT_EXPECT_NOT_NULL(test, read_of(far));
	kofi_thread_start(test, &thread, closer, &far->mr->fid);
	KUNIT_EXPECT_TRUE(test, kofi_soon(kofi_thread_sleeps(&thread)));
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&thread, 50));
	while ((wr = read_of(far))) {
		KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&thread, 1));
		efake_wr_done(wr, efake_wr_rdma(wr));
		efake_settle_all();
	}
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 0L);
	far->mr = NULL;
	/* Those that were posted have completed, and others weren't posted: or all were. */
	if (!far_take(far, KEFA_EOR_PKT, 0)) {
		KUNIT_EXPECT_TRUE(test, far_take(far, KEFA_READ_NACK_PKT, 0));
		rdm_expect_nothing(test, &far->pair->end[1]);
	}
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	rdm_read_all(&far->pair->end[1], 0);
	rdm_expect_whole(test, far->pair);
}

/* The same for an invalidation that was posted. */
static void fetch_invalidated(struct kunit *test)
{
	struct far *far = fetch_new(test);
	const struct fi_mr_alloc_attr alloc = {
		.max_pages = 32, .access = FI_REMOTE_WRITE, .cq = far->pair->end[0].cq,
	};
	struct kvec iov = { far->mem, 20 * PAGE_SIZE };
	const struct fi_mr_attr attr = {
		.type = FI_MR_KVEC, .mr_iov = &iov, .iov_count = 1, .access = FI_REMOTE_WRITE,
	};
	struct fi_rma_iov from;
	struct fid_mr *mr, *to;
	struct efake_wr *wr;

	from = theirs(far, &mr, 20000);
	KUNIT_ASSERT_EQ(test, fi_mr_alloc(far->pair->domain, &alloc, &to, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(to, &attr, 0), 0);
	efake_settle_all();
	far_send(far, &(struct far_pkt) {
		.type = KEFA_LONGREAD_RTW_PKT, .n = 1,
		.mem = { { to->base_addr, 20000, fi_mr_key(to) } }, .nfrom = 1, .from = { from },
	});
	KUNIT_EXPECT_EQ(test, fi_mr_post_inval(to, FI_COMPLETION, (void *)8), 0);
	efake_settle_all();
	rdm_expect_nothing(test, &far->pair->end[0]);
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(to, &attr, 0), -EBUSY);
	while ((wr = read_of(far))) {
		rdm_expect_nothing(test, &far->pair->end[0]);
		efake_wr_done(wr, efake_wr_rdma(wr));
		efake_settle_all();
	}
	rdm_expect(test, &far->pair->end[0], 8, 20 * PAGE_SIZE);
	far_take_all(far);
	KUNIT_EXPECT_EQ(test, fi_close(&to->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	rdm_expect_whole(test, far->pair);
}

/* A peer that can't do otherwise dies if it can't be read. */
static void fetch_must(struct kunit *test)
{
	struct far *far = fetch_new(test);
	struct kefa_rpeer *peer = far_peer(&far->pair->end[1]);
	struct fi_rma_iov from;
	struct fid_mr *mr;

	from = theirs(far, &mr, 50000);
	peer->features &= ~KEFA_FEATURE_READ_NACK;
	/* It is read even if that is switched off. */
	far->rdm->self.features &= ~KEFA_FEATURE_RDMA_READ;
	ask(far, &from, 0, 50000);
	KUNIT_ASSERT_NOT_NULL(test, read_of(far));
	efake_wr_done(read_of(far), 7);
	far_take_all(far);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 1ULL);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	rdm_expect_whole(test, far->pair);
}

enum ending { DIES, REMOVED, CLOSES, GOES };

/* At the target with reads outstanding, and at the initiator with a registration. */
static void fetch_ends(struct kunit *test)
{
	unsigned int how, at;

	for (at = 0; at < 2; at++) {
		for (how = DIES; how <= GOES; how++) {
			struct far *far = fetch_new(test);
			struct rdm_end *end = &far->pair->end[at];
			struct fi_rma_iov rma = far_piece(far, 0, LEN);
			struct rdm_comp comp;

			KUNIT_EXPECT_EQ(test, fi_write(far->pair->end[0].ep, far->data, LEN, NULL,
						       far->pair->end[0].peer, rma.addr, rma.key,
						       (void *)4), 0);
			KUNIT_ASSERT_NOT_NULL(test, rdm_run_until(far->pair, 1, 0));
			if (how == DIES) {
				spin_lock_bh(&rdm_of(end)->ep.lock);
				kefa_rdm_kill(rdm_of(end), kefa_peers_at(&rdm_of(end)->peers,
									 end->peer), 104, 0);
				spin_unlock_bh(&rdm_of(end)->ep.lock);
			} else if (how == REMOVED) {
				KUNIT_EXPECT_EQ(test, fi_av_remove(end->av, &end->peer, 1, 0), 0);
			} else if (how == CLOSES) {
				EFA_CLOSE(test, end->ep);
			} else {
				efake_remove(far->pair->fake);
			}
			efake_settle_all();
			if (how < GOES)
				rdm_run(far->pair);
			if (!at) {
				comp = rdm_read(end);
				KUNIT_EXPECT_EQ(test, comp.ret, -FI_EAVAIL);
				KUNIT_EXPECT_EQ(test, (long)comp.error.op_context, 4L);
			}
			far_close(far);
			memset(far->pages, 0x22, FAR_BYTES);
			efake_haunt(far->pair->fake);
			KUNIT_EXPECT_NULL(test, memchr_inv(far->pages, 0x22, FAR_BYTES));
			far_end(far);
		}
	}
}

static bool invalidates(struct efake_qp *qp)
{
	struct efake_wr *wr;
	unsigned int i;

	for (i = 0; (wr = efake_sent(qp, i)); i++)
		if (wr->opcode == IB_WR_LOCAL_INV)
			return true;
	return false;
}

/* The target never answers: the write fails when its memory can't be read any more. */
static void fetch_timeout(struct kunit *test)
{
	struct far *far = fetch_new(test);
	struct fi_rma_iov rma = far_piece(far, 0, LEN);
	unsigned int i;

	first(far)->far_checks = 3;
	KUNIT_EXPECT_EQ(test, fi_write(far->pair->end[0].ep, far->data, LEN, NULL,
				       far->pair->end[0].peer, rma.addr, rma.key, (void *)4), 0);
	rdm_finish_sent(far->pair, 0, 0);
	efake_settle_all();
	rdm_finish_sent(far->pair, 0, 0);
	KUNIT_EXPECT_EQ(test, first(far)->stats.sent[KEFA_LONGREAD_RTW_PKT], 1ULL);
	far->pair->fake->manual_mr = true;
	for (i = 0; i < 3; i++) {
		rdm_expect_nothing(test, &far->pair->end[0]);
		rdm_check_peers(first(far));
		efake_settle_all();
	}
	rdm_expect_nothing(test, &far->pair->end[0]);
	KUNIT_EXPECT_TRUE(test, invalidates(far->pair->end[0].qp));
	rdm_finish_sent(far->pair, 0, 0);
	far->pair->fake->manual_mr = false;
	rdm_expect_error(test, &far->pair->end[0], 4, ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, rdm_regions(&far->pair->end[0]), first(far)->nsources);
}

/* The same on an endpoint for which nobody polls. */
static void fetch_idle(struct kunit *test)
{
	struct far *far = fetch_new(test);
	struct fi_rma_iov rma = far_piece(far, 0, LEN);
	unsigned int i;

	first(far)->far_checks = 3;
	KUNIT_EXPECT_EQ(test, fi_write(far->pair->end[0].ep, far->data, LEN, NULL,
				       far->pair->end[0].peer, rma.addr, rma.key, (void *)4), 0);
	rdm_finish_sent(far->pair, 0, 0);
	efake_settle_all();
	rdm_finish_sent(far->pair, 0, 0);
	efake_settle_all();
	far->pair->fake->manual_mr = true;
	for (i = 0; i < 3; i++)
		rdm_check_peers(first(far));
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, first(far)->stats.timed_out, 1ULL);
	KUNIT_EXPECT_TRUE(test, invalidates(far->pair->end[0].qp));
	rdm_finish_sent(far->pair, 0, 0);
	far->pair->fake->manual_mr = false;
	efake_settle_all();
	rdm_expect_error(test, &far->pair->end[0], 4, ETIMEDOUT);
}

/* The device has refused a read, but only the HANDSHAKE tells what the peer can do instead. */
static void fetch_unshaken(struct kunit *test)
{
	struct far *far = fetch_new(test);
	struct kefa_rpeer *peer = far_peer(&far->pair->end[1]);
	const u32 features = peer->features;
	struct fi_rma_iov from;
	struct fid_mr *mr;
	u64 sent;

	from = theirs(far, &mr, 50000);
	sent = far->rdm->stats.sent[KEFA_READ_NACK_PKT];
	spin_lock_bh(&far->rdm->ep.lock);
	peer->flags &= ~KEFA_RPEER_SHAKEN;
	peer->features = 0;
	spin_unlock_bh(&far->rdm->ep.lock);
	ask(far, &from, KEFA_REQ_OPT_CQ_DATA_HDR, 50000);
	while (read_of(far)) {
		efake_wr_done(read_of(far), 7);
		efake_settle_all();
	}
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	KUNIT_EXPECT_FALSE(test, far_take(far, KEFA_READ_NACK_PKT, 0));
	spin_lock_bh(&far->rdm->ep.lock);
	peer->flags |= KEFA_RPEER_SHAKEN;
	peer->features = features;
	kefa_read_shaken(far->rdm, peer);
	kefa_rdm_pump(far->rdm);
	spin_unlock_bh(&far->rdm->ep.lock);
	KUNIT_EXPECT_TRUE(test, far_take(far, KEFA_READ_NACK_PKT, 0));
	KUNIT_EXPECT_EQ(test, far->rdm->stats.sent[KEFA_READ_NACK_PKT], sent + 1);
	rdm_expect_nothing(test, &far->pair->end[1]);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	rdm_expect_whole(test, far->pair);
}

/* A peer whose HANDSHAKE never comes can't have more operations than its share. */
static void fetch_never_shaken(struct kunit *test)
{
	struct far *far = fetch_new(test);
	struct kefa_rpeer *peer = far_peer(&far->pair->end[1]);
	struct fi_rma_iov from;
	struct fid_mr *mr;
	unsigned int i;

	from = theirs(far, &mr, 50000);
	spin_lock_bh(&far->rdm->ep.lock);
	peer->flags &= ~KEFA_RPEER_SHAKEN;
	spin_unlock_bh(&far->rdm->ep.lock);
	for (i = 0; i <= KEFA_TARGETS_PEER; i++) {
		KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
		ask(far, &from, 0, 50000);
		KUNIT_ASSERT_NOT_NULL(test, read_of(far));
		while (read_of(far)) {
			efake_wr_done(read_of(far), 7);
			efake_settle_all();
		}
	}
	far_take_all(far);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 1ULL);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	rdm_expect_whole(test, far->pair);
}

/* fi_flush() waits until the device doesn't write to a region for the peer any more. */
static void fetch_flushed(struct kunit *test)
{
	struct far *far = fetch_new(test);
	struct rdm_end *end = &far->pair->end[1];
	struct fi_rma_iov from;
	struct fid_mr *mr;

	from = theirs(far, &mr, 50000);
	ask(far, &from, 0, 50000);
	KUNIT_ASSERT_NOT_NULL(test, read_of(far));
	KUNIT_EXPECT_EQ(test, fi_flush(end->ep, end->peer, 20), -ETIMEDOUT);
	far_take_all(far);
	KUNIT_EXPECT_EQ(test, fi_flush(end->ep, end->peer, 20), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	rdm_expect_whole(test, far->pair);
}

/* --- regions whose invalidation the device refuses while it reads --- */

/* A region of the second endpoint's queue, which the peer has asked it to read into. */
struct doomed {
	struct fid_mr		*mr;
	struct fid_mr		*to;
	struct kvec		iov;
	struct fi_mr_attr	attr;
};

static void doom(struct far *far, struct doomed *d, u16 flags)
{
	const struct fi_mr_alloc_attr alloc = {
		.max_pages = 32, .access = FI_REMOTE_WRITE, .cq = far->pair->end[1].cq,
	};
	struct fi_rma_iov from = theirs(far, &d->mr, 20000);

	d->iov = (struct kvec) { far->mem, 20 * PAGE_SIZE };
	d->attr = (struct fi_mr_attr) {
		.type = FI_MR_KVEC, .mr_iov = &d->iov, .iov_count = 1, .access = FI_REMOTE_WRITE,
	};
	KUNIT_ASSERT_EQ(far->test, fi_mr_alloc(far->pair->domain, &alloc, &d->to, NULL), 0);
	KUNIT_EXPECT_EQ(far->test, fi_mr_post_reg(d->to, &d->attr, 0), 0);
	efake_settle_all();
	far_send(far, &(struct far_pkt) {
		.type = KEFA_LONGREAD_RTW_PKT, .flags = flags, .n = 1,
		.mem = { { d->to->base_addr, 20000, fi_mr_key(d->to) } }, .nfrom = 1,
		.from = { from },
	});
	KUNIT_EXPECT_NOT_NULL(far->test, read_of(far));
	KUNIT_EXPECT_EQ(far->test, fi_mr_post_inval(d->to, FI_COMPLETION, (void *)8), 0);
	efake_settle_all();
}

static void finish_reads(struct far *far)
{
	struct efake_wr *wr;

	while ((wr = read_of(far))) {
		rdm_expect_nothing(far->test, &far->pair->end[1]);
		efake_wr_done(wr, efake_wr_rdma(wr));
		efake_settle_all();
	}
}

/* The ULP is told of the data before it is told that the region is invalid. */
static void fetch_in_turn(struct kunit *test)
{
	struct far *far = fetch_new(test);
	struct rdm_end *end = &far->pair->end[1];
	struct doomed d;

	doom(far, &d, KEFA_REQ_OPT_CQ_DATA_HDR);
	finish_reads(far);
	KUNIT_EXPECT_EQ(test, rdm_read(end).entry.flags,
			FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	rdm_expect(test, end, 8, 20 * PAGE_SIZE);
	far_take_all(far);
	KUNIT_EXPECT_EQ(test, fi_close(&d.to->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&d.mr->fid), 0);
	rdm_expect_whole(test, far->pair);
}

/* The region is destroyed once, and its invalidation waits for the reads. */
static void fetch_revoked(struct kunit *test)
{
	struct far *far = fetch_new(test);
	struct efake *fake = far->pair->fake;
	const unsigned int was = efake_calls(fake, EFAKE_MR_DESTROY);
	struct kefa_domain *dom = to_kefa_domain(far->pair->domain);
	struct doomed d;

	fake->deny = BIT_ULL(IB_WR_LOCAL_INV);
	doom(far, &d, 0);
	fake->deny = 0;
	/* A read notices the failure. */
	rdm_expect_nothing(test, &far->pair->end[1]);
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, efake_calls(fake, EFAKE_MR_DESTROY), was + 1);
	rdm_expect_nothing(test, &far->pair->end[1]);
	/* As for another region. */
	queue_work(kefa_cmd_wq, &dom->mrq.revoke);
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, efake_calls(fake, EFAKE_MR_DESTROY), was + 1);
	finish_reads(far);
	rdm_expect(test, &far->pair->end[1], 8, 20 * PAGE_SIZE);
	far_take_all(far);
	/* It has another region of the device. */
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(d.to, &d.attr, 0), 0);
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, fi_close(&d.to->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&d.mr->fid), 0);
	rdm_expect_whole(test, far->pair);
}

/* The device refuses to destroy the region: its invalidation fails after the reads. */
static void fetch_kept(struct kunit *test)
{
	struct far *far = fetch_new(test);
	struct efake *fake = far->pair->fake;
	struct kofi_thread thread;
	struct rdm_comp comp;
	struct doomed d;

	fake->deny = BIT_ULL(IB_WR_LOCAL_INV);
	fake->refusal = -EINVAL;
	fake->refuse = BIT(EFAKE_MR_DESTROY);
	doom(far, &d, 0);
	rdm_expect_nothing(test, &far->pair->end[1]);
	efake_settle_all();
	fake->deny = 0;
	fake->refuse = 0;
	/* The end of reads of an earlier registration is noticed late. */
	rcu_read_lock();
	kefa_mrq_unread(container_of(d.to, struct kefa_mr, mr_fid));
	rcu_read_unlock();
	comp = rdm_read(&far->pair->end[1]);
	KUNIT_ASSERT_EQ(test, comp.ret, -EAGAIN);
	kofi_thread_start(test, &thread, closer, &d.to->fid);
	KUNIT_EXPECT_TRUE(test, kofi_soon(kofi_thread_sleeps(&thread)));
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&thread, 50));
	while (read_of(far)) {
		efake_wr_done(read_of(far), 0);
		efake_settle_all();
	}
	rdm_expect_error(test, &far->pair->end[1], 8, EIO);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 0L);
	far_take_all(far);
	KUNIT_EXPECT_EQ(test, fi_close(&d.mr->fid), 0);
	rdm_expect_whole(test, far->pair);
}

static struct kunit_case fetch_cases[] = {
	KUNIT_CASE(fetch_writes),
	KUNIT_CASE(fetch_nacked),
	KUNIT_CASE(fetch_no_region),
	KUNIT_CASE(fetch_chaos),
	KUNIT_CASE(fetch_pieces),
	KUNIT_CASE(fetch_closed),
	KUNIT_CASE(fetch_invalidated),
	KUNIT_CASE(fetch_must),
	KUNIT_CASE(fetch_ends),
	KUNIT_CASE(fetch_timeout),
	KUNIT_CASE(fetch_idle),
	KUNIT_CASE(fetch_unshaken),
	KUNIT_CASE(fetch_never_shaken),
	KUNIT_CASE(fetch_flushed),
	KUNIT_CASE(fetch_in_turn),
	KUNIT_CASE(fetch_kept),
	KUNIT_CASE(fetch_revoked),
	{}
};

static struct kunit_suite fetch_suite = {
	.name		= "kefa_rdm_fetch",
	.test_cases	= fetch_cases,
};

kunit_test_suite(fetch_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, writes that the target reads");
MODULE_LICENSE("Dual BSD/GPL");
