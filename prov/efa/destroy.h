/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Creation and destruction of objects of the device: destroy.c. */
#ifndef KEFA_DESTROY_H
#define KEFA_DESTROY_H

#include <linux/errno.h>
#include <linux/list.h>
#include "hw.h"

struct kefa_dev;

/**
 * struct kefa_refused - objects of a protection domain that the device refused to destroy
 * @dev: the device
 * @list: list of struct kefa_aside, to be destroyed later; under kefa_dev.lock
 * @broken: objects were abandoned, so the protection domain can't be destroyed;
 *	under kefa_dev.lock
 */
struct kefa_refused {
	struct kefa_dev		*dev;
	struct list_head	list;
	bool			broken;
};

/**
 * kefa_cmd_dead() - check whether an error of a command means that the admin queue is dead
 * @err: negative errno
 *
 * The driver reports -ETIME for a command without an answer and -ENODEV for all later
 * ones. Any other error concerns only one object.
 *
 * Context: Any.
 * Return: true if the admin queue is dead.
 */
static inline bool kefa_cmd_dead(int err)
{
	return err == -ETIME || err == -ENODEV;
}

void kefa_refused_init(struct kefa_refused *refused, struct kefa_dev *dev);
void kefa_refused_retry(struct kefa_refused *refused);
void kefa_refused_abandon(struct kefa_refused *refused);
int kefa_create_qp(struct kefa_refused *refused, struct kefa_hw_qp *hq,
		   const struct kefa_hw_qp_attr *attr);
struct ib_mr *kefa_create_mr(struct kefa_refused *refused, struct ib_pd *pd, u32 pages);
struct ib_ah *kefa_create_ah(struct kefa_refused *refused, struct ib_pd *pd, const u8 *gid);
int kefa_destroy_qp(struct kefa_refused *refused, struct kefa_hw_qp *hq);
int kefa_destroy_mr(struct kefa_refused *refused, struct ib_mr *mr);
int kefa_destroy_ah(struct kefa_refused *refused, struct ib_ah *ah);

#endif /* KEFA_DESTROY_H */
