/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Format of the entries of the hardware's rings: send queue entries of 64 bytes, receive
 * descriptors of 16, completions of 16 or 32. Fields have the names and offsets that
 * Amazon's driver documents (efa_io_defs.h). All are little endian, and many are narrower
 * than the corresponding fields of verbs.
 */
#ifndef EFASIM_HWFMT_H
#define EFASIM_HWFMT_H

#include <linux/bits.h>
#include <linux/types.h>

#define EFASIM_MAX_SGE		2
#define EFASIM_INLINE_LEN	32

enum efasim_op_type {
	EFASIM_OP_SEND,
	EFASIM_OP_READ,
	EFASIM_OP_WRITE,
	EFASIM_OP_FAST_REG,
	EFASIM_OP_FAST_INV,
	EFASIM_OP_TYPES,
};

/* ctrl1 and ctrl2 of a send queue entry. */
#define EFASIM_TX_OP_TYPE	GENMASK(3, 0)
#define EFASIM_TX_HAS_IMM	BIT(4)
#define EFASIM_TX_INLINE_MSG	BIT(5)
#define EFASIM_TX_META_EXT	BIT(6)
#define EFASIM_TX_META_DESC	BIT(7)
#define EFASIM_TX_PHASE		BIT(0)
#define EFASIM_TX_FIRST		BIT(2)
#define EFASIM_TX_LAST		BIT(3)
#define EFASIM_TX_COMP_REQ	BIT(4)

struct efasim_tx_meta_desc {
	__le16 req_id;
	u8 ctrl1;
	u8 ctrl2;
	__le16 dest_qp_num;
	__le16 length;		/* bytes of inline data, else number of SGEs */
	__le32 immediate_data;
	__le16 ah;
	__le16 reserved;
	__le32 qkey;
	u8 reserved2[12];
};

#define EFASIM_LKEY		GENMASK(23, 0)

struct efasim_tx_buf_desc {
	__le32 length;
	__le32 lkey;
	__le32 buf_addr_lo;
	__le32 buf_addr_hi;
};

struct efasim_remote_mem_addr {
	__le32 length;
	__le32 rkey;
	__le32 buf_addr_lo;
	__le32 buf_addr_hi;
};

/* flags of a fast registration */
#define EFASIM_REG_PAGE_SHIFT	GENMASK(4, 0)
#define EFASIM_REG_PBL_MODE	GENMASK(6, 5)
#define EFASIM_PBL_INLINE	0	/* pbl is the only page */
#define EFASIM_PBL_DIRECT	1	/* pbl is the address of the list of pages */

struct efasim_fast_mr_reg_req {
	__le32 lkey;
	u8 permissions;		/* EFASIM_ACCESS_* */
	u8 flags;
	u8 reserved[2];
	__le64 iova;
	__le64 mr_length;
	__le64 pbl;
};

struct efasim_tx_wqe {
	struct efasim_tx_meta_desc meta;
	union {
		struct efasim_tx_buf_desc sgl[EFASIM_MAX_SGE];
		u8 inline_data[EFASIM_INLINE_LEN];
		struct {
			struct efasim_remote_mem_addr remote_mem;
			struct efasim_tx_buf_desc local_mem;
		} rdma_req;
		struct efasim_fast_mr_reg_req reg_mr_req;
		__le32 inv_lkey;
	};
};

/* lkey_ctrl of a receive descriptor; a receive has one descriptor per SGE */
#define EFASIM_RX_FIRST		BIT(30)
#define EFASIM_RX_LAST		BIT(31)

struct efasim_rx_desc {
	__le32 buf_addr_lo;
	__le32 buf_addr_hi;
	__le16 req_id;
	__le16 length;
	__le32 lkey_ctrl;
};

/* flags of a completion */
#define EFASIM_CQE_PHASE	BIT(0)
#define EFASIM_CQE_Q_TYPE	GENMASK(2, 1)
#define EFASIM_CQE_HAS_IMM	BIT(3)
#define EFASIM_CQE_OP_TYPE	GENMASK(6, 4)
#define EFASIM_CQE_UNSOLICITED	BIT(7)
#define EFASIM_Q_SEND		1
#define EFASIM_Q_RECV		2

struct efasim_cdesc_common {
	__le16 req_id;
	u8 status;
	u8 flags;
	__le16 qp_num;
};

/* In a send's completion only @common is valid. */
struct efasim_rx_cdesc {
	struct efasim_cdesc_common common;
	__le16 length;		/* bits 15:0 */
	__le16 ah;
	__le16 src_qp_num;
	__le32 imm;
};

struct efasim_rx_cdesc_ex {
	struct efasim_rx_cdesc base;
	union {
		__le16 length_hi;	/* of a write: bits 31:16 */
		u8 src_addr[16];	/* GID of a sender without a handle */
	};
};

static_assert(sizeof(struct efasim_tx_wqe) == 64);
static_assert(sizeof(struct efasim_rx_desc) == 16);
static_assert(sizeof(struct efasim_rx_cdesc) == 16);
static_assert(sizeof(struct efasim_rx_cdesc_ex) == 32);

#endif /* EFASIM_HWFMT_H */
