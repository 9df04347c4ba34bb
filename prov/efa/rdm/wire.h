/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Wire format of fabric efa: version 4 of the EFA RDM protocol, as described by libfabric's
 * prov/efa/docs/efa_rdm_protocol_v4.md, whose names are used here.
 *
 * A packet is one SRD message: a fixed header that begins with struct kefa_base_hdr,
 * optional headers, data. In a request (REQ) the fixed header is followed by rma_iov[], then by the
 * optional headers in the order raw address, CQ data, connid, then by read_iov[].
 */
#ifndef KEFA_RDM_WIRE_H
#define KEFA_RDM_WIRE_H

#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/types.h>

#define KEFA_PROTOCOL_VERSION	4

/* Values of kefa_base_hdr.type. All other types are retired, reserved or private. */
enum kefa_pkt_type {
	KEFA_CTS_PKT			= 3,
	KEFA_CTSDATA_PKT		= 4,
	KEFA_READRSP_PKT		= 5,
	KEFA_EOR_PKT			= 7,
	KEFA_ATOMRSP_PKT		= 8,
	KEFA_HANDSHAKE_PKT		= 9,
	KEFA_RECEIPT_PKT		= 10,
	KEFA_READ_NACK_PKT		= 11,

	KEFA_EAGER_MSGRTM_PKT		= 64,
	KEFA_EAGER_TAGRTM_PKT		= 65,
	KEFA_MEDIUM_MSGRTM_PKT		= 66,
	KEFA_MEDIUM_TAGRTM_PKT		= 67,
	KEFA_LONGCTS_MSGRTM_PKT		= 68,
	KEFA_LONGCTS_TAGRTM_PKT		= 69,
	KEFA_EAGER_RTW_PKT		= 70,
	KEFA_LONGCTS_RTW_PKT		= 71,
	KEFA_SHORT_RTR_PKT		= 72,
	KEFA_LONGCTS_RTR_PKT		= 73,
	KEFA_WRITE_RTA_PKT		= 74,
	KEFA_FETCH_RTA_PKT		= 75,
	KEFA_COMPARE_RTA_PKT		= 76,

	KEFA_LONGREAD_MSGRTM_PKT	= 128,
	KEFA_LONGREAD_TAGRTM_PKT	= 129,
	KEFA_LONGREAD_RTW_PKT		= 130,
	KEFA_DC_EAGER_MSGRTM_PKT	= 133,
	KEFA_DC_EAGER_TAGRTM_PKT	= 134,
	KEFA_DC_MEDIUM_MSGRTM_PKT	= 135,
	KEFA_DC_MEDIUM_TAGRTM_PKT	= 136,
	KEFA_DC_LONGCTS_MSGRTM_PKT	= 137,
	KEFA_DC_LONGCTS_TAGRTM_PKT	= 138,
	KEFA_DC_EAGER_RTW_PKT		= 139,
	KEFA_DC_LONGCTS_RTW_PKT		= 140,
	KEFA_DC_WRITE_RTA_PKT		= 141,
	KEFA_RUNTREAD_MSGRTM_PKT	= 145,
	KEFA_RUNTREAD_TAGRTM_PKT	= 146,

	KEFA_PKT_TYPES
};

/* Flag in kefa_base_hdr.flags for all types: the packet has its sender's connid. */
#define KEFA_PKT_CONNID_HDR		0x8000

/* Flags of requests: optional headers; hints that repeat the type; a retry. */
#define KEFA_REQ_OPT_RAW_ADDR_HDR	0x0001
#define KEFA_REQ_OPT_CQ_DATA_HDR	0x0002
#define KEFA_REQ_MSG			0x0004
#define KEFA_REQ_TAGGED			0x0008
#define KEFA_REQ_RMA			0x0010
#define KEFA_REQ_ATOMIC			0x0020
#define KEFA_REQ_READ_NACK		0x2000	/* repeated after a READ_NACK */

/* Flag of a CTS: it answers a READRSP instead of a request of the peer. */
#define KEFA_CTS_READ_REQ		0x0080

/* Flags of a HANDSHAKE: its optional headers, in this order after the connid. */
#define KEFA_HANDSHAKE_HOST_ID_HDR		0x0001
#define KEFA_HANDSHAKE_DEVICE_VERSION_HDR	0x0002
#define KEFA_HANDSHAKE_USER_RECV_QP_HDR		0x0004
#define KEFA_HANDSHAKE_HMEM_P2P_HDR		0x0008

/* Bits of kefa_handshake_hdr.extra_info[0]: extra features and requests. */
#define KEFA_FEATURE_RDMA_READ			BIT_ULL(0)
#define KEFA_FEATURE_DELIVERY_COMPLETE		BIT_ULL(1)
#define KEFA_REQUEST_CONSTANT_HEADER_LENGTH	BIT_ULL(2)
#define KEFA_REQUEST_CONNID_HEADER		BIT_ULL(3)
#define KEFA_FEATURE_RUNT			BIT_ULL(4)
#define KEFA_FEATURE_RDMA_WRITE			BIT_ULL(5)
#define KEFA_FEATURE_READ_NACK			BIT_ULL(6)
#define KEFA_FEATURE_REQUEST_USER_RECV_QP	BIT_ULL(7)
#define KEFA_FEATURE_UNSOLICITED_WRITE_RECV	BIT_ULL(8)

/* nextra_p3 is the number of words in extra_info plus 3; no version has more than 4 words. */
#define KEFA_NEXTRA_P3		3
#define KEFA_NEXTRA_MAX		4

/* Maximum number of iovs; no version of libfabric sends or accepts more. */
#define KEFA_IOV_MAX		4

/* libfabric pads its address of 32 bytes to 36; other lengths are accepted as well. */
#define KEFA_RAW_ADDR_BYTES	32
#define KEFA_RAW_ADDR_LEN	36
#define KEFA_RAW_ADDR_LEN_MAX	64

struct kefa_base_hdr {
	__u8	type;
	__u8	version;
	__le16	flags;
};

/* Aligned to 4 bytes only, if it follows a connid. */
struct kefa_rma_iov {
	__le64	addr;
	__le64	len;
	__le64	key;
} __packed __aligned(4);

/* --- answers --- */

struct kefa_cts_hdr {
	struct kefa_base_hdr	base;
	__le32			connid;
	__le32			send_id;
	__le32			recv_id;
	__le64			recv_length;
};

struct kefa_ctsdata_hdr {
	struct kefa_base_hdr	base;
	__le32			recv_id;
	__le64			seg_length;
	__le64			seg_offset;
};

/* Follows the header if the packet has a connid. */
struct kefa_ctsdata_opt_connid_hdr {
	__le32	connid;
	__le32	padding;
};

struct kefa_readrsp_hdr {
	struct kefa_base_hdr	base;
	__le32			connid;
	__le32			recv_id;
	__le32			send_id;
	__le64			seg_length;
};

struct kefa_eor_hdr {
	struct kefa_base_hdr	base;
	__le32			send_id;
	__le32			recv_id;
	__le32			connid;
};

struct kefa_read_nack_hdr {
	struct kefa_base_hdr	base;
	__le32			send_id;
	__le32			recv_id;
	__le32			connid;
};

struct kefa_atomrsp_hdr {
	struct kefa_base_hdr	base;
	__le32			connid;
	__le32			reserved;
	__le32			recv_id;
	__le64			seg_length;
};

struct kefa_receipt_hdr {
	struct kefa_base_hdr	base;
	__le32			tx_id;
	__le32			msg_id;
	__le32			connid;
};

struct kefa_handshake_hdr {
	struct kefa_base_hdr	base;
	__le32			nextra_p3;
	__le64			extra_info[];
};

struct kefa_handshake_opt_connid_hdr {
	__le32	connid;
	__le32	padding;
};

struct kefa_handshake_opt_host_id_hdr {
	__le64	host_id;
};

struct kefa_handshake_opt_device_version_hdr {
	__le32	device_version;
	__le32	reserved;
};

struct kefa_handshake_opt_user_recv_qp_hdr {
	__le32	qpn;
	__le32	qkey;
};

struct kefa_handshake_opt_hmem_cap_hdr {
	__u8	p2p_supported;
	__u8	reserved[7];
};

/* --- requests: optional headers --- */

struct kefa_req_opt_raw_addr_hdr {
	__le32	addr_len;
	__u8	raw_addr[];
};

struct kefa_req_opt_cq_data_hdr {
	__le64	cq_data;
};

struct kefa_req_opt_connid_hdr {
	__le32	connid;
};

/* Address in struct kefa_req_opt_raw_addr_hdr: a struct fi_efa_addr in little endian. */
struct kefa_raw_addr {
	__u8	gid[16];
	__le16	qpn;
	__le16	pad;
	__le32	qkey;
	__le64	reserved;
} __packed __aligned(4);

/* --- requests for messages --- */

struct kefa_eager_msgrtm_hdr {
	struct kefa_base_hdr	base;
	__le32			msg_id;
};

struct kefa_eager_tagrtm_hdr {
	struct kefa_eager_msgrtm_hdr	hdr;
	__le64				tag;
};

struct kefa_medium_msgrtm_hdr {
	struct kefa_base_hdr	base;
	__le32			msg_id;
	__le64			msg_length;
	__le64			seg_offset;
};

struct kefa_medium_tagrtm_hdr {
	struct kefa_medium_msgrtm_hdr	hdr;
	__le64				tag;
};

struct kefa_longcts_msgrtm_hdr {
	struct kefa_base_hdr	base;
	__le32			msg_id;
	__le64			msg_length;
	__le32			send_id;
	__le32			credit_request;
};

struct kefa_longcts_tagrtm_hdr {
	struct kefa_longcts_msgrtm_hdr	hdr;
	__le64				tag;
};

struct kefa_longread_msgrtm_hdr {
	struct kefa_base_hdr	base;
	__le32			msg_id;
	__le64			msg_length;
	__le32			send_id;
	__le32			read_iov_count;
};

struct kefa_longread_tagrtm_hdr {
	struct kefa_longread_msgrtm_hdr	hdr;
	__le64				tag;
};

struct kefa_runtread_msgrtm_hdr {
	struct kefa_base_hdr	base;
	__le32			msg_id;
	__le64			msg_length;
	__le32			send_id;
	__le32			read_iov_count;
	__le64			seg_offset;
	__le64			runt_length;
};

struct kefa_runtread_tagrtm_hdr {
	struct kefa_runtread_msgrtm_hdr	hdr;
	__le64				tag;
};

struct kefa_dc_eager_msgrtm_hdr {
	struct kefa_base_hdr	base;
	__le32			msg_id;
	__le32			send_id;
	__le32			padding;
};

struct kefa_dc_eager_tagrtm_hdr {
	struct kefa_dc_eager_msgrtm_hdr	hdr;
	__le64				tag;
};

struct kefa_dc_medium_msgrtm_hdr {
	struct kefa_base_hdr	base;
	__le32			msg_id;
	__le32			send_id;
	__le32			padding;
	__le64			msg_length;
	__le64			seg_offset;
};

struct kefa_dc_medium_tagrtm_hdr {
	struct kefa_dc_medium_msgrtm_hdr	hdr;
	__le64					tag;
};

/* --- requests for writes, reads and atomic operations --- */

struct kefa_eager_rtw_hdr {
	struct kefa_base_hdr	base;
	__le32			rma_iov_count;
	struct kefa_rma_iov	rma_iov[];
};

struct kefa_dc_eager_rtw_hdr {
	struct kefa_base_hdr	base;
	__le32			rma_iov_count;
	__le32			send_id;
	__le32			padding;
	struct kefa_rma_iov	rma_iov[];
};

struct kefa_longcts_rtw_hdr {
	struct kefa_base_hdr	base;
	__le32			rma_iov_count;
	__le64			msg_length;
	__le32			send_id;
	__le32			credit_request;
	struct kefa_rma_iov	rma_iov[];
};

struct kefa_longread_rtw_hdr {
	struct kefa_base_hdr	base;
	__le32			rma_iov_count;
	__le64			msg_length;
	__le32			send_id;
	__le32			read_iov_count;
	struct kefa_rma_iov	rma_iov[];
};

struct kefa_rtr_hdr {
	struct kefa_base_hdr	base;
	__le32			rma_iov_count;
	__le64			msg_length;
	__le32			recv_id;
	__le32			recv_length;
	struct kefa_rma_iov	rma_iov[];
};

/* @id is recv_id in a FETCH_RTA or COMPARE_RTA, and send_id in a DC_WRITE_RTA. */
struct kefa_rta_hdr {
	struct kefa_base_hdr	base;
	__le32			msg_id;
	__le32			rma_iov_count;
	__le32			atomic_datatype;
	__le32			atomic_op;
	__le32			id;
	struct kefa_rma_iov	rma_iov[];
};

#define KEFA_WIRE_SIZE(name, size)	static_assert(sizeof(struct kefa_##name) == (size))

KEFA_WIRE_SIZE(base_hdr, 4);
KEFA_WIRE_SIZE(rma_iov, 24);
KEFA_WIRE_SIZE(raw_addr, KEFA_RAW_ADDR_BYTES);
KEFA_WIRE_SIZE(cts_hdr, 24);
KEFA_WIRE_SIZE(ctsdata_hdr, 24);
KEFA_WIRE_SIZE(ctsdata_opt_connid_hdr, 8);
KEFA_WIRE_SIZE(readrsp_hdr, 24);
KEFA_WIRE_SIZE(eor_hdr, 16);
KEFA_WIRE_SIZE(read_nack_hdr, 16);
KEFA_WIRE_SIZE(atomrsp_hdr, 24);
KEFA_WIRE_SIZE(receipt_hdr, 16);
KEFA_WIRE_SIZE(handshake_hdr, 8);
KEFA_WIRE_SIZE(handshake_opt_connid_hdr, 8);
KEFA_WIRE_SIZE(handshake_opt_host_id_hdr, 8);
KEFA_WIRE_SIZE(handshake_opt_device_version_hdr, 8);
KEFA_WIRE_SIZE(handshake_opt_user_recv_qp_hdr, 8);
KEFA_WIRE_SIZE(handshake_opt_hmem_cap_hdr, 8);
KEFA_WIRE_SIZE(req_opt_raw_addr_hdr, 4);
KEFA_WIRE_SIZE(req_opt_cq_data_hdr, 8);
KEFA_WIRE_SIZE(req_opt_connid_hdr, 4);
KEFA_WIRE_SIZE(eager_msgrtm_hdr, 8);
KEFA_WIRE_SIZE(eager_tagrtm_hdr, 16);
KEFA_WIRE_SIZE(medium_msgrtm_hdr, 24);
KEFA_WIRE_SIZE(medium_tagrtm_hdr, 32);
KEFA_WIRE_SIZE(longcts_msgrtm_hdr, 24);
KEFA_WIRE_SIZE(longcts_tagrtm_hdr, 32);
KEFA_WIRE_SIZE(longread_msgrtm_hdr, 24);
KEFA_WIRE_SIZE(longread_tagrtm_hdr, 32);
KEFA_WIRE_SIZE(runtread_msgrtm_hdr, 40);
KEFA_WIRE_SIZE(runtread_tagrtm_hdr, 48);
KEFA_WIRE_SIZE(dc_eager_msgrtm_hdr, 16);
KEFA_WIRE_SIZE(dc_eager_tagrtm_hdr, 24);
KEFA_WIRE_SIZE(dc_medium_msgrtm_hdr, 32);
KEFA_WIRE_SIZE(dc_medium_tagrtm_hdr, 40);
KEFA_WIRE_SIZE(eager_rtw_hdr, 8);
KEFA_WIRE_SIZE(dc_eager_rtw_hdr, 16);
KEFA_WIRE_SIZE(longcts_rtw_hdr, 24);
KEFA_WIRE_SIZE(longread_rtw_hdr, 24);
KEFA_WIRE_SIZE(rtr_hdr, 24);
KEFA_WIRE_SIZE(rta_hdr, 24);

#endif /* KEFA_RDM_WIRE_H */
