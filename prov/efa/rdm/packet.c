// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The table of packet types. Functions that depend on the type use the fields of its row, or are
 * called through the row; there is no switch over types.
 */
#include <linux/kernel.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "packet.h"

static_assert(sizeof(struct kefa_pkt) < 256);

/* Read a number of a header, which may be unaligned. */
static __always_inline u64 kefa_num_get(const void *at, size_t size)
{
	__le64 le64;
	__le32 le32;

	if (size == sizeof(le64)) {
		memcpy(&le64, at, sizeof(le64));
		return le64_to_cpu(le64);
	}
	memcpy(&le32, at, sizeof(le32));
	return le32_to_cpu(le32);
}

/* Write a number of a header. Return: false if it doesn't fit. */
static __always_inline bool kefa_num_put(void *at, size_t size, u64 value)
{
	const __le64 le64 = cpu_to_le64(value);
	const __le32 le32 = cpu_to_le32(value);

	if (size == sizeof(le64)) {
		memcpy(at, &le64, sizeof(le64));
		return true;
	}
	memcpy(at, &le32, sizeof(le32));
	return value <= U32_MAX;
}

/*
 * The fields of the fixed headers. Each list F(field of the header, field of struct kefa_pkt) is
 * expanded twice: for a function that reads the header @h into @pkt, and for one that writes it. No
 * other code knows the headers' fields.
 */
#define KEFA_LOAD(_theirs, _ours)	(pkt->_ours = kefa_num_get(&h->_theirs, sizeof(h->_theirs)))
#define KEFA_STORE(_theirs, _ours)	\
	(fits &= kefa_num_put(&h->_theirs, sizeof(h->_theirs), pkt->_ours))

#define KEFA_HEADER(_name, _head, _fields)				\
	static bool kefa_##_name##_load(const void *hdr, struct kefa_pkt *pkt)	\
	{								\
		const struct kefa_##_head##_hdr *h = hdr;		\
									\
		_fields(KEFA_LOAD);					\
		return true;						\
	}								\
	static bool kefa_##_name##_store(void *hdr, const struct kefa_pkt *pkt)	\
	{								\
		struct kefa_##_head##_hdr *h = hdr;			\
		bool fits = true;					\
									\
		_fields(KEFA_STORE);					\
		return fits;						\
	}

#define KEFA_CTS_FIELDS(F)	\
	(F(connid, connid), F(send_id, send_id), F(recv_id, recv_id),	\
	 F(recv_length, recv_length))
KEFA_HEADER(cts, cts, KEFA_CTS_FIELDS);

#define KEFA_CTSDATA_FIELDS(F)	\
	(F(recv_id, recv_id), F(seg_length, seg_length), F(seg_offset, seg_offset))
KEFA_HEADER(ctsdata, ctsdata, KEFA_CTSDATA_FIELDS);

#define KEFA_READRSP_FIELDS(F)	\
	(F(connid, connid), F(recv_id, recv_id), F(send_id, send_id),	\
	 F(seg_length, seg_length))
KEFA_HEADER(readrsp, readrsp, KEFA_READRSP_FIELDS);

#define KEFA_EOR_FIELDS(F)	\
	(F(send_id, send_id), F(recv_id, recv_id), F(connid, connid))
KEFA_HEADER(eor, eor, KEFA_EOR_FIELDS);

#define KEFA_READ_NACK_FIELDS(F)	\
	(F(send_id, send_id), F(recv_id, recv_id), F(connid, connid))
KEFA_HEADER(read_nack, read_nack, KEFA_READ_NACK_FIELDS);

#define KEFA_ATOMRSP_FIELDS(F)	\
	(F(reserved, reserved), F(connid, connid), F(recv_id, recv_id), F(seg_length, seg_length))
KEFA_HEADER(atomrsp, atomrsp, KEFA_ATOMRSP_FIELDS);

#define KEFA_RECEIPT_FIELDS(F)	\
	(F(tx_id, send_id), F(msg_id, msg_id), F(connid, connid))
KEFA_HEADER(receipt, receipt, KEFA_RECEIPT_FIELDS);

/* The parts that follow are optional or of variable number: see parse.c and build.c. */
#define KEFA_HANDSHAKE_FIELDS(F)	(F(nextra_p3, shake.nextra_p3))
KEFA_HEADER(handshake, handshake, KEFA_HANDSHAKE_FIELDS);

#define KEFA_EAGER_RTM_FIELDS(F)	(F(msg_id, msg_id))
KEFA_HEADER(eager_rtm, eager_msgrtm, KEFA_EAGER_RTM_FIELDS);

#define KEFA_MEDIUM_RTM_FIELDS(F)	\
	(F(msg_id, msg_id), F(msg_length, msg_length), F(seg_offset, seg_offset))
KEFA_HEADER(medium_rtm, medium_msgrtm, KEFA_MEDIUM_RTM_FIELDS);

#define KEFA_LONGCTS_RTM_FIELDS(F)	\
	(F(msg_id, msg_id), F(msg_length, msg_length), F(send_id, send_id),	\
	 F(credit_request, credit_request))
KEFA_HEADER(longcts_rtm, longcts_msgrtm, KEFA_LONGCTS_RTM_FIELDS);

#define KEFA_LONGREAD_RTM_FIELDS(F)	\
	(F(msg_id, msg_id), F(msg_length, msg_length), F(send_id, send_id),	\
	 F(read_iov_count, read_iov_count))
KEFA_HEADER(longread_rtm, longread_msgrtm, KEFA_LONGREAD_RTM_FIELDS);

#define KEFA_RUNTREAD_RTM_FIELDS(F)	\
	(F(msg_id, msg_id), F(msg_length, msg_length), F(send_id, send_id),	\
	 F(read_iov_count, read_iov_count), F(seg_offset, seg_offset),	\
	 F(runt_length, runt_length))
KEFA_HEADER(runtread_rtm, runtread_msgrtm, KEFA_RUNTREAD_RTM_FIELDS);

#define KEFA_DC_EAGER_RTM_FIELDS(F)	\
	(F(padding, reserved), F(msg_id, msg_id), F(send_id, send_id))
KEFA_HEADER(dc_eager_rtm, dc_eager_msgrtm, KEFA_DC_EAGER_RTM_FIELDS);

#define KEFA_DC_MEDIUM_RTM_FIELDS(F)	\
	(F(padding, reserved), F(msg_id, msg_id), F(send_id, send_id),	\
	 F(msg_length, msg_length),	\
	 F(seg_offset, seg_offset))
KEFA_HEADER(dc_medium_rtm, dc_medium_msgrtm, KEFA_DC_MEDIUM_RTM_FIELDS);

#define KEFA_EAGER_RTW_FIELDS(F)	(F(rma_iov_count, rma_iov_count))
KEFA_HEADER(eager_rtw, eager_rtw, KEFA_EAGER_RTW_FIELDS);

#define KEFA_DC_EAGER_RTW_FIELDS(F)	\
	(F(padding, reserved), F(rma_iov_count, rma_iov_count), F(send_id, send_id))
KEFA_HEADER(dc_eager_rtw, dc_eager_rtw, KEFA_DC_EAGER_RTW_FIELDS);

#define KEFA_LONGCTS_RTW_FIELDS(F)	\
	(F(rma_iov_count, rma_iov_count), F(msg_length, msg_length), F(send_id, send_id),	\
	 F(credit_request, credit_request))
KEFA_HEADER(longcts_rtw, longcts_rtw, KEFA_LONGCTS_RTW_FIELDS);

#define KEFA_LONGREAD_RTW_FIELDS(F)	\
	(F(rma_iov_count, rma_iov_count), F(msg_length, msg_length), F(send_id, send_id),	\
	 F(read_iov_count, read_iov_count))
KEFA_HEADER(longread_rtw, longread_rtw, KEFA_LONGREAD_RTW_FIELDS);

#define KEFA_RTR_FIELDS(F)	\
	(F(rma_iov_count, rma_iov_count), F(msg_length, msg_length), F(recv_id, recv_id),	\
	 F(recv_length, recv_length))
KEFA_HEADER(rtr, rtr, KEFA_RTR_FIELDS);

#define KEFA_RTA_FIELDS(F)	\
	(F(msg_id, msg_id), F(rma_iov_count, rma_iov_count),	\
	 F(atomic_datatype, atomic_datatype), F(atomic_op, atomic_op))

#define KEFA_WRITE_RTA_FIELDS(F)	(F(id, reserved), KEFA_RTA_FIELDS(F))
KEFA_HEADER(write_rta, rta, KEFA_WRITE_RTA_FIELDS);

#define KEFA_FETCH_RTA_FIELDS(F)	(KEFA_RTA_FIELDS(F), F(id, recv_id))
KEFA_HEADER(fetch_rta, rta, KEFA_FETCH_RTA_FIELDS);

#define KEFA_DC_WRITE_RTA_FIELDS(F)	(KEFA_RTA_FIELDS(F), F(id, send_id))
KEFA_HEADER(dc_write_rta, rta, KEFA_DC_WRITE_RTA_FIELDS);

/* Features that peers need for some types. */
#define KEFA_DC		KEFA_FEATURE_DELIVERY_COMPLETE
#define KEFA_RD		KEFA_FEATURE_RDMA_READ
#define KEFA_RUNT_RD	(KEFA_FEATURE_RUNT | KEFA_FEATURE_RDMA_READ)
#define KEFA_NACK	KEFA_FEATURE_READ_NACK

#define KEFA_OPT_FLAGS							\
	(KEFA_PKT_CONNID_HDR | KEFA_REQ_OPT_RAW_ADDR_HDR |		\
	 KEFA_REQ_OPT_CQ_DATA_HDR | KEFA_REQ_MSG | KEFA_REQ_TAGGED |	\
	 KEFA_REQ_RMA | KEFA_REQ_ATOMIC)

#define KEFA_ROW(_type, _head, _list, _rule, _ops, _needs, _flags, _may, _hints)	\
	[KEFA_##_type##_PKT] = {					\
		.name		= #_type,				\
		.type		= KEFA_##_type##_PKT,			\
		.hdr		= sizeof(struct kefa_##_head##_hdr),	\
		.load		= kefa_##_list##_load,			\
		.store		= kefa_##_list##_store,			\
		.data		= KEFA_DATA_##_rule,			\
		.ops		= (_ops),				\
		.needs		= (_needs),				\
		.flags		= (_flags),				\
		.may		= (_may),				\
		.hints		= (_hints),				\
	}

#define KEFA_ANSWER(_type, _head, _rule, _ops, _needs, _flags, _may)	\
	KEFA_ROW(_type, _head, _head, _rule, _ops, _needs, _flags,	\
		 KEFA_PKT_CONNID_HDR | (_may), 0)

/* The two types of a message. The tagged type's header has the tag at its end. */
#define KEFA_RTM(_form, _name, _rule, _ops, _needs, _flags, _may)	\
	KEFA_ROW(_form##_MSGRTM, _name##_msgrtm, _name##_rtm, _rule, _ops, _needs,	\
		 KEFA_ROW_REQ | KEFA_ROW_ORDERED | (_flags),		\
		 KEFA_OPT_FLAGS | (_may), KEFA_REQ_MSG),		\
	KEFA_ROW(_form##_TAGRTM, _name##_tagrtm, _name##_rtm, _rule, _ops, _needs,	\
		 KEFA_ROW_REQ | KEFA_ROW_ORDERED | KEFA_ROW_TAGGED | (_flags),	\
		 KEFA_OPT_FLAGS | (_may), KEFA_REQ_MSG | KEFA_REQ_TAGGED)

#define KEFA_RMA(_type, _head, _rule, _ops, _needs, _flags)		\
	KEFA_ROW(_type, _head, _head, _rule, _ops, _needs,		\
		 KEFA_ROW_REQ | KEFA_ROW_RMA | (_flags), KEFA_OPT_FLAGS, 0)

#define KEFA_RTA(_type, _list, _rule, _ops, _needs, _flags)		\
	KEFA_ROW(_type, rta, _list, _rule, _ops, _needs,		\
		 KEFA_ROW_REQ | KEFA_ROW_RMA | KEFA_ROW_ORDERED | (_flags),	\
		 KEFA_OPT_FLAGS, KEFA_REQ_ATOMIC)

/* The long-CTS types with delivery complete have the same fields as those without. */
#define kefa_dc_longcts_rtm_load	kefa_longcts_rtm_load
#define kefa_dc_longcts_rtm_store	kefa_longcts_rtm_store
#define kefa_dc_longcts_msgrtm_hdr	kefa_longcts_msgrtm_hdr
#define kefa_dc_longcts_tagrtm_hdr	kefa_longcts_tagrtm_hdr

/* Rows by type. A type that doesn't exist has a row with @hdr 0. */
const struct kefa_pkt_row kefa_pkt_rows[KEFA_PKT_TYPES] = {
	KEFA_ANSWER(CTS, cts, NONE, &kefa_cts_ops, 0, KEFA_ROW_CONTROL | KEFA_ROW_WINDOW,
		    KEFA_CTS_READ_REQ),
	KEFA_ANSWER(CTSDATA, ctsdata, SEGMENT, &kefa_ctsdata_ops, 0, KEFA_ROW_TAIL_CONNID, 0),
	KEFA_ANSWER(READRSP, readrsp, ANSWER, &kefa_readrsp_ops, 0, 0, 0),
	KEFA_ANSWER(EOR, eor, NONE, &kefa_eor_ops, 0, KEFA_ROW_CONTROL, 0),
	KEFA_ANSWER(ATOMRSP, atomrsp, ANSWER, &kefa_atomrsp_ops, 0, 0, 0),
	KEFA_ANSWER(HANDSHAKE, handshake, TAIL, &kefa_handshake_ops, 0,
		    KEFA_ROW_CONTROL | KEFA_ROW_HANDSHAKE, 0xffff),
	KEFA_ANSWER(RECEIPT, receipt, NONE, &kefa_receipt_ops, 0, KEFA_ROW_CONTROL, 0),
	KEFA_ANSWER(READ_NACK, read_nack, NONE, &kefa_read_nack_ops, KEFA_NACK,
		    KEFA_ROW_CONTROL, 0),

	KEFA_RTM(EAGER, eager, ALL, &kefa_rtm_ops, 0, 0, 0),
	KEFA_RTM(MEDIUM, medium, PART, &kefa_rtm_ops, 0, KEFA_ROW_MULTI, 0),
	KEFA_RTM(LONGCTS, longcts, FIRST, &kefa_rtm_ops, 0, 0, KEFA_REQ_READ_NACK),
	KEFA_RMA(EAGER_RTW, eager_rtw, RMA, &kefa_eager_rtw_ops, 0, KEFA_ROW_TRIGGER),
	KEFA_RMA(LONGCTS_RTW, longcts_rtw, SOME, &kefa_longcts_rtw_ops, 0, KEFA_ROW_TOTAL),
	KEFA_RMA(SHORT_RTR, rtr, NONE, &kefa_rtr_ops, 0, KEFA_ROW_TOTAL),
	KEFA_RMA(LONGCTS_RTR, rtr, NONE, &kefa_rtr_ops, 0, KEFA_ROW_TOTAL | KEFA_ROW_WINDOW),
	KEFA_RTA(WRITE_RTA, write_rta, OPERAND, &kefa_write_rta_ops, 0, 0),
	KEFA_RTA(FETCH_RTA, fetch_rta, OPERAND, &kefa_fetch_rta_ops, 0, 0),
	KEFA_RTA(COMPARE_RTA, fetch_rta, COMPARE, &kefa_fetch_rta_ops, 0, 0),

	KEFA_RTM(LONGREAD, longread, NONE, &kefa_rtm_ops, KEFA_RD, KEFA_ROW_READ, 0),
	KEFA_RMA(LONGREAD_RTW, longread_rtw, NONE, &kefa_longread_rtw_ops, KEFA_RD,
		 KEFA_ROW_READ | KEFA_ROW_TOTAL),
	KEFA_RTM(DC_EAGER, dc_eager, ALL, &kefa_rtm_ops, KEFA_DC, KEFA_ROW_DC, 0),
	KEFA_RTM(DC_MEDIUM, dc_medium, PART, &kefa_rtm_ops, KEFA_DC,
		 KEFA_ROW_DC | KEFA_ROW_MULTI, 0),
	KEFA_RTM(DC_LONGCTS, dc_longcts, FIRST, &kefa_rtm_ops, KEFA_DC, KEFA_ROW_DC,
		 KEFA_REQ_READ_NACK),
	KEFA_RMA(DC_EAGER_RTW, dc_eager_rtw, RMA, &kefa_eager_rtw_ops, KEFA_DC, KEFA_ROW_DC),
	KEFA_RMA(DC_LONGCTS_RTW, longcts_rtw, SOME, &kefa_longcts_rtw_ops, KEFA_DC,
		 KEFA_ROW_DC | KEFA_ROW_TOTAL),
	KEFA_RTA(DC_WRITE_RTA, dc_write_rta, OPERAND, &kefa_write_rta_ops, KEFA_DC, KEFA_ROW_DC),
	KEFA_RTM(RUNTREAD, runtread, RUNT, &kefa_rtm_ops, KEFA_RUNT_RD,
		 KEFA_ROW_READ | KEFA_ROW_MULTI, 0),
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
 * kefa_bad_text() - get the name of a reason, for debugfs and traces
 * @bad: the reason
 *
 * Context: Any.
 * Return: the name, a single word.
 */
const char *kefa_bad_text(enum kefa_bad bad)
{
	return kefa_bad_texts[bad];
}
