// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_bench.ko, the harness:
 *
 *   echo "ULP DEVICE PEER KIND MODE SIZE BATCH WINDOWS ADDRS EPS" > .../kofi_bench/run
 *   cat .../kofi_bench/results
 *
 * in debugfs runs a test and prints a line for each window. The module and the counting
 * plugin number windows alike, from the load of the module on. "validate" instead of a
 * test runs code of known length.
 */
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include "bench.h"

MODULE_DESCRIPTION("Benchmarks of kOFI: the harness");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");

#define KB_RESULTS	SZ_64K

static DEFINE_MUTEX(kb_lock);	/* protects all below; one test at a time */
static LIST_HEAD(kb_ulps);
static char *kb_results;
static size_t kb_len;
static struct dentry *kb_dir;

static const char * const kb_kinds[KB_KINDS] = {
	[KB_SEND]	= "send",
	[KB_RECV]	= "recv",
	[KB_INJECT]	= "inject",
	[KB_LATE]	= "late",
	[KB_WRITE]	= "write",
	[KB_READ]	= "read",
	[KB_FETCH]	= "fetch",
	[KB_REG]	= "reg",
	[KB_INV]	= "inv",
};

static const char * const kb_modes[KB_MODES] = {
	[KB_POLLED]	= "polled",
	[KB_HANDLER]	= "handler",
	[KB_SOFTIRQ]	= "softirq",
	[KB_SLEEPING]	= "sleeping",
	[KB_PAIR]	= "pair",
};

/**
 * kb_printf() - add to the results
 * @fmt: as for printf()
 *
 * Context: Process context, in a call of the harness.
 */
void kb_printf(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	kb_len += vscnprintf(kb_results + kb_len, KB_RESULTS - kb_len, fmt,
			     args);
	va_end(args);
}
EXPORT_SYMBOL_NS_GPL(kb_printf, KOFI_BENCH);

/* Return: number of free pages in per-CPU lists, which don't count as free. */
static unsigned long kb_pages_kept(void)
{
	unsigned long pages = 0;
	struct zone *zone;
	int nid, cpu;

	for_each_online_node(nid)
		for (zone = NODE_DATA(nid)->node_zones;
		     zone < NODE_DATA(nid)->node_zones + MAX_NR_ZONES; zone++)
			for_each_online_cpu(cpu)
				if (populated_zone(zone))
					pages += per_cpu_ptr(zone->per_cpu_pageset,
							     cpu)->count;
	return pages;
}

/**
 * kb_memory_used() - bytes in use on this machine
 *
 * Context: Process context; sleeps until deferred frees are done.
 * Return: number of bytes, accurate to some pages.
 */
s64 kb_memory_used(void)
{
	struct sysinfo si;

	rcu_barrier();
	/* kvfree_rcu() batches objects for up to 5 s, and no barrier waits for that. */
	msleep(6000);
	si_meminfo(&si);
	return (s64)(si.totalram - si.freeram - kb_pages_kept()) * PAGE_SIZE;
}
EXPORT_SYMBOL_NS_GPL(kb_memory_used, KOFI_BENCH);

/**
 * kb_register() - register a ULP
 * @ulp: the ULP
 *
 * Context: Process context; sleeps.
 */
void kb_register(struct kb_ulp *ulp)
{
	mutex_lock(&kb_lock);
	list_add_tail(&ulp->list, &kb_ulps);
	mutex_unlock(&kb_lock);
}
EXPORT_SYMBOL_NS_GPL(kb_register, KOFI_BENCH);

/**
 * kb_deregister() - undo kb_register()
 * @ulp: the ULP
 *
 * Context: Process context; sleeps.
 */
void kb_deregister(struct kb_ulp *ulp)
{
	mutex_lock(&kb_lock);
	list_del(&ulp->list);
	mutex_unlock(&kb_lock);
}
EXPORT_SYMBOL_NS_GPL(kb_deregister, KOFI_BENCH);

static const struct kb_ulp *kb_find(const char *name)
{
	struct kb_ulp *ulp;

	lockdep_assert_held(&kb_lock);
	list_for_each_entry(ulp, &kb_ulps, list)
		if (!strcmp(ulp->name, name))
			return ulp;
	return NULL;
}

/* Return: whether a word ends with @end, which is cut off. */
static bool kb_cut(char *word, const char *end)
{
	int n = strlen(word) - strlen(end);

	if (n <= 0 || strcmp(word + n, end))
		return false;
	word[n] = '\0';
	return true;
}

static int kb_parse(const char *line, struct kb_test *test)
{
	char kind[KB_NAME], mode[KB_NAME];
	int n;

	n = sscanf(line, "%15s %15s %15s %15s %15s %u %u %u %u %u", test->ulp,
		   test->device, test->peer, kind, mode, &test->size,
		   &test->batch, &test->windows, &test->addrs, &test->eps);
	if (n != 10 || !test->batch)
		return -EINVAL;
	n = match_string(kb_modes, KB_MODES, mode);
	if (n < 0)
		return n;
	test->mode = n;
	test->msg = kb_cut(kind, "msg");
	test->own = kb_cut(kind, "own");
	test->apart = kb_cut(kind, "apart");
	test->scattered = kb_cut(kind, "list");
	n = match_string(kb_kinds, KB_KINDS, kind);
	if (n < 0)
		return n;
	test->kind = n;
	return 0;
}

/* Run at a lower priority, so that other tasks of the test run first. */
static int kb_run_nice(const struct kb_ulp *ulp, const struct kb_test *test)
{
	long nice = task_nice(current);
	int ret;

	set_user_nice(current, MAX_NICE);
	ret = kb_run(ulp, test);
	set_user_nice(current, nice);
	return ret;
}

static int kb_command(const char *line)
{
	const struct kb_ulp *ulp;
	struct kb_test test = { };
	char name[KB_NAME];
	int ret;

	lockdep_assert_held(&kb_lock);
	kb_len = 0;
	if (!strcmp(line, "validate"))
		return kb_validate();
	if (sscanf(line, "memory %15s %15s", name, test.device) == 2) {
		ulp = kb_find(name);
		return ulp && ulp->memory ? ulp->memory(&test) : -ENOENT;
	}
	ret = kb_parse(line, &test);
	if (ret)
		return ret;
	ulp = kb_find(test.ulp);
	if (!ulp)
		return -ENOENT;
	if (test.batch > (ulp->max_batch ?: KB_MAX_BATCH))
		return -EINVAL;
	return kb_run_nice(ulp, &test);
}

static ssize_t kb_run_write(struct file *file, const char __user *ubuf,
			    size_t count, loff_t *pos)
{
	char *line = memdup_user_nul(ubuf, min_t(size_t, count, 256));
	int ret;

	if (IS_ERR(line))
		return PTR_ERR(line);
	mutex_lock(&kb_lock);
	ret = kb_command(strim(line));
	mutex_unlock(&kb_lock);
	kfree(line);
	return ret ?: count;
}

static const struct file_operations kb_run_fops = {
	.owner	= THIS_MODULE,
	.open	= simple_open,
	.write	= kb_run_write,
};

static ssize_t kb_results_read(struct file *file, char __user *ubuf,
			       size_t count, loff_t *pos)
{
	ssize_t ret;

	mutex_lock(&kb_lock);
	ret = simple_read_from_buffer(ubuf, count, pos, kb_results, kb_len);
	mutex_unlock(&kb_lock);
	return ret;
}

static const struct file_operations kb_results_fops = {
	.owner	= THIS_MODULE,
	.open	= simple_open,
	.read	= kb_results_read,
};

static int __init kb_init(void)
{
	kb_results = vzalloc(KB_RESULTS);
	if (!kb_results)
		return -ENOMEM;
	kb_dir = debugfs_create_dir("kofi_bench", NULL);
	debugfs_create_file("run", 0200, kb_dir, NULL, &kb_run_fops);
	debugfs_create_file("results", 0400, kb_dir, NULL, &kb_results_fops);
	return 0;
}
module_init(kb_init);

static void __exit kb_exit(void)
{
	debugfs_remove_recursive(kb_dir);
	vfree(kb_results);
}
module_exit(kb_exit);
