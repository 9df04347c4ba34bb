// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Counters of a disk, in /sys/block/kofiblkN/kofiblk_stats: an interface, described in
 * Documentation/ABI/kofiblk. They start at 0 when the disk is created, and only grow.
 */
#include <linux/blkdev.h>
#include <linux/device.h>
#include <linux/sysfs.h>
#include "blk.h"

/**
 * struct kbc_stat - attribute of a counter
 * @attr: the attribute
 * @offset: offset of the counter in struct kbc_stats or struct kbc_io_stats
 */
struct kbc_stat {
	struct device_attribute	attr;
	size_t			offset;
};

/**
 * kbc_io_count() - sum up a counter of struct kbc_io_stats
 * @d: the disk
 * @offset: offset of the counter in struct kbc_io_stats
 *
 * Context: Any.
 * Return: the sum over all CPUs.
 */
unsigned long kbc_io_count(const struct kbc_disk *d, size_t offset)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(*(unsigned long *)
				 ((void *)per_cpu_ptr(d->io_stats, cpu) + offset));
	return sum;
}

static ssize_t kbc_stat_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	const struct kbc_stat *stat = container_of(attr, struct kbc_stat, attr);
	struct kbc_disk *d = dev_to_disk(dev)->private_data;

	return sysfs_emit(buf, "%ld\n", atomic_long_read((void *)&d->stats + stat->offset));
}

static ssize_t kbc_io_stat_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	const struct kbc_stat *stat = container_of(attr, struct kbc_stat, attr);
	struct kbc_disk *d = dev_to_disk(dev)->private_data;

	return sysfs_emit(buf, "%lu\n", kbc_io_count(d, stat->offset));
}

#define KBC_IO_STAT(name)						\
static struct kbc_stat kbc_stat_##name = {				\
	__ATTR(name, 0444, kbc_io_stat_show, NULL),			\
	offsetof(struct kbc_io_stats, name),				\
}

#define KBC_STAT(name)							\
static struct kbc_stat kbc_stat_##name = {				\
	__ATTR(name, 0444, kbc_stat_show, NULL),			\
	offsetof(struct kbc_stats, name),				\
}

KBC_IO_STAT(requests);
KBC_IO_STAT(bytes);
KBC_STAT(errors);
KBC_STAT(replays);
KBC_STAT(failures);
KBC_STAT(timeouts);
KBC_STAT(refused);
KBC_STAT(stale);
KBC_STAT(connects);
KBC_STAT(attempts);
KBC_STAT(losses);
KBC_STAT(checksum_errors);

static struct attribute *kbc_stat_attrs[] = {
	&kbc_stat_requests.attr.attr,
	&kbc_stat_bytes.attr.attr,
	&kbc_stat_errors.attr.attr,
	&kbc_stat_replays.attr.attr,
	&kbc_stat_failures.attr.attr,
	&kbc_stat_timeouts.attr.attr,
	&kbc_stat_refused.attr.attr,
	&kbc_stat_stale.attr.attr,
	&kbc_stat_connects.attr.attr,
	&kbc_stat_attempts.attr.attr,
	&kbc_stat_losses.attr.attr,
	&kbc_stat_checksum_errors.attr.attr,
	NULL
};

const struct attribute_group kbc_stat_group = {
	.name	= "kofiblk_stats",
	.attrs	= kbc_stat_attrs,
};
