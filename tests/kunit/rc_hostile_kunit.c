// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Peers of kofi_rc that violate the protocol: the connection ends, other memory than what the peer
 * may reach keeps its contents, and no other connection is touched.
 */
#include <linux/string.h>
#include "rc_scene.h"

#define IOVA	0x1000

/* b with two receives of 512 bytes and a region of a page; all of its memory is 0x5a. */
static struct krc_mr *hostile_scene(struct kunit *test)
{
	struct krc_mr *mr;

	rc_connect(test);
	memset(rc->b.memory, 0x5a, RC_MEMORY);
	mr = rc_mr(test, &rc->b, rc->b.memory, 1);
	rc_reg(&rc->b, 1, mr, IOVA, 4096, KRC_ACCESS_REMOTE_WRITE);
	rc_recv(&rc->b, 2, rc->b.memory + 8192, 512);
	rc_recv(&rc->b, 3, rc->b.memory + 16384, 512);
	rc_all();
	rc->b.n = 0;
	return mr;
}

static bool untouched(void)
{
	return !memchr_inv(rc->b.memory, 0x5a, RC_MEMORY);
}

/**
 * struct hostile_case - datagrams, the last of which is wrong
 * @name: name
 * @n: number of @d
 * @d: datagrams; krc_dgram.len bytes of data follow
 * @keyed: krc_dgram.rkey and krc_dgram.arg are added to the region's key
 */
struct hostile_case {
	const char		*name;
	bool			keyed;
	unsigned int		n;
	struct krc_dgram	d[2];
};

#define A_SEND(...)	{ .type = KRC_SEND, __VA_ARGS__ }
#define A_WRITE(...)	{ .type = KRC_WRITE, .flags = KRC_LAST, __VA_ARGS__ }
#define A_READ(...)	{ .type = KRC_READ, __VA_ARGS__ }

static const struct hostile_case hostile_cases[] = {
	{ "a message too long for its receive", false, 1,
	  { A_SEND(.flags = KRC_LAST, .total = 513, .len = 513) } },
	{ "a part of one", false, 1, { A_SEND(.total = 513, .len = 8) } },
	{ "a message without a receive", false, 1,
	  { A_SEND(.flags = KRC_LAST, .number = 2, .total = 8, .len = 8) } },
	{ "a message that was delivered", false, 1,
	  { A_SEND(.flags = KRC_LAST, .number = -1, .total = 8, .len = 8) } },
	{ "a sequence number far ahead", false, 1,
	  { A_SEND(.flags = KRC_LAST, .seq = 2 * KRC_WINDOW, .total = 8, .len = 8) } },
	{ "a sequence number of the past", false, 1,
	  { A_SEND(.flags = KRC_LAST, .seq = -1, .total = 8, .len = 8) } },
	{ "a write with no key", false, 1, { A_WRITE(.addr = IOVA, .total = 8, .len = 8) } },
	{ "a write with another key", true, 1,
	  { A_WRITE(.rkey = 1, .addr = IOVA, .total = 8, .len = 8) } },
	{ "a write with another region's key", true, 1,
	  { A_WRITE(.rkey = 256, .addr = IOVA, .total = 8, .len = 8) } },
	{ "a write before the region", true, 1,
	  { A_WRITE(.addr = IOVA - 1, .total = 8, .len = 8) } },
	{ "a write beyond it", true, 1, { A_WRITE(.addr = IOVA + 4089, .total = 8, .len = 8) } },
	{ "a part beyond it", true, 1,
	  { A_WRITE(.addr = IOVA, .offset = 4096, .total = 4104, .len = 8) } },
	{ "the invalidation of another key", true, 1,
	  { A_SEND(.flags = KRC_LAST | KRC_INV, .arg = 1) } },
	{ "data for no read", false, 1,
	  { { .type = KRC_DATA, .flags = KRC_LAST, .total = 8, .len = 8 } } },
	{ "data for no slot", false, 1,
	  { { .type = KRC_DATA, .flags = KRC_LAST, .number = KRC_READS_MAX - 1, .total = 8,
	      .len = 8 } } },
	{ "a type that isn't", false, 1, { { .type = 9, .total = 8, .len = 8 } } },
};

static void hostile_datagrams(struct kunit *test)
{
	const struct hostile_case *h = test->param_value;
	struct krc_mr *mr = hostile_scene(test);
	static const u8 data[1024];
	struct krc_dgram d;
	unsigned int i;

	for (i = 0; i < h->n; i++) {
		KUNIT_EXPECT_EQ(test, rc->b.stops, 0U);
		d = h->d[i];
		d.cookie = rc->b.c.cookie;
		if (h->keyed && d.type == KRC_SEND)
			d.arg += rc_key(mr);
		else if (h->keyed)
			d.rkey += rc_key(mr);
		rc_inject(&rc->b, &d, data, d.len);
	}
	krc_wait_flushed(&rc->b.c);
	KUNIT_EXPECT_EQ(test, rc->b.cause, KRC_BY_VIOLATION);
	KUNIT_EXPECT_TRUE(test, untouched());
	KUNIT_EXPECT_EQ(test, rc->b.n, 2U);
	RC_EXPECT(test, &rc->b, 0, 2, -ECANCELED);
	RC_EXPECT(test, &rc->b, 1, 3, -ECANCELED);
	KUNIT_EXPECT_EQ(test, rc->a.stops, 0U);
}

static void hostile_name(const struct hostile_case *h, char *desc)
{
	strscpy(desc, h->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(hostile, hostile_cases, hostile_name);

/* Datagrams that name no connection are counted, and nothing else happens. */
static void hostile_cookies(struct kunit *test)
{
	struct krc_dgram d = A_SEND(.flags = KRC_LAST, .total = 8, .len = 8);
	s64 stray = atomic64_read(&krc_counts[KRC_COUNT_STRAY]);
	s64 invalid = atomic64_read(&krc_counts[KRC_COUNT_INVALID]);
	static const u8 data[8];
	unsigned int i;
	u64 cookie;

	hostile_scene(test);
	cookie = rc->b.c.cookie;
	for (i = 0; i < 64; i++) {
		d.cookie = cookie ^ BIT_ULL(i);
		rc_inject(&rc->b, &d, data, 8);
	}
	/* The cookie of a connection of another queue. */
	d.cookie = rc->a.c.cookie;
	rc_inject(&rc->b, &d, data, 8);
	KUNIT_EXPECT_EQ(test, atomic64_read(&krc_counts[KRC_COUNT_STRAY]) - stray, 65);
	d.cookie = 0;
	d.type = 0;
	rc_inject(&rc->b, &d, data, 8);
	krc_message(&rc->b.q, data, 8);
	KUNIT_EXPECT_EQ(test, atomic64_read(&krc_counts[KRC_COUNT_INVALID]) - invalid, 2);
	KUNIT_EXPECT_EQ(test, rc->a.stops + rc->b.stops, 0U);
	KUNIT_EXPECT_TRUE(test, untouched());
}

/* The same sequence number twice, before and after its turn. */
static void hostile_repeats(struct kunit *test)
{
	struct krc_dgram d = A_SEND(.flags = KRC_LAST, .seq = 1, .number = 1, .total = 8, .len = 8);
	static const u8 data[8];

	hostile_scene(test);
	d.cookie = rc->b.c.cookie;
	rc_inject(&rc->b, &d, data, 8);
	KUNIT_EXPECT_EQ(test, rc->b.stops, 0U);
	rc_inject(&rc->b, &d, data, 8);
	krc_wait_flushed(&rc->b.c);
	KUNIT_EXPECT_EQ(test, rc->b.cause, KRC_BY_VIOLATION);
}

/* Pieces of a message that don't follow one another would leave a hole. */
static void hostile_holes(struct kunit *test)
{
	struct krc_dgram d = A_SEND(.total = 24, .len = 8);
	static const u8 data[8];

	hostile_scene(test);
	d.cookie = rc->b.c.cookie;
	rc_inject(&rc->b, &d, data, 8);
	d.seq = 1;
	d.flags = KRC_LAST;
	d.offset = 16;
	KUNIT_EXPECT_EQ(test, rc->b.stops, 0U);
	rc_inject(&rc->b, &d, data, 8);
	krc_wait_flushed(&rc->b.c);
	KUNIT_EXPECT_EQ(test, rc->b.n, 2U);
	RC_EXPECT(test, &rc->b, 0, 2, -ECANCELED);
}

/* Messages out of their numbers' order. */
static void hostile_numbers(struct kunit *test)
{
	struct krc_dgram d = A_SEND(.flags = KRC_LAST, .number = 1, .total = 8, .len = 8);
	static const u8 data[8];

	hostile_scene(test);
	d.cookie = rc->b.c.cookie;
	rc_inject(&rc->b, &d, data, 8);
	krc_wait_flushed(&rc->b.c);
	KUNIT_EXPECT_EQ(test, rc->b.cause, KRC_BY_VIOLATION);
}

/* More reads at a time than the connection serves. */
static void hostile_reads(struct kunit *test)
{
	struct krc_dgram d = A_READ(.total = 4096, .addr = IOVA);
	LIST_HEAD(taken);
	unsigned int i;

	d.rkey = rc_key(hostile_scene(test));
	d.cookie = rc->b.c.cookie;
	/* None of them is answered, because there is no free datagram. */
	rc_take_bufs(&rc->b, &taken, 0);
	for (i = 0; i < 4; i++, d.seq++)
		rc_inject(&rc->b, &d, NULL, 0);
	KUNIT_EXPECT_EQ(test, rc->b.stops, 0U);
	rc_inject(&rc->b, &d, NULL, 0);
	krc_wait_flushed(&rc->b.c);
	KUNIT_EXPECT_EQ(test, rc->b.cause, KRC_BY_VIOLATION);
	rc_give_bufs(&rc->b, &taken);
}

/* More data than a read has asked for. */
static void hostile_data(struct kunit *test)
{
	static const u8 data[64];
	struct krc_dgram d = { .type = KRC_DATA, .total = 64, .len = 48 };

	rc_connect(test);
	rc_read(&rc->a, 1, rc->a.memory, 64, 1, 0);
	d.cookie = rc->a.c.cookie;
	d.number = rc->a.c.reads[0].number;
	rc_inject(&rc->a, &d, data, 48);
	KUNIT_EXPECT_EQ(test, rc->a.stops, 0U);
	rc_inject(&rc->a, &d, data, 48);
	rc_end(&rc->a, rc_nth(&rc->a, 0), 0);
	krc_wait_flushed(&rc->a.c);
	KUNIT_EXPECT_EQ(test, rc->a.cause, KRC_BY_VIOLATION);
	RC_EXPECT(test, &rc->a, 0, 1, -ECANCELED);
}

/* Data of another length, or for another read in the same slot. */
static void hostile_data_of_others(struct kunit *test)
{
	struct krc_dgram d = { .type = KRC_DATA, .flags = KRC_LAST, .total = 65, .len = 65 };
	static const u8 data[65];

	rc_connect(test);
	rc_read(&rc->a, 1, rc->a.memory, 64, 1, 0);
	d.cookie = rc->a.c.cookie;
	d.number = rc->a.c.reads[0].number + KRC_READS_MAX;
	d.total = 64;
	d.len = 64;
	rc_inject(&rc->a, &d, data, 64);
	rc_end(&rc->a, rc_nth(&rc->a, 0), 0);
	krc_wait_flushed(&rc->a.c);
	KUNIT_EXPECT_EQ(test, rc->a.cause, KRC_BY_VIOLATION);
	KUNIT_EXPECT_NE(test, rc->a.memory[1], 0);
}

/* Credits that are taken back are ignored. */
static void hostile_credits(struct kunit *test)
{
	struct krc_dgram d = { .type = KRC_CREDIT, .credits = 5 };

	rc_connect(test);
	d.cookie = rc->a.c.cookie;
	rc_inject(&rc->a, &d, NULL, 0);
	d.credits = 3;
	rc_inject(&rc->a, &d, NULL, 0);
	KUNIT_EXPECT_EQ(test, rc->a.c.peer_credits, 5U);
}

static struct kunit_case hostile_suite_cases[] = {
	KUNIT_CASE_PARAM(hostile_datagrams, hostile_gen_params),
	KUNIT_CASE(hostile_cookies),
	KUNIT_CASE(hostile_repeats),
	KUNIT_CASE(hostile_holes),
	KUNIT_CASE(hostile_numbers),
	KUNIT_CASE(hostile_reads),
	KUNIT_CASE(hostile_data),
	KUNIT_CASE(hostile_data_of_others),
	KUNIT_CASE(hostile_credits),
	{}
};

static struct kunit_suite hostile_suite = {
	.name		= "kofi_rc_hostile",
	.init		= rc_scene_init,
	.exit		= rc_scene_exit,
	.suite_init	= rc_suite_init,
	.suite_exit	= rc_suite_exit,
	.test_cases	= hostile_suite_cases,
};

kunit_test_suite(hostile_suite);
