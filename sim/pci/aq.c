// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The admin queue, its completion queue, and the asynchronous event queue. An entry of the
 * two queues that the device writes is new if its phase bit is that of the current pass over
 * the ring, which is 1 in the first pass.
 */
#include <linux/bitfield.h>
#include <linux/io.h>
#include <linux/ktime.h>

#include "pci.h"

#define KEEP_ALIVE_MS	1000

/* Read the driver's settings of the ring whose registers begin at @base_lo. */
struct efasim_ring_state efasim_fn_ring(struct efasim_fn *fn, u32 base_lo,
					u32 caps)
{
	u32 val = readl(fn->regs + caps);

	return (struct efasim_ring_state) {
		.addr = (u64)readl(fn->regs + base_lo + 4) << 32 |
			readl(fn->regs + base_lo),
		.depth = FIELD_GET(EFASIM_QUEUE_CAPS_DEPTH, val),
		.vector = FIELD_GET(EFASIM_QUEUE_CAPS_VECTOR, val),
	};
}

/* Write an entry. The byte with the phase, at offset @at, is written last. */
static void put_entry(struct efasim_fn *fn, const struct efasim_ring_state *ring,
		      u16 index, void *entry, size_t at)
{
	u64 addr = ring->addr + index % ring->depth * EFASIM_AQ_ENTRY;
	u8 *flags = entry + at;
	u8 phase = index / ring->depth % 2 ? 0 : EFASIM_AQ_PHASE;

	*flags = EFASIM_AQ_PHASE & ~phase;
	efasim_dev_dma(&fn->eng, addr, entry, EFASIM_AQ_ENTRY,
		       EFASIM_MR_WRITE_TO);
	*flags = phase;
	/* The host reads the phase before the rest. */
	dma_wmb();
	efasim_dev_dma(&fn->eng, addr + at, flags, 1, EFASIM_MR_WRITE_TO);
	efasim_fn_raise(fn, ring->vector);
}

static u8 status_of(int err)
{
	switch (err) {
	case 0:
		return EFASIM_AQ_OK;
	case -ENOMEM:
	case -EBUSY:	/* a table is full */
		return EFASIM_AQ_NO_RESOURCES;
	case -EOPNOTSUPP:
		return EFASIM_AQ_UNSUPPORTED;
	case -EBADRQC:
		return EFASIM_AQ_BAD_OPCODE;
	case -EFAULT:
		return EFASIM_AQ_MALFORMED;
	case -EINVAL:
		return EFASIM_AQ_BAD_PARAMETER;
	}
	return EFASIM_AQ_UNKNOWN_ERROR;
}

static void run_command(struct efasim_fn *fn,
			const struct efasim_ring_state *acq,
			const union efasim_aq_cmd *cmd)
{
	union efasim_aq_resp resp = { };
	int err;

	err = efasim_fn_command(fn, cmd, &resp);
	/* A fault makes the device drop a command without a response. */
	if (err == -ETIME || err == -ENODEV)
		return;
	if (err)
		memset(&resp, 0, sizeof(resp));
	resp.hdr.id = cmd->hdr.id & cpu_to_le16(EFASIM_AQ_ID);
	resp.hdr.status = status_of(err);
	resp.hdr.sq_head = cpu_to_le16(fn->aq_index);
	put_entry(fn, acq, fn->acq_index++, &resp,
		  offsetof(struct efasim_acq_hdr, flags));
}

/* Execute all queued commands. Without a completion ring there are no responses. */
static void take_commands(struct work_struct *work)
{
	struct efasim_fn *fn = container_of(work, struct efasim_fn, aq_work);
	struct efasim_ring_state acq, aq;
	union efasim_aq_cmd cmd;

	aq = efasim_fn_ring(fn, EFASIM_REG_AQ_BASE_LO, EFASIM_REG_AQ_CAPS);
	acq = efasim_fn_ring(fn, EFASIM_REG_ACQ_BASE_LO, EFASIM_REG_ACQ_CAPS);
	if (!aq.depth || !acq.depth)
		return;
	/* Stop for a requested reset, which runs after this work item. */
	while (fn->aq_index != (u16)readl(fn->regs + EFASIM_REG_AQ_DB) &&
	       !READ_ONCE(fn->resetting)) {
		if (!efasim_dev_dma(&fn->eng, aq.addr + fn->aq_index % aq.depth *
				    EFASIM_AQ_ENTRY, &cmd, sizeof(cmd),
				    EFASIM_MR_READ_FROM))
			return;
		WRITE_ONCE(fn->aq_index, fn->aq_index + 1);
		run_command(fn, &acq, &cmd);
	}
}

/* Send an asynchronous event to the driver, if it has enabled the group. */
static void put_aenq(struct efasim_fn *fn, enum efasim_aenq_group group)
{
	u64 us = ktime_to_us(ktime_get());
	struct efasim_aenq_entry entry = {
		.group = cpu_to_le16(group),
		.time_lo = cpu_to_le32(lower_32_bits(us)),
		.time_hi = cpu_to_le32(upper_32_bits(us)),
	};
	struct efasim_ring_state aenq;
	u16 taken;

	aenq = efasim_fn_ring(fn, EFASIM_REG_AENQ_BASE_LO, EFASIM_REG_AENQ_CAPS);
	taken = readl(fn->regs + EFASIM_REG_AENQ_DB);
	if (!aenq.depth || !(fn->aenq_groups & BIT(group)) ||
	    (u16)(fn->aenq_index - taken) >= aenq.depth)
		return;
	put_entry(fn, &aenq, fn->aenq_index++, &entry,
		  offsetof(struct efasim_aenq_entry, flags));
}

static void keep_alive(struct work_struct *work)
{
	struct efasim_fn *fn = container_of(to_delayed_work(work),
					    struct efasim_fn, keep_alive);

	if (!READ_ONCE(fn->eng.fault[EFASIM_F_dead]))
		put_aenq(fn, EFASIM_AENQ_KEEP_ALIVE);
	if (fn->aenq_groups & BIT(EFASIM_AENQ_KEEP_ALIVE))
		queue_delayed_work(fn->wq, &fn->keep_alive,
				   msecs_to_jiffies(KEEP_ALIVE_MS));
}

void efasim_fn_aq_init(struct efasim_fn *fn)
{
	INIT_WORK(&fn->aq_work, take_commands);
	INIT_DELAYED_WORK(&fn->keep_alive, keep_alive);
}
