// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: an honest peer beside a hostile one that takes as much as it can of something that
 * all peers of an endpoint use. In a number of rounds the honest one must complete at least a
 * quarter of the messages that it completes alone.
 */
#include "efa_rdm_villain.h"

/* Number of rounds; of messages that are outstanding; of packets each way in a round. */
#define ROUNDS	(rdm_long ? 40 : 20)
#define WINDOW	8
#define STEPS	24

/* Milliseconds between receives that are posted although a budget is used up. */
#define PACE	1

#define TAG	1
#define OTHER	77

/* Messages of the honest peer. */
enum way {
	FORTH,	/* from the first endpoint to the second */
	MULTI,	/* the same, into multi-receive buffers */
	BACK,	/* from the second endpoint to the first */
};

struct play;

/**
 * struct row - something that peers share
 * @name: what it is
 * @way: messages of the honest peer
 * @len: length of these messages
 * @dc: they are sent with delivery complete
 * @known: the hostile peer is in the address vector
 * @act: the hostile peer's part of a round
 * @takes: status of what is sent to the hostile peer; -1 if it never completes
 * @paced: a budget is used up, and a receive is posted from time to time. A packet arrives each
 *	time, however fast the machine is.
 */
struct row {
	const char	*name;
	enum way	way;
	size_t		len;
	bool		dc;
	bool		known;
	void		(*act)(struct play *p, const struct villain *v);
	int		takes;
	bool		paced;
};

/* A number of rounds. */
struct play {
	struct kunit		*test;
	struct rdm_pair		*pair;
	const struct row	*row;
	fi_addr_t		villain;
	u32			sends;
	u32			recvs;
	u32			n;
	u32			done;
	u32			deaths;
	u32			stalls;
};

/* --- the hostile peer --- */

/* Have messages of which the first byte of two has been sent. */
static void begins(struct play *p, const struct villain *v, u8 type)
{
	const struct villain_pkt pkt = {
		.type = type, .raw = !p->n, .msg_id = p->n, .tag = TAG, .total = 2, .len = 1,
	};

	p->n += villain_send(p->pair, v, &pkt);
}

static void begins_tagged(struct play *p, const struct villain *v)
{
	begins(p, v, KEFA_MEDIUM_TAGRTM_PKT);
}

static void begins_untagged(struct play *p, const struct villain *v)
{
	begins(p, v, KEFA_MEDIUM_MSGRTM_PKT);
}

/* Have long messages, whose rest it never sends. */
static void begins_long(struct play *p, const struct villain *v)
{
	const struct villain_pkt pkt = {
		.type = KEFA_LONGCTS_TAGRTM_PKT, .raw = !p->n, .msg_id = p->n, .id = p->n,
		.tag = TAG, .total = SZ_1M, .len = 1,
	};

	p->n += villain_send(p->pair, v, &pkt);
}

/* Send messages for which there is no receive. */
static void floods(struct play *p, const struct villain *v)
{
	const struct villain_pkt pkt = {
		.type = KEFA_EAGER_TAGRTM_PKT, .raw = !p->n, .msg_id = p->n, .tag = OTHER,
		.len = 4000,
	};

	p->n += villain_send(p->pair, v, &pkt);
}

/* Never send the second message, for which all later ones wait. */
static void leaves_out(struct play *p, const struct villain *v)
{
	const struct villain_pkt pkt = {
		.type = KEFA_EAGER_TAGRTM_PKT, .raw = !p->n, .msg_id = p->n ? p->n + 1 : 0,
		.tag = OTHER, .len = 4000,
	};

	p->n += villain_send(p->pair, v, &pkt);
}

/* Be another peer each time. */
static void appears(struct play *p, const struct villain *v)
{
	const struct villain_pkt pkt = {
		.type = KEFA_EAGER_TAGRTM_PKT, .raw = true, .tag = OTHER, .len = 8,
	};
	struct villain other = villain(p->n % 2000);

	other.slid += p->n % 50;
	other.gid += p->n % 50;
	p->n += villain_send(p->pair, &other, &pkt);
}

/* Wait for RECEIPTs without taking them. */
static void wants_receipts(struct play *p, const struct villain *v)
{
	const struct villain_pkt pkt = {
		.type = KEFA_DC_EAGER_TAGRTM_PKT, .raw = !p->n, .msg_id = p->n, .id = p->n,
		.tag = OTHER, .len = 8,
	};

	/* Until it is dead, the ULP has a receive for each of its messages. */
	if (!rdm_of(&p->pair->end[1])->stats.deaths)
		fi_trecv(p->pair->end[1].ep, p->pair->in, 8, NULL, FI_ADDR_UNSPEC, OTHER, 0,
			 NULL);
	p->n += villain_send(p->pair, v, &pkt);
}

/* Send answers that nobody waits for, and the request that only asks for a HANDSHAKE. */
static void chatters(struct play *p, const struct villain *v)
{
	static const u8 types[] = {
		KEFA_CTS_PKT, KEFA_RECEIPT_PKT, KEFA_EOR_PKT, KEFA_READ_NACK_PKT,
		KEFA_EAGER_RTW_PKT,
	};
	struct villain_pkt pkt = {
		.type = types[p->n % ARRAY_SIZE(types)], .id = p->n, .total = 8,
	};

	if (!p->n) {
		pkt.type = KEFA_EAGER_RTW_PKT;
		pkt.raw = true;
	}
	p->n += villain_send(p->pair, v, &pkt);
}

/* Be sent messages by the second endpoint, and never or not yet take them. */
static void listens(struct play *p, const struct villain *v)
{
	const struct villain_pkt pkt = {
		.type = p->n ? KEFA_HANDSHAKE_PKT : KEFA_EAGER_RTW_PKT, .raw = !p->n,
	};

	if (p->n < 2) {
		p->n += villain_says(p->pair, v, &pkt);
		return;
	}
	/* The ULP leaves some of its own sends to other peers. */
	if (p->n < 150)
		p->n += !fi_tsend(p->pair->end[1].ep, p->pair->out, 64, NULL, p->villain, OTHER,
				  NULL);
}

static const struct row rows[] = {
	{ "a peer's first parts of messages with receives", FORTH, 12000, false, true,
	  begins_tagged },
	{ "first parts of messages with receives", FORTH, 12000, false, false, begins_tagged },
	{ "long messages with receives", FORTH, 12000, false, false, begins_long },
	{ "first parts of messages in multi-receive buffers", MULTI, 64, false, false,
	  begins_untagged },
	{ "a peer's first parts in multi-receive buffers", MULTI, 64, false, true,
	  begins_untagged },
	{ "long messages beside multi-receive buffers", MULTI, 64, false, false, begins_long },
	{ "memory for unexpected messages", FORTH, 64, false, false, floods,
	  .paced = true },
	{ "memory for early messages", FORTH, 64, false, false, leaves_out,
	  .paced = true },
	{ "a peer's memory for early messages", FORTH, 64, false, true, leaves_out,
	  .paced = true },
	{ "strangers' peers, address handles and worker", FORTH, 64, false, false, appears },
	{ "a peer's memory for unexpected messages", BACK, 64, true, true, floods,
	  .paced = true },
	{ "RECEIPTs that are due", FORTH, 64, true, false, wants_receipts, KEFA_STATUS_RNR },
	{ "answers that nobody waits for", FORTH, 64, true, true, chatters },
	{ "send slots", BACK, 64, false, true, listens, -1 },
	{ "send slots that wait for a delay", BACK, 64, false, true, listens, KEFA_STATUS_RNR },
};

/* --- the honest peer --- */

static void post_recv(struct play *p)
{
	struct kvec iov = { p->pair->in, SZ_128K };
	struct fi_msg msg = { .addr = FI_ADDR_UNSPEC };
	struct fid_ep *ep = p->pair->end[p->row->way != BACK].ep;

	if (p->row->way != MULTI) {
		while (p->recvs < 2 * WINDOW &&
		       !fi_trecv(ep, p->pair->in, SZ_16K, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL))
			p->recvs++;
		return;
	}
	iov_iter_kvec(&msg.msg_iter, ITER_DEST, &iov, 1, iov.iov_len);
	while (p->recvs < 4 && !fi_recvmsg(ep, &msg, FI_MULTI_RECV))
		p->recvs++;
}

static void post_send(struct play *p)
{
	const int from = p->row->way == BACK;
	struct fid_ep *ep = p->pair->end[from].ep;
	struct kvec iov = { p->pair->out, p->row->len };
	const u64 flags = p->row->dc ? FI_DELIVERY_COMPLETE : 0;
	struct fi_msg_tagged tmsg = { .addr = p->pair->end[from].peer, .tag = TAG };
	struct fi_msg msg = { .addr = tmsg.addr };
	ssize_t ret;

	while (p->sends < WINDOW) {
		iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, iov.iov_len);
		tmsg.msg_iter = msg.msg_iter;
		/* The context tells its completions from those of messages to the hostile peer. */
		msg.context = p;
		tmsg.context = p;
		ret = p->row->way == MULTI ? fi_sendmsg(ep, &msg, flags) :
					     fi_tsendmsg(ep, &tmsg, flags);
		if (ret)
			return;
		p->sends++;
	}
}

/* Read all completions of an end. */
static void read_all(struct play *p, int at)
{
	const bool receives = at == (p->row->way != BACK);
	struct rdm_end *end = &p->pair->end[at];
	struct rdm_comp comp;

	while ((comp = rdm_read(end)).ret != -EAGAIN) {
		const u64 flags = comp.entry.flags | comp.error.flags;

		if (comp.entry.op_context == p || comp.error.op_context == p) {
			p->sends--;
			p->done += comp.ret == 1;
		} else if (receives && flags & FI_RECV && p->row->way == MULTI) {
			p->recvs -= !!(flags & FI_MULTI_RECV);
		} else if (receives && flags & FI_RECV &&
			   (comp.entry.tag | comp.error.tag) != OTHER) {
			p->recvs--;
		}
	}
}

static void one_round(struct play *p, const struct villain *v)
{
	u32 i;

	post_recv(p);
	post_send(p);
	for (i = 0; i < STEPS; i++) {
		if (v && i % 2 == 0)
			p->row->act(p, v);
		rdm_deliver(p->pair, 0);
		rdm_deliver(p->pair, 1);
		if (v && p->row->paced)
			usleep_range(PACE * 1000, PACE * 1100);
		if (i % 8 == 7)
			efake_settle();
	}
	if (v && p->row->takes >= 0)
		villain_take(p->pair, p->row->takes);
	efake_settle_all();
	read_all(p, 0);
	read_all(p, 1);
	usleep_range(100, 200);
}

/* Return: the number of messages that the honest peer completes. */
static struct play play(struct kunit *test, const struct row *row, bool hostile)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct play p = { .test = test, .pair = pair, .row = row };
	const struct villain v = villain(0);
	u32 i;

	/* Small limits, which the hostile peer reaches soon. */
	rdm->budget = SZ_256K;
	rdm->peers.implicit_max = 64;
	rdm->fair.pace = PACE;
	if (row->known)
		p.villain = villain_insert(test, pair);
	for (i = 0; i < ROUNDS; i++)
		one_round(&p, hostile ? &v : NULL);
	p.deaths = rdm->stats.deaths;
	p.stalls = rdm->stats.starved;
	villain_take(pair, 0);
	EFA_CLOSE(test, pair->end[0].ep);
	EFA_CLOSE(test, pair->end[1].ep);
	efake_remove(pair->fake);
	return p;
}

static void fair_rates(struct kunit *test)
{
	struct play alone, beside;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		/* Rows with the same messages follow each other. */
		if (!i || rows[i].way != rows[i - 1].way || rows[i].len != rows[i - 1].len ||
		    rows[i].dc != rows[i - 1].dc)
			alone = play(test, &rows[i], false);
		beside = play(test, &rows[i], true);
		kunit_info(test, "%s: %u alone, %u beside %u packets; %u deaths, %u starved\n",
			   rows[i].name, alone.done, beside.done, beside.n, beside.deaths,
			   beside.stalls);
		KUNIT_EXPECT_GT(test, alone.done, (u32)ROUNDS);
		KUNIT_EXPECT_GT(test, beside.n, 0U);
		KUNIT_EXPECT_GE_MSG(test, 4 * beside.done, alone.done, "%s", rows[i].name);
	}
}

/* A peer's message that waits for the share of its sender doesn't keep others from being tried. */
static void fair_due(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct play p = { .test = test, .pair = pair, .row = &(struct row) { .way = MULTI } };
	const struct villain_pkt one = { .type = KEFA_EAGER_MSGRTM_PKT, .raw = true, .len = 8 };
	const struct villain many = villain(0), other = villain(1);
	u32 i;

	villain_insert(test, pair);
	post_recv(&p);
	for (i = 0; i < 12; i++)
		KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[1].ep, pair->in, 8, NULL, FI_ADDR_UNSPEC,
					       TAG, 0, NULL), 0);
	/* With those of post_recv() there are 16, of which a peer may have three quarters. */
	for (i = 0; i <= 12; i++) {
		begins_tagged(&p, &many);
		efake_settle_all();
	}
	KUNIT_EXPECT_EQ(test, list_count_nodes(&rdm->due), (size_t)1);
	/* No operation is to spare. */
	spin_lock_bh(&rdm->ep.lock);
	rdm->ntargets += rdm->rops.size;
	spin_unlock_bh(&rdm->ep.lock);
	KUNIT_EXPECT_TRUE(test, villain_send(pair, &other, &one));
	efake_settle_all();
	rdm_expect_nothing(test, &pair->end[1]);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&rdm->due), (size_t)2);
	spin_lock_bh(&rdm->ep.lock);
	rdm->ntargets -= rdm->rops.size;
	for (i = 0; i < 2; i++)
		kefa_rdm_pump(rdm);
	spin_unlock_bh(&rdm->ep.lock);
	KUNIT_EXPECT_EQ(test, rdm_read(&pair->end[1]).ret, 1);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&rdm->due), (size_t)1);
	villain_take(pair, 0);
	EFA_CLOSE(test, pair->end[0].ep);
	EFA_CLOSE(test, pair->end[1].ep);
	efake_remove(pair->fake);
}

static struct kunit_case fair_cases[] = {
	KUNIT_CASE(fair_due),
	KUNIT_CASE_SLOW(fair_rates),
	{}
};

static struct kunit_suite fair_suite = {
	.name		= "kefa_rdm_fair",
	.test_cases	= fair_cases,
};

kunit_test_suite(fair_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, an honest peer beside a hostile one");
MODULE_LICENSE("Dual BSD/GPL");
