// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Random requests of both sides of a connection of kofi_rc. Each side asks the other one to write
 * to one half of a region and to read the other half, with messages in between. Datagrams arrive
 * and end, and the devices write, read, register and invalidate, in any order. All requests
 * complete, in the order in which they were posted, with the right data. If the connection ends in
 * the middle, which a changed datagram may cause, each of them completes once. In every other case,
 * work items run the connection at the same time.
 */
#include <linux/prandom.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "crew.h"
#include "rc_scene.h"

#define JOBS		4
#define PAGES		4
#define MEMORY		(PAGES * PAGE_SIZE)
#define HALF		((PAGES - 1) * PAGE_SIZE / 2)
#define STEPS		1500
#define MSG_MAX		3000
#define NREQS		64	/* more than there are in the send queue */
#define PATIENCE	20000	/* steps in which everything ends */

enum what {
	DO_MESSAGE,
	DO_REG,
	DO_WRITE,
	DO_READ,
	DO_READ_INV,
	DO_INVAL,
};

enum kind {
	NOTE_PLAIN,
	NOTE_ASK,
	NOTE_DONE,
};

/* The beginning of a message. A pattern follows, which begins with @seed. */
struct note {
	u32	kind;
	u32	job;
	u32	seed;
	u32	rkey;
	u64	iova;
};

/* A work request that was posted. */
struct req {
	u64		id;
	bool		signaled;
	enum what	what;
	u32		job;
	u8		*msg;
};

/* A region of this side, for the peer. */
struct job {
	struct krc_mr	*mr;
	u8		*memory;
	u8		*at;		/* where the region begins */
	u64		iova;
	u32		seed;
	bool		busy;
	bool		told;		/* the peer was asked */
	bool		ends;		/* the peer has done it, but the region is still valid */
};

/* A request of the peer. */
struct serve {
	bool		busy;
	struct note	note;
	u32		written;
	u32		read;
	u32		reads;		/* that are out */
	u8		*from;
	u8		*to;
	struct krc_mr	*sink;		/* of @to */
	bool		sinks;		/* a read by it is out */
};

static struct model {
	struct rc_side	*s;
	struct job	jobs[JOBS];
	struct serve	serves[JOBS];
	struct req	reqs[NREQS];
	u32		head;
	u32		tail;
	u32		base;		/* krc_conn.tail of the first one */
	u64		ids;
	u8		*msgs;
	u8		*recvs;
	u8		*datagram;
	u32		posted;
	u32		received;
	u32		completed;
	u32		done;		/* jobs */
	bool		delivered[RC_BUFS];
	struct rc_done	log[RC_LOG];
	struct list_head taken;
} *models;

static struct rnd_state rnd;
/* Datagrams are changed on their way: data may be wrong, and requests may fail. */
static bool hostile;
/* Nobody waits for work items. */
static bool hurry;

static u32 dice(u32 n)
{
	return prandom_u32_state(&rnd) % n;
}

static void fill(u8 *to, u32 seed, u32 len)
{
	u32 i;

	for (i = 0; i < len; i++)
		to[i] = seed + i * 7 + i / 251;
}

static bool filled(const u8 *from, u32 seed, u32 len)
{
	u32 i;

	for (i = 0; i < len; i++)
		if (from[i] != (u8)(seed + i * 7 + i / 251))
			return false;
	return true;
}

static struct model *peer_of(const struct model *m)
{
	return m == &models[0] ? &models[1] : &models[0];
}

/* --- requests --- */

static bool room(const struct model *m, u32 n)
{
	return m->head - m->tail + n <= RC_SENDS;
}

static void post(struct kunit *test, struct model *m, struct krc_swr *w, const struct krc_sge *sge,
		 enum what what, u32 job)
{
	struct req *r = &m->reqs[m->head % NREQS];

	r->id = ++m->ids;
	r->signaled = dice(4);
	r->what = what;
	r->job = job;
	w->id = r->id;
	w->flags |= (r->signaled ? KRC_F_SIGNALED : 0) | (dice(8) ? 0 : KRC_F_FENCE);
	m->head++;
	KUNIT_ASSERT_EQ(test, rc_post(m->s, w, sge), 0);
}

static void post_message(struct kunit *test, struct model *m, const struct note *note, u32 inv)
{
	u8 *msg = m->msgs + m->head % NREQS * MSG_MAX;
	u32 len = sizeof(*note) + dice(dice(3) ? 100 : MSG_MAX - sizeof(*note));
	struct krc_swr w = {
		.op = KRC_OP_SEND, .flags = inv ? KRC_F_INV : 0, .nsge = 2, .total = len,
		.key = inv,
	};
	const struct krc_sge sge[2] = {
		{ .addr = (uintptr_t)msg, .len = sizeof(*note) },
		{ .addr = (uintptr_t)msg + sizeof(*note), .len = len - sizeof(*note) },
	};

	memcpy(msg, note, sizeof(*note));
	fill(msg + sizeof(*note), note->seed, len - sizeof(*note));
	post(test, m, &w, sge, DO_MESSAGE, note->job);
}

static void post_recv(struct kunit *test, struct model *m)
{
	if (m->posted - m->received >= RC_RECVS)
		return;
	KUNIT_ASSERT_EQ(test, rc_recv(m->s, m->posted, m->recvs + m->posted % RC_RECVS * MSG_MAX,
				      MSG_MAX), 0);
	m->posted++;
}

/* --- jobs --- */

static void job_begin(struct kunit *test, struct model *m, u32 i)
{
	struct job *job = &m->jobs[i];
	u32 offset = dice(2) ? dice(PAGE_SIZE / 8) * 8 : 0;
	struct krc_swr w = { .op = KRC_OP_REG };

	job->busy = true;
	job->told = false;
	job->ends = false;
	job->seed = dice(U32_MAX);
	job->at = job->memory + offset;
	job->iova = (u64)dice(1 << 20) * PAGE_SIZE + offset;
	memset(job->at, 0, HALF);
	fill(job->at + HALF, job->seed, HALF);
	if (dice(4))
		rc_map(job->mr, job->memory, PAGES);
	w.map = (struct krc_mr_map) {
		.iova = job->iova, .length = 2 * HALF, .shift = PAGE_SHIFT, .key = rc_key(job->mr),
		.nr = krc_mr_mapping(job->mr),
		.access = KRC_ACCESS_REMOTE_WRITE | KRC_ACCESS_REMOTE_READ | KRC_ACCESS_LOCAL_WRITE,
	};
	post(test, m, &w, NULL, DO_REG, i);
}

static void job_ask(struct kunit *test, struct model *m, u32 i)
{
	struct job *job = &m->jobs[i];
	const struct note note = {
		.kind = NOTE_ASK, .job = i, .seed = job->seed, .rkey = rc_key(job->mr),
		.iova = job->iova,
	};

	job->told = true;
	post_message(test, m, &note, 0);
}

static void job_end(struct kunit *test, struct model *m, u32 i)
{
	struct krc_swr w = { .op = KRC_OP_INVAL, .key = rc_key(m->jobs[i].mr) };
	bool waits = dice(2);

	/* Some ULPs map and register the next pages behind this request. */
	m->jobs[i].ends = false;
	m->jobs[i].busy = waits;
	m->done += !waits;
	post(test, m, &w, NULL, DO_INVAL, waits ? i : JOBS);
}

static void job_step(struct kunit *test, struct model *m, u32 i, bool more)
{
	struct job *job = &m->jobs[i];

	if (!room(m, 1))
		return;
	if (!job->busy && more)
		job_begin(test, m, i);
	if (job->busy && !job->told && room(m, 1) && (dice(2) || !more))
		job_ask(test, m, i);
	if (job->ends)
		job_end(test, m, i);
}

/* Pieces of all lengths; the device may write the longer ones. */
static u32 piece(u32 left)
{
	return dice(3) ? 1 + dice(left) : left;
}

static void serve_write(struct kunit *test, struct model *m, u32 i)
{
	struct serve *serve = &m->serves[i];
	u32 len = piece(HALF - serve->written), first = dice(2) ? dice(len) : 0;
	struct krc_swr w = {
		.op = KRC_OP_WRITE, .nsge = 2, .total = len, .key = serve->note.rkey,
		.raddr = serve->note.iova + serve->written,
	};
	const struct krc_sge sge[2] = {
		{ .addr = (uintptr_t)serve->from + serve->written, .len = first },
		{ .addr = (uintptr_t)serve->from + serve->written + first, .len = len - first },
	};

	serve->written += len;
	post(test, m, &w, sge, DO_WRITE, i);
}

/* A read, of which some go to a region that they invalidate. */
static void serve_read(struct kunit *test, struct model *m, u32 i)
{
	struct serve *serve = &m->serves[i];
	bool sinks = !serve->sinks && room(m, 2) && !dice(3);
	u32 key = sinks ? rc_key(serve->sink) : 0, len = piece(HALF - serve->read);
	struct krc_swr reg = {
		.op = KRC_OP_REG, .map = {
			.iova = (uintptr_t)serve->to, .length = HALF, .shift = PAGE_SHIFT,
			.access = KRC_ACCESS_LOCAL_WRITE | KRC_ACCESS_REMOTE_WRITE, .key = key,
			.nr = krc_mr_mapping(serve->sink),
		},
	};
	struct krc_swr w = {
		.op = KRC_OP_READ, .flags = sinks ? KRC_F_INV : 0, .nsge = 1, .total = len,
		.key = serve->note.rkey, .raddr = serve->note.iova + HALF + serve->read,
	};
	const struct krc_sge sge = {
		.addr = (uintptr_t)serve->to + serve->read, .len = len, .key = key,
	};

	if (sinks)
		post(test, m, &reg, NULL, DO_REG, i);
	serve->sinks |= sinks;
	serve->read += len;
	serve->reads++;
	post(test, m, &w, &sge, sinks ? DO_READ_INV : DO_READ, i);
}

static void serve_step(struct kunit *test, struct model *m, u32 i)
{
	struct serve *serve = &m->serves[i];
	struct note note;

	if (!serve->busy || !room(m, 1))
		return;
	if (serve->written < HALF && (serve->read == HALF || dice(2))) {
		serve_write(test, m, i);
	} else if (serve->read < HALF) {
		serve_read(test, m, i);
	} else if (!serve->reads) {
		KUNIT_EXPECT_TRUE(test, hostile || filled(serve->to, serve->note.seed, HALF));
		note = (struct note){ .kind = NOTE_DONE, .job = i, .seed = serve->note.seed };
		serve->busy = false;
		post_message(test, m, &note, dice(3) ? serve->note.rkey : 0);
	}
}

/* --- completions --- */

static void req_done(struct model *m, const struct req *r)
{
	if (r->what == DO_READ || r->what == DO_READ_INV)
		m->serves[r->job].reads--;
	if (r->what == DO_READ_INV)
		m->serves[r->job].sinks = false;
	if (r->what != DO_INVAL || r->job == JOBS)
		return;
	m->jobs[r->job].busy = false;
	m->done++;
}

static void take_sent(struct kunit *test, struct model *m, const struct rc_done *done)
{
	const struct req *r;

	KUNIT_ASSERT_TRUE(test, hostile || !done->err);
	do {
		KUNIT_ASSERT_NE(test, m->tail, m->head);
		r = &m->reqs[m->tail++ % NREQS];
		KUNIT_ASSERT_TRUE(test, r->id == done->id || !r->signaled);
		req_done(m, r);
	} while (r->id != done->id);
	m->completed++;
}

static void take_ask(struct kunit *test, struct model *m, const struct note *note)
{
	struct serve *serve = &m->serves[note->job];

	KUNIT_ASSERT_TRUE(test, hostile || !serve->busy);
	if (serve->busy)
		return;
	serve->busy = true;
	serve->note = *note;
	serve->written = 0;
	serve->read = 0;
	fill(serve->from, note->seed + 1, HALF);
}

static void take_end(struct kunit *test, struct model *m, const struct note *note,
		     const struct rc_done *done)
{
	struct job *job = &m->jobs[note->job];

	if (!hostile) {
		KUNIT_EXPECT_EQ(test, note->seed, job->seed);
		KUNIT_EXPECT_TRUE(test, filled(job->at, job->seed + 1, HALF));
	}
	if (!done->inv) {
		job->ends = job->busy;
		return;
	}
	KUNIT_EXPECT_TRUE(test, hostile || done->key == rc_key(job->mr));
	KUNIT_EXPECT_FALSE(test, !hostile && rc_reaches(m->s, job->mr));
	job->busy = false;
	m->done++;
}

static void take_received(struct kunit *test, struct model *m, const struct rc_done *done)
{
	const u8 *buf = m->recvs + m->received % RC_RECVS * MSG_MAX;
	struct note note;

	KUNIT_ASSERT_TRUE(test, hostile || !done->err);
	KUNIT_ASSERT_EQ(test, done->id, (u64)m->received);
	m->received++;
	if (done->err)
		return;
	KUNIT_ASSERT_TRUE(test, done->bytes <= MSG_MAX && (hostile || done->bytes >= sizeof(note)));
	memcpy(&note, buf, sizeof(note));
	KUNIT_EXPECT_TRUE(test, hostile || filled(buf + sizeof(note), note.seed,
						  done->bytes - sizeof(note)));
	if (note.job >= JOBS)
		return;
	if (note.kind == NOTE_ASK)
		take_ask(test, m, &note);
	else if (note.kind == NOTE_DONE)
		take_end(test, m, &note, done);
}

static void take_all(struct kunit *test, struct model *m)
{
	struct rc_side *s = m->s;
	unsigned int i, n;
	u32 tail;

	spin_lock_irq(&s->c.lock);
	n = s->n;
	memcpy(m->log, s->log, n * sizeof(*s->log));
	tail = s->c.tail;
	s->n = 0;
	s->seen = 0;
	spin_unlock_irq(&s->c.lock);
	for (i = 0; i < n; i++)
		if (m->log[i].recv)
			take_received(test, m, &m->log[i]);
		else
			take_sent(test, m, &m->log[i]);
	/* Those without a completion, after the last one with a completion. */
	for (; m->tail != tail - m->base; m->tail++) {
		KUNIT_ASSERT_FALSE(test, m->reqs[m->tail % NREQS].signaled);
		req_done(m, &m->reqs[m->tail % NREQS]);
	}
}

/* --- the network and the devices --- */

static u32 buf_nr(const struct model *m, const struct krc_buf *buf)
{
	return buf - m->s->bufs;
}

/* A datagram that has, or hasn't, arrived; or NULL. */
static struct krc_buf *any_buf(struct model *m, bool delivered)
{
	struct krc_buf *buf, *found = NULL;
	u32 n = 0;

	spin_lock_irq(&m->s->q.lock);
	list_for_each_entry(buf, &m->s->sent, list)
		if (m->delivered[buf_nr(m, buf)] == delivered && !dice(++n))
			found = buf;
	spin_unlock_irq(&m->s->q.lock);
	return found;
}

/* Change a field of a datagram, but not its cookie, or shorten it. */
static void change(struct krc_buf *buf)
{
	u32 at = offsetof(struct krc_wire_dgram, type) +
		 dice(buf->head_len - offsetof(struct krc_wire_dgram, type));

	if (!dice(8))
		buf->head_len -= dice(buf->head_len - KRC_HDR_SHORT + 1);
	else if (dice(2))
		buf->head[at] ^= BIT(dice(8));
	else
		buf->head[at] = dice(256);
}

/* As rc_deliver(), by the handler of the queue alone. */
static void deliver(struct model *m, const struct krc_buf *buf)
{
	struct rc_side *to = m->s->peer;
	u8 *copy = m->datagram;

	memcpy(copy, buf->head, buf->head_len);
	if (buf->piece_len)
		memcpy(copy + buf->head_len, buf->piece, buf->piece_len);
	krc_message(&to->q, copy, buf->head_len + buf->piece_len);
	krc_queue_run(&to->q);
}

static void arrive(struct model *m)
{
	struct krc_buf *buf = any_buf(m, false);

	if (!buf)
		return;
	m->delivered[buf_nr(m, buf)] = true;
	if (hostile && !dice(60))
		change(buf);
	if (hurry)
		deliver(m, buf);
	else
		rc_deliver(m->s, buf);
}

static void end(struct model *m)
{
	struct krc_buf *buf = any_buf(m, true);

	if (!buf)
		return;
	m->delivered[buf_nr(m, buf)] = false;
	rc_end(m->s, buf, 0);
}

static void end_grant(struct model *m)
{
	struct krc_grant *g;
	u32 n;

	if (!m->s->ntodo)
		return;
	n = dice(m->s->ntodo);
	g = rc_grant_nth(m->s, n);
	rc_grant_end(m->s, n, g->state == KRC_GRANT_REGISTERING && !dice(8) ? -EINVAL : 0);
	if (!dice(4))
		flush_delayed_work(&m->s->q.grants_work);
}

static void network(struct model *m)
{
	switch (dice(8)) {
	case 0 ... 2:
		arrive(m);
		break;
	case 3 ... 5:
		end(m);
		break;
	case 6:
		if (m->s->nrmas)
			rc_rma_end(m->s, dice(m->s->nrmas), 0);
		break;
	case 7:
		end_grant(m);
		break;
	}
}

static void step(struct kunit *test, bool more)
{
	struct model *m = &models[dice(2)];
	const struct note note = { .kind = NOTE_PLAIN, .seed = dice(256) };

	switch (dice(16)) {
	case 0 ... 9:
		network(m);
		break;
	case 10:
		post_recv(test, m);
		break;
	case 11:
		job_step(test, m, dice(JOBS), more);
		break;
	case 12 ... 13:
		serve_step(test, m, dice(JOBS));
		break;
	case 14:
		if (more && room(m, 4))
			post_message(test, m, &note, 0);
		break;
	case 15:
		spin_lock_irq(&m->s->q.lock);
		if (!more || dice(4))
			rc_give_bufs(m->s, &m->taken);
		else
			rc_take_bufs(m->s, &m->taken, 1 + dice(80));
		spin_unlock_irq(&m->s->q.lock);
		/* As if another connection had left them. */
		krc_conn_kick(&m->s->c);
		break;
	}
	if (hurry) {
		krc_queue_run(&m->s->q);
		krc_conn_kick(&models[dice(2)].s->c);
	} else {
		rc_runs();
	}
	take_all(test, &models[0]);
	take_all(test, &models[1]);
}

static bool at_rest(const struct model *m)
{
	u32 i;

	if (m->s->nsent || m->s->nrmas || m->s->ntodo || m->s->c.tail != m->s->c.head)
		return false;
	for (i = 0; i < JOBS; i++)
		if (m->jobs[i].busy || m->serves[i].busy)
			return false;
	return true;
}

/* --- cases --- */

static u8 *memory(struct kunit *test, size_t len)
{
	u8 *mem = kunit_kzalloc(test, len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mem);
	return mem;
}

static void model_init(struct kunit *test, struct model *m, struct rc_side *s)
{
	u32 i;

	m->s = s;
	m->base = s->c.tail;
	INIT_LIST_HEAD(&m->taken);
	m->msgs = memory(test, NREQS * MSG_MAX);
	m->recvs = memory(test, RC_RECVS * MSG_MAX);
	m->datagram = memory(test, KRC_DATAGRAM_MAX);
	for (i = 0; i < JOBS; i++) {
		m->jobs[i].memory = memory(test, MEMORY);
		m->jobs[i].mr = rc_mr(test, s, m->jobs[i].memory, PAGES);
		m->serves[i].from = memory(test, HALF);
		m->serves[i].to = memory(test, 2 * PAGE_SIZE);
		m->serves[i].sink = rc_mr(test, s, m->serves[i].to, 2);
	}
}

static void begin(struct kunit *test, u32 seed)
{
	prandom_seed_state(&rnd, seed);
	hostile = false;
	hurry = seed % 2;
	models = kunit_kcalloc(test, 2, sizeof(*models), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, models);
	if (!(seed % 3))
		rc_connect(test);
	else if (seed / 3 % 3)
		rc_connect_reads(test, RC_GRANTS - 2 * (seed % 3), seed / 3 % 3 == 1);
	else
		rc_connect_rma(test, RC_GRANTS - 2 * (seed % 3));
	/* Numbers wrap soon. */
	rc->a.c.tx_seq = -100;
	rc->a.c.tx_una = -100;
	rc->b.c.rx_next = -100;
	rc->a.c.head = -50;
	rc->a.c.next = -50;
	rc->a.c.tail = -50;
	rc->a.c.ahead = -50;
	rc->a.c.written = -50;
	rc->a.c.window = 16 << dice(3);
	rc->b.c.window = rc->a.c.window;
	rc->a.c.room = 976;
	rc->b.c.room = 976 + dice(4000);
	model_init(test, &models[0], &rc->a);
	model_init(test, &models[1], &rc->b);
}

static const u32 seeds[] = {
	1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20
};

static void seed_desc(const u32 *seed, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "seed %u", *seed);
}

KUNIT_ARRAY_PARAM(seed, seeds, seed_desc);

/* Nothing is lost, and nobody waits for ever. */
static void random_requests(struct kunit *test)
{
	u32 i, n = 0;

	begin(test, *(const u32 *)test->param_value);
	for (i = 0; i < STEPS; i++)
		step(test, true);
	while (!(at_rest(&models[0]) && at_rest(&models[1])) && n++ < PATIENCE)
		step(test, false);
	rc_runs();
	for (i = 0; i < 2; i++) {
		rc_give_bufs(models[i].s, &models[i].taken);
		KUNIT_EXPECT_TRUE(test, at_rest(&models[i]));
		KUNIT_EXPECT_EQ(test, models[i].s->stops, 0U);
		KUNIT_EXPECT_GT(test, models[i].done, 0U);
	}
	kunit_info(test, "%u + %u jobs, %u more steps", models[0].done, models[1].done, n);
}

/* All that the device has ends, well or not. Return: whether all requests are flushed. */
static bool ended(struct rc_side *s)
{
	if (s->nsent)
		rc_end(s, rc_nth(s, dice(s->nsent)), dice(2) ? 0 : -ENODEV);
	if (s->nrmas)
		rc_rma_end(s, dice(s->nrmas), dice(2) ? 0 : -ENODEV);
	if (s->ntodo)
		rc_grant_end(s, dice(s->ntodo), 0);
	rc_runs();
	return completion_done(&s->c.flushed);
}

static unsigned int count_done(const struct rc_side *s, bool recv, u64 id)
{
	unsigned int i, n = 0;

	for (i = 0; i < s->n; i++)
		n += s->log[i].recv == recv && s->log[i].id == id;
	return n;
}

/* A connection ends: each of its requests completes once, and nobody reaches its memory then. */
static void check_end(struct kunit *test, struct model *m)
{
	struct rc_side *s = m->s;
	const struct req *r;
	u32 i;

	KUNIT_ASSERT_TRUE(test, kofi_soon(ended(s)));
	krc_wait_flushed(&s->c);
	for (; m->received != m->posted; m->received++)
		KUNIT_EXPECT_EQ(test, count_done(s, true, m->received), 1U);
	for (; m->tail != m->head; m->tail++) {
		r = &m->reqs[m->tail % NREQS];
		KUNIT_EXPECT_LE(test, count_done(s, false, r->id), 1U);
		KUNIT_EXPECT_TRUE(test, count_done(s, false, r->id) || !r->signaled);
	}
	KUNIT_EXPECT_EQ(test, s->c.tail, s->c.head);
	for (i = 0; i < JOBS; i++) {
		KUNIT_EXPECT_FALSE(test, rc_reaches(s, m->jobs[i].mr));
		KUNIT_EXPECT_EQ(test, m->jobs[i].mr->state, KRC_MR_FREE);
		KUNIT_EXPECT_EQ(test, m->serves[i].sink->state, KRC_MR_FREE);
	}
}

/* The connection ends in the middle. */
static void random_end(struct kunit *test)
{
	struct rc_side *s;
	struct model *m;
	u32 i;

	begin(test, 1000 + *(const u32 *)test->param_value);
	m = &models[dice(2)];
	s = m->s;
	for (i = STEPS / 4 + dice(STEPS / 2); i; i--)
		step(test, true);
	krc_stop(&s->c, KRC_BY_ULP, 0);
	for (i = 0; i < 20; i++)
		network(peer_of(m));
	check_end(test, m);
	for (i = 0; i < 2; i++)
		rc_give_bufs(models[i].s, &models[i].taken);
}

/* The same, when a datagram was changed: the peer, or the ULP, may end the connection. */
static void random_hostile(struct kunit *test)
{
	u32 i;

	begin(test, 2000 + *(const u32 *)test->param_value);
	hostile = true;
	for (i = 0; i < STEPS && !rc->a.stops && !rc->b.stops; i++)
		step(test, true);
	for (i = 0; i < 50; i++)
		step(test, false);
	for (i = 0; i < 2; i++) {
		krc_stop(&models[i].s->c, KRC_BY_ULP, 0);
		check_end(test, &models[i]);
		rc_give_bufs(models[i].s, &models[i].taken);
	}
}

static struct kunit_case random_cases[] = {
	KUNIT_CASE_PARAM(random_requests, seed_gen_params),
	KUNIT_CASE_PARAM(random_end, seed_gen_params),
	KUNIT_CASE_PARAM(random_hostile, seed_gen_params),
	{}
};

static struct kunit_suite random_suite = {
	.name		= "kofi_rc_random",
	.init		= rc_scene_init,
	.exit		= rc_scene_exit,
	.suite_init	= rc_suite_init,
	.suite_exit	= rc_suite_exit,
	.test_cases	= random_cases,
};

kunit_test_suite(random_suite);
