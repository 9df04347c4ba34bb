/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Messages about connections, in the notes of a link: wire.c. A note has one or more messages. All
 * are about the connection with the number that the link's active side has chosen:
 *
 *	active			passive
 *	CONN		->		a request: lane, tag, receives, private data
 *			<-	ACCEPT	the same of the passive side
 *			<-	REJECT	or a refusal, with private data
 *	LIVE		->		the active side can take messages
 *	CREDIT		<->	CREDIT	number of receives posted so far
 *	DISC		<->	DISC	no message follows. Each side sends one, except after a
 *					REJECT; then the number is free
 *
 * The structures are packed, little-endian, and at any address.
 */
#ifndef KMSG_WIRE_H
#define KMSG_WIRE_H

#include <linux/types.h>
#include <kofi/session_types.h>
#include <kofi/ulp_msg.h>

#define KMSG_MAGIC	0x67736d6b
#define KMSG_VERSION	1
#define KMSG_DATA_MAX	256	/* bytes of private data */

/**
 * enum kmsg_type - kind of a message
 * @KMSG_CONN: request a connection
 * @KMSG_ACCEPT: accept it
 * @KMSG_REJECT: refuse it
 * @KMSG_LIVE: it is established
 * @KMSG_CREDIT: tell of receives
 * @KMSG_DISC: it has ended
 * @KMSG_TYPES: number of kinds, and 1
 */
enum kmsg_type {
	KMSG_CONN = 1,
	KMSG_ACCEPT,
	KMSG_REJECT,
	KMSG_LIVE,
	KMSG_CREDIT,
	KMSG_DISC,
	KMSG_TYPES
};

/**
 * enum kmsg_why - reason of a REJECT
 * @KMSG_REFUSED: by the ULP, or nobody listens
 * @KMSG_BUSY: too many requests wait
 * @KMSG_NO_MEMORY: no memory
 * @KMSG_DENIED: the link has another secret than the passive endpoint
 * @KMSG_WHYS: number of reasons
 */
enum kmsg_why {
	KMSG_REFUSED,
	KMSG_BUSY,
	KMSG_NO_MEMORY,
	KMSG_DENIED,
	KMSG_WHYS
};

/* Private data of a link's HELLO. */
struct kmsg_wire_link {
	__le32	magic;
	__le32	version;
} __packed;

/* A message begins with this. @len includes it. */
struct kmsg_wire_hdr {
	u8	type;
	u8	why;	/* of REJECT */
	__le16	len;
	__le32	id;
} __packed;

/* CONN and ACCEPT: followed by the address and the private data. */
struct kmsg_wire_side {
	struct kmsg_wire_hdr	hdr;
	__le32			protocol;
	__le32			format;
	__le64			tag;
	__le64			posted;
	__le16			addrlen;
} __packed;

struct kmsg_wire_credit {
	struct kmsg_wire_hdr	hdr;
	__le64			posted;
} __packed;

/* Length of the longest message. It fits into a note. */
#define KMSG_WIRE_MAX	(sizeof(struct kmsg_wire_side) + KULP_ADDR_MAX + KMSG_DATA_MAX)

/**
 * struct kmsg_hello - the part of a side that is known before its data
 * @format: format of @addr
 * @addrlen: bytes of @addr
 * @addr: address of its lane
 * @protocol: protocol and version of its lane
 * @tag: tag of the messages that it receives
 * @posted: number of receives that it has posted
 * @len: bytes of @data
 * @data: private data of the ULP
 */
struct kmsg_hello {
	u32	format;
	u16	addrlen;
	u8	addr[KULP_ADDR_MAX];
	u32	protocol;
	u64	tag;
	u64	posted;
	size_t	len;
	u8	data[KMSG_DATA_MAX];
};

/**
 * struct kmsg_msg - a message
 * @type: enum kmsg_type
 * @why: of a REJECT
 * @id: number of the connection
 * @side: of CONN and ACCEPT; of REJECT only @len and @data, and of CREDIT only @posted
 */
struct kmsg_msg {
	enum kmsg_type		type;
	enum kmsg_why		why;
	u32			id;
	struct kmsg_hello	side;
};

int kmsg_msg_parse(const void *buf, size_t len, bool active, struct kmsg_msg *msg);
size_t kmsg_msg_build(const struct kmsg_msg *msg, void *buf);

#endif /* KMSG_WIRE_H */
