/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * TCP connections, over which the two sides of a ULP set up a session. A connection carries whole
 * messages that begin with a struct kulp_hdr. kulp_net_shutdown() ends all waiting for messages
 * and connections.
 *
 * Only one thread at a time uses a connection. Any other thread may shut the connection
 * down, which wakes a thread that waits for a message or a connection.
 */
#ifndef KOFI_ULP_NET_H
#define KOFI_ULP_NET_H

#include <linux/mutex.h>
#include <linux/socket.h>
#include <linux/types.h>

struct socket;

#define KULP_NET_NAME	64	/* an address as text */

/**
 * struct kulp_net - a connection or listener: zeroed, with @lock initialized, before its first use
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
int kulp_net_connect(struct kulp_net *net, const struct sockaddr_storage *addr,
		   unsigned int ms);

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
 * kulp_net_peer() - get the peer's address as text and as a number
 * @net: connected
 * @name: takes the text, "?" if there is no address
 *
 * The number leaves out what one host can choose freely: the port, and the lower half
 * of an IPv6 address.
 * Context: Process, sleeps.
 * Return: the number, 0 if there is no address.
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

#endif /* KOFI_ULP_NET_H */
