// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Registers, polling of registers that the driver writes, and interrupts.
 *
 * A driver doesn't read a register. It writes the register's offset, and spins until the
 * device has written the value by DMA. On a single CPU only an interrupt handler can answer
 * then, so a timer polls, ten times as often while the device is busy.
 */
#include <linux/bitfield.h>
#include <linux/io.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/pci_regs.h>

#include "pci.h"

#define IDLE_US		1000
#define BUSY_US		100
#define BUSY_FOR_US	3000

#define VERSION		0x0001	/* 0.1 */
#define CTRL_VERSION	0x000001	/* 0.0.1 */
#define RESET_TIMEOUT	31	/* the maximum of the field */

static ktime_t us(u32 n)
{
	return ns_to_ktime(n * NSEC_PER_USEC);
}

static u32 reg(struct efasim_fn *fn, u32 off)
{
	return readl(fn->regs + off);
}

static u32 dev_status(struct efasim_fn *fn)
{
	return fn->resetting ? EFASIM_DEV_STS_RESETTING : EFASIM_DEV_STS_READY;
}

/* Return: the value of a register. */
static u32 reg_value(struct efasim_fn *fn, u32 off)
{
	switch (off) {
	case EFASIM_REG_VERSION:
		return VERSION;
	case EFASIM_REG_CTRL_VERSION:
		return CTRL_VERSION;
	case EFASIM_REG_CAPS:
		return FIELD_PREP(EFASIM_CAPS_RESET_TIMEOUT, RESET_TIMEOUT) |
		       FIELD_PREP(EFASIM_CAPS_DMA_WIDTH, EFASIM_DMA_BITS);
	case EFASIM_REG_DEV_STS:
		return dev_status(fn);
	}
	return off < EFASIM_REGS_END && !(off % 4) ? reg(fn, off) : U32_MAX;
}

/* Answer a register read. The request is cleared before the answer is written. */
static bool answer_read(struct efasim_fn *fn)
{
	u32 ask = reg(fn, EFASIM_REG_MMIO_READ);
	struct efasim_mmio_resp resp;
	u64 addr;

	if (ask == U32_MAX)
		return false;
	writel(U32_MAX, fn->regs + EFASIM_REG_MMIO_READ);
	addr = (u64)reg(fn, EFASIM_REG_MMIO_RESP_HI) << 32 |
	       reg(fn, EFASIM_REG_MMIO_RESP_LO);
	resp.id = cpu_to_le16(FIELD_GET(EFASIM_MMIO_READ_ID, ask));
	resp.reg = cpu_to_le16(FIELD_GET(EFASIM_MMIO_READ_REG, ask));
	resp.value = cpu_to_le32(reg_value(fn, FIELD_GET(EFASIM_MMIO_READ_REG,
							 ask)));
	efasim_dev_dma(&fn->eng, addr + sizeof(resp.id), &resp.reg,
		       sizeof(resp) - sizeof(resp.id), EFASIM_MR_WRITE_TO);
	/* The driver takes the value once it sees the id. */
	dma_wmb();
	efasim_dev_dma(&fn->eng, addr, &resp.id, sizeof(resp.id),
		       EFASIM_MR_WRITE_TO);
	return true;
}

/* Handle resets. A reset ends when its work is done and the driver has cleared the bit. */
static void look_at_control(struct efasim_fn *fn)
{
	bool wanted = reg(fn, EFASIM_REG_DEV_CTL) & EFASIM_DEV_CTL_RESET;

	if (wanted && !fn->resetting) {
		fn->resetting = true;
		fn->reset_done = false;
		queue_work(fn->wq, &fn->reset_work);
	} else if (!wanted && fn->reset_done) {
		fn->resetting = false;
	}
}

/* The work item changes aq_index. If this reads a stale value, it queues the item needlessly. */
static bool look_at_aq(struct efasim_fn *fn)
{
	if (fn->resetting || !reg(fn, EFASIM_REG_AQ_CAPS) ||
	    (u16)reg(fn, EFASIM_REG_AQ_DB) == READ_ONCE(fn->aq_index))
		return false;
	queue_work(fn->wq, &fn->aq_work);
	return true;
}

static void __iomem *msix_entry(struct efasim_fn *fn, u32 vector)
{
	return fn->regs + EFASIM_MSIX_TABLE + vector * PCI_MSIX_ENTRY_SIZE;
}

static bool vector_masked(struct efasim_fn *fn, u32 vector)
{
	return efasim_fn_msix_masked(fn) ||
	       readl(msix_entry(fn, vector) + PCI_MSIX_ENTRY_VECTOR_CTRL) &
	       PCI_MSIX_ENTRY_CTRL_MASKBIT;
}

/* Deliver an MSI-X message, in hard interrupt context. */
static void vector_fired(struct irq_work *work)
{
	struct efasim_vector *v = container_of(work, struct efasim_vector, work);
	struct efasim_fn *fn = v->fn;

	if (!efasim_fn_msix_on(fn))
		return;
	if (vector_masked(fn, v->index)) {
		set_bit(v->index, fn->pending);
		return;
	}
	efasim_count(&fn->eng, EFASIM_S_events);
	generic_handle_irq(readl(msix_entry(fn, v->index) +
				 PCI_MSIX_ENTRY_DATA));
}

/* Interrupt the host; any context. */
void efasim_fn_raise(struct efasim_fn *fn, u32 vector)
{
	if (vector < fn->vectors)
		irq_work_queue(&fn->vector[vector].work);
}

/* Raise interrupts that were pending while masked, once they are unmasked. */
static void look_at_masks(struct efasim_fn *fn)
{
	u32 v;

	for_each_set_bit(v, fn->pending, fn->vectors) {
		if (!efasim_fn_msix_on(fn) || vector_masked(fn, v))
			continue;
		clear_bit(v, fn->pending);
		efasim_fn_raise(fn, v);
	}
}

static bool look(struct efasim_fn *fn)
{
	bool busy;

	busy = answer_read(fn);
	look_at_control(fn);
	busy |= look_at_aq(fn);
	look_at_masks(fn);
	return busy;
}

static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct efasim_fn *fn = container_of(timer, struct efasim_fn, timer);
	ktime_t now = ktime_get();
	unsigned long flags;
	bool busy;

	/* A dead device doesn't answer register reads either. */
	if (!READ_ONCE(fn->eng.fault[EFASIM_F_dead])) {
		spin_lock_irqsave(&fn->lock, flags);
		busy = look(fn);
		spin_unlock_irqrestore(&fn->lock, flags);
		busy |= efasim_fn_doorbells(fn);
		efasim_fn_events(fn);
		if (busy)
			fn->busy_until = ktime_add_us(now, BUSY_FOR_US);
	}
	hrtimer_forward_now(timer, us(ktime_before(now, fn->busy_until) ?
				      BUSY_US : IDLE_US));
	return HRTIMER_RESTART;
}

/* Clear the registers, except the address for register values, which the driver has set. */
static void clear_regs(struct efasim_fn *fn)
{
	memset_io(fn->regs + EFASIM_REG_AQ_BASE_LO, 0,
		  EFASIM_REG_DEV_CTL - EFASIM_REG_AQ_BASE_LO);
	writel(0, fn->regs + EFASIM_REG_EQ_DB);
}

static void reset(struct work_struct *work)
{
	struct efasim_fn *fn = container_of(work, struct efasim_fn, reset_work);
	unsigned long flags;

	cancel_delayed_work(&fn->keep_alive);
	efasim_fn_free_objects(fn);
	clear_regs(fn);
	WRITE_ONCE(fn->aq_index, 0);
	fn->acq_index = 0;
	fn->aenq_index = 0;
	fn->aenq_groups = 0;
	bitmap_zero(fn->pending, EFASIM_MAX_VECTORS);
	spin_lock_irqsave(&fn->lock, flags);
	fn->reset_done = true;
	spin_unlock_irqrestore(&fn->lock, flags);
}

static int map(struct efasim_fn *fn)
{
	fn->regs = ioremap(fn->base + EFASIM_REGS_OFF, EFASIM_REGS_SIZE);
	fn->mem = ioremap(fn->base + EFASIM_DB_OFF, EFASIM_DB_SIZE);
	/* Write-combining, as in the driver: mappings of a page must have the same type. */
	fn->llq = ioremap_wc(fn->base, EFASIM_LLQ_SIZE);
	if (!fn->regs || !fn->mem || !fn->llq)
		return -ENOMEM;
	memset_io(fn->regs, 0, EFASIM_REGS_SIZE);
	memset_io(fn->mem, 0, EFASIM_DB_SIZE);
	memset_io(fn->llq, 0, EFASIM_LLQ_SIZE);
	writel(U32_MAX, fn->regs + EFASIM_REG_MMIO_READ);
	return 0;
}

static void unmap(struct efasim_fn *fn)
{
	if (fn->llq)
		iounmap(fn->llq);
	if (fn->mem)
		iounmap(fn->mem);
	if (fn->regs)
		iounmap(fn->regs);
}

static void init_vectors(struct efasim_fn *fn)
{
	u32 i;

	for (i = 0; i < fn->vectors; i++) {
		fn->vector[i].fn = fn;
		fn->vector[i].index = i;
		fn->vector[i].work = IRQ_WORK_INIT_HARD(vector_fired);
		/* Vectors are masked after a reset. */
		writel(PCI_MSIX_ENTRY_CTRL_MASKBIT,
		       msix_entry(fn, i) + PCI_MSIX_ENTRY_VECTOR_CTRL);
	}
}

/**
 * efasim_fn_start() - start a function
 * @fn: the function, with an engine and its part of the window
 *
 * Context: Process context, may sleep.
 * Return: 0; or -ENOMEM, after undoing everything.
 */
int efasim_fn_start(struct efasim_fn *fn)
{
	int err;

	fn->wq = alloc_ordered_workqueue("efasim-pci%u", WQ_MEM_RECLAIM,
					 fn->slot);
	if (!fn->wq)
		return -ENOMEM;
	err = map(fn);
	if (err) {
		unmap(fn);
		destroy_workqueue(fn->wq);
		return err;
	}
	spin_lock_init(&fn->lock);
	INIT_LIST_HEAD(&fn->qps);
	INIT_LIST_HEAD(&fn->cqs);
	INIT_WORK(&fn->reset_work, reset);
	efasim_fn_aq_init(fn);
	init_vectors(fn);
	efasim_fn_init_config(fn);
	hrtimer_setup(&fn->timer, timer_fired, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	hrtimer_start(&fn->timer, us(IDLE_US), HRTIMER_MODE_REL);
	return 0;
}

/* Stop polling registers. Afterwards only the engine's worker reads doorbells. */
void efasim_fn_stop(struct efasim_fn *fn)
{
	hrtimer_cancel(&fn->timer);
	/* The keep-alive work queues itself while the driver has enabled its group. */
	fn->aenq_groups = 0;
	cancel_delayed_work_sync(&fn->keep_alive);
	destroy_workqueue(fn->wq);
}

/* Free all resources of a function whose engine has stopped. */
void efasim_fn_free(struct efasim_fn *fn)
{
	u32 i;

	efasim_fn_free_objects(fn);
	for (i = 0; i < fn->vectors; i++)
		irq_work_sync(&fn->vector[i].work);
	unmap(fn);
}
