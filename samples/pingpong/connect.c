// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections, with the parameter connected. The server listens at the address and port of its
 * sessions, and the client connects after both are ready. The number of their session is the
 * private data of the request, so that the server takes no other one.
 */
#include <linux/jiffies.h>
#include "pingpong.h"

static u64 pp_connect_id(const struct pp_session *s)
{
	return kcm_id(s->inst->link.cm);
}

static int pp_bind(struct pp_session *s)
{
	return fi_ep_bind(s->ep, &s->eq->fid, 0) ?:
	       fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV);
}

/**
 * pp_connect_open() - open the client's endpoint, or the server's passive endpoint
 * @s: the session, whose queues are open
 *
 * Return: 0, or a negative errno.
 */
int pp_connect_open(struct pp_session *s)
{
	if (s->inst->listener)
		return fi_passive_ep(s->fabric, s->info, &s->pep, NULL) ?:
		       fi_pep_bind(s->pep, &s->eq->fid, 0) ?: fi_listen(s->pep);
	return fi_endpoint(s->domain, s->info, &s->ep, NULL) ?: pp_bind(s);
}

/* Return: whether the request was refused, so that its entry isn't needed any more. */
static bool pp_connect_take(struct pp_session *s, const struct fi_eq_cm_entry *entry, size_t len)
{
	const u64 id = pp_connect_id(s);

	if (len == sizeof(id) && !memcmp(entry->data, &id, len) && !s->request) {
		s->request = entry->info;
		smp_mb__before_atomic();	/* pairs with pp_connect_wait() */
		set_bit(PP_EVENT_REQUEST, &s->events);
		return false;
	}
	pp_report_refused(s->inst);
	/* A handler of an event queue can make no control call but this one. */
	fi_reject(s->pep, entry->info->handle, NULL, 0);
	return true;
}

/* If the endpoint is closed or is about to be, that refuses the request. */
static void pp_connect_request(struct pp_session *s, const struct fi_eq_cm_entry *entry, size_t len)
{
	bool unused;

	mutex_lock(&s->pep_lock);
	unused = !s->pep || pp_connect_take(s, entry, len);
	mutex_unlock(&s->pep_lock);
	if (unused)
		fi_freeinfo(entry->info);
}

/**
 * pp_connect_close() - close the passive endpoint, if there is one
 * @s: the session
 *
 * Strangers can request connections at any time, so the handler may be about to refuse one.
 */
void pp_connect_close(struct pp_session *s)
{
	struct fid_pep *pep;

	mutex_lock(&s->pep_lock);
	pep = s->pep;
	s->pep = NULL;
	mutex_unlock(&s->pep_lock);
	if (pep)
		pp_close_fid(&pep->fid);
}

/**
 * pp_connect_event() - take an event of a connection
 * @s: the session
 * @event: the event
 * @entry: its entry
 * @len: bytes of private data
 *
 * Context: The handler of the event queue.
 */
void pp_connect_event(struct pp_session *s, u32 event, const struct fi_eq_cm_entry *entry,
		      size_t len)
{
	switch (event) {
	case FI_CONNREQ:
		pp_connect_request(s, entry, len);
		break;
	case FI_CONNECTED:
		set_bit(PP_EVENT_CONNECTED, &s->events);
		break;
	case FI_SHUTDOWN:
		set_bit(PP_EVENT_REFUSED, &s->events);
		break;
	}
}

/* Wait for an event of the connection. */
static int pp_connect_wait(struct pp_session *s, int event)
{
	struct pp_instance *inst = s->inst;
	long left;

	left = wait_event_idle_timeout(inst->wait,
				       test_bit(event, &s->events) ||
				       test_bit(PP_EVENT_REFUSED, &s->events) ||
				       test_bit(PP_EVENT_REMOVED, &s->events) ||
				       READ_ONCE(inst->stopping) || !pp_connected(s),
				       pp_config.timeout * HZ);
	if (READ_ONCE(inst->stopping))
		return -ESHUTDOWN;
	if (test_bit(PP_EVENT_REMOVED, &s->events))
		return -ENODEV;
	if (!pp_connected(s))
		return pp_hung_up(s);
	if (test_bit_acquire(event, &s->events))
		return 0;
	return left ? -ECONNREFUSED : -ETIMEDOUT;
}

static int pp_connect_accept(struct pp_session *s)
{
	int ret;

	ret = pp_connect_wait(s, PP_EVENT_REQUEST) ?:
	      fi_endpoint(s->domain, s->request, &s->ep, NULL) ?: pp_bind(s);
	return ret ?: fi_accept(s->ep, NULL, 0);
}

/**
 * pp_join() - connect the endpoints of both sides, if they are of that kind
 * @s: the session, which is live
 *
 * Return: 0, or a negative errno.
 */
int pp_join(struct pp_session *s)
{
	u64 id;
	int ret;

	if (!pp_config.connected)
		return 0;
	id = pp_connect_id(s);
	ret = s->pep ? pp_connect_accept(s) :
		       fi_connect(s->ep, s->info->dest_addr, &id, sizeof(id));
	ret = ret ?: pp_connect_wait(s, PP_EVENT_CONNECTED);
	if (ret && ret != -ESHUTDOWN)
		pp_report_error(s->inst, ret, "the endpoints can't be connected");
	return ret;
}
