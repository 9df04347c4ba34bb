// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Single commands, for tests that make them fail:
 *
 *   echo "DEVICE WHAT [COUNT [ARGUMENT]]" > probe; cat probe
 *
 * WHAT is one of
 *   pd cq qp rq ah mr  creates and destroys COUNT objects: prints "GOT ERRNO".
 *                      ARGUMENT is the depth, or the number of pages of a region.
 *   numbers            creates and destroys COUNT queue pairs, one after the
 *                      other, and prints their numbers
 *   life               creates one object of each kind, brings the queue pair to
 *                      RTS, and destroys the objects: prints the errno of each step
 *   open close         opens or closes a protection domain for later commands
 *
 * A command that destroys an object is repeated if it fails.
 */
#include <linux/fs.h>
#include <linux/slab.h>

#include "conformance.h"

#define COUNT_MAX	5000
#define RETRIES		3
#define ANSWER		512

static struct probe {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_cq *cq;
	u32 arg;
	char answer[ANSWER];
	size_t len;
} probe;	/* run_lock in main.c protects it */

static void say(const char *fmt, ...) __printf(1, 2);

static void say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	probe.len += vscnprintf(probe.answer + probe.len, ANSWER - probe.len,
				fmt, args);
	va_end(args);
}

static void *make_pd(struct probe *p, u32 i)
{
	return ib_alloc_pd(p->dev, 0);
}

static void unmake_pd(void *pd)
{
	ib_dealloc_pd(pd);
}

static void *make_cq(struct probe *p, u32 i)
{
	struct ib_cq_init_attr attr = { .cqe = p->arg ?: 16 };

	return ib_create_cq(p->dev, NULL, NULL, NULL, &attr);
}

static void unmake_cq(void *cq)
{
	ib_destroy_cq(cq);
}

static void *make_queues(struct probe *p, u32 sq, u32 rq)
{
	struct ib_qp_init_attr attr = {
		.qp_type = EFA_QPT_SRD,
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.cap = {
			.max_send_wr = sq, .max_recv_wr = rq,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};

	return ib_create_qp(p->pd, &attr);
}

static void *make_qp(struct probe *p, u32 i)
{
	return make_queues(p, p->arg ?: 16, 16);
}

static void *make_rq(struct probe *p, u32 i)
{
	return make_queues(p, 16, p->arg ?: 16);
}

static int destroy_qp(struct ib_qp *qp)
{
	int i, err = ib_destroy_qp(qp);

	for (i = 0; err && i < RETRIES; i++) {
		say("again ");
		err = ib_destroy_qp(qp);
	}
	return err;
}

static void unmake_qp(void *qp)
{
	destroy_qp(qp);
}

/* Create a handle for a GID of this fabric without a device. */
static void *make_ah(struct probe *p, u32 i)
{
	union ib_gid gid = { .raw = { 0xfe, 0x80 } };
	struct ib_ah *ah;

	gid.global.interface_id = cpu_to_be64(i + 1);
	ah_new(p->pd, &gid, RDMA_CREATE_AH_SLEEPABLE, &ah);
	return ah;
}

static void unmake_ah(void *ah)
{
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
}

static void *make_mr(struct probe *p, u32 i)
{
	return ib_alloc_mr(p->pd, IB_MR_TYPE_MEM_REG, p->arg ?: 1);
}

static int dereg_mr(struct ib_mr *mr)
{
	int i, err = ib_dereg_mr(mr);

	for (i = 0; err && i < RETRIES; i++) {
		say("again ");
		err = ib_dereg_mr(mr);
	}
	return err;
}

static void unmake_mr(void *mr)
{
	dereg_mr(mr);
}

static const struct kind {
	const char *name;
	void *(*make)(struct probe *p, u32 i);
	void (*unmake)(void *object);
} kinds[] = {
	{ "pd", make_pd, unmake_pd },
	{ "cq", make_cq, unmake_cq },
	{ "qp", make_qp, unmake_qp },
	{ "rq", make_rq, unmake_qp },
	{ "ah", make_ah, unmake_ah },
	{ "mr", make_mr, unmake_mr },
};

static void probe_kind(struct probe *p, const struct kind *kind, u32 count)
{
	void **made = kvcalloc(count, sizeof(*made), GFP_KERNEL);
	long err = 0;
	u32 got = 0;

	if (!made) {
		say("0 %d\n", -ENOMEM);
		return;
	}
	while (got < count) {
		made[got] = kind->make(p, got);
		err = PTR_ERR_OR_ZERO(made[got]);
		if (err)
			break;
		got++;
	}
	say("%u %ld\n", got, err);
	while (got)
		kind->unmake(made[--got]);
	kvfree(made);
}

static void probe_numbers(struct probe *p, u32 count)
{
	struct ib_qp *qp;
	u32 i;

	for (i = 0; i < count; i++) {
		qp = make_qp(p, i);
		say("%ld ", IS_ERR(qp) ? PTR_ERR(qp) : (long)qp->qp_num);
		if (!IS_ERR(qp))
			destroy_qp(qp);
	}
	say("\n");
}

static void life_qp(struct probe *p, struct ib_qp *qp)
{
	struct ep ep = { .dev = p->dev, .qp = qp, .qkey = 1 };
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	say("init=%d ", ep_modify(&ep, IB_QPS_INIT, 0));
	say("rtr=%d ", ep_modify(&ep, IB_QPS_RTR, 0));
	say("rts=%d ", ep_modify(&ep, IB_QPS_RTS, 0));
	say("query=%d ", ib_query_qp(qp, &attr, IB_QP_STATE, &init));
	say("destroy_qp=%d ", destroy_qp(qp));
}

static void probe_life(struct probe *p, u32 unused)
{
	struct ib_qp *qp = make_qp(p, 0);
	struct ib_ah *ah = make_ah(p, 0);
	struct ib_mr *mr = make_mr(p, 0);

	say("qp=%d ah=%d mr=%d ", PTR_ERR_OR_ZERO(qp), PTR_ERR_OR_ZERO(ah),
	    PTR_ERR_OR_ZERO(mr));
	if (!IS_ERR(qp))
		life_qp(p, qp);
	if (!IS_ERR(ah))
		unmake_ah(ah);
	if (!IS_ERR(mr))
		say("dereg_mr=%d ", dereg_mr(mr));
	say("end\n");
}

/* Run with a protection domain and a completion queue, which some objects need. */
static void with_parents(struct probe *p, const struct kind *kind,
			 void (*run)(struct probe *p, u32 count), u32 count)
{
	struct ib_pd *kept = p->pd;
	u32 arg = p->arg;

	p->arg = 0;
	p->cq = make_cq(p, 0);
	p->arg = arg;
	if (!kept)
		p->pd = make_pd(p, 0);
	if (IS_ERR(p->cq) || IS_ERR(p->pd))
		say("0 %ld\n", PTR_ERR(IS_ERR(p->cq) ? (void *)p->cq : p->pd));
	else if (kind)
		probe_kind(p, kind, count);
	else
		run(p, count);
	if (!IS_ERR(p->cq))
		ib_destroy_cq(p->cq);
	if (!kept && !IS_ERR(p->pd))
		ib_dealloc_pd(p->pd);
	p->pd = kept;
}

void probe_close(void)
{
	if (probe.pd)
		ib_dealloc_pd(probe.pd);
	probe.pd = NULL;
}

static int probe_open(struct probe *p)
{
	struct ib_pd *pd;

	probe_close();
	pd = make_pd(p, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	p->pd = pd;
	return 0;
}

static const struct kind *find_kind(const char *name)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

int probe_run(struct ib_device *dev, const char *what, u32 count, u32 arg)
{
	const struct kind *kind = find_kind(what);
	struct probe *p = &probe;

	if (count > COUNT_MAX)
		return -EINVAL;
	/* The protection domain of "open" belongs to one device. */
	if (p->dev != dev)
		probe_close();
	p->dev = dev;
	p->arg = arg;
	p->len = 0;
	if (!strcmp(what, "open"))
		return probe_open(p);
	if (!strcmp(what, "close"))
		probe_close();
	else if (!strcmp(what, "numbers"))
		with_parents(p, NULL, probe_numbers, count);
	else if (!strcmp(what, "life"))
		with_parents(p, NULL, probe_life, count);
	else if (kind && (kind->make == make_pd || kind->make == make_cq))
		probe_kind(p, kind, count);
	else if (kind)
		with_parents(p, kind, NULL, count);
	else
		return -EINVAL;
	return 0;
}

ssize_t probe_answer(char __user *ubuf, size_t count, loff_t *pos)
{
	return simple_read_from_buffer(ubuf, count, pos, probe.answer,
				       probe.len);
}
