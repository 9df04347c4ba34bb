// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Removal of devices at bad moments: while an object is being opened, bound, enabled or
 * closed, and while threads are at work.
 */
#include <linux/delay.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include "crew.h"
#include "fake.h"

#define DEVICE	"fake-dev0"

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

/* The next call of @op removes the device before it returns. */
static void remove_device(struct kofi_fake *fake, struct fid *fid, void *arg)
{
	struct fid_domain *domain = arg;

	kofi_device_removed(domain ? &domain->fid : fid, DEVICE);
}

static void remove_inside(struct kofi_fake *fake, enum kofi_fake_op op,
			  struct fid_domain *domain)
{
	fake->call[op].hook = remove_device;
	fake->call[op].hook_arg = domain;
}

static void expect_dead(struct kunit *test, struct fid *fid)
{
	KUNIT_EXPECT_EQ(test, fi_control(fid, 0x10000, NULL), -ENODEV);
}

static void expect_alive(struct kunit *test, struct fid *fid)
{
	KUNIT_EXPECT_EQ(test, fi_control(fid, 0x10000, NULL), 0);
}

/* Removal of one domain's device doesn't affect other domains. */
static void one_of_two(struct kunit *test)
{
	struct scene *one = new_scene(test);
	struct fid_domain *near;
	struct kofi_fake_set far;

	near = kofi_fake_domain(test, one->fake, one->set.fabric);
	kofi_fake_open_all(test, one->fake, &far);
	kofi_device_removed(&one->set.domain->fid, DEVICE);
	expect_dead(test, &one->set.domain->fid);
	expect_dead(test, &one->set.av->fid);
	expect_dead(test, &one->set.cq->fid);
	expect_dead(test, &one->set.cntr->fid);
	expect_dead(test, &one->set.ep->fid);
	expect_dead(test, &one->set.mr->fid);
	expect_dead(test, &one->set.pool_mr->fid);
	expect_alive(test, &one->set.fabric->fid);
	KUNIT_EXPECT_EQ(test, fi_control(&one->set.eq->fid, 0x10000, NULL),
			-EOPNOTSUPP);
	expect_alive(test, &near->fid);
	kofi_fake_av(test, near);
	expect_alive(test, &far.domain->fid);
	kofi_fake_bind_ep(test, &far);
	KUNIT_EXPECT_EQ(test, fi_enable(far.ep), 0);
	/* The old domain stays dead. */
	kofi_device_removed(&one->set.domain->fid, DEVICE);
	expect_dead(test, &one->set.domain->fid);
}

/* Dead objects are counted like others: close returns -EBUSY while there are children. */
static void zombies_close(struct kunit *test)
{
	struct scene *scene = new_scene(test);
	struct kofi_fake_set *set = &scene->set;

	kofi_fake_bind_ep(test, set);
	KUNIT_ASSERT_EQ(test, fi_enable(set->ep), 0);
	kofi_device_removed(&set->domain->fid, DEVICE);
	KUNIT_EXPECT_EQ(test, fi_close(&set->domain->fid), -EBUSY);
	KUNIT_EXPECT_EQ(test, fi_close(&set->cq->fid), -EBUSY);
	KUNIT_EXPECT_EQ(test, fi_close(&set->av->fid), -EBUSY);
	kofi_fake_close(test, &set->pool_mr->fid);
	kofi_fake_close(test, &set->mr->fid);
	kofi_fake_close(test, &set->ep->fid);
	kofi_fake_close(test, &set->cntr->fid);
	kofi_fake_close(test, &set->cq->fid);
	kofi_fake_close(test, &set->av->fid);
	kofi_fake_close(test, &set->domain->fid);
	/* The device can come back. */
	set->domain = kofi_fake_domain(test, scene->fake, set->fabric);
	expect_alive(test, &set->domain->fid);
}

static void while_domain_opens(struct kunit *test)
{
	struct scene *scene = new_scene(test);
	struct kofi_fake *fake = scene->fake;
	struct fid_domain *domain;
	struct fi_av_attr attr = {};
	struct fid_av *av;

	remove_inside(fake, FAKE_DOMAIN, NULL);
	domain = kofi_fake_domain(test, fake, scene->set.fabric);
	fake->call[FAKE_DOMAIN].hook = NULL;
	expect_dead(test, &domain->fid);
	KUNIT_EXPECT_EQ(test, fi_av_open(domain, &attr, &av, NULL), -ENODEV);
	KUNIT_EXPECT_EQ(test, fi_domain_bind(domain, &scene->set.eq->fid, 0),
			-ENODEV);
	expect_alive(test, &scene->set.domain->fid);
	kofi_fake_close(test, &domain->fid);
	expect_alive(test, &kofi_fake_domain(test, fake,
					     scene->set.fabric)->fid);
}

/* The device is removed while an object is opened, once for each class. */

typedef int (*open_fn)(struct scene *scene, struct fid **fid);

#define OPEN(name, type, call)						\
static int open_##name(struct scene *scene, struct fid **fid)		\
{									\
	struct type *new = NULL;					\
	int ret = call;							\
									\
	*fid = (struct fid *)new;					\
	return ret;							\
}

static struct fi_av_attr av_attr;
static struct fi_cq_attr cq_attr;
static struct fi_cntr_attr cntr_attr;

static int alloc_mr(struct scene *scene, struct fid_mr **mr)
{
	const struct fi_mr_alloc_attr attr = {
		.max_pages = 1, .access = FI_REMOTE_READ, .cq = scene->set.cq,
	};

	return fi_mr_alloc(scene->set.domain, &attr, mr, NULL);
}

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
	{ "av", FAKE_AV, open_av },
	{ "cq", FAKE_CQ, open_cq },
	{ "cntr", FAKE_CNTR, open_cntr },
	{ "ep", FAKE_EP, open_ep },
	{ "mr", FAKE_MR_REG, open_mr },
	{ "allocated mr", FAKE_MR_ALLOC, open_pool_mr },
};

KUNIT_ARRAY_PARAM_DESC(opening, openings, desc);

static void while_child_opens(struct kunit *test)
{
	const struct opening *opening = test->param_value;
	struct scene *scene = new_scene(test);
	struct fid *fid;

	remove_inside(scene->fake, opening->op, scene->set.domain);
	KUNIT_ASSERT_EQ(test, opening->open(scene, &fid), 0);
	expect_dead(test, fid);
	KUNIT_EXPECT_EQ(test, fi_close(fid), 0);
	KUNIT_EXPECT_EQ(test, opening->open(scene, &fid), -ENODEV);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(scene->fake, opening->op), 2);
}

/* The device is removed while an object is opened, and the provider's op fails. */
static void while_child_fails_to_open(struct kunit *test)
{
	const struct opening *opening = test->param_value;
	struct scene *scene = new_scene(test);
	struct fid *fid;

	remove_inside(scene->fake, opening->op, scene->set.domain);
	scene->fake->call[opening->op].ret = -EIO;
	KUNIT_EXPECT_EQ(test, opening->open(scene, &fid), -EIO);
	KUNIT_EXPECT_NULL(test, fid);
	expect_dead(test, &scene->set.domain->fid);
}

/* fi_enable() fails after a removal, whatever the provider returns. */
static void expect_enable_fails(struct kunit *test, int ret)
{
	struct scene *scene = new_scene(test);
	struct fid_ep *ep = scene->set.ep;

	kofi_fake_bind_ep(test, &scene->set);
	remove_inside(scene->fake, FAKE_CONTROL, scene->set.domain);
	scene->fake->call[FAKE_CONTROL].ret = ret;
	KUNIT_EXPECT_EQ(test, fi_enable(ep), -ENODEV);
	KUNIT_EXPECT_EQ(test, fi_enable(ep), -ENODEV);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(scene->fake, FAKE_CONTROL), 1);
}

static void while_enabling(struct kunit *test)
{
	expect_enable_fails(test, 0);
}

static void while_enabling_fails(struct kunit *test)
{
	expect_enable_fails(test, -EIO);
}

static void while_binding(struct kunit *test)
{
	struct scene *scene = new_scene(test);
	struct kofi_fake_set *set = &scene->set;

	remove_inside(scene->fake, FAKE_BIND, set->domain);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(set->ep, &set->av->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&set->av->fid), -EBUSY);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(set->ep, &set->cq->fid, FI_RECV),
			-ENODEV);
	KUNIT_EXPECT_EQ(test, fi_enable(set->ep), -ENODEV);
	kofi_fake_close(test, &set->ep->fid);
	kofi_fake_close(test, &set->av->fid);
}

/* An object whose close failed is dead after a removal during the close. */
static void while_closing_fails(struct kunit *test)
{
	struct scene *scene = new_scene(test);
	struct kofi_fake_call *call = &scene->fake->call[FAKE_CLOSE];
	struct fid_ep *ep = scene->set.ep;

	kofi_fake_bind_ep(test, &scene->set);
	KUNIT_ASSERT_EQ(test, fi_enable(ep), 0);
	remove_inside(scene->fake, FAKE_CLOSE, scene->set.domain);
	call->ret = -EIO;
	KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), -EIO);
	call->hook = NULL;
	call->ret = 0;
	expect_dead(test, &ep->fid);
	kofi_fake_close(test, &ep->fid);
}

/* The device is removed during the domain's close op, which fails. */
static void while_domain_closes(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct kofi_fake_call *call = &fake->call[FAKE_CLOSE];
	struct fid_fabric *fabric = kofi_fake_fabric(test, fake);
	struct fid_domain *domain = kofi_fake_domain(test, fake, fabric);
	struct fid_eq *eq = kofi_fake_eq(test, fabric, NULL);
	struct fi_eq_device_entry entry;
	u32 event;

	KUNIT_ASSERT_EQ(test, fi_domain_bind(domain, &eq->fid, 0), 0);
	remove_inside(fake, FAKE_CLOSE, domain);
	call->ret = -EIO;
	KUNIT_EXPECT_EQ(test, fi_close(&domain->fid), -EIO);
	expect_dead(test, &domain->fid);
	KUNIT_EXPECT_EQ(test, fi_eq_read(eq, &event, &entry, sizeof(entry), 0),
			sizeof(entry));
	KUNIT_EXPECT_EQ(test, event, FI_DEVICE_REMOVED);
	call->ret = 0;
	kofi_fake_close(test, &domain->fid);
	call->hook = NULL;
	KUNIT_EXPECT_EQ(test, fi_eq_read(eq, &event, &entry, sizeof(entry), 0),
			-EAGAIN);
}

/* Threads use a device that is removed; each must end by -ENODEV, and by no other error. */

#define THREADS	3

struct stress {
	struct work_struct work[THREADS];
	struct scene *scene;
	atomic_t rounds;
	atomic_t bad;
};

/* Return: 0, -ENODEV, or an unexpected error. */
static int stress_ep(struct scene *scene, struct fid_ep *ep)
{
	struct kofi_fake_set *set = &scene->set;
	int again;
	int ret;

	ret = fi_ep_bind(ep, &set->av->fid, 0) ?:
	      fi_ep_bind(ep, &set->cq->fid, FI_TRANSMIT | FI_RECV) ?:
	      fi_enable(ep);
	again = fi_enable(ep);
	if (again != -ENODEV && again != -FI_EOPBADSTATE)
		return -EIO;
	/* After -ENODEV, all calls return -ENODEV. */
	if (ret == -ENODEV && again != -ENODEV)
		return -EIO;
	return ret;
}

static int stress_round(struct scene *scene)
{
	struct fid *ep, *mr;
	int ret;

	ret = open_ep(scene, &ep);
	if (ret)
		return ret;
	ret = open_pool_mr(scene, &mr);
	if (!ret) {
		ret = stress_ep(scene, (struct fid_ep *)ep);
		if (fi_close(mr))
			ret = -EIO;
	}
	return fi_close(ep) ? -EIO : ret;
}

static void stress_work(struct stress *stress)
{
	int ret;

	do {
		ret = stress_round(stress->scene);
		atomic_inc(&stress->rounds);
		cond_resched();
	} while (!ret);
	if (ret != -ENODEV)
		atomic_inc(&stress->bad);
}

#define STRESS_WORK(n)							\
static void stress_work_##n(struct work_struct *work)			\
{									\
	stress_work(container_of(work, struct stress, work[n]));	\
}

STRESS_WORK(0) STRESS_WORK(1) STRESS_WORK(2)

static void while_busy(struct kunit *test)
{
	static const work_func_t works[] = {
		stress_work_0, stress_work_1, stress_work_2,
	};
	struct scene *scene = new_scene(test);
	unsigned int i, open, rounds;
	struct stress *stress;
	int before;

	stress = kunit_kzalloc(test, sizeof(*stress), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, stress);
	stress->scene = scene;
	open = kofi_fake_open(scene->fake);
	for (i = 0; i < THREADS; i++)
		INIT_WORK(&stress->work[i], works[i]);
	/* Remove the device at a different moment each time. */
	for (rounds = 0; rounds < 20; rounds++) {
		before = atomic_read(&stress->rounds);
		for (i = 0; i < THREADS; i++)
			queue_work(system_unbound_wq, &stress->work[i]);
		KUNIT_EXPECT_TRUE(test,
				  kofi_soon(atomic_read(&stress->rounds) >
					    before + THREADS));
		usleep_range(1000 + rounds * 100, 1100 + rounds * 100);
		kofi_device_removed(&scene->set.domain->fid, DEVICE);
		for (i = 0; i < THREADS; i++)
			flush_work(&stress->work[i]);
		KUNIT_EXPECT_EQ(test, kofi_fake_open(scene->fake), open);
		scene->set.domain = kofi_fake_domain(test, scene->fake,
						     scene->set.fabric);
		scene->set.av = kofi_fake_av(test, scene->set.domain);
		scene->set.cq = kofi_fake_cq(test, scene->set.domain, NULL);
		open = kofi_fake_open(scene->fake);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&stress->bad), 0);
	kunit_info(test, "%d rounds\n", atomic_read(&stress->rounds));
}

static struct kunit_case device_cases[] = {
	KUNIT_CASE(one_of_two),
	KUNIT_CASE(zombies_close),
	KUNIT_CASE(while_domain_opens),
	KUNIT_CASE_PARAM(while_child_opens, opening_gen_params),
	KUNIT_CASE_PARAM(while_child_fails_to_open, opening_gen_params),
	KUNIT_CASE(while_enabling),
	KUNIT_CASE(while_enabling_fails),
	KUNIT_CASE(while_binding),
	KUNIT_CASE(while_closing_fails),
	KUNIT_CASE(while_domain_closes),
	KUNIT_CASE(while_busy),
	{}
};

static struct kunit_suite device_suite = {
	.name = "kofi_device",
	.test_cases = device_cases,
};

kunit_test_suite(device_suite);

MODULE_DESCRIPTION("KUnit tests of devices that leave kOFI");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
MODULE_IMPORT_NS(KOFI_TEST);
