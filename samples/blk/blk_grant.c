// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Checks of what a later session grants to a disk in use: see blk_grant.h. */
#include <linux/string.h>
#include "blk_grant.h"

/* Capabilities that a writable disk must keep, as the block layer relies on them. */
#define KBC_CAPS_KEPT	(KB_CAP_DISCARD | KB_CAP_WRITE_ZEROES | KB_CAP_FUA)

void kbc_made_of(struct kbc_made *made, const struct kb_accept_msg *accept)
{
	memcpy(made->content, accept->content, sizeof(made->content));
	made->limits = accept->limits;
	made->flags = accept->disk.flags;
	made->logical_block = accept->disk.logical_block;
}

const char *kbc_made_differs(const struct kbc_made *made,
			     const struct kb_accept_msg *accept)
{
	const struct kb_limits *limits = &accept->limits;
	u32 flags = accept->disk.flags;

	if (memcmp(accept->content, made->content, sizeof(made->content)))
		return "the export is a different disk now";
	if (accept->disk.logical_block != made->logical_block)
		return "the block size has changed";
	if (limits->queues < made->limits.queues ||
	    limits->depth < made->limits.depth ||
	    limits->max_io < made->limits.max_io)
		return "the server grants less than before";
	if (flags & KB_DISK_READ_ONLY)
		return NULL;
	/* The block layer doesn't send flushes to a disk that was made without a cache. */
	if (flags & ~made->flags & KB_DISK_WRITE_CACHE)
		return "the store has a write cache now";
	if (made->limits.caps & ~limits->caps & KBC_CAPS_KEPT)
		return "the server no longer supports an operation that the disk uses";
	return NULL;
}

bool kbc_transient(u16 status)
{
	return status == KB_NOMEM || status == KB_BUSY;
}
