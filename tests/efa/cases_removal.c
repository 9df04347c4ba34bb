// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Devices that are removed at full depth: messages and RMA in both directions, as
 * much as there is room for, until the script that started the case has removed the
 * devices. Then each accepted operation must have completed once.
 */
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "efa.h"

#define ET_SLOTS	4096
#define ET_MSG		64
#define ET_RMA		256
#define ET_RMA_AT	(ET_SLOTS * ET_MSG)
/* Half of the queue, so that at least half of the receives are always outstanding. */
#define ET_SENDS	256

static_assert(ET_RMA_AT + ET_SLOTS * ET_RMA <= ET_BUF);

enum et_kind {
	ET_KIND_NONE,
	ET_KIND_RECV,
	ET_KIND_SEND,
	ET_KIND_READ,
	ET_KIND_WRITE,
	ET_KINDS,
};

/**
 * struct et_traffic - the operations of an end
 * @end: the end
 * @mr: region for the other end's RMA
 * @peer: operations of the other end
 * @next: number of the next post
 * @ret: return value of the last post
 * @kind: enum et_kind of each context's outstanding operation
 * @posted: number of accepted operations, by kind
 * @open: number of outstanding operations, by kind
 * @done: number of successful operations
 * @gone: number of operations that failed with ENODEV, by kind
 * @other: number of operations that failed with another error
 * @wrong: number of completions without an outstanding operation
 */
struct et_traffic {
	struct et_end		*end;
	struct fid_mr		*mr;
	struct et_traffic	*peer;
	u32			next;
	ssize_t			ret;
	u8			kind[ET_SLOTS];
	u32			posted[ET_KINDS];
	u32			open[ET_KINDS];
	u32			done;
	u32			gone[ET_KINDS];
	u32			other;
	u32			wrong;
};

static u32 et_sum(const u32 *by_kind)
{
	u32 i, sum = 0;

	for (i = 0; i < ET_KINDS; i++)
		sum += by_kind[i];
	return sum;
}

static ssize_t et_traffic_call(struct et_traffic *tr, enum et_kind kind,
			       u32 slot)
{
	u64 raddr = tr->peer->mr->base_addr + slot * ET_RMA % SZ_64K;
	u64 key = fi_mr_key(tr->peer->mr);
	struct et_end *end = tr->end;
	void *context = (void *)(slot + 1L);
	u8 *msg = end->buf + slot * ET_MSG;
	u8 *rma = end->buf + ET_RMA_AT + slot * ET_RMA;

	switch (kind) {
	case ET_KIND_RECV:
		return fi_recv(end->ep, msg, ET_MSG, NULL, FI_ADDR_UNSPEC,
			       context);
	case ET_KIND_SEND:
		if (tr->open[ET_KIND_SEND] >= ET_SENDS)
			return -EAGAIN;
		return fi_send(end->ep, msg, ET_MSG, NULL, end->peer, context);
	case ET_KIND_READ:
		return fi_read(end->ep, rma, ET_RMA, NULL, end->peer, raddr,
			       key, context);
	default:
		return fi_write(end->ep, rma, ET_RMA, NULL, end->peer, raddr,
				key, context);
	}
}

static void et_traffic_post(struct et_traffic *tr)
{
	static const enum et_kind kinds[] = {
		ET_KIND_RECV, ET_KIND_SEND, ET_KIND_READ,
		ET_KIND_RECV, ET_KIND_SEND, ET_KIND_WRITE,
	};
	enum et_kind kind = kinds[tr->next % ARRAY_SIZE(kinds)];
	u32 slot = tr->next++ % ET_SLOTS;

	if (tr->ret == -ENODEV || tr->kind[slot])
		return;
	tr->ret = et_traffic_call(tr, kind, slot);
	if (tr->ret)
		return;
	tr->kind[slot] = kind;
	tr->posted[kind]++;
	tr->open[kind]++;
}

/* Return: the kind of the operation that completed. */
static enum et_kind et_traffic_take(struct et_traffic *tr, void *context)
{
	unsigned long slot = (unsigned long)context - 1;
	enum et_kind kind = slot < ET_SLOTS ? tr->kind[slot] : ET_KIND_NONE;

	if (!kind) {
		tr->wrong++;
		return kind;
	}
	tr->kind[slot] = ET_KIND_NONE;
	tr->open[kind]--;
	return kind;
}

static void et_traffic_drain(struct et_traffic *tr)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry error = { };
	enum et_kind kind;
	ssize_t ret;

	while ((ret = fi_cq_read(tr->end->cq, &entry, 1)) != -EAGAIN) {
		if (ret == 1) {
			et_traffic_take(tr, entry.op_context);
			tr->done++;
			continue;
		}
		fi_cq_readerr(tr->end->cq, &error, 0);
		kind = et_traffic_take(tr, error.op_context);
		if (error.err == ENODEV)
			tr->gone[kind]++;
		else
			tr->other++;
	}
}

static void et_traffic_run(struct et_traffic *tr)
{
	unsigned long end = jiffies + 60 * HZ;
	int i;

	while ((tr[0].ret != -ENODEV || tr[1].ret != -ENODEV) &&
	       time_before(jiffies, end)) {
		WRITE_ONCE(et_depth, min(et_sum(tr[0].open),
					 et_sum(tr[1].open)));
		for (i = 0; i < 2; i++) {
			et_traffic_post(&tr[i]);
			if (tr[i].ret || !(tr[i].next % 64))
				et_traffic_drain(&tr[i]);
		}
		cond_resched();
	}
	WRITE_ONCE(et_depth, 0);
}

/* All remaining operations complete, and none completes twice. */
static void et_traffic_settle(struct et *t, struct et_traffic *tr)
{
	unsigned long end = jiffies + msecs_to_jiffies(ET_TIMEOUT);

	do {
		et_traffic_drain(tr);
		msleep(20);
	} while (et_sum(tr->open) && time_before(jiffies, end));
	msleep(200);
	et_traffic_drain(tr);
	et_printf("# %s: %u posted, %u done, %u other; ",
		  tr->end->info->domain_attr->name, et_sum(tr->posted),
		  tr->done, tr->other);
	et_printf("in flight: %u receives, %u sends, %u reads, %u writes\n",
		  tr->gone[ET_KIND_RECV], tr->gone[ET_KIND_SEND],
		  tr->gone[ET_KIND_READ], tr->gone[ET_KIND_WRITE]);
	ET_EXPECT_EQ(t, et_sum(tr->open), 0);
	ET_EXPECT_EQ(t, tr->wrong, 0);
	ET_EXPECT_EQ(t, tr->done + et_sum(tr->gone) + tr->other,
		     et_sum(tr->posted));
	ET_EXPECT(t, et_sum(tr->gone) >= t->arg);
}

static void et_expect_gone(struct et *t, struct et_end *end)
{
	struct fi_eq_device_entry event = { };
	u32 type;

	/* The other device may have arrived after this one was opened. */
	do {
		type = 0;
		ET_EXPECT_EQ(t, fi_eq_sread(end->eq, &type, &event,
					    sizeof(event), ET_TIMEOUT, 0),
			     sizeof(event));
	} while (type == FI_DEVICE_ARRIVED);
	ET_EXPECT_EQ(t, type, FI_DEVICE_REMOVED);
	ET_EXPECT(t, event.fid == &end->domain->fid);
	ET_EXPECT_EQ(t, fi_inject(end->ep, end->small, 1, 0), -ENODEV);
	ET_EXPECT_EQ(t, et_connect(end, end), -ENODEV);
}

static bool et_traffic_init(struct et *t, struct et_traffic *tr)
{
	int i;

	for (i = 0; i < 2; i++) {
		tr[i].end = i ? &t->b : &t->a;
		tr[i].peer = &tr[!i];
		if (!ET_EXPECT_EQ(t, fi_mr_reg(tr[i].end->domain,
					       tr[i].end->small, SZ_64K,
					       FI_REMOTE_READ | FI_REMOTE_WRITE,
					       0, 0, 0, &tr[i].mr, NULL), 0))
			return false;
	}
	return true;
}

static void et_removal(struct et *t)
{
	struct et_traffic *tr = kcalloc(2, sizeof(*tr), GFP_KERNEL);
	int i;

	if (!ET_EXPECT(t, tr))
		return;
	if (et_traffic_init(t, tr)) {
		et_traffic_run(tr);
		for (i = 0; i < 2; i++) {
			ET_EXPECT_EQ(t, tr[i].ret, -ENODEV);
			et_expect_gone(t, tr[i].end);
			et_traffic_settle(t, &tr[i]);
		}
		/* The device removed last had RMA outstanding to the one removed first. */
		ET_EXPECT(t, tr[1].gone[ET_KIND_READ] +
			     tr[1].gone[ET_KIND_WRITE]);
	}
	for (i = 0; i < 2; i++)
		if (tr[i].mr)
			ET_EXPECT_EQ(t, fi_close(&tr[i].mr->fid), 0);
	kfree(tr);
}

const struct et_case et_removal_cases[] = {
	{ "removal", et_removal, .alone = true },
	{ }
};
