// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Removal of a device: sleeping tasks wake up, and events remain valid. */
#include "crew.h"
#include "fake.h"

MODULE_DESCRIPTION("KUnit tests of sleepers whose device goes away");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
MODULE_IMPORT_NS(KOFI_TEST);

static void cq_sleeper(struct kofi_thread *thread)
{
	struct fi_cq_tagged_entry entry;

	thread->ret = fi_cq_sread(thread->arg, &entry, 1, NULL, -1);
}

static void cntr_sleeper(struct kofi_thread *thread)
{
	thread->ret = fi_cntr_wait(thread->arg, 1, -1);
}

/* All sleepers wake up, though no operation was outstanding. */
static void sleepers_wake(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "dead");
	struct kofi_thread cq[2], cntr[2];
	struct kofi_fake_set set;
	int i;

	kofi_fake_open_all(test, fake, &set);
	for (i = 0; i < 2; i++) {
		kofi_thread_start(test, &cq[i], cq_sleeper, set.cq);
		kofi_thread_start(test, &cntr[i], cntr_sleeper, set.cntr);
	}
	KUNIT_EXPECT_TRUE(test,
			  kofi_soon(kofi_sleepers(&kofi_fake_to_cq(set.cq)->notifier.wait) == 2 &&
				    kofi_sleepers(&kofi_fake_to_cntr(set.cntr)->wait) == 2));
	kofi_device_removed(&set.domain->fid, "dead0");
	for (i = 0; i < 2; i++) {
		kofi_thread_join(test, &cq[i]);
		kofi_thread_join(test, &cntr[i]);
		KUNIT_EXPECT_EQ(test, cq[i].ret, -ENODEV);
		KUNIT_EXPECT_EQ(test, cntr[i].ret, -ENODEV);
	}
}

/* All descendants of a dead object are dead. */
static void all_below(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "dead");
	struct fi_eq_device_entry entry;
	struct kofi_fake_set set;
	struct fid *below[8];
	u32 event;
	int i;

	kofi_fake_open_all(test, fake, &set);
	below[0] = &set.domain->fid;
	below[1] = &set.av->fid;
	below[2] = &set.cq->fid;
	below[3] = &set.cntr->fid;
	below[4] = &set.ep->fid;
	below[5] = &set.mr->fid;
	below[6] = &set.pool_mr->fid;
	below[7] = &set.eq->fid;
	KUNIT_ASSERT_EQ(test, fi_domain_bind(set.domain, &set.eq->fid, 0), 0);
	for (i = 0; i < ARRAY_SIZE(below); i++)
		KUNIT_EXPECT_FALSE(test, below[i]->dead);
	kofi_device_removed(&set.fabric->fid, "dead0");
	for (i = 0; i < ARRAY_SIZE(below); i++) {
		KUNIT_EXPECT_TRUE(test, below[i]->dead);
		KUNIT_EXPECT_EQ(test, fi_control(below[i], FI_GETOPSFLAG, NULL), -ENODEV);
	}
	KUNIT_EXPECT_EQ(test, fi_domain(set.fabric, fake->info, &set.domain, NULL), -ENODEV);
	KUNIT_EXPECT_EQ(test, fi_eq_read(set.eq, &event, &entry, sizeof(entry), 0),
			(ssize_t)sizeof(entry));
	KUNIT_EXPECT_EQ(test, event, (u32)FI_DEVICE_REMOVED);
	KUNIT_EXPECT_PTR_EQ(test, entry.fid, below[0]);
	KUNIT_EXPECT_EQ(test, fi_eq_read(set.eq, &event, &entry, sizeof(entry), 0), -EAGAIN);
}

/* Completions written after the removal can be read; then reads fail. */
static void last_completions(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "dead");
	const struct fi_cq_err_entry failed = { .err = ENODEV };
	struct fi_cq_err_entry error = { };
	struct fi_cq_tagged_entry entry;
	struct kofi_fake_set set;
	struct kofi_cq *cq;

	kofi_fake_open_all(test, fake, &set);
	cq = kofi_fake_to_cq(set.cq);
	KUNIT_ASSERT_EQ(test, kofi_cq_reserve(cq), 0);
	kofi_device_removed(&set.domain->fid, "dead0");
	KUNIT_EXPECT_EQ(test, fi_cq_read(set.cq, &entry, 1), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(set.cq, &entry, 1, NULL, -1),
			-ENODEV);
	kofi_cq_write_err(cq, &failed);
	kofi_cq_notify(cq);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(set.cq, &entry, 1, NULL, -1),
			-FI_EAVAIL);
	KUNIT_EXPECT_EQ(test, fi_cq_readerr(set.cq, &error, 0), 1);
	KUNIT_EXPECT_EQ(test, error.err, ENODEV);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(set.cq, &entry, 1, NULL, -1),
			-ENODEV);

	fi_cntr_add(set.cntr, 1);
	KUNIT_EXPECT_EQ(test, fi_cntr_wait(set.cntr, 1, -1), 0);
	KUNIT_EXPECT_EQ(test, fi_cntr_wait(set.cntr, 2, -1), -ENODEV);
}

/* A dead object returns -ENODEV, not the error for a wrong state. */
static void binding_the_dead(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "dead");
	struct kofi_fake_set set;

	kofi_fake_open_all(test, fake, &set);
	kofi_device_removed(&set.domain->fid, "dead0");
	KUNIT_EXPECT_EQ(test, fi_ep_bind(set.ep, &set.av->fid, 0), -ENODEV);
	KUNIT_EXPECT_EQ(test, fi_domain_bind(set.domain, &set.eq->fid, 0),
			-ENODEV);
	KUNIT_EXPECT_EQ(test, fi_enable(set.ep), -ENODEV);
}

/* An event must not refer to a domain that was closed. */
static void closed_before_read(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "dead");
	struct fid_fabric *fabric = kofi_fake_fabric(test, fake);
	struct fid_eq *eq = kofi_fake_eq(test, fabric, NULL);
	struct fid_domain *domain[2];
	struct fi_eq_device_entry entry;
	u32 event;
	int i;

	for (i = 0; i < 2; i++) {
		domain[i] = kofi_fake_domain(test, fake, fabric);
		KUNIT_ASSERT_EQ(test,
				fi_domain_bind(domain[i], &eq->fid, 0), 0);
	}
	kofi_device_removed(&domain[0]->fid, "dead0");
	kofi_device_removed(&domain[1]->fid, "dead1");
	kofi_fake_close(test, &domain[0]->fid);

	KUNIT_EXPECT_EQ(test, fi_eq_read(eq, &event, &entry, sizeof(entry), 0),
			(ssize_t)sizeof(entry));
	KUNIT_EXPECT_EQ(test, event, (u32)FI_DEVICE_REMOVED);
	KUNIT_EXPECT_PTR_EQ(test, entry.fid, &domain[1]->fid);
	KUNIT_EXPECT_STREQ(test, entry.domain_name, "dead1");
	KUNIT_EXPECT_EQ(test, fi_eq_read(eq, &event, &entry, sizeof(entry), 0),
			-EAGAIN);
}

/* An event that the ULP wrote may name any object, and stays when that object is closed. */
static void own_events_stay(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "dead");
	struct fid_fabric *fabric = kofi_fake_fabric(test, fake);
	struct fi_eq_attr attr = { .flags = FI_WRITE };
	struct fid_eq *eq = kofi_fake_eq(test, fabric, &attr);
	struct fid_domain *domain = kofi_fake_domain(test, fake, fabric);
	struct fi_eq_entry entry = { .fid = &domain->fid, .data = 7 };
	u32 event;

	KUNIT_ASSERT_EQ(test, fi_domain_bind(domain, &eq->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry),
					  0), (ssize_t)sizeof(entry));
	KUNIT_ASSERT_EQ(test, kofi_eq_write_event(eq, NULL, FI_NOTIFY, &entry,
						  sizeof(entry), NULL), 0);
	kofi_fake_close(test, &domain->fid);
	KUNIT_EXPECT_EQ(test, fi_eq_read(eq, &event, &entry, sizeof(entry), 0),
			(ssize_t)sizeof(entry));
	KUNIT_EXPECT_EQ(test, entry.data, 7);
	KUNIT_EXPECT_EQ(test, fi_eq_read(eq, &event, &entry, sizeof(entry), 0),
			-EAGAIN);
}

/* Events about closed objects of any class are dropped: their readers would dereference them. */
static void any_class_forgotten(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "dead");
	struct fi_eq_entry entry = {};
	struct kofi_fake_set set;
	struct fid *fids[6];
	u32 event;
	int i;

	kofi_fake_open_all(test, fake, &set);
	fids[0] = &set.pool_mr->fid;
	fids[1] = &set.mr->fid;
	fids[2] = &set.ep->fid;
	fids[3] = &set.cntr->fid;
	fids[4] = &set.cq->fid;
	fids[5] = &set.av->fid;
	for (i = 0; i < ARRAY_SIZE(fids); i++) {
		entry.fid = fids[i];
		KUNIT_ASSERT_EQ(test, kofi_eq_write_event(set.eq, NULL, FI_NOTIFY,
							  &entry,
							  sizeof(entry), NULL), 0);
	}
	for (i = 0; i < ARRAY_SIZE(fids); i++) {
		KUNIT_EXPECT_EQ(test, fi_eq_read(set.eq, &event, &entry,
						 sizeof(entry), FI_PEEK),
				(ssize_t)sizeof(entry));
		KUNIT_EXPECT_PTR_EQ(test, entry.fid, fids[i]);
		kofi_fake_close(test, fids[i]);
	}
	KUNIT_EXPECT_EQ(test, fi_eq_read(set.eq, &event, &entry,
					 sizeof(entry), 0), -EAGAIN);
}

/* Removal also wakes sleepers of a queue for which the provider has replaced one op. */
static void own_op_wakes(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "dead");
	struct kofi_thread cq_thread, cntr_thread;
	struct fi_ops_cntr cntr_ops;
	struct fi_ops_cq cq_ops;
	struct kofi_fake_set set;

	kofi_fake_open_all(test, fake, &set);
	cq_ops = *set.cq->ops;
	cntr_ops = *set.cntr->ops;
	cq_ops.signal = NULL;
	cntr_ops.set = NULL;
	set.cq->ops = &cq_ops;
	set.cntr->ops = &cntr_ops;
	kofi_thread_start(test, &cq_thread, cq_sleeper, set.cq);
	kofi_thread_start(test, &cntr_thread, cntr_sleeper, set.cntr);
	KUNIT_EXPECT_TRUE(test,
			  kofi_soon(kofi_sleepers(set.cq->fid.wait) &&
				    kofi_sleepers(set.cntr->fid.wait)));
	kofi_device_removed(&set.domain->fid, "dead0");
	kofi_thread_join(test, &cq_thread);
	kofi_thread_join(test, &cntr_thread);
	KUNIT_EXPECT_EQ(test, cq_thread.ret, -ENODEV);
	KUNIT_EXPECT_EQ(test, cntr_thread.ret, -ENODEV);
}

static struct kunit_case dead_cases[] = {
	KUNIT_CASE(sleepers_wake),
	KUNIT_CASE(all_below),
	KUNIT_CASE(last_completions),
	KUNIT_CASE(binding_the_dead),
	KUNIT_CASE(closed_before_read),
	KUNIT_CASE(own_events_stay),
	KUNIT_CASE(any_class_forgotten),
	KUNIT_CASE(own_op_wakes),
	{}
};

static struct kunit_suite dead_suite = {
	.name		= "kofi_dead",
	.test_cases	= dead_cases,
};

kunit_test_suite(dead_suite);
