// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Stores of kofiblk's server: a file on a filesystem that the case controls, and a block
 * device that has only limits.
 */
struct block_device;

/* Declares and calls this, too. */
static int issue_flush(struct block_device *bdev);
#define blkdev_issue_flush(bdev)	issue_flush(bdev)
/* Included first, as it defines pr_fmt(). */
#include "../../ulp/blk/srv_store.c"

#include <kunit/test.h>
#include <linux/bvec.h>
#include <linux/module.h>
#include <linux/shmem_fs.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#define ROOM	SZ_1M
#define PATH	"/kofiblk_store_kunit"

static struct scene {
	struct kbs_store	store;
	struct kbs_export	export;
	struct page	*page;
	struct bio_vec	bvec;
	int		punch_err;	/* returned for each hole, if it isn't 0 */
	int		fsync_err;	/* returned once, and not recorded in the mapping */
	int		flush_err;	/* returned once by the block device */
	unsigned int	fsyncs;
	unsigned int	flags;		/* flags of the task that writes */
	unsigned int	dones;
} *scene;

static int issue_flush(struct block_device *bdev)
{
	return xchg(&scene->flush_err, 0);
}

/* --- a file --- */

/* Accept writes without storing the data. */
static ssize_t file_write(struct kiocb *iocb, struct iov_iter *from)
{
	size_t len = iov_iter_count(from);

	scene->flags = current->flags;
	iov_iter_advance(from, len);
	iocb->ki_pos += len;
	return generic_write_sync(iocb, len);
}

static ssize_t file_read(struct kiocb *iocb, struct iov_iter *to)
{
	size_t len = iov_iter_zero(iov_iter_count(to), to);

	iocb->ki_pos += len;
	return len;
}

static int file_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	int err = xchg(&scene->fsync_err, 0);

	scene->fsyncs++;
	return file_check_and_advance_wb_err(file) ?: err;
}

static long file_fallocate(struct file *file, int mode, loff_t offset, loff_t len)
{
	return mode & FALLOC_FL_PUNCH_HOLE ? scene->punch_err : -EOPNOTSUPP;
}

static const struct file_operations file_ops = {
	.read_iter	= file_read,
	.write_iter	= file_write,
	.fsync		= file_fsync,
	.fallocate	= file_fallocate,
};

/* Set up a store as kbs_store_open() would for a path. */
static void open_file(struct kunit *test)
{
	struct file *file = shmem_file_setup("kunit", ROOM, 0);

	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	file->f_op = &file_ops;
	scene->store = (struct kbs_store) { .file = file, .epoch = 1 };
	scene->store.since = filemap_sample_wb_err(file->f_mapping);
	kbs_store_limits_file(&scene->store);
}

static void file_done(struct kbs_store_io *io)
{
	scene->dones++;
}

static int file_rw(struct kunit *test, bool write, bool fua)
{
	struct kbs_store_io io = {
		.store	= &scene->store,
		.write	= write,
		.fua	= fua,
		.bvec	= &scene->bvec,
		.nbvec	= 1,
		.bytes	= PAGE_SIZE,
		.done	= file_done,
	};
	unsigned int dones = scene->dones;

	kbs_store_rw(&io);
	KUNIT_EXPECT_EQ(test, scene->dones, dones + 1);
	return io.err;
}

static void writeback_fails(void)
{
	mapping_set_error(scene->store.file->f_mapping, -EIO);
}

/* --- cases --- */

static void keeps(struct kunit *test)
{
	open_file(test);
	KUNIT_EXPECT_EQ(test, file_rw(test, true, false), 0);
	KUNIT_EXPECT_EQ(test, scene->fsyncs, 0U);
	KUNIT_EXPECT_EQ(test, file_rw(test, true, true), 0);
	KUNIT_EXPECT_EQ(test, scene->fsyncs, 1U);
	KUNIT_EXPECT_EQ(test, kbs_store_flush(&scene->store), 0);
	KUNIT_EXPECT_EQ(test, scene->fsyncs, 2U);
	KUNIT_EXPECT_EQ(test, file_rw(test, false, true), 0);
	KUNIT_EXPECT_EQ(test, scene->fsyncs, 2U);
}

/* An error is reported to all flushes, not only to the first. */
static void loses(struct kunit *test)
{
	open_file(test);
	KUNIT_EXPECT_EQ(test, file_rw(test, true, false), 0);
	writeback_fails();
	KUNIT_EXPECT_EQ(test, kbs_store_flush(&scene->store), -EIO);
	KUNIT_EXPECT_EQ(test, kbs_store_flush(&scene->store), -EIO);
	KUNIT_EXPECT_EQ(test, file_rw(test, true, true), -EIO);
	/* Writes without FUA still succeed. */
	KUNIT_EXPECT_EQ(test, file_rw(test, true, false), 0);
	KUNIT_EXPECT_EQ(test, file_rw(test, false, false), 0);
}

/* An error found by closing is kept for the next open. */
static void loses_at_the_end(struct kunit *test)
{
	open_file(test);
	KUNIT_EXPECT_EQ(test, file_rw(test, true, false), 0);
	KUNIT_EXPECT_EQ(test, kbs_store_close(&scene->store), 0);
	KUNIT_EXPECT_EQ(test, scene->fsyncs, 1U);
	KUNIT_EXPECT_EQ(test, scene->store.epoch, 1ULL);
	open_file(test);
	KUNIT_EXPECT_EQ(test, file_rw(test, true, false), 0);
	writeback_fails();
	KUNIT_EXPECT_EQ(test, kbs_store_close(&scene->store), -EIO);
	KUNIT_EXPECT_EQ(test, scene->store.epoch, 0ULL);
	/* As kbs_store_open() with a lost error. */
	open_file(test);
	scene->store.lost = -EIO;
	KUNIT_EXPECT_EQ(test, kbs_store_flush(&scene->store), -EIO);
	KUNIT_EXPECT_EQ(test, kbs_store_close(&scene->store), -EIO);
	KUNIT_EXPECT_EQ(test, scene->store.epoch, 0ULL);
}

/* A block device forgets the error of a flush. Its store doesn't. */
static void flush_fails_once(struct kunit *test)
{
	struct kbs_store *store = &scene->store;
	int i;

	for (i = 0; i < 2; i++) {
		open_file(test);
		store->bdev = (struct block_device *)store->file;
		scene->flush_err = i ? -EIO : 0;
		KUNIT_EXPECT_EQ(test, kbs_store_flush(store), i ? -EIO : 0);
		KUNIT_EXPECT_EQ(test, kbs_store_flush(store), 0);
		KUNIT_EXPECT_EQ(test, kbs_store_whole(store), !i);
		KUNIT_EXPECT_EQ(test, kbs_store_close(store), 0);
		KUNIT_EXPECT_EQ(test, store->epoch, i ? 0ULL : 1ULL);
	}
}

/* Each write to a stable store is flushed before it is completed. */
static void writes_through(struct kunit *test)
{
	open_file(test);
	scene->store.stable = true;
	KUNIT_EXPECT_EQ(test, file_rw(test, true, false), 0);
	KUNIT_EXPECT_EQ(test, scene->fsyncs, 1U);
	KUNIT_EXPECT_EQ(test, file_rw(test, false, false), 0);
	KUNIT_EXPECT_EQ(test, scene->fsyncs, 1U);
	scene->punch_err = 0;
	KUNIT_EXPECT_EQ(test, kbs_store_zeroes(&scene->store, 0, PAGE_SIZE, false, false), 0);
	KUNIT_EXPECT_EQ(test, scene->fsyncs, 2U);
	scene->fsync_err = -EIO;
	KUNIT_EXPECT_EQ(test, file_rw(test, true, false), -EIO);
}

static bool opened(struct kunit *test)
{
	struct kbs_store *store = &scene->store;

	KUNIT_EXPECT_EQ(test, kbs_store_open(store, &scene->export), 0);
	return store->file;
}

/* Clients need flushes only if the store isn't stable. An epoch is random, or the one kept. */
static void opens(struct kunit *test)
{
	struct kbs_store *store = &scene->store;
	struct file *file;
	loff_t pos = 0;
	u64 epoch;

	file = filp_open(PATH, O_CREAT | O_RDWR | O_LARGEFILE, 0600);
	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	KUNIT_EXPECT_EQ(test, kernel_write(file, page_address(scene->page), PAGE_SIZE, &pos),
			(ssize_t)PAGE_SIZE);
	filp_close(file, NULL);
	scene->export.path = PATH;
	if (!opened(test))
		return;
	epoch = store->epoch;
	KUNIT_EXPECT_NE(test, epoch, 0ULL);
	KUNIT_EXPECT_TRUE(test, store->disk.flags & KOFIBLK_DISK_WRITE_CACHE);
	KUNIT_EXPECT_EQ(test, kbs_store_close(store), 0);
	KUNIT_EXPECT_EQ(test, store->epoch, epoch);
	scene->export.epoch = epoch;
	scene->export.stable = true;
	if (!opened(test))
		return;
	KUNIT_EXPECT_EQ(test, store->epoch, epoch);
	KUNIT_EXPECT_FALSE(test, store->disk.flags & KOFIBLK_DISK_WRITE_CACHE);
	KUNIT_EXPECT_EQ(test, kbs_store_close(store), 0);
	scene->export.epoch = 0;
	if (!opened(test))
		return;
	KUNIT_EXPECT_NE(test, store->epoch, epoch);
	KUNIT_EXPECT_EQ(test, kbs_store_close(store), 0);
}

/* A write with FUA gets the error of another write, and so do later flushes. */
static void loses_before_fua(struct kunit *test)
{
	open_file(test);
	writeback_fails();
	KUNIT_EXPECT_EQ(test, file_rw(test, true, true), -EIO);
	KUNIT_EXPECT_EQ(test, kbs_store_flush(&scene->store), -EIO);
}

/* The error is reported to another caller during this flush. */
static void loses_unheard(struct kunit *test)
{
	open_file(test);
	writeback_fails();
	KUNIT_EXPECT_EQ(test, vfs_fsync(scene->store.file, 1), -EIO);
	KUNIT_EXPECT_EQ(test, kbs_store_flush(&scene->store), -EIO);
}

/* An error that only fsync() reports, as of a journal or the device's cache. */
static void fsync_fails(struct kunit *test)
{
	open_file(test);
	scene->fsync_err = -EROFS;
	KUNIT_EXPECT_EQ(test, kbs_store_flush(&scene->store), -EROFS);
	writeback_fails();
	KUNIT_EXPECT_EQ(test, kbs_store_flush(&scene->store), -EROFS);
	KUNIT_EXPECT_EQ(test, file_rw(test, true, true), -EROFS);
}

/* The client may be on this machine, and its write-out may wait for this write. */
static void writes_for_others(struct kunit *test)
{
	const unsigned int flags = PF_LOCAL_THROTTLE | PF_MEMALLOC_NOIO;
	unsigned int before = current->flags & flags;

	open_file(test);
	KUNIT_EXPECT_EQ(test, file_rw(test, true, false), 0);
	KUNIT_EXPECT_EQ(test, scene->flags & flags, flags);
	KUNIT_EXPECT_EQ(test, current->flags & flags, before);
}

static void opens_with_holes(struct kunit *test, int punch_err, bool has_holes)
{
	const struct kofiblk_disk_msg *disk = &scene->store.disk;

	scene->punch_err = punch_err;
	open_file(test);
	KUNIT_EXPECT_EQ_MSG(test, disk->discard_max, has_holes ? (u64)KBS_FILE_MAX : 0ULL,
			    "after %d", punch_err);
	KUNIT_EXPECT_EQ(test, disk->zeroes_max, has_holes ? (u64)KBS_FILE_MAX : 0ULL);
	KUNIT_EXPECT_EQ(test, disk->discard_granularity, has_holes ? KOFIBLK_IO_MIN : 0U);
	fput(scene->store.file);
	scene->store.file = NULL;
}

/* Not all files have holes, although their filesystems have fallocate(). */
static void holes(struct kunit *test)
{
	static const int never[] = { -EOPNOTSUPP, -ENOSYS, -EPERM, -EACCES, -ETXTBSY };
	static const int later[] = { 0, -ENOSPC, -ENOMEM, -EIO };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(never); i++)
		opens_with_holes(test, never[i], false);
	for (i = 0; i < ARRAY_SIZE(later); i++)
		opens_with_holes(test, later[i], true);
}

/* --- a block device --- */

static void bdev_limits(struct kunit *test)
{
	const struct kofiblk_disk_msg *disk = &scene->store.disk;
	struct request_queue *q;

	q = kunit_kzalloc(test, sizeof(*q), GFP_KERNEL);
	scene->store.bdev = kunit_kzalloc(test, sizeof(*scene->store.bdev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, q);
	KUNIT_ASSERT_NOT_NULL(test, scene->store.bdev);
	scene->store.bdev->bd_queue = q;
	q->limits.logical_block_size = 4096;
	q->limits.physical_block_size = 4096;
	kbs_store_limits_bdev(&scene->store);
	KUNIT_EXPECT_EQ(test, disk->logical_block, 4096U);
	KUNIT_EXPECT_EQ(test, disk->discard_max, 0ULL);
	KUNIT_EXPECT_EQ(test, disk->zeroes_max, (u64)KOFIBLK_IO_MAX);
	/* Limits that aren't multiples of a block, as for SCSI with a transport's limit. */
	q->limits.max_discard_sectors = 8191;
	q->limits.max_write_zeroes_sectors = 8191;
	kbs_store_limits_bdev(&scene->store);
	KUNIT_EXPECT_EQ(test, disk->discard_max, 8184ULL << SECTOR_SHIFT);
	KUNIT_EXPECT_EQ(test, disk->discard_granularity, 4096U);
	KUNIT_EXPECT_EQ(test, disk->zeroes_max, 8184ULL << SECTOR_SHIFT);
	q->limits.max_write_zeroes_sectors = UINT_MAX;
	kbs_store_limits_bdev(&scene->store);
	KUNIT_EXPECT_EQ(test, disk->zeroes_max, (u64)KBS_FILE_MAX);
}

/* A request that would be split isn't tried without waiting, which never succeeds. */
static void bdev_tries(struct kunit *test)
{
	struct kbs_store_io io = { .store = &scene->store, .nbvec = 1, .bytes = SZ_64K };
	struct request_queue *q;
	struct gendisk *disk;

	KUNIT_EXPECT_FALSE(test, kbs_store_may_try(&io));
	q = kunit_kzalloc(test, sizeof(*q), GFP_KERNEL);
	disk = kunit_kzalloc(test, sizeof(*disk), GFP_KERNEL);
	scene->store.bdev = kunit_kzalloc(test, sizeof(*scene->store.bdev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, q);
	KUNIT_ASSERT_NOT_NULL(test, disk);
	KUNIT_ASSERT_NOT_NULL(test, scene->store.bdev);
	disk->queue = q;
	scene->store.bdev->bd_disk = disk;
	scene->store.bdev->bd_queue = q;
	q->limits.max_sectors = SZ_64K >> SECTOR_SHIFT;
	KUNIT_EXPECT_FALSE(test, kbs_store_may_try(&io));
	q->limits.features = BLK_FEAT_NOWAIT;
	/* A device without requests may be made of one that waits. */
	KUNIT_EXPECT_FALSE(test, kbs_store_may_try(&io));
	q->tag_set = kunit_kzalloc(test, sizeof(*q->tag_set), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, q->tag_set);
	KUNIT_EXPECT_TRUE(test, kbs_store_may_try(&io));
	io.bytes += SECTOR_SIZE;
	KUNIT_EXPECT_FALSE(test, kbs_store_may_try(&io));
	io.bytes = SZ_8K;
	io.nbvec = 2;
	KUNIT_EXPECT_FALSE(test, kbs_store_may_try(&io));
	io.nbvec = 1;
	KUNIT_EXPECT_TRUE(test, kbs_store_may_try(&io));
	q->tag_set->flags = BLK_MQ_F_BLOCKING;
	KUNIT_EXPECT_FALSE(test, kbs_store_may_try(&io));
}

/* --- the scene --- */

static int store_init(struct kunit *test)
{
	scene = kunit_kzalloc(test, sizeof(*scene), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene);
	scene->page = alloc_page(GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene->page);
	bvec_set_page(&scene->bvec, scene->page, PAGE_SIZE, 0);
	return 0;
}

static void store_exit(struct kunit *test)
{
	if (scene->store.file)
		fput(scene->store.file);
	__free_page(scene->page);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(keeps),
	KUNIT_CASE(loses),
	KUNIT_CASE(loses_at_the_end),
	KUNIT_CASE(flush_fails_once),
	KUNIT_CASE(loses_before_fua),
	KUNIT_CASE(loses_unheard),
	KUNIT_CASE(writes_through),
	KUNIT_CASE(opens),
	KUNIT_CASE(fsync_fails),
	KUNIT_CASE(writes_for_others),
	KUNIT_CASE(holes),
	KUNIT_CASE(bdev_limits),
	KUNIT_CASE(bdev_tries),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofiblk_store",
	.init		= store_init,
	.exit		= store_exit,
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of what kofiblk's server stores in");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
