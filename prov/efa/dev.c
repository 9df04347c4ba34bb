// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The list of devices, and functions of devices for the objects that are open on them.
 * device.c adds and removes devices.
 */
#define pr_fmt(fmt) "kofi_efa: " fmt

#include <linux/slab.h>
#include <linux/topology.h>
#include "dev.h"
#include "dma.h"
#include "kefa.h"
#include "trace.h"

/* Set before the first device is added. They aren't main.c's, which depends on all other files. */
const struct kefa_fabric_kind * const *kefa_fabrics;
const struct kofi_provider *kefa_provider;

static DEFINE_MUTEX(kefa_devs_lock);	/* protects kefa_devs, names, states */
static LIST_HEAD(kefa_devs);

/**
 * kefa_dev_put() - drop a reference
 * @dev: the device
 *
 * Context: Process context.
 */
void kefa_dev_put(struct kefa_dev *dev)
{
	if (!refcount_dec_and_test(&dev->refs))
		return;
	put_device(dev->dma);
	mutex_destroy(&dev->lock);
	kfree(dev);
}

/* Find and reference a device in a state; NULL as @name finds any. */
static struct kefa_dev *kefa_dev_in(enum kefa_dev_state state, const char *name)
{
	struct kefa_dev *dev, *found = NULL;

	mutex_lock(&kefa_devs_lock);
	list_for_each_entry(dev, &kefa_devs, list)
		if (dev->state == state && (!name || !strcmp(dev->name, name)))
			found = dev;
	if (found)
		refcount_inc(&found->refs);
	mutex_unlock(&kefa_devs_lock);
	return found;
}

/**
 * kefa_dev_find() - find a usable device
 * @name: name of the device, or NULL for any
 *
 * Context: Process context; sleeps.
 * Return: the device, for kefa_dev_put(), or NULL.
 */
struct kefa_dev *kefa_dev_find(const char *name)
{
	return name ? kefa_dev_in(KEFA_DEV_USABLE, name) : NULL;
}

/**
 * kefa_dev_find_any() - find a device that was probed, usable or not
 * @name: name of the device
 *
 * Context: Process context; sleeps.
 * Return: the device, for kefa_dev_put(), or NULL.
 */
struct kefa_dev *kefa_dev_find_any(const char *name)
{
	return kefa_dev_find(name) ?: kefa_dev_in(KEFA_DEV_UNUSABLE, name);
}

/**
 * kefa_devs_wait() - wait for devices that are being probed
 * @name: name of a device, or NULL for all
 *
 * Context: Process context; sleeps for some seconds at worst if the device's admin queue
 * answers, otherwise until the driver's timeout.
 */
void kefa_devs_wait(const char *name)
{
	struct kefa_dev *dev;

	while ((dev = kefa_dev_in(KEFA_DEV_PROBING, name))) {
		wait_for_completion(&dev->probed);
		kefa_dev_put(dev);
	}
}

static bool kefa_dev_picked(const struct kefa_dev *dev, const struct kefa_pick *pick)
{
	return dev->state == KEFA_DEV_USABLE &&
	       (!pick->name || !strcmp(pick->name, dev->name)) &&
	       (!pick->gid || !memcmp(pick->gid, dev->gid, sizeof(dev->gid)));
}

/* Append the entries of one kind, for all usable devices that are picked and have it. */
static int kefa_fabric_info(const struct kefa_pick *pick,
			    const struct kefa_fabric_kind *fabric, struct fi_info ***last)
{
	struct kefa_dev *dev;

	list_for_each_entry(dev, &kefa_devs, list) {
		if (!kefa_dev_picked(dev, pick) || (fabric->offered && !fabric->offered(dev)))
			continue;
		**last = kefa_info(dev, fabric, pick);
		if (!**last)
			return -ENOMEM;
		*last = &(**last)->next;
	}
	return 0;
}

/**
 * kefa_devs_info() - describe devices
 * @pick: which devices
 * @list: takes the entries of all fabrics, in the order of kefa_fabrics
 *
 * Context: Process context; sleeps.
 * Return: 0, -ENODATA, -ENOMEM.
 */
int kefa_devs_info(const struct kefa_pick *pick, struct fi_info **list)
{
	struct fi_info **last = list;
	unsigned int noio;
	int i, ret = 0;

	*list = NULL;
	mutex_lock(&kefa_devs_lock);
	noio = memalloc_noio_save();
	for (i = 0; kefa_fabrics[i] && !ret; i++)
		ret = kefa_fabric_info(pick, kefa_fabrics[i], &last);
	memalloc_noio_restore(noio);
	mutex_unlock(&kefa_devs_lock);
	if (ret) {
		fi_freeinfo(*list);
		return ret;
	}
	return *list ? 0 : -ENODATA;
}

static bool kefa_vector_near(u32 vector, int node)
{
	return vector < nr_cpu_ids && cpu_online(vector) &&
	       cpu_to_node(vector) == node;
}

/**
 * kefa_cpu_vector() - the completion vector that serves a CPU
 * @dev: the device
 * @cpu: the CPU
 *
 * The device's driver hints that vector n should interrupt CPU n, but the administrator or
 * irqbalance may change that. CPUs without a vector of their own share those of their node.
 *
 * Context: Any.
 * Return: the vector.
 */
u32 kefa_cpu_vector(const struct kefa_dev *dev, unsigned int cpu)
{
	u32 vector, near = 0, nth;

	if (cpu < dev->vectors || cpu >= nr_cpu_ids)
		return cpu % dev->vectors;
	for (vector = 0; vector < dev->vectors; vector++)
		near += kefa_vector_near(vector, cpu_to_node(cpu));
	if (!near)
		return cpu % dev->vectors;
	nth = cpu % near;
	for (vector = 0; vector < dev->vectors; vector++)
		if (kefa_vector_near(vector, cpu_to_node(cpu)) && !nth--)
			return vector;
	/* A CPU went offline after the vectors were counted. */
	return cpu % dev->vectors;
}

/**
 * kefa_dev_vector() - choose a completion vector
 * @dev: the device
 * @cpu: CPU that the ULP asks for, or -1
 *
 * Without a CPU, the vectors near the device are assigned in turn.
 *
 * Context: Process context, under kefa_dev.lock.
 * Return: the vector.
 */
u32 kefa_dev_vector(struct kefa_dev *dev, int cpu)
{
	u32 i, vector;

	lockdep_assert_held(&dev->lock);
	if (cpu >= 0)
		return kefa_cpu_vector(dev, cpu);
	for (i = 0; i < dev->vectors; i++) {
		vector = dev->next_vector++ % dev->vectors;
		if (dev->numa_node == NUMA_NO_NODE ||
		    kefa_vector_near(vector, dev->numa_node))
			return vector;
	}
	return dev->next_vector++ % dev->vectors;
}

/**
 * kefa_dev_name() - copy a device's name, which may be changing
 * @dev: the device
 * @name: takes the name
 *
 * Context: Process context; sleeps.
 */
void kefa_dev_name(struct kefa_dev *dev, char name[FI_NAME_MAX])
{
	mutex_lock(&kefa_devs_lock);
	strscpy(name, dev->name, FI_NAME_MAX);
	mutex_unlock(&kefa_devs_lock);
}

/**
 * kefa_dev_list() - add a device that isn't probed yet to the list
 * @dev: the device
 *
 * Context: Process context; sleeps.
 */
void kefa_dev_list(struct kefa_dev *dev)
{
	mutex_lock(&kefa_devs_lock);
	list_add_tail(&dev->list, &kefa_devs);
	mutex_unlock(&kefa_devs_lock);
	kefa_debugfs_add(dev);
}

/* Return: whether the device is usable, and wasn't unlisted meanwhile. */
static bool kefa_dev_set_state(struct kefa_dev *dev, enum kefa_dev_state state,
			       char name[FI_NAME_MAX])
{
	bool usable;

	mutex_lock(&kefa_devs_lock);
	dev->state = state;
	strscpy(name, dev->name, FI_NAME_MAX);
	usable = state == KEFA_DEV_USABLE && !list_empty(&dev->list);
	mutex_unlock(&kefa_devs_lock);
	return usable;
}

/**
 * kefa_dev_probed() - record the result of a probe
 * @dev: the device
 * @usable: whether the device can be used
 *
 * Context: Process context; sleeps.
 */
void kefa_dev_probed(struct kefa_dev *dev, bool usable)
{
	char name[FI_NAME_MAX];

	usable = kefa_dev_set_state(dev, usable ? KEFA_DEV_USABLE :
					 KEFA_DEV_UNUSABLE, name);
	complete_all(&dev->probed);
	if (!usable)
		return;
	trace_kefa_device(name, true);
	kofi_device_arrived(kefa_provider, name);
}

/**
 * kefa_dev_unlist() - remove a device from the list
 * @dev: the device, in the list or not
 *
 * Context: Process context; sleeps.
 */
void kefa_dev_unlist(struct kefa_dev *dev)
{
	mutex_lock(&kefa_devs_lock);
	list_del_init(&dev->list);
	mutex_unlock(&kefa_devs_lock);
}

/**
 * kefa_dev_rename() - record a device's new name
 * @dev: the device
 * @name: the new name
 *
 * From now on another device may have the old name. Event queues get FI_DEVICE_ARRIVED for
 * the new name.
 *
 * Context: Process context; sleeps.
 */
void kefa_dev_rename(struct kefa_dev *dev, const char *name)
{
	bool used;

	trace_kefa_device(dev->name, false);
	kefa_debugfs_del(dev);
	mutex_lock(&kefa_devs_lock);
	strscpy(dev->name, name, sizeof(dev->name));
	used = dev->state == KEFA_DEV_USABLE && !list_empty(&dev->list);
	mutex_unlock(&kefa_devs_lock);
	kefa_debugfs_add(dev);
	trace_kefa_device(dev->name, true);
	if (used)
		kofi_device_arrived(kefa_provider, dev->name);
}

/**
 * kefa_dev_give_up() - give up a device that stopped responding
 * @dev: the device
 *
 * The device is treated as if it had been removed, so that all outstanding operations
 * complete. It isn't used until it has been removed and added again.
 *
 * Context: Process context, under kefa_dev.lock. A work item does the work later.
 */
void kefa_dev_give_up(struct kefa_dev *dev)
{
	lockdep_assert_held(&dev->lock);
	if (dev->gone)
		return;
	if (queue_work(kefa_cmd_wq, &dev->end))
		dev_err(&dev->ibdev->dev,
			"kofi_efa: the device is given up; to use it again, remove it, reset it and add it\n");
}

/**
 * kefa_dev_dead() - handle the death of a device's admin queue
 * @dev: the device
 *
 * Objects that reach memory can't be destroyed any more, so block the device's access to
 * all memory. If that isn't possible, the memory that the device may reach is never freed:
 * see kefa_keep().
 *
 * Context: Process context, under kefa_dev.lock.
 */
void kefa_dev_dead(struct kefa_dev *dev)
{
	lockdep_assert_held(&dev->lock);
	if (dev->dead)
		return;
	dev->dead = true;
	dev->silenced = kefa_dma_stop(dev->ibdev->dev.parent);
	dev_warn(&dev->ibdev->dev, "kofi_efa: the device doesn't answer, %s\n",
		 dev->silenced ? "its bus mastering is disabled" :
				 "and its access to memory can't be blocked");
	/* Without bus mastering the device can't report completions. */
	kefa_dev_give_up(dev);
}
