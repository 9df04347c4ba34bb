/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Declarations shared by the files of the fake EFA device. */
#ifndef KOFI_EFAKE_PRIV_H
#define KOFI_EFAKE_PRIV_H

#include "efake.h"

#define EFAKE_LKEY	0x1357
#define EFAKE_MAPS	4096
/* Distinguishes the local key of a region from its remote key. */
#define EFAKE_LOCAL	BIT(19)
#define EFAKE_MAP_BUCKETS	1024

enum efake_use {
	EFAKE_READS,
	EFAKE_WRITES,
	EFAKE_EITHER,
	EFAKE_DIRECT,	/* in either direction, of memory that needs no sync */
};

/* Memory that is mapped. */
struct efake_map {
	struct hlist_node	node;
	dma_addr_t		addr;
	size_t			len;
	enum dma_data_direction	dir;
	bool			direct;	/* of a region, whose memory needs no sync */
	u8			*synced; /* the memory at its last sync, for the device */
};

/* Part of a mapping. */
struct efake_range {
	struct list_head	list;
	dma_addr_t		addr;
	size_t			len;
	size_t			bytes;	/* len, or 0 in efake_mem.taken */
	u8			data[];
};

struct efake_mem {
	struct hlist_head	maps[EFAKE_MAP_BUCKETS + 1];
	struct hlist_head	free;
	struct list_head	written; /* by the device; the CPU sees it after a sync */
	struct list_head	taken;	/* synced for the CPU, and not for the device since */
	struct efake_map	map[EFAKE_MAPS];
};

/* An object of the device. */
struct efake_obj {
	struct list_head	list;	/* in efake.objs or .lost */
	struct efake		*fake;
	bool			is_mr;
	bool			abandoned;
};

struct efake_pd {
	struct efake_obj	obj;
	struct ib_pd		pd;
	int			users;
};

struct efake_ah {
	struct efake_obj	obj;
	struct ib_ah		ah;
	u8			gid[FI_EFA_GID_LEN];
};

struct efake_mr {
	struct efake_obj	obj;
	struct ib_mr		mr;
	bool			valid;	/* peers can reach it */
	bool			busy;	/* being registered or invalidated */
	u32			npages;
	u32			nsegs;
	u32			max_pages;
	struct efake_seg {
		dma_addr_t	addr;
		u32		len;
	} segs[];
};

static inline struct efake_ah *efake_to_ah(struct ib_ah *ah)
{
	return container_of(ah, struct efake_ah, ah);
}

static inline struct efake_mr *efake_to_mr(struct ib_mr *mr)
{
	return container_of(mr, struct efake_mr, mr);
}

static inline struct efake_qp *efake_to_qp(struct kefa_hw_qp *hq)
{
	return container_of(hq->qp, struct efake_qp, ibqp);
}

/* efake.c */

void efake_breach(struct efake *fake, const char *what);
bool efake_fails(struct efake *fake, enum efake_call call, int *err);

/* efake_hw.c */

void efake_qp_free(struct efake_qp *qp);
/* Return: whether an object exists. Under the lock, as the next two functions. */
bool efake_lives(struct efake *fake, const struct efake_obj *obj);
struct efake_mr *efake_mr_find(struct efake *fake, u32 rkey);
/* Find the memory at a remote address, contiguous for at most *len bytes. Return: if it exists. */
bool efake_mr_reach(struct efake_mr *mr, u64 raddr, dma_addr_t *addr, size_t *len);
/* Return: whether a registered region has a part of this range that isn't mapped. */
bool efake_mrs_miss(struct efake *fake, dma_addr_t addr, size_t len);

/* efake_post.c */

/* Return: whether a work request needs a part of this range that isn't mapped. Under the lock. */
bool efake_misses(struct efake *fake, dma_addr_t addr, size_t len);

/* efake_dma.c */

/* Return: whether the mapping allows an access. */
bool efake_dma_reach(struct efake *fake, dma_addr_t addr, size_t len,
		     enum efake_use use);
/* Return: the virtual address of mapped memory. */
void *efake_dma_virt(dma_addr_t addr);
/* Write as the device. Under the lock. */
void efake_dma_write(struct efake *fake, dma_addr_t addr, const void *from, size_t len);
/* Return: whether the CPU wrote to memory after it was synced for the device. Under the lock. */
bool efake_dma_stale(struct efake *fake, dma_addr_t addr, size_t len);
/* Return: whether the CPU has a part of this memory. Under the lock. */
bool efake_dma_taken(struct efake *fake, dma_addr_t addr, size_t len);
void efake_ranges_free(struct efake *fake);

#endif /* KOFI_EFAKE_PRIV_H */
