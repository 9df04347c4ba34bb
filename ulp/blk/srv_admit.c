// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Admission of sessions, whose clients have proved their identity: export, client name and host. A
 * new session waits for older ones with the same identity without a lock, so it delays no others.
 * kofi_cm has ended those, and has waited until none of them is at the store.
 */
#include <linux/string.h>
#include "srv.h"

/* Sessions of a client that it needn't wait for, because it has other endpoints now. */
#define KBS_LEFT_MAX	3

DEFINE_SPINLOCK(kbs_sessions_lock);
LIST_HEAD(kbs_sessions);
static u64 kbs_turns;	/* number of sessions so far; under kbs_sessions_lock */

/* Return: whether a session in this state flushes the store and tells the client at its end. */
static bool kbs_session_parts(enum kbs_session_state state)
{
	return state == KBS_SESSION_PARTING || state == KBS_SESSION_CLOSING;
}

/*
 * Move a session to a later state. One that must end before it is live is refused. The first who
 * stops it decides whether it flushes the store. Return: whether its state changed. Any context
 * but hard IRQ.
 */
bool kbs_session_go(struct kbs_session *s, enum kbs_session_state state)
{
	bool may;

	spin_lock_bh(&s->lock);
	if (state > KBS_SESSION_LIVE && s->state < KBS_SESSION_LIVE)
		state = KBS_SESSION_REFUSED;
	may = state > s->state &&
	      !(s->state == KBS_SESSION_REFUSED && state == KBS_SESSION_LIVE) &&
	      !(kbs_session_parts(s->state) && state == KBS_SESSION_STOPPED);
	if (may)
		WRITE_ONCE(s->state, state);
	spin_unlock_bh(&s->lock);
	return may;
}

static bool kbs_same_client(const struct kbs_session *a, const struct kbs_session *b)
{
	return a->export == b->export && !strcmp(a->client, b->client);
}

/*
 * Return: true if @old is another session with the same export, client name and host. Exports are
 * compared by name: one that was removed and created again may have the same store, which sessions
 * of the removed one still write to.
 */
static bool kbs_session_kin(const struct kbs_session *s, const struct kbs_session *old)
{
	return old != s && !strcmp(s->name, old->name) && !strcmp(s->client, old->client) &&
	       !memcmp(old->host, s->host, sizeof(s->host));
}

/*
 * Check a new session against the port's limits. Sessions that it replaces don't count, so that a
 * client can reconnect all its sessions. kofi_cm has the limit of all sessions, too, but forgets a
 * session when nothing of it is at the store: its thread and memory may stay until the device has
 * given up a dead client. Sessions are counted by client name and export, because a client proves
 * its name for one export only. Return: NULL, or why it is refused.
 */
static const char *kbs_session_excess(const struct kbs_session *s)
{
	const struct kbs_session *other;
	u32 all = 0, own = 0;

	lockdep_assert_held(&kbs_sessions_lock);
	list_for_each_entry(other, &kbs_sessions, list) {
		if (!other->counts || other->port != s->port || kbs_session_kin(s, other))
			continue;
		all++;
		own += kbs_same_client(s, other);
	}
	if (own >= s->port->max_client_sessions)
		return "too many sessions of this client";
	return all >= s->port->max_sessions ? "too many sessions" : NULL;
}

static const char *kbs_session_barred(struct kbs_session *s, int *err)
{
	lockdep_assert_held(&kbs_lock);
	*err = -EBUSY;
	if (!s->port->conf.enabled)
		return "the port is being closed";
	s->export = kbs_port_export(s->port, s->name);
	if (!s->export) {
		*err = -ENOENT;
		return "no such export";
	}
	if (kbs_export_allows(s->export, s->client, s->key))
		return NULL;
	*err = -EACCES;
	return "the secret has changed";
}

static void kbs_session_add(struct kbs_session *s)
{
	struct kbs_session *old;

	lockdep_assert_held(&kbs_sessions_lock);
	list_for_each_entry(old, &kbs_sessions, list)
		if (kbs_session_kin(s, old))
			old->counts = false;
	s->turn = ++kbs_turns;
	s->counts = true;
	list_add_tail(&s->list, &kbs_sessions);
}

/*
 * Add a session to the list, under kbs_lock so that disabling the port or the export, and changes
 * of the client's secrets, stop the session. Return: NULL, or why it is refused, with *@err.
 */
const char *kbs_session_admit(struct kbs_session *s, int *err)
{
	const char *why;

	mutex_lock(&kbs_lock);
	why = kbs_session_barred(s, err);
	spin_lock_bh(&kbs_sessions_lock);
	why = why ?: kbs_session_excess(s);
	if (!why) {
		kbs_session_add(s);
		s->port->conf.nsessions++;
		s->export->conf.nsessions++;
	}
	spin_unlock_bh(&kbs_sessions_lock);
	mutex_unlock(&kbs_lock);
	return why;
}

/*
 * Remove a session from the list. The latest of those that it had replaced, if any is left, counts
 * again: otherwise a client that replaces a session and leaves could come with ever more names.
 */
void kbs_session_remove(struct kbs_session *s)
{
	struct kbs_session *old;

	spin_lock_bh(&kbs_sessions_lock);
	list_del(&s->list);
	list_for_each_entry_reverse(old, &kbs_sessions, list)
		if (s->counts && kbs_session_kin(s, old)) {
			old->counts = true;
			break;
		}
	spin_unlock_bh(&kbs_sessions_lock);
}

/* Return: whether two sessions of a client have an endpoint in common. */
static bool kbs_addrs_meet(const struct kcm_addrs *a, const struct kcm_addrs *b)
{
	size_t i, j, len = a->len;

	if (len != b->len)
		return true;
	for (i = 0; i < a->count; i++)
		for (j = 0; j < b->count; j++)
			if (!memcmp(a->addr + i * len, b->addr + j * len, len))
				return true;
	return false;
}

/* Older sessions of which something is left. */
struct kbs_left {
	unsigned int	sessions;
	u64		posted;		/* operations on the fabric */
	u64		room;		/* for these and those of the new session */
};

/*
 * Return: whether all that is left of an older session are operations of the device with endpoints
 * that the client doesn't have any more, as after a crash of its machine. They can't reach memory
 * of the client, and nothing follows them.
 */
static bool kbs_session_left(const struct kbs_session *s, struct kbs_session *old,
			     struct kbs_left *left)
{
	struct kbs_load load;
	u64 room;

	lockdep_assert_held(&kbs_sessions_lock);
	if (READ_ONCE(old->state) != KBS_SESSION_ENDING || kbs_addrs_meet(&s->addrs, &old->addrs))
		return false;
	left->sessions++;
	/* Without a fabric its queues are freed. */
	if (!old->fabric)
		return true;
	kbs_session_load(old, &load, NULL);
	room = (u64)old->nqueues * old->fabric->info->tx_attr->size / 2;
	left->room = min_not_zero(left->room, room);
	left->posted += load.posted;
	return !load.io;
}

/*
 * Return: whether a server can afford what is left beside another session of the client. Until the
 * device gives them up, the operations take room of its queues, which other clients need, too.
 */
static bool kbs_left_ok(const struct kbs_session *s, const struct kbs_left *left)
{
	u64 more = (u64)s->hello.limits.queues * s->hello.limits.depth;

	return left->sessions <= KBS_LEFT_MAX &&
	       (!left->posted || left->posted + more <= left->room);
}

/*
 * Return: whether the sessions that @s replaces are gone, or what is left of them does no harm.
 * They must no longer access the store, or the client's memory, whose keys may be reused. kbs_wait
 * is woken when a session ends.
 */
bool kbs_session_alone(struct kbs_session *s)
{
	struct kbs_left left = {};
	struct kbs_session *old;
	bool alone = true;

	spin_lock_bh(&kbs_sessions_lock);
	list_for_each_entry(old, &kbs_sessions, list) {
		if (!kbs_session_kin(s, old) || old->turn > s->turn)
			continue;
		if (!kbs_session_left(s, old, &left))
			alone = false;
	}
	spin_unlock_bh(&kbs_sessions_lock);
	return alone && kbs_left_ok(s, &left);
}

/* Clients without a secret share one limit, because they can choose any name. */
static bool kbs_session_shares(const struct kbs_session *s, const struct kbs_session *other)
{
	if (other == s || other->fabric != s->fabric)
		return false;
	return s->key ? other->key && kbs_same_client(s, other) : !other->key;
}

/*
 * Reserve a share of a queue's @room receives. All sessions of a client with a secret together get
 * at most a half, and those of all clients without a secret three quarters, so that receives are
 * left for others. Return: the number of receives that the session may use; may be 0.
 */
u32 kbs_session_credits(struct kbs_session *s, u32 want, u32 room)
{
	u32 share = s->key ? room / 2 : room - room / 4, taken = 0;
	struct kbs_session *other;

	spin_lock_bh(&kbs_sessions_lock);
	list_for_each_entry(other, &kbs_sessions, list)
		if (kbs_session_shares(s, other))
			taken += other->promised;
	s->promised = min(want, share - min(taken, share));
	spin_unlock_bh(&kbs_sessions_lock);
	return s->promised;
}

/* Give the receives of a session to others: its client sends no more commands. */
void kbs_session_credits_give(struct kbs_session *s)
{
	u16 i;

	for (i = 0; i < s->nqueues; i++) {
		kulp_credits_give(s->queues[i].q, s->queues[i].credits);
		s->queues[i].credits = 0;
	}
	spin_lock_bh(&kbs_sessions_lock);
	s->promised = 0;
	spin_unlock_bh(&kbs_sessions_lock);
}
