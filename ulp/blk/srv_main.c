// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Module of the server, which is configured by configfs. */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include "srv.h"
#define CREATE_TRACE_POINTS
#include "srv_trace.h"

MODULE_DESCRIPTION("kofiblk: server that exports block devices and files");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("0.1");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_CM);
MODULE_IMPORT_NS(KOFI_ULP);
MODULE_IMPORT_NS(KOFIBLK);

DEFINE_MUTEX(kbs_lock);		/* protects exports, ports, and their counts of sessions */
DECLARE_WAIT_QUEUE_HEAD(kbs_wait);
struct workqueue_struct *kbs_done_wq;
struct workqueue_struct *kbs_drop_wq;

static struct dentry *kbs_debugfs;

DEFINE_SHOW_ATTRIBUTE(kbs_sessions);

static int __init kbs_init(void)
{
	int ret = -ENOMEM;

	/* Work that may wait for a store uses kbs_store.wq instead. */
	kbs_done_wq = alloc_workqueue("kofiblk_srv", WQ_MEM_RECLAIM | COMPAT_WQ_PERCPU, 0);
	if (!kbs_done_wq)
		return ret;
	kbs_drop_wq = alloc_workqueue("kofiblk_srv_drop", WQ_UNBOUND, 0);
	if (!kbs_drop_wq)
		goto out_wq;
	ret = kbs_reserve_init();
	if (ret)
		goto out_drop;
	ret = kbs_configfs_init();
	if (ret)
		goto out_reserve;
	kbs_debugfs = debugfs_create_dir("kofiblk_srv", NULL);
	debugfs_create_file("sessions", 0400, kbs_debugfs, NULL, &kbs_sessions_fops);
	return 0;

out_reserve:
	kbs_reserve_exit();
out_drop:
	destroy_workqueue(kbs_drop_wq);
out_wq:
	destroy_workqueue(kbs_done_wq);
	return ret;
}
module_init(kbs_init);

/* Ports and exports pin the module until they are removed, but their work may still run. */
static void __exit kbs_exit(void)
{
	debugfs_remove_recursive(kbs_debugfs);
	kbs_configfs_exit();
	destroy_workqueue(kbs_drop_wq);
	kbs_sessions_exit();
	destroy_workqueue(kbs_done_wq);
	kbs_reserve_exit();
}
module_exit(kbs_exit);
