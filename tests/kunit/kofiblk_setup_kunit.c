// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sessions of kofiblk's client: set-up, messages during a session, end, and the next session. The
 * server is a script that answers as soon as a message is sent. There is no network, fabric or
 * block layer.
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

#define kulp_net_send		scene_send
#define kulp_net_recv		scene_recv
#define kulp_net_connect	scene_connect
#define kulp_net_close		scene_close
#define kulp_net_shutdown	scene_shutdown
#define kulp_fabric_get		scene_fabric_get
#define kulp_fabric_put		scene_fabric_put
#define kulp_peer_get		scene_peer_get
#define kulp_peer_put		scene_peer_put
#define kulp_credits_take	scene_credits_take
#define kulp_credits_give	scene_credits_give
#define kulp_user_add		scene_user_add
#define kulp_user_del		scene_user_del
#include "../../ulp/lib/auth.c"
#include "../../ulp/blk/cli_setup.c"
#include "../../ulp/blk/cli_session.c"
#include "../../ulp/blk/cli_rules.c"
#include "../../ulp/blk/wire.c"
#include "../../ulp/blk/wire_net.c"
#include "../../ulp/blk/tag.c"

#define DISK	BIT_ULL(30)
#define SECRET	"7d0bd6a4f5a13c1f0d2a5b8e9c6f4e3d2c1b0a99887766554433221100ffeedd"
#define ADDRLEN	32

struct workqueue_struct *kbc_wq;
const struct kulp_role kbc_role;

static struct scene {
	struct kbc_disk		d;
	struct kbc_queue	queues[KOFIBLK_QUEUES_MAX];
	struct kulp_fabric	fabric;
	struct kulp_queue	q;
	struct fi_info		info;
	struct fi_ep_attr	ep_attr;
	struct kulp_key		*key;		/* of the server; NULL if there is no secret */
	/* The server */
	struct kofiblk_accept_msg accept;	/* its answer if the proof is right */
	struct kofiblk_reject_msg reject;	/* its answer instead, if there is a status */
	bool			early;		/* it rejects the first message */
	struct kulp_shake	shake;
	u8			hello[KOFIBLK_NET_MAX];
	u8			proof[KULP_MAC];
	u8			addrs[KOFIBLK_QUEUES_MAX * ADDRLEN];
	/* Messages on their way to the client */
	u8			msgs[8][KOFIBLK_NET_MAX];
	size_t			lens[8];
	unsigned int		first, next;
	/* Actions of the client */
	unsigned int		byes, updates, peers, peers_put, credits, proves, signals;
	bool			full;		/* the device has messages to a dead server */
	unsigned int		old_nonces;	/* proofs with a nonce of an earlier session */
	bool			deaf;		/* the server's endpoints don't answer */
	struct task_struct	*updater;	/* the latest task that updated the disk */
} *scene;

/* --- the server --- */

static u8 *next_msg(void)
{
	return scene->msgs[scene->next % ARRAY_SIZE(scene->msgs)];
}

static void sign_msg(const char *label, size_t len)
{
	kulp_auth_sign(scene->key, label, scene->proof, next_msg(), len);
	scene->lens[scene->next++ % ARRAY_SIZE(scene->msgs)] = len;
}

static void send_reject(void)
{
	sign_msg(KOFIBLK_AUTH_REJECT, kofiblk_build_reject(next_msg(), &scene->reject));
}

static void send_resize(u64 number, u64 bytes)
{
	const struct kofiblk_resize_msg msg = { .number = number, .bytes = bytes };

	sign_msg(KOFIBLK_AUTH_RESIZE, kofiblk_build_resize(next_msg(), &msg));
}

static void send_bye(bool again, bool flushed)
{
	const struct kofiblk_bye_msg msg = { .again = again, .flushed = flushed };

	sign_msg(KOFIBLK_AUTH_BYE, kofiblk_build_bye(next_msg(), &msg));
}

static void proof_came(const void *buf, size_t len)
{
	struct kulp_key *keys[KULP_SECRETS] = { scene->key };
	struct kulp_proof_msg msg;

	if (kulp_parse(&kofiblk_proto, KOFIBLK_AUTH, buf, len, &msg) ||
	    kulp_proof_check(&scene->shake, keys, !!scene->key, msg.mac))
		return;
	memcpy(scene->proof, msg.mac, KULP_MAC);
	if (scene->reject.status)
		send_reject();
	else
		sign_msg(KOFIBLK_AUTH_ACCEPT, kofiblk_build_accept(next_msg(), &scene->accept));
}

static void hello_came(const void *buf, size_t len)
{
	struct kulp_shake shake = KOFIBLK_SHAKE(scene->hello, len);
	struct kulp_key *keys[KULP_SECRETS] = { scene->key };

	memcpy(scene->hello, buf, len);
	scene->shake = shake;
	if (scene->early)
		send_reject();
	else
		kulp_challenge_send(&scene->shake, NULL, keys, !!scene->key);
}

/* The server's own messages have no connection. */
int scene_send(struct kulp_net *net, const void *buf, size_t len)
{
	u16 type;

	if (!net) {
		memcpy(next_msg(), buf, len);
		scene->lens[scene->next++ % ARRAY_SIZE(scene->msgs)] = len;
		return 0;
	}
	if (kulp_parse_hdr(&kofiblk_proto, buf, len, &type))
		return -EBADMSG;
	if (type == KOFIBLK_HELLO)
		hello_came(buf, len);
	else if (type == KOFIBLK_AUTH)
		proof_came(buf, len);
	else
		scene->byes += type == KOFIBLK_BYE;
	return 0;
}

/* The connection ends when there are no more messages. */
int scene_recv(struct kulp_net *net, void *buf, size_t room, unsigned int ms)
{
	unsigned int i = scene->first % ARRAY_SIZE(scene->msgs);

	if (scene->first == scene->next)
		return -ECONNRESET;
	scene->first++;
	memcpy(buf, scene->msgs[i], scene->lens[i]);
	return scene->lens[i];
}

int scene_connect(struct kulp_net *net, const struct sockaddr_storage *addr, unsigned int ms)
{
	return 0;
}

void scene_close(struct kulp_net *net)
{
	scene->first = scene->next;
}

void scene_shutdown(struct kulp_net *net)
{
}

/* --- the fabric --- */

struct kulp_fabric *scene_fabric_get(const struct kulp_role *role, const struct kulp_select *select)
{
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

void kbc_keep_alive(struct kbc_disk *d)
{
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
	if (!scene->deaf)
		kq->cmd_nonce = scene->proves;
}

void kbc_each_tag(struct kbc_disk *d, void (*fn)(struct kbc_queue *kq, struct kbc_tag *tag))
{
}

void kbc_region_free(struct kbc_queue *kq, struct kbc_tag *tag)
{
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
	kulp_key_put(scene->d.options.key);
	kulp_key_put(scene->key);
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
	d->setup = kunit_kzalloc(test, sizeof(*d->setup), GFP_KERNEL);
	d->stats = alloc_percpu(struct kbc_stats);
	if (!d->setup || !d->stats)
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
		.nqueues = 1, .queues = &scene->q,
	};
	scene->q.fabric = &scene->fabric;
	scene->q.addrlen = ADDRLEN;
	scene->accept = (struct kofiblk_accept_msg) {
		.content = { 1 }, .session = 1000, .epoch = 1, .addr_len = ADDRLEN,
		.limits = {
			.caps = KOFIBLK_CAP_RDMA_WRITE, .max_io = SZ_64K, .inline_max = 4096,
			.keep_alive = 5000, .queues = 1, .depth = 8, .inline_read = 4096,
		},
		.disk = {
			.bytes = DISK, .flags = KOFIBLK_DISK_WRITE_CACHE, .logical_block = 4096,
			.physical_block = 4096,
		},
		.addr = scene->addrs,
	};
	return 0;
}

/* The client and the server get a secret. */
static void secret(struct kunit *test)
{
	scene->key = kulp_key_new(SECRET);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, scene->key);
	scene->d.options.key = kulp_key_get(scene->key);
}

static unsigned long refused(void)
{
	return kbc_count(&scene->d, KBC_STAT(refused));
}

/* Handle all messages that the server has sent, until the connection ends. */
static int run(void)
{
	return kbc_session_run(&scene->d);
}

/* --- sessions --- */

static void sessions(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;
	int i, with_key;

	for (with_key = 0; with_key < 2; with_key++) {
		if (with_key)
			secret(test);
		for (i = 0; i < 3; i++) {
			scene->accept.session++;
			KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
			KUNIT_EXPECT_EQ(test, d->session.id, scene->accept.session);
			KUNIT_EXPECT_PTR_EQ(test, kbc_session_find(d->session.id), d);
			KUNIT_EXPECT_EQ(test, d->nqueues, 1);
			KUNIT_EXPECT_EQ(test, d->made.depth, 8);
			KUNIT_EXPECT_EQ(test, scene->credits, 9U);
			KUNIT_EXPECT_EQ(test, d->session.geometry.bytes, DISK);
			KUNIT_EXPECT_EQ(test, run(), -ECONNRESET);
			kbc_disconnect(d);
			KUNIT_EXPECT_NULL(test, kbc_session_find(scene->accept.session));
		}
	}
	KUNIT_EXPECT_EQ(test, kbc_count(d, KBC_STAT(connects)), 6UL);
	KUNIT_EXPECT_EQ(test, refused(), 0UL);
	/* Only the end of the disk is announced. */
	KUNIT_EXPECT_EQ(test, scene->byes, 0U);
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	d->stopping = true;
	kbc_disconnect(d);
	KUNIT_EXPECT_EQ(test, scene->byes, 1U);
	KUNIT_EXPECT_EQ(test, kbc_connect(d), -ESHUTDOWN);
}

/* The server learns the client's fabric, which doesn't change with the device. */
static void fabrics(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;
	struct kofiblk_hello_msg hello;

	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	KUNIT_ASSERT_EQ(test, kofiblk_parse_hello(scene->hello, scene->shake.len, &hello), 0);
	KUNIT_EXPECT_EQ(test, hello.addr_format, (u32)FI_ADDR_EFA);
	KUNIT_EXPECT_EQ(test, hello.protocol, FI_PROTO_EFA << 16 | 4U);
	scene->fabric.gone = 1;
	kbc_disconnect(d);
	KUNIT_EXPECT_NULL(test, d->fabric);
	scene->fabric.gone = 0;
	scene->ep_attr.protocol_version = 1;
	KUNIT_EXPECT_EQ(test, kbc_connect(d), -ENODATA);
	KUNIT_EXPECT_NULL(test, d->fabric);
	scene->ep_attr.protocol_version = 4;
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	kbc_disconnect(d);
}

/* There is no session if the endpoints can't be reached, and no loss is noted. */
static void deaf_endpoints(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;

	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	KUNIT_EXPECT_EQ(test, scene->proves, 1U);
	kbc_epoch_wrote(&d->epoch);
	kbc_disconnect(d);
	scene->deaf = true;
	scene->accept.limits.keep_alive = 100;
	scene->accept.epoch++;
	KUNIT_EXPECT_EQ(test, kbc_connect(d), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, d->session.id, 0ULL);
	KUNIT_EXPECT_NULL(test, kbc_session_find(scene->accept.session));
	KUNIT_EXPECT_FALSE(test, d->epoch.lost);
	/* It isn't tried again while the device still has many messages to the endpoints. */
	scene->full = true;
	scene->proves = 0;
	KUNIT_EXPECT_EQ(test, kbc_connect(d), -EBUSY);
	KUNIT_EXPECT_EQ(test, scene->proves, 0U);
	KUNIT_EXPECT_EQ(test, scene->first, scene->next);
	scene->full = false;
	scene->deaf = false;
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	KUNIT_EXPECT_TRUE(test, d->epoch.lost);
	kbc_disconnect(d);
	/* Each session has messages that an earlier one may have set aside. */
	KUNIT_EXPECT_EQ(test, scene->signals, 3U);
}

/* The keys of tags differ in each session, and are 0 without a secret. */
static void keys_of_tags(struct kunit *test)
{
	const struct kofiblk_keys none = {};
	struct kbc_disk *d = &scene->d;
	struct kofiblk_keys keys;

	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	KUNIT_EXPECT_EQ(test, memcmp(&d->session.keys, &none, sizeof(none)), 0);
	kbc_disconnect(d);
	secret(test);
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	keys = d->session.keys;
	KUNIT_EXPECT_NE(test, memcmp(&keys, &none, sizeof(none)), 0);
	KUNIT_EXPECT_NE(test, memcmp(&keys.cmd, &keys.reply, sizeof(keys.cmd)), 0);
	KUNIT_EXPECT_EQ(test, kofiblk_keys_make(scene->key, scene->proof, &keys), 0);
	KUNIT_EXPECT_EQ(test, memcmp(&keys, &d->session.keys, sizeof(keys)), 0);
	kbc_disconnect(d);
	KUNIT_EXPECT_EQ(test, memcmp(&d->session.keys, &none, sizeof(none)), 0);
	KUNIT_EXPECT_TRUE(test, !memchr_inv(d->session.proof, 0, KULP_MAC));
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	KUNIT_EXPECT_NE(test, memcmp(&keys, &d->session.keys, sizeof(keys)), 0);
	kbc_disconnect(d);
}

/* RESIZEs are numbered from 1 in each session. */
static void resizes(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;
	unsigned int updates;
	int i;

	for (i = 0; i < 3; i++) {
		updates = scene->updates;
		KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
		KUNIT_EXPECT_EQ(test, d->session.geometry.bytes, DISK);
		send_resize(1, 2 * DISK);
		send_resize(2, DISK + 4096);
		KUNIT_EXPECT_EQ(test, run(), -ECONNRESET);
		KUNIT_EXPECT_EQ(test, d->session.geometry.bytes, DISK + 4096);
		flush_work(&d->update);
		KUNIT_EXPECT_GT(test, scene->updates, updates);
		kbc_disconnect(d);
	}
	KUNIT_EXPECT_EQ(test, refused(), 0UL);
}

static void wrong_resizes(struct kunit *test)
{
	static const struct {
		u64	number, bytes;
	} wrong[] = {
		{ 1, 4 * DISK }, { 3, 4 * DISK }, { 0, 4 * DISK }, { 1ULL << 32 | 2, 4 * DISK },
		{ 2, DISK + 512 }, { 2, DISK + 1 }, { 2, KOFIBLK_OFFSET_MAX },
	};
	struct kbc_disk *d = &scene->d;
	int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
		send_resize(1, 2 * DISK);
		send_resize(wrong[i].number, wrong[i].bytes);
		KUNIT_EXPECT_EQ_MSG(test, run(), -EPROTO, "RESIZE %d", i);
		KUNIT_EXPECT_EQ(test, d->session.geometry.bytes, 2 * DISK);
		kbc_disconnect(d);
		KUNIT_EXPECT_EQ(test, refused(), i + 1UL);
	}
}

/*
 * Uevents of the new size may wait for a task that waits for this disk. The thread must be free
 * to end the session then.
 */
static void updates_outside_the_thread(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;

	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	send_resize(1, 2 * DISK);
	KUNIT_EXPECT_EQ(test, run(), -ECONNRESET);
	flush_work(&d->update);
	KUNIT_EXPECT_EQ(test, scene->updates, 1U);
	KUNIT_EXPECT_PTR_NE(test, scene->updater, current);
	kbc_disconnect(d);
}

/* With a secret, each byte of a message counts, and messages of an earlier session don't. */
static void forged(struct kunit *test)
{
	const size_t len = sizeof(struct kofiblk_resize);
	struct kbc_disk *d = &scene->d;
	u8 old[sizeof(struct kofiblk_resize)];
	size_t i;

	secret(test);
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	send_resize(1, 2 * DISK);
	memcpy(old, scene->msgs[scene->first % ARRAY_SIZE(scene->msgs)], len);
	kbc_disconnect(d);
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	memcpy(next_msg(), old, len);
	scene->lens[scene->next++ % ARRAY_SIZE(scene->msgs)] = len;
	KUNIT_EXPECT_EQ(test, run(), -EACCES);
	for (i = 0; i < KULP_MAC; i++) {
		send_resize(1, 2 * DISK);
		scene->msgs[scene->first % ARRAY_SIZE(scene->msgs)][sizeof(struct kulp_hdr) + i]++;
		KUNIT_EXPECT_EQ_MSG(test, run(), -EACCES, "byte %zu", i);
	}
	send_bye(false, true);
	scene->msgs[scene->first % ARRAY_SIZE(scene->msgs)][sizeof(struct kulp_hdr)]++;
	KUNIT_EXPECT_EQ(test, run(), -EACCES);
	KUNIT_EXPECT_FALSE(test, d->final);
	KUNIT_EXPECT_FALSE(test, d->session.flushed);
	KUNIT_EXPECT_EQ(test, d->session.geometry.bytes, DISK);
	KUNIT_EXPECT_EQ(test, refused(), KULP_MAC + 2UL);
	send_resize(1, 2 * DISK);
	KUNIT_EXPECT_EQ(test, run(), -ECONNRESET);
	KUNIT_EXPECT_EQ(test, d->session.geometry.bytes, 2 * DISK);
	kbc_disconnect(d);
}

/* --- ends of sessions --- */

/* Only a server that has proved who it is can end a disk for good. */
static void byes(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;
	int with_key, again;

	for (with_key = 0; with_key < 2; with_key++) {
		if (with_key)
			secret(test);
		for (again = 1; again >= 0; again--) {
			KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
			send_bye(again, true);
			KUNIT_EXPECT_EQ(test, run(), -ECONNABORTED);
			KUNIT_EXPECT_TRUE(test, d->session.flushed);
			KUNIT_EXPECT_EQ(test, d->final, with_key && !again);
			kbc_disconnect(d);
			KUNIT_EXPECT_FALSE(test, d->session.flushed);
		}
	}
	KUNIT_EXPECT_EQ(test, refused(), 0UL);
}

/* The same for a server that rejects the client, before or after its proof. */
static void rejects(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;
	int with_key, again, early;

	for (with_key = 0; with_key < 2; with_key++) {
		if (with_key)
			secret(test);
		for (again = 1; again >= 0; again--)
			for (early = 1; early >= 0; early--) {
				scene->reject = (struct kofiblk_reject_msg) {
					.status = KULP_STS_BUSY, .again = again, .why = "why",
				};
				scene->early = early;
				d->final = false;
				KUNIT_EXPECT_EQ(test, kbc_connect(d), -EBUSY);
				KUNIT_EXPECT_EQ(test, d->final, with_key && !again && !early);
			}
	}
	KUNIT_EXPECT_EQ(test, refused(), 0UL);
}

/* --- lost writes --- */

/* Write, and have the next session begin with another epoch. Return: whether a loss is noted. */
static bool loses(struct kunit *test, bool writes, bool flushed)
{
	struct kbc_disk *d = &scene->d;
	unsigned long before;

	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	if (writes)
		kbc_epoch_wrote(&d->epoch);
	send_bye(true, flushed);
	KUNIT_EXPECT_EQ(test, run(), -ECONNABORTED);
	kbc_disconnect(d);
	scene->accept.epoch++;
	before = kbc_count(d, KBC_STAT(losses));
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	KUNIT_EXPECT_EQ(test, kbc_epoch_fails(&d->epoch, true, false), d->epoch.lost);
	KUNIT_EXPECT_EQ(test, kbc_count(d, KBC_STAT(losses)), before + d->epoch.lost);
	kbc_disconnect(d);
	return d->epoch.lost;
}

static void losses(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;

	KUNIT_EXPECT_FALSE(test, loses(test, false, false));
	/* The server says that it has flushed all writes, at the end of the session. */
	KUNIT_EXPECT_FALSE(test, loses(test, true, true));
	KUNIT_EXPECT_TRUE(test, loses(test, true, false));
	kbc_epoch_accept(&d->epoch);
	KUNIT_EXPECT_FALSE(test, loses(test, false, false));
	/* The flushes of one server don't count for a later session. */
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	send_bye(true, true);
	run();
	kbc_disconnect(d);
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	kbc_epoch_wrote(&d->epoch);
	KUNIT_EXPECT_EQ(test, run(), -ECONNRESET);
	kbc_disconnect(d);
	scene->accept.epoch++;
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	KUNIT_EXPECT_TRUE(test, d->epoch.lost);
	kbc_disconnect(d);
}

/* --- what a server may grant --- */

/* Return: the error of a session with what @scene->accept says, which is restored. */
static int granted(struct kofiblk_accept_msg *good)
{
	int ret = kbc_connect(&scene->d);

	scene->accept = *good;
	if (!ret)
		kbc_disconnect(&scene->d);
	return ret;
}

static void wrong_grants(struct kunit *test)
{
	struct kofiblk_accept_msg good = scene->accept;
	struct kofiblk_accept_msg *now = &scene->accept;

#define REFUSED(change, err)							\
	do {									\
		change;								\
		KUNIT_EXPECT_EQ_MSG(test, granted(&good), err, "%s", #change);	\
	} while (0)
	/* More than was requested. */
	REFUSED(now->limits.caps |= KOFIBLK_CAP_CHECKSUM, -EPROTO);
	REFUSED(now->limits.max_io = SZ_2M, -EPROTO);
	REFUSED(now->limits.keep_alive = 10001, -EPROTO);
	REFUSED(now->limits.queues = 3, -EPROTO);
	REFUSED(now->limits.depth = 17, -EPROTO);
	REFUSED(now->addr_len = ADDRLEN - 1, -EPROTO);
	KUNIT_EXPECT_FALSE(test, scene->d.made.known);
	KUNIT_EXPECT_EQ(test, refused(), 6UL);
	scene->d.options.checksum = true;
	REFUSED((void)now, -EOPNOTSUPP);
	scene->d.options.checksum = false;
	/* A later session must be as good as the first. */
	KUNIT_EXPECT_EQ(test, granted(&good), 0);
	REFUSED(now->content[1] = 1, -ESTALE);
	REFUSED(now->disk.logical_block = 512, -ESTALE);
	REFUSED(now->limits.depth--, -ESTALE);
	REFUSED(now->limits.max_io -= 4096, -ESTALE);
	REFUSED(now->limits.max_io += 4096, -EPROTO);
	REFUSED(now->limits.queues = 2, -EPROTO);
#undef REFUSED
	KUNIT_EXPECT_EQ(test, granted(&good), 0);
}

/* Sizes that some drives report would make the block layer read 4 GiB ahead. */
static void limits_nonsense(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;

	scene->accept.disk.io_opt = 0xfffff000;
	scene->accept.disk.io_min = 0xfffff000;
	scene->accept.disk.physical_block = 1U << 31;
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	KUNIT_EXPECT_EQ(test, d->session.geometry.io_opt, (u32)SZ_64K);
	KUNIT_EXPECT_EQ(test, d->session.geometry.io_min, (u32)SZ_1M);
	KUNIT_EXPECT_EQ(test, d->session.geometry.physical_block, (u32)SZ_1M);
	kbc_disconnect(d);
}

/* An ID that another disk's session has, perhaps with another server, is refused. */
static void used_id(struct kunit *test)
{
	struct kbc_disk *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, other);
	KUNIT_ASSERT_EQ(test, kbc_publish(other, scene->accept.session), 0);
	KUNIT_EXPECT_EQ(test, kbc_connect(&scene->d), -EPROTO);
	KUNIT_EXPECT_PTR_EQ(test, kbc_session_find(scene->accept.session), other);
	KUNIT_EXPECT_EQ(test, refused(), 1UL);
	kbc_unpublish(other);
	KUNIT_ASSERT_EQ(test, kbc_connect(&scene->d), 0);
	kbc_disconnect(&scene->d);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(sessions),
	KUNIT_CASE(fabrics),
	KUNIT_CASE(deaf_endpoints),
	KUNIT_CASE(keys_of_tags),
	KUNIT_CASE(resizes),
	KUNIT_CASE(wrong_resizes),
	KUNIT_CASE(updates_outside_the_thread),
	KUNIT_CASE(forged),
	KUNIT_CASE(byes),
	KUNIT_CASE(rejects),
	KUNIT_CASE(losses),
	KUNIT_CASE(wrong_grants),
	KUNIT_CASE(limits_nonsense),
	KUNIT_CASE(used_id),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofiblk_setup",
	.init		= setup_init,
	.exit		= setup_exit,
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of kofiblk's client: sessions");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI_ULP);
