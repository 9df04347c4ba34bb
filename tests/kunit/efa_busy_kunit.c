// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The end of an endpoint while tasks post, the device completes what they have posted, and a
 * handler or a reader takes the completions: each accepted operation is reported once, later posts
 * are refused, and the memory is the ULP's again.
 */
#include <linux/bitmap.h>
#include "crew.h"
#include "efa_scene.h"

#define POSTERS		3
/* Fewer than slots, so that posts are refused for lack of either. */
#define ENTRIES		96
/* Contexts of a poster: more than there are entries. */
#define CONTEXTS	128
#define CONTEXTS_ALL	(POSTERS * CONTEXTS)
/* Completions before the end. */
#define ENOUGH		300
#define LEN		64
/* Where messages arrive in the buffer. */
#define ARRIVE		SZ_4K

/* Bits of an endpoint's kind. */
#define LAZY		BIT(0)	/* nobody waits for sends without FI_COMPLETION */
#define HANDLER		BIT(1)	/* a handler takes the completions, not a reader */
#define SOFT		BIT(2)	/* the handler is called in softirqs */

static const struct kind {
	const char	*desc;
	u32		how;
} kinds[] = {
	{ "reader", 0 },
	{ "reader, lazy", LAZY },
	{ "handler", HANDLER },
	{ "handler, lazy", HANDLER | LAZY },
	{ "softirq", HANDLER | SOFT },
	{ "softirq, lazy", HANDLER | SOFT | LAZY },
};

KUNIT_ARRAY_PARAM_DESC(kind, kinds, desc);

struct busy;

/**
 * struct poster - a task that posts
 * @thread: the task
 * @busy: what all tasks share
 * @first: first of the poster's contexts
 */
struct poster {
	struct kofi_thread	thread;
	struct busy		*busy;
	unsigned long		first;
};

/**
 * struct busy - an endpoint that sends to itself, and the tasks that use it
 * @scene: the endpoint
 * @self: its address
 * @poster: tasks that post
 * @device: task that completes operations
 * @reader: task that reads completions, if there is no handler
 * @used: contexts of outstanding operations
 * @err: errno of operations that the end of the endpoint completes
 * @refusal: negative errno of posts afterwards
 * @posted: number of accepted operations
 * @done: number of operations reported as done
 * @failed: number of operations reported as failed
 * @wrong: number of completions of no operation, or with another error
 */
struct busy {
	struct efa_scene	*scene;
	fi_addr_t		self;
	struct poster		poster[POSTERS];
	struct kofi_thread	device;
	struct kofi_thread	reader;
	DECLARE_BITMAP(used, CONTEXTS_ALL);
	int			err;
	int			refusal;
	atomic_t		posted;
	atomic_t		done;
	atomic_t		failed;
	atomic_t		wrong;
};

/* --- tasks --- */

/* A context may be used again as soon as it is cleared, so that comes last. */
static void busy_took(struct busy *busy, const struct efa_comp *comp)
{
	const bool done = comp->ret == 1;
	unsigned long ctx;

	ctx = (unsigned long)(done ? comp->entry.op_context : comp->error.op_context);
	if (!done && comp->error.err != busy->err)
		atomic_inc(&busy->wrong);
	atomic_inc(done ? &busy->done : &busy->failed);
	if (ctx >= CONTEXTS_ALL || !test_and_clear_bit(ctx, busy->used))
		atomic_inc(&busy->wrong);
}

static void busy_take(struct busy *busy)
{
	struct efa_comp comp;

	while ((comp = efa_read(busy->scene)).ret != -EAGAIN)
		busy_took(busy, &comp);
}

static void busy_handler(struct fid_cq *cq, void *context)
{
	busy_take(context);
}

static void busy_reader(struct kofi_thread *thread)
{
	while (!signal_pending(current)) {
		busy_take(thread->arg);
		cond_resched();
	}
}

/* Return value of the thread: number of messages that have arrived. */
static void busy_device(struct kofi_thread *thread)
{
	struct busy *busy = thread->arg;
	unsigned int n;

	while (!signal_pending(current)) {
		n = efake_move(busy->scene->fake, 0);
		thread->ret += n;
		if (n)
			cond_resched();
		else
			usleep_range(50, 100);
	}
}

static ssize_t busy_call(const struct busy *busy, unsigned int i, void *context)
{
	struct efa_scene *scene = busy->scene;
	struct kvec iov = { scene->buf, LEN };
	struct fi_msg msg = { .addr = busy->self, .context = context };

	if (i % 2)
		return fi_recv(scene->ep, scene->buf + ARRIVE, LEN, NULL, FI_ADDR_UNSPEC, context);
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, LEN);
	return fi_sendmsg(scene->ep, &msg, i % 3 ? 0 : FI_COMPLETION);
}

/* Post a send or a receive, by the parity of @i. */
static ssize_t busy_post(struct poster *poster, unsigned int i)
{
	const unsigned long end = poster->first + CONTEXTS;
	struct busy *busy = poster->busy;
	unsigned long ctx;
	ssize_t ret;

	/* Nobody else uses a free context of this poster. */
	ctx = find_next_zero_bit(busy->used, end, poster->first);
	if (ctx >= end)
		return -ENOBUFS;
	set_bit(ctx, busy->used);
	ret = busy_call(busy, i, (void *)ctx);
	if (ret)
		clear_bit(ctx, busy->used);
	else
		atomic_inc(&busy->posted);
	return ret;
}

/* Return value of the thread: 0 after a signal, else how all later posts are refused. */
static void busy_poster(struct kofi_thread *thread)
{
	struct poster *poster = thread->arg;
	unsigned int i, later = 0;
	ssize_t ret = 0;

	for (i = 0; later < 100 && !signal_pending(current); i++) {
		ret = busy_post(poster, i);
		if (ret == -EAGAIN)
			cond_resched();
		else if (ret || later)
			later++;
		/* It was refused, so it must not be accepted, or refused for another reason. */
		if (later && ret != poster->busy->refusal)
			break;
	}
	thread->ret = later ? ret : 0;
}

/* --- begin and end --- */

static void busy_address(struct kunit *test, struct busy *busy)
{
	struct efa_scene *scene = busy->scene;
	struct fi_efa_addr addr;
	size_t len = sizeof(addr);

	KUNIT_ASSERT_EQ(test, fi_getname(&scene->ep->fid, &addr, &len), 0);
	KUNIT_ASSERT_EQ(test, fi_av_insert(scene->av, &addr, 1, &busy->self, 0, NULL), 1);
}

static struct busy *busy_new(struct kunit *test, u32 how, int err, int refusal)
{
	struct busy *busy = kunit_kzalloc(test, sizeof(*busy), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, busy);
	busy->err = err;
	busy->refusal = refusal;
	busy->scene = efa_scene_new(test, &(struct efa_opts) {
		.cq = {
			.size = ENTRIES, .handler = how & HANDLER ? busy_handler : NULL,
			.handler_context = busy, .flags = how & SOFT ? FI_CQ_SOFTIRQ : 0,
		},
		.bind = how & LAZY ? FI_LAZY_COMPLETION : 0,
	});
	KUNIT_EXPECT_EQ(test, efa_ep(busy->scene)->split, !!(how & LAZY));
	KUNIT_EXPECT_EQ(test, efa_ep(busy->scene)->softirq, !!(how & SOFT));
	busy_address(test, busy);
	return busy;
}

/* Let all tasks run until enough has been done, however slow the machine is. */
static struct busy *busy_start(struct kunit *test, int err, int refusal)
{
	const u32 how = ((const struct kind *)test->param_value)->how;
	struct busy *busy = busy_new(test, how, err, refusal);
	struct poster *poster;

	kofi_thread_start(test, &busy->device, busy_device, busy);
	if (!(how & HANDLER))
		kofi_thread_start(test, &busy->reader, busy_reader, busy);
	for (poster = busy->poster; poster < busy->poster + POSTERS; poster++) {
		poster->busy = busy;
		poster->first = (poster - busy->poster) * CONTEXTS;
		kofi_thread_start(test, &poster->thread, busy_poster, poster);
	}
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&busy->done) >= ENOUGH));
	return busy;
}

static void busy_join_posters(struct kunit *test, struct busy *busy, ssize_t ret)
{
	int i;

	for (i = 0; i < POSTERS; i++) {
		kofi_thread_join(test, &busy->poster[i].thread);
		KUNIT_EXPECT_EQ(test, busy->poster[i].thread.ret, ret);
	}
}

/* All calls are refused, of each kind and of each path. */
static void busy_expect_refused(struct kunit *test, struct busy *busy)
{
	struct efa_scene *scene = busy->scene;
	const ssize_t refusal = busy->refusal;

	KUNIT_EXPECT_EQ(test, efa_send(scene, LEN, 1), refusal);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, LEN, 1), refusal);
	KUNIT_EXPECT_EQ(test, efa_write(scene, LEN, 1), refusal);
	KUNIT_EXPECT_EQ(test, efa_get(scene, LEN, 1), refusal);
	KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 8, busy->self), refusal);
	KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, LEN, busy->self), refusal);
}

static void busy_stop(struct kunit *test, struct kofi_thread *thread)
{
	if (!thread->fn)
		return;
	kofi_thread_kill(thread);
	kofi_thread_join(test, thread);
}

/* The endpoint has ended, and maybe was closed: all completions are there, and nothing follows. */
static void busy_end(struct kunit *test, struct busy *busy, unsigned int nmaps)
{
	struct efa_scene *scene = busy->scene;

	KUNIT_EXPECT_TRUE(test, kofi_soon(bitmap_empty(busy->used, CONTEXTS_ALL)));
	KUNIT_EXPECT_EQ(test, scene->fake->nmaps, nmaps);
	efa_fill(scene->buf, EFA_BUF, 1);
	efake_settle_all();
	if (scene->ep)
		EFA_CLOSE(test, scene->ep);
	busy_stop(test, &busy->reader);
	busy_stop(test, &busy->device);
	KUNIT_EXPECT_TRUE(test, efa_filled(scene->buf, EFA_BUF, 1));
	KUNIT_EXPECT_EQ(test, efa_read(scene).ret, -EAGAIN);
	KUNIT_EXPECT_EQ(test, atomic_read(&efa_cq(scene)->credits), ENTRIES);
	KUNIT_EXPECT_EQ(test, atomic_read(&busy->wrong), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&busy->done) + atomic_read(&busy->failed),
			atomic_read(&busy->posted));
	/* A message is a send and a receive. */
	KUNIT_EXPECT_LE(test, atomic_read(&busy->done), 2 * busy->device.ret);
	kunit_info(test, "%d operations, %d of them ended with the endpoint\n",
		   atomic_read(&busy->posted), atomic_read(&busy->failed));
}

static void remove_under_posts(struct kunit *test)
{
	struct busy *busy = busy_start(test, ENODEV, -ENODEV);

	efake_remove(busy->scene->fake);
	busy_join_posters(test, busy, -ENODEV);
	busy_expect_refused(test, busy);
	busy_end(test, busy, 0);
}

static void disable_under_posts(struct kunit *test)
{
	struct busy *busy = busy_start(test, ECANCELED, -FI_EOPBADSTATE);

	KUNIT_EXPECT_EQ(test, fi_disable(busy->scene->ep), 0);
	busy_join_posters(test, busy, -FI_EOPBADSTATE);
	busy_expect_refused(test, busy);
	busy_end(test, busy, 1);
}

/* Nobody may post meanwhile, but the device goes on to complete what was posted. */
static void close_under_completions(struct kunit *test)
{
	struct busy *busy = busy_start(test, ECANCELED, 0);
	unsigned int i;

	for (i = 0; i < POSTERS; i++)
		kofi_thread_kill(&busy->poster[i].thread);
	busy_join_posters(test, busy, 0);
	for (i = 0; !busy_post(&busy->poster[0], i) && i < CONTEXTS / 2; i++)
		;
	EFA_CLOSE(test, busy->scene->ep);
	busy_end(test, busy, 1);
}

static struct kunit_case busy_cases[] = {
	KUNIT_CASE_PARAM(remove_under_posts, kind_gen_params),
	KUNIT_CASE_PARAM(disable_under_posts, kind_gen_params),
	KUNIT_CASE_PARAM(close_under_completions, kind_gen_params),
	{}
};

static struct kunit_suite busy_suite = {
	.name = "kefa_busy",
	.test_cases = busy_cases,
};

kunit_test_suite(busy_suite);
