/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Objects that the device destroys by command: destroy.c. */
#ifndef KEFA_DESTROY_H
#define KEFA_DESTROY_H

#include <linux/errno.h>
#include <linux/list.h>
#include "hw.h"

struct kefa_dev;

/**
 * struct kefa_refused - objects of a protection domain that the device didn't destroy
 * @dev: the device
 * @list: struct kefa_aside, to be destroyed later; kefa_dev.lock
 * @broken: objects were abandoned, so the protection domain can't be destroyed;
 *	kefa_dev.lock
 */
struct kefa_refused {
	struct kefa_dev		*dev;
	struct list_head	list;
	bool			broken;
};

/**
 * kefa_cmd_dead() - does an error of a command mean that the admin queue is dead?
 * @err: negative errno
 *
 * The driver reports -ETIME for the command that got no answer and -ENODEV for
 * those after it. Any other error concerns one object only.
 *
 * Context: Any.
 * Return: whether it does.
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
int kefa_destroy_qp(struct kefa_refused *refused, struct kefa_hw_qp *hq);
int kefa_destroy_mr(struct kefa_refused *refused, struct ib_mr *mr);
int kefa_destroy_ah(struct kefa_refused *refused, struct ib_ah *ah);

#endif /* KEFA_DESTROY_H */
