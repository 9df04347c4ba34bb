/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a server grants a disk that is in use: pure, and tested by itself. */
#ifndef KOFIBLK_BLK_GRANT_H
#define KOFIBLK_BLK_GRANT_H

#include <linux/types.h>
#include "wire.h"

/**
 * struct kbc_made - what the block layer was told when the disk was made
 * @content: uuid of the export
 * @limits: caps, max_io, queues and depth that requests are made for
 * @flags: KB_DISK bits
 * @logical_block: bytes
 */
struct kbc_made {
	u8			content[16];
	struct kb_limits	limits;
	u32			flags;
	u32			logical_block;
};

/**
 * kbc_made_of() - what a disk is made with
 * @made: takes it
 * @accept: of its first session
 */
void kbc_made_of(struct kbc_made *made, const struct kb_accept_msg *accept);

/**
 * kbc_made_differs() - can a disk go on with what a later session has?
 * @made: what the disk was made with; what a session in between had doesn't matter
 * @accept: of the later session
 *
 * A disk that is read-only now needs none of what only writes need.
 *
 * Return: NULL, or why it can't.
 */
const char *kbc_made_differs(const struct kbc_made *made,
			     const struct kb_accept_msg *accept);

/**
 * kbc_transient() - may a request that the server failed do better later?
 * @status: of its reply, enum kb_status
 *
 * The server was short of something then. To the block layer that is no end of a
 * request.
 *
 * Return: whether it may.
 */
bool kbc_transient(u16 status);

#endif /* KOFIBLK_BLK_GRANT_H */
