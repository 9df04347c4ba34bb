/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Addresses of endpoints: fi_cm(3). There are no connections. */
#ifndef KOFI_CM_H
#define KOFI_CM_H

#include <kofi/fabric.h>

/* Reference: page api/cm of kOFI's documentation; libfabric's fi_cm(3) */
int fi_getname(struct fid *fid, void *addr, size_t *addrlen);

#endif /* KOFI_CM_H */
