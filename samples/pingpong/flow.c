// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A test as one side sees it: operations to post, and messages that arrive. Both sides run
 * the same loop. A client may post as many operations as the server has receives. The server
 * answers a number of messages with one message, which allows the client to post that many
 * operations more.
 *
 * The test assumes no order of operations or completions. A receive is reposted before an
 * answer is posted, so a message always finds a receive.
 *
 * Datagrams may be lost. When nothing completes for a while, the client posts as if an answer had
 * come, and in the end waits no longer for answers. The server doesn't know how many messages
 * arrive: its test ends when the client says so and nothing arrives any more.
 */
#include <linux/bitmap.h>
#include <linux/string.h>
#include "data.h"
#include "pingpong.h"

#define PP_BATCH	8
#define PP_SLICE_MS	100	/* between checks of the peer's connection */

/* --- slots --- */

static void *pp_buf(const struct pp_side *side, const struct pp_slot *slot)
{
	return side->buf + (size_t)slot->index * side->stride + side->prefix;
}

static struct pp_slot *pp_take(struct pp_side *side)
{
	return &side->slots[side->free[--side->nfree]];
}

static void pp_give_back(struct pp_side *side, struct pp_slot *slot)
{
	side->free[side->nfree++] = slot->index;
}

/**
 * pp_side_reset() - prepare slots for a test
 * @side: the side, with nothing posted
 * @size: bytes of an operation
 * @slots: number of slots to use
 * @check: poison the buffers, so that missing data is detected
 *
 * Slots are used in the order of their index.
 */
void pp_side_reset(struct pp_side *side, u32 size, u32 slots, bool check)
{
	u32 i;

	side->stride = pp_stride(side->prefix + size);
	side->nfree = slots;
	for (i = 0; i < slots; i++) {
		side->free[slots - 1 - i] = i;
		side->slots[i].index = i;
		side->slots[i].busy = false;
	}
	if (check)
		memset(side->buf, PP_POISON, (size_t)slots * side->stride);
}

/**
 * pp_flow_sides() - prepare the slots of both directions for a test
 * @s: the session, with its flow set up
 * @tx_slots: number of slots to send from
 * @rx_slots: number of slots to receive into
 * @rx_size: bytes of such a slot
 */
void pp_flow_sides(struct pp_session *s, u32 tx_slots, u32 rx_slots, u32 rx_size)
{
	bool checks = s->flow.check;

	pp_side_reset(&s->tx, s->flow.tx_size, tx_slots, checks && s->flow.op != PP_SEND);
	if (!s->lossy)
		pp_side_reset(&s->rx, rx_size, rx_slots, checks);
}

/* --- posting --- */

/* With tags, a message's tag is its number, and it takes the receive posted for it. */
static bool pp_tagged(const struct pp_session *s)
{
	return s->self.can & s->peer.can & PP_CAN_TAGGED && s->flow.test.op == PP_SEND;
}

static ssize_t pp_post_recv(struct pp_session *s, struct pp_slot *slot)
{
	struct pp_flow *flow = &s->flow;
	void *buf = s->scratch + slot->index * PP_SLOT_ALIGN;
	u32 len = PP_GUARD;

	if (s->lossy)
		return fi_recv(s->ep, pp_buf(&s->rx, slot) - s->rx.prefix,
			       s->rx.prefix + s->self.max_msg, NULL, FI_ADDR_UNSPEC, slot);
	/* Remote CQ data of a write takes a receive, but writes no data to it. */
	if (flow->test.op == PP_SEND || flow->op == PP_WRITEDATA) {
		buf = pp_buf(&s->rx, slot);
		len = flow->rx_size ?: PP_GUARD;
	}
	if (pp_tagged(s))
		return fi_trecv(s->ep, buf, len, NULL, FI_ADDR_UNSPEC, flow->rx_posted, 0, slot);
	return fi_recv(s->ep, buf, len, NULL, FI_ADDR_UNSPEC, slot);
}

static int pp_post_recvs(struct pp_session *s)
{
	struct pp_flow *flow = &s->flow;
	struct pp_slot *slot;
	ssize_t ret;

	while (flow->rx_needed && (s->lossy || flow->rx_posted < flow->rx_total) &&
	       s->rx.nfree) {
		slot = pp_take(&s->rx);
		slot->recv = true;
		slot->busy = true;
		ret = pp_post_recv(s, slot);
		if (ret) {
			slot->busy = false;
			pp_give_back(&s->rx, slot);
			return ret;
		}
		flow->rx_posted++;
	}
	return 0;
}

/*
 * The peer learns over TCP that all writes have completed, and looks at its memory then. So the
 * data must be there, and not only on its way through the peer's device.
 */
static ssize_t pp_write(struct pp_session *s, struct pp_slot *slot, void *buf, u64 addr)
{
	const struct pp_flow *flow = &s->flow;
	struct fi_msg_rma msg = {
		.addr		= s->peer_addr,
		.rma_iov	= &slot->rma,
		.rma_iov_count	= 1,
		.context	= slot,
	};

	slot->local = (struct kvec) { buf, flow->tx_size };
	slot->rma = (struct fi_rma_iov) { addr, flow->tx_size, flow->key };
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &slot->local, 1, flow->tx_size);
	return fi_writemsg(s->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

static ssize_t pp_post_op(struct pp_session *s, struct pp_slot *slot)
{
	struct pp_flow *flow = &s->flow;
	void *buf = pp_buf(&s->tx, slot);
	u64 addr = flow->base + (u64)slot->index * s->tx.stride;

	switch (flow->op) {
	case PP_SEND:
		if (pp_tagged(s))
			return fi_tsend(s->ep, buf, flow->tx_size, NULL, s->peer_addr,
					flow->tx_posted, slot);
		return fi_send(s->ep, buf - s->tx.prefix, s->tx.prefix + flow->tx_size, NULL,
			       s->peer_addr, slot);
	case PP_WRITE:
		return pp_write(s, slot, buf, addr);
	case PP_READ:
		return fi_read(s->ep, buf, flow->tx_size, NULL, s->peer_addr,
			       addr, flow->key, slot);
	case PP_WRITEDATA:
		return fi_writedata(s->ep, buf, flow->tx_size, NULL,
				    flow->tx_posted, s->peer_addr, addr,
				    flow->key, slot);
	default:
		return -EINVAL;
	}
}

/* Return: how many operations this side may have posted until now. */
static u32 pp_allowed(const struct pp_flow *flow)
{
	return min(flow->tx_total,
		   flow->tx_start + flow->arrived / flow->per * flow->grant);
}

static int pp_post_ops(struct pp_session *s)
{
	struct pp_flow *flow = &s->flow;
	struct pp_slot *slot;
	ssize_t ret;

	while (flow->tx_posted < pp_allowed(flow) && s->tx.nfree) {
		slot = pp_take(&s->tx);
		slot->recv = false;
		slot->busy = true;
		if (flow->check && flow->op != PP_READ)
			pp_fill(pp_buf(&s->tx, slot), flow->tx_size,
				flow->tx_seed, flow->tx_posted);
		else if (s->lossy && flow->tx_size >= PP_HEADER)
			pp_fill(pp_buf(&s->tx, slot), PP_HEADER, flow->tx_seed, flow->tx_posted);
		flow->posted = ktime_get();
		ret = pp_post_op(s, slot);
		if (ret) {
			slot->busy = false;
			pp_give_back(&s->tx, slot);
			return ret;
		}
		flow->tx_posted++;
	}
	return 0;
}

/* Post receives first, because an operation may make the peer send. */
static int pp_post(struct pp_session *s)
{
	int ret = pp_post_recvs(s) ?: pp_post_ops(s);

	if (ret && ret != -EAGAIN)
		pp_report_error(s->inst, ret, "can't post an operation");
	return ret;
}

/* --- completing --- */

static void pp_sample(struct pp_flow *flow, bool both_ways)
{
	u64 ns = ktime_to_ns(ktime_sub(ktime_get(), flow->posted));

	if (flow->samples && flow->nsamples < flow->test.count)
		flow->samples[flow->nsamples++] =
			min_t(u64, both_ways ? ns / 2 : ns, U32_MAX);
}

static void pp_count(struct pp_flow *flow, bool good)
{
	flow->checked++;
	if (!good)
		flow->bad++;
}

/* Return: whether a message arrived for the first time. */
static bool pp_first(struct pp_session *s, u64 seq)
{
	return seq < s->flow.rx_total && !test_and_set_bit(seq, s->seen);
}

/* Return: whether a datagram is one of the test that hasn't arrived yet. */
static bool pp_expected(struct pp_session *s, const struct pp_slot *slot, size_t len)
{
	const struct pp_flow *flow = &s->flow;
	const void *buf = pp_buf(&s->rx, slot);

	if (len != flow->rx_size || flow->arrived == flow->rx_total)
		return false;
	/* A shorter one has neither a number nor its test's seed. */
	return len < PP_HEADER || (pp_header_ok(buf, flow->rx_seed) &&
				   pp_first(s, pp_seq_of(buf, len)));
}

static void pp_check_message(struct pp_session *s, const struct pp_slot *slot,
			     size_t len)
{
	struct pp_flow *flow = &s->flow;
	const void *buf = pp_buf(&s->rx, slot);
	bool good = len == flow->rx_size;
	u32 seq;

	if (good) {
		seq = pp_seq_of(buf, len);
		good = pp_verify(buf, len, flow->rx_seed, seq) &&
		       (s->lossy || len < PP_HEADER || pp_first(s, seq));
	}
	pp_count(flow, good);
	if (!s->lossy)
		memset(s->rx.buf + (size_t)slot->index * s->rx.stride, PP_POISON,
		       s->rx.stride);
}

static void pp_datagram(struct pp_session *s, struct pp_slot *slot,
			const struct fi_cq_data_entry *entry)
{
	const size_t len = entry->len - s->rx.prefix;
	struct pp_flow *flow = &s->flow;

	if (!pp_expected(s, slot, len)) {
		flow->extra++;
	} else {
		flow->arrived++;
		if (flow->check)
			pp_check_message(s, slot, len);
		pp_sample(flow, true);
	}
	memset(pp_buf(&s->rx, slot), PP_POISON, min_t(size_t, len, s->self.max_msg));
	pp_give_back(&s->rx, slot);
}

static int pp_arrived(struct pp_session *s, struct pp_slot *slot,
		      const struct fi_cq_data_entry *entry)
{
	struct pp_flow *flow = &s->flow;
	bool data = entry->flags & FI_REMOTE_CQ_DATA;

	/* Taking it for a message would end the test with a receive that is still posted. */
	if (!slot && (flow->test.op != PP_WRITEDATA || flow->op == PP_WRITEDATA)) {
		pp_report_error(s->inst, -EPROTO, "the peer wrote in a test without its writes");
		return -EPROTO;
	}
	if (flow->arrived == flow->rx_total) {
		pp_report_error(s->inst, -EPROTO, "more messages arrived than the test has");
		return -EPROTO;
	}
	flow->arrived++;
	if (flow->test.op == PP_WRITEDATA && flow->op != PP_WRITEDATA)
		pp_count(flow, data && pp_first(s, entry->data));
	else if (flow->check && slot)
		pp_check_message(s, slot, entry->len);
	else if (entry->len != flow->rx_size)
		pp_count(flow, false);
	if (slot)
		pp_give_back(&s->rx, slot);
	if (flow->test.op == PP_SEND)
		pp_sample(flow, true);
	return 0;
}

static void pp_sent(struct pp_session *s, struct pp_slot *slot)
{
	struct pp_flow *flow = &s->flow;

	flow->tx_done++;
	if (flow->op == PP_READ && flow->check)
		pp_count(flow, pp_verify(pp_buf(&s->tx, slot), flow->tx_size,
					 flow->tx_seed, slot->index));
	/* Checked RMA uses each slot once, because the data is checked at the end. */
	if (!flow->check || flow->op == PP_SEND)
		pp_give_back(&s->tx, slot);
	if (flow->op != PP_SEND)
		pp_sample(flow, false);
}

static int pp_completed(struct pp_session *s,
			const struct fi_cq_data_entry *entry)
{
	struct pp_slot *slot = entry->op_context;

	if (entry->flags & FI_REMOTE_WRITE && !s->rx_cq_data)
		return pp_arrived(s, NULL, entry);
	if (!slot || !slot->busy) {
		pp_report_error(s->inst, -EIO, "a completion has an unknown context");
		return -EIO;
	}
	slot->busy = false;
	if (slot->recv && !s->lossy)
		return pp_arrived(s, slot, entry);
	if (slot->recv)
		pp_datagram(s, slot, entry);
	else
		pp_sent(s, slot);
	return 0;
}

static int pp_failed(struct pp_session *s)
{
	struct fi_cq_err_entry entry = { };
	struct pp_slot *slot;
	char text[80];

	if (fi_cq_readerr(s->cq, &entry, 0) != 1)
		return 0;
	slot = entry.op_context;
	pp_report_error(s->inst, -entry.err, "%s of %u bytes: %s",
			slot && slot->recv ? "receive" :
					     pp_op_names[s->flow.op],
			slot && slot->recv ? s->flow.rx_size : s->flow.tx_size,
			fi_cq_strerror(s->cq, entry.prov_errno, NULL, text,
				       sizeof(text)));
	return -entry.err ?: -EIO;
}

/* Return: entries read, or a negative errno. */
static int pp_poll(struct pp_session *s)
{
	struct fi_cq_data_entry entries[PP_BATCH];
	int ret, done = 0;
	ssize_t n, i;

	while ((n = fi_cq_read(s->cq, entries, PP_BATCH)) != -EAGAIN) {
		if (n == -FI_EAVAIL) {
			ret = pp_failed(s);
			if (ret)
				return ret;
			continue;
		}
		if (n < 0)
			return n;
		for (i = 0; i < n; i++) {
			ret = pp_completed(s, &entries[i]);
			if (ret)
				return ret;
		}
		done += n;
		s->progress = jiffies;
		s->flow.quiet = false;
	}
	return done;
}

/* --- the loop --- */

/* Nothing has completed for PP_SLICE_MS: take an answer that the client waits for as lost. */
static void pp_lost(struct pp_flow *flow)
{
	flow->quiet = true;
	if (flow->tx_start && flow->tx_posted < flow->tx_total)
		flow->tx_start += flow->grant;
}

/*
 * Sleep until an operation completes, or for PP_SLICE_MS. The handler also wakes the thread
 * when a post that was refused may succeed.
 */
static int pp_wait(struct pp_session *s)
{
	struct pp_instance *inst = s->inst;
	long left;

	left = wait_event_idle_timeout(inst->wait,
				       test_and_clear_bit(PP_EVENT_CQ, &s->events) ||
				       test_bit(PP_EVENT_REMOVED, &s->events) ||
				       READ_ONCE(inst->stopping),
				       msecs_to_jiffies(PP_SLICE_MS));
	if (READ_ONCE(inst->stopping))
		return -ESHUTDOWN;
	if (test_bit(PP_EVENT_REMOVED, &s->events)) {
		pp_report_error(inst, -ENODEV, "the device was removed");
		return -ENODEV;
	}
	if (!pp_connected(s))
		return pp_hung_up(s);
	if (time_after(jiffies, s->progress + pp_config.timeout * HZ)) {
		pp_report_error(inst, -ETIMEDOUT,
				"no progress: %u of %u operations completed, %u of %u messages arrived",
				s->flow.tx_done, s->flow.tx_total,
				s->flow.arrived, s->flow.rx_total);
		return -ETIMEDOUT;
	}
	if (!left && s->lossy)
		pp_lost(&s->flow);
	return 0;
}

/**
 * pp_flow_start() - post the first receives of a test
 * @s: the session, with its flow set up
 *
 * The peer may start only after this.
 *
 * Return: 0, or a negative errno, which is reported.
 */
int pp_flow_start(struct pp_session *s)
{
	int ret;

	s->progress = jiffies;
	bitmap_zero(s->seen, s->flow.rx_total);
	while ((ret = pp_post_recvs(s)) == -EAGAIN) {
		ret = pp_poll(s);
		ret = ret < 0 ? ret : pp_wait(s);
		if (ret)
			return ret;
	}
	if (ret)
		pp_report_error(s->inst, ret, "can't post a receive");
	return ret;
}

static bool pp_flow_finished(const struct pp_session *s)
{
	const struct pp_flow *flow = &s->flow;

	if (flow->tx_done == flow->tx_total && flow->arrived == flow->rx_total)
		return true;
	/* Only the client begins by itself. */
	return s->lossy && flow->quiet && flow->tx_done == flow->tx_posted &&
	       (flow->tx_start ? flow->tx_done == flow->tx_total : pp_msg_waits(s));
}

/**
 * pp_flow_run() - post and complete operations until the test is done
 * @s: the session, after pp_flow_start() on both sides
 *
 * Return: 0, or a negative errno, which is reported. After an error operations may be
 * outstanding until the endpoint is closed.
 */
int pp_flow_run(struct pp_session *s)
{
	int ret, done;

	s->progress = jiffies;
	while (!pp_flow_finished(s)) {
		ret = pp_post(s);
		if (ret && ret != -EAGAIN)
			return ret;
		done = pp_poll(s);
		if (done < 0)
			return done;
		if (done)
			continue;
		ret = pp_wait(s);
		if (ret)
			return ret;
	}
	return 0;
}
