// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The tracepoints themselves. */
#include "direct/op.h"
#include "rdm/packet.h"
#include "rdm/peer.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
