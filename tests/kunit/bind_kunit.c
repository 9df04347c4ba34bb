// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Objects that endpoints and domains may be bound to, and bindings that an endpoint needs
 * before it can be enabled.
 */
#include <linux/string.h>
#include "fake.h"

#define FID(member)	offsetof(struct kofi_fake_set, member)

static struct fid *fid_of(struct kofi_fake_set *set, size_t member)
{
	/* The fid is the first member of each. */
	return *(struct fid **)((void *)set + member);
}

static struct kofi_fake_set *open_set(struct kunit *test,
				      struct kofi_fake *fake)
{
	struct kofi_fake_set *set = kunit_kzalloc(test, sizeof(*set),
						  GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, set);
	kofi_fake_open_all(test, fake, set);
	return set;
}

#define TX	FI_TRANSMIT
#define RX	FI_RECV
#define SEL	FI_SELECTIVE_COMPLETION

/* Each class with valid flags and with those of other classes. */
static const struct match {
	const char *desc;
	size_t member;
	u64 flags;
	int ret;
} matches[] = {
	{ "av", FID(av), 0, 0 },
	{ "av with flags", FID(av), TX, -FI_EBADFLAGS },
	{ "eq", FID(eq), 0, 0 },
	{ "eq with flags", FID(eq), RX, -FI_EBADFLAGS },
	{ "cq for sending", FID(cq), TX, 0 },
	{ "cq for receiving", FID(cq), RX, 0 },
	{ "cq for both", FID(cq), TX | RX, 0 },
	{ "cq, selectively", FID(cq), TX | SEL, 0 },
	{ "cq, both selectively", FID(cq), TX | RX | SEL, 0 },
	{ "cq for nothing", FID(cq), 0, -FI_EBADFLAGS },
	{ "cq for nothing, selectively", FID(cq), SEL, -FI_EBADFLAGS },
	{ "cq for reading", FID(cq), TX | FI_READ, -FI_EBADFLAGS },
	{ "cntr for sending", FID(cntr), FI_SEND, 0 },
	{ "cntr for receiving", FID(cntr), FI_RECV, 0 },
	{ "cntr for reading", FID(cntr), FI_READ, 0 },
	{ "cntr for writing", FID(cntr), FI_WRITE, 0 },
	{ "cntr for being read", FID(cntr), FI_REMOTE_READ, 0 },
	{ "cntr for being written", FID(cntr), FI_REMOTE_WRITE, 0 },
	{ "cntr for all", FID(cntr), FI_SEND | FI_RECV | FI_READ | FI_WRITE |
	  FI_REMOTE_READ | FI_REMOTE_WRITE, 0 },
	{ "cntr for nothing", FID(cntr), 0, -FI_EBADFLAGS },
	{ "cntr, selectively", FID(cntr), FI_SEND | SEL, -FI_EBADFLAGS },
	{ "cntr for tags", FID(cntr), FI_TAGGED, -FI_EBADFLAGS },
	{ "ep", FID(ep), TX, -EINVAL },
	{ "mr", FID(mr), 0, -EINVAL },
	{ "domain", FID(domain), 0, -EINVAL },
	{ "fabric", FID(fabric), 0, -EINVAL },
};

KUNIT_ARRAY_PARAM_DESC(match, matches, desc);

static void ep_with_class(struct kunit *test)
{
	const struct match *match = test->param_value;
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct kofi_fake_set *set = open_set(test, fake);
	const struct kofi_fake_call *call = &fake->call[FAKE_BIND];
	struct fid *fid = fid_of(set, match->member);

	KUNIT_EXPECT_EQ(test, fi_ep_bind(set->ep, fid, match->flags),
			match->ret);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_BIND), !match->ret);
	if (match->ret)
		return;
	KUNIT_EXPECT_PTR_EQ(test, call->object, &set->ep->fid);
	KUNIT_EXPECT_PTR_EQ(test, (struct fid *)call->arg[0], fid);
	KUNIT_EXPECT_EQ(test, call->arg[1], match->flags);
	/* A second binding is refused. */
	KUNIT_EXPECT_EQ(test, fi_ep_bind(set->ep, fid, match->flags), -EBUSY);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_BIND), 1);
}

static void domain_with_class(struct kunit *test)
{
	const struct match *match = test->param_value;
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct kofi_fake_set *set = open_set(test, fake);
	struct fid *fid = fid_of(set, match->member);
	int ret = match->member != FID(eq) ? -EINVAL : match->ret;

	KUNIT_EXPECT_EQ(test, fi_domain_bind(set->domain, fid, match->flags),
			ret);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_BIND), !ret);
	if (!ret)
		KUNIT_EXPECT_EQ(test, fi_domain_bind(set->domain, fid, 0),
				-EBUSY);
}

static void bind_to_nothing(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct kofi_fake_set *set = open_set(test, fake);
	struct kofi_fake_obj nothing = { .fid.fclass = FI_CLASS_EQ };

	KUNIT_EXPECT_EQ(test, fi_ep_bind(set->ep, NULL, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(set->ep, &nothing.fid, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_domain_bind(set->domain, NULL, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_domain_bind(set->domain, &nothing.fid, 0),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_BIND), 0);
}

/* Objects of the same fabric, and of another one. */
static void other_kin(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct kofi_fake_set *set = open_set(test, fake);
	struct kofi_fake_set *far = open_set(test, fake);
	struct kofi_fake_set near = { .fabric = set->fabric };

	near.domain = kofi_fake_domain(test, fake, set->fabric);
	near.av = kofi_fake_av(test, near.domain);
	near.cq = kofi_fake_cq(test, near.domain, NULL);
	near.cntr = kofi_fake_cntr(test, near.domain, NULL);
#define EXPECT(err, kin, member, flags)					\
	KUNIT_EXPECT_EQ(test, fi_ep_bind(set->ep, &(kin)->member->fid,	\
					 flags), err)
	EXPECT(-FI_EDOMAIN, &near, av, 0);
	EXPECT(-FI_EDOMAIN, &near, cq, TX);
	EXPECT(-FI_EDOMAIN, &near, cntr, FI_READ);
	EXPECT(-FI_EDOMAIN, far, av, 0);
	EXPECT(-FI_EDOMAIN, far, cq, TX);
	EXPECT(-FI_EDOMAIN, far, cntr, FI_READ);
	EXPECT(-FI_EDOMAIN, far, eq, 0);
#undef EXPECT
	KUNIT_EXPECT_EQ(test, fi_domain_bind(set->domain, &far->eq->fid, 0),
			-FI_EDOMAIN);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_BIND), 0);
}

/* Each purpose needs exactly one object; one object may serve several purposes. */
static void purposes(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct kofi_fake_set *set = open_set(test, fake);
	struct fid *cntr = &kofi_fake_cntr(test, set->domain, NULL)->fid;
	struct fid *cq = &kofi_fake_cq(test, set->domain, NULL)->fid;
	struct fid *eq = &kofi_fake_eq(test, set->fabric, NULL)->fid;
	struct fid *av = &kofi_fake_av(test, set->domain)->fid;
	struct fid_ep *ep = kofi_fake_ep(test, fake, set->domain);

#define EXPECT(err, fid, flags) \
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, fid, flags), err)
	EXPECT(0, &set->cq->fid, TX);
	EXPECT(-EBUSY, cq, TX);
	EXPECT(-EBUSY, cq, TX | RX);
	EXPECT(-EBUSY, cq, TX | SEL);
	EXPECT(0, cq, RX | SEL);
	EXPECT(-EBUSY, &set->cq->fid, RX);

	EXPECT(0, &set->cntr->fid, FI_READ | FI_WRITE);
	EXPECT(-EBUSY, cntr, FI_WRITE | FI_SEND);
	EXPECT(0, cntr, FI_SEND | FI_RECV);
	EXPECT(0, &set->cntr->fid, FI_REMOTE_READ);
	EXPECT(-EBUSY, cntr, FI_REMOTE_READ);

	EXPECT(0, &set->av->fid, 0);
	EXPECT(-EBUSY, av, 0);
	EXPECT(0, &set->eq->fid, 0);
	EXPECT(-EBUSY, eq, 0);
#undef EXPECT
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_BIND), 7);
}

/* An object may be bound to two endpoints, and an EQ to a domain as well. */
static void shared(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct kofi_fake_set *set = open_set(test, fake);
	struct fid_ep *other = kofi_fake_ep(test, fake, set->domain);

	kofi_fake_bind_ep(test, set);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(other, &set->av->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(other, &set->cq->fid, TX | RX), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(other, &set->eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(set->ep, &set->eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_domain_bind(set->domain, &set->eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_enable(set->ep), 0);
	KUNIT_EXPECT_EQ(test, fi_enable(other), 0);
}

/* A binding that the provider refuses leaves no trace. */
static void provider_refuses(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct kofi_fake_set *set = open_set(test, fake);
	struct fid *cntr = &set->cntr->fid;

	fake->call[FAKE_BIND].ret = -ENOSPC;
	KUNIT_EXPECT_EQ(test, fi_ep_bind(set->ep, cntr, FI_READ), -ENOSPC);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(set->ep, &set->av->fid, 0), -ENOSPC);
	KUNIT_EXPECT_EQ(test, fi_domain_bind(set->domain, &set->eq->fid, 0),
			-ENOSPC);
	fake->call[FAKE_BIND].ret = 0;
	KUNIT_EXPECT_EQ(test, fi_enable(set->ep), -FI_ENOAV);
	kofi_fake_close(test, cntr);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(set->ep, &set->av->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_domain_bind(set->domain, &set->eq->fid, 0), 0);
}

/* Enabling */

static const struct need {
	const char *desc;
	u64 caps;
	u64 cq;
	u64 cntr;
	int ret;
} needs[] = {
	{ "both, nothing", FI_SEND | FI_RECV, 0, 0, -FI_ENOCQ },
	{ "both, cq for sending", FI_SEND | FI_RECV, TX, 0, -FI_ENOCQ },
	{ "both, cq for receiving", FI_SEND | FI_RECV, RX, 0, -FI_ENOCQ },
	{ "both, cq for both", FI_SEND | FI_RECV, TX | RX, 0, 0 },
	{ "both, cq and cntr", FI_SEND | FI_RECV, TX, FI_RECV, 0 },
	{ "both, cntr and cq", FI_SEND | FI_RECV, RX, FI_SEND, 0 },
	{ "both, cntr for both", FI_SEND | FI_RECV, 0, FI_SEND | FI_RECV, 0 },
	{ "both, cntr of another use", FI_SEND | FI_RECV, RX, FI_REMOTE_READ,
	  -FI_ENOCQ },
	{ "sending, nothing", FI_SEND, 0, 0, -FI_ENOCQ },
	{ "sending, cq for receiving", FI_SEND, RX, 0, -FI_ENOCQ },
	{ "sending, cq", FI_SEND, TX, 0, 0 },
	{ "sending, selectively", FI_SEND, TX | SEL, 0, 0 },
	{ "receiving, nothing", FI_RECV, 0, 0, -FI_ENOCQ },
	{ "receiving, cq for sending", FI_RECV, TX, 0, -FI_ENOCQ },
	{ "receiving, cq", FI_RECV, RX, 0, 0 },
	{ "reading, nothing", FI_READ, 0, 0, -FI_ENOCQ },
	{ "reading, cq", FI_READ, TX, 0, 0 },
	{ "reading, cntr", FI_READ, 0, FI_READ, 0 },
	{ "writing, cntr", FI_WRITE, 0, FI_WRITE, 0 },
	{ "being read and written", FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0 },
	{ "messages either way, nothing", FI_MSG, 0, 0, -FI_ENOCQ },
	{ "messages either way, cq for sending", FI_MSG, TX, 0, -FI_ENOCQ },
	{ "messages either way, cq for both", FI_MSG, TX | RX, 0, 0 },
	{ "tagged ones, cq for receiving", FI_TAGGED, RX, 0, -FI_ENOCQ },
	{ "messages one way, cq", FI_MSG | FI_RECV, RX, 0, 0 },
	{ "rma either way, nothing", FI_RMA, 0, 0, -FI_ENOCQ },
	{ "rma either way, cq", FI_RMA, TX, 0, 0 },
	{ "target of rma", FI_RMA | FI_REMOTE_WRITE, 0, 0, 0 },
	{ "all, as none are named, nothing", 0, 0, 0, -FI_ENOCQ },
	{ "all, cq for sending", 0, TX, 0, -FI_ENOCQ },
	{ "all, cq for both", 0, TX | RX, 0, 0 },
};

KUNIT_ARRAY_PARAM_DESC(need, needs, desc);

static void enable_needs(struct kunit *test)
{
	const struct need *need = test->param_value;
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct kofi_fake_set *set = open_set(test, fake);
	struct fid_ep *ep;

	fake->info->caps = need->caps;
	ep = kofi_fake_ep(test, fake, set->domain);
	if (need->cq)
		KUNIT_ASSERT_EQ(test, fi_ep_bind(ep, &set->cq->fid, need->cq),
				0);
	if (need->cntr)
		KUNIT_ASSERT_EQ(test, fi_ep_bind(ep, &set->cntr->fid,
						 need->cntr), 0);
	KUNIT_EXPECT_EQ(test, fi_enable(ep), -FI_ENOAV);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &set->av->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_enable(ep), need->ret);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_CONTROL),
			!need->ret);
}

/* A connected endpoint needs an event queue, an unconnected one an address vector. */
static void enable_types(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct kofi_fake_set *set = open_set(test, fake);
	struct fi_ep_attr *attr = fake->info->ep_attr;
	struct fid_ep *ep = NULL;
	enum fi_ep_type type;

	for (type = FI_EP_UNSPEC; type <= FI_EP_RDM; type++) {
		const bool msg = type == FI_EP_MSG;

		attr->type = type;
		ep = kofi_fake_ep(test, fake, set->domain);
		KUNIT_ASSERT_EQ(test, fi_ep_bind(ep, &set->cq->fid, TX | RX), 0);
		KUNIT_EXPECT_EQ(test, fi_enable(ep), msg ? -FI_ENOEQ : -FI_ENOAV);
		KUNIT_ASSERT_EQ(test, fi_ep_bind(ep, msg ? &set->eq->fid : &set->av->fid, 0),
				0);
		KUNIT_EXPECT_EQ(test, fi_enable(ep), 0);
	}
	attr->type = type;
	KUNIT_EXPECT_EQ(test, fi_endpoint(set->domain, fake->info, &ep, NULL), -EINVAL);
	attr->type = FI_EP_RDM;
}

static void enable_once(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct kofi_fake_set *set = open_set(test, fake);
	const struct kofi_fake_call *call = &fake->call[FAKE_CONTROL];

	kofi_fake_bind_ep(test, set);
	KUNIT_EXPECT_EQ(test, fi_control(&set->ep->fid, FI_ENABLE, set), 0);
	KUNIT_EXPECT_PTR_EQ(test, call->object, &set->ep->fid);
	KUNIT_EXPECT_EQ(test, call->arg[0], FI_ENABLE);
	KUNIT_EXPECT_EQ(test, call->arg[1], 0);
	KUNIT_EXPECT_EQ(test, fi_enable(set->ep), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_control(&set->ep->fid, FI_ENABLE, NULL),
			-FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_CONTROL), 1);
	/* After fi_enable() no object can be bound any more. */
	KUNIT_EXPECT_EQ(test, fi_ep_bind(set->ep, &set->cntr->fid, FI_READ),
			-FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(set->ep, &set->eq->fid, 0),
			-FI_EOPBADSTATE);
	kofi_fake_close(test, &set->cntr->fid);
}

/* A disabled endpoint stays disabled, and may be disabled again. */
static void disable_enabled(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct kofi_fake_set *set = open_set(test, fake);
	const struct kofi_fake_call *call = &fake->call[FAKE_CONTROL];

	kofi_fake_bind_ep(test, set);
	KUNIT_EXPECT_EQ(test, fi_disable(set->ep), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_CONTROL), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(set->ep), 0);
	KUNIT_EXPECT_EQ(test, fi_disable(set->ep), 0);
	KUNIT_EXPECT_PTR_EQ(test, call->object, &set->ep->fid);
	KUNIT_EXPECT_EQ(test, call->arg[0], FI_DISABLE);
	KUNIT_EXPECT_EQ(test, call->arg[1], 0);
	KUNIT_EXPECT_EQ(test, fi_control(&set->ep->fid, FI_DISABLE, set), 0);
	KUNIT_EXPECT_EQ(test, call->arg[1], 0);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_CONTROL), 3);
	KUNIT_EXPECT_EQ(test, fi_enable(set->ep), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(set->ep, &set->cntr->fid, FI_READ),
			-FI_EOPBADSTATE);
	kofi_fake_close(test, &set->cntr->fid);
}

static void remove_domain(struct kofi_fake *fake, struct fid *fid, void *arg)
{
	struct kofi_fake_set *set = arg;

	if (fake->call[FAKE_CONTROL].arg[0] == FI_ENABLE)
		kofi_device_removed(&set->domain->fid, "fake-dev0");
}

/* When the device goes away, and what the provider's enabling returns. */
static const struct dying {
	const char	*desc;
	bool		enable;
	bool		meanwhile;
	int		ret;
	int		expected;	/* of fi_disable() */
} dyings[] = {
	{ "never enabled", false, false, 0, -ENODEV },
	{ "enabled", true, false, 0, 0 },
	{ "while it is enabled", true, true, 0, 0 },
	{ "while enabling fails", true, true, -EIO, -ENODEV },
	{ "after enabling failed", true, false, -EIO, -ENODEV },
};

KUNIT_ARRAY_PARAM_DESC(dying, dyings, desc);

/* The operations of a dead endpoint may still be completing, so the provider is asked to wait. */
static void disable_dead(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct kofi_fake_set *set = open_set(test, fake);
	struct kofi_fake_call *call = &fake->call[FAKE_CONTROL];
	const struct dying *dying = test->param_value;

	kofi_fake_bind_ep(test, set);
	call->ret = dying->ret;
	if (dying->meanwhile) {
		call->hook_arg = set;
		call->hook = remove_domain;
	}
	if (dying->enable)
		KUNIT_EXPECT_EQ(test, fi_enable(set->ep),
				dying->meanwhile ? -ENODEV : dying->ret);
	call->ret = 0;
	if (!dying->meanwhile)
		kofi_device_removed(&set->domain->fid, "fake-dev0");
	atomic_set(&call->count, 0);
	KUNIT_EXPECT_EQ(test, fi_disable(set->ep), dying->expected);
	KUNIT_EXPECT_EQ(test, fi_control(&set->ep->fid, FI_DISABLE, NULL), dying->expected);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_CONTROL), dying->expected ? 0 : 2);
	if (!dying->expected)
		KUNIT_EXPECT_EQ(test, call->arg[0], FI_DISABLE);
	KUNIT_EXPECT_EQ(test, fi_enable(set->ep), -ENODEV);
	kofi_fake_close(test, &set->cntr->fid);
}

static void enable_fails(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct kofi_fake_set *set = open_set(test, fake);

	kofi_fake_bind_ep(test, set);
	fake->call[FAKE_CONTROL].ret = -ENOSPC;
	KUNIT_EXPECT_EQ(test, fi_enable(set->ep), -ENOSPC);
	KUNIT_EXPECT_EQ(test, fi_enable(set->ep), -ENOSPC);
	/* The state is unchanged: objects can be bound, and the endpoint can be enabled. */
	KUNIT_EXPECT_EQ(test, fi_ep_bind(set->ep, &set->cntr->fid, FI_READ), 0);
	fake->call[FAKE_CONTROL].ret = 0;
	KUNIT_EXPECT_EQ(test, fi_enable(set->ep), 0);
}

struct inside {
	struct kofi_fake_set *set;
	int enabled;
	int bound;
};

static void use_inside(struct kofi_fake *fake, struct fid *fid, void *arg)
{
	struct inside *inside = arg;
	struct kofi_fake_set *set = inside->set;

	fake->call[FAKE_CONTROL].hook = NULL;
	inside->enabled = fi_enable(set->ep);
	inside->bound = fi_ep_bind(set->ep, &set->eq->fid, 0);
}

/* During the provider's enable, nothing else can be bound. */
static void enabling(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct inside inside = { .set = open_set(test, fake) };

	kofi_fake_bind_ep(test, inside.set);
	fake->call[FAKE_CONTROL].hook = use_inside;
	fake->call[FAKE_CONTROL].hook_arg = &inside;
	KUNIT_EXPECT_EQ(test, fi_enable(inside.set->ep), 0);
	KUNIT_EXPECT_EQ(test, inside.enabled, -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, inside.bound, -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_CONTROL), 1);
}

static void enable_inside(struct kofi_fake *fake, struct fid *fid, void *arg)
{
	struct inside *inside = arg;

	inside->enabled = fi_enable(inside->set->ep);
}

/* A binding counts only after the provider has accepted it. */
static void binding(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct inside inside = { .set = open_set(test, fake) };
	struct kofi_fake_call *call = &fake->call[FAKE_BIND];
	struct kofi_fake_set *set = inside.set;

	call->hook = enable_inside;
	call->hook_arg = &inside;
	KUNIT_EXPECT_EQ(test, fi_ep_bind(set->ep, &set->av->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, inside.enabled, -EBUSY);
	call->ret = -ENOSPC;
	KUNIT_EXPECT_EQ(test, fi_ep_bind(set->ep, &set->cq->fid, TX | RX), -ENOSPC);
	KUNIT_EXPECT_EQ(test, inside.enabled, -EBUSY);
	KUNIT_EXPECT_EQ(test, fi_enable(set->ep), -FI_ENOCQ);
	call->ret = 0;
	KUNIT_EXPECT_EQ(test, fi_ep_bind(set->ep, &set->cq->fid, TX | RX), 0);
	KUNIT_EXPECT_EQ(test, inside.enabled, -EBUSY);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_CONTROL), 0);
	KUNIT_EXPECT_EQ(test, fi_enable(set->ep), 0);
}

static struct kunit_case bind_cases[] = {
	KUNIT_CASE_PARAM(ep_with_class, match_gen_params),
	KUNIT_CASE_PARAM(domain_with_class, match_gen_params),
	KUNIT_CASE(bind_to_nothing),
	KUNIT_CASE(other_kin),
	KUNIT_CASE(purposes),
	KUNIT_CASE(shared),
	KUNIT_CASE(provider_refuses),
	KUNIT_CASE_PARAM(enable_needs, need_gen_params),
	KUNIT_CASE(enable_types),
	KUNIT_CASE(enable_once),
	KUNIT_CASE(disable_enabled),
	KUNIT_CASE_PARAM(disable_dead, dying_gen_params),
	KUNIT_CASE(enable_fails),
	KUNIT_CASE(enabling),
	KUNIT_CASE(binding),
	{}
};

static struct kunit_suite bind_suite = {
	.name = "kofi_bind",
	.test_cases = bind_cases,
};

kunit_test_suite(bind_suite);

MODULE_DESCRIPTION("KUnit tests of binding and enabling in kOFI");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
MODULE_IMPORT_NS(KOFI_TEST);
