// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A disk's thread: it runs a session until that fails, and then connects again.
 *
 * Everything that ends a session (its end by kofi_cm, removal of the device, a request's time-out,
 * a bad message from the server) only wakes the thread. The thread then stops the block layer's
 * queue, aborts all requests, and connects again when nothing of the session is left.
 *
 * Write-out of memory may wait for the thread, so the thread runs in a noio scope.
 */
#define pr_fmt(fmt) "kofiblk: " fmt

#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include "cli.h"
#include "cli_trace.h"

const char * const kbc_state_names[KBC_STATES] = {
	[KBC_CONNECTING]	= "connecting",
	[KBC_LIVE]		= "live",
	[KBC_RESETTING]		= "resetting",
	[KBC_DELETING]		= "deleting",
};

/* Return: false if the state stays KBC_DELETING, which is never left. */
bool kbc_set_state(struct kbc_disk *d, enum kbc_state state)
{
	enum kbc_state old;

	spin_lock_bh(&d->lock);
	old = d->state;
	if (old != KBC_DELETING)
		WRITE_ONCE(d->state, state);
	spin_unlock_bh(&d->lock);
	if (old != KBC_DELETING)
		trace_kofiblk_state(d->name, kbc_state_names[old], kbc_state_names[state]);
	return old != KBC_DELETING;
}

/* End a session, unless another one has begun. Its first error is recorded. */
void kbc_session_fail_of(struct kbc_disk *d, unsigned int attempt, int err)
{
	spin_lock_bh(&d->lock);
	if (d->attempt == attempt) {
		if (!d->failure)
			WRITE_ONCE(d->failure, err);
		wake_up(&d->wait);
	}
	spin_unlock_bh(&d->lock);
}

void kbc_session_fail(struct kbc_disk *d, int err)
{
	kbc_session_fail_of(d, READ_ONCE(d->attempt), err);
}

/*
 * Not in kbc_wq: while memory is short that has one thread, which must not wait for a lock of
 * uevents.
 */
static void kbc_update(struct work_struct *work)
{
	kbc_disk_update(container_of(work, struct kbc_disk, update));
}

static void kbc_fast_fail(struct work_struct *work)
{
	struct kbc_disk *d = container_of(work, struct kbc_disk, fast_fail.work);

	kbc_err(d, "no session within fast_io_fail_tmo, failing I/O until the server is back\n");
	kbc_gate_fail(d);
}

/* --- while there is a session --- */

static int kbc_take_resize(struct kbc_disk *d)
{
	u64 bytes;

	spin_lock_bh(&d->lock);
	bytes = d->link.bytes;
	d->link.resized = false;
	spin_unlock_bh(&d->lock);
	if (bytes % d->session.geometry.logical_block) {
		kbc_inc(d, refused);
		return -EPROTO;
	}
	WRITE_ONCE(d->session.geometry.bytes, bytes);
	schedule_work(&d->update);
	return 0;
}

static bool kbc_session_news(struct kbc_disk *d)
{
	return READ_ONCE(d->failure) || READ_ONCE(d->link.resized) || READ_ONCE(d->stopping);
}

/* Wait until something happens, or until a time. Return: 0, or why the session must end. */
static int kbc_session_wait(struct kbc_disk *d, long left)
{
	int ret = 0;

	kbc_wait(d, kbc_session_news, left, KBC_UNREAD_MS);
	if (READ_ONCE(d->link.resized))
		ret = kbc_take_resize(d);
	if (ret)
		return ret;
	return READ_ONCE(d->failure) ?: READ_ONCE(d->stopping) ? -ESHUTDOWN : 0;
}

/* Return: why the session must end, a negative errno. */
static int kbc_session_run(struct kbc_disk *d)
{
	/* Half of the keep-alive time-out. */
	unsigned long tick = msecs_to_jiffies(d->session.limits.keep_alive / 2) ?: 1;
	unsigned long next = jiffies + tick;
	u64 heard = d->alive.gen;	/* the latest message whose answer kofi_cm was told of */
	int ret = 0;
	long left;

	while (!ret) {
		left = next - jiffies;
		if (left > 0) {
			ret = kbc_session_wait(d, left);
			continue;
		}
		if (READ_ONCE(d->alive.seen) == d->alive.gen) {
			/* Once for each answer: if the device is stuck, no message follows. */
			if (heard != d->alive.gen)
				kcm_heard(d->link.cm);
			heard = d->alive.gen;
			kbc_keep_alive(d);
		} else if (time_after(jiffies, d->alive.when +
				      msecs_to_jiffies(d->session.limits.keep_alive))) {
			ret = -ETIMEDOUT;
		}
		next = jiffies + tick;
	}
	return ret;
}

/* --- between sessions --- */

static void kbc_session_end(struct kbc_disk *d, int err)
{
	unsigned long began = d->since;
	int tmo;

	trace_kofiblk_session(d->name, false, err);
	kbc_set_state(d, KBC_RESETTING);
	if (!READ_ONCE(d->stopping))
		kbc_err(d, "session with %s, export %s, ended: %d\n", d->options.address,
			d->options.export, err);
	kbc_gate_close(d);
	d->since = jiffies;
	tmo = READ_ONCE(d->options.fast_io_fail_tmo);
	/* Decide when requests fail before kbc_disconnect(), which may take long. */
	if (READ_ONCE(d->state) == KBC_DELETING)
		kbc_gate_fail(d);
	else if (tmo >= 0)
		queue_delayed_work(kbc_wq, &d->fast_fail, tmo * HZ);
	kbc_disconnect(d);
	/* Connect at once only if the session lasted, so that failures aren't retried in a loop. */
	if (time_after(jiffies, began + d->options.reconnect_delay * HZ))
		WRITE_ONCE(d->again, true);
	if (!kbc_set_state(d, KBC_CONNECTING))
		kbc_gate_fail(d);
}

static void kbc_session_begin(struct kbc_disk *d)
{
	cancel_delayed_work_sync(&d->fast_fail);
	if (!kbc_set_state(d, KBC_LIVE)) {
		kbc_disconnect(d);
		kbc_gate_fail(d);
		return;
	}
	trace_kofiblk_session(d->name, true, 0);
	kbc_info(d, "connected to %s, export %s\n", d->options.address, d->options.export);
	d->since = jiffies;
	/* The update may come later: the server checks ranges and write protection, too. */
	kbc_gate_open(d);
	schedule_work(&d->update);
}

static bool kbc_given_up(const struct kbc_disk *d)
{
	int tmo = READ_ONCE(d->options.ctrl_loss_tmo);

	return d->final || (tmo >= 0 && time_after_eq(jiffies, d->since + (unsigned long)tmo * HZ));
}

static void kbc_session_try(struct kbc_disk *d)
{
	unsigned long delay = READ_ONCE(d->options.reconnect_delay) * HZ;

	if (kbc_given_up(d)) {
		kbc_err(d, "no session within ctrl_loss_tmo, or permanently refused: removing the disk\n");
		/* Fail I/O before the removal, which may need memory that the failed I/O frees. */
		kbc_gate_fail(d);
		kbc_disk_delete(d);
	}
	/* Random, so that not all disks of all clients reconnect at once when a server is back. */
	wait_event_idle_timeout(d->wait, READ_ONCE(d->stopping) || READ_ONCE(d->again) ||
				READ_ONCE(d->state) == KBC_DELETING,
				delay - get_random_u32() % (delay / 2));
	WRITE_ONCE(d->again, false);
	if (READ_ONCE(d->state) == KBC_DELETING)
		wait_event_idle(d->wait, READ_ONCE(d->stopping));
	if (READ_ONCE(d->stopping))
		return;
	if (!kbc_connect(d))
		kbc_session_begin(d);
}

static int kbc_thread(void *data)
{
	unsigned int noio = memalloc_noio_save();
	struct kbc_disk *d = data;

	while (!READ_ONCE(d->stopping)) {
		if (d->session.id)
			kbc_session_end(d, kbc_session_run(d));
		else
			kbc_session_try(d);
	}
	if (d->session.id)
		kbc_session_end(d, 0);
	memalloc_noio_restore(noio);
	return 0;
}

void kbc_session_init(struct kbc_disk *d)
{
	spin_lock_init(&d->lock);
	init_waitqueue_head(&d->wait);
	INIT_WORK(&d->update, kbc_update);
	INIT_DELAYED_WORK(&d->fast_fail, kbc_fast_fail);
	d->state = KBC_CONNECTING;
}

/* Start the thread of a disk after kbc_connect(), whose gate is closed. */
int kbc_session_start(struct kbc_disk *d)
{
	struct task_struct *task;

	task = kthread_create(kbc_thread, d, "%s", d->name);
	if (IS_ERR(task))
		return PTR_ERR(task);
	d->thread = get_task_struct(task);
	/* The block layer looks for partitions when it adds the disk, so set its size before. */
	kbc_disk_update(d);
	kbc_session_begin(d);
	wake_up_process(task);
	return 0;
}

void kbc_session_stop(struct kbc_disk *d)
{
	WRITE_ONCE(d->stopping, true);
	wake_up(&d->wait);
	kthread_stop(d->thread);
	put_task_struct(d->thread);
	cancel_delayed_work_sync(&d->fast_fail);
}
