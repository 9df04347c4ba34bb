// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The control device, which creates disks, and the list of disks.
 *
 * The writer of the control device creates the disk and connects its first session, and so gets the
 * error if that fails. A work item removes the disk, because the removal may be requested through
 * an attribute of the disk itself.
 */
#define pr_fmt(fmt) "kofiblk: " fmt

#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "cli.h"
#define CREATE_TRACE_POINTS
#include "cli_trace.h"

MODULE_DESCRIPTION("kofiblk: block devices of another machine, over kOFI");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("0.1");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_CM);
MODULE_IMPORT_NS(KOFI_ULP);
MODULE_IMPORT_NS(KOFIBLK);

/* An open file of the control device. */
struct kbc_control {
	struct mutex	lock;	/* protects answer */
	char		answer[DISK_NAME_LEN + sizeof("disk=\n")];	/* to the latest write */
};

struct workqueue_struct *kbc_wq;
/* Removal of a disk waits for I/O, so it needs a workqueue of its own. */
static struct workqueue_struct *kbc_delete_wq;
static DEFINE_IDA(kbc_indices);
static LIST_HEAD(kbc_disks);
static DEFINE_MUTEX(kbc_disks_lock);	/* protects kbc_disks */

static void kbc_gone(struct kulp_fabric *f)
{
	struct kbc_disk *d;

	mutex_lock(&kbc_disks_lock);
	list_for_each_entry(d, &kbc_disks, list)
		if (READ_ONCE(d->fabric) == f)
			kbc_session_fail(d, -ENODEV);
	mutex_unlock(&kbc_disks_lock);
}

#define KBC_ROLE(in_softirqs) {								\
	.name		= "kofiblk",							\
	.recv_len	= KOFIBLK_REPLY_MAX(KOFIBLK_INLINE_READ_MAX),			\
	.max_queues	= KOFIBLK_QUEUES_MAX,						\
	.softirq	= in_softirqs,							\
	.lazy		= true,								\
	.received	= kbc_received,							\
	.written	= kbc_written,							\
	.gone		= kbc_gone,							\
}

const struct kulp_role kbc_role = KBC_ROLE(true);
const struct kulp_role kbc_role_sum = KBC_ROLE(false);

/* --- a disk --- */

static void kbc_free(struct kbc_disk *d)
{
	kbc_setup_free(d);
	kbc_options_free(&d->options);
	ida_free(&kbc_indices, d->index);
	/* kbc_busy_put() of the last request may be about to call wake_up(). */
	synchronize_rcu();
	free_percpu(d->stats);
	kfree(d->queues);
	kfree(d);
}

static void kbc_list_del(struct kbc_disk *d)
{
	mutex_lock(&kbc_disks_lock);
	list_del(&d->list);
	mutex_unlock(&kbc_disks_lock);
}

static void kbc_delete(struct work_struct *work)
{
	struct kbc_disk *d = container_of(work, struct kbc_disk, delete_work);

	kbc_gate_fail(d);
	wait_for_completion(&d->created);
	kbc_disk_remove(d);
	kbc_session_stop(d);
	/* From here on another disk may use the export: this disk's thread has stopped. */
	kbc_list_del(d);
	debugfs_remove_recursive(d->debugfs);
	kbc_disk_free(d);
	kbc_info(d, "removed\n");
	kbc_free(d);
}

/* Request removal of a disk, without waiting for it. */
void kbc_disk_delete(struct kbc_disk *d)
{
	kbc_set_state(d, KBC_DELETING);
	wake_up(&d->wait);
	/* On return the work is queued, by whichever caller: kbc_exit() destroys the workqueue. */
	spin_lock_bh(&d->lock);
	if (!d->deleting)
		queue_work(kbc_delete_wq, &d->delete_work);
	WRITE_ONCE(d->deleting, true);
	spin_unlock_bh(&d->lock);
}

static struct kbc_disk *kbc_alloc(void)
{
	struct kbc_disk *d = kzalloc(sizeof(*d), GFP_KERNEL);
	unsigned int i;

	if (!d)
		return NULL;
	d->index = ida_alloc(&kbc_indices, GFP_KERNEL);
	if (d->index < 0) {
		kfree(d);
		return NULL;
	}
	snprintf(d->name, sizeof(d->name), "kofiblk%d", d->index);
	mutex_init(&d->gate.lock);
	init_completion(&d->created);
	INIT_WORK(&d->delete_work, kbc_delete);
	kbc_session_init(d);
	d->queues = kcalloc(KOFIBLK_QUEUES_MAX, sizeof(*d->queues), GFP_KERNEL);
	d->stats = alloc_percpu(struct kbc_stats);
	if (!d->queues || !d->stats) {
		kbc_free(d);
		return NULL;
	}
	for (i = 0; i < KOFIBLK_QUEUES_MAX; i++) {
		d->queues[i].disk = d;
		d->queues[i].index = i;
	}
	return d;
}

/* Don't attach an export twice: the two disks' page caches wouldn't be coherent. */
static bool kbc_same(const struct kbc_options *a, const struct kbc_options *b)
{
	return !memcmp(&a->addr, &b->addr, sizeof(a->addr)) &&
	       !strcmp(a->export, b->export) && !strcmp(a->client, b->client);
}

/* Return: 0; -EALREADY if the export is attached; -EBUSY if that disk is being removed. */
static int kbc_list_try(struct kbc_disk *d)
{
	struct kbc_disk *other;
	int ret = 0;

	mutex_lock(&kbc_disks_lock);
	list_for_each_entry(other, &kbc_disks, list)
		if (kbc_same(&other->options, &d->options))
			ret = READ_ONCE(other->deleting) ? -EBUSY :
							      -EALREADY;
	if (!ret)
		list_add_tail(&d->list, &kbc_disks);
	mutex_unlock(&kbc_disks_lock);
	return ret;
}

/* A disk that is no longer visible may still be in the list, so wait for its removal. */
static int kbc_list_add(struct kbc_disk *d)
{
	int ret = kbc_list_try(d);

	if (ret != -EBUSY)
		return ret;
	flush_workqueue(kbc_delete_wq);
	return kbc_list_try(d);
}

/* By another address of the server the export may be attached, too. The first disk stays. */
static int kbc_list_check(struct kbc_disk *d)
{
	struct kbc_disk *other;
	int ret = 0;

	mutex_lock(&kbc_disks_lock);
	list_for_each_entry(other, &kbc_disks, list) {
		if (!other->settled)
			continue;
		ret = kbc_twins(other, d);
		if (!ret)
			continue;
		kbc_err(d, "%s has this export by another address%s\n", other->name,
			ret == -EALREADY ? " of the server" :
			", and no session: try again when it is connected, or disconnect it");
		break;
	}
	d->settled = !ret;
	mutex_unlock(&kbc_disks_lock);
	return ret;
}

static int kbc_create(char *text, char *name)
{
	struct kbc_disk *d = kbc_alloc();
	unsigned int noio;
	int ret;

	if (!d)
		return -ENOMEM;
	ret = kbc_options_parse(&d->options, text) ?: kbc_list_add(d);
	if (ret)
		goto err_free;
	strscpy(name, d->name, DISK_NAME_LEN);
	/* Write-out to other disks on the same device may wait for locks that are taken here. */
	noio = memalloc_noio_save();
	ret = kbc_connect(d) ?: kbc_list_check(d) ?: kbc_disk_alloc(d) ?: kbc_session_start(d);
	if (ret) {
		kbc_disk_free(d);
		if (d->session.id)
			kbc_disconnect(d);
	}
	memalloc_noio_restore(noio);
	if (ret)
		goto err_list;
	/* The disk's thread runs, so kbc_disk_delete() undoes everything on failure. */
	kbc_debugfs_add(d);
	ret = kbc_disk_add(d);
	if (ret)
		kbc_disk_delete(d);
	complete(&d->created);
	return ret;

err_list:
	kbc_list_del(d);
err_free:
	kbc_free(d);
	return ret;
}

/* --- the control device --- */

static int kbc_control_open(struct inode *inode, struct file *file)
{
	struct kbc_control *control;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (!kulp_net_here()) {
		pr_err_ratelimited("disks use the first network namespace only: attach them there\n");
		return -EOPNOTSUPP;
	}
	control = kzalloc(sizeof(*control), GFP_KERNEL);
	if (!control)
		return -ENOMEM;
	mutex_init(&control->lock);
	file->private_data = control;
	return nonseekable_open(inode, file);
}

static int kbc_control_release(struct inode *inode, struct file *file)
{
	kfree(file->private_data);
	return 0;
}

static ssize_t kbc_control_write(struct file *file, const char __user *buf,
				 size_t count, loff_t *pos)
{
	struct kbc_control *control = file->private_data;
	char name[DISK_NAME_LEN];
	char *text;
	int ret;

	if (count > PAGE_SIZE)
		return -E2BIG;
	text = memdup_user_nul(buf, count);
	if (IS_ERR(text))
		return PTR_ERR(text);
	mutex_lock(&control->lock);
	control->answer[0] = '\0';
	ret = kbc_create(text, name);
	if (!ret)
		snprintf(control->answer, sizeof(control->answer), "disk=%s\n", name);
	*pos = 0;
	mutex_unlock(&control->lock);
	kfree_sensitive(text);
	return ret ?: count;
}

static ssize_t kbc_control_read(struct file *file, char __user *buf, size_t count, loff_t *pos)
{
	struct kbc_control *control = file->private_data;
	ssize_t ret;

	mutex_lock(&control->lock);
	ret = simple_read_from_buffer(buf, count, pos, control->answer, strlen(control->answer));
	mutex_unlock(&control->lock);
	return ret;
}

static const struct file_operations kbc_control_fops = {
	.owner		= THIS_MODULE,
	.open		= kbc_control_open,
	.release	= kbc_control_release,
	.write		= kbc_control_write,
	.read		= kbc_control_read,
};

static struct miscdevice kbc_control_dev = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "kofiblk-control",
	.fops	= &kbc_control_fops,
	.mode	= 0600,
};

static int __init kbc_init(void)
{
	int ret = -ENOMEM;

	kbc_wq = alloc_workqueue("kofiblk", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!kbc_wq)
		return ret;
	kbc_delete_wq = alloc_workqueue("kofiblk_delete", WQ_UNBOUND, 0);
	if (!kbc_delete_wq)
		goto err_wq;
	kbc_debugfs = debugfs_create_dir("kofiblk", NULL);
	ret = misc_register(&kbc_control_dev);
	if (ret)
		goto err_debugfs;
	return 0;

err_debugfs:
	debugfs_remove_recursive(kbc_debugfs);
	destroy_workqueue(kbc_delete_wq);
err_wq:
	destroy_workqueue(kbc_wq);
	return ret;
}
module_init(kbc_init);

/* No disk is open, because an open disk holds a reference to the module. */
static void __exit kbc_exit(void)
{
	struct kbc_disk *d;

	misc_deregister(&kbc_control_dev);
	mutex_lock(&kbc_disks_lock);
	list_for_each_entry(d, &kbc_disks, list)
		kbc_disk_delete(d);
	mutex_unlock(&kbc_disks_lock);
	destroy_workqueue(kbc_delete_wq);
	destroy_workqueue(kbc_wq);
	debugfs_remove_recursive(kbc_debugfs);
	ida_destroy(&kbc_indices);
}
module_exit(kbc_exit);
