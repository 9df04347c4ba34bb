// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Sessions, each with a thread. Commands find their session by its ID in a hash table under RCU. */
#define pr_fmt(fmt) "kofiblk_srv: " fmt

#include <linux/completion.h>
#include <linux/hashtable.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/rculist.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include "srv.h"
#include "srv_trace.h"

#define KBS_TAKE_S	30	/* time-out for a client to take replies and data */
#define KBS_PROVE_MS	30000U	/* least time-out for the first PROVE */
/*
 * Time-outs of operations after the end of a session: of a device that completes nothing, and of a
 * client that doesn't answer a device which works with others.
 */
#define KBS_END_S	60
#define KBS_PEER_S	600
#define KBS_WATCH_MS	1000U
#define KBS_FLUSHES	3	/* at most, before a session's requests stop */

static DEFINE_HASHTABLE(kbs_sessions_by_id, 6);	/* under kbs_sessions_lock */

/* Number of session threads. Each completes kbs_thread_end when it exits. */
static atomic_t kbs_threads;
static DECLARE_COMPLETION(kbs_thread_end);

static atomic64_t kbs_stray;	/* commands without a session */

/* --- ending --- */

/*
 * Make a session end, without waiting for it. @how: PARTING; STOPPED; or ENDING, if even a session
 * that is PARTING must not send another reply. Any context but hard IRQ.
 */
void kbs_session_stop(struct kbs_session *s, enum kbs_session_state how)
{
	if (kbs_session_go(s, how))
		wake_up_all(&kbs_wait);
}

void kbs_session_violated(struct kbs_session *s, const char *how)
{
	trace_kofiblk_srv_violation(s->client, how);
	if (!kbs_session_stopped(s)) {
		pr_warn_ratelimited("%s at %s violates the protocol, ending its session: %s\n",
				    s->client, s->from, how);
		WRITE_ONCE(s->violated, true);
	}
	kbs_session_stop(s, KBS_SESSION_STOPPED);
}

/* Stop the sessions of a port, an export, or a device that is gone. NULL stands for any. */
void kbs_sessions_stop(const struct kbs_port *port, const struct kbs_export *export,
		       const struct kulp_fabric *f)
{
	struct kbs_session *s;

	spin_lock_bh(&kbs_sessions_lock);
	list_for_each_entry(s, &kbs_sessions, list)
		if ((!port || s->port == port) && (!export || s->export == export) &&
		    (!f || s->fabric == f))
			kbs_session_stop(s, f ? KBS_SESSION_STOPPED : KBS_SESSION_PARTING);
	spin_unlock_bh(&kbs_sessions_lock);
}

void kbs_sessions_resize(struct kbs_export *export)
{
	struct kbs_session *s;

	spin_lock_bh(&kbs_sessions_lock);
	list_for_each_entry(s, &kbs_sessions, list)
		if (s->export == export)
			WRITE_ONCE(s->resize, 1);
	spin_unlock_bh(&kbs_sessions_lock);
}

static void kbs_gone(struct kulp_fabric *f)
{
	pr_warn("device %s was removed or has failed, ending its sessions\n",
		f->info->domain_attr->name);
	kbs_sessions_stop(NULL, NULL, f);
}

/* --- commands --- */

static struct kbs_session *kbs_session_find(u64 id)
{
	struct kbs_session *s;

	hash_for_each_possible_rcu(kbs_sessions_by_id, s, hash, id)
		if (s->id == id)
			return s;
	return NULL;
}

/* Messages don't name their sender, so ignore those without the tag of their session. */
static void kbs_received(struct kulp_queue *q, void *buf, size_t len)
{
	struct kbs_session *s = NULL;
	struct kbs_req *req = NULL;
	struct kofiblk_cmd_msg msg;

	rcu_read_lock();
	if (!kofiblk_parse_cmd(buf, len, &msg))
		s = kbs_session_find(msg.session);
	if (s && kbs_session_sent(s, q, buf, &msg)) {
		req = kbs_session_command(s, &msg);
	} else {
		atomic64_inc(&kbs_stray);
		trace_kofiblk_srv_stray(len);
	}
	rcu_read_unlock();
	if (req)
		kbs_req_begin(req);
}

const struct kulp_role kbs_role = {
	.name		= "kofiblk_srv",
	.recv_len	= KOFIBLK_CMD_MAX(KOFIBLK_INLINE_MAX),
	/* A server with one CPU also grants a queue that the client polls. */
	.min_queues	= 2,
	.max_queues	= KOFIBLK_QUEUES_MAX,
	.lazy		= true,
	.received	= kbs_received,
	.gone		= kbs_gone,
};

/* --- start --- */

/* Set the device of a session, whose removal ends the session; or NULL. */
void kbs_session_on(struct kbs_session *s, struct kulp_fabric *f)
{
	spin_lock_bh(&kbs_sessions_lock);
	s->fabric = f;
	spin_unlock_bh(&kbs_sessions_lock);
}

/* Return: whether the session is live now. It isn't if it was stopped before. */
bool kbs_session_live(struct kbs_session *s)
{
	bool live;
	u16 i;

	for (i = 0; i < s->nqueues; i++)
		s->queues[i].heard = jiffies;
	/* kbs_sessions_show() reads the queues under the lock from LIVE on. */
	spin_lock_bh(&kbs_sessions_lock);
	live = kbs_session_go(s, KBS_SESSION_LIVE);
	if (live)
		hash_add_rcu(kbs_sessions_by_id, &s->hash, s->id);
	spin_unlock_bh(&kbs_sessions_lock);
	return live;
}

/* --- a session's life --- */

static int kbs_tell_size(struct kbs_session *s)
{
	const struct kofiblk_resize_msg msg = {
		.bytes = READ_ONCE(s->export->store.disk.bytes),
	};
	u8 buf[sizeof(struct kofiblk_resize)] __aligned(8);

	return kcm_note(s->cm, buf, kofiblk_build_resize(buf, &msg));
}

/* Always allow a client to reconnect, because its disk has users. Its connection may be lost. */
static void kbs_say_bye(struct kbs_session *s, bool flushed)
{
	const struct kofiblk_bye_msg msg = { .flushed = flushed };
	u8 buf[sizeof(struct kofiblk_bye)] __aligned(8);

	kcm_bye(s->cm, KCM_BYE_STOPPED, true, buf, kofiblk_build_bye(buf, &msg));
}

/* Return: time of the latest new command on any queue, in jiffies. */
static unsigned long kbs_session_heard(const struct kbs_session *s)
{
	unsigned long last = READ_ONCE(s->queues[0].heard), heard;
	u16 i;

	for (i = 1; i < s->nqueues; i++) {
		heard = READ_ONCE(s->queues[i].heard);
		if (time_after(heard, last))
			last = heard;
	}
	return last;
}

/*
 * Return: whether PROVE has come on any queue. kbs_ping() notes its time under the same lock, so
 * kbs_session_heard() returns that or a later one afterwards.
 */
static bool kbs_session_proven(struct kbs_session *s)
{
	bool proven = false;
	u16 i;

	for (i = 0; i < s->nqueues && !proven; i++) {
		spin_lock_bh(&s->queues[i].lock);
		proven = s->queues[i].proven;
		spin_unlock_bh(&s->queues[i].lock);
	}
	return proven;
}

/*
 * Return: why the session of a client that was last @heard then must end, or NULL. Before PROVE the
 * client inserts addresses and allocates regions, and its device may take a command for each.
 */
static const char *kbs_session_silent(const struct kbs_session *s, unsigned long heard, bool proven)
{
	const u32 ms = s->limits.keep_alive;

	if (proven && time_after(jiffies, heard + msecs_to_jiffies(ms)))
		return "no message from the client within its keep-alive time-out";
	if (time_after(jiffies, heard + msecs_to_jiffies(max(ms, KBS_PROVE_MS))))
		return "no message from the client over the fabric";
	return NULL;
}

static const char *kbs_session_cause(const struct kbs_session *s)
{
	if (READ_ONCE(s->violated))
		return "the client has violated the protocol";
	switch (READ_ONCE(s->end)) {
	case 0:
		return "stopped by the server";
	case -ECONNABORTED:
		return "the client left";
	case -ESTALE:
		return "the client has begun another one";
	case -ETIMEDOUT:
		return "no message from the client within its keep-alive time-out";
	}
	return "the connection is lost";
}

/* Return: why the session must end. */
static const char *kbs_watch(struct kbs_session *s)
{
	const u32 tick = clamp(s->limits.keep_alive / 4, 25U, KBS_WATCH_MS);
	unsigned long heard = kbs_session_heard(s), before;
	const char *why = NULL;
	bool proven;

	while (!why) {
		if (wait_event_idle_timeout(kbs_wait, kbs_session_stopped(s),
					    msecs_to_jiffies(tick)))
			return kbs_session_cause(s);
		kbs_mem_trim(s);
		/* It fails until the client has said that it is ready. */
		if (xchg(&s->resize, 0) && kbs_tell_size(s))
			WRITE_ONCE(s->resize, 1);
		/* Before kbs_session_heard(), which then knows when PROVE came. */
		proven = kbs_session_proven(s);
		before = heard;
		heard = kbs_session_heard(s);
		if (heard != before)
			kcm_heard(s->cm);
		why = kbs_session_silent(s, heard, proven);
		if (!why && kbs_session_untaken(s, KBS_TAKE_S * HZ))
			why = "the client doesn't take its replies or data";
	}
	kbs_session_stop(s, KBS_SESSION_STOPPED);
	return why;
}

static bool kbs_session_idle(struct kbs_session *s)
{
	struct kbs_load load;

	kbs_session_load(s, &load, NULL);
	return !load.in_flight;
}

/*
 * Flush the store, so that no write with a reply is lost if the store is reopened before the client
 * reconnects, and say so. A request without a reply ends the client's session after 30 s, so flush
 * most of the data while requests still get replies, and more often if the client wrote meanwhile.
 */
static void kbs_session_part(struct kbs_session *s)
{
	unsigned long began;
	bool idle;
	int i;

	for (i = 0; i < KBS_FLUSHES; i++) {
		began = jiffies;
		kbs_store_flush(&s->export->store);
		if (time_before(jiffies, began + HZ))
			break;
	}
	kbs_session_quiet(s, KBS_SESSION_CLOSING);
	kbs_session_abort(s);
	idle = wait_event_idle_timeout(kbs_wait, kbs_session_idle(s), KBS_TAKE_S * HZ);
	kbs_say_bye(s, idle && !kbs_store_flush(&s->export->store) &&
		    kbs_store_whole(&s->export->store));
}

/*
 * Return: whether to wait on for operations since @began. To close the device, because this client
 * is dead, would end the sessions of all clients. An administrator may wait for this one's end.
 */
static bool kbs_session_waits(const struct kbs_session *s, unsigned long began)
{
	return READ_ONCE(s->port->conf.enabled) && READ_ONCE(s->export->conf.enabled) &&
	       kulp_fabric_moves(s->fabric, jiffies - KBS_END_S * HZ) &&
	       time_before(jiffies, began + KBS_PEER_S * HZ);
}

/* Return: whether nothing is at the store, if kofi_cm waits for that; else whether all is over. */
static bool kbs_session_done(struct kbs_session *s, struct kbs_load *load)
{
	kbs_session_load(s, load, NULL);
	return s->cm ? !load->io : !load->in_flight;
}

/*
 * Wait until no operation of a session is in progress. The client's next session needn't wait for
 * operations of the device: see kbs_session_alone().
 */
static void kbs_session_settle(struct kbs_session *s)
{
	unsigned long began = jiffies;
	struct kbs_load load = {};
	bool lost = false;

	while (s->cm || load.in_flight) {
		if (wait_event_idle_timeout(kbs_wait, kbs_session_done(s, &load), KBS_END_S * HZ)) {
			if (s->cm)
				kcm_gone(s->cm);
			s->cm = NULL;
			continue;
		}
		/* If only the store is slow, wait: a request posts nothing after its I/O. */
		if (lost || !load.posted || kbs_session_waits(s, began))
			continue;
		pr_warn("operations for %s at %s didn't complete after the session's end, closing device %s\n",
			s->client, s->from, s->fabric->info->domain_attr->name);
		kulp_fabric_lost(s->fabric);
		lost = true;
	}
}

/*
 * End a session that was live. Active operations complete by themselves, unless the client or the
 * device prevents it.
 */
static void kbs_session_drain(struct kbs_session *s)
{
	if (READ_ONCE(s->state) == KBS_SESSION_PARTING)
		kbs_session_part(s);
	else
		kbs_say_bye(s, false);
	kbs_session_quiet(s, KBS_SESSION_ENDING);
	spin_lock_bh(&kbs_sessions_lock);
	hash_del_rcu(&s->hash);
	spin_unlock_bh(&kbs_sessions_lock);
	synchronize_rcu();
	kbs_session_abort(s);
	kbs_session_credits_give(s);
	/* The client's next session may wait no longer. */
	wake_up_all(&kbs_wait);
	/* Pairs with kbs_session_over(). */
	wait_event_idle(kbs_wait, smp_load_acquire(&s->over));
	kbs_session_settle(s);
}

static void kbs_session_free_fabric(struct kbs_session *s)
{
	struct kulp_fabric *f = s->fabric;
	u16 i;

	/* Others use the pages next. */
	if (READ_ONCE(s->exposed)) {
		/* If the device was closed, that has ended invalidations, too. */
		if (!READ_ONCE(f->gone))
			pr_err("device %s doesn't end a client's access to memory, closing it\n",
			       f->info->domain_attr->name);
		kulp_fabric_end(f);
	}
	for (i = 0; i < s->nqueues; i++) {
		struct kbs_squeue *sq = &s->queues[i];

		if (!sq->s)
			break;
		kbs_squeue_exit(sq);
		kulp_credits_give(sq->q, sq->credits);
		if (sq->has_peer)
			kulp_peer_put(f, sq->peer);
	}
	kbs_session_on(s, NULL);
	kfree(s->queues);
	kulp_fabric_put(f);
}

static void kbs_session_free(struct kbs_session *s)
{
	kulp_key_put(s->key);
	/* It isn't in the hash any more, so nobody checks tags. */
	memzero_explicit(&s->keys, sizeof(s->keys));
	kfree_rcu(s, rcu);
}

static void kbs_session_gone(struct kbs_session *s)
{
	kbs_session_remove(s);
	mutex_lock(&kbs_lock);
	WRITE_ONCE(s->port->conf.nsessions, s->port->conf.nsessions - 1);
	WRITE_ONCE(s->export->conf.nsessions, s->export->conf.nsessions - 1);
	wake_up_all(&kbs_wait);
	mutex_unlock(&kbs_lock);
	kbs_session_free(s);
}

static int kbs_session_thread(void *arg)
{
	struct kbs_session *s = arg;
	const char *why;
	int ret;

	ret = kbs_set_up(s);
	if (!ret) {
		pr_info("%s at %s, export %s: session begins, %u queues of depth %u\n",
			s->client, s->from, s->name, s->nqueues,
			s->limits.depth);
		trace_kofiblk_srv_session(s, "live");
		why = kbs_watch(s);
		pr_info("%s at %s, export %s: session ends: %s\n", s->client,
			s->from, s->name, why);
	}
	if (READ_ONCE(s->state) >= KBS_SESSION_LIVE)
		kbs_session_drain(s);
	if (s->fabric)
		kbs_session_free_fabric(s);
	trace_kofiblk_srv_session(s, "gone");
	kbs_session_gone(s);
	/* This runs the kernel's code, so the module may be unloaded after the completion. */
	kthread_complete_and_exit(&kbs_thread_end, 0);
}

void kbs_sessions_exit(void)
{
	while (atomic_dec_return(&kbs_threads) >= 0)
		wait_for_completion(&kbs_thread_end);
}

/* --- kofi_cm --- */

static int kbs_session_describe(struct kbs_session *s, const struct kcm_peer *peer)
{
	u8 buf[sizeof(struct kofiblk_hello)] __aligned(8);
	size_t bytes = peer->addrs.len * peer->addrs.count;

	strscpy(s->client, peer->name, sizeof(s->client));
	strscpy(s->name, peer->instance, sizeof(s->name));
	strscpy(s->from, peer->from, sizeof(s->from));
	memcpy(s->host, peer->host, sizeof(s->host));
	s->addrs = peer->addrs;
	s->addrs.addr = s->room;
	s->key = kulp_key_get(peer->key);
	if (peer->priv_len != sizeof(buf) || bytes > sizeof(s->room))
		return -EPROTO;
	memcpy(s->room, peer->addrs.addr, bytes);
	memcpy(buf, peer->priv, sizeof(buf));
	if (kofiblk_parse_hello(buf, sizeof(buf), &s->hello))
		return -EPROTO;
	return s->addrs.count == s->hello.limits.queues ? 0 : -EPROTO;
}

/*
 * Start a session's thread. kthreadd may wait until memory is written out to a disk, and while
 * memory is short kofi_cm has one worker for all sessions, one of which may be that disk's.
 */
static void kbs_session_start(struct work_struct *work)
{
	struct kbs_session *s = container_of(work, struct kbs_session, start);
	struct task_struct *task;

	atomic_inc(&kbs_threads);
	task = kthread_run(kbs_session_thread, s, "kofiblk_srv");
	if (!IS_ERR(task))
		return;
	atomic_dec(&kbs_threads);
	kbs_refuse(s, PTR_ERR(task), "no memory");
	kbs_session_gone(s);
}

/*
 * Begin a session, whose client has proved its identity. From a callback of kofi_cm. Return: 0,
 * also if the client was refused; or a negative errno.
 */
int kbs_session_new(struct kbs_port *port, struct kcm_session *cm, const struct kcm_peer *peer)
{
	struct kbs_session *s = kzalloc(sizeof(*s), GFP_NOIO);
	const char *why;
	int ret;

	if (!s)
		return -ENOMEM;
	s->port = port;
	s->cm = cm;
	s->id = kcm_id(cm);
	spin_lock_init(&s->lock);
	INIT_LIST_HEAD(&s->mem_wait);
	kofiblk_keys_make(kcm_mac_key(cm), &s->keys);
	ret = kbs_session_describe(s, peer);
	why = ret ? "an invalid HELLO" : kbs_session_admit(s, &ret);
	if (why) {
		kbs_refuse(s, ret, why);
		kbs_session_free(s);
		return 0;
	}
	kcm_set_context(cm, s);
	INIT_WORK(&s->start, kbs_session_start);
	queue_work(kbs_drop_wq, &s->start);
	return 0;
}

/* kofi_cm has ended a session; from its callback. The thread may free it as soon as it is over. */
void kbs_session_over(struct kbs_session *s, int err)
{
	WRITE_ONCE(s->end, err);
	if (err == -EPROTO || err == -EACCES)
		kbs_session_violated(s, "an invalid message over TCP");
	else
		kbs_session_stop(s, KBS_SESSION_STOPPED);
	/* Pairs with kbs_session_drain() and kbs_refuse(). */
	smp_store_release(&s->over, true);
	wake_up_all(&kbs_wait);
}

/* --- debugfs --- */

static const char * const kbs_session_states[] = {
	[KBS_SESSION_NEW]	= "new",
	[KBS_SESSION_REFUSED]	= "refused",
	[KBS_SESSION_LIVE]	= "live",
	[KBS_SESSION_PARTING]	= "parting",
	[KBS_SESSION_CLOSING]	= "closing",
	[KBS_SESSION_STOPPED]	= "stopped",
	[KBS_SESSION_ENDING]	= "ending",
};

/* A line for each session, without the ID, which is a secret. */
int kbs_sessions_show(struct seq_file *m, void *unused)
{
	struct kbs_session *s;

	spin_lock_bh(&kbs_sessions_lock);
	list_for_each_entry(s, &kbs_sessions, list) {
		const enum kbs_session_state state = READ_ONCE(s->state);
		struct kbs_session_stats stats = {};
		struct kbs_load load = {};

		/* Before LIVE the queues aren't set up yet. Without a fabric they are freed. */
		if (state >= KBS_SESSION_LIVE && s->fabric)
			kbs_session_load(s, &load, &stats);
		seq_printf(m,
			   "client=%s export=%s peer=%s state=%s queues=%u depth=%u caps=%#x io=%u in_flight=%u memory=%u reads=%llu read_bytes=%llu writes=%llu write_bytes=%llu others=%llu errors=%llu waits=%llu checksums=%llu stale=%llu\n",
			   s->client, s->name, s->from, kbs_session_states[state], s->nqueues,
			   s->limits.depth, s->limits.caps, load.io,
			   load.in_flight, load.memory, stats.reads,
			   stats.read_bytes, stats.writes, stats.write_bytes,
			   stats.others, stats.errors, stats.mem_waits, stats.checksums,
			   stats.stale);
	}
	spin_unlock_bh(&kbs_sessions_lock);
	seq_printf(m, "stray=%llu\n", (u64)atomic64_read(&kbs_stray));
	return 0;
}
