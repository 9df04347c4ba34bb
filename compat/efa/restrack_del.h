/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * ib_core exports this function, but declares it in a private header. The provider calls it
 * for objects that a device refuses to destroy: it leaks them on purpose, and ib_core would
 * report them when the device is removed.
 */
#ifndef COMPAT_EFA_RESTRACK_DEL_H
#define COMPAT_EFA_RESTRACK_DEL_H

#include <rdma/restrack.h>

void rdma_restrack_del(struct rdma_restrack_entry *res);

#endif /* COMPAT_EFA_RESTRACK_DEL_H */
