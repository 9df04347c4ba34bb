/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Checks of what a later session grants to a disk in use. Pure functions, for KUnit. */
#ifndef KOFIBLK_BLK_GRANT_H
#define KOFIBLK_BLK_GRANT_H

#include <linux/types.h>
#include "wire.h"

/**
 * struct kbc_made - properties that the block layer's disk was made with
 * @content: UUID of the export
 * @limits: capabilities and sizes that the disk's queues were made for
 * @flags: KB_DISK bits
 * @logical_block: logical block size in bytes
 */
struct kbc_made {
	u8			content[16];
	struct kb_limits	limits;
	u32			flags;
	u32			logical_block;
};

/**
 * kbc_made_of() - get the properties that a disk is made with
 * @made: takes the properties
 * @accept: ACCEPT of the first session
 */
void kbc_made_of(struct kbc_made *made, const struct kb_accept_msg *accept);

/**
 * kbc_made_differs() - check whether a disk can use a later session
 * @made: properties that the disk was made with
 * @accept: ACCEPT of the later session
 *
 * Properties that only matter for writes aren't checked if the disk is read-only now.
 *
 * Return: NULL, or why the disk can't use the session.
 */
const char *kbc_made_differs(const struct kbc_made *made,
			     const struct kb_accept_msg *accept);

/**
 * kbc_transient() - check whether a failed request may succeed later
 * @status: enum kb_status of the reply
 *
 * The server lacked a resource. The client sends such a request again, and doesn't fail it
 * to the block layer at once.
 *
 * Return: true if the request may succeed later.
 */
bool kbc_transient(u16 status);

#endif /* KOFIBLK_BLK_GRANT_H */
