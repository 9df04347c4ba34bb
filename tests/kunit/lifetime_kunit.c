// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Objects from open to close: references between them, providers that refuse or return
 * garbage, and leftovers.
 */
#include <linux/string.h>
#include <linux/workqueue.h>
#include "fake.h"

static u8 memory[64];

struct scene {
	struct kofi_fake *fake;
	struct kofi_fake_set set;
};

static struct scene *new_scene(struct kunit *test)
{
	struct scene *scene = kunit_kzalloc(test, sizeof(*scene), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, scene);
	scene->fake = kofi_fake_new(test, "fake");
	kofi_fake_open_all(test, scene->fake, &scene->set);
	return scene;
}

/* Opening calls. Return: the object as a fid, or an error. */

typedef int (*open_fn)(struct scene *scene, struct fid **fid);

#define OPEN(name, type, call)						\
static int open_##name(struct scene *scene, struct fid **fid)		\
{									\
	struct type *new = (void *)0x5a;				\
	int ret = call;							\
									\
	*fid = (struct fid *)new;					\
	return ret;							\
}

static struct fi_av_attr av_attr;
static struct fi_cq_attr cq_attr;
static struct fi_cntr_attr cntr_attr;
static struct fi_eq_attr eq_attr;

static int alloc_mr(struct scene *scene, struct fid_mr **mr)
{
	const struct fi_mr_alloc_attr attr = {
		.max_pages = 1, .access = FI_REMOTE_READ, .cq = scene->set.cq,
	};

	return fi_mr_alloc(scene->set.domain, &attr, mr, NULL);
}

OPEN(fabric, fid_fabric, fi_fabric(scene->fake->info->fabric_attr, &new, NULL))
OPEN(eq, fid_eq, fi_eq_open(scene->set.fabric, &eq_attr, &new, NULL))
OPEN(domain, fid_domain, fi_domain(scene->set.fabric, scene->fake->info, &new,
				   NULL))
OPEN(av, fid_av, fi_av_open(scene->set.domain, &av_attr, &new, NULL))
OPEN(cq, fid_cq, fi_cq_open(scene->set.domain, &cq_attr, &new, NULL))
OPEN(cntr, fid_cntr, fi_cntr_open(scene->set.domain, &cntr_attr, &new, NULL))
OPEN(ep, fid_ep, fi_endpoint(scene->set.domain, scene->fake->info, &new, NULL))
OPEN(mr, fid_mr, fi_mr_reg(scene->set.domain, memory, sizeof(memory), FI_READ,
			   0, 0, 0, &new, NULL))
OPEN(pool_mr, fid_mr, alloc_mr(scene, &new))

static const struct opening {
	const char *desc;
	enum kofi_fake_op op;
	open_fn open;
} openings[] = {
	{ "fabric", FAKE_FABRIC, open_fabric },
	{ "domain", FAKE_DOMAIN, open_domain },
	{ "av", FAKE_AV, open_av },
	{ "cq", FAKE_CQ, open_cq },
	{ "cntr", FAKE_CNTR, open_cntr },
	{ "ep", FAKE_EP, open_ep },
	{ "mr", FAKE_MR_REG, open_mr },
	{ "allocated mr", FAKE_MR_ALLOC, open_pool_mr },
};

KUNIT_ARRAY_PARAM_DESC(opening, openings, desc);

/* A failed opening holds no references, and all objects can be closed. */
static void expect_not_opened(struct kunit *test, struct scene *scene,
			      const struct opening *opening, int err)
{
	int refs = module_refcount(THIS_MODULE);
	struct fid *fid;

	KUNIT_EXPECT_EQ_MSG(test, opening->open(scene, &fid), err, "%s",
			    opening->desc);
	KUNIT_EXPECT_PTR_EQ(test, fid, (struct fid *)0x5a);
	KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), refs);
}

static void open_fails(struct kunit *test)
{
	const struct opening *opening = test->param_value;
	struct scene *scene = new_scene(test);
	unsigned int open = kofi_fake_open(scene->fake);
	struct fid *fid;

	scene->fake->call[opening->op].ret = -EACCES;
	expect_not_opened(test, scene, opening, -EACCES);
	KUNIT_EXPECT_EQ(test, kofi_fake_open(scene->fake), open);
	scene->fake->call[opening->op].ret = 0;
	KUNIT_EXPECT_EQ(test, opening->open(scene, &fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(fid), 0);
}

static int no_close(struct fid *fid)
{
	return 0;
}

/* A provider's opening call returns success, but no object. */
static void open_lies(struct kunit *test)
{
	static const struct fi_ops cannot_close;
	static const struct fi_ops can_close = { .close = no_close };
	const struct opening *opening = test->param_value;
	struct scene *scene = new_scene(test);
	struct kofi_fake *fake = scene->fake;
	const struct fi_ops *good = fake->fid_ops;

	fake->nothing = true;
	expect_not_opened(test, scene, opening, -EPROTO);
	fake->nothing = false;
	fake->fid_ops = NULL;
	expect_not_opened(test, scene, opening, -EPROTO);
	fake->fid_ops = &cannot_close;
	expect_not_opened(test, scene, opening, -EPROTO);
	fake->fid_ops = &can_close;
	kofi_fake_reap(fake);
	fake->fid_ops = good;
}

/* Open objects, and the objects that they keep open */

static const struct family {
	const char *desc;
	enum fi_class parent;
	open_fn open;
} families[] = {
	{ "domain of fabric", FI_CLASS_FABRIC, open_domain },
	{ "eq of fabric", FI_CLASS_FABRIC, open_eq },
	{ "av of domain", FI_CLASS_DOMAIN, open_av },
	{ "cq of domain", FI_CLASS_DOMAIN, open_cq },
	{ "cntr of domain", FI_CLASS_DOMAIN, open_cntr },
	{ "ep of domain", FI_CLASS_DOMAIN, open_ep },
	{ "mr of domain", FI_CLASS_DOMAIN, open_mr },
	{ "allocated mr of cq", FI_CLASS_CQ, open_pool_mr },
};

KUNIT_ARRAY_PARAM_DESC(family, families, desc);

/* Only the child and its ancestors are open. */
static void parent_is_busy(struct kunit *test)
{
	const struct family *family = test->param_value;
	struct scene scene = { .fake = kofi_fake_new(test, "fake") };
	struct kofi_fake_set *set = &scene.set;
	struct fid *parent, *child;

	set->fabric = kofi_fake_fabric(test, scene.fake);
	parent = &set->fabric->fid;
	if (family->parent != FI_CLASS_FABRIC) {
		set->domain = kofi_fake_domain(test, scene.fake, set->fabric);
		parent = &set->domain->fid;
	}
	if (family->parent == FI_CLASS_CQ) {
		set->cq = kofi_fake_cq(test, set->domain, NULL);
		parent = &set->cq->fid;
	}
	KUNIT_ASSERT_EQ(test, family->open(&scene, &child), 0);
	KUNIT_EXPECT_EQ(test, fi_close(parent), -EBUSY);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(scene.fake, FAKE_CLOSE), 0);
	KUNIT_EXPECT_EQ(test, fi_close(child), 0);
	kofi_fake_close(test, parent);
}

/* A region that an endpoint posts keeps the endpoint open, and by that its queue. */
static void pool_mr_of_ep(struct kunit *test)
{
	struct scene *scene = new_scene(test);
	struct kofi_fake_set *set = &scene->set;
	struct fi_mr_alloc_attr attr = {
		.max_pages = 1, .access = FI_REMOTE_READ, .cq = set->cq, .ep = set->ep,
	};
	struct fid_mr *mr = NULL;

	/* The endpoint isn't bound to the queue. */
	KUNIT_EXPECT_EQ(test, fi_mr_alloc(set->domain, &attr, &mr, NULL), -EINVAL);
	kofi_fake_bind_ep(test, set);
	scene->fake->call[FAKE_MR_ALLOC].ret = -EACCES;
	KUNIT_EXPECT_EQ(test, fi_mr_alloc(set->domain, &attr, &mr, NULL), -EACCES);
	scene->fake->call[FAKE_MR_ALLOC].ret = 0;
	KUNIT_ASSERT_EQ(test, fi_mr_alloc(set->domain, &attr, &mr, NULL), 0);
	kofi_fake_close(test, &set->pool_mr->fid);
	KUNIT_EXPECT_EQ(test, fi_close(&set->ep->fid), -EBUSY);
	KUNIT_EXPECT_EQ(test, fi_close(&set->cq->fid), -EBUSY);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	kofi_fake_close(test, &set->ep->fid);
	kofi_fake_close(test, &set->cq->fid);
}

#define FID(member)	offsetof(struct kofi_fake_set, member)

static struct fid *fid_of(struct scene *scene, size_t member)
{
	/* The fid is the first member of each. */
	return *(struct fid **)((void *)&scene->set + member);
}

static const struct binding {
	const char *desc;
	size_t bound;
	u64 flags;
} bindings[] = {
	{ "av", FID(av), 0 },
	{ "cq", FID(cq), FI_TRANSMIT },
	{ "cntr", FID(cntr), FI_READ },
	{ "eq", FID(eq), 0 },
};

KUNIT_ARRAY_PARAM_DESC(binding, bindings, desc);

static void bound_is_busy(struct kunit *test)
{
	const struct binding *binding = test->param_value;
	struct scene *scene = new_scene(test);
	struct fid *bound = fid_of(scene, binding->bound);

	kofi_fake_close(test, &scene->set.pool_mr->fid);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(scene->set.ep, bound, binding->flags),
			0);
	KUNIT_EXPECT_EQ(test, fi_close(bound), -EBUSY);
	kofi_fake_close(test, &scene->set.ep->fid);
	kofi_fake_close(test, bound);
}

static void bound_to_domain_is_busy(struct kunit *test)
{
	struct scene *scene = new_scene(test);
	struct kofi_fake_set *set = &scene->set;
	struct fid_domain *domain;

	domain = kofi_fake_domain(test, scene->fake, set->fabric);
	KUNIT_ASSERT_EQ(test, fi_domain_bind(domain, &set->eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&set->eq->fid), -EBUSY);
	kofi_fake_close(test, &domain->fid);
	kofi_fake_close(test, &set->eq->fid);
}

/* A close op that fails */

static const struct closing {
	const char *desc;
	size_t member;
} closings[] = {
	{ "fabric", FID(fabric) }, { "domain", FID(domain) },
	{ "av", FID(av) }, { "cq", FID(cq) }, { "cntr", FID(cntr) },
	{ "ep", FID(ep) }, { "mr", FID(mr) },
	{ "allocated mr", FID(pool_mr) },
};

KUNIT_ARRAY_PARAM_DESC(closing, closings, desc);

/* Check that an object is still usable. */
static void expect_alive(struct kunit *test, struct scene *scene,
			 struct fid *fid)
{
	struct fid *child = NULL;

	KUNIT_EXPECT_EQ(test, fi_control(fid, 0x10000, NULL), 0);
	if (fid->fclass == FI_CLASS_FABRIC)
		KUNIT_EXPECT_EQ(test, open_domain(scene, &child), 0);
	else if (fid->fclass == FI_CLASS_DOMAIN)
		KUNIT_EXPECT_EQ(test, open_av(scene, &child), 0);
	else
		return;
	KUNIT_EXPECT_EQ(test, fi_close(fid), -EBUSY);
	KUNIT_EXPECT_EQ(test, fi_close(child), 0);
}

static void close_fails(struct kunit *test)
{
	const struct closing *closing = test->param_value;
	struct scene *scene = new_scene(test);
	struct kofi_fake_call *call = &scene->fake->call[FAKE_CLOSE];
	struct fid *fid = fid_of(scene, closing->member);
	size_t order[] = {
		FID(pool_mr), FID(mr), FID(ep), FID(cntr), FID(cq), FID(av),
		FID(domain), FID(eq), FID(fabric),
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(order) && order[i] != closing->member; i++)
		kofi_fake_close(test, fid_of(scene, order[i]));
	call->ret = -EIO;
	KUNIT_EXPECT_EQ(test, fi_close(fid), -EIO);
	KUNIT_EXPECT_EQ(test, fi_close(fid), -EIO);
	call->ret = 0;
	expect_alive(test, scene, fid);
	KUNIT_EXPECT_EQ(test, kofi_fake_deregister(scene->fake), -EBUSY);
	kofi_fake_close(test, fid);
}

/* An endpoint whose close failed still works. */
static void close_enabled_fails(struct kunit *test)
{
	struct scene *scene = new_scene(test);
	struct kofi_fake_call *call = &scene->fake->call[FAKE_CLOSE];
	struct fid_ep *ep = scene->set.ep;

	kofi_fake_bind_ep(test, &scene->set);
	KUNIT_ASSERT_EQ(test, fi_enable(ep), 0);
	call->ret = -EIO;
	KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), -EIO);
	call->ret = 0;
	KUNIT_EXPECT_EQ(test, fi_inject(ep, memory, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_enable(ep), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_close(&scene->set.av->fid), -EBUSY);
}

/* Calls from inside a close op */

struct inside {
	struct scene *scene;
	open_fn open;
	int opened;
	int closed;
	int bound;
};

static void use_inside(struct kofi_fake *fake, struct fid *fid, void *arg)
{
	struct inside *inside = arg;
	struct fid *child;

	if (inside->open)
		inside->opened = inside->open(inside->scene, &child);
	inside->closed = fi_close(fid);
	if (fid->fclass == FI_CLASS_CQ)
		inside->bound = fi_ep_bind(inside->scene->set.ep, fid,
					   FI_RECV);
}

/* An object that is being closed can't become a parent, nor be closed again. */
static void use_while_closing(struct kunit *test)
{
	struct scene *scene = new_scene(test);
	struct kofi_fake_call *call = &scene->fake->call[FAKE_CLOSE];
	struct kofi_fake_set *set = &scene->set;
	struct fid_domain *domain = set->domain;
	struct fid_fabric *fabric = set->fabric;
	struct inside inside = { .scene = scene };

	call->hook_arg = &inside;
	call->hook = use_inside;
	inside.open = open_av;
	set->domain = kofi_fake_domain(test, scene->fake, fabric);
	kofi_fake_close(test, &set->domain->fid);
	KUNIT_EXPECT_EQ(test, inside.opened, -EINVAL);
	KUNIT_EXPECT_EQ(test, inside.closed, -EBUSY);

	inside.opened = 0;
	inside.closed = 0;
	inside.open = open_domain;
	set->fabric = kofi_fake_fabric(test, scene->fake);
	kofi_fake_close(test, &set->fabric->fid);
	KUNIT_EXPECT_EQ(test, inside.opened, -EINVAL);
	KUNIT_EXPECT_EQ(test, inside.closed, -EBUSY);

	inside.open = NULL;
	inside.closed = 0;
	set->domain = domain;
	set->fabric = fabric;
	kofi_fake_close(test, &kofi_fake_cq(test, domain, NULL)->fid);
	KUNIT_EXPECT_EQ(test, inside.closed, -EBUSY);
	KUNIT_EXPECT_EQ(test, inside.bound, -EINVAL);
	call->hook = NULL;
}

/* Two objects of each class are independent. */
static void two_trees(struct kunit *test)
{
	struct scene *one = new_scene(test);
	struct kofi_fake_set other;

	kofi_fake_open_all(test, one->fake, &other);
	kofi_fake_close(test, &one->set.pool_mr->fid);
	kofi_fake_close(test, &one->set.mr->fid);
	kofi_fake_close(test, &one->set.ep->fid);
	kofi_fake_close(test, &one->set.cntr->fid);
	kofi_fake_close(test, &one->set.cq->fid);
	kofi_fake_close(test, &one->set.av->fid);
	kofi_fake_close(test, &one->set.domain->fid);
	kofi_fake_close(test, &one->set.eq->fid);
	kofi_fake_close(test, &one->set.fabric->fid);
	KUNIT_EXPECT_EQ(test, fi_close(&other.fabric->fid), -EBUSY);
	kofi_fake_bind_ep(test, &other);
	KUNIT_EXPECT_EQ(test, fi_enable(other.ep), 0);
}

static void count_refs(struct kofi_fake *fake, struct fid *fid, void *arg)
{
	*(int *)arg = module_refcount(THIS_MODULE);
}

/* The fabric holds a reference to the module for all its objects. */
static void module_pinned(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	int refs = module_refcount(THIS_MODULE), inside = 0;
	struct kofi_fake_set set;

	fake->call[FAKE_CLOSE].hook = count_refs;
	fake->call[FAKE_CLOSE].hook_arg = &inside;
	kofi_fake_open_all(test, fake, &set);
	KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), refs + 1);
	kofi_fake_close(test, &set.pool_mr->fid);
	kofi_fake_close(test, &set.mr->fid);
	kofi_fake_close(test, &set.ep->fid);
	kofi_fake_close(test, &set.cntr->fid);
	kofi_fake_close(test, &set.cq->fid);
	kofi_fake_close(test, &set.av->fid);
	kofi_fake_close(test, &set.domain->fid);
	kofi_fake_close(test, &set.eq->fid);
	KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), refs + 1);
	kofi_fake_close(test, &set.fabric->fid);
	KUNIT_EXPECT_EQ(test, inside, refs + 1);
	KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), refs);
}

/* Threads open and close objects of one domain, and bind to one queue. */

#define THREADS	3
#define ROUNDS	100

struct stress {
	struct work_struct work[THREADS];
	struct scene *scene;
	atomic_t bad;
};

static int stress_round(struct scene *scene)
{
	struct kofi_fake_set *set = &scene->set;
	struct fid *fids[3];
	int ret;

	ret = open_ep(scene, &fids[0]) ?: open_cntr(scene, &fids[1]) ?:
	      open_pool_mr(scene, &fids[2]);
	if (ret)
		return ret;
	ret = fi_ep_bind((struct fid_ep *)fids[0], &set->av->fid, 0) ?:
	      fi_ep_bind((struct fid_ep *)fids[0], &set->cq->fid,
			 FI_TRANSMIT | FI_RECV) ?:
	      fi_ep_bind((struct fid_ep *)fids[0], fids[1], FI_READ) ?:
	      fi_enable((struct fid_ep *)fids[0]);
	if (fi_close(&set->domain->fid) != -EBUSY ||
	    fi_close(fids[1]) != -EBUSY || fi_close(&set->cq->fid) != -EBUSY)
		ret = -EIO;
	return fi_close(fids[2]) ?: fi_close(fids[0]) ?: fi_close(fids[1]) ?:
	       ret;
}

static void stress_work(struct stress *stress)
{
	unsigned int i;

	for (i = 0; i < ROUNDS; i++)
		if (stress_round(stress->scene))
			atomic_inc(&stress->bad);
}

#define STRESS_WORK(n)							\
static void stress_work_##n(struct work_struct *work)			\
{									\
	stress_work(container_of(work, struct stress, work[n]));	\
}

STRESS_WORK(0) STRESS_WORK(1) STRESS_WORK(2)

static void many_at_once(struct kunit *test)
{
	static const work_func_t works[] = {
		stress_work_0, stress_work_1, stress_work_2,
	};
	struct scene *scene = new_scene(test);
	unsigned int i, open = kofi_fake_open(scene->fake);
	struct stress *stress;

	stress = kunit_kzalloc(test, sizeof(*stress), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, stress);
	stress->scene = scene;
	for (i = 0; i < THREADS; i++) {
		INIT_WORK(&stress->work[i], works[i]);
		queue_work(system_unbound_wq, &stress->work[i]);
	}
	for (i = 0; i < THREADS; i++)
		flush_work(&stress->work[i]);
	KUNIT_EXPECT_EQ(test, atomic_read(&stress->bad), 0);
	KUNIT_EXPECT_EQ(test, kofi_fake_open(scene->fake), open);
}

static struct kunit_case lifetime_cases[] = {
	KUNIT_CASE_PARAM(open_fails, opening_gen_params),
	KUNIT_CASE_PARAM(open_lies, opening_gen_params),
	KUNIT_CASE_PARAM(parent_is_busy, family_gen_params),
	KUNIT_CASE(pool_mr_of_ep),
	KUNIT_CASE_PARAM(bound_is_busy, binding_gen_params),
	KUNIT_CASE(bound_to_domain_is_busy),
	KUNIT_CASE_PARAM(close_fails, closing_gen_params),
	KUNIT_CASE(close_enabled_fails),
	KUNIT_CASE(use_while_closing),
	KUNIT_CASE(two_trees),
	KUNIT_CASE(module_pinned),
	KUNIT_CASE(many_at_once),
	{}
};

static struct kunit_suite lifetime_suite = {
	.name = "kofi_lifetime",
	.test_cases = lifetime_cases,
};

kunit_test_suite(lifetime_suite);

MODULE_DESCRIPTION("KUnit tests of the lifetime of kOFI's objects");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
MODULE_IMPORT_NS(KOFI_TEST);
