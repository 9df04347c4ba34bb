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

/* Read or write a number in a header. Return: false if a number to write doesn't fit. */
static __always_inline bool kefa_move(u8 *at, size_t size, void *host, size_t host_size,
				      bool store)
{
	__le32 le32;
	__le64 le64;
	u64 v;

	if (store) {
		v = host_size == 8 ? *(u64 *)host : *(u32 *)host;
		le32 = cpu_to_le32(v);
		le64 = cpu_to_le64(v);
		if (size == 8)
			memcpy(at, &le64, sizeof(le64));
		else
			memcpy(at, &le32, sizeof(le32));
		return size == 8 || v <= U32_MAX;
	}
	if (size == 8) {
		memcpy(&le64, at, sizeof(le64));
		v = le64_to_cpu(le64);
	} else {
		memcpy(&le32, at, sizeof(le32));
		v = le32_to_cpu(le32);
	}
	if (host_size == 8)
		*(u64 *)host = v;
	else
		*(u32 *)host = v;
	return true;
}

/*
 * Each distinct fixed header has a function, which either reads the header at @at into @pkt or,
 * with @store, writes it. No other code knows the header's fields. The compiler makes two functions
 * of it, with one or two instructions for each field. The result is false if the last number
 * doesn't fit, which is the only one that may be wider in @pkt than in the header.
 */
#define KEFA_MOVE(hdr, theirs, ours)						\
	kefa_move(at + offsetof(struct kefa_##hdr, theirs),			\
		  sizeof(((struct kefa_##hdr *)0)->theirs), &pkt->ours,		\
		  sizeof(pkt->ours), store)

/* Write zeros to a field that has no meaning. */
#define KEFA_PAD(hdr, theirs)							\
	(store ? memset(at + offsetof(struct kefa_##hdr, theirs), 0,		\
			sizeof(((struct kefa_##hdr *)0)->theirs)) : NULL)

#define KEFA_FIELDS(name)							\
	static bool kefa_##name##_load(const void *hdr, struct kefa_pkt *pkt)	\
	{									\
		return kefa_##name((u8 *)hdr, pkt, false);			\
	}									\
	static bool kefa_##name##_store(void *hdr, const struct kefa_pkt *pkt)	\
	{									\
		return kefa_##name(hdr, (struct kefa_pkt *)pkt, true);		\
	}

static __always_inline bool kefa_cts(u8 *at, struct kefa_pkt *pkt, bool store)
{
	KEFA_MOVE(cts_hdr, connid, connid);
	KEFA_MOVE(cts_hdr, send_id, send_id);
	KEFA_MOVE(cts_hdr, recv_id, recv_id);
	return KEFA_MOVE(cts_hdr, recv_length, recv_length);
}

KEFA_FIELDS(cts);

static __always_inline bool kefa_ctsdata(u8 *at, struct kefa_pkt *pkt, bool store)
{
	KEFA_MOVE(ctsdata_hdr, recv_id, recv_id);
	KEFA_MOVE(ctsdata_hdr, seg_length, seg_length);
	return KEFA_MOVE(ctsdata_hdr, seg_offset, seg_offset);
}

KEFA_FIELDS(ctsdata);

static __always_inline bool kefa_readrsp(u8 *at, struct kefa_pkt *pkt, bool store)
{
	KEFA_MOVE(readrsp_hdr, connid, connid);
	KEFA_MOVE(readrsp_hdr, recv_id, recv_id);
	KEFA_MOVE(readrsp_hdr, send_id, send_id);
	return KEFA_MOVE(readrsp_hdr, seg_length, seg_length);
}

KEFA_FIELDS(readrsp);

static __always_inline bool kefa_eor(u8 *at, struct kefa_pkt *pkt, bool store)
{
	KEFA_MOVE(eor_hdr, send_id, send_id);
	KEFA_MOVE(eor_hdr, recv_id, recv_id);
	return KEFA_MOVE(eor_hdr, connid, connid);
}

KEFA_FIELDS(eor);

static __always_inline bool kefa_read_nack(u8 *at, struct kefa_pkt *pkt, bool store)
{
	KEFA_MOVE(read_nack_hdr, send_id, send_id);
	KEFA_MOVE(read_nack_hdr, recv_id, recv_id);
	return KEFA_MOVE(read_nack_hdr, connid, connid);
}

KEFA_FIELDS(read_nack);

static __always_inline bool kefa_atomrsp(u8 *at, struct kefa_pkt *pkt, bool store)
{
	KEFA_PAD(atomrsp_hdr, reserved);
	KEFA_MOVE(atomrsp_hdr, connid, connid);
	KEFA_MOVE(atomrsp_hdr, recv_id, recv_id);
	return KEFA_MOVE(atomrsp_hdr, seg_length, seg_length);
}

KEFA_FIELDS(atomrsp);

static __always_inline bool kefa_receipt(u8 *at, struct kefa_pkt *pkt, bool store)
{
	KEFA_MOVE(receipt_hdr, tx_id, send_id);
	KEFA_MOVE(receipt_hdr, msg_id, msg_id);
	return KEFA_MOVE(receipt_hdr, connid, connid);
}

KEFA_FIELDS(receipt);

/* The parts that follow are optional or of variable number: see parse.c and build.c. */
static __always_inline bool kefa_handshake(u8 *at, struct kefa_pkt *pkt, bool store)
{
	return KEFA_MOVE(handshake_hdr, nextra_p3, shake.nextra_p3);
}

KEFA_FIELDS(handshake);

static __always_inline bool kefa_eager_rtm(u8 *at, struct kefa_pkt *pkt, bool store)
{
	return KEFA_MOVE(eager_msgrtm_hdr, msg_id, msg_id);
}

KEFA_FIELDS(eager_rtm);

static __always_inline bool kefa_medium_rtm(u8 *at, struct kefa_pkt *pkt, bool store)
{
	KEFA_MOVE(medium_msgrtm_hdr, msg_id, msg_id);
	KEFA_MOVE(medium_msgrtm_hdr, msg_length, msg_length);
	return KEFA_MOVE(medium_msgrtm_hdr, seg_offset, seg_offset);
}

KEFA_FIELDS(medium_rtm);

static __always_inline bool kefa_longcts_rtm(u8 *at, struct kefa_pkt *pkt, bool store)
{
	KEFA_MOVE(longcts_msgrtm_hdr, msg_id, msg_id);
	KEFA_MOVE(longcts_msgrtm_hdr, msg_length, msg_length);
	KEFA_MOVE(longcts_msgrtm_hdr, send_id, send_id);
	return KEFA_MOVE(longcts_msgrtm_hdr, credit_request, credit_request);
}

KEFA_FIELDS(longcts_rtm);

static __always_inline bool kefa_longread_rtm(u8 *at, struct kefa_pkt *pkt, bool store)
{
	KEFA_MOVE(longread_msgrtm_hdr, msg_id, msg_id);
	KEFA_MOVE(longread_msgrtm_hdr, msg_length, msg_length);
	KEFA_MOVE(longread_msgrtm_hdr, send_id, send_id);
	return KEFA_MOVE(longread_msgrtm_hdr, read_iov_count, read_iov_count);
}

KEFA_FIELDS(longread_rtm);

static __always_inline bool kefa_runtread_rtm(u8 *at, struct kefa_pkt *pkt, bool store)
{
	KEFA_MOVE(runtread_msgrtm_hdr, msg_id, msg_id);
	KEFA_MOVE(runtread_msgrtm_hdr, msg_length, msg_length);
	KEFA_MOVE(runtread_msgrtm_hdr, send_id, send_id);
	KEFA_MOVE(runtread_msgrtm_hdr, read_iov_count, read_iov_count);
	KEFA_MOVE(runtread_msgrtm_hdr, seg_offset, seg_offset);
	return KEFA_MOVE(runtread_msgrtm_hdr, runt_length, runt_length);
}

KEFA_FIELDS(runtread_rtm);

static __always_inline bool kefa_dc_eager_rtm(u8 *at, struct kefa_pkt *pkt, bool store)
{
	KEFA_PAD(dc_eager_msgrtm_hdr, padding);
	KEFA_MOVE(dc_eager_msgrtm_hdr, msg_id, msg_id);
	return KEFA_MOVE(dc_eager_msgrtm_hdr, send_id, send_id);
}

KEFA_FIELDS(dc_eager_rtm);

static __always_inline bool kefa_dc_medium_rtm(u8 *at, struct kefa_pkt *pkt, bool store)
{
	KEFA_PAD(dc_medium_msgrtm_hdr, padding);
	KEFA_MOVE(dc_medium_msgrtm_hdr, msg_id, msg_id);
	KEFA_MOVE(dc_medium_msgrtm_hdr, send_id, send_id);
	KEFA_MOVE(dc_medium_msgrtm_hdr, msg_length, msg_length);
	return KEFA_MOVE(dc_medium_msgrtm_hdr, seg_offset, seg_offset);
}

KEFA_FIELDS(dc_medium_rtm);

static __always_inline bool kefa_eager_rtw(u8 *at, struct kefa_pkt *pkt, bool store)
{
	return KEFA_MOVE(eager_rtw_hdr, rma_iov_count, rma_iov_count);
}

KEFA_FIELDS(eager_rtw);

static __always_inline bool kefa_dc_eager_rtw(u8 *at, struct kefa_pkt *pkt, bool store)
{
	KEFA_PAD(dc_eager_rtw_hdr, padding);
	KEFA_MOVE(dc_eager_rtw_hdr, rma_iov_count, rma_iov_count);
	return KEFA_MOVE(dc_eager_rtw_hdr, send_id, send_id);
}

KEFA_FIELDS(dc_eager_rtw);

static __always_inline bool kefa_longcts_rtw(u8 *at, struct kefa_pkt *pkt, bool store)
{
	KEFA_MOVE(longcts_rtw_hdr, rma_iov_count, rma_iov_count);
	KEFA_MOVE(longcts_rtw_hdr, msg_length, msg_length);
	KEFA_MOVE(longcts_rtw_hdr, send_id, send_id);
	return KEFA_MOVE(longcts_rtw_hdr, credit_request, credit_request);
}

KEFA_FIELDS(longcts_rtw);

static __always_inline bool kefa_longread_rtw(u8 *at, struct kefa_pkt *pkt, bool store)
{
	KEFA_MOVE(longread_rtw_hdr, rma_iov_count, rma_iov_count);
	KEFA_MOVE(longread_rtw_hdr, msg_length, msg_length);
	KEFA_MOVE(longread_rtw_hdr, send_id, send_id);
	return KEFA_MOVE(longread_rtw_hdr, read_iov_count, read_iov_count);
}

KEFA_FIELDS(longread_rtw);

static __always_inline bool kefa_rtr(u8 *at, struct kefa_pkt *pkt, bool store)
{
	KEFA_MOVE(rtr_hdr, rma_iov_count, rma_iov_count);
	KEFA_MOVE(rtr_hdr, msg_length, msg_length);
	KEFA_MOVE(rtr_hdr, recv_id, recv_id);
	return KEFA_MOVE(rtr_hdr, recv_length, recv_length);
}

KEFA_FIELDS(rtr);

static __always_inline bool kefa_rta(u8 *at, struct kefa_pkt *pkt, bool store)
{
	KEFA_MOVE(rta_hdr, msg_id, msg_id);
	KEFA_MOVE(rta_hdr, rma_iov_count, rma_iov_count);
	KEFA_MOVE(rta_hdr, atomic_datatype, atomic_datatype);
	return KEFA_MOVE(rta_hdr, atomic_op, atomic_op);
}

static __always_inline bool kefa_write_rta(u8 *at, struct kefa_pkt *pkt, bool store)
{
	KEFA_PAD(rta_hdr, id);
	return kefa_rta(at, pkt, store);
}

KEFA_FIELDS(write_rta);

static __always_inline bool kefa_fetch_rta(u8 *at, struct kefa_pkt *pkt, bool store)
{
	kefa_rta(at, pkt, store);
	return KEFA_MOVE(rta_hdr, id, recv_id);
}

KEFA_FIELDS(fetch_rta);

static __always_inline bool kefa_dc_write_rta(u8 *at, struct kefa_pkt *pkt, bool store)
{
	kefa_rta(at, pkt, store);
	return KEFA_MOVE(rta_hdr, id, send_id);
}

KEFA_FIELDS(dc_write_rta);

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

#define KEFA_RTA(_type, _list, _rule, _needs, _flags)			\
	KEFA_ROW(_type, rta, _list, _rule, NULL, _needs,		\
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
	KEFA_ANSWER(READRSP, readrsp, ANSWER, NULL, 0, 0, 0),
	KEFA_ANSWER(EOR, eor, NONE, &kefa_eor_ops, 0, KEFA_ROW_CONTROL, 0),
	KEFA_ANSWER(ATOMRSP, atomrsp, ANSWER, NULL, 0, 0, 0),
	KEFA_ANSWER(HANDSHAKE, handshake, TAIL, &kefa_handshake_ops, 0,
		    KEFA_ROW_CONTROL | KEFA_ROW_HANDSHAKE, 0xffff),
	KEFA_ANSWER(RECEIPT, receipt, NONE, &kefa_receipt_ops, 0, KEFA_ROW_CONTROL, 0),
	KEFA_ANSWER(READ_NACK, read_nack, NONE, &kefa_read_nack_ops, KEFA_NACK,
		    KEFA_ROW_CONTROL, 0),

	KEFA_RTM(EAGER, eager, ALL, &kefa_rtm_ops, 0, 0, 0),
	KEFA_RTM(MEDIUM, medium, PART, &kefa_rtm_ops, 0, KEFA_ROW_MULTI, 0),
	KEFA_RTM(LONGCTS, longcts, FIRST, &kefa_rtm_ops, 0, 0, KEFA_REQ_READ_NACK),
	KEFA_RMA(EAGER_RTW, eager_rtw, RMA, &kefa_trigger_ops, 0, KEFA_ROW_TRIGGER),
	KEFA_RMA(LONGCTS_RTW, longcts_rtw, FIRST, NULL, 0, KEFA_ROW_TOTAL),
	KEFA_RMA(SHORT_RTR, rtr, NONE, NULL, 0, KEFA_ROW_TOTAL),
	KEFA_RMA(LONGCTS_RTR, rtr, NONE, NULL, 0, KEFA_ROW_TOTAL | KEFA_ROW_WINDOW),
	KEFA_RTA(WRITE_RTA, write_rta, OPERAND, 0, 0),
	KEFA_RTA(FETCH_RTA, fetch_rta, OPERAND, 0, 0),
	KEFA_RTA(COMPARE_RTA, fetch_rta, COMPARE, 0, 0),

	KEFA_RTM(LONGREAD, longread, NONE, &kefa_rtm_ops, KEFA_RD, KEFA_ROW_READ, 0),
	KEFA_RMA(LONGREAD_RTW, longread_rtw, NONE, NULL, KEFA_RD, KEFA_ROW_READ | KEFA_ROW_TOTAL),
	KEFA_RTM(DC_EAGER, dc_eager, ALL, &kefa_rtm_ops, KEFA_DC, KEFA_ROW_DC, 0),
	KEFA_RTM(DC_MEDIUM, dc_medium, PART, &kefa_rtm_ops, KEFA_DC,
		 KEFA_ROW_DC | KEFA_ROW_MULTI, 0),
	KEFA_RTM(DC_LONGCTS, dc_longcts, FIRST, &kefa_rtm_ops, KEFA_DC, KEFA_ROW_DC,
		 KEFA_REQ_READ_NACK),
	KEFA_RMA(DC_EAGER_RTW, dc_eager_rtw, RMA, NULL, KEFA_DC, KEFA_ROW_DC),
	KEFA_RMA(DC_LONGCTS_RTW, longcts_rtw, FIRST, NULL, KEFA_DC, KEFA_ROW_DC | KEFA_ROW_TOTAL),
	KEFA_RTA(DC_WRITE_RTA, dc_write_rta, OPERAND, KEFA_DC, KEFA_ROW_DC),
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
