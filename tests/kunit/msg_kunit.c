// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections, as fi_cm(3) describes them: states, events, their order, errors, private data; and
 * the messages of connections.
 */
#include <linux/kmod.h>
#include <linux/sizes.h>
#include "../../cm/msg/msg.h"
#include "../../kofi/kofi.h"
#include "msg_test.h"

#define CTX(n)	((void *)(unsigned long)(n))

/* --- entries --- */

static void entry(struct kunit *test)
{
	struct fi_info *info = msg_find(test, "loop0", "127.0.0.1");
	const struct sockaddr_in *addr = info->src_addr;

	KUNIT_EXPECT_NULL(test, info->next);
	KUNIT_EXPECT_EQ(test, info->ep_attr->type, FI_EP_MSG);
	KUNIT_EXPECT_EQ(test, info->ep_attr->protocol, FI_PROTO_KOFI_MSG);
	KUNIT_EXPECT_EQ(test, info->caps & (FI_MSG | FI_SEND | FI_RECV | FI_TAGGED | FI_SOURCE |
					    FI_DIRECTED_RECV | FI_MULTI_RECV | FI_LOCAL_COMM |
					    FI_REMOTE_COMM),
			FI_MSG | FI_SEND | FI_RECV | FI_LOCAL_COMM);
	KUNIT_EXPECT_EQ(test, info->tx_attr->caps & (FI_MSG | FI_SEND | FI_TAGGED | FI_RECV),
			FI_MSG | FI_SEND);
	KUNIT_EXPECT_EQ(test, info->rx_attr->caps & (FI_MSG | FI_SEND | FI_TAGGED | FI_RECV),
			FI_MSG | FI_RECV);
	KUNIT_EXPECT_EQ(test, info->tx_attr->msg_order & FI_ORDER_SAS, FI_ORDER_SAS);
	KUNIT_EXPECT_EQ(test, info->ep_attr->max_msg_size, SZ_1M);
	KUNIT_EXPECT_EQ(test, info->addr_format, FI_SOCKADDR_IN);
	KUNIT_EXPECT_EQ(test, info->src_addrlen, sizeof(*addr));
	KUNIT_EXPECT_EQ(test, addr->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	KUNIT_EXPECT_NULL(test, info->dest_addr);
	KUNIT_EXPECT_NULL(test, info->handle);
	fi_freeinfo(info);
}

static void addresses(struct kunit *test)
{
	struct fi_info *hints = msg_hints(test, "loop0"), *info;
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_port = htons(7) };
	const struct sockaddr_in6 *six;
	const struct sockaddr_in *four;
	const u32 version = fi_version();

	KUNIT_ASSERT_EQ(test, fi_getinfo(version, "10.1.2.3", "4420", 0, hints, &info), 0);
	four = info->dest_addr;
	KUNIT_EXPECT_EQ(test, info->dest_addrlen, sizeof(*four));
	KUNIT_EXPECT_EQ(test, four->sin_addr.s_addr, htonl(0x0a010203));
	KUNIT_EXPECT_EQ(test, four->sin_port, htons(4420));
	KUNIT_EXPECT_NULL(test, info->src_addr);
	fi_freeinfo(info);

	KUNIT_ASSERT_EQ(test, fi_getinfo(version, "fd00::1", "4420", FI_NUMERICHOST, hints, &info),
			0);
	six = info->dest_addr;
	KUNIT_EXPECT_EQ(test, info->addr_format, FI_SOCKADDR_IN6);
	KUNIT_EXPECT_EQ(test, info->dest_addrlen, sizeof(*six));
	KUNIT_EXPECT_EQ(test, six->sin6_port, htons(4420));
	fi_freeinfo(info);

	/* A service alone is this machine's. */
	KUNIT_ASSERT_EQ(test, fi_getinfo(version, NULL, "4420", FI_SOURCE, hints, &info), 0);
	four = info->src_addr;
	KUNIT_EXPECT_EQ(test, four->sin_addr.s_addr, htonl(INADDR_ANY));
	KUNIT_EXPECT_EQ(test, four->sin_port, htons(4420));
	fi_freeinfo(info);

	/* Those of the hints, if the arguments have none. */
	hints->addr_format = FI_SOCKADDR_IN;
	hints->src_addr = kmemdup(&from, sizeof(from), GFP_KERNEL);
	hints->src_addrlen = sizeof(from);
	KUNIT_ASSERT_EQ(test, fi_getinfo(version, "10.1.2.3", "4420", 0, hints, &info), 0);
	four = info->src_addr;
	KUNIT_EXPECT_EQ(test, four->sin_port, htons(7));
	four = info->dest_addr;
	KUNIT_EXPECT_EQ(test, four->sin_port, htons(4420));
	fi_freeinfo(info);
	/* Both are of one family. */
	KUNIT_EXPECT_EQ(test, fi_getinfo(version, "fd00::1", "4420", 0, hints, &info), -EINVAL);
	hints->src_addrlen = sizeof(from) - 1;
	KUNIT_EXPECT_EQ(test, fi_getinfo(version, NULL, NULL, 0, hints, &info), -EINVAL);
	fi_freeinfo(hints);
}

static void addresses_refused(struct kunit *test)
{
	struct fi_info *hints = msg_hints(test, "loop0"), *info;
	const u32 version = fi_version();

	KUNIT_EXPECT_EQ(test, fi_getinfo(version, "server", "1", 0, hints, &info), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_getinfo(version, "10.0.0.1", "http", 0, hints, &info), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_getinfo(version, "10.0.0.1", "65536", 0, hints, &info), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_getinfo(version, "10.0.0.256", NULL, 0, hints, &info), -EINVAL);
	hints->caps = FI_TAGGED;
	KUNIT_EXPECT_EQ(test, fi_getinfo(version, NULL, NULL, 0, hints, &info), -ENODATA);
	hints->caps = FI_MSG | FI_SOURCE;
	KUNIT_EXPECT_EQ(test, fi_getinfo(version, NULL, NULL, 0, hints, &info), -ENODATA);
	hints->caps = FI_MSG;
	hints->addr_format = FI_ADDR_EFA;
	KUNIT_EXPECT_EQ(test, fi_getinfo(version, NULL, NULL, 0, hints, &info), -ENODATA);
	fi_freeinfo(hints);
}

/* --- the connection --- */

static void expect_names(struct kunit *test, struct msg_scene *s, size_t len)
{
	struct sockaddr_storage a = {}, b = {};
	size_t n = sizeof(a);

	KUNIT_EXPECT_EQ(test, fi_getpeer(s->client.ep, &a, &n), 0);
	KUNIT_EXPECT_EQ(test, n, len);
	KUNIT_EXPECT_EQ(test, memcmp(&a, &s->addr, len), 0);
	n = sizeof(b);
	KUNIT_EXPECT_EQ(test, fi_getname(&s->server.ep->fid, &b, &n), 0);
	KUNIT_EXPECT_EQ(test, memcmp(&b, &s->addr, len), 0);
	n = sizeof(a);
	KUNIT_EXPECT_EQ(test, fi_getpeer(s->server.ep, &a, &n), 0);
	n = sizeof(b);
	KUNIT_EXPECT_EQ(test, fi_getname(&s->client.ep->fid, &b, &n), 0);
	KUNIT_EXPECT_EQ(test, memcmp(&a, &b, len), 0);
	n = 1;
	KUNIT_EXPECT_EQ(test, fi_getpeer(s->client.ep, &a, &n), -FI_ETOOSMALL);
	KUNIT_EXPECT_EQ(test, n, len);
}

static void talk(struct kunit *test, struct msg_scene *s)
{
	KUNIT_ASSERT_EQ(test, fi_recv(s->server.ep, s->server.buf, 64, NULL, 0, CTX(1)), 0);
	KUNIT_ASSERT_EQ(test, fi_recv(s->client.ep, s->client.buf, 64, NULL, 0, CTX(2)), 0);
	strscpy(s->client.buf + 64, "ping", 5);
	strscpy(s->server.buf + 64, "pong", 5);
	MSG_SEND(s->client.ep, s->client.buf + 64, 5, 3);
	MSG_DONE(&s->client, 3, 0);
	MSG_DONE(&s->server, 1, 0);
	MSG_SEND(s->server.ep, s->server.buf + 64, 5, 4);
	MSG_DONE(&s->server, 4, 0);
	MSG_DONE(&s->client, 2, 0);
	KUNIT_EXPECT_STREQ(test, (char *)s->server.buf, "ping");
	KUNIT_EXPECT_STREQ(test, (char *)s->client.buf, "pong");
}

static void connects(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct sockaddr_storage name;
	struct fi_info *info;
	size_t len = sizeof(name);

	info = msg_ask(test, s);
	KUNIT_EXPECT_EQ(test, fi_getpeer(s->client.ep, &name, &len), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, info->ep_attr->type, FI_EP_MSG);
	KUNIT_EXPECT_EQ(test, info->dest_addrlen, sizeof(struct sockaddr_in));
	KUNIT_EXPECT_EQ(test, info->src_addrlen, sizeof(struct sockaddr_in));
	KUNIT_EXPECT_EQ(test, memcmp(info->src_addr, &s->addr, info->src_addrlen), 0);
	KUNIT_EXPECT_EQ(test, info->handle->fclass, FI_CLASS_CONNREQ);
	s->server.ep = msg_ep(test, s, info, &s->server);
	fi_freeinfo(info);
	/* Nothing happens before the ULP's answer. */
	msg_quiet(test, s->client.eq);
	KUNIT_ASSERT_EQ(test, fi_accept(s->server.ep, "welcome", 7), 0);
	KUNIT_EXPECT_EQ(test, MSG_EXPECT(s->client.eq, FI_CONNECTED, s->client.ep), 7);
	KUNIT_EXPECT_EQ(test, MSG_EXPECT(s->server.eq, FI_CONNECTED, s->server.ep), 0);
	expect_names(test, s, sizeof(struct sockaddr_in));
	talk(test, s);
	msg_quiet(test, s->eq);
	msg_quiet(test, s->client.eq);
	msg_quiet(test, s->server.eq);
}

static void connects_v6(struct kunit *test)
{
	struct msg_scene *s = msg_scene_at(test, "loop0", "::1");

	KUNIT_EXPECT_EQ(test, s->addr.ss_family, AF_INET6);
	msg_connect(test, s);
	expect_names(test, s, sizeof(struct sockaddr_in6));
	talk(test, s);
}

/* The connection goes out from the address that was set. */
static void source_address(struct kunit *test)
{
	struct sockaddr_in from = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1),
	};
	struct msg_scene *s = msg_scene(test);
	const struct sockaddr_in *seen;
	struct msg_event event;
	size_t len = sizeof(from);

	s->client.ep = msg_ep(test, s, s->info, &s->client);
	from.sin_family = AF_INET6;
	KUNIT_EXPECT_EQ(test, fi_setname(&s->client.ep->fid, &from, sizeof(from)), -EINVAL);
	from.sin_family = AF_INET;
	KUNIT_EXPECT_EQ(test, fi_setname(&s->client.ep->fid, &from, sizeof(from) - 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_setname(&s->client.ep->fid, &from, sizeof(from)), 0);
	KUNIT_EXPECT_EQ(test, fi_getname(&s->client.ep->fid, &from, &len), 0);
	KUNIT_ASSERT_EQ(test, fi_connect(s->client.ep, &s->addr, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_setname(&s->client.ep->fid, &from, sizeof(from)),
			-FI_EOPBADSTATE);
	event = msg_next(test, s->eq);
	KUNIT_ASSERT_EQ(test, event.what, FI_CONNREQ);
	KUNIT_EXPECT_EQ(test, event.len, 0);
	seen = event.info->dest_addr;
	KUNIT_EXPECT_EQ(test, seen->sin_addr.s_addr, from.sin_addr.s_addr);
	KUNIT_EXPECT_EQ(test, fi_setname(&s->pep->fid, &from, sizeof(from)), -FI_EOPBADSTATE);
	fi_freeinfo(event.info);
}

static void rejects(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fi_info *info = msg_ask(test, s);
	struct msg_event event;

	KUNIT_EXPECT_EQ(test, fi_reject(s->pep, &s->eq->fid, NULL, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_reject(s->pep, info->handle, s->server.buf, MSG_DATA + 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_reject(s->pep, info->handle, "no", 2), 0);
	event = msg_next(test, s->client.eq);
	KUNIT_EXPECT_EQ(test, event.err, ECONNREFUSED);
	KUNIT_EXPECT_PTR_EQ(test, event.fid, &s->client.ep->fid);
	KUNIT_EXPECT_EQ(test, event.len, 2);
	KUNIT_EXPECT_EQ(test, memcmp(event.data, "no", 2), 0);
	/* The request is gone. */
	KUNIT_EXPECT_EQ(test, fi_reject(s->pep, info->handle, NULL, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_endpoint(s->domain, info, &s->server.ep, NULL), -EINVAL);
	fi_freeinfo(info);
	/* "Only once in its lifetime". */
	KUNIT_EXPECT_EQ(test, fi_connect(s->client.ep, &s->addr, NULL, 0), -EISCONN);
	KUNIT_EXPECT_EQ(test, fi_send(s->client.ep, s->client.buf, 1, NULL, 0, NULL), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, fi_shutdown(s->client.ep, 0), -ENOTCONN);
	msg_quiet(test, s->client.eq);
}

static void nobody_listens(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);

	MSG_CLOSE(s->pep);
	s->client.ep = msg_ep(test, s, s->info, &s->client);
	KUNIT_EXPECT_EQ(test, fi_connect(s->client.ep, &s->addr, NULL, 0), 0);
	MSG_FAILS(s->client.eq, ECONNREFUSED, s->client.ep);
	msg_quiet(test, s->client.eq);
}

static void states(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fid_ep *ep;

	msg_take(test, s);
	ep = s->client.ep;
	KUNIT_EXPECT_EQ(test, fi_connect(ep, &s->addr, NULL, 0), -EISCONN);
	KUNIT_EXPECT_EQ(test, fi_accept(ep, NULL, 0), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_shutdown(ep, 0), -ENOTCONN);
	/* No sends before FI_CONNECTED, but receives. */
	KUNIT_EXPECT_EQ(test, fi_send(ep, s->client.buf, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_recv(ep, s->client.buf, 64, NULL, 0, CTX(1)), 0);
	ep = s->server.ep;
	KUNIT_EXPECT_EQ(test, fi_recv(ep, s->server.buf, 64, NULL, 0, CTX(2)), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_enable(ep), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(ep, s->server.buf, 64, NULL, 0, CTX(2)), 0);
	KUNIT_EXPECT_EQ(test, fi_send(ep, s->server.buf, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_connect(ep, &s->addr, NULL, 0), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_shutdown(ep, 0), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, fi_accept(ep, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_accept(ep, NULL, 0), -FI_EOPBADSTATE);
	MSG_EXPECT(s->client.eq, FI_CONNECTED, s->client.ep);
	MSG_EXPECT(s->server.eq, FI_CONNECTED, s->server.ep);
	KUNIT_EXPECT_EQ(test, fi_accept(ep, NULL, 0), -FI_EOPBADSTATE);
	/* The receives that were posted early take the first messages. */
	MSG_SEND(s->client.ep, s->client.buf + 64, 8, 3);
	MSG_DONE(&s->client, 3, 0);
	MSG_DONE(&s->server, 2, 0);
	MSG_SEND(s->server.ep, s->server.buf + 64, 8, 4);
	MSG_DONE(&s->server, 4, 0);
	MSG_DONE(&s->client, 1, 0);
}

/* A request whose client has gone can't be accepted, and no event says so. */
static void client_gone(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fi_info *info = msg_ask(test, s);

	MSG_CLOSE(s->client.ep);
	s->server.ep = msg_ep(test, s, info, &s->server);
	fi_freeinfo(info);
	/* The end of the session takes a moment to get here. */
	msleep(100);
	KUNIT_EXPECT_EQ(test, fi_accept(s->server.ep, NULL, 0), -ECONNABORTED);
	msg_quiet(test, s->server.eq);
	msg_quiet(test, s->eq);
}

static void data_size(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	size_t size = 0, len = sizeof(size);
	struct msg_event event;

	s->client.ep = msg_ep(test, s, s->info, &s->client);
	KUNIT_EXPECT_EQ(test, fi_getopt(&s->client.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE,
					&size, &len), 0);
	KUNIT_EXPECT_EQ(test, size, MSG_DATA);
	KUNIT_EXPECT_EQ(test, fi_getopt(&s->pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE,
					&size, &len), 0);
	KUNIT_EXPECT_EQ(test, size, MSG_DATA);
	memset(s->client.buf, 'x', MSG_BUF);
	KUNIT_EXPECT_EQ(test, fi_connect(s->client.ep, &s->addr, s->client.buf, MSG_DATA + 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_connect(s->client.ep, &s->addr, s->client.buf, MSG_DATA), 0);
	event = msg_next(test, s->eq);
	KUNIT_ASSERT_EQ(test, event.what, FI_CONNREQ);
	KUNIT_EXPECT_EQ(test, event.len, MSG_DATA);
	KUNIT_EXPECT_EQ(test, memcmp(event.data, s->client.buf, MSG_DATA), 0);
	s->server.ep = msg_ep(test, s, event.info, &s->server);
	fi_freeinfo(event.info);
	KUNIT_EXPECT_EQ(test, fi_accept(s->server.ep, s->client.buf, MSG_DATA + 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_accept(s->server.ep, s->client.buf, MSG_DATA), 0);
	KUNIT_EXPECT_EQ(test, MSG_EXPECT(s->client.eq, FI_CONNECTED, s->client.ep), MSG_DATA);
}

/* More requests than the backlog are refused, not lost. */
static void backlog(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	int one = 1, bad = 0, huge = 1 << 20;
	struct fi_info *info;
	struct fid_ep *ep;

	KUNIT_EXPECT_EQ(test, fi_control(&s->pep->fid, FI_BACKLOG, &bad), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_control(&s->pep->fid, FI_BACKLOG, &huge), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_control(&s->pep->fid, FI_BACKLOG, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_control(&s->pep->fid, FI_BACKLOG, &one), 0);
	KUNIT_EXPECT_EQ(test, fi_control(&s->pep->fid, FI_SETOPSFLAG, &one), -EOPNOTSUPP);
	info = msg_ask(test, s);
	ep = msg_ep(test, s, s->info, &s->client);
	KUNIT_EXPECT_EQ(test, fi_connect(ep, &s->addr, NULL, 0), 0);
	MSG_FAILS(s->client.eq, EBUSY, ep);
	MSG_CLOSE(ep);
	msg_quiet(test, s->eq);
	/* An answer makes room. */
	KUNIT_EXPECT_EQ(test, fi_reject(s->pep, info->handle, NULL, 0), 0);
	fi_freeinfo(info);
	MSG_FAILS(s->client.eq, ECONNREFUSED, s->client.ep);
	MSG_CLOSE(s->client.ep);
	msg_connect(test, s);
}

/* --- messages --- */

/* Completions say that the messages are untagged, and messages keep their order. */
static void messages(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct msg_comp comp;
	int i;

	msg_connect(test, s);
	for (i = 0; i < 32; i++)
		KUNIT_EXPECT_EQ(test, fi_recv(s->server.ep, s->server.buf + 8 * i, 8, NULL, 0,
					      CTX(100 + i)), 0);
	for (i = 0; i < 32; i++) {
		s->client.buf[8 * i] = i;
		if (i == 7) {
			KUNIT_EXPECT_EQ(test, fi_inject(s->client.ep, s->client.buf + 8 * i, 8, 0),
					0);
			continue;
		}
		MSG_SEND(s->client.ep, s->client.buf + 8 * i, 8, i + 1);
		MSG_DONE(&s->client, i + 1, 0);
	}
	for (i = 0; i < 32; i++) {
		KUNIT_ASSERT_TRUE(test, kofi_soon(msg_read(&s->server, &comp) > 0));
		KUNIT_EXPECT_PTR_EQ(test, comp.entry.op_context, CTX(100 + i));
		KUNIT_EXPECT_EQ(test, comp.entry.flags, FI_MSG | FI_RECV);
		KUNIT_EXPECT_EQ(test, comp.entry.tag, 0);
		KUNIT_EXPECT_EQ(test, comp.entry.len, 8);
		KUNIT_EXPECT_EQ(test, s->server.buf[8 * i], i);
	}
	KUNIT_EXPECT_EQ(test, fi_recv(s->server.ep, s->server.buf, 8, NULL, 0, CTX(1)), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(fi_senddata(s->client.ep, s->client.buf, 8, NULL, 77, 0,
						      CTX(2)) != -EAGAIN));
	KUNIT_ASSERT_TRUE(test, kofi_soon(msg_read(&s->client, &comp) > 0));
	KUNIT_EXPECT_EQ(test, comp.entry.flags, FI_MSG | FI_SEND | FI_REMOTE_CQ_DATA);
	KUNIT_ASSERT_TRUE(test, kofi_soon(msg_read(&s->server, &comp) > 0));
	KUNIT_EXPECT_EQ(test, comp.entry.flags, FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA);
	KUNIT_EXPECT_EQ(test, comp.entry.data, 77);
}

/* A message of another length than its receive, and calls that connections don't have. */
static void messages_refused(struct kunit *test)
{
	const struct fi_msg msg = {};
	struct msg_scene *s = msg_scene(test);

	msg_connect(test, s);
	KUNIT_EXPECT_EQ(test, fi_recv(s->server.ep, s->server.buf, 4, NULL, 0, CTX(1)), 0);
	MSG_SEND(s->client.ep, s->client.buf, 8, 2);
	MSG_DONE(&s->server, 1, FI_ETRUNC);
	MSG_DONE(&s->client, 2, 0);
	KUNIT_EXPECT_EQ(test, fi_recvmsg(s->server.ep, &msg, FI_MULTI_RECV), -FI_EBADFLAGS);
	KUNIT_EXPECT_EQ(test, fi_recvmsg(s->server.ep, &msg, FI_PEEK), -FI_EBADFLAGS);
	KUNIT_EXPECT_EQ(test, fi_tsend(s->client.ep, s->client.buf, 8, NULL, 0, 1, NULL),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_trecv(s->server.ep, s->server.buf, 8, NULL, 0, 1, 0, NULL),
			-EOPNOTSUPP);
	/* Too long, without a receive of the peer and with one. */
	KUNIT_EXPECT_EQ(test, fi_send(s->client.ep, s->client.buf, SZ_1M + 1, NULL, 0, NULL),
			-EMSGSIZE);
	KUNIT_EXPECT_EQ(test, fi_recv(s->server.ep, s->server.buf, 8, NULL, 0, CTX(3)), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(fi_inject(s->client.ep, s->client.buf, 8, 0) !=
					  -EAGAIN));
	MSG_DONE(&s->server, 3, 0);
	KUNIT_EXPECT_EQ(test, fi_recv(s->server.ep, s->server.buf, 8, NULL, 0, CTX(3)), 0);
	KUNIT_EXPECT_EQ(test, fi_send(s->client.ep, s->client.buf, SZ_1M + 1, NULL, 0, NULL),
			-EMSGSIZE);
	/* The refused send has taken no credit. */
	MSG_SEND(s->client.ep, s->client.buf, 8, 4);
	MSG_DONE(&s->client, 4, 0);
	MSG_DONE(&s->server, 3, 0);
}

/* A send without a receive at the peer is refused, and the ULP is told when it may succeed. */
static void credits(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fi_cq_tagged_entry comp;
	unsigned long start;
	int i;

	msg_connect(test, s);
	KUNIT_EXPECT_EQ(test, fi_send(s->client.ep, s->client.buf, 8, NULL, 0, CTX(1)), -EAGAIN);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, fi_recv(s->server.ep, s->server.buf, 8, NULL, 0, CTX(9)), 0);
	/* The call returns early, because the queue is notified. */
	start = jiffies;
	KUNIT_EXPECT_EQ(test, fi_cq_sread(s->client.cq, &comp, 1, NULL, MSG_WAIT_MS), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, time_before(jiffies, start + msecs_to_jiffies(MSG_WAIT_MS / 2)));
	for (i = 0; i < 3; i++) {
		MSG_SEND(s->client.ep, s->client.buf, 8, 1);
		MSG_DONE(&s->client, 1, 0);
		MSG_DONE(&s->server, 9, 0);
	}
	KUNIT_EXPECT_EQ(test, fi_send(s->client.ep, s->client.buf, 8, NULL, 0, CTX(1)), -EAGAIN);
}

/* A sender that waits for a receive is told of the end, and its next send fails. */
static void credits_end(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fi_cq_tagged_entry comp;
	ktime_t late;

	msg_connect(test, s);
	KUNIT_EXPECT_EQ(test, fi_send(s->client.ep, s->client.buf, 8, NULL, 0, CTX(1)), -EAGAIN);
	late = ktime_add_ms(ktime_get(), MSG_WAIT_MS / 2);
	MSG_CLOSE(s->server.ep);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(s->client.cq, &comp, 1, NULL, MSG_WAIT_MS), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, ktime_before(ktime_get(), late));
	KUNIT_EXPECT_EQ(test, fi_send(s->client.ep, s->client.buf, 8, NULL, 0, CTX(1)), -ENOTCONN);
}

#define CROWD	8

/* Connections with the same queues share an endpoint, and each gets its own messages. */
static void shared_lane(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fid_ep *servers[CROWD] = {}, *clients[CROWD] = {};
	int i;

	for (i = 0; i < CROWD; i++) {
		msg_connect(test, s);
		servers[i] = s->server.ep;
		clients[i] = s->client.ep;
		KUNIT_EXPECT_EQ(test, fi_recv(servers[i], s->server.buf + 8 * i, 8, NULL, 0,
					      CTX(100 + i)), 0);
	}
	for (i = CROWD - 1; i >= 0; i--) {
		s->client.buf[8 * i] = 50 + i;
		MSG_SEND(clients[i], s->client.buf + 8 * i, 8, i + 1);
		MSG_DONE(&s->client, i + 1, 0);
		MSG_DONE(&s->server, 100 + i, 0);
		KUNIT_EXPECT_EQ(test, s->server.buf[8 * i], 50 + i);
	}
	/* The end of one doesn't disturb another. */
	KUNIT_EXPECT_EQ(test, fi_recv(servers[0], s->server.buf, 8, NULL, 0, CTX(7)), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(servers[1], s->server.buf, 8, NULL, 0, CTX(8)), 0);
	MSG_CLOSE(clients[0]);
	MSG_DONE(&s->server, 7, ECANCELED);
	MSG_EXPECT(s->server.eq, FI_SHUTDOWN, servers[0]);
	MSG_SEND(clients[1], s->client.buf, 8, 9);
	MSG_DONE(&s->client, 9, 0);
	MSG_DONE(&s->server, 8, 0);
	for (i = 0; i < CROWD; i++) {
		MSG_CLOSE(servers[i]);
		MSG_CLOSE(clients[i]);
	}
	s->server.ep = NULL;
	s->client.ep = NULL;
}

/* --- the end --- */

static void shuts_down(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct msg_comp comp;

	msg_connect(test, s);
	KUNIT_EXPECT_EQ(test, fi_recv(s->client.ep, s->client.buf, 8, NULL, 0, CTX(1)), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(s->client.ep, s->client.buf, 8, NULL, 0, CTX(2)), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(s->server.ep, s->server.buf, 8, NULL, 0, CTX(3)), 0);
	KUNIT_EXPECT_EQ(test, fi_shutdown(s->client.ep, 0), 0);
	/* Canceled completions are there when the call returns. */
	KUNIT_EXPECT_EQ(test, msg_read(&s->client, &comp), 1);
	KUNIT_EXPECT_EQ(test, comp.error.err, ECANCELED);
	KUNIT_EXPECT_EQ(test, msg_read(&s->client, &comp), 1);
	KUNIT_EXPECT_EQ(test, comp.error.err, ECANCELED);
	KUNIT_EXPECT_EQ(test, msg_read(&s->client, &comp), 0);
	MSG_EXPECT(s->server.eq, FI_SHUTDOWN, s->server.ep);
	MSG_DONE(&s->server, 3, ECANCELED);
	KUNIT_EXPECT_EQ(test, fi_send(s->client.ep, s->client.buf, 8, NULL, 0, NULL), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, fi_recv(s->client.ep, s->client.buf, 8, NULL, 0, NULL), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, fi_recv(s->server.ep, s->server.buf, 8, NULL, 0, NULL), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, fi_shutdown(s->client.ep, 0), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, fi_shutdown(s->server.ep, 0), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, fi_connect(s->client.ep, &s->addr, NULL, 0), -EISCONN);
	/* The peer's event alone, and once. */
	MSG_CLOSE(s->client.ep);
	msg_quiet(test, s->client.eq);
	msg_quiet(test, s->server.eq);
}

static void server_shuts_down(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);

	msg_connect(test, s);
	KUNIT_EXPECT_EQ(test, fi_recv(s->client.ep, s->client.buf, 8, NULL, 0, CTX(1)), 0);
	KUNIT_EXPECT_EQ(test, fi_shutdown(s->server.ep, 0), 0);
	MSG_EXPECT(s->client.eq, FI_SHUTDOWN, s->client.ep);
	MSG_DONE(&s->client, 1, ECANCELED);
	msg_quiet(test, s->server.eq);
}

/* Closing an endpoint ends its connection. */
static void closes(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);

	msg_connect(test, s);
	MSG_CLOSE(s->client.ep);
	MSG_EXPECT(s->server.eq, FI_SHUTDOWN, s->server.ep);
	MSG_CLOSE(s->server.ep);
	msg_connect(test, s);
	MSG_CLOSE(s->server.ep);
	MSG_EXPECT(s->client.eq, FI_SHUTDOWN, s->client.ep);
	MSG_CLOSE(s->client.ep);
	msg_connect(test, s);
	/* The event that nobody has read goes with the endpoint. */
	MSG_CLOSE(s->client.ep);
	MSG_CLOSE(s->server.ep);
	msg_quiet(test, s->server.eq);
}

/* In every other state, too. */
static void closes_early(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fi_info *info;

	/* Not enabled, enabled. */
	s->client.ep = msg_ep(test, s, s->info, &s->client);
	MSG_CLOSE(s->client.ep);
	s->client.ep = msg_ep(test, s, s->info, &s->client);
	KUNIT_EXPECT_EQ(test, fi_enable(s->client.ep), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(s->client.ep, s->client.buf, 8, NULL, 0, CTX(1)), 0);
	MSG_CLOSE(s->client.ep);
	MSG_DONE(&s->client, 1, ECANCELED);
	/* Connecting. */
	s->client.ep = msg_ep(test, s, s->info, &s->client);
	KUNIT_EXPECT_EQ(test, fi_connect(s->client.ep, &s->addr, NULL, 0), 0);
	MSG_CLOSE(s->client.ep);
	msg_quiet(test, s->client.eq);
	/* The request may have arrived nevertheless; it goes with the passive endpoint. */
	MSG_CLOSE(s->pep);
	KUNIT_ASSERT_EQ(test, fi_passive_ep(s->fabric, s->info, &s->pep, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_setname(&s->pep->fid, &s->addr, sizeof(struct sockaddr_in)), 0);
	KUNIT_ASSERT_EQ(test, fi_pep_bind(s->pep, &s->eq->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_listen(s->pep), 0);
	/* Opened for a request, which is refused then; enabled. */
	msg_take(test, s);
	MSG_CLOSE(s->server.ep);
	MSG_FAILS(s->client.eq, ECONNREFUSED, s->client.ep);
	MSG_CLOSE(s->client.ep);
	msg_take(test, s);
	KUNIT_EXPECT_EQ(test, fi_enable(s->server.ep), 0);
	MSG_CLOSE(s->server.ep);
	MSG_FAILS(s->client.eq, ECONNREFUSED, s->client.ep);
	MSG_CLOSE(s->client.ep);
	/* Accepted, but perhaps not connected. */
	msg_take(test, s);
	KUNIT_EXPECT_EQ(test, fi_accept(s->server.ep, NULL, 0), 0);
	MSG_CLOSE(s->server.ep);
	MSG_CLOSE(s->client.ep);
	/* A request that is read and forgotten, and one that isn't read. */
	info = msg_ask(test, s);
	fi_freeinfo(info);
	MSG_CLOSE(s->pep);
	MSG_FAILS(s->client.eq, ECONNREFUSED, s->client.ep);
}

/* Connections outlive the passive endpoint, whose address can be used again. */
static void pep_closes(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fid_pep *other = NULL;

	msg_connect(test, s);
	KUNIT_ASSERT_EQ(test, fi_passive_ep(s->fabric, s->info, &other, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_setname(&other->fid, &s->addr, sizeof(struct sockaddr_in)), 0);
	KUNIT_EXPECT_EQ(test, fi_pep_bind(other, &s->eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_listen(other), -EADDRINUSE);
	MSG_CLOSE(s->pep);
	talk(test, s);
	KUNIT_EXPECT_EQ(test, fi_listen(other), 0);
	s->pep = other;
	talk(test, s);
	MSG_CLOSE(s->client.ep);
	MSG_EXPECT(s->server.eq, FI_SHUTDOWN, s->server.ep);
	MSG_CLOSE(s->server.ep);
	msg_connect(test, s);
	talk(test, s);
}

static void set_present(struct kunit *test, bool present)
{
	char *argv[4] = {}, *envp[1] = {};

	argv[0] = "/bin/sh";
	argv[1] = "-c";
	argv[2] = present ? "echo 1 > /sys/kernel/debug/kofi_loop/loop1/present" :
			    "echo 0 > /sys/kernel/debug/kofi_loop/loop1/present";
	KUNIT_ASSERT_EQ(test, call_usermodehelper(argv[0], argv, envp, UMH_WAIT_PROC), 0);
}

/* Removal of the device ends connections at once, and everything can still be closed. */
static void device_gone(struct kunit *test)
{
	struct msg_scene *s = msg_scene_at(test, "loop1", "127.0.0.1");
	struct fid_ep *idle, *asking;
	struct msg_comp comp;
	struct fi_info *info;

	idle = msg_ep(test, s, s->info, &s->client);
	msg_connect(test, s);
	asking = msg_ep(test, s, s->info, &s->client);
	KUNIT_EXPECT_EQ(test, fi_connect(asking, &s->addr, NULL, 0), 0);
	info = msg_next(test, s->eq).info;
	KUNIT_EXPECT_EQ(test, fi_recv(s->client.ep, s->client.buf, 8, NULL, 0, CTX(1)), 0);
	set_present(test, false);
	/* The peer, which has lost the same device, may have ended the connection first. */
	KUNIT_EXPECT_TRUE(test, kofi_soon(msg_read(&s->client, &comp) > 0));
	KUNIT_EXPECT_PTR_EQ(test, comp.error.op_context, CTX(1));
	KUNIT_EXPECT_TRUE(test, comp.error.err == ENODEV || comp.error.err == ECANCELED);
	MSG_EXPECT(s->server.eq, FI_SHUTDOWN, s->server.ep);
	/* Until its side is told, too, it lacks a receive of the peer or isn't connected. */
	KUNIT_EXPECT_TRUE(test, kofi_soon(fi_send(s->client.ep, s->client.buf, 8, NULL, 0, NULL) ==
					  -ENODEV));
	KUNIT_EXPECT_TRUE(test, kofi_soon(fi_recv(s->server.ep, s->server.buf, 8, NULL, 0, NULL) ==
					  -ENODEV));
	KUNIT_EXPECT_EQ(test, fi_shutdown(s->client.ep, 0), -ENODEV);
	KUNIT_EXPECT_EQ(test, fi_connect(idle, &s->addr, NULL, 0), -ENODEV);
	/* One event for each of the others, in any order. */
	msg_next(test, s->client.eq);
	msg_next(test, s->client.eq);
	msg_quiet(test, s->client.eq);
	fi_freeinfo(info);
	MSG_CLOSE(idle);
	MSG_CLOSE(asking);
	msg_scene_close(s);
	memset(s, 0, sizeof(*s));
	set_present(test, true);
	s = msg_scene_at(test, "loop1", "127.0.0.1");
	msg_connect(test, s);
	talk(test, s);
}

#define RACES	40

/* Post receives until that isn't possible any more. */
static void receive(struct kofi_thread *thread)
{
	struct msg_end *end = thread->arg;

	while (!(thread->ret = fi_recv(end->ep, end->buf, 8, NULL, 0, CTX(1))) ||
	       thread->ret == -EAGAIN) {
		end->posted += !thread->ret;
		cond_resched();
	}
}

/* Each receive that was posted while the connection ended has its completion. */
static void receives_race(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct kofi_thread thread;
	struct msg_comp comp;
	size_t i, done;

	for (i = 0; i < RACES; i++) {
		msg_connect(test, s);
		s->server.posted = 0;
		kofi_thread_start(test, &thread, receive, &s->server);
		usleep_range(100, 100 + 50 * i);
		KUNIT_EXPECT_EQ(test, fi_shutdown(i % 2 ? s->server.ep : s->client.ep, 0), 0);
		for (done = 0; !completion_done(&thread.done); )
			done += msg_read(&s->server, &comp) > 0;
		kofi_thread_join(test, &thread);
		KUNIT_EXPECT_EQ(test, thread.ret, -ENOTCONN);
		while (done < s->server.posted && kofi_soon(msg_read(&s->server, &comp) > 0))
			done++;
		KUNIT_EXPECT_EQ(test, done, s->server.posted);
		MSG_CLOSE(s->client.ep);
		MSG_CLOSE(s->server.ep);
		KUNIT_EXPECT_EQ(test, msg_read(&s->server, &comp), 0);
	}
}

/* --- memory --- */

/* Bytes that the debugging of locks and work adds to a type. */
#define DEBUG(type, plain)	(sizeof(type) - (plain))

/* Bytes of an object of type @t, without those that debugging adds to its members. */
#define BYTES(t, debug)	kmalloc_size_roundup(sizeof(struct t) - (debug))

/*
 * An end of an established, idle connection takes at most 1 KiB, not counting what debugging adds
 * to locks: the connection's own objects, the core's for its endpoint, and the link's pointer.
 */
static void idle_memory(struct kunit *test)
{
	const size_t locks = DEBUG(spinlock_t, 4) + DEBUG(struct work_struct, 32) +
			     DEBUG(struct delayed_work, 88);
	struct msg_scene *s = msg_scene(test);
	struct fid_ep *fids[2];
	struct kofi_bind *bind;
	int i, j;

	msg_connect(test, s);
	fids[0] = s->client.ep;
	fids[1] = s->server.ep;
	for (i = 0; i < ARRAY_SIZE(fids); i++) {
		const struct kmsg_ep *ep = container_of(fids[i], struct kmsg_ep, ep_fid);
		size_t bytes = BYTES(kmsg_ep, locks) +
			       BYTES(kmsg_conn, DEBUG(struct mutex, 32)) +
			       BYTES(kofi_node, 0) + 2 * sizeof(void *);

		KUNIT_EXPECT_NULL(test, ep->info);
		/* It is freed after the event. */
		KUNIT_EXPECT_TRUE(test, kofi_soon(!READ_ONCE(ep->conn->setup)));
		for (j = 0; j < KMSG_ROOMS; j++)
			bytes += ep->room[j] ? ksize(ep->room[j]) : 0;
		list_for_each_entry(bind, &fids[i]->fid.node->binds, list)
			bytes += BYTES(kofi_bind, 0);
		kunit_info(test, "%zu bytes", bytes);
		KUNIT_EXPECT_LE(test, bytes, 1024);
	}
	talk(test, s);
}

#define ROUNDS	50

/* Connections come and go, from either side, with messages under way. */
static void comes_and_goes(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct msg_comp comp;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		msg_connect(test, s);
		fi_recv(s->server.ep, s->server.buf, 8, NULL, 0, CTX(1));
		fi_recv(s->client.ep, s->client.buf, 8, NULL, 0, CTX(2));
		if (i % 3)
			MSG_SEND(s->client.ep, s->client.buf + 64, 8, 3);
		if (i % 2) {
			MSG_CLOSE(s->client.ep);
			MSG_CLOSE(s->server.ep);
		} else {
			MSG_CLOSE(s->server.ep);
			MSG_CLOSE(s->client.ep);
		}
		/* Each operation has had its completion. */
		while (msg_read(&s->server, &comp) > 0)
			;
		while (msg_read(&s->client, &comp) > 0)
			;
	}
}

static struct kunit_case msg_cases[] = {
	KUNIT_CASE(entry),
	KUNIT_CASE(addresses),
	KUNIT_CASE(addresses_refused),
	KUNIT_CASE(connects),
	KUNIT_CASE(connects_v6),
	KUNIT_CASE(source_address),
	KUNIT_CASE(rejects),
	KUNIT_CASE(nobody_listens),
	KUNIT_CASE(states),
	KUNIT_CASE(client_gone),
	KUNIT_CASE(data_size),
	KUNIT_CASE(backlog),
	KUNIT_CASE(messages),
	KUNIT_CASE(messages_refused),
	KUNIT_CASE(credits),
	KUNIT_CASE(credits_end),
	KUNIT_CASE(shared_lane),
	KUNIT_CASE(shuts_down),
	KUNIT_CASE(server_shuts_down),
	KUNIT_CASE(closes),
	KUNIT_CASE(closes_early),
	KUNIT_CASE(pep_closes),
	KUNIT_CASE(device_gone),
	KUNIT_CASE(receives_race),
	KUNIT_CASE(idle_memory),
	KUNIT_CASE(comes_and_goes),
	{}
};

static struct kunit_suite msg_suite = {
	.name = "kofi_msg",
	.test_cases = msg_cases,
};

kunit_test_suite(msg_suite);

MODULE_DESCRIPTION("KUnit tests of connections");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
