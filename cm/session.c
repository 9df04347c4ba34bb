// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* States, messages and time limits of a session: see cm.h. */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "cm.h"
#include "trace.h"

/* Messages that a run of the work item handles before it lets others run. */
#define KCM_BATCH	32

/* Offset of the number in messages that have one. */
#define KCM_NUMBER_AT	(sizeof(struct kulp_hdr) + KULP_MAC)
static_assert(offsetof(struct kcm_wire_note, number) == KCM_NUMBER_AT);
static_assert(offsetof(struct kcm_wire_bye, number) == KCM_NUMBER_AT);

#define KCM_NUMBERED	(BIT(KCM_NOTE) | BIT(KCM_BYE) | BIT(KCM_PING) | BIT(KCM_PONG))

atomic64_t kcm_counts[KCM_COUNTS];

const char * const kcm_state_names[KCM_STATES] = {
	[KCM_WAITING]		= "waiting",
	[KCM_CONNECTING]	= "connecting",
	[KCM_HELLO_SENT]	= "hello sent",
	[KCM_AUTH_SENT]		= "auth sent",
	[KCM_HALF_OPEN]		= "half-open",
	[KCM_CHALLENGED]	= "challenged",
	[KCM_PROVEN]		= "proven",
	[KCM_ASKED]		= "asked",
	[KCM_ACCEPTED]		= "accepted",
	[KCM_LIVE]		= "live",
	[KCM_STOPPED]		= "stopped",
	[KCM_PARTING]		= "parting",
	[KCM_CLOSED]		= "closed",
};

/* The states that may follow a state, and the messages that may arrive in it. */
static const struct {
	u32	next;
	u32	types;
} kcm_states[KCM_STATES] = {
	[KCM_WAITING]	 = { BIT(KCM_CONNECTING) | BIT(KCM_STOPPED) | BIT(KCM_CLOSED) },
	[KCM_CONNECTING] = { BIT(KCM_HELLO_SENT) | BIT(KCM_WAITING) | BIT(KCM_STOPPED) |
			     BIT(KCM_CLOSED) },
	[KCM_HELLO_SENT] = { BIT(KCM_AUTH_SENT) | BIT(KCM_WAITING) | BIT(KCM_STOPPED) |
			     BIT(KCM_CLOSED), BIT(KCM_CHALLENGE) | BIT(KCM_REJECT) },
	[KCM_AUTH_SENT]	 = { BIT(KCM_LIVE) | BIT(KCM_WAITING) | BIT(KCM_STOPPED) |
			     BIT(KCM_CLOSED), BIT(KCM_ACCEPT) | BIT(KCM_REJECT) },
	[KCM_HALF_OPEN]	 = { BIT(KCM_CHALLENGED) | BIT(KCM_PARTING), BIT(KCM_HELLO) },
	[KCM_CHALLENGED] = { BIT(KCM_PROVEN) | BIT(KCM_PARTING), BIT(KCM_AUTH) },
	[KCM_PROVEN]	 = { BIT(KCM_ASKED) | BIT(KCM_PARTING) },
	[KCM_ASKED]	 = { BIT(KCM_ACCEPTED) | BIT(KCM_STOPPED) | BIT(KCM_PARTING) },
	[KCM_ACCEPTED]	 = { BIT(KCM_LIVE) | BIT(KCM_STOPPED), BIT(KCM_READY) },
	[KCM_LIVE]	 = { BIT(KCM_STOPPED), KCM_NUMBERED },
	[KCM_STOPPED]	 = { BIT(KCM_PARTING) },
	[KCM_PARTING]	 = { BIT(KCM_WAITING) | BIT(KCM_CLOSED) },
};

/* States in which the peer's bytes are read. */
#define KCM_RECEIVING	(BIT(KCM_HELLO_SENT) | BIT(KCM_AUTH_SENT) | BIT(KCM_HALF_OPEN) |	\
			 BIT(KCM_CHALLENGED) | BIT(KCM_PROVEN) | BIT(KCM_ASKED) |		\
			 BIT(KCM_ACCEPTED) | BIT(KCM_LIVE))

/**
 * kcm_go() - change a session's state
 * @s: the session
 * @state: the new state, which may follow the old one
 *
 * The old state's time limit ends.
 */
void kcm_go(struct kcm_session *s, enum kcm_state state)
{
	lockdep_assert_held(&s->run);
	WARN_ON_ONCE(!(kcm_states[s->state].next & BIT(state)));
	trace_kcm_state(s, s->state, state);
	s->timed = false;
	WRITE_ONCE(s->state, state);
}

/**
 * kcm_limit() - set the time limit of a session's state
 * @s: the session
 * @ms: milliseconds from now
 */
void kcm_limit(struct kcm_session *s, u32 ms)
{
	s->deadline = jiffies + msecs_to_jiffies(ms);
	s->timed = true;
}

/**
 * kcm_kick() - run a session's work item
 * @s: the session
 *
 * Context: Any.
 */
void kcm_kick(struct kcm_session *s)
{
	mod_delayed_work(kcm_wq, &s->work, 0);
}

/**
 * kcm_want() - leave a request for a session's work item
 * @s: the session
 * @want: the request
 *
 * Context: Any.
 */
void kcm_want(struct kcm_session *s, enum kcm_want want)
{
	set_bit(want, &s->wants);
	kcm_kick(s);
}

/**
 * kcm_session_init() - initialize a session
 * @s: the session, zeroed
 * @config: the service, NULL if it isn't known yet
 */
void kcm_session_init(struct kcm_session *s, const struct kcm_config *config)
{
	static atomic_t last = ATOMIC_INIT(0);

	s->nr = atomic_inc_return(&last);
	s->config = config;
	mutex_init(&s->run);
	spin_lock_init(&s->lock);
	INIT_DELAYED_WORK(&s->work, kcm_work);
	init_completion(&s->closed);
	INIT_LIST_HEAD(&s->txq);
	INIT_LIST_HEAD(&s->half_open);
	INIT_LIST_HEAD(&s->mine);
	INIT_HLIST_NODE(&s->kin);
}

/* --- sending --- */

static struct kcm_tx *kcm_tx_new(enum kcm_type type, size_t len)
{
	struct kcm_tx *tx = kzalloc(struct_size(tx, buf, len), GFP_NOIO);

	if (!tx)
		return NULL;
	tx->type = type;
	tx->len = len;
	return tx;
}

/**
 * kcm_tx_add() - add a message to those to be sent
 * @s: the session
 * @tx: the message
 */
void kcm_tx_add(struct kcm_session *s, struct kcm_tx *tx)
{
	lockdep_assert_held(&s->lock);
	list_add_tail(&tx->list, &s->txq);
	s->nnotes += tx->type == KCM_NOTE;
	s->npongs += tx->type == KCM_PONG;
}

static void kcm_tx_queue(struct kcm_session *s, struct kcm_tx *tx)
{
	spin_lock_bh(&s->lock);
	kcm_tx_add(s, tx);
	spin_unlock_bh(&s->lock);
}

/**
 * kcm_tx_build() - build a message
 * @type: type of the message
 * @msg: its contents
 * @tail: bytes behind the fields
 * @len: number of these
 *
 * Return: the message, to be freed by kfree_sensitive(); or NULL.
 */
struct kcm_tx *kcm_tx_build(enum kcm_type type, const void *msg, const void *tail, size_t len)
{
	struct kcm_tx *tx = kcm_tx_new(type, kcm_proto.types[type].len + len);

	if (tx)
		kulp_build(&kcm_proto, type, tx->buf, msg, tail, len);
	return tx;
}

/**
 * kcm_send() - queue a message
 * @s: the session
 * @type: type of the message
 * @msg: its contents; number and MAC are filled in when it is sent
 * @tail: bytes behind the fields
 * @len: number of these
 *
 * Return: 0 or -ENOMEM.
 */
int kcm_send(struct kcm_session *s, enum kcm_type type, const void *msg, const void *tail,
	     size_t len)
{
	struct kcm_tx *tx = kcm_tx_build(type, msg, tail, len);

	if (!tx)
		return -ENOMEM;
	kcm_tx_queue(s, tx);
	return 0;
}

/**
 * kcm_send_raw() - queue a message that is built
 * @s: the session
 * @type: type of the message
 * @buf: the message
 * @len: its length
 *
 * Return: 0 or -ENOMEM.
 */
int kcm_send_raw(struct kcm_session *s, enum kcm_type type, const void *buf, size_t len)
{
	struct kcm_tx *tx = kcm_tx_new(type, len);

	if (!tx)
		return -ENOMEM;
	memcpy(tx->buf, buf, len);
	kcm_tx_queue(s, tx);
	return 0;
}

/* A label for each type and side, so that a MAC is good for one message only. */
#define KCM_LABEL	32
static void kcm_label(char label[KCM_LABEL], bool active, u16 type)
{
	snprintf(label, KCM_LABEL, "kofi_cm %s %u", active ? "active" : "passive", type);
}

static int kcm_seal(struct kcm_session *s, struct kcm_tx *tx)
{
	char label[KCM_LABEL];

	tx->sealed = true;
	if (BIT(tx->type) & KCM_NUMBERED)
		*(__le64 *)(tx->buf + KCM_NUMBER_AT) = cpu_to_le64(++s->tx_number);
	if (tx->type <= KCM_AUTH)
		return 0;
	kcm_label(label, s->active, tx->type);
	return kulp_auth_sign(s->key, label, s->auth, tx->buf, tx->len);
}

static struct kcm_tx *kcm_tx_first(struct kcm_session *s)
{
	struct kcm_tx *tx;

	spin_lock_bh(&s->lock);
	tx = list_first_entry_or_null(&s->txq, struct kcm_tx, list);
	spin_unlock_bh(&s->lock);
	return tx;
}

static void kcm_tx_done(struct kcm_session *s, struct kcm_tx *tx)
{
	spin_lock_bh(&s->lock);
	list_del(&tx->list);
	s->nnotes -= tx->type == KCM_NOTE;
	s->npongs -= tx->type == KCM_PONG;
	spin_unlock_bh(&s->lock);
	kfree_sensitive(tx);
}

/* Send what TCP takes. Return: 0 or a negative errno. */
static int kcm_transmit(struct kcm_session *s)
{
	struct kcm_tx *tx;
	int ret;

	while ((tx = kcm_tx_first(s))) {
		ret = tx->sealed ? 0 : kcm_seal(s, tx);
		if (ret)
			return ret;
		ret = kcm_sock_send(s, tx->buf + tx->sent, tx->len - tx->sent);
		if (ret < 0)
			return ret == -EAGAIN ? 0 : ret;
		tx->sent += ret;
		if (tx->sent == tx->len)
			kcm_tx_done(s, tx);
	}
	return 0;
}

/* --- ends --- */

/* These requests stay, so that no other attempt is made. */
static bool kcm_want_stays(enum kcm_want want)
{
	return want == KCM_WANT_CLOSE || want == KCM_WANT_NET_GONE;
}

/**
 * kcm_disconnected() - forget all that belongs to a connection
 * @s: the session
 */
void kcm_disconnected(struct kcm_session *s)
{
	unsigned int want;
	struct kcm_tx *tx;

	kcm_sock_close(s);
	while ((tx = kcm_tx_first(s)))
		kcm_tx_done(s, tx);
	spin_lock_bh(&s->lock);
	tx = s->answer;
	s->answer = NULL;
	s->stopping = false;
	for (want = 0; want < KCM_WANTS; want++)
		if (!kcm_want_stays(want))
			clear_bit(want, &s->wants);
	spin_unlock_bh(&s->lock);
	kfree_sensitive(tx);
	kfree_sensitive(s->rx);
	s->rx = NULL;
	s->rx_have = 0;
	kcm_shaking_free(s);
	kulp_key_put(s->key);
	s->key = NULL;
	memzero_explicit(s->auth, sizeof(s->auth));
	memzero_explicit(s->sip, sizeof(s->sip));
	s->id = 0;
	s->tx_number = 0;
	s->rx_number = 0;
	s->pinged = false;
}

/* The connection isn't needed any more. */
static void kcm_parted(struct kcm_session *s)
{
	kcm_disconnected(s);
	if (s->active && !s->final && !test_bit(KCM_WANT_CLOSE, &s->wants)) {
		kcm_retry(s);
		return;
	}
	kcm_go(s, KCM_CLOSED);
	if (s->active)
		complete(&s->closed);
	else
		kcm_passive_closed(s);
}

/**
 * kcm_part() - let go of a session: the ULP has no part in it any more
 * @s: the session
 *
 * Later sessions of the same client may begin. The last message is still sent.
 */
void kcm_part(struct kcm_session *s)
{
	kcm_kin_leave(s);
	if (!s->active)
		kcm_settle(s);
	kcm_go(s, KCM_PARTING);
	kcm_limit(s, KCM_PART_MS);
	kcm_kick(s);
}

static void kcm_count_end(const struct kcm_end *end)
{
	if (end->refused)
		kcm_count(KCM_COUNT_REFUSED);
	else if (end->err == -EPROTO || end->err == -EACCES)
		kcm_count(KCM_COUNT_PROTO);
	else if (end->err == -ETIMEDOUT)
		kcm_count(KCM_COUNT_SILENT);
}

/* The client learns only that there was no proof. The reason is for who administers this side. */
static void kcm_unproven(const struct kcm_session *s, int err)
{
	const struct kcm_hello_msg *hello = &s->shaking->hello;
	const char *why = "its secret may differ";

	/* The service, or its network namespace, goes. */
	if (err == -ESHUTDOWN || err == -ENETDOWN)
		return;
	if (err == -EBUSY)
		why = "its connection made room, as too many had proved nothing";
	else if (s->shaking->nkeys < 0)
		why = "it is unknown";
	else if (err == -ETIMEDOUT)
		why = "it sent none in time";
	pr_info_ratelimited("kofi_cm: %s at %s, %s %s: no proof from the client: %s\n", hello->name,
			    s->from, hello->service, hello->instance, why);
}

/**
 * kcm_end() - end a session, or an attempt to begin one
 * @s: the session
 * @end: how it ends
 *
 * Nothing happens if it has ended already.
 */
void kcm_end(struct kcm_session *s, const struct kcm_end *end)
{
	struct kcm_end copy = *end;
	bool seen;

	if (s->state >= KCM_STOPPED)
		return;
	s->last_err = end->err;
	trace_kcm_end(s, end);
	kcm_count_end(end);
	spin_lock_bh(&s->lock);
	seen = s->seen;
	s->stopping = seen;
	spin_unlock_bh(&s->lock);
	if (s->active && test_bit(KCM_WANT_CLOSE, &s->wants))
		copy.final = true;
	if (seen) {
		if (s->state == KCM_LIVE)
			s->failing_since = jiffies;
		s->final = copy.final;
		kcm_go(s, KCM_STOPPED);
		s->config->ops->stop(s, &copy);
	} else if (s->active) {
		kcm_attempt_over(s, &copy);
	} else {
		if (s->state == KCM_CHALLENGED)
			kcm_unproven(s, end->err);
		kcm_part(s);
	}
}

/**
 * kcm_end_by() - end a session from this side
 * @s: the session
 * @err: negative errno
 * @reason: reason for the peer
 */
void kcm_end_by(struct kcm_session *s, int err, enum kcm_reason reason)
{
	const struct kcm_bye_msg bye = { .reason = reason, .again = true };
	const struct kcm_end end = { .err = err, .reason = reason };

	if (s->state == KCM_LIVE || s->state == KCM_ACCEPTED)
		kcm_send(s, KCM_BYE, &bye, NULL, 0);
	else if (s->state == KCM_PROVEN || s->state == KCM_ASKED)
		kcm_refuse(s, err, true, "");
	kcm_end(s, &end);
}

/* --- receiving --- */

static int kcm_take_note(struct kcm_session *s, void *buf, size_t len)
{
	struct kcm_note_msg msg;
	int ret;

	ret = kulp_parse(&kcm_proto, KCM_NOTE, buf, len, &msg);
	if (!ret && s->config->ops->note)
		s->config->ops->note(s, msg.data, msg.len);
	return ret;
}

static int kcm_take_ping(struct kcm_session *s, void *buf, size_t len)
{
	struct kcm_note_msg msg = {};
	int ret;

	ret = kulp_parse(&kcm_proto, KCM_PING, buf, len, &msg);
	/* A peer that doesn't take its answers must not make them pile up. */
	if (ret || READ_ONCE(s->npongs))
		return ret;
	return kcm_send(s, KCM_PONG, &msg, NULL, 0);
}

static int kcm_take_pong(struct kcm_session *s, void *buf, size_t len)
{
	struct kcm_note_msg msg;

	return kulp_parse(&kcm_proto, KCM_PONG, buf, len, &msg);
}

static int kcm_take_bye(struct kcm_session *s, void *buf, size_t len)
{
	struct kcm_end end = { .err = -ECONNABORTED };
	struct kcm_bye_msg msg;
	int ret;

	ret = kulp_parse(&kcm_proto, KCM_BYE, buf, len, &msg);
	if (ret)
		return ret;
	end.reason = msg.reason;
	end.final = !msg.again && s->key;
	end.data = msg.data;
	end.len = msg.len;
	kcm_end(s, &end);
	return 0;
}

/* A negative errno of a handler ends the session. */
static int (* const kcm_takes[KCM_TYPES])(struct kcm_session *s, void *buf, size_t len) = {
	[KCM_HELLO]	= kcm_take_hello,
	[KCM_CHALLENGE]	= kcm_take_challenge,
	[KCM_AUTH]	= kcm_take_auth,
	[KCM_ACCEPT]	= kcm_take_accept,
	[KCM_READY]	= kcm_take_ready,
	[KCM_REJECT]	= kcm_take_reject,
	[KCM_NOTE]	= kcm_take_note,
	[KCM_BYE]	= kcm_take_bye,
	[KCM_PING]	= kcm_take_ping,
	[KCM_PONG]	= kcm_take_pong,
};

/**
 * kcm_check_mac() - check the MAC of a message from the peer
 * @s: the session
 * @type: type of the message
 * @buf: the message, whose MAC becomes 0
 * @len: its length
 *
 * Return: 0, -EACCES, or another negative errno.
 */
int kcm_check_mac(struct kcm_session *s, u16 type, void *buf, size_t len)
{
	char label[KCM_LABEL];

	kcm_label(label, !s->active, type);
	return kulp_auth_check(s->key, label, s->auth, buf, len);
}

static int kcm_take(struct kcm_session *s, void *buf, size_t len)
{
	u16 type = le16_to_cpu(((struct kulp_hdr *)buf)->type);
	int ret;

	/* kcm_take_reject() checks its MAC itself: without a proof, it means less. */
	if (type > KCM_AUTH && type != KCM_REJECT) {
		ret = kcm_check_mac(s, type, buf, len);
		if (ret)
			return ret;
	}
	if (BIT(type) & KCM_NUMBERED &&
	    le64_to_cpu(*(__le64 *)(buf + KCM_NUMBER_AT)) != ++s->rx_number)
		return -EPROTO;
	WRITE_ONCE(s->heard, jiffies);
	s->pinged = false;
	return kcm_takes[type](s, buf, len);
}

static int kcm_receive_hdr(struct kcm_session *s)
{
	int ret;

	ret = kcm_sock_recv(s, (u8 *)&s->hdr + s->rx_have, sizeof(s->hdr) - s->rx_have);
	if (ret < 0)
		return ret;
	s->rx_have += ret;
	if (s->rx_have < sizeof(s->hdr))
		return 0;
	ret = kcm_wire_expect(&s->hdr, kcm_states[s->state].types, &s->rx_len);
	if (ret)
		return ret;
	s->rx = kmalloc(s->rx_len, GFP_NOIO);
	if (!s->rx)
		return -ENOMEM;
	memcpy(s->rx, &s->hdr, sizeof(s->hdr));
	return 0;
}

/* Return: 1 after a message, 0 to be called again, or a negative errno. */
static int kcm_receive_one(struct kcm_session *s)
{
	u8 *buf;
	int ret;

	if (!s->rx)
		return kcm_receive_hdr(s);
	ret = kcm_sock_recv(s, s->rx + s->rx_have, s->rx_len - s->rx_have);
	if (ret < 0)
		return ret;
	s->rx_have += ret;
	if (s->rx_have < s->rx_len)
		return 0;
	buf = s->rx;
	s->rx = NULL;
	s->rx_have = 0;
	ret = kcm_take(s, buf, s->rx_len);
	/* HELLO is kept for the proofs. */
	if (!s->shaking || s->shaking->first != buf)
		kfree_sensitive(buf);
	return ret ?: 1;
}

static enum kcm_reason kcm_reason_of(int err)
{
	switch (err) {
	case -EPROTO:
	case -EACCES:
		return KCM_BYE_PROTOCOL;
	case -ENODEV:
		return KCM_BYE_REMOVED;
	}
	return KCM_BYE_FAILED;
}

static void kcm_receive(struct kcm_session *s)
{
	int n = 0, ret = 0;

	while (BIT(s->state) & KCM_RECEIVING && n < KCM_BATCH) {
		ret = kcm_receive_one(s);
		if (ret < 0)
			break;
		n += ret;
	}
	if (n == KCM_BATCH)
		kcm_kick(s);
	if (ret < 0 && ret != -EAGAIN)
		kcm_end_by(s, ret, kcm_reason_of(ret));
}

/**
 * kcm_begin_live() - both sides are ready
 * @s: the session
 */
void kcm_begin_live(struct kcm_session *s)
{
	WRITE_ONCE(s->heard, jiffies);
	s->lives++;
	kcm_count(KCM_COUNT_LIVE);
	kcm_go(s, KCM_LIVE);
	if (s->config->ops->live)
		s->config->ops->live(s);
}

/* --- the work item --- */

static void kcm_do_answer(struct kcm_session *s)
{
	struct kcm_tx *tx;

	spin_lock_bh(&s->lock);
	tx = s->answer;
	s->answer = NULL;
	spin_unlock_bh(&s->lock);
	if (!tx)
		return;
	if (s->state != KCM_ASKED) {
		kfree_sensitive(tx);
		return;
	}
	kcm_tx_queue(s, tx);
	if (tx->type == KCM_REJECT) {
		kcm_count(KCM_COUNT_REFUSED);
		kcm_part(s);
		return;
	}
	kcm_go(s, KCM_ACCEPTED);
	kcm_limit(s, KCM_READY_MS);
}

static void kcm_do_bye(struct kcm_session *s)
{
	struct kcm_end end = { .err = -ESHUTDOWN };
	struct kcm_bye_msg bye;
	u8 data[KCM_BYE_MAX];
	size_t len;

	/* There is neither a session nor an attempt. */
	if (s->state == KCM_WAITING)
		return;
	spin_lock_bh(&s->lock);
	bye = s->bye;
	len = s->bye_len;
	memcpy(data, s->bye_data, len);
	spin_unlock_bh(&s->lock);
	end.reason = bye.reason;
	if (s->state == KCM_LIVE || s->state == KCM_ACCEPTED)
		kcm_send(s, KCM_BYE, &bye, data, len);
	kcm_end(s, &end);
}

static void kcm_do_close(struct kcm_session *s)
{
	if (s->state < KCM_STOPPED)
		kcm_end_by(s, -ESHUTDOWN, s->active ? KCM_BYE_DONE : KCM_BYE_STOPPED);
}

static void kcm_do_gone(struct kcm_session *s)
{
	/* Asked: the ULP has refused the client, but there was no memory to say so. */
	if (s->state == KCM_STOPPED || s->state == KCM_ASKED)
		kcm_part(s);
}

static void kcm_do_evicted(struct kcm_session *s)
{
	if (s->state < KCM_PROVEN)
		kcm_end_by(s, -EBUSY, KCM_BYE_FAILED);
}

static void kcm_do_replaced(struct kcm_session *s)
{
	kcm_end_by(s, -ESTALE, KCM_BYE_REPLACED);
}

static void kcm_do_net_gone(struct kcm_session *s)
{
	const struct kcm_end end = {
		.err = -ENETDOWN, .reason = KCM_BYE_REMOVED, .final = true,
	};

	kcm_end(s, &end);
	kcm_sock_close(s);
}

static void (* const kcm_does[KCM_WANTS])(struct kcm_session *s) = {
	[KCM_WANT_NET_GONE]	= kcm_do_net_gone,
	[KCM_WANT_ANSWER]	= kcm_do_answer,
	[KCM_WANT_BYE]		= kcm_do_bye,
	[KCM_WANT_CLOSE]	= kcm_do_close,
	[KCM_WANT_REPLACED]	= kcm_do_replaced,
	[KCM_WANT_EVICTED]	= kcm_do_evicted,
	[KCM_WANT_GONE]		= kcm_do_gone,
};

static void kcm_requests(struct kcm_session *s)
{
	unsigned int i;

	for (i = 0; i < KCM_WANTS; i++) {
		if (!test_bit(i, &s->wants))
			continue;
		if (!kcm_want_stays(i))
			clear_bit(i, &s->wants);
		kcm_does[i](s);
	}
}

static void kcm_timed_out(struct kcm_session *s)
{
	const struct kcm_end late = { .err = -EBUSY, .reason = KCM_BYE_FAILED };

	s->timed = false;
	switch (s->state) {
	case KCM_WAITING:
		kcm_attempt(s);
		break;
	case KCM_PARTING:
		kcm_parted(s);
		break;
	case KCM_PROVEN:
		kcm_refuse(s, -EBUSY, true, "an earlier session of this client hasn't ended");
		kcm_end(s, &late);
		break;
	default:
		kcm_end_by(s, -ETIMEDOUT, KCM_BYE_FAILED);
	}
}

/* A silent peer is asked once after half of the time that it may be silent for. */
static void kcm_keep_alive(struct kcm_session *s)
{
	unsigned long now = jiffies, heard = READ_ONCE(s->heard);
	const struct kcm_note_msg msg = {};

	/* kcm_heard() may have been called since @now. */
	if (time_after_eq(now, heard + msecs_to_jiffies(s->keep_alive) * 3 / 2))
		kcm_end_by(s, -ETIMEDOUT, KCM_BYE_FAILED);
	else if (!s->pinged &&
		 time_after_eq(now, heard + msecs_to_jiffies(s->keep_alive) / 2))
		s->pinged = !kcm_send(s, KCM_PING, &msg, NULL, 0);
}

static void kcm_step(struct kcm_session *s)
{
	int ret;

	if (s->state == KCM_CONNECTING)
		kcm_connected(s);
	kcm_receive(s);
	if (s->state == KCM_PROVEN)
		kcm_passive_turn(s);
	if (s->state == KCM_LIVE)
		kcm_keep_alive(s);
	if (s->timed && time_after_eq(jiffies, s->deadline))
		kcm_timed_out(s);
	ret = s->sock.sock && s->state != KCM_CONNECTING ? kcm_transmit(s) : 0;
	if (s->state == KCM_PARTING && (ret || !s->sock.sock || !kcm_tx_first(s)))
		kcm_parted(s);
	else if (ret)
		kcm_end_by(s, ret, KCM_BYE_FAILED);
}

/* Queue the work item for the next time limit, unless it is queued already. */
static void kcm_arm(struct kcm_session *s)
{
	unsigned long at = s->deadline, quarter = msecs_to_jiffies(s->keep_alive) / 4;

	if (s->state == KCM_LIVE)
		at = jiffies + max(quarter, 1UL);
	else if (!s->timed)
		return;
	queue_delayed_work(kcm_wq, &s->work, time_after(at, jiffies) ? at - jiffies : 0);
}

/**
 * kcm_work() - the work item of a session
 * @work: kcm_session.work
 */
void kcm_work(struct work_struct *work)
{
	struct kcm_session *s = container_of(to_delayed_work(work), struct kcm_session, work);
	unsigned int noio = memalloc_noio_save();

	mutex_lock(&s->run);
	if (s->state != KCM_CLOSED) {
		kcm_requests(s);
		if (s->state != KCM_CLOSED)
			kcm_step(s);
		if (s->state != KCM_CLOSED)
			kcm_arm(s);
	}
	mutex_unlock(&s->run);
	memalloc_noio_restore(noio);
}
