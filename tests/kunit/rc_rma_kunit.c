// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Writes of kofi_rc by the device: keys are announced before the peer needs them, messages come
 * after the data, and no request is over while the peer's device can reach its memory.
 */
#include <linux/string.h>
#include "crew.h"
#include "rc_scene.h"

#define IOVA	0x456ULL
#define LEN	60000
#define WRITES	(KRC_ACCESS_LOCAL_WRITE | KRC_ACCESS_REMOTE_WRITE)

static bool flushed(const struct rc_side *s)
{
	return completion_done((struct completion *)&s->c.flushed);
}

static void a_while(void)
{
	synchronize_rcu();
	msleep(30);
}

/* The initiator's memory, which is where the case's data goes. */
static u8 *at(u64 addr)
{
	return rc->b.memory + addr;
}

/*
 * b registers a region and asks a to write, by a message that a receives. b posts receives for as
 * many answers.
 */
static struct krc_mr *asks(struct kunit *test, struct krc_mr *mr)
{
	if (!mr)
		mr = rc_mr(test, &rc->b, rc->b.memory, RC_MR_PAGES);
	rc_recv(&rc->b, 200, rc->b.memory + LEN + 2048, 512);
	rc_recv(&rc->a, 201, rc->a.memory + LEN + 2048, 512);
	rc_all();
	KUNIT_ASSERT_EQ(test, rc_reg(&rc->b, 100, mr, IOVA, LEN, WRITES), 0);
	rc_send(&rc->b, 101, rc->b.memory + LEN + 1024, 64);
	return mr;
}

static struct krc_mr *granted(struct kunit *test)
{
	struct krc_mr *mr;

	rc_connect_rma(test, 4);
	mr = asks(test, NULL);
	KUNIT_ASSERT_EQ(test, rc->b.ntodo, 1U);
	rc_grant_end(&rc->b, 0, 0);
	rc_all();
	rc->a.n = 0;
	rc->b.n = 0;
	return mr;
}

/* The message waits for the registration, and brings the key. The answer waits for the data. */
static void rma_write(struct kunit *test)
{
	struct krc_mr *mr;

	rc_connect_rma(test, 4);
	mr = asks(test, NULL);
	KUNIT_EXPECT_EQ(test, rc->b.nsent, 0U);
	KUNIT_ASSERT_EQ(test, rc->b.ntodo, 1U);
	rc_grant_end(&rc->b, 0, 0);
	KUNIT_EXPECT_EQ(test, rc->b.nsent, 1U);
	rc_all();
	RC_EXPECT(test, &rc->b, 0, 100, 0);
	RC_EXPECT(test, &rc->b, 1, 101, 0);
	memset(rc->b.memory, 0xee, LEN + 1024);
	rc_write(&rc->a, 1, rc->a.memory + 5, 9000, rc_key(mr), IOVA + 77);
	rc_send_inv(&rc->a, 2, rc->a.memory, 16, rc_key(mr));
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 0U);
	KUNIT_ASSERT_EQ(test, rc->a.nrmas, 1U);
	rc_rma_end(&rc->a, 0, 0);
	KUNIT_EXPECT_EQ(test, memcmp(at(IOVA + 77), rc->a.memory + 5, 9000), 0);
	KUNIT_EXPECT_EQ(test, *at(IOVA + 76), 0xee);
	KUNIT_EXPECT_EQ(test, *at(IOVA + 77 + 9000), 0xee);
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 1U);
	rc_arrive(&rc->a, 0);
	/* The answer invalidates, so it is complete when the device has done so. */
	KUNIT_EXPECT_EQ(test, rc->b.n, 2U);
	KUNIT_ASSERT_EQ(test, rc->b.ntodo, 1U);
	KUNIT_EXPECT_TRUE(test, rc_reaches(&rc->b, mr));
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_INVALIDATING);
	rc_grant_end(&rc->b, 0, 0);
	KUNIT_EXPECT_FALSE(test, rc_reaches(&rc->b, mr));
	RC_EXPECT(test, &rc->b, 2, 200, 0);
	KUNIT_EXPECT_TRUE(test, rc->b.log[2].inv);
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_FREE);
	RC_EXPECT(test, &rc->a, 1, 1, 0);
	RC_EXPECT(test, &rc->a, 2, 2, 0);
	/* The grant is used again. */
	KUNIT_EXPECT_EQ(test, rc->b.ngrants, 4U);
}

/* Writes of many requests begin at once. Each answer waits for the writes before it, no others. */
static void rma_writes_overlap(struct kunit *test)
{
	struct krc_mr *mr = granted(test);
	unsigned int i;

	for (i = 0; i < 4; i++)
		rc_recv(&rc->b, 210 + i, rc->b.memory + LEN + 2048, 512);
	rc_all();
	rc->a.c.peer_credits = 5;
	for (i = 0; i < 4; i++) {
		rc_write(&rc->a, 10 + i, rc->a.memory + i, 5000, rc_key(mr), IOVA + 6000 * i);
		rc_send(&rc->a, 20 + i, rc->a.memory, 16);
	}
	KUNIT_ASSERT_EQ(test, rc->a.nrmas, 4U);
	rc_rma_end(&rc->a, 2, 0);
	rc_rma_end(&rc->a, 1, 0);
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 0U);
	rc_rma_end(&rc->a, 0, 0);
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 3U);
	rc_all();
	KUNIT_EXPECT_EQ(test, rc->b.n, 3U);
	rc_rma_end(&rc->a, 0, 0);
	rc_all();
	KUNIT_EXPECT_EQ(test, rc->b.n, 4U);
	KUNIT_EXPECT_EQ(test, rc->a.n, 8U);
	for (i = 0; i < 4; i++) {
		RC_EXPECT(test, &rc->a, 2 * i, 10 + i, 0);
		RC_EXPECT(test, &rc->a, 2 * i + 1, 20 + i, 0);
		KUNIT_EXPECT_EQ(test, memcmp(at(IOVA + 6000 * i), rc->a.memory + i, 5000), 0);
	}
}

/* A write that has begun by datagrams goes on so, although a key arrives meanwhile. */
static void rma_key_meanwhile(struct kunit *test)
{
	struct krc_mr *mr = granted(test);
	struct krc_key *slot = krc_key_slot(&rc->a.c, rc_key(mr));
	const struct krc_key key = *slot;
	LIST_HEAD(taken);

	slot->key = KRC_NO_KEY;
	rc_take_bufs(&rc->a, &taken, 1);
	rc_write(&rc->a, 1, rc->a.memory, 20000, rc_key(mr), IOVA);
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 1U);
	*slot = key;
	rc_all();
	rc_give_bufs(&rc->a, &taken);
	rc_all();
	KUNIT_EXPECT_EQ(test, rc->a.nrmas, 0U);
	RC_EXPECT(test, &rc->a, 0, 1, 0);
	KUNIT_EXPECT_EQ(test, memcmp(at(IOVA), rc->a.memory, 20000), 0);
}

/* A connection's writes wait for each other, and leave as many slots of the device as they have. */
static void rma_slots(struct kunit *test)
{
	struct krc_mr *mr = granted(test);
	unsigned int i, sent = rc->a.total;

	rc->a.q.rma_slots = 16;
	for (i = 0; i < 20; i++)
		rc_write(&rc->a, i, rc->a.memory + i, 2000, rc_key(mr), IOVA + 2000 * i);
	KUNIT_EXPECT_EQ(test, rc->a.nrmas, 8U);
	KUNIT_EXPECT_EQ(test, rc->a.q.rma_slots, 8U);
	rc_rma_end(&rc->a, 3, 0);
	KUNIT_EXPECT_EQ(test, rc->a.nrmas, 8U);
	while (rc->a.nrmas)
		rc_rma_end(&rc->a, rc->a.nrmas - 1, 0);
	KUNIT_EXPECT_EQ(test, rc->a.total, sent);
	KUNIT_EXPECT_EQ(test, rc->a.n, 20U);
	for (i = 0; i < 20; i++) {
		RC_EXPECT(test, &rc->a, i, i, 0);
		KUNIT_EXPECT_EQ(test, memcmp(at(IOVA + 2000 * i), rc->a.memory + i, 2000), 0);
	}
	KUNIT_EXPECT_EQ(test, rc->a.q.rma_slots, 16U);
	KUNIT_EXPECT_EQ(test, rc->a.c.rma_slots, 0U);
}

/*
 * Peers are dead, so that writes to them don't end. They leave slots for what the device does
 * itself. Another connection goes on by datagrams at the latest.
 */
static void rma_dead_peers(struct kunit *test)
{
	struct krc_mr *mr = granted(test);
	struct rc_side *dead;
	unsigned int i, j;

	rc->a.q.rma_slots = 16;
	for (i = 0; i < 5; i++) {
		dead = rc_another(test, &rc->a);
		*krc_key_slot(&dead->c, rc_key(mr)) = *krc_key_slot(&rc->a.c, rc_key(mr));
		for (j = 0; j < 20; j++)
			rc_write(dead, j, rc->a.memory, 2000, rc_key(mr), IOVA);
		KUNIT_EXPECT_GT(test, dead->nrmas, 0U);
	}
	KUNIT_EXPECT_EQ(test, rc->a.q.rma_slots, 0U);
	rc_write(&rc->a, 1, rc->a.memory + 7, 9000, rc_key(mr), IOVA);
	rc_send_inv(&rc->a, 2, rc->a.memory, 16, rc_key(mr));
	KUNIT_EXPECT_EQ(test, rc->a.nrmas, 0U);
	rc_all();
	KUNIT_EXPECT_EQ(test, memcmp(at(IOVA), rc->a.memory + 7, 9000), 0);
	RC_EXPECT(test, &rc->a, 0, 1, 0);
	RC_EXPECT(test, &rc->a, 1, 2, 0);
}

/* A read waits for the writes before it, because it may be of the same memory. */
static void rma_read_waits(struct kunit *test)
{
	struct krc_mr *mr;

	rc_connect_rma(test, 4);
	mr = rc_mr(test, &rc->b, rc->b.memory, RC_MR_PAGES);
	rc_recv(&rc->a, 201, rc->a.memory + LEN + 2048, 512);
	rc_all();
	rc_reg(&rc->b, 100, mr, IOVA, LEN, WRITES | KRC_ACCESS_REMOTE_READ);
	rc_send(&rc->b, 101, rc->b.memory, 64);
	rc_grant_end(&rc->b, 0, 0);
	rc_all();
	rc_write(&rc->a, 1, rc->a.memory, 5000, rc_key(mr), IOVA);
	rc_read(&rc->a, 2, rc->a.memory + 8192, 5000, rc_key(mr), IOVA);
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 0U);
	rc_rma_end(&rc->a, 0, 0);
	rc_all();
	KUNIT_EXPECT_EQ(test, memcmp(rc->a.memory, rc->a.memory + 8192, 5000), 0);
}

/* End a region's registration, whether or not it has a grant. */
static void ends(struct krc_mr *mr)
{
	rc_inval(&rc->b, 3, rc_key(mr));
	if (rc->b.ntodo)
		rc_grant_end(&rc->b, 0, 0);
	flush_delayed_work(&rc->b.q.grants_work);
}

/* As all of the following are, but for one thing. */
static void is_granted(struct kunit *test, struct krc_mr *mr)
{
	rc_reg(&rc->b, 4, mr, IOVA, PAGE_SIZE, WRITES);
	KUNIT_ASSERT_EQ(test, rc->b.ntodo, 1U);
	rc_grant_end(&rc->b, 0, 0);
	KUNIT_EXPECT_NOT_NULL(test, mr->grant);
	ends(mr);
}

/* By datagrams: without a grant, of a peer that can't write, of a short region, for a sink. */
static void rma_not_granted(struct kunit *test)
{
	const struct krc_sge none = {};
	struct krc_swr sink = {
		.id = 5, .op = KRC_OP_READ, .flags = KRC_F_SIGNALED, .nsge = 1, .total = 100,
	};
	struct krc_mr *mr;

	rc_connect_rma(test, 0);
	mr = asks(test, NULL);
	KUNIT_EXPECT_EQ(test, rc->b.ntodo, 0U);
	rc_all();
	rc_write(&rc->a, 1, rc->a.memory, 5000, rc_key(mr), IOVA);
	KUNIT_EXPECT_EQ(test, rc->a.nrmas, 0U);
	rc_all();
	KUNIT_EXPECT_EQ(test, memcmp(at(IOVA), rc->a.memory, 5000), 0);
	rc->b.q.grants_max = 4;
	mod_delayed_work(krc_grant_wq, &rc->b.q.grants_work, 0);
	flush_delayed_work(&rc->b.q.grants_work);
	ends(mr);
	is_granted(test, mr);
	rc_reg(&rc->b, 4, mr, IOVA, PAGE_SIZE - 1, WRITES);
	KUNIT_EXPECT_EQ(test, rc->b.ntodo, 0U);
	ends(mr);
	is_granted(test, mr);
	rc_reg(&rc->b, 4, mr, IOVA, LEN, KRC_ACCESS_REMOTE_READ);
	KUNIT_EXPECT_EQ(test, rc->b.ntodo, 0U);
	ends(mr);
	is_granted(test, mr);
	rc->b.c.can_write = false;
	rc_reg(&rc->b, 4, mr, IOVA, LEN, WRITES);
	KUNIT_EXPECT_EQ(test, rc->b.ntodo, 0U);
	rc->b.c.can_write = true;
	ends(mr);
	is_granted(test, mr);
	/* The request that reads into the region is posted with its registration. */
	spin_lock_irq(&rc->b.c.lock);
	*krc_sq_next(&rc->b.c) = (struct krc_swr) {
		.id = 4, .op = KRC_OP_REG,
		.map = { .iova = IOVA, .length = LEN, .shift = PAGE_SHIFT, .access = WRITES,
			 .key = rc_key(mr), .nr = krc_mr_mapping(mr) },
	};
	rc->b.c.head++;
	sink.key = 1 << 8;
	*krc_sq_next(&rc->b.c) = sink;
	krc_swr_at(&rc->b.c, rc->b.c.head)->sge[0] = none;
	krc_swr_at(&rc->b.c, rc->b.c.head)->sge[0].key = rc_key(mr);
	rc->b.c.head++;
	spin_unlock_irq(&rc->b.c.lock);
	krc_conn_push(&rc->b.c);
	KUNIT_EXPECT_EQ(test, rc->b.ntodo, 0U);
	KUNIT_EXPECT_NULL(test, mr->grant);
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_VALID);
}

/* b lets a read and write. Return: true if a's device may write. */
static bool lets(struct kunit *test, struct krc_mr *mr)
{
	bool grant;

	rc_recv(&rc->a, 201, rc->a.memory + LEN + 2048, 512);
	rc_all();
	KUNIT_ASSERT_EQ(test, rc_reg(&rc->b, 100, mr, IOVA, LEN, WRITES | KRC_ACCESS_REMOTE_READ),
			0);
	grant = rc->b.ntodo;
	if (grant)
		rc_grant_end(&rc->b, 0, 0);
	rc_send(&rc->b, 101, rc->b.memory + LEN + 1024, 64);
	rc_all();
	return grant;
}

static void lets_no_more(struct krc_mr *mr)
{
	rc_inval(&rc->b, 102, rc_key(mr));
	if (rc->b.ntodo)
		rc_grant_end(&rc->b, 0, 0);
	flush_delayed_work(&rc->b.q.grants_work);
}

/* Regions that the peer only reads have no grants after a while, until it writes. */
static void rma_only_read(struct kunit *test)
{
	struct krc_mr *mr;
	unsigned int i;

	rc_connect_rma(test, 1);
	mr = rc_mr(test, &rc->b, rc->b.memory, RC_MR_PAGES);
	for (i = 0; i < 3 * KRC_ONLY_READ / 2; i++) {
		KUNIT_EXPECT_EQ(test, lets(test, mr), i < KRC_ONLY_READ);
		rc_read(&rc->a, 1, rc->a.memory, 9000, rc_key(mr), IOVA);
		rc_all();
		lets_no_more(mr);
	}
	/* A short write says nothing, as short regions have no grants. */
	KUNIT_EXPECT_FALSE(test, lets(test, mr));
	rc_write(&rc->a, 2, rc->a.memory, PAGE_SIZE - 1, rc_key(mr), IOVA);
	rc_all();
	lets_no_more(mr);
	KUNIT_EXPECT_FALSE(test, lets(test, mr));
	rc_write(&rc->a, 3, rc->a.memory + 20000, 9000, rc_key(mr), IOVA);
	KUNIT_EXPECT_EQ(test, rc->a.nrmas, 0U);
	rc_all();
	KUNIT_EXPECT_EQ(test, memcmp(at(IOVA), rc->a.memory + 20000, 9000), 0);
	lets_no_more(mr);
	/* One that isn't read counts, whether or not the peer has written. */
	KUNIT_EXPECT_TRUE(test, lets(test, mr));
	lets_no_more(mr);
	KUNIT_EXPECT_EQ(test, rc->b.c.only_read, 0U);
	KUNIT_EXPECT_EQ(test, rc->a.stops + rc->b.stops, 0U);
}

/* A ULP invalidates by another connection, about whose peer that says nothing. */
static void rma_read_by_other(struct kunit *test)
{
	struct rc_side *o;
	struct krc_mr *mr;
	unsigned int i;

	rc_connect_rma(test, 1);
	o = rc_another(test, &rc->b);
	mr = rc_mr(test, &rc->b, rc->b.memory, RC_MR_PAGES);
	for (i = 0; i < KRC_ONLY_READ; i++) {
		KUNIT_EXPECT_TRUE(test, lets(test, mr));
		rc_read(&rc->a, 1, rc->a.memory, 9000, rc_key(mr), IOVA);
		rc_all();
		rc_inval(o, 2, rc_key(mr));
		/* The worker of the region's connection may have taken it from the list. */
		rc_runs();
		KUNIT_ASSERT_EQ(test, rc->b.ntodo, 1U);
		rc_grant_end(&rc->b, 0, 0);
		flush_delayed_work(&rc->b.q.grants_work);
	}
	KUNIT_EXPECT_EQ(test, o->c.only_read, 0U);
	KUNIT_EXPECT_EQ(test, o->n, KRC_ONLY_READ + 0U);
}

/*
 * A ULP gives up a request, by invalidating its region, while the peer's device writes. The write
 * may come when the device has repeated its key, but then that isn't valid for other memory.
 */
static void rma_late_write(struct kunit *test)
{
	u8 *memory = kunit_kzalloc(test, 2 * PAGE_SIZE, GFP_KERNEL);
	struct krc_mr *mr, *other;
	struct rc_side *o;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, memory);
	rc_connect_rma(test, 1);
	o = rc_another(test, &rc->b);
	mr = asks(test, NULL);
	rc_grant_end(&rc->b, 0, 0);
	rc_all();
	rc_write(&rc->a, 1, rc->a.memory, 5000, rc_key(mr), IOVA);
	KUNIT_ASSERT_EQ(test, rc->a.nrmas, 1U);
	ends(mr);
	other = rc_mr(test, &rc->b, memory, 2);
	memset(memory, 0x5a, 2 * PAGE_SIZE);
	for (i = 1; i <= RC_KEYS; i++) {
		KUNIT_ASSERT_EQ(test, rc_reg(o, i, other, IOVA, 5000, WRITES), 0);
		KUNIT_ASSERT_EQ(test, rc->b.ntodo, 1U);
		rc_grant_end(&rc->b, 0, 0);
		KUNIT_ASSERT_NOT_NULL(test, other->grant);
		KUNIT_EXPECT_NE(test, other->grant->key, rc->a.rmas[0]->rma.iov.key);
		if (i == RC_KEYS)
			break;
		rc_inval(o, i, rc_key(other));
		rc_grant_end(&rc->b, 0, 0);
		flush_delayed_work(&rc->b.q.grants_work);
	}
	/* It was used for as long as that was safe. */
	KUNIT_EXPECT_EQ(test, rc->b.nopened, 2U);
	rc->a.n = 0;
	rc_rma_end(&rc->a, 0, 0);
	krc_wait_flushed(&rc->a.c);
	RC_EXPECT(test, &rc->a, 0, 1, -EIO);
	KUNIT_EXPECT_NULL(test, memchr_inv(memory, 0x5a, 2 * PAGE_SIZE));
}

/* A peer that invalidates has finished, so a grant is used as often as there are requests. */
static void rma_used_again(struct kunit *test)
{
	struct krc_mr *mr = NULL;
	unsigned int i;

	rc_connect_rma(test, 1);
	for (i = 0; i < 3 * RC_KEYS; i++) {
		rc->a.n = 0;
		rc->b.n = 0;
		mr = asks(test, mr);
		KUNIT_ASSERT_EQ(test, rc->b.ntodo, 1U);
		rc_grant_end(&rc->b, 0, 0);
		rc_all();
		rc_write(&rc->a, 1, rc->a.memory + i, 5000, rc_key(mr), IOVA);
		rc_send_inv(&rc->a, 2, rc->a.memory, 16, rc_key(mr));
		KUNIT_ASSERT_EQ(test, rc->a.nrmas, 1U);
		rc_rma_end(&rc->a, 0, 0);
		rc_all();
		rc_grant_end(&rc->b, 0, 0);
		RC_EXPECT(test, &rc->b, 2, 200, 0);
		KUNIT_EXPECT_EQ(test, memcmp(at(IOVA), rc->a.memory + i, 5000), 0);
	}
	KUNIT_EXPECT_EQ(test, rc->b.nopened, 1U);
}

/* Others have all regions of the device. When they give some back, there are grants. */
static void rma_no_regions(struct kunit *test)
{
	struct krc_mr *mr;
	unsigned int opens;

	rc->b.open_err = -FI_ENOMR;
	rc_connect_rma(test, 2);
	opens = rc->b.opens;
	KUNIT_EXPECT_GT(test, opens, 0U);
	mr = asks(test, NULL);
	KUNIT_EXPECT_EQ(test, rc->b.ntodo, 0U);
	ends(mr);
	rc->b.open_err = 0;
	/* A request doesn't have it try again at once. */
	asks(test, mr);
	KUNIT_EXPECT_EQ(test, rc->b.ntodo, 0U);
	KUNIT_EXPECT_EQ(test, rc->b.opens, opens + 1);
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&rc->b.q.grants_work));
	ends(mr);
	KUNIT_EXPECT_EQ(test, rc->b.ngrants, 2U);
	is_granted(test, mr);
}

/* The device refuses the memory: the registration succeeds, and data comes by datagrams. */
static void rma_refused(struct kunit *test)
{
	static const int errs[] = { -EOPNOTSUPP, -EINVAL, -EMSGSIZE, -EIO };
	struct krc_mr *mr = NULL;
	unsigned int i;

	rc_connect_rma(test, 1);
	for (i = 0; i < ARRAY_SIZE(errs); i++) {
		rc->a.n = 0;
		rc->b.n = 0;
		mr = asks(test, mr);
		KUNIT_ASSERT_EQ(test, rc->b.ntodo, 1U);
		rc_grant_end(&rc->b, 0, errs[i]);
		flush_delayed_work(&rc->b.q.grants_work);
		rc_runs();
		rc_all();
		RC_EXPECT(test, &rc->b, 0, 100, 0);
		RC_EXPECT(test, &rc->b, 1, 101, 0);
		rc_write(&rc->a, 1, rc->a.memory + i, 5000, rc_key(mr), IOVA);
		KUNIT_EXPECT_EQ(test, rc->a.nrmas, 0U);
		rc_send_inv(&rc->a, 2, rc->a.memory, 16, rc_key(mr));
		rc_all();
		KUNIT_EXPECT_EQ(test, memcmp(at(IOVA), rc->a.memory + i, 5000), 0);
		RC_EXPECT(test, &rc->b, 2, 200, 0);
	}
	/* After an error of the device, the grant isn't used again. */
	KUNIT_EXPECT_EQ(test, rc->b.nopened, 2U);
	KUNIT_EXPECT_EQ(test, rc->b.stops, 0U);
}

/* Keys that the next message has no room for go before it. */
static void rma_many_keys(struct kunit *test)
{
	struct krc_mr *mrs[RC_GRANTS];
	unsigned int i;

	rc_connect_rma(test, RC_GRANTS);
	rc_recv(&rc->a, 201, rc->a.memory + LEN, 512);
	rc_all();
	for (i = 0; i < RC_GRANTS; i++) {
		mrs[i] = rc_mr(test, &rc->b, rc->b.memory + 4096 * i, 2);
		rc_reg(&rc->b, i, mrs[i], IOVA, 5000, WRITES);
	}
	rc_send(&rc->b, 101, rc->b.memory, 64);
	KUNIT_ASSERT_EQ(test, rc->b.ntodo, RC_GRANTS + 0U);
	while (rc->b.ntodo)
		rc_grant_end(&rc->b, rc->b.ntodo - 1, 0);
	KUNIT_ASSERT_EQ(test, rc->b.nsent, 2U);
	/* In the wrong order: the message isn't delivered before the keys are there. */
	rc_arrive(&rc->b, 1);
	KUNIT_EXPECT_EQ(test, rc->a.n, 0U);
	rc_arrive(&rc->b, 0);
	KUNIT_EXPECT_EQ(test, rc->a.n, 1U);
	for (i = 0; i < RC_GRANTS; i++)
		rc_write(&rc->a, i, rc->a.memory, 5000, rc_key(mrs[i]), IOVA);
	KUNIT_EXPECT_EQ(test, rc->a.nrmas, RC_GRANTS + 0U);
	while (rc->a.nrmas)
		rc_rma_end(&rc->a, 0, 0);
	KUNIT_EXPECT_EQ(test, rc->a.stops, 0U);
}

/*
 * The same key of the ULP again, but without a grant: the peer forgets the earlier one, or it would
 * write by a key of the device that is that of other memory by now.
 */
static void rma_key_again(struct kunit *test)
{
	struct krc_mr *mr = granted(test);
	LIST_HEAD(taken);

	rc_inval(&rc->b, 1, rc_key(mr));
	KUNIT_EXPECT_EQ(test, rc->b.n, 0U);
	rc_grant_end(&rc->b, 0, 0);
	RC_EXPECT(test, &rc->b, 0, 1, 0);
	spin_lock_irq(&rc->b.q.lock);
	list_splice_init(&rc->b.q.grants, &taken);
	spin_unlock_irq(&rc->b.q.lock);
	asks(test, mr);
	KUNIT_EXPECT_EQ(test, rc->b.ntodo, 0U);
	rc_all();
	rc_write(&rc->a, 2, rc->a.memory, 5000, rc_key(mr), IOVA);
	KUNIT_EXPECT_EQ(test, rc->a.nrmas, 0U);
	rc_all();
	KUNIT_EXPECT_EQ(test, memcmp(at(IOVA), rc->a.memory, 5000), 0);
	KUNIT_EXPECT_NULL(test, mr->told);
	spin_lock_irq(&rc->b.q.lock);
	list_splice_init(&taken, &rc->b.q.grants);
	spin_unlock_irq(&rc->b.q.lock);
}

/* An older key of a region that comes later doesn't replace the newer one. */
static void rma_key_late(struct kunit *test)
{
	struct krc_mr *mr = granted(test);
	struct krc_key key = *krc_key_slot(&rc->a.c, rc_key(mr));
	struct krc_dgram d = {
		.type = KRC_KEYS, .nkeys = 1, .cookie = rc->a.c.cookie, .seq = rc->a.c.rx_next,
	};
	struct krc_wire_key wire;

	KUNIT_ASSERT_EQ(test, key.rkey, rc_key(mr));
	key.gen--;
	key.key = 77;
	krc_build_key(&wire, &key);
	rc_inject(&rc->a, &d, &wire, sizeof(wire));
	KUNIT_EXPECT_NE(test, krc_key_slot(&rc->a.c, rc_key(mr))->key, 77ULL);
	key.gen += 2;
	krc_build_key(&wire, &key);
	d.seq++;
	rc_inject(&rc->a, &d, &wire, sizeof(wire));
	KUNIT_EXPECT_EQ(test, krc_key_slot(&rc->a.c, rc_key(mr))->key, 77ULL);
	KUNIT_EXPECT_EQ(test, rc->a.stops, 0U);
}

/* Keys for a side that has not said that it takes them, and those that are no keys. */
static void rma_hostile_keys(struct kunit *test)
{
	const struct krc_key key = { .rkey = 0x100, .gen = 1, .key = KRC_NO_KEY, .delta = 1 };
	struct krc_dgram d = { .type = KRC_KEYS, .nkeys = 1 };
	struct krc_wire_key wire;

	rc_connect_rma(test, 4);
	d.cookie = rc->a.c.cookie;
	krc_build_key(&wire, &key);
	rc_inject(&rc->a, &d, &wire, sizeof(wire));
	krc_wait_flushed(&rc->a.c);
	KUNIT_EXPECT_EQ(test, rc->a.cause, KRC_BY_VIOLATION);
	rc->b.c.can_rma = false;
	d.cookie = rc->b.c.cookie;
	wire.delta = 0;
	rc_inject(&rc->b, &d, &wire, sizeof(wire));
	krc_wait_flushed(&rc->b.c);
	KUNIT_EXPECT_EQ(test, rc->b.cause, KRC_BY_VIOLATION);
}

/* Keys that are wrong: the write fails, and ends the connection that makes it, and no other. */
static void rma_hostile_key(struct kunit *test)
{
	struct krc_mr *mr = granted(test);

	krc_key_slot(&rc->a.c, rc_key(mr))->key ^= 0x55;
	rc_write(&rc->a, 1, rc->a.memory, 5000, rc_key(mr), IOVA);
	rc_send(&rc->a, 2, rc->a.memory, 16);
	rc_rma_end(&rc->a, 0, 0);
	krc_wait_flushed(&rc->a.c);
	KUNIT_EXPECT_EQ(test, rc->a.cause, KRC_BY_FAULT);
	RC_EXPECT(test, &rc->a, 0, 1, -EIO);
	RC_EXPECT(test, &rc->a, 1, 2, -ECANCELED);
}

/* The connection ends while the device registers: it registers, and then invalidates. */
static void rma_stop_registering(struct kunit *test)
{
	struct krc_mr *mr;

	rc_connect_rma(test, 4);
	mr = asks(test, NULL);
	krc_stop(&rc->b.c, KRC_BY_ULP, 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(mr->state) == KRC_MR_INVALIDATING));
	a_while();
	KUNIT_EXPECT_FALSE(test, flushed(&rc->b));
	rc_grant_end(&rc->b, 0, 0);
	KUNIT_ASSERT_EQ(test, rc->b.ntodo, 1U);
	KUNIT_EXPECT_TRUE(test, rc_reaches(&rc->b, mr));
	a_while();
	KUNIT_EXPECT_FALSE(test, flushed(&rc->b));
	KUNIT_EXPECT_EQ(test, rc->b.n, 0U);
	rc_grant_end(&rc->b, 0, 0);
	krc_wait_flushed(&rc->b.c);
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_FREE);
	/* Its key may still be tried. */
	flush_delayed_work(&rc->b.q.grants_work);
	KUNIT_EXPECT_EQ(test, rc->b.ngrants, 3U);
}

/* The connection ends while the peer writes: nothing is flushed before the device invalidated. */
static void rma_stop_valid(struct kunit *test)
{
	struct krc_mr *mr = granted(test);

	rc_write(&rc->a, 1, rc->a.memory, 5000, rc_key(mr), IOVA);
	krc_stop(&rc->b.c, KRC_BY_PEER, 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(rc->b.ntodo)));
	KUNIT_EXPECT_TRUE(test, rc_reaches(&rc->b, mr));
	a_while();
	KUNIT_EXPECT_FALSE(test, flushed(&rc->b));
	rc_grant_end(&rc->b, 0, 0);
	krc_wait_flushed(&rc->b.c);
	memset(rc->b.memory, 0x5a, LEN);
	rc_rma_end(&rc->a, 0, 0);
	krc_wait_flushed(&rc->a.c);
	RC_EXPECT(test, &rc->a, 0, 1, -EIO);
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(rc->b.memory, 0x5a, LEN), NULL);
}

/* The connection ends while its own device writes from memory of the ULP. */
static void rma_stop_writing(struct kunit *test)
{
	struct krc_mr *mr = granted(test);

	rc_write(&rc->a, 1, rc->a.memory, 5000, rc_key(mr), IOVA);
	krc_stop(&rc->a.c, KRC_BY_ULP, 0);
	a_while();
	KUNIT_EXPECT_FALSE(test, flushed(&rc->a));
	rc_rma_end(&rc->a, 0, 0);
	krc_wait_flushed(&rc->a.c);
	RC_EXPECT(test, &rc->a, 0, 1, 0);
}

static void mr_fini(struct kofi_thread *thread)
{
	krc_mr_fini(thread->arg);
}

/* A region is freed that the peer can reach: it stays until the device has invalidated. */
static void rma_free_valid(struct kunit *test)
{
	struct krc_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	struct kofi_thread thread;

	KUNIT_ASSERT_NOT_NULL(test, mr);
	rc_connect_rma(test, 4);
	KUNIT_ASSERT_EQ(test, krc_mr_init(mr, &rc->b.mrs, &rc->b, RC_MR_PAGES), 0);
	rc_map(mr, rc->b.memory, RC_MR_PAGES);
	asks(test, mr);
	rc_grant_end(&rc->b, 0, 0);
	kofi_thread_start(test, &thread, mr_fini, mr);
	KUNIT_EXPECT_TRUE(test, kofi_soon(kofi_thread_sleeps(&thread)));
	KUNIT_ASSERT_EQ(test, rc->b.ntodo, 1U);
	KUNIT_EXPECT_TRUE(test, rc_reaches(&rc->b, mr));
	rc_grant_end(&rc->b, 0, 0);
	kofi_thread_join(test, &thread);
	flush_delayed_work(&rc->b.q.grants_work);
	KUNIT_EXPECT_EQ(test, rc->b.ngrants, 3U);
	synchronize_rcu();
	kfree(mr);
}

/* The device doesn't invalidate: it is given up, and the grant closed before the request ends. */
static void rma_inval_fails(struct kunit *test)
{
	struct krc_mr *mr = granted(test);

	rc_inval(&rc->b, 1, rc_key(mr));
	rc->b.gone = true;
	rc_grant_end(&rc->b, 0, -EIO);
	KUNIT_EXPECT_EQ(test, rc->b.lost, 1U);
	flush_delayed_work(&rc->b.q.grants_work);
	rc_runs();
	KUNIT_EXPECT_EQ(test, rc->b.ngrants, 3U);
	KUNIT_EXPECT_FALSE(test, rc_reaches(&rc->b, mr));
	RC_EXPECT(test, &rc->b, 0, 1, 0);
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_FREE);
}

static void grants_work(void)
{
	mod_delayed_work(krc_grant_wq, &rc->b.q.grants_work, 0);
	flush_delayed_work(&rc->b.q.grants_work);
}

/* Not even that: the request never ends, nor does the connection, until the device was reset. */
static void rma_stuck(struct kunit *test)
{
	struct krc_mr *mr = granted(test), *other;
	u64 counted;
	unsigned int said;

	other = rc_mr(test, &rc->b, rc->b.memory, 2);
	rc_reg(&rc->b, 1, other, IOVA, 5000, WRITES);
	rc_grant_end(&rc->b, 0, 0);
	rc->b.n = 0;
	rc_inval(&rc->b, 2, rc_key(mr));
	rc_inval(&rc->b, 3, rc_key(other));
	rc_grant_end(&rc->b, 0, -EIO);
	rc_grant_end(&rc->b, 0, -EIO);
	grants_work();
	krc_stop(&rc->b.c, KRC_BY_REMOVAL, -ENODEV);
	a_while();
	KUNIT_EXPECT_FALSE(test, flushed(&rc->b));
	KUNIT_EXPECT_EQ(test, rc->b.n, 0U);
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_INVALIDATING);
	KUNIT_EXPECT_TRUE(test, rc_reaches(&rc->b, mr));
	/* The log is told once for both. */
	said = rc->b.stucks;
	counted = atomic64_read(&krc_counts[KRC_COUNT_STUCK]);
	grants_work();
	KUNIT_EXPECT_EQ(test, rc->b.stucks, said + 1);
	KUNIT_EXPECT_EQ(test, atomic64_read(&krc_counts[KRC_COUNT_STUCK]), counted + 2);
	rc->b.gone = true;
	rc->b.close_err = -EBUSY;
	rc->b.closes_fail = 1;
	grants_work();
	KUNIT_EXPECT_FALSE(test, flushed(&rc->b));
	grants_work();
	krc_wait_flushed(&rc->b.c);
	KUNIT_EXPECT_FALSE(test, rc_reaches(&rc->b, mr));
	RC_EXPECT(test, &rc->b, 0, 2, 0);
	RC_EXPECT(test, &rc->b, 1, 3, 0);
}

/*
 * The device is removed and doesn't let go of the memory. Its driver resets it after that, so the
 * request ends when this took place. The same for a registration: it may have been carried out.
 */
static void rma_removed(struct kunit *test, bool registering)
{
	struct krc_mr *mr;

	rc_connect_rma(test, 4);
	mr = asks(test, NULL);
	if (!registering) {
		rc_grant_end(&rc->b, 0, 0);
		rc_all();
		rc_inval(&rc->b, 1, rc_key(mr));
	}
	krc_reset_ms = KOFI_NEVER_MS;
	rc->b.gone = true;
	rc->b.close_err = -EIO;
	rc->b.closes_fail = 1;
	rc_grant_end(&rc->b, 0, -EIO);
	krc_stop(&rc->b.c, KRC_BY_REMOVAL, -ENODEV);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(mr->state) == KRC_MR_INVALIDATING));
	grants_work();
	a_while();
	grants_work();
	KUNIT_EXPECT_FALSE(test, flushed(&rc->b));
	krc_reset_ms = 0;
	grants_work();
	krc_wait_flushed(&rc->b.c);
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_FREE);
}

static void rma_removed_registering(struct kunit *test)
{
	rma_removed(test, true);
}

static void rma_removed_invalidating(struct kunit *test)
{
	rma_removed(test, false);
}

/*
 * The device is given up while it registers, and the registration fails with an error that it has
 * for others, too. The peer can't reach the memory, so nobody waits until the device is removed.
 */
static void rma_lost_registering(struct kunit *test)
{
	struct krc_mr *mr;

	rc_connect_rma(test, 4);
	mr = asks(test, NULL);
	krc_net_lost(&rc->b.q);
	krc_stop(&rc->b.c, KRC_BY_REMOVAL, -ENODEV);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(mr->state) == KRC_MR_INVALIDATING));
	rc_grant_end(&rc->b, 0, -EIO);
	KUNIT_EXPECT_TRUE(test, kofi_soon(flushed(&rc->b)));
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_FREE);
}

/*
 * The device was given up with a region that is valid. It refuses to destroy it, as closing tells:
 * the peer reaches the memory until the device is reset.
 */
static void rma_lost_valid(struct kunit *test)
{
	struct krc_mr *mr = granted(test);

	krc_reset_ms = KOFI_NEVER_MS;
	rc->b.close_err = -EIO;
	rc->b.closes_fail = 1;
	krc_net_lost(&rc->b.q);
	krc_stop(&rc->b.c, KRC_BY_REMOVAL, -ENODEV);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(rc->b.stucks)));
	a_while();
	grants_work();
	KUNIT_EXPECT_FALSE(test, flushed(&rc->b));
	KUNIT_EXPECT_TRUE(test, rc_reaches(&rc->b, mr));
	rc->b.gone = true;
	krc_reset_ms = 0;
	grants_work();
	krc_wait_flushed(&rc->b.c);
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_FREE);
}

/* The device never answers: it is given up after a time. */
static void rma_inval_never_ends(struct kunit *test)
{
	struct krc_mr *mr = granted(test);

	krc_revoke_ms = 50;
	krc_stop(&rc->b.c, KRC_BY_ULP, 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(rc->b.lost)));
	KUNIT_EXPECT_FALSE(test, flushed(&rc->b));
	KUNIT_EXPECT_TRUE(test, rc_reaches(&rc->b, mr));
	rc_grant_end(&rc->b, 0, -ENODEV);
	krc_wait_flushed(&rc->b.c);
	KUNIT_EXPECT_FALSE(test, rc_reaches(&rc->b, mr));
}

/**
 * struct nth_fails - a failure of the device
 * @nth: which registration or invalidation fails
 * @err: its error
 */
struct nth_fails {
	unsigned int	nth;
	int		err;
};

static const struct nth_fails nths[] = {
	{ 0, -EIO }, { 1, -EIO }, { 2, -EIO }, { 3, -EIO }, { 4, -EIO }, { 5, -EIO },
	{ 0, -ENODEV }, { 1, -ENODEV }, { 2, -ENODEV }, { 3, -ENODEV }, { 4, -ENODEV },
	{ 5, -ENODEV }, { 0, -ECANCELED }, { 1, -ECANCELED }, { 3, -ECANCELED },
};

KUNIT_ARRAY_PARAM(nth, nths, NULL);

/* The device does what waits, but one thing. */
static void device_goes_on(const struct nth_fails *f, unsigned int *n)
{
	while (rc->b.ntodo)
		rc_grant_end(&rc->b, 0, (*n)++ == f->nth ? f->err : 0);
	flush_delayed_work(&rc->b.q.grants_work);
	rc_runs();
}

/* The nth of what the device does fails. No region is free while its memory can be reached. */
static void rma_nth_fails(struct kunit *test)
{
	const struct nth_fails *f = test->param_value;
	unsigned int n = 0, round;
	struct krc_mr *mr = NULL;

	rc_connect_rma(test, 2);
	/* One that doesn't invalidate is reset. */
	rc->b.gone = f->err == -EIO;
	for (round = 0; round < 3; round++) {
		rc->a.n = 0;
		rc->b.n = 0;
		mr = asks(test, mr);
		device_goes_on(f, &n);
		rc_all();
		memset(rc->b.memory, 0xee, LEN);
		rc_write(&rc->a, 1, rc->a.memory, 5000, rc_key(mr), IOVA);
		rc_send_inv(&rc->a, 2, rc->a.memory, 16, rc_key(mr));
		while (rc->a.nrmas)
			rc_rma_end(&rc->a, 0, 0);
		rc_all();
		KUNIT_EXPECT_EQ(test, memcmp(at(IOVA), rc->a.memory, 5000), 0);
		device_goes_on(f, &n);
		KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_FREE);
		KUNIT_EXPECT_FALSE(test, rc_reaches(&rc->b, mr));
		RC_EXPECT(test, &rc->b, 2, 200, 0);
		/* The device was given up. */
		if (rc->b.lost)
			break;
	}
	KUNIT_EXPECT_EQ(test, rc->a.stops + rc->b.stops, 0U);
	KUNIT_EXPECT_GT(test, n, f->nth);
}

static struct kunit_case rma_cases[] = {
	KUNIT_CASE(rma_write),
	KUNIT_CASE(rma_writes_overlap),
	KUNIT_CASE(rma_key_meanwhile),
	KUNIT_CASE(rma_slots),
	KUNIT_CASE(rma_dead_peers),
	KUNIT_CASE(rma_read_waits),
	KUNIT_CASE(rma_not_granted),
	KUNIT_CASE(rma_only_read),
	KUNIT_CASE(rma_read_by_other),
	KUNIT_CASE(rma_late_write),
	KUNIT_CASE(rma_used_again),
	KUNIT_CASE(rma_no_regions),
	KUNIT_CASE(rma_refused),
	KUNIT_CASE(rma_many_keys),
	KUNIT_CASE(rma_key_again),
	KUNIT_CASE(rma_key_late),
	KUNIT_CASE(rma_hostile_keys),
	KUNIT_CASE(rma_hostile_key),
	KUNIT_CASE(rma_stop_registering),
	KUNIT_CASE(rma_stop_valid),
	KUNIT_CASE(rma_stop_writing),
	KUNIT_CASE(rma_free_valid),
	KUNIT_CASE(rma_inval_fails),
	KUNIT_CASE(rma_stuck),
	KUNIT_CASE(rma_removed_registering),
	KUNIT_CASE(rma_removed_invalidating),
	KUNIT_CASE(rma_lost_registering),
	KUNIT_CASE(rma_lost_valid),
	KUNIT_CASE(rma_inval_never_ends),
	KUNIT_CASE_PARAM(rma_nth_fails, nth_gen_params),
	{}
};

static struct kunit_suite rma_suite = {
	.name		= "kofi_rc_rma",
	.init		= rc_scene_init,
	.exit		= rc_scene_exit,
	.suite_init	= rc_suite_init,
	.suite_exit	= rc_suite_exit,
	.test_cases	= rma_cases,
};

kunit_test_suite(rma_suite);
