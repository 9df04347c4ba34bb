// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A peer that has a link, but doesn't use it as kofi_msg does. It plays either side, and the other
 * one must refuse it, or end the link, and go on.
 */
#include <linux/delay.h>
#include <linux/kmod.h>
#include <net/net_namespace.h>
#include <kofi/session.h>
#include "../../cm/msg/wire.c"
#include "msg_test.h"

#define CTX(n)	((void *)(unsigned long)(n))

/**
 * struct villain - the peer
 * @hello: private data of HELLO
 * @hello_len: bytes of @hello
 * @s: its session
 * @listener: its listener, or NULL
 * @live: the session is live
 * @stopped: the session has ended
 * @failed: an attempt has failed
 * @err: how it has ended, or how an attempt has failed
 * @got: number of messages of each kind
 * @busy: number of REJECTs because of the backlog
 * @repeats: @again follows each REJECT
 * @again: a request
 * @last: the last message
 */
struct villain {
	u8			hello[sizeof(struct kmsg_wire_link) + 8];
	size_t			hello_len;
	struct kcm_session	*s;
	struct kcm_listener	*listener;
	bool			live;
	bool			stopped;
	bool			failed;
	int			err;
	unsigned int		got[KMSG_TYPES];
	unsigned int		busy;
	bool			repeats;
	struct kmsg_msg		again;
	struct kmsg_msg		last;
};

static int villain_keys(struct kcm_listener *l, const struct kcm_peer *peer,
			struct kulp_key *keys[KULP_SECRETS])
{
	return 0;
}

static int villain_request(struct kcm_session *s, const struct kcm_peer *peer)
{
	struct villain *v = kcm_listener_context(kcm_session_listener(s));

	kcm_set_context(s, v);
	v->s = s;
	return kcm_accept(s, NULL, NULL, 0);
}

static int villain_hello(struct kcm_session *s, struct kcm_addrs *addrs, const void **priv,
			 size_t *len)
{
	struct villain *v = kcm_context(s);

	if (v->failed || v->stopped)
		return -ECANCELED;
	*addrs = (struct kcm_addrs) {};
	*priv = v->hello;
	*len = v->hello_len;
	return 0;
}

static int villain_accepted(struct kcm_session *s, const struct kcm_peer *peer)
{
	return 0;
}

static void villain_live(struct kcm_session *s)
{
	WRITE_ONCE(((struct villain *)kcm_context(s))->live, true);
}

static noinline_for_stack void villain_repeat(struct villain *v)
{
	u8 buf[KMSG_WIRE_MAX];

	kcm_note(v->s, buf, kmsg_msg_build(&v->again, buf));
}

static void villain_note(struct kcm_session *s, const void *data, size_t len)
{
	struct villain *v = kcm_context(s);
	size_t at;
	int n;

	for (at = 0; at < len; at += n) {
		n = kmsg_msg_parse(data + at, len - at, !v->listener, &v->last);
		if (WARN_ON_ONCE(n < 0))
			return;
		v->busy += v->last.type == KMSG_REJECT && v->last.why == KMSG_BUSY;
		WRITE_ONCE(v->got[v->last.type], v->got[v->last.type] + 1);
		if (v->last.type == KMSG_REJECT && v->repeats)
			villain_repeat(v);
	}
}

static void villain_failed(struct kcm_session *s, const struct kcm_end *end)
{
	struct villain *v = kcm_context(s);

	v->err = end->err;
	WRITE_ONCE(v->failed, true);
}

static void villain_stop(struct kcm_session *s, const struct kcm_end *end)
{
	struct villain *v = kcm_context(s);

	v->err = end->err;
	kcm_gone(s);
	WRITE_ONCE(v->stopped, true);
}

static const struct kcm_ops villain_ops = {
	.keys		= villain_keys,
	.request	= villain_request,
	.hello		= villain_hello,
	.accepted	= villain_accepted,
	.live		= villain_live,
	.note		= villain_note,
	.failed		= villain_failed,
	.stop		= villain_stop,
};

static const struct kcm_config villain_config = {
	.net		= &init_net,
	.service	= "kofi-msg",
	.version_min	= 1,
	.version	= 1,
	.keep_alive_ms	= 10000,
	.replace_ms	= 1000,
	.ops		= &villain_ops,
};

static struct villain *villain_new(struct kunit *test)
{
	struct villain *v = kunit_kzalloc(test, sizeof(*v), GFP_KERNEL);
	struct kmsg_wire_link *hello;

	KUNIT_ASSERT_NOT_NULL(test, v);
	hello = (void *)v->hello;
	hello->magic = cpu_to_le32(KMSG_MAGIC);
	hello->version = cpu_to_le32(KMSG_VERSION);
	v->hello_len = sizeof(*hello);
	return v;
}

static void villain_disconnect(void *data)
{
	struct villain *v = data;

	if (v->s && !v->listener)
		kcm_disconnect(v->s);
	if (v->listener)
		kcm_unlisten(v->listener);
	v->s = NULL;
	v->listener = NULL;
}

static void villain_connect(struct kunit *test, struct msg_scene *s, struct villain *v)
{
	static unsigned int number;
	char instance[16];
	struct kcm_client client = {
		.to = s->addr, .name = "villain", .instance = instance, .retry_ms = 60000,
	};

	snprintf(instance, sizeof(instance), "%u", number++);
	KUNIT_ASSERT_EQ(test, kcm_connect(&villain_config, &client, v, &v->s), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, villain_disconnect, v), 0);
}

static struct villain *villain_link(struct kunit *test, struct msg_scene *s)
{
	struct villain *v = villain_new(test);

	villain_connect(test, s, v);
	KUNIT_ASSERT_TRUE(test, kofi_soon(READ_ONCE(v->live)));
	return v;
}

/* The server refuses it, and the ULP hears nothing of it. */
static void expect_refused(struct kunit *test, struct msg_scene *s, struct villain *v)
{
	villain_connect(test, s, v);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(v->failed)));
	KUNIT_EXPECT_EQ(test, v->err, -EPROTO);
	msg_quiet(test, s->eq);
	kunit_release_action(test, villain_disconnect, v);
}

static void bad_hello(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct villain *v;
	int i;

	for (i = 0; i < 5; i++) {
		v = villain_new(test);
		if (i < 3)
			v->hello_len = i == 0 ? 0 : v->hello_len + (i == 1 ? 1 : -1);
		else
			v->hello[i == 3 ? 0 : 4] ^= 1;
		expect_refused(test, s, v);
	}
	/* The server still serves. */
	msg_connect(test, s);
}

/* A request of an honest peer: the address is that of an endpoint of fabric loop. */
static struct kmsg_msg *request(struct kunit *test, u32 id, u64 posted)
{
	struct kmsg_msg *msg = kunit_kzalloc(test, sizeof(*msg), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, msg);
	msg->type = KMSG_CONN;
	msg->id = id;
	msg->side.protocol = 1;
	msg->side.tag = 0x1234567890 + id;
	msg->side.posted = posted;
	msg->side.addrlen = 8;
	/* A number that no endpoint has. */
	memcpy(msg->side.addr, "loop\xff\xff\xff\x7f", 8);
	return msg;
}

static noinline_for_stack void say(struct kunit *test, struct villain *v,
				   const struct kmsg_msg *msg)
{
	u8 buf[KMSG_WIRE_MAX];

	KUNIT_EXPECT_EQ(test, kcm_note(v->s, buf, kmsg_msg_build(msg, buf)), 0);
}

static void say_type(struct kunit *test, struct villain *v, enum kmsg_type type, u32 id, u64 posted)
{
	struct kmsg_msg *msg = request(test, id, posted);

	msg->type = type;
	say(test, v, msg);
}

static int accept_request(struct kunit *test, struct msg_scene *s, struct villain *v,
			  const struct kmsg_msg *msg)
{
	struct msg_event event;

	say(test, v, msg);
	event = msg_next(test, s->eq);
	KUNIT_ASSERT_EQ(test, event.what, FI_CONNREQ);
	s->server.ep = msg_ep(test, s, event.info, &s->server);
	fi_freeinfo(event.info);
	return fi_accept(s->server.ep, NULL, 0);
}

/* Its endpoint isn't of the same kind as the server's, or has no valid address. */
static void bad_lane(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct villain *v = villain_link(test, s);
	struct kmsg_msg *msg;
	int i;

	for (i = 0; i < 4; i++) {
		msg = request(test, i, 0);
		if (i == 0)
			msg->side.protocol = 0x12345;
		else if (i == 1)
			msg->side.format = 7;
		else if (i == 2)
			msg->side.addrlen = 7;
		else
			msg->side.addr[0] = 0;
		KUNIT_EXPECT_EQ(test, accept_request(test, s, v, msg), i == 3 ? -EINVAL : -EPROTO);
		MSG_CLOSE(s->server.ep);
		KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(v->got[KMSG_REJECT]) == i + 1));
	}
	KUNIT_EXPECT_FALSE(test, READ_ONCE(v->stopped));
	msg_connect(test, s);
}

/* Begin a connection with this number, and accept it. */
static struct villain *villain_connected(struct kunit *test, struct msg_scene *s, u32 id,
					 u64 posted)
{
	struct villain *v = villain_link(test, s);
	struct kmsg_msg *msg = request(test, id, posted);

	KUNIT_ASSERT_EQ(test, accept_request(test, s, v, msg), 0);
	KUNIT_ASSERT_TRUE(test, kofi_soon(READ_ONCE(v->got[KMSG_ACCEPT])));
	KUNIT_EXPECT_EQ(test, v->last.id, id);
	say_type(test, v, KMSG_LIVE, id, 0);
	MSG_EXPECT(s->server.eq, FI_CONNECTED, s->server.ep);
	return v;
}

static void expect_ended(struct kunit *test, struct msg_scene *s, struct villain *v)
{
	MSG_EXPECT(s->server.eq, FI_SHUTDOWN, s->server.ep);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(v->stopped)));
	KUNIT_EXPECT_EQ(test, v->err, -ECONNABORTED);
	MSG_CLOSE(s->server.ep);
	kunit_release_action(test, villain_disconnect, v);
}

/* Messages that can't be, or not now, or are of no connection of the link. */
static void bad_messages(struct kunit *test)
{
	static const struct {
		enum kmsg_type	type;
		u32		id;
		u64		posted;
	} bad[] = {
		{ KMSG_ACCEPT, 7 }, { KMSG_REJECT, 7 }, { KMSG_LIVE, 7 }, { KMSG_LIVE, 8 },
		{ KMSG_CREDIT, 7, 4 }, { KMSG_CREDIT, 8, 9 }, { KMSG_CREDIT, 7, U64_MAX },
	};
	struct msg_scene *s = msg_scene(test);
	struct kmsg_msg *msg;
	struct villain *v;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		v = villain_connected(test, s, 7, 5);
		/* Receives that it doesn't have harm nobody, and nor does the end of nothing. */
		say_type(test, v, KMSG_CREDIT, 7, 1000);
		say_type(test, v, KMSG_DISC, 8, 0);
		msleep(20);
		msg_quiet(test, s->server.eq);
		KUNIT_EXPECT_FALSE(test, READ_ONCE(v->stopped));
		say_type(test, v, bad[i].type, bad[i].id, bad[i].posted);
		expect_ended(test, s, v);
	}
	/* A number that is in use. */
	v = villain_connected(test, s, 7, 5);
	msg = request(test, 7, 0);
	say(test, v, msg);
	expect_ended(test, s, v);
	v = villain_connected(test, s, 7, 5);
	KUNIT_EXPECT_EQ(test, kcm_note(v->s, NULL, 0), 0);
	expect_ended(test, s, v);
	v = villain_connected(test, s, 7, 5);
	KUNIT_EXPECT_EQ(test, kcm_note(v->s, "x", 1), 0);
	expect_ended(test, s, v);
	msg_connect(test, s);
}

/* Another peer's connections have the same numbers, and are out of its reach. */
static void others(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fid_ep *server, *client;
	struct villain *v;
	u32 id;

	msg_connect(test, s);
	server = s->server.ep;
	client = s->client.ep;
	for (id = 0; id < 4; id++) {
		v = villain_link(test, s);
		say_type(test, v, KMSG_DISC, id, 0);
		say_type(test, v, KMSG_CREDIT, id, 1000);
		KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(v->stopped)));
		kunit_release_action(test, villain_disconnect, v);
	}
	msg_quiet(test, s->server.eq);
	KUNIT_EXPECT_EQ(test, fi_send(client, s->client.buf, 8, NULL, 0, CTX(1)), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fi_recv(server, s->server.buf, 8, NULL, 0, CTX(2)), 0);
	MSG_SEND(client, s->client.buf, 8, 3);
	MSG_DONE(&s->server, 2, 0);
	MSG_DONE(&s->client, 3, 0);
}

/* It promises receives that it doesn't have: sends fail, and nothing else happens. */
static void false_credits(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct villain *v = villain_connected(test, s, 3, 1000);

	KUNIT_EXPECT_EQ(test, fi_send(s->server.ep, s->server.buf, 8, NULL, 0, NULL),
			-EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, fi_shutdown(s->server.ep, 0), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(v->got[KMSG_DISC]) == 1));
	/* Its own messages may cross the end. */
	say_type(test, v, KMSG_CREDIT, 3, 1001);
	say_type(test, v, KMSG_DISC, 3, 0);
	msleep(20);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(v->stopped));
}

static void set_param(struct kunit *test, const char *name, unsigned int value)
{
	char *argv[4] = {}, *envp[1] = {};

	argv[0] = "/bin/sh";
	argv[1] = "-c";
	argv[2] = kunit_kzalloc(test, 128, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, argv[2]);
	snprintf(argv[2], 128, "echo %u > /sys/module/kofi_msg/parameters/%s", value, name);
	KUNIT_ASSERT_EQ(test, call_usermodehelper(argv[0], argv, envp, UMH_WAIT_PROC), 0);
}

/* It keeps answers back that don't depend on a ULP: LIVE, and its DISC. */
static void never_answers(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct villain *v;
	struct kmsg_msg *msg = request(test, 3, 0);

	set_param(test, "answer_ms", 300);
	v = villain_connected(test, s, 3, 0);
	msleep(1000);
	/* An established connection needs no answer. */
	KUNIT_EXPECT_FALSE(test, READ_ONCE(v->stopped));
	MSG_CLOSE(s->server.ep);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(v->stopped)));
	KUNIT_EXPECT_EQ(test, v->err, -ECONNABORTED);
	v = villain_link(test, s);
	/* The greatest number is found as any other. */
	msg->id = U32_MAX;
	KUNIT_EXPECT_EQ(test, accept_request(test, s, v, msg), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(v->stopped)));
	MSG_FAILS(s->server.eq, ESHUTDOWN, s->server.ep);
	set_param(test, "answer_ms", 30000);
}

/* It never ends its side: the endpoint can be closed nevertheless, and its port, too. */
static void never_ends(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct villain *v = villain_connected(test, s, 3, 0);

	MSG_CLOSE(s->server.ep);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(v->got[KMSG_DISC]) == 1));
	msg_connect(test, s);
	MSG_CLOSE(s->server.ep);
	MSG_CLOSE(s->pep);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(v->stopped)));
}

/* It names the lane of another connection as its own, but can't know a tag. */
static void foreign_lane(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fid_ep *server, *client;
	u8 name[FI_ADDR_MAX];
	struct fi_info *hints, *info;
	struct fi_av_attr attr = {};
	struct fid_av *av = NULL;
	struct fid_ep *ep = NULL;
	size_t len = sizeof(name);
	fi_addr_t addr;
	u32 id;

	msg_connect(test, s);
	server = s->server.ep;
	client = s->client.ep;
	KUNIT_EXPECT_EQ(test, fi_recv(server, s->server.buf, 8, NULL, 0, CTX(1)), 0);
	/* An endpoint that sends tagged messages to all that there may be. */
	hints = fi_allocinfo_for("loop", NULL, "loop0");
	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->caps = FI_TAGGED;
	KUNIT_ASSERT_EQ(test, fi_getinfo(fi_version(), NULL, NULL, 0, hints, &info), 0);
	fi_freeinfo(hints);
	KUNIT_EXPECT_EQ(test, fi_endpoint(s->domain, info, &ep, NULL), 0);
	fi_freeinfo(info);
	KUNIT_EXPECT_EQ(test, fi_av_open(s->domain, &attr, &av, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &av->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &s->client.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	KUNIT_EXPECT_EQ(test, fi_enable(ep), 0);
	KUNIT_EXPECT_EQ(test, fi_getname(&ep->fid, name, &len), 0);
	memcpy(&id, name + 4, sizeof(id));
	while (id--) {
		memcpy(name + 4, &id, sizeof(id));
		KUNIT_EXPECT_EQ(test, fi_av_insert(av, name, 1, &addr, 0, NULL), 1);
		fi_tsend(ep, s->client.buf, 8, NULL, addr, 0, NULL);
		fi_tsend(ep, s->client.buf, 8, NULL, addr, 1, NULL);
		fi_send(ep, s->client.buf, 8, NULL, addr, NULL);
	}
	msleep(50);
	/* None of them has taken the connection's receive. */
	MSG_SEND(client, s->client.buf, 8, 2);
	MSG_DONE(&s->server, 1, 0);
	KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&av->fid), 0);
}

/* A passive side. */
static struct villain *villain_listen(struct kunit *test, struct sockaddr_storage *addr)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(4321),
	};
	struct villain *v = villain_new(test);

	memset(addr, 0, sizeof(*addr));
	memcpy(addr, &at, sizeof(at));
	KUNIT_ASSERT_EQ(test, kcm_listen(&villain_config, addr, v, &v->listener), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, villain_disconnect, v), 0);
	return v;
}

/* Request a connection. */
static void ask(struct kunit *test, struct msg_scene *s, struct villain *v,
		const struct sockaddr_storage *addr)
{
	v->got[KMSG_CONN] = 0;
	s->client.ep = msg_ep(test, s, s->info, &s->client);
	KUNIT_EXPECT_EQ(test, fi_connect(s->client.ep, addr, NULL, 0), 0);
	KUNIT_ASSERT_TRUE(test, kofi_soon(READ_ONCE(v->got[KMSG_CONN])));
}

/* End the link, and wait for the request to come again over another one. */
static void ask_again(struct kunit *test, struct villain *v)
{
	v->got[KMSG_CONN] = 0;
	kcm_bye(v->s, KCM_BYE_STOPPED, true, NULL, 0);
	KUNIT_ASSERT_TRUE(test, kofi_soon(READ_ONCE(v->got[KMSG_CONN])));
}

/* A request that isn't answered before its link ends is repeated once, if the link was old. */
static void asks_again(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct sockaddr_storage addr;
	struct villain *v = villain_listen(test, &addr);
	struct fid_ep *first;
	struct kmsg_msg *msg;

	ask(test, s, v, &addr);
	msg = request(test, v->last.id, 0);
	msg->type = KMSG_ACCEPT;
	say(test, v, msg);
	MSG_EXPECT(s->client.eq, FI_CONNECTED, s->client.ep);
	first = s->client.ep;
	ask(test, s, v, &addr);
	ask_again(test, v);
	MSG_EXPECT(s->client.eq, FI_SHUTDOWN, first);
	MSG_CLOSE(first);
	msg->id = v->last.id;
	say(test, v, msg);
	MSG_EXPECT(s->client.eq, FI_CONNECTED, s->client.ep);
	first = s->client.ep;
	ask(test, s, v, &addr);
	ask_again(test, v);
	MSG_EXPECT(s->client.eq, FI_SHUTDOWN, first);
	MSG_CLOSE(first);
	kcm_bye(v->s, KCM_BYE_STOPPED, true, NULL, 0);
	MSG_FAILS(s->client.eq, ECONNABORTED, s->client.ep);
	msg_quiet(test, s->client.eq);
}

/* It answers fi_connect() with nonsense. */
static void bad_accept(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct sockaddr_storage addr;
	static const enum kmsg_type types[] = {
		KMSG_ACCEPT, KMSG_ACCEPT, KMSG_ACCEPT, KMSG_CONN, KMSG_CREDIT, KMSG_DISC,
	};
	struct villain *v = villain_listen(test, &addr);
	struct kmsg_msg *msg;
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		ask(test, s, v, &addr);
		msg = request(test, v->last.id, 0);
		msg->type = types[i];
		msg->id += i == 0;
		msg->side.format = i == 1;
		msg->side.addrlen = i == 2 ? 7 : 8;
		say(test, v, msg);
		/* One that names another lane ends alone, and the others end the link. */
		MSG_FAILS(s->client.eq, i == 1 || i == 2 ? EPROTO : ESHUTDOWN, s->client.ep);
		msg_quiet(test, s->client.eq);
		MSG_CLOSE(s->client.ep);
	}
	/* Then as it should, and with a bad note. */
	v->got[KMSG_LIVE] = 0;
	ask(test, s, v, &addr);
	msg = request(test, v->last.id, 0);
	msg->type = KMSG_ACCEPT;
	say(test, v, msg);
	MSG_EXPECT(s->client.eq, FI_CONNECTED, s->client.ep);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(v->got[KMSG_LIVE])));
	KUNIT_EXPECT_EQ(test, kcm_note(v->s, "x", 1), 0);
	MSG_EXPECT(s->client.eq, FI_SHUTDOWN, s->client.ep);
}

#define FLOOD	400

/* Each of many requests is answered, and no more wait than the backlog says. */
static void flood(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct villain *v = villain_link(test, s);
	unsigned int waiting = 0;
	struct msg_event event;
	struct kmsg_msg *msg;
	int i, ret, most = 8;
	u8 buf[KMSG_WIRE_MAX];
	size_t len;

	KUNIT_EXPECT_EQ(test, fi_control(&s->pep->fid, FI_BACKLOG, &most), 0);
	for (i = 0; i < FLOOD; i++) {
		msg = request(test, i, 0);
		len = kmsg_msg_build(msg, buf);
		KUNIT_EXPECT_TRUE(test, kofi_soon((ret = kcm_note(v->s, buf, len)) != -ENOBUFS));
		KUNIT_EXPECT_EQ(test, ret, 0);
	}
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(v->got[KMSG_REJECT]) == FLOOD - most));
	KUNIT_EXPECT_EQ(test, v->busy, FLOOD - most);
	for (i = 0; i < most; i++) {
		event = msg_next(test, s->eq);
		waiting += event.what == FI_CONNREQ;
		fi_freeinfo(event.info);
	}
	KUNIT_EXPECT_EQ(test, waiting, most);
	msg_quiet(test, s->eq);
	MSG_CLOSE(s->pep);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(v->stopped)));
	KUNIT_EXPECT_EQ(test, v->got[KMSG_REJECT], FLOOD);
}

#define REPEATS	500

/* A number may be used again as soon as its connection was refused. */
static void number_again(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct villain *v = villain_link(test, s);
	struct msg_event event;
	int i;

	v->again = *request(test, 3, 0);
	v->repeats = true;
	say(test, v, &v->again);
	for (i = 0; i < REPEATS; i++) {
		event = msg_next(test, s->eq);
		KUNIT_ASSERT_EQ(test, event.what, FI_CONNREQ);
		KUNIT_EXPECT_EQ(test, fi_reject(s->pep, event.info->handle, NULL, 0), 0);
		fi_freeinfo(event.info);
	}
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(v->got[KMSG_REJECT]) == REPEATS));
	KUNIT_EXPECT_FALSE(test, READ_ONCE(v->stopped));
}

/* Links without connections have a limit, and those that there are go on. */
static void many_links(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct villain *v, *last;

	set_param(test, "max_links", 1);
	v = villain_link(test, s);
	last = villain_new(test);
	villain_connect(test, s, last);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(last->failed)));
	KUNIT_EXPECT_EQ(test, last->err, -EBUSY);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(v->stopped));
	kunit_release_action(test, villain_disconnect, last);
	kunit_release_action(test, villain_disconnect, v);
	set_param(test, "max_links", 4096);
	msg_connect(test, s);
}

static struct kunit_case msg_hostile_cases[] = {
	KUNIT_CASE(bad_hello),
	KUNIT_CASE(bad_lane),
	KUNIT_CASE(bad_messages),
	KUNIT_CASE(others),
	KUNIT_CASE(false_credits),
	KUNIT_CASE(never_ends),
	KUNIT_CASE(never_answers),
	KUNIT_CASE(asks_again),
	KUNIT_CASE(foreign_lane),
	KUNIT_CASE(bad_accept),
	KUNIT_CASE(flood),
	KUNIT_CASE(number_again),
	KUNIT_CASE(many_links),
	{}
};

static struct kunit_suite msg_hostile_suite = {
	.name = "kofi_msg_hostile",
	.test_cases = msg_hostile_cases,
};

kunit_test_suite(msg_hostile_suite);

MODULE_DESCRIPTION("KUnit tests of connections with a hostile peer");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_CM);
