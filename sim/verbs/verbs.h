/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The kernel-verbs front end: a model of Amazon's driver, with the same checks, locks and
 * defects.
 *
 * All locks are plain spin locks, as in the driver, so that lockdep reports posting or
 * polling in the wrong context: qp_table_lock > vcq.lock > vwq.lock. Two CQs of one QP nest
 * without a subclass, as in the driver.
 *
 * Rings in host memory are mapped as in the driver. Unlike the driver this front end syncs
 * them, so that its users can be tested where every mapping is a bounce buffer.
 */
#ifndef EFASIM_VERBS_H
#define EFASIM_VERBS_H

#include <linux/irq_work.h>
#include <rdma/ib_verbs.h>
#include <efa_verbs.h>

#include "../engine.h"

struct platform_device;

struct efasim_vdev {
	struct ib_device ibdev;
	struct efasim_dev eng;
	struct platform_device *pdev;
	struct net_device *netdev;	/* referenced by ibdev; only for comparison */
	struct list_head node;		/* in the list of devices; under devices_lock */
	struct dentry *dir;
	struct list_head events;	/* queues with pending events; under eng.lock */
	spinlock_t qp_table_lock;	/* protects qp_table for writing */
	struct efasim_vqp **qp_table;
	u32 qp_table_mask;
};

struct efasim_vpd {
	struct ib_pd ibpd;
	u32 pdn;
};

struct efasim_vah {
	struct ib_ah ibah;
	u16 number;
};

struct efasim_vmr {
	struct ib_mr ibmr;
	struct efasim_mr *hw;
	u64 *pages;
	dma_addr_t pages_dma;
	u32 max_pages;
	u32 num_pages;
};

/* Memory that the device accesses by DMA. */
struct efasim_ring {
	void *buf;
	dma_addr_t dma;
	size_t size;
	enum dma_data_direction dir;
};

/* A ring of a completion queue; under vcq.lock. */
struct efasim_vsub {
	u32 ref_cnt;		/* number of queue pairs that complete to the ring */
	u32 first;		/* its first entry in efasim_vcq.ring */
	u32 consumed_cnt;
	u8 phase;
};

struct efasim_vcq {
	struct ib_cq ibcq;
	struct efasim_cq *hw;
	spinlock_t lock;	/* protects sub and next_poll */
	struct efasim_ring ring;
	struct efasim_vsub sub[EFASIM_MAX_SUBS];
	u32 subs;		/* number of rings */
	u32 next_poll;
	u32 queue_mask;
	bool has_events;
	struct list_head event;	/* in efasim_vdev.events; under eng.lock */
	struct irq_work irq;
};

struct efasim_vwq {
	spinlock_t lock;	/* protects all that follows */
	u64 *wrid;
	u32 *free_ids;		/* stack of unused request ids */
	u32 next_free;
	u32 posted;
	u32 completed;
	u32 max_wqes;
	u32 max_sge;
	u32 queue_mask;
	u32 pc;
	u8 phase;
};

struct efasim_vqp {
	struct ib_qp ibqp;
	struct efasim_qp *hw;
	enum ib_qp_state state;
	struct efasim_vwq sq;
	struct efasim_vwq rq;
	struct efasim_ring rq_ring;
	u32 max_inline;
	u32 serial;
	struct ib_qp_cap cap;
	enum ib_sig_type sig_type;
};

static inline struct efasim_vdev *to_vdev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct efasim_vdev, ibdev);
}

static inline struct efasim_vpd *to_vpd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct efasim_vpd, ibpd);
}

static inline struct efasim_vah *to_vah(struct ib_ah *ibah)
{
	return container_of(ibah, struct efasim_vah, ibah);
}

static inline struct efasim_vmr *to_vmr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct efasim_vmr, ibmr);
}

static inline struct efasim_vcq *to_vcq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct efasim_vcq, ibcq);
}

static inline struct efasim_vqp *to_vqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct efasim_vqp, ibqp);
}

/*
 * Refuse and log a request that would crash or corrupt Amazon's driver. The test that
 * made it fails.
 */
#define efasim_crash_avoided(ibqp, text)				\
	do {								\
		efasim_count(&to_vdev((ibqp)->device)->eng,		\
			     EFASIM_S_driver_crash_avoided);		\
		ibdev_err_ratelimited((ibqp)->device,			\
				      "efa would crash here: %s\n", text); \
	} while (0)

/* main.c */
int efasim_ring_alloc(struct efasim_vdev *dev, struct efasim_ring *ring,
		      size_t size, enum dma_data_direction dir);
void efasim_ring_free(struct efasim_vdev *dev, struct efasim_ring *ring);

/* cq.c */
int efasim_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		     struct compat_create_cq_arg *arg);
int efasim_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int efasim_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
int efasim_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
void efasim_release_cqs(struct efasim_vdev *dev);
extern const struct efasim_fe_ops efasim_verbs_fe_ops;

/* qp.c */
int efasim_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr,
		     struct ib_udata *udata);
int efasim_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		     struct ib_udata *udata);
int efasim_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_qp_init_attr *init_attr);
int efasim_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
void efasim_release_qps(struct efasim_vdev *dev);

/* post.c */
int efasim_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad_wr);
int efasim_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad_wr);

/* mr.c */
struct ib_mr *efasim_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *efasim_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				 u64 virt_addr, int access, COMPAT_DMAH_ARG
				 struct ib_udata *udata);
struct ib_mr *efasim_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			      u32 max_num_sg);
int efasim_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		     unsigned int *offset);
int efasim_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

/* main.c */
extern const struct ib_device_ops efasim_device_ops;

#endif /* EFASIM_VERBS_H */
