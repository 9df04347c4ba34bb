/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets of fabric efa: the table of their types (packet.c), and what is between the
 * wire and the host's structures (parse.c, build.c). All of it is pure: no lock, no
 * memory, no device; it is compiled for user space, too (tests/fuzz).
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

/* Room for each header that we send: of a read we name one source. */
#define KEFA_HDR_ROOM	256

/**
 * enum kefa_bad - why a packet was refused
 * @KEFA_OK: it wasn't
 * @KEFA_BAD_SHORT: it ends before its headers do
 * @KEFA_BAD_VERSION: of another protocol
 * @KEFA_BAD_TYPE: of no type in the table
 * @KEFA_BAD_FLAGS: flags that its type hasn't, or that exclude each other
 * @KEFA_BAD_ADDR: the raw address is too short, too long or not a multiple of 4
 * @KEFA_BAD_COUNT: too many iovs, or too few
 * @KEFA_BAD_RANGE: an iov goes round the end of memory, or they add up to more than 2^64
 * @KEFA_BAD_TOTAL: the length of the message isn't what its iovs add up to, or it is 0
 * @KEFA_BAD_LENGTH: there is more or less data than the headers say
 * @KEFA_BAD_OFFSET: a segment isn't inside its message
 * @KEFA_BAD_FEATURES: more words of features than there ever were
 * @KEFA_BAD_REASONS: how many values there are
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
 * enum kefa_data - what a type says about the data behind its headers
 * @KEFA_DATA_NONE: there is none
 * @KEFA_DATA_ALL: the whole message
 * @KEFA_DATA_PART: @seg_offset of @msg_length, at least a byte
 * @KEFA_DATA_RUNT: the same, within the first @runt_length bytes
 * @KEFA_DATA_FIRST: the first bytes, maybe none, and some are left for later
 * @KEFA_DATA_SEGMENT: @seg_length bytes, at least one
 * @KEFA_DATA_ANSWER: @seg_length bytes, maybe none
 * @KEFA_DATA_RMA: as much as @rma_iov names
 * @KEFA_DATA_OPERAND: the same, or none for an atomic read
 * @KEFA_DATA_COMPARE: twice as much
 * @KEFA_DATA_TAIL: what later versions add to a HANDSHAKE
 */
enum kefa_data {
	KEFA_DATA_NONE,
	KEFA_DATA_ALL,
	KEFA_DATA_PART,
	KEFA_DATA_RUNT,
	KEFA_DATA_FIRST,
	KEFA_DATA_SEGMENT,
	KEFA_DATA_ANSWER,
	KEFA_DATA_RMA,
	KEFA_DATA_OPERAND,
	KEFA_DATA_COMPARE,
	KEFA_DATA_TAIL,
};

/* Of kefa_pkt_row.flags. */
#define KEFA_ROW_REQ		0x0001	/* a request: has optional headers */
#define KEFA_ROW_TAGGED		0x0002	/* the last field of the fixed header is a tag */
#define KEFA_ROW_ORDERED	0x0004	/* has a msg_id, taken in their order */
#define KEFA_ROW_MULTI		0x0008	/* several packets have one msg_id */
#define KEFA_ROW_DC		0x0010	/* is answered by a RECEIPT */
#define KEFA_ROW_RMA		0x0020	/* has rma_iov[] */
#define KEFA_ROW_READ		0x0040	/* has read_iov[] */
#define KEFA_ROW_CONTROL	0x0080	/* has reserved slots: it may not wait for data */
#define KEFA_ROW_TAIL_CONNID	0x0100	/* its connid is behind the fixed header */
#define KEFA_ROW_HANDSHAKE	0x0200
#define KEFA_ROW_TRIGGER	0x0400	/* without iovs, it only asks for a HANDSHAKE */
#define KEFA_ROW_TOTAL		0x0800	/* rma_iov[] adds up to msg_length */
#define KEFA_ROW_WINDOW		0x1000	/* its recv_length isn't 0 */

/**
 * struct kefa_shake - what a HANDSHAKE says
 * @nextra_p3: words in @extra that were there, and KEFA_NEXTRA_P3
 * @extra: features; the first word has all there are, KEFA_FEATURE_RDMA_READ and so on
 * @host_id: of the machine, or 0
 * @device_version: PCI device id, or 0
 * @qpn: queue pair for messages without headers, with KEFA_HANDSHAKE_USER_RECV_QP_HDR
 * @qkey: its key
 * @p2p: the device reaches the memory of accelerators
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
 * struct kefa_pkt - what a packet says, in the byte order of the host
 * @row: of its type
 * @flags: kefa_base_hdr.flags
 * @hdr_len: bytes before the data
 * @raw_len: bytes at @raw
 * @has_connid: @connid is there, by itself or in the raw address
 * @connid: which endpoint sent it; its queue pair's key
 * @msg_id: number of the message from that peer
 * @send_id: the sender's operation, to be named in answers
 * @recv_id: the receiver's
 * @tag: of a tagged message
 * @msg_length: of the whole message, or of what is written or read
 * @seg_offset: where the data belongs in it
 * @seg_length: bytes of data, where the header says that
 * @runt_length: bytes that come with requests; the rest is read
 * @recv_length: the window: bytes that may be sent, which may be more than are left
 * @credit_request: packets that the sender would like to send
 * @rma_iov_count: entries of @rma_iov
 * @read_iov_count: entries of @read_iov
 * @atomic_datatype: libfabric's number of the type
 * @atomic_op: and of the operation
 * @cq_data: with KEFA_REQ_OPT_CQ_DATA_HDR
 * @raw: address of the sender, &struct kefa_raw_addr, or NULL
 * @rma_iov: the target's memory
 * @read_iov: where the receiver is to read the message
 * @data: behind the headers
 * @data_len: bytes there
 * @shake: of a HANDSHAKE, which has nothing of the above but flags and connid
 *
 * Fields that a type hasn't are 0. Pointers are into the packet, at multiples of 4 at
 * most; iovs there are little-endian, and were checked.
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
 * enum kefa_took - what became of a packet
 * @KEFA_TOOK_DONE: nobody needs it any more
 * @KEFA_TOOK_KEPT: it is kept
 * @KEFA_TOOK_NOT: there is no operation, or no room in the completion queue; it is as if it
 *	hadn't come
 */
enum kefa_took {
	KEFA_TOOK_DONE,
	KEFA_TOOK_KEPT,
	KEFA_TOOK_NOT,
};

/**
 * struct kefa_pkt_ops - what the engine does about packets of a type
 * @fill: set what a packet of the operation says
 * @completed: the device has delivered it; NULL if nothing follows
 * @unsend: the peer had no receive for it, and it is to be made again; NULL for packets that
 *	keep their slots, as data does. The operation, if it has one, has one packet less after
 *	that
 * @received: one has come, and was parsed; of an ordered type, and it is its turn, or one
 *	of its message was taken before
 *
 * All are called under the endpoint's lock. NULL instead of all this is for types that
 * we don't take.
 */
struct kefa_pkt_ops {
	void (*fill)(const struct kefa_rdm *rdm, const struct kefa_rop *rop,
		     struct kefa_pkt *pkt);
	void (*completed)(struct kefa_rdm *rdm, struct kefa_rop *rop);
	void (*unsend)(struct kefa_rdm *rdm, struct kefa_rpeer *peer, struct kefa_rop *rop);
	enum kefa_took (*received)(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				   const struct kefa_pkt *pkt, struct kefa_held *held);
};

/* Where only the table is compiled, in user space, there is no engine. */

/* msg.c */

extern const struct kefa_pkt_ops kefa_rtm_ops __weak;

/* answer.c */

extern const struct kefa_pkt_ops kefa_receipt_ops __weak;
extern const struct kefa_pkt_ops kefa_handshake_ops __weak;
extern const struct kefa_pkt_ops kefa_trigger_ops __weak;

/* longcts.c */

extern const struct kefa_pkt_ops kefa_cts_ops __weak;
extern const struct kefa_pkt_ops kefa_ctsdata_ops __weak;

/* longread.c */

extern const struct kefa_pkt_ops kefa_eor_ops __weak;
extern const struct kefa_pkt_ops kefa_read_nack_ops __weak;

/**
 * struct kefa_pkt_row - all that is known about a type of packets
 * @name: for traces and debugfs; as in the protocol document
 * @needs: features of a peer without which no such packet may be sent to it
 * @ops: the engine's; NULL for types that it doesn't take
 * @load: read the fixed header, all but the tag, which tagged types have at its end
 * @store: write it, all but that and what each packet begins with; false if a number
 *	doesn't fit
 * @type: the index of the row
 * @hdr: bytes of the fixed header
 * @data: what is behind the headers
 * @flags: KEFA_ROW_REQ and so on
 * @may: flags that such a packet may have
 * @hints: of these, those that repeat the type: we set them, and don't look at them
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
 * kefa_row_of() - the row of a type
 * @type: of the packet; anything
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
 * kefa_pkt_may_send() - is a peer sure to take packets of a type?
 * @row: of the type
 * @features: of the peer, from its HANDSHAKE; 0 as long as there was none
 *
 * libfabric ends its process for a type that it doesn't know.
 *
 * Context: Any.
 * Return: whether it is.
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
