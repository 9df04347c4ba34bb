// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues used by one thread: formats, credits, order, errors. cq_wait_kunit.c
 * tests several threads and sleepers, handler_kunit.c handlers.
 */
#include <linux/prandom.h>
#include "cq_test.h"

static void cq_attributes(struct kunit *test)
{
	struct kofi_cq *cq = kunit_kzalloc(test, sizeof(*cq), GFP_KERNEL);
	struct fi_cq_attr attr = { .size = cq_config.max_size + 1 };

	KUNIT_ASSERT_NOT_NULL(test, cq);
	KUNIT_EXPECT_EQ(test, kofi_cq_init(cq, &attr, &cq_config),
			-EINVAL);
	attr.size = 0;
	KUNIT_ASSERT_EQ(test, kofi_cq_init(cq, &attr, &cq_config), 0);
	KUNIT_EXPECT_EQ(test, attr.size, CQ_SIZE);
	KUNIT_EXPECT_EQ(test, attr.format, FI_CQ_FORMAT_CONTEXT);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(&cq->cq_fid, NULL, 0, NULL, -1),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_cq_signal(&cq->cq_fid), -EOPNOTSUPP);
	kofi_cq_fini(cq);
}

static void cq_open_plain(struct kunit *test)
{
	struct fi_cq_attr attr = { .size = 65537 };
	struct kofi_cq *kcq;
	struct fid_cq *cq;

	KUNIT_EXPECT_EQ(test, kofi_cq_open(NULL, &attr, &cq, NULL), -EINVAL);
	attr.size = 65536;
	KUNIT_ASSERT_EQ(test, kofi_cq_open(NULL, &attr, &cq, NULL), 0);
	/* A read returns no more entries than requested. */
	kcq = container_of(cq, struct kofi_cq, cq_fid);
	KUNIT_EXPECT_EQ(test, kcq->mask, attr.size - 1);
	KUNIT_EXPECT_EQ(test, cq->fid.ops->close(&cq->fid), 0);
	attr.size = 0;
	KUNIT_ASSERT_EQ(test, kofi_cq_open(NULL, &attr, &cq, NULL), 0);
	KUNIT_EXPECT_GT(test, attr.size, 0);
	KUNIT_EXPECT_EQ(test, cq->fid.ops->close(&cq->fid), 0);
}

static const struct cq_format {
	const char		*name;
	enum fi_cq_format	format;
	size_t			size;
} cq_formats[] = {
	{ "unspec", FI_CQ_FORMAT_UNSPEC, sizeof(struct fi_cq_entry) },
	{ "context", FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry) },
	{ "msg", FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry) },
	{ "data", FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry) },
	{ "tagged", FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry) },
};

KUNIT_ARRAY_PARAM_DESC(cq_formats, cq_formats, name);

/* Entries are adjacent in the reader's buffer, and bytes after the last aren't touched. */
static void cq_format(struct kunit *test)
{
	const struct cq_format *format = test->param_value;
	struct fi_cq_tagged_entry want;
	u8 buf[4 * sizeof(want)];
	struct kofi_cq *cq;
	int i;

	cq = cq_make_attr(test, (struct fi_cq_attr) {
		.format	= format->format,
	});
	for (i = 0; i < 3; i++)
		cq_add(test, cq, i);
	memset(buf, 0xa5, sizeof(buf));
	KUNIT_EXPECT_EQ(test, fi_cq_read(&cq->cq_fid, buf, 4), 3);
	for (i = 0; i < 3; i++) {
		want = cq_entry(i);
		KUNIT_EXPECT_MEMEQ(test, buf + i * format->size, &want,
				   format->size);
	}
	KUNIT_EXPECT_NULL(test, memchr_inv(buf + 3 * format->size, 0xa5,
					   sizeof(buf) - 3 * format->size));
	cq_expect_idle(test, cq);
}

static void cq_full(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);
	struct fi_cq_tagged_entry entry[CQ_ALL];
	int i;

	for (i = 0; i < CQ_SIZE; i++)
		KUNIT_ASSERT_EQ(test, kofi_cq_reserve(cq), 0);
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(cq), -EAGAIN);
	for (i = 0; i < CQ_SIZE; i++)
		cq_write(cq, i);
	/* Unread completions use credits, as outstanding operations do. */
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(cq), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fi_cq_read(&cq->cq_fid, entry, 2), 2);
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(cq), 0);
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(cq), 0);
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(cq), -EAGAIN);
	kofi_cq_unreserve(cq);
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(cq), 0);
	kofi_cq_unreserve(cq);
	kofi_cq_unreserve(cq);
	KUNIT_EXPECT_EQ(test, fi_cq_read(&cq->cq_fid, entry, CQ_ALL),
			CQ_SIZE - 2);
	cq_expect_idle(test, cq);
}

/* Posts and unsolicited completions can't use each other's credits. */
static void cq_reserve_apart(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);
	struct fi_cq_tagged_entry entry[CQ_ALL];
	int i;

	for (i = 0; i < CQ_RESERVE; i++) {
		KUNIT_ASSERT_EQ(test, kofi_cq_reserve_unsolicited(cq), 0);
		cq_write_unsolicited(cq, i);
	}
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve_unsolicited(cq), -EAGAIN);
	for (i = 0; i < CQ_SIZE; i++)
		cq_add(test, cq, CQ_RESERVE + i);
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(cq), -EAGAIN);

	/* A read returns the credit to the pool that it was taken from. */
	KUNIT_EXPECT_EQ(test, fi_cq_read(&cq->cq_fid, entry, CQ_RESERVE),
			CQ_RESERVE);
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(cq), -EAGAIN);
	KUNIT_EXPECT_EQ(test, atomic_read(&cq->reserve), CQ_RESERVE);
	KUNIT_EXPECT_EQ(test, fi_cq_read(&cq->cq_fid, entry, CQ_ALL), CQ_SIZE);
	for (i = 0; i < CQ_SIZE; i++)
		KUNIT_EXPECT_TRUE(test, cq_entry_ok(&entry[i]));
	cq_expect_idle(test, cq);
}

/* The provider is notified once for each refused request of the reserve. */
static void cq_replenished(struct kunit *test)
{
	struct cq_hungry *hungry = cq_make_hungry(test);
	struct fi_cq_tagged_entry entry[2];
	struct kofi_cq *cq = &hungry->cq;
	struct fi_cq_err_entry err = { };
	int i;

	for (i = 0; i < CQ_RESERVE; i++) {
		KUNIT_ASSERT_EQ(test, cq_reserve_or_starve(hungry), 0);
		cq_write_unsolicited(cq, i);
	}
	KUNIT_EXPECT_EQ(test, fi_cq_read(&cq->cq_fid, entry, 1), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&hungry->fed), 0);
	KUNIT_EXPECT_EQ(test, cq_reserve_or_starve(hungry), 0);
	KUNIT_EXPECT_EQ(test, cq_reserve_or_starve(hungry), -EAGAIN);
	KUNIT_EXPECT_EQ(test, cq_reserve_or_starve(hungry), -EAGAIN);
	KUNIT_EXPECT_EQ(test, atomic_read(&hungry->fed), 0);
	KUNIT_EXPECT_EQ(test, fi_cq_read(&cq->cq_fid, entry, 1), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&hungry->fed), 1);
	KUNIT_EXPECT_EQ(test, fi_cq_read(&cq->cq_fid, entry, 1), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&hungry->fed), 1);
	cq_write_unsolicited(cq, i);
	KUNIT_EXPECT_EQ(test, fi_cq_read(&cq->cq_fid, entry, 1), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&hungry->fed), 1);

	/* Reading completions of posts doesn't refill the reserve. */
	for (i = 0; i < CQ_RESERVE; i++)
		KUNIT_ASSERT_EQ(test, cq_reserve_or_starve(hungry), 0);
	KUNIT_EXPECT_EQ(test, cq_reserve_or_starve(hungry), -EAGAIN);
	cq_add(test, cq, 1);
	cq_add_err(test, cq, 2);
	cq_write_unsolicited(cq, 3);
	KUNIT_EXPECT_EQ(test, fi_cq_read(&cq->cq_fid, entry, 2), 1);
	KUNIT_EXPECT_EQ(test, fi_cq_readerr(&cq->cq_fid, &err, 0), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&hungry->fed), 1);
	KUNIT_EXPECT_EQ(test, fi_cq_read(&cq->cq_fid, entry, 2), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&hungry->fed), 2);
}

/* Each waiter is called once; not one that was forgotten. */
static void cq_waiters(struct kunit *test)
{
	struct cq_hungry *hungry = cq_make_hungry(test), *other = cq_make_hungry(test);
	struct kofi_cq *cq = &hungry->cq;
	int i;

	for (i = 0; i < CQ_RESERVE; i++)
		KUNIT_ASSERT_EQ(test, kofi_cq_reserve_unsolicited(cq), 0);
	KUNIT_EXPECT_EQ(test, kofi_cq_starve(cq, &hungry->waiter), -EAGAIN);
	KUNIT_EXPECT_EQ(test, kofi_cq_starve(cq, &other->waiter), -EAGAIN);
	kofi_cq_unreserve_unsolicited(cq, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&hungry->fed), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&other->fed), 1);
	kofi_cq_unreserve_unsolicited(cq, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&hungry->fed), 1);

	/* An entry that came in between is reserved. The waiter is called nevertheless. */
	KUNIT_EXPECT_EQ(test, kofi_cq_starve(cq, &hungry->waiter), 0);
	KUNIT_EXPECT_EQ(test, kofi_cq_starve(cq, &other->waiter), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&cq->reserve), 0);
	kofi_cq_forget(cq, &other->waiter);
	kofi_cq_forget(cq, &other->waiter);
	kofi_cq_forget(NULL, &other->waiter);
	kofi_cq_unreserve_unsolicited(cq, CQ_RESERVE);
	KUNIT_EXPECT_EQ(test, atomic_read(&hungry->fed), 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&other->fed), 1);
	cq_expect_idle(test, cq);
}

/* Unsolicited completions may be errors or be dropped; the reserve keeps its size. */
static void cq_reserve_stays(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);
	struct fi_cq_err_entry error = cq_err_entry(1);
	int i;

	for (i = 0; i < 2 * CQ_RESERVE; i++) {
		KUNIT_ASSERT_EQ(test, kofi_cq_reserve_unsolicited(cq), 0);
		kofi_cq_write_err_unsolicited(cq, &error);
		KUNIT_EXPECT_EQ(test, fi_cq_readerr(&cq->cq_fid, &error, 0), 1);
		KUNIT_ASSERT_EQ(test, kofi_cq_reserve_unsolicited(cq), 0);
		kofi_cq_unreserve_unsolicited(cq, 1);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&cq->reserve), CQ_RESERVE);
	KUNIT_EXPECT_EQ(test, atomic_read(&cq->credits), CQ_SIZE);
}

/* A provider that returns an entry of the reserve unused is notified as well. */
static void cq_unreserve_replenishes(struct kunit *test)
{
	struct cq_hungry *hungry = cq_make_hungry(test);
	struct kofi_cq *cq = &hungry->cq;
	int i;

	for (i = 0; i < CQ_RESERVE; i++)
		KUNIT_ASSERT_EQ(test, kofi_cq_reserve_unsolicited(cq), 0);
	KUNIT_EXPECT_EQ(test, cq_reserve_or_starve(hungry), -EAGAIN);
	kofi_cq_unreserve_unsolicited(cq, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&hungry->fed), 1);
	while (--i)
		kofi_cq_unreserve_unsolicited(cq, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&hungry->fed), 1);
}

static void cq_add_err_data(struct kunit *test, struct kofi_cq *cq, u8 fill)
{
	struct fi_cq_err_entry entry = cq_err_entry(fill);

	entry.err_data_size = 16;
	entry.err_data = kmalloc(entry.err_data_size, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, entry.err_data);
	memset(entry.err_data, fill, entry.err_data_size);
	KUNIT_ASSERT_EQ(test, kofi_cq_reserve(cq), 0);
	kofi_cq_write_err(cq, &entry);
}

/*
 * The provider's data of an error is copied to the reader's buffer as far as it fits, or
 * stays in the queue's buffer until the next read. KASAN and kmemleak check that it is
 * freed exactly once.
 */
static void cq_err_data(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);
	struct fid_cq *fid = &cq->cq_fid;
	struct fi_cq_err_entry err = { };
	struct fi_cq_tagged_entry entry;
	u8 buf[24] = { };
	int i;

	for (i = 1; i <= 6; i++)
		cq_add_err_data(test, cq, i);
	for (i = 1; i <= 2; i++) {
		err.err_data_size = 0;
		KUNIT_EXPECT_EQ(test, fi_cq_readerr(fid, &err, 0), 1);
		KUNIT_ASSERT_EQ(test, err.err_data_size, 16);
		KUNIT_EXPECT_EQ(test, ((u8 *)err.err_data)[15], i);
		KUNIT_EXPECT_PTR_EQ(test, cq->err_data, err.err_data);
	}
	for (i = 3; i <= 4; i++) {
		err.err_data = buf;
		err.err_data_size = i == 3 ? 8 : sizeof(buf);
		KUNIT_EXPECT_EQ(test, fi_cq_readerr(fid, &err, 0), 1);
		KUNIT_EXPECT_PTR_EQ(test, err.err_data, (void *)buf);
		KUNIT_EXPECT_EQ(test, err.err_data_size, i == 3 ? 8 : 16);
		KUNIT_EXPECT_EQ(test, buf[err.err_data_size - 1], i);
		KUNIT_EXPECT_EQ(test, buf[err.err_data_size], 0);
	}
	/* Any read frees it. */
	KUNIT_EXPECT_EQ(test, fi_cq_read(fid, &entry, 1), -FI_EAVAIL);
	KUNIT_EXPECT_NULL(test, cq->err_data);
	/* When the queue is closed, one error has been read and another one hasn't. */
	err.err_data_size = 0;
	KUNIT_EXPECT_EQ(test, fi_cq_readerr(fid, &err, 0), 1);
	KUNIT_EXPECT_EQ(test, err.err_data_size, 16);
	/* A slot that held an error is reused for a successful completion. */
	cq_add(test, cq, 7);
	KUNIT_EXPECT_LE(test, sizeof(struct kofi_cq_slot), 96);
}

static void cq_errors_keep_place(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);
	struct fi_cq_tagged_entry entry[4];
	struct fi_cq_err_entry err = { };
	struct fid_cq *fid = &cq->cq_fid;

	KUNIT_EXPECT_EQ(test, fi_cq_readerr(fid, &err, 0), -EAGAIN);
	cq_add(test, cq, 1);
	cq_add_err(test, cq, 2);
	cq_add_err(test, cq, 3);
	cq_add(test, cq, 4);

	KUNIT_EXPECT_EQ(test, fi_cq_readerr(fid, &err, 0), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fi_cq_read(fid, entry, 4), 1);
	KUNIT_EXPECT_PTR_EQ(test, entry[0].op_context, (void *)1);
	KUNIT_EXPECT_EQ(test, fi_cq_read(fid, entry, 4), -FI_EAVAIL);
	KUNIT_EXPECT_EQ(test, fi_cq_read(fid, entry, 0), -FI_EAVAIL);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(fid, entry, 4, NULL, 0), -FI_EAVAIL);
	KUNIT_EXPECT_EQ(test, fi_cq_readerr(fid, &err, FI_PEEK), -FI_EBADFLAGS);
	KUNIT_EXPECT_EQ(test, fi_cq_readerr(fid, &err, 0), 1);
	KUNIT_EXPECT_PTR_EQ(test, err.op_context, (void *)2);
	KUNIT_EXPECT_TRUE(test, cq_err_entry_ok(&err));
	KUNIT_EXPECT_EQ(test, fi_cq_read(fid, entry, 4), -FI_EAVAIL);
	KUNIT_EXPECT_EQ(test, fi_cq_error(fid, &err, 0), 1);
	KUNIT_EXPECT_PTR_EQ(test, err.op_context, (void *)3);
	KUNIT_EXPECT_EQ(test, fi_cq_readerr(fid, &err, 0), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fi_cq_read(fid, entry, 4), 1);
	KUNIT_EXPECT_PTR_EQ(test, entry[0].op_context, (void *)4);
	cq_expect_idle(test, cq);
}

/* An error with errno 0 must not be taken for a success. */
static void cq_error_zero(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);
	struct fi_cq_err_entry err = { };

	KUNIT_ASSERT_EQ(test, kofi_cq_reserve(cq), 0);
	kofi_cq_write_err(cq, &err);
	KUNIT_EXPECT_EQ(test, fi_cq_readerr(&cq->cq_fid, &err, 0), 1);
	KUNIT_EXPECT_EQ(test, err.err, FI_EOTHER);
}

static void cq_readfrom(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);
	struct fi_cq_tagged_entry entry[4];
	fi_addr_t from[4] = { 99, 99, 99, 99 };

	cq_add(test, cq, 1);
	KUNIT_ASSERT_EQ(test, kofi_cq_reserve_unsolicited(cq), 0);
	cq_write_unsolicited(cq, 2);
	KUNIT_ASSERT_EQ(test, kofi_cq_reserve(cq), 0);
	entry[0] = cq_entry(3);
	kofi_cq_write(cq, &entry[0], FI_ADDR_NOTAVAIL);
	cq_add(test, cq, 4);

	KUNIT_EXPECT_EQ(test, fi_cq_readfrom(&cq->cq_fid, entry, 2, from), 2);
	KUNIT_EXPECT_EQ(test, from[0], 1 * 13 + 5);
	KUNIT_EXPECT_EQ(test, from[1], 2 * 13 + 5);
	KUNIT_EXPECT_EQ(test, from[2], 99);
	KUNIT_EXPECT_EQ(test, fi_cq_sreadfrom(&cq->cq_fid, entry, 1, from, NULL,
					      0), 1);
	KUNIT_EXPECT_EQ(test, from[0], FI_ADDR_NOTAVAIL);
	KUNIT_EXPECT_EQ(test, fi_cq_readfrom(&cq->cq_fid, entry, 1, NULL), 1);
	cq_expect_idle(test, cq);
}

static void cq_count_zero(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);

	KUNIT_EXPECT_EQ(test, fi_cq_read(&cq->cq_fid, NULL, 0), -EAGAIN);
	cq_add(test, cq, 1);
	KUNIT_EXPECT_EQ(test, fi_cq_read(&cq->cq_fid, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(&cq->cq_fid, NULL, 0, NULL, -1), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&cq->credits), CQ_SIZE - 1);
}

/* Model of a queue. */
struct cq_model {
	struct rnd_state	rnd;
	unsigned int		asked;		/* operations posted, not completed */
	unsigned int		unsolicited;	/* entries reserved, not written */
	unsigned int		count;
	struct cq_model_entry {
		unsigned long	id;
		bool		err;
		bool		unsolicited;
	} ring[CQ_ALL];
	struct fi_cq_tagged_entry entry[CQ_ALL];
	fi_addr_t		from[CQ_ALL];
};

static unsigned int cq_model_used(const struct cq_model *model, bool unsolicited)
{
	unsigned int i, used = unsolicited ? model->unsolicited : model->asked;

	for (i = 0; i < model->count; i++)
		used += model->ring[i].unsolicited == unsolicited;
	return used;
}

static void cq_model_pop(struct cq_model *model, unsigned int count)
{
	model->count -= count;
	memmove(model->ring, model->ring + count,
		model->count * sizeof(model->ring[0]));
}

static void cq_model_push(struct cq_model *model, unsigned long id, bool err,
			  bool unsolicited)
{
	model->ring[model->count++] = (struct cq_model_entry) {
		.id = id, .err = err, .unsolicited = unsolicited,
	};
}

static void cq_model_read(struct kunit *test, struct kofi_cq *cq,
			  struct cq_model *model, size_t room)
{
	struct fi_cq_tagged_entry *entry = model->entry;
	fi_addr_t *from = model->from;
	ssize_t want = 0, i;

	while (want < model->count && want < room && !model->ring[want].err)
		want++;
	if (!model->count)
		want = -EAGAIN;
	else if (model->ring[0].err)
		want = -FI_EAVAIL;
	KUNIT_ASSERT_EQ(test, fi_cq_readfrom(&cq->cq_fid, entry, room, from),
			want);
	for (i = 0; i < want; i++) {
		KUNIT_ASSERT_PTR_EQ(test, entry[i].op_context,
				    (void *)model->ring[i].id);
		KUNIT_ASSERT_EQ(test, from[i], model->ring[i].id * 13 + 5);
		KUNIT_ASSERT_TRUE(test, cq_entry_ok(&entry[i]));
	}
	if (want > 0)
		cq_model_pop(model, want);
}

static void cq_model_readerr(struct kunit *test, struct kofi_cq *cq,
			     struct cq_model *model)
{
	bool err = model->count && model->ring[0].err;
	struct fi_cq_err_entry entry = { };

	KUNIT_ASSERT_EQ(test, fi_cq_readerr(&cq->cq_fid, &entry, 0),
			err ? 1 : -EAGAIN);
	if (!err)
		return;
	KUNIT_ASSERT_PTR_EQ(test, entry.op_context, (void *)model->ring[0].id);
	KUNIT_ASSERT_TRUE(test, cq_err_entry_ok(&entry));
	cq_model_pop(model, 1);
}

static void cq_model_write(struct kofi_cq *cq, struct cq_model *model,
			   unsigned long id, bool err)
{
	if (!model->asked)
		return;
	model->asked--;
	cq_model_push(model, id, err, false);
	if (err)
		cq_write_err(cq, id);
	else
		cq_write(cq, id);
}

static void cq_model_step(struct kunit *test, struct kofi_cq *cq,
			  struct cq_model *model, unsigned long id)
{
	u32 dice = prandom_u32_state(&model->rnd) % 16;

	if (dice < 4) {
		bool room = cq_model_used(model, false) < CQ_SIZE;

		KUNIT_ASSERT_EQ(test, kofi_cq_reserve(cq), room ? 0 : -EAGAIN);
		model->asked += room;
	} else if (dice < 6) {
		bool room = cq_model_used(model, true) < CQ_RESERVE;

		KUNIT_ASSERT_EQ(test, kofi_cq_reserve_unsolicited(cq),
				room ? 0 : -EAGAIN);
		model->unsolicited += room;
	} else if (dice < 8 && model->unsolicited) {
		model->unsolicited--;
		cq_model_push(model, id, false, true);
		cq_write_unsolicited(cq, id);
	} else if (dice < 11) {
		cq_model_write(cq, model, id, dice == 10);
	} else if (dice < 12 && model->asked) {
		model->asked--;
		kofi_cq_unreserve(cq);
	} else if (dice < 13) {
		cq_model_readerr(test, cq, model);
	} else {
		cq_model_read(test, cq, model,
			      1 + prandom_u32_state(&model->rnd) % CQ_ALL);
	}
}

static void cq_model(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);
	struct cq_model *model;
	unsigned long id;

	model = kunit_kzalloc(test, sizeof(*model), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, model);
	prandom_seed_state(&model->rnd, 20240229);
	/* Positions in the ring wrap around on the way. */
	cq->head = -1000;
	cq->tail = -1000;
	for (id = 0; id < 20000; id++) {
		cq_model_step(test, cq, model, id);
		KUNIT_ASSERT_EQ(test, atomic_read(&cq->credits),
				CQ_SIZE - cq_model_used(model, false));
		KUNIT_ASSERT_EQ(test, atomic_read(&cq->reserve),
				CQ_RESERVE - cq_model_used(model, true));
	}
}

static struct kunit_case cq_cases[] = {
	KUNIT_CASE(cq_attributes),
	KUNIT_CASE(cq_open_plain),
	KUNIT_CASE_PARAM(cq_format, cq_formats_gen_params),
	KUNIT_CASE(cq_full),
	KUNIT_CASE(cq_reserve_apart),
	KUNIT_CASE(cq_replenished),
	KUNIT_CASE(cq_waiters),
	KUNIT_CASE(cq_reserve_stays),
	KUNIT_CASE(cq_unreserve_replenishes),
	KUNIT_CASE(cq_err_data),
	KUNIT_CASE(cq_errors_keep_place),
	KUNIT_CASE(cq_error_zero),
	KUNIT_CASE(cq_readfrom),
	KUNIT_CASE(cq_count_zero),
	KUNIT_CASE(cq_model),
	{}
};

static struct kunit_suite cq_suite = {
	.name		= "kofi_cq",
	.test_cases	= cq_cases,
};

kunit_test_suite(cq_suite);

MODULE_DESCRIPTION("KUnit tests of kOFI's completion queues");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
