// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* An export's clients in configfs, and the secrets by which they prove their identity. */
#define pr_fmt(fmt) "kofiblk_srv: " fmt

#include <linux/configfs.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "srv.h"

static struct kb_client *to_kb_client(struct config_item *item)
{
	return container_of(item, struct kb_client, item);
}

/*
 * End sessions that a client is no longer entitled to: all sessions if the client was
 * removed, else those that didn't begin with one of its current secrets. This includes
 * sessions without a secret, which began before the client had one.
 */
static void kb_client_changed(struct kb_client *client, bool removed)
{
	const char *name = config_item_name(&client->item);
	struct kb_session *s;
	unsigned int i;
	bool may;

	lockdep_assert_held(&kb_srv_lock);
	spin_lock_bh(&kb_sessions_lock);
	list_for_each_entry(s, &kb_sessions, list) {
		if (s->export != client->export || strcmp(s->hello.client, name))
			continue;
		may = false;
		for (i = 0; i < KULP_SECRETS && s->key; i++)
			may |= client->keys[i] &&
			       kulp_auth_equal(s->key->print, client->keys[i]->print);
		if (removed || !may)
			kb_session_stop(s, false);
	}
	spin_unlock_bh(&kb_sessions_lock);
}

/* An empty line removes the secret. */
static ssize_t kb_client_key_store(struct kb_client *client, unsigned int which,
				   const char *page, size_t count)
{
	struct kulp_key *key = NULL;
	char *line = kb_line(page, count);

	if (!line)
		return -ENOMEM;
	if (*line)
		key = kulp_key_new(line);
	kfree_sensitive(line);
	if (IS_ERR(key))
		return PTR_ERR(key);
	mutex_lock(&kb_srv_lock);
	swap(key, client->keys[which]);
	kb_client_changed(client, false);
	mutex_unlock(&kb_srv_lock);
	kulp_key_put(key);
	return count;
}

static ssize_t kb_client_secret_store(struct config_item *item, const char *page, size_t count)
{
	return kb_client_key_store(to_kb_client(item), 0, page, count);
}
CONFIGFS_ATTR_WO(kb_client_, secret);

static ssize_t kb_client_secret_alt_store(struct config_item *item, const char *page, size_t count)
{
	return kb_client_key_store(to_kb_client(item), 1, page, count);
}
CONFIGFS_ATTR_WO(kb_client_, secret_alt);

static struct configfs_attribute *kb_client_attrs[] = {
	&kb_client_attr_secret,
	&kb_client_attr_secret_alt,
	NULL,
};

static void kb_client_release(struct config_item *item)
{
	struct kb_client *client = to_kb_client(item);
	unsigned int i;

	for (i = 0; i < KULP_SECRETS; i++)
		kulp_key_put(client->keys[i]);
	kfree(client);
}

static struct configfs_item_operations kb_client_item_ops = {
	.release	= kb_client_release,
};

static const struct config_item_type kb_client_type = {
	.ct_item_ops	= &kb_client_item_ops,
	.ct_attrs	= kb_client_attrs,
	.ct_owner	= THIS_MODULE,
};

static struct config_item *kb_client_make(struct config_group *group, const char *name)
{
	struct kb_client *client;

	if (!kb_name_ok(name))
		return ERR_PTR(-EINVAL);
	client = kzalloc(sizeof(*client), GFP_KERNEL);
	if (!client)
		return ERR_PTR(-ENOMEM);
	config_item_init_type_name(&client->item, name, &kb_client_type);
	client->export = container_of(group, struct kb_export, clients);
	mutex_lock(&kb_srv_lock);
	list_add(&client->list, &client->export->client_list);
	mutex_unlock(&kb_srv_lock);
	return &client->item;
}

static void kb_client_drop(struct config_group *group, struct config_item *item)
{
	struct kb_client *client = to_kb_client(item);

	mutex_lock(&kb_srv_lock);
	list_del(&client->list);
	kb_client_changed(client, true);
	mutex_unlock(&kb_srv_lock);
	config_item_put(item);
}

static struct configfs_group_operations kb_clients_group_ops = {
	.make_item	= kb_client_make,
	.drop_item	= kb_client_drop,
};

/* Type of an export's directory "clients". */
const struct config_item_type kb_clients_type = {
	.ct_group_ops	= &kb_clients_group_ops,
	.ct_owner	= THIS_MODULE,
};

/*
 * Get references to a client's keys; unused entries are NULL. Return: the number of keys; 0 for a
 * client that needs no secret; -EACCES for one that isn't allowed to use the export.
 */
int kb_export_keys(struct kb_export *export, const char *name, struct kulp_key *keys[KULP_SECRETS])
{
	int n = export->allow_any ? 0 : -EACCES;
	struct kb_client *client;
	unsigned int i;

	memset(keys, 0, KULP_SECRETS * sizeof(*keys));
	mutex_lock(&kb_srv_lock);
	list_for_each_entry(client, &export->client_list, list) {
		if (strcmp(config_item_name(&client->item), name))
			continue;
		for (i = 0, n = 0; i < KULP_SECRETS; i++)
			if (client->keys[i])
				keys[n++] = kulp_key_get(client->keys[i]);
		break;
	}
	mutex_unlock(&kb_srv_lock);
	return n;
}
