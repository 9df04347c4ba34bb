// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* kofi_cm's sources on pipes instead of sockets: see cm_scene.h. */
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <kofi/ulp_msg.h>

char cm_logged[512];

static void hasten(struct workqueue_struct *wq, struct delayed_work *work);
static void built(void);

#define mod_delayed_work(wq, work, delay)	\
	(hasten(wq, work), (mod_delayed_work)(wq, work, delay))
#undef pr_info_ratelimited
#define pr_info_ratelimited(...)	snprintf(cm_logged, sizeof(cm_logged), __VA_ARGS__)
#define kulp_build(...)	({ size_t __len = (kulp_build)(__VA_ARGS__); built(); __len; })

#include "../../cm/session.c"
#include "../../cm/calls.c"
#include "../../cm/shake.c"
#include "../../cm/passive.c"
#include "../../cm/active.c"
#include "../../cm/kin.c"
#include "../../cm/port.c"
#include "../../cm/wire.c"
#include "cm_scene.h"

struct workqueue_struct *kcm_wq;
void (*cm_adopted)(struct cm_conn *conn);
struct task_struct *cm_hasty;
void (*cm_built)(void);
struct cm_ulp *cm_passive, *cm_active;
struct kcm_listener *cm_listener;

static DEFINE_SPINLOCK(conns_lock);	/* protects what follows */
static LIST_HEAD(conns);		/* all that are accepted, or that a case has made */
static LIST_HEAD(backlog);
static struct kcm_port *listening;
static struct kcm_port played;
static atomic_t nsessions = ATOMIC_INIT(0);
static LIST_HEAD(actives);		/* active sessions, which cases make and end */

void kcm_session_add(struct kcm_session *s)
{
	atomic_inc(&nsessions);
	if (s->active)
		list_add(&s->all, &actives);
}

void kcm_session_del(struct kcm_session *s)
{
	if (s->active)
		list_del(&s->all);
	atomic_dec(&nsessions);
}

bool cm_all_gone(void)
{
	return !atomic_read(&nsessions);
}

/* The caller may hold a spinlock, which the work item may wait for. */
static void hasten(struct workqueue_struct *wq, struct delayed_work *work)
{
	int i;

	if (READ_ONCE(cm_hasty) != current)
		return;
	WRITE_ONCE(cm_hasty, NULL);
	(mod_delayed_work)(wq, work, 0);
	for (i = 0; i < 200; i++)
		mdelay(1);
}

static void built(void)
{
	typeof(cm_built) call = READ_ONCE(cm_built);

	if (!call || !in_task() || current->flags & PF_WQ_WORKER)
		return;
	WRITE_ONCE(cm_built, NULL);
	call();
}

/* --- sockets --- */

static struct cm_conn *conn_new(void)
{
	struct cm_conn *conn = kvzalloc(sizeof(*conn), GFP_KERNEL);

	if (conn)
		spin_lock_init(&conn->lock);
	return conn;
}

static int side_of(const struct kcm_session *s)
{
	return !s->active;
}

struct cm_conn *cm_conn_of(struct kcm_session *s)
{
	return (struct cm_conn *)s->sock.sock;
}

int kcm_sock_connect(struct kcm_session *s)
{
	struct cm_conn *conn;
	int ret = -ECONNREFUSED;

	conn = conn_new();
	if (!conn)
		return -ENOMEM;
	spin_lock(&conns_lock);
	if (listening) {
		conn->session[0] = s;
		s->sock.sock = (struct socket *)conn;
		list_add_tail(&conn->list, &backlog);
		mod_delayed_work(kcm_wq, &listening->accept, 0);
		ret = -EINPROGRESS;
	}
	spin_unlock(&conns_lock);
	if (ret == -ECONNREFUSED)
		kvfree(conn);
	return ret;
}

int kcm_sock_connected(struct kcm_session *s)
{
	return 0;
}

/* Three hosts at most. */
u64 kcm_sock_peer(struct socket *sock, char name[KULP_NET_NAME])
{
	static u64 number;

	snprintf(name, KULP_NET_NAME, "10.0.0.%llu", number % 3);
	return number++ % 3;
}

void kcm_sock_adopt(struct kcm_session *s, struct socket *sock)
{
	struct cm_conn *conn = (struct cm_conn *)sock;

	s->sock.sock = sock;
	spin_lock(&conn->lock);
	conn->session[1] = s;
	kcm_kick(s);
	spin_unlock(&conn->lock);
	if (cm_adopted)
		cm_adopted(conn);
}

static void conn_kick(struct cm_conn *conn, int side)
{
	lockdep_assert_held(&conn->lock);
	if (conn->session[side])
		kcm_kick(conn->session[side]);
}

void cm_write(struct cm_conn *conn, int side, const void *buf, size_t len)
{
	struct cm_pipe *pipe = &conn->pipe[side];

	spin_lock(&conn->lock);
	if (!conn->cut && pipe->len + len <= CM_PIPE) {
		memcpy(pipe->buf + pipe->len, buf, len);
		pipe->len += len;
	}
	conn_kick(conn, !side);
	spin_unlock(&conn->lock);
}

/* Return: number of bytes, or -ECONNRESET at the end. */
static ssize_t read_pipe(struct cm_conn *conn, int side, void *buf, size_t room)
{
	struct cm_pipe *pipe = &conn->pipe[!side];
	ssize_t n;

	spin_lock(&conn->lock);
	n = min(pipe->len, room);
	memcpy(buf, pipe->buf, n);
	pipe->len -= n;
	memmove(pipe->buf, pipe->buf + n, pipe->len);
	if (n)
		conn_kick(conn, !side);
	else if (pipe->closed)
		n = -ECONNRESET;
	spin_unlock(&conn->lock);
	return n;
}

size_t cm_read(struct cm_conn *conn, int side, void *buf, size_t room)
{
	return max(read_pipe(conn, side, buf, room), 0L);
}

/* TCP takes at most 100 bytes at a time, so that messages come in pieces. */
int kcm_sock_send(struct kcm_session *s, const void *buf, size_t len)
{
	struct cm_conn *conn = cm_conn_of(s);
	size_t n = min(len, 100UL);

	if (READ_ONCE(conn->pipe[!side_of(s)].closed))
		return -EPIPE;
	if (READ_ONCE(conn->pipe[side_of(s)].len) + n > CM_PIPE)
		return -EAGAIN;
	cm_write(conn, side_of(s), buf, n);
	return n;
}

int kcm_sock_recv(struct kcm_session *s, void *buf, size_t len)
{
	return read_pipe(cm_conn_of(s), side_of(s), buf, len) ?: -EAGAIN;
}

void cm_conn_close(struct cm_conn *conn, int side)
{
	spin_lock(&conn->lock);
	conn->session[side] = NULL;
	WRITE_ONCE(conn->pipe[side].closed, true);
	conn_kick(conn, !side);
	spin_unlock(&conn->lock);
}

void kcm_sock_close(struct kcm_session *s)
{
	if (s->sock.sock)
		cm_conn_close(cm_conn_of(s), side_of(s));
	s->sock.sock = NULL;
}

int kcm_sock_listen(struct kcm_port *port)
{
	spin_lock(&conns_lock);
	listening = port;
	spin_unlock(&conns_lock);
	port->sock = (struct socket *)port;
	return 0;
}

int kcm_sock_accept(struct kcm_port *port, struct socket **sock)
{
	struct cm_conn *conn;

	spin_lock(&conns_lock);
	conn = list_first_entry_or_null(&backlog, struct cm_conn, list);
	if (conn)
		list_move_tail(&conn->list, &conns);
	spin_unlock(&conns_lock);
	if (!conn)
		return -EAGAIN;
	*sock = (struct socket *)conn;
	return 0;
}

void kcm_sock_unlisten(struct kcm_port *port)
{
	spin_lock(&conns_lock);
	listening = NULL;
	spin_unlock(&conns_lock);
	cancel_delayed_work_sync(&port->accept);
	port->sock = NULL;
}

/* --- ULPs --- */

static void keep(struct cm_ulp *ulp, const void *data, size_t len)
{
	if (len)
		memcpy(ulp->data, data, len);
	ulp->len = len;
}

static void keep_end(struct cm_ulp *ulp, const struct kcm_end *end)
{
	ulp->end = *end;
	keep(ulp, end->data, end->len);
}

static int ulp_keys(struct kcm_listener *l, const struct kcm_peer *peer,
		    struct kulp_key *keys[KULP_SECRETS])
{
	struct cm_ulp *ulp = kcm_listener_context(l);

	if (ulp->keys_ret)
		return ulp->keys_ret;
	if (!ulp->known)
		return -EACCES;
	if (!ulp->key)
		return 0;
	keys[0] = kulp_key_get(ulp->key);
	return 1;
}

static const u8 passive_addrs[2][32] = { { 22 }, { 23 } };
static const u8 active_addrs[3][32] = { { 11 }, { 12 }, { 13 } };

static int ulp_request(struct kcm_session *s, const struct kcm_peer *peer)
{
	const struct kcm_addrs addrs = {
		.format = 7, .len = 32, .count = 2, .addr = passive_addrs[0],
	};
	struct cm_ulp *ulp = kcm_context(s);

	ulp->s = s;
	ulp->requests++;
	ulp->addr = peer->addrs.addr[0];
	KUNIT_EXPECT_EQ(ulp->test, peer->addrs.count, 3);
	KUNIT_EXPECT_EQ(ulp->test, peer->addrs.addr[64], 13);
	KUNIT_EXPECT_PTR_EQ(ulp->test, peer->key, ulp->key);
	keep(ulp, peer->priv, peer->priv_len);
	if (!ulp->request_ret && ulp->answers)
		KUNIT_EXPECT_EQ(ulp->test, kcm_accept(s, &addrs, "welcome", 7), 0);
	return ulp->request_ret;
}

static int ulp_hello(struct kcm_session *s, struct kcm_addrs *addrs, const void **priv,
		     size_t *len)
{
	struct cm_ulp *ulp = kcm_context(s);

	*addrs = (struct kcm_addrs) { .format = 7, .len = 32, .count = 3, .addr = active_addrs[0] };
	*priv = "hello";
	*len = 5;
	return ulp->hello_ret;
}

static int ulp_accepted(struct kcm_session *s, const struct kcm_peer *peer)
{
	struct cm_ulp *ulp = kcm_context(s);

	ulp->accepteds++;
	ulp->addr = peer->addrs.addr[0];
	KUNIT_EXPECT_EQ(ulp->test, peer->addrs.count, 2);
	keep(ulp, peer->priv, peer->priv_len);
	return ulp->accepted_ret;
}

static void ulp_live(struct kcm_session *s)
{
	struct cm_ulp *ulp = kcm_context(s);

	ulp->lives++;
}

static void ulp_note(struct kcm_session *s, const void *data, size_t len)
{
	struct cm_ulp *ulp = kcm_context(s);

	keep(ulp, data, len);
	ulp->notes++;
}

static void ulp_failed(struct kcm_session *s, const struct kcm_end *end)
{
	struct cm_ulp *ulp = kcm_context(s);

	keep_end(ulp, end);
	ulp->faileds++;
}

static void ulp_stop(struct kcm_session *s, const struct kcm_end *end)
{
	struct cm_ulp *ulp = kcm_context(s);

	keep_end(ulp, end);
	ulp->stops++;
	if (!ulp->holds)
		kcm_gone(s);
}

static const struct kcm_ops ulp_ops = {
	.keys		= ulp_keys,
	.request	= ulp_request,
	.hello		= ulp_hello,
	.accepted	= ulp_accepted,
	.live		= ulp_live,
	.note		= ulp_note,
	.failed		= ulp_failed,
	.stop		= ulp_stop,
};

static struct cm_ulp *ulp_new(struct kunit *test)
{
	struct cm_ulp *ulp = kunit_kzalloc(test, sizeof(*ulp), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ulp);
	ulp->test = test;
	ulp->config = (struct kcm_config) {
		.net		= &init_net,
		.service	= "test",
		.version_min	= 2,
		.version	= 4,
		.keep_alive_ms	= 60000,
		.replace_ms	= 5000,
		.ops		= &ulp_ops,
	};
	ulp->known = true;
	ulp->answers = true;
	ulp->key = kulp_key_new(CM_SECRET);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ulp->key);
	return ulp;
}

int cm_scene_init(struct kunit *test)
{
	kcm_wq = alloc_workqueue("kofi_cm_test", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	KUNIT_ASSERT_NOT_NULL(test, kcm_wq);
	cm_passive = ulp_new(test);
	cm_active = ulp_new(test);
	cm_listener = NULL;
	cm_adopted = NULL;
	cm_hasty = NULL;
	cm_built = NULL;
	*cm_logged = '\0';
	return 0;
}

void cm_scene_exit(struct kunit *test)
{
	struct cm_conn *conn, *next;

	/* Of a case that an assertion has ended. */
	cm_active->holds = false;
	while (!list_empty(&actives))
		kcm_disconnect(list_first_entry(&actives, struct kcm_session, all));
	if (cm_listener)
		kcm_unlisten(cm_listener);
	if (listening == &played)
		kcm_sock_unlisten(&played);
	KUNIT_EXPECT_TRUE(test, cm_soon(!atomic_read(&nsessions)));
	KUNIT_EXPECT_TRUE(test, hash_empty(kcm_kin));
	destroy_workqueue(kcm_wq);
	list_splice_init(&backlog, &conns);
	list_for_each_entry_safe(conn, next, &conns, list)
		kvfree(conn);
	INIT_LIST_HEAD(&conns);
	kulp_key_put(cm_passive->key);
	kulp_key_put(cm_active->key);
}

void cm_listen(struct kunit *test)
{
	static const struct sockaddr_storage addr = { .ss_family = AF_INET };

	KUNIT_ASSERT_EQ(test, kcm_listen(&cm_passive->config, &addr, cm_passive, &cm_listener), 0);
}

struct kcm_session *cm_connect(struct kunit *test)
{
	const struct kcm_client client = {
		.name = "client", .instance = "disk", .host = { 1, 2, 3 }, .key = cm_active->key,
		.retry_ms = 20,
	};
	struct kcm_session *s;

	KUNIT_ASSERT_EQ(test, kcm_connect(&cm_active->config, &client, cm_active, &s), 0);
	return s;
}

/* A connection whose active side is the case. */
struct cm_conn *cm_accepted(struct kunit *test, struct kcm_session **s)
{
	struct cm_conn *conn = conn_new();

	KUNIT_ASSERT_NOT_NULL(test, conn);
	spin_lock(&conns_lock);
	list_add_tail(&conn->list, &backlog);
	spin_unlock(&conns_lock);
	mod_delayed_work(kcm_wq, &listening->accept, 0);
	flush_delayed_work(&listening->accept);
	if (s) {
		*s = conn->session[1];
		KUNIT_ASSERT_NOT_NULL(test, *s);
	}
	return conn;
}

static void nothing(struct work_struct *work)
{
}

/* From now on the passive side is the case, which takes connections by cm_taken(). */
void cm_play_passive(void)
{
	/* The work item may be queued. */
	if (listening == &played)
		return;
	INIT_DELAYED_WORK(&played.accept, nothing);
	spin_lock(&conns_lock);
	listening = &played;
	spin_unlock(&conns_lock);
}

/* The next connection, without those of attempts that have ended. */
struct cm_conn *cm_taken(struct kunit *test)
{
	struct socket *sock = NULL;
	struct cm_conn *conn;

	do {
		sock = NULL;
		KUNIT_ASSERT_TRUE(test, cm_soon(sock || !kcm_sock_accept(&played, &sock)));
		conn = (struct cm_conn *)sock;
	} while (READ_ONCE(conn->pipe[0].closed));
	return conn;
}
