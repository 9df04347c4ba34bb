// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The delay before resending to a peer that isn't ready grows, for each peer separately. */
#include <kunit/test.h>
#include <linux/prandom.h>
#include "../../prov/efa/rdm/backoff.h"

#define PEERS	50

struct scene {
	spinlock_t		lock;	/* in place of the endpoint's lock */
	struct kefa_backoffs	all;
	struct kefa_backoff	peer[PEERS];
	struct {
		u64	end;		/* in us; 0: isn't waiting */
		u32	delay;
	} model[PEERS];
};

static ktime_t at_us(u64 us)
{
	return ktime_add_us(0, us);
}

static struct scene *scene(struct kunit *test, u32 first_us, u32 max_us)
{
	struct scene *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	spin_lock_init(&s->lock);
	kefa_backoffs_init(&s->all, &s->lock, first_us, max_us);
	spin_lock_bh(&s->lock);
	return s;
}

static void backoff_doubles(struct kunit *test)
{
	static const u32 delays[] = { 100, 200, 400, 800, 1000, 1000, 1000 };
	struct scene *s = scene(test, 100, 1000);
	struct kefa_backoff *b = s->peer;
	u64 now = 77;
	u32 i;

	KUNIT_EXPECT_EQ(test, kefa_backoff_next(&s->all), KTIME_MAX);
	for (i = 0; i < ARRAY_SIZE(delays); i++) {
		kefa_backoff_begin(&s->all, b, at_us(now));
		KUNIT_EXPECT_TRUE(test, b->waiting);
		/* Another packet of the same burst doesn't increase the delay. */
		kefa_backoff_begin(&s->all, b, at_us(now + 5));
		now += delays[i];
		KUNIT_EXPECT_EQ(test, kefa_backoff_next(&s->all), at_us(now));
		KUNIT_EXPECT_NULL(test, kefa_backoff_due(&s->all, at_us(now) - 1));
		KUNIT_EXPECT_PTR_EQ(test, kefa_backoff_due(&s->all, at_us(now)), b);
		KUNIT_EXPECT_FALSE(test, b->waiting);
		KUNIT_EXPECT_NULL(test, kefa_backoff_due(&s->all, KTIME_MAX));
	}
	kefa_backoff_end(&s->all, b);
	kefa_backoff_begin(&s->all, b, at_us(now));
	KUNIT_EXPECT_EQ(test, kefa_backoff_next(&s->all), at_us(now + 100));
	/* A packet arrives during the delay. */
	kefa_backoff_end(&s->all, b);
	KUNIT_EXPECT_FALSE(test, b->waiting);
	KUNIT_EXPECT_EQ(test, kefa_backoff_next(&s->all), KTIME_MAX);
	kefa_backoff_end(&s->all, b);
	spin_unlock_bh(&s->lock);
}

static void backoff_first_is_random(struct kunit *test)
{
	struct scene *s = scene(test, 0, 1000000);
	u32 i, min = U32_MAX, max = 0;

	for (i = 0; i < 5000; i++) {
		kefa_backoff_begin(&s->all, s->peer, 0);
		min = min(min, s->peer->delay_us);
		max = max(max, s->peer->delay_us);
		kefa_backoff_end(&s->all, s->peer);
	}
	KUNIT_EXPECT_EQ(test, min, KEFA_BACKOFF_FIRST_MIN_US);
	KUNIT_EXPECT_EQ(test, max, KEFA_BACKOFF_FIRST_MAX_US);
	spin_unlock_bh(&s->lock);
}

/* No delay exceeds the maximum, not even the first, and none overflows. */
static void backoff_limits(struct kunit *test)
{
	struct scene *s = scene(test, 5000, 10);
	u32 i;

	kefa_backoff_begin(&s->all, &s->peer[0], 0);
	KUNIT_EXPECT_EQ(test, s->peer[0].delay_us, 10);
	kefa_backoff_end(&s->all, &s->peer[0]);
	spin_unlock_bh(&s->lock);
	s = scene(test, U32_MAX / 2, U32_MAX);
	for (i = 0; i < 5; i++) {
		kefa_backoff_begin(&s->all, &s->peer[0], 0);
		KUNIT_EXPECT_PTR_EQ(test, kefa_backoff_due(&s->all, KTIME_MAX), &s->peer[0]);
	}
	KUNIT_EXPECT_EQ(test, s->peer[0].delay_us, U32_MAX);
	spin_unlock_bh(&s->lock);
	s = scene(test, 0, 0);
	kefa_backoff_begin(&s->all, &s->peer[0], 0);
	KUNIT_EXPECT_EQ(test, s->peer[0].delay_us, 1);
	spin_unlock_bh(&s->lock);
}

/* The delay that ends first, and not before it ends. */
static void take_due(struct kunit *test, struct scene *s, u64 now)
{
	struct kefa_backoff *b;
	u64 first;
	u32 i, at;

	do {
		for (first = U64_MAX, i = 0; i < PEERS; i++)
			if (s->model[i].end)
				first = min(first, s->model[i].end);
		KUNIT_EXPECT_EQ(test, kefa_backoff_next(&s->all),
				first == U64_MAX ? KTIME_MAX : at_us(first));
		b = kefa_backoff_due(&s->all, at_us(now));
		KUNIT_ASSERT_EQ(test, !!b, first <= now);
		if (!b)
			return;
		at = b - s->peer;
		KUNIT_EXPECT_EQ(test, s->model[at].end, first);
		s->model[at].end = 0;
	} while (b);
}

static void backoff_against_model(struct kunit *test)
{
	struct scene *s = scene(test, 3, 500);
	struct rnd_state rnd;
	u32 i, step;
	u64 now = 1;

	prandom_seed_state(&rnd, 3);
	for (step = 0; step < 50000; step++) {
		i = prandom_u32_state(&rnd) % PEERS;
		now += prandom_u32_state(&rnd) % 4;
		switch (prandom_u32_state(&rnd) % 6) {
		case 0:
			kefa_backoff_end(&s->all, &s->peer[i]);
			s->model[i].end = 0;
			s->model[i].delay = 0;
			break;
		case 1:
			take_due(test, s, now);
			break;
		case 2:
			kefa_backoff_arrived(&s->all, &s->peer[i]);
			s->model[i].delay = 0;
			break;
		default:
			kefa_backoff_begin(&s->all, &s->peer[i], at_us(now));
			if (s->model[i].end)
				break;
			s->model[i].delay = min(s->model[i].delay * 2 ?: 3U, 500U);
			s->model[i].end = now + s->model[i].delay;
		}
		KUNIT_EXPECT_EQ(test, s->peer[i].waiting, !!s->model[i].end);
	}
	spin_unlock_bh(&s->lock);
}

static struct kunit_case backoff_cases[] = {
	KUNIT_CASE(backoff_doubles),
	KUNIT_CASE(backoff_first_is_random),
	KUNIT_CASE(backoff_limits),
	KUNIT_CASE(backoff_against_model),
	{}
};

static struct kunit_suite backoff_suite = {
	.name		= "kefa_backoff",
	.test_cases	= backoff_cases,
};

kunit_test_suite(backoff_suite);
