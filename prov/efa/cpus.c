// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * CPUs for endpoints whose ULP doesn't ask for one with FI_AFFINITY. An endpoint's interrupt
 * and its worker, which calls handlers, run on the same CPU, so that the interrupt doesn't
 * wake another CPU.
 */
#include <linux/cpumask.h>
#include <linux/spinlock.h>
#include <linux/sysfs.h>
#include "kefa.h"

static DEFINE_SPINLOCK(kefa_cpus_lock);	/* protects the next two variables */
static struct cpumask kefa_cpus;
static unsigned int kefa_cpus_last;

static int kefa_cpus_set(const char *val, const struct kernel_param *kp)
{
	cpumask_var_t cpus;
	int ret;

	if (!alloc_cpumask_var(&cpus, GFP_KERNEL))
		return -ENOMEM;
	ret = cpulist_parse(val, cpus);
	if (!ret && !cpumask_subset(cpus, cpu_possible_mask))
		ret = -EINVAL;
	if (!ret) {
		spin_lock(&kefa_cpus_lock);
		cpumask_copy(&kefa_cpus, cpus);
		kefa_cpus_last = nr_cpu_ids;
		spin_unlock(&kefa_cpus_lock);
	}
	free_cpumask_var(cpus);
	return ret;
}

static int kefa_cpus_get(char *buf, const struct kernel_param *kp)
{
	int len;

	spin_lock(&kefa_cpus_lock);
	len = sysfs_emit(buf, "%*pbl\n", cpumask_pr_args(&kefa_cpus));
	spin_unlock(&kefa_cpus_lock);
	return len;
}

const struct kernel_param_ops kefa_cpus_ops = {
	.set = kefa_cpus_set,
	.get = kefa_cpus_get,
};
module_param_cb(cpus, &kefa_cpus_ops, NULL, 0644);
MODULE_PARM_DESC(cpus,
		 "list of CPUs, assigned in turn to endpoints that are enabled afterwards and whose ULP asks for none; if empty, the CPU that gets the interrupt");

/**
 * kefa_cpus_next() - choose a CPU for an endpoint whose ULP doesn't ask for one
 *
 * Context: Process context.
 * Return: the next online CPU of the parameter, or -1 if there is none.
 */
int kefa_cpus_next(void)
{
	unsigned int i, cpu;
	int found = -1;

	spin_lock(&kefa_cpus_lock);
	for (i = cpumask_weight(&kefa_cpus); i && found < 0; i--) {
		cpu = kefa_cpus_last < nr_cpu_ids ?
		      cpumask_next(kefa_cpus_last, &kefa_cpus) : nr_cpu_ids;
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(&kefa_cpus);
		kefa_cpus_last = cpu;
		if (cpu_online(cpu))
			found = cpu;
	}
	spin_unlock(&kefa_cpus_lock);
	return found;
}
