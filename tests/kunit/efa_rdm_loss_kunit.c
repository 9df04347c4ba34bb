// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: a peer or an address is lost, a post is refused, or memory runs out during
 * operations. Each operation must complete once, and not before the device is done with its
 * memory; other peers must not be affected; all slots and all memory must be freed.
 */
#include "efa_rdm_scene.h"

static u8 packet[SZ_8K];

/* A peer on the same network other than the two endpoints. */
struct other {
	u32	qpn;
	u32	connid;
	u16	slid;
};

static void inject(struct rdm_pair *pair, const struct other *o, size_t len)
{
	struct efake_wr *recv = efake_recv(pair->end[1].qp, 0);
	const struct kefa_wc wc = { .len = len, .src_qpn = o->qpn, .slid = o->slid };

	if (!recv)
		return;
	efake_wr_write(recv, packet, len);
	efake_recv_done(recv, &wc);
}

/* Have the second endpoint receive a one-packet message; with @raw it has a raw address. */
static void eager(struct rdm_pair *pair, const struct other *o, u8 type, u32 msg_id, size_t len,
		  bool raw)
{
	const struct kefa_raw_addr addr = {
		.gid	= { 0xfe, 0x80, [15] = o->slid - 21 },
		.qpn	= cpu_to_le16(o->qpn),
		.qkey	= cpu_to_le32(o->connid),
	};
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(type),
		.flags		= raw ? KEFA_REQ_OPT_RAW_ADDR_HDR : KEFA_PKT_CONNID_HDR,
		.has_connid	= true,
		.connid		= o->connid,
		.msg_id		= msg_id,
		.send_id	= msg_id,
		.tag		= 77,
	};
	u8 bytes[KEFA_RAW_ADDR_LEN] = { };

	memcpy(bytes, &addr, sizeof(addr));
	pkt.raw = bytes;
	pkt.raw_len = sizeof(bytes);
	inject(pair, o, kefa_build(&pkt, packet, sizeof(packet)) + len);
}

/* Return: the first endpoint as a peer of the second one. */
static struct other first(struct rdm_pair *pair)
{
	return (struct other) {
		.qpn	= pair->end[0].name.qpn,
		.connid	= pair->end[0].name.qkey,
		.slid	= RDM_SLID,
	};
}

/* Deliver bytes that are no packet, so that the second endpoint declares their sender dead. */
static void garbage(struct rdm_pair *pair, const struct other *o)
{
	memset(packet, 0xff, 16);
	inject(pair, o, 16);
	efake_settle_all();
}

/* Complete all packets of the second endpoint with a status, without delivering them. */
static void answer_all(struct rdm_pair *pair, u32 status)
{
	struct efake_qp *qp = pair->end[1].qp;
	unsigned int n;

	for (n = 0; qp->nsent && n < 1000; n++) {
		efake_wr_done(efake_sent(qp, 0), status);
		efake_settle_all();
	}
}

static void expect_whole(struct kunit *test, struct rdm_end *end)
{
	struct kefa_rdm *rdm = rdm_of(end);

	KUNIT_EXPECT_EQ(test, rdm->rops.used, 0U);
	KUNIT_EXPECT_EQ(test, rdm->ts_nfree, rdm->nts);
	KUNIT_EXPECT_EQ(test, (size_t)rdm->ep.tx.nfree, rdm->ep.tx.base.size);
	KUNIT_EXPECT_EQ(test, (size_t)rdm->ep.rx.nfree, rdm->ep.rx.base.size);
}

/* Close everything, so that the case can open another pair. */
static void finish(struct kunit *test, struct rdm_pair *pair)
{
	EFA_CLOSE(test, pair->end[0].ep);
	EFA_CLOSE(test, pair->end[1].ep);
	efake_remove(pair->fake);
}

static void expect_works(struct kunit *test, struct rdm_pair *pair)
{
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 12000, 1ULL << 40, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 12000, 1ULL << 40, 2), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, 12000);
	rdm_expect(test, &pair->end[1], 1, 12000);
}

static ssize_t back(struct rdm_pair *pair, size_t len, u64 flags)
{
	struct kvec iov = { pair->out, len };
	struct fi_msg_tagged msg = {
		.addr = pair->end[1].peer, .tag = 5, .context = (void *)9,
	};

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, len);
	return fi_tsendmsg(pair->end[1].ep, &msg, flags);
}

/* A peer dies or is removed while the device sends from the ULP's memory. */
static void loss_memory(struct kunit *test)
{
	struct rdm_pair *pair;
	struct other o;
	int way;

	for (way = 0; way < 2; way++) {
		pair = rdm_pair_new(test, NULL);
		o = first(pair);
		expect_works(test, pair);
		KUNIT_EXPECT_EQ(test, back(pair, 4000, 0), 0);
		KUNIT_EXPECT_EQ(test, pair->end[1].qp->nsent, 1U);
		if (way)
			KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[1].av, &pair->end[1].peer, 1,
							   0), 0);
		else
			garbage(pair, &o);
		rdm_expect_nothing(test, &pair->end[1]);
		KUNIT_EXPECT_EQ(test, pair->end[1].qp->nsent, 1U);
		answer_all(pair, 0);
		rdm_expect_error(test, &pair->end[1], 9, way ? ECANCELED : EPROTO);
		rdm_expect_nothing(test, &pair->end[1]);
		expect_whole(test, &pair->end[1]);
		finish(test, pair);
	}
}

/* A RECEIPT arrives before the device has completed the message's packets. */
static void loss_receipt_early(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct other o = first(pair);
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(KEFA_RECEIPT_PKT),
		.flags		= KEFA_PKT_CONNID_HDR,
		.has_connid	= true,
		.connid		= o.connid,
	};
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	u32 i;

	expect_works(test, pair);
	KUNIT_EXPECT_EQ(test, back(pair, 20000, FI_DELIVERY_COMPLETE), 0);
	KUNIT_EXPECT_EQ(test, pair->end[1].qp->nsent, 3U);
	for (i = 0; i < rdm->rops.size && rdm->rops.ops[i].state != KEFA_ROP_ACK; i++)
		;
	KUNIT_ASSERT_LT(test, i, rdm->rops.size);
	pkt.send_id = kefa_rop_id(&rdm->rops, &rdm->rops.ops[i]);
	pkt.msg_id = rdm->rops.ops[i].msg_id;
	efake_wr_done(efake_sent(pair->end[1].qp, 1), 0);
	inject(pair, &o, kefa_build(&pkt, packet, sizeof(packet)));
	efake_settle_all();
	rdm_expect_nothing(test, &pair->end[1]);
	/* The message has arrived: errors of its packets don't matter any more. */
	efake_wr_done(efake_sent(pair->end[1].qp, 0), 0);
	efake_wr_done(efake_sent(pair->end[1].qp, 0), 13);
	efake_settle_all();
	rdm_expect(test, &pair->end[1], 9, 20000);
	rdm_expect_nothing(test, &pair->end[1]);
	expect_whole(test, &pair->end[1]);
}

/* The device refuses the packet that asks for the HANDSHAKE. */
static void loss_trigger(struct kunit *test)
{
	struct rdm_pair *pair;
	int way;

	for (way = 0; way < 2; way++) {
		pair = rdm_pair_new(test, NULL);
		efake_fail(pair->fake, EFAKE_POST_SEND, 1, -EIO);
		if (way) {
			KUNIT_EXPECT_EQ(test, fi_tinject(pair->end[0].ep, pair->out, 8,
							 pair->end[0].peer, 1), -EAGAIN);
		} else {
			KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 1), 0);
			efake_settle_all();
			rdm_expect_error(test, &pair->end[0], 1, EIO);
		}
		efake_settle_all();
		rdm_expect_nothing(test, &pair->end[0]);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 2), -EHOSTUNREACH);
		expect_whole(test, &pair->end[0]);
		finish(test, pair);
	}
}

/* A doorbell that the device refuses frees nothing. The pump does. */
static void loss_doorbell(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	struct kefa_rpeer *peer;
	struct kefa_pkt pkt;
	u32 nfree, used, i;

	expect_works(test, pair);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, i ? 8 : 12000, 5, i), 0);
	/* Neither the worker nor a reader can run the pump while this thread has the lock. */
	spin_lock_bh(&rdm->ep.lock);
	peer = kefa_peers_at(&rdm->peers, pair->end[0].peer);
	kefa_shake_trigger(&rdm->self, &pkt);
	KUNIT_EXPECT_TRUE(test, kefa_tx_control(rdm, peer, NULL, &pkt));
	nfree = rdm->ts_nfree;
	used = rdm->rops.used;
	efake_fail(pair->fake, EFAKE_POST_SEND, 1, -EIO);
	kefa_tx_flush(rdm);
	KUNIT_EXPECT_EQ(test, peer->state, (u8)KEFA_RPEER_DYING);
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 1ULL);
	KUNIT_EXPECT_EQ(test, rdm->ts_nfree, nfree);
	KUNIT_EXPECT_EQ(test, rdm->rops.used, used);
	KUNIT_EXPECT_TRUE(test, rdm->waits);
	kefa_rdm_pump(rdm);
	KUNIT_EXPECT_EQ(test, peer->state, (u8)KEFA_RPEER_DEAD);
	KUNIT_EXPECT_EQ(test, rdm->ts_nfree, nfree + 1);
	KUNIT_EXPECT_FALSE(test, rdm->reap);
	spin_unlock_bh(&rdm->ep.lock);
	/* The device has the packets of the messages until it completes them. */
	rdm_expect_nothing(test, &pair->end[0]);
	rdm_run(pair);
	for (i = 0; i < 4; i++)
		rdm_expect_error(test, &pair->end[0], i, EIO);
	rdm_expect_nothing(test, &pair->end[0]);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 9), -EHOSTUNREACH);
	expect_whole(test, &pair->end[0]);
	finish(test, pair);
}

/* An error of the doorbell has no status, even if an earlier use of the slot had one. */
static void loss_status(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	struct rdm_comp comp;

	expect_works(test, pair);
	spin_lock_bh(&rdm->ep.lock);
	rdm->ts_free->prov = 9;
	spin_unlock_bh(&rdm->ep.lock);
	efake_fail(pair->fake, EFAKE_POST_SEND, 1, -EIO);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 3), 0);
	rdm_run(pair);
	comp = rdm_read(&pair->end[0]);
	KUNIT_EXPECT_EQ(test, comp.ret, -FI_EAVAIL);
	KUNIT_EXPECT_EQ(test, comp.error.err, EIO);
	KUNIT_EXPECT_EQ(test, comp.error.prov_errno, 0);
	expect_whole(test, &pair->end[0]);
	finish(test, pair);
}

/* A peer is removed between its death and the pump. */
static void loss_marked(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	struct kefa_rpeer *peer;
	struct kefa_pkt pkt;
	u32 i;

	expect_works(test, pair);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, i ? 8 : 12000, 5, i), 0);
	spin_lock_bh(&rdm->ep.lock);
	peer = kefa_peers_at(&rdm->peers, pair->end[0].peer);
	kefa_shake_trigger(&rdm->self, &pkt);
	KUNIT_EXPECT_TRUE(test, kefa_tx_control(rdm, peer, NULL, &pkt));
	efake_fail(pair->fake, EFAKE_POST_SEND, 1, -EIO);
	kefa_tx_flush(rdm);
	KUNIT_EXPECT_EQ(test, peer->state, (u8)KEFA_RPEER_DYING);
	kefa_rdm_peer_gone(rdm, peer, true, ECANCELED);
	KUNIT_EXPECT_TRUE(test, list_empty(&rdm->dying));
	KUNIT_EXPECT_EQ(test, peer->state, (u8)KEFA_RPEER_GONE);
	kefa_rdm_pump(rdm);
	KUNIT_EXPECT_TRUE(test, list_empty(&rdm->refusals));
	spin_unlock_bh(&rdm->ep.lock);
	rdm_run(pair);
	for (i = 0; i < 4; i++)
		rdm_expect_error(test, &pair->end[0], i, EIO);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 9), -EHOSTUNREACH);
	expect_whole(test, &pair->end[0]);
	finish(test, pair);
}

/* The device refuses packets that are sent again. */
static void loss_again(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct efake_qp *qp = pair->end[0].qp;
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	int i, n;

	/* The delay must be longer than the loop below takes, even on a slow machine. */
	rdm->backoffs.first_us = 1000000;
	expect_works(test, pair);
	for (i = 0; i < 20; i++)
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, i), 0);
	for (n = 0; n < 100 && qp->nsent; n++) {
		efake_wr_done(efake_sent(qp, 0), KEFA_STATUS_RNR);
		efake_settle();
	}
	KUNIT_EXPECT_FALSE(test, list_empty(&rdm->parked));
	efake_fail(pair->fake, EFAKE_POST_SEND, 1, -EIO);
	for (n = 0; n < 100 && !rdm->stats.deaths; n++) {
		msleep(20);
		efake_settle_all();
	}
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 1ULL);
	for (n = 0; n < 100 && qp->nsent; n++) {
		efake_wr_done(efake_sent(qp, 0), 0);
		efake_settle_all();
	}
	for (i = 0; i < 20; i++)
		KUNIT_EXPECT_EQ(test, rdm_read(&pair->end[0]).ret, -FI_EAVAIL);
	rdm_expect_nothing(test, &pair->end[0]);
	expect_whole(test, &pair->end[0]);
}

/* A peer dies that has to get a RECEIPT, before it is sent and while it is in flight. */
static void loss_receipt(struct kunit *test)
{
	struct rdm_pair *pair;
	struct other o;
	int way;

	for (way = 0; way < 2; way++) {
		pair = rdm_pair_new(test, NULL);
		o = first(pair);
		if (way)
			KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 77, 1), 0);
		eager(pair, &o, KEFA_DC_EAGER_TAGRTM_PKT, 0, 8, false);
		efake_settle_all();
		garbage(pair, &o);
		if (!way)
			KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 77, 1), 0);
		efake_settle_all();
		rdm_expect(test, &pair->end[1], 1, 8);
		answer_all(pair, 9);
		expect_whole(test, &pair->end[1]);
		finish(test, pair);
	}
}

/* A peer asks for RECEIPTs without posting receives for them. */
static void loss_answers(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct fi_efa_addr addr = efa_addr(9, 100);
	const struct other o = { .qpn = 100, .connid = addr.qkey, .slid = 33 };
	struct efake_qp *qp = pair->end[1].qp;
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct efake_wr *wr;
	unsigned int i, n;
	fi_addr_t to;

	expect_works(test, pair);
	KUNIT_ASSERT_EQ(test, fi_av_insert(pair->end[1].av, &addr, 1, &to, 0, NULL), 1);
	rdm_learn(pair, addr.gid, o.slid);
	for (i = 0; i < 200 && !rdm->stats.cut; i++) {
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 77, 1), 0);
		eager(pair, &o, KEFA_DC_EAGER_TAGRTM_PKT, i, 8, false);
		efake_settle_all();
		rdm_expect(test, &pair->end[1], 1, 8);
		for (n = 0; n < 8 && qp->nsent; n++) {
			wr = efake_sent(qp, 0);
			KUNIT_EXPECT_EQ(test, wr->qpn, 100U);
			efake_wr_done(wr, KEFA_STATUS_RNR);
			efake_settle_all();
		}
		KUNIT_EXPECT_GT(test, rdm->ts_nfree, rdm->nts / 2);
	}
	KUNIT_EXPECT_EQ(test, rdm->stats.cut, 1ULL);
	KUNIT_EXPECT_LE(test, i, KEFA_OWED_MAX + 16);
	answer_all(pair, 9);
	expect_whole(test, &pair->end[1]);
	expect_works(test, pair);
}

/* Strangers fill the memory budget together: the greediest ones are dropped. */
static void loss_budget(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct other o[4];
	u32 i, who;

	expect_works(test, pair);
	rdm->budget = SZ_1M;
	for (who = 0; who < 4; who++)
		o[who] = (struct other) { .qpn = 0x500 + who, .connid = 7, .slid = 30 };
	for (i = 0; i < 300; i++) {
		for (who = 0; who < 4; who++)
			eager(pair, &o[who], KEFA_EAGER_TAGRTM_PKT, i, 4000, !i);
		efake_settle_all();
		answer_all(pair, 0);
	}
	KUNIT_EXPECT_GE(test, rdm->stats.cut, 3ULL);
	KUNIT_EXPECT_LE(test, rdm->kept, SZ_1M);
	expect_works(test, pair);
}

/*
 * One queue pair with another connid each time: each is a new stranger, has a message kept, and
 * is superseded. There must be room for the next one.
 */
static void loss_places(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct other o = { .qpn = 0x500, .slid = 30 };
	u64 received;
	u32 i;

	rdm->peers.implicit_max = 8;
	for (i = 0; i < 20; i++) {
		o.connid = i + 1;
		eager(pair, &o, KEFA_EAGER_TAGRTM_PKT, 0, 8, true);
		efake_settle_all();
		answer_all(pair, 0);
	}
	received = rdm->stats.received[KEFA_EAGER_TAGRTM_PKT];
	KUNIT_EXPECT_EQ(test, received, 20ULL);
	KUNIT_EXPECT_EQ(test, rdm->peers.implicit, 8U);
	expect_works(test, pair);
}

/* A stranger's address handle can't be made at once, or not at all. */
static void loss_handle(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	const struct other o = { .qpn = 0x500, .connid = 3, .slid = 30 };
	const struct other none = { .qpn = 0x501, .connid = 4, .slid = 31 };
	u32 i;

	/* The other peer has used up the memory budget. */
	expect_works(test, pair);
	rdm->budget = SZ_64K;
	for (i = 0; i < 9; i++)
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 4000, 5, 1), 0);
	rdm_run(pair);
	KUNIT_EXPECT_GT(test, rdm->kept, rdm->budget);
	efake_fail(pair->fake, EFAKE_AH_CREATE, 1, -ENOMEM);
	eager(pair, &o, KEFA_EAGER_TAGRTM_PKT, 0, 8, true);
	eager(pair, &o, KEFA_EAGER_TAGRTM_PKT, 1, 8, true);
	for (i = 0; i < 100 && rdm->stats.unexpected < 11; i++) {
		msleep(20);
		efake_settle_all();
	}
	KUNIT_EXPECT_EQ(test, rdm->stats.unexpected, 11ULL);
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_NO_AH], 0ULL);
	/* If the handle can't be made, the peer's packets are dropped, then and later. */
	rdm->budget = SZ_4M;
	efake_fail(pair->fake, EFAKE_AH_CREATE, 1, -EINVAL);
	for (i = 0; i < 3; i++) {
		eager(pair, &none, KEFA_EAGER_TAGRTM_PKT, i, 8, i < 2);
		efake_settle_all();
		msleep(3 * KEFA_JOIN_RETRY_MS);
		efake_settle_all();
	}
	KUNIT_EXPECT_EQ(test, rdm->stats.unexpected, 11ULL);
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_NO_AH], 1ULL);
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_DEAD], 2ULL);
	KUNIT_EXPECT_EQ(test, rdm->stats.early, 0ULL);
	answer_all(pair, 0);
	for (i = 0; i < 9; i++)
		rdm_expect(test, &pair->end[0], 1, 4000);
	expect_works(test, pair);
}

/*
 * A message is parked or lost around the removal of its address: the peer is dead when the
 * address is inserted again, as it would wait for that message's number.
 */
static void loss_address(struct kunit *test)
{
	struct rdm_pair *pair;
	int way, n;

	for (way = 0; way < 3; way++) {
		pair = rdm_pair_new(test, NULL);
		rdm_of(&pair->end[0])->backoffs.first_us = USEC_PER_SEC;
		expect_works(test, pair);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 1), 0);
		for (n = 0; n < 2 && !way; n++) {
			efake_wr_done(efake_sent(pair->end[0].qp, 0), KEFA_STATUS_RNR);
			efake_settle();
		}
		KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[0].av, &pair->end[0].peer, 1, 0), 0);
		if (way == 1)
			efake_wr_done(efake_sent(pair->end[0].qp, 0), 13);
		efake_settle_all();
		KUNIT_ASSERT_EQ(test, fi_av_insert(pair->end[0].av, &pair->end[1].name, 1,
						   &pair->end[0].peer, 0, NULL), 1);
		if (way == 2)
			efake_wr_done(efake_sent(pair->end[0].qp, 0), 13);
		efake_settle_all();
		rdm_expect_error(test, &pair->end[0], 1, ECANCELED);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 2), -EHOSTUNREACH);
		expect_whole(test, &pair->end[0]);
		finish(test, pair);
	}
}

/* A dead peer is still dead when its address is inserted again. */
static void loss_dead_again(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct other o = first(pair);

	expect_works(test, pair);
	garbage(pair, &o);
	KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[1].av, &pair->end[1].peer, 1, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_av_insert(pair->end[1].av, &pair->end[0].name, 1,
					   &pair->end[1].peer, 0, NULL), 1);
	KUNIT_EXPECT_EQ(test, back(pair, 8, 0), -EHOSTUNREACH);
	expect_whole(test, &pair->end[1]);
}

/*
 * Without order no message waits for one that was lost, so a peer that has died, or has lost a
 * message while it was removed, works when it is inserted again.
 */
static void loss_revived(struct kunit *test)
{
	const struct rdm_opts opts = { .no_order = true };
	struct rdm_pair *pair;
	struct rdm_end *end;
	struct other o;
	int way, n;

	for (way = 0; way < 5; way++) {
		pair = rdm_pair_new(test, &opts);
		/* It doesn't know what was lost. */
		pair->theirs.off = true;
		o = first(pair);
		end = &pair->end[way == 4];
		rdm_of(end)->backoffs.first_us = USEC_PER_SEC;
		expect_works(test, pair);
		if (way == 4)
			garbage(pair, &o);
		else
			KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 1), 0);
		/* 0: dead; 1: removed while parked; 2 and 3: lost before or after the insertion. */
		for (n = 0; n < 2 && way < 2 && end->qp->nsent; n++) {
			efake_wr_done(efake_sent(end->qp, 0), way ? KEFA_STATUS_RNR : 13);
			efake_settle();
		}
		if (!way)
			KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 2), -EHOSTUNREACH);
		KUNIT_EXPECT_EQ(test, fi_av_remove(end->av, &end->peer, 1, 0), 0);
		if (way == 2)
			efake_wr_done(efake_sent(end->qp, 0), 13);
		efake_settle_all();
		KUNIT_ASSERT_EQ(test, fi_av_insert(end->av, &pair->end[end == pair->end].name, 1,
						   &end->peer, 0, NULL), 1);
		if (way == 3)
			efake_wr_done(efake_sent(end->qp, 0), 13);
		efake_settle_all();
		if (way < 4)
			rdm_expect_error(test, end, 1, way ? ECANCELED : ETIMEDOUT);
		expect_works(test, pair);
		KUNIT_EXPECT_EQ(test, back(pair, 8, 0), 0);
		rdm_run(pair);
		rdm_expect(test, &pair->end[1], 9, 8);
		expect_whole(test, end);
		finish(test, pair);
	}
}

/* A directed receive isn't matched by the next peer at the index of a removed address. */
static void loss_directed(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	const struct other o = { .qpn = 0x500, .connid = 3, .slid = 30 };
	struct fi_efa_addr addr = efa_addr(9, 100);
	fi_addr_t to;

	KUNIT_ASSERT_EQ(test, fi_av_insert(pair->end[1].av, &addr, 1, &to, 0, NULL), 1);
	KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[1].ep, pair->in, 8, NULL, to, 77, 0, (void *)1),
			0);
	KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[1].av, &to, 1, 0), 0);
	rdm_expect_error(test, &pair->end[1], 1, ECANCELED);
	eager(pair, &o, KEFA_EAGER_TAGRTM_PKT, 0, 8, true);
	efake_settle_all();
	rdm_expect_nothing(test, &pair->end[1]);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->stats.unexpected, 1ULL);
	answer_all(pair, 0);
}

/* Messages of two peers wait for room in the completion queue. */
static void loss_room(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	const struct other a = { .qpn = 0x500, .connid = 3, .slid = 30 };
	const struct other b = { .qpn = 0x501, .connid = 4, .slid = 31 };
	struct kvec iov = { pair->in, SZ_64K };
	struct fi_msg msg = { .addr = FI_ADDR_UNSPEC, .context = (void *)1 };
	unsigned int i, n;

	iov_iter_kvec(&msg.msg_iter, ITER_DEST, &iov, 1, iov.iov_len);
	KUNIT_EXPECT_EQ(test, fi_recvmsg(pair->end[1].ep, &msg, FI_MULTI_RECV), 0);
	for (i = 0; i < 40; i++) {
		eager(pair, &a, KEFA_EAGER_MSGRTM_PKT, i, 8, true);
		eager(pair, &b, KEFA_EAGER_MSGRTM_PKT, i, 8, true);
		efake_settle_all();
		answer_all(pair, 0);
	}
	KUNIT_EXPECT_GT(test, rdm_of(&pair->end[1])->stats.starved, 0ULL);
	for (n = 0; n < 80 && rdm_read(&pair->end[1]).ret == 1; n++)
		efake_settle_all();
	KUNIT_EXPECT_EQ(test, n, 80U);
	rdm_expect_nothing(test, &pair->end[1]);
}

/* A peer that was removed and is known as a stranger claims another queue pair. */
static void loss_liar(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct fi_efa_addr addr = efa_addr(9, 0x500);
	struct other o = { .qpn = 0x500, .connid = addr.qkey, .slid = 30 };
	fi_addr_t to;
	u64 liars;

	addr.gid[15] = 8;
	KUNIT_ASSERT_EQ(test, fi_av_insert(pair->end[1].av, &addr, 1, &to, 0, NULL), 1);
	rdm_learn(pair, addr.gid, o.slid);
	eager(pair, &o, KEFA_EAGER_TAGRTM_PKT, 0, 8, false);
	efake_settle_all();
	answer_all(pair, 0);
	KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[1].av, &to, 1, 0), 0);
	eager(pair, &o, KEFA_EAGER_TAGRTM_PKT, 0, 8, true);
	efake_settle_all();
	answer_all(pair, 0);
	liars = rdm->peers.stats.liars;
	o.qpn = 0x501;
	eager(pair, &o, KEFA_EAGER_TAGRTM_PKT, 0, 8, true);
	o.qpn = 0x500;
	inject(pair, &o, 64);
	efake_settle_all();
	answer_all(pair, 0);
	KUNIT_EXPECT_GT(test, rdm->peers.stats.liars, liars);
	expect_works(test, pair);
}

/* Freed memory is used for new receives even if no completion is written. */
static void loss_deaf(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &(struct rdm_opts) { .selective = true });
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct other o = first(pair);
	u32 i, n;

	rdm->budget = SZ_256K;
	for (i = 0; efake_recv(pair->end[1].qp, 0) && i < 1000; i++) {
		eager(pair, &o, KEFA_EAGER_TAGRTM_PKT, i, 4000, false);
		efake_settle_all();
		answer_all(pair, 0);
	}
	KUNIT_EXPECT_NULL(test, efake_recv(pair->end[1].qp, 0));
	for (n = 0; n < i; n++)
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 4000, 77, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm->kept, 0ULL);
	KUNIT_EXPECT_NOT_NULL(test, efake_recv(pair->end[1].qp, 0));
}

/* Mapping fails for a while, and no completion is expected that would cause another attempt. */
static void loss_mapping(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	u32 i;

	expect_works(test, pair);
	pair->fake->refuse = BIT(EFAKE_DMA_MAP);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 60000, 5, 1), 0);
	efake_settle_all();
	pair->fake->refuse = 0;
	for (i = 0; i < 50 && !pair->end[0].qp->nsent; i++) {
		msleep(20);
		efake_settle_all();
	}
	KUNIT_EXPECT_GT(test, pair->end[0].qp->nsent, 0U);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 1, 60000);
}

/* The first message arrives last: the early ones behind it are handled a few at a time. */
static void loss_drain(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct other o = first(pair);
	u32 i;

	for (i = 1; i < 300; i++) {
		eager(pair, &o, KEFA_EAGER_TAGRTM_PKT, i, 8, false);
		efake_settle_all();
		answer_all(pair, 0);
	}
	KUNIT_EXPECT_EQ(test, rdm->stats.early, 299ULL);
	eager(pair, &o, KEFA_EAGER_TAGRTM_PKT, 0, 8, false);
	for (i = 0; i < 20; i++)
		efake_settle_all();
	KUNIT_EXPECT_EQ(test, rdm->stats.unexpected, 300ULL);
	KUNIT_EXPECT_TRUE(test, list_empty(&rdm->early));
}

static struct efake_wr *receipt_to(struct efake_qp *qp)
{
	u32 n;

	for (n = 0; n < qp->nsent; n++) {
		efake_wr_read(efake_sent(qp, n), packet, 1);
		if (packet[0] == KEFA_RECEIPT_PKT)
			return efake_sent(qp, n);
	}
	return NULL;
}

/* A RECEIPT that found no receive is sent again even if there are always packets in flight. */
static void loss_ready_again(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct efake_qp *qp = pair->end[1].qp;
	struct other o = first(pair);
	u32 i;

	expect_works(test, pair);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 77, 1), 0);
	eager(pair, &o, KEFA_DC_EAGER_TAGRTM_PKT, 1, 8, false);
	efake_settle_all();
	rdm_expect(test, &pair->end[1], 1, 8);
	/* Keep messages to the peer in flight. */
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, back(pair, 64, 0), 0);
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_NOT_NULL(test, receipt_to(qp));
		efake_wr_done(receipt_to(qp), KEFA_STATUS_RNR);
		efake_settle();
	}
	for (i = 0; i < 100 && !receipt_to(qp); i++) {
		usleep_range(1000, 2000);
		KUNIT_EXPECT_EQ(test, back(pair, 64, 0), 0);
		efake_settle_all();
		efake_wr_done(efake_sent(qp, 0), 0);
		efake_settle_all();
		rdm_expect(test, &pair->end[1], 9, 64);
	}
	KUNIT_EXPECT_NOT_NULL(test, receipt_to(qp));
	KUNIT_EXPECT_GT(test, qp->nsent, 1U);
	answer_all(pair, 0);
}

/*
 * Early packets use up the budget. The packet that they wait for must still arrive; if it never
 * does, their sender is dead, and other peers aren't affected.
 */
static void loss_early(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	const struct other other = { .qpn = 0x500, .connid = 3, .slid = 30 };
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct other o = first(pair);
	u32 i, n;

	rdm->budget = SZ_256K;
	for (n = 1; n < 1000 && rdm->kept < SZ_256K + SZ_128K; n++) {
		eager(pair, &o, KEFA_EAGER_TAGRTM_PKT, n, 4000, false);
		efake_settle_all();
		answer_all(pair, 0);
	}
	KUNIT_EXPECT_LT(test, n, 1000U);
	KUNIT_EXPECT_NOT_NULL(test, efake_recv(pair->end[1].qp, 0));
	eager(pair, &o, KEFA_EAGER_TAGRTM_PKT, 0, 4000, false);
	for (i = 0; i < 20; i++)
		efake_settle_all();
	for (i = 0; i < n; i++) {
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 4000, 77, i), 0);
		rdm_expect(test, &pair->end[1], i, 4000);
	}
	KUNIT_EXPECT_EQ(test, rdm->kept, 0ULL);
	KUNIT_EXPECT_EQ(test, rdm->stats.cut, 0ULL);

	for (i = 1; i < 2000 && !rdm->stats.cut; i++) {
		eager(pair, &o, KEFA_EAGER_TAGRTM_PKT, n + i, 4000, false);
		efake_settle_all();
		/* The missing packet has some time to arrive. */
		if (rdm->fair.since)
			usleep_range(1000, 2000);
	}
	/* The worker counts the peer before it frees the packets. */
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, rdm->stats.cut, 1ULL);
	KUNIT_EXPECT_EQ(test, rdm->kept, 0ULL);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 77, 1), 0);
	eager(pair, &other, KEFA_EAGER_TAGRTM_PKT, 0, 8, true);
	efake_settle_all();
	answer_all(pair, 0);
	rdm_expect(test, &pair->end[1], 1, 8);
}

/* Return: whether the last packet of the second endpoint is a HANDSHAKE. */
static bool shakes(struct rdm_pair *pair)
{
	struct efake_qp *qp = pair->end[1].qp;

	if (!qp->nsent)
		return false;
	efake_wr_read(efake_sent(qp, qp->nsent - 1), packet, 1);
	return packet[0] == KEFA_HANDSHAKE_PKT;
}

/* A HANDSHAKE is lost, of a peer in the address vector or of one that was removed. */
static void loss_handshake(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct fi_efa_addr addr = efa_addr(9, 100);
	const struct other o = { .qpn = 100, .connid = addr.qkey, .slid = 33 };
	fi_addr_t to;

	KUNIT_ASSERT_EQ(test, fi_av_insert(pair->end[1].av, &addr, 1, &to, 0, NULL), 1);
	rdm_learn(pair, addr.gid, o.slid);
	eager(pair, &o, KEFA_EAGER_TAGRTM_PKT, 0, 8, false);
	efake_settle_all();
	KUNIT_EXPECT_TRUE(test, shakes(pair));
	answer_all(pair, 13);
	eager(pair, &o, KEFA_EAGER_TAGRTM_PKT, 1, 8, false);
	efake_settle_all();
	KUNIT_EXPECT_TRUE(test, shakes(pair));

	KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[1].av, &to, 1, 0), 0);
	answer_all(pair, KEFA_STATUS_RNR);
	KUNIT_ASSERT_EQ(test, fi_av_insert(pair->end[1].av, &addr, 1, &to, 0, NULL), 1);
	rdm_learn(pair, addr.gid, o.slid);
	eager(pair, &o, KEFA_EAGER_TAGRTM_PKT, 2, 8, false);
	efake_settle_all();
	KUNIT_EXPECT_TRUE(test, shakes(pair));
	answer_all(pair, 0);
	eager(pair, &o, KEFA_EAGER_TAGRTM_PKT, 3, 8, false);
	efake_settle_all();
	KUNIT_EXPECT_FALSE(test, shakes(pair));
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->stats.unexpected, 4ULL);
}

/* No buffers can be had for receives, and no completion comes once they can. */
static void loss_receives(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct other o = first(pair);
	u32 i;

	pair->fake->refuse = BIT(EFAKE_DMA_MAP);
	for (i = 0; i < 1000 && efake_recv(pair->end[1].qp, 0); i++) {
		eager(pair, &o, KEFA_EAGER_TAGRTM_PKT, i, 4000, false);
		efake_settle_all();
	}
	answer_all(pair, 0);
	KUNIT_EXPECT_NULL(test, efake_recv(pair->end[1].qp, 0));
	pair->fake->refuse = 0;
	for (i = 0; i < 50 && !efake_recv(pair->end[1].qp, 0); i++) {
		msleep(20);
		efake_settle_all();
	}
	KUNIT_EXPECT_NOT_NULL(test, efake_recv(pair->end[1].qp, 0));
}

/* A stranger's own packets don't use up the attempts to create an address handle for it. */
static void loss_attempts(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	const struct other o = { .qpn = 0x500, .connid = 3, .slid = 30 };
	unsigned long start = jiffies;
	u32 i;

	pair->fake->refusal = -ENOMEM;
	pair->fake->refuse = BIT(EFAKE_AH_CREATE);
	for (i = 0; i < 20; i++) {
		eager(pair, &o, KEFA_EAGER_TAGRTM_PKT, i, 8, true);
		efake_settle_all();
	}
	KUNIT_EXPECT_LE(test, rdm->join_tries,
			2 + jiffies_to_msecs(jiffies - start + 1) / KEFA_JOIN_RETRY_MS);
	pair->fake->refuse = 0;
	for (i = 0; i < 100 && rdm->stats.unexpected < 20; i++) {
		msleep(20);
		efake_settle_all();
	}
	KUNIT_EXPECT_EQ(test, rdm->stats.unexpected, 20ULL);
	answer_all(pair, 0);
}

static void nothing(struct work_struct *work)
{
}

/* The endpoint is closed before the worker handles a registration that the device has refused. */
static void loss_late(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	struct rdm_comp comp;

	efake_settle_all();
	rdm->ep.work.func = nothing;
	efake_fail(pair->fake, EFAKE_POST_SEND, 1, -EIO);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, RDM_READ_FROM, 1, 1), 0);
	KUNIT_EXPECT_FALSE(test, list_empty(&rdm->refusals));
	EFA_CLOSE(test, pair->end[0].ep);
	comp = rdm_read(&pair->end[0]);
	KUNIT_EXPECT_EQ(test, comp.ret, -FI_EAVAIL);
	KUNIT_EXPECT_PTR_EQ(test, comp.error.op_context, (void *)1);
	rdm_expect_nothing(test, &pair->end[0]);
}

static struct kunit_case loss_cases[] = {
	KUNIT_CASE(loss_memory),
	KUNIT_CASE(loss_receipt_early),
	KUNIT_CASE(loss_trigger),
	KUNIT_CASE(loss_doorbell),
	KUNIT_CASE(loss_late),
	KUNIT_CASE(loss_status),
	KUNIT_CASE(loss_marked),
	KUNIT_CASE(loss_again),
	KUNIT_CASE(loss_receipt),
	KUNIT_CASE(loss_answers),
	KUNIT_CASE(loss_budget),
	KUNIT_CASE(loss_places),
	KUNIT_CASE(loss_handle),
	KUNIT_CASE(loss_address),
	KUNIT_CASE(loss_dead_again),
	KUNIT_CASE(loss_revived),
	KUNIT_CASE(loss_directed),
	KUNIT_CASE(loss_room),
	KUNIT_CASE(loss_liar),
	KUNIT_CASE(loss_deaf),
	KUNIT_CASE(loss_mapping),
	KUNIT_CASE(loss_drain),
	KUNIT_CASE(loss_ready_again),
	KUNIT_CASE(loss_early),
	KUNIT_CASE(loss_handshake),
	KUNIT_CASE(loss_receives),
	KUNIT_CASE(loss_attempts),
	{}
};

static struct kunit_suite loss_suite = {
	.name		= "kefa_rdm_loss",
	.test_cases	= loss_cases,
};

kunit_test_suite(loss_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, loss of peers and of memory during operations");
MODULE_LICENSE("Dual BSD/GPL");
