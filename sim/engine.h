/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The engine of the software EFA device. It models the hardware and knows nothing of verbs.
 * A front end (the kernel-verbs driver in this directory, or a PCI function) gives it
 * admin commands, rings in the hardware's format (hwfmt.h) and doorbells, and gets a call
 * when a completion queue needs an event.
 *
 * Contexts:
 *  - efasim_adm_*(): admin commands. Process context, may sleep.
 *  - efasim_sq_*(), efasim_rq_*(), efasim_cq_*(): any context; the front end
 *    serialises per queue.
 *  - efasim_dev_*(): work of the device itself, in the device's worker. In a profile
 *    the prefix distinguishes it from work of the host.
 *
 * Lock order: efasim_dev.lock (mutex; the device's state) > local_devs (net.c)
 * > rxq.lock. db_lock is a leaf, taken with interrupts off because a doorbell may
 * ring in any context.
 */
#ifndef EFASIM_ENGINE_H
#define EFASIM_ENGINE_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/prandom.h>
#include <linux/rhashtable.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/timerqueue.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "hwfmt.h"
#include "wire.h"

struct device;
struct efasim_dev;
struct efasim_peer;
struct efasim_qp;
struct net;
struct socket;

#define EFASIM_AH_NONE		0xffff
#define EFASIM_KEY_INDEX_MASK	0x000fffff
#define EFASIM_KEY_GEN_MASK	0x00f00000
#define EFASIM_DMA_BITS		48
/* Room for the longest valid datagram, and at least one byte more. */
#define EFASIM_RXBUF		(EFASIM_MAX_PAYLOAD + 256)

/* Completion status as the device reports it; the numbers are the ABI. */
enum efasim_status {
	EFASIM_OK = 0,
	EFASIM_FLUSHED = 1,
	EFASIM_QP_INTERNAL = 2,
	EFASIM_UNSUPPORTED_OP = 3,
	EFASIM_INVALID_AH = 4,
	EFASIM_INVALID_LKEY = 5,
	EFASIM_LOCAL_BAD_LENGTH = 6,
	EFASIM_BAD_ADDRESS = 7,
	EFASIM_ABORT = 8,
	EFASIM_BAD_DEST_QPN = 9,
	EFASIM_RNR = 10,
	EFASIM_REMOTE_BAD_LENGTH = 11,
	EFASIM_BAD_STATUS = 12,
	EFASIM_UNRESP_REMOTE = 13,
	EFASIM_UNKNOWN_PEER = 14,
	EFASIM_UNREACH_REMOTE = 15,
	EFASIM_FEATURE_MISMATCH = 18,
};

enum efasim_qp_type { EFASIM_QP_UD, EFASIM_QP_SRD };

/* In the order of verbs' states, but separate, so that the engine doesn't include rdma/. */
enum efasim_qp_state {
	EFASIM_QPS_RESET,
	EFASIM_QPS_INIT,
	EFASIM_QPS_RTR,
	EFASIM_QPS_RTS,
	EFASIM_QPS_SQD,
	EFASIM_QPS_SQE,
	EFASIM_QPS_ERR,
};

#define EFASIM_ACCESS_LOCAL_WRITE	BIT(0)
#define EFASIM_ACCESS_REMOTE_WRITE	BIT(1)
#define EFASIM_ACCESS_REMOTE_READ	BIT(2)

#define EFASIM_RNR_INFINITE	7

/* Limits of a device, set from the module's parameters when it is created. */
struct efasim_limits {
	u32 max_qp;
	u32 max_cq;
	u32 max_mr;
	u32 max_mr_pages;
	u32 max_ah;
	u32 max_pd;
	u32 max_sq_depth;
	u32 max_rq_depth;
	u32 min_sq_depth;
	u32 max_cq_depth;
	u32 mtu;
	u32 max_rdma_size;
	u32 max_peers;
	u32 vectors;
	u32 subs;		/* rings of a completion queue, at most EFASIM_MAX_SUBS */
	bool rdma_read;
	bool rdma_write;
	bool unsolicited;	/* queue pairs may have efasim_qp_params.unsolicited */
};

/*
 * All counters. The first two blocks have the names of Amazon's driver and are
 * shown by `rdma statistic`; debugfs shows all.
 */
#define EFASIM_DEVICE_STATS(x) \
	x(submitted_cmds) x(completed_cmds) x(cmds_err) x(no_completion_cmds) \
	x(keep_alive_rcvd) x(alloc_pd_err) x(create_qp_err) x(create_cq_err) \
	x(reg_mr_err) x(alloc_ucontext_err) x(create_ah_err) x(mmap_err) \
	x(alloc_mr_err) x(get_dma_mr_err)

#define EFASIM_PORT_STATS(x) \
	x(tx_bytes) x(tx_pkts) x(rx_bytes) x(rx_pkts) x(rx_drops) \
	x(send_bytes) x(send_wrs) x(recv_bytes) x(recv_wrs) \
	x(rdma_read_wrs) x(rdma_read_bytes) x(rdma_read_wr_err) \
	x(rdma_read_resp_bytes) x(rdma_write_wrs) x(rdma_write_bytes) \
	x(rdma_write_wr_err) x(rdma_write_recv_bytes) x(retrans_bytes) \
	x(retrans_pkts) x(retrans_timeout_events) \
	x(unresponsive_remote_events) x(impaired_remote_conn_events)

#define EFASIM_SIM_STATS(x) \
	x(wire_short) x(wire_magic) x(wire_version) x(wire_type) \
	x(wire_flags) x(wire_length) x(wire_field) x(wire_source) \
	x(wire_incarnation) x(wire_ack) x(rx_duplicates) \
	x(rx_busy) x(rx_stale_response) x(peers_full) x(peer_restarts) \
	x(rxq_full) x(sock_errors) x(sock_drops) x(no_memory) x(bad_qpn) x(bad_qkey) \
	x(bad_rkey) x(bad_lkey) x(bad_dma_address) x(unknown_peer) \
	x(rnr_nak_sent) x(rnr_nak_rcvd) x(cq_overflow) x(cqe_of_dead_qp) \
	x(cqe_of_reused_qpn) x(mr_remap_live) x(mr_reuse_generation) \
	x(driver_crash_avoided) x(recv_without_sge) x(events) \
	x(bad_doorbell) x(tx_datagrams)

enum efasim_stat {
#define EFASIM_STAT_ENUM(name) EFASIM_S_##name,
	EFASIM_DEVICE_STATS(EFASIM_STAT_ENUM)
	EFASIM_DEVICE_STATS_END,
	EFASIM_PORT_STATS_START = EFASIM_DEVICE_STATS_END - 1,
	EFASIM_PORT_STATS(EFASIM_STAT_ENUM)
	EFASIM_PORT_STATS_END,
	EFASIM_SIM_STATS_START = EFASIM_PORT_STATS_END - 1,
	EFASIM_SIM_STATS(EFASIM_STAT_ENUM)
	EFASIM_STATS,
#undef EFASIM_STAT_ENUM
};

/*
 * Faults. A value is a probability in 1/1000 unless the name says otherwise;
 * 0 is off. A counter per fault counts its injections.
 */
#define EFASIM_FAULTS(x) \
	x(reorder, 100) x(delay, 0) x(delay_us, 2000) x(duplicate, 0) \
	x(drop, 0) x(rnr, 0) x(reg_delay_us, 500) x(admin_fail_nth, 0) \
	x(admin_timeout, 0) x(admin_timeout_ms, 30000) x(ah_limit, 0) \
	x(mr_limit, 0) x(qp_limit, 0) x(unresponsive, 0) x(qpn_reuse, 0) \
	x(slid_lag_us, 500) x(no_memory, 0) x(admin_delay_us, 1000) \
	x(dead, 0) x(err_flush, 500) x(rnr_timer_us, 500) x(frwr_copy, 0) \
	x(ud_header, 40) x(deny_read, 0)

enum efasim_fault {
#define EFASIM_FAULT_ENUM(name, ...) EFASIM_F_##name,
	EFASIM_FAULTS(EFASIM_FAULT_ENUM)
	EFASIM_FAULT_KNOBS,
#undef EFASIM_FAULT_ENUM
};

struct efasim_sge {
	u64 addr;
	u32 length;
	u32 lkey;
};

/* Attributes of a memory region. */
struct efasim_reg {
	u64 iova;
	u64 length;
	u64 pbl;		/* address of the only page, or of the list of pages */
	u32 lkey;
	u32 npages;
	u8 page_shift;
	u8 access;
	bool pbl_inline;
};

/* A send queue entry, in host terms. */
struct efasim_wqe {
	u8 op;			/* enum efasim_op_type */
	u8 num_sge;
	bool has_imm;
	bool is_inline;
	u16 req_id;
	u16 ah;
	u32 dest_qpn;
	u32 qkey;
	u32 imm;
	union {
		struct efasim_sge sge[EFASIM_MAX_SGE];
		struct {
			u8 data[EFASIM_INLINE_LEN];
			u32 length;
		} in;
		struct {
			struct efasim_sge local;
			u64 addr;
			u32 rkey;
		} rdma;
		struct efasim_reg reg;
		u32 inv_lkey;
	};
};

/* A receive, which has one descriptor per SGE. */
struct efasim_rqe {
	struct efasim_sge sge[EFASIM_MAX_SGE];
	u16 req_id;
	u8 num_sge;
};

struct efasim_cqe {
	u32 qpn;
	u32 serial;	/* serial number of the QP: see struct efasim_cq */
	u32 length;
	u32 imm;
	u16 req_id;
	u16 src_qpn;
	u16 ah;
	u8 status;
	u8 op;
	bool recv;
	bool has_imm;
	bool unsolicited;	/* of a write that took no receive */
	const u8 *src_gid;	/* sender of a receive; NULL if flushed */
};

/* Rings of a completion queue: sends complete to the first one, receives to the last one. */
#define EFASIM_SUB_SEND		0
#define EFASIM_MAX_SUBS		2

struct efasim_sub_cq {
	u32 prod;
	u32 cons;		/* the host's index; unknown to a real device */
};

/*
 * A completion queue: one ring, or two, one behind the other. Members that a real device doesn't
 * have (the host's index, the queue pair of each entry) are for detecting errors of the
 * host, and don't change what the host sees.
 */
struct efasim_cq {
	struct efasim_dev *dev;
	u32 index;
	u32 users;		/* number of queue pairs; dev->lock */
	u64 addr;		/* DMA address of the rings */
	u32 depth;		/* entries of each ring; a power of 2 */
	u32 entry_size;
	bool untold;		/* the host doesn't call efasim_cq_consumed() */
	bool src_addr;		/* entries have the GIDs of unknown senders; @entry_size is 32 */
	struct efasim_sub_cq sub[EFASIM_MAX_SUBS];
	u32 *serials;		/* serial of the queue pair, for each entry */
	atomic_t armed;
	void *ctx;		/* the front end's queue, or NULL; dev->lock */
};

/**
 * struct efasim_fe_ops - functions of a front end that the engine calls
 * @event: an armed completion queue got an entry. Called from the device's
 *	worker, for one queue of a device at a time; must not sleep.
 * @fetch: the worker begins a run, or has found no receive for a message: read doorbells
 *	that are only memory, in particular those of receive queues. Optional; must not
 *	sleep.
 * @notify: the worker has written all completions of this run: notify the host.
 *	Optional; must not sleep.
 * @host_waits: the host times commands out itself, so a command that is never
 *	answered returns at once
 */
struct efasim_fe_ops {
	void (*event)(struct efasim_cq *cq);
	void (*fetch)(struct efasim_dev *dev);
	void (*notify)(struct efasim_dev *dev);
	bool host_waits;
};

struct efasim_timer {
	struct timerqueue_node node;
	bool armed;
	void (*fn)(struct efasim_dev *dev, struct efasim_timer *timer);
};

/* A send queue entry that the device is working on. */
struct efasim_op {
	struct efasim_wqe wqe;
	struct efasim_qp *qp;
	struct efasim_peer *peer;
	struct list_head link;		/* in qp->idle, or active in peer->ops */
	struct list_head tx;		/* in peer->txops while packets are left to send */
	struct efasim_timer timer;
	bool active;
	bool rnr_wait;
	u8 rnr_left;
	u32 tries;			/* consecutive retries */
	u8 status;
	u32 gen;
	u32 len;
	u32 segs;
	u32 sent;
	u32 answered;
};

struct efasim_qp {
	struct efasim_dev *dev;
	u32 qpn;
	u32 serial;
	u32 pdn;
	enum efasim_qp_type type;
	enum efasim_qp_state state;
	u32 qkey;
	u32 sq_psn;
	u8 rnr_retry;
	bool unsolicited;
	struct efasim_cq *send_cq;
	struct efasim_cq *recv_cq;

	struct efasim_tx_wqe *sq;	/* send queue, written by the host */
	const void __iomem *llq;	/* send queue in device memory instead, or NULL */
	struct efasim_op *ops;		/* one for each entry of the send queue */
	struct list_head idle;		/* inactive entries of @ops */
	u64 rq_addr;			/* DMA address of the receive descriptors */
	u32 sq_depth;			/* entries, a power of 2 */
	u32 rq_depth;			/* descriptors, a power of 2 */
	/* The host writes prod, the device cons. They aren't reduced modulo the depth. */
	u16 sq_prod;
	u16 sq_cons;
	u16 rq_prod;
	u16 rq_cons;
	struct list_head db;		/* in dev->doorbells; db_lock */
};

/* Number of UDP ports that a device tries. */
#define EFASIM_PORT_TRIES	256

enum efasim_mr_state {
	EFASIM_MR_FREE,
	EFASIM_MR_VALID,
	EFASIM_MR_DMA,		/* the whole address space, local only */
};

struct efasim_mr {
	u32 index;
	u32 pdn;
	enum efasim_mr_state state;
	bool used;		/* the region was registered before */
	bool fast;		/* for REG_MR and LOCAL_INV */
	bool posted;		/* a REG_MR is outstanding; set by the front end */
	u32 key;
	u64 iova;
	u64 length;
	u64 pbl;
	u32 npages;
	bool pbl_inline;
	u64 *copy;		/* copy of the page list, or NULL to read it at each use */
	u32 max_pages;
	u8 page_shift;
	u8 access;
};

struct efasim_ah {
	struct rhlist_head node;	/* in dev->ahs_by_gid */
	u8 gid[EFASIM_GID_LEN];
	u32 pdn;
	u32 users;
	u16 number;
	ktime_t visible;	/* time from which completions report the handle */
};

struct efasim_rxq {
	spinlock_t lock;	/* protects list and count */
	struct list_head list;
	u32 count;
};

struct efasim_dev {
	/* protects all that follows, except where a comment says otherwise */
	struct mutex lock;
	const struct efasim_fe_ops *ops;
	struct device *dma_dev;
	struct efasim_limits limits;
	u8 gid[EFASIM_GID_LEN];
	u64 incarnation;
	bool admin_dead;
	bool no_dma;		/* the host has disabled bus mastering */
	unsigned int noio;	/* memalloc scope of the command that holds the lock */
	bool stopping;

	struct xarray qps;	/* by the low bits of the number */
	struct xarray cqs;
	struct xarray mrs;
	struct xarray ahs;
	struct xarray pds;
	struct xarray peers;
	struct rhltable ahs_by_gid;
	struct rhashtable peers_by_gid;
	u32 next_qp;
	u32 qpn_generation;
	u32 next_mr;
	u32 serial;
	u32 op_gen;
	u32 num_qp;
	u32 num_cq;
	u32 num_mr;
	u32 num_ah;
	u32 num_peers;
	u64 mr_pages;

	spinlock_t db_lock;	/* protects doorbells */
	struct list_head doorbells;
	struct efasim_rxq rxq;	/* packets from devices of this kernel */
	struct list_head ackq;	/* peers that need an acknowledgment */

	struct work_struct work;
	struct hrtimer timer;
	struct timerqueue_head timers;	/* ops, peers, held packets */
	struct list_head held;
	u32 num_held;

	struct socket *sock;	/* NULL on no network */
	void (*sock_saved_ready)(struct sock *sk);
	u8 *rxbuf;
	u8 *txbuf;		/* datagram that is being built */
	u32 txlen;
	u8 txgid[EFASIM_GID_LEN];
	struct list_head node;	/* in the list of local devices */

	struct rnd_state rnd;
	struct rnd_state admin_rnd;	/* separate, so commands don't shift faults of packets */
	u32 seed;
	u32 fault[EFASIM_FAULT_KNOBS];		/* debugfs writes them */
	atomic64_t injected[EFASIM_FAULT_KNOBS];
	atomic64_t stats[EFASIM_STATS];
	u32 unresp_ms;
	u32 sock_buf;
	bool udp_only;
};

/* Return: index of the ring to which receives complete. */
static inline u32 efasim_recv_sub(const struct efasim_dev *dev)
{
	return dev->limits.subs - 1;
}

static inline void efasim_add(struct efasim_dev *dev, enum efasim_stat stat,
			      u64 n)
{
	atomic64_add(n, &dev->stats[stat]);
}

static inline void efasim_count(struct efasim_dev *dev, enum efasim_stat stat)
{
	atomic64_inc(&dev->stats[stat]);
}

/* engine.c */
struct efasim_dev_params {
	const struct efasim_fe_ops *ops;
	const struct efasim_limits *limits;
	struct device *dma_dev;
	u32 seed;
	u32 unresp_ms;
	u32 sock_buf;	/* size in bytes for each direction */
	bool udp_only;	/* use UDP also to devices of this kernel */
};

int efasim_engine_init(void);
void efasim_engine_exit(void);
int efasim_engine_create(struct efasim_dev *dev,
			 const struct efasim_dev_params *params);
void efasim_engine_stop(struct efasim_dev *dev);
void efasim_engine_destroy(struct efasim_dev *dev);
void efasim_kick(struct efasim_dev *dev);
bool efasim_dev_run(struct efasim_dev *dev);

/* admin.c */
struct efasim_qp_params {
	enum efasim_qp_type type;
	u32 pdn;
	u32 sq_depth;
	u32 rq_depth;		/* descriptors */
	u64 rq_addr;		/* DMA address */
	const void __iomem *llq;	/* @sq_depth entries, or NULL */
	struct efasim_cq *send_cq;
	struct efasim_cq *recv_cq;
	bool unsolicited;	/* writes with immediate data take no receive */
};

struct efasim_cq_params {
	u64 addr;		/* DMA address of the rings */
	u32 depth;		/* entries of each ring */
	u32 entry_size;
	bool untold;		/* efasim_cq_consumed() is never called */
	bool src_addr;
	void *ctx;
};

#define EFASIM_MODIFY_STATE	BIT(0)
#define EFASIM_MODIFY_QKEY	BIT(1)
#define EFASIM_MODIFY_PSN	BIT(2)
#define EFASIM_MODIFY_RNR	BIT(3)

struct efasim_qp_modify {
	u32 mask;
	enum efasim_qp_state state;
	u32 qkey;
	u32 sq_psn;
	u8 rnr_retry;
};

int efasim_adm_alloc_pd(struct efasim_dev *dev, u32 *pdn);
int efasim_adm_dealloc_pd(struct efasim_dev *dev, u32 pdn);
struct efasim_cq *efasim_adm_create_cq(struct efasim_dev *dev,
				       const struct efasim_cq_params *params);
int efasim_adm_destroy_cq(struct efasim_cq *cq);
void efasim_cq_forget(struct efasim_cq *cq);
struct efasim_qp *efasim_adm_create_qp(struct efasim_dev *dev,
				       const struct efasim_qp_params *params);
int efasim_adm_modify_qp(struct efasim_qp *qp,
			 const struct efasim_qp_modify *modify);
int efasim_adm_query_qp(struct efasim_qp *qp, struct efasim_qp_modify *out);
int efasim_adm_destroy_qp(struct efasim_qp *qp);
int efasim_adm_create_ah(struct efasim_dev *dev, u32 pdn, const u8 *gid,
			 u16 *number);
int efasim_adm_destroy_ah(struct efasim_dev *dev, u32 pdn, u16 number);
struct efasim_mr *efasim_adm_alloc_mr(struct efasim_dev *dev, u32 pdn,
				      u32 max_pages);
struct efasim_mr *efasim_adm_reg_mr(struct efasim_dev *dev, u32 pdn,
				    const struct efasim_reg *reg, u64 *pages);
struct efasim_mr *efasim_adm_dma_mr(struct efasim_dev *dev, u32 pdn);
void efasim_adm_reset(struct efasim_dev *dev);
int efasim_adm_other(struct efasim_dev *dev);
int efasim_adm_dereg_mr(struct efasim_dev *dev, struct efasim_mr *mr);

static inline struct efasim_tx_wqe *efasim_sq_slot(struct efasim_qp *qp, u32 pc)
{
	return &qp->sq[pc & (qp->sq_depth - 1)];
}

void efasim_sq_ring(struct efasim_qp *qp);
void efasim_sq_doorbell(struct efasim_qp *qp, u16 prod);
void efasim_rq_doorbell(struct efasim_qp *qp, u16 prod);

/* Send an event for the next entry. The host then looks for entries that came before. */
static inline void efasim_cq_arm(struct efasim_cq *cq)
{
	atomic_set(&cq->armed, 1);
	/* Pairs with efasim_dev_cqe(), which writes an entry and then looks at armed. */
	smp_mb();
}

/* The host has read the entries of a ring before index @cons. */
static inline void efasim_cq_consumed(struct efasim_cq *cq, u32 sub, u32 cons)
{
	/* Entries must be read before the device may overwrite them. */
	smp_store_release(&cq->sub[sub].cons, cons);
}

/* Return: serial of the queue pair that completed an entry; @slot is its index in all rings. */
static inline u32 efasim_cq_serial(struct efasim_cq *cq, u32 slot)
{
	return READ_ONCE(cq->serials[slot]);
}

/* mr.c */
enum efasim_mr_side { EFASIM_MR_READ_FROM, EFASIM_MR_WRITE_TO };

bool efasim_dev_dma(struct efasim_dev *dev, u64 addr, void *buf, u32 len,
		    enum efasim_mr_side side);

/* fault.c */
bool efasim_fault(struct efasim_dev *dev, enum efasim_fault fault);
void efasim_faults_init(struct efasim_dev *dev, u32 seed);
void efasim_debugfs_add(struct efasim_dev *dev, struct dentry *dir);

/* net.c */
int efasim_net_init(struct efasim_dev *dev, struct net *net, __be32 addr,
		    u16 port);
void efasim_net_leave(struct efasim_dev *dev);

#endif /* EFASIM_ENGINE_H */
