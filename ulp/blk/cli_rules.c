// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Detection of lost writes, and checks of what a later session grants: pure, for KUnit. */
#include <linux/minmax.h>
#include <linux/sizes.h>
#include "cli.h"

#define KBC_BLOCK_MAX		((u32)SZ_1M)
/* How long a request is sent again while the server lacks a resource, and how often, in ms. */
#define KBC_SHORTAGE_MS		60000U
#define KBC_SHORTAGE_LEAST	100U
#define KBC_SHORTAGE_MOST	2000U

/* Capabilities that a writable disk must keep, as the block layer relies on them. */
#define KBC_CAPS_KEPT	(KOFIBLK_CAP_DISCARD | KOFIBLK_CAP_WRITE_ZEROES | KOFIBLK_CAP_FUA)

/* A session begins. Return: whether writes of earlier ones may have been lost. */
bool kbc_epoch_begin(struct kbc_epoch *e, u64 epoch)
{
	bool lost = e->epoch && e->epoch != epoch && e->unflushed;

	if (lost) {
		WRITE_ONCE(e->lost, true);
		WRITE_ONCE(e->unflushed, 0);
	}
	WRITE_ONCE(e->epoch, epoch);
	return lost;
}

/* All completed writes are in stable storage, and no request is active. */
void kbc_epoch_flushed(struct kbc_epoch *e)
{
	WRITE_ONCE(e->unflushed, 0);
}

/* The server replied to a write without FUA, which isn't completed yet. */
void kbc_epoch_wrote(struct kbc_epoch *e)
{
	/* Most writes find the flag set. Don't write to the cache line, which all CPUs share. */
	if (!READ_ONCE(e->unflushed))
		WRITE_ONCE(e->unflushed, 1);
}

/* Called before a flush is sent, so it covers all writes noted until here. */
bool kbc_epoch_flush(struct kbc_epoch *e)
{
	return xchg(&e->unflushed, 0);
}

/* A flush failed, or got no reply. @unflushed: return value of kbc_epoch_flush(). */
void kbc_epoch_flush_failed(struct kbc_epoch *e, bool unflushed)
{
	if (unflushed)
		kbc_epoch_wrote(e);
}

bool kbc_epoch_fails(const struct kbc_epoch *e, bool flush, bool fua)
{
	return unlikely(READ_ONCE(e->lost)) && (flush || fua);
}

void kbc_epoch_accept(struct kbc_epoch *e)
{
	WRITE_ONCE(e->lost, false);
}

/*
 * Compare a later session with the one that the disk was made with. What matters only for writes
 * isn't checked if the disk is read-only now. Return: NULL, or why the disk can't use the session.
 */
const char *kbc_made_differs(const struct kofiblk_accept_msg *made,
			     const struct kofiblk_accept_msg *now)
{
	if (memcmp(now->content, made->content, sizeof(made->content)))
		return "the export is a different disk now";
	if (now->disk.logical_block != made->disk.logical_block)
		return "the block size has changed";
	if (now->limits.queues < made->limits.queues || now->limits.depth < made->limits.depth ||
	    now->limits.max_io < made->limits.max_io)
		return "the server grants less than before";
	if (now->disk.flags & KOFIBLK_DISK_READ_ONLY)
		return NULL;
	/* The block layer doesn't send flushes to a disk that was made without a cache. */
	if (now->disk.flags & ~made->disk.flags & KOFIBLK_DISK_WRITE_CACHE)
		return "the store has a write cache now";
	if (made->limits.caps & ~now->limits.caps & KBC_CAPS_KEPT)
		return "the server no longer supports an operation that the disk uses";
	return NULL;
}

static bool kbc_same_store(const struct kbc_disk *a, const struct kbc_disk *b)
{
	const struct kbc_options *one = &a->options, *other = &b->options;

	return !memcmp(a->made.accept.content, b->made.accept.content,
		       sizeof(a->made.accept.content)) &&
	       !strcmp(one->export, other->export) && !strcmp(one->client, other->client) &&
	       !memcmp(one->host, other->host, sizeof(one->host));
}

/*
 * Check whether a server would take a new disk for an older one that connects again, at another of
 * its addresses. Another server that has the same store, and so the same uuid, has another epoch;
 * but if the older disk has no session, its server may have one that the disk doesn't know yet.
 * Return: 0; -EALREADY if it would; or -EBUSY if that isn't known at the moment.
 */
int kbc_twins(const struct kbc_disk *older, const struct kbc_disk *d)
{
	if (!kbc_same_store(older, d))
		return 0;
	/* It is being attached, which may fail, or it is being removed. */
	if (!completion_done((struct completion *)&older->created))
		return -EBUSY;
	if (READ_ONCE(older->epoch.epoch) == READ_ONCE(d->epoch.epoch))
		return -EALREADY;
	return READ_ONCE(older->state) == KBC_LIVE ? 0 : -EBUSY;
}

/*
 * Limit sizes by which the block layer computes others, such as how far to read ahead. Some drives
 * report nonsense.
 */
void kbc_disk_limit(struct kofiblk_disk_msg *disk, u32 max_io)
{
	disk->physical_block = min(disk->physical_block, KBC_BLOCK_MAX);
	disk->io_min = min(disk->io_min, KBC_BLOCK_MAX);
	disk->io_opt = min(disk->io_opt, max_io);
}

/* The server lacked a resource, so the client sends the request again. */
bool kbc_transient(u16 status)
{
	return status == KULP_STS_NOMEM || status == KULP_STS_BUSY;
}

/*
 * @ms: how long the server has lacked a resource for a request. Return: ms to wait before the
 * request is sent again, or 0 if it fails.
 */
unsigned int kbc_shortage_wait(unsigned int ms)
{
	return ms < KBC_SHORTAGE_MS ? clamp(ms, KBC_SHORTAGE_LEAST, KBC_SHORTAGE_MOST) : 0;
}
