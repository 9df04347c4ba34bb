// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* /sys/kernel/debug/kofi_rc: see Documentation/kofi-rc.rst. */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include "conn.h"

static struct dentry *krc_dir;

static int counters_show(struct seq_file *m, void *unused)
{
	static const char * const names[KRC_COUNTS] = {
		[KRC_COUNT_INVALID]	= "invalid",
		[KRC_COUNT_STRAY]	= "stray",
		[KRC_COUNT_VIOLATIONS]	= "violations",
		[KRC_COUNT_LOST]	= "lost",
		[KRC_COUNT_GRANTS]	= "grants",
		[KRC_COUNT_UNGRANTED]	= "ungranted",
		[KRC_COUNT_WRITES]	= "writes",
		[KRC_COUNT_READS]	= "reads",
		[KRC_COUNT_STUCK]	= "stuck",
	};
	int i;

	for (i = 0; i < KRC_COUNTS; i++)
		seq_printf(m, "%s %lld\n", names[i], atomic64_read(&krc_counts[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

/**
 * krc_debugfs_init() - make the directory
 *
 * Context: Process, sleeps.
 */
void krc_debugfs_init(void)
{
	krc_dir = debugfs_create_dir("kofi_rc", NULL);
	debugfs_create_file("counters", 0400, krc_dir, NULL, &counters_fops);
}

/**
 * krc_debugfs_exit() - remove the directory
 *
 * Context: Process, sleeps.
 */
void krc_debugfs_exit(void)
{
	debugfs_remove_recursive(krc_dir);
}
