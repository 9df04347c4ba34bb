// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * All control calls are refused in a handler, whichever workqueue it runs in, and in no other
 * context.
 */
#include <linux/hrtimer.h>
#include <linux/slab.h>
#include "crew.h"
#include "fake.h"

/**
 * struct refusal - calls made in a context, and their results
 * @work: a worker that makes the calls
 * @fake: the provider
 * @set: objects of @fake
 * @queue: a completion queue with a handler
 * @checked: number of calls that were made
 * @call: a call with an unexpected result
 * @ret: result of @call
 * @done: completed when all calls were made
 */
struct refusal {
	struct work_struct	work;
	struct kofi_fake	*fake;
	struct kofi_fake_set	set;
	struct fid_cq		*queue;
	unsigned int		checked;
	const char		*call;
	ssize_t			ret;
	struct completion	done;
};

static void refusal_note(struct refusal *refusal, const char *call,
			 ssize_t ret, ssize_t want)
{
	refusal->checked++;
	if (ret == want || refusal->call)
		return;
	refusal->call = call;
	refusal->ret = ret;
}

#define REFUSED(call)	refusal_note(refusal, #call, call, -EDEADLK)
#define ALLOWED(call)	refusal_note(refusal, #call, call, 0)

static void refuse_opening(struct refusal *refusal)
{
	struct kofi_fake_set *set = &refusal->set, new;
	struct fi_mr_alloc_attr alloc = {
		.max_pages = 1, .access = FI_READ, .cq = set->cq,
	};
	struct kvec iov = { .iov_base = refusal, .iov_len = sizeof(*refusal) };
	struct fi_mr_attr mr = {
		.mr_iov = &iov, .iov_count = 1, .access = FI_READ,
	};
	struct fi_info *info = refusal->fake->info, *found;
	struct fi_cntr_attr cntr = { };
	struct fi_eq_attr eq = { };
	struct fi_cq_attr cq = { };
	struct fi_av_attr av = { };

	REFUSED(fi_getinfo(fi_version(), NULL, NULL, 0, NULL, &found));
	REFUSED(fi_fabric(info->fabric_attr, &new.fabric, NULL));
	REFUSED(fi_eq_open(set->fabric, &eq, &new.eq, NULL));
	REFUSED(fi_domain(set->fabric, info, &new.domain, NULL));
	REFUSED(fi_av_open(set->domain, &av, &new.av, NULL));
	REFUSED(fi_cq_open(set->domain, &cq, &new.cq, NULL));
	REFUSED(fi_cntr_open(set->domain, &cntr, &new.cntr, NULL));
	REFUSED(fi_endpoint(set->domain, info, &new.ep, NULL));
	REFUSED(fi_ep_open(set->domain, info, &new.ep, NULL));
	REFUSED(fi_mr_reg(set->domain, refusal, 1, FI_READ, 0, 0, 0, &new.mr,
			  NULL));
	REFUSED(fi_mr_regv(set->domain, &iov, 1, FI_READ, 0, 0, 0, &new.mr,
			   NULL));
	REFUSED(fi_mr_regattr(set->domain, &mr, 0, &new.mr));
	REFUSED(fi_mr_alloc(set->domain, &alloc, &new.mr, NULL));
}

static void refuse_control(struct refusal *refusal)
{
	struct kofi_fake_set *set = &refusal->set;
	size_t len = sizeof(u64);
	u64 value = 1;

	REFUSED(fi_domain_bind(set->domain, &set->eq->fid, 0));
	REFUSED(fi_ep_bind(set->ep, &set->av->fid, 0));
	REFUSED(fi_bind(set->ep, &set->cq->fid, FI_RECV));
	REFUSED(fi_enable(set->ep));
	REFUSED(fi_disable(set->ep));
	REFUSED(fi_control(&set->ep->fid, FI_ENABLE, NULL));
	REFUSED(fi_control(&set->cq->fid, FI_GETOPSFLAG, NULL));
	REFUSED(fi_setopt(&set->ep->fid, FI_OPT_ENDPOINT,
			  FI_OPT_MIN_MULTI_RECV, &value, len));
	REFUSED(fi_getopt(&set->ep->fid, FI_OPT_ENDPOINT,
			  FI_OPT_MIN_MULTI_RECV, &value, &len));
	REFUSED(fi_getname(&set->ep->fid, &value, &len));
}

static void refuse_addresses(struct refusal *refusal)
{
	struct kofi_fake_set *set = &refusal->set;
	fi_addr_t addr = 0;
	char text[16] = "addr";
	size_t len = sizeof(text);

	REFUSED(fi_av_insert(set->av, text, 1, &addr, 0, NULL));
	REFUSED(fi_av_remove(set->av, &addr, 1, 0));
	REFUSED(fi_av_lookup(set->av, 0, text, &len));
	ALLOWED(fi_av_straddr(set->av, text, text, &len) ? 1 : 0);
}

static void refuse_waiting_and_closing(struct refusal *refusal)
{
	struct kofi_fake_set *set = &refusal->set;
	struct fi_cq_tagged_entry entry;
	struct fi_eq_device_entry event;
	struct fid *fids[] = {
		&set->fabric->fid, &set->eq->fid, &set->domain->fid,
		&set->av->fid, &set->cq->fid, &set->cntr->fid, &set->ep->fid,
		&set->mr->fid, &set->pool_mr->fid, &refusal->queue->fid,
	};
	fi_addr_t from;
	u32 what;
	int i;

	REFUSED(fi_cq_sread(set->cq, &entry, 1, NULL, 0));
	REFUSED(fi_cq_sread(refusal->queue, &entry, 1, NULL, -1));
	REFUSED(fi_cq_sreadfrom(set->cq, &entry, 1, &from, NULL, 0));
	REFUSED(fi_eq_sread(set->eq, &what, &event, sizeof(event), 0, 0));
	REFUSED(fi_cntr_wait(set->cntr, 0, 0));
	for (i = 0; i < ARRAY_SIZE(fids); i++)
		REFUSED(fi_close(fids[i]));
}

/* Data calls are allowed in a handler. */
static void allow_data(struct refusal *refusal)
{
	struct kofi_fake_set *set = &refusal->set;
	struct fi_cq_tagged_entry entry;
	struct fi_eq_device_entry event;
	u32 what;

	ALLOWED(fi_cq_read(refusal->queue, &entry, 1) == -EDEADLK);
	ALLOWED(fi_eq_read(set->eq, &what, &event, sizeof(event), 0) ==
		-EDEADLK);
	ALLOWED(fi_cq_signal(set->cq));
	ALLOWED(fi_cntr_add(set->cntr, 1));
	ALLOWED(fi_cancel(&set->ep->fid, NULL));
}

static void refusal_try(struct refusal *refusal)
{
	refuse_opening(refusal);
	refuse_control(refusal);
	refuse_addresses(refusal);
	refuse_waiting_and_closing(refusal);
	allow_data(refusal);
	complete(&refusal->done);
}

static void refusal_cq_handler(struct fid_cq *cq, void *context)
{
	refusal_try(context);
}

static void refusal_eq_handler(struct fid_eq *eq, void *context)
{
	refusal_try(context);
}

/* A worker of the provider, which writes to the queue. */
static void refusal_work(struct work_struct *work)
{
	struct refusal *refusal = container_of(work, struct refusal, work);
	struct kofi_cq *cq = kofi_fake_to_cq(refusal->queue);
	struct fi_cq_tagged_entry entry = { };

	if (!kofi_cq_reserve(cq))
		kofi_cq_write(cq, &entry, FI_ADDR_NOTAVAIL);
	kofi_cq_notify_worker(cq);
}

static void refusal_fini(void *work)
{
	cancel_work_sync(work);
}

static struct refusal *refusal_make(struct kunit *test)
{
	struct refusal *refusal = kunit_kzalloc(test, sizeof(*refusal),
						GFP_KERNEL);
	struct fi_cq_attr attr = {
		.wait_obj		= FI_WAIT_UNSPEC,
		.handler		= refusal_cq_handler,
		.handler_context	= refusal,
	};

	KUNIT_ASSERT_NOT_NULL(test, refusal);
	init_completion(&refusal->done);
	refusal->fake = kofi_fake_new(test, "refusal");
	kofi_fake_open_all(test, refusal->fake, &refusal->set);
	refusal->queue = kofi_fake_cq(test, refusal->set.domain, &attr);
	INIT_WORK(&refusal->work, refusal_work);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, refusal_fini,
							&refusal->work), 0);
	return refusal;
}

static void refusal_check(struct kunit *test, struct refusal *refusal)
{
	KUNIT_ASSERT_TRUE(test, kofi_completed(&refusal->done));
	KUNIT_EXPECT_NULL_MSG(test, refusal->call, "%s returned %zd",
			      refusal->call, refusal->ret);
	KUNIT_EXPECT_EQ(test, refusal->checked, 47);
}

/* The handler is called in the core's workqueue. */
static void work_refused_in_handler(struct kunit *test)
{
	struct refusal *refusal = refusal_make(test);
	struct kofi_cq *cq = kofi_fake_to_cq(refusal->queue);

	kofi_cq_notify(cq);
	refusal_check(test, refusal);
	flush_work(&cq->notifier.work);
}

static void work_refused_in_worker(struct kunit *test)
{
	struct refusal *refusal = refusal_make(test);

	queue_work(system_wq, &refusal->work);
	refusal_check(test, refusal);
}

static void work_refused_in_eq_handler(struct kunit *test)
{
	struct refusal *refusal = refusal_make(test);
	struct fi_eq_attr attr = {
		.flags			= FI_WRITE,
		.handler		= refusal_eq_handler,
		.handler_context	= refusal,
	};
	struct fi_eq_entry entry = { };
	struct fid_eq *eq;

	eq = kofi_fake_eq(test, refusal->set.fabric, &attr);
	KUNIT_EXPECT_EQ(test, fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry),
					  0), sizeof(entry));
	refusal_check(test, refusal);
}

/* Work items of a ULP aren't handlers. */
struct work_own {
	struct work_struct	work;
	struct refusal		*refusal;
};

static void work_own_calls(struct refusal *refusal)
{
	struct kofi_fake_set *set = &refusal->set;
	struct fi_cq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cq_tagged_entry entry;
	struct fi_info *info = NULL;
	struct fid_cq *cq = NULL;

	ALLOWED(kofi_in_handler());
	ALLOWED(fi_getinfo(fi_version(), NULL, NULL, 0, NULL, &info));
	fi_freeinfo(info);
	ALLOWED(fi_cq_open(set->domain, &attr, &cq, NULL));
	ALLOWED(fi_cq_sread(cq, &entry, 1, NULL, 0) != -EAGAIN);
	ALLOWED(fi_close(&cq->fid));
	ALLOWED(fi_cntr_wait(set->cntr, 0, 0));
	complete(&refusal->done);
}

static void work_own_fn(struct work_struct *work)
{
	struct work_own *own = container_of(work, struct work_own, work);

	work_own_calls(own->refusal);
}

static void work_own_freed_fn(struct work_struct *work)
{
	struct work_own *own = container_of(work, struct work_own, work);
	struct refusal *refusal = own->refusal;

	kfree(own);
	work_own_calls(refusal);
}

static void work_own_allowed(struct kunit *test, work_func_t fn, bool frees)
{
	struct refusal *refusal = refusal_make(test);
	struct work_own *own = kzalloc(sizeof(*own), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, own);
	own->refusal = refusal;
	INIT_WORK(&own->work, fn);
	schedule_work(&own->work);
	KUNIT_EXPECT_TRUE(test, kofi_completed(&refusal->done));
	KUNIT_EXPECT_NULL_MSG(test, refusal->call, "%s returned %zd",
			      refusal->call, refusal->ret);
	KUNIT_EXPECT_EQ(test, refusal->checked, 6);
	if (frees)
		return;
	flush_work(&own->work);
	kfree(own);
}

static void work_ulp(struct kunit *test)
{
	work_own_allowed(test, work_own_fn, false);
}

static void work_ulp_frees_itself(struct kunit *test)
{
	work_own_allowed(test, work_own_freed_fn, true);
}

static const struct kofi_cq_config work_config = {
	.default_size = 1, .max_size = 1,
};

/* All contexts. An interrupt during a handler isn't the handler; a softirq may run one. */
struct work_where {
	struct kofi_cq		cq;
	struct tasklet_struct	soft;
	struct hrtimer		timer;
	int			in_handler;
	int			in_softirq;
	int			in_hardirq;
	struct completion	done;
};

static void work_where_soft(struct tasklet_struct *soft)
{
	container_of(soft, struct work_where, soft)->in_softirq =
		kofi_in_handler();
}

static enum hrtimer_restart work_where_hard(struct hrtimer *timer)
{
	struct work_where *where = container_of(timer, struct work_where,
						timer);

	WRITE_ONCE(where->in_hardirq, kofi_in_handler());
	return HRTIMER_NORESTART;
}

static void work_where_handler(struct fid_cq *cq, void *context)
{
	struct work_where *where = context;
	ktime_t stop = ktime_add_ms(ktime_get(), KOFI_SPIN_MS);

	where->in_handler = kofi_in_handler();
	local_bh_disable();
	tasklet_schedule(&where->soft);
	local_bh_enable();
	hrtimer_start(&where->timer, 100 * NSEC_PER_USEC,
		      HRTIMER_MODE_REL_PINNED_HARD);
	/* Don't sleep, so that the timer interrupts the handler. */
	while (READ_ONCE(where->in_hardirq) < 0 &&
	       ktime_before(ktime_get(), stop))
		cpu_relax();
	complete(&where->done);
}

static void work_contexts(struct kunit *test)
{
	struct fi_cq_attr attr = { .handler = work_where_handler };
	struct work_where *where = kunit_kzalloc(test, sizeof(*where),
						 GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, where);
	attr.handler_context = where;
	KUNIT_EXPECT_FALSE(test, kofi_in_handler());
	where->in_handler = -1;
	where->in_softirq = -1;
	where->in_hardirq = -1;
	init_completion(&where->done);
	tasklet_setup(&where->soft, work_where_soft);
	hrtimer_setup(&where->timer, work_where_hard, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_PINNED_HARD);
	KUNIT_ASSERT_EQ(test, kofi_cq_init(&where->cq, &attr, &work_config), 0);
	/* Locks of the core can be taken with interrupts off. */
	local_irq_disable();
	KUNIT_EXPECT_FALSE(test, kofi_in_handler());
	local_irq_enable();

	kofi_cq_notify(&where->cq);
	KUNIT_EXPECT_TRUE(test, kofi_completed(&where->done));
	kofi_cq_fini(&where->cq);
	hrtimer_cancel(&where->timer);
	tasklet_kill(&where->soft);
	KUNIT_EXPECT_EQ(test, where->in_handler, 1);
	KUNIT_EXPECT_EQ(test, where->in_softirq, 1);
	KUNIT_EXPECT_EQ(test, where->in_hardirq, 0);
}

/* Queues are opened, closed and freed during checks for handlers. */
#define WORK_ROUNDS	200
#define WORK_MANY	8

struct work_count {
	struct kofi_cq	cq;
	atomic_t	*in_handler;
	atomic_t	*calls;
};

static void work_count_handler(struct fid_cq *cq, void *context)
{
	struct work_count *count = context;

	atomic_add(kofi_in_handler(), count->in_handler);
	atomic_inc(count->calls);
}

static void work_come_and_go(struct kunit *test)
{
	struct fi_cq_attr attr = { .handler = work_count_handler };
	atomic_t in_handler = ATOMIC_INIT(0), calls = ATOMIC_INIT(0);
	struct work_count *count;
	int i, k;

	for (i = 0; i < WORK_ROUNDS; i++) {
		count = kcalloc(WORK_MANY, sizeof(*count), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, count);
		for (k = 0; k < WORK_MANY; k++) {
			count[k].in_handler = &in_handler;
			count[k].calls = &calls;
			attr.handler_context = &count[k];
			KUNIT_ASSERT_EQ(test, kofi_cq_init(&count[k].cq, &attr,
							   &work_config), 0);
			kofi_cq_notify(&count[k].cq);
		}
		for (k = 0; k < WORK_MANY; k++)
			kofi_cq_fini(&count[k].cq);
		kfree(count);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&calls), WORK_ROUNDS * WORK_MANY);
	KUNIT_EXPECT_EQ(test, atomic_read(&in_handler), atomic_read(&calls));
}

static struct kunit_case work_cases[] = {
	KUNIT_CASE(work_refused_in_handler),
	KUNIT_CASE(work_refused_in_worker),
	KUNIT_CASE(work_refused_in_eq_handler),
	KUNIT_CASE(work_ulp),
	KUNIT_CASE(work_ulp_frees_itself),
	KUNIT_CASE(work_contexts),
	KUNIT_CASE(work_come_and_go),
	{}
};

static struct kunit_suite work_suite = {
	.name		= "kofi_work",
	.test_cases	= work_cases,
};

kunit_test_suite(work_suite);

MODULE_DESCRIPTION("KUnit tests of what kOFI refuses in handlers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
MODULE_IMPORT_NS(KOFI_TEST);
