// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Admin commands for memory regions. The page addresses are in the command itself if there
 * are few, in a contiguous list, or in an indirect list whose pages are in a chain of
 * chunks. The device copies the list.
 */
#include <linux/bitfield.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "pci.h"

/* Drivers leave the number of pages 0, so compute it from the range of the region. */
static int fill_reg(struct efasim_fn *fn, const struct efasim_reg_mr_cmd *cmd,
		    struct efasim_reg *reg)
{
	u64 pages, mask;

	*reg = (struct efasim_reg) {
		.iova = le64_to_cpu(cmd->iova),
		.length = le64_to_cpu(cmd->length),
		.access = cmd->access,
		.page_shift = FIELD_GET(EFASIM_REG_CMD_PAGE_SHIFT, cmd->flags),
	};
	mask = BIT_ULL(reg->page_shift) - 1;
	pages = (reg->length >> reg->page_shift) +
		(((reg->length & mask) + (reg->iova & mask) + mask) >>
		 reg->page_shift);
	if (!pages || pages > fn->eng.limits.max_mr_pages)
		return -ENOMEM;
	reg->npages = pages;
	return 0;
}

static bool dma_list(struct efasim_fn *fn, u64 addr, void *to, u32 n)
{
	return efasim_dev_dma(&fn->eng, addr, to, n * sizeof(__le64),
			      EFASIM_MR_READ_FROM);
}

/* Read the pages of an indirect list that one chunk describes. */
static int read_chunk(struct efasim_fn *fn, const __le64 *chunk, __le64 *pages,
		      u32 npages)
{
	u32 i, n, per_page = EFASIM_LIST_PAGE / sizeof(__le64), done = 0;

	for (i = 0; i < EFASIM_CHUNK_PTRS && done < npages; i++) {
		n = min(per_page, npages - done);
		if (!dma_list(fn, le64_to_cpu(chunk[i]), pages + done, n))
			return -EFAULT;
		done += n;
	}
	return done;
}

static int read_chain(struct efasim_fn *fn, struct efasim_aq_buf buf,
		      __le64 *pages, u32 npages)
{
	u32 done = 0, length;
	__le64 *chunk;
	int n = 0;

	chunk = kzalloc(EFASIM_LIST_PAGE, GFP_KERNEL);
	if (!chunk)
		return -ENOMEM;
	while (done < npages) {
		length = le32_to_cpu(buf.length);
		n = -EFAULT;
		if (length > EFASIM_LIST_PAGE ||
		    !efasim_dev_dma(&fn->eng, efasim_addr(buf.addr_lo, buf.addr_hi),
				    chunk, length, EFASIM_MR_READ_FROM))
			break;
		n = read_chunk(fn, chunk, pages + done, npages - done);
		if (n < 0)
			break;
		done += n;
		memcpy(&buf, &chunk[EFASIM_CHUNK_PTRS], sizeof(buf));
	}
	kfree(chunk);
	return n < 0 ? n : 0;
}

static int read_pages(struct efasim_fn *fn, const struct efasim_reg_mr_cmd *cmd,
		      __le64 *pages, u32 npages)
{
	u64 addr = efasim_addr(cmd->list.addr_lo, cmd->list.addr_hi);

	if (!(cmd->hdr.flags & EFASIM_AQ_CTRL_DATA)) {
		if (npages > EFASIM_INLINE_PAGES)
			return -EINVAL;
		memcpy(pages, cmd->pages, npages * sizeof(*pages));
		return 0;
	}
	if (cmd->hdr.flags & EFASIM_AQ_CTRL_INDIRECT)
		return read_chain(fn, cmd->list, pages, npages);
	if (le32_to_cpu(cmd->list.length) < npages * sizeof(*pages))
		return -EFAULT;
	return dma_list(fn, addr, pages, npages) ? 0 : -EFAULT;
}

static struct efasim_mr *reg_pages(struct efasim_fn *fn,
				   const struct efasim_reg_mr_cmd *cmd)
{
	struct efasim_mr *mr;
	struct efasim_reg reg;
	u64 *pages;
	u32 i;
	int err;

	err = fill_reg(fn, cmd, &reg);
	if (err)
		return ERR_PTR(err);
	pages = kvmalloc_array(reg.npages, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return ERR_PTR(-ENOMEM);
	err = read_pages(fn, cmd, (__force __le64 *)pages, reg.npages);
	if (err) {
		kvfree(pages);
		return ERR_PTR(err);
	}
	for (i = 0; i < reg.npages; i++)
		pages[i] = le64_to_cpu((__force __le64)pages[i]);
	mr = efasim_adm_reg_mr(&fn->eng, le16_to_cpu(cmd->pd), &reg, pages);
	if (IS_ERR(mr))
		kvfree(pages);
	return mr;
}

static int tell_keys(struct efasim_mr *mr, union efasim_aq_resp *resp)
{
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	resp->mr.lkey = cpu_to_le32(mr->key);
	resp->mr.rkey = cpu_to_le32(mr->key);
	return 0;
}

/* A region by physical address covers all memory, and allows no remote access. */
int efasim_cmd_reg_mr(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
		      union efasim_aq_resp *resp)
{
	const struct efasim_reg_mr_cmd *c = &cmd->reg_mr;

	if (!(c->flags & EFASIM_REG_CMD_PHYS))
		return tell_keys(reg_pages(fn, c), resp);
	if (c->access & ~EFASIM_ACCESS_LOCAL_WRITE)
		return -EINVAL;
	return tell_keys(efasim_adm_dma_mr(&fn->eng, le16_to_cpu(c->pd)), resp);
}

int efasim_cmd_alloc_mr(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			union efasim_aq_resp *resp)
{
	return tell_keys(efasim_adm_alloc_mr(&fn->eng,
					     le16_to_cpu(cmd->alloc_mr.pd),
					     le32_to_cpu(cmd->alloc_mr.max_pages)),
			 resp);
}

/* Ignore the generation in the key, because a fast registration may have changed it. */
int efasim_cmd_dereg_mr(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			union efasim_aq_resp *resp)
{
	u32 key = le32_to_cpu(cmd->dereg_mr.lkey) & EFASIM_KEY_INDEX_MASK;
	struct efasim_mr *mr = xa_load(&fn->eng.mrs, key);

	return mr ? efasim_adm_dereg_mr(&fn->eng, mr) : -EINVAL;
}
