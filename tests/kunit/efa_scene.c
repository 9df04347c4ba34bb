// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* An endpoint of the EFA provider on a fake device. */
#include "efa_scene.h"

#define CLOSE(obj)							\
do {									\
	if (obj)							\
		WARN_ON(fi_close(&(obj)->fid));				\
	(obj) = NULL;							\
} while (0)

static void scene_close(void *data)
{
	struct efa_scene *scene = data;

	CLOSE(scene->ep);
	CLOSE(scene->cq);
	CLOSE(scene->av);
	CLOSE(scene->domain);
	CLOSE(scene->eq);
	CLOSE(scene->fabric);
	fi_freeinfo(scene->info);
	kfree(scene->buf);
}

struct fi_info *efa_info(struct kunit *test, const char *device)
{
	struct fi_info *hints, *info = NULL;

	hints = fi_allocinfo_for(FI_EFA_PROV_NAME, NULL, device);
	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->mode = FI_RX_CQ_DATA;
	KUNIT_EXPECT_EQ(test, fi_getinfo(fi_version(), NULL, NULL, 0, hints,
					 &info), 0);
	fi_freeinfo(hints);
	KUNIT_ASSERT_NOT_NULL(test, info);
	return info;
}

static struct fi_info *dgram_info(struct kunit *test, const char *device)
{
	struct fi_info *hints, *info = NULL;

	hints = fi_allocinfo_for(FI_EFA_PROV_NAME, NULL, device);
	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->mode = FI_MSG_PREFIX;
	hints->ep_attr->type = FI_EP_DGRAM;
	KUNIT_EXPECT_EQ(test, fi_getinfo(fi_version(), NULL, NULL, 0, hints, &info), 0);
	fi_freeinfo(hints);
	KUNIT_ASSERT_NOT_NULL(test, info);
	return info;
}

static void scene_objects(struct kunit *test, struct efa_scene *scene,
			  const struct efa_opts *opts)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cq_attr cq_attr = opts->cq;
	struct fi_av_attr av_attr = { };
	struct fi_info *info = scene->info;

	cq_attr.format = cq_attr.format ?: FI_CQ_FORMAT_DATA;
	if (opts->tx_size)
		info->tx_attr->size = opts->tx_size;
	if (opts->rx_size)
		info->rx_attr->size = opts->rx_size;
	if (opts->mr_cnt)
		info->domain_attr->mr_cnt = opts->mr_cnt;
	KUNIT_ASSERT_EQ(test, fi_fabric(info->fabric_attr, &scene->fabric,
					NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_eq_open(scene->fabric, &eq_attr, &scene->eq,
					 NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_domain(scene->fabric, info, &scene->domain,
					NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_domain_bind(scene->domain, &scene->eq->fid, 0),
			0);
	KUNIT_ASSERT_EQ(test, fi_av_open(scene->domain, &av_attr, &scene->av,
					 NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_cq_open(scene->domain, &cq_attr, &scene->cq,
					 NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_endpoint(scene->domain, info, &scene->ep,
					  NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(scene->ep, &scene->av->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(scene->ep, &scene->cq->fid,
					 FI_TRANSMIT | FI_RECV | opts->bind), 0);
}

struct efa_scene *efa_scene_on(struct kunit *test, struct efake *fake,
			       const struct efa_opts *opts)
{
	static const struct efa_opts none;
	struct efa_scene *scene;

	scene = kunit_kzalloc(test, sizeof(*scene), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, scene_close,
							scene), 0);
	scene->fake = fake;
	scene->buf = kzalloc(EFA_BUF, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene->buf);
	opts = opts ?: &none;
	scene->info = opts->dgram ? dgram_info(test, fake->dev->name) :
				    efa_info(test, fake->dev->name);
	scene_objects(test, scene, opts);
	scene->peer = efa_insert(test, scene, 2, 7);
	if (opts->idle)
		return scene;
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	scene->qp = efake_last_qp(fake);
	efake_settle();
	return scene;
}

struct efa_scene *efa_scene_new(struct kunit *test, const struct efa_opts *opts)
{
	struct efake *fake = efake_make(test, EFA_DEVICE);

	if (opts && opts->dgram) {
		fake->dev->dgram = true;
		fake->dev->ud_prefix = opts->prefix;
	}
	efake_publish(fake);
	return efa_scene_on(test, fake, opts);
}

struct fid_ep *efa_scene_ep(struct kunit *test, struct efa_scene *scene,
			    u64 bind)
{
	struct fid_ep *ep;

	KUNIT_ASSERT_EQ(test, fi_endpoint(scene->domain, scene->info, &ep,
					  NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &scene->av->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &scene->cq->fid,
					 FI_TRANSMIT | FI_RECV | bind), 0);
	return ep;
}

struct fid_ep *efa_scene_apart(struct kunit *test, struct efa_scene *scene, struct fid_cq *rx,
			       struct fid *tx, u64 flags)
{
	struct fid_ep *ep;

	KUNIT_ASSERT_EQ(test, fi_endpoint(scene->domain, scene->info, &ep, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(ep, &scene->av->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(ep, &rx->fid, FI_RECV), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(ep, tx, flags), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(ep), 0);
	return ep;
}

struct fi_efa_addr efa_addr(u8 gid, u16 qpn)
{
	return (struct fi_efa_addr) {
		.gid	= { 0xfe, 0x80, [FI_EFA_GID_LEN - 1] = gid },
		.qpn	= qpn,
		.qkey	= 0x100 + qpn,
	};
}

fi_addr_t efa_insert(struct kunit *test, struct efa_scene *scene, u8 gid,
		     u16 qpn)
{
	struct fi_efa_addr addr = efa_addr(gid, qpn);
	fi_addr_t got = FI_ADDR_NOTAVAIL;

	KUNIT_EXPECT_EQ(test, fi_av_insert(scene->av, &addr, 1, &got, 0, NULL),
			1);
	return got;
}

struct efa_comp efa_read_cq(struct fid_cq *cq)
{
	struct efa_comp comp = { };

	comp.ret = fi_cq_read(cq, &comp.entry, 1);
	if (comp.ret == -FI_EAVAIL)
		fi_cq_readerr(cq, &comp.error, 0);
	return comp;
}

unsigned int efa_drain_cq(struct fid_cq *cq)
{
	unsigned int n = 0;

	while (efa_read_cq(cq).ret != -EAGAIN)
		n++;
	return n;
}

void efa_fill(u8 *buf, size_t len, u8 seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = seed + i * 7 + (i >> 8);
}

bool efa_filled(const u8 *buf, size_t len, u8 seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (buf[i] != (u8)(seed + i * 7 + (i >> 8)))
			return false;
	return true;
}

void efa_expect_done(struct kunit *test, struct efa_scene *scene, long ctx)
{
	struct efa_comp comp;

	efake_settle();
	comp = efa_read(scene);
	KUNIT_EXPECT_EQ(test, comp.ret, 1);
	KUNIT_EXPECT_EQ(test, (long)comp.entry.op_context, ctx);
}

void efa_expect_error_now(struct kunit *test, struct efa_scene *scene, long ctx,
			  int err, int prov_errno)
{
	struct efa_comp comp = efa_read(scene);

	KUNIT_EXPECT_EQ(test, comp.ret, -FI_EAVAIL);
	KUNIT_EXPECT_EQ(test, (long)comp.error.op_context, ctx);
	KUNIT_EXPECT_EQ(test, comp.error.err, err);
	KUNIT_EXPECT_EQ(test, comp.error.prov_errno, prov_errno);
}

void efa_expect_error(struct kunit *test, struct efa_scene *scene, long ctx,
		      int err, int prov_errno)
{
	efake_settle();
	efa_expect_error_now(test, scene, ctx, err, prov_errno);
}

void efa_expect_nothing(struct kunit *test, struct efa_scene *scene)
{
	efake_settle();
	KUNIT_EXPECT_EQ(test, efa_read(scene).ret, -EAGAIN);
}
