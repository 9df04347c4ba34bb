// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Failing allocations: each allocation of each control call fails in turn, and the
 * call must leave no trace.
 */
#include <linux/slab.h>
#include <linux/string.h>
#include "fake.h"
#include "faults.h"

static u8 memory[64];

/**
 * struct scene - objects that an operation uses
 * @fake: the provider
 * @unborn: another provider, not registered
 * @set: objects of @fake
 * @info: an entry with all fields set
 * @result: object that the operation created
 */
struct scene {
	struct kofi_fake *fake;
	struct kofi_fake *unborn;
	struct kofi_fake_set set;
	struct fi_info *info;
	void *result;
};

/**
 * struct operation - an operation that allocates
 * @desc: name of the operation
 * @run: execute the operation; the result goes to scene->result
 * @undo: undo the operation
 * @points: minimum number of allocations of the operation
 */
struct operation {
	const char *desc;
	int (*run)(struct scene *scene);
	int (*undo)(struct scene *scene);
	unsigned int points;
};

static int register_run(struct scene *scene)
{
	return kofi_fake_register(scene->unborn);
}

static int register_undo(struct scene *scene)
{
	return kofi_fake_deregister(scene->unborn);
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool whole_nic(const struct fid_nic *new, const struct fid_nic *old)
{
	return new && same(new->device_attr.name, old->device_attr.name) &&
	       same(new->device_attr.firmware, old->device_attr.firmware) &&
	       same(new->link_attr.address, old->link_attr.address) &&
	       same(new->link_attr.network_type, old->link_attr.network_type);
}

/* Return: whether a copy has all parts that are allocated separately. Doesn't allocate. */
static bool whole_copy(const struct fi_info *new, const struct fi_info *old)
{
	return new->tx_attr && new->rx_attr && new->ep_attr &&
	       !new->src_addr == !old->src_addr &&
	       !new->dest_addr == !old->dest_addr &&
	       same(new->fabric_attr->name, old->fabric_attr->name) &&
	       same(new->fabric_attr->prov_name, old->fabric_attr->prov_name) &&
	       same(new->domain_attr->name, old->domain_attr->name) &&
	       whole_nic(new->nic, old->nic);
}

static int dup_run(struct scene *scene)
{
	struct fi_info *new = fi_dupinfo(scene->info);

	scene->result = new;
	return !new ? -ENOMEM : whole_copy(new, scene->info) ? 0 : -EIO;
}

static int alloc_run(struct scene *scene)
{
	scene->result = fi_allocinfo();
	return scene->result ? 0 : -ENOMEM;
}

static int alloc_for_run(struct scene *scene)
{
	struct fi_info *new = fi_allocinfo_for("provider", "fabric", "domain");

	scene->result = new;
	if (!new)
		return -ENOMEM;
	return same(new->fabric_attr->prov_name, "provider") &&
	       same(new->fabric_attr->name, "fabric") &&
	       same(new->domain_attr->name, "domain") ? 0 : -EIO;
}

static int getinfo(struct scene *scene, u64 flags)
{
	struct fi_fabric_attr fabric = { .prov_name = "fake" };
	struct fi_info hints = { .fabric_attr = &fabric };
	struct fi_info *list, *info;
	unsigned int count = 0;
	int ret;

	ret = fi_getinfo(fi_version(), NULL, NULL, flags, &hints, &list);
	scene->result = list;
	if (ret)
		return list ? -EIO : ret;
	/* Entries that are returned are complete, even if an allocation failed. */
	for (info = list; info; info = info->next)
		count += same(info->fabric_attr->prov_name, "fake") &&
			 (flags || info->domain_attr->name);
	return count == (flags ? 1 : 2) ? 0 : -EIO;
}

static int getinfo_run(struct scene *scene)
{
	return getinfo(scene, 0);
}

static int getprov_run(struct scene *scene)
{
	return getinfo(scene, FI_PROV_ATTR_ONLY);
}

static int info_undo(struct scene *scene)
{
	fi_freeinfo(scene->result);
	return 0;
}

static int tostr_run(struct scene *scene)
{
	scene->result = fi_tostr(scene->info, FI_TYPE_INFO);
	return scene->result ? 0 : -ENOMEM;
}

static int tostr_undo(struct scene *scene)
{
	kfree(scene->result);
	return 0;
}

#define OPEN(name, cls, call)						\
static int name##_run(struct scene *scene)				\
{									\
	struct fid_##cls *new = NULL;					\
	int ret = call;							\
									\
	scene->result = new ? &new->fid : NULL;				\
	return ret;							\
}

static int close_undo(struct scene *scene)
{
	return fi_close(scene->result);
}

/* A queue may be so large that its memory isn't physically contiguous. */
static struct fi_av_attr av_attr;
static struct fi_cq_attr cq_attr = { .size = 64 };
static struct fi_cntr_attr cntr_attr;
static struct fi_eq_attr eq_attr = { .size = 8 };
static struct fi_eq_attr big_eq_attr = { .size = 4096 };

static int alloc_mr(struct scene *scene, struct fid_mr **mr)
{
	const struct fi_mr_alloc_attr attr = {
		.max_pages = 1, .access = FI_REMOTE_READ, .cq = scene->set.cq,
	};

	return fi_mr_alloc(scene->set.domain, &attr, mr, NULL);
}

OPEN(fabric, fabric, fi_fabric(scene->fake->info->fabric_attr, &new, NULL))
OPEN(eq, eq, fi_eq_open(scene->set.fabric, &eq_attr, &new, NULL))
OPEN(big_eq, eq, fi_eq_open(scene->set.fabric, &big_eq_attr, &new, NULL))
OPEN(domain, domain, fi_domain(scene->set.fabric, scene->fake->info, &new,
			       NULL))
OPEN(av, av, fi_av_open(scene->set.domain, &av_attr, &new, NULL))
OPEN(cq, cq, fi_cq_open(scene->set.domain, &cq_attr, &new, NULL))
OPEN(cntr, cntr, fi_cntr_open(scene->set.domain, &cntr_attr, &new, NULL))
OPEN(ep, ep, fi_endpoint(scene->set.domain, scene->fake->info, &new, NULL))
OPEN(mr, mr, fi_mr_reg(scene->set.domain, memory, sizeof(memory), FI_READ, 0,
		       0, 0, &new, NULL))
OPEN(pool_mr, mr, alloc_mr(scene, &new))

/* The core's own queues and counters, as providers may use them. */
static int core_cq_run(struct scene *scene)
{
	struct fi_cq_attr attr = {};
	struct fid_cq *cq = NULL;
	int ret = kofi_cq_open(scene->set.domain, &attr, &cq, NULL);

	scene->result = cq;
	return ret;
}

static int core_cntr_run(struct scene *scene)
{
	struct fid_cntr *cntr = NULL;
	int ret = kofi_cntr_open(scene->set.domain, &cntr_attr, &cntr, NULL);

	scene->result = cntr;
	return ret;
}

static int core_undo(struct scene *scene)
{
	struct fid *fid = scene->result;

	return fid->ops->close(fid);
}

/*
 * A binding ends when the endpoint or domain is closed. So each binding takes a new endpoint or
 * domain, which is opened while no allocation fails.
 */
static int without_faults(int (*run)(struct scene *scene), struct scene *scene)
{
	unsigned int nth = faults_pause();
	int ret = run(scene);

	faults_resume(nth);
	return ret;
}

static int bind_new(struct scene *scene, int (*run)(struct scene *scene),
		    int (*bind)(struct scene *scene))
{
	int ret = without_faults(run, scene);

	if (ret)
		return -EIO;
	ret = bind(scene);
	if (ret && without_faults(close_undo, scene))
		return -EIO;
	return ret;
}

static int bind_ep(struct scene *scene)
{
	struct fid_ep *ep = container_of(scene->result, struct fid_ep, fid);

	return fi_ep_bind(ep, &scene->set.av->fid, 0) ?:
	       fi_ep_bind(ep, &scene->set.cq->fid, FI_TRANSMIT | FI_RECV) ?:
	       fi_ep_bind(ep, &scene->set.cntr->fid, FI_READ) ?:
	       fi_ep_bind(ep, &scene->set.eq->fid, 0) ?: fi_enable(ep);
}

static int ep_bind_run(struct scene *scene)
{
	return bind_new(scene, ep_run, bind_ep);
}

static int bind_domain(struct scene *scene)
{
	return fi_domain_bind(container_of(scene->result, struct fid_domain,
					   fid), &scene->set.eq->fid, 0);
}

static int domain_bind_run(struct scene *scene)
{
	return bind_new(scene, domain_run, bind_domain);
}

static const struct operation operations[] = {
	{ "kofi_provider_register", register_run, register_undo, 1 },
	{ "fi_allocinfo", alloc_run, info_undo, 6 },
	{ "fi_allocinfo_for", alloc_for_run, info_undo, 9 },
	{ "fi_dupinfo", dup_run, info_undo, 20 },
	{ "fi_getinfo", getinfo_run, info_undo, 31 },
	{ "fi_getinfo of providers", getprov_run, info_undo, 7 },
	{ "fi_tostr", tostr_run, tostr_undo, 2 },
	{ "fi_fabric", fabric_run, close_undo, 2 },
	{ "fi_eq_open", eq_run, close_undo, 2 },
	{ "fi_eq_open, large", big_eq_run, close_undo, 2 },
	{ "fi_domain", domain_run, close_undo, 2 },
	{ "fi_av_open", av_run, close_undo, 2 },
	{ "fi_cq_open", cq_run, close_undo, 3 },
	{ "fi_cntr_open", cntr_run, close_undo, 2 },
	{ "fi_endpoint", ep_run, close_undo, 2 },
	{ "fi_mr_reg", mr_run, close_undo, 2 },
	{ "fi_mr_alloc", pool_mr_run, close_undo, 2 },
	{ "kofi_cq_open", core_cq_run, core_undo, 2 },
	{ "kofi_cntr_open", core_cntr_run, core_undo, 1 },
	{ "fi_ep_bind", ep_bind_run, close_undo, 4 },
	{ "fi_domain_bind", domain_bind_run, close_undo, 1 },
};

KUNIT_ARRAY_PARAM_DESC(operation, operations, desc);

static struct fi_info *full_info(struct kunit *test, struct kofi_fake *fake)
{
	struct fi_info *info = fake->info;
	struct fid_nic *nic = kzalloc(sizeof(*nic), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, nic);
	info->nic = nic;
	nic->device_attr.name = kstrdup("name", GFP_KERNEL);
	nic->device_attr.device_id = kstrdup("id", GFP_KERNEL);
	nic->device_attr.device_version = kstrdup("version", GFP_KERNEL);
	nic->device_attr.vendor_id = kstrdup("vendor", GFP_KERNEL);
	nic->device_attr.driver = kstrdup("driver", GFP_KERNEL);
	nic->device_attr.firmware = kstrdup("firmware", GFP_KERNEL);
	nic->link_attr.address = kstrdup("address", GFP_KERNEL);
	nic->link_attr.network_type = kstrdup("type", GFP_KERNEL);
	info->src_addr = kmemdup(memory, 32, GFP_KERNEL);
	info->src_addrlen = 32;
	info->dest_addr = kmemdup(memory, 32, GFP_KERNEL);
	info->dest_addrlen = 32;
	return info;
}

static struct scene *new_scene(struct kunit *test)
{
	struct scene *scene = kunit_kzalloc(test, sizeof(*scene), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, scene);
	scene->fake = kofi_fake_new(test, "fake");
	scene->unborn = kofi_fake_make(test, "unborn");
	scene->info = full_info(test, scene->fake);
	kofi_fake_add_info(test, scene->fake, "fake-dev1");
	kofi_fake_open_all(test, scene->fake, &scene->set);
	return scene;
}

/**
 * struct outcome - result of an operation
 * @injected: an allocation failed
 * @ret: what the operation returned
 */
struct outcome {
	bool injected;
	int ret;
};

/* Assertions allocate memory, so this function has none. */
static struct outcome run_with(const struct operation *operation,
			       struct scene *scene, unsigned int after,
			       unsigned int nth)
{
	struct outcome outcome;

	scene->result = NULL;
	faults_arm(after, nth);
	outcome.ret = operation->run(scene);
	outcome.injected = faults_disarm();
	return outcome;
}

/* Check for leftovers, whether the operation failed or fell back to another allocation. */
static struct outcome expect_clean(struct kunit *test,
				   const struct operation *operation,
				   struct scene *scene, unsigned int after,
				   unsigned int nth)
{
	unsigned int open = kofi_fake_open(scene->fake);
	int refs = module_refcount(THIS_MODULE);
	struct outcome outcome;

	outcome = run_with(operation, scene, after, nth);
	if (!outcome.ret)
		KUNIT_EXPECT_EQ(test, operation->undo(scene), 0);
	else if (outcome.ret != -ENOMEM || !outcome.injected)
		KUNIT_FAIL(test, "%d at allocation %u after %u", outcome.ret,
			   nth, after);
	KUNIT_EXPECT_EQ_MSG(test, kofi_fake_open(scene->fake), open,
			    "at allocation %u after %u", nth, after);
	KUNIT_EXPECT_EQ_MSG(test, module_refcount(THIS_MODULE), refs,
			    "at allocation %u after %u", nth, after);
	return outcome;
}

/*
 * Fail the nth call of kmalloc(), and other allocations just before it, which may differ
 * each time.
 */
static void fail_kmalloc(struct kunit *test, const struct operation *operation,
			 struct scene *scene, unsigned int nth)
{
	unsigned int i;

	for (i = 0; i < 3 * FAULTS_BETWEEN; i++) {
		expect_clean(test, operation, scene, nth - 1, 1 + i / 3);
		if (faults.failed == nth)
			return;
	}
	KUNIT_FAIL(test, "kmalloc() %u never failed", nth);
}

/* Fail allocations until none is left to fail. Return: how many failed. */
static unsigned int sweep(struct kunit *test, const struct operation *operation,
			  struct scene *scene)
{
	struct outcome outcome;
	unsigned int nth;

	for (nth = 1; nth < FAULTS_MAX; nth++) {
		outcome = expect_clean(test, operation, scene, 0, nth);
		if (!outcome.injected)
			return nth - 1;
	}
	KUNIT_FAIL(test, "the last allocation was not found");
	return nth;
}

static void each_allocation(struct kunit *test)
{
	const struct operation *operation = test->param_value;
	struct scene *scene = new_scene(test);
	unsigned int nth, count, points;

	KUNIT_EXPECT_EQ(test, expect_clean(test, operation, scene, 0, 0).ret,
			0);
	count = faults.seen;
	for (nth = 1; nth <= count; nth++)
		fail_kmalloc(test, operation, scene, nth);
	points = sweep(test, operation, scene);
	kunit_info(test, "%s: %u calls of kmalloc() failed, %u points in all\n",
		   operation->desc, count, points);
	KUNIT_EXPECT_GE(test, count, operation->points);
	KUNIT_EXPECT_GE(test, points, count);
}

/* A provider that fails with -ENOMEM doesn't hide another provider. */
static void provider_short(struct kunit *test)
{
	struct kofi_fake *poor = kofi_fake_new(test, "poor");
	struct kofi_fake *rich = kofi_fake_new(test, "rich");
	struct fi_info *list, *info;
	unsigned int found = 0;
	int ret;

	poor->call[FAKE_GETINFO].ret = -ENOMEM;
	ret = fi_getinfo(fi_version(), NULL, NULL, 0, NULL, &list);
	for (info = list; info; info = info->next)
		found += !strcmp(info->fabric_attr->prov_name,
				 rich->provider.name);
	fi_freeinfo(list);
	KUNIT_EXPECT_EQ(test, ret, 0);
	KUNIT_EXPECT_EQ(test, found, 1);
}

static struct kunit_case alloc_cases[] = {
	KUNIT_CASE_PARAM(each_allocation, operation_gen_params),
	KUNIT_CASE(provider_short),
	{}
};

static struct kunit_suite alloc_suite = {
	.name = "kofi_alloc",
	.suite_init = faults_init,
	.suite_exit = faults_exit,
	.test_cases = alloc_cases,
};

kunit_test_suite(alloc_suite);

MODULE_DESCRIPTION("KUnit tests of kOFI when memory is short");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
MODULE_IMPORT_NS(KOFI_TEST);
