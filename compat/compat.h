/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Differences between the kernels that we build for. It is included ahead of
 * every file by the compiler's command line, and it is the only place where
 * LINUX_VERSION_CODE may be looked at.
 */
#ifndef KOFI_COMPAT_H
#define KOFI_COMPAT_H

#include <linux/version.h>

/* From 6.10 on __assign_str() finds the source by itself. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define kofi_assign_str(dst, src) __assign_str(dst)
#else
#define kofi_assign_str(dst, src) __assign_str(dst, src)
#endif

/*
 * The last argument of ib_device_ops.create_cq, which only user-space verbs
 * look into.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define compat_create_cq_arg uverbs_attr_bundle
#else
#define compat_create_cq_arg ib_udata
#endif

/* Until then udev renamed a device whatever name the user gave it. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
#define ib_mark_name_assigned_by_user(ibdev) ((void)(ibdev))
#endif

/*
 * From 6.8 on vfs_iter_write() says itself that it begins to write. Macros, as
 * this comes before the kernel's own headers.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
#define compat_iter_write(to, iter, pos, flags) \
	vfs_iter_write(to, iter, pos, flags)
#else
#define compat_iter_write(to, iter, pos, flags)				\
({									\
	struct file *__file = (to);					\
	ssize_t __ret;							\
									\
	file_start_write(__file);					\
	__ret = vfs_iter_write(__file, iter, pos, flags);		\
	file_end_write(__file);						\
	__ret;								\
})
#endif

#endif /* KOFI_COMPAT_H */
