/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Events of the control path. They identify objects by the ids that debugfs shows, not by
 * pointers.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kofi

#if !defined(KOFI_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KOFI_TRACE_H

#include <linux/tracepoint.h>
#include "kofi.h"

DECLARE_EVENT_CLASS(kofi_provider,
	TP_PROTO(const char *provider, int ret),
	TP_ARGS(provider, ret),
	TP_STRUCT__entry(
		__string(provider, provider)
		__field(int, ret)
	),
	TP_fast_assign(
		kofi_assign_str(provider, provider);
		__entry->ret = ret;
	),
	TP_printk("provider=%s ret=%d", __get_str(provider), __entry->ret)
);

DEFINE_EVENT(kofi_provider, kofi_provider_register,
	TP_PROTO(const char *provider, int ret),
	TP_ARGS(provider, ret));

DEFINE_EVENT(kofi_provider, kofi_provider_deregister,
	TP_PROTO(const char *provider, int ret),
	TP_ARGS(provider, ret));

DEFINE_EVENT(kofi_provider, kofi_getinfo_provider,
	TP_PROTO(const char *provider, int ret),
	TP_ARGS(provider, ret));

TRACE_EVENT(kofi_getinfo_entry,
	TP_PROTO(const char *provider, const char *fabric, const char *domain,
		 const struct kofi_mismatch *why),
	TP_ARGS(provider, fabric, domain, why),
	TP_STRUCT__entry(
		__string(provider, provider)
		__string(fabric, fabric ? fabric : "")
		__string(domain, domain ? domain : "")
		__string(type, why ? why->type : "")
		__string(why, why ? why->field : "")
		__string(offer, why ? why->offer : "")
		__string(hint, why ? why->hint : "")
	),
	TP_fast_assign(
		kofi_assign_str(provider, provider);
		kofi_assign_str(fabric, fabric ? fabric : "");
		kofi_assign_str(domain, domain ? domain : "");
		kofi_assign_str(type, why ? why->type : "");
		kofi_assign_str(why, why ? why->field : "");
		kofi_assign_str(offer, why ? why->offer : "");
		kofi_assign_str(hint, why ? why->hint : "");
	),
	TP_printk("provider=%s fabric=%s domain=%s mismatch=%s.%s offer=%s hint=%s",
		  __get_str(provider), __get_str(fabric), __get_str(domain), __get_str(type),
		  __get_str(why), __get_str(offer), __get_str(hint))
);

TRACE_EVENT(kofi_node_open,
	TP_PROTO(u32 id, int fclass, u32 parent, const char *provider),
	TP_ARGS(id, fclass, parent, provider),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(int, fclass)
		__field(u32, parent)
		__string(provider, provider)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->fclass = fclass;
		__entry->parent = parent;
		kofi_assign_str(provider, provider);
	),
	TP_printk("id=%u class=%d parent=%u provider=%s", __entry->id,
		  __entry->fclass, __entry->parent, __get_str(provider))
);

TRACE_EVENT(kofi_node_close,
	TP_PROTO(u32 id, int ret),
	TP_ARGS(id, ret),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->ret = ret;
	),
	TP_printk("id=%u ret=%d", __entry->id, __entry->ret)
);

TRACE_EVENT(kofi_node_state,
	TP_PROTO(u32 id, int fclass, int from, int to),
	TP_ARGS(id, fclass, from, to),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(int, fclass)
		__field(int, from)
		__field(int, to)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->fclass = fclass;
		__entry->from = from;
		__entry->to = to;
	),
	TP_printk("id=%u class=%d state=%d->%d", __entry->id,
		  __entry->fclass, __entry->from, __entry->to)
);

#endif /* KOFI_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
