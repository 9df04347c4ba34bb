/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The set-up of a connection, and its end.
 *
 *	setup.c		references, events for iw_cm, opening
 *	cm.c		calls of iw_cm and of kofi_cm
 *
 * iw_cm calls BUG() if an event comes in a wrong state, and waits for ever for those that are due:
 *
 *	state		entered by			events in it
 *	KRC_CM_SETUP	iw_connect returns 0		CONNECT_REPLY, whatever happens
 *	KRC_CM_ASKED	CONNECT_REQUEST is queued	none
 *	KRC_CM_ACCEPTED	iw_accept returns 0		ESTABLISHED, whatever happens
 *	KRC_CM_UP	CONNECT_REPLY, ESTABLISHED	CLOSE, whatever happens
 *	KRC_CM_OVER	CLOSE; a refusal; failure	none
 *
 * iw_cm queues events, for one thread that calls ULPs. The first message of a peer may be faster
 * than ESTABLISHED. Then nvmet handles it in its handler of that event, under a mutex of rdma_cm,
 * and so takes nvmet_config_sem. Under that semaphore, the removal of a port takes such a mutex,
 * and waits for the thread: a deadlock. So messages of an accepted connection wait until the
 * handler has returned: krc_iw_established().
 *
 * A ULP may answer a request long after it was given up, so iw_cm knows a number instead of an
 * address.
 */
#ifndef KRC_CM_H
#define KRC_CM_H

#include <kofi/session.h>
#include "rdma.h"

enum krc_cm_state {
	KRC_CM_SETUP,
	KRC_CM_ASKED,
	KRC_CM_ACCEPTED,
	KRC_CM_UP,
	KRC_CM_OVER,
};

/**
 * struct krc_cm - the set-up of a connection, and its end
 * @refs: references
 * @link: the link, with a reference to its RDMA device
 * @active: side
 * @nr: number in krc_cms
 * @lock: protects what follows
 * @state: state
 * @s: session, NULL when it is over
 * @id: iw_cm's, with a reference; NULL before iw_accept
 * @qp: queue pair, with a reference to its connection; NULL before iw_accept. Also under
 *	krc_cms_lock
 * @net: the link's device, until the queue pair has it
 * @peer: the peer's address in it
 * @has_peer: @peer is valid, and the queue pair doesn't have it yet
 * @open: the connection was opened
 * @stopped: kcm_ops.stop was called
 * @flushed: the connection is flushed
 * @finishing: @finish is queued
 * @side: what the peer tells of itself
 * @priv: private data of the ULP for the peer, or of the peer's ULP
 * @hello: private data of the session
 * @hello_len: its bytes; 0 when an attempt was made, or none is to be made
 * @local: this side's IP address, with the port of the ULP
 * @remote: the peer's IP address
 * @listener: passive: id of the listener that was asked, which may be gone; under the lock of
 *	krc_cms
 * @finish: ends the session, and drops all references
 * @asked: passive: the ULP doesn't answer
 */
struct krc_cm {
	refcount_t		refs;
	struct krc_link		*link;
	bool			active;
	u32			nr;
	struct mutex		lock;	/* protects what follows */
	enum krc_cm_state	state;
	struct kcm_session	*s;
	struct iw_cm_id		*id;
	struct krc_qp		*qp;
	struct krc_net		*net;
	fi_addr_t		peer;
	bool			has_peer;
	bool			open;
	bool			stopped;
	bool			flushed;
	bool			finishing;
	struct krc_side		side;
	u8			priv[KRC_ULP_PRIV_MAX];
	u8			hello[sizeof(struct krc_wire_side) + KRC_ULP_PRIV_MAX];
	size_t			hello_len;
	struct sockaddr_storage	local;
	struct sockaddr_storage	remote;
	const void		*listener;
	struct work_struct	finish;
	struct delayed_work	asked;
};

/* setup.c */

extern struct workqueue_struct *krc_cm_wq;
extern u8 krc_host[KCM_HOST];

void krc_cm_put(struct krc_cm *cm);
struct krc_cm *krc_cm_get(void *nr);
void *krc_cm_nr(const struct krc_cm *cm);
bool krc_cm_attach(struct krc_cm *cm, struct krc_qp *qp);
void krc_cm_heard(void *nr);
void krc_cm_maybe_finish(struct krc_cm *cm);
void krc_cm_up(struct krc_cm *cm);
void krc_cm_over(struct krc_cm *cm, int err);
struct krc_queue *krc_cm_queue(const struct krc_cm *cm);
struct kcm_addrs krc_cm_addrs(const struct krc_queue *q);
void krc_cm_describe(struct krc_cm *cm, const struct krc_queue *q,
		     const struct iw_cm_conn_param *param, u16 port);
int krc_cm_parse(struct krc_cm *cm, const struct kcm_peer *peer);
int krc_cm_meet(struct krc_cm *cm, const struct kcm_peer *peer);
int krc_cm_open(struct krc_cm *cm);
void krc_cm_check_net(struct krc_cm *cm);
struct krc_cm *krc_cm_new(struct krc_link *link, struct krc_net *net);
void krc_cm_drop(struct krc_cm *cm);

/* cm.c */

void krc_cm_asked(struct work_struct *work);

#endif /* KRC_CM_H */
