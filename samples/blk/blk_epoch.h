/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a server's crash may have taken: writes that it replied to, but that no flush
 * came after. The server's epoch changes whenever it opens its store. NFS has the same
 * in its write verifier, but there the client still has the data and writes it again;
 * a block device's user hears of it by the next flush, as of any write that was lost
 * on its way from the cache.
 */
#ifndef KOFIBLK_BLK_EPOCH_H
#define KOFIBLK_BLK_EPOCH_H

#include <linux/types.h>

/* What is to fail once: see struct kbc_epoch. */
#define KBC_LOST_FLUSH	0
#define KBC_LOST_FUA	1

/**
 * struct kbc_epoch - does the server still have all that it replied to?
 * @epoch: of the latest session, 0 before the first
 * @unflushed: a write was replied to, and not yet flushed. Set and cleared without a
 *	lock: a write is noted before the block layer hears of its end, and so before any
 *	flush that has to cover it begins
 * @lost: bits KBC_LOST_*, each of which has one request fail
 */
struct kbc_epoch {
	u64		epoch;
	unsigned int	unflushed;	/* xchg() doesn't take less everywhere */
	unsigned long	lost;
};

/**
 * kbc_epoch_begin() - a session begins
 * @e: the epoch; nothing is under way
 * @epoch: as the server says
 *
 * Return: whether writes may have been lost since the session before.
 */
bool kbc_epoch_begin(struct kbc_epoch *e, u64 epoch);

/**
 * kbc_epoch_flushed() - the server has all that it replied to in stable storage
 * @e: the epoch; nothing is under way
 */
void kbc_epoch_flushed(struct kbc_epoch *e);

/**
 * kbc_epoch_wrote() - the server replied to a write without FUA
 * @e: the epoch
 *
 * Context: Any, before the block layer hears of it.
 */
void kbc_epoch_wrote(struct kbc_epoch *e);

/**
 * kbc_epoch_flush() - a flush begins
 * @e: the epoch
 *
 * Context: Any, before it is sent.
 * Return: whether there is something to be flushed, for kbc_epoch_flush_failed().
 */
bool kbc_epoch_flush(struct kbc_epoch *e);

/**
 * kbc_epoch_flush_failed() - a flush failed, or has no reply
 * @e: the epoch
 * @unflushed: what kbc_epoch_flush() returned for it
 *
 * Context: Any.
 */
void kbc_epoch_flush_failed(struct kbc_epoch *e, bool unflushed);

/**
 * kbc_epoch_fails() - has a request to fail, as writes before it were lost?
 * @e: the epoch
 * @flush: it is a flush
 * @fua: it is to be in stable storage when it is done
 *
 * Context: Any.
 * Return: whether it has: true for the first flush and the first with FUA since
 * kbc_epoch_begin() returned true.
 */
bool kbc_epoch_fails(struct kbc_epoch *e, bool flush, bool fua);

#endif /* KOFIBLK_BLK_EPOCH_H */
