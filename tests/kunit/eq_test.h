/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Event queues of a fake provider, and events that can be checked. */
#ifndef KOFI_EQ_TEST_H
#define KOFI_EQ_TEST_H

#include "fake.h"

#define EQ_SIZE		8

/**
 * struct eq_bench - an event queue with its provider
 * @fake: the provider
 * @fabric: fabric of the provider
 * @eq: event queue of the fabric
 */
struct eq_bench {
	struct kofi_fake	*fake;
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
};

static inline struct eq_bench *eq_bench_attr(struct kunit *test,
					     struct fi_eq_attr attr)
{
	struct eq_bench *bench = kunit_kzalloc(test, sizeof(*bench),
					       GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bench);
	bench->fake = kofi_fake_new(test, "events");
	bench->fabric = kofi_fake_fabric(test, bench->fake);
	bench->eq = kofi_fake_eq(test, bench->fabric, &attr);
	return bench;
}

static inline struct eq_bench *eq_bench(struct kunit *test)
{
	return eq_bench_attr(test, (struct fi_eq_attr) {
		.size		= EQ_SIZE,
		.flags		= FI_WRITE,
		.wait_obj	= FI_WAIT_UNSPEC,
	});
}

/* All fields of an event are derived from its number and object. */
static inline struct fi_eq_entry eq_entry(struct fid *fid, unsigned long id)
{
	return (struct fi_eq_entry) {
		.fid = fid, .context = (void *)id, .data = id * 7 + 3,
	};
}

static inline int eq_put(struct fid_eq *eq, struct fid *fid, unsigned long id)
{
	struct fi_eq_entry entry = eq_entry(fid, id);

	return kofi_eq_write_event(eq, NULL, 0x20000 + id, &entry, sizeof(entry), NULL);
}

static inline int eq_put_err(struct fid_eq *eq, struct fid *fid,
			     unsigned long id)
{
	const struct fi_eq_err_entry entry = {
		.fid = fid, .context = (void *)id, .data = id * 7 + 3,
		.err = EIO, .prov_errno = id,
	};

	return kofi_eq_write_err(eq, NULL, &entry);
}

/* Return: number of the first event, or the error of fi_eq_read(). */
static inline long eq_get(struct fid_eq *eq)
{
	struct fi_eq_entry entry, want;
	ssize_t ret;
	u32 event;

	ret = fi_eq_read(eq, &event, &entry, sizeof(entry), 0);
	if (ret < 0)
		return ret;
	want = eq_entry(entry.fid, (long)entry.context);
	if (ret != sizeof(entry) || memcmp(&entry, &want, sizeof(want)) ||
	    event != 0x20000 + (long)entry.context)
		return -EPROTO;
	return (long)entry.context;
}

static inline long eq_get_err(struct fid_eq *eq)
{
	struct fi_eq_err_entry err = { };
	ssize_t ret = fi_eq_readerr(eq, &err, 0);

	if (ret < 0)
		return ret;
	if (ret != sizeof(err) || err.err != EIO ||
	    err.data != (long)err.context * 7 + 3 ||
	    err.prov_errno != (long)err.context)
		return -EPROTO;
	return (long)err.context;
}

static inline void eq_fill(struct kunit *test, struct fid_eq *eq,
			   unsigned int size)
{
	unsigned int i;

	for (i = 0; i < size; i++)
		KUNIT_ASSERT_EQ(test, eq_put(eq, NULL, 1000 + i), 0);
	KUNIT_ASSERT_EQ(test, eq_put(eq, NULL, 1), -EAGAIN);
}

static inline void eq_expect_filled(struct kunit *test, struct fid_eq *eq,
				    unsigned int size)
{
	unsigned int i;

	for (i = 0; i < size; i++)
		KUNIT_EXPECT_EQ(test, eq_get(eq), 1000 + i);
}

#endif /* KOFI_EQ_TEST_H */
