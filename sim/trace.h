/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Tracepoint for each message that the device delivers. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM efasim

#if !defined(EFASIM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define EFASIM_TRACE_H

#include <linux/tracepoint.h>
#include "engine.h"

/* Maximum bytes of a message in an event: libfabric's longest header and a little data. */
#define EFASIM_TAP_BYTES	320

TRACE_EVENT(efasim_msg,
	TP_PROTO(const struct efasim_dev *dev, const struct efasim_pkt *pkt),
	TP_ARGS(dev, pkt),
	TP_STRUCT__entry(
		__array(u8, src, EFASIM_GID_LEN)
		__array(u8, dst, EFASIM_GID_LEN)
		__field(u32, src_qpn)
		__field(u32, dst_qpn)
		__field(u32, len)
		__dynamic_array(u8, data, min_t(u32, pkt->length, EFASIM_TAP_BYTES))
	),
	TP_fast_assign(
		memcpy(__entry->src, pkt->src_gid, EFASIM_GID_LEN);
		memcpy(__entry->dst, dev->gid, EFASIM_GID_LEN);
		__entry->src_qpn = pkt->src_qpn;
		__entry->dst_qpn = pkt->dst_qpn;
		__entry->len = pkt->length;
		memcpy(__get_dynamic_array(data), pkt->payload, __get_dynamic_array_len(data));
	),
	TP_printk("src=%pI6c qp=%u dst=%pI6c qp=%u len=%u data=%s", __entry->src,
		  __entry->src_qpn, __entry->dst, __entry->dst_qpn, __entry->len,
		  __print_hex_str(__get_dynamic_array(data), __get_dynamic_array_len(data)))
);

#endif /* EFASIM_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
