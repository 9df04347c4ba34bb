// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Conformance test of EFA kernel verbs, for any device that has them:
 *
 *   echo "DEVICE [PEER [CASE]]" > /sys/kernel/debug/efa_verbs_conformance/run
 *   cat /sys/kernel/debug/efa_verbs_conformance/results
 *
 * runs all cases, or one, between two queue pairs on DEVICE and PEER, and prints TAP.
 * A case's name is followed by whose behaviour it tests. Cases that may crash the kernel
 * run only with unsafe=1. For two machines see remote.c, for single commands probe.c.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "conformance.h"
#include <efa_verbs_check.h>

MODULE_DESCRIPTION("Conformance test of EFA kernel verbs");
MODULE_LICENSE("Dual BSD/GPL");

static bool unsafe;
module_param(unsafe, bool, 0644);
MODULE_PARM_DESC(unsafe, "also run cases that may crash the kernel");

static unsigned int messages = 2000;
module_param(messages, uint, 0644);
MODULE_PARM_DESC(messages, "number of messages that long cases send");

#define RESULTS_SIZE	(256 << 10)

static DEFINE_MUTEX(run_lock);	/* protects the results; one run at a time */
static char *results;
static size_t results_len;
static struct dentry *dir;

static DEFINE_MUTEX(devices_lock);	/* protects devices */
static LIST_HEAD(devices);

struct known_device {
	struct list_head list;
	struct ib_device *ibdev;
};

static const struct test_case * const all_cases[] = {
	object_cases, post_cases, data_cases, memory_cases, life_cases,
};

void ct_printf(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	results_len += vscnprintf(results + results_len,
				  RESULTS_SIZE - results_len, fmt, args);
	va_end(args);
}

void ct_failed(struct ct *ct, const char *func, int line, const char *what,
	       long long got)
{
	ct->failed++;
	ct_printf("# %s:%d: %s (got %lld)\n", func, line, what, got);
}

static int add_one(struct ib_device *ibdev)
{
	struct known_device *known;

	if (ibdev->ops.driver_id != RDMA_DRIVER_EFA)
		return -EOPNOTSUPP;
	known = kzalloc(sizeof(*known), GFP_KERNEL);
	if (!known)
		return -ENOMEM;
	known->ibdev = ibdev;
	mutex_lock(&devices_lock);
	list_add_tail(&known->list, &devices);
	mutex_unlock(&devices_lock);
	return 0;
}

static void remove_one(struct ib_device *ibdev, void *data)
{
	struct known_device *known, *next;

	/* Wait for a run in progress, so that no device is removed while in use. */
	mutex_lock(&run_lock);
	remote_stop();
	probe_close();
	mutex_lock(&devices_lock);
	list_for_each_entry_safe(known, next, &devices, list) {
		if (known->ibdev != ibdev)
			continue;
		list_del(&known->list);
		kfree(known);
	}
	mutex_unlock(&devices_lock);
	mutex_unlock(&run_lock);
}

static struct ib_client client = {
	.name = "efa_verbs_conformance",
	.add = add_one,
	.remove = remove_one,
};

static struct ib_device *find_device(const char *name)
{
	struct ib_device *found = NULL;
	struct known_device *known;

	mutex_lock(&devices_lock);
	list_for_each_entry(known, &devices, list)
		if (!strcmp(dev_name(&known->ibdev->dev), name))
			found = known->ibdev;
	mutex_unlock(&devices_lock);
	return found;
}

static int open_ends(struct ct *ct)
{
	int err;

	err = ep_open(&ct->a, ct->dev_a, &ct->test->opts) ?:
	      ep_open(&ct->b, ct->dev_b, &ct->test->opts);
	if (err)
		return err;
	ct->a.other = &ct->b;
	ct->b.other = &ct->a;
	return ep_connect(&ct->a, &ct->b.gid) ?: ep_connect(&ct->b, &ct->a.gid);
}

static const char * const of_name[] = {
	[DRIVER] = "driver", [DEVICE] = "device", [BOTH] = "both",
};

static bool run_case(struct ct *ct, const struct test_case *test, int number)
{
	unsigned long start = jiffies;
	int err;

	ct->test = test;
	ct->failed = 0;
	ct->expects = 0;
	err = open_ends(ct);
	if (!EXPECT_EQ(ct, err, 0))
		goto out;
	test->run(ct);
	/* A case without expectations can't fail, so it must have some. */
	EXPECT(ct, ct->expects > 1);
out:
	ep_close(&ct->a);
	ep_close(&ct->b);
	ct_printf("%s %d - %s [%s] # %u ms\n", ct->failed ? "not ok" : "ok",
		  number, test->name, of_name[test->of],
		  jiffies_to_msecs(jiffies - start));
	return !ct->failed;
}

static int run_cases(struct ct *ct, const char *only)
{
	const struct test_case *test;
	int i, n = 0, bad = 0;

	for (i = 0; i < ARRAY_SIZE(all_cases); i++) {
		for (test = all_cases[i]; test->name; test++) {
			if (only && strcmp(only, test->name))
				continue;
			if (test->unsafe && !unsafe)
				continue;
			if (test->two_devices && ct->dev_a == ct->dev_b) {
				ct_printf("ok %d - %s # SKIP needs two devices\n",
					  ++n, test->name);
				continue;
			}
			bad += !run_case(ct, test, ++n);
			cond_resched();
		}
	}
	ct_printf("1..%d\n", n);
	if (!n)
		ct_printf("not ok 1 - there is no case %s\n", only);
	return bad;
}

static int run(char *args)
{
	const char *name = strsep(&args, " ");
	const char *peer = strsep(&args, " ");
	const char *only = strsep(&args, " ");
	struct ct *ct;

	ct = kzalloc(sizeof(*ct), GFP_KERNEL);
	if (!ct)
		return -ENOMEM;
	ct->messages = messages;
	ct->dev_a = find_device(name);
	ct->dev_b = find_device(peer ?: name);
	results_len = 0;
	if (!ct->dev_a) {
		kfree(ct);
		return -ENODEV;
	}
	ct_printf("TAP version 13\n");
	if (ct->dev_b)
		run_cases(ct, only);
	else
		remote_run(ct, peer, only);
	kfree(ct);
	return 0;
}

static char *copy_line(const char __user *ubuf, size_t count)
{
	char *line = memdup_user_nul(ubuf, min_t(size_t, count, 256));

	return IS_ERR(line) ? line : strim(line);
}

static ssize_t run_write(struct file *file, const char __user *ubuf,
			 size_t count, loff_t *pos)
{
	char *line = copy_line(ubuf, count);
	int err;

	if (IS_ERR(line))
		return PTR_ERR(line);
	mutex_lock(&run_lock);
	err = run(line);
	mutex_unlock(&run_lock);
	kfree(line);
	return err ?: count;
}

static const struct file_operations run_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = run_write,
};

static ssize_t results_read(struct file *file, char __user *ubuf, size_t count,
			    loff_t *pos)
{
	ssize_t ret;

	mutex_lock(&run_lock);
	ret = simple_read_from_buffer(ubuf, count, pos, results, results_len);
	mutex_unlock(&run_lock);
	return ret;
}

static const struct file_operations results_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = results_read,
};

static ssize_t serve_write(struct file *file, const char __user *ubuf,
			   size_t count, loff_t *pos)
{
	char *line = copy_line(ubuf, count);
	struct ib_device *ibdev;
	int err = 0;

	if (IS_ERR(line))
		return PTR_ERR(line);
	mutex_lock(&run_lock);
	remote_stop();
	if (strcmp(line, "stop")) {
		ibdev = find_device(line);
		err = ibdev ? remote_serve(ibdev) : -ENODEV;
	}
	mutex_unlock(&run_lock);
	kfree(line);
	return err ?: count;
}

static ssize_t serve_read(struct file *file, char __user *ubuf, size_t count,
			  loff_t *pos)
{
	char text[160];
	ssize_t ret;

	mutex_lock(&run_lock);
	ret = remote_local(text, sizeof(text));
	mutex_unlock(&run_lock);
	return ret < 0 ? ret :
	       simple_read_from_buffer(ubuf, count, pos, text, ret);
}

static const struct file_operations serve_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = serve_read,
	.write = serve_write,
};

static ssize_t peer_write(struct file *file, const char __user *ubuf,
			  size_t count, loff_t *pos)
{
	char *line = copy_line(ubuf, count);
	int err;

	if (IS_ERR(line))
		return PTR_ERR(line);
	mutex_lock(&run_lock);
	err = remote_peer(line);
	mutex_unlock(&run_lock);
	kfree(line);
	return err ?: count;
}

static const struct file_operations peer_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = peer_write,
};

static int probe_line(char *line)
{
	struct ib_device *ibdev = find_device(strsep(&line, " "));
	const char *what = strsep(&line, " ");
	u32 count = 1, arg = 0;

	if (!ibdev || !what)
		return -EINVAL;
	if (line && sscanf(line, "%u %u", &count, &arg) < 1)
		return -EINVAL;
	return probe_run(ibdev, what, count, arg);
}

static ssize_t probe_write(struct file *file, const char __user *ubuf,
			   size_t count, loff_t *pos)
{
	char *line = copy_line(ubuf, count);
	int err;

	if (IS_ERR(line))
		return PTR_ERR(line);
	mutex_lock(&run_lock);
	err = probe_line(line);
	mutex_unlock(&run_lock);
	kfree(line);
	return err ?: count;
}

static ssize_t probe_read(struct file *file, char __user *ubuf, size_t count,
			  loff_t *pos)
{
	ssize_t ret;

	mutex_lock(&run_lock);
	ret = probe_answer(ubuf, count, pos);
	mutex_unlock(&run_lock);
	return ret;
}

static const struct file_operations probe_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = probe_read,
	.write = probe_write,
};

static int __init conformance_init(void)
{
	int err;

	results = vzalloc(RESULTS_SIZE);
	if (!results)
		return -ENOMEM;
	err = ib_register_client(&client);
	if (err) {
		vfree(results);
		return err;
	}
	dir = debugfs_create_dir("efa_verbs_conformance", NULL);
	debugfs_create_file("run", 0200, dir, NULL, &run_fops);
	debugfs_create_file("results", 0400, dir, NULL, &results_fops);
	debugfs_create_file("serve", 0600, dir, NULL, &serve_fops);
	debugfs_create_file("peer", 0200, dir, NULL, &peer_fops);
	debugfs_create_file("probe", 0600, dir, NULL, &probe_fops);
	return 0;
}

static void __exit conformance_exit(void)
{
	debugfs_remove_recursive(dir);
	ib_unregister_client(&client);
	vfree(results);
}

module_init(conformance_init);
module_exit(conformance_exit);
