// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Polling of the device by readers that find an empty queue, by sleepers and by the worker.
 * No completion is missed, and there are no needless interrupts.
 */
#include <linux/preempt.h>
#include "crew.h"
#include "efa_scene.h"

static void done(struct efa_scene *scene)
{
	efake_wr_done(efake_sent(scene->qp, 0), 0);
}

static u32 written(struct efa_scene *scene)
{
	return READ_ONCE(efa_cq(scene)->tail) - READ_ONCE(efa_cq(scene)->head);
}

/* A reader polls before the worker has run. */
static void poll_reader(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_cq_data_entry entry;
	unsigned int events;
	ssize_t sent, ret = 0;
	int i;

	efake_settle();
	preempt_disable();
	events = scene->qp->events;
	for (i = 0; i < 100; i++) {
		sent = efa_send(scene, 64, i);
		if (sent)
			break;
		done(scene);
		ret += fi_cq_read(scene->cq, &entry, 1);
	}
	events = scene->qp->events - events;
	preempt_enable();
	KUNIT_EXPECT_EQ(test, sent, 0);
	KUNIT_EXPECT_EQ(test, ret, 100);
	KUNIT_EXPECT_EQ(test, events, 1);
}

/* Two sends, then reads of up to @count. Return: the contexts that were read, in order. */
static int give_two(struct efa_scene *scene, size_t count)
{
	struct fi_cq_data_entry entry[4];
	int i, n = 0, read = 0;

	preempt_disable();
	for (i = 1; i <= 2; i++) {
		if (efa_send(scene, 64, i))
			goto out;
		done(scene);
	}
	while ((n = fi_cq_read(scene->cq, entry, count)) > 0)
		for (i = 0; i < n; i++)
			read = read * 10 + (long)entry[i].op_context;
out:
	preempt_enable();
	return read;
}

/* A reader with room for all completions takes them directly, and one without from the queue. */
static void poll_gives(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);

	efake_settle();
	KUNIT_EXPECT_EQ(test, give_two(scene, 2), 12);
	KUNIT_EXPECT_EQ(test, efa_cq(scene)->tail, 0U);
	KUNIT_EXPECT_EQ(test, give_two(scene, 1), 12);
	KUNIT_EXPECT_EQ(test, efa_cq(scene)->tail, 2U);
	KUNIT_EXPECT_EQ(test, atomic_read(&efa_cq(scene)->credits),
			(int)efa_cq(scene)->attr.size);
}

static ssize_t post_quiet(struct efa_scene *scene, int which, u64 flags)
{
	struct kvec iov = { scene->buf, 64 };
	struct fi_msg msg = { .addr = scene->peer };

	switch (which) {
	case 0:
		return fi_inject(scene->ep, scene->buf, 8, scene->peer);
	case 1:
		return fi_inject_write(scene->ep, scene->buf, 8, scene->peer, EFA_RADDR, EFA_KEY);
	case 2:
		iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, 64);
		return fi_sendmsg(scene->ep, &msg, flags);
	default:
		msg.addr = FI_ADDR_UNSPEC;
		iov_iter_kvec(&msg.msg_iter, ITER_DEST, &iov, 1, 64);
		return fi_recvmsg(scene->ep, &msg, flags);
	}
}

static int poll_credits(struct efa_scene *scene)
{
	return atomic_read(&efa_cq(scene)->credits);
}

/* A reader that takes completions directly gives the entries of quiet operations back, too. */
static void poll_gives_quiet(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.size = 4, .bind = FI_SELECTIVE_COMPLETION,
	});
	struct fi_cq_data_entry entry[4];
	int which, loud, left;
	ssize_t ret[2], n;

	efake_settle();
	/* One quiet operation, and then with another one that has a completion. */
	for (which = 0; which < 8; which++) {
		loud = which / 4;
		preempt_disable();
		ret[0] = post_quiet(scene, which % 4, 0);
		ret[1] = loud ? post_quiet(scene, max(which % 4, 2), FI_COMPLETION) : 0;
		left = poll_credits(scene);
		while (efake_sent(scene->qp, 0))
			done(scene);
		while (efake_recv(scene->qp, 0))
			efake_wr_done(efake_recv(scene->qp, 0), 0);
		n = fi_cq_read(scene->cq, entry, ARRAY_SIZE(entry));
		preempt_enable();
		KUNIT_EXPECT_EQ(test, ret[0], 0);
		KUNIT_EXPECT_EQ(test, ret[1], 0);
		KUNIT_EXPECT_EQ(test, left, 3 - loud);
		KUNIT_EXPECT_EQ(test, n, loud ? 1 : -EAGAIN);
		KUNIT_EXPECT_EQ_MSG(test, poll_credits(scene), 4, "operation %d", which);
	}
	/* None of them was written to the queue. */
	KUNIT_EXPECT_EQ(test, efa_cq(scene)->tail, 0U);
}

/* An error that is polled with a completion comes after it. */
static void poll_gives_error(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_cq_data_entry entry[2] = { };
	ssize_t first, second;

	efake_settle();
	preempt_disable();
	efa_send(scene, 64, 1);
	efa_send(scene, 64, 2);
	done(scene);
	efake_wr_done(efake_sent(scene->qp, 0), 7);
	first = fi_cq_read(scene->cq, entry, 2);
	second = fi_cq_read(scene->cq, entry + 1, 1);
	preempt_enable();
	KUNIT_EXPECT_EQ(test, first, 1);
	KUNIT_EXPECT_EQ(test, (long)entry[0].op_context, 1L);
	KUNIT_EXPECT_EQ(test, second, -FI_EAVAIL);
	efa_expect_error_now(test, scene, 2, kefa_status_errno(7), 7);
	efa_expect_nothing(test, scene);
}

/* More completions than a read polls: the worker notifies of all. */
static void poll_many_endpoints(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.wait_obj = FI_WAIT_UNSPEC,
	});
	struct fi_cq_data_entry entry;
	struct fid_ep *ep[20];
	unsigned int i, n = 0;
	struct efake_qp *qp;
	int ret = 0;

	for (i = 0; i < ARRAY_SIZE(ep); i++) {
		ep[i] = efa_scene_ep(test, scene, 0);
		KUNIT_ASSERT_EQ(test, fi_enable(ep[i]), 0);
	}
	efake_settle();
	for (i = 0; i < ARRAY_SIZE(ep); i++) {
		qp = efake_qp(scene->fake, container_of(ep[i], struct kefa_ep,
							ep_fid)->hq.qpn);
		ret |= fi_recv(ep[i], scene->buf, 64, NULL, FI_ADDR_UNSPEC, NULL);
		preempt_disable();
		efake_wr_done(efake_recv(qp, 0), 0);
		n += fi_cq_read(scene->cq, &entry, 1) == 1;
		preempt_enable();
		ret |= fi_cq_sread(scene->cq, &entry, 1, NULL, KOFI_NEVER_MS) != 1;
	}
	KUNIT_EXPECT_EQ(test, ret, 0);
	KUNIT_EXPECT_EQ(test, n, 0U);
	for (i = 0; i < ARRAY_SIZE(ep); i++)
		KUNIT_EXPECT_EQ(test, fi_close(&ep[i]->fid), 0);
}

/* After readers have stopped, the worker polls completions for later readers. */
static void poll_ends(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	int i;

	for (i = 0; i < 3; i++) {
		efa_expect_nothing(test, scene);
		efake_settle();
		KUNIT_EXPECT_TRUE(test, scene->qp->armed);
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
		done(scene);
		efake_settle();
		KUNIT_EXPECT_EQ(test, written(scene), 1U);
		efa_expect_done(test, scene, 1);
	}
}

static void sleep_for_one(struct kofi_thread *thread)
{
	struct fid_cq *cq = thread->arg;
	struct fi_cq_data_entry entry;

	thread->ret = fi_cq_sread(cq, &entry, 1, NULL, KOFI_NEVER_MS);
}

/* The event wakes the sleeper, and the worker isn't needed. */
static void poll_sleeper(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.wait_obj = FI_WAIT_UNSPEC,
	});
	struct kefa_ep *ep = efa_ep(scene);
	struct kofi_thread thread;
	bool queued;

	/* Polling readers have disabled events. */
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	kofi_thread_start(test, &thread, sleep_for_one, scene->cq);
	KUNIT_EXPECT_TRUE(test, kofi_soon(kofi_sleepers(&efa_cq(scene)->notifier.wait)));
	efake_settle();
	preempt_disable();
	done(scene);
	queued = work_pending(&ep->work);
	preempt_enable();
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 1);
	KUNIT_EXPECT_FALSE(test, queued);
}

/* A sleeper whose time-out is over doesn't poll any more. */
static void poll_sleeper_gone(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.wait_obj = FI_WAIT_UNSPEC,
	});
	struct fi_cq_data_entry entry;

	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(scene->cq, &entry, 1, NULL, 20), -EAGAIN);
	done(scene);
	efake_settle();
	KUNIT_EXPECT_EQ(test, written(scene), 1U);
}

/* The task that arms the queue polls the completions that arming finds, as no event comes. */
static void poll_missed(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.wait_obj = FI_WAIT_UNSPEC,
	});
	struct fi_cq_data_entry entry;

	efake_settle();
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	scene->fake->late = 1;
	KUNIT_EXPECT_EQ(test, fi_cq_sread(scene->cq, &entry, 1, NULL, 1000), 1);

	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 2), 0);
	scene->fake->late = 1;
	efake_qp_event(scene->qp);
	efake_settle();
	KUNIT_EXPECT_EQ(test, written(scene), 1U);
	KUNIT_EXPECT_EQ(test, scene->fake->late, 0U);
	efa_expect_done(test, scene, 2);

	/* fi_cq_sread() polls at its time-out, which would hide a missing notification. */
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 3), 0);
	scene->fake->late = 1;
	KUNIT_EXPECT_TRUE(test, kefa_direct_read(efa_ep(scene), true, NULL));
	/* The worker polls it if no reader does. */
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, written(scene), 1U);
}

/* The same for the domain's queue pair for registrations. */
static void poll_missed_by_domain(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.wait_obj = FI_WAIT_UNSPEC,
	});
	const struct fi_mr_alloc_attr alloc = {
		.max_pages = 1, .access = FI_REMOTE_READ, .cq = scene->cq,
	};
	const struct kvec iov = { scene->buf, PAGE_SIZE };
	const struct fi_mr_attr attr = {
		.type = FI_MR_KVEC, .mr_iov = &iov, .iov_count = 1,
		.access = FI_REMOTE_READ, .context = (void *)1,
	};
	struct fid_mr *mr;

	KUNIT_ASSERT_EQ(test, fi_mr_alloc(scene->domain, &alloc, &mr, NULL), 0);
	scene->fake->manual_mr = true;
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(mr, &attr, FI_COMPLETION), 0);
	scene->fake->late = 1;
	efake_qp_event(efake_qp(scene->fake, efa_dom(scene)->mrq.hq.qpn));
	efa_expect_done(test, scene, 1);
	KUNIT_EXPECT_EQ(test, scene->fake->late, 0U);
	scene->fake->late = 0;
	scene->fake->manual_mr = false;
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

static void read_on(struct kofi_thread *thread)
{
	struct fid_cq *cq = thread->arg;
	struct fi_cq_data_entry entry;

	while (!signal_pending(current)) {
		fi_cq_read(cq, &entry, 1);
		cond_resched();
	}
}

/* Endpoints with outstanding work are opened and closed during a read. */
static void poll_while_closing(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_ep *ep;
	struct kofi_thread thread;
	unsigned long start = jiffies, round;

	kofi_thread_start(test, &thread, read_on, scene->cq);
	for (round = 0; kofi_hunting(start, 200, round); round++) {
		ep = efa_scene_ep(test, scene, 0);
		KUNIT_ASSERT_EQ(test, fi_enable(ep), 0);
		KUNIT_EXPECT_EQ(test, fi_recv(ep, scene->buf, 64, NULL,
					      FI_ADDR_UNSPEC, NULL), 0);
		KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
	}
	kofi_thread_kill(&thread);
	kofi_thread_join(test, &thread);
}

static void poll_while_removed(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kofi_thread thread;

	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 1), 0);
	kofi_thread_start(test, &thread, read_on, scene->cq);
	efake_remove(scene->fake);
	kofi_thread_kill(&thread);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), -ENODEV);
}

/* --- one rule per case, which fails reliably if the rule is broken --- */

/* The next completion raises no event, as if one were pending already. */
static void no_event(struct efa_scene *scene)
{
	unsigned long flags;

	spin_lock_irqsave(&scene->fake->lock, flags);
	scene->qp->armed = false;
	spin_unlock_irqrestore(&scene->fake->lock, flags);
}

struct holder {
	struct kofi_thread	thread;
	struct kefa_ep		*ep;
	bool			holds;
	bool			leave;
};

/* Like a busy worker. */
static void hold_lock(struct kofi_thread *thread)
{
	struct holder *holder = container_of(thread, struct holder, thread);
	unsigned long end = jiffies + msecs_to_jiffies(KOFI_SPIN_MS);

	spin_lock_bh(&holder->ep->lock);
	WRITE_ONCE(holder->holds, true);
	while (!READ_ONCE(holder->leave) && time_before(jiffies, end))
		cpu_relax();
	thread->ret = READ_ONCE(holder->leave);
	spin_unlock_bh(&holder->ep->lock);
}

/* Reader and worker: a reader doesn't wait for the worker's lock. */
static void poll_waits_for_nobody(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct holder holder = { .ep = efa_ep(scene) };
	struct fi_cq_data_entry entry;

	if (num_online_cpus() == 1)
		kunit_skip(test, "who has the lock has the CPU, too");
	efake_settle();
	no_event(scene);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	done(scene);
	kofi_thread_start(test, &holder.thread, hold_lock, NULL);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(holder.holds)));
	KUNIT_EXPECT_EQ(test, fi_cq_read(scene->cq, &entry, 1), -EAGAIN);
	WRITE_ONCE(holder.leave, true);
	kofi_thread_join(test, &holder.thread);
	KUNIT_EXPECT_EQ(test, holder.thread.ret, 1);
	KUNIT_EXPECT_EQ(test, fi_cq_read(scene->cq, &entry, 1), 1);
}

static atomic_t handler_read;

static void count_reads(struct fid_cq *cq, void *context)
{
	struct fi_cq_data_entry entry;

	while (fi_cq_read(cq, &entry, 1) == 1)
		atomic_inc(&handler_read);
}

/* Reader and handler: a reader notifies the handler of completions that it polls but leaves. */
static void poll_tells_handler(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.handler = count_reads,
	});
	struct fi_cq_data_entry entry;
	int n;

	atomic_set(&handler_read, 0);
	efake_settle();
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 2), 0);
	efake_settle();
	no_event(scene);
	done(scene);
	done(scene);
	/* The handler may be faster. */
	n = fi_cq_read(scene->cq, &entry, 1) == 1;
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&handler_read) == 2 - n));
}

static void count_calls(struct fid_cq *cq, void *context)
{
	atomic_inc(&handler_read);
}

/* The handler isn't called for what a reader took itself, but for what comes next. */
static void poll_gives_before_handler(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.handler = count_calls,
	});
	struct fi_cq_data_entry entry;

	atomic_set(&handler_read, 0);
	efake_settle();
	preempt_disable();
	efa_send(scene, 64, 1);
	done(scene);
	entry.op_context = NULL;
	fi_cq_read(scene->cq, &entry, 1);
	preempt_enable();
	KUNIT_EXPECT_EQ(test, (long)entry.op_context, 1L);
	efake_settle();
	KUNIT_EXPECT_EQ(test, atomic_read(&handler_read), 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 2), 0);
	done(scene);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&handler_read) == 1));
	efa_expect_done(test, scene, 2);
}

/* Reader and sleeper: a reader notifies sleepers of completions that it polls for them. */
static void poll_tells_sleeper(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.wait_obj = FI_WAIT_UNSPEC,
	});
	struct fi_cq_data_entry entry;
	struct kofi_thread thread;

	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 2), 0);
	kofi_thread_start(test, &thread, sleep_for_one, scene->cq);
	KUNIT_EXPECT_TRUE(test, kofi_soon(kofi_sleepers(&efa_cq(scene)->notifier.wait)));
	efake_settle();
	no_event(scene);
	done(scene);
	done(scene);
	KUNIT_EXPECT_EQ(test, fi_cq_read(scene->cq, &entry, 1), 1);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 1);
}

/* The same if both poll and one is about to sleep. */
static void poll_last_tells_sleeper(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.wait_obj = FI_WAIT_UNSPEC,
	});
	struct kofi_cq *cq = efa_cq(scene);
	struct kofi_thread thread;

	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	kofi_thread_start(test, &thread, sleep_for_one, scene->cq);
	KUNIT_EXPECT_TRUE(test, kofi_soon(kofi_sleepers(&cq->notifier.wait)));
	efake_settle();
	no_event(scene);
	done(scene);
	/* Act as the second reader. */
	atomic_inc(&cq->sleepers);
	KUNIT_EXPECT_TRUE(test, kefa_direct_read(efa_ep(scene), true, NULL));
	atomic_dec(&cq->sleepers);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 1);
}

/* A completion queue without a reader is notified as well. */
static void poll_tells_other_queue(struct kunit *test)
{
	/* Without a wait object, the queue for sends would be polled for itself. */
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.wait_obj = FI_WAIT_UNSPEC,
	});
	struct fi_cq_attr attr = {
		.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_UNSPEC,
	};
	struct fi_cq_data_entry entry;
	struct kofi_thread thread;
	struct fid_cq *other;
	struct fid_ep *ep;

	KUNIT_ASSERT_EQ(test, fi_cq_open(scene->domain, &attr, &other, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_endpoint(scene->domain, scene->info, &ep, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &scene->av->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &scene->cq->fid, FI_TRANSMIT), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &other->fid, FI_RECV), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(ep), 0);
	scene->qp = efake_last_qp(scene->fake);
	KUNIT_EXPECT_EQ(test, fi_recv(ep, scene->buf, 64, NULL, FI_ADDR_UNSPEC, NULL), 0);
	kofi_thread_start(test, &thread, sleep_for_one, other);
	KUNIT_EXPECT_TRUE(test, kofi_soon(kofi_sleepers(&container_of(other, struct kofi_cq,
								      cq_fid)->notifier.wait)));
	efake_settle();
	no_event(scene);
	efake_wr_done(efake_recv(scene->qp, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_cq_read(scene->cq, &entry, 1), -EAGAIN);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 1);
	KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&other->fid), 0);
}

/* The queue isn't armed while readers poll, and is armed soon after they have stopped. */
static void poll_arms_afterwards(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kefa_ep *ep = efa_ep(scene);
	bool first, second, found, watched, polled;

	efa_expect_nothing(test, scene);
	efake_settle();
	spin_lock_bh(&ep->lock);
	ep->polled = true;
	no_event(scene);
	found = kefa_ep_arm(ep);
	first = scene->qp->armed;
	watched = ep->watched;
	polled = ep->polled;
	found |= kefa_ep_arm(ep);
	second = scene->qp->armed;
	spin_unlock_bh(&ep->lock);
	KUNIT_EXPECT_TRUE(test, watched);
	KUNIT_EXPECT_FALSE(test, polled);
	KUNIT_EXPECT_FALSE(test, found);
	KUNIT_EXPECT_FALSE(test, first);
	KUNIT_EXPECT_TRUE(test, second);
}

/* Removal: a reader that found the endpoint before doesn't poll the device afterwards. */
static void poll_found_before_removal(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);

	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 1), 0);
	efake_remove(scene->fake);
	/* The fake reports polling or arming of a destroyed queue pair. */
	KUNIT_EXPECT_FALSE(test, kefa_direct_read(efa_ep(scene), false, NULL));
	KUNIT_EXPECT_FALSE(test, kefa_direct_read(efa_ep(scene), true, NULL));
	efa_expect_error_now(test, scene, 1, ENODEV, 0);
}

/* Check that the task didn't sleep before the close. */
static void close_when_told(struct kofi_thread *thread)
{
	struct fid *fid;

	while (!(fid = READ_ONCE(thread->arg)))
		cond_resched();
	thread->ret = fi_close(fid);
}

/*
 * Spin, which is allowed under RCU, until the endpoint was closed; or, with @ep, until it is
 * halted and the closing task sleeps.
 */
static bool closer_gets_there(struct kofi_thread *thread, const struct kefa_ep *ep)
{
	unsigned long end = jiffies + msecs_to_jiffies(KOFI_SPIN_MS);
	bool there = false;

	while (!there && time_before(jiffies, end)) {
		cpu_relax();
		there = completion_done(&thread->done) ||
			(ep && READ_ONCE(ep->state) == KEFA_EP_STOPPED &&
			 kofi_thread_sleeps(thread));
	}
	return there;
}

/* Close: the queue pair exists while a reader uses the endpoint. */
static void poll_found_before_close(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_ep *fid = efa_scene_ep(test, scene, 0);
	struct kefa_ep *ep = container_of(fid, struct kefa_ep, ep_fid);
	struct kofi_thread thread;
	unsigned int before, during;
	bool waits, found;

	KUNIT_ASSERT_EQ(test, fi_enable(fid), 0);
	efake_settle();
	before = efake_calls(scene->fake, EFAKE_QP_DESTROY);
	kofi_thread_start(test, &thread, close_when_told, NULL);
	rcu_read_lock();
	WRITE_ONCE(thread.arg, &fid->fid);
	waits = closer_gets_there(&thread, ep);
	found = kefa_direct_read(ep, false, NULL);
	during = efake_calls(scene->fake, EFAKE_QP_DESTROY);
	rcu_read_unlock();
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_TRUE(test, waits);
	KUNIT_EXPECT_FALSE(test, found);
	KUNIT_EXPECT_EQ(test, during, before);
	KUNIT_EXPECT_EQ(test, thread.ret, 0);
	KUNIT_EXPECT_EQ(test, efake_calls(scene->fake, EFAKE_QP_DESTROY), before + 1);
}

/* The same for the endpoint's memory, after a removal, when closing waits for nothing else. */
static void poll_found_before_free(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_ep *fid = efa_scene_ep(test, scene, 0);
	struct kefa_ep *ep = container_of(fid, struct kefa_ep, ep_fid);
	struct kofi_thread thread;
	bool closed, found;

	KUNIT_ASSERT_EQ(test, fi_enable(fid), 0);
	efake_remove(scene->fake);
	kofi_thread_start(test, &thread, close_when_told, NULL);
	rcu_read_lock();
	WRITE_ONCE(thread.arg, &fid->fid);
	closed = closer_gets_there(&thread, NULL);
	/* KASAN reports the access if the memory was freed. */
	found = kefa_direct_read(ep, false, NULL);
	rcu_read_unlock();
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_TRUE(test, closed);
	KUNIT_EXPECT_FALSE(test, found);
	KUNIT_EXPECT_EQ(test, thread.ret, 0);
}

static struct kunit_case poll_cases[] = {
	KUNIT_CASE(poll_reader),
	KUNIT_CASE(poll_gives),
	KUNIT_CASE(poll_gives_quiet),
	KUNIT_CASE(poll_gives_error),
	KUNIT_CASE(poll_gives_before_handler),
	KUNIT_CASE(poll_many_endpoints),
	KUNIT_CASE(poll_ends),
	KUNIT_CASE(poll_sleeper),
	KUNIT_CASE(poll_sleeper_gone),
	KUNIT_CASE(poll_missed),
	KUNIT_CASE(poll_missed_by_domain),
	KUNIT_CASE(poll_while_closing),
	KUNIT_CASE(poll_while_removed),
	KUNIT_CASE(poll_waits_for_nobody),
	KUNIT_CASE(poll_tells_handler),
	KUNIT_CASE(poll_tells_sleeper),
	KUNIT_CASE(poll_last_tells_sleeper),
	KUNIT_CASE(poll_tells_other_queue),
	KUNIT_CASE(poll_arms_afterwards),
	KUNIT_CASE(poll_found_before_removal),
	KUNIT_CASE(poll_found_before_close),
	KUNIT_CASE(poll_found_before_free),
	{}
};

static struct kunit_suite poll_suite = {
	.name = "kefa_poll",
	.test_cases = poll_cases,
};

kunit_test_suite(poll_suite);
