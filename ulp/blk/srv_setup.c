// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Set-up of a session: granted limits, and fabric objects. */
#define pr_fmt(fmt) "kofiblk_srv: " fmt

#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "srv.h"
#include "srv_trace.h"

/*
 * Refuse a client, before its session is live. Later the server may have room, a device or the
 * export. Return: @err.
 */
int kbs_refuse(struct kbs_session *s, int err, const char *why)
{
	pr_info_ratelimited("%s at %s, export %s: refused: %s\n", s->client, s->from, s->name, why);
	trace_kofiblk_srv_violation(s->client, why);
	if (!kcm_reject(s->cm, err, err != -ESTALE, 0, why, NULL, 0))
		/* Pairs with kbs_session_over(). */
		wait_event_idle(kbs_wait, smp_load_acquire(&s->over));
	s->cm = NULL;
	return err;
}

static void kbs_setup_limits(struct kbs_session *s, struct kofiblk_limits *l)
{
	const struct kofiblk_disk_msg *disk = &s->export->store.disk;
	size_t room = s->fabric->max_msg - KOFIBLK_CMD_MAX(0);
	u32 caps = KOFIBLK_CAP_FUA | KOFIBLK_CAP_CHECKSUM;

	if (s->fabric->can_write)
		caps |= KOFIBLK_CAP_RDMA_WRITE;
	if (s->fabric->can_imm)
		caps |= KOFIBLK_CAP_IMM;
	/* Also for a read-only store, which may be writable in the client's next session. */
	if (disk->discard_max)
		caps |= KOFIBLK_CAP_DISCARD;
	if (disk->zeroes_max)
		caps |= KOFIBLK_CAP_WRITE_ZEROES;
	l->caps &= caps;
	/* Immediate data has no room for a checksum. */
	if (!(l->caps & KOFIBLK_CAP_RDMA_WRITE) || l->caps & KOFIBLK_CAP_CHECKSUM)
		l->caps &= ~KOFIBLK_CAP_IMM;
	l->max_io = min(l->max_io,
			max(round_down(s->port->max_memory, KOFIBLK_IO_MIN), KOFIBLK_IO_MIN));
	l->max_io = min_t(size_t, l->max_io, round_down(s->fabric->max_rma, KOFIBLK_IO_MIN));
	l->inline_max = round_down(min_t(size_t, l->inline_max, room), KOFIBLK_SECTOR);
	l->inline_read = min_t(size_t, l->inline_read, s->fabric->max_msg - KOFIBLK_REPLY_MAX(0));
	/* A reply with inline data has two pieces. */
	if (s->fabric->info->tx_attr->iov_limit < 2)
		l->inline_read = 0;
	l->inline_read = round_down(l->inline_read, KOFIBLK_SECTOR);
	l->queues = min(l->queues, s->fabric->nqueues);
	/* The keep-alive time-out limits how long a dead client keeps its resources. */
	l->keep_alive = min(l->keep_alive, s->port->max_keep_alive);
}

/* Reserve a receive for each command, and one for a keep-alive or FETCHED. */
static int kbs_setup_queue(struct kbs_session *s, u16 i, const u8 *addr)
{
	struct kbs_squeue *sq = &s->queues[i];
	int ret;

	sq->s = s;
	sq->q = &s->fabric->queues[i];
	sq->cmd_nonce = get_random_u64() ?: 1;
	ret = kulp_peer_get(s->fabric, addr, &sq->peer);
	if (ret)
		return ret;
	sq->has_peer = true;
	sq->credits = kulp_credits_take(sq->q, s->limits.depth + 1);
	if (sq->credits < 2)
		return -EBUSY;
	s->limits.depth = sq->credits - 1;
	return 0;
}

/*
 * Limit inline data, because each slot has memory for it, and with inline reads so does each reply.
 */
static void kbs_setup_inline(struct kbs_session *s)
{
	u32 room = s->port->max_memory / 4 / (s->limits.depth * s->nqueues);
	struct kofiblk_limits *l = &s->limits;

	if (room < 2 * PAGE_ALIGN(l->inline_read))
		l->inline_read = min_t(size_t, l->inline_read, PAGE_SIZE);
	if (room < 2 * PAGE_SIZE)
		l->inline_read = 0;
	if (room < PAGE_SIZE)
		l->inline_max = 0;
}

/* With own_domains, clients share a domain only with clients of the same secret. */
static struct kulp_fabric *kbs_setup_device(const struct kbs_session *s)
{
	struct kulp_select select = s->port->select;
	char owner[KULP_MAC + 1];

	if (s->port->own_domains && s->key) {
		*bin2hex(owner, s->key->print, KULP_MAC / 2) = '\0';
		select.owner = owner;
	}
	return kulp_fabric_get(&kbs_role, &select);
}

/* The client prints its own fabric to its log. */
static int kbs_refuse_fabric(struct kbs_session *s, const struct kulp_fabric *f)
{
	char why[KOFIBLK_NAME_MAX];

	snprintf(why, sizeof(why), "the server uses fabric %s, and the client another one",
		 f->info->fabric_attr->name);
	/* Let the client try again: the server may have another device then. */
	return kbs_refuse(s, -EOPNOTSUPP, why);
}

static int kbs_setup_fabric(struct kbs_session *s)
{
	struct kulp_fabric *f;
	u32 credits;
	int ret = 0;
	u16 i;

	f = kbs_setup_device(s);
	if (IS_ERR(f))
		return kbs_refuse(s, -ENODEV, "the server has no usable device");
	kbs_session_on(s, f);
	if (READ_ONCE(f->gone))
		return kbs_refuse(s, -ENODEV, "the server's device was removed");
	if (s->addrs.format != f->info->addr_format ||
	    s->hello.protocol != kulp_fabric_protocol(f) || s->addrs.len != f->queues[0].addrlen)
		return kbs_refuse_fabric(s, f);
	s->limits = s->hello.limits;
	kbs_setup_limits(s, &s->limits);
	s->queues = kcalloc(s->limits.queues, sizeof(*s->queues), GFP_KERNEL);
	if (!s->queues)
		return kbs_refuse(s, -ENOMEM, "no memory");
	s->nqueues = s->limits.queues;
	credits = kbs_session_credits(s, s->limits.depth + 1, f->info->rx_attr->size);
	if (credits < 2)
		return kbs_refuse(s, -EBUSY, "the client's share of receives is used up");
	s->limits.depth = credits - 1;
	for (i = 0; i < s->nqueues && !ret; i++)
		ret = kbs_setup_queue(s, i, s->addrs.addr + i * s->addrs.len);
	kbs_setup_inline(s);
	for (i = 0; i < s->nqueues && !ret; i++)
		ret = kbs_squeue_init(&s->queues[i]);
	if (ret)
		return kbs_refuse(s, ret, "no room for a session");
	return 0;
}

static int kbs_setup_accept(struct kbs_session *s)
{
	struct kofiblk_accept_msg msg = {
		.epoch	= s->export->store.epoch,
		.limits	= s->limits,
		.disk	= s->export->store.disk,
	};
	struct kcm_addrs addrs = {
		.format	= s->fabric->info->addr_format,
		.len	= s->fabric->queues[0].addrlen,
		.count	= s->nqueues,
	};
	u8 buf[sizeof(struct kofiblk_accept)] __aligned(8);
	u8 *room = kcalloc(s->nqueues, addrs.len, GFP_KERNEL);
	u16 i;

	if (!room)
		return kbs_refuse(s, -ENOMEM, "no memory");
	memcpy(msg.content, &s->export->uuid, sizeof(msg.content));
	if (!(s->limits.caps & KOFIBLK_CAP_DISCARD))
		msg.disk.discard_max = 0;
	if (!(s->limits.caps & KOFIBLK_CAP_WRITE_ZEROES))
		msg.disk.zeroes_max = 0;
	for (i = 0; i < s->nqueues; i++)
		memcpy(room + i * addrs.len, s->queues[i].q->addr, addrs.len);
	addrs.addr = room;
	/* Before kcm_accept(), because the client may send commands as soon as it has it. */
	if (!kbs_session_live(s))
		kbs_refuse(s, -EBUSY, "the session was stopped during set-up");
	else if (kcm_accept(s->cm, &addrs, buf, kofiblk_build_accept(buf, &msg)))
		kbs_session_stop(s, KBS_SESSION_STOPPED);
	kfree(room);
	return s->cm ? 0 : -EBUSY;
}

static int kbs_setup(struct kbs_session *s)
{
	if (memchr_inv(s->hello.content, 0, sizeof(s->hello.content)) &&
	    memcmp(s->hello.content, &s->export->uuid, sizeof(uuid_t)))
		return kbs_refuse(s, -ESTALE, "the export is a different disk now");
	if (!wait_event_idle_timeout(kbs_wait, kbs_session_alone(s) || kbs_session_stopped(s),
				     msecs_to_jiffies(KOFIBLK_REPLACE_MS)))
		return kbs_refuse(s, -EBUSY,
				  "the client's previous session still has I/O in progress");
	if (kbs_session_stopped(s))
		return kbs_refuse(s, -EBUSY, "the session was stopped during set-up");
	return kbs_setup_fabric(s) ?: kbs_setup_accept(s);
}

/* Even after an error the session may have a fabric. After 0 it is live, or was. */
int kbs_set_up(struct kbs_session *s)
{
	/* noio: the client's disk may be attached to this machine. */
	unsigned int noio = memalloc_noio_save();
	int ret = kbs_setup(s);

	memalloc_noio_restore(noio);
	return ret;
}
