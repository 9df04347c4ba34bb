// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: the fast path of plain reads and writes. Each case compares it with the slow path,
 * which the call takes if a limit is 0: the same work request and packet, the same completion.
 */
#include <linux/mm.h>
#include <kofi/arith.h>
#include "crew.h"
#include "efa_rdm_far.h"
#include "../../prov/efa/rdm/atomic.h"
#include "../../prov/efa/rdm/fast_far.h"

#define BYTES	1000
/* A flag that repeats what another type has: ignored, but only the slow path takes the packet. */
#define SLOW	KEFA_REQ_MSG

static struct kefa_rdm *first(struct far *far)
{
	return rdm_of(&far->pair->end[0]);
}

/* Have plain calls of the first endpoint take one of the paths. */
static void take_path(struct far *far, bool fast)
{
	first(far)->far_read = fast ? SIZE_MAX : 0;
	first(far)->far_write = fast ? SIZE_MAX : 0;
	first(far)->far_fetch = fast;
}

static ssize_t call_at(struct far *far, u8 *local, size_t len, bool read, fi_addr_t peer, u64 addr,
		       u64 key)
{
	struct fid_ep *ep = far->pair->end[0].ep;

	return read ? fi_read(ep, local, len, NULL, peer, addr, key, (void *)4) :
		      fi_write(ep, local, len, NULL, peer, addr, key, (void *)4);
}

static ssize_t call(struct far *far, u8 *local, size_t len, bool read)
{
	const struct fi_rma_iov rma = far_piece(far, 9, len);

	return call_at(far, local, len, read, far->pair->end[0].peer, rma.addr, rma.key);
}

/* A work request of the first endpoint, with its packet, and the completion. */
struct posted {
	unsigned int		n;
	enum ib_wr_opcode	opcode;
	u64			raddr;
	u32			rkey;
	u32			qpn;
	u32			qkey;
	size_t			len;
	u8			bytes[SZ_16K];
	struct rdm_comp		comp;
};

static void see(struct far *far, struct posted *p)
{
	struct efake_wr *wr = efake_sent(far->pair->end[0].qp, 0);

	memset(p, 0, sizeof(*p));
	p->n = far->pair->end[0].qp->nsent;
	if (!wr)
		return;
	p->opcode = wr->opcode;
	p->qpn = wr->qpn;
	p->qkey = wr->qkey;
	if (wr->opcode == IB_WR_SEND) {
		p->len = efake_wr_read(wr, p->bytes, sizeof(p->bytes));
		/* The id of the operation differs. */
		if (p->bytes[0] == KEFA_SHORT_RTR_PKT || p->bytes[0] == KEFA_LONGCTS_RTR_PKT)
			((struct kefa_rtr_hdr *)p->bytes)->recv_id = 0;
		else if (p->bytes[0] == KEFA_LONGCTS_RTW_PKT)
			((struct kefa_longcts_rtw_hdr *)p->bytes)->send_id = 0;
		else if (p->bytes[0] == KEFA_FETCH_RTA_PKT)
			((struct kefa_rta_hdr *)p->bytes)->id = 0;
		/* So does its number. */
		if (p->bytes[0] == KEFA_FETCH_RTA_PKT)
			((struct kefa_rta_hdr *)p->bytes)->msg_id = 0;
		return;
	}
	p->raddr = wr->raddr;
	p->rkey = wr->rkey;
	p->len = wr->sge[0].length;
}

/* Both paths post the same and complete with the same, and the data arrives. */
static void compare(struct far *far, u8 *local, size_t len, bool read, bool whole)
{
	struct posted *p = kunit_kzalloc(far->test, 2 * sizeof(*p), GFP_KERNEL);
	const struct kefa_ep_stats *st = &first(far)->ep.stats;
	struct kunit *test = far->test;
	u64 reads, writes, tx, rx;
	int fast;

	KUNIT_ASSERT_NOT_NULL(test, p);
	for (fast = 0; fast < 2; fast++) {
		take_path(far, fast);
		efa_fill(read ? far->mem + 9 : local, len, 7);
		memset(read ? local : far->mem + 9, 0xa5, len);
		reads = st->reads + read;
		writes = st->writes + !read;
		tx = st->tx_bytes + (read ? 0 : len);
		rx = st->rx_bytes + (read ? len : 0);
		KUNIT_EXPECT_EQ(test, call(far, local, len, read), 0);
		/* A call without an operation took the fast path. */
		if (whole)
			KUNIT_EXPECT_EQ(test, first(far)->rops.used, !fast);
		see(far, &p[fast]);
		rdm_run(far->pair);
		p[fast].comp = rdm_read(&far->pair->end[0]);
		KUNIT_EXPECT_EQ(test, p[fast].comp.ret, 1);
		rdm_expect_nothing(test, &far->pair->end[0]);
		rdm_expect_nothing(test, &far->pair->end[1]);
		KUNIT_EXPECT_TRUE(test, efa_filled(read ? local : far->mem + 9, len, 7));
		KUNIT_EXPECT_EQ(test, st->reads, reads);
		KUNIT_EXPECT_EQ(test, st->writes, writes);
		KUNIT_EXPECT_EQ(test, st->tx_bytes, tx);
		KUNIT_EXPECT_EQ(test, st->rx_bytes, rx);
	}
	KUNIT_EXPECT_EQ_MSG(test, memcmp(&p[0], &p[1], offsetof(struct posted, comp)), 0,
			    "%zu bytes, read %d", len, read);
	KUNIT_EXPECT_EQ(test, memcmp(&p[0].comp.entry, &p[1].comp.entry, sizeof(p->comp.entry)), 0);
	kunit_kfree(test, p);
}

/* The longest write and read by one packet, and one byte more. */
static void fast_far_longest(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	const struct kefa_rdm_limits *lim = &first(far)->lim;
	u32 more;

	for (more = 0; more < 2; more++) {
		compare(far, far->pair->out, lim->mtu - KEFA_FAR_RTW + more, false, !more);
		compare(far, far->pair->out, kefa_readrsp_room(lim) + more, true, false);
	}
	rdm_expect_whole(test, far->pair);
}

static void fast_far_calls(struct kunit *test)
{
	static const size_t sizes[] = { 1, 8, 400, BYTES, 4096 };
	struct far *far;
	int device, read, i;

	for (device = 0; device < 2; device++) {
		far = far_new(test, &(struct rdm_opts) { .rdma = device });
		for (read = 0; read < 2; read++)
			for (i = 0; i < ARRAY_SIZE(sizes); i++)
				compare(far, far->pair->out, sizes[i], read, device || !read);
		KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[0].far),
				4ULL * ARRAY_SIZE(sizes));
		rdm_expect_whole(test, far->pair);
		far_end(far);
	}
}

/* --- fetches --- */

static void expect_fetched(struct far *far)
{
	const struct rdm_comp comp = rdm_read(&far->pair->end[0]);

	KUNIT_EXPECT_EQ(far->test, comp.ret, 1);
	KUNIT_EXPECT_EQ(far->test, comp.entry.flags, FI_ATOMIC | FI_READ);
}

static ssize_t fetch(struct far *far, u64 off, size_t n, u32 type, u32 op)
{
	const struct fi_rma_iov rma = far_piece(far, off, 8 * n);

	return fi_fetch_atomic(far->pair->end[0].ep, far->pair->out, n, NULL, far->pair->out + 2048,
			       NULL, far->pair->end[0].peer, rma.addr, rma.key, type, op,
			       (void *)4);
}

/* Both paths post the same, complete with the same, and change and return the same elements. */
static void compare_fetch(struct far *far, size_t n, u32 type, u32 op)
{
	struct posted *p = kunit_kzalloc(far->test, 2 * sizeof(*p), GFP_KERNEL);
	u8 *old = far->pair->out + 2048, *at = far->mem + PAGE_SIZE - 8;
	const size_t len = n * kofi_arith_size(type);
	struct kunit *test = far->test;
	u8 was[128], is[128];
	int fast;

	KUNIT_ASSERT_NOT_NULL(test, p);
	for (fast = 0; fast < 2; fast++) {
		take_path(far, fast);
		efa_fill(at, sizeof(was), 3);
		efa_fill(far->pair->out, sizeof(was), 9);
		memset(old, 0xa5, sizeof(was));
		memcpy(was, at, sizeof(was));
		KUNIT_EXPECT_EQ(test, fetch(far, PAGE_SIZE - 8, n, type, op), 0);
		see(far, &p[fast]);
		rdm_run(far->pair);
		p[fast].comp = rdm_read(&far->pair->end[0]);
		KUNIT_EXPECT_EQ(test, p[fast].comp.ret, 1);
		KUNIT_EXPECT_MEMEQ(test, old, was, len);
		KUNIT_EXPECT_NULL(test, memchr_inv(old + len, 0xa5, sizeof(was) - len));
		if (fast)
			KUNIT_EXPECT_MEMEQ(test, at, is, sizeof(is));
		memcpy(is, at, sizeof(is));
		KUNIT_EXPECT_MEMEQ(test, is + len, was + len, sizeof(was) - len);
	}
	KUNIT_EXPECT_EQ_MSG(test, memcmp(&p[0], &p[1], offsetof(struct posted, comp)), 0,
			    "%zu of type %u, operation %u", n, type, op);
	KUNIT_EXPECT_EQ(test, memcmp(&p[0].comp.entry, &p[1].comp.entry, sizeof(p->comp.entry)), 0);
	kunit_kfree(test, p);
}

static void fast_far_fetch(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	u32 type, op;

	for (type = FI_INT8; type <= FI_UINT64; type++)
		for (op = FI_MIN; op <= FI_BXOR; op++)
			compare_fetch(far, op % 3 + 1, type, op);
	compare_fetch(far, 8, FI_UINT64, FI_SUM);
	/* Too many for the fast path, and an operation that it hasn't got. */
	compare_fetch(far, 9, FI_UINT64, FI_SUM);
	compare_fetch(far, 3, FI_INT16, FI_ATOMIC_WRITE);
	KUNIT_EXPECT_EQ(test, fetch(far, 4, 1, FI_UINT64, FI_SUM), -EINVAL);
	KUNIT_EXPECT_EQ(test, fetch(far, 8, 0, FI_UINT64, FI_SUM), -EINVAL);
	rdm_expect_whole(test, far->pair);
}

/* Properties of a fetch that differ from those of the usual one. */
struct fetch_case {
	const char	*desc;
	bool		no_operand;
	bool		no_result;
	s64		shift;		/* of the address */
	u64		addr;		/* instead of one in the region */
	size_t		n;		/* elements, instead of 1 */
	u32		type;		/* instead of FI_UINT64 */
	u32		op;		/* instead of FI_SUM */
	bool		fast;
	ssize_t		ret;
};

static const struct fetch_case fetch_cases[] = {
	{ "usual", .fast = true },
	{ "maximum", .op = FI_MAX, .fast = true },
	{ "no operands", .no_operand = true, .ret = -EINVAL },
	{ "no result", .no_result = true, .ret = -EINVAL },
	{ "not aligned", .shift = 4, .ret = -EINVAL },
	{ "aligned for its type", .shift = 4, .type = FI_UINT32, .fast = true },
	{ "as many as fit", .n = 8, .fast = true },
	{ "more", .n = 9 },
	{ "many bytes", .n = 65, .type = FI_UINT8 },
	{ "no number fits", .n = SIZE_MAX, .ret = -EINVAL },
	{ "length wraps to 8", .n = (SIZE_MAX >> 3) + 2, .ret = -EINVAL },
	{ "beyond all addresses", .addr = U64_MAX - 7, .ret = -EINVAL },
	{ "unknown type", .type = U32_MAX, .ret = -EOPNOTSUPP },
	{ "unknown operation", .op = U32_MAX, .ret = -EOPNOTSUPP },
	{ "an operation of compares", .op = FI_CSWAP, .ret = -EOPNOTSUPP },
	{ "without operands", .op = FI_ATOMIC_READ },
};

/* Complete the fetch of a case. */
static void settle(struct far *far)
{
	struct kefa_rpeer *peer = far_peer(&far->pair->end[0]);

	spin_lock_bh(&first(far)->ep.lock);
	kefa_rdm_todo(first(far), peer);
	kefa_rdm_pump(first(far));
	spin_unlock_bh(&first(far)->ep.lock);
	rdm_run(far->pair);
	expect_fetched(far);
}

/*
 * Return: the result of a call. Only the slow path stores the number of pieces of the peer's memory
 * in the operation.
 */
static ssize_t fetch_as(struct far *far, const struct fetch_case *c, bool *fast)
{
	struct kefa_atomic *atomic = first(far)->atomics_free;
	const struct fi_rma_iov mem = far_piece(far, 16, 128);
	u8 *out = far->pair->out;
	ssize_t ret;

	atomic->n = 0;
	ret = fi_fetch_atomic(far->pair->end[0].ep, c->no_operand ? NULL : out, c->n ?: 1, NULL,
			      c->no_result ? NULL : out + 2048, NULL, far->pair->end[0].peer,
			      c->addr ?: mem.addr + c->shift, mem.key, c->type ?: FI_UINT64,
			      c->op ?: FI_SUM, (void *)4);
	*fast = !ret && !atomic->n;
	return ret;
}

static void fast_far_fetch_declined(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	unsigned int i;
	bool fast;

	for (i = 0; i < ARRAY_SIZE(fetch_cases); i++) {
		const struct fetch_case *c = &fetch_cases[i];

		KUNIT_EXPECT_EQ_MSG(test, fetch_as(far, c, &fast), c->ret, "%s", c->desc);
		KUNIT_EXPECT_EQ_MSG(test, fast, c->fast, "%s", c->desc);
		if (!c->ret)
			settle(far);
	}
	rdm_expect_nothing(test, &far->pair->end[0]);
	rdm_expect_whole(test, far->pair);
}

/* A fetch to a peer with a delay, without a slot, or of an endpoint that allows none. */
static void fast_far_fetch_busy(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct kefa_rpeer *peer = far_peer(&far->pair->end[0]);
	bool fast;
	int way;

	for (way = 0; way < 3; way++) {
		if (way == 0)
			peer->backoff.waiting = true;
		else if (way == 1)
			first(far)->ts_nfree -= first(far)->nts - 1;
		else
			first(far)->far_fetch = false;
		KUNIT_EXPECT_EQ(test, fetch_as(far, &fetch_cases[0], &fast), 0);
		KUNIT_EXPECT_FALSE(test, fast);
		if (way == 0)
			peer->backoff.waiting = false;
		else if (way == 1)
			first(far)->ts_nfree += first(far)->nts - 1;
		settle(far);
	}
	rdm_expect_whole(test, far->pair);
}

/* One that the ULP wants no completion of. */
static void fast_far_fetch_quiet(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	u8 was[8];

	memcpy(was, far->mem + 8, sizeof(was));
	memset(far->pair->out + 2048, 0xa5, sizeof(was));
	first(far)->tx_how = KEFA_ROP_QUIET;
	KUNIT_EXPECT_EQ(test, fetch(far, 8, 1, FI_UINT64, FI_SUM), 0);
	rdm_run(far->pair);
	KUNIT_EXPECT_MEMEQ(test, far->pair->out + 2048, was, sizeof(was));
	rdm_expect_nothing(test, &far->pair->end[0]);
	rdm_expect_whole(test, far->pair);
}

/* The device refuses the work request of a fetch. */
static void fast_far_fetch_doorbell(struct kunit *test)
{
	struct rdm_comp comp[2];
	int fast;

	for (fast = 0; fast < 2; fast++) {
		struct far *far = far_new(test, NULL);

		take_path(far, fast);
		efake_fail(far->pair->fake, EFAKE_POST_SEND, 1, -ENOMEM);
		KUNIT_EXPECT_EQ(test, fetch(far, 8, 1, FI_UINT64, FI_SUM), 0);
		efake_settle_all();
		comp[fast] = rdm_read(&far->pair->end[0]);
		KUNIT_EXPECT_EQ(test, comp[fast].ret, -FI_EAVAIL);
		rdm_expect_whole(test, far->pair);
		far_end(far);
	}
	KUNIT_EXPECT_EQ(test, comp[0].error.err, comp[1].error.err);
}

/* Calls of other kinds take the slow path: no data, too much, memory in several pieces. */
static void fast_far_declined(struct kunit *test)
{
	struct far *far;
	int device, read;

	for (device = 0; device < 2; device++) {
		far = far_new(test, &(struct rdm_opts) { .rdma = device });
		for (read = 0; read < 2; read++) {
			compare(far, far->pair->out, 0, read, false);
			compare(far, far->pair->out, 20000, read, false);
			compare(far, far->mem + SZ_64K, 2 * PAGE_SIZE, read, false);
			first(far)->lim.read_segment = PAGE_SIZE;
			compare(far, far->pair->out, 2 * PAGE_SIZE, read, false);
			first(far)->lim.read_segment = SZ_1G;
		}
		rdm_expect_whole(test, far->pair);
		far_end(far);
	}
}

/* A key that is longer than a device's is for packets. */
static void fast_far_long_key(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .rdma = true });
	const struct fi_rma_iov rma = far_piece(far, 0, BYTES);

	KUNIT_EXPECT_EQ(test, call_at(far, far->pair->out, BYTES, false, far->pair->end[0].peer,
				      rma.addr, rma.key | 1ULL << 32), 0);
	KUNIT_EXPECT_EQ(test, first(far)->rops.used, 1U);
	KUNIT_EXPECT_EQ(test, efake_sent(far->pair->end[0].qp, 0)->opcode, IB_WR_SEND);
	rdm_run(far->pair);
	rdm_expect(test, &far->pair->end[0], 4, BYTES);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_KEY), 1ULL);
	rdm_expect_whole(test, far->pair);
}

/* Wrong calls fail on either path with the same error, and leave nothing. */
static void fast_far_refused(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	const struct fi_rma_iov rma = far_piece(far, 0, BYTES);
	const fi_addr_t peer = far->pair->end[0].peer;
	u8 *local = far->pair->out;
	int fast, read;

	for (fast = 0; fast < 2; fast++) {
		take_path(far, fast);
		for (read = 0; read < 2; read++) {
			KUNIT_EXPECT_EQ(test, call_at(far, local, BYTES, read, 4711, rma.addr,
						      rma.key), -EHOSTUNREACH);
			KUNIT_EXPECT_EQ(test, call_at(far, local, BYTES, read, peer, U64_MAX - 9,
						      rma.key), -EINVAL);
		}
	}
	rdm_expect_nothing(test, &far->pair->end[0]);
	KUNIT_EXPECT_EQ(test, far->pair->end[0].qp->nsent, 0U);
	rdm_expect_whole(test, far->pair);
}

/* A call behind one that waits, or to a peer with a delay, takes the slow path and its turn. */
static void fast_far_busy(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .rdma = true });
	struct kefa_rpeer *peer = far_peer(&far->pair->end[0]);
	int way;

	for (way = 0; way < 3; way++) {
		if (way == 0)
			peer->backoff.waiting = true;
		else if (way == 1)
			efake_fail(far->pair->fake, EFAKE_DMA_MAP, 1, -ENOMEM);
		else
			first(far)->ts_nfree -= first(far)->nts - 1;
		KUNIT_EXPECT_EQ(test, call(far, far->pair->out, BYTES, false), 0);
		KUNIT_EXPECT_EQ(test, first(far)->rops.used, 1U);
		if (way == 0)
			peer->backoff.waiting = false;
		else if (way == 2)
			first(far)->ts_nfree += first(far)->nts - 1;
		spin_lock_bh(&first(far)->ep.lock);
		kefa_rdm_todo(first(far), peer);
		kefa_rdm_pump(first(far));
		spin_unlock_bh(&first(far)->ep.lock);
		rdm_run(far->pair);
		rdm_expect(test, &far->pair->end[0], 4, BYTES);
	}
	rdm_expect_whole(test, far->pair);
}

/* --- errors --- */

enum ending { REFUSED, DIES, KILLED, REMOVED, CLOSES, GOES, ENDINGS };

/* An operation that is a slot ends once, when the device is done, with the slow path's error. */
static void fast_far_ends(struct kunit *test)
{
	struct rdm_comp comp[2];
	int device, how, fast;

	for (device = 0; device < 2; device++) {
		for (how = REFUSED; how < ENDINGS; how++) {
			for (fast = 0; fast < 2; fast++) {
				struct far *far = far_new(test, &(struct rdm_opts)
							  { .rdma = device });
				struct rdm_end *end = &far->pair->end[0];
				struct kefa_rdm *rdm = first(far);

				take_path(far, fast);
				KUNIT_EXPECT_EQ(test, call(far, far->pair->out, BYTES, false), 0);
				KUNIT_EXPECT_EQ(test, end->qp->nsent, 1U);
				if (how == REFUSED || how == DIES) {
					/* A packet has no status of that kind. */
					efake_wr_done(efake_sent(end->qp, 0),
						      how == DIES || !device ? 9 : 7);
				} else if (how == KILLED) {
					spin_lock_bh(&rdm->ep.lock);
					kefa_rdm_kill(rdm, kefa_peers_at(&rdm->peers, end->peer),
						      EPROTO, 0);
					spin_unlock_bh(&rdm->ep.lock);
				} else if (how == REMOVED) {
					KUNIT_EXPECT_EQ(test, fi_av_remove(end->av, &end->peer, 1,
									   0), 0);
				} else if (how == CLOSES) {
					EFA_CLOSE(test, end->ep);
				} else {
					efake_remove(far->pair->fake);
				}
				efake_settle_all();
				if (how == KILLED || how == REMOVED) {
					/* The device may still read the memory. */
					rdm_expect_nothing(test, end);
					rdm_finish_sent(far->pair, 0, 0);
				}
				comp[fast] = rdm_read(end);
				KUNIT_EXPECT_EQ(test, comp[fast].ret, -FI_EAVAIL);
				KUNIT_EXPECT_NE(test, rdm_read(end).ret, 1);
				if (how < CLOSES) {
					KUNIT_EXPECT_EQ(test, rdm->stats.deaths,
							how == REFUSED && device ? 0ULL :
							how == REMOVED ? 0ULL : 1ULL);
					rdm_expect_whole(test, far->pair);
				}
				far_end(far);
			}
			KUNIT_EXPECT_EQ_MSG(test, comp[0].error.err, comp[1].error.err,
					    "device %d, end %d", device, how);
			KUNIT_EXPECT_EQ(test, comp[0].error.prov_errno, comp[1].error.prov_errno);
			KUNIT_EXPECT_EQ(test, (long)comp[0].error.op_context, 4L);
			KUNIT_EXPECT_EQ(test, (long)comp[1].error.op_context, 4L);
			KUNIT_EXPECT_EQ(test, comp[0].error.flags, comp[1].error.flags);
			KUNIT_EXPECT_EQ(test, comp[0].error.len, comp[1].error.len);
		}
	}
}

/* The device refuses the work request. */
static void fast_far_doorbell(struct kunit *test)
{
	struct rdm_comp comp[2];
	int device, fast;

	for (device = 0; device < 2; device++) {
		for (fast = 0; fast < 2; fast++) {
			struct far *far = far_new(test, &(struct rdm_opts) { .rdma = device });

			take_path(far, fast);
			efake_fail(far->pair->fake, EFAKE_POST_SEND, 1, -ENOMEM);
			KUNIT_EXPECT_EQ(test, call(far, far->pair->out, BYTES, false), 0);
			efake_settle_all();
			comp[fast] = rdm_read(&far->pair->end[0]);
			KUNIT_EXPECT_EQ(test, comp[fast].ret, -FI_EAVAIL);
			rdm_expect_whole(test, far->pair);
			far_end(far);
		}
		KUNIT_EXPECT_EQ(test, comp[0].error.err, comp[1].error.err);
	}
}

/* A write that finds no receive waits in its slot, and arrives once. */
static void fast_far_not_ready(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct efake_qp *qp = far->pair->end[0].qp;
	int i;

	efa_fill(far->pair->out, BYTES, 3);
	KUNIT_EXPECT_EQ(test, call(far, far->pair->out, BYTES, false), 0);
	for (i = 0; i < 4; i++) {
		KUNIT_ASSERT_TRUE(test, kofi_soon(efake_sent(qp, 0)));
		efake_wr_done(efake_sent(qp, 0), KEFA_STATUS_RNR);
		efake_settle_all();
		rdm_expect_nothing(test, &far->pair->end[0]);
	}
	rdm_run(far->pair);
	rdm_expect(test, &far->pair->end[0], 4, BYTES);
	rdm_expect_nothing(test, &far->pair->end[0]);
	KUNIT_EXPECT_TRUE(test, efa_filled(far->mem + 9, BYTES, 3));
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].remote), (u64)BYTES);
	rdm_expect_whole(test, far->pair);
}

/* --- at the target --- */

/* A packet does the same on either path: at the memory, the counters and the answer. */
static void fast_far_packets(struct kunit *test)
{
	static const size_t sizes[] = { 1, 300, BYTES, 8000 };
	struct far *far = far_new(test, NULL);
	u8 *answers = kvzalloc(2 * SZ_16K, GFP_KERNEL);
	u64 n = 0, rx, tx, received;
	int read, i, slow;
	size_t len;

	KUNIT_ASSERT_NOT_NULL(test, answers);
	for (read = 0; read < 2; read++) {
		for (i = 0; i < ARRAY_SIZE(sizes); i++) {
			len = sizes[i];
			for (slow = 0; slow < 2; slow++) {
				struct far_pkt p = {
					.type = read ? KEFA_SHORT_RTR_PKT : KEFA_EAGER_RTW_PKT,
					.flags = slow ? SLOW : 0, .n = 1,
					.mem = { far_piece(far, PAGE_SIZE - 3, len) },
					.window = len, .data = far->data, .len = read ? 0 : len,
				};

				efa_fill(read ? far->mem + PAGE_SIZE - 3 : far->data, len, 5 + i);
				if (!read)
					memset(far->mem, 0xa5, 4 * PAGE_SIZE);
				rx = far->rdm->ep.stats.rx_bytes;
				tx = far->rdm->ep.stats.tx_bytes;
				received = far->rdm->stats.received[p.type];
				far_send(far, &p);
				efake_settle_all();
				KUNIT_EXPECT_EQ(test, far->rdm->ep.stats.rx_bytes,
						rx + (read ? 0 : len));
				KUNIT_EXPECT_EQ(test, far->rdm->ep.stats.tx_bytes,
						tx + (read ? len : 0));
				/* A read counts when its data was delivered. */
				n += read ? 0 : len;
				KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].remote), n);
				KUNIT_EXPECT_EQ(test, far->rdm->stats.received[p.type],
						received + 1);
				KUNIT_EXPECT_EQ(test, far->mem[PAGE_SIZE - 4], 0xa5);
				KUNIT_EXPECT_TRUE(test, efa_filled(far->mem + PAGE_SIZE - 3, len,
								   5 + i));
				if (!read)
					continue;
				KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_READRSP_PKT, 0));
				efake_settle_all();
				n += len;
				KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].remote), n);
				KUNIT_EXPECT_EQ(test, far->hdr.recv_id, (u32)FAR_ID);
				KUNIT_EXPECT_EQ(test, far->hdr.data_len, (u32)len);
				KUNIT_EXPECT_TRUE(test, efa_filled(far->hdr.data, len, 5 + i));
				memcpy(answers + slow * SZ_16K, far->got, SZ_16K);
			}
			if (read)
				KUNIT_EXPECT_EQ(test, memcmp(answers, answers + SZ_16K, len + 24),
						0);
		}
	}
	rdm_expect_nothing(test, &far->pair->end[1]);
	rdm_expect_whole(test, far->pair);
	kvfree(answers);
}

/* Memory that the peer may not access, by packets of the fast path's form. */
static void fast_far_faults(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct fi_rma_iov right = far_piece(far, 0, BYTES), wrong;
	u64 drops;
	int read, way;

	memset(far->mem, 0xa5, FAR_BYTES);
	for (read = 0; read < 2; read++) {
		for (way = 0; way < 4; way++) {
			static const enum kefa_drop why[] = {
				KEFA_DROP_KEY, KEFA_DROP_KEY, KEFA_DROP_RANGE, KEFA_DROP_RANGE,
			};
			struct far_pkt p = {
				.type = read ? KEFA_SHORT_RTR_PKT : KEFA_EAGER_RTW_PKT,
				.n = 1, .window = BYTES, .data = far->data,
				.len = read ? 0 : BYTES,
			};

			wrong = right;
			if (way == 0)
				wrong.key ^= 0x100;
			else if (way == 1)
				wrong.key |= 1ULL << 40;
			else
				wrong.addr += way == 2 ? FAR_BYTES - BYTES + 1 :
							 S64_MAX - 2 * BYTES;
			p.mem[0] = wrong;
			drops = far_dropped(far, why[way]);
			far_send(far, &p);
			efake_settle_all();
			KUNIT_EXPECT_EQ_MSG(test, far_dropped(far, why[way]), drops + 1,
					    "read %d, way %d", read, way);
			KUNIT_EXPECT_FALSE(test, far_take(far, KEFA_READRSP_PKT, 0));
		}
	}
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(far->mem, 0xa5, FAR_BYTES), NULL);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].remote), 0ULL);
	rdm_expect_whole(test, far->pair);
}

/* --- answers --- */

/* Return: the id of the second endpoint's read. */
static u32 ask(struct far *far, size_t len)
{
	const struct fi_rma_iov rma = far_piece(far, 0, len);

	KUNIT_EXPECT_EQ(far->test, fi_read(far->pair->end[1].ep, far->pair->in, len, NULL,
					   far->pair->end[1].peer, rma.addr, rma.key,
					   (void *)6), 0);
	KUNIT_EXPECT_TRUE(far->test, far->pair->end[1].qp->nsent);
	efake_wr_read(efake_sent(far->pair->end[1].qp, 0), far->got, sizeof(far->got));
	return le32_to_cpu(((struct kefa_rtr_hdr *)far->got)->recv_id);
}

static void answer(struct far *far, u32 to, size_t len, u16 flags)
{
	const struct far_pkt p = {
		.type = KEFA_READRSP_PKT, .flags = flags, .to = to, .data = far->data, .len = len,
	};

	far_send(far, &p);
	efake_settle_all();
}

/* The answer arrives before the completion of the request, or after it; twice, or too long. */
static void fast_far_answers(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	int early, odd;
	u64 drops;
	u32 to;

	efa_fill(far->data, 2 * BYTES, 9);
	for (early = 0; early < 2; early++) {
		for (odd = 0; odd < 3; odd++) {
			memset(far->pair->in, 0xa5, 2 * BYTES);
			to = ask(far, BYTES);
			if (!early)
				far_take_all(far);
			drops = far_dropped(far, KEFA_DROP_STATE) +
				far_dropped(far, KEFA_DROP_LENGTH);
			if (odd == 1)
				answer(far, to, BYTES + 1, 0);
			if (odd == 2)
				answer(far, to + 0x10000, BYTES, 0);
			rdm_expect_nothing(test, &far->pair->end[1]);
			KUNIT_EXPECT_EQ(test, far->pair->in[0], 0xa5);
			answer(far, to, BYTES, 0);
			KUNIT_EXPECT_TRUE(test, far_peer(&far->pair->end[1])->served);
			far_peer(&far->pair->end[1])->served = false;
			if (early) {
				rdm_expect_nothing(test, &far->pair->end[1]);
				far_take_all(far);
			}
			rdm_expect(test, &far->pair->end[1], 6, BYTES);
			KUNIT_EXPECT_TRUE(test, efa_filled(far->pair->in, BYTES, 9));
			KUNIT_EXPECT_EQ(test, far->pair->in[BYTES], 0xa5);
			answer(far, to, BYTES, 0);
			rdm_expect_nothing(test, &far->pair->end[1]);
			KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_STATE) +
					far_dropped(far, KEFA_DROP_LENGTH), drops + 1 + !!odd);
			rdm_expect_whole(test, far->pair);
		}
	}
	/* Part of the data, and the rest by the slow path or never. */
	to = ask(far, BYTES);
	far_take_all(far);
	answer(far, to, BYTES - 8, 0);
	rdm_expect_nothing(test, &far->pair->end[1]);
	KUNIT_EXPECT_EQ(test, fi_av_remove(far->pair->end[1].av, &far->pair->end[1].peer, 1, 0), 0);
	rdm_expect_error(test, &far->pair->end[1], 6, ECANCELED);
	rdm_expect_whole(test, far->pair);
}

/* An endpoint without completions of such reads still counts them. */
static void fast_far_reports(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .selective = true });
	u64 n;
	u32 to;

	efa_fill(far->data, BYTES, 9);
	to = ask(far, BYTES);
	far_take_all(far);
	n = fi_cntr_read(far->pair->end[1].far);
	answer(far, to, BYTES, 0);
	rdm_expect_nothing(test, &far->pair->end[1]);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].far), n + 1);
	KUNIT_EXPECT_TRUE(test, efa_filled(far->pair->in, BYTES, 9));
	rdm_expect_whole(test, far->pair);
}

static struct kunit_case fast_far_cases[] = {
	KUNIT_CASE(fast_far_calls),
	KUNIT_CASE(fast_far_longest),
	KUNIT_CASE(fast_far_declined),
	KUNIT_CASE(fast_far_fetch),
	KUNIT_CASE(fast_far_fetch_declined),
	KUNIT_CASE(fast_far_fetch_busy),
	KUNIT_CASE(fast_far_fetch_quiet),
	KUNIT_CASE(fast_far_fetch_doorbell),
	KUNIT_CASE(fast_far_long_key),
	KUNIT_CASE(fast_far_refused),
	KUNIT_CASE(fast_far_busy),
	KUNIT_CASE_SLOW(fast_far_ends),
	KUNIT_CASE(fast_far_doorbell),
	KUNIT_CASE(fast_far_not_ready),
	KUNIT_CASE(fast_far_packets),
	KUNIT_CASE(fast_far_faults),
	KUNIT_CASE(fast_far_answers),
	KUNIT_CASE(fast_far_reports),
	{}
};

static struct kunit_suite fast_far_suite = {
	.name		= "kefa_rdm_fast_far",
	.test_cases	= fast_far_cases,
};

kunit_test_suite(fast_far_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, the fast path of reads and writes");
MODULE_LICENSE("Dual BSD/GPL");
