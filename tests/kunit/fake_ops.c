// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Objects of fakes, which only record calls.
 */
#include <linux/slab.h>
#include <linux/string.h>
#include "fake_ops.h"

int __fake_enter(struct kofi_fake *fake, enum kofi_fake_op op,
		 struct fid *fid, const u64 *arg, size_t count)
{
	struct kofi_fake_call *call = &fake->call[op];

	atomic_inc(&call->count);
	call->object = fid;
	memset(call->arg, 0, sizeof(call->arg));
	memcpy(call->arg, arg, count * sizeof(*arg));
	if (call->hook)
		call->hook(fake, fid, call->hook_arg);
	return call->ret;
}

#define fake_called(op, obj, ...) \
	fake_enter(kofi_fake_obj(&(obj)->fid)->fake, op, &(obj)->fid, \
		   ##__VA_ARGS__)

/* Objects */

void fake_free(struct kofi_fake_obj *obj)
{
	struct kofi_fake *fake = obj->fake;

	mutex_lock(&fake->lock);
	list_del(&obj->list);
	mutex_unlock(&fake->lock);
	if (obj->queue)
		kofi_cq_fini(&obj->cq);
	kfree(obj);
}

static struct kofi_fake_obj *fake_alloc(struct kofi_fake *fake)
{
	struct kofi_fake_obj *obj = kzalloc(sizeof(*obj), GFP_KERNEL);

	if (!obj)
		return NULL;
	obj->fake = fake;
	obj->fid.ops = fake->fid_ops;
	mutex_lock(&fake->lock);
	list_add(&obj->list, &fake->objects);
	mutex_unlock(&fake->lock);
	return obj;
}

/*
 * The body of every opening call: allocate @obj, initialize it for its class by @init, record
 * the call @op, and set @out unless the fake is to fail.
 */
#define FAKE_OPEN(fake, op, member, out, init, ...)			\
({									\
	struct kofi_fake_obj *obj = NULL;				\
	int __ret = -ENOMEM;						\
									\
	if (!(fake)->call[op].ret && !(fake)->nothing)			\
		obj = fake_alloc(fake);					\
	if (obj) {							\
		init;							\
	}								\
	if (obj || (fake)->call[op].ret || (fake)->nothing)		\
		__ret = fake_enter(fake, op, obj ? &obj->fid : NULL,	\
				   ##__VA_ARGS__);			\
	if (!__ret && obj)						\
		*(out) = &obj->member;					\
	else if (obj)							\
		fake_free(obj);						\
	__ret;								\
})

static int fake_close(struct fid *fid)
{
	struct kofi_fake_obj *obj = kofi_fake_obj(fid);
	int ret = fake_enter(obj->fake, FAKE_CLOSE, fid);

	if (!ret)
		fake_free(obj);
	return ret;
}

static int fake_bind(struct fid *fid, struct fid *bfid, u64 flags)
{
	return fake_enter(kofi_fake_obj(fid)->fake, FAKE_BIND, fid, A(bfid),
			  flags);
}

static int fake_control(struct fid *fid, int command, void *arg)
{
	return fake_enter(kofi_fake_obj(fid)->fake, FAKE_CONTROL, fid,
			  A(command), A(arg));
}

static int fake_ops_open(struct fid *fid, const char *name, u64 flags, void **ops, void *context)
{
	return fake_enter(kofi_fake_obj(fid)->fake, FAKE_OPS_OPEN, fid, A(name), flags, A(ops),
			  A(context));
}

static const struct fi_ops fake_fid_ops = {
	.close		= fake_close,
	.bind		= fake_bind,
	.control	= fake_control,
	.ops_open	= fake_ops_open,
};

/* Address vectors */

static int fake_insert(struct fid_av *av, const void *addr, size_t count,
		       fi_addr_t *fi_addr, u64 flags, void *context)
{
	return fake_called(FAKE_INSERT, av, A(addr), count, A(fi_addr), flags,
			   A(context));
}

static int fake_remove(struct fid_av *av, fi_addr_t *fi_addr, size_t count,
		       u64 flags)
{
	return fake_called(FAKE_REMOVE, av, A(fi_addr), count, flags);
}

static int fake_lookup(struct fid_av *av, fi_addr_t fi_addr, void *addr,
		       size_t *addrlen)
{
	return fake_called(FAKE_LOOKUP, av, fi_addr, A(addr), A(addrlen));
}

static const char *fake_straddr(struct fid_av *av, const void *addr, char *buf,
				size_t *len)
{
	fake_called(FAKE_STRADDR, av, A(addr), A(buf), A(len));
	return buf;
}

static const struct fi_ops_av fake_av_ops = {
	.insert		= fake_insert,
	.remove		= fake_remove,
	.lookup		= fake_lookup,
	.straddr	= fake_straddr,
};

/* Endpoints: control */

static ssize_t fake_cancel(struct fid *fid, void *context)
{
	return fake_enter(kofi_fake_obj(fid)->fake, FAKE_CANCEL, fid,
			  A(context));
}

static int fake_flush(struct fid_ep *ep, fi_addr_t addr, unsigned int timeout_ms)
{
	return fake_enter(kofi_fake_obj(&ep->fid)->fake, FAKE_FLUSH, &ep->fid, addr, timeout_ms);
}

static int fake_getopt(struct fid *fid, int level, int optname, void *optval,
		       size_t *optlen)
{
	return fake_enter(kofi_fake_obj(fid)->fake, FAKE_GETOPT, fid, A(level),
			  A(optname), A(optval), A(optlen));
}

static int fake_setopt(struct fid *fid, int level, int optname,
		       const void *optval, size_t optlen)
{
	return fake_enter(kofi_fake_obj(fid)->fake, FAKE_SETOPT, fid, A(level),
			  A(optname), A(optval), optlen);
}

static const struct fi_ops_ep fake_ep_ops = {
	.cancel	= fake_cancel,
	.flush	= fake_flush,
	.getopt	= fake_getopt,
	.setopt	= fake_setopt,
};

static int fake_setname(struct fid *fid, void *addr, size_t addrlen)
{
	return fake_enter(kofi_fake_obj(fid)->fake, FAKE_SETNAME, fid, A(addr), addrlen);
}

static int fake_getname(struct fid *fid, void *addr, size_t *addrlen)
{
	return fake_enter(kofi_fake_obj(fid)->fake, FAKE_GETNAME, fid, A(addr),
			  A(addrlen));
}

static int fake_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	return fake_called(FAKE_GETPEER, ep, A(addr), A(addrlen));
}

static int fake_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
	return fake_called(FAKE_CONNECT, ep, A(addr), A(param), paramlen);
}

static int fake_listen(struct fid_pep *pep)
{
	return fake_enter(kofi_fake_obj(&pep->fid)->fake, FAKE_LISTEN, &pep->fid, 0);
}

static int fake_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	return fake_called(FAKE_ACCEPT, ep, A(param), paramlen);
}

static int fake_reject(struct fid_pep *pep, struct fid *handle, const void *param,
		       size_t paramlen)
{
	return fake_called(FAKE_REJECT, pep, A(handle), A(param), paramlen);
}

static int fake_shutdown(struct fid_ep *ep, u64 flags)
{
	return fake_called(FAKE_SHUTDOWN, ep, flags);
}

static const struct fi_ops_cm fake_cm_ops = {
	.setname	= fake_setname,
	.getname	= fake_getname,
	.getpeer	= fake_getpeer,
	.connect	= fake_connect,
	.listen		= fake_listen,
	.accept		= fake_accept,
	.reject		= fake_reject,
	.shutdown	= fake_shutdown,
};

/* Endpoints: data calls, by the shapes of their arguments */

#define EP	struct fid_ep *ep
#define BUF	void *buf, size_t len
#define CBUF	const void *buf, size_t len
#define IOV	const struct kvec *iov, void **desc, size_t count
#define TO	fi_addr_t to
#define RMT	u64 addr, u64 key
#define A_IOV	A(iov), A(desc), count

#define FAKE_DATA(name, op, params, ...) \
	static ssize_t fake_##name params \
	{ return fake_called(op, ep, __VA_ARGS__); }

FAKE_DATA(recv, FAKE_RECV, (EP, BUF, void *desc, TO, void *context),
	  A(buf), len, A(desc), to, A(context))
FAKE_DATA(recvv, FAKE_RECVV, (EP, IOV, TO, void *context),
	  A_IOV, to, A(context))
FAKE_DATA(recvmsg, FAKE_RECVMSG, (EP, const struct fi_msg *msg, u64 flags),
	  A(msg), flags)
FAKE_DATA(send, FAKE_SEND, (EP, CBUF, void *desc, TO, void *context),
	  A(buf), len, A(desc), to, A(context))
FAKE_DATA(sendv, FAKE_SENDV, (EP, IOV, TO, void *context),
	  A_IOV, to, A(context))
FAKE_DATA(sendmsg, FAKE_SENDMSG, (EP, const struct fi_msg *msg, u64 flags),
	  A(msg), flags)
FAKE_DATA(inject, FAKE_INJECT, (EP, CBUF, TO), A(buf), len, to)
FAKE_DATA(senddata, FAKE_SENDDATA,
	  (EP, CBUF, void *desc, u64 data, TO, void *context),
	  A(buf), len, A(desc), data, to, A(context))
FAKE_DATA(injectdata, FAKE_INJECTDATA, (EP, CBUF, u64 data, TO),
	  A(buf), len, data, to)

static const struct fi_ops_msg fake_msg_ops = {
	.recv		= fake_recv,
	.recvv		= fake_recvv,
	.recvmsg	= fake_recvmsg,
	.send		= fake_send,
	.sendv		= fake_sendv,
	.sendmsg	= fake_sendmsg,
	.inject		= fake_inject,
	.senddata	= fake_senddata,
	.injectdata	= fake_injectdata,
};

FAKE_DATA(trecv, FAKE_TRECV,
	  (EP, BUF, void *desc, TO, u64 tag, u64 ignore, void *context),
	  A(buf), len, A(desc), to, tag, ignore, A(context))
FAKE_DATA(trecvv, FAKE_TRECVV,
	  (EP, IOV, TO, u64 tag, u64 ignore, void *context),
	  A_IOV, to, tag, ignore, A(context))
FAKE_DATA(trecvmsg, FAKE_TRECVMSG,
	  (EP, const struct fi_msg_tagged *msg, u64 flags), A(msg), flags)
FAKE_DATA(tsend, FAKE_TSEND,
	  (EP, CBUF, void *desc, TO, u64 tag, void *context),
	  A(buf), len, A(desc), to, tag, A(context))
FAKE_DATA(tsendv, FAKE_TSENDV, (EP, IOV, TO, u64 tag, void *context),
	  A_IOV, to, tag, A(context))
FAKE_DATA(tsendmsg, FAKE_TSENDMSG,
	  (EP, const struct fi_msg_tagged *msg, u64 flags), A(msg), flags)
FAKE_DATA(tinject, FAKE_TINJECT, (EP, CBUF, TO, u64 tag),
	  A(buf), len, to, tag)
FAKE_DATA(tsenddata, FAKE_TSENDDATA,
	  (EP, CBUF, void *desc, u64 data, TO, u64 tag, void *context),
	  A(buf), len, A(desc), data, to, tag, A(context))
FAKE_DATA(tinjectdata, FAKE_TINJECTDATA, (EP, CBUF, u64 data, TO, u64 tag),
	  A(buf), len, data, to, tag)

static const struct fi_ops_tagged fake_tagged_ops = {
	.recv		= fake_trecv,
	.recvv		= fake_trecvv,
	.recvmsg	= fake_trecvmsg,
	.send		= fake_tsend,
	.sendv		= fake_tsendv,
	.sendmsg	= fake_tsendmsg,
	.inject		= fake_tinject,
	.senddata	= fake_tsenddata,
	.injectdata	= fake_tinjectdata,
};

FAKE_DATA(read, FAKE_READ, (EP, BUF, void *desc, TO, RMT, void *context),
	  A(buf), len, A(desc), to, addr, key, A(context))
FAKE_DATA(readv, FAKE_READV, (EP, IOV, TO, RMT, void *context),
	  A_IOV, to, addr, key, A(context))
FAKE_DATA(readmsg, FAKE_READMSG,
	  (EP, const struct fi_msg_rma *msg, u64 flags), A(msg), flags)
FAKE_DATA(write, FAKE_WRITE,
	  (EP, CBUF, void *desc, TO, RMT, void *context),
	  A(buf), len, A(desc), to, addr, key, A(context))
FAKE_DATA(writev, FAKE_WRITEV, (EP, IOV, TO, RMT, void *context),
	  A_IOV, to, addr, key, A(context))
FAKE_DATA(writemsg, FAKE_WRITEMSG,
	  (EP, const struct fi_msg_rma *msg, u64 flags), A(msg), flags)
FAKE_DATA(inject_write, FAKE_INJECT_WRITE, (EP, CBUF, TO, RMT),
	  A(buf), len, to, addr, key)
FAKE_DATA(writedata, FAKE_WRITEDATA,
	  (EP, CBUF, void *desc, u64 data, TO, RMT, void *context),
	  A(buf), len, A(desc), data, to, addr, key, A(context))
FAKE_DATA(inject_writedata, FAKE_INJECT_WRITEDATA,
	  (EP, CBUF, u64 data, TO, RMT), A(buf), len, data, to, addr, key)

static const struct fi_ops_rma fake_rma_ops = {
	.read		= fake_read,
	.readv		= fake_readv,
	.readmsg	= fake_readmsg,
	.write		= fake_write,
	.writev		= fake_writev,
	.writemsg	= fake_writemsg,
	.inject		= fake_inject_write,
	.writedata	= fake_writedata,
	.injectdata	= fake_inject_writedata,
};

#define OP	enum fi_datatype datatype, enum fi_op op
#define IOC	const struct fi_ioc *iov, void **desc, size_t count
#define CMP	const struct fi_ioc *comparev, void **compare_desc, size_t compare_count
#define RES	struct fi_ioc *resultv, void **result_desc, size_t result_count
#define AMSG	const struct fi_msg_atomic *msg
#define A_CMP	A(comparev), A(compare_desc), compare_count
#define A_RES	A(resultv), A(result_desc), result_count
#define A_TO	to, addr, key, datatype, op

FAKE_DATA(atomic, FAKE_ATOMIC, (EP, CBUF, void *desc, TO, RMT, OP, void *context),
	  A(buf), len, A(desc), A_TO, A(context))
FAKE_DATA(atomicv, FAKE_ATOMICV, (EP, IOC, TO, RMT, OP, void *context), A_IOV, A_TO, A(context))
FAKE_DATA(atomicmsg, FAKE_ATOMICMSG, (EP, AMSG, u64 flags), A(msg), flags)
FAKE_DATA(inject_atomic, FAKE_INJECT_ATOMIC, (EP, CBUF, TO, RMT, OP), A(buf), len, A_TO)
FAKE_DATA(fetch_atomic, FAKE_FETCH_ATOMIC,
	  (EP, CBUF, void *desc, void *result, void *result_desc, TO, RMT, OP, void *context),
	  A(buf), len, A(desc), A(result), A(result_desc), A_TO, A(context))
FAKE_DATA(fetch_atomicv, FAKE_FETCH_ATOMICV, (EP, IOC, RES, TO, RMT, OP, void *context),
	  A_IOV, A_RES, A_TO, A(context))
FAKE_DATA(fetch_atomicmsg, FAKE_FETCH_ATOMICMSG, (EP, AMSG, RES, u64 flags), A(msg), A_RES, flags)
FAKE_DATA(compare_atomic, FAKE_COMPARE_ATOMIC,
	  (EP, CBUF, void *desc, const void *compare, void *compare_desc, void *result,
	   void *result_desc, TO, RMT, OP, void *context),
	  A(buf), len, A(desc), A(compare), A(compare_desc), A(result), A(result_desc), A_TO,
	  A(context))
FAKE_DATA(compare_atomicv, FAKE_COMPARE_ATOMICV, (EP, IOC, CMP, RES, TO, RMT, OP, void *context),
	  A_IOV, A_CMP, A_RES, A_TO, A(context))
FAKE_DATA(compare_atomicmsg, FAKE_COMPARE_ATOMICMSG, (EP, AMSG, CMP, RES, u64 flags),
	  A(msg), A_CMP, A_RES, flags)

static const struct fi_ops_atomic fake_atomic_ops = {
	.write		= fake_atomic,
	.writev		= fake_atomicv,
	.writemsg	= fake_atomicmsg,
	.inject		= fake_inject_atomic,
	.readwrite	= fake_fetch_atomic,
	.readwritev	= fake_fetch_atomicv,
	.readwritemsg	= fake_fetch_atomicmsg,
	.compwrite	= fake_compare_atomic,
	.compwritev	= fake_compare_atomicv,
	.compwritemsg	= fake_compare_atomicmsg,
};

/* Regions */

static int fake_post_reg(struct fid_mr *mr, const struct fi_mr_attr *attr,
			 u64 flags)
{
	return fake_called(FAKE_POST_REG, mr, A(attr), flags);
}

static int fake_post_inval(struct fid_mr *mr, u64 flags, void *context)
{
	return fake_called(FAKE_POST_INVAL, mr, flags, A(context));
}

static const struct fi_ops_mr fake_mr_ops = {
	.post_reg	= fake_post_reg,
	.post_inval	= fake_post_inval,
};

/* Domains */

static int fake_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
			struct fid_av **av, void *context)
{
	struct kofi_fake *fake = kofi_fake_obj(&domain->fid)->fake;

	if (attr->type == FI_AV_UNSPEC)
		attr->type = FI_AV_TABLE;
	return FAKE_OPEN(fake, FAKE_AV, av, av, obj->av.ops = fake->av_ops,
			 A(domain), A(attr), A(context));
}

static int fake_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
			struct fid_cq **cq, void *context)
{
	struct kofi_fake *fake = kofi_fake_obj(&domain->fid)->fake;
	struct fid_cq *new = NULL;
	int ret;

	ret = FAKE_OPEN(fake, FAKE_CQ, cq.cq_fid, &new, obj->queue = false,
			A(domain), A(attr), A(context));
	if (ret || !new)
		return ret;
	ret = kofi_cq_init(kofi_fake_to_cq(new), attr, &fake->cq_config);
	if (ret) {
		fake_free(kofi_fake_obj(&new->fid));
		return ret;
	}
	kofi_fake_obj(&new->fid)->queue = true;
	*cq = new;
	return 0;
}

static int fake_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
			  struct fid_cntr **cntr, void *context)
{
	struct kofi_fake *fake = kofi_fake_obj(&domain->fid)->fake;

	return FAKE_OPEN(fake, FAKE_CNTR, cntr.cntr_fid, cntr,
			 kofi_cntr_init(&obj->cntr, attr),
			 A(domain), A(attr), A(context));
}

static void fake_init_ep(struct kofi_fake *fake, struct fid_ep *ep)
{
	ep->ops = fake->ep_ops;
	ep->cm = fake->cm_ops;
	ep->msg = fake->msg_ops;
	ep->tagged = fake->tagged_ops;
	ep->rma = fake->rma_ops;
	ep->atomic = fake->atomic_ops;
	ep->req = fake->req_ops;
}

static int fake_endpoint(struct fid_domain *domain, struct fi_info *info,
			 struct fid_ep **ep, void *context)
{
	struct kofi_fake *fake = kofi_fake_obj(&domain->fid)->fake;

	return FAKE_OPEN(fake, FAKE_EP, ep, ep, fake_init_ep(fake, &obj->ep),
			 A(domain), A(info), A(context));
}

static void fake_init_mr(struct fid_mr *mr)
{
	mr->ops = &kofi_mr_no_ops;
	mr->key = 0x1234;
}

static int fake_mr_regattr(struct fid_domain *domain,
			   const struct fi_mr_attr *attr, u64 flags,
			   struct fid_mr **mr)
{
	struct kofi_fake *fake = kofi_fake_obj(&domain->fid)->fake;

	return FAKE_OPEN(fake, FAKE_MR_REG, mr, mr, fake_init_mr(&obj->mr),
			 A(domain), A(attr->type), A(attr->mr_iov),
			 attr->iov_count, attr->access, attr->offset,
			 attr->requested_key, flags, A(attr->context));
}

static int fake_mr_alloc(struct fid_domain *domain,
			 const struct fi_mr_alloc_attr *attr,
			 struct fid_mr **mr, void *context)
{
	struct kofi_fake *fake = kofi_fake_obj(&domain->fid)->fake;

	return FAKE_OPEN(fake, FAKE_MR_ALLOC, mr, mr,
			 obj->mr.ops = fake->mr_ops,
			 A(domain), A(attr), A(context));
}

static int fake_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			     struct fi_atomic_attr *attr, u64 flags)
{
	attr->count = 10 * datatype + op;
	attr->size = 7;
	return fake_called(FAKE_QUERY_ATOMIC, domain, datatype, op, A(attr), flags);
}

static const struct fi_ops_domain fake_domain_ops = {
	.av_open	= fake_av_open,
	.cq_open	= fake_cq_open,
	.endpoint	= fake_endpoint,
	.cntr_open	= fake_cntr_open,
	.mr_regattr	= fake_mr_regattr,
	.mr_alloc	= fake_mr_alloc,
	.query_atomic	= fake_query_atomic,
};

/* Fabrics */

static int fake_domain(struct fid_fabric *fabric, struct fi_info *info,
		       struct fid_domain **domain, void *context)
{
	struct kofi_fake *fake = kofi_fake_obj(&fabric->fid)->fake;

	return FAKE_OPEN(fake, FAKE_DOMAIN, domain, domain,
			 obj->domain.ops = fake->domain_ops,
			 A(fabric), A(info), A(context));
}

static void fake_init_pep(struct kofi_fake *fake, struct fid_pep *pep)
{
	pep->ops = fake->ep_ops;
	pep->cm = fake->cm_ops;
}

static int fake_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
			   void *context)
{
	struct kofi_fake *fake = kofi_fake_obj(&fabric->fid)->fake;

	return FAKE_OPEN(fake, FAKE_PEP, pep, pep, fake_init_pep(fake, &obj->pep),
			 A(fabric), A(info), A(context));
}

static const struct fi_ops_fabric fake_fabric_ops = {
	.domain		= fake_domain,
	.passive_ep	= fake_passive_ep,
};

int fake_fabric(struct kofi_fake *fake, struct fi_fabric_attr *attr,
		struct fid_fabric **fabric, void *context)
{
	return FAKE_OPEN(fake, FAKE_FABRIC, fabric, fabric,
			 obj->fabric.ops = fake->fabric_ops,
			 A(attr), A(context));
}

/* Copy all vectors into the fake, so that a test can change them. */
static ssize_t fake_no_req(struct fid_ep *ep, struct kofi_req *req)
{
	return -EOPNOTSUPP;
}

static const struct kofi_req_ops fake_req_ops = {
	.tx	= fake_no_req,
	.rx	= fake_no_req,
};

void fake_use_ops(struct kofi_fake *fake)
{
	fake->fid_ops = &fake_fid_ops;
	fake->fabric_ops = &fake_fabric_ops;
	fake->domain_ops = &fake_domain_ops;
	fake->av_ops = &fake_av_ops;
	fake->ep_ops = &fake_ep_ops;
	fake->cm_ops = &fake_cm_ops;
	fake->msg_ops = &fake_msg_ops;
	fake->tagged_ops = &fake_tagged_ops;
	fake->rma_ops = &fake_rma_ops;
	fake->atomic_ops = &fake_atomic_ops;
	fake->req_ops = &fake_req_ops;
	fake->mr_ops = &fake_mr_ops;
}
