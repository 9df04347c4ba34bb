// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The tracepoints themselves. */
#define CREATE_TRACE_POINTS
#include "blk_trace.h"
