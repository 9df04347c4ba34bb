// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fabric efa: endpoints in one kernel that communicate without the device. */
#include <linux/slab.h>
#include <kofi/atomic.h>
#include "crew.h"
#include "efa_rdm_scene.h"
#include "../../prov/efa/mr.h"
#include "../../prov/efa/rdm/knobs.h"
#include "../../prov/efa/rdm/local.h"

static const struct rdm_opts local_opts = { .local = true, .rma = true, .rdma = true };
static u8 packet[SZ_8K] __aligned(8);

static struct kefa_rpeer *peer_of(struct rdm_end *end)
{
	return rdm_of(end)->peers.at[end->peer];
}

/* Return: a number that changes whenever an endpoint posts, or handles what was posted. */
static u64 progress(struct rdm_pair *pair)
{
	u64 sum = 0;
	int i;

	for (i = 0; i < 2; i++)
		if (pair->end[i].ep && rdm_of(&pair->end[i])->local)
			sum += 4096 * rdm_of(&pair->end[i])->stats.local +
			       rdm_of(&pair->end[i])->local->nout;
	return sum;
}

/* Have the workers handle what the endpoints have for each other. */
static void settle(struct rdm_pair *pair)
{
	u64 last = 0, now;
	int i, idle;

	for (idle = 0; idle < 3; idle = now == last ? idle + 1 : 0, last = now) {
		for (i = 0; i < 2; i++)
			if (pair->end[i].ep)
				kefa_ep_kick(to_kefa_ep(pair->end[i].ep));
		efake_settle();
		now = progress(pair);
	}
}

/* Have an endpoint not look at the packets that come from now on, until it is kicked. */
static void ignore_news(struct rdm_end *end)
{
	struct kefa_ep *ep = to_kefa_ep(end->ep);

	cancel_delayed_work_sync(&ep->idle);
	spin_lock_bh(&ep->lock);
	rdm_of(end)->local->news = true;
	spin_unlock_bh(&ep->lock);
}

/* Check that the device had nothing to do with the endpoints' messages, and nothing is left. */
static void expect_local(struct kunit *test, struct rdm_pair *pair)
{
	struct kefa_rdm *rdm;
	int i;

	settle(pair);
	for (i = 0; i < 2; i++) {
		rdm = rdm_of(&pair->end[i]);
		KUNIT_EXPECT_EQ(test, rdm->ep.stats.doorbells, 0);
		KUNIT_EXPECT_EQ(test, rdm->local->nout, 0);
		KUNIT_EXPECT_GT(test, rdm->stats.local, 0);
		KUNIT_EXPECT_FALSE(test, rdm->local->more);
	}
	rdm_expect_whole(test, pair);
}

static ssize_t post_send(struct rdm_pair *pair, bool tagged, size_t len, long ctx)
{
	struct rdm_end *end = &pair->end[0];

	return tagged ? rdm_tsend(pair, len, 5, ctx) :
			fi_send(end->ep, pair->out, len, NULL, end->peer, (void *)ctx);
}

static ssize_t post_recv(struct rdm_pair *pair, bool tagged, size_t len, long ctx)
{
	return tagged ? rdm_trecv(pair, len, 5, ctx) :
			fi_recv(pair->end[1].ep, pair->in, len, NULL, FI_ADDR_UNSPEC, (void *)ctx);
}

static void one_message(struct kunit *test, struct rdm_pair *pair, size_t len, bool tagged,
			bool early)
{
	efa_fill(pair->out, len, len + tagged);
	memset(pair->in, 0, SZ_128K);
	if (!early)
		KUNIT_EXPECT_EQ(test, post_recv(pair, tagged, SZ_128K, 2), 0);
	KUNIT_EXPECT_EQ(test, post_send(pair, tagged, len, 1), 0);
	settle(pair);
	if (early)
		KUNIT_EXPECT_EQ(test, post_recv(pair, tagged, SZ_128K, 2), 0);
	settle(pair);
	rdm_expect(test, &pair->end[0], 1, len);
	rdm_expect(test, &pair->end[1], 2, len);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, len, len + tagged));
}

/* Messages of any length, tagged or not, expected or not. */
static void local_messages(struct kunit *test)
{
	static const size_t lens[] = {
		0, 1, 8, 400, 600, 5000, 8000, 8192, 20000, SZ_64K, 70000, SZ_128K,
	};
	struct rdm_pair *pair = rdm_pair_new(test, &local_opts);
	int i, how;

	for (i = 0; i < ARRAY_SIZE(lens); i++)
		for (how = 0; how < 4; how++)
			one_message(test, pair, lens[i], how & 1, how & 2);
	expect_local(test, pair);
}

/* A long message whose receive is posted is copied once, and not mapped for the device. */
static void local_once(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &local_opts);
	struct kefa_rdm *from = rdm_of(&pair->end[0]), *to = rdm_of(&pair->end[1]);
	u8 *out = kunit_kmalloc(test, SZ_1M, GFP_KERNEL);
	u8 *in = kunit_kzalloc(test, SZ_1M, GFP_KERNEL);
	u64 copied, got, maps;

	KUNIT_ASSERT_TRUE(test, out && in);
	one_message(test, pair, 8, true, false);
	copied = from->stats.copied;
	got = to->ep.stats.rx_bytes;
	maps = pair->fake->nmaps;
	efa_fill(out, SZ_1M, 3);
	KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[1].ep, in, SZ_1M, NULL, FI_ADDR_UNSPEC, 6, 0,
				       (void *)2), 0);
	KUNIT_EXPECT_EQ(test, fi_tsend(pair->end[0].ep, out, SZ_1M, NULL, pair->end[0].peer, 6,
				       (void *)1), 0);
	KUNIT_EXPECT_EQ(test, pair->fake->nmaps, maps);
	settle(pair);
	rdm_expect(test, &pair->end[0], 1, SZ_1M);
	rdm_expect(test, &pair->end[1], 2, SZ_1M);
	KUNIT_EXPECT_TRUE(test, efa_filled(in, SZ_1M, 3));
	/* The receiver has copied each byte, the sender at most those of a short last packet. */
	KUNIT_EXPECT_EQ(test, to->ep.stats.rx_bytes - got, SZ_1M);
	KUNIT_EXPECT_LT(test, from->stats.copied - copied, KEFA_TS_ROOM);
	KUNIT_EXPECT_EQ(test, from->ep.stats.bounced + to->ep.stats.bounced, 0);
	KUNIT_EXPECT_EQ(test, to->stats.unexpected, 0);
	expect_local(test, pair);
}

/* A message that isn't granted is one slot for both ends, and copied once. */
static void local_whole(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &local_opts);
	struct kefa_rdm *from = rdm_of(&pair->end[0]), *to = rdm_of(&pair->end[1]);
	u64 slots, copied, maps, got;
	struct rdm_comp comp;
	size_t room, len;

	one_message(test, pair, 8, true, false);
	KUNIT_ASSERT_GE(test, from->lim.max_medium, (u32)SZ_64K);
	slots = from->stats.local;
	copied = from->stats.copied;
	maps = pair->fake->nmaps;
	one_message(test, pair, SZ_64K, true, false);
	one_message(test, pair, SZ_64K, false, false);
	KUNIT_EXPECT_EQ(test, from->stats.local - slots, 2);
	KUNIT_EXPECT_EQ(test, from->stats.copied, copied);
	KUNIT_EXPECT_EQ(test, pair->fake->nmaps, maps);
	KUNIT_EXPECT_EQ(test, to->stats.unexpected, 0);
	/* Without a receive, its packets are kept, as if the sender had made them. */
	got = to->stats.received[KEFA_MEDIUM_TAGRTM_PKT];
	one_message(test, pair, SZ_64K, true, true);
	KUNIT_EXPECT_EQ(test, from->stats.local - slots, 3);
	KUNIT_EXPECT_EQ(test, to->stats.unexpected, 1);
	KUNIT_EXPECT_GE(test, to->stats.received[KEFA_MEDIUM_TAGRTM_PKT] - got,
			(u64)SZ_64K / to->lim.mtu);
	/* The longest ones of a packet, and of the same packet without a tag. */
	room = from->shapes[KEFA_SIGNS_CONNID][true].room;
	for (len = room - 8; len < room + 10; len++) {
		got = to->stats.received[KEFA_EAGER_TAGRTM_PKT];
		one_message(test, pair, len, true, true);
		KUNIT_EXPECT_EQ(test, to->stats.received[KEFA_EAGER_TAGRTM_PKT] - got,
				(u64)(len <= room));
		one_message(test, pair, len, false, true);
	}
	KUNIT_EXPECT_EQ(test, from->stats.local - slots, 3 + 2 * 18);
	/* One byte more has to be granted, and one that is too long for its receive is cut. */
	slots = from->stats.local;
	one_message(test, pair, from->lim.max_medium + 1, true, false);
	KUNIT_EXPECT_GT(test, from->stats.local - slots, 1);
	memset(pair->in, 0, SZ_128K);
	efa_fill(pair->out, SZ_64K, 7);
	KUNIT_EXPECT_EQ(test, post_recv(pair, true, 20000, 2), 0);
	KUNIT_EXPECT_EQ(test, post_send(pair, true, SZ_64K, 1), 0);
	settle(pair);
	rdm_expect(test, &pair->end[0], 1, SZ_64K);
	comp = rdm_read(&pair->end[1]);
	KUNIT_EXPECT_EQ(test, comp.ret, -FI_EAVAIL);
	KUNIT_EXPECT_EQ(test, comp.error.err, FI_ETRUNC);
	KUNIT_EXPECT_EQ(test, comp.error.olen, SZ_64K - 20000);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, 20000, 7));
	KUNIT_EXPECT_EQ(test, pair->in[20000], 0);
	expect_local(test, pair);
}

/* Data in an object of a slab cache that isn't for user space, to a receive of several pieces. */
static void local_slab(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &local_opts);
	struct kmem_cache *cache = kmem_cache_create("kofi_local_test", 20000, 0, 0, NULL);
	u8 *out = cache ? kmem_cache_alloc(cache, GFP_KERNEL) : NULL;
	const struct kvec to[2] = { { pair->in, 100 }, { pair->in + 100, SZ_64K } };
	struct fid_ep *ep = pair->end[0].ep;
	fi_addr_t peer = pair->end[0].peer;
	int i;

	KUNIT_EXPECT_NOT_NULL(test, out);
	one_message(test, pair, 8, true, false);
	for (i = 0; out && i < 4; i++) {
		const size_t len = i & 1 ? 20000 : 600;
		const struct kvec from = { out, len };

		efa_fill(out, len, i);
		KUNIT_EXPECT_EQ(test, fi_trecvv(pair->end[1].ep, to, NULL, 2, FI_ADDR_UNSPEC, 5, 0,
						(void *)2), 0);
		KUNIT_EXPECT_EQ(test, i & 2 ? fi_tsend(ep, out, len, NULL, peer, 5, (void *)1) :
				fi_tsendv(ep, &from, NULL, 1, peer, 5, (void *)1), 0);
		settle(pair);
		rdm_expect(test, &pair->end[0], 1, len);
		rdm_expect(test, &pair->end[1], 2, len);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, len, i));
	}
	expect_local(test, pair);
	if (out)
		kmem_cache_free(cache, out);
	kmem_cache_destroy(cache);
}

/* Long messages may not occupy a receiver for longer than a turn. */
static void local_turns(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &local_opts);
	struct kefa_rdm *to = rdm_of(&pair->end[1]);
	const unsigned int all = 12;
	unsigned int i, n, done = 0;

	one_message(test, pair, 8, true, false);
	settle(pair);
	for (i = 0; i < all; i++)
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, SZ_64K, i, 100 + i), 0);
	ignore_news(&pair->end[1]);
	efa_fill(pair->out, SZ_64K, 1);
	for (i = 0; i < all; i++)
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, SZ_64K, i, 1), 0);
	spin_lock_bh(&to->ep.lock);
	n = kefa_local_take(to);
	KUNIT_EXPECT_TRUE(test, to->local->more);
	KUNIT_EXPECT_NOT_NULL(test, to->local->in[KEFA_LOCAL_REQUESTS].head);
	spin_unlock_bh(&to->ep.lock);
	KUNIT_EXPECT_GT(test, n, 0U);
	KUNIT_EXPECT_LE(test, n * SZ_64K, (unsigned int)SZ_256K);
	settle(pair);
	for (i = 0; i < all; i++)
		rdm_expect(test, &pair->end[1], 100 + i, SZ_64K);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, SZ_64K, 1));
	KUNIT_EXPECT_TRUE(test, kofi_soon((done = rdm_read_all(&pair->end[0], done)) == all));
	/* The sender ends while some of its messages are left for another turn. */
	ignore_news(&pair->end[1]);
	for (i = 0; i < all; i++)
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, SZ_64K, i, 1), 0);
	spin_lock_bh(&to->ep.lock);
	kefa_local_take(to);
	KUNIT_EXPECT_TRUE(test, to->local->more);
	spin_unlock_bh(&to->ep.lock);
	EFA_CLOSE(test, pair->end[0].ep);
	pair->end[0].ep = NULL;
	settle(pair);
}

/* Reads and writes of any length, which the CPU carries out. */
static void local_rma(struct kunit *test)
{
	static const size_t lens[] = { 1, 8, 600, 8000, 20000, 100000 };
	struct rdm_pair *pair = rdm_pair_new(test, &local_opts);
	struct rdm_end *end = &pair->end[0];
	struct fid_mr *mr;
	size_t len;
	int i;

	KUNIT_ASSERT_EQ(test, fi_mr_reg(pair->domain, pair->in, SZ_128K,
					FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL), 0);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		len = lens[i];
		efa_fill(pair->out, len, i);
		memset(pair->in, 0, SZ_128K);
		KUNIT_EXPECT_EQ(test, fi_write(end->ep, pair->out, len, NULL, end->peer,
					       mr->base_addr, fi_mr_key(mr), (void *)1), 0);
		settle(pair);
		rdm_expect(test, end, 1, len);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, len, i));
		memset(pair->out, 0, SZ_128K);
		KUNIT_EXPECT_EQ(test, fi_read(end->ep, pair->out, len, NULL, end->peer,
					      mr->base_addr, fi_mr_key(mr), (void *)2), 0);
		settle(pair);
		rdm_expect(test, end, 2, len);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->out, len, i));
	}
	KUNIT_EXPECT_EQ(test, rdm_of(end)->stats.reads + rdm_of(end)->stats.writes, 0);
	expect_local(test, pair);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

static int reads_of(struct fid_mr *mr)
{
	return atomic_read(&container_of(mr, struct kefa_mr, mr_fid)->reads);
}

/* A region isn't closed while a reader may copy from it, and is read in place. */
static void local_lent(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &local_opts);
	struct rdm_end *end = &pair->end[0];
	struct kefa_rdm *target = rdm_of(&pair->end[1]);
	struct fid_mr *mr;
	u64 copied;

	KUNIT_ASSERT_EQ(test, fi_mr_reg(pair->domain, pair->in, SZ_128K, FI_REMOTE_READ, 0, 0, 0,
					&mr, NULL), 0);
	one_message(test, pair, 8, true, false);
	settle(pair);
	efa_fill(pair->in, 7000, 1);
	copied = target->stats.copied;
	/* The reader doesn't look at its packets. */
	ignore_news(&pair->end[0]);
	KUNIT_EXPECT_EQ(test, fi_read(end->ep, pair->out, 7000, NULL, end->peer, mr->base_addr,
				      fi_mr_key(mr), (void *)2), 0);
	kefa_ep_kick(to_kefa_ep(pair->end[1].ep));
	efake_settle();
	KUNIT_EXPECT_EQ(test, target->local->nout, 1);
	KUNIT_EXPECT_EQ(test, reads_of(mr), 1);
	settle(pair);
	KUNIT_EXPECT_EQ(test, reads_of(mr), 0);
	rdm_expect(test, end, 2, 7000);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->out, 7000, 1));
	KUNIT_EXPECT_EQ(test, target->stats.copied, copied);
	KUNIT_EXPECT_EQ(test, target->ep.stats.bounced, 0);
	expect_local(test, pair);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* More long writes at once than a peer may have. Those that wait are kept without their data. */
static void local_many(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &local_opts);
	struct rdm_end *end = &pair->end[0];
	unsigned int i, done = 0;
	struct fid_mr *mr;

	KUNIT_ASSERT_EQ(test, fi_mr_reg(pair->domain, pair->in, SZ_128K, FI_REMOTE_WRITE, 0, 0, 0,
					&mr, NULL), 0);
	one_message(test, pair, 8, true, false);
	efa_fill(pair->out, 100000, 1);
	memset(pair->in, 0, SZ_128K);
	settle(pair);
	/* The target sees all requests at once. */
	ignore_news(&pair->end[1]);
	for (i = 0; i < 24; i++)
		KUNIT_EXPECT_EQ(test, fi_write(end->ep, pair->out, 100000, NULL, end->peer,
					       mr->base_addr, fi_mr_key(mr), (void *)1), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(({ settle(pair);
					     (done = rdm_read_all(end, done)) == 24; })));
	KUNIT_EXPECT_GT(test, rdm_of(&pair->end[1])->stats.waited, 0);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, 100000, 1));
	expect_local(test, pair);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* Atomic operations, with and without old values, in one element and many. */
static void local_atomics(struct kunit *test)
{
	static const size_t counts[] = { 1, 100, 400 };
	struct rdm_pair *pair = rdm_pair_new(test, &local_opts);
	u64 *mem = (u64 *)pair->in, *in = (u64 *)pair->out, *cmp = in + 512, *old = in + 1024;
	struct rdm_end *end = &pair->end[0];
	struct fid_mr *mr;
	size_t i, j, n;
	u64 key;

	KUNIT_ASSERT_EQ(test, fi_mr_reg(pair->domain, mem, SZ_8K, FI_REMOTE_READ | FI_REMOTE_WRITE,
					0, 0, 0, &mr, NULL), 0);
	key = fi_mr_key(mr);
	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		n = counts[i];
		for (j = 0; j < n; j++) {
			mem[j] = 10 * j;
			in[j] = j;
			cmp[j] = 12 * j;
		}
		KUNIT_EXPECT_EQ(test, fi_atomic(end->ep, in, n, NULL, end->peer, mr->base_addr, key,
						FI_UINT64, FI_SUM, (void *)1), 0);
		KUNIT_EXPECT_EQ(test, fi_fetch_atomic(end->ep, in, n, NULL, old, NULL, end->peer,
						      mr->base_addr, key, FI_UINT64, FI_SUM,
						      (void *)2), 0);
		settle(pair);
		rdm_expect(test, end, 1, n * sizeof(*in));
		rdm_expect(test, end, 2, n * sizeof(*in));
		for (j = 0; j < n; j++)
			KUNIT_EXPECT_TRUE(test, mem[j] == 12 * j && old[j] == 11 * j);
		KUNIT_EXPECT_EQ(test, fi_compare_atomic(end->ep, in, n, NULL, cmp, NULL, old, NULL,
							end->peer, mr->base_addr, key, FI_UINT64,
							FI_CSWAP, (void *)3), 0);
		settle(pair);
		rdm_expect(test, end, 3, n * sizeof(*in));
		for (j = 0; j < n; j++)
			KUNIT_EXPECT_TRUE(test, mem[j] == j && old[j] == 12 * j);
	}
	expect_local(test, pair);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* The sender isn't in the receiver's address vector. */
static void local_stranger(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &(struct rdm_opts){
		.local = true, .stranger = true,
	});

	KUNIT_EXPECT_EQ(test, post_recv(pair, true, SZ_128K, 2), 0);
	KUNIT_EXPECT_EQ(test, post_send(pair, true, 9000, 1), 0);
	settle(pair);
	efake_settle_all();
	settle(pair);
	rdm_expect(test, &pair->end[0], 1, 9000);
	rdm_expect(test, &pair->end[1], 2, 9000);
	/* It is forgotten, and comes back without its raw address. */
	KUNIT_EXPECT_TRUE(test, kefa_rdm_evict(to_kefa_ep(pair->end[1].ep)));
	KUNIT_EXPECT_EQ(test, post_recv(pair, true, SZ_128K, 2), 0);
	KUNIT_EXPECT_EQ(test, post_send(pair, true, 9000, 1), 0);
	settle(pair);
	efake_settle_all();
	settle(pair);
	rdm_expect(test, &pair->end[0], 1, 9000);
	rdm_expect(test, &pair->end[1], 2, 9000);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->peers.stats.recalled, 1);
	expect_local(test, pair);
}

/* An endpoint sends to itself. */
static void local_self(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &local_opts);
	struct rdm_end *end = &pair->end[1];
	size_t len;

	KUNIT_ASSERT_EQ(test, fi_av_insert(end->av, &end->name, 1, &end->peer, 0, NULL), 1);
	for (len = 1; len < SZ_128K; len *= 9) {
		efa_fill(pair->out, len, len);
		KUNIT_EXPECT_EQ(test, fi_tsend(end->ep, pair->out, len, NULL, end->peer, 5,
					       (void *)1), 0);
		settle(pair);
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, len, 5, 1), 0);
		settle(pair);
		rdm_expect(test, end, 1, len);
		rdm_expect(test, end, 1, len);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, len, len));
	}
	KUNIT_EXPECT_EQ(test, rdm_of(end)->ep.stats.doorbells, 0);
	/* Its own packets wait when it is closed. */
	KUNIT_EXPECT_EQ(test, fi_tsend(end->ep, pair->out, 8, NULL, end->peer, 5, (void *)1), 0);
	EFA_CLOSE(test, end->ep);
	end->ep = NULL;
}

/*
 * Messages without a receive use no more memory than the budget, and arrive in order later. Of one
 * that was passed as a whole, some packets may be kept, and the others wait at the sender.
 */
static void bounds_of(struct kunit *test, unsigned int most, size_t len)
{
	struct rdm_pair *pair = rdm_pair_new(test, &local_opts);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	unsigned int sent, got, done = 0;

	rdm->budget = SZ_64K;
	one_message(test, pair, 8, true, false);
	efa_fill(pair->out, len, 1);
	for (sent = 0; sent < most && !rdm_tsend(pair, len, 100 + sent, 1); sent++)
		settle(pair);
	KUNIT_EXPECT_GT(test, sent, most / 4);
	KUNIT_EXPECT_GT(test, rdm_of(&pair->end[0])->stats.rnr, 0);
	KUNIT_EXPECT_LE(test, rdm->kept, SZ_64K + 2 * KEFA_RX_LEAST * rdm->stride);
	for (got = 0; got < sent; got++) {
		memset(pair->in, 0, len);
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, len, 100 + got, 2), 0);
		KUNIT_EXPECT_TRUE(test, kofi_soon(({ settle(pair);
						     rdm_read(&pair->end[1]).ret == 1; })));
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, len, 1));
	}
	KUNIT_EXPECT_TRUE(test, kofi_soon((done = rdm_read_all(&pair->end[0], done)) == sent));
	expect_local(test, pair);
	rdm_pair_end(pair);
}

static void local_bounds(struct kunit *test)
{
	bounds_of(test, 100, 7000);
	bounds_of(test, 12, SZ_64K);
}

/* Have the second end take the first @admits packets of the message that it has been passed. */
static void take_partly(struct kunit *test, struct rdm_pair *pair, u32 admits)
{
	struct kefa_rdm *to = rdm_of(&pair->end[1]);
	struct kefa_ts_queue *in = &to->local->in[KEFA_LOCAL_REQUESTS];
	struct kefa_ts *ts;

	spin_lock_bh(&to->ep.lock);
	spin_lock(&to->local->lock);
	ts = in->head;
	in->head = NULL;
	in->tail = &in->head;
	spin_unlock(&to->local->lock);
	KUNIT_EXPECT_NOT_NULL(test, ts);
	if (ts) {
		KUNIT_EXPECT_NULL(test, ts->next);
		ts->status = kefa_local_packets(to, ts, &admits);
		KUNIT_EXPECT_EQ(test, ts->status, KEFA_STATUS_RNR);
		kefa_local_return(ts, ts);
	}
	spin_unlock_bh(&to->ep.lock);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(in->head)));
}

/* A peer that takes only some packets of a message is ready: the delay doesn't grow. */
static void local_partly(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &local_opts);
	struct kefa_rdm *from = rdm_of(&pair->end[0]);
	struct kefa_backoff *backoff;
	int i;

	one_message(test, pair, 8, true, false);
	settle(pair);
	backoff = &peer_of(&pair->end[0])->backoff;
	ignore_news(&pair->end[1]);
	efa_fill(pair->out, SZ_64K, 1);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, SZ_64K, 5, 1), 0);
	for (i = 0; i < 3; i++) {
		spin_lock_bh(&from->ep.lock);
		backoff->delay_us = USEC_PER_SEC;
		spin_unlock_bh(&from->ep.lock);
		take_partly(test, pair, 1);
		spin_lock_bh(&from->ep.lock);
		KUNIT_EXPECT_EQ(test, backoff->delay_us, 0U);
		KUNIT_EXPECT_FALSE(test, backoff->waiting);
		spin_unlock_bh(&from->ep.lock);
	}
	/* It takes none. The packet was sent again at once, so now there is the first delay. */
	take_partly(test, pair, 0);
	spin_lock_bh(&from->ep.lock);
	KUNIT_EXPECT_GT(test, backoff->delay_us, 0U);
	KUNIT_EXPECT_LE(test, backoff->delay_us, (u32)KEFA_BACKOFF_FIRST_MAX_US);
	spin_unlock_bh(&from->ep.lock);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, SZ_64K, 5, 2), 0);
	settle(pair);
	rdm_expect(test, &pair->end[0], 1, SZ_64K);
	rdm_expect(test, &pair->end[1], 2, SZ_64K);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, SZ_64K, 1));
	expect_local(test, pair);
}

/* Messages that have their receives need no memory: a budget that is used up doesn't delay them. */
static void local_expected(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &local_opts);
	const unsigned int kept = KEFA_RX_LEAST + 8, all = 8;
	struct kefa_rdm *to = rdm_of(&pair->end[1]);
	unsigned int i, done = 0;
	u64 budget = to->budget;

	one_message(test, pair, 8, true, false);
	for (i = 0; i < kept; i++)
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 7000, 100 + i, 1), 0);
	settle(pair);
	KUNIT_EXPECT_EQ(test, to->stats.unexpected, kept);
	to->budget = 1;
	for (i = 0; i < all; i++)
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, i, 10 + i), 0);
	for (i = 0; i < all; i++)
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, i, 1), 0);
	settle(pair);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[0])->stats.rnr, 0);
	for (i = 0; i < all; i++)
		rdm_expect(test, &pair->end[1], 10 + i, 8);
	to->budget = budget;
	for (i = 0; i < kept; i++) {
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 7000, 100 + i, 2), 0);
		rdm_expect(test, &pair->end[1], 2, 7000);
	}
	KUNIT_EXPECT_TRUE(test, kofi_soon((done = rdm_read_all(&pair->end[0], done)) ==
					  kept + all));
	expect_local(test, pair);
}

/* Either endpoint is closed while the other one has its packets. */
static void local_closed(struct kunit *test)
{
	struct rdm_pair *pair;
	int which;

	for (which = 0; which < 2; which++) {
		pair = rdm_pair_new(test, &local_opts);
		one_message(test, pair, 8, true, false);
		/* The other endpoint doesn't look at its packets. */
		ignore_news(&pair->end[1]);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 7000, 1, 7), 0);
		rdm_expect_nothing(test, &pair->end[0]);
		if (!which)
			KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[0])->local->nout, 1);
		EFA_CLOSE(test, pair->end[which].ep);
		pair->end[which].ep = NULL;
		settle(pair);
		rdm_expect_error(test, &pair->end[0], 7, which ? ECONNRESET : ECANCELED);
		rdm_expect_nothing(test, &pair->end[0]);
		/* A message to an endpoint that is gone fails in the same way. */
		if (which)
			KUNIT_EXPECT_NE(test, rdm_tsend(pair, 7000, 1, 7), 0);
		rdm_pair_end(pair);
	}
}

/* The option at either end, the parameter, and different MTUs have the device used. */
static void local_off(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	bool value = true;
	size_t len = sizeof(value);
	struct fid_ep *ep;

	KUNIT_EXPECT_NULL(test, rdm_of(&pair->end[0])->local);
	KUNIT_EXPECT_EQ(test, fi_endpoint(pair->domain, pair->info, &ep, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_SHARED_MEMORY_PERMITTED,
					&value, sizeof(value)), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_getopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_SHARED_MEMORY_PERMITTED,
					&value, &len), 0);
	KUNIT_EXPECT_FALSE(test, value);
	EFA_CLOSE(test, ep);
	rdm_pair_end(pair);

	pair = rdm_pair_new(test, &(struct rdm_opts){ .local = true, .not_local = true });
	KUNIT_EXPECT_EQ(test, fi_getopt(&pair->end[0].ep->fid, FI_OPT_ENDPOINT,
					FI_OPT_SHARED_MEMORY_PERMITTED, &value, &len), 0);
	KUNIT_EXPECT_TRUE(test, value);
	KUNIT_EXPECT_EQ(test, fi_getopt(&pair->end[1].ep->fid, FI_OPT_ENDPOINT,
					FI_OPT_SHARED_MEMORY_PERMITTED, &value, &len), 0);
	KUNIT_EXPECT_FALSE(test, value);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 1, 7), 0);
	settle(pair);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[0])->stats.local, 0);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[0])->ep.stats.doorbells, 1);
	rdm_pair_end(pair);

	pair = rdm_pair_new(test, &local_opts);
	KUNIT_EXPECT_NOT_NULL(test, peer_of(&pair->end[0])->local);
	KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[0].av, &pair->end[0].peer, 1, 0), 0);
	rdm_of(&pair->end[1])->local->mtu--;
	KUNIT_ASSERT_EQ(test, fi_av_insert(pair->end[0].av, &pair->end[1].name, 1,
					   &pair->end[0].peer, 0, NULL), 1);
	KUNIT_EXPECT_NULL(test, peer_of(&pair->end[0])->local);
}

/* Write a message in the name of the first endpoint. Return: its length. */
static size_t forged(struct rdm_pair *pair, enum kefa_signs how, u32 msg_id)
{
	struct kefa_pkt pkt = {
		.row	= kefa_row_of(KEFA_EAGER_TAGRTM_PKT),
		.tag	= 5,
		.msg_id	= msg_id,
	};

	kefa_shake_sign_as(&rdm_of(&pair->end[0])->self, how, &pkt);
	return kefa_build(&pkt, packet, sizeof(packet)) + 8;
}

/* A packet that the device receives is not a local peer's, though it has its address. */
static void local_liar(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &local_opts);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);

	one_message(test, pair, 8, true, false);
	rdm_inject(pair, packet, forged(pair, KEFA_SIGNS_RAW, 1));
	rdm_inject(pair, packet, forged(pair, KEFA_SIGNS_CONNID, 1));
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_LIAR], 2);
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0);
	one_message(test, pair, 9, true, false);
	expect_local(test, pair);
	rdm_pair_end(pair);

	/* It is met by the lie, and isn't in the address vector. */
	pair = rdm_pair_new(test, &(struct rdm_opts){ .local = true, .stranger = true });
	rdm = rdm_of(&pair->end[1]);
	rdm_inject(pair, packet, forged(pair, KEFA_SIGNS_RAW, 0));
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_LIAR], 1);
	KUNIT_EXPECT_EQ(test, rdm->stats.unexpected, 0);
	one_message(test, pair, 8, true, false);
	expect_local(test, pair);
}

static void sleeper_main(struct kofi_thread *thread)
{
	struct rdm_end *end = thread->arg;
	struct fi_cq_tagged_entry entry;

	thread->ret = fi_cq_sread(end->cq, &entry, 1, NULL, KOFI_NEVER_MS);
}

/* A reader that sleeps is woken, and one that polls finds what has come. */
static void local_readers(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &(struct rdm_opts) {
		.local = true, .sleepers = true,
	});
	struct rdm_end *end = &pair->end[1];
	struct wait_queue_head *wait = &to_kefa_ep(end->ep)->rx.base.cq->notifier.wait;
	struct kofi_thread thread;
	unsigned int i;

	one_message(test, pair, 8, true, false);
	KUNIT_EXPECT_TRUE(test, to_kefa_ep(end->ep)->by_readers);
	for (i = 0; i < 20; i++) {
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 2), 0);
		if (i & 1) {
			kofi_thread_start(test, &thread, sleeper_main, end);
			KUNIT_EXPECT_TRUE(test, kofi_soon(kofi_sleepers(wait)));
		}
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 1), 0);
		if (i & 1) {
			kofi_thread_join(test, &thread);
			KUNIT_EXPECT_EQ(test, thread.ret, 1);
		} else {
			KUNIT_EXPECT_TRUE(test, kofi_soon(rdm_read(end).ret == 1));
		}
		KUNIT_EXPECT_TRUE(test, kofi_soon(rdm_read(&pair->end[0]).ret == 1));
	}
	expect_local(test, pair);
}

/* --- storms --- */

struct storm {
	struct rdm_pair	*pair;
	bool		stop;
	u32		posted;
	u32		ended;
};

static unsigned int ends(struct rdm_end *end)
{
	unsigned int n = 0;

	while (rdm_read(end).ret != -EAGAIN)
		n++;
	return n;
}

/* Send messages of all lengths as fast as possible. */
static void storm_main(struct kofi_thread *thread)
{
	static const size_t lens[] = { 8, 600, 8, 8000, 0, 20000, 8, 100000 };
	struct storm *s = thread->arg;
	unsigned int i;

	for (i = 0; !READ_ONCE(s->stop); i++) {
		if (!rdm_tsend(s->pair, lens[i % ARRAY_SIZE(lens)], i, 1))
			WRITE_ONCE(s->posted, s->posted + 1);
		s->ended += ends(&s->pair->end[0]);
		cond_resched();
	}
}

enum how { CLOSE_TO, CLOSE_FROM, REMOVE_PEER, REMOVE_DEVICE, HOWS };

static void storm_end(struct kunit *test, struct storm *s, struct kofi_thread *thread, enum how how)
{
	struct rdm_pair *pair = s->pair;

	if (how == CLOSE_TO) {
		EFA_CLOSE(test, pair->end[1].ep);
		pair->end[1].ep = NULL;
	} else if (how == REMOVE_PEER) {
		KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[0].av, &pair->end[0].peer, 1, 0), 0);
	} else if (how == REMOVE_DEVICE) {
		efake_remove(pair->fake);
	}
	usleep_range(0, 200);
	WRITE_ONCE(s->stop, true);
	kofi_thread_join(test, thread);
	/* Operations that wait for an answer end when another packet finds the peer gone. */
	if (how == CLOSE_TO && !rdm_tsend(pair, 8, 0, 1))
		s->posted++;
	if (how == CLOSE_FROM) {
		EFA_CLOSE(test, pair->end[0].ep);
		pair->end[0].ep = NULL;
	}
	KUNIT_EXPECT_TRUE(test, kofi_soon((s->ended += ends(&pair->end[0])) == s->posted));
}

static void storm(struct kunit *test, enum how how, unsigned int round)
{
	struct storm s = { .pair = rdm_pair_new(test, &local_opts) };
	struct rdm_pair *pair = s.pair;
	struct kofi_thread thread;
	unsigned int i;

	/* In some rounds the receiver runs out of memory, so that packets wait at the sender. */
	if (round & 1)
		rdm_of(&pair->end[1])->budget = SZ_64K;
	kofi_thread_start(test, &thread, storm_main, &s);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(s.posted) > 0));
	for (i = 0; i < round % 8; i++) {
		fi_trecv(pair->end[1].ep, pair->in, SZ_128K, NULL, FI_ADDR_UNSPEC, 0, ~0ULL,
			 (void *)2);
		ends(&pair->end[1]);
		usleep_range(0, 200);
	}
	storm_end(test, &s, &thread, how);
	rdm_pair_end(pair);
}

/* Either endpoint is closed, the peer is removed, or the device, while messages are sent. */
static void local_storms(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < 40; i++)
		storm(test, i % HOWS, i / HOWS);
}

/* --- model --- */

#define CHAOS_SLOTS	8
#define CHAOS_BYTES	24000

/* Messages in both directions, each with a number, and a slot for every CHAOS_SLOTS-th. */
struct chaos {
	struct rdm_pair	*pair;
	u8		*out[2][CHAOS_SLOTS];
	u8		*in[2][CHAOS_SLOTS];
	bool		sending[2][CHAOS_SLOTS];
	bool		taking[2][CHAOS_SLOTS];
	u32		sent[2];
	u32		taken[2];
	u32		arrived[2];
};

static size_t chaos_len(u32 n)
{
	static const size_t lens[] = { 8, 0, 500, 9000, 100, 8100, CHAOS_BYTES, 3000 };

	return lens[n % 61 % ARRAY_SIZE(lens)];
}

static void chaos_send(struct chaos *c, int from)
{
	const u32 n = c->sent[from], slot = n % CHAOS_SLOTS;
	struct rdm_end *end = &c->pair->end[from];

	if (c->sending[from][slot])
		return;
	efa_fill(c->out[from][slot], chaos_len(n), n);
	if (fi_tsend(end->ep, c->out[from][slot], chaos_len(n), NULL, end->peer, n,
		     (void *)(1L + slot)))
		return;
	c->sending[from][slot] = true;
	c->sent[from]++;
}

static void chaos_take(struct chaos *c, int at)
{
	const u32 n = c->taken[at], slot = n % CHAOS_SLOTS;

	if (c->taking[at][slot])
		return;
	if (fi_trecv(c->pair->end[at].ep, c->in[at][slot], CHAOS_BYTES, NULL, FI_ADDR_UNSPEC, n, 0,
		     (void *)(1L + CHAOS_SLOTS + n)))
		return;
	c->taking[at][slot] = true;
	c->taken[at]++;
}

static void chaos_read(struct kunit *test, struct chaos *c, int at)
{
	struct rdm_comp comp;
	u32 n;

	while ((comp = rdm_read(&c->pair->end[at])).ret == 1) {
		n = (long)comp.entry.op_context - 1;
		if (n < CHAOS_SLOTS) {
			c->sending[at][n] = false;
			continue;
		}
		n -= CHAOS_SLOTS;
		c->taking[at][n % CHAOS_SLOTS] = false;
		c->arrived[at]++;
		KUNIT_EXPECT_EQ(test, comp.entry.tag, n);
		KUNIT_EXPECT_EQ(test, comp.entry.len, chaos_len(n));
		KUNIT_EXPECT_TRUE(test, efa_filled(c->in[at][n % CHAOS_SLOTS], chaos_len(n), n));
	}
	KUNIT_EXPECT_EQ(test, comp.ret, -EAGAIN);
}

static void local_chaos(struct kunit *test)
{
	struct chaos *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	struct rnd_state rnd;
	int i, j, at;
	u32 what;

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->pair = rdm_pair_new(test, &local_opts);
	prandom_seed_state(&rnd, 5);
	for (i = 0; i < 2; i++) {
		rdm_of(&c->pair->end[i])->budget = SZ_64K;
		for (j = 0; j < CHAOS_SLOTS; j++) {
			c->out[i][j] = kunit_kzalloc(test, CHAOS_BYTES, GFP_KERNEL);
			c->in[i][j] = kunit_kzalloc(test, CHAOS_BYTES, GFP_KERNEL);
			KUNIT_ASSERT_TRUE(test, c->out[i][j] && c->in[i][j]);
		}
	}
	for (i = 0; i < 4000; i++) {
		what = prandom_u32_state(&rnd);
		at = what & 1;
		if (what >> 1 & 1)
			chaos_send(c, at);
		else if (what >> 2 & 3)
			chaos_take(c, at);
		if (!(what >> 8 & 3))
			chaos_read(test, c, what >> 16 & 1);
	}
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_TRUE(test, kofi_soon(({
			if (c->taken[i] < c->sent[!i])
				chaos_take(c, i);
			chaos_read(test, c, 0);
			chaos_read(test, c, 1);
			c->arrived[i] == c->sent[!i]; })));
	KUNIT_EXPECT_GT(test, c->sent[0] + c->sent[1], 300);
	/* Receives may be left that were posted for messages to come. */
	for (i = 0; i < 2; i++)
		while (c->taken[i] > c->sent[!i] && c->sent[!i] < c->taken[i])
			KUNIT_EXPECT_TRUE(test, kofi_soon(({
				chaos_send(c, !i);
				chaos_read(test, c, 0);
				chaos_read(test, c, 1);
				c->sent[!i] == c->taken[i]; })));
	KUNIT_EXPECT_TRUE(test, kofi_soon(({
		chaos_read(test, c, 0);
		chaos_read(test, c, 1);
		c->arrived[0] == c->taken[0] && c->arrived[1] == c->taken[1]; })));
	expect_local(test, c->pair);
}

static struct kunit_case local_cases[] = {
	KUNIT_CASE(local_messages),
	KUNIT_CASE(local_once),
	KUNIT_CASE(local_whole),
	KUNIT_CASE(local_slab),
	KUNIT_CASE(local_turns),
	KUNIT_CASE(local_rma),
	KUNIT_CASE(local_lent),
	KUNIT_CASE(local_many),
	KUNIT_CASE(local_atomics),
	KUNIT_CASE(local_stranger),
	KUNIT_CASE(local_self),
	KUNIT_CASE(local_bounds),
	KUNIT_CASE(local_partly),
	KUNIT_CASE(local_expected),
	KUNIT_CASE(local_closed),
	KUNIT_CASE(local_off),
	KUNIT_CASE(local_liar),
	KUNIT_CASE(local_readers),
	KUNIT_CASE_SLOW(local_storms),
	KUNIT_CASE_SLOW(local_chaos),
	{}
};

static struct kunit_suite local_suite = {
	.name		= "kefa_rdm_local",
	.test_cases	= local_cases,
};

kunit_test_suite(local_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, endpoints in one kernel");
MODULE_LICENSE("Dual BSD/GPL");
