// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* /sys/kernel/debug/kofiblk/kofiblkN: counters and active requests. */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include "blk.h"

static struct dentry *kbc_debugfs;

struct kbc_counter {
	const char	*name;
	size_t		offset;
};

static const struct kbc_counter kbc_io_counters[] = {
#define KBC_COUNTER(field) { #field, offsetof(struct kbc_io_stats, field) }
	KBC_COUNTER(requests),
	KBC_COUNTER(bytes),
	KBC_COUNTER(inlined),
	KBC_COUNTER(inline_reads),
	KBC_COUNTER(immediates),
	KBC_COUNTER(registrations),
#undef KBC_COUNTER
};

static const struct kbc_counter kbc_counters[] = {
#define KBC_COUNTER(field) { #field, offsetof(struct kbc_stats, field) }
	KBC_COUNTER(fetches),
	KBC_COUNTER(errors),
	KBC_COUNTER(replays),
	KBC_COUNTER(failures),
	KBC_COUNTER(timeouts),
	KBC_COUNTER(refused),
	KBC_COUNTER(stale),
	KBC_COUNTER(keep_alives),
	KBC_COUNTER(connects),
	KBC_COUNTER(attempts),
	KBC_COUNTER(losses),
	KBC_COUNTER(checksum_errors),
#undef KBC_COUNTER
};

static int counters_show(struct seq_file *m, void *v)
{
	struct kbc_disk *d = m->private;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kbc_io_counters); i++)
		seq_printf(m, "%s %lu\n", kbc_io_counters[i].name,
			   kbc_io_count(d, kbc_io_counters[i].offset));
	for (i = 0; i < ARRAY_SIZE(kbc_counters); i++)
		seq_printf(m, "%s %ld\n", kbc_counters[i].name,
			   atomic_long_read((void *)&d->stats +
					    kbc_counters[i].offset));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

static const char * const kbc_phase_names[KBC_PHASES] = {
	[KBC_IDLE]		= "idle",
	[KBC_REGISTER]		= "register",
	[KBC_REPLY]		= "reply",
	[KBC_FETCH]		= "fetch",
	[KBC_INVALIDATE]	= "invalidate",
	[KBC_STUCK]		= "stuck",
	[KBC_END]		= "end",
};

static void kbc_tag_show(struct seq_file *m, const struct kbc_queue *kq,
			 struct kbc_tag *tag)
{
	const struct kbc_slot *slot;

	spin_lock_bh(&tag->lock);
	slot = tag->slot;
	if (slot)
		seq_printf(m, "%u:%u %s gen=%llu ops=%u%s\n", kq->index,
			   (unsigned int)(tag - kq->tags),
			   kbc_phase_names[slot->phase], tag->gen, slot->ops,
			   slot->aborted ? " aborted" : "");
	spin_unlock_bh(&tag->lock);
}

static int requests_show(struct seq_file *m, void *v)
{
	struct kbc_disk *d = m->private;
	unsigned int i, j;

	for (i = 0; i < d->nqueues; i++)
		for (j = 0; j < d->depth; j++)
			kbc_tag_show(m, &d->queues[i], &d->queues[i].tags[j]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(requests);

/**
 * kbc_debugfs_add() - create a disk's directory
 * @d: a disk that had its first session
 */
void kbc_debugfs_add(struct kbc_disk *d)
{
	d->debugfs = debugfs_create_dir(d->name, kbc_debugfs);
	debugfs_create_file("counters", 0400, d->debugfs, d, &counters_fops);
	debugfs_create_file("requests", 0400, d->debugfs, d, &requests_fops);
}

/**
 * kbc_debugfs_del() - undo kbc_debugfs_add()
 * @d: the disk
 */
void kbc_debugfs_del(struct kbc_disk *d)
{
	debugfs_remove_recursive(d->debugfs);
}

/** kbc_debugfs_init() - create the directory for disks */
void kbc_debugfs_init(void)
{
	kbc_debugfs = debugfs_create_dir("kofiblk", NULL);
}

/** kbc_debugfs_exit() - undo kbc_debugfs_init() */
void kbc_debugfs_exit(void)
{
	debugfs_remove_recursive(kbc_debugfs);
}
