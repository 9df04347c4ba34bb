/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* From 6.15 on <linux/crc32.h> declares crc32c(); before, <linux/crc32c.h> did. */
#ifndef KOFI_COMPAT_CRC32C_H
#define KOFI_COMPAT_CRC32C_H

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
#include <linux/crc32.h>
#else
#include <linux/crc32c.h>
#endif

#endif /* KOFI_COMPAT_CRC32C_H */
