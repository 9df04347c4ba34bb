// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Arguments of control calls: invalid ones are refused, and valid ones reach the provider
 * unchanged.
 */
#include <linux/limits.h>
#include <linux/string.h>
#include "fake.h"

#define A(x)	((u64)(unsigned long)(x))
#define CTX	((void *)0x3333)

static u8 memory[64];
static fi_addr_t addrs[4];

struct scene {
	struct kofi_fake *fake;
	struct kofi_fake_set set;
};

static struct scene *new_scene(struct kunit *test)
{
	struct scene *scene = kunit_kzalloc(test, sizeof(*scene), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, scene);
	scene->fake = kofi_fake_new(test, "fake");
	kofi_fake_open_all(test, scene->fake, &scene->set);
	return scene;
}

/* The provider isn't called for arguments that the core refuses. */
#define REFUSED(test, fake, op, err, call)				\
do {									\
	unsigned int __before = kofi_fake_called(fake, op);		\
									\
	KUNIT_EXPECT_EQ_MSG(test, call, err, #call);			\
	KUNIT_EXPECT_EQ_MSG(test, kofi_fake_called(fake, op), __before,	\
			    #call);					\
} while (0)

static void expect_args(struct kunit *test, struct kofi_fake *fake,
			enum kofi_fake_op op, const void *object,
			const u64 *args, unsigned int count)
{
	unsigned int i;

	KUNIT_EXPECT_PTR_EQ(test, (const void *)fake->call[op].object, object);
	for (i = 0; i < KOFI_FAKE_ARGS; i++)
		KUNIT_EXPECT_EQ_MSG(test, fake->call[op].arg[i],
				    i < count ? args[i] : 0, "argument %u", i);
}

#define ARRIVED(test, fake, op, object, ...)				\
do {									\
	const u64 __args[] = { __VA_ARGS__ };				\
									\
	expect_args(test, fake, op, object, __args, ARRAY_SIZE(__args));\
} while (0)

static void fabric_args(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct fi_fabric_attr attr = { .prov_name = "fake", .name = "x" };
	struct fi_fabric_attr bad = {};
	struct fid_fabric *fabric;

	REFUSED(test, fake, FAKE_FABRIC, -EINVAL, fi_fabric(NULL, &fabric, 0));
	REFUSED(test, fake, FAKE_FABRIC, -EINVAL, fi_fabric(&attr, NULL, 0));
	bad.name = "x";
	REFUSED(test, fake, FAKE_FABRIC, -EINVAL, fi_fabric(&bad, &fabric, 0));
	bad.name = NULL;
	bad.prov_name = "fake";
	REFUSED(test, fake, FAKE_FABRIC, -EINVAL, fi_fabric(&bad, &fabric, 0));

	KUNIT_ASSERT_EQ(test, fi_fabric(&attr, &fabric, CTX), 0);
	kofi_fake_close_later(test, &fabric->fid);
	ARRIVED(test, fake, FAKE_FABRIC, fabric, A(&attr), A(CTX));
	KUNIT_EXPECT_EQ(test, fabric->fid.fclass, FI_CLASS_FABRIC);
	KUNIT_EXPECT_PTR_EQ(test, fabric->fid.context, CTX);
}

static void domain_args(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fid_fabric *fabric = s->set.fabric;
	struct fi_info *info = s->fake->info, bare = {};
	struct fid_domain *domain;

	REFUSED(test, s->fake, FAKE_DOMAIN, -EINVAL,
		fi_domain(fabric, NULL, &domain, NULL));
	REFUSED(test, s->fake, FAKE_DOMAIN, -EINVAL,
		fi_domain(fabric, &bare, &domain, NULL));
	REFUSED(test, s->fake, FAKE_DOMAIN, -EINVAL,
		fi_domain(fabric, info, NULL, NULL));
	KUNIT_ASSERT_EQ(test, fi_domain(fabric, info, &domain, CTX), 0);
	kofi_fake_close_later(test, &domain->fid);
	ARRIVED(test, s->fake, FAKE_DOMAIN, domain, A(fabric), A(info), A(CTX));
	KUNIT_EXPECT_EQ(test, domain->fid.fclass, FI_CLASS_DOMAIN);
	KUNIT_EXPECT_PTR_EQ(test, domain->fid.context, CTX);
}

static void endpoint_args(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fid_domain *domain = s->set.domain;
	struct fi_info *info = s->fake->info, part;
	struct fid_ep *ep;

#define WITHOUT(attr)							\
do {									\
	part = *info;							\
	part.attr = NULL;						\
	REFUSED(test, s->fake, FAKE_EP, -EINVAL,			\
		fi_endpoint(domain, &part, &ep, NULL));			\
} while (0)
	WITHOUT(ep_attr);
	WITHOUT(tx_attr);
	WITHOUT(rx_attr);
#undef WITHOUT
	REFUSED(test, s->fake, FAKE_EP, -EINVAL,
		fi_endpoint(domain, NULL, &ep, NULL));
	REFUSED(test, s->fake, FAKE_EP, -EINVAL,
		fi_endpoint(domain, info, NULL, NULL));
	KUNIT_ASSERT_EQ(test, fi_endpoint(domain, info, &ep, CTX), 0);
	kofi_fake_close_later(test, &ep->fid);
	ARRIVED(test, s->fake, FAKE_EP, ep, A(domain), A(info), A(CTX));
	KUNIT_EXPECT_EQ(test, ep->fid.fclass, FI_CLASS_EP);
	KUNIT_EXPECT_PTR_EQ(test, ep->fid.context, CTX);
}

/* An attribute of an opening call, with one invalid value at a time. */
#define BAD_ATTR(test, fake, op, err, attr, field, value, call)		\
do {									\
	typeof((attr).field) __good = (attr).field;			\
									\
	(attr).field = (value);						\
	REFUSED(test, fake, op, err, call);				\
	(attr).field = __good;						\
} while (0)

static void av_args(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fid_domain *domain = s->set.domain;
	struct fi_av_attr attr = { .type = FI_AV_MAP, .count = 5 };
	struct fid_av *av;

#define BAD(err, field, value)						\
	BAD_ATTR(test, s->fake, FAKE_AV, err, attr, field, value,	\
		 fi_av_open(domain, &attr, &av, NULL))
	BAD(-EINVAL, type, FI_AV_TABLE + 1);
	BAD(-EINVAL, type, (enum fi_av_type)-1);
	BAD(-EINVAL, rx_ctx_bits, 1);
	BAD(-EINVAL, rx_ctx_bits, -1);
	BAD(-FI_EBADFLAGS, flags, 1);
#undef BAD
	REFUSED(test, s->fake, FAKE_AV, -EINVAL,
		fi_av_open(domain, NULL, &av, NULL));
	REFUSED(test, s->fake, FAKE_AV, -EINVAL,
		fi_av_open(domain, &attr, NULL, NULL));
	KUNIT_ASSERT_EQ(test, fi_av_open(domain, &attr, &av, CTX), 0);
	kofi_fake_close_later(test, &av->fid);
	ARRIVED(test, s->fake, FAKE_AV, av, A(domain), A(&attr), A(CTX));
	KUNIT_EXPECT_EQ(test, av->fid.fclass, FI_CLASS_AV);
	KUNIT_EXPECT_PTR_EQ(test, av->fid.context, CTX);

	/* The caller gets the provider's choice. */
	attr.type = FI_AV_UNSPEC;
	KUNIT_ASSERT_EQ(test, fi_av_open(domain, &attr, &av, CTX), 0);
	kofi_fake_close_later(test, &av->fid);
	KUNIT_EXPECT_EQ(test, attr.type, FI_AV_TABLE);
}

static void cq_args(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fid_domain *domain = s->set.domain;
	struct fi_cq_attr attr = { .flags = FI_AFFINITY };
	struct fid_cq *cq;

#define BAD(err, field, value)						\
	BAD_ATTR(test, s->fake, FAKE_CQ, err, attr, field, value,	\
		 fi_cq_open(domain, &attr, &cq, NULL))
	BAD(-EINVAL, format, FI_CQ_FORMAT_TAGGED + 1);
	BAD(-EINVAL, wait_obj, FI_WAIT_UNSPEC + 1);
	BAD(-EINVAL, wait_cond, FI_CQ_COND_THRESHOLD + 1);
	BAD(-FI_EBADFLAGS, flags, FI_AFFINITY | 1);
	BAD(-EINVAL, flags, FI_AFFINITY | FI_CQ_SOFTIRQ);
#undef BAD
	REFUSED(test, s->fake, FAKE_CQ, -EINVAL,
		fi_cq_open(domain, NULL, &cq, NULL));
	REFUSED(test, s->fake, FAKE_CQ, -EINVAL,
		fi_cq_open(domain, &attr, NULL, NULL));
	KUNIT_ASSERT_EQ(test, fi_cq_open(domain, &attr, &cq, CTX), 0);
	kofi_fake_close_later(test, &cq->fid);
	ARRIVED(test, s->fake, FAKE_CQ, cq, A(domain), A(&attr), A(CTX));
	KUNIT_EXPECT_EQ(test, cq->fid.fclass, FI_CLASS_CQ);
	KUNIT_EXPECT_PTR_EQ(test, cq->fid.context, CTX);
}

static void cntr_args(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fid_domain *domain = s->set.domain;
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_BYTES };
	struct fid_cntr *cntr;

#define BAD(err, field, value)						\
	BAD_ATTR(test, s->fake, FAKE_CNTR, err, attr, field, value,	\
		 fi_cntr_open(domain, &attr, &cntr, NULL))
	BAD(-EINVAL, events, FI_CNTR_EVENTS_BYTES + 1);
	BAD(-EINVAL, wait_obj, FI_WAIT_UNSPEC + 1);
	BAD(-FI_EBADFLAGS, flags, 1);
#undef BAD
	REFUSED(test, s->fake, FAKE_CNTR, -EINVAL,
		fi_cntr_open(domain, NULL, &cntr, NULL));
	REFUSED(test, s->fake, FAKE_CNTR, -EINVAL,
		fi_cntr_open(domain, &attr, NULL, NULL));
	KUNIT_ASSERT_EQ(test, fi_cntr_open(domain, &attr, &cntr, CTX), 0);
	kofi_fake_close_later(test, &cntr->fid);
	ARRIVED(test, s->fake, FAKE_CNTR, cntr, A(domain), A(&attr), A(CTX));
	KUNIT_EXPECT_EQ(test, cntr->fid.fclass, FI_CLASS_CNTR);
	KUNIT_EXPECT_PTR_EQ(test, cntr->fid.context, CTX);
}

static void eq_args(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fid_fabric *fabric = s->set.fabric;
	struct fi_eq_attr attr = { .flags = FI_WRITE | FI_DEVICE_EVENTS };
	struct fid_eq *eq;

#define BAD(err, field, value)						\
	BAD_ATTR(test, s->fake, FAKE_OPS - 1, err, attr, field, value,	\
		 fi_eq_open(fabric, &attr, &eq, NULL))
	BAD(-EINVAL, wait_obj, FI_WAIT_UNSPEC + 1);
	BAD(-EINVAL, size, 4097);
	BAD(-EINVAL, size, SIZE_MAX);
	BAD(-FI_EBADFLAGS, flags, FI_WRITE | 1);
#undef BAD
	KUNIT_EXPECT_EQ(test, fi_eq_open(fabric, NULL, &eq, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_eq_open(fabric, &attr, NULL, NULL), -EINVAL);
	KUNIT_ASSERT_EQ(test, fi_eq_open(fabric, &attr, &eq, CTX), 0);
	kofi_fake_close_later(test, &eq->fid);
	KUNIT_EXPECT_EQ(test, eq->fid.fclass, FI_CLASS_EQ);
	KUNIT_EXPECT_PTR_EQ(test, eq->fid.context, CTX);
	KUNIT_EXPECT_NE(test, attr.size, 0);
}

static void mr_args(struct kunit *test)
{
	struct scene *s = new_scene(test);
	const struct kvec iov = { .iov_base = memory, .iov_len = 64 };
	struct fid_domain *domain = s->set.domain;
	struct fi_mr_attr attr = {
		.type = FI_MR_BVEC, .mr_iov = &iov, .iov_count = 7,
		.access = FI_READ | FI_WRITE | FI_REMOTE_READ |
			  FI_REMOTE_WRITE | FI_SEND | FI_RECV,
		.requested_key = 88, .context = CTX,
	};
	struct fid_mr *mr;

#define BAD(err, field, value)						\
	BAD_ATTR(test, s->fake, FAKE_MR_REG, err, attr, field, value,	\
		 fi_mr_regattr(domain, &attr, 0, &mr))
	BAD(-EINVAL, type, FI_MR_SGL + 1);
	BAD(-EINVAL, mr_iov, NULL);
	BAD(-EINVAL, iov_count, 0);
	BAD(-EINVAL, access, 0);
	BAD(-EINVAL, access, FI_READ | FI_MSG);
	BAD(-EINVAL, offset, 1);
#undef BAD
	REFUSED(test, s->fake, FAKE_MR_REG, -FI_EBADFLAGS,
		fi_mr_regattr(domain, &attr, 1, &mr));
	REFUSED(test, s->fake, FAKE_MR_REG, -EINVAL,
		fi_mr_regattr(domain, NULL, 0, &mr));
	REFUSED(test, s->fake, FAKE_MR_REG, -EINVAL,
		fi_mr_regattr(domain, &attr, 0, NULL));
	KUNIT_ASSERT_EQ(test, fi_mr_regattr(domain, &attr, 0, &mr), 0);
	kofi_fake_close_later(test, &mr->fid);
	ARRIVED(test, s->fake, FAKE_MR_REG, mr, A(domain), FI_MR_BVEC, A(&iov),
		7, attr.access, 0, 88, 0, A(CTX));
	KUNIT_EXPECT_EQ(test, mr->fid.fclass, FI_CLASS_MR);
	KUNIT_EXPECT_PTR_EQ(test, mr->fid.context, CTX);

	REFUSED(test, s->fake, FAKE_MR_REG, -EINVAL,
		fi_mr_regv(domain, NULL, 1, FI_READ, 0, 0, 0, &mr, NULL));
	REFUSED(test, s->fake, FAKE_MR_REG, -EINVAL,
		fi_mr_regv(domain, &iov, 0, FI_READ, 0, 0, 0, &mr, NULL));
	KUNIT_ASSERT_EQ(test, fi_mr_regv(domain, &iov, 3, FI_READ, 0, 88, 0,
					 &mr, CTX), 0);
	kofi_fake_close_later(test, &mr->fid);
	ARRIVED(test, s->fake, FAKE_MR_REG, mr, A(domain), FI_MR_KVEC, A(&iov),
		3, FI_READ, 0, 88, 0, A(CTX));
}

/* The description of a single buffer is valid only during the call. */
static void see_kvec(struct kofi_fake *fake, struct fid *fid, void *arg)
{
	*(struct kvec *)arg = *(struct kvec *)fake->call[FAKE_MR_REG].arg[2];
}

static void mr_reg_args(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fid_domain *domain = s->set.domain;
	struct kvec seen = {};
	struct fid_mr *mr;

	s->fake->call[FAKE_MR_REG].hook = see_kvec;
	s->fake->call[FAKE_MR_REG].hook_arg = &seen;
	REFUSED(test, s->fake, FAKE_MR_REG, -EINVAL,
		fi_mr_reg(domain, NULL, 1, FI_READ, 0, 0, 0, &mr, NULL));
	REFUSED(test, s->fake, FAKE_MR_REG, -EINVAL,
		fi_mr_reg(domain, memory, 0, FI_READ, 0, 0, 0, &mr, NULL));
	KUNIT_ASSERT_EQ(test, fi_mr_reg(domain, memory, 33, FI_WRITE, 0, 88, 0,
					&mr, CTX), 0);
	kofi_fake_close_later(test, &mr->fid);
	KUNIT_EXPECT_PTR_EQ(test, seen.iov_base, (void *)memory);
	KUNIT_EXPECT_EQ(test, seen.iov_len, 33);
	KUNIT_EXPECT_PTR_EQ(test, mr->fid.context, CTX);
}

static void mr_alloc_args(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fid_domain *domain = s->set.domain, *other;
	struct fi_mr_alloc_attr attr = {
		.max_pages = 3, .access = FI_REMOTE_READ, .cq = s->set.cq,
	};
	struct kofi_fake_obj nothing = {};
	struct fid_mr *mr;

	other = kofi_fake_domain(test, s->fake, s->set.fabric);
#define BAD(err, field, value)						\
	BAD_ATTR(test, s->fake, FAKE_MR_ALLOC, err, attr, field, value,	\
		 fi_mr_alloc(domain, &attr, &mr, NULL))
	BAD(-EINVAL, max_pages, 0);
	BAD(-EINVAL, access, 0);
	BAD(-EINVAL, access, FI_MSG);
	BAD(-FI_ENOCQ, cq, NULL);
	BAD(-EINVAL, cq, (struct fid_cq *)s->set.cntr);
	BAD(-EINVAL, cq, (struct fid_cq *)&nothing);
	BAD(-FI_EDOMAIN, cq, kofi_fake_cq(test, other, NULL));
	BAD(-EINVAL, ep, (struct fid_ep *)s->set.cntr);
	BAD(-FI_EDOMAIN, ep, kofi_fake_ep(test, s->fake, other));
	BAD(-FI_EBADFLAGS, flags, FI_RETIRE << 1);
#undef BAD
	attr.flags = FI_RETIRE;
	attr.ep = s->set.ep;
	REFUSED(test, s->fake, FAKE_MR_ALLOC, -EINVAL,
		fi_mr_alloc(domain, NULL, &mr, NULL));
	REFUSED(test, s->fake, FAKE_MR_ALLOC, -EINVAL,
		fi_mr_alloc(domain, &attr, NULL, NULL));
	/* The endpoint isn't bound to the queue, or only for receives. */
	REFUSED(test, s->fake, FAKE_MR_ALLOC, -EINVAL,
		fi_mr_alloc(domain, &attr, &mr, NULL));
	KUNIT_ASSERT_EQ(test, fi_ep_bind(s->set.ep, &s->set.cq->fid, FI_RECV), 0);
	REFUSED(test, s->fake, FAKE_MR_ALLOC, -EINVAL,
		fi_mr_alloc(domain, &attr, &mr, NULL));
	KUNIT_ASSERT_EQ(test, fi_ep_bind(s->set.ep, &s->set.cq->fid, FI_TRANSMIT), 0);
	KUNIT_ASSERT_EQ(test, fi_mr_alloc(domain, &attr, &mr, CTX), 0);
	kofi_fake_close_later(test, &mr->fid);
	ARRIVED(test, s->fake, FAKE_MR_ALLOC, mr, A(domain), A(&attr), A(CTX));
	KUNIT_EXPECT_PTR_EQ(test, mr->fid.context, CTX);
}

static void insert_args(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fid_av *av = s->set.av;

#define REFUSE(err, call) \
	REFUSED(test, s->fake, FAKE_INSERT, err, fi_av_insert call)
	REFUSE(-EINVAL, (av, NULL, 1, addrs, 0, NULL));
	REFUSE(-EINVAL, (av, memory, 0, addrs, 0, NULL));
	REFUSE(-EINVAL, (av, memory, (size_t)INT_MAX + 1, addrs, 0, NULL));
	REFUSE(-FI_EBADFLAGS, (av, memory, 1, addrs, FI_MORE | 1, NULL));
#undef REFUSE
	s->fake->call[FAKE_INSERT].ret = 2;
	KUNIT_EXPECT_EQ(test, fi_av_insert(av, memory, INT_MAX, addrs, FI_MORE,
					   CTX), 2);
	ARRIVED(test, s->fake, FAKE_INSERT, av, A(memory), INT_MAX, A(addrs),
		FI_MORE, A(CTX));
	KUNIT_EXPECT_EQ(test, fi_av_insert(av, memory, 1, NULL, 0, NULL), 2);
}

static void remove_args(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fid_av *av = s->set.av;

	REFUSED(test, s->fake, FAKE_REMOVE, -EINVAL,
		fi_av_remove(av, NULL, 1, 0));
	REFUSED(test, s->fake, FAKE_REMOVE, -EINVAL,
		fi_av_remove(av, addrs, 0, 0));
	REFUSED(test, s->fake, FAKE_REMOVE, -FI_EBADFLAGS,
		fi_av_remove(av, addrs, 1, 1));
	KUNIT_EXPECT_EQ(test, fi_av_remove(av, addrs, 4, 0), 0);
	ARRIVED(test, s->fake, FAKE_REMOVE, av, A(addrs), 4, 0);
}

static void lookup_args(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fid_av *av = s->set.av;
	char buf[8];
	size_t len = 8;

	REFUSED(test, s->fake, FAKE_LOOKUP, -EINVAL,
		fi_av_lookup(av, 1, buf, NULL));
	REFUSED(test, s->fake, FAKE_LOOKUP, -EINVAL,
		fi_av_lookup(av, 1, NULL, &len));
	KUNIT_EXPECT_EQ(test, fi_av_lookup(av, 1, buf, &len), 0);
	ARRIVED(test, s->fake, FAKE_LOOKUP, av, 1, A(buf), A(&len));
	len = 0;
	KUNIT_EXPECT_EQ(test, fi_av_lookup(av, 1, NULL, &len), 0);
}

static void straddr_args(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fid_av *av = s->set.av;
	char buf[8];
	size_t len = 8;

	REFUSED(test, s->fake, FAKE_STRADDR, false,
		!!fi_av_straddr(av, NULL, buf, &len));
	REFUSED(test, s->fake, FAKE_STRADDR, false,
		!!fi_av_straddr(av, memory, NULL, &len));
	REFUSED(test, s->fake, FAKE_STRADDR, false,
		!!fi_av_straddr(av, memory, buf, NULL));
	KUNIT_EXPECT_PTR_EQ(test, fi_av_straddr(av, memory, buf, &len),
			    (const char *)buf);
	ARRIVED(test, s->fake, FAKE_STRADDR, av, A(memory), A(buf), A(&len));
}

static void option_args(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fid *ep = &s->set.ep->fid;
	size_t val, len = sizeof(val);

#define REFUSE(op, err, call)	REFUSED(test, s->fake, op, err, call)
	REFUSE(FAKE_SETOPT, -EINVAL, fi_setopt(ep, 0, 6, NULL, 8));
	REFUSE(FAKE_SETOPT, -EINVAL, fi_setopt(ep, 0, 6, &val, 0));
	REFUSE(FAKE_SETOPT, -ENOPROTOOPT, fi_setopt(ep, 1, 6, &val, 8));
	REFUSE(FAKE_GETOPT, -EINVAL, fi_getopt(ep, 0, 6, NULL, &len));
	REFUSE(FAKE_GETOPT, -EINVAL, fi_getopt(ep, 0, 6, &val, NULL));
	REFUSE(FAKE_GETOPT, -ENOPROTOOPT, fi_getopt(ep, 1, 6, &val, &len));
#undef REFUSE
	KUNIT_EXPECT_EQ(test, fi_setopt(ep, 0, 77, &val, 5), 0);
	ARRIVED(test, s->fake, FAKE_SETOPT, ep, 0, 77, A(&val), 5);
	KUNIT_EXPECT_EQ(test, fi_getopt(ep, 0, 77, &val, &len), 0);
	ARRIVED(test, s->fake, FAKE_GETOPT, ep, 0, 77, A(&val), A(&len));
}

static void name_args(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fid *ep = &s->set.ep->fid;
	size_t len = 8;
	char buf[8];

	REFUSED(test, s->fake, FAKE_GETNAME, -EINVAL,
		fi_getname(ep, buf, NULL));
	REFUSED(test, s->fake, FAKE_GETNAME, -EINVAL,
		fi_getname(ep, NULL, &len));
	s->fake->call[FAKE_GETNAME].ret = -FI_ETOOSMALL;
	KUNIT_EXPECT_EQ(test, fi_getname(ep, buf, &len), -FI_ETOOSMALL);
	ARRIVED(test, s->fake, FAKE_GETNAME, ep, A(buf), A(&len));
	len = 0;
	KUNIT_EXPECT_EQ(test, fi_getname(ep, NULL, &len), -FI_ETOOSMALL);
}

static void other_args(struct kunit *test)
{
	struct scene *s = new_scene(test);
	struct fid *cq = &s->set.cq->fid, *ep = &s->set.ep->fid;
	static const char name[] = "ops";
	void *vector;

	REFUSED(test, s->fake, FAKE_CONTROL, -EINVAL,
		fi_control(cq, FI_ENABLE, NULL));
	REFUSED(test, s->fake, FAKE_CONTROL, -EINVAL,
		fi_control(cq, FI_DISABLE, NULL));
	KUNIT_EXPECT_EQ(test, fi_control(cq, 0x10007, CTX), 0);
	ARRIVED(test, s->fake, FAKE_CONTROL, cq, 0x10007, A(CTX));

	/* The core's own queues have no commands. */
	KUNIT_EXPECT_EQ(test, fi_control(&s->set.eq->fid, 0x10007, CTX),
			-EOPNOTSUPP);

	REFUSED(test, s->fake, FAKE_OPS_OPEN, -EINVAL, fi_open_ops(ep, NULL, 0, &vector, CTX));
	REFUSED(test, s->fake, FAKE_OPS_OPEN, -EINVAL, fi_open_ops(ep, name, 0, NULL, CTX));
	REFUSED(test, s->fake, FAKE_OPS_OPEN, -FI_EBADFLAGS,
		fi_open_ops(ep, name, 1, &vector, CTX));
	KUNIT_EXPECT_EQ(test, fi_open_ops(ep, name, 0, &vector, CTX), 0);
	ARRIVED(test, s->fake, FAKE_OPS_OPEN, ep, A(name), 0, A(&vector), A(CTX));

	s->fake->call[FAKE_CANCEL].ret = -ENOENT;
	KUNIT_EXPECT_EQ(test, fi_cancel(ep, CTX), -ENOENT);
	ARRIVED(test, s->fake, FAKE_CANCEL, ep, A(CTX));

	s->fake->call[FAKE_FLUSH].ret = -ETIMEDOUT;
	KUNIT_EXPECT_EQ(test, fi_flush(s->set.ep, 7, 100), -ETIMEDOUT);
	ARRIVED(test, s->fake, FAKE_FLUSH, ep, 7, 100);
}

static struct kunit_case args_cases[] = {
	KUNIT_CASE(fabric_args),
	KUNIT_CASE(domain_args),
	KUNIT_CASE(endpoint_args),
	KUNIT_CASE(av_args),
	KUNIT_CASE(cq_args),
	KUNIT_CASE(cntr_args),
	KUNIT_CASE(eq_args),
	KUNIT_CASE(mr_args),
	KUNIT_CASE(mr_reg_args),
	KUNIT_CASE(mr_alloc_args),
	KUNIT_CASE(insert_args),
	KUNIT_CASE(remove_args),
	KUNIT_CASE(lookup_args),
	KUNIT_CASE(straddr_args),
	KUNIT_CASE(option_args),
	KUNIT_CASE(name_args),
	KUNIT_CASE(other_args),
	{}
};

static struct kunit_suite args_suite = {
	.name = "kofi_args",
	.test_cases = args_cases,
};

kunit_test_suite(args_suite);

MODULE_DESCRIPTION("KUnit tests of arguments to kOFI's control calls");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
MODULE_IMPORT_NS(KOFI_TEST);
