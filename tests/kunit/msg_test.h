/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Connections between endpoints of one kernel, by TCP over the loopback device. They are over
 * fabric loop, unless a suite defines MSG_PROVIDER.
 */
#ifndef KOFI_MSG_TEST_H
#define KOFI_MSG_TEST_H

#include <kunit/test.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <kofi/cm.h>
#include <kofi/endpoint.h>
#include <kofi/eq.h>
#include <kofi/tagged.h>
#include "crew.h"

#ifndef MSG_PROVIDER
#define MSG_PROVIDER	"loop"
#endif

#define MSG_BUF		4096
#define MSG_WAIT_MS	10000
#define MSG_DATA	256

/**
 * struct msg_end - an endpoint and its queues
 * @ep: the endpoint, or NULL
 * @eq: event queue
 * @cq: completion queue
 * @buf: memory for messages
 * @posted: number of receives, for a test
 */
struct msg_end {
	struct fid_ep	*ep;
	struct fid_eq	*eq;
	struct fid_cq	*cq;
	u8		*buf;
	size_t		posted;
};

/**
 * struct msg_scene - a server and a client
 * @info: entry that the objects are opened with
 * @fabric: the fabric
 * @domain: the domain
 * @eq: event queue of @pep
 * @pep: the server's passive endpoint
 * @addr: its address
 * @server: end of the connection that the server has accepted
 * @client: the client's end
 */
struct msg_scene {
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct fid_eq		*eq;
	struct fid_pep		*pep;
	struct sockaddr_storage	addr;
	struct msg_end		server;
	struct msg_end		client;
};

/**
 * struct msg_event - an event, or an error in the same form
 * @what: kind of the event; 0 for an error
 * @fid: endpoint of the event
 * @info: of FI_CONNREQ
 * @err: errno of an error
 * @len: bytes of @data
 * @data: private data, until the next event is read
 */
struct msg_event {
	u32		what;
	struct fid	*fid;
	struct fi_info	*info;
	int		err;
	size_t		len;
	const u8	*data;
};

#define MSG_CLOSE(obj)							\
do {									\
	if (obj)							\
		WARN_ON(fi_close(&(obj)->fid));				\
	(obj) = NULL;							\
} while (0)

static inline void msg_end_close(struct msg_end *end)
{
	MSG_CLOSE(end->ep);
	MSG_CLOSE(end->cq);
	MSG_CLOSE(end->eq);
	kfree(end->buf);
	end->buf = NULL;
}

static inline void msg_scene_close(void *data)
{
	struct msg_scene *s = data;

	msg_end_close(&s->client);
	msg_end_close(&s->server);
	MSG_CLOSE(s->pep);
	MSG_CLOSE(s->eq);
	MSG_CLOSE(s->domain);
	MSG_CLOSE(s->fabric);
	fi_freeinfo(s->info);
}

static inline struct fi_info *msg_hints(struct kunit *test, const char *domain)
{
	struct fi_info *hints = fi_allocinfo_for(MSG_PROVIDER, NULL, domain);

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->ep_attr->type = FI_EP_MSG;
	return hints;
}

static inline struct fi_info *msg_find(struct kunit *test, const char *domain, const char *node)
{
	struct fi_info *hints = msg_hints(test, domain), *info = NULL;
	int ret = fi_getinfo(fi_version(), node, NULL, FI_SOURCE, hints, &info);

	fi_freeinfo(hints);
	KUNIT_ASSERT_EQ(test, ret, 0);
	return info;
}

static inline struct fid_eq *msg_eq(struct kunit *test, struct msg_scene *s)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_eq *eq = NULL;

	KUNIT_ASSERT_EQ(test, fi_eq_open(s->fabric, &attr, &eq, NULL), 0);
	return eq;
}

/* Open queues, which end up in the scene at once, so that a failure closes them. */
static inline void msg_end_open(struct kunit *test, struct msg_scene *s, struct msg_end *end)
{
	struct fi_cq_attr attr = {
		.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC,
	};

	end->buf = kzalloc(MSG_BUF, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, end->buf);
	end->eq = msg_eq(test, s);
	KUNIT_ASSERT_EQ(test, fi_cq_open(s->domain, &attr, &end->cq, NULL), 0);
}

static inline struct fid_ep *msg_ep(struct kunit *test, struct msg_scene *s, struct fi_info *info,
				    struct msg_end *end)
{
	struct fid_ep *ep = NULL;

	KUNIT_ASSERT_EQ(test, fi_endpoint(s->domain, info, &ep, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &end->eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &end->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	return ep;
}

/* A server that listens, and the queues of both ends. */
static inline struct msg_scene *msg_scene_at(struct kunit *test, const char *domain,
					     const char *node)
{
	struct msg_scene *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	size_t len = sizeof(s->addr);

	KUNIT_ASSERT_NOT_NULL(test, s);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, msg_scene_close, s), 0);
	s->info = msg_find(test, domain, node);
	KUNIT_ASSERT_EQ(test, fi_fabric(s->info->fabric_attr, &s->fabric, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_domain(s->fabric, s->info, &s->domain, NULL), 0);
	s->eq = msg_eq(test, s);
	KUNIT_ASSERT_EQ(test, fi_passive_ep(s->fabric, s->info, &s->pep, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_pep_bind(s->pep, &s->eq->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_listen(s->pep), 0);
	KUNIT_ASSERT_EQ(test, fi_getname(&s->pep->fid, &s->addr, &len), 0);
	msg_end_open(test, s, &s->server);
	msg_end_open(test, s, &s->client);
	return s;
}

static inline struct msg_scene *msg_scene(struct kunit *test)
{
	return msg_scene_at(test, "loop0", "127.0.0.1");
}

/* Wait for an event or an error. */
static noinline __maybe_unused struct msg_event msg_next(struct kunit *test, struct fid_eq *eq)
{
	static struct {
		struct fi_eq_cm_entry	entry;
		u8			data[MSG_DATA];
	} buf;
	struct fi_eq_err_entry err = { .err_data = buf.data, .err_data_size = sizeof(buf.data) };
	struct msg_event event = { .data = buf.data };
	ssize_t ret;

	ret = fi_eq_sread(eq, &event.what, &buf, sizeof(buf), MSG_WAIT_MS, 0);
	if (ret == -FI_EAVAIL) {
		KUNIT_EXPECT_EQ(test, fi_eq_readerr(eq, &err, 0), sizeof(err));
		event.what = 0;
		event.fid = err.fid;
		event.err = err.err;
		event.len = err.err_data_size;
		return event;
	}
	KUNIT_EXPECT_GE(test, ret, (ssize_t)sizeof(buf.entry));
	if (ret < (ssize_t)sizeof(buf.entry))
		return event;
	event.fid = buf.entry.fid;
	event.info = buf.entry.info;
	event.len = ret - sizeof(buf.entry);
	return event;
}

/* Return: bytes of private data. */
static noinline __maybe_unused size_t msg_expect(struct kunit *test, struct fid_eq *eq, u32 what,
						 int err, const struct fid *fid)
{
	struct msg_event event = msg_next(test, eq);

	KUNIT_EXPECT_EQ(test, event.what, what);
	KUNIT_EXPECT_EQ(test, event.err, err);
	KUNIT_EXPECT_PTR_EQ(test, (const struct fid *)event.fid, fid);
	return event.len;
}

#define MSG_EXPECT(eq, what, at)	msg_expect(test, eq, what, 0, &(at)->fid)
#define MSG_FAILS(eq, errno, at)	msg_expect(test, eq, 0, errno, &(at)->fid)

static inline void msg_quiet(struct kunit *test, struct fid_eq *eq)
{
	u8 buf[sizeof(struct fi_eq_cm_entry) + 8];
	u32 what;

	KUNIT_EXPECT_EQ(test, fi_eq_read(eq, &what, buf, sizeof(buf), 0), -EAGAIN);
}

/* Request a connection. Return: the entry of the server's event, for fi_freeinfo(). */
static inline struct fi_info *msg_ask(struct kunit *test, struct msg_scene *s)
{
	struct msg_event event;

	s->client.ep = msg_ep(test, s, s->info, &s->client);
	KUNIT_ASSERT_EQ(test, fi_connect(s->client.ep, &s->addr, "hello", 5), 0);
	event = msg_next(test, s->eq);
	KUNIT_ASSERT_EQ(test, event.what, FI_CONNREQ);
	KUNIT_EXPECT_PTR_EQ(test, event.fid, &s->pep->fid);
	KUNIT_EXPECT_EQ(test, event.len, 5);
	KUNIT_EXPECT_EQ(test, memcmp(event.data, "hello", 5), 0);
	KUNIT_ASSERT_NOT_NULL(test, event.info);
	KUNIT_ASSERT_NOT_NULL(test, event.info->handle);
	return event.info;
}

static inline void msg_take(struct kunit *test, struct msg_scene *s)
{
	struct fi_info *info = msg_ask(test, s);

	s->server.ep = msg_ep(test, s, info, &s->server);
	fi_freeinfo(info);
}

/* Connect both ends. */
static inline void msg_connect(struct kunit *test, struct msg_scene *s)
{
	msg_take(test, s);
	KUNIT_ASSERT_EQ(test, fi_accept(s->server.ep, "welcome", 7), 0);
	KUNIT_EXPECT_EQ(test, MSG_EXPECT(s->client.eq, FI_CONNECTED, s->client.ep), 7);
	KUNIT_EXPECT_EQ(test, MSG_EXPECT(s->server.eq, FI_CONNECTED, s->server.ep), 0);
}

/**
 * struct msg_comp - a completion, or an error in the same form
 * @entry: the completion
 * @error: the error
 */
struct msg_comp {
	struct fi_cq_tagged_entry	entry;
	struct fi_cq_err_entry		error;
};

static inline ssize_t msg_read(struct msg_end *end, struct msg_comp *comp)
{
	ssize_t ret;

	memset(comp, 0, sizeof(*comp));
	ret = fi_cq_read(end->cq, &comp->entry, 1);
	if (ret == -FI_EAVAIL)
		ret = fi_cq_readerr(end->cq, &comp->error, 0);
	return ret == -EAGAIN ? 0 : ret;
}

/* Wait for a completion with this context and errno. */
static noinline __maybe_unused void msg_done(struct kunit *test, struct msg_end *end,
					     unsigned long context, int err)
{
	struct msg_comp comp;
	void *got;

	KUNIT_EXPECT_TRUE(test, kofi_soon(msg_read(end, &comp) > 0));
	got = comp.error.err ? comp.error.op_context : comp.entry.op_context;
	KUNIT_EXPECT_EQ(test, (unsigned long)got, context);
	KUNIT_EXPECT_EQ(test, comp.error.err, err);
}

/* Send as soon as the peer has a receive. */
static noinline __maybe_unused void msg_send(struct kunit *test, struct fid_ep *ep,
					     const void *buf, size_t len, unsigned long context)
{
	ssize_t ret;

	KUNIT_EXPECT_TRUE(test, kofi_soon((ret = fi_send(ep, buf, len, NULL, 0,
							 (void *)context)) != -EAGAIN));
	KUNIT_EXPECT_EQ(test, ret, 0);
}

#define MSG_DONE(end, context, err)	msg_done(test, end, context, err)
#define MSG_SEND(ep, buf, len, context)	msg_send(test, ep, buf, len, context)

#endif /* KOFI_MSG_TEST_H */
