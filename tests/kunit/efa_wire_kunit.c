// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Packets of fabric efa: each type in each form is parsed to what was built, bytes are those
 * of the protocol document, and invalid packets are refused with the right reason.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/slab.h>
#include "efa_wire_cases.h"
#include "../../prov/efa/rdm/fast_far.h"

#define ROOM	512

struct scene {
	struct wire_case	c;
	struct kefa_pkt		pkt;
	u8			buf[ROOM + 1];
	u8			out[ROOM];
};

static struct scene *scene(struct kunit *test)
{
	struct scene *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	return s;
}

static void expect_bytes(struct kunit *test, const void *a, const void *b, size_t len)
{
	if (len)
		KUNIT_EXPECT_MEMEQ(test, a, b, len);
}

static bool plain_of(const struct kefa_pkt *pkt, enum kefa_bad bad, u8 type)
{
	return !bad && (pkt->row->type == type || pkt->row->type == type + 1) &&
	       (pkt->flags & ~(KEFA_REQ_MSG | KEFA_REQ_TAGGED)) == KEFA_PKT_CONNID_HDR;
}

static void expect_part(struct kunit *test, const void *buf, size_t len, const struct kefa_pkt *pkt,
			enum kefa_bad bad)
{
	const bool plain = plain_of(pkt, bad, KEFA_MEDIUM_MSGRTM_PKT);
	struct kefa_part p;

	KUNIT_EXPECT_EQ(test, kefa_part_parse(buf, len, &p), plain);
	if (!plain)
		return;
	KUNIT_EXPECT_EQ(test, p.e.tagged, !!(pkt->row->flags & KEFA_ROW_TAGGED));
	KUNIT_EXPECT_EQ(test, p.e.msg_id, pkt->msg_id);
	KUNIT_EXPECT_EQ(test, p.e.connid, pkt->connid);
	KUNIT_EXPECT_EQ(test, p.e.tag, pkt->tag);
	KUNIT_EXPECT_EQ(test, p.total, pkt->msg_length);
	KUNIT_EXPECT_EQ(test, p.off, pkt->seg_offset);
	KUNIT_EXPECT_EQ(test, p.e.len, pkt->data_len);
	KUNIT_EXPECT_PTR_EQ(test, p.e.data, pkt->data);
}

static void expect_read(struct kunit *test, const void *buf, size_t len, const struct kefa_pkt *pkt,
			enum kefa_bad bad)
{
	const bool plain = plain_of(pkt, bad, KEFA_LONGREAD_MSGRTM_PKT) &&
			   pkt->read_iov_count == 1 &&
			   !upper_32_bits(le64_to_cpu(pkt->read_iov->key));
	const struct kefa_eor_hdr *eor = kefa_eor_parse(buf, len);
	struct kefa_read r;

	KUNIT_EXPECT_EQ(test, !!eor, !bad && pkt->row->type == KEFA_EOR_PKT && pkt->has_connid);
	if (eor) {
		KUNIT_EXPECT_EQ(test, le32_to_cpu(eor->send_id), pkt->send_id);
		KUNIT_EXPECT_EQ(test, le32_to_cpu(eor->connid), pkt->connid);
	}
	KUNIT_EXPECT_EQ(test, kefa_read_parse(buf, len, &r), plain);
	if (!plain)
		return;
	KUNIT_EXPECT_EQ(test, r.e.tagged, !!(pkt->row->flags & KEFA_ROW_TAGGED));
	KUNIT_EXPECT_EQ(test, r.e.msg_id, pkt->msg_id);
	KUNIT_EXPECT_EQ(test, r.e.connid, pkt->connid);
	KUNIT_EXPECT_EQ(test, r.e.tag, pkt->tag);
	KUNIT_EXPECT_EQ(test, r.total, pkt->msg_length);
	KUNIT_EXPECT_EQ(test, r.send_id, pkt->send_id);
	KUNIT_EXPECT_EQ(test, r.addr, le64_to_cpu(pkt->read_iov->addr));
	KUNIT_EXPECT_EQ(test, (u64)r.key, le64_to_cpu(pkt->read_iov->key));
}

static void expect_far(struct kunit *test, const void *buf, size_t len, const struct kefa_pkt *pkt,
		       enum kefa_bad bad)
{
	const bool plain = !bad && (pkt->flags & ~KEFA_REQ_RMA) == KEFA_PKT_CONNID_HDR &&
			   pkt->rma_iov_count == 1 && pkt->msg_length;
	const bool write = plain && pkt->row->type == KEFA_EAGER_RTW_PKT;
	const bool read = plain && pkt->row->type == KEFA_SHORT_RTR_PKT &&
			  pkt->recv_length >= pkt->msg_length;
	const struct kefa_readrsp_hdr *rsp = kefa_readrsp_parse(buf, len);
	struct kefa_far f;

	KUNIT_EXPECT_EQ(test, !!rsp, !bad && pkt->row->type == KEFA_READRSP_PKT &&
			pkt->has_connid && pkt->data_len);
	if (rsp) {
		KUNIT_EXPECT_EQ(test, le32_to_cpu(rsp->recv_id), pkt->recv_id);
		KUNIT_EXPECT_EQ(test, le32_to_cpu(rsp->connid), pkt->connid);
	}
	KUNIT_EXPECT_EQ(test, kefa_rtr_parse(buf, len, &f), read);
	if (read)
		KUNIT_EXPECT_EQ(test, f.recv_id, pkt->recv_id);
	KUNIT_EXPECT_EQ(test, kefa_rtw_parse(buf, len, &f) || read, write || read);
	if (write)
		KUNIT_EXPECT_PTR_EQ(test, f.data, pkt->data);
	if (!write && !read)
		return;
	/* The other one may have been tried after it. */
	KUNIT_EXPECT_EQ(test, read ? kefa_rtr_parse(buf, len, &f) : true, true);
	KUNIT_EXPECT_EQ(test, f.connid, pkt->connid);
	KUNIT_EXPECT_EQ(test, f.addr, le64_to_cpu(pkt->rma_iov->addr));
	KUNIT_EXPECT_EQ(test, f.key, le64_to_cpu(pkt->rma_iov->key));
	KUNIT_EXPECT_EQ(test, f.len, pkt->msg_length);
}

/* Call kefa_parse(), and expect the fast paths' parsers to agree on packets that they accept. */
static enum kefa_bad parse(struct kunit *test, const void *buf, size_t len, struct kefa_pkt *pkt)
{
	const enum kefa_bad bad = kefa_parse(buf, len, pkt);
	struct kefa_eager e;
	bool plain;

	expect_part(test, buf, len, pkt, bad);
	expect_read(test, buf, len, pkt, bad);
	expect_far(test, buf, len, pkt, bad);
	plain = plain_of(pkt, bad, KEFA_EAGER_MSGRTM_PKT);
	KUNIT_EXPECT_EQ(test, kefa_eager_parse(buf, len, &e), plain);
	if (!plain)
		return bad;
	KUNIT_EXPECT_EQ(test, e.tagged, !!(pkt->row->flags & KEFA_ROW_TAGGED));
	KUNIT_EXPECT_EQ(test, e.msg_id, pkt->msg_id);
	KUNIT_EXPECT_EQ(test, e.connid, pkt->connid);
	KUNIT_EXPECT_EQ(test, e.tag, pkt->tag);
	KUNIT_EXPECT_EQ(test, e.len, pkt->data_len);
	KUNIT_EXPECT_PTR_EQ(test, e.data, pkt->data);
	return bad;
}

/* Lengths that are copied in one way or another, at any address. */
static void wire_copy(struct kunit *test)
{
	struct scene *s = scene(test);
	u32 len, from, to;

	for (len = 0; len < ROOM; len++)
		s->buf[len] = len * 7 + 1;
	for (len = 0; len < 40; len++)
		for (from = 0; from < 8; from++)
			for (to = 1; to < 9; to++) {
				memset(s->out, 0, sizeof(s->out));
				kefa_copy_data(s->out + to, s->buf + from, len);
				expect_bytes(test, s->out + to, s->buf + from, len);
				KUNIT_EXPECT_EQ(test, s->out[to - 1], 0);
				KUNIT_EXPECT_EQ(test, s->out[to + len], 0);
			}
}

/* Compare parsed packets, except for pointers. */
static void expect_same(struct kunit *test, const struct kefa_pkt *a, const struct kefa_pkt *b)
{
	expect_bytes(test, a->raw, b->raw, a->raw_len);
	KUNIT_EXPECT_EQ(test, !a->raw, !b->raw);
	KUNIT_EXPECT_EQ(test, a->data_len, b->data_len);
	expect_bytes(test, a->data, b->data, a->data_len);
	KUNIT_EXPECT_PTR_EQ(test, a->row, b->row);
	KUNIT_EXPECT_EQ(test, a->flags, b->flags);
	KUNIT_EXPECT_EQ(test, a->raw_len, b->raw_len);
	KUNIT_EXPECT_EQ(test, a->has_connid, b->has_connid);
	KUNIT_EXPECT_EQ(test, a->connid, b->connid);
	KUNIT_EXPECT_EQ(test, a->msg_id, b->msg_id);
	KUNIT_EXPECT_EQ(test, a->send_id, b->send_id);
	KUNIT_EXPECT_EQ(test, a->recv_id, b->recv_id);
	KUNIT_EXPECT_EQ(test, a->credit_request, b->credit_request);
	/* The members of the union of both kinds of packets. */
	KUNIT_EXPECT_MEMEQ(test, &a->tag, &b->tag,
			   offsetof(struct kefa_pkt, raw) - offsetof(struct kefa_pkt, tag));
	if (a->row->flags & KEFA_ROW_HANDSHAKE)
		return;
	expect_bytes(test, a->rma_iov, b->rma_iov, a->rma_iov_count * sizeof(*a->rma_iov));
	expect_bytes(test, a->read_iov, b->read_iov, a->read_iov_count * sizeof(*a->read_iov));
}

/* Call @fn for each form of each type; @s->c is the form, @s->buf has the packet. */
static u32 each_form(struct kunit *test, struct scene *s,
		     void (*fn)(struct kunit *test, struct scene *s, size_t len))
{
	struct wire_form form;
	u32 type, n, forms = 0;
	size_t len;

	for (type = 0; type < 256; type++)
		for (n = 0; kefa_row_of(type) && n < WIRE_FORMS; n++) {
			if (!wire_form_of(kefa_row_of(type), n, &form))
				continue;
			wire_case_make(&s->c, kefa_row_of(type), form);
			len = wire_case_bytes(&s->c, s->buf, ROOM);
			KUNIT_ASSERT_GT_MSG(test, len, 0, "%s, form %u", s->c.pkt.row->name, n);
			fn(test, s, len);
			forms++;
		}
	return forms;
}

static void check_same(struct kunit *test, struct scene *s, size_t len)
{
	KUNIT_ASSERT_EQ_MSG(test, parse(test, s->buf, len, &s->pkt), KEFA_OK, "%s",
			    s->c.pkt.row->name);
	KUNIT_EXPECT_EQ(test, s->pkt.hdr_len + s->pkt.data_len, len);
	expect_same(test, &s->c.pkt, &s->pkt);
	/* The parsed packet builds to the same bytes, in a buffer of exactly its length. */
	KUNIT_EXPECT_EQ(test, kefa_build(&s->pkt, s->out, s->pkt.hdr_len), s->pkt.hdr_len);
	KUNIT_EXPECT_MEMEQ(test, s->out, s->buf, s->pkt.hdr_len);
	KUNIT_EXPECT_EQ(test, kefa_build(&s->pkt, s->out, s->pkt.hdr_len - 1), 0);
}

static void wire_there_and_back(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, each_form(test, scene(test), check_same), 556);
}

/* Parse only the first @cut bytes of a packet. */
static enum kefa_bad cut_to(const struct kefa_pkt *pkt, size_t hdr_len, size_t cut)
{
	const size_t len = hdr_len + pkt->data_len;

	if (cut < hdr_len)
		return KEFA_BAD_SHORT;
	if (cut == len)
		return KEFA_OK;
	switch ((enum kefa_data)pkt->row->data) {
	case KEFA_DATA_ALL:
	case KEFA_DATA_TAIL:
	case KEFA_DATA_FIRST:
	case KEFA_DATA_SOME:
		return KEFA_OK;
	case KEFA_DATA_PART:
	case KEFA_DATA_RUNT:
		if (cut == hdr_len)
			return KEFA_BAD_LENGTH;
		return cut < len ? KEFA_OK : KEFA_BAD_OFFSET;
	case KEFA_DATA_NONE:
	case KEFA_DATA_SEGMENT:
	case KEFA_DATA_ANSWER:
	case KEFA_DATA_RMA:
	case KEFA_DATA_OPERAND:
	case KEFA_DATA_COMPARE:
		break;
	}
	return KEFA_BAD_LENGTH;
}

static void check_cuts(struct kunit *test, struct scene *s, size_t len)
{
	const size_t hdr_len = len - s->c.pkt.data_len;
	size_t cut;
	u8 *exact;

	for (cut = 0; cut <= len + 1; cut++) {
		/* In an allocation of that size, so that KASAN detects reads beyond it. */
		exact = kmemdup(s->buf, cut ?: 1, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, exact);
		KUNIT_EXPECT_EQ_MSG(test, parse(test, exact, cut, &s->pkt),
				    cut_to(&s->c.pkt, hdr_len, cut), "%s, %zu of %zu bytes",
				    s->c.pkt.row->name, cut, len);
		kfree(exact);
	}
}

static void wire_each_length(struct kunit *test)
{
	each_form(test, scene(test), check_cuts);
}

/* One of each type, with a connid. */
static size_t simple(struct scene *s, u8 type)
{
	const struct kefa_pkt_row *row = kefa_row_of(type);
	const struct wire_form form = {
		.flags	= KEFA_PKT_CONNID_HDR,
		.rma	= row->flags & KEFA_ROW_RMA ? 2 : 0,
		.read	= row->flags & KEFA_ROW_READ ? 2 : 0,
	};

	wire_case_make(&s->c, row, form);
	return wire_case_bytes(&s->c, s->buf, ROOM);
}

static void wire_types_and_versions(struct kunit *test)
{
	struct scene *s = scene(test);
	u32 type, version, known = 0;
	size_t len;

	for (type = 0; type < 256; type++) {
		if (!kefa_row_of(type)) {
			memset(s->buf, 0, ROOM);
			s->buf[0] = type;
			s->buf[1] = KEFA_PROTOCOL_VERSION;
			KUNIT_EXPECT_EQ(test, parse(test, s->buf, ROOM, &s->pkt), KEFA_BAD_TYPE);
			KUNIT_EXPECT_NULL(test, s->pkt.row);
			continue;
		}
		known++;
		len = simple(s, type);
		for (version = 0; version < 256; version++) {
			s->buf[1] = version;
			KUNIT_EXPECT_EQ(test, parse(test, s->buf, len, &s->pkt),
					version == 4 ? KEFA_OK : KEFA_BAD_VERSION);
		}
	}
	/* All types of the document except reserved and retired ones, and PEER_ERROR. */
	KUNIT_EXPECT_EQ(test, known, 35);
}

/* An unknown flag may add a header, so the packet must be refused. */
static void wire_flags(struct kunit *test)
{
	struct scene *s = scene(test);
	const struct kefa_pkt_row *row;
	u32 type, bit;
	size_t len;

	for (type = 0; type < KEFA_PKT_TYPES; type++) {
		row = kefa_row_of(type);
		if (!row || row->flags & KEFA_ROW_HANDSHAKE)
			continue;
		for (bit = 0; bit < 16; bit++) {
			if (row->may & BIT(bit))
				continue;
			len = simple(s, type);
			s->buf[2 + bit / 8] |= BIT(bit % 8);
			KUNIT_EXPECT_EQ_MSG(test, parse(test, s->buf, len, &s->pkt), KEFA_BAD_FLAGS,
					    "%s, bit %u", row->name, bit);
		}
		if (!(row->flags & KEFA_ROW_REQ))
			continue;
		len = simple(s, type);
		s->buf[2] |= KEFA_REQ_OPT_RAW_ADDR_HDR;
		KUNIT_EXPECT_EQ(test, parse(test, s->buf, len, &s->pkt), KEFA_BAD_FLAGS);
	}
}

struct wrong {
	u8		type;
	u8		at;	/* offset of the bytes that are overwritten */
	u8		size;
	u64		value;
	enum kefa_bad	bad;
	const char	*why;
};

/* Fields of packets of simple(), which have two iovs, of 2 and 3 or 100 and 101 bytes. */
static const struct wrong wrongs[] = {
	{ KEFA_EAGER_RTW_PKT, 4, 4, 5, KEFA_BAD_COUNT, "five iovs" },
	{ KEFA_EAGER_RTW_PKT, 4, 4, U32_MAX, KEFA_BAD_COUNT, "iovs without end" },
	{ KEFA_EAGER_RTW_PKT, 4, 4, 0, KEFA_BAD_LENGTH, "data for no iov" },
	{ KEFA_EAGER_RTW_PKT, 4, 4, 4, KEFA_BAD_SHORT, "iovs that aren't there" },
	{ KEFA_EAGER_RTW_PKT, 16, 8, U64_MAX, KEFA_BAD_RANGE, "round the end of memory" },
	{ KEFA_EAGER_RTW_PKT, 16, 8, 3, KEFA_BAD_LENGTH, "less data than iovs" },
	{ KEFA_DC_EAGER_RTW_PKT, 4, 4, 0, KEFA_BAD_COUNT, "no iov" },
	{ KEFA_LONGCTS_RTW_PKT, 4, 4, 0, KEFA_BAD_COUNT, "no iov" },
	{ KEFA_LONGCTS_RTW_PKT, 8, 8, 200, KEFA_BAD_TOTAL, "more iovs than message" },
	{ KEFA_LONGCTS_RTW_PKT, 8, 8, 202, KEFA_BAD_TOTAL, "less iovs than message" },
	{ KEFA_DC_LONGCTS_RTW_PKT, 8, 8, 0, KEFA_BAD_TOTAL, "no message" },
	{ KEFA_LONGREAD_RTW_PKT, 20, 4, 0, KEFA_BAD_COUNT, "nothing to read" },
	{ KEFA_LONGREAD_RTW_PKT, 20, 4, 5, KEFA_BAD_COUNT, "five sources" },
	{ KEFA_LONGREAD_RTW_PKT, 8, 8, 202, KEFA_BAD_TOTAL, "less iovs than message" },
	{ KEFA_SHORT_RTR_PKT, 4, 4, 0, KEFA_BAD_COUNT, "no iov" },
	{ KEFA_SHORT_RTR_PKT, 8, 8, 1, KEFA_BAD_TOTAL, "more iovs than message" },
	{ KEFA_LONGCTS_RTR_PKT, 20, 4, 0, KEFA_BAD_TOTAL, "a window of nothing" },
	{ KEFA_CTS_PKT, 16, 8, 0, KEFA_BAD_TOTAL, "a window of nothing" },
	{ KEFA_WRITE_RTA_PKT, 8, 4, 0, KEFA_BAD_COUNT, "no iov" },
	{ KEFA_WRITE_RTA_PKT, 8, 4, 5, KEFA_BAD_COUNT, "five iovs" },
	{ KEFA_WRITE_RTA_PKT, 32, 8, 3, KEFA_BAD_LENGTH, "less operands than iovs" },
	{ KEFA_FETCH_RTA_PKT, 32, 8, 1, KEFA_BAD_LENGTH, "more operands than iovs" },
	{ KEFA_COMPARE_RTA_PKT, 32, 8, 7, KEFA_BAD_LENGTH, "no operands to compare with" },
	{ KEFA_COMPARE_RTA_PKT, 32, 8, BIT_ULL(63) + 2, KEFA_BAD_LENGTH, "2 * 2^63 is 0" },
	{ KEFA_MEDIUM_MSGRTM_PKT, 8, 8, 7, KEFA_BAD_OFFSET, "a segment past the message" },
	{ KEFA_MEDIUM_MSGRTM_PKT, 16, 8, U64_MAX, KEFA_BAD_OFFSET, "round the end" },
	{ KEFA_MEDIUM_TAGRTM_PKT, 8, 8, 0, KEFA_BAD_OFFSET, "no message" },
	{ KEFA_DC_MEDIUM_TAGRTM_PKT, 24, 8, U64_MAX - 7, KEFA_BAD_OFFSET, "round the end" },
	{ KEFA_RUNTREAD_MSGRTM_PKT, 32, 8, U64_MAX, KEFA_BAD_TOTAL, "more runt than message" },
	{ KEFA_RUNTREAD_MSGRTM_PKT, 32, 8, 7, KEFA_BAD_OFFSET, "a segment past the runt" },
	{ KEFA_RUNTREAD_TAGRTM_PKT, 20, 4, 0, KEFA_BAD_COUNT, "nothing to read" },
	{ KEFA_RUNTREAD_TAGRTM_PKT, 8, 8, 20, KEFA_BAD_TOTAL, "more sources than message" },
	{ KEFA_LONGREAD_MSGRTM_PKT, 8, 8, 20, KEFA_BAD_TOTAL, "more sources than message" },
	{ KEFA_LONGREAD_TAGRTM_PKT, 20, 4, U32_MAX, KEFA_BAD_COUNT, "sources without end" },
	{ KEFA_LONGREAD_MSGRTM_PKT, 36, 8, U64_MAX, KEFA_BAD_RANGE, "round the end of memory" },
	{ KEFA_LONGCTS_MSGRTM_PKT, 8, 8, 7, KEFA_BAD_LENGTH, "nothing is left to send" },
	{ KEFA_LONGCTS_TAGRTM_PKT, 8, 8, 0, KEFA_BAD_LENGTH, "no message" },
	{ KEFA_CTSDATA_PKT, 8, 8, 4, KEFA_BAD_LENGTH, "another length than it says" },
	{ KEFA_CTSDATA_PKT, 16, 8, U64_MAX, KEFA_BAD_OFFSET, "round the end" },
	{ KEFA_READRSP_PKT, 16, 8, U64_MAX, KEFA_BAD_LENGTH, "another length than it says" },
	{ KEFA_ATOMRSP_PKT, 16, 8, 6, KEFA_BAD_LENGTH, "another length than it says" },
	{ KEFA_HANDSHAKE_PKT, 4, 4, 2, KEFA_BAD_FEATURES, "fewer than no words" },
	{ KEFA_HANDSHAKE_PKT, 4, 4, 0, KEFA_BAD_FEATURES, "fewer than no words" },
	{ KEFA_HANDSHAKE_PKT, 4, 4, 8, KEFA_BAD_FEATURES, "five words" },
	{ KEFA_HANDSHAKE_PKT, 4, 4, U32_MAX, KEFA_BAD_FEATURES, "words without end" },
	{ KEFA_HANDSHAKE_PKT, 4, 4, 7, KEFA_BAD_SHORT, "words that aren't there" },
};

static void wire_wrong_numbers(struct kunit *test)
{
	struct scene *s = scene(test);
	const struct wrong *w;
	__le64 value;
	size_t len;

	for (w = wrongs; w < wrongs + ARRAY_SIZE(wrongs); w++) {
		len = simple(s, w->type);
		KUNIT_ASSERT_EQ_MSG(test, parse(test, s->buf, len, &s->pkt), KEFA_OK, "%s",
				    s->c.pkt.row->name);
		value = cpu_to_le64(w->value);
		memcpy(s->buf + w->at, &value, w->size);
		KUNIT_EXPECT_EQ_MSG(test, parse(test, s->buf, len, &s->pkt), w->bad, "%s: %s",
				    s->c.pkt.row->name, w->why);
	}
}

/* Two iovs that are valid alone, but whose sum is too large. */
static void wire_sums(struct kunit *test)
{
	struct scene *s = scene(test);
	struct kefa_rma_iov *iov;
	size_t len;

	len = simple(s, KEFA_SHORT_RTR_PKT);
	iov = (void *)(s->buf + sizeof(struct kefa_rtr_hdr));
	iov[0].addr = 0;
	iov[1].addr = 0;
	iov[0].len = cpu_to_le64(BIT_ULL(63) + 150);
	iov[1].len = cpu_to_le64(BIT_ULL(63) + 51);
	KUNIT_EXPECT_EQ(test, parse(test, s->buf, len, &s->pkt), KEFA_BAD_RANGE);
	/* A read of nothing is one all the same, and so is one of the last byte. */
	KUNIT_EXPECT_EQ(test, kefa_parse(s->buf, len, &s->pkt), KEFA_BAD_RANGE);
	/* Reads of length 0 and of the last byte are valid. */
	iov[0].len = 0;
	iov[1].len = 0;
	memset(s->buf + 8, 0, 8);
	KUNIT_EXPECT_EQ(test, parse(test, s->buf, len, &s->pkt), KEFA_OK);
	iov[0].addr = cpu_to_le64(U64_MAX - 1);
	iov[0].len = cpu_to_le64(1);
	s->buf[8] = 1;
	KUNIT_EXPECT_EQ(test, parse(test, s->buf, len, &s->pkt), KEFA_OK);
}

static void wire_raw_address_lengths(struct kunit *test)
{
	static const struct wire_form form = { .flags = KEFA_REQ_OPT_RAW_ADDR_HDR };
	struct scene *s = scene(test);
	size_t len;
	u32 n;

	for (n = 0; n < 100; n++) {
		wire_case_make(&s->c, kefa_row_of(KEFA_EAGER_MSGRTM_PKT), form);
		len = wire_case_bytes(&s->c, s->buf, ROOM);
		s->buf[8] = n;
		/* The parser doesn't read beyond the end. */
		if (n < 32 || n > 64 || n % 4)
			KUNIT_EXPECT_EQ(test, parse(test, s->buf, ROOM, &s->pkt), KEFA_BAD_ADDR);
		else if (n > 36 + s->c.pkt.data_len)
			KUNIT_EXPECT_EQ(test, parse(test, s->buf, len, &s->pkt), KEFA_BAD_SHORT);
		else
			KUNIT_EXPECT_EQ(test, parse(test, s->buf, len, &s->pkt), KEFA_OK);
	}
	s->buf[8] = 36;
	s->buf[11] = 0x80;
	KUNIT_EXPECT_EQ(test, parse(test, s->buf, ROOM, &s->pkt), KEFA_BAD_ADDR);
}

/* The largest header of any libfabric, and the provider's largest, which has one source. */
static void wire_largest(struct kunit *test)
{
	const struct wire_form theirs = {
		KEFA_REQ_OPT_RAW_ADDR_HDR | KEFA_REQ_OPT_CQ_DATA_HDR, 4, 4
	};
	const struct wire_form ours = {
		KEFA_REQ_OPT_RAW_ADDR_HDR | KEFA_REQ_OPT_CQ_DATA_HDR, 4, 1
	};
	struct scene *s = scene(test);
	u32 type;

	wire_case_make(&s->c, kefa_row_of(KEFA_LONGREAD_RTW_PKT), theirs);
	KUNIT_EXPECT_EQ(test, kefa_build(&s->c.pkt, s->buf, ROOM), 264);
	for (type = 0; type < KEFA_PKT_TYPES; type++)
		if (kefa_row_of(type)) {
			wire_case_make(&s->c, kefa_row_of(type), ours);
			KUNIT_EXPECT_GT(test, kefa_build(&s->c.pkt, s->buf, KEFA_HDR_ROOM), 0);
		}
	/* A window of 2^32 and more doesn't fit a request to read. */
	simple(s, KEFA_LONGCTS_RTR_PKT);
	s->c.pkt.recv_length = BIT_ULL(32);
	KUNIT_EXPECT_EQ(test, kefa_build(&s->c.pkt, s->buf, ROOM), 0);
}

struct golden {
	const char	*hex;
	u8		type;
	u64		number;		/* value of the field */
	u16		host_at;
	u16		host_size;
};

#define GOLDEN(type, hex, field, value)					\
	{ hex, KEFA_##type##_PKT, value, offsetof(struct kefa_pkt, field),	\
	  sizeof_field(struct kefa_pkt, field) }

/* Copied from the tables of the protocol document, byte by byte. */
static const struct golden goldens[] = {
	GOLDEN(EAGER_TAGRTM,
	       "41040c80 05000000 8877665544332211 efbeadde 6869",
	       tag, 0x1122334455667788),
	GOLDEN(EAGER_MSGRTM,
	       "40040680 ffffffff 0700000000000000 01000000",
	       cq_data, 7),
	GOLDEN(MEDIUM_MSGRTM,
	       "42040480 01000000 0600000000000000 0400000000000000 01000000 6869",
	       seg_offset, 4),
	GOLDEN(LONGCTS_MSGRTM,
	       "44040420 02000000 0001000000000000 09000000 20000000",
	       send_id, 9),
	GOLDEN(DC_MEDIUM_MSGRTM,
	       "87040480 03000000 04000000 00000000 1200000000000000 1000000000000000 02000000 6869",
	       seg_offset, 0x10),
	GOLDEN(EAGER_RTW,
	       "46040080 01000000 0010000000000000 0200000000000000 2a00000000000000 03000000 6869",
	       msg_length, 2),
	GOLDEN(LONGCTS_RTR,
	       "49040080 01000000 8000000000000000 0b000000 40000000 0010000000000000 8000000000000000 2a00000000000000 03000000",
	       recv_length, 0x40),
	GOLDEN(DC_WRITE_RTA,
	       "8d042080 07000000 01000000 06000000 02000000 66000000 0010000000000000 0800000000000000 2a00000000000000 03000000 0100000000000000",
	       send_id, 0x66),
	GOLDEN(LONGREAD_MSGRTM,
	       "80040480 01000000 0000100000000000 05000000 01000000 03000000 0000000001000000 0000100000000000 0700000000000000",
	       read_iov_count, 1),
	GOLDEN(RUNTREAD_MSGRTM,
	       "91040480 01000000 0000100000000000 05000000 01000000 0100000000000000 0300000000000000 03000000 0000000001000000 0000100000000000 0700000000000000 6869",
	       runt_length, 3),
	GOLDEN(CTS,
	       "03048080 03000000 0c000000 0d000000 0060040000000000",
	       recv_length, 0x46000),
	GOLDEN(CTSDATA,
	       "04040080 0d000000 0200000000000000 0400000000000000 03000000 00000000 6869",
	       connid, 3),
	/* The document's table exchanges these two; libfabric's code doesn't. */
	GOLDEN(READRSP,
	       "05040080 03000000 0a000000 0b000000 0200000000000000 6869",
	       recv_id, 0x0a),
	GOLDEN(EOR,
	       "07040080 0c000000 0d000000 03000000",
	       send_id, 0x0c),
	GOLDEN(READ_NACK,
	       "0b040080 0c000000 0d000000 03000000",
	       recv_id, 0x0d),
	GOLDEN(RECEIPT,
	       "0a040080 0c000000 0d000000 03000000",
	       msg_id, 0x0d),
	GOLDEN(ATOMRSP,
	       "08040080 03000000 00000000 0d000000 0200000000000000 6869",
	       recv_id, 0x0d),
	GOLDEN(HANDSHAKE,
	       "09040280 04000000 7b00000000000000 0300000000000000 a1ef000000000000",
	       shake.device_version, 0xefa1),
};

/* Blanks are ignored. */
static size_t from_hex(struct kunit *test, u8 *to, const char *hex)
{
	size_t len = 0;

	for (; *hex; hex++) {
		if (*hex == ' ')
			continue;
		KUNIT_ASSERT_LT(test, len, ROOM);
		KUNIT_ASSERT_EQ(test, hex2bin(to + len++, hex++, 1), 0);
	}
	return len;
}

static void wire_golden(struct kunit *test)
{
	struct scene *s = scene(test);
	const struct golden *g;
	const u8 *at;
	size_t len;

	for (g = goldens; g < goldens + ARRAY_SIZE(goldens); g++) {
		len = from_hex(test, s->buf, g->hex);
		KUNIT_ASSERT_EQ_MSG(test, parse(test, s->buf, len, &s->pkt), KEFA_OK, "%s",
				    kefa_pkt_rows[g->type].name);
		KUNIT_EXPECT_EQ(test, s->pkt.row->type, g->type);
		at = (const u8 *)&s->pkt + g->host_at;
		KUNIT_EXPECT_EQ_MSG(test, g->host_size == 8 ? *(u64 *)at : *(u32 *)at, g->number,
				    "%s", s->pkt.row->name);
		KUNIT_EXPECT_EQ(test, kefa_build(&s->pkt, s->out, ROOM), s->pkt.hdr_len);
		KUNIT_EXPECT_MEMEQ(test, s->out, s->buf, s->pkt.hdr_len);
	}
}

/* Properties of all rows, and their consistency with other tables. */
static void wire_table(struct kunit *test)
{
	const u16 rtm = KEFA_ROW_REQ | KEFA_ROW_ORDERED;
	const struct kefa_pkt_row *row;
	u32 type;

	for (type = 0; type < KEFA_PKT_TYPES; type++) {
		row = kefa_row_of(type);
		if (!row)
			continue;
		KUNIT_EXPECT_EQ(test, row->type, type);
		KUNIT_EXPECT_EQ(test, !!(row->flags & KEFA_ROW_REQ), type >= 64);
		KUNIT_EXPECT_EQ(test, !!(row->flags & KEFA_ROW_DC), type >= 133 && type <= 141);
		KUNIT_EXPECT_EQ(test, !!(row->needs & KEFA_FEATURE_DELIVERY_COMPLETE),
				!!(row->flags & KEFA_ROW_DC));
		KUNIT_EXPECT_EQ(test, !!(row->needs & KEFA_FEATURE_RDMA_READ),
				!!(row->flags & KEFA_ROW_READ));
		KUNIT_EXPECT_EQ(test, row->hdr % 4, 0);
		/* Without a HANDSHAKE only types that all versions know may be sent. */
		KUNIT_EXPECT_EQ(test, kefa_pkt_may_send(row, 0), type <= 76 && type != 11);
		KUNIT_EXPECT_TRUE(test, kefa_pkt_may_send(row, 0x53));
		if (!(row->flags & KEFA_ROW_TAGGED))
			continue;
		/* A tagged type follows the same type without a tag. */
		KUNIT_EXPECT_EQ(test, row->flags & rtm, rtm);
		KUNIT_EXPECT_EQ(test, row[-1].flags, row->flags & ~KEFA_ROW_TAGGED);
		KUNIT_EXPECT_EQ(test, row[-1].hdr + 8, row->hdr);
		KUNIT_EXPECT_EQ(test, row[-1].data, row->data);
	}
	KUNIT_EXPECT_FALSE(test, kefa_pkt_may_send(kefa_row_of(KEFA_RUNTREAD_MSGRTM_PKT),
						   KEFA_FEATURE_RDMA_READ));
}

static void wire_reasons(struct kunit *test)
{
	u32 a, b;

	for (a = 0; a < KEFA_BAD_REASONS; a++)
		for (b = 0; b < a; b++)
			KUNIT_EXPECT_STRNEQ(test, kefa_bad_text(a), kefa_bad_text(b));
}

static struct kunit_case wire_cases[] = {
	KUNIT_CASE(wire_there_and_back),
	KUNIT_CASE_SLOW(wire_each_length),
	KUNIT_CASE(wire_types_and_versions),
	KUNIT_CASE(wire_flags),
	KUNIT_CASE(wire_wrong_numbers),
	KUNIT_CASE(wire_sums),
	KUNIT_CASE(wire_raw_address_lengths),
	KUNIT_CASE(wire_largest),
	KUNIT_CASE(wire_golden),
	KUNIT_CASE(wire_table),
	KUNIT_CASE(wire_reasons),
	KUNIT_CASE(wire_copy),
	{}
};

static struct kunit_suite wire_suite = {
	.name		= "kefa_wire",
	.test_cases	= wire_cases,
};

kunit_test_suite(wire_suite);

MODULE_DESCRIPTION("KUnit suites of fabric efa's protocol");
MODULE_LICENSE("Dual BSD/GPL");
