// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A session's objects, opened in this order and closed in reverse. The provider uses the
 * buffers while operations are outstanding, so they are freed after the endpoint is closed.
 */
#include <linux/bitmap.h>
#include <linux/math64.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include "pingpong.h"

/* Smallest region that pp_find_region() tries. */
#define PP_MIN_REGION	PAGE_SIZE

static void pp_cq_handler(struct fid_cq *cq, void *context)
{
	struct pp_session *s = context;

	set_bit(PP_EVENT_CQ, &s->events);
	wake_up(&s->inst->wait);
}

static void pp_eq_handler(struct fid_eq *eq, void *context)
{
	union {
		struct fi_eq_entry		notify;
		struct fi_eq_device_entry	device;
		struct fi_eq_cm_entry		cm;
		/* The longest private data is behind an entry. */
		u8				room[sizeof(struct fi_eq_cm_entry) + PP_DATA_MAX];
	} entry;
	struct pp_session *s = context;
	ssize_t ret;
	u32 event;

	for (;;) {
		struct fi_eq_err_entry error = { };

		ret = fi_eq_read(eq, &event, &entry, sizeof(entry), 0);
		if (ret == -FI_EAVAIL) {
			/* The only error that a queue of this test has. */
			if (fi_eq_readerr(eq, &error, 0) > 0)
				set_bit(PP_EVENT_REFUSED, &s->events);
		} else if (ret < 0 && ret != -FI_EOVERRUN) {
			break;
		} else if (ret > 0 && event == FI_DEVICE_REMOVED) {
			set_bit(PP_EVENT_REMOVED, &s->events);
		} else if (ret >= (ssize_t)sizeof(entry.cm)) {
			pp_connect_event(s, event, &entry.cm, ret - sizeof(entry.cm));
		}
	}
	WARN_ON_ONCE(ret != -EAGAIN);
	wake_up(&s->inst->wait);
}

static int pp_find_caps(struct pp_session *s, u64 caps)
{
	struct fi_info *hints;
	char port[8];
	int ret;

	hints = fi_allocinfo_for(pp_config.prov, pp_config.fabric,
				 pp_config.domain);
	if (!hints)
		return -ENOMEM;
	hints->caps = caps;
	/*
	 * The test posts receives for remote CQ data if the provider needs them, and has room in
	 * front of messages.
	 */
	hints->mode = FI_RX_CQ_DATA | FI_MSG_PREFIX;
	hints->ep_attr->type = pp_config.dgram ? FI_EP_DGRAM :
			       pp_config.connected ? FI_EP_MSG : FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	/* Connections and the session use the same address and port. */
	snprintf(port, sizeof(port), "%u", pp_config.port);
	if (pp_config.connected)
		ret = fi_getinfo(FI_VERSION(2, 0), pp_config.addr, port,
				 s->inst->listener ? FI_SOURCE : 0, hints, &s->info);
	else
		ret = fi_getinfo(FI_VERSION(2, 0), NULL, NULL, 0, hints, &s->info);
	fi_freeinfo(hints);
	return ret;
}

static int pp_find(struct pp_session *s)
{
	u64 caps = FI_MSG | (pp_config.tagged ? FI_TAGGED : 0);
	int ret;

	ret = pp_find_caps(s, caps | FI_RMA);
	if (ret == -ENODATA)
		ret = pp_find_caps(s, caps);
	if (ret)
		pp_report_error(s->inst, ret, "no fabric with %s endpoints",
				pp_config.dgram ? "DGRAM" : pp_config.connected ? "MSG" : "RDM");
	return ret;
}

static size_t pp_option(struct pp_session *s, int option)
{
	size_t value, len = sizeof(value);

	if (!s->ep || fi_getopt(&s->ep->fid, FI_OPT_ENDPOINT, option, &value, &len))
		return s->info->ep_attr->max_msg_size;
	return value;
}

static int pp_open_endpoint(struct pp_session *s)
{
	struct fi_av_attr av_attr = { .count = 1 };

	return fi_av_open(s->domain, &av_attr, &s->av, NULL) ?:
	       fi_endpoint(s->domain, s->info, &s->ep, NULL) ?:
	       fi_ep_bind(s->ep, &s->av->fid, 0) ?:
	       fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV) ?:
	       fi_enable(s->ep);
}

static int pp_open_objects(struct pp_session *s)
{
	struct fi_eq_attr eq_attr = {
		.handler		= pp_eq_handler,
		.handler_context	= s,
	};
	struct fi_cq_attr cq_attr = {
		/* Room for the operations of both directions, and some spare entries. */
		.size			= 2 * s->self.depth + 8,
		.format			= FI_CQ_FORMAT_DATA,
		.handler		= pp_cq_handler,
		.handler_context	= s,
	};

	return fi_fabric(s->info->fabric_attr, &s->fabric, NULL) ?:
	       fi_eq_open(s->fabric, &eq_attr, &s->eq, NULL) ?:
	       fi_domain(s->fabric, s->info, &s->domain, NULL) ?:
	       fi_domain_bind(s->domain, &s->eq->fid, 0) ?:
	       fi_cq_open(s->domain, &cq_attr, &s->cq, NULL) ?:
	       (pp_config.connected ? pp_connect_open(s) : pp_open_endpoint(s));
}

/*
 * Slots are contiguous, because a device may support only one segment per operation. If
 * memory is too fragmented, use less of it.
 */
static int pp_alloc_side(struct pp_side *side, u32 depth, size_t *len)
{
	for (; *len >= PP_MIN_REGION; *len /= 2) {
		side->buf = kzalloc(*len, GFP_KERNEL | __GFP_NOWARN |
					  __GFP_NORETRY);
		if (side->buf)
			break;
	}
	side->slots = kcalloc(depth, sizeof(*side->slots), GFP_KERNEL);
	side->free = kcalloc(depth, sizeof(*side->free), GFP_KERNEL);
	return side->buf && side->slots && side->free ? 0 : -ENOMEM;
}

/*
 * The room for prefixes isn't available to tests. Datagrams are received in buffers for the longest
 * one, as those that are left of a test serve the next.
 */
static int pp_alloc_prefixes(struct pp_session *s)
{
	const u32 prefix = s->info->mode & FI_MSG_PREFIX ? s->info->ep_attr->msg_prefix_size : 0;
	const u64 room = (u64)s->self.depth * ALIGN(prefix, PP_SLOT_ALIGN);
	const u32 longest = s->info->ep_attr->max_msg_size;

	s->tx.prefix = prefix;
	s->rx.prefix = prefix;
	if (s->lossy)
		s->self.depth = min_t(u64, s->self.depth,
				      div_u64(s->self.memory, pp_stride(prefix + longest)));
	if (!s->self.depth || room >= s->self.memory)
		return -ENOMEM;
	s->self.memory -= room;
	if (s->lossy)
		pp_side_reset(&s->rx, longest, s->self.depth, true);
	return 0;
}

static int pp_alloc(struct pp_session *s)
{
	size_t len = roundup_pow_of_two((size_t)pp_config.memory * SZ_1K);
	int ret;

	/* A cache line for each receive, because the device may write to it. */
	s->scratch = kcalloc(roundup_pow_of_two(s->self.depth), PP_SLOT_ALIGN,
			     GFP_KERNEL);
	s->seen = bitmap_zalloc(PP_COUNT_MAX, GFP_KERNEL);
	if (!s->scratch || !s->seen)
		return -ENOMEM;
	ret = pp_alloc_side(&s->tx, s->self.depth, &len) ?:
	      pp_alloc_side(&s->rx, s->self.depth, &len);
	s->self.memory = len;
	return ret ?: pp_alloc_prefixes(s);
}

/* Find the size of the largest region by trying, because no attribute of fi_info has it. */
static int pp_find_region(struct pp_session *s)
{
	size_t len = s->self.memory;
	struct fid_mr *mr;
	int ret;

	while ((ret = fi_mr_reg(s->domain, s->rx.buf, len,
				FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr,
				NULL)) == -EMSGSIZE && len > PP_MIN_REGION)
		len /= 2;
	if (ret)
		return ret;
	pp_close_fid(&mr->fid);
	s->self.memory = len;
	return 0;
}

/* With connections, both sides name the server's address. */
static int pp_name(struct pp_session *s)
{
	const struct fi_info *info = s->info;
	const void *addr = info->src_addr ?: info->dest_addr;
	size_t len = sizeof(s->self_addr.bytes);
	int ret;

	s->addr_format = info->addr_format;
	if (!pp_config.connected) {
		ret = fi_getname(&s->ep->fid, s->self_addr.bytes, &len);
		s->self_addr.len = len;
		return ret;
	}
	s->self_addr.len = info->src_addr ? info->src_addrlen : info->dest_addrlen;
	memcpy(s->self_addr.bytes, addr, s->self_addr.len);
	return 0;
}

static int pp_limits(struct pp_session *s)
{
	const struct fi_domain_attr *domain = s->info->domain_attr;
	int ret;

	s->self.max_msg = pp_option(s, FI_OPT_MAX_MSG_SIZE);
	if (s->info->caps & FI_RMA) {
		ret = pp_find_region(s);
		if (ret && ret != -EOPNOTSUPP)
			return ret;
		/* Memory that the device reaches only by bounce buffers can't be registered. */
		if (!ret) {
			s->self.max_rma = pp_option(s, FI_OPT_MAX_RMA_SIZE);
			s->self.can = PP_CAN_RMA;
			if (domain->cq_data_size >= sizeof(u32))
				s->self.can |= PP_CAN_CQ_DATA;
		}
	}
	if (s->info->caps & FI_TAGGED)
		s->self.can |= PP_CAN_TAGGED;
	if (s->lossy)
		s->self.can |= PP_CAN_LOSE;
	if (pp_config.connected)
		s->self.can |= PP_CAN_CONNECT;
	s->rx_cq_data = (s->info->mode | s->info->rx_attr->mode) &
			FI_RX_CQ_DATA;
	return pp_name(s);
}

/**
 * pp_open() - open an endpoint and learn its limits
 * @s: the session; pp_close() closes the objects, also after a failure
 *
 * Return: 0, or a negative errno, which is reported.
 */
int pp_open(struct pp_session *s)
{
	int ret = pp_find(s);

	if (ret)
		return ret;
	s->lossy = s->info->ep_attr->type == FI_EP_DGRAM;
	s->self.depth = min3((size_t)pp_config.depth, s->info->tx_attr->size,
			     s->info->rx_attr->size) ?: 1;
	ret = pp_open_objects(s);
	if (ret) {
		pp_report_error(s->inst, ret, "can't open an endpoint");
		return ret;
	}
	ret = pp_alloc(s) ?: pp_limits(s);
	if (ret)
		pp_report_error(s->inst, ret, "can't register memory for the peer");
	else
		pp_report_fabric(s);
	return ret;
}

/**
 * pp_meet() - insert the peer's address into the address vector, unless there will be a connection
 * @s: the session, which knows the address
 *
 * Return: 0, or a negative errno.
 */
int pp_meet(struct pp_session *s)
{
	int ret;

	/* Don't insert an address of another fabric's format. */
	if (s->peer_addr_of.len != s->self_addr.len)
		return -EPROTO;
	if (pp_config.connected)
		return 0;
	ret = fi_av_insert(s->av, s->peer_addr_of.bytes, 1, &s->peer_addr, 0, NULL);
	if (ret < 0)
		return ret;
	return ret == 1 ? 0 : -EADDRNOTAVAIL;
}

/**
 * pp_close_fid() - close an object on which nothing depends
 * @fid: the object
 */
void pp_close_fid(struct fid *fid)
{
	int ret = fi_close(fid);

	if (ret)
		pr_err("kofi_pingpong: can't close an object: %s\n", fi_strerror(-ret));
}

static void pp_free_side(struct pp_side *side)
{
	kfree(side->buf);
	kfree(side->slots);
	kfree(side->free);
}

/**
 * pp_close() - undo pp_open()
 * @s: the session
 */
void pp_close(struct pp_session *s)
{
	if (s->ep)
		pp_close_fid(&s->ep->fid);
	pp_connect_close(s);
	if (s->cq)
		pp_close_fid(&s->cq->fid);
	if (s->av)
		pp_close_fid(&s->av->fid);
	if (s->domain)
		pp_close_fid(&s->domain->fid);
	if (s->eq)
		pp_close_fid(&s->eq->fid);
	if (s->fabric)
		pp_close_fid(&s->fabric->fid);
	fi_freeinfo(s->request);
	fi_freeinfo(s->info);
	pp_free_side(&s->rx);
	pp_free_side(&s->tx);
	kfree(s->scratch);
	bitmap_free(s->seen);
}
