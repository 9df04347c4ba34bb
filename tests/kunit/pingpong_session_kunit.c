// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Pingpong's session: what its callbacks do, and when its thread acts, with another kofi_cm. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/workqueue.h>
#include <kofi/session.h>

#define kcm_listen	fake_listen
#define kcm_unlisten	fake_unlisten
#define kcm_connect	fake_connect
#define kcm_disconnect	fake_disconnect
#define kcm_accept	fake_accept
#define kcm_reject	fake_reject
#define kcm_note	fake_note
#define kcm_bye		fake_bye
#define kcm_gone	fake_gone
#define kcm_context	fake_context

/**
 * struct kcm_session - a session
 * @context: instance of pingpong
 * @accepts: kcm_connect() returns after the session was accepted
 * @sends: result of kcm_note()
 * @ends: how the session ends, by @work or kcm_disconnect()
 * @work: ends the session
 * @byes: number of calls of kcm_bye()
 * @reason: the last one's reason
 * @gone: number of calls of kcm_gone()
 */
struct kcm_session {
	void			*context;
	bool			accepts;
	int			sends;
	struct kcm_end		ends;
	struct delayed_work	work;
	unsigned int		byes;
	enum kcm_reason		reason;
	unsigned int		gone;
};

static int fake_listen(const struct kcm_config *config, const struct sockaddr_storage *addr,
		       void *context, struct kcm_listener **listener)
{
	return -EADDRINUSE;
}

static void fake_unlisten(struct kcm_listener *l)
{
}

static int fake_connect(const struct kcm_config *config, const struct kcm_client *client,
			void *context, struct kcm_session **session);

static void fake_disconnect(struct kcm_session *s);

static int fake_accept(struct kcm_session *s, const struct kcm_addrs *addrs, const void *priv,
		       size_t len)
{
	return -ENOTCONN;
}

static bool fake_reject(struct kcm_session *s, int err, bool again, u32 after_ms, const char *why,
			const void *priv, size_t len)
{
	return true;
}

static int fake_note(struct kcm_session *s, const void *data, size_t len)
{
	if (s->sends == -ENOTCONN)
		schedule_delayed_work(&s->work, msecs_to_jiffies(50));
	return s->sends;
}

static void fake_bye(struct kcm_session *s, enum kcm_reason reason, bool again, const void *data,
		     size_t len)
{
	s->byes++;
	s->reason = reason;
}

static void fake_gone(struct kcm_session *s)
{
	s->gone++;
}

static void *fake_context(const struct kcm_session *s)
{
	return s->context;
}

#include "../../ulp/lib/msg.c"
#include "../../samples/pingpong/wire.c"
#include "../../samples/pingpong/session.c"

struct pp_config pp_config = { .addr = "10.0.0.1", .port = 7471, .timeout = 5 };

/**
 * struct client - a client
 * @inst: its instance
 * @s: its session, which has no object of the fabric
 * @cm: its session of kofi_cm
 * @hello: HELLO of its server
 * @addr: address of the server's endpoint
 * @met: number of calls of pp_meet()
 * @refused: number of messages refused
 * @error: the last error reported
 */
static struct client {
	struct pp_instance	inst;
	struct pp_session	s;
	struct kcm_session	cm;
	u8			hello[PP_WIRE_MAX] __aligned(8);
	u8			addr[8];
	unsigned int		met;
	unsigned int		refused;
	int			error;
} client;

int pp_meet(struct pp_session *s)
{
	client.met++;
	return memcmp(s->peer_addr_of.bytes, client.addr, sizeof(client.addr)) ? -EINVAL : 0;
}

int pp_join(struct pp_session *s)
{
	return 0;
}

void pp_report_refused(struct pp_instance *inst)
{
	client.refused++;
}

void pp_report_error(struct pp_instance *inst, int err, const char *fmt, ...)
{
	client.error = err;
}

static int accepted(void)
{
	const struct kcm_peer peer = {
		.name = "", .instance = "", .from = "10.0.0.1:7471",
		.addrs = { .format = 7, .len = sizeof(client.addr), .count = 1,
			   .addr = client.addr },
		.priv = client.hello, .priv_len = sizeof(struct pp_wire_hello),
	};

	return pp_cm_accepted(&client.cm, &peer);
}

static int fake_connect(const struct kcm_config *config, const struct kcm_client *to,
			void *context, struct kcm_session **session)
{
	*session = &client.cm;
	if (client.cm.accepts && !accepted())
		pp_cm_live(&client.cm);
	return 0;
}

static void fake_disconnect(struct kcm_session *s)
{
	if (!client.inst.link.ended)
		pp_cm_stop(s, &s->ends);
}

static void end_work(struct work_struct *work)
{
	pp_cm_stop(&client.cm, &client.cm.ends);
}

static int setup(struct kunit *test)
{
	const struct pp_msg hello = {
		.type = PP_HELLO,
		.hello = { .max_msg = 8192, .memory = 1 << 20, .depth = 16 },
	};
	struct pp_link *link = &client.inst.link;

	memset(&client, 0, sizeof(client));
	client.inst.name = "client";
	init_waitqueue_head(&client.inst.wait);
	mutex_init(&client.inst.lock);
	spin_lock_init(&link->lock);
	INIT_LIST_HEAD(&link->notes);
	client.s.inst = &client.inst;
	client.s.self = hello.hello;
	client.s.addr_format = 7;
	client.s.self_addr.len = sizeof(client.addr);
	memset(client.addr, 0x5a, sizeof(client.addr));
	pp_wire_build(&hello, client.hello);
	client.cm.context = &client.inst;
	client.cm.ends = (struct kcm_end){ .err = -ECONNABORTED, .reason = KCM_BYE_REMOVED };
	INIT_DELAYED_WORK(&client.cm.work, end_work);
	return 0;
}

static void teardown(struct kunit *test)
{
	cancel_delayed_work_sync(&client.cm.work);
	pp_link_reset(&client.inst.link);
}

static void session_begins(void)
{
	client.inst.link.session = &client.s;
	client.inst.link.cm = &client.cm;
	client.inst.link.live = true;
}

/* Attempts go on until pp_end(), which comes after pp_close(). */
static void callbacks_use_no_object(struct kunit *test)
{
	struct kcm_addrs addrs;
	const void *priv;
	size_t len;

	client.inst.link.session = &client.s;
	client.inst.link.cm = &client.cm;
	KUNIT_ASSERT_EQ(test, pp_cm_hello(&client.cm, &addrs, &priv, &len), 0);
	KUNIT_EXPECT_EQ(test, addrs.format, 7);
	KUNIT_EXPECT_EQ(test, addrs.len, sizeof(client.addr));
	KUNIT_EXPECT_EQ(test, accepted(), 0);
	pp_cm_live(&client.cm);
	KUNIT_EXPECT_EQ(test, client.met, 0);
	pp_end(&client.inst);
	KUNIT_EXPECT_EQ(test, client.met, 0);
	KUNIT_EXPECT_EQ(test, client.cm.gone, 1);
}

static void address_is_inserted_once_live(struct kunit *test)
{
	client.cm.accepts = true;
	KUNIT_EXPECT_EQ(test, pp_connect(&client.s), 0);
	KUNIT_EXPECT_EQ(test, client.met, 1);
	KUNIT_EXPECT_EQ(test, client.s.peer.depth, 16);
}

static void stopped_client_inserts_nothing(struct kunit *test)
{
	client.cm.accepts = true;
	pp_shut_down(&client.inst);
	KUNIT_EXPECT_EQ(test, pp_connect(&client.s), -ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, client.met, 0);
}

/* kofi_cm is told once that nothing runs any more, also if the peer has ended the session. */
static void gone_once(struct kunit *test)
{
	session_begins();
	pp_cm_stop(&client.cm, &client.cm.ends);
	KUNIT_EXPECT_EQ(test, client.cm.gone, 0);
	pp_end(&client.inst);
	KUNIT_EXPECT_EQ(test, client.cm.gone, 1);
	session_begins();
	pp_end(&client.inst);
	KUNIT_EXPECT_EQ(test, client.cm.gone, 2);
}

/* A peer that sends more than it may mustn't take memory. */
static void messages_are_limited(struct kunit *test)
{
	const struct pp_msg ready = { .type = PP_READY, .ready = { .base = 1 } };
	u8 buf[PP_WIRE_MAX] __aligned(8);
	const size_t len = pp_wire_build(&ready, buf);
	struct pp_msg msg;
	unsigned int i;

	session_begins();
	for (i = 0; i < PP_NOTES_MAX; i++)
		pp_cm_note(&client.cm, buf, len);
	KUNIT_EXPECT_EQ(test, client.cm.byes, 0);
	KUNIT_ASSERT_EQ(test, pp_msg_recv(&client.s, &msg), 0);
	KUNIT_EXPECT_EQ(test, msg.type, PP_READY);
	pp_cm_note(&client.cm, buf, len);
	KUNIT_EXPECT_EQ(test, client.cm.byes, 0);
	for (i = 1; i < 4; i++) {
		pp_cm_note(&client.cm, buf, len);
		KUNIT_EXPECT_EQ(test, client.cm.byes, i);
		KUNIT_EXPECT_EQ(test, client.refused, i);
	}
	KUNIT_EXPECT_EQ(test, client.cm.reason, KCM_BYE_PROTOCOL);
	for (i = 0; i < PP_NOTES_MAX; i++)
		KUNIT_EXPECT_EQ(test, pp_msg_recv(&client.s, &msg), 0);
	KUNIT_EXPECT_FALSE(test, pp_msg_waits(&client.s));
}

static void long_messages_are_refused(struct kunit *test)
{
	u8 buf[PP_WIRE_MAX + 1] = {};

	session_begins();
	pp_cm_note(&client.cm, buf, sizeof(buf));
	KUNIT_EXPECT_EQ(test, client.cm.byes, 1);
	KUNIT_EXPECT_EQ(test, client.cm.reason, KCM_BYE_PROTOCOL);
	KUNIT_EXPECT_FALSE(test, pp_msg_waits(&client.s));
}

/* kofi_cm takes no message any more from before pp_cm_stop() on, which knows the reason. */
static void end_is_known_when_reported(struct kunit *test)
{
	const struct pp_msg done = { .type = PP_DONE };

	session_begins();
	client.inst.link.err = -ETIMEDOUT;
	client.cm.sends = -ENOTCONN;
	KUNIT_EXPECT_EQ(test, pp_msg_send(&client.s, &done), -ECONNABORTED);
	KUNIT_EXPECT_EQ(test, client.error, -ECONNABORTED);
	KUNIT_EXPECT_EQ(test, client.inst.link.reason, KCM_BYE_REMOVED);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(callbacks_use_no_object),
	KUNIT_CASE(address_is_inserted_once_live),
	KUNIT_CASE(stopped_client_inserts_nothing),
	KUNIT_CASE(gone_once),
	KUNIT_CASE(messages_are_limited),
	KUNIT_CASE(long_messages_are_refused),
	KUNIT_CASE(end_is_known_when_reported),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofi_pingpong_session",
	.init		= setup,
	.exit		= teardown,
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of pingpong's session");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI_ULP);
