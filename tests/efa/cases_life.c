// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Addresses, counters, and closing with work outstanding. */
#include <linux/delay.h>
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

/* An address is removed while there are operations to it, which still complete. */
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

/* Operations to a peer that is gone, or with a wrong key, fail and have no other effect. */
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

/* Open another endpoint, with an option that must be set before fi_enable(). */
static struct fid_ep *et_impatient(struct et *t, size_t times)
{
	struct fid_ep *ep = NULL;

	ET_EXPECT_EQ(t, fi_endpoint(t->a.domain, t->a.info, &ep, NULL), 0);
	if (!ep)
		return NULL;
	ET_EXPECT_EQ(t, fi_setopt(&ep->fid, FI_OPT_ENDPOINT,
				  FI_OPT_EFA_RNR_RETRY, &times, sizeof(times)),
		     0);
	ET_EXPECT_EQ(t, fi_ep_bind(ep, &t->a.av->fid, 0), 0);
	ET_EXPECT_EQ(t, fi_ep_bind(ep, &t->a.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	ET_EXPECT_EQ(t, fi_enable(ep), 0);
	return ep;
}

/* A send to a peer without receives fails after the set number of retries. */
static void et_not_ready(struct et *t)
{
	struct fid_ep *ep = et_impatient(t, 2);
	struct fi_cq_err_entry error = { };
	struct fi_cq_data_entry entry;

	if (!ep)
		return;
	et_fill(t->a.small, 64, 9);
	ET_EXPECT_EQ(t, fi_send(ep, t->a.small, 64, NULL, t->a.peer, (void *)1),
		     0);
	ET_EXPECT_EQ(t, et_wait_err(&t->a, &error), 0);
	ET_EXPECT_EQ(t, error.err, EAGAIN);
	ET_EXPECT_EQ(t, error.prov_errno, 10);
	ET_EXPECT_EQ(t, (long)error.op_context, 1);
	/* The failed send had no effect on the peer. */
	memset(t->b.small, 0, 64);
	ET_EXPECT_EQ(t, fi_recv(t->b.ep, t->b.small, 64, NULL, FI_ADDR_UNSPEC,
				NULL), 0);
	ET_EXPECT(t, et_quiet(&t->b));
	ET_EXPECT_EQ(t, fi_send(ep, t->a.small, 64, NULL, t->a.peer, (void *)2),
		     0);
	ET_EXPECT_EQ(t, et_wait(&t->b, &entry), 0);
	ET_EXPECT(t, et_filled(t->b.small, 64, 9));
	ET_EXPECT_EQ(t, et_wait(&t->a, &entry), 0);
	ET_EXPECT_EQ(t, (long)entry.op_context, 2);
	ET_EXPECT_EQ(t, fi_close(&ep->fid), 0);
}

/* Every outstanding operation completes once, before fi_close() returns. */
static void et_close_busy(struct et *t)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry error = { };
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

const struct et_case et_life_cases[] = {
	{ "av", et_av },
	{ "av_busy", et_av_busy },
	{ "wrong_peer", et_wrong_peer },
	{ "counters", et_counters },
	{ "not_ready", et_not_ready },
	{ "close_busy", et_close_busy },
	{ }
};
