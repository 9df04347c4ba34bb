/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Events of the data path, devices and addresses. They identify endpoints by device and
 * queue pair number, operations by slot, peers by GID and queue pair number, and regions by
 * key, never by pointers. A device's name can change at any time, so at most the size of
 * the field is copied.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kofi_efa

#if !defined(KEFA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KEFA_TRACE_H

#include <linux/tracepoint.h>
#include "ep.h"
#include "mr.h"

struct kefa_op;
struct kefa_rpeer;

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
		__array(char, dev, FI_NAME_MAX)
		__field(u32, qpn)
		__field(u32, slot)
		__field(u64, flags)
		__field(u64, addr)
		__field(u64, len)
		__field(u32, wrs)
	),
	TP_fast_assign(
		strscpy(__entry->dev, ep->dom->dev->name,
			sizeof(__entry->dev));
		__entry->qpn = ep->hq.qpn;
		__entry->slot = kefa_op_slot(op);
		__entry->flags = op->flags;
		__entry->addr = addr;
		__entry->len = op->len;
		__entry->wrs = op->parts;
	),
	TP_printk("dev=%s qp=%u op=%u %s peer=%lld len=%llu wrs=%u",
		  __entry->dev, __entry->qpn, __entry->slot,
		  kefa_show_op(__entry->flags), __entry->addr, __entry->len,
		  __entry->wrs)
);

TRACE_EVENT(kefa_refused,
	TP_PROTO(const struct kefa_ep *ep, const struct kofi_req *req, int ret),
	TP_ARGS(ep, req, ret),
	TP_STRUCT__entry(
		__array(char, dev, FI_NAME_MAX)
		__field(u32, qpn)
		__field(u64, flags)
		__field(u64, addr)
		__field(u64, len)
		__field(int, ret)
	),
	TP_fast_assign(
		strscpy(__entry->dev, ep->dom->dev->name,
			sizeof(__entry->dev));
		__entry->qpn = ep->hq.qpn;
		__entry->flags = req->what;
		__entry->addr = req->addr;
		__entry->len = iov_iter_count(&req->iter);
		__entry->ret = ret;
	),
	TP_printk("dev=%s qp=%u %s peer=%lld len=%llu ret=%d",
		  __entry->dev, __entry->qpn, kefa_show_op(__entry->flags),
		  __entry->addr, __entry->len, __entry->ret)
);

DECLARE_EVENT_CLASS(kefa_completion,
	TP_PROTO(const struct kefa_ep *ep, const struct kefa_op *op),
	TP_ARGS(ep, op),
	TP_STRUCT__entry(
		__array(char, dev, FI_NAME_MAX)
		__field(u32, qpn)
		__field(u32, slot)
		__field(u64, flags)
		__field(u64, len)
		__field(int, err)
		__field(u32, status)
	),
	TP_fast_assign(
		strscpy(__entry->dev, ep->dom->dev->name,
			sizeof(__entry->dev));
		__entry->qpn = ep->hq.qpn;
		__entry->slot = kefa_op_slot(op);
		__entry->flags = op->flags;
		__entry->len = op->len;
		__entry->err = op->err;
		__entry->status = op->prov_errno;
	),
	TP_printk("dev=%s qp=%u op=%u %s len=%llu err=%d status=%u",
		  __entry->dev, __entry->qpn, __entry->slot,
		  kefa_show_op(__entry->flags), __entry->len, __entry->err,
		  __entry->status)
);

/* kefa_done for each completion, and in addition kefa_error for failures. */
DEFINE_EVENT(kefa_completion, kefa_done,
	TP_PROTO(const struct kefa_ep *ep, const struct kefa_op *op),
	TP_ARGS(ep, op));

DEFINE_EVENT(kefa_completion, kefa_error,
	TP_PROTO(const struct kefa_ep *ep, const struct kefa_op *op),
	TP_ARGS(ep, op));

TRACE_EVENT(kefa_ep,
	TP_PROTO(const struct kefa_ep *ep, bool enabled, int err),
	TP_ARGS(ep, enabled, err),
	TP_STRUCT__entry(
		__array(char, dev, FI_NAME_MAX)
		__field(u32, qpn)
		__field(bool, enabled)
		__field(int, err)
		__field(u32, tx)
		__field(u32, rx)
	),
	TP_fast_assign(
		strscpy(__entry->dev, ep->dom->dev->name,
			sizeof(__entry->dev));
		__entry->qpn = ep->hq.qpn;
		__entry->enabled = enabled;
		__entry->err = err;
		__entry->tx = ep->tx.base.size - ep->tx.nfree;
		__entry->rx = ep->rx.base.size - ep->rx.nfree;
	),
	TP_printk("dev=%s qp=%u %s err=%d tx=%u rx=%u", __entry->dev,
		  __entry->qpn, __entry->enabled ? "enabled" : "stopped",
		  __entry->err, __entry->tx, __entry->rx)
);

TRACE_EVENT(kefa_peer,
	TP_PROTO(const char *name, const u8 *gid, u32 qpn, u32 index,
		 bool there, int ret),
	TP_ARGS(name, gid, qpn, index, there, ret),
	TP_STRUCT__entry(
		__array(char, dev, FI_NAME_MAX)
		__array(u8, gid, FI_EFA_GID_LEN)
		__field(u32, qpn)
		__field(u32, index)
		__field(bool, there)
		__field(int, ret)
	),
	TP_fast_assign(
		strscpy(__entry->dev, name,
			sizeof(__entry->dev));
		memcpy(__entry->gid, gid, FI_EFA_GID_LEN);
		__entry->qpn = qpn;
		__entry->index = index;
		__entry->there = there;
		__entry->ret = ret;
	),
	TP_printk("dev=%s peer=%u %s gid=%pI6c qp=%u ret=%d", __entry->dev,
		  __entry->index, __entry->there ? "inserted" : "removed",
		  __entry->gid, __entry->qpn, __entry->ret)
);

TRACE_EVENT(kefa_ah,
	TP_PROTO(const char *name, const u8 *gid, bool there, int ret),
	TP_ARGS(name, gid, there, ret),
	TP_STRUCT__entry(
		__array(char, dev, FI_NAME_MAX)
		__array(u8, gid, FI_EFA_GID_LEN)
		__field(bool, there)
		__field(int, ret)
	),
	TP_fast_assign(
		strscpy(__entry->dev, name,
			sizeof(__entry->dev));
		memcpy(__entry->gid, gid, FI_EFA_GID_LEN);
		__entry->there = there;
		__entry->ret = ret;
	),
	TP_printk("dev=%s gid=%pI6c %s ret=%d", __entry->dev, __entry->gid,
		  __entry->there ? "created" : "destroyed", __entry->ret)
);

TRACE_EVENT(kefa_slid,
	TP_PROTO(const char *name, const u8 *gid, u16 slid, const char *what),
	TP_ARGS(name, gid, slid, what),
	TP_STRUCT__entry(
		__array(char, dev, FI_NAME_MAX)
		__array(u8, gid, FI_EFA_GID_LEN)
		__field(u16, slid)
		__array(char, what, 12)
	),
	TP_fast_assign(
		strscpy(__entry->dev, name,
			sizeof(__entry->dev));
		memcpy(__entry->gid, gid, FI_EFA_GID_LEN);
		__entry->slid = slid;
		strscpy(__entry->what, what, sizeof(__entry->what));
	),
	TP_printk("dev=%s gid=%pI6c slid=%u %s", __entry->dev, __entry->gid,
		  __entry->slid, __entry->what)
);

TRACE_EVENT(kefa_device,
	TP_PROTO(const char *name, bool there),
	TP_ARGS(name, there),
	TP_STRUCT__entry(
		__array(char, dev, FI_NAME_MAX)
		__field(bool, there)
	),
	TP_fast_assign(
		strscpy(__entry->dev, name,
			sizeof(__entry->dev));
		__entry->there = there;
	),
	TP_printk("dev=%s %s", __entry->dev,
		  __entry->there ? "arrived" : "removed")
);

TRACE_EVENT(kefa_mr,
	TP_PROTO(const struct kefa_mr *mr, u32 status),
	TP_ARGS(mr, status),
	TP_STRUCT__entry(
		__array(char, dev, FI_NAME_MAX)
		__field(u32, key)
		__field(bool, reg)
		__field(u64, len)
		__field(u32, status)
	),
	TP_fast_assign(
		strscpy(__entry->dev, mr->dom->dev->name,
			sizeof(__entry->dev));
		__entry->key = mr->mr_fid.key;
		__entry->reg = mr->state == KEFA_MR_REGISTERING;
		__entry->len = mr->len;
		__entry->status = status;
	),
	TP_printk("dev=%s key=%#x %s len=%llu status=%u", __entry->dev,
		  __entry->key, __entry->reg ? "reg" : "inval", __entry->len,
		  __entry->status)
);

TRACE_EVENT(kefa_refill,
	TP_PROTO(const char *name, u32 pages, u32 regions, int ret),
	TP_ARGS(name, pages, regions, ret),
	TP_STRUCT__entry(
		__array(char, dev, FI_NAME_MAX)
		__field(u32, pages)
		__field(u32, regions)
		__field(int, ret)
	),
	TP_fast_assign(
		strscpy(__entry->dev, name,
			sizeof(__entry->dev));
		__entry->pages = pages;
		__entry->regions = regions;
		__entry->ret = ret;
	),
	TP_printk("dev=%s pages=%u regions=%u ret=%d", __entry->dev,
		  __entry->pages, __entry->regions, __entry->ret)
);

TRACE_EVENT(kefa_packet,
	TP_PROTO(const struct kefa_ep *ep, const struct kefa_rpeer *peer, u8 type, u32 msg_id,
		 u64 len, bool sent),
	TP_ARGS(ep, peer, type, msg_id, len, sent),
	TP_STRUCT__entry(
		__array(char, dev, FI_NAME_MAX)
		__field(u32, qpn)
		__field(u32, peer)
		__array(char, type, 20)
		__field(u32, msg_id)
		__field(u64, len)
		__field(bool, sent)
	),
	TP_fast_assign(
		strscpy(__entry->dev, ep->dom->dev->name,
			sizeof(__entry->dev));
		__entry->qpn = ep->hq.qpn;
		__entry->peer = peer->id;
		strscpy(__entry->type, kefa_pkt_rows[type].name, sizeof(__entry->type));
		__entry->msg_id = msg_id;
		__entry->len = len;
		__entry->sent = sent;
	),
	TP_printk("dev=%s qp=%u peer=%u %s %s msg=%u len=%llu", __entry->dev,
		  __entry->qpn, __entry->peer, __entry->sent ? "sent" : "received",
		  __entry->type, __entry->msg_id, __entry->len)
);

TRACE_EVENT(kefa_bad,
	TP_PROTO(const struct kefa_ep *ep, u32 peer, const char *why),
	TP_ARGS(ep, peer, why),
	TP_STRUCT__entry(
		__array(char, dev, FI_NAME_MAX)
		__field(u32, qpn)
		__field(u32, peer)
		__array(char, why, 12)
	),
	TP_fast_assign(
		strscpy(__entry->dev, ep->dom->dev->name,
			sizeof(__entry->dev));
		__entry->qpn = ep->hq.qpn;
		__entry->peer = peer;
		strscpy(__entry->why, why, sizeof(__entry->why));
	),
	TP_printk("dev=%s qp=%u peer=%d refused: %s", __entry->dev, __entry->qpn,
		  (int)__entry->peer, __entry->why)
);

TRACE_EVENT(kefa_drop,
	TP_PROTO(const struct kefa_ep *ep, u32 peer, int why),
	TP_ARGS(ep, peer, why),
	TP_STRUCT__entry(
		__array(char, dev, FI_NAME_MAX)
		__field(u32, qpn)
		__field(u32, peer)
		__field(int, why)
	),
	TP_fast_assign(
		strscpy(__entry->dev, ep->dom->dev->name,
			sizeof(__entry->dev));
		__entry->qpn = ep->hq.qpn;
		__entry->peer = peer;
		__entry->why = why;
	),
	TP_printk("dev=%s qp=%u peer=%d dropped: %d", __entry->dev, __entry->qpn,
		  (int)__entry->peer, __entry->why)
);

TRACE_EVENT(kefa_liar,
	TP_PROTO(const struct kefa_ep *ep, u16 slid, u32 src_qpn, u32 connid, const u8 *gid),
	TP_ARGS(ep, slid, src_qpn, connid, gid),
	TP_STRUCT__entry(
		__array(char, dev, FI_NAME_MAX)
		__field(u32, qpn)
		__field(u16, slid)
		__field(u32, src_qpn)
		__field(u32, connid)
		__array(u8, gid, FI_EFA_GID_LEN)
	),
	TP_fast_assign(
		strscpy(__entry->dev, ep->dom->dev->name,
			sizeof(__entry->dev));
		__entry->qpn = ep->hq.qpn;
		__entry->slid = slid;
		__entry->src_qpn = src_qpn;
		__entry->connid = connid;
		memcpy(__entry->gid, gid, FI_EFA_GID_LEN);
	),
	TP_printk("dev=%s qp=%u slid=%u of qp %u claims connid=%#x gid=%pI6c", __entry->dev,
		  __entry->qpn, __entry->slid, __entry->src_qpn, __entry->connid,
		  __entry->gid)
);

TRACE_EVENT(kefa_rpeer,
	TP_PROTO(const struct kefa_ep *ep, u32 peer, u32 peer_qpn, const char *what, int err),
	TP_ARGS(ep, peer, peer_qpn, what, err),
	TP_STRUCT__entry(
		__array(char, dev, FI_NAME_MAX)
		__field(u32, qpn)
		__field(u32, peer)
		__field(u32, peer_qpn)
		__array(char, what, 12)
		__field(int, err)
	),
	TP_fast_assign(
		strscpy(__entry->dev, ep->dom->dev->name,
			sizeof(__entry->dev));
		__entry->qpn = ep->hq.qpn;
		__entry->peer = peer;
		__entry->peer_qpn = peer_qpn;
		strscpy(__entry->what, what, sizeof(__entry->what));
		__entry->err = err;
	),
	TP_printk("dev=%s qp=%u peer=%u of qp %u: %s err=%d", __entry->dev, __entry->qpn,
		  __entry->peer, __entry->peer_qpn, __entry->what, __entry->err)
);

#endif /* KEFA_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
