// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The tags of kofiblk's messages, without a device and endpoints. An operation is a command whose
 * tag is set, or checked. A request has two messages, each of which is tagged and checked once.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include "../ulp/blk/tag.h"
#include "bench.h"

MODULE_DESCRIPTION("Benchmarks of kOFI: kofiblk's tags");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI_BENCH);

#define KBT_NONCE	77

/**
 * struct kbt_end - an end
 * @end: the harness' part
 * @keys: keys of the session
 * @wire: the command
 * @msg: the command as it was parsed
 */
struct kbt_end {
	struct kb_end		end;
	struct kofiblk_keys	keys;
	struct kofiblk_cmd	wire;
	struct kofiblk_cmd_msg	msg;
};

static struct kb_end *kbt_open(const struct kb_test *test)
{
	struct kbt_end *kbt = kzalloc(sizeof(*kbt), GFP_KERNEL);

	if (!kbt)
		return ERR_PTR(-ENOMEM);
	kbt->keys.cmd.key[0] = 1;
	kofiblk_cmd_sign(&kbt->wire, sizeof(kbt->wire), KBT_NONCE, &kbt->keys);
	kbt->msg.tag = le64_to_cpu(kbt->wire.tag);
	return &kbt->end;
}

static void kbt_close(struct kb_end *end)
{
	kfree(container_of(end, struct kbt_end, end));
}

static int kbt_connect(struct kb_end *end)
{
	return 0;
}

static int kbt_post(struct kb_end *end)
{
	struct kbt_end *kbt = container_of(end, struct kbt_end, end);

	for (; end->done < end->test->batch; end->done++) {
		if (end->test->kind == KB_SEND)
			kofiblk_cmd_sign(&kbt->wire, sizeof(kbt->wire), KBT_NONCE, &kbt->keys);
		else
			end->failed += !kofiblk_cmd_signed(&kbt->wire, &kbt->msg, KBT_NONCE,
							   &kbt->keys);
	}
	return 0;
}

/* Operations complete when they are posted. */
static int kbt_poll(struct kb_end *end)
{
	return 0;
}

static struct kb_ulp kbt_ulp = {
	.name		= "tag",
	.alone		= true,
	.open		= kbt_open,
	.connect	= kbt_connect,
	.close		= kbt_close,
	.post		= kbt_post,
	.poll		= kbt_poll,
};

static int __init kbt_init(void)
{
	kb_register(&kbt_ulp);
	return 0;
}
module_init(kbt_init);

static void __exit kbt_exit(void)
{
	kb_deregister(&kbt_ulp);
}
module_exit(kbt_exit);
