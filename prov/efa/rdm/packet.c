// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The types of packets, a row each. A function that treats types differently asks the
 * row, or is called by it: there is no switch over types anywhere.
 */
#include <linux/kernel.h>
#include "packet.h"

#define KEFA_FIELD(hdr, theirs, ours) {					\
	.at		= offsetof(struct kefa_##hdr, theirs),		\
	.size		= sizeof(((struct kefa_##hdr *)0)->theirs),	\
	.host_at	= offsetof(struct kefa_pkt, ours),		\
	.host_size	= sizeof(((struct kefa_pkt *)0)->ours),		\
}

static_assert(sizeof(struct kefa_pkt) < 256);

static const struct kefa_field kefa_cts_fields[] = {
	KEFA_FIELD(cts_hdr, connid, connid),
	KEFA_FIELD(cts_hdr, send_id, send_id),
	KEFA_FIELD(cts_hdr, recv_id, recv_id),
	KEFA_FIELD(cts_hdr, recv_length, recv_length),
};

static const struct kefa_field kefa_ctsdata_fields[] = {
	KEFA_FIELD(ctsdata_hdr, recv_id, recv_id),
	KEFA_FIELD(ctsdata_hdr, seg_length, seg_length),
	KEFA_FIELD(ctsdata_hdr, seg_offset, seg_offset),
};

static const struct kefa_field kefa_readrsp_fields[] = {
	KEFA_FIELD(readrsp_hdr, connid, connid),
	KEFA_FIELD(readrsp_hdr, recv_id, recv_id),
	KEFA_FIELD(readrsp_hdr, send_id, send_id),
	KEFA_FIELD(readrsp_hdr, seg_length, seg_length),
};

static const struct kefa_field kefa_eor_fields[] = {
	KEFA_FIELD(eor_hdr, send_id, send_id),
	KEFA_FIELD(eor_hdr, recv_id, recv_id),
	KEFA_FIELD(eor_hdr, connid, connid),
};

static const struct kefa_field kefa_read_nack_fields[] = {
	KEFA_FIELD(read_nack_hdr, send_id, send_id),
	KEFA_FIELD(read_nack_hdr, recv_id, recv_id),
	KEFA_FIELD(read_nack_hdr, connid, connid),
};

static const struct kefa_field kefa_atomrsp_fields[] = {
	KEFA_FIELD(atomrsp_hdr, connid, connid),
	KEFA_FIELD(atomrsp_hdr, recv_id, recv_id),
	KEFA_FIELD(atomrsp_hdr, seg_length, seg_length),
};

static const struct kefa_field kefa_receipt_fields[] = {
	KEFA_FIELD(receipt_hdr, tx_id, send_id),
	KEFA_FIELD(receipt_hdr, msg_id, msg_id),
	KEFA_FIELD(receipt_hdr, connid, connid),
};

/* What follows is of variable number: parse.c and build.c know it. */
static const struct kefa_field kefa_handshake_fields[] = {
	KEFA_FIELD(handshake_hdr, nextra_p3, shake.nextra_p3),
};

static const struct kefa_field kefa_eager_rtm_fields[] = {
	KEFA_FIELD(eager_msgrtm_hdr, msg_id, msg_id),
};

static const struct kefa_field kefa_medium_rtm_fields[] = {
	KEFA_FIELD(medium_msgrtm_hdr, msg_id, msg_id),
	KEFA_FIELD(medium_msgrtm_hdr, msg_length, msg_length),
	KEFA_FIELD(medium_msgrtm_hdr, seg_offset, seg_offset),
};

static const struct kefa_field kefa_longcts_rtm_fields[] = {
	KEFA_FIELD(longcts_msgrtm_hdr, msg_id, msg_id),
	KEFA_FIELD(longcts_msgrtm_hdr, msg_length, msg_length),
	KEFA_FIELD(longcts_msgrtm_hdr, send_id, send_id),
	KEFA_FIELD(longcts_msgrtm_hdr, credit_request, credit_request),
};

static const struct kefa_field kefa_longread_rtm_fields[] = {
	KEFA_FIELD(longread_msgrtm_hdr, msg_id, msg_id),
	KEFA_FIELD(longread_msgrtm_hdr, msg_length, msg_length),
	KEFA_FIELD(longread_msgrtm_hdr, send_id, send_id),
	KEFA_FIELD(longread_msgrtm_hdr, read_iov_count, read_iov_count),
};

static const struct kefa_field kefa_runtread_rtm_fields[] = {
	KEFA_FIELD(runtread_msgrtm_hdr, msg_id, msg_id),
	KEFA_FIELD(runtread_msgrtm_hdr, msg_length, msg_length),
	KEFA_FIELD(runtread_msgrtm_hdr, send_id, send_id),
	KEFA_FIELD(runtread_msgrtm_hdr, read_iov_count, read_iov_count),
	KEFA_FIELD(runtread_msgrtm_hdr, seg_offset, seg_offset),
	KEFA_FIELD(runtread_msgrtm_hdr, runt_length, runt_length),
};

static const struct kefa_field kefa_dc_eager_rtm_fields[] = {
	KEFA_FIELD(dc_eager_msgrtm_hdr, msg_id, msg_id),
	KEFA_FIELD(dc_eager_msgrtm_hdr, send_id, send_id),
};

static const struct kefa_field kefa_dc_medium_rtm_fields[] = {
	KEFA_FIELD(dc_medium_msgrtm_hdr, msg_id, msg_id),
	KEFA_FIELD(dc_medium_msgrtm_hdr, send_id, send_id),
	KEFA_FIELD(dc_medium_msgrtm_hdr, msg_length, msg_length),
	KEFA_FIELD(dc_medium_msgrtm_hdr, seg_offset, seg_offset),
};

static const struct kefa_field kefa_eager_rtw_fields[] = {
	KEFA_FIELD(eager_rtw_hdr, rma_iov_count, rma_iov_count),
};

static const struct kefa_field kefa_dc_eager_rtw_fields[] = {
	KEFA_FIELD(dc_eager_rtw_hdr, rma_iov_count, rma_iov_count),
	KEFA_FIELD(dc_eager_rtw_hdr, send_id, send_id),
};

static const struct kefa_field kefa_longcts_rtw_fields[] = {
	KEFA_FIELD(longcts_rtw_hdr, rma_iov_count, rma_iov_count),
	KEFA_FIELD(longcts_rtw_hdr, msg_length, msg_length),
	KEFA_FIELD(longcts_rtw_hdr, send_id, send_id),
	KEFA_FIELD(longcts_rtw_hdr, credit_request, credit_request),
};

static const struct kefa_field kefa_longread_rtw_fields[] = {
	KEFA_FIELD(longread_rtw_hdr, rma_iov_count, rma_iov_count),
	KEFA_FIELD(longread_rtw_hdr, msg_length, msg_length),
	KEFA_FIELD(longread_rtw_hdr, send_id, send_id),
	KEFA_FIELD(longread_rtw_hdr, read_iov_count, read_iov_count),
};

static const struct kefa_field kefa_rtr_fields[] = {
	KEFA_FIELD(rtr_hdr, rma_iov_count, rma_iov_count),
	KEFA_FIELD(rtr_hdr, msg_length, msg_length),
	KEFA_FIELD(rtr_hdr, recv_id, recv_id),
	KEFA_FIELD(rtr_hdr, recv_length, recv_length),
};

#define KEFA_RTA_FIELDS							\
	KEFA_FIELD(rta_hdr, msg_id, msg_id),				\
	KEFA_FIELD(rta_hdr, rma_iov_count, rma_iov_count),		\
	KEFA_FIELD(rta_hdr, atomic_datatype, atomic_datatype),		\
	KEFA_FIELD(rta_hdr, atomic_op, atomic_op)

static const struct kefa_field kefa_write_rta_fields[] = {
	KEFA_RTA_FIELDS,
};

static const struct kefa_field kefa_fetch_rta_fields[] = {
	KEFA_RTA_FIELDS,
	KEFA_FIELD(rta_hdr, id, recv_id),
};

static const struct kefa_field kefa_dc_write_rta_fields[] = {
	KEFA_RTA_FIELDS,
	KEFA_FIELD(rta_hdr, id, send_id),
};

/* Features by which more types may be sent. */
#define KEFA_DC		KEFA_FEATURE_DELIVERY_COMPLETE
#define KEFA_RD		KEFA_FEATURE_RDMA_READ
#define KEFA_RUNT_RD	(KEFA_FEATURE_RUNT | KEFA_FEATURE_RDMA_READ)
#define KEFA_NACK	KEFA_FEATURE_READ_NACK

#define KEFA_OPT_FLAGS							\
	(KEFA_PKT_CONNID_HDR | KEFA_REQ_OPT_RAW_ADDR_HDR |		\
	 KEFA_REQ_OPT_CQ_DATA_HDR | KEFA_REQ_MSG | KEFA_REQ_TAGGED |	\
	 KEFA_REQ_RMA | KEFA_REQ_ATOMIC)

#define KEFA_ROW(_type, _head, _list, _rule, _needs, _flags, _may, _hints)	\
	[KEFA_##_type##_PKT] = {					\
		.name		= #_type,				\
		.type		= KEFA_##_type##_PKT,			\
		.hdr		= sizeof(struct kefa_##_head##_hdr),	\
		.fields		= kefa_##_list##_fields,		\
		.nfields	= ARRAY_SIZE(kefa_##_list##_fields),	\
		.data		= KEFA_DATA_##_rule,			\
		.needs		= (_needs),				\
		.flags		= (_flags),				\
		.may		= (_may),				\
		.hints		= (_hints),				\
	}

#define KEFA_ANSWER(_type, _head, _rule, _needs, _flags, _may)		\
	KEFA_ROW(_type, _head, _head, _rule, _needs, _flags,		\
		 KEFA_PKT_CONNID_HDR | (_may), 0)

/* A message's two types, of which the tagged one has the tag at its end. */
#define KEFA_RTM(_form, _name, _rule, _needs, _flags, _may)		\
	KEFA_ROW(_form##_MSGRTM, _name##_msgrtm, _name##_rtm, _rule, _needs,	\
		 KEFA_ROW_REQ | KEFA_ROW_ORDERED | (_flags),		\
		 KEFA_OPT_FLAGS | (_may), KEFA_REQ_MSG),		\
	KEFA_ROW(_form##_TAGRTM, _name##_tagrtm, _name##_rtm, _rule, _needs,	\
		 KEFA_ROW_REQ | KEFA_ROW_ORDERED | KEFA_ROW_TAGGED | (_flags),	\
		 KEFA_OPT_FLAGS | (_may), KEFA_REQ_MSG | KEFA_REQ_TAGGED)

#define KEFA_RMA(_type, _head, _rule, _needs, _flags)			\
	KEFA_ROW(_type, _head, _head, _rule, _needs,			\
		 KEFA_ROW_REQ | KEFA_ROW_RMA | (_flags), KEFA_OPT_FLAGS, 0)

#define KEFA_RTA(_type, _list, _rule, _needs, _flags)			\
	KEFA_ROW(_type, rta, _list, _rule, _needs,			\
		 KEFA_ROW_REQ | KEFA_ROW_RMA | KEFA_ROW_ORDERED | (_flags),	\
		 KEFA_OPT_FLAGS, KEFA_REQ_ATOMIC)

/* The long-CTS forms of delivery complete have the fields of the plain ones. */
#define kefa_dc_longcts_rtm_fields	kefa_longcts_rtm_fields
#define kefa_dc_longcts_msgrtm_hdr	kefa_longcts_msgrtm_hdr
#define kefa_dc_longcts_tagrtm_hdr	kefa_longcts_tagrtm_hdr

/* By type; one that isn't in the table has a header of no bytes. */
const struct kefa_pkt_row kefa_pkt_rows[KEFA_PKT_TYPES] = {
	KEFA_ANSWER(CTS, cts, NONE, 0, KEFA_ROW_CONTROL | KEFA_ROW_WINDOW,
		    KEFA_CTS_READ_REQ),
	KEFA_ANSWER(CTSDATA, ctsdata, SEGMENT, 0, KEFA_ROW_TAIL_CONNID, 0),
	KEFA_ANSWER(READRSP, readrsp, ANSWER, 0, 0, 0),
	KEFA_ANSWER(EOR, eor, NONE, 0, KEFA_ROW_CONTROL, 0),
	KEFA_ANSWER(ATOMRSP, atomrsp, ANSWER, 0, 0, 0),
	KEFA_ANSWER(HANDSHAKE, handshake, TAIL, 0, KEFA_ROW_CONTROL | KEFA_ROW_HANDSHAKE,
		    0xffff),
	KEFA_ANSWER(RECEIPT, receipt, NONE, 0, KEFA_ROW_CONTROL, 0),
	KEFA_ANSWER(READ_NACK, read_nack, NONE, KEFA_NACK, KEFA_ROW_CONTROL, 0),

	KEFA_RTM(EAGER, eager, ALL, 0, 0, 0),
	KEFA_RTM(MEDIUM, medium, PART, 0, KEFA_ROW_MULTI, 0),
	KEFA_RTM(LONGCTS, longcts, FIRST, 0, 0, KEFA_REQ_READ_NACK),
	KEFA_RMA(EAGER_RTW, eager_rtw, RMA, 0, KEFA_ROW_TRIGGER),
	KEFA_RMA(LONGCTS_RTW, longcts_rtw, FIRST, 0, KEFA_ROW_TOTAL),
	KEFA_RMA(SHORT_RTR, rtr, NONE, 0, KEFA_ROW_TOTAL),
	KEFA_RMA(LONGCTS_RTR, rtr, NONE, 0, KEFA_ROW_TOTAL | KEFA_ROW_WINDOW),
	KEFA_RTA(WRITE_RTA, write_rta, OPERAND, 0, 0),
	KEFA_RTA(FETCH_RTA, fetch_rta, OPERAND, 0, 0),
	KEFA_RTA(COMPARE_RTA, fetch_rta, COMPARE, 0, 0),

	KEFA_RTM(LONGREAD, longread, NONE, KEFA_RD, KEFA_ROW_READ, 0),
	KEFA_RMA(LONGREAD_RTW, longread_rtw, NONE, KEFA_RD, KEFA_ROW_READ | KEFA_ROW_TOTAL),
	KEFA_RTM(DC_EAGER, dc_eager, ALL, KEFA_DC, KEFA_ROW_DC, 0),
	KEFA_RTM(DC_MEDIUM, dc_medium, PART, KEFA_DC, KEFA_ROW_DC | KEFA_ROW_MULTI, 0),
	KEFA_RTM(DC_LONGCTS, dc_longcts, FIRST, KEFA_DC, KEFA_ROW_DC, KEFA_REQ_READ_NACK),
	KEFA_RMA(DC_EAGER_RTW, dc_eager_rtw, RMA, KEFA_DC, KEFA_ROW_DC),
	KEFA_RMA(DC_LONGCTS_RTW, longcts_rtw, FIRST, KEFA_DC, KEFA_ROW_DC | KEFA_ROW_TOTAL),
	KEFA_RTA(DC_WRITE_RTA, dc_write_rta, OPERAND, KEFA_DC, KEFA_ROW_DC),
	KEFA_RTM(RUNTREAD, runtread, RUNT, KEFA_RUNT_RD, KEFA_ROW_READ | KEFA_ROW_MULTI, 0),
};

static const char *const kefa_bad_texts[KEFA_BAD_REASONS] = {
	[KEFA_OK]		= "ok",
	[KEFA_BAD_SHORT]	= "short",
	[KEFA_BAD_VERSION]	= "version",
	[KEFA_BAD_TYPE]		= "type",
	[KEFA_BAD_FLAGS]	= "flags",
	[KEFA_BAD_ADDR]		= "addr",
	[KEFA_BAD_COUNT]	= "count",
	[KEFA_BAD_RANGE]	= "range",
	[KEFA_BAD_TOTAL]	= "total",
	[KEFA_BAD_LENGTH]	= "length",
	[KEFA_BAD_OFFSET]	= "offset",
	[KEFA_BAD_FEATURES]	= "features",
};

/**
 * kefa_bad_text() - a reason's name, for debugfs and traces
 * @bad: the reason
 *
 * Context: Any.
 * Return: a word.
 */
const char *kefa_bad_text(enum kefa_bad bad)
{
	return kefa_bad_texts[bad];
}
