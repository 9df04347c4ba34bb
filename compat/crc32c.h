/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* crc32c() is in <linux/crc32.h> since 6.15, and was a module's before. */
#ifndef KOFI_COMPAT_CRC32C_H
#define KOFI_COMPAT_CRC32C_H

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
#include <linux/crc32.h>
#else
#include <linux/crc32c.h>
#endif

#endif /* KOFI_COMPAT_CRC32C_H */
