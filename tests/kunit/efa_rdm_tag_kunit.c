// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hooks of fabric efa for connections: the end of the operations with one tag, completions of
 * tagged messages as of untagged ones and of reads and writes without tags, and news of peers that
 * have died.
 */
#include "crew.h"
#include "efa_rdm_far.h"
#include "../../prov/efa/rdm/local.h"

#define SHORT_MS	20
#define LONG_MS		20000
/* A message that its receiver grants part by part. */
#define LONG_LEN	100000

static int flush_ms(struct rdm_pair *pair, int at, u64 tag, unsigned int ms)
{
	struct fid_ep *ep = pair->end[at].ep;

	return ep->ops->flush_tag(ep, tag, ms);
}

static int flush(struct rdm_pair *pair, int at, u64 tag)
{
	return flush_ms(pair, at, tag, SHORT_MS);
}

static void send_works(struct kunit *test, struct rdm_pair *pair, u64 tag)
{
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 100, tag, 11), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 100, tag, 12), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 12, 100);
	rdm_expect(test, &pair->end[1], 11, 100);
	rdm_expect_whole(test, pair);
}

static void expect_no_deaths(struct kunit *test, struct rdm_pair *pair)
{
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[0])->stats.deaths, 0);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->stats.deaths, 0);
}

static ssize_t send_flags(struct rdm_pair *pair, size_t len, u64 tag, long ctx, u64 flags)
{
	struct kvec iov = { pair->out, len };
	struct fi_msg_tagged msg = {
		.addr = pair->end[0].peer, .tag = tag, .context = (void *)ctx, .data = 7,
	};

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, len);
	return fi_tsendmsg(pair->end[0].ep, &msg, flags);
}

/* --- the end of a tag --- */

static void tag_posted(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct rdm_end *end = &pair->end[1];

	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 100, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 100, 2, 2), 0);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 100, 1, 3), 0);
	/* An untagged receive has no tag, not even 0. */
	KUNIT_EXPECT_EQ(test, fi_recv(end->ep, pair->in, 8, NULL, FI_ADDR_UNSPEC, (void *)4), 0);
	KUNIT_EXPECT_EQ(test, flush(pair, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, flush(pair, 1, 3), 0);
	rdm_expect_nothing(test, end);
	KUNIT_EXPECT_EQ(test, flush(pair, 1, 1), 0);
	rdm_expect_error(test, end, 1, ECANCELED);
	rdm_expect_error(test, end, 3, ECANCELED);
	rdm_expect_nothing(test, end);
	KUNIT_EXPECT_EQ(test, flush(pair, 1, 2), 0);
	rdm_expect_error(test, end, 2, ECANCELED);
	KUNIT_EXPECT_EQ(test, fi_cancel(&end->ep->fid, (void *)4), 0);
	rdm_expect_error(test, end, 4, ECANCELED);
	send_works(test, pair, 1);
	expect_no_deaths(test, pair);
}

/* A message that waits for the peer's HANDSHAKE has no number, so it can be taken back. */
static void tag_waiting(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);

	KUNIT_EXPECT_EQ(test, send_flags(pair, 100, 5, 1, FI_DELIVERY_COMPLETE), 0);
	KUNIT_EXPECT_EQ(test, send_flags(pair, 100, 6, 2, FI_DELIVERY_COMPLETE), 0);
	efake_settle();
	KUNIT_EXPECT_EQ(test, flush(pair, 0, 5), 0);
	rdm_expect_error(test, &pair->end[0], 1, ECANCELED);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 100, 6, 3), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, 100);
	rdm_expect(test, &pair->end[1], 3, 100);
	expect_no_deaths(test, pair);
	send_works(test, pair, 5);
}

/**
 * struct flusher - a flush on a thread
 * @pair: the endpoints
 * @at: index of the endpoint
 * @tag: the tag
 */
struct flusher {
	struct rdm_pair	*pair;
	int		at;
	u64		tag;
};

static void flush_long(struct kofi_thread *thread)
{
	struct flusher *f = thread->arg;

	thread->ret = flush_ms(f->pair, f->at, f->tag, LONG_MS);
}

/* A message that has its number gets time to be delivered, and its peer stays alive. */
static void tag_sent_len(struct kunit *test, struct rdm_pair *pair, size_t len, u64 flags)
{
	struct flusher f = { .pair = pair, .tag = 1 };
	struct kofi_thread thread;

	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, LONG_LEN, 1, 2), 0);
	KUNIT_EXPECT_EQ(test, send_flags(pair, len, 1, 1, flags | FI_COMPLETION), 0);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 100, 3, 4), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 100, 3, 3), 0);
	kofi_thread_start(test, &thread, flush_long, &f);
	msleep(SHORT_MS);
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&thread, 0));
	rdm_run(pair);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 0);
	KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[0], 0), 2);
	KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[1], 0), 2);
	send_works(test, pair, 1);
	expect_no_deaths(test, pair);
}

static void tag_sent(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);

	tag_sent_len(test, pair, 8, 0);
	tag_sent_len(test, pair, 5000, 0);
	tag_sent_len(test, pair, 20000, 0);
	tag_sent_len(test, pair, LONG_LEN, 0);
	tag_sent_len(test, pair, 8, FI_DELIVERY_COMPLETE);
}

/* A message that the receiver reads. */
static void tag_sent_read(struct kunit *test)
{
	tag_sent_len(test, rdm_reading_pair(test), RDM_READ_FROM, 0);
}

/**
 * struct seen - a watch, and what it has seen
 * @watch: the watch
 * @n: number of deaths
 * @addr: the last dead peer
 */
struct seen {
	struct kofi_watch	watch;
	unsigned int		n;
	fi_addr_t		addr;
};

static void see_dead(struct kofi_watch *watch, fi_addr_t addr)
{
	struct seen *seen = container_of(watch, struct seen, watch);

	seen->n++;
	seen->addr = addr;
}

/* A message that isn't delivered in time costs the peer its life, which the owner learns. */
static void tag_stuck(struct kunit *test)
{
	struct seen seen = { .watch.peer_dead = see_dead, .addr = FI_ADDR_UNSPEC };
	struct rdm_pair *pair = rdm_ready_pair(test, &(struct rdm_opts) { .watch = &seen.watch });
	fi_addr_t again;

	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 100, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 100, 2, 2), 0);
	KUNIT_EXPECT_EQ(test, flush(pair, 0, 1), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, seen.n, 1);
	KUNIT_EXPECT_EQ(test, seen.addr, pair->end[0].peer);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 100, 1, 3), -EHOSTUNREACH);
	rdm_finish_sent(pair, 0, 0);
	KUNIT_EXPECT_EQ(test, flush(pair, 0, 1), 0);
	rdm_expect_error(test, &pair->end[0], 1, ECANCELED);
	rdm_expect_error(test, &pair->end[0], 2, ECANCELED);
	rdm_expect_whole(test, pair);
	/* Death is final, which the owner is told when the address is inserted again, too. */
	KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[0].av, &pair->end[0].peer, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_av_insert(pair->end[0].av, &pair->end[1].name, 1, &again, 0,
					   NULL), 1);
	KUNIT_EXPECT_EQ(test, fi_tsend(pair->end[0].ep, pair->out, 8, NULL, again, 1, NULL),
			-EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, seen.n, 2);
	KUNIT_EXPECT_EQ(test, seen.addr, again);
}

/* A receive whose message arrives ends, nothing is written any more, and the sender completes. */
static void tag_arriving_len(struct kunit *test, struct rdm_pair *pair, size_t len, bool some)
{
	efa_fill(pair->out, len, 3);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, len, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, len, 1, 2), 0);
	if (some)
		KUNIT_EXPECT_TRUE(test, rdm_deliver(pair, 0));
	efake_settle();
	KUNIT_EXPECT_EQ(test, flush(pair, 1, 1), 0);
	rdm_expect_error(test, &pair->end[1], 1, ECANCELED);
	memset(pair->in, 0, len);
	rdm_run(pair);
	KUNIT_EXPECT_NULL(test, memchr_inv(pair->in, 0, len));
	/* Messages that begin after the end are dropped by the next one. */
	KUNIT_EXPECT_EQ(test, flush(pair, 1, 1), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, len);
	rdm_expect_nothing(test, &pair->end[1]);
	send_works(test, pair, 1);
	expect_no_deaths(test, pair);
}

static void tag_arriving(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);

	tag_arriving_len(test, pair, 20000, true);
	tag_arriving_len(test, pair, LONG_LEN, true);
	tag_arriving_len(test, pair, 8, false);
	tag_arriving_len(test, pair, 20000, false);
	tag_arriving_len(test, pair, LONG_LEN, false);
}

/* Messages that wait for a receive are dropped, and answered if their senders wait for that. */
static void tag_kept(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	static const size_t lens[] = { 0, 8, 5000, 16000, RDM_READ_FROM, LONG_LEN };
	int i;

	for (i = 0; i < ARRAY_SIZE(lens); i++)
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, lens[i], 1, i + 1), 0);
	KUNIT_EXPECT_EQ(test, send_flags(pair, 8, 1, ++i, FI_DELIVERY_COMPLETE), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 2, ++i), 0);
	rdm_run(pair);
	KUNIT_EXPECT_GT(test, rdm_of(&pair->end[1])->kept, 0);
	KUNIT_EXPECT_EQ(test, flush(pair, 1, 3), 0);
	KUNIT_EXPECT_EQ(test, flush(pair, 1, 1), 0);
	rdm_run(pair);
	rdm_expect_nothing(test, &pair->end[1]);
	KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[0], 0), i);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 2, 20), 0);
	rdm_expect(test, &pair->end[1], 20, 8);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->kept, 0);
	send_works(test, pair, 1);
	expect_no_deaths(test, pair);
}

/*
 * A message is dropped only when other operations have ended, as it needs one. Its sender gets its
 * answer, though nothing else happens any more.
 */
static void tag_kept_later(struct kunit *test)
{
	static struct kefa_rop *taken[KEFA_RDM_SPARE_OPS + KEFA_TARGETS];
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct flusher f = { .pair = pair, .at = 1, .tag = 1 };
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct kofi_thread thread;
	u32 n = 0;

	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, RDM_READ_FROM, 1, 1), 0);
	rdm_run(pair);
	KUNIT_EXPECT_GT(test, rdm->kept, 0);
	spin_lock_bh(&rdm->ep.lock);
	while (n < ARRAY_SIZE(taken) &&
	       rdm->rops.size - rdm->rops.used > rdm->ep.tx.nfree + rdm->ep.rx.nfree) {
		taken[n] = kefa_rop_take(&rdm->rops, KEFA_ROP_SINK);
		taken[n++]->flags = KEFA_ROP_TOLD;
	}
	spin_unlock_bh(&rdm->ep.lock);
	KUNIT_EXPECT_GT(test, n, 0U);
	kofi_thread_start(test, &thread, flush_long, &f);
	msleep(SHORT_MS);
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&thread, 0));
	spin_lock_bh(&rdm->ep.lock);
	while (n--) {
		taken[n]->flags |= KEFA_ROP_OVER;
		kefa_rop_end(&rdm->rops, taken[n]);
	}
	spin_unlock_bh(&rdm->ep.lock);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 0);
	efake_settle();
	KUNIT_EXPECT_NOT_NULL(test, efake_sent(pair->end[1].qp, 0));
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 1, RDM_READ_FROM);
	send_works(test, pair, 1);
	expect_no_deaths(test, pair);
}

static void see_no_dead(struct kofi_watch *watch, fi_addr_t addr)
{
}

static bool tag_is_1(struct kofi_watch *watch, u64 tag)
{
	return tag == 1;
}

/*
 * A peer that hasn't heard of the end of a connection sends more. Its messages don't wait for a
 * receive that never comes, and its sends complete.
 */
static void tag_ended(struct kunit *test)
{
	static const size_t lens[] = { 0, 8, 5000, 16000, LONG_LEN };
	struct kofi_watch watch = { .peer_dead = see_no_dead, .tag_ended = tag_is_1 };
	struct rdm_pair *pair = rdm_ready_pair(test, &(struct rdm_opts) { .watch = &watch });
	struct rdm_end *from = &pair->end[1], *to = &pair->end[0];
	int i;

	for (i = 0; i < ARRAY_SIZE(lens); i++)
		KUNIT_EXPECT_EQ(test, fi_tsend(from->ep, pair->out, lens[i], NULL, from->peer, 1,
					       (void *)(i + 1L)), 0);
	rdm_run(pair);
	KUNIT_EXPECT_EQ(test, rdm_read_all(from, 0), i);
	rdm_expect_nothing(test, to);
	KUNIT_EXPECT_EQ(test, rdm_of(to)->kept, 0);
	/* Messages with other tags wait. */
	KUNIT_EXPECT_EQ(test, fi_tsend(from->ep, pair->out, 8, NULL, from->peer, 2, (void *)9), 0);
	rdm_run(pair);
	rdm_expect(test, from, 9, 8);
	KUNIT_EXPECT_GT(test, rdm_of(to)->kept, 0);
	KUNIT_EXPECT_EQ(test, fi_trecv(to->ep, pair->in, 8, NULL, FI_ADDR_UNSPEC, 2, 0,
				       (void *)10), 0);
	rdm_expect(test, to, 10, 8);
	rdm_expect_whole(test, pair);
	expect_no_deaths(test, pair);
}

/* Messages that the device has received, but nobody has looked at, are dropped as well. */
static void tag_unseen(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	int i;

	for (i = 0; i < 40; i++) {
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 1, 1), 0);
		KUNIT_EXPECT_TRUE(test, rdm_deliver(pair, 0));
		KUNIT_EXPECT_EQ(test, flush(pair, 1, 1), 0);
		KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->kept, 0);
		rdm_run(pair);
		rdm_expect(test, &pair->end[0], 1, 8);
	}
	send_works(test, pair, 1);
}

/* A message that a peer in the same kernel has passed on has arrived, too, though nobody looked. */
static void tag_passed(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, &(struct rdm_opts) { .local = true });
	struct kefa_local *local = rdm_of(&pair->end[1])->local;
	int i;

	for (i = 0; i < 40; i++)
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 100, 1, i), 0);
	/* As if the endpoint was about to look. */
	spin_lock_bh(&local->lock);
	local->news = true;
	spin_unlock_bh(&local->lock);
	for (i = 0; i < 40; i++)
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 100, 1, i), 0);
	KUNIT_EXPECT_EQ(test, flush(pair, 1, 1), 0);
	for (i = 0; i < 40; i++)
		rdm_expect(test, &pair->end[1], i, 100);
	efake_settle_all();
	for (i = 0; i < 40; i++)
		rdm_expect(test, &pair->end[0], i, 100);
	rdm_expect_whole(test, pair);
	expect_no_deaths(test, pair);
}

/* The device is removed at any time while the call waits. */
static void tag_removed(struct kunit *test)
{
	struct kofi_thread thread;
	struct rdm_pair *pair;
	struct flusher f;
	unsigned int i;

	for (i = 0; i < 10; i++) {
		pair = rdm_ready_pair(test, NULL);
		f = (struct flusher) { .pair = pair, .tag = 1 };
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 100, 1, 1), 0);
		kofi_thread_start(test, &thread, flush_long, &f);
		usleep_range(100 * i, 100 * i + 100);
		efake_remove(pair->fake);
		kofi_thread_join(test, &thread);
		KUNIT_EXPECT_EQ(test, thread.ret, 0);
		KUNIT_EXPECT_EQ(test, flush(pair, 0, 1), 0);
		rdm_expect_error(test, &pair->end[0], 1, ENODEV);
		EFA_CLOSE(test, pair->end[0].ep);
		EFA_CLOSE(test, pair->end[1].ep);
	}
}

/* --- reads and writes --- */

/**
 * struct far_call - a call on the peer's memory with a tag, as connections make them
 * @what: FI_RMA or FI_ATOMIC, and FI_READ or FI_WRITE
 * @flags: operation flags
 * @len: length in bytes; an atomic operation has one element
 * @key: number that is added to the region's key
 * @tag: the tag
 */
struct far_call {
	u64	what;
	u64	flags;
	size_t	len;
	u64	key;
	u64	tag;
};

static ssize_t far_fetch(struct far *far, const struct far_call *c, long ctx)
{
	struct rdm_end *end = &far->pair->end[0];
	const struct fi_ioc operand = { far->data, 1 }, result = { far->data + 8, 1 };
	const struct fi_rma_ioc rma = {
		.addr = far->mr->base_addr, .count = 1, .key = fi_mr_key(far->mr) + c->key,
	};
	struct kofi_atomic_req areq = {
		.req = {
			.what = c->what, .flags = c->flags | FI_COMPLETION, .addr = end->peer,
			.tag = c->tag, .context = (void *)ctx,
		},
		.datatype = FI_UINT64, .op = FI_SUM,
		.operand = { .iov = &operand, .count = 1 },
		.result = { .iov = &result, .count = 1 },
		.rma = &rma, .rma_count = 1,
	};

	return end->ep->req->tx(end->ep, &areq.req);
}

static ssize_t far_do(struct far *far, const struct far_call *c, long ctx)
{
	struct rdm_end *end = &far->pair->end[0];
	struct kvec iov = { far->data, c->len };
	struct fi_rma_iov rma = far_piece(far, 0, c->len);
	struct kofi_req req = {
		.what = c->what, .flags = c->flags | FI_COMPLETION, .addr = end->peer,
		.tag = c->tag, .context = (void *)ctx, .rma = &rma, .rma_count = 1,
	};

	if (c->what & FI_ATOMIC)
		return far_fetch(far, c, ctx);
	rma.key += c->key;
	iov_iter_kvec(&req.iter, c->what & FI_READ ? ITER_DEST : ITER_SOURCE, &iov, 1, c->len);
	return end->ep->req->tx(end->ep, &req);
}

static const u64 far_whats[] = { FI_RMA | FI_WRITE, FI_RMA | FI_READ, FI_ATOMIC | FI_READ };

/* An operation that waits for its fence is taken back, with its own tag only. */
static void far_waiting(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct rdm_end *end = &far->pair->end[0];
	struct far_call c;
	int i;

	for (i = 0; i < ARRAY_SIZE(far_whats); i++) {
		c = (struct far_call) { .what = far_whats[i], .len = 8, .tag = 1 };
		KUNIT_EXPECT_EQ(test, far_do(far, &c, 1), 0);
		c.flags = FI_FENCE;
		c.tag = 2;
		KUNIT_EXPECT_EQ(test, far_do(far, &c, 2), 0);
		c.tag = 3;
		KUNIT_EXPECT_EQ(test, far_do(far, &c, 3), 0);
		KUNIT_EXPECT_EQ(test, flush(far->pair, 0, 4), 0);
		rdm_expect_nothing(test, end);
		KUNIT_EXPECT_EQ(test, flush(far->pair, 0, 2), 0);
		rdm_expect_error(test, end, 2, ECANCELED);
		rdm_expect_nothing(test, end);
		rdm_run(far->pair);
		rdm_expect(test, end, 1, 8);
		rdm_expect(test, end, 3, 8);
	}
	rdm_expect_whole(test, far->pair);
	expect_no_deaths(test, far->pair);
}

/* An operation that has begun gets time. */
static void far_begun_len(struct kunit *test, struct far *far, u64 what, size_t len)
{
	const struct far_call c = { .what = what, .len = len, .tag = 1 };
	struct flusher f = { .pair = far->pair, .tag = 1 };
	struct kofi_thread thread;

	KUNIT_EXPECT_EQ(test, far_do(far, &c, 1), 0);
	kofi_thread_start(test, &thread, flush_long, &f);
	msleep(SHORT_MS);
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&thread, 0));
	rdm_run(far->pair);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 0);
	rdm_expect(test, &far->pair->end[0], 1, what & FI_ATOMIC ? 8 : len);
	expect_no_deaths(test, far->pair);
}

static void far_begun(struct kunit *test)
{
	static const size_t lens[] = { 8, 5000, LONG_LEN };
	struct far *far;
	int i, j, rdma;

	for (rdma = 0; rdma < 2; rdma++) {
		far = far_new(test, &(struct rdm_opts) { .rdma = rdma });
		for (i = 0; i < ARRAY_SIZE(far_whats); i++)
			for (j = 0; j < ARRAY_SIZE(lens); j++)
				far_begun_len(test, far, far_whats[i], lens[j]);
		rdm_expect_whole(test, far->pair);
		far_end(far);
	}
}

/* A peer doesn't answer what it refuses. It doesn't die of that, nor do later operations. */
static void far_unanswered(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct rdm_end *end = &far->pair->end[0];
	struct far_call c;
	int i;

	for (i = 0; i < ARRAY_SIZE(far_whats); i++) {
		c = (struct far_call) {
			.what = far_whats[i], .flags = i ? 0 : FI_DELIVERY_COMPLETE, .len = 8,
			.key = 1000, .tag = 1,
		};
		KUNIT_EXPECT_EQ(test, far_do(far, &c, 1), 0);
		c.tag = 2;
		KUNIT_EXPECT_EQ(test, far_do(far, &c, 2), 0);
		rdm_run(far->pair);
		rdm_expect_nothing(test, end);
		KUNIT_EXPECT_EQ(test, flush(far->pair, 0, 1), 0);
		rdm_expect_error(test, end, 1, ECANCELED);
		rdm_expect_nothing(test, end);
		KUNIT_EXPECT_EQ(test, flush(far->pair, 0, 2), 0);
		rdm_expect_error(test, end, 2, ECANCELED);
		c.key = 0;
		KUNIT_EXPECT_EQ(test, far_do(far, &c, 3), 0);
		rdm_run(far->pair);
		rdm_expect(test, end, 3, 8);
	}
	rdm_expect_whole(test, far->pair);
	expect_no_deaths(test, far->pair);
}

/* --- completions --- */

static void expect_flags(struct kunit *test, struct rdm_end *end, long ctx, u64 flags)
{
	struct rdm_comp comp = rdm_read(end);

	KUNIT_EXPECT_EQ(test, comp.ret, 1);
	KUNIT_EXPECT_EQ(test, (long)comp.entry.op_context, ctx);
	KUNIT_EXPECT_EQ(test, comp.entry.flags, flags);
	KUNIT_EXPECT_EQ(test, comp.entry.tag, 0);
}

static void as_msg_len(struct kunit *test, struct rdm_pair *pair, size_t len, bool late)
{
	memset(pair->in, 0, len);
	efa_fill(pair->out, len, len);
	if (!late)
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, len, 9, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, len, 9, 2), 0);
	rdm_run(pair);
	if (late)
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, len, 9, 1), 0);
	rdm_run(pair);
	expect_flags(test, &pair->end[1], 1, FI_MSG | FI_RECV);
	expect_flags(test, &pair->end[0], 2, FI_MSG | FI_SEND);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, len, len));
}

static void as_msg_all(struct kunit *test, struct rdm_pair *pair)
{
	static const size_t lens[] = { 0, 8, 600, 5000, RDM_READ_FROM, LONG_LEN };
	int i;

	for (i = 0; i < 2 * ARRAY_SIZE(lens); i++)
		as_msg_len(test, pair, lens[i / 2], i % 2);
	rdm_expect_whole(test, pair);
}

static struct rdm_pair *as_msg_pair(struct kunit *test)
{
	return rdm_ready_pair(test, &(struct rdm_opts) { .as_msg = true });
}

static void as_msg(struct kunit *test)
{
	struct rdm_pair *pair = as_msg_pair(test);
	int i;

	as_msg_all(test, pair);
	for (i = 0; i < 2; i++)
		rdm_of(&pair->end[i])->lim.min_read_message = RDM_READ_FROM;
	as_msg_all(test, pair);
}

/* Calls with flags, and the first messages, which wait for the HANDSHAKE. */
static void as_msg_slow(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &(struct rdm_opts) { .as_msg = true });

	as_msg_len(test, pair, 20000, false);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 100, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, send_flags(pair, 100, 1, 2, FI_DELIVERY_COMPLETE | FI_COMPLETION),
			0);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 100, 1, 3), 0);
	KUNIT_EXPECT_EQ(test, send_flags(pair, 100, 1, 4, FI_REMOTE_CQ_DATA | FI_COMPLETION), 0);
	rdm_run(pair);
	expect_flags(test, &pair->end[1], 1, FI_MSG | FI_RECV);
	expect_flags(test, &pair->end[1], 3, FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA);
	KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[0], 0), 2);
	/* Untagged messages are what they were. */
	KUNIT_EXPECT_EQ(test, fi_recv(pair->end[1].ep, pair->in, 8, NULL, FI_ADDR_UNSPEC,
				      (void *)5), 0);
	KUNIT_EXPECT_EQ(test, fi_send(pair->end[0].ep, pair->out, 8, NULL, pair->end[0].peer,
				      (void *)6), 0);
	rdm_run(pair);
	expect_flags(test, &pair->end[1], 5, FI_MSG | FI_RECV);
	expect_flags(test, &pair->end[0], 6, FI_MSG | FI_SEND);
	rdm_expect_whole(test, pair);
}

static void expect_error(struct kunit *test, struct rdm_end *end, long ctx, u64 flags, int err)
{
	struct rdm_comp comp = rdm_read(end);

	KUNIT_EXPECT_EQ(test, comp.ret, -FI_EAVAIL);
	KUNIT_EXPECT_EQ(test, (long)comp.error.op_context, ctx);
	KUNIT_EXPECT_EQ(test, comp.error.flags, flags);
	KUNIT_EXPECT_EQ(test, comp.error.tag, 0);
	KUNIT_EXPECT_EQ(test, comp.error.err, err);
}

static void as_msg_errors(struct kunit *test)
{
	struct rdm_pair *pair = as_msg_pair(test);

	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 4, 9, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 9, 2), 0);
	rdm_run(pair);
	expect_error(test, &pair->end[1], 1, FI_MSG | FI_RECV, FI_ETRUNC);
	expect_flags(test, &pair->end[0], 2, FI_MSG | FI_SEND);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 4, 9, 3), 0);
	KUNIT_EXPECT_EQ(test, flush(pair, 1, 9), 0);
	expect_error(test, &pair->end[1], 3, FI_MSG | FI_RECV, ECANCELED);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 9, 4), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 20000, 9, 5), 0);
	rdm_finish_sent(pair, 0, 13);
	expect_error(test, &pair->end[0], 4, FI_MSG | FI_SEND, ETIMEDOUT);
	expect_error(test, &pair->end[0], 5, FI_MSG | FI_SEND, ETIMEDOUT);
	rdm_expect_whole(test, pair);
}

static void as_msg_quiet(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, &(struct rdm_opts) {
		.as_msg = true, .selective = true,
	});
	struct rdm_end *end = &pair->end[0];
	u64 flags = FI_TRANSMIT;

	rdm_read_all(end, 0);
	rdm_read_all(&pair->end[1], 0);
	KUNIT_EXPECT_EQ(test, fi_control(&end->ep->fid, FI_SETOPSFLAG, &flags), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 9, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 20000, 9, 2), 0);
	KUNIT_EXPECT_EQ(test, send_flags(pair, 8, 9, 3, FI_COMPLETION), 0);
	KUNIT_EXPECT_EQ(test, fi_tinject(end->ep, pair->out, 8, end->peer, 9), 0);
	rdm_run(pair);
	expect_flags(test, end, 3, FI_MSG | FI_SEND);
	rdm_expect_nothing(test, end);
}

/* A read or write has no tag in its completion, and is what it was. */
static void as_msg_far(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .as_msg = true });
	struct far_call c;
	int i;

	for (i = 0; i < ARRAY_SIZE(far_whats); i++) {
		c = (struct far_call) { .what = far_whats[i], .len = 8, .tag = 77 };
		KUNIT_EXPECT_EQ(test, far_do(far, &c, 1), 0);
		rdm_run(far->pair);
		expect_flags(test, &far->pair->end[0], 1, far_whats[i]);
		c.flags = FI_FENCE;
		KUNIT_EXPECT_EQ(test, far_do(far, &(struct far_call) {
			.what = FI_RMA | FI_WRITE, .len = 8, .tag = 78,
		}, 2), 0);
		KUNIT_EXPECT_EQ(test, far_do(far, &c, 3), 0);
		KUNIT_EXPECT_EQ(test, flush(far->pair, 0, 77), 0);
		expect_error(test, &far->pair->end[0], 3, far_whats[i], ECANCELED);
		rdm_run(far->pair);
		expect_flags(test, &far->pair->end[0], 2, FI_RMA | FI_WRITE);
	}
	rdm_expect_whole(test, far->pair);
}

/* A send has taken a credit of its connection, which a cancellation wouldn't give back. */
static void as_msg_cancel(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &(struct rdm_opts) { .as_msg = true });
	struct fid *from = &pair->end[0].ep->fid, *to = &pair->end[1].ep->fid;

	/* It waits for the peer's HANDSHAKE. */
	KUNIT_EXPECT_EQ(test, send_flags(pair, 100, 5, 1, FI_DELIVERY_COMPLETE), 0);
	efake_settle();
	KUNIT_EXPECT_EQ(test, fi_cancel(from, (void *)1), -ENOENT);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 100, 5, 2), 0);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 100, 5, 3), 0);
	KUNIT_EXPECT_EQ(test, fi_cancel(to, (void *)2), 0);
	rdm_expect_error(test, &pair->end[1], 2, ECANCELED);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 1, 100);
	rdm_expect(test, &pair->end[1], 3, 100);
}

/* Options of endpoints that aren't enabled yet. */
static void options(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &(struct rdm_opts) { .as_msg = true });
	struct fid *fid = &pair->end[0].ep->fid;
	struct kofi_watch *none = NULL;
	struct kvec iov = { pair->in, 100 };
	struct fi_msg msg = { .addr = FI_ADDR_UNSPEC };
	const size_t on = 1;

	KUNIT_EXPECT_EQ(test, fi_setopt(fid, FI_OPT_ENDPOINT, KOFI_OPT_AS_MSG, &on, sizeof(on) - 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_setopt(fid, FI_OPT_ENDPOINT, KOFI_OPT_AS_MSG, &on, sizeof(on)),
			-FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_setopt(fid, FI_OPT_ENDPOINT, KOFI_OPT_WATCH, &none, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_setopt(fid, FI_OPT_ENDPOINT, KOFI_OPT_WATCH, &none, sizeof(none)),
			-FI_EOPBADSTATE);
	/* A buffer has completions whose flags say what they are. */
	iov_iter_kvec(&msg.msg_iter, ITER_DEST, &iov, 1, 100);
	KUNIT_EXPECT_EQ(test, fi_recvmsg(pair->end[1].ep, &msg, FI_MULTI_RECV), -EOPNOTSUPP);
}

/* --- receives with one tag --- */

static ssize_t recv_tag(struct rdm_pair *pair, size_t len, u64 tag, long ctx)
{
	struct fid_ep *ep = pair->end[1].ep;

	return ep->ops->recv_tag(ep, pair->in, len, tag, (void *)ctx);
}

/* A receive takes a message of any peer with its tag and no other, before or after it arrives. */
static void tag_recv(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	static const size_t lens[] = { 0, 8, 600, 5000, LONG_LEN };
	int i;

	KUNIT_ASSERT_NOT_NULL(test, pair->end[1].ep->ops->recv_tag);
	KUNIT_EXPECT_EQ(test, recv_tag(pair, LONG_LEN, 2, 1), 0);
	for (i = 0; i < 2 * ARRAY_SIZE(lens); i++) {
		memset(pair->in, 0, LONG_LEN);
		efa_fill(pair->out, lens[i / 2], i);
		if (i % 2)
			KUNIT_EXPECT_EQ(test, recv_tag(pair, LONG_LEN, 3, 4), 0);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, lens[i / 2], 3, 5), 0);
		rdm_run(pair);
		if (!(i % 2))
			KUNIT_EXPECT_EQ(test, recv_tag(pair, LONG_LEN, 3, 4), 0);
		rdm_run(pair);
		rdm_expect(test, &pair->end[1], 4, lens[i / 2]);
		rdm_expect(test, &pair->end[0], 5, lens[i / 2]);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, lens[i / 2], i));
	}
	KUNIT_EXPECT_EQ(test, recv_tag(pair, LONG_LEN, 2, 6), 0);
	KUNIT_EXPECT_EQ(test, pair->end[1].ep->ops->cancel_tag(pair->end[1].ep, 2, (void *)6), 0);
	rdm_expect_error(test, &pair->end[1], 6, ECANCELED);
	KUNIT_EXPECT_EQ(test, flush(pair, 1, 2), 0);
	rdm_expect_error(test, &pair->end[1], 1, ECANCELED);
	rdm_expect_whole(test, pair);
}

/* Receives with the same tag take messages in the order in which they were posted. */
static void tag_recv_order(struct kunit *test)
{
	struct rdm_pair *pair = as_msg_pair(test);
	int i;

	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, recv_tag(pair, 8, 1 + i % 2, i), 0);
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 1 + i % 2, i), 0);
	rdm_run(pair);
	for (i = 0; i < 8; i++) {
		expect_flags(test, &pair->end[1], i, FI_MSG | FI_RECV);
		expect_flags(test, &pair->end[0], i, FI_MSG | FI_SEND);
	}
	rdm_expect_whole(test, pair);
}

/* There are only so many receives. */
static void tag_recv_full(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	ssize_t ret = 0;
	int i, n;

	for (n = 0; n < 10000 && !ret; n++)
		ret = recv_tag(pair, 8, 1, n);
	KUNIT_EXPECT_EQ(test, ret, -EAGAIN);
	KUNIT_EXPECT_GT(test, n, 1);
	KUNIT_EXPECT_EQ(test, flush(pair, 1, 1), 0);
	for (i = 0; i < n - 1; i++)
		rdm_expect_error(test, &pair->end[1], i, ECANCELED);
	rdm_expect_nothing(test, &pair->end[1]);
	send_works(test, pair, 1);
}

static struct kunit_case rdm_tag_cases[] = {
	KUNIT_CASE(tag_posted),
	KUNIT_CASE(tag_waiting),
	KUNIT_CASE(tag_sent),
	KUNIT_CASE(tag_sent_read),
	KUNIT_CASE(tag_stuck),
	KUNIT_CASE(tag_arriving),
	KUNIT_CASE(tag_kept),
	KUNIT_CASE(tag_kept_later),
	KUNIT_CASE(tag_ended),
	KUNIT_CASE(tag_unseen),
	KUNIT_CASE(tag_passed),
	KUNIT_CASE(tag_removed),
	KUNIT_CASE(far_waiting),
	KUNIT_CASE(far_begun),
	KUNIT_CASE(far_unanswered),
	KUNIT_CASE(as_msg),
	KUNIT_CASE(as_msg_slow),
	KUNIT_CASE(as_msg_errors),
	KUNIT_CASE(as_msg_quiet),
	KUNIT_CASE(as_msg_far),
	KUNIT_CASE(as_msg_cancel),
	KUNIT_CASE(options),
	KUNIT_CASE(tag_recv),
	KUNIT_CASE(tag_recv_order),
	KUNIT_CASE(tag_recv_full),
	{}
};

static struct kunit_suite rdm_tag_suite = {
	.name		= "kefa_rdm_tag",
	.test_cases	= rdm_tag_cases,
};

kunit_test_suite(rdm_tag_suite);
