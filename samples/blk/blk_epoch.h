/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Detection of writes that were lost in a server's crash: those that the server replied to
 * and that no flush has followed. The server's epoch changes whenever it opens its store,
 * as the write verifier of NFS. But an NFS client still has the data and writes it again,
 * while a user of a block device learns of the loss when a flush fails. A disk has many users,
 * such as its partitions and the files on it, and the client doesn't know whose writes were lost.
 * So all flushes fail until an administrator accepts the loss.
 */
#ifndef KOFIBLK_BLK_EPOCH_H
#define KOFIBLK_BLK_EPOCH_H

#include <linux/types.h>

/**
 * struct kbc_epoch - state for detection of lost writes
 * @epoch: epoch of the server in the latest session, 0 before the first
 * @unflushed: the server has replied to a write that isn't flushed yet. Needs no lock: a
 *	write is noted before it is completed, and so before any flush that must cover it
 *	begins
 * @lost: writes may have been lost, and nobody has accepted that
 */
struct kbc_epoch {
	u64		epoch;
	unsigned int	unflushed;	/* some architectures have no xchg() of less than 32 bits */
	bool		lost;
};

/**
 * kbc_epoch_begin() - note that a session begins
 * @e: the epoch; no request is active
 * @epoch: epoch of the server
 *
 * Return: true if writes of earlier sessions may have been lost.
 */
bool kbc_epoch_begin(struct kbc_epoch *e, u64 epoch);

/**
 * kbc_epoch_flushed() - note that all completed writes are in stable storage
 * @e: the epoch; no request is active
 */
void kbc_epoch_flushed(struct kbc_epoch *e);

/**
 * kbc_epoch_wrote() - note the server's reply to a write without FUA
 * @e: the epoch
 *
 * Context: Any, before the write is completed.
 */
void kbc_epoch_wrote(struct kbc_epoch *e);

/**
 * kbc_epoch_flush() - note that a flush begins
 * @e: the epoch
 *
 * Context: Any, before the flush is sent.
 * Return: whether there are unflushed writes, for kbc_epoch_flush_failed().
 */
bool kbc_epoch_flush(struct kbc_epoch *e);

/**
 * kbc_epoch_flush_failed() - note that a flush failed, or got no reply
 * @e: the epoch
 * @unflushed: return value of kbc_epoch_flush()
 *
 * Context: Any.
 */
void kbc_epoch_flush_failed(struct kbc_epoch *e, bool unflushed);

/**
 * kbc_epoch_fails() - check whether a request must fail because writes were lost
 * @e: the epoch
 * @flush: the request is a flush
 * @fua: the request is a write with FUA
 *
 * Context: Any.
 * Return: true for flushes and writes with FUA between kbc_epoch_begin(), which returned true,
 * and kbc_epoch_accept().
 */
bool kbc_epoch_fails(const struct kbc_epoch *e, bool flush, bool fua);

/**
 * kbc_epoch_accept() - accept that writes were lost
 * @e: the epoch
 *
 * Context: Any.
 */
void kbc_epoch_accept(struct kbc_epoch *e);

#endif /* KOFIBLK_BLK_EPOCH_H */
