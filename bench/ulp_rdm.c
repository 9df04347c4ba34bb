// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A ULP on kOFI, fabric efa: tagged messages. "rdm" has one endpoint; the harness' peer doesn't
 * know the protocol, so this module writes the packets that it sends. "rdmpair" has an endpoint
 * on each of two devices, and so has "rdmlocal", where the guest has the provider do without the
 * devices. "rdmtx" and "rdmrx" are such pairs, but only the sender's or only the
 * receiver's instructions are counted. They also read and write the receiver's memory by the
 * device; "emutx" and "emurx" do so by packets. Their additions with old values go by packets in
 * any case. "readtx" and "readrx" are such pairs, too, whose messages are read by the receiver from
 * KBR_READ_FROM bytes on. "dgtx" and "dgrx" are pairs of endpoints of datagrams, and "msgtx" and
 * "msgrx" pairs of connected endpoints, whose messages have no tags.
 */
#include <kofi/atomic.h>
#include <kofi/cm.h>
#include <kofi/domain.h>
#include <kofi/efa_ext.h>
#include <kofi/endpoint.h>
#include <kofi/eq.h>
#include <kofi/errno.h>
#include <kofi/rma.h>
#include <kofi/tagged.h>
#include <linux/delay.h>
#include <linux/in.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "../prov/efa/rdm/wire.h"
#include "bench.h"

MODULE_DESCRIPTION("Benchmarks of kOFI: a ULP on fabric efa");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_BENCH);

#define KBR_CQ		1024
#define KBR_SIDES	2
/* Messages of "readtx" and "readrx" that are as long are read by the receiver. */
#define KBR_READ_FROM	SZ_32K
/* Value of kbr_end.counted for all sides. */
#define KBR_ALL		KBR_SIDES
/*
 * Time of the guest, in microseconds, in which the device completes what was posted: per MiB, or
 * per message that is read, of which the device does one after the other.
 */
#define KBR_REST	500
/* An inject has no completion: number of steps after which it has surely completed. */
#define KBR_STEPS	20
/* Tag of the message by which the peer introduces itself. */
#define KBR_GREETING	0
/* Time until the peer knows of receives, in milliseconds, and longest time to wait for an event. */
#define KBR_CREDIT_MS	20
#define KBR_EVENT_MS	5000

/**
 * struct kbr_side - an endpoint and its objects
 * @info: entry of the device
 * @fabric: the fabric
 * @domain: the domain
 * @av: the address vector; NULL for connected endpoints
 * @cq: completion queue for both directions
 * @ep: the endpoint
 * @eq: event queue of a connected endpoint
 * @pep: passive endpoint of the second side, if they are connected
 * @peer: address of the other side in @av
 * @name: raw address of the endpoint
 */
struct kbr_side {
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct fid_av		*av;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
	struct fid_eq		*eq;
	struct fid_pep		*pep;
	fi_addr_t		peer;
	struct fi_efa_addr	name;
};

/**
 * struct kbr_end - an end of "rdm", or both ends of a pair
 * @end: the harness' part
 * @sides: endpoints; pairs have two
 * @count: number of endpoints
 * @counted: index of the side whose instructions are counted, or KBR_ALL
 * @far: the first side reads, writes or adds to memory of the second
 * @packets: with @far, by packets instead of by the device
 * @read_from: length from which messages are read by the receiver, or 0 for the default
 * @dgram: the sides have datagrams instead of tagged messages
 * @prefix: with @dgram, bytes in front of a message
 * @connected: the endpoints are connected
 * @memory: with @far, the second side's memory, @size bytes
 * @mr: region of @memory
 * @buf: buffers, one for each operation
 * @size: size of each buffer in bytes
 * @steps: number of steps since an inject
 * @completed: number of completions in this window
 * @msg_id: number of the peer's next message
 * @nobody: number of failed messages to peers that don't exist; these messages have no context
 * @entries: buffer for completions
 */
struct kbr_end {
	struct kb_end			end;
	struct kbr_side			sides[KBR_SIDES];
	unsigned int			count;
	unsigned int			counted;
	bool				far;
	bool				packets;
	size_t				read_from;
	bool				dgram;
	u32				prefix;
	bool				connected;
	void				*memory;
	struct fid_mr			*mr;
	void				*buf[KB_MAX_BATCH];
	size_t				size;
	u32				steps;
	u32				completed;
	u32				msg_id;
	u32				nobody;
	struct fi_cq_tagged_entry	entries[KB_POLL];
};

static struct kbr_end *to_kbr(struct kb_end *end)
{
	return container_of(end, struct kbr_end, end);
}

/* --- completions --- */

/* A read, write or addition has a completion at the first side only. */
static void kbr_count(struct kbr_end *kbr, ssize_t n)
{
	kbr->completed += n;
	WRITE_ONCE(kbr->end.done, kbr->completed / (kbr->far ? 1 : kbr->count));
}

static int kbr_failed(struct kbr_end *kbr, struct kbr_side *side)
{
	struct fi_cq_err_entry error = { };

	if (fi_cq_readerr(side->cq, &error, 0) != 1)
		return 0;
	if (!error.op_context) {
		kbr->nobody++;
		return 0;
	}
	pr_err("kofi_bench_rdm: error %d, status %d\n", error.err, error.prov_errno);
	kbr->end.failed++;
	return -EIO;
}

static int kbr_take(struct kbr_end *kbr, struct kbr_side *side)
{
	ssize_t n = fi_cq_read(side->cq, kbr->entries, KB_POLL);

	if (n == -FI_EAVAIL)
		return kbr_failed(kbr, side);
	if (n > 0)
		kbr_count(kbr, n);
	return n < 0 && n != -EAGAIN ? n : 0;
}

/* A side begins to work: stop counting unless its instructions are measured. */
static void kbr_turn(struct kbr_end *kbr, unsigned int i)
{
	if (kbr->counted != KBR_ALL && kbr->counted != i)
		kb_stop_counting(&kbr->end);
}

static void kbr_turn_over(struct kbr_end *kbr, unsigned int i)
{
	if (kbr->counted != KBR_ALL && kbr->counted != i)
		kb_count_again(&kbr->end);
}

/* Give the device time for the batch, so that a poll finds the completions of all its messages. */
static void kbr_rest(struct kbr_end *kbr)
{
	const struct kb_test *test = kbr->end.test;
	u32 rest = KBR_REST * (kbr->read_from ? test->batch :
			       DIV_ROUND_UP(test->batch * test->size, SZ_1M));

	if (kbr->counted == KBR_ALL)
		return;
	kb_stop_counting(&kbr->end);
	usleep_range(rest, rest + 50);
	kb_count_again(&kbr->end);
}

static int kbr_poll(struct kb_end *end)
{
	struct kbr_end *kbr = to_kbr(end);
	unsigned int i;
	int ret = 0;

	/* Read completions once, so that empty polls aren't counted, as for efa-direct. */
	if (end->test->kind == KB_INJECT) {
		if (++kbr->steps < KBR_STEPS)
			return 0;
		end->done = end->test->batch;
		return kbr_take(kbr, &kbr->sides[0]);
	}
	kbr_rest(kbr);
	for (i = kbr->count; i-- && !ret;) {
		kbr_turn(kbr, i);
		ret = kbr_take(kbr, &kbr->sides[i]);
		kbr_turn_over(kbr, i);
	}
	return ret;
}

static int kbr_sleep(struct kb_end *end)
{
	struct kbr_end *kbr = to_kbr(end);
	ssize_t n;

	n = fi_cq_sread(kbr->sides[0].cq, kbr->entries, KB_POLL, NULL, -1);
	if (n == -FI_EAVAIL)
		return kbr_failed(kbr, &kbr->sides[0]);
	if (n > 0)
		kbr_count(kbr, n);
	return n < 0 && n != -EAGAIN ? n : 0;
}

/* --- posting --- */

static ssize_t kbr_send(struct kbr_end *kbr, u32 i)
{
	struct kbr_side *side = &kbr->sides[0];

	if (kbr->dgram)
		return fi_send(side->ep, kbr->buf[i], kbr->prefix + kbr->end.test->size, NULL,
			       side->peer, kbr);
	if (kbr->connected)
		return fi_send(side->ep, kbr->buf[i], kbr->end.test->size, NULL, 0, kbr);
	return fi_tsend(side->ep, kbr->buf[i], kbr->end.test->size, NULL, side->peer, i + 1, kbr);
}

static ssize_t kbr_recv(struct kbr_end *kbr, struct kbr_side *side, u32 i)
{
	if (kbr->dgram)
		return fi_recv(side->ep, kbr->buf[i], kbr->size, NULL, FI_ADDR_UNSPEC, kbr);
	if (kbr->connected)
		return fi_recv(side->ep, kbr->buf[i], kbr->size, NULL, 0, kbr);
	return fi_trecv(side->ep, kbr->buf[i], kbr->size, NULL, FI_ADDR_UNSPEC, i + 1, 0, kbr);
}

static ssize_t kbr_recvs(struct kbr_end *kbr, struct kbr_side *side, u32 n)
{
	ssize_t ret = 0;
	u32 i;

	for (i = 0; i < n && !ret; i++)
		ret = kbr_recv(kbr, side, i);
	return ret;
}

/*
 * Receive a batch of unexpected messages. Only the last message has a receive, which was posted
 * with the previous batch: when it completes, the other messages have arrived.
 */
static ssize_t kbr_recv_late(struct kbr_end *kbr)
{
	u32 n = kbr->end.test->batch;
	ssize_t ret = 0;

	while (!ret && !kbr->completed) {
		ret = kbr_take(kbr, &kbr->sides[0]);
		kb_step();
	}
	ret = ret ?: kbr_recvs(kbr, &kbr->sides[0], n - 1);
	return ret ?: kbr_recv(kbr, &kbr->sides[0], n - 1);
}

static ssize_t kbr_injects(struct kbr_end *kbr)
{
	struct kbr_side *side = &kbr->sides[0];
	const struct kb_test *test = kbr->end.test;
	ssize_t ret = 0;
	u32 i;

	kbr->steps = 0;
	for (i = 0; i < test->batch && !ret; i++)
		ret = fi_tinject(side->ep, kbr->buf[i], test->size, side->peer, i + 1);
	return ret;
}

/* Wait until the first side may send as many messages as the second one has posted receives. */
static void kbr_credit(struct kbr_end *kbr)
{
	if (!kbr->connected)
		return;
	kb_stop_counting(&kbr->end);
	msleep(KBR_CREDIT_MS);
	kb_count_again(&kbr->end);
}

/* Exchange one message. */
static ssize_t kbr_greet(struct kbr_end *kbr)
{
	struct kbr_side *to = &kbr->sides[1], *from = &kbr->sides[0];
	ssize_t ret;

	if (kbr->dgram)
		return kbr_recv(kbr, to, 0) ?: kbr_send(kbr, 0);
	if (!kbr->connected)
		return fi_trecv(to->ep, kbr->buf[0], kbr->size, NULL, FI_ADDR_UNSPEC, KBR_GREETING,
				0, kbr) ?:
		       fi_tsend(from->ep, kbr->buf[0], 1, NULL, from->peer, KBR_GREETING, kbr);
	ret = fi_recv(to->ep, kbr->buf[0], kbr->size, NULL, 0, kbr);
	msleep(KBR_CREDIT_MS);
	return ret ?: fi_send(from->ep, kbr->buf[0], 1, NULL, 0, kbr);
}

/*
 * Send a short message, so that the provider's workers notice that the queues are polled. With
 * events on, the workers would handle the batch's completions while nothing is counted.
 */
static ssize_t kbr_stir(struct kbr_end *kbr)
{
	struct kbr_side *to = &kbr->sides[1], *from = &kbr->sides[0];
	ssize_t ret;
	u32 i;

	kb_stop_counting(&kbr->end);
	ret = kbr_greet(kbr);
	for (i = 0; (i < KBR_STEPS || kbr->completed < 2) && !ret; i++) {
		ret = kbr_take(kbr, to) ?: kbr_take(kbr, from);
		usleep_range(KBR_REST, KBR_REST + 50);
	}
	kbr->completed = 0;
	WRITE_ONCE(kbr->end.done, 0);
	kb_count_again(&kbr->end);
	return ret;
}

static ssize_t kbr_transfer(struct kbr_end *kbr, u8 *buf)
{
	const u64 addr = kbr->mr->base_addr, key = fi_mr_key(kbr->mr);
	const struct kb_test *test = kbr->end.test;
	struct kbr_side *side = &kbr->sides[0];

	switch (test->kind) {
	case KB_READ:
		return fi_read(side->ep, buf, test->size, NULL, side->peer, addr, key, kbr);
	case KB_FETCH:
		return fi_fetch_atomic(side->ep, buf, test->size / sizeof(u64), NULL,
				       buf + test->size, NULL, side->peer, addr, key, FI_UINT64,
				       FI_SUM, kbr);
	default:
		return fi_write(side->ep, buf, test->size, NULL, side->peer, addr, key, kbr);
	}
}

/* Read, write or add to the second side's memory. */
static ssize_t kbr_transfers(struct kbr_end *kbr)
{
	ssize_t ret = kbr_stir(kbr);
	u32 i;

	kbr_turn(kbr, 0);
	for (i = 0; i < kbr->end.test->batch && !ret; i++)
		ret = kbr_transfer(kbr, kbr->buf[i]);
	kbr_turn_over(kbr, 0);
	return ret;
}

/* Post sends at the first side, and receives at the second one, if there is one. */
static ssize_t kbr_sends(struct kbr_end *kbr)
{
	const u32 n = kbr->end.test->batch;
	ssize_t ret = 0;
	u32 i;

	if (kbr->counted != KBR_ALL)
		ret = kbr_stir(kbr);
	if (kbr->count > 1 && !ret) {
		kbr_turn(kbr, 1);
		ret = kbr_recvs(kbr, &kbr->sides[1], n);
		kbr_turn_over(kbr, 1);
		kbr_credit(kbr);
	}
	kbr_turn(kbr, 0);
	for (i = 0; i < n && !ret; i++)
		ret = kbr_send(kbr, i);
	kbr_turn_over(kbr, 0);
	return ret;
}

static int kbr_post(struct kb_end *end)
{
	struct kbr_end *kbr = to_kbr(end);
	const struct kb_test *test = end->test;

	kbr->completed = 0;
	if (kbr->far)
		return kbr_transfers(kbr);
	if (kbr->count > 1)
		return kbr_sends(kbr);
	switch (test->kind) {
	case KB_SEND:
		return kbr_sends(kbr);
	case KB_INJECT:
		return kbr_injects(kbr);
	case KB_RECV:
		return kbr_recvs(kbr, &kbr->sides[0], test->batch);
	case KB_LATE:
		return kbr_recv_late(kbr);
	default:
		return -EOPNOTSUPP;
	}
}

/* --- packets of the peer --- */

static u32 kbr_packet_shake(struct kbr_end *kbr, void *buf)
{
	struct kefa_handshake_hdr *hdr = buf;
	struct kefa_handshake_opt_connid_hdr *opt = (void *)&hdr->extra_info[1];

	hdr->base.type = KEFA_HANDSHAKE_PKT;
	hdr->base.version = KEFA_PROTOCOL_VERSION;
	hdr->base.flags = cpu_to_le16(KEFA_PKT_CONNID_HDR);
	hdr->nextra_p3 = cpu_to_le32(KEFA_NEXTRA_P3 + 1);
	hdr->extra_info[0] = cpu_to_le64(KEFA_FEATURE_DELIVERY_COMPLETE |
					 KEFA_REQUEST_CONNID_HEADER);
	opt->connid = cpu_to_le32(kbr->end.peer.qkey);
	opt->padding = 0;
	return sizeof(*hdr) + sizeof(hdr->extra_info[0]) + sizeof(*opt);
}

static u32 kbr_packet_eager(struct kbr_end *kbr, u64 tag, u32 len, void *buf)
{
	struct kefa_eager_tagrtm_hdr *hdr = buf;
	struct kefa_req_opt_connid_hdr *opt = (void *)(hdr + 1);

	hdr->hdr.base.type = KEFA_EAGER_TAGRTM_PKT;
	hdr->hdr.base.version = KEFA_PROTOCOL_VERSION;
	hdr->hdr.base.flags = cpu_to_le16(KEFA_PKT_CONNID_HDR | KEFA_REQ_MSG | KEFA_REQ_TAGGED);
	hdr->hdr.msg_id = cpu_to_le32(kbr->msg_id++);
	hdr->tag = cpu_to_le64(tag);
	opt->connid = cpu_to_le32(kbr->end.peer.qkey);
	return sizeof(*hdr) + sizeof(*opt) + len;
}

static u32 kbr_packet(struct kb_end *end, int i, void *buf)
{
	struct kbr_end *kbr = to_kbr(end);

	if (i == -2)
		return kbr_packet_shake(kbr, buf);
	if (i == -1)
		return kbr_packet_eager(kbr, KBR_GREETING, 0, buf);
	return kbr_packet_eager(kbr, i + 1, end->test->size, buf);
}

/* --- setting up; nothing of this is counted --- */

static int kbr_set_packets(struct kbr_side *side)
{
	const bool device = false;

	return fi_setopt(&side->ep->fid, FI_OPT_ENDPOINT, FI_OPT_EFA_USE_DEVICE_RDMA, &device,
			 sizeof(device));
}

static int kbr_set_read_from(struct kbr_end *kbr, struct kbr_side *side)
{
	return fi_setopt(&side->ep->fid, FI_OPT_ENDPOINT, FI_OPT_EFA_INTER_MIN_READ_MESSAGE_SIZE,
			 &kbr->read_from, sizeof(kbr->read_from));
}

static int kbr_open_side(struct kbr_end *kbr, struct kbr_side *side, const struct kb_test *test,
			 const char *device)
{
	struct fi_cq_attr cq_attr = {
		.size		= KBR_CQ,
		.format		= FI_CQ_FORMAT_TAGGED,
		.wait_obj	= test->mode == KB_SLEEPING ? FI_WAIT_UNSPEC : FI_WAIT_NONE,
	};
	struct fi_av_attr av_attr = { };
	size_t len = sizeof(side->name);
	struct fi_info *hints;
	int ret;

	hints = fi_allocinfo_for(FI_EFA_PROV_NAME, FI_EFA_FABRIC, device);
	if (!hints)
		return -ENOMEM;
	hints->caps = FI_MSG | (kbr->dgram ? 0 : FI_TAGGED) | (kbr->far ? FI_RMA : 0) |
		      (test->kind == KB_FETCH ? FI_ATOMIC : 0);
	hints->mode = FI_MSG_PREFIX;
	hints->ep_attr->type = kbr->dgram ? FI_EP_DGRAM : FI_EP_RDM;
	ret = fi_getinfo(fi_version(), NULL, NULL, 0, hints, &side->info);
	fi_freeinfo(hints);
	if (ret)
		return ret;
	kbr->prefix = side->info->ep_attr->msg_prefix_size;
	return fi_fabric(side->info->fabric_attr, &side->fabric, NULL) ?:
	       fi_domain(side->fabric, side->info, &side->domain, NULL) ?:
	       fi_av_open(side->domain, &av_attr, &side->av, NULL) ?:
	       fi_cq_open(side->domain, &cq_attr, &side->cq, NULL) ?:
	       fi_endpoint(side->domain, side->info, &side->ep, NULL) ?:
	       fi_ep_bind(side->ep, &side->av->fid, 0) ?:
	       fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV) ?:
	       (kbr->packets ? kbr_set_packets(side) : 0) ?:
	       (kbr->read_from ? kbr_set_read_from(kbr, side) : 0) ?:
	       fi_enable(side->ep) ?: fi_getname(&side->ep->fid, &side->name, &len);
}

static int kbr_open_connected(struct kbr_side *side, const char *device)
{
	struct fi_cq_attr cq_attr = { .size = KBR_CQ, .format = FI_CQ_FORMAT_TAGGED };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_info *hints;
	int ret;

	hints = fi_allocinfo_for(FI_EFA_PROV_NAME, FI_EFA_FABRIC, device);
	if (!hints)
		return -ENOMEM;
	hints->ep_attr->type = FI_EP_MSG;
	ret = fi_getinfo(fi_version(), "127.0.0.1", NULL, FI_SOURCE, hints, &side->info);
	fi_freeinfo(hints);
	return ret ?: fi_fabric(side->info->fabric_attr, &side->fabric, NULL) ?:
	       fi_domain(side->fabric, side->info, &side->domain, NULL) ?:
	       fi_eq_open(side->fabric, &eq_attr, &side->eq, NULL) ?:
	       fi_cq_open(side->domain, &cq_attr, &side->cq, NULL);
}

static int kbr_open_any(struct kbr_end *kbr, struct kbr_side *side, const struct kb_test *test,
			const char *device)
{
	return kbr->connected ? kbr_open_connected(side, device) :
				kbr_open_side(kbr, side, test, device);
}

#define KBR_CLOSE(obj)	((obj) ? fi_close(&(obj)->fid) : 0)

static int kbr_close_side(struct kbr_side *side)
{
	int ret = KBR_CLOSE(side->ep);

	ret |= KBR_CLOSE(side->pep);
	ret |= KBR_CLOSE(side->cq);
	ret |= KBR_CLOSE(side->eq);
	ret |= KBR_CLOSE(side->av);
	ret |= KBR_CLOSE(side->domain);
	ret |= KBR_CLOSE(side->fabric);
	fi_freeinfo(side->info);
	return ret;
}

static void kbr_close(struct kb_end *end)
{
	struct kbr_end *kbr = to_kbr(end);
	int i, ret = KBR_CLOSE(kbr->mr);

	for (i = 0; i < KBR_SIDES; i++)
		ret |= kbr_close_side(&kbr->sides[i]);
	WARN_ON(ret);
	for (i = 0; i < KB_MAX_BATCH; i++)
		if (kbr->buf[i])
			free_pages_exact(kbr->buf[i], kbr->size);
	if (kbr->memory)
		free_pages_exact(kbr->memory, kbr->size);
	kfree(kbr);
}

/* Register the second side's memory. */
static int kbr_open_memory(struct kbr_end *kbr)
{
	kbr->memory = alloc_pages_exact(kbr->size, GFP_KERNEL | __GFP_ZERO);
	if (!kbr->memory)
		return -ENOMEM;
	return fi_mr_reg(kbr->sides[1].domain, kbr->memory, kbr->size,
			 FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &kbr->mr, NULL);
}

/* Properties of pairs. */
#define KBR_PACKETS	0x1	/* reads and writes go by packets */
#define KBR_DGRAM	0x2	/* datagrams */
#define KBR_CONNECTED	0x4	/* connected endpoints */
#define KBR_READ	0x8	/* messages from KBR_READ_FROM bytes on are read */

static struct kb_end *kbr_open_sides(const struct kb_test *test, unsigned int count,
				     unsigned int counted, unsigned int flags)
{
	struct kbr_end *kbr = kzalloc(sizeof(*kbr), GFP_KERNEL);
	int ret = 0;
	u32 i;

	if (!kbr)
		return ERR_PTR(-ENOMEM);
	kbr->end.test = test;
	kbr->count = count;
	kbr->counted = counted;
	kbr->packets = flags & KBR_PACKETS;
	kbr->read_from = flags & KBR_READ ? KBR_READ_FROM : 0;
	kbr->dgram = flags & KBR_DGRAM;
	kbr->connected = flags & KBR_CONNECTED;
	kbr->far = test->kind == KB_READ || test->kind == KB_WRITE || test->kind == KB_FETCH;
	kbr->size = PAGE_ALIGN(max(test->size, 1U));
	for (i = 0; i < test->batch && !ret; i++) {
		kbr->buf[i] = alloc_pages_exact(kbr->size, GFP_KERNEL | __GFP_ZERO);
		ret = kbr->buf[i] ? 0 : -ENOMEM;
	}
	for (i = 0; i < count && !ret; i++)
		ret = kbr_open_any(kbr, &kbr->sides[i], test, i ? test->peer : test->device);
	if (kbr->far && !ret)
		ret = count > 1 ? kbr_open_memory(kbr) : -EOPNOTSUPP;
	if (ret) {
		kbr_close(&kbr->end);
		return ERR_PTR(ret);
	}
	memcpy(kbr->end.addr.gid, kbr->sides[0].name.gid, sizeof(kbr->end.addr.gid));
	kbr->end.addr.qpn = kbr->sides[0].name.qpn;
	kbr->end.addr.qkey = kbr->sides[0].name.qkey;
	return &kbr->end;
}

static struct kb_end *kbr_open(const struct kb_test *test)
{
	return kbr_open_sides(test, 1, KBR_ALL, 0);
}

static struct kb_end *kbr_open_pair(const struct kb_test *test)
{
	return kbr_open_sides(test, 2, KBR_ALL, 0);
}

static struct kb_end *kbr_open_tx(const struct kb_test *test)
{
	return kbr_open_sides(test, 2, 0, 0);
}

static struct kb_end *kbr_open_rx(const struct kb_test *test)
{
	return kbr_open_sides(test, 2, 1, 0);
}

static struct kb_end *kbr_open_read_tx(const struct kb_test *test)
{
	return kbr_open_sides(test, 2, 0, KBR_READ);
}

static struct kb_end *kbr_open_read_rx(const struct kb_test *test)
{
	return kbr_open_sides(test, 2, 1, KBR_READ);
}

static struct kb_end *kbr_open_packets_tx(const struct kb_test *test)
{
	return kbr_open_sides(test, 2, 0, KBR_PACKETS);
}

static struct kb_end *kbr_open_packets_rx(const struct kb_test *test)
{
	return kbr_open_sides(test, 2, 1, KBR_PACKETS);
}

static struct kb_end *kbr_open_dgram_tx(const struct kb_test *test)
{
	return kbr_open_sides(test, 2, 0, KBR_DGRAM);
}

static struct kb_end *kbr_open_dgram_rx(const struct kb_test *test)
{
	return kbr_open_sides(test, 2, 1, KBR_DGRAM);
}

static struct kb_end *kbr_open_msg_tx(const struct kb_test *test)
{
	return kbr_open_sides(test, 2, 0, KBR_CONNECTED);
}

static struct kb_end *kbr_open_msg_rx(const struct kb_test *test)
{
	return kbr_open_sides(test, 2, 1, KBR_CONNECTED);
}

static int kbr_send_nobody(struct kbr_end *kbr, const struct fi_efa_addr *addr)
{
	struct kbr_side *side = &kbr->sides[0];
	fi_addr_t to;
	ssize_t ret;

	ret = fi_av_insert(side->av, addr, 1, &to, 0, NULL);
	if (ret != 1)
		return ret ?: -EINVAL;
	while ((ret = fi_tsend(side->ep, kbr->buf[0], 1, NULL, to, 1, NULL)) == -EAGAIN) {
		kbr_take(kbr, side);
		kb_step();
	}
	return ret;
}

/* Insert peers that don't exist, and send to each, so that the endpoint has state for them. */
static int kbr_add_others(struct kbr_end *kbr, const struct fi_efa_addr *addr)
{
	u32 i, others = kbr->end.test->addrs;
	struct fi_efa_addr other = *addr;
	int ret = 0;

	for (i = 0; i < others && !ret; i++) {
		other.qpn = i & 0x7fff;
		other.qkey = 0x40000000 + i;
		ret = kbr_send_nobody(kbr, &other);
	}
	while (!ret && kbr->nobody < others) {
		kbr_take(kbr, &kbr->sides[0]);
		kb_step();
	}
	return ret;
}

static int kbr_connect(struct kb_end *end)
{
	struct kbr_end *kbr = to_kbr(end);
	struct kbr_side *side = &kbr->sides[0];
	struct fi_efa_addr addr = { };
	int ret;

	memcpy(addr.gid, end->peer.gid, sizeof(addr.gid));
	addr.qpn = end->peer.qpn;
	addr.qkey = end->peer.qkey;
	ret = kbr_add_others(kbr, &addr);
	if (ret)
		return ret;
	ret = fi_av_insert(side->av, &addr, 1, &side->peer, 0, NULL);
	if (ret != 1)
		return ret ?: -EINVAL;
	kbr->completed = 0;
	ret = fi_trecv(side->ep, kbr->buf[0], kbr->size, NULL, FI_ADDR_UNSPEC, KBR_GREETING, 0,
		       kbr);
	if (ret || end->test->kind != KB_LATE)
		return ret;
	return kbr_recv(kbr, side, end->test->batch - 1);
}

static int kbr_connect_pair(struct kb_end *end)
{
	struct kbr_end *kbr = to_kbr(end);
	int i, ret;

	for (i = 0; i < KBR_SIDES; i++) {
		ret = fi_av_insert(kbr->sides[i].av, &kbr->sides[!i].name, 1,
				   &kbr->sides[i].peer, 0, NULL);
		if (ret != 1)
			return ret ?: -EINVAL;
	}
	return 0;
}

/* Wait for an event. A request has an entry, for fi_freeinfo(). */
static int kbr_event(struct kbr_side *side, u32 expected, struct fi_info **info)
{
	struct fi_eq_cm_entry entry;
	u32 event;
	ssize_t n;

	n = fi_eq_sread(side->eq, &event, &entry, sizeof(entry), KBR_EVENT_MS, 0);
	if (n != sizeof(entry) || event != expected)
		return n < 0 ? n : -EIO;
	if (info)
		*info = entry.info;
	return 0;
}

static int kbr_open_msg(struct kbr_side *side, struct fi_info *info)
{
	return fi_endpoint(side->domain, info, &side->ep, NULL) ?:
	       fi_ep_bind(side->ep, &side->eq->fid, 0) ?:
	       fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV);
}

static int kbr_connect_msg(struct kb_end *end)
{
	struct kbr_side *from = &to_kbr(end)->sides[0], *to = &to_kbr(end)->sides[1];
	struct sockaddr_in addr;
	size_t len = sizeof(addr);
	struct fi_info *info;
	int ret;

	ret = fi_passive_ep(to->fabric, to->info, &to->pep, NULL) ?:
	      fi_pep_bind(to->pep, &to->eq->fid, 0) ?: fi_listen(to->pep) ?:
	      fi_getname(&to->pep->fid, &addr, &len) ?: kbr_open_msg(from, from->info) ?:
	      fi_connect(from->ep, &addr, NULL, 0) ?: kbr_event(to, FI_CONNREQ, &info);
	if (ret)
		return ret;
	ret = kbr_open_msg(to, info) ?: fi_accept(to->ep, NULL, 0);
	fi_freeinfo(info);
	return ret ?: kbr_event(from, FI_CONNECTED, NULL) ?: kbr_event(to, FI_CONNECTED, NULL);
}

/* --- memory --- */

static int kbr_open_ep(struct kbr_side *side, struct fid_ep **ep)
{
	return fi_endpoint(side->domain, side->info, ep, NULL) ?:
	       fi_ep_bind(*ep, &side->av->fid, 0) ?:
	       fi_ep_bind(*ep, &side->cq->fid, FI_TRANSMIT | FI_RECV) ?: fi_enable(*ep);
}

static int kbr_memory(const struct kb_test *test)
{
	struct kb_end *end = kbr_open(test);
	struct fid_ep **eps;
	int ret = -ENOMEM;
	s64 before;
	u32 i;

	if (IS_ERR(end))
		return PTR_ERR(end);
	eps = kcalloc(KB_OBJECTS, sizeof(*eps), GFP_KERNEL);
	if (eps) {
		before = kb_memory_used();
		for (i = 0, ret = 0; i < KB_OBJECTS && !ret; i++)
			ret = kbr_open_ep(&to_kbr(end)->sides[0], &eps[i]);
		if (!ret)
			kb_printf("memory rdm%zu %lld\n", to_kbr(end)->sides[0].info->tx_attr->size,
				  (kb_memory_used() - before) / KB_OBJECTS);
		for (i = 0; i < KB_OBJECTS; i++)
			WARN_ON(KBR_CLOSE(eps[i]));
		kfree(eps);
	}
	kbr_close(end);
	return ret;
}

static struct kb_ulp kbr_ulp = {
	.name		= "rdm",
	.open		= kbr_open,
	.connect	= kbr_connect,
	.close		= kbr_close,
	.packet		= kbr_packet,
	.post		= kbr_post,
	.poll		= kbr_poll,
	.sleep		= kbr_sleep,
	.memory		= kbr_memory,
};

static struct kb_ulp kbr_pair_ulp = {
	.name		= "rdmpair",
	.alone		= true,
	.open		= kbr_open_pair,
	.connect	= kbr_connect_pair,
	.close		= kbr_close,
	.post		= kbr_post,
	.poll		= kbr_poll,
};

static struct kb_ulp kbr_local_ulp = {
	.name		= "rdmlocal",
	.alone		= true,
	.open		= kbr_open_pair,
	.connect	= kbr_connect_pair,
	.close		= kbr_close,
	.post		= kbr_post,
	.poll		= kbr_poll,
};

static struct kb_ulp kbr_tx_ulp = {
	.name		= "rdmtx",
	.alone		= true,
	.open		= kbr_open_tx,
	.connect	= kbr_connect_pair,
	.close		= kbr_close,
	.post		= kbr_post,
	.poll		= kbr_poll,
};

static struct kb_ulp kbr_rx_ulp = {
	.name		= "rdmrx",
	.alone		= true,
	.open		= kbr_open_rx,
	.connect	= kbr_connect_pair,
	.close		= kbr_close,
	.post		= kbr_post,
	.poll		= kbr_poll,
};

static struct kb_ulp kbr_read_tx_ulp = {
	.name		= "readtx",
	.alone		= true,
	.open		= kbr_open_read_tx,
	.connect	= kbr_connect_pair,
	.close		= kbr_close,
	.post		= kbr_post,
	.poll		= kbr_poll,
};

static struct kb_ulp kbr_read_rx_ulp = {
	.name		= "readrx",
	.alone		= true,
	.open		= kbr_open_read_rx,
	.connect	= kbr_connect_pair,
	.close		= kbr_close,
	.post		= kbr_post,
	.poll		= kbr_poll,
};

static struct kb_ulp kbr_packets_tx_ulp = {
	.name		= "emutx",
	.alone		= true,
	.open		= kbr_open_packets_tx,
	.connect	= kbr_connect_pair,
	.close		= kbr_close,
	.post		= kbr_post,
	.poll		= kbr_poll,
};

static struct kb_ulp kbr_packets_rx_ulp = {
	.name		= "emurx",
	.alone		= true,
	.open		= kbr_open_packets_rx,
	.connect	= kbr_connect_pair,
	.close		= kbr_close,
	.post		= kbr_post,
	.poll		= kbr_poll,
};

static struct kb_ulp kbr_dgram_tx_ulp = {
	.name		= "dgtx",
	.alone		= true,
	.open		= kbr_open_dgram_tx,
	.connect	= kbr_connect_pair,
	.close		= kbr_close,
	.post		= kbr_post,
	.poll		= kbr_poll,
};

static struct kb_ulp kbr_dgram_rx_ulp = {
	.name		= "dgrx",
	.alone		= true,
	.open		= kbr_open_dgram_rx,
	.connect	= kbr_connect_pair,
	.close		= kbr_close,
	.post		= kbr_post,
	.poll		= kbr_poll,
};

static struct kb_ulp kbr_msg_tx_ulp = {
	.name		= "msgtx",
	.alone		= true,
	.open		= kbr_open_msg_tx,
	.connect	= kbr_connect_msg,
	.close		= kbr_close,
	.post		= kbr_post,
	.poll		= kbr_poll,
};

static struct kb_ulp kbr_msg_rx_ulp = {
	.name		= "msgrx",
	.alone		= true,
	.open		= kbr_open_msg_rx,
	.connect	= kbr_connect_msg,
	.close		= kbr_close,
	.post		= kbr_post,
	.poll		= kbr_poll,
};

static int __init kbr_init(void)
{
	kb_register(&kbr_ulp);
	kb_register(&kbr_pair_ulp);
	kb_register(&kbr_local_ulp);
	kb_register(&kbr_tx_ulp);
	kb_register(&kbr_rx_ulp);
	kb_register(&kbr_read_tx_ulp);
	kb_register(&kbr_read_rx_ulp);
	kb_register(&kbr_packets_tx_ulp);
	kb_register(&kbr_packets_rx_ulp);
	kb_register(&kbr_dgram_tx_ulp);
	kb_register(&kbr_dgram_rx_ulp);
	kb_register(&kbr_msg_tx_ulp);
	kb_register(&kbr_msg_rx_ulp);
	return 0;
}
module_init(kbr_init);

static void __exit kbr_exit(void)
{
	kb_deregister(&kbr_msg_rx_ulp);
	kb_deregister(&kbr_msg_tx_ulp);
	kb_deregister(&kbr_dgram_rx_ulp);
	kb_deregister(&kbr_dgram_tx_ulp);
	kb_deregister(&kbr_packets_rx_ulp);
	kb_deregister(&kbr_packets_tx_ulp);
	kb_deregister(&kbr_read_rx_ulp);
	kb_deregister(&kbr_read_tx_ulp);
	kb_deregister(&kbr_rx_ulp);
	kb_deregister(&kbr_tx_ulp);
	kb_deregister(&kbr_local_ulp);
	kb_deregister(&kbr_pair_ulp);
	kb_deregister(&kbr_ulp);
}
module_exit(kbr_exit);
