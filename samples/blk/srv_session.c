// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sessions: set up over TCP, watched, ended, all by a thread of their own. Others
 * find a session in one list, commands by its id in a table under RCU.
 */
#define pr_fmt(fmt) "kofiblk_srv: " fmt

#include <linux/completion.h>
#include <linux/hashtable.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/rculist.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include "srv.h"
#include "srv_trace.h"

/* Connections of a port that have proved nothing yet, and those from one address. */
#define KB_HALF_OPEN		16
#define KB_HALF_OPEN_PEER	4
#define KB_SETUP_MS	5000	/* for each message */
#define KB_REPLACE_MS	10000	/* for the I/O of the session before */
#define KB_TAKE_S	30	/* for a client to take what it asked for */
#define KB_END_S	60	/* for it to arrive, once the session is over */
#define KB_WATCH_MS	1000

static DEFINE_SPINLOCK(kb_sessions_lock);	/* protects both, BH off */
static LIST_HEAD(kb_sessions);
static DEFINE_HASHTABLE(kb_sessions_by_id, 6);

/* Threads, each of which ends by a completion. */
static atomic_t kb_threads;
static DECLARE_COMPLETION(kb_thread_end);

static atomic64_t kb_stray;	/* commands of no session */

/* --- ending --- */

static void kb_stop_work(struct work_struct *work)
{
	kb_net_shutdown(&container_of(work, struct kb_session,
				      stop_work)->net);
}

/**
 * kb_session_stop() - have a session end, soon
 * @s: the session
 * @again: the client shall come back
 *
 * Context: Any but hard IRQ; doesn't sleep.
 */
void kb_session_stop(struct kb_session *s, bool again)
{
	spin_lock_bh(&s->lock);
	if (!s->stop) {
		s->again = again;
		/* Pairs with kb_watch(), which tells the client. */
		smp_store_release(&s->stop, true);
		queue_work(kb_done_wq, &s->stop_work);
	}
	spin_unlock_bh(&s->lock);
}

/**
 * kb_session_violated() - a client did what none should
 * @s: its session, which ends
 * @how: what it did
 *
 * Context: Any but hard IRQ; doesn't sleep.
 */
void kb_session_violated(struct kb_session *s, const char *how)
{
	trace_kb_srv_violation(s->hello.client, how);
	if (!READ_ONCE(s->stop))
		pr_warn_ratelimited("%s at %s: %s\n", s->hello.client,
				    s->peer_name, how);
	kb_session_stop(s, false);
}

/**
 * kb_sessions_stop() - have sessions end, soon
 * @port: of this port, or NULL
 * @export: of this export, or NULL
 */
void kb_sessions_stop(const struct kb_port *port,
		      const struct kb_export *export)
{
	struct kb_session *s;

	spin_lock_bh(&kb_sessions_lock);
	list_for_each_entry(s, &kb_sessions, list)
		if ((!port || s->port == port) &&
		    (!export || s->export == export))
			kb_session_stop(s, true);
	spin_unlock_bh(&kb_sessions_lock);
}

/**
 * kb_sessions_resize() - tell clients of a size
 * @export: whose size it is
 */
void kb_sessions_resize(struct kb_export *export)
{
	struct kb_session *s;

	spin_lock_bh(&kb_sessions_lock);
	list_for_each_entry(s, &kb_sessions, list)
		if (s->export == export)
			WRITE_ONCE(s->resize, 1);
	spin_unlock_bh(&kb_sessions_lock);
}

static void kb_srv_gone(struct kb_fabric *f)
{
	struct kb_session *s;

	pr_warn("%s went away\n", f->info->domain_attr->name);
	spin_lock_bh(&kb_sessions_lock);
	list_for_each_entry(s, &kb_sessions, list)
		if (s->fabric == f)
			kb_session_stop(s, true);
	spin_unlock_bh(&kb_sessions_lock);
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

/* Nobody says whom a message is from, but only the client knows the id. */
static void kb_srv_received(struct kb_queue *q, void *buf, size_t len)
{
	const struct kb_cmd *wire = buf;
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
		kb_session_command(s, q, &msg);
	}
	rcu_read_unlock();
}

const struct kb_role kb_srv_role = {
	.name		= "kofiblk_srv",
	.recv_len	= KB_CMD_MAX(KB_INLINE_MAX),
	.received	= kb_srv_received,
	.gone		= kb_srv_gone,
};

/* --- set-up --- */

/* What is said until both agree. */
struct kb_setup {
	size_t	hello_len;
	size_t	accept_len;
	size_t	challenge_len;
	bool	auth;
	u8	hello[KB_NET_MAX];
	u8	challenge[sizeof(struct kb_challenge)];
	u8	accept[KB_NET_MAX];
	struct kb_accept_msg msg;
	struct kb_hello_msg asked;
	u8	addrs[KB_QUEUES_MAX * KB_ADDR_MAX];
};

static void kb_reject(struct kb_session *s, int err, bool again,
		      const char *why)
{
	struct kb_reject_msg msg = {
		.status	= kb_errno_status(err),
		.again	= again,
	};
	u8 buf[sizeof(struct kb_reject)];

	strscpy(msg.why, why, sizeof(msg.why));
	kb_net_send(&s->net, buf, kb_build_reject(buf, &msg));
}

static int kb_refuse(struct kb_session *s, int err, bool again, const char *why)
{
	pr_info_ratelimited("%s at %s, export %s: refused: %s\n",
			    s->hello.client[0] ? s->hello.client : "?",
			    s->peer_name,
			    s->hello.export[0] ? s->hello.export : "?", why);
	trace_kb_srv_violation(s->hello.client, why);
	kb_reject(s, err, again, why);
	return err;
}

static int kb_setup_hello(struct kb_session *s, struct kb_setup *set)
{
	struct kb_hello_msg *asked = &set->asked;
	int len;

	len = kb_net_recv(&s->net, set->hello, sizeof(set->hello), KB_SETUP_MS);
	if (len < 0)
		return len;
	if (kb_parse_hello(set->hello, len, asked))
		return kb_refuse(s, -EPROTO, false, "not a HELLO of version 1");
	set->hello_len = len;
	s->hello = *asked;
	s->hello.addr = NULL;
	if (kb_port_export(s->port, asked->export, &s->export))
		return kb_refuse(s, -ENOENT, true, "no such export");
	return 0;
}

static int kb_setup_mac(struct kb_session *s, struct kb_setup *set,
			const char *label, bool accept, u8 mac[KB_MAC])
{
	const struct kvec parts[] = {
		{ set->hello, set->hello_len },
		{ set->challenge, set->challenge_len },
		{ set->accept, set->accept_len },
	};

	return kb_export_mac(s->export, s->hello.client, label, parts,
			     accept ? 3 : 2, mac);
}

static int kb_setup_auth(struct kb_session *s, struct kb_setup *set)
{
	struct kb_challenge_msg challenge;
	struct kb_auth_msg auth;
	u8 mac[KB_MAC];
	int ret;

	ret = kb_setup_mac(s, set, KB_AUTH_CLIENT, false, mac);
	if (ret < 0)
		return kb_refuse(s, -EACCES, true, "not a client of it");
	set->auth = ret;
	get_random_bytes(challenge.nonce, sizeof(challenge.nonce));
	challenge.auth = set->auth;
	set->challenge_len = kb_build_challenge(set->challenge, &challenge);
	ret = kb_net_send(&s->net, set->challenge, set->challenge_len);
	if (ret)
		return ret;
	/* Where ACCEPT will be there is room for whatever comes instead. */
	ret = kb_net_recv(&s->net, set->accept, sizeof(set->accept),
			  KB_SETUP_MS);
	if (ret < 0)
		return ret;
	if (kb_parse_auth(set->accept, ret, &auth))
		return kb_refuse(s, -EPROTO, false, "not an AUTH");
	ret = kb_setup_mac(s, set, KB_AUTH_CLIENT, false, mac);
	if (ret != set->auth || !kb_auth_equal(mac, auth.mac))
		return kb_refuse(s, -EACCES, true, "not the secret");
	if (memchr_inv(s->hello.content, 0, sizeof(s->hello.content)) &&
	    memcmp(s->hello.content, &s->export->uuid, sizeof(uuid_t)))
		return kb_refuse(s, -ESTALE, false, "it is another disk now");
	return 0;
}

static bool kb_session_kin(const struct kb_session *s,
			   const struct kb_session *old)
{
	return old != s && old->known && old->export == s->export &&
	       !strcmp(old->hello.client, s->hello.client);
}

/*
 * Is nothing left of those that were before? Neither the store nor the client's
 * memory, whose keys come again, may hear of them; and what receives they have
 * are this one's. Of another disk of the client's, which gave that up or crashed,
 * only the store could.
 */
static bool kb_session_alone(struct kb_session *s)
{
	struct kb_session *old;
	bool alone = true;

	spin_lock_bh(&kb_sessions_lock);
	list_for_each_entry(old, &kb_sessions, list)
		if (!kb_session_kin(s, old)) {
			continue;
		} else if (!memcmp(old->hello.disk, s->hello.disk,
				   sizeof(s->hello.disk))) {
			kb_session_stop(old, false);
			alone = false;
		} else if (kb_session_lingers(old)) {
			alone = false;
		}
	spin_unlock_bh(&kb_sessions_lock);
	return alone;
}

static u32 kb_client_sessions(struct kb_session *s)
{
	struct kb_session *other;
	u32 n = 0;

	spin_lock_bh(&kb_sessions_lock);
	list_for_each_entry(other, &kb_sessions, list)
		n += other->known && other->port == s->port &&
		     !strcmp(other->hello.client, s->hello.client);
	spin_unlock_bh(&kb_sessions_lock);
	return n;
}

static void kb_setup_limits(struct kb_session *s, struct kb_limits *l)
{
	const struct kb_disk_msg *disk = &s->export->store.disk;
	size_t room = s->fabric->max_msg - sizeof(struct kb_cmd);
	u32 caps = KB_CAP_FUA;

	if (s->fabric->can_write)
		caps |= KB_CAP_RDMA_WRITE;
	if (disk->discard_max && !s->export->store.read_only)
		caps |= KB_CAP_DISCARD;
	if (disk->zeroes_max && !s->export->store.read_only)
		caps |= KB_CAP_WRITE_ZEROES;
	l->caps &= caps;
	l->max_io = min(l->max_io, max(round_down(s->port->max_memory,
						  KB_IO_MIN), KB_IO_MIN));
	l->inline_max = round_down(min_t(size_t, l->inline_max, room),
				   KB_SECTOR);
	l->queues = min(l->queues, s->fabric->nqueues);
}

/* A receive for each command, and one for a keep-alive or FETCHED. */
static int kb_setup_queue(struct kb_session *s, u16 i, const u8 *addr)
{
	struct kb_squeue *sq = &s->queues[i];
	int ret;

	sq->s = s;
	sq->q = &s->fabric->queues[i];
	ret = kb_peer_get(s->fabric, addr, &sq->peer);
	if (ret)
		return ret;
	sq->has_peer = true;
	sq->credits = kb_credits_take(sq->q, s->limits.depth + 1);
	if (sq->credits < 2)
		return -EBUSY;
	s->limits.depth = sq->credits - 1;
	return 0;
}

static int kb_setup_fabric(struct kb_session *s, struct kb_setup *set)
{
	const struct kb_hello_msg *asked = &set->asked;
	struct kb_fabric *f;
	int ret = 0;
	u16 i;

	f = kb_fabric_get(&kb_srv_role, &s->port->select);
	if (IS_ERR(f))
		return kb_refuse(s, -ENODEV, true, "the server has no device");
	spin_lock_bh(&kb_sessions_lock);
	s->fabric = f;
	spin_unlock_bh(&kb_sessions_lock);
	if (READ_ONCE(f->gone))
		return kb_refuse(s, -ENODEV, true, "the server's device left");
	if (asked->addr_format != f->info->addr_format ||
	    asked->addr_len != f->queues[0].addrlen)
		return kb_refuse(s, -EOPNOTSUPP, false, "another fabric");
	s->limits = asked->limits;
	kb_setup_limits(s, &s->limits);
	s->queues = kcalloc(s->limits.queues, sizeof(*s->queues), GFP_KERNEL);
	s->ping.wire = kzalloc(sizeof(*s->ping.wire), GFP_KERNEL);
	if (!s->queues || !s->ping.wire)
		return kb_refuse(s, -ENOMEM, true, "no memory");
	s->nqueues = s->limits.queues;
	for (i = 0; i < s->nqueues && !ret; i++)
		ret = kb_setup_queue(s, i, asked->addr + i * asked->addr_len);
	/* Pages for inline data are there for each slot, so not too many. */
	if ((u64)s->limits.depth * s->nqueues * PAGE_SIZE >
	    s->port->max_memory / 4)
		s->limits.inline_max = 0;
	for (i = 0; i < s->nqueues && !ret; i++)
		ret = kb_squeue_init(&s->queues[i]);
	if (ret)
		return kb_refuse(s, ret, true, "no room for a session");
	return 0;
}

static int kb_setup_accept(struct kb_session *s, struct kb_setup *set)
{
	struct kb_accept_msg *msg = &set->msg;
	size_t addrlen = s->fabric->queues[0].addrlen;
	int ret;
	u16 i;

	msg->session = s->id;
	msg->limits = s->limits;
	memcpy(msg->content, &s->export->uuid, sizeof(msg->content));
	msg->disk = s->export->store.disk;
	if (!(s->limits.caps & KB_CAP_DISCARD))
		msg->disk.discard_max = 0;
	if (!(s->limits.caps & KB_CAP_WRITE_ZEROES))
		msg->disk.zeroes_max = 0;
	msg->addr_len = addrlen;
	msg->addr = set->addrs;
	for (i = 0; i < s->nqueues; i++)
		memcpy(set->addrs + i * addrlen, s->queues[i].q->addr, addrlen);
	set->accept_len = kb_build_accept(set->accept, msg);
	ret = kb_setup_mac(s, set, KB_AUTH_SERVER, true, msg->mac);
	if (ret != set->auth)
		return kb_refuse(s, -EACCES, true, "not a client of it");
	kb_build_accept(set->accept, msg);
	/* Commands may come as soon as the client has its session's id. */
	spin_lock_bh(&s->lock);
	s->state = KB_SESSION_LIVE;
	spin_unlock_bh(&s->lock);
	spin_lock_bh(&kb_sessions_lock);
	hash_add_rcu(kb_sessions_by_id, &s->hash, s->id);
	spin_unlock_bh(&kb_sessions_lock);
	return kb_net_send(&s->net, set->accept, set->accept_len);
}

/* One at a time for an export, so that nobody comes in between. */
static int kb_setup_locked(struct kb_session *s, struct kb_setup *set)
{
	u8 unasked[sizeof(struct kb_net_hdr)];
	int ret;

	lockdep_assert_held(&s->export->setup);
	/* One that gave up waiting mustn't replace what it began since. */
	if (kb_net_recv(&s->net, unasked, sizeof(unasked), 1) != -ETIMEDOUT)
		return -ECONNRESET;
	spin_lock_bh(&kb_sessions_lock);
	s->known = true;
	spin_unlock_bh(&kb_sessions_lock);
	if (!wait_event_timeout(kb_srv_wait, kb_session_alone(s),
				msecs_to_jiffies(KB_REPLACE_MS)))
		return kb_refuse(s, -EBUSY, true,
				 "the session before is still writing");
	if (kb_client_sessions(s) > s->port->max_client_sessions)
		return kb_refuse(s, -EBUSY, true, "too many sessions of a client");
	ret = kb_setup_fabric(s, set);
	WRITE_ONCE(s->heard, jiffies);
	return ret ?: kb_setup_accept(s, set);
}

static void kb_session_proven(struct kb_session *s)
{
	mutex_lock(&kb_srv_lock);
	s->port->half_open -= s->half_open;
	s->half_open = false;
	mutex_unlock(&kb_srv_lock);
}

static int kb_set_up(struct kb_session *s)
{
	struct kb_setup *set = kzalloc(sizeof(*set), GFP_KERNEL);
	unsigned int noio;
	int ret;

	if (!set)
		return -ENOMEM;
	do
		get_random_bytes(&s->id, sizeof(s->id));
	while (!s->id);
	ret = kb_setup_hello(s, set) ?: kb_setup_auth(s, set);
	if (!ret) {
		kb_session_proven(s);
		/* The client's disk may be of this machine, too. */
		noio = memalloc_noio_save();
		mutex_lock(&s->export->setup);
		ret = kb_setup_locked(s, set);
		mutex_unlock(&s->export->setup);
		memalloc_noio_restore(noio);
	}
	kfree(set);
	return ret;
}

/* --- a session's life --- */

static int kb_tell_size(struct kb_session *s)
{
	struct kb_resize_msg msg = {
		.bytes = READ_ONCE(s->export->store.disk.bytes),
	};
	u8 buf[sizeof(struct kb_resize)];

	return kb_net_send(&s->net, buf, kb_build_resize(buf, &msg));
}

static void kb_say_bye(struct kb_session *s)
{
	struct kb_bye_msg msg = { .again = s->again };
	u8 buf[sizeof(struct kb_bye)];

	kb_net_send(&s->net, buf, kb_build_bye(buf, &msg));
}

/* Return: why it is to end. */
static const char *kb_watch(struct kb_session *s)
{
	u32 ms = s->limits.keep_alive;
	u8 buf[sizeof(struct kb_bye)];
	struct kb_bye_msg bye;
	int ret;

	for (;;) {
		ret = kb_net_recv(&s->net, buf, sizeof(buf),
				  clamp(ms / 4, 25U, KB_WATCH_MS));
		/* Pairs with kb_session_stop(), which says whether again. */
		if (smp_load_acquire(&s->stop)) {
			kb_say_bye(s);
			return "stopped";
		}
		if (ret >= 0 && !kb_parse_bye(buf, ret, &bye))
			return "the client left";
		if (ret >= 0) {
			kb_session_violated(s, "neither silence nor BYE");
			return "protocol violated";
		}
		if (ret != -ETIMEDOUT)
			return "the connection is lost";
		if (xchg(&s->resize, 0) && kb_tell_size(s))
			return "the connection is lost";
		if (time_after(jiffies, READ_ONCE(s->heard) +
					msecs_to_jiffies(ms))) {
			kb_session_stop(s, true);
			kb_say_bye(s);
			return "nothing was heard of the client";
		}
		if (kb_session_untaken(s, KB_TAKE_S * HZ)) {
			kb_session_stop(s, true);
			kb_say_bye(s);
			return "the client takes nothing";
		}
	}
}

static bool kb_session_idle(struct kb_session *s, u32 *posted)
{
	bool idle;

	spin_lock_bh(&s->lock);
	idle = !s->in_flight;
	*posted = s->posted;
	spin_unlock_bh(&s->lock);
	return idle;
}

/* From LIVE on. What is under way ends by itself, as far as the client lets it. */
static void kb_session_drain(struct kb_session *s)
{
	u32 posted;

	spin_lock_bh(&s->lock);
	s->state = KB_SESSION_ENDING;
	spin_unlock_bh(&s->lock);
	spin_lock_bh(&kb_sessions_lock);
	hash_del_rcu(&s->hash);
	spin_unlock_bh(&kb_sessions_lock);
	synchronize_rcu();
	kb_session_abort(s);
	kb_net_close(&s->net);
	if (wait_event_timeout(kb_srv_wait, kb_session_idle(s, &posted),
			       KB_END_S * HZ))
		return;
	/* The store may take its time, and nothing is posted after it. */
	if (posted) {
		pr_warn("%s at %s takes nothing: giving up %s\n",
			s->hello.client, s->peer_name,
			s->fabric->info->domain_attr->name);
		kb_fabric_lost(s->fabric);
	}
	wait_event(kb_srv_wait, kb_session_idle(s, &posted));
}

static void kb_session_free_fabric(struct kb_session *s)
{
	struct kb_fabric *f = s->fabric;
	u16 i;

	for (i = 0; i < s->nqueues; i++) {
		struct kb_squeue *sq = &s->queues[i];

		if (!sq->s)
			break;
		kb_squeue_exit(sq);
		kb_credits_give(sq->q, sq->credits);
		if (sq->has_peer)
			kb_peer_put(f, sq->peer);
	}
	spin_lock_bh(&kb_sessions_lock);
	s->fabric = NULL;
	spin_unlock_bh(&kb_sessions_lock);
	kfree(s->queues);
	kfree(s->ping.wire);
	kb_fabric_put(f);
}

static void kb_session_gone(struct kb_session *s)
{
	spin_lock_bh(&kb_sessions_lock);
	list_del(&s->list);
	spin_unlock_bh(&kb_sessions_lock);
	cancel_work_sync(&s->stop_work);
	kb_net_close(&s->net);
	mutex_lock(&kb_srv_lock);
	WRITE_ONCE(s->port->nsessions, s->port->nsessions - 1);
	if (s->export)
		WRITE_ONCE(s->export->nsessions, s->export->nsessions - 1);
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
	kb_session_proven(s);
	if (!ret) {
		pr_info("%s at %s has %s, %u queues of %u\n", s->hello.client,
			s->peer_name, s->hello.export, s->nqueues,
			s->limits.depth);
		trace_kb_srv_session(s, "live");
		why = kb_watch(s);
		pr_info("%s at %s, export %s: %s\n", s->hello.client,
			s->peer_name, s->hello.export, why);
	}
	if (s->state != KB_SESSION_NEW)
		kb_session_drain(s);
	if (s->fabric)
		kb_session_free_fabric(s);
	trace_kb_srv_session(s, "gone");
	kb_session_gone(s);
	/* From here on it runs none of the module's code. */
	kthread_complete_and_exit(&kb_thread_end, 0);
}

/**
 * kb_session_new() - have a session for the next that connects
 * @port: where
 *
 * Return: the session, for kb_session_start() or kb_session_forget(); or NULL.
 */
struct kb_session *kb_session_new(struct kb_port *port)
{
	struct kb_session *s = kzalloc(sizeof(*s), GFP_KERNEL);

	if (!s)
		return NULL;
	s->port = port;
	kb_net_init(&s->net);
	spin_lock_init(&s->lock);
	INIT_LIST_HEAD(&s->mem_wait);
	INIT_WORK(&s->stop_work, kb_stop_work);
	return s;
}

/**
 * kb_session_forget() - undo kb_session_new()
 * @s: not started
 */
void kb_session_forget(struct kb_session *s)
{
	kb_net_close(&s->net);
	kfree(s);
}

static u32 kb_half_open_peer(const struct kb_session *s)
{
	const char *port = strrchr(s->peer_name, ':');
	size_t len = port ? port - s->peer_name : strlen(s->peer_name);
	struct kb_session *other;
	u32 n = 0;

	lockdep_assert_held(&kb_srv_lock);
	spin_lock_bh(&kb_sessions_lock);
	list_for_each_entry(other, &kb_sessions, list)
		n += other->half_open && other->peer_name[len] == ':' &&
		     !strncmp(other->peer_name, s->peer_name, len);
	spin_unlock_bh(&kb_sessions_lock);
	return n;
}

static const char *kb_session_admit(struct kb_session *s)
{
	struct kb_port *port = s->port;
	const char *why = NULL;

	mutex_lock(&kb_srv_lock);
	if (!port->enabled)
		why = "the port is being closed";
	else if (port->half_open >= KB_HALF_OPEN ||
		 kb_half_open_peer(s) >= KB_HALF_OPEN_PEER)
		why = "too many are connecting";
	else if (port->nsessions >= port->max_sessions)
		why = "too many sessions";
	if (!why) {
		port->nsessions++;
		port->half_open++;
		s->half_open = true;
		spin_lock_bh(&kb_sessions_lock);
		list_add_tail(&s->list, &kb_sessions);
		spin_unlock_bh(&kb_sessions_lock);
	}
	mutex_unlock(&kb_srv_lock);
	return why;
}

/**
 * kb_session_start() - begin with a session
 * @s: connected; not the caller's any more
 */
void kb_session_start(struct kb_session *s)
{
	struct task_struct *task;
	const char *why;

	kb_net_name(&s->net, s->peer_name);
	why = kb_session_admit(s);
	if (why) {
		kb_reject(s, -EBUSY, true, why);
		kb_session_forget(s);
		return;
	}
	atomic_inc(&kb_threads);
	task = kthread_run(kb_session_thread, s, "kofiblk_srv");
	if (!IS_ERR(task))
		return;
	kb_session_proven(s);
	kb_session_gone(s);
	atomic_dec(&kb_threads);
}

/**
 * kb_sessions_exit() - wait for the last steps of sessions that are gone
 */
void kb_sessions_exit(void)
{
	while (atomic_dec_return(&kb_threads) >= 0)
		wait_for_completion(&kb_thread_end);
}

/* --- for people --- */

static const char * const kb_session_states[] = {
	[KB_SESSION_NEW]	= "new",
	[KB_SESSION_LIVE]	= "live",
	[KB_SESSION_ENDING]	= "ending",
};

/**
 * kb_sessions_show() - a line for each session; the id is a secret
 * @m: where to
 * @unused: nothing
 *
 * Return: 0.
 */
int kb_sessions_show(struct seq_file *m, void *unused)
{
	struct kb_session *s;

	spin_lock_bh(&kb_sessions_lock);
	list_for_each_entry(s, &kb_sessions, list) {
		struct kb_session_stats stats;
		u32 io, in_flight, memory;

		spin_lock(&s->lock);
		stats = s->stats;
		io = s->io;
		in_flight = s->in_flight;
		memory = s->memory;
		spin_unlock(&s->lock);
		seq_printf(m, "client=%s export=%s peer=%s state=%s queues=%u depth=%u caps=%#x io=%u in_flight=%u memory=%u reads=%llu read_bytes=%llu writes=%llu write_bytes=%llu others=%llu errors=%llu waits=%llu\n",
			   s->known ? s->hello.client : "?",
			   s->known ? s->hello.export : "?", s->peer_name,
			   kb_session_states[s->state], s->nqueues,
			   s->limits.depth, s->limits.caps, io, in_flight,
			   memory, stats.reads, stats.read_bytes, stats.writes,
			   stats.write_bytes, stats.others, stats.errors,
			   stats.mem_waits);
	}
	spin_unlock_bh(&kb_sessions_lock);
	seq_printf(m, "stray=%llu\n", (u64)atomic64_read(&kb_stray));
	return 0;
}
