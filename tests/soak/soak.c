// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The threads. Loading the module runs them for some seconds, and fails after any error that
 * the removal of a device doesn't explain.
 */
#define pr_fmt(fmt) "kofi_soak: " fmt

#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "soak.h"

MODULE_DESCRIPTION("kOFI test: traffic of many threads, with every byte checked");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);

char *soak_provider = "loop";
module_param_named(provider, soak_provider, charp, 0444);
MODULE_PARM_DESC(provider, "name of the provider (default: loop)");

char *soak_fabric;
module_param_named(fabric, soak_fabric, charp, 0444);
MODULE_PARM_DESC(fabric, "name of the fabric (default: any)");

unsigned int soak_max_len = 64 * 1024;
module_param_named(max_len, soak_max_len, uint, 0444);
MODULE_PARM_DESC(max_len, "size of the longest operation in bytes (default: 65536)");

bool soak_rma = true;
module_param_named(rma, soak_rma, bool, 0444);
MODULE_PARM_DESC(rma, "whether threads also read, write and register memory (default: yes)");

unsigned int soak_share = 4;
module_param_named(share, soak_share, uint, 0444);
MODULE_PARM_DESC(share, "number of threads that share two endpoints, at most 32 (default: 4)");

static unsigned int longs;
module_param(longs, uint, 0444);
MODULE_PARM_DESC(longs, "number of threads that send only messages of max_len; the others send shorter messages (default: 0)");

static unsigned int threads = 4;
module_param(threads, uint, 0444);
MODULE_PARM_DESC(threads, "number of threads (default: 4)");

static unsigned int seconds = 1;
module_param(seconds, uint, 0644);
MODULE_PARM_DESC(seconds, "seconds to run, or more until each thread has had a round; can be changed meanwhile (default: 1)");

static unsigned int seed = 1;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "seed of the random choices (default: 1)");

/* The time is over, so that no thread begins another round. */
static bool over;

#define SOAK_MAX_THREADS	64
#define SOAK_BLOCK		4096

/* The beginning of each message, from which the rest of the message is derived. */
struct soak_head {
	u32	len;
	u32	seed;
};

/**
 * struct soak_thread - one of the threads
 * @task: the thread
 * @st: station that the thread uses
 * @place: index among the station's threads
 * @id: index among all threads
 * @rnd: random state that chooses the operations
 * @out: buffer for sends
 * @in: buffer for receives
 * @tx: outstanding send, read or write
 * @rx: outstanding receive
 * @generation: generation of the station when it was last used
 * @rounds: number of successful rounds
 * @again: number of calls that had to be repeated
 * @removals: number of rounds that the removal of a device ended
 * @errors: number of failed rounds
 */
struct soak_thread {
	struct task_struct	*task;
	struct soak_station	*st;
	unsigned int		place;
	unsigned int		id;
	struct rnd_state	rnd;
	u8			*out, *in;
	struct soak_op		tx, rx;
	unsigned int		generation;
	u64			rounds;
	u64			again;
	u64			removals;
	u64			errors;
};

/* Twice as long as a block, so that data can begin anywhere in the first half. */
static u8 soak_noise[2 * SOAK_BLOCK];

static const u8 *soak_block(u32 from, size_t at)
{
	return soak_noise + (from + at / SOAK_BLOCK * 13) % SOAK_BLOCK;
}

/* Copy the data, because memory checkers make writing single bytes slow. */
static void soak_fill(u8 *buf, size_t len, u32 from)
{
	struct soak_head head = { .len = len, .seed = from };
	size_t i;

	for (i = 0; i < len; i += SOAK_BLOCK)
		memcpy(buf + i, soak_block(from, i), min_t(size_t, SOAK_BLOCK, len - i));
	if (len >= sizeof(head))
		memcpy(buf, &head, sizeof(head));
}

static int soak_verify(const u8 *buf, size_t len, u32 from)
{
	const struct soak_head head = { .len = len, .seed = from };
	const size_t skip = len >= sizeof(head) ? sizeof(head) : 0;
	size_t i, part;

	if (memcmp(buf, &head, skip))
		return -EBADMSG;
	for (i = skip; i < len; i += part) {
		part = min_t(size_t, SOAK_BLOCK - i % SOAK_BLOCK, len - i);
		if (memcmp(buf + i, soak_block(from, i) + i % SOAK_BLOCK, part))
			return -EBADMSG;
	}
	return 0;
}

static u32 soak_rnd(struct soak_thread *t, u32 below)
{
	return prandom_u32_state(&t->rnd) % below;
}

/* Mostly short lengths, sometimes of several pages, or any other up to the maximum. */
static size_t soak_len(struct soak_thread *t)
{
	const u32 middle = min(soak_max_len, 100000U);
	const u32 most[] = { 512, 512, (longs ? middle : soak_max_len) + 1, middle + 1 };

	if (t->id < longs)
		return soak_max_len;
	return soak_rnd(t, most[soak_rnd(t, ARRAY_SIZE(most))]);
}

static ssize_t soak_tsend(struct soak_thread *t, struct soak_end *from, size_t len, u64 tag)
{
	const struct kvec iov = { .iov_base = t->out, .iov_len = len };
	struct fi_msg_tagged msg = {
		.addr		= from->peer,
		.tag		= tag,
		.context	= &t->tx,
	};

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, len);
	return fi_tsendmsg(from->ep, &msg, soak_rnd(t, 4) ? 0 : FI_DELIVERY_COMPLETE);
}

/* Repeat a data call while it returns -EAGAIN. */
#define SOAK_POST(t, call)						\
({									\
	ssize_t __ret;							\
									\
	while ((__ret = (call)) == -EAGAIN) {				\
		(t)->again++;						\
		soak_pass((t)->st);					\
	}								\
	(int)__ret;							\
})

static struct soak_op *soak_begin(struct soak_op *op)
{
	op->err = 0;
	op->len = 0;
	reinit_completion(&op->done);
	return op;
}

/*
 * Wait for all posted operations, also after an error, so that the buffers can be reused. The
 * receive is canceled if no message will come for it.
 */
static int soak_both(struct soak_thread *t, struct soak_end *to, int posted)
{
	int tx = posted ?: soak_wait(t->st, &t->tx, NULL);
	int rx;

	if (tx)
		fi_cancel(&to->ep->fid, &t->rx);
	rx = soak_wait(t->st, &t->rx, to->ep);
	return tx ?: rx;
}

static int soak_tagged(struct soak_thread *t, struct soak_end *from,
		       struct soak_end *to)
{
	u64 tag = (u64)t->id << 32 | soak_rnd(t, U32_MAX);
	size_t len = soak_len(t);
	u32 fill = soak_rnd(t, U32_MAX);
	int ret;

	soak_fill(t->out, len, fill);
	ret = SOAK_POST(t, fi_trecv(to->ep, t->in, soak_max_len, NULL,
				    FI_ADDR_UNSPEC, tag & ~0xffULL, 0xff,
				    soak_begin(&t->rx)));
	if (ret)
		return ret;
	soak_begin(&t->tx);
	ret = SOAK_POST(t, soak_tsend(t, from, len, tag));
	ret = soak_both(t, to, ret);
	if (ret)
		return ret;
	if (t->rx.len != len || t->rx.tag != tag || t->rx.src_addr != to->peer)
		return -EBADMSG;
	return soak_verify(t->in, len, fill);
}

/* The receive is posted after the message. */
static int soak_unexpected(struct soak_thread *t, struct soak_end *from,
			   struct soak_end *to)
{
	u64 tag = (u64)t->id << 32 | soak_rnd(t, U32_MAX);
	size_t len = soak_len(t);
	u32 fill = soak_rnd(t, U32_MAX);
	int ret, i;

	soak_fill(t->out, len, fill);
	soak_begin(&t->tx);
	ret = SOAK_POST(t, soak_tsend(t, from, len, tag));
	if (ret)
		return ret;
	for (i = soak_rnd(t, 100); i; i--)
		soak_pass(t->st);
	ret = SOAK_POST(t, fi_trecv(to->ep, t->in, soak_max_len, NULL, FI_ADDR_UNSPEC, tag, 0,
				    soak_begin(&t->rx)));
	if (ret)
		return soak_wait(t->st, &t->tx, NULL) ?: ret;
	ret = soak_both(t, to, 0);
	return ret ?: t->rx.len == len ? soak_verify(t->in, len, fill) : -EBADMSG;
}

/* A thread may get the message of another thread: each posts one message and one receive. */
static int soak_plain(struct soak_thread *t, struct soak_end *from,
		      struct soak_end *to)
{
	size_t len = max(soak_len(t), sizeof(struct soak_head));
	struct soak_head *head = (struct soak_head *)t->in;
	struct kvec iov[2] = {
		{ .iov_base = t->out, .iov_len = len / 2 },
		{ .iov_base = t->out + len / 2, .iov_len = len - len / 2 },
	};
	int ret;

	soak_fill(t->out, len, soak_rnd(t, U32_MAX));
	ret = SOAK_POST(t, fi_recv(to->ep, t->in, soak_max_len, NULL,
				   FI_ADDR_UNSPEC, soak_begin(&t->rx)));
	if (ret)
		return ret;
	ret = SOAK_POST(t, fi_sendv(from->ep, iov, NULL, 2, from->peer,
				    soak_begin(&t->tx)));
	ret = soak_both(t, to, ret);
	if (ret)
		return ret;
	return t->rx.len == head->len ?
	       soak_verify(t->in, t->rx.len, head->seed) : -EBADMSG;
}

static int soak_write(struct soak_thread *t, struct soak_end *from,
		      struct soak_end *to)
{
	size_t at = t->place * soak_max_len;
	size_t len = soak_len(t);
	u32 fill = soak_rnd(t, U32_MAX);
	bool data = soak_rnd(t, 2);
	int ret;

	soak_fill(t->out, len, fill);
	soak_begin(&t->tx);
	if (data)
		ret = SOAK_POST(t, fi_writedata(from->ep, t->out, len, NULL,
						fill, from->peer,
						to->mr->base_addr + at,
						fi_mr_key(to->mr), &t->tx));
	else
		ret = SOAK_POST(t, fi_write(from->ep, t->out, len, NULL,
					    from->peer, to->mr->base_addr + at,
					    fi_mr_key(to->mr), &t->tx));
	ret = ret ?: soak_wait(t->st, &t->tx, NULL);
	return ret ?: soak_verify(to->memory + at, len, fill);
}

static int soak_rma_read(struct soak_thread *t, struct soak_end *from,
			 struct soak_end *to)
{
	size_t at = t->place * soak_max_len;
	size_t len = soak_len(t);
	u32 fill = soak_rnd(t, U32_MAX);
	int ret;

	soak_fill(to->memory + at, len, fill);
	ret = SOAK_POST(t, fi_read(from->ep, t->in, len, NULL, from->peer,
				   to->mr->base_addr + at, fi_mr_key(to->mr),
				   soak_begin(&t->tx)));
	ret = ret ?: soak_wait(t->st, &t->tx, NULL);
	return ret ?: soak_verify(t->in, len, fill);
}

static int soak_write_to(struct soak_thread *t, struct soak_end *from,
			 u64 base, u64 key, size_t len)
{
	int ret = SOAK_POST(t, fi_write(from->ep, t->out, len, NULL, from->peer,
					base, key, soak_begin(&t->tx)));

	return ret ?: soak_wait(t->st, &t->tx, NULL);
}

/* Register memory, let it be written, and invalidate it; then the key must be refused. */
static int soak_register(struct soak_thread *t, struct soak_end *from,
			 struct soak_end *to)
{
	struct fid_mr *mr = t->st->mr[t->place];
	size_t len = 1 + soak_rnd(t, soak_max_len);
	u32 fill = soak_rnd(t, U32_MAX);
	const struct kvec iov = { .iov_base = t->in, .iov_len = len };
	const struct fi_mr_attr attr = {
		.type		= FI_MR_KVEC,
		.mr_iov		= &iov,
		.iov_count	= 1,
		.access		= FI_REMOTE_WRITE,
		.context	= &t->rx,
	};
	u64 base, key;
	int ret, late;

	soak_begin(&t->rx);
	ret = SOAK_POST(t, fi_mr_post_reg(mr, &attr, FI_COMPLETION)) ?:
	      soak_wait(t->st, &t->rx, NULL);
	if (ret)
		return ret;
	soak_fill(t->out, len, fill);
	base = mr->base_addr;
	key = fi_mr_key(mr);
	ret = soak_write_to(t, &t->st->end[0], base, key, len);
	soak_begin(&t->rx);
	late = SOAK_POST(t, fi_mr_post_inval(mr, FI_COMPLETION, &t->rx)) ?:
	       soak_wait(t->st, &t->rx, NULL);
	ret = ret ?: late ?: soak_verify(t->in, len, fill);
	if (ret)
		return ret;
	ret = soak_write_to(t, &t->st->end[0], base, key, len);
	return ret == -EKEYREJECTED ? 0 : ret ?: -EPERM;
}

static int (* const soak_rounds[])(struct soak_thread *t, struct soak_end *from,
				   struct soak_end *to) = {
	soak_tagged, soak_plain, soak_unexpected, soak_write, soak_rma_read, soak_register,
};

/* Kinds of rounds, messages first. */
#define SOAK_MESSAGES	3

/* Return: whether the removal of one of the two devices explains an error. */
static bool soak_explained(int ret)
{
	return ret == -ENODEV || ret == -EHOSTUNREACH || ret == -ECANCELED;
}

/* The first thread that notices the removal closes and reopens the station. */
static void soak_reopen(struct soak_thread *t)
{
	struct soak_station *st = t->st;
	int ret = 0;

	down_write(&st->sem);
	if (st->open && st->generation == t->generation && soak_station_close(st))
		t->errors++;
	if (!st->open)
		ret = soak_station_open(st);
	up_write(&st->sem);
	if (!ret)
		return;
	if (ret != -ENODATA && !soak_explained(ret)) {
		t->errors++;
		pr_err("can't reopen a station: %s\n", fi_strerror(-ret));
	}
	msleep(20);
}

static void soak_round(struct soak_thread *t)
{
	unsigned int kind = soak_rnd(t, soak_rma ? ARRAY_SIZE(soak_rounds) : SOAK_MESSAGES);
	unsigned int from = soak_rnd(t, 2);
	int ret = -ENODEV;

	down_read(&t->st->sem);
	t->generation = t->st->generation;
	if (t->st->open)
		ret = soak_rounds[kind](t, &t->st->end[from],
					&t->st->end[!from]);
	up_read(&t->st->sem);

	if (!ret) {
		t->rounds++;
		return;
	}
	t->removals++;
	if (!soak_explained(ret)) {
		t->errors++;
		pr_err("thread %u: a round of kind %u failed: %s\n", t->id, kind,
		       fi_strerror(-ret));
	}
	soak_reopen(t);
}

static int soak_thread(void *data)
{
	struct soak_thread *t = data;

	while (!kthread_should_stop()) {
		if (READ_ONCE(over)) {
			msleep(20);
			continue;
		}
		soak_round(t);
		cond_resched();
	}
	return 0;
}

static int soak_thread_init(struct soak_thread *t, unsigned int id,
			    struct soak_station *st)
{
	t->st = st;
	t->id = id;
	t->place = id % soak_share;
	prandom_seed_state(&t->rnd, seed + id);
	init_completion(&t->tx.done);
	init_completion(&t->rx.done);
	/* Test memory of kmalloc() as well as memory of vmalloc(). */
	t->out = id % 2 ? vmalloc(soak_max_len) : kvmalloc(soak_max_len, GFP_KERNEL);
	t->in = id % 2 ? vmalloc(soak_max_len) : kvmalloc(soak_max_len, GFP_KERNEL);
	return t->out && t->in ? 0 : -ENOMEM;
}

static void soak_thread_fini(struct soak_thread *t)
{
	kvfree(t->out);
	kvfree(t->in);
}

/* Return: whether all threads have had a round, which takes them long on a slow machine. */
static bool soak_all_ran(const struct soak_thread *all)
{
	unsigned int i;

	for (i = 0; i < threads; i++)
		if (!READ_ONCE(all[i].rounds) && !READ_ONCE(all[i].errors))
			return false;
	return true;
}

static void soak_last(const struct soak_thread *all)
{
	unsigned long begun = jiffies;

	while (time_before(jiffies, begun + READ_ONCE(seconds) * HZ) || !soak_all_ran(all))
		msleep(50);
}

static int soak_run(struct soak_thread *all)
{
	struct task_struct *task;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < threads && !ret; i++) {
		task = kthread_run(soak_thread, &all[i], "kofi_soak/%u", i);
		ret = PTR_ERR_OR_ZERO(task);
		if (!ret)
			all[i].task = task;
	}
	if (!ret)
		soak_last(all);
	/* Tell all threads to end before stopping each, so that their last rounds overlap. */
	WRITE_ONCE(over, true);
	for (i = 0; i < threads; i++)
		if (all[i].task)
			kthread_stop(all[i].task);
	return ret;
}

static int soak_report(const struct soak_thread *all)
{
	u64 rounds = 0, again = 0, removals = 0, errors = 0;
	unsigned int i;

	for (i = 0; i < threads; i++) {
		rounds += all[i].rounds;
		again += all[i].again;
		removals += all[i].removals;
		errors += all[i].errors;
	}
	pr_info("%u threads: %llu rounds, %llu calls again, %llu rounds ended by removal, %llu errors\n",
		threads, rounds, again, removals, errors);
	return errors ? -EIO : 0;
}

static int soak_all(struct soak_thread *all, struct soak_station *st,
		    unsigned int stations)
{
	unsigned int i, ready;
	int ret = 0, busy = 0;

	for (ready = 0; ready < stations && !ret; ready++)
		ret = soak_station_init(&st[ready], ready % 2 == 0);
	for (i = 0; i < threads && !ret; i++)
		ret = soak_thread_init(&all[i], i, &st[i / soak_share]);
	if (!ret)
		ret = soak_run(all);
	for (i = 0; i < ready; i++)
		busy |= soak_station_fini(&st[i]);
	for (i = 0; i < threads; i++)
		soak_thread_fini(&all[i]);
	return ret ?: soak_report(all) ?: busy ? -EIO : 0;
}

static int __init soak_init(void)
{
	struct soak_station *st;
	struct soak_thread *all;
	unsigned int stations;
	struct rnd_state rnd;
	int ret = -ENOMEM;

	if (!threads || threads > SOAK_MAX_THREADS || !soak_share || soak_share > SOAK_SHARE_MAX)
		return -EINVAL;
	stations = DIV_ROUND_UP(threads, soak_share);
	prandom_seed_state(&rnd, seed);
	prandom_bytes_state(&rnd, soak_noise, sizeof(soak_noise));
	all = kcalloc(threads, sizeof(*all), GFP_KERNEL);
	st = kcalloc(stations, sizeof(*st), GFP_KERNEL);
	if (all && st)
		ret = soak_all(all, st, stations);
	kfree(all);
	kfree(st);
	return ret;
}
module_init(soak_init);

static void __exit soak_exit(void)
{
}
module_exit(soak_exit);
