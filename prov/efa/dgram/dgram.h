/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Endpoints of datagrams, which are those of fabric efa-direct on another kind of queue pair. */
#ifndef KEFA_DGRAM_H
#define KEFA_DGRAM_H

#include "../direct/direct.h"

/* The device doesn't learn whether a datagram was delivered. */
#define KEFA_DGRAM_TX_DEFAULTS	(KEFA_TX_DEFAULTS & ~FI_DELIVERY_COMPLETE)

/* plain.c */

extern const struct fi_ops_msg kefa_dgram_msg_ops;
extern const struct kofi_req_ops kefa_dgram_req_ops;

#endif /* KEFA_DGRAM_H */
