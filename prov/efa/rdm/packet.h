/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets of fabric efa: the table of their types (packet.c), and the conversion between the wire
 * format and the host's structures (parse.c, build.c). These files use no lock, no allocation and
 * no device, and are compiled for user space, too (tests/fuzz).
 */
#ifndef KEFA_RDM_PACKET_H
#define KEFA_RDM_PACKET_H

#include <linux/stddef.h>
#include <linux/types.h>
#include "wire.h"

struct kefa_held;
struct kefa_rdm;
struct kefa_rop;
struct kefa_rpeer;

/* Room for the headers of any packet that is sent, which have at most one entry in read_iov[]. */
#define KEFA_HDR_ROOM	256

/**
 * enum kefa_bad - why a packet was refused
 * @KEFA_OK: not refused
 * @KEFA_BAD_SHORT: the packet ends within its headers
 * @KEFA_BAD_VERSION: another version of the protocol
 * @KEFA_BAD_TYPE: the type isn't in the table
 * @KEFA_BAD_FLAGS: flags that the type doesn't have, or that exclude each other
 * @KEFA_BAD_ADDR: the length of the raw address is too small, too large or not a multiple of 4
 * @KEFA_BAD_COUNT: too many or too few iovs
 * @KEFA_BAD_RANGE: an iov wraps around the end of memory, or the sum of the iovs exceeds 2^64
 * @KEFA_BAD_TOTAL: the length of the message isn't the sum of the iovs, or is 0
 * @KEFA_BAD_LENGTH: more or less data than the headers state
 * @KEFA_BAD_OFFSET: a segment isn't inside its message
 * @KEFA_BAD_FEATURES: more words of features than any version has
 * @KEFA_BAD_REASONS: number of values
 */
enum kefa_bad {
	KEFA_OK,
	KEFA_BAD_SHORT,
	KEFA_BAD_VERSION,
	KEFA_BAD_TYPE,
	KEFA_BAD_FLAGS,
	KEFA_BAD_ADDR,
	KEFA_BAD_COUNT,
	KEFA_BAD_RANGE,
	KEFA_BAD_TOTAL,
	KEFA_BAD_LENGTH,
	KEFA_BAD_OFFSET,
	KEFA_BAD_FEATURES,
	KEFA_BAD_REASONS
};

/**
 * enum kefa_data - data after the headers of a type
 * @KEFA_DATA_NONE: no data
 * @KEFA_DATA_ALL: the whole message
 * @KEFA_DATA_PART: at least one byte of the message's @msg_length, from @seg_offset on
 * @KEFA_DATA_RUNT: as KEFA_DATA_PART, within the first @runt_length bytes
 * @KEFA_DATA_FIRST: the first bytes, possibly none, but not the whole message
 * @KEFA_DATA_SOME: the first bytes, possibly none or the whole message
 * @KEFA_DATA_SEGMENT: @seg_length bytes, at least one
 * @KEFA_DATA_ANSWER: @seg_length bytes, possibly none
 * @KEFA_DATA_RMA: as many bytes as the sum of @rma_iov
 * @KEFA_DATA_OPERAND: as KEFA_DATA_RMA, or no data for an atomic read
 * @KEFA_DATA_COMPARE: twice the sum of @rma_iov
 * @KEFA_DATA_TAIL: additions of later versions to a HANDSHAKE
 */
enum kefa_data {
	KEFA_DATA_NONE,
	KEFA_DATA_ALL,
	KEFA_DATA_PART,
	KEFA_DATA_RUNT,
	KEFA_DATA_FIRST,
	KEFA_DATA_SOME,
	KEFA_DATA_SEGMENT,
	KEFA_DATA_ANSWER,
	KEFA_DATA_RMA,
	KEFA_DATA_OPERAND,
	KEFA_DATA_COMPARE,
	KEFA_DATA_TAIL,
};

/* Flags in kefa_pkt_row.flags. */
#define KEFA_ROW_REQ		0x0001	/* a request, which may have optional headers */
#define KEFA_ROW_TAGGED		0x0002	/* the last field of the fixed header is a tag */
#define KEFA_ROW_ORDERED	0x0004	/* has a msg_id, and is handled in order */
#define KEFA_ROW_MULTI		0x0008	/* several packets have one msg_id */
#define KEFA_ROW_DC		0x0010	/* the answer is a RECEIPT */
#define KEFA_ROW_RMA		0x0020	/* has rma_iov[] */
#define KEFA_ROW_READ		0x0040	/* has read_iov[] */
#define KEFA_ROW_CONTROL	0x0080	/* may use reserved slots, as it mustn't wait for data */
#define KEFA_ROW_TAIL_CONNID	0x0100	/* the connid follows the fixed header */
#define KEFA_ROW_HANDSHAKE	0x0200
#define KEFA_ROW_TRIGGER	0x0400	/* without iovs it only asks for a HANDSHAKE */
#define KEFA_ROW_TOTAL		0x0800	/* the sum of rma_iov[] is msg_length */
#define KEFA_ROW_WINDOW		0x1000	/* recv_length isn't 0 */

/**
 * struct kefa_shake - contents of a HANDSHAKE
 * @nextra_p3: number of words in @extra that the packet has, plus KEFA_NEXTRA_P3
 * @extra: features; all known ones are in the first word, KEFA_FEATURE_RDMA_READ and so on
 * @host_id: id of the machine, or 0
 * @device_version: PCI device id, or 0
 * @qpn: queue pair for messages without headers, with KEFA_HANDSHAKE_USER_RECV_QP_HDR
 * @qkey: key of @qpn
 * @p2p: the device can access the memory of accelerators
 */
struct kefa_shake {
	u32	nextra_p3;
	u32	device_version;
	u32	qpn;
	u32	qkey;
	u8	p2p;
	u64	host_id;
	u64	extra[KEFA_NEXTRA_MAX];
};

/**
 * struct kefa_pkt - contents of a packet, in the byte order of the host
 * @row: row of the type
 * @flags: kefa_base_hdr.flags
 * @hdr_len: length of all headers
 * @raw_len: length of @raw
 * @has_connid: the packet has a connid, by itself or in the raw address
 * @connid: connid of the sending endpoint, which is the key of its queue pair
 * @msg_id: number of the message from the sender
 * @send_id: id of the sender's operation, for answers
 * @recv_id: id of the receiver's operation
 * @tag: tag of a tagged message
 * @msg_length: length of the whole message, write or read
 * @seg_offset: offset of the data in the message
 * @seg_length: length of the data, if the header has it
 * @runt_length: bytes that are sent with requests; the rest is read
 * @recv_length: window: number of bytes that may be sent, which may exceed the rest
 * @credit_request: number of packets that the sender requests
 * @reserved: value of a field without a meaning; 0 in packets that are sent
 * @rma_iov_count: number of entries of @rma_iov
 * @read_iov_count: number of entries of @read_iov
 * @atomic_datatype: libfabric's number of the atomic data type
 * @atomic_op: libfabric's number of the atomic operation
 * @cq_data: remote CQ data, with KEFA_REQ_OPT_CQ_DATA_HDR
 * @raw: raw address of the sender, &struct kefa_raw_addr, or NULL
 * @rma_iov: memory of the target
 * @read_iov: memory that the receiver reads the message from
 * @data: data after the headers
 * @data_len: length of @data
 * @shake: contents of a HANDSHAKE, which has no other fields but flags and connid
 *
 * Fields that a type doesn't have are 0. Pointers point into the packet and are aligned to 4 bytes
 * at most. The iovs are little-endian, and were checked.
 */
struct kefa_pkt {
	const struct kefa_pkt_row	*row;
	u16				flags;
	u16				hdr_len;
	u8				raw_len;
	bool				has_connid;
	u32				connid;
	u32				msg_id;
	u32				send_id;
	u32				recv_id;
	u32				credit_request;
	u32				reserved;
	union {
		struct {
			u64	tag;
			u64	msg_length;
			u64	seg_offset;
			u64	seg_length;
			u64	runt_length;
			u64	recv_length;
			u64	cq_data;
			u32	rma_iov_count;
			u32	read_iov_count;
			u32	atomic_datatype;
			u32	atomic_op;
		};
		struct kefa_shake	shake;
	};
	const void			*raw;
	const struct kefa_rma_iov	*rma_iov;
	const struct kefa_rma_iov	*read_iov;
	const void			*data;
	size_t				data_len;
};

/**
 * enum kefa_took - result of handling a packet
 * @KEFA_TOOK_DONE: the packet isn't needed any more
 * @KEFA_TOOK_KEPT: the packet is kept
 * @KEFA_TOOK_NOT: the packet had no effect, because no operation or send slot is free, or the
 *	completion queue has no room
 */
enum kefa_took {
	KEFA_TOOK_DONE,
	KEFA_TOOK_KEPT,
	KEFA_TOOK_NOT,
};

/**
 * struct kefa_pkt_ops - functions of the engine for packets of a type
 * @fill: set the fields of an operation's packet
 * @completed: called when the device has delivered the packet; NULL if nothing follows
 * @unsend: called when the peer had no receive for an operation's packet, which is built again
 *	later; NULL for packets that keep their slots, such as data. The packet doesn't count in
 *	kefa_rop.wrs then
 * @unsend_alone: the same for a packet without an operation
 * @received: handle a parsed packet. For an ordered type it is the packet's turn, or an earlier
 *	packet of its message was handled before
 *
 * All are called under the endpoint's lock. kefa_pkt_row.ops is NULL for unsupported types.
 */
struct kefa_pkt_ops {
	void (*fill)(const struct kefa_rdm *rdm, const struct kefa_rop *rop,
		     struct kefa_pkt *pkt);
	void (*completed)(struct kefa_rdm *rdm, struct kefa_rop *rop);
	void (*unsend)(struct kefa_rdm *rdm, struct kefa_rop *rop);
	void (*unsend_alone)(struct kefa_rdm *rdm, struct kefa_rpeer *peer);
	enum kefa_took (*received)(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				   const struct kefa_pkt *pkt, struct kefa_held *held);
};

/* Weak, because user space compiles the table without the engine. */

/* msg.c */

extern const struct kefa_pkt_ops kefa_rtm_ops __weak;

/* answer.c */

extern const struct kefa_pkt_ops kefa_receipt_ops __weak;
extern const struct kefa_pkt_ops kefa_handshake_ops __weak;

/* longcts.c */

extern const struct kefa_pkt_ops kefa_cts_ops __weak;
extern const struct kefa_pkt_ops kefa_ctsdata_ops __weak;

/* longread.c */

extern const struct kefa_pkt_ops kefa_eor_ops __weak;
extern const struct kefa_pkt_ops kefa_read_nack_ops __weak;

/* target.c */

extern const struct kefa_pkt_ops kefa_eager_rtw_ops __weak;
extern const struct kefa_pkt_ops kefa_longcts_rtw_ops __weak;
extern const struct kefa_pkt_ops kefa_rtr_ops __weak;

/* fetch.c */

extern const struct kefa_pkt_ops kefa_longread_rtw_ops __weak;

/* far.c */

extern const struct kefa_pkt_ops kefa_readrsp_ops __weak;

/* atomic.c */

extern const struct kefa_pkt_ops kefa_atomrsp_ops __weak;

/* rta.c */

extern const struct kefa_pkt_ops kefa_write_rta_ops __weak;
extern const struct kefa_pkt_ops kefa_fetch_rta_ops __weak;

/**
 * struct kefa_pkt_row - properties of a packet type
 * @name: name in the protocol document, for traces and debugfs
 * @needs: features that a peer must have to be sent such a packet
 * @ops: functions of the engine; NULL for unsupported types
 * @load: read the fixed header, except the tag at the end of tagged types
 * @store: write the fixed header, except the tag and struct kefa_base_hdr; returns false if a
 *	number doesn't fit
 * @type: index of the row
 * @hdr: length of the fixed header
 * @data: enum kefa_data
 * @flags: KEFA_ROW_REQ and so on
 * @may: flags that such a packet may have
 * @hints: flags in @may that repeat the type: they are set in sent packets, and ignored in
 *	received ones
 */
struct kefa_pkt_row {
	const char			*name;
	u64				needs;
	const struct kefa_pkt_ops	*ops;
	bool (*load)(const void *hdr, struct kefa_pkt *pkt);
	bool (*store)(void *hdr, const struct kefa_pkt *pkt);
	u8				type;
	u8				hdr;
	u8				data;
	u16				flags;
	u16				may;
	u16				hints;
};

/* packet.c */

extern const struct kefa_pkt_row kefa_pkt_rows[KEFA_PKT_TYPES];

const char *kefa_bad_text(enum kefa_bad bad);

/**
 * kefa_row_of() - get the row of a type
 * @type: type of a packet, any value
 *
 * Context: Any.
 * Return: the row, or NULL for a type that isn't in the table.
 */
static inline const struct kefa_pkt_row *kefa_row_of(u8 type)
{
	if (type >= KEFA_PKT_TYPES || !kefa_pkt_rows[type].hdr)
		return NULL;
	return &kefa_pkt_rows[type];
}

/**
 * kefa_pkt_atomic() - check whether packets of a type request atomic operations
 * @row: row of the type
 *
 * Context: Any.
 * Return: whether they do.
 */
static inline bool kefa_pkt_atomic(const struct kefa_pkt_row *row)
{
	return row->hints & KEFA_REQ_ATOMIC;
}

/**
 * kefa_pkt_may_send() - check whether a peer supports packets of a type
 * @row: row of the type
 * @features: features in the peer's HANDSHAKE; 0 before that
 *
 * libfabric aborts its process if it gets a type that it doesn't know.
 *
 * Context: Any.
 * Return: whether the peer supports the type.
 */
static inline bool kefa_pkt_may_send(const struct kefa_pkt_row *row, u64 features)
{
	return !(row->needs & ~features);
}

/* parse.c */

enum kefa_bad kefa_parse(const void *buf, size_t len, struct kefa_pkt *pkt);

/* build.c */

size_t kefa_build(const struct kefa_pkt *pkt, void *buf, size_t room);

#endif /* KEFA_RDM_PACKET_H */
