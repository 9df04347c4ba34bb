// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: long messages of each sub-protocol are ended at any moment, at either end: the peer
 * dies, its address is removed, the endpoint is closed, or the device is removed. Each operation
 * must complete once, and the device must not access memory afterwards.
 */
#include "efa_rdm_scene.h"

#define BYTES	40000

enum carrier { BY_CTS, BY_CTS_DC, BY_READ, BY_RUNT, BY_NACK, BY_RUNT_NACK, CARRIERS };

enum way { KILLED, REMOVED, CLOSED, UNPLUGGED, WAYS };

static const char * const carrier_names[CARRIERS] = {
	"long-CTS", "long-CTS, delivery complete", "long read", "read with a runt",
	"long read, refused", "read with a runt, refused",
};

/**
 * struct moment - when and how a message is ended
 * @carrier: sub-protocol of the message
 * @way: event that ends the message
 * @at: index of the endpoint that the event happens to
 * @steps: number of packets, reads and registrations before the event
 * @states: BIT(enum kefa_rop_state) for each state that operations had when events happened
 * @completed: number of completions of each endpoint
 * @told: for each endpoint, the last completion was a success
 */
struct moment {
	enum carrier	carrier;
	enum way	way;
	int		at;
	unsigned int	steps;
	u32		states;
	unsigned int	completed[2];
	bool		told[2];
};

static void begin(struct kunit *test, struct rdm_pair *pair, const struct moment *m)
{
	struct kvec iov = { pair->out, BYTES };
	struct fi_msg_tagged msg = {
		.addr = pair->end[0].peer, .tag = 5, .context = (void *)2,
	};
	struct kefa_rdm *rdm;
	int i;

	for (i = 0; i < 2; i++) {
		rdm = rdm_of(&pair->end[i]);
		rdm->lim.mtu = 4096;
		rdm->lim.credits = 6;
		rdm->lim.max_medium = 0;
		/* Leave slots for four packets of data, so that further data has to wait. */
		rdm->ts_ctl = rdm->nts - rdm->nts / KEFA_TX_REQUESTS - 4;
		if (m->carrier == BY_CTS || m->carrier == BY_CTS_DC)
			rdm->lim.min_read_message = U64_MAX;
		if (m->carrier == BY_RUNT || m->carrier == BY_RUNT_NACK)
			rdm->lim.runt = 10000;
	}
	pair->net.bad_reads = m->carrier == BY_NACK || m->carrier == BY_RUNT_NACK;
	pair->fake->manual_mr = true;
	efa_fill(pair->out, BYTES, 7);
	memset(pair->in, 0, BYTES);
	KUNIT_ASSERT_EQ(test, rdm_trecv(pair, BYTES, 5, 1), 0);
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, BYTES);
	KUNIT_ASSERT_EQ(test, fi_tsendmsg(pair->end[0].ep, &msg, m->carrier == BY_CTS_DC ?
					  FI_DELIVERY_COMPLETE : 0), 0);
}

/* Complete a registration or an invalidation; if there is none, deliver a packet or do a read. */
static bool step(struct rdm_pair *pair)
{
	struct efake_wr *wr;
	unsigned int i, n;

	efake_settle_all();
	for (i = 0; i < 2; i++)
		for (n = 0; (wr = efake_sent(pair->end[i].qp, n)); n++)
			if (wr->mr) {
				efake_wr_done(wr, 0);
				efake_settle_all();
				return true;
			}
	n = rdm_step(pair);
	efake_settle_all();
	return n;
}

static u32 states(struct rdm_pair *pair)
{
	struct kefa_rdm *rdm;
	u32 all = 0, i, n;

	for (i = 0; i < 2; i++) {
		rdm = rdm_of(&pair->end[i]);
		for (n = 0; n < rdm->rops.size; n++)
			all |= BIT(rdm->rops.ops[n].state);
	}
	return all;
}

static void read_all(struct rdm_pair *pair, struct moment *m)
{
	struct rdm_comp comp;
	int i;

	for (i = 0; i < 2; i++)
		while ((comp = rdm_read(&pair->end[i])).ret != -EAGAIN) {
			m->completed[i]++;
			m->told[i] = comp.ret == 1;
		}
}

/* Deliver bytes that are no packet, so that the receiver declares their sender dead. */
static void garbage(struct rdm_pair *pair, int at)
{
	struct efake_wr *recv = efake_recv(pair->end[at].qp, 0);
	const struct kefa_wc wc = {
		.len = 16, .src_qpn = pair->end[!at].name.qpn, .slid = RDM_SLID,
	};
	u8 bytes[16];

	memset(bytes, 0xff, sizeof(bytes));
	efake_wr_write(recv, bytes, sizeof(bytes));
	efake_recv_done(recv, &wc);
	efake_settle_all();
}

/* Have the device fail what it still has, except registrations. */
static void drain(struct rdm_pair *pair, int at)
{
	struct efake_wr *wr;
	unsigned int n;

	for (n = 0; (wr = efake_sent(pair->end[at].qp, 0)) && n < 200; n++) {
		efake_wr_done(wr, wr->mr ? 0 : 9);
		efake_settle_all();
	}
}

static void end(struct kunit *test, struct rdm_pair *pair, struct moment *m)
{
	struct rdm_end *suffers = &pair->end[m->at];

	switch (m->way) {
	case KILLED:
		garbage(pair, m->at);
		break;
	case REMOVED:
		KUNIT_EXPECT_EQ(test, fi_av_remove(suffers->av, &suffers->peer, 1, 0), 0);
		break;
	case CLOSED:
		EFA_CLOSE(test, suffers->ep);
		return;
	default:
		efake_remove(pair->fake);
		return;
	}
	drain(pair, m->at);
	/* The receive may not have got a message. */
	if (m->at)
		fi_cancel(&suffers->ep->fid, (void *)1);
	EFA_CLOSE(test, pair->end[!m->at].ep);
	rdm_expect_whole(test, pair);
}

/* Return: whether the message was still in progress at that moment. */
static bool end_at(struct kunit *test, struct moment *m)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	bool more = true;
	unsigned int n;

	m->completed[0] = 0;
	m->completed[1] = 0;
	begin(test, pair, m);
	for (n = 0; n < m->steps && more; n++)
		more = step(pair);
	m->states |= states(pair);
	end(test, pair, m);
	for (n = 0; n < 2; n++)
		if (pair->end[n].ep)
			EFA_CLOSE(test, pair->end[n].ep);
	read_all(pair, m);
	KUNIT_EXPECT_EQ(test, m->completed[0], 1U);
	KUNIT_EXPECT_EQ(test, m->completed[1], 1U);
	if (m->told[1])
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, BYTES, 7));
	if (m->way != UNPLUGGED) {
		KUNIT_EXPECT_EQ(test, efake_haunt(pair->fake), 0U);
		efake_remove(pair->fake);
	}
	return more;
}

/*
 * Try all moments, each with one of the ways unless the run is a long one. Operations must have
 * gone through all states of the sub-protocol.
 */
static void ends_anywhere(struct kunit *test)
{
	const enum carrier carrier = *(const enum carrier *)test->param_value;
	const u32 cts = BIT(KEFA_ROP_GRANT) | BIT(KEFA_ROP_DATA_TX) | BIT(KEFA_ROP_DATA_RX);
	const u32 read = BIT(KEFA_ROP_REG) | BIT(KEFA_ROP_ACK) | BIT(KEFA_ROP_READING) |
			 BIT(KEFA_ROP_INVAL);
	const u32 want[CARRIERS] = {
		[BY_CTS]	= cts | BIT(KEFA_ROP_POSTED),
		[BY_CTS_DC]	= cts | BIT(KEFA_ROP_ACK) | BIT(KEFA_ROP_OWES),
		[BY_READ]	= read,
		[BY_RUNT]	= read | BIT(KEFA_ROP_OWES) | BIT(KEFA_ROP_DATA_RX),
		[BY_NACK]	= read | BIT(KEFA_ROP_NACKED) | cts,
		[BY_RUNT_NACK]	= read | BIT(KEFA_ROP_NACKED) | cts,
	};
	struct moment m = { .carrier = carrier };
	const unsigned int stride = rdm_long ? 1 : 7;
	unsigned int turn = 0;

	for (m.way = 0; m.way < WAYS; m.way++)
		for (m.at = 0; m.at < (m.way == UNPLUGGED ? 1 : 2); m.at++)
			for (m.steps = turn++ % stride; end_at(test, &m); m.steps += stride)
				KUNIT_ASSERT_LT(test, m.steps, 100U);
	KUNIT_EXPECT_EQ(test, m.states & want[carrier], want[carrier]);
}

static const enum carrier carriers[CARRIERS] = {
	BY_CTS, BY_CTS_DC, BY_READ, BY_RUNT, BY_NACK, BY_RUNT_NACK,
};

static void carrier_name(const enum carrier *carrier, char *name)
{
	strscpy(name, carrier_names[*carrier], KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(carrier, carriers, carrier_name);

/*
 * Cancel the receive at a moment, and let the message end. From the completion on, the memory
 * belongs to the ULP. Return: whether the message was still in progress at that moment.
 */
static bool cancel_at(struct kunit *test, struct moment *m, unsigned int *cancelled)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	bool more = true, ours = false;
	ssize_t ret = -ENOENT;
	unsigned int n;

	m->completed[0] = 0;
	m->completed[1] = 0;
	begin(test, pair, m);
	for (n = 0; n < m->steps && more; n++)
		more = step(pair);
	m->states |= states(pair);
	read_all(pair, m);
	if (!m->completed[1]) {
		ret = fi_cancel(&pair->end[1].ep->fid, (void *)1);
		KUNIT_EXPECT_EQ(test, fi_cancel(&pair->end[1].ep->fid, (void *)1), -ENOENT);
	}
	*cancelled += !ret;
	do {
		read_all(pair, m);
		if (m->completed[1] && !ours)
			memset(pair->in, 0x5a, BYTES);
		ours = m->completed[1];
	} while (step(pair));
	read_all(pair, m);
	if (!ret)
		KUNIT_EXPECT_FALSE(test, m->told[1]);
	else
		KUNIT_EXPECT_TRUE(test, m->told[1]);
	for (n = 0; n < BYTES && ours && pair->in[n] == 0x5a; n++)
		;
	KUNIT_EXPECT_EQ(test, n, ours ? (unsigned int)BYTES : 0U);
	KUNIT_EXPECT_EQ(test, m->completed[1], 1U);
	/* The message of a receive that had got none is unexpected now, and waits for another. */
	if (!ret && !m->completed[0]) {
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, BYTES, 5, 1), 0);
		while (step(pair))
			;
		read_all(pair, m);
		KUNIT_EXPECT_EQ(test, m->completed[1], 2U);
	}
	KUNIT_EXPECT_EQ(test, m->completed[0], 1U);
	KUNIT_EXPECT_TRUE(test, m->told[0]);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[0])->stats.deaths, 0ULL);
	rdm_expect_whole(test, pair);
	EFA_CLOSE(test, pair->end[0].ep);
	EFA_CLOSE(test, pair->end[1].ep);
	efake_remove(pair->fake);
	return more;
}

/*
 * The receive can be cancelled at any moment until it completes, and its sender isn't affected.
 * Only long runs try all moments of each sub-protocol.
 */
static void ends_cancelled(struct kunit *test)
{
	struct moment m = { .carrier = *(const enum carrier *)test->param_value };
	const unsigned int stride = rdm_long ? 1 : 2;
	unsigned int cancelled = 0;

	for (m.steps = m.carrier % stride; cancel_at(test, &m, &cancelled); m.steps += stride) {
		if (test->status == KUNIT_FAILURE) {
			kunit_info(test, "cancelled after %u steps\n", m.steps);
			return;
		}
		KUNIT_ASSERT_LT(test, m.steps, 100U);
	}
	KUNIT_EXPECT_GE(test, cancelled, rdm_long ? 3U : 1U);
}

/* The device refuses what a handler has posted while the retry after a failed mapping is due. */
static void ends_held(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_ep *ep = to_kefa_ep(pair->end[0].ep);

	ep->worker = current;
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 1), 0);
	ep->worker = NULL;
	KUNIT_EXPECT_EQ(test, ep->nheld, 1U);
	efake_fail(pair->fake, EFAKE_POST_SEND, 1, -EIO);
	ep->map_retry.work.func(&ep->map_retry.work);
	efake_settle_all();
	rdm_expect_error(test, &pair->end[0], 1, EIO);
	rdm_expect_whole(test, pair);
}

/*
 * Receives that only a dead peer could complete end, and no others can be posted; but the whole
 * messages that it has sent before can be received.
 */
static void ends_directed(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct rdm_end *end = &pair->end[1];

	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 9, 1), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 1, 8);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 2), 0);
	KUNIT_EXPECT_EQ(test, fi_trecv(end->ep, pair->in, 8, NULL, end->peer, 5, 0, (void *)3), 0);
	KUNIT_EXPECT_EQ(test, fi_trecv(end->ep, pair->in, 8, NULL, end->peer, 6, 1, (void *)4), 0);
	KUNIT_EXPECT_EQ(test, fi_tsend(end->ep, pair->out, 8, NULL, end->peer, 5, (void *)5), 0);
	efake_wr_done(efake_sent(end->qp, 0), 13);
	efake_settle_all();
	rdm_expect_error(test, end, 5, ETIMEDOUT);
	rdm_expect_error(test, end, 3, ETIMEDOUT);
	rdm_expect_error(test, end, 4, ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, fi_trecv(end->ep, pair->in, 8, NULL, end->peer, 5, 0, (void *)6),
			-EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, fi_trecv(end->ep, pair->in, 8, NULL, end->peer, 9, 0, (void *)7), 0);
	rdm_expect(test, end, 7, 8);
	KUNIT_EXPECT_EQ(test, fi_trecv(end->ep, pair->in, 8, NULL, end->peer, 9, 0, (void *)8),
			-EHOSTUNREACH);
	/* Others may still complete this one. */
	rdm_expect_nothing(test, end);
	KUNIT_EXPECT_EQ(test, fi_cancel(&end->ep->fid, (void *)2), 0);
	rdm_expect_error(test, end, 2, ECANCELED);
	rdm_expect_whole(test, pair);
}

static struct kunit_case ends_cases[] = {
	KUNIT_CASE(ends_directed),
	KUNIT_CASE(ends_held),
	KUNIT_CASE_PARAM_ATTR(ends_anywhere, carrier_gen_params, { .speed = KUNIT_SPEED_SLOW }),
	KUNIT_CASE_PARAM_ATTR(ends_cancelled, carrier_gen_params, { .speed = KUNIT_SPEED_SLOW }),
	{}
};

static struct kunit_suite ends_suite = {
	.name		= "kefa_rdm_ends",
	.test_cases	= ends_cases,
};

kunit_test_suite(ends_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, long messages that are ended at any moment");
MODULE_LICENSE("Dual BSD/GPL");
