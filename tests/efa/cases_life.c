// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Addresses, counters, closing with work outstanding, and devices that go. */
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "efa.h"

static void et_av(struct et *t)
{
	struct fi_efa_addr addr, back = { }, two[2];
	size_t len = sizeof(addr);
	fi_addr_t first, again, both[2];
	char text[96];

	ET_EXPECT_EQ(t, fi_av_lookup(t->a.av, t->a.peer, &addr, &len), 0);
	ET_EXPECT_EQ(t, len, sizeof(addr));
	ET_EXPECT_EQ(t, fi_av_insert(t->a.av, &addr, 1, &again, 0, NULL), 1);
	ET_EXPECT_EQ(t, again, t->a.peer);
	len = sizeof(text);
	ET_EXPECT(t, fi_av_straddr(t->a.av, &addr, text, &len));
	ET_EXPECT(t, !strncmp(text, "fi_addr_efa://[", 15));

	two[0] = addr;
	two[0].qpn ^= 0x55;
	memset(&two[1], 0, sizeof(two[1]));
	ET_EXPECT_EQ(t, fi_av_insert(t->a.av, two, 2, both, 0, NULL), 1);
	ET_EXPECT(t, both[1] == FI_ADDR_NOTAVAIL);
	first = both[0];
	ET_EXPECT_EQ(t, fi_av_remove(t->a.av, &first, 1, 0), 0);
	ET_EXPECT_EQ(t, fi_av_remove(t->a.av, &first, 1, 0), -EINVAL);
	ET_EXPECT_EQ(t, fi_av_lookup(t->a.av, first, &back, &len), -EINVAL);
	ET_EXPECT_EQ(t, fi_inject(t->a.ep, t->a.small, 1, first),
		     -EHOSTUNREACH);
}

/* An address goes while there is work for it: the work gets done. */
static void et_av_busy(struct et *t)
{
	struct fi_cq_data_entry entry;
	int i;

	for (i = 0; i < 16; i++)
		ET_EXPECT_EQ(t, fi_send(t->a.ep, t->a.small + i * 64, 64, NULL,
					t->a.peer, NULL), 0);
	ET_EXPECT_EQ(t, fi_av_remove(t->a.av, &t->a.peer, 1, 0), 0);
	msleep(20);
	for (i = 0; i < 16; i++)
		ET_EXPECT_EQ(t, fi_recv(t->b.ep, t->b.small + i * 64, 64,
					NULL, FI_ADDR_UNSPEC, NULL), 0);
	for (i = 0; i < 16; i++)
		ET_EXPECT_EQ(t, et_wait(&t->a, &entry), 0);
	ET_EXPECT_EQ(t, et_connect(&t->a, &t->b), 0);
}

/* A key of somebody who is gone, or a wrong one, must not do harm. */
static void et_wrong_peer(struct et *t)
{
	struct fi_cq_err_entry error = { };
	struct fi_efa_addr addr;
	size_t len = sizeof(addr);
	fi_addr_t wrong;

	ET_EXPECT_EQ(t, fi_av_lookup(t->a.av, t->a.peer, &addr, &len), 0);
	addr.qpn ^= 0x4000;
	ET_EXPECT_EQ(t, fi_av_insert(t->a.av, &addr, 1, &wrong, 0, NULL), 1);
	ET_EXPECT_EQ(t, fi_send(t->a.ep, t->a.small, 64, NULL, wrong, NULL),
		     0);
	ET_EXPECT_EQ(t, et_wait_err(&t->a, &error), 0);
	ET_EXPECT_EQ(t, error.err, ECONNRESET);
	ET_EXPECT_EQ(t, error.prov_errno, 9);
}

static void et_counters(struct et *t)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *sent = NULL;
	struct fid_ep *ep = NULL;
	fi_addr_t peer = t->a.peer;
	int i;

	ET_EXPECT_EQ(t, fi_cntr_open(t->a.domain, &attr, &sent, NULL), 0);
	ET_EXPECT_EQ(t, fi_endpoint(t->a.domain, t->a.info, &ep, NULL), 0);
	if (!ep || !sent)
		return;
	ET_EXPECT_EQ(t, fi_inject(ep, t->a.small, 1, peer), -FI_EOPBADSTATE);
	ET_EXPECT_EQ(t, fi_ep_bind(ep, &t->a.av->fid, 0), 0);
	ET_EXPECT_EQ(t, fi_ep_bind(ep, &sent->fid, FI_SEND), 0);
	ET_EXPECT_EQ(t, fi_ep_bind(ep, &sent->fid, FI_REMOTE_WRITE),
		     -EOPNOTSUPP);
	ET_EXPECT_EQ(t, fi_ep_bind(ep, &t->a.cq->fid, FI_RECV), 0);
	ET_EXPECT_EQ(t, fi_enable(ep), 0);
	for (i = 0; i < 5; i++) {
		ET_EXPECT_EQ(t, fi_recv(t->b.ep, t->b.small + i * 64, 64,
					NULL, FI_ADDR_UNSPEC, NULL), 0);
		ET_EXPECT_EQ(t, fi_send(ep, t->a.small + i * 64, 64, NULL, peer,
					NULL), 0);
	}
	ET_EXPECT_EQ(t, fi_cntr_wait(sent, 5, ET_TIMEOUT), 0);
	ET_EXPECT_EQ(t, fi_cntr_read(sent), 5);
	ET_EXPECT_EQ(t, fi_close(&ep->fid), 0);
	ET_EXPECT_EQ(t, fi_close(&sent->fid), 0);
}

/* Every operation outstanding completes once, before close returns. */
static void et_close_busy(struct et *t)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry error;
	int i, recvs = 100, sends = 100, done = 0, canceled = 0;
	ssize_t ret;

	for (i = 0; i < recvs; i++)
		ET_EXPECT_EQ(t, fi_recv(t->a.ep, t->a.small + i * 64, 64,
					NULL, FI_ADDR_UNSPEC,
					(void *)(i + 1L)), 0);
	for (i = 0; i < sends; i++)
		ET_EXPECT_EQ(t, fi_send(t->a.ep,
					t->a.small + SZ_32K + i * 64, 64, NULL,
					t->a.peer, (void *)(i + 1001L)), 0);
	ET_EXPECT_EQ(t, fi_close(&t->a.ep->fid), 0);
	t->a.ep = NULL;
	while ((ret = fi_cq_read(t->a.cq, &entry, 1)) != -EAGAIN) {
		if (ret == 1) {
			done++;
			continue;
		}
		ET_EXPECT_EQ(t, fi_cq_readerr(t->a.cq, &error, 0), 1);
		ET_EXPECT_EQ(t, error.err, ECANCELED);
		canceled++;
	}
	ET_EXPECT_EQ(t, done + canceled, recvs + sends);
	ET_EXPECT(t, canceled >= recvs);
}

/**
 * struct et_drain - what came of many operations
 * @done: with success
 * @gone: because the device is
 * @other: for other reasons
 */
struct et_drain {
	u32	done;
	u32	gone;
	u32	other;
};

static void et_drain(struct et_end *end, struct et_drain *drain)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry error;
	ssize_t ret;

	while ((ret = fi_cq_read(end->cq, &entry, 1)) != -EAGAIN) {
		if (ret == 1) {
			drain->done++;
			continue;
		}
		fi_cq_readerr(end->cq, &error, 0);
		if (error.err == ENODEV)
			drain->gone++;
		else
			drain->other++;
	}
}

static u32 et_drained(const struct et_drain *drain)
{
	return drain->done + drain->gone + drain->other;
}

/* One send or receive; its context is the number of the post, from 1 on. */
static ssize_t et_traffic_post(struct et_end *end, u32 n)
{
	void *context = (void *)(long)(n & 4095);
	u8 *buf = end->buf + (n & 4095) * 64;

	if (n % 2)
		return fi_recv(end->ep, buf, 64, NULL, FI_ADDR_UNSPEC, context);
	return fi_send(end->ep, buf, 64, NULL, end->peer, context);
}

/*
 * Traffic in both directions, as much as there is room for, until the devices
 * have gone; whoever started this takes them away. Then all that was accepted
 * must have completed, once.
 */
static void et_removal(struct et *t)
{
	struct et_end *ends[] = { &t->a, &t->b };
	struct fi_eq_device_entry event;
	struct et_drain *drain;
	u32 posted[2] = { }, type;
	unsigned long end = jiffies + 60 * HZ;
	int i, in_flight;
	ssize_t ret[2] = { };
	struct fid_mr *mr = NULL;

	drain = kcalloc(2, sizeof(*drain), GFP_KERNEL);
	if (!ET_EXPECT(t, drain))
		return;
	ET_EXPECT_EQ(t, fi_mr_reg(t->b.domain, t->b.small, SZ_64K,
				  FI_REMOTE_READ, 0, 0, 0, &mr, NULL), 0);
	while ((ret[0] != -ENODEV || ret[1] != -ENODEV) &&
	       time_before(jiffies, end)) {
		for (i = 0; i < 2; i++) {
			/* No context twice at a time: the ring is larger. */
			ret[i] = et_traffic_post(ends[i], posted[i] + 1);
			if (!ret[i])
				posted[i]++;
			if (posted[i] - drain[i].done >= 1024 || ret[i])
				et_drain(ends[i], &drain[i]);
		}
		cond_resched();
	}
	for (i = 0; i < 2; i++) {
		ET_EXPECT_EQ(t, ret[i], -ENODEV);
		ret[i] = fi_eq_sread(ends[i]->eq, &type, &event, sizeof(event),
				     ET_TIMEOUT, 0);
		ET_EXPECT_EQ(t, ret[i], sizeof(event));
		ET_EXPECT_EQ(t, type, FI_DEVICE_REMOVED);
		ET_EXPECT(t, event.fid == &ends[i]->domain->fid);
	}
	for (i = 0; i < 2; i++) {
		in_flight = posted[i] - et_drained(&drain[i]);
		/* The event comes before the completions. */
		end = jiffies + msecs_to_jiffies(ET_TIMEOUT);
		while (et_drained(&drain[i]) < posted[i] &&
		       time_before(jiffies, end)) {
			msleep(20);
			et_drain(ends[i], &drain[i]);
		}
		/* And nothing comes twice. */
		msleep(200);
		et_drain(ends[i], &drain[i]);
		et_printf("# end %d: %u posted, %u done, %u gone, %u other; %d in flight\n",
			  i, posted[i], drain[i].done, drain[i].gone,
			  drain[i].other, in_flight);
		ET_EXPECT_EQ(t, et_drained(&drain[i]), posted[i]);
		ET_EXPECT(t, drain[i].gone >= t->arg);
		ET_EXPECT_EQ(t, fi_inject(ends[i]->ep, ends[i]->small, 1, 0),
			     -ENODEV);
		ET_EXPECT_EQ(t, et_connect(ends[i], ends[i]), -ENODEV);
	}
	if (mr)
		ET_EXPECT_EQ(t, fi_close(&mr->fid), 0);
	kfree(drain);
}

const struct et_case et_life_cases[] = {
	{ "av", et_av },
	{ "av_busy", et_av_busy },
	{ "wrong_peer", et_wrong_peer },
	{ "counters", et_counters },
	{ "close_busy", et_close_busy },
	{ "removal", et_removal, .alone = true },
	{ }
};
