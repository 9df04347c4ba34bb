// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Exports in configfs, see Documentation/ABI/configfs-kofiblk. */
#define pr_fmt(fmt) "kofiblk_srv: " fmt

#include <linux/configfs.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include "srv.h"

/* Return: a copy of a line without trailing blanks, which the caller frees; or NULL. */
char *kb_line(const char *page, size_t count)
{
	size_t len = count;

	while (len && (page[len - 1] == '\n' || page[len - 1] == ' '))
		len--;
	return kstrndup(page, len, GFP_KERNEL);
}

/* --- exports --- */

/* Return: 0 with @export->enabling held if @export can be changed, or -EBUSY. */
static int kb_export_change(struct kb_export *export)
{
	mutex_lock(&export->enabling);
	if (!export->open)
		return 0;
	mutex_unlock(&export->enabling);
	return -EBUSY;
}

static ssize_t kb_export_path_show(struct config_item *item, char *page)
{
	struct kb_export *export = to_kb_export(item);
	ssize_t ret;

	mutex_lock(&export->enabling);
	ret = sysfs_emit(page, "%s\n", export->path ?: "");
	mutex_unlock(&export->enabling);
	return ret;
}

static ssize_t kb_export_path_store(struct config_item *item, const char *page,
				    size_t count)
{
	struct kb_export *export = to_kb_export(item);
	char *path = kb_line(page, count);
	int ret;

	if (!path)
		return -ENOMEM;
	ret = *path == '/' ? kb_export_change(export) : -EINVAL;
	if (!ret) {
		swap(path, export->path);
		mutex_unlock(&export->enabling);
	}
	kfree(path);
	return ret ?: count;
}
CONFIGFS_ATTR(kb_export_, path);

static ssize_t kb_export_bool_store(struct kb_export *export, bool *flag,
				    const char *page, size_t count)
{
	bool value;
	int ret = kstrtobool(page, &value) ?: kb_export_change(export);

	if (ret)
		return ret;
	*flag = value;
	mutex_unlock(&export->enabling);
	return count;
}

static ssize_t kb_export_read_only_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", to_kb_export(item)->read_only);
}

static ssize_t kb_export_read_only_store(struct config_item *item,
					 const char *page, size_t count)
{
	struct kb_export *export = to_kb_export(item);

	return kb_export_bool_store(export, &export->read_only, page, count);
}
CONFIGFS_ATTR(kb_export_, read_only);

static ssize_t kb_export_direct_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", to_kb_export(item)->direct);
}

static ssize_t kb_export_direct_store(struct config_item *item, const char *page, size_t count)
{
	struct kb_export *export = to_kb_export(item);

	return kb_export_bool_store(export, &export->direct, page, count);
}
CONFIGFS_ATTR(kb_export_, direct);

static ssize_t kb_export_allow_any_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", to_kb_export(item)->allow_any);
}

static ssize_t kb_export_allow_any_store(struct config_item *item,
					 const char *page, size_t count)
{
	struct kb_export *export = to_kb_export(item);

	return kb_export_bool_store(export, &export->allow_any, page, count);
}
CONFIGFS_ATTR(kb_export_, allow_any);

static ssize_t kb_export_uuid_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%pUb\n", &to_kb_export(item)->uuid);
}

static ssize_t kb_export_uuid_store(struct config_item *item, const char *page,
				    size_t count)
{
	struct kb_export *export = to_kb_export(item);
	uuid_t uuid;
	int ret;

	ret = uuid_parse(page, &uuid);
	if (!ret && uuid_is_null(&uuid))
		ret = -EINVAL;
	ret = ret ?: kb_export_change(export);
	if (ret)
		return ret;
	export->uuid = uuid;
	mutex_unlock(&export->enabling);
	return count;
}
CONFIGFS_ATTR(kb_export_, uuid);

static ssize_t kb_export_lost_show(struct config_item *item, char *page)
{
	struct kb_export *export = to_kb_export(item);
	int lost;

	mutex_lock(&export->enabling);
	lost = export->open ? READ_ONCE(export->store.lost) : export->lost;
	mutex_unlock(&export->enabling);
	return sysfs_emit(page, "%d\n", -lost);
}

/* By writing 0 the administrator confirms that the file's content was checked. */
static ssize_t kb_export_lost_store(struct config_item *item, const char *page,
				    size_t count)
{
	struct kb_export *export = to_kb_export(item);
	int value, ret;

	ret = kstrtoint(page, 0, &value);
	if (!ret && value)
		ret = -EINVAL;
	ret = ret ?: kb_export_change(export);
	if (ret)
		return ret;
	export->lost = 0;
	mutex_unlock(&export->enabling);
	return count;
}
CONFIGFS_ATTR(kb_export_, lost);

static int kb_export_enable(struct kb_export *export)
{
	int ret;

	lockdep_assert_held(&export->enabling);
	/* kb_export_disable() was killed while it waited, so sessions may not have ended. */
	if (export->open)
		return -EBUSY;
	if (uuid_is_null(&export->uuid)) {
		pr_err("export %s: set uuid, which must stay the same when the server restarts\n",
		       config_item_name(&export->group.cg_item));
		return -EINVAL;
	}
	if (!export->path)
		return -EINVAL;
	ret = kb_store_open(&export->store, export->path, export->read_only, export->direct,
			    export->lost);
	if (ret)
		return ret;
	export->open = true;
	mutex_lock(&kb_srv_lock);
	export->enabled = true;
	mutex_unlock(&kb_srv_lock);
	return 0;
}

static void kb_export_stop(struct kb_export *export)
{
	lockdep_assert_held(&export->enabling);
	if (!export->enabled)
		return;
	mutex_lock(&kb_srv_lock);
	export->enabled = false;
	mutex_unlock(&kb_srv_lock);
	kb_sessions_stop(NULL, export);
}

static void kb_export_close(struct kb_export *export)
{
	lockdep_assert_held(&export->enabling);
	if (!export->open)
		return;
	export->lost = kb_store_close(&export->store);
	export->open = false;
}

/* The store may hang, so waiting is killable. The user may then disable the export again. */
static int kb_export_disable(struct kb_export *export)
{
	kb_export_stop(export);
	if (wait_event_killable(kb_srv_wait, !READ_ONCE(export->nsessions)))
		return -EINTR;
	kb_export_close(export);
	return 0;
}

static ssize_t kb_export_enable_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", to_kb_export(item)->enabled);
}

static ssize_t kb_export_enable_store(struct config_item *item,
				      const char *page, size_t count)
{
	struct kb_export *export = to_kb_export(item);
	bool enable;
	int ret;

	ret = kstrtobool(page, &enable);
	if (ret)
		return ret;
	mutex_lock(&export->enabling);
	if (!enable)
		ret = kb_export_disable(export);
	else if (!export->enabled)
		ret = kb_export_enable(export);
	mutex_unlock(&export->enabling);
	return ret ?: count;
}
CONFIGFS_ATTR(kb_export_, enable);

/* Any write makes the server read the store's size again. */
static ssize_t kb_export_resize_store(struct config_item *item,
				      const char *page, size_t count)
{
	struct kb_export *export = to_kb_export(item);
	u64 bytes;

	mutex_lock(&export->enabling);
	if (!export->enabled) {
		mutex_unlock(&export->enabling);
		return -ENODEV;
	}
	bytes = kb_store_bytes(&export->store);
	if (bytes != export->store.disk.bytes) {
		WRITE_ONCE(export->store.disk.bytes, bytes);
		kb_sessions_resize(export);
	}
	mutex_unlock(&export->enabling);
	return count;
}
CONFIGFS_ATTR_WO(kb_export_, resize);

static struct configfs_attribute *kb_export_attrs[] = {
	&kb_export_attr_path,
	&kb_export_attr_read_only,
	&kb_export_attr_direct,
	&kb_export_attr_uuid,
	&kb_export_attr_allow_any,
	&kb_export_attr_lost,
	&kb_export_attr_enable,
	&kb_export_attr_resize,
	NULL,
};

static void kb_export_release(struct config_item *item)
{
	struct kb_export *export = to_kb_export(item);

	kfree(export->path);
	kfree(export);
}

static struct configfs_item_operations kb_export_item_ops = {
	.release	= kb_export_release,
};

/* Type of an export; a port may link to it. */
const struct config_item_type kb_export_type = {
	.ct_item_ops	= &kb_export_item_ops,
	.ct_attrs	= kb_export_attrs,
	.ct_owner	= THIS_MODULE,
};

static void kb_export_drop_work(struct work_struct *work)
{
	struct kb_export *export = container_of(work, struct kb_export,
						drop_work);

	wait_event(kb_srv_wait, !READ_ONCE(export->nsessions));
	mutex_lock(&export->enabling);
	kb_export_close(export);
	mutex_unlock(&export->enabling);
	config_item_put(&export->group.cg_item);
}

static struct config_group *kb_export_make(struct config_group *group,
					   const char *name)
{
	struct kb_export *export;

	if (!kb_name_ok(name))
		return ERR_PTR(-EINVAL);
	export = kzalloc(sizeof(*export), GFP_KERNEL);
	if (!export)
		return ERR_PTR(-ENOMEM);
	mutex_init(&export->enabling);
	INIT_LIST_HEAD(&export->client_list);
	INIT_WORK(&export->drop_work, kb_export_drop_work);
	config_group_init_type_name(&export->group, name, &kb_export_type);
	config_group_init_type_name(&export->clients, "clients",
				    &kb_clients_type);
	configfs_add_default_group(&export->clients, &export->group);
	return &export->group;
}

/*
 * configfs makes sure that no port links to the export. It calls this function under its
 * mutex, so leave waiting for the store, which may hang, to a work item.
 */
static void kb_export_drop(struct config_group *group, struct config_item *item)
{
	struct kb_export *export = to_kb_export(item);

	mutex_lock(&export->enabling);
	kb_export_stop(export);
	mutex_unlock(&export->enabling);
	queue_work(kb_drop_wq, &export->drop_work);
}

static struct configfs_group_operations kb_exports_group_ops = {
	.make_group	= kb_export_make,
	.drop_item	= kb_export_drop,
};

static const struct config_item_type kb_exports_type = {
	.ct_group_ops	= &kb_exports_group_ops,
	.ct_owner	= THIS_MODULE,
};

/* --- the subsystem --- */

static const struct config_item_type kb_root_type = {
	.ct_owner	= THIS_MODULE,
};

static struct configfs_subsystem kb_configfs = {
	.su_group = {
		.cg_item = {
			.ci_namebuf	= "kofiblk",
			.ci_type	= &kb_root_type,
		},
	},
};

static struct config_group kb_exports, kb_ports;

int kb_configfs_init(void)
{
	config_group_init(&kb_configfs.su_group);
	mutex_init(&kb_configfs.su_mutex);
	config_group_init_type_name(&kb_exports, "exports", &kb_exports_type);
	configfs_add_default_group(&kb_exports, &kb_configfs.su_group);
	config_group_init_type_name(&kb_ports, "ports", &kb_ports_type);
	configfs_add_default_group(&kb_ports, &kb_configfs.su_group);
	return configfs_register_subsystem(&kb_configfs);
}

void kb_configfs_exit(void)
{
	configfs_unregister_subsystem(&kb_configfs);
}
