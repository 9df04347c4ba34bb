// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fabric efa as the target of peers' reads and writes by packets. */
#include "crew.h"
#include "efa_rdm_far.h"

#define DATA	KEFA_REQ_OPT_CQ_DATA_HDR

/* Send a packet without data about an operation of the second endpoint. */
static void say(struct far *far, u8 type, u32 id, u16 flags, u64 window)
{
	far_send(far, &(struct far_pkt) {
		.type = type, .to = id, .flags = flags, .window = window,
	});
}

static void say_cts(struct far *far, u32 id, u64 window)
{
	say(far, KEFA_CTS_PKT, id, KEFA_CTS_READ_REQ, window);
}

/* --- writes of one packet --- */

static void target_eager(struct kunit *test)
{
	static const size_t lens[] = { 0, 1, 9, 500, 4097, 8000 };
	struct far *far = far_new(test, NULL);
	u64 all = 0;
	unsigned int i, n;
	size_t part;

	for (n = 1; n <= KEFA_IOV_MAX; n++) {
		for (i = 0; i < ARRAY_SIZE(lens); i++) {
			struct far_pkt p = { .type = KEFA_EAGER_RTW_PKT, .data = far->data,
					     .n = n, .len = lens[i] };
			unsigned int j;
			size_t at = 0;

			memset(far->pages, 0xa5, FAR_BYTES);
			efa_fill(far->data, lens[i], i + n);
			for (j = 0; j < n; j++) {
				part = j + 1 < n ? lens[i] / n : lens[i] - at;
				p.mem[j] = far_piece(far, 20000 * j + 4090 + j, part);
				at += part;
			}
			far_send(far, &p);
			for (j = 0, at = 0; j < n; at += p.mem[j++].len) {
				u8 *to = far->mem + 20000 * j + 4090 + j;

				KUNIT_ASSERT_EQ(test, memcmp(to, far->data + at, p.mem[j].len), 0);
				KUNIT_EXPECT_EQ(test, to[-1], 0xa5);
				KUNIT_EXPECT_EQ(test, to[p.mem[j].len], 0xa5);
			}
			all += lens[i];
		}
	}
	/* The ULP has no completion, and a counter. */
	rdm_expect_nothing(test, &far->pair->end[1]);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].remote), all);
	KUNIT_EXPECT_EQ(test, far->pair->end[1].qp->nsent, 0U);
	rdm_expect_whole(test, far->pair);
}

static void expect_written(struct far *far, size_t len, u64 value)
{
	struct rdm_comp comp = rdm_read(&far->pair->end[1]);

	KUNIT_EXPECT_EQ(far->test, comp.ret, 1);
	KUNIT_EXPECT_NULL(far->test, comp.entry.op_context);
	KUNIT_EXPECT_EQ(far->test, comp.entry.flags,
			FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	KUNIT_EXPECT_EQ(far->test, comp.entry.len, len);
	KUNIT_EXPECT_EQ(far->test, comp.entry.data, value);
	KUNIT_EXPECT_EQ(far->test, comp.src, far->pair->end[1].peer);
}

static void target_data(struct kunit *test)
{
	struct far *far = far_new(test, NULL);

	far_send(far, &(struct far_pkt) {
		.type = KEFA_EAGER_RTW_PKT, .flags = DATA, .value = 0x123456789abcdefULL,
		.n = 1, .mem = { far_piece(far, 5, 10) }, .data = "0123456789", .len = 10,
	});
	KUNIT_ASSERT_MEMEQ(test, far->mem + 5, "0123456789", 10);
	expect_written(far, 10, 0x123456789abcdefULL);
	rdm_expect_whole(test, far->pair);
}

/* Writes with data wait for room in the queue, and keep their data. */
static void target_full(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	DECLARE_BITMAP(seen, KEFA_CQ_RESERVE + 30) = { };
	struct rdm_comp comp;
	unsigned int i, n;

	for (i = 0; i < KEFA_CQ_RESERVE + 30; i++) {
		efa_fill(far->data, 100, i);
		far_send(far, &(struct far_pkt) {
			.type = KEFA_EAGER_RTW_PKT, .flags = DATA, .value = i, .n = 1,
			.mem = { far_piece(far, 100 * i, 100) }, .data = far->data, .len = 100,
		});
	}
	KUNIT_EXPECT_EQ(test, far->rdm->stats.waited, 30ULL);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].remote), 100ULL * KEFA_CQ_RESERVE);
	/* A write without data doesn't wait for them. */
	far_send(far, &(struct far_pkt) {
		.type = KEFA_EAGER_RTW_PKT, .n = 1, .mem = { far_piece(far, 50000, 1) },
		.data = "x", .len = 1,
	});
	KUNIT_EXPECT_EQ(test, far->mem[50000], 'x');
	for (n = 0; n < i; n++) {
		comp = rdm_read(&far->pair->end[1]);
		KUNIT_ASSERT_EQ(test, comp.ret, 1);
		KUNIT_ASSERT_LT(test, comp.entry.data, (u64)i);
		KUNIT_EXPECT_FALSE(test, test_and_set_bit(comp.entry.data, seen));
		KUNIT_EXPECT_TRUE(test, efa_filled(far->mem + 100 * comp.entry.data, 100,
						   comp.entry.data));
		efake_settle_all();
	}
	rdm_expect_nothing(test, &far->pair->end[1]);
	rdm_expect_whole(test, far->pair);
}

/* A RECEIPT stays in its slot until the peer has a receive for it. */
static void target_receipt(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	unsigned int i;

	far_send(far, &(struct far_pkt) {
		.type = KEFA_DC_EAGER_RTW_PKT, .id = 0x77, .n = 1,
		.mem = { far_piece(far, 0, 3) }, .data = "abc", .len = 3,
	});
	KUNIT_ASSERT_MEMEQ(test, far->mem, "abc", 3);
	for (i = 0; i < 5; i++) {
		KUNIT_EXPECT_TRUE(test, kofi_soon(far_take(far, KEFA_RECEIPT_PKT,
							   KEFA_STATUS_RNR)));
		KUNIT_EXPECT_EQ(test, far->hdr.send_id, 0x77U);
	}
	KUNIT_EXPECT_TRUE(test, kofi_soon(far_take(far, KEFA_RECEIPT_PKT, 0)));
	KUNIT_EXPECT_FALSE(test, far_take(far, KEFA_RECEIPT_PKT, 0));
	KUNIT_EXPECT_EQ(test, far->rdm->stats.sent[KEFA_RECEIPT_PKT], 1ULL);
	rdm_expect_whole(test, far->pair);
}

/* A peer that takes no RECEIPTs is given up before it has all send slots. */
static void target_receipts(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct kefa_rdm *rdm = far->rdm;
	struct kefa_rpeer *peer;
	unsigned int i;

	rdm->budget = SZ_32K;
	far_delay(far);
	for (i = 0; i < 500 && efake_recv(far->pair->end[1].qp, 0); i++) {
		far_send(far, &(struct far_pkt) {
			.type = KEFA_DC_EAGER_RTW_PKT, .n = 1,
			.mem = { far_piece(far, i, 1) }, .data = "x", .len = 1,
		});
		far_take(far, KEFA_RECEIPT_PKT, KEFA_STATUS_RNR);
		/* It isn't ready for a moment only. */
		peer = far_peer(&far->pair->end[1]);
		spin_lock_bh(&rdm->ep.lock);
		peer->backoff.checks = 0;
		spin_unlock_bh(&rdm->ep.lock);
	}
	KUNIT_EXPECT_LE(test, rdm->nts - rdm->ts_nfree, KEFA_OWED_MAX);
	peer = far_peer(&far->pair->end[1]);
	spin_lock_bh(&rdm->ep.lock);
	KUNIT_EXPECT_GE(test, rdm->kept, rdm->budget);
	KUNIT_EXPECT_FALSE(test, kefa_rpeer_dead(peer));
	peer->backoff.checks = KEFA_UNREADY_CHECKS;
	kefa_rdm_relieve(rdm);
	KUNIT_EXPECT_TRUE(test, kefa_rpeer_dead(peer));
	kefa_rdm_pump(rdm);
	spin_unlock_bh(&rdm->ep.lock);
	KUNIT_EXPECT_EQ(test, rdm->stats.cut, 1ULL);
	far_take_all(far);
	rdm_expect_whole(test, far->pair);
}

/* --- long writes --- */

/* Send granted data packet by packet. Return: the offset after it. */
static u64 granted(struct far *far, u32 id, u64 off, u64 window, size_t packet)
{
	const u64 end = off + window;
	size_t len;

	for (; off < end; off += len) {
		len = min_t(u64, packet, end - off);
		far_send(far, &(struct far_pkt) {
			.type = KEFA_CTSDATA_PKT, .to = id, .off = off,
			.data = far->data + off, .len = len,
		});
	}
	return off;
}

/* Begin a write of @total bytes to two pieces, with @first bytes in its request. */
static void begin_write(struct far *far, u8 type, u16 flags, u64 total, size_t first)
{
	efa_fill(far->data, total, 9);
	far_send(far, &(struct far_pkt) {
		.type = type, .flags = flags, .value = 5, .n = 2,
		.mem = { far_piece(far, 3, total / 3), far_piece(far, 50001, total - total / 3) },
		.data = far->data, .len = first,
	});
}

static void expect_all(struct far *far, u64 total)
{
	KUNIT_ASSERT_EQ(far->test, memcmp(far->mem + 3, far->data, total / 3), 0);
	KUNIT_ASSERT_EQ(far->test,
			memcmp(far->mem + 50001, far->data + total / 3, total - total / 3), 0);
}

static void target_longcts(struct kunit *test)
{
	static const size_t firsts[] = { 0, 1, 7000 };
	struct far *far = far_new(test, NULL);
	const u64 total = 60000;
	unsigned int i, n;
	u64 off;

	far->rdm->lim.credits = 2;
	for (i = 0; i < ARRAY_SIZE(firsts); i++) {
		memset(far->pages, 0, FAR_BYTES);
		begin_write(far, KEFA_LONGCTS_RTW_PKT, 0, total, firsts[i]);
		off = firsts[i];
		for (n = 0; off < total; n++) {
			KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_CTS_PKT, 0));
			KUNIT_EXPECT_EQ(test, far->hdr.send_id, (u32)FAR_ID);
			KUNIT_EXPECT_FALSE(test, far->hdr.flags & KEFA_CTS_READ_REQ);
			KUNIT_ASSERT_LE(test, far->hdr.recv_length, total - off);
			KUNIT_ASSERT_GT(test, far->hdr.recv_length, 0ULL);
			off = granted(far, far->hdr.recv_id, off, far->hdr.recv_length, 5003);
		}
		KUNIT_EXPECT_GT(test, n, 3U);
		expect_all(far, total);
		KUNIT_EXPECT_EQ(test, far->pair->end[1].qp->nsent, 0U);
	}
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].remote),
			total * ARRAY_SIZE(firsts));
	rdm_expect_nothing(test, &far->pair->end[1]);
	rdm_expect_whole(test, far->pair);
}

static void target_longcts_dc(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	u32 id;

	begin_write(far, KEFA_DC_LONGCTS_RTW_PKT, DATA, 30000, 100);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_CTS_PKT, 0));
	id = far->hdr.recv_id;
	KUNIT_EXPECT_EQ(test, far->hdr.recv_length, 29900ULL);
	granted(far, id, 100, 29800, 8000);
	rdm_expect_nothing(test, &far->pair->end[1]);
	KUNIT_EXPECT_FALSE(test, far_take(far, KEFA_RECEIPT_PKT, 0));
	granted(far, id, 29900, 100, 8000);
	expect_all(far, 30000);
	expect_written(far, 30000, 5);
	KUNIT_EXPECT_TRUE(test, far_take(far, KEFA_RECEIPT_PKT, 0));
	KUNIT_EXPECT_EQ(test, far->hdr.send_id, (u32)FAR_ID);
	/* The operation has ended. */
	granted(far, id, 29900, 100, 8000);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_STATE), 1ULL);
	rdm_expect_whole(test, far->pair);
}

/* libfabric sends all data in the request if we refused to read it. */
static void target_longcts_whole(struct kunit *test)
{
	struct far *far = far_new(test, NULL);

	begin_write(far, KEFA_LONGCTS_RTW_PKT, DATA, 3000, 3000);
	expect_all(far, 3000);
	expect_written(far, 3000, 5);
	begin_write(far, KEFA_DC_LONGCTS_RTW_PKT, 0, 2000, 2000);
	expect_all(far, 2000);
	KUNIT_EXPECT_TRUE(test, far_take(far, KEFA_RECEIPT_PKT, 0));
	KUNIT_EXPECT_EQ(test, far->pair->end[1].qp->nsent, 0U);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	rdm_expect_whole(test, far->pair);
}

/* Data that wasn't granted, or doesn't fit, changes nothing. */
static void target_longcts_hostile(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	u64 left, len;
	u32 id;

	far->rdm->lim.credits = 1;
	begin_write(far, KEFA_LONGCTS_RTW_PKT, 0, 20000, 0);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_CTS_PKT, 0));
	id = far->hdr.recv_id;
	memset(far->pages, 0xa5, FAR_BYTES);
	/* Beyond the end, beyond the window, of another operation. */
	granted(far, id, 20000, 1, 1);
	far_send(far, &(struct far_pkt) {
		.type = KEFA_CTSDATA_PKT, .to = id, .off = U64_MAX - 5,
		.data = far->data, .len = 3,
	});
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_LENGTH), 2ULL);
	granted(far, id, 0, 1000, 1000);
	granted(far, id, 1000, far->hdr.recv_length - 999, 8000);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_LENGTH), 3ULL);
	granted(far, id + 1, 0, 100, 100);
	granted(far, id ^ 0x10000, 0, 100, 100);
	say(far, KEFA_CTS_PKT, id, 0, 1);
	say_cts(far, id, 1);
	say(far, KEFA_RECEIPT_PKT, id, 0, 0);
	say(far, KEFA_EOR_PKT, id, 0, 0);
	say(far, KEFA_READ_NACK_PKT, id, 0, 0);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_STATE), 7ULL);
	KUNIT_EXPECT_NULL(test, memchr_inv(far->mem + 4003, 0xa5, FAR_BYTES - 4003));
	/* The same bytes again use up the window: the write ends early, within its memory. */
	left = far->hdr.recv_length - 1000;
	while (left) {
		len = min_t(u64, left, 4000);
		granted(far, id, 0, len, len);
		left -= len;
		if (!left && far_take(far, KEFA_CTS_PKT, 0))
			left = far->hdr.recv_length;
	}
	KUNIT_EXPECT_EQ(test, far->rdm->rops.used, 0U);
	KUNIT_ASSERT_EQ(test, memcmp(far->mem + 3, far->data, 4000), 0);
	KUNIT_EXPECT_NULL(test, memchr_inv(far->mem + 4003, 0xa5, FAR_BYTES - 4003));
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	rdm_expect_whole(test, far->pair);
}

/* A region that is closed meanwhile isn't written to any more, and the peer can end its write. */
static void target_longcts_closed(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	u64 off = 0;

	far->rdm->lim.credits = 1;
	begin_write(far, KEFA_DC_LONGCTS_RTW_PKT, DATA, 60000, 10);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_CTS_PKT, 0));
	off = granted(far, far->hdr.recv_id, 10, 100, 100);
	KUNIT_ASSERT_EQ(test, memcmp(far->mem + 3, far->data, 110), 0);
	far_close(far);
	memset(far->pages, 0xa5, FAR_BYTES);
	off = granted(far, far->hdr.recv_id, off, far->hdr.recv_length - 100, 1000);
	while (far_take(far, KEFA_CTS_PKT, 0))
		off = granted(far, far->hdr.recv_id, off, far->hdr.recv_length, 8000);
	KUNIT_EXPECT_EQ(test, off, 60000ULL);
	KUNIT_EXPECT_NULL(test, memchr_inv(far->pages, 0xa5, FAR_BYTES));
	/* Neither the peer nor the ULP is told that the data has arrived. */
	KUNIT_EXPECT_FALSE(test, far_take(far, KEFA_RECEIPT_PKT, 0));
	rdm_expect_nothing(test, &far->pair->end[1]);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_KEY), 1ULL);
	rdm_expect_whole(test, far->pair);
}

/* A peer has at most its share of operations. Its other writes wait, by their headers alone. */
static void target_share(struct kunit *test)
{
	const unsigned int n = KEFA_TARGETS_PEER + 20;
	struct far *far = far_new(test, NULL);
	unsigned int i;

	efa_fill(far->data, 8000, 3);
	for (i = 0; i < n; i++)
		far_send(far, &(struct far_pkt) {
			.type = KEFA_LONGCTS_RTW_PKT, .id = i, .n = 1,
			.mem = { far_piece(far, 4000 * i, 8000) }, .data = far->data, .len = 6000,
		});
	KUNIT_EXPECT_EQ(test, far->rdm->stats.waited, 20ULL);
	KUNIT_EXPECT_EQ(test, far->rdm->rops.used, (u32)KEFA_TARGETS_PEER);
	KUNIT_EXPECT_LE(test, far->rdm->kept, 20ULL * 512);
	for (i = 0; far_take(far, KEFA_CTS_PKT, 0); i++) {
		KUNIT_EXPECT_EQ(test, far->hdr.recv_length, 2000ULL);
		granted(far, far->hdr.recv_id, 6000, 2000, 8000);
	}
	KUNIT_EXPECT_EQ(test, i, n);
	KUNIT_ASSERT_EQ(test, memcmp(far->mem + 4000 * n, far->data + 4000, 4000), 0);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].remote), 8000ULL * n);
	rdm_expect_whole(test, far->pair);
}

/* --- reads --- */

static void target_short_read(struct kunit *test)
{
	static const size_t lens[] = { 0, 1, 400, 489, 5000, EFAKE_MTU - 24 };
	struct far *far = far_new(test, NULL);
	unsigned int i;

	efa_fill(far->mem, FAR_BYTES, 1);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		far_send(far, &(struct far_pkt) {
			.type = KEFA_SHORT_RTR_PKT, .id = 0x990000 + i, .window = lens[i], .n = 2,
			.mem = { far_piece(far, 4000, lens[i] / 2),
				 far_piece(far, 4000 + lens[i] / 2, lens[i] - lens[i] / 2) },
		});
		/* The slot has a copy: later changes aren't sent. */
		memset(far->mem + 4000, 0, lens[i]);
		KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_READRSP_PKT, 0));
		efa_fill(far->mem, FAR_BYTES, 1);
		KUNIT_EXPECT_EQ(test, far->hdr.recv_id, 0x990000 + i);
		KUNIT_EXPECT_EQ(test, far->hdr.data_len, lens[i]);
		KUNIT_ASSERT_EQ(test, memcmp(far->hdr.data, far->mem + 4000, lens[i]), 0);
	}
	KUNIT_EXPECT_EQ(test, far->rdm->ntargets, (u32)KEFA_TARGETS);
	rdm_expect_nothing(test, &far->pair->end[1]);
	rdm_expect_whole(test, far->pair);
}

/* Take data of a read up to its window. Return: the offset after it. */
static u64 take_read(struct far *far, u64 off, u64 window)
{
	const u64 end = off + window;

	while (off < end && far_take(far, KEFA_CTSDATA_PKT, 0)) {
		KUNIT_EXPECT_EQ(far->test, far->hdr.recv_id, (u32)FAR_ID);
		KUNIT_EXPECT_EQ(far->test, far->hdr.seg_offset, off);
		KUNIT_ASSERT_EQ(far->test,
				memcmp(far->hdr.data, far->mem + 11 + off, far->hdr.data_len), 0);
		off += far->hdr.data_len;
	}
	KUNIT_EXPECT_EQ(far->test, off, end);
	return off;
}

static void begin_read(struct far *far, u64 total, u64 window)
{
	efa_fill(far->mem, FAR_BYTES, 1);
	far_send(far, &(struct far_pkt) {
		.type = KEFA_LONGCTS_RTR_PKT, .window = window, .n = 1,
		.mem = { far_piece(far, 11, total) },
	});
}

static void target_long_read(struct kunit *test)
{
	static const u64 windows[] = { 1, 3000, 8168, 8169, 30000, 100000 };
	struct far *far = far_new(test, NULL);
	const u64 total = 100000;
	unsigned int i;
	u64 off, more;
	u32 id;

	for (i = 0; i < ARRAY_SIZE(windows); i++) {
		begin_read(far, total, windows[i]);
		KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_READRSP_PKT, 0));
		id = far->hdr.send_id;
		off = far->hdr.data_len;
		KUNIT_EXPECT_EQ(test, off, min_t(u64, windows[i], EFAKE_MTU - 24));
		KUNIT_ASSERT_EQ(test, memcmp(far->hdr.data, far->mem + 11, off), 0);
		off = take_read(far, off, windows[i] - off);
		while (off < total) {
			/* Nothing comes without a window. */
			KUNIT_ASSERT_EQ(test, far->pair->end[1].qp->nsent, 0U);
			more = min_t(u64, 25001, total - off);
			say_cts(far, id, more);
			off = take_read(far, off, more);
		}
		KUNIT_EXPECT_EQ(test, far->rdm->rops.used, 0U);
	}
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].remote), total * i);
	rdm_expect_whole(test, far->pair);
}

/* A read is counted when the peer has all of its data, which isn't read from the region again. */
static void target_read_counted(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	u32 id;

	begin_read(far, 20000, 100);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_READRSP_PKT, 0));
	id = far->hdr.send_id;
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].remote), 0ULL);
	say_cts(far, id, 19899);
	take_read(far, 100, 19899);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].remote), 0ULL);
	say_cts(far, id, 1);
	take_read(far, 19999, 1);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].remote), 20000ULL);
	begin_read(far, 20000, 100);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_READRSP_PKT, 0));
	far_close(far);
	say_cts(far, far->hdr.send_id, 19900);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].remote), 20000ULL);
	rdm_expect_whole(test, far->pair);
}

static void target_read_hostile(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	u32 id;

	begin_read(far, 20000, 100);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_READRSP_PKT, 0));
	id = far->hdr.send_id;
	say(far, KEFA_CTS_PKT, id, 0, 5);
	say_cts(far, id ^ 0x10000, 5);
	granted(far, id, 0, 10, 10);
	say(far, KEFA_RECEIPT_PKT, id, 0, 0);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_STATE), 4ULL);
	KUNIT_EXPECT_EQ(test, far->pair->end[1].qp->nsent, 0U);
	/* A window beyond the end. */
	say_cts(far, id, U64_MAX);
	take_read(far, 100, 19900);
	KUNIT_EXPECT_FALSE(test, far_take(far, KEFA_CTSDATA_PKT, 0));
	say_cts(far, id, 5);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_STATE), 5ULL);
	rdm_expect_whole(test, far->pair);
}

/* Reads wait for slots and buffers, of which they leave some to the ULP's messages. */
static void target_read_flood(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	unsigned int i, n;

	efa_fill(far->mem, FAR_BYTES, 1);
	for (i = 0; i < 200; i++)
		far_send(far, &(struct far_pkt) {
			.type = KEFA_SHORT_RTR_PKT, .id = i + 1, .window = 5000, .n = 1,
			.mem = { far_piece(far, 11 * i, 5000) },
		});
	KUNIT_EXPECT_GT(test, far->rdm->stats.waited, 100ULL);
	KUNIT_EXPECT_GE(test, far->rdm->ts_nfree, far->rdm->ts_ctl + far->rdm->nts / 4);
	/* A message of the ULP that needs a buffer is posted at once. */
	KUNIT_EXPECT_EQ(test, fi_inject(far->pair->end[1].ep, far->pair->out, 4000,
					far->pair->end[1].peer), 0);
	KUNIT_EXPECT_TRUE(test, far_take(far, KEFA_EAGER_MSGRTM_PKT, 0));
	for (n = 0; far_take(far, KEFA_READRSP_PKT, 0); n++)
		KUNIT_ASSERT_EQ(test, memcmp(far->hdr.data, far->mem +
					     11 * (far->hdr.recv_id - 1), 5000), 0);
	KUNIT_EXPECT_EQ(test, n, i);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	rdm_expect_whole(test, far->pair);
}

static void target_read_closed(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	u32 id;

	begin_read(far, 100000, 10);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_READRSP_PKT, 0));
	id = far->hdr.send_id;
	far_close(far);
	say_cts(far, id, 50000);
	KUNIT_EXPECT_EQ(test, far->pair->end[1].qp->nsent, 0U);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_KEY), 1ULL);
	rdm_expect_whole(test, far->pair);
}

/* --- refusals --- */

static const struct refusal {
	const char	*name;
	u64		key;		/* exclusive-ored with the key */
	s64		addr;		/* added to the address */
	size_t		len;
	enum kefa_drop	why;
} refusals[] = {
	{ "key", 0x4000, 0, 10, KEFA_DROP_KEY },
	{ "upper half of the key", 1ULL << 40, 0, 10, KEFA_DROP_KEY },
	{ "generation", 0x100000, 0, 10, KEFA_DROP_KEY },
	{ "behind", 0, FAR_BYTES - 9, 10, KEFA_DROP_RANGE },
	{ "far behind", 0, S64_MAX - 100, 10, KEFA_DROP_RANGE },
};

KUNIT_ARRAY_PARAM_DESC(refusal, refusals, name);

/* One bad piece of several: nothing is written or read, and nobody dies. */
static void target_refuses(struct kunit *test)
{
	static const u8 types[] = {
		KEFA_EAGER_RTW_PKT, KEFA_DC_EAGER_RTW_PKT, KEFA_LONGCTS_RTW_PKT,
		KEFA_DC_LONGCTS_RTW_PKT, KEFA_SHORT_RTR_PKT, KEFA_LONGCTS_RTR_PKT,
	};
	const struct refusal *r = test->param_value;
	struct far *far = far_new(test, NULL);
	struct far_pkt p = { .n = 3, .data = "aaaaaaaaaabbbbbbbbbbcccccccccc" };
	unsigned int i, bad;

	memset(far->pages, 0xa5, FAR_BYTES);
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		for (bad = 0; bad < p.n; bad++) {
			p.type = types[i];
			p.flags = i % 2 && i < 4 ? DATA : 0;
			p.len = i < 2 ? 30 : i < 4 ? 7 : 0;
			p.window = 1;
			p.mem[0] = far_piece(far, 0, 10);
			p.mem[1] = far_piece(far, 100, 10);
			p.mem[2] = far_piece(far, 200, 10);
			p.mem[bad] = far_piece(far, r->addr, r->len);
			p.mem[bad].key ^= r->key;
			far_send(far, &p);
			KUNIT_EXPECT_EQ(test, far_dropped(far, r->why), p.n * i + bad + 1);
		}
	}
	KUNIT_EXPECT_NULL(test, memchr_inv(far->pages, 0xa5, FAR_BYTES));
	KUNIT_EXPECT_EQ(test, far->pair->end[1].qp->nsent, 0U);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].remote), 0ULL);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	rdm_expect_nothing(test, &far->pair->end[1]);
	rdm_expect_whole(test, far->pair);
}

/* The region or the endpoint doesn't allow the access. */
static void target_access(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct far_pkt p = { .type = KEFA_EAGER_RTW_PKT, .n = 1, .data = "x", .len = 1 };
	struct fid_mr *mr;

	KUNIT_ASSERT_EQ(test, fi_mr_reg(far->pair->domain, far->mem, 100, FI_REMOTE_READ, 0, 0, 0,
					&mr, NULL), 0);
	p.mem[0] = (struct fi_rma_iov) { mr->base_addr, 1, fi_mr_key(mr) };
	far_send(far, &p);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_ACCESS), 1ULL);
	KUNIT_EXPECT_EQ(test, far->mem[0], 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	far->rdm->ep.caps &= ~(FI_REMOTE_READ | FI_REMOTE_WRITE);
	p.mem[0] = far_piece(far, 0, 1);
	far_send(far, &p);
	p.type = KEFA_SHORT_RTR_PKT;
	p.len = 0;
	p.window = 1;
	far_send(far, &p);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_TYPE), 2ULL);
	KUNIT_EXPECT_EQ(test, far->pair->end[1].qp->nsent, 0U);
	far->rdm->ep.caps |= FI_REMOTE_READ | FI_REMOTE_WRITE;
	rdm_expect_whole(test, far->pair);
}

/* --- ends --- */

enum ending { DIES, REMOVED, CLOSES, GOES };

static const char *const endings[] = { "peer dies", "address removed", "closed", "device gone" };

/* Have one operation in each state, and end them all at once. */
static void target_ends(struct kunit *test)
{
	unsigned int how, i;

	for (how = DIES; how <= GOES; how++) {
		struct far *far = far_new(test, NULL);
		struct rdm_end *end = &far->pair->end[1];

		kunit_info(test, "%s\n", endings[how]);
		/* Waits for data; has granted data to send; waits for a CTS; waits itself. */
		begin_write(far, KEFA_DC_LONGCTS_RTW_PKT, DATA, 50000, 10);
		begin_read(far, 100000, 90000);
		begin_read(far, 50000, 10);
		for (i = 0; i < KEFA_TARGETS_PEER; i++)
			begin_write(far, KEFA_LONGCTS_RTW_PKT, 0, 50000, 10);
		far_send(far, &(struct far_pkt) {
			.type = KEFA_DC_EAGER_RTW_PKT, .n = 1, .mem = { far_piece(far, 0, 1) },
			.data = "x", .len = 1,
		});
		KUNIT_EXPECT_FALSE(test, list_empty(&far->rdm->asked));
		if (how == DIES)
			far_take(far, KEFA_RECEIPT_PKT, 9);
		else if (how == REMOVED)
			KUNIT_EXPECT_EQ(test, fi_av_remove(end->av, &end->peer, 1, 0), 0);
		else if (how == CLOSES)
			EFA_CLOSE(test, end->ep);
		else
			efake_remove(far->pair->fake);
		if (how < CLOSES) {
			far_take_all(far);
			rdm_expect_whole(test, far->pair);
		}
		/* Entries that were reserved are free again. */
		KUNIT_EXPECT_EQ(test, atomic_read(&container_of(end->cq, struct kofi_cq,
								cq_fid)->reserve),
				KEFA_CQ_RESERVE);
		far_end(far);
	}
}

/* Operations without progress end their peer, or themselves if others wait. */
static void target_stalls(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	unsigned int i;

	far->rdm->fair.stall = 3;
	for (i = 0; i < KEFA_TARGETS_PEER + 1; i++)
		begin_write(far, KEFA_LONGCTS_RTW_PKT, 0, 50000, 10);
	far_take_all(far);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, far->rdm->stats.target_cut, 0ULL);
		rdm_check_peers(far->rdm);
		far_take_all(far);
	}
	rdm_check_peers(far->rdm);
	far_take_all(far);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.target_cut, 1ULL);
	KUNIT_EXPECT_TRUE(test, list_empty(&far->rdm->asked));
	/* Nothing waits any more, so the others stay. */
	for (i = 0; i < 8; i++) {
		rdm_check_peers(far->rdm);
		far_take_all(far);
	}
	KUNIT_EXPECT_EQ(test, far->rdm->stats.target_cut, 1ULL);
	KUNIT_EXPECT_EQ(test, far->rdm->rops.used, (u32)KEFA_TARGETS_PEER);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
}

static void target_stranger_stalls(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .stranger = true });
	unsigned int i;

	far->rdm->fair.stall = 3;
	begin_write(far, KEFA_LONGCTS_RTW_PKT, 0, 50000, 10);
	far_take_all(far);
	for (i = 0; i < 3; i++) {
		rdm_check_peers(far->rdm);
		far_take_all(far);
	}
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	rdm_check_peers(far->rdm);
	far_take_all(far);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.stalled, 1ULL);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 1ULL);
	rdm_expect_whole(test, far->pair);
}

static struct kunit_case target_cases[] = {
	KUNIT_CASE(target_eager),
	KUNIT_CASE(target_data),
	KUNIT_CASE(target_full),
	KUNIT_CASE(target_receipt),
	KUNIT_CASE(target_receipts),
	KUNIT_CASE(target_longcts),
	KUNIT_CASE(target_longcts_dc),
	KUNIT_CASE(target_longcts_whole),
	KUNIT_CASE(target_longcts_hostile),
	KUNIT_CASE(target_longcts_closed),
	KUNIT_CASE(target_share),
	KUNIT_CASE(target_short_read),
	KUNIT_CASE(target_long_read),
	KUNIT_CASE(target_read_counted),
	KUNIT_CASE(target_read_hostile),
	KUNIT_CASE(target_read_flood),
	KUNIT_CASE(target_read_closed),
	KUNIT_CASE_PARAM(target_refuses, refusal_gen_params),
	KUNIT_CASE(target_access),
	KUNIT_CASE(target_ends),
	KUNIT_CASE(target_stalls),
	KUNIT_CASE(target_stranger_stalls),
	{}
};

static struct kunit_suite target_suite = {
	.name		= "kefa_rdm_target",
	.test_cases	= target_cases,
};

kunit_test_suite(target_suite);

MODULE_DESCRIPTION("KUnit: fabric efa as the target of reads and writes");
MODULE_LICENSE("Dual BSD/GPL");
