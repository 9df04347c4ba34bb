// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* kofi_rc's engine on lists instead of a device: see rc_scene.h. */
#include <linux/slab.h>
#include <linux/mm.h>
#include "../../ulp/rc/wire.c"
#include "../../ulp/rc/mr.c"
#include "../../ulp/rc/grant.c"
#include "../../ulp/rc/conn.c"
#include "../../ulp/rc/tx.c"
#include "../../ulp/rc/rma.c"
#include "../../ulp/rc/rx.c"
#include "../../ulp/rc/revoke.c"
#include "crew.h"
#include "rc_scene.h"

struct rc_scene *rc;

static struct rc_side *side_of(struct krc_conn *c)
{
	return container_of(c, struct rc_side, c);
}

/* --- below the engine --- */

void krc_net_send(struct krc_buf *buf)
{
	struct rc_side *s = side_of(buf->conn);
	struct krc_queue *q = &s->q;
	bool ended;

	spin_lock_irq(&q->lock);
	s->total++;
	ended = rc->ended || s->lost;
	if (!ended) {
		list_add_tail(&buf->list, &s->sent);
		s->nsent++;
	}
	spin_unlock_irq(&q->lock);
	if (ended)
		krc_sent(buf, -ENODEV);
}

void krc_net_lost(struct krc_queue *q)
{
	struct rc_side *s = container_of(q, struct rc_side, q);

	s->lost++;
	while (s->nsent)
		rc_end(s, rc_nth(s, 0), -ENODEV);
	while (s->nrmas)
		rc_rma_end(s, 0, -ENODEV);
}

/* --- the device's regions and writes --- */

/* As on EFA: a generation before the number of the region. */
#define RC_KEY_SHIFT	20
#define RC_BASE		0x7000000ULL

static struct rc_region *region_of(const struct rc_side *s, const struct krc_grant *g)
{
	unsigned int i;

	for (i = 0; i < RC_GRANTS; i++)
		if (s->opened[i].g == g)
			return (struct rc_region *)&s->opened[i];
	return NULL;
}

/* A registration has the next key of its region. */
static void region_take_key(struct rc_region *r)
{
	u64 key = (r->key >> RC_KEY_SHIFT) + 1;

	r->key = (key % RC_KEYS) << RC_KEY_SHIFT | (r->key & (BIT(RC_KEY_SHIFT) - 1));
}

int krc_net_open_grant(struct krc_grant *g)
{
	struct rc_side *s = container_of(g->queue, struct rc_side, q);
	struct rc_region *r = region_of(s, NULL);

	s->opens++;
	if (s->open_err || !r)
		return s->open_err ?: -FI_ENOMR;
	*r = (struct rc_region){ .g = g, .key = ++s->nopened };
	s->ngrants++;
	return 0;
}

bool krc_net_gone(const struct krc_grant *g)
{
	return container_of(g->queue, struct rc_side, q)->gone;
}

void krc_net_stuck(struct krc_queue *q)
{
	container_of(q, struct rc_side, q)->stucks++;
}

int krc_net_close(struct krc_grant *g)
{
	struct rc_side *s = container_of(g->queue, struct rc_side, q);
	struct rc_region *r = region_of(s, g);

	if (s->closes_fail) {
		s->closes_fail--;
		return s->close_err;
	}
	r->g = NULL;
	r->reachable = false;
	s->ngrants--;
	return 0;
}

void krc_net_grant(struct krc_grant *g)
{
	struct rc_side *s = container_of(g->queue, struct rc_side, q);
	bool ended;

	spin_lock_irq(&s->q.lock);
	ended = rc->ended || s->lost;
	if (!ended) {
		list_add_tail(&g->list, &s->todo);
		s->ntodo++;
	}
	spin_unlock_irq(&s->q.lock);
	if (!ended)
		return;
	if (g->state == KRC_GRANT_REGISTERING)
		krc_granted(g, -ENODEV);
	else
		krc_grant_revoked(g, -ENODEV);
}

struct krc_grant *rc_grant_nth(struct rc_side *s, unsigned int n)
{
	struct krc_grant *g;

	list_for_each_entry(g, &s->todo, list)
		if (!n--)
			return g;
	return NULL;
}

/* The device ends what it was asked for. */
void rc_grant_end(struct rc_side *s, unsigned int n, int err)
{
	struct krc_grant *g = rc_grant_nth(s, n);
	struct rc_region *r;

	if (WARN_ON(!g))
		return;
	r = region_of(s, g);
	spin_lock_irq(&s->q.lock);
	list_del_init(&g->list);
	s->ntodo--;
	spin_unlock_irq(&s->q.lock);
	if (g->state == KRC_GRANT_REGISTERING) {
		region_take_key(r);
		if (!err) {
			r->base = RC_BASE;
			r->map = g->mr->map;
			r->access = g->access;
			memcpy(r->pages, g->mr->pages, g->mr->npages * sizeof(u64));
			r->reachable = true;
			g->key = r->key;
			g->base = r->base;
		}
		krc_granted(g, err);
	} else {
		r->reachable &= !!err;
		krc_grant_revoked(g, err);
	}
	rc_runs();
}

/* Return: true if the device reaches pages of a region. */
bool rc_reaches(const struct rc_side *s, const struct krc_mr *mr)
{
	unsigned int i;

	for (i = 0; i < RC_GRANTS; i++)
		if (s->opened[i].reachable && s->opened[i].pages[0] == mr->pages[0])
			return true;
	return false;
}

void krc_net_rma(struct krc_swr *w)
{
	struct rc_side *s = side_of(w->conn);
	bool ended;

	spin_lock_irq(&s->q.lock);
	ended = rc->ended || s->lost;
	if (!ended)
		s->rmas[s->nrmas++] = w;
	spin_unlock_irq(&s->q.lock);
	if (ended)
		krc_rma_done(w, -ENODEV);
}

static u8 *region_at(const struct rc_region *r, u64 offset)
{
	u64 at = offset + (r->map.iova & ~PAGE_MASK);

	return (u8 *)(uintptr_t)(r->pages[at >> PAGE_SHIFT] + (at & ~PAGE_MASK));
}

/* The peer's device transfers, if the key is valid for that, and the memory is in the region. */
static int region_transfer(struct rc_side *s, const struct krc_swr *w)
{
	u32 access = w->op == KRC_OP_READ ? KRC_ACCESS_REMOTE_READ : KRC_ACCESS_REMOTE_WRITE;
	u64 offset, done = 0;
	u8 *local, *remote;
	struct rc_region *r;
	unsigned int i;
	u32 j;

	for (r = s->opened; r < s->opened + RC_GRANTS; r++)
		if (r->reachable && r->key == w->rma.iov.key)
			break;
	if (r == s->opened + RC_GRANTS)
		return -EIO;
	offset = w->rma.iov.addr - r->base;
	if (offset > r->map.length || w->total > r->map.length - offset)
		return -EIO;
	if (!(r->access & access))
		return -EIO;
	for (i = 0; i < w->nsge; i++) {
		local = (u8 *)(uintptr_t)w->sge[i].addr;
		for (j = 0; j < w->sge[i].len; j++) {
			remote = region_at(r, offset + done++);
			*(w->op == KRC_OP_READ ? &local[j] : remote) =
				w->op == KRC_OP_READ ? *remote : local[j];
		}
	}
	return 0;
}

/* A transfer succeeds, if it can; or fails. */
void rc_rma_end(struct rc_side *s, unsigned int n, int err)
{
	struct krc_swr *w;

	if (WARN_ON(n >= s->nrmas))
		return;
	w = s->rmas[n];
	spin_lock_irq(&s->q.lock);
	s->nrmas--;
	memmove(&s->rmas[n], &s->rmas[n + 1], (s->nrmas - n) * sizeof(w));
	spin_unlock_irq(&s->q.lock);
	krc_rma_done(w, err ?: region_transfer(s->peer, w));
	rc_runs();
}

/* --- above it --- */

static void log_add(struct krc_conn *c, const struct rc_done *done)
{
	struct rc_side *s = side_of(c);

	lockdep_assert_held(&c->lock);
	if (s->n < RC_LOG)
		s->log[s->n++] = *done;
}

void krc_up_sent(struct krc_conn *c, const struct krc_swr *w, int err)
{
	const struct rc_done done = { .id = w->id, .err = err };

	log_add(c, &done);
}

void krc_up_received(struct krc_conn *c, const struct krc_rwr *r, int err)
{
	const struct rc_done done = {
		.id = r->id, .recv = true, .err = err, .bytes = r->bytes, .inv = r->inv,
		.key = r->key,
	};

	log_add(c, &done);
}

void krc_up_notify(struct krc_conn *c)
{
	struct rc_side *s = side_of(c);

	spin_lock_irq(&c->lock);
	if (s->n != s->seen)
		s->notified++;
	s->seen = s->n;
	spin_unlock_irq(&c->lock);
}

/* Suites look at the completions themselves. */
void krc_up_notify_later(struct krc_conn *c)
{
	krc_up_notify(c);
}

void krc_up_stopped(struct krc_conn *c, enum krc_cause cause, int err)
{
	struct rc_side *s = side_of(c);

	s->stops++;
	s->cause = cause;
}

void krc_up_flushed(struct krc_conn *c)
{
	side_of(c)->flushes++;
}

/* --- work requests --- */

int rc_post(struct rc_side *s, const struct krc_swr *from, const struct krc_sge *sge)
{
	struct krc_swr *w;

	spin_lock_irq(&s->c.lock);
	w = krc_sq_next(&s->c);
	if (w) {
		*w = *from;
		memcpy(w->sge, sge, from->nsge * sizeof(*sge));
		s->c.head++;
	}
	spin_unlock_irq(&s->c.lock);
	krc_conn_push(&s->c);
	return w ? 0 : -ENOMEM;
}

static struct krc_sge sge_of(const void *data, u32 len)
{
	return (struct krc_sge){ .addr = (uintptr_t)data, .len = len };
}

int rc_send(struct rc_side *s, u64 id, const void *data, u32 len)
{
	const struct krc_sge sge = sge_of(data, len);
	const struct krc_swr w = {
		.id = id, .op = KRC_OP_SEND, .flags = KRC_F_SIGNALED, .nsge = 1, .total = len,
	};

	return rc_post(s, &w, &sge);
}

int rc_send_inv(struct rc_side *s, u64 id, const void *data, u32 len, u32 key)
{
	const struct krc_sge sge = sge_of(data, len);
	const struct krc_swr w = {
		.id = id, .op = KRC_OP_SEND, .flags = KRC_F_SIGNALED | KRC_F_INV, .nsge = 1,
		.total = len, .key = key,
	};

	return rc_post(s, &w, &sge);
}

int rc_write(struct rc_side *s, u64 id, const void *data, u32 len, u32 key, u64 addr)
{
	const struct krc_sge sge = sge_of(data, len);
	const struct krc_swr w = {
		.id = id, .op = KRC_OP_WRITE, .flags = KRC_F_SIGNALED, .nsge = 1, .total = len,
		.key = key, .raddr = addr,
	};

	return rc_post(s, &w, &sge);
}

int rc_read(struct rc_side *s, u64 id, void *data, u32 len, u32 key, u64 addr)
{
	const struct krc_sge sge = sge_of(data, len);
	const struct krc_swr w = {
		.id = id, .op = KRC_OP_READ, .flags = KRC_F_SIGNALED, .nsge = 1, .total = len,
		.key = key, .raddr = addr,
	};

	return rc_post(s, &w, &sge);
}

int rc_recv(struct rc_side *s, u64 id, void *buf, u32 len)
{
	const struct krc_rwr r = { .id = id, .room = len, .nsge = 1, .sge = { sge_of(buf, len) } };
	int ret;

	spin_lock_irq(&s->c.lock);
	ret = krc_rq_add(&s->c, &r);
	spin_unlock_irq(&s->c.lock);
	krc_conn_push(&s->c);
	return ret;
}

static void mr_free(void *mr)
{
	krc_mr_fini(mr);
	synchronize_rcu();
	kfree(mr);
}

struct krc_mr *rc_mr(struct kunit *test, struct rc_side *s, void *memory, u32 pages)
{
	struct krc_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mr);
	KUNIT_ASSERT_EQ(test, krc_mr_init(mr, &s->mrs, s, RC_MR_PAGES), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, mr_free, mr), 0);
	rc_map(mr, memory, pages);
	return mr;
}

void rc_map(struct krc_mr *mr, void *memory, u32 pages)
{
	u32 i;

	krc_mr_map_begin(mr);
	for (i = 0; i < pages; i++)
		WARN_ON(krc_mr_map_page(mr, (uintptr_t)memory + i * PAGE_SIZE));
	krc_mr_map_end(mr);
}

int rc_reg(struct rc_side *s, u64 id, struct krc_mr *mr, u64 iova, u64 len, u32 access)
{
	const struct krc_swr w = {
		.id = id, .op = KRC_OP_REG, .flags = KRC_F_SIGNALED,
		.map = { .iova = iova, .length = len, .shift = PAGE_SHIFT, .access = access,
			 .key = rc_key(mr), .nr = krc_mr_mapping(mr) },
	};

	return rc_post(s, &w, NULL);
}

int rc_inval(struct rc_side *s, u64 id, u32 key)
{
	const struct krc_swr w = {
		.id = id, .op = KRC_OP_INVAL, .flags = KRC_F_SIGNALED, .key = key,
	};

	return rc_post(s, &w, NULL);
}

/* --- datagrams --- */

void rc_runs(void)
{
	krc_queue_run(&rc->a.q);
	krc_queue_run(&rc->b.q);
	flush_work(&rc->a.q.work);
	flush_work(&rc->b.q.work);
}

/* The nth datagram that waits, or NULL. */
struct krc_buf *rc_nth(struct rc_side *s, unsigned int n)
{
	struct krc_buf *buf;

	list_for_each_entry(buf, &s->sent, list)
		if (!n--)
			return buf;
	return NULL;
}

/* A datagram arrives at the peer. Its sender doesn't know yet. */
void rc_deliver(struct rc_side *s, struct krc_buf *buf)
{
	size_t len = buf->head_len + buf->piece_len;
	u8 *copy = kmalloc(len, GFP_KERNEL);

	if (WARN_ON(!copy))
		return;
	memcpy(copy, buf->head, buf->head_len);
	if (buf->piece_len)
		memcpy(copy + buf->head_len, buf->piece, buf->piece_len);
	krc_message(&s->peer->q, copy, len);
	kfree(copy);
	rc_runs();
}

/* The send of a datagram completes. */
void rc_end(struct rc_side *s, struct krc_buf *buf, int err)
{
	spin_lock_irq(&s->q.lock);
	list_del(&buf->list);
	s->nsent--;
	spin_unlock_irq(&s->q.lock);
	krc_sent(buf, err);
}

/* The nth datagram arrives, and its send completes. */
void rc_arrive(struct rc_side *s, unsigned int n)
{
	struct krc_buf *buf = rc_nth(s, n);

	if (WARN_ON(!buf))
		return;
	rc_deliver(s, buf);
	rc_end(s, buf, 0);
	rc_runs();
}

/* All datagrams arrive in order, and those that follow from them. */
void rc_all(void)
{
	while (rc->a.nsent || rc->b.nsent)
		rc_arrive(rc->a.nsent ? &rc->a : &rc->b, 0);
}

/* A datagram of the case's own making arrives. */
void rc_inject(struct rc_side *to, const struct krc_dgram *d, const void *data, u32 len)
{
	struct krc_wire_dgram *copy = kzalloc(KRC_HDR + len, GFP_KERNEL);
	size_t n;

	if (WARN_ON(!copy))
		return;
	n = krc_build(copy, d);
	if (len)
		memcpy((u8 *)copy + n, data, len);
	krc_message(&to->q, copy, n + len);
	kfree(copy);
	rc_runs();
}

/* --- begin and end --- */

static void side_init(struct kunit *test, struct rc_side *s, struct rc_side *peer)
{
	const struct krc_conn_attr attr = {
		.mrs = &s->mrs, .pd = s, .sends = RC_SENDS, .send_sges = 4, .recvs = RC_RECVS,
	};
	unsigned int i;

	s->peer = peer;
	INIT_LIST_HEAD(&s->sent);
	INIT_LIST_HEAD(&s->todo);
	krc_mrs_init(&s->mrs);
	krc_queue_init(&s->q);
	s->bufs = kunit_kcalloc(test, RC_BUFS, sizeof(*s->bufs), GFP_KERNEL);
	s->memory = kunit_kzalloc(test, RC_MEMORY, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, s->bufs);
	KUNIT_ASSERT_NOT_NULL(test, s->memory);
	for (i = 0; i < RC_BUFS; i++) {
		s->bufs[i].queue = &s->q;
		list_add_tail(&s->bufs[i].list, &s->q.free);
		s->q.nfree++;
	}
	KUNIT_ASSERT_EQ(test, krc_conn_init(&s->c, &attr), 0);
	s->inited = true;
}

static void side_stop(struct rc_side *s)
{
	if (!s->inited)
		return;
	krc_stop(&s->c, KRC_BY_ULP, 0);
	while (s->nsent)
		rc_end(s, rc_nth(s, 0), 0);
	while (s->nrmas)
		rc_rma_end(s, 0, -ENODEV);
	while (s->ntodo)
		rc_grant_end(s, 0, 0);
}

/* A ULP's connection ends at the latest when it destroys its queue pair. */
static void side_end(struct rc_side *s)
{
	struct krc_queue *q = s->c.queue ?: &s->q;

	if (!s->inited)
		return;
	krc_queue_run(q);
	krc_conn_fini(&s->c);
	flush_work(&q->work);
	krc_grants_fini(&s->q);
}

int rc_scene_init(struct kunit *test)
{
	unsigned int i;
	u8 *memory;

	rc = kunit_kzalloc(test, sizeof(*rc), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, rc);
	krc_revoke_ms = KOFI_NEVER_MS;
	krc_reset_ms = 0;
	side_init(test, &rc->a, &rc->b);
	side_init(test, &rc->b, &rc->a);
	memory = rc->a.memory;
	for (i = 0; i < RC_MEMORY; i++)
		memory[i] = i * 7 + i / 251;
	return 0;
}

void rc_scene_exit(struct kunit *test)
{
	unsigned int i;

	if (!rc)
		return;
	rc->ended = true;
	/* All of them first, because a region's user may keep another one that waits. */
	side_stop(&rc->a);
	side_stop(&rc->b);
	for (i = 0; i < rc->nothers; i++)
		side_stop(rc->others[i]);
	while (rc->nothers)
		side_end(rc->others[--rc->nothers]);
	side_end(&rc->a);
	side_end(&rc->b);
	/* Regions were freed by actions of the case, which come later: none needs the lists. */
}

int rc_suite_init(struct kunit_suite *suite)
{
	krc_wq = alloc_workqueue("rc_scene", WQ_MEM_RECLAIM, 0);
	krc_stop_wq = alloc_workqueue("rc_scene_stop", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	krc_grant_wq = alloc_workqueue("rc_scene_grant", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return krc_wq && krc_stop_wq && krc_grant_wq ? 0 : -ENOMEM;
}

void rc_suite_exit(struct kunit_suite *suite)
{
	destroy_workqueue(krc_grant_wq);
	destroy_workqueue(krc_stop_wq);
	destroy_workqueue(krc_wq);
	krc_conn_exit();
}

static void side_open(struct kunit *test, struct rc_side *s, const struct krc_side *side,
		      bool live)
{
	const struct krc_peer peer = { .queue = &s->q, .max_msg = 8928, .side = *side };

	KUNIT_ASSERT_EQ(test, krc_conn_open(&s->c, &peer, live), 0);
}

/* Let a queue have no more than so many free datagrams. */
void rc_take_bufs(struct rc_side *s, struct list_head *taken, u32 leave)
{
	while (s->q.nfree > leave) {
		list_move(s->q.free.next, taken);
		s->q.nfree--;
	}
}

void rc_give_bufs(struct rc_side *s, struct list_head *taken)
{
	while (!list_empty(taken)) {
		list_move(taken->next, &s->q.free);
		s->q.nfree++;
	}
}

/* Connect both sides, as cm.c does: the passive side is open first. */
static u8 side_features(const struct krc_queue *q)
{
	return (q->can_write ? KRC_CAN_WRITE : 0) | (q->can_read ? KRC_CAN_READ : 0);
}

void rc_connect(struct kunit *test)
{
	struct krc_side a, b;

	KUNIT_ASSERT_EQ(test, krc_conn_prepare(&rc->a.c, 4, 4), 0);
	krc_conn_describe(&rc->a.c, &a);
	a.datagram = 4608;
	a.features = side_features(&rc->a.q);
	KUNIT_ASSERT_EQ(test, krc_conn_prepare(&rc->b.c, 4, 4), 0);
	side_open(test, &rc->b, &a, false);
	krc_conn_describe(&rc->b.c, &b);
	b.datagram = 4608;
	b.features = side_features(&rc->b.q);
	side_open(test, &rc->a, &b, true);
	krc_conn_live(&rc->b.c);
	krc_run(&rc->a.c);
}

static void connect_devices(struct kunit *test, unsigned int grants, bool writes, bool reads)
{
	struct rc_side *s;

	for (s = &rc->a; s; s = s == &rc->a ? &rc->b : NULL) {
		s->q.can_write |= writes;
		s->q.can_read = reads;
		s->q.max_rma = SZ_1M;
		s->q.rma_slots = RC_SLOTS;
		s->q.grants_max = grants;
	}
	krc_rma_min = PAGE_SIZE;
	rc_connect(test);
	for (s = &rc->a; s; s = s == &rc->a ? &rc->b : NULL) {
		mod_delayed_work(krc_grant_wq, &s->q.grants_work, 0);
		flush_delayed_work(&s->q.grants_work);
	}
}

/* Both devices write. A side has so many grants. */
void rc_connect_rma(struct kunit *test, unsigned int grants)
{
	connect_devices(test, grants, true, false);
}

/* Both devices read. */
void rc_connect_reads(struct kunit *test, unsigned int grants, bool writes)
{
	connect_devices(test, grants, writes, true);
}

/*
 * Another connection of a side's queue, protection domain and memory. Its peer is nobody, and has
 * receives for all that it sends.
 */
struct rc_side *rc_another(struct kunit *test, struct rc_side *s)
{
	const struct krc_conn_attr attr = {
		.mrs = &s->mrs, .pd = s, .sends = RC_SENDS, .send_sges = 4, .recvs = RC_RECVS,
	};
	const struct krc_peer peer = {
		.queue = &s->q, .max_msg = 8928,
		.side = { .cookie = 1, .credits = RC_SENDS, .datagram = 4608,
			  .window = KRC_WINDOW, .features = side_features(&s->q) },
	};
	struct rc_side *o = kunit_kzalloc(test, sizeof(*o), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, o);
	KUNIT_ASSERT_LT(test, rc->nothers, RC_OTHERS + 0U);
	INIT_LIST_HEAD(&o->sent);
	INIT_LIST_HEAD(&o->todo);
	krc_queue_init(&o->q);
	o->memory = s->memory;
	KUNIT_ASSERT_EQ(test, krc_conn_init(&o->c, &attr), 0);
	o->inited = true;
	rc->others[rc->nothers++] = o;
	KUNIT_ASSERT_EQ(test, krc_conn_prepare(&o->c, 4, 4), 0);
	KUNIT_ASSERT_EQ(test, krc_conn_open(&o->c, &peer, true), 0);
	return o;
}
