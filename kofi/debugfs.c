// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Files for root: providers, entries of fi_getinfo(), open objects. Their format is no ABI;
 * kofi_info(8) reads them.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include "kofi.h"

static struct dentry *kofi_debugfs;

DEFINE_SHOW_ATTRIBUTE(kofi_registry);
DEFINE_SHOW_ATTRIBUTE(kofi_tree);

static int info_show(struct seq_file *s, void *unused)
{
	struct fi_info *list, *info;
	char *text;
	int ret;

	ret = fi_getinfo(fi_version(), NULL, NULL, 0, NULL, &list);
	if (ret)
		return ret == -ENODATA ? 0 : fi_to_errno(ret);
	for (info = list; info && !ret; info = info->next) {
		text = fi_tostr(info, FI_TYPE_INFO);
		if (text)
			seq_puts(s, text);
		else
			ret = -ENOMEM;
		kfree(text);
	}
	fi_freeinfo(list);
	return ret;
}
DEFINE_SHOW_ATTRIBUTE(info);

void kofi_debugfs_init(void)
{
	kofi_debugfs = debugfs_create_dir("kofi", NULL);
	debugfs_create_file("providers", 0400, kofi_debugfs, NULL,
			    &kofi_registry_fops);
	debugfs_create_file("objects", 0400, kofi_debugfs, NULL,
			    &kofi_tree_fops);
	debugfs_create_file("info", 0400, kofi_debugfs, NULL, &info_fops);
}

void kofi_debugfs_fini(void)
{
	debugfs_remove_recursive(kofi_debugfs);
}
