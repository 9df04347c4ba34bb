/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Allocation of a block driver's disk with its limits, which before 6.11 were set one by one
 * after the allocation; and the type of a NUMA node in blk_mq_ops.
 */
#ifndef KOFI_COMPAT_DISK_H
#define KOFI_COMPAT_DISK_H

#include <linux/bits.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/err.h>

/* Features of a disk. From 6.11 on they are a part of its limits. */
#define COMPAT_DISK_WRITE_CACHE	BIT(0)
#define COMPAT_DISK_FUA		BIT(1)
#define COMPAT_DISK_ROTATIONAL	BIT(2)
#define COMPAT_DISK_STABLE_WRITES	BIT(3)

/* The last argument of blk_mq_ops.init_request is an unsigned int in 6.12 and an int in 7.3. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
#define compat_blk_node_t	int
#else
#define compat_blk_node_t	unsigned int
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)

static inline struct gendisk *compat_disk_alloc(struct blk_mq_tag_set *set,
						struct queue_limits *lim,
						unsigned int flags, void *data)
{
	if (flags & COMPAT_DISK_WRITE_CACHE)
		lim->features |= BLK_FEAT_WRITE_CACHE;
	if (flags & COMPAT_DISK_FUA)
		lim->features |= BLK_FEAT_FUA;
	if (flags & COMPAT_DISK_ROTATIONAL)
		lim->features |= BLK_FEAT_ROTATIONAL;
	if (flags & COMPAT_DISK_STABLE_WRITES)
		lim->features |= BLK_FEAT_STABLE_WRITES;
	return blk_mq_alloc_disk(set, lim, data);
}

#else

static inline struct gendisk *compat_disk_alloc(struct blk_mq_tag_set *set,
						struct queue_limits *lim,
						unsigned int flags, void *data)
{
	struct gendisk *disk = blk_mq_alloc_disk(set, data);
	struct request_queue *q;

	if (IS_ERR(disk))
		return disk;
	q = disk->queue;
	blk_queue_logical_block_size(q, lim->logical_block_size);
	blk_queue_physical_block_size(q, lim->physical_block_size);
	blk_queue_io_min(q, lim->io_min);
	blk_queue_io_opt(q, lim->io_opt);
	blk_queue_max_hw_sectors(q, lim->max_hw_sectors);
	blk_queue_max_segments(q, lim->max_segments);
	blk_queue_virt_boundary(q, lim->virt_boundary_mask);
	blk_queue_max_discard_sectors(q, lim->max_hw_discard_sectors);
	q->limits.discard_granularity = lim->discard_granularity;
	blk_queue_max_write_zeroes_sectors(q, lim->max_write_zeroes_sectors);
	blk_queue_write_cache(q, flags & COMPAT_DISK_WRITE_CACHE,
			      flags & COMPAT_DISK_FUA);
	if (!(flags & COMPAT_DISK_ROTATIONAL))
		blk_queue_flag_set(QUEUE_FLAG_NONROT, q);
	if (flags & COMPAT_DISK_STABLE_WRITES)
		blk_queue_flag_set(QUEUE_FLAG_STABLE_WRITES, q);
	blk_queue_flag_clear(QUEUE_FLAG_ADD_RANDOM, q);
	return disk;
}

#endif

#endif /* KOFI_COMPAT_DISK_H */
