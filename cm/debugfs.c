// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* /sys/kernel/debug/kofi_cm, and the trace events. */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include "cm.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

static struct dentry *kcm_dir;

static int sessions_show(struct seq_file *m, void *unused)
{
	kcm_sessions_show(m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(sessions);

static int counters_show(struct seq_file *m, void *unused)
{
	static const char * const names[KCM_COUNTS] = {
		[KCM_COUNT_ACCEPTED]	= "accepted",
		[KCM_COUNT_LIVE]	= "live",
		[KCM_COUNT_REFUSED]	= "refused",
		[KCM_COUNT_PROTO]	= "proto",
		[KCM_COUNT_SILENT]	= "silent",
		[KCM_COUNT_EVICTED]	= "evicted",
	};
	int i;

	for (i = 0; i < KCM_COUNTS; i++)
		seq_printf(m, "%s %lld\n", names[i], atomic64_read(&kcm_counts[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

/**
 * kcm_debugfs_init() - make the directory
 */
void kcm_debugfs_init(void)
{
	kcm_dir = debugfs_create_dir("kofi_cm", NULL);
	debugfs_create_file("counters", 0400, kcm_dir, NULL, &counters_fops);
	debugfs_create_file("sessions", 0400, kcm_dir, NULL, &sessions_fops);
}

/**
 * kcm_debugfs_exit() - remove the directory
 */
void kcm_debugfs_exit(void)
{
	debugfs_remove_recursive(kcm_dir);
}
