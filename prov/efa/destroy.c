// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Destroying objects of the device by command. A command can fail because the admin queue
 * is dead, which concerns the whole device, or because the device refuses to destroy this
 * one object. In the latter case the command is retried at once. If it fails again, the
 * object is set aside, and the command is retried every few seconds and when the protection
 * domain is destroyed. If the device still refuses then, the object is abandoned together
 * with its protection domain.
 *
 * The device may use the memory of such an object until it is destroyed. The caller
 * keeps that memory from being reused.
 */
#define pr_fmt(fmt) "kofi_efa: " fmt

#include <linux/slab.h>
#include "destroy.h"
#include "dev.h"

/**
 * struct kefa_aside - an object that the device refused to destroy
 * @list: in kefa_refused.list; under kefa_dev.lock
 * @kind: kind of the object: @hq, @mr or @ah is valid
 * @hq: a queue pair and its completion queues, which raise no events
 * @mr: a memory region
 * @ah: an address handle
 */
struct kefa_aside {
	struct list_head	list;
	enum kefa_kind		kind;
	union {
		struct kefa_hw_qp	hq;
		struct ib_mr		*mr;
		struct ib_ah		*ah;
	};
};

static const char * const kefa_kind_name[] = {
	[KEFA_QP]	= "queue pair",
	[KEFA_MR]	= "memory region",
	[KEFA_AH]	= "address handle",
};

static int kefa_aside_command(struct kefa_aside *obj)
{
	switch (obj->kind) {
	case KEFA_QP:
		return kefa_hw_qp_destroy(&obj->hq);
	case KEFA_MR:
		return kefa_hw_mr_destroy(obj->mr);
	default:
		return kefa_hw_ah_destroy(obj->ah);
	}
}

static int kefa_aside_destroy(struct kefa_dev *dev, struct kefa_aside *obj)
{
	int ret = kefa_aside_command(obj);

	if (!ret)
		atomic_dec(&dev->used[obj->kind]);
	return ret;
}

/*
 * The driver may call this module's handler for an abandoned completion queue, so pin the
 * module until the device is removed. A silenced device raises no interrupt.
 */
static void kefa_pin(struct kefa_dev *dev)
{
	if (dev->silenced || dev->pinned)
		return;
	dev->pinned = true;
	__module_get(THIS_MODULE);
	dev_warn(&dev->ibdev->dev,
		 "kofi_efa: a completion queue was abandoned: the module can't be unloaded until the device is removed\n");
}

static void kefa_aside_abandon(struct kefa_refused *refused,
			       struct kefa_aside *obj)
{
	refused->broken = true;
	switch (obj->kind) {
	case KEFA_QP:
		kefa_pin(refused->dev);
		kefa_hw_qp_abandon(&obj->hq);
		break;
	case KEFA_MR:
		kefa_hw_mr_abandon(obj->mr);
		break;
	default:
		kefa_hw_ah_abandon(obj->ah);
	}
}

/* Set an object aside, or abandon it if there is no memory for its record. */
static void kefa_set_aside(struct kefa_refused *refused,
			   struct kefa_aside *obj, int err)
{
	struct kefa_dev *dev = refused->dev;
	struct kefa_aside *note = NULL;

	if (!kefa_cmd_dead(err)) {
		dev->refused++;
		dev_warn_ratelimited(&dev->ibdev->dev,
				     "kofi_efa: the device refused to destroy a %s: error %d; will retry, the device stays in use\n",
				     kefa_kind_name[obj->kind], err);
		note = kmemdup(obj, sizeof(*obj), GFP_KERNEL);
	}
	if (note) {
		list_add_tail(&note->list, &refused->list);
		dev->set_aside++;
		return;
	}
	kefa_aside_abandon(refused, obj);
}

/* Destroy an object. A dead admin queue matters only for objects that reach memory. */
static int kefa_destroy(struct kefa_refused *refused, struct kefa_aside *obj)
{
	int ret;

	ret = kefa_aside_destroy(refused->dev, obj);
	if (ret && !kefa_cmd_dead(ret))
		ret = kefa_aside_destroy(refused->dev, obj);
	if (!ret)
		return 0;
	if (obj->kind == KEFA_QP)
		kefa_hw_qp_silence(&obj->hq);
	if (obj->kind != KEFA_AH && kefa_cmd_dead(ret))
		kefa_dev_dead(refused->dev);
	kefa_set_aside(refused, obj, ret);
	return ret;
}

/**
 * kefa_create_qp() - create a queue pair
 * @refused: refused objects of its protection domain
 * @hq: the queue pair, with pd, event and arg set
 * @attr: attributes of the queue pair
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: 0, or the device's error, in which case @hq holds no objects.
 */
int kefa_create_qp(struct kefa_refused *refused, struct kefa_hw_qp *hq,
		   const struct kefa_hw_qp_attr *attr)
{
	struct kefa_hw_qp_attr can = *attr;
	int ret;

	lockdep_assert_held(&refused->dev->lock);
	if (!refused->dev->rnr_retry_ok)
		can.rnr_retry = KEFA_RNR_UNSET;
	ret = kefa_hw_qp_create(hq, &can);
	if (!ret || hq->qp)
		atomic_inc(&refused->dev->used[KEFA_QP]);
	if (ret && hq->qp)
		kefa_destroy_qp(refused, hq);
	return ret;
}

/**
 * kefa_destroy_qp() - destroy a queue pair
 * @refused: refused objects of its protection domain
 * @hq: the queue pair, which afterwards holds no objects and raises no events
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: 0, or the device's error, in which case the device may still use the queue pair
 * unless kefa_dev.silenced is set.
 */
int kefa_destroy_qp(struct kefa_refused *refused, struct kefa_hw_qp *hq)
{
	struct kefa_aside obj = { .kind = KEFA_QP, .hq = *hq };

	lockdep_assert_held(&refused->dev->lock);
	hq->qp = NULL;
	hq->cq = NULL;
	hq->scq = NULL;
	return kefa_destroy(refused, &obj);
}

/**
 * kefa_create_mr() - create a memory region
 * @refused: refused objects of its protection domain
 * @pd: the protection domain
 * @pages: maximum number of pages of the region
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: the region, or the device's error as ERR_PTR.
 */
struct ib_mr *kefa_create_mr(struct kefa_refused *refused, struct ib_pd *pd, u32 pages)
{
	struct ib_mr *mr = kefa_hw_mr_create(pd, pages);

	if (!IS_ERR(mr))
		atomic_inc(&refused->dev->used[KEFA_MR]);
	return mr;
}

/**
 * kefa_create_ah() - create an address handle
 * @refused: refused objects of its protection domain
 * @pd: the protection domain
 * @gid: GID of the peers' device
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: the address handle, or the device's error as ERR_PTR.
 */
struct ib_ah *kefa_create_ah(struct kefa_refused *refused, struct ib_pd *pd, const u8 *gid)
{
	struct ib_ah *ah = kefa_hw_ah_create(pd, gid);

	if (!IS_ERR(ah))
		atomic_inc(&refused->dev->used[KEFA_AH]);
	return ah;
}

/**
 * kefa_destroy_mr() - destroy a memory region
 * @refused: refused objects of its protection domain
 * @mr: the region
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: 0, or the device's error, in which case peers may still reach the memory of a
 * registered region unless kefa_dev.silenced is set.
 */
int kefa_destroy_mr(struct kefa_refused *refused, struct ib_mr *mr)
{
	struct kefa_aside obj = { .kind = KEFA_MR, .mr = mr };

	lockdep_assert_held(&refused->dev->lock);
	return kefa_destroy(refused, &obj);
}

/**
 * kefa_destroy_ah() - destroy an address handle
 * @refused: refused objects of its protection domain
 * @ah: the address handle
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: 0, or the device's error.
 */
int kefa_destroy_ah(struct kefa_refused *refused, struct ib_ah *ah)
{
	struct kefa_aside obj = { .kind = KEFA_AH, .ah = ah };

	lockdep_assert_held(&refused->dev->lock);
	return kefa_destroy(refused, &obj);
}

/**
 * kefa_refused_init() - initialize the refused objects of a protection domain
 * @refused: refused objects of the protection domain
 * @dev: the device
 *
 * Context: Any.
 */
void kefa_refused_init(struct kefa_refused *refused, struct kefa_dev *dev)
{
	refused->dev = dev;
	refused->broken = false;
	INIT_LIST_HEAD(&refused->list);
}

static void kefa_aside_del(struct kefa_refused *refused, struct kefa_aside *obj)
{
	list_del(&obj->list);
	refused->dev->set_aside--;
	kfree(obj);
}

/**
 * kefa_refused_retry() - try again to destroy refused objects
 * @refused: refused objects of a protection domain
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 */
void kefa_refused_retry(struct kefa_refused *refused)
{
	struct kefa_aside *obj, *next;

	lockdep_assert_held(&refused->dev->lock);
	if (refused->dev->dead)
		return;
	list_for_each_entry_safe(obj, next, &refused->list, list)
		if (!kefa_aside_destroy(refused->dev, obj))
			kefa_aside_del(refused, obj);
}

/**
 * kefa_refused_abandon() - try for the last time before the protection domain is destroyed
 * @refused: refused objects of the protection domain, which can't be destroyed if broken
 *	is set afterwards
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 */
void kefa_refused_abandon(struct kefa_refused *refused)
{
	struct kefa_aside *obj, *next;

	kefa_refused_retry(refused);
	list_for_each_entry_safe(obj, next, &refused->list, list) {
		kefa_aside_abandon(refused, obj);
		kefa_aside_del(refused, obj);
	}
}
