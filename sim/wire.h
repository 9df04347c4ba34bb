/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Wire format of efasim devices.
 *
 * A datagram is a sequence of packets. Every packet has the common header; then, for a
 * request or a response, a body; then the payload. Requests and responses have separate
 * lanes with their own sequence numbers, so that a request that waits for room at the peer
 * can't hold up the response that would make room.
 *
 * wire.c and wire.h are pure and also build in user space. All input goes through
 * efasim_wire_parse(), which trusts nothing.
 */
#ifndef EFASIM_WIRE_H
#define EFASIM_WIRE_H

#include <linux/types.h>
#ifndef __KERNEL__
#include <stdbool.h>
#include <stddef.h>
#endif

#define EFASIM_WIRE_MAGIC	0x45464153	/* "EFAS" */
#define EFASIM_WIRE_VERSION	3
#define EFASIM_GID_LEN		16
/* Largest payload of a packet, and so the largest MTU of a device. */
#define EFASIM_MAX_PAYLOAD	9216
/* Packets in flight in a lane; limited by the bits of @sack. */
#define EFASIM_WINDOW		64

enum efasim_lane {
	EFASIM_LANE_REQ,
	EFASIM_LANE_RESP,
	EFASIM_LANES,
	EFASIM_LANE_NONE = EFASIM_LANES,
};

enum efasim_pkt_type {
	EFASIM_PKT_ACK,		/* only an acknowledgment */
	EFASIM_PKT_UD,
	EFASIM_PKT_SEND,
	EFASIM_PKT_WRITE,
	EFASIM_PKT_READ,
	EFASIM_PKT_RESP,	/* status of a request */
	EFASIM_PKT_DATA,	/* data for a READ */
	EFASIM_PKT_TYPES,
};

#define EFASIM_PKT_F_IMM	0x01
/* The packet only tells its sender's incarnation, and acknowledges nothing. */
#define EFASIM_PKT_F_WHO	0x02

struct efasim_wire_hdr {
	__be32 magic;
	__u8 version;
	__u8 type;
	__u8 flags;
	__u8 reserved;
	__u8 src_gid[EFASIM_GID_LEN];
	__be64 src_inc;		/* incarnation of the sending device */
	__be64 dst_inc;		/* incarnation of the receiving device; 0: any */
	__be64 sack[EFASIM_LANES];	/* bit i: ack + 1 + i has been received */
	__be32 ack[EFASIM_LANES];	/* all packets before it have been received */
	__be32 seq;		/* sequence number in the packet's lane */
	__be32 base;		/* oldest packet that the sender still offers */
	__be32 length;		/* bytes of payload */
	__be32 reserved2;
};

struct efasim_wire_req {
	__be64 op;		/* initiator's identifier, returned in answers */
	__be32 seg;
	__be32 src_qpn;
	__be32 dst_qpn;
	__be32 qkey;
	__be32 imm;
	__be32 rkey;
	__be64 raddr;
	__be32 rlen;		/* READ: bytes to read; WRITE: length of the message */
	__be32 reserved;
};

struct efasim_wire_resp {
	__be64 op;
	__be32 seg;
	__be32 status;
};

/* A packet in host terms. */
struct efasim_pkt {
	enum efasim_pkt_type type;
	enum efasim_lane lane;
	__u8 flags;
	__u8 src_gid[EFASIM_GID_LEN];
	__u64 src_inc;
	__u64 dst_inc;
	__u64 sack[EFASIM_LANES];
	__u32 ack[EFASIM_LANES];
	__u32 seq;
	__u32 base;
	__u64 op;
	__u64 raddr;
	__u32 seg;
	__u32 src_qpn;
	__u32 dst_qpn;
	__u32 qkey;
	__u32 imm;
	__u32 rkey;
	__u32 rlen;
	__u32 status;
	__u32 length;
	const void *payload;
};

/* Reasons to refuse a packet; EFASIM_WIRE_OK is 0. */
enum efasim_wire_err {
	EFASIM_WIRE_OK,
	EFASIM_WIRE_SHORT,
	EFASIM_WIRE_MAGIC_BAD,
	EFASIM_WIRE_VERSION_BAD,
	EFASIM_WIRE_TYPE_BAD,
	EFASIM_WIRE_FLAGS_BAD,
	EFASIM_WIRE_LENGTH_BAD,
	EFASIM_WIRE_FIELD_BAD,
	EFASIM_WIRE_ERRS,
};

enum efasim_wire_err efasim_wire_parse(const void *buf, size_t len,
				       struct efasim_pkt *pkt);
size_t efasim_wire_hdr_len(enum efasim_pkt_type type);
size_t efasim_wire_build(void *buf, const struct efasim_pkt *pkt);
enum efasim_lane efasim_wire_lane(enum efasim_pkt_type type);

#endif /* EFASIM_WIRE_H */
