/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Completion queues without a provider, and completions that can be checked. */
#ifndef KOFI_CQ_TEST_H
#define KOFI_CQ_TEST_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/string.h>
#include <kofi/provider.h>

#define CQ_SIZE		8
#define CQ_RESERVE	3
#define CQ_ALL		(CQ_SIZE + CQ_RESERVE)

static const struct kofi_cq_config cq_config = {
	.default_size	= CQ_SIZE,
	.max_size	= 64,
	.reserve	= CQ_RESERVE,
};

static inline void cq_fini(void *cq)
{
	kofi_cq_fini(cq);
}

static inline void cq_init(struct kunit *test, struct kofi_cq *cq,
			   struct fi_cq_attr attr,
			   const struct kofi_cq_config *config)
{
	KUNIT_ASSERT_EQ(test, kofi_cq_init(cq, &attr, config), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, cq_fini, cq), 0);
}

static inline struct kofi_cq *cq_make_attr(struct kunit *test,
					   struct fi_cq_attr attr)
{
	struct kofi_cq *cq = kunit_kzalloc(test, sizeof(*cq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, cq);
	cq_init(test, cq, attr, &cq_config);
	return cq;
}

static inline struct kofi_cq *cq_make(struct kunit *test)
{
	return cq_make_attr(test, (struct fi_cq_attr) {
		.format		= FI_CQ_FORMAT_TAGGED,
		.wait_obj	= FI_WAIT_UNSPEC,
		.wait_cond	= FI_CQ_COND_THRESHOLD,
	});
}

/* All fields of a completion are derived from its number. */
static inline struct fi_cq_tagged_entry cq_entry(unsigned long id)
{
	return (struct fi_cq_tagged_entry) {
		.op_context	= (void *)id,
		.flags		= FI_RECV | id << 40,
		.len		= id * 3 + 1,
		.buf		= (void *)(id * 5 + 2),
		.data		= id * 7 + 3,
		.tag		= ~id,
	};
}

static inline bool cq_entry_ok(const struct fi_cq_tagged_entry *entry)
{
	struct fi_cq_tagged_entry want = cq_entry((long)entry->op_context);

	return !memcmp(entry, &want, sizeof(want));
}

static inline struct fi_cq_err_entry cq_err_entry(unsigned long id)
{
	struct fi_cq_tagged_entry entry = cq_entry(id);

	return (struct fi_cq_err_entry) {
		.op_context	= entry.op_context,
		.flags		= entry.flags,
		.len		= entry.len,
		.buf		= entry.buf,
		.data		= entry.data,
		.tag		= entry.tag,
		.olen		= id * 11 + 4,
		.err		= id % 100 + 1,
		.prov_errno	= id % 1000,
		.src_addr	= id * 13 + 5,
	};
}

static inline bool cq_err_entry_ok(const struct fi_cq_err_entry *entry)
{
	struct fi_cq_err_entry want = cq_err_entry((long)entry->op_context);

	return !memcmp(entry, &want, sizeof(want));
}

static inline void cq_write(struct kofi_cq *cq, unsigned long id)
{
	struct fi_cq_tagged_entry entry = cq_entry(id);

	kofi_cq_write(cq, &entry, id * 13 + 5);
}

static inline void cq_write_unsolicited(struct kofi_cq *cq, unsigned long id)
{
	struct fi_cq_tagged_entry entry = cq_entry(id);

	kofi_cq_write_unsolicited(cq, &entry, id * 13 + 5);
}

static inline void cq_write_err(struct kofi_cq *cq, unsigned long id)
{
	struct fi_cq_err_entry entry = cq_err_entry(id);

	kofi_cq_write_err(cq, &entry);
}

/* Post and complete. */
static inline void cq_add(struct kunit *test, struct kofi_cq *cq, unsigned long id)
{
	KUNIT_ASSERT_EQ(test, kofi_cq_reserve(cq), 0);
	cq_write(cq, id);
}

static inline void cq_add_err(struct kunit *test, struct kofi_cq *cq, unsigned long id)
{
	KUNIT_ASSERT_EQ(test, kofi_cq_reserve(cq), 0);
	cq_write_err(cq, id);
}

/* A queue with a waiter for its reserve. */
struct cq_hungry {
	struct kofi_cq		cq;
	struct kofi_cq_waiter	waiter;
	atomic_t		fed;
	struct completion	more;
};

static inline void cq_feed(struct kofi_cq_waiter *waiter)
{
	struct cq_hungry *hungry = container_of(waiter, struct cq_hungry, waiter);

	atomic_inc(&hungry->fed);
	complete(&hungry->more);
}

static inline struct cq_hungry *cq_make_hungry(struct kunit *test)
{
	struct cq_hungry *hungry = kunit_kzalloc(test, sizeof(*hungry),
						 GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, hungry);
	init_completion(&hungry->more);
	INIT_LIST_HEAD(&hungry->waiter.list);
	hungry->waiter.replenished = cq_feed;
	cq_init(test, &hungry->cq, (struct fi_cq_attr) {
		.format = FI_CQ_FORMAT_TAGGED,
	}, &cq_config);
	return hungry;
}

/* Reserve an unsolicited entry, or wait for one. */
static inline int cq_reserve_or_starve(struct cq_hungry *hungry)
{
	return kofi_cq_reserve_unsolicited(&hungry->cq) ?
	       kofi_cq_starve(&hungry->cq, &hungry->waiter) : 0;
}

/* Check that the queue is empty and has all its credits. */
static inline void cq_expect_idle(struct kunit *test, struct kofi_cq *cq)
{
	struct fi_cq_tagged_entry entry;

	KUNIT_EXPECT_EQ(test, fi_cq_read(&cq->cq_fid, &entry, 1), -EAGAIN);
	KUNIT_EXPECT_EQ(test, atomic_read(&cq->credits), CQ_SIZE);
	KUNIT_EXPECT_EQ(test, atomic_read(&cq->reserve), CQ_RESERVE);
}

#endif /* KOFI_CQ_TEST_H */
