// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Attributes of a disk, below /sys/block/kofiblkN/kofiblk. They are described in
 * Documentation/ABI/kofiblk.
 */
#include <linux/blkdev.h>
#include <linux/device.h>
#include <linux/err.h>
#include <linux/kstrtox.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include "blk.h"

static struct kbc_disk *kbc_of(struct device *dev)
{
	return dev_to_disk(dev)->private_data;
}

static ssize_t state_show(struct device *dev, struct device_attribute *attr,
			  char *buf)
{
	return sysfs_emit(buf, "%s\n",
			  kbc_state_names[READ_ONCE(kbc_of(dev)->state)]);
}
static DEVICE_ATTR_RO(state);

static ssize_t address_show(struct device *dev, struct device_attribute *attr,
			    char *buf)
{
	return sysfs_emit(buf, "%s\n", kbc_of(dev)->options.address);
}
static DEVICE_ATTR_RO(address);

static ssize_t export_show(struct device *dev, struct device_attribute *attr,
			   char *buf)
{
	return sysfs_emit(buf, "%s\n", kbc_of(dev)->options.export);
}
static DEVICE_ATTR_RO(export);

static ssize_t client_show(struct device *dev, struct device_attribute *attr,
			   char *buf)
{
	return sysfs_emit(buf, "%s\n", kbc_of(dev)->options.client);
}
static DEVICE_ATTR_RO(client);

static ssize_t content_show(struct device *dev, struct device_attribute *attr,
			    char *buf)
{
	return sysfs_emit(buf, "%pUb\n", kbc_of(dev)->as_made.content);
}
static DEVICE_ATTR_RO(content);

/* For udev: identifies the disk independently of its number. */
static ssize_t wwid_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "uuid.%pUb\n", kbc_of(dev)->as_made.content);
}
static DEVICE_ATTR_RO(wwid);

static ssize_t rdma_write_show(struct device *dev,
			       struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", !!(kbc_of(dev)->limits.caps &
					  KB_CAP_RDMA_WRITE));
}
static DEVICE_ATTR_RO(rdma_write);

static ssize_t checksum_show(struct device *dev, struct device_attribute *attr,
			     char *buf)
{
	return sysfs_emit(buf, "%d\n", kbc_of(dev)->options.checksum);
}
static DEVICE_ATTR_RO(checksum);

static ssize_t queues_show(struct device *dev, struct device_attribute *attr,
			   char *buf)
{
	return sysfs_emit(buf, "%u\n", kbc_of(dev)->nqueues);
}
static DEVICE_ATTR_RO(queues);

static ssize_t depth_show(struct device *dev, struct device_attribute *attr,
			  char *buf)
{
	return sysfs_emit(buf, "%u\n", kbc_of(dev)->depth);
}
static DEVICE_ATTR_RO(depth);

static ssize_t max_io_show(struct device *dev, struct device_attribute *attr,
			   char *buf)
{
	return sysfs_emit(buf, "%u\n", kbc_of(dev)->as_made.limits.max_io);
}
static DEVICE_ATTR_RO(max_io);

/* Number of sessions after the first. */
static ssize_t reconnects_show(struct device *dev,
			       struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%ld\n",
			  atomic_long_read(&kbc_of(dev)->stats.connects) - 1);
}
static DEVICE_ATTR_RO(reconnects);

static ssize_t keep_alive_tmo_show(struct device *dev,
				   struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", kbc_of(dev)->options.keep_alive_tmo);
}
static DEVICE_ATTR_RO(keep_alive_tmo);

static ssize_t reconnect_delay_show(struct device *dev,
				    struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", kbc_of(dev)->options.reconnect_delay);
}

static ssize_t reconnect_delay_store(struct device *dev,
				     struct device_attribute *attr,
				     const char *buf, size_t count)
{
	unsigned int value;
	int ret;

	ret = kstrtouint(buf, 10, &value);
	if (ret)
		return ret;
	if (!value || value > KBC_SECONDS_MAX)
		return -EINVAL;
	WRITE_ONCE(kbc_of(dev)->options.reconnect_delay, value);
	return count;
}
static DEVICE_ATTR_RW(reconnect_delay);

/* Negative numbers mean never, and are stored as -1. */
static ssize_t kbc_store_tmo(int *tmo, const char *buf, size_t count)
{
	int value, ret;

	ret = kstrtoint(buf, 10, &value);
	if (ret)
		return ret;
	if (value > KBC_SECONDS_MAX)
		return -EINVAL;
	WRITE_ONCE(*tmo, max(value, -1));
	return count;
}

static ssize_t ctrl_loss_tmo_show(struct device *dev,
				  struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", kbc_of(dev)->options.ctrl_loss_tmo);
}

static ssize_t ctrl_loss_tmo_store(struct device *dev,
				   struct device_attribute *attr,
				   const char *buf, size_t count)
{
	return kbc_store_tmo(&kbc_of(dev)->options.ctrl_loss_tmo, buf, count);
}
static DEVICE_ATTR_RW(ctrl_loss_tmo);

static ssize_t fast_io_fail_tmo_show(struct device *dev,
				     struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", kbc_of(dev)->options.fast_io_fail_tmo);
}

static ssize_t fast_io_fail_tmo_store(struct device *dev,
				      struct device_attribute *attr,
				      const char *buf, size_t count)
{
	return kbc_store_tmo(&kbc_of(dev)->options.fast_io_fail_tmo, buf,
			     count);
}
static DEVICE_ATTR_RW(fast_io_fail_tmo);

/* Takes effect in the next session. The current one keeps its key. */
static ssize_t secret_store(struct device *dev, struct device_attribute *attr,
			    const char *buf, size_t count)
{
	struct kbc_disk *d = kbc_of(dev);
	char *line = kstrndup(buf, count, GFP_KERNEL);
	struct kb_key *key;

	if (!line)
		return -ENOMEM;
	key = kb_key_new(strim(line));
	kfree_sensitive(line);
	if (IS_ERR(key))
		return PTR_ERR(key);
	spin_lock_bh(&d->lock);
	swap(key, d->options.key);
	spin_unlock_bh(&d->lock);
	kb_key_put(key);
	return count;
}
static DEVICE_ATTR_WO(secret);

static ssize_t lost_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(kbc_of(dev)->epoch.lost));
}

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

static const struct attribute_group kbc_attr_group = {
	.name	= "kofiblk",
	.attrs	= kbc_attrs,
};

const struct attribute_group *kbc_attr_groups[] = {
	&kbc_attr_group,
	&kbc_stat_group,
	NULL
};
