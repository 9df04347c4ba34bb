// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sessions of kofiblk's server, from the request of kofi_cm to their end, with their threads. There
 * are no network, device, store and requests.
 */
#define pr_fmt(fmt) "kofiblk_srv: " fmt

#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/slab.h>

/* Instead of the module's tracepoints. */
#define KOFIBLK_SRV_TRACE_H
#define trace_kofiblk_srv_session(...)		do { } while (0)
#define trace_kofiblk_srv_stray(...)		do { } while (0)
#define trace_kofiblk_srv_violation(...)	do { } while (0)
#include "../../ulp/blk/srv.h"

static struct scene {
	struct kbs_port		port;
	struct kbs_export	export;
	struct kbs_squeue	sqs[2];
	struct kbs_session	*s;		/* once its thread has set it up */
	int			refused;	/* errno of the refusal */
	int			no_thread;	/* errno of the next thread */
	struct task_struct	*starter;	/* the task that has started the latest thread */
	bool			stops_first;	/* the export is disabled before that */
	unsigned int		gones;
	unsigned int		ends;		/* of the device */
	unsigned int		exits;		/* queues that were freed, and ... */
	unsigned int		before;		/* ... those before the latest end */
	u32			keep_alive;	/* ms */
} *scene;

static struct task_struct *scene_run(int (*fn)(void *data), void *data)
{
	scene->starter = current;
	if (scene->stops_first)
		kbs_session_stop(data, KBS_SESSION_PARTING);
	return scene->no_thread ? ERR_PTR(scene->no_thread) : kthread_run(fn, data, "kunit");
}

static void scene_credits_give(struct kulp_queue *q, u32 n)
{
}

static void scene_peer_put(struct kulp_fabric *f, fi_addr_t peer)
{
}

static void scene_fabric_put(struct kulp_fabric *f)
{
}

static void scene_fabric_end(struct kulp_fabric *f)
{
	scene->ends++;
	scene->before = scene->exits;
}

static bool scene_fabric_moves(const struct kulp_fabric *f, unsigned long since)
{
	return true;
}

#undef kthread_run
#define kthread_run(fn, data, ...)	scene_run(fn, data)
#define kulp_credits_give		scene_credits_give
#define kulp_peer_put			scene_peer_put
#define kulp_fabric_put			scene_fabric_put
#define kulp_fabric_lost		scene_fabric_put
#define kulp_fabric_moves		scene_fabric_moves
#define kulp_fabric_end			scene_fabric_end
#include "../../ulp/blk/srv_admit.c"
#include "../../ulp/blk/srv_session.c"
#include "../../ulp/blk/wire.c"
#include "../../ulp/blk/wire_net.c"

DEFINE_MUTEX(kbs_lock);		/* needed by the server's code */
DECLARE_WAIT_QUEUE_HEAD(kbs_wait);
struct workqueue_struct *kbs_drop_wq;

/* --- kofi_cm --- */

/* There is one at a time. */
struct kcm_session {
	void		*context;
	unsigned int	heards;
};

static struct kcm_session cm;

void kcm_set_context(struct kcm_session *s, void *context)
{
	s->context = context;
}

u64 kcm_id(const struct kcm_session *s)
{
	return 1000;
}

const u8 *kcm_mac_key(const struct kcm_session *s)
{
	static const u8 key[KCM_SIP_KEY];

	return key;
}

int kcm_note(struct kcm_session *s, const void *data, size_t len)
{
	return 0;
}

/* The end of the session, unless it has ended already. */
void kcm_bye(struct kcm_session *s, enum kcm_reason reason, bool again, const void *data,
	     size_t len)
{
	struct kbs_session *session = s->context;

	if (!session->over)
		kbs_session_over(session, -ESHUTDOWN);
}

void kcm_heard(struct kcm_session *s)
{
	s->heards++;
}

void kcm_gone(struct kcm_session *s)
{
	scene->gones++;
}

/* --- the rest of the server --- */

struct kbs_export *kbs_port_export(struct kbs_port *port, const char *name)
{
	return &scene->export;
}

bool kbs_export_allows(struct kbs_export *export, const char *client, const struct kulp_key *key)
{
	return true;
}

int kbs_refuse(struct kbs_session *s, int err, const char *why)
{
	scene->refused = err;
	s->cm = NULL;
	return err;
}

int kbs_set_up(struct kbs_session *s)
{
	s->limits.keep_alive = scene->keep_alive;
	s->queues = scene->sqs;
	s->nqueues = ARRAY_SIZE(scene->sqs);
	if (!kbs_session_live(s))
		return kbs_refuse(s, -EBUSY, "stopped");
	/* Pairs with live(). */
	smp_store_release(&scene->s, s);
	wake_up_all(&kbs_wait);
	return 0;
}

bool kbs_session_sent(struct kbs_session *s, const struct kulp_queue *q, void *buf,
		      const struct kofiblk_cmd_msg *msg)
{
	return false;
}

struct kbs_req *kbs_session_command(struct kbs_session *s, const struct kofiblk_cmd_msg *msg)
{
	return NULL;
}

void kbs_req_begin(struct kbs_req *req)
{
}

void kbs_squeue_exit(struct kbs_squeue *sq)
{
	scene->exits++;
}

void kbs_session_quiet(struct kbs_session *s, enum kbs_session_state state)
{
	kbs_session_go(s, state);
}

void kbs_session_load(struct kbs_session *s, struct kbs_load *load, struct kbs_session_stats *stats)
{
	*load = (struct kbs_load) {};
}

void kbs_session_abort(struct kbs_session *s)
{
}

bool kbs_session_untaken(struct kbs_session *s, unsigned long age)
{
	return false;
}

void kbs_mem_trim(struct kbs_session *s)
{
}

int kbs_store_flush(struct kbs_store *store)
{
	return 0;
}

bool kbs_store_whole(const struct kbs_store *store)
{
	return true;
}

/* --- steps of cases --- */

/* The request of a client. Return: what the server's callback returns. */
static int request(void)
{
	const struct kofiblk_hello_msg hello = {
		.limits = {
			.max_io = SZ_64K, .inline_max = 4096, .keep_alive = 100, .queues = 1,
			.depth = 8,
		},
	};
	u8 buf[sizeof(struct kofiblk_hello)] __aligned(8);
	const u8 addr[32] = { 1 }, host[KOFIBLK_HOST] = { 1 };
	const struct kcm_peer peer = {
		.name = "client", .instance = "disk", .host = host, .from = "10.0.0.1:1000",
		.addrs = { FI_ADDR_EFA, sizeof(addr), 1, addr },
		.priv = buf, .priv_len = kofiblk_build_hello(buf, &hello),
	};

	return kbs_session_new(&scene->port, &cm, &peer);
}

/* All threads have ended. */
static void all_gone(struct kunit *test)
{
	flush_workqueue(kbs_drop_wq);
	kbs_sessions_exit();
	atomic_set(&kbs_threads, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&kbs_sessions));
	KUNIT_EXPECT_EQ(test, scene->port.conf.nsessions, 0U);
	KUNIT_EXPECT_EQ(test, scene->export.conf.nsessions, 0U);
}

/* A session that is live. */
static struct kbs_session *live(struct kunit *test)
{
	scene->s = NULL;
	KUNIT_ASSERT_EQ(test, request(), 0);
	flush_workqueue(kbs_drop_wq);
	/* Pairs with kbs_set_up(). */
	KUNIT_ASSERT_TRUE(test, wait_event_timeout(kbs_wait, smp_load_acquire(&scene->s), 10 * HZ));
	return scene->s;
}

/* --- cases --- */

/* kofi_cm's worker doesn't wait for the memory of a thread, which its other sessions may free. */
static void started_by_another_task(struct kunit *test)
{
	struct kbs_session *s = live(test);

	KUNIT_EXPECT_PTR_NE(test, scene->starter, current);
	kbs_session_over(s, -ECONNABORTED);
	all_gone(test);
	KUNIT_EXPECT_EQ(test, scene->gones, 1U);
	KUNIT_EXPECT_EQ(test, scene->refused, 0);
}

/* Its client is told, and may come again. */
static void no_thread(struct kunit *test)
{
	scene->no_thread = -ENOMEM;
	KUNIT_EXPECT_EQ(test, request(), 0);
	all_gone(test);
	KUNIT_EXPECT_EQ(test, scene->refused, -ENOMEM);
	scene->no_thread = 0;
	scene->refused = 0;
	kbs_session_over(live(test), -ECONNABORTED);
	all_gone(test);
	KUNIT_EXPECT_EQ(test, scene->refused, 0);
}

/* An administrator disables the export between the request and the thread. */
static void stopped_before_it_starts(struct kunit *test)
{
	scene->stops_first = true;
	KUNIT_EXPECT_EQ(test, request(), 0);
	all_gone(test);
	KUNIT_EXPECT_EQ(test, scene->refused, -EBUSY);
	KUNIT_EXPECT_EQ(test, scene->gones, 0U);
}

/* Messages over the fabric show kofi_cm that the client lives, as long as they come. */
static void heard_over_the_fabric(struct kunit *test)
{
	struct kbs_session *s;
	unsigned int i, before;

	scene->keep_alive = 1000;
	cm.heards = 0;
	s = live(test);
	for (i = 0; i < 100 && READ_ONCE(cm.heards) < 2; i++) {
		msleep(20);
		WRITE_ONCE(scene->sqs[i % 2].heard, jiffies);
	}
	KUNIT_EXPECT_FALSE(test, kbs_session_stopped(s));
	KUNIT_EXPECT_EQ(test, cm.heards, 2U);
	/* Then it is silent, until it is dead. The last message may still be told. */
	before = cm.heards;
	all_gone(test);
	KUNIT_EXPECT_LE(test, cm.heards, before + 1);
	KUNIT_EXPECT_EQ(test, scene->gones, 1U);
}

/* A client that sets up its end for longer than its keep-alive time-out. */
static void proves_late(struct kunit *test)
{
	struct kbs_squeue *sq = &scene->sqs[1];
	struct kbs_session *s;
	unsigned long began;

	scene->keep_alive = 100;
	sq->proven = false;
	scene->sqs[0].proven = false;
	s = live(test);
	msleep(1000);
	KUNIT_EXPECT_FALSE(test, kbs_session_stopped(s));
	began = jiffies;
	spin_lock_bh(&sq->lock);
	sq->proven = true;
	WRITE_ONCE(sq->heard, began);
	spin_unlock_bh(&sq->lock);
	/* Then it is silent. */
	all_gone(test);
	KUNIT_EXPECT_TRUE(test, time_after(jiffies, began + msecs_to_jiffies(100)));
	KUNIT_EXPECT_TRUE(test, time_before(jiffies, began + msecs_to_jiffies(KBS_PROVE_MS) / 2));
}

/* A client whose messages don't arrive at all. */
static void never_proves(struct kunit *test)
{
	unsigned long began = jiffies;
	unsigned int i;

	scene->keep_alive = 100;
	for (i = 0; i < ARRAY_SIZE(scene->sqs); i++)
		scene->sqs[i].proven = false;
	live(test);
	/* As if it were that long ago. */
	for (i = 0; i < ARRAY_SIZE(scene->sqs); i++)
		WRITE_ONCE(scene->sqs[i].heard, began - msecs_to_jiffies(KBS_PROVE_MS));
	all_gone(test);
	KUNIT_EXPECT_TRUE(test, time_before(jiffies, began + msecs_to_jiffies(KBS_PROVE_MS) / 2));
	KUNIT_EXPECT_EQ(test, scene->gones, 1U);
}

/* Return: the cause that the log names for the end of a session that is live. */
static const char *cause(struct kunit *test, int end, bool violated)
{
	struct kbs_session *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	spin_lock_init(&s->lock);
	s->state = KBS_SESSION_LIVE;
	if (violated)
		kbs_session_violated(s, "a wrong command");
	if (end)
		kbs_session_over(s, end);
	else
		kbs_session_stop(s, KBS_SESSION_STOPPED);
	return kbs_session_cause(s);
}

static void causes(struct kunit *test)
{
	const char *violated = "the client has violated the protocol";

	KUNIT_EXPECT_STREQ(test, cause(test, 0, true), violated);
	/* kofi_cm ends the session after it. */
	KUNIT_EXPECT_STREQ(test, cause(test, -ESHUTDOWN, true), violated);
	KUNIT_EXPECT_STREQ(test, cause(test, -EPROTO, false), violated);
	KUNIT_EXPECT_STREQ(test, cause(test, -EACCES, false), violated);
	KUNIT_EXPECT_STREQ(test, cause(test, 0, false), "stopped by the server");
	KUNIT_EXPECT_STREQ(test, cause(test, -ECONNABORTED, false), "the client left");
	KUNIT_EXPECT_STREQ(test, cause(test, -ECONNRESET, false), "the connection is lost");
}

/* If the client may reach pages of a session, the device is closed before they are freed. */
static void exposed(struct kunit *test)
{
	struct fi_domain_attr domain = { .name = "device" };
	struct fi_info info = { .domain_attr = &domain };
	struct kulp_fabric fabric = { .info = &info };
	struct kbs_session *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, s);
	for (i = 0; i < 2; i++) {
		s->fabric = &fabric;
		s->exposed = i;
		s->nqueues = 1;
		s->queues = kzalloc(sizeof(*s->queues), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, s->queues);
		s->queues[0].s = s;
		kbs_session_free_fabric(s);
		KUNIT_EXPECT_EQ(test, scene->exits, i + 1U);
		KUNIT_EXPECT_EQ(test, scene->ends, (unsigned int)i);
	}
	KUNIT_EXPECT_EQ(test, scene->before, 1U);
}

static int session_init(struct kunit *test)
{
	unsigned int i;

	scene = kunit_kzalloc(test, sizeof(*scene), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene);
	scene->port.conf.enabled = true;
	scene->export.conf.enabled = true;
	scene->keep_alive = 60000;
	for (i = 0; i < ARRAY_SIZE(scene->sqs); i++) {
		spin_lock_init(&scene->sqs[i].lock);
		scene->sqs[i].proven = true;
	}
	scene->port.max_sessions = 4;
	scene->port.max_client_sessions = 4;
	return 0;
}

static int session_suite_init(struct kunit_suite *suite)
{
	kbs_drop_wq = alloc_workqueue("kunit_drop", WQ_UNBOUND, 0);
	return kbs_drop_wq ? 0 : -ENOMEM;
}

static void session_suite_exit(struct kunit_suite *suite)
{
	destroy_workqueue(kbs_drop_wq);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(started_by_another_task),
	KUNIT_CASE(no_thread),
	KUNIT_CASE(stopped_before_it_starts),
	KUNIT_CASE(heard_over_the_fabric),
	KUNIT_CASE(proves_late),
	KUNIT_CASE(never_proves),
	KUNIT_CASE(causes),
	KUNIT_CASE(exposed),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofiblk_session",
	.suite_init	= session_suite_init,
	.suite_exit	= session_suite_exit,
	.init		= session_init,
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of sessions of kofiblk's server");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI_ULP);
