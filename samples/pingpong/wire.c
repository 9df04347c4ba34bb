// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Messages over TCP: pure functions, see wire.h. */
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "wire.h"

static_assert(sizeof(struct pp_wire_header) == 12);
static_assert(sizeof(struct pp_wire_hello) == 100);
static_assert(sizeof(struct pp_wire_test) == 24);
static_assert(sizeof(struct pp_wire_ready) == 16);
static_assert(sizeof(struct pp_wire_done) == 12);
static_assert(sizeof(struct pp_wire_bye) == 4);

static int pp_parse_hello(const void *buf, struct pp_msg *msg)
{
	const struct pp_wire_hello *wire = buf;
	struct pp_hello *hello = &msg->hello;

	hello->max_msg = le64_to_cpu(wire->max_msg);
	hello->max_rma = le64_to_cpu(wire->max_rma);
	hello->memory = le64_to_cpu(wire->memory);
	hello->depth = le32_to_cpu(wire->depth);
	hello->can = le32_to_cpu(wire->can);
	hello->addrlen = le32_to_cpu(wire->addrlen);
	if (!hello->memory || !hello->depth || hello->depth > PP_DEPTH_MAX ||
	    hello->can & ~PP_CAN_ALL)
		return -EPROTO;
	if (!hello->addrlen || hello->addrlen > PP_ADDR_MAX ||
	    memchr_inv(wire->addr + hello->addrlen, 0,
		       PP_ADDR_MAX - hello->addrlen))
		return -EPROTO;
	memcpy(hello->addr, wire->addr, PP_ADDR_MAX);
	return 0;
}

static void pp_build_hello(const struct pp_msg *msg, void *buf)
{
	const struct pp_hello *hello = &msg->hello;
	struct pp_wire_hello *wire = buf;

	wire->max_msg = cpu_to_le64(hello->max_msg);
	wire->max_rma = cpu_to_le64(hello->max_rma);
	wire->memory = cpu_to_le64(hello->memory);
	wire->depth = cpu_to_le32(hello->depth);
	wire->can = cpu_to_le32(hello->can);
	wire->addrlen = cpu_to_le32(hello->addrlen);
	memcpy(wire->addr, hello->addr, PP_ADDR_MAX);
}

static int pp_parse_test(const void *buf, struct pp_msg *msg)
{
	const struct pp_wire_test *wire = buf;
	struct pp_test *test = &msg->test;

	test->op = le16_to_cpu(wire->op);
	test->mode = le16_to_cpu(wire->mode);
	test->size = le32_to_cpu(wire->size);
	test->count = le32_to_cpu(wire->count);
	test->depth = le32_to_cpu(wire->depth);
	test->seed = le64_to_cpu(wire->seed);
	if (test->op >= PP_OPS || test->mode >= PP_MODES ||
	    test->size > PP_SIZE_MAX || !test->count ||
	    test->count > PP_COUNT_MAX || !test->depth ||
	    test->depth > PP_DEPTH_MAX)
		return -EPROTO;
	if (test->mode == PP_LATENCY && test->depth != 1)
		return -EPROTO;
	/* Checked RMA uses each slot once, because the target can't tell when to reuse it. */
	if (test->mode == PP_CHECK && test->op != PP_SEND &&
	    test->count > test->depth)
		return -EPROTO;
	return 0;
}

static void pp_build_test(const struct pp_msg *msg, void *buf)
{
	const struct pp_test *test = &msg->test;
	struct pp_wire_test *wire = buf;

	wire->op = cpu_to_le16(test->op);
	wire->mode = cpu_to_le16(test->mode);
	wire->size = cpu_to_le32(test->size);
	wire->count = cpu_to_le32(test->count);
	wire->depth = cpu_to_le32(test->depth);
	wire->seed = cpu_to_le64(test->seed);
}

/* The provider checks address and key when they are used. */
static int pp_parse_ready(const void *buf, struct pp_msg *msg)
{
	const struct pp_wire_ready *wire = buf;

	msg->ready.base = le64_to_cpu(wire->base);
	msg->ready.key = le64_to_cpu(wire->key);
	return 0;
}

static void pp_build_ready(const struct pp_msg *msg, void *buf)
{
	struct pp_wire_ready *wire = buf;

	wire->base = cpu_to_le64(msg->ready.base);
	wire->key = cpu_to_le64(msg->ready.key);
}

static int pp_parse_done(const void *buf, struct pp_msg *msg)
{
	const struct pp_wire_done *wire = buf;
	struct pp_done *done = &msg->done;

	done->arrived = le32_to_cpu(wire->arrived);
	done->checked = le32_to_cpu(wire->checked);
	done->bad = le32_to_cpu(wire->bad);
	if (done->arrived > PP_COUNT_MAX || done->checked > PP_COUNT_MAX ||
	    done->bad > done->checked)
		return -EPROTO;
	return 0;
}

static void pp_build_done(const struct pp_msg *msg, void *buf)
{
	struct pp_wire_done *wire = buf;

	wire->arrived = cpu_to_le32(msg->done.arrived);
	wire->checked = cpu_to_le32(msg->done.checked);
	wire->bad = cpu_to_le32(msg->done.bad);
}

static int pp_parse_bye(const void *buf, struct pp_msg *msg)
{
	const struct pp_wire_bye *wire = buf;

	msg->bye.reason = le32_to_cpu(wire->reason);
	return msg->bye.reason < PP_REASONS ? 0 : -EPROTO;
}

static void pp_build_bye(const struct pp_msg *msg, void *buf)
{
	struct pp_wire_bye *wire = buf;

	wire->reason = cpu_to_le32(msg->bye.reason);
}

/* Messages by type. Type 0 doesn't exist. */
static const struct {
	size_t	size;
	int	(*parse)(const void *buf, struct pp_msg *msg);
	void	(*build)(const struct pp_msg *msg, void *buf);
} pp_types[PP_TYPES] = {
	[PP_HELLO] = { sizeof(struct pp_wire_hello), pp_parse_hello,
		       pp_build_hello },
	[PP_TEST] = { sizeof(struct pp_wire_test), pp_parse_test,
		      pp_build_test },
	[PP_READY] = { sizeof(struct pp_wire_ready), pp_parse_ready,
		       pp_build_ready },
	[PP_DONE] = { sizeof(struct pp_wire_done), pp_parse_done,
		      pp_build_done },
	[PP_BYE] = { sizeof(struct pp_wire_bye), pp_parse_bye, pp_build_bye },
};

/**
 * pp_wire_body() - length of the body after a header
 * @buf: bytes of a struct pp_wire_header
 *
 * Return: length in bytes, or -EPROTO for an invalid header.
 */
int pp_wire_body(const void *buf)
{
	const struct pp_wire_header *wire = buf;
	u16 type = le16_to_cpu(wire->type);

	if (wire->magic != cpu_to_le32(PP_MAGIC) ||
	    wire->version != cpu_to_le16(PP_VERSION) ||
	    !type || type >= PP_TYPES ||
	    le32_to_cpu(wire->length) != pp_types[type].size)
		return -EPROTO;
	return pp_types[type].size;
}

/**
 * pp_wire_parse() - parse a message
 * @buf: header and body
 * @len: length of header and body
 * @msg: takes the message; valid on success
 *
 * Return: 0, or -EPROTO for an invalid message.
 */
int pp_wire_parse(const void *buf, size_t len, struct pp_msg *msg)
{
	const struct pp_wire_header *wire = buf;
	int body;

	if (len < sizeof(*wire))
		return -EPROTO;
	body = pp_wire_body(wire);
	if (body < 0 || len != sizeof(*wire) + body)
		return -EPROTO;
	msg->type = le16_to_cpu(wire->type);
	return pp_types[msg->type].parse(wire + 1, msg);
}

/**
 * pp_wire_build() - write a message
 * @msg: the message
 * @buf: takes the message; PP_WIRE_MAX bytes
 *
 * Return: length of the message.
 */
size_t pp_wire_build(const struct pp_msg *msg, void *buf)
{
	struct pp_wire_header *wire = buf;

	wire->magic = cpu_to_le32(PP_MAGIC);
	wire->version = cpu_to_le16(PP_VERSION);
	wire->type = cpu_to_le16(msg->type);
	wire->length = cpu_to_le32(pp_types[msg->type].size);
	pp_types[msg->type].build(msg, wire + 1);
	return sizeof(*wire) + pp_types[msg->type].size;
}

/**
 * pp_test_fits() - check whether a side supports a test
 * @test: the test
 * @side: HELLO of the side
 *
 * Return: 0, -EMSGSIZE if the side has too little room, -EOPNOTSUPP for an
 * operation that it doesn't support.
 */
int pp_test_fits(const struct pp_test *test, const struct pp_hello *side)
{
	bool rma = test->op != PP_SEND;

	if (rma && !(side->can & PP_CAN_RMA))
		return -EOPNOTSUPP;
	if (test->op == PP_WRITEDATA && !(side->can & PP_CAN_CQ_DATA))
		return -EOPNOTSUPP;
	if (test->size > (rma ? side->max_rma : side->max_msg) ||
	    test->depth > side->depth ||
	    (u64)pp_stride(test->size) * test->depth > side->memory)
		return -EMSGSIZE;
	return 0;
}
