// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa against a model: two endpoints do random operations over a network with random
 * faults. The nth receive of a tag must get the nth message of that tag, complete, and each
 * operation must complete once.
 */
#include <linux/vmalloc.h>
#include "efa_rdm_scene.h"

#define TAGS		3
#define REGIONS	3	/* that messages can be read from, of each endpoint */
#define ROUNDS		(rdm_long ? 200U : 80U)		/* at least */
#define LEAST		(rdm_long ? 201U : 81U)		/* messages of each endpoint */
#define MANY		(LEAST / 10)			/* packets of the usual types */
#define MOST		1200
#define LONGEST		20000

struct rdm_message {
	size_t	len;
	u8	seed;
	u8	tag;
	bool	sent;
	bool	received;
};

/* Messages and receives of one direction. */
struct rdm_way {
	struct rdm_message	msg[MOST];
	struct rdm_message	recv[MOST];
	u8			*out[MOST];
	u8			*in[MOST];
	unsigned int		nmsg;
	unsigned int		nrecv;
	unsigned int		ndone;
	unsigned int		nsent;
};

struct rdm_model {
	struct rdm_pair		*pair;
	struct rdm_way		way[2];
	struct list_head	held[2];
};

/* Return: the index of the nth message with a tag, or -1. */
static int nth(const struct rdm_message *of, unsigned int count, u8 tag, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (of[i].tag == tag && !n--)
			return i;
	return -1;
}

static unsigned int ordinal(const struct rdm_message *of, unsigned int index)
{
	unsigned int i, n = 0;

	for (i = 0; i < index; i++)
		n += of[i].tag == of[index].tag;
	return n;
}

static size_t some_len(struct rnd_state *rnd)
{
	static const size_t most[] = { 40, 600, 9000, LONGEST };

	return prandom_u32_state(rnd) % most[prandom_u32_state(rnd) % ARRAY_SIZE(most)];
}

/* Send by a plain call, or by fi_tsendmsg() with or without delivery complete. */
static ssize_t some_send(struct rdm_end *end, struct rnd_state *rnd, u8 *out,
			 const struct rdm_message *msg, void *ctx)
{
	struct kvec iov = { out, msg->len };
	struct fi_msg_tagged call = { .addr = end->peer, .context = ctx, .tag = msg->tag };

	iov_iter_kvec(&call.msg_iter, ITER_SOURCE, &iov, 1, msg->len);
	switch (prandom_u32_state(rnd) % 4) {
	case 0:
		return fi_tsendmsg(end->ep, &call, FI_DELIVERY_COMPLETE);
	case 1:
		return fi_tsendmsg(end->ep, &call, 0);
	default:
		return fi_tsend(end->ep, out, msg->len, NULL, end->peer, msg->tag, ctx);
	}
}

static void post_send(struct kunit *test, struct rdm_model *m, int from)
{
	struct rdm_end *end = &m->pair->end[from];
	struct rnd_state *rnd = &m->pair->net.rnd;
	struct rdm_way *way = &m->way[from];
	unsigned int i = way->nmsg;
	struct rdm_message *msg = &way->msg[i];
	ssize_t ret;

	if (i == MOST)
		return;
	*msg = (struct rdm_message) {
		.len	= some_len(rnd),
		.seed	= prandom_u32_state(rnd),
		.tag	= prandom_u32_state(rnd) % TAGS,
	};
	/* The device can read kmalloc() memory directly; vmalloc() memory is in pieces. */
	way->out[i] = prandom_u32_state(rnd) & 1 ? vmalloc(LONGEST) : kmalloc(LONGEST, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, way->out[i]);
	efa_fill(way->out[i], msg->len, msg->seed);
	ret = some_send(end, rnd, way->out[i], msg, (void *)(long)(i + 1));
	if (ret) {
		KUNIT_EXPECT_EQ(test, ret, -EAGAIN);
		kvfree(way->out[i]);
		way->out[i] = NULL;
		return;
	}
	way->nmsg++;
}

static void post_recv(struct kunit *test, struct rdm_model *m, int from, u8 tag)
{
	struct rdm_way *way = &m->way[from];
	unsigned int i = way->nrecv;
	ssize_t ret;

	if (i == MOST)
		return;
	way->in[i] = vmalloc(LONGEST);
	KUNIT_ASSERT_NOT_NULL(test, way->in[i]);
	way->recv[i] = (struct rdm_message) { .tag = tag };
	ret = fi_trecv(m->pair->end[!from].ep, way->in[i], LONGEST, NULL, FI_ADDR_UNSPEC, tag, 0,
		       (void *)(long)-(i + 1L));
	if (!ret) {
		way->nrecv++;
		return;
	}
	KUNIT_EXPECT_EQ(test, ret, -EAGAIN);
	vfree(way->in[i]);
	way->in[i] = NULL;
}

static void check_recv(struct kunit *test, struct rdm_way *way, unsigned int i, size_t len)
{
	int at = nth(way->msg, way->nmsg, way->recv[i].tag, ordinal(way->recv, i));

	KUNIT_ASSERT_GE(test, at, 0);
	KUNIT_EXPECT_FALSE(test, way->recv[i].received);
	KUNIT_EXPECT_EQ(test, way->msg[at].len, len);
	KUNIT_EXPECT_TRUE(test, efa_filled(way->in[i], len, way->msg[at].seed));
	way->recv[i].received = true;
	way->ndone++;
	vfree(way->in[i]);
	way->in[i] = NULL;
}

static void check_all(struct kunit *test, struct rdm_model *m, int at)
{
	struct rdm_comp comp;
	long ctx;

	for (;;) {
		comp = rdm_read(&m->pair->end[at]);
		if (comp.ret == -EAGAIN)
			return;
		KUNIT_ASSERT_EQ(test, comp.ret, 1);
		ctx = (long)comp.entry.op_context;
		if (ctx < 0) {
			check_recv(test, &m->way[!at], -ctx - 1, comp.entry.len);
			continue;
		}
		KUNIT_EXPECT_FALSE(test, m->way[at].msg[ctx - 1].sent);
		m->way[at].msg[ctx - 1].sent = true;
		m->way[at].nsent++;
		kvfree(m->way[at].out[ctx - 1]);
		m->way[at].out[ctx - 1] = NULL;
	}
}

static void model_free(void *data)
{
	struct rdm_model *m = data;
	int i, from;

	for (from = 0; from < 2; from++)
		for (i = 0; i < MOST; i++) {
			vfree(m->way[from].in[i]);
			kvfree(m->way[from].out[i]);
		}
	vfree(m);
}

static void some_round(struct kunit *test, struct rdm_model *m)
{
	struct rnd_state *rnd = &m->pair->net.rnd;
	unsigned int n;
	int from;

	for (from = 0; from < 2; from++) {
		for (n = prandom_u32_state(rnd) % 4; n; n--)
			post_send(test, m, from);
		for (n = prandom_u32_state(rnd) % 4; n; n--)
			post_recv(test, m, from, prandom_u32_state(rnd) % TAGS);
	}
	for (n = prandom_u32_state(rnd) % 24; n && rdm_step(m->pair); n--)
		;
	efake_settle();
	check_all(test, m, 0);
	check_all(test, m, 1);
}

static bool few_messages(const struct rdm_model *m)
{
	return m->way[0].nmsg < LEAST || m->way[1].nmsg < LEAST;
}

/* Post a receive for each message without one, and run until all has completed. */
static void finish(struct kunit *test, struct rdm_model *m)
{
	unsigned int sent, recvs, i, tries;
	struct rdm_way *way;
	u8 tag;

	m->pair->net.rnr = 0;
	for (i = 0; i < 2; i++) {
		way = &m->way[i];
		for (tag = 0; tag < TAGS; tag++) {
			sent = 0;
			recvs = 0;
			while (nth(way->msg, way->nmsg, tag, sent) >= 0)
				sent++;
			while (nth(way->recv, way->nrecv, tag, recvs) >= 0)
				recvs++;
			for (; recvs < sent; recvs++)
				post_recv(test, m, i, tag);
		}
	}
	for (tries = 0; tries < 200; tries++) {
		rdm_run(m->pair);
		check_all(test, m, 0);
		check_all(test, m, 1);
		if (m->way[0].nsent == m->way[0].nmsg && m->way[1].nsent == m->way[1].nmsg)
			break;
		msleep(20);
	}
}

static u32 regions(const struct kefa_rdm *rdm)
{
	return list_count_nodes((struct list_head *)&rdm->sources_free);
}

/* Leave an endpoint only some of its regions, so that messages often find none. */
static void hold_regions(struct kefa_rdm *rdm, struct list_head *held)
{
	u32 n;

	spin_lock_bh(&rdm->ep.lock);
	for (n = rdm->nsources; n > REGIONS; n--)
		list_move(rdm->sources_free.next, held);
	spin_unlock_bh(&rdm->ep.lock);
}

static void release_regions(struct kefa_rdm *rdm, struct list_head *held)
{
	spin_lock_bh(&rdm->ep.lock);
	list_splice_init(held, &rdm->sources_free);
	spin_unlock_bh(&rdm->ep.lock);
}

/* Return: a packet type of which there were too few, or -1. */
static int lacks(const struct rdm_model *m, u32 medium, u32 read)
{
	const struct {
		u8		type;
		unsigned int	least;
	} plain[] = {
		{ KEFA_MEDIUM_TAGRTM_PKT, MANY },
		{ KEFA_DC_MEDIUM_TAGRTM_PKT, MANY / 4 },
		{ KEFA_RECEIPT_PKT, MANY },
	}, granted[] = {
		{ KEFA_LONGCTS_TAGRTM_PKT, MANY },
		{ KEFA_DC_LONGCTS_TAGRTM_PKT, MANY / 4 },
		{ KEFA_RECEIPT_PKT, MANY },
	}, reads[] = {
		{ KEFA_LONGREAD_TAGRTM_PKT, MANY },
		{ KEFA_EOR_PKT, MANY },
		{ KEFA_RECEIPT_PKT, MANY },
		/* There are fewer regions than messages, so some go by long-CTS. */
		{ KEFA_LONGCTS_TAGRTM_PKT, 1 },
		{ KEFA_READ_NACK_PKT, 1 },
	}, *row = read ? reads : medium ? granted : plain;
	size_t rows = read ? ARRAY_SIZE(reads) : ARRAY_SIZE(plain);

	for (; rows; rows--, row++)
		if (m->pair->net.seen[row->type] < row->least)
			return row->type;
	return -1;
}

/*
 * Messages longer than @medium are granted, one packet at a time; those longer than @read are
 * read, if a region is free and the device doesn't refuse the read.
 */
static void run_model_long(struct kunit *test, const struct rdm_opts *opts, u32 seed,
			   unsigned int reorder, unsigned int rnr, unsigned int late,
			   u32 medium, u32 read)
{
	struct rdm_model *m = vzalloc(sizeof(*m));
	struct kefa_rdm *rdm;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, model_free, m), 0);
	m->pair = rdm_pair_new(test, opts);
	prandom_seed_state(&m->pair->net.rnd, seed);
	m->pair->net.reorder = reorder;
	m->pair->net.rnr = rnr;
	m->pair->net.late = late;
	for (i = 0; i < 2 && medium; i++) {
		rdm_of(&m->pair->end[i])->lim.max_medium = medium;
		rdm_of(&m->pair->end[i])->lim.credits = 1;
	}
	for (i = 0; i < 2; i++) {
		INIT_LIST_HEAD(&m->held[i]);
		if (!read)
			continue;
		rdm_of(&m->pair->end[i])->lim.min_read_message = read;
		hold_regions(rdm_of(&m->pair->end[i]), &m->held[i]);
	}
	m->pair->net.bad_read = read ? 50 : 0;
	/* How many sends find a free slot, and how many reads a region, depends on the worker. */
	for (i = 0; i < ROUNDS ||
	     (i < 10 * ROUNDS && (few_messages(m) || lacks(m, medium, read) >= 0)); i++)
		some_round(test, m);
	finish(test, m);
	for (i = 0; i < 2; i++) {
		rdm = rdm_of(&m->pair->end[i]);
		KUNIT_EXPECT_GE(test, m->way[i].nmsg, LEAST);
		KUNIT_EXPECT_EQ(test, m->way[i].nsent, m->way[i].nmsg);
		KUNIT_EXPECT_EQ(test, rdm->kept, 0ULL);
		KUNIT_EXPECT_EQ(test, rdm->msgs.entries, 0U);
		KUNIT_EXPECT_EQ(test, rdm->ts_nfree, rdm->nts);
		KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0ULL);
		KUNIT_EXPECT_EQ(test, rdm->rops.used, m->way[!i].nrecv - m->way[!i].ndone);
		release_regions(rdm, &m->held[i]);
		KUNIT_EXPECT_EQ(test, regions(rdm), rdm->nsources);
	}
	KUNIT_EXPECT_EQ(test, lacks(m, medium, read), -1);
	if (medium && !read) {
		KUNIT_EXPECT_GT(test, m->pair->net.seen[KEFA_CTS_PKT], MANY);
		KUNIT_EXPECT_GE(test, m->pair->net.seen[KEFA_CTSDATA_PKT],
				m->pair->net.seen[KEFA_CTS_PKT]);
	}
}

static void run_model(struct kunit *test, const struct rdm_opts *opts, u32 seed,
		      unsigned int reorder, unsigned int rnr, unsigned int late)
{
	run_model_long(test, opts, seed, reorder, rnr, late, 0, 0);
}

static void pair_calm(struct kunit *test)
{
	run_model(test, NULL, 1, 0, 0, 0);
}

static void pair_reordered(struct kunit *test)
{
	run_model(test, NULL, 2, 500, 0, 300);
}

static void pair_not_ready(struct kunit *test)
{
	run_model(test, NULL, 3, 200, 150, 100);
}

/* With few slots, sends have to wait, and calls fail with EAGAIN. */
static void pair_narrow(struct kunit *test)
{
	run_model(test, &(struct rdm_opts) { .tx_size = 4, .cq_size = 300 }, 4, 500, 20, 100);
}

static void pair_granted(struct kunit *test)
{
	run_model_long(test, NULL, 5, 300, 0, 300, 9000, 0);
}

static void pair_granted_not_ready(struct kunit *test)
{
	run_model_long(test, NULL, 6, 300, 150, 300, 9000, 0);
}

static void pair_granted_narrow(struct kunit *test)
{
	run_model_long(test, &(struct rdm_opts) { .tx_size = 4, .cq_size = 300 }, 7, 500, 20, 100,
		       9000, 0);
}

static void pair_read(struct kunit *test)
{
	run_model_long(test, NULL, 8, 300, 0, 300, 9000, 9500);
}

static void pair_read_not_ready(struct kunit *test)
{
	run_model_long(test, NULL, 9, 300, 150, 300, 9000, 9500);
}

static void pair_read_narrow(struct kunit *test)
{
	run_model_long(test, &(struct rdm_opts) { .tx_size = 12, .cq_size = 300 }, 10, 500, 20, 100,
		       9000, 9500);
}

static struct kunit_case pair_cases[] = {
	KUNIT_CASE(pair_calm),
	KUNIT_CASE(pair_reordered),
	KUNIT_CASE(pair_not_ready),
	KUNIT_CASE(pair_narrow),
	KUNIT_CASE(pair_granted),
	KUNIT_CASE(pair_granted_not_ready),
	KUNIT_CASE(pair_granted_narrow),
	KUNIT_CASE(pair_read),
	KUNIT_CASE(pair_read_not_ready),
	KUNIT_CASE(pair_read_narrow),
	{}
};

static struct kunit_suite pair_suite = {
	.name		= "kefa_rdm_pair",
	.test_cases	= pair_cases,
};

kunit_test_suite(pair_suite);
