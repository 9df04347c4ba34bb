// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The test between two machines.
 *
 * One serves:  echo DEVICE > serve; cat serve        -> GID/QPN/QKEY/RKEY/ADDR
 *              echo GID-OF-THE-CLIENT > peer
 * one runs:    echo "DEVICE GID/QPN/QKEY/RKEY/ADDR [one]" > run; cat results
 *
 * The server checks each message, and keeps counters in memory that the client
 * reads by RDMA. With "one" the client sends a single message, and prints the
 * device's status of it.
 */
#include <linux/bitmap.h>
#include <linux/crc32.h>
#include <linux/delay.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/dma-mapping.h>
#include <linux/kthread.h>

#include "conformance.h"

#define WAIT_MS		60000
/* Messages in flight, and room for the largest MTU. */
#define SLOTS		56
#define SLOT_SIZE	9216
#define BUF		(SLOTS * SLOT_SIZE)
#define BATCH		8	/* completions per poll, on the stack */
#define SETTLE_MS	300
#define STARVED_MS	20000
#define SCRATCH_PAGES	8
#define MAX_MESSAGES	(16 << 20)
#define REMOTE		(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | \
			 IB_ACCESS_REMOTE_WRITE)

static unsigned int serve_us;
module_param(serve_us, uint, 0644);
MODULE_PARM_DESC(serve_us, "microseconds that the server takes at least for a message");

struct msg {
	__le32 seq;
	__le32 len;
	__le32 crc;
	u8 data[];
};

/* At the start of the served region; scratch begins on its second page. */
struct served_stats {
	__le64 got;
	__le64 doubled;
	__le64 damaged;
	__le64 overtaken;
	__le64 imm;
};

static struct server {
	struct ep ep;
	struct region region;
	struct task_struct *thread;
	unsigned long *seen;
	u8 *copy;
	u32 last;
	struct served_stats stats;
	struct ib_wc wc[SLOTS];
} *server;	/* run_lock in main.c protects the pointer */

static bool intact(const struct msg *msg, u32 len)
{
	u32 seq = le32_to_cpu(msg->seq);

	return len >= sizeof(*msg) && le32_to_cpu(msg->len) == len &&
	       seq < MAX_MESSAGES &&
	       le32_to_cpu(msg->crc) == crc32_le(seq, msg->data,
						 len - sizeof(*msg));
}

static void count_message(struct server *s, const struct ib_wc *wc)
{
	struct msg *msg = (struct msg *)s->copy;
	u32 seq;

	ep_read(&s->ep, wc->wr_id * SLOT_SIZE, s->copy, wc->byte_len);
	if (!intact(msg, wc->byte_len)) {
		le64_add_cpu(&s->stats.damaged, 1);
		return;
	}
	seq = le32_to_cpu(msg->seq);
	if (test_and_set_bit(seq, s->seen))
		le64_add_cpu(&s->stats.doubled, 1);
	if (seq < s->last)
		le64_add_cpu(&s->stats.overtaken, 1);
	s->last = seq;
	le64_add_cpu(&s->stats.got, 1);
}

static void publish(struct server *s)
{
	struct device *dma = s->ep.dev->dma_device;

	dma_sync_sg_for_cpu(dma, s->region.sg, 1, DMA_BIDIRECTIONAL);
	memcpy(sg_virt(s->region.sg), &s->stats, sizeof(s->stats));
	dma_sync_sg_for_device(dma, s->region.sg, 1, DMA_BIDIRECTIONAL);
}

static void serve_one(struct server *s, const struct ib_wc *wc)
{
	unsigned int us = READ_ONCE(serve_us);

	if (us)
		usleep_range(us, us + us / 8);
	if (wc->status)
		le64_add_cpu(&s->stats.damaged, 1);
	else if (wc->opcode == IB_WC_RECV_RDMA_WITH_IMM)
		le64_add_cpu(&s->stats.imm, be32_to_cpu(wc->ex.imm_data));
	else
		count_message(s, wc);
	ep_recv(&s->ep, wc->wr_id * SLOT_SIZE, SLOT_SIZE, wc->wr_id);
}

static int serve_thread(void *data)
{
	struct server *s = data;
	int ret, i;

	while (!kthread_should_stop()) {
		ret = ep_next(&s->ep, s->wc, SLOTS, MSEC_PER_SEC);
		for (i = 0; i < ret; i++) {
			serve_one(s, &s->wc[i]);
			publish(s);
		}
		cond_resched();
	}
	return 0;
}

static int start_server(struct server *s, struct ib_device *dev)
{
	const struct ep_opts opts = { .rnr_retry = 7, .buf = BUF };
	u32 i;
	int err;

	err = ep_open(&s->ep, dev, &opts);
	if (err)
		return err;
	err = region_open(&s->region, &s->ep, 1 + SCRATCH_PAGES);
	if (err)
		return err;
	err = region_reg(&s->region, REMOTE);
	if (err)
		return -EIO;
	s->copy = kmalloc(SLOT_SIZE, GFP_KERNEL);
	s->seen = vzalloc(BITS_TO_LONGS(MAX_MESSAGES) * sizeof(long));
	if (!s->copy || !s->seen)
		return -ENOMEM;
	for (i = 0; i < SLOTS; i++) {
		err = ep_recv(&s->ep, i * SLOT_SIZE, SLOT_SIZE, i);
		if (err)
			return err;
	}
	s->thread = kthread_run(serve_thread, s, "efa-conformance");
	return PTR_ERR_OR_ZERO(s->thread);
}

int remote_serve(struct ib_device *dev)
{
	int err;

	server = kzalloc(sizeof(*server), GFP_KERNEL);
	if (!server)
		return -ENOMEM;
	err = start_server(server, dev);
	if (err)
		remote_stop();
	return err;
}

void remote_stop(void)
{
	if (!server)
		return;
	if (!IS_ERR_OR_NULL(server->thread))
		kthread_stop(server->thread);
	/* Destroy the queue pair before freeing memory that peers can access. */
	if (!IS_ERR_OR_NULL(server->ep.qp)) {
		ib_destroy_qp(server->ep.qp);
		server->ep.qp = NULL;
	}
	region_close(&server->region);
	ep_close(&server->ep);
	kfree(server->copy);
	vfree(server->seen);
	kfree(server);
	server = NULL;
}

int remote_peer(const char *text)
{
	union ib_gid gid;

	if (!server || !in6_pton(text, -1, gid.raw, -1, NULL))
		return -EINVAL;
	return ep_connect(&server->ep, &gid);
}

ssize_t remote_local(char *buf, size_t len)
{
	if (!server)
		return -ENOENT;
	return scnprintf(buf, len, "%pI6/%u/%u/%u/%llu\n", server->ep.gid.raw,
			 server->ep.qp->qp_num, server->ep.qkey,
			 server->region.mr->rkey, server->region.mr->iova);
}

struct target {
	union ib_gid gid;
	u32 qpn;
	u32 qkey;
	u32 rkey;
	u64 addr;
};

static bool parse_target(const char *text, struct target *t)
{
	const char *end;

	return in6_pton(text, -1, t->gid.raw, '/', &end) && *end == '/' &&
	       sscanf(end, "/%u/%u/%u/%llu", &t->qpn, &t->qkey, &t->rkey,
		      &t->addr) == 4;
}

static struct req to(const struct target *t, enum ib_wr_opcode op, u32 off,
		     u32 len)
{
	return (struct req) {
		.op = op, .off = off, .len = len, .qpn = t->qpn,
		.qkey = t->qkey, .rkey = t->rkey, .raddr = t->addr,
	};
}

static u32 length_of(u32 seq, u32 max)
{
	u32 r = (seq * 2654435761U) >> 8;

	/* Mostly small and some large messages, like storage traffic. */
	if (r % 16)
		return sizeof(struct msg) + r % 500;
	return sizeof(struct msg) + r % (max - sizeof(struct msg) + 1);
}

static void build(struct ct *ct, u8 *buf, u32 off, u32 seq, u32 len)
{
	struct msg *msg = (struct msg *)buf;

	msg->seq = cpu_to_le32(seq);
	msg->len = cpu_to_le32(len);
	memset(msg->data, seq * 31, len - sizeof(*msg));
	msg->crc = cpu_to_le32(crc32_le(seq, msg->data, len - sizeof(*msg)));
	ep_write(&ct->a, off, buf, len);
}

static bool send_seq(struct ct *ct, const struct target *t, u8 *buf, u32 slot,
		     u32 seq)
{
	u32 len = length_of(seq, min_t(u32, SLOT_SIZE, ct->a.mtu));
	u32 off = slot * SLOT_SIZE;
	struct req req = to(t, IB_WR_SEND, off, len);

	build(ct, buf, off, seq, len);
	req.id = slot;
	return EXPECT_EQ(ct, ep_post(&ct->a, &req), 0);
}

static void send_all(struct ct *ct, const struct target *t, u8 *buf)
{
	u32 i, sent = 0, done = 0, n = min_t(u32, ct->messages, MAX_MESSAGES);
	struct ib_wc wc[BATCH];
	int ret;

	for (i = 0; i < SLOTS && sent < n; i++)
		if (!send_seq(ct, t, buf, i, sent++))
			return;
	while (done < n) {
		ret = ep_next(&ct->a, wc, BATCH, WAIT_MS);
		if (!EXPECT(ct, ret > 0))
			return;
		done += ret;
		/* Handle all of them before the device gets this CPU. */
		while (ret--) {
			if (!EXPECT_EQ(ct, wc[ret].vendor_err, 0))
				return;
			if (sent < n &&
			    !send_seq(ct, t, buf, wc[ret].wr_id, sent++))
				return;
		}
		cond_resched();
	}
}

static int finish(struct ct *ct, const struct req *req)
{
	struct ib_wc wc;

	if (!EXPECT_EQ(ct, ep_post(&ct->a, req), 0) ||
	    !EXPECT(ct, ep_wait(&ct->a, &wc, WAIT_MS)))
		return -1;
	return wc.vendor_err;
}

static void read_stats(struct ct *ct, const struct target *t,
		       struct served_stats *stats)
{
	struct req req = to(t, IB_WR_RDMA_READ, EP_RX, sizeof(*stats));

	memset(stats, 0, sizeof(*stats));
	if (EXPECT_EQ(ct, finish(ct, &req), 0))
		ep_read(&ct->a, EP_RX, stats, sizeof(*stats));
}

static void remote_messages(struct ct *ct, const struct target *t)
{
	u8 *buf = kmalloc(SLOT_SIZE, GFP_KERNEL);
	struct served_stats s = { };
	unsigned long end;
	u64 before;

	if (!EXPECT(ct, buf))
		return;
	send_all(ct, t, buf);
	kfree(buf);
	/*
	 * The server counts after the device has answered, and may be slow or
	 * starved. Once it has all messages, leave time for duplicates.
	 */
	end = jiffies + msecs_to_jiffies(STARVED_MS);
	do {
		before = le64_to_cpu(s.got);
		msleep(SETTLE_MS);
		read_stats(ct, t, &s);
		if (le64_to_cpu(s.got) != before)
			end = jiffies + msecs_to_jiffies(STARVED_MS);
	} while (!ct->failed && (le64_to_cpu(s.got) != before ||
				 (le64_to_cpu(s.got) < ct->messages &&
				  time_before(jiffies, end))));
	EXPECT_EQ(ct, le64_to_cpu(s.got), ct->messages);
	EXPECT_EQ(ct, le64_to_cpu(s.doubled), 0);
	EXPECT_EQ(ct, le64_to_cpu(s.damaged), 0);
	ct_printf("# %u messages, %llu overtaken\n", ct->messages,
		  le64_to_cpu(s.overtaken));
}

static void remote_rdma(struct ct *ct, const struct target *t)
{
	u32 len = min_t(u32, SCRATCH_PAGES * PAGE_SIZE, EP_BUF / 2) - 3;
	struct req req = to(t, IB_WR_RDMA_WRITE, EP_TX, len);

	ep_fill(&ct->a, EP_TX, len, 21);
	req.raddr += PAGE_SIZE;
	EXPECT_EQ(ct, finish(ct, &req), 0);
	req = to(t, IB_WR_RDMA_READ, EP_RX, len);
	req.raddr += PAGE_SIZE;
	EXPECT_EQ(ct, finish(ct, &req), 0);
	EXPECT(ct, ep_filled(&ct->a, EP_RX, len, 21));
}

static void remote_imm(struct ct *ct, const struct target *t)
{
	struct req req = to(t, IB_WR_RDMA_WRITE_WITH_IMM, EP_TX, 20000);
	struct served_stats s;
	int i;

	req.raddr += PAGE_SIZE;
	req.imm = 1000;
	EXPECT_EQ(ct, finish(ct, &req), 0);
	/* The server counts after the device has answered. */
	for (i = 0; i < 100; i++) {
		read_stats(ct, t, &s);
		if (s.imm)
			break;
		msleep(20);
	}
	EXPECT_EQ(ct, le64_to_cpu(s.imm), 1000);
}

static void remote_refusals(struct ct *ct, const struct target *t)
{
	struct req req = to(t, IB_WR_RDMA_READ, EP_RX, 8);

	req.rkey ^= BIT(EFA_MR_GEN_SHIFT);
	EXPECT_EQ(ct, finish(ct, &req), ST_BAD_ADDRESS);
	req = to(t, IB_WR_SEND, EP_TX, 8);
	req.qpn = 0xfff0;
	EXPECT_EQ(ct, finish(ct, &req), ST_BAD_QPN);
	req = to(t, IB_WR_SEND, EP_TX, 8);
	req.qkey ^= 1;
	EXPECT(ct, finish(ct, &req) > 0);
}

static void remote_one(struct ct *ct, const struct target *t)
{
	struct req req = to(t, IB_WR_SEND, EP_TX, sizeof(struct msg));
	int status = finish(ct, &req);

	EXPECT(ct, status >= 0);
	ct_printf("# status %d\n", status);
}

static const struct {
	const char *name;
	void (*run)(struct ct *ct, const struct target *t);
	bool single;
} remote_cases[] = {
	{ "remote_rdma", remote_rdma },
	{ "remote_imm", remote_imm },
	{ "remote_refusals", remote_refusals },
	{ "remote_messages", remote_messages },
	{ "one", remote_one, true },
};

static void run_one(struct ct *ct, const struct target *t, int i, int number)
{
	const struct ep_opts opts = { .rnr_retry = 7, .buf = BUF };
	int err;

	ct->failed = 0;
	err = ep_open(&ct->a, ct->dev_a, &opts) ?: ep_connect(&ct->a, &t->gid);
	if (EXPECT_EQ(ct, err, 0))
		remote_cases[i].run(ct, t);
	ep_close(&ct->a);
	ct_printf("%s %d - %s\n", ct->failed ? "not ok" : "ok", number,
		  remote_cases[i].name);
}

void remote_run(struct ct *ct, const char *text, const char *only)
{
	struct target t;
	int i, n = 0;

	if (!parse_target(text, &t)) {
		ct_printf("not ok 1 - no such device or address: %s\n", text);
		return;
	}
	for (i = 0; i < ARRAY_SIZE(remote_cases); i++) {
		if (only ? !strcmp(only, remote_cases[i].name) :
			   !remote_cases[i].single)
			run_one(ct, &t, i, ++n);
	}
	ct_printf("1..%d\n", n);
}
