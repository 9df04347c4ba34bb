// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Set-up of a session: messages over TCP, granted limits, and fabric objects. */
#define pr_fmt(fmt) "kofiblk_srv: " fmt

#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uio.h>
#include "srv.h"
#include "srv_trace.h"

#define KBS_SETUP_MS	5000	/* time-out of each message */
/* Time-out for I/O of replaced sessions. The client waits longer, see KBC_ANSWER_MS. */
#define KBS_REPLACE_MS	20000

/* Messages and state of set-up. */
struct kbs_setup {
	struct kulp_shake shake;
	int	nkeys;		/* -EACCES for an unknown client */
	struct kulp_key *keys[KULP_SECRETS];
	u8	hello[KOFIBLK_NET_MAX];
	u8	accept[KOFIBLK_NET_MAX];
	struct kofiblk_accept_msg msg;
	struct kofiblk_hello_msg asked;
	u8	addrs[KOFIBLK_QUEUES_MAX * KULP_ADDR_MAX];
};

void kbs_reject(struct kbs_session *s, int err, const char *why)
{
	struct kofiblk_reject_msg msg = {
		.status	= kulp_errno_status(err),
		/* Later the server may have room, a device or the export. */
		.again	= err != -ESTALE,
	};
	u8 buf[sizeof(struct kofiblk_reject)];
	size_t len;

	strscpy(msg.why, why, sizeof(msg.why));
	len = kofiblk_build_reject(buf, &msg);
	if (!kulp_auth_sign(s->key, KOFIBLK_AUTH_REJECT, s->proof, buf, len))
		kulp_net_send(&s->conn.net, buf, len);
}

static int kbs_refuse(struct kbs_session *s, int err, const char *why)
{
	pr_info_ratelimited("%s at %s, export %s: refused: %s\n",
			    s->hello.client[0] ? s->hello.client : "?", s->conn.name,
			    s->hello.export[0] ? s->hello.export : "?", why);
	trace_kofiblk_srv_violation(s->hello.client, why);
	kbs_reject(s, err, why);
	return err;
}

static int kbs_setup_hello(struct kbs_session *s, struct kbs_setup *set)
{
	struct kofiblk_hello_msg *asked = &set->asked;
	int len;

	len = kulp_net_recv(&s->conn.net, set->hello, sizeof(set->hello), KBS_SETUP_MS);
	if (len < 0)
		return len;
	if (kofiblk_parse_hello(set->hello, len, asked))
		return kbs_refuse(s, -EPROTO, "not a HELLO of the server's version");
	set->shake = (struct kulp_shake)KOFIBLK_SHAKE(set->hello, len);
	s->hello = *asked;
	s->hello.addr = NULL;
	if (kbs_port_export(s->port, asked->export, &s->export))
		return kbs_refuse(s, -ENOENT, "no such export");
	return 0;
}

static int kbs_setup_auth(struct kbs_session *s, struct kbs_setup *set)
{
	struct kulp_proof_msg auth;
	int ret;

	set->nkeys = kbs_export_keys(s->export, s->hello.client, set->keys);
	ret = kulp_challenge_send(&set->shake, &s->conn.net, set->keys, set->nkeys);
	if (ret)
		return ret;
	/* The buffer of ACCEPT isn't used yet, and has room for any message. */
	ret = kulp_net_recv(&s->conn.net, set->accept, sizeof(set->accept), KBS_SETUP_MS);
	if (ret < 0) {
		pr_info_ratelimited("%s at %s, export %s: no proof from the client: %s\n",
				    s->hello.client, s->conn.name, s->hello.export, set->nkeys < 0 ?
				    "unknown client" : "its secret may differ");
		return ret;
	}
	if (kulp_parse(&kofiblk_proto, KOFIBLK_AUTH, set->accept, ret, &auth))
		return kbs_refuse(s, -EPROTO, "not an AUTH");
	ret = kulp_proof_check(&set->shake, set->keys, set->nkeys, auth.mac);
	if (ret < 0)
		return kbs_refuse(s, -EACCES, "wrong secret");
	memcpy(s->proof, auth.mac, sizeof(s->proof));
	s->key = kulp_key_get(set->keys[ret]);
	ret = kofiblk_keys_make(s->key, s->proof, &s->keys);
	if (ret)
		return ret;
	if (!kulp_conn_settled(&s->port->listener, &s->conn))
		return -ESHUTDOWN;
	if (memchr_inv(s->hello.content, 0, sizeof(s->hello.content)) &&
	    memcmp(s->hello.content, &s->export->uuid, sizeof(uuid_t)))
		return kbs_refuse(s, -ESTALE, "the export is a different disk now");
	return 0;
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

static int kbs_setup_fabric(struct kbs_session *s, struct kbs_setup *set)
{
	const struct kofiblk_hello_msg *asked = &set->asked;
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
	if (asked->addr_format != f->info->addr_format ||
	    asked->protocol != kulp_fabric_protocol(f) || asked->addr_len != f->queues[0].addrlen)
		return kbs_refuse_fabric(s, f);
	s->limits = asked->limits;
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
		ret = kbs_setup_queue(s, i, asked->addr + i * asked->addr_len);
	kbs_setup_inline(s);
	for (i = 0; i < s->nqueues && !ret; i++)
		ret = kbs_squeue_init(&s->queues[i]);
	if (ret)
		return kbs_refuse(s, ret, "no room for a session");
	return 0;
}

static int kbs_setup_accept(struct kbs_session *s, struct kbs_setup *set)
{
	struct kofiblk_accept_msg *msg = &set->msg;
	size_t len, addrlen = s->fabric->queues[0].addrlen;
	int ret;
	u16 i;

	msg->session = s->id;
	msg->epoch = s->export->store.epoch;
	msg->limits = s->limits;
	memcpy(msg->content, &s->export->uuid, sizeof(msg->content));
	msg->disk = s->export->store.disk;
	if (!(s->limits.caps & KOFIBLK_CAP_DISCARD))
		msg->disk.discard_max = 0;
	if (!(s->limits.caps & KOFIBLK_CAP_WRITE_ZEROES))
		msg->disk.zeroes_max = 0;
	msg->addr_len = addrlen;
	msg->addr = set->addrs;
	for (i = 0; i < s->nqueues; i++)
		memcpy(set->addrs + i * addrlen, s->queues[i].q->addr, addrlen);
	len = kofiblk_build_accept(set->accept, msg);
	ret = kulp_auth_sign(s->key, KOFIBLK_AUTH_ACCEPT, s->proof, set->accept, len);
	if (ret)
		return ret;
	/* Before sending ACCEPT, because the client may send commands as soon as it has it. */
	if (!kbs_session_live(s))
		return kbs_refuse(s, -EBUSY, "the session was stopped during set-up");
	return kulp_net_send(&s->conn.net, set->accept, len);
}

/* Set up a session whose client has proved its identity, and replace older ones. */
static int kbs_setup_proven(struct kbs_session *s, struct kbs_setup *set)
{
	const struct kofiblk_hello_msg *asked = &set->asked;
	const char *why;
	int ret;

	s->addrs = kmemdup(asked->addr, asked->limits.queues * asked->addr_len, GFP_KERNEL);
	if (!s->addrs)
		return kbs_refuse(s, -ENOMEM, "no memory");
	why = kbs_session_prove(s);
	if (why)
		return kbs_refuse(s, -EBUSY, why);
	if (!wait_event_idle_timeout(kbs_wait, kbs_session_alone(s) || kbs_session_stopped(s),
				     msecs_to_jiffies(KBS_REPLACE_MS)))
		return kbs_refuse(s, -EBUSY,
				  "the client's previous session still has I/O in progress");
	if (kbs_session_stopped(s))
		return kbs_refuse(s, -EBUSY, "the session was stopped during set-up");
	ret = kbs_setup_fabric(s, set);
	return ret ?: kbs_setup_accept(s, set);
}

/* Even after an error the session may have been live, or have a fabric. */
int kbs_set_up(struct kbs_session *s)
{
	struct kbs_setup *set = kzalloc(sizeof(*set), GFP_KERNEL);
	unsigned int i, noio;
	int ret;

	if (!set)
		return -ENOMEM;
	do
		get_random_bytes(&s->id, sizeof(s->id));
	while (!s->id);
	ret = kbs_setup_hello(s, set) ?: kbs_setup_auth(s, set);
	if (!ret) {
		/* noio: the client's disk may be attached to this machine. */
		noio = memalloc_noio_save();
		ret = kbs_setup_proven(s, set);
		memalloc_noio_restore(noio);
	}
	for (i = 0; i < KULP_SECRETS; i++)
		kulp_key_put(set->keys[i]);
	kfree(set);
	return ret;
}
