// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Exports and ports in configfs, see Documentation/ABI/configfs-kofiblk. */
#define pr_fmt(fmt) "kofiblk_srv: " fmt

#include <linux/configfs.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "srv.h"

#define KBS_PORT		4420
#define KBS_SESSIONS		64
#define KBS_CLIENT_SESSIONS	16
#define KBS_MEMORY		SZ_32M
#define KBS_KEEP_ALIVE		60000	/* ms */
#define KBS_DISABLE_S		5	/* longest wait of a write of 0 to enable */

static struct kbs_conf *to_kbs_conf(struct config_item *item)
{
	return container_of(to_config_group(item), struct kbs_conf, group);
}

static struct kbs_export *to_kbs_export(struct config_item *item)
{
	return container_of(to_kbs_conf(item), struct kbs_export, conf);
}

static struct kbs_port *to_kbs_port(struct config_item *item)
{
	return container_of(to_kbs_conf(item), struct kbs_port, conf);
}

/* Return: a copy of a line without trailing blanks, which the caller frees; or NULL. */
char *kbs_line(const char *page, size_t count)
{
	char *line = kstrndup(page, count, GFP_KERNEL);

	if (line)
		strim(line);
	return line;
}

/* --- attributes of exports and ports --- */

/* Return: 0 with @conf->enabling held if attributes can be changed, or -EBUSY. */
static int kbs_conf_change(struct kbs_conf *conf)
{
	mutex_lock(&conf->enabling);
	if (!conf->enabled && !conf->open && !READ_ONCE(conf->nsessions))
		return 0;
	mutex_unlock(&conf->enabling);
	return -EBUSY;
}

static ssize_t kbs_text_show(struct kbs_conf *conf, char **field, char *page)
{
	ssize_t ret;

	mutex_lock(&conf->enabling);
	ret = sysfs_emit(page, "%s\n", *field ?: "");
	mutex_unlock(&conf->enabling);
	return ret;
}

/* An empty line sets NULL. @first: the character that the text must begin with, or 0 for any. */
static ssize_t kbs_text_store(struct kbs_conf *conf, char **field, char first, const char *page,
			      size_t count)
{
	char *line = kbs_line(page, count);
	int ret;

	if (!line)
		return -ENOMEM;
	ret = first && *line != first ? -EINVAL : kbs_conf_change(conf);
	if (!ret) {
		swap(line, *field);
		if (!**field) {
			kfree(*field);
			*field = NULL;
		}
		/* Only an export's path has a first character. The store may be another now. */
		if (first)
			container_of(conf, struct kbs_export, conf)->epoch = 0;
		mutex_unlock(&conf->enabling);
	}
	kfree(line);
	return ret ?: count;
}

static ssize_t kbs_number_store(struct kbs_conf *conf, u32 *field, u32 least, u32 most,
				const char *page, size_t count)
{
	bool flag = false;
	u32 value = 0;
	int ret;

	/* A flag may also be written as y or n. */
	ret = most > 1 ? kstrtou32(page, 0, &value) : kstrtobool(page, &flag);
	value |= flag;
	if (!ret && value < least)
		ret = -EINVAL;
	if (!ret && value > most)
		ret = -ERANGE;
	ret = ret ?: kbs_conf_change(conf);
	if (ret)
		return ret;
	*field = value;
	mutex_unlock(&conf->enabling);
	return count;
}

#define KBS_TEXT(owner, name, member, first)						\
static ssize_t kbs_##owner##_##name##_show(struct config_item *item, char *page)	\
{											\
	return kbs_text_show(to_kbs_conf(item), &to_kbs_##owner(item)->member, page);	\
}											\
											\
static ssize_t kbs_##owner##_##name##_store(struct config_item *item, const char *page,	\
					    size_t count)				\
{											\
	return kbs_text_store(to_kbs_conf(item), &to_kbs_##owner(item)->member, first,	\
			      page, count);						\
}											\
CONFIGFS_ATTR(kbs_##owner##_, name)

#define KBS_NUMBER(owner, name, least, most)						\
static ssize_t kbs_##owner##_##name##_show(struct config_item *item, char *page)	\
{											\
	return sysfs_emit(page, "%u\n", to_kbs_##owner(item)->name);			\
}											\
											\
static ssize_t kbs_##owner##_##name##_store(struct config_item *item, const char *page,	\
					    size_t count)				\
{											\
	return kbs_number_store(to_kbs_conf(item), &to_kbs_##owner(item)->name, least,	\
				most, page, count);					\
}											\
CONFIGFS_ATTR(kbs_##owner##_, name)

/* --- enabling and removal of exports and ports --- */

void kbs_conf_set(struct kbs_conf *conf, bool enabled)
{
	mutex_lock(&kbs_lock);
	WRITE_ONCE(conf->enabled, enabled);
	mutex_unlock(&kbs_lock);
}

static void kbs_conf_stop(struct kbs_conf *conf)
{
	lockdep_assert_held(&conf->enabling);
	if (!conf->enabled)
		return;
	kbs_conf_set(conf, false);
	conf->stop(conf);
}

/* Close a store or a listener, after the last session. */
static void kbs_conf_close(struct kbs_conf *conf)
{
	lockdep_assert_held(&conf->enabling);
	if (conf->open)
		conf->close(conf);
	conf->open = false;
}

/*
 * The store may hang, so waiting is killable. It is also limited: during a write of an attribute
 * configfs lets nobody remove the directory, and whoever tries keeps others from all directories
 * beside it. The user may disable the export or port, which may still have sessions, again.
 */
static int kbs_conf_disable(struct kbs_conf *conf)
{
	long ret;

	kbs_conf_stop(conf);
	ret = wait_event_killable_timeout(kbs_wait, !READ_ONCE(conf->nsessions),
					  KBS_DISABLE_S * HZ);
	if (ret <= 0)
		return ret ? -EINTR : -EINPROGRESS;
	kbs_conf_close(conf);
	return 0;
}

static ssize_t kbs_conf_enable_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", to_kbs_conf(item)->enabled);
}

static ssize_t kbs_conf_enable_store(struct config_item *item, const char *page, size_t count)
{
	struct kbs_conf *conf = to_kbs_conf(item);
	bool enable;
	int ret = kstrtobool(page, &enable);

	if (ret)
		return ret;
	mutex_lock(&conf->enabling);
	if (!enable)
		ret = kbs_conf_disable(conf);
	else if (!conf->enabled)
		ret = conf->start(conf);
	mutex_unlock(&conf->enabling);
	return ret ?: count;
}
CONFIGFS_ATTR(kbs_conf_, enable);

static void kbs_conf_drop_work(struct work_struct *work)
{
	struct kbs_conf *conf = container_of(work, struct kbs_conf, drop_work);

	wait_event_idle(kbs_wait, !READ_ONCE(conf->nsessions));
	mutex_lock(&conf->enabling);
	kbs_conf_close(conf);
	mutex_unlock(&conf->enabling);
	config_item_put(&conf->group.cg_item);
}

/*
 * configfs makes sure that no port links to an export. It calls this function under its mutex, so
 * leave waiting for the store, which may hang, to a work item.
 */
static void kbs_conf_drop(struct config_group *group, struct config_item *item)
{
	struct kbs_conf *conf = to_kbs_conf(item);

	mutex_lock(&conf->enabling);
	kbs_conf_stop(conf);
	mutex_unlock(&conf->enabling);
	queue_work(kbs_drop_wq, &conf->drop_work);
}

static struct config_group *kbs_conf_init(struct kbs_conf *conf, const char *name,
					  const struct config_item_type *type,
					  struct config_group *child, const char *child_name,
					  const struct config_item_type *child_type)
{
	mutex_init(&conf->enabling);
	INIT_WORK(&conf->drop_work, kbs_conf_drop_work);
	config_group_init_type_name(&conf->group, name, type);
	config_group_init_type_name(child, child_name, child_type);
	configfs_add_default_group(child, &conf->group);
	return &conf->group;
}

/* --- exports --- */

KBS_TEXT(export, path, path, '/');
KBS_NUMBER(export, read_only, 0, 1);
KBS_NUMBER(export, direct, 0, 1);
KBS_NUMBER(export, stable, 0, 1);
KBS_NUMBER(export, allow_any, 0, 1);

static ssize_t kbs_export_uuid_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%pUb\n", &to_kbs_export(item)->uuid);
}

static ssize_t kbs_export_uuid_store(struct config_item *item, const char *page, size_t count)
{
	struct kbs_export *export = to_kbs_export(item);
	uuid_t uuid;
	int ret = uuid_parse(page, &uuid);

	if (!ret && uuid_is_null(&uuid))
		ret = -EINVAL;
	ret = ret ?: kbs_conf_change(&export->conf);
	if (ret)
		return ret;
	export->uuid = uuid;
	export->epoch = 0;
	mutex_unlock(&export->conf.enabling);
	return count;
}
CONFIGFS_ATTR(kbs_export_, uuid);

static ssize_t kbs_export_lost_show(struct config_item *item, char *page)
{
	struct kbs_export *export = to_kbs_export(item);
	int lost;

	mutex_lock(&export->conf.enabling);
	lost = export->conf.open ? READ_ONCE(export->store.lost) : export->lost;
	mutex_unlock(&export->conf.enabling);
	return sysfs_emit(page, "%d\n", -lost);
}

/* By writing 0 the administrator confirms that the file's content was checked. */
static ssize_t kbs_export_lost_store(struct config_item *item, const char *page, size_t count)
{
	struct kbs_export *export = to_kbs_export(item);
	int value, ret = kstrtoint(page, 0, &value);

	if (!ret && value)
		ret = -EINVAL;
	ret = ret ?: kbs_conf_change(&export->conf);
	if (ret)
		return ret;
	export->lost = 0;
	mutex_unlock(&export->conf.enabling);
	return count;
}
CONFIGFS_ATTR(kbs_export_, lost);

/* While the store is open, a crash can still lose writes, so its epoch must not be kept. */
static ssize_t kbs_export_epoch_show(struct config_item *item, char *page)
{
	struct kbs_export *export = to_kbs_export(item);
	u64 epoch;

	mutex_lock(&export->conf.enabling);
	epoch = export->epoch;
	mutex_unlock(&export->conf.enabling);
	return sysfs_emit(page, "%#llx\n", epoch);
}

static ssize_t kbs_export_epoch_store(struct config_item *item, const char *page, size_t count)
{
	struct kbs_export *export = to_kbs_export(item);
	u64 epoch;
	int ret;

	ret = kstrtou64(page, 0, &epoch) ?: kbs_conf_change(&export->conf);
	if (ret)
		return ret;
	export->epoch = epoch;
	mutex_unlock(&export->conf.enabling);
	return count;
}
CONFIGFS_ATTR(kbs_export_, epoch);

static int kbs_export_start(struct kbs_conf *conf)
{
	struct kbs_export *export = container_of(conf, struct kbs_export, conf);
	int ret;

	/* kbs_conf_disable() was killed while it waited, so sessions may not have ended. */
	if (conf->open)
		return -EBUSY;
	if (uuid_is_null(&export->uuid)) {
		pr_err("export %s: set uuid, which must stay the same when the server restarts\n",
		       config_item_name(&conf->group.cg_item));
		return -EINVAL;
	}
	if (!export->path)
		return -EINVAL;
	ret = kbs_store_open(&export->store, export);
	if (ret)
		return ret;
	export->epoch = 0;
	conf->open = true;
	kbs_conf_set(conf, true);
	return 0;
}

static void kbs_export_stop(struct kbs_conf *conf)
{
	kbs_sessions_stop(NULL, container_of(conf, struct kbs_export, conf), NULL);
}

static void kbs_export_close(struct kbs_conf *conf)
{
	struct kbs_export *export = container_of(conf, struct kbs_export, conf);

	export->lost = kbs_store_close(&export->store);
	export->epoch = export->store.epoch;
}

/* Any write makes the server read the store's size again. */
static ssize_t kbs_export_resize_store(struct config_item *item, const char *page, size_t count)
{
	struct kbs_export *export = to_kbs_export(item);
	ssize_t ret = -ENODEV;
	u64 bytes;

	mutex_lock(&export->conf.enabling);
	if (export->conf.enabled) {
		bytes = kbs_store_bytes(&export->store);
		if (bytes != export->store.disk.bytes) {
			WRITE_ONCE(export->store.disk.bytes, bytes);
			kbs_sessions_resize(export);
		}
		ret = count;
	}
	mutex_unlock(&export->conf.enabling);
	return ret;
}
CONFIGFS_ATTR_WO(kbs_export_, resize);

static struct configfs_attribute *kbs_export_attrs[] = {
	&kbs_export_attr_path,
	&kbs_export_attr_read_only,
	&kbs_export_attr_direct,
	&kbs_export_attr_stable,
	&kbs_export_attr_uuid,
	&kbs_export_attr_allow_any,
	&kbs_export_attr_lost,
	&kbs_export_attr_epoch,
	&kbs_conf_attr_enable,
	&kbs_export_attr_resize,
	NULL,
};

static void kbs_export_release(struct config_item *item)
{
	struct kbs_export *export = to_kbs_export(item);

	kfree(export->path);
	kfree(export);
}

static struct configfs_item_operations kbs_export_item_ops = {
	.release	= kbs_export_release,
};

static const struct config_item_type kbs_export_type = {
	.ct_item_ops	= &kbs_export_item_ops,
	.ct_attrs	= kbs_export_attrs,
	.ct_owner	= THIS_MODULE,
};

static struct config_group *kbs_export_make(struct config_group *group, const char *name)
{
	struct kbs_export *export;

	if (!kofiblk_name_ok(name))
		return ERR_PTR(-EINVAL);
	export = kzalloc(sizeof(*export), GFP_KERNEL);
	if (!export)
		return ERR_PTR(-ENOMEM);
	export->conf.start = kbs_export_start;
	export->conf.stop = kbs_export_stop;
	export->conf.close = kbs_export_close;
	INIT_LIST_HEAD(&export->client_list);
	return kbs_conf_init(&export->conf, name, &kbs_export_type, &export->clients, "clients",
			     &kbs_clients_type);
}

static struct configfs_group_operations kbs_exports_group_ops = {
	.make_group	= kbs_export_make,
	.drop_item	= kbs_conf_drop,
};

static const struct config_item_type kbs_exports_type = {
	.ct_group_ops	= &kbs_exports_group_ops,
	.ct_owner	= THIS_MODULE,
};

/* --- a port's links to exports --- */

struct kbs_link {
	struct list_head	list;	/* kbs_port.links, under kbs_lock */
	struct kbs_export	*export;
};

static struct kbs_port *kbs_links_port(struct config_item *item)
{
	return container_of(to_config_group(item), struct kbs_port, exports);
}

static int kbs_link_allow(struct config_item *src, struct config_item *target)
{
	struct kbs_port *port = kbs_links_port(src);
	struct kbs_link *link;

	if (target->ci_type != &kbs_export_type)
		return -EINVAL;
	link = kzalloc(sizeof(*link), GFP_KERNEL);
	if (!link)
		return -ENOMEM;
	link->export = to_kbs_export(target);
	mutex_lock(&kbs_lock);
	list_add(&link->list, &port->links);
	mutex_unlock(&kbs_lock);
	return 0;
}

static void kbs_link_drop(struct config_item *src, struct config_item *target)
{
	struct kbs_export *export = to_kbs_export(target);
	struct kbs_port *port = kbs_links_port(src);
	struct kbs_link *link;

	mutex_lock(&kbs_lock);
	list_for_each_entry(link, &port->links, list)
		if (link->export == export) {
			list_del(&link->list);
			kfree(link);
			break;
		}
	mutex_unlock(&kbs_lock);
	kbs_sessions_stop(port, export, NULL);
}

static struct configfs_item_operations kbs_links_item_ops = {
	.allow_link	= kbs_link_allow,
	.drop_link	= kbs_link_drop,
};

static const struct config_item_type kbs_links_type = {
	.ct_item_ops	= &kbs_links_item_ops,
	.ct_owner	= THIS_MODULE,
};

/* Return: the export of a port that has a name, or NULL. */
struct kbs_export *kbs_port_export(struct kbs_port *port, const char *name)
{
	struct kbs_link *link;
	struct kbs_conf *conf;

	lockdep_assert_held(&kbs_lock);
	list_for_each_entry(link, &port->links, list) {
		conf = &link->export->conf;
		if (conf->enabled && !strcmp(config_item_name(&conf->group.cg_item), name))
			return link->export;
	}
	return NULL;
}

/* --- ports --- */

KBS_TEXT(port, addr, addr, 0);
KBS_TEXT(port, prov, select.prov, 0);
KBS_TEXT(port, fabric, select.fabric, 0);
KBS_TEXT(port, domain, select.domain, 0);
KBS_NUMBER(port, port, 0, U16_MAX);
KBS_NUMBER(port, own_domains, 0, 1);
KBS_NUMBER(port, max_sessions, 1, U32_MAX);
KBS_NUMBER(port, max_client_sessions, 1, U32_MAX);
KBS_NUMBER(port, max_memory, KOFIBLK_IO_MIN, U32_MAX);
KBS_NUMBER(port, max_keep_alive, KOFIBLK_KEEP_ALIVE_MIN, U32_MAX);

static struct configfs_attribute *kbs_port_attrs[] = {
	&kbs_port_attr_addr,
	&kbs_port_attr_port,
	&kbs_port_attr_prov,
	&kbs_port_attr_fabric,
	&kbs_port_attr_domain,
	&kbs_port_attr_own_domains,
	&kbs_port_attr_max_sessions,
	&kbs_port_attr_max_client_sessions,
	&kbs_port_attr_max_memory,
	&kbs_port_attr_max_keep_alive,
	&kbs_conf_attr_enable,
	NULL,
};

static void kbs_port_release(struct config_item *item)
{
	struct kbs_port *port = to_kbs_port(item);

	kfree(port->addr);
	kfree(port->select.prov);
	kfree(port->select.fabric);
	kfree(port->select.domain);
	kfree(port);
}

static struct configfs_item_operations kbs_port_item_ops = {
	.release	= kbs_port_release,
};

static const struct config_item_type kbs_port_type = {
	.ct_item_ops	= &kbs_port_item_ops,
	.ct_attrs	= kbs_port_attrs,
	.ct_owner	= THIS_MODULE,
};

static struct config_group *kbs_port_make(struct config_group *group, const char *name)
{
	struct kbs_port *port = kzalloc(sizeof(*port), GFP_KERNEL);
	char *addr = kstrdup("0.0.0.0", GFP_KERNEL);

	if (!port || !addr) {
		kfree(port);
		kfree(addr);
		return ERR_PTR(-ENOMEM);
	}
	port->conf.start = kbs_port_start;
	port->conf.stop = kbs_port_stop;
	port->conf.close = kbs_port_close;
	INIT_LIST_HEAD(&port->links);
	port->addr = addr;
	port->port = KBS_PORT;
	port->max_sessions = KBS_SESSIONS;
	port->max_client_sessions = KBS_CLIENT_SESSIONS;
	port->max_memory = KBS_MEMORY;
	port->max_keep_alive = KBS_KEEP_ALIVE;
	return kbs_conf_init(&port->conf, name, &kbs_port_type, &port->exports, "exports",
			     &kbs_links_type);
}

static struct configfs_group_operations kbs_ports_group_ops = {
	.make_group	= kbs_port_make,
	.drop_item	= kbs_conf_drop,
};

static const struct config_item_type kbs_ports_type = {
	.ct_group_ops	= &kbs_ports_group_ops,
	.ct_owner	= THIS_MODULE,
};

/* --- the subsystem --- */

static const struct config_item_type kbs_root_type = {
	.ct_owner	= THIS_MODULE,
};

static struct configfs_subsystem kbs_configfs = {
	.su_group = {
		.cg_item = {
			.ci_namebuf	= "kofiblk",
			.ci_type	= &kbs_root_type,
		},
	},
};

static struct config_group kbs_exports, kbs_ports;

int kbs_configfs_init(void)
{
	config_group_init(&kbs_configfs.su_group);
	mutex_init(&kbs_configfs.su_mutex);
	config_group_init_type_name(&kbs_exports, "exports", &kbs_exports_type);
	configfs_add_default_group(&kbs_exports, &kbs_configfs.su_group);
	config_group_init_type_name(&kbs_ports, "ports", &kbs_ports_type);
	configfs_add_default_group(&kbs_ports, &kbs_configfs.su_group);
	return configfs_register_subsystem(&kbs_configfs);
}

void kbs_configfs_exit(void)
{
	configfs_unregister_subsystem(&kbs_configfs);
}
