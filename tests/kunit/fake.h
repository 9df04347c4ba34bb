/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Fake providers for the suites: kofi_fake.ko. A test creates a fake, and may change it before
 * it is registered: the entries of getinfo, the ops, the return value of each call, and hooks
 * in calls.
 *
 * Objects that the helpers open are closed at the end of the case, in reverse order; failure
 * to close one fails the case. Suites that use this import the namespace KOFI_TEST.
 */
#ifndef KOFI_FAKE_H
#define KOFI_FAKE_H

#include <kunit/test.h>
#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <kofi/provider.h>

/* Calls of a provider; see kofi_fake.call. */
enum kofi_fake_op {
	FAKE_GETINFO,
	FAKE_FREEINFO,
	FAKE_FABRIC,
	FAKE_DOMAIN,
	FAKE_AV,
	FAKE_CQ,
	FAKE_CNTR,
	FAKE_EP,
	FAKE_PEP,
	FAKE_MR_REG,
	FAKE_MR_ALLOC,
	/* on any object */
	FAKE_CLOSE,
	FAKE_BIND,
	FAKE_CONTROL,
	FAKE_OPS_OPEN,
	/* address vectors */
	FAKE_INSERT,
	FAKE_REMOVE,
	FAKE_LOOKUP,
	FAKE_STRADDR,
	/* domains */
	FAKE_QUERY_ATOMIC,
	/* endpoints */
	FAKE_CANCEL,
	FAKE_FLUSH,
	FAKE_GETOPT,
	FAKE_SETOPT,
	FAKE_SETNAME,
	FAKE_GETNAME,
	/* connections */
	FAKE_GETPEER,
	FAKE_CONNECT,
	FAKE_LISTEN,
	FAKE_ACCEPT,
	FAKE_REJECT,
	FAKE_SHUTDOWN,
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
	/* atomic operations */
	FAKE_ATOMIC,
	FAKE_ATOMICV,
	FAKE_ATOMICMSG,
	FAKE_INJECT_ATOMIC,
	FAKE_FETCH_ATOMIC,
	FAKE_FETCH_ATOMICV,
	FAKE_FETCH_ATOMICMSG,
	FAKE_COMPARE_ATOMIC,
	FAKE_COMPARE_ATOMICV,
	FAKE_COMPARE_ATOMICMSG,
	/* regions */
	FAKE_POST_REG,
	FAKE_POST_INVAL,
	FAKE_OPS,
};

#define KOFI_FAKE_ARGS	15

struct kofi_fake;

/**
 * struct kofi_fake_call - one of a fake's calls
 * @count: number of calls
 * @ret: return value; an opening call that fails opens nothing
 * @hook: called in the call without locks. @fid is the object of the call; for an opening
 *	call the new object, or NULL if there is none
 * @hook_arg: last argument of @hook
 * @arg: arguments of the last call after the object, as numbers
 * @object: object of the last call
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
 * @provider: the provider to register
 * @info: entries of getinfo; freed with the fake
 * @copies: getinfo returns copies, which are allocated
 * @partial: a getinfo that fails returns its list nevertheless
 * @nothing: opening calls succeed without returning an object
 * @cq_config: limits of completion queues
 * @call: the calls
 * @fid_ops: common ops of all objects opened from now on. A test may replace this and the
 *	following vectors, also by incomplete ones
 * @fabric_ops: ops of fabrics opened from now on
 * @domain_ops: ops of domains opened from now on
 * @av_ops: ops of address vectors opened from now on
 * @ep_ops: ops of endpoints opened from now on
 * @cm_ops: connection ops of endpoints opened from now on
 * @msg_ops: message ops of endpoints opened from now on
 * @tagged_ops: tagged ops of endpoints opened from now on
 * @rma_ops: RMA ops of endpoints opened from now on
 * @atomic_ops: atomic ops of endpoints opened from now on
 * @req_ops: request ops of endpoints opened from now on
 * @mr_ops: ops of regions opened from now on
 * @lock: protects @objects
 * @objects: open objects
 * @slot: index of the fake in the table of fakes
 * @registered: kofi_fake_register() was called
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
	const struct fi_ops_atomic	*atomic_ops;
	const struct kofi_req_ops	*req_ops;
	const struct fi_ops_mr		*mr_ops;
	struct mutex			lock;	/* protects objects */
	struct list_head		objects;
	unsigned int			slot;
	bool				registered;
};

/**
 * struct kofi_fake_obj - an object of a fake
 * @fid: common first member of all classes
 * @fabric: FI_CLASS_FABRIC
 * @domain: FI_CLASS_DOMAIN
 * @ep: FI_CLASS_EP
 * @pep: FI_CLASS_PEP
 * @av: FI_CLASS_AV
 * @mr: FI_CLASS_MR
 * @cq: FI_CLASS_CQ, the core's struct
 * @cntr: FI_CLASS_CNTR, the core's struct
 * @queue: @cq was initialized by kofi_cq_init()
 * @fake: the fake
 * @list: in kofi_fake.objects
 */
struct kofi_fake_obj {
	union {
		struct fid		fid;
		struct fid_fabric	fabric;
		struct fid_domain	domain;
		struct fid_ep		ep;
		struct fid_pep		pep;
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
 * @eq: event queue of the fabric
 * @domain: domain of the fabric
 * @av: address vector of the domain
 * @cq: completion queue of the domain
 * @cntr: counter of the domain
 * @ep: endpoint of the domain, not bound
 * @mr: region of the domain, of fi_mr_reg()
 * @pool_mr: region of the domain, of fi_mr_alloc() with @cq
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

/* Create a fake with one entry, not registered; its module is the suite's. */
#define kofi_fake_make(test, name)	__kofi_fake_make(test, name, THIS_MODULE)
struct kofi_fake *__kofi_fake_make(struct kunit *test, const char *name,
				   struct module *owner);
/* Create a registered fake. */
#define kofi_fake_new(test, name)	__kofi_fake_new(test, name, THIS_MODULE)
struct kofi_fake *__kofi_fake_new(struct kunit *test, const char *name,
				  struct module *owner);
int kofi_fake_register(struct kofi_fake *fake);
int kofi_fake_deregister(struct kofi_fake *fake);

/* Append an entry for getinfo; the test may change it. */
struct fi_info *kofi_fake_add_info(struct kunit *test, struct kofi_fake *fake,
				   const char *domain_name);
unsigned int kofi_fake_called(struct kofi_fake *fake, enum kofi_fake_op op);
unsigned int kofi_fake_open(struct kofi_fake *fake);
/* Free an object that can't be closed, because the core refused it. */
void kofi_fake_reap(struct kofi_fake *fake);

/*
 * These functions assert success, and the end of the case closes the object. Attributes that
 * are NULL stand for the defaults, with FI_WAIT_UNSPEC.
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
struct fid_pep *kofi_fake_pep(struct kunit *test, struct kofi_fake *fake,
			      struct fid_fabric *fabric);
struct fid_mr *kofi_fake_mr(struct kunit *test, struct fid_domain *domain);
struct fid_mr *kofi_fake_pool_mr(struct kunit *test, struct fid_domain *domain,
				 struct fid_cq *cq);
void kofi_fake_open_all(struct kunit *test, struct kofi_fake *fake,
			struct kofi_fake_set *set);
/* Bind the set's endpoint to its AV and CQ. */
void kofi_fake_bind_ep(struct kunit *test, struct kofi_fake_set *set);
/* Let the end of the case close an object that the test opened itself. */
void kofi_fake_close_later(struct kunit *test, struct fid *fid);
/* Close an object before the end of the case. */
void kofi_fake_close(struct kunit *test, struct fid *fid);
/* Don't close an object at the end of the case, because the test has closed it. */
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
