// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Linear hashing. There are 2^k to 2^(k+1) buckets. Each insertion that finds more entries than
 * buckets splits the next one of the first 2^k buckets: its entries stay, or move to the new
 * bucket, whose number is higher by 2^k. Buckets are in segments that double in size and never
 * move. kefa_index_reserve() allocates segments in advance, in a context that may sleep.
 */
#include <linux/log2.h>
#include <linux/random.h>
#include <linux/slab.h>
#include "index.h"

static u32 kefa_index_seg_size(u32 seg)
{
	return seg ? 1U << seg : 2;
}

static struct hlist_head *kefa_index_at(const struct kefa_index *index, u32 bucket)
{
	u32 seg = bucket > 1 ? ilog2(bucket) : 0;

	return &index->segs[seg][bucket & (kefa_index_seg_size(seg) - 1)];
}

/**
 * kefa_index_bucket() - get the bucket of a key
 * @index: the table
 * @key: the key
 *
 * Context: Under @index->lock.
 * Return: the bucket, which may have entries of other keys, too.
 */
struct hlist_head *kefa_index_bucket(const struct kefa_index *index, u64 key)
{
	u32 hash = hsiphash_2u32(lower_32_bits(key), upper_32_bits(key), &index->seed);
	u32 low = rounddown_pow_of_two(index->buckets), bucket;

	lockdep_assert_held(index->lock);
	bucket = hash & (2 * low - 1);
	if (bucket >= index->buckets)
		bucket -= low;
	return kefa_index_at(index, bucket);
}

/**
 * kefa_index_init() - initialize an empty table
 * @index: the table
 * @lock: lock of the endpoint
 * @entries: number of entries to allocate buckets for
 *
 * Context: Process context; sleeps.
 * Return: 0, or -ENOMEM.
 */
int kefa_index_init(struct kefa_index *index, spinlock_t *lock, u32 entries)
{
	memset(index, 0, sizeof(*index));
	index->lock = lock;
	get_random_bytes(&index->seed, sizeof(index->seed));
	index->segs[0] = kcalloc(kefa_index_seg_size(0), sizeof(*index->segs[0]), GFP_KERNEL);
	if (!index->segs[0])
		return -ENOMEM;
	index->buckets = kefa_index_seg_size(0);
	return kefa_index_reserve(index, entries);
}

/**
 * kefa_index_fini() - undo kefa_index_init(), also if it failed
 * @index: the table, without entries
 *
 * Context: Process context.
 */
void kefa_index_fini(struct kefa_index *index)
{
	u32 seg;

	WARN_ON_ONCE(index->entries);
	for (seg = 0; seg < KEFA_INDEX_SEGS; seg++) {
		kvfree(index->segs[seg]);
		index->segs[seg] = NULL;
	}
}

/**
 * kefa_index_reserve() - allocate buckets
 * @index: the table
 * @entries: expected number of entries
 *
 * Allocates a bucket for two entries. A table with fewer buckets works, but is slower.
 *
 * Context: Process context; sleeps. One caller at a time; @index->lock isn't held.
 * Return: 0, or -ENOMEM.
 */
int kefa_index_reserve(struct kefa_index *index, u32 entries)
{
	struct hlist_head *heads;
	u32 seg;

	for (seg = 1; seg < KEFA_INDEX_SEGS && kefa_index_seg_size(seg) < entries / 2; seg++) {
		if (index->segs[seg])
			continue;
		heads = kvcalloc(kefa_index_seg_size(seg), sizeof(*heads), GFP_KERNEL);
		if (!heads)
			return -ENOMEM;
		spin_lock_bh(index->lock);
		index->segs[seg] = heads;
		spin_unlock_bh(index->lock);
	}
	return 0;
}

/* Split a bucket. */
static void kefa_index_split(struct kefa_index *index)
{
	u32 low = rounddown_pow_of_two(index->buckets), new = index->buckets;
	struct hlist_node *next, *last = NULL;
	struct kefa_index_node *n;
	struct hlist_head *old;

	if (new == low && (ilog2(new) == KEFA_INDEX_SEGS || !index->segs[ilog2(new)]))
		return;
	old = kefa_index_at(index, new - low);
	index->buckets++;
	hlist_for_each_entry_safe(n, next, old, node) {
		if (kefa_index_bucket(index, n->key) == old)
			continue;
		hlist_del(&n->node);
		if (last)
			hlist_add_behind(&n->node, last);
		else
			hlist_add_head(&n->node, kefa_index_at(index, new));
		last = &n->node;
	}
}

/**
 * kefa_index_add() - add an entry
 * @index: the table
 * @n: the entry, in no table
 * @key: its key
 *
 * Context: Under @index->lock.
 */
void kefa_index_add(struct kefa_index *index, struct kefa_index_node *n, u64 key)
{
	lockdep_assert_held(index->lock);
	if (index->entries++ / 2 >= index->buckets)
		kefa_index_split(index);
	n->key = key;
	hlist_add_head(&n->node, kefa_index_bucket(index, key));
}

/**
 * kefa_index_del() - remove an entry
 * @index: the table
 * @n: the entry; does nothing if it is in no table
 *
 * Context: Under @index->lock.
 */
void kefa_index_del(struct kefa_index *index, struct kefa_index_node *n)
{
	lockdep_assert_held(index->lock);
	if (hlist_unhashed(&n->node))
		return;
	hlist_del_init(&n->node);
	index->entries--;
}

/**
 * kefa_index_any() - get any entry of the table
 * @index: the table; the caller adds nothing between calls
 * @from: position to continue from, 0 for the first call
 *
 * Context: Under @index->lock.
 * Return: the entry, or NULL if there is none.
 */
struct kefa_index_node *kefa_index_any(const struct kefa_index *index, u32 *from)
{
	struct hlist_head *head;

	lockdep_assert_held(index->lock);
	for (; index->entries && *from < index->buckets; ++*from) {
		head = kefa_index_at(index, *from);
		if (!hlist_empty(head))
			return hlist_entry(head->first, struct kefa_index_node, node);
	}
	return NULL;
}

/**
 * kefa_index_bytes() - get the memory use of a table
 * @index: the table
 *
 * Context: Any.
 * Return: size of the buckets in bytes.
 */
size_t kefa_index_bytes(const struct kefa_index *index)
{
	size_t heads = 0;
	u32 seg;

	for (seg = 0; seg < KEFA_INDEX_SEGS; seg++)
		if (index->segs[seg])
			heads += kefa_index_seg_size(seg);
	return heads * sizeof(struct hlist_head);
}
