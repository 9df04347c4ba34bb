/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For providers only: registration, the calls to implement, and through <kofi/queue.h>
 * and <kofi/side.h> the queues and counters that the core offers. ULPs don't include this header.
 *
 * Symbols are in the namespace KOFI_PROVIDER.
 */
#ifndef KOFI_PROVIDER_H
#define KOFI_PROVIDER_H

#include <linux/module.h>
#include <linux/uio.h>
#include <kofi/arith.h>
#include <kofi/atomic.h>
#include <kofi/cm.h>
#include <kofi/domain.h>
#include <kofi/endpoint.h>
#include <kofi/eq.h>
#include <kofi/fabric.h>
#include <kofi/rma.h>
#include <kofi/side.h>
#include <kofi/tagged.h>

/* registry.c */

/* A provider passes this version of the headers to kofi_provider_register(). */
#define KOFI_API_VERSION	FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

/* Lets fi_getinfo() and fi_fabric() load a provider by its name. */
#define MODULE_ALIAS_KOFI_PROVIDER(name)	MODULE_ALIAS("kofi-prov-" name)

/**
 * struct kofi_provider - a provider, as registered with the core
 * @name: unique name of at most FI_NAME_MAX - 1 characters of ``[a-z0-9_-]``
 * @version: version of the provider, made by FI_VERSION()
 * @owner: THIS_MODULE; pinned during @getinfo, @freeinfo and @fabric, and as
 *	long as a fabric of the provider is open
 * @getinfo: return a list of all entries, or -ENODATA if there is none. The core
 *	filters the list by @hints and fills in the provider's name and version, so the
 *	list may be the same for all callers, except for addresses: the provider resolves
 *	@node and @service, and the addresses in @hints, see kofi_hints_addrs(). Every entry
 *	has all five attributes
 * @freeinfo: free a list of @getinfo; usually fi_freeinfo()
 * @fabric: open the fabric named @attr->name
 * @lanes: reliable unconnected endpoints can carry connections: see struct kofi_connector. They
 *	have fi_ops_ep.flush_tag, with its companions, and KOFI_OPT_AS_MSG, their completion queues
 *	are &struct kofi_cq, and their counters &struct kofi_cntr
 * @strerror: return the text for an error number of the provider, or NULL for an unknown number;
 *	may be NULL if these numbers are errnos
 *
 * @name to @fabric are mandatory. The calls may sleep. The core holds no lock, so they may
 * call the core, even to register another provider.
 */
struct kofi_provider {
	const char	*name;
	u32		version;
	struct module	*owner;
	int (*getinfo)(u32 version, const char *node, const char *service,
		       u64 flags, const struct fi_info *hints,
		       struct fi_info **info);
	void (*freeinfo)(struct fi_info *info);
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		      void *context);
	const char *(*strerror)(int prov_errno);
	bool lanes;
};

int kofi_provider_register(u32 version, const struct kofi_provider *provider);
int kofi_provider_deregister(const struct kofi_provider *provider);
void kofi_device_arrived(const struct kofi_provider *provider,
			 const char *domain_name);
void kofi_device_removed(struct fid *fid, const char *domain_name);

/* connect/connector.c */

/* Lets fi_getinfo() load the connector. */
#define KOFI_CONNECTOR_ALIAS	"kofi-msg"

/**
 * struct kofi_connector - a module that makes connections over unconnected endpoints, for all
 *	providers with kofi_provider.lanes
 * @owner: THIS_MODULE; pinned during calls, and as long as an object of it is open
 * @derive: make an entry with FI_EP_MSG and FI_PROTO_KOFI_MSG of a provider's entry; -ENODATA if
 *	there can be none. The arguments are those of fi_getinfo()
 * @passive_ep: see fi_passive_ep(), for an entry of @derive
 * @endpoint: see fi_endpoint(), for an entry of @derive. The domain is the provider's, and so are
 *	the queues that the endpoint is bound to
 * @removed: the device of an endpoint was removed. Under kofi_tree_lock, so it calls no fi_*()
 *	function. The endpoint isn't closed before it returns
 *
 * There is one connector. Objects that it opens are children of the provider's.
 */
struct kofi_connector {
	struct module *owner;
	int (*derive)(const struct fi_info *info, const char *node, const char *service,
		      u64 flags, const struct fi_info *hints, struct fi_info **derived);
	int (*passive_ep)(struct fid_fabric *fabric, struct fi_info *info,
			  struct fid_pep **pep, void *context);
	int (*endpoint)(struct fid_domain *domain, struct fi_info *info,
			struct fid_ep **ep, void *context);
	void (*removed)(struct fid *fid);
};

int kofi_connector_register(const struct kofi_connector *connector);
void kofi_connector_deregister(const struct kofi_connector *connector);

/* info.c */

int kofi_hints_addrs(const char *node, const char *service, u64 flags,
		     const struct fi_info *hints, size_t len, const void **src, const void **dest);
int kofi_info_set_dest(struct fi_info *info, const void *dest, size_t len);

/* match.c */

u64 kofi_ep_caps(u64 caps, u64 all);

/*
 * Control calls. The core checks classes, pointers and flags and pins the parent before
 * the call, and serializes calls for an object where the documentation says so. A control
 * op that is NULL fails with -EOPNOTSUPP. The vectors of data calls (fi_ops_msg, _tagged,
 * _rma, _atomic, _mr, _cq, _cntr) have no NULL members: otherwise fi_endpoint() and the other open
 * calls fail with -EPROTO. The provider allocates a zeroed object when it opens one, and
 * frees it in its close op.
 */

/**
 * struct fi_ops - calls of every object
 * @close: free the object; mandatory. Called when nothing depends on the object. On an
 *	error the object stays unchanged
 * @bind: bind @bfid to the object. May be NULL for domains
 * @control: commands of fi_control(), for endpoints also FI_ENABLE and FI_DISABLE. FI_DISABLE
 *	comes only after FI_ENABLE, but may come repeatedly, also during and after the removal of
 *	the device; when it returns 0, no operation is outstanding
 * @ops_open: see fi_open_ops(); the vector that it returns is valid until the object is closed
 */
struct fi_ops {
	int (*close)(struct fid *fid);
	int (*bind)(struct fid *fid, struct fid *bfid, u64 flags);
	int (*control)(struct fid *fid, int command, void *arg);
	int (*ops_open)(struct fid *fid, const char *name, u64 flags, void **ops, void *context);
};

/**
 * struct fi_ops_fabric - calls of a fabric
 * @domain: see fi_domain()
 * @passive_ep: see fi_passive_ep()
 *
 * Event queues belong to the core: providers write to them with kofi_eq_write_event().
 */
struct fi_ops_fabric {
	int (*domain)(struct fid_fabric *fabric, struct fi_info *info,
		      struct fid_domain **domain, void *context);
	int (*passive_ep)(struct fid_fabric *fabric, struct fi_info *info,
			  struct fid_pep **pep, void *context);
};

/**
 * struct fi_ops_domain - calls of a domain
 * @av_open: see fi_av_open()
 * @cq_open: see fi_cq_open(); may be kofi_cq_open()
 * @endpoint: see fi_endpoint()
 * @cntr_open: see fi_cntr_open(); may be kofi_cntr_open()
 * @mr_regattr: see fi_mr_regattr(), through which fi_mr_reg() and fi_mr_regv() go
 * @mr_alloc: see fi_mr_alloc()
 * @query_atomic: see fi_query_atomic(); doesn't sleep
 */
struct fi_ops_domain {
	int (*av_open)(struct fid_domain *domain, struct fi_av_attr *attr,
		       struct fid_av **av, void *context);
	int (*cq_open)(struct fid_domain *domain, struct fi_cq_attr *attr,
		       struct fid_cq **cq, void *context);
	int (*endpoint)(struct fid_domain *domain, struct fi_info *info,
			struct fid_ep **ep, void *context);
	int (*cntr_open)(struct fid_domain *domain, struct fi_cntr_attr *attr,
			 struct fid_cntr **cntr, void *context);
	int (*mr_regattr)(struct fid_domain *domain,
			  const struct fi_mr_attr *attr, u64 flags,
			  struct fid_mr **mr);
	int (*mr_alloc)(struct fid_domain *domain,
			const struct fi_mr_alloc_attr *attr,
			struct fid_mr **mr, void *context);
	int (*query_atomic)(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			    struct fi_atomic_attr *attr, u64 flags);
};

/**
 * struct fi_ops_av - calls of an address vector
 * @insert: see fi_av_insert(); if it inserts nothing, it returns the error of the first address
 * @remove: see fi_av_remove()
 * @lookup: see fi_av_lookup()
 * @straddr: see fi_av_straddr()
 */
struct fi_ops_av {
	int (*insert)(struct fid_av *av, const void *addr, size_t count,
		      fi_addr_t *fi_addr, u64 flags, void *context);
	int (*remove)(struct fid_av *av, fi_addr_t *fi_addr, size_t count,
		      u64 flags);
	int (*lookup)(struct fid_av *av, fi_addr_t fi_addr, void *addr,
		      size_t *addrlen);
	const char *(*straddr)(struct fid_av *av, const void *addr, char *buf,
			       size_t *len);
};

/**
 * struct fi_ops_ep - calls of an endpoint
 * @cancel: see fi_cancel()
 * @flush: see fi_flush()
 * @flush_tag: end all operations with a tag, whoever the peer is, and drop the messages that wait
 *	for a receive with it. Reads, writes and atomic operations have a tag, too: kofi_req.tag.
 *	Operations that can't be taken back may take @timeout_ms; a peer whose operations take
 *	longer may die. Returns 0 or -ETIMEDOUT. Needed for connections alone: may be NULL
 * @cancel_tag: as @cancel, but only among receives with a tag. Not NULL if @flush_tag isn't
 * @recv_tag: as fi_trecv() for messages of any peer, without ignored bits. Connections post their
 *	receives by it. Not NULL if @flush_tag isn't
 * @expedite: see fi_expedite(); NULL if no completions are late
 * @getopt: see fi_getopt()
 * @setopt: see fi_setopt()
 */
struct fi_ops_ep {
	ssize_t (*cancel)(struct fid *fid, void *context);
	int (*flush)(struct fid_ep *ep, fi_addr_t addr, unsigned int timeout_ms);
	int (*flush_tag)(struct fid_ep *ep, u64 tag, unsigned int timeout_ms);
	ssize_t (*cancel_tag)(struct fid_ep *ep, u64 tag, void *context);
	ssize_t (*recv_tag)(struct fid_ep *ep, void *buf, size_t len, u64 tag, void *context);
	void (*expedite)(struct fid_ep *ep);
	int (*getopt)(struct fid *fid, int level, int optname, void *optval,
		      size_t *optlen);
	int (*setopt)(struct fid *fid, int level, int optname,
		      const void *optval, size_t optlen);
};

/*
 * An option for fi_setopt(), a size_t: if it isn't 0, completions of tagged messages say FI_MSG, no
 * completion has a tag, and fi_cancel() cancels receives only, because a send that isn't sent has
 * used up a receive of the peer nevertheless. The core's connector sets it before fi_enable().
 */
#define KOFI_OPT_AS_MSG		0x20000

/**
 * struct kofi_watch - callbacks for the owner of an endpoint
 * @peer_dead: a peer of the address vector can't be reached any more: all operations with it fail,
 *	also those posted later. Called under the provider's lock: it only queues work
 * @tag_ended: return whether no receive with the tag will be posted any more. A message that finds
 *	no receive is then received to its end without one, instead of waiting. Called under the
 *	provider's lock. NULL if messages always wait
 *
 * A pointer to it is the value of option KOFI_OPT_WATCH, for fi_setopt() before fi_enable(). It is
 * valid until the endpoint is closed. A provider whose peers come back when they can be reached
 * again doesn't have the option.
 */
struct kofi_watch {
	void (*peer_dead)(struct kofi_watch *watch, fi_addr_t addr);
	bool (*tag_ended)(struct kofi_watch *watch, u64 tag);
};

#define KOFI_OPT_WATCH		0x20001

/**
 * struct fi_ops_cm - calls about addresses and connections
 * @setname: see fi_setname()
 * @getname: see fi_getname()
 * @getpeer: see fi_getpeer()
 * @connect: see fi_connect(); the endpoint is enabled
 * @listen: see fi_listen()
 * @accept: see fi_accept(); the endpoint is enabled
 * @reject: see fi_reject(); may be called in a handler
 * @shutdown: see fi_shutdown()
 */
struct fi_ops_cm {
	int (*setname)(struct fid *fid, void *addr, size_t addrlen);
	int (*getname)(struct fid *fid, void *addr, size_t *addrlen);
	int (*getpeer)(struct fid_ep *ep, void *addr, size_t *addrlen);
	int (*connect)(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen);
	int (*listen)(struct fid_pep *pep);
	int (*accept)(struct fid_ep *ep, const void *param, size_t paramlen);
	int (*reject)(struct fid_pep *pep, struct fid *handle, const void *param,
		      size_t paramlen);
	int (*shutdown)(struct fid_ep *ep, u64 flags);
};

/* calls.c */

/**
 * struct kofi_req - the arguments of a data call
 * @what: FI_MSG, FI_TAGGED or FI_RMA, and FI_SEND, FI_RECV, FI_READ or FI_WRITE; with FI_ATOMIC it
 *	is part of a &struct kofi_atomic_req
 * @flags: operation flags
 * @defaults: the endpoint's default flags apply as well: kofi_req_flags()
 * @quiet: no completion on success, for fi_inject() and the other inject calls
 * @iter: the local buffer; meaningless, and possibly all zeros, with FI_PEEK, FI_DISCARD or
 *	FI_ATOMIC
 * @desc: descriptors from fi_mr_desc(), one per segment of @iter, or NULL; single
 *	descriptors may be NULL, too
 * @addr: the peer; used for a receive only with FI_DIRECTED_RECV
 * @tag: the tag; for a read, write or atomic operation of a connection, the number by which
 *	fi_ops_ep.flush_tag finds it, otherwise 0
 * @ignore: bits of the tag that a receive ignores
 * @data: remote CQ data
 * @context: the caller's context
 * @rma: the peer's memory
 * @rma_count: number of entries of @rma
 */
struct kofi_req {
	u64				what;
	u64				flags;
	bool				defaults;
	bool				quiet;
	struct iov_iter			iter;
	void				**desc;
	fi_addr_t			addr;
	u64				tag;
	u64				ignore;
	u64				data;
	void				*context;
	const struct fi_rma_iov		*rma;
	size_t				rma_count;
};

/**
 * struct kofi_iocs - segments of elements
 * @iov: the segments
 * @desc: descriptors from fi_mr_desc(), one per segment, or NULL
 * @count: number of segments
 */
struct kofi_iocs {
	const struct fi_ioc	*iov;
	void			**desc;
	size_t			count;
};

/**
 * struct kofi_atomic_req - the arguments of an atomic call
 * @req: the part that all requests have; @req.what has FI_ATOMIC, and FI_WRITE for fi_atomic() or
 *	FI_READ for the others
 * @datatype: type of the elements
 * @op: the operation
 * @compare: it is fi_compare_atomic()
 * @operand: the operands; meaningless for FI_ATOMIC_READ
 * @comparand: the values to compare with
 * @result: takes the old values
 * @rma: the peer's memory
 * @rma_count: number of entries of @rma
 *
 * An array of a single entry may be on the caller's stack. Others stay valid until the completion.
 */
struct kofi_atomic_req {
	struct kofi_req			req;
	enum fi_datatype		datatype;
	enum fi_op			op;
	bool				compare;
	struct kofi_iocs		operand;
	struct kofi_iocs		comparand;
	struct kofi_iocs		result;
	const struct fi_rma_ioc		*rma;
	size_t				rma_count;
};

/**
 * kofi_atomic_kind() - get the kind of an atomic request
 * @areq: the request
 *
 * Context: Any.
 * Return: the kind.
 */
static inline enum kofi_arith_kind kofi_atomic_kind(const struct kofi_atomic_req *areq)
{
	if (areq->compare)
		return KOFI_ARITH_COMPARE;
	return areq->req.what & FI_READ ? KOFI_ARITH_FETCH : KOFI_ARITH_WRITE;
}

int kofi_atomic_check(const struct kofi_atomic_req *areq, size_t limit, size_t bytes, size_t *len);

/**
 * struct kofi_req_ops - a provider's functions for requests
 * @tx: send, read, write or atomic operation
 * @rx: receive
 *
 * Both return 0 or a negative errno, as fi_send(): -EOPNOTSUPP for a request without the
 * endpoint's capabilities, -FI_EOPBADSTATE until the endpoint is enabled, -ENODEV after
 * the device went away. They don't sleep. The request is valid only during the call, but
 * the buffers stay valid.
 */
struct kofi_req_ops {
	ssize_t (*tx)(struct fid_ep *ep, struct kofi_req *req);
	ssize_t (*rx)(struct fid_ep *ep, struct kofi_req *req);
};

/**
 * kofi_req_recv_tag() - form the request of fi_ops_ep.recv_tag
 * @ep: the endpoint
 * @buf: takes the message
 * @len: bytes of @buf
 * @tag: the tag
 * @context: context of the operation
 *
 * For providers that have no faster function.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: that of kofi_req_ops.rx.
 */
ssize_t kofi_req_recv_tag(struct fid_ep *ep, void *buf, size_t len, u64 tag, void *context);

/*
 * Data calls that form a request and pass it to fid_ep.req. A provider puts them into its
 * vectors wherever it has no faster function. For a family of calls that the provider
 * doesn't implement, it uses one of the vectors below, and its tx and rx functions refuse
 * the requests.
 */
ssize_t kofi_req_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src, void
		      *context);
ssize_t kofi_req_recvv(struct fid_ep *ep, const struct kvec *iov, void **desc, size_t count,
		       fi_addr_t src, void *context);
ssize_t kofi_req_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, u64 flags);
ssize_t kofi_req_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t
		      dest, void *context);
ssize_t kofi_req_sendv(struct fid_ep *ep, const struct kvec *iov, void **desc, size_t count,
		       fi_addr_t dest, void *context);
ssize_t kofi_req_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, u64 flags);
ssize_t kofi_req_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest);
ssize_t kofi_req_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, u64 data,
			  fi_addr_t dest, void *context);
ssize_t kofi_req_injectdata(struct fid_ep *ep, const void *buf, size_t len, u64 data, fi_addr_t
			    dest);
ssize_t kofi_req_trecv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src, u64
		       tag, u64 ignore, void *context);
ssize_t kofi_req_trecvv(struct fid_ep *ep, const struct kvec *iov, void **desc, size_t count,
			fi_addr_t src, u64 tag, u64 ignore, void *context);
ssize_t kofi_req_trecvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, u64 flags);
ssize_t kofi_req_tsend(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t
		       dest, u64 tag, void *context);
ssize_t kofi_req_tsendv(struct fid_ep *ep, const struct kvec *iov, void **desc, size_t count,
			fi_addr_t dest, u64 tag, void *context);
ssize_t kofi_req_tsendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, u64 flags);
ssize_t kofi_req_tinject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest, u64
			 tag);
ssize_t kofi_req_tsenddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, u64 data,
			   fi_addr_t dest, u64 tag, void *context);
ssize_t kofi_req_tinjectdata(struct fid_ep *ep, const void *buf, size_t len, u64 data, fi_addr_t
			     dest, u64 tag);
ssize_t kofi_req_read(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src, u64
		      addr, u64 key, void *context);
ssize_t kofi_req_readv(struct fid_ep *ep, const struct kvec *iov, void **desc, size_t count,
		       fi_addr_t src, u64 addr, u64 key, void *context);
ssize_t kofi_req_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, u64 flags);
ssize_t kofi_req_write(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t
		       dest, u64 addr, u64 key, void *context);
ssize_t kofi_req_writev(struct fid_ep *ep, const struct kvec *iov, void **desc, size_t count,
			fi_addr_t dest, u64 addr, u64 key, void *context);
ssize_t kofi_req_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, u64 flags);
ssize_t kofi_req_inject_write(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest,
			      u64 addr, u64 key);
ssize_t kofi_req_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc, u64 data,
			   fi_addr_t dest, u64 addr, u64 key, void *context);
ssize_t kofi_req_inject_writedata(struct fid_ep *ep, const void *buf, size_t len, u64 data,
				  fi_addr_t dest, u64 addr, u64 key);
ssize_t kofi_req_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			fi_addr_t dest_addr, u64 addr, u64 key, enum fi_datatype datatype,
			enum fi_op op, void *context);
ssize_t kofi_req_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			 fi_addr_t dest_addr, u64 addr, u64 key, enum fi_datatype datatype,
			 enum fi_op op, void *context);
ssize_t kofi_req_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, u64 flags);
ssize_t kofi_req_inject_atomic(struct fid_ep *ep, const void *buf, size_t count,
			       fi_addr_t dest_addr, u64 addr, u64 key, enum fi_datatype datatype,
			       enum fi_op op);
ssize_t kofi_req_fetch_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			      void *result, void *result_desc, fi_addr_t dest_addr, u64 addr,
			      u64 key, enum fi_datatype datatype, enum fi_op op, void *context);
ssize_t kofi_req_fetch_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
			       size_t count, struct fi_ioc *resultv, void **result_desc,
			       size_t result_count, fi_addr_t dest_addr, u64 addr, u64 key,
			       enum fi_datatype datatype, enum fi_op op, void *context);
ssize_t kofi_req_fetch_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				 struct fi_ioc *resultv, void **result_desc, size_t result_count,
				 u64 flags);
ssize_t kofi_req_compare_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc,
				const void *compare, void *compare_desc, void *result,
				void *result_desc, fi_addr_t dest_addr, u64 addr, u64 key,
				enum fi_datatype datatype, enum fi_op op, void *context);
ssize_t kofi_req_compare_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
				 size_t count, const struct fi_ioc *comparev, void **compare_desc,
				 size_t compare_count, struct fi_ioc *resultv, void **result_desc,
				 size_t result_count, fi_addr_t dest_addr, u64 addr, u64 key,
				 enum fi_datatype datatype, enum fi_op op, void *context);
ssize_t kofi_req_compare_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				   const struct fi_ioc *comparev, void **compare_desc,
				   size_t compare_count, struct fi_ioc *resultv,
				   void **result_desc, size_t result_count, u64 flags);

extern const struct fi_ops_msg kofi_req_msg_ops;
extern const struct fi_ops_tagged kofi_req_tagged_ops;
extern const struct fi_ops_rma kofi_req_rma_ops;
extern const struct fi_ops_atomic kofi_req_atomic_ops;
/* For regions that aren't from fi_mr_alloc(). */
extern const struct fi_ops_mr kofi_mr_no_ops;

/**
 * kofi_req_flags() - add an endpoint's default flags to those of a request
 * @req: the request
 * @op_flags: the endpoint's default flags for this direction
 *
 * FI_INJECT doesn't apply to reads.
 *
 * Context: Any.
 */
static inline void kofi_req_flags(struct kofi_req *req, u64 op_flags)
{
	if (req->defaults)
		req->flags |= req->what & FI_READ ? op_flags & ~FI_INJECT :
						    op_flags;
}

#endif /* KOFI_PROVIDER_H */
