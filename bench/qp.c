// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Set-up of queue pairs, whose instructions aren't counted. */
#include <linux/random.h>
#include <rdma/ib_cache.h>
#include "verbs.h"

static void no_event(struct ib_cq *cq, void *context)
{
}

/* RoCE has several GIDs: find the one of the netdev's IPv4 address, which is routable. */
static int find_gid(struct kb_qp *q)
{
	struct ib_port_attr port;
	int ret, i;

	ret = ib_query_port(q->dev, 1, &port);
	if (ret)
		return ret;
	for (i = port.gid_tbl_len - 1; i >= 0; i--) {
		ret = rdma_query_gid(q->dev, 1, i, &q->gid);
		q->gid_index = i;
		if (!ret && (q->srd || ipv6_addr_v4mapped((void *)q->gid.raw)))
			return 0;
	}
	return -EADDRNOTAVAIL;
}

static int modify(struct kb_qp *q, struct ib_qp_attr *attr,
		  enum ib_qp_state state, int mask)
{
	attr->qp_state = state;
	return ib_modify_qp(q->qp, attr, IB_QP_STATE | mask);
}

static int start_srd(struct kb_qp *q)
{
	struct ib_qp_attr attr = {
		.port_num = 1,
		.qkey = q->qkey,
		.rnr_retry = 7,
	};

	return modify(q, &attr, IB_QPS_INIT,
		      IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY) ?:
	       modify(q, &attr, IB_QPS_RTR, 0) ?:
	       modify(q, &attr, IB_QPS_RTS, IB_QP_SQ_PSN | IB_QP_RNR_RETRY);
}

static int make(struct kb_qp *q, u32 depth, ib_comp_handler handler,
		void *context)
{
	struct ib_cq_init_attr cq_attr = { .cqe = 2 * depth };
	struct ib_qp_init_attr attr = {
		.qp_type = q->srd ? EFA_QPT_SRD : IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = {
			.max_send_wr = depth,
			.max_recv_wr = depth,
			.max_send_sge = 2,
			.max_recv_sge = 2,
			.max_inline_data = 32,
		},
	};

	q->pd = ib_alloc_pd(q->dev, 0);
	if (IS_ERR(q->pd))
		return PTR_ERR(q->pd);
	q->cq = ib_create_cq(q->dev, handler ?: no_event, NULL, context,
			     &cq_attr);
	if (IS_ERR(q->cq))
		return PTR_ERR(q->cq);
	attr.send_cq = q->cq;
	attr.recv_cq = q->cq;
	q->qp = ib_create_qp(q->pd, &attr);
	return PTR_ERR_OR_ZERO(q->qp);
}

/* The device that find_device() looks for, and its reference. */
struct find {
	const char		*name;
	struct ib_device	*dev;
};

static struct find *find;	/* find_lock protects it */
static DEFINE_MUTEX(find_lock);

static int find_add(struct ib_device *dev)
{
	if (!strcmp(dev_name(&dev->dev), find->name) && ib_device_try_get(dev))
		find->dev = dev;
	/* Don't become a client of the device. */
	return -EOPNOTSUPP;
}

static struct ib_client find_client = {
	.name = "kofi_bench_find",
	.add = find_add,
	.no_kverbs_req = 1,
};

/* Find a device by name with a temporary client: ib_core exports no function for it. */
static struct ib_device *find_device(const char *name)
{
	struct find here = { .name = name };

	mutex_lock(&find_lock);
	find = &here;
	if (!ib_register_client(&find_client))
		ib_unregister_client(&find_client);
	mutex_unlock(&find_lock);
	return here.dev;
}

/**
 * kb_qp_open() - create a queue pair
 * @q: takes the queue pair
 * @name: name of the device
 * @depth: depth of its queues
 * @handler: called when completions arrive, or NULL
 * @context: argument of @handler
 *
 * Context: Process context; sleeps.
 * Return: 0, or a negative errno. The caller calls kb_qp_close() even after an error.
 */
int kb_qp_open(struct kb_qp *q, const char *name, u32 depth,
	       ib_comp_handler handler, void *context)
{
	int ret;

	memset(q, 0, sizeof(*q));
	q->dev = find_device(name);
	if (!q->dev)
		return -ENODEV;
	/* EFA's devices are neither InfiniBand nor RoCE. */
	q->srd = !rdma_protocol_roce(q->dev, 1);
	q->qkey = get_random_u32() >> 1;
	ret = find_gid(q) ?: make(q, depth, handler, context);
	if (!ret && q->srd)
		ret = start_srd(q);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(kb_qp_open, KOFI_BENCH);

/**
 * kb_qp_addr() - get the address of a queue pair
 * @q: the queue pair
 * @addr: takes the address
 *
 * Context: Any.
 */
void kb_qp_addr(const struct kb_qp *q, struct kb_addr *addr)
{
	memcpy(addr->gid, q->gid.raw, sizeof(addr->gid));
	addr->qpn = q->qp->qp_num;
	addr->qkey = q->qkey;
}
EXPORT_SYMBOL_NS_GPL(kb_qp_addr, KOFI_BENCH);

static void ah_attr(const struct kb_qp *q, const struct kb_addr *peer,
		    struct rdma_ah_attr *attr)
{
	attr->type = rdma_ah_find_type(q->dev, 1);
	rdma_ah_set_port_num(attr, 1);
	rdma_ah_set_grh(attr, NULL, 0, q->gid_index, 64, 0);
	rdma_ah_set_dgid_raw(attr, (void *)peer->gid);
}

/* Both ends are on one netdev, so the peer has its MAC address. */
static int find_mac(const struct kb_qp *q, struct rdma_ah_attr *attr)
{
	const struct ib_gid_attr *gid;
	int ret;

	gid = rdma_get_gid_attr(q->dev, 1, q->gid_index);
	if (IS_ERR(gid))
		return PTR_ERR(gid);
	ret = rdma_read_gid_l2_fields(gid, NULL, attr->roce.dmac);
	rdma_put_gid_attr(gid);
	return ret;
}

static int start_rc(struct kb_qp *q, const struct kb_addr *peer)
{
	struct ib_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags = IB_ACCESS_LOCAL_WRITE |
				   IB_ACCESS_REMOTE_WRITE |
				   IB_ACCESS_REMOTE_READ,
		.path_mtu = IB_MTU_4096,
		.dest_qp_num = peer->qpn,
		.max_dest_rd_atomic = 16,
		.max_rd_atomic = 16,
		.min_rnr_timer = 12,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	ah_attr(q, peer, &attr.ah_attr);
	return find_mac(q, &attr.ah_attr) ?:
	       modify(q, &attr, IB_QPS_INIT, IB_QP_PKEY_INDEX | IB_QP_PORT |
					     IB_QP_ACCESS_FLAGS) ?:
	       modify(q, &attr, IB_QPS_RTR, IB_QP_AV | IB_QP_PATH_MTU |
					    IB_QP_DEST_QPN | IB_QP_RQ_PSN |
					    IB_QP_MAX_DEST_RD_ATOMIC |
					    IB_QP_MIN_RNR_TIMER) ?:
	       modify(q, &attr, IB_QPS_RTS, IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
					    IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
					    IB_QP_MAX_QP_RD_ATOMIC);
}

/**
 * kb_qp_connect() - make a peer reachable
 * @q: the queue pair; an RC queue pair goes to RTS
 * @peer: the peer
 *
 * Context: Process context; sleeps.
 * Return: 0, or a negative errno.
 */
int kb_qp_connect(struct kb_qp *q, const struct kb_addr *peer)
{
	struct rdma_ah_attr attr = { };
	struct ib_ah *ah;

	if (!q->srd)
		return start_rc(q, peer);
	ah_attr(q, peer, &attr);
	ah = rdma_create_ah(q->pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	if (IS_ERR(ah))
		return PTR_ERR(ah);
	q->ah = ah;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kb_qp_connect, KOFI_BENCH);

/**
 * kb_qp_close() - undo kb_qp_open() and kb_qp_connect()
 * @q: the queue pair
 *
 * Context: Process context; sleeps.
 */
void kb_qp_close(struct kb_qp *q)
{
	if (q->ah)
		rdma_destroy_ah(q->ah, RDMA_DESTROY_AH_SLEEPABLE);
	if (!IS_ERR_OR_NULL(q->qp))
		ib_destroy_qp(q->qp);
	if (!IS_ERR_OR_NULL(q->cq))
		ib_destroy_cq(q->cq);
	if (!IS_ERR_OR_NULL(q->pd))
		ib_dealloc_pd(q->pd);
	if (q->dev)
		ib_device_put(q->dev);
	memset(q, 0, sizeof(*q));
}
EXPORT_SYMBOL_NS_GPL(kb_qp_close, KOFI_BENCH);
