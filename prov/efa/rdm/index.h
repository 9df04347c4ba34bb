/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A hash table with 64-bit keys that grows by one bucket at a time, so that no insertion takes
 * long under a spinlock: index.c.
 */
#ifndef KEFA_RDM_INDEX_H
#define KEFA_RDM_INDEX_H

#include <linux/bitops.h>
#include <linux/list.h>
#include <linux/siphash.h>
#include <linux/spinlock.h>

/* Segment n has buckets 2^n to 2^(n+1) - 1, segment 0 also bucket 0. 2^20 buckets are enough. */
#define KEFA_INDEX_SEGS	20

/**
 * struct kefa_index_node - an entry, embedded in its object
 * @node: entry in a bucket
 * @key: key of the entry, which isn't necessarily unique
 */
struct kefa_index_node {
	struct hlist_node	node;
	u64			key;
};

/**
 * struct kefa_index - hash table
 * @lock: lock of the endpoint, protects all other fields and the entries' nodes
 * @seed: secret seed of the hash, so that peers can't choose keys that share a bucket
 * @buckets: number of buckets in use, at least 2
 * @entries: number of entries
 * @segs: segments of buckets; reserved segments that aren't in use yet have empty buckets
 */
struct kefa_index {
	spinlock_t		*lock;	/* the endpoint's */
	hsiphash_key_t		seed;
	u32			buckets;
	u32			entries;
	struct hlist_head	*segs[KEFA_INDEX_SEGS];
};

int kefa_index_init(struct kefa_index *index, spinlock_t *lock, u32 entries);
void kefa_index_fini(struct kefa_index *index);
int kefa_index_reserve(struct kefa_index *index, u32 entries);
void kefa_index_add(struct kefa_index *index, struct kefa_index_node *n, u64 key);
void kefa_index_del(struct kefa_index *index, struct kefa_index_node *n);
struct hlist_head *kefa_index_bucket(const struct kefa_index *index, u64 key);
struct kefa_index_node *kefa_index_any(const struct kefa_index *index, u32 *from);
size_t kefa_index_bytes(const struct kefa_index *index);

/**
 * kefa_index_for_each() - iterate over the entries with a key, newest first
 * @n: &struct kefa_index_node, the current entry
 * @index: the table
 * @_key: the key
 */
#define kefa_index_for_each(n, index, _key)					\
	hlist_for_each_entry(n, kefa_index_bucket(index, _key), node)		\
		if ((n)->key == (_key))

/**
 * kefa_index_find() - find an entry by its key
 * @index: the table
 * @key: the key
 *
 * Context: Under @index->lock.
 * Return: the newest entry with this key, or NULL.
 */
static inline struct kefa_index_node *kefa_index_find(const struct kefa_index *index, u64 key)
{
	struct kefa_index_node *n;

	kefa_index_for_each(n, index, key)
		return n;
	return NULL;
}

#endif /* KEFA_RDM_INDEX_H */
