// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Detection of writes that were lost in a server's crash: see blk_epoch.h. */
#include <linux/atomic.h>
#include <linux/compiler.h>
#include "blk_epoch.h"

bool kbc_epoch_begin(struct kbc_epoch *e, u64 epoch)
{
	bool lost = e->epoch && e->epoch != epoch && e->unflushed;

	if (lost) {
		WRITE_ONCE(e->lost, true);
		WRITE_ONCE(e->unflushed, 0);
	}
	e->epoch = epoch;
	return lost;
}

void kbc_epoch_flushed(struct kbc_epoch *e)
{
	WRITE_ONCE(e->unflushed, 0);
}

void kbc_epoch_wrote(struct kbc_epoch *e)
{
	/* Most writes find the flag set. Don't write to the cache line, which all CPUs share. */
	if (!READ_ONCE(e->unflushed))
		WRITE_ONCE(e->unflushed, 1);
}

bool kbc_epoch_flush(struct kbc_epoch *e)
{
	/* Called before the flush is sent, so the flush covers all writes noted until here. */
	return xchg(&e->unflushed, 0);
}

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
