// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The queues that kofi_ulp opens on a device: their number, and how each is served. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <kofi/cm.h>
#include <kofi/ulp.h>

static int scene_cq_open(struct fid_domain *domain, const struct fi_cq_attr *attr,
			 struct fid_cq **cq, void *context);
static int scene_endpoint(struct fid_domain *domain, const struct fi_info *info,
			  struct fid_ep **ep, void *context);
static int scene_setopt(struct fid *fid, int level, int name, const void *value, size_t len);
static int scene_disable(struct fid_ep *ep);
static int scene_close(struct fid *fid);

/* A device that has nothing but objects. */
#define fi_cq_open		scene_cq_open
#define fi_endpoint		scene_endpoint
#define fi_ep_bind(...)		0
#define fi_enable(...)		0
#define fi_setopt		scene_setopt
#define fi_getname(...)		0
#define fi_cq_read(...)		(-EAGAIN)
#define fi_disable		scene_disable
#define fi_close		scene_close
#include "../../ulp/lib/fabric.c"

/* This suite has no secrets. */
void kulp_auth_exit(void)
{
}

#include <kunit/test.h>

static struct scene {
	struct kulp_fabric	fabric;
	struct kulp_role	role;
	struct kulp_queue	queues[5];
	struct fid_cq		cq;
	struct fid_ep		ep;
	struct fid_av		av;
	unsigned int		eps;		/* that exist */
	unsigned int		cqs;
	unsigned int		max_eps;
	unsigned int		disabled;
} *scene;

static int scene_cq_open(struct fid_domain *domain, const struct fi_cq_attr *attr,
			 struct fid_cq **cq, void *context)
{
	scene->cqs++;
	*cq = &scene->cq;
	return 0;
}

static int scene_endpoint(struct fid_domain *domain, const struct fi_info *info,
			  struct fid_ep **ep, void *context)
{
	if (scene->eps == scene->max_eps)
		return -ENOSPC;
	scene->eps++;
	*ep = &scene->ep;
	return 0;
}

static int scene_setopt(struct fid *fid, int level, int name, const void *value, size_t len)
{
	return 0;
}

static int scene_disable(struct fid_ep *ep)
{
	scene->disabled++;
	return 0;
}

static int scene_close(struct fid *fid)
{
	*(fid == &scene->ep.fid ? &scene->eps : &scene->cqs) -= 1;
	return 0;
}

/* A device has as many vectors as before if it has enough queues for two each. */
static void queues_counted(struct kunit *test)
{
	static const struct {
		bool		too;
		unsigned int	cq_cnt, polled, nvectors, nsoftirq, npolled;
	} rows[] = {
		{ false, 16, 0, 2, 0, 0 },
		{ false, 16, 1, 2, 0, 1 },
		{ false, 2, 1, 2, 0, 0 },
		{ false, 1, 0, 1, 0, 0 },
		{ false, 0, 1, 1, 0, 0 },
		{ true, 16, 0, 2, 2, 0 },
		{ true, 16, 1, 2, 2, 1 },
		{ true, 5, 1, 2, 2, 1 },
		{ true, 4, 1, 2, 2, 0 },
		{ true, 3, 1, 1, 1, 1 },
		{ true, 3, 0, 1, 1, 0 },
		{ true, 2, 1, 1, 1, 0 },
		/* A single queue is that of the worker. */
		{ true, 1, 1, 1, 0, 0 },
		{ true, 0, 0, 1, 0, 0 },
	};
	struct kulp_fabric *f = &scene->fabric;
	unsigned int i;

	scene->role.min_queues = 2;
	scene->role.max_queues = 2;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		scene->role.softirq_too = rows[i].too;
		f->info->domain_attr->cq_cnt = rows[i].cq_cnt;
		kulp_count_queues(f, rows[i].polled);
		KUNIT_EXPECT_EQ_MSG(test, f->nvectors, rows[i].nvectors, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, f->nsoftirq, rows[i].nsoftirq, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, f->npolled, rows[i].npolled, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, f->polled, rows[i].polled, "row %u", i);
	}
}

static void queue_is(struct kunit *test, u16 index, u16 vector, u64 flags)
{
	struct kulp_fabric *f = &scene->fabric;
	struct fi_cq_attr attr = kulp_cq_attr(f, index);
	bool polled = f->queues[index].polled;

	KUNIT_EXPECT_EQ_MSG(test, attr.flags, FI_AFFINITY | flags, "queue %u", index);
	KUNIT_EXPECT_EQ_MSG(test, attr.signaling_vector,
			    cpumask_nth(vector % num_online_cpus(), cpu_online_mask),
			    "queue %u", index);
	KUNIT_EXPECT_PTR_EQ(test, attr.handler, polled ? NULL : kulp_cq_drain);
	KUNIT_EXPECT_PTR_EQ(test, attr.handler_context,
			    polled ? NULL : (void *)&f->queues[index]);
}

/* Handlers of second queues, or all of a role, are called in softirqs. Polled queues have none. */
static void queues_in_softirqs(struct kunit *test)
{
	struct kulp_fabric *f = &scene->fabric;

	f->nvectors = 2;
	f->queues[2].polled = true;
	queue_is(test, 0, 0, 0);
	queue_is(test, 1, 1, 0);
	queue_is(test, 2, 0, 0);
	scene->role.softirq = true;
	queue_is(test, 0, 0, FI_CQ_SOFTIRQ);
	queue_is(test, 1, 1, FI_CQ_SOFTIRQ);
	queue_is(test, 2, 0, 0);
	scene->role.softirq = false;
	f->queues[2].polled = false;
	f->nsoftirq = 2;
	f->queues[4].polled = true;
	queue_is(test, 0, 0, 0);
	queue_is(test, 1, 1, 0);
	queue_is(test, 2, 0, FI_CQ_SOFTIRQ);
	queue_is(test, 3, 1, FI_CQ_SOFTIRQ);
	queue_is(test, 4, 0, 0);
}

/* A device that has too few endpoints for second queues has none, and others aren't given up. */
static void queues_dropped(struct kunit *test)
{
	static const struct {
		unsigned int	max_eps;
		int		ret;
		unsigned int	nqueues, nsoftirq, disabled;
	} rows[] = {
		{ 5, 0, 5, 2, 0 },
		{ 4, -ENOSPC, 5, 2, 0 },
		/* One second queue was open. */
		{ 3, 0, 3, 0, 1 },
		{ 2, -ENOSPC, 3, 0, 0 },
		{ 1, -ENOSPC, 2, 2, 0 },
	};
	struct kulp_fabric *f = &scene->fabric;
	unsigned int i, j;

	f->av = &scene->av;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		f->nqueues = 0;
		f->nvectors = 2;
		f->nsoftirq = 2;
		f->npolled = 1;
		scene->max_eps = rows[i].max_eps;
		scene->disabled = 0;
		KUNIT_EXPECT_EQ_MSG(test, kulp_queues_open(f), rows[i].ret, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, f->nqueues, rows[i].nqueues, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, f->nsoftirq, rows[i].nsoftirq, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, scene->disabled, rows[i].disabled, "row %u", i);
		for (j = 0; j < f->nqueues; j++) {
			KUNIT_EXPECT_EQ_MSG(test, f->queues[j].polled, j >= 2U + f->nsoftirq,
					    "row %u, queue %u", i, j);
			kulp_queue_close(&f->queues[j]);
		}
		KUNIT_EXPECT_EQ_MSG(test, scene->eps, 0U, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, scene->cqs, 0U, "row %u", i);
		memset(scene->queues, 0, sizeof(scene->queues));
	}
}

/* Only endpoints that would share the domain's queue with others register memory themselves. */
static void queues_register(struct kunit *test)
{
	struct kulp_queue *q = &scene->queues[1];
	struct fid_ep ep;

	q->fabric = &scene->fabric;
	q->ep = &ep;
	scene->fabric.nqueues = 2;
	KUNIT_EXPECT_PTR_EQ(test, kulp_queue_mr_ep(q), &ep);
	scene->fabric.nqueues = 1;
	KUNIT_EXPECT_NULL(test, kulp_queue_mr_ep(q));
}

static int queues_init(struct kunit *test)
{
	scene = kunit_kzalloc(test, sizeof(*scene), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene);
	scene->fabric.role = &scene->role;
	scene->fabric.queues = scene->queues;
	scene->fabric.info = fi_allocinfo();
	KUNIT_ASSERT_NOT_NULL(test, scene->fabric.info);
	return 0;
}

static void queues_exit(struct kunit *test)
{
	if (scene)
		fi_freeinfo(scene->fabric.info);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(queues_counted),
	KUNIT_CASE(queues_in_softirqs),
	KUNIT_CASE(queues_dropped),
	KUNIT_CASE(queues_register),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofi_ulp_queues",
	.init		= queues_init,
	.exit		= queues_exit,
	.test_cases	= cases,
};

kunit_test_suite(suite);
