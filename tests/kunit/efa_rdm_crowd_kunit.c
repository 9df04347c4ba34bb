// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fabric efa: several peers read and write, and none of them may take what the others need. */
#include "crew.h"
#include "efa_rdm_far.h"
#include "../../prov/efa/rdm/target.h"

#define DATA	KEFA_REQ_OPT_CQ_DATA_HDR

static void ask_read(struct far *far, u32 who, u8 type, u32 id, u64 total, u64 window)
{
	far_send(far, &(struct far_pkt) {
		.who = who, .type = type, .id = id, .window = window, .n = 1,
		.mem = { far_piece(far, 11, total) },
	});
}

/* Write a byte. */
static void ask_write(struct far *far, u32 who, u8 type, u16 flags, u64 at)
{
	far_send(far, &(struct far_pkt) {
		.who = who, .type = type, .flags = flags, .value = at, .n = 1,
		.mem = { far_piece(far, at, 1) }, .data = "x", .len = 1,
	});
}

/* Begin a write of 8000 bytes. */
static void ask_long(struct far *far, u32 who, u8 type, u32 id)
{
	far_send(far, &(struct far_pkt) {
		.who = who, .type = type, .id = id, .n = 1, .mem = { far_piece(far, 0, 8000) },
		.data = far->data, .len = 4000,
	});
}

static void send_data(struct far *far, u32 who, u32 to, u64 off, size_t len)
{
	far_send(far, &(struct far_pkt) {
		.who = who, .type = KEFA_CTSDATA_PKT, .to = to, .off = off,
		.data = far->data + off, .len = len,
	});
}

static void say_cts(struct far *far, u32 id, u64 window)
{
	far_send(far, &(struct far_pkt) {
		.type = KEFA_CTS_PKT, .to = id, .flags = KEFA_CTS_READ_REQ, .window = window,
	});
}

static void set_delay(struct far *far, u32 ms)
{
	far->rdm->backoffs.first_us = ms * USEC_PER_MSEC;
	far->rdm->backoffs.max_us = ms * USEC_PER_MSEC;
}

/* A delay that isn't over before a case has prepared what it wants to see then. */
#define LONG_MS		3000U

static bool peer_dead(struct far *far, fi_addr_t addr)
{
	struct kefa_rdm *rdm = far->rdm;
	bool dead;

	spin_lock_bh(&rdm->ep.lock);
	dead = kefa_rpeer_dead(kefa_peers_at(&rdm->peers, addr));
	spin_unlock_bh(&rdm->ep.lock);
	return dead;
}

static void check_peers(struct far *far, unsigned int n)
{
	while (n--) {
		rdm_check_peers(far->rdm);
		efake_settle_all();
	}
}

/* Return: the id of a peer's operation in a state, or 0. */
static u32 op_in(struct far *far, enum kefa_rop_state state)
{
	struct kefa_rops *rops = &far->rdm->rops;
	u32 i, id = 0;

	spin_lock_bh(rops->lock);
	for (i = 0; i < rops->size && !id; i++)
		if (rops->ops[i].state == state && rops->ops[i].more & KEFA_ROP_TARGET)
			id = kefa_rop_id(rops, &rops->ops[i]);
	spin_unlock_bh(rops->lock);
	return id;
}

/* --- peers that aren't ready --- */

/* Short reads of a peer without receives. Return: number of those that wait. */
static unsigned int park_reads(struct far *far, unsigned int n)
{
	unsigned int i;

	efa_fill(far->mem, FAR_BYTES, 1);
	for (i = 0; i < n; i++)
		ask_read(far, 0, KEFA_SHORT_RTR_PKT, i + 1, 4000, 4000);
	/* Each is sent twice. */
	KUNIT_EXPECT_EQ(far->test, far_take_each(far, 0, KEFA_READRSP_PKT, KEFA_STATUS_RNR), 2 * n);
	return list_count_nodes(&far->rdm->parked);
}

/* The data for a peer that isn't ready holds no copy buffers: others get theirs. */
static void crowd_not_ready(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .depth = 256 });
	unsigned int n;

	far_friend(far, 1);
	set_delay(far, 300);
	KUNIT_EXPECT_EQ(test, park_reads(far, KEFA_COPIES / 2), KEFA_COPIES / 2U);
	ask_read(far, 1, KEFA_SHORT_RTR_PKT, 99, 4000, 4000);
	KUNIT_EXPECT_TRUE(test, far_take_of(far, 1, KEFA_READRSP_PKT, 0));
	KUNIT_EXPECT_EQ(test, far->hdr.recv_id, 99U);
	/* It is read again when the peer is ready. */
	efa_fill(far->mem, FAR_BYTES, 2);
	for (n = 1; n <= KEFA_COPIES / 2; n++) {
		KUNIT_ASSERT_TRUE(test, kofi_soon(far_take_of(far, 0, KEFA_READRSP_PKT, 0)));
		KUNIT_EXPECT_EQ(test, far->hdr.recv_id, n);
		KUNIT_EXPECT_EQ(test, far->hdr.data_len, 4000U);
		KUNIT_ASSERT_EQ(test, memcmp(far->hdr.data, far->mem + 11, 4000), 0);
	}
	far_take_all(far);
	rdm_expect_whole(test, far->pair);
}

/* A peer that isn't ready for the RECEIPTs of its writes gets few slots, and doesn't die. */
static void crowd_receipts(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .depth = 256 });
	const unsigned int n = 3 * KEFA_OWED_MAX;
	unsigned int i;

	far_friend(far, 1);
	far_delay(far);
	for (i = 0; i < n; i++)
		ask_write(far, 0, KEFA_DC_EAGER_RTW_PKT, 0, i);
	KUNIT_EXPECT_EQ(test, far_take_each(far, 0, KEFA_RECEIPT_PKT, KEFA_STATUS_RNR),
			2U * KEFA_OWED_MAX);
	far_delay_end(far);
	for (i = 0; i < n; i++)
		if (!kofi_soon(far_take_of(far, 0, KEFA_RECEIPT_PKT, 0)))
			break;
	KUNIT_EXPECT_EQ(test, i, n);
	KUNIT_EXPECT_EQ(test, far_peer(&far->pair->end[1])->answers, 0);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	far_take_all(far);
	rdm_expect_whole(test, far->pair);
}

/* The same, with operations, whose region goes meanwhile. */
static void crowd_not_ready_closed(struct kunit *test)
{
	struct far *far = far_new(test, NULL);

	set_delay(far, 300);
	ask_read(far, 0, KEFA_LONGCTS_RTR_PKT, 77, 50000, 20000);
	KUNIT_EXPECT_TRUE(test, far_take_of(far, 0, KEFA_READRSP_PKT, 0));
	KUNIT_EXPECT_GT(test, far_take_each(far, 0, KEFA_CTSDATA_PKT, KEFA_STATUS_RNR), 2U);
	ask_read(far, 0, KEFA_SHORT_RTR_PKT, 78, 4000, 4000);
	far_close(far);
	KUNIT_EXPECT_TRUE(test, kofi_soon((efake_settle_all(), list_empty(&far->rdm->parked))));
	KUNIT_EXPECT_EQ(test, far_take_each(far, 0, KEFA_CTSDATA_PKT, 0), 0U);
	far_take_all(far);
	rdm_expect_whole(test, far->pair);
}

/* Data that is parked is no reason not to look at an operation's progress. */
static void crowd_stranger_parks(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .stranger = true });
	unsigned int i;

	far->rdm->fair.stall = 3;
	set_delay(far, 20000);
	for (i = 0; i < 8; i++)
		ask_read(far, 0, KEFA_LONGCTS_RTR_PKT, i + 1, 50000, 50000);
	for (i = 0; i < 10; i++) {
		far_take_each(far, 0, KEFA_READRSP_PKT, 0);
		far_take_each(far, 0, KEFA_CTSDATA_PKT, KEFA_STATUS_RNR);
	}
	check_peers(far, 6);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.stalled, 1ULL);
	far_take_all(far);
	rdm_expect_whole(test, far->pair);
}

/* An operation all of whose packets are parked ends when others wait, and frees their slots. */
static void crowd_parked_stalls(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct rdm_end *end = &far->pair->end[1];
	u32 ids[KEFA_TARGETS_PEER];
	unsigned int i, parked;

	far->rdm->fair.stall = 3;
	set_delay(far, 20000);
	for (i = 0; i < KEFA_TARGETS_PEER + 1; i++)
		ask_read(far, 0, KEFA_LONGCTS_RTR_PKT, i + 1, 50000, 100);
	for (i = 0; i < KEFA_TARGETS_PEER; i++) {
		KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_READRSP_PKT, 0));
		ids[i] = far->hdr.send_id;
	}
	for (i = 0; i < KEFA_TARGETS_PEER; i++)
		say_cts(far, ids[i], 400);
	far_take_each(far, 0, KEFA_CTSDATA_PKT, KEFA_STATUS_RNR);
	parked = list_count_nodes(&far->rdm->parked);
	KUNIT_EXPECT_EQ(test, parked, (u32)KEFA_TARGETS_PEER);
	check_peers(far, 5);
	KUNIT_EXPECT_GE(test, far->rdm->stats.target_cut, 1ULL);
	KUNIT_EXPECT_LT(test, list_count_nodes(&far->rdm->parked), (size_t)parked);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	KUNIT_EXPECT_EQ(test, fi_av_remove(end->av, &end->peer, 1, 0), 0);
	far_take_all(far);
	rdm_expect_whole(test, far->pair);
}

/* Of the peers that take no answers, the one with most of them dies, and no other. */
static void crowd_worst(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .depth = 256 });
	const fi_addr_t other = far_friend(far, 1), third = far_friend(far, 2);
	unsigned int who, i;

	set_delay(far, 20000);
	for (who = 1; who <= 2; who++) {
		for (i = 0; i < KEFA_OWED_MAX; i++)
			ask_write(far, who, KEFA_DC_EAGER_RTW_PKT, 0, i);
		KUNIT_EXPECT_EQ(test, far_take_each(far, who, KEFA_HANDSHAKE_PKT, 0), 1U);
		KUNIT_EXPECT_EQ(test, far_take_each(far, who, KEFA_RECEIPT_PKT, KEFA_STATUS_RNR),
				2U * KEFA_OWED_MAX);
	}
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	ask_write(far, 0, KEFA_DC_EAGER_RTW_PKT, 0, 1);
	KUNIT_EXPECT_EQ(test, far_take_each(far, 0, KEFA_RECEIPT_PKT, KEFA_STATUS_RNR), 2U);
	KUNIT_EXPECT_FALSE(test, peer_dead(far, far->pair->end[1].peer));
	KUNIT_EXPECT_EQ(test, far->rdm->stats.cut, 1ULL);
	KUNIT_EXPECT_NE(test, peer_dead(far, other), peer_dead(far, third));
}

/* Long writes of a peer that takes no RECEIPT for them. */
static void owe_receipts(struct far *far, u32 who, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		ask_long(far, who, KEFA_DC_LONGCTS_RTW_PKT, i);
		far_take_each(far, who, KEFA_HANDSHAKE_PKT, 0);
		far_take_each(far, who, KEFA_CTS_PKT, KEFA_STATUS_RNR);
		send_data(far, who, op_in(far, KEFA_ROP_DATA_RX), 4000, 4000);
	}
}

/* The same for answers that occupy operations. */
static void crowd_worst_owed(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	const fi_addr_t other = far_friend(far, 1), third = far_friend(far, 2);

	set_delay(far, 20000);
	owe_receipts(far, 1, KEFA_OWED_MAX);
	owe_receipts(far, 2, KEFA_OWED_MAX);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	KUNIT_EXPECT_EQ(test, far->rdm->rops.used, 2U * KEFA_OWED_MAX);
	owe_receipts(far, 0, 1);
	KUNIT_EXPECT_FALSE(test, peer_dead(far, far->pair->end[1].peer));
	KUNIT_EXPECT_EQ(test, far->rdm->stats.cut, 1ULL);
	KUNIT_EXPECT_NE(test, peer_dead(far, other), peer_dead(far, third));
}

/* A peer that isn't ready, and the only one, doesn't die of many short reads. */
static void crowd_alone(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	unsigned int i, n = 0;

	set_delay(far, LONG_MS);
	for (i = 0; i < KEFA_OWED_MAX + 8; i++)
		ask_read(far, 0, KEFA_SHORT_RTR_PKT, i + 1, 8, 8);
	KUNIT_EXPECT_EQ(test, far_take_each(far, 0, KEFA_READRSP_PKT, KEFA_STATUS_RNR),
			2U * KEFA_OWED_MAX);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	while (n < i && kofi_soon(far_take_of(far, 0, KEFA_READRSP_PKT, 0)))
		n++;
	KUNIT_EXPECT_EQ(test, n, i);
	rdm_expect_whole(test, far->pair);
}

/* Packets that lack copy buffers don't make their peer's delay longer. */
static void crowd_delay(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .depth = 256 });
	struct rdm_end *end = &far->pair->end[1];
	unsigned int i;

	far_friend(far, 1);
	set_delay(far, LONG_MS);
	far->rdm->backoffs.max_us = 10 * LONG_MS * USEC_PER_MSEC;
	KUNIT_EXPECT_EQ(test, park_reads(far, 1), 1U);
	/* The other peer has all of them. */
	for (i = 0; i < 20; i++)
		ask_read(far, 1, KEFA_SHORT_RTR_PKT, i + 1, 4000, 4000);
	msleep(LONG_MS + 500);
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, list_count_nodes(&far->rdm->parked), (size_t)1);
	KUNIT_EXPECT_EQ(test, far_peer(end)->backoff.delay_us, LONG_MS * USEC_PER_MSEC);
	KUNIT_EXPECT_GT(test, far_take_each(far, 1, KEFA_READRSP_PKT, 0), 8U);
	KUNIT_EXPECT_TRUE(test, kofi_soon(far_take_of(far, 0, KEFA_READRSP_PKT, 0)));
	far_take_all(far);
	rdm_expect_whole(test, far->pair);
}

/* The ULP's own packets to a peer don't count as data for its reads. */
static void crowd_own(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct rdm_end *end = &far->pair->end[1];
	unsigned int i;

	far_friend(far, 1);
	for (i = 0; i < far->rdm->ts_share / 2 + 4; i++)
		KUNIT_EXPECT_EQ(test, fi_send(end->ep, far->data, 8, NULL, end->peer, NULL), 0);
	ask_read(far, 0, KEFA_SHORT_RTR_PKT, 1, 100, 100);
	KUNIT_EXPECT_EQ(test, far_peer(end)->answers, 1);
	KUNIT_EXPECT_TRUE(test, far_take(far, KEFA_READRSP_PKT, 0));
	KUNIT_EXPECT_EQ(test, far_peer(end)->answers, 0);
	ask_read(far, 0, KEFA_LONGCTS_RTR_PKT, 2, 20000, 4000);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_READRSP_PKT, 0));
	say_cts(far, far->hdr.send_id, 16000);
	KUNIT_EXPECT_EQ(test, far_take_each(far, 0, KEFA_CTSDATA_PKT, 0), 2U);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(end->remote), 20100ULL);
	KUNIT_EXPECT_EQ(test, far_peer(end)->answers, 0);
	far_take_all(far);
	rdm_read_all(end, 0);
	rdm_expect_whole(test, far->pair);
}

/*
 * The ULP's packets to a peer that isn't ready hold no copy buffers: those to others get theirs.
 * The data isn't contiguous, so it is copied.
 */
static void crowd_own_copies(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .depth = 256, .homogeneous = true });
	struct rdm_end *end = &far->pair->end[1];
	const fi_addr_t other = far_friend(far, 1);
	unsigned int n;

	far_delay(far);
	for (n = 0; n < KEFA_COPIES; n++) {
		efa_fill(far->mem + 100, 6000, n);
		KUNIT_EXPECT_EQ(test, fi_tsend(end->ep, far->mem + 100, 6000, NULL, end->peer, n,
					       NULL), 0);
	}
	KUNIT_EXPECT_EQ(test, far->rdm->ep.ncopies, 0U);
	KUNIT_EXPECT_EQ(test, far_take_each(far, 0, KEFA_EAGER_TAGRTM_PKT, KEFA_STATUS_RNR),
			2U * KEFA_COPIES);
	KUNIT_EXPECT_EQ(test, fi_tsend(end->ep, far->mem + 100, 6000, NULL, other, 99, NULL), 0);
	KUNIT_EXPECT_TRUE(test, far_take_of(far, 1, KEFA_EAGER_TAGRTM_PKT, 0));
	KUNIT_EXPECT_EQ(test, far->hdr.tag, 99ULL);
	far_delay_end(far);
	for (n = 0; n < KEFA_COPIES; n++) {
		if (!far_take_of(far, 0, KEFA_EAGER_TAGRTM_PKT, 0))
			break;
		KUNIT_EXPECT_EQ(test, far->hdr.tag, (u64)n);
		KUNIT_EXPECT_TRUE(test, efa_filled(far->hdr.data, far->hdr.data_len, n));
	}
	KUNIT_EXPECT_EQ(test, n, (unsigned int)KEFA_COPIES);
	far_take_all(far);
	KUNIT_EXPECT_EQ(test, rdm_read_all(end, 0), KEFA_COPIES + 1U);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	rdm_expect_whole(test, far->pair);
}

/* --- requests that wait --- */

/* The other long requests of a peer that has its share aren't even looked at. */
static void crowd_unseen(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct fid_mr *mr;
	unsigned int i;
	u32 id;

	KUNIT_ASSERT_EQ(test, fi_mr_reg(far->pair->domain, far->mem, FAR_BYTES, FI_REMOTE_WRITE, 0,
					0, 0, &mr, NULL), 0);
	for (i = 0; i <= KEFA_TARGETS_PEER; i++)
		ask_long(far, 0, KEFA_LONGCTS_RTW_PKT, i + 1);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_CTS_PKT, 0));
	id = far->hdr.recv_id;
	for (i = 0; i < 5; i++)
		far_send(far, &(struct far_pkt) {
			.type = KEFA_LONGCTS_RTW_PKT, .id = 100 + i, .n = 1,
			.mem = { { mr->base_addr, 8000, fi_mr_key(mr) } }, .data = far->data,
			.len = 4000,
		});
	KUNIT_EXPECT_EQ(test, far->rdm->stats.waited, 6ULL);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	for (i = 0; i < 3; i++)
		rdm_expect_nothing(test, &far->pair->end[1]);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_KEY), 0ULL);
	send_data(far, 0, id, 4000, 4000);
	for (i = 0; i < 3; i++)
		rdm_expect_nothing(test, &far->pair->end[1]);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_KEY), 5ULL);
	KUNIT_EXPECT_TRUE(test, list_empty(&far->rdm->asked));
	far_take_all(far);
}

/* A request that can't begin isn't read in vain each time. */
static void crowd_no_copy(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	unsigned int i;
	u64 copied, bytes;

	for (i = 0; i < KEFA_TARGETS_PEER + 3; i++) {
		ask_read(far, 0, KEFA_LONGCTS_RTR_PKT, i + 1, 50000, 8000);
		far_take_each(far, 0, KEFA_READRSP_PKT, 0);
	}
	KUNIT_EXPECT_EQ(test, far->rdm->stats.waited, 3ULL);
	copied = far->rdm->stats.copied;
	bytes = far->rdm->ep.stats.tx_bytes;
	for (i = 0; i < 10; i++)
		rdm_expect_nothing(test, &far->pair->end[1]);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.copied, copied);
	KUNIT_EXPECT_EQ(test, far->rdm->ep.stats.tx_bytes, bytes);
	KUNIT_EXPECT_FALSE(test, list_empty(&far->rdm->asked));
}

/* One that can be carried out doesn't wait for those before it. */
static void crowd_behind(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	unsigned int i;

	far_friend(far, 1);
	for (i = 0; i < KEFA_CQ_RESERVE; i++)
		ask_write(far, 0, KEFA_EAGER_RTW_PKT, DATA, 20000 + i);
	for (i = 0; i < KEFA_TARGETS_PEER + 100; i++)
		ask_long(far, 0, KEFA_LONGCTS_RTW_PKT, i);
	ask_write(far, 1, KEFA_EAGER_RTW_PKT, DATA, 60000);
	KUNIT_EXPECT_EQ(test, far->mem[60000], 0);
	KUNIT_EXPECT_EQ(test, rdm_read(&far->pair->end[1]).ret, 1);
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, far->mem[60000], 'x');
}

/* Nor for any number of those whose peer isn't ready. */
static void crowd_passed_over(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct kefa_rdm *rdm = far->rdm;
	unsigned int i;
	u32 nfree;

	far_friend(far, 1);
	set_delay(far, 20000);
	KUNIT_EXPECT_EQ(test, park_reads(far, 1), 1U);
	for (i = 0; i < 2 * KEFA_ASKED_TRIES; i++)
		ask_read(far, 0, KEFA_SHORT_RTR_PKT, i + 2, 8, 8);
	far->mem[60000] = 0;
	spin_lock_bh(&rdm->ep.lock);
	nfree = rdm->ts_nfree;
	rdm->ts_nfree = 0;
	spin_unlock_bh(&rdm->ep.lock);
	ask_write(far, 1, KEFA_DC_EAGER_RTW_PKT, 0, 60000);
	KUNIT_EXPECT_EQ(test, far->mem[60000], 0);
	spin_lock_bh(&rdm->ep.lock);
	rdm->ts_nfree = nfree;
	kefa_rdm_pump(rdm);
	spin_unlock_bh(&rdm->ep.lock);
	KUNIT_EXPECT_EQ(test, far->mem[60000], 'x');
	KUNIT_EXPECT_EQ(test, list_count_nodes(&rdm->asked), 2UL * KEFA_ASKED_TRIES);
}

/* A write whose beginning went to memory that was registered anew meanwhile isn't continued. */
static void crowd_renewed(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	const struct fi_mr_alloc_attr alloc = {
		.max_pages = 32, .access = FI_REMOTE_WRITE, .cq = far->pair->end[0].cq,
	};
	struct kvec iov = { far->mem + SZ_64K, 2 * PAGE_SIZE };
	const struct fi_mr_attr attr = {
		.type = FI_MR_KVEC, .mr_iov = &iov, .iov_count = 1, .access = FI_REMOTE_WRITE,
	};
	unsigned int i;
	struct fid_mr *to;
	u64 key;
	u32 id;

	KUNIT_ASSERT_EQ(test, fi_mr_alloc(far->pair->domain, &alloc, &to, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(to, &attr, 0), 0);
	efake_settle_all();
	key = fi_mr_key(to);
	for (i = 0; i < KEFA_TARGETS_PEER; i++)
		ask_long(far, 0, KEFA_LONGCTS_RTW_PKT, i + 1);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_CTS_PKT, 0));
	id = far->hdr.recv_id;
	far_send(far, &(struct far_pkt) {
		.type = KEFA_LONGCTS_RTW_PKT, .id = 100, .n = 1,
		.mem = { { to->base_addr, 8000, key } }, .data = far->data, .len = 4000,
	});
	KUNIT_EXPECT_EQ(test, far->rdm->stats.waited, 1ULL);
	i = 0;
	do {
		KUNIT_EXPECT_EQ(test, fi_mr_post_inval(to, 0, NULL), 0);
		efake_settle_all();
		KUNIT_EXPECT_EQ(test, fi_mr_post_reg(to, &attr, 0), 0);
		efake_settle_all();
	} while (fi_mr_key(to) != key && i++ < 20);
	KUNIT_ASSERT_EQ(test, fi_mr_key(to), key);
	send_data(far, 0, id, 4000, 4000);
	KUNIT_EXPECT_TRUE(test, list_empty(&far->rdm->asked));
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_KEY), 1ULL);
	KUNIT_EXPECT_EQ(test, fi_mr_post_inval(to, 0, NULL), 0);
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, fi_close(&to->fid), 0);
}

/* --- operations --- */

/* However many answers a peer lets wait, the ULP has an operation for each of its slots. */
static void crowd_operations(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	const struct kefa_rdm *rdm = far->rdm;
	u32 least = U32_MAX, left;
	unsigned int i;
	u32 id;

	for (i = 0; i < 150; i++) {
		ask_long(far, 0, KEFA_DC_LONGCTS_RTW_PKT, i);
		id = op_in(far, KEFA_ROP_DATA_RX);
		if (id)
			send_data(far, 0, id, 4000, 4000);
		left = rdm->rops.size - rdm->rops.used;
		least = min(least, left);
	}
	KUNIT_EXPECT_GE(test, least, rdm->ep.tx.nfree + rdm->ep.rx.nfree);
	for (i = 0; !rdm_trecv(far->pair, 8, 1000 + i, i + 1); i++)
		;
	KUNIT_EXPECT_EQ(test, (size_t)i, rdm->ep.rx.base.size);
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0ULL);
	far_take_all(far);
}

/* The ULP doesn't wait for what a peer may or may not do. */
static void crowd_awaits(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	bool awaits;

	ask_read(far, 0, KEFA_LONGCTS_RTR_PKT, 1, 50000, 100);
	ask_long(far, 0, KEFA_LONGCTS_RTW_PKT, 2);
	far_take_all(far);
	KUNIT_EXPECT_NE(test, op_in(far, KEFA_ROP_GRANT), 0U);
	spin_lock_bh(&far->rdm->ep.lock);
	awaits = kefa_rdm_awaits(far->rdm);
	spin_unlock_bh(&far->rdm->ep.lock);
	KUNIT_EXPECT_FALSE(test, awaits);
}

/* --- completions --- */

/* Peers in no address vector leave entries of the completion queue to the others. */
static void crowd_entries(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .stranger = true });
	unsigned int i, n = 0;

	far_friend(far, 1);
	for (i = 0; i < KEFA_CQ_RESERVE; i++)
		ask_write(far, 0, KEFA_EAGER_RTW_PKT, DATA, i);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].remote), KEFA_CQ_RESERVE / 2ULL);
	ask_write(far, 1, KEFA_EAGER_RTW_PKT, DATA, 60000);
	KUNIT_EXPECT_EQ(test, far->mem[60000], 'x');
	for (i = 0; i < 1000 && n <= KEFA_CQ_RESERVE; i++) {
		n += rdm_read(&far->pair->end[1]).ret == 1;
		efake_settle_all();
	}
	KUNIT_EXPECT_EQ(test, n, KEFA_CQ_RESERVE + 1U);
	far_take_all(far);
	rdm_expect_whole(test, far->pair);
}

/* A write that lacks its share takes no entry, whose return would have all others tried again. */
static void crowd_entries_untouched(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .stranger = true });
	struct kefa_rdm *rdm = far->rdm;
	unsigned int i;
	bool half, waits;

	far_friend(far, 1);
	for (i = 0; i <= KEFA_TARGETS_PEER; i++)
		far_send(far, &(struct far_pkt) {
			.who = 1, .type = KEFA_LONGCTS_RTW_PKT, .flags = DATA, .id = i, .n = 1,
			.mem = { far_piece(far, 0, 8000) }, .data = far->data, .len = 4000,
		});
	KUNIT_EXPECT_EQ(test, rdm->stats.waited, 1ULL);
	for (i = 0; i < KEFA_CQ_RESERVE / 2 - KEFA_TARGETS_PEER; i++)
		ask_write(far, 0, KEFA_EAGER_RTW_PKT, DATA, 20000 + i);
	spin_lock_bh(&rdm->ep.lock);
	half = kefa_cq_half(rdm);
	kefa_rdm_pump(rdm);
	waits = !list_empty(&rdm->waiter.list);
	spin_unlock_bh(&rdm->ep.lock);
	KUNIT_EXPECT_FALSE(test, half);
	KUNIT_EXPECT_TRUE(test, waits);
	far_take_all(far);
}

/* Messages that wait for an entry go first. */
static void crowd_entries_in_turn(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct kefa_rpeer *peer = far_peer(&far->pair->end[1]);
	struct kefa_rdm *rdm = far->rdm;
	bool first, other, then;
	LIST_HEAD(message);

	spin_lock_bh(&rdm->ep.lock);
	list_add(&message, &rdm->fair.untold);
	first = kefa_target_room(rdm, peer, DATA);
	other = kefa_target_room(rdm, peer, 0);
	list_del(&message);
	then = kefa_target_room(rdm, peer, DATA);
	if (then)
		kefa_target_unroom(rdm, true);
	spin_unlock_bh(&rdm->ep.lock);
	KUNIT_EXPECT_FALSE(test, first);
	KUNIT_EXPECT_TRUE(test, other);
	KUNIT_EXPECT_TRUE(test, then);
}

/* The device of a peer has written. Return: false without a receive. */
static bool written(struct far *far, u32 qpn)
{
	struct efake_wr *recv = efake_recv(far->pair->end[1].qp, 0);
	const struct kefa_wc wc = {
		.write = true, .has_imm = true, .imm = 5, .src_qpn = qpn, .slid = RDM_SLID,
	};

	if (recv)
		efake_recv_done(recv, &wc);
	efake_settle_all();
	return recv;
}

/* A flood of writes by a device is that peer's fault, or nobody's. */
static void crowd_immediates(struct kunit *test)
{
	unsigned int known, i;

	for (known = 0; known < 2; known++) {
		struct far *far = far_new(test, &(struct rdm_opts) { .depth = 16 });
		const u32 qpn = far->pair->end[0].name.qpn + (known ? 0 : 50);
		const fi_addr_t other = far_friend(far, 1);

		far->rdm->budget = SZ_16K;
		/* The ULP waits for an answer. */
		KUNIT_EXPECT_EQ(test, fi_read(far->pair->end[1].ep, far->data, 8, NULL,
					      far->pair->end[1].peer, 0x1000, 5, (void *)9), 0);
		far_take_all(far);
		far_send(far, &(struct far_pkt) {
			.who = 1, .type = KEFA_EAGER_MSGRTM_PKT, .data = "message", .len = 7,
		});
		far_take_all(far);
		KUNIT_EXPECT_EQ(test, far->rdm->stats.unexpected, 1ULL);
		for (i = 0; i < 2000 && written(far, qpn) && !far->rdm->stats.deaths; i++)
			;
		efake_settle_all();
		KUNIT_EXPECT_GT(test, i, 300U);
		KUNIT_EXPECT_FALSE(test, peer_dead(far, other));
		KUNIT_EXPECT_EQ(test, peer_dead(far, far->pair->end[1].peer), known);
		far_end(far);
	}
}

/* A task that waits for a counter of peers' writes needs the device's events. */
static void crowd_counter(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct rdm_end *end = &far->pair->end[0];
	struct kefa_ep *kep;
	struct fid_ep *ep;

	KUNIT_ASSERT_EQ(test, fi_endpoint(far->pair->domain, far->pair->info, &ep, NULL), 0);
	kep = to_kefa_ep(ep);
	kep->caps |= FI_RMA | FI_REMOTE_WRITE | FI_RMA_EVENT;
	kep->rx.base.events = true;
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &end->av->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &end->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &end->remote->fid, FI_REMOTE_WRITE), 0);
	KUNIT_EXPECT_EQ(test, fi_enable(ep), 0);
	KUNIT_EXPECT_FALSE(test, kep->by_readers);
	KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
}

/* --- wrong keys --- */

static void guess(struct far *far, struct far_pkt *p)
{
	p->mem[0].key += 0x100000;
	far_send(far, p);
}

static void crowd_keys(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .stranger = true });
	const fi_addr_t friend = far_friend(far, 1);
	struct far_pkt p = { .type = KEFA_SHORT_RTR_PKT, .window = 1, .n = 1 };
	unsigned int i;

	p.mem[0] = far_piece(far, 0, 1);
	p.mem[0].key ^= 0x4000;
	for (p.who = 1, i = 0; i < 200; i++)
		guess(far, &p);
	KUNIT_EXPECT_FALSE(test, peer_dead(far, friend));
	/* All requests to a region that was closed have one key. */
	for (p.who = 0, i = 0; i < 100; i++)
		far_send(far, &p);
	for (i = 1; i < KEFA_FAULTS_MAX; i++)
		guess(far, &p);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_KEY), 363ULL);
	/* Two keys may have the same hash. */
	for (i = 0; i < 5 && !far->rdm->stats.deaths; i++)
		guess(far, &p);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 1ULL);
	far_take_all(far);
	rdm_expect_whole(test, far->pair);
}

/* A request for too much of a region, or without permission, is no guess. */
static void crowd_ranges(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .stranger = true });
	struct far_pkt p = { .type = KEFA_SHORT_RTR_PKT, .window = 1, .n = 1 };
	unsigned int i;

	p.mem[0] = far_piece(far, FAR_BYTES, 1);
	for (i = 0; i < 2 * KEFA_FAULTS_MAX; i++)
		far_send(far, &p);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_RANGE), 2ULL * KEFA_FAULTS_MAX);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
}

static struct kunit_case crowd_cases[] = {
	KUNIT_CASE(crowd_not_ready),
	KUNIT_CASE(crowd_receipts),
	KUNIT_CASE(crowd_not_ready_closed),
	KUNIT_CASE(crowd_stranger_parks),
	KUNIT_CASE(crowd_parked_stalls),
	KUNIT_CASE(crowd_worst),
	KUNIT_CASE(crowd_worst_owed),
	KUNIT_CASE_SLOW(crowd_alone),
	KUNIT_CASE_SLOW(crowd_delay),
	KUNIT_CASE(crowd_own),
	KUNIT_CASE(crowd_own_copies),
	KUNIT_CASE(crowd_unseen),
	KUNIT_CASE(crowd_no_copy),
	KUNIT_CASE(crowd_behind),
	KUNIT_CASE(crowd_passed_over),
	KUNIT_CASE(crowd_renewed),
	KUNIT_CASE(crowd_operations),
	KUNIT_CASE(crowd_awaits),
	KUNIT_CASE(crowd_entries),
	KUNIT_CASE(crowd_entries_in_turn),
	KUNIT_CASE(crowd_entries_untouched),
	KUNIT_CASE(crowd_immediates),
	KUNIT_CASE(crowd_counter),
	KUNIT_CASE(crowd_keys),
	KUNIT_CASE(crowd_ranges),
	{}
};

static struct kunit_suite crowd_suite = {
	.name		= "kefa_rdm_crowd",
	.test_cases	= crowd_cases,
};

kunit_test_suite(crowd_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, shares of peers that read and write");
MODULE_LICENSE("Dual BSD/GPL");
