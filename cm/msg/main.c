// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The module. The core loads it when fi_getinfo() is asked for FI_EP_MSG. */
#include <linux/err.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "msg.h"

MODULE_DESCRIPTION("kOFI: connections over unconnected endpoints");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("0.1");
MODULE_ALIAS(KOFI_CONNECTOR_ALIAS);
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
MODULE_IMPORT_NS(KOFI_CM);
MODULE_IMPORT_NS(KOFI_ULP);

struct workqueue_struct *kmsg_wq;

/**
 * kmsg_set_key() - make a key of a secret in an option
 * @optval: the secret as text, or an empty string
 * @optlen: bytes of @optval, with or without a NUL
 * @key: takes the key, or NULL for no secret
 *
 * Return: 0, -EINVAL for a text that isn't a secret, or another negative errno.
 */
int kmsg_set_key(const void *optval, size_t optlen, struct kulp_key **key)
{
	const size_t len = strnlen(optval, optlen);
	struct kulp_key *new = NULL;
	char *secret;

	/* Nothing follows the NUL. */
	if (optlen - len > 1 || len > 2 * KULP_SECRET_MAX)
		return -EINVAL;
	if (len) {
		secret = kmemdup_nul(optval, len, GFP_KERNEL);
		if (!secret)
			return -ENOMEM;
		new = kulp_key_new(secret);
		kfree_sensitive(secret);
	}
	if (IS_ERR(new))
		return PTR_ERR(new);
	*key = new;
	return 0;
}

/**
 * kmsg_same_key() - compare the secrets of two keys
 * @a: a key, or NULL for no secret
 * @b: the other one
 *
 * Return: whether they are the same.
 */
bool kmsg_same_key(const struct kulp_key *a, const struct kulp_key *b)
{
	return a && b ? kulp_auth_equal(a->print, b->print) : a == b;
}

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
	ret = kmsg_nets_init();
	if (ret)
		goto destroy;
	ret = kofi_connector_register(&kmsg_connector);
	if (!ret)
		return 0;
	kmsg_nets_exit();
destroy:
	destroy_workqueue(kmsg_wq);
	return ret;
}
module_init(kmsg_init);

/* Open endpoints pin the module, so there is none. */
static void __exit kmsg_exit(void)
{
	kofi_connector_deregister(&kmsg_connector);
	kmsg_links_end();
	kmsg_nets_exit();
	destroy_workqueue(kmsg_wq);
}
module_exit(kmsg_exit);
