// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The module, the provider and its fabrics. */
#define pr_fmt(fmt) "kofi_efa: " fmt

#include <linux/slab.h>
#include "dev.h"
#include "domain.h"
#include "kefa.h"

MODULE_DESCRIPTION("kOFI provider for the Elastic Fabric Adapter");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("0.1");
MODULE_ALIAS_KOFI_PROVIDER(FI_EFA_PROV_NAME);
/* When udev loads the driver of an EFA function, it loads the provider as well. */
MODULE_ALIAS("pci:v00001D0Fd0000EFA*sv*sd*bc*sc*i*");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);

/* The calls of efa-direct cost less; a ULP that needs more features asks for them in the hints. */
static const struct kefa_fabric_kind * const kefa_table[] = {
	&kefa_direct_fabric,
	&kefa_rdm_fabric,
	&kefa_dgram_fabric,
	NULL
};

static int kefa_fabric_close(struct fid *fid)
{
	kfree(container_of(fid, struct kefa_fabric, fabric_fid.fid));
	return 0;
}

static const struct fi_ops kefa_fabric_fid_ops = {
	.close = kefa_fabric_close,
};

static const struct fi_ops_fabric kefa_fabric_ops = {
	.domain = kefa_domain_open,
};

static int kefa_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
			    void *context)
{
	const struct kefa_fabric_kind * const *kind = kefa_table;
	struct kefa_fabric *new;

	while (*kind && strcmp(attr->name, (*kind)->name))
		kind++;
	if (!*kind)
		return -ENODEV;
	new = kzalloc(sizeof(*new), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	new->fabric_fid.fid.ops = &kefa_fabric_fid_ops;
	new->fabric_fid.ops = &kefa_fabric_ops;
	new->kind = *kind;
	*fabric = &new->fabric_fid;
	return 0;
}

static const struct kofi_provider kefa_efa = {
	.name		= FI_EFA_PROV_NAME,
	.version	= KEFA_VERSION,
	.owner		= THIS_MODULE,
	.getinfo	= kefa_getinfo,
	.freeinfo	= fi_freeinfo,
	.fabric		= kefa_fabric_open,
	.strerror	= kefa_status_text,
	.lanes		= true,
};

/* Undo kefa_fabrics_init() for the first @n fabrics. */
static void kefa_fabrics_exit(int n)
{
	while (n--)
		if (kefa_table[n]->exit)
			kefa_table[n]->exit();
}

static int kefa_fabrics_init(void)
{
	int i, ret;

	for (i = 0; kefa_table[i]; i++) {
		ret = kefa_table[i]->init ? kefa_table[i]->init() : 0;
		if (ret) {
			kefa_fabrics_exit(i);
			return ret;
		}
	}
	return 0;
}

static int __init kefa_init(void)
{
	int ret;

	ret = kefa_wqs_init();
	if (ret)
		return ret;
	ret = kefa_fabrics_init();
	if (ret)
		goto err_wqs;
	kefa_debugfs_init();
	kefa_provider = &kefa_efa;
	kefa_fabrics = kefa_table;
	ret = kefa_devs_init();
	if (ret)
		goto err_debugfs;
	ret = kofi_provider_register(KOFI_API_VERSION, &kefa_efa);
	if (ret)
		goto err_devs;
	return 0;

err_devs:
	kefa_devs_fini();
err_debugfs:
	kefa_debugfs_fini();
	kefa_fabrics_exit(ARRAY_SIZE(kefa_table) - 1);
err_wqs:
	kefa_wqs_fini();
	return ret;
}
module_init(kefa_init);

/* Deregistering can't fail: open fabrics pin the module. */
static void __exit kefa_exit(void)
{
	WARN_ON(kofi_provider_deregister(&kefa_efa));
	kefa_devs_fini();
	kefa_debugfs_fini();
	kefa_fabrics_exit(ARRAY_SIZE(kefa_table) - 1);
	kefa_wqs_fini();
}
module_exit(kefa_exit);
