// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Calls about connections and addresses, fi_cm(3). Both kinds of endpoints have their vectors in
 * the same place, so that calls for either kind need no distinction.
 */
#include "../kofi.h"

static_assert(offsetof(struct fid_ep, ops) == offsetof(struct fid_pep, ops));
static_assert(offsetof(struct fid_ep, cm) == offsetof(struct fid_pep, cm));

static int kofi_enter_pep(const struct fid_pep *pep)
{
	return kofi_enter(pep ? &pep->fid : NULL, FI_CLASS_PEP);
}

static int kofi_enter_cm(const struct fid_ep *ep)
{
	return kofi_enter(ep ? &ep->fid : NULL, FI_CLASS_EP);
}

static int kofi_check_param(const void *param, size_t paramlen)
{
	return kofi_check(param || !paramlen, 0);
}

/* Enable an endpoint that is about to be connected, unless it is enabled. */
static int kofi_enable_implied(struct fid_ep *ep)
{
	return READ_ONCE(ep->fid.node->state) == KOFI_ENABLED ? 0 : fi_enable(ep);
}

/**
 * fi_pep_bind() - bind a passive endpoint to an event queue
 * @pep: the endpoint, not listening yet
 * @bfid: an event queue of the same fabric
 * @flags: must be 0
 *
 * fi_endpoint(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -EINVAL for anything but an event queue, -FI_EBADFLAGS, -FI_EDOMAIN for a queue of
 * another fabric, -EBUSY when the endpoint has a queue, -FI_EOPBADSTATE when it listens, -EDEADLK,
 * -ENOMEM, or the provider's error.
 */
int fi_pep_bind(struct fid_pep *pep, struct fid *bfid, u64 flags)
{
	int ret = kofi_enter_pep(pep) ?: kofi_enter(bfid, FI_CLASS_EQ) ?: kofi_check(true, flags);

	if (ret)
		return ret;
	if (bfid->node->parent != pep->fid.node->parent)
		return -FI_EDOMAIN;
	return kofi_bind(&pep->fid, bfid, flags, 0);
}
EXPORT_SYMBOL_NS_GPL(fi_pep_bind, KOFI);

/**
 * fi_listen() - let peers request connections
 * @pep: the endpoint, bound to an event queue
 *
 * Each request is an FI_CONNREQ event, whose info is for fi_endpoint() and fi_accept(), or whose
 * info->handle is for fi_reject(). FI_BACKLOG of fi_control() limits the requests that have
 * neither. Closing the endpoint rejects them, but doesn't end connections. fi_cm(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -FI_ENOEQ without an event queue, -FI_EOPBADSTATE when it listens already, -EBUSY
 * while a queue is being bound to it, -EADDRINUSE, -EINVAL, -EOPNOTSUPP, -EDEADLK, or the
 * provider's error, after which the endpoint is unchanged.
 */
int fi_listen(struct fid_pep *pep)
{
	int ret = kofi_enter_pep(pep);

	if (ret)
		return ret;
	if (!pep->cm || !pep->cm->listen)
		return -EOPNOTSUPP;
	return kofi_enable_begin(pep->fid.node) ?:
	       kofi_enable_end(pep->fid.node, pep->cm->listen(pep));
}
EXPORT_SYMBOL_NS_GPL(fi_listen, KOFI);

/**
 * fi_reject() - refuse a connection request
 * @pep: the passive endpoint
 * @handle: fi_info.handle of the FI_CONNREQ event, invalid afterwards
 * @param: private data, which the peer gets as err_data of an error entry; or NULL
 * @paramlen: its size in bytes, at most FI_OPT_CM_DATA_SIZE
 *
 * fi_cm(3).
 *
 * Context: Process context; may sleep. Unlike other control calls also from the handler of an event
 * queue.
 * Return: 0, -EINVAL, also for a request that isn't one of the endpoint's, -EOPNOTSUPP.
 */
int fi_reject(struct fid_pep *pep, struct fid *handle, const void *param, size_t paramlen)
{
	might_sleep();
	if (!pep || !pep->fid.node || pep->fid.fclass != FI_CLASS_PEP)
		return -EINVAL;
	return KOFI_CALL(0, pep->cm, reject,
			 kofi_check(handle && (param || !paramlen), 0),
			 pep, handle, param, paramlen);
}
EXPORT_SYMBOL_NS_GPL(fi_reject, KOFI);

/**
 * fi_accept() - accept a connection request
 * @ep: an endpoint that was opened with the info of the FI_CONNREQ event. It is enabled, unless it
 *	is already
 * @param: private data, which the peer gets with FI_CONNECTED; or NULL
 * @paramlen: its size in bytes, at most FI_OPT_CM_DATA_SIZE
 *
 * Both sides get FI_CONNECTED, or an error entry. Receives can be posted before. fi_cm(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -ECONNABORTED when the peer has gone, -FI_EOPBADSTATE for an endpoint that wasn't
 * opened for a request or was accepted before, an error of fi_enable(), -EINVAL, -EOPNOTSUPP,
 * -EDEADLK, -ENODEV, or the provider's error.
 */
int fi_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	return KOFI_CALL(kofi_enter_cm(ep), ep->cm, accept,
			 kofi_check_param(param, paramlen) ?: kofi_enable_implied(ep),
			 ep, param, paramlen);
}
EXPORT_SYMBOL_NS_GPL(fi_accept, KOFI);

/**
 * fi_connect() - request a connection
 * @ep: the endpoint, bound to an event queue and to completion queues. It is enabled, unless it is
 *	already
 * @addr: the peer's address, in the format of the entry that the endpoint was opened with
 * @param: private data, which the peer gets with FI_CONNREQ; or NULL
 * @paramlen: its size in bytes, at most FI_OPT_CM_DATA_SIZE
 *
 * The event queue gets FI_CONNECTED, or an error entry that has the peer's private data if the peer
 * has refused. An endpoint can be connected once. Receives can be posted before, sends after
 * FI_CONNECTED. fi_cm(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -EISCONN when it was called before, -FI_EOPBADSTATE for an endpoint that was opened
 * for a request, an error of fi_enable(), -EINVAL, -EOPNOTSUPP, -EDEADLK, -ENOMEM, -ENODEV, or the
 * provider's error.
 */
int fi_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
	return KOFI_CALL(kofi_enter_cm(ep), ep->cm, connect,
			 kofi_check(addr, 0) ?: kofi_check_param(param, paramlen) ?:
			 kofi_enable_implied(ep),
			 ep, addr, param, paramlen);
}
EXPORT_SYMBOL_NS_GPL(fi_connect, KOFI);

/**
 * fi_shutdown() - end a connection
 * @ep: the endpoint
 * @flags: must be 0
 *
 * The peer gets FI_SHUTDOWN. Outstanding operations have their completions when the call returns:
 * ECANCELED if they didn't finish. fi_cm(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -ENOTCONN when there is no connection, -FI_EBADFLAGS, -EINVAL, -EOPNOTSUPP, -EDEADLK,
 * -ENODEV, or the provider's error.
 */
int fi_shutdown(struct fid_ep *ep, u64 flags)
{
	return KOFI_CALL(kofi_enter_cm(ep), ep->cm, shutdown, kofi_check(true, flags), ep, flags);
}
EXPORT_SYMBOL_NS_GPL(fi_shutdown, KOFI);

/**
 * fi_setname() - set the address of an endpoint
 * @fid: the endpoint, active or passive, before fi_connect() or fi_listen()
 * @addr: the address, in the format of the entry that the endpoint was opened with
 * @addrlen: size of the address in bytes
 *
 * fi_cm(3). The proposal of 2015 calls this binding an address.
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -EINVAL, -FI_EOPBADSTATE when it is too late, -EOPNOTSUPP, -EDEADLK, -ENODEV, or the
 * provider's error.
 */
int fi_setname(struct fid *fid, void *addr, size_t addrlen)
{
	return KOFI_CALL(kofi_enter_ep(fid), kofi_to_ep(fid)->cm, setname,
			 kofi_check(addr && addrlen, 0), fid, addr, addrlen);
}
EXPORT_SYMBOL_NS_GPL(fi_setname, KOFI);

/**
 * fi_getname() - get the address of an endpoint, for its peers
 * @fid: the endpoint: enabled, or passive
 * @addr: takes the address
 * @addrlen: size of @addr; takes the size of the address
 *
 * fi_cm(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -FI_ETOOSMALL with @addrlen set, -EINVAL, -EOPNOTSUPP, -EDEADLK,
 * -ENODEV, or the provider's error.
 */
int fi_getname(struct fid *fid, void *addr, size_t *addrlen)
{
	return KOFI_CALL(kofi_enter_ep(fid), kofi_to_ep(fid)->cm, getname,
			 kofi_check_room(addr, addrlen), fid, addr, addrlen);
}
EXPORT_SYMBOL_NS_GPL(fi_getname, KOFI);

/**
 * fi_getpeer() - get the address of the peer of a connection
 * @ep: the endpoint, after FI_CONNECTED
 * @addr: takes the address
 * @addrlen: size of @addr; takes the size of the address
 *
 * fi_cm(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -ENOTCONN before FI_CONNECTED, -FI_ETOOSMALL with @addrlen set, -EINVAL, -EOPNOTSUPP,
 * -EDEADLK, -ENODEV, or the provider's error.
 */
int fi_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	return KOFI_CALL(kofi_enter_cm(ep), ep->cm, getpeer, kofi_check_room(addr, addrlen),
			 ep, addr, addrlen);
}
EXPORT_SYMBOL_NS_GPL(fi_getpeer, KOFI);
