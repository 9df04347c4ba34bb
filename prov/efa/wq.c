// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The provider's workqueues. */
#include <linux/workqueue.h>
#include "kefa.h"

/* Storage ULPs use the provider, so progress must not depend on free memory. */
struct workqueue_struct *kefa_wq;
/* Unbound, for commands to a device, which take long. */
struct workqueue_struct *kefa_cmd_wq;

/**
 * kefa_wqs_init() - create the workqueues when the module is loaded
 *
 * Context: Process context; sleeps.
 * Return: 0 or -ENOMEM.
 */
int kefa_wqs_init(void)
{
	kefa_wq = alloc_workqueue("kofi_efa", WQ_MEM_RECLAIM | WQ_HIGHPRI | COMPAT_WQ_PERCPU, 0);
	if (!kefa_wq)
		return -ENOMEM;
	kefa_cmd_wq = alloc_workqueue("kofi_efa_cmd", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (kefa_cmd_wq)
		return 0;
	destroy_workqueue(kefa_wq);
	return -ENOMEM;
}

/**
 * kefa_wqs_fini() - undo kefa_wqs_init()
 *
 * Context: Process context; sleeps.
 */
void kefa_wqs_fini(void)
{
	destroy_workqueue(kefa_cmd_wq);
	destroy_workqueue(kefa_wq);
}
