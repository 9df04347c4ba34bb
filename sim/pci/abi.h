/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The control interface between driver and device: registers, admin commands and their
 * responses, asynchronous events. Numbers and layouts are those that Amazon's driver
 * documents (efa_regs_defs.h, efa_admin_defs.h, efa_admin_cmds_defs.h). Everything is
 * little endian except addresses of the fabric.
 */
#ifndef EFASIM_PCI_ABI_H
#define EFASIM_PCI_ABI_H

#include <linux/bits.h>
#include <linux/types.h>

/* Offsets of registers in BAR 0. */
#define EFASIM_REG_VERSION		0x00
#define EFASIM_REG_CTRL_VERSION		0x04
#define EFASIM_REG_CAPS			0x08
#define EFASIM_REG_AQ_BASE_LO		0x10
#define EFASIM_REG_AQ_BASE_HI		0x14
#define EFASIM_REG_AQ_CAPS		0x18
#define EFASIM_REG_ACQ_BASE_LO		0x20
#define EFASIM_REG_ACQ_BASE_HI		0x24
#define EFASIM_REG_ACQ_CAPS		0x28
#define EFASIM_REG_AQ_DB		0x2c
#define EFASIM_REG_AENQ_CAPS		0x34
#define EFASIM_REG_AENQ_BASE_LO		0x38
#define EFASIM_REG_AENQ_BASE_HI		0x3c
#define EFASIM_REG_AENQ_DB		0x40
#define EFASIM_REG_INTR_MASK		0x4c
#define EFASIM_REG_DEV_CTL		0x54
#define EFASIM_REG_DEV_STS		0x58
#define EFASIM_REG_MMIO_READ		0x5c
#define EFASIM_REG_MMIO_RESP_LO		0x60
#define EFASIM_REG_MMIO_RESP_HI		0x64
#define EFASIM_REG_EQ_DB		0x68
#define EFASIM_REGS_END			0x6c

#define EFASIM_CAPS_RESET_TIMEOUT	GENMASK(5, 1)	/* in 100 ms */
#define EFASIM_CAPS_DMA_WIDTH		GENMASK(15, 8)
#define EFASIM_QUEUE_CAPS_DEPTH		GENMASK(15, 0)
#define EFASIM_QUEUE_CAPS_VECTOR	GENMASK(31, 24)	/* unused for the admin queue */
#define EFASIM_DEV_CTL_RESET		BIT(0)
#define EFASIM_DEV_STS_READY		BIT(0)
#define EFASIM_DEV_STS_RESETTING	BIT(3)
#define EFASIM_MMIO_READ_ID		GENMASK(15, 0)
#define EFASIM_MMIO_READ_REG		GENMASK(31, 16)

/* The value of a register, which the device writes by DMA; @id is written last. */
struct efasim_mmio_resp {
	__le16 id;
	__le16 reg;
	__le32 value;
};

/* The doorbell of a completion queue. */
#define EFASIM_CQ_DB_CONSUMER		GENMASK(15, 0)
#define EFASIM_CQ_DB_SN			GENMASK(30, 29)
#define EFASIM_CQ_DB_ARM		BIT(31)

enum efasim_aq_op {
	EFASIM_AQ_CREATE_QP = 1,
	EFASIM_AQ_MODIFY_QP,
	EFASIM_AQ_QUERY_QP,
	EFASIM_AQ_DESTROY_QP,
	EFASIM_AQ_CREATE_AH,
	EFASIM_AQ_DESTROY_AH,
	EFASIM_AQ_REG_MR,
	EFASIM_AQ_DEREG_MR,
	EFASIM_AQ_CREATE_CQ,
	EFASIM_AQ_DESTROY_CQ,
	EFASIM_AQ_GET_FEATURE,
	EFASIM_AQ_SET_FEATURE,
	EFASIM_AQ_GET_STATS,
	EFASIM_AQ_ALLOC_PD,
	EFASIM_AQ_DEALLOC_PD,
	EFASIM_AQ_ALLOC_UAR,
	EFASIM_AQ_DEALLOC_UAR,
	EFASIM_AQ_CREATE_EQ,
	EFASIM_AQ_DESTROY_EQ,
	EFASIM_AQ_ALLOC_MR,		/* Amazon's driver only */
	EFASIM_AQ_OPS,
};

enum efasim_aq_status {
	EFASIM_AQ_OK,
	EFASIM_AQ_NO_RESOURCES,
	EFASIM_AQ_BAD_OPCODE,
	EFASIM_AQ_UNSUPPORTED,
	EFASIM_AQ_MALFORMED,
	EFASIM_AQ_BAD_PARAMETER,
	EFASIM_AQ_UNKNOWN_ERROR,
	EFASIM_AQ_BUSY,
};

/* Flags of a command. */
#define EFASIM_AQ_PHASE			BIT(0)
#define EFASIM_AQ_CTRL_DATA		BIT(1)
#define EFASIM_AQ_CTRL_INDIRECT		BIT(2)
#define EFASIM_AQ_ID			GENMASK(11, 0)

struct efasim_aq_hdr {
	__le16 id;
	u8 opcode;
	u8 flags;
};

/* Descriptor of a buffer with more of a command. */
struct efasim_aq_buf {
	__le32 length;
	__le32 addr_lo;
	__le32 addr_hi;
};

struct efasim_acq_hdr {
	__le16 id;
	u8 status;
	u8 flags;		/* EFASIM_AQ_PHASE; written last */
	__le16 extended_status;
	__le16 sq_head;
};

#define EFASIM_QP_TYPE_UD		1
#define EFASIM_QP_TYPE_SRD		2
#define EFASIM_QP_UNSOLICITED		BIT(2)

struct efasim_create_qp_cmd {
	struct efasim_aq_hdr hdr;
	__le16 pd;
	u8 type;
	u8 flags;		/* EFASIM_QP_UNSOLICITED at most */
	__le64 sq_addr;
	__le64 rq_addr;
	__le32 send_cq;
	__le32 recv_cq;
	__le32 sq_lkey;
	__le32 rq_lkey;
	__le32 sq_size;		/* bytes */
	__le32 sq_depth;
	__le32 rq_size;		/* bytes */
	__le32 rq_depth;
	__le16 uar;
	u8 reserved[6];
};

struct efasim_create_qp_resp {
	struct efasim_acq_hdr hdr;
	__le32 handle;
	__le16 qpn;
	__le16 reserved;
	__le16 send_sub;
	__le16 recv_sub;
	__le32 sq_db;
	__le32 rq_db;
	__le32 llq;
};

#define EFASIM_MODIFY_CMD_STATE		BIT(0)
#define EFASIM_MODIFY_CMD_CUR_STATE	BIT(1)
#define EFASIM_MODIFY_CMD_QKEY		BIT(2)
#define EFASIM_MODIFY_CMD_PSN		BIT(3)
#define EFASIM_MODIFY_CMD_RNR		BIT(5)

struct efasim_modify_qp_cmd {
	struct efasim_aq_hdr hdr;
	__le32 mask;
	__le32 handle;
	__le32 state;
	__le32 cur_state;
	__le32 qkey;
	__le32 psn;
	u8 sq_drained_notify;
	u8 rnr_retry;
	__le16 reserved;
};

/* Commands that query or destroy a queue pair. */
struct efasim_qp_cmd {
	struct efasim_aq_hdr hdr;
	__le32 handle;
};

struct efasim_query_qp_resp {
	struct efasim_acq_hdr hdr;
	__le32 state;
	__le32 qkey;
	__le32 psn;
	u8 draining;
	u8 rnr_retry;
	__le16 reserved;
};

struct efasim_create_ah_cmd {
	struct efasim_aq_hdr hdr;
	u8 gid[16];
	__le16 pd;
	__le16 reserved;
};

/* The number of an object: response to most commands that create one. */
struct efasim_number_resp {
	struct efasim_acq_hdr hdr;
	__le16 number;
	__le16 reserved;
};

/* Commands that destroy such an object. */
struct efasim_number_cmd {
	struct efasim_aq_hdr hdr;
	__le16 number;
	__le16 pd;		/* for an address handle only */
};

#define EFASIM_INLINE_PAGES		4
#define EFASIM_REG_CMD_PAGE_SHIFT	GENMASK(4, 0)
#define EFASIM_REG_CMD_PHYS		BIT(7)

struct efasim_reg_mr_cmd {
	struct efasim_aq_hdr hdr;
	__le16 pd;
	__le16 reserved;
	union {
		__le64 pages[EFASIM_INLINE_PAGES];
		struct efasim_aq_buf list;
	};
	__le64 length;
	u8 flags;
	u8 access;		/* EFASIM_ACCESS_* */
	__le16 reserved2;
	__le32 npages;		/* 0 in the requests of drivers */
	__le64 iova;
};

/*
 * An indirect page list is a chain of chunks. A chunk has the addresses of pages that are
 * filled with addresses, followed by the address of the next chunk.
 */
#define EFASIM_LIST_PAGE		4096
#define EFASIM_CHUNK_PTRS \
	((EFASIM_LIST_PAGE - sizeof(struct efasim_aq_buf)) / sizeof(__le64))

struct efasim_alloc_mr_cmd {
	struct efasim_aq_hdr hdr;
	__le16 pd;
	__le16 reserved;
	__le32 max_pages;
};

struct efasim_mr_resp {
	struct efasim_acq_hdr hdr;
	__le32 lkey;
	__le32 rkey;
	u8 reserved[4];
};

struct efasim_dereg_mr_cmd {
	struct efasim_aq_hdr hdr;
	__le32 lkey;
};

#define EFASIM_CQ_CMD_INTERRUPT		BIT(5)	/* in caps1 */
#define EFASIM_CQ_CMD_VIRT		BIT(6)
#define EFASIM_CQ_CMD_ENTRY_WORDS	GENMASK(4, 0)	/* in caps2 */
#define EFASIM_CQ_CMD_SRC_ADDR		BIT(5)

struct efasim_create_cq_cmd {
	struct efasim_aq_hdr hdr;
	u8 caps1;
	u8 caps2;
	__le16 depth;
	__le16 eq;
	__le16 reserved;
	__le32 addr_lo;
	__le32 addr_hi;
	__le32 lkey;
	__le16 subs;
	__le16 uar;
};

struct efasim_create_cq_resp {
	struct efasim_acq_hdr hdr;
	__le16 index;
	__le16 depth;
	__le32 db;
	__le32 flags;		/* bit 0: db is valid */
};

#define EFASIM_EQ_CMD_ENTRY_WORDS	GENMASK(4, 0)

struct efasim_create_eq_cmd {
	struct efasim_aq_hdr hdr;
	__le16 depth;
	u8 vector;
	u8 caps;
	__le32 addr_lo;
	__le32 addr_hi;
	__le32 events;
	__le32 reserved;
};

/* common of an event: the phase in bit 0, the type from bit 1 on, which is always 0 */
struct efasim_eqe {
	__le32 common;
	__le32 reserved;
	__le16 cq;
	u8 reserved2[6];
};

enum efasim_stats_type {
	EFASIM_STATS_BASIC,
	EFASIM_STATS_MESSAGES,
	EFASIM_STATS_READ,
	EFASIM_STATS_WRITE,
	EFASIM_STATS_NETWORK,
	EFASIM_STATS_TYPES,
};

struct efasim_get_stats_cmd {
	struct efasim_aq_hdr hdr;
	struct efasim_aq_buf buf;
	u8 type;
	u8 scope;		/* 0: statistics of the whole device */
	__le16 scope_modifier;
};

#define EFASIM_STATS_PER_TYPE		5

struct efasim_stats_resp {
	struct efasim_acq_hdr hdr;
	__le64 values[EFASIM_STATS_PER_TYPE];
};

enum efasim_feature {
	EFASIM_FEATURE_DEVICE = 1,
	EFASIM_FEATURE_AENQ,
	EFASIM_FEATURE_NETWORK,
	EFASIM_FEATURE_QUEUE,
	EFASIM_FEATURE_HINTS,
	EFASIM_FEATURE_HOST_INFO,
	EFASIM_FEATURE_EQ,
	EFASIM_FEATURES,
};

struct efasim_feature_cmd {
	struct efasim_aq_hdr hdr;
	struct efasim_aq_buf buf;
	u8 reserved;
	u8 id;
	__le16 reserved2;
	__le32 aenq_supported;	/* for SET_FEATURE only */
	__le32 aenq_enabled;
};

#define EFASIM_CAP_RDMA_READ		BIT(0)
#define EFASIM_CAP_RNR_RETRY		BIT(1)
#define EFASIM_CAP_RDMA_WRITE		BIT(3)
#define EFASIM_CAP_UNSOLICITED		BIT(4)

struct efasim_device_attr {
	__le64 features;
	__le64 page_sizes;
	__le32 firmware;
	__le32 api;
	__le32 version;
	__le16 db_bar;
	u8 phys_bits;
	u8 virt_bits;
	__le32 caps;
	__le32 max_rdma_size;
	u8 guid[8];
};

struct efasim_queue_attr {
	__le32 max_qp;
	__le32 max_sq_depth;
	__le32 inline_size;
	__le32 max_rq_depth;	/* descriptors */
	__le32 max_cq;
	__le32 max_cq_depth;
	__le16 subs;
	__le16 min_sq_depth;
	__le16 send_sges;
	__le16 recv_sges;
	__le32 max_mr;
	__le32 max_mr_pages;
	__le32 max_pd;
	__le32 max_ah;
	__le32 max_llq_size;
	__le16 rdma_sges;
	__le16 max_tx_batch;
};

struct efasim_feature_resp {
	struct efasim_acq_hdr hdr;
	union {
		struct efasim_device_attr device;
		struct efasim_queue_attr queue;
		struct {
			__le32 supported;
			__le32 enabled;
		} aenq;
		struct {
			u8 gid[16];
			__le32 mtu;
		} network;
		__le16 hints[4];	/* in ms; 0 for the driver's default */
		struct {
			__le32 max;
			__le32 max_depth;
			__le32 events;
		} eq;
	};
};

/* The start of the driver's host information, which the device logs. */
struct efasim_host_info {
	char os[128];
	__le32 os_type;
	char kernel[32];
	__le32 kernel_version;
	__le32 driver_version;
};

enum efasim_aenq_group {
	EFASIM_AENQ_FATAL = 1,
	EFASIM_AENQ_WARNING,
	EFASIM_AENQ_NOTIFICATION,
	EFASIM_AENQ_KEEP_ALIVE,
};

#define EFASIM_AENQ_GROUPS		GENMASK(EFASIM_AENQ_KEEP_ALIVE, \
						EFASIM_AENQ_FATAL)

struct efasim_aenq_entry {
	__le16 group;
	__le16 syndrome;
	u8 flags;		/* EFASIM_AQ_PHASE; written last */
	u8 reserved[3];
	__le32 time_lo;		/* us */
	__le32 time_hi;
	u8 data[48];
};

#define EFASIM_AQ_ENTRY			64

union efasim_aq_cmd {
	struct efasim_aq_hdr hdr;
	struct efasim_create_qp_cmd create_qp;
	struct efasim_modify_qp_cmd modify_qp;
	struct efasim_qp_cmd qp;
	struct efasim_create_ah_cmd create_ah;
	struct efasim_number_cmd number;
	struct efasim_reg_mr_cmd reg_mr;
	struct efasim_alloc_mr_cmd alloc_mr;
	struct efasim_dereg_mr_cmd dereg_mr;
	struct efasim_create_cq_cmd create_cq;
	struct efasim_create_eq_cmd create_eq;
	struct efasim_get_stats_cmd get_stats;
	struct efasim_feature_cmd feature;
	u8 raw[EFASIM_AQ_ENTRY];
};

union efasim_aq_resp {
	struct efasim_acq_hdr hdr;
	struct efasim_create_qp_resp create_qp;
	struct efasim_query_qp_resp query_qp;
	struct efasim_number_resp number;
	struct efasim_mr_resp mr;
	struct efasim_create_cq_resp create_cq;
	struct efasim_stats_resp stats;
	struct efasim_feature_resp feature;
	u8 raw[EFASIM_AQ_ENTRY];
};

static_assert(sizeof(struct efasim_create_qp_cmd) == 64);
static_assert(sizeof(struct efasim_create_qp_resp) == 32);
static_assert(sizeof(struct efasim_modify_qp_cmd) == 32);
static_assert(sizeof(struct efasim_reg_mr_cmd) == 64);
static_assert(sizeof(struct efasim_create_cq_cmd) == 28);
static_assert(sizeof(struct efasim_create_eq_cmd) == 24);
static_assert(sizeof(struct efasim_eqe) == 16);
static_assert(sizeof(struct efasim_device_attr) == 48);
static_assert(sizeof(struct efasim_queue_attr) == 56);
static_assert(sizeof(struct efasim_aenq_entry) == 64);
static_assert(sizeof(union efasim_aq_cmd) == EFASIM_AQ_ENTRY);
static_assert(sizeof(union efasim_aq_resp) == EFASIM_AQ_ENTRY);

#endif /* EFASIM_PCI_ABI_H */
