// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Admin commands that exchange features and information between driver and device.
 */
#include "pci.h"

#define API_VERSION	1
#define PAGE_SIZES	GENMASK_ULL(30, 12)
#define MAX_TX_BATCH	0	/* limited only by the queue's depth */

/**
 * efasim_fn_limits() - adapt the module's limits to what a function can do
 * @fn: the function, with its device id
 * @limits: in: the limits of the module's parameters; out: the function's
 *
 * Context: Any.
 */
void efasim_fn_limits(const struct efasim_fn *fn, struct efasim_limits *limits)
{
	bool first = fn->device_id == EFASIM_DEVICE_FIRST;

	limits->max_qp = min_t(u32, limits->max_qp, EFASIM_FN_MAX_QP);
	limits->max_cq = min_t(u32, limits->max_cq, EFASIM_FN_MAX_CQ);
	limits->subs = first ? EFASIM_MAX_SUBS : 1;
	limits->rdma_read &= !first;
	limits->rdma_write &= !first;
	limits->unsolicited &= limits->rdma_write;
}

static void device_attr(struct efasim_fn *fn, struct efasim_device_attr *a)
{
	const struct efasim_limits *l = &fn->eng.limits;
	u32 caps = EFASIM_CAP_RNR_RETRY;

	if (l->rdma_read)
		caps |= EFASIM_CAP_RDMA_READ;
	if (l->rdma_write)
		caps |= EFASIM_CAP_RDMA_WRITE;
	if (l->unsolicited)
		caps |= EFASIM_CAP_UNSOLICITED;
	a->features = cpu_to_le64(GENMASK(EFASIM_FEATURES - 1,
					  EFASIM_FEATURE_DEVICE));
	a->page_sizes = cpu_to_le64(PAGE_SIZES);
	a->api = cpu_to_le32(API_VERSION);
	a->version = cpu_to_le32(fn->device_id);
	a->db_bar = cpu_to_le16(EFASIM_DB_BAR);
	a->phys_bits = EFASIM_DMA_BITS;
	a->virt_bits = EFASIM_DMA_BITS;
	a->caps = cpu_to_le32(caps);
	a->max_rdma_size = cpu_to_le32(l->max_rdma_size);
	memcpy(a->guid, fn->eng.gid + 8, sizeof(a->guid));
}

static void queue_attr(struct efasim_fn *fn, struct efasim_queue_attr *a)
{
	const struct efasim_limits *l = &fn->eng.limits;

	a->max_qp = cpu_to_le32(l->max_qp);
	a->max_sq_depth = cpu_to_le32(l->max_sq_depth);
	a->inline_size = cpu_to_le32(EFASIM_INLINE_LEN);
	a->max_rq_depth = cpu_to_le32(l->max_rq_depth);
	a->max_cq = cpu_to_le32(l->max_cq);
	a->max_cq_depth = cpu_to_le32(l->max_cq_depth);
	a->subs = cpu_to_le16(l->subs);
	a->min_sq_depth = cpu_to_le16(l->min_sq_depth);
	a->send_sges = cpu_to_le16(EFASIM_MAX_SGE);
	a->recv_sges = cpu_to_le16(EFASIM_MAX_SGE);
	a->max_mr = cpu_to_le32(l->max_mr);
	a->max_mr_pages = cpu_to_le32(l->max_mr_pages);
	a->max_pd = cpu_to_le32(l->max_pd);
	a->max_ah = cpu_to_le32(l->max_ah);
	a->max_llq_size = cpu_to_le32(l->max_sq_depth *
				      sizeof(struct efasim_tx_wqe));
	a->rdma_sges = cpu_to_le16(1);
	a->max_tx_batch = cpu_to_le16(MAX_TX_BATCH);
}

static int get_feature(struct efasim_fn *fn, u8 id, struct efasim_feature_resp *to)
{
	switch (id) {
	case EFASIM_FEATURE_DEVICE:
		device_attr(fn, &to->device);
		return 0;
	case EFASIM_FEATURE_AENQ:
		to->aenq.supported = cpu_to_le32(EFASIM_AENQ_GROUPS);
		to->aenq.enabled = cpu_to_le32(fn->aenq_groups);
		return 0;
	case EFASIM_FEATURE_NETWORK:
		memcpy(to->network.gid, fn->eng.gid, sizeof(to->network.gid));
		to->network.mtu = cpu_to_le32(fn->eng.limits.mtu);
		return 0;
	case EFASIM_FEATURE_QUEUE:
		queue_attr(fn, &to->queue);
		return 0;
	case EFASIM_FEATURE_HINTS:
		return 0;
	case EFASIM_FEATURE_EQ:
		to->eq.max = cpu_to_le32(fn->vectors - 1);
		to->eq.max_depth = cpu_to_le32(EFASIM_MAX_EQ_DEPTH);
		to->eq.events = cpu_to_le32(1);
		return 0;
	}
	return -EOPNOTSUPP;
}

int efasim_cmd_get_feature(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			   union efasim_aq_resp *resp)
{
	int err = efasim_adm_other(&fn->eng);

	return err ?: get_feature(fn, cmd->feature.id, &resp->feature);
}

/* Read the driver's information about the host. */
static int greet(struct efasim_fn *fn, const struct efasim_aq_buf *buf)
{
	struct efasim_host_info info;

	if (le32_to_cpu(buf->length) < sizeof(info) ||
	    !efasim_dev_dma(&fn->eng, efasim_addr(buf->addr_lo, buf->addr_hi),
			    &info, sizeof(info), EFASIM_MR_READ_FROM))
		return -EFAULT;
	pr_info("efasim: function %u: driver %#x on %.*s\n", fn->slot,
		le32_to_cpu(info.driver_version), (int)sizeof(info.os) - 1,
		info.os);
	return 0;
}

static int set_feature(struct efasim_fn *fn, const struct efasim_feature_cmd *cmd)
{
	u32 groups;

	switch (cmd->id) {
	case EFASIM_FEATURE_AENQ:
		groups = le32_to_cpu(cmd->aenq_enabled);
		if (groups & ~EFASIM_AENQ_GROUPS)
			return -EINVAL;
		fn->aenq_groups = groups;
		mod_delayed_work(fn->wq, &fn->keep_alive, 0);
		return 0;
	case EFASIM_FEATURE_HOST_INFO:
		return greet(fn, &cmd->buf);
	}
	return -EOPNOTSUPP;
}

int efasim_cmd_set_feature(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			   union efasim_aq_resp *resp)
{
	int err = efasim_adm_other(&fn->eng);

	return err ?: set_feature(fn, &cmd->feature);
}

/* The counters of the engine, in the order of the responses. */
static const struct {
	enum efasim_stat first;
	u32 num;
} stat_ranges[EFASIM_STATS_TYPES] = {
	[EFASIM_STATS_BASIC] = { EFASIM_S_tx_bytes, 5 },
	[EFASIM_STATS_MESSAGES] = { EFASIM_S_send_bytes, 4 },
	[EFASIM_STATS_READ] = { EFASIM_S_rdma_read_wrs, 4 },
	[EFASIM_STATS_WRITE] = { EFASIM_S_rdma_write_wrs, 4 },
	[EFASIM_STATS_NETWORK] = { EFASIM_S_retrans_bytes, 5 },
};

static_assert(EFASIM_S_rx_drops == EFASIM_S_tx_bytes + 4);
static_assert(EFASIM_S_recv_wrs == EFASIM_S_send_bytes + 3);
static_assert(EFASIM_S_rdma_read_resp_bytes == EFASIM_S_rdma_read_wrs + 3);
static_assert(EFASIM_S_rdma_write_recv_bytes == EFASIM_S_rdma_write_wrs + 3);
static_assert(EFASIM_S_impaired_remote_conn_events == EFASIM_S_retrans_bytes + 4);

int efasim_cmd_get_stats(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			 union efasim_aq_resp *resp)
{
	const struct efasim_get_stats_cmd *c = &cmd->get_stats;
	int err = efasim_adm_other(&fn->eng);
	const atomic64_t *from;
	u32 i;

	if (err)
		return err;
	if (c->type >= EFASIM_STATS_TYPES || c->scope)
		return -EOPNOTSUPP;
	from = &fn->eng.stats[stat_ranges[c->type].first];
	for (i = 0; i < stat_ranges[c->type].num; i++)
		resp->stats.values[i] = cpu_to_le64(atomic64_read(&from[i]));
	return 0;
}
