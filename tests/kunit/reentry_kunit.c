// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Providers that call the core during its calls, that are called while they deregister, and
 * that register and deregister during fi_getinfo().
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include "crew.h"
#include "fake.h"

#define MINUTE	(60 * HZ)

static int ask(const char *prov_name, struct fi_info **list)
{
	struct fi_fabric_attr fabric = { .prov_name = (char *)prov_name };
	struct fi_info hints = {
		.mode = ~0ULL,
		.fabric_attr = &fabric,
	};

	return fi_getinfo(fi_version(), NULL, NULL, 0, &hints, list);
}

/* Return: number of a provider's entries in the list of all providers. */
static int found(struct kofi_fake *fake)
{
	struct fi_info *list, *info;
	int count = 0, ret;

	ret = ask(NULL, &list);
	if (ret)
		return ret;
	for (info = list; info; info = info->next)
		count += !strcmp(info->fabric_attr->prov_name,
				 fake->provider.name);
	fi_freeinfo(list);
	return count;
}

/* Calls from inside a call */

struct inside {
	struct kofi_fake *other;
	struct fid_fabric *fabric;
	int ret;
};

static void register_other(struct kofi_fake *fake, struct fid *fid, void *arg)
{
	struct inside *inside = arg;

	if (!inside->other->registered)
		inside->ret = kofi_fake_register(inside->other);
}

static void deregister_other(struct kofi_fake *fake, struct fid *fid, void *arg)
{
	struct inside *inside = arg;

	if (inside->other->registered)
		inside->ret = kofi_fake_deregister(inside->other);
}

static void open_other(struct kofi_fake *fake, struct fid *fid, void *arg)
{
	struct inside *inside = arg;

	if (inside->fabric)
		return;
	inside->ret = fi_fabric(inside->other->info->fabric_attr,
				&inside->fabric, NULL);
}

static void ask_other(struct kofi_fake *fake, struct fid *fid, void *arg)
{
	struct inside *inside = arg;
	struct fi_info *list;

	inside->ret = ask(inside->other->provider.name, &list);
	fi_freeinfo(list);
}

static void register_inside(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "outer");
	struct inside inside = {
		.other = kofi_fake_make(test, "inner"), .ret = 1,
	};

	fake->call[FAKE_GETINFO].hook = register_other;
	fake->call[FAKE_GETINFO].hook_arg = &inside;
	/* The new provider is at the end of the list, so it is called, too. */
	KUNIT_EXPECT_EQ(test, found(inside.other), 1);
	KUNIT_EXPECT_EQ(test, inside.ret, 0);
	KUNIT_EXPECT_EQ(test, kofi_fake_deregister(inside.other), 0);

	fake->call[FAKE_GETINFO].hook = NULL;
	fake->call[FAKE_FABRIC].hook = register_other;
	fake->call[FAKE_FABRIC].hook_arg = &inside;
	inside.ret = 1;
	kofi_fake_fabric(test, fake);
	KUNIT_EXPECT_EQ(test, inside.ret, 0);
	KUNIT_EXPECT_EQ(test, found(inside.other), 1);
}

/* A provider deregisters another one, and itself. */
static void open_inside(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "outer");
	struct kofi_fake *other = kofi_fake_new(test, "inner");
	struct inside inside = { .other = other, .ret = 1 };
	struct inside own = { .other = fake, .ret = 1 };

	fake->call[FAKE_GETINFO].hook = open_other;
	fake->call[FAKE_GETINFO].hook_arg = &inside;
	KUNIT_EXPECT_EQ(test, found(fake), 1);
	KUNIT_ASSERT_EQ(test, inside.ret, 0);
	kofi_fake_close_later(test, &inside.fabric->fid);
	KUNIT_EXPECT_EQ(test, kofi_fake_deregister(other), -EBUSY);

	fake->call[FAKE_GETINFO].hook_arg = &own;
	KUNIT_EXPECT_EQ(test, found(fake), 1);
	KUNIT_ASSERT_EQ(test, own.ret, 0);
	kofi_fake_close_later(test, &own.fabric->fid);

	fake->call[FAKE_FABRIC].hook = ask_other;
	fake->call[FAKE_FABRIC].hook_arg = &inside;
	inside.ret = 1;
	kofi_fake_fabric(test, fake);
	KUNIT_EXPECT_EQ(test, inside.ret, 0);
}

static void deregister_inside_own(struct kunit *test)
{
	static const enum kofi_fake_op ops[] = {
		FAKE_GETINFO, FAKE_FREEINFO, FAKE_FABRIC,
	};
	struct kofi_fake *fake = kofi_fake_new(test, "own");
	struct inside inside = { .other = fake };
	struct fid_fabric *fabric;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		inside.ret = 1;
		fake->call[ops[i]].hook = deregister_other;
		fake->call[ops[i]].hook_arg = &inside;
		KUNIT_EXPECT_EQ(test, found(fake), 1);
		fabric = kofi_fake_fabric(test, fake);
		KUNIT_EXPECT_EQ(test, inside.ret, -EBUSY);
		fake->call[ops[i]].hook = NULL;
		kofi_fake_close(test, &fabric->fid);
	}
}

static void deregister_inside_other(struct kunit *test)
{
	struct kofi_fake *first = kofi_fake_new(test, "first");
	struct kofi_fake *fake = kofi_fake_new(test, "middle");
	struct kofi_fake *last = kofi_fake_new(test, "last");
	struct inside inside = { .other = first, .ret = 1 };

	/* Entries of a provider that was called before stay in the list. */
	fake->call[FAKE_GETINFO].hook = deregister_other;
	fake->call[FAKE_GETINFO].hook_arg = &inside;
	KUNIT_EXPECT_EQ(test, found(first), 1);
	KUNIT_EXPECT_EQ(test, inside.ret, 0);
	KUNIT_EXPECT_EQ(test, found(first), 0);

	inside.other = last;
	inside.ret = 1;
	KUNIT_EXPECT_EQ(test, found(last), 0);
	KUNIT_EXPECT_EQ(test, inside.ret, 0);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(last, FAKE_GETINFO), 2);
	KUNIT_EXPECT_EQ(test, found(fake), 1);
}

/* Calls that are running on another thread */

/**
 * struct blocked - a call of a provider that blocks in another thread
 * @entered: completed when the provider is called
 * @go: completed to let the call continue
 * @call: thread that makes the call
 * @fake: the provider
 * @fabric: fabric that the call opens
 * @open: the call is fi_fabric(), else fi_getinfo()
 * @ret: return value of the call
 */
struct blocked {
	struct completion entered;
	struct completion go;
	struct work_struct call;
	struct kofi_fake *fake;
	struct fid_fabric *fabric;
	bool open;
	int ret;
};

static void block(struct kofi_fake *fake, struct fid *fid, void *arg)
{
	struct blocked *blocked = arg;

	complete(&blocked->entered);
	wait_for_completion_timeout(&blocked->go, MINUTE);
}

static void blocked_call(struct work_struct *work)
{
	struct blocked *blocked = container_of(work, struct blocked, call);
	struct fi_info *list = NULL;

	if (blocked->open) {
		blocked->ret = fi_fabric(blocked->fake->info->fabric_attr,
					 &blocked->fabric, NULL);
	} else {
		blocked->ret = ask(blocked->fake->provider.name, &list);
		fi_freeinfo(list);
	}
}

static struct blocked *start_blocked(struct kunit *test, const char *name,
				     bool open)
{
	struct blocked *blocked;

	blocked = kunit_kzalloc(test, sizeof(*blocked), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, blocked);
	blocked->fake = kofi_fake_new(test, name);
	blocked->open = open;
	init_completion(&blocked->entered);
	init_completion(&blocked->go);
	INIT_WORK(&blocked->call, blocked_call);
	blocked->fake->call[open ? FAKE_FABRIC : FAKE_GETINFO].hook = block;
	blocked->fake->call[open ? FAKE_FABRIC : FAKE_GETINFO].hook_arg =
		blocked;
	queue_work(system_unbound_wq, &blocked->call);
	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&blocked->entered,
							  MINUTE), 0);
	return blocked;
}

static void end_blocked(struct kunit *test, struct blocked *blocked)
{
	complete(&blocked->go);
	flush_work(&blocked->call);
	KUNIT_EXPECT_EQ(test, blocked->ret, 0);
}

static void deregister_called(struct kunit *test)
{
	struct blocked *blocked = start_blocked(test, "slow", false);
	struct kofi_fake *fake = blocked->fake;

	KUNIT_EXPECT_EQ(test, kofi_fake_deregister(fake), -EBUSY);
	/* The provider is still registered. */
	KUNIT_EXPECT_EQ(test, kofi_provider_register(KOFI_API_VERSION,
						     &fake->provider), -EEXIST);
	end_blocked(test, blocked);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_FREEINFO), 1);
	KUNIT_EXPECT_EQ(test, kofi_fake_deregister(fake), 0);
	KUNIT_EXPECT_EQ(test, found(fake), 0);
}

static void deregister_opening(struct kunit *test)
{
	struct blocked *blocked = start_blocked(test, "slow", true);

	KUNIT_EXPECT_EQ(test, kofi_fake_deregister(blocked->fake), -EBUSY);
	end_blocked(test, blocked);
	KUNIT_EXPECT_EQ(test, kofi_fake_deregister(blocked->fake), -EBUSY);
	KUNIT_EXPECT_EQ(test, found(blocked->fake), 1);
	KUNIT_EXPECT_EQ(test, fi_close(&blocked->fabric->fid), 0);
	KUNIT_EXPECT_EQ(test, kofi_fake_deregister(blocked->fake), 0);
}

/* Providers register and deregister during fi_getinfo(). */

#define STRESS_COMERS	3
#define STRESS_ROUNDS	100
#define STRESS_ENOUGH	10000

/**
 * struct stress - shared state of the threads
 * @comer: a thread for each provider that registers and deregisters
 * @asker: a thread that calls fi_getinfo()
 * @opener: a thread that opens and closes fabrics
 * @fake: providers that register and deregister
 * @steady: a provider that stays registered
 * @running: number of comers that aren't done
 * @bad: number of unexpected results
 * @seen: number of times that each provider was listed
 */
struct stress {
	struct work_struct comer[STRESS_COMERS];
	struct work_struct asker;
	struct work_struct opener;
	struct kofi_fake *fake[STRESS_COMERS];
	struct kofi_fake *steady;
	atomic_t running;
	atomic_t bad;
	atomic_t seen[STRESS_COMERS];
};

static void stress_come(struct stress *stress, unsigned int i)
{
	unsigned int round;
	int ret;

	/* Until it was listed, which may take long on a busy machine. */
	for (round = 0; round < STRESS_ROUNDS ||
	     (!atomic_read(&stress->seen[i]) && round < STRESS_ENOUGH);
	     round++) {
		if (kofi_fake_register(stress->fake[i]))
			atomic_inc(&stress->bad);
		usleep_range(100, 400);
		while ((ret = kofi_fake_deregister(stress->fake[i])) == -EBUSY)
			usleep_range(50, 100);
		if (ret)
			atomic_inc(&stress->bad);
		usleep_range(50, 100);
	}
	atomic_dec(&stress->running);
}

#define STRESS_COMER(n)							\
static void stress_comer_##n(struct work_struct *work)			\
{									\
	stress_come(container_of(work, struct stress, comer[n]), n);	\
}

STRESS_COMER(0) STRESS_COMER(1) STRESS_COMER(2)

static void stress_look(struct stress *stress)
{
	struct fi_info *list = NULL, *info;
	unsigned int i, steady = 0;

	if (ask(NULL, &list))
		atomic_inc(&stress->bad);
	for (info = list; info; info = info->next) {
		steady += !strcmp(info->fabric_attr->prov_name, "steady");
		for (i = 0; i < STRESS_COMERS; i++)
			if (!strcmp(info->fabric_attr->prov_name,
				    stress->fake[i]->provider.name))
				atomic_inc(&stress->seen[i]);
	}
	if (steady != 1)
		atomic_inc(&stress->bad);
	fi_freeinfo(list);
}

static void stress_ask(struct work_struct *work)
{
	struct stress *stress = container_of(work, struct stress, asker);

	while (atomic_read(&stress->running)) {
		stress_look(stress);
		cond_resched();
	}
}

static void stress_open(struct work_struct *work)
{
	struct stress *stress = container_of(work, struct stress, opener);
	struct fid_fabric *fabric;

	while (atomic_read(&stress->running)) {
		if (fi_fabric(stress->steady->info->fabric_attr, &fabric,
			      NULL) ||
		    fi_close(&fabric->fid))
			atomic_inc(&stress->bad);
		cond_resched();
	}
}

static void come_and_go(struct kunit *test)
{
	static const work_func_t comers[] = {
		stress_comer_0, stress_comer_1, stress_comer_2,
	};
	static const char * const names[] = { "come", "and", "go" };
	int refs = module_refcount(THIS_MODULE);
	struct stress *stress;
	unsigned int i;

	stress = kunit_kzalloc(test, sizeof(*stress), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, stress);
	stress->steady = kofi_fake_new(test, "steady");
	for (i = 0; i < STRESS_COMERS; i++) {
		stress->fake[i] = kofi_fake_make(test, names[i]);
		INIT_WORK(&stress->comer[i], comers[i]);
	}
	atomic_set(&stress->running, STRESS_COMERS);
	INIT_WORK(&stress->asker, stress_ask);
	INIT_WORK(&stress->opener, stress_open);

	for (i = 0; i < STRESS_COMERS; i++)
		queue_work(system_unbound_wq, &stress->comer[i]);
	queue_work(system_unbound_wq, &stress->asker);
	queue_work(system_unbound_wq, &stress->opener);
	for (i = 0; i < STRESS_COMERS; i++)
		flush_work(&stress->comer[i]);
	flush_work(&stress->asker);
	flush_work(&stress->opener);

	KUNIT_EXPECT_EQ(test, atomic_read(&stress->bad), 0);
	KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), refs);
	for (i = 0; i < STRESS_COMERS; i++) {
		kunit_info(test, "%s was seen %d times\n", names[i],
			   atomic_read(&stress->seen[i]));
		KUNIT_EXPECT_EQ(test,
				kofi_fake_called(stress->fake[i],
						 FAKE_GETINFO),
				kofi_fake_called(stress->fake[i],
						 FAKE_FREEINFO));
		KUNIT_EXPECT_GT(test, atomic_read(&stress->seen[i]), 0);
	}
}

static struct kunit_case reentry_cases[] = {
	KUNIT_CASE(register_inside),
	KUNIT_CASE(open_inside),
	KUNIT_CASE(deregister_inside_own),
	KUNIT_CASE(deregister_inside_other),
	KUNIT_CASE(deregister_called),
	KUNIT_CASE(deregister_opening),
	KUNIT_CASE(come_and_go),
	{}
};

static struct kunit_suite reentry_suite = {
	.name = "kofi_reentry",
	.test_cases = reentry_cases,
};

kunit_test_suite(reentry_suite);

MODULE_DESCRIPTION("KUnit tests of calls inside and beside calls of kOFI providers");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
MODULE_IMPORT_NS(KOFI_TEST);
