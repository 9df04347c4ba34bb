// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sessions of the same client for the same thing follow one another: the latest stops the earlier
 * ones, and waits until nothing of them runs. Otherwise a late write of an earlier session could
 * overwrite what the later one has written.
 */
#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/string.h>
#include <net/net_namespace.h>
#include "cm.h"

#define KCM_KIN_BITS	8

/* Proven sessions of the passive side until their kcm_gone(). */
static DEFINE_SPINLOCK(kcm_kin_lock);	/* protects kcm_kin, kcm_turn and kcm_session.kin */
static DEFINE_HASHTABLE(kcm_kin, KCM_KIN_BITS);
static u64 kcm_turn;

static bool kcm_same(const struct kcm_session *a, const struct kcm_session *b)
{
	const struct kcm_hello_msg *x = &a->shaking->hello, *y = &b->shaking->hello;

	return net_eq(a->config->net, b->config->net) && !strcmp(x->service, y->service) &&
	       !strcmp(x->instance, y->instance) && !strcmp(x->name, y->name) &&
	       !memcmp(x->host, y->host, KCM_HOST);
}

static u32 kcm_kin_hash(const struct kcm_session *s)
{
	const struct kcm_hello_msg *hello = &s->shaking->hello;

	/* Some services have one name, others one instance, for all of their sessions. */
	return jhash(hello->name, sizeof(hello->name),
		     jhash(hello->instance, sizeof(hello->instance), 0));
}

/* Number of other clients' sessions of a listener. */
static u32 kcm_others(const struct kcm_session *s)
{
	struct kcm_session *other;
	u32 n = 0;
	int i;

	lockdep_assert_held(&kcm_kin_lock);
	hash_for_each(kcm_kin, i, other, kin)
		n += other->listener == s->listener && !kcm_same(s, other);
	return n;
}

/**
 * kcm_kin_join() - take a turn, and stop the client's earlier sessions
 * @s: the session, proven
 *
 * Return: 0, or -EBUSY if the listener has as many sessions of other clients as it may have.
 */
int kcm_kin_join(struct kcm_session *s)
{
	u32 most = s->config->max_sessions;
	struct kcm_session *other;

	spin_lock(&kcm_kin_lock);
	if (most && kcm_others(s) >= most) {
		spin_unlock(&kcm_kin_lock);
		return -EBUSY;
	}
	hash_for_each_possible(kcm_kin, other, kin, kcm_kin_hash(s))
		if (kcm_same(s, other))
			kcm_want(other, KCM_WANT_REPLACED);
	s->turn = ++kcm_turn;
	hash_add(kcm_kin, &s->kin, kcm_kin_hash(s));
	spin_unlock(&kcm_kin_lock);
	return 0;
}

/**
 * kcm_kin_first() - see whether it is a session's turn
 * @s: the session, after kcm_kin_join()
 *
 * Return: true if the client has no earlier session. Otherwise the work item of @s is queued when
 * one has ended.
 */
bool kcm_kin_first(struct kcm_session *s)
{
	struct kcm_session *other;
	bool first = true;

	spin_lock(&kcm_kin_lock);
	hash_for_each_possible(kcm_kin, other, kin, kcm_kin_hash(s))
		if (other->turn < s->turn && kcm_same(s, other))
			first = false;
	spin_unlock(&kcm_kin_lock);
	return first;
}

/**
 * kcm_kin_leave() - let the client's later sessions begin
 * @s: the session; nothing happens if it has no turn
 */
void kcm_kin_leave(struct kcm_session *s)
{
	struct kcm_session *other;

	spin_lock(&kcm_kin_lock);
	if (!hlist_unhashed(&s->kin)) {
		hash_del(&s->kin);
		hash_for_each_possible(kcm_kin, other, kin, kcm_kin_hash(s))
			if (kcm_same(s, other))
				kcm_kick(other);
	}
	spin_unlock(&kcm_kin_lock);
}
