// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Compare prov/efa/rdm/wire.h with libfabric's own header. This is only compiled, with
 * libfabric's header included before: scripts/check/wire.sh.
 */
#include "kernel.h"
#include "../../prov/efa/rdm/wire.h"

/* Until 1.17 names had another prefix, and CTSDATA was DATA. */
#ifdef RXR_PROTOCOL_VERSION
#define THEIR(name)	struct rxr_##name
#define THEIRS(name)	RXR_##name
#define ctsdata_hdr_	data_hdr
#define CTSDATA_PKT_	DATA_PKT
#else
#define THEIR(name)	struct efa_rdm_##name
#define THEIRS(name)	EFA_RDM_##name
#define ctsdata_hdr_	ctsdata_hdr
#define CTSDATA_PKT_	CTSDATA_PKT
#endif
#define THEIR_(name)	THEIR(name)
#define THEIRS_(name)	THEIRS(name)

#define SAME(a, b)		static_assert((a) == (b), #a)
#define MEMBER(type, field)	(((type *)0)->field)
#define SIZE(ours, theirs)	SAME(sizeof(struct kefa_##ours), sizeof(THEIR_(theirs)))
#define FIELD(ours, field, theirs, path)						\
	static_assert(offsetof(struct kefa_##ours, field) ==				\
		      offsetof(THEIR_(theirs), path) &&					\
		      sizeof(MEMBER(struct kefa_##ours, field)) ==			\
		      sizeof(MEMBER(THEIR_(theirs), path)), #ours "." #field)
/* Fields with the same name in both; libfabric's may be in a nested structure. */
#define F(h, field)		FIELD(h##_hdr, field, h##_hdr, field)
#define F1(h, field)		FIELD(h##_hdr, field, h##_hdr, hdr.field)
#define F2(h, field)		FIELD(h##_hdr, field, h##_hdr, hdr.hdr.field)
#define TYPE(name)		SAME(KEFA_##name##_PKT, THEIRS(name##_PKT))
#define FLAG(name)		SAME(KEFA_##name, THEIRS(name))

SAME(KEFA_PROTOCOL_VERSION, THEIRS(PROTOCOL_VERSION));
SIZE(base_hdr, base_hdr);
FIELD(base_hdr, type, base_hdr, type);
FIELD(base_hdr, version, base_hdr, version);
FIELD(base_hdr, flags, base_hdr, flags);
SAME(sizeof(struct kefa_rma_iov), sizeof(struct efa_rma_iov));
SAME(offsetof(struct kefa_rma_iov, len), offsetof(struct efa_rma_iov, len));
SAME(offsetof(struct kefa_rma_iov, key), offsetof(struct efa_rma_iov, key));

TYPE(CTS);
SAME(KEFA_CTSDATA_PKT, THEIRS_(CTSDATA_PKT_));
TYPE(READRSP);
TYPE(EOR);
TYPE(ATOMRSP);
TYPE(HANDSHAKE);
TYPE(RECEIPT);
TYPE(EAGER_MSGRTM);
TYPE(EAGER_TAGRTM);
TYPE(MEDIUM_MSGRTM);
TYPE(MEDIUM_TAGRTM);
TYPE(LONGCTS_MSGRTM);
TYPE(LONGCTS_TAGRTM);
TYPE(EAGER_RTW);
TYPE(LONGCTS_RTW);
TYPE(SHORT_RTR);
TYPE(LONGCTS_RTR);
TYPE(WRITE_RTA);
TYPE(FETCH_RTA);
TYPE(COMPARE_RTA);
TYPE(LONGREAD_MSGRTM);
TYPE(LONGREAD_TAGRTM);
TYPE(LONGREAD_RTW);
TYPE(DC_EAGER_MSGRTM);
TYPE(DC_EAGER_TAGRTM);
TYPE(DC_MEDIUM_MSGRTM);
TYPE(DC_MEDIUM_TAGRTM);
TYPE(DC_LONGCTS_MSGRTM);
TYPE(DC_LONGCTS_TAGRTM);
TYPE(DC_EAGER_RTW);
TYPE(DC_LONGCTS_RTW);
TYPE(DC_WRITE_RTA);
TYPE(RUNTREAD_MSGRTM);
TYPE(RUNTREAD_TAGRTM);

FLAG(PKT_CONNID_HDR);
FLAG(REQ_OPT_RAW_ADDR_HDR);
FLAG(REQ_OPT_CQ_DATA_HDR);
FLAG(REQ_MSG);
FLAG(REQ_TAGGED);
FLAG(REQ_RMA);
FLAG(REQ_ATOMIC);
FLAG(CTS_READ_REQ);
SAME(KEFA_FEATURE_RDMA_READ, THEIRS(EXTRA_FEATURE_RDMA_READ));
SAME(KEFA_FEATURE_DELIVERY_COMPLETE, THEIRS(EXTRA_FEATURE_DELIVERY_COMPLETE));
SAME(KEFA_REQUEST_CONSTANT_HEADER_LENGTH, THEIRS(EXTRA_REQUEST_CONSTANT_HEADER_LENGTH));
SAME(KEFA_REQUEST_CONNID_HEADER, THEIRS(EXTRA_REQUEST_CONNID_HEADER));
SAME(KEFA_FEATURE_RUNT, THEIRS(EXTRA_FEATURE_RUNT));

SIZE(cts_hdr, cts_hdr);
F(cts, connid);
F(cts, send_id);
F(cts, recv_id);
F(cts, recv_length);
SIZE(ctsdata_hdr, ctsdata_hdr_);
FIELD(ctsdata_hdr, recv_id, ctsdata_hdr_, recv_id);
FIELD(ctsdata_hdr, seg_length, ctsdata_hdr_, seg_length);
FIELD(ctsdata_hdr, seg_offset, ctsdata_hdr_, seg_offset);
SAME(sizeof(struct kefa_ctsdata_hdr), offsetof(THEIR_(ctsdata_hdr_), connid_hdr));
#define THEIR_CONNID	(*MEMBER(THEIR_(ctsdata_hdr_), connid_hdr))
SAME(sizeof(struct kefa_ctsdata_opt_connid_hdr), sizeof(THEIR_CONNID));
SIZE(readrsp_hdr, readrsp_hdr);
F(readrsp, connid);
F(readrsp, recv_id);
F(readrsp, send_id);
F(readrsp, seg_length);
SIZE(eor_hdr, eor_hdr);
F(eor, send_id);
F(eor, recv_id);
F(eor, connid);
SIZE(atomrsp_hdr, atomrsp_hdr);
F(atomrsp, connid);
F(atomrsp, recv_id);
F(atomrsp, seg_length);
SIZE(receipt_hdr, receipt_hdr);
F(receipt, tx_id);
F(receipt, msg_id);
F(receipt, connid);
SIZE(handshake_hdr, handshake_hdr);
F(handshake, nextra_p3);
F(handshake, extra_info[0]);
SIZE(handshake_opt_connid_hdr, handshake_opt_connid_hdr);
F(handshake_opt_connid, connid);

SIZE(req_opt_raw_addr_hdr, req_opt_raw_addr_hdr);
F(req_opt_raw_addr, addr_len);
F(req_opt_raw_addr, raw_addr[0]);
SIZE(req_opt_cq_data_hdr, req_opt_cq_data_hdr);
SIZE(req_opt_connid_hdr, req_opt_connid_hdr);

SIZE(eager_msgrtm_hdr, eager_msgrtm_hdr);
SIZE(eager_tagrtm_hdr, eager_tagrtm_hdr);
F(eager_tagrtm, tag);
F1(eager_msgrtm, msg_id);
SIZE(medium_msgrtm_hdr, medium_msgrtm_hdr);
SIZE(medium_tagrtm_hdr, medium_tagrtm_hdr);
F(medium_tagrtm, tag);
F2(medium_msgrtm, msg_id);
F1(medium_msgrtm, msg_length);
F1(medium_msgrtm, seg_offset);
SIZE(longcts_msgrtm_hdr, longcts_msgrtm_hdr);
SIZE(longcts_tagrtm_hdr, longcts_tagrtm_hdr);
F(longcts_tagrtm, tag);
F2(longcts_msgrtm, msg_id);
F1(longcts_msgrtm, msg_length);
F1(longcts_msgrtm, send_id);
F1(longcts_msgrtm, credit_request);
SIZE(longread_msgrtm_hdr, longread_msgrtm_hdr);
SIZE(longread_tagrtm_hdr, longread_tagrtm_hdr);
F(longread_tagrtm, tag);
F2(longread_msgrtm, msg_id);
F1(longread_msgrtm, msg_length);
F1(longread_msgrtm, send_id);
F1(longread_msgrtm, read_iov_count);
SIZE(runtread_msgrtm_hdr, runtread_msgrtm_hdr);
SIZE(runtread_tagrtm_hdr, runtread_tagrtm_hdr);
F(runtread_tagrtm, tag);
F2(runtread_msgrtm, msg_id);
F1(runtread_msgrtm, msg_length);
F1(runtread_msgrtm, send_id);
F1(runtread_msgrtm, read_iov_count);
F1(runtread_msgrtm, seg_offset);
F1(runtread_msgrtm, runt_length);
SIZE(dc_eager_msgrtm_hdr, dc_eager_msgrtm_hdr);
SIZE(dc_eager_tagrtm_hdr, dc_eager_tagrtm_hdr);
F(dc_eager_tagrtm, tag);
F1(dc_eager_msgrtm, msg_id);
F1(dc_eager_msgrtm, send_id);
SIZE(dc_medium_msgrtm_hdr, dc_medium_msgrtm_hdr);
SIZE(dc_medium_tagrtm_hdr, dc_medium_tagrtm_hdr);
F(dc_medium_tagrtm, tag);
F2(dc_medium_msgrtm, msg_id);
F1(dc_medium_msgrtm, send_id);
F1(dc_medium_msgrtm, msg_length);
F1(dc_medium_msgrtm, seg_offset);
/* Packets with delivery complete use the header of those without it here. */
SIZE(longcts_msgrtm_hdr, dc_longcts_msgrtm_hdr);
SIZE(longcts_tagrtm_hdr, dc_longcts_tagrtm_hdr);
FIELD(longcts_msgrtm_hdr, send_id, dc_longcts_msgrtm_hdr, hdr.send_id);
SIZE(longcts_rtw_hdr, dc_longcts_rtw_hdr);
FIELD(longcts_rtw_hdr, send_id, dc_longcts_rtw_hdr, send_id);

SIZE(eager_rtw_hdr, eager_rtw_hdr);
F(eager_rtw, rma_iov_count);
F(eager_rtw, rma_iov[0]);
SIZE(dc_eager_rtw_hdr, dc_eager_rtw_hdr);
F(dc_eager_rtw, rma_iov_count);
F(dc_eager_rtw, send_id);
F(dc_eager_rtw, rma_iov[0]);
SIZE(longcts_rtw_hdr, longcts_rtw_hdr);
F(longcts_rtw, rma_iov_count);
F(longcts_rtw, msg_length);
F(longcts_rtw, send_id);
F(longcts_rtw, credit_request);
F(longcts_rtw, rma_iov[0]);
SIZE(longread_rtw_hdr, longread_rtw_hdr);
F(longread_rtw, rma_iov_count);
F(longread_rtw, msg_length);
F(longread_rtw, send_id);
F(longread_rtw, read_iov_count);
F(longread_rtw, rma_iov[0]);
SIZE(rtr_hdr, rtr_hdr);
F(rtr, rma_iov_count);
F(rtr, msg_length);
F(rtr, recv_id);
F(rtr, recv_length);
F(rtr, rma_iov[0]);
SIZE(rta_hdr, rta_hdr);
F(rta, msg_id);
F(rta, rma_iov_count);
F(rta, atomic_datatype);
F(rta, atomic_op);
FIELD(rta_hdr, id, rta_hdr, recv_id);
FIELD(rta_hdr, id, rta_hdr, send_id);
F(rta, rma_iov[0]);

#ifdef RXR_PROTOCOL_VERSION
SAME(sizeof(struct kefa_raw_addr), sizeof(struct efa_ep_addr));
SAME(offsetof(struct kefa_raw_addr, qpn), offsetof(struct efa_ep_addr, qpn));
SAME(offsetof(struct kefa_raw_addr, qkey), offsetof(struct efa_ep_addr, qkey));
SAME(KEFA_RAW_ADDR_LEN, RXR_REQ_OPT_RAW_ADDR_HDR_SIZE - sizeof(u32));
#else
TYPE(READ_NACK);
FLAG(REQ_READ_NACK);
FLAG(HANDSHAKE_HOST_ID_HDR);
FLAG(HANDSHAKE_DEVICE_VERSION_HDR);
FLAG(HANDSHAKE_USER_RECV_QP_HDR);
SAME(KEFA_FEATURE_RDMA_WRITE, THEIRS(EXTRA_FEATURE_RDMA_WRITE));
SAME(KEFA_FEATURE_READ_NACK, THEIRS(EXTRA_FEATURE_READ_NACK));
SAME(KEFA_FEATURE_REQUEST_USER_RECV_QP, THEIRS(EXTRA_FEATURE_REQUEST_USER_RECV_QP));
SAME(KEFA_FEATURE_UNSOLICITED_WRITE_RECV, THEIRS(EXTRA_FEATURE_UNSOLICITED_WRITE_RECV));
SIZE(read_nack_hdr, read_nack_hdr);
F(read_nack, send_id);
F(read_nack, recv_id);
F(read_nack, connid);
SIZE(handshake_opt_host_id_hdr, handshake_opt_host_id_hdr);
SIZE(handshake_opt_device_version_hdr, handshake_opt_device_version_hdr);
F(handshake_opt_device_version, device_version);
SIZE(handshake_opt_user_recv_qp_hdr, handshake_opt_user_recv_qp_hdr);
F(handshake_opt_user_recv_qp, qpn);
F(handshake_opt_user_recv_qp, qkey);
#endif

#ifdef EFA_RDM_HANDSHAKE_HMEM_P2P_HDR
FLAG(HANDSHAKE_HMEM_P2P_HDR);
SIZE(handshake_opt_hmem_cap_hdr, handshake_opt_hmem_cap_hdr);
F(handshake_opt_hmem_cap, p2p_supported);
#endif
