// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Stations: opening, closing, and reading of completions. */
#define pr_fmt(fmt) "kofi_soak: " fmt

#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "soak.h"

#define SOAK_TIMEOUT	(600 * HZ)
#define SOAK_BATCH	4

/* Only unsolicited completions have no context. */
static void soak_done(const struct fi_cq_tagged_entry *entry, fi_addr_t src)
{
	struct soak_op *op = entry->op_context;

	if (!op)
		return;
	op->len = entry->len;
	op->tag = entry->tag;
	op->src_addr = src;
	complete(&op->done);
}

static void soak_failed(const struct fi_cq_err_entry *error)
{
	struct soak_op *op = error->op_context;

	if (!op)
		return;
	op->err = error->err;
	op->len = error->len;
	complete(&op->done);
}

/* Read some completions. Return: false if there was none. */
static bool soak_read(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry[SOAK_BATCH];
	fi_addr_t src[SOAK_BATCH];
	struct fi_cq_err_entry error = { };
	ssize_t i, n;

	n = fi_cq_readfrom(cq, entry, SOAK_BATCH, src);
	if (n == -FI_EAVAIL) {
		if (fi_cq_readerr(cq, &error, 0) == 1)
			soak_failed(&error);
		return true;
	}
	for (i = 0; i < n; i++)
		soak_done(&entry[i], src[i]);
	return n > 0;
}

static void soak_handler(struct fid_cq *cq, void *context)
{
	while (soak_read(cq))
		;
}

static void soak_eq_handler(struct fid_eq *eq, void *context)
{
	struct soak_end *end = context;
	struct fi_eq_device_entry entry;
	u32 event;

	while (fi_eq_read(eq, &event, &entry, sizeof(entry), 0) > 0)
		if (event == FI_DEVICE_REMOVED)
			WRITE_ONCE(end->removed, true);
}

/* Sleep between polls, because many polling threads would starve a soft device's workers. */
static void soak_rest(void)
{
	if (soak_fabric)
		usleep_range(50, 200);
	else
		cond_resched();
}

static bool soak_try(struct soak_station *st, struct soak_op *op)
{
	if (st->handler)
		return wait_for_completion_timeout(&op->done, HZ / 20);
	if (!soak_read(st->end[0].cq) && !soak_read(st->end[1].cq))
		soak_rest();
	return try_wait_for_completion(&op->done);
}

/**
 * soak_wait() - wait for an operation
 * @st: the station
 * @op: the operation
 * @taker: for a receive, its endpoint, on which the receive is canceled after the removal of a
 *	device, because the message may never arrive
 *
 * Context: Process context; sleeps. Without a handler, reads completions of other threads, too.
 * Return: 0, or the operation's negative errno; -ETIMEDOUT if no completion came.
 */
int soak_wait(struct soak_station *st, struct soak_op *op, struct fid_ep *taker)
{
	unsigned long end = jiffies + SOAK_TIMEOUT;

	while (!soak_try(st, op)) {
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		if (taker && (READ_ONCE(st->end[0].removed) ||
			      READ_ONCE(st->end[1].removed)))
			fi_cancel(&taker->fid, op);
	}
	return -op->err;
}

/**
 * soak_pass() - wait until some operations have completed, to make room
 * @st: the station
 *
 * Context: Process context; sleeps.
 */
void soak_pass(struct soak_station *st)
{
	if (st->handler)
		usleep_range(50, 200);
	else if (!soak_read(st->end[0].cq) && !soak_read(st->end[1].cq))
		soak_rest();
}

static int soak_end_find(struct soak_end *end, const char *domain)
{
	struct fi_info *hints = fi_allocinfo_for(soak_provider, soak_fabric, NULL);
	struct fi_info *info;
	int ret = -ENOMEM;

	if (!hints)
		return ret;
	hints->caps = FI_MSG | FI_TAGGED | FI_SOURCE | (soak_rma ? FI_RMA : 0);
	hints->ep_attr->type = FI_EP_RDM;
	ret = fi_getinfo(FI_VERSION(2, 0), NULL, NULL, 0, hints, &info);
	if (ret)
		goto out;
	/* Use another device than the other end's, if the fabric has one. */
	end->info = fi_dupinfo(domain && info->next &&
			       !strcmp(info->domain_attr->name, domain) ?
			       info->next : info);
	fi_freeinfo(info);
	ret = end->info ? 0 : -ENOMEM;
out:
	fi_freeinfo(hints);
	return ret;
}

static int soak_end_reg(struct soak_end *end)
{
	return soak_rma ? fi_mr_reg(end->domain, end->memory, soak_share * soak_max_len,
				    FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &end->mr, NULL) : 0;
}

static int soak_end_open(struct soak_end *end, bool handler)
{
	struct fi_cq_attr cq_attr = {
		.format		= FI_CQ_FORMAT_TAGGED,
		.handler	= handler ? soak_handler : NULL,
	};
	struct fi_eq_attr eq_attr = {
		.handler		= soak_eq_handler,
		.handler_context	= end,
	};
	struct fi_av_attr av_attr = {
		.type = handler ? FI_AV_TABLE : soak_fabric ? FI_AV_UNSPEC : FI_AV_MAP,
	};

	return fi_fabric(end->info->fabric_attr, &end->fabric, NULL) ?:
	       fi_eq_open(end->fabric, &eq_attr, &end->eq, NULL) ?:
	       fi_domain(end->fabric, end->info, &end->domain, NULL) ?:
	       fi_domain_bind(end->domain, &end->eq->fid, 0) ?:
	       fi_av_open(end->domain, &av_attr, &end->av, NULL) ?:
	       fi_cq_open(end->domain, &cq_attr, &end->cq, NULL) ?:
	       soak_end_reg(end) ?:
	       fi_endpoint(end->domain, end->info, &end->ep, NULL) ?:
	       fi_ep_bind(end->ep, &end->av->fid, 0) ?:
	       fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV) ?:
	       fi_enable(end->ep) ?:
	       fi_getname(&end->ep->fid, end->name, &end->name_len);
}

static int soak_close(struct fid *fid)
{
	int ret = fid ? fi_close(fid) : 0;

	if (ret)
		pr_err("can't close an object: %s\n", fi_strerror(-ret));
	return ret;
}

#define SOAK_CLOSE(obj) \
	({ int __ret = soak_close((obj) ? &(obj)->fid : NULL); \
	   (obj) = NULL; __ret; })

static int soak_end_close(struct soak_end *end)
{
	int ret = 0;

	ret |= SOAK_CLOSE(end->ep);
	ret |= SOAK_CLOSE(end->mr);
	ret |= SOAK_CLOSE(end->cq);
	ret |= SOAK_CLOSE(end->av);
	ret |= SOAK_CLOSE(end->domain);
	ret |= SOAK_CLOSE(end->eq);
	ret |= SOAK_CLOSE(end->fabric);
	fi_freeinfo(end->info);
	end->info = NULL;
	return ret;
}

static int soak_meet(struct soak_end *end, const struct soak_end *other)
{
	int ret = fi_av_insert(end->av, other->name, 1, &end->peer, 0, NULL);

	return ret == 1 ? 0 : ret ?: -EADDRNOTAVAIL;
}

static int soak_mrs_open(struct soak_station *st)
{
	const struct fi_mr_alloc_attr attr = {
		.max_pages	= soak_max_len / PAGE_SIZE + 1,
		.access		= FI_REMOTE_WRITE,
		.cq		= st->end[1].cq,
	};
	unsigned int i;
	int ret = 0;

	for (i = 0; i < soak_share && soak_rma && !ret; i++)
		ret = fi_mr_alloc(st->end[1].domain, &attr, &st->mr[i], NULL);
	return ret;
}

/**
 * soak_station_open() - open both ends
 * @st: the station, closed
 *
 * Context: Process context; sleeps. Under @st->sem.
 * Return: 0, or a negative errno, after which the station is closed.
 */
int soak_station_open(struct soak_station *st)
{
	struct soak_end *a = &st->end[0], *b = &st->end[1];
	int ret;

	lockdep_assert_held_write(&st->sem);
	a->name_len = sizeof(a->name);
	b->name_len = sizeof(b->name);
	a->removed = false;
	b->removed = false;
	ret = soak_end_find(a, NULL) ?:
	      soak_end_find(b, a->info->domain_attr->name) ?:
	      soak_end_open(a, st->handler) ?: soak_end_open(b, st->handler) ?:
	      soak_meet(a, b) ?: soak_meet(b, a) ?: soak_mrs_open(st);
	if (ret) {
		soak_station_close(st);
		return ret;
	}
	st->open = true;
	st->generation++;
	return 0;
}

/**
 * soak_station_close() - close both ends
 * @st: the station, without outstanding operations
 *
 * Context: Process context; sleeps. Under @st->sem.
 * Return: 0, or nonzero if an object couldn't be closed.
 */
int soak_station_close(struct soak_station *st)
{
	int i, ret = 0;

	lockdep_assert_held_write(&st->sem);
	st->open = false;
	for (i = 0; i < soak_share; i++)
		ret |= SOAK_CLOSE(st->mr[i]);
	return ret | soak_end_close(&st->end[0]) | soak_end_close(&st->end[1]);
}

/**
 * soak_station_init() - prepare a station, and open it
 * @st: the station
 * @handler: handlers read the completions, not the threads
 *
 * Context: Process context; sleeps.
 * Return: 0, or a negative errno. Call soak_station_fini() in either case.
 */
int soak_station_init(struct soak_station *st, bool handler)
{
	int i, ret;

	init_rwsem(&st->sem);
	st->handler = handler;
	for (i = 0; i < 2 && soak_rma; i++) {
		st->end[i].memory = kvzalloc(soak_share * soak_max_len,
					     GFP_KERNEL);
		if (!st->end[i].memory)
			return -ENOMEM;
	}
	down_write(&st->sem);
	ret = soak_station_open(st);
	up_write(&st->sem);
	return ret;
}

/**
 * soak_station_fini() - close a station for good
 * @st: the station
 *
 * Context: Process context; sleeps.
 * Return: 0, or nonzero if an object couldn't be closed.
 */
int soak_station_fini(struct soak_station *st)
{
	int ret;

	down_write(&st->sem);
	ret = soak_station_close(st);
	up_write(&st->sem);
	kvfree(st->end[0].memory);
	kvfree(st->end[1].memory);
	return ret;
}
