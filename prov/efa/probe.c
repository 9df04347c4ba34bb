// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Kernel users can't ask a device whether it has RDMA, so it is tried: when the
 * device appears, before anybody is told, a queue pair writes to and reads from
 * a page of its own. A status other than success is a no, and so is silence.
 */
#include <linux/delay.h>
#include <linux/slab.h>
#include "destroy.h"
#include "dev.h"
#include "dma.h"

/* Some devices are said to drop what they send to themselves. */
#define KEFA_PROBE_MS		1000
#define KEFA_PROBE_LEN		64
#define KEFA_PROBE_DEPTH	16

/**
 * struct kefa_probe - what a probe is made with
 * @dev: the device
 * @pd: protection domain
 * @hq: queue pair
 * @ah: leads back
 * @mr: region that is read and written
 * @sg: its memory
 * @page: first half local, second half the region's
 * @dma: its DMA address
 * @id: of the last work request
 * @made: @hq is to be unmade
 * @refused: what the device refused to destroy
 */
struct kefa_probe {
	struct kefa_dev		*dev;
	struct ib_pd		*pd;
	struct kefa_hw_qp	hq;
	struct ib_ah		*ah;
	struct ib_mr		*mr;
	struct scatterlist	sg;
	void			*page;
	dma_addr_t		dma;
	u64			id;
	bool			made;
	struct kefa_refused	refused;
};

static void kefa_probe_event(void *arg)
{
}

static bool kefa_probe_polled(struct kefa_probe *probe, u32 *status)
{
	struct ib_wc wc;
	int n;

	local_bh_disable();
	n = kefa_hw_poll(&probe->hq, &wc, 1);
	local_bh_enable();
	if (n != 1 || wc.wr_id != probe->id)
		return false;
	*status = kefa_wc(&wc).status;
	return true;
}

/* Whether the device says that it did it. */
static bool kefa_probe_try(struct kefa_probe *probe, struct kefa_wr *wr)
{
	unsigned long end = jiffies + msecs_to_jiffies(KEFA_PROBE_MS);
	u32 status;
	int ret;

	probe->id = wr->send.wr_id;
	local_bh_disable();
	ret = kefa_hw_post_send(&probe->hq, wr, 1);
	local_bh_enable();
	if (ret)
		return false;
	do {
		if (kefa_probe_polled(probe, &status))
			return !status;
		usleep_range(50, 500);
	} while (time_before(jiffies, end) && !READ_ONCE(probe->dev->going));
	return kefa_probe_polled(probe, &status) && !status;
}

static bool kefa_probe_reg(struct kefa_probe *probe, int access)
{
	struct kefa_wr wr;

	sg_init_table(&probe->sg, 1);
	sg_dma_address(&probe->sg) = probe->dma + PAGE_SIZE / 2;
	sg_dma_len(&probe->sg) = PAGE_SIZE / 2;
	if (kefa_hw_mr_map(probe->mr, &probe->sg, 1, PAGE_SIZE) != 1)
		return false;
	kefa_wr_init(&wr, probe->pd);
	kefa_wr_reg(&wr, ++probe->id, probe->mr,
		    IB_ACCESS_LOCAL_WRITE | access);
	return kefa_probe_try(probe, &wr);
}

static bool kefa_probe_rdma(struct kefa_probe *probe, bool write)
{
	struct kefa_wr wr;

	kefa_wr_init(&wr, probe->pd);
	kefa_wr_rdma(&wr, ++probe->id, write, probe->ah, probe->hq.qpn,
		     probe->hq.qkey, probe->mr->iova, probe->mr->rkey);
	kefa_wr_sge(&wr, probe->dma, KEFA_PROBE_LEN);
	return kefa_probe_try(probe, &wr);
}

/* A device that can't write may refuse to register memory for it. */
static void kefa_probe_run(struct kefa_probe *probe)
{
	bool write = kefa_probe_reg(probe, IB_ACCESS_REMOTE_READ |
					   IB_ACCESS_REMOTE_WRITE);

	if (!write && !kefa_probe_reg(probe, IB_ACCESS_REMOTE_READ))
		return;
	probe->dev->rdma_read = kefa_probe_rdma(probe, false);
	if (write)
		probe->dev->rdma_write = kefa_probe_rdma(probe, true);
}

static int kefa_probe_open_qp(struct kefa_probe *probe)
{
	const struct kefa_hw_qp_attr attr = {
		.tx_depth = KEFA_PROBE_DEPTH,
		.rx_depth = KEFA_PROBE_DEPTH,
		.rnr_retry = FI_EFA_RNR_INFINITE,
	};

	probe->hq.pd = probe->pd;
	probe->hq.event = kefa_probe_event;
	return kefa_create_qp(&probe->refused, &probe->hq, &attr);
}

/* What is missing of it is NULL or an error. */
static void kefa_probe_close(struct kefa_probe *probe)
{
	if (probe->made)
		kefa_destroy_qp(&probe->refused, &probe->hq);
	if (!IS_ERR_OR_NULL(probe->mr))
		kefa_destroy_mr(&probe->refused, probe->mr);
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
	probe->made = true;
	probe->ah = kefa_hw_ah_create(probe->pd, probe->dev->gid);
	if (IS_ERR(probe->ah))
		return PTR_ERR(probe->ah);
	probe->mr = kefa_hw_mr_create(probe->pd, 1);
	return PTR_ERR_OR_ZERO(probe->mr);
}

static int kefa_probe_mapped(struct kefa_probe *probe)
{
	int ret;

	probe->pd = kefa_hw_pd_create(probe->dev->ibdev);
	if (IS_ERR(probe->pd))
		return PTR_ERR(probe->pd);
	ret = kefa_probe_open(probe);
	if (!ret)
		kefa_probe_run(probe);
	kefa_probe_close(probe);
	if (probe->dev->dead || READ_ONCE(probe->dev->going))
		return -ENODEV;
	return ret;
}

/**
 * kefa_probe() - find out what a device can do
 * @dev: the device, on which no domain is open
 *
 * Context: Process context, under kefa_dev.lock; sleeps for some seconds at worst.
 * Return: 0, or a negative errno when the device is of no use.
 */
int kefa_probe(struct kefa_dev *dev)
{
	struct kefa_probe *probe;
	int ret = -ENOMEM;

	lockdep_assert_held(&dev->lock);
	probe = kzalloc(sizeof(*probe), GFP_KERNEL);
	if (!probe)
		return -ENOMEM;
	probe->dev = dev;
	kefa_refused_init(&probe->refused, dev);
	probe->page = (void *)get_zeroed_page(GFP_KERNEL);
	if (!probe->page)
		goto out;
	probe->dma = kefa_dma_map(dev->dma, virt_to_phys(probe->page), PAGE_SIZE,
				  DMA_BIDIRECTIONAL);
	if (!dma_mapping_error(dev->dma, probe->dma)) {
		ret = kefa_probe_mapped(probe);
		kefa_dma_unmap(dev->dma, probe->dma, PAGE_SIZE, DMA_BIDIRECTIONAL);
	}
	/* The device may still write to it. */
	if (!probe->refused.broken || dev->silenced)
		free_page((unsigned long)probe->page);
out:
	kfree(probe);
	return ret;
}
