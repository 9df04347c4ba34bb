// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_rc's connections as iw_cm knows them: with an iw_cm that fails where the kernel's calls
 * BUG(), and with sessions whose callbacks a case makes.
 */
#include <linux/inet.h>
#include "rc_cm_scene.c"

#define PORT	4420

/* --- parts of cases --- */

static struct sockaddr_storage four(const char *ip, u16 port)
{
	struct sockaddr_storage addr = {};
	struct sockaddr_in *in = (struct sockaddr_in *)&addr;

	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	in->sin_addr.s_addr = in_aton(ip);
	return addr;
}

static struct sockaddr_storage six(u8 last, u16 port)
{
	struct sockaddr_storage addr = {};
	struct sockaddr_in6 *in = (struct sockaddr_in6 *)&addr;

	in->sin6_family = AF_INET6;
	in->sin6_port = htons(port);
	in->sin6_addr.s6_addr[15] = last;
	if (last)
		in->sin6_addr.s6_addr[0] = 0xfd;
	return addr;
}

/* The peer's private data, with that of its ULP, which begins with 'p'. */
static struct kcm_peer peer_of(u16 port)
{
	struct krc_side side = {
		.cookie = 0x70001, .datagram = 4608, .window = 64, .ird = 3, .ord = 5,
		.port = port, .priv_len = 2,
	};
	size_t n = krc_build_side((struct krc_wire_side *)scene->from_peer, &side);

	scene->from_peer[n] = 'p';
	scene->from_peer_len = n + side.priv_len;
	return (struct kcm_peer) {
		.name = "", .instance = "", .from = "peer",
		.addrs = { .format = 7, .len = 8, .count = 1, .addr = scene->from_peer },
		.priv = scene->from_peer, .priv_len = scene->from_peer_len,
	};
}

static int connects(void)
{
	struct iw_cm_conn_param param = {
		.qpn = scene->qp.ib.qp_num, .ird = 4, .ord = 4,
		.private_data = "me", .private_data_len = 2,
	};
	int ret;

	scene->iw.id.m_local_addr = four("10.0.0.2", 0);
	scene->iw.id.m_remote_addr = four("10.0.0.1", PORT);
	ret = krc_iw_connect(&scene->iw.id, &param);
	if (!ret)
		scene->iw.state = IW_SENT;
	return ret;
}

/* The active side's HELLO. */
static void hello(struct kunit *test)
{
	struct kcm_addrs addrs;
	struct krc_side side;
	const void *priv;
	size_t len;

	KUNIT_ASSERT_EQ(test, krc_cm_hello(&scene->s, &addrs, &priv, &len), 0);
	KUNIT_EXPECT_EQ(test, krc_parse_side(priv, len, &side), 0);
	KUNIT_EXPECT_EQ(test, side.port, PORT);
	KUNIT_EXPECT_EQ(test, side.priv_len, 2);
	/* There is one attempt. */
	KUNIT_EXPECT_EQ(test, krc_cm_hello(&scene->s, &addrs, &priv, &len), -ESHUTDOWN);
}

static void connected(struct kunit *test)
{
	const struct kcm_peer peer = peer_of(0);

	KUNIT_ASSERT_EQ(test, connects(), 0);
	hello(test);
	KUNIT_ASSERT_EQ(test, krc_cm_accepted(&scene->s, &peer), 0);
	KUNIT_EXPECT_EQ(test, scene->iw.replies, 0U);
	krc_cm_live(&scene->s);
	KUNIT_EXPECT_EQ(test, scene->iw.status, 0);
	KUNIT_EXPECT_EQ(test, scene->iw.state, IW_UP);
	KUNIT_EXPECT_EQ(test, scene->iw.priv, 'p');
	KUNIT_EXPECT_EQ(test, scene->qp.c.state, KRC_LIVE);
	KUNIT_EXPECT_EQ(test, scene->qp.c.ord, 3U);
	KUNIT_EXPECT_EQ(test, scene->iw.ird, 4);
	KUNIT_EXPECT_EQ(test, scene->iw.ord, 3);
}

static void stop(int err, bool refused, const void *data, size_t len)
{
	const struct kcm_end end = { .err = err, .refused = refused, .data = data, .len = len };

	krc_cm_stop(&scene->s, &end);
}

static void listens(void)
{
	scene->listener.id.local_addr = four("0.0.0.0", PORT);
	krc_listen_begin(&scene->listener.id, 1);
	scene->local = four("10.0.0.1", KRC_PORT);
}

static void requested(struct kunit *test)
{
	const struct kcm_peer peer = peer_of(PORT);

	listens();
	KUNIT_ASSERT_EQ(test, krc_cm_request(&scene->s, &peer), 0);
	KUNIT_ASSERT_EQ(test, scene->listener.requests, 1U);
	KUNIT_EXPECT_EQ(test, scene->listener.priv, 'p');
	KUNIT_EXPECT_EQ(test, krc_port_of(&scene->listener.local), PORT);
	scene->iw.id.provider_data = scene->listener.nr;
	scene->iw.state = IW_RECV;
}

static int accepts(void)
{
	struct iw_cm_conn_param param = { .qpn = scene->qp.ib.qp_num, .ird = 4, .ord = 4 };

	return krc_iw_accept(&scene->iw.id, &param);
}

/* The queue pair is destroyed, and nothing of the set-up is left. */
static void nothing_left(struct kunit *test, unsigned int gones, unsigned int disconnects)
{
	flush_workqueue(krc_cm_wq);
	/* The ULP disconnects: a session that goes on ends. */
	krc_stop(&scene->qp.c, KRC_BY_ULP, 0);
	krc_wait_flushed(&scene->qp.c);
	if (scene->s.byes && !scene->s.gones)
		stop(-ESHUTDOWN, false, NULL, 0);
	krc_conn_fini(&scene->qp.c);
	scene->inited = false;
	if (scene->qp.net) {
		scene->credits -= scene->qp.credits;
		scene->peers--;
		krc_net_put(scene->qp.net);
	}
	KUNIT_EXPECT_TRUE(test, kofi_soon(xa_empty(&krc_cms)));
	flush_workqueue(krc_cm_wq);
	KUNIT_EXPECT_FALSE(test, scene->iw.wrong);
	KUNIT_EXPECT_NE(test, scene->iw.state, IW_SENT);
	KUNIT_EXPECT_NE(test, scene->iw.state, IW_UP);
	KUNIT_EXPECT_EQ(test, scene->iw.refs, 0);
	KUNIT_EXPECT_EQ(test, scene->s.gones, gones);
	KUNIT_EXPECT_EQ(test, scene->s.disconnects, disconnects);
	KUNIT_EXPECT_EQ(test, scene->peers, 0);
	KUNIT_EXPECT_EQ(test, scene->credits, 0);
	KUNIT_EXPECT_EQ(test, refcount_read(&scene->net.refs), 1U);
	KUNIT_EXPECT_EQ(test, refcount_read(&scene->link.ib.refcount), 1U);
}

/* --- the active side --- */

static void active_ended_by_peer(struct kunit *test)
{
	connected(test);
	KUNIT_EXPECT_STRNEQ(test, scene->s.instance, "");
	/* kofi_cm takes names without spaces alone. */
	KUNIT_EXPECT_NULL(test, strchr(scene->s.instance, ' '));
	KUNIT_EXPECT_EQ(test, krc_port_of(&scene->s.to), KRC_PORT);
	stop(-ECONNABORTED, false, NULL, 0);
	krc_wait_flushed(&scene->qp.c);
	KUNIT_EXPECT_EQ(test, scene->iw.state, IW_CLOSED);
	KUNIT_EXPECT_EQ(test, scene->qp.c.cause, KRC_BY_PEER);
	KUNIT_EXPECT_EQ(test, scene->s.byes, 0U);
	nothing_left(test, 1, 1);
}

static void active_ended_by_ulp(struct kunit *test)
{
	connected(test);
	krc_stop(&scene->qp.c, KRC_BY_ULP, 0);
	krc_wait_flushed(&scene->qp.c);
	KUNIT_EXPECT_EQ(test, scene->iw.state, IW_CLOSED);
	KUNIT_EXPECT_EQ(test, scene->s.byes, 1U);
	nothing_left(test, 1, 1);
}

static void active_refused_by_ulp(struct kunit *test)
{
	static const u8 refusal[9] = { 1, 1, [8] = 'r' };

	KUNIT_ASSERT_EQ(test, connects(), 0);
	hello(test);
	stop(-ECONNREFUSED, true, refusal, sizeof(refusal));
	KUNIT_EXPECT_EQ(test, scene->iw.status, -ECONNREFUSED);
	KUNIT_EXPECT_EQ(test, scene->iw.priv_len, 1);
	KUNIT_EXPECT_EQ(test, scene->iw.priv, 'r');
	nothing_left(test, 1, 1);
}

/* Refusals by kofi_rc or kofi_cm, silence, and other errors. */
static void active_fails(struct kunit *test)
{
	static const u8 refusal[8], wrong[9] = { 2, 1, [8] = 'r' };
	static const struct {
		int		err;
		bool		refused;
		const u8	*data;
		size_t		len;
		int		status;
	} fails[] = {
		{ -ENOENT, true, NULL, 0, -ECONNRESET },
		{ -EBUSY, true, refusal, sizeof(refusal), -ECONNRESET },
		{ -ECONNREFUSED, true, wrong, sizeof(wrong), -ECONNRESET },
		{ -ECONNREFUSED, false, NULL, 0, -ECONNRESET },
		{ -ETIMEDOUT, false, NULL, 0, -ETIMEDOUT },
		{ -EHOSTUNREACH, false, NULL, 0, -ECONNRESET },
	};
	int nr = *(const int *)test->param_value;
	const struct kcm_end end = {
		.err = fails[nr].err, .refused = fails[nr].refused, .data = fails[nr].data,
		.len = fails[nr].len,
	};

	KUNIT_ASSERT_LT(test, nr, (int)ARRAY_SIZE(fails));
	KUNIT_ASSERT_EQ(test, connects(), 0);
	krc_cm_failed(&scene->s, &end);
	KUNIT_EXPECT_EQ(test, scene->iw.status, fails[nr].status);
	KUNIT_EXPECT_EQ(test, scene->iw.priv_len, 0);
	nothing_left(test, 0, 1);
}

static const int fail_numbers[] = { 0, 1, 2, 3, 4, 5 };

static void fail_name(const int *nr, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%d", *nr);
}

KUNIT_ARRAY_PARAM(fail, fail_numbers, fail_name);

/* The peer's ACCEPT is wrong, or the device can't reach it. */
static void active_accept_fails(struct kunit *test)
{
	struct kcm_peer peer = peer_of(0);

	KUNIT_ASSERT_EQ(test, connects(), 0);
	peer.priv_len--;
	KUNIT_EXPECT_EQ(test, krc_cm_accepted(&scene->s, &peer), -EPROTO);
	peer.priv_len++;
	peer.addrs.count = 2;
	KUNIT_EXPECT_EQ(test, krc_cm_accepted(&scene->s, &peer), -EPROTO);
	peer.addrs.count = 1;
	peer.addrs.len = 9;
	KUNIT_EXPECT_EQ(test, krc_cm_accepted(&scene->s, &peer), -EPROTO);
	peer.addrs.len = 8;
	scene->meet_ret = -EADDRNOTAVAIL;
	KUNIT_EXPECT_EQ(test, krc_cm_accepted(&scene->s, &peer), -EADDRNOTAVAIL);
	stop(-EADDRNOTAVAIL, false, NULL, 0);
	KUNIT_EXPECT_EQ(test, scene->iw.status, -ECONNRESET);
	nothing_left(test, 1, 1);
}

/* Nothing could arrive: there is no memory for receives, and no other connection has any. */
static void active_without_receives(struct kunit *test)
{
	const struct kcm_peer peer = peer_of(0);

	KUNIT_ASSERT_EQ(test, connects(), 0);
	scene->no_credits = true;
	KUNIT_EXPECT_EQ(test, krc_cm_accepted(&scene->s, &peer), -ENOMEM);
	stop(-ENOMEM, false, NULL, 0);
	KUNIT_EXPECT_EQ(test, scene->iw.status, -ECONNRESET);
	nothing_left(test, 1, 1);
}

/* As before, but others have receives: messages wait for one of these. */
static void active_with_few_receives(struct kunit *test)
{
	scene->no_credits = true;
	scene->kulp.recvs = 1;
	connected(test);
	krc_stop(&scene->qp.c, KRC_BY_ULP, 0);
	krc_wait_flushed(&scene->qp.c);
	nothing_left(test, 1, 1);
}

/* The session ends between accepted() and live(): there is a reply, but no CLOSE. */
static void active_ends_before_live(struct kunit *test)
{
	const struct kcm_peer peer = peer_of(0);

	KUNIT_ASSERT_EQ(test, connects(), 0);
	KUNIT_ASSERT_EQ(test, krc_cm_accepted(&scene->s, &peer), 0);
	stop(-ECONNRESET, false, NULL, 0);
	krc_wait_flushed(&scene->qp.c);
	KUNIT_EXPECT_EQ(test, scene->iw.replies, 1U);
	KUNIT_EXPECT_EQ(test, scene->iw.status, -ECONNRESET);
	nothing_left(test, 1, 1);
}

/* The queue pair goes into error while it is being connected. */
static void active_stopped_in_setup(struct kunit *test)
{
	const struct kcm_peer peer = peer_of(0);
	struct kcm_addrs addrs;
	const void *priv;
	size_t len;

	KUNIT_ASSERT_EQ(test, connects(), 0);
	krc_stop(&scene->qp.c, KRC_BY_ULP, 0);
	krc_wait_flushed(&scene->qp.c);
	KUNIT_EXPECT_EQ(test, scene->s.byes, 1U);
	KUNIT_EXPECT_EQ(test, scene->iw.replies, 0U);
	/* kofi_cm takes no notice of a BYE before the attempt: the peer isn't asked, however. */
	KUNIT_EXPECT_EQ(test, krc_cm_hello(&scene->s, &addrs, &priv, &len), -ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, krc_cm_accepted(&scene->s, &peer), -ENOTCONN);
	stop(-ENOTCONN, false, NULL, 0);
	KUNIT_EXPECT_EQ(test, scene->iw.status, -ECONNRESET);
	nothing_left(test, 1, 1);
}

/* iw_cm has no memory for private data: it is told without them that there was none. */
static void active_reply_without_memory(struct kunit *test)
{
	const struct kcm_peer peer = peer_of(0);

	KUNIT_ASSERT_EQ(test, connects(), 0);
	KUNIT_ASSERT_EQ(test, krc_cm_accepted(&scene->s, &peer), 0);
	scene->iw.no_memory = 1;
	krc_cm_live(&scene->s);
	KUNIT_EXPECT_EQ(test, scene->iw.replies, 1U);
	KUNIT_EXPECT_EQ(test, scene->iw.status, -ENOMEM);
	krc_wait_flushed(&scene->qp.c);
	nothing_left(test, 1, 1);
}

/* Calls that fail at once: no events follow. */
static void active_no_device(struct kunit *test)
{
	struct iw_cm_conn_param param = { .qpn = 77 };

	scene->down = true;
	KUNIT_EXPECT_EQ(test, connects(), -ENETDOWN);
	scene->down = false;
	KUNIT_EXPECT_EQ(test, krc_iw_connect(&scene->iw.id, &param), -EINVAL);
	param.qpn = scene->qp.ib.qp_num;
	param.private_data_len = KRC_ULP_PRIV_MAX + 1;
	KUNIT_EXPECT_EQ(test, krc_iw_connect(&scene->iw.id, &param), -EINVAL);
	nothing_left(test, 0, 0);
}

/* The call fails, while the queue pair is stopped and flushed: the set-up ends once. */
static void active_connect_fails(struct kunit *test)
{
	scene->connect_ret = -ENOMEM;
	scene->flush_in_put = true;
	KUNIT_EXPECT_EQ(test, connects(), -ENOMEM);
	scene->flush_in_put = false;
	KUNIT_EXPECT_EQ(test, scene->qp.c.state, KRC_FENCED);
	nothing_left(test, 0, 0);
}

/* The device goes during the set-up, when the link doesn't find the queue pair yet. */
static void active_device_gone(struct kunit *test)
{
	const struct kcm_peer peer = peer_of(0);

	KUNIT_ASSERT_EQ(test, connects(), 0);
	KUNIT_ASSERT_EQ(test, krc_cm_accepted(&scene->s, &peer), 0);
	scene->fabric.gone = 1;
	krc_cm_live(&scene->s);
	krc_wait_flushed(&scene->qp.c);
	KUNIT_EXPECT_EQ(test, scene->qp.c.cause, KRC_BY_REMOVAL);
	KUNIT_EXPECT_EQ(test, scene->iw.state, IW_CLOSED);
	nothing_left(test, 1, 1);
}

/* --- the passive side --- */

static void passive_ended_by_peer(struct kunit *test)
{
	requested(test);
	KUNIT_ASSERT_EQ(test, accepts(), 0);
	KUNIT_EXPECT_EQ(test, scene->s.accepts, 1U);
	KUNIT_EXPECT_EQ(test, scene->qp.c.state, KRC_OPEN);
	KUNIT_EXPECT_EQ(test, scene->iw.state, IW_RECV);
	krc_cm_live(&scene->s);
	KUNIT_EXPECT_EQ(test, scene->qp.c.state, KRC_LIVE);
	KUNIT_EXPECT_EQ(test, scene->iw.state, IW_UP);
	KUNIT_EXPECT_EQ(test, scene->iw.ird, 4);
	KUNIT_EXPECT_EQ(test, scene->iw.ord, 3);
	stop(-ECONNRESET, false, NULL, 0);
	krc_wait_flushed(&scene->qp.c);
	KUNIT_EXPECT_EQ(test, scene->iw.state, IW_CLOSED);
	nothing_left(test, 1, 0);
}

/* READY doesn't come: ESTABLISHED and CLOSE both do. */
static void passive_ends_before_live(struct kunit *test)
{
	requested(test);
	KUNIT_ASSERT_EQ(test, accepts(), 0);
	stop(-ETIMEDOUT, false, NULL, 0);
	krc_wait_flushed(&scene->qp.c);
	KUNIT_EXPECT_EQ(test, scene->iw.state, IW_CLOSED);
	nothing_left(test, 1, 0);
}

/* The ULP has receives, and the peer is so fast that its first message comes before READY. */
static void fast_message(struct kunit *test)
{
	struct krc_conn *c = &scene->qp.c;
	struct krc_rwr r = { .nsge = 1, .room = 64, .sge = { { .len = 64 } } };
	struct {
		struct krc_wire_dgram	head;
		u8			data[64];
	} sent = {};
	struct krc_dgram d = { .type = KRC_SEND, .flags = KRC_LAST, .total = 16 };
	size_t len;
	int i;

	r.sge[0].addr = (uintptr_t)kunit_kzalloc(test, 64, GFP_KERNEL);
	KUNIT_ASSERT_NE(test, r.sge[0].addr, 0ULL);
	spin_lock_irq(&c->lock);
	for (i = 0; i < 3; i++)
		WARN_ON(krc_rq_add(c, &r));
	spin_unlock_irq(&c->lock);
	requested(test);
	scene->iw.slow = true;
	KUNIT_ASSERT_EQ(test, accepts(), 0);
	d.cookie = c->cookie;
	len = krc_build(&sent.head, &d);
	krc_message(&scene->queue, &sent, len + d.total);
	krc_queue_run(&scene->queue);
	KUNIT_ASSERT_EQ(test, c->filled, 1U);
	KUNIT_EXPECT_EQ(test, c->state, KRC_OPEN);
}

/* The ULP has a message when its handler of ESTABLISHED has returned, not before. */
static void passive_message_waits(struct kunit *test)
{
	fast_message(test);
	KUNIT_EXPECT_EQ(test, scene->received, 0U);
	krc_cm_live(&scene->s);
	flush_work(&scene->queue.work);
	KUNIT_EXPECT_EQ(test, scene->qp.c.state, KRC_LIVE);
	KUNIT_EXPECT_EQ(test, scene->received, 0U);
	iw_runs(&scene->iw);
	KUNIT_EXPECT_EQ(test, scene->iw.heard, 1U);
	KUNIT_EXPECT_EQ(test, scene->iw.before, 0U);
	KUNIT_EXPECT_EQ(test, scene->received, 1U);
	/* iw_cm calls its user itself with CLOSE. */
	KUNIT_EXPECT_TRUE(test, scene->iw.id.cm_handler == iw_handler);
	stop(-ECONNRESET, false, NULL, 0);
	krc_wait_flushed(&scene->qp.c);
	KUNIT_EXPECT_EQ(test, scene->received, 1U);
	KUNIT_EXPECT_EQ(test, scene->unreceived, 2U);
	nothing_left(test, 1, 0);
}

/* The connection ends first: the ULP gets its receives back, none with a message. */
static void passive_message_too_early(struct kunit *test)
{
	fast_message(test);
	stop(-ECONNRESET, false, NULL, 0);
	krc_wait_flushed(&scene->qp.c);
	KUNIT_EXPECT_EQ(test, scene->received, 0U);
	KUNIT_EXPECT_EQ(test, scene->unreceived, 3U);
	/* iw_cm is later still: the set-up may be over. */
	flush_workqueue(krc_cm_wq);
	iw_runs(&scene->iw);
	KUNIT_EXPECT_EQ(test, scene->iw.heard, 1U);
	KUNIT_EXPECT_EQ(test, scene->received + scene->unreceived, 3U);
	nothing_left(test, 1, 0);
}

/* The session has ended when the ULP accepts, and its stop() comes later. */
static void passive_accept_fails(struct kunit *test)
{
	requested(test);
	scene->s.accept_ret = -ENOTCONN;
	KUNIT_EXPECT_EQ(test, accepts(), -ENOTCONN);
	KUNIT_EXPECT_TRUE(test, scene->iw.id.cm_handler == iw_handler);
	krc_wait_flushed(&scene->qp.c);
	stop(-ECONNRESET, false, NULL, 0);
	KUNIT_EXPECT_EQ(test, scene->iw.state, IW_RECV);
	scene->iw.state = IW_IDLE;
	nothing_left(test, scene->s.rejects ? 0 : 1, 0);
}

static void passive_refused_by_ulp(struct kunit *test)
{
	requested(test);
	KUNIT_EXPECT_EQ(test, krc_iw_reject(&scene->iw.id, "no", 2), 0);
	KUNIT_EXPECT_EQ(test, scene->s.rejects, 1U);
	KUNIT_EXPECT_EQ(test, scene->s.reject_err, -ECONNREFUSED);
	KUNIT_EXPECT_TRUE(test, scene->s.reject.by_ulp);
	KUNIT_EXPECT_EQ(test, scene->s.reject_priv, 'n');
	/* The answers that come later find nothing. */
	flush_workqueue(krc_cm_wq);
	KUNIT_EXPECT_EQ(test, krc_iw_reject(&scene->iw.id, NULL, 0), -ECONNRESET);
	KUNIT_EXPECT_EQ(test, accepts(), -ECONNRESET);
	/* As does a stop() that kofi_cm was about to call. */
	stop(-ECONNRESET, false, NULL, 0);
	nothing_left(test, 0, 0);
}

/* The client goes while the ULP thinks. */
static void passive_ends_while_asked(struct kunit *test)
{
	requested(test);
	stop(-ECONNRESET, false, NULL, 0);
	flush_workqueue(krc_cm_wq);
	KUNIT_EXPECT_EQ(test, scene->s.gones, 1U);
	KUNIT_EXPECT_EQ(test, accepts(), -ECONNRESET);
	KUNIT_EXPECT_EQ(test, scene->s.accepts, 0U);
	nothing_left(test, 1, 0);
}

/* The ULP never answers, or does so too late. */
static void passive_not_answered(struct kunit *test)
{
	struct krc_cm *cm;

	requested(test);
	cm = krc_cm_get(scene->listener.nr);
	KUNIT_ASSERT_NOT_NULL(test, cm);
	mod_delayed_work(krc_cm_wq, &cm->asked, 0);
	krc_cm_put(cm);
	KUNIT_EXPECT_TRUE(test, kofi_soon(xa_empty(&krc_cms)));
	KUNIT_EXPECT_EQ(test, scene->s.rejects, 1U);
	KUNIT_EXPECT_EQ(test, scene->s.reject_err, -ETIMEDOUT);
	KUNIT_EXPECT_FALSE(test, scene->s.reject.by_ulp);
	KUNIT_EXPECT_EQ(test, accepts(), -ECONNRESET);
	nothing_left(test, 0, 0);
}

/* The listener goes, and iw_cm drops the request: it is refused without delay. */
static void passive_dropped(struct kunit *test)
{
	requested(test);
	krc_listen_end(&scene->listener.id);
	KUNIT_EXPECT_TRUE(test, kofi_soon(xa_empty(&krc_cms)));
	KUNIT_EXPECT_EQ(test, scene->s.rejects, 1U);
	KUNIT_EXPECT_EQ(test, scene->s.reject_err, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, accepts(), -ECONNRESET);
	nothing_left(test, 0, 0);
}

/* The listener goes, but not the connections that it has accepted. */
static void passive_outlives_listener(struct kunit *test)
{
	requested(test);
	KUNIT_ASSERT_EQ(test, accepts(), 0);
	krc_listen_end(&scene->listener.id);
	flush_workqueue(krc_cm_wq);
	KUNIT_EXPECT_EQ(test, scene->s.rejects, 0U);
	krc_cm_live(&scene->s);
	KUNIT_EXPECT_EQ(test, scene->iw.state, IW_UP);
	stop(-ECONNRESET, false, NULL, 0);
	krc_wait_flushed(&scene->qp.c);
	nothing_left(test, 1, 0);
}

/* Requests that no ULP sees. */
static void passive_refused(struct kunit *test)
{
	struct kcm_peer peer = peer_of(PORT + 1);

	listens();
	KUNIT_EXPECT_EQ(test, krc_cm_request(&scene->s, &peer), -ENOENT);
	/* Strangers don't have address handles made. */
	KUNIT_EXPECT_EQ(test, scene->meets, 0U);
	peer = peer_of(PORT);
	peer.addrs.format = 8;
	KUNIT_EXPECT_EQ(test, krc_cm_request(&scene->s, &peer), -EPROTO);
	peer = peer_of(PORT);
	scene->meet_ret = -EADDRNOTAVAIL;
	KUNIT_EXPECT_EQ(test, krc_cm_request(&scene->s, &peer), -EADDRNOTAVAIL);
	scene->meet_ret = 0;
	scene->down = true;
	KUNIT_EXPECT_EQ(test, krc_cm_request(&scene->s, &peer), -ENODEV);
	scene->down = false;
	/* The ULP's backlog is full. */
	scene->listener.no_memory = 1;
	KUNIT_EXPECT_EQ(test, krc_cm_request(&scene->s, &peer), -ENOMEM);
	KUNIT_EXPECT_EQ(test, scene->listener.requests, 0U);
	nothing_left(test, 0, 0);
}

/* An address: of IPv4, or the last byte of one of IPv6. */
struct where {
	const char	*four;
	u8		six;
	u16		port;
};

static struct sockaddr_storage addr_of(const struct where *w)
{
	return w->four ? four(w->four, w->port) : six(w->six, w->port);
}

/* The listener of a request has its port, and its address or any. */
static void passive_listeners(struct kunit *test)
{
	static const struct {
		struct where	listens, local;
		bool		afonly, match;
	} tries[] = {
		{ { "0.0.0.0", 0, 1 }, { "10.0.0.1", 0, 1 }, false, true },
		{ { "10.0.0.1", 0, 1 }, { "10.0.0.1", 0, 1 }, false, true },
		{ { "10.0.0.2", 0, 1 }, { "10.0.0.1", 0, 1 }, false, false },
		{ { "10.0.0.1", 0, 1 }, { "10.0.0.1", 0, 2 }, false, false },
		{ { "0.0.0.0", 0, 1 }, { NULL, 1, 1 }, false, false },
		{ { NULL, 0, 1 }, { NULL, 1, 1 }, false, true },
		{ { NULL, 0, 1 }, { "10.0.0.1", 0, 1 }, false, true },
		{ { NULL, 0, 1 }, { "10.0.0.1", 0, 1 }, true, false },
		{ { NULL, 1, 1 }, { NULL, 1, 1 }, false, true },
		{ { NULL, 1, 1 }, { NULL, 2, 1 }, false, false },
		{ { NULL, 1, 1 }, { "10.0.0.1", 0, 1 }, false, false },
	};
	struct iw_cm_id *id = &scene->listener.id;
	int i;

	for (i = 0; i < ARRAY_SIZE(tries); i++) {
		id->local_addr = addr_of(&tries[i].listens);
		id->afonly = tries[i].afonly;
		scene->local = addr_of(&tries[i].local);
		KUNIT_EXPECT_EQ_MSG(test, krc_listens_at(id, &scene->local), tries[i].match,
				    "%d", i);
	}
}

/* A listener for the address goes before one for any, whichever came first. */
static void passive_exact_listener(struct kunit *test)
{
	bool exact_first = *(const int *)test->param_value;
	struct iw *exact = exact_first ? &scene->iw : &scene->listener;
	struct iw *any = exact_first ? &scene->listener : &scene->iw;
	const struct kcm_peer peer = peer_of(PORT);

	exact->id.local_addr = four("10.0.0.1", PORT);
	any->id.local_addr = four("0.0.0.0", PORT);
	scene->local = four("10.0.0.1", KRC_PORT);
	krc_listen_begin(&scene->iw.id, 1);
	krc_listen_begin(&scene->listener.id, 1);
	KUNIT_EXPECT_EQ(test, krc_cm_request(&scene->s, &peer), 0);
	KUNIT_EXPECT_EQ(test, exact->requests, 1U);
	KUNIT_EXPECT_EQ(test, any->requests, 0U);
	stop(-ECONNRESET, false, NULL, 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(xa_empty(&krc_cms)));
	list_del(&((struct krc_listen *)scene->iw.id.provider_data)->list);
	kfree(scene->iw.id.provider_data);
	scene->iw.refs = 0;
	nothing_left(test, 1, 0);
}

static const int orders[] = { 0, 1 };

static void order_name(const int *exact_first, char *desc)
{
	strscpy(desc, *exact_first ? "exact first" : "any first", KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(order, orders, order_name);

/* The TCP port is open while there is a link. */
static void port_of_links(struct kunit *test)
{
	scene->listen_ret = -EADDRINUSE;
	KUNIT_EXPECT_EQ(test, krc_cm_listen(), -EADDRINUSE);
	scene->listen_ret = 0;
	KUNIT_EXPECT_EQ(test, krc_cm_listen(), 0);
	KUNIT_EXPECT_EQ(test, krc_cm_listen(), 0);
	KUNIT_EXPECT_EQ(test, scene->ports, 1U);
	krc_cm_unlisten();
	KUNIT_EXPECT_EQ(test, scene->ports, 1U);
	krc_cm_unlisten();
	KUNIT_EXPECT_EQ(test, scene->ports, 0U);
}

/* A queue pair has one connection in its life. */
static void passive_used_qp(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, krc_conn_prepare(&scene->qp.c, 4, 4), 0);
	requested(test);
	KUNIT_EXPECT_EQ(test, accepts(), -EISCONN);
	KUNIT_EXPECT_EQ(test, scene->s.rejects, 1U);
	scene->iw.state = IW_IDLE;
	nothing_left(test, 0, 0);
}

/*
 * A connection has a queue of its vector: that for softirqs if there is one, both its ib_cqs are
 * polled there, and its peer isn't this machine.
 */
static void queues_of_vectors(struct kunit *test)
{
	struct krc_queue *queues = kunit_kcalloc(test, 4, sizeof(*queues), GFP_KERNEL);
	struct krc_cm *cm = kunit_kzalloc(test, sizeof(*cm), GFP_KERNEL);
	struct ib_cq *cq = &scene->cq.ib, other = {};
	struct sockaddr_in6 *local6, *remote6;
	struct sockaddr_in *local, *remote;
	struct ib_wc wc;

	KUNIT_ASSERT_NOT_NULL(test, queues);
	KUNIT_ASSERT_NOT_NULL(test, cm);
	local = (struct sockaddr_in *)&cm->local;
	remote = (struct sockaddr_in *)&cm->remote;
	local6 = (struct sockaddr_in6 *)&cm->local;
	remote6 = (struct sockaddr_in6 *)&cm->remote;
	cm->net = &scene->net;
	cm->qp = &scene->qp;
	scene->net.queues = queues;
	scene->net.nqueues = 4;
	scene->fabric.nvectors = 2;
	scene->fabric.nsoftirq = 2;
	cq->comp_vector = 3;
	/* A ULP that polls the queue itself. */
	KUNIT_EXPECT_PTR_EQ(test, krc_cm_queue(cm), &queues[1]);
	cq->poll_ctx = IB_POLL_SOFTIRQ;
	KUNIT_EXPECT_PTR_EQ(test, krc_cm_queue(cm), &queues[1]);
	cq->wc = &wc;
	KUNIT_EXPECT_PTR_EQ(test, krc_cm_queue(cm), &queues[3]);
	/* Without second queues. */
	scene->fabric.nsoftirq = 0;
	KUNIT_EXPECT_PTR_EQ(test, krc_cm_queue(cm), &queues[1]);
	cq->comp_vector = 2;
	KUNIT_EXPECT_PTR_EQ(test, krc_cm_queue(cm), &queues[0]);
	scene->fabric.nsoftirq = 2;
	cq->comp_vector = 3;
	cq->poll_ctx = IB_POLL_WORKQUEUE;
	KUNIT_EXPECT_PTR_EQ(test, krc_cm_queue(cm), &queues[1]);
	cq->poll_ctx = IB_POLL_DIRECT;
	KUNIT_EXPECT_PTR_EQ(test, krc_cm_queue(cm), &queues[1]);
	cq->poll_ctx = IB_POLL_SOFTIRQ;
	scene->qp.ib.send_cq = &other;
	KUNIT_EXPECT_PTR_EQ(test, krc_cm_queue(cm), &queues[1]);
	scene->qp.ib.send_cq = cq;
	cq->comp_vector = 0;
	KUNIT_EXPECT_PTR_EQ(test, krc_cm_queue(cm), &queues[2]);
	/* By its address, of which the port is no part. */
	local->sin_family = AF_INET;
	local->sin_addr.s_addr = htonl(0x0a000001);
	KUNIT_EXPECT_PTR_EQ(test, krc_cm_queue(cm), &queues[2]);
	*remote = *local;
	remote->sin_port = htons(4420);
	KUNIT_EXPECT_PTR_EQ(test, krc_cm_queue(cm), &queues[0]);
	remote->sin_addr.s_addr = htonl(0x0a000002);
	KUNIT_EXPECT_PTR_EQ(test, krc_cm_queue(cm), &queues[2]);
	local6->sin6_family = AF_INET6;
	local6->sin6_addr = (struct in6_addr){ .s6_addr = { 0xfd, [15] = 1 } };
	*remote6 = *local6;
	remote6->sin6_port = htons(4420);
	KUNIT_EXPECT_PTR_EQ(test, krc_cm_queue(cm), &queues[0]);
	remote6->sin6_addr.s6_addr[15] = 2;
	KUNIT_EXPECT_PTR_EQ(test, krc_cm_queue(cm), &queues[2]);
}

static struct kunit_case cm_cases[] = {
	KUNIT_CASE(queues_of_vectors),
	KUNIT_CASE(active_ended_by_peer),
	KUNIT_CASE(active_ended_by_ulp),
	KUNIT_CASE(active_refused_by_ulp),
	KUNIT_CASE_PARAM(active_fails, fail_gen_params),
	KUNIT_CASE(active_accept_fails),
	KUNIT_CASE(active_without_receives),
	KUNIT_CASE(active_with_few_receives),
	KUNIT_CASE(active_ends_before_live),
	KUNIT_CASE(active_stopped_in_setup),
	KUNIT_CASE(active_reply_without_memory),
	KUNIT_CASE(active_no_device),
	KUNIT_CASE(active_connect_fails),
	KUNIT_CASE(active_device_gone),
	KUNIT_CASE(passive_ended_by_peer),
	KUNIT_CASE(passive_ends_before_live),
	KUNIT_CASE(passive_message_waits),
	KUNIT_CASE(passive_message_too_early),
	KUNIT_CASE(passive_accept_fails),
	KUNIT_CASE(passive_refused_by_ulp),
	KUNIT_CASE(passive_ends_while_asked),
	KUNIT_CASE(passive_not_answered),
	KUNIT_CASE(passive_dropped),
	KUNIT_CASE(passive_outlives_listener),
	KUNIT_CASE(passive_refused),
	KUNIT_CASE(passive_listeners),
	KUNIT_CASE_PARAM(passive_exact_listener, order_gen_params),
	KUNIT_CASE(passive_used_qp),
	KUNIT_CASE(port_of_links),
	{}
};

static struct kunit_suite cm_suite = {
	.name		= "kofi_rc_cm",
	.init		= cm_scene_init,
	.exit		= cm_scene_exit,
	.suite_init	= cm_suite_init,
	.suite_exit	= cm_suite_exit,
	.test_cases	= cm_cases,
};

kunit_test_suite(cm_suite);

MODULE_DESCRIPTION("KUnit tests of kofi_rc's connections");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
