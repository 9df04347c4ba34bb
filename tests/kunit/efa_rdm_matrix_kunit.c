// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: a packet of each type arrives from a peer in each state, and while an operation
 * with that peer is in each state. The table has the expected results.
 */
#include <kofi/atomic.h>
#include "efa_rdm_far.h"
#include "efa_wire_cases.h"

/* State of the peer that sends the packet. */
enum state {
	NOBODY,		/* unknown, and the packet has no raw address */
	STRANGER,	/* unknown, but the packet has its raw address */
	KNOWN,		/* in the address vector; hasn't sent anything yet */
	SHAKING,	/* was asked for its HANDSHAKE */
	READY,		/* has sent its HANDSHAKE */
	DEAD,		/* has sent its HANDSHAKE, and is dead */
	REMOVED,	/* has sent its HANDSHAKE, and was removed */
	/* In the states below, the peer has sent its HANDSHAKE. */
	HALF,		/* a receive has half of its first message */
	KEPT,		/* half of its first message is kept */
	POSTED,		/* the device has a message to it */
	ACK,		/* a message to it waits for the RECEIPT */
	OWES,		/* its first message has arrived; the RECEIPT is in flight */
	GRANTED,	/* its first message has begun, and the rest is granted */
	GRANT,		/* a message to it waits for its CTS */
	TO_READ,	/* a message to it is registered for it to read */
	INVAL,		/* it has read a message, whose invalidation is in flight */
	READING,	/* its first message is being read here */
	NACKED,		/* reading its first message failed, and it got a READ_NACK */
	WRITING,	/* the device writes to its memory */
	ASKED,		/* it was asked for data in one packet */
	ANSWERED,	/* it has answered a read, and its other data was granted */
	WRITES,		/* it has begun a write, and the rest is granted */
	FETCHED,	/* its write is being read here */
	READS,		/* the first data of its read is in flight */
	FETCHES,	/* it was asked for old values */
	STATES
};

static const char *const state_names[STATES] = {
	"nobody", "stranger", "known", "shaking", "ready", "dead", "removed", "half", "kept",
	"posted", "ack", "owes", "granted", "grant", "to read", "inval", "reading", "nacked",
	"writing", "asked", "answered", "writes", "fetched", "reads", "fetches",
};

/*
 * Expected results, one letter for each state in the order of enum state:
 *   .  accepted, without a completion
 *   K  accepted as an unexpected message
 *   M  accepted as a part of a message
 *   R  accepted as the answer to an operation, which has completed
 *   X  the peer is dead, as later messages would wait for this one
 *   s  dropped: the sender is unknown
 *   d  dropped: the peer is dead
 *   u  dropped: the message has arrived already
 *   w  dropped: no operation waits for it
 *   l  dropped: it doesn't fit the message it claims to belong to
 */
static const struct field {
	u8		type;
	const char	*becomes;
} fields[] = {
	{ KEFA_CTS_PKT,			"sswwwdwwwwwww.wwwwwwwww.w" },
	{ KEFA_CTSDATA_PKT,		"sswwwdwwwwww.wwwwwwl..www" },
	{ KEFA_READRSP_PKT,		"sswwwdwwwwwwwwwwwwwRwwwww" },
	{ KEFA_EOR_PKT,			"sswwwdwwwwwwwwRwwwwwwwwww" },
	{ KEFA_ATOMRSP_PKT,		"sswwwdwwwwwwwwwwwwwwwwwwR" },
	{ KEFA_HANDSHAKE_PKT,		"ss...d..................." },
	{ KEFA_RECEIPT_PKT,		"sswwwdwwwwRwwwwwwwwwwwwww" },
	{ KEFA_READ_NACK_PKT,		"sswwwdwwwwwwww.wwwwwwwwww" },
	{ KEFA_EAGER_MSGRTM_PKT,	"sKKKKdKuuKKuuKKKuuKKKKKKK" },
	{ KEFA_EAGER_TAGRTM_PKT,	"sKKKKdKuuKKuuKKKuuKKKKKKK" },
	{ KEFA_MEDIUM_MSGRTM_PKT,	"sKKKKdKMMKKuuKKKulKKKKKKK" },
	{ KEFA_MEDIUM_TAGRTM_PKT,	"sKKKKdKMMKKuuKKKulKKKKKKK" },
	{ KEFA_LONGCTS_MSGRTM_PKT,	"sKKKKdKuuKKuuKKKuuKKKKKKK" },
	{ KEFA_LONGCTS_TAGRTM_PKT,	"sKKKKdKuuKKuuKKKuuKKKKKKK" },
	{ KEFA_EAGER_RTW_PKT,		"s....d..................." },
	{ KEFA_LONGCTS_RTW_PKT,		"s....d..................." },
	{ KEFA_SHORT_RTR_PKT,		"s....d..................." },
	{ KEFA_LONGCTS_RTR_PKT,		"s....d..................." },
	{ KEFA_WRITE_RTA_PKT,		"s....d.uu..uu...uu......." },
	{ KEFA_FETCH_RTA_PKT,		"s..E.d.uu..uu...uu......." },
	{ KEFA_COMPARE_RTA_PKT,		"s..E.d.uu..uu...uu......." },
	{ KEFA_LONGREAD_MSGRTM_PKT,	"sKKKKdKuuKKuuKKKuuKKKKKKK" },
	{ KEFA_LONGREAD_TAGRTM_PKT,	"sKKKKdKuuKKuuKKKuuKKKKKKK" },
	{ KEFA_LONGREAD_RTW_PKT,	"s....d..................." },
	{ KEFA_DC_EAGER_MSGRTM_PKT,	"sKKKKdKuuKKuuKKKuuKKKKKKK" },
	{ KEFA_DC_EAGER_TAGRTM_PKT,	"sKKKKdKuuKKuuKKKuuKKKKKKK" },
	{ KEFA_DC_MEDIUM_MSGRTM_PKT,	"sKKKKdKMMKKuuKKKulKKKKKKK" },
	{ KEFA_DC_MEDIUM_TAGRTM_PKT,	"sKKKKdKMMKKuuKKKulKKKKKKK" },
	{ KEFA_DC_LONGCTS_MSGRTM_PKT,	"sKKKKdKuuKKuuKKKuuKKKKKKK" },
	{ KEFA_DC_LONGCTS_TAGRTM_PKT,	"sKKKKdKuuKKuuKKKuuKKKKKKK" },
	{ KEFA_DC_EAGER_RTW_PKT,	"s....d..................." },
	{ KEFA_DC_LONGCTS_RTW_PKT,	"s....d..................." },
	{ KEFA_DC_WRITE_RTA_PKT,	"s....d.uu..uu...uu......." },
	{ KEFA_RUNTREAD_MSGRTM_PKT,	"sKKKKdKMMKKuuKKKulKKKKKKK" },
	{ KEFA_RUNTREAD_TAGRTM_PKT,	"sKKKKdKMMKKuuKKKulKKKKKKK" },
};

struct sender {
	struct far		*far;
	struct rdm_pair		*pair;
	struct kefa_rdm		*rdm;
	enum state		state;
	struct fi_efa_addr	name;
	fi_addr_t		addr;
	struct kefa_rdm_stats	was;
	struct wire_case	c;
	u8			buf[WIRE_ROOM];
};

/* Deliver the packet from the sender's own address handle and queue pair. */
static void deliver(struct sender *s)
{
	struct efake_wr *recv = efake_recv(s->pair->end[1].qp, 0);
	const struct kefa_wc wc = {
		.len		= wire_case_bytes(&s->c, s->buf, sizeof(s->buf)),
		.src_qpn	= s->name.qpn,
		.slid		= 30 + s->state,
	};

	efake_wr_write(recv, s->buf, wc.len);
	efake_recv_done(recv, &wc);
	efake_settle_all();
}

/* Return: whether packets of a type ask for an atomic operation. */
static bool is_atomic(const struct kefa_pkt_row *row)
{
	return row->flags & KEFA_ROW_RMA && row->flags & KEFA_ROW_ORDERED;
}

static void prepare(struct sender *s, u8 type, bool raw)
{
	const struct kefa_pkt_row *row = kefa_row_of(type);
	struct wire_form form = {
		.flags	= raw && row->flags & KEFA_ROW_REQ ? KEFA_REQ_OPT_RAW_ADDR_HDR :
							     KEFA_PKT_CONNID_HDR,
		.rma	= !!(row->flags & KEFA_ROW_RMA),
		.read	= !!(row->flags & KEFA_ROW_READ),
	};
	struct kefa_raw_addr addr = {
		.qpn	= cpu_to_le16(s->name.qpn),
		.qkey	= cpu_to_le32(s->name.qkey),
	};

	memcpy(addr.gid, s->name.gid, sizeof(addr.gid));
	wire_case_make(&s->c, row, form);
	memcpy(s->c.raw, &addr, sizeof(addr));
	s->c.pkt.connid = s->name.qkey;
	s->c.pkt.msg_id = 0;
	s->c.rma[0].addr = cpu_to_le64(s->far->mr->base_addr);
	s->c.rma[0].key = cpu_to_le64(fi_mr_key(s->far->mr));
	s->c.read[0].key = cpu_to_le64(7);
	if (is_atomic(row)) {
		s->c.pkt.atomic_datatype = FI_UINT8;
		s->c.pkt.atomic_op = type == KEFA_COMPARE_RTA_PKT ? FI_CSWAP : FI_SUM;
	}
}

/* Complete all packets to the sender. */
static void arrive_all(struct sender *s)
{
	struct efake_qp *qp = s->pair->end[1].qp;

	while (qp->nsent) {
		efake_wr_done(efake_sent(qp, 0), 0);
		efake_settle_all();
	}
}

static void shake(struct sender *s)
{
	prepare(s, KEFA_HANDSHAKE_PKT, false);
	s->c.pkt.shake.extra[0] = KEFA_FEATURE_DELIVERY_COMPLETE | KEFA_REQUEST_CONNID_HEADER;
	if ((s->state >= TO_READ && s->state <= WRITING) || s->state == FETCHED)
		s->c.pkt.shake.extra[0] |= KEFA_FEATURE_RDMA_READ | KEFA_FEATURE_READ_NACK;
	if (s->state == WRITING)
		s->c.pkt.shake.extra[0] |= KEFA_FEATURE_RDMA_WRITE;
	deliver(s);
	arrive_all(s);
}

static ssize_t send_to(struct sender *s, u64 flags)
{
	struct kvec iov = { s->pair->out, s->state >= GRANT ? SZ_128K : 64 };
	struct fi_msg_tagged msg = { .addr = s->addr, .tag = 5, .context = (void *)9 };

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, iov.iov_len);
	return fi_tsendmsg(s->pair->end[1].ep, &msg, flags);
}

/* Post receives that match any message of the sender. */
static void receive(struct kunit *test, struct sender *s)
{
	struct fid_ep *ep = s->pair->end[1].ep;

	KUNIT_EXPECT_EQ(test, fi_trecv(ep, s->pair->in, SZ_64K, NULL, s->addr, 0, U64_MAX, NULL),
			0);
	KUNIT_EXPECT_EQ(test, fi_recv(ep, s->pair->in, SZ_64K, NULL, s->addr, NULL), 0);
}

/* Return: the id of the operation with the peer, or one that names no operation. */
static u32 operation(struct sender *s)
{
	struct kefa_rop *rop;
	u32 i;

	for (i = 0; i < s->rdm->rops.size; i++) {
		rop = &s->rdm->rops.ops[i];
		if (rop->state != KEFA_ROP_FREE && rop->state != KEFA_ROP_LISTED && rop->peer &&
		    rop->peer->addr == s->addr)
			return kefa_rop_id(&s->rdm->rops, rop);
	}
	return 0x12340001;
}

/* Complete the second end's work requests with this opcode, up to the first other one. */
static void finish(struct sender *s, int opcode, u32 status)
{
	struct efake_wr *wr;

	while ((wr = efake_sent(s->pair->end[1].qp, 0)) && wr->opcode == opcode) {
		efake_wr_done(wr, status);
		efake_settle_all();
	}
}

/* Set up the states of messages that are read; the test completes registrations. */
static void set_up_read(struct kunit *test, struct sender *s)
{
	s->pair->fake->manual_mr = true;
	if (s->state == TO_READ || s->state == INVAL) {
		s->rdm->lim.min_read_message = SZ_128K;
		KUNIT_EXPECT_EQ(test, send_to(s, 0), 0);
		finish(s, IB_WR_REG_MR, 0);
		arrive_all(s);
		s->rdm->lim.min_read_message = SZ_1M;
	}
	if (s->state == INVAL) {
		prepare(s, KEFA_EOR_PKT, false);
		s->c.pkt.send_id = operation(s);
		deliver(s);
	}
	if (s->state == READING || s->state == NACKED) {
		receive(test, s);
		prepare(s, KEFA_LONGREAD_TAGRTM_PKT, false);
		deliver(s);
		KUNIT_EXPECT_EQ(test, efake_sent(s->pair->end[1].qp, 0)->opcode, IB_WR_RDMA_READ);
	}
	if (s->state == NACKED) {
		finish(s, IB_WR_RDMA_READ, 7);
		arrive_all(s);
	}
	/* Keep the invalidation from completing before the packet has been delivered. */
	s->pair->fake->manual_mr = s->state == INVAL;
}

static void set_up_far(struct kunit *test, struct sender *s)
{
	struct fid_ep *ep = s->pair->end[1].ep;
	u8 *buf = s->far->data;

	if (s->state == WRITING)
		KUNIT_EXPECT_EQ(test, fi_write(ep, buf, 64, NULL, s->addr, 64, 7, NULL), 0);
	if (s->state == ASKED || s->state == ANSWERED) {
		KUNIT_EXPECT_EQ(test, fi_read(ep, buf, s->state == ASKED ? 5 : 50000, NULL,
					      s->addr, 64, 7, NULL), 0);
		arrive_all(s);
	}
	if (s->state == ANSWERED) {
		prepare(s, KEFA_READRSP_PKT, false);
		s->c.pkt.recv_id = operation(s);
		deliver(s);
	}
	if (s->state == WRITES) {
		prepare(s, KEFA_LONGCTS_RTW_PKT, false);
		deliver(s);
		arrive_all(s);
	}
	if (s->state == FETCHED) {
		prepare(s, KEFA_LONGREAD_RTW_PKT, false);
		deliver(s);
		KUNIT_EXPECT_EQ(test, efake_sent(s->pair->end[1].qp, 0)->opcode, IB_WR_RDMA_READ);
	}
	if (s->state == READS) {
		prepare(s, KEFA_LONGCTS_RTR_PKT, false);
		s->c.pkt.msg_length = 50000;
		s->c.rma[0].len = cpu_to_le64(50000);
		s->c.pkt.recv_length = 9;
		deliver(s);
	}
	if (s->state == FETCHES) {
		KUNIT_EXPECT_EQ(test, fi_fetch_atomic(ep, buf, 5, NULL, buf + 100, NULL, s->addr,
						      64, 7, FI_UINT8, FI_SUM, NULL), 0);
		arrive_all(s);
	}
}

static void set_up(struct kunit *test, struct sender *s, u8 type)
{
	const u8 half = kefa_row_of(type)->flags & KEFA_ROW_MULTI &&
			kefa_row_of(type)->ops ? type : KEFA_MEDIUM_TAGRTM_PKT;

	if (s->state >= KNOWN) {
		KUNIT_EXPECT_EQ(test, fi_av_insert(s->pair->end[1].av, &s->name, 1, &s->addr, 0,
						   NULL), 1);
		rdm_learn(s->pair, s->name.gid, 30 + s->state);
	}
	if (s->state == SHAKING) {
		KUNIT_EXPECT_EQ(test, send_to(s, 0), 0);
		arrive_all(s);
	}
	if (s->state >= READY)
		shake(s);
	if (s->state == HALF)
		receive(test, s);
	if (s->state == HALF || s->state == KEPT) {
		prepare(s, half, false);
		s->c.pkt.seg_offset = 0;
		deliver(s);
	}
	if (s->state == OWES) {
		receive(test, s);
		prepare(s, KEFA_DC_EAGER_TAGRTM_PKT, false);
		deliver(s);
	}
	if (s->state == GRANTED) {
		receive(test, s);
		prepare(s, KEFA_LONGCTS_TAGRTM_PKT, false);
		deliver(s);
	}
	if (s->state == GRANT) {
		KUNIT_EXPECT_EQ(test, send_to(s, 0), 0);
		arrive_all(s);
	}
	if (s->state >= TO_READ && s->state <= NACKED)
		set_up_read(test, s);
	else if (s->state >= WRITING)
		set_up_far(test, s);
	if (s->state == POSTED || s->state == ACK)
		KUNIT_EXPECT_EQ(test, send_to(s, s->state == ACK ? FI_DELIVERY_COMPLETE : 0), 0);
	if (s->state == ACK)
		arrive_all(s);
	if (s->state == DEAD) {
		prepare(s, KEFA_EAGER_TAGRTM_PKT, false);
		s->c.pkt.msg_id = KEFA_ORDER_RECV_WINDOW;
		deliver(s);
	}
	if (s->state == REMOVED)
		KUNIT_EXPECT_EQ(test, fi_av_remove(s->pair->end[1].av, &s->addr, 1, 0), 0);
}

static u64 completed(struct sender *s)
{
	u64 n = 0;

	while (rdm_read(&s->pair->end[1]).ret != -EAGAIN)
		n++;
	return n;
}

/* Return: the letter of what the counters say happened to the packet. */
static char become(struct sender *s)
{
	static const char letters[KEFA_DROPS] = {
		[KEFA_DROP_STRANGER]	= 's',
		[KEFA_DROP_NO_AH]	= 'n',
		[KEFA_DROP_DEAD]	= 'd',
		[KEFA_DROP_DUP]		= 'u',
		[KEFA_DROP_FAR]		= 'f',
		[KEFA_DROP_STATE]	= 'w',
		[KEFA_DROP_TYPE]	= 't',
		[KEFA_DROP_LENGTH]	= 'l',
		[KEFA_DROP_FULL]	= 'o',
		[KEFA_DROP_GONE]	= 'g',
		[KEFA_DROP_LIAR]	= 'i',
	};
	const struct kefa_rdm_stats *is = &s->rdm->stats, *was = &s->was;
	const struct kefa_pkt_row *row = s->c.pkt.row;
	int i;

	for (i = 0; i < KEFA_BAD_REASONS; i++)
		if (is->bad[i] != was->bad[i])
			return 'b';
	if (is->deaths != was->deaths)
		return 'X';
	for (i = 0; i < KEFA_DROPS; i++)
		if (is->dropped[i] != was->dropped[i])
			return letters[i];
	if (is->early != was->early)
		return 'E';
	if (is->unexpected != was->unexpected)
		return 'K';
	if (is->received[row->type] == was->received[row->type])
		return '-';
	if (completed(s))
		return 'R';
	return row->flags & KEFA_ROW_ORDERED && !is_atomic(row) ? 'M' : '.';
}

static char try(struct kunit *test, struct sender *s, u8 type)
{
	s->name = efa_addr(9 + s->state, 0x600 + s->state);
	s->addr = FI_ADDR_NOTAVAIL;
	set_up(test, s, type);
	completed(s);
	s->was = s->rdm->stats;
	prepare(s, type, s->state == STRANGER);
	if (s->state >= POSTED)
		s->c.pkt.send_id = operation(s);
	if (s->state >= POSTED && !(kefa_row_of(type)->flags & KEFA_ROW_REQ))
		s->c.pkt.recv_id = operation(s);
	if (type == KEFA_CTSDATA_PKT)
		s->c.pkt.seg_offset = 7;
	if (type == KEFA_CTS_PKT && s->state == READS)
		s->c.pkt.flags |= KEFA_CTS_READ_REQ;
	deliver(s);
	return become(s);
}

static void matrix_row(struct kunit *test)
{
	const struct field *field = test->param_value;
	struct far *far = far_new(test, &(struct rdm_opts) { .rdma = true });
	struct sender *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	struct rdm_pair *pair = far->pair;
	char became[STATES + 1] = { };
	int i;

	KUNIT_ASSERT_NOT_NULL(test, s);
	KUNIT_ASSERT_EQ(test, strlen(field->becomes), (size_t)STATES);
	s->far = far;
	s->pair = pair;
	s->rdm = rdm_of(&pair->end[1]);
	for (i = 0; i < STATES; i++) {
		s->state = i;
		became[i] = try(test, s, field->type);
		if (became[i] != field->becomes[i])
			kunit_info(test, "%s, %s\n", kefa_row_of(field->type)->name,
				   state_names[i]);
	}
	KUNIT_EXPECT_STREQ(test, became, field->becomes);
	/* Another peer's messages still arrive. */
	pair->fake->manual_mr = false;
	arrive_all(s);
	completed(s);
	efa_fill(pair->out, 12000, 1);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 12000, 1ULL << 40, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 12000, 1ULL << 40, 2), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, 12000);
	rdm_expect(test, &pair->end[1], 1, 12000);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, 12000, 1));
}

static void matrix_name(const struct field *field, char *name)
{
	strscpy(name, kefa_row_of(field->type)->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(matrix, fields, matrix_name);

/* The table has a row for each type. */
static void matrix_full(struct kunit *test)
{
	unsigned int i, n = 0;

	for (i = 0; i < KEFA_PKT_TYPES; i++)
		n += !!kefa_row_of(i);
	KUNIT_EXPECT_EQ(test, n, (unsigned int)ARRAY_SIZE(fields));
}

static struct kunit_case matrix_cases[] = {
	KUNIT_CASE(matrix_full),
	KUNIT_CASE_PARAM(matrix_row, matrix_gen_params),
	{}
};

static struct kunit_suite matrix_suite = {
	.name		= "kefa_rdm_matrix",
	.test_cases	= matrix_cases,
};

kunit_test_suite(matrix_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, each type of packet in each state");
MODULE_LICENSE("Dual BSD/GPL");
