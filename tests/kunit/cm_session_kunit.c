// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Sessions whose both sides are kofi_cm's. */
#include <linux/delay.h>
#include "cm_scene.h"

/* A session that is live on both sides. */
static struct kcm_session *live(struct kunit *test)
{
	struct kcm_session *s;

	cm_listen(test);
	s = cm_connect(test);
	KUNIT_ASSERT_TRUE(test, cm_soon(READ_ONCE(cm_active->lives) == 1 &&
					READ_ONCE(cm_passive->lives) == 1));
	return s;
}

static void session_begins(struct kunit *test)
{
	struct kcm_session *s = live(test), *p = cm_passive->s;

	KUNIT_EXPECT_EQ(test, cm_passive->addr, 11);
	KUNIT_EXPECT_EQ(test, cm_active->addr, 22);
	KUNIT_EXPECT_EQ(test, cm_passive->len, 5UL);
	KUNIT_EXPECT_MEMEQ(test, cm_passive->data, "hello", 5);
	KUNIT_EXPECT_MEMEQ(test, cm_active->data, "welcome", 7);
	KUNIT_EXPECT_NE(test, kcm_id(s), 0ULL);
	KUNIT_EXPECT_EQ(test, kcm_id(s), kcm_id(p));
	KUNIT_EXPECT_EQ(test, kcm_version(s), 4);
	KUNIT_EXPECT_MEMEQ(test, kcm_mac_key(s), kcm_mac_key(p), KCM_SIP_KEY);
	KUNIT_EXPECT_NOT_NULL(test, memchr_inv(kcm_mac_key(s), 0, KCM_SIP_KEY));
	kcm_disconnect(s);
	KUNIT_EXPECT_EQ(test, cm_active->stops, 1U);
	KUNIT_EXPECT_TRUE(test, cm_active->end.final);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_passive->stops) == 1));
	KUNIT_EXPECT_EQ(test, cm_passive->end.err, -ECONNABORTED);
	KUNIT_EXPECT_EQ(test, cm_passive->end.reason, KCM_BYE_DONE);
}

static void session_versions(struct kunit *test)
{
	struct kcm_session *s;

	cm_active->config.version = 9;
	cm_active->config.version_min = 3;
	s = live(test);
	KUNIT_EXPECT_EQ(test, kcm_version(s), 4);
	KUNIT_EXPECT_EQ(test, kcm_version(cm_passive->s), 4);
	kcm_disconnect(s);
}

/* An attempt fails with @err, and others follow. */
static void attempt_fails(struct kunit *test, int err)
{
	struct kcm_session *s = cm_connect(test);

	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->faileds) >= 2));
	KUNIT_EXPECT_EQ(test, cm_active->end.err, err);
	KUNIT_EXPECT_FALSE(test, cm_active->end.final);
	kcm_disconnect(s);
	KUNIT_EXPECT_EQ(test, cm_active->accepteds, 0U);
	KUNIT_EXPECT_EQ(test, cm_active->stops, 0U);
}

static void session_no_version(struct kunit *test)
{
	cm_listen(test);
	cm_active->config.version_min = 5;
	cm_active->config.version = 9;
	attempt_fails(test, -EPROTO);
	KUNIT_EXPECT_EQ(test, cm_passive->requests, 0U);
}

static void session_no_service(struct kunit *test)
{
	cm_listen(test);
	cm_active->config.service = "other";
	attempt_fails(test, -ENOENT);
}

static void session_nobody_listens(struct kunit *test)
{
	attempt_fails(test, -ECONNREFUSED);
}

static void other_key(struct kunit *test, struct cm_ulp *ulp, const char *secret)
{
	kulp_key_put(ulp->key);
	ulp->key = secret ? kulp_key_new(secret) : NULL;
	if (secret)
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ulp->key);
}

static void session_wrong_secret(struct kunit *test)
{
	cm_listen(test);
	other_key(test, cm_active, CM_OTHER);
	attempt_fails(test, -EKEYREJECTED);
	KUNIT_EXPECT_EQ(test, cm_passive->requests, 0U);
}

/* A client that the passive side doesn't know sees the same as one with a wrong secret. */
static void session_unknown_client(struct kunit *test)
{
	cm_listen(test);
	cm_passive->known = false;
	attempt_fails(test, -EKEYREJECTED);
}

/* A service that doesn't have what the client asks for refuses it before any proof. */
static void session_no_instance(struct kunit *test)
{
	cm_listen(test);
	cm_passive->keys_ret = -ENOENT;
	attempt_fails(test, -ENOENT);
	KUNIT_EXPECT_TRUE(test, cm_active->end.refused);
	KUNIT_EXPECT_FALSE(test, cm_active->end.final);
	KUNIT_EXPECT_STREQ(test, cm_active->end.why, "no such instance");
	KUNIT_EXPECT_EQ(test, cm_passive->requests, 0U);
}

static void session_needs_secret(struct kunit *test)
{
	cm_listen(test);
	other_key(test, cm_active, NULL);
	attempt_fails(test, -ENOKEY);
}

static void session_has_no_secret(struct kunit *test)
{
	cm_listen(test);
	other_key(test, cm_passive, NULL);
	attempt_fails(test, -ENODATA);
}

/* Without secrets nothing is proven, and everything works. */
static void session_without_secret(struct kunit *test)
{
	struct kcm_session *s;

	other_key(test, cm_active, NULL);
	other_key(test, cm_passive, NULL);
	s = live(test);
	KUNIT_EXPECT_EQ(test, kcm_note(s, "abc", 3), 0);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_passive->notes) == 1));
	KUNIT_EXPECT_NULL(test, memchr_inv(kcm_mac_key(s), 0, KCM_SIP_KEY));
	kcm_disconnect(s);
}

static void session_notes(struct kunit *test)
{
	struct kcm_session *s = live(test);
	static u8 big[KCM_NOTE_MAX + 1] = { 1, 2, 3, [KCM_NOTE_MAX - 1] = 99 };
	unsigned int i;

	KUNIT_EXPECT_EQ(test, kcm_note(s, big, sizeof(big)), -EINVAL);
	for (i = 0; i < 20; i++) {
		KUNIT_EXPECT_EQ(test, kcm_note(s, big, KCM_NOTE_MAX - i), 0);
		KUNIT_EXPECT_EQ(test, kcm_note(cm_passive->s, &i, sizeof(i)), 0);
		KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_passive->notes) == i + 1 &&
						READ_ONCE(cm_active->notes) == i + 1));
		KUNIT_EXPECT_EQ(test, cm_passive->len, (size_t)KCM_NOTE_MAX - i);
		KUNIT_EXPECT_MEMEQ(test, cm_passive->data, big, cm_passive->len);
		KUNIT_EXPECT_MEMEQ(test, cm_active->data, &i, sizeof(i));
	}
	KUNIT_EXPECT_EQ(test, kcm_note(s, NULL, 0), 0);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_passive->notes) == 21));
	KUNIT_EXPECT_EQ(test, cm_passive->len, 0UL);
	kcm_disconnect(s);
}

/* A session that either side ends is followed by another one, with a new number. */
static void bye_from(struct kunit *test, bool active)
{
	struct kcm_session *s = live(test);
	u64 id = kcm_id(s);

	kcm_bye(active ? s : cm_passive->s, KCM_BYE_STOPPED, true, "flushed", 7);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->lives) == 2 &&
					READ_ONCE(cm_passive->lives) == 2));
	KUNIT_EXPECT_EQ(test, cm_active->stops, 1U);
	KUNIT_EXPECT_EQ(test, cm_passive->stops, 1U);
	KUNIT_EXPECT_EQ(test, cm_active->end.err, active ? -ESHUTDOWN : -ECONNABORTED);
	KUNIT_EXPECT_EQ(test, cm_passive->end.err, active ? -ECONNABORTED : -ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, cm_active->end.reason, KCM_BYE_STOPPED);
	KUNIT_EXPECT_EQ(test, cm_passive->end.reason, KCM_BYE_STOPPED);
	KUNIT_EXPECT_NE(test, kcm_id(s), id);
	kcm_disconnect(s);
}

static void session_bye_of_active(struct kunit *test)
{
	bye_from(test, true);
}

static void session_bye_of_passive(struct kunit *test)
{
	bye_from(test, false);
}

static void session_bye_data(struct kunit *test)
{
	struct kcm_session *s = live(test);

	kcm_bye(cm_passive->s, KCM_BYE_FAILED, false, "flushed", 7);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->stops) == 1));
	KUNIT_EXPECT_EQ(test, cm_active->len, 7UL);
	KUNIT_EXPECT_MEMEQ(test, cm_active->data, "flushed", 7);
	KUNIT_EXPECT_TRUE(test, cm_active->end.final);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(s->state) == KCM_CLOSED));
	kcm_disconnect(s);
	KUNIT_EXPECT_EQ(test, cm_active->stops, 1U);
}

static struct kcm_session *waiting;

/* The service goes, and the session waits for its next attempt. */
static void service_goes(void)
{
	kcm_unlisten(cm_listener);
	cm_listener = NULL;
	cm_soon(READ_ONCE(waiting->state) == KCM_WAITING);
}

/* A note that is late isn't sent in the next attempt, before HELLO. */
static void session_note_late(struct kunit *test)
{
	waiting = live(test);
	cm_built = service_goes;
	KUNIT_EXPECT_EQ(test, kcm_note(waiting, "late", 4), -ENOTCONN);
	KUNIT_EXPECT_NULL(test, cm_built);
	cm_listen(test);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->lives) == 2));
	KUNIT_EXPECT_EQ(test, cm_passive->notes, 0U);
	kcm_disconnect(waiting);
}

static void session_listen_twice(struct kunit *test)
{
	static const struct sockaddr_storage addr = { .ss_family = AF_INET };
	struct kcm_listener *other = (void *)1;

	cm_listen(test);
	KUNIT_EXPECT_EQ(test, kcm_listen(&cm_passive->config, &addr, cm_passive, &other),
			-EADDRINUSE);
	KUNIT_EXPECT_PTR_EQ(test, other, (struct kcm_listener *)1);
}

/* Without a secret anybody could have said that no other session is wanted. */
static void session_bye_unproven(struct kunit *test)
{
	struct kcm_session *s;

	other_key(test, cm_active, NULL);
	other_key(test, cm_passive, NULL);
	s = live(test);
	kcm_bye(cm_passive->s, KCM_BYE_FAILED, false, NULL, 0);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->lives) == 2));
	kcm_disconnect(s);
}

/* A session waits until nothing of its predecessor runs. */
static void session_predecessor(struct kunit *test)
{
	struct kcm_session *s = live(test), *first = cm_passive->s;

	cm_passive->holds = true;
	/* The active side's network fails: the passive side doesn't hear of it. */
	spin_lock(&cm_conn_of(first)->lock);
	cm_conn_of(first)->session[1] = NULL;
	spin_unlock(&cm_conn_of(first)->lock);
	kcm_bye(s, KCM_BYE_FAILED, true, NULL, 0);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_passive->stops) == 1));
	KUNIT_EXPECT_EQ(test, cm_passive->end.reason, KCM_BYE_REPLACED);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(s->state) == KCM_AUTH_SENT));
	msleep(50);
	KUNIT_EXPECT_EQ(test, cm_passive->requests, 1U);
	cm_passive->holds = false;
	kcm_gone(first);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->lives) == 2));
	KUNIT_EXPECT_EQ(test, cm_passive->requests, 2U);
	kcm_disconnect(s);
}

/* It doesn't wait for ever; its client may come again. */
static void session_predecessor_stays(struct kunit *test)
{
	struct kcm_session *s, *first;

	cm_passive->config.replace_ms = 50;
	s = live(test);
	first = cm_passive->s;
	cm_passive->holds = true;
	kcm_bye(s, KCM_BYE_FAILED, true, NULL, 0);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->faileds) == 2));
	KUNIT_EXPECT_EQ(test, cm_active->end.err, -EBUSY);
	KUNIT_EXPECT_TRUE(test, cm_active->end.refused);
	KUNIT_EXPECT_FALSE(test, cm_active->end.final);
	KUNIT_EXPECT_STREQ(test, cm_active->end.why,
			   "an earlier session of this client hasn't ended");
	KUNIT_EXPECT_NOT_NULL(test, strstr(cm_logged, "client at"));
	KUNIT_EXPECT_NOT_NULL(test, strstr(cm_logged, cm_active->end.why));
	KUNIT_EXPECT_EQ(test, cm_passive->requests, 1U);
	cm_passive->holds = false;
	kcm_gone(first);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->lives) == 2));
	kcm_disconnect(s);
}

/* The ULP answers later, or never. */
static void session_late_answer(struct kunit *test)
{
	struct kcm_session *s;

	cm_passive->answers = false;
	cm_listen(test);
	s = cm_connect(test);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_passive->requests) == 1));
	KUNIT_EXPECT_EQ(test, kcm_accept(cm_passive->s, NULL, NULL, KCM_PRIV_MAX + 1), -EINVAL);
	kcm_reject(cm_passive->s, -ENOENT, true, 0, "no such disk", "data", 4);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->faileds) >= 1));
	KUNIT_EXPECT_EQ(test, cm_active->end.err, -ENOENT);
	KUNIT_EXPECT_STREQ(test, cm_active->end.why, "no such disk");
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_passive->requests) == 2));
	/* The client leaves while the ULP thinks. */
	kcm_disconnect(s);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_passive->stops) == 1));
	KUNIT_EXPECT_EQ(test, cm_passive->end.err, -ECONNRESET);
}

static void session_answer_too_late(struct kunit *test)
{
	struct kcm_session *s;

	cm_passive->answers = false;
	cm_passive->holds = true;
	cm_listen(test);
	s = cm_connect(test);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_passive->requests) == 1));
	kcm_disconnect(s);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_passive->stops) == 1));
	KUNIT_EXPECT_EQ(test, kcm_accept(cm_passive->s, NULL, NULL, 0), -ENOTCONN);
	KUNIT_EXPECT_FALSE(test, kcm_reject(cm_passive->s, -EIO, true, 0, NULL, NULL, 0));
}

/* A refusal by the ULP is final if it says so and is proven. */
static void session_refused_for_good(struct kunit *test)
{
	struct kcm_session *s;

	cm_passive->answers = false;
	cm_listen(test);
	s = cm_connect(test);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_passive->requests) == 1));
	KUNIT_EXPECT_TRUE(test, kcm_reject(cm_passive->s, -EACCES, false, 0, "not for you",
					   NULL, 0));
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->stops) == 1));
	KUNIT_EXPECT_TRUE(test, cm_active->end.final);
	KUNIT_EXPECT_TRUE(test, cm_active->end.refused);
	KUNIT_EXPECT_EQ(test, cm_active->end.err, -EACCES);
	kcm_disconnect(s);
	KUNIT_EXPECT_EQ(test, cm_active->stops, 1U);
	KUNIT_EXPECT_EQ(test, cm_passive->requests, 1U);
}

static void session_request_fails(struct kunit *test)
{
	cm_listen(test);
	cm_passive->request_ret = -ENOMEM;
	attempt_fails(test, -ENOMEM);
	KUNIT_EXPECT_EQ(test, cm_passive->stops, 0U);
}

static void session_accepted_fails(struct kunit *test)
{
	struct kcm_session *s;

	cm_listen(test);
	cm_active->accepted_ret = -EADDRNOTAVAIL;
	s = cm_connect(test);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->faileds) >= 2));
	KUNIT_EXPECT_EQ(test, cm_active->end.err, -EADDRNOTAVAIL);
	kcm_disconnect(s);
	KUNIT_EXPECT_EQ(test, cm_active->lives, 0U);
	KUNIT_EXPECT_EQ(test, cm_active->stops, 0U);
	/* The passive side has seen each of them. */
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_passive->stops) ==
					READ_ONCE(cm_passive->requests)));
}

static void session_hello_fails(struct kunit *test)
{
	cm_listen(test);
	cm_active->hello_ret = -ENODEV;
	attempt_fails(test, -ENODEV);
}

static void session_gives_up(struct kunit *test)
{
	const struct kcm_client client = {
		.name = "client", .instance = "", .key = cm_active->key, .retry_ms = 20,
		.give_up_ms = 100,
	};
	struct kcm_session *s;

	KUNIT_ASSERT_EQ(test, kcm_connect(&cm_active->config, &client, cm_active, &s), 0);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->stops) == 1));
	KUNIT_EXPECT_TRUE(test, cm_active->end.final);
	KUNIT_EXPECT_EQ(test, cm_active->end.err, -ECONNREFUSED);
	KUNIT_EXPECT_GE(test, cm_active->faileds, 3U);
	kcm_disconnect(s);
	KUNIT_EXPECT_EQ(test, cm_active->stops, 1U);
}

/* A ULP that ends a session which hasn't begun only ends an attempt. */
static void session_bye_early(struct kunit *test)
{
	struct kcm_session *s = cm_connect(test);
	unsigned int i;

	for (i = 0; i < 10; i++) {
		usleep_range(i * 1000, i * 1000 + 100);
		kcm_bye(s, KCM_BYE_DONE, true, NULL, 0);
	}
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->faileds) >= 2));
	cm_listen(test);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->lives) == 1));
	kcm_disconnect(s);
	KUNIT_EXPECT_EQ(test, cm_active->stops, 1U);
}

static void session_limit(struct kunit *test)
{
	struct kcm_session *s, *other;

	cm_passive->config.max_sessions = 1;
	s = live(test);
	/* The same client may come again ... */
	kcm_bye(s, KCM_BYE_FAILED, true, NULL, 0);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->lives) == 2));
	/* ... and another one not. */
	{
		const struct kcm_client client = {
			.name = "second", .instance = "disk", .key = cm_active->key,
			.retry_ms = 20,
		};

		KUNIT_ASSERT_EQ(test, kcm_connect(&cm_active->config, &client, cm_active, &other),
				0);
	}
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->faileds) >= 2));
	KUNIT_EXPECT_EQ(test, cm_active->end.err, -EBUSY);
	KUNIT_EXPECT_NOT_NULL(test, strstr(cm_logged, "second at"));
	KUNIT_EXPECT_NOT_NULL(test, strstr(cm_logged, "test disk: refused: too many sessions"));
	kcm_disconnect(s);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->lives) == 3));
	kcm_disconnect(other);
}

/* Sessions stay alive by themselves, and a peer that is silent is dead. */
static void session_keep_alive(struct kunit *test)
{
	struct kcm_session *s;
	struct cm_conn *conn;

	cm_passive->config.keep_alive_ms = 2000;
	s = live(test);
	KUNIT_EXPECT_EQ(test, s->keep_alive, 2000U);
	KUNIT_EXPECT_EQ(test, cm_passive->s->keep_alive, 2000U);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(s->tx_number) > 2));
	KUNIT_EXPECT_EQ(test, cm_active->stops + cm_passive->stops, 0U);
	/* The network swallows what is sent. */
	conn = cm_conn_of(s);
	spin_lock(&conn->lock);
	conn->cut = true;
	spin_unlock(&conn->lock);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_passive->stops) &&
					READ_ONCE(cm_active->stops)));
	/* The end of the connection gets through: one side hears of the other's time-out. */
	KUNIT_EXPECT_TRUE(test, cm_active->end.err == -ETIMEDOUT ||
			  cm_passive->end.err == -ETIMEDOUT);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->lives) == 2));
	kcm_disconnect(s);
}

/* A ULP calls kcm_heard() when the work item has just looked at the clock. */
static void session_heard_meanwhile(struct kunit *test)
{
	struct kcm_session *s = live(test);

	WRITE_ONCE(s->heard, jiffies + 10 * HZ);
	kcm_work(&s->work.work);
	KUNIT_EXPECT_EQ(test, READ_ONCE(s->state), KCM_LIVE);
	KUNIT_EXPECT_EQ(test, cm_active->stops + cm_passive->stops, 0U);
	WRITE_ONCE(s->heard, jiffies);
	kcm_disconnect(s);
}

/* A service that ends has nothing left of its sessions, in whatever state these are. */
static void session_unlisten(struct kunit *test)
{
	struct kcm_session *s = live(test);

	/* The next attempt, which fails, begins after that. */
	cm_active->holds = true;
	kcm_unlisten(cm_listener);
	cm_listener = NULL;
	KUNIT_EXPECT_EQ(test, cm_passive->stops, 1U);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->stops) == 1));
	KUNIT_EXPECT_EQ(test, cm_active->end.reason, KCM_BYE_STOPPED);
	KUNIT_EXPECT_FALSE(test, cm_active->end.final);
	cm_active->holds = false;
	kcm_gone(s);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->faileds) >= 1));
	cm_listen(test);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->lives) == 2));
	kcm_disconnect(s);
}

static void session_services_share_a_port(struct kunit *test)
{
	static const struct sockaddr_storage addr = { .ss_family = AF_INET };
	struct kcm_config other = cm_passive->config;
	struct kcm_listener *l, *twice;
	struct kcm_session *s;

	cm_listen(test);
	KUNIT_EXPECT_EQ(test, kcm_listen(&cm_passive->config, &addr, cm_passive, &twice),
			-EADDRINUSE);
	other.service = "other";
	KUNIT_ASSERT_EQ(test, kcm_listen(&other, &addr, cm_passive, &l), 0);
	KUNIT_EXPECT_PTR_EQ(test, l->port, cm_listener->port);
	cm_active->config.service = "other";
	s = cm_connect(test);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->lives) == 1));
	KUNIT_EXPECT_PTR_EQ(test, kcm_session_listener(cm_passive->s), l);
	kcm_disconnect(s);
	kcm_unlisten(l);
}

/* A network namespace that goes ends everything in it. */
static void session_net_gone(struct kunit *test)
{
	struct kcm_session *s = live(test);

	kcm_want(s, KCM_WANT_NET_GONE);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->stops) == 1));
	KUNIT_EXPECT_TRUE(test, cm_active->end.final);
	KUNIT_EXPECT_EQ(test, cm_active->end.err, -ENETDOWN);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_passive->stops) == 1));
	kcm_disconnect(s);
}

/* Begin and end sessions at all times. */
static void session_disconnected_any_time(struct kunit *test)
{
	unsigned int i;

	cm_listen(test);
	for (i = 0; i < 60; i++) {
		struct kcm_session *s = cm_connect(test);

		usleep_range(i * 40, i * 40 + 10);
		kcm_disconnect(s);
	}
	KUNIT_EXPECT_EQ(test, cm_active->stops, cm_active->accepteds);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_passive->stops) ==
					READ_ONCE(cm_passive->requests)));
}

static struct kunit_case session_cases[] = {
	KUNIT_CASE(session_begins),
	KUNIT_CASE(session_versions),
	KUNIT_CASE(session_no_version),
	KUNIT_CASE(session_no_service),
	KUNIT_CASE(session_nobody_listens),
	KUNIT_CASE(session_wrong_secret),
	KUNIT_CASE(session_unknown_client),
	KUNIT_CASE(session_no_instance),
	KUNIT_CASE(session_needs_secret),
	KUNIT_CASE(session_has_no_secret),
	KUNIT_CASE(session_without_secret),
	KUNIT_CASE(session_notes),
	KUNIT_CASE(session_note_late),
	KUNIT_CASE(session_listen_twice),
	KUNIT_CASE(session_bye_of_active),
	KUNIT_CASE(session_bye_of_passive),
	KUNIT_CASE(session_bye_data),
	KUNIT_CASE(session_bye_unproven),
	KUNIT_CASE(session_predecessor),
	KUNIT_CASE(session_predecessor_stays),
	KUNIT_CASE(session_late_answer),
	KUNIT_CASE(session_answer_too_late),
	KUNIT_CASE(session_refused_for_good),
	KUNIT_CASE(session_request_fails),
	KUNIT_CASE(session_accepted_fails),
	KUNIT_CASE(session_hello_fails),
	KUNIT_CASE(session_gives_up),
	KUNIT_CASE(session_bye_early),
	KUNIT_CASE(session_limit),
	KUNIT_CASE_SLOW(session_keep_alive),
	KUNIT_CASE(session_heard_meanwhile),
	KUNIT_CASE(session_unlisten),
	KUNIT_CASE(session_services_share_a_port),
	KUNIT_CASE(session_net_gone),
	KUNIT_CASE(session_disconnected_any_time),
	{}
};

static struct kunit_suite session_suite = {
	.name		= "kofi_cm_session",
	.init		= cm_scene_init,
	.exit		= cm_scene_exit,
	.test_cases	= session_cases,
};

kunit_test_suite(session_suite);

MODULE_DESCRIPTION("KUnit tests of kofi_cm");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI_ULP);
