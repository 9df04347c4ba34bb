// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The server serves one client after another, and runs its side of each client's tests. An
 * error of a client ends only its session.
 */
#include <linux/slab.h>
#include "data.h"
#include "pingpong.h"

static void pp_server_flow(struct pp_session *s, const struct pp_test *test)
{
	bool send = test->op == PP_SEND;
	struct pp_flow *flow = &s->flow;

	*flow = (struct pp_flow) {
		.test		= *test,
		.op		= PP_SEND,
		.check		= test->mode == PP_CHECK,
		.rx_size	= send ? test->size : 0,
		.rx_needed	= send || s->rx_cq_data,
		.per		= pp_ack_every(test),
		.grant		= 1,
		.rx_seed	= test->seed,
		.tx_seed	= ~test->seed,
	};
	if (send && test->mode != PP_STREAM)
		flow->tx_size = test->size;
	if (send || test->op == PP_WRITEDATA) {
		flow->rx_total = test->count;
		flow->tx_total = test->count / flow->per;
	}
	pp_flow_sides(s, test->depth, test->depth, test->size);
}

/* Register memory for the peer. It is filled before and checked after the registration. */
static int pp_server_expose(struct pp_session *s, struct fid_mr **mr)
{
	const struct pp_test *test = &s->flow.test;
	u32 i;
	int ret;

	if (test->op == PP_READ && s->flow.check)
		for (i = 0; i < test->depth; i++)
			pp_fill(s->rx.buf + (size_t)i * s->rx.stride,
				test->size, test->seed, i);
	ret = fi_mr_reg(s->domain, s->rx.buf,
			(size_t)test->depth * s->rx.stride,
			test->op == PP_READ ? FI_REMOTE_READ : FI_REMOTE_WRITE,
			0, 0, 0, mr, NULL);
	if (ret)
		pp_report_error(s->inst, ret, "can't register memory for the client");
	return ret;
}

static void pp_server_check(struct pp_session *s)
{
	struct pp_flow *flow = &s->flow;
	u32 i;

	if (!flow->check ||
	    (flow->test.op != PP_WRITE && flow->test.op != PP_WRITEDATA))
		return;
	for (i = 0; i < flow->test.count; i++) {
		flow->checked++;
		if (!pp_verify(s->rx.buf + (size_t)i * s->rx.stride,
			       flow->test.size, flow->test.seed, i))
			flow->bad++;
	}
}

static int pp_server_ready(struct pp_session *s, struct fid_mr *mr)
{
	struct pp_msg msg = { .type = PP_READY };
	size_t len = sizeof(msg.ready.key);
	int ret = 0;

	if (mr)
		ret = fi_mr_raw_attr(mr, &msg.ready.base, (u8 *)&msg.ready.key,
				     &len, 0);
	return ret ?: pp_msg_send(s, &msg);
}

static int pp_server_serve(struct pp_session *s, struct fid_mr *mr)
{
	struct pp_msg msg;
	int ret;

	ret = pp_flow_start(s) ?: pp_server_ready(s, mr) ?: pp_flow_run(s);
	/* Only the client sees how its writes and reads get on. */
	if (!ret && !s->flow.rx_total)
		ret = pp_msg_await(s);
	return ret ?: pp_msg_expect(s, PP_DONE, &msg);
}

static int pp_server_test(struct pp_session *s, const struct pp_test *test)
{
	struct pp_msg msg = { .type = PP_DONE };
	struct fid_mr *mr = NULL;
	int ret;

	if (pp_test_fits(test, &s->self)) {
		pp_report_refused(s->inst);
		return -EPROTO;
	}
	pp_server_flow(s, test);
	if (test->op != PP_SEND) {
		ret = pp_server_expose(s, &mr);
		if (ret)
			return ret;
	}
	ret = pp_server_serve(s, mr);
	if (mr)
		pp_close_fid(&mr->fid);
	if (ret)
		return ret;
	pp_server_check(s);
	pp_report_flow(s);
	pp_report_lost(s, s->flow.rx_total - s->flow.arrived);
	msg.done.arrived = s->flow.arrived;
	msg.done.checked = min_t(u32, s->flow.checked, PP_COUNT_MAX);
	msg.done.bad = min(s->flow.bad, msg.done.checked);
	return pp_msg_send(s, &msg);
}

static int pp_server_tests(struct pp_session *s)
{
	struct pp_msg msg;
	int ret;

	do {
		ret = pp_msg_recv(s, &msg);
		if (ret == -ECONNABORTED)
			return pp_said_done(s) ? 0 : pp_hung_up(s);
		if (ret)
			return ret;
		if (msg.type != PP_TEST) {
			pp_report_refused(s->inst);
			return -EPROTO;
		}
		ret = pp_server_test(s, &msg.test);
	} while (!ret);
	return ret;
}

static void pp_server_session(struct pp_instance *inst)
{
	struct pp_session *s = kzalloc(sizeof(*s), GFP_KERNEL);
	int ret;

	if (!s) {
		pp_bye(inst, -ENOMEM);
		return;
	}
	s->inst = inst;
	mutex_init(&s->pep_lock);
	pp_report_state(inst, PP_RUNNING);
	ret = pp_open(s) ?: pp_accept(s) ?: pp_server_tests(s);
	if (ret && ret != -ESHUTDOWN)
		pp_report_error(inst, ret, "the session failed");
	pp_bye(inst, ret);
	pp_close(s);
	kfree(s);
	pp_report_state(inst, PP_WAITING);
}

/**
 * pp_server_run() - serve clients until the module is unloaded
 * @inst: the server
 *
 * Return: 0, or a negative errno.
 */
int pp_server_run(struct pp_instance *inst)
{
	int ret;

	ret = pp_listen(inst);
	if (ret) {
		pp_report_error(inst, ret, "can't listen at %s port %u",
				pp_config.addr, pp_config.port);
		pp_report_state(inst, PP_BROKEN);
		return ret;
	}
	while (pp_wait_client(inst)) {
		pp_server_session(inst);
		pp_end_client(inst);
	}
	pp_unlisten(inst);
	return 0;
}
