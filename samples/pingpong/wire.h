/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Messages between the two sides, in little-endian. HELLO is the private data of a session of
 * kofi_cm, the others are its notes:
 *
 *	client			server
 *	HELLO   ->
 *			<-	HELLO		limits of each
 *	TEST    ->
 *			<-	READY		receives posted, memory registered
 *	... fi_*() ...
 *	DONE    ->				all operations of the client completed
 *			<-	DONE		those of the server completed; results
 *	... the next TEST ...
 *
 * Either side may end the session at any time.
 *
 * Messages aren't trusted: pp_wire_parse() checks each field of a message, and
 * pp_test_fits() checks whether a side supports a test. Each begins with a struct kulp_hdr.
 */
#ifndef PP_WIRE_H
#define PP_WIRE_H

#include <linux/bits.h>
#include <linux/sizes.h>
#include <linux/types.h>
#include <kofi/ulp_msg.h>

#define PP_MAGIC	0x70696b6f	/* "okip" */
#define PP_VERSION	3

#define PP_ADDR_MAX	KULP_ADDR_MAX	/* bytes of a fabric's address */
#define PP_SIZE_MAX	SZ_1G	/* bytes of an operation */
#define PP_COUNT_MAX	(1024 * 1024)	/* operations of a test */
#define PP_DEPTH_MAX	1024		/* outstanding operations */

/* A slot is a buffer and the guard bytes behind it. */
#define PP_GUARD	16
#define PP_SLOT_ALIGN	64

enum pp_type {
	PP_HELLO = 1,
	PP_TEST,
	PP_READY,
	PP_DONE,
	PP_TYPES,
};

enum pp_op {
	PP_SEND,
	PP_WRITE,
	PP_READ,
	PP_WRITEDATA,
	PP_OPS,
};

enum pp_mode {
	PP_CHECK,	/* every byte is checked */
	PP_LATENCY,	/* one at a time; a send is answered by one */
	PP_STREAM,	/* as many at a time as the depth allows */
	PP_MODES,
};

#define PP_CAN_RMA		BIT(0)
#define PP_CAN_CQ_DATA		BIT(1)
#define PP_CAN_TAGGED		BIT(2)
#define PP_CAN_LOSE		BIT(3)	/* messages are datagrams */
#define PP_CAN_CONNECT		BIT(4)	/* the endpoints are connected */
#define PP_CAN_ALL		(PP_CAN_RMA | PP_CAN_CQ_DATA | PP_CAN_TAGGED | PP_CAN_LOSE |	\
				 PP_CAN_CONNECT)

/**
 * struct pp_wire_hello - limits of a side
 * @hdr: header
 * @max_msg: largest message that the side can send and receive, in bytes
 * @max_rma: largest RMA operation in bytes
 * @memory: bytes of slots that a test may use, at least one slot
 * @depth: maximum number of outstanding operations
 * @can: PP_CAN bits
 */
struct pp_wire_hello {
	struct kulp_hdr	hdr;
	__le64	max_msg;
	__le64	max_rma;
	__le64	memory;
	__le32	depth;
	__le32	can;
} __packed;

/**
 * struct pp_wire_test - the next test
 * @hdr: header
 * @op: enum pp_op
 * @mode: enum pp_mode
 * @size: size of an operation in bytes
 * @count: number of operations
 * @depth: number of outstanding operations and of posted receives
 * @seed: seed of the data
 */
struct pp_wire_test {
	struct kulp_hdr	hdr;
	__le16	op;
	__le16	mode;
	__le32	size;
	__le32	count;
	__le32	depth;
	__le64	seed;
} __packed;

/**
 * struct pp_wire_ready - the server is ready for a test
 * @hdr: header
 * @base: remote address of the first slot, for RMA
 * @key: key of the slots' region
 */
struct pp_wire_ready {
	struct kulp_hdr	hdr;
	__le64	base;
	__le64	key;
} __packed;

/**
 * struct pp_wire_done - a side is done with a test
 * @hdr: header
 * @arrived: number of messages and remote CQ data that arrived
 * @checked: number of buffers that were checked
 * @bad: number of buffers with wrong data
 */
struct pp_wire_done {
	struct kulp_hdr	hdr;
	__le32	arrived;
	__le32	checked;
	__le32	bad;
} __packed;

/* The messages in host byte order, checked. */

struct pp_hello {
	u64	max_msg;
	u64	max_rma;
	u64	memory;
	u32	depth;
	u32	can;
};

struct pp_test {
	u16	op;	/* enum pp_op */
	u16	mode;	/* enum pp_mode */
	u32	size;
	u32	count;
	u32	depth;
	u64	seed;
};

struct pp_ready {
	u64	base;
	u64	key;
};

struct pp_done {
	u32	arrived;
	u32	checked;
	u32	bad;
};

struct pp_msg {
	enum pp_type	type;
	union {
		struct pp_hello	hello;
		struct pp_test	test;
		struct pp_ready	ready;
		struct pp_done	done;
	};
};

#define PP_WIRE_MAX	sizeof(struct pp_wire_hello)	/* longest message */

int pp_wire_parse(const void *buf, size_t len, struct pp_msg *msg);
size_t pp_wire_build(const struct pp_msg *msg, void *buf);
int pp_test_fits(const struct pp_test *test, const struct pp_hello *side);

/**
 * pp_stride() - distance between slots
 * @size: size of an operation in bytes, at most PP_SIZE_MAX
 *
 * Return: distance in bytes.
 */
static inline u32 pp_stride(u32 size)
{
	return (size + PP_GUARD + PP_SLOT_ALIGN - 1) & ~(PP_SLOT_ALIGN - 1);
}

/**
 * pp_ack_every() - number of arrivals after which the server answers
 * @test: the test
 *
 * Both sides use it to know how many receives are posted. A depth of d allows d sends
 * before the first answer, so an answer after each d/2 arrivals keeps the sender busy.
 *
 * Return: number of arrivals.
 */
static inline u32 pp_ack_every(const struct pp_test *test)
{
	return (test->depth + 1) / 2;
}

#endif /* PP_WIRE_H */
