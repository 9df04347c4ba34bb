/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Wire format of kofi_rc, see Documentation/kofi-rc.rst. Pure functions without state or
 * allocation, which need only types of the kernel, so that the same files can be built in user
 * space for fuzzing. All numbers are little-endian.
 *
 * A connection is set up by a session of kofi_cm, whose private data is a struct krc_wire_side.
 * Then each side sends datagrams to the other one's endpoint. They arrive in any order.
 */
#ifndef KRC_WIRE_H
#define KRC_WIRE_H

#include <linux/types.h>

#define KRC_VERSION		2
#define KRC_SERVICE		"kofi_rc"

#define KRC_TOTAL_MAX		0x80000000U	/* bytes of a message, a write or a read */
#define KRC_DATAGRAM_MIN	1024U		/* of krc_wire_side.datagram */
#define KRC_DATAGRAM_MAX	8928U
#define KRC_WINDOW_MIN		16U		/* of krc_wire_side.window, a power of two */
#define KRC_WINDOW_MAX		1024U
#define KRC_READS_MAX		128U		/* of krc_wire_side.ird and ord */
#define KRC_ULP_PRIV_MAX	255U		/* bytes of private data of the ULP */
#define KRC_KEYS_MAX		4U		/* keys in a datagram */
#define KRC_NO_KEY		(~0ULL)		/* of krc_wire_key.key */

/* krc_wire_side.features; a receiver ignores those that it doesn't know. */
#define KRC_CAN_WRITE		0x1	/* its device writes to memory of which it knows the key */
#define KRC_CAN_READ		0x2	/* its device reads such memory, and may be read */

/**
 * struct krc_wire_side - description of a side; private data of the ULP follows
 * @cookie: stands in each datagram to this side
 * @credits: receives that are posted
 * @datagram: longest datagram that the side takes, with its header
 * @window: datagrams whose arrival isn't confirmed, at most, in either direction
 * @ird: reads of the peer that the side serves at a time
 * @ord: reads that the side makes at a time
 * @port: active side: the port at which the ULP of the passive side listens; else 0
 * @priv_len: bytes of private data
 * @features: KRC_CAN_*
 * @reserved: 0
 */
struct krc_wire_side {
	__le64	cookie;
	__le32	credits;
	__le32	datagram;
	__le16	window;
	__le16	ird;
	__le16	ord;
	__le16	port;
	__u8	priv_len;
	__u8	features;
	__u8	reserved[6];
};

/**
 * struct krc_wire_reject - private data of a refusal; private data of the ULP follows
 * @by_ulp: 1 if the ULP refuses, 0 if kofi_rc does
 * @priv_len: bytes of private data, 0 unless @by_ulp
 * @reserved: 0
 */
struct krc_wire_reject {
	__u8	by_ulp;
	__u8	priv_len;
	__u8	reserved[6];
};

/**
 * enum krc_type - types of datagrams
 * @KRC_SEND: a piece of a message
 * @KRC_WRITE: a piece of a write
 * @KRC_READ: asks for data
 * @KRC_DATA: a piece of the data, or the news that it can't be read
 * @KRC_CREDIT: receives were posted
 * @KRC_KEYS: keys, more than the next message has room for
 * @KRC_TYPES: one more than the last
 */
enum krc_type {
	KRC_SEND = 1,
	KRC_WRITE,
	KRC_READ,
	KRC_DATA,
	KRC_CREDIT,
	KRC_KEYS,
	KRC_TYPES,
};

#define KRC_LAST	0x1	/* SEND, WRITE, DATA: the piece at the end */
#define KRC_INV		0x2	/* SEND, with KRC_LAST: krc_wire_dgram.arg is a key to invalidate */
#define KRC_FAILED	0x4	/* DATA: the read isn't possible */

/**
 * struct krc_wire_dgram - header of a datagram
 * @cookie: krc_wire_side.cookie of the receiver
 * @type: KRC_SEND to KRC_KEYS
 * @flags: KRC_LAST to KRC_FAILED
 * @nkeys: SEND and KEYS: number of struct krc_wire_key that follow; else 0
 * @reserved: 0
 * @credits: receives that the sender has posted since the beginning
 * @seq: sequence number; 0 in DATA. CREDIT has neither this nor what follows
 * @number: SEND: number of the message; READ and DATA: number of the read; else 0
 * @offset: of the piece within the message, the write or the read; 0 in READ
 * @total: bytes of the whole
 * @arg: SEND with KRC_INV: the key; else 0
 * @rkey: WRITE and READ: the key of the receiver's memory; else 0
 * @addr: WRITE and READ: the address of the whole; else 0
 *
 * Then there are keys, and data in SEND, WRITE and DATA.
 */
struct krc_wire_dgram {
	__le64	cookie;
	__u8	type;
	__u8	flags;
	__u8	nkeys;
	__u8	reserved;
	__le32	credits;
	__le32	seq;
	__le32	number;
	__le32	offset;
	__le32	total;
	__le32	arg;
	__le32	rkey;
	__le64	addr;
};

/**
 * struct krc_wire_key - by which the receiver's device can write to a region of the sender
 * @rkey: key of the region, as ULPs know it
 * @gen: number of times that the region was registered; modulo 2^32
 * @key: key for the device, or KRC_NO_KEY if the device can't write to the region any more
 * @delta: address for the device minus the address as ULPs know it; modulo 2^64. 0 without a key
 */
struct krc_wire_key {
	__le32	rkey;
	__le32	gen;
	__le64	key;
	__le64	delta;
};

#define KRC_HDR		sizeof(struct krc_wire_dgram)
#define KRC_HDR_SHORT	offsetof(struct krc_wire_dgram, seq)

/* Parsed messages, in host byte order, with all fields checked. */

/**
 * struct krc_side - a parsed struct krc_wire_side
 * @cookie: not 0
 * @credits: receives that are posted
 * @datagram: KRC_DATAGRAM_MIN to KRC_DATAGRAM_MAX
 * @window: KRC_WINDOW_MIN to KRC_WINDOW_MAX, a power of two
 * @ird: at most KRC_READS_MAX
 * @ord: at most KRC_READS_MAX
 * @port: port
 * @features: KRC_* bits, known or not
 * @priv_len: bytes of @priv, which is all that follows
 * @priv: private data of the ULP, within the parsed message
 */
struct krc_side {
	u64		cookie;
	u32		credits;
	u32		datagram;
	u16		window;
	u16		ird;
	u16		ord;
	u16		port;
	u8		features;
	u8		priv_len;
	const u8	*priv;
};

/**
 * struct krc_reject - a parsed struct krc_wire_reject
 * @by_ulp: the ULP refuses
 * @priv_len: bytes of @priv
 * @priv: private data of the ULP, within the parsed message
 */
struct krc_reject {
	bool		by_ulp;
	u8		priv_len;
	const u8	*priv;
};

/**
 * struct krc_key - a parsed struct krc_wire_key
 * @rkey: key of the region
 * @gen: number of its registrations
 * @key: key for the device, or KRC_NO_KEY
 * @delta: what the device adds to addresses
 * @written: of rma.c, not on the wire: data for the region was sent by datagrams
 */
struct krc_key {
	u32	rkey;
	u32	gen;
	u64	key;
	u64	delta;
	bool	written;
};

/**
 * struct krc_dgram - a parsed datagram
 * @cookie: cookie
 * @type: type
 * @flags: allowed for @type
 * @nkeys: number of @keys, at most KRC_KEYS_MAX
 * @credits: receives that the sender has posted
 * @seq: sequence number
 * @number: number of the message or read
 * @offset: @offset + @len is at most @total
 * @total: at most KRC_TOTAL_MAX
 * @arg: key to invalidate
 * @rkey: key of the memory
 * @addr: address of the whole; @addr + @total doesn't overflow
 * @keys: within the parsed datagram
 * @len: bytes of @data
 * @data: within the parsed datagram
 */
struct krc_dgram {
	u64		cookie;
	u8		type;
	u8		flags;
	u8		nkeys;
	u32		credits;
	u32		seq;
	u32		number;
	u32		offset;
	u32		total;
	u32		arg;
	u32		rkey;
	u64		addr;
	const void	*keys;
	u32		len;
	const void	*data;
};

/*
 * Parsers take a whole message and return 0, or -EPROTO for an invalid one, after which @msg is
 * undefined. Builders take what a parser would accept, and return the length of the header; the
 * caller appends the data or private data.
 */
int krc_parse_side(const void *buf, size_t len, struct krc_side *msg);
size_t krc_build_side(struct krc_wire_side *wire, const struct krc_side *msg);
int krc_parse_reject(const void *buf, size_t len, struct krc_reject *msg);
size_t krc_build_reject(struct krc_wire_reject *wire, const struct krc_reject *msg);
int krc_parse(const void *buf, size_t len, struct krc_dgram *msg);
size_t krc_build(struct krc_wire_dgram *wire, const struct krc_dgram *msg);
int krc_parse_key(const struct krc_wire_key *wire, struct krc_key *key);
void krc_build_key(struct krc_wire_key *wire, const struct krc_key *key);

#endif /* KRC_WIRE_H */
