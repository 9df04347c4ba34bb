// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Operations: each path through their states, wrong ids, and the end of an operation. */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include "../../prov/efa/rdm/rop.h"

#define SIZE	7

struct scene {
	spinlock_t		lock;	/* in place of the endpoint's lock */
	struct kefa_rops	rops;
};

static struct scene *scene(struct kunit *test, u32 size)
{
	struct scene *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	spin_lock_init(&s->lock);
	KUNIT_ASSERT_EQ(test, kefa_rops_init(&s->rops, &s->lock, size), 0);
	spin_lock_bh(&s->lock);
	return s;
}

static void leave(struct scene *s)
{
	spin_unlock_bh(&s->lock);
	kefa_rops_fini(&s->rops);
}

static bool over(struct scene *s, struct kefa_rop *rop)
{
	rop->flags |= KEFA_ROP_OVER | KEFA_ROP_TOLD;
	return kefa_rop_end(&s->rops, rop);
}

/*
 * The states that each kind of operation goes through. WAIT may be skipped, as all resources
 * may be available at once.
 */
static const char * const lives[] = {
	/* Sending: eager, medium, eager write, RMA by the device. */
	"free wait posted free",
	"free posted dying free",
	/* Long-CTS, with or without acknowledgment; several windows. */
	"free wait grant data_tx grant data_tx posted free",
	"free grant data_tx ack free",
	"free wait grant dying free",
	"free grant data_tx dying free",
	/* Delivery complete, EOR, the response to a fetch. */
	"free wait ack free",
	"free ack dying free",
	/* Long read: registered, read, invalidated; or refused, and sent again. */
	"free wait reg wait ack inval free",
	"free reg wait ack inval free",
	"free reg ack inval free",
	"free reg dying free",
	"free wait ack inval grant data_tx posted free",
	"free ack inval dying free",
	/* A write that can't be read is sent anew. */
	"free wait reg ack inval wait",
	/* Emulated reads: short, long. */
	"free wait data_rx free",
	"free ack data_rx dying free",
	/* Reads and writes by the device. */
	"free rdma posted free",
	"free wait rdma posted free",
	"free rdma dying free",
	/* Canceled before it began. */
	"free wait free",
	"free wait dying free",
	/* Responding to a read: at once, or in windows. */
	"free data_tx grant data_tx posted free",
	"free wait data_tx grant",
	/* A receive: canceled; of a message in one packet, or in several. */
	"free listed free",
	"free listed owes free",
	"free listed sink free",
	"free listed sink owes free",
	"free listed data_rx free",
	"free listed data_rx owes free",
	/* In a multi-receive buffer, its completion waits for room. */
	"free data_rx untold free",
	"free reading untold free",
	"free listed data_rx owes dying free",
	/* Read by the device, after the first part of the message came in the packet. */
	"free listed reading owes free",
	"free listed reading free",
	"free listed data_rx reading owes free",
	/* Reading isn't possible, so the message comes by long-CTS. */
	"free listed data_rx reading nacked data_rx free",
	"free listed reading nacked data_rx free",
	"free listed reading nacked dying free",
	/* The rest of the message is discarded. */
	"free listed data_rx sink free",
	"free listed reading sink dying free",
	"free listed reading nacked sink free",
	/* The message came before the receive. */
	"free owes free",
	"free data_rx free",
	"free reading owes free",
	"free reading nacked data_rx free",
	"free sink free",
	"free reading free",
	"free sink owes free",
	/* A target of writes and atomic operations. */
	"free data_rx owes free",
	"free data_rx dying free",
	"free reading dying free",
	/* A write can't be read, which its sender is told after its HANDSHAKE has come. */
	"free reading nacked owes free",
};

static u32 state_of(struct kunit *test, const char *name, size_t len)
{
	u32 i;

	for (i = 0; i < KEFA_ROP_STATES; i++)
		if (strlen(kefa_rop_state_text(i)) == len &&
		    !strncmp(kefa_rop_state_text(i), name, len))
			return i;
	KUNIT_FAIL(test, "%s is no state", name);
	return 0;
}

/* Exactly the transitions on these paths are allowed. */
static void rop_states(struct kunit *test)
{
	u32 may[KEFA_ROP_STATES] = { }, i, from, to;
	const char *at, *end;

	for (i = 0; i < ARRAY_SIZE(lives); i++) {
		from = KEFA_ROP_FREE;
		for (at = lives[i] + strlen("free"); *at; at = end) {
			end = strchrnul(++at, ' ');
			to = state_of(test, at, end - at);
			may[from] |= BIT(to);
			from = to;
		}
	}
	for (from = 0; from < KEFA_ROP_STATES; from++)
		for (to = 0; to < KEFA_ROP_STATES; to++)
			KUNIT_EXPECT_EQ_MSG(test, !!(kefa_rop_from[to] & BIT(from)),
					    !!(may[from] & BIT(to)), "%s to %s",
					    kefa_rop_state_text(from), kefa_rop_state_text(to));
}

static void rop_until_none_is_free(struct kunit *test)
{
	struct scene *s = scene(test, SIZE);
	struct kefa_rop *rop[SIZE], *again;
	u32 i;

	for (i = 0; i < SIZE; i++) {
		rop[i] = kefa_rop_take(&s->rops, i % 2 ? KEFA_ROP_WAIT : KEFA_ROP_LISTED);
		KUNIT_ASSERT_NOT_NULL(test, rop[i]);
		memset(&rop[i]->total, 0xee, sizeof(rop[i]->total));
	}
	KUNIT_EXPECT_NULL(test, kefa_rop_take(&s->rops, KEFA_ROP_WAIT));
	KUNIT_EXPECT_EQ(test, s->rops.used, SIZE);
	/* Slots are reused in the order in which they were freed. */
	KUNIT_EXPECT_TRUE(test, over(s, rop[4]));
	KUNIT_EXPECT_TRUE(test, over(s, rop[1]));
	again = kefa_rop_take(&s->rops, KEFA_ROP_POSTED);
	KUNIT_EXPECT_PTR_EQ(test, again, rop[4]);
	KUNIT_EXPECT_EQ(test, again->total, 0);
	KUNIT_EXPECT_EQ(test, again->flags, 0);
	KUNIT_EXPECT_EQ(test, again->gen, 2);
	KUNIT_EXPECT_PTR_EQ(test, kefa_rop_take(&s->rops, KEFA_ROP_POSTED), rop[1]);
	for (i = 0; i < SIZE; i++)
		KUNIT_EXPECT_TRUE(test, over(s, rop[i]));
	leave(s);
}

/* Exactly one of all ids that a peer may send is accepted. */
static void rop_ids(struct kunit *test)
{
	struct scene *s = scene(test, SIZE);
	struct kefa_rop *rop;
	u32 i, id, found = 0;

	KUNIT_EXPECT_NULL(test, kefa_rop_find(&s->rops, 0));
	rop = kefa_rop_take(&s->rops, KEFA_ROP_WAIT);
	id = kefa_rop_id(&s->rops, rop);
	for (i = 0; i < 0x10000; i++) {
		found += !!kefa_rop_find(&s->rops, id ^ i);
		found += !!kefa_rop_find(&s->rops, id ^ i << 16);
	}
	KUNIT_EXPECT_EQ(test, found, 2);
	KUNIT_EXPECT_PTR_EQ(test, kefa_rop_find(&s->rops, id), rop);
	KUNIT_EXPECT_NULL(test, kefa_rop_find(&s->rops, U32_MAX));
	KUNIT_EXPECT_TRUE(test, over(s, rop));
	KUNIT_EXPECT_NULL(test, kefa_rop_find(&s->rops, id));
	/* No peer knows the id of a receive that is only posted. */
	rop = kefa_rop_take(&s->rops, KEFA_ROP_LISTED);
	KUNIT_EXPECT_NULL(test, kefa_rop_find(&s->rops, kefa_rop_id(&s->rops, rop)));
	KUNIT_EXPECT_TRUE(test, over(s, rop));
	leave(s);
}

/* An id is reused after all others of its slot. */
static void rop_ids_wrap(struct kunit *test)
{
	struct scene *s = scene(test, 1);
	struct kefa_rop *rop = kefa_rop_take(&s->rops, KEFA_ROP_POSTED);
	u32 i, id, first = kefa_rop_id(&s->rops, rop);

	for (i = 1; i <= 0x10000; i++) {
		KUNIT_ASSERT_TRUE(test, over(s, rop));
		rop = kefa_rop_take(&s->rops, KEFA_ROP_POSTED);
		id = kefa_rop_id(&s->rops, rop);
		KUNIT_ASSERT_EQ(test, id == first, i == 0x10000);
		KUNIT_ASSERT_PTR_EQ(test, kefa_rop_find(&s->rops, id), rop);
	}
	KUNIT_EXPECT_TRUE(test, over(s, rop));
	leave(s);
}

static void rop_is_over(struct kunit *test)
{
	struct scene *s = scene(test, 1);
	struct kefa_rop *rop;
	u32 have;

	/* It ends when protocol, work requests, responses and the ULP are done with it. */
	for (have = 0; have < 16; have++) {
		rop = kefa_rop_take(&s->rops, KEFA_ROP_DATA_RX);
		rop->flags = (have & 1 ? KEFA_ROP_OVER : 0) | (have & 2 ? KEFA_ROP_TOLD : 0);
		rop->wrs = have & 4 ? 0 : 1;
		rop->owes = have & 8 ? 0 : KEFA_ROP_OWES_RECEIPT;
		KUNIT_EXPECT_EQ(test, kefa_rop_end(&s->rops, rop), have == 15);
		KUNIT_EXPECT_EQ(test, rop->state, have == 15 ? KEFA_ROP_FREE : KEFA_ROP_DATA_RX);
		rop->wrs = 0;
		rop->owes = 0;
		if (have < 15)
			KUNIT_EXPECT_TRUE(test, over(s, rop));
	}
	leave(s);
}

static void rop_size(struct kunit *test)
{
	KUNIT_EXPECT_LE(test, sizeof(struct kefa_rop), 192);
	/* A posted receive keeps all members but its position in the match. */
	KUNIT_EXPECT_GE(test, offsetof(struct kefa_rop, recv),
			offsetof(struct kefa_rop, buf) + sizeof(struct kefa_rbuf));
	KUNIT_EXPECT_NE(test, kefa_rop_key(1, 0), kefa_rop_key(0, 1));
}

static struct kunit_case rop_cases[] = {
	KUNIT_CASE(rop_states),
	KUNIT_CASE(rop_until_none_is_free),
	KUNIT_CASE(rop_ids),
	KUNIT_CASE(rop_ids_wrap),
	KUNIT_CASE(rop_is_over),
	KUNIT_CASE(rop_size),
	{}
};

static struct kunit_suite rop_suite = {
	.name		= "kefa_rop",
	.test_cases	= rop_cases,
};

kunit_test_suite(rop_suite);
