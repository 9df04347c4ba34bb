/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Contents of messages: pure functions. */
#ifndef PP_DATA_H
#define PP_DATA_H

#include <linux/types.h>
#include "wire.h"

#define PP_POISON	0xa5		/* value of bytes that must not be written */
#define PP_HEADER	(2 * sizeof(u32))

u32 pp_seq_of(const void *buf, u32 size);
bool pp_header_ok(const void *buf, u64 seed);
void pp_fill(void *buf, u32 size, u64 seed, u32 seq);
bool pp_verify(const void *buf, u32 size, u64 seed, u32 seq);

#endif /* PP_DATA_H */
