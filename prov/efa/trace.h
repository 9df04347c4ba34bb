/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Events of the data path. Endpoints are named by their device and queue pair
 * number, operations by their slot, never by pointers.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kofi_efa

#if !defined(KEFA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KEFA_TRACE_H

#include <linux/tracepoint.h>
#include "kefa.h"

#define kefa_show_op(flags)						\
	__print_flags(flags, "|",					\
		      { FI_SEND, "send" }, { FI_RECV, "recv" },		\
		      { FI_READ, "read" }, { FI_WRITE, "write" },	\
		      { FI_MSG, "msg" }, { FI_RMA, "rma" },		\
		      { FI_REMOTE_WRITE, "remote_write" },		\
		      { FI_REMOTE_CQ_DATA, "data" })

TRACE_EVENT(kefa_post,
	TP_PROTO(const struct kefa_ep *ep, const struct kefa_op *op, u64 addr),
	TP_ARGS(ep, op, addr),
	TP_STRUCT__entry(
		__string(dev, ep->dom->dev->name)
		__field(u32, qpn)
		__field(u32, slot)
		__field(u64, flags)
		__field(u64, addr)
		__field(u64, len)
		__field(u32, wrs)
	),
	TP_fast_assign(
		kofi_assign_str(dev, ep->dom->dev->name);
		__entry->qpn = ep->hq.qpn;
		__entry->slot = op->slot;
		__entry->flags = op->flags;
		__entry->addr = addr;
		__entry->len = op->len;
		__entry->wrs = op->parts;
	),
	TP_printk("dev=%s qp=%u op=%u %s peer=%lld len=%llu wrs=%u",
		  __get_str(dev), __entry->qpn, __entry->slot,
		  kefa_show_op(__entry->flags), __entry->addr, __entry->len,
		  __entry->wrs)
);

TRACE_EVENT(kefa_done,
	TP_PROTO(const struct kefa_ep *ep, const struct kefa_op *op),
	TP_ARGS(ep, op),
	TP_STRUCT__entry(
		__string(dev, ep->dom->dev->name)
		__field(u32, qpn)
		__field(u32, slot)
		__field(u64, flags)
		__field(u64, len)
		__field(int, err)
		__field(u32, status)
	),
	TP_fast_assign(
		kofi_assign_str(dev, ep->dom->dev->name);
		__entry->qpn = ep->hq.qpn;
		__entry->slot = op->slot;
		__entry->flags = op->flags;
		__entry->len = op->len;
		__entry->err = op->err;
		__entry->status = op->prov_errno;
	),
	TP_printk("dev=%s qp=%u op=%u %s len=%llu err=%d status=%u",
		  __get_str(dev), __entry->qpn, __entry->slot,
		  kefa_show_op(__entry->flags), __entry->len, __entry->err,
		  __entry->status)
);

TRACE_EVENT(kefa_device,
	TP_PROTO(const char *name, bool there),
	TP_ARGS(name, there),
	TP_STRUCT__entry(
		__string(dev, name)
		__field(bool, there)
	),
	TP_fast_assign(
		kofi_assign_str(dev, name);
		__entry->there = there;
	),
	TP_printk("dev=%s %s", __get_str(dev),
		  __entry->there ? "arrived" : "removed")
);

TRACE_EVENT(kefa_mr,
	TP_PROTO(const char *name, u32 key, const char *what, u64 len,
		 u32 status),
	TP_ARGS(name, key, what, len, status),
	TP_STRUCT__entry(
		__string(dev, name)
		__string(what, what)
		__field(u32, key)
		__field(u64, len)
		__field(u32, status)
	),
	TP_fast_assign(
		kofi_assign_str(dev, name);
		kofi_assign_str(what, what);
		__entry->key = key;
		__entry->len = len;
		__entry->status = status;
	),
	TP_printk("dev=%s key=%#x %s len=%llu status=%u", __get_str(dev),
		  __entry->key, __get_str(what), __entry->len, __entry->status)
);

#endif /* KEFA_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
