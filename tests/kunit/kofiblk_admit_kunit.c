// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Admission of sessions by kofiblk's server, and what a session waits for of older ones, which
 * kofi_cm has ended. The sessions here consist only of the clients' identities.
 */
#include <kunit/test.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/slab.h>
#include "../../ulp/blk/srv.h"

static u32 given;	/* receives that sessions gave back */
static u32 store_io;	/* requests at the store, of each session */
static u32 posted;	/* operations on the fabric, of each session */

static void kunit_credits_give(struct kulp_queue *q, u32 n)
{
	given += n;
}

#define kulp_credits_give	kunit_credits_give
#include "../../ulp/blk/srv_admit.c"

static struct kbs_port port, other_port;
static struct kbs_export exports[2];
static struct fi_tx_attr tx = { .size = 512 };
static struct fi_info info = { .tx_attr = &tx };
static struct kulp_fabric fabric = { .info = &info }, other_fabric;
static struct kulp_key key;
static bool allowed;	/* the client may use the export */

DEFINE_MUTEX(kbs_lock);		/* needed by the server's code */

struct kbs_export *kbs_port_export(struct kbs_port *port, const char *name)
{
	return strcmp(name, "export0") ? strcmp(name, "export1") ? NULL : &exports[1] : &exports[0];
}

bool kbs_export_allows(struct kbs_export *export, const char *client, const struct kulp_key *key)
{
	return allowed;
}

static struct kbs_session *session(struct kunit *test, unsigned int export,
				   const char *client, u8 host)
{
	struct kbs_session *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->port = &port;
	spin_lock_init(&s->lock);
	snprintf(s->name, sizeof(s->name), "export%u", export);
	strscpy(s->client, client, sizeof(s->client));
	memset(s->host, host, sizeof(s->host));
	return s;
}

static struct kbs_session *proved(struct kunit *test, unsigned int export,
				  const char *client, u8 host)
{
	struct kbs_session *s = session(test, export, client, host);
	int err;

	KUNIT_EXPECT_NULL(test, kbs_session_admit(s, &err));
	KUNIT_EXPECT_PTR_EQ(test, s->export, &exports[export]);
	return s;
}

static void refused(struct kunit *test, struct kbs_session *s, int err, const char *why)
{
	u32 n = port.conf.nsessions;
	int got = 0;

	KUNIT_EXPECT_STREQ(test, kbs_session_admit(s, &got), why);
	KUNIT_EXPECT_EQ(test, got, err);
	KUNIT_EXPECT_EQ(test, port.conf.nsessions, n);
}

static void gone(struct kbs_session *s)
{
	kbs_session_remove(s);
}

/* For each state, the states that a session goes to when it is told to go to each. */
static void states_only_advance(struct kunit *test)
{
	enum {
		NEW = KBS_SESSION_NEW, REF = KBS_SESSION_REFUSED,
		LIVE = KBS_SESSION_LIVE, PART = KBS_SESSION_PARTING, LAST = KBS_SESSION_CLOSING,
		STOP = KBS_SESSION_STOPPED, END = KBS_SESSION_ENDING,
	};
	static const u8 then[END + 1][END + 1] = {
		[NEW]	= { NEW,  REF,  LIVE, REF,  REF,  REF,  REF },
		[REF]	= { REF,  REF,  REF,  REF,  REF,  REF,  REF },
		[LIVE]	= { LIVE, LIVE, LIVE, PART, LAST, STOP, END },
		[PART]	= { PART, PART, PART, PART, LAST, PART, END },
		[LAST]	= { LAST, LAST, LAST, LAST, LAST, LAST, END },
		[STOP]	= { STOP, STOP, STOP, STOP, STOP, STOP, END },
		[END]	= { END,  END,  END,  END,  END,  END,  END },
	};
	struct kbs_session *s = session(test, 0, "a", 1);
	unsigned int from, to;

	for (from = NEW; from <= END; from++)
		for (to = NEW; to <= END; to++) {
			s->state = from;
			KUNIT_EXPECT_EQ(test, kbs_session_go(s, to), then[from][to] != from);
			KUNIT_EXPECT_EQ_MSG(test, s->state, then[from][to], "%u to %u", from, to);
		}
}

/* The export was removed and created again meanwhile, with the same store. */
static void successor_at_a_new_export(struct kunit *test)
{
	struct kbs_session *a = proved(test, 0, "a", 1);
	struct kbs_session *b = proved(test, 0, "a", 1);

	b->export = &exports[1];
	KUNIT_EXPECT_FALSE(test, kbs_session_alone(b));
	gone(a);
	KUNIT_EXPECT_TRUE(test, kbs_session_alone(b));
}

/* A new session waits for the old ones, which may have operations of the device. */
static void successor_waits(struct kunit *test)
{
	struct kbs_session *a = proved(test, 0, "a", 1);
	struct kbs_session *b = proved(test, 0, "a", 1);
	struct kbs_session *c = proved(test, 0, "a", 1);

	KUNIT_EXPECT_TRUE(test, kbs_session_alone(a));
	KUNIT_EXPECT_FALSE(test, kbs_session_alone(b));
	KUNIT_EXPECT_FALSE(test, kbs_session_alone(c));
	gone(b);
	KUNIT_EXPECT_FALSE(test, kbs_session_alone(c));
	gone(a);
	KUNIT_EXPECT_TRUE(test, kbs_session_alone(c));
}

/* Return: a session that is live, or ending, whose client named @n endpoints from @first on. */
static struct kbs_session *session_at(struct kunit *test, u8 first, u16 n, bool live)
{
	struct kbs_session *s = session(test, 0, "a", 1);
	int err;
	u16 i;

	s->addrs = (struct kcm_addrs) { .len = 32, .count = n, .addr = s->room };
	s->hello.limits.queues = n;
	for (i = 0; i < n; i++)
		s->room[32 * i + 20] = first + i;
	KUNIT_EXPECT_NULL(test, kbs_session_admit(s, &err));
	s->fabric = &fabric;
	s->nqueues = n;
	if (live)
		kbs_session_go(s, KBS_SESSION_LIVE);
	return s;
}

/*
 * After a crash, a client has other endpoints. It needn't wait for what the device still has for
 * the old ones, but for the store.
 */
static void successor_at_other_endpoints(struct kunit *test)
{
	struct kbs_session *a = session_at(test, 1, 4, true);
	struct kbs_session *b = session_at(test, 5, 4, false), *c;

	KUNIT_EXPECT_FALSE(test, kbs_session_alone(b));
	store_io = 1;
	kbs_session_go(a, KBS_SESSION_ENDING);
	KUNIT_EXPECT_FALSE(test, kbs_session_alone(b));
	store_io = 0;
	KUNIT_EXPECT_TRUE(test, kbs_session_alone(b));
	a->fabric = NULL;
	KUNIT_EXPECT_TRUE(test, kbs_session_alone(b));
	a->fabric = &fabric;
	/* One endpoint in common, first or last, is one too many. */
	kbs_session_go(b, KBS_SESSION_LIVE);
	c = session_at(test, 4, 1, false);
	kbs_session_go(b, KBS_SESSION_ENDING);
	KUNIT_EXPECT_FALSE(test, kbs_session_alone(c));
	c->room[20] = 8;
	KUNIT_EXPECT_FALSE(test, kbs_session_alone(c));
	c->room[20] = 9;
	KUNIT_EXPECT_TRUE(test, kbs_session_alone(c));
	/* Addresses of another length aren't comparable. */
	c->addrs.len = 16;
	KUNIT_EXPECT_FALSE(test, kbs_session_alone(c));
}

/* A client can't have a server keep the memory of any number of sessions. */
static void few_are_left(struct kunit *test)
{
	struct kbs_session *old[KBS_LEFT_MAX + 1], *s;
	unsigned int i;

	for (i = 0; i <= KBS_LEFT_MAX; i++) {
		old[i] = session_at(test, 10 * i, 1, true);
		KUNIT_EXPECT_TRUE(test, kbs_session_alone(old[i]));
		kbs_session_go(old[i], KBS_SESSION_ENDING);
	}
	s = session_at(test, 200, 1, false);
	KUNIT_EXPECT_FALSE(test, kbs_session_alone(s));
	gone(old[1]);
	KUNIT_EXPECT_TRUE(test, kbs_session_alone(s));
}

/* Nor can it fill the device's queues with operations for endpoints that it doesn't have. */
static void little_is_left(struct kunit *test)
{
	struct kbs_session *a = session_at(test, 1, 2, true), *b, *s;

	kbs_session_go(a, KBS_SESSION_ENDING);
	b = session_at(test, 11, 2, true);
	kbs_session_go(b, KBS_SESSION_ENDING);
	s = session_at(test, 21, 2, false);
	s->hello.limits.depth = 64;
	posted = 256;
	KUNIT_EXPECT_FALSE(test, kbs_session_alone(s));
	posted = 16;
	KUNIT_EXPECT_TRUE(test, kbs_session_alone(s));
	/* The most is half of both queues. */
	posted = 128;
	s->hello.limits.depth = 128;
	KUNIT_EXPECT_TRUE(test, kbs_session_alone(s));
	s->hello.limits.depth = 129;
	KUNIT_EXPECT_FALSE(test, kbs_session_alone(s));
	/* A session without such predecessors has any depth. */
	s->hello.limits.depth = 512;
	posted = 0;
	KUNIT_EXPECT_TRUE(test, kbs_session_alone(s));
}

static void others_stay(struct kunit *test)
{
	struct kbs_session *a = proved(test, 0, "a", 1);
	struct kbs_session *other[] = {
		proved(test, 1, "a", 1),
		proved(test, 0, "b", 1),
		proved(test, 0, "a", 2),
	};
	unsigned int i;

	KUNIT_EXPECT_TRUE(test, kbs_session_alone(a));
	for (i = 0; i < ARRAY_SIZE(other); i++)
		KUNIT_EXPECT_TRUE(test, kbs_session_alone(other[i]));
}

/* A client doesn't replace sessions of a client with the same name on another export. */
static void limits_are_of_proved_names(struct kunit *test)
{
	u8 host;

	port.max_client_sessions = 3;
	for (host = 1; host <= 3; host++)
		proved(test, 0, "a", host);
	refused(test, session(test, 0, "a", 4), -EBUSY, "too many sessions of this client");
	proved(test, 1, "a", 4);
	/* A reconnecting client doesn't count twice. */
	for (host = 1; host <= 3; host++)
		proved(test, 0, "a", host);
	refused(test, session(test, 0, "a", 5), -EBUSY, "too many sessions of this client");
}

/*
 * kofi_cm has forgotten sessions that are ending, but they still have threads and memory. Clients
 * that come with ever more names, and leave, don't get more of them than the limit.
 */
static void ending_sessions_count(struct kunit *test)
{
	struct kbs_session *a, *b, *other;

	port.max_sessions = 2;
	a = proved(test, 0, "a", 1);
	kbs_session_go(a, KBS_SESSION_ENDING);
	b = proved(test, 0, "b", 1);
	kbs_session_go(b, KBS_SESSION_ENDING);
	refused(test, session(test, 0, "c", 1), -EBUSY, "too many sessions");
	/* A client whose own session ends may come again, which doesn't make room for others. */
	other = proved(test, 0, "b", 1);
	refused(test, session(test, 0, "c", 1), -EBUSY, "too many sessions");
	gone(other);
	refused(test, session(test, 0, "c", 1), -EBUSY, "too many sessions");
	/* Of sessions that replace each other, one counts. */
	other = proved(test, 0, "b", 1);
	gone(a);
	a = proved(test, 0, "c", 1);
	gone(b);
	refused(test, session(test, 0, "d", 1), -EBUSY, "too many sessions");
	gone(other);
	proved(test, 0, "d", 1);
	/* Another port has its own. */
	gone(a);
	a = proved(test, 0, "e", 1);
	a->port = &other_port;
	proved(test, 0, "f", 1);
}

/* Something has changed since the client began its proof. */
static void barred(struct kunit *test)
{
	struct kbs_session *s = session(test, 2, "a", 1);

	refused(test, s, -ENOENT, "no such export");
	s = session(test, 0, "a", 1);
	allowed = false;
	refused(test, s, -EACCES, "the secret has changed");
	allowed = true;
	port.conf.enabled = false;
	refused(test, s, -EBUSY, "the port is being closed");
	port.conf.enabled = true;
	KUNIT_EXPECT_TRUE(test, list_empty(&kbs_sessions));
	proved(test, 0, "a", 1);
	KUNIT_EXPECT_EQ(test, port.conf.nsessions, 1U);
	KUNIT_EXPECT_EQ(test, exports[0].conf.nsessions, 1U);
}

/* The only queue of a session has @n receives. */
static void gives(struct kbs_session *s, u32 n)
{
	static struct kbs_squeue sq;

	sq.credits = n;
	given = 0;
	s->queues = &sq;
	s->nqueues = 1;
	kbs_session_credits_give(s);
	kbs_session_credits_give(s);
	s->queues = NULL;
	s->nqueues = 0;
}

static u32 credits(struct kbs_session *s, u32 want)
{
	s->fabric = &fabric;
	return kbs_session_credits(s, want, 1024);
}

static void receives_are_shared(struct kunit *test)
{
	static const char * const names[] = { "x", "y", "z" };
	struct kbs_session *any[3], *a[2], *b, *c;
	unsigned int i;

	/* All clients without a secret share three quarters, whatever their names. */
	for (i = 0; i < ARRAY_SIZE(any); i++)
		any[i] = proved(test, 0, names[i], 1);
	KUNIT_EXPECT_EQ(test, credits(any[0], 500), 500U);
	KUNIT_EXPECT_EQ(test, credits(any[1], 500), 268U);
	KUNIT_EXPECT_EQ(test, credits(any[2], 500), 0U);
	/* A client with a secret gets at most a half for all its sessions. */
	for (i = 0; i < ARRAY_SIZE(a); i++) {
		a[i] = proved(test, 0, "a", i + 1);
		a[i]->key = &key;
	}
	KUNIT_EXPECT_EQ(test, credits(a[0], 500), 500U);
	KUNIT_EXPECT_EQ(test, credits(a[1], 500), 12U);
	b = proved(test, 1, "a", 1);
	b->key = &key;
	KUNIT_EXPECT_EQ(test, credits(b, 200), 200U);
	/* The share of a session is free when it has ended. */
	gone(a[0]);
	KUNIT_EXPECT_EQ(test, credits(a[1], 500), 500U);
	c = proved(test, 0, "c", 1);
	gone(any[0]);
	KUNIT_EXPECT_EQ(test, credits(c, 600), 500U);
	/* And as soon as it can't get commands any more. */
	b = proved(test, 0, "a", 3);
	b->key = &key;
	KUNIT_EXPECT_EQ(test, credits(b, 600), 12U);
	gives(a[1], 500);
	KUNIT_EXPECT_EQ(test, given, 500U);
	KUNIT_EXPECT_EQ(test, credits(b, 600), 512U);
	/* Each device has its own. */
	any[0] = proved(test, 0, "d", 1);
	any[0]->fabric = &other_fabric;
	KUNIT_EXPECT_EQ(test, kbs_session_credits(any[0], 500, 1024), 500U);
}

void kbs_session_load(struct kbs_session *s, struct kbs_load *load, struct kbs_session_stats *stats)
{
	*load = (struct kbs_load) { .io = store_io, .posted = posted, .in_flight = posted };
}

static int admit_init(struct kunit *test)
{
	INIT_LIST_HEAD(&kbs_sessions);
	store_io = 0;
	posted = 1;
	allowed = true;
	memset(exports, 0, sizeof(exports));
	port = (struct kbs_port) {
		.conf.enabled		= true,
		.max_sessions		= 64,
		.max_client_sessions	= 16,
	};
	return 0;
}

static struct kunit_case cases[] = {
	KUNIT_CASE(states_only_advance),
	KUNIT_CASE(successor_waits),
	KUNIT_CASE(successor_at_a_new_export),
	KUNIT_CASE(successor_at_other_endpoints),
	KUNIT_CASE(few_are_left),
	KUNIT_CASE(little_is_left),
	KUNIT_CASE(others_stay),
	KUNIT_CASE(limits_are_of_proved_names),
	KUNIT_CASE(ending_sessions_count),
	KUNIT_CASE(barred),
	KUNIT_CASE(receives_are_shared),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofiblk_admit",
	.init		= admit_init,
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of who may have a session of kofiblk's server");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
