// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * PCI functions. They are created when the module is loaded, one for each netdev that the
 * parameter pci names, and destroyed when it is unloaded.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/pci_ids.h>

#include "../main.h"
#include "pci.h"

static char *pci[EFASIM_PCI_FNS];
static int num_pci;
module_param_array(pci, charp, &num_pci, 0444);
MODULE_PARM_DESC(pci, "netdevs for which to create PCI functions, at most four (default: none)");

static unsigned long pci_mem;
module_param(pci_mem, ulong, 0444);
MODULE_PARM_DESC(pci_mem, "physical address of the memory of the PCI functions, 32 MiB for each, reserved by memmap= on the kernel's command line");

static unsigned int pci_device = 0xefa1;
module_param(pci_device, uint, 0444);
MODULE_PARM_DESC(pci_device, "PCI device id of the PCI functions, 0xefa0 to 0xefa3; 0xefa0 has no RDMA, and completion queues of two rings (default: 0xefa1)");

static DEFINE_MUTEX(functions_lock);	/* protects functions from the notifier */
static struct efasim_fn *functions[EFASIM_PCI_FNS];

static int create_engine(struct efasim_fn *fn)
{
	struct efasim_limits limits;
	struct efasim_dev_params params;
	int err;

	err = efasim_params(&params, &limits);
	if (err)
		return err;
	efasim_fn_limits(fn, &limits);
	params.ops = &efasim_pci_fe_ops;
	return efasim_engine_create(&fn->eng, &params);
}

static int start(struct efasim_fn *fn, struct net_device *netdev)
{
	int err;

	err = create_engine(fn);
	if (err)
		return err;
	err = efasim_fn_start(fn);
	if (err)
		goto err_engine;
	err = efasim_join(&fn->eng, netdev);
	if (err)
		goto err_stop;
	return 0;

err_stop:
	efasim_fn_stop(fn);
	efasim_engine_stop(&fn->eng);
	efasim_fn_free(fn);
err_engine:
	efasim_engine_destroy(&fn->eng);
	return err;
}

static struct efasim_fn *create(u32 slot, struct net_device *netdev)
{
	struct efasim_fn *fn = kvzalloc(sizeof(*fn), GFP_KERNEL);
	int err;

	if (!fn)
		return ERR_PTR(-ENOMEM);
	fn->slot = slot;
	fn->device_id = pci_device;
	fn->base = pci_mem + (u64)slot * EFASIM_FN_WINDOW;
	fn->vectors = min_t(u32, num_online_cpus() + 1, EFASIM_MAX_VECTORS);
	fn->netdev = netdev;
	fn->plugged = true;
	err = start(fn, netdev);
	if (err) {
		kvfree(fn);
		return ERR_PTR(err);
	}
	return fn;
}

static int plug_get(void *data, u64 *val)
{
	struct efasim_fn *fn = data;

	*val = READ_ONCE(fn->plugged);
	return 0;
}

/* debugfs file that hot-unplugs the function, or plugs it in again. */
static int plug_set(void *data, u64 val)
{
	efasim_bus_plug(data, val);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(plug_fops, plug_get, plug_set, "%llu\n");

static void add_debugfs(struct efasim_fn *fn, struct dentry *root)
{
	char name[16];

	snprintf(name, sizeof(name), "pci%u", fn->slot);
	fn->dir = debugfs_create_dir(name, root);
	efasim_debugfs_add(&fn->eng, fn->dir);
}

/* Create the files that plug functions, after the bus exists. */
static void add_plugs(void)
{
	int i;

	for (i = 0; i < num_pci; i++)
		functions[i]->plug = debugfs_create_file("plug", 0600,
							 functions[i]->dir,
							 functions[i], &plug_fops);
}

static void remove_plugs(void)
{
	int i;

	for (i = 0; i < num_pci; i++)
		debugfs_remove(functions[i]->plug);
}

static void destroy(struct efasim_fn *fn)
{
	char name[16];

	snprintf(name, sizeof(name), "pci%u", fn->slot);
	efasim_tell_tales(&fn->eng, name);
	debugfs_remove_recursive(fn->dir);
	efasim_net_leave(&fn->eng);
	/* Stop the engine's worker, which reads the doorbells, before they are unmapped. */
	efasim_fn_stop(fn);
	efasim_engine_stop(&fn->eng);
	efasim_fn_free(fn);
	efasim_engine_destroy(&fn->eng);
	kvfree(fn);
}

static void destroy_all(void)
{
	struct efasim_fn *fn;
	int i;

	for (i = 0; i < num_pci; i++) {
		mutex_lock(&functions_lock);
		fn = functions[i];
		functions[i] = NULL;
		mutex_unlock(&functions_lock);
		if (fn)
			destroy(fn);
	}
}

static int create_one(u32 slot, struct dentry *debugfs)
{
	struct net_device *netdev = dev_get_by_name(&init_net, pci[slot]);
	struct efasim_fn *fn;

	if (!netdev) {
		pr_err("efasim: no netdev %s\n", pci[slot]);
		return -ENODEV;
	}
	fn = create(slot, netdev);
	dev_put(netdev);
	if (IS_ERR(fn))
		return PTR_ERR(fn);
	add_debugfs(fn, debugfs);
	mutex_lock(&functions_lock);
	functions[slot] = fn;
	mutex_unlock(&functions_lock);
	return 0;
}

/**
 * efasim_pci_init() - create the functions that the parameters ask for
 * @debugfs: parent of each function's directory pciSLOT
 *
 * Context: Process context, may sleep.
 * Return: 0; or a negative errno, after undoing everything.
 */
int efasim_pci_init(struct dentry *debugfs)
{
	int i, err = 0;

	if (!num_pci)
		return 0;
	if (pci_device < EFASIM_DEVICE_FIRST || pci_device > EFASIM_DEVICE_LAST ||
	    !IS_ALIGNED(pci_mem, EFASIM_FN_WINDOW))
		return -EINVAL;
	err = efasim_bus_claim(pci_mem, num_pci);
	if (err)
		return err;
	for (i = 0; i < num_pci && !err; i++)
		err = create_one(i, debugfs);
	if (!err)
		err = efasim_bus_create(functions, num_pci);
	if (!err) {
		add_plugs();
		return 0;
	}
	destroy_all();
	efasim_bus_release();
	return err;
}

void efasim_pci_exit(void)
{
	if (!num_pci)
		return;
	remove_plugs();
	efasim_bus_remove();
	destroy_all();
	efasim_bus_release();
}

/* Close the socket of a netdev's function, as it must not outlive the netdev's namespace. */
void efasim_pci_netdev_gone(struct net_device *netdev)
{
	int i;

	mutex_lock(&functions_lock);
	for (i = 0; i < num_pci; i++)
		if (functions[i] && functions[i]->netdev == netdev)
			efasim_net_leave(&functions[i]->eng);
	mutex_unlock(&functions_lock);
}
