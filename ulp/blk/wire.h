/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Wire format of kofiblk, see Documentation/kofiblk-protocol.rst. Pure functions without state or
 * allocation, which need only types of the kernel, so that the same files can be built in user
 * space for fuzzing. All numbers are little-endian.
 */
#ifndef KOFIBLK_WIRE_H
#define KOFIBLK_WIRE_H

#include <linux/types.h>
#include <kofi/ulp_msg.h>

#define KOFIBLK_MAGIC		0x4b4c424b	/* "KBLK" */
#define KOFIBLK_VERSION		6

#define KOFIBLK_NAME_MAX	64	/* of clients and exports, with the NUL */
#define KOFIBLK_QUEUES_MAX	16
#define KOFIBLK_DEPTH_MAX	256	/* outstanding commands of a queue */
#define KOFIBLK_INLINE_MAX	4096	/* bytes of inline data of a command */
#define KOFIBLK_INLINE_READ_MAX	8192	/* bytes of inline data of a reply */
#define KOFIBLK_IO_MAX		(4U << 20)
#define KOFIBLK_HOST		16	/* bytes of a host ID */
#define KOFIBLK_OFFSET_MAX	0x8000000000000000ULL	/* all ranges end below this offset */

/* Private data, notes and reasons of a session of kofi_cm, whose version is KOFIBLK_VERSION */

#define KOFIBLK_SERVICE		"kofiblk"
#define KOFIBLK_REPLACE_MS	20000	/* time for the end of a client's earlier session */

enum kofiblk_net_type {
	KOFIBLK_HELLO		= 1,	/* client: requested limits */
	KOFIBLK_ACCEPT		= 2,	/* server: granted limits, disk */
	KOFIBLK_RESIZE		= 3,	/* server, as a note: the disk's size has changed */
	KOFIBLK_BYE		= 4,	/* server, with a BYE */
};

/* Capabilities, in effect if the client asks for them and the server grants them. */
#define KOFIBLK_CAP_RDMA_WRITE		0x1	/* server writes into the client's memory */
#define KOFIBLK_CAP_DISCARD		0x2
#define KOFIBLK_CAP_WRITE_ZEROES	0x4
#define KOFIBLK_CAP_FUA			0x8
#define KOFIBLK_CAP_CHECKSUM		0x10	/* commands and last replies to READ have one */
#define KOFIBLK_CAP_IMM			0x20	/* immediate data instead of a reply; see below */
#define KOFIBLK_CAPS			0x3f

/* The client's name, export, host and addresses, one of them for each queue, are kofi_cm's. */
struct kofiblk_hello {
	struct kulp_hdr hdr;
	__u8	content[16];		/* UUID of the export in the last session, or 0 */
	__le32	caps;
	__le32	max_io;			/* bytes of a command */
	__le32	inline_max;		/* bytes of inline data of a command */
	__le32	keep_alive;		/* time-out in ms for messages over the fabric */
	__le16	queues;
	__le16	depth;			/* of each queue */
	__le16	inline_read;		/* bytes of inline data of a reply */
	__le16	reserved;		/* 0 */
	__le32	protocol;		/* of endpoints, kulp_fabric_protocol() */
	__le32	reserved2;		/* 0 */
};

#define KOFIBLK_DISK_READ_ONLY		0x1
#define KOFIBLK_DISK_WRITE_CACHE	0x2	/* written data needs a flush to be stable */
#define KOFIBLK_DISK_ROTATIONAL		0x4
#define KOFIBLK_DISK_FLAGS		0x7

struct kofiblk_disk {
	__le64	bytes;
	__le32	flags;
	__le32	logical_block;		/* power of two, 512 to 4096 */
	__le32	physical_block;		/* power of two, at least logical_block */
	__le32	io_min;
	__le32	io_opt;
	__le32	discard_granularity;
	__le64	discard_max;		/* bytes; 0 without KOFIBLK_CAP_DISCARD */
	__le64	zeroes_max;		/* bytes; 0 without KOFIBLK_CAP_WRITE_ZEROES */
};

struct kofiblk_accept {
	struct kulp_hdr hdr;
	__u8	content[16];		/* UUID of the export */
	__le64	epoch;			/* random, not 0; new when the store is opened */
	__le32	caps;			/* a subset of those in HELLO */
	__le32	max_io;			/* at most that in HELLO, as all limits below */
	__le32	inline_max;
	__le32	keep_alive;
	__le16	queues;
	__le16	depth;
	__le16	inline_read;
	__le16	reserved;		/* 0 */
	struct kofiblk_disk disk;
};

struct kofiblk_resize {
	struct kulp_hdr hdr;
	__le64	bytes;
};

struct kofiblk_bye {
	struct kulp_hdr hdr;
	__u8	flushed;		/* 1: all writes with a reply are in stable storage */
	__u8	reserved[7];		/* 0 */
};

/* Commands and replies, over the fabric */

/* No enum, because user space gets the numbers in the format of trace events. */
#define KOFIBLK_OP_READ		1
#define KOFIBLK_OP_WRITE	2
#define KOFIBLK_OP_FLUSH	3
#define KOFIBLK_OP_DISCARD	4
#define KOFIBLK_OP_WRITE_ZEROES	5
#define KOFIBLK_OP_KEEP_ALIVE	6
#define KOFIBLK_OP_FETCHED	7	/* the data that a reply offered as READY was read */
#define KOFIBLK_OP_PROVE	8	/* first on each queue: exchanges the nonces of tags */

/* For trace events. */
#define KOFIBLK_SHOW_OP(op)								\
	__print_symbolic(op, { KOFIBLK_OP_READ, "read" }, { KOFIBLK_OP_WRITE, "write" },	\
			 { KOFIBLK_OP_FLUSH, "flush" }, { KOFIBLK_OP_DISCARD, "discard" },	\
			 { KOFIBLK_OP_WRITE_ZEROES, "write_zeroes" },			\
			 { KOFIBLK_OP_KEEP_ALIVE, "keep_alive" }, \
			 { KOFIBLK_OP_FETCHED, "fetched" }, { KOFIBLK_OP_PROVE, "prove" })

#define KOFIBLK_CMD_FUA		0x1	/* WRITE, WRITE_ZEROES: reply when the data is stable */
#define KOFIBLK_CMD_INLINE	0x2	/* WRITE: data follows; READ: data follows the reply */
#define KOFIBLK_CMD_NOUNMAP	0x4	/* WRITE_ZEROES: keep the blocks allocated */
#define KOFIBLK_CMD_SUM		0x8	/* a struct kofiblk_word follows, before any data */
#define KOFIBLK_CMD_IMM		0x10	/* READ, as the only flag: a struct kofiblk_word follows */

#define KOFIBLK_REPLY_READY	0x1	/* data is at addr, to be fetched; another reply follows */
#define KOFIBLK_REPLY_INLINE	0x2	/* data follows the reply */
#define KOFIBLK_REPLY_SUM	0x4	/* READ: a struct kofiblk_word follows, before any data */
#define KOFIBLK_REPLY_FLAGS	0x7

/* ID of a request: its slot on the queue, and the generation of the slot. */
#define KOFIBLK_ID(slot, gen)	((__u64)(gen) << 16 | (slot))
#define KOFIBLK_ID_SLOT(id)	((__u16)(id))
#define KOFIBLK_ID_GEN(id)	((id) >> 16)
/* The slot of KEEP_ALIVE and PROVE. All other slots are below the depth of the queue. */
#define KOFIBLK_SLOT_KEEP_ALIVE	0xffff

struct kofiblk_cmd {
	__u8	version;
	__u8	op;			/* KOFIBLK_OP_* */
	__le16	flags;
	__le16	queue;
	__le16	reserved;		/* 0 */
	__le64	session;
	__le64	id;
	__le64	offset;			/* bytes from the disk's beginning */
	__le64	bytes;			/* length of the range */
	__le64	addr;			/* READ and WRITE without INLINE: the memory */
	__le64	key;			/* the same; or the nonce of a PROVE */
	__le64	tag;			/* see tag.h */
	/* data of an INLINE write */
};

struct kofiblk_reply {
	__u8	version;
	__u8	op;			/* op of the command */
	__le16	flags;
	__le16	status;			/* enum kulp_status */
	__le16	queue;			/* queue of the command */
	__le64	session;
	__le64	id;			/* id of the command */
	__le64	bytes;			/* bytes that were moved, or are READY */
	__le64	addr;			/* with READY, where the data is */
	__le64	key;			/* the same; or the nonce of a PROVE */
	__le64	tag;			/* see tag.h */
	/* data of an INLINE reply */
};

/*
 * After a command with KOFIBLK_CMD_SUM or a reply with KOFIBLK_REPLY_SUM, a CRC-32C: see
 * checksum.h. After a command with KOFIBLK_CMD_IMM, the immediate data of the RDMA write that
 * replies to it. So KOFIBLK_CAP_IMM needs KOFIBLK_CAP_RDMA_WRITE and excludes KOFIBLK_CAP_CHECKSUM.
 */
struct kofiblk_word {
	__le32	value;
	__le32	reserved;		/* 0 */
};

/* Parsed messages, in host byte order, with all fields checked */

#define KOFIBLK_IO_MIN		4096U	/* of max_io */
#define KOFIBLK_KEEP_ALIVE_MIN	100U	/* ms */
#define KOFIBLK_KEEP_ALIVE_MAX	3600000U
#define KOFIBLK_SECTOR		512U	/* offsets and lengths are multiples of it */
/* Longest command and longest reply, the minimum sizes of receive buffers. */
#define KOFIBLK_CMD_MAX(inline_max) \
	(sizeof(struct kofiblk_cmd) + sizeof(struct kofiblk_word) + (inline_max))
#define KOFIBLK_REPLY_MAX(inline_read) \
	(sizeof(struct kofiblk_reply) + sizeof(struct kofiblk_word) + (inline_read))

struct kofiblk_limits {
	u32	caps;		/* KOFIBLK_CAP bits */
	u32	max_io;		/* bytes of a command, a multiple of KOFIBLK_IO_MIN */
	u32	inline_max;
	u32	keep_alive;	/* ms */
	u16	queues;		/* 1 to KOFIBLK_QUEUES_MAX */
	u16	depth;		/* 1 to KOFIBLK_DEPTH_MAX */
	u16	inline_read;
};

/* Return: true if no limit of @granted exceeds that of @asked. */
static inline bool kofiblk_limits_within(const struct kofiblk_limits *granted,
					 const struct kofiblk_limits *asked)
{
	return !(granted->caps & ~asked->caps) && granted->max_io <= asked->max_io &&
	       granted->inline_max <= asked->inline_max &&
	       granted->inline_read <= asked->inline_read &&
	       granted->keep_alive <= asked->keep_alive && granted->queues <= asked->queues &&
	       granted->depth <= asked->depth;
}

struct kofiblk_hello_msg {
	u8		content[16];
	struct kofiblk_limits limits;	/* without unknown capabilities */
	u32		protocol;
};

struct kofiblk_disk_msg {
	u64	bytes;		/* a multiple of @logical_block, as all but @physical_block */
	u32	flags;
	u32	logical_block;
	u32	physical_block;
	u32	io_min;
	u32	io_opt;
	u32	discard_granularity;
	u64	discard_max;
	u64	zeroes_max;
};

struct kofiblk_accept_msg {
	u8		content[16];
	u64		epoch;
	struct kofiblk_limits limits;	/* not yet compared by kofiblk_limits_within() */
	struct kofiblk_disk_msg disk;
};

struct kofiblk_resize_msg {
	u64	bytes;		/* not checked to be a multiple of the block size */
};

struct kofiblk_bye_msg {
	bool	flushed;
};

struct kofiblk_cmd_msg {
	u8		op;
	u16		flags;		/* valid for @op */
	u16		queue;		/* below KOFIBLK_QUEUES_MAX */
	u64		session;
	u64		id;		/* slot below KOFIBLK_DEPTH_MAX, or KEEP_ALIVE's */
	u64		offset;		/* the range is in sectors, and ends below 2^63 */
	u64		bytes;
	u64		addr;
	u64		key;
	u64		tag;		/* unchecked */
	u32		sum;		/* 0 without KOFIBLK_CMD_SUM */
	u32		imm;		/* 0 without KOFIBLK_CMD_IMM */
	const void	*data;		/* @bytes of an inline write, within the parsed message */
};

struct kofiblk_reply_msg {
	u8	op;		/* not KOFIBLK_OP_FETCHED */
	u16		flags;		/* valid for @op */
	u16	status;
	u16		queue;		/* below KOFIBLK_QUEUES_MAX */
	u64		session;
	u64	id;
	u64	bytes;		/* 0 unless @status is KULP_STS_OK */
	u64	addr;		/* 0 without KOFIBLK_REPLY_READY, as @key but for PROVE */
	u64		key;
	u64		tag;		/* unchecked */
	u32	sum;		/* 0 without KOFIBLK_REPLY_SUM */
	const void *data;	/* with KOFIBLK_REPLY_INLINE, within the parsed message; or NULL */
};

/*
 * Parsers take a whole message and return 0, or -EPROTO for an invalid one, after which @msg is
 * undefined. Builders take what a parser would accept and room for the message, KOFIBLK_CMD_MAX(0)
 * or KOFIBLK_REPLY_MAX(0) bytes, and return its length; the caller appends inline data.
 */
extern const struct kulp_proto kofiblk_proto;

#define KOFIBLK_MESSAGE(type, name)							\
static inline int kofiblk_parse_##name(const void *buf, size_t len,			\
				       struct kofiblk_##name##_msg *msg)		\
{											\
	return kulp_parse(&kofiblk_proto, type, buf, len, msg);				\
}											\
											\
static inline size_t kofiblk_build_##name(void *buf, const struct kofiblk_##name##_msg *msg) \
{											\
	return kulp_build(&kofiblk_proto, type, buf, msg, NULL, 0);			\
}

KOFIBLK_MESSAGE(KOFIBLK_HELLO, hello)
KOFIBLK_MESSAGE(KOFIBLK_ACCEPT, accept)
KOFIBLK_MESSAGE(KOFIBLK_RESIZE, resize)
KOFIBLK_MESSAGE(KOFIBLK_BYE, bye)

int kofiblk_parse_cmd(const void *buf, size_t len, struct kofiblk_cmd_msg *msg);
int kofiblk_parse_reply(const void *buf, size_t len, struct kofiblk_reply_msg *msg);

size_t kofiblk_build_cmd(void *buf, const struct kofiblk_cmd_msg *msg);
size_t kofiblk_build_reply(void *buf, const struct kofiblk_reply_msg *msg);

bool kofiblk_name_ok(const char *name);
const char *kofiblk_op_name(u8 op);

#endif /* KOFIBLK_WIRE_H */
