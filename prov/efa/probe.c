// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The kernel verbs don't report whether a device has RDMA, so the provider tries: when the
 * device appears, before ULPs see it, a queue pair reads and writes a region of the same
 * device, and the data is compared. A status other than success means that the device lacks
 * the operation, and so does silence.
 *
 * The region is described as by fi_mr_reg(): large pages, a remote address below
 * the page size, data across a page boundary. If the device refuses that, simpler
 * descriptions are tried, and all regions are then described that way.
 *
 * The kernel verbs don't say either what a device writes in front of a received datagram. So
 * another queue pair sends a datagram to itself.
 */
#define pr_fmt(fmt) "kofi_efa: " fmt

#include <linux/delay.h>
#include <linux/log2.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string_helpers.h>
#include <linux/sysfs.h>
#include "destroy.h"
#include "dev.h"
#include "dma.h"
#include "mr.h"

/* Timeout: some devices are said to drop packets that they send to themselves. */
#define KEFA_PROBE_MS		1000
#define KEFA_PROBE_LEN		64
/* A datagram may get lost. */
#define KEFA_PROBE_DGRAMS	3
/* Bytes that a device may write in front of a datagram. */
#define KEFA_PROBE_PREFIX	40
#define KEFA_PROBE_DEPTH	16
/* Memory of the probe: half of it is a region, which doesn't begin at a page boundary. */
#define KEFA_PROBE_MEM		SZ_4M
#define KEFA_PROBE_OFF		24
/* Pages of a region with pages of PAGE_SIZE, a number that other users of EFA use. */
#define KEFA_PROBE_PAGES	128

enum kefa_rdma kefa_rdma_wanted;

static const char * const kefa_rdma_name[] = {
	[KEFA_RDMA_AUTO]	= "auto",
	[KEFA_RDMA_NONE]	= "none",
	[KEFA_RDMA_READ]	= "read",
	[KEFA_RDMA_WRITE]	= "write",
	[KEFA_RDMA_ALL]		= "all",
};

static int kefa_rdma_set(const char *val, const struct kernel_param *kp)
{
	int ret = sysfs_match_string(kefa_rdma_name, val);

	if (ret < 0)
		return ret;
	WRITE_ONCE(kefa_rdma_wanted, ret);
	return 0;
}

static int kefa_rdma_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%s\n", kefa_rdma_name[READ_ONCE(kefa_rdma_wanted)]);
}

static const struct kernel_param_ops kefa_rdma_ops = {
	.set = kefa_rdma_set,
	.get = kefa_rdma_get,
};
module_param_cb(rdma, &kefa_rdma_ops, NULL, 0644);
MODULE_PARM_DESC(rdma,
		 "RDMA operations to use on devices that are probed afterwards: auto (as probed), none, read, write, all");

/**
 * struct kefa_probe - state of a probe
 * @dev: the device
 * @pd: protection domain
 * @hq: queue pair, first for RDMA, then for datagrams
 * @ah: address handle of the device itself
 * @fr: region that is read and written
 * @sg: memory of the region
 * @mem: memory of the probe, with the local buffer at the start and the region in the
 *	middle
 * @order: allocation order of @mem
 * @dma: DMA address of @mem
 * @id: id of the work request that is waited for
 * @silent: the device didn't answer
 * @read: the device has RDMA read
 * @write: the device has RDMA write
 * @dgram: the device has datagrams
 * @prefix: bytes in front of a received datagram
 * @refused: objects that the device refused to destroy
 */
struct kefa_probe {
	struct kefa_dev		*dev;
	struct ib_pd		*pd;
	struct kefa_hw_qp	hq;
	struct ib_ah		*ah;
	struct kefa_frmr	fr;
	struct scatterlist	sg;
	void			*mem;
	unsigned int		order;
	dma_addr_t		dma;
	u64			id;
	bool			silent;
	bool			read;
	bool			write;
	bool			dgram;
	u32			prefix;
	struct kefa_refused	refused;
};

static void kefa_probe_event(void *arg)
{
}

static bool kefa_probe_polled(struct kefa_probe *probe, struct kefa_wc *done)
{
	struct ib_wc wc;
	int n;

	local_bh_disable();
	n = kefa_hw_poll(&probe->hq, &wc, 1);
	local_bh_enable();
	if (n != 1 || wc.wr_id != probe->id)
		return false;
	*done = kefa_wc_read(&wc);
	return true;
}

static bool kefa_probe_post(struct kefa_probe *probe, struct kefa_wr *wr)
{
	int ret;

	local_bh_disable();
	ret = kefa_hw_post_send(&probe->hq, &wr, 1);
	local_bh_enable();
	return !ret;
}

/* Return: whether the work request kefa_probe.id completed in time. */
static bool kefa_probe_wait(struct kefa_probe *probe, unsigned int ms, struct kefa_wc *done)
{
	unsigned long end = jiffies + msecs_to_jiffies(ms);

	do {
		if (kefa_probe_polled(probe, done))
			return true;
		usleep_range(50, 500);
	} while (time_before(jiffies, end) && !READ_ONCE(probe->dev->going));
	return kefa_probe_polled(probe, done);
}

/* Post a work request. Return: whether it completed successfully. */
static bool kefa_probe_try(struct kefa_probe *probe, struct kefa_wr *wr)
{
	struct kefa_wc done;

	probe->id = wr->send.wr_id;
	if (!kefa_probe_post(probe, wr))
		return false;
	if (kefa_probe_wait(probe, KEFA_PROBE_MS, &done))
		return !done.status;
	probe->silent = true;
	return false;
}

static bool kefa_probe_reg(struct kefa_probe *probe, int access)
{
	struct kefa_wr wr;

	if (kefa_describe(probe->dev, &probe->fr, &probe->sg, 1,
			  sg_dma_len(&probe->sg)))
		return false;
	kefa_wr_init(&wr, probe->pd);
	kefa_wr_reg(&wr, ++probe->id, probe->fr.mr,
		    IB_ACCESS_LOCAL_WRITE | access);
	return kefa_probe_try(probe, &wr);
}

/* Return: an offset in the region at which data crosses a page boundary, if there is one. */
static u32 kefa_probe_offset(const struct kefa_probe *probe)
{
	u64 start = sg_dma_address(&probe->sg);
	u64 at = round_up(start + KEFA_PROBE_LEN, probe->fr.mr->page_size) -
		 KEFA_PROBE_LEN / 2;

	return at + KEFA_PROBE_LEN <= start + sg_dma_len(&probe->sg) ?
	       at - start : 0;
}

/* Read or write. Return: whether the device reports success and the data is right. */
static bool kefa_probe_rdma(struct kefa_probe *probe, bool write)
{
	u32 off = kefa_probe_offset(probe);
	dma_addr_t remote = sg_dma_address(&probe->sg) + off;
	void *there = probe->mem + (remote - probe->dma);
	void *from = write ? probe->mem : there;
	void *to = write ? there : probe->mem;
	struct device *dma = probe->dev->dma;
	struct kefa_wr wr;

	if (probe->silent)
		return false;
	get_random_bytes(from, KEFA_PROBE_LEN);
	memset(to, 0, KEFA_PROBE_LEN);
	kefa_dma_sync_for_device(dma, probe->dma, KEFA_PROBE_LEN,
				 DMA_BIDIRECTIONAL);
	kefa_dma_sync_for_device(dma, remote, KEFA_PROBE_LEN,
				 DMA_BIDIRECTIONAL);
	kefa_wr_init(&wr, probe->pd);
	kefa_wr_rdma(&wr, ++probe->id, write, probe->ah, probe->hq.qpn,
		     probe->hq.qkey, probe->fr.mr->iova + off,
		     probe->fr.mr->rkey);
	kefa_wr_sge(&wr, probe->dma, KEFA_PROBE_LEN);
	if (!kefa_probe_try(probe, &wr))
		return false;
	kefa_dma_sync_for_cpu(dma, write ? remote : probe->dma, KEFA_PROBE_LEN,
			      DMA_BIDIRECTIONAL);
	return !memcmp(from, to, KEFA_PROBE_LEN);
}

/* Register the region. A device without RDMA write may refuse that access. */
static void kefa_probe_region(struct kefa_probe *probe)
{
	bool write = kefa_probe_reg(probe, IB_ACCESS_REMOTE_READ |
					   IB_ACCESS_REMOTE_WRITE);

	if (!write && (probe->silent ||
		       !kefa_probe_reg(probe, IB_ACCESS_REMOTE_READ)))
		return;
	probe->read = kefa_probe_rdma(probe, false);
	/* Silence on a read doesn't imply silence on a write. */
	if (probe->silent && !READ_ONCE(probe->dev->going))
		probe->silent = false;
	if (write)
		probe->write = kefa_probe_rdma(probe, true);
}

/* Probe with one way to describe regions. Return: 0, or a negative errno. */
static int kefa_probe_way(struct kefa_probe *probe, u64 page_sizes, bool raw)
{
	struct kefa_dev *dev = probe->dev;
	size_t size = PAGE_SIZE << probe->order, len = size / 2;
	struct kefa_frmr *fr = &probe->fr;

	dev->page_sizes = page_sizes;
	dev->raw_iova = raw;
	if (page_sizes == PAGE_SIZE)
		len = min_t(size_t, len, KEFA_PROBE_PAGES * PAGE_SIZE);
	sg_init_table(&probe->sg, 1);
	sg_dma_address(&probe->sg) = probe->dma + size / 4 + KEFA_PROBE_OFF;
	sg_dma_len(&probe->sg) = len;
	fr->pages = kefa_pages(&probe->sg, 1,
			       kefa_page_size(dev, &probe->sg, 1, len), len);
	fr->mr = kefa_create_mr(&probe->refused, probe->pd, fr->pages);
	if (IS_ERR(fr->mr))
		return PTR_ERR(fr->mr);
	kefa_probe_region(probe);
	kefa_destroy_mr(&probe->refused, fr->mr);
	return 0;
}

/* Find a way to describe regions. If none works, use the first one. */
static int kefa_probe_run(struct kefa_probe *probe)
{
	const struct {
		u64	page_sizes;
		bool	raw;
	} ways[] = {
		{ probe->dev->page_size_cap, false },
		{ PAGE_SIZE, false },
		{ PAGE_SIZE, true },
	};
	struct kefa_dev *dev = probe->dev;
	int i, ret;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		ret = kefa_probe_way(probe, ways[i].page_sizes, ways[i].raw);
		if (ret || probe->read || probe->write || probe->silent)
			break;
	}
	if (probe->read || probe->write) {
		if (i)
			dev_info(&dev->ibdev->dev,
				 "kofi_efa: regions have pages of %lu bytes%s\n",
				 PAGE_SIZE, dev->raw_iova ?
				 ", and DMA addresses as remote addresses" : "");
		return 0;
	}
	dev->page_sizes = ways[0].page_sizes;
	dev->raw_iova = ways[0].raw;
	return ret;
}

/* --- datagrams --- */

static bool kefa_probe_recv(struct kefa_probe *probe)
{
	struct kefa_recv_wr recv;
	int ret;

	kefa_recv_wr_init(&recv, probe->pd);
	recv.wr.wr_id = ++probe->id;
	recv.wr.num_sge = 1;
	recv.sge[0].addr = probe->dma;
	recv.sge[0].length = 2 * KEFA_PROBE_LEN;
	local_bh_disable();
	ret = kefa_hw_post_recv(&probe->hq, &recv, 1);
	local_bh_enable();
	return !ret;
}

/* Send a datagram, again if it is lost. Return: whether one arrived. */
static bool kefa_probe_send(struct kefa_probe *probe, const u8 *data, u32 len, struct kefa_wc *done)
{
	struct kefa_wr wr;
	int i;

	kefa_wr_init(&wr, probe->pd);
	for (i = 0; i < KEFA_PROBE_DGRAMS && !READ_ONCE(probe->dev->going); i++) {
		kefa_wr_send_ud(&wr, 0, probe->ah, probe->hq.qpn, probe->hq.qkey);
		kefa_wr_inline(&wr, data, len);
		if (!kefa_probe_post(probe, &wr))
			return false;
		if (kefa_probe_wait(probe, KEFA_PROBE_MS / KEFA_PROBE_DGRAMS, done))
			return !done->status;
	}
	return false;
}

/* Find out whether a datagram arrives, and what is in front of it. */
static void kefa_probe_dgram(struct kefa_probe *probe)
{
	const struct kefa_hw_qp_attr attr = {
		.tx_depth	= KEFA_PROBE_DEPTH,
		.rx_depth	= KEFA_PROBE_DEPTH,
		.rnr_retry	= KEFA_RNR_UNSET,
		.ud		= true,
	};
	struct kefa_wc done;
	u8 data[16];

	kefa_destroy_qp(&probe->refused, &probe->hq);
	if (probe->dev->dead || kefa_create_qp(&probe->refused, &probe->hq, &attr))
		return;
	get_random_bytes(data, sizeof(data));
	kefa_dma_sync_for_device(probe->dev->dma, probe->dma, 2 * KEFA_PROBE_LEN,
				 DMA_BIDIRECTIONAL);
	if (!kefa_probe_recv(probe) || !kefa_probe_send(probe, data, sizeof(data), &done))
		return;
	probe->prefix = done.len - sizeof(data);
	if (probe->prefix && probe->prefix != KEFA_PROBE_PREFIX)
		return;
	kefa_dma_sync_for_cpu(probe->dev->dma, probe->dma, 2 * KEFA_PROBE_LEN,
			      DMA_BIDIRECTIONAL);
	probe->dgram = !memcmp(probe->mem + probe->prefix, data, sizeof(data));
}

static int kefa_probe_open_qp(struct kefa_probe *probe)
{
	const struct kefa_hw_qp_attr attr = {
		.tx_depth = KEFA_PROBE_DEPTH,
		.rx_depth = KEFA_PROBE_DEPTH,
		.rnr_retry = FI_EFA_RNR_INFINITE,
	};
	struct kefa_dev *dev = probe->dev;
	int ret;

	probe->hq.pd = probe->pd;
	probe->hq.event = kefa_probe_event;
	dev->rnr_retry_ok = true;
	ret = kefa_create_qp(&probe->refused, &probe->hq, &attr);
	if (ret != -EINVAL && ret != -EOPNOTSUPP)
		return ret;
	/* Some devices refuse a limit of retries. */
	dev->rnr_retry_ok = false;
	if (!kefa_create_qp(&probe->refused, &probe->hq, &attr))
		return 0;
	dev->rnr_retry_ok = true;
	return ret;
}

/* Members that weren't created are NULL or an ERR_PTR(). */
static void kefa_probe_close(struct kefa_probe *probe)
{
	if (probe->hq.qp)
		kefa_destroy_qp(&probe->refused, &probe->hq);
	if (!IS_ERR_OR_NULL(probe->ah))
		kefa_destroy_ah(&probe->refused, probe->ah);
	kefa_refused_abandon(&probe->refused);
	if (probe->refused.broken)
		kefa_hw_pd_abandon(probe->pd);
	else
		kefa_hw_pd_destroy(probe->pd);
}

static int kefa_probe_open(struct kefa_probe *probe)
{
	int ret = kefa_probe_open_qp(probe);

	if (ret)
		return ret;
	probe->ah = kefa_create_ah(&probe->refused, probe->pd, probe->dev->gid);
	return PTR_ERR_OR_ZERO(probe->ah);
}

static int kefa_probe_mapped(struct kefa_probe *probe)
{
	int ret;

	probe->pd = kefa_hw_pd_create(probe->dev->ibdev);
	if (IS_ERR(probe->pd))
		return PTR_ERR(probe->pd);
	ret = kefa_probe_open(probe) ?: kefa_probe_run(probe);
	if (!ret)
		kefa_probe_dgram(probe);
	kefa_probe_close(probe);
	if (probe->dev->dead || READ_ONCE(probe->dev->going))
		return -ENODEV;
	return ret;
}

/* Allocate and map contiguous memory, as much of KEFA_PROBE_MEM as is available. */
static int kefa_probe_map(struct kefa_probe *probe)
{
	struct device *dma = probe->dev->dma;
	size_t size = min_t(size_t, KEFA_PROBE_MEM,
			    rounddown_pow_of_two(kefa_dma_max_map(dma)));
	unsigned int order;

	for (order = get_order(size); order; order--) {
		probe->mem = (void *)__get_free_pages(GFP_KERNEL | __GFP_NOWARN |
						      __GFP_NORETRY | __GFP_ZERO,
						      order);
		if (!probe->mem)
			continue;
		probe->order = order;
		probe->dma = kefa_dma_map(dma, virt_to_phys(probe->mem), PAGE_SIZE << order,
					  DMA_BIDIRECTIONAL);
		if (!dma_mapping_error(dma, probe->dma))
			return 0;
		free_pages((unsigned long)probe->mem, order);
	}
	return -ENOMEM;
}

static void kefa_probe_unmap(struct kefa_probe *probe)
{
	kefa_dma_unmap(probe->dev->dma, probe->dma, PAGE_SIZE << probe->order,
		       DMA_BIDIRECTIONAL);
	/* If an object was abandoned, the device may still write to the memory. */
	if (!probe->refused.broken || probe->dev->silenced)
		free_pages((unsigned long)probe->mem, probe->order);
}

/* The administrator's parameter overrides the result of the probe. */
static void kefa_probe_result(struct kefa_probe *probe)
{
	struct kefa_dev *dev = probe->dev;
	enum kefa_rdma rdma = READ_ONCE(kefa_rdma_wanted);

	dev->rdma_read = rdma == KEFA_RDMA_AUTO ? probe->read :
			 rdma == KEFA_RDMA_READ || rdma == KEFA_RDMA_ALL;
	dev->rdma_write = rdma == KEFA_RDMA_AUTO ? probe->write :
			  rdma == KEFA_RDMA_WRITE || rdma == KEFA_RDMA_ALL;
	dev->dgram = probe->dgram;
	dev->ud_prefix = probe->dgram ? probe->prefix : 0;
	if (dev->rdma_read != probe->read || dev->rdma_write != probe->write)
		dev_info(&dev->ibdev->dev,
			 "kofi_efa: the probe found RDMA read %s, write %s; the parameter rdma=%s overrides it\n",
			 str_yes_no(probe->read), str_yes_no(probe->write),
			 kefa_rdma_name[rdma]);
}

/**
 * kefa_probe_dev() - find out which RDMA operations a device supports, and whether datagrams
 * @dev: the device, on which no domain is open
 *
 * Context: Process context, under kefa_dev.lock; sleeps for some seconds at worst.
 * Return: 0, or a negative errno when the device is unusable: -ENXIO if it has no event
 * queues for completions.
 */
int kefa_probe_dev(struct kefa_dev *dev)
{
	struct kefa_probe *probe;
	int ret;

	lockdep_assert_held(&dev->lock);
	probe = kzalloc(sizeof(*probe), GFP_KERNEL);
	if (!probe)
		return -ENOMEM;
	probe->dev = dev;
	kefa_refused_init(&probe->refused, dev);
	ret = kefa_probe_map(probe);
	if (!ret) {
		ret = kefa_probe_mapped(probe);
		kefa_probe_unmap(probe);
	}
	if (!ret)
		kefa_probe_result(probe);
	kfree(probe);
	return ret;
}
