// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The store of an export: a block device, accessed by bios, or a file. All functions may sleep and
 * are called from work items, except kbs_store_try(), which uses REQ_NOWAIT.
 *
 * The kernel reports a writeback error once, maybe not to the client whose write was lost. So all
 * flushes of a file fail then until an administrator clears the attribute "lost".
 */
#define pr_fmt(fmt) "kofiblk_srv: " fmt

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/falloc.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/pagemap.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/stat.h>
#include <linux/uio.h>
#include "srv.h"

#define KBS_FILE_BLOCK	512U
#define KBS_FILE_MAX	SZ_1G	/* maximum bytes of a discard or write of zeroes */

static void kbs_store_limits_bdev(struct kbs_store *store)
{
	struct block_device *bdev = store->bdev;
	struct kofiblk_disk_msg *disk = &store->disk;
	u32 block = bdev_logical_block_size(bdev);

	disk->logical_block = block;
	disk->physical_block = bdev_physical_block_size(bdev);
	disk->io_min = round_down(bdev_io_min(bdev), block);
	disk->io_opt = round_down((u32)bdev_io_opt(bdev), block);
	if (bdev_rot(bdev))
		disk->flags |= KOFIBLK_DISK_ROTATIONAL;
	disk->discard_granularity = round_down(bdev_discard_granularity(bdev), block);
	disk->discard_max = round_down((u64)bdev_max_discard_sectors(bdev) << SECTOR_SHIFT, block);
	if (disk->discard_max && !disk->discard_granularity)
		disk->discard_granularity = block;
	/* If the device can't write zeroes, the kernel writes them as data, so limit the size. */
	disk->zeroes_max = KOFIBLK_IO_MAX;
	if (bdev_write_zeroes_sectors(bdev))
		disk->zeroes_max = round_down(min_t(u64, KBS_FILE_MAX, (u64)
			bdev_write_zeroes_sectors(bdev) << SECTOR_SHIFT), block);
}

/* Offset alignment of O_DIRECT. Memory is in whole pages, which satisfies any device. */
static u32 kbs_store_direct_block(const struct kbs_store *store)
{
	struct super_block *sb = file_inode(store->file)->i_sb;
	struct kstat stat;

	if (!vfs_getattr(&store->file->f_path, &stat, STATX_DIOALIGN, AT_STATX_SYNC_AS_STAT) &&
	    stat.result_mask & STATX_DIOALIGN)
		return max(stat.dio_offset_align, KBS_FILE_BLOCK);
	/* Not all filesystems report the alignment. */
	return sb->s_bdev ? bdev_logical_block_size(sb->s_bdev) : KOFIBLK_IO_MIN;
}

/*
 * Return: whether an error of fallocate() means that there will be no holes. Others may pass, as
 * -ENOSPC, and a disk whose first session has no discards never gets them.
 */
static bool kbs_store_refuses(int err)
{
	switch (err) {
	case -EOPNOTSUPP:	/* some filesystems have fallocate() without holes */
	case -ENOSYS:
	case -EPERM:		/* the file is sealed or append-only */
	case -EACCES:		/* a security module */
	case -ETXTBSY:		/* a swap file */
		return true;
	}
	return false;
}

/* Return: whether a file can have holes. */
static bool kbs_store_has_holes(struct kbs_store *store)
{
	struct file *file = store->file;
	loff_t end = round_up(i_size_read(file_inode(file)), KOFIBLK_IO_MIN);

	/* Behind the end there is no data. A read-only file may be writable in a later session. */
	return file->f_op->fallocate &&
	       (store->read_only ||
		!kbs_store_refuses(vfs_fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
						 end, KOFIBLK_IO_MIN)));
}

static void kbs_store_limits_file(struct kbs_store *store)
{
	struct kofiblk_disk_msg *disk = &store->disk;

	disk->logical_block = store->file->f_flags & O_DIRECT ?
			      kbs_store_direct_block(store) : KBS_FILE_BLOCK;
	disk->physical_block = max(KOFIBLK_IO_MIN, disk->logical_block);
	disk->io_min = KOFIBLK_IO_MIN;
	if (kbs_store_has_holes(store)) {
		disk->discard_granularity = KOFIBLK_IO_MIN;
		disk->discard_max = KBS_FILE_MAX;
		disk->zeroes_max = KBS_FILE_MAX;
	}
}

u64 kbs_store_bytes(const struct kbs_store *store)
{
	u64 bytes = store->bdev ? bdev_nr_bytes(store->bdev) :
				  i_size_read(file_inode(store->file));

	return round_down(bytes, (u64)store->disk.logical_block);
}

static void kbs_store_free(struct kbs_store *store)
{
	if (store->wq)
		destroy_workqueue(store->wq);
	filp_close(store->file, NULL);
	store->file = NULL;
}

static int kbs_store_usable(struct inode *inode)
{
	if (S_ISBLK(inode->i_mode) && bdev_is_zoned(I_BDEV(inode))) {
		pr_err("%pg is zoned, which isn't supported\n", I_BDEV(inode));
		return -EOPNOTSUPP;
	}
	if (S_ISBLK(inode->i_mode) || (S_ISREG(inode->i_mode) && inode->i_fop->read_iter &&
				       inode->i_fop->write_iter))
		return 0;
	return -EINVAL;
}

/*
 * Open the block device, exclusively, or the file of an export. An epoch that was kept tells
 * clients that the store has all that they wrote before it was closed.
 */
int kbs_store_open(struct kbs_store *store, const struct kbs_export *export)
{
	struct inode *inode;
	int ret;

	memset(store, 0, sizeof(*store));
	store->read_only = export->read_only;
	store->stable = export->stable;
	store->lost = export->lost;
	store->epoch = export->epoch;
	while (!store->epoch)
		get_random_bytes(&store->epoch, sizeof(store->epoch));
	store->file = filp_open(export->path, O_LARGEFILE | O_EXCL |
				(export->direct ? O_DIRECT : 0) |
				(export->read_only ? O_RDONLY : O_RDWR), 0);
	if (IS_ERR(store->file))
		return PTR_ERR(store->file);
	store->since = filemap_sample_wb_err(store->file->f_mapping);
	inode = store->file->f_mapping->host;
	ret = kbs_store_usable(inode);
	if (ret)
		goto out;
	if (S_ISBLK(inode->i_mode)) {
		store->bdev = I_BDEV(inode);
		if (bdev_read_only(store->bdev))
			store->read_only = true;
		kbs_store_limits_bdev(store);
	} else {
		kbs_store_limits_file(store);
	}
	/* A drive's cache can be switched on later, and flushing without one is cheap. */
	if (!store->stable)
		store->disk.flags |= KOFIBLK_DISK_WRITE_CACHE;
	if (store->read_only)
		store->disk.flags |= KOFIBLK_DISK_READ_ONLY;
	store->disk.bytes = kbs_store_bytes(store);
	ret = -EINVAL;
	if (store->disk.logical_block > KOFIBLK_IO_MIN || !store->disk.bytes)
		goto out;
	store->wq = alloc_workqueue("kofiblk_srv_io", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	ret = store->wq ? 0 : -ENOMEM;
out:
	if (ret)
		kbs_store_free(store);
	return ret;
}

/* Return: whether a write must be in stable storage before it is completed. */
static bool kbs_store_through(const struct kbs_store_io *io)
{
	return io->write && (io->fua || io->store->stable);
}

/* --- block devices --- */

static void kbs_store_end_io(struct bio *bio)
{
	struct kbs_store_io *io = bio->bi_private;

	io->err = blk_status_to_errno(bio->bi_status);
	bio_uninit(bio);
	io->done(io);
}

/*
 * Submit a bio that borrows the pieces of @io, as a clone borrows those of its original. The block
 * layer splits it if the device needs that.
 */
static void kbs_store_submit(struct kbs_store_io *io, bool nowait)
{
	blk_opf_t opf = io->write ? REQ_OP_WRITE | REQ_SYNC | REQ_IDLE : REQ_OP_READ;
	struct bio *bio = io->bio;

	/* The block layer ignores the flag if the device has no cache. */
	opf |= (kbs_store_through(io) ? REQ_FUA : 0) | (nowait ? REQ_NOWAIT : 0);
	bio_init(bio, io->store->bdev, (struct bio_vec *)io->bvec, io->nbvec, opf);
	bio->bi_vcnt = io->nbvec;
	bio_set_flag(bio, BIO_CLONED);
	bio->bi_iter.bi_sector = io->offset >> SECTOR_SHIFT;
	bio->bi_iter.bi_size = io->bytes;
	bio->bi_private = io;
	bio->bi_end_io = kbs_store_end_io;
	io->nowait = nowait;
	submit_bio(bio);
}

/*
 * The block layer splits what is longer than a request of the device, and doesn't do so without
 * waiting. Some devices wait all the same: nbd for its peer, and what is made of other devices may
 * wait as these do. Return: whether it is worth trying, and won't wait.
 */
static bool kbs_store_may_try(const struct kbs_store_io *io)
{
	struct block_device *bdev = io->store->bdev;
	struct request_queue *q;

	if (!bdev || !bdev_nowait(bdev) || io->nbvec != 1)
		return false;
	q = bdev_get_queue(bdev);
	if (!q->tag_set || q->tag_set->flags & BLK_MQ_F_BLOCKING)
		return false;
	return io->bytes <= queue_max_bytes(q);
}

/*
 * Start to read or write without waiting. Return: whether it was started; if not, done() isn't
 * called and the caller must use kbs_store_rw(). In done(), an err of -EAGAIN means that it would
 * have waited.
 */
bool kbs_store_try(struct kbs_store_io *io)
{
	if (!kbs_store_may_try(io))
		return false;
	kbs_store_submit(io, true);
	return true;
}

/* --- files --- */

/*
 * The client may be on this machine, and memory reclaim may wait for this write. So the write must
 * not be throttled for pages that others have dirtied, and must not start other I/O in order to
 * allocate memory.
 */
static unsigned int kbs_file_enter(void)
{
	unsigned int old = current->flags;

	current->flags |= PF_LOCAL_THROTTLE | PF_MEMALLOC_NOIO;
	return old;
}

static void kbs_file_leave(unsigned int old)
{
	current_restore_flags(old, PF_LOCAL_THROTTLE | PF_MEMALLOC_NOIO);
}

/*
 * Flush bytes @first to @last. Of two concurrent calls of vfs_fsync_range() only one gets an error,
 * so check the mapping's errors since open too. The mapping alone isn't enough, as it doesn't
 * record all errors of the filesystem.
 */
static int kbs_store_sync(struct kbs_store *store, loff_t first, loff_t last)
{
	struct file *file = store->file;
	int err;

	err = vfs_fsync_range(file, first, last, 1) ?:
	      filemap_check_wb_err(file->f_mapping, store->since);
	if (err && !cmpxchg(&store->lost, 0, err))
		pr_err("%pD: writes were lost, failing all flushes until the attribute \"lost\" is cleared: %d\n",
		       file, err);
	return READ_ONCE(store->lost);
}

static int kbs_store_rw_once(struct kbs_store_io *io)
{
	loff_t pos = io->offset;
	struct iov_iter iter;
	ssize_t ret;

	iov_iter_bvec(&iter, io->write ? ITER_SOURCE : ITER_DEST, io->bvec, io->nbvec, io->bytes);
	while (iov_iter_count(&iter)) {
		if (io->write)
			ret = compat_iter_write(io->store->file, &iter, &pos, 0);
		else
			ret = vfs_iter_read(io->store->file, &iter, &pos, 0);
		/* The file may have been truncated. */
		if (ret <= 0)
			return ret ?: -EIO;
	}
	/* Not RWF_DSYNC, which doesn't tell whether the write or the flush failed. */
	return kbs_store_through(io) ? kbs_store_sync(io->store, io->offset, pos - 1) : 0;
}

void kbs_store_rw(struct kbs_store_io *io)
{
	struct blk_plug plug;
	unsigned int flags;

	if (io->store->bdev) {
		blk_start_plug(&plug);
		kbs_store_submit(io, false);
		blk_finish_plug(&plug);
		return;
	}
	io->nowait = false;
	flags = kbs_file_enter();
	io->err = kbs_store_rw_once(io);
	kbs_file_leave(flags);
	io->done(io);
}

static int kbs_store_fallocate(struct kbs_store *store, int mode, u64 offset, u64 bytes)
{
	unsigned int flags = kbs_file_enter();
	int ret;

	ret = vfs_fallocate(store->file, mode | FALLOC_FL_KEEP_SIZE, offset, bytes);
	kbs_file_leave(flags);
	return ret;
}

/* --- block devices and files --- */

int kbs_store_flush(struct kbs_store *store)
{
	unsigned int flags;
	int ret;

	if (store->bdev) {
		ret = blkdev_issue_flush(store->bdev);
		if (ret)
			WRITE_ONCE(store->failed, true);
		return ret;
	}
	flags = kbs_file_enter();
	ret = kbs_store_sync(store, 0, LLONG_MAX);
	kbs_file_leave(flags);
	return ret;
}

/*
 * Return: whether the store has all writes that were flushed. A block device that has dropped its
 * cache in a failed flush reports success for the next one, so only the first tells.
 */
bool kbs_store_whole(const struct kbs_store *store)
{
	return !store->lost && !READ_ONCE(store->failed);
}

/*
 * Keeps the epoch if the store has all that was written, else sets it to 0. Return: errno of the
 * first write that a file lost, maybe before kbs_store_open(); or 0.
 */
int kbs_store_close(struct kbs_store *store)
{
	int err = store->read_only ? 0 : kbs_store_flush(store);

	if (err && store->bdev)
		pr_err("%pg: the flush before closing failed, writes may be lost: %d\n",
		       store->bdev, err);
	if (err || !kbs_store_whole(store))
		store->epoch = 0;
	kbs_store_free(store);
	return store->lost;
}

int kbs_store_discard(struct kbs_store *store, u64 offset, u64 bytes)
{
	if (store->bdev)
		return blkdev_issue_discard(store->bdev, offset >> SECTOR_SHIFT,
					    bytes >> SECTOR_SHIFT, GFP_NOIO);
	return kbs_store_fallocate(store, FALLOC_FL_PUNCH_HOLE, offset, bytes);
}

int kbs_store_zeroes(struct kbs_store *store, u64 offset, u64 bytes, bool nounmap, bool fua)
{
	int ret;

	if (store->bdev) {
		ret = blkdev_issue_zeroout(store->bdev, offset >> SECTOR_SHIFT,
					   bytes >> SECTOR_SHIFT, GFP_NOIO,
					   nounmap ? BLKDEV_ZERO_NOUNMAP : 0);
	} else {
		ret = kbs_store_fallocate(store, FALLOC_FL_ZERO_RANGE, offset, bytes);
		if (ret == -EOPNOTSUPP && !nounmap)
			ret = kbs_store_fallocate(store, FALLOC_FL_PUNCH_HOLE, offset, bytes);
	}
	return ret ?: fua || store->stable ? kbs_store_flush(store) : 0;
}
