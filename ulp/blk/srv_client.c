// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* An export's clients in configfs, and the secrets by which they prove their identity. */
#define pr_fmt(fmt) "kofiblk_srv: " fmt

#include <linux/configfs.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "srv.h"

static struct kbs_client *to_kbs_client(struct config_item *item)
{
	return container_of(item, struct kbs_client, item);
}

/* Return: whether a client may have a session with this key; NULL for one without a secret. */
static bool kbs_client_may(const struct kbs_client *client, const struct kulp_key *key)
{
	bool may = false, secret = false;
	unsigned int i;

	for (i = 0; i < KULP_SECRETS; i++) {
		secret |= !!client->keys[i];
		may |= key && client->keys[i] &&
		       kulp_auth_equal(key->print, client->keys[i]->print);
	}
	return secret ? may : !key;
}

/*
 * End sessions that a client is no longer entitled to: all sessions if the client was removed, else
 * those that didn't begin with one of its current secrets. This includes sessions without a secret,
 * which began before the client had one.
 */
static void kbs_client_changed(struct kbs_client *client, bool removed)
{
	const char *name = config_item_name(&client->item);
	struct kbs_session *s;

	lockdep_assert_held(&kbs_lock);
	spin_lock_bh(&kbs_sessions_lock);
	list_for_each_entry(s, &kbs_sessions, list) {
		if (s->export != client->export || strcmp(s->client, name))
			continue;
		if (removed || !kbs_client_may(client, s->key))
			kbs_session_stop(s, KBS_SESSION_STOPPED);
	}
	spin_unlock_bh(&kbs_sessions_lock);
}

/* An empty line removes the secret. */
static ssize_t kbs_client_key_store(struct kbs_client *client, unsigned int which,
				    const char *page, size_t count)
{
	struct kulp_key *key = NULL;
	char *line = kbs_line(page, count);

	if (!line)
		return -ENOMEM;
	if (*line)
		key = kulp_key_new(line);
	kfree_sensitive(line);
	if (IS_ERR(key))
		return PTR_ERR(key);
	mutex_lock(&kbs_lock);
	swap(key, client->keys[which]);
	kbs_client_changed(client, false);
	mutex_unlock(&kbs_lock);
	kulp_key_put(key);
	return count;
}

static ssize_t kbs_client_secret_store(struct config_item *item, const char *page, size_t count)
{
	return kbs_client_key_store(to_kbs_client(item), 0, page, count);
}
CONFIGFS_ATTR_WO(kbs_client_, secret);

static ssize_t kbs_client_secret_alt_store(struct config_item *item, const char *page, size_t count)
{
	return kbs_client_key_store(to_kbs_client(item), 1, page, count);
}
CONFIGFS_ATTR_WO(kbs_client_, secret_alt);

static struct configfs_attribute *kbs_client_attrs[] = {
	&kbs_client_attr_secret,
	&kbs_client_attr_secret_alt,
	NULL,
};

static void kbs_client_release(struct config_item *item)
{
	struct kbs_client *client = to_kbs_client(item);
	unsigned int i;

	for (i = 0; i < KULP_SECRETS; i++)
		kulp_key_put(client->keys[i]);
	kfree(client);
}

static struct configfs_item_operations kbs_client_item_ops = {
	.release	= kbs_client_release,
};

static const struct config_item_type kbs_client_type = {
	.ct_item_ops	= &kbs_client_item_ops,
	.ct_attrs	= kbs_client_attrs,
	.ct_owner	= THIS_MODULE,
};

static struct config_item *kbs_client_make(struct config_group *group, const char *name)
{
	struct kbs_client *client;

	if (!kofiblk_name_ok(name))
		return ERR_PTR(-EINVAL);
	client = kzalloc(sizeof(*client), GFP_KERNEL);
	if (!client)
		return ERR_PTR(-ENOMEM);
	config_item_init_type_name(&client->item, name, &kbs_client_type);
	client->export = container_of(group, struct kbs_export, clients);
	mutex_lock(&kbs_lock);
	list_add(&client->list, &client->export->client_list);
	mutex_unlock(&kbs_lock);
	return &client->item;
}

static void kbs_client_drop(struct config_group *group, struct config_item *item)
{
	struct kbs_client *client = to_kbs_client(item);

	mutex_lock(&kbs_lock);
	list_del(&client->list);
	kbs_client_changed(client, true);
	mutex_unlock(&kbs_lock);
	config_item_put(item);
}

static struct configfs_group_operations kbs_clients_group_ops = {
	.make_item	= kbs_client_make,
	.drop_item	= kbs_client_drop,
};

/* Type of an export's directory "clients". */
const struct config_item_type kbs_clients_type = {
	.ct_group_ops	= &kbs_clients_group_ops,
	.ct_owner	= THIS_MODULE,
};

static struct kbs_client *kbs_client_find(struct kbs_export *export, const char *name)
{
	struct kbs_client *client;

	lockdep_assert_held(&kbs_lock);
	list_for_each_entry(client, &export->client_list, list)
		if (!strcmp(config_item_name(&client->item), name))
			return client;
	return NULL;
}

/*
 * Get references to a client's keys; unused entries are NULL. Return: the number of keys; 0 for a
 * client that needs no secret; -EACCES for one that isn't allowed to use the export.
 */
int kbs_export_keys(struct kbs_export *export, const char *name,
		    struct kulp_key *keys[KULP_SECRETS])
{
	struct kbs_client *client = kbs_client_find(export, name);
	unsigned int i;
	int n = 0;

	if (!client)
		return export->allow_any ? 0 : -EACCES;
	for (i = 0; i < KULP_SECRETS; i++)
		if (client->keys[i])
			keys[n++] = kulp_key_get(client->keys[i]);
	return n;
}

/* Return: whether a client that has proved to know a key, or none, may use an export. */
bool kbs_export_allows(struct kbs_export *export, const char *name, const struct kulp_key *key)
{
	const struct kbs_client *client = kbs_client_find(export, name);

	return client ? kbs_client_may(client, key) : export->allow_any && !key;
}
