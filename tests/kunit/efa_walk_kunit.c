// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Each call to the device and each allocation of the EFA provider's opening calls fails in
 * turn; then each pair of calls to the device. A failed opening must leave no trace, except
 * for objects that the device refused to destroy.
 */
#include <linux/workqueue.h>
#include "efa_scene.h"
#include "faults.h"

/* More calls to the device than any opening makes. */
#define CALLS_MAX	100

/**
 * struct walk - objects that an opening uses
 * @scene: open objects, with an endpoint that isn't enabled
 * @fake: the device of @scene
 * @probed: another device, not published
 * @result: the opened object
 */
struct walk {
	struct efa_scene	*scene;
	struct efake		*fake;
	struct efake		*probed;
	struct fid		*result;
};

/**
 * struct opening - an opening call
 * @desc: name of the call
 * @run: make the call; the opened object goes to walk->result
 * @undo: undo the call
 * @calls: minimum number of calls to the device
 * @kmallocs: minimum number of calls of kmalloc()
 */
struct opening {
	const char	*desc;
	int		(*run)(struct walk *walk);
	int		(*undo)(struct walk *walk);
	unsigned int	calls;
	unsigned int	kmallocs;
};

static int close_undo(struct walk *walk)
{
	return fi_close(walk->result);
}

#define OPEN(name, type, call)						\
static int name##_run(struct walk *walk)				\
{									\
	struct efa_scene *scene = walk->scene;				\
	struct type *new = NULL;					\
	int ret = call;							\
									\
	walk->result = new ? &new->fid : NULL;				\
	return ret;							\
}

static struct fi_av_attr av_attr;

OPEN(fabric, fid_fabric, fi_fabric(scene->info->fabric_attr, &new, NULL))
OPEN(domain, fid_domain, fi_domain(scene->fabric, scene->info, &new, NULL))
OPEN(av, fid_av, fi_av_open(scene->domain, &av_attr, &new, NULL))
OPEN(ep, fid_ep, fi_endpoint(scene->domain, scene->info, &new, NULL))
OPEN(mr, fid_mr, fi_mr_reg(scene->domain, scene->buf, EFA_BUF,
			   FI_REMOTE_READ, 0, 0, 0, &new, NULL))

static int alloc_mr(struct efa_scene *scene, struct fid_mr **mr)
{
	const struct fi_mr_alloc_attr attr = {
		.max_pages = 40, .access = FI_REMOTE_WRITE, .cq = scene->cq,
	};

	return fi_mr_alloc(scene->domain, &attr, mr, NULL);
}

OPEN(pool_mr, fid_mr, alloc_mr(scene, &new))

/* Empty the pool, which would keep the region, so that the next run creates one. */
static int mr_undo(struct walk *walk)
{
	struct kefa_domain *dom = efa_dom(walk->scene);
	int ret = walk->result ? fi_close(walk->result) : 0;

	kefa_dev_lock(dom->dev);
	kefa_pool_empty(dom);
	kefa_dev_unlock(dom->dev);
	return ret;
}

static int getinfo_run(struct walk *walk)
{
	struct fi_fabric_attr fabric = { .prov_name = FI_EFA_PROV_NAME };
	struct fi_info hints = {
		.fabric_attr = &fabric, .mode = FI_RX_CQ_DATA,
	};
	struct fi_info *info = NULL;
	int ret = fi_getinfo(fi_version(), NULL, NULL, 0, &hints, &info);

	if (ret && info)
		return -EBADE;
	fi_freeinfo(info);
	return ret;
}

static int nothing_to_undo(struct walk *walk)
{
	return 0;
}

static int insert_run(struct walk *walk)
{
	struct fi_efa_addr addr = efa_addr(200, 1);
	fi_addr_t got = 0;
	int ret = fi_av_insert(walk->scene->av, &addr, 1, &got, 0, NULL);

	if (ret == 1)
		return got == 1 ? 0 : -EBADE;
	return got == FI_ADDR_NOTAVAIL ? ret : -EBADE;
}

/* The address handle is destroyed later by a work item. */
static int insert_undo(struct walk *walk)
{
	fi_addr_t one = 1;
	int ret = fi_av_remove(walk->scene->av, &one, 1, 0);

	flush_work(&efa_dom(walk->scene)->ah_work);
	return ret;
}

/* Opened and bound before failures begin. */
static int enable_run(struct walk *walk)
{
	struct efa_scene *scene = walk->scene;
	unsigned int nth = faults_pause(), any = walk->fake->any;
	struct fid_ep *ep;
	int ret;

	walk->fake->any = 0;
	ret = fi_endpoint(scene->domain, scene->info, &ep, NULL) ?:
	      fi_ep_bind(ep, &scene->av->fid, 0) ?:
	      fi_ep_bind(ep, &scene->cq->fid, FI_TRANSMIT | FI_RECV);
	walk->fake->any = any;
	faults_resume(nth);
	if (ret)
		return -EBADE;
	ret = fi_enable(ep);
	walk->result = &ep->fid;
	if (!ret)
		return 0;
	nth = faults_pause();
	any = walk->fake->any;
	walk->fake->any = 0;
	if (fi_close(&ep->fid))
		ret = -EBADE;
	walk->fake->any = any;
	faults_resume(nth);
	return ret;
}

static int probe_run(struct walk *walk)
{
	struct kefa_dev *dev = walk->probed->dev;
	int ret;

	kefa_dev_lock(dev);
	ret = kefa_probe_dev(dev);
	kefa_dev_unlock(dev);
	return ret;
}

static const struct opening openings[] = {
	{ "fi_getinfo", getinfo_run, nothing_to_undo, 0, 10 },
	{ "fi_fabric", fabric_run, close_undo, 0, 2 },
	{ "fi_domain", domain_run, close_undo, 4, 3 },
	{ "fi_av_open", av_run, close_undo, 0, 2 },
	{ "fi_av_insert", insert_run, insert_undo, 1, 2 },
	{ "fi_endpoint", ep_run, close_undo, 0, 2 },
	{ "fi_enable", enable_run, close_undo, 3, 1 },
	{ "fi_mr_reg", mr_run, mr_undo, 4, 3 },
	{ "fi_mr_alloc", pool_mr_run, mr_undo, 1, 3 },
	{ "kefa_probe", probe_run, nothing_to_undo, 10, 1 },
};

KUNIT_ARRAY_PARAM_DESC(opening, openings, desc);

/**
 * struct traces - counts that a failed opening must not change
 * @maps: number of mappings of memory
 * @qps: number of queue pairs
 * @objs: number of other objects of the devices
 * @credits: credits of the completion queue
 * @refs: references to the module
 */
struct traces {
	unsigned int	maps;
	unsigned int	qps;
	unsigned int	objs;
	int		credits;
	int		refs;
};

static struct traces traces_of(struct walk *walk)
{
	return (struct traces) {
		.maps	 = walk->fake->nmaps + walk->probed->nmaps,
		.qps	 = list_count_nodes(&walk->fake->qps) +
			   list_count_nodes(&walk->probed->qps),
		.objs	 = list_count_nodes(&walk->fake->objs) +
			   list_count_nodes(&walk->probed->objs),
		.credits = atomic_read(&efa_cq(walk->scene)->credits),
		.refs	 = module_refcount(THIS_MODULE),
	};
}

static struct walk *walk_new(struct kunit *test)
{
	struct walk *walk = kunit_kzalloc(test, sizeof(*walk), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, walk);
	walk->scene = efa_scene_new(test, &(struct efa_opts) {
		.idle = true,
	});
	walk->fake = walk->scene->fake;
	walk->probed = efake_make(test, "efake1");
	walk->probed->auto_tx = true;
	return walk;
}

static void expect_no_traces(struct kunit *test, struct walk *walk,
			     const struct opening *opening,
			     const struct traces *before, int ret,
			     const char *where)
{
	struct traces after;

	if (!ret)
		KUNIT_EXPECT_EQ(test, opening->undo(walk), 0);
	else if (opening->undo == mr_undo)
		opening->undo(walk);
	else if (opening->undo == insert_undo)
		flush_work(&efa_dom(walk->scene)->ah_work);
	efake_settle();
	after = traces_of(walk);
	KUNIT_EXPECT_EQ_MSG(test, after.maps, before->maps, "%s", where);
	KUNIT_EXPECT_EQ_MSG(test, after.qps, before->qps, "%s", where);
	KUNIT_EXPECT_EQ_MSG(test, after.objs, before->objs, "%s", where);
	KUNIT_EXPECT_EQ_MSG(test, after.credits, before->credits, "%s", where);
	KUNIT_EXPECT_EQ_MSG(test, after.refs, before->refs, "%s", where);
}

/* --- calls to the device --- */

/* Return: number of calls that failed. */
static unsigned int fail_calls(struct kunit *test, struct walk *walk,
			       const struct opening *opening,
			       unsigned int first, unsigned int second)
{
	struct efake *fakes[] = { walk->fake, walk->probed };
	struct traces before = traces_of(walk);
	unsigned int i, hits = 0;
	char where[40];
	int ret;

	snprintf(where, sizeof(where), "at call %u and %u", first, second);
	walk->result = NULL;
	for (i = 0; i < ARRAY_SIZE(fakes); i++) {
		fakes[i]->hits = 0;
		fakes[i]->then = second;
		fakes[i]->any = first;
	}
	ret = opening->run(walk);
	for (i = 0; i < ARRAY_SIZE(fakes); i++) {
		fakes[i]->any = 0;
		hits += fakes[i]->hits;
	}
	if (ret && !hits)
		KUNIT_FAIL(test, "%d %s, without a reason", ret, where);
	KUNIT_EXPECT_NE(test, ret, -EBADE);
	expect_no_traces(test, walk, opening, &before, ret, where);
	return hits;
}

static void each_call(struct kunit *test)
{
	const struct opening *opening = test->param_value;
	struct walk *walk = walk_new(test);
	unsigned int first, second, pairs = 0;

	for (first = 1; first < CALLS_MAX; first++) {
		if (!fail_calls(test, walk, opening, first, 0))
			break;
		for (second = 1; second < CALLS_MAX; second++) {
			if (fail_calls(test, walk, opening, first, second) < 2)
				break;
			pairs++;
		}
	}
	kunit_info(test, "%s: %u calls failed, and %u pairs\n", opening->desc,
		   first - 1, pairs);
	KUNIT_EXPECT_GE(test, first - 1, opening->calls);
	KUNIT_EXPECT_LT(test, first, CALLS_MAX);
}

/* --- allocations --- */

static bool fail_allocation(struct kunit *test, struct walk *walk,
			    const struct opening *opening, unsigned int after,
			    unsigned int nth)
{
	struct traces before = traces_of(walk);
	bool injected;
	char where[48];
	int ret;

	snprintf(where, sizeof(where), "at allocation %u after %u", nth, after);
	walk->result = NULL;
	faults_arm(after, nth);
	ret = opening->run(walk);
	injected = faults_disarm();
	if (ret && (ret != -ENOMEM || !injected))
		KUNIT_FAIL(test, "%d %s", ret, where);
	expect_no_traces(test, walk, opening, &before, ret, where);
	return injected;
}

/* Fail the nth call of kmalloc(), and other allocations just before it. */
static void fail_kmalloc(struct kunit *test, struct walk *walk,
			 const struct opening *opening, unsigned int nth)
{
	unsigned int i;

	for (i = 0; i < 3 * FAULTS_BETWEEN; i++) {
		fail_allocation(test, walk, opening, nth - 1, 1 + i / 3);
		if (faults.failed == nth)
			return;
	}
	KUNIT_FAIL(test, "kmalloc() %u never failed", nth);
}

static void each_allocation(struct kunit *test)
{
	const struct opening *opening = test->param_value;
	struct walk *walk = walk_new(test);
	unsigned int nth, count;

	fail_allocation(test, walk, opening, 0, 0);
	count = faults.seen;
	for (nth = 1; nth <= count; nth++)
		fail_kmalloc(test, walk, opening, nth);
	for (nth = 1; nth < FAULTS_MAX; nth++)
		if (!fail_allocation(test, walk, opening, 0, nth))
			break;
	kunit_info(test, "%s: %u calls of kmalloc() failed, %u points in all\n",
		   opening->desc, count, nth - 1);
	KUNIT_EXPECT_GE(test, count, opening->kmallocs);
	KUNIT_EXPECT_GE(test, nth - 1, count);
	KUNIT_EXPECT_LT(test, nth, FAULTS_MAX);
}

static struct kunit_case walk_cases[] = {
	KUNIT_CASE_PARAM(each_call, opening_gen_params),
	KUNIT_CASE_PARAM_ATTR(each_allocation, opening_gen_params, { .speed = KUNIT_SPEED_SLOW }),
	{}
};

static struct kunit_suite walk_suite = {
	.name = "kefa_walk",
	.suite_init = faults_init,
	.suite_exit = faults_exit,
	.test_cases = walk_cases,
};

kunit_test_suite(walk_suite);
