// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Providers. A provider is on the list from kofi_provider_register() to
 * kofi_provider_deregister(). No lock is held while it is called; instead each call
 * pins the provider and its module, and so does each open fabric. Therefore a
 * module's exit finds nobody, and a provider that leaves in another way is told that
 * it is in use.
 */
#define pr_fmt(fmt) "kofi: " fmt

#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/string_helpers.h>
#include "kofi.h"
#include "trace.h"

static DEFINE_MUTEX(kofi_registry_lock);
static LIST_HEAD(kofi_registry);	/* kofi_registry_lock */
static u64 kofi_last_id;		/* kofi_registry_lock */

static struct kofi_reg *kofi_reg_find(const char *name)
{
	struct kofi_reg *reg;

	lockdep_assert_held(&kofi_registry_lock);
	list_for_each_entry(reg, &kofi_registry, list)
		if (!strcmp(reg->provider->name, name))
			return reg;
	return NULL;
}

/* It becomes part of a module alias, so it must be a plain word. */
static bool kofi_name_ok(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-");

	return len && len < FI_NAME_MAX && !name[len];
}

static bool kofi_provider_ok(const struct kofi_provider *provider)
{
	return provider && provider->name && kofi_name_ok(provider->name) &&
	       provider->getinfo && provider->freeinfo && provider->fabric;
}

/**
 * kofi_provider_register() - make a provider known
 * @version: KOFI_API_VERSION
 * @provider: what it offers; stays valid until it is deregistered
 *
 * The provider may be called before this returns: register last.
 *
 * Context: Process context; may sleep.
 * Return: 0, -EINVAL when something mandatory is missing, -ENOSYS when the
 * provider was built for an API that this core isn't, -EEXIST when the name is
 * taken, -ENOMEM.
 */
int kofi_provider_register(u32 version, const struct kofi_provider *provider)
{
	struct kofi_reg *reg;
	int ret = 0;

	if (!kofi_provider_ok(provider))
		return -EINVAL;
	if (FI_MAJOR(version) != FI_MAJOR_VERSION || version > fi_version())
		return -ENOSYS;
	reg = kzalloc(sizeof(*reg), GFP_KERNEL);
	if (!reg)
		return -ENOMEM;
	reg->provider = provider;

	mutex_lock(&kofi_registry_lock);
	reg->id = ++kofi_last_id;
	if (kofi_reg_find(provider->name))
		ret = -EEXIST;
	else
		list_add_tail(&reg->list, &kofi_registry);
	mutex_unlock(&kofi_registry_lock);

	trace_kofi_provider_register(provider->name, ret);
	if (ret)
		kfree(reg);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(kofi_provider_register, KOFI_PROVIDER);

/**
 * kofi_provider_deregister() - take a provider back
 * @provider: what was registered
 *
 * From a module's exit it succeeds: calls and open fabrics would have kept the
 * module.
 *
 * Context: Process context; sleeps.
 * Return: 0, -EINVAL, -ENOENT when it isn't registered, -EBUSY while a fabric is
 * open or the provider is being called.
 */
int kofi_provider_deregister(const struct kofi_provider *provider)
{
	struct kofi_reg *reg;
	int ret = 0;

	if (!provider || !provider->name)
		return -EINVAL;
	mutex_lock(&kofi_registry_lock);
	reg = kofi_reg_find(provider->name);
	if (!reg || reg->provider != provider)
		ret = -ENOENT;
	else if (reg->users)
		ret = -EBUSY;
	else
		list_del(&reg->list);
	mutex_unlock(&kofi_registry_lock);
	if (!ret)
		kfree(reg);
	trace_kofi_provider_deregister(provider->name, ret);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(kofi_provider_deregister, KOFI_PROVIDER);

/* That of a name, or the first behind a registration. */
static struct kofi_reg *kofi_reg_pin(const char *name, u64 after)
{
	struct kofi_reg *reg, *found = NULL;

	mutex_lock(&kofi_registry_lock);
	list_for_each_entry(reg, &kofi_registry, list) {
		if (name ? strcmp(reg->provider->name, name) : reg->id <= after)
			continue;
		if (!try_module_get(reg->provider->owner))
			continue;
		reg->users++;
		found = reg;
		break;
	}
	mutex_unlock(&kofi_registry_lock);
	return found;
}

/**
 * kofi_reg_get() - pin a provider in order to call it
 * @name: the provider, in letters of any case, loaded if need be, or NULL for
 *	the first of the list
 *
 * Context: Process context; sleeps.
 * Return: its registration, for kofi_reg_put() or kofi_reg_next(), or NULL.
 */
struct kofi_reg *kofi_reg_get(const char *name)
{
	char lower[FI_NAME_MAX];
	struct kofi_reg *reg;

	if (!name)
		return kofi_reg_pin(NULL, 0);
	if (strlen(name) >= sizeof(lower))
		return NULL;
	string_lower(lower, name);
	reg = kofi_reg_pin(lower, 0);
	if (reg || !kofi_name_ok(lower))
		return reg;
	request_module("kofi-prov-%s", lower);
	return kofi_reg_pin(lower, 0);
}

/**
 * kofi_reg_next() - go on to the next provider of the list
 * @reg: pinned; let go of
 *
 * Context: Process context; sleeps.
 * Return: the next one, likewise pinned, or NULL.
 */
struct kofi_reg *kofi_reg_next(struct kofi_reg *reg)
{
	u64 id = reg->id;

	kofi_reg_put(reg);
	return kofi_reg_pin(NULL, id);
}

/**
 * kofi_reg_put() - undo kofi_reg_get()
 * @reg: the provider's; not valid any more afterwards
 *
 * Context: Process context; sleeps.
 */
void kofi_reg_put(struct kofi_reg *reg)
{
	struct module *owner = reg->provider->owner;

	mutex_lock(&kofi_registry_lock);
	reg->users--;
	mutex_unlock(&kofi_registry_lock);
	module_put(owner);
}

/**
 * kofi_registry_show() - list the providers
 * @s: where to
 * @unused: of DEFINE_SHOW_ATTRIBUTE()
 *
 * Context: Process context; sleeps.
 * Return: 0.
 */
int kofi_registry_show(struct seq_file *s, void *unused)
{
	const struct kofi_provider *p;
	struct kofi_reg *reg;

	mutex_lock(&kofi_registry_lock);
	list_for_each_entry(reg, &kofi_registry, list) {
		p = reg->provider;
		seq_printf(s, "%s:\n    version: %u.%u\n    module: %s\n    users: %u\n",
			   p->name, FI_MAJOR(p->version), FI_MINOR(p->version),
			   p->owner ? module_name(p->owner) : "built-in", reg->users);
	}
	mutex_unlock(&kofi_registry_lock);
	return 0;
}
