// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who may have a session, and which session takes another one's place.
 *
 * A connection is half-open until its client has proved itself. There are only so many
 * of those at a port; one more has the oldest of the busiest address hung up on, so that
 * no address keeps the others out.
 *
 * A session is known by export, client's name and host. The newest takes the place of
 * those before it, which are stopped at once; it goes on when none is left, see
 * kb_session_alone(). No lock is held meanwhile, so others don't wait.
 */
#include <linux/string.h>
#include "srv.h"

#define KB_HALF_OPEN	64	/* connections of a port that have proved nothing */

DEFINE_SPINLOCK(kb_sessions_lock);
LIST_HEAD(kb_sessions);
static u64 kb_turns;	/* sessions that were proved, under kb_sessions_lock */

static bool kb_half_open(const struct kb_session *s, const struct kb_port *port)
{
	return s->port == port && !s->proven && !READ_ONCE(s->stop);
}

static u32 kb_half_open_of(const struct kb_port *port, u64 peer)
{
	struct kb_session *s;
	u32 n = 0;

	list_for_each_entry(s, &kb_sessions, list)
		n += kb_half_open(s, port) && s->peer == peer;
	return n;
}

/* Return: the oldest one of the address that has the most. */
static struct kb_session *kb_half_open_victim(const struct kb_port *port)
{
	struct kb_session *s, *victim = NULL;
	u32 n, most = 0, all = 0;

	lockdep_assert_held(&kb_sessions_lock);
	list_for_each_entry(s, &kb_sessions, list) {
		if (!kb_half_open(s, port))
			continue;
		all++;
		n = kb_half_open_of(port, s->peer);
		if (n > most) {
			most = n;
			victim = s;
		}
	}
	return all > KB_HALF_OPEN ? victim : NULL;
}

/**
 * kb_session_admit() - take a connection into the list
 * @s: a session of it, half-open
 *
 * Return: NULL, or why not.
 */
const char *kb_session_admit(struct kb_session *s)
{
	struct kb_port *port = s->port;
	struct kb_session *victim;

	mutex_lock(&kb_srv_lock);
	if (!port->enabled) {
		mutex_unlock(&kb_srv_lock);
		return "the port is being closed";
	}
	port->nsessions++;
	spin_lock_bh(&kb_sessions_lock);
	list_add_tail(&s->list, &kb_sessions);
	victim = kb_half_open_victim(port);
	if (victim)
		kb_session_stop(victim, false);
	spin_unlock_bh(&kb_sessions_lock);
	mutex_unlock(&kb_srv_lock);
	return NULL;
}

static bool kb_same_client(const struct kb_session *a, const struct kb_session *b)
{
	return a->export == b->export &&
	       !strcmp(a->hello.client, b->hello.client);
}

/* Is @old a session of the same host as the same client of the same export? */
static bool kb_session_kin(const struct kb_session *s,
			   const struct kb_session *old)
{
	return old != s && old->proven && kb_same_client(s, old) &&
	       !memcmp(old->hello.host, s->hello.host, sizeof(s->hello.host));
}

/*
 * Sessions whose place is taken don't count: a client may come back with all that it
 * had. A name is worth something only together with its export, for which it was proved.
 */
static const char *kb_session_over(const struct kb_session *s)
{
	const struct kb_session *other;
	u32 all = 0, client = 0;

	lockdep_assert_held(&kb_sessions_lock);
	list_for_each_entry(other, &kb_sessions, list) {
		if (!other->proven || other->superseded ||
		    other->port != s->port || kb_session_kin(s, other))
			continue;
		all++;
		client += kb_same_client(s, other);
	}
	if (client >= s->port->max_client_sessions)
		return "too many sessions of a client";
	return all >= s->port->max_sessions ? "too many sessions" : NULL;
}

/**
 * kb_session_prove() - a client is who it says
 * @s: its session, half-open until now. Those whose place it takes are stopped
 *
 * Return: NULL, or why it may not have a session.
 */
const char *kb_session_prove(struct kb_session *s)
{
	struct kb_session *old;
	const char *why;

	spin_lock_bh(&kb_sessions_lock);
	why = kb_session_over(s);
	if (!why) {
		s->proven = true;
		s->turn = ++kb_turns;
	}
	list_for_each_entry(old, &kb_sessions, list)
		if (!why && kb_session_kin(s, old)) {
			old->superseded = true;
			kb_session_stop(old, false);
		}
	spin_unlock_bh(&kb_sessions_lock);
	return why;
}

/**
 * kb_session_alone() - is nothing left of the sessions whose place this one takes?
 * @s: the session, proved
 *
 * Neither the store nor the client's memory, whose keys come again, may hear of them any
 * more, and what receives they have are this one's.
 *
 * Return: whether it is so; if not, kb_srv_wait is woken when it is.
 */
bool kb_session_alone(struct kb_session *s)
{
	struct kb_session *old;
	bool alone = true;

	spin_lock_bh(&kb_sessions_lock);
	list_for_each_entry(old, &kb_sessions, list)
		if (kb_session_kin(s, old) && old->turn < s->turn)
			alone = false;
	spin_unlock_bh(&kb_sessions_lock);
	return alone;
}

/* Clients without a secret are one, as names are free. */
static bool kb_session_shares(const struct kb_session *s,
			      const struct kb_session *other)
{
	if (other == s || other->fabric != s->fabric)
		return false;
	return s->key ? other->key && kb_same_client(s, other) : !other->key;
}

/**
 * kb_session_credits() - how many of a queue's receives may a session have?
 * @s: the session, on its device
 * @want: as many as its client would like
 * @room: as there are
 *
 * A client's sessions have a half at most, and those of all that need no secret three
 * quarters: so the others find some, too.
 *
 * Return: how many, counted as the session's from here on; may be 0.
 */
u32 kb_session_credits(struct kb_session *s, u32 want, u32 room)
{
	u32 share = s->key ? room / 2 : room - room / 4, taken = 0;
	struct kb_session *other;

	spin_lock_bh(&kb_sessions_lock);
	list_for_each_entry(other, &kb_sessions, list)
		if (kb_session_shares(s, other))
			taken += other->promised;
	s->promised = min(want, share - min(taken, share));
	spin_unlock_bh(&kb_sessions_lock);
	return s->promised;
}
