// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fabric efa, both ends: what a ULP sees, and which packets are sent. */
#include <linux/preempt.h>
#include "efa_rdm_scene.h"

static unsigned int *seen(struct rdm_pair *pair)
{
	return pair->net.seen;
}

/* The first packet to a peer asks for its HANDSHAKE; each end sends one. */
static void rdm_handshake(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);

	efa_fill(pair->out, 8, 1);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 2), 0);
	rdm_run(pair);
	KUNIT_EXPECT_EQ(test, seen(pair)[KEFA_EAGER_RTW_PKT], 1);
	KUNIT_EXPECT_EQ(test, seen(pair)[KEFA_HANDSHAKE_PKT], 2);
	KUNIT_EXPECT_EQ(test, seen(pair)[KEFA_EAGER_TAGRTM_PKT], 1);
	rdm_expect(test, &pair->end[0], 2, 8);
	rdm_expect(test, &pair->end[1], 1, 8);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, 8, 1));
	/* After the handshake, a message is posted at once. */
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 3), 0);
	KUNIT_EXPECT_EQ(test, pair->end[0].qp->nsent, 1U);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 3, 8);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 4), 0);
	rdm_expect(test, &pair->end[1], 4, 8);
	KUNIT_EXPECT_EQ(test, seen(pair)[KEFA_HANDSHAKE_PKT], 2);
}

static void rdm_homogeneous(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &(struct rdm_opts) { .homogeneous = true });

	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 2), 0);
	KUNIT_EXPECT_EQ(test, pair->end[0].qp->nsent, 1U);
	rdm_run(pair);
	KUNIT_EXPECT_EQ(test, seen(pair)[KEFA_EAGER_RTW_PKT], 0);
	rdm_expect(test, &pair->end[0], 2, 8);
	rdm_expect(test, &pair->end[1], 1, 8);
}

static const size_t sizes[] = {
	0, 1, 7, 8, 12, 13, 20, 21, 400, 480, 512, 1000, 4096, 8000, 8128, 8150, 8176, 8184,
	8185, 8192, 8200, 16000, 16384, 30001, 65535, 65536,
};

/* Expected and unexpected messages, from contiguous memory, from pieces, and by plain calls. */
static void rdm_sizes(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kvec iov[3], whole;
	unsigned int i, way;
	size_t len;
	u8 *out;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (way = 0; way < 6; way++) {
			len = sizes[i];
			out = pair->out + way;
			efa_fill(out, len, i + way);
			memset(pair->in, 0, len);
			if (way & 1)
				KUNIT_EXPECT_EQ(test, rdm_trecv(pair, len, i, 1), 0);
			iov[0] = (struct kvec) { out, len / 3 };
			iov[1] = (struct kvec) { out + len / 3, 0 };
			iov[2] = (struct kvec) { out + len / 3, len - len / 3 };
			whole = (struct kvec) { out, len };
			KUNIT_EXPECT_EQ(test, way & 4 ?
					fi_tsend(pair->end[0].ep, out, len, NULL,
						 pair->end[0].peer, i, (void *)2) :
					fi_tsendv(pair->end[0].ep, way & 2 ? iov : &whole, NULL,
						  way & 2 ? 3 : 1, pair->end[0].peer, i,
						  (void *)2), 0);
			rdm_run(pair);
			if (!(way & 1))
				KUNIT_EXPECT_EQ(test, rdm_trecv(pair, len, i, 1), 0);
			rdm_expect(test, &pair->end[0], 2, len);
			rdm_expect(test, &pair->end[1], 1, len);
			KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, len, i + way));
		}
	}
	KUNIT_EXPECT_GT(test, seen(pair)[KEFA_MEDIUM_TAGRTM_PKT], 20U);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->kept, 0ULL);
}

/* A send with FI_DELIVERY_COMPLETE completes when the RECEIPT arrives, and not before. */
static void rdm_delivery(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kvec iov = { pair->out, 20000 };
	struct fi_msg_tagged msg = {
		.addr		= pair->end[0].peer,
		.tag		= 9,
		.context	= (void *)2,
	};

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, iov.iov_len);
	efa_fill(pair->out, 20000, 3);
	KUNIT_EXPECT_EQ(test, fi_tsendmsg(pair->end[0].ep, &msg, FI_DELIVERY_COMPLETE), 0);
	rdm_run(pair);
	KUNIT_EXPECT_EQ(test, seen(pair)[KEFA_DC_MEDIUM_TAGRTM_PKT], 3);
	rdm_expect_nothing(test, &pair->end[0]);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 20000, 9, 1), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, 20000);
	rdm_expect(test, &pair->end[1], 1, 20000);
	KUNIT_EXPECT_EQ(test, seen(pair)[KEFA_RECEIPT_PKT], 1);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, 20000, 3));
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[0])->rops.used, 0U);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->rops.used, 0U);
}

static void rdm_truncated(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	static const size_t lens[] = { 100, 30000 };
	struct rdm_comp comp;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		efa_fill(pair->out, lens[i], i);
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 60, i, 1), 0);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, lens[i], i, 2), 0);
		rdm_run(pair);
		rdm_expect(test, &pair->end[0], 2, lens[i]);
		comp = rdm_read(&pair->end[1]);
		KUNIT_EXPECT_EQ(test, comp.ret, -FI_EAVAIL);
		KUNIT_EXPECT_EQ(test, comp.error.err, FI_ETRUNC);
		KUNIT_EXPECT_EQ(test, comp.error.len, 60UL);
		KUNIT_EXPECT_EQ(test, comp.error.olen, lens[i] - 60);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, 60, i));
	}
}

/* Both ends send and receive two messages. Return: the number of completions of the second end. */
static ssize_t give_four(struct rdm_pair *pair, struct fi_cq_tagged_entry *entry, fi_addr_t *src)
{
	struct rdm_end *end = &pair->end[1];
	ssize_t ret;
	int i;

	/* Without preemption the worker can't be faster than the reader. */
	preempt_disable();
	for (i = 1; i <= 2; i++) {
		rdm_trecv(pair, 8, i, 10 + i);
		fi_tsend(end->ep, pair->out, 8, NULL, end->peer, i, (void *)(20L + i));
		rdm_tsend(pair, 8, i, 30 + i);
	}
	while (rdm_step(pair))
		;
	ret = fi_cq_readfrom(end->cq, entry, 8, src);
	preempt_enable();
	return ret;
}

/* A reader with room takes sends and receives directly, with their tags and senders. */
static void rdm_gives(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct fi_cq_tagged_entry entry[8] = { };
	struct rdm_end *end = &pair->end[1];
	struct kofi_cq *cq = to_kefa_ep(end->ep)->rx.base.cq;
	fi_addr_t src[8];
	u32 tail;
	int i;

	rdm_run(pair);
	rdm_read_all(end, 0);
	tail = cq->tail;
	KUNIT_EXPECT_EQ(test, give_four(pair, entry, src), 4);
	KUNIT_EXPECT_EQ(test, cq->tail, tail);
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, (long)entry[i].op_context, i < 2 ? 21L + i : 9L + i);
		KUNIT_EXPECT_EQ(test, entry[i].flags & (FI_SEND | FI_RECV),
				i < 2 ? FI_SEND : FI_RECV);
		KUNIT_EXPECT_EQ(test, entry[i].len, 8UL);
		KUNIT_EXPECT_EQ(test, entry[i].tag, 1ULL + i % 2);
		KUNIT_EXPECT_EQ(test, src[i], i < 2 ? FI_ADDR_NOTAVAIL : end->peer);
	}
	rdm_run(pair);
	rdm_expect_nothing(test, end);
	for (i = 1; i <= 2; i++)
		KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[0].ep, pair->in, 8, NULL, FI_ADDR_UNSPEC,
					       i, 0, NULL), 0);
	KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[0], 0), 4U);
	rdm_expect_whole(test, pair);
}

/* A completion has the sender's address, and a directed receive takes only its peer's messages. */
static void rdm_source(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct fi_efa_addr other = efa_addr(9, 9);
	struct rdm_comp comp;
	fi_addr_t addr;

	KUNIT_ASSERT_EQ(test, fi_av_insert(pair->end[1].av, &other, 1, &addr, 0, NULL), 1);
	KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[1].ep, pair->in, 8, NULL, addr, 1, 0, (void *)1),
			0);
	KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[1].ep, pair->in, 8, NULL, pair->end[1].peer, 1,
				       0, (void *)2), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 1, 3), 0);
	rdm_run(pair);
	comp = rdm_read(&pair->end[1]);
	KUNIT_EXPECT_EQ(test, comp.ret, 1);
	KUNIT_EXPECT_EQ(test, (long)comp.entry.op_context, 2L);
	KUNIT_EXPECT_EQ(test, comp.src, pair->end[1].peer);
	KUNIT_EXPECT_EQ(test, comp.entry.tag, 1ULL);
	rdm_expect_nothing(test, &pair->end[1]);
	KUNIT_EXPECT_EQ(test, fi_cancel(&pair->end[1].ep->fid, (void *)1), 0);
	rdm_expect_error(test, &pair->end[1], 1, ECANCELED);
}

/* A peer that isn't in the address vector gets a HANDSHAKE, too. */
static void rdm_stranger(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &(struct rdm_opts) { .stranger = true });
	struct rdm_comp comp;

	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 2), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, 8);
	comp = rdm_read(&pair->end[1]);
	KUNIT_EXPECT_EQ(test, comp.ret, 1);
	KUNIT_EXPECT_EQ(test, comp.src, FI_ADDR_NOTAVAIL);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->peers.implicit, 1U);
	/* Inserting its address doesn't make it another peer. */
	KUNIT_ASSERT_EQ(test, fi_av_insert(pair->end[1].av, &pair->end[0].name, 1,
					   &pair->end[1].peer, 0, NULL), 1);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->peers.implicit, 0U);
	KUNIT_EXPECT_EQ(test, fi_tsend(pair->end[1].ep, pair->out, 8, NULL, pair->end[1].peer, 6,
				       (void *)3), 0);
	KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[0].ep, pair->in, 8, NULL, FI_ADDR_UNSPEC, 6, 0,
				       (void *)4), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 4, 8);
	rdm_expect(test, &pair->end[1], 3, 8);
	KUNIT_EXPECT_EQ(test, seen(pair)[KEFA_HANDSHAKE_PKT], 2);
}

/* A peer that can't be reached is dead: all operations with it fail. */
static void rdm_death(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	int i;

	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 1), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 1, 8);
	pair->net.lost = KEFA_EAGER_TAGRTM_PKT;
	pair->net.status = 13;
	pair->net.nlost = 1;
	for (i = 2; i < 6; i++)
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, i), 0);
	rdm_run(pair);
	for (i = 2; i < 6; i++)
		rdm_expect_error(test, &pair->end[0], i, ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 7), -EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[0])->rops.used, 0U);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[0])->stats.deaths, 1ULL);
	/* The message that had arrived before can be received. */
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 8), 0);
	rdm_expect(test, &pair->end[1], 8, 8);
}

static bool rdm_unseen(struct rdm_pair *pair, unsigned int n)
{
	return seen(pair)[KEFA_EAGER_TAGRTM_PKT] < n;
}

/* Packets to a peer without posted receives are sent again later, until all have arrived. */
static void rdm_not_ready(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	int i;

	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 99, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 99, 2), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, 8);
	rdm_expect(test, &pair->end[1], 1, 8);
	pair->net.rnr = 700;
	for (i = 0; i < 32; i++) {
		efa_fill(pair->out + i * 64, 64, i);
		KUNIT_EXPECT_EQ(test, fi_tsend(pair->end[0].ep, pair->out + i * 64, 64, NULL,
					       pair->end[0].peer, i, (void *)(long)i), 0);
	}
	for (i = 0; i < 40; i++)
		rdm_run(pair);
	pair->net.rnr = 0;
	/* Delays have grown, up to one second. */
	for (i = 0; i < 200 && rdm_unseen(pair, 33); i++) {
		msleep(20);
		rdm_run(pair);
	}
	for (i = 0; i < 32; i++) {
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 64, i, i), 0);
		rdm_expect(test, &pair->end[1], i, 64);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, 64, i));
	}
	KUNIT_EXPECT_GT(test, rdm_of(&pair->end[0])->stats.rnr, 20ULL);
	KUNIT_EXPECT_TRUE(test, list_empty(&rdm_of(&pair->end[0])->parked));
}

/* Each message in a multi-receive buffer completes; the last one releases the buffer. */
static void rdm_multi(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kvec iov = { pair->in, 30000 };
	struct fi_msg msg = {
		.addr		= FI_ADDR_UNSPEC,
		.context	= (void *)1,
	};
	static const size_t lens[] = { 100, 12000, 0, 17000, 900 };
	struct rdm_comp comp;
	size_t off = 0;
	unsigned int i;

	iov_iter_kvec(&msg.msg_iter, ITER_DEST, &iov, 1, iov.iov_len);
	/* Two messages arrive before the buffer is posted. */
	for (i = 0; i < 2; i++) {
		efa_fill(pair->out + off, lens[i], i);
		KUNIT_EXPECT_EQ(test, fi_send(pair->end[0].ep, pair->out + off, lens[i], NULL,
					      pair->end[0].peer, (void *)2), 0);
		off += lens[i];
	}
	rdm_run(pair);
	KUNIT_EXPECT_EQ(test, fi_recvmsg(pair->end[1].ep, &msg, FI_MULTI_RECV), 0);
	for (; i < ARRAY_SIZE(lens); i++) {
		efa_fill(pair->out + off, lens[i], i);
		KUNIT_EXPECT_EQ(test, fi_send(pair->end[0].ep, pair->out + off, lens[i], NULL,
					      pair->end[0].peer, (void *)2), 0);
		off += lens[i];
	}
	rdm_run(pair);
	for (i = 0, off = 0; i < ARRAY_SIZE(lens); i++) {
		comp = rdm_read(&pair->end[1]);
		KUNIT_EXPECT_EQ(test, comp.ret, 1);
		if (comp.ret != 1)
			break;
		KUNIT_EXPECT_EQ(test, (long)comp.entry.op_context, 1L);
		KUNIT_EXPECT_PTR_EQ(test, comp.entry.buf, (void *)(pair->in + off));
		KUNIT_EXPECT_EQ(test, comp.entry.len, lens[i]);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in + off, lens[i], i));
		KUNIT_EXPECT_EQ(test, !!(comp.entry.flags & FI_MULTI_RECV),
				i == ARRAY_SIZE(lens) - 1);
		off += lens[i];
	}
	rdm_expect_nothing(test, &pair->end[1]);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->rops.used, 0U);
}

static void peek(struct kunit *test, struct rdm_pair *pair, u64 tag, u64 flags, long ctx)
{
	struct fi_msg_tagged msg = {
		.addr		= FI_ADDR_UNSPEC,
		.tag		= tag,
		.context	= (void *)ctx,
	};
	struct kvec iov = { pair->in, 30000 };

	if (!(flags & (FI_PEEK | FI_DISCARD)))
		iov_iter_kvec(&msg.msg_iter, ITER_DEST, &iov, 1, iov.iov_len);
	KUNIT_EXPECT_EQ(test, fi_trecvmsg(pair->end[1].ep, &msg, flags), 0);
}

static void rdm_peek(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	int i;

	peek(test, pair, 1, FI_PEEK, 1);
	rdm_expect_error(test, &pair->end[1], 1, FI_ENOMSG);
	efa_fill(pair->out, 30000, 1);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 30000, 1, 10), 0);
	rdm_run(pair);
	peek(test, pair, 1, FI_PEEK, 2);
	rdm_expect(test, &pair->end[1], 2, 30000);
	peek(test, pair, 1, FI_PEEK | FI_CLAIM, 3);
	rdm_expect(test, &pair->end[1], 3, 30000);
	peek(test, pair, 1, FI_PEEK | FI_DISCARD, 4);
	rdm_expect(test, &pair->end[1], 4, 30000);
	peek(test, pair, 1, FI_CLAIM, 3);
	rdm_expect(test, &pair->end[1], 3, 30000);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, 30000, 1));
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 30000, 1, 5), 0);
	rdm_expect(test, &pair->end[1], 5, 30000);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->kept, 0ULL);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->rops.used, 0U);
}

/* An inject before the handshake fails with EAGAIN, and works after it. */
static void rdm_inject_again(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);

	KUNIT_EXPECT_EQ(test, fi_tinject(pair->end[0].ep, pair->out, 8, pair->end[0].peer, 1),
			-EAGAIN);
	rdm_run(pair);
	KUNIT_EXPECT_EQ(test, fi_tinject(pair->end[0].ep, pair->out, 8, pair->end[0].peer, 1), 0);
	KUNIT_EXPECT_EQ(test, fi_tinject(pair->end[0].ep, pair->out, 4096, pair->end[0].peer, 1),
			0);
	memset(pair->out, 0xff, 8);
	rdm_run(pair);
	rdm_expect_nothing(test, &pair->end[0]);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 1, 1), 0);
	rdm_expect(test, &pair->end[1], 1, 8);
	KUNIT_EXPECT_EQ(test, pair->in[0], 0);
}

/* Close either end while messages are in flight. */
static void rdm_close(struct kunit *test)
{
	struct rdm_pair *pair;
	int i, way;

	for (way = 0; way < 3; way++) {
		pair = rdm_pair_new(test, NULL);
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 77, 1), 0);
		for (i = 0; i < 8; i++)
			KUNIT_EXPECT_EQ(test, rdm_tsend(pair, i * 5000, 5, 1), 0);
		for (i = 0; i < way * 12; i++) {
			rdm_step(pair);
			efake_settle_all();
		}
		EFA_CLOSE(test, pair->end[way & 1].ep);
		for (i = 0; i < 9; i++)
			if (rdm_read(&pair->end[way & 1]).ret == -EAGAIN)
				break;
		KUNIT_EXPECT_GT(test, i, 0);
		efake_settle_all();
		EFA_CLOSE(test, pair->end[!(way & 1)].ep);
		pair->fake->dev ? efake_remove(pair->fake) : 0;
	}
}

/* Removing an address fails the operations with its peer. */
static void rdm_removed(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);

	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 1), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 1, 8);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 2), 0);
	KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[0].av, &pair->end[0].peer, 1, 0), 0);
	/* No completion while the device may still read the memory. */
	rdm_expect_nothing(test, &pair->end[0]);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 3), -EHOSTUNREACH);
	rdm_run(pair);
	rdm_expect_error(test, &pair->end[0], 2, ECANCELED);
	/* When the address is inserted again, message numbers continue. */
	KUNIT_ASSERT_EQ(test, fi_av_insert(pair->end[0].av, &pair->end[1].name, 1,
					   &pair->end[0].peer, 0, NULL), 1);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 4), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 4, 8);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->stats.received[KEFA_EAGER_TAGRTM_PKT], 3ULL);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->stats.unexpected, 3ULL);
}

/* Sends that wait for slots are posted when other peers' sends complete. */
static void rdm_shared_slots(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &(struct rdm_opts) { .homogeneous = true });
	struct efake_qp *qp = pair->end[0].qp;
	struct fi_efa_addr addr;
	unsigned int i, n, last = 0;
	struct efake_wr *wr;
	fi_addr_t to;

	for (i = 0; i < 8; i++) {
		addr = efa_addr(9, 100 + i);
		KUNIT_ASSERT_EQ(test, fi_av_insert(pair->end[0].av, &addr, 1, &to, 0, NULL), 1);
		for (n = 0; n < 16; n++)
			KUNIT_EXPECT_EQ(test, fi_tsend(pair->end[0].ep, pair->out, 64, NULL, to, n,
						       NULL), 0);
	}
	KUNIT_EXPECT_EQ(test, qp->nsent, rdm_of(&pair->end[0])->nts -
			rdm_of(&pair->end[0])->ts_ctl);
	for (n = 0; n < 128 && qp->nsent; n++) {
		wr = efake_sent(qp, 0);
		last += wr->qpn == 107;
		efake_wr_done(wr, 0);
		efake_settle();
	}
	KUNIT_EXPECT_EQ(test, n, 128U);
	KUNIT_EXPECT_EQ(test, last, 16U);
	KUNIT_EXPECT_EQ(test, qp->nsent, 0U);
}

/* The numbers of messages, operations and packets wrap. */
static void rdm_wraps(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	const u32 last = U32_MAX - 30;
	struct kvec iov = { pair->out, 9000 };
	struct fi_msg_tagged msg = { .addr = pair->end[0].peer };
	struct kefa_rdm *rdm;
	long i, n;

	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 2), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, 8);
	rdm_expect(test, &pair->end[1], 1, 8);
	for (i = 0; i < 2; i++) {
		rdm = rdm_of(&pair->end[i]);
		spin_lock_bh(&rdm->ep.lock);
		kefa_peers_at(&rdm->peers, pair->end[i].peer)->order.next_id = last;
		kefa_peers_at(&rdm->peers, pair->end[i].peer)->order.exp_id = last;
		for (n = 0; n < rdm->rops.size; n++)
			rdm->rops.ops[n].gen = U16_MAX;
		for (n = 0; n < rdm->nts; n++)
			rdm->ts[n].id |= (u64)U32_MAX << 32;
		spin_unlock_bh(&rdm->ep.lock);
	}
	rdm_theirs_forget(&pair->theirs);
	pair->net.reorder = 500;
	pair->net.late = 300;
	for (n = 0; n < 60; n += 20) {
		for (i = n; i < n + 20; i++) {
			iov.iov_len = i % 3 * 4500;
			iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, iov.iov_len);
			msg.tag = i;
			msg.context = (void *)i;
			KUNIT_EXPECT_EQ(test, fi_tsendmsg(pair->end[0].ep, &msg,
							  i & 1 ? FI_DELIVERY_COMPLETE : 0), 0);
		}
		rdm_run(pair);
		for (i = n; i < n + 20; i++) {
			KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 9000, i, i), 0);
			rdm_expect(test, &pair->end[1], i, i % 3 * 4500);
		}
		rdm_run(pair);
		for (i = n; i < n + 20; i++)
			KUNIT_EXPECT_EQ(test, rdm_read(&pair->end[0]).ret, 1);
	}
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[0])->stats.deaths, 0ULL);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[0])->rops.used, 0U);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->rops.used, 0U);
}

/* A region's endpoint must keep the region's queue from being closed. */
static void rdm_region_of_other_queue(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct fi_mr_alloc_attr attr = {
		.max_pages = 1, .access = FI_REMOTE_READ, .ep = pair->end[0].ep,
		.cq = pair->end[1].cq,
	};
	struct fid_mr *mr;

	KUNIT_EXPECT_EQ(test, fi_mr_alloc(pair->domain, &attr, &mr, NULL), -EINVAL);
	attr.cq = pair->end[0].cq;
	KUNIT_ASSERT_EQ(test, fi_mr_alloc(pair->domain, &attr, &mr, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&pair->end[0].ep->fid), -EBUSY);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

static struct kunit_case rdm_cases[] = {
	KUNIT_CASE(rdm_region_of_other_queue),
	KUNIT_CASE(rdm_handshake),
	KUNIT_CASE(rdm_homogeneous),
	KUNIT_CASE(rdm_sizes),
	KUNIT_CASE(rdm_delivery),
	KUNIT_CASE(rdm_truncated),
	KUNIT_CASE(rdm_gives),
	KUNIT_CASE(rdm_source),
	KUNIT_CASE(rdm_stranger),
	KUNIT_CASE(rdm_death),
	KUNIT_CASE(rdm_not_ready),
	KUNIT_CASE(rdm_multi),
	KUNIT_CASE(rdm_peek),
	KUNIT_CASE(rdm_inject_again),
	KUNIT_CASE(rdm_close),
	KUNIT_CASE(rdm_removed),
	KUNIT_CASE(rdm_shared_slots),
	KUNIT_CASE(rdm_wraps),
	{}
};

static struct kunit_suite rdm_suite = {
	.name		= "kefa_rdm",
	.test_cases	= rdm_cases,
};

kunit_test_suite(rdm_suite);
