// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: bounds of what an endpoint uses: its memory, idle and flooded; the number of posted
 * receives; and the share of the send queue that one message may use, which is read in many pieces.
 */
#include <linux/mm.h>
#include <linux/vmalloc.h>
#include "efa_rdm_scene.h"

/* Number of endpoints whose memory is measured; many, so that other allocations matter little. */
#define EPS	8

static u8 packet[SZ_16K];

/* Memory of an idle endpoint in bytes: the limit, then what bounds_idle() measured. */
static s64 idle = 900 * SZ_1K;

/* The real device's values. */
static const struct rdm_opts deep = { .depth = 512, .mtu = 8928 };

/* Return: the free pages that CPUs have in lists of their own, which si_meminfo() doesn't count. */
static s64 cached(void)
{
	struct zone *zone = NODE_DATA(0)->node_zones;
	s64 pages = 0;
	int i, cpu;

	for (i = 0; i < MAX_NR_ZONES; i++, zone++)
		for_each_online_cpu(cpu)
			if (populated_zone(zone))
				pages += READ_ONCE(per_cpu_ptr(zone->per_cpu_pageset, cpu)->count);
	return pages;
}

/* Return: the bytes in use on this machine, without those that the fake uses to check syncs. */
static s64 used(const struct rdm_pair *pair)
{
	struct sysinfo si;

	rcu_barrier();
	si_meminfo(&si);
	return (s64)(si.totalram - si.freeram - cached()) * PAGE_SIZE - pair->fake->shadow;
}

static void open_ep(struct kunit *test, struct rdm_pair *pair, struct fid_ep **ep)
{
	KUNIT_ASSERT_EQ(test, fi_endpoint(pair->domain, pair->info, ep, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(*ep, &pair->end[0].av->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(*ep, &pair->end[0].cq->fid, FI_TRANSMIT | FI_RECV), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(*ep), 0);
}

/* An idle endpoint uses at most 900 KiB. */
static void bounds_idle(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &deep);
	struct fid_ep *eps[EPS];
	size_t fakes = efake_bytes(pair->end[0].qp, 8);
	s64 before, each;
	int i;

	pair->fake->max_mrs = 1024;
	/* Allocate what only the first endpoint allocates. */
	open_ep(test, pair, &eps[0]);
	EFA_CLOSE(test, eps[0]);
	before = used(pair);
	for (i = 0; i < EPS; i++)
		open_ep(test, pair, &eps[i]);
	each = (used(pair) - before) / EPS - (s64)fakes;
	kunit_info(test, "%lld bytes, and the fake's %zu\n", each, fakes);
	KUNIT_EXPECT_EQ(test, to_kefa_rdm(to_kefa_ep(eps[0]))->nsources, 8U);
	KUNIT_EXPECT_GT(test, each, SZ_256K);
	KUNIT_EXPECT_LE(test, each, idle);
	idle = each;
	for (i = 0; i < EPS; i++)
		EFA_CLOSE(test, eps[i]);
}

/*
 * Have the second endpoint receive a message that no receive matches. Return: false if it has
 * posted no buffer.
 */
static bool unexpected(struct rdm_pair *pair, u32 msg_id, size_t len)
{
	const struct kefa_wc wc = {
		.len = len, .src_qpn = pair->end[0].name.qpn, .slid = RDM_SLID,
	};
	struct efake_wr *recv = efake_recv(pair->end[1].qp, 0);
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(KEFA_EAGER_TAGRTM_PKT),
		.flags		= KEFA_PKT_CONNID_HDR,
		.has_connid	= true,
		.connid		= pair->end[0].name.qkey,
		.msg_id		= msg_id,
		.tag		= 77,
	};

	if (!recv)
		return false;
	kefa_build(&pkt, packet, sizeof(packet));
	efake_wr_write(recv, packet, len);
	efake_recv_done(recv, &wc);
	return true;
}

/* However many unexpected messages arrive, long or short, an endpoint uses at most 7 MiB. */
static void bounds_flooded(struct kunit *test)
{
	static const size_t lens[] = { 8000, 200 };
	struct rdm_pair *pair;
	struct kefa_rdm *rdm;
	s64 before, all;
	u32 i, n, way;

	for (way = 0; way < ARRAY_SIZE(lens); way++) {
		pair = rdm_pair_new(test, &deep);
		rdm = rdm_of(&pair->end[1]);
		before = used(pair);
		/* Post the maximum number of receives, as after bursts. */
		spin_lock_bh(&rdm->ep.lock);
		for (i = 0; i < 4; i++)
			kefa_rx_grow(rdm);
		kefa_rx_refill(rdm);
		spin_unlock_bh(&rdm->ep.lock);
		for (n = 0; n < 100000 && unexpected(pair, n, lens[way]); n++)
			if (!efake_recv(pair->end[1].qp, 0))
				efake_settle_all();
		all = used(pair) - before + idle;
		kunit_info(test, "%u messages of %zu bytes: %lld bytes, %llu kept, %u buffers\n", n,
			   lens[way], all, rdm->kept, rdm->nrs);
		KUNIT_EXPECT_EQ(test, rdm->target, (u32)KEFA_RDM_SIZE);
		KUNIT_EXPECT_GE(test, rdm->kept, rdm->budget);
		KUNIT_EXPECT_GT(test, all, (s64)rdm->budget);
		/* With KASAN, kmalloc() uses twice as much memory for short messages. */
		if (!way || !IS_ENABLED(CONFIG_KASAN))
			KUNIT_EXPECT_LE(test, all, 7LL * SZ_1M);
		KUNIT_EXPECT_GT(test, rdm->stats.shut, 0ULL);
		KUNIT_EXPECT_LE(test, rdm->nrs, rdm->rs_max);
		/* Receiving the messages frees the memory, and buffers are posted again. */
		for (i = 0; i < n; i++) {
			KUNIT_ASSERT_EQ(test, rdm_trecv(pair, SZ_64K, 77, 1), 0);
			KUNIT_ASSERT_EQ(test, rdm_read(&pair->end[1]).ret, 1);
		}
		KUNIT_EXPECT_EQ(test, rdm->kept, 0ULL);
		efake_settle_all();
		KUNIT_EXPECT_EQ(test, rdm->nposted, rdm->target);
		EFA_CLOSE(test, pair->end[0].ep);
		EFA_CLOSE(test, pair->end[1].ep);
		efake_remove(pair->fake);
	}
}

/* Have a number of packets arrive before the worker can handle the first one. */
static void burst(struct rdm_pair *pair, u32 *msg_id, u32 n)
{
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);

	spin_lock_bh(&rdm->ep.lock);
	while (n-- && unexpected(pair, *msg_id, 100))
		++*msg_id;
	spin_unlock_bh(&rdm->ep.lock);
	efake_settle_all();
}

/*
 * Each burst that uses at least half of the posted receives doubles their number. Packets that are
 * handled one by one don't.
 */
static void bounds_bursts(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &deep);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	u32 msg_id = 0, i;

	efake_settle_all();
	KUNIT_ASSERT_EQ(test, rdm->target, (u32)KEFA_RX_FIRST);
	for (i = 0; i < 200; i++)
		burst(pair, &msg_id, 1);
	KUNIT_EXPECT_EQ(test, rdm->target, (u32)KEFA_RX_FIRST);
	for (i = KEFA_RX_FIRST; i < KEFA_RDM_SIZE; i *= 2) {
		KUNIT_EXPECT_EQ(test, rdm->target, i);
		burst(pair, &msg_id, i);
	}
	KUNIT_EXPECT_EQ(test, rdm->target, (u32)KEFA_RDM_SIZE);
	KUNIT_EXPECT_EQ(test, rdm->nposted, rdm->target);
}

/* Return: the number of the second end's outstanding work requests with this opcode. */
static u32 posted(struct rdm_pair *pair, int opcode)
{
	struct efake_wr *wr;
	u32 i, n = 0;

	for (i = 0; (wr = efake_sent(pair->end[1].qp, i)); i++)
		n += wr->opcode == opcode;
	return n;
}

/* A short message is posted at once, whatever long ones are in progress. */
static void expect_short(struct kunit *test, struct rdm_pair *pair)
{
	const u32 had = posted(pair, IB_WR_SEND);

	KUNIT_EXPECT_EQ(test, fi_tsend(pair->end[1].ep, pair->out, 8, NULL, pair->end[1].peer, 7,
				       (void *)5), 0);
	KUNIT_EXPECT_EQ(test, posted(pair, IB_WR_SEND), had + 1);
}

/*
 * One endpoint reads a message page by page and sends another one as granted by its peer. Neither
 * may fill the send queue, and both must make progress.
 */
static void bounds_shared(struct kunit *test)
{
	const size_t size = 400 * PAGE_SIZE;
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	const u64 *data = &rdm->stats.sent[KEFA_CTSDATA_PKT];
	u8 *in = vmalloc(size), *out = vmalloc(size);
	bool asked = false;
	u64 reads_then = 0;
	u32 most = 0, n;

	KUNIT_ASSERT_TRUE(test, in && out);
	rdm->lim.min_read_message = U64_MAX;
	KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[1].ep, in, size, NULL, FI_ADDR_UNSPEC, 5, 0,
				       (void *)1), 0);
	KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[0].ep, pair->in, SZ_128K, NULL, FI_ADDR_UNSPEC,
				       6, 0, (void *)3), 0);
	KUNIT_EXPECT_EQ(test, fi_tsend(pair->end[0].ep, out, size, NULL, pair->end[0].peer, 5,
				       (void *)2), 0);
	KUNIT_EXPECT_EQ(test, fi_tsend(pair->end[1].ep, pair->out, SZ_128K, NULL,
				       pair->end[1].peer, 6, (void *)4), 0);
	for (n = 0; n < 5000 && rdm_step(pair); n++) {
		efake_settle_all();
		most = max(most, posted(pair, IB_WR_RDMA_READ));
		/* A quarter of the slots stays for requests, and ts_ctl for answers. */
		KUNIT_EXPECT_GE(test, rdm->ts_nfree + 1,
				rdm->ts_ctl + rdm->nts / KEFA_TX_REQUESTS);
		if (!reads_then && *data == 16)
			reads_then = rdm->stats.reads;
		if (asked || rdm->stats.reads < 100)
			continue;
		expect_short(test, pair);
		asked = true;
	}
	kunit_info(test, "%u steps, at most %u of %u reads at a time, %llu beside 16 packets\n", n,
		   most, rdm->nts, reads_then);
	KUNIT_EXPECT_EQ(test, most, (u32)KEFA_READS_MAX);
	KUNIT_EXPECT_GT(test, reads_then, 8ULL);
	KUNIT_EXPECT_LT(test, reads_then, 16ULL + 2 * KEFA_READS_MAX);
	vfree(in);
	vfree(out);
}

/* A message of many packets gets its slots before the end of a stream to its peer. */
static void bounds_behind(struct kunit *test)
{
	const size_t size = 200 * PAGE_SIZE, medium = 50000;
	struct rdm_pair *pair = rdm_ready_pair(test, &(struct rdm_opts) {
		.tx_size = 64, .mtu = 4096,
	});
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	const u64 *sent = rdm->stats.sent;
	struct fi_efa_addr name = pair->end[1].name;
	u8 *in = vmalloc(size), *out = vmalloc(size);
	struct fid_ep *ep = pair->end[0].ep;
	const fi_addr_t peer = pair->end[0].peer;
	fi_addr_t other;
	unsigned int n;

	KUNIT_ASSERT_TRUE(test, in && out);
	name.qpn += 100;
	KUNIT_EXPECT_EQ(test, fi_av_insert(pair->end[0].av, &name, 1, &other, 0, NULL), 1);
	rdm->lim.min_read_message = U64_MAX;
	KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[1].ep, in, size, NULL, FI_ADDR_UNSPEC, 5, 0,
				       (void *)1), 0);
	KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[1].ep, pair->in, medium, NULL, FI_ADDR_UNSPEC,
				       6, 0, (void *)2), 0);
	KUNIT_EXPECT_EQ(test, fi_tsend(ep, out, size, NULL, peer, 5, (void *)3), 0);
	for (n = 0; n < 1000 && sent[KEFA_CTSDATA_PKT] < 16 && rdm_step(pair); n++)
		efake_settle_all();
	KUNIT_EXPECT_EQ(test, fi_tsend(ep, pair->out, medium, NULL, peer, 6, (void *)4), 0);
	KUNIT_EXPECT_EQ(test, sent[KEFA_MEDIUM_TAGRTM_PKT], 0ULL);
	for (n = 0; n < 1000 && !sent[KEFA_MEDIUM_TAGRTM_PKT] && rdm_step(pair); n++)
		efake_settle_all();
	kunit_info(test, "%llu packets after %llu of the stream\n", sent[KEFA_MEDIUM_TAGRTM_PKT],
		   sent[KEFA_CTSDATA_PKT]);
	KUNIT_EXPECT_GT(test, sent[KEFA_MEDIUM_TAGRTM_PKT], 8ULL);
	KUNIT_EXPECT_LT(test, sent[KEFA_CTSDATA_PKT], 32ULL);
	rdm_run(pair);
	KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[0], 0), 2U);
	KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[1], 0), 2U);
	vfree(in);
	vfree(out);
}

static struct kunit_case bounds_cases[] = {
	KUNIT_CASE(bounds_idle),
	KUNIT_CASE_SLOW(bounds_flooded),
	KUNIT_CASE(bounds_bursts),
	KUNIT_CASE(bounds_shared),
	KUNIT_CASE(bounds_behind),
	{}
};

static struct kunit_suite bounds_suite = {
	.name		= "kefa_rdm_bounds",
	.test_cases	= bounds_cases,
};

kunit_test_suite(bounds_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, bounds of memory and queues of an endpoint");
MODULE_LICENSE("Dual BSD/GPL");
