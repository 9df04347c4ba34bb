// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Definitions of the tracepoints that blk_trace.h declares. */
#define CREATE_TRACE_POINTS
#include "blk_trace.h"
