// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Control calls: each with objects of all wrong classes, from a handler, after removal of the
 * device, without the provider's op, and with valid arguments.
 */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include "fake.h"

#define CTX	((void *)0x3333)
#define COMMAND	0x10001

static const u8 memory[64];

/**
 * struct scene - objects that the calls need
 * @fake: the provider
 * @set: objects of @fake
 * @pep: passive endpoint
 * @ep_attr: attributes of @info
 * @info: entry for passive endpoints
 */
struct scene {
	struct kofi_fake *fake;
	struct kofi_fake_set set;
	struct fid_pep *pep;
	struct fi_ep_attr ep_attr;
	struct fi_info info;
};

#define TO(cls, f)	container_of(f, struct fid_ ## cls, fid)

/* Close what an opening call has opened. */
#define OPENS(name, cls, call)						\
static int call_##name(struct fid *fid, struct scene *scene)		\
{									\
	struct fid_##cls *new = NULL;					\
	int ret = call;							\
									\
	return ret ?: fi_close(&new->fid);				\
}

static struct fi_av_attr av_attr;
static struct fi_cq_attr cq_attr;
static struct fi_cntr_attr cntr_attr;
static struct fi_eq_attr eq_attr;

static const struct kvec mr_iov = {
	.iov_base = (void *)memory, .iov_len = sizeof(memory),
};

static const struct fi_mr_attr mr_attr = {
	.type = FI_MR_KVEC, .mr_iov = &mr_iov, .iov_count = 1,
	.access = FI_REMOTE_READ,
};

static int alloc_mr(struct fid *fid, struct scene *scene, struct fid_mr **mr)
{
	const struct fi_mr_alloc_attr attr = {
		.max_pages = 1, .access = FI_REMOTE_READ, .cq = scene->set.cq,
	};

	return fi_mr_alloc(TO(domain, fid), &attr, mr, CTX);
}

OPENS(domain, domain, fi_domain(TO(fabric, fid), scene->fake->info, &new, CTX))
OPENS(eq_open, eq, fi_eq_open(TO(fabric, fid), &eq_attr, &new, CTX))
OPENS(av_open, av, fi_av_open(TO(domain, fid), &av_attr, &new, CTX))
OPENS(cq_open, cq, fi_cq_open(TO(domain, fid), &cq_attr, &new, CTX))
OPENS(cntr_open, cntr, fi_cntr_open(TO(domain, fid), &cntr_attr, &new, CTX))
OPENS(endpoint, ep, fi_endpoint(TO(domain, fid), scene->fake->info, &new, CTX))
OPENS(ep_open, ep, fi_ep_open(TO(domain, fid), scene->fake->info, &new, CTX))
OPENS(passive_ep, pep, fi_passive_ep(TO(fabric, fid), &scene->info, &new, CTX))
OPENS(mr_reg, mr, fi_mr_reg(TO(domain, fid), memory, sizeof(memory),
			    FI_REMOTE_READ, 0, 0, 0, &new, CTX))
OPENS(mr_regv, mr, fi_mr_regv(TO(domain, fid), &mr_iov, 1, FI_REMOTE_READ, 0,
			      0, 0, &new, CTX))
OPENS(mr_regattr, mr, fi_mr_regattr(TO(domain, fid), &mr_attr, 0, &new))
OPENS(mr_alloc, mr, alloc_mr(fid, scene, &new))

#define CALLS(name, call)						\
static int call_##name(struct fid *fid, struct scene *scene)		\
{									\
	return call;							\
}

static fi_addr_t addr;
static size_t len;
static char text[8];
static void *vector;

CALLS(domain_bind, fi_domain_bind(TO(domain, fid), &scene->set.eq->fid, 0))
CALLS(ep_bind, fi_ep_bind(TO(ep, fid), &scene->set.eq->fid, 0))
CALLS(bind, fi_bind(TO(ep, fid), &scene->set.cntr->fid, FI_READ))
CALLS(enable, fi_enable(TO(ep, fid)))
CALLS(disable, fi_disable(TO(ep, fid)))
CALLS(cancel, fi_cancel(fid, CTX))
CALLS(flush, fi_flush(TO(ep, fid), 7, 100))
CALLS(setopt, fi_setopt(fid, FI_OPT_ENDPOINT, FI_OPT_TX_SIZE, &len,
			sizeof(len)))
CALLS(getopt, fi_getopt(fid, FI_OPT_ENDPOINT, FI_OPT_TX_SIZE, text, &len))
CALLS(getname, fi_getname(fid, text, &len))
CALLS(setname, fi_setname(fid, text, sizeof(text)))
CALLS(pep_bind, fi_pep_bind(TO(pep, fid), &scene->set.eq->fid, 0))
CALLS(listen, fi_listen(TO(pep, fid)))
CALLS(reject, fi_reject(TO(pep, fid), &scene->set.eq->fid, NULL, 0))
CALLS(connect, fi_connect(TO(ep, fid), text, NULL, 0))
CALLS(accept, fi_accept(TO(ep, fid), text, sizeof(text)))
CALLS(shutdown, fi_shutdown(TO(ep, fid), 0))
CALLS(getpeer, fi_getpeer(TO(ep, fid), text, &len))
CALLS(av_insert, fi_av_insert(TO(av, fid), memory, 2, &addr, 0, CTX))
CALLS(av_remove, fi_av_remove(TO(av, fid), &addr, 1, 0))
CALLS(av_lookup, fi_av_lookup(TO(av, fid), 7, text, &len))
/* The call can't return an errno. */
CALLS(av_straddr, fi_av_straddr(TO(av, fid), memory, text, &len) ? 0 : -EDOM)
CALLS(control, fi_control(fid, COMMAND, CTX))
CALLS(open_ops, fi_open_ops(fid, "ops", 0, &vector, CTX))

/**
 * struct control - a control call
 * @desc: name of the call
 * @fclass: class of objects that it accepts, FI_CLASS_UNSPEC for all
 * @op: provider op that it reaches, FAKE_OPS if the core implements it
 * @call: makes the call
 * @mute: the call returns no errno; @call returns -EDOM for any error
 * @handler: the call is allowed in a handler
 * @optional: the call works without the provider's op
 * @either: the call also accepts passive endpoints
 */
struct control {
	const char *desc;
	enum fi_class fclass;
	enum kofi_fake_op op;
	int (*call)(struct fid *fid, struct scene *scene);
	bool mute;
	bool handler;
	bool optional;
	bool either;
};

static const struct control controls[] = {
#define ROW(name, cls, fake_op, ...) \
	{ "fi_" #name, FI_CLASS_ ## cls, FAKE_ ## fake_op, call_ ## name, \
	  __VA_ARGS__ }
	ROW(domain, FABRIC, DOMAIN),
	ROW(eq_open, FABRIC, OPS, .optional = true),
	ROW(av_open, DOMAIN, AV),
	ROW(cq_open, DOMAIN, CQ),
	ROW(cntr_open, DOMAIN, CNTR),
	ROW(endpoint, DOMAIN, EP),
	ROW(ep_open, DOMAIN, EP),
	ROW(passive_ep, FABRIC, PEP),
	ROW(mr_reg, DOMAIN, MR_REG),
	ROW(mr_regv, DOMAIN, MR_REG),
	ROW(mr_regattr, DOMAIN, MR_REG),
	ROW(mr_alloc, DOMAIN, MR_ALLOC),
	ROW(domain_bind, DOMAIN, BIND, .optional = true),
	ROW(ep_bind, EP, BIND),
	ROW(bind, EP, BIND),
	ROW(enable, EP, CONTROL),
	ROW(disable, EP, CONTROL),
	ROW(cancel, EP, CANCEL, .handler = true),
	ROW(flush, EP, FLUSH),
	ROW(setopt, EP, SETOPT, .either = true),
	ROW(getopt, EP, GETOPT, .either = true),
	ROW(setname, EP, SETNAME, .either = true),
	ROW(getname, EP, GETNAME, .either = true),
	ROW(pep_bind, PEP, BIND),
	ROW(listen, PEP, LISTEN),
	ROW(reject, PEP, REJECT, .handler = true),
	ROW(connect, EP, CONNECT),
	ROW(accept, EP, ACCEPT),
	ROW(shutdown, EP, SHUTDOWN),
	ROW(getpeer, EP, GETPEER),
	ROW(av_insert, AV, INSERT),
	ROW(av_remove, AV, REMOVE),
	ROW(av_lookup, AV, LOOKUP),
	ROW(av_straddr, AV, STRADDR, .mute = true),
	ROW(control, UNSPEC, CONTROL),
	ROW(open_ops, UNSPEC, OPS_OPEN),
#undef ROW
};

/* An object of each class. The EQ and its ops are the core's. */
static unsigned int all_fids(struct scene *scene, struct fid **fids)
{
	struct kofi_fake_set *set = &scene->set;
	unsigned int n = 0;

	fids[n++] = &set->fabric->fid;
	fids[n++] = &set->domain->fid;
	fids[n++] = &set->av->fid;
	fids[n++] = &set->cq->fid;
	fids[n++] = &set->cntr->fid;
	fids[n++] = &set->ep->fid;
	fids[n++] = &scene->pep->fid;
	fids[n++] = &set->mr->fid;
	fids[n++] = &set->eq->fid;
	return n;
}

#define CLASSES	9

static struct fid *the_fid(struct scene *scene, const struct control *control)
{
	struct fid *fids[CLASSES];
	unsigned int i, n = all_fids(scene, fids);

	for (i = 0; i < n; i++)
		if (fids[i]->fclass == control->fclass)
			return fids[i];
	return &scene->set.ep->fid;
}

static struct scene *new_scene(struct kunit *test)
{
	struct scene *scene = kunit_kzalloc(test, sizeof(*scene), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, scene);
	scene->fake = kofi_fake_new(test, "fake");
	return scene;
}

static void open_scene(struct kunit *test, struct scene *scene)
{
	kofi_fake_open_all(test, scene->fake, &scene->set);
	scene->pep = kofi_fake_pep(test, scene->fake, scene->set.fabric);
	scene->ep_attr = *scene->fake->info->ep_attr;
	scene->ep_attr.type = FI_EP_MSG;
	scene->info = *scene->fake->info;
	scene->info.ep_attr = &scene->ep_attr;
	kofi_fake_bind_ep(test, &scene->set);
}

static unsigned int all_calls(struct kofi_fake *fake)
{
	unsigned int op, count = 0;

	for (op = 0; op < FAKE_OPS; op++)
		count += kofi_fake_called(fake, op);
	return count;
}

#define EXPECT(ret, control, fid, scene) \
	KUNIT_EXPECT_EQ_MSG(test, (control)->call(fid, scene), ret, "%s", \
			    (control)->desc)

#define for_each_control(control) \
	for (control = controls; control < controls + ARRAY_SIZE(controls); \
	     control++)

/* All calls in the order of the table, which ends with an enabled endpoint. */
static void reaches_provider(struct kunit *test)
{
	const struct control *control;
	struct scene *scene = new_scene(test);
	struct kofi_fake_call *call;
	struct fid *fid;

	open_scene(test, scene);
	for_each_control(control) {
		fid = the_fid(scene, control);
		if (control->op == FAKE_OPS) {
			EXPECT(0, control, fid, scene);
			continue;
		}
		call = &scene->fake->call[control->op];
		atomic_set(&call->count, 0);
		call->ret = control->mute ? 0 : -EACCES;
		EXPECT(call->ret, control, fid, scene);
		KUNIT_EXPECT_EQ(test, atomic_read(&call->count), 1);
		if (control->mute)
			continue;
		call->ret = 0;
		EXPECT(0, control, fid, scene);
		KUNIT_EXPECT_EQ(test, atomic_read(&call->count), 2);
	}
}

static void wrong_class(struct kunit *test)
{
	const struct control *control;
	struct scene *scene = new_scene(test);
	static struct kofi_fake_obj nothing;
	struct fid *fids[CLASSES];
	unsigned int i, n, before;
	int ret;

	open_scene(test, scene);
	n = all_fids(scene, fids);
	before = all_calls(scene->fake);
	for_each_control(control) {
		ret = control->mute ? -EDOM : -EINVAL;
		for (i = 0; i < n; i++)
			if (control->fclass && fids[i]->fclass != control->fclass &&
			    !(control->either && fids[i]->fclass == FI_CLASS_PEP))
				EXPECT(ret, control, fids[i], scene);
		EXPECT(ret, control, NULL, scene);
		EXPECT(ret, control, &nothing.fid, scene);
	}
	KUNIT_EXPECT_EQ(test, all_calls(scene->fake), before);
}

struct handler {
	struct kofi_cq cq;
	const struct control *control;
	struct scene *scene;
	struct fid *fid;
	int ret;
};

/* The value comes from the table, or the caller learns that there is none or how long it is. */
static void getopt_table(struct kunit *test)
{
	const struct kofi_opt opts[] = { { FI_OPT_TX_SIZE, 7 }, { FI_OPT_RX_SIZE, 0 } };
	size_t value = 1, len = sizeof(value);

#define GETOPT(name) kofi_getopt(opts, ARRAY_SIZE(opts), name, &value, &len)
	KUNIT_EXPECT_EQ(test, GETOPT(FI_OPT_RX_SIZE), 0);
	KUNIT_EXPECT_EQ(test, value, 0);
	KUNIT_EXPECT_EQ(test, GETOPT(FI_OPT_MAX_MSG_SIZE), -ENOPROTOOPT);
	KUNIT_EXPECT_EQ(test, GETOPT(FI_OPT_TX_SIZE), 0);
	KUNIT_EXPECT_EQ(test, value, 7);
	len--;
	KUNIT_EXPECT_EQ(test, GETOPT(FI_OPT_RX_SIZE), -FI_ETOOSMALL);
	KUNIT_EXPECT_EQ(test, len, sizeof(value));
	KUNIT_EXPECT_EQ(test, value, 7);
#undef GETOPT
}

static void run_handler(struct fid_cq *cq, void *context)
{
	struct handler *handler = context;

	handler->ret = handler->control ?
		       handler->control->call(handler->fid, handler->scene) :
		       fi_close(handler->fid);
}

static int in_handler(struct handler *handler)
{
	const struct kofi_cq_config config = { .default_size = 1, .max_size = 1 };
	struct fi_cq_attr attr = {
		.handler = run_handler, .handler_context = handler,
	};

	memset(&handler->cq, 0, sizeof(handler->cq));
	handler->ret = kofi_cq_init(&handler->cq, &attr, &config) ?: 1;
	if (handler->ret < 0)
		return handler->ret;
	kofi_cq_notify(&handler->cq);
	kofi_cq_fini(&handler->cq);
	return handler->ret;
}

static struct handler *new_handler(struct kunit *test, struct scene *scene)
{
	struct handler *handler = kunit_kzalloc(test, sizeof(*handler),
						GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, handler);
	handler->scene = scene;
	return handler;
}

static void from_handler(struct kunit *test)
{
	const struct control *control;
	struct scene *scene = new_scene(test);
	struct handler *handler;
	unsigned int before;

	open_scene(test, scene);
	handler = new_handler(test, scene);
	before = all_calls(scene->fake);
	for_each_control(control) {
		handler->control = control;
		handler->fid = the_fid(scene, control);
		KUNIT_EXPECT_EQ_MSG(test, in_handler(handler),
				    control->handler ? 0 :
				    control->mute ? -EDOM : -EDEADLK,
				    "%s", control->desc);
		before += control->handler;
	}
	KUNIT_EXPECT_EQ(test, all_calls(scene->fake), before);
}

/* Removal of a device affects its domain and the domain's objects, but not the fabric's. */
static void device_gone(struct kunit *test)
{
	const struct control *control;
	struct scene *scene = new_scene(test);
	unsigned int before;

	open_scene(test, scene);
	kofi_device_removed(&scene->set.domain->fid, "fake-dev0");
	for_each_control(control) {
		if (control->fclass == FI_CLASS_FABRIC || control->fclass == FI_CLASS_PEP) {
			EXPECT(0, control, the_fid(scene, control), scene);
			continue;
		}
		before = all_calls(scene->fake);
		EXPECT(control->mute ? -EDOM : -ENODEV, control,
		       the_fid(scene, control), scene);
		KUNIT_EXPECT_EQ(test, all_calls(scene->fake), before);
	}
}

/* All op vectors empty, or missing. */
static void use_no_ops(struct kofi_fake *fake, bool empty)
{
	static const struct fi_ops_fabric no_fabric;
	static const struct fi_ops_domain no_domain;
	static const struct fi_ops_av no_av;
	static const struct fi_ops_ep no_ep;
	static const struct fi_ops_cm no_cm;
	static struct fi_ops only_close;

	only_close.close = fake->fid_ops->close;
	fake->fid_ops = &only_close;
	fake->fabric_ops = empty ? &no_fabric : NULL;
	fake->domain_ops = empty ? &no_domain : NULL;
	fake->av_ops = empty ? &no_av : NULL;
	fake->ep_ops = empty ? &no_ep : NULL;
	fake->cm_ops = empty ? &no_cm : NULL;
}

static void expect_missing(struct kunit *test, bool empty)
{
	const struct control *control;
	struct scene *scene = new_scene(test);
	struct fid_domain *whole;
	struct kofi_fake_set *set = &scene->set;
	unsigned int before;

	open_scene(test, scene);
	whole = set->domain;
	use_no_ops(scene->fake, empty);
	/* One more object of each class, without ops. */
	set->domain = kofi_fake_domain(test, scene->fake, set->fabric);
	set->av = kofi_fake_av(test, whole);
	set->ep = kofi_fake_ep(test, scene->fake, whole);
	scene->pep = kofi_fake_pep(test, scene->fake, set->fabric);
	set->fabric = kofi_fake_fabric(test, scene->fake);
	set->eq = kofi_fake_eq(test, set->fabric, NULL);
	for_each_control(control) {
		/* These two need related objects: see below. */
		if (control->op == FAKE_MR_ALLOC || control->op == FAKE_BIND)
			continue;
		before = all_calls(scene->fake);
		EXPECT(control->optional ? 0 :
		       control->mute ? -EDOM : -EOPNOTSUPP,
		       control, the_fid(scene, control), scene);
		KUNIT_EXPECT_EQ(test, all_calls(scene->fake), before);
	}
}

static void op_missing(struct kunit *test)
{
	expect_missing(test, true);
}

static void vector_missing(struct kunit *test)
{
	expect_missing(test, false);
}

/* Binding a domain needs no provider op, because the core implements it. */
static void bind_missing(struct kunit *test)
{
	struct scene *scene = new_scene(test);
	struct kofi_fake_set *set = &scene->set;
	const struct fi_ops only_close = {
		.close = scene->fake->fid_ops->close,
	};
	struct fid_domain *domain;
	struct fid_ep *ep;

	open_scene(test, scene);
	scene->fake->fid_ops = &only_close;
	ep = kofi_fake_ep(test, scene->fake, set->domain);
	domain = kofi_fake_domain(test, scene->fake, set->fabric);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &set->cntr->fid, FI_READ),
			-EOPNOTSUPP);
	kofi_fake_close(test, &set->cntr->fid);
	KUNIT_EXPECT_EQ(test, fi_domain_bind(domain, &set->eq->fid, 0), 0);
	kofi_fake_close(test, &domain->fid);
	kofi_fake_close(test, &ep->fid);
}

/* A domain with completion queues, but without fi_mr_alloc(). */
static void alloc_missing(struct kunit *test)
{
	struct scene *scene = new_scene(test);
	const struct fi_ops_domain *whole = scene->fake->domain_ops;
	const struct fi_ops_domain part = { .cq_open = whole->cq_open };
	const struct fi_mr_alloc_attr attr = {
		.max_pages = 1, .access = FI_READ,
	};
	struct fi_mr_alloc_attr with_cq = attr;
	struct fid_domain *domain;
	struct fid_mr *mr;

	scene->fake->domain_ops = &part;
	domain = kofi_fake_domain(test, scene->fake,
				  kofi_fake_fabric(test, scene->fake));
	with_cq.cq = kofi_fake_cq(test, domain, NULL);
	KUNIT_EXPECT_EQ(test, fi_mr_alloc(domain, &with_cq, &mr, NULL),
			-EOPNOTSUPP);
	/* The failed call holds no reference to the queue. */
	kofi_fake_close(test, &with_cq.cq->fid);
	kofi_fake_close(test, &domain->fid);
}

/* A provider without a device has no interrupts, so one queue serves all CPUs. */
static void vectors_none(struct kunit *test)
{
	static struct cpumask mask;
	struct scene *scene = new_scene(test);
	struct fid_domain *domain;

	open_scene(test, scene);
	domain = scene->set.domain;
	KUNIT_EXPECT_NULL(test, fi_domain_device(domain));
	KUNIT_EXPECT_EQ(test, fi_domain_vectors(domain), 1);
	KUNIT_EXPECT_EQ(test, fi_domain_vector_mask(domain, 0, &mask), 0);
	KUNIT_EXPECT_TRUE(test, cpumask_equal(&mask, cpu_possible_mask));
	KUNIT_EXPECT_EQ(test, fi_domain_vector_mask(domain, 1, &mask),
			-EINVAL);
}

static struct fid_av *opened_before;

static int open_again(struct fid_domain *domain, struct fi_av_attr *attr,
		      struct fid_av **av, void *context)
{
	*av = opened_before;
	return 0;
}

/* A provider must not return an object twice, as the second user could close it. */
static void opened_twice(struct kunit *test)
{
	struct scene *scene = new_scene(test);
	struct fi_ops_domain ops = *scene->fake->domain_ops;
	struct fi_av_attr attr = {};
	struct fid_av *av = NULL;

	ops.av_open = open_again;
	open_scene(test, scene);
	opened_before = scene->set.av;
	scene->set.domain->ops = &ops;
	KUNIT_EXPECT_EQ(test, fi_av_open(scene->set.domain, &attr, &av, NULL),
			-EPROTO);
	KUNIT_EXPECT_NULL(test, av);
	scene->set.domain->ops = scene->fake->domain_ops;
}

static void close_calls(struct kunit *test)
{
	struct scene *scene = new_scene(test);
	struct kofi_fake_obj nothing = {};
	struct fid *fids[CLASSES];
	struct handler *handler;
	unsigned int i, n;

	KUNIT_EXPECT_EQ(test, fi_close(NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&nothing.fid), -EINVAL);
	open_scene(test, scene);
	n = all_fids(scene, fids);
	handler = new_handler(test, scene);
	for (i = 0; i < n; i++) {
		handler->fid = fids[i];
		KUNIT_EXPECT_EQ(test, in_handler(handler), -EDEADLK);
	}
	KUNIT_EXPECT_EQ(test, kofi_fake_called(scene->fake, FAKE_CLOSE), 0);
}

/* Control calls that have no object. */
static int ask_and_open(struct fid *fid, struct scene *scene)
{
	struct fid_fabric *fabric;
	struct fi_info *list;
	int ret;

	ret = fi_getinfo(fi_version(), NULL, NULL, 0, NULL, &list);
	if (ret != -EDEADLK || list)
		return -EIO;
	return fi_fabric(scene->fake->info->fabric_attr, &fabric, NULL);
}

static void ask_from_handler(struct kunit *test)
{
	static const struct control control = { .call = ask_and_open };
	struct scene *scene = new_scene(test);
	struct handler *handler = new_handler(test, scene);

	handler->control = &control;
	KUNIT_EXPECT_EQ(test, in_handler(handler), -EDEADLK);
	KUNIT_EXPECT_EQ(test, all_calls(scene->fake), 0);
}

static struct kunit_case control_cases[] = {
	KUNIT_CASE(reaches_provider),
	KUNIT_CASE(wrong_class),
	KUNIT_CASE(from_handler),
	KUNIT_CASE(device_gone),
	KUNIT_CASE(op_missing),
	KUNIT_CASE(vector_missing),
	KUNIT_CASE(bind_missing),
	KUNIT_CASE(alloc_missing),
	KUNIT_CASE(vectors_none),
	KUNIT_CASE(opened_twice),
	KUNIT_CASE(getopt_table),
	KUNIT_CASE(close_calls),
	KUNIT_CASE(ask_from_handler),
	{}
};

static struct kunit_suite control_suite = {
	.name = "kofi_control",
	.test_cases = control_cases,
};

kunit_test_suite(control_suite);

MODULE_DESCRIPTION("KUnit tests of kOFI's control calls");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
MODULE_IMPORT_NS(KOFI_TEST);
