/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Trace events of the server. They name a session by client and export, as the ID is secret. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kofiblk_srv

#if !defined(KOFIBLK_SRV_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KOFIBLK_SRV_TRACE_H

#include <linux/tracepoint.h>
#include "srv.h"

TRACE_EVENT(kofiblk_srv_session,
	TP_PROTO(const struct kbs_session *s, const char *state),
	TP_ARGS(s, state),
	TP_STRUCT__entry(
		__string(client, s->client)
		__string(export, s->name)
		__string(peer, s->from)
		__string(state, state)
	),
	TP_fast_assign(
		kofi_assign_str(client, s->client);
		kofi_assign_str(export, s->name);
		kofi_assign_str(peer, s->from);
		kofi_assign_str(state, state);
	),
	TP_printk("client=%s export=%s peer=%s %s", __get_str(client), __get_str(export),
		  __get_str(peer), __get_str(state))
);

TRACE_EVENT(kofiblk_srv_cmd,
	TP_PROTO(const struct kofiblk_cmd_msg *msg),
	TP_ARGS(msg),
	TP_STRUCT__entry(
		__field(u16, queue)
		__field(u8, op)
		__field(u16, flags)
		__field(u64, id)
		__field(u64, offset)
		__field(u64, bytes)
	),
	TP_fast_assign(
		__entry->queue = msg->queue;
		__entry->op = msg->op;
		__entry->flags = msg->flags;
		__entry->id = msg->id;
		__entry->offset = msg->offset;
		__entry->bytes = msg->bytes;
	),
	TP_printk("queue=%u slot=%u gen=%llu %s flags=%#x offset=%llu bytes=%llu", __entry->queue,
		  KOFIBLK_ID_SLOT(__entry->id), KOFIBLK_ID_GEN(__entry->id),
		  KOFIBLK_SHOW_OP(__entry->op), __entry->flags, __entry->offset, __entry->bytes)
);

TRACE_EVENT(kofiblk_srv_reply,
	TP_PROTO(const struct kofiblk_reply_msg *msg),
	TP_ARGS(msg),
	TP_STRUCT__entry(
		__field(u16, queue)
		__field(u8, op)
		__field(u16, flags)
		__field(u16, status)
		__field(u64, id)
		__field(u64, bytes)
	),
	TP_fast_assign(
		__entry->queue = msg->queue;
		__entry->op = msg->op;
		__entry->flags = msg->flags;
		__entry->status = msg->status;
		__entry->id = msg->id;
		__entry->bytes = msg->bytes;
	),
	TP_printk("queue=%u slot=%u gen=%llu %s flags=%#x status=%u bytes=%llu", __entry->queue,
		  KOFIBLK_ID_SLOT(__entry->id), KOFIBLK_ID_GEN(__entry->id),
		  KOFIBLK_SHOW_OP(__entry->op), __entry->flags, __entry->status, __entry->bytes)
);

TRACE_EVENT(kofiblk_srv_violation,
	TP_PROTO(const char *client, const char *how),
	TP_ARGS(client, how),
	TP_STRUCT__entry(
		__string(client, client)
		__string(how, how)
	),
	TP_fast_assign(
		kofi_assign_str(client, client);
		kofi_assign_str(how, how);
	),
	TP_printk("client=%s %s", __get_str(client), __get_str(how))
);

TRACE_EVENT(kofiblk_srv_checksum,
	TP_PROTO(const struct kbs_session *s, const struct kofiblk_cmd_msg *msg, u32 sum),
	TP_ARGS(s, msg, sum),
	TP_STRUCT__entry(
		__string(client, s->client)
		__field(u8, op)
		__field(u64, offset)
		__field(u64, bytes)
		__field(u32, said)
		__field(u32, sum)
	),
	TP_fast_assign(
		kofi_assign_str(client, s->client);
		__entry->op = msg->op;
		__entry->offset = msg->offset;
		__entry->bytes = msg->bytes;
		__entry->said = msg->sum;
		__entry->sum = sum;
	),
	TP_printk("client=%s %s offset=%llu bytes=%llu said=%#x is=%#x", __get_str(client),
		  KOFIBLK_SHOW_OP(__entry->op), __entry->offset, __entry->bytes, __entry->said,
		  __entry->sum)
);

TRACE_EVENT(kofiblk_srv_stray,
	TP_PROTO(size_t len),
	TP_ARGS(len),
	TP_STRUCT__entry(
		__field(u64, len)
	),
	TP_fast_assign(
		__entry->len = len;
	),
	TP_printk("len=%llu", __entry->len)
);

#endif /* KOFIBLK_SRV_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE srv_trace
#include <trace/define_trace.h>
