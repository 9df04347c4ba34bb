/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Differences between the kernels that we build for. It is included ahead of
 * every file by the compiler's command line, and it is the only place where
 * LINUX_VERSION_CODE may be looked at.
 */
#ifndef KOFI_COMPAT_H
#define KOFI_COMPAT_H

#include <linux/version.h>

/* Older kernels have no name for it, and some zero all that is on the stack. */
#ifndef __uninitialized
#define __uninitialized
#endif

/* From 6.13 on a namespace is a string; before, it was quoted by the macros. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define KOFI		"KOFI"
#define KOFI_PROVIDER	"KOFI_PROVIDER"
#define KOFI_TEST	"KOFI_TEST"
#define KOFI_BENCH	"KOFI_BENCH"
#define KOFIBLK		"KOFIBLK"
#define EFASIM		"EFASIM"
#endif

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

/* Until 6.4 hex2bin() was declared by <linux/kernel.h>, and later by both. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
#include <linux/hex.h>
#endif

/* Until 6.13 a timer's function was set after hrtimer_init(). */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define hrtimer_setup(timer, fn, clock, mode)				\
do {									\
	struct hrtimer *__timer = (timer);				\
									\
	hrtimer_init(__timer, clock, mode);				\
	__timer->function = (fn);					\
} while (0)
#endif

/* From 6.14 on blk-mq always merges. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
#define BLK_MQ_F_SHOULD_MERGE 0
#endif

/* From 6.17 on ib_device_ops.reg_user_mr gets a handle for TPH, too. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define COMPAT_DMAH_ARG struct ib_dmah *dmah,
#else
#define COMPAT_DMAH_ARG
#endif

/* From 6.17 on a workqueue says whether it is bound to CPUs, or the kernel warns. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define COMPAT_WQ_PERCPU WQ_PERCPU
#else
#define COMPAT_WQ_PERCPU 0
#endif

/* From 6.18 on the pages of an allocation are always contiguous in memmap. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
#define nth_page(page, n) ((page) + (n))
#endif

/* What kernel_bind() and kernel_connect() take an address as. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#define compat_sockaddr sockaddr_unsized
#else
#define compat_sockaddr sockaddr
#endif

/* Until 7.0 block devices were asked for the opposite. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
#define bdev_rot(bdev) (!bdev_nonrot(bdev))
#endif

#endif /* KOFI_COMPAT_H */
