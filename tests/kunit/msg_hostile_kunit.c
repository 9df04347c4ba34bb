// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A peer that uses kofi_cm's sessions, but not as kofi_msg does. It plays either side, and the
 * other one must refuse it, or end the connection, and go on.
 */
#include <linux/delay.h>
#include <net/net_namespace.h>
#include <kofi/session.h>
#include "../../cm/msg/msg.h"
#include "msg_test.h"

#define CTX(n)	((void *)(unsigned long)(n))

/**
 * struct villain - the peer
 * @wire: private data of HELLO or ACCEPT
 * @len: bytes of @wire
 * @addrs: addresses of HELLO or ACCEPT
 * @addr: one address
 * @s: its session
 * @listener: its listener, or NULL
 * @accepted: the other side has accepted
 * @live: the session is live
 * @stopped: the session has ended
 * @err: how it has ended, or how an attempt has failed
 * @failed: an attempt has failed
 */
struct villain {
	u8			wire[sizeof(struct kmsg_wire_hello) + 300];
	size_t			len;
	struct kcm_addrs	addrs;
	u8			addr[64];
	struct kcm_session	*s;
	struct kcm_listener	*listener;
	bool			accepted;
	bool			live;
	bool			stopped;
	bool			failed;
	int			err;
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
	return kcm_accept(s, &v->addrs, v->wire, v->len);
}

static int villain_hello(struct kcm_session *s, struct kcm_addrs *addrs, const void **priv,
			 size_t *len)
{
	struct villain *v = kcm_context(s);

	if (v->failed || v->stopped)
		return -ECANCELED;
	*addrs = v->addrs;
	*priv = v->wire;
	*len = v->len;
	return 0;
}

static int villain_accepted(struct kcm_session *s, const struct kcm_peer *peer)
{
	struct villain *v = kcm_context(s);

	WRITE_ONCE(v->accepted, true);
	return 0;
}

static void villain_live(struct kcm_session *s)
{
	WRITE_ONCE(((struct villain *)kcm_context(s))->live, true);
}

static void villain_note(struct kcm_session *s, const void *data, size_t len)
{
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

/* The messages of an honest peer: the address is that of an endpoint of fabric loop. */
static struct villain *villain_new(struct kunit *test, u64 posted)
{
	struct villain *v = kunit_kzalloc(test, sizeof(*v), GFP_KERNEL);
	struct kmsg_wire_hello *wire;

	KUNIT_ASSERT_NOT_NULL(test, v);
	wire = (void *)v->wire;
	wire->magic = cpu_to_le32(KMSG_MAGIC);
	wire->protocol = cpu_to_le32(1);
	wire->tag = cpu_to_le64(0x1234567890);
	wire->posted = cpu_to_le64(posted);
	v->len = sizeof(*wire);
	/* "loop", and a number that no endpoint has. */
	memcpy(v->addr, "loop\xff\xff\xff\x7f", 8);
	v->addrs = (struct kcm_addrs){ .len = 8, .count = 1, .addr = v->addr };
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
	struct kmsg_wire_hello *wire;
	struct villain *v;

	v = villain_new(test, 0);
	v->len = 0;
	expect_refused(test, s, v);
	v = villain_new(test, 0);
	v->len--;
	expect_refused(test, s, v);
	v = villain_new(test, 0);
	v->len += MSG_DATA + 1;
	expect_refused(test, s, v);
	v = villain_new(test, 0);
	wire = (void *)v->wire;
	wire->magic = 0;
	expect_refused(test, s, v);
	v = villain_new(test, 0);
	v->addrs.count = 0;
	v->addrs.len = 0;
	expect_refused(test, s, v);
	v = villain_new(test, 0);
	v->addrs.count = 2;
	expect_refused(test, s, v);
	/* The server still serves. */
	msg_connect(test, s);
}

/* Accept a villain. It has passed what is checked before. */
static int accept_villain(struct kunit *test, struct msg_scene *s, struct villain *v)
{
	struct msg_event event;

	villain_connect(test, s, v);
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
	struct kmsg_wire_hello *wire;
	struct villain *v;

	v = villain_new(test, 0);
	wire = (void *)v->wire;
	wire->protocol = cpu_to_le32(0x12345);
	KUNIT_EXPECT_EQ(test, accept_villain(test, s, v), -EPROTO);
	MSG_CLOSE(s->server.ep);
	v = villain_new(test, 0);
	v->addrs.format = 7;
	KUNIT_EXPECT_EQ(test, accept_villain(test, s, v), -EPROTO);
	MSG_CLOSE(s->server.ep);
	v = villain_new(test, 0);
	v->addrs.len = 7;
	KUNIT_EXPECT_EQ(test, accept_villain(test, s, v), -EPROTO);
	MSG_CLOSE(s->server.ep);
	v = villain_new(test, 0);
	v->addr[0] = 0;
	KUNIT_EXPECT_EQ(test, accept_villain(test, s, v), -EINVAL);
	MSG_CLOSE(s->server.ep);
	msg_connect(test, s);
}

static void expect_ended(struct kunit *test, struct msg_scene *s, struct villain *v)
{
	MSG_EXPECT(s->server.eq, FI_SHUTDOWN, s->server.ep);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(v->stopped)));
	KUNIT_EXPECT_EQ(test, v->err, -ECONNABORTED);
	MSG_CLOSE(s->server.ep);
	kunit_release_action(test, villain_disconnect, v);
}

static struct villain *connected_villain(struct kunit *test, struct msg_scene *s, u64 posted)
{
	struct villain *v = villain_new(test, posted);

	KUNIT_ASSERT_EQ(test, accept_villain(test, s, v), 0);
	MSG_EXPECT(s->server.eq, FI_CONNECTED, s->server.ep);
	KUNIT_ASSERT_TRUE(test, kofi_soon(READ_ONCE(v->live)));
	return v;
}

/* Notes of a wrong length, and credits that become fewer. */
static void bad_notes(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct kmsg_wire_credit credit = { .posted = cpu_to_le64(4) };
	struct villain *v;

	v = connected_villain(test, s, 0);
	KUNIT_EXPECT_EQ(test, kcm_note(v->s, &credit, sizeof(credit) - 1), 0);
	expect_ended(test, s, v);
	v = connected_villain(test, s, 0);
	KUNIT_EXPECT_EQ(test, kcm_note(v->s, NULL, 0), 0);
	expect_ended(test, s, v);
	v = connected_villain(test, s, 5);
	KUNIT_EXPECT_EQ(test, kcm_note(v->s, &credit, sizeof(credit)), 0);
	expect_ended(test, s, v);
	v = connected_villain(test, s, 0);
	KUNIT_EXPECT_EQ(test, kcm_note(v->s, &credit, sizeof(credit)), 0);
	/* The same number again, many, and more than there can be. */
	KUNIT_EXPECT_EQ(test, kcm_note(v->s, &credit, sizeof(credit)), 0);
	credit.posted = cpu_to_le64(BIT(29));
	KUNIT_EXPECT_EQ(test, kcm_note(v->s, &credit, sizeof(credit)), 0);
	msleep(50);
	msg_quiet(test, s->server.eq);
	credit.posted = cpu_to_le64(BIT(30) + 1);
	KUNIT_EXPECT_EQ(test, kcm_note(v->s, &credit, sizeof(credit)), 0);
	expect_ended(test, s, v);
	v = connected_villain(test, s, 0);
	credit.posted = cpu_to_le64(U64_MAX);
	KUNIT_EXPECT_EQ(test, kcm_note(v->s, &credit, sizeof(credit)), 0);
	expect_ended(test, s, v);
	msg_connect(test, s);
}

/* It promises receives that it doesn't have: sends fail, and nothing else happens. */
static void false_credits(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct villain *v = connected_villain(test, s, 1000);

	KUNIT_EXPECT_EQ(test, fi_send(s->server.ep, s->server.buf, 8, NULL, 0, NULL),
			-EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, fi_shutdown(s->server.ep, 0), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(v->stopped)));
	kunit_release_action(test, villain_disconnect, v);
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

/* It answers fi_connect() with nonsense. */
static void bad_accept(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct villain *v = villain_new(test, 0);
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(4321),
	};
	struct sockaddr_storage addr = {};
	int i;

	memcpy(&addr, &at, sizeof(at));
	KUNIT_ASSERT_EQ(test, kcm_listen(&villain_config, &addr, v, &v->listener), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, villain_disconnect, v), 0);
	for (i = 0; i < 4; i++) {
		v->len = i == 0 ? 0 : sizeof(struct kmsg_wire_hello) + (i == 1 ? 257 : 0);
		v->addrs.count = i == 2 ? 0 : 1;
		v->addrs.len = i == 2 ? 0 : 8;
		v->addrs.format = i == 3;
		s->client.ep = msg_ep(test, s, s->info, &s->client);
		KUNIT_EXPECT_EQ(test, fi_connect(s->client.ep, &addr, NULL, 0), 0);
		MSG_FAILS(s->client.eq, EPROTO, s->client.ep);
		msg_quiet(test, s->client.eq);
		MSG_CLOSE(s->client.ep);
	}
	v->len = sizeof(struct kmsg_wire_hello);
	v->addrs.format = 0;
	/* Then as it should, and with a bad note. */
	s->client.ep = msg_ep(test, s, s->info, &s->client);
	v->live = false;
	KUNIT_EXPECT_EQ(test, fi_connect(s->client.ep, &addr, NULL, 0), 0);
	MSG_EXPECT(s->client.eq, FI_CONNECTED, s->client.ep);
	KUNIT_ASSERT_TRUE(test, kofi_soon(READ_ONCE(v->live)));
	KUNIT_EXPECT_EQ(test, kcm_note(v->s, "x", 1), 0);
	MSG_EXPECT(s->client.eq, FI_SHUTDOWN, s->client.ep);
}

#define FLOOD	40

/* Each of many requests is answered, and no more wait than the backlog says. */
static void flood(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct villain *v[FLOOD];
	unsigned int waiting = 0, refused = 0;
	struct msg_event event;
	int i, most = 8;

	KUNIT_EXPECT_EQ(test, fi_control(&s->pep->fid, FI_BACKLOG, &most), 0);
	for (i = 0; i < FLOOD; i++) {
		v[i] = villain_new(test, 0);
		villain_connect(test, s, v[i]);
	}
	KUNIT_EXPECT_TRUE(test, kofi_soon(({
		for (i = 0, refused = 0; i < FLOOD; i++)
			refused += READ_ONCE(v[i]->failed);
		refused == FLOOD - most;
	})));
	for (i = 0; i < FLOOD; i++)
		if (v[i]->failed)
			KUNIT_EXPECT_EQ(test, v[i]->err, -EBUSY);
	for (i = 0; i < most; i++) {
		event = msg_next(test, s->eq);
		waiting += event.what == FI_CONNREQ;
		fi_freeinfo(event.info);
	}
	KUNIT_EXPECT_EQ(test, waiting, most);
	msg_quiet(test, s->eq);
	MSG_CLOSE(s->pep);
	KUNIT_EXPECT_TRUE(test, kofi_soon(({
		for (i = 0, refused = 0; i < FLOOD; i++)
			refused += READ_ONCE(v[i]->failed);
		refused == FLOOD;
	})));
}

static struct kunit_case msg_hostile_cases[] = {
	KUNIT_CASE(bad_hello),
	KUNIT_CASE(bad_lane),
	KUNIT_CASE(bad_notes),
	KUNIT_CASE(false_credits),
	KUNIT_CASE(foreign_lane),
	KUNIT_CASE(bad_accept),
	KUNIT_CASE(flood),
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
