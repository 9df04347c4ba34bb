// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Address vectors and address handles of the EFA provider. */
#include <linux/workqueue.h>
#include "crew.h"
#include "efa_scene.h"

/* Check that handles without users were destroyed. */
static unsigned int handles(struct efa_scene *scene)
{
	efake_settle_all();
	return scene->fake->ahs;
}

static int remove_one(struct efa_scene *scene, fi_addr_t addr)
{
	return fi_av_remove(scene->av, &addr, 1, 0);
}

static void av_lookup(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_efa_addr want = efa_addr(3, 0x44), got;
	fi_addr_t addr = efa_insert(test, scene, 3, 0x44);
	size_t len = sizeof(got);
	char text[96];

	KUNIT_EXPECT_EQ(test, fi_av_lookup(scene->av, addr, &got, &len), 0);
	KUNIT_EXPECT_EQ(test, len, sizeof(got));
	KUNIT_EXPECT_MEMEQ(test, &got, &want, sizeof(got));
	len = 8;
	memset(&got, 0xee, sizeof(got));
	KUNIT_EXPECT_EQ(test, fi_av_lookup(scene->av, addr, &got, &len), 0);
	KUNIT_EXPECT_EQ(test, len, sizeof(got));
	KUNIT_EXPECT_EQ(test, got.gid[8], 0xee);
	len = sizeof(text);
	KUNIT_EXPECT_STREQ(test, fi_av_straddr(scene->av, &want, text, &len),
			   "fi_addr_efa://[fe80::3]:68:324");
	KUNIT_EXPECT_EQ(test, len, strlen(text) + 1);
}

static void av_types(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	static const enum fi_av_type types[] = { FI_AV_UNSPEC, FI_AV_MAP, FI_AV_TABLE };
	const struct fi_efa_addr addr = efa_addr(2, 7);
	struct fi_av_attr attr = { };
	fi_addr_t fi_addr;
	struct fid_av *av;
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		attr.type = types[i];
		KUNIT_ASSERT_EQ(test, fi_av_open(scene->domain, &attr, &av, NULL), 0);
		KUNIT_EXPECT_EQ(test, attr.type, FI_AV_TABLE);
		KUNIT_EXPECT_EQ(test, fi_av_insert(av, &addr, 1, &fi_addr, 0, NULL), 1);
		KUNIT_EXPECT_EQ(test, fi_addr, 0);
		KUNIT_EXPECT_EQ(test, fi_close(&av->fid), 0);
	}
}

/* Addresses are equal only if all their fields are. */
static void av_duplicates(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_efa_addr addr = efa_addr(2, 7), other[3] = {
		addr, addr, addr,
	};
	fi_addr_t again, fi_addr[3];
	int i;

	addr.reserved = ~0ULL;
	addr.pad = 0xffff;
	KUNIT_EXPECT_EQ(test, fi_av_insert(scene->av, &addr, 1, &again, 0,
					   NULL), 1);
	KUNIT_EXPECT_EQ(test, again, scene->peer);
	other[0].qpn++;
	other[1].qkey++;
	other[2].gid[15]++;
	KUNIT_EXPECT_EQ(test, fi_av_insert(scene->av, other, 3, fi_addr, 0,
					   NULL), 3);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, fi_addr[i], scene->peer + 1 + i);
	/* An address that was inserted twice is removed by the second removal. */
	KUNIT_EXPECT_EQ(test, remove_one(scene, again), 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, remove_one(scene, again), 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 1, 1), -EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, remove_one(scene, again), -EINVAL);
}

/* A call with the same address twice inserts or removes it twice. */
static void av_counts_within_a_call(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_efa_addr addr = efa_addr(3, 9), both[2] = { addr, addr };
	fi_addr_t got[2];

	KUNIT_EXPECT_EQ(test, fi_av_insert(scene->av, both, 2, got, 0, NULL), 2);
	KUNIT_EXPECT_EQ(test, got[0], got[1]);
	KUNIT_EXPECT_EQ(test, remove_one(scene, got[0]), 0);
	KUNIT_EXPECT_EQ(test, fi_av_insert(scene->av, &addr, 1, got, 0, NULL), 1);
	KUNIT_EXPECT_EQ(test, got[0], got[1]);
	KUNIT_EXPECT_EQ(test, fi_av_remove(scene->av, got, 2, 0), 0);
	KUNIT_EXPECT_EQ(test, remove_one(scene, got[0]), -EINVAL);
}

/* A new address gets the lowest free index. */
static void av_index_reuse(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_efa_addr got;
	size_t len = sizeof(got);
	fi_addr_t addr[8], two[2];
	int i;

	for (i = 0; i < 8; i++) {
		addr[i] = efa_insert(test, scene, 3, i);
		KUNIT_EXPECT_EQ(test, addr[i], i + 1);
	}
	two[0] = addr[5];
	two[1] = addr[2];
	KUNIT_EXPECT_EQ(test, fi_av_remove(scene->av, two, 2, 0), 0);
	KUNIT_EXPECT_EQ(test, efa_insert(test, scene, 4, 100), addr[2]);
	KUNIT_EXPECT_EQ(test, efa_insert(test, scene, 4, 101), addr[5]);
	KUNIT_EXPECT_EQ(test, efa_insert(test, scene, 4, 102), addr[7] + 1);
	KUNIT_EXPECT_EQ(test, fi_av_lookup(scene->av, addr[2], &got, &len), 0);
	KUNIT_EXPECT_EQ(test, got.qpn, 100);
}

static const fi_addr_t nobody[] = {
	1, 77, S32_MAX, 0x80000000, U32_MAX, 1ULL << 32, 1ULL << 63,
	FI_ADDR_UNSPEC, FI_ADDR_NOTAVAIL,
};

/* A post to an index without an address fails, and uses no resources. */
static void av_out_of_range(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_efa_addr got;
	size_t len = sizeof(got);
	int credits = atomic_read(&efa_cq(scene)->credits);
	fi_addr_t both[2];
	int i;

	for (i = 0; i < ARRAY_SIZE(nobody); i++) {
		scene->peer = nobody[i];
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), -EHOSTUNREACH);
		KUNIT_EXPECT_EQ(test, efa_write(scene, 64, 1), -EHOSTUNREACH);
		KUNIT_EXPECT_EQ(test, efa_get(scene, 64, 1), -EHOSTUNREACH);
		KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 64,
						nobody[i]), -EHOSTUNREACH);
		KUNIT_EXPECT_EQ(test, remove_one(scene, nobody[i]), -EINVAL);
		KUNIT_EXPECT_EQ(test, fi_av_lookup(scene->av, nobody[i], &got,
						   &len), -EINVAL);
	}
	KUNIT_EXPECT_EQ(test, scene->qp->doorbells, 0);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->tx.nfree, efa_ep(scene)->tx.base.size);
	KUNIT_EXPECT_EQ(test, atomic_read(&efa_cq(scene)->credits), credits);
	/* A missing address doesn't prevent removal of the others. */
	both[0] = nobody[1];
	both[1] = 0;
	KUNIT_EXPECT_EQ(test, fi_av_remove(scene->av, both, 2, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, remove_one(scene, 0), -EINVAL);
}

static void av_bad_gid(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_efa_addr addr[3] = {
		efa_addr(5, 1), { .qpn = 1 }, efa_addr(5, 2),
	};
	fi_addr_t got[3] = { };

	KUNIT_EXPECT_EQ(test, fi_av_insert(scene->av, &addr[1], 1, got, 0,
					   NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, got[0], FI_ADDR_NOTAVAIL);
	KUNIT_EXPECT_EQ(test, fi_av_insert(scene->av, addr, 3, got, 0, NULL),
			2);
	KUNIT_EXPECT_EQ(test, got[0], 1);
	KUNIT_EXPECT_EQ(test, got[1], FI_ADDR_NOTAVAIL);
	KUNIT_EXPECT_EQ(test, got[2], 2);
}

/* If creation of one handle fails, the rest of the batch is inserted. */
static void av_no_handle(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_efa_addr addr[3] = {
		efa_addr(5, 1), efa_addr(6, 1), efa_addr(7, 1),
	};
	fi_addr_t got[3] = { };

	efake_fail(scene->fake, EFAKE_AH_CREATE, 1, -ENOSPC);
	KUNIT_EXPECT_EQ(test, fi_av_insert(scene->av, addr, 1, got, 0, NULL),
			-ENOSPC);
	KUNIT_EXPECT_EQ(test, got[0], FI_ADDR_NOTAVAIL);
	efake_fail(scene->fake, EFAKE_AH_CREATE, 2, -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_av_insert(scene->av, addr, 3, got, 0, NULL),
			2);
	KUNIT_EXPECT_EQ(test, got[1], FI_ADDR_NOTAVAIL);
	KUNIT_EXPECT_EQ(test, handles(scene), 3);
	/* It can be inserted later. */
	KUNIT_EXPECT_EQ(test, fi_av_insert(scene->av, addr, 3, got, 0, NULL),
			3);
	KUNIT_EXPECT_EQ(test, handles(scene), 4);
}

/* Work requests contain the peer's address. */
static void av_in_work_requests(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct efake_wr *wr;

	scene->peer = efa_insert(test, scene, 9, 0x99);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, efa_write(scene, 64, 2), 0);
	wr = efake_sent(scene->qp, 0);
	KUNIT_EXPECT_EQ(test, wr->qpn, 0x99);
	KUNIT_EXPECT_EQ(test, wr->qkey, 0x199);
	KUNIT_EXPECT_EQ(test, efake_ah_gid(wr->ah)[15], 9);
	wr = efake_sent(scene->qp, 1);
	KUNIT_EXPECT_EQ(test, wr->qpn, 0x99);
	KUNIT_EXPECT_EQ(test, wr->qkey, 0x199);
	KUNIT_EXPECT_EQ(test, efake_ah_gid(wr->ah)[15], 9);
}

/* A thousand addresses of ten devices. */
static void av_many(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_efa_addr addr;
	size_t len = sizeof(addr);
	fi_addr_t got;
	int i, wrong = 0;

	for (i = 1; i <= 1000; i++) {
		addr = efa_addr(10 + i % 10, i);
		wrong += fi_av_insert(scene->av, &addr, 1, &got, 0, NULL) != 1;
		wrong += got != i;
	}
	for (i = 1; i <= 1000; i++) {
		wrong += fi_av_lookup(scene->av, i, &addr, &len) != 0;
		wrong += addr.qpn != i;
		/* The address is found in all tables. */
		wrong += fi_av_insert(scene->av, &addr, 1, &got, 0, NULL) != 1;
		wrong += got != i;
	}
	/* Each was inserted twice, and the second removal removes it. */
	for (i = 0; i < 2000; i++)
		wrong += remove_one(scene, i % 2 ? i / 2 + 1 : 1000 - i / 2) != 0;
	KUNIT_EXPECT_EQ(test, wrong, 0);
	KUNIT_EXPECT_EQ(test, efake_calls(scene->fake, EFAKE_AH_CREATE), 11);
	KUNIT_EXPECT_EQ(test, handles(scene), 1);
}

/**
 * struct reader - a slow post
 * @thread: thread on another CPU
 * @av: the address vector
 * @found: the thread has looked up an address
 * @go_on: the thread may continue, as the table may have been replaced
 */
struct reader {
	struct kofi_thread	thread;
	struct kefa_av		*av;
	bool			found;
	bool			go_on;
};

/* Read all of it, so that KASAN detects freed memory. */
static void read_slowly(struct kofi_thread *thread)
{
	struct reader *reader = container_of(thread, struct reader, thread);
	unsigned long end = jiffies + msecs_to_jiffies(KOFI_SPIN_MS);
	struct kefa_av_table *table;
	struct kefa_peer *peer;

	rcu_read_lock();
	table = rcu_dereference(reader->av->table);
	peer = rcu_dereference(table->peers[0]);
	/* Pairs with reader_start(). */
	smp_store_release(&reader->found, true);
	/* Pairs with reader_end(). */
	while (!smp_load_acquire(&reader->go_on) && time_before(jiffies, end))
		cpu_relax();
	thread->ret = peer->index + (table->size <= peer->index) +
		      (rcu_access_pointer(table->peers[0]) ? 0 : 2);
	rcu_read_unlock();
}

static void reader_start(struct kunit *test, struct reader *reader,
			 struct efa_scene *scene)
{
	reader->av = container_of(scene->av, struct kefa_av, av_fid);
	reader->found = false;
	reader->go_on = false;
	kofi_thread_start(test, &reader->thread, read_slowly, NULL);
	/* Pairs with read_slowly(). */
	KUNIT_ASSERT_TRUE(test, kofi_soon(smp_load_acquire(&reader->found)));
}

static void reader_end(struct kunit *test, struct reader *reader, int ret)
{
	/* Pairs with read_slowly(). */
	smp_store_release(&reader->go_on, true);
	kofi_thread_join(test, &reader->thread);
	KUNIT_EXPECT_EQ(test, reader->thread.ret, ret);
}

/* The vector grows, and its table is replaced, during a post. */
static void av_grows_under_reader(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct reader reader;
	u32 size, i;

	reader_start(test, &reader, scene);
	size = rcu_access_pointer(reader.av->table)->size;
	for (i = 1; i <= size; i++)
		KUNIT_EXPECT_EQ(test, efa_insert(test, scene, 3, i), i);
	KUNIT_EXPECT_GT(test, rcu_access_pointer(reader.av->table)->size, size);
	reader_end(test, &reader, 0);
	/* The new table has all entries of the old one. */
	for (i = 0; i <= size; i++)
		KUNIT_EXPECT_EQ(test, remove_one(scene, i), 0);
}

/* An address is removed during a post to it. */
static void av_removed_under_reader(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct reader reader;

	reader_start(test, &reader, scene);
	KUNIT_EXPECT_EQ(test, remove_one(scene, scene->peer), 0);
	reader_end(test, &reader, 2);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), -EHOSTUNREACH);
}

static void av_entry_size(struct kunit *test)
{
	KUNIT_EXPECT_LE(test, kmalloc_size_roundup(sizeof(struct kefa_peer)),
			32);
}

/* --- endpoints that keep state for each address --- */

#define TOLD	8

struct told {
	struct kefa_av_user	user;
	u32			refuses;	/* index of an address */
	int			has[TOLD];	/* number of add() less that of del(), by index */
};

static int told_add(struct kefa_av_user *user, const struct kefa_peer *peer)
{
	struct told *told = container_of(user, struct told, user);

	if (peer->index == told->refuses)
		return -ENOBUFS;
	told->has[peer->index % TOLD]++;
	return 0;
}

static void told_del(struct kefa_av_user *user, const struct kefa_peer *peer)
{
	container_of(user, struct told, user)->has[peer->index % TOLD]--;
}

static struct told told_new(u32 refuses)
{
	return (struct told) { .user.add = told_add, .user.del = told_del, .refuses = refuses };
}

static void expect_told(struct kunit *test, const struct told *told, int n)
{
	int i;

	for (i = 0; i < TOLD; i++)
		KUNIT_EXPECT_EQ_MSG(test, told->has[i], i < n, "address %d of %d", i, n);
}

/* If one endpoint refuses an address, those that had taken it forget it, and no others. */
static void av_users(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kefa_av *av = container_of(scene->av, struct kefa_av, av_fid);
	struct told first = told_new(TOLD), second = told_new(3), third = told_new(TOLD);
	const struct fi_efa_addr addr = efa_addr(9, 9);

	/* The scene has inserted one address. */
	KUNIT_EXPECT_EQ(test, efa_insert(test, scene, 3, 1), 1ULL);
	KUNIT_EXPECT_EQ(test, kefa_av_join(av, &first.user), 0);
	KUNIT_EXPECT_EQ(test, kefa_av_join(av, &second.user), 0);
	KUNIT_EXPECT_EQ(test, kefa_av_join(av, &third.user), 0);
	KUNIT_EXPECT_EQ(test, efa_insert(test, scene, 3, 2), 2ULL);
	KUNIT_EXPECT_EQ(test, fi_av_insert(scene->av, &addr, 1, NULL, 0, NULL), -ENOBUFS);
	expect_told(test, &first, 3);
	expect_told(test, &second, 3);
	expect_told(test, &third, 3);
	kefa_av_leave(av, &second.user);
	KUNIT_EXPECT_EQ(test, efa_insert(test, scene, 9, 9), 3ULL);
	expect_told(test, &first, 4);
	expect_told(test, &second, 3);
	expect_told(test, &third, 4);
	/* An endpoint that refuses an address when it is enabled is told of the others' removal. */
	second = told_new(3);
	KUNIT_EXPECT_EQ(test, kefa_av_join(av, &second.user), -ENOBUFS);
	expect_told(test, &second, 0);
	KUNIT_EXPECT_EQ(test, remove_one(scene, 3), 0);
	expect_told(test, &first, 3);
	expect_told(test, &second, 0);
	kefa_av_leave(av, &first.user);
	kefa_av_leave(av, &third.user);
}

static struct kunit_case av_cases[] = {
	KUNIT_CASE(av_users),
	KUNIT_CASE(av_lookup),
	KUNIT_CASE(av_types),
	KUNIT_CASE(av_duplicates),
	KUNIT_CASE(av_counts_within_a_call),
	KUNIT_CASE(av_index_reuse),
	KUNIT_CASE(av_out_of_range),
	KUNIT_CASE(av_bad_gid),
	KUNIT_CASE(av_no_handle),
	KUNIT_CASE(av_in_work_requests),
	KUNIT_CASE(av_many),
	KUNIT_CASE(av_grows_under_reader),
	KUNIT_CASE(av_removed_under_reader),
	KUNIT_CASE(av_entry_size),
	{}
};

static struct kunit_suite av_suite = {
	.name = "kefa_av",
	.test_cases = av_cases,
};

/* Addresses with the same GID share a handle, in all vectors of the domain. */
static void ah_shared(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_efa_addr addr = efa_addr(5, 1);
	struct fi_av_attr attr = { };
	fi_addr_t one, two, three;
	struct fid_av *av;

	one = efa_insert(test, scene, 5, 1);
	two = efa_insert(test, scene, 5, 2);
	KUNIT_ASSERT_EQ(test, fi_av_open(scene->domain, &attr, &av, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_av_insert(av, &addr, 1, &three, 0, NULL), 1);
	KUNIT_EXPECT_EQ(test, handles(scene), 2);
	KUNIT_EXPECT_EQ(test, remove_one(scene, one), 0);
	KUNIT_EXPECT_EQ(test, remove_one(scene, two), 0);
	KUNIT_EXPECT_EQ(test, handles(scene), 2);
	KUNIT_EXPECT_EQ(test, fi_close(&av->fid), 0);
	KUNIT_EXPECT_EQ(test, handles(scene), 1);
}

/* An outstanding operation keeps the handle. */
static void ah_of_operation(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct efake_wr *wr;

	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, efa_write(scene, 64, 2), 0);
	KUNIT_EXPECT_EQ(test, remove_one(scene, scene->peer), 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 3), -EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, handles(scene), 1);
	/* The index has been reused. */
	KUNIT_EXPECT_EQ(test, efa_insert(test, scene, 77, 1), scene->peer);
	KUNIT_EXPECT_EQ(test, handles(scene), 2);
	wr = efake_sent(scene->qp, 0);
	KUNIT_EXPECT_EQ(test, efake_ah_gid(wr->ah)[15], 2);
	efake_wr_done(wr, 0);
	efa_expect_done(test, scene, 1);
	KUNIT_EXPECT_EQ(test, handles(scene), 2);
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efa_expect_done(test, scene, 2);
	KUNIT_EXPECT_EQ(test, handles(scene), 1);
}

/* The endpoints that use a handle are determined for each handle. */
static void ah_of_two_endpoints(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_ep *ep = efa_scene_ep(test, scene, 0);
	fi_addr_t other = efa_insert(test, scene, 9, 1);
	struct efake_qp *qp;
	int i;

	KUNIT_ASSERT_EQ(test, fi_enable(ep), 0);
	qp = efake_last_qp(scene->fake);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, fi_send(ep, scene->buf, 64, NULL, scene->peer, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_send(ep, scene->buf, 64, NULL, other, NULL), 0);
	KUNIT_EXPECT_EQ(test, remove_one(scene, scene->peer), 0);
	KUNIT_EXPECT_EQ(test, remove_one(scene, other), 0);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, handles(scene), 2);
		efake_wr_done(efake_sent(scene->qp, 0), 0);
	}
	KUNIT_EXPECT_EQ(test, handles(scene), 2);
	efake_wr_done(efake_sent(qp, 1), 0);
	KUNIT_EXPECT_EQ(test, handles(scene), 1);
	/* Closing the endpoint ends its operations. */
	KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
	KUNIT_EXPECT_EQ(test, handles(scene), 0);
	efa_drain(scene);
}

/* Send until the address is removed, or all slots are used. */
static void ah_post(struct kofi_thread *thread)
{
	struct efa_scene *scene = thread->arg;

	while (!efa_send(scene, 64, 1))
		cpu_relax();
}

/*
 * An address is removed during posts to it: either the post finds no address, or the handle
 * exists as long as the work request, which the fake device checks.
 */
static void ah_removed_under_posts(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	unsigned long start = jiffies, round;
	struct kofi_thread thread;

	for (round = 0; kofi_hunting(start, 300, round); round++) {
		kofi_thread_start(test, &thread, ah_post, scene);
		KUNIT_EXPECT_EQ(test, remove_one(scene, scene->peer), 0);
		efake_settle_all();
		kofi_thread_join(test, &thread);
		while (efake_sent(scene->qp, 0))
			efake_wr_done(efake_sent(scene->qp, 0), 0);
		KUNIT_EXPECT_EQ(test, handles(scene), 0);
		efa_drain(scene);
		scene->peer = efa_insert(test, scene, 2, 7);
	}
	kunit_info(test, "%lu rounds\n", round);
}

/* Hold the lock, so that the worker can't destroy the last, unused handle. */
static void ah_lock_idle(struct kunit *test, struct efa_scene *scene)
{
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, remove_one(scene, scene->peer), 0);
	kefa_dev_lock(scene->fake->dev);
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efake_settle();
}

/* An unused handle that isn't destroyed yet can be reused. */
static void ah_back_in_time(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kefa_dev *dev = scene->fake->dev;
	struct kefa_ah *ah;

	ah_lock_idle(test, scene);
	ah = list_first_entry(&efa_dom(scene)->ahs, struct kefa_ah, list);
	KUNIT_EXPECT_EQ(test, atomic_read(&ah->users), 0);
	KUNIT_EXPECT_PTR_EQ(test, kefa_ah_get(efa_dom(scene), ah->gid), ah);
	kefa_dev_unlock(dev);
	KUNIT_EXPECT_EQ(test, handles(scene), 1);
	KUNIT_EXPECT_EQ(test, efake_calls(scene->fake, EFAKE_AH_CREATE), 1);
	kefa_ah_put(ah);
	KUNIT_EXPECT_EQ(test, handles(scene), 0);
	efa_expect_done(test, scene, 1);
}

/* Unused handles are destroyed at once if the device has no more. */
static void ah_table_full(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	const struct fi_efa_addr addr = efa_addr(3, 1);
	struct kefa_dev *dev = scene->fake->dev;
	struct kefa_ah *ah;

	ah_lock_idle(test, scene);
	efake_fail(scene->fake, EFAKE_AH_CREATE, 1, -ENOSPC);
	ah = kefa_ah_get(efa_dom(scene), addr.gid);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(ah), 0);
	/* Without unused handles, creation fails. */
	efake_fail(scene->fake, EFAKE_AH_CREATE, 1, -ENOSPC);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(kefa_ah_get(efa_dom(scene),
							  efa_addr(4, 1).gid)),
			-ENOSPC);
	kefa_dev_unlock(dev);
	KUNIT_EXPECT_EQ(test, scene->fake->ahs, 1);
	if (!IS_ERR(ah))
		kefa_ah_put(ah);
	KUNIT_EXPECT_EQ(test, handles(scene), 0);
	efa_expect_done(test, scene, 1);
}

/* A handle that the device refuses to destroy is set aside. */
static void ah_refused(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);

	scene->fake->refuse = BIT(EFAKE_AH_DESTROY);
	scene->fake->refusal = -EIO;
	KUNIT_EXPECT_EQ(test, remove_one(scene, scene->peer), 0);
	KUNIT_EXPECT_EQ(test, handles(scene), 1);
	KUNIT_EXPECT_EQ(test, scene->fake->dev->set_aside, 1);
	scene->fake->refuse = 0;
	scene->peer = efa_insert(test, scene, 2, 7);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efa_expect_done(test, scene, 1);
}

static void ah_refused_at_removal(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);

	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	scene->fake->refuse = BIT(EFAKE_AH_DESTROY);
	efake_remove(scene->fake);
	efa_expect_error(test, scene, 1, ENODEV, 0);
}

/* Addresses remain after a removal, but can't be used. */
static void ah_without_device(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_efa_addr addr = efa_addr(2, 8);
	struct kefa_ah *ah;

	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	efake_remove(scene->fake);
	KUNIT_EXPECT_EQ(test, handles(scene), 0);
	ah = list_first_entry(&efa_dom(scene)->ahs, struct kefa_ah, list);
	KUNIT_EXPECT_NULL(test, ah->ah);
	KUNIT_EXPECT_EQ(test, atomic_read(&ah->users), 1);
	KUNIT_EXPECT_EQ(test, fi_av_insert(scene->av, &addr, 1, NULL, 0, NULL),
			-ENODEV);
	efa_expect_error(test, scene, 1, ENODEV, 0);
}

static struct kunit_case ah_cases[] = {
	KUNIT_CASE(ah_shared),
	KUNIT_CASE(ah_of_operation),
	KUNIT_CASE(ah_of_two_endpoints),
	KUNIT_CASE(ah_removed_under_posts),
	KUNIT_CASE(ah_back_in_time),
	KUNIT_CASE(ah_table_full),
	KUNIT_CASE(ah_refused),
	KUNIT_CASE(ah_refused_at_removal),
	KUNIT_CASE(ah_without_device),
	{}
};

static struct kunit_suite ah_suite = {
	.name = "kefa_ah",
	.test_cases = ah_cases,
};

kunit_test_suites(&av_suite, &ah_suite);
