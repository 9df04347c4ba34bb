// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fabric efa: how much a flood of one peer takes of another one's rate. */
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include "efa.h"

#define ETR_LEN		4000
/*
 * Outstanding sends of each peer, and receives of each tag. The device serves packets in the order
 * of their arrival: a peer with more outstanding sends gets more of it, whatever the provider does.
 */
#define ETR_AT_ONCE	16
#define ETR_SLICE	(HZ / 10)
#define ETR_SLICES	10
#define ETR_UNWANTED	(SZ_2M / ETR_LEN) /* messages, twice rx_budget */
#define ETR_CALM_WITHIN	(10 * HZ)

enum {
	ETR_HONEST = 1,
	ETR_FLOOD,
};

/**
 * struct etr_sender - a peer of the victim
 * @end: endpoint of the peer
 * @tag: tag of the peer's messages, and context of the victim's receives for them
 * @posted: messages that the peer has posted
 * @done: messages that have completed at the peer
 * @arrived: messages that the victim has received
 */
struct etr_sender {
	struct et_end	*end;
	u64		tag;
	unsigned long	posted;
	unsigned long	done;
	unsigned long	arrived;
};

/**
 * struct etr - an honest peer, and one that floods
 * @t: the run; its ends are the honest peer and the victim
 * @c: the end that floods
 * @honest: the honest peer
 * @flood: the peer that floods
 */
struct etr {
	struct et		*t;
	struct et_end		c;
	struct etr_sender	honest;
	struct etr_sender	flood;
};

static void etr_listen(struct et *t, u64 tag)
{
	ET_EXPECT_EQ(t, fi_trecv(t->b.ep, t->b.buf + tag * SZ_4K, SZ_4K, NULL, FI_ADDR_UNSPEC, tag,
				 0, (void *)(unsigned long)tag), 0);
}

static void etr_post(struct et *t, struct etr_sender *s)
{
	ssize_t ret;

	while (s->posted - s->done < ETR_AT_ONCE) {
		ret = fi_tsend(s->end->ep, s->end->buf, ETR_LEN, NULL, s->end->peer, s->tag, NULL);
		if (ret == -EAGAIN || !ET_EXPECT_EQ(t, ret, 0))
			return;
		s->posted++;
	}
}

static void etr_complete(struct et *t, struct etr_sender *s)
{
	struct fi_cq_data_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(s->end->cq, &entry, 1)) == 1)
		s->done++;
	ET_EXPECT_EQ(t, ret, -EAGAIN);
}

static void etr_receive(struct etr *r)
{
	struct fi_cq_data_entry entry;
	struct et *t = r->t;
	unsigned long tag;
	ssize_t ret;

	while ((ret = fi_cq_read(t->b.cq, &entry, 1)) == 1) {
		tag = (unsigned long)entry.op_context;
		if (tag == ETR_HONEST)
			r->honest.arrived++;
		else
			r->flood.arrived++;
		etr_listen(t, tag);
	}
	ET_EXPECT_EQ(t, ret, -EAGAIN);
}

static void etr_step(struct etr *r, bool flood)
{
	if (flood)
		etr_post(r->t, &r->flood);
	etr_post(r->t, &r->honest);
	etr_complete(r->t, &r->flood);
	etr_complete(r->t, &r->honest);
	etr_receive(r);
	cond_resched();
}

/* Return: how many of the honest peer's messages arrive in a slice of time. */
static unsigned long etr_slice(struct etr *r, bool flood)
{
	const unsigned long before = r->honest.arrived, stop = jiffies + ETR_SLICE;

	while (!r->t->failed && time_before(jiffies, stop))
		etr_step(r, flood);
	return r->honest.arrived - before;
}

/* Go on without a flood until the device has nothing left of it. */
static void etr_calm(struct etr *r)
{
	const unsigned long stop = jiffies + ETR_CALM_WITHIN;

	while (!r->t->failed && r->flood.done < r->flood.posted) {
		if (!ET_EXPECT(r->t, time_before(jiffies, stop)))
			return;
		etr_step(r, false);
	}
}

/*
 * Slices with and without a flood take turns, so that a busy machine slows both down.
 * @least: messages of the flood, at least
 */
static void etr_compare(struct etr *r, unsigned long least)
{
	unsigned long alone = 0, beside = 0;
	int i;

	for (i = 0; !r->t->failed && (i < ETR_SLICES || r->flood.posted < least); i++) {
		alone += etr_slice(r, false);
		beside += etr_slice(r, true);
		etr_calm(r);
	}
	et_printf("# %lu messages in %d slices, %lu beside a flood of %lu, of which %lu arrived\n",
		  alone, i, beside, r->flood.posted, r->flood.arrived);
	ET_EXPECT(r->t, alone >= ETR_SLICES);
	/* Both keep as many messages in flight, so they send about as many. */
	ET_EXPECT(r->t, 2 * r->flood.posted >= beside);
	ET_EXPECT(r->t, 4 * beside >= alone);
}

/*
 * @known: the victim has the flooding peer in its address vector, and receives its messages.
 * Else no receive matches them, and the victim cuts that peer off when its budget is used up.
 */
static void etr_run(struct et *t, bool known)
{
	struct etr *r = kzalloc(sizeof(*r), GFP_KERNEL);
	const fi_addr_t honest = t->b.peer;
	int i;

	if (!ET_EXPECT(t, r))
		return;
	r->t = t;
	r->honest = (struct etr_sender) { .end = &t->a, .tag = ETR_HONEST };
	r->flood = (struct etr_sender) { .end = &r->c, .tag = ETR_FLOOD };
	if (ET_EXPECT_EQ(t, et_open(&r->c, t->a.info->domain_attr->name, t->test), 0) &&
	    ET_EXPECT_EQ(t, et_connect(&r->c, &t->b), 0) &&
	    (!known || ET_EXPECT_EQ(t, et_connect(&t->b, &r->c), 0))) {
		for (i = 0; i < ETR_AT_ONCE; i++) {
			etr_listen(t, ETR_HONEST);
			if (known)
				etr_listen(t, ETR_FLOOD);
		}
		etr_compare(r, known ? 0 : ETR_UNWANTED);
		ET_EXPECT(t, known ? r->flood.arrived >= r->honest.arrived / 16 :
				     !r->flood.arrived);
	}
	t->b.peer = honest;
	ET_EXPECT_EQ(t, et_close(&r->c), 0);
	kfree(r);
}

static void etr_wanted(struct et *t)
{
	etr_run(t, true);
}

static void etr_unwanted(struct et *t)
{
	etr_run(t, false);
}

const struct et_case et_rdm_cases[] = {
	{ "rdm_flood", etr_wanted, .rdm = true, .alone = true },
	{ "rdm_flood_of_a_stranger", etr_unwanted, .rdm = true, .alone = true },
	{ }
};
