// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Module initialization and exit. */
#define pr_fmt(fmt) "kofi: " fmt

#include <linux/module.h>
#include "kofi.h"

MODULE_DESCRIPTION("Kernel OpenFabrics Interfaces");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("0.1");

static int __init kofi_init(void)
{
	int ret = kofi_work_start();

	if (ret)
		return ret;
	kofi_debugfs_init();
	pr_info("loaded, API version %u.%u\n", FI_MAJOR(fi_version()),
		FI_MINOR(fi_version()));
	return 0;
}
module_init(kofi_init);

/* Providers and ULPs use symbols of this module, which pins it, so none is loaded now. */
static void __exit kofi_exit(void)
{
	kofi_debugfs_fini();
	kofi_work_stop();
}
module_exit(kofi_exit);
