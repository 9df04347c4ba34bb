/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Fake providers for the suites: kofi_fake.ko. A fake is made by a test, which
 * may change anything about it before the core sees it: what getinfo finds,
 * which ops are there, what each call returns, and what happens inside.
 *
 * What the helpers open is closed at the end of the case, last opened first,
 * and it is a failure if that can't be done. Suites that use this import the
 * namespace KOFI_TEST.
 */
#ifndef KOFI_FAKE_H
#define KOFI_FAKE_H

#include <kunit/test.h>
#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <kofi/provider.h>

/* The calls of a provider; see kofi_fake.call. */
enum kofi_fake_op {
	FAKE_GETINFO,
	FAKE_FREEINFO,
	FAKE_FABRIC,
	FAKE_DOMAIN,
	FAKE_AV,
	FAKE_CQ,
	FAKE_CNTR,
	FAKE_EP,
	FAKE_MR_REG,
	FAKE_MR_ALLOC,
	/* on any object */
	FAKE_CLOSE,
	FAKE_BIND,
	FAKE_CONTROL,
	/* address vectors */
	FAKE_INSERT,
	FAKE_REMOVE,
	FAKE_LOOKUP,
	FAKE_STRADDR,
	/* endpoints */
	FAKE_CANCEL,
	FAKE_GETOPT,
	FAKE_SETOPT,
	FAKE_GETNAME,
	/* messages */
	FAKE_RECV,
	FAKE_RECVV,
	FAKE_RECVMSG,
	FAKE_SEND,
	FAKE_SENDV,
	FAKE_SENDMSG,
	FAKE_INJECT,
	FAKE_SENDDATA,
	FAKE_INJECTDATA,
	/* tagged messages */
	FAKE_TRECV,
	FAKE_TRECVV,
	FAKE_TRECVMSG,
	FAKE_TSEND,
	FAKE_TSENDV,
	FAKE_TSENDMSG,
	FAKE_TINJECT,
	FAKE_TSENDDATA,
	FAKE_TINJECTDATA,
	/* RMA */
	FAKE_READ,
	FAKE_READV,
	FAKE_READMSG,
	FAKE_WRITE,
	FAKE_WRITEV,
	FAKE_WRITEMSG,
	FAKE_INJECT_WRITE,
	FAKE_WRITEDATA,
	FAKE_INJECT_WRITEDATA,
	/* regions */
	FAKE_POST_REG,
	FAKE_POST_INVAL,
	FAKE_OPS,
};

#define KOFI_FAKE_ARGS	9

struct kofi_fake;

/**
 * struct kofi_fake_call - one of a fake's calls
 * @count: how often it was called
 * @ret: what it returns; an opening call that fails opens nothing
 * @hook: runs inside the call, with no lock held. @fid is the object: the one
 *	called, or for an opening call the new one, NULL if there is none
 * @hook_arg: the hook's last argument
 * @arg: arguments of the last call after the object, as numbers
 * @object: the object that was called last
 */
struct kofi_fake_call {
	atomic_t	count;
	int		ret;
	void		(*hook)(struct kofi_fake *fake, struct fid *fid,
				void *arg);
	void		*hook_arg;
	u64		arg[KOFI_FAKE_ARGS];
	struct fid	*object;
};

/**
 * struct kofi_fake - a fake provider
 * @provider: what is registered
 * @info: what getinfo finds; freed with the fake
 * @copies: getinfo hands out copies, which take memory
 * @partial: a getinfo that fails leaves its list behind
 * @nothing: an opening call succeeds and returns no object
 * @cq_config: limits of completion queues
 * @call: the calls
 * @fid_ops: ops of the objects that are opened from now on; those below, too.
 *	May be replaced by others of which any part may be missing
 * @fabric_ops: see there
 * @domain_ops: see there
 * @av_ops: see there
 * @ep_ops: see there
 * @cm_ops: see there
 * @msg_ops: see there
 * @tagged_ops: see there
 * @rma_ops: see there
 * @req_ops: see there
 * @mr_ops: see there
 * @lock: protects @objects
 * @objects: that are open
 * @slot: the fake's place among the others
 * @registered: by kofi_fake_register()
 */
struct kofi_fake {
	struct kofi_provider		provider;
	struct fi_info			*info;
	bool				copies;
	bool				partial;
	bool				nothing;
	struct kofi_cq_config		cq_config;
	struct kofi_fake_call		call[FAKE_OPS];
	const struct fi_ops		*fid_ops;
	const struct fi_ops_fabric	*fabric_ops;
	const struct fi_ops_domain	*domain_ops;
	const struct fi_ops_av		*av_ops;
	const struct fi_ops_ep		*ep_ops;
	const struct fi_ops_cm		*cm_ops;
	const struct fi_ops_msg		*msg_ops;
	const struct fi_ops_tagged	*tagged_ops;
	const struct fi_ops_rma		*rma_ops;
	const struct kofi_req_ops	*req_ops;
	const struct fi_ops_mr		*mr_ops;
	struct mutex			lock;	/* protects objects */
	struct list_head		objects;
	unsigned int			slot;
	bool				registered;
};

/**
 * struct kofi_fake_obj - what a fake opens
 * @fid: the common part, and the same as each class has it
 * @fabric: FI_CLASS_FABRIC
 * @domain: FI_CLASS_DOMAIN
 * @ep: FI_CLASS_EP
 * @av: FI_CLASS_AV
 * @mr: FI_CLASS_MR
 * @cq: FI_CLASS_CQ, a whole one
 * @cntr: FI_CLASS_CNTR, a whole one
 * @queue: @cq was made by kofi_cq_init()
 * @fake: whose it is
 * @list: in kofi_fake.objects
 */
struct kofi_fake_obj {
	union {
		struct fid		fid;
		struct fid_fabric	fabric;
		struct fid_domain	domain;
		struct fid_ep		ep;
		struct fid_av		av;
		struct fid_mr		mr;
		struct kofi_cq		cq;
		struct kofi_cntr	cntr;
	};
	bool			queue;
	struct kofi_fake	*fake;
	struct list_head	list;
};

/**
 * struct kofi_fake_set - one object of each class, see kofi_fake_open_all()
 * @fabric: the fabric
 * @eq: of the fabric
 * @domain: of the fabric
 * @av: of the domain
 * @cq: of the domain
 * @cntr: of the domain
 * @ep: of the domain, bound to nothing
 * @mr: of the domain, registered
 * @pool_mr: of the domain, allocated, with the CQ
 */
struct kofi_fake_set {
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
	struct fid_domain	*domain;
	struct fid_av		*av;
	struct fid_cq		*cq;
	struct fid_cntr		*cntr;
	struct fid_ep		*ep;
	struct fid_mr		*mr;
	struct fid_mr		*pool_mr;
};

/* A fake with one entry, not registered; its module is the suite's. */
#define kofi_fake_make(test, name)	__kofi_fake_make(test, name, THIS_MODULE)
struct kofi_fake *__kofi_fake_make(struct kunit *test, const char *name,
				   struct module *owner);
/* The same, registered. */
#define kofi_fake_new(test, name)	__kofi_fake_new(test, name, THIS_MODULE)
struct kofi_fake *__kofi_fake_new(struct kunit *test, const char *name,
				  struct module *owner);
int kofi_fake_register(struct kofi_fake *fake);
int kofi_fake_deregister(struct kofi_fake *fake);

/* One more entry for getinfo, at the end; may be changed. */
struct fi_info *kofi_fake_add_info(struct kunit *test, struct kofi_fake *fake,
				   const char *domain_name);
unsigned int kofi_fake_called(struct kofi_fake *fake, enum kofi_fake_op op);
unsigned int kofi_fake_open(struct kofi_fake *fake);
/* Free what can't be closed, because the core refused it. */
void kofi_fake_reap(struct kofi_fake *fake);

/*
 * These assert success, and the end of the case closes. NULL attributes: the
 * defaults, with FI_WAIT_UNSPEC.
 */
struct fid_fabric *kofi_fake_fabric(struct kunit *test, struct kofi_fake *fake);
struct fid_domain *kofi_fake_domain(struct kunit *test, struct kofi_fake *fake,
				    struct fid_fabric *fabric);
struct fid_eq *kofi_fake_eq(struct kunit *test, struct fid_fabric *fabric,
			    struct fi_eq_attr *attr);
struct fid_av *kofi_fake_av(struct kunit *test, struct fid_domain *domain);
struct fid_cq *kofi_fake_cq(struct kunit *test, struct fid_domain *domain,
			    struct fi_cq_attr *attr);
struct fid_cntr *kofi_fake_cntr(struct kunit *test, struct fid_domain *domain,
				struct fi_cntr_attr *attr);
struct fid_ep *kofi_fake_ep(struct kunit *test, struct kofi_fake *fake,
			    struct fid_domain *domain);
struct fid_mr *kofi_fake_mr(struct kunit *test, struct fid_domain *domain);
struct fid_mr *kofi_fake_pool_mr(struct kunit *test, struct fid_domain *domain,
				 struct fid_cq *cq);
void kofi_fake_open_all(struct kunit *test, struct kofi_fake *fake,
			struct kofi_fake_set *set);
/* Bind the set's endpoint to its AV and CQ. */
void kofi_fake_bind_ep(struct kunit *test, struct kofi_fake_set *set);
/* Have the end of the case close what a test opened by itself. */
void kofi_fake_close_later(struct kunit *test, struct fid *fid);
/* Close now what the end of the case would have closed. */
void kofi_fake_close(struct kunit *test, struct fid *fid);
/* The end of the case shall not close it: the test did. */
void kofi_fake_closed(struct kunit *test, struct fid *fid);

static inline struct kofi_fake_obj *kofi_fake_obj(struct fid *fid)
{
	return container_of(fid, struct kofi_fake_obj, fid);
}

static inline struct kofi_cq *kofi_fake_to_cq(struct fid_cq *cq)
{
	return container_of(cq, struct kofi_cq, cq_fid);
}

static inline struct kofi_cntr *kofi_fake_to_cntr(struct fid_cntr *cntr)
{
	return container_of(cntr, struct kofi_cntr, cntr_fid);
}

#endif /* KOFI_FAKE_H */
