// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fabric efa as the target of peers' atomic operations, which a case makes up. */
#ifdef CONFIG_ARCH_HAS_KERNEL_FPU_SUPPORT
#include <linux/fpu.h>
#endif
#include "crew.h"
#include "efa_rdm_far.h"

/* Return: the number that is the turn of the first endpoint's next message. */
static u32 turn(struct far *far)
{
	return far_peer(&far->pair->end[1])->order.exp_id;
}

/* A valid operation in its turn: add 1 to @n words of 64 bits at @off. */
static struct far_pkt sum(struct far *far, u8 type, u64 off, u32 n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		((u64 *)far->data)[i] = 1;
	return (struct far_pkt) {
		.type = type, .msg_id = turn(far), .datatype = FI_UINT64, .op = FI_SUM, .n = 1,
		.mem = { far_piece(far, off, 8 * n) }, .data = far->data, .len = 8 * n,
	};
}

/* Out of line, for the sake of the caller's frame. */
static noinline void send_sum(struct far *far, u8 type, u64 off)
{
	struct far_pkt p = sum(far, type, off, 1);

	far_send(far, &p);
}

/* The same for @n words and another peer, whose message has a number. */
static noinline void send_sum_of(struct far *far, u32 who, u8 type, u64 off, u32 n, u32 msg_id)
{
	struct far_pkt p = sum(far, type, off, n);

	p.who = who;
	p.msg_id = msg_id;
	far_send(far, &p);
}

static void check_peers(struct far *far, unsigned int n)
{
	while (n--) {
		rdm_check_peers(far->rdm);
		efake_settle_all();
	}
}

/* Take all slots. Return: their number, to be given back. */
static u32 take_slots(struct far *far)
{
	u32 n;

	spin_lock_bh(&far->rdm->ep.lock);
	n = far->rdm->ts_nfree;
	far->rdm->ts_nfree = 0;
	spin_unlock_bh(&far->rdm->ep.lock);
	return n;
}

static void give_slots(struct far *far, u32 n)
{
	spin_lock_bh(&far->rdm->ep.lock);
	far->rdm->ts_nfree += n;
	spin_unlock_bh(&far->rdm->ep.lock);
}

static u64 *word(struct far *far, u64 off)
{
	return (u64 *)(far->mem + off);
}

static void rta_writes(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct far_pkt p = sum(far, KEFA_WRITE_RTA_PKT, 4088, 2);

	far_send(far, &p);
	KUNIT_EXPECT_EQ(test, *word(far, 4088), 1ULL);
	KUNIT_EXPECT_EQ(test, *word(far, 4096), 1ULL);
	KUNIT_EXPECT_EQ(test, far->pair->end[1].qp->nsent, 0U);
	/* The same number again is a duplicate. */
	far_send(far, &p);
	KUNIT_EXPECT_EQ(test, *word(far, 4088), 1ULL);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_DUP), 1ULL);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].remote), 16ULL);
	rdm_expect_nothing(test, &far->pair->end[1]);
	rdm_expect_whole(test, far->pair);
}

/* A RECEIPT stays in its slot until the peer has a receive for it. */
static void rta_receipt(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct far_pkt p = sum(far, KEFA_DC_WRITE_RTA_PKT, 0, 1);
	unsigned int i;

	p.id = 0x77;
	far_send(far, &p);
	for (i = 0; i < 5; i++) {
		KUNIT_EXPECT_TRUE(test, kofi_soon(far_take(far, KEFA_RECEIPT_PKT,
							   KEFA_STATUS_RNR)));
		KUNIT_EXPECT_EQ(test, far->hdr.send_id, 0x77U);
	}
	KUNIT_EXPECT_TRUE(test, kofi_soon(far_take(far, KEFA_RECEIPT_PKT, 0)));
	KUNIT_EXPECT_EQ(test, *word(far, 0), 1ULL);
	rdm_expect_whole(test, far->pair);
}

/* So does an ATOMRSP, short or long, whose old values are those of its one execution. */
static void rta_fetch(struct kunit *test)
{
	static const u32 counts[] = { 1, 61, 62, 1000 };
	struct far *far = far_new(test, NULL);
	struct far_pkt p;
	unsigned int i, j, n;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		n = counts[i];
		efa_fill(far->mem, 8 * n, i);
		p = sum(far, KEFA_FETCH_RTA_PKT, 0, n);
		p.id = 0x99 + i;
		far_send(far, &p);
		for (j = 0; j < 5; j++) {
			KUNIT_EXPECT_TRUE(test, kofi_soon(far_take(far, KEFA_ATOMRSP_PKT, j < 4 ?
								   KEFA_STATUS_RNR : 0)));
			KUNIT_EXPECT_EQ(test, far->hdr.recv_id, 0x99U + i);
			KUNIT_EXPECT_EQ(test, far->hdr.seg_length, 8ULL * n);
			KUNIT_EXPECT_TRUE(test, efa_filled((void *)far->hdr.data, 8 * n, i));
		}
		for (j = 0; j < n; j++)
			KUNIT_EXPECT_EQ(test, *word(far, 8 * j), ((u64 *)far->hdr.data)[j] + 1);
		KUNIT_EXPECT_FALSE(test, far_take(far, KEFA_ATOMRSP_PKT, 0));
	}
	KUNIT_EXPECT_EQ(test, far->rdm->stats.sent[KEFA_ATOMRSP_PKT], (u64)ARRAY_SIZE(counts));
	rdm_expect_whole(test, far->pair);
}

static void rta_compare(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	u32 *data = (u32 *)far->data;
	const struct far_pkt p = {
		.type = KEFA_COMPARE_RTA_PKT, .msg_id = turn(far), .datatype = FI_UINT32,
		.op = FI_CSWAP, .n = 1, .mem = { far_piece(far, 12, 8) }, .data = data, .len = 16,
	};

	memcpy(data, ((u32[]) { 10, 11, 5, 7 }), 16);
	memcpy(far->mem + 12, ((u32[]) { 5, 6 }), 8);
	far_send(far, &p);
	KUNIT_EXPECT_TRUE(test, far_take(far, KEFA_ATOMRSP_PKT, 0));
	KUNIT_EXPECT_EQ(test, far->hdr.data_len, (size_t)8);
	KUNIT_EXPECT_MEMEQ(test, far->hdr.data, ((u32[]) { 5, 6 }), 8);
	KUNIT_EXPECT_MEMEQ(test, far->mem + 12, ((u32[]) { 10, 6 }), 8);
	rdm_expect_whole(test, far->pair);
}

/* An atomic read has operands or not, and changes nothing. */
static void rta_read(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct far_pkt p;
	unsigned int i;

	*word(far, 8) = 0x1234;
	for (i = 0; i < 2; i++) {
		p = sum(far, KEFA_FETCH_RTA_PKT, 8, 1);
		p.op = FI_ATOMIC_READ;
		p.len = i ? 8 : 0;
		far_send(far, &p);
		KUNIT_EXPECT_TRUE(test, far_take(far, KEFA_ATOMRSP_PKT, 0));
		KUNIT_EXPECT_EQ(test, *(u64 *)far->hdr.data, 0x1234ULL);
		KUNIT_EXPECT_EQ(test, *word(far, 8), 0x1234ULL);
	}
	rdm_expect_whole(test, far->pair);
}

/* --- refusals --- */

/* An operation that is wrong, and the reason that is counted. */
static const struct wrong {
	const char	*name;
	u8		type;
	u32		datatype, op;
	s64		addr;		/* added to the address */
	s64		len;		/* added to the length */
	u64		key;		/* exclusive-ored with the key */
	u64		access;		/* of the region */
	u64		caps;		/* that the endpoint lacks */
	bool		empty;		/* no operands */
	u8		drop;
} wrongs[] = {
	{ "nothing", KEFA_WRITE_RTA_PKT, FI_UINT64, FI_SUM, .drop = KEFA_DROPS },
	{ "unknown type", KEFA_WRITE_RTA_PKT, 77, FI_SUM, .drop = KEFA_DROP_TYPE },
	{ "largest type", KEFA_FETCH_RTA_PKT, U32_MAX, FI_SUM, .drop = KEFA_DROP_TYPE },
	{ "long double", KEFA_WRITE_RTA_PKT, FI_LONG_DOUBLE, FI_SUM, .drop = KEFA_DROP_TYPE },
	{ "unknown operation", KEFA_WRITE_RTA_PKT, FI_UINT64, FI_ATOMIC_OP_LAST,
	  .drop = KEFA_DROP_TYPE },
	{ "largest operation", KEFA_FETCH_RTA_PKT, FI_UINT64, U32_MAX, .drop = KEFA_DROP_TYPE },
	{ "read in a write", KEFA_WRITE_RTA_PKT, FI_UINT64, FI_ATOMIC_READ,
	  .drop = KEFA_DROP_TYPE },
	{ "empty read in a write", KEFA_WRITE_RTA_PKT, FI_UINT64, FI_ATOMIC_READ, .empty = true,
	  .drop = KEFA_DROP_TYPE },
	{ "swap in a fetch", KEFA_FETCH_RTA_PKT, FI_UINT64, FI_CSWAP, .drop = KEFA_DROP_TYPE },
	{ "bits of a double", KEFA_FETCH_RTA_PKT, FI_DOUBLE, FI_BOR, .drop = KEFA_DROP_TYPE },
	{ "misaligned", KEFA_WRITE_RTA_PKT, FI_UINT64, FI_SUM, .addr = 4,
	  .drop = KEFA_DROP_TYPE },
	{ "half an element", KEFA_DC_WRITE_RTA_PKT, FI_UINT64, FI_SUM, .len = -4,
	  .drop = KEFA_DROP_TYPE },
	{ "no element", KEFA_FETCH_RTA_PKT, FI_UINT64, FI_SUM, .len = -16,
	  .drop = KEFA_DROP_TYPE },
	{ "more than an answer has", KEFA_FETCH_RTA_PKT, FI_UINT64, FI_ATOMIC_READ,
	  .len = 3 * PAGE_SIZE, .empty = true, .drop = KEFA_DROP_TYPE },
	{ "key", KEFA_WRITE_RTA_PKT, FI_UINT64, FI_SUM, .key = 1ULL << 22, .drop = KEFA_DROP_KEY },
	{ "long key", KEFA_FETCH_RTA_PKT, FI_UINT64, FI_SUM, .key = 1ULL << 40,
	  .drop = KEFA_DROP_KEY },
	{ "beyond the end", KEFA_WRITE_RTA_PKT, FI_UINT64, FI_SUM, .addr = FAR_BYTES - 8,
	  .drop = KEFA_DROP_RANGE },
	{ "far beyond the end", KEFA_DC_WRITE_RTA_PKT, FI_UINT64, FI_SUM, .addr = 1LL << 40,
	  .drop = KEFA_DROP_RANGE },
	{ "write to a region for reads", KEFA_WRITE_RTA_PKT, FI_UINT64, FI_SUM,
	  .access = FI_REMOTE_READ, .drop = KEFA_DROP_ACCESS },
	{ "fetch from a region for reads", KEFA_FETCH_RTA_PKT, FI_UINT64, FI_SUM,
	  .access = FI_REMOTE_READ, .drop = KEFA_DROP_ACCESS },
	{ "fetch from a region for writes", KEFA_FETCH_RTA_PKT, FI_UINT64, FI_SUM,
	  .access = FI_REMOTE_WRITE, .drop = KEFA_DROP_ACCESS },
	{ "read of a region for reads", KEFA_FETCH_RTA_PKT, FI_UINT64, FI_ATOMIC_READ,
	  .access = FI_REMOTE_READ, .drop = KEFA_DROPS },
	{ "no atomics", KEFA_WRITE_RTA_PKT, FI_UINT64, FI_SUM, .caps = FI_ATOMIC,
	  .drop = KEFA_DROP_TYPE },
	{ "no writes", KEFA_FETCH_RTA_PKT, FI_UINT64, FI_SUM, .caps = FI_REMOTE_WRITE,
	  .drop = KEFA_DROP_TYPE },
};

KUNIT_ARRAY_PARAM_DESC(wrong, wrongs, name);

static noinline void send_wrong(struct far *far, const struct wrong *w)
{
	struct far_pkt p = sum(far, w->type, 0, 2);

	p.datatype = w->datatype;
	p.op = w->op;
	p.mem[0].addr += w->addr;
	p.mem[0].len += w->len;
	p.mem[0].key ^= w->key;
	p.len = w->empty ? 0 : p.mem[0].len;
	far->rdm->ep.caps &= ~w->caps;
	far_send(far, &p);
	far->rdm->ep.caps |= w->caps;
}

/* Nothing is written or answered, and the peer's next operation isn't held up. */
static void rta_refused(struct kunit *test)
{
	const struct wrong *w = test->param_value;
	struct far *far = far_new(test, NULL);
	const u32 first = turn(far);
	struct fid_mr *mr = NULL;
	unsigned int i;
	u64 n = 0;

	if (w->access) {
		KUNIT_ASSERT_EQ(test, fi_mr_reg(far->pair->domain, far->mem, FAR_BYTES, w->access,
						0, 0, 0, &mr, NULL), 0);
		swap(mr, far->mr);
	}
	send_wrong(far, w);
	if (w->access)
		swap(mr, far->mr);
	for (i = 0; i < KEFA_DROPS; i++)
		n += far->rdm->stats.dropped[i];
	KUNIT_EXPECT_EQ(test, n, (u64)(w->drop < KEFA_DROPS));
	if (w->drop < KEFA_DROPS) {
		KUNIT_EXPECT_EQ(test, far_dropped(far, w->drop), 1ULL);
		KUNIT_EXPECT_EQ(test, far->pair->end[1].qp->nsent, 0U);
		KUNIT_EXPECT_NULL(test, memchr_inv(far->mem, 0, FAR_BYTES));
	}
	far_take_all(far);
	KUNIT_EXPECT_EQ(test, turn(far), first + 1);
	send_sum(far, KEFA_WRITE_RTA_PKT, 800);
	KUNIT_EXPECT_EQ(test, *word(far, 800), 1ULL);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	if (mr)
		KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	rdm_expect_whole(test, far->pair);
}

/* Have the second endpoint receive a write by the first one's device, with data. */
static void arrive_imm(struct far *far)
{
	const struct kefa_wc wc = {
		.write = true, .has_imm = true, .imm = 5, .slid = RDM_SLID,
		.src_qpn = far->pair->end[0].name.qpn,
	};

	efake_recv_done(efake_recv(far->pair->end[1].qp, 0), &wc);
	efake_settle_all();
}

/* An endpoint with FI_ATOMIC alone carries out no reads and writes, fast or slow. */
static void rta_alone(struct kunit *test)
{
	static const u8 types[] = {
		KEFA_EAGER_RTW_PKT, KEFA_DC_EAGER_RTW_PKT, KEFA_LONGCTS_RTW_PKT,
		KEFA_DC_LONGCTS_RTW_PKT, KEFA_LONGREAD_RTW_PKT, KEFA_SHORT_RTR_PKT,
		KEFA_LONGCTS_RTR_PKT,
	};
	struct far *far = far_new(test, &(struct rdm_opts) { .caps = KEFA_RDM_CAPS & ~FI_RMA });
	struct far_pkt p = { .n = 1, .mem = { far_piece(far, 0, 16) }, .data = far->data };
	unsigned int i;

	KUNIT_EXPECT_NULL(test, far->rdm->targets);
	memset(far->data, 0xff, 16);
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		p.type = types[i];
		p.len = i < 2 ? 16 : i < 4 ? 8 : 0;
		p.window = i < 5 ? 0 : 16;
		p.nfrom = p.type == KEFA_LONGREAD_RTW_PKT;
		p.from[0] = (struct fi_rma_iov) { 0x1000, 16, 7 };
		far_send(far, &p);
		KUNIT_EXPECT_EQ_MSG(test, far_dropped(far, KEFA_DROP_TYPE), i + 1ULL, "type %u",
				    p.type);
	}
	arrive_imm(far);
	rdm_expect_nothing(test, &far->pair->end[1]);
	KUNIT_EXPECT_NULL(test, memchr_inv(far->mem, 0, FAR_BYTES));
	KUNIT_EXPECT_EQ(test, far->pair->end[1].qp->nsent, 0U);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].remote), 0ULL);
	send_sum(far, KEFA_FETCH_RTA_PKT, 8);
	KUNIT_EXPECT_TRUE(test, far_take(far, KEFA_ATOMRSP_PKT, 0));
	KUNIT_EXPECT_EQ(test, *word(far, 8), 1ULL);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	rdm_expect_whole(test, far->pair);
}

/* One wrong piece among several refuses all of them. */
static void rta_pieces(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct far_pkt p = sum(far, KEFA_FETCH_RTA_PKT, 0, 6);
	unsigned int i;

	p.n = 3;
	for (i = 0; i < 3; i++)
		p.mem[i] = far_piece(far, 9000 * i - 8 * !!i, 16);
	p.mem[2].key ^= 1ULL << 33;
	far_send(far, &p);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_KEY), 1ULL);
	KUNIT_EXPECT_NULL(test, memchr_inv(far->mem, 0, FAR_BYTES));
	p.mem[2].key ^= 1ULL << 33;
	p.msg_id = turn(far);
	far_send(far, &p);
	KUNIT_EXPECT_TRUE(test, far_take(far, KEFA_ATOMRSP_PKT, 0));
	KUNIT_EXPECT_EQ(test, far->hdr.data_len, (size_t)48);
	for (i = 0; i < 6; i++)
		KUNIT_EXPECT_EQ(test, *word(far, 9000 * (i / 2) - 8 * (i > 1) + 8 * (i % 2)), 1ULL);
	rdm_expect_whole(test, far->pair);
}

/* --- order, and what an operation lacks --- */

/* An operation waits for the messages before it, and those after it wait for it. */
static void rta_order(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	const u32 first = turn(far);
	struct far_pkt p;

	p = sum(far, KEFA_WRITE_RTA_PKT, 0, 1);
	p.msg_id = first + 2;
	p.op = FI_PROD;
	*(u64 *)far->data = 10;
	far_send(far, &p);
	p = sum(far, KEFA_FETCH_RTA_PKT, 0, 1);
	p.msg_id = first + 1;
	far_send(far, &p);
	KUNIT_EXPECT_EQ(test, *word(far, 0), 0ULL);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.early, 2ULL);
	p = sum(far, KEFA_WRITE_RTA_PKT, 0, 1);
	p.msg_id = first;
	*(u64 *)far->data = 4;
	far_send(far, &p);
	KUNIT_EXPECT_EQ(test, *word(far, 0), 50ULL);
	KUNIT_EXPECT_TRUE(test, far_take(far, KEFA_ATOMRSP_PKT, 0));
	KUNIT_EXPECT_EQ(test, *(u64 *)far->hdr.data, 4ULL);
	KUNIT_EXPECT_EQ(test, turn(far), first + 3);
	rdm_expect_whole(test, far->pair);
}

#ifdef CONFIG_ARCH_HAS_KERNEL_FPU_SUPPORT
/*
 * Handle an operation as a softirq does that has interrupted a user of the FPU. @kicked is set to
 * whether that has queued the worker.
 */
static enum kefa_took interrupt(struct far *far, u8 type, u32 datatype, bool *kicked)
{
	struct kefa_rma_iov iov = {
		.addr = cpu_to_le64(far->mr->base_addr), .len = cpu_to_le64(8),
		.key = cpu_to_le64(fi_mr_key(far->mr)),
	};
	struct kefa_pkt pkt = {
		.row = kefa_row_of(type), .atomic_datatype = datatype, .atomic_op = FI_SUM,
		.rma_iov_count = 1, .rma_iov = &iov, .msg_length = 8, .data = far->data,
		.data_len = 8,
	};
	struct kefa_rpeer *peer = far_peer(&far->pair->end[1]);
	enum kefa_took took;

	efake_settle_all();
	flush_work(&far->rdm->ep.work);
	spin_lock_bh(&far->rdm->ep.lock);
	kernel_fpu_begin();
	took = pkt.row->ops->received(far->rdm, peer, &pkt, NULL);
	kernel_fpu_end();
	/* It can't end without the lock. */
	*kicked = work_busy(&far->rdm->ep.work);
	kefa_tx_flush(far->rdm);
	spin_unlock_bh(&far->rdm->ep.lock);
	return took;
}

/* Floating point waits for a task; integers don't. */
static void rta_interrupt(struct kunit *test)
{
	static const u8 types[] = { KEFA_WRITE_RTA_PKT, KEFA_DC_WRITE_RTA_PKT, KEFA_FETCH_RTA_PKT };
	struct far *far = far_new(test, NULL);
	unsigned int i;
	bool kicked;

	*(u64 *)far->data = 1;
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		KUNIT_EXPECT_EQ(test, interrupt(far, types[i], FI_DOUBLE, &kicked), KEFA_TOOK_NOT);
		KUNIT_EXPECT_TRUE(test, kicked);
		KUNIT_EXPECT_EQ(test, *word(far, 0), (u64)i);
		KUNIT_EXPECT_EQ(test, interrupt(far, types[i], FI_UINT64, &kicked),
				KEFA_TOOK_DONE);
		KUNIT_EXPECT_FALSE(test, kicked);
		KUNIT_EXPECT_EQ(test, *word(far, 0), (u64)i + 1);
	}
	far_take_all(far);
	rdm_expect_whole(test, far->pair);
}
#endif

/* Without an order each is carried out as it arrives. */
static void rta_unordered(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .no_order = true });
	struct far_pkt p = sum(far, KEFA_WRITE_RTA_PKT, 0, 1);

	p.msg_id += 5;
	far_send(far, &p);
	KUNIT_EXPECT_EQ(test, *word(far, 0), 1ULL);
	rdm_expect_whole(test, far->pair);
}

/*
 * A peer that doesn't take its answers gets only a share of the slots and no copy buffer for long.
 * Its further operations wait, and each is carried out once.
 */
static void rta_full(struct kunit *test)
{
	static const u32 counts[] = { 1, 100 };
	unsigned int i, n, k, taken;
	struct far_pkt p;
	struct far *far;
	u32 first;

	for (k = 0; k < ARRAY_SIZE(counts); k++) {
		far = far_new(test, &(struct rdm_opts) { .depth = 64 });
		far_friend(far, 1);
		first = turn(far);
		n = far->rdm->nts + 30;
		for (i = 0; i < n; i++) {
			p = sum(far, KEFA_FETCH_RTA_PKT, 0, counts[k]);
			p.msg_id = first + i;
			far_send(far, &p);
		}
		KUNIT_EXPECT_LT(test, *word(far, 0), (u64)n);
		KUNIT_EXPECT_GT(test, *word(far, 0), 0ULL);
		KUNIT_EXPECT_GT(test, far->rdm->ts_nfree, far->rdm->nts / 2);
		for (taken = 0; taken < n; taken++) {
			if (!kofi_soon(far_take(far, KEFA_ATOMRSP_PKT, 0)))
				break;
			KUNIT_EXPECT_EQ(test, *(u64 *)far->hdr.data, (u64)taken);
		}
		KUNIT_EXPECT_EQ(test, taken, n);
		KUNIT_EXPECT_EQ(test, *word(far, 0), (u64)n);
		KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
		rdm_expect_whole(test, far->pair);
		far_end(far);
	}
}

/* An operation whose peer isn't ready for its answer doesn't hold up another peer's. */
static void rta_stuck(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct kefa_rdm *rdm = far->rdm;
	size_t due;
	u32 nfree;

	far_friend(far, 1);
	rdm->backoffs.first_us = 20 * USEC_PER_SEC;
	rdm->backoffs.max_us = 20 * USEC_PER_SEC;
	send_sum(far, KEFA_FETCH_RTA_PKT, 0);
	/* The answer is sent twice before the delay begins. */
	KUNIT_EXPECT_EQ(test, far_take_each(far, 0, KEFA_ATOMRSP_PKT, KEFA_STATUS_RNR), 2U);
	KUNIT_EXPECT_TRUE(test, far_peer(&far->pair->end[1])->backoff.waiting);
	/* One waits until its peer is ready, and the other one for a slot. */
	send_sum(far, KEFA_FETCH_RTA_PKT, 0);
	spin_lock_bh(&rdm->ep.lock);
	nfree = rdm->ts_nfree;
	rdm->ts_nfree = 0;
	spin_unlock_bh(&rdm->ep.lock);
	send_sum_of(far, 1, KEFA_DC_WRITE_RTA_PKT, 8, 1, 0);
	KUNIT_EXPECT_EQ(test, *word(far, 8), 0ULL);
	spin_lock_bh(&rdm->ep.lock);
	due = list_count_nodes(&rdm->due);
	/* The one whose peer isn't ready goes first. */
	if (due && list_first_entry(&rdm->due, struct kefa_held, due)->peer !=
	    kefa_peers_at(&rdm->peers, far->pair->end[1].peer))
		list_rotate_left(&rdm->due);
	rdm->ts_nfree = nfree;
	kefa_rdm_pump(rdm);
	spin_unlock_bh(&rdm->ep.lock);
	KUNIT_EXPECT_EQ(test, due, (size_t)2);
	KUNIT_EXPECT_EQ(test, *word(far, 0), 1ULL);
	KUNIT_EXPECT_EQ(test, *word(far, 8), 1ULL);
	far_take_all(far);
}

/*
 * Operations that wait for a slot are tried again, although those before them wait until their peer
 * takes an answer, and although nothing tells that there is a slot.
 */
static void rta_retried(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	const u32 share = far->rdm->ts_share / 2, first = turn(far);
	unsigned int i;
	u32 n;

	for (i = 1; i <= 3; i++)
		far_friend(far, i);
	for (i = 0; i <= share; i++)
		send_sum_of(far, 0, KEFA_FETCH_RTA_PKT, 0, 1, first + i);
	KUNIT_EXPECT_EQ(test, *word(far, 0), (u64)share);
	n = take_slots(far);
	for (i = 1; i <= 3; i++)
		send_sum_of(far, i, KEFA_DC_WRITE_RTA_PKT, 8 * i, 1, 0);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&far->rdm->due), (size_t)4);
	KUNIT_EXPECT_NULL(test, memchr_inv(far->mem + 8, 0, 24));
	give_slots(far, n);
	check_peers(far, 1);
	for (i = 1; i <= 3; i++)
		KUNIT_EXPECT_EQ(test, *word(far, 8 * i), 1ULL);
	KUNIT_EXPECT_EQ(test, *word(far, 0), (u64)share);
	KUNIT_EXPECT_TRUE(test, far_take_of(far, 0, KEFA_ATOMRSP_PKT, 0));
	KUNIT_EXPECT_EQ(test, *word(far, 0), share + 1ULL);
	far_take_all(far);
	rdm_expect_whole(test, far->pair);
}

/* A peer that isn't ready for its RECEIPTs gets few slots, and doesn't die of its operations. */
static void rta_receipts(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .depth = 256 });
	const unsigned int n = 3 * KEFA_OWED_MAX;
	const u32 first = turn(far);
	unsigned int i;

	far_friend(far, 1);
	far_delay(far);
	for (i = 0; i < n; i++)
		send_sum_of(far, 0, KEFA_DC_WRITE_RTA_PKT, 0, 1, first + i);
	KUNIT_EXPECT_EQ(test, *word(far, 0), (u64)KEFA_OWED_MAX);
	KUNIT_EXPECT_EQ(test, far_take_each(far, 0, KEFA_RECEIPT_PKT, KEFA_STATUS_RNR),
			2U * KEFA_OWED_MAX);
	far_delay_end(far);
	for (i = 0; i < n; i++)
		if (!kofi_soon(far_take_of(far, 0, KEFA_RECEIPT_PKT, 0)))
			break;
	KUNIT_EXPECT_EQ(test, i, n);
	KUNIT_EXPECT_EQ(test, *word(far, 0), (u64)n);
	KUNIT_EXPECT_EQ(test, far_peer(&far->pair->end[1])->answers, 0);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	far_take_all(far);
	rdm_expect_whole(test, far->pair);
}

/*
 * A peer takes no answer, and sends operations until early packets may use no more memory. It is
 * given up then, and others go on.
 */
static void rta_floods(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct kefa_rdm *rdm = far->rdm;
	const fi_addr_t flood = far_friend(far, 1);
	const u32 first = turn(far);
	struct kefa_rpeer *peer;
	bool dead = false;
	unsigned int i;

	rdm->budget = SZ_128K;
	rdm->fair.pace = 1;
	far_delay(far);
	send_sum_of(far, 1, KEFA_FETCH_RTA_PKT, 0, 1, 0);
	far_take_each(far, 1, KEFA_HANDSHAKE_PKT, 0);
	KUNIT_EXPECT_EQ(test, far_take_each(far, 1, KEFA_ATOMRSP_PKT, KEFA_STATUS_RNR), 2U);
	for (i = 1; i < 500 && !dead; i++) {
		if (!kofi_soon(efake_recv(far->pair->end[1].qp, 0)))
			break;
		send_sum_of(far, 1, KEFA_FETCH_RTA_PKT, 0, 900, i);
		spin_lock_bh(&rdm->ep.lock);
		peer = kefa_peers_at(&rdm->peers, flood);
		peer->backoff.checks = KEFA_UNREADY_CHECKS;
		dead = kefa_rpeer_dead(peer);
		spin_unlock_bh(&rdm->ep.lock);
	}
	KUNIT_ASSERT_TRUE(test, dead);
	KUNIT_EXPECT_EQ(test, rdm->stats.cut, 1ULL);
	KUNIT_EXPECT_EQ(test, *word(far, 0), 1ULL);
	KUNIT_ASSERT_TRUE(test, kofi_soon(efake_recv(far->pair->end[1].qp, 0)));
	send_sum_of(far, 0, KEFA_FETCH_RTA_PKT, 8, 1, first);
	KUNIT_EXPECT_TRUE(test, far_take_of(far, 0, KEFA_ATOMRSP_PKT, 0));
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 1ULL);
	far_take_all(far);
	rdm_expect_whole(test, far->pair);
}

/* The same for short reads, which wait in another list. */
static void rta_floods_reads(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct kefa_rdm *rdm = far->rdm;
	const fi_addr_t flood = far_friend(far, 1);
	const u32 first = turn(far);
	struct far_pkt p = {
		.who = 1, .type = KEFA_SHORT_RTR_PKT, .n = 1, .window = 8,
		.mem = { far_piece(far, 0, 8) },
	};
	struct kefa_rpeer *peer;
	unsigned int i;

	rdm->budget = SZ_32K;
	far_delay(far);
	far_send(far, &p);
	far_take_each(far, 1, KEFA_HANDSHAKE_PKT, 0);
	KUNIT_EXPECT_EQ(test, far_take_each(far, 1, KEFA_READRSP_PKT, KEFA_STATUS_RNR), 2U);
	for (i = 1; i < 2000 && efake_recv(far->pair->end[1].qp, 0); i++) {
		far_send(far, &p);
		/* It isn't ready for a moment only. */
		spin_lock_bh(&rdm->ep.lock);
		kefa_peers_at(&rdm->peers, flood)->backoff.checks = 0;
		spin_unlock_bh(&rdm->ep.lock);
	}
	spin_lock_bh(&rdm->ep.lock);
	peer = kefa_peers_at(&rdm->peers, flood);
	KUNIT_EXPECT_GE(test, rdm->kept, rdm->budget);
	KUNIT_EXPECT_FALSE(test, kefa_rpeer_dead(peer));
	peer->backoff.checks = KEFA_UNREADY_CHECKS;
	kefa_rdm_relieve(rdm);
	KUNIT_EXPECT_TRUE(test, kefa_rpeer_dead(peer));
	kefa_rdm_pump(rdm);
	spin_unlock_bh(&rdm->ep.lock);
	KUNIT_EXPECT_EQ(test, rdm->stats.cut, 1ULL);
	KUNIT_ASSERT_TRUE(test, kofi_soon(efake_recv(far->pair->end[1].qp, 0)));
	send_sum_of(far, 0, KEFA_FETCH_RTA_PKT, 8, 1, first);
	KUNIT_EXPECT_TRUE(test, far_take_of(far, 0, KEFA_ATOMRSP_PKT, 0));
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 1ULL);
	far_take_all(far);
	rdm_expect_whole(test, far->pair);
}

/* A peer in no address vector that takes no answer for too long is dead. */
static void rta_silent(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .stranger = true });
	struct far_pkt p = {
		.type = KEFA_FETCH_RTA_PKT, .msg_id = 1, .datatype = FI_UINT64, .op = FI_SUM,
		.n = 1, .mem = { far_piece(far, 0, 8) }, .data = far->data, .len = 8,
	};

	far->rdm->fair.stall = 3;
	far_delay(far);
	far_send(far, &p);
	KUNIT_EXPECT_EQ(test, far_take_each(far, 0, KEFA_ATOMRSP_PKT, KEFA_STATUS_RNR), 2U);
	check_peers(far, 3);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	check_peers(far, 1);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.stalled, 1ULL);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 1ULL);
	rdm_expect_whole(test, far->pair);
}

/* Have peers fetch as much as they may, without taking the answers. */
static void hoard(struct far *far, u32 friends)
{
	const u32 share = far->rdm->ts_share / 2;
	u32 who, i;

	for (who = 1; who <= friends; who++) {
		far_friend(far, who);
		for (i = 0; i < share; i++)
			send_sum_of(far, who, KEFA_FETCH_RTA_PKT, 0, 1, i);
		far_take_each(far, who, KEFA_HANDSHAKE_PKT, 0);
		KUNIT_EXPECT_EQ(far->test, far_take_each(far, who, KEFA_ATOMRSP_PKT,
							 KEFA_STATUS_RNR), 2 * share);
	}
}

/* Peers with an address don't die, but don't keep the slots that others want. */
static void rta_hoards(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct kefa_rdm *rdm = far->rdm;
	const u32 share = rdm->ts_share / 2, first = turn(far);
	const u32 friends = DIV_ROUND_UP(rdm->nts - rdm->ts_ctl - rdm->nts / KEFA_TX_REQUESTS,
					 share);

	rdm->fair.stall = 3;
	far_delay(far);
	hoard(far, friends);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&rdm->parked), (size_t)friends * share);
	check_peers(far, 6);
	KUNIT_EXPECT_EQ(test, rdm->stats.target_cut, 0ULL);
	send_sum_of(far, 0, KEFA_FETCH_RTA_PKT, 8, 1, first);
	KUNIT_EXPECT_EQ(test, *word(far, 8), 0ULL);
	check_peers(far, 1);
	KUNIT_EXPECT_EQ(test, *word(far, 8), 1ULL);
	KUNIT_EXPECT_TRUE(test, far_take_of(far, 0, KEFA_ATOMRSP_PKT, 0));
	KUNIT_EXPECT_EQ(test, rdm->stats.target_cut, 1ULL);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&rdm->parked), (size_t)(friends - 1) * share);
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0ULL);
}

/* A region that is closed while an operation waits isn't accessed. */
static void rta_closed(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	const u32 first = turn(far);
	struct far_pkt p = sum(far, KEFA_FETCH_RTA_PKT, 0, 1);

	p.msg_id = first + 1;
	far_send(far, &p);
	p.type = KEFA_WRITE_RTA_PKT;
	p.mem[0].addr += 8;
	p.msg_id = first;
	far_close(far);
	far_send(far, &p);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_KEY), 2ULL);
	KUNIT_EXPECT_EQ(test, turn(far), first + 2);
	KUNIT_EXPECT_NULL(test, memchr_inv(far->mem, 0, FAR_BYTES));
	rdm_expect_whole(test, far->pair);
}

/* Endpoints that are closed with answers in all places. */
static void rta_close(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct far_pkt p;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		p = sum(far, KEFA_FETCH_RTA_PKT, 0, i % 2 ? 1 : 200);
		far_send(far, &p);
	}
	/* Some of them wait for the peer. */
	for (i = 0; i < 7; i++)
		KUNIT_EXPECT_TRUE(test, kofi_soon(far_take(far, KEFA_ATOMRSP_PKT,
							   KEFA_STATUS_RNR)));
	far_close(far);
	KUNIT_EXPECT_EQ(test, fi_close(&far->pair->end[1].ep->fid), 0);
	far->pair->end[1].ep = NULL;
}

static struct kunit_case rta_cases[] = {
	KUNIT_CASE(rta_writes),
	KUNIT_CASE(rta_receipt),
	KUNIT_CASE(rta_fetch),
	KUNIT_CASE(rta_compare),
	KUNIT_CASE(rta_read),
	KUNIT_CASE_PARAM(rta_refused, wrong_gen_params),
	KUNIT_CASE(rta_alone),
	KUNIT_CASE(rta_pieces),
	KUNIT_CASE(rta_order),
#ifdef CONFIG_ARCH_HAS_KERNEL_FPU_SUPPORT
	KUNIT_CASE(rta_interrupt),
#endif
	KUNIT_CASE(rta_unordered),
	KUNIT_CASE(rta_full),
	KUNIT_CASE(rta_stuck),
	KUNIT_CASE(rta_retried),
	KUNIT_CASE(rta_receipts),
	KUNIT_CASE(rta_floods),
	KUNIT_CASE(rta_floods_reads),
	KUNIT_CASE(rta_silent),
	KUNIT_CASE(rta_hoards),
	KUNIT_CASE(rta_closed),
	KUNIT_CASE(rta_close),
	{}
};

static struct kunit_suite rta_suite = {
	.name		= "kefa_rdm_rta",
	.test_cases	= rta_cases,
};

kunit_test_suite(rta_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, atomic operations of peers");
MODULE_LICENSE("Dual BSD/GPL");
