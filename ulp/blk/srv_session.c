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

static void kbs_stop_work(struct work_struct *work)
{
	kulp_net_shutdown(&container_of(work, struct kbs_session, stop_work)->conn.net);
	/* The session may be waiting for sessions that it replaces. */
	wake_up_all(&kbs_wait);
}

/*
 * Make a session end, without waiting for it. @how: PARTING; STOPPED; or ENDING, if even a session
 * that is PARTING must not send another reply. Any context but hard IRQ.
 */
void kbs_session_stop(struct kbs_session *s, enum kbs_session_state how)
{
	if (kbs_session_go(s, how))
		queue_work(kbs_done_wq, &s->stop_work);
}

void kbs_session_violated(struct kbs_session *s, const char *how)
{
	trace_kofiblk_srv_violation(s->hello.client, how);
	if (!kbs_session_stopped(s))
		pr_warn_ratelimited("%s at %s violates the protocol, ending its session: %s\n",
				    s->hello.client, s->conn.name, how);
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
	.max_queues	= KOFIBLK_QUEUES_MAX,
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
	struct kofiblk_resize_msg msg = {
		.number = ++s->resizes,
		.bytes = READ_ONCE(s->export->store.disk.bytes),
	};
	u8 buf[sizeof(struct kofiblk_resize)];
	size_t len = kofiblk_build_resize(buf, &msg);

	return kulp_auth_sign(s->key, KOFIBLK_AUTH_RESIZE, s->proof, buf, len) ?:
	       kulp_net_send(&s->conn.net, buf, len);
}

/* Always allow a client to reconnect, because its disk has users. */
static void kbs_say_bye(struct kbs_session *s, bool flushed)
{
	struct kofiblk_bye_msg msg = { .again = true, .flushed = flushed };
	u8 buf[sizeof(struct kofiblk_bye)];
	size_t len = kofiblk_build_bye(buf, &msg);

	if (!kulp_auth_sign(s->key, KOFIBLK_AUTH_BYE, s->proof, buf, len))
		kulp_net_send(&s->conn.net, buf, len);
}

static bool kbs_session_silent(struct kbs_session *s, unsigned long age)
{
	u16 i;

	for (i = 0; i < s->nqueues; i++)
		if (!time_after(jiffies, READ_ONCE(s->queues[i].heard) + age))
			return false;
	return true;
}

/* Return: why the session must end. */
static const char *kbs_watch(struct kbs_session *s)
{
	const u32 ms = s->limits.keep_alive, tick = clamp(ms / 4, 25U, KBS_WATCH_MS);
	u8 buf[sizeof(struct kofiblk_bye)];
	const char *why = NULL;
	struct kofiblk_bye_msg bye;
	int ret;

	while (!why) {
		ret = kulp_net_recv(&s->conn.net, buf, sizeof(buf), tick);
		if (kbs_session_stopped(s))
			return "stopped by the server";
		if (ret >= 0 && !kofiblk_parse_bye(buf, ret, &bye) &&
		    !kulp_auth_check(s->key, KOFIBLK_AUTH_CLIENT_BYE, s->proof, buf, ret))
			return "the client left";
		if (ret >= 0 || ret == -EPROTO) {
			kbs_session_violated(s, "an unexpected message over TCP");
			return "the client violated the protocol";
		}
		if (ret != -ETIMEDOUT)
			return "the connection is lost";
		kbs_mem_trim(s);
		if (xchg(&s->resize, 0) && kbs_tell_size(s))
			return "the connection is lost";
		if (kbs_session_silent(s, msecs_to_jiffies(ms)))
			why = "no message from the client within its keep-alive time-out";
		else if (kbs_session_untaken(s, KBS_TAKE_S * HZ))
			why = "the client doesn't take its replies or data";
	}
	kbs_session_stop(s, KBS_SESSION_STOPPED);
	return why;
}

static bool kbs_session_idle(struct kbs_session *s, u32 *posted)
{
	struct kbs_load load;

	kbs_session_load(s, &load, NULL);
	*posted = load.posted;
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
	u32 posted;
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
	idle = wait_event_idle_timeout(kbs_wait, kbs_session_idle(s, &posted), KBS_TAKE_S * HZ);
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

/* Wait until no operation of a session is in progress. */
static void kbs_session_settle(struct kbs_session *s)
{
	unsigned long began = jiffies;
	bool lost = false;
	u32 posted;

	while (!wait_event_idle_timeout(kbs_wait, kbs_session_idle(s, &posted), KBS_END_S * HZ)) {
		/* If only the store is slow, wait: a request posts nothing after its I/O. */
		if (lost || !posted || kbs_session_waits(s, began))
			continue;
		pr_warn("operations for %s at %s didn't complete after the session's end, closing device %s\n",
			s->hello.client, s->conn.name, s->fabric->info->domain_attr->name);
		kulp_fabric_lost(s->fabric);
		lost = true;
	}
}

/*
 * End a session that was live. One that nobody stopped has lost its client, so it gets no BYE.
 * Active operations complete by themselves, unless the client or the device prevents it.
 */
static void kbs_session_drain(struct kbs_session *s)
{
	const enum kbs_session_state state = READ_ONCE(s->state);

	if (state == KBS_SESSION_PARTING)
		kbs_session_part(s);
	else if (state != KBS_SESSION_LIVE)
		kbs_say_bye(s, false);
	kbs_session_quiet(s, KBS_SESSION_ENDING);
	spin_lock_bh(&kbs_sessions_lock);
	hash_del_rcu(&s->hash);
	spin_unlock_bh(&kbs_sessions_lock);
	synchronize_rcu();
	kbs_session_abort(s);
	kulp_net_close(&s->conn.net);
	kbs_session_credits_give(s);
	/* The client's next session may wait no longer. */
	wake_up_all(&kbs_wait);
	kbs_session_settle(s);
}

static void kbs_session_free_fabric(struct kbs_session *s)
{
	struct kulp_fabric *f = s->fabric;
	u16 i;

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

static void kbs_session_gone(struct kbs_session *s)
{
	kulp_conn_settled(&s->port->listener, &s->conn);
	spin_lock_bh(&kbs_sessions_lock);
	list_del(&s->list);
	spin_unlock_bh(&kbs_sessions_lock);
	cancel_work_sync(&s->stop_work);
	kulp_net_close(&s->conn.net);
	kulp_key_put(s->key);
	mutex_lock(&kbs_lock);
	WRITE_ONCE(s->port->conf.nsessions, s->port->conf.nsessions - 1);
	if (s->export)
		WRITE_ONCE(s->export->conf.nsessions, s->export->conf.nsessions - 1);
	wake_up_all(&kbs_wait);
	mutex_unlock(&kbs_lock);
	/* It isn't in the hash any more, so nobody checks tags. */
	memzero_explicit(&s->keys, sizeof(s->keys));
	memzero_explicit(s->proof, sizeof(s->proof));
	kfree(s->addrs);
	kfree_rcu(s, rcu);
}

static int kbs_session_thread(void *arg)
{
	struct kbs_session *s = arg;
	const char *why;
	int ret;

	ret = kbs_set_up(s);
	if (!ret) {
		pr_info("%s at %s, export %s: session begins, %u queues of depth %u\n",
			s->hello.client, s->conn.name, s->hello.export, s->nqueues,
			s->limits.depth);
		trace_kofiblk_srv_session(s, "live");
		why = kbs_watch(s);
		pr_info("%s at %s, export %s: session ends: %s\n", s->hello.client,
			s->conn.name, s->hello.export, why);
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

/* --- ports --- */

static struct kulp_conn *kbs_conn_alloc(struct kulp_listener *l)
{
	struct kbs_session *s = kzalloc(sizeof(*s), GFP_KERNEL);

	if (!s)
		return NULL;
	s->port = container_of(l, struct kbs_port, listener);
	kulp_net_init(&s->conn.net);
	spin_lock_init(&s->lock);
	INIT_LIST_HEAD(&s->mem_wait);
	INIT_WORK(&s->stop_work, kbs_stop_work);
	return &s->conn;
}

static void kbs_conn_free(struct kulp_conn *conn)
{
	kulp_net_close(&conn->net);
	kfree(container_of(conn, struct kbs_session, conn));
}

static void kbs_conn_start(struct kulp_listener *l, struct kulp_conn *conn)
{
	struct kbs_session *s = container_of(conn, struct kbs_session, conn);
	const char *why = kbs_session_admit(s);
	struct task_struct *task;

	if (why) {
		kbs_reject(s, -EBUSY, why);
		kulp_conn_settled(l, conn);
		kbs_conn_free(conn);
		return;
	}
	atomic_inc(&kbs_threads);
	task = kthread_run(kbs_session_thread, s, "kofiblk_srv");
	if (!IS_ERR(task))
		return;
	kbs_session_gone(s);
	atomic_dec(&kbs_threads);
}

void kbs_port_init(struct kbs_port *port)
{
	port->listener.alloc = kbs_conn_alloc;
	port->listener.free = kbs_conn_free;
	port->listener.start = kbs_conn_start;
	kulp_listener_init(&port->listener);
}

/* Start listening; under kbs_conf.enabling. */
int kbs_port_start(struct kbs_conf *conf)
{
	struct kbs_port *port = container_of(conf, struct kbs_port, conf);
	const char *host = port->addr ?: "";
	char text[KULP_NET_NAME + 16];
	int ret;

	if (!kulp_net_here()) {
		pr_err_ratelimited("ports use the first network namespace only: enable them there\n");
		return -EOPNOTSUPP;
	}
	snprintf(text, sizeof(text), strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port->port);
	/* The first session may begin before the return. */
	kbs_conf_set(conf, true);
	ret = kulp_listen(&port->listener, text, "kofiblk_port");
	if (ret)
		kbs_conf_set(conf, false);
	return ret;
}

/* Stop listening, and stop all sessions without waiting; under kbs_conf.enabling. */
void kbs_port_stop(struct kbs_conf *conf)
{
	struct kbs_port *port = container_of(conf, struct kbs_port, conf);

	kulp_listener_stop(&port->listener);
	kbs_sessions_stop(port, NULL, NULL);
}

/* --- debugfs --- */

static const char * const kbs_session_states[] = {
	[KBS_SESSION_NEW]	= "new",
	[KBS_SESSION_PROVEN]	= "proven",
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
			   s->turn ? s->hello.client : "?",
			   s->turn ? s->hello.export : "?", s->conn.name,
			   kbs_session_states[state], s->nqueues,
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
