// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Exports and ports in configfs, see Documentation/ABI/configfs-kofiblk. */
#define pr_fmt(fmt) "kofiblk_srv: " fmt

#include <linux/configfs.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "srv.h"

#define KB_PORT			4420
#define KB_SESSIONS		64
#define KB_CLIENT_SESSIONS	16
#define KB_MEMORY		SZ_32M
#define KB_KEEP_ALIVE		60000	/* ms */

static struct kb_conf *to_kb_conf(struct config_item *item)
{
	return container_of(to_config_group(item), struct kb_conf, group);
}

static struct kb_export *to_kb_export(struct config_item *item)
{
	return container_of(to_kb_conf(item), struct kb_export, conf);
}

static struct kb_port *to_kb_port(struct config_item *item)
{
	return container_of(to_kb_conf(item), struct kb_port, conf);
}

/* Return: a copy of a line without trailing blanks, which the caller frees; or NULL. */
char *kb_line(const char *page, size_t count)
{
	char *line = kstrndup(page, count, GFP_KERNEL);

	if (line)
		strim(line);
	return line;
}

/* --- attributes of exports and ports --- */

/* Return: 0 with @conf->enabling held if attributes can be changed, or -EBUSY. */
static int kb_conf_change(struct kb_conf *conf)
{
	mutex_lock(&conf->enabling);
	if (!conf->enabled && !conf->open && !READ_ONCE(conf->nsessions))
		return 0;
	mutex_unlock(&conf->enabling);
	return -EBUSY;
}

static ssize_t kb_text_show(struct kb_conf *conf, char **field, char *page)
{
	ssize_t ret;

	mutex_lock(&conf->enabling);
	ret = sysfs_emit(page, "%s\n", *field ?: "");
	mutex_unlock(&conf->enabling);
	return ret;
}

/* An empty line sets NULL. @first: the character that the text must begin with, or 0 for any. */
static ssize_t kb_text_store(struct kb_conf *conf, char **field, char first, const char *page,
			     size_t count)
{
	char *line = kb_line(page, count);
	int ret;

	if (!line)
		return -ENOMEM;
	ret = first && *line != first ? -EINVAL : kb_conf_change(conf);
	if (!ret) {
		swap(line, *field);
		if (!**field) {
			kfree(*field);
			*field = NULL;
		}
		mutex_unlock(&conf->enabling);
	}
	kfree(line);
	return ret ?: count;
}

static ssize_t kb_number_store(struct kb_conf *conf, u32 *field, u32 least, u32 most,
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
	ret = ret ?: kb_conf_change(conf);
	if (ret)
		return ret;
	*field = value;
	mutex_unlock(&conf->enabling);
	return count;
}

#define KB_TEXT(owner, name, member, first)						\
static ssize_t kb_##owner##_##name##_show(struct config_item *item, char *page)		\
{											\
	return kb_text_show(to_kb_conf(item), &to_kb_##owner(item)->member, page);	\
}											\
											\
static ssize_t kb_##owner##_##name##_store(struct config_item *item, const char *page,	\
					   size_t count)				\
{											\
	return kb_text_store(to_kb_conf(item), &to_kb_##owner(item)->member, first,	\
			     page, count);						\
}											\
CONFIGFS_ATTR(kb_##owner##_, name)

#define KB_NUMBER(owner, name, least, most)						\
static ssize_t kb_##owner##_##name##_show(struct config_item *item, char *page)		\
{											\
	return sysfs_emit(page, "%u\n", to_kb_##owner(item)->name);			\
}											\
											\
static ssize_t kb_##owner##_##name##_store(struct config_item *item, const char *page,	\
					   size_t count)				\
{											\
	return kb_number_store(to_kb_conf(item), &to_kb_##owner(item)->name, least,	\
			       most, page, count);					\
}											\
CONFIGFS_ATTR(kb_##owner##_, name)

/* --- enabling and removal of exports and ports --- */

void kb_conf_set(struct kb_conf *conf, bool enabled)
{
	mutex_lock(&kb_srv_lock);
	conf->enabled = enabled;
	mutex_unlock(&kb_srv_lock);
}

static void kb_conf_stop(struct kb_conf *conf)
{
	lockdep_assert_held(&conf->enabling);
	if (!conf->enabled)
		return;
	kb_conf_set(conf, false);
	conf->stop(conf);
}

/* Close an export's store. A port is never open. */
static void kb_conf_close(struct kb_conf *conf)
{
	struct kb_export *export = container_of(conf, struct kb_export, conf);

	lockdep_assert_held(&conf->enabling);
	if (conf->open)
		export->lost = kb_store_close(&export->store);
	conf->open = false;
}

/*
 * The store may hang, so waiting is killable. The user may then disable the export or port, which
 * may still have sessions, again.
 */
static int kb_conf_disable(struct kb_conf *conf)
{
	kb_conf_stop(conf);
	if (wait_event_killable(kb_srv_wait, !READ_ONCE(conf->nsessions)))
		return -EINTR;
	kb_conf_close(conf);
	return 0;
}

static ssize_t kb_conf_enable_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", to_kb_conf(item)->enabled);
}

static ssize_t kb_conf_enable_store(struct config_item *item, const char *page, size_t count)
{
	struct kb_conf *conf = to_kb_conf(item);
	bool enable;
	int ret = kstrtobool(page, &enable);

	if (ret)
		return ret;
	mutex_lock(&conf->enabling);
	if (!enable)
		ret = kb_conf_disable(conf);
	else if (!conf->enabled)
		ret = conf->start(conf);
	mutex_unlock(&conf->enabling);
	return ret ?: count;
}
CONFIGFS_ATTR(kb_conf_, enable);

static void kb_conf_drop_work(struct work_struct *work)
{
	struct kb_conf *conf = container_of(work, struct kb_conf, drop_work);

	wait_event(kb_srv_wait, !READ_ONCE(conf->nsessions));
	mutex_lock(&conf->enabling);
	kb_conf_close(conf);
	mutex_unlock(&conf->enabling);
	config_item_put(&conf->group.cg_item);
}

/*
 * configfs makes sure that no port links to an export. It calls this function under its
 * mutex, so leave waiting for the store, which may hang, to a work item.
 */
static void kb_conf_drop(struct config_group *group, struct config_item *item)
{
	struct kb_conf *conf = to_kb_conf(item);

	mutex_lock(&conf->enabling);
	kb_conf_stop(conf);
	mutex_unlock(&conf->enabling);
	queue_work(kb_drop_wq, &conf->drop_work);
}

static struct config_group *kb_conf_init(struct kb_conf *conf, const char *name,
					 const struct config_item_type *type,
					 struct config_group *child, const char *child_name,
					 const struct config_item_type *child_type)
{
	mutex_init(&conf->enabling);
	INIT_WORK(&conf->drop_work, kb_conf_drop_work);
	config_group_init_type_name(&conf->group, name, type);
	config_group_init_type_name(child, child_name, child_type);
	configfs_add_default_group(child, &conf->group);
	return &conf->group;
}

/* --- exports --- */

KB_TEXT(export, path, path, '/');
KB_NUMBER(export, read_only, 0, 1);
KB_NUMBER(export, direct, 0, 1);
KB_NUMBER(export, allow_any, 0, 1);

static ssize_t kb_export_uuid_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%pUb\n", &to_kb_export(item)->uuid);
}

static ssize_t kb_export_uuid_store(struct config_item *item, const char *page, size_t count)
{
	struct kb_export *export = to_kb_export(item);
	uuid_t uuid;
	int ret = uuid_parse(page, &uuid);

	if (!ret && uuid_is_null(&uuid))
		ret = -EINVAL;
	ret = ret ?: kb_conf_change(&export->conf);
	if (ret)
		return ret;
	export->uuid = uuid;
	mutex_unlock(&export->conf.enabling);
	return count;
}
CONFIGFS_ATTR(kb_export_, uuid);

static ssize_t kb_export_lost_show(struct config_item *item, char *page)
{
	struct kb_export *export = to_kb_export(item);
	int lost;

	mutex_lock(&export->conf.enabling);
	lost = export->conf.open ? READ_ONCE(export->store.lost) : export->lost;
	mutex_unlock(&export->conf.enabling);
	return sysfs_emit(page, "%d\n", -lost);
}

/* By writing 0 the administrator confirms that the file's content was checked. */
static ssize_t kb_export_lost_store(struct config_item *item, const char *page, size_t count)
{
	struct kb_export *export = to_kb_export(item);
	int value, ret = kstrtoint(page, 0, &value);

	if (!ret && value)
		ret = -EINVAL;
	ret = ret ?: kb_conf_change(&export->conf);
	if (ret)
		return ret;
	export->lost = 0;
	mutex_unlock(&export->conf.enabling);
	return count;
}
CONFIGFS_ATTR(kb_export_, lost);

static int kb_export_start(struct kb_conf *conf)
{
	struct kb_export *export = container_of(conf, struct kb_export, conf);
	int ret;

	/* kb_conf_disable() was killed while it waited, so sessions may not have ended. */
	if (conf->open)
		return -EBUSY;
	if (uuid_is_null(&export->uuid)) {
		pr_err("export %s: set uuid, which must stay the same when the server restarts\n",
		       config_item_name(&conf->group.cg_item));
		return -EINVAL;
	}
	if (!export->path)
		return -EINVAL;
	ret = kb_store_open(&export->store, export->path, export->read_only, export->direct,
			    export->lost);
	if (ret)
		return ret;
	conf->open = true;
	kb_conf_set(conf, true);
	return 0;
}

static void kb_export_stop(struct kb_conf *conf)
{
	kb_sessions_stop(NULL, container_of(conf, struct kb_export, conf), NULL);
}

/* Any write makes the server read the store's size again. */
static ssize_t kb_export_resize_store(struct config_item *item, const char *page, size_t count)
{
	struct kb_export *export = to_kb_export(item);
	ssize_t ret = -ENODEV;
	u64 bytes;

	mutex_lock(&export->conf.enabling);
	if (export->conf.enabled) {
		bytes = kb_store_bytes(&export->store);
		if (bytes != export->store.disk.bytes) {
			WRITE_ONCE(export->store.disk.bytes, bytes);
			kb_sessions_resize(export);
		}
		ret = count;
	}
	mutex_unlock(&export->conf.enabling);
	return ret;
}
CONFIGFS_ATTR_WO(kb_export_, resize);

static struct configfs_attribute *kb_export_attrs[] = {
	&kb_export_attr_path,
	&kb_export_attr_read_only,
	&kb_export_attr_direct,
	&kb_export_attr_uuid,
	&kb_export_attr_allow_any,
	&kb_export_attr_lost,
	&kb_conf_attr_enable,
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

static const struct config_item_type kb_export_type = {
	.ct_item_ops	= &kb_export_item_ops,
	.ct_attrs	= kb_export_attrs,
	.ct_owner	= THIS_MODULE,
};

static struct config_group *kb_export_make(struct config_group *group, const char *name)
{
	struct kb_export *export;

	if (!kb_name_ok(name))
		return ERR_PTR(-EINVAL);
	export = kzalloc(sizeof(*export), GFP_KERNEL);
	if (!export)
		return ERR_PTR(-ENOMEM);
	export->conf.start = kb_export_start;
	export->conf.stop = kb_export_stop;
	INIT_LIST_HEAD(&export->client_list);
	return kb_conf_init(&export->conf, name, &kb_export_type, &export->clients, "clients",
			    &kb_clients_type);
}

static struct configfs_group_operations kb_exports_group_ops = {
	.make_group	= kb_export_make,
	.drop_item	= kb_conf_drop,
};

static const struct config_item_type kb_exports_type = {
	.ct_group_ops	= &kb_exports_group_ops,
	.ct_owner	= THIS_MODULE,
};

/* --- a port's links to exports --- */

struct kb_link {
	struct list_head	list;	/* kb_port.links, under kb_srv_lock */
	struct kb_export	*export;
};

static struct kb_port *kb_links_port(struct config_item *item)
{
	return container_of(to_config_group(item), struct kb_port, exports);
}

static int kb_link_allow(struct config_item *src, struct config_item *target)
{
	struct kb_port *port = kb_links_port(src);
	struct kb_link *link;

	if (target->ci_type != &kb_export_type)
		return -EINVAL;
	link = kzalloc(sizeof(*link), GFP_KERNEL);
	if (!link)
		return -ENOMEM;
	link->export = to_kb_export(target);
	mutex_lock(&kb_srv_lock);
	list_add(&link->list, &port->links);
	mutex_unlock(&kb_srv_lock);
	return 0;
}

static void kb_link_drop(struct config_item *src, struct config_item *target)
{
	struct kb_export *export = to_kb_export(target);
	struct kb_port *port = kb_links_port(src);
	struct kb_link *link;

	mutex_lock(&kb_srv_lock);
	list_for_each_entry(link, &port->links, list)
		if (link->export == export) {
			list_del(&link->list);
			kfree(link);
			break;
		}
	mutex_unlock(&kb_srv_lock);
	kb_sessions_stop(port, export, NULL);
}

static struct configfs_item_operations kb_links_item_ops = {
	.allow_link	= kb_link_allow,
	.drop_link	= kb_link_drop,
};

static const struct config_item_type kb_links_type = {
	.ct_item_ops	= &kb_links_item_ops,
	.ct_owner	= THIS_MODULE,
};

/*
 * Set *@export, under kb_srv_lock so that disabling the export stops the session, and count the
 * session. Return: 0, or -ENOENT.
 */
int kb_port_export(struct kb_port *port, const char *name, struct kb_export **export)
{
	struct kb_link *link;
	struct kb_conf *conf;
	int ret = -ENOENT;

	mutex_lock(&kb_srv_lock);
	list_for_each_entry(link, &port->links, list) {
		conf = &link->export->conf;
		if (conf->enabled && !strcmp(config_item_name(&conf->group.cg_item), name)) {
			*export = link->export;
			conf->nsessions++;
			ret = 0;
			break;
		}
	}
	mutex_unlock(&kb_srv_lock);
	return ret;
}

/* --- ports --- */

KB_TEXT(port, addr, addr, 0);
KB_TEXT(port, prov, select.prov, 0);
KB_TEXT(port, fabric, select.fabric, 0);
KB_TEXT(port, domain, select.domain, 0);
KB_NUMBER(port, port, 0, U16_MAX);
KB_NUMBER(port, own_domains, 0, 1);
KB_NUMBER(port, max_sessions, 1, U32_MAX);
KB_NUMBER(port, max_client_sessions, 1, U32_MAX);
KB_NUMBER(port, max_memory, KB_IO_MIN, U32_MAX);
KB_NUMBER(port, max_keep_alive, KB_KEEP_ALIVE_MIN, U32_MAX);

static struct configfs_attribute *kb_port_attrs[] = {
	&kb_port_attr_addr,
	&kb_port_attr_port,
	&kb_port_attr_prov,
	&kb_port_attr_fabric,
	&kb_port_attr_domain,
	&kb_port_attr_own_domains,
	&kb_port_attr_max_sessions,
	&kb_port_attr_max_client_sessions,
	&kb_port_attr_max_memory,
	&kb_port_attr_max_keep_alive,
	&kb_conf_attr_enable,
	NULL,
};

static void kb_port_release(struct config_item *item)
{
	struct kb_port *port = to_kb_port(item);

	kfree(port->addr);
	kfree(port->select.prov);
	kfree(port->select.fabric);
	kfree(port->select.domain);
	kfree(port);
}

static struct configfs_item_operations kb_port_item_ops = {
	.release	= kb_port_release,
};

static const struct config_item_type kb_port_type = {
	.ct_item_ops	= &kb_port_item_ops,
	.ct_attrs	= kb_port_attrs,
	.ct_owner	= THIS_MODULE,
};

static struct config_group *kb_port_make(struct config_group *group, const char *name)
{
	struct kb_port *port = kzalloc(sizeof(*port), GFP_KERNEL);
	char *addr = kstrdup("0.0.0.0", GFP_KERNEL);

	if (!port || !addr) {
		kfree(port);
		kfree(addr);
		return ERR_PTR(-ENOMEM);
	}
	port->conf.start = kb_port_start;
	port->conf.stop = kb_port_stop;
	INIT_LIST_HEAD(&port->links);
	kb_port_init(port);
	port->addr = addr;
	port->port = KB_PORT;
	port->max_sessions = KB_SESSIONS;
	port->max_client_sessions = KB_CLIENT_SESSIONS;
	port->max_memory = KB_MEMORY;
	port->max_keep_alive = KB_KEEP_ALIVE;
	return kb_conf_init(&port->conf, name, &kb_port_type, &port->exports, "exports",
			    &kb_links_type);
}

static struct configfs_group_operations kb_ports_group_ops = {
	.make_group	= kb_port_make,
	.drop_item	= kb_conf_drop,
};

static const struct config_item_type kb_ports_type = {
	.ct_group_ops	= &kb_ports_group_ops,
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
