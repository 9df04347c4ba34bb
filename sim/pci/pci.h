/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The PCI front end: functions on a simulated host bridge, for unmodified drivers.
 *
 * A BAR is reserved memory (memmap=), so the device must poll it for writes of drivers and
 * processes. A timer of each function polls registers and doorbells in interrupt context,
 * because a driver busy-waits for a register. The engine's worker polls the doorbells before
 * it handles packets.
 *
 * Commands, resets and keep-alive events run one at a time in the function's workqueue. Only
 * they create and destroy objects, so they may use objects without a lock.
 *
 * Lock order: efasim_dev.lock > efasim_fn.lock > efasim_dev.db_lock.
 */
#ifndef EFASIM_PCI_H
#define EFASIM_PCI_H

#include <linux/bitmap.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/pci_regs.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "../engine.h"
#include "abi.h"

struct efasim_fn;
struct net_device;

#define EFASIM_PCI_FNS		4
#define EFASIM_DEVICE_FIRST	0xefa0
#define EFASIM_DEVICE_LAST	0xefa3
#define EFASIM_FN_WINDOW	SZ_32M

/*
 * BAR 2: send queues. BAR 4: a page of doorbells for each UAR. They are separate BARs because
 * a driver with kernel users maps only the first one write-combining.
 */
#define EFASIM_LLQ_SIZE		SZ_16M
#define EFASIM_LLQ_PAGES	(EFASIM_LLQ_SIZE / SZ_4K)
#define EFASIM_REGS_OFF		EFASIM_LLQ_SIZE
#define EFASIM_DB_BAR		4
#define EFASIM_DB_OFF		(EFASIM_REGS_OFF + SZ_1M)
#define EFASIM_UARS		256
#define EFASIM_DB_SIZE		(EFASIM_UARS * SZ_4K)

/* Layout of a page of doorbells: two for each queue pair, then one for each CQ. */
#define EFASIM_FN_MAX_QP	256
#define EFASIM_FN_MAX_CQ	512
#define EFASIM_QP_DB(index)	((index) * 8)
#define EFASIM_CQ_DB(index)	(SZ_2K + (index) * 4)

/* BAR 0: registers, then the tables of MSI-X. */
#define EFASIM_REGS_SIZE	SZ_16K
#define EFASIM_MSIX_TABLE	SZ_4K
#define EFASIM_MSIX_PBA		SZ_8K
#define EFASIM_MAX_VECTORS	64

#define EFASIM_MAX_EQ_DEPTH	1024
/* No event was sent yet. Not a valid serial number, which has two bits. */
#define EFASIM_TOLD_NONE	0xff

struct efasim_pqp {
	struct efasim_qp *hw;
	struct list_head node;		/* in fn->qps; fn->lock */
	void __iomem *db;		/* doorbell of the send queue; +4 of the receive queue */
	u16 sq_seen;			/* fn->lock */
	u16 rq_seen;			/* fn->lock */
	bool has_rq;
	u32 llq_page;
	u32 llq_pages;
};

struct efasim_pcq {
	struct efasim_cq *hw;
	struct list_head node;		/* in fn->cqs; fn->lock */
	void __iomem *db;
	u16 eq;
	bool interrupts;
	u8 told;			/* serial number of the last event; fn->lock */
};

struct efasim_peq {
	u64 addr;
	u32 depth;			/* 0 if the queue doesn't exist */
	u32 prod;
	u8 vector;
};

struct efasim_vector {
	struct irq_work work;
	struct efasim_fn *fn;
	u32 index;
};

/* State of an admin ring, as the driver has set it up. */
struct efasim_ring_state {
	u64 addr;
	u32 depth;
	u16 index;
	u8 vector;
};

struct efasim_fn {
	struct efasim_dev eng;
	struct net_device *netdev;	/* only for comparison, not referenced */
	struct dentry *dir;
	struct dentry *plug;
	u32 slot;
	u16 device_id;
	bool plugged;			/* pci_lock_rescan_remove() */
	u64 base;			/* address of its part of the window */
	u8 config[PCI_CFG_SPACE_SIZE];	/* pci_lock, except to read single bits */
	u8 wmask[PCI_CFG_SPACE_SIZE];

	void __iomem *regs;
	void __iomem *mem;		/* mapping of the doorbells */
	void __iomem *llq;

	spinlock_t lock;		/* protects members marked fn->lock */
	struct hrtimer timer;
	ktime_t busy_until;		/* fn->lock */
	bool resetting;			/* fn->lock */
	bool reset_done;		/* fn->lock */
	struct list_head qps;		/* fn->lock */
	struct list_head cqs;		/* fn->lock */
	struct efasim_peq eqs[EFASIM_MAX_VECTORS];	/* fn->lock */
	u32 vectors;
	struct efasim_vector vector[EFASIM_MAX_VECTORS];
	DECLARE_BITMAP(pending, EFASIM_MAX_VECTORS);

	/* Only work items of @wq use the following members. */
	struct workqueue_struct *wq;
	struct work_struct aq_work;
	struct work_struct reset_work;
	struct delayed_work keep_alive;
	u16 aq_index;
	u16 acq_index;
	u16 aenq_index;
	u32 aenq_groups;
	struct efasim_pqp *qp_table[EFASIM_FN_MAX_QP];
	struct efasim_pcq *cq_table[EFASIM_FN_MAX_CQ];
	DECLARE_BITMAP(uars, EFASIM_UARS);
	DECLARE_BITMAP(llq_pages, EFASIM_LLQ_PAGES);
};

static inline struct efasim_fn *to_fn(struct efasim_dev *eng)
{
	return container_of(eng, struct efasim_fn, eng);
}

/* bus.c */
int efasim_bus_claim(u64 base, u32 num);
void efasim_bus_release(void);
int efasim_bus_create(struct efasim_fn **fns, u32 num);
void efasim_bus_remove(void);
void efasim_bus_plug(struct efasim_fn *fn, bool in);
void efasim_fn_init_config(struct efasim_fn *fn);
bool efasim_fn_msix_on(const struct efasim_fn *fn);
bool efasim_fn_msix_masked(const struct efasim_fn *fn);

/* regs.c */
int efasim_fn_start(struct efasim_fn *fn);
void efasim_fn_stop(struct efasim_fn *fn);
void efasim_fn_free(struct efasim_fn *fn);
void efasim_fn_raise(struct efasim_fn *fn, u32 vector);

/* aq.c */
void efasim_fn_aq_init(struct efasim_fn *fn);
struct efasim_ring_state efasim_fn_ring(struct efasim_fn *fn, u32 base_lo,
					u32 caps);

/* cmd.c */
int efasim_fn_command(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
		      union efasim_aq_resp *resp);
void efasim_fn_free_objects(struct efasim_fn *fn);

/* cmd_queue.c */
int efasim_cmd_create_qp(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			 union efasim_aq_resp *resp);
int efasim_cmd_destroy_qp(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			  union efasim_aq_resp *resp);
int efasim_cmd_modify_qp(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			 union efasim_aq_resp *resp);
int efasim_cmd_query_qp(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			union efasim_aq_resp *resp);
int efasim_cmd_create_cq(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			 union efasim_aq_resp *resp);
int efasim_cmd_destroy_cq(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			  union efasim_aq_resp *resp);
int efasim_cmd_create_eq(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			 union efasim_aq_resp *resp);
int efasim_cmd_destroy_eq(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			  union efasim_aq_resp *resp);

/* cmd_mr.c */
int efasim_cmd_reg_mr(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
		      union efasim_aq_resp *resp);
int efasim_cmd_alloc_mr(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			union efasim_aq_resp *resp);
int efasim_cmd_dereg_mr(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			union efasim_aq_resp *resp);

/* feature.c */
void efasim_fn_limits(const struct efasim_fn *fn, struct efasim_limits *limits);
int efasim_cmd_get_feature(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			   union efasim_aq_resp *resp);
int efasim_cmd_set_feature(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			   union efasim_aq_resp *resp);
int efasim_cmd_get_stats(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			 union efasim_aq_resp *resp);

/* queue.c */
bool efasim_fn_doorbells(struct efasim_fn *fn);
void efasim_fn_events(struct efasim_fn *fn);
extern const struct efasim_fe_ops efasim_pci_fe_ops;

static inline u64 efasim_addr(__le32 lo, __le32 hi)
{
	return (u64)le32_to_cpu(hi) << 32 | le32_to_cpu(lo);
}

#endif /* EFASIM_PCI_H */
