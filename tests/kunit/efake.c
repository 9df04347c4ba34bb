// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The fake EFA device: creation, failures, and checks for leftovers. */
#include <linux/dma-mapping.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include "efake_priv.h"

/**
 * efake_breach() - record that a rule of the device was broken
 * @fake: the device
 * @what: description of the rule
 *
 * Context: Any.
 */
void efake_breach(struct efake *fake, const char *what)
{
	atomic_inc(&fake->breaches);
	pr_err_ratelimited("%s: %s\n", dev_name(fake->root), what);
}

/**
 * efake_fails() - check whether a call must fail
 * @fake: the device
 * @call: the call
 * @err: takes the negative errno
 *
 * Context: Any.
 * Return: whether it must.
 */
bool efake_fails(struct efake *fake, enum efake_call call, int *err)
{
	struct efake_fail *fail = &fake->fail[call];
	unsigned long flags;
	bool fails = false;

	spin_lock_irqsave(&fake->lock, flags);
	fail->count++;
	if (fake->refuse & BIT(call)) {
		*err = fake->refusal ?: -ENODEV;
		fails = true;
	} else if (fail->nth && !--fail->nth) {
		*err = fail->err;
		fails = true;
	} else if (fake->any && !--fake->any) {
		*err = -EIO;
		fake->any = fake->then;
		fake->then = 0;
		fake->hits++;
		fails = true;
	}
	spin_unlock_irqrestore(&fake->lock, flags);
	return fails;
}

/**
 * efake_fail() - make a call fail, once
 * @fake: the device
 * @call: kind of call
 * @nth: number of the call that fails, counted from 1
 * @err: negative errno of the failure
 *
 * Context: Any.
 */
void efake_fail(struct efake *fake, enum efake_call call, unsigned int nth,
		int err)
{
	unsigned long flags;

	spin_lock_irqsave(&fake->lock, flags);
	fake->fail[call].nth = nth;
	fake->fail[call].err = err;
	spin_unlock_irqrestore(&fake->lock, flags);
}

/**
 * efake_calls() - count calls
 * @fake: the device
 * @call: kind of call
 *
 * Context: Any.
 * Return: number of calls, including failed ones.
 */
unsigned int efake_calls(struct efake *fake, enum efake_call call)
{
	return READ_ONCE(fake->fail[call].count);
}

static struct kefa_dev *dev_make(struct efake *fake, const char *name)
{
	struct kefa_dev *dev = kefa_dev_alloc();

	if (!dev)
		return NULL;
	dev->ibdev = &fake->ibdev;
	dev->dma = get_device(fake->root);
	strscpy(dev->name, name, sizeof(dev->name));
	strscpy(dev->driver, "efake", sizeof(dev->driver));
	dev->gid[0] = 0xfe;
	dev->gid[15] = 1;
	dev->part_id = 0xefa2;
	dev->numa_node = NUMA_NO_NODE;
	dev->mtu = EFAKE_MTU;
	dev->tx_depth = EFAKE_TX_DEPTH;
	dev->rx_depth = EFAKE_RX_DEPTH;
	dev->max_qp = 16;
	dev->max_mr = EFAKE_MAX_MR;
	dev->max_ah = EFAKE_MAX_MR;
	dev->max_mr_pages = EFAKE_MR_PAGES;
	dev->page_size_cap = PAGE_SIZE | SZ_64K | SZ_2M;
	dev->page_sizes = dev->page_size_cap;
	dev->vectors = 4;
	dev->rnr_retry_ok = true;
	dev->rdma_read = true;
	dev->rdma_write = true;
	return dev;
}

static bool fake_init(struct efake *fake, const char *name)
{
	static atomic_t number;
	char unique[32];
	int i;

	spin_lock_init(&fake->lock);
	INIT_LIST_HEAD(&fake->qps);
	INIT_LIST_HEAD(&fake->broken);
	INIT_LIST_HEAD(&fake->objs);
	INIT_LIST_HEAD(&fake->lost);
	fake->max_mrs = EFAKE_MAX_MR;
	fake->ud_room = 40;
	fake->max_map = SIZE_MAX;
	fake->next_qpn = 0x100;
	fake->master = true;
	/* A device that comes back is a new one with the same name. */
	snprintf(unique, sizeof(unique), "%s-%d", name,
		 atomic_inc_return(&number));
	fake->root = root_device_register(unique);
	if (IS_ERR(fake->root))
		return false;
	fake->seg.max_segment_size = SZ_2G;
	fake->root->dma_parms = &fake->seg;
	dev_set_drvdata(fake->root, fake);
	fake->ibdev.dev.parent = fake->root;
	fake->ibdev.dev.init_name = "efake";
	fake->mem = kvzalloc(sizeof(*fake->mem), GFP_KERNEL);
	if (!fake->mem)
		return false;
	INIT_LIST_HEAD(&fake->mem->written);
	INIT_LIST_HEAD(&fake->mem->taken);
	for (i = 0; i < EFAKE_MAPS; i++)
		hlist_add_head(&fake->mem->map[i].node, &fake->mem->free);
	fake->dev = dev_make(fake, name);
	return fake->dev;
}

static void fake_free(struct efake *fake)
{
	struct efake_qp *qp, *next_qp;
	struct efake_obj *obj, *next;

	list_for_each_entry_safe(qp, next_qp, &fake->broken, list)
		efake_qp_free(qp);
	list_for_each_entry_safe(obj, next, &fake->lost, list)
		kvfree(obj);
	if (fake->mem)
		efake_ranges_free(fake);
	kvfree(fake->mem);
	if (!IS_ERR_OR_NULL(fake->root))
		root_device_unregister(fake->root);
	kfree(fake);
}

/* Check that the provider has left no objects behind. */
static void fake_end(void *data)
{
	struct efake *fake = data;
	struct kunit *test = fake->test;
	struct efake_obj *obj;
	struct efake_qp *qp;

	if (fake->dev)
		efake_remove(fake);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->breaches), 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&fake->qps));
	KUNIT_EXPECT_TRUE(test, list_empty(&fake->objs));
	KUNIT_EXPECT_EQ(test, fake->nmaps, 0);
	list_for_each_entry(qp, &fake->broken, list)
		KUNIT_EXPECT_TRUE(test, qp->abandoned);
	list_for_each_entry(obj, &fake->lost, list)
		KUNIT_EXPECT_TRUE(test, obj->abandoned);
	fake_free(fake);
}

/**
 * efake_make() - create a device
 * @test: the test that owns the device
 * @name: name of the device
 *
 * Context: Process context; sleeps.
 * Return: the device, which the test may modify before efake_publish().
 */
struct efake *efake_make(struct kunit *test, const char *name)
{
	struct efake *fake = kzalloc(sizeof(*fake), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fake);
	fake->test = test;
	KUNIT_ASSERT_TRUE(test, fake_init(fake, name));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, fake_end, fake),
			0);
	return fake;
}

/**
 * efake_end() - remove and free a device before the end of its test
 * @fake: the device
 *
 * Context: Process context; sleeps.
 */
void efake_end(struct efake *fake)
{
	kunit_release_action(fake->test, fake_end, fake);
}

/**
 * efake_publish() - make a device visible to users of the provider
 * @fake: the device
 *
 * Context: Process context; sleeps.
 */
void efake_publish(struct efake *fake)
{
	fake->published = true;
	kefa_dev_list(fake->dev);
	kefa_dev_probed(fake->dev, true);
}

/**
 * efake_start() - add a device to the provider, which probes it
 * @fake: the device
 *
 * Context: Process context; sleeps.
 */
void efake_start(struct efake *fake)
{
	fake->published = true;
	kefa_dev_start(fake->dev);
}

/**
 * efake_remove() - remove a device
 * @fake: the device
 *
 * Context: Process context; sleeps.
 */
void efake_remove(struct efake *fake)
{
	fake->published = false;
	kefa_dev_retire(fake->dev);
	fake->dev = NULL;
}

/**
 * efake_settle() - wait until the provider has handled all events
 *
 * Context: Process context; sleeps.
 */
void efake_settle(void)
{
	int pass;

	/* Flush repeatedly, as workers queue themselves again if work is left. */
	for (pass = 0; pass < 3; pass++)
		flush_workqueue(kefa_wq);
}

/**
 * efake_settle_all() - wait until the provider has handled events and work of devices
 *
 * Context: Process context, without kefa_dev.lock; sleeps.
 */
void efake_settle_all(void)
{
	efake_settle();
	flush_workqueue(kefa_cmd_wq);
	efake_settle();
}
