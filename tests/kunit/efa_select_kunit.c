// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Choice of the sub-protocol: the same as libfabric's at each boundary, and invariants for any
 * length, thresholds and headers.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include "../../prov/efa/rdm/select.h"
#include "efa_wire_cases.h"

static const struct kefa_rdm_limits usual = {
	.mtu			= 8928,
	.max_medium		= 65536,
	.min_read_message	= 1048576,
	.min_read_write		= 65536,
	.credits		= 32,
};

struct want {
	struct kefa_case	c;
	u8			type;
	u8			(*select)(const struct kefa_rdm_limits *lim,
					  const struct kefa_case *c);
};

#define OF_MSG(_type, _len, ...)							\
	{ { .len = (_len), .flags = KEFA_PKT_CONNID_HDR, __VA_ARGS__ },		\
	  KEFA_##_type##_PKT, kefa_select_msg }
#define OF_WRITE(_type, _len, ...)							\
	{ { .len = (_len), .flags = KEFA_PKT_CONNID_HDR, .rma_iov_count = 1, __VA_ARGS__ },	\
	  KEFA_##_type##_PKT, kefa_select_write }
#define OF_READ(_type, _len, ...)							\
	{ { .len = (_len), .flags = KEFA_PKT_CONNID_HDR, .rma_iov_count = 1, __VA_ARGS__ },	\
	  KEFA_##_type##_PKT, kefa_select_read }

static const struct want wants[] = {
	OF_MSG(EAGER_MSGRTM, 0),
	OF_MSG(EAGER_MSGRTM, 8928 - 8 - 4),
	OF_MSG(MEDIUM_MSGRTM, 8928 - 8 - 4 + 1),
	OF_MSG(EAGER_TAGRTM, 8928 - 16 - 4, .tagged = true),
	OF_MSG(MEDIUM_TAGRTM, 8928 - 16 - 4 + 1, .tagged = true),
	OF_MSG(DC_EAGER_TAGRTM, 8928 - 24 - 4, .tagged = true, .dc = true),
	OF_MSG(DC_MEDIUM_TAGRTM, 8928 - 24 - 4 + 1, .tagged = true, .dc = true),
	OF_MSG(MEDIUM_MSGRTM, 65536),
	OF_MSG(DC_MEDIUM_MSGRTM, 65536, .dc = true),
	OF_MSG(LONGCTS_MSGRTM, 65537),
	OF_MSG(LONGCTS_TAGRTM, 1048575, .tagged = true, .reads = true),
	OF_MSG(LONGCTS_MSGRTM, 1048576),
	OF_MSG(DC_LONGCTS_TAGRTM, U64_MAX, .tagged = true, .dc = true),
	OF_MSG(LONGREAD_MSGRTM, 1048576, .reads = true),
	OF_MSG(LONGREAD_TAGRTM, U64_MAX, .reads = true, .tagged = true, .dc = true),
	OF_WRITE(EAGER_RTW, 0),
	OF_WRITE(EAGER_RTW, 8928 - 8 - 24 - 4),
	OF_WRITE(LONGCTS_RTW, 8928 - 8 - 24 - 4 + 1),
	OF_WRITE(DC_EAGER_RTW, 8928 - 16 - 24 - 4, .dc = true),
	OF_WRITE(DC_LONGCTS_RTW, 8928 - 16 - 24 - 4 + 1, .dc = true),
	OF_WRITE(LONGCTS_RTW, 65535, .reads = true),
	OF_WRITE(LONGREAD_RTW, 65536, .reads = true),
	OF_WRITE(LONGREAD_RTW, 65536, .reads = true, .dc = true),
	OF_WRITE(LONGCTS_RTW, 65536),
	OF_READ(SHORT_RTR, 0),
	OF_READ(SHORT_RTR, 8928 - 24),
	OF_READ(LONGCTS_RTR, 8928 - 24 + 1),
};

static void select_at_borders(struct kunit *test)
{
	const struct want *w;

	for (w = wants; w < wants + ARRAY_SIZE(wants); w++)
		KUNIT_EXPECT_EQ_MSG(test, w->select(&usual, &w->c), w->type, "%s, %llu bytes",
				    kefa_row_of(w->type)->name, w->c.len);
}

/* Headers have the computed length, or the data wouldn't fit. */
static void select_header_lengths(struct kunit *test)
{
	struct wire_case *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	const struct kefa_pkt_row *row;
	struct wire_form form;
	u8 buf[512];
	u32 type, n, len;

	KUNIT_ASSERT_NOT_NULL(test, c);
	for (type = 0; type < KEFA_PKT_TYPES; type++) {
		row = kefa_row_of(type);
		for (n = 0; row && n < WIRE_FORMS; n++) {
			if (row->flags & KEFA_ROW_HANDSHAKE || !wire_form_of(row, n, &form))
				continue;
			wire_case_make(c, row, form);
			len = kefa_hdr_len(row, form.flags, form.rma, form.read);
			KUNIT_EXPECT_EQ_MSG(test, kefa_build(&c->pkt, buf, sizeof(buf)), len,
					    "%s, form %u", row->name, n);
		}
	}
}

/* The computed number of windows transfers all data, and no window is empty or too large. */
static void expect_windows(struct kunit *test, const struct kefa_rdm_limits *lim, u64 left)
{
	u64 window;
	u32 rounds = 0;

	while (left && rounds++ < 100) {
		window = kefa_grant(lim, left);
		KUNIT_ASSERT_GT(test, window, 0);
		KUNIT_ASSERT_LE(test, window, left);
		KUNIT_ASSERT_LE(test, DIV_ROUND_UP_ULL(window, kefa_data_room(lim)), lim->credits);
		KUNIT_ASSERT_EQ(test, kefa_granted(window, left), window);
		KUNIT_ASSERT_EQ(test, kefa_granted(U64_MAX, left), left);
		left -= window;
	}
}

static void expect_pieces(struct kunit *test, const struct kefa_rdm_limits *lim, u8 type,
			  const struct kefa_case *c)
{
	const struct kefa_pkt_row *row = kefa_row_of(type);
	u32 room = lim->mtu - kefa_hdr_len(row, c->flags, c->rma_iov_count, 1);
	u32 segment = kefa_segment(lim, type, c), packets, fewest;

	KUNIT_ASSERT_LE(test, segment, room);
	switch ((enum kefa_data)row->data) {
	case KEFA_DATA_ALL:
	case KEFA_DATA_RMA:
		KUNIT_EXPECT_EQ(test, segment, c->len);
		break;
	case KEFA_DATA_NONE:
		/* If the peer refuses to read, data is left for it to grant. */
		KUNIT_EXPECT_EQ(test, segment, 0);
		KUNIT_EXPECT_GT(test, c->len, room);
		break;
	case KEFA_DATA_FIRST:
	case KEFA_DATA_SOME:
		KUNIT_EXPECT_EQ(test, segment, room);
		KUNIT_ASSERT_LT(test, segment, c->len);
		expect_windows(test, lim, c->len - segment);
		break;
	default:
		KUNIT_ASSERT_EQ(test, row->data, KEFA_DATA_PART);
		KUNIT_EXPECT_EQ(test, segment % 8, 0);
		packets = DIV_ROUND_UP(c->len, segment);
		fewest = DIV_ROUND_UP(c->len, round_down(room, 8));
		KUNIT_EXPECT_LE(test, packets, fewest);
		KUNIT_EXPECT_GT(test, c->len, (u64)(packets - 1) * segment);
	}
}

static void select_any(struct kunit *test)
{
	static const u16 flags[] = { 0, KEFA_PKT_CONNID_HDR, KEFA_REQ_OPT_RAW_ADDR_HDR };
	struct kefa_rdm_limits lim = { };
	struct rnd_state rnd;
	struct kefa_case c;
	u32 step;
	u8 type;

	prandom_seed_state(&rnd, 7);
	for (step = 0; step < 100000; step++) {
		lim.mtu = 512 + prandom_u32_state(&rnd) % 8700;
		/* Also thresholds that make no sense. */
		lim.max_medium = prandom_u32_state(&rnd) % 100000;
		lim.min_read_message = prandom_u32_state(&rnd) % 2000000;
		lim.min_read_write = prandom_u32_state(&rnd) % 100000;
		lim.credits = 1 + prandom_u32_state(&rnd) % 64;
		c.len = prandom_u32_state(&rnd) >> prandom_u32_state(&rnd) % 32;
		if (step % 4 == 0)
			c.len = lim.mtu - prandom_u32_state(&rnd) % 200;
		c.flags = flags[prandom_u32_state(&rnd) % 3];
		c.flags |= prandom_u32_state(&rnd) % 2 ? KEFA_REQ_OPT_CQ_DATA_HDR : 0;
		c.tagged = prandom_u32_state(&rnd) % 2;
		c.dc = prandom_u32_state(&rnd) % 2;
		c.reads = prandom_u32_state(&rnd) % 2;
		c.rma_iov_count = 0;
		type = kefa_select_msg(&lim, &c);
		KUNIT_ASSERT_NOT_NULL(test, kefa_row_of(type));
		KUNIT_EXPECT_EQ(test, !!(kefa_row_of(type)->flags & KEFA_ROW_TAGGED), c.tagged);
		KUNIT_EXPECT_TRUE(test, c.reads || !(kefa_row_of(type)->flags & KEFA_ROW_READ));
		KUNIT_EXPECT_TRUE(test, !c.dc ||
				  kefa_row_of(type)->flags & (KEFA_ROW_DC | KEFA_ROW_READ));
		expect_pieces(test, &lim, type, &c);
		c.rma_iov_count = 1 + prandom_u32_state(&rnd) % KEFA_IOV_MAX;
		type = kefa_select_write(&lim, &c);
		KUNIT_ASSERT_NOT_NULL(test, kefa_row_of(type));
		expect_pieces(test, &lim, type, &c);
	}
}

static void select_windows(struct kunit *test)
{
	struct kefa_rdm_limits lim = usual;

	expect_windows(test, &lim, U64_MAX);
	KUNIT_EXPECT_EQ(test, kefa_grant(&lim, U64_MAX), 32 * (8928 - 32));
	/* As in libfabric, one more packet isn't granted at once. */
	KUNIT_EXPECT_EQ(test, kefa_grant(&lim, 1), 1);
	lim.credits = U32_MAX;
	KUNIT_EXPECT_EQ(test, kefa_grant(&lim, U64_MAX), U32_MAX);
}

static struct kunit_case select_cases[] = {
	KUNIT_CASE(select_at_borders),
	KUNIT_CASE(select_header_lengths),
	KUNIT_CASE(select_any),
	KUNIT_CASE(select_windows),
	{}
};

static struct kunit_suite select_suite = {
	.name		= "kefa_select",
	.test_cases	= select_cases,
};

kunit_test_suite(select_suite);
