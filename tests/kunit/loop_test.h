/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Two endpoints of the loopback provider, and helpers to read their completions. */
#ifndef KOFI_LOOP_TEST_H
#define KOFI_LOOP_TEST_H

#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <kofi/cm.h>
#include <kofi/endpoint.h>
#include <kofi/eq.h>
#include <kofi/rma.h>
#include <kofi/tagged.h>
#include "crew.h"

#define LOOP_BUF	(64 * 1024)

/* Settings of a test that differ from the defaults. */
struct loop_opts {
	size_t			cq_size;
	size_t			tx_size;
	u64			bind;		/* FI_SELECTIVE_COMPLETION or 0 */
	enum fi_av_type		av_type;
	u64			caps;
	bool			undirected;	/* capabilities have no directions */
	void			(*handler)(struct fid_cq *cq, void *context);
	void			*context;	/* of the handler, which has FI_CQ_SOFTIRQ */
};

struct loop_end {
	struct fid_ep	*ep;
	struct fid_cq	*cq;
	fi_addr_t	addr;			/* address in the common vector */
	u8		*buf;
};

struct loop_pair {
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct fid_av		*av;
	struct fid_mr		*mr;
	struct fid_cntr		*cntr;
	struct loop_end		a, b;
};

/* A completion, or an error in the same form. */
struct loop_comp {
	struct fi_cq_tagged_entry	entry;
	struct fi_cq_err_entry		error;
	fi_addr_t			src;
};

#define LOOP_CLOSE(obj)						\
do {								\
	if (obj)						\
		WARN_ON(fi_close(&(obj)->fid));			\
	(obj) = NULL;						\
} while (0)

static inline void loop_pair_close(void *data)
{
	struct loop_pair *pair = data;

	LOOP_CLOSE(pair->a.ep);
	LOOP_CLOSE(pair->b.ep);
	LOOP_CLOSE(pair->mr);
	LOOP_CLOSE(pair->cntr);
	LOOP_CLOSE(pair->a.cq);
	LOOP_CLOSE(pair->b.cq);
	LOOP_CLOSE(pair->av);
	LOOP_CLOSE(pair->domain);
	LOOP_CLOSE(pair->fabric);
	fi_freeinfo(pair->info);
	kvfree(pair->a.buf);
	kvfree(pair->b.buf);
}

static inline struct fi_info *loop_find(struct kunit *test, u64 caps)
{
	struct fi_info *hints = fi_allocinfo_for("loop", NULL, NULL), *info;

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->caps = caps ?: FI_MSG | FI_TAGGED | FI_RMA | FI_SOURCE;
	hints->tx_attr->op_flags = 0;
	KUNIT_ASSERT_EQ(test, fi_getinfo(fi_version(), NULL, NULL, 0, hints,
					 &info), 0);
	fi_freeinfo(hints);
	return info;
}

static inline void loop_end_open(struct kunit *test, struct loop_pair *pair,
				 struct loop_end *end,
				 const struct loop_opts *opts)
{
	struct fi_cq_attr attr = {
		.size			= opts->cq_size,
		.format			= FI_CQ_FORMAT_TAGGED,
		.handler		= opts->handler,
		.handler_context	= opts->context,
		.flags			= opts->handler ? FI_CQ_SOFTIRQ : 0,
	};

	end->buf = kvzalloc(LOOP_BUF, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, end->buf);
	KUNIT_ASSERT_EQ(test, fi_cq_open(pair->domain, &attr, &end->cq, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_endpoint(pair->domain, pair->info, &end->ep,
					  NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(end->ep, &pair->av->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(end->ep, &end->cq->fid,
					 FI_TRANSMIT | FI_RECV | opts->bind),
			0);
}

static inline void loop_end_enable(struct kunit *test, struct loop_pair *pair,
				   struct loop_end *end)
{
	u8 name[32];
	size_t len = sizeof(name);

	KUNIT_ASSERT_EQ(test, fi_enable(end->ep), 0);
	KUNIT_ASSERT_EQ(test, fi_getname(&end->ep->fid, name, &len), 0);
	KUNIT_ASSERT_EQ(test, fi_av_insert(pair->av, name, 1, &end->addr, 0,
					   NULL), 1);
}

/* Open and bind endpoints; loop_pair() also enables them. */
static inline struct loop_pair *loop_pair_open(struct kunit *test,
					       struct loop_opts opts)
{
	struct loop_pair *pair = kunit_kzalloc(test, sizeof(*pair), GFP_KERNEL);
	struct fi_av_attr av_attr = { .type = opts.av_type };

	KUNIT_ASSERT_NOT_NULL(test, pair);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, loop_pair_close,
							pair), 0);
	pair->info = loop_find(test, opts.caps);
	if (opts.undirected)
		pair->info->caps = opts.caps;
	if (opts.tx_size)
		pair->info->tx_attr->size = opts.tx_size;
	KUNIT_ASSERT_EQ(test, fi_fabric(pair->info->fabric_attr, &pair->fabric,
					NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_domain(pair->fabric, pair->info,
					&pair->domain, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_av_open(pair->domain, &av_attr, &pair->av,
					 NULL), 0);
	loop_end_open(test, pair, &pair->a, &opts);
	loop_end_open(test, pair, &pair->b, &opts);
	return pair;
}

static inline struct loop_pair *loop_pair(struct kunit *test,
					  struct loop_opts opts)
{
	struct loop_pair *pair = loop_pair_open(test, opts);

	loop_end_enable(test, pair, &pair->a);
	loop_end_enable(test, pair, &pair->b);
	return pair;
}

/* Read once. Return: 1, or 0 without a completion. An error has error.err. */
static inline int loop_read(struct loop_end *end, struct loop_comp *comp)
{
	ssize_t ret;

	memset(comp, 0, sizeof(*comp));
	ret = fi_cq_readfrom(end->cq, &comp->entry, 1, &comp->src);
	if (ret == -FI_EAVAIL)
		ret = fi_cq_readerr(end->cq, &comp->error, 0);
	return ret == -EAGAIN ? 0 : ret;
}

/* Wait for a completion of this operation. */
static inline void loop_await(struct kunit *test, struct loop_end *end,
			      void *context, struct loop_comp *comp)
{
	int ret;

	KUNIT_ASSERT_TRUE(test, kofi_soon((ret = loop_read(end, comp))));
	KUNIT_ASSERT_EQ(test, ret, 1);
	KUNIT_ASSERT_PTR_EQ(test, comp->error.err ? comp->error.op_context :
						    comp->entry.op_context,
			    context);
}

static inline void loop_await_ok(struct kunit *test, struct loop_end *end,
				 void *context, u64 flags)
{
	struct loop_comp comp;

	loop_await(test, end, context, &comp);
	KUNIT_EXPECT_EQ(test, comp.error.err, 0);
	KUNIT_EXPECT_EQ(test, comp.entry.flags, flags);
}

static inline void loop_await_err(struct kunit *test, struct loop_end *end,
				  void *context, int err)
{
	struct loop_comp comp;

	loop_await(test, end, context, &comp);
	KUNIT_EXPECT_EQ(test, comp.error.err, err);
}

/* Check that no completion comes within some time. */
static inline void loop_expect_quiet(struct kunit *test, struct loop_end *end)
{
	struct loop_comp comp;

	msleep(20);
	KUNIT_EXPECT_EQ(test, loop_read(end, &comp), 0);
}

static inline void *loop_ctx(unsigned long id)
{
	return (void *)id;
}

#endif /* KOFI_LOOP_TEST_H */
