// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Begin and end of a session. Fabric objects (regions, credits) are kept between sessions, so that
 * beginning another one needs little memory. They are freed when the device is removed. Regions
 * whose keys another server may still use are replaced.
 */
#define pr_fmt(fmt) "kofiblk: " fmt

#include <linux/hashtable.h>
#include <linux/minmax.h>
#include <linux/random.h>
#include <linux/rculist.h>
#include <linux/string.h>
#include "cli.h"
#include "cli_trace.h"

static DEFINE_HASHTABLE(kbc_sessions, 6);
static DEFINE_SPINLOCK(kbc_sessions_lock);	/* protects kbc_sessions */

/* Called under rcu_read_lock(). */
struct kbc_disk *kbc_session_find(u64 session)
{
	struct kbc_disk *d;

	hash_for_each_possible_rcu(kbc_sessions, d, session.node, session)
		if (d->session.id == session)
			return d;
	return NULL;
}

/* Refuse an ID in use: a hostile server may choose the ID of a session with another server. */
static int kbc_publish(struct kbc_disk *d, u64 session)
{
	struct kbc_disk *other;

	spin_lock_bh(&kbc_sessions_lock);
	rcu_read_lock();
	other = kbc_session_find(session);
	rcu_read_unlock();
	if (!other) {
		d->session.id = session;
		WRITE_ONCE(d->session.open, true);
		hash_add_rcu(kbc_sessions, &d->session.node, session);
	}
	spin_unlock_bh(&kbc_sessions_lock);
	return other ? -EPROTO : 0;
}

/* No reply is handled after the return. */
static void kbc_unpublish(struct kbc_disk *d)
{
	spin_lock_bh(&kbc_sessions_lock);
	hash_del_rcu(&d->session.node);
	spin_unlock_bh(&kbc_sessions_lock);
	WRITE_ONCE(d->session.open, false);
	synchronize_rcu();
}

/* --- the fabric --- */

/* One receive for the reply to each command, and one for the reply to a keep-alive message. */
static u32 kbc_credits(const struct kbc_disk *d)
{
	return (d->made.known ? d->made.depth : d->options.depth) + 1;
}

static void kbc_credits_give(struct kbc_disk *d)
{
	struct kbc_queue *kq;
	unsigned int i;

	for (i = 0; i < d->nqueues; i++) {
		kq = &d->queues[i];
		if (kq->q) {
			kulp_user_del(kq->q, kq);
			kulp_credits_give(kq->q, kq->credits);
		}
		WRITE_ONCE(kq->q, NULL);
		kq->credits = 0;
	}
}

/* If the device has fewer queues than in the first session, several use one. */
static struct kulp_queue *kbc_queue_of(const struct kbc_disk *d, unsigned int index)
{
	const struct kulp_fabric *f = d->fabric;
	unsigned int others = f->nqueues - f->npolled;

	if (index && index <= d->npolled && f->npolled)
		return &f->queues[others + (index - 1) % f->npolled];
	return &f->queues[(index > d->npolled ? index - d->npolled : index) % others];
}

static int kbc_credits_take(struct kbc_disk *d)
{
	u32 want = kbc_credits(d);
	struct kbc_queue *kq;
	unsigned int i;

	for (i = 0; i < d->nqueues; i++) {
		kq = &d->queues[i];
		WRITE_ONCE(kq->q, kbc_queue_of(d, i));
		kq->credits = kulp_credits_take(kq->q, want);
		kq->user = d->fabric->can_imm ? kulp_user_add(kq->q, kq) : -1;
		kq->salt = get_random_u32();
		if (kq->credits < (d->made.known ? want : 2)) {
			kbc_err(d, "too few receives are left on the device: reduce depth= of its disks\n");
			return -EBUSY;
		}
	}
	return 0;
}

/* Give back credits that the limits granted to the first session leave unused. */
static void kbc_credits_trim(struct kbc_disk *d, u16 nqueues)
{
	u32 keep = kbc_credits(d);
	struct kbc_queue *kq;
	unsigned int i;

	for (i = 0; i < d->nqueues; i++) {
		kq = &d->queues[i];
		if (i >= nqueues)
			keep = 0;
		kulp_credits_give(kq->q, kq->credits - keep);
		kq->credits = keep;
		if (!keep) {
			kulp_user_del(kq->q, kq);
			WRITE_ONCE(kq->q, NULL);
		}
	}
	d->nqueues = nqueues;
	d->npolled = min_t(u16, d->npolled, nqueues - 1);
}

/* Free the objects of a disk without a session, and drop the device. */
static void kbc_fabric_forget(struct kbc_disk *d)
{
	struct kulp_fabric *f = d->fabric;

	if (!f)
		return;
	kbc_each_tag(d, kbc_region_free);
	kbc_credits_give(d);
	/* Wait for kbc_written() and kbc_poll(), which may use a queue under RCU. */
	synchronize_rcu();
	/* From here on kbc_gone() ignores the disk. */
	WRITE_ONCE(d->fabric, NULL);
	kulp_fabric_put(f);
}

/* Choose the number of queues for all sessions. The server may grant fewer. */
static void kbc_queues_choose(struct kbc_disk *d)
{
	const struct kulp_fabric *f = d->fabric;
	unsigned int others = min3(d->options.queues, (unsigned int)(f->nqueues - f->npolled),
				   num_online_cpus());

	d->npolled = min_t(unsigned int, d->options.select.polled, f->npolled);
	d->nqueues = min_t(unsigned int, others + d->npolled, KOFIBLK_QUEUES_MAX);
}

static int kbc_fabric_find(struct kbc_disk *d)
{
	struct kulp_fabric *f;
	int ret;

	if (d->fabric && READ_ONCE(d->fabric->gone))
		kbc_fabric_forget(d);
	if (d->fabric)
		return 0;
	f = kulp_fabric_get(d->options.checksum ? &kbc_role_sum : &kbc_role, &d->options.select);
	if (IS_ERR(f)) {
		kbc_err(d, "no fabric: can't open a device that matches prov=, fabric= and domain=: %ld\n",
			PTR_ERR(f));
		return PTR_ERR(f);
	}
	WRITE_ONCE(d->fabric, f);
	if (d->made.known && (f->info->addr_format != d->made.addr_format ||
			      kulp_fabric_protocol(f) != d->made.protocol ||
			      f->queues[0].addrlen != d->made.addrlen)) {
		kbc_fabric_forget(d);
		return -ENODATA;
	}
	if (!d->made.known)
		kbc_queues_choose(d);
	ret = kbc_credits_take(d);
	if (ret)
		kbc_fabric_forget(d);
	return ret;
}

/* --- requested limits --- */

static void kbc_wanted(const struct kbc_disk *d, struct kofiblk_limits *limits)
{
	const struct kulp_fabric *f = d->fabric;
	u32 credits = d->queues[0].credits;
	unsigned int i;

	for (i = 1; i < d->nqueues; i++)
		credits = min(credits, d->queues[i].credits);
	*limits = (struct kofiblk_limits) {
		.caps		= KOFIBLK_CAPS & ~(f->can_write ? 0 : KOFIBLK_CAP_RDMA_WRITE) &
				  ~(d->options.checksum ? 0 : KOFIBLK_CAP_CHECKSUM) &
				  ~(f->can_imm ? 0 : KOFIBLK_CAP_IMM),
		.max_io		= d->made.known ? d->made.accept.limits.max_io :
				  min_t(size_t, d->options.max_io,
					round_down(f->max_rma, KOFIBLK_IO_MIN)),
		.inline_max	= min_t(size_t, KOFIBLK_INLINE_MAX,
					f->max_msg - KOFIBLK_CMD_MAX(0)),
		.keep_alive	= d->options.keep_alive_tmo * MSEC_PER_SEC,
		.queues		= d->nqueues,
		.depth		= credits - 1,
		.inline_read	= round_down(min_t(size_t, KOFIBLK_INLINE_READ_MAX,
						   f->max_msg - KOFIBLK_REPLY_MAX(0)),
					     KOFIBLK_SECTOR),
	};
}

/* --- granted limits --- */

static int kbc_check_accept(struct kbc_disk *d, const struct kofiblk_limits *limits,
			    const struct kofiblk_accept_msg *accept)
{
	const char *changed;

	if (!kofiblk_limits_within(&accept->limits, limits)) {
		kbc_err(d, "the server granted more than requested\n");
		return -EPROTO;
	}
	/* The block layer needs disks that accept requests of a page. */
	if (accept->limits.max_io < PAGE_SIZE) {
		kbc_err(d, "the server grants %u bytes at a time, less than a page\n",
			accept->limits.max_io);
		return -EPROTO;
	}
	if (d->options.checksum && !(accept->limits.caps & KOFIBLK_CAP_CHECKSUM)) {
		kbc_err(d, "the server doesn't support checksums: omit checksum=\n");
		return -EOPNOTSUPP;
	}
	changed = d->made.known ? kbc_made_differs(&d->made.accept, accept) : NULL;
	if (!changed)
		return 0;
	kbc_err(d, "can't use the new session: %s\n", changed);
	return -ESTALE;
}

/* Take over what the server grants. The first session sets what never changes. */
static int kbc_settle(struct kbc_disk *d, const struct kofiblk_accept_msg *accept)
{
	d->session.limits = accept->limits;
	d->session.geometry = accept->disk;
	kbc_disk_limit(&d->session.geometry, accept->limits.max_io);
	if (d->made.known)
		return 0;
	d->made.depth = accept->limits.depth;
	d->made.max_bvecs = DIV_ROUND_UP(accept->limits.max_io, PAGE_SIZE) + 1;
	d->made.addr_format = d->fabric->info->addr_format;
	d->made.protocol = kulp_fabric_protocol(d->fabric);
	d->made.addrlen = d->fabric->queues[0].addrlen;
	d->made.accept = *accept;
	d->made.known = true;
	kbc_credits_trim(d, accept->limits.queues);
	return kbc_tags_alloc(d);
}

static void kbc_peers_put(struct kbc_disk *d)
{
	unsigned int i;

	for (i = 0; i < d->nqueues; i++) {
		if (d->queues[i].peer != FI_ADDR_UNSPEC)
			kulp_peer_put(d->fabric, d->queues[i].peer);
		d->queues[i].peer = FI_ADDR_UNSPEC;
	}
}

static int kbc_peers_get(struct kbc_disk *d)
{
	unsigned int i;
	int ret;

	for (i = 0; i < d->nqueues; i++) {
		ret = kulp_peer_get(d->fabric, d->link.room + i * d->link.addrs.len,
				    &d->queues[i].peer);
		if (ret) {
			d->queues[i].peer = FI_ADDR_UNSPEC;
			kbc_err(d, "can't reach the server's endpoint: %d\n", ret);
			return ret;
		}
	}
	return 0;
}

static void kbc_epoch_check(struct kbc_disk *d, u64 epoch)
{
	if (!kbc_epoch_begin(&d->epoch, epoch))
		return;
	kbc_inc(d, losses);
	trace_kofiblk_lost(d->name);
	kbc_err(d, "%s has reopened its store: data that was written and not flushed may be lost, failing flushes until 0 is written to kofiblk/lost\n",
		d->options.address);
}

static bool kbc_all_proved(struct kbc_disk *d)
{
	unsigned int i;

	for (i = 0; i < d->nqueues; i++)
		/* Pairs with kbc_proved(). */
		if (!smp_load_acquire(&d->queues[i].cmd_nonce))
			return false;
	return true;
}

static bool kbc_prove_over(struct kbc_disk *d)
{
	return kbc_all_proved(d) || READ_ONCE(d->failure) || READ_ONCE(d->stopping);
}

/*
 * Exchange nonces with the server's endpoints. It shows that messages arrive in both directions, so
 * that the disk isn't used, and waits, by sessions with a server whose device is deaf.
 */
static int kbc_prove_all(struct kbc_disk *d)
{
	const unsigned int ms = d->session.limits.keep_alive;
	unsigned int i;

	for (i = 0; i < d->nqueues; i++)
		kbc_prove(&d->queues[i]);
	if (!kbc_wait(d, kbc_prove_over, msecs_to_jiffies(ms), KBC_LOOK_MS))
		return -ETIMEDOUT;
	return READ_ONCE(d->failure) ?: kbc_all_proved(d) ? 0 : -ESHUTDOWN;
}

static int kbc_establish(struct kbc_disk *d, const char **step)
{
	const struct kofiblk_accept_msg *accept = &d->link.accept;
	struct kofiblk_limits limits;
	unsigned int i;
	int ret;

	/* Before the server ends a previous session. */
	*step = "the device still has messages of earlier ones";
	kbc_poll_all(d);
	for (i = 0; i < d->nqueues; i++)
		if (kbc_left_full(&d->queues[i]))
			return -EBUSY;
	kbc_wanted(d, &limits);
	ret = kbc_link_begin(d, &limits);
	*step = d->link.step;
	ret = ret ?: kbc_check_accept(d, &limits, accept);
	if (ret)
		return ret;
	kofiblk_keys_make(kcm_mac_key(d->link.cm), &d->session.keys);
	*step = "fabric objects";
	kbc_regions_renew(d, accept->epoch);
	ret = kbc_settle(d, accept) ?: kbc_peers_get(d) ?: kbc_regions_alloc(d) ?:
	      kbc_signals_alloc(d);
	if (ret)
		return ret;
	d->alive.seen = d->alive.gen;
	for (i = 0; i < d->nqueues; i++) {
		d->queues[i].cmd_nonce = 0;
		d->queues[i].reply_nonce = get_random_u64() ?: 1;
	}
	*step = "session ID";
	ret = kbc_publish(d, kcm_id(d->link.cm));
	if (ret)
		return ret;
	*step = "messages over the fabric";
	ret = kbc_prove_all(d);
	if (!ret)
		kbc_epoch_check(d, accept->epoch);
	return ret;
}

int kbc_connect(struct kbc_disk *d)
{
	const char *step = "device";
	unsigned int i;
	int ret;

	/* A late failure of the previous session must not end this one. */
	spin_lock_bh(&d->lock);
	WRITE_ONCE(d->attempt, d->attempt + 1);
	WRITE_ONCE(d->failure, 0);
	spin_unlock_bh(&d->lock);
	if (READ_ONCE(d->stopping))
		return -ESHUTDOWN;
	kbc_inc(d, attempts);
	for (i = 0; i < KOFIBLK_QUEUES_MAX; i++)
		d->queues[i].peer = FI_ADDR_UNSPEC;
	ret = kbc_fabric_find(d) ?: kbc_establish(d, &step);
	if (!ret) {
		kbc_inc(d, connects);
		return 0;
	}
	if (!READ_ONCE(d->stopping))
		kbc_err(d, "no session with %s: %s: %d\n", d->options.address, step, ret);
	if (ret == -EPROTO)
		kbc_inc(d, refused);
	if (d->session.id) {
		kbc_disconnect(d);
		return ret;
	}
	kbc_link_end(d);
	memzero_explicit(&d->session.keys, sizeof(d->session.keys));
	if (!d->fabric)
		return ret;
	kbc_peers_put(d);
	if (READ_ONCE(d->fabric->gone))
		kbc_fabric_forget(d);
	return ret;
}

/* End a session. kbc_request_start() neither runs nor is called. */
void kbc_disconnect(struct kbc_disk *d)
{
	kbc_unpublish(d);
	kbc_requests_abort(d);
	kbc_link_end(d);
	/*
	 * No reply is handled any more, so the flush covered all writes that had a reply. If the
	 * server stopped during set-up, these were writes of earlier sessions, and it may have
	 * reopened its store since.
	 */
	if (d->session.flushed && d->link.accept.epoch == d->epoch.epoch)
		kbc_epoch_flushed(&d->epoch);
	d->session.flushed = false;
	/* Nobody checks tags of the session any more. */
	memzero_explicit(&d->session.keys, sizeof(d->session.keys));
	kbc_peers_put(d);
	d->session.id = 0;
	if (READ_ONCE(d->fabric->gone))
		kbc_fabric_forget(d);
}

/* Free what is kept between sessions. */
void kbc_setup_free(struct kbc_disk *d)
{
	kbc_fabric_forget(d);
	kbc_tags_free(d);
}
