// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Attributes and counters of a disk, below /sys/block/kofiblkN, described in
 * Documentation/ABI/kofiblk; and /sys/kernel/debug/kofiblk/kofiblkN.
 */
#include <linux/blkdev.h>
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include "cli.h"

static struct kbc_disk *kbc_of(struct device *dev)
{
	return dev_to_disk(dev)->private_data;
}

#define KBC_SHOW(name, fmt, value)							\
static ssize_t name##_show(struct device *dev, struct device_attribute *attr, char *buf) \
{											\
	struct kbc_disk *d = kbc_of(dev);						\
											\
	return sysfs_emit(buf, fmt "\n", value);					\
}

#define KBC_STORE_NUMBER(name, least)							\
static ssize_t name##_store(struct device *dev, struct device_attribute *attr,		\
			    const char *buf, size_t count)				\
{											\
	return kbc_number(&kbc_of(dev)->options.name, buf, 10, least,		\
			  KBC_SECONDS_MAX) ?: count;					\
}

#define KBC_ATTR_RO(name, fmt, value)							\
	KBC_SHOW(name, fmt, value)							\
	static DEVICE_ATTR_RO(name)

#define KBC_ATTR_SECONDS(name, least)							\
	KBC_SHOW(name, "%d", d->options.name)						\
	KBC_STORE_NUMBER(name, least)							\
	static DEVICE_ATTR_RW(name)

KBC_ATTR_RO(state, "%s", kbc_state_names[READ_ONCE(d->state)]);
KBC_ATTR_RO(address, "%s", d->options.address);
KBC_ATTR_RO(export, "%s", d->options.export);
KBC_ATTR_RO(client, "%s", d->options.client);
KBC_ATTR_RO(content, "%pUb", d->made.accept.content);
/* For udev: identifies the disk independently of its number. */
KBC_ATTR_RO(wwid, "uuid.%pUb", d->made.accept.content);
KBC_ATTR_RO(rdma_write, "%d", !!(d->session.limits.caps & KOFIBLK_CAP_RDMA_WRITE));
KBC_ATTR_RO(checksum, "%d", d->options.checksum);
KBC_ATTR_RO(queues, "%u", d->nqueues);
KBC_ATTR_RO(poll_queues, "%u", d->npolled);
KBC_ATTR_RO(depth, "%u", d->made.depth);
KBC_ATTR_RO(max_io, "%u", d->made.accept.limits.max_io);
/* Number of sessions after the first. */
KBC_ATTR_RO(reconnects, "%ld", (long)kbc_count(d, KBC_STAT_connects) - 1);
KBC_ATTR_RO(keep_alive_tmo, "%u", d->options.keep_alive_tmo);
KBC_ATTR_SECONDS(reconnect_delay, 1);
KBC_ATTR_SECONDS(ctrl_loss_tmo, -1);
KBC_ATTR_SECONDS(fast_io_fail_tmo, -1);

/* Takes effect in the next session. The current one keeps its key. */
static ssize_t secret_store(struct device *dev, struct device_attribute *attr,
			    const char *buf, size_t count)
{
	struct kbc_disk *d = kbc_of(dev);
	char *line = kstrndup(buf, count, GFP_KERNEL);
	struct kulp_key *key;

	if (!line)
		return -ENOMEM;
	key = kulp_key_new(strim(line));
	kfree_sensitive(line);
	if (IS_ERR(key))
		return PTR_ERR(key);
	spin_lock_bh(&d->lock);
	swap(key, d->options.key);
	spin_unlock_bh(&d->lock);
	kulp_key_put(key);
	return count;
}
static DEVICE_ATTR_WO(secret);

KBC_SHOW(lost, "%d", READ_ONCE(d->epoch.lost))
static ssize_t lost_store(struct device *dev, struct device_attribute *attr,
			  const char *buf, size_t count)
{
	bool value;
	int ret;

	ret = kstrtobool(buf, &value);
	if (ret || value)
		return ret ?: -EINVAL;
	kbc_epoch_accept(&kbc_of(dev)->epoch);
	return count;
}
static DEVICE_ATTR_RW(lost);

static ssize_t reset_store(struct device *dev, struct device_attribute *attr,
			   const char *buf, size_t count)
{
	struct kbc_disk *d = kbc_of(dev);

	WRITE_ONCE(d->again, true);
	if (READ_ONCE(d->state) == KBC_LIVE)
		kbc_session_fail(d, -ECONNRESET);
	else
		wake_up(&d->wait);
	return count;
}
static DEVICE_ATTR_WO(reset);

static ssize_t delete_store(struct device *dev, struct device_attribute *attr,
			    const char *buf, size_t count)
{
	kbc_disk_delete(kbc_of(dev));
	return count;
}
static DEVICE_ATTR_WO(delete);

static struct attribute *kbc_attrs[] = {
	&dev_attr_state.attr,
	&dev_attr_address.attr,
	&dev_attr_export.attr,
	&dev_attr_client.attr,
	&dev_attr_content.attr,
	&dev_attr_wwid.attr,
	&dev_attr_rdma_write.attr,
	&dev_attr_checksum.attr,
	&dev_attr_queues.attr,
	&dev_attr_poll_queues.attr,
	&dev_attr_depth.attr,
	&dev_attr_max_io.attr,
	&dev_attr_reconnects.attr,
	&dev_attr_keep_alive_tmo.attr,
	&dev_attr_reconnect_delay.attr,
	&dev_attr_ctrl_loss_tmo.attr,
	&dev_attr_fast_io_fail_tmo.attr,
	&dev_attr_secret.attr,
	&dev_attr_lost.attr,
	&dev_attr_reset.attr,
	&dev_attr_delete.attr,
	NULL
};

/* --- counters --- */

#define KBC_NAME(name) #name
static const char * const kbc_stat_names[KBC_STATS] = {
	KBC_SYSFS_STATS(KBC_NAME), KBC_DEBUG_STATS(KBC_NAME)
};

static ssize_t kbc_stat_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	void *stat = container_of(attr, struct dev_ext_attribute, attr)->var;

	return sysfs_emit(buf, "%lu\n", kbc_count(kbc_of(dev), (uintptr_t)stat));
}

/* The attribute is part of the array's initializer, as with PMU_EVENT_ATTR_ID(). */
#define KBC_STAT_ATTR(name) (&((struct dev_ext_attribute[]) { {				\
	__ATTR(name, 0444, kbc_stat_show, NULL), (void *)KBC_STAT(name) } })[0].attr.attr)

static struct attribute *kbc_stat_attrs[] = {
	KBC_SYSFS_STATS(KBC_STAT_ATTR), NULL
};

static const struct attribute_group kbc_attr_group = {
	.name	= "kofiblk",
	.attrs	= kbc_attrs,
};

static const struct attribute_group kbc_stat_group = {
	.name	= "kofiblk_stats",
	.attrs	= kbc_stat_attrs,
};

const struct attribute_group *kbc_attr_groups[] = {
	&kbc_attr_group,
	&kbc_stat_group,
	NULL
};

/* --- debugfs --- */

struct dentry *kbc_debugfs;

static int counters_show(struct seq_file *m, void *v)
{
	unsigned int i;

	for (i = 0; i < KBC_STATS; i++)
		seq_printf(m, "%s %lu\n", kbc_stat_names[i], kbc_count(m->private, i));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

static const char * const kbc_phase_names[KBC_PHASES] = {
	[KBC_IDLE]		= "idle",
	[KBC_REGISTER]		= "register",
	[KBC_REPLY]		= "reply",
	[KBC_FETCH]		= "fetch",
	[KBC_INVALIDATE]	= "invalidate",
	[KBC_STUCK]		= "stuck",
	[KBC_END]		= "end",
};

static void kbc_tag_show(struct seq_file *m, const struct kbc_queue *kq, struct kbc_tag *tag)
{
	const struct kbc_slot *slot;

	spin_lock_bh(&tag->lock);
	slot = tag->slot;
	if (slot)
		seq_printf(m, "%u:%u %s gen=%llu ops=%u%s\n", kq->index,
			   (unsigned int)(tag - kq->tags),
			   kbc_phase_names[slot->phase], tag->gen, slot->ops,
			   slot->aborted ? " aborted" : "");
	spin_unlock_bh(&tag->lock);
}

static int requests_show(struct seq_file *m, void *v)
{
	struct kbc_disk *d = m->private;
	unsigned int i, j;

	for (i = 0; i < d->nqueues; i++)
		for (j = 0; j < d->made.depth; j++)
			kbc_tag_show(m, &d->queues[i], &d->queues[i].tags[j]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(requests);

void kbc_debugfs_add(struct kbc_disk *d)
{
	d->debugfs = debugfs_create_dir(d->name, kbc_debugfs);
	debugfs_create_file("counters", 0400, d->debugfs, d, &counters_fops);
	debugfs_create_file("requests", 0400, d->debugfs, d, &requests_fops);
}
