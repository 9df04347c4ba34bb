// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The matching of receives and messages, without a device and endpoints. An operation is a
 * message that takes a receive, which is then posted again. The test's number of addresses
 * is the number of other posted receives, each for another tag.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <kofi/match.h>
#include "bench.h"

MODULE_DESCRIPTION("Benchmarks of kOFI: matching");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI_BENCH);
MODULE_IMPORT_NS(KOFI_PROVIDER);

/* A prime, so that all receives are used. */
#define KBM_STRIDE	7919

/**
 * struct kbm_end - an end
 * @end: the harness' part
 * @lock: protects @match, in place of a provider's lock
 * @match: the table of receives
 * @table: buckets of @match
 * @recvs: the receives
 * @count: number of receives
 * @next: receive that the next message takes
 */
struct kbm_end {
	struct kb_end		end;
	spinlock_t		lock;	/* protects match */
	struct kofi_match	match;
	struct hlist_head	*table;
	struct kofi_match_recv	*recvs;
	u32			count;
	u32			next;
};

static u64 kbm_tag(u32 i)
{
	return (u64)i << 16;
}

static void kbm_close(struct kb_end *end)
{
	struct kbm_end *kbm = container_of(end, struct kbm_end, end);

	kvfree(kbm->table);
	kvfree(kbm->recvs);
	kfree(kbm);
}

static struct kb_end *kbm_open(const struct kb_test *test)
{
	size_t heads = kofi_match_heads(test->addrs + 1, 0);
	struct kbm_end *kbm = kzalloc(sizeof(*kbm), GFP_KERNEL);
	u32 i;

	if (!kbm)
		return ERR_PTR(-ENOMEM);
	kbm->count = test->addrs + 1;
	kbm->table = kvcalloc(heads, sizeof(*kbm->table), GFP_KERNEL);
	kbm->recvs = kvcalloc(kbm->count, sizeof(*kbm->recvs), GFP_KERNEL);
	if (!kbm->table || !kbm->recvs) {
		kbm_close(&kbm->end);
		return ERR_PTR(-ENOMEM);
	}
	spin_lock_init(&kbm->lock);
	kofi_match_init(&kbm->match, &kbm->lock, kbm->table, heads);
	spin_lock_bh(&kbm->lock);
	for (i = 0; i < kbm->count; i++) {
		kofi_match_recv_init(&kbm->recvs[i], FI_TAGGED, FI_ADDR_UNSPEC,
				     kbm_tag(i), 0, NULL);
		kofi_match_post(&kbm->match, &kbm->recvs[i]);
	}
	spin_unlock_bh(&kbm->lock);
	return &kbm->end;
}

static int kbm_connect(struct kb_end *end)
{
	return 0;
}

static int kbm_post(struct kb_end *end)
{
	struct kbm_end *kbm = container_of(end, struct kbm_end, end);
	struct kofi_match_recv *recv;
	struct kofi_match_msg msg;

	for (; end->done < end->test->batch; end->done++) {
		kofi_match_msg_init(&msg, FI_TAGGED, 1, kbm_tag(kbm->next));
		spin_lock_bh(&kbm->lock);
		recv = kofi_match_arrive(&kbm->match, &msg);
		end->failed += recv != &kbm->recvs[kbm->next];
		if (recv)
			kofi_match_post(&kbm->match, recv);
		else
			kofi_match_remove_msg(&kbm->match, &msg);
		spin_unlock_bh(&kbm->lock);
		kbm->next = (kbm->next + KBM_STRIDE) % kbm->count;
	}
	return 0;
}

/* Operations complete when they are posted. */
static int kbm_poll(struct kb_end *end)
{
	return 0;
}

static struct kb_ulp kbm_ulp = {
	.name		= "match",
	.alone		= true,
	.max_batch	= U32_MAX,
	.open		= kbm_open,
	.connect	= kbm_connect,
	.close		= kbm_close,
	.post		= kbm_post,
	.poll		= kbm_poll,
};

static int __init kbm_init(void)
{
	kb_register(&kbm_ulp);
	return 0;
}
module_init(kbm_init);

static void __exit kbm_exit(void)
{
	kb_deregister(&kbm_ulp);
}
module_exit(kbm_exit);
