// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * fi_cm(3) and fi_endpoint(3), sentence by sentence: what suite kofi_msg doesn't show.
 */
#include <linux/completion.h>
#include <linux/module.h>
#include "msg_test.h"

#define CTX(n)	((void *)(unsigned long)(n))

/* A passive endpoint at an address, which listens. */
static struct fid_pep *listen_at(struct kunit *test, struct msg_scene *s, struct fid_eq *eq,
				 struct sockaddr_in *addr)
{
	struct fid_pep *pep = NULL;
	size_t len = sizeof(*addr);

	KUNIT_ASSERT_EQ(test, fi_passive_ep(s->fabric, s->info, &pep, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_setname(&pep->fid, addr, sizeof(*addr)), 0);
	KUNIT_EXPECT_EQ(test, fi_pep_bind(pep, &eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_listen(pep), 0);
	KUNIT_EXPECT_EQ(test, fi_getname(&pep->fid, addr, &len), 0);
	KUNIT_EXPECT_EQ(test, len, sizeof(*addr));
	return pep;
}

static const struct sockaddr_in any = {
	.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
};

/* --- listening --- */

/* Passive endpoints listen at any address of this machine, one at each. */
static void listens_at(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct sockaddr_in one = any, two = any, foreign = any;
	struct fid_pep *a, *b, *c = NULL;

	a = listen_at(test, s, s->eq, &one);
	b = listen_at(test, s, s->eq, &two);
	KUNIT_EXPECT_NE(test, one.sin_port, 0);
	KUNIT_EXPECT_NE(test, one.sin_port, two.sin_port);
	foreign.sin_addr.s_addr = htonl(0xc0000201);
	KUNIT_ASSERT_EQ(test, fi_passive_ep(s->fabric, s->info, &c, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_listen(c), -FI_ENOEQ);
	KUNIT_EXPECT_EQ(test, fi_pep_bind(c, &s->eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_setname(&c->fid, &foreign, sizeof(foreign)), 0);
	KUNIT_EXPECT_EQ(test, fi_listen(c), -EADDRNOTAVAIL);
	/* It is unchanged, and can listen elsewhere. */
	KUNIT_EXPECT_EQ(test, fi_setname(&c->fid, &one, sizeof(one)), 0);
	KUNIT_EXPECT_EQ(test, fi_listen(c), -EADDRINUSE);
	MSG_CLOSE(a);
	KUNIT_EXPECT_EQ(test, fi_listen(c), 0);
	KUNIT_EXPECT_EQ(test, fi_listen(c), -FI_EOPBADSTATE);
	MSG_CLOSE(b);
	MSG_CLOSE(c);
}

#define UNREAD	3

/* Requests that nobody has read go with the passive endpoint, and are refused. */
static void unread_requests(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fid_ep *ep[UNREAD + 1];
	int i, busy, refused = 0, most = UNREAD;

	KUNIT_EXPECT_EQ(test, fi_control(&s->pep->fid, FI_BACKLOG, &most), 0);
	for (i = 0; i <= UNREAD; i++) {
		ep[i] = msg_ep(test, s, s->info, &s->client);
		KUNIT_EXPECT_EQ(test, fi_connect(ep[i], &s->addr, "x", 1), 0);
	}
	/* One is too many, so the others have arrived. */
	busy = msg_next(test, s->client.eq).err;
	KUNIT_EXPECT_EQ(test, busy, EBUSY);
	MSG_CLOSE(s->pep);
	msg_quiet(test, s->eq);
	for (i = 0; i < UNREAD; i++)
		refused += msg_next(test, s->client.eq).err == ECONNREFUSED;
	KUNIT_EXPECT_EQ(test, refused, UNREAD);
	for (i = 0; i <= UNREAD; i++)
		MSG_CLOSE(ep[i]);
}

/* A connection is accepted after its passive endpoint was closed, if its endpoint is open. */
static void accepts_late(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);

	msg_take(test, s);
	MSG_CLOSE(s->pep);
	KUNIT_EXPECT_EQ(test, fi_accept(s->server.ep, NULL, 0), 0);
	MSG_EXPECT(s->client.eq, FI_CONNECTED, s->client.ep);
	MSG_EXPECT(s->server.eq, FI_CONNECTED, s->server.ep);
}

/* FI_PEEK leaves a request in the queue, and a copy of its entry is as good as the entry. */
static void peeks(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fi_eq_cm_entry entry = {};
	struct fi_info *copy;
	struct fid_ep *second = NULL;
	u32 event;

	s->client.ep = msg_ep(test, s, s->info, &s->client);
	KUNIT_ASSERT_EQ(test, fi_connect(s->client.ep, &s->addr, NULL, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_eq_sread(s->eq, &event, &entry, sizeof(entry), MSG_WAIT_MS,
					  FI_PEEK), sizeof(entry));
	copy = entry.info;
	KUNIT_ASSERT_EQ(test, fi_eq_read(s->eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	KUNIT_EXPECT_EQ(test, event, FI_CONNREQ);
	KUNIT_EXPECT_PTR_EQ(test, entry.info, copy);
	copy = fi_dupinfo(entry.info);
	fi_freeinfo(entry.info);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	s->server.ep = msg_ep(test, s, copy, &s->server);
	/* One endpoint only. */
	KUNIT_EXPECT_EQ(test, fi_endpoint(s->domain, copy, &second, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_reject(s->pep, copy->handle, NULL, 0), -EINVAL);
	fi_freeinfo(copy);
	KUNIT_EXPECT_EQ(test, fi_accept(s->server.ep, NULL, 0), 0);
	MSG_EXPECT(s->client.eq, FI_CONNECTED, s->client.ep);
}

/* A request whose client has gone can be rejected like any other. */
static void rejects_gone(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fi_info *info = msg_ask(test, s);

	MSG_CLOSE(s->client.ep);
	KUNIT_EXPECT_EQ(test, fi_reject(s->pep, info->handle, "no", 2), 0);
	KUNIT_EXPECT_EQ(test, fi_reject(s->pep, info->handle, "no", 2), -EINVAL);
	fi_freeinfo(info);
	msg_connect(test, s);
}

/* --- a handler --- */

/**
 * struct watch - a handler's results
 * @s: the scene
 * @done: it has had a request
 * @opened: result of fi_endpoint()
 * @listened: result of fi_listen()
 * @rejected: result of fi_reject()
 */
struct watch {
	struct msg_scene	*s;
	struct completion	done;
	int			opened;
	int			listened;
	int			rejected;
};

static void on_event(struct fid_eq *eq, void *context)
{
	struct watch *w = context;
	struct fi_eq_cm_entry entry;
	struct fid_ep *ep;
	u32 event;

	while (fi_eq_read(eq, &event, &entry, sizeof(entry), 0) == sizeof(entry)) {
		w->opened = fi_endpoint(w->s->domain, entry.info, &ep, NULL);
		w->listened = fi_listen(w->s->pep);
		w->rejected = fi_reject(w->s->pep, entry.info->handle, "later", 5);
		fi_freeinfo(entry.info);
		complete(&w->done);
	}
}

/* The handler of an event queue can't make control calls, but it can reject. */
static void rejects_in_handler(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct watch w = { .s = s };
	struct fi_eq_attr attr = { .handler = on_event, .handler_context = &w };
	struct sockaddr_in addr = any;
	struct msg_event event;
	struct fid_eq *eq = NULL;
	struct fid_pep *pep;

	init_completion(&w.done);
	KUNIT_ASSERT_EQ(test, fi_eq_open(s->fabric, &attr, &eq, NULL), 0);
	pep = s->pep;
	s->pep = listen_at(test, s, eq, &addr);
	s->client.ep = msg_ep(test, s, s->info, &s->client);
	KUNIT_EXPECT_EQ(test, fi_connect(s->client.ep, &addr, NULL, 0), 0);
	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&w.done, 10 * HZ), 0);
	KUNIT_EXPECT_EQ(test, w.opened, -EDEADLK);
	KUNIT_EXPECT_EQ(test, w.listened, -EDEADLK);
	KUNIT_EXPECT_EQ(test, w.rejected, 0);
	event = msg_next(test, s->client.eq);
	KUNIT_EXPECT_EQ(test, event.err, ECONNREFUSED);
	KUNIT_EXPECT_EQ(test, event.len, 5);
	MSG_CLOSE(s->pep);
	MSG_CLOSE(eq);
	s->pep = pep;
}

/* --- connecting --- */

/* Queues have to be bound, and nothing else can be. */
static void bindings(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fi_av_attr av_attr = {};
	struct fid_av *av = NULL;
	struct fid_ep *ep = NULL;

	KUNIT_ASSERT_EQ(test, fi_endpoint(s->domain, s->info, &ep, NULL), 0);
	s->client.ep = ep;
	KUNIT_EXPECT_EQ(test, fi_connect(ep, &s->addr, NULL, 0), -FI_ENOEQ);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &s->client.eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_connect(ep, &s->addr, NULL, 0), -FI_ENOCQ);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &s->client.cq->fid, FI_TRANSMIT), 0);
	KUNIT_EXPECT_EQ(test, fi_connect(ep, &s->addr, NULL, 0), -FI_ENOCQ);
	KUNIT_EXPECT_EQ(test, fi_av_open(s->domain, &av_attr, &av, NULL), 0);
	KUNIT_EXPECT_NE(test, fi_ep_bind(ep, &av->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &s->client.cq->fid, FI_RECV), 0);
	MSG_CLOSE(av);
	/* Nothing of this has used the endpoint up. */
	KUNIT_EXPECT_EQ(test, fi_connect(ep, &s->addr, NULL, 0), 0);
	fi_freeinfo(msg_next(test, s->eq).info);
}

/* A wrong address is refused by the call, and one that can't be reached by an event. */
static void cannot_reach(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(1) };
	struct sockaddr_in far = any;
	struct fi_eq_err_entry error = {};
	int context;
	u32 event;
	u8 buf[64] = {};

	far.sin_port = htons(9);
	far.sin_addr.s_addr = htonl(0xc0000201);
	KUNIT_ASSERT_EQ(test, fi_endpoint(s->domain, s->info, &s->client.ep, &context), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(s->client.ep, &s->client.eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(s->client.ep, &s->client.cq->fid, FI_TRANSMIT | FI_RECV),
			0);
	KUNIT_EXPECT_EQ(test, fi_connect(s->client.ep, &six, NULL, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_connect(s->client.ep, buf, NULL, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_connect(s->client.ep, &far, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_eq_sread(s->client.eq, &event, buf, sizeof(buf), MSG_WAIT_MS, 0),
			-FI_EAVAIL);
	KUNIT_EXPECT_EQ(test, fi_eq_readerr(s->client.eq, &error, 0), sizeof(error));
	KUNIT_EXPECT_PTR_EQ(test, error.fid, &s->client.ep->fid);
	KUNIT_EXPECT_PTR_EQ(test, error.context, (void *)&context);
	/* Without a route to it, or at the first router. */
	if (error.err != EHOSTUNREACH)
		KUNIT_EXPECT_EQ(test, error.err, ENETUNREACH);
	KUNIT_EXPECT_EQ(test, error.err_data_size, 0);
}

/* Two sides that connect to each other get two connections. */
static void crossing(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct sockaddr_in other = any;
	struct fid_ep *to = NULL, *from = NULL, *a, *b;
	struct fid_eq *eq = msg_eq(test, s);
	struct fid_pep *pep = listen_at(test, s, eq, &other);
	struct msg_event event;

	/* The server's own request, and the client's. */
	to = msg_ep(test, s, s->info, &s->server);
	from = msg_ep(test, s, s->info, &s->client);
	KUNIT_EXPECT_EQ(test, fi_connect(to, &other, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_connect(from, &s->addr, NULL, 0), 0);
	event = msg_next(test, s->eq);
	a = msg_ep(test, s, event.info, &s->server);
	fi_freeinfo(event.info);
	event = msg_next(test, eq);
	b = msg_ep(test, s, event.info, &s->client);
	fi_freeinfo(event.info);
	KUNIT_EXPECT_EQ(test, fi_accept(a, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_accept(b, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, msg_next(test, s->server.eq).what, FI_CONNECTED);
	KUNIT_EXPECT_EQ(test, msg_next(test, s->server.eq).what, FI_CONNECTED);
	KUNIT_EXPECT_EQ(test, msg_next(test, s->client.eq).what, FI_CONNECTED);
	KUNIT_EXPECT_EQ(test, msg_next(test, s->client.eq).what, FI_CONNECTED);
	/* A message of one doesn't get into the other. */
	KUNIT_EXPECT_EQ(test, fi_recv(b, s->client.buf, 8, NULL, 0, CTX(1)), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(from, s->client.buf + 8, 8, NULL, 0, CTX(2)), 0);
	MSG_SEND(a, s->server.buf, 8, 3);
	MSG_DONE(&s->server, 3, 0);
	MSG_DONE(&s->client, 2, 0);
	MSG_SEND(to, s->server.buf, 8, 4);
	MSG_DONE(&s->server, 4, 0);
	MSG_DONE(&s->client, 1, 0);
	MSG_CLOSE(a);
	MSG_CLOSE(b);
	MSG_CLOSE(to);
	MSG_CLOSE(from);
	MSG_CLOSE(pep);
	MSG_CLOSE(eq);
}

/* --- the end --- */

/* Events that nobody has read keep their order. */
static void keeps_order(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);

	msg_take(test, s);
	KUNIT_EXPECT_EQ(test, fi_accept(s->server.ep, "now", 3), 0);
	MSG_EXPECT(s->server.eq, FI_CONNECTED, s->server.ep);
	MSG_CLOSE(s->server.ep);
	KUNIT_EXPECT_TRUE(test, kofi_soon(fi_recv(s->client.ep, s->client.buf, 8, NULL, 0,
						  CTX(1)) == -ENOTCONN));
	KUNIT_EXPECT_EQ(test, MSG_EXPECT(s->client.eq, FI_CONNECTED, s->client.ep), 3);
	MSG_EXPECT(s->client.eq, FI_SHUTDOWN, s->client.ep);
	msg_quiet(test, s->client.eq);
}

/* Both sides end the connection: a side that could has no event. */
static void both_shut_down(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	int i, ret;

	for (i = 0; i < 10; i++) {
		msg_connect(test, s);
		KUNIT_EXPECT_EQ(test, fi_shutdown(s->client.ep, 0), 0);
		ret = fi_shutdown(s->server.ep, 0);
		if (ret) {
			KUNIT_EXPECT_EQ(test, ret, -ENOTCONN);
			MSG_EXPECT(s->server.eq, FI_SHUTDOWN, s->server.ep);
		}
		msg_quiet(test, s->server.eq);
		msg_quiet(test, s->client.eq);
		MSG_CLOSE(s->server.ep);
		MSG_CLOSE(s->client.ep);
	}
}

#define LAST	16

/* Messages whose sends had completed arrive, though the sender ends the connection at once. */
static void last_messages(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	int i;

	msg_take(test, s);
	KUNIT_EXPECT_EQ(test, fi_enable(s->server.ep), 0);
	for (i = 0; i < LAST; i++)
		KUNIT_EXPECT_EQ(test, fi_recv(s->server.ep, s->server.buf + 8 * i, 8, NULL, 0,
					      CTX(i + 1)), 0);
	KUNIT_EXPECT_EQ(test, fi_accept(s->server.ep, NULL, 0), 0);
	MSG_EXPECT(s->client.eq, FI_CONNECTED, s->client.ep);
	/* The receives were told with the acceptance. */
	for (i = 0; i < LAST; i++)
		KUNIT_EXPECT_EQ(test, fi_send(s->client.ep, s->client.buf, 8, NULL, 0,
					      CTX(100 + i)), 0);
	for (i = 0; i < LAST; i++)
		MSG_DONE(&s->client, 100 + i, 0);
	MSG_CLOSE(s->client.ep);
	for (i = 0; i < LAST; i++)
		MSG_DONE(&s->server, i + 1, 0);
}

/* fi_cancel(): the completion comes, and the peer's message goes into the next receive. */
static void cancels(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);

	msg_connect(test, s);
	KUNIT_EXPECT_EQ(test, fi_cancel(&s->server.ep->fid, CTX(1)), -ENOENT);
	KUNIT_EXPECT_EQ(test, fi_recv(s->server.ep, s->server.buf, 8, NULL, 0, CTX(1)), 0);
	KUNIT_EXPECT_EQ(test, fi_cancel(&s->server.ep->fid, CTX(1)), 0);
	MSG_DONE(&s->server, 1, ECANCELED);
	/* It counts for the peer. */
	MSG_SEND(s->client.ep, s->client.buf, 8, 2);
	KUNIT_EXPECT_EQ(test, fi_recv(s->server.ep, s->server.buf, 8, NULL, 0, CTX(3)), 0);
	MSG_DONE(&s->client, 2, 0);
	MSG_DONE(&s->server, 3, 0);
	MSG_CLOSE(s->client.ep);
	MSG_EXPECT(s->server.eq, FI_SHUTDOWN, s->server.ep);
	KUNIT_EXPECT_EQ(test, fi_cancel(&s->server.ep->fid, CTX(1)), -ENOENT);
}

/* It cancels no operation of another connection over the same lane, also with the same context. */
static void cancels_own(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fid_ep *first[2];

	msg_connect(test, s);
	first[0] = s->server.ep;
	first[1] = s->client.ep;
	KUNIT_EXPECT_EQ(test, fi_recv(first[0], s->server.buf, 8, NULL, 0, CTX(1)), 0);
	msg_connect(test, s);
	KUNIT_EXPECT_EQ(test, fi_cancel(&s->server.ep->fid, CTX(1)), -ENOENT);
	KUNIT_EXPECT_EQ(test, fi_recv(s->server.ep, s->server.buf, 8, NULL, 0, CTX(2)), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(s->server.ep, s->server.buf, 8, NULL, 0, CTX(1)), 0);
	KUNIT_EXPECT_EQ(test, fi_cancel(&s->server.ep->fid, CTX(1)), 0);
	MSG_DONE(&s->server, 1, ECANCELED);
	MSG_SEND(first[1], s->client.buf, 8, 3);
	MSG_DONE(&s->client, 3, 0);
	MSG_DONE(&s->server, 1, 0);
	MSG_CLOSE(first[0]);
	MSG_CLOSE(first[1]);
	MSG_SEND(s->client.ep, s->client.buf, 8, 3);
	MSG_DONE(&s->client, 3, 0);
	MSG_DONE(&s->server, 2, 0);
}

static struct kunit_case msg_cm_cases[] = {
	KUNIT_CASE(listens_at),
	KUNIT_CASE(unread_requests),
	KUNIT_CASE(accepts_late),
	KUNIT_CASE(peeks),
	KUNIT_CASE(rejects_gone),
	KUNIT_CASE(rejects_in_handler),
	KUNIT_CASE(bindings),
	KUNIT_CASE(cannot_reach),
	KUNIT_CASE(crossing),
	KUNIT_CASE(keeps_order),
	KUNIT_CASE(both_shut_down),
	KUNIT_CASE(last_messages),
	KUNIT_CASE(cancels),
	KUNIT_CASE(cancels_own),
	{}
};

static struct kunit_suite msg_cm_suite = {
	.name = "kofi_msg_cm",
	.test_cases = msg_cm_cases,
};

kunit_test_suite(msg_cm_suite);

MODULE_DESCRIPTION("KUnit tests of the sentences of fi_cm(3)");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
