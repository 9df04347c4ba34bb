// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Opening. Every call checks its arguments, allocates a node that pins the parent, calls
 * the provider, and publishes or frees the node. The core allocates no memory after the
 * provider's call, so that it never has to close an object for lack of memory.
 */
#include <linux/slab.h>
#include <linux/uio.h>
#include "kofi.h"

#define FI_MR_ACCESS	(FI_READ | FI_WRITE | FI_REMOTE_READ | \
			 FI_REMOTE_WRITE | FI_SEND | FI_RECV)

static struct kofi_node *kofi_open_begin(struct fid *parent,
					 enum fi_class parent_class)
{
	int ret = kofi_enter(parent, parent_class);

	return ret ? ERR_PTR(ret) : kofi_node_alloc(parent->node);
}

static int kofi_open_end(struct kofi_node *node, int ret, struct fid *fid,
			 enum fi_class fclass, void *context)
{
	if (!ret)
		ret = kofi_node_publish(node, fid, fclass, context);
	if (ret)
		kofi_node_free(node);
	return ret;
}

/*
 * Open a child of @from: call the op @op with @args, a list in parentheses that contains
 * &@new, where the provider stores the object. @new is used only if the op succeeded. The
 * fid is the first member of every object.
 */
#define KOFI_OPEN(from, from_class, op, args, new, out, cls, context)	\
({									\
	struct kofi_node *__node;					\
	int __rc;							\
									\
	__node = kofi_open_begin(&(from)->fid, from_class);	\
	if (IS_ERR(__node)) {						\
		__rc = PTR_ERR(__node);					\
	} else {							\
		__rc = (from)->ops && (from)->ops->op ?			\
		       (from)->ops->op args : -EOPNOTSUPP;		\
		__rc = kofi_open_end(__node, __rc,			\
				     (new) ? &(new)->fid : NULL, cls,	\
				     context);				\
	}								\
	if (!__rc)							\
		*(out) = new;						\
	__rc;								\
})

#define KOFI_DOMAIN_OPEN(domain, op, args, new, out, cls, context)	\
	KOFI_OPEN(domain, FI_CLASS_DOMAIN, op, args, new, out, cls, context)

/**
 * fi_fabric() - open a fabric
 * @attr: names provider and fabric, as fi_getinfo() does
 * @fabric: takes the fabric
 * @context: the caller's context
 *
 * Loads the provider if necessary, and pins its module. fi_fabric(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -EINVAL, -ENODEV when there is no such provider, -EDEADLK,
 * -ENOMEM, or the provider's error.
 */
int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
	      void *context)
{
	struct fid_fabric *new = NULL;
	struct kofi_node *node;
	int ret;

	might_sleep();
	if (!attr || !attr->prov_name || !attr->name || !fabric)
		return -EINVAL;
	if (kofi_in_handler())
		return -EDEADLK;
	node = kofi_node_alloc(NULL);
	if (IS_ERR(node))
		return PTR_ERR(node);
	/* fi_close() of the fabric releases the provider. */
	node->reg = kofi_reg_get(attr->prov_name);
	ret = node->reg ? node->reg->provider->fabric(attr, &new, context) : -ENODEV;
	if (!ret)
		ret = kofi_node_publish(node, new ? &new->fid : NULL,
					FI_CLASS_FABRIC, context);
	if (!ret) {
		*fabric = new;
		return 0;
	}
	if (node->reg)
		kofi_reg_put(node->reg);
	kofi_node_free(node);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(fi_fabric, KOFI);

/**
 * fi_eq_open() - open an event queue
 * @fabric: the fabric
 * @attr: attributes of the queue; a size of 0 is replaced by the actual one
 * @eq: takes the event queue
 * @context: the caller's context
 *
 * fi_eq(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -EINVAL, -FI_EBADFLAGS, -EDEADLK, -ENOMEM.
 */
int fi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
	       struct fid_eq **eq, void *context)
{
	struct fid_eq *new = NULL;
	struct kofi_node *node;
	int ret;

	if (!fabric || !attr || !eq || attr->wait_obj > FI_WAIT_UNSPEC)
		return -EINVAL;
	if (attr->flags & ~(FI_WRITE | FI_DEVICE_EVENTS))
		return -FI_EBADFLAGS;
	node = kofi_open_begin(&fabric->fid, FI_CLASS_FABRIC);
	if (IS_ERR(node))
		return PTR_ERR(node);
	node->device_events = attr->flags & FI_DEVICE_EVENTS;
	ret = kofi_eq_open(attr, &new);
	ret = kofi_open_end(node, ret, new ? &new->fid : NULL, FI_CLASS_EQ, context);
	if (!ret)
		*eq = new;
	return ret;
}
EXPORT_SYMBOL_NS_GPL(fi_eq_open, KOFI);

/**
 * fi_domain() - open a domain: one device's resources
 * @fabric: the fabric
 * @info: an entry of fi_getinfo()
 * @domain: takes the domain
 * @context: the caller's context, returned in events
 *
 * fi_domain(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -EINVAL, -EOPNOTSUPP, -EDEADLK, -ENOMEM, -ENODEV when there is no
 * such device any more, or the provider's error.
 */
int fi_domain(struct fid_fabric *fabric, struct fi_info *info,
	      struct fid_domain **domain, void *context)
{
	struct fid_domain *new = NULL;

	if (!fabric || !info || !info->domain_attr || !domain)
		return -EINVAL;
	return KOFI_OPEN(fabric, FI_CLASS_FABRIC, domain,
			 (fabric, info, &new, context), new, domain,
			 FI_CLASS_DOMAIN, context);
}
EXPORT_SYMBOL_NS_GPL(fi_domain, KOFI);

/**
 * fi_av_open() - open an address vector
 * @domain: the domain
 * @attr: attributes of the vector; FI_AV_UNSPEC is replaced by the actual type
 * @av: takes the address vector
 * @context: the caller's context
 *
 * fi_av(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -EINVAL, -FI_EBADFLAGS, -EOPNOTSUPP, -EDEADLK, -ENOMEM, -ENODEV,
 * or the provider's error.
 */
int fi_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
	       struct fid_av **av, void *context)
{
	struct fid_av *new = NULL;

	if (!domain || !attr || !av || attr->type > FI_AV_TABLE ||
	    attr->rx_ctx_bits)
		return -EINVAL;
	if (attr->flags)
		return -FI_EBADFLAGS;
	return KOFI_DOMAIN_OPEN(domain, av_open, (domain, attr, &new, context),
				new, av, FI_CLASS_AV, context);
}
EXPORT_SYMBOL_NS_GPL(fi_av_open, KOFI);

/**
 * fi_cq_open() - open a completion queue
 * @domain: the domain
 * @attr: attributes of the queue; unspecified ones are replaced by the actual ones
 * @cq: takes the completion queue
 * @context: the caller's context
 *
 * fi_cq(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -EINVAL, -FI_EBADFLAGS, -EOPNOTSUPP, -EDEADLK, -ENOMEM, -ENODEV,
 * or the provider's error.
 */
int fi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
	       struct fid_cq **cq, void *context)
{
	struct fid_cq *new = NULL;

	if (!domain || !attr || !cq || attr->format > FI_CQ_FORMAT_TAGGED ||
	    attr->wait_obj > FI_WAIT_UNSPEC ||
	    attr->wait_cond > FI_CQ_COND_THRESHOLD)
		return -EINVAL;
	if (attr->flags & ~(FI_AFFINITY | FI_CQ_SOFTIRQ))
		return -FI_EBADFLAGS;
	if (attr->flags & FI_CQ_SOFTIRQ && !attr->handler)
		return -EINVAL;
	return KOFI_DOMAIN_OPEN(domain, cq_open, (domain, attr, &new, context),
				new, cq, FI_CLASS_CQ, context);
}
EXPORT_SYMBOL_NS_GPL(fi_cq_open, KOFI);

/**
 * fi_cntr_open() - open a counter
 * @domain: the domain
 * @attr: attributes of the counter
 * @cntr: takes the counter
 * @context: the caller's context
 *
 * fi_cntr(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -EINVAL, -FI_EBADFLAGS, -EOPNOTSUPP, -EDEADLK, -ENOMEM, -ENODEV,
 * or the provider's error.
 */
int fi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		 struct fid_cntr **cntr, void *context)
{
	struct fid_cntr *new = NULL;

	if (!domain || !attr || !cntr || attr->wait_obj > FI_WAIT_UNSPEC ||
	    attr->events > FI_CNTR_EVENTS_BYTES)
		return -EINVAL;
	if (attr->flags)
		return -FI_EBADFLAGS;
	return KOFI_DOMAIN_OPEN(domain, cntr_open,
				(domain, attr, &new, context),
				new, cntr, FI_CLASS_CNTR, context);
}
EXPORT_SYMBOL_NS_GPL(fi_cntr_open, KOFI);

/**
 * fi_endpoint() - open an endpoint
 * @domain: the domain
 * @info: attributes of the endpoint: an entry of fi_getinfo(), or of a connection request
 * @ep: takes the endpoint
 * @context: the caller's context, returned in events
 *
 * Before it transfers data, the endpoint must be bound to its queues with fi_ep_bind() and
 * enabled with fi_enable(). fi_endpoint(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -EINVAL, -EOPNOTSUPP, -EDEADLK, -ENOMEM, -ENODEV, or the
 * provider's error.
 */
int fi_endpoint(struct fid_domain *domain, struct fi_info *info,
		struct fid_ep **ep, void *context)
{
	struct fid_ep *new = NULL;
	struct fid *fid = NULL;
	int ret;

	if (!domain || !info || !info->ep_attr || !info->tx_attr ||
	    !info->rx_attr || !ep || info->ep_attr->type > FI_EP_RDM)
		return -EINVAL;
	if (info->ep_attr->protocol == FI_PROTO_KOFI_MSG) {
		ret = kofi_connector_open(&domain->fid, FI_CLASS_DOMAIN, info, &fid,
					  context);
		if (ret)
			return ret;
		new = kofi_to_ep(fid);
		*ep = new;
	} else {
		ret = KOFI_DOMAIN_OPEN(domain, endpoint, (domain, info, &new, context),
				       new, ep, FI_CLASS_EP, context);
		if (ret)
			return ret;
	}
	new->fid.node->caps = kofi_ep_caps(info->caps, ~0ULL);
	new->fid.node->ep_type = info->ep_attr->type;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(fi_endpoint, KOFI);

/**
 * fi_passive_ep() - open a passive endpoint, which gets connection requests
 * @fabric: the fabric
 * @info: attributes of the endpoint: an entry of fi_getinfo() with FI_EP_MSG, whose src_addr is the
 *	address to listen at
 * @pep: takes the endpoint
 * @context: the caller's context
 *
 * Requests are events of an event queue: bind it with fi_pep_bind(), and then call fi_listen().
 * fi_endpoint(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -EINVAL, -EOPNOTSUPP, -EDEADLK, -ENOMEM, -ENODEV, or the provider's error.
 */
int fi_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
		  void *context)
{
	struct fid_pep *new = NULL;
	struct fid *fid = NULL;
	int ret;

	if (!fabric || !info || !info->ep_attr || !pep || info->ep_attr->type != FI_EP_MSG)
		return -EINVAL;
	if (info->ep_attr->protocol == FI_PROTO_KOFI_MSG) {
		ret = kofi_connector_open(&fabric->fid, FI_CLASS_FABRIC, info, &fid,
					  context);
		if (ret)
			return ret;
		new = container_of(fid, struct fid_pep, fid);
		*pep = new;
	} else {
		ret = KOFI_OPEN(fabric, FI_CLASS_FABRIC, passive_ep,
				(fabric, info, &new, context), new, pep, FI_CLASS_PEP, context);
		if (ret)
			return ret;
	}
	/* fi_listen() needs what a connected endpoint needs: an event queue. */
	new->fid.node->ep_type = FI_EP_MSG;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(fi_passive_ep, KOFI);

/**
 * fi_mr_regattr() - register memory
 * @domain: the domain
 * @attr: the memory, the access and the caller's context
 * @flags: must be 0
 * @mr: takes the region
 *
 * The memory must stay valid until the region is closed; @attr and its segment array need
 * not. fi_mr(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -EINVAL for memory with inner gaps and invalid arguments, -EMSGSIZE
 * for more pages than a region holds, -FI_EBADFLAGS, -EOPNOTSUPP, also for memory that the device
 * can't reach, -EDEADLK,
 * -ENOMEM, -FI_ENOMR when all regions are taken, -ENODEV.
 */
int fi_mr_regattr(struct fid_domain *domain, const struct fi_mr_attr *attr,
		  u64 flags, struct fid_mr **mr)
{
	struct fid_mr *new = NULL;

	if (!domain || !attr || !mr || attr->type > FI_MR_SGL ||
	    !attr->mr_iov || !attr->iov_count || attr->offset ||
	    !attr->access || attr->access & ~FI_MR_ACCESS)
		return -EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	return KOFI_DOMAIN_OPEN(domain, mr_regattr,
				(domain, attr, flags, &new),
				new, mr, FI_CLASS_MR, attr->context);
}
EXPORT_SYMBOL_NS_GPL(fi_mr_regattr, KOFI);

/* Return: whether the completions of an endpoint's sends go to a queue. */
static bool kofi_sends_to(const struct kofi_node *ep, const struct kofi_node *cq)
{
	const struct kofi_bind *bind;
	bool found = false;

	mutex_lock(&kofi_tree_lock);
	list_for_each_entry(bind, &ep->binds, list)
		found |= bind->node == cq && bind->flags & FI_TRANSMIT && !bind->pending;
	mutex_unlock(&kofi_tree_lock);
	return found;
}

/**
 * fi_mr_alloc() - allocate a region for fi_mr_post_reg() (kernel only)
 * @domain: the domain
 * @attr: size, access and completion queue of the region
 * @mr: takes the region
 * @context: the caller's context
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -EINVAL, also for an endpoint whose sends complete in another queue,
 * -FI_EDOMAIN for a completion queue or an endpoint of another domain, -FI_EBADFLAGS, -FI_ENOCQ
 * without a queue, -EMSGSIZE for more pages than a region can hold, -FI_ENOMR when all regions are
 * taken, -EOPNOTSUPP, -EDEADLK, -ENOMEM, -ENODEV.
 */
int fi_mr_alloc(struct fid_domain *domain, const struct fi_mr_alloc_attr *attr,
		struct fid_mr **mr, void *context)
{
	struct fid_mr *new = NULL;
	struct kofi_node *held;
	int ret;

	if (!domain || !attr || !mr || !attr->max_pages || !attr->access ||
	    attr->access & ~FI_MR_ACCESS)
		return -EINVAL;
	if (attr->flags & ~FI_RETIRE)
		return -FI_EBADFLAGS;
	ret = kofi_enter(&domain->fid, FI_CLASS_DOMAIN);
	if (!ret)
		ret = attr->cq ? kofi_enter(&attr->cq->fid, FI_CLASS_CQ) :
				 -FI_ENOCQ;
	if (!ret && attr->ep)
		ret = kofi_enter(&attr->ep->fid, FI_CLASS_EP);
	if (ret)
		return ret;
	held = attr->ep ? attr->ep->fid.node : attr->cq->fid.node;
	if (held->parent != domain->fid.node || attr->cq->fid.node->parent != held->parent)
		return -FI_EDOMAIN;
	/* The provider knows its own endpoints only. */
	if (attr->ep && held->connector)
		return -EOPNOTSUPP;
	/* The endpoint keeps the queue from being closed only if they are bound. */
	if (attr->ep && !kofi_sends_to(held, attr->cq->fid.node))
		return -EINVAL;
	if (!kofi_node_get(held))
		return -EINVAL;
	ret = KOFI_DOMAIN_OPEN(domain, mr_alloc, (domain, attr, &new, context),
			       new, mr, FI_CLASS_MR, context);
	if (ret)
		kofi_node_put(held);
	else
		new->fid.node->held = held;
	return ret;
}
EXPORT_SYMBOL_NS_GPL(fi_mr_alloc, KOFI);
