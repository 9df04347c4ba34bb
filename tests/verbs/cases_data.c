// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages: delivery, completions, and failures.
 */
#include <linux/bitmap.h>
#include <linux/crc32.h>
#include <linux/delay.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "conformance.h"

#define WAIT_MS		10000
#define UD_ROOM		sizeof(struct ib_grh)

/* Send a message and expect it at the other end. @wc takes the receiver's completion. */
static bool send_one(struct ct *ct, const struct req *req, struct ib_wc *wc)
{
	struct ib_wc done;

	return EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 16 << 10, 0xb), 0) &&
	       EXPECT_EQ(ct, ep_post(&ct->a, req), 0) &&
	       EXPECT(ct, ep_wait(&ct->b, wc, WAIT_MS)) &&
	       EXPECT(ct, ep_wait(&ct->a, &done, WAIT_MS)) &&
	       EXPECT_EQ(ct, done.status, IB_WC_SUCCESS) &&
	       EXPECT_EQ(ct, done.wr_id, req->id) &&
	       EXPECT_EQ(ct, done.opcode, IB_WC_SEND) &&
	       EXPECT_EQ(ct, wc->status, IB_WC_SUCCESS);
}

/* Post a request, and get the status of its completion at the initiator. */
static int status_of(struct ct *ct, const struct req *req,
		     enum ib_wc_status *status)
{
	struct ib_wc wc;

	if (!EXPECT_EQ(ct, ep_post(&ct->a, req), 0) ||
	    !EXPECT(ct, ep_wait(&ct->a, &wc, WAIT_MS)))
		return -1;
	*status = wc.status;
	return wc.vendor_err;
}

static void send_plain(struct ct *ct)
{
	struct ib_wc wc;

	ep_fill(&ct->a, EP_TX, 1000, 3);
	send_one(ct, &(struct req) { .op = IB_WR_SEND, .len = 1000, .id = 5 },
		 &wc);
	EXPECT_EQ(ct, wc.opcode, IB_WC_RECV);
	EXPECT_EQ(ct, wc.wr_id, 0xb);
	EXPECT_EQ(ct, wc.byte_len, 1000);
	EXPECT_EQ(ct, wc.src_qp, ct->a.qp->qp_num);
	EXPECT_EQ(ct, wc.wc_flags, 0);
	EXPECT(ct, wc.qp == ct->b.qp);
	EXPECT(ct, ep_filled(&ct->b, EP_RX, 1000, 3));
}

static void send_empty(struct ct *ct)
{
	struct ib_wc wc;

	send_one(ct, &(struct req) { .op = IB_WR_SEND }, &wc);
	EXPECT_EQ(ct, wc.byte_len, 0);
}

/* The device handles immediate data in host byte order. */
static void send_imm(struct ct *ct)
{
	struct ib_wc wc;

	send_one(ct, &(struct req) {
		.op = IB_WR_SEND_WITH_IMM, .len = 4, .imm = 0x12345678 }, &wc);
	EXPECT_EQ(ct, wc.opcode, IB_WC_RECV);
	EXPECT_EQ(ct, wc.wc_flags, IB_WC_WITH_IMM);
	EXPECT_EQ(ct, be32_to_cpu(wc.ex.imm_data), 0x12345678);
}

static void send_two_sges(struct ct *ct)
{
	struct ib_wc wc;

	ep_fill(&ct->a, EP_TX, 777, 9);
	send_one(ct, &(struct req) { .op = IB_WR_SEND, .len = 777,
		 .num_sge = 2 }, &wc);
	EXPECT_EQ(ct, wc.byte_len, 777);
	EXPECT(ct, ep_filled(&ct->b, EP_RX, 777, 9));
}

/* Inline data is copied by the post, and its buffer needs no mapping. */
static void send_inline(struct ct *ct)
{
	u8 data[32], got[32];
	struct ib_wc wc, done;

	memset(data, 0x5a, sizeof(data));
	EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 64, 1), 0);
	EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
		.op = IB_WR_SEND, .len = 32, .inl = data }), 0);
	memset(data, 0, sizeof(data));
	EXPECT(ct, ep_wait(&ct->b, &wc, WAIT_MS));
	EXPECT(ct, ep_wait(&ct->a, &done, WAIT_MS));
	EXPECT_EQ(ct, wc.byte_len, 32);
	ep_read(&ct->b, EP_RX, got, sizeof(got));
	EXPECT(ct, !memchr_inv(got, 0x5a, sizeof(got)));
}

static void send_largest(struct ct *ct)
{
	enum ib_wc_status status;
	struct ib_wc wc;

	ep_fill(&ct->a, EP_TX, ct->a.mtu, 1);
	send_one(ct, &(struct req) { .op = IB_WR_SEND, .len = ct->a.mtu }, &wc);
	EXPECT_EQ(ct, wc.byte_len, ct->a.mtu);
	EXPECT(ct, ep_filled(&ct->b, EP_RX, ct->a.mtu, 1));
	EXPECT_EQ(ct, status_of(ct, &(struct req) {
		.op = IB_WR_SEND, .len = ct->a.mtu + 1 }, &status),
		ST_LOCAL_LENGTH);
	EXPECT_EQ(ct, status, IB_WC_LOC_LEN_ERR);
}

/* Both ends get an error, and nothing is written behind the receive. */
static void recv_too_small(struct ct *ct)
{
	enum ib_wc_status status;
	struct ib_wc wc = { };

	ep_fill(&ct->a, EP_TX, 100, 1);
	ep_fill(&ct->b, EP_RX + 99, 100, 2);
	EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 99, 0xb), 0);
	EXPECT_EQ(ct, status_of(ct, &(struct req) {
		.op = IB_WR_SEND, .len = 100 }, &status), ST_REMOTE_LENGTH);
	EXPECT_EQ(ct, status, IB_WC_REM_INV_REQ_ERR);
	if (!EXPECT(ct, ep_wait(&ct->b, &wc, WAIT_MS)))
		return;
	EXPECT_EQ(ct, wc.wr_id, 0xb);
	EXPECT_EQ(ct, wc.vendor_err, ST_LOCAL_LENGTH);
	EXPECT_EQ(ct, wc.status, IB_WC_LOC_LEN_ERR);
	/* Verbs don't define the length of a failed receive, so only report it. */
	ct_printf("# the receiver: length %u\n", wc.byte_len);
	EXPECT(ct, ep_filled(&ct->b, EP_RX + 99, 100, 2));
}

/* A receive descriptor has 16 bits for the length, so 64 KiB + n becomes n. */
static void recv_length_has_16_bits(struct ct *ct)
{
	enum ib_wc_status status;
	struct ib_wc wc;

	EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, SZ_64K + 99, 0xb), 0);
	EXPECT_EQ(ct, status_of(ct, &(struct req) {
		.op = IB_WR_SEND, .len = 100 }, &status), ST_REMOTE_LENGTH);
	ep_wait(&ct->b, &wc, 100);
	EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, SZ_64K + 99, 0xb), 0);
	EXPECT_EQ(ct, status_of(ct, &(struct req) {
		.op = IB_WR_SEND, .len = 99 }, &status), 0);
	EXPECT(ct, ep_wait(&ct->b, &wc, WAIT_MS));
	EXPECT_EQ(ct, wc.byte_len, 99);
}

static void bad_lkey(struct ct *ct)
{
	enum ib_wc_status status;

	EXPECT_EQ(ct, status_of(ct, &(struct req) {
		.op = IB_WR_SEND, .len = 8, .lkey = 0xabcde }, &status),
		ST_INVALID_LKEY);
	EXPECT_EQ(ct, status, IB_WC_LOC_PROT_ERR);
}

static void bad_qpn(struct ct *ct)
{
	enum ib_wc_status status;

	EXPECT_EQ(ct, status_of(ct, &(struct req) {
		.op = IB_WR_SEND, .len = 8, .qpn = 0xfff0 }, &status),
		ST_BAD_QPN);
	EXPECT_EQ(ct, status, IB_WC_REM_INV_RD_REQ_ERR);
}

/* A message with a wrong Q_Key is refused, with any status. */
static void bad_qkey(struct ct *ct)
{
	enum ib_wc_status status;
	struct ib_wc wc;

	EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 99, 1), 0);
	EXPECT(ct, status_of(ct, &(struct req) {
		.op = IB_WR_SEND, .len = 8,
		.qkey = ct->b.qkey ^ 1 }, &status) > 0);
	EXPECT(ct, status != IB_WC_SUCCESS);
	EXPECT(ct, !ep_wait(&ct->b, &wc, 100));
}

/*
 * The handle is destroyed before the device starts: work that uses it fails, with the
 * status invalid or flushed.
 */
static void bad_ah(struct ct *ct)
{
	struct ib_ah *ah = ct->a.ah;
	struct ib_wc wc;

	EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 99, 1), 0);
	EXPECT_EQ(ct, ep_modify(&ct->a, IB_QPS_SQD, 0), 0);
	EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
		.op = IB_WR_SEND, .len = 8 }), 0);
	ct->a.ah = NULL;
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
	/* On one device the other end may share the handle. */
	if (ct->dev_a == ct->dev_b) {
		rdma_destroy_ah(ct->b.ah, RDMA_DESTROY_AH_SLEEPABLE);
		ct->b.ah = NULL;
	}
	EXPECT_EQ(ct, ib_modify_qp(ct->a.qp, &(struct ib_qp_attr) {
		.qp_state = IB_QPS_RTS }, IB_QP_STATE), 0);
	EXPECT(ct, ep_wait(&ct->a, &wc, WAIT_MS));
	EXPECT(ct, wc.vendor_err == ST_INVALID_AH ||
	       wc.vendor_err == ST_FLUSHED);
	EXPECT_EQ(ct, wc.status, wc.vendor_err == ST_FLUSHED ?
		  IB_WC_WR_FLUSH_ERR : IB_WC_LOC_QP_OP_ERR);
}

/* Without a receive, a send fails after a finite number of retries. */
static void rnr_finite(struct ct *ct)
{
	enum ib_wc_status status;

	EXPECT_EQ(ct, status_of(ct, &(struct req) {
		.op = IB_WR_SEND, .len = 8 }, &status), ST_RNR);
	EXPECT_EQ(ct, status, IB_WC_RNR_RETRY_EXC_ERR);
}

/* 7 retries mean for ever. */
static void rnr_infinite(struct ct *ct)
{
	struct ib_wc wc, done;

	ep_fill(&ct->a, EP_TX, 100, 4);
	EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
		.op = IB_WR_SEND, .len = 100 }), 0);
	EXPECT(ct, !ep_wait(&ct->a, &wc, 700));
	EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 100, 1), 0);
	EXPECT(ct, ep_wait(&ct->b, &wc, WAIT_MS));
	EXPECT(ct, ep_wait(&ct->a, &done, WAIT_MS));
	EXPECT_EQ(ct, done.status, IB_WC_SUCCESS);
	EXPECT(ct, ep_filled(&ct->b, EP_RX, 100, 4));
}

/* slid is the number of the sender's handle, the same for all QPs of its device. */
static void slid_names_the_device(struct ct *ct)
{
	const struct req req = { .op = IB_WR_SEND, .len = 1 };
	struct ib_wc wc;
	struct ep c;
	u16 slid;
	int i;

	/* A new handle may have no number for a while. */
	for (i = 0; i < 50; i++) {
		if (!send_one(ct, &req, &wc))
			return;
		if (wc.slid != NO_SLID)
			break;
		usleep_range(1000, 2000);
	}
	slid = wc.slid;
	EXPECT(ct, slid != NO_SLID);
	EXPECT_EQ(ct, ep_open(&c, ct->dev_a, &ct->test->opts), 0);
	EXPECT_EQ(ct, ep_connect(&c, &ct->b.gid), 0);
	c.other = &ct->b;
	EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 16, 1), 0);
	EXPECT_EQ(ct, ep_post(&c, &(struct req) { .op = IB_WR_SEND,
			      .len = 1 }), 0);
	EXPECT(ct, ep_wait(&ct->b, &wc, WAIT_MS));
	EXPECT_EQ(ct, wc.slid, slid);
	EXPECT_EQ(ct, wc.src_qp, c.qp->qp_num);
	ep_close(&c);
}

/* A sender without a handle may send, but its slid is 0xffff. */
static void stranger_has_no_slid(struct ct *ct)
{
	struct ib_wc wc;

	rdma_destroy_ah(ct->b.ah, RDMA_DESTROY_AH_SLEEPABLE);
	ct->b.ah = NULL;
	send_one(ct, &(struct req) { .op = IB_WR_SEND, .len = 1 }, &wc);
	EXPECT_EQ(ct, wc.slid, NO_SLID);
}

static void ud_send(struct ct *ct)
{
	struct ib_wc wc;
	u32 len = 100, room;

	ep_fill(&ct->a, EP_TX, len, 8);
	send_one(ct, &(struct req) { .op = IB_WR_SEND_WITH_IMM, .len = len,
		 .imm = 77 }, &wc);
	/* There may be room for a GRH in front of the data. */
	room = wc.byte_len == len ? 0 : UD_ROOM;
	EXPECT_EQ(ct, wc.byte_len, room + len);
	EXPECT_EQ(ct, wc.wc_flags, IB_WC_WITH_IMM);
	EXPECT(ct, ep_filled(&ct->b, EP_RX + room, len, 8));
	ct_printf("# %u bytes in front of a datagram\n", room);
}

/* A datagram without a receive is lost, and its send completes successfully. */
static void ud_lost(struct ct *ct)
{
	enum ib_wc_status status;

	EXPECT_EQ(ct, status_of(ct, &(struct req) {
		.op = IB_WR_SEND, .len = 8 }, &status), 0);
	EXPECT_EQ(ct, status, IB_WC_SUCCESS);
}

/* Neither what found no receive nor what has another key arrives, then or later. */
static void ud_dropped(struct ct *ct)
{
	const struct req req = { .op = IB_WR_SEND, .len = 8 };
	struct req other = req;
	enum ib_wc_status status;
	struct ib_wc wc;

	other.qkey = ct->b.qkey + 1;
	EXPECT_EQ(ct, status_of(ct, &req, &status), 0);
	msleep(50);
	EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 4096, 0xb), 0);
	EXPECT_EQ(ct, status_of(ct, &other, &status), 0);
	EXPECT_EQ(ct, status, IB_WC_SUCCESS);
	EXPECT(ct, !ep_wait(&ct->b, &wc, 200));
	EXPECT_EQ(ct, status_of(ct, &req, &status), 0);
	if (!EXPECT(ct, ep_wait(&ct->b, &wc, WAIT_MS)))
		return;
	EXPECT_EQ(ct, wc.status, IB_WC_SUCCESS);
	EXPECT_EQ(ct, wc.wr_id, 0xb);
}

#define SLOT		512
#define SLOTS		32

struct flow {
	struct ct *ct;
	unsigned int sent, done, got, inversions;
	u32 last;
	unsigned long *seen;
	u32 free_tx;		/* bitmap of free slots */
};

struct flow_msg {
	u32 seq;
	u32 len;
	u32 crc;
	u8 data[];
};

static u32 flow_len(u32 seq)
{
	return sizeof(struct flow_msg) +
	       (seq * 2654435761U >> 16) % (SLOT - sizeof(struct flow_msg) + 1);
}

static bool flow_send(struct flow *f)
{
	struct req req = { .op = IB_WR_SEND };
	struct flow_msg *msg;
	u8 buf[SLOT];
	int slot;

	if (!f->free_tx || f->sent == f->ct->messages)
		return false;
	slot = __ffs(f->free_tx);
	msg = (struct flow_msg *)buf;
	msg->seq = f->sent;
	msg->len = flow_len(f->sent);
	memset(msg->data, f->sent, msg->len - sizeof(*msg));
	msg->crc = crc32_le(f->sent, msg->data, msg->len - sizeof(*msg));
	ep_write(&f->ct->a, EP_TX + slot * SLOT, buf, msg->len);
	req.off = EP_TX + slot * SLOT;
	req.len = msg->len;
	req.id = slot;
	if (!EXPECT_EQ(f->ct, ep_post(&f->ct->a, &req), 0))
		return false;
	f->free_tx &= ~BIT(slot);
	f->sent++;
	return true;
}

static bool flow_recv(struct flow *f, const struct ib_wc *wc)
{
	u32 off = EP_RX + wc->wr_id * SLOT;
	struct flow_msg *msg;
	u8 buf[SLOT];

	msg = (struct flow_msg *)buf;
	if (!EXPECT_EQ(f->ct, wc->status, IB_WC_SUCCESS) ||
	    !EXPECT(f->ct, wc->byte_len >= sizeof(*msg) &&
		    wc->byte_len <= SLOT))
		return false;
	ep_read(&f->ct->b, off, buf, wc->byte_len);
	if (!EXPECT(f->ct, msg->seq < f->ct->messages) ||
	    !EXPECT_EQ(f->ct, wc->byte_len, flow_len(msg->seq)) ||
	    !EXPECT_EQ(f->ct, msg->crc,
		       crc32_le(msg->seq, msg->data,
				wc->byte_len - sizeof(*msg))) ||
	    !EXPECT(f->ct, !test_and_set_bit(msg->seq, f->seen)))
		return false;
	f->inversions += msg->seq < f->last;
	f->last = msg->seq;
	f->got++;
	return EXPECT_EQ(f->ct, ep_recv(&f->ct->b, off, SLOT, wc->wr_id), 0);
}

static bool flow_step(struct flow *f)
{
	bool any = false;
	struct ib_wc wc;

	while (flow_send(f))
		any = true;
	while (ep_poll(&f->ct->a, &wc, 1) == 1) {
		if (!EXPECT_EQ(f->ct, wc.status, IB_WC_SUCCESS))
			return false;
		f->free_tx |= BIT(wc.wr_id);
		f->done++;
		any = true;
	}
	while (ep_poll(&f->ct->b, &wc, 1) == 1) {
		if (!flow_recv(f, &wc))
			return false;
		any = true;
	}
	if (!any)
		usleep_range(50, 100);
	cond_resched();
	return !f->ct->failed;
}

static void run_flow(struct ct *ct, struct flow *f)
{
	unsigned long idle = jiffies;
	unsigned int before = 0;
	int i;

	for (i = 0; i < SLOTS; i++)
		EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX + i * SLOT, SLOT, i), 0);
	while (f->got < ct->messages || f->done < ct->messages) {
		if (!flow_step(f))
			return;
		if (f->got + f->done != before) {
			before = f->got + f->done;
			idle = jiffies;
		}
		if (!EXPECT(ct, time_before(jiffies, idle + 30 * HZ)))
			return;
	}
}

/* Each message arrives once and whole, in any order. */
static void many_messages(struct ct *ct)
{
	struct flow f = { .ct = ct, .free_tx = U32_MAX };
	struct ib_wc wc;

	f.seen = bitmap_zalloc(ct->messages, GFP_KERNEL);
	if (!EXPECT(ct, f.seen))
		return;
	run_flow(ct, &f);
	EXPECT_EQ(ct, f.got, ct->messages);
	EXPECT(ct, bitmap_full(f.seen, ct->messages));
	EXPECT(ct, !ep_wait(&ct->b, &wc, 200));
	ct_printf("# %u messages, %u overtaken\n", f.got, f.inversions);
	bitmap_free(f.seen);
}

const struct test_case data_cases[] = {
	{ "send_plain", send_plain, BOTH },
	{ "send_empty", send_empty, BOTH },
	{ "send_imm", send_imm, BOTH },
	{ "send_two_sges", send_two_sges, BOTH },
	{ "send_inline", send_inline, BOTH, { .inline_len = 32 } },
	{ "send_largest", send_largest, BOTH },
	{ "recv_too_small", recv_too_small, DEVICE },
	{ "recv_length_has_16_bits", recv_length_has_16_bits, DRIVER },
	{ "bad_lkey", bad_lkey, DEVICE },
	{ "bad_qpn", bad_qpn, DEVICE },
	{ "bad_qkey", bad_qkey, DEVICE },
	{ "bad_ah", bad_ah, DEVICE },
	{ "rnr_finite", rnr_finite, DEVICE, { .rnr_retry = 1 } },
	{ "rnr_infinite", rnr_infinite, DEVICE, { .rnr_retry = 7 } },
	{ "slid_names_the_device", slid_names_the_device, BOTH },
	{ "stranger_has_no_slid", stranger_has_no_slid, DEVICE,
	  .two_devices = true },
	{ "ud_send", ud_send, BOTH, { .type = IB_QPT_UD } },
	{ "ud_lost", ud_lost, DEVICE, { .type = IB_QPT_UD } },
	{ "ud_dropped", ud_dropped, DEVICE, { .type = IB_QPT_UD } },
	{ "many_messages", many_messages, BOTH, { .rnr_retry = 7 } },
	{ }
};
