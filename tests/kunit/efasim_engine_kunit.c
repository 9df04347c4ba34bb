// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The engine of the software EFA device, run step by step: windows, wrap of sequence numbers,
 * detection of duplicates, incarnations, keys, faults, and well-formed packets with random
 * content.
 */
#include "efasim_engine_pair.c"

static struct efasim_peer *peer_of(struct end *end, const u8 *gid)
{
	struct efasim_peer *peer;

	mutex_lock(&end->dev.lock);
	peer = efasim_dev_peer(&end->dev, gid, true);
	mutex_unlock(&end->dev.lock);
	return peer;
}

static void engine_delivers(struct kunit *test)
{
	struct pair *p = test->priv;

	post_recvs(&p->b, 1);
	post(&p->a, &p->b, 0, 1);
	run(&p->a);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 0);
	run(&p->b);
	KUNIT_EXPECT_EQ(test, p->b.cq.received, 1);
	run(&p->a);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 1);
	KUNIT_EXPECT_EQ(test, p->a.cq.status, EFASIM_OK);
}

/* Unacknowledged packets fill the window, and then no more are sent. */
static void engine_window(struct kunit *test)
{
	struct pair *p = test->priv;
	struct efasim_peer *peer;

	post_recvs(&p->b, 100);
	post(&p->a, &p->b, 0, 100);
	run(&p->a);
	peer = peer_of(&p->a, p->b.dev.gid);
	KUNIT_EXPECT_EQ(test, p->b.dev.rxq.count, EFASIM_WINDOW);
	KUNIT_EXPECT_FALSE(test, efasim_dev_room(peer, EFASIM_LANE_REQ));
	run(&p->b);
	KUNIT_EXPECT_EQ(test, p->b.cq.received, EFASIM_WINDOW);
	run(&p->a);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, EFASIM_WINDOW);
	run(&p->b);
	run(&p->a);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 100);
	KUNIT_EXPECT_EQ(test, p->b.cq.received, 100);
}

/* Duplicate all packets that wait at @end, and shuffle them. */
static void shuffle(struct kunit *test, struct pair *p, struct end *end)
{
	struct efasim_rxp *rxp, *next, *copy;
	LIST_HEAD(all);

	list_splice_init(&end->dev.rxq.list, &all);
	list_for_each_entry_safe(rxp, next, &all, list) {
		copy = kmemdup(rxp, struct_size(rxp, buf, rxp->len),
			       GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, copy);
		end->dev.rxq.count++;
		if (prandom_u32_state(&p->rnd) & 1)
			list_add(&copy->list, &end->dev.rxq.list);
		else
			list_add_tail(&copy->list, &end->dev.rxq.list);
		list_del(&rxp->list);
		if (prandom_u32_state(&p->rnd) & 1)
			list_add(&rxp->list, &end->dev.rxq.list);
		else
			list_add_tail(&rxp->list, &end->dev.rxq.list);
	}
}

/* Each message arrives once, though all packets are duplicated and reordered. */
static void once_each(struct kunit *test)
{
	struct pair *p = test->priv;
	int i;

	post_recvs(&p->b, 200);
	post(&p->a, &p->b, 0, 200);
	for (i = 0; i < 200 && p->a.cq.sent < 200; i++) {
		run(&p->a);
		shuffle(test, p, &p->b);
		run(&p->b);
		shuffle(test, p, &p->a);
		expect_sane(test, &p->a);
		expect_sane(test, &p->b);
	}
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 200);
	KUNIT_EXPECT_EQ(test, p->b.cq.received, 200);
	KUNIT_EXPECT_EQ(test, p->b.cq.doubled, 0);
	KUNIT_EXPECT_GT(test, stat(&p->b, EFASIM_S_rx_duplicates), 0);
}

static void engine_at_most_once(struct kunit *test)
{
	once_each(test);
}

static void start_at(struct end *end, const struct end *other, u32 seq)
{
	struct efasim_peer *peer = peer_of(end, other->dev.gid);
	int i;

	for (i = 0; i < EFASIM_LANES; i++) {
		peer->lane[i].tx_next = seq;
		peer->lane[i].tx_una = seq;
		peer->lane[i].tx_sacked = seq;
	}
}

static void engine_wraps(struct kunit *test)
{
	struct pair *p = test->priv;

	start_at(&p->a, &p->b, NEAR_WRAP);
	start_at(&p->b, &p->a, NEAR_WRAP);
	once_each(test);
	KUNIT_EXPECT_LT(test, peer_of(&p->a, p->b.dev.gid)->
			lane[EFASIM_LANE_REQ].tx_next, 1000);
}

/* Compare the receiver's table with a model that remembers all packets, across the wrap. */
static void engine_table(struct kunit *test)
{
	struct pair *p = test->priv;
	struct efasim_peer *peer = peer_of(&p->a, p->b.dev.gid);
	struct efasim_lane_state *l = &peer->lane[EFASIM_LANE_REQ];
	unsigned long *seen = kunit_kzalloc(test, 4096 / 8, GFP_KERNEL);
	struct efasim_pkt pkt = { .lane = EFASIM_LANE_REQ };
	u32 i, at, base = 0, taken = 0;

	KUNIT_ASSERT_NOT_NULL(test, seen);
	mutex_lock(&p->a.dev.lock);
	for (i = 0; i < 4000; i++) {
		at = base + prandom_u32_state(&p->rnd) % EFASIM_WINDOW;
		pkt.base = NEAR_WRAP + base;
		pkt.seq = NEAR_WRAP + at;
		if (efasim_dev_is_new(&p->a.dev, peer, &pkt)) {
			KUNIT_EXPECT_FALSE(test, test_bit(at, seen));
			__set_bit(at, seen);
			efasim_dev_taken(&p->a.dev, peer, &pkt);
			taken++;
		} else {
			KUNIT_EXPECT_TRUE(test, test_bit(at, seen));
		}
		/* The sender advances its window, sometimes past packets that never came. */
		if (test_bit(base, seen) || !(prandom_u32_state(&p->rnd) % 64))
			base++;
		KUNIT_EXPECT_LE(test, (s32)(NEAR_WRAP + base - l->rx_next), 1);
	}
	mutex_unlock(&p->a.dev.lock);
	KUNIT_EXPECT_GT(test, base, 100);
	KUNIT_EXPECT_GT(test, taken, 100);
}

static void input(struct end *end, const struct efasim_pkt *pkt)
{
	u8 *buf = kzalloc(efasim_wire_hdr_len(pkt->type) + pkt->length,
			  GFP_KERNEL | __GFP_NOFAIL);

	efasim_wire_build(buf, pkt);
	mutex_lock(&end->dev.lock);
	efasim_dev_input(&end->dev, buf,
			 efasim_wire_hdr_len(pkt->type) + pkt->length, NULL);
	mutex_unlock(&end->dev.lock);
	drain(end);
	kfree(buf);
}

/* Build a packet from @from to @to with the current state. */
static struct efasim_pkt forge(const struct end *from, const struct end *to,
			       enum efasim_pkt_type type)
{
	struct efasim_pkt pkt = {
		.type = type, .lane = efasim_wire_lane(type),
		.src_inc = from->dev.incarnation,
		.dst_inc = to->dev.incarnation,
		.dst_qpn = to->qp->qpn, .qkey = QKEY,
		.ack = { 1, 1 }, .seq = 1, .base = 1,
	};

	memcpy(pkt.src_gid, from->dev.gid, sizeof(pkt.src_gid));
	return pkt;
}

static u32 append(u8 *buf, u32 len, const struct efasim_pkt *pkt)
{
	return len + efasim_wire_build(buf + len, pkt);
}

/* Packets of a datagram are handled up to the first invalid one. */
static void engine_many_in_one(struct kunit *test)
{
	struct pair *p = test->priv;
	struct efasim_pkt pkt = forge(&p->b, &p->a, EFASIM_PKT_SEND);
	u8 *buf = kunit_kzalloc(test, EFASIM_RXBUF, GFP_KERNEL);
	u32 n, len = 0;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	post_recvs(&p->a, 10);
	for (; pkt.seq <= 3; pkt.seq++)
		len = append(buf, len, &pkt);
	mutex_lock(&p->a.dev.lock);
	n = efasim_dev_input(&p->a.dev, buf, len, p->b.dev.gid);
	mutex_unlock(&p->a.dev.lock);
	KUNIT_EXPECT_EQ(test, n, 3);
	drain(&p->a);
	KUNIT_EXPECT_EQ(test, p->a.cq.received, 3);

	len = append(buf, 0, &pkt);
	pkt.seq++;
	pkt.src_inc = 0;
	len = append(buf, len, &pkt);
	pkt.seq++;
	pkt.src_inc = p->b.dev.incarnation;
	len = append(buf, len, &pkt);
	mutex_lock(&p->a.dev.lock);
	n = efasim_dev_input(&p->a.dev, buf, len, p->b.dev.gid);
	mutex_unlock(&p->a.dev.lock);
	KUNIT_EXPECT_EQ(test, n, 2);
	drain(&p->a);
	KUNIT_EXPECT_EQ(test, p->a.cq.received, 4);
	KUNIT_EXPECT_EQ(test, stat(&p->a, EFASIM_S_wire_field), 1);

	mutex_lock(&p->a.dev.lock);
	efasim_dev_input(&p->a.dev, buf, len / 3 + 7, p->b.dev.gid);
	mutex_unlock(&p->a.dev.lock);
	KUNIT_EXPECT_EQ(test, stat(&p->a, EFASIM_S_rx_duplicates), 1);
	KUNIT_EXPECT_EQ(test, stat(&p->a, EFASIM_S_wire_short), 1);
}

/* Acknowledgments of unsent packets and old ones are ignored. */
static void engine_wild_acks(struct kunit *test)
{
	struct pair *p = test->priv;
	struct efasim_peer *peer;
	struct efasim_lane_state *l;
	struct efasim_pkt ack;
	u32 una;

	post(&p->a, &p->b, 0, 4);
	run(&p->a);
	peer = peer_of(&p->a, p->b.dev.gid);
	l = &peer->lane[EFASIM_LANE_REQ];
	una = l->tx_una;

	ack = forge(&p->b, &p->a, EFASIM_PKT_ACK);
	ack.ack[EFASIM_LANE_REQ] = l->tx_next + 1;
	input(&p->a, &ack);
	KUNIT_EXPECT_EQ(test, stat(&p->a, EFASIM_S_wire_ack), 1);
	KUNIT_EXPECT_EQ(test, l->tx_una, una);

	ack.ack[EFASIM_LANE_REQ] = una - 1;
	ack.sack[EFASIM_LANE_REQ] = U64_MAX;
	input(&p->a, &ack);
	KUNIT_EXPECT_EQ(test, l->tx_una, una);
	KUNIT_EXPECT_FALSE(test, l->slot[una % EFASIM_WINDOW]->sacked);

	/* Bits of packets that weren't sent are ignored. */
	ack.ack[EFASIM_LANE_REQ] = una;
	input(&p->a, &ack);
	KUNIT_EXPECT_EQ(test, l->tx_una, una);
	KUNIT_EXPECT_EQ(test, l->tx_sacked, l->tx_next);
	expect_sane(test, &p->a);

	ack.ack[EFASIM_LANE_REQ] = l->tx_next;
	ack.sack[EFASIM_LANE_REQ] = 0;
	input(&p->a, &ack);
	KUNIT_EXPECT_EQ(test, l->tx_una, l->tx_next);
}

/* Restart @end: it has the same GID, but no other state. */
static void restart(struct kunit *test, struct end *end)
{
	u8 gid[EFASIM_GID_LEN];

	memcpy(gid, end->dev.gid, sizeof(gid));
	close_dev(end);
	open_dev(test, end);
	memcpy(end->dev.gid, gid, sizeof(gid));
	open_qp(test, end, EFASIM_QP_SRD);
}

/* A new incarnation of a peer ends work with the old one, whose packets are dropped. */
static void engine_restart(struct kunit *test)
{
	struct pair *p = test->priv;
	struct efasim_pkt old;

	post_recvs(&p->b, 1);
	post(&p->a, &p->b, 0, 1);
	run(&p->a);
	run(&p->b);
	run(&p->a);
	KUNIT_ASSERT_EQ(test, p->a.cq.sent, 1);
	old = forge(&p->b, &p->a, EFASIM_PKT_SEND);
	old.seq = 7;
	old.base = 7;

	/* A message that waits for a receive is active, and so are later ones. */
	post(&p->a, &p->b, 1, 1);
	run(&p->a);
	run(&p->b);
	run(&p->a);
	KUNIT_ASSERT_EQ(test, p->a.cq.sent, 1);
	restart(test, &p->b);
	meet(test, &p->b, &p->a);
	post(&p->a, &p->b, 2, 2);
	run(&p->a);
	/* B gets a packet for an unknown incarnation, and answers with its own. */
	run(&p->b);
	KUNIT_EXPECT_GE(test, stat(&p->b, EFASIM_S_wire_incarnation), 2);
	KUNIT_EXPECT_EQ(test, p->b.cq.received, 0);
	run(&p->a);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 4);
	KUNIT_EXPECT_EQ(test, p->a.cq.status, EFASIM_ABORT);
	KUNIT_EXPECT_EQ(test, stat(&p->a, EFASIM_S_peer_restarts), 1);

	/* Packets of the old incarnation that are still on the way are dropped. */
	post_recvs(&p->a, 1);
	input(&p->a, &old);
	KUNIT_EXPECT_EQ(test, stat(&p->a, EFASIM_S_wire_incarnation), 1);
	KUNIT_EXPECT_EQ(test, p->a.cq.received, 0);

	post_recvs(&p->b, 1);
	post(&p->a, &p->b, 4, 1);
	run(&p->a);
	run(&p->b);
	run(&p->a);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 5);
	KUNIT_EXPECT_EQ(test, p->a.cq.status, EFASIM_OK);

	/* Without active work, messages go to the new incarnation. */
	restart(test, &p->b);
	meet(test, &p->b, &p->a);
	post_recvs(&p->b, 1);
	post(&p->a, &p->b, 5, 1);
	run(&p->a);
	run(&p->b);
	run(&p->a);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 6);
	KUNIT_EXPECT_EQ(test, p->a.cq.status, EFASIM_OK);
	KUNIT_EXPECT_EQ(test, stat(&p->a, EFASIM_S_peer_restarts), 2);
}

/* A message from @from to @to arrives, maybe after exchanging incarnations. */
static void expect_heard(struct kunit *test, struct end *from, struct end *to,
			 u32 imm)
{
	u32 i, sent = from->cq.sent;

	post_recvs(to, 1);
	post(from, to, imm, 1);
	for (i = 0; i < 10 && from->cq.sent == sent; i++) {
		run(from);
		run(to);
		run(from);
		usleep_range(RTO_MIN_US, 2 * RTO_MIN_US);
	}
	KUNIT_EXPECT_EQ(test, from->cq.sent, sent + 1);
	KUNIT_EXPECT_EQ(test, from->cq.status, EFASIM_OK);
}

/* A forged incarnation doesn't block the real peer, whatever its number. */
static void engine_forged_life(struct kunit *test)
{
	struct pair *p = test->priv;
	struct efasim_pkt of_b = forge(&p->b, &p->a, EFASIM_PKT_SEND);
	struct efasim_pkt of_a = forge(&p->a, &p->b, EFASIM_PKT_SEND);
	int i;

	/* At the first contact of the two, and again later. */
	of_a.dst_inc = 0;
	of_b.dst_inc = 0;
	for (i = 0; i < 4; i += 2) {
		of_a.src_inc = i + 2;
		of_b.src_inc = U64_MAX - i;
		input(&p->a, &of_b);
		input(&p->b, &of_a);
		expect_heard(test, &p->b, &p->a, i);
		expect_heard(test, &p->a, &p->b, i + 1);
	}
	KUNIT_EXPECT_EQ(test, peer_of(&p->a, p->b.dev.gid)->incarnation,
			p->b.dev.incarnation);
	KUNIT_EXPECT_EQ(test, peer_of(&p->b, p->a.dev.gid)->incarnation,
			p->a.dev.incarnation);
}

/* Two devices with wrong incarnations of each other don't send messages in a loop. */
static void engine_no_ring(struct kunit *test)
{
	struct pair *p = test->priv;
	struct efasim_pkt ack = forge(&p->b, &p->a, EFASIM_PKT_ACK);

	peer_of(&p->a, p->b.dev.gid);
	ack.dst_inc--;
	input(&p->a, &ack);
	KUNIT_EXPECT_EQ(test, stat(&p->a, EFASIM_S_wire_incarnation), 1);
	KUNIT_EXPECT_EQ(test, stat(&p->a, EFASIM_S_tx_pkts), 0);
}

static void reg(struct end *end, struct efasim_mr *mr, u32 key, u8 access,
		u64 page)
{
	const struct efasim_wqe wqe = {
		.op = EFASIM_OP_FAST_REG,
		.reg = {
			.iova = IOVA, .length = PAGE_SIZE, .pbl = page,
			.lkey = key, .npages = 1, .page_shift = PAGE_SHIFT,
			.access = access, .pbl_inline = true,
		},
	};

	mutex_lock(&end->dev.lock);
	end->cq.status = efasim_dev_mr_reg(end->qp, &wqe);
	mutex_unlock(&end->dev.lock);
}

static bool opens(struct end *end, u32 key)
{
	bool ok;

	mutex_lock(&end->dev.lock);
	ok = efasim_dev_mr_ok(&end->dev, end->pdn, key, IOVA, PAGE_SIZE,
			      EFASIM_ACCESS_REMOTE_READ);
	mutex_unlock(&end->dev.lock);
	return ok;
}

/* Of sixteen keys of a region, only the one registered last grants access. */
static void engine_keys(struct kunit *test)
{
	struct pair *p = test->priv;
	void *page = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	struct efasim_mr *mr = efasim_adm_alloc_mr(&p->a.dev, p->a.pdn, 1);
	u32 gen, other, key;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	KUNIT_EXPECT_FALSE(test, opens(&p->a, mr->key));
	for (gen = 1; gen <= 20; gen++) {
		key = mr->index | (gen * KEY_STEP & EFASIM_KEY_GEN_MASK);
		reg(&p->a, mr, key, EFASIM_ACCESS_REMOTE_READ,
		    virt_to_phys(page));
		KUNIT_EXPECT_EQ(test, p->a.cq.status, EFASIM_OK);
		for (other = 0; other < 16; other++)
			KUNIT_EXPECT_EQ(test, other == gen % 16,
					opens(&p->a, mr->index |
					      other * KEY_STEP));
		mutex_lock(&p->a.dev.lock);
		KUNIT_EXPECT_NE(test, efasim_dev_mr_inv(p->a.qp,
							key ^ KEY_STEP), 0);
		KUNIT_EXPECT_EQ(test, efasim_dev_mr_inv(p->a.qp, key), 0);
		mutex_unlock(&p->a.dev.lock);
		KUNIT_EXPECT_FALSE(test, opens(&p->a, key));
		reg(&p->a, mr, key, EFASIM_ACCESS_REMOTE_READ,
		    virt_to_phys(page));
		KUNIT_EXPECT_NE(test, p->a.cq.status, EFASIM_OK);
	}
	KUNIT_EXPECT_EQ(test, stat(&p->a, EFASIM_S_mr_reuse_generation), 20);
}

/* A peer that reports a write longer than the maximum is refused. */
static void engine_lying_length(struct kunit *test)
{
	struct pair *p = test->priv;
	struct efasim_mr *mr = efasim_adm_alloc_mr(&p->a.dev, p->a.pdn, 1);
	struct efasim_pkt pkt = forge(&p->b, &p->a, EFASIM_PKT_WRITE);
	void *page = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	u32 key;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	key = mr->index | KEY_STEP;
	reg(&p->a, mr, key, EFASIM_ACCESS_REMOTE_WRITE, virt_to_phys(page));
	KUNIT_ASSERT_EQ(test, p->a.cq.status, EFASIM_OK);
	post_recvs(&p->a, 2);
	pkt.flags = EFASIM_PKT_F_IMM;
	pkt.rkey = key;
	pkt.raddr = IOVA;
	pkt.rlen = limits.max_rdma_size + 1;
	input(&p->a, &pkt);
	KUNIT_EXPECT_EQ(test, p->a.cq.received, 0);
	pkt.rlen--;
	pkt.seq++;
	input(&p->a, &pkt);
	KUNIT_EXPECT_EQ(test, p->a.cq.received, 1);
}

/* To a queue pair with unsolicited write receives, a write takes none and needs none. */
static void engine_unsolicited(struct kunit *test)
{
	struct pair *p = test->priv;
	struct efasim_mr *mr = efasim_adm_alloc_mr(&p->a.dev, p->a.pdn, 1);
	struct efasim_pkt pkt = forge(&p->b, &p->a, EFASIM_PKT_WRITE);
	void *page = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	const u16 cons = p->a.qp->rq_cons;
	u32 n;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	pkt.rkey = mr->index | KEY_STEP;
	reg(&p->a, mr, pkt.rkey, EFASIM_ACCESS_REMOTE_WRITE,
	    virt_to_phys(page));
	KUNIT_ASSERT_EQ(test, p->a.cq.status, EFASIM_OK);
	pkt.flags = EFASIM_PKT_F_IMM;
	pkt.raddr = IOVA;
	input(&p->a, &pkt);
	KUNIT_EXPECT_EQ(test, p->a.cq.received, 0);
	p->a.qp->unsolicited = true;
	n = p->a.hw_cq->sub[0].cons;
	pkt.seq++;
	input(&p->a, &pkt);
	KUNIT_EXPECT_EQ(test, p->a.cq.received, 1);
	KUNIT_EXPECT_EQ(test, p->a.qp->rq_cons, cons);
	KUNIT_EXPECT_TRUE(test, p->a.cqes[n % CQ_DEPTH].common.flags & EFASIM_CQE_UNSOLICITED);
	/* Messages take receives as before. */
	post_recvs(&p->a, 1);
	n++;
	pkt = forge(&p->b, &p->a, EFASIM_PKT_SEND);
	pkt.seq = 3;
	input(&p->a, &pkt);
	KUNIT_EXPECT_EQ(test, p->a.cq.received, 2);
	KUNIT_EXPECT_EQ(test, p->a.qp->rq_cons, (u16)(cons + 1));
	KUNIT_EXPECT_FALSE(test, p->a.cqes[n % CQ_DEPTH].common.flags & EFASIM_CQE_UNSOLICITED);
}

/* Return: memory of all packets that wait for @gid's acknowledgment, in bytes. */
static size_t pinned(struct end *end, const u8 *gid)
{
	const struct efasim_peer *peer = peer_of(end, gid);
	const struct efasim_lane_state *l = &peer->lane[EFASIM_LANE_RESP];
	struct efasim_txp *txp;
	size_t sum = 0;
	u32 seq;

	for (seq = l->tx_una; seq != l->tx_next; seq++)
		sum += ksize(l->slot[seq % EFASIM_WINDOW]);
	list_for_each_entry(txp, &peer->resps, list)
		sum += ksize(txp);
	return sum;
}

/* A peer sends reads without permission, and acknowledges no response. */
static void engine_greedy_stranger(struct kunit *test)
{
	struct pair *p = test->priv;
	struct efasim_pkt pkt;
	u32 i;

	pkt = forge(&p->b, &p->a, EFASIM_PKT_READ);
	pkt.src_gid[15] ^= 1;
	pkt.rlen = EFASIM_MAX_PAYLOAD;
	for (i = 1; i <= 1000; i++) {
		pkt.seq = i;
		pkt.base = i;
		input(&p->a, &pkt);
	}
	expect_sane(test, &p->a);
	KUNIT_EXPECT_EQ(test, stat(&p->a, EFASIM_S_rx_busy),
			1000 - EFASIM_WINDOW - MAX_RESPS);
	KUNIT_EXPECT_GT(test, pinned(&p->a, pkt.src_gid), 0);
	KUNIT_EXPECT_LE(test, pinned(&p->a, pkt.src_gid),
			(EFASIM_WINDOW + MAX_RESPS) * 1024);
}

/* Unknown senders don't use up the table of peers. */
static void engine_many_strangers(struct kunit *test)
{
	struct pair *p = test->priv;
	struct efasim_pkt pkt;
	u32 i;

	pkt = forge(&p->b, &p->a, EFASIM_PKT_SEND);
	for (i = 0; i < 100; i++) {
		pkt.src_gid[14] = i;
		pkt.src_gid[15] ^= 1;
		input(&p->a, &pkt);
	}
	KUNIT_EXPECT_GT(test, stat(&p->a, EFASIM_S_peers_full), 0);
	KUNIT_EXPECT_LE(test, p->a.dev.num_peers, limits.max_peers);

	post_recvs(&p->b, 1);
	post(&p->a, &p->b, 0, 1);
	run(&p->a);
	run(&p->b);
	run(&p->a);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 1);
	KUNIT_EXPECT_EQ(test, p->a.cq.status, EFASIM_OK);
}

static struct efasim_pkt anything(struct pair *p)
{
	struct rnd_state *rnd = &p->rnd;
	enum efasim_pkt_type type = prandom_u32_state(rnd) % EFASIM_PKT_TYPES;
	struct efasim_pkt pkt = forge(&p->b, &p->a, type);
	int i;

	pkt.src_gid[15] ^= prandom_u32_state(rnd) % 4;
	pkt.src_inc += prandom_u32_state(rnd) % 64 ? 0 : 1;
	pkt.base = prandom_u32_state(rnd) % 8 ? NEAR_WRAP :
		   prandom_u32_state(rnd);
	pkt.seq = pkt.base + prandom_u32_state(rnd) % EFASIM_WINDOW;
	for (i = 0; i < EFASIM_LANES; i++) {
		pkt.ack[i] = prandom_u32_state(rnd) % 128;
		pkt.sack[i] = prandom_u32_state(rnd);
	}
	pkt.op = (u64)(prandom_u32_state(rnd) % 300) << 32 |
		 p->a.qp->qpn << 16 | prandom_u32_state(rnd) % DEPTH;
	pkt.seg = prandom_u32_state(rnd) % 3;
	pkt.rkey = prandom_u32_state(rnd) % 64;
	pkt.raddr = IOVA + prandom_u32_state(rnd) % 5000;
	if (type == EFASIM_PKT_RESP)
		pkt.status = prandom_u32_state(rnd) % 19;
	if (type == EFASIM_PKT_SEND || type == EFASIM_PKT_WRITE)
		pkt.length = prandom_u32_state(rnd) % 100;
	pkt.rlen = pkt.length + prandom_u32_state(rnd) % 100;
	return pkt;
}

static u64 injected(const struct end *end, enum efasim_fault fault)
{
	return atomic64_read(&end->dev.injected[fault]);
}

struct sent_with {
	const char *name;
	enum efasim_fault fault;
	u32 now;	/* packets of a message that arrive at once */
	u32 later;	/* packets that have arrived after the delay */
};

static const struct sent_with sent_with[] = {
	{ "drop", EFASIM_F_drop, 0, 0 },
	{ "duplicate", EFASIM_F_duplicate, 2, 2 },
	{ "reorder", EFASIM_F_reorder, 0, 1 },
	{ "delay", EFASIM_F_delay, 0, 1 },
	{ "unresponsive", EFASIM_F_unresponsive, 0, 0 },
	{ "no_memory", EFASIM_F_no_memory, 0, 0 },
	{ "rnr", EFASIM_F_rnr, 1, 1 },
};

static void sent_with_name(const struct sent_with *with, char *desc)
{
	strscpy(desc, with->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(sent_with, sent_with, sent_with_name);

/* The effect of a fault on a single packet, and its arrival without the fault. */
static void engine_fault(struct kunit *test)
{
	const struct sent_with *with = test->param_value;
	struct pair *p = test->priv;
	int i;

	p->a.dev.fault[with->fault] = 1000;
	p->b.dev.fault[with->fault] = 1000;
	p->a.dev.fault[EFASIM_F_delay_us] = REORDER_US;
	post_recvs(&p->b, 1);
	post(&p->a, &p->b, 0, 1);
	mutex_lock(&p->a.dev.lock);
	efasim_dev_doorbells(&p->a.dev);
	KUNIT_EXPECT_EQ(test, p->b.dev.rxq.count, with->now);
	/* If the test is delayed, a retransmission is sent, which is delayed as well. */
	if (with->later != with->now) {
		usleep_range(REORDER_US + 100, REORDER_US + 1000);
		efasim_dev_timers(&p->a.dev);
	}
	KUNIT_EXPECT_EQ(test, p->b.dev.rxq.count, with->later);
	mutex_unlock(&p->a.dev.lock);
	run(&p->b);
	if (with->fault != EFASIM_F_duplicate &&
	    with->fault != EFASIM_F_reorder && with->fault != EFASIM_F_delay)
		KUNIT_EXPECT_EQ(test, p->b.cq.received, 0);
	KUNIT_EXPECT_GT(test, injected(&p->a, with->fault) +
			injected(&p->b, with->fault), 0);

	p->a.dev.fault[with->fault] = 0;
	p->b.dev.fault[with->fault] = 0;
	for (i = 0; i < 100 && !p->a.cq.sent; i++) {
		usleep_range(2000, 3000);
		run(&p->a);
		run(&p->b);
	}
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 1);
	KUNIT_EXPECT_EQ(test, p->a.cq.status, EFASIM_OK);
	KUNIT_EXPECT_EQ(test, p->b.cq.received, 1);
}

/* Pretend that @end has waited @silent ms for @peer, with its timer overdue for @late ms. */
static void time_out(struct end *end, struct efasim_peer *peer, u32 silent,
		     u32 late)
{
	ktime_t now = ktime_get();

	mutex_lock(&end->dev.lock);
	peer->heard = ktime_sub_ms(now, silent);
	efasim_dev_arm(&end->dev, &peer->timer, ktime_sub_ms(now, late));
	efasim_dev_timers(&end->dev);
	mutex_unlock(&end->dev.lock);
	drain(end);
}

/* A device that wasn't scheduled for a while doesn't take its peers for silent. */
static void engine_own_silence(struct kunit *test)
{
	struct pair *p = test->priv;
	struct efasim_peer *peer;

	p->a.dev.unresp_ms = 1000;
	post(&p->a, &p->b, 0, 1);
	run(&p->a);
	peer = peer_of(&p->a, p->b.dev.gid);

	time_out(&p->a, peer, 5000, 4500);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 0);
	/* A packet that came after the timer was due doesn't shorten the time-out. */
	time_out(&p->a, peer, 100, 4500);
	KUNIT_EXPECT_FALSE(test, ktime_after(peer->heard, ktime_get()));
	KUNIT_EXPECT_EQ(test, stat(&p->a,
				   EFASIM_S_unresponsive_remote_events), 0);

	time_out(&p->a, peer, 5000, 3500);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 1);
	KUNIT_EXPECT_EQ(test, p->a.cq.status, EFASIM_UNREACH_REMOTE);
	KUNIT_EXPECT_EQ(test, stat(&p->a,
				   EFASIM_S_unresponsive_remote_events), 1);
}

static u64 draw(struct efasim_dev *dev)
{
	u64 bits = 0;
	int i;

	mutex_lock(&dev->lock);
	for (i = 0; i < 64; i++)
		bits = bits << 1 | efasim_fault(dev, EFASIM_F_drop);
	mutex_unlock(&dev->lock);
	return bits;
}

/* The same seed gives the same faults; the value of a fault is its frequency. */
static void engine_seed(struct kunit *test)
{
	struct pair *p = test->priv;
	u64 first, bits = 0;

	p->a.dev.fault[EFASIM_F_drop] = 500;
	seed_set(&p->a.dev, 42);
	first = draw(&p->a.dev);
	KUNIT_EXPECT_NE(test, first, draw(&p->a.dev));
	seed_set(&p->a.dev, 42);
	KUNIT_EXPECT_EQ(test, first, draw(&p->a.dev));
	seed_get(&p->a.dev, &bits);
	KUNIT_EXPECT_EQ(test, bits, 42);
	KUNIT_EXPECT_GT(test, hweight64(first), 12);
	KUNIT_EXPECT_LT(test, hweight64(first), 52);
}

/* Well-formed packets with random content arrive while the device works. */
static void engine_wild_packets(struct kunit *test)
{
	struct pair *p = test->priv;
	struct efasim_pkt pkt;
	u32 i;

	start_at(&p->a, &p->b, 1);
	for (i = 0; i < WILD; i++) {
		if ((u16)(p->a.qp->sq_prod - p->a.cq.sent) < DEPTH / 2)
			post(&p->a, &p->b, i, 1);
		if (p->a.qp->rq_prod == p->a.qp->rq_cons)
			post_recvs(&p->a, 8);
		pkt = anything(p);
		input(&p->a, &pkt);
		if (i % 16 == 0)
			run(&p->a);
		if (i % 512 == 0)
			expect_sane(test, &p->a);
	}
	expect_sane(test, &p->a);
	KUNIT_EXPECT_GT(test, p->a.cq.sent, 10);
	KUNIT_EXPECT_GT(test, p->a.cq.received, 10);
}

static struct kunit_case efasim_engine_cases[] = {
	KUNIT_CASE(engine_delivers),
	KUNIT_CASE(engine_window),
	KUNIT_CASE(engine_at_most_once),
	KUNIT_CASE(engine_wraps),
	KUNIT_CASE(engine_table),
	KUNIT_CASE(engine_many_in_one),
	KUNIT_CASE(engine_wild_acks),
	KUNIT_CASE(engine_restart),
	KUNIT_CASE(engine_forged_life),
	KUNIT_CASE(engine_no_ring),
	KUNIT_CASE(engine_keys),
	KUNIT_CASE(engine_lying_length),
	KUNIT_CASE(engine_unsolicited),
	KUNIT_CASE(engine_greedy_stranger),
	KUNIT_CASE(engine_many_strangers),
	KUNIT_CASE_PARAM(engine_fault, sent_with_gen_params),
	KUNIT_CASE(engine_own_silence),
	KUNIT_CASE(engine_seed),
	KUNIT_CASE(engine_wild_packets),
	{ }
};

static struct kunit_suite efasim_engine_suite = {
	.name = "efasim_engine",
	.suite_init = engine_suite_init,
	.suite_exit = engine_suite_exit,
	.init = engine_init,
	.exit = close_pair,
	.test_cases = efasim_engine_cases,
};

kunit_test_suite(efasim_engine_suite);

MODULE_DESCRIPTION("KUnit tests of the software EFA device's engine");
MODULE_LICENSE("Dual BSD/GPL");
