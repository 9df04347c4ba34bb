// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Pingpong's tests, as one side sees them: completions that a hostile peer causes end the run. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/slab.h>
#include "../../samples/pingpong/data.c"
#include "../../samples/pingpong/flow.c"

struct pp_config pp_config = { .timeout = 1 };
const char * const pp_op_names[PP_OPS];

static unsigned int errors;

void pp_report_error(struct pp_instance *inst, int err, const char *fmt, ...)
{
	errors++;
}

bool pp_connected(const struct pp_session *s)
{
	return true;
}

bool pp_msg_waits(const struct pp_session *s)
{
	return false;
}

int pp_hung_up(struct pp_session *s)
{
	return -ECONNRESET;
}

#define SLOTS	4
#define SIZE	32

/**
 * struct side - a side of a test
 * @s: its session
 * @cq: the session's completion queue
 * @entry: the next completion
 * @full: there is one
 * @slots: slots of both directions
 * @free: free ones
 * @buf: buffers
 */
struct side {
	struct pp_session	s;
	struct fid_cq		cq;
	struct fi_cq_data_entry	entry;
	bool			full;
	struct pp_slot		slots[2][SLOTS];
	u16			free[2][SLOTS];
	u8			buf[2][SLOTS * 2 * PP_SLOT_ALIGN];
};

static ssize_t read_one(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr)
{
	struct side *side = container_of(cq, struct side, cq);

	if (!side->full)
		return -EAGAIN;
	side->full = false;
	memcpy(buf, &side->entry, sizeof(side->entry));
	return 1;
}

static const struct fi_ops_cq cq_ops = { .readfrom = read_one };

/* A side that expects messages, or writes with data. */
static struct side *side_of(struct kunit *test, enum pp_op tested, enum pp_op posted)
{
	struct side *side = kunit_kzalloc(test, sizeof(*side), GFP_KERNEL);
	struct pp_session *s;

	KUNIT_ASSERT_NOT_NULL(test, side);
	s = &side->s;
	side->cq.ops = &cq_ops;
	s->cq = &side->cq;
	s->seen = kunit_kzalloc(test, sizeof(long), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, s->seen);
	s->tx = (struct pp_side){ side->buf[0], side->slots[0], side->free[0] };
	s->rx = (struct pp_side){ side->buf[1], side->slots[1], side->free[1] };
	s->flow = (struct pp_flow){
		.test		= { .op = tested, .mode = PP_STREAM, .size = SIZE, .count = SLOTS,
				    .depth = SLOTS },
		.op		= posted,
		.tx_size	= SIZE,
		.rx_size	= SIZE,
		.rx_total	= SLOTS,
	};
	pp_flow_sides(s, SLOTS, SLOTS, SIZE);
	errors = 0;
	return side;
}

/* Take a receive, as if it were posted. */
static struct pp_slot *posted(struct side *side)
{
	struct pp_slot *slot = pp_take(&side->s.rx);

	slot->recv = true;
	slot->busy = true;
	return slot;
}

static int complete_with(struct side *side, void *context, u64 flags)
{
	side->entry = (struct fi_cq_data_entry){
		.op_context = context, .flags = flags, .len = SIZE,
	};
	side->full = true;
	return pp_poll(&side->s);
}

static void messages_give_back_receives(struct kunit *test)
{
	struct side *side = side_of(test, PP_SEND, PP_SEND);
	unsigned int i;

	for (i = 0; i < SLOTS; i++) {
		KUNIT_EXPECT_EQ(test, complete_with(side, posted(side), FI_RECV | FI_MSG), 1);
		KUNIT_EXPECT_EQ(test, side->s.flow.arrived, i + 1);
		KUNIT_EXPECT_EQ(test, side->s.rx.nfree, SLOTS);
	}
	KUNIT_EXPECT_LT(test, complete_with(side, posted(side), FI_RECV | FI_MSG), 0);
	KUNIT_EXPECT_EQ(test, errors, 1);
}

/*
 * A write isn't a message: the test would end while a receive is posted, whose slot the next test
 * has elsewhere.
 */
static void writes_are_no_messages(struct kunit *test)
{
	const u64 flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
	static const enum pp_op ops[][2] = {
		{ PP_SEND, PP_SEND },
		{ PP_WRITE, PP_SEND },
		{ PP_READ, PP_SEND },
		{ PP_WRITEDATA, PP_WRITEDATA },
	};
	struct side *side;
	int i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		side = side_of(test, ops[i][0], ops[i][1]);
		posted(side);
		KUNIT_EXPECT_LT_MSG(test, complete_with(side, NULL, flags), 0, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, side->s.flow.arrived, 0, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, errors, 1, "row %d", i);
	}
}

static void servers_count_writes(struct kunit *test)
{
	const u64 flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
	struct side *side = side_of(test, PP_WRITEDATA, PP_SEND);
	unsigned int i;

	for (i = 0; i < SLOTS; i++)
		KUNIT_EXPECT_EQ(test, complete_with(side, NULL, flags), 1);
	KUNIT_EXPECT_EQ(test, side->s.flow.arrived, SLOTS);
	KUNIT_EXPECT_LT(test, complete_with(side, NULL, flags), 0);
	KUNIT_EXPECT_EQ(test, errors, 1);
}

static void completions_come_once(struct kunit *test)
{
	struct side *side = side_of(test, PP_SEND, PP_SEND);
	struct pp_slot *slot = posted(side);

	KUNIT_EXPECT_EQ(test, complete_with(side, slot, FI_RECV | FI_MSG), 1);
	KUNIT_EXPECT_LT(test, complete_with(side, slot, FI_RECV | FI_MSG), 0);
	KUNIT_EXPECT_LT(test, complete_with(side, NULL, FI_RECV | FI_MSG), 0);
	KUNIT_EXPECT_EQ(test, side->s.rx.nfree, SLOTS);
	KUNIT_EXPECT_EQ(test, errors, 2);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(messages_give_back_receives),
	KUNIT_CASE(writes_are_no_messages),
	KUNIT_CASE(servers_count_writes),
	KUNIT_CASE(completions_come_once),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofi_pingpong_flow",
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of pingpong's flow of operations");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
