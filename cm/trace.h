/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Trace events of sessions. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kofi_cm

#if !defined(KCM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KCM_TRACE_H

#include <linux/tracepoint.h>
#include "cm.h"

TRACE_EVENT(kcm_state,
	TP_PROTO(const struct kcm_session *s, enum kcm_state from, enum kcm_state to),
	TP_ARGS(s, from, to),
	TP_STRUCT__entry(
		__field(u32, session)
		__string(peer, s->from)
		__string(from, kcm_state_names[from])
		__string(to, kcm_state_names[to])
	),
	TP_fast_assign(
		__entry->session = s->nr;
		kofi_assign_str(peer, s->from);
		kofi_assign_str(from, kcm_state_names[from]);
		kofi_assign_str(to, kcm_state_names[to]);
	),
	TP_printk("session=%u peer=%s %s -> %s", __entry->session, __get_str(peer),
		  __get_str(from), __get_str(to))
);

TRACE_EVENT(kcm_end,
	TP_PROTO(const struct kcm_session *s, const struct kcm_end *end),
	TP_ARGS(s, end),
	TP_STRUCT__entry(
		__field(u32, session)
		__string(peer, s->from)
		__field(int, err)
		__field(int, reason)
		__field(bool, refused)
		__field(bool, final)
	),
	TP_fast_assign(
		__entry->session = s->nr;
		kofi_assign_str(peer, s->from);
		__entry->err = end->err;
		__entry->reason = end->reason;
		__entry->refused = end->refused;
		__entry->final = end->final;
	),
	TP_printk("session=%u peer=%s err=%d reason=%d refused=%d final=%d", __entry->session,
		  __get_str(peer), __entry->err, __entry->reason, __entry->refused, __entry->final)
);

#endif /* KCM_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
