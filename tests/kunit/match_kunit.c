// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Matching of receives and messages: compared with a model that searches lists linearly, and
 * the number of entries that a lookup compares.
 */
#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/slab.h>

static u64 match_compared;

#define KOFI_MATCH_COMPARED()	(match_compared++)
#include "../../kofi/match/match.c"

#define POOL		24
#define STEPS		30000
#define HEADS		8	/* few buckets, so that keys share them */

struct test_recv {
	struct kofi_match_recv	recv;
	struct list_head	list;	/* in scene.recvs */
	u64			what;
	u64			src;
	u64			tag;
	u64			ignore;
	void			*context;
};

struct test_msg {
	struct kofi_match_msg	msg;
	struct list_head	list;	/* in scene.msgs or scene.claimed */
	u64			what;
	u64			src;
	u64			tag;
	void			*context;	/* context of the claim */
};

/* The lists are the model; entries in no list are free. */
struct scene {
	struct kunit		*test;
	struct rnd_state	rnd;
	spinlock_t		lock;	/* protects match */
	struct kofi_match	match;
	struct hlist_head	table[HEADS];
	struct list_head	recvs;		/* oldest first */
	struct list_head	msgs;		/* oldest first */
	struct list_head	claimed;	/* oldest first */
	struct test_recv	recv[POOL];
	struct test_msg		msg[POOL];
	struct test_recv	probe;		/* for peeks */
};

static u32 pick(struct scene *s, u32 n)
{
	return prandom_u32_state(&s->rnd) % n;
}

static u64 pick_tag(struct scene *s)
{
	static const u64 tags[] = { 0, 1, U64_MAX, BIT_ULL(32) | 1, 0x55 };

	return tags[pick(s, ARRAY_SIZE(tags))];
}

static u64 pick_ignore(struct scene *s)
{
	static const u64 ignore[] = { 1, U64_MAX, GENMASK_ULL(63, 32), 0xff };

	return pick(s, 3) ? 0 : ignore[pick(s, ARRAY_SIZE(ignore))];
}

static u64 pick_src(struct scene *s)
{
	return pick(s, 2) ? FI_ADDR_UNSPEC : pick(s, 3);
}

static void *pick_context(struct scene *s)
{
	return (void *)(1UL + pick(s, 4));
}

static void fill_recv(struct scene *s, struct test_recv *r)
{
	r->what = FI_RECV | (pick(s, 3) ? FI_TAGGED : FI_MSG);
	r->src = pick_src(s);
	r->tag = pick_tag(s);
	r->ignore = pick_ignore(s);
	r->context = pick_context(s);
	kofi_match_recv_init(&r->recv, r->what, r->src, r->tag, r->ignore, r->context);
	r->recv.link.multi = !pick(s, 8);
}

static bool model_fits(const struct test_recv *r, const struct test_msg *m)
{
	if ((r->what ^ m->what) & FI_TAGGED)
		return false;
	if (r->src != FI_ADDR_UNSPEC && r->src != m->src)
		return false;
	return !(r->what & FI_TAGGED) || !((r->tag ^ m->tag) & ~r->ignore);
}

static struct test_msg *model_msg(struct scene *s, const struct test_recv *r)
{
	struct test_msg *m;

	list_for_each_entry(m, &s->msgs, list)
		if (model_fits(r, m))
			return m;
	return NULL;
}

static struct test_recv *model_recv(struct scene *s, const struct test_msg *m)
{
	struct test_recv *r;

	list_for_each_entry(r, &s->recvs, list)
		if (model_fits(r, m))
			return r;
	return NULL;
}

static void expect_msg(struct scene *s, struct kofi_match_msg *found,
		       struct test_msg *model)
{
	KUNIT_ASSERT_PTR_EQ(s->test, found, model ? &model->msg : NULL);
}

static void step_post(struct scene *s, struct test_recv *r)
{
	struct test_msg *m;

	if (!list_empty(&r->list))
		return;
	fill_recv(s, r);
	/* A multi-receive buffer takes messages until it is full. */
	do {
		m = model_msg(s, r);
		expect_msg(s, kofi_match_post(&s->match, &r->recv), m);
		if (m)
			list_del_init(&m->list);
	} while (m && r->recv.link.multi && pick(s, 4));
	if (!m)
		list_add_tail(&r->list, &s->recvs);
}

static void step_arrive(struct scene *s, struct test_msg *m)
{
	struct kofi_match_recv *found;
	struct test_recv *r;

	if (!list_empty(&m->list))
		return;
	m->what = FI_SEND | (pick(s, 3) ? FI_TAGGED : FI_MSG);
	m->src = pick(s, 4) ? pick(s, 3) : FI_ADDR_UNSPEC;
	m->tag = pick_tag(s);
	kofi_match_msg_init(&m->msg, m->what, m->src, m->tag);
	r = model_recv(s, m);
	found = kofi_match_arrive(&s->match, &m->msg);
	KUNIT_ASSERT_PTR_EQ(s->test, found, r ? &r->recv : NULL);
	if (!r)
		list_add_tail(&m->list, &s->msgs);
	else if (!r->recv.link.multi)
		list_del_init(&r->list);
}

static void step_peek(struct scene *s)
{
	static const u64 flags[] = { 0, FI_CLAIM, FI_DISCARD };
	u64 flag = flags[pick(s, ARRAY_SIZE(flags))];
	struct test_recv *r = &s->probe;
	struct test_msg *m;

	fill_recv(s, r);
	m = model_msg(s, r);
	expect_msg(s, kofi_match_peek(&s->match, &r->recv, FI_PEEK | flag), m);
	if (m && flag == FI_DISCARD)
		list_del_init(&m->list);
	if (m && flag == FI_CLAIM) {
		list_move_tail(&m->list, &s->claimed);
		m->context = r->context;
	}
}

static void step_claimed(struct scene *s)
{
	u64 discard = pick(s, 2) ? FI_DISCARD : 0;
	struct test_msg *m, *found = NULL;
	struct test_recv *r = &s->probe;

	fill_recv(s, r);
	list_for_each_entry(m, &s->claimed, list)
		if (!found && m->context == r->context && !((m->what ^ r->what) & FI_TAGGED))
			found = m;
	expect_msg(s, kofi_match_peek(&s->match, &r->recv, FI_CLAIM | discard), found);
	if (found)
		list_del_init(&found->list);
}

static void step_cancel(struct scene *s)
{
	struct test_recv *r, *found = NULL;
	void *context = pick_context(s);

	list_for_each_entry(r, &s->recvs, list)
		if (!found && r->context == context)
			found = r;
	KUNIT_ASSERT_PTR_EQ(s->test, kofi_match_cancel(&s->match, context),
			    found ? &found->recv : NULL);
	if (found)
		list_del_init(&found->list);
}

/* Only among undirected receives that ignore no bits. */
static void step_cancel_tag(struct scene *s)
{
	struct test_recv *r, *found = NULL;
	void *context = pick_context(s);
	const u64 tag = pick_tag(s);

	list_for_each_entry(r, &s->recvs, list)
		if (!found && r->context == context && r->what & FI_TAGGED && !r->ignore &&
		    r->src == FI_ADDR_UNSPEC && r->tag == tag)
			found = r;
	KUNIT_ASSERT_PTR_EQ(s->test, kofi_match_cancel_tag(&s->match, tag, context),
			    found ? &found->recv : NULL);
	if (found)
		list_del_init(&found->list);
}

/* Remove a receive or message in any state. */
static void step_remove(struct scene *s)
{
	struct test_recv *r = &s->recv[pick(s, POOL)];
	struct test_msg *m = &s->msg[pick(s, POOL)];

	if (pick(s, 2)) {
		kofi_match_remove(&s->match, &r->recv);
		list_del_init(&r->list);
	} else {
		kofi_match_remove_msg(&s->match, &m->msg);
		list_del_init(&m->list);
	}
}

static void step(struct scene *s)
{
	switch (pick(s, 17)) {
	case 0:
		return step_peek(s);
	case 1:
		return step_claimed(s);
	case 2:
		return step_cancel(s);
	case 3:
		return step_remove(s);
	case 4:
		return step_cancel_tag(s);
	case 5 ... 10:
		return step_post(s, &s->recv[pick(s, POOL)]);
	default:
		return step_arrive(s, &s->msg[pick(s, POOL)]);
	}
}

static struct scene *scene(struct kunit *test, u64 seed)
{
	struct scene *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->test = test;
	prandom_seed_state(&s->rnd, seed);
	spin_lock_init(&s->lock);
	kofi_match_init(&s->match, &s->lock, s->table, HEADS);
	INIT_LIST_HEAD(&s->recvs);
	INIT_LIST_HEAD(&s->msgs);
	INIT_LIST_HEAD(&s->claimed);
	for (i = 0; i < POOL; i++) {
		INIT_LIST_HEAD(&s->recv[i].list);
		kofi_match_recv_init(&s->recv[i].recv, 0, FI_ADDR_UNSPEC, 0, 0, NULL);
		INIT_LIST_HEAD(&s->msg[i].list);
		kofi_match_msg_init(&s->msg[i].msg, 0, FI_ADDR_UNSPEC, 0);
	}
	return s;
}

static const u64 match_seeds[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };

static void match_seed_desc(const u64 *seed, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "seed %llu", *seed);
}

KUNIT_ARRAY_PARAM(match_seed, match_seeds, match_seed_desc);

static void match_model(struct kunit *test)
{
	struct scene *s = scene(test, *(const u64 *)test->param_value);
	struct test_recv *r;
	struct test_msg *m;
	int i;

	for (i = 0; i < STEPS; i++) {
		spin_lock_bh(&s->lock);
		step(s);
		spin_unlock_bh(&s->lock);
	}

	/* At the end the table has the model's entries, and is empty after they were removed. */
	spin_lock_bh(&s->lock);
	list_for_each_entry(r, &s->recvs, list)
		kofi_match_remove(&s->match, &r->recv);
	list_splice_tail_init(&s->claimed, &s->msgs);
	list_for_each_entry(m, &s->msgs, list)
		KUNIT_EXPECT_NOT_NULL(test, kofi_match_pop_msg(&s->match));
	KUNIT_EXPECT_NULL(test, kofi_match_pop_msg(&s->match));
	spin_unlock_bh(&s->lock);
	for (i = 0; i < HEADS; i++)
		KUNIT_EXPECT_TRUE(test, hlist_empty(&s->table[i]));
	KUNIT_EXPECT_EQ(test, s->match.directed, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&s->match.wild));
}

static void match_flags(struct kunit *test)
{
	static const struct {
		u64 flags;
		bool ok;
	} flags[] = {
		{ 0, true }, { FI_MULTI_RECV | FI_COMPLETION, true }, { FI_PEEK, true },
		{ FI_PEEK | FI_CLAIM, true }, { FI_PEEK | FI_DISCARD, true },
		{ FI_CLAIM, true }, { FI_CLAIM | FI_DISCARD, true },
		{ FI_DISCARD, false }, { FI_PEEK | FI_CLAIM | FI_DISCARD, false },
		{ FI_PEEK | FI_MULTI_RECV, false }, { FI_CLAIM | FI_MULTI_RECV, false },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++)
		KUNIT_EXPECT_EQ_MSG(test, kofi_match_flags_ok(flags[i].flags),
				    flags[i].ok, "%#llx", flags[i].flags);
}

/* --- growth --- */

struct crowd {
	spinlock_t		lock;	/* protects match */
	struct kofi_match	match;
	struct hlist_head	*table;
	struct kofi_match_recv	*recvs;
	struct kofi_match_msg	msg;
	u32			count;
	u32			shift;	/* the tags are multiples of 1 << shift */
};

static void crowd_free(void *data)
{
	struct crowd *c = data;

	kvfree(c->table);
	kvfree(c->recvs);
}

static u64 crowd_tag(const struct crowd *c, u32 i)
{
	return (u64)i << c->shift;
}

static struct crowd *crowd(struct kunit *test, u32 count, u32 shift, size_t heads)
{
	struct crowd *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, c);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, crowd_free, c), 0);
	c->table = kvcalloc(heads, sizeof(*c->table), GFP_KERNEL);
	c->recvs = kvcalloc(count, sizeof(*c->recvs), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, c->table && c->recvs);
	c->count = count;
	c->shift = shift;
	spin_lock_init(&c->lock);
	kofi_match_init(&c->match, &c->lock, c->table, heads);
	/* Fixed secrets, so that the counts are reproducible. Multiplied by these alone, tags that
	 * differ only in high bits gather in few buckets.
	 */
	c->match.secret[0] = 0xd45e5241db494865;
	c->match.secret[1] = 0xaaf92556915ac579;
	spin_lock_bh(&c->lock);
	for (i = 0; i < count; i++) {
		kofi_match_recv_init(&c->recvs[i], FI_TAGGED, FI_ADDR_UNSPEC,
				     crowd_tag(c, i), 0, NULL);
		kofi_match_post(&c->match, &c->recvs[i]);
	}
	spin_unlock_bh(&c->lock);
	return c;
}

/* For each tag, a message arrives and its receive is posted again. */
static void crowd_round(struct kunit *test, struct crowd *c, u32 rounds)
{
	u32 i, at;

	for (i = 0; i < rounds; i++) {
		at = i * 7919 % c->count;
		kofi_match_msg_init(&c->msg, FI_TAGGED, 5, crowd_tag(c, at));
		spin_lock_bh(&c->lock);
		KUNIT_ASSERT_PTR_EQ(test, kofi_match_arrive(&c->match, &c->msg),
				    &c->recvs[at]);
		KUNIT_ASSERT_NULL(test, kofi_match_post(&c->match, &c->recvs[at]));
		spin_unlock_bh(&c->lock);
	}
}

/* Return: entries compared for 1000 arriving messages and posted receives. */
static u64 crowd_work(struct kunit *test, u32 count, u32 shift)
{
	struct crowd *c = crowd(test, count, shift, kofi_match_heads(count, 0));
	const u32 rounds = 65536;

	/* Repeat until the oldest entries are last in all buckets. */
	crowd_round(test, c, count);
	match_compared = 0;
	crowd_round(test, c, rounds);
	return match_compared * 1000 / rounds;
}

/* The number of comparisons depends on the load of the table, not on its size. */
static void match_growth(struct kunit *test)
{
	u64 one = crowd_work(test, 1, 20);
	u64 some = crowd_work(test, 4096, 20);
	u64 many = crowd_work(test, 65536, 20);

	kunit_info(test, "compared, of 1000: %llu %llu %llu", one, some, many);
	KUNIT_EXPECT_EQ(test, one, 1000);
	/* The entry that is found, and a quarter of another one at each of two lookups. */
	KUNIT_EXPECT_LE(test, some, 1600);
	KUNIT_EXPECT_LE(test, many * 100, 103 * some);
	KUNIT_EXPECT_LE(test, some * 100, 103 * many);
}

/* Tags that differ only in some of their bits, high or low, spread over the buckets. */
static void match_spread(struct kunit *test)
{
	u32 shift;
	u64 work;

	for (shift = 0; shift <= 52; shift += 13) {
		work = crowd_work(test, 4096, shift);
		KUNIT_EXPECT_LE_MSG(test, work, 3000, "tags are multiples of 1 << %u", shift);
	}
}

/* Equal entries don't slow down lookups of others in the same bucket. */
static void match_equal(struct kunit *test)
{
	struct crowd *c = crowd(test, 4096, 0, 1);
	u32 i;

	spin_lock_bh(&c->lock);
	for (i = 0; i < c->count; i++) {
		kofi_match_remove(&c->match, &c->recvs[i]);
		kofi_match_recv_init(&c->recvs[i], FI_MSG, FI_ADDR_UNSPEC, 0, 0, NULL);
		KUNIT_ASSERT_NULL(test, kofi_match_post(&c->match, &c->recvs[i]));
	}
	kofi_match_msg_init(&c->msg, FI_TAGGED, 5, 1);
	match_compared = 0;
	KUNIT_EXPECT_NULL(test, kofi_match_arrive(&c->match, &c->msg));
	KUNIT_EXPECT_LE(test, match_compared, 5);
	kofi_match_remove_msg(&c->match, &c->msg);

	/* Equal messages match in the order of their arrival. */
	kofi_match_msg_init(&c->msg, FI_MSG, 5, 1);
	for (i = 0; i < c->count; i++)
		KUNIT_ASSERT_PTR_EQ(test, kofi_match_arrive(&c->match, &c->msg),
				    &c->recvs[i]);
	spin_unlock_bh(&c->lock);
}

static struct kunit_case match_cases[] = {
	KUNIT_CASE_PARAM(match_model, match_seed_gen_params),
	KUNIT_CASE(match_flags),
	KUNIT_CASE_SLOW(match_growth),
	KUNIT_CASE_SLOW(match_spread),
	KUNIT_CASE(match_equal),
	{}
};

static struct kunit_suite match_suite = {
	.name		= "kofi_match",
	.test_cases	= match_cases,
};

kunit_test_suite(match_suite);

MODULE_DESCRIPTION("KUnit suite of the matching of receives and messages");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
