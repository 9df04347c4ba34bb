// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Messages between the sides: pure functions, see wire.h. */
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include "wire.h"

static_assert(sizeof(struct pp_wire_hello) == 48);
static_assert(sizeof(struct pp_wire_test) == 40);
static_assert(sizeof(struct pp_wire_ready) == 32);
static_assert(sizeof(struct pp_wire_done) == 28);

#define PP_FIELD(how, msg, field) \
	KULP_FIELD(how, struct pp_wire_##msg, field, struct pp_##msg, field)
#define PP_NUMBER(msg, field)	PP_FIELD(KULP_NUMBER, msg, field)

static const struct kulp_field pp_hello_fields[] = {
	PP_NUMBER(hello, max_msg), PP_NUMBER(hello, max_rma), PP_NUMBER(hello, memory),
	PP_NUMBER(hello, depth), PP_NUMBER(hello, can),
	{}
};

static const struct kulp_field pp_test_fields[] = {
	PP_NUMBER(test, op), PP_NUMBER(test, mode), PP_NUMBER(test, size),
	PP_NUMBER(test, count), PP_NUMBER(test, depth), PP_NUMBER(test, seed),
	{}
};

/* The provider checks address and key when they are used. */
static const struct kulp_field pp_ready_fields[] = {
	PP_NUMBER(ready, base), PP_NUMBER(ready, key),
	{}
};

static const struct kulp_field pp_done_fields[] = {
	PP_NUMBER(done, arrived), PP_NUMBER(done, checked), PP_NUMBER(done, bad),
	{}
};

static bool pp_hello_ok(void *parsed, const void *tail, size_t len)
{
	const struct pp_hello *hello = parsed;

	/* There is at least one slot. */
	return hello->memory >= pp_stride(0) && hello->depth && hello->depth <= PP_DEPTH_MAX &&
	       !(hello->can & ~PP_CAN_ALL);
}

static bool pp_test_ok(void *parsed, const void *tail, size_t len)
{
	const struct pp_test *test = parsed;

	if (test->op >= PP_OPS || test->mode >= PP_MODES || test->size > PP_SIZE_MAX ||
	    !test->count || test->count > PP_COUNT_MAX || !test->depth ||
	    test->depth > PP_DEPTH_MAX || (test->mode == PP_LATENCY && test->depth != 1))
		return false;
	/* Checked RMA uses each slot once, because the target can't tell when to reuse it. */
	return test->mode != PP_CHECK || test->op == PP_SEND || test->count <= test->depth;
}

static bool pp_done_ok(void *parsed, const void *tail, size_t len)
{
	const struct pp_done *done = parsed;

	return done->arrived <= PP_COUNT_MAX && done->checked <= PP_COUNT_MAX &&
	       done->bad <= done->checked;
}

static const struct kulp_type pp_types[PP_TYPES] = {
	[PP_HELLO] = { pp_hello_fields, pp_hello_ok, sizeof(struct pp_wire_hello) },
	[PP_TEST] = { pp_test_fields, pp_test_ok, sizeof(struct pp_wire_test) },
	[PP_READY] = { pp_ready_fields, NULL, sizeof(struct pp_wire_ready) },
	[PP_DONE] = { pp_done_fields, pp_done_ok, sizeof(struct pp_wire_done) },
};

static const struct kulp_proto pp_proto = {
	.magic		= PP_MAGIC,
	.version	= PP_VERSION,
	.ntypes		= PP_TYPES,
	.types		= pp_types,
};

/**
 * pp_wire_parse() - parse a message
 * @buf: the message, aligned for its numbers
 * @len: length of the message
 * @msg: takes the message; valid on success
 *
 * Return: 0, or -EPROTO for an invalid message.
 */
int pp_wire_parse(const void *buf, size_t len, struct pp_msg *msg)
{
	u16 type;

	if (kulp_parse_hdr(&pp_proto, buf, len, &type))
		return -EPROTO;
	msg->type = type;
	return kulp_parse(&pp_proto, type, buf, len, &msg->hello);
}

/**
 * pp_wire_build() - write a message
 * @msg: the message
 * @buf: takes the message; PP_WIRE_MAX bytes, aligned for its numbers
 *
 * Return: length of the message.
 */
size_t pp_wire_build(const struct pp_msg *msg, void *buf)
{
	return kulp_build(&pp_proto, msg->type, buf, &msg->hello, NULL, 0);
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
