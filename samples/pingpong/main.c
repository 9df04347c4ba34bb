// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Parameters and threads. With role=both there are two instances, which connect over
 * TCP like any others. Loading the module starts the threads, and unloading it stops them
 * at any time.
 */
#define pr_fmt(fmt) "kofi_pingpong: " fmt

#include <linux/debugfs.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched/task.h>
#include "pingpong.h"

MODULE_DESCRIPTION("kOFI sample: checks data, and measures latency and throughput");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("0.1");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_CM);
MODULE_IMPORT_NS(KOFI_ULP);

#define PP_MAX_MEMORY	2048	/* KiB that kmalloc() gives in one piece */
#define PP_MAX_TIMEOUT	3600

struct pp_config pp_config = {
	.addr		= "127.0.0.1",
	.port		= 7471,
	.iterations	= 1000,
	.depth		= 32,
	.memory		= 2048,
	.timeout	= 30,
	.check		= true,
};

static char *role = "both";
module_param(role, charp, 0444);
MODULE_PARM_DESC(role, "sides to run: server, client or both (default: both)");
module_param_named(prov, pp_config.prov, charp, 0444);
MODULE_PARM_DESC(prov, "name of the provider (default: the first)");
module_param_named(fabric, pp_config.fabric, charp, 0444);
MODULE_PARM_DESC(fabric, "name of the fabric (default: the first)");
module_param_named(domain, pp_config.domain, charp, 0444);
MODULE_PARM_DESC(domain, "name of the domain (default: the first)");
module_param_named(addr, pp_config.addr, charp, 0444);
MODULE_PARM_DESC(addr, "the server's IP address (default: 127.0.0.1)");
module_param_named(port, pp_config.port, ushort, 0444);
MODULE_PARM_DESC(port, "the server's TCP port (default: 7471)");
module_param_array_named(sizes, pp_config.sizes, uint, &pp_config.nsizes, 0444);
MODULE_PARM_DESC(sizes, "sizes of operations in bytes (default: from 0 to the limit)");
module_param_array_named(operations, pp_config.ops, charp, &pp_config.nops, 0444);
MODULE_PARM_DESC(operations, "operations of a client: send, write, read, writedata (default: all)");
module_param_named(max_size, pp_config.max_size, uint, 0444);
MODULE_PARM_DESC(max_size, "size of the largest operation in bytes (default: the fabric's limit)");
module_param_named(iterations, pp_config.iterations, uint, 0444);
MODULE_PARM_DESC(iterations, "number of operations per measurement (default: 1000)");
module_param_named(depth, pp_config.depth, uint, 0444);
MODULE_PARM_DESC(depth, "number of outstanding operations (default: 32)");
module_param_named(memory, pp_config.memory, uint, 0444);
MODULE_PARM_DESC(memory, "KiB of buffers in each direction (default: 2048)");
module_param_named(timeout, pp_config.timeout, uint, 0444);
MODULE_PARM_DESC(timeout, "seconds without progress after which a session fails (default: 30)");
module_param_named(check, pp_config.check, bool, 0444);
MODULE_PARM_DESC(check, "whether every byte is checked (default: yes)");
module_param_named(tagged, pp_config.tagged, bool, 0444);
MODULE_PARM_DESC(tagged, "whether messages have tags; both sides must set it (default: no)");
module_param_named(dgram, pp_config.dgram, bool, 0444);
MODULE_PARM_DESC(dgram, "whether messages are datagrams, which may be lost; both sides must set it (default: no)");
module_param_named(connected, pp_config.connected, bool, 0444);
MODULE_PARM_DESC(connected, "whether endpoints are connected; both sides must set it (default: no)");

static struct pp_instance pp_instances[] = {
	{ .name = "server", .run = pp_server_run },
	{ .name = "client", .run = pp_client_run },
};

static struct dentry *pp_debugfs;

static int pp_thread(void *data)
{
	struct pp_instance *inst = data;

	return inst->run(inst);
}

static int pp_start(struct pp_instance *inst)
{
	struct task_struct *task;

	task = kthread_create(pp_thread, inst, "kofi_pp_%s", inst->name);
	if (IS_ERR(task))
		return PTR_ERR(task);
	/* A client's thread may end before kthread_stop(), so keep a reference. */
	inst->task = get_task_struct(task);
	pp_report_init(inst, pp_debugfs);
	wake_up_process(task);
	return 0;
}

static void pp_stop(struct pp_instance *inst)
{
	if (!inst->task)
		return;
	pp_shut_down(inst);
	kthread_stop(inst->task);
	put_task_struct(inst->task);
	inst->task = NULL;
}

/* Stop the client first, which notifies the server. */
static void pp_stop_all(void)
{
	int i;

	for (i = ARRAY_SIZE(pp_instances); i--; )
		pp_stop(&pp_instances[i]);
	debugfs_remove_recursive(pp_debugfs);
}

static bool pp_wanted(const struct pp_instance *inst)
{
	return !strcmp(role, "both") || !strcmp(role, inst->name);
}

static int pp_check_config(void)
{
	int i;

	for (i = 0; i < pp_config.nops; i++) {
		if (pp_op_named(pp_config.ops[i]) == PP_OPS) {
			pr_err("there is no operation %s\n", pp_config.ops[i]);
			return -EINVAL;
		}
	}
	if (strcmp(role, "both") && strcmp(role, "server") &&
	    strcmp(role, "client")) {
		pr_err("role must be server, client or both\n");
		return -EINVAL;
	}
	if (pp_config.dgram + pp_config.connected + pp_config.tagged > 1) {
		pr_err("datagrams and messages of connections have no tags\n");
		return -EINVAL;
	}
	if (!pp_config.iterations || pp_config.iterations > PP_COUNT_MAX ||
	    !pp_config.depth || pp_config.depth > PP_DEPTH_MAX ||
	    !pp_config.memory || pp_config.memory > PP_MAX_MEMORY ||
	    !pp_config.timeout || pp_config.timeout > PP_MAX_TIMEOUT) {
		pr_err("the limits are: iterations 1 to %u, depth 1 to %u, memory 1 to %u, timeout 1 to %u\n",
		       PP_COUNT_MAX, PP_DEPTH_MAX, PP_MAX_MEMORY,
		       PP_MAX_TIMEOUT);
		return -EINVAL;
	}
	return 0;
}

static int __init pp_init(void)
{
	int i, ret = pp_check_config();

	if (ret)
		return ret;
	pp_debugfs = debugfs_create_dir("kofi_pingpong", NULL);
	for (i = 0; i < ARRAY_SIZE(pp_instances) && !ret; i++) {
		init_waitqueue_head(&pp_instances[i].wait);
		mutex_init(&pp_instances[i].lock);
		spin_lock_init(&pp_instances[i].link.lock);
		INIT_LIST_HEAD(&pp_instances[i].link.notes);
		if (pp_wanted(&pp_instances[i]))
			ret = pp_start(&pp_instances[i]);
	}
	if (ret)
		pp_stop_all();
	return ret;
}
module_init(pp_init);

static void __exit pp_exit(void)
{
	pp_stop_all();
}
module_exit(pp_exit);
