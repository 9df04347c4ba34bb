// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Calls of ULPs for a session. They leave requests for the session's work item. */
#include <linux/export.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "cm.h"

static int kcm_answer(struct kcm_session *s, struct kcm_tx *tx)
{
	bool late;

	if (!tx)
		return -ENOMEM;
	spin_lock_bh(&s->lock);
	late = s->stopping || s->answer;
	if (!late) {
		s->answer = tx;
		s->seen = tx->type != KCM_REJECT;
		/* Under the lock: a session that was refused can be freed by the work item. */
		kcm_want(s, KCM_WANT_ANSWER);
	}
	spin_unlock_bh(&s->lock);
	if (!late)
		return 0;
	kfree_sensitive(tx);
	return -ENOTCONN;
}

/* Return: true if kcm_ops.stop wasn't called, and won't be. */
static bool kcm_leave(struct kcm_session *s)
{
	bool unheard;

	spin_lock_bh(&s->lock);
	unheard = !s->stopping;
	s->seen = false;
	/* Under the lock: a passive session can be freed as soon as the work item sees this. */
	kcm_want(s, KCM_WANT_GONE);
	spin_unlock_bh(&s->lock);
	return unheard;
}

/**
 * kcm_accept() - accept a session
 * @s: the session, after kcm_ops.request
 * @addrs: addresses of this side's endpoints, which are copied; may be NULL
 * @priv: private data, which is copied
 * @len: bytes of @priv, at most KCM_PRIV_MAX
 *
 * Before the call, the ULP inserts the client's addresses and gets ready for its messages.
 * Context: Process, sleeps.
 * Return: 0; -EINVAL for too many addresses or bytes; -ENOMEM; or -ENOTCONN: the session has ended,
 * and kcm_ops.stop was called or is about to be. After an error, the ULP ends the session with
 * kcm_reject(), or has it ended by kcm_ops.stop.
 */
int kcm_accept(struct kcm_session *s, const struct kcm_addrs *addrs, const void *priv, size_t len)
{
	struct kcm_accept_msg msg = {
		.session = s->id, .keep_alive = s->keep_alive, .version = s->version,
		.priv_len = len,
	};
	u8 *tail;
	size_t n;
	int ret;

	if (addrs) {
		msg.addr_format = addrs->format;
		msg.addr_len = addrs->len;
		msg.addr_count = addrs->count;
	}
	n = msg.addr_len * msg.addr_count;
	if (msg.addr_len > KULP_ADDR_MAX || msg.addr_count > KCM_ADDRS || len > KCM_PRIV_MAX)
		return -EINVAL;
	tail = kmalloc(n + len + 1, GFP_NOIO);
	if (!tail)
		return -ENOMEM;
	if (n)
		memcpy(tail, addrs->addr, n);
	if (len)
		memcpy(tail + n, priv, len);
	ret = kcm_answer(s, kcm_tx_build(KCM_ACCEPT, &msg, tail, n + len));
	kfree(tail);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(kcm_accept, KOFI_CM);

/**
 * kcm_reject() - refuse a session
 * @s: the session, after kcm_ops.request. Not valid any more after the call
 * @err: negative errno, sent as enum kulp_status
 * @again: another attempt may succeed. Otherwise the client makes none, if it has a secret
 * @after_ms: the client should wait that long, in milliseconds
 * @why: text for the client's log, of which KCM_NAME - 1 characters are sent; or NULL
 * @priv: private data, which is copied
 * @len: bytes of @priv, at most KCM_PRIV_MAX
 *
 * Nothing of the session may run any more. If the session has ended meanwhile and kcm_ops.stop was
 * called, this is the same as kcm_gone(). If there is no memory, the client isn't told why.
 * Context: Process, sleeps.
 * Return: true if kcm_ops.stop isn't called for the session; false if it was, is being, or is about
 * to be called, so that its context must stay for the call.
 */
bool kcm_reject(struct kcm_session *s, int err, bool again, u32 after_ms, const char *why,
		const void *priv, size_t len)
{
	struct kcm_reject_msg msg = {
		.after_ms = after_ms, .status = kulp_errno_status(err), .again = again,
		.version_min = s->config->version_min, .version = s->config->version,
		.priv_len = len,
	};

	if (WARN_ON_ONCE(len > KCM_PRIV_MAX)) {
		msg.priv_len = 0;
		len = 0;
	}
	if (why)
		strscpy(msg.why, why, sizeof(msg.why));
	if (!kcm_answer(s, kcm_tx_build(KCM_REJECT, &msg, priv, len)))
		return true;
	return kcm_leave(s);
}
EXPORT_SYMBOL_NS_GPL(kcm_reject, KOFI_CM);

/**
 * kcm_note() - send a note
 * @s: the session, live
 * @data: the note, which is copied
 * @len: its bytes, at most KCM_NOTE_MAX
 *
 * Notes arrive once and in order, or the session ends.
 * Context: Process, sleeps.
 * Return: 0; -EINVAL; -ENOTCONN if the session isn't live; -ENOBUFS if the peer doesn't take the
 * notes that were sent before; or -ENOMEM.
 */
int kcm_note(struct kcm_session *s, const void *data, size_t len)
{
	const struct kcm_note_msg msg = {};
	struct kcm_tx *tx;
	int ret = 0;

	if (len > KCM_NOTE_MAX)
		return -EINVAL;
	tx = kcm_tx_build(KCM_NOTE, &msg, data, len);
	if (!tx)
		return -ENOMEM;
	spin_lock_bh(&s->lock);
	/* Under the lock: a note of this session mustn't become the first message of the next. */
	if (READ_ONCE(s->state) != KCM_LIVE || s->stopping)
		ret = -ENOTCONN;
	else if (s->nnotes >= KCM_NOTES_MAX)
		ret = -ENOBUFS;
	else
		kcm_tx_add(s, tx);
	if (!ret)
		kcm_kick(s);
	spin_unlock_bh(&s->lock);
	if (ret)
		kfree_sensitive(tx);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(kcm_note, KOFI_CM);

/**
 * kcm_heard() - tell a session that its peer is alive
 * @s: the session
 *
 * A ULP that gets messages from the peer over the fabric may call this, to save PINGs.
 * Context: Any.
 */
void kcm_heard(struct kcm_session *s)
{
	unsigned long now = jiffies;

	/* Most messages come within the same tick. */
	if (READ_ONCE(s->heard) != now)
		WRITE_ONCE(s->heard, now);
}
EXPORT_SYMBOL_NS_GPL(kcm_heard, KOFI_CM);

/**
 * kcm_bye() - end a session
 * @s: the session, for which kcm_gone() wasn't called
 * @reason: reason
 * @again: the peer may set up another session
 * @data: data for the peer, which is copied
 * @len: bytes of @data, at most KCM_BYE_MAX
 *
 * kcm_ops.stop follows, unless it was called. An active side begins again after kcm_gone(); to end
 * for good, call kcm_disconnect().
 * Context: Process or softirq.
 */
void kcm_bye(struct kcm_session *s, enum kcm_reason reason, bool again, const void *data,
	     size_t len)
{
	spin_lock_bh(&s->lock);
	if (!test_bit(KCM_WANT_BYE, &s->wants)) {
		s->bye = (struct kcm_bye_msg){ .reason = reason, .again = again };
		s->bye_len = min_t(size_t, len, KCM_BYE_MAX);
		if (s->bye_len)
			memcpy(s->bye_data, data, s->bye_len);
	}
	/* Under the lock: once kcm_ops.stop was called, a passive session can be freed. */
	kcm_want(s, KCM_WANT_BYE);
	spin_unlock_bh(&s->lock);
}
EXPORT_SYMBOL_NS_GPL(kcm_bye, KOFI_CM);

/**
 * kcm_gone() - tell that nothing of a session runs any more
 * @s: the session, after kcm_ops.stop. On the passive side it isn't valid any more after the call
 *
 * The active side begins its next attempt, unless kcm_end.final was set.
 * Context: Process or softirq.
 */
void kcm_gone(struct kcm_session *s)
{
	kcm_leave(s);
}
EXPORT_SYMBOL_NS_GPL(kcm_gone, KOFI_CM);

/**
 * kcm_set_context() - set a session's context
 * @s: the session
 * @context: the ULP's
 * Context: A callback, or before the next one.
 */
void kcm_set_context(struct kcm_session *s, void *context)
{
	s->context = context;
}
EXPORT_SYMBOL_NS_GPL(kcm_set_context, KOFI_CM);

/**
 * kcm_context() - get a session's context
 * @s: the session
 * Context: Any.
 * Return: what was passed to kcm_connect() or kcm_set_context().
 */
void *kcm_context(const struct kcm_session *s)
{
	return s->context;
}
EXPORT_SYMBOL_NS_GPL(kcm_context, KOFI_CM);

/**
 * kcm_id() - get a session's number
 * @s: the session, live
 * Context: Any.
 * Return: a random number, the same on both sides.
 */
u64 kcm_id(const struct kcm_session *s)
{
	return s->id;
}
EXPORT_SYMBOL_NS_GPL(kcm_id, KOFI_CM);

/**
 * kcm_version() - get the version of the service's protocol
 * @s: the session, from kcm_ops.request or kcm_ops.accepted on
 * Context: Any.
 * Return: the newest version that both sides speak.
 */
u16 kcm_version(const struct kcm_session *s)
{
	return s->version;
}
EXPORT_SYMBOL_NS_GPL(kcm_version, KOFI_CM);

/**
 * kcm_mac_key() - get a key for the ULP's own messages
 * @s: the session, from kcm_ops.request or kcm_ops.accepted on
 * Context: Any.
 * Return: KCM_SIP_KEY bytes that both sides of the session know and nobody else, if there is a
 * secret; bytes of 0 otherwise.
 */
const u8 *kcm_mac_key(const struct kcm_session *s)
{
	return s->sip;
}
EXPORT_SYMBOL_NS_GPL(kcm_mac_key, KOFI_CM);
