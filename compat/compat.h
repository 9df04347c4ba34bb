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

#endif /* KOFI_COMPAT_H */
