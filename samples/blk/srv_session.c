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

#define KB_TAKE_S	30	/* time-out for a client to take replies and data */
#define KB_END_S	60	/* time-out of operations after the end of a session */
#define KB_WATCH_MS	1000U

static DEFINE_HASHTABLE(kb_sessions_by_id, 6);	/* under kb_sessions_lock */

/* Number of session threads. Each completes kb_thread_end when it exits. */
static atomic_t kb_threads;
static DECLARE_COMPLETION(kb_thread_end);

static atomic64_t kb_stray;	/* commands without a session */

/* --- ending --- */

static void kb_stop_work(struct work_struct *work)
{
	kulp_net_shutdown(&container_of(work, struct kb_session, stop_work)->conn.net);
	/* The session may be waiting for sessions that it replaces. */
	wake_up_all(&kb_srv_wait);
}

/*
 * Make a session end, without waiting for it. @orderly: flush the store first, and tell the
 * client in BYE that it was flushed. Any context but hard IRQ.
 */
void kb_session_stop(struct kb_session *s, bool orderly)
{
	spin_lock_bh(&s->lock);
	if (!s->stop) {
		s->orderly = orderly;
		/* Pairs with kb_watch(), which reads @orderly. */
		smp_store_release(&s->stop, true);
		queue_work(kb_done_wq, &s->stop_work);
	}
	spin_unlock_bh(&s->lock);
}

void kb_session_violated(struct kb_session *s, const char *how)
{
	trace_kb_srv_violation(s->hello.client, how);
	if (!READ_ONCE(s->stop))
		pr_warn_ratelimited("%s at %s violates the protocol, ending its session: %s\n",
				    s->hello.client, s->conn.name, how);
	kb_session_stop(s, false);
}

/* Stop the sessions of a port, an export, or a device that is gone. NULL stands for any. */
void kb_sessions_stop(const struct kb_port *port, const struct kb_export *export,
		      const struct kulp_fabric *f)
{
	struct kb_session *s;

	spin_lock_bh(&kb_sessions_lock);
	list_for_each_entry(s, &kb_sessions, list)
		if ((!port || s->port == port) && (!export || s->export == export) &&
		    (!f || s->fabric == f))
			kb_session_stop(s, !f);
	spin_unlock_bh(&kb_sessions_lock);
}

void kb_sessions_resize(struct kb_export *export)
{
	struct kb_session *s;

	spin_lock_bh(&kb_sessions_lock);
	list_for_each_entry(s, &kb_sessions, list)
		if (s->export == export)
			WRITE_ONCE(s->resize, 1);
	spin_unlock_bh(&kb_sessions_lock);
}

static void kb_srv_gone(struct kulp_fabric *f)
{
	pr_warn("device %s was removed or has failed, ending its sessions\n",
		f->info->domain_attr->name);
	kb_sessions_stop(NULL, NULL, f);
}

/* --- commands --- */

static struct kb_session *kb_session_find(u64 id)
{
	struct kb_session *s;

	hash_for_each_possible_rcu(kb_sessions_by_id, s, hash, id)
		if (s->id == id)
			return s;
	return NULL;
}

/* Messages don't name their sender, but only the client knows the session ID. */
static void kb_srv_received(struct kulp_queue *q, void *buf, size_t len)
{
	const struct kb_cmd *wire = buf;
	struct kb_req *req = NULL;
	struct kb_cmd_msg msg;
	struct kb_session *s;
	bool bad = kb_parse_cmd(buf, len, &msg);

	rcu_read_lock();
	s = len >= sizeof(*wire) ?
		    kb_session_find(le64_to_cpu(wire->session)) : NULL;
	if (!s) {
		atomic64_inc(&kb_stray);
		trace_kb_srv_stray(len);
	} else if (bad) {
		kb_session_violated(s, "a malformed command");
	} else {
		req = kb_session_command(s, q, &msg);
	}
	rcu_read_unlock();
	if (req)
		kb_req_begin(req);
}

const struct kulp_role kb_srv_role = {
	.name		= "kofiblk_srv",
	.recv_len	= KB_CMD_MAX(KB_INLINE_MAX),
	.max_queues	= KB_QUEUES_MAX,
	.received	= kb_srv_received,
	.gone		= kb_srv_gone,
};

/* --- start --- */

/* Set the device of a session, whose removal ends the session; or NULL. */
void kb_session_on(struct kb_session *s, struct kulp_fabric *f)
{
	spin_lock_bh(&kb_sessions_lock);
	s->fabric = f;
	spin_unlock_bh(&kb_sessions_lock);
}

void kb_session_live(struct kb_session *s)
{
	u16 i;

	for (i = 0; i < s->nqueues; i++)
		s->queues[i].heard = jiffies;
	/* kb_sessions_show() reads the queues under the lock if the state isn't NEW. */
	spin_lock_bh(&kb_sessions_lock);
	WRITE_ONCE(s->state, KB_SESSION_LIVE);
	hash_add_rcu(kb_sessions_by_id, &s->hash, s->id);
	spin_unlock_bh(&kb_sessions_lock);
}

/* --- a session's life --- */

static int kb_tell_size(struct kb_session *s)
{
	struct kb_resize_msg msg = {
		.number = ++s->resizes,
		.bytes = READ_ONCE(s->export->store.disk.bytes),
	};
	u8 buf[sizeof(struct kb_resize)];
	size_t len = kb_build_resize(buf, &msg);

	return kulp_auth_sign(s->key, KB_AUTH_RESIZE, s->proof, buf, len) ?:
	       kulp_net_send(&s->conn.net, buf, len);
}

/* Always allow a client to reconnect, because its disk has users. */
static void kb_say_bye(struct kb_session *s, bool flushed)
{
	struct kb_bye_msg msg = { .again = true, .flushed = flushed };
	u8 buf[sizeof(struct kb_bye)];
	size_t len = kb_build_bye(buf, &msg);

	if (!kulp_auth_sign(s->key, KB_AUTH_BYE, s->proof, buf, len))
		kulp_net_send(&s->conn.net, buf, len);
}

static bool kb_session_silent(struct kb_session *s, unsigned long age)
{
	u16 i;

	for (i = 0; i < s->nqueues; i++)
		if (!time_after(jiffies, READ_ONCE(s->queues[i].heard) + age))
			return false;
	return true;
}

/* Return: why the session must end. */
static const char *kb_watch(struct kb_session *s)
{
	const u32 ms = s->limits.keep_alive, tick = clamp(ms / 4, 25U, KB_WATCH_MS);
	u8 buf[sizeof(struct kb_bye)];
	const char *why = NULL;
	struct kb_bye_msg bye;
	int ret;

	while (!why) {
		ret = kulp_net_recv(&s->conn.net, buf, sizeof(buf), tick);
		/* Pairs with kb_session_stop(), which sets @orderly. */
		if (smp_load_acquire(&s->stop)) {
			if (!s->orderly)
				kb_say_bye(s, false);
			return "stopped by the server";
		}
		if (ret >= 0 && !kb_parse_bye(buf, ret, &bye) &&
		    !kulp_auth_check(s->key, KB_AUTH_CLIENT_BYE, s->proof, buf, ret))
			return "the client left";
		if (ret >= 0 || ret == -EPROTO) {
			kb_session_violated(s, "an unexpected message over TCP");
			why = "the client violated the protocol";
			break;
		}
		if (ret != -ETIMEDOUT)
			return "the connection is lost";
		kb_mem_trim(s);
		if (xchg(&s->resize, 0) && kb_tell_size(s))
			return "the connection is lost";
		if (kb_session_silent(s, msecs_to_jiffies(ms)))
			why = "no message from the client within its keep-alive time-out";
		else if (kb_session_untaken(s, KB_TAKE_S * HZ))
			why = "the client doesn't take its replies or data";
	}
	kb_session_stop(s, false);
	kb_say_bye(s, false);
	return why;
}

static bool kb_session_idle(struct kb_session *s, u32 *posted)
{
	struct kb_load load;

	kb_session_load(s, &load, NULL);
	*posted = load.posted;
	return !load.in_flight;
}

/*
 * Flush the store, so that no write with a reply is lost if the store is reopened before the
 * client reconnects. Wait for half of the keep-alive time-out at most: after all of it the
 * client considers the server dead.
 */
static void kb_session_part(struct kb_session *s)
{
	u32 posted;
	bool idle;

	idle = wait_event_timeout(kb_srv_wait, kb_session_idle(s, &posted),
				  msecs_to_jiffies(s->limits.keep_alive / 2));
	kb_say_bye(s, idle && !kb_store_flush(&s->export->store));
}

/*
 * End a session that was live. Active operations complete by themselves, unless the client
 * or the device prevents it.
 */
static void kb_session_drain(struct kb_session *s)
{
	u32 posted;

	/* Flush most of the data while the session still answers each keep-alive. */
	if (s->orderly)
		kb_store_flush(&s->export->store);
	kb_session_ending(s);
	spin_lock_bh(&kb_sessions_lock);
	hash_del_rcu(&s->hash);
	spin_unlock_bh(&kb_sessions_lock);
	synchronize_rcu();
	kb_session_abort(s);
	if (s->orderly)
		kb_session_part(s);
	kulp_net_close(&s->conn.net);
	if (wait_event_timeout(kb_srv_wait, kb_session_idle(s, &posted), KB_END_S * HZ))
		return;
	/* If only the store is slow, wait: a request posts nothing after its I/O. */
	if (posted) {
		pr_warn("operations for %s at %s didn't complete after the session's end, closing device %s\n",
			s->hello.client, s->conn.name, s->fabric->info->domain_attr->name);
		kulp_fabric_lost(s->fabric);
	}
	wait_event(kb_srv_wait, kb_session_idle(s, &posted));
}

static void kb_session_free_fabric(struct kb_session *s)
{
	struct kulp_fabric *f = s->fabric;
	u16 i;

	for (i = 0; i < s->nqueues; i++) {
		struct kb_squeue *sq = &s->queues[i];

		if (!sq->s)
			break;
		kb_squeue_exit(sq);
		kulp_credits_give(sq->q, sq->credits);
		if (sq->has_peer)
			kulp_peer_put(f, sq->peer);
	}
	kb_session_on(s, NULL);
	kfree(s->queues);
	kfree(s->ping.wire);
	kulp_fabric_put(f);
}

static void kb_session_gone(struct kb_session *s)
{
	kulp_conn_settled(&s->port->listener, &s->conn);
	spin_lock_bh(&kb_sessions_lock);
	list_del(&s->list);
	spin_unlock_bh(&kb_sessions_lock);
	cancel_work_sync(&s->stop_work);
	kulp_net_close(&s->conn.net);
	kulp_key_put(s->key);
	mutex_lock(&kb_srv_lock);
	WRITE_ONCE(s->port->conf.nsessions, s->port->conf.nsessions - 1);
	if (s->export)
		WRITE_ONCE(s->export->conf.nsessions, s->export->conf.nsessions - 1);
	wake_up_all(&kb_srv_wait);
	mutex_unlock(&kb_srv_lock);
	kfree_rcu(s, rcu);
}

static int kb_session_thread(void *arg)
{
	struct kb_session *s = arg;
	const char *why;
	int ret;

	ret = kb_set_up(s);
	if (!ret) {
		pr_info("%s at %s, export %s: session begins, %u queues of depth %u\n",
			s->hello.client, s->conn.name, s->hello.export, s->nqueues,
			s->limits.depth);
		trace_kb_srv_session(s, "live");
		why = kb_watch(s);
		pr_info("%s at %s, export %s: session ends: %s\n", s->hello.client,
			s->conn.name, s->hello.export, why);
	}
	if (s->state != KB_SESSION_NEW)
		kb_session_drain(s);
	if (s->fabric)
		kb_session_free_fabric(s);
	trace_kb_srv_session(s, "gone");
	kb_session_gone(s);
	/* This runs the kernel's code, so the module may be unloaded after the completion. */
	kthread_complete_and_exit(&kb_thread_end, 0);
}

void kb_sessions_exit(void)
{
	while (atomic_dec_return(&kb_threads) >= 0)
		wait_for_completion(&kb_thread_end);
}

/* --- ports --- */

static struct kulp_conn *kb_conn_alloc(struct kulp_listener *l)
{
	struct kb_session *s = kzalloc(sizeof(*s), GFP_KERNEL);

	if (!s)
		return NULL;
	s->port = container_of(l, struct kb_port, listener);
	mutex_init(&s->conn.net.lock);
	spin_lock_init(&s->lock);
	INIT_LIST_HEAD(&s->mem_wait);
	INIT_WORK(&s->stop_work, kb_stop_work);
	return &s->conn;
}

static void kb_conn_free(struct kulp_conn *conn)
{
	kulp_net_close(&conn->net);
	kfree(container_of(conn, struct kb_session, conn));
}

static void kb_conn_start(struct kulp_listener *l, struct kulp_conn *conn)
{
	struct kb_session *s = container_of(conn, struct kb_session, conn);
	const char *why = kb_session_admit(s);
	struct task_struct *task;

	if (why) {
		kb_reject(s, -EBUSY, why);
		kulp_conn_settled(l, conn);
		kb_conn_free(conn);
		return;
	}
	atomic_inc(&kb_threads);
	task = kthread_run(kb_session_thread, s, "kofiblk_srv");
	if (!IS_ERR(task))
		return;
	kb_session_gone(s);
	atomic_dec(&kb_threads);
}

void kb_port_init(struct kb_port *port)
{
	port->listener.alloc = kb_conn_alloc;
	port->listener.free = kb_conn_free;
	port->listener.start = kb_conn_start;
	kulp_listener_init(&port->listener);
}

/* Start listening; under kb_conf.enabling. */
int kb_port_start(struct kb_conf *conf)
{
	struct kb_port *port = container_of(conf, struct kb_port, conf);
	const char *host = port->addr ?: "";
	char text[KULP_NET_NAME + 16];
	int ret;

	snprintf(text, sizeof(text), strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port->port);
	/* The first session may begin before the return. */
	kb_conf_set(conf, true);
	ret = kulp_listen(&port->listener, text, "kofiblk_port");
	if (ret)
		kb_conf_set(conf, false);
	return ret;
}

/* Stop listening, and stop all sessions without waiting; under kb_conf.enabling. */
void kb_port_stop(struct kb_conf *conf)
{
	struct kb_port *port = container_of(conf, struct kb_port, conf);

	kulp_listener_stop(&port->listener);
	kb_sessions_stop(port, NULL, NULL);
}

/* --- debugfs --- */

static const char * const kb_session_states[] = {
	[KB_SESSION_NEW]	= "new",
	[KB_SESSION_LIVE]	= "live",
	[KB_SESSION_ENDING]	= "ending",
};

/* A line for each session, without the ID, which is a secret. */
int kb_sessions_show(struct seq_file *m, void *unused)
{
	struct kb_session *s;

	spin_lock_bh(&kb_sessions_lock);
	list_for_each_entry(s, &kb_sessions, list) {
		struct kb_session_stats stats = {};
		struct kb_load load = {};

		/* Before LIVE the queues aren't set up yet. Without a fabric they are freed. */
		if (s->state != KB_SESSION_NEW && s->fabric)
			kb_session_load(s, &load, &stats);
		seq_printf(m, "client=%s export=%s peer=%s state=%s queues=%u depth=%u caps=%#x io=%u in_flight=%u memory=%u reads=%llu read_bytes=%llu writes=%llu write_bytes=%llu others=%llu errors=%llu waits=%llu checksums=%llu\n",
			   s->proven ? s->hello.client : "?",
			   s->proven ? s->hello.export : "?", s->conn.name,
			   kb_session_states[s->state], s->nqueues,
			   s->limits.depth, s->limits.caps, load.io,
			   load.in_flight, load.memory, stats.reads,
			   stats.read_bytes, stats.writes, stats.write_bytes,
			   stats.others, stats.errors, stats.mem_waits, stats.checksums);
	}
	spin_unlock_bh(&kb_sessions_lock);
	seq_printf(m, "stray=%llu\n", (u64)atomic64_read(&kb_stray));
	return 0;
}
