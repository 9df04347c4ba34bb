/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Differences between the kernels that we build for. It is included ahead of
 * every file by the compiler's command line, and it is the only place where
 * LINUX_VERSION_CODE may be looked at.
 */
#ifndef KOFI_COMPAT_H
#define KOFI_COMPAT_H

#include <linux/version.h>

#endif /* KOFI_COMPAT_H */
