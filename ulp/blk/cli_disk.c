// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Interface to the block layer: a disk, its queues, and the gate in front of them. While there is
 * no session the gate is closed and requests wait. After fast_io_fail_tmo the gate opens and
 * requests fail.
 */
#define pr_fmt(fmt) "kofiblk: " fmt

#include <linux/blkdev.h>
#include <linux/module.h>
#include "../../compat/disk.h"
#include "cli.h"

static const struct block_device_operations kbc_fops = {
	.owner	= THIS_MODULE,
};

static blk_status_t kbc_queue_rq(struct blk_mq_hw_ctx *hctx, const struct blk_mq_queue_data *bd)
{
	struct kbc_queue *kq = hctx->driver_data;
	struct kbc_disk *d = kq->disk;

	if (!(bd->rq->rq_flags & RQF_DONTPREP)) {
		kbc_slot(bd->rq)->faults = 0;
		kbc_slot(bd->rq)->short_since = 0;
		bd->rq->rq_flags |= RQF_DONTPREP;
	}
	/* Pairs with kbc_gate_open(): the members that kbc_connect() has set are visible. */
	if (likely(smp_load_acquire(&d->gate.up)))
		return kbc_request_start(kq, bd->rq);
	if (!READ_ONCE(d->gate.failing))
		return BLK_STS_RESOURCE;
	kbc_inc(d, failures);
	return BLK_STS_TRANSPORT;
}

static void kbc_rq_complete(struct request *rq)
{
	blk_mq_end_request(rq, kbc_slot(rq)->status);
}

static int kbc_init_hctx(struct blk_mq_hw_ctx *hctx, void *data, unsigned int index)
{
	hctx->driver_data = kbc_hctx_queue(data, index);
	return 0;
}

static int kbc_init_request(struct blk_mq_tag_set *set, struct request *rq,
			    unsigned int index, compat_blk_node_t node)
{
	return kbc_slot_init(kbc_slot(rq), kbc_hctx_queue(set->driver_data, index));
}

static void kbc_exit_request(struct blk_mq_tag_set *set, struct request *rq, unsigned int index)
{
	kbc_slot_exit(kbc_slot(rq));
}

static const struct blk_mq_ops kbc_mq_ops = {
	.queue_rq	= kbc_queue_rq,
	.complete	= kbc_rq_complete,
	.timeout	= kbc_timeout,
	.poll		= kbc_poll,
	.map_queues	= kbc_map_queues,
	.init_hctx	= kbc_init_hctx,
	.init_request	= kbc_init_request,
	.exit_request	= kbc_exit_request,
};

void kbc_complete(struct request *rq, blk_status_t status)
{
	kbc_slot(rq)->status = status;
	blk_mq_complete_request(rq);
}

static unsigned int kbc_sectors(u64 bytes)
{
	/* The maximum is a multiple of any block size. */
	return min_t(u64, bytes >> SECTOR_SHIFT,
		     round_down(UINT_MAX >> SECTOR_SHIFT, PAGE_SECTORS));
}

static struct gendisk *kbc_gendisk_alloc(struct kbc_disk *d)
{
	const struct kofiblk_disk_msg *geometry = &d->session.geometry;
	struct queue_limits lim = {
		.logical_block_size	= geometry->logical_block,
		.physical_block_size	= geometry->physical_block,
		.io_min			= geometry->io_min,
		.io_opt			= geometry->io_opt,
		.max_hw_sectors		= kbc_sectors(d->session.limits.max_io),
		.max_segments		= d->made.max_bvecs,
		.virt_boundary_mask	= PAGE_SIZE - 1,
	};
	unsigned int flags = 0;

	if (d->session.limits.caps & KOFIBLK_CAP_DISCARD) {
		lim.max_hw_discard_sectors = kbc_sectors(geometry->discard_max);
		lim.discard_granularity = geometry->discard_granularity;
	}
	if (d->session.limits.caps & KOFIBLK_CAP_WRITE_ZEROES)
		lim.max_write_zeroes_sectors = kbc_sectors(geometry->zeroes_max);
	if (geometry->flags & KOFIBLK_DISK_WRITE_CACHE)
		flags |= COMPAT_DISK_WRITE_CACHE;
	if (flags && d->session.limits.caps & KOFIBLK_CAP_FUA)
		flags |= COMPAT_DISK_FUA;
	if (geometry->flags & KOFIBLK_DISK_ROTATIONAL)
		flags |= COMPAT_DISK_ROTATIONAL;
	/* Data must not change between computation of its checksum and its transfer. */
	if (d->options.checksum)
		flags |= COMPAT_DISK_STABLE_WRITES;
	return compat_disk_alloc(&d->set, &lim, flags, d);
}

/* Allocate the block layer's disk, not visible yet, and close its gate. */
int kbc_disk_alloc(struct kbc_disk *d)
{
	struct gendisk *disk;
	int ret;

	d->set.ops = &kbc_mq_ops;
	d->set.nr_hw_queues = d->nqueues;
	d->set.nr_maps = d->npolled ? HCTX_MAX_TYPES : 1;
	d->set.queue_depth = d->made.depth;
	d->set.numa_node = NUMA_NO_NODE;
	d->set.cmd_size = sizeof(struct kbc_slot);
	/*
	 * A CPU that goes offline doesn't wait for requests, which may wait for a session as long
	 * as the server is away. Any CPU can complete them.
	 */
	d->set.flags = BLK_MQ_F_SHOULD_MERGE | BLK_MQ_F_STACKING;
	d->set.driver_data = d;
	ret = blk_mq_alloc_tag_set(&d->set);
	if (ret)
		return ret;
	disk = kbc_gendisk_alloc(d);
	if (IS_ERR(disk)) {
		blk_mq_free_tag_set(&d->set);
		return PTR_ERR(disk);
	}
	disk->fops = &kbc_fops;
	disk->private_data = d;
	strscpy(disk->disk_name, d->name, sizeof(disk->disk_name));
	d->disk = disk;
	kbc_gate_close(d);
	return 0;
}

int kbc_disk_add(struct kbc_disk *d)
{
	int ret = device_add_disk(NULL, d->disk, kbc_attr_groups);

	d->added = !ret;
	return ret;
}

/* Dirty data is written if there is a session. */
void kbc_disk_remove(struct kbc_disk *d)
{
	if (!d->added)
		return;
	if (!READ_ONCE(d->gate.up))
		blk_mark_disk_dead(d->disk);
	del_gendisk(d->disk);
}

void kbc_disk_free(struct kbc_disk *d)
{
	if (!d->disk)
		return;
	cancel_work_sync(&d->update);
	/* The last request may have been requeued, and sent, before its delayed kick was set up. */
	cancel_delayed_work_sync(&d->disk->queue->requeue_work);
	put_disk(d->disk);
	blk_mq_free_tag_set(&d->set);
	d->disk = NULL;
}

/*
 * Take over the disk's size and write protection. That sends uevents, whose lock may be held by a
 * task that waits for a request of this disk.
 */
void kbc_disk_update(struct kbc_disk *d)
{
	u64 bytes = READ_ONCE(d->session.geometry.bytes);

	set_disk_ro(d->disk, READ_ONCE(d->session.geometry.flags) & KOFIBLK_DISK_READ_ONLY);
	if (set_capacity_and_notify(d->disk, bytes >> SECTOR_SHIFT))
		kbc_info(d, "the size is now %llu bytes\n", bytes);
}

/* --- the gate --- */

/* Kick only if requests were requeued: the work item could outlive a deleted disk. */
static void kbc_kick_requeued(struct kbc_disk *d)
{
	if (xchg(&d->requeued, 0))
		blk_mq_kick_requeue_list(d->disk->queue);
}

/*
 * Requeue a request, to be sent in this or the next session, or to fail if kbc_gate.failing is set.
 * @ms: minimum delay if the session continues; 0 if it has ended.
 */
void kbc_requeue(struct kbc_disk *d, struct request *rq, unsigned int ms)
{
	blk_mq_requeue_request(rq, false);
	WRITE_ONCE(d->requeued, 1);
	/*
	 * kbc_gate_fail() sets @failing before xchg() in kbc_kick_requeued() reads @requeued. So
	 * either that xchg() sees @requeued, or this function sees @failing.
	 */
	smp_mb();
	if (READ_ONCE(d->gate.failing))
		kbc_kick_requeued(d);
	else if (ms && !delayed_work_pending(&d->disk->queue->requeue_work))
		/* A pending work item sends this request, too, and must not be delayed. */
		blk_mq_delay_kick_requeue_list(d->disk->queue, ms);
}

static void kbc_gate_set(struct kbc_disk *d, bool closed)
{
	lockdep_assert_held(&d->gate.lock);
	if (d->gate.quiesced == closed)
		return;
	if (closed)
		blk_mq_quiesce_queue(d->disk->queue);
	else
		blk_mq_unquiesce_queue(d->disk->queue);
	d->gate.quiesced = closed;
}

void kbc_gate_open(struct kbc_disk *d)
{
	mutex_lock(&d->gate.lock);
	WRITE_ONCE(d->gate.failing, READ_ONCE(d->state) == KBC_DELETING);
	/* Pairs with kbc_queue_rq(), which uses the session's members. */
	smp_store_release(&d->gate.up, true);
	kbc_gate_set(d, false);
	mutex_unlock(&d->gate.lock);
	kbc_kick_requeued(d);
}

/* After the return kbc_request_start() neither runs nor is called. */
void kbc_gate_close(struct kbc_disk *d)
{
	mutex_lock(&d->gate.lock);
	WRITE_ONCE(d->gate.up, false);
	kbc_gate_set(d, true);
	mutex_unlock(&d->gate.lock);
}

/* Let requests fail, unless there is a session. */
void kbc_gate_fail(struct kbc_disk *d)
{
	mutex_lock(&d->gate.lock);
	WRITE_ONCE(d->gate.failing, true);
	if (!d->gate.up)
		kbc_gate_set(d, false);
	mutex_unlock(&d->gate.lock);
	kbc_kick_requeued(d);
}
