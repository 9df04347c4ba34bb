// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What a server grants a disk that is in use: see blk_grant.h. */
#include <linux/string.h>
#include "blk_grant.h"

/* What a disk that is written to can't do without, once it had it. */
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
		return "it is another disk";
	if (accept->disk.logical_block != made->logical_block)
		return "it has other blocks";
	if (limits->queues < made->limits.queues ||
	    limits->depth < made->limits.depth ||
	    limits->max_io < made->limits.max_io)
		return "it grants less than it did";
	if (flags & KB_DISK_READ_ONLY)
		return NULL;
	/* The block layer sends no flushes to a disk that needed none. */
	if (flags & ~made->flags & KB_DISK_WRITE_CACHE)
		return "it has a write cache now";
	if (made->limits.caps & ~limits->caps & KBC_CAPS_KEPT)
		return "it can't do any more what it could";
	return NULL;
}

bool kbc_transient(u16 status)
{
	return status == KB_NOMEM || status == KB_BUSY;
}
