// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The client runs the tests: each operation at each size, first with every byte
 * checked, then one at a time, then as many at a time as the depth allows.
 */
#include <linux/math64.h>
#include <linux/random.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include "pingpong.h"

/* A measurement transfers this many bytes, but has at least PP_FEWEST operations. */
#define PP_BUDGET	SZ_16M
#define PP_FEWEST	8

/**
 * struct pp_plan - the tests of a client
 * @limit: largest operation of each kind that both sides support
 * @seed: seed of the next test's data
 * @samples: pp_config.iterations latencies
 */
struct pp_plan {
	u32	limit[PP_OPS];
	u64	seed;
	u32	*samples;
};

static void pp_client_flow(struct pp_session *s, const struct pp_test *test,
			   u32 *samples)
{
	struct pp_flow *flow = &s->flow;

	*flow = (struct pp_flow) {
		.test		= *test,
		.op		= test->op,
		.check		= test->mode == PP_CHECK,
		.tx_size	= test->size,
		.tx_total	= test->count,
		.tx_start	= test->count,
		.rx_needed	= true,
		.per		= 1,
		.tx_seed	= test->seed,
		.rx_seed	= ~test->seed,
		.samples	= test->mode == PP_LATENCY ? samples : NULL,
	};
	if (test->op == PP_SEND && test->mode != PP_STREAM)
		flow->rx_size = test->size;
	if (test->op == PP_SEND || test->op == PP_WRITEDATA) {
		flow->tx_start = test->depth;
		flow->grant = pp_ack_every(test);
		flow->rx_total = test->count / flow->grant;
	}
	/* At most two answers are outstanding at a time. */
	pp_flow_sides(s, test->depth, min(test->depth, 2U), flow->rx_size);
}

/* Combine the results of both sides. */
static int pp_client_done(struct pp_session *s, const struct pp_done *done,
			  struct pp_row *row)
{
	const struct pp_flow *flow = &s->flow;
	bool arrives = flow->test.op == PP_SEND ||
		       flow->test.op == PP_WRITEDATA;

	pp_report_flow(s);
	row->checked += flow->checked + done->checked;
	row->bad += flow->bad + done->bad;
	if (done->arrived == (arrives ? flow->test.count : 0))
		return 0;
	if (s->lossy && done->arrived < flow->test.count) {
		pp_report_lost(s, flow->test.count - done->arrived);
		return 0;
	}
	pp_report_error(s->inst, -EIO, "%s of %u bytes: %u of %u messages arrived",
			pp_op_names[flow->test.op], flow->test.size,
			done->arrived, flow->test.count);
	return -EIO;
}

static int pp_client_test(struct pp_session *s, const struct pp_test *test,
			  u32 *samples, struct pp_row *row)
{
	struct pp_msg msg = { .type = PP_TEST, .test = *test };
	struct pp_msg done = { .type = PP_DONE };
	ktime_t start;
	int ret;

	pp_client_flow(s, test, samples);
	ret = pp_flow_start(s) ?: pp_msg_send(s, &msg) ?:
	      pp_msg_expect(s, PP_READY, &msg);
	if (ret)
		return ret;
	s->flow.base = msg.ready.base;
	s->flow.key = msg.ready.key;

	start = ktime_get();
	ret = pp_flow_run(s);
	if (test->mode == PP_STREAM) {
		row->stream_ns = ktime_to_ns(ktime_sub(ktime_get(), start));
		row->streamed = test->count;
	}
	ret = ret ?: pp_msg_send(s, &done) ?: pp_msg_expect(s, PP_DONE, &msg);
	return ret ?: pp_client_done(s, &msg.done, row);
}

static int pp_compare(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

static void pp_client_latency(struct pp_row *row, u32 *samples, u32 n)
{
	u64 sum = 0;
	u32 i;

	if (!n)
		return;
	sort(samples, n, sizeof(*samples), pp_compare, NULL);
	for (i = 0; i < n; i++)
		sum += samples[i];
	row->samples = n;
	row->median = samples[n / 2];
	row->p99 = samples[n - 1 - n / 100];
	row->mean = div_u64(sum, n);
}

static u32 pp_client_depth(const struct pp_session *s, u32 size)
{
	u64 memory = min(s->self.memory, s->peer.memory);

	return min3((u64)min(s->self.depth, s->peer.depth),
		    div_u64(memory, pp_stride(size)), (u64)PP_DEPTH_MAX);
}

static int pp_client_size(struct pp_session *s, struct pp_plan *plan,
			  enum pp_op op, u32 size)
{
	struct pp_row row = { .op = op, .size = size };
	struct pp_test test = { .op = op, .size = size };
	u32 depth = pp_client_depth(s, size);
	int ret = 0;

	for (test.mode = 0; test.mode < PP_MODES && !ret; test.mode++) {
		if (test.mode == PP_CHECK && !pp_config.check)
			continue;
		test.seed = plan->seed++;
		test.depth = test.mode == PP_LATENCY ? 1 : depth;
		test.count = min_t(u32, pp_config.iterations,
				   max_t(u32, PP_FEWEST,
					 PP_BUDGET / (size ?: 1)));
		if (test.mode == PP_CHECK && op != PP_SEND)
			test.count = depth;
		ret = pp_client_test(s, &test, plan->samples, &row);
		if (!ret && test.mode == PP_LATENCY)
			pp_client_latency(&row, plan->samples,
					  s->flow.nsamples);
	}
	pp_report_row(s->inst, &row);
	return ret;
}

static bool pp_client_wants(enum pp_op op)
{
	int i;

	for (i = 0; i < pp_config.nops; i++)
		if (pp_op_named(pp_config.ops[i]) == op)
			return true;
	return !pp_config.nops;
}

static bool pp_client_can(const struct pp_session *s, enum pp_op op)
{
	u32 can = s->self.can & s->peer.can;

	switch (op) {
	case PP_SEND:
		return true;
	case PP_WRITEDATA:
		return can & PP_CAN_RMA && can & PP_CAN_CQ_DATA;
	default:
		return can & PP_CAN_RMA;
	}
}

static u32 pp_client_limit(const struct pp_session *s, enum pp_op op)
{
	const u64 memory = min(s->self.memory, s->peer.memory);
	u64 limit = op == PP_SEND ? min(s->self.max_msg, s->peer.max_msg) :
				    min(s->self.max_rma, s->peer.max_rma);

	/* There is at least one slot of this size. */
	limit = min3(limit, round_down(memory, PP_SLOT_ALIGN) - PP_GUARD, (u64)PP_SIZE_MAX);
	return pp_config.max_size ? min_t(u64, limit, pp_config.max_size) :
				    limit;
}

/* Run sizes from 0, growing by a factor of 4, and the limit. */
static int pp_client_sizes(struct pp_session *s, struct pp_plan *plan,
			   enum pp_op op)
{
	u32 limit = plan->limit[op], size;
	int i, ret;

	for (i = 0; i < pp_config.nsizes; i++) {
		if (pp_config.sizes[i] > limit)
			continue;
		ret = pp_client_size(s, plan, op, pp_config.sizes[i]);
		if (ret)
			return ret;
	}
	if (pp_config.nsizes)
		return 0;
	ret = pp_client_size(s, plan, op, 0);
	for (size = 1; size < limit && !ret; size *= 4)
		ret = pp_client_size(s, plan, op, size);
	return ret ?: pp_client_size(s, plan, op, limit);
}

/* A message one byte longer than the fabric's limit must be refused, without effect. */
static int pp_client_too_long(struct pp_session *s)
{
	ssize_t ret;

	if (s->self.max_msg >= s->self.memory)
		return 0;
	ret = fi_send(s->ep, s->tx.buf, s->tx.prefix + s->self.max_msg + 1, NULL,
		      s->peer_addr, &s->tx.slots[0]);
	if (ret == -EMSGSIZE)
		return 0;
	pp_report_error(s->inst, ret, "the provider accepted a send longer than its limit");
	return ret ?: -EIO;
}

static int pp_client_tests(struct pp_session *s)
{
	struct pp_plan plan = { .seed = get_random_u32() };
	enum pp_op op;
	int ret;

	plan.samples = kvcalloc(pp_config.iterations, sizeof(u32), GFP_KERNEL);
	if (!plan.samples)
		return -ENOMEM;
	ret = pp_client_too_long(s);
	for (op = 0; op < PP_OPS && !ret; op++) {
		plan.limit[op] = pp_client_limit(s, op);
		if (pp_client_wants(op) && pp_client_can(s, op))
			ret = pp_client_sizes(s, &plan, op);
	}
	kvfree(plan.samples);
	return ret;
}

static int pp_client_session(struct pp_instance *inst)
{
	struct pp_session *s = kzalloc(sizeof(*s), GFP_KERNEL);
	int ret;

	if (!s)
		return -ENOMEM;
	s->inst = inst;
	mutex_init(&s->pep_lock);
	ret = pp_open(s);
	if (!ret) {
		ret = pp_connect(s);
		if (ret && ret != -ESHUTDOWN)
			pp_report_error(inst, ret, "can't connect to the server at %s port %u",
					pp_config.addr, pp_config.port);
	}
	if (!ret) {
		pp_report_state(inst, PP_RUNNING);
		ret = pp_client_tests(s);
	}
	pp_bye(inst, ret);
	pp_close(s);
	pp_end(inst);
	kfree(s);
	return ret;
}

/**
 * pp_client_run() - run all tests once
 * @inst: the client
 *
 * Return: 0, or a negative errno.
 */
int pp_client_run(struct pp_instance *inst)
{
	int ret = pp_client_session(inst);

	if (ret && ret != -ESHUTDOWN)
		pp_report_error(inst, ret, "the run ended before all tests were done");
	else if (inst->report.bad)
		pp_report_error(inst, -EBADMSG, "some buffers have wrong data");
	pp_report_state(inst, ret || inst->report.bad ? PP_BROKEN :
							PP_FINISHED);
	return ret;
}
