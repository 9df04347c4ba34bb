/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory regions: pages that a key stands for, while it is valid. Regions are software: datagrams
 * name a key, and data is copied. Besides, a region may have a grant (grant.c), by which the peer's
 * device writes to it. Peers' accesses and datagrams that are sent from a region's pages are its
 * users; it isn't free before the last of them has ended, and the grant is over.
 *
 *	FREE -- register --> VALID -- invalidate --> INVALIDATING -- no users, no grant --> FREE
 *
 * A region has two lists of pages. Some ULPs map the next pages while the current ones are still
 * registered, so mapping fills the pending list, which registration makes the active one. Others
 * register the same mapping again and again. So mappings have numbers, and a registration names
 * the one that was the latest when it was posted.
 *
 * Locks: krc_conn.lock > krc_mrs.lock > krc_mr.lock, all with interrupts off.
 */
#ifndef KRC_MR_H
#define KRC_MR_H

#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/xarray.h>

struct krc_conn;
struct krc_grant;
struct krc_key;

#define KRC_MR_PAGES	257	/* most pages of a region */

#define KRC_ACCESS_LOCAL_WRITE	0x1
#define KRC_ACCESS_REMOTE_WRITE	0x2
#define KRC_ACCESS_REMOTE_READ	0x4
#define KRC_ACCESS_REMOTE	(KRC_ACCESS_REMOTE_WRITE | KRC_ACCESS_REMOTE_READ)

/* A key is the index of its region, and 8 bits of the ULP. */
#define KRC_KEY(index, low)	((index) << 8 | ((low) & 0xff))
#define KRC_KEY_INDEX(key)	((key) >> 8)
#define KRC_INDEX_MAX		((1U << 24) - 1)

enum krc_mr_state {
	KRC_MR_FREE,
	KRC_MR_VALID,
	KRC_MR_INVALIDATING,
};

/**
 * struct krc_mrs - the regions of a link
 * @xa: regions by index
 * @next: index at which the search for a free one begins
 * @lock: protects krc_conn.mrs_owned, krc_mr.owned and krc_mr.conn
 */
struct krc_mrs {
	struct xarray	xa;
	u32		next;
	spinlock_t	lock;	/* protects lists of regions of connections */
};

/**
 * struct krc_mr_map - a mapping of pages, for a registration
 * @iova: address of the first byte, as peers name it
 * @length: bytes
 * @shift: log2 of the size of a page
 * @access: KRC_ACCESS_* bits
 * @key: the key
 * @nr: number of the mapping, from krc_mr_mapping()
 */
struct krc_mr_map {
	u64	iova;
	u64	length;
	u8	shift;
	u32	access;
	u32	key;
	u32	nr;
};

/**
 * struct krc_mr - a memory region
 * @mrs: the link's regions
 * @pd: protection domain
 * @index: index in krc_mrs.xa
 * @max_pages: length of each list of pages
 * @lists: memory of both lists
 * @lock: protects what follows
 * @dying: the region is about to be freed
 * @mappings: number of the latest mapping
 * @pending: kernel addresses of the pages for the next registration
 * @npending: number of these
 * @pending_nr: number of their mapping, 0 while it is made
 * @state: state
 * @gen: number of registrations
 * @users: accesses that have begun and not ended
 * @grant: access by the peer's device, until it is over; or NULL
 * @read: the peer has read from the region since its registration
 * @told: connection whose peer may know a key for its device, or NULL; only compared
 * @told_others: peers of other connections may know one, too
 * @map: the registered mapping
 * @pages: kernel addresses of the registered pages
 * @npages: number of these
 * @pages_nr: number of their mapping, 0 before the first registration
 * @conn: connection that registered the region last, or NULL; changed under krc_mrs.lock, too
 * @waiter: one other connection that waits until the region is free, with a reference; or NULL
 * @owned: in krc_conn.mrs, under krc_mrs.lock
 */
struct krc_mr {
	struct krc_mrs		*mrs;
	const void		*pd;
	u32			index;
	u32			max_pages;
	u64			*lists;
	spinlock_t		lock;	/* protects what follows */
	bool			dying;
	u32			mappings;
	u64			*pending;
	u32			npending;
	u32			pending_nr;
	enum krc_mr_state	state;
	u32			gen;
	u32			users;
	struct krc_grant	*grant;
	bool			read;
	const struct krc_conn	*told;
	bool			told_others;
	struct krc_mr_map	map;
	u64			*pages;
	u32			npages;
	u32			pages_nr;
	struct krc_conn		*conn;
	struct krc_conn		*waiter;
	struct list_head	owned;
};

/**
 * struct krc_mr_turn - a registration, after which somebody waits for its region to be free
 * @index: the region's index
 * @gen: krc_mr.gen of the registration
 */
struct krc_mr_turn {
	u32	index;
	u32	gen;
};

void krc_mrs_init(struct krc_mrs *mrs);
void krc_mrs_fini(struct krc_mrs *mrs);

int krc_mr_init(struct krc_mr *mr, struct krc_mrs *mrs, const void *pd, u32 max_pages);
void krc_mr_fini(struct krc_mr *mr);
void krc_mr_map_begin(struct krc_mr *mr);
int krc_mr_map_page(struct krc_mr *mr, u64 addr);
void krc_mr_map_end(struct krc_mr *mr);
u32 krc_mr_mapping(struct krc_mr *mr);
int krc_mr_register(struct krc_conn *c, const struct krc_mr_map *map, bool grant,
		    struct krc_mr_turn *turn);
int krc_mr_key(struct krc_conn *c, const struct krc_mr_turn *turn, struct krc_key *key);
void krc_mr_ungranted(struct krc_mr *mr, const struct krc_conn *by);
int krc_mr_invalidate(struct krc_conn *c, u32 key, bool by_peer, struct krc_mr_turn *turn);
bool krc_mr_busy(struct krc_mrs *mrs, const struct krc_mr_turn *turn);
void krc_mrs_revoke(struct krc_conn *c);

struct krc_mr *krc_mr_use(struct krc_conn *c, u32 key, u64 addr, u64 len, u32 access);
void krc_mr_hold(struct krc_mr *mr);
void krc_mr_put(struct krc_mr *mr);
void *krc_mr_piece(const struct krc_mr *mr, u64 addr, u32 *len);
void krc_mr_copy(const struct krc_mr *mr, u64 addr, const void *data, u32 len);

#endif /* KRC_MR_H */
