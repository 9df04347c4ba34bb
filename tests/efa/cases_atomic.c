// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: several endpoints and the target's CPU add to one word at the same time. The number
 * given with a case is that of additions by each of them.
 */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <kofi/atomic.h>
#include "efa.h"

#define ETA_ENDS	4
#define ETA_ADDS	300

/**
 * struct eta_adder - an endpoint that adds to the target's word
 * @end: the endpoint
 * @addr: address of the word
 * @key: key of the word
 * @adds: number of operations to post
 * @posted: number of operations that were posted
 * @done: number of operations that have completed
 * @failed: number of operations that have failed
 * @removed: the target was removed from the address vector
 * @err: error of a call, or of an operation before @removed; or 0
 * @task: the thread
 * @ended: the thread has nothing more to do
 */
struct eta_adder {
	struct et_end		end;
	u64			addr;
	u64			key;
	unsigned int		adds;
	unsigned int		posted;
	unsigned int		done;
	unsigned int		failed;
	bool			removed;
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

static void eta_read(struct eta_adder *adder)
{
	struct fi_cq_err_entry error = { };
	struct fi_cq_data_entry entry;
	ssize_t ret = fi_cq_read(adder->end.cq, &entry, 1);

	if (ret == 1) {
		WRITE_ONCE(adder->done, adder->done + 1);
	} else if (ret == -EAGAIN) {
		cond_resched();
	} else if (ret == -FI_EAVAIL && fi_cq_readerr(adder->end.cq, &error, 0) == 1) {
		adder->failed++;
		if (!READ_ONCE(adder->removed))
			adder->err = -error.err;
	} else {
		adder->err = ret;
	}
}

static int eta_add(void *data)
{
	struct eta_adder *adder = data;
	ssize_t ret;

	while (!adder->err && adder->done + adder->failed < adder->adds) {
		ret = adder->posted < adder->adds ? eta_post(adder) : -EAGAIN;
		if (!ret)
			adder->posted++;
		else if (ret != -EAGAIN && READ_ONCE(adder->removed))
			adder->adds = adder->posted;
		else if (ret != -EAGAIN)
			adder->err = ret;
		eta_read(adder);
	}
	complete(&adder->ended);
	return 0;
}

static bool eta_open(struct et *t, struct eta_adder *adder, struct fid_mr *mr)
{
	adder->addr = mr->base_addr + 64;
	adder->key = fi_mr_key(mr);
	adder->adds = t->arg ?: ETA_ADDS;
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
		wait_for_completion_state(&adder->ended, TASK_IDLE);
		kthread_stop(adder->task);
		put_task_struct(adder->task);
		ET_EXPECT_EQ(t, adder->err, 0);
		ET_EXPECT_EQ(t, adder->done + adder->failed, adder->posted);
	}
	ET_EXPECT_EQ(t, et_close(&adder->end), 0);
}

/* Remove the target from an endpoint's address vector while operations are on their way. */
static void eta_remove(struct et *t, struct eta_adder *adder)
{
	while (adder->task && READ_ONCE(adder->done) < adder->adds / 3 &&
	       !completion_done(&adder->ended))
		usleep_range(50, 100);
	WRITE_ONCE(adder->removed, true);
	ET_EXPECT_EQ(t, fi_av_remove(adder->end.av, &adder->end.peer, 1, 0), 0);
}

/* The last operations may have completed before they were carried out. */
static void eta_check(struct et *t, struct eta_adder *adders, const atomic64_t *word, u64 here)
{
	u64 least = here, most = here;
	unsigned int i;

	for (i = 0; i < ETA_ENDS; i++) {
		least += adders[i].done;
		most += adders[i].posted;
	}
	for (i = 0; i < ET_TIMEOUT / 20 && atomic64_read(word) < least; i++)
		msleep(20);
	msleep(100);
	ET_EXPECT(t, atomic64_read(word) >= least);
	ET_EXPECT(t, atomic64_read(word) <= most);
	et_printf("# %llu of %llu to %llu\n", atomic64_read(word), least, most);
}

static void eta_run(struct et *t, struct eta_adder *adders, bool remove)
{
	const unsigned int adds = t->arg ?: ETA_ADDS;
	atomic64_t *word = (atomic64_t *)(t->b.small + 64);
	struct fid_mr *mr;
	unsigned int i, n;

	if (!ET_EXPECT_EQ(t, fi_mr_reg(t->b.domain, t->b.small, 4096,
				       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL), 0))
		return;
	for (n = 0; n < ETA_ENDS && eta_open(t, &adders[n], mr); n++)
		;
	if (remove)
		eta_remove(t, &adders[0]);
	for (i = 0; i < adds; i++) {
		atomic64_inc(word);
		cond_resched();
	}
	for (i = 0; i < ETA_ENDS; i++)
		eta_join(t, &adders[i]);
	for (i = remove; i < ETA_ENDS; i++)
		ET_EXPECT_EQ(t, adders[i].done, adds);
	eta_check(t, adders, word, adds);
	ET_EXPECT_EQ(t, fi_close(&mr->fid), 0);
}

static void eta_case(struct et *t, bool remove)
{
	struct eta_adder *adders = kcalloc(ETA_ENDS, sizeof(*adders), GFP_KERNEL);
	const fi_addr_t peer = t->b.peer;

	if (!ET_EXPECT(t, adders))
		return;
	eta_run(t, adders, remove);
	t->b.peer = peer;
	kfree(adders);
}

/* The sum is exact. */
static void eta_sums(struct et *t)
{
	eta_case(t, false);
}

/* With operations that have failed, the sum is between what completed and what was posted. */
static void eta_removed(struct et *t)
{
	eta_case(t, true);
}

const struct et_case et_atomic_cases[] = {
	{ "atomic_sums", eta_sums, .rdm = true, .caps = FI_ATOMIC },
	{ "atomic_removed", eta_removed, .rdm = true, .caps = FI_ATOMIC },
	{ }
};
