/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * ib_core exports this, but declares it in a header of its own. It is needed for
 * what a device refuses to destroy: such an object stays for ever, and would
 * have ib_core complain of a leak when the device goes.
 */
#ifndef COMPAT_EFA_RESTRACK_DEL_H
#define COMPAT_EFA_RESTRACK_DEL_H

#include <rdma/restrack.h>

void rdma_restrack_del(struct rdma_restrack_entry *res);

#endif /* COMPAT_EFA_RESTRACK_DEL_H */
