// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: atomic operations of the ULP. The first endpoint changes memory of the second one
 * over the network; or a case makes up what the peer of the second endpoint answers.
 */
#include <kofi/atomic.h>
#include "crew.h"
#include "efa_rdm_far.h"
#include "../../prov/efa/rdm/atomic.h"

/* Where an operation of the first endpoint goes. */
#define TO(off, type, op) \
	far->pair->end[0].peer, far->mr->base_addr + (off), fi_mr_key(far->mr), type, op

static struct fid_ep *first(struct far *far)
{
	return far->pair->end[0].ep;
}

static void expect_end(struct far *far, unsigned int end, long ctx, size_t len, u64 flags)
{
	struct rdm_comp comp = rdm_read(&far->pair->end[end]);

	KUNIT_EXPECT_EQ(far->test, comp.ret, 1);
	KUNIT_EXPECT_EQ(far->test, (long)comp.entry.op_context, ctx);
	KUNIT_EXPECT_EQ(far->test, comp.entry.len, len);
	KUNIT_EXPECT_EQ(far->test, comp.entry.flags, FI_ATOMIC | flags);
}

/* Return: the number of completions and errors. */
static unsigned int completed(struct rdm_end *end)
{
	unsigned int n = 0;

	while (rdm_read(end).ret != -EAGAIN)
		n++;
	return n;
}

/* --- over the network --- */

/* Post a call of a kind. */
static ssize_t post(struct far *far, enum kofi_arith_kind kind, u32 type, u32 op, u64 off,
		    size_t n, long ctx)
{
	u8 *in = far->data, *cmp = in + SZ_16K, *out = in + SZ_32K;

	if (kind == KOFI_ARITH_COMPARE)
		return fi_compare_atomic(first(far), in, n, NULL, cmp, NULL, out, NULL,
					 TO(off, type, op), (void *)ctx);
	if (kind == KOFI_ARITH_FETCH)
		return fi_fetch_atomic(first(far), in, n, NULL, out, NULL, TO(off, type, op),
				       (void *)ctx);
	return fi_atomic(first(far), in, n, NULL, TO(off, type, op), (void *)ctx);
}

/* Each operation of each type, against the same done here. */
static void atomic_cells(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	u8 *in = far->data, *cmp = in + SZ_16K, *out = in + SZ_32K;
	u8 *want = (u8 *)__get_free_page(GFP_KERNEL);
	struct fi_atomic_attr attr;
	u32 type, op, kind, done = 0;
	u64 flags, off;
	u8 old[48];
	size_t len;

	KUNIT_ASSERT_NOT_NULL(test, want);
	for (type = 0; type <= FI_UINT128; type++) {
		for (op = 0; op < 3 * FI_ATOMIC_OP_LAST; op++) {
			kind = op / FI_ATOMIC_OP_LAST;
			flags = kind == KOFI_ARITH_FETCH ? FI_FETCH_ATOMIC :
				kind == KOFI_ARITH_COMPARE ? FI_COMPARE_ATOMIC : 0;
			if (fi_query_atomic(far->pair->domain, type, op % FI_ATOMIC_OP_LAST, &attr,
					    flags)) {
				KUNIT_EXPECT_EQ(test, post(far, kind, type, op % FI_ATOMIC_OP_LAST,
							   0, 1, 1), -EOPNOTSUPP);
				continue;
			}
			len = 3 * attr.size;
			off = SZ_8K - len / 3;
			efa_fill(far->mem, SZ_16K, op + type);
			efa_fill(in, len, op);
			memcpy(cmp, far->mem + off, len);
			cmp[attr.size] ^= 1;
			memcpy(old, far->mem + off, len);
			memcpy(want, old, len);
			kofi_arith(type, op % FI_ATOMIC_OP_LAST, virt_to_page(want), 0,
				   op % FI_ATOMIC_OP_LAST == FI_ATOMIC_READ ? NULL : in,
				   kind == KOFI_ARITH_COMPARE ? cmp : NULL, NULL, 3);
			KUNIT_ASSERT_EQ(test, post(far, kind, type, op % FI_ATOMIC_OP_LAST, off, 3,
						   ++done), 0);
			rdm_run(far->pair);
			expect_end(far, 0, done, len, kind ? FI_READ : FI_WRITE);
			KUNIT_EXPECT_EQ_MSG(test, memcmp(far->mem + off, want, len), 0,
					    "type %u, operation %u", type, op);
			if (kind)
				KUNIT_EXPECT_EQ_MSG(test, memcmp(out, old, len), 0,
						    "type %u, operation %u", type, op);
		}
	}
	free_page((unsigned long)want);
	/* 8 types of integers with 11 writes, 12 fetches and 7 compares; and floating point. */
	KUNIT_EXPECT_EQ(test, done, 8U * 30 + (IS_ENABLED(CONFIG_ARCH_HAS_KERNEL_FPU_SUPPORT) ?
					       2 * (8 + 9 + 6) + (6 + 7 + 2) : 0));
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[0].far), done);
	rdm_expect_nothing(test, &far->pair->end[1]);
	rdm_expect_whole(test, far->pair);
}

/* Lengths up to the longest, with and without delivery complete; and the counters. */
static void atomic_lengths(struct kunit *test)
{
	static const u32 kinds[] = { KOFI_ARITH_WRITE, KOFI_ARITH_FETCH, KOFI_ARITH_COMPARE };
	static const u32 ops[] = { FI_BXOR, FI_BXOR, FI_MSWAP };
	static const u64 flags[] = { 0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC };
	struct far *far = far_new(test, NULL);
	const struct kefa_rdm_stats *st = &rdm_of(&far->pair->end[0])->stats;
	struct fi_rma_ioc to = { .key = fi_mr_key(far->mr) };
	struct fi_ioc ioc = { far->data };
	const struct fi_msg_atomic msg = {
		.msg_iov = &ioc, .iov_count = 1, .addr = far->pair->end[0].peer, .rma_iov = &to,
		.rma_iov_count = 1, .datatype = FI_UINT16, .op = FI_BXOR, .context = (void *)7,
	};
	u8 *cmp = far->data + SZ_16K;
	struct fi_atomic_attr attr;
	unsigned int i, k;
	size_t n, all = 0;

	for (k = 0; k < ARRAY_SIZE(kinds); k++) {
		KUNIT_ASSERT_EQ(test, fi_query_atomic(far->pair->domain, FI_UINT16, ops[k], &attr,
						      flags[k]), 0);
		KUNIT_EXPECT_EQ(test, attr.size, (size_t)2);
		for (i = 0; i < 4; i++) {
			n = i == 0 ? 1 : i == 1 ? 200 : i == 2 ? 300 : attr.count;
			efa_fill(far->data, 2 * n, i);
			memset(cmp, 0xff, 2 * n);
			memset(far->pages, 0, FAR_BYTES);
			KUNIT_ASSERT_EQ(test, post(far, kinds[k], FI_UINT16, ops[k], 4094, n, 5),
					0);
			rdm_run(far->pair);
			expect_end(far, 0, 5, 2 * n, k ? FI_READ : FI_WRITE);
			KUNIT_EXPECT_TRUE(test, efa_filled(far->mem + 4094, 2 * n, i));
			if (k)
				KUNIT_EXPECT_NULL(test, memchr_inv(far->data + SZ_32K, 0, 2 * n));
			all += 2 * n;
		}
		KUNIT_EXPECT_EQ(test, post(far, kinds[k], FI_UINT16, ops[k], 0, attr.count + 1, 5),
				-EMSGSIZE);
	}
	ioc.count = 9;
	to.addr = far->mr->base_addr;
	to.count = 9;
	KUNIT_ASSERT_EQ(test, fi_atomicmsg(first(far), &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE),
			0);
	rdm_run(far->pair);
	expect_end(far, 0, 7, 18, FI_WRITE);
	KUNIT_EXPECT_EQ(test, st->sent[KEFA_WRITE_RTA_PKT], 4ULL);
	KUNIT_EXPECT_EQ(test, st->sent[KEFA_FETCH_RTA_PKT], 4ULL);
	KUNIT_EXPECT_EQ(test, st->sent[KEFA_COMPARE_RTA_PKT], 4ULL);
	KUNIT_EXPECT_EQ(test, st->sent[KEFA_DC_WRITE_RTA_PKT], 1ULL);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[0].far), 13ULL);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].remote), all + 18);
	rdm_expect_whole(test, far->pair);
}

/* Several segments of each kind, and several pieces of the peer's memory. */
static void atomic_pieces(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	u32 *in = (u32 *)far->data, *out = in + 1000, *there = (u32 *)far->mem;
	const struct fi_ioc iov[3] = { { in, 10 }, { in + 10, 0 }, { in + 10, 50 } };
	struct fi_ioc res[2] = { { out, 7 }, { out + 7, 53 } };
	struct fi_rma_ioc to[4];
	struct fi_msg_atomic msg = {
		.msg_iov = iov, .iov_count = 3, .addr = far->pair->end[0].peer, .rma_iov = to,
		.datatype = FI_UINT32, .op = FI_SUM, .context = (void *)3,
	};
	unsigned int n, i, at;

	for (n = 1; n <= KEFA_IOV_MAX; n++) {
		for (i = 0; i < n; i++)
			to[i] = (struct fi_rma_ioc) {
				.addr	= far->mr->base_addr + 4 * (5000 * i + 1020),
				.count	= i + 1 < n ? 60 / n : 60 - 60 / n * i,
				.key	= fi_mr_key(far->mr),
			};
		msg.rma_iov_count = n;
		efa_fill(far->data, 240, n);
		efa_fill(far->mem, FAR_BYTES, n + 9);
		memset(out, 0xa5, 61 * 4);
		KUNIT_ASSERT_EQ(test, fi_fetch_atomicmsg(first(far), &msg, res, NULL, 2,
							 FI_COMPLETION), 0);
		rdm_run(far->pair);
		expect_end(far, 0, 3, 240, FI_READ);
		for (i = 0; i < 60; i++) {
			at = min(i / (60 / n), n - 1);
			at = 5000 * at + 1020 + i - 60 / n * at;
			KUNIT_EXPECT_EQ(test, there[at], out[i] + in[i]);
		}
		KUNIT_EXPECT_EQ(test, out[60], 0xa5a5a5a5U);
	}
	msg.op = FI_CSWAP;
	msg.rma_iov_count = 2;
	KUNIT_EXPECT_EQ(test, fi_compare_atomicmsg(first(far), &msg, iov, NULL, 3, res, NULL, 2, 0),
			-EINVAL);
	rdm_expect_whole(test, far->pair);
}

static void atomic_inject(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	const size_t most = kefa_inject_size(far->pair->fake->dev);
	u32 here = 5;

	*(u32 *)far->mem = 7;
	KUNIT_EXPECT_EQ(test, fi_inject_atomic(first(far), &here, 1, TO(0, FI_UINT32, FI_PROD)), 0);
	here = 0;
	rdm_run(far->pair);
	KUNIT_EXPECT_EQ(test, *(u32 *)far->mem, 35U);
	KUNIT_EXPECT_EQ(test, fi_inject_atomic(first(far), far->data, most + 1,
					       TO(0, FI_UINT8, FI_SUM)), -EMSGSIZE);
	rdm_expect_nothing(test, &far->pair->end[0]);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[0].far), 1ULL);
	rdm_expect_whole(test, far->pair);
}

/* Requests that never leave. The core's suites have the other ones. */
static void atomic_refused(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct fid_ep *ep;
	size_t count;

	KUNIT_EXPECT_EQ(test, post(far, KOFI_ARITH_WRITE, FI_INT128, FI_SUM, 0, 1, 1),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_atomicvalid(first(far), FI_UINT128, FI_SUM, &count), -EOPNOTSUPP);
	/* libfabric's targets call a function that they don't have. */
	KUNIT_EXPECT_EQ(test, post(far, KOFI_ARITH_WRITE, FI_DOUBLE_COMPLEX, FI_SUM, 0, 1, 1),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_fetch_atomicvalid(first(far), FI_DOUBLE_COMPLEX, FI_SUM, &count),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, post(far, KOFI_ARITH_WRITE, FI_LONG_DOUBLE, FI_SUM, 0, 1, 1),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, post(far, KOFI_ARITH_WRITE, FI_INT64, FI_CSWAP, 0, 1, 1),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, post(far, KOFI_ARITH_WRITE, FI_INT64, FI_SUM, 4, 1, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, post(far, KOFI_ARITH_WRITE, FI_INT64, FI_SUM, 0, 0, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_atomicvalid(first(far), FI_UINT64, FI_SUM, &count), 0);
	KUNIT_EXPECT_EQ(test, count, (size_t)(kefa_atomic_room(EFAKE_MTU) / 8));
	far->pair->info->caps &= ~FI_ATOMIC;
	KUNIT_ASSERT_EQ(test, fi_endpoint(far->pair->domain, far->pair->info, &ep, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_atomicvalid(ep, FI_UINT64, FI_SUM, &count), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_inject_atomic(ep, far->data, 1, TO(0, FI_UINT8, FI_SUM)),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
	rdm_expect_whole(test, far->pair);
}

/* Messages and atomic operations have one order, whatever the network does. */
static void atomic_chaos(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	u64 *in = (u64 *)far->data, *word = (u64 *)far->mem, sum = 0;
	unsigned int i, n = 0, round;

	far->pair->net.reorder = 400;
	far->pair->net.rnr = 100;
	far->pair->net.late = 200;
	for (round = 0; round < (rdm_long ? 50 : 8); round++) {
		for (i = 0; i < 60; i++) {
			in[i] = prandom_u32_state(&far->pair->net.rnd);
			sum += in[i];
			/* Every old value is that of the sum so far: none overtakes another. */
			KUNIT_ASSERT_EQ(test, i % 3 ?
				fi_fetch_atomic(first(far), &in[i], 1, NULL, &in[100 + i], NULL,
						TO(0, FI_UINT64, FI_SUM), (void *)(long)i) :
				fi_atomic(first(far), &in[i], 1, NULL, TO(0, FI_UINT64, FI_SUM),
					  (void *)(long)i), 0);
			in[200 + i] = sum - in[i];
		}
		rdm_run(far->pair);
		n += completed(&far->pair->end[0]);
		KUNIT_EXPECT_EQ(test, *word, sum);
		for (i = 0; i < 60; i++)
			if (i % 3)
				KUNIT_EXPECT_EQ(test, in[100 + i], in[200 + i]);
	}
	KUNIT_EXPECT_EQ(test, n, 60 * round);
	rdm_expect_whole(test, far->pair);
}

/* --- by hand: the second endpoint posts, and the case answers --- */

static ssize_t hand(struct far *far, enum kofi_arith_kind kind, u64 flags, long ctx)
{
	static const struct fi_rma_ioc to = { 0x1000, 2, 77 };
	static struct fi_ioc ioc, res;
	const struct fi_msg_atomic msg = {
		.msg_iov = &ioc, .iov_count = 1, .addr = far->pair->end[1].peer, .rma_iov = &to,
		.rma_iov_count = 1, .datatype = FI_UINT64, .context = (void *)ctx,
		.op = kind == KOFI_ARITH_COMPARE ? FI_CSWAP : FI_SUM,
	};
	struct fid_ep *ep = far->pair->end[1].ep;

	ioc = (struct fi_ioc) { far->data, 2 };
	res = (struct fi_ioc) { far->data + 1000, 2 };
	memset(far->data + 1000, 0xa5, 100);
	flags |= FI_COMPLETION;
	if (kind == KOFI_ARITH_COMPARE)
		return fi_compare_atomicmsg(ep, &msg, &ioc, NULL, 1, &res, NULL, 1, flags);
	if (kind == KOFI_ARITH_FETCH)
		return fi_fetch_atomicmsg(ep, &msg, &res, NULL, 1, flags);
	return fi_atomicmsg(ep, &msg, flags);
}

static void answer(struct far *far, u8 type, u32 id, size_t len)
{
	far_send(far, &(struct far_pkt) {
		.type = type, .to = id, .len = len, .data = far->data + 2000, .window = 9,
	});
}

/* Only its own ATOMRSP, of the right length, ends a fetch, and only once. */
static void atomic_answers(struct kunit *test)
{
	static const u8 others[] = {
		KEFA_RECEIPT_PKT, KEFA_EOR_PKT, KEFA_READ_NACK_PKT, KEFA_CTS_PKT, KEFA_READRSP_PKT,
	};
	static const u8 types[] = { KEFA_FETCH_RTA_PKT, KEFA_COMPARE_RTA_PKT };
	struct far *far = far_new(test, NULL);
	u64 drops = 0, lengths = 0;
	unsigned int i, j;
	u32 id;

	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, hand(far, KOFI_ARITH_FETCH + i, 0, 4), 0);
		KUNIT_ASSERT_TRUE(test, far_take(far, types[i], 0));
		id = far->hdr.recv_id;
		efa_fill(far->data + 2000, 100, i);
		for (j = 0; j < ARRAY_SIZE(others); j++)
			answer(far, others[j], id, others[j] == KEFA_READRSP_PKT ? 16 : 0);
		answer(far, KEFA_ATOMRSP_PKT, id ^ 1, 16);
		answer(far, KEFA_ATOMRSP_PKT, id ^ 0x10000, 16);
		KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_STATE), drops += 7);
		answer(far, KEFA_ATOMRSP_PKT, id, 0);
		answer(far, KEFA_ATOMRSP_PKT, id, 15);
		answer(far, KEFA_ATOMRSP_PKT, id, 17);
		KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_LENGTH), lengths += 3);
		KUNIT_EXPECT_NULL(test, memchr_inv(far->data + 1000, 0xa5, 100));
		rdm_expect_nothing(test, &far->pair->end[1]);
		answer(far, KEFA_ATOMRSP_PKT, id, 16);
		expect_end(far, 1, 4, 16, FI_READ);
		KUNIT_EXPECT_TRUE(test, efa_filled(far->data + 1000, 16, i));
		KUNIT_EXPECT_NULL(test, memchr_inv(far->data + 1016, 0xa5, 84));
		answer(far, KEFA_ATOMRSP_PKT, id, 16);
		KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_STATE), ++drops);
	}
	/* One that wants a RECEIPT gets nothing else. */
	KUNIT_EXPECT_EQ(test, hand(far, KOFI_ARITH_WRITE, FI_DELIVERY_COMPLETE, 5), 0);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_DC_WRITE_RTA_PKT, 0));
	id = far->hdr.send_id;
	answer(far, KEFA_ATOMRSP_PKT, id, 16);
	answer(far, KEFA_EOR_PKT, id, 0);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_STATE), drops + 2);
	rdm_expect_nothing(test, &far->pair->end[1]);
	/* libfabric's RECEIPT has another number. */
	far_send(far, &(struct far_pkt) { .type = KEFA_RECEIPT_PKT, .to = id, .msg_id = 4711 });
	expect_end(far, 1, 5, 16, FI_WRITE);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	rdm_expect_whole(test, far->pair);
}

/* The answer may arrive before the completion of the request, and the request be sent again. */
static void atomic_overtaken(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct kefa_rops *rops = &far->rdm->rops;
	unsigned int i;
	u32 id = 0;

	KUNIT_EXPECT_EQ(test, hand(far, KOFI_ARITH_FETCH, 0, 4), 0);
	for (i = 0; i < rops->size; i++)
		if (rops->ops[i].state == KEFA_ROP_ACK)
			id = kefa_rop_id(rops, &rops->ops[i]);
	KUNIT_EXPECT_TRUE(test, far_take(far, KEFA_FETCH_RTA_PKT, KEFA_STATUS_RNR));
	efa_fill(far->data + 2000, 16, 3);
	answer(far, KEFA_ATOMRSP_PKT, id, 16);
	KUNIT_EXPECT_TRUE(test, efa_filled(far->data + 1000, 16, 3));
	rdm_expect_nothing(test, &far->pair->end[1]);
	KUNIT_EXPECT_TRUE(test, kofi_soon(far_take(far, KEFA_FETCH_RTA_PKT, 0)));
	expect_end(far, 1, 4, 16, FI_READ);
	rdm_expect_nothing(test, &far->pair->end[1]);
	rdm_expect_whole(test, far->pair);
}

/* A peer that doesn't answer, and one that dies. */
static void atomic_ends(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	unsigned int i;
	u32 id;

	far->rdm->far_checks = 3;
	KUNIT_EXPECT_EQ(test, hand(far, KOFI_ARITH_FETCH, 0, 4), 0);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_FETCH_RTA_PKT, 0));
	id = far->hdr.recv_id;
	for (i = 0; i < 3; i++) {
		rdm_expect_nothing(test, &far->pair->end[1]);
		rdm_check_peers(far->rdm);
		far_take_all(far);
	}
	rdm_expect_error(test, &far->pair->end[1], 4, ETIMEDOUT);
	answer(far, KEFA_ATOMRSP_PKT, id, 16);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_STATE), 1ULL);
	KUNIT_EXPECT_NULL(test, memchr_inv(far->data + 1000, 0xa5, 100));
	/* One waits for its answer, one has the device, and the peer dies. */
	KUNIT_EXPECT_EQ(test, hand(far, KOFI_ARITH_COMPARE, 0, 5), 0);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_COMPARE_RTA_PKT, 0));
	KUNIT_EXPECT_EQ(test, hand(far, KOFI_ARITH_WRITE, 0, 6), 0);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_WRITE_RTA_PKT, 9));
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 1ULL);
	KUNIT_EXPECT_EQ(test, completed(&far->pair->end[1]), 2U);
	KUNIT_EXPECT_EQ(test, hand(far, KOFI_ARITH_WRITE, 0, 7), -EHOSTUNREACH);
	far_take_all(far);
	rdm_expect_whole(test, far->pair);
}

/* Closing the endpoint gives each operation its one completion. */
static void atomic_close(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct rdm_end *end = &far->pair->end[1];
	unsigned int i;

	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_EQ(test, hand(far, i % 3, 0, i), 0);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_FETCH_RTA_PKT, 0));
	far_close(far);
	KUNIT_EXPECT_EQ(test, fi_close(&end->ep->fid), 0);
	end->ep = NULL;
	KUNIT_EXPECT_EQ(test, completed(end), 5U);
}

/* An operation that lacks a slot waits, and its array of segments is still the ULP's. */
static void atomic_waits(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .depth = 64, .tx_size = 200 });
	unsigned int i;

	*(u64 *)far->data = 1;
	for (i = 0; i < 200; i++)
		KUNIT_ASSERT_EQ(test, fi_atomic(first(far), far->data, 1, NULL,
						TO(8, FI_UINT64, FI_SUM), NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_atomic(first(far), far->data, 1, NULL, TO(8, FI_UINT64, FI_SUM),
					NULL), -EAGAIN);
	rdm_run(far->pair);
	KUNIT_EXPECT_EQ(test, completed(&far->pair->end[0]), 200U);
	KUNIT_EXPECT_EQ(test, ((u64 *)far->mem)[1], 200ULL);
	rdm_expect_whole(test, far->pair);
}

/* Operations whose peer isn't ready hold no copy buffers: other messages need them. */
static void atomic_not_ready(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct rdm_end *end = &far->pair->end[1];
	const unsigned int n = KEFA_COPIES / 2;
	struct kefa_rdm *rdm = far->rdm;
	unsigned int i;

	far_delay(far);
	for (i = 0; i < n; i++) {
		efa_fill(far->data, 4000, i);
		KUNIT_EXPECT_EQ(test, fi_atomic(end->ep, far->data, 500, NULL, end->peer, 0x1000,
						77, FI_UINT64, FI_SUM, (void *)(long)i), 0);
	}
	KUNIT_EXPECT_EQ(test, far_take_each(far, 0, KEFA_WRITE_RTA_PKT, KEFA_STATUS_RNR), 2 * n);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&rdm->parked), (size_t)n);
	KUNIT_EXPECT_EQ(test, rdm->ep.ncopies, (u32)KEFA_COPIES);
	far_delay_end(far);
	for (i = 0; i < n; i++) {
		KUNIT_ASSERT_TRUE(test, kofi_soon(far_take(far, KEFA_WRITE_RTA_PKT, 0)));
		KUNIT_EXPECT_EQ(test, far->hdr.data_len, (size_t)4000);
		KUNIT_EXPECT_TRUE(test, efa_filled((void *)far->hdr.data, 4000, i));
		expect_end(far, 1, i, 4000, FI_WRITE);
	}
	rdm_expect_whole(test, far->pair);
	/* Closing frees what one that still waits has kept. */
	KUNIT_EXPECT_EQ(test, fi_atomic(end->ep, far->data, 500, NULL, end->peer, 0x1000, 77,
					FI_UINT64, FI_SUM, NULL), 0);
	KUNIT_EXPECT_EQ(test, far_take_each(far, 0, KEFA_WRITE_RTA_PKT, KEFA_STATUS_RNR), 2U);
}

static void atomic_options(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	size_t value, len = sizeof(value);

	KUNIT_EXPECT_EQ(test, fi_getopt(&first(far)->fid, FI_OPT_ENDPOINT, FI_OPT_MAX_ATOMIC_SIZE,
					&value, &len), 0);
	KUNIT_EXPECT_EQ(test, value, (size_t)kefa_atomic_room(EFAKE_MTU));
	KUNIT_EXPECT_EQ(test, fi_getopt(&first(far)->fid, FI_OPT_ENDPOINT,
					FI_OPT_INJECT_ATOMIC_SIZE, &value, &len), 0);
	KUNIT_EXPECT_EQ(test, value, (size_t)kefa_inject_size(far->pair->fake->dev));
	KUNIT_EXPECT_EQ(test, far->pair->info->tx_attr->msg_order, KEFA_RDM_ORDER);
	KUNIT_EXPECT_EQ(test, far->pair->info->rx_attr->msg_order, KEFA_RDM_ORDER);
}

static struct kunit_case atomic_cases[] = {
	KUNIT_CASE(atomic_cells),
	KUNIT_CASE(atomic_lengths),
	KUNIT_CASE(atomic_pieces),
	KUNIT_CASE(atomic_inject),
	KUNIT_CASE(atomic_refused),
	KUNIT_CASE(atomic_chaos),
	KUNIT_CASE(atomic_answers),
	KUNIT_CASE(atomic_overtaken),
	KUNIT_CASE(atomic_ends),
	KUNIT_CASE(atomic_close),
	KUNIT_CASE(atomic_waits),
	KUNIT_CASE(atomic_not_ready),
	KUNIT_CASE(atomic_options),
	{}
};

static struct kunit_suite atomic_suite = {
	.name		= "kefa_rdm_atomic",
	.test_cases	= atomic_cases,
};

kunit_test_suite(atomic_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, atomic operations of the ULP");
MODULE_LICENSE("Dual BSD/GPL");
