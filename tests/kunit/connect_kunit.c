// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The core's part of connections: states, events, private data in events, and the module that makes
 * connections over unconnected endpoints.
 */
#include <linux/kmod.h>
#include <linux/string.h>
#include "fake.h"

#define CTX	((void *)0x3333)

static u8 text[8];
static size_t len;

/**
 * struct scene - a provider whose endpoints are of type FI_EP_MSG
 * @fake: the provider
 * @set: objects of @fake
 * @pep: passive endpoint
 */
struct scene {
	struct kofi_fake *fake;
	struct kofi_fake_set set;
	struct fid_pep *pep;
};

static struct scene *new_scene(struct kunit *test)
{
	struct scene *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->fake = kofi_fake_new(test, "fake");
	s->fake->info->ep_attr->type = FI_EP_MSG;
	kofi_fake_open_all(test, s->fake, &s->set);
	s->pep = kofi_fake_pep(test, s->fake, s->set.fabric);
	return s;
}

static void bind_all(struct kunit *test, struct scene *s)
{
	KUNIT_ASSERT_EQ(test, fi_ep_bind(s->set.ep, &s->set.eq->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(s->set.ep, &s->set.cq->fid, FI_TRANSMIT | FI_RECV), 0);
}

/* The provider isn't called for arguments that the core refuses. */
#define REFUSED(op, err, call)						\
do {									\
	unsigned int __before = kofi_fake_called(s->fake, op);		\
									\
	KUNIT_EXPECT_EQ_MSG(test, call, err, #call);			\
	KUNIT_EXPECT_EQ_MSG(test, kofi_fake_called(s->fake, op), __before, #call); \
} while (0)

#define ARRIVED(op, at, ...)						\
do {									\
	const u64 __args[] = { __VA_ARGS__ };				\
	unsigned int __i;						\
									\
	KUNIT_EXPECT_PTR_EQ(test, s->fake->call[op].object, &(at)->fid); \
	for (__i = 0; __i < ARRAY_SIZE(__args); __i++)			\
		KUNIT_EXPECT_EQ_MSG(test, s->fake->call[op].arg[__i], __args[__i], #op); \
} while (0)

#define A(x)	((u64)(unsigned long)(x))

static void refuses_arguments(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fid_ep *ep = s->set.ep;
	struct fid_pep *pep = s->pep;

	bind_all(test, s);
	REFUSED(FAKE_CONNECT, -EINVAL, fi_connect(ep, NULL, NULL, 0));
	REFUSED(FAKE_CONNECT, -EINVAL, fi_connect(ep, text, NULL, 1));
	REFUSED(FAKE_CONNECT, -EINVAL, fi_connect(NULL, text, NULL, 0));
	REFUSED(FAKE_ACCEPT, -EINVAL, fi_accept(ep, NULL, 1));
	REFUSED(FAKE_ACCEPT, -EINVAL, fi_accept(NULL, NULL, 0));
	REFUSED(FAKE_REJECT, -EINVAL, fi_reject(pep, NULL, NULL, 0));
	REFUSED(FAKE_REJECT, -EINVAL, fi_reject(pep, &ep->fid, NULL, 1));
	REFUSED(FAKE_REJECT, -EINVAL, fi_reject(NULL, &ep->fid, NULL, 0));
	REFUSED(FAKE_SHUTDOWN, -FI_EBADFLAGS, fi_shutdown(ep, 1));
	REFUSED(FAKE_SHUTDOWN, -EINVAL, fi_shutdown(NULL, 0));
	REFUSED(FAKE_SETNAME, -EINVAL, fi_setname(&ep->fid, NULL, 4));
	REFUSED(FAKE_SETNAME, -EINVAL, fi_setname(&ep->fid, text, 0));
	REFUSED(FAKE_GETPEER, -EINVAL, fi_getpeer(ep, text, NULL));
	len = 1;
	REFUSED(FAKE_GETPEER, -EINVAL, fi_getpeer(ep, NULL, &len));
	REFUSED(FAKE_LISTEN, -EINVAL, fi_listen(NULL));
	/* Nothing of this has enabled the endpoint. */
	KUNIT_EXPECT_EQ(test, kofi_fake_called(s->fake, FAKE_CONTROL), 0);
}

static void passes_arguments(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fid_ep *ep = s->set.ep;

	bind_all(test, s);
	KUNIT_EXPECT_EQ(test, fi_setname(&ep->fid, text, 5), 0);
	ARRIVED(FAKE_SETNAME, ep, A(text), 5);
	KUNIT_EXPECT_EQ(test, fi_setname(&s->pep->fid, text, 6), 0);
	ARRIVED(FAKE_SETNAME, s->pep, A(text), 6);
	KUNIT_EXPECT_EQ(test, fi_getname(&s->pep->fid, text, &len), 0);
	ARRIVED(FAKE_GETNAME, s->pep, A(text), A(&len));
	KUNIT_EXPECT_EQ(test, fi_getopt(&s->pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, text,
					&len), 0);
	ARRIVED(FAKE_GETOPT, s->pep, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, A(text), A(&len));
	KUNIT_EXPECT_EQ(test, fi_control(&s->pep->fid, FI_BACKLOG, &len), 0);
	ARRIVED(FAKE_CONTROL, s->pep, FI_BACKLOG, A(&len));
	KUNIT_EXPECT_EQ(test, fi_connect(ep, text, &len, 3), 0);
	ARRIVED(FAKE_CONNECT, ep, A(text), A(&len), 3);
	KUNIT_EXPECT_EQ(test, fi_accept(ep, &len, 2), 0);
	ARRIVED(FAKE_ACCEPT, ep, A(&len), 2);
	KUNIT_EXPECT_EQ(test, fi_getpeer(ep, text, &len), 0);
	ARRIVED(FAKE_GETPEER, ep, A(text), A(&len));
	KUNIT_EXPECT_EQ(test, fi_shutdown(ep, 0), 0);
	ARRIVED(FAKE_SHUTDOWN, ep, 0);
	KUNIT_EXPECT_EQ(test, fi_reject(s->pep, &ep->fid, &len, 4), 0);
	ARRIVED(FAKE_REJECT, s->pep, A(&ep->fid), A(&len), 4);
}

static void passive_arguments(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fid_fabric *fabric = s->set.fabric;
	struct fi_info *info = s->fake->info, part = *info;
	struct fid_pep *pep = NULL;

	part.ep_attr = NULL;
	REFUSED(FAKE_PEP, -EINVAL, fi_passive_ep(fabric, NULL, &pep, NULL));
	REFUSED(FAKE_PEP, -EINVAL, fi_passive_ep(fabric, &part, &pep, NULL));
	REFUSED(FAKE_PEP, -EINVAL, fi_passive_ep(fabric, info, NULL, NULL));
	REFUSED(FAKE_PEP, -EINVAL, fi_passive_ep(NULL, info, &pep, NULL));
	info->ep_attr->type = FI_EP_RDM;
	REFUSED(FAKE_PEP, -EINVAL, fi_passive_ep(fabric, info, &pep, NULL));
	info->ep_attr->type = FI_EP_MSG;
	KUNIT_ASSERT_EQ(test, fi_passive_ep(fabric, info, &pep, CTX), 0);
	kofi_fake_close_later(test, &pep->fid);
	KUNIT_EXPECT_EQ(test, pep->fid.fclass, FI_CLASS_PEP);
	KUNIT_EXPECT_PTR_EQ(test, pep->fid.context, CTX);
	/* A child of the fabric. */
	KUNIT_EXPECT_EQ(test, fi_close(&fabric->fid), -EBUSY);
}

/* An endpoint listens once, with an event queue of its fabric, which it pins. */
static void listens(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fid_fabric *other = kofi_fake_fabric(test, s->fake);
	struct fid_eq *eq = kofi_fake_eq(test, other, NULL);
	struct fid_eq *second = kofi_fake_eq(test, s->set.fabric, NULL);
	struct fid_pep *pep = s->pep;

	REFUSED(FAKE_LISTEN, -FI_ENOEQ, fi_listen(pep));
	REFUSED(FAKE_BIND, -FI_EDOMAIN, fi_pep_bind(pep, &eq->fid, 0));
	REFUSED(FAKE_BIND, -EINVAL, fi_pep_bind(pep, &s->set.cq->fid, 0));
	REFUSED(FAKE_BIND, -EINVAL, fi_pep_bind(pep, NULL, 0));
	REFUSED(FAKE_BIND, -FI_EBADFLAGS, fi_pep_bind(pep, &s->set.eq->fid, FI_RECV));
	KUNIT_ASSERT_EQ(test, fi_pep_bind(pep, &s->set.eq->fid, 0), 0);
	REFUSED(FAKE_BIND, -EBUSY, fi_pep_bind(pep, &second->fid, 0));
	KUNIT_EXPECT_EQ(test, fi_close(&s->set.eq->fid), -EBUSY);

	s->fake->call[FAKE_LISTEN].ret = -EADDRINUSE;
	KUNIT_EXPECT_EQ(test, fi_listen(pep), -EADDRINUSE);
	s->fake->call[FAKE_LISTEN].ret = 0;
	KUNIT_EXPECT_EQ(test, fi_listen(pep), 0);
	REFUSED(FAKE_LISTEN, -FI_EOPBADSTATE, fi_listen(pep));
	REFUSED(FAKE_BIND, -FI_EOPBADSTATE, fi_pep_bind(pep, &second->fid, 0));
	kofi_fake_close(test, &pep->fid);
}

/* fi_connect() and fi_accept() enable the endpoint, unless it is enabled. */
static void enables(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct kofi_fake_call *control = &s->fake->call[FAKE_CONTROL];
	struct fid_ep *ep = s->set.ep, *second = kofi_fake_ep(test, s->fake, s->set.domain);

	REFUSED(FAKE_CONNECT, -FI_ENOEQ, fi_connect(ep, text, NULL, 0));
	REFUSED(FAKE_ACCEPT, -FI_ENOEQ, fi_accept(ep, NULL, 0));
	KUNIT_EXPECT_EQ(test, kofi_fake_called(s->fake, FAKE_CONTROL), 0);
	bind_all(test, s);
	control->ret = -ENOSPC;
	REFUSED(FAKE_CONNECT, -ENOSPC, fi_connect(ep, text, NULL, 0));
	control->ret = 0;
	KUNIT_EXPECT_EQ(test, fi_connect(ep, text, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, control->arg[0], FI_ENABLE);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(s->fake, FAKE_CONTROL), 2);
	KUNIT_EXPECT_EQ(test, fi_connect(ep, text, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(s->fake, FAKE_CONTROL), 2);

	s->set.ep = second;
	bind_all(test, s);
	KUNIT_EXPECT_EQ(test, fi_accept(second, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(s->fake, FAKE_CONTROL), 3);
}

struct request {
	struct fi_eq_cm_entry entry;
	char data[4];
};

static unsigned int released;

static void release(void *entry)
{
	released++;
	fi_freeinfo(((struct fi_eq_cm_entry *)entry)->info);
}

/* Private data is behind the entry, and nothing of an event that must not be lost is lost. */
static void carries_data(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fi_eq_attr attr = { .size = 1, .wait_obj = FI_WAIT_UNSPEC };
	struct fid_eq *eq = kofi_fake_eq(test, s->set.fabric, &attr);
	struct request in = { .entry.fid = &s->pep->fid, .data = "abc" }, out = {};
	struct fi_eq_err_entry err = { .fid = &s->pep->fid, .err = ECONNREFUSED };
	struct kofi_eq_event *room[3];
	char got[8];
	u32 event;
	int i;

	KUNIT_ASSERT_EQ(test, fi_pep_bind(s->pep, &eq->fid, 0), 0);
	for (i = 0; i < 3; i++) {
		room[i] = kofi_eq_reserve(sizeof(err) + sizeof(in));
		KUNIT_ASSERT_NOT_NULL(test, room[i]);
	}
	in.entry.info = fi_dupinfo(s->fake->info);
	KUNIT_ASSERT_NOT_NULL(test, in.entry.info);
	/* The queue is full after the first, which has no memory of its own. */
	KUNIT_ASSERT_EQ(test, kofi_eq_write_event(eq, NULL, FI_SHUTDOWN, &in,
						  sizeof(in.entry), NULL), 0);
	KUNIT_EXPECT_EQ(test, kofi_eq_write_err(eq, NULL, &err), -EAGAIN);
	KUNIT_ASSERT_EQ(test, kofi_eq_write_event(eq, room[0], FI_CONNREQ, &in, sizeof(in),
						  release), 0);
	err.err_data = kmemdup("no", 3, GFP_KERNEL);
	err.err_data_size = 3;
	KUNIT_ASSERT_EQ(test, kofi_eq_write_err(eq, room[1], &err), 0);

	KUNIT_EXPECT_EQ(test, fi_eq_read(eq, &event, &out, sizeof(out), 0), sizeof(in.entry));
	KUNIT_EXPECT_EQ(test, event, FI_SHUTDOWN);
	KUNIT_EXPECT_EQ(test, fi_eq_read(eq, &event, &out, sizeof(out) - 1, 0), -FI_ETOOSMALL);
	KUNIT_EXPECT_EQ(test, fi_eq_sread(eq, &event, &out, sizeof(out), 0, 0), sizeof(in));
	KUNIT_EXPECT_EQ(test, event, FI_CONNREQ);
	KUNIT_EXPECT_PTR_EQ(test, out.entry.info, in.entry.info);
	KUNIT_EXPECT_STREQ(test, (char *)out.entry.data, "abc");
	KUNIT_EXPECT_EQ(test, fi_eq_read(eq, &event, &out, sizeof(out), 0), -FI_EAVAIL);
	memset(&err, 0, sizeof(err));
	err.err_data = got;
	err.err_data_size = sizeof(got);
	KUNIT_EXPECT_EQ(test, fi_eq_readerr(eq, &err, 0), sizeof(err));
	KUNIT_EXPECT_EQ(test, err.err, ECONNREFUSED);
	KUNIT_EXPECT_EQ(test, err.err_data_size, 3);
	KUNIT_EXPECT_STREQ(test, got, "no");

	/* The reader owns the entry. One that nobody has read goes with its endpoint. */
	KUNIT_EXPECT_EQ(test, kofi_eq_write_event(eq, room[2], FI_CONNREQ, &in, sizeof(in),
						  release), 0);
	released = 0;
	kofi_fake_close(test, &s->pep->fid);
	KUNIT_EXPECT_EQ(test, released, 1);
	KUNIT_EXPECT_EQ(test, fi_eq_read(eq, &event, &out, sizeof(out), 0), -EAGAIN);
}

/* Memory reserved for another event may be too small for an error. */
static void needs_room(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fi_eq_err_entry err = { .fid = &s->pep->fid, .err = ECONNREFUSED };
	struct kofi_eq_event *room = kofi_eq_reserve(sizeof(err) - 1);

	KUNIT_ASSERT_NOT_NULL(test, room);
	KUNIT_EXPECT_EQ(test, kofi_eq_write_err(s->set.eq, room, &err), -EINVAL);
	kofi_eq_unreserve(room);
	KUNIT_EXPECT_EQ(test, fi_eq_readerr(s->set.eq, &err, 0), -EAGAIN);
}

/* A copy names the same request. */
static void copies_handle(struct kunit *test)
{
	struct fid request = { .fclass = FI_CLASS_CONNREQ };
	struct fi_info *info = fi_allocinfo(), *copy;

	KUNIT_ASSERT_NOT_NULL(test, info);
	KUNIT_EXPECT_NULL(test, info->handle);
	info->handle = &request;
	copy = fi_dupinfo(info);
	KUNIT_EXPECT_NOT_NULL(test, copy);
	if (copy)
		KUNIT_EXPECT_PTR_EQ(test, copy->handle, &request);
	fi_freeinfo(copy);
	fi_freeinfo(info);
}

/* --- the connector --- */

static struct {
	struct fid	*removed;
	const char	*node;
	const char	*service;
	u64		flags;
	int		ret;
	unsigned int	derived;
} world;

static int derive(const struct fi_info *info, const char *node, const char *service, u64 flags,
		  const struct fi_info *hints, struct fi_info **derived)
{
	world.node = node;
	world.service = service;
	world.flags = flags;
	world.derived++;
	if (world.ret)
		return world.ret;
	*derived = fi_dupinfo(info);
	if (!*derived)
		return -ENOMEM;
	(*derived)->ep_attr->type = FI_EP_MSG;
	(*derived)->ep_attr->protocol = FI_PROTO_KOFI_MSG;
	return 0;
}

static int connector_pep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
			 void *context)
{
	return world.ret ?: fabric->ops->passive_ep(fabric, info, pep, context);
}

static int connector_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			void *context)
{
	return world.ret ?: domain->ops->endpoint(domain, info, ep, context);
}

static void connector_removed(struct fid *fid)
{
	world.removed = fid;
}

static const struct kofi_connector connector = {
	.owner		= THIS_MODULE,
	.derive		= derive,
	.passive_ep	= connector_pep,
	.endpoint	= connector_ep,
	.removed	= connector_removed,
};

static void deregister(void *unused)
{
	kofi_connector_deregister(&connector);
}

/* Hints for FI_EP_MSG, which an earlier suite may have had, load the real connector. */
static int unload_other(void)
{
	char *argv[4] = {}, *envp[2] = {};

	argv[0] = "/bin/sh";
	argv[1] = "-c";
	argv[2] = "rmmod kofi_msg";
	envp[0] = "PATH=/sbin:/usr/sbin:/bin:/usr/bin";
	return call_usermodehelper(argv[0], argv, envp, UMH_WAIT_PROC);
}

static void use_connector(struct kunit *test)
{
	int ret;

	memset(&world, 0, sizeof(world));
	ret = kofi_connector_register(&connector);
	if (ret == -EEXIST)
		ret = unload_other() ?: kofi_connector_register(&connector);
	KUNIT_ASSERT_EQ(test, ret, 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, deregister, NULL), 0);
}

static void registers_one(struct kunit *test)
{
	struct kofi_connector part = connector;

	use_connector(test);
	KUNIT_EXPECT_EQ(test, kofi_connector_register(&part), -EEXIST);
	/* One that isn't registered doesn't go. */
	kofi_connector_deregister(&part);
	KUNIT_EXPECT_EQ(test, kofi_connector_register(&part), -EEXIST);
	KUNIT_EXPECT_EQ(test, kofi_connector_register(NULL), -EINVAL);
	part.derive = NULL;
	KUNIT_EXPECT_EQ(test, kofi_connector_register(&part), -EINVAL);
	part = connector;
	part.passive_ep = NULL;
	KUNIT_EXPECT_EQ(test, kofi_connector_register(&part), -EINVAL);
	part = connector;
	part.endpoint = NULL;
	KUNIT_EXPECT_EQ(test, kofi_connector_register(&part), -EINVAL);
	part = connector;
	part.removed = NULL;
	KUNIT_EXPECT_EQ(test, kofi_connector_register(&part), -EINVAL);
}

static struct fi_info *msg_hints(struct kunit *test, const char *provider)
{
	struct fi_info *hints = fi_allocinfo_for(provider, NULL, NULL);

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->ep_attr->type = FI_EP_MSG;
	return hints;
}

/* Entries are derived for FI_EP_MSG alone, and for providers that can carry connections. */
static void derives_entries(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_make(test, "fake");
	struct fi_info *hints = msg_hints(test, "fake"), *list;
	u32 version = fi_version();

	use_connector(test);
	KUNIT_ASSERT_EQ(test, kofi_fake_register(fake), 0);
	KUNIT_EXPECT_EQ(test, fi_getinfo(version, "n", "s", 0, hints, &list), -ENODATA);
	KUNIT_EXPECT_EQ(test, world.derived, 0);

	fake->provider.lanes = true;
	KUNIT_EXPECT_EQ(test, fi_getinfo(version, "n", "s", FI_SOURCE, hints, &list), 0);
	KUNIT_EXPECT_EQ(test, world.derived, 1);
	KUNIT_EXPECT_STREQ(test, world.node, "n");
	KUNIT_EXPECT_STREQ(test, world.service, "s");
	KUNIT_EXPECT_EQ(test, world.flags, FI_SOURCE);
	/* The provider doesn't hear of addresses that aren't its own. */
	KUNIT_EXPECT_EQ(test, fake->call[FAKE_GETINFO].arg[1], 0);
	KUNIT_EXPECT_EQ(test, fake->call[FAKE_GETINFO].arg[2], 0);
	if (list) {
		KUNIT_EXPECT_NULL(test, list->next);
		KUNIT_EXPECT_EQ(test, list->ep_attr->type, FI_EP_MSG);
		KUNIT_EXPECT_EQ(test, list->ep_attr->protocol, FI_PROTO_KOFI_MSG);
		KUNIT_EXPECT_STREQ(test, list->fabric_attr->prov_name, "fake");
	}
	fi_freeinfo(list);

	/* The caller's hints count for what was derived. */
	hints->caps = FI_ATOMIC;
	KUNIT_EXPECT_EQ(test, fi_getinfo(version, "n", "s", 0, hints, &list), -ENODATA);
	KUNIT_EXPECT_EQ(test, world.derived, 2);
	hints->caps = 0;
	world.ret = -ENODATA;
	KUNIT_EXPECT_EQ(test, fi_getinfo(version, "n", "s", 0, hints, &list), -ENODATA);
	world.ret = -EINVAL;
	KUNIT_EXPECT_EQ(test, fi_getinfo(version, "n", "s", 0, hints, &list), -EINVAL);
	world.ret = 0;

	hints->ep_attr->type = FI_EP_RDM;
	KUNIT_EXPECT_EQ(test, fi_getinfo(version, NULL, NULL, 0, hints, &list), 0);
	KUNIT_EXPECT_EQ(test, world.derived, 4);
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

/* Its endpoints are the domain's children, and it hears of the removal of their device. */
static void opens_endpoints(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fi_mr_alloc_attr attr = { .max_pages = 1, .access = FI_REMOTE_READ };
	struct fi_info *info = s->fake->info;
	struct fid_pep *pep = NULL;
	struct fid_mr *mr = NULL;
	struct fid_ep *ep = NULL;

	info->ep_attr->protocol = FI_PROTO_KOFI_MSG;
	use_connector(test);
	world.ret = -ENOSPC;
	REFUSED(FAKE_EP, -ENOSPC, fi_endpoint(s->set.domain, info, &ep, CTX));
	REFUSED(FAKE_PEP, -ENOSPC, fi_passive_ep(s->set.fabric, info, &pep, CTX));
	world.ret = 0;
	KUNIT_ASSERT_EQ(test, fi_endpoint(s->set.domain, info, &ep, CTX), 0);
	kofi_fake_close_later(test, &ep->fid);
	KUNIT_ASSERT_EQ(test, fi_passive_ep(s->set.fabric, info, &pep, CTX), 0);
	kofi_fake_close_later(test, &pep->fid);
	KUNIT_EXPECT_EQ(test, ep->fid.fclass, FI_CLASS_EP);
	KUNIT_EXPECT_PTR_EQ(test, ep->fid.context, CTX);
	KUNIT_EXPECT_EQ(test, pep->fid.fclass, FI_CLASS_PEP);
	KUNIT_EXPECT_PTR_EQ(test, pep->fid.context, CTX);
	KUNIT_EXPECT_EQ(test, fi_close(&s->set.domain->fid), -EBUSY);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &s->set.eq->fid, 0), 0);
	/* The provider doesn't know the endpoint. */
	attr.cq = s->set.cq;
	attr.ep = ep;
	REFUSED(FAKE_MR_ALLOC, -EOPNOTSUPP, fi_mr_alloc(s->set.domain, &attr, &mr, NULL));
	/* The connected endpoint's requirements. */
	KUNIT_EXPECT_EQ(test, fi_enable(ep), -FI_ENOCQ);

	KUNIT_EXPECT_NULL(test, world.removed);
	kofi_device_removed(&s->set.domain->fid, "fake-dev0");
	KUNIT_EXPECT_PTR_EQ(test, world.removed, &ep->fid);
	KUNIT_EXPECT_EQ(test, fi_connect(ep, text, NULL, 0), -ENODEV);
	kofi_fake_close(test, &ep->fid);
	kofi_fake_close(test, &pep->fid);
	info->ep_attr->protocol = 0;
}

static struct kunit_case connect_cases[] = {
	KUNIT_CASE(refuses_arguments),
	KUNIT_CASE(passes_arguments),
	KUNIT_CASE(passive_arguments),
	KUNIT_CASE(listens),
	KUNIT_CASE(enables),
	KUNIT_CASE(carries_data),
	KUNIT_CASE(needs_room),
	KUNIT_CASE(copies_handle),
	KUNIT_CASE(registers_one),
	KUNIT_CASE(derives_entries),
	KUNIT_CASE(opens_endpoints),
	{}
};

static struct kunit_suite connect_suite = {
	.name = "kofi_connect",
	.test_cases = connect_cases,
};

kunit_test_suite(connect_suite);

MODULE_DESCRIPTION("KUnit tests of connections in kOFI's core");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
MODULE_IMPORT_NS(KOFI_TEST);
