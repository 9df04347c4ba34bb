/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sessions: see <kofi/session.h> for what ULPs see.
 *
 *	main.c		module, workqueue, network namespaces, list of all sessions
 *	session.c	states, messages, time limits
 *	calls.c		calls of ULPs for a session
 *	shake.c		handshake, both sides
 *	passive.c	handshake of the passive side
 *	active.c	handshake and attempts of the active side
 *	kin.c		sessions of the same client, which follow one another
 *	port.c		listeners, half-open connections
 *	sock.c		non-blocking sockets
 *	wire.c		format of the messages
 *	debugfs.c	/sys/kernel/debug/kofi_cm
 *
 * Each session has one work item, kcm_session.work, which alone uses its socket, changes its state
 * and calls its ULP. Everything else, such as a socket's callbacks and the calls of ULPs, leaves a
 * request in the session and queues the work item.
 *
 * Locks, outer ones first:
 *	kcm_session.run (mutex)		held by the work item
 *	kcm_ports_lock (mutex)		list of ports
 *	kcm_port.lock (mutex)		a port's listeners, their sessions, half-open sessions
 *	kcm_sessions_lock (mutex)	list of all sessions
 *	kcm_kin_lock (spinlock)		identities
 *	kcm_session.lock (spinlock, BH)	requests and messages to send
 * Callbacks of ULPs are made under kcm_session.run alone.
 */
#ifndef KCM_H
#define KCM_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <kofi/session.h>
#include <kofi/ulp_net.h>
#include "wire.h"

struct seq_file;
struct socket;

/* Time limits in milliseconds. */
#define KCM_STEP_MS	5000	/* to connect, and for a message of the handshake */
#define KCM_READY_MS	30000	/* for READY, because inserting an address may take long */
#define KCM_PART_MS	1000	/* to send the last message */
#define KCM_AFTER_MAX	60000	/* longest wait that a REJECT may ask for */

#define KCM_HALF_OPEN_MAX	64	/* half-open connections of a port */
#define KCM_NOTES_MAX		64	/* notes that wait to be sent */

/**
 * enum kcm_state - state of a session
 * @KCM_WAITING: active: until the next attempt
 * @KCM_CONNECTING: active: TCP is connecting
 * @KCM_HELLO_SENT: active: waiting for CHALLENGE
 * @KCM_AUTH_SENT: active: waiting for ACCEPT
 * @KCM_HALF_OPEN: passive: waiting for HELLO
 * @KCM_CHALLENGED: passive: waiting for AUTH
 * @KCM_PROVEN: passive: waiting for the end of earlier sessions of the client
 * @KCM_ASKED: passive: waiting for kcm_accept() or kcm_reject()
 * @KCM_ACCEPTED: passive: waiting for READY
 * @KCM_LIVE: both sides are ready
 * @KCM_STOPPED: kcm_ops.stop was called, waiting for kcm_gone()
 * @KCM_PARTING: the ULP has no part in it any more; the last message is being sent
 * @KCM_CLOSED: the end
 * @KCM_STATES: number of these
 */
enum kcm_state {
	KCM_WAITING,
	KCM_CONNECTING,
	KCM_HELLO_SENT,
	KCM_AUTH_SENT,
	KCM_HALF_OPEN,
	KCM_CHALLENGED,
	KCM_PROVEN,
	KCM_ASKED,
	KCM_ACCEPTED,
	KCM_LIVE,
	KCM_STOPPED,
	KCM_PARTING,
	KCM_CLOSED,
	KCM_STATES,
};

/* Requests to a session's work item, which looks at them in this order. */
enum kcm_want {
	KCM_WANT_NET_GONE,	/* its network namespace goes */
	KCM_WANT_ANSWER,	/* kcm_accept() or kcm_reject(): kcm_session.answer */
	KCM_WANT_BYE,		/* kcm_bye() */
	KCM_WANT_CLOSE,		/* kcm_disconnect(), kcm_unlisten() */
	KCM_WANT_REPLACED,	/* a later session of the same client waits */
	KCM_WANT_EVICTED,	/* its port has too many half-open connections */
	KCM_WANT_GONE,		/* kcm_gone() */
	KCM_WANTS,
};

/**
 * struct kcm_tx - a message to send
 * @list: in kcm_session.txq
 * @len: bytes of @buf
 * @sent: bytes that TCP has taken
 * @sealed: number and MAC are in place
 * @type: enum kcm_type
 * @buf: the message
 */
struct kcm_tx {
	struct list_head	list;
	u16			len;
	u16			sent;
	bool			sealed;
	u8			type;
	u8			buf[] __aligned(8);
};

/**
 * struct kcm_sock - a TCP connection
 * @sock: the socket, or NULL
 * @data_ready: the socket's callback, put back before it is closed; so are the next two
 * @state_change: callback
 * @write_space: callback
 */
struct kcm_sock {
	struct socket	*sock;
	void		(*data_ready)(struct sock *sk);
	void		(*state_change)(struct sock *sk);
	void		(*write_space)(struct sock *sk);
};

/**
 * struct kcm_shaking - state of a handshake
 * @shake: proofs
 * @hello: HELLO, parsed; its pointers are into @first
 * @keys: passive: the client's keys
 * @nkeys: number of @keys, negative for an unknown client
 * @proven: passive: the one of @keys that the client has proved to know, or NULL
 * @first: HELLO as it was sent or received
 */
struct kcm_shaking {
	struct kulp_shake	shake;
	struct kcm_hello_msg	hello;
	struct kulp_key		*keys[KULP_SECRETS];
	int			nkeys;
	struct kulp_key		*proven;
	u8			*first;
};

/**
 * struct kcm_session - a session; on the active side also the attempts to begin one
 * @nr: number for trace events and debugfs
 * @config: the service
 * @context: the ULP's
 * @active: side
 * @state: changed by kcm_go() alone
 * @run: held by the work item; protects all members without another lock
 * @work: does everything
 * @reap: frees a passive session
 * @closed: the state is KCM_CLOSED, nothing more is done
 * @lock: protects @wants to @bye_len
 * @wants: enum kcm_want bits
 * @seen: the ULP knows of the session, and kcm_gone() is still to come
 * @stopping: kcm_ops.stop was or is being called
 * @txq: messages to send, struct kcm_tx. The work item alone removes them
 * @nnotes: number of notes in @txq
 * @npongs: number of PONGs in @txq
 * @answer: message of kcm_accept() or kcm_reject()
 * @bye: message of kcm_bye()
 * @bye_data: its data
 * @bye_len: bytes of @bye_data
 * @sock: connection
 * @from: the peer's IP address and port
 * @peer: the peer's address as a number, see kulp_sock_peer()
 * @hdr: header of the message that is being received
 * @rx: the message, or NULL until its header is complete
 * @rx_len: bytes of the message
 * @rx_have: bytes that have been received
 * @shaking: state of the handshake, or NULL
 * @key: key of the session's MACs, or NULL without a secret
 * @auth: MAC of AUTH, which distinguishes the session from others with the same secret
 * @sip: kcm_mac_key()
 * @id: kcm_id()
 * @version: kcm_version()
 * @keep_alive: milliseconds
 * @tx_number: number of the last message sent
 * @rx_number: number of the last message received
 * @heard: time at which something of the peer was last heard, in jiffies
 * @pinged: a PING was sent since
 * @timed: @deadline is valid
 * @deadline: end of the state's time limit, in jiffies
 * @last_err: error of the last end
 * @lives: how often the session was live
 * @port: passive: where the peer has connected
 * @listener: passive: whose service the peer asks for, NULL before HELLO
 * @half_open: passive: in kcm_port.half_open, under kcm_port.lock
 * @mine: passive: in kcm_listener.sessions, under kcm_port.lock
 * @kin: passive: in the table of identities, under kcm_kin_lock
 * @turn: passive: position among the sessions of the same client
 * @client: active: where to, and as whom
 * @final: active: no further attempt
 * @after_ms: active: the next attempt comes at the earliest after that many milliseconds
 * @attempts: active: number of attempts
 * @failing_since: active: end of the last live session, or the beginning, in jiffies
 * @all: in kcm_sessions, under kcm_sessions_lock
 */
struct kcm_session {
	u32			nr;
	const struct kcm_config	*config;
	void			*context;
	bool			active;
	enum kcm_state		state;
	struct mutex		run;		/* held by the work item */
	struct delayed_work	work;
	struct work_struct	reap;
	struct completion	closed;
	spinlock_t		lock;		/* protects wants to bye_len */
	unsigned long		wants;
	bool			seen;
	bool			stopping;
	struct list_head	txq;
	unsigned int		nnotes;
	unsigned int		npongs;
	struct kcm_tx		*answer;
	struct kcm_bye_msg	bye;
	u8			bye_data[KCM_BYE_MAX];
	size_t			bye_len;
	struct kcm_sock		sock;
	char			from[KULP_NET_NAME];
	u64			peer;
	struct kulp_hdr		hdr;
	u8			*rx;
	u32			rx_len;
	u32			rx_have;
	struct kcm_shaking	*shaking;
	struct kulp_key		*key;
	u8			auth[KULP_MAC];
	u8			sip[KULP_MAC];
	u64			id;
	u16			version;
	u32			keep_alive;
	u64			tx_number;
	u64			rx_number;
	unsigned long		heard;
	bool			pinged;
	bool			timed;
	unsigned long		deadline;
	int			last_err;
	u32			lives;
	struct kcm_port		*port;
	struct kcm_listener	*listener;
	struct list_head	half_open;
	struct list_head	mine;
	struct hlist_node	kin;
	u64			turn;
	struct kcm_client	client;
	bool			final;
	u32			after_ms;
	u32			attempts;
	unsigned long		failing_since;
	struct list_head	all;
};

/**
 * struct kcm_listener - a service on a port
 * @config: the service
 * @context: the ULP's
 * @port: the port
 * @list: in kcm_port.listeners, under kcm_port.lock
 * @sessions: its sessions, under kcm_port.lock
 * @nsessions: number of @sessions, and of those about to be freed
 */
struct kcm_listener {
	const struct kcm_config	*config;
	void			*context;
	struct kcm_port		*port;
	struct list_head	list;
	struct list_head	sessions;
	atomic_t		nsessions;
};

/**
 * struct kcm_port - a listening socket
 * @net: network namespace
 * @addr: address
 * @list: in kcm_ports, under kcm_ports_lock
 * @sock: the socket, NULL when its network namespace is gone
 * @data_ready: the socket's callback, put back before it is closed
 * @accept: accepts connections
 * @lock: protects @listeners and @half_open
 * @listeners: services, struct kcm_listener
 * @half_open: sessions whose peer isn't proven yet, oldest first
 * @nlisteners: number of listeners that aren't freed yet, under kcm_ports_lock
 * @nsessions: number of sessions, half-open or not
 */
struct kcm_port {
	struct net		*net;
	struct sockaddr_storage	addr;
	struct list_head	list;
	struct socket		*sock;
	void			(*data_ready)(struct sock *sk);
	struct delayed_work	accept;
	struct mutex		lock;		/* protects listeners and half_open */
	struct list_head	listeners;
	struct list_head	half_open;
	u32			nlisteners;
	atomic_t		nsessions;
};

/* Counters in debugfs. */
enum kcm_count {
	KCM_COUNT_ACCEPTED,
	KCM_COUNT_LIVE,
	KCM_COUNT_REFUSED,
	KCM_COUNT_PROTO,
	KCM_COUNT_SILENT,
	KCM_COUNT_EVICTED,
	KCM_COUNTS,
};

extern struct workqueue_struct *kcm_wq;
extern atomic64_t kcm_counts[KCM_COUNTS];
extern const char * const kcm_state_names[KCM_STATES];

static inline void kcm_count(enum kcm_count count)
{
	atomic64_inc(&kcm_counts[count]);
}

/* main.c */

void kcm_session_add(struct kcm_session *s);
void kcm_session_del(struct kcm_session *s);
int kcm_net_use(struct net *net);
void kcm_net_unuse(struct net *net);
void kcm_sessions_show(struct seq_file *m);

/* session.c */

void kcm_session_init(struct kcm_session *s, const struct kcm_config *config);
void kcm_kick(struct kcm_session *s);
void kcm_want(struct kcm_session *s, enum kcm_want want);
void kcm_go(struct kcm_session *s, enum kcm_state state);
void kcm_limit(struct kcm_session *s, u32 ms);
void kcm_tx_add(struct kcm_session *s, struct kcm_tx *tx);
struct kcm_tx *kcm_tx_build(enum kcm_type type, const void *msg, const void *tail, size_t len);
int kcm_send(struct kcm_session *s, enum kcm_type type, const void *msg, const void *tail,
	     size_t len);
int kcm_send_raw(struct kcm_session *s, enum kcm_type type, const void *buf, size_t len);
int kcm_check_mac(struct kcm_session *s, u16 type, void *buf, size_t len);
void kcm_begin_live(struct kcm_session *s);
void kcm_end(struct kcm_session *s, const struct kcm_end *end);
void kcm_end_by(struct kcm_session *s, int err, enum kcm_reason reason);
void kcm_part(struct kcm_session *s);
void kcm_disconnected(struct kcm_session *s);
void kcm_work(struct work_struct *work);

/* shake.c */

int kcm_derive(struct kcm_session *s, const struct kulp_key *key, const u8 auth[KULP_MAC]);
int kcm_agree(struct kcm_session *s, u16 version_min, u16 version);
void kcm_shaking_free(struct kcm_session *s);

/* passive.c */

struct kcm_session *kcm_passive_new(struct kcm_port *port);
void kcm_passive_closed(struct kcm_session *s);
int kcm_take_hello(struct kcm_session *s, void *buf, size_t len);
int kcm_take_auth(struct kcm_session *s, void *buf, size_t len);
int kcm_take_ready(struct kcm_session *s, void *buf, size_t len);
void kcm_refuse(struct kcm_session *s, int err, bool again, const char *why);
void kcm_passive_turn(struct kcm_session *s);

/* active.c */

void kcm_attempt(struct kcm_session *s);
void kcm_connected(struct kcm_session *s);
int kcm_take_challenge(struct kcm_session *s, void *buf, size_t len);
int kcm_take_accept(struct kcm_session *s, void *buf, size_t len);
int kcm_take_reject(struct kcm_session *s, void *buf, size_t len);
void kcm_attempt_over(struct kcm_session *s, const struct kcm_end *end);
void kcm_retry(struct kcm_session *s);

/* kin.c */

int kcm_kin_join(struct kcm_session *s);
bool kcm_kin_first(struct kcm_session *s);
void kcm_kin_leave(struct kcm_session *s);

/* port.c */

bool kcm_settle(struct kcm_session *s);
int kcm_choose(struct kcm_session *s, const char *service);
void kcm_port_unlink(struct kcm_session *s);
void kcm_port_left(struct kcm_session *s);
void kcm_ports_net_exit(struct net *net);

/* sock.c; tests have another one. */

int kcm_sock_connect(struct kcm_session *s);
int kcm_sock_connected(struct kcm_session *s);
u64 kcm_sock_peer(struct socket *sock, char name[KULP_NET_NAME]);
void kcm_sock_adopt(struct kcm_session *s, struct socket *sock);
int kcm_sock_send(struct kcm_session *s, const void *buf, size_t len);
int kcm_sock_recv(struct kcm_session *s, void *buf, size_t len);
void kcm_sock_close(struct kcm_session *s);
int kcm_sock_listen(struct kcm_port *port);
int kcm_sock_accept(struct kcm_port *port, struct socket **sock);
void kcm_sock_unlisten(struct kcm_port *port);

/* debugfs.c */

void kcm_debugfs_init(void);
void kcm_debugfs_exit(void);

#endif /* KCM_H */
