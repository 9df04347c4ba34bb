// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Links. A link is a session of kofi_cm that all connections between two machines share, in one
 * direction: its active side is the one that requests them. When a link ends, all its connections
 * do, and the next request makes another link.
 *
 * Connections are found by their numbers, so a peer can name only its own ones. A note that names
 * another one, or that isn't possible now, ends the link.
 *
 * Credits need the locks of a link, and a disk may need the credits, so nothing is allocated by I/O
 * under these locks.
 */
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/utsname.h>
#include <linux/wait_bit.h>
#include "msg.h"

/* Time limits in milliseconds. */
#define KMSG_KEEP_ALIVE_MS	10000	/* see kcm_config.keep_alive_ms */
#define KMSG_REPLACE_MS		1000	/* no client has an earlier session */
#define KMSG_RETRY_MS		120000	/* a failed attempt isn't repeated: it is ended before */
#define KMSG_GIVE_UP_MS		1
#define KMSG_IDLE_MS		1000	/* until a link without connections ends */
#define KMSG_AGAIN_MS		4	/* until notes are sent that the session didn't take */

/*
 * Maximum number of connections of a link, of notes that wait because the peer takes none, and of
 * those beyond which requests wait in their connections instead.
 */
#define KMSG_CONNS_MAX	65536
#define KMSG_OUT_MAX	2048
#define KMSG_OUT_CROWD	256

static uint kmsg_answer_ms = 30000;
module_param_named(answer_ms, kmsg_answer_ms, uint, 0644);
MODULE_PARM_DESC(answer_ms, "Milliseconds for answers that a peer doesn't leave to its ULP");

static atomic_t kmsg_wrong_notes;
module_param_named(wrong_notes, kmsg_wrong_notes.counter, int, 0444);
MODULE_PARM_DESC(wrong_notes, "Number of links that were ended because of a wrong note of the peer");

/**
 * enum kmsg_link_state - state of a link
 * @KMSG_LINK_BEGUN: the session isn't live yet
 * @KMSG_LINK_LIVE: notes can be sent
 * @KMSG_LINK_OVER: no connection can begin any more
 */
enum kmsg_link_state {
	KMSG_LINK_BEGUN,
	KMSG_LINK_LIVE,
	KMSG_LINK_OVER,
};

/**
 * struct kmsg_out - a note that waits
 * @list: in kmsg_link.out
 * @len: bytes of @data
 * @data: messages
 */
struct kmsg_out {
	struct list_head	list;
	size_t			len;
	u8			data[KCM_NOTE_MAX];
};

/**
 * struct kmsg_link - a link
 * @refs: the session, until its last callback, and the connections
 * @list: in kmsg_links, if it is active and connections may use it
 * @active: this is the active side
 * @from: active side: address to connect from, or AF_UNSPEC
 * @to: active side: address to connect to
 * @net: active side: network namespace
 * @key: key of the secret that both sides have proved to know, or NULL
 * @listener: passive side: valid during callbacks
 * @session: the session, valid before KMSG_LINK_OVER
 * @end: ends an active session
 * @lock: protects @state to @crowded
 * @state: the state
 * @err: in KMSG_LINK_OVER, negative errno
 * @conns: connections by number
 * @nconns: number of @conns
 * @out: notes that wait, struct kmsg_out
 * @nout: number of @out
 * @crowded: messages wait in their connections for @out to be sent
 * @again: sends @out
 * @late: looks for connections whose peer doesn't answer; queued while there are connections
 * @idle: ends an active link without connections
 * @local: this side's IP address, from KMSG_LINK_LIVE on
 * @remote: the peer's IP address, from KMSG_LINK_LIVE on
 * @in: the message that a callback handles
 * @wrong: the peer has sent a wrong note; for callbacks
 */
struct kmsg_link {
	refcount_t		refs;
	struct list_head	list;
	bool			active;
	struct sockaddr_storage	from;
	struct sockaddr_storage	to;
	struct kmsg_net		*net;
	struct kulp_key		*key;
	struct kmsg_listener	*listener;
	struct kcm_session	*session;
	struct work_struct	end;
	struct mutex		lock;		/* protects state to crowded */
	enum kmsg_link_state	state;
	int			err;
	struct xarray		conns;
	u32			nconns;
	struct list_head	out;
	u32			nout;
	bool			crowded;
	struct delayed_work	again;
	struct delayed_work	late;
	struct delayed_work	idle;
	struct sockaddr_storage	local;
	struct sockaddr_storage	remote;
	struct kmsg_msg		in;
	bool			wrong;
};

static DEFINE_MUTEX(kmsg_links_lock);	/* protects kmsg_links, and kmsg_link.list */
static LIST_HEAD(kmsg_links);
static atomic_t kmsg_nlinks;

/**
 * kmsg_link_put() - drop a reference
 * @link: the link, or NULL
 */
void kmsg_link_put(struct kmsg_link *link)
{
	if (!link || !refcount_dec_and_test(&link->refs))
		return;
	WARN_ON_ONCE(!xa_empty(&link->conns) || !list_empty(&link->out));
	xa_destroy(&link->conns);
	kulp_key_put(link->key);
	kmsg_net_put(link->net);
	kfree(link);
	if (atomic_dec_and_test(&kmsg_nlinks))
		wake_up_var(&kmsg_nlinks);
}

/**
 * kmsg_link_key() - get the key of a link
 * @link: the link
 *
 * Return: the key of the secret that both sides have proved to know, or NULL.
 */
const struct kulp_key *kmsg_link_key(const struct kmsg_link *link)
{
	return link->key;
}

/**
 * kmsg_link_names() - get the IP addresses of a link
 * @link: the link
 * @local: takes this side's
 * @remote: takes the peer's
 *
 * Their family is AF_UNSPEC before the link is live.
 */
void kmsg_link_names(struct kmsg_link *link, struct sockaddr_storage *local,
		     struct sockaddr_storage *remote)
{
	mutex_lock(&link->lock);
	*local = link->local;
	*remote = link->remote;
	mutex_unlock(&link->lock);
}

/* Have a work item run, which has a reference to the link. */
static void kmsg_link_queue(struct kmsg_link *link, struct delayed_work *work, unsigned int ms)
{
	refcount_inc(&link->refs);
	if (!queue_delayed_work(kmsg_wq, work, msecs_to_jiffies(ms)))
		refcount_dec(&link->refs);
}

/* --- notes --- */

/* Send what waits, as far as the session takes it. */
static void kmsg_link_flush(struct kmsg_link *link)
{
	struct kmsg_out *out;
	int ret;

	lockdep_assert_held(&link->lock);
	while ((out = list_first_entry_or_null(&link->out, struct kmsg_out, list))) {
		ret = link->state == KMSG_LINK_LIVE ?
		      kcm_note(link->session, out->data, out->len) : 0;
		if (ret == -ENOBUFS || ret == -ENOMEM) {
			kmsg_link_queue(link, &link->again, KMSG_AGAIN_MS);
			return;
		}
		/* After any other error the session ends. */
		list_del(&out->list);
		link->nout--;
		kfree(out);
	}
}

/* A message to the peer would be lost, so end the link. */
static void kmsg_link_fail(struct kmsg_link *link, enum kcm_reason reason)
{
	lockdep_assert_held(&link->lock);
	if (link->state == KMSG_LINK_LIVE)
		kcm_bye(link->session, reason, false, NULL, 0);
}

static void __kmsg_link_send(struct kmsg_link *link, const u8 *buf, size_t len)
{
	struct kmsg_out *out;

	lockdep_assert_held(&link->lock);
	if (link->state != KMSG_LINK_LIVE)
		return;
	out = list_empty(&link->out) ? NULL :
	      list_last_entry(&link->out, struct kmsg_out, list);
	if (!out || out->len + len > sizeof(out->data)) {
		out = link->nout < KMSG_OUT_MAX ? kmalloc(sizeof(*out), GFP_NOIO) : NULL;
		if (!out) {
			kmsg_link_fail(link, KCM_BYE_FAILED);
			return;
		}
		out->len = 0;
		list_add_tail(&out->list, &link->out);
		link->nout++;
	}
	memcpy(out->data + out->len, buf, len);
	out->len += len;
	kmsg_link_flush(link);
}

/**
 * kmsg_link_send() - send a message
 * @link: the link; nothing is sent if it has ended
 * @msg: the message
 *
 * It goes with earlier ones that wait. If it can't be sent, the link ends.
 */
void kmsg_link_send(struct kmsg_link *link, const struct kmsg_msg *msg)
{
	u8 buf[KMSG_WIRE_MAX];
	const size_t len = kmsg_msg_build(msg, buf);

	mutex_lock(&link->lock);
	__kmsg_link_send(link, buf, len);
	mutex_unlock(&link->lock);
}

/**
 * kmsg_link_crowded() - check whether a message should wait because the peer takes none
 * @link: the link
 * @urgent: only if many others wait already
 *
 * Return: whether it should; then kmsg_conn_begin() is called later, or kmsg_conn_lost().
 */
bool kmsg_link_crowded(struct kmsg_link *link, bool urgent)
{
	bool ret;

	mutex_lock(&link->lock);
	/* While notes wait, @again is queued. */
	ret = link->nout > (urgent ? KMSG_OUT_CROWD : 0);
	link->crowded |= ret;
	/* A work item of an earlier link may call for a connection that has left that link. */
	ret |= link->state != KMSG_LINK_LIVE;
	mutex_unlock(&link->lock);
	return ret;
}

/* --- connections --- */

static struct kmsg_conn *kmsg_link_conn(struct kmsg_link *link, u32 id)
{
	struct kmsg_conn *conn;

	mutex_lock(&link->lock);
	conn = xa_load(&link->conns, id);
	if (conn)
		refcount_inc(&conn->refs);
	mutex_unlock(&link->lock);
	return conn;
}

static void __kmsg_link_forget(struct kmsg_link *link, struct kmsg_conn *conn)
{
	bool idle;

	lockdep_assert_held(&link->lock);
	WARN_ON_ONCE(xa_erase(&link->conns, conn->id) != conn);
	idle = !--link->nconns && link->active && link->state != KMSG_LINK_OVER;
	if (idle) {
		refcount_inc(&link->refs);
		if (mod_delayed_work(kmsg_wq, &link->idle, msecs_to_jiffies(KMSG_IDLE_MS)))
			refcount_dec(&link->refs);
	}
}

/**
 * kmsg_link_forget() - remove a connection, so that its number is free
 * @link: the link
 * @conn: the connection, to which the caller has a reference of its own
 */
void kmsg_link_forget(struct kmsg_link *link, struct kmsg_conn *conn)
{
	mutex_lock(&link->lock);
	__kmsg_link_forget(link, conn);
	mutex_unlock(&link->lock);
	kmsg_conn_put(conn);
}

/**
 * kmsg_link_finish() - send the last message of a connection, and remove it
 * @link: the link
 * @conn: the connection, to which the caller has a reference of its own
 * @msg: the message
 *
 * The lock isn't released in between: with the message, the peer may use the number again; and the
 * active side's next request may have the number, and must not overtake the message.
 */
void kmsg_link_finish(struct kmsg_link *link, struct kmsg_conn *conn, const struct kmsg_msg *msg)
{
	u8 buf[KMSG_WIRE_MAX];
	const size_t len = kmsg_msg_build(msg, buf);

	mutex_lock(&link->lock);
	__kmsg_link_send(link, buf, len);
	__kmsg_link_forget(link, conn);
	mutex_unlock(&link->lock);
	kmsg_conn_put(conn);
}

/* Add a connection, which gets a reference to the link. */
static int __kmsg_link_add(struct kmsg_link *link, struct kmsg_conn *conn, bool *live)
{
	int ret;

	lockdep_assert_held(&link->lock);
	if (link->state == KMSG_LINK_OVER)
		ret = link->err ?: -ECONNRESET;
	else if (link->nconns >= KMSG_CONNS_MAX)
		ret = -EBUSY;
	else if (link->active)
		ret = xa_alloc(&link->conns, &conn->id, conn, xa_limit_31b, GFP_NOIO);
	else
		ret = xa_insert(&link->conns, conn->id, conn, GFP_NOIO);
	*live = link->state == KMSG_LINK_LIVE;
	if (ret)
		return ret;
	link->nconns++;
	refcount_inc(&conn->refs);
	refcount_inc(&link->refs);
	conn->link = link;
	kmsg_link_queue(link, &link->late, READ_ONCE(kmsg_answer_ms));
	return 0;
}

static int kmsg_link_add(struct kmsg_link *link, struct kmsg_conn *conn, bool *live)
{
	int ret;

	mutex_lock(&link->lock);
	ret = __kmsg_link_add(link, conn, live);
	mutex_unlock(&link->lock);
	return ret;
}

/* Undo __kmsg_link_add(). The caller has references of its own. */
static void kmsg_link_undo(struct kmsg_link *link, struct kmsg_conn *conn)
{
	lockdep_assert_held(&link->lock);
	xa_erase(&link->conns, conn->id);
	link->nconns--;
	conn->link = NULL;
	refcount_dec(&conn->refs);
	refcount_dec(&link->refs);
}

/* Call a function for each connection. A peer may choose the greatest number. */
static void kmsg_link_each(struct kmsg_link *link, void (*fn)(struct kmsg_conn *conn, int err),
			   int err)
{
	struct kmsg_conn *conn;
	unsigned long id = 0;

	do {
		mutex_lock(&link->lock);
		conn = xa_find(&link->conns, &id, ULONG_MAX, XA_PRESENT);
		if (conn)
			refcount_inc(&conn->refs);
		mutex_unlock(&link->lock);
		if (!conn)
			return;
		fn(conn, err);
		kmsg_conn_put(conn);
	} while (++id);
}

static void kmsg_link_again(struct work_struct *work)
{
	struct kmsg_link *link = container_of(to_delayed_work(work), struct kmsg_link, again);
	bool room;

	mutex_lock(&link->lock);
	kmsg_link_flush(link);
	room = link->crowded && !link->nout;
	if (room)
		link->crowded = false;
	mutex_unlock(&link->lock);
	if (room)
		kmsg_link_each(link, kmsg_conn_begin, 0);
	kmsg_link_put(link);
}

/*
 * Some answers don't depend on the peer's ULP. A peer that keeps one back would have connections
 * take memory for ever.
 */
static void kmsg_link_late(struct work_struct *work)
{
	struct kmsg_link *link = container_of(to_delayed_work(work), struct kmsg_link, late);
	const uint ms = READ_ONCE(kmsg_answer_ms);

	kmsg_link_each(link, kmsg_conn_late, ms);
	mutex_lock(&link->lock);
	if (link->nconns && link->state != KMSG_LINK_OVER)
		kmsg_link_queue(link, &link->late, ms);
	mutex_unlock(&link->lock);
	kmsg_link_put(link);
}

/* The link doesn't stay for the work item. The caller has a reference. */
static void kmsg_link_cancel_late(struct kmsg_link *link)
{
	if (cancel_delayed_work(&link->late))
		kmsg_link_put(link);
}

/**
 * kmsg_link_break() - end a link whose peer doesn't do what it should
 * @link: the link
 */
void kmsg_link_break(struct kmsg_link *link)
{
	mutex_lock(&link->lock);
	kmsg_link_fail(link, KCM_BYE_PROTOCOL);
	mutex_unlock(&link->lock);
}

/* --- the end --- */

static void kmsg_link_end_work(struct work_struct *work)
{
	struct kmsg_link *link = container_of(work, struct kmsg_link, end);

	kcm_disconnect(link->session);
	kmsg_link_put(link);
}

static void kmsg_link_unlist(struct kmsg_link *link)
{
	mutex_lock(&kmsg_links_lock);
	list_del_init(&link->list);
	mutex_unlock(&kmsg_links_lock);
}

/* No connection begins any more. Return: false if that was so before. */
static bool kmsg_link_over(struct kmsg_link *link, int err)
{
	struct kmsg_out *out, *next;
	bool was;

	mutex_lock(&link->lock);
	was = link->state == KMSG_LINK_OVER;
	link->state = KMSG_LINK_OVER;
	link->err = link->err ?: err;
	list_for_each_entry_safe(out, next, &link->out, list)
		kfree(out);
	INIT_LIST_HEAD(&link->out);
	link->nout = 0;
	mutex_unlock(&link->lock);
	kmsg_link_cancel_late(link);
	return !was;
}

/* A link without connections ends. The session is disconnected once, by whoever ends the link. */
static void kmsg_link_idle(struct work_struct *work)
{
	struct kmsg_link *link = container_of(to_delayed_work(work), struct kmsg_link, idle);
	bool ends = false;

	/* fi_connect() looks for links under the lock. */
	mutex_lock(&kmsg_links_lock);
	mutex_lock(&link->lock);
	if (!link->nconns && link->state != KMSG_LINK_OVER) {
		link->state = KMSG_LINK_OVER;
		list_del_init(&link->list);
		ends = true;
	}
	mutex_unlock(&link->lock);
	mutex_unlock(&kmsg_links_lock);
	if (ends) {
		kmsg_link_cancel_late(link);
		kcm_bye(link->session, KCM_BYE_DONE, false, NULL, 0);
		queue_work(kmsg_wq, &link->end);
	}
	kmsg_link_put(link);
}

/* A refusal by the peer's ULP has no errno of its own on the wire. */
static int kmsg_err(const struct kcm_end *end)
{
	if (end->err == -ENOENT || (end->err == -ENOLINK && end->refused))
		return -ECONNREFUSED;
	/* The sides don't have the same secret, or only one has any. */
	if (end->err == -ENOKEY || end->err == -EKEYREJECTED || end->err == -ENODATA)
		return -EACCES;
	return end->err;
}

static void kmsg_stop(struct kcm_session *s, const struct kcm_end *end)
{
	struct kmsg_link *link = kcm_context(s);
	const bool active = link->active, ends = kmsg_link_over(link, kmsg_err(end));

	if (active)
		kmsg_link_unlist(link);
	kmsg_link_each(link, kmsg_conn_lost, kmsg_err(end));
	kcm_gone(s);
	if (active && ends)
		queue_work(kmsg_wq, &link->end);
	else if (!active)
		kmsg_link_put(link);
}

/* --- the active side --- */

static int kmsg_hello(struct kcm_session *s, struct kcm_addrs *addrs, const void **priv,
		      size_t *len)
{
	static const struct kmsg_wire_link hello = {
		.magic		= cpu_to_le32(KMSG_MAGIC),
		.version	= cpu_to_le32(KMSG_VERSION),
	};

	*addrs = (struct kcm_addrs) {};
	*priv = &hello;
	*len = sizeof(hello);
	return 0;
}

static int kmsg_accepted(struct kcm_session *s, const struct kcm_peer *peer)
{
	return 0;
}

static void kmsg_failed(struct kcm_session *s, const struct kcm_end *end)
{
	struct kmsg_link *link = kcm_context(s);

	if (!kmsg_link_over(link, kmsg_err(end)))
		return;
	kmsg_link_unlist(link);
	kmsg_link_each(link, kmsg_conn_lost, kmsg_err(end));
	queue_work(kmsg_wq, &link->end);
}

/* The name is for logs. kofi_cm's names have no spaces. */
static void kmsg_name(char name[KCM_NAME])
{
	strscpy(name, init_utsname()->nodename, KCM_NAME);
	for (; *name; name++)
		if (*name <= ' ' || *name >= 0x7f)
			*name = '-';
}

static struct kmsg_link *kmsg_link_new(bool active)
{
	struct kmsg_link *link = kzalloc(sizeof(*link), GFP_KERNEL);

	if (!link)
		return NULL;
	atomic_inc(&kmsg_nlinks);
	refcount_set(&link->refs, 1);
	INIT_LIST_HEAD(&link->list);
	link->active = active;
	INIT_WORK(&link->end, kmsg_link_end_work);
	mutex_init(&link->lock);
	xa_init_flags(&link->conns, XA_FLAGS_ALLOC);
	INIT_LIST_HEAD(&link->out);
	INIT_DELAYED_WORK(&link->again, kmsg_link_again);
	INIT_DELAYED_WORK(&link->late, kmsg_link_late);
	INIT_DELAYED_WORK(&link->idle, kmsg_link_idle);
	return link;
}

static int kmsg_link_connect(struct kmsg_link *link, const struct kcm_client *client)
{
	int ret = kmsg_net_enter(link->net);

	if (ret)
		return ret;
	ret = kcm_connect(&link->net->config, client, link, &link->session);
	kmsg_net_leave(link->net);
	return ret;
}

/* Begin a link with its first connection. */
static int kmsg_link_begin(struct kmsg_conn *conn, const struct sockaddr_storage *from,
			   const struct sockaddr_storage *to, bool *live)
{
	char instance[17], name[KCM_NAME] = "-";
	struct kcm_client client = {
		.to		= *to,
		.from		= *from,
		.name		= name,
		.instance	= instance,
		.key		= conn->setup->key,
		.retry_ms	= KMSG_RETRY_MS,
		.give_up_ms	= KMSG_GIVE_UP_MS,
	};
	struct kmsg_link *link = kmsg_link_new(true);
	int ret;

	lockdep_assert_held(&kmsg_links_lock);
	if (!link)
		return -ENOMEM;
	link->from = *from;
	link->to = *to;
	link->net = kmsg_net_get(conn->setup->net);
	link->key = kulp_key_get(conn->setup->key);
	/* A session of its own: it replaces no other one. */
	snprintf(instance, sizeof(instance), "%016llx", get_random_u64());
	if (*init_utsname()->nodename)
		kmsg_name(name);
	/* Callbacks wait for the lock, and find the session and the connection. */
	mutex_lock(&link->lock);
	ret = __kmsg_link_add(link, conn, live);
	if (!ret) {
		ret = kmsg_link_connect(link, &client);
		if (ret)
			kmsg_link_undo(link, conn);
	}
	mutex_unlock(&link->lock);
	if (!ret) {
		list_add(&link->list, &kmsg_links);
		return 0;
	}
	kmsg_link_cancel_late(link);
	kmsg_link_put(link);
	return ret;
}

/* Connections with different secrets, or one with and one without, don't share a link. */
static struct kmsg_link *kmsg_link_find(const struct sockaddr_storage *from,
					const struct sockaddr_storage *to,
					const struct kmsg_setup *setup)
{
	struct kmsg_link *link;

	lockdep_assert_held(&kmsg_links_lock);
	list_for_each_entry(link, &kmsg_links, list)
		if (!memcmp(&link->to, to, sizeof(*to)) &&
		    !memcmp(&link->from, from, sizeof(*from)) && link->net == setup->net &&
		    kmsg_same_key(link->key, setup->key))
			return link;
	return NULL;
}

/**
 * kmsg_link_join() - have a link carry a connection, and begin one if necessary
 * @conn: the connection, with @conn->setup->key and @conn->setup->net
 * @from: address to connect from, or AF_UNSPEC
 * @to: the peer's address
 * @live: takes whether messages can be sent; otherwise kmsg_conn_begin() follows
 *
 * Return: 0 or a negative errno.
 */
int kmsg_link_join(struct kmsg_conn *conn, const struct sockaddr_storage *from,
		   const struct sockaddr_storage *to, bool *live)
{
	const unsigned int noio = memalloc_noio_save();
	struct kmsg_link *link;
	int ret;

	mutex_lock(&kmsg_links_lock);
	link = kmsg_link_find(from, to, conn->setup);
	ret = link ? kmsg_link_add(link, conn, live) : -ECONNRESET;
	conn->again = !ret;
	/* One that has just ended is about to leave the list. */
	if (ret && ret != -EBUSY && ret != -ENOMEM) {
		if (link)
			list_del_init(&link->list);
		ret = kmsg_link_begin(conn, from, to, live);
	}
	mutex_unlock(&kmsg_links_lock);
	memalloc_noio_restore(noio);
	return ret;
}

/**
 * kmsg_link_rejoin() - have another link carry a connection whose link has ended
 * @conn: the connection, whose number the old link forgets in any case
 * @live: as for kmsg_link_join()
 *
 * Return: 0 or a negative errno.
 */
int kmsg_link_rejoin(struct kmsg_conn *conn, bool *live)
{
	struct kmsg_link *old = conn->link;
	int ret;

	kmsg_link_forget(old, conn);
	ret = kmsg_link_join(conn, &old->from, &old->to, live);
	if (ret)
		conn->link = old;
	else
		kmsg_link_put(old);
	return ret;
}

/* --- the passive side --- */

/* A passive endpoint has the same secrets for all clients. */
static int kmsg_keys(struct kcm_listener *l, const struct kcm_peer *peer,
		     struct kulp_key *keys[KULP_SECRETS])
{
	return kmsg_listener_keys(kcm_listener_context(l), keys);
}

static int kmsg_link_request(struct kcm_session *s, const struct kcm_peer *peer)
{
	const struct kmsg_wire_link *hello = peer->priv;
	struct kmsg_link *link;
	int ret;

	if (peer->priv_len != sizeof(*hello) || le32_to_cpu(hello->magic) != KMSG_MAGIC ||
	    le32_to_cpu(hello->version) != KMSG_VERSION)
		return -EPROTO;
	link = kmsg_link_new(false);
	if (!link)
		return -ENOMEM;
	link->session = s;
	link->key = kulp_key_get(peer->key);
	link->listener = kcm_listener_context(kcm_session_listener(s));
	kcm_set_context(s, link);
	ret = kcm_accept(s, NULL, NULL, 0);
	/* The session has ended, and its last callback follows. */
	if (ret == -ENOTCONN)
		return 0;
	if (ret)
		kmsg_link_put(link);
	return ret;
}

/* --- both --- */

static void kmsg_live(struct kcm_session *s)
{
	struct kmsg_link *link = kcm_context(s);

	mutex_lock(&link->lock);
	kcm_names(s, &link->local, &link->remote);
	if (link->state == KMSG_LINK_BEGUN)
		link->state = KMSG_LINK_LIVE;
	mutex_unlock(&link->lock);
	kmsg_link_each(link, kmsg_conn_begin, 0);
}

/* A request of the peer. */
static int kmsg_link_asked(struct kmsg_link *link)
{
	struct kmsg_conn *conn = kmsg_conn_new();
	bool live;
	int ret = -ENOMEM;

	if (conn) {
		conn->id = link->in.id;
		ret = kmsg_link_add(link, conn, &live);
	}
	if (!ret) {
		kmsg_conn_asked(conn, link->listener, &link->in.side);
		return 0;
	}
	if (conn)
		kmsg_conn_put(conn);
	/* The peer uses the number already, or has too many connections. */
	if (ret == -EBUSY)
		return -EPROTO;
	link->in.type = KMSG_REJECT;
	link->in.why = KMSG_NO_MEMORY;
	link->in.side.len = 0;
	kmsg_link_send(link, &link->in);
	return 0;
}

static int kmsg_link_message(struct kmsg_link *link)
{
	struct kmsg_conn *conn;
	int ret;

	if (link->in.type == KMSG_CONN)
		return kmsg_link_asked(link);
	conn = kmsg_link_conn(link, link->in.id);
	/* This side has refused the connection meanwhile. */
	if (!conn)
		return link->in.type == KMSG_DISC && !link->active ? 0 : -EPROTO;
	ret = kmsg_conn_message(conn, &link->in);
	kmsg_conn_put(conn);
	return ret;
}

static void kmsg_note(struct kcm_session *s, const void *data, size_t len)
{
	struct kmsg_link *link = kcm_context(s);
	int ret = 0;
	size_t at;

	/* BYE follows when the callback returns, or after some more notes. */
	if (link->wrong)
		return;
	for (at = 0; at < len && ret >= 0; at += ret) {
		ret = kmsg_msg_parse(data + at, len - at, link->active, &link->in);
		if (ret > 0) {
			int err = kmsg_link_message(link);

			ret = err ?: ret;
		}
	}
	if (ret > 0)
		return;
	link->wrong = true;
	atomic_inc(&kmsg_wrong_notes);
	pr_info_ratelimited("kofi_msg: a peer's note is wrong (error %d): its connections end\n",
			    ret);
	kcm_bye(s, KCM_BYE_PROTOCOL, false, NULL, 0);
}

static const struct kcm_ops kmsg_ops = {
	.keys		= kmsg_keys,
	.request	= kmsg_link_request,
	.hello		= kmsg_hello,
	.accepted	= kmsg_accepted,
	.live		= kmsg_live,
	.note		= kmsg_note,
	.failed		= kmsg_failed,
	.stop		= kmsg_stop,
};

/* For kmsg_net.config. */
const struct kcm_config kmsg_config = {
	.service	= "kofi-msg",
	.version_min	= 1,
	.version	= 1,
	.keep_alive_ms	= KMSG_KEEP_ALIVE_MS,
	.replace_ms	= KMSG_REPLACE_MS,
	.ops		= &kmsg_ops,
};

/**
 * kmsg_links_end() - end all links, when the module is unloaded
 *
 * Their connections have no endpoints. Some may wait for the last message of the peer: this side
 * does not.
 */
void kmsg_links_end(void)
{
	struct kmsg_link *link;

	mutex_lock(&kmsg_links_lock);
	list_for_each_entry(link, &kmsg_links, list) {
		mutex_lock(&link->lock);
		if (link->nconns)
			kmsg_link_fail(link, KCM_BYE_DONE);
		mutex_unlock(&link->lock);
		refcount_inc(&link->refs);
		if (mod_delayed_work(kmsg_wq, &link->idle, 0))
			refcount_dec(&link->refs);
	}
	mutex_unlock(&kmsg_links_lock);
	wait_var_event(&kmsg_nlinks, !atomic_read(&kmsg_nlinks));
}
