// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fabric efa: several endpoints and the target's CPUs add to one word at the same time. */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <kofi/atomic.h>
#include "efa.h"

#define ETA_ENDS	4
#define ETA_ADDS	300	/* by each endpoint */

/**
 * struct eta_adder - an endpoint that adds to the target's word
 * @end: the endpoint
 * @addr: address of the word
 * @key: key of the word
 * @posted: number of operations that were posted
 * @done: number of operations that have completed
 * @err: error of an operation or a call, or 0
 * @task: the thread
 * @ended: the thread has nothing more to do
 */
struct eta_adder {
	struct et_end		end;
	u64			addr;
	u64			key;
	unsigned int		posted;
	unsigned int		done;
	ssize_t			err;
	struct task_struct	*task;
	struct completion	ended;
};

/* Every third operation also gets the old value. */
static ssize_t eta_post(struct eta_adder *adder)
{
	u64 *one = (u64 *)adder->end.small, *old = one + 1;

	if (adder->posted % 3)
		return fi_atomic(adder->end.ep, one, 1, NULL, adder->end.peer, adder->addr,
				 adder->key, FI_UINT64, FI_SUM, NULL);
	return fi_fetch_atomic(adder->end.ep, one, 1, NULL, old, NULL, adder->end.peer, adder->addr,
			       adder->key, FI_UINT64, FI_SUM, NULL);
}

static int eta_add(void *data)
{
	struct eta_adder *adder = data;
	struct fi_cq_data_entry entry;
	ssize_t ret;

	while (!adder->err && adder->done < ETA_ADDS) {
		ret = adder->posted < ETA_ADDS ? eta_post(adder) : -EAGAIN;
		if (!ret)
			adder->posted++;
		else if (ret != -EAGAIN)
			adder->err = ret;
		ret = fi_cq_read(adder->end.cq, &entry, 1);
		if (ret == 1)
			adder->done++;
		else if (ret == -EAGAIN)
			cond_resched();
		else
			adder->err = ret;
	}
	complete(&adder->ended);
	return 0;
}

static bool eta_open(struct et *t, struct eta_adder *adder, struct fid_mr *mr)
{
	adder->addr = mr->base_addr + 64;
	adder->key = fi_mr_key(mr);
	init_completion(&adder->ended);
	if (!ET_EXPECT_EQ(t, et_open(&adder->end, t->a.info->domain_attr->name, t->test), 0) ||
	    !ET_EXPECT_EQ(t, et_connect(&adder->end, &t->b), 0) ||
	    !ET_EXPECT_EQ(t, et_connect(&t->b, &adder->end), 0))
		return false;
	*(u64 *)adder->end.small = 1;
	adder->task = kthread_create(eta_add, adder, "efa-adder");
	if (!ET_EXPECT(t, !IS_ERR(adder->task))) {
		adder->task = NULL;
		return false;
	}
	get_task_struct(adder->task);
	wake_up_process(adder->task);
	return true;
}

static void eta_join(struct et *t, struct eta_adder *adder)
{
	if (adder->task) {
		wait_for_completion(&adder->ended);
		kthread_stop(adder->task);
		put_task_struct(adder->task);
		ET_EXPECT_EQ(t, adder->err, 0);
		ET_EXPECT_EQ(t, adder->done, ETA_ADDS);
	}
	ET_EXPECT_EQ(t, et_close(&adder->end), 0);
}

static void eta_run(struct et *t, struct eta_adder *adders)
{
	atomic64_t *word = (atomic64_t *)(t->b.small + 64);
	struct fid_mr *mr;
	unsigned int i, n;

	if (!ET_EXPECT_EQ(t, fi_mr_reg(t->b.domain, t->b.small, 4096,
				       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL), 0))
		return;
	for (n = 0; n < ETA_ENDS && eta_open(t, &adders[n], mr); n++)
		;
	for (i = 0; i < ETA_ADDS; i++) {
		atomic64_inc(word);
		cond_resched();
	}
	for (i = 0; i < ETA_ENDS; i++)
		eta_join(t, &adders[i]);
	ET_EXPECT_EQ(t, atomic64_read(word), (ETA_ENDS + 1) * ETA_ADDS);
	ET_EXPECT_EQ(t, fi_close(&mr->fid), 0);
}

static void eta_sums(struct et *t)
{
	struct eta_adder *adders = kcalloc(ETA_ENDS, sizeof(*adders), GFP_KERNEL);
	const fi_addr_t peer = t->b.peer;

	if (!ET_EXPECT(t, adders))
		return;
	eta_run(t, adders);
	t->b.peer = peer;
	kfree(adders);
}

const struct et_case et_atomic_cases[] = {
	{ "atomic_sums", eta_sums, .rdm = true, .caps = FI_ATOMIC },
	{ }
};
