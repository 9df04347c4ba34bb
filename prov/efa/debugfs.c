// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * /sys/kernel/debug/kofi_efa has a file for each device, with its open objects and their
 * counters, and a file to probe a device again. The files are for people, and their format
 * may change at any time.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include "ah.h"
#include "dev.h"
#include "domain.h"
#include "ep.h"
#include "kefa.h"

static struct dentry *kefa_debugfs;

static unsigned int kefa_side_busy(const struct kefa_side *side)
{
	return side->base.size - READ_ONCE(side->nfree);
}

static void kefa_show_ep(struct seq_file *s, struct kefa_ep *ep)
{
	const struct kefa_ep_stats *st = &ep->stats;

	seq_printf(s, "  ep qp %u: tx %u/%u rx %u/%u\n", ep->hq.qpn,
		   kefa_side_busy(&ep->tx), ep->tx.base.size,
		   kefa_side_busy(&ep->rx), ep->rx.base.size);
	seq_printf(s, "    sends %llu recvs %llu reads %llu writes %llu\n",
		   st->sends, st->recvs, st->reads, st->writes);
	seq_printf(s, "    tx_bytes %llu rx_bytes %llu doorbells %llu events %lld\n",
		   st->tx_bytes, st->rx_bytes, st->doorbells,
		   atomic64_read(&ep->events));
	seq_printf(s, "    bounced %llu again %llu map_failed %llu errors %llu rnr %llu stale %llu\n",
		   st->bounced, st->again, st->map_failed, st->errors,
		   st->rnr, st->stale);
	seq_printf(s, "    regs %u done %u revoked %llu\n", ep->nregs, ep->nregs_done,
		   st->revoked);
	if (ep->kind->show)
		ep->kind->show(s, ep);
}

static void kefa_show_domain(struct seq_file *s, struct kefa_domain *dom)
{
	const struct kefa_mr_stats *st = &dom->mrq.stats;
	struct kefa_ep *ep;
	struct kefa_ah *ah;
	u32 ahs = 0;

	list_for_each_entry(ah, &dom->ahs, list)
		ahs++;
	seq_printf(s, "domain: address_handles %u regions %u\n", ahs,
		   dom->nfrmrs);
	seq_printf(s, "  regs %llu invals %llu revoked %llu again %llu map_failed %llu bounced %llu unreachable %llu dry %llu errors %llu stale %llu\n",
		   st->regs, st->invals, st->revoked, st->again, st->map_failed,
		   st->bounced, st->unreachable, st->dry, st->errors, st->stale);
	list_for_each_entry(ep, &dom->eps, list)
		kefa_show_ep(s, ep);
}

static int kefa_dev_show(struct seq_file *s, void *unused)
{
	static const char * const states[] = {
		[KEFA_DEV_PROBING]	= "probing",
		[KEFA_DEV_USABLE]	= "usable",
		[KEFA_DEV_UNUSABLE]	= "unusable",
	};
	struct kefa_dev *dev = s->private;
	struct kefa_domain *dom;

	kefa_dev_lock(dev);
	seq_printf(s, "%s: gid %pI6c mtu %u rdma_read %d rdma_write %d refused %u set_aside %u %s\n",
		   dev->name, dev->gid, dev->mtu, dev->rdma_read,
		   dev->rdma_write, dev->refused, dev->set_aside,
		   states[READ_ONCE(dev->state)]);
	list_for_each_entry(dom, &dev->domains, list)
		kefa_show_domain(s, dom);
	kefa_dev_unlock(dev);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(kefa_dev);

void kefa_debugfs_add(struct kefa_dev *dev)
{
	dev->debugfs = debugfs_create_file(dev->name, 0400, kefa_debugfs, dev,
					   &kefa_dev_fops);
}

/* Remove the file and wait for its readers, which take none of the caller's locks. */
void kefa_debugfs_del(struct kefa_dev *dev)
{
	debugfs_remove(dev->debugfs);
}

static ssize_t kefa_probe_write(struct file *file, const char __user *from,
				size_t len, loff_t *pos)
{
	char name[FI_NAME_MAX];
	ssize_t n;
	int ret;

	n = simple_write_to_buffer(name, sizeof(name) - 1, pos, from, len);
	if (n <= 0)
		return n;
	name[n] = 0;
	ret = kefa_dev_probe_again(strim(name));
	return ret ?: n;
}

static const struct file_operations kefa_probe_fops = {
	.owner	= THIS_MODULE,
	.open	= simple_open,
	.write	= kefa_probe_write,
};

void kefa_debugfs_init(void)
{
	kefa_debugfs = debugfs_create_dir("kofi_efa", NULL);
	debugfs_create_file("probe", 0200, kefa_debugfs, NULL, &kefa_probe_fops);
}

void kefa_debugfs_fini(void)
{
	debugfs_remove(kefa_debugfs);
}
