// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A provider that is loaded when it is requested by name: kofi_loadable.ko. It has one fabric
 * without domains.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "loadable.h"

static int loadable_close(struct fid *fid)
{
	kfree(container_of(fid, struct fid_fabric, fid));
	return 0;
}

static int loadable_control(struct fid *fid, int command, void *arg)
{
	if (command != LOADABLE_REFCOUNT)
		return -EINVAL;
	*(int *)arg = module_refcount(THIS_MODULE);
	return 0;
}

static const struct fi_ops loadable_ops = {
	.close		= loadable_close,
	.control	= loadable_control,
};

static int loadable_fabric(struct fi_fabric_attr *attr,
			   struct fid_fabric **fabric, void *context)
{
	struct fid_fabric *new;

	if (strcmp(attr->name, LOADABLE_FABRIC))
		return -ENODEV;
	new = kzalloc(sizeof(*new), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	new->fid.ops = &loadable_ops;
	*fabric = new;
	return 0;
}

static int loadable_getinfo(u32 version, const char *node, const char *service,
			    u64 flags, const struct fi_info *hints,
			    struct fi_info **info)
{
	struct fi_info *new = fi_allocinfo();

	if (!new)
		return -ENOMEM;
	new->fabric_attr->name = kstrdup(LOADABLE_FABRIC, GFP_KERNEL);
	if (!new->fabric_attr->name) {
		fi_freeinfo(new);
		return -ENOMEM;
	}
	*info = new;
	return 0;
}

static const struct kofi_provider loadable_provider = {
	.name		= LOADABLE_NAME,
	.version	= FI_VERSION(1, 0),
	.owner		= THIS_MODULE,
	.getinfo	= loadable_getinfo,
	.freeinfo	= fi_freeinfo,
	.fabric		= loadable_fabric,
};

static int __init loadable_init(void)
{
	return kofi_provider_register(KOFI_API_VERSION, &loadable_provider);
}
module_init(loadable_init);

static void __exit loadable_exit(void)
{
	WARN_ON(kofi_provider_deregister(&loadable_provider));
}
module_exit(loadable_exit);

MODULE_ALIAS_KOFI_PROVIDER(LOADABLE_NAME);
MODULE_DESCRIPTION("kOFI provider that is loaded by its name, for tests");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
