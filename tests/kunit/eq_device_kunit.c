// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Events of arriving and removed devices, for which event queues reserve room, and removal of
 * events about closed objects.
 */
#include <linux/prandom.h>
#include "crew.h"
#include "eq_test.h"

/* Many more than the queue's size. */
#define EQ_DOMAINS	(8 * EQ_SIZE)

static struct fid_domain *eq_domain(struct kunit *test, struct eq_bench *bench)
{
	return kofi_fake_domain(test, bench->fake, bench->fabric);
}

static struct fid_domain *eq_bound(struct kunit *test, struct eq_bench *bench)
{
	struct fid_domain *domain = eq_domain(test, bench);

	KUNIT_ASSERT_EQ(test, fi_domain_bind(domain, &bench->eq->fid, 0), 0);
	return domain;
}

static void eq_close(struct kunit *test, struct fid_domain *domain)
{
	kofi_fake_close(test, &domain->fid);
}

/* Return: whether the first event is that of this removal. */
static int eq_get_removal(struct fid_eq *eq, struct fid_domain *domain)
{
	struct fi_eq_device_entry entry;
	ssize_t ret;
	u32 event;

	ret = fi_eq_read(eq, &event, &entry, sizeof(entry), 0);
	if (ret < 0)
		return ret;
	return ret == sizeof(entry) && event == FI_DEVICE_REMOVED &&
	       entry.fid == &domain->fid ? 0 : -EPROTO;
}

static void eq_removal(struct kunit *test)
{
	char name[FI_NAME_MAX + 10];
	struct eq_bench *bench = eq_bench(test);
	struct fid_domain *deaf = eq_domain(test, bench);
	struct fid_domain *domain = NULL;
	struct fi_eq_device_entry entry;
	u32 event;

	KUNIT_ASSERT_EQ(test, fi_domain(bench->fabric, bench->fake->info,
					&domain, bench), 0);
	kofi_fake_close_later(test, &domain->fid);
	KUNIT_ASSERT_EQ(test, fi_domain_bind(domain, &bench->eq->fid, 0), 0);
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = 0;
	kofi_device_removed(&deaf->fid, "deaf");
	kofi_device_removed(&domain->fid, name);
	/* The event comes only once. */
	kofi_device_removed(&domain->fid, name);

	KUNIT_EXPECT_EQ(test, fi_eq_read(bench->eq, &event, &entry,
					 sizeof(struct fi_eq_entry), 0),
			-FI_ETOOSMALL);
	KUNIT_EXPECT_EQ(test, fi_eq_read(bench->eq, &event, &entry,
					 sizeof(entry), 0), sizeof(entry));
	KUNIT_EXPECT_EQ(test, event, FI_DEVICE_REMOVED);
	KUNIT_EXPECT_PTR_EQ(test, entry.fid, &domain->fid);
	KUNIT_EXPECT_PTR_EQ(test, entry.context, (void *)bench);
	KUNIT_EXPECT_EQ(test, strlen(entry.domain_name), FI_NAME_MAX - 1);
	KUNIT_EXPECT_EQ(test, eq_get(bench->eq), -EAGAIN);
	eq_close(test, domain);
	eq_close(test, deaf);
}

/* The queue is full of other events, and many devices are removed. */
static void eq_removal_full(struct kunit *test)
{
	struct eq_bench *bench = eq_bench(test);
	struct fid_domain **domain;
	int i;

	domain = kunit_kcalloc(test, EQ_DOMAINS, sizeof(*domain), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, domain);
	for (i = 0; i < EQ_DOMAINS; i++)
		domain[i] = eq_bound(test, bench);
	eq_fill(test, bench->eq, EQ_SIZE);
	for (i = 0; i < EQ_DOMAINS; i++)
		kofi_device_removed(&domain[i]->fid, "gone");
	KUNIT_EXPECT_EQ(test, eq_put(bench->eq, NULL, 1), -EAGAIN);

	eq_expect_filled(test, bench->eq, EQ_SIZE);
	for (i = 0; i < EQ_DOMAINS; i++)
		KUNIT_EXPECT_EQ(test, eq_get_removal(bench->eq, domain[i]), 0);
	KUNIT_EXPECT_EQ(test, eq_get(bench->eq), -EAGAIN);
	/* Removals used only their reserved room. */
	eq_fill(test, bench->eq, EQ_SIZE);
	KUNIT_EXPECT_EQ(test, eq_put(bench->eq, NULL, 1), -EAGAIN);
	for (i = 0; i < EQ_DOMAINS; i++)
		eq_close(test, domain[i]);
}

/* The reserved room is released in all ways in which a binding ends. */
static void eq_room_returned(struct kunit *test)
{
	struct eq_bench *bench = eq_bench(test);
	struct fid_domain *domain;
	struct fid_eq *other;
	int i;

	other = kofi_fake_eq(test, bench->fabric, NULL);
	for (i = 0; i < EQ_DOMAINS; i++) {
		domain = eq_bound(test, bench);
		KUNIT_EXPECT_EQ(test, fi_domain_bind(domain, &other->fid, 0),
				-EBUSY);
		KUNIT_EXPECT_EQ(test, fi_domain_bind(domain, &bench->eq->fid,
						     0), -EBUSY);
		eq_close(test, domain);
	}
	bench->fake->call[FAKE_BIND].ret = -EIO;
	domain = eq_domain(test, bench);
	for (i = 0; i < EQ_DOMAINS; i++)
		KUNIT_EXPECT_EQ(test, fi_domain_bind(domain, &other->fid, 0),
				-EIO);
	bench->fake->call[FAKE_BIND].ret = 0;
	KUNIT_EXPECT_EQ(test, fi_domain_bind(domain, &other->fid, 0), 0);
	eq_close(test, domain);
}

/* Closing a removed domain drops its unread event. */
static void eq_removal_unread(struct kunit *test)
{
	struct eq_bench *bench = eq_bench(test);
	struct fid_domain *domain, *first;
	int i;

	first = eq_bound(test, bench);
	kofi_device_removed(&first->fid, "first");
	for (i = 0; i < EQ_DOMAINS; i++) {
		domain = eq_bound(test, bench);
		kofi_device_removed(&domain->fid, "next");
		eq_close(test, domain);
	}
	KUNIT_EXPECT_EQ(test, eq_get_removal(bench->eq, first), 0);
	KUNIT_EXPECT_EQ(test, eq_get(bench->eq), -EAGAIN);
	eq_close(test, first);
}

/* The device is removed during a bind that fails. */
static void eq_remove_in_bind(struct kofi_fake *fake, struct fid *fid,
			      void *arg)
{
	kofi_device_removed(fid, "gone");
	if (arg)
		kofi_device_arrived(&fake->provider, "back");
}

static void eq_removal_in_bind(struct kunit *test)
{
	struct eq_bench *bench = eq_bench(test);
	struct fid_domain *domain;
	int i;

	bench->fake->call[FAKE_BIND].hook = eq_remove_in_bind;
	for (i = 0; i < EQ_DOMAINS; i++) {
		bench->fake->call[FAKE_BIND].ret = -ENODEV;
		domain = eq_domain(test, bench);
		KUNIT_EXPECT_EQ(test, fi_domain_bind(domain, &bench->eq->fid,
						     0), -ENODEV);
		eq_close(test, domain);
		KUNIT_EXPECT_EQ(test, eq_get(bench->eq), -EAGAIN);
	}
	bench->fake->call[FAKE_BIND].ret = 0;
	domain = eq_bound(test, bench);
	KUNIT_EXPECT_EQ(test, eq_get_removal(bench->eq, domain), 0);
	eq_close(test, domain);
}

/* Queues that get removals get arrivals as well. */
static void eq_return_in_bind(struct kunit *test)
{
	struct eq_bench *bench = eq_bench(test);
	struct fi_eq_device_entry entry;
	struct fid_domain *domain;
	u32 event = 0;

	bench->fake->call[FAKE_BIND].hook = eq_remove_in_bind;
	bench->fake->call[FAKE_BIND].hook_arg = bench;
	domain = eq_bound(test, bench);
	KUNIT_EXPECT_EQ(test, eq_get_removal(bench->eq, domain), 0);
	KUNIT_EXPECT_EQ(test, fi_eq_read(bench->eq, &event, &entry,
					 sizeof(entry), 0), sizeof(entry));
	KUNIT_EXPECT_EQ(test, event, FI_DEVICE_ARRIVED);
	eq_close(test, domain);
}

/* Closing an object removes all its events, and no others. */
static void eq_forget(struct kunit *test)
{
	struct eq_bench *bench = eq_bench(test);
	struct fid_domain *domain = eq_domain(test, bench);
	struct fid_ep *ep = kofi_fake_ep(test, bench->fake, domain);
	struct fid_ep *other = kofi_fake_ep(test, bench->fake, domain);
	struct fid_eq *eq = bench->eq;
	int i;

	KUNIT_ASSERT_EQ(test, fi_ep_bind(ep, &eq->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(other, &eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, eq_put(eq, &ep->fid, 1), 0);
	KUNIT_EXPECT_EQ(test, eq_put(eq, &other->fid, 2), 0);
	KUNIT_EXPECT_EQ(test, eq_put_err(eq, &ep->fid, 3), 0);
	KUNIT_EXPECT_EQ(test, eq_put(eq, NULL, 4), 0);
	KUNIT_EXPECT_EQ(test, eq_put_err(eq, &other->fid, 5), 0);
	for (i = 5; i < EQ_SIZE; i++)
		KUNIT_EXPECT_EQ(test, eq_put(eq, &ep->fid, i + 1), 0);
	KUNIT_EXPECT_EQ(test, eq_put(eq, NULL, 1), -EAGAIN);
	kofi_fake_close(test, &ep->fid);

	/* The room of the dropped events is free at once, before any read. */
	for (i = 3; i < EQ_SIZE; i++)
		KUNIT_EXPECT_EQ(test, eq_put(eq, NULL, 100 + i), 0);
	KUNIT_EXPECT_EQ(test, eq_put(eq, NULL, 1), -EAGAIN);
	KUNIT_EXPECT_EQ(test, eq_get(eq), 2);
	KUNIT_EXPECT_EQ(test, eq_get(eq), 4);
	KUNIT_EXPECT_EQ(test, eq_get(eq), -FI_EAVAIL);
	KUNIT_EXPECT_EQ(test, eq_get_err(eq), 5);
	for (i = 3; i < EQ_SIZE; i++)
		KUNIT_EXPECT_EQ(test, eq_get(eq), 100 + i);
	KUNIT_EXPECT_EQ(test, eq_get(eq), -EAGAIN);
	kofi_fake_close(test, &other->fid);
	eq_close(test, domain);
}

/* Arrivals */

static long eq_get_arrival(struct eq_bench *bench, struct fid_eq *eq)
{
	struct fi_eq_device_entry entry;
	ssize_t ret;
	u32 event;

	ret = fi_eq_read(eq, &event, &entry, sizeof(entry), 0);
	if (ret < 0)
		return ret;
	return ret == sizeof(entry) && event == FI_DEVICE_ARRIVED &&
	       entry.fid == &bench->fabric->fid &&
	       !strcmp(entry.domain_name, "new") ? 0 : -EPROTO;
}

static void eq_arrival(struct kunit *test)
{
	struct eq_bench *bench = eq_bench(test);
	struct kofi_fake *stranger = kofi_fake_new(test, "stranger");
	struct fid_domain *domain;
	struct fid_eq *deaf;

	deaf = kofi_fake_eq(test, bench->fabric, NULL);
	kofi_device_arrived(&bench->fake->provider, "new");
	KUNIT_EXPECT_EQ(test, eq_get(bench->eq), -EAGAIN);
	domain = eq_bound(test, bench);
	kofi_device_arrived(&stranger->provider, "new");
	KUNIT_EXPECT_EQ(test, eq_get(bench->eq), -EAGAIN);
	kofi_device_arrived(&bench->fake->provider, "new");
	KUNIT_EXPECT_EQ(test, eq_get_arrival(bench, bench->eq), 0);
	/* A queue gets arrivals also after its domain was removed and closed. */
	eq_close(test, domain);
	kofi_device_arrived(&bench->fake->provider, "new");
	KUNIT_EXPECT_EQ(test, eq_get_arrival(bench, bench->eq), 0);
	KUNIT_EXPECT_EQ(test, eq_get(bench->eq), -EAGAIN);
	KUNIT_EXPECT_EQ(test, eq_get(deaf), -EAGAIN);
}

/* A queue that was opened for arrivals needs no domain. */
static void eq_arrival_first(struct kunit *test)
{
	struct eq_bench *bench = eq_bench_attr(test, (struct fi_eq_attr) {
		.size	= EQ_SIZE,
		.flags	= FI_WRITE | FI_DEVICE_EVENTS,
	});
	struct fid_domain *domain;
	int i;

	kofi_device_arrived(&bench->fake->provider, "new");
	KUNIT_EXPECT_EQ(test, eq_get_arrival(bench, bench->eq), 0);
	KUNIT_EXPECT_EQ(test, eq_get(bench->eq), -EAGAIN);
	/* It tells the removal of a domain only if that is bound to it. */
	domain = eq_domain(test, bench);
	kofi_device_removed(&domain->fid, "gone");
	KUNIT_EXPECT_EQ(test, eq_get(bench->eq), -EAGAIN);
	eq_close(test, domain);

	for (i = 0; i <= EQ_SIZE; i++)
		kofi_device_arrived(&bench->fake->provider, "new");
	KUNIT_EXPECT_EQ(test, eq_get(bench->eq), -FI_EOVERRUN);
	for (i = 0; i < EQ_SIZE; i++)
		KUNIT_EXPECT_EQ(test, eq_get_arrival(bench, bench->eq), 0);
	KUNIT_EXPECT_EQ(test, eq_get(bench->eq), -EAGAIN);
}

/* Several arrivals without room: reported once, before the events in the ring. */
static void eq_arrival_lost(struct kunit *test)
{
	struct eq_bench *bench = eq_bench(test);
	struct fid_domain *domain = eq_bound(test, bench);
	int i;

	eq_fill(test, bench->eq, EQ_SIZE);
	for (i = 0; i < 3; i++)
		kofi_device_arrived(&bench->fake->provider, "new");
	KUNIT_EXPECT_EQ(test, eq_get(bench->eq), -FI_EOVERRUN);
	eq_expect_filled(test, bench->eq, EQ_SIZE);
	KUNIT_EXPECT_EQ(test, eq_get(bench->eq), -EAGAIN);

	/* A removal can't be lost. */
	eq_fill(test, bench->eq, EQ_SIZE);
	kofi_device_removed(&domain->fid, "gone");
	eq_expect_filled(test, bench->eq, EQ_SIZE);
	KUNIT_EXPECT_EQ(test, eq_get_removal(bench->eq, domain), 0);
	KUNIT_EXPECT_EQ(test, eq_get(bench->eq), -EAGAIN);
	eq_close(test, domain);
}

static void eq_sleep(struct kofi_thread *thread)
{
	struct fi_eq_device_entry entry;
	u32 event = 0;

	thread->ret = fi_eq_sread(thread->arg, &event, &entry, sizeof(entry),
				  -1, 0);
	if (thread->ret > 0)
		thread->ret = event;
}

static void eq_removal_wakes(struct kunit *test)
{
	struct eq_bench *bench = eq_bench(test);
	struct fid_domain *domain = eq_bound(test, bench);
	struct kofi_thread thread;

	kofi_thread_start(test, &thread, eq_sleep, bench->eq);
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&thread, 30));
	kofi_device_removed(&domain->fid, "gone");
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, FI_DEVICE_REMOVED);
	eq_close(test, domain);
}

/* Model of a queue with domains that are opened, removed and closed. */
#define EQ_MODEL_STEPS	6000
#define EQ_MODEL_MAX	96

struct eq_model {
	struct rnd_state	rnd;
	unsigned int		used;
	unsigned int		count;		/* in the ring */
	unsigned int		refused;
	unsigned int		most;
	struct eq_model_domain {
		struct fid_domain	*domain;
		bool			removed;
	} bound[EQ_MODEL_MAX];
	struct eq_model_event {
		struct fid_domain	*domain;
		unsigned long		id;
	} ring[EQ_SIZE + EQ_MODEL_MAX];
};

static void eq_model_drop(struct eq_model *model, unsigned int at)
{
	if (!model->ring[at].domain)
		model->used--;
	model->count--;
	memmove(&model->ring[at], &model->ring[at + 1],
		(model->count - at) * sizeof(model->ring[0]));
}

static void eq_model_open(struct kunit *test, struct eq_bench *bench,
			  struct eq_model_domain *slot)
{
	slot->domain = eq_bound(test, bench);
	slot->removed = false;
}

static void eq_model_remove(struct eq_model *model,
			    struct eq_model_domain *slot)
{
	kofi_device_removed(&slot->domain->fid, "gone");
	if (slot->removed)
		return;
	slot->removed = true;
	model->ring[model->count++] = (struct eq_model_event) {
		.domain = slot->domain,
	};
}

static void eq_model_close(struct kunit *test, struct eq_model *model,
			   struct eq_model_domain *slot)
{
	unsigned int i;

	for (i = 0; i < model->count; i++)
		if (model->ring[i].domain == slot->domain)
			eq_model_drop(model, i);
	eq_close(test, slot->domain);
	slot->domain = NULL;
}

static void eq_model_read(struct kunit *test, struct eq_bench *bench,
			  struct eq_model *model)
{
	struct fid_domain *domain = model->ring[0].domain;

	if (!model->count) {
		KUNIT_ASSERT_EQ(test, eq_get(bench->eq), -EAGAIN);
		return;
	}
	if (domain)
		KUNIT_ASSERT_EQ(test, eq_get_removal(bench->eq, domain), 0);
	else
		KUNIT_ASSERT_EQ(test, eq_get(bench->eq), model->ring[0].id);
	eq_model_drop(model, 0);
}

static void eq_model_write(struct kunit *test, struct eq_bench *bench,
			   struct eq_model *model, unsigned long id)
{
	int want = model->used < EQ_SIZE ? 0 : -EAGAIN;

	KUNIT_ASSERT_EQ(test, eq_put(bench->eq, NULL, id), want);
	if (want) {
		model->refused++;
		return;
	}
	model->used++;
	model->ring[model->count++] = (struct eq_model_event) { .id = id };
}

/* Domains pile up in the first half of each 2000 steps. */
static void eq_model_step(struct kunit *test, struct eq_bench *bench,
			  struct eq_model *model, unsigned long id)
{
	u32 dice = prandom_u32_state(&model->rnd) % 16;
	bool pile_up = id % 2000 < 1000;
	struct eq_model_domain *slot;

	slot = &model->bound[prandom_u32_state(&model->rnd) % EQ_MODEL_MAX];
	if (dice < 4)
		eq_model_write(test, bench, model, id);
	else if (dice < 6)
		eq_model_read(test, bench, model);
	else if (!slot->domain)
		eq_model_open(test, bench, slot);
	else if (dice < (pile_up ? 7 : 11))
		eq_model_close(test, model, slot);
	else if (dice < (pile_up ? 8 : 15))
		eq_model_remove(model, slot);
}

static void eq_model(struct kunit *test)
{
	struct eq_bench *bench = eq_bench(test);
	struct eq_model *model;
	unsigned long i;

	model = kunit_kzalloc(test, sizeof(*model), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, model);
	prandom_seed_state(&model->rnd, 20240229);
	for (i = 0; i < EQ_MODEL_STEPS; i++) {
		eq_model_step(test, bench, model, i);
		model->most = max(model->most, model->count);
	}
	for (i = 0; i < EQ_MODEL_MAX; i++)
		if (model->bound[i].domain)
			eq_model_close(test, model, &model->bound[i]);
	while (model->count)
		eq_model_read(test, bench, model);
	KUNIT_EXPECT_EQ(test, model->used, 0);
	KUNIT_EXPECT_EQ(test, eq_get(bench->eq), -EAGAIN);
	/* The queue is full at times, with removals beyond its size. */
	KUNIT_EXPECT_GT(test, model->refused, 0);
	KUNIT_EXPECT_GT(test, model->most, EQ_SIZE);
}

static struct kunit_case eq_device_cases[] = {
	KUNIT_CASE(eq_removal),
	KUNIT_CASE(eq_removal_full),
	KUNIT_CASE(eq_room_returned),
	KUNIT_CASE(eq_removal_unread),
	KUNIT_CASE(eq_removal_in_bind),
	KUNIT_CASE(eq_return_in_bind),
	KUNIT_CASE(eq_forget),
	KUNIT_CASE(eq_arrival),
	KUNIT_CASE(eq_arrival_first),
	KUNIT_CASE(eq_arrival_lost),
	KUNIT_CASE(eq_removal_wakes),
	KUNIT_CASE_SLOW(eq_model),
	{}
};

static struct kunit_suite eq_device_suite = {
	.name		= "kofi_eq_device",
	.test_cases	= eq_device_cases,
};

kunit_test_suite(eq_device_suite);

MODULE_DESCRIPTION("KUnit tests of device events in kOFI's event queues");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
MODULE_IMPORT_NS(KOFI_TEST);
