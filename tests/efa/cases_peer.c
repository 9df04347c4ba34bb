// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Hostile and broken peers: one that floods, one that has fallen silent. */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "efa.h"

#define ET_SLOT		64
#define ET_RECVS	64	/* receives that the victim keeps posted */
#define ET_HONEST	100
#define ET_FLOOD	300
#define ET_AT_ONCE	32	/* outstanding operations of each side */
#define ET_ROUNDS	2000000
#define ET_DOOMED	(ET_AT_ONCE + 2)
#define ET_OWN		((void *)8)

/**
 * struct et_siege - a hostile end that floods the victim, and an honest end that sends
 * @t: the run: a is the honest end, b the victim
 * @c: the hostile end
 * @mr: region of the victim that the hostile end may write to
 * @sent: number of messages that the honest end sent
 * @completed: number of the honest end's messages that completed
 * @arrived: number of the honest end's messages that arrived
 * @seen: bitmap of the honest end's messages that arrived
 * @flooded: number of operations posted by the hostile end
 * @fended: number of the hostile end's operations that completed
 * @failed: number of the hostile end's operations that failed
 * @junk: number of receives that the hostile end consumed
 * @refused: number of receives that the hostile end consumed and that failed
 */
struct et_siege {
	struct et	*t;
	struct et_end	c;
	struct fid_mr	*mr;
	unsigned int	sent;
	unsigned int	completed;
	unsigned int	arrived;
	DECLARE_BITMAP(seen, ET_HONEST);
	unsigned int	flooded;
	unsigned int	fended;
	unsigned int	failed;
	unsigned int	junk;
	unsigned int	refused;
};

static u8 *et_at(u8 *buf, unsigned long n)
{
	return buf + n % 512 * ET_SLOT;
}

static void et_listen(struct et *t, unsigned long slot)
{
	memset(et_at(t->b.small, slot), 0, ET_SLOT);
	ET_EXPECT_EQ(t, fi_recv(t->b.ep, et_at(t->b.small, slot), ET_SLOT, NULL,
				FI_ADDR_UNSPEC, (void *)slot), 0);
}

/* A message of the honest end has its number twice: as CQ data and in its contents. */
static void et_honest(struct et_siege *s)
{
	struct et *t = s->t;
	struct fi_cq_data_entry entry;
	ssize_t ret;

	while (s->sent < ET_HONEST && s->sent - s->completed < ET_AT_ONCE) {
		et_fill(et_at(t->a.small, s->sent), ET_SLOT, s->sent);
		ret = fi_senddata(t->a.ep, et_at(t->a.small, s->sent), ET_SLOT,
				  NULL, s->sent + 1, t->a.peer, NULL);
		if (ret == -EAGAIN)
			break;
		ET_EXPECT_EQ(t, ret, 0);
		s->sent++;
	}
	while ((ret = fi_cq_read(t->a.cq, &entry, 1)) == 1)
		s->completed++;
	ET_EXPECT_EQ(t, ret, -EAGAIN);
}

/* Post too long messages, RMA with wrong keys, unwanted messages and allowed writes. */
static ssize_t et_throw(struct et_siege *s)
{
	u64 key = fi_mr_key(s->mr), addr = s->mr->base_addr;
	struct et_end *c = &s->c;

	switch (s->flooded % 5) {
	case 0:
		return fi_send(c->ep, c->small, SZ_1K, NULL, c->peer, NULL);
	case 1:
		return fi_write(c->ep, c->small, 512, NULL, c->peer, addr,
				key ^ 0x5a5a, NULL);
	case 2:
		return fi_write(c->ep, c->small, 512, NULL, c->peer,
				addr + SZ_1M, key, NULL);
	case 3:
		return fi_send(c->ep, c->small, ET_SLOT, NULL, c->peer, NULL);
	default:
		return fi_writedata(c->ep, c->small, 512, NULL, 0, c->peer,
				    addr, key, NULL);
	}
}

static void et_besiege(struct et_siege *s)
{
	struct fi_cq_err_entry error = { };
	struct fi_cq_data_entry entry;
	ssize_t ret;

	while (s->flooded < ET_FLOOD && s->flooded - s->fended < ET_AT_ONCE) {
		ret = et_throw(s);
		if (ret == -EAGAIN)
			break;
		ET_EXPECT_EQ(s->t, ret, 0);
		s->flooded++;
	}
	while ((ret = fi_cq_read(s->c.cq, &entry, 1)) != -EAGAIN) {
		s->fended++;
		if (ret == 1)
			continue;
		ET_EXPECT_EQ(s->t, fi_cq_readerr(s->c.cq, &error, 0), 1);
		ET_EXPECT(s->t, error.err == EMSGSIZE || error.err == EACCES);
		s->failed++;
	}
}

static void et_check_honest(struct et_siege *s, unsigned long slot, u64 data)
{
	struct et *t = s->t;

	if (!ET_EXPECT(t, data <= ET_HONEST))
		return;
	ET_EXPECT(t, !__test_and_set_bit(data - 1, s->seen));
	ET_EXPECT(t, et_filled(et_at(t->b.small, slot), ET_SLOT, data - 1));
	s->arrived++;
}

static void et_endure(struct et_siege *s)
{
	struct fi_cq_err_entry error = { };
	struct fi_cq_data_entry entry;
	struct et *t = s->t;
	ssize_t ret;

	while ((ret = fi_cq_read(t->b.cq, &entry, 1)) != -EAGAIN) {
		if (ret == 1) {
			if (entry.flags & FI_REMOTE_CQ_DATA && entry.data)
				et_check_honest(s, (long)entry.op_context,
						entry.data);
			else
				s->junk++;
			et_listen(t, (long)entry.op_context);
			continue;
		}
		if (!ET_EXPECT_EQ(t, fi_cq_readerr(t->b.cq, &error, 0), 1))
			return;
		s->junk++;
		s->refused++;
		et_listen(t, (long)error.op_context);
	}
}

static bool et_siege_begin(struct et_siege *s)
{
	struct et *t = s->t;
	const char *device = t->a.info->domain_attr->name;

	if (!ET_EXPECT_EQ(t, et_open(&s->c, device, t->test), 0) ||
	    !ET_EXPECT_EQ(t, et_connect(&s->c, &t->b), 0) ||
	    !ET_EXPECT_EQ(t, et_connect(&t->b, &s->c), 0))
		return false;
	return ET_EXPECT_EQ(t, fi_mr_reg(t->b.domain, t->b.buf, SZ_64K,
					 FI_REMOTE_WRITE, 0, 0, 0, &s->mr,
					 NULL), 0);
}

static void et_flood(struct et *t)
{
	struct et_siege *s = kzalloc(sizeof(*s), GFP_KERNEL);
	unsigned long i;

	if (!ET_EXPECT(t, s))
		return;
	s->t = t;
	if (et_siege_begin(s)) {
		for (i = 0; i < ET_RECVS; i++)
			et_listen(t, i);
		for (i = 0; i < ET_ROUNDS && !t->failed &&
		     (s->arrived < ET_HONEST || s->completed < ET_HONEST ||
		      s->fended < ET_FLOOD || s->junk < ET_FLOOD / 5 * 3);
		     i++) {
			et_besiege(s);
			et_honest(s);
			et_endure(s);
			fsleep(100);
		}
		et_printf("# %u of %u failed, %u receives used up, %u refused\n",
			  s->failed, s->fended, s->junk, s->refused);
		ET_EXPECT_EQ(t, s->arrived, ET_HONEST);
		ET_EXPECT_EQ(t, s->completed, ET_HONEST);
		ET_EXPECT_EQ(t, s->fended, ET_FLOOD);
		/* Three of five kinds fail, and one of these fails a receive as well. */
		ET_EXPECT_EQ(t, s->failed, ET_FLOOD / 5 * 3);
		ET_EXPECT_EQ(t, s->refused, ET_FLOOD / 5);
		ET_EXPECT_EQ(t, s->junk, ET_FLOOD / 5 * 3);
	}
	if (s->mr)
		ET_EXPECT_EQ(t, fi_close(&s->mr->fid), 0);
	ET_EXPECT_EQ(t, et_close(&s->c), 0);
	kfree(s);
}

/* Send a message from an end to itself. */
static void et_to_itself(struct et *t, fi_addr_t self)
{
	ET_EXPECT_EQ(t, fi_recv(t->a.ep, t->a.small + SZ_32K, ET_SLOT, NULL,
				FI_ADDR_UNSPEC, ET_OWN), 0);
	ET_EXPECT_EQ(t, fi_send(t->a.ep, t->a.small, ET_SLOT, NULL, self,
				ET_OWN), 0);
}

/* Return: true for a message to itself, false for one to the peer. */
static bool et_silent_next(struct et *t)
{
	struct fi_cq_err_entry error = { };
	struct fi_cq_data_entry entry;
	ssize_t ret = fi_cq_sread(t->a.cq, &entry, 1, NULL, ET_TIMEOUT);

	if (ret == 1)
		return ET_EXPECT(t, entry.op_context == ET_OWN);
	if (ET_EXPECT_EQ(t, ret, -FI_EAVAIL)) {
		ET_EXPECT_EQ(t, fi_cq_readerr(t->a.cq, &error, 0), 1);
		ET_EXPECT(t, error.op_context != ET_OWN);
		ET_EXPECT_EQ(t, error.err, ETIMEDOUT);
		ET_EXPECT_EQ(t, error.prov_errno, 13);
	}
	return false;
}

/* Send messages to itself until all messages to the peer have failed. */
static void et_outlast(struct et *t, fi_addr_t self)
{
	unsigned int sent = 0, own = 0, failed = 0, early = 0;
	unsigned long end = jiffies + 60 * HZ;

	while (!t->failed && time_before(jiffies, end)) {
		if (own == 2 * sent) {
			if (failed == ET_DOOMED && sent >= ET_AT_ONCE)
				break;
			et_to_itself(t, self);
			sent++;
		}
		if (et_silent_next(t))
			own++;
		else if (!failed++)
			early = own;
	}
	et_printf("# %u to itself, %u before the first of %u failed\n", own / 2,
		  early / 2, failed);
	ET_EXPECT_EQ(t, failed, ET_DOOMED);
	ET_EXPECT_EQ(t, own, 2 * sent);
	/* Messages that wait for the peer don't block others. */
	ET_EXPECT(t, early >= 2);
}

/* The peer's device doesn't answer: operations to it fail, and no others. */
static void et_silent(struct et *t)
{
	fi_addr_t self;
	int i;

	for (i = 0; i < ET_AT_ONCE; i++)
		ET_EXPECT_EQ(t, fi_send(t->a.ep, et_at(t->a.small, i), ET_SLOT,
					NULL, t->a.peer, (void *)9), 0);
	ET_EXPECT_EQ(t, fi_write(t->a.ep, t->a.small, SZ_4K, NULL, t->a.peer, 0,
				 1, (void *)9), 0);
	ET_EXPECT_EQ(t, fi_inject(t->a.ep, t->a.small, 16, t->a.peer), 0);

	self = t->a.peer;
	ET_EXPECT_EQ(t, et_connect(&t->a, &t->a), 0);
	swap(self, t->a.peer);
	et_outlast(t, self);
	ET_EXPECT(t, et_quiet(&t->a));
}

const struct et_case et_peer_cases[] = {
	{ "peer_flood", et_flood },
	{ "peer_silent", et_silent, .alone = true },
	{ }
};
