// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A ULP that reads or writes a block device: one bio per operation, and one plug per
 * batch. The whole stack below the device has to be in this kernel, in order to be counted.
 * Operations aren't adjacent on the device, so that they aren't merged, and the pages of an
 * operation aren't contiguous, like those of a page cache or process.
 */
#include <linux/atomic.h>
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include "bench.h"

MODULE_DESCRIPTION("Benchmarks of kOFI: a ULP on block devices");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI_BENCH);

/* 2^32 divided by the golden ratio: multiples of it modulo 2^32 are spread evenly. */
#define KBB_STEP	0x9e3779b1U

/**
 * struct kbb_end - a block device at work
 * @end: the harness' part
 * @file: open file of the device, exclusive
 * @bdev: the device
 * @pages: pages of all operations
 * @each: number of pages of one operation
 * @places: size of the device in operations
 * @place: place of the latest operation on the device
 * @left: number of outstanding operations of this batch
 * @failed: number of failed operations
 * @all: completed when no operation is outstanding
 * @polled: with KB_POLLED, the last bio of this batch, which tells the queue to poll
 */
struct kbb_end {
	struct kb_end		end;
	struct file		*file;
	struct block_device	*bdev;
	struct page		**pages;
	u32			each;
	u64			places;
	u64			place;
	atomic_t		left;
	atomic_t		failed;
	struct completion	all;
	struct bio		*polled;
};

static struct kbb_end *to_kbb(struct kb_end *end)
{
	return container_of(end, struct kbb_end, end);
}

static void kbb_end_io(struct bio *bio)
{
	struct kbb_end *kbb = bio->bi_private;

	if (bio->bi_status)
		atomic_inc(&kbb->failed);
	bio_put(bio);
	if (atomic_dec_and_test(&kbb->left))
		complete(&kbb->all);
}

static sector_t kbb_next_sector(struct kbb_end *kbb)
{
	u64 step = mul_u64_u32_shr(kbb->places, KBB_STEP, 32);

	kbb->place += step;
	if (kbb->place >= kbb->places)
		kbb->place -= kbb->places;
	return kbb->place * (kbb->end.test->size >> SECTOR_SHIFT);
}

static blk_opf_t kbb_op(const struct kb_test *test)
{
	blk_opf_t op = test->mode == KB_POLLED ? REQ_POLLED : 0;

	return op | (test->kind == KB_READ ? REQ_OP_READ : REQ_OP_WRITE | REQ_SYNC | REQ_IDLE);
}

static void kbb_submit(struct kbb_end *kbb, struct page **pages, bool last)
{
	u32 i, len, left = kbb->end.test->size;
	struct bio *bio;

	bio = bio_alloc(kbb->bdev, kbb->each, kbb_op(kbb->end.test), GFP_KERNEL);
	bio->bi_iter.bi_sector = kbb_next_sector(kbb);
	bio->bi_private = kbb;
	bio->bi_end_io = kbb_end_io;
	for (i = 0; i < kbb->each; i++) {
		len = min_t(u32, left, PAGE_SIZE);
		__bio_add_page(bio, pages[i], len, 0);
		left -= len;
	}
	if (last && kbb->end.test->mode == KB_POLLED) {
		bio_get(bio);
		kbb->polled = bio;
	}
	submit_bio(bio);
}

static int kbb_post(struct kb_end *end)
{
	struct kbb_end *kbb = to_kbb(end);
	u32 i, batch = end->test->batch;
	struct blk_plug plug;

	atomic_set(&kbb->left, batch);
	atomic_set(&kbb->failed, 0);
	reinit_completion(&kbb->all);
	blk_start_plug(&plug);
	for (i = 0; i < batch; i++)
		kbb_submit(kbb, kbb->pages + i * kbb->each, i == batch - 1);
	blk_finish_plug(&plug);
	return 0;
}

static void kbb_put_polled(struct kbb_end *kbb)
{
	if (kbb->polled)
		bio_put(kbb->polled);
	kbb->polled = NULL;
}

/* Wait without a timeout, because submitted bios can't be canceled. */
static int kbb_sleep(struct kb_end *end)
{
	struct kbb_end *kbb = to_kbb(end);

	wait_for_completion(&kbb->all);
	end->failed = atomic_read(&kbb->failed);
	WRITE_ONCE(end->done, end->test->batch);
	return 0;
}

/* All bios of a batch go to one queue, which polling for any of them reads. */
static int kbb_poll(struct kb_end *end)
{
	struct kbb_end *kbb = to_kbb(end);

	bio_poll(kbb->polled, NULL, BLK_POLL_ONESHOT);
	if (atomic_read(&kbb->left))
		return 0;
	kbb_put_polled(kbb);
	return kbb_sleep(end);
}

/* Consecutive allocations may be contiguous, so give each operation every nth page. */
static int kbb_open_pages(struct kbb_end *kbb)
{
	u32 i, j, batch = kbb->end.test->batch;

	kbb->pages = kvcalloc(batch * kbb->each, sizeof(*kbb->pages),
			      GFP_KERNEL);
	if (!kbb->pages)
		return -ENOMEM;
	for (j = 0; j < kbb->each; j++)
		for (i = 0; i < batch; i++) {
			struct page *page = alloc_page(GFP_KERNEL | __GFP_ZERO);

			if (!page)
				return -ENOMEM;
			kbb->pages[i * kbb->each + j] = page;
		}
	return 0;
}

static int kbb_open_device(struct kbb_end *kbb, const struct kb_test *test)
{
	char path[KB_NAME + sizeof("/dev/")];
	struct inode *inode;

	snprintf(path, sizeof(path), "/dev/%s", test->device);
	kbb->file = filp_open(path, O_LARGEFILE | O_EXCL |
			      (test->kind == KB_READ ? O_RDONLY : O_RDWR), 0);
	if (IS_ERR(kbb->file))
		return PTR_ERR(kbb->file);
	inode = kbb->file->f_mapping->host;
	if (!S_ISBLK(inode->i_mode))
		return -ENOTBLK;
	kbb->bdev = I_BDEV(inode);
	if (test->size % bdev_logical_block_size(kbb->bdev))
		return -EINVAL;
	kbb->places = div_u64(bdev_nr_bytes(kbb->bdev), test->size);
	/* With too few places some operations would be adjacent. */
	return kbb->places < 16 * KB_MAX_BATCH ? -ENOSPC : 0;
}

static void kbb_close(struct kb_end *end)
{
	struct kbb_end *kbb = to_kbb(end);
	u32 i;

	/* The harness has given up: the disk ends its bios even if nobody polls. */
	if (kbb->polled)
		wait_for_completion(&kbb->all);
	kbb_put_polled(kbb);
	for (i = 0; kbb->pages && i < end->test->batch * kbb->each; i++)
		if (kbb->pages[i])
			__free_page(kbb->pages[i]);
	kvfree(kbb->pages);
	if (!IS_ERR_OR_NULL(kbb->file))
		filp_close(kbb->file, NULL);
	kfree(kbb);
}

static struct kb_end *kbb_open(const struct kb_test *test)
{
	struct kbb_end *kbb;
	int ret;

	if ((test->kind != KB_READ && test->kind != KB_WRITE) ||
	    (test->mode != KB_SLEEPING && test->mode != KB_POLLED))
		return ERR_PTR(-EOPNOTSUPP);
	if (!test->size || test->size > BIO_MAX_VECS * PAGE_SIZE)
		return ERR_PTR(-EINVAL);
	kbb = kzalloc(sizeof(*kbb), GFP_KERNEL);
	if (!kbb)
		return ERR_PTR(-ENOMEM);
	kbb->end.test = test;
	kbb->each = DIV_ROUND_UP(test->size, PAGE_SIZE);
	init_completion(&kbb->all);
	ret = kbb_open_device(kbb, test) ?: kbb_open_pages(kbb);
	if (!ret)
		return &kbb->end;
	kbb_close(&kbb->end);
	return ERR_PTR(ret);
}

static int kbb_connect(struct kb_end *end)
{
	return 0;
}

static struct kb_ulp kbb_ulp = {
	.name		= "blk",
	.alone		= true,
	.open		= kbb_open,
	.connect	= kbb_connect,
	.close		= kbb_close,
	.post		= kbb_post,
	.poll		= kbb_poll,
	.sleep		= kbb_sleep,
};

static int __init kbb_init(void)
{
	kb_register(&kbb_ulp);
	return 0;
}
module_init(kbb_init);

static void __exit kbb_exit(void)
{
	kb_deregister(&kbb_ulp);
}
module_exit(kbb_exit);
