// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Providers. A provider is on the list from kofi_provider_register() to
 * kofi_provider_deregister(). The core calls it without a lock; instead each call and each
 * open fabric pins the provider and its module. So the provider has no users when its
 * module's exit function runs. Deregistering at any other time fails while it has users.
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

/* The provider that the log called missing last, so that it says so once to a ULP that polls. */
static char kofi_missing[FI_NAME_MAX];	/* kofi_registry_lock */

static struct kofi_reg *kofi_reg_find(const char *name)
{
	struct kofi_reg *reg;

	lockdep_assert_held(&kofi_registry_lock);
	list_for_each_entry(reg, &kofi_registry, list)
		if (!strcmp(reg->provider->name, name))
			return reg;
	return NULL;
}

/* The name becomes part of a module alias, which limits its characters. */
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
 * kofi_provider_register() - register a provider
 * @version: KOFI_API_VERSION
 * @provider: the provider; stays valid until it is deregistered
 *
 * The core may call the provider before this returns, so a module registers its provider
 * at the end of its init function.
 *
 * Context: Process context; may sleep.
 * Return: 0, -EINVAL when a mandatory member is missing or the name is invalid, -ENOSYS
 * when the provider was built for another major or a newer version of the API, -EEXIST when
 * the name is taken, -ENOMEM.
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
 * kofi_provider_deregister() - deregister a provider
 * @provider: the provider, as registered
 *
 * Can't fail in the exit function of the provider's module, because calls and open fabrics
 * pin the module.
 *
 * Context: Process context; sleeps.
 * Return: 0, -EINVAL, -ENOENT when the provider isn't registered, -EBUSY while a fabric of
 * the provider is open or the provider is being called.
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

/* Pin the provider called @name, or with NULL the first one with an id above @after. */
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

static void kofi_reg_missing(const char *name, int ret)
{
	bool again;

	mutex_lock(&kofi_registry_lock);
	again = !strcmp(kofi_missing, name);
	strscpy(kofi_missing, name, sizeof(kofi_missing));
	mutex_unlock(&kofi_registry_lock);
	if (again)
		return;
	if (ret)
		pr_info("no provider is called %s, and modprobe kofi-prov-%s failed: %d\n",
			name, name, ret);
	else
		pr_info("no provider is called %s\n", name);
}

/**
 * kofi_reg_get() - pin a provider in order to call it
 * @name: name of the provider in any case, loaded if necessary, or NULL for the first of
 *	the list
 *
 * Context: Process context; sleeps.
 * Return: the registration, for kofi_reg_put() or kofi_reg_next(), or NULL.
 */
struct kofi_reg *kofi_reg_get(const char *name)
{
	char lower[FI_NAME_MAX];
	struct kofi_reg *reg;
	int ret = 0;

	if (!name)
		return kofi_reg_pin(NULL, 0);
	if (strlen(name) >= sizeof(lower))
		return NULL;
	string_lower(lower, name);
	reg = kofi_reg_pin(lower, 0);
	if (!reg && kofi_name_ok(lower)) {
		ret = request_module("kofi-prov-%s", lower);
		reg = kofi_reg_pin(lower, 0);
	}
	if (!reg)
		kofi_reg_missing(lower, ret);
	return reg;
}

/**
 * kofi_reg_next() - release a provider and pin the next one of the list
 * @reg: registration of the pinned provider
 *
 * Context: Process context; sleeps.
 * Return: registration of the next provider, or NULL.
 */
struct kofi_reg *kofi_reg_next(struct kofi_reg *reg)
{
	u64 id = reg->id;

	kofi_reg_put(reg);
	return kofi_reg_pin(NULL, id);
}

/**
 * kofi_reg_put() - undo kofi_reg_get()
 * @reg: registration of the provider; invalid afterwards
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
 * @s: output file
 * @unused: for DEFINE_SHOW_ATTRIBUTE()
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
