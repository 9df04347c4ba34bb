// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Test cases of the EFA provider on a device, or between two devices of this machine:
 *
 *   echo "DEVICE PEER [CASE [NUMBER]]" > /sys/kernel/debug/kofi_efa_test/run
 *   cat /sys/kernel/debug/kofi_efa_test/results
 *
 * runs all cases, or one, and prints TAP. While the case "removal" runs, the file "depth"
 * has the smaller number of outstanding operations of the two ends.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include "efa.h"

MODULE_DESCRIPTION("Test of the kOFI EFA provider on a device");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);

#define ET_RESULTS	SZ_64K

static DEFINE_MUTEX(et_lock);	/* protects the results; one run at a time */
static char *et_results;
static size_t et_len;
static struct dentry *et_dir;
u32 et_depth;

static const struct et_case * const et_all[] = {
	et_msg_cases, et_rma_cases, et_life_cases, et_removal_cases,
	et_peer_cases, et_rdm_cases, et_far_cases, et_atomic_cases,
};

void et_printf(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	et_len += vscnprintf(et_results + et_len, ET_RESULTS - et_len, fmt,
			     args);
	va_end(args);
}

void et_failed(struct et *t, const char *func, int line, const char *what,
	       long long got)
{
	t->failed++;
	et_printf("# %s:%d: %s (got %lld)\n", func, line, what, got);
}

static int et_open_both(struct et *t, const char *dev_a, const char *dev_b)
{
	return et_open(&t->a, dev_a, t->test) ?:
	       et_open(&t->b, dev_b, t->test) ?:
	       et_connect(&t->a, &t->b) ?: et_connect(&t->b, &t->a);
}

static void et_run_case(struct et *t, const char *dev_a, const char *dev_b,
			int number)
{
	unsigned long start = jiffies;

	t->failed = 0;
	t->expects = 0;
	if (ET_EXPECT_EQ(t, et_open_both(t, dev_a, dev_b), 0))
		t->test->run(t);
	ET_EXPECT_EQ(t, et_close(&t->a), 0);
	ET_EXPECT_EQ(t, et_close(&t->b), 0);
	/* A case without expectations can't fail, so it must have some. */
	ET_EXPECT(t, t->expects > 3);
	et_printf("%s %d - %s # %u expectations, %u ms\n",
		  t->failed ? "not ok" : "ok", number, t->test->name,
		  t->expects, jiffies_to_msecs(jiffies - start));
}

static void et_run_cases(struct et *t, const char *dev_a, const char *dev_b,
			 const char *only)
{
	int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(et_all); i++) {
		for (t->test = et_all[i]; t->test->name; t->test++) {
			if (only ? strcmp(only, t->test->name) :
				   t->test->alone)
				continue;
			et_run_case(t, dev_a, dev_b, ++n);
			cond_resched();
		}
	}
	if (!n)
		et_printf("not ok 1 - there is no case %s\n", only);
	et_printf("1..%d\n", n);
}

static int et_run(char *args)
{
	const char *dev_a = strsep(&args, " ");
	const char *dev_b = strsep(&args, " ");
	const char *only = strsep(&args, " ");
	const char *arg = strsep(&args, " ");
	struct et *t;
	int ret = 0;

	if (!dev_b)
		return -EINVAL;
	t = kzalloc(sizeof(*t), GFP_KERNEL);
	if (!t)
		return -ENOMEM;
	if (arg)
		ret = kstrtouint(arg, 0, &t->arg);
	et_len = 0;
	if (!ret)
		et_run_cases(t, dev_a, dev_b, only);
	kfree(t);
	return ret;
}

static ssize_t et_run_write(struct file *file, const char __user *ubuf,
			    size_t count, loff_t *pos)
{
	char *line = memdup_user_nul(ubuf, min_t(size_t, count, 256));
	int ret;

	if (IS_ERR(line))
		return PTR_ERR(line);
	mutex_lock(&et_lock);
	ret = et_run(strim(line));
	mutex_unlock(&et_lock);
	kfree(line);
	return ret ?: count;
}

static const struct file_operations et_run_fops = {
	.owner	= THIS_MODULE,
	.open	= simple_open,
	.write	= et_run_write,
};

static ssize_t et_results_read(struct file *file, char __user *ubuf,
			       size_t count, loff_t *pos)
{
	ssize_t ret;

	mutex_lock(&et_lock);
	ret = simple_read_from_buffer(ubuf, count, pos, et_results, et_len);
	mutex_unlock(&et_lock);
	return ret;
}

static const struct file_operations et_results_fops = {
	.owner	= THIS_MODULE,
	.open	= simple_open,
	.read	= et_results_read,
};

static int __init et_init(void)
{
	et_results = vzalloc(ET_RESULTS);
	if (!et_results)
		return -ENOMEM;
	et_dir = debugfs_create_dir("kofi_efa_test", NULL);
	debugfs_create_file("run", 0200, et_dir, NULL, &et_run_fops);
	debugfs_create_file("results", 0400, et_dir, NULL, &et_results_fops);
	debugfs_create_u32("depth", 0400, et_dir, &et_depth);
	return 0;
}
module_init(et_init);

static void __exit et_exit(void)
{
	debugfs_remove_recursive(et_dir);
	vfree(et_results);
}
module_exit(et_exit);
