// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Control calls on open objects: binding, enabling, options, addresses.
 */
#include <linux/slab.h>
#include "kofi.h"
#include "trace.h"

#define KOFI_CQ_BIND	(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION | FI_LAZY_COMPLETION)
#define KOFI_CNTR_BIND	(FI_SEND | FI_RECV | FI_READ | FI_WRITE | \
			 FI_REMOTE_READ | FI_REMOTE_WRITE)

/*
 * Store the purposes of a binding. Two bindings of one class exclude each other if they
 * have a purpose in common.
 */
static int kofi_bind_role(enum fi_class fclass, u64 flags, u64 *role)
{
	switch (fclass) {
	case FI_CLASS_AV:
	case FI_CLASS_EQ:
		*role = 0;
		return flags ? -FI_EBADFLAGS : 0;
	case FI_CLASS_CQ:
		*role = flags & (FI_TRANSMIT | FI_RECV);
		return flags & ~KOFI_CQ_BIND || !*role ? -FI_EBADFLAGS : 0;
	case FI_CLASS_CNTR:
		*role = flags;
		return flags & ~KOFI_CNTR_BIND || !flags ? -FI_EBADFLAGS : 0;
	default:
		return -EINVAL;
	}
}

/* Return: whether an object of a class is bound for one of the purposes in @role. */
static bool kofi_has_bind(const struct kofi_node *node, enum fi_class fclass,
			  u64 role)
{
	const struct kofi_bind *bind;

	lockdep_assert_held(&kofi_tree_lock);
	list_for_each_entry(bind, &node->binds, list)
		if (bind->node->fid->fclass == fclass &&
		    (!role || bind->flags & role))
			return true;
	return false;
}

/* Record the binding before the provider is called, so that no other one gets its role. */
static int kofi_bind_record(struct kofi_node *node, struct kofi_bind *bind,
			    u64 role)
{
	int ret = 0;

	mutex_lock(&kofi_tree_lock);
	if (node->state == KOFI_DEAD)
		ret = -ENODEV;
	else if (node->state != KOFI_OPEN)
		ret = -FI_EOPBADSTATE;
	else if (kofi_has_bind(node, bind->node->fid->fclass, role))
		ret = -EBUSY;
	else
		list_add_tail(&bind->list, &node->binds);
	/* The event queue may get FI_DEVICE_REMOVED now, so it also gets FI_DEVICE_ARRIVED. */
	if (!ret && node->fid->fclass == FI_CLASS_DOMAIN)
		bind->node->device_events = true;
	mutex_unlock(&kofi_tree_lock);
	return ret;
}

/**
 * kofi_bind() - bind an object to another
 * @fid: the object
 * @bfid: the object to be bound to it
 * @flags: of the call
 * @role: purposes of the binding, see kofi_bind_role()
 *
 * Context: Process context; sleeps.
 * Return: 0, -EBUSY, -FI_EOPBADSTATE, -EINVAL, -ENOMEM, -ENODEV, or the provider's error.
 */
int kofi_bind(struct fid *fid, struct fid *bfid, u64 flags, u64 role)
{
	struct kofi_bind *bind;
	LIST_HEAD(dropped);
	int ret = 0;

	bind = kzalloc(sizeof(*bind), GFP_KERNEL);
	if (!bind)
		return -ENOMEM;
	if (!kofi_node_get(bfid->node)) {
		kfree(bind);
		return -EINVAL;
	}
	bind->node = bfid->node;
	bind->flags = flags;
	bind->pending = true;
	if (fid->fclass == FI_CLASS_DOMAIN) {
		bind->removed = kofi_eq_reserve(sizeof(struct fi_eq_device_entry));
		ret = bind->removed ? 0 : -ENOMEM;
	}
	ret = ret ?: kofi_bind_record(fid->node, bind, role);
	if (ret) {
		kofi_bind_free(bind);
		return ret;
	}

	ret = fid->ops->bind ? fid->ops->bind(fid, bfid, flags) : 0;
	mutex_lock(&kofi_tree_lock);
	bind->pending = false;
	if (ret)
		list_del(&bind->list);
	mutex_unlock(&kofi_tree_lock);
	if (ret) {
		/* An event about the object may have been written meanwhile. */
		if (bfid->fclass == FI_CLASS_EQ)
			kofi_eq_forget(bfid, fid->node->id, &dropped);
		kofi_eq_drop(&dropped);
		kofi_bind_free(bind);
	}
	return ret;
}

/**
 * fi_ep_bind() - bind an endpoint to a queue, counter or address vector
 * @ep: the endpoint, not yet enabled
 * @bfid: the AV, CQ, counter or EQ
 * @flags: for a CQ FI_TRANSMIT and FI_RECV, and FI_SELECTIVE_COMPLETION to have
 *	completions on success only for operations with FI_COMPLETION, or with FI_TRANSMIT
 *	FI_LAZY_COMPLETION (kernel only) if nobody waits for those without it, see below; for a
 *	counter FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE; otherwise 0
 *
 * The object can't be closed before the endpoint. fi_endpoint(3).
 *
 * With FI_LAZY_COMPLETION a provider may report a send, read or write without FI_COMPLETION
 * together with a later completion of the endpoint, which saves an interrupt, a call of the handler
 * and a wake-up of a reader. It reports it, or its failure, after some tens of milliseconds at the
 * latest; sooner when a reader in process context polls, when fi_expedite() was called, when a post
 * was refused with -EAGAIN, or when the endpoint is closed. The same holds for all operations whose
 * queue isn't that for receives and has neither handler nor wait object, with the flag or without,
 * unless they are counted: nobody can be told of them. Readers in softirq context don't poll, so
 * they may see them late.
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -EINVAL for an object that can't be bound to an endpoint,
 * -FI_EBADFLAGS, -FI_EDOMAIN for an object of another domain or fabric, -EBUSY when the
 * endpoint has an object for that purpose, -FI_EOPBADSTATE when it was enabled before,
 * -EOPNOTSUPP, -EDEADLK, -ENOMEM, -ENODEV, or the provider's error.
 */
int fi_ep_bind(struct fid_ep *ep, struct fid *bfid, u64 flags)
{
	struct kofi_node *home;
	u64 role;
	int ret;

	if (!ep)
		return -EINVAL;
	ret = kofi_enter(&ep->fid, FI_CLASS_EP);
	if (!ret)
		ret = kofi_enter(bfid, FI_CLASS_UNSPEC);
	if (!ret)
		ret = kofi_bind_role(bfid->fclass, flags, &role);
	if (ret)
		return ret;
	home = ep->fid.node->parent;
	if (bfid->fclass == FI_CLASS_EQ)
		home = home->parent;
	if (bfid->node->parent != home)
		return -FI_EDOMAIN;
	if (!ep->fid.ops->bind)
		return -EOPNOTSUPP;
	return kofi_bind(&ep->fid, bfid, flags, role);
}
EXPORT_SYMBOL_NS_GPL(fi_ep_bind, KOFI);

/**
 * fi_domain_bind() - bind a domain to an event queue
 * @domain: the domain
 * @bfid: an event queue of the same fabric
 * @flags: must be 0
 *
 * The event queue gets FI_DEVICE_REMOVED when the domain's device is removed, and
 * FI_DEVICE_ARRIVED when the provider has a new device. fi_domain(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -EINVAL for anything but an event queue, -FI_EBADFLAGS,
 * -FI_EDOMAIN for a queue of another fabric, -EBUSY when the domain has a queue, -EDEADLK,
 * -ENOMEM, -ENODEV, or the provider's error.
 */
int fi_domain_bind(struct fid_domain *domain, struct fid *bfid, u64 flags)
{
	int ret;

	if (!domain)
		return -EINVAL;
	ret = kofi_enter(&domain->fid, FI_CLASS_DOMAIN);
	if (!ret)
		ret = kofi_enter(bfid, FI_CLASS_EQ);
	if (ret)
		return ret;
	if (flags)
		return -FI_EBADFLAGS;
	if (bfid->node->parent != domain->fid.node->parent)
		return -FI_EDOMAIN;
	return kofi_bind(&domain->fid, bfid, flags, 0);
}
EXPORT_SYMBOL_NS_GPL(fi_domain_bind, KOFI);

/*
 * The object that an endpoint of each type needs besides a queue or counter for each
 * direction, fi_endpoint(3). A connected endpoint needs no address vector.
 */
static const struct kofi_enable_need {
	enum fi_class	fclass;
	int		err;
} kofi_enable_needs[] = {
	[FI_EP_UNSPEC]	= { FI_CLASS_AV, -FI_ENOAV },
	[FI_EP_MSG]	= { FI_CLASS_EQ, -FI_ENOEQ },
	[FI_EP_DGRAM]	= { FI_CLASS_AV, -FI_ENOAV },
	[FI_EP_RDM]	= { FI_CLASS_AV, -FI_ENOAV },
};

/* Return: whether operations of @caps can complete, or the endpoint has none of them. */
static bool kofi_has_queue(const struct kofi_node *node, u64 cq, u64 caps)
{
	return !(node->caps & caps) || kofi_has_bind(node, FI_CLASS_CQ, cq) ||
	       kofi_has_bind(node, FI_CLASS_CNTR, caps);
}

static int kofi_enable_check(const struct kofi_node *node)
{
	const struct kofi_enable_need *need = &kofi_enable_needs[node->ep_type];
	const struct kofi_bind *bind;

	lockdep_assert_held(&kofi_tree_lock);
	if (node->state == KOFI_DEAD)
		return -ENODEV;
	if (node->state != KOFI_OPEN)
		return -FI_EOPBADSTATE;
	/* The provider may still refuse a pending binding. */
	list_for_each_entry(bind, &node->binds, list)
		if (bind->pending)
			return -EBUSY;
	if (!kofi_has_bind(node, need->fclass, 0))
		return need->err;
	if (!kofi_has_queue(node, FI_TRANSMIT, FI_SEND | FI_READ | FI_WRITE) ||
	    !kofi_has_queue(node, FI_RECV, FI_RECV))
		return -FI_ENOCQ;
	return 0;
}

/**
 * kofi_enable_begin() - begin to enable an endpoint, or to listen on a passive one
 * @node: the endpoint's node
 *
 * After success, the caller calls the provider and then kofi_enable_end().
 *
 * Context: Process context; sleeps.
 * Return: 0, -FI_ENOAV, -FI_ENOEQ, -FI_ENOCQ, -FI_EOPBADSTATE, -EBUSY, -ENODEV.
 */
int kofi_enable_begin(struct kofi_node *node)
{
	int ret;

	mutex_lock(&kofi_tree_lock);
	ret = kofi_enable_check(node);
	if (!ret)
		kofi_node_set_state(node, KOFI_ENABLING);
	mutex_unlock(&kofi_tree_lock);
	return ret;
}

/**
 * kofi_enable_end() - end what kofi_enable_begin() began
 * @node: the endpoint's node
 * @ret: result of the provider
 *
 * Context: Process context; sleeps.
 * Return: @ret, or -ENODEV when the device went away meanwhile.
 */
int kofi_enable_end(struct kofi_node *node, int ret)
{
	mutex_lock(&kofi_tree_lock);
	node->was_enabled = !ret;
	if (node->state == KOFI_DEAD)
		ret = -ENODEV;
	else
		kofi_node_set_state(node, ret ? KOFI_OPEN : KOFI_ENABLED);
	mutex_unlock(&kofi_tree_lock);
	return ret;
}

/**
 * fi_enable() - enable an endpoint for data transfer
 * @ep: the endpoint, bound to a completion queue or counter for each direction that
 *	it has, and to an address vector; a connected endpoint to an event queue instead
 *
 * fi_endpoint(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -FI_ENOAV, -FI_ENOEQ, -FI_ENOCQ, -FI_EOPBADSTATE when it is enabled already,
 * -EBUSY while an object is being bound to it, -EINVAL, -EOPNOTSUPP, -EDEADLK,
 * -ENODEV, or the provider's error, after which the endpoint is unchanged.
 */
int fi_enable(struct fid_ep *ep)
{
	int ret;

	if (!ep)
		return -EINVAL;
	ret = kofi_enter(&ep->fid, FI_CLASS_EP);
	if (ret)
		return ret;
	if (!ep->fid.ops->control)
		return -EOPNOTSUPP;
	return kofi_enable_begin(ep->fid.node) ?:
	       kofi_enable_end(ep->fid.node, ep->fid.ops->control(&ep->fid, FI_ENABLE, NULL));
}
EXPORT_SYMBOL_NS_GPL(fi_enable, KOFI);

static int kofi_disable_check(const struct kofi_node *node)
{
	int ret = 0;

	mutex_lock(&kofi_tree_lock);
	/* The operations of a dead endpoint may still be completing. */
	if (node->state == KOFI_DEAD)
		ret = node->was_enabled ? 0 : -ENODEV;
	else if (node->state != KOFI_ENABLED)
		ret = -FI_EOPBADSTATE;
	mutex_unlock(&kofi_tree_lock);
	return ret;
}

/**
 * fi_disable() - end the operations of an endpoint for good
 * @ep: the endpoint, enabled
 *
 * Does what fi_close() does for outstanding operations, for an endpoint that can't be closed
 * yet because regions of fi_mr_alloc() name it. Each outstanding operation gets its one
 * completion: the true result if the operation had finished, else ECANCELED. When the call
 * returns, neither the device nor the provider accesses the caller's buffers; only peers may
 * access registered regions, until these are closed. From then on posting fails with
 * -FI_EOPBADSTATE. Other CPUs may post during the call.
 *
 * If the device went away, the call waits until its removal has completed all operations.
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, also when it was called before or the device went away; for an endpoint that was
 * never enabled -FI_EOPBADSTATE, or -ENODEV when the device went away; -EINVAL, -EOPNOTSUPP,
 * -EDEADLK.
 */
int fi_disable(struct fid_ep *ep)
{
	int ret;

	if (!ep)
		return -EINVAL;
	ret = kofi_enter(&ep->fid, FI_CLASS_EP);
	if (ret && ret != -ENODEV)
		return ret;
	ret = ep->fid.ops->control ? kofi_disable_check(ep->fid.node) : -EOPNOTSUPP;
	if (ret)
		return ret;
	return ep->fid.ops->control(&ep->fid, FI_DISABLE, NULL);
}
EXPORT_SYMBOL_NS_GPL(fi_disable, KOFI);

#define KOFI_AV_CALL(av, op, check, ...)				\
	KOFI_CALL(kofi_enter((av) ? &(av)->fid : NULL, FI_CLASS_AV), (av)->ops,	\
		  op, check, av, __VA_ARGS__)

/**
 * kofi_check() - check the arguments of a control call
 * @valid: the arguments but flags are valid
 * @bad_flags: flags that the call doesn't have
 *
 * Context: Any.
 * Return: 0, -EINVAL or -FI_EBADFLAGS.
 */
int kofi_check(bool valid, u64 bad_flags)
{
	return !valid ? -EINVAL : bad_flags ? -FI_EBADFLAGS : 0;
}

/**
 * kofi_check_room() - check a buffer for an address
 * @buf: the buffer; may be NULL with size 0, when the caller only asks for the size
 * @len: its size
 *
 * Context: Any.
 * Return: 0 or -EINVAL.
 */
int kofi_check_room(const void *buf, const size_t *len)
{
	return kofi_check(len && (buf || !*len), 0);
}

static int kofi_check_opt(int level, const void *val, bool len)
{
	return kofi_check(val && len, 0) ?:
	       level != FI_OPT_ENDPOINT ? -ENOPROTOOPT : 0;
}

/**
 * fi_control() - execute a command for which there is no separate call
 * @fid: the object
 * @command: FI_GETOPSFLAG, FI_SETOPSFLAG, or a command of the provider
 * @arg: depends on the command
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: depends on the command; -EINVAL, -EOPNOTSUPP, -EDEADLK, -ENODEV.
 */
int fi_control(struct fid *fid, int command, void *arg)
{
	int ret = kofi_enter(fid, FI_CLASS_UNSPEC);

	/* fi_disable() is for dead endpoints, too. */
	if (ret && !(ret == -ENODEV && command == FI_DISABLE))
		return ret;
	/* The core checks and changes the state of endpoints. */
	if (command == FI_ENABLE)
		return fid->fclass == FI_CLASS_EP ? fi_enable(kofi_to_ep(fid)) :
						    -EINVAL;
	if (command == FI_DISABLE)
		return fid->fclass == FI_CLASS_EP ? fi_disable(kofi_to_ep(fid)) :
						    -EINVAL;
	if (!fid->ops->control)
		return -EOPNOTSUPP;
	return fid->ops->control(fid, command, arg);
}
EXPORT_SYMBOL_NS_GPL(fi_control, KOFI);

/**
 * fi_open_ops() - get a provider's calls that others don't have
 * @fid: the object
 * @name: name of the vector, from the provider's header
 * @flags: 0
 * @ops: takes the vector, of the type that the provider's header names. It belongs to the
 *	provider, and is valid until the object is closed
 * @context: passed on to the provider
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -EINVAL, -FI_EBADFLAGS, -EDEADLK, -ENODEV; -EOPNOTSUPP if the provider has no such
 * vector for the object.
 */
int fi_open_ops(struct fid *fid, const char *name, u64 flags, void **ops, void *context)
{
	int ret = kofi_enter(fid, FI_CLASS_UNSPEC) ?: kofi_check(name && ops, flags);

	if (ret)
		return ret;
	if (!fid->ops->ops_open)
		return -EOPNOTSUPP;
	return fid->ops->ops_open(fid, name, flags, ops, context);
}
EXPORT_SYMBOL_NS_GPL(fi_open_ops, KOFI);

/**
 * fi_cancel() - cancel an operation
 * @fid: the endpoint
 * @context: context of the operation
 *
 * The operation still completes: with ECANCELED, or as usual if it was too late to cancel it. A
 * send can be cancelled until it has begun. A receive can be cancelled even while its message
 * arrives, if the provider supports that, as fabric efa does; the memory belongs to the ULP from
 * the completion on, which may be later. fi_endpoint(3).
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, -ENOENT when no operation with that context can be canceled,
 * -EINVAL, -EOPNOTSUPP, -ENODEV.
 */
ssize_t fi_cancel(struct fid *fid, void *context)
{
	struct fid_ep *ep;

	if (!fid || fid->fclass != FI_CLASS_EP)
		return -EINVAL;
	if (kofi_fid_dead(fid))
		return -ENODEV;
	ep = kofi_to_ep(fid);
	if (!ep->ops || !ep->ops->cancel)
		return -EOPNOTSUPP;
	return ep->ops->cancel(fid, context);
}
EXPORT_SYMBOL_NS_GPL(fi_cancel, KOFI);

/**
 * fi_expedite() - wait for outstanding operations that nobody waited for (kernel only)
 * @ep: the endpoint, bound to its completion queue with FI_LAZY_COMPLETION, or to one for sends
 *	alone that has neither handler nor wait object
 *
 * Completions of operations that are outstanding are reported as soon as they have ended, also of
 * those without FI_COMPLETION. Call it again for operations that are posted later. Does nothing if
 * the provider reports all completions at once. Doesn't wait itself.
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void fi_expedite(struct fid_ep *ep)
{
	if (ep->ops && ep->ops->expedite)
		ep->ops->expedite(ep);
}
EXPORT_SYMBOL_NS_GPL(fi_expedite, KOFI);

/**
 * fi_flush() - end all operations with one peer
 * @ep: the endpoint, enabled
 * @addr: the peer, which stays in the endpoint's address vector until the call returns
 * @timeout_ms: the time after which the call gives up waiting, in milliseconds
 *
 * For an endpoint that many peers share, when one of them is dead or doesn't answer. Each
 * outstanding send, read and write to the peer, and each receive that is directed to it, gets its
 * one completion: the true result if it had finished, else an error, which is ECANCELED unless the
 * device reports another one. Nothing is resent, and no further part of an operation is posted. The
 * device doesn't give back what it has, so the call waits until the device is done with it. When
 * the call returns 0, neither the device nor the provider accesses the buffers of these
 * operations. Operations with other peers go on, and so does the endpoint.
 *
 * The call doesn't wait for operations that are posted while it runs. Meanwhile fi_close() of the
 * endpoint returns -EBUSY. Removal of the device ends the wait.
 *
 * On fabric efa, a message that was ended leaves a gap in the numbers that the peer would wait for.
 * So a peer with outstanding sends or arriving messages is dead for the endpoint afterwards, and
 * posting to it returns -EHOSTUNREACH.
 *
 * Kernel only.
 *
 * Context: Process context; sleeps. Not from a completion handler.
 * Return: 0; -ETIMEDOUT if the device still has some of the operations, which complete later;
 * -EHOSTUNREACH if @addr isn't in the address vector; -FI_EOPBADSTATE before fi_enable();
 * -ENODEV when the device went away: its removal completes all operations, and buffers are in use
 * until then; -ENOMEM, and nothing was ended; -EINVAL, -EOPNOTSUPP, -EDEADLK.
 */
int fi_flush(struct fid_ep *ep, fi_addr_t addr, unsigned int timeout_ms)
{
	int ret = kofi_enter(ep ? &ep->fid : NULL, FI_CLASS_EP);

	if (ret)
		return ret;
	if (!ep->ops || !ep->ops->flush)
		return -EOPNOTSUPP;
	if (!kofi_node_get(ep->fid.node))
		return -EINVAL;
	ret = ep->ops->flush(ep, addr, timeout_ms);
	kofi_node_put(ep->fid.node);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(fi_flush, KOFI);

/**
 * fi_setopt() - set an endpoint's option
 * @fid: the endpoint, active or passive
 * @level: FI_OPT_ENDPOINT
 * @optname: FI_OPT_MIN_MULTI_RECV or another option. Some can be set only before fi_enable()
 * @optval: the value
 * @optlen: size of @optval in bytes
 *
 * fi_endpoint(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -ENOPROTOOPT for an option that is unknown or read-only, -FI_EOPBADSTATE when
 * the option had to be set before fi_enable(), -EINVAL, -EOPNOTSUPP, -EDEADLK, -ENODEV.
 */
int fi_setopt(struct fid *fid, int level, int optname, const void *optval,
	      size_t optlen)
{
	return KOFI_CALL(kofi_enter_ep(fid), kofi_to_ep(fid)->ops, setopt,
			 kofi_check_opt(level, optval, optlen),
			 fid, level, optname, optval, optlen);
}
EXPORT_SYMBOL_NS_GPL(fi_setopt, KOFI);

/**
 * fi_getopt() - get an endpoint's option
 * @fid: the endpoint, active or passive
 * @level: FI_OPT_ENDPOINT
 * @optname: FI_OPT_MIN_MULTI_RECV or another option
 * @optval: takes the value
 * @optlen: size of @optval in bytes; takes the value's size
 *
 * fi_endpoint(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -ENOPROTOOPT for an unknown option, -FI_ETOOSMALL, -EINVAL,
 * -EOPNOTSUPP, -EDEADLK, -ENODEV.
 */
int fi_getopt(struct fid *fid, int level, int optname, void *optval,
	      size_t *optlen)
{
	return KOFI_CALL(kofi_enter_ep(fid), kofi_to_ep(fid)->ops, getopt,
			 kofi_check_opt(level, optval, optlen),
			 fid, level, optname, optval, optlen);
}
EXPORT_SYMBOL_NS_GPL(fi_getopt, KOFI);

/**
 * fi_av_insert() - insert addresses
 * @av: the address vector
 * @addr: addresses, one after the other, in the domain's format: those of the peers'
 *	fi_getname(), or a dest_addr of fi_getinfo()
 * @count: number of addresses
 * @fi_addr: takes an fi_addr_t for each address, FI_ADDR_NOTAVAIL for those that
 *	failed; may be NULL for FI_AV_TABLE
 * @flags: FI_MORE or 0
 * @context: the caller's context
 *
 * fi_av(3). Inserting an address again returns the same fi_addr_t, and the address stays
 * until it has been removed as often as it was inserted.
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: number of addresses inserted, less than @count if some failed. If none was inserted, a
 * negative errno: that of the first address, or -EINVAL, -FI_EBADFLAGS, -EOPNOTSUPP, -EDEADLK,
 * -ENOMEM, -ENODEV.
 */
int fi_av_insert(struct fid_av *av, const void *addr, size_t count,
		 fi_addr_t *fi_addr, u64 flags, void *context)
{
	return KOFI_AV_CALL(av, insert,
			    kofi_check(addr && count && count <= INT_MAX,
				       flags & ~FI_MORE),
			    addr, count, fi_addr, flags, context);
}
EXPORT_SYMBOL_NS_GPL(fi_av_insert, KOFI);

/**
 * fi_av_remove() - remove addresses
 * @av: the address vector
 * @fi_addr: the addresses
 * @count: number of addresses
 * @flags: must be 0
 *
 * An address that was inserted several times stays until it has been removed as often.
 * The caller should wait for operations to an address before it removes the address;
 * operations that are still outstanding complete nevertheless.
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -EINVAL when one of the addresses isn't in the vector, -FI_EBADFLAGS,
 * -EOPNOTSUPP, -EDEADLK, -ENODEV.
 */
int fi_av_remove(struct fid_av *av, fi_addr_t *fi_addr, size_t count,
		 u64 flags)
{
	return KOFI_AV_CALL(av, remove, kofi_check(fi_addr && count, flags),
			    fi_addr, count, flags);
}
EXPORT_SYMBOL_NS_GPL(fi_av_remove, KOFI);

/**
 * fi_av_lookup() - get the address of an fi_addr_t
 * @av: the address vector
 * @fi_addr: the fi_addr_t
 * @addr: takes the address, cut to @addrlen
 * @addrlen: size of @addr; takes the size of the address
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -EINVAL when @fi_addr isn't in the vector, -EOPNOTSUPP, -EDEADLK, -ENODEV.
 */
int fi_av_lookup(struct fid_av *av, fi_addr_t fi_addr, void *addr,
		 size_t *addrlen)
{
	return KOFI_AV_CALL(av, lookup, kofi_check_room(addr, addrlen),
			    fi_addr, addr, addrlen);
}
EXPORT_SYMBOL_NS_GPL(fi_av_lookup, KOFI);

/**
 * fi_av_straddr() - print an address
 * @av: the address vector
 * @addr: the address
 * @buf: takes the text, cut to @len
 * @len: size of @buf; takes the size that the whole text needs
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: @buf, or NULL on an error.
 */
const char *fi_av_straddr(struct fid_av *av, const void *addr, char *buf,
			  size_t *len)
{
	int ret = av ? kofi_enter(&av->fid, FI_CLASS_AV) : -EINVAL;

	if (ret || !av->ops || !av->ops->straddr || !addr ||
	    kofi_check_room(buf, len))
		return NULL;
	return av->ops->straddr(av, addr, buf, len);
}
EXPORT_SYMBOL_NS_GPL(fi_av_straddr, KOFI);
