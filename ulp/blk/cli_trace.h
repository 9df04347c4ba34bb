/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Trace events of the client. A reply has the same disk, queue, slot and generation as its command.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kofiblk

#if !defined(KOFIBLK_CLI_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KOFIBLK_CLI_TRACE_H

#include <linux/tracepoint.h>
#include "cli.h"

TRACE_EVENT(kofiblk_state,
	TP_PROTO(const char *disk, const char *from, const char *to),
	TP_ARGS(disk, from, to),
	TP_STRUCT__entry(
		__string(disk, disk)
		__string(from, from)
		__string(to, to)
	),
	TP_fast_assign(
		kofi_assign_str(disk, disk);
		kofi_assign_str(from, from);
		kofi_assign_str(to, to);
	),
	TP_printk("disk=%s %s -> %s", __get_str(disk), __get_str(from), __get_str(to))
);

TRACE_EVENT(kofiblk_session,
	TP_PROTO(const char *disk, bool begins, int err),
	TP_ARGS(disk, begins, err),
	TP_STRUCT__entry(
		__string(disk, disk)
		__field(bool, begins)
		__field(int, err)
	),
	TP_fast_assign(
		kofi_assign_str(disk, disk);
		__entry->begins = begins;
		__entry->err = err;
	),
	TP_printk("disk=%s %s err=%d", __get_str(disk), __entry->begins ? "begins" : "ends",
		  __entry->err)
);

TRACE_EVENT(kofiblk_command,
	TP_PROTO(const char *disk, const struct kofiblk_cmd_msg *msg),
	TP_ARGS(disk, msg),
	TP_STRUCT__entry(
		__string(disk, disk)
		__field(u8, op)
		__field(u16, flags)
		__field(u16, queue)
		__field(u64, id)
		__field(u64, offset)
		__field(u64, bytes)
	),
	TP_fast_assign(
		kofi_assign_str(disk, disk);
		__entry->op = msg->op;
		__entry->flags = msg->flags;
		__entry->queue = msg->queue;
		__entry->id = msg->id;
		__entry->offset = msg->offset;
		__entry->bytes = msg->bytes;
	),
	TP_printk("disk=%s %s queue=%u slot=%u gen=%llu flags=%#x offset=%llu bytes=%llu",
		  __get_str(disk), KOFIBLK_SHOW_OP(__entry->op), __entry->queue,
		  KOFIBLK_ID_SLOT(__entry->id), KOFIBLK_ID_GEN(__entry->id), __entry->flags,
		  __entry->offset, __entry->bytes)
);

TRACE_EVENT(kofiblk_reply,
	TP_PROTO(const char *disk, const struct kofiblk_reply_msg *msg),
	TP_ARGS(disk, msg),
	TP_STRUCT__entry(
		__string(disk, disk)
		__field(u8, op)
		__field(u16, flags)
		__field(u16, queue)
		__field(u64, id)
		__field(u16, status)
		__field(u64, bytes)
	),
	TP_fast_assign(
		kofi_assign_str(disk, disk);
		__entry->op = msg->op;
		__entry->flags = msg->flags;
		__entry->queue = msg->queue;
		__entry->id = msg->id;
		__entry->status = msg->status;
		__entry->bytes = msg->bytes;
	),
	TP_printk("disk=%s %s queue=%u slot=%u gen=%llu flags=%#x status=%u bytes=%llu",
		  __get_str(disk), KOFIBLK_SHOW_OP(__entry->op), __entry->queue,
		  KOFIBLK_ID_SLOT(__entry->id), KOFIBLK_ID_GEN(__entry->id), __entry->flags,
		  __entry->status, __entry->bytes)
);

TRACE_EVENT(kofiblk_end,
	TP_PROTO(const char *disk, u8 op, u64 sector, bool aborted, int err),
	TP_ARGS(disk, op, sector, aborted, err),
	TP_STRUCT__entry(
		__string(disk, disk)
		__field(u8, op)
		__field(u64, sector)
		__field(bool, aborted)
		__field(int, err)
	),
	TP_fast_assign(
		kofi_assign_str(disk, disk);
		__entry->op = op;
		__entry->sector = sector;
		__entry->aborted = aborted;
		__entry->err = err;
	),
	TP_printk("disk=%s %s sector=%llu%s err=%d", __get_str(disk), KOFIBLK_SHOW_OP(__entry->op),
		  __entry->sector, __entry->aborted ? " aborted" : "", __entry->err)
);

TRACE_EVENT(kofiblk_checksum,
	TP_PROTO(const char *disk, u8 op, u64 sector, u32 bytes),
	TP_ARGS(disk, op, sector, bytes),
	TP_STRUCT__entry(
		__string(disk, disk)
		__field(u8, op)
		__field(u64, sector)
		__field(u32, bytes)
	),
	TP_fast_assign(
		kofi_assign_str(disk, disk);
		__entry->op = op;
		__entry->sector = sector;
		__entry->bytes = bytes;
	),
	TP_printk("disk=%s %s sector=%llu bytes=%u", __get_str(disk), KOFIBLK_SHOW_OP(__entry->op),
		  __entry->sector, __entry->bytes)
);

TRACE_EVENT(kofiblk_lost,
	TP_PROTO(const char *disk),
	TP_ARGS(disk),
	TP_STRUCT__entry(
		__string(disk, disk)
	),
	TP_fast_assign(
		kofi_assign_str(disk, disk);
	),
	TP_printk("disk=%s", __get_str(disk))
);

TRACE_EVENT(kofiblk_stray_imm,
	TP_PROTO(const char *disk, u32 data),
	TP_ARGS(disk, data),
	TP_STRUCT__entry(
		__string(disk, disk)
		__field(u32, data)
	),
	TP_fast_assign(
		kofi_assign_str(disk, disk);
		__entry->data = data;
	),
	TP_printk("disk=%s data=%#x", __get_str(disk), __entry->data)
);

TRACE_EVENT(kofiblk_refused,
	TP_PROTO(const char *disk, const char *fault),
	TP_ARGS(disk, fault),
	TP_STRUCT__entry(
		__string(disk, disk)
		__string(fault, fault)
	),
	TP_fast_assign(
		kofi_assign_str(disk, disk);
		kofi_assign_str(fault, fault);
	),
	TP_printk("disk=%s: %s", __get_str(disk), __get_str(fault))
);

#endif /* KOFIBLK_CLI_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE cli_trace
#include <trace/define_trace.h>
