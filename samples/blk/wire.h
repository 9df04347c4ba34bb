/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a kofiblk client and server say to each other. Pure: no state, no
 * allocation, nothing of the kernel's but its types, so that the same file is
 * built for user space and fuzzed there. Documentation/kofiblk-protocol.rst says
 * what the messages mean and in which order they come.
 *
 * Two channels. A session is set up over TCP, by messages of a kb_net_hdr and
 * what follows it; the connection lives as long as the session, and its end is
 * the session's. Commands and replies are messages on endpoints, each whole by
 * itself, which may overtake each other. All numbers are little-endian.
 */
#ifndef KOFIBLK_WIRE_H
#define KOFIBLK_WIRE_H

#include <linux/types.h>

#define KB_MAGIC	0x4b4c424b	/* "KBLK" */
#define KB_VERSION	3

#define KB_NAME_MAX	64	/* of clients and exports, with the NUL */
#define KB_ADDR_MAX	64	/* bytes of an endpoint's address */
#define KB_QUEUES_MAX	16
#define KB_DEPTH_MAX	256	/* commands under way on a queue */
#define KB_INLINE_MAX	4096	/* bytes of data within a command */
#define KB_INLINE_READ_MAX 8192	/* and within a reply */
#define KB_IO_MAX	(4U << 20)
#define KB_NONCE	32
#define KB_MAC		32	/* HMAC-SHA-256 */
#define KB_SECRETS	2	/* that a client may have at a time */
#define KB_HOST		16	/* bytes of a host's id */
#define KB_NET_MAX	4096	/* longest message on TCP, header and all */
#define KB_OFFSET_MAX	0x8000000000000000ULL	/* no disk reaches as far */

/* Set-up, over TCP */

enum kb_net_type {
	KB_HELLO	= 1,	/* client: who I am and what I want */
	KB_CHALLENGE	= 2,	/* server: my proof, give me yours */
	KB_AUTH		= 3,	/* client: proof */
	KB_ACCEPT	= 4,	/* server: session and disk */
	KB_REJECT	= 5,	/* server: why not; then it closes */
	KB_RESIZE	= 6,	/* server: the disk's size is now another */
	KB_BYE		= 7,	/* either: the session ends on purpose */
};

struct kb_net_hdr {
	__le32	magic;
	__le16	version;
	__le16	type;
	__le32	len;		/* bytes of the message, with this header */
	__le32	reserved;	/* 0 */
};

/* What both must have said to have it: the client asks, the server grants. */
#define KB_CAP_RDMA_WRITE	0x1	/* server writes into the client's memory */
#define KB_CAP_DISCARD		0x2
#define KB_CAP_WRITE_ZEROES	0x4
#define KB_CAP_FUA		0x8
#define KB_CAP_CHECKSUM		0x10	/* commands and data that is read have one */
#define KB_CAP_IMM		0x20	/* immediate data instead of a reply; see below */
#define KB_CAPS			0x3f

struct kb_hello {
	struct kb_net_hdr hdr;
	__u8	nonce[KB_NONCE];
	char	client[KB_NAME_MAX];	/* NUL-terminated, the rest 0 */
	char	export[KB_NAME_MAX];
	__u8	host[KB_HOST];		/* the client's machine, for good; not 0 */
	__u8	content[16];		/* export's uuid of the session before, or 0 */
	__le32	caps;
	__le32	max_io;			/* bytes of a command */
	__le32	inline_max;		/* bytes of data within a command */
	__le32	keep_alive;		/* ms without a word until the session is dead */
	__le32	addr_format;		/* of endpoint addresses, FI_ADDR_* */
	__le16	queues;
	__le16	depth;			/* of each queue */
	__le16	addr_len;
	__le16	inline_read;		/* bytes of data within a reply */
	__le16	reserved[2];		/* 0 */
	/* __u8 addr[queues][addr_len] */
};

/*
 * HMAC(secret, KB_AUTH_CHALLENGE | HELLO | CHALLENGE with macs 0) for each of the
 * client's secrets, and random bytes where there is none.
 */
struct kb_challenge {
	struct kb_net_hdr hdr;
	__u8	nonce[KB_NONCE];
	__u8	macs[KB_SECRETS][KB_MAC];
	__u8	auth;			/* 1: there is a secret, 0: all MACs are 0 */
	__u8	reserved[7];		/* 0 */
};

/*
 * HMAC(secret, KB_AUTH_CLIENT | HELLO | CHALLENGE), each as it was sent. It names the
 * session in all MACs that follow, which are HMAC(secret, label | AUTH's mac |
 * the message with its mac 0), with a label for each type of message and sender.
 */
struct kb_auth {
	struct kb_net_hdr hdr;
	__u8	mac[KB_MAC];
};

#define KB_DISK_READ_ONLY	0x1
#define KB_DISK_WRITE_CACHE	0x2	/* flushes matter */
#define KB_DISK_ROTATIONAL	0x4
#define KB_DISK_FLAGS		0x7

struct kb_disk {
	__le64	bytes;
	__le32	flags;
	__le32	logical_block;		/* power of two, 512 to 4096 */
	__le32	physical_block;		/* power of two, at least logical_block */
	__le32	io_min;
	__le32	io_opt;
	__le32	discard_granularity;
	__le64	discard_max;		/* bytes; 0 without KB_CAP_DISCARD */
	__le64	zeroes_max;		/* bytes; 0 without KB_CAP_WRITE_ZEROES */
};

struct kb_accept {
	struct kb_net_hdr hdr;
	__u8	mac[KB_MAC];
	__u8	content[16];		/* export's uuid */
	__le64	session;		/* random, not 0 */
	__le64	epoch;			/* random, not 0; new when the store is opened */
	__le32	caps;			/* of those asked for */
	__le32	max_io;			/* at most what was asked for, and so on */
	__le32	inline_max;
	__le32	keep_alive;
	__le16	queues;
	__le16	depth;
	__le16	addr_len;
	__le16	inline_read;
	struct kb_disk disk;
	/* __u8 addr[queues][addr_len] */
};

struct kb_reject {
	struct kb_net_hdr hdr;
	__u8	mac[KB_MAC];		/* 0 before AUTH was checked */
	__le16	status;			/* enum kb_status */
	__u8	again;			/* 1: it may be different later */
	__u8	reserved[5];		/* 0 */
	char	why[KB_NAME_MAX];
};

struct kb_resize {
	struct kb_net_hdr hdr;
	__u8	mac[KB_MAC];
	__le64	number;			/* of the session's: 1, 2, ... */
	__le64	bytes;
};

struct kb_bye {
	struct kb_net_hdr hdr;
	__u8	mac[KB_MAC];
	__u8	again;			/* 1: come back later, 0: don't */
	__u8	flushed;		/* 1: all that had a reply is in stable storage */
	__u8	reserved[6];		/* 0 */
};

/* Commands and replies, over the fabric */

enum kb_opcode {
	KB_OP_READ		= 1,
	KB_OP_WRITE		= 2,
	KB_OP_FLUSH		= 3,
	KB_OP_DISCARD		= 4,
	KB_OP_WRITE_ZEROES	= 5,
	KB_OP_KEEP_ALIVE	= 6,
	KB_OP_FETCHED		= 7,	/* what KB_REPLY_READY offered was read */
};

#define KB_CMD_FUA	0x1	/* WRITE, WRITE_ZEROES: in stable storage */
#define KB_CMD_INLINE	0x2	/* WRITE: data follows the command; READ: the reply */
#define KB_CMD_NOUNMAP	0x4	/* WRITE_ZEROES: keep the blocks allocated */
#define KB_CMD_SUM	0x8	/* a struct kb_sum follows the command, before any data */
#define KB_CMD_IMM	0x10	/* READ, else without flags: a struct kb_imm follows it */
#define KB_CMD_FLAGS	0x1f

#define KB_REPLY_READY	0x1	/* not the last: data is at addr, to be read */
#define KB_REPLY_INLINE	0x2	/* data follows the reply */
#define KB_REPLY_SUM	0x4	/* READ: a struct kb_sum follows the reply, before any data */
#define KB_REPLY_FLAGS	0x7

/* A request: its slot on the queue, and how often the slot was used before. */
#define KB_ID(slot, gen)	((__u64)(gen) << 16 | (slot))
#define KB_ID_SLOT(id)		((__u16)(id))
#define KB_ID_GEN(id)		((id) >> 16)
/* The slot of keep-alive messages. Others are below the depth of the queue. */
#define KB_SLOT_KEEP_ALIVE	0xffff

struct kb_cmd {
	__u8	version;
	__u8	op;			/* enum kb_opcode */
	__le16	flags;
	__le16	queue;
	__le16	reserved;		/* 0 */
	__le64	session;
	__le64	id;
	__le64	offset;			/* bytes from the disk's beginning */
	__le64	bytes;			/* of the disk */
	__le64	addr;			/* READ and WRITE without INLINE: the memory */
	__le64	key;
	/* data of an INLINE write */
};

/*
 * The immediate data of the RDMA write that may be the reply to a READ, in the place of
 * a struct kb_sum: so it goes with KB_CAP_RDMA_WRITE, and without KB_CAP_CHECKSUM.
 */
struct kb_imm {
	__le32	data;
	__le32	reserved;		/* 0 */
};

struct kb_reply {
	__u8	version;
	__u8	op;			/* the command's */
	__le16	flags;
	__le16	status;			/* enum kb_status */
	__le16	queue;			/* the command's */
	__le64	session;
	__le64	id;			/* the command's */
	__le64	bytes;			/* that were moved, or that are READY */
	__le64	addr;			/* READY */
	__le64	key;
	/* data of an INLINE reply */
};

/*
 * CRC-32C of what identifies the command, followed by the data of a WRITE or, in a
 * reply, of a READ. See checksum.h.
 */
struct kb_sum {
	__le32	sum;
	__le32	reserved;		/* 0 */
};

/* Numbers of kofiblk's own, as an errno's differs between architectures. */
enum kb_status {
	KB_OK			= 0,
	KB_IO			= 1,	/* EIO, and whatever has no number here */
	KB_NOTSUPP		= 2,	/* EOPNOTSUPP */
	KB_TIMEOUT		= 3,	/* ETIMEDOUT */
	KB_NOSPC		= 4,	/* ENOSPC */
	KB_TRANSPORT		= 5,	/* ENOLINK */
	KB_TARGET		= 6,	/* EREMOTEIO */
	KB_RESV_CONFLICT	= 7,	/* EBADE */
	KB_MEDIUM		= 8,	/* ENODATA */
	KB_PROTECTION		= 9,	/* EILSEQ */
	KB_NOMEM		= 10,	/* ENOMEM */
	KB_INVAL		= 11,	/* EINVAL */
	KB_READ_ONLY		= 12,	/* EROFS */
	KB_NODEV		= 13,	/* ENODEV */
	KB_NOENT		= 14,	/* ENOENT: no such export */
	KB_ACCESS		= 15,	/* EACCES: not this client, wrong secret */
	KB_BUSY			= 16,	/* EBUSY: no room for another session */
	KB_STALE		= 17,	/* ESTALE: another disk by the same name */
	KB_PROTO		= 18,	/* EPROTO */
	KB_STATUSES,
};

/* What the parsers make of it, in the host's order, with nothing left to doubt */

#define KB_IO_MIN		4096U	/* of max_io */
#define KB_KEEP_ALIVE_MIN	100U	/* ms */
#define KB_KEEP_ALIVE_MAX	3600000U
#define KB_SECTOR		512U	/* offsets and lengths are multiples of it */
/* Longest command, longest reply: what a receive must have room for. */
#define KB_CMD_MAX(inline_max) \
	(sizeof(struct kb_cmd) + sizeof(struct kb_sum) + (inline_max))
#define KB_REPLY_MAX(inline_read) \
	(sizeof(struct kb_reply) + sizeof(struct kb_sum) + (inline_read))

/**
 * struct kb_limits - what is negotiated
 * @caps: KB_CAP bits
 * @max_io: bytes of a command, a multiple of KB_IO_MIN
 * @inline_max: bytes of data within a command
 * @keep_alive: ms without a word until the session is dead
 * @queues: 1 to KB_QUEUES_MAX
 * @depth: of each, 1 to KB_DEPTH_MAX
 * @inline_read: bytes of data within a reply
 */
struct kb_limits {
	u32	caps;
	u32	max_io;
	u32	inline_max;
	u32	keep_alive;
	u16	queues;
	u16	depth;
	u16	inline_read;
};

/**
 * struct kb_hello_msg - KB_HELLO
 * @nonce: random
 * @client: its name, which kb_name_ok() likes
 * @export: likewise
 * @host: the client's machine
 * @content: of the session before, or 0
 * @limits: that are asked for; capabilities that we don't know are left out
 * @addr_format: FI_ADDR_*
 * @addr_len: of each address
 * @addr: limits.queues of them, within the message that was parsed
 */
struct kb_hello_msg {
	u8		nonce[KB_NONCE];
	char		client[KB_NAME_MAX];
	char		export[KB_NAME_MAX];
	u8		host[KB_HOST];
	u8		content[16];
	struct kb_limits limits;
	u32		addr_format;
	u16		addr_len;
	const u8	*addr;
};

/**
 * struct kb_challenge_msg - KB_CHALLENGE
 * @nonce: random
 * @macs: the server's proofs, one for each secret that the client may have
 * @auth: there is a secret
 */
struct kb_challenge_msg {
	u8	nonce[KB_NONCE];
	u8	macs[KB_SECRETS][KB_MAC];
	bool	auth;
};

/**
 * struct kb_auth_msg - KB_AUTH
 * @mac: the client's proof
 */
struct kb_auth_msg {
	u8	mac[KB_MAC];
};

/**
 * struct kb_disk_msg - the disk, as struct kb_disk
 * @bytes: its size, a multiple of @logical_block
 * @flags: KB_DISK bits
 * @logical_block: a power of two
 * @physical_block: likewise
 * @io_min: bytes
 * @io_opt: bytes, or 0
 * @discard_granularity: bytes, or 0
 * @discard_max: bytes, or 0
 * @zeroes_max: bytes, or 0
 */
struct kb_disk_msg {
	u64	bytes;
	u32	flags;
	u32	logical_block;
	u32	physical_block;
	u32	io_min;
	u32	io_opt;
	u32	discard_granularity;
	u64	discard_max;
	u64	zeroes_max;
};

/**
 * struct kb_accept_msg - KB_ACCEPT
 * @mac: the server's proof
 * @content: the export's uuid
 * @session: not 0
 * @epoch: not 0, another one each time that the store was opened
 * @limits: that are granted. Whether that is no more than was asked for is
 *	what kb_limits_within() says
 * @addr_len: of each address
 * @addr: limits.queues of them, within the message that was parsed
 * @disk: the disk
 */
struct kb_accept_msg {
	u8		mac[KB_MAC];
	u8		content[16];
	u64		session;
	u64		epoch;
	struct kb_limits limits;
	u16		addr_len;
	const u8	*addr;
	struct kb_disk_msg disk;
};

/**
 * struct kb_reject_msg - KB_REJECT
 * @mac: the server's proof, or 0
 * @status: not KB_OK
 * @again: it may be different later
 * @why: printable text, may be empty
 */
struct kb_reject_msg {
	u8	mac[KB_MAC];
	u16	status;
	bool	again;
	char	why[KB_NAME_MAX];
};

/**
 * struct kb_resize_msg - KB_RESIZE
 * @mac: the server's proof
 * @number: how many were sent in the session, with this
 * @bytes: the disk's size. Only the session knows whether it is whole blocks
 */
struct kb_resize_msg {
	u8	mac[KB_MAC];
	u64	number;
	u64	bytes;
};

/**
 * struct kb_bye_msg - KB_BYE
 * @mac: the sender's proof
 * @again: come back later
 * @flushed: from a server: all that had a reply is in stable storage
 */
struct kb_bye_msg {
	u8	mac[KB_MAC];
	bool	again;
	bool	flushed;
};

/**
 * struct kb_cmd_msg - a command
 * @op: enum kb_opcode
 * @flags: KB_CMD bits that go with @op
 * @queue: below KB_QUEUES_MAX
 * @session: not 0
 * @id: whose slot is below KB_DEPTH_MAX, but for KB_OP_KEEP_ALIVE
 * @offset: a multiple of KB_SECTOR
 * @bytes: likewise; @offset and @bytes together are below 2^63
 * @addr: where the client has or wants the data
 * @key: its key
 * @sum: with KB_CMD_SUM, else 0
 * @imm: with KB_CMD_IMM, else 0
 * @data: @bytes of an inline write, within the message that was parsed; or NULL
 */
struct kb_cmd_msg {
	u8		op;
	u16		flags;
	u16		queue;
	u64		session;
	u64		id;
	u64		offset;
	u64		bytes;
	u64		addr;
	u64		key;
	u32		sum;
	u32		imm;
	const void	*data;
};

/**
 * struct kb_reply_msg - a reply
 * @op: enum kb_opcode, not KB_OP_FETCHED
 * @flags: KB_REPLY bits that go with @op
 * @status: below KB_STATUSES
 * @queue: below KB_QUEUES_MAX
 * @session: not 0
 * @id: as in struct kb_cmd_msg
 * @bytes: 0 unless @status is KB_OK and data is moved by @op
 * @addr: 0 without KB_REPLY_READY
 * @key: likewise
 * @sum: with KB_REPLY_SUM, else 0
 * @data: @bytes with KB_REPLY_INLINE, within the message that was parsed; or NULL
 */
struct kb_reply_msg {
	u8	op;
	u16	flags;
	u16	status;
	u16	queue;
	u64	session;
	u64	id;
	u64	bytes;
	u64	addr;
	u64	key;
	u32	sum;
	const void *data;
};

/*
 * Parsers get all of a message and return 0, or -EPROTO for one that can't be
 * right; then @msg is of no use. kb_parse_net() tells another version by
 * -EPROTONOSUPPORT. Builders get what a parser would accept and room
 * for KB_NET_MAX, KB_CMD_MAX(0) or KB_REPLY_MAX(0) bytes, and return the message's
 * length; data that goes with it is put behind it. None sleeps or allocates.
 */
int kb_parse_net(const void *buf, size_t len, u16 *type, size_t *whole);
int kb_parse_hello(const void *buf, size_t len, struct kb_hello_msg *msg);
int kb_parse_challenge(const void *buf, size_t len,
		       struct kb_challenge_msg *msg);
int kb_parse_auth(const void *buf, size_t len, struct kb_auth_msg *msg);
int kb_parse_accept(const void *buf, size_t len, struct kb_accept_msg *msg);
int kb_parse_reject(const void *buf, size_t len, struct kb_reject_msg *msg);
int kb_parse_resize(const void *buf, size_t len, struct kb_resize_msg *msg);
int kb_parse_bye(const void *buf, size_t len, struct kb_bye_msg *msg);
int kb_parse_cmd(const void *buf, size_t len, struct kb_cmd_msg *msg);
int kb_parse_reply(const void *buf, size_t len, struct kb_reply_msg *msg);

size_t kb_build_hello(void *buf, const struct kb_hello_msg *msg);
size_t kb_build_challenge(void *buf, const struct kb_challenge_msg *msg);
size_t kb_build_auth(void *buf, const struct kb_auth_msg *msg);
size_t kb_build_accept(void *buf, const struct kb_accept_msg *msg);
size_t kb_build_reject(void *buf, const struct kb_reject_msg *msg);
size_t kb_build_resize(void *buf, const struct kb_resize_msg *msg);
size_t kb_build_bye(void *buf, const struct kb_bye_msg *msg);
size_t kb_build_cmd(void *buf, const struct kb_cmd_msg *msg);
size_t kb_build_reply(void *buf, const struct kb_reply_msg *msg);

bool kb_name_ok(const char *name);
bool kb_limits_within(const struct kb_limits *granted,
		      const struct kb_limits *asked);
int kb_status_errno(u16 status);
u16 kb_errno_status(int err);
const char *kb_op_name(u8 op);
const char *kb_net_type_name(u16 type);

#endif /* KOFIBLK_WIRE_H */
