/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * TCP connections, over which the two sides of a ULP set up a session. A connection carries whole
 * messages that begin with a struct kulp_hdr. kulp_net_shutdown() ends all waiting for messages
 * and connections.
 *
 * Only one thread at a time uses a connection. Any other thread may shut the connection
 * down, which wakes a thread that waits for a message or a connection.
 *
 * kulp_listener.lock (mutex) > kulp_net.lock (mutex)
 */
#ifndef KOFI_ULP_NET_H
#define KOFI_ULP_NET_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/socket.h>
#include <linux/types.h>

struct socket;
struct task_struct;

#define KULP_NET_NAME	64	/* an address as text */

/**
 * struct kulp_net - a connection or listener: kulp_net_init() before its first use
 * @lock: protects what follows against kulp_net_shutdown()
 * @sock: the socket, or NULL
 * @shut: kulp_net_shutdown() was called; cleared by kulp_net_close()
 */
struct kulp_net {
	struct mutex	lock;	/* protects sock and shut */
	struct socket	*sock;
	bool		shut;
};

/**
 * kulp_net_here() - check that a task means the network that connections and listeners use
 * Context: Process.
 * Return: whether the task is in the first network namespace, and not in a container.
 */
bool kulp_net_here(void);

/**
 * kulp_net_init() - initialize a connection or listener, once
 * @net: the connection
 * Context: Any.
 */
static inline void kulp_net_init(struct kulp_net *net)
{
	*net = (struct kulp_net) { };
	mutex_init(&net->lock);
}

/**
 * kulp_net_parse() - parse an address
 * @text: "10.0.0.1:4420" or "[fd00::1]:4420"
 * @addr: takes the address, the rest is zeroed. IPv4-mapped IPv6 is converted to IPv4
 * Context: Any.
 * Return: 0 or -EINVAL.
 */
int kulp_net_parse(const char *text, struct sockaddr_storage *addr);

/**
 * kulp_net_connect() - connect
 * @net: without a socket
 * @addr: the peer's address
 * @ms: time-out in milliseconds
 * Context: Process, sleeps. The socket allocates with GFP_NOIO. A caller that must not wait
 * for I/O needs a noio scope for all other allocations.
 * Return: 0, -ESHUTDOWN after kulp_net_shutdown(), -ETIMEDOUT, or another errno.
 */
int kulp_net_connect(struct kulp_net *net, const struct sockaddr_storage *addr, unsigned int ms);

/**
 * kulp_net_listen() - accept connections at an address
 * @net: without a socket
 * @addr: the address
 * Context: Process, sleeps.
 * Return: 0 or a negative errno.
 */
int kulp_net_listen(struct kulp_net *net, const struct sockaddr_storage *addr);

/**
 * kulp_net_accept() - wait for a connection
 * @listener: after kulp_net_listen()
 * @net: without a socket, takes the connection
 * Context: Process, sleeps until a peer connects or @listener is shut down.
 * Return: 0, -ESHUTDOWN after kulp_net_shutdown() of @listener or @net, or another errno.
 */
int kulp_net_accept(struct kulp_net *listener, struct kulp_net *net);

/**
 * kulp_sock_peer() - get the peer's address as text and as a number
 * @sock: a connected socket
 * @name: takes the text, "?" if there is no address
 *
 * The number leaves out what one host can choose freely: the port, and the lower half
 * of an IPv6 address.
 * Context: Process, sleeps.
 * Return: the number, 0 if there is no address.
 */
u64 kulp_sock_peer(struct socket *sock, char name[KULP_NET_NAME]);

/**
 * kulp_sock_names() - get the addresses of both ends of a connection
 * @sock: a connected socket
 * @local: takes this end's address
 * @remote: takes the other end's address
 *
 * The rest of both is zeroed. IPv4-mapped IPv6 is converted to IPv4.
 * Context: Process, sleeps.
 * Return: 0, or a negative errno if the connection has ended.
 */
int kulp_sock_names(struct socket *sock, struct sockaddr_storage *local,
		    struct sockaddr_storage *remote);

/**
 * kulp_net_peer() - get the peer's address as text and as a number
 * @net: connected
 * @name: takes the text, "?" if there is no address
 * Context: Process, sleeps.
 * Return: as kulp_sock_peer().
 */
u64 kulp_net_peer(struct kulp_net *net, char name[KULP_NET_NAME]);

/**
 * kulp_net_send() - send a message
 * @net: connected
 * @buf: the message, which begins with a struct kulp_hdr
 * @len: length of @buf
 * Context: Process, sleeps for a few seconds at most.
 * Return: 0, -ESHUTDOWN, -ETIMEDOUT, or another errno. After an error nothing more
 * can be sent.
 */
int kulp_net_send(struct kulp_net *net, const void *buf, size_t len);

/**
 * kulp_net_recv() - receive a message
 * @net: connected
 * @buf: takes the message
 * @room: bytes of @buf, at least a struct kulp_hdr
 * @ms: time-out for the first byte, 0 for none; the rest must arrive within a few
 *	seconds
 *
 * Only the length in the header is checked, against @room.
 * Context: Process, sleeps.
 * Return: length of the message, -ETIMEDOUT if no first byte came, -EPROTO if the
 * length is less than the header or more than @room, -ECONNRESET at the end of the
 * connection, -ECONNABORTED if the rest of a message didn't come, -ESHUTDOWN, or another errno.
 * After any error but -ETIMEDOUT nothing more can be received.
 */
int kulp_net_recv(struct kulp_net *net, void *buf, size_t room, unsigned int ms);

/**
 * kulp_net_shutdown() - end waiting and receiving on a connection
 * @net: connected or not
 *
 * Messages can still be sent. The peer sees the end after kulp_net_close().
 * Context: Process, sleeps; any thread, any number of times.
 */
void kulp_net_shutdown(struct kulp_net *net);

/**
 * kulp_net_close() - close the socket
 * @net: the connection, used by no other thread; can be used again afterwards
 *
 * This clears an earlier kulp_net_shutdown(). To end a connection for good, a caller
 * sets a flag before kulp_net_shutdown(), which the thread checks after kulp_net_close().
 * Context: Process, sleeps.
 */
void kulp_net_close(struct kulp_net *net);

/**
 * struct kulp_conn - a connection that a listener accepted
 * @net: the connection
 * @name: the peer's address as text
 * @peer: the peer's address as a number, see kulp_net_peer()
 * @half_open: private to kofi_ulp
 */
struct kulp_conn {
	struct kulp_net		net;
	char			name[KULP_NET_NAME];
	u64			peer;
	struct list_head	half_open;
};

/**
 * struct kulp_listener - a thread that accepts connections
 * @alloc: allocates a connection for the next peer, zeroed and with kulp_net_init(). Process
 *	context. NULL: there is no memory, the thread tries again later
 * @free: frees a connection that @start wasn't called for. Process context
 * @start: takes over a connection, which is half-open until kulp_conn_settled(). Process context;
 *	other peers wait meanwhile
 * @net: private to kofi_ulp, as all below
 * @thread: calls the functions above
 * @lock: protects @half_open
 * @half_open: list of kulp_conn, oldest first
 */
struct kulp_listener {
	struct kulp_conn	*(*alloc)(struct kulp_listener *l);
	void			(*free)(struct kulp_conn *conn);
	void			(*start)(struct kulp_listener *l, struct kulp_conn *conn);
	struct kulp_net		net;
	struct task_struct	*thread;
	struct mutex		lock;	/* protects half_open */
	struct list_head	half_open;
};

/* Maximum half-open connections of a listener. */
#define KULP_HALF_OPEN	64

/**
 * kulp_listener_init() - initialize a listener, once
 * @l: its functions are set
 * Context: Any.
 */
void kulp_listener_init(struct kulp_listener *l);

/**
 * kulp_listen() - start a listener
 * @l: initialized, not started
 * @text: an address for kulp_net_parse()
 * @name: name of the thread
 *
 * A connection is half-open until its peer has proved who it is. If there are more than
 * KULP_HALF_OPEN, the listener shuts down the oldest one of the address that has the most, so that
 * no address can keep others out.
 * Context: Process, sleeps.
 * Return: 0 or a negative errno.
 */
int kulp_listen(struct kulp_listener *l, const char *text, const char *name);

/**
 * kulp_listener_stop() - stop a listener
 * @l: the listener. It can be started again, and must stay until all its connections are settled
 * Context: Process, sleeps.
 */
void kulp_listener_stop(struct kulp_listener *l);

/**
 * kulp_conn_settled() - a connection isn't half-open any more
 * @l: the listener
 * @conn: the connection, whose peer has proved who it is, or that is about to be closed; any
 *	number of times
 * Context: Process, sleeps.
 * Return: true if it was half-open. False at the first call means that the listener has shut it
 * down: what its peer has proved must have no effect.
 */
bool kulp_conn_settled(struct kulp_listener *l, struct kulp_conn *conn);

#endif /* KOFI_ULP_NET_H */
