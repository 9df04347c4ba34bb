// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Providers. A provider is on the list from kofi_provider_register() to
 * kofi_provider_deregister(). No lock is held while it is called; instead each
 * call is on record and pins the provider's module, and so does each open
 * fabric. Therefore a module's exit finds nothing to wait for, and a provider
 * that leaves in another way waits for the calls, but not for its users: it is
 * told that it has some.
 */
#define pr_fmt(fmt) "kofi: " fmt

#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/string_helpers.h>
#include "kofi.h"
#include "trace.h"

static DEFINE_MUTEX(kofi_registry_lock);
static LIST_HEAD(kofi_registry);	/* kofi_registry_lock */
static u64 kofi_last_id;		/* kofi_registry_lock */
static DECLARE_WAIT_QUEUE_HEAD(kofi_calls_done);

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
	INIT_LIST_HEAD(&reg->calls);

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

static int kofi_reg_may_leave(const struct kofi_reg *reg)
{
	const struct kofi_call *call;

	lockdep_assert_held(&kofi_registry_lock);
	list_for_each_entry(call, &reg->calls, list)
		if (call->task == current)
			return -EDEADLK;
	return reg->opens || reg->leaving ? -EBUSY : 0;
}

/**
 * kofi_provider_deregister() - take a provider back
 * @provider: what was registered
 *
 * Returns when no call into the provider is running or can begin. From a
 * module's exit it succeeds: open fabrics would have kept the module.
 *
 * Context: Process context; sleeps.
 * Return: 0, -EINVAL, -ENOENT when it isn't registered, -EBUSY while a fabric is
 * open, -EDEADLK from inside a call to that provider.
 */
int kofi_provider_deregister(const struct kofi_provider *provider)
{
	struct kofi_reg *reg;
	int ret;

	might_sleep();
	if (!provider || !provider->name)
		return -EINVAL;
	mutex_lock(&kofi_registry_lock);
	reg = kofi_reg_find(provider->name);
	if (!reg || reg->provider != provider) {
		mutex_unlock(&kofi_registry_lock);
		return -ENOENT;
	}
	ret = kofi_reg_may_leave(reg);
	if (!ret)
		reg->leaving = true;
	mutex_unlock(&kofi_registry_lock);
	if (ret)
		goto out;

	wait_event(kofi_calls_done, list_empty_careful(&reg->calls));

	/* A call that was running may have opened a fabric. */
	mutex_lock(&kofi_registry_lock);
	reg->leaving = false;
	ret = kofi_reg_may_leave(reg);
	if (!ret)
		list_del(&reg->list);
	mutex_unlock(&kofi_registry_lock);
	if (!ret)
		kfree(reg);
out:
	trace_kofi_provider_deregister(provider->name, ret);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(kofi_provider_deregister, KOFI_PROVIDER);

/* Pins a provider: that of a name, or the first behind a registration. */
static bool kofi_call_find(struct kofi_call *call, const char *name, u64 after)
{
	struct kofi_reg *reg;

	*call = (struct kofi_call){ .task = current };
	mutex_lock(&kofi_registry_lock);
	list_for_each_entry(reg, &kofi_registry, list) {
		if (name ? strcmp(reg->provider->name, name) : reg->id <= after)
			continue;
		if (reg->leaving || !try_module_get(reg->provider->owner))
			continue;
		call->reg = reg;
		list_add(&call->list, &reg->calls);
		break;
	}
	mutex_unlock(&kofi_registry_lock);
	return call->reg;
}

/**
 * kofi_call_begin() - pin a provider in order to call it
 * @call: on the caller's stack, until kofi_call_end() or kofi_call_next()
 * @name: the provider, in letters of any case, loaded if need be, or NULL for
 *	the first of the list
 *
 * Context: Process context; sleeps.
 * Return: whether there is one; if not, there is nothing to end.
 */
bool kofi_call_begin(struct kofi_call *call, const char *name)
{
	char lower[FI_NAME_MAX];

	if (name) {
		if (strlen(name) >= sizeof(lower))
			return false;
		string_lower(lower, name);
		name = lower;
	}
	if (kofi_call_find(call, name, 0))
		return true;
	if (!name || !kofi_name_ok(name))
		return false;
	request_module("kofi-prov-%s", name);
	return kofi_call_find(call, name, 0);
}

/**
 * kofi_call_next() - go on to the next provider of the list
 * @call: begun without a name
 *
 * Context: Process context; sleeps.
 * Return: whether there is one; if not, the call has ended.
 */
bool kofi_call_next(struct kofi_call *call)
{
	u64 id = call->reg->id;

	kofi_call_end(call);
	return kofi_call_find(call, NULL, id);
}

/**
 * kofi_call_end() - let a provider go that kofi_call_begin() pinned
 * @call: the call
 *
 * Context: Process context; sleeps.
 */
void kofi_call_end(struct kofi_call *call)
{
	/* With the call off the record the registration may go away. */
	struct module *owner = call->reg->provider->owner;

	mutex_lock(&kofi_registry_lock);
	list_del(&call->list);
	mutex_unlock(&kofi_registry_lock);
	wake_up_all(&kofi_calls_done);
	module_put(owner);
}

/**
 * kofi_reg_get_open() - pin a provider for a fabric that is being opened
 * @reg: the provider, pinned by a call
 *
 * Context: Process context; sleeps.
 */
void kofi_reg_get_open(struct kofi_reg *reg)
{
	__module_get(reg->provider->owner);
	mutex_lock(&kofi_registry_lock);
	reg->opens++;
	mutex_unlock(&kofi_registry_lock);
}

/**
 * kofi_reg_put_open() - undo kofi_reg_get_open()
 * @reg: the provider
 *
 * Context: Process context; sleeps.
 */
void kofi_reg_put_open(struct kofi_reg *reg)
{
	struct module *owner = reg->provider->owner;

	mutex_lock(&kofi_registry_lock);
	reg->opens--;
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
	const struct kofi_provider *provider;
	struct kofi_reg *reg;

	mutex_lock(&kofi_registry_lock);
	list_for_each_entry(reg, &kofi_registry, list) {
		provider = reg->provider;
		seq_printf(s, "%s:\n", provider->name);
		seq_printf(s, "    version: %u.%u\n",
			   FI_MAJOR(provider->version),
			   FI_MINOR(provider->version));
		seq_printf(s, "    module: %s\n",
			   provider->owner ? module_name(provider->owner) :
					     "built-in");
		seq_printf(s, "    open_fabrics: %u\n", reg->opens);
	}
	mutex_unlock(&kofi_registry_lock);
	return 0;
}
