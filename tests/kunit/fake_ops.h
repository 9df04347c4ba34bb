/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Private to the two files of kofi_fake.ko; suites only include fake.h. */
#ifndef KOFI_FAKE_OPS_H
#define KOFI_FAKE_OPS_H

#include <linux/build_bug.h>
#include "fake.h"

/* An argument as a number, for recording. */
#define A(x)	((u64)(unsigned long)(x))

int __fake_enter(struct kofi_fake *fake, enum kofi_fake_op op,
		 struct fid *fid, const u64 *arg, size_t count);

/* Record a call with its arguments after the object, each by A(). */
#define fake_enter(fake, op, fid, ...)					\
({									\
	const u64 __arg[] = { 0, ##__VA_ARGS__ };			\
									\
	BUILD_BUG_ON(ARRAY_SIZE(__arg) > KOFI_FAKE_ARGS + 1);		\
	__fake_enter(fake, op, fid, __arg + 1, ARRAY_SIZE(__arg) - 1);	\
})

int fake_fabric(struct kofi_fake *fake, struct fi_fabric_attr *attr,
		struct fid_fabric **fabric, void *context);
void fake_free(struct kofi_fake_obj *obj);
void fake_use_ops(struct kofi_fake *fake);

#endif /* KOFI_FAKE_OPS_H */
