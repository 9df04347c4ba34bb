// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * For kofiblk_setup_kunit.c: a client of kofiblk. kofi_cm is a script, which calls the client's
 * callbacks at once. There is no network, fabric or block layer.
 */
#define pr_fmt(fmt) "kofiblk: " fmt

#include <kunit/test.h>
#include <linux/module.h>
#include <linux/slab.h>

/* Instead of the module's tracepoints. */
#define KOFIBLK_CLI_TRACE_H
#define trace_kofiblk_state(...)	do { } while (0)
#define trace_kofiblk_session(...)	do { } while (0)
#define trace_kofiblk_lost(...)		do { } while (0)

#define kulp_fabric_get		scene_fabric_get
#define kulp_fabric_put		scene_fabric_put
#define kulp_peer_get		scene_peer_get
#define kulp_peer_put		scene_peer_put
#define kulp_credits_take	scene_credits_take
#define kulp_credits_give	scene_credits_give
#define kulp_user_add		scene_user_add
#define kulp_user_del		scene_user_del
#define kulp_poll		scene_poll
#include "../../ulp/blk/cli_link.c"
#include "../../ulp/blk/cli_setup.c"
#include "../../ulp/blk/cli_poll.c"
#include "../../ulp/blk/cli_session.c"
#include "../../ulp/blk/cli_rules.c"
#include "../../ulp/blk/wire.c"
#include "../../ulp/blk/wire_net.c"

#define DISK	BIT_ULL(30)
#define ADDRLEN	32

struct workqueue_struct *kbc_wq;
const struct kulp_role kbc_role, kbc_role_sum;

/* There is one at a time. */
struct kcm_session {
	const struct kcm_config	*config;
	void			*context;
	bool			connected;	/* between kcm_connect() and kcm_disconnect() */
	bool			seen;		/* accepted, or at its final end */
	bool			stopped;	/* kcm_ops.stop was called */
	unsigned int		gones;
	unsigned int		heards;
};

static struct scene {
	struct kbc_disk		d;
	struct kbc_queue	queues[KOFIBLK_QUEUES_MAX];
	struct kulp_fabric	fabric;
	struct kulp_queue	q[4];
	unsigned long		unread;		/* queues with a proof that nobody has read */
	unsigned int		polls;
	u64			renewed;	/* epoch for which regions were renewed */
	u64			replaced;	/* the disk's epoch then */
	struct fi_info		info;
	struct fi_ep_attr	ep_attr;
	struct kcm_session	cm;
	/* kofi_cm and the server */
	struct kofiblk_accept_msg accept;	/* its answer, without an @end */
	u16			addr_len;
	u16			addr_count;
	struct kcm_end		end;		/* the end of the attempt, if there is an err */
	u64			id;
	u8			mac_key[KCM_SIP_KEY];
	u8			addrs[KOFIBLK_QUEUES_MAX * ADDRLEN];
	struct kofiblk_hello_msg hello;		/* of the client */
	/* Actions of the client */
	unsigned int		byes, connects, updates, peers, peers_put, credits, proves, signals;
	unsigned int		keep_alives;
	bool			full;		/* the device has messages to a dead server */
	bool			stuck;		/* and doesn't complete the keep-alive message */
	unsigned int		old_nonces;	/* proofs with a nonce of an earlier session */
	bool			deaf;		/* the server's endpoints don't answer */
	bool			parts;		/* the server stops while endpoints are proved */
	bool			leaves;		/* the server stops when both sides are ready */
	bool			removed;	/* the device goes before the server answers */
	struct task_struct	*updater;	/* the latest task that updated the disk */
} *scene;

/* --- kofi_cm --- */

static void stop(const struct kcm_end *end)
{
	struct kcm_session *s = &scene->cm;

	WARN_ON(s->stopped);
	s->seen = true;
	s->stopped = true;
	s->config->ops->stop(s, end);
}

/* The session has ended. */
static void lose(int err)
{
	const struct kcm_end end = { .err = err };

	stop(&end);
}

static void say_resize(u64 bytes)
{
	const struct kofiblk_resize_msg msg = { .bytes = bytes };
	u8 buf[sizeof(struct kofiblk_resize)] __aligned(8);

	scene->cm.config->ops->note(&scene->cm, buf, kofiblk_build_resize(buf, &msg));
}

static void say_bye(bool again, bool flushed)
{
	const struct kofiblk_bye_msg msg = { .flushed = flushed };
	u8 buf[sizeof(struct kofiblk_bye)] __aligned(8);
	const struct kcm_end end = {
		.err = -ECONNABORTED, .reason = KCM_BYE_STOPPED, .final = !again, .data = buf,
		.len = kofiblk_build_bye(buf, &msg),
	};

	stop(&end);
}

static int accept(struct kcm_session *s)
{
	u8 buf[sizeof(struct kofiblk_accept)] __aligned(8);
	const struct kcm_peer peer = {
		.addrs = { FI_ADDR_EFA, scene->addr_len, scene->addr_count, scene->addrs },
		.priv = buf, .priv_len = kofiblk_build_accept(buf, &scene->accept),
	};

	return s->config->ops->accepted(s, &peer);
}

int kcm_connect(const struct kcm_config *config, const struct kcm_client *client, void *context,
		struct kcm_session **session)
{
	struct kcm_session *s = &scene->cm;
	struct kcm_end end = scene->end;
	struct kcm_addrs addrs = {};
	const void *priv;
	size_t len;

	WARN_ON(s->connected);
	*s = (struct kcm_session) { .config = config, .context = context, .connected = true };
	*session = s;
	scene->connects++;
	if (config->ops->hello(s, &addrs, &priv, &len) || addrs.len != ADDRLEN ||
	    kofiblk_parse_hello(priv, len, &scene->hello) ||
	    addrs.count != scene->hello.limits.queues || strcmp(client->name, "client") ||
	    strcmp(client->instance, "disk"))
		end.err = -EBADMSG;
	if (scene->removed) {
		kbc_session_fail(context, -ENODEV);
		return 0;
	}
	if (!end.err)
		end.err = accept(s);
	if (!end.err) {
		s->seen = true;
		config->ops->live(s);
		if (scene->leaves)
			say_bye(true, true);
	} else if (end.final) {
		stop(&end);
	} else {
		config->ops->failed(s, &end);
	}
	return 0;
}

void kcm_disconnect(struct kcm_session *s)
{
	const struct kcm_end end = { .err = -ESHUTDOWN, .final = true };

	if (s->seen && !s->stopped)
		stop(&end);
	WARN_ON(!s->connected || s->gones != s->seen);
	s->connected = false;
}

void kcm_heard(struct kcm_session *s)
{
	s->heards++;
}

void kcm_gone(struct kcm_session *s)
{
	s->gones++;
}

void kcm_bye(struct kcm_session *s, enum kcm_reason reason, bool again, const void *data,
	     size_t len)
{
	scene->byes++;
}

void *kcm_context(const struct kcm_session *s)
{
	return s->context;
}

u64 kcm_id(const struct kcm_session *s)
{
	return scene->id;
}

const u8 *kcm_mac_key(const struct kcm_session *s)
{
	return scene->mac_key;
}

/* --- the fabric --- */

struct kulp_fabric *scene_fabric_get(const struct kulp_role *role, const struct kulp_select *select)
{
	KUNIT_EXPECT_PTR_EQ(current->kunit_test, role,
			    scene->d.options.checksum ? &kbc_role_sum : &kbc_role);
	return &scene->fabric;
}

void scene_fabric_put(struct kulp_fabric *f)
{
}

int scene_peer_get(struct kulp_fabric *f, const void *addr, fi_addr_t *peer)
{
	*peer = ++scene->peers;
	return 0;
}

void scene_peer_put(struct kulp_fabric *f, fi_addr_t peer)
{
	scene->peers_put++;
}

u32 scene_credits_take(struct kulp_queue *q, u32 want)
{
	scene->credits += want;
	return want;
}

void scene_credits_give(struct kulp_queue *q, u32 n)
{
	scene->credits -= n;
}

int scene_user_add(struct kulp_queue *q, void *user)
{
	return 0;
}

void scene_user_del(struct kulp_queue *q, void *user)
{
}

/* A proof is the only message. */
int scene_poll(struct kulp_queue *q)
{
	unsigned int i;

	scene->polls++;
	for (i = 0; i < KOFIBLK_QUEUES_MAX; i++) {
		if (scene->queues[i].q != q || !__test_and_clear_bit(i, &scene->unread))
			continue;
		scene->queues[i].cmd_nonce = 1;
		return 1;
	}
	return 0;
}

/* --- the rest of the client --- */

void kbc_disk_update(struct kbc_disk *d)
{
	scene->updater = current;
	scene->updates++;
}

void kbc_disk_delete(struct kbc_disk *d)
{
}

void kbc_gate_open(struct kbc_disk *d)
{
}

void kbc_gate_close(struct kbc_disk *d)
{
}

void kbc_gate_fail(struct kbc_disk *d)
{
}

void kbc_requests_abort(struct kbc_disk *d)
{
}

/* The first two are answered, if they are sent. */
void kbc_keep_alive(struct kbc_disk *d)
{
	scene->keep_alives++;
	if (scene->stuck) {
		if (scene->keep_alives == 5)
			lose(-ECONNRESET);
		return;
	}
	d->alive.gen++;
	d->alive.when = jiffies;
	if (scene->keep_alives <= 2)
		d->alive.seen = d->alive.gen;
}

int kbc_signals_alloc(struct kbc_disk *d)
{
	scene->signals++;
	return 0;
}

bool kbc_left_full(const struct kbc_queue *kq)
{
	return scene->full;
}

void kbc_prove(struct kbc_queue *kq)
{
	scene->proves++;
	scene->old_nonces += kq->cmd_nonce || !kq->reply_nonce;
	if (!scene->deaf && kq->q->polled)
		__set_bit(kq - scene->queues, &scene->unread);
	else if (!scene->deaf)
		kq->cmd_nonce = scene->proves;
	if (scene->parts)
		say_bye(true, true);
}

void kbc_each_tag(struct kbc_disk *d, void (*fn)(struct kbc_queue *kq, struct kbc_tag *tag))
{
}

void kbc_region_free(struct kbc_queue *kq, struct kbc_tag *tag)
{
}

void kbc_regions_renew(struct kbc_disk *d, u64 epoch)
{
	scene->renewed = epoch;
	scene->replaced = d->epoch.epoch;
}

int kbc_regions_alloc(struct kbc_disk *d)
{
	return 0;
}

int kbc_tags_alloc(struct kbc_disk *d)
{
	return 0;
}

void kbc_tags_free(struct kbc_disk *d)
{
}

/* --- the scene --- */

static void setup_exit(struct kunit *test)
{
	if (!scene)
		return;
	if (scene->d.fabric) {
		KUNIT_EXPECT_EQ(test, scene->d.session.id, 0ULL);
		kbc_setup_free(&scene->d);
	}
	KUNIT_EXPECT_EQ(test, scene->peers_put, scene->peers);
	KUNIT_EXPECT_EQ(test, scene->credits, 0U);
	KUNIT_EXPECT_EQ(test, scene->old_nonces, 0U);
	KUNIT_EXPECT_FALSE(test, scene->cm.connected);
	cancel_work_sync(&scene->d.update);
	free_percpu(scene->d.stats);
	scene = NULL;
}

static int setup_init(struct kunit *test)
{
	struct kbc_disk *d;
	int i;

	kbc_wq = system_wq;
	scene = kunit_kzalloc(test, sizeof(*scene), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene);
	d = &scene->d;
	d->stats = alloc_percpu(struct kbc_stats);
	if (!d->stats)
		return -ENOMEM;
	kbc_session_init(d);
	strscpy(d->name, "kofiblk0", sizeof(d->name));
	d->queues = scene->queues;
	for (i = 0; i < KOFIBLK_QUEUES_MAX; i++)
		scene->queues[i].disk = d;
	d->options = (struct kbc_options) {
		.address = "10.0.0.1:4420", .export = "disk", .client = "client", .host = { 1 },
		.queues = 2, .depth = 16, .max_io = SZ_1M, .keep_alive_tmo = 10,
	};
	scene->ep_attr = (struct fi_ep_attr){ .protocol = FI_PROTO_EFA, .protocol_version = 4 };
	scene->info = (struct fi_info){ .addr_format = FI_ADDR_EFA, .ep_attr = &scene->ep_attr };
	scene->fabric = (struct kulp_fabric) {
		.info = &scene->info, .max_msg = 8192 + 4096, .max_rma = SZ_4M, .can_write = true,
		.nqueues = 1, .queues = scene->q,
	};
	for (i = 0; i < ARRAY_SIZE(scene->q); i++)
		scene->q[i] = (struct kulp_queue){ .fabric = &scene->fabric, .addrlen = ADDRLEN };
	scene->accept = (struct kofiblk_accept_msg) {
		.content = { 1 }, .epoch = 1,
		.limits = {
			.caps = KOFIBLK_CAP_RDMA_WRITE, .max_io = SZ_64K, .inline_max = 4096,
			.keep_alive = 5000, .queues = 1, .depth = 8, .inline_read = 4096,
		},
		.disk = {
			.bytes = DISK, .flags = KOFIBLK_DISK_WRITE_CACHE, .logical_block = 4096,
			.physical_block = 4096,
		},
	};
	scene->addr_len = ADDRLEN;
	scene->addr_count = 1;
	scene->id = 1000;
	return 0;
}

static unsigned long refused(void)
{
	return kbc_count(&scene->d, KBC_STAT(refused));
}

/* Handle all that has happened in a session that has ended. */
static int run(void)
{
	return kbc_session_run(&scene->d);
}

static void ends(struct kunit *test)
{
	lose(-ECONNRESET);
	KUNIT_EXPECT_EQ(test, run(), -ECONNRESET);
	kbc_disconnect(&scene->d);
}
