// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Order of messages, and the table by 64-bit keys: a sender, a network that reorders packets,
 * and a receiver that keeps early ones, compared with a simple model.
 */
#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include "../../prov/efa/rdm/index.h"
#include "../../prov/efa/rdm/order.h"

#define PACKETS		64	/* outstanding packets at a time */
#define MESSAGES	100000

struct packet {
	struct kefa_index_node	kept;
	u32			msg_id;
	u32			part;		/* from 1 on; 0 if unused */
	bool			arrived;	/* it arrived, but its send hasn't completed */
	bool			keeps;
};

struct scene {
	struct rnd_state	rnd;
	spinlock_t		lock;	/* the endpoint's would be */
	struct kefa_order	tx, rx;
	struct kefa_index	index;
	struct packet		packets[PACKETS];
	u32			first;		/* number of the first message */
	u32			held;		/* message number of a slow packet, or none */
	u64			given, taken;	/* messages sent and received */
};

static u32 pick(struct scene *s, u32 n)
{
	return prandom_u32_state(&s->rnd) % n;
}

static struct packet *some(struct scene *s, bool used, bool arrived)
{
	u32 i, at = pick(s, PACKETS);
	struct packet *p;

	for (i = 0; i < PACKETS; i++) {
		p = &s->packets[(at + i) % PACKETS];
		if (!!p->part == used && p->arrived == arrived && !p->keeps)
			return p;
	}
	return NULL;
}

/* Distance of the next number from that of the oldest packet whose send hasn't completed. */
static u32 distance(const struct scene *s)
{
	u32 i, most = 0;

	for (i = 0; i < PACKETS; i++)
		if (s->packets[i].part)
			most = max(most, s->tx.next_id - s->packets[i].msg_id);
	return most;
}

static void send(struct kunit *test, struct scene *s)
{
	struct packet *p = some(s, false, false);

	if (!p)
		return;
	if (!kefa_order_may_give(&s->tx)) {
		KUNIT_EXPECT_GT(test, distance(s), KEFA_ORDER_SEND_WINDOW - KEFA_ORDER_PART);
		KUNIT_EXPECT_LE(test, distance(s), KEFA_ORDER_SEND_WINDOW);
		return;
	}
	KUNIT_EXPECT_LT(test, distance(s), KEFA_ORDER_SEND_WINDOW);
	p->msg_id = kefa_order_give(&s->tx);
	KUNIT_EXPECT_EQ(test, p->msg_id, (u32)(s->first + s->given++));
	p->part = 1;
	kefa_order_sent(&s->tx, p->msg_id);
}

static void take(struct kunit *test, struct scene *s, struct packet *p)
{
	KUNIT_EXPECT_EQ(test, p->msg_id, (u32)(s->first + s->taken++));
	s->rx.exp_id++;
}

static void arrive(struct kunit *test, struct scene *s)
{
	struct packet *p = some(s, true, false);
	struct kefa_index_node *n;

	if (!p || p->msg_id == s->held)
		return;
	p->arrived = true;
	switch (kefa_order_whose(&s->rx, p->msg_id)) {
	case KEFA_ORDER_NOW:
		take(test, s, p);
		break;
	case KEFA_ORDER_LATER:
		kefa_index_add(&s->index, &p->kept, p->msg_id);
		p->keeps = true;
		break;
	default:
		KUNIT_FAIL(test, "%u when %u was to come", p->msg_id, s->rx.exp_id);
	}
	while ((n = kefa_index_find(&s->index, s->rx.exp_id))) {
		p = container_of(n, struct packet, kept);
		kefa_index_del(&s->index, n);
		p->keeps = false;
		take(test, s, p);
	}
}

/* The send completes some time after the packet's arrival. */
static void finish(struct kunit *test, struct scene *s)
{
	struct packet *p = some(s, true, true);

	if (!p)
		return;
	kefa_order_arrived(&s->tx, p->msg_id);
	p->part = 0;
	p->arrived = false;
}

static struct scene *scene(struct kunit *test, u64 seed, u32 first)
{
	struct scene *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	prandom_seed_state(&s->rnd, seed);
	spin_lock_init(&s->lock);
	s->first = first;
	kefa_order_init(&s->tx, first, 0);
	kefa_order_init(&s->rx, 0, first);
	KUNIT_ASSERT_EQ(test, kefa_index_init(&s->index, &s->lock, PACKETS), 0);
	return s;
}

static u32 outstanding(const struct kefa_order *order)
{
	u32 i, sum = 0;

	for (i = 0; i < KEFA_ORDER_PARTS; i++)
		sum += order->out[i];
	return sum;
}

static void order_of(struct kunit *test, u64 seed, u32 first)
{
	struct scene *s = scene(test, seed, first);

	s->held = first - 1;
	spin_lock_bh(&s->lock);
	while (s->given < MESSAGES) {
		send(test, s);
		if (pick(s, 2))
			arrive(test, s);
		if (pick(s, 2))
			finish(test, s);
	}
	while (some(s, true, false) || some(s, true, true)) {
		arrive(test, s);
		finish(test, s);
	}
	spin_unlock_bh(&s->lock);
	KUNIT_EXPECT_EQ(test, s->taken, s->given);
	KUNIT_EXPECT_EQ(test, outstanding(&s->tx), 0);
	kefa_index_fini(&s->index);
}

static void order_reordered(struct kunit *test)
{
	u64 seed;

	for (seed = 1; seed <= 4; seed++)
		order_of(test, seed, 0);
}

/* Numbers around the wrap of 32 bits, and of 31. */
static void order_wraps(struct kunit *test)
{
	order_of(test, 11, U32_MAX - MESSAGES / 2);
	order_of(test, 12, S32_MAX - MESSAGES / 2);
}

/* One packet is slow: the sender gives no number that crashes the oldest libfabric. */
static void order_one_is_slow(struct kunit *test)
{
	struct scene *s = scene(test, 21, U32_MAX - 500);
	u32 i;

	s->held = s->first + 3;
	spin_lock_bh(&s->lock);
	for (i = 0; i < 40 * KEFA_ORDER_SEND_WINDOW; i++) {
		send(test, s);
		arrive(test, s);
		finish(test, s);
		/* Kept packets don't count as outstanding here, as their slots would be free. */
		if (s->packets[i % PACKETS].keeps) {
			kefa_index_del(&s->index, &s->packets[i % PACKETS].kept);
			s->packets[i % PACKETS].keeps = false;
		}
	}
	KUNIT_EXPECT_EQ(test, s->taken, 3);
	KUNIT_EXPECT_GT(test, s->given, 3 + KEFA_ORDER_SEND_WINDOW - KEFA_ORDER_PART);
	KUNIT_EXPECT_LE(test, s->given, 3 + KEFA_ORDER_SEND_WINDOW);
	KUNIT_EXPECT_FALSE(test, kefa_order_may_give(&s->tx));
	s->held--;
	while (!kefa_order_may_give(&s->tx)) {
		arrive(test, s);
		finish(test, s);
	}
	KUNIT_EXPECT_EQ(test, s->taken, 4);
	for (i = 0; i < PACKETS; i++)
		kefa_index_del(&s->index, &s->packets[i].kept);
	spin_unlock_bh(&s->lock);
	kefa_index_fini(&s->index);
}

static void order_turns(struct kunit *test)
{
	static const struct {
		u32			exp;
		u32			id;
		enum kefa_order_turn	turn;
	} turns[] = {
		{ 0, 0, KEFA_ORDER_NOW },
		{ 0, 1, KEFA_ORDER_LATER },
		{ 0, U32_MAX, KEFA_ORDER_PAST },
		{ U32_MAX, 0, KEFA_ORDER_LATER },
		{ U32_MAX, U32_MAX, KEFA_ORDER_NOW },
		{ 5, 4, KEFA_ORDER_PAST },
		{ 0, KEFA_ORDER_RECV_WINDOW - 1, KEFA_ORDER_LATER },
		{ 0, KEFA_ORDER_RECV_WINDOW, KEFA_ORDER_NEVER },
		{ U32_MAX - 1, KEFA_ORDER_RECV_WINDOW - 3, KEFA_ORDER_LATER },
		{ U32_MAX - 1, KEFA_ORDER_RECV_WINDOW - 2, KEFA_ORDER_NEVER },
		{ 0, S32_MAX, KEFA_ORDER_NEVER },
		{ 0, BIT(31), KEFA_ORDER_PAST },
	};
	struct kefa_order order;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(turns); i++) {
		kefa_order_init(&order, 0, turns[i].exp);
		KUNIT_EXPECT_EQ_MSG(test, kefa_order_whose(&order, turns[i].id), turns[i].turn,
				    "%u, expected %u", turns[i].id, turns[i].exp);
	}
}

/* A message is outstanding until all of its packets have arrived. */
static void order_of_parts(struct kunit *test)
{
	const u32 first = KEFA_ORDER_PART - 1, packets = 3;
	struct kefa_order order;
	u32 i, id;

	kefa_order_init(&order, first, 0);
	KUNIT_EXPECT_EQ(test, kefa_order_give(&order), first);
	for (i = 0; i < packets; i++)
		kefa_order_sent(&order, first);
	for (i = 1; kefa_order_may_give(&order) && i < 2 * KEFA_ORDER_SEND_WINDOW; i++) {
		id = kefa_order_give(&order);
		kefa_order_sent(&order, id);
		kefa_order_arrived(&order, id);
	}
	KUNIT_EXPECT_EQ(test, i, KEFA_ORDER_SEND_WINDOW - first);
	KUNIT_EXPECT_EQ(test, outstanding(&order), packets);
	for (i = 0; i < packets; i++) {
		KUNIT_EXPECT_FALSE(test, kefa_order_may_give(&order));
		kefa_order_arrived(&order, first);
	}
	KUNIT_EXPECT_TRUE(test, kefa_order_may_give(&order));
}

/* --- the table --- */

#define ENTRIES		20000
#define KEYS		(ENTRIES / 4)

struct entry {
	struct kefa_index_node	n;
	u32			when;	/* time of insertion; 0 if not in the table */
};

static struct entry *entries(struct kunit *test)
{
	struct entry *e = kvcalloc(ENTRIES, sizeof(*e), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, e);
	return e;
}

/* Compare with a linear search for the latest entry with the key. */
static void expect_found(struct kunit *test, struct kefa_index *index, struct entry *e, u64 key)
{
	struct entry *newest = NULL;
	struct kefa_index_node *n;
	u32 i, have = 0, found = 0, when = U32_MAX;

	for (i = 0; i < ENTRIES; i++)
		if (e[i].when && e[i].n.key == key) {
			have++;
			if (!newest || e[i].when > newest->when)
				newest = &e[i];
		}
	kefa_index_for_each(n, index, key) {
		struct entry *this = container_of(n, struct entry, n);

		KUNIT_EXPECT_LT(test, this->when, when);
		when = this->when;
		found++;
	}
	KUNIT_EXPECT_EQ(test, found, have);
	KUNIT_EXPECT_PTR_EQ(test, kefa_index_find(index, key), newest ? &newest->n : NULL);
}

static u64 key_of(u32 i)
{
	return (u64)(i % KEYS) << 32 | (i % 3);
}

static void index_against_all(struct kunit *test)
{
	struct entry *e = entries(test);
	struct kefa_index index;
	struct rnd_state rnd;
	spinlock_t lock;	/* the endpoint's would be */
	u32 i, step, when = 0, count = 0;

	spin_lock_init(&lock);
	prandom_seed_state(&rnd, 5);
	KUNIT_ASSERT_EQ(test, kefa_index_init(&index, &lock, 0), 0);
	for (step = 1; step <= 6 * ENTRIES; step++) {
		/* Grow a bit late, as when allocation fails at first. */
		if (step % 1000 == 0)
			KUNIT_ASSERT_EQ(test, kefa_index_reserve(&index, step / 4), 0);
		i = prandom_u32_state(&rnd) % ENTRIES;
		spin_lock_bh(&lock);
		if (e[i].when) {
			kefa_index_del(&index, &e[i].n);
			e[i].when = 0;
			count--;
		} else if (step < 5 * ENTRIES) {
			e[i].when = ++when;
			kefa_index_add(&index, &e[i].n, key_of(prandom_u32_state(&rnd)));
			count++;
		}
		KUNIT_EXPECT_EQ(test, index.entries, count);
		if (step % 4000 == 0)
			expect_found(test, &index, e, key_of(prandom_u32_state(&rnd)));
		spin_unlock_bh(&lock);
	}
	spin_lock_bh(&lock);
	for (i = 0; i < ENTRIES; i++)
		kefa_index_del(&index, &e[i].n);
	spin_unlock_bh(&lock);
	KUNIT_EXPECT_EQ(test, index.entries, 0);
	KUNIT_EXPECT_GT(test, index.buckets, ENTRIES / 8);
	kefa_index_fini(&index);
	kvfree(e);
}

/* A bucket has few entries at any size of the table, and memory use is as documented. */
static void index_grows(struct kunit *test)
{
	struct entry *e = entries(test);
	struct kefa_index_node *n;
	struct kefa_index index;
	spinlock_t lock;	/* the endpoint's would be */
	u32 i, here, longest = 0;

	spin_lock_init(&lock);
	KUNIT_ASSERT_EQ(test, kefa_index_init(&index, &lock, 0), 0);
	for (i = 0; i < ENTRIES; i++) {
		KUNIT_ASSERT_EQ(test, kefa_index_reserve(&index, i + 1), 0);
		spin_lock_bh(&lock);
		kefa_index_add(&index, &e[i].n, i);
		spin_unlock_bh(&lock);
		KUNIT_EXPECT_LE(test, kefa_index_bytes(&index), 16 + 8 * (i + 1));
	}
	spin_lock_bh(&lock);
	for (i = 0; i < ENTRIES; i++) {
		here = 0;
		hlist_for_each_entry(n, kefa_index_bucket(&index, i), node)
			here++;
		longest = max(longest, here);
		KUNIT_EXPECT_PTR_EQ(test, kefa_index_find(&index, i), &e[i].n);
		kefa_index_del(&index, &e[i].n);
		kefa_index_del(&index, &e[i].n);
	}
	spin_unlock_bh(&lock);
	KUNIT_EXPECT_LE(test, longest, 20);
	kefa_index_fini(&index);
	kvfree(e);
}

static struct kunit_case order_cases[] = {
	KUNIT_CASE_SLOW(order_reordered),
	KUNIT_CASE_SLOW(order_wraps),
	KUNIT_CASE(order_one_is_slow),
	KUNIT_CASE(order_turns),
	KUNIT_CASE(order_of_parts),
	KUNIT_CASE(index_against_all),
	KUNIT_CASE(index_grows),
	{}
};

static struct kunit_suite order_suite = {
	.name		= "kefa_order",
	.test_cases	= order_cases,
};

kunit_test_suite(order_suite);
