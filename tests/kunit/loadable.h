/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Interface of kofi_loadable.ko for the suites. */
#ifndef KOFI_LOADABLE_H
#define KOFI_LOADABLE_H

#include <kofi/provider.h>

#define LOADABLE_NAME		"loadable"
#define LOADABLE_FABRIC		"loadable-fabric"

/* fi_control() of the fabric: int *, references to the module */
#define LOADABLE_REFCOUNT	0x10000

#endif /* KOFI_LOADABLE_H */
