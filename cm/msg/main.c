// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The module. The core loads it when fi_getinfo() is asked for FI_EP_MSG. */
#include <linux/module.h>
#include "msg.h"

MODULE_DESCRIPTION("kOFI: connections over unconnected endpoints");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("0.1");
MODULE_ALIAS(KOFI_CONNECTOR_ALIAS);
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
MODULE_IMPORT_NS(KOFI_CM);

struct workqueue_struct *kmsg_wq;

static const struct kofi_connector kmsg_connector = {
	.owner		= THIS_MODULE,
	.derive		= kmsg_derive,
	.passive_ep	= kmsg_passive_ep,
	.endpoint	= kmsg_endpoint,
	.removed	= kmsg_removed,
};

static int __init kmsg_init(void)
{
	int ret;

	kmsg_wq = alloc_workqueue("kofi_msg", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!kmsg_wq)
		return -ENOMEM;
	ret = kofi_connector_register(&kmsg_connector);
	if (ret)
		destroy_workqueue(kmsg_wq);
	return ret;
}
module_init(kmsg_init);

/* Open endpoints pin the module, so there is none. */
static void __exit kmsg_exit(void)
{
	kofi_connector_deregister(&kmsg_connector);
	kmsg_links_end();
	destroy_workqueue(kmsg_wq);
}
module_exit(kmsg_exit);
