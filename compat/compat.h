/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Differences between the supported kernels. The compiler's command line includes this
 * file ahead of every source file. Only files in compat/ may test LINUX_VERSION_CODE.
 */
#ifndef KOFI_COMPAT_H
#define KOFI_COMPAT_H

#include <linux/version.h>

/* Older kernels lack this macro, although some initialize all variables on the stack. */
#ifndef __uninitialized
#define __uninitialized
#endif

/* From 6.13 on a symbol namespace is a string. Before, the kernel's macros quoted the name. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define KOFI		"KOFI"
#define KOFI_PROVIDER	"KOFI_PROVIDER"
#define KOFI_TEST	"KOFI_TEST"
#define KOFI_BENCH	"KOFI_BENCH"
#define KOFI_ULP	"KOFI_ULP"
#define KOFI_CM		"KOFI_CM"
#define KOFIBLK		"KOFIBLK"
#define EFASIM		"EFASIM"
#endif

/* From 6.10 on __assign_str() has no source argument. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define kofi_assign_str(dst, src) __assign_str(dst)
#else
#define kofi_assign_str(dst, src) __assign_str(dst, src)
#endif

/* From 6.11 on the last argument of ib_device_ops.create_cq is a uverbs_attr_bundle. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define compat_create_cq_arg uverbs_attr_bundle
#else
#define compat_create_cq_arg ib_udata
#endif

/* Before 6.9 udev renamed devices even if the user had named them. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
#define ib_mark_name_assigned_by_user(ibdev) ((void)(ibdev))
#endif

/*
 * From 6.2 on TCP uses a page of the sending task, unless the socket is used where a task may be
 * about to send on another socket: in memory reclaim.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
#define compat_sock_in_reclaim(sk)	((sk)->sk_use_task_frag = false)
#else
#define compat_sock_in_reclaim(sk)	((void)(sk))
#endif

/* From 6.2 on a kernel socket without a reference to its network namespace is tracked, too. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
#define compat_sock_hold_net(sk)	sk_net_refcnt_upgrade(sk)
#else
#define compat_sock_hold_net(sk)						\
do {										\
	struct sock *__sk = (sk);						\
										\
	__sk->sk_net_refcnt = 1;						\
	get_net_track(sock_net(__sk), &__sk->ns_tracker, GFP_KERNEL);		\
	sock_inuse_add(sock_net(__sk), 1);					\
} while (0)
#endif

/*
 * From 6.8 on vfs_iter_write() calls file_start_write() itself. These are macros because
 * this file comes before the kernel's headers.
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

/* Before 6.4 <linux/kernel.h> declared hex2bin(). */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
#include <linux/hex.h>
#endif

/* Before 6.13 a timer's function had to be set after hrtimer_init(). */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define hrtimer_setup(timer, fn, clock, mode)				\
do {									\
	struct hrtimer *__timer = (timer);				\
									\
	hrtimer_init(__timer, clock, mode);				\
	__timer->function = (fn);					\
} while (0)
#endif

/* Before 6.10 each mapping had to be asked whether it needs to be synced. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define compat_dma_dev_need_sync(dev) dma_dev_need_sync(dev)
#else
#define compat_dma_dev_need_sync(dev) ((void)(dev), true)
#endif

/* From 6.14 on blk-mq always merges. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
#define BLK_MQ_F_SHOULD_MERGE 0
#endif

/* From 6.17 on ib_device_ops.reg_user_mr has an argument for TPH. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define COMPAT_DMAH_ARG struct ib_dmah *dmah,
#else
#define COMPAT_DMAH_ARG
#endif

/* From 6.17 on the kernel warns about a workqueue that is neither per-CPU nor unbound. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define COMPAT_WQ_PERCPU WQ_PERCPU
#else
#define COMPAT_WQ_PERCPU 0
#endif

/* From 6.18 on the pages of an allocation are always contiguous in memmap. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
#define nth_page(page, n) ((page) + (n))
#endif

/* From 6.19 on kernel_bind() and kernel_connect() take an address of type sockaddr_unsized. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#define compat_sockaddr sockaddr_unsized
#else
#define compat_sockaddr sockaddr
#endif

/* Before 7.0 there was only bdev_nonrot(), which returns the opposite. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
#define bdev_rot(bdev) (!bdev_nonrot(bdev))
#endif

#endif /* KOFI_COMPAT_H */
