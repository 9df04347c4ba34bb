// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Probing of devices by the EFA provider. */
#include "crew.h"
#include "efa_scene.h"

static struct efake *unprobed(struct kunit *test)
{
	struct efake *fake = efake_make(test, EFA_DEVICE);

	fake->dev->rdma_read = false;
	fake->dev->rdma_write = false;
	fake->auto_tx = true;
	return fake;
}

static int probe(struct efake *fake)
{
	int ret;

	kefa_dev_lock(fake->dev);
	ret = kefa_probe_dev(fake->dev);
	kefa_dev_unlock(fake->dev);
	return ret;
}

static void probe_all(struct kunit *test)
{
	struct efake *fake = unprobed(test);

	KUNIT_EXPECT_EQ(test, probe(fake), 0);
	KUNIT_EXPECT_TRUE(test, fake->dev->rdma_read);
	KUNIT_EXPECT_TRUE(test, fake->dev->rdma_write);
	KUNIT_EXPECT_TRUE(test, fake->dev->dgram);
	KUNIT_EXPECT_EQ(test, fake->dev->ud_prefix, 40);
	KUNIT_EXPECT_TRUE(test, list_empty(&fake->lost));
}

/* --- datagrams --- */

static const struct room {
	const char	*desc;
	u32		room;		/* in front of a datagram */
	unsigned int	lost;		/* number of datagrams */
	bool		ok;
} rooms[] = {
	{ "a header", 40, 0, true },
	{ "nothing in front", 0, 0, true },
	{ "a header of another length", 16, 0, false },
	{ "a loss", 40, 1, true },
	{ "two losses", 0, 2, true },
	{ "all are lost", 40, 3, false },
};

KUNIT_ARRAY_PARAM_DESC(room, rooms, desc);

static void probe_dgram(struct kunit *test)
{
	const struct room *row = test->param_value;
	struct efake *fake = unprobed(test);

	fake->ud_room = row->room;
	fake->ud_lost = row->lost;
	KUNIT_EXPECT_EQ(test, probe(fake), 0);
	KUNIT_EXPECT_EQ(test, fake->dev->dgram, row->ok);
	KUNIT_EXPECT_EQ(test, fake->dev->ud_prefix, row->ok ? row->room : 0);
	KUNIT_EXPECT_TRUE(test, fake->dev->rdma_read && fake->dev->rdma_write);
}

/* A device that can't have such a queue pair, or post to it, is usable without. */
static void probe_no_dgram(struct kunit *test)
{
	struct efake *fake = unprobed(test);

	efake_fail(fake, EFAKE_QP_CREATE, 2, -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, probe(fake), 0);
	KUNIT_EXPECT_FALSE(test, fake->dev->dgram);
	efake_fail(fake, EFAKE_QP_START, 2, -EINVAL);
	KUNIT_EXPECT_EQ(test, probe(fake), 0);
	KUNIT_EXPECT_FALSE(test, fake->dev->dgram);
	efake_fail(fake, EFAKE_POST_RECV, 1, -EINVAL);
	KUNIT_EXPECT_EQ(test, probe(fake), 0);
	KUNIT_EXPECT_FALSE(test, fake->dev->dgram);
	fake->deny = BIT_ULL(IB_WR_SEND);
	KUNIT_EXPECT_EQ(test, probe(fake), 0);
	KUNIT_EXPECT_FALSE(test, fake->dev->dgram);
	KUNIT_EXPECT_TRUE(test, fake->dev->rdma_write);
}

static void probe_denied(struct kunit *test)
{
	struct efake *fake = unprobed(test);

	fake->deny = BIT_ULL(IB_WR_RDMA_WRITE);
	KUNIT_EXPECT_EQ(test, probe(fake), 0);
	KUNIT_EXPECT_TRUE(test, fake->dev->rdma_read);
	KUNIT_EXPECT_FALSE(test, fake->dev->rdma_write);
	fake->deny = BIT_ULL(IB_WR_RDMA_READ);
	KUNIT_EXPECT_EQ(test, probe(fake), 0);
	KUNIT_EXPECT_FALSE(test, fake->dev->rdma_read);
	KUNIT_EXPECT_TRUE(test, fake->dev->rdma_write);
	fake->dev->rdma_read = false;
	fake->dev->rdma_write = false;
	fake->deny = BIT_ULL(IB_WR_REG_MR);
	KUNIT_EXPECT_EQ(test, probe(fake), 0);
	KUNIT_EXPECT_FALSE(test, fake->dev->rdma_read);
	KUNIT_EXPECT_FALSE(test, fake->dev->rdma_write);
}

/* Silence means that the device lacks the operation, and is limited by a time-out. */
static void probe_silence(struct kunit *test)
{
	struct efake *fake = unprobed(test);
	unsigned long start = jiffies;

	fake->auto_tx = false;
	KUNIT_EXPECT_EQ(test, probe(fake), 0);
	KUNIT_EXPECT_FALSE(test, fake->dev->rdma_read);
	KUNIT_EXPECT_FALSE(test, fake->dev->rdma_write);
	KUNIT_EXPECT_FALSE(test, fake->dev->dgram);
	/* A registration, which completes, a read, a write and three datagrams. */
	KUNIT_EXPECT_EQ(test, efake_calls(fake, EFAKE_POST_SEND), 6);
	KUNIT_EXPECT_GE(test, jiffies - start, 2 * HZ);
	/* Allow for a busy machine. */
	KUNIT_EXPECT_LT(test, jiffies - start, 10 * HZ);
}

/* Objects that the device refuses to destroy are leaked with their memory; it stays usable. */
static void probe_refused(struct kunit *test)
{
	static const enum efake_call calls[] = {
		EFAKE_QP_DESTROY, EFAKE_MR_DESTROY, EFAKE_AH_DESTROY,
	};
	struct efake *fake = unprobed(test);
	int i;

	fake->refusal = -EINVAL;
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		fake->refuse = BIT(calls[i]);
		KUNIT_EXPECT_EQ(test, probe(fake), 0);
		KUNIT_EXPECT_TRUE(test, fake->dev->rdma_write);
		/* There are two queue pairs. */
		KUNIT_EXPECT_EQ(test, fake->dev->refused, i + 2);
		KUNIT_EXPECT_EQ(test, fake->dev->set_aside, 0);
	}
	KUNIT_EXPECT_EQ(test, list_count_nodes(&fake->broken), 2);
	fake->refuse = 0;
	efake_fail(fake, EFAKE_MR_CREATE, 1, -ENOSPC);
	KUNIT_EXPECT_EQ(test, probe(fake), -ENOSPC);
	efake_fail(fake, EFAKE_AH_CREATE, 1, -ENOSPC);
	KUNIT_EXPECT_EQ(test, probe(fake), -ENOSPC);
	efake_fail(fake, EFAKE_QP_START, 1, -EIO);
	KUNIT_EXPECT_EQ(test, probe(fake), -EIO);
	KUNIT_EXPECT_FALSE(test, fake->dev->dead);
}

/* A device whose admin queue dies is unusable. */
static void probe_dead(struct kunit *test)
{
	struct efake *fake = unprobed(test);

	fake->refusal = -ETIME;
	fake->refuse = BIT(EFAKE_MR_DESTROY);
	KUNIT_EXPECT_EQ(test, probe(fake), -ENODEV);
	KUNIT_EXPECT_TRUE(test, fake->dev->dead);
	efake_settle_all();
}

/* Regions are described as by fi_mr_reg(), or more simply if the device needs that. */
static void probe_ways(struct kunit *test)
{
	struct efake *fake = unprobed(test);
	struct kefa_dev *dev = fake->dev;

	KUNIT_EXPECT_EQ(test, probe(fake), 0);
	KUNIT_EXPECT_EQ(test, dev->page_sizes, dev->page_size_cap);
	KUNIT_EXPECT_FALSE(test, dev->raw_iova);
	fake->max_page = PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, probe(fake), 0);
	KUNIT_EXPECT_EQ(test, dev->page_sizes, PAGE_SIZE);
	KUNIT_EXPECT_FALSE(test, dev->raw_iova);
	fake->whole_iova = true;
	KUNIT_EXPECT_EQ(test, probe(fake), 0);
	KUNIT_EXPECT_EQ(test, dev->page_sizes, PAGE_SIZE);
	KUNIT_EXPECT_TRUE(test, dev->raw_iova);
	KUNIT_EXPECT_TRUE(test, dev->rdma_read && dev->rdma_write);
	fake->deny = BIT_ULL(IB_WR_RDMA_WRITE) | BIT_ULL(IB_WR_RDMA_READ);
	KUNIT_EXPECT_EQ(test, probe(fake), 0);
	KUNIT_EXPECT_EQ(test, dev->page_sizes, dev->page_size_cap);
	KUNIT_EXPECT_FALSE(test, dev->raw_iova);
	KUNIT_EXPECT_FALSE(test, dev->rdma_read || dev->rdma_write);
}

/* Besides a success status, the data must be right. */
static void probe_lies(struct kunit *test)
{
	struct efake *fake = unprobed(test);

	fake->no_rdma_data = true;
	KUNIT_EXPECT_EQ(test, probe(fake), 0);
	KUNIT_EXPECT_FALSE(test, fake->dev->rdma_read);
	KUNIT_EXPECT_FALSE(test, fake->dev->rdma_write);
}

static void probe_without_rnr(struct kunit *test)
{
	struct efa_scene *scene;
	struct efake *fake = unprobed(test);
	size_t times = 3;

	fake->no_rnr = true;
	KUNIT_EXPECT_EQ(test, probe(fake), 0);
	KUNIT_EXPECT_FALSE(test, fake->dev->rnr_retry_ok);
	KUNIT_EXPECT_TRUE(test, fake->dev->rdma_read);
	efake_publish(fake);
	scene = efa_scene_on(test, fake, &(struct efa_opts) { .idle = true });
	KUNIT_EXPECT_EQ(test, fi_setopt(&scene->ep->fid, FI_OPT_ENDPOINT,
					FI_OPT_EFA_RNR_RETRY, &times,
					sizeof(times)), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_enable(scene->ep), 0);
}

static void probe_without_events(struct kunit *test)
{
	struct efake *fake = unprobed(test);

	efake_fail(fake, EFAKE_QP_CREATE, 1, -ENXIO);
	KUNIT_EXPECT_EQ(test, probe(fake), -ENXIO);
	KUNIT_EXPECT_EQ(test, efake_calls(fake, EFAKE_QP_CREATE), 1);
}

static void rdma_restore(void *unused)
{
	kefa_rdma_wanted = KEFA_RDMA_AUTO;
}

/* The administrator's parameter overrides the probe, if it is set. */
static void probe_overridden(struct kunit *test)
{
	static const struct {
		enum kefa_rdma rdma;
		bool read;
		bool write;
	} cases[] = {
		{ KEFA_RDMA_NONE, false, false },
		{ KEFA_RDMA_READ, true, false },
		{ KEFA_RDMA_WRITE, false, true },
		{ KEFA_RDMA_ALL, true, true },
	};
	struct efake *fake = unprobed(test);
	int i;

	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, rdma_restore,
							NULL), 0);
	for (i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		kefa_rdma_wanted = cases[i / 2].rdma;
		fake->deny = i % 2 ? BIT_ULL(IB_WR_REG_MR) : 0;
		KUNIT_EXPECT_EQ(test, probe(fake), 0);
		KUNIT_EXPECT_EQ(test, fake->dev->rdma_read, cases[i / 2].read);
		KUNIT_EXPECT_EQ(test, fake->dev->rdma_write, cases[i / 2].write);
	}
}

static void probe_again(struct kunit *test)
{
	struct efake *fake = unprobed(test);
	struct efa_scene *scene;

	KUNIT_EXPECT_EQ(test, kefa_dev_probe_again(EFA_DEVICE), -ENODEV);
	fake->deny = BIT_ULL(IB_WR_RDMA_READ);
	efake_start(fake);
	scene = efa_scene_on(test, fake, &(struct efa_opts) { .idle = true });
	KUNIT_EXPECT_FALSE(test, scene->info->caps & FI_READ);
	fake->deny = 0;
	KUNIT_EXPECT_EQ(test, kefa_dev_probe_again(EFA_DEVICE), -EBUSY);
	EFA_CLOSE(test, scene->ep);
	EFA_CLOSE(test, scene->cq);
	EFA_CLOSE(test, scene->av);
	EFA_CLOSE(test, scene->domain);
	KUNIT_EXPECT_EQ(test, kefa_dev_probe_again(EFA_DEVICE), 0);
	KUNIT_EXPECT_TRUE(test, fake->dev->rdma_read);
	/* A device that was unusable may be usable now. */
	efake_fail(fake, EFAKE_PD_CREATE, 1, -ENOSPC);
	KUNIT_EXPECT_EQ(test, kefa_dev_probe_again(EFA_DEVICE), -ENOSPC);
	KUNIT_EXPECT_NULL(test, kefa_dev_find(EFA_DEVICE));
	KUNIT_EXPECT_EQ(test, kefa_dev_probe_again(EFA_DEVICE), 0);
	fi_freeinfo(efa_info(test, EFA_DEVICE));
}

/* --- concurrent probes --- */

static int find(const char *node, u64 caps, struct fi_info **info)
{
	struct fi_fabric_attr fabric = { .prov_name = FI_EFA_PROV_NAME };
	struct fi_info hints = {
		.fabric_attr = &fabric, .caps = caps, .mode = FI_RX_CQ_DATA,
	};

	return fi_getinfo(fi_version(), node, NULL, node ? FI_SOURCE : 0, &hints, info);
}

/* fi_getinfo() waits until present devices are probed. */
static void probe_found(struct kunit *test)
{
	struct efake *fake = unprobed(test);
	struct fi_info *info;

	efake_start(fake);
	info = efa_info(test, EFA_DEVICE);
	KUNIT_EXPECT_TRUE(test, info->caps & FI_RMA);
	fi_freeinfo(info);
}

static void probe_useless(struct kunit *test)
{
	struct efake *fake = unprobed(test);
	struct fi_info *info;

	efake_fail(fake, EFAKE_PD_CREATE, 1, -ENOSPC);
	efake_start(fake);
	KUNIT_EXPECT_EQ(test, find(NULL, 0, &info), -ENODATA);
	KUNIT_EXPECT_EQ(test, fake->dev->state, KEFA_DEV_UNUSABLE);
}

/* A slow probe doesn't delay other devices, nor callers that ask for another device. */
static void probe_two(struct kunit *test)
{
	struct efake *one = efake_make(test, "efake1");
	struct efake *two = efake_make(test, "efake2");
	struct fi_info *info;

	one->auto_tx = true;
	two->auto_tx = true;
	kefa_dev_lock(one->dev);
	efake_start(one);
	efake_start(two);
	KUNIT_EXPECT_EQ(test, find("efake2", 0, &info), 0);
	fi_freeinfo(info);
	KUNIT_EXPECT_EQ(test, one->dev->state, KEFA_DEV_PROBING);
	kefa_dev_unlock(one->dev);
	KUNIT_EXPECT_EQ(test, find("efake1", 0, &info), 0);
	fi_freeinfo(info);
}

static void find_one(struct kofi_thread *thread)
{
	struct fi_info *info;

	thread->ret = find(EFA_DEVICE, 0, &info);
}

/* Neither a removal nor fi_getinfo() waits for the probe of a silent device. */
static void probe_removed(struct kunit *test)
{
	struct efake *fake = unprobed(test);
	struct kofi_thread thread;
	unsigned long start;

	fake->auto_tx = false;
	efake_start(fake);
	kofi_thread_start(test, &thread, find_one, NULL);
	KUNIT_EXPECT_TRUE(test, kofi_soon(efake_calls(fake, EFAKE_POST_SEND) == 2));
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&thread, 20));
	start = jiffies;
	efake_remove(fake);
	KUNIT_EXPECT_LT(test, jiffies - start, 3 * HZ / 2);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, -ENODATA);
}

static struct kunit_case probe_cases[] = {
	KUNIT_CASE(probe_all),
	KUNIT_CASE_PARAM(probe_dgram, room_gen_params),
	KUNIT_CASE(probe_no_dgram),
	KUNIT_CASE(probe_denied),
	KUNIT_CASE(probe_silence),
	KUNIT_CASE(probe_refused),
	KUNIT_CASE(probe_dead),
	KUNIT_CASE(probe_ways),
	KUNIT_CASE(probe_lies),
	KUNIT_CASE(probe_without_rnr),
	KUNIT_CASE(probe_without_events),
	KUNIT_CASE(probe_overridden),
	KUNIT_CASE(probe_again),
	KUNIT_CASE(probe_found),
	KUNIT_CASE(probe_useless),
	KUNIT_CASE(probe_two),
	KUNIT_CASE(probe_removed),
	{}
};

static struct kunit_suite probe_suite = {
	.name = "kefa_probe",
	.test_cases = probe_cases,
};

kunit_test_suite(probe_suite);
