// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Devices of the EFA provider: their description, and the meaning of their status values.
 */
#include <linux/cpumask.h>
#include <linux/topology.h>
#include "efa_scene.h"

/* --- description of a device --- */

static void info_limits(struct kunit *test)
{
	struct efake *fake = efake_make(test, EFA_DEVICE);
	struct fi_info *info;

	efake_publish(fake);
	info = efa_info(test, EFA_DEVICE);
	KUNIT_EXPECT_STREQ(test, info->fabric_attr->name,
			   FI_EFA_FABRIC_DIRECT);
	KUNIT_EXPECT_EQ(test, info->addr_format, FI_ADDR_EFA);
	KUNIT_EXPECT_EQ(test, info->tx_attr->size, EFAKE_TX_DEPTH);
	KUNIT_EXPECT_EQ(test, info->rx_attr->size, EFAKE_RX_DEPTH);
	KUNIT_EXPECT_EQ(test, info->tx_attr->inject_size, KEFA_INJECT);
	KUNIT_EXPECT_EQ(test, info->ep_attr->max_msg_size, KEFA_MAX_RDMA);
	KUNIT_EXPECT_EQ(test, info->domain_attr->ep_cnt, fake->dev->max_qp - 1);
	KUNIT_EXPECT_EQ(test, info->domain_attr->mr_cnt, EFAKE_MAX_MR);
	KUNIT_EXPECT_TRUE(test, info->caps & FI_RMA);
	KUNIT_EXPECT_STREQ(test, info->nic->link_attr.address, "fe00::1");
	KUNIT_EXPECT_STREQ(test, info->nic->device_attr.device_version, "2");
	fi_freeinfo(info);
	fake->dev->rdma_read = false;
	fake->dev->rdma_write = false;
	fake->dev->mtu = 1000;
	info = efa_info(test, EFA_DEVICE);
	KUNIT_EXPECT_FALSE(test, info->caps & (FI_RMA | FI_READ | FI_WRITE));
	KUNIT_EXPECT_EQ(test, info->mode, 0);
	KUNIT_EXPECT_EQ(test, info->ep_attr->max_msg_size, 1000);
	KUNIT_EXPECT_EQ(test, info->tx_attr->inject_size, 1000);
	fi_freeinfo(info);
}

static int find(const char *node, u64 caps, struct fi_info **info)
{
	struct fi_fabric_attr fabric = { .prov_name = FI_EFA_PROV_NAME };
	struct fi_info hints = {
		.fabric_attr = &fabric, .caps = caps, .mode = FI_RX_CQ_DATA,
	};

	return fi_getinfo(fi_version(), node, NULL, node ? FI_SOURCE : 0, &hints, info);
}

static void info_devices(struct kunit *test)
{
	struct efake *one = efake_make(test, "efake1");
	struct efake *two = efake_make(test, "efake2");
	struct fi_info *info;

	KUNIT_EXPECT_EQ(test, find(NULL, 0, &info), -ENODATA);
	efake_publish(one);
	efake_publish(two);
	KUNIT_ASSERT_EQ(test, find(NULL, 0, &info), 0);
	KUNIT_EXPECT_STREQ(test, info->domain_attr->name, "efake1");
	KUNIT_ASSERT_NOT_NULL(test, info->next);
	KUNIT_EXPECT_STREQ(test, info->next->domain_attr->name, "efake2");
	KUNIT_EXPECT_STREQ(test, info->next->fabric_attr->name, FI_EFA_FABRIC_DIRECT);
	/* The entries of the other fabric follow, for both devices. */
	KUNIT_ASSERT_NOT_NULL(test, info->next->next);
	KUNIT_EXPECT_STREQ(test, info->next->next->fabric_attr->name, FI_EFA_FABRIC);
	KUNIT_ASSERT_NOT_NULL(test, info->next->next->next);
	KUNIT_EXPECT_NULL(test, info->next->next->next->next);
	fi_freeinfo(info);
	KUNIT_ASSERT_EQ(test, find("efake2", FI_MSG, &info), 0);
	KUNIT_EXPECT_STREQ(test, info->domain_attr->name, "efake2");
	KUNIT_EXPECT_STREQ(test, info->fabric_attr->name, FI_EFA_FABRIC_DIRECT);
	KUNIT_EXPECT_NOT_NULL(test, info->next);
	/* Without FI_RMA no mode is needed. */
	KUNIT_EXPECT_EQ(test, info->mode, 0);
	fi_freeinfo(info);
	KUNIT_ASSERT_EQ(test, find("efake2", FI_RMA, &info), 0);
	KUNIT_EXPECT_EQ(test, info->mode, FI_RX_CQ_DATA);
	KUNIT_EXPECT_STREQ(test, info->fabric_attr->name, FI_EFA_FABRIC_DIRECT);
	KUNIT_ASSERT_NOT_NULL(test, info->next);
	KUNIT_EXPECT_EQ(test, info->next->mode, 0);
	KUNIT_EXPECT_STREQ(test, info->next->fabric_attr->name, FI_EFA_FABRIC);
	KUNIT_EXPECT_NULL(test, info->next->next);
	fi_freeinfo(info);
	KUNIT_ASSERT_EQ(test, find("efake2", FI_TAGGED | FI_SOURCE | FI_RMA, &info), 0);
	KUNIT_EXPECT_STREQ(test, info->fabric_attr->name, FI_EFA_FABRIC);
	KUNIT_EXPECT_NULL(test, info->next);
	fi_freeinfo(info);
	KUNIT_EXPECT_EQ(test, find("efake2", FI_TAGGED | FI_SOURCE_ERR, &info), -ENODATA);
	KUNIT_EXPECT_EQ(test, find("efake3", 0, &info), -ENODATA);
	efake_remove(two);
	KUNIT_EXPECT_EQ(test, find("efake2", 0, &info), -ENODATA);
}

/* Users keep a device; it is found by its name; event queues get its arrival. */
static void info_renamed(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_eq_device_entry event;
	struct efake *other;
	struct fi_info *info;
	u32 type;

	/* The event of its arrival. */
	while (fi_eq_read(scene->eq, &type, &event, sizeof(event), 0) > 0)
		;
	kefa_dev_rename(scene->fake->dev, "rdmap0s6");
	KUNIT_ASSERT_EQ(test, fi_eq_read(scene->eq, &type, &event,
					 sizeof(event), 0), sizeof(event));
	KUNIT_EXPECT_EQ(test, type, FI_DEVICE_ARRIVED);
	KUNIT_EXPECT_STREQ(test, event.domain_name, "rdmap0s6");
	KUNIT_EXPECT_EQ(test, find(EFA_DEVICE, 0, &info), -ENODATA);
	other = efake_make(test, EFA_DEVICE);
	efake_publish(other);
	KUNIT_ASSERT_EQ(test, find("rdmap0s6", 0, &info), 0);
	KUNIT_EXPECT_STREQ(test, info->domain_attr->name, "rdmap0s6");
	KUNIT_ASSERT_NOT_NULL(test, info->next);
	KUNIT_EXPECT_STREQ(test, info->next->domain_attr->name, "rdmap0s6");
	KUNIT_EXPECT_NULL(test, info->next->next);
	fi_freeinfo(info);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	efake_remove(other);
}

/* A device that was given up isn't found. */
static void info_renamed_late(struct kunit *test)
{
	struct efake *fake = efake_make(test, EFA_DEVICE);
	struct fi_info *info;

	efake_publish(fake);
	kefa_dev_lock(fake->dev);
	kefa_dev_give_up(fake->dev);
	kefa_dev_unlock(fake->dev);
	efake_settle_all();
	kefa_dev_rename(fake->dev, "rdmap0s6");
	KUNIT_EXPECT_EQ(test, find("rdmap0s6", 0, &info), -ENODATA);
}

static int open_ep(struct efa_scene *scene)
{
	struct fid_ep *ep;
	int ret = fi_endpoint(scene->domain, scene->info, &ep, NULL);

	if (!ret)
		ret = fi_close(&ep->fid);
	return ret;
}

static void ep_possible(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_info *info = scene->info;

	KUNIT_EXPECT_EQ(test, open_ep(scene), 0);
	info->tx_attr->size = EFAKE_TX_DEPTH + 1;
	KUNIT_EXPECT_EQ(test, open_ep(scene), -EINVAL);
	info->tx_attr->size = 0;
	info->rx_attr->size = EFAKE_RX_DEPTH + 1;
	KUNIT_EXPECT_EQ(test, open_ep(scene), -EINVAL);
	info->rx_attr->size = 0;
	info->ep_attr->type = FI_EP_DGRAM;
	KUNIT_EXPECT_EQ(test, open_ep(scene), -EINVAL);
	info->ep_attr->type = FI_EP_UNSPEC;
	info->caps |= FI_TAGGED;
	KUNIT_EXPECT_EQ(test, open_ep(scene), -EINVAL);
	info->caps = 0;
	info->tx_attr->op_flags = FI_MULTI_RECV;
	KUNIT_EXPECT_EQ(test, open_ep(scene), -EINVAL);
	/* These flags are valid for single calls, but not as defaults. */
	info->tx_attr->op_flags = FI_REMOTE_CQ_DATA;
	KUNIT_EXPECT_EQ(test, open_ep(scene), -EINVAL);
	info->tx_attr->op_flags = FI_MORE;
	KUNIT_EXPECT_EQ(test, open_ep(scene), -EINVAL);
	info->tx_attr->op_flags = 0;
	info->rx_attr->op_flags = FI_MORE;
	KUNIT_EXPECT_EQ(test, open_ep(scene), -EINVAL);
	info->rx_attr->op_flags = FI_COMPLETION;
	info->tx_attr->op_flags = FI_INJECT;
	KUNIT_EXPECT_EQ(test, open_ep(scene), 0);
}

static void ep_options(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.tx_size = 10, .rx_size = 20, .idle = true,
	});
	static const struct {
		int name;
		size_t value;
	} options[] = {
		{ FI_OPT_TX_SIZE, 10 }, { FI_OPT_RX_SIZE, 20 },
		{ FI_OPT_MAX_MSG_SIZE, EFAKE_MTU },
		{ FI_OPT_MAX_RMA_SIZE, KEFA_MAX_RDMA },
		{ FI_OPT_INJECT_MSG_SIZE, KEFA_INJECT },
		{ FI_OPT_INJECT_RMA_SIZE, KEFA_INJECT },
	};
	struct fid *fid = &scene->ep->fid;
	size_t value, len;
	u64 flags;
	int i;

	for (i = 0; i < ARRAY_SIZE(options); i++) {
		len = sizeof(value);
		KUNIT_EXPECT_EQ(test, fi_getopt(fid, FI_OPT_ENDPOINT,
						options[i].name, &value, &len),
				0);
		KUNIT_EXPECT_EQ(test, value, options[i].value);
		len = 4;
		KUNIT_EXPECT_EQ(test, fi_getopt(fid, FI_OPT_ENDPOINT,
						options[i].name, &value, &len),
				-FI_ETOOSMALL);
		KUNIT_EXPECT_EQ(test, len, sizeof(value));
	}
	flags = FI_TRANSMIT | FI_INJECT;
	KUNIT_EXPECT_EQ(test, fi_control(fid, FI_SETOPSFLAG, &flags), 0);
	flags = FI_TRANSMIT | FI_MORE;
	KUNIT_EXPECT_EQ(test, fi_control(fid, FI_SETOPSFLAG, &flags),
			-FI_EBADFLAGS);
	flags = FI_TRANSMIT | FI_RECV;
	KUNIT_EXPECT_EQ(test, fi_control(fid, FI_SETOPSFLAG, &flags), -EINVAL);
	flags = FI_TRANSMIT;
	KUNIT_EXPECT_EQ(test, fi_control(fid, FI_GETOPSFLAG, &flags), 0);
	KUNIT_EXPECT_EQ(test, flags, FI_INJECT);
}

static int set_rnr(struct efa_scene *scene, size_t times)
{
	return fi_setopt(&scene->ep->fid, FI_OPT_ENDPOINT, FI_OPT_EFA_RNR_RETRY,
			 &times, sizeof(times));
}

static size_t get_rnr(struct kunit *test, struct efa_scene *scene)
{
	size_t times = 99, len = sizeof(times);

	KUNIT_EXPECT_EQ(test, fi_getopt(&scene->ep->fid, FI_OPT_ENDPOINT,
					FI_OPT_EFA_RNR_RETRY, &times, &len), 0);
	KUNIT_EXPECT_EQ(test, len, sizeof(times));
	return times;
}

static void ep_rnr_retry(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.idle = true,
	});
	struct fid *fid = &scene->ep->fid;
	size_t times = 3;

	KUNIT_EXPECT_EQ(test, get_rnr(test, scene), FI_EFA_RNR_INFINITE);
	KUNIT_EXPECT_EQ(test, set_rnr(scene, FI_EFA_RNR_INFINITE + 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, set_rnr(scene, SIZE_MAX), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_setopt(fid, FI_OPT_ENDPOINT,
					FI_OPT_EFA_RNR_RETRY, &times,
					sizeof(u32)), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_setopt(fid, FI_OPT_ENDPOINT, FI_OPT_TX_SIZE,
					&times, sizeof(times)), -ENOPROTOOPT);
	KUNIT_EXPECT_EQ(test, get_rnr(test, scene), FI_EFA_RNR_INFINITE);
	KUNIT_EXPECT_EQ(test, set_rnr(scene, 0), 0);
	KUNIT_EXPECT_EQ(test, get_rnr(test, scene), 0);
	KUNIT_EXPECT_EQ(test, set_rnr(scene, times), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	scene->qp = efake_last_qp(scene->fake);
	KUNIT_EXPECT_EQ(test, scene->qp->attr.rnr_retry, times);
	/* The device got the option. */
	KUNIT_EXPECT_EQ(test, set_rnr(scene, 5), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, get_rnr(test, scene), times);
}

static void ep_rnr_for_ever(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) { });

	KUNIT_EXPECT_EQ(test, scene->qp->attr.rnr_retry, FI_EFA_RNR_INFINITE);
}

static void ep_name(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.idle = true,
	});
	struct fi_efa_addr addr;
	size_t len = sizeof(addr);

	KUNIT_EXPECT_EQ(test, fi_getname(&scene->ep->fid, &addr, &len),
			-FI_EOPBADSTATE);
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	scene->qp = efake_last_qp(scene->fake);
	KUNIT_EXPECT_EQ(test, fi_getname(&scene->ep->fid, &addr, &len), 0);
	KUNIT_EXPECT_EQ(test, addr.qpn, scene->qp->hq->qpn);
	KUNIT_EXPECT_EQ(test, addr.qkey, scene->qp->hq->qkey);
	KUNIT_EXPECT_MEMEQ(test, addr.gid, scene->fake->dev->gid,
			   sizeof(addr.gid));
	KUNIT_EXPECT_EQ(test, addr.reserved, 0);
	len = 8;
	KUNIT_EXPECT_EQ(test, fi_getname(&scene->ep->fid, &addr, &len),
			-FI_ETOOSMALL);
	KUNIT_EXPECT_EQ(test, len, sizeof(addr));
}

/* --- vectors --- */

static u32 vector_of_next(struct kunit *test, struct efa_scene *scene)
{
	struct fid_ep *ep = efa_scene_ep(test, scene, 0);
	u32 vector;

	KUNIT_EXPECT_EQ(test, fi_enable(ep), 0);
	vector = efake_last_qp(scene->fake)->attr.vector;
	KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
	return vector;
}

static void vectors_in_turn(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.idle = true,
	});
	int i;

	/* The domain's queue pair has the first vector. */
	for (i = 1; i < 10; i++)
		KUNIT_EXPECT_EQ(test, vector_of_next(test, scene), i % 4);
}

/* NUMA nodes: CPUs near the device are preferred, but any CPU can be used. */
static void vectors_near(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.idle = true,
	});
	struct kefa_dev *dev = scene->fake->dev;
	unsigned long seen = 0;
	u32 i, vector;

	dev->vectors = min(2 * nr_cpu_ids, BITS_PER_LONG);
	dev->numa_node = cpu_to_node(0);
	for (i = 0; i < 3 * dev->vectors; i++) {
		vector = vector_of_next(test, scene);
		KUNIT_EXPECT_LT(test, vector, nr_cpu_ids);
		KUNIT_EXPECT_TRUE(test, cpu_online(vector));
	}
	/* No CPU is near: all vectors are used in turn. */
	dev->numa_node = MAX_NUMNODES;
	for (i = 0; i < dev->vectors; i++)
		seen |= BIT(vector_of_next(test, scene));
	KUNIT_EXPECT_EQ(test, seen, GENMASK(dev->vectors - 1, 0));
}

/* Many more vectors than there can be CPUs. */
static void vectors_beyond_cpus(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.idle = true,
	});
	struct kefa_dev *dev = scene->fake->dev;

	dev->vectors = SZ_64K;
	dev->numa_node = cpu_to_node(0);
	dev->next_vector = SZ_16K;
	KUNIT_EXPECT_LT(test, vector_of_next(test, scene), nr_cpu_ids);
	KUNIT_EXPECT_LT(test, vector_of_next(test, scene), nr_cpu_ids);
}

static void vectors_by_wish(struct kunit *test)
{
	static const struct {
		int cpu;
		u32 vector;
	} wishes[] = { { 0, 0 }, { 3, 3 }, { 4, 0 }, { 1000001, 1 } };
	struct fi_cq_attr attr = { .flags = FI_AFFINITY };
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_cq *cq;
	struct fid_ep *ep;
	int i;

	for (i = 0; i < ARRAY_SIZE(wishes); i++) {
		attr.signaling_vector = wishes[i].cpu;
		KUNIT_ASSERT_EQ(test, fi_cq_open(scene->domain, &attr, &cq,
						 NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_endpoint(scene->domain, scene->info,
						  &ep, NULL), 0);
		KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &scene->av->fid, 0), 0);
		KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &cq->fid,
						 FI_TRANSMIT | FI_RECV), 0);
		KUNIT_EXPECT_EQ(test, fi_enable(ep), 0);
		KUNIT_EXPECT_EQ(test, efake_last_qp(scene->fake)->attr.vector,
				wishes[i].vector);
		KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
		KUNIT_EXPECT_EQ(test, fi_close(&cq->fid), 0);
	}
}

/* A ULP can find out how to spread its queues; each CPU has one vector. */
static void vectors_of_domain(struct kunit *test)
{
	static struct cpumask mask, all;
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kefa_dev *dev = scene->fake->dev;
	unsigned int i, n, cpus = 0;

	KUNIT_EXPECT_PTR_EQ(test, fi_domain_device(scene->domain),
			    scene->fake->root);
	for (n = 1; n < 6; n++) {
		dev->vectors = n;
		scene->domain->vectors = n;
		cpumask_clear(&all);
		cpus = 0;
		KUNIT_EXPECT_EQ(test, fi_domain_vectors(scene->domain), n);
		for (i = 0; i < n; i++) {
			KUNIT_EXPECT_EQ(test, fi_domain_vector_mask(scene->domain,
								    i, &mask), 0);
			if (i < nr_cpu_ids && cpu_possible(i))
				KUNIT_EXPECT_TRUE(test, cpumask_test_cpu(i, &mask));
			cpus += cpumask_weight(&mask);
			cpumask_or(&all, &all, &mask);
		}
		KUNIT_EXPECT_EQ(test, cpus, num_possible_cpus());
		KUNIT_EXPECT_TRUE(test, cpumask_equal(&all, cpu_possible_mask));
		KUNIT_EXPECT_EQ(test, fi_domain_vector_mask(scene->domain, n,
							    &mask), -EINVAL);
	}
	/* The domain outlives the device. */
	efake_remove(scene->fake);
	KUNIT_EXPECT_PTR_EQ(test, fi_domain_device(scene->domain),
			    scene->fake->root);
}

/* --- its driver --- */

static void drivers(struct kunit *test)
{
	static const struct {
		const char *version;
		enum kefa_driver is;
	} cases[] = {
		{ NULL, KEFA_DRIVER_GOOD },
		{ "2.17.3", KEFA_DRIVER_OLD },
		{ "3.0.0", KEFA_DRIVER_OLD },
		{ "3.1.0g", KEFA_DRIVER_GOOD },
		{ "3.10.2", KEFA_DRIVER_GOOD },
		{ "4.0.0", KEFA_DRIVER_UNKNOWN },
		{ "10.0", KEFA_DRIVER_UNKNOWN },
		{ "", KEFA_DRIVER_UNKNOWN },
		{ "next", KEFA_DRIVER_UNKNOWN },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ_MSG(test, kefa_driver_check(cases[i].version),
				    cases[i].is, "%s", cases[i].version);
}

/* --- status values --- */

static const struct {
	u32 status;
	int err;
	const char *word;
} answers[] = {
	{ 1, ECANCELED, "Flushed" },
	{ 2, EIO, "Internal" },
	{ 3, EOPNOTSUPP, "Unsupported" },
	{ 4, EINVAL, "address handle" },
	{ 5, EINVAL, "Local key" },
	{ 6, EMSGSIZE, "too long" },
	{ 7, EACCES, "Remote key" },
	{ 8, ECONNABORTED, "aborted" },
	{ 9, ECONNRESET, "destination" },
	{ 10, EAGAIN, "not ready" },
	{ 11, EMSGSIZE, "too short" },
	{ 12, EIO, "Unexpected" },
	{ 13, ETIMEDOUT, "Unresponsive" },
	{ 14, ENOTCONN, "no address handle" },
	{ 15, EHOSTUNREACH, "unreachable" },
	{ 16, EIO, NULL },
	{ 17, EIO, NULL },
	{ 18, EPROTONOSUPPORT, "Feature" },
	{ 19, EIO, NULL },
	{ 1000, EIO, NULL },
	{ S32_MAX, EIO, NULL },
	{ 0x80000000, EIO, NULL },
	{ U32_MAX, EIO, NULL },
};

static void statuses(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	const char *text;
	int i;

	for (i = 0; i < ARRAY_SIZE(answers); i++) {
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, i), 0);
		efake_wr_done(efake_sent(scene->qp, 0), answers[i].status);
		efa_expect_error(test, scene, i, answers[i].err,
				 answers[i].status);
		text = fi_cq_strerror(scene->cq, answers[i].status, NULL, NULL,
				      0);
		KUNIT_EXPECT_NOT_NULL(test, text);
		if (answers[i].word)
			KUNIT_EXPECT_NOT_NULL(test, strstr(text,
							   answers[i].word));
		else
			KUNIT_EXPECT_NULL(test,
					  kefa_status_text(answers[i].status));
	}
	KUNIT_EXPECT_EQ(test, kefa_status_errno(0), 0);
}

static struct kunit_case device_cases[] = {
	KUNIT_CASE(info_limits),
	KUNIT_CASE(info_devices),
	KUNIT_CASE(info_renamed),
	KUNIT_CASE(info_renamed_late),
	KUNIT_CASE(ep_possible),
	KUNIT_CASE(ep_options),
	KUNIT_CASE(ep_rnr_retry),
	KUNIT_CASE(ep_rnr_for_ever),
	KUNIT_CASE(ep_name),
	KUNIT_CASE(vectors_in_turn),
	KUNIT_CASE(vectors_near),
	KUNIT_CASE(vectors_beyond_cpus),
	KUNIT_CASE(vectors_by_wish),
	KUNIT_CASE(vectors_of_domain),
	KUNIT_CASE(drivers),
	KUNIT_CASE(statuses),
	{}
};

static struct kunit_suite device_suite = {
	.name = "kefa_device",
	.test_cases = device_cases,
};

kunit_test_suite(device_suite);
