// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Destroying what the device has made. A command can fail because the admin queue
 * is dead, which concerns the whole device, or because the device refuses this one
 * object. A refused object is tried again at once, then set aside: it is tried
 * again every few seconds, and once more when its protection domain goes. What is
 * still refused then is abandoned, and its protection domain with it.
 *
 * The device may use the memory of such an object until it is destroyed. The caller
 * sees to that memory.
 */
#define pr_fmt(fmt) "kofi_efa: " fmt

#include <linux/slab.h>
#include "destroy.h"
#include "dev.h"

enum kefa_kind {
	KEFA_QP,
	KEFA_MR,
	KEFA_AH,
};

/**
 * struct kefa_aside - an object that the device refused to destroy
 * @list: in kefa_refused.list; kefa_dev.lock
 * @kind: which of the following it is
 * @hq: a queue pair and its completion queue, which raises no event any more
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

static int kefa_aside_destroy(struct kefa_aside *obj)
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

/*
 * The driver still calls the handler of an abandoned completion queue, which is this
 * module's, so the module stays until the device is removed. A silenced device raises
 * no interrupt.
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

/* Without memory for a note of it the object can't be found again. */
static void kefa_set_aside(struct kefa_refused *refused,
			   struct kefa_aside *obj, int err)
{
	struct kefa_dev *dev = refused->dev;
	struct kefa_aside *note = NULL;

	if (!kefa_cmd_dead(err)) {
		dev->refused++;
		dev_warn_ratelimited(&dev->ibdev->dev,
				     "kofi_efa: the device refused to destroy a %s: error %d. It is set aside and tried again, the device stays in use\n",
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

/* Address handles reach no memory: they say nothing of the device. */
static int kefa_destroy(struct kefa_refused *refused, struct kefa_aside *obj)
{
	int ret;

	ret = kefa_aside_destroy(obj);
	if (ret && !kefa_cmd_dead(ret))
		ret = kefa_aside_destroy(obj);
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
 * kefa_create_qp() - make a queue pair
 * @refused: of its protection domain
 * @hq: the queue pair; pd, event and arg are set
 * @attr: what it shall be like
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: 0, or the device's error; then @hq holds nothing.
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
	if (ret && hq->qp)
		kefa_destroy_qp(refused, hq);
	return ret;
}

/**
 * kefa_destroy_qp() - destroy a queue pair
 * @refused: of its protection domain
 * @hq: the queue pair, which holds nothing after this and raises no event
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: 0, or the device's error: it may still use the queue pair, unless
 * kefa_dev.silenced is set.
 */
int kefa_destroy_qp(struct kefa_refused *refused, struct kefa_hw_qp *hq)
{
	struct kefa_aside obj = { .kind = KEFA_QP, .hq = *hq };

	lockdep_assert_held(&refused->dev->lock);
	hq->qp = NULL;
	hq->cq = NULL;
	return kefa_destroy(refused, &obj);
}

/**
 * kefa_destroy_mr() - destroy a memory region
 * @refused: of its protection domain
 * @mr: the region
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: 0, or the device's error: if it was registered peers may still reach
 * its memory, unless kefa_dev.silenced is set.
 */
int kefa_destroy_mr(struct kefa_refused *refused, struct ib_mr *mr)
{
	struct kefa_aside obj = { .kind = KEFA_MR, .mr = mr };

	lockdep_assert_held(&refused->dev->lock);
	return kefa_destroy(refused, &obj);
}

/**
 * kefa_destroy_ah() - destroy an address handle
 * @refused: of its protection domain
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
 * kefa_refused_init() - nothing was refused yet
 * @refused: of a protection domain
 * @dev: its device
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
 * kefa_refused_retry() - try again to destroy what was refused
 * @refused: of a protection domain
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
		if (!kefa_aside_destroy(obj))
			kefa_aside_del(refused, obj);
}

/**
 * kefa_refused_abandon() - the protection domain goes: try for the last time
 * @refused: of the protection domain, which can't be destroyed if broken is set
 *	after this
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
