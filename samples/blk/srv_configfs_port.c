// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Ports in configfs, and their links to exports: see srv_configfs.c. */
#define pr_fmt(fmt) "kofiblk_srv: " fmt

#include <linux/configfs.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include "srv.h"

#define KB_PORT		4420
#define KB_SESSIONS	64
#define KB_CLIENT_SESSIONS	16
#define KB_MEMORY	SZ_32M
#define KB_KEEP_ALIVE	60000	/* ms */

static struct kb_port *to_kb_port(struct config_item *item)
{
	return container_of(to_config_group(item), struct kb_port, group);
}

/* --- a port's links --- */

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
	kb_sessions_stop(port, export);
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
int kb_port_export(struct kb_port *port, const char *name,
		   struct kb_export **export)
{
	struct kb_link *link;
	int ret = -ENOENT;

	mutex_lock(&kb_srv_lock);
	list_for_each_entry(link, &port->links, list)
		if (link->export->enabled &&
		    !strcmp(config_item_name(&link->export->group.cg_item),
			    name)) {
			*export = link->export;
			link->export->nsessions++;
			ret = 0;
			break;
		}
	mutex_unlock(&kb_srv_lock);
	return ret;
}

/* --- ports --- */

static int kb_port_change(struct kb_port *port)
{
	mutex_lock(&port->enabling);
	if (!port->enabled && !READ_ONCE(port->nsessions))
		return 0;
	mutex_unlock(&port->enabling);
	return -EBUSY;
}

static ssize_t kb_port_addr_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n", to_kb_port(item)->addr);
}

static ssize_t kb_port_addr_store(struct config_item *item, const char *page,
				  size_t count)
{
	struct kb_port *port = to_kb_port(item);
	char *line = kb_line(page, count);
	int ret;

	if (!line)
		return -ENOMEM;
	ret = strlen(line) < sizeof(port->addr) ? kb_port_change(port) :
						  -EINVAL;
	if (!ret) {
		strscpy(port->addr, line, sizeof(port->addr));
		mutex_unlock(&port->enabling);
	}
	kfree(line);
	return ret ?: count;
}
CONFIGFS_ATTR(kb_port_, addr);

static ssize_t kb_port_port_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%u\n", to_kb_port(item)->port);
}

static ssize_t kb_port_port_store(struct config_item *item, const char *page,
				  size_t count)
{
	struct kb_port *port = to_kb_port(item);
	u16 value;
	int ret = kstrtou16(page, 0, &value) ?: kb_port_change(port);

	if (ret)
		return ret;
	port->port = value;
	mutex_unlock(&port->enabling);
	return count;
}
CONFIGFS_ATTR(kb_port_, port);

static ssize_t kb_port_u32_store(struct kb_port *port, u32 *field, u32 min,
				 const char *page, size_t count)
{
	u32 value;
	int ret = kstrtou32(page, 0, &value);

	if (!ret && value < min)
		ret = -EINVAL;
	ret = ret ?: kb_port_change(port);
	if (ret)
		return ret;
	*field = value;
	mutex_unlock(&port->enabling);
	return count;
}

#define KB_PORT_U32(name, min)						\
static ssize_t kb_port_##name##_show(struct config_item *item, char *page) \
{									\
	return sysfs_emit(page, "%u\n", to_kb_port(item)->name);		\
}									\
									\
static ssize_t kb_port_##name##_store(struct config_item *item,		\
				      const char *page, size_t count)	\
{									\
	struct kb_port *port = to_kb_port(item);			\
									\
	return kb_port_u32_store(port, &port->name, min, page, count);	\
}									\
CONFIGFS_ATTR(kb_port_, name)

KB_PORT_U32(max_sessions, 1);
KB_PORT_U32(max_client_sessions, 1);
KB_PORT_U32(max_memory, KB_IO_MIN);
KB_PORT_U32(max_keep_alive, KB_KEEP_ALIVE_MIN);

static ssize_t kb_port_own_domains_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", to_kb_port(item)->own_domains);
}

static ssize_t kb_port_own_domains_store(struct config_item *item, const char *page,
					 size_t count)
{
	struct kb_port *port = to_kb_port(item);
	bool value;
	int ret = kstrtobool(page, &value) ?: kb_port_change(port);

	if (ret)
		return ret;
	port->own_domains = value;
	mutex_unlock(&port->enabling);
	return count;
}
CONFIGFS_ATTR(kb_port_, own_domains);

static ssize_t kb_port_name_show(struct kb_port *port, char **name, char *page)
{
	ssize_t ret;

	mutex_lock(&port->enabling);
	ret = sysfs_emit(page, "%s\n", *name ?: "");
	mutex_unlock(&port->enabling);
	return ret;
}

/* An empty line means any name. */
static ssize_t kb_port_name_store(struct kb_port *port, char **name,
				  const char *page, size_t count)
{
	char *line = kb_line(page, count);
	int ret;

	if (!line)
		return -ENOMEM;
	if (!*line) {
		kfree(line);
		line = NULL;
	}
	ret = kb_port_change(port);
	if (!ret) {
		swap(line, *name);
		mutex_unlock(&port->enabling);
	}
	kfree(line);
	return ret ?: count;
}

#define KB_PORT_NAME(_name)						\
static ssize_t kb_port_##_name##_show(struct config_item *item,		\
				      char *page)			\
{									\
	struct kb_port *port = to_kb_port(item);			\
									\
	return kb_port_name_show(port, &port->select._name, page);	\
}									\
									\
static ssize_t kb_port_##_name##_store(struct config_item *item,	\
				       const char *page, size_t count)	\
{									\
	struct kb_port *port = to_kb_port(item);			\
									\
	return kb_port_name_store(port, &port->select._name, page,	\
				  count);				\
}									\
CONFIGFS_ATTR(kb_port_, _name)

KB_PORT_NAME(prov);
KB_PORT_NAME(fabric);
KB_PORT_NAME(domain);

static ssize_t kb_port_enable_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", to_kb_port(item)->enabled);
}

static ssize_t kb_port_enable_store(struct config_item *item, const char *page,
				    size_t count)
{
	struct kb_port *port = to_kb_port(item);
	bool enable;
	int ret;

	ret = kstrtobool(page, &enable);
	if (ret)
		return ret;
	mutex_lock(&port->enabling);
	if (!enable)
		ret = kb_port_disable(port);
	else if (!port->enabled)
		ret = kb_port_enable(port);
	mutex_unlock(&port->enabling);
	return ret ?: count;
}
CONFIGFS_ATTR(kb_port_, enable);

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
	&kb_port_attr_enable,
	NULL,
};

static void kb_port_release(struct config_item *item)
{
	struct kb_port *port = to_kb_port(item);

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

static void kb_port_drop_work(struct work_struct *work)
{
	struct kb_port *port = container_of(work, struct kb_port, drop_work);

	wait_event(kb_srv_wait, !READ_ONCE(port->nsessions));
	config_item_put(&port->group.cg_item);
}

static struct config_group *kb_port_make(struct config_group *group,
					 const char *name)
{
	struct kb_port *port = kzalloc(sizeof(*port), GFP_KERNEL);

	if (!port)
		return ERR_PTR(-ENOMEM);
	mutex_init(&port->enabling);
	INIT_WORK(&port->drop_work, kb_port_drop_work);
	INIT_LIST_HEAD(&port->links);
	strscpy(port->addr, "0.0.0.0", sizeof(port->addr));
	port->port = KB_PORT;
	port->max_sessions = KB_SESSIONS;
	port->max_client_sessions = KB_CLIENT_SESSIONS;
	port->max_memory = KB_MEMORY;
	port->max_keep_alive = KB_KEEP_ALIVE;
	config_group_init_type_name(&port->group, name, &kb_port_type);
	config_group_init_type_name(&port->exports, "exports", &kb_links_type);
	configfs_add_default_group(&port->exports, &port->group);
	return &port->group;
}

static void kb_port_drop(struct config_group *group, struct config_item *item)
{
	struct kb_port *port = to_kb_port(item);

	mutex_lock(&port->enabling);
	kb_port_stop(port);
	mutex_unlock(&port->enabling);
	queue_work(kb_drop_wq, &port->drop_work);
}

static struct configfs_group_operations kb_ports_group_ops = {
	.make_group	= kb_port_make,
	.drop_item	= kb_port_drop,
};

/* Type of the directory "ports". */
const struct config_item_type kb_ports_type = {
	.ct_group_ops	= &kb_ports_group_ops,
	.ct_owner	= THIS_MODULE,
};
