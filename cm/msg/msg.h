/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Connections, FI_EP_MSG, over the unconnected endpoints of providers: fi_cm(3).
 *
 *	main.c		module, the core's connector
 *	info.c		entries of fi_getinfo(), IP addresses
 *	lane.c		unconnected endpoints that connections share
 *	link.c		sessions of kofi_cm, which connections between two machines share
 *	wire.c		their messages
 *	conn.c		connections of a link
 *	pep.c		passive endpoints and their requests
 *	ep.c		connected endpoints
 *	post.c		their posts, and credits
 *	net.c		network namespaces
 *
 * The two sides of a connection exchange by the link the addresses of their lanes, a tag for each
 * direction, private data and credits. Its messages are tagged messages between the two lanes,
 * which complete directly in the ULP's queues. A tag has 64 random bits, so that no third peer can
 * guess it. A side sends only what the peer has posted receives for: the peer's count of receives
 * is the limit of messages sent.
 *
 * A kmsg_conn of a request belongs to its passive endpoint until fi_endpoint() or fi_reject() takes
 * it, and then to the endpoint. The link has a reference of its own until both sides have ended it.
 *
 * Locks, outer ones first:
 *	kmsg_listen_lock (mutex)	listeners are made and freed
 *	kmsg_lock (mutex)		requests that wait, the passive endpoint of a listener
 *	kmsg_conn.lock (mutex)		state of a connection, and its endpoint
 *	kmsg_links_lock (mutex)		active links
 *	kmsg_link.lock (mutex)		state, connections and notes of a link
 *	kmsg_lanes_lock (mutex)		lanes
 *	kmsg_ep.lock (spinlock, BH)	state, news of receives
 *	kmsg_lane.lock (spinlock, BH)	connections of a lane; taken under the provider's lock
 * Callbacks of kofi_cm take kmsg_lock and kmsg_conn.lock. Nothing waits for a callback under these.
 * Posts take no lock: see post.c. With none of these, the end of a network namespace waits for what
 * begins in it: kmsg_net_enter().
 */
#ifndef KMSG_H
#define KMSG_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/hashtable.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <kofi/provider.h>
#include <kofi/session.h>
#include "wire.h"

#define KMSG_BACKLOG		64	/* default of FI_BACKLOG */
#define KMSG_BACKLOG_MAX	4096
#define KMSG_LINKS_MAX		4096	/* default of parameter max_links, of a port */
#define KMSG_TAG_BITS		6	/* of the number of lists in a table of tags */
#define KMSG_FLUSH_MS		5000	/* longest wait for operations that can't be canceled */

/* Capabilities that connections share with their lane, besides messages. */
#define KMSG_CAPS	(FI_SEND | FI_RECV | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | \
			 FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RMA_EVENT | FI_FENCE | \
			 FI_LOCAL_COMM | FI_REMOTE_COMM)

#define KMSG_CNTRS	6	/* purposes of counters */

/**
 * struct kmsg_queues - where the operations of an endpoint complete
 * @cq: queues, of sends and of receives
 * @flags: flags of fi_ep_bind() for @cq
 * @cntr: counters for FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ and FI_REMOTE_WRITE, each
 *	may be NULL
 */
struct kmsg_queues {
	struct fid_cq	*cq[2];
	u64		flags[2];
	struct fid_cntr	*cntr[KMSG_CNTRS];
};

/* It is compared as a whole. */
static_assert(sizeof(struct kmsg_queues) == 2 * sizeof(void *) + 2 * sizeof(u64) +
					    KMSG_CNTRS * sizeof(void *));

/**
 * struct kmsg_net - a network namespace
 * @refs: the namespace itself, listeners, links and what will be either
 * @list: in kmsg_nets
 * @users: the namespace itself, and what begins in it now; 0 when it has gone
 * @idle: @users is 0
 * @config: the service in the namespace; @config.net is valid between kmsg_net_enter() and
 *	kmsg_net_leave()
 */
struct kmsg_net {
	refcount_t		refs;
	struct list_head	list;
	refcount_t		users;
	struct completion	idle;
	struct kcm_config	config;
};

/**
 * struct kmsg_lane - an unconnected endpoint for all connections with the same queues
 * @list: in kmsg_lanes, under kmsg_lanes_lock
 * @refs: number of connected endpoints; under kmsg_lanes_lock
 * @domain: the domain
 * @queues: queues and counters
 * @caps: capabilities of the connections
 * @tx: attributes
 * @rx: attributes
 * @ep: the endpoint
 * @av: its address vector
 * @hello: address and protocol, for peers
 * @watch: tells that a peer has died
 * @lock: protects @tags, @eps and @retired
 * @tags: endpoints that can have receives, struct kmsg_ep, by the tag of these
 * @eps: endpoints that know their peers, struct kmsg_ep
 * @retired: a peer has died, so the lane gets no more connections
 */
struct kmsg_lane {
	struct list_head	list;
	unsigned int		refs;
	struct fid_domain	*domain;
	struct kmsg_queues	queues;
	u64			caps;
	struct fi_tx_attr	tx;
	struct fi_rx_attr	rx;
	struct fid_ep		*ep;
	struct fid_av		*av;
	struct kmsg_hello	hello;
	struct kofi_watch	watch;
	spinlock_t		lock;		/* protects tags, eps and retired */
	DECLARE_HASHTABLE(tags, KMSG_TAG_BITS);
	struct list_head	eps;
	bool			retired;
};

/**
 * struct kmsg_listener - an IP address and port at which a passive endpoint listens or has listened
 * @list: in kmsg_listeners, under kmsg_listen_lock
 * @refs: the passive endpoint and the connections; under kmsg_listen_lock
 * @net: network namespace of the address
 * @addr: the address
 * @kcm: kofi_cm's listener
 * @pep: the passive endpoint, or NULL; under kmsg_lock
 */
struct kmsg_listener {
	struct list_head		list;
	unsigned int			refs;
	struct kmsg_net			*net;
	struct sockaddr_storage		addr;
	struct kcm_listener		*kcm;
	struct kmsg_pep			*pep;
};

/**
 * struct kmsg_pep - a passive endpoint
 * @pep_fid: the object
 * @info: entry that it was opened with
 * @net: network namespace to listen in
 * @addr: the address to listen at
 * @eq: event queue
 * @listener: NULL until fi_listen()
 * @requests: requests that nobody has taken, struct kmsg_conn; under kmsg_lock
 * @nrequests: number of @requests; under kmsg_lock
 * @backlog: most of them; under kmsg_lock
 * @keys: keys of the secrets that clients may have; without any they need none; under kmsg_lock
 */
struct kmsg_pep {
	struct fid_pep			pep_fid;
	struct fi_info			*info;
	struct kmsg_net			*net;
	struct sockaddr_storage		addr;
	struct fid_eq			*eq;
	struct kmsg_listener		*listener;
	struct list_head		requests;
	unsigned int			nrequests;
	unsigned int			backlog;
	struct kulp_key			*keys[KULP_SECRETS];
};

/**
 * enum kmsg_conn_state - state of a connection
 * @KMSG_CONN_NEW: it has no link
 * @KMSG_CONN_WAITING: active: the link isn't live yet
 * @KMSG_CONN_ASKED: active: CONN was sent
 * @KMSG_CONN_REQUEST: passive: the ULP has to answer
 * @KMSG_CONN_ACCEPTED: passive: ACCEPT was sent
 * @KMSG_CONN_LIVE: it is established
 * @KMSG_CONN_LEFT: the peer has sent DISC, and operations are being ended
 * @KMSG_CONN_PARTING: DISC was sent
 * @KMSG_CONN_OVER: it isn't the link's any more
 */
enum kmsg_conn_state {
	KMSG_CONN_NEW,
	KMSG_CONN_WAITING,
	KMSG_CONN_ASKED,
	KMSG_CONN_REQUEST,
	KMSG_CONN_ACCEPTED,
	KMSG_CONN_LIVE,
	KMSG_CONN_LEFT,
	KMSG_CONN_PARTING,
	KMSG_CONN_OVER,
};

/**
 * struct kmsg_setup - the part of a connection that is needed until it is established
 * @handle: fi_info.handle of a request
 * @msg: this side
 * @peer: passive side: the other side
 * @key: active side: key of the secret, or NULL
 * @net: active side: network namespace
 */
struct kmsg_setup {
	struct fid		handle;
	struct kmsg_msg		msg;
	struct kmsg_hello	peer;
	struct kulp_key		*key;
	struct kmsg_net		*net;
};

/**
 * struct kmsg_conn - a connection
 * @refs: the endpoint or passive endpoint, and the link
 * @id: number in @link
 * @list: in kmsg_pep.requests, or empty; under kmsg_lock
 * @listener: of a passive one that was taken, which holds a reference; or NULL
 * @link: the link, or NULL; set under @lock
 * @lock: protects all that follows, and @link
 * @state: the state
 * @active: this side has requested the connection
 * @again: the link was there before the request, which is repeated if it ends
 * @established: the connection has been established
 * @since: time of KMSG_CONN_ACCEPTED or KMSG_CONN_PARTING, in jiffies
 * @ep: the endpoint, or NULL
 * @setup: NULL when the connection is established, or has ended
 */
struct kmsg_conn {
	refcount_t			refs;
	u32				id;
	struct list_head		list;
	struct kmsg_listener		*listener;
	struct kmsg_link		*link;
	struct mutex			lock;		/* protects state to setup, and link */
	enum kmsg_conn_state		state;
	bool				active;
	bool				again;
	bool				established;
	unsigned long			since;
	struct kmsg_ep			*ep;
	struct kmsg_setup		*setup;
};

/**
 * enum kmsg_state - state of an endpoint
 * @KMSG_IDLE: not enabled
 * @KMSG_ENABLED: it has a lane, so that receives can be posted
 * @KMSG_CONNECTING: fi_connect() or fi_accept() was called
 * @KMSG_CONNECTED: FI_CONNECTED was written
 * @KMSG_ENDED: nothing can be posted any more
 */
enum kmsg_state {
	KMSG_IDLE,
	KMSG_ENABLED,
	KMSG_CONNECTING,
	KMSG_CONNECTED,
	KMSG_ENDED,
};

/* Room for events that must not be lost. */
enum kmsg_room {
	KMSG_ROOM_RESULT,	/* FI_CONNECTED or an error */
	KMSG_ROOM_SHUTDOWN,
	KMSG_ROOMS,
};

/**
 * struct kmsg_ep - a connected endpoint
 * @ep_fid: the object
 * @domain: its domain
 * @info: entry that it was opened with, until it is enabled: then @lane has the attributes
 * @queues: queues and counters, also until then
 * @caps: from @info, with directions
 * @max_msg_size: from @info
 * @tx_size: from @info
 * @rx_size: from @info
 * @inject_size: from @info
 * @addr_format: from @info
 * @eq: event queue
 * @lane: set when the endpoint is enabled
 * @conn: the connection; has a session from the beginning if the endpoint was opened for a request,
 *	otherwise from fi_connect() on
 * @room: memory for events; under kmsg_conn.lock, or before there is a session
 * @source: address to connect from, of IPv4 or IPv6, or AF_UNSPEC
 * @peer: the peer's lane, or FI_ADDR_UNSPEC; set before KMSG_CONNECTED
 * @on_lane: in kmsg_lane.eps
 * @by_tag: in kmsg_lane.tags, from fi_enable() to the end
 * @note: tells the peer of receives
 * @end: does what is left to do when a connection has ended
 * @limit: number of receives that the peer has posted; under kmsg_conn.lock
 * @removed: the device was removed
 * @dead: the peer's lane can't be reached any more
 * @lock: protects changes of @state, and @told, @step and @tell_at
 * @told: number of receives that the peer knows of
 * @step: number of receives that the peer is told of at once
 * @on: the endpoint of @lane
 * @state: the state
 * @posting: number of posts other than receives that may have seen the state before its last change
 * @rx_tag: tag of messages to this endpoint
 * @tx_tag: tag of messages to the peer; set before KMSG_CONNECTED
 * @posted: number of receives posted
 * @tell_at: number of @posted from which on kmsg_credit_due() is due: 0 in KMSG_ENDED
 * @credit: number of receives that the peer has posted, less the messages sent
 * @starved: a send was refused for lack of a receive at the peer
 */
struct kmsg_ep {
	struct fid_ep		ep_fid;
	struct fid_domain	*domain;
	struct fi_info		*info;
	struct kmsg_queues	*queues;
	u64			caps;
	size_t			max_msg_size;
	u32			tx_size;
	u32			rx_size;
	u32			inject_size;
	u32			addr_format;
	struct fid_eq		*eq;
	struct kmsg_lane	*lane;
	struct kmsg_conn	*conn;
	struct kofi_eq_event	*room[KMSG_ROOMS];
	struct sockaddr_in6	source;
	fi_addr_t		peer;
	struct list_head	on_lane;
	struct hlist_node	by_tag;
	struct delayed_work	note;
	struct work_struct	end;
	u64			limit;
	bool			removed;
	bool			dead;
	spinlock_t		lock;		/* protects state, told, step and tell_at */
	u64			told;
	u32			step;
	struct fid_ep		*on;
	enum kmsg_state		state;
	atomic_t		posting;
	u64			rx_tag;
	u64			tx_tag;
	atomic64_t		posted;
	s64			tell_at;
	atomic_t		credit;
	bool			starved;
};

/**
 * kmsg_set_state() - change the state of an endpoint
 * @ep: the endpoint
 * @state: the new state
 *
 * Posts look at it without a lock, and receives that miss KMSG_ENDED look at @tell_at afterwards.
 */
static inline void kmsg_set_state(struct kmsg_ep *ep, enum kmsg_state state)
{
	lockdep_assert_held(&ep->lock);
	/* Pairs with kmsg_can_recv(). */
	smp_store_release(&ep->state, state);
	if (state == KMSG_ENDED)
		WRITE_ONCE(ep->tell_at, 0);
}

/* main.c */

extern struct workqueue_struct *kmsg_wq;
int kmsg_set_key(const void *optval, size_t optlen, struct kulp_key **key);
bool kmsg_same_key(const struct kulp_key *a, const struct kulp_key *b);

/* info.c */

int kmsg_derive(const struct fi_info *info, const char *node, const char *service, u64 flags,
		const struct fi_info *hints, struct fi_info **derived);
int kmsg_addr_get(u32 format, const void *addr, size_t len, struct sockaddr_storage *to);
size_t kmsg_addr_len(const struct sockaddr_storage *addr);
int kmsg_set_addr(void **addr, size_t *len, const struct sockaddr_storage *from);

/* lane.c */

void kmsg_queues_add(struct kmsg_queues *queues, struct fid *fid, u64 flags);
struct kmsg_lane *kmsg_lane_get(const struct kmsg_ep *ep);
void kmsg_lane_put(struct kmsg_lane *lane);
int kmsg_lane_join(struct kmsg_lane *lane, struct kmsg_ep *ep);
void kmsg_lane_leave(struct kmsg_lane *lane, struct kmsg_ep *ep);
void kmsg_lane_stop(struct kmsg_lane *lane);
void kmsg_lane_add_tag(struct kmsg_lane *lane, struct kmsg_ep *ep);
void kmsg_lane_end_tag(struct kmsg_lane *lane, struct kmsg_ep *ep);
void kmsg_lane_tell_room(const struct kmsg_lane *lane);

/* link.c */

extern const struct kcm_config kmsg_config;
int kmsg_link_join(struct kmsg_conn *conn, const struct sockaddr_storage *from,
		   const struct sockaddr_storage *to, bool *live);
void kmsg_link_forget(struct kmsg_link *link, struct kmsg_conn *conn);
void kmsg_link_finish(struct kmsg_link *link, struct kmsg_conn *conn, const struct kmsg_msg *msg);
void kmsg_link_put(struct kmsg_link *link);
const struct kulp_key *kmsg_link_key(const struct kmsg_link *link);
void kmsg_link_names(struct kmsg_link *link, struct sockaddr_storage *local,
		     struct sockaddr_storage *remote);
void kmsg_link_send(struct kmsg_link *link, const struct kmsg_msg *msg);
bool kmsg_link_crowded(struct kmsg_link *link, bool urgent);
int kmsg_link_rejoin(struct kmsg_conn *conn, bool *live);
void kmsg_link_break(struct kmsg_link *link);
void kmsg_links_end(void);

/* conn.c */

struct kmsg_conn *kmsg_conn_new(void);
void kmsg_conn_put(struct kmsg_conn *conn);
int kmsg_conn_connect(struct kmsg_conn *conn, const struct sockaddr_storage *from,
		      const struct sockaddr_storage *to);
int kmsg_conn_accept(struct kmsg_conn *conn);
int kmsg_conn_setopt(struct kmsg_conn *conn, int optname, const void *optval, size_t optlen);
void kmsg_conn_refuse(struct kmsg_conn *conn, const void *data, size_t len);
void kmsg_conn_end(struct kmsg_conn *conn, bool closes);
void kmsg_conn_flushed(struct kmsg_conn *conn);
int kmsg_conn_credit(struct kmsg_conn *conn, u64 posted);
void kmsg_conn_names(struct kmsg_conn *conn, struct sockaddr_storage *local,
		     struct sockaddr_storage *remote);
void kmsg_conn_begin(struct kmsg_conn *conn, int unused);
void kmsg_conn_late(struct kmsg_conn *conn, int ms);
void kmsg_conn_lost(struct kmsg_conn *conn, int err);
void kmsg_conn_asked(struct kmsg_conn *conn, struct kmsg_listener *l,
		     const struct kmsg_hello *side);
int kmsg_conn_message(struct kmsg_conn *conn, const struct kmsg_msg *msg);

/* pep.c */

int kmsg_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
		    void *context);
int kmsg_request(struct kmsg_listener *l, struct kmsg_conn *conn);
int kmsg_listener_keys(struct kmsg_listener *l, struct kulp_key *keys[KULP_SECRETS]);
void kmsg_listener_put(struct kmsg_listener *l);
struct kmsg_conn *kmsg_request_take(struct fid *handle);

/* ep.c */

int kmsg_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		  void *context);
void kmsg_removed(struct fid *fid);
int kmsg_ep_peer(struct kmsg_ep *ep, const struct kmsg_hello *peer);
void kmsg_ep_hello(struct kmsg_ep *ep, struct kmsg_hello *hello);
void kmsg_ep_connected(struct kmsg_ep *ep, const void *data, size_t len);
void kmsg_ep_ended(struct kmsg_ep *ep, int err, const void *data, size_t len);

/* post.c */

extern const struct fi_ops_msg kmsg_msg_ops;
extern const struct kofi_req_ops kmsg_req_ops;
void kmsg_posts_wait(struct kmsg_ep *ep);
void kmsg_credit_init(struct kmsg_ep *ep);
u64 kmsg_credit_take(struct kmsg_ep *ep);
ssize_t kmsg_credit_due(struct kmsg_ep *ep);
int kmsg_credit_add(struct kmsg_ep *ep, u64 posted);

/* net.c */

int kmsg_nets_init(void);
void kmsg_nets_exit(void);
struct kmsg_net *kmsg_net_of(struct net *net);
struct kmsg_net *kmsg_net_get(struct kmsg_net *n);
void kmsg_net_put(struct kmsg_net *n);
int kmsg_net_set(struct kmsg_net **to, const void *optval, size_t optlen);
int kmsg_net_enter(struct kmsg_net *n);
void kmsg_net_leave(struct kmsg_net *n);

#endif /* KMSG_H */
