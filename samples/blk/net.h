/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofiblk's TCP connections, over which sessions are set up. A connection carries whole
 * messages that begin with a struct kb_net_hdr. kb_net_shutdown() ends
 * all waiting for messages and connections.
 *
 * Only one thread at a time uses a connection. Any other thread may shut the connection
 * down, which wakes a thread that waits for a message or a connection.
 */
#ifndef KOFIBLK_NET_H
#define KOFIBLK_NET_H

#include <linux/mutex.h>
#include <linux/socket.h>
#include <linux/types.h>

struct socket;

#define KB_NET_NAME	64	/* an address as text */

/* A connection or listener: zeroed, with @lock initialized, before its first use. */
struct kb_net {
	struct mutex	lock;	/* protects what follows against kb_net_shutdown() */
	struct socket	*sock;	/* or NULL */
	bool		shut;	/* kb_net_shutdown() was called; cleared by kb_net_close() */
};

/**
 * kb_net_parse() - parse an address
 * @text: "10.0.0.1:4420" or "[fd00::1]:4420"
 * @addr: takes the address, the rest is zeroed. IPv4-mapped IPv6 is converted to IPv4
 * Context: Any.
 * Return: 0 or -EINVAL.
 */
int kb_net_parse(const char *text, struct sockaddr_storage *addr);

/**
 * kb_net_connect() - connect
 * @net: without a socket
 * @addr: the peer's address
 * @ms: time-out in milliseconds
 * Context: Process, sleeps. The socket allocates with GFP_NOIO. A caller that must not wait
 * for I/O needs a noio scope for all other allocations.
 * Return: 0, -ESHUTDOWN after kb_net_shutdown(), -ETIMEDOUT, or another errno.
 */
int kb_net_connect(struct kb_net *net, const struct sockaddr_storage *addr,
		   unsigned int ms);

/**
 * kb_net_listen() - accept connections at an address
 * @net: without a socket
 * @addr: the address
 * Context: Process, sleeps.
 * Return: 0 or a negative errno.
 */
int kb_net_listen(struct kb_net *net, const struct sockaddr_storage *addr);

/**
 * kb_net_accept() - wait for a connection
 * @listener: after kb_net_listen()
 * @net: without a socket, takes the connection
 * Context: Process, sleeps until a peer connects or @listener is shut down.
 * Return: 0, -ESHUTDOWN after kb_net_shutdown() of @listener or @net, or another errno.
 */
int kb_net_accept(struct kb_net *listener, struct kb_net *net);

/**
 * kb_net_peer() - get the peer's address as text and as a number
 * @net: connected
 * @name: takes the text, "?" if there is no address
 *
 * The number leaves out what one host can choose freely: the port, and the lower half
 * of an IPv6 address.
 * Context: Process, sleeps.
 * Return: the number, 0 if there is no address.
 */
u64 kb_net_peer(struct kb_net *net, char name[KB_NET_NAME]);

/**
 * kb_net_send() - send a message
 * @net: connected
 * @buf: the message, which begins with a struct kb_net_hdr
 * @len: length of @buf
 * Context: Process, sleeps for a few seconds at most.
 * Return: 0, -ESHUTDOWN, -ETIMEDOUT, or another errno. After an error nothing more
 * can be sent.
 */
int kb_net_send(struct kb_net *net, const void *buf, size_t len);

/**
 * kb_net_recv() - receive a message
 * @net: connected
 * @buf: takes the message
 * @room: bytes of @buf, at least a struct kb_net_hdr
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
int kb_net_recv(struct kb_net *net, void *buf, size_t room, unsigned int ms);

/**
 * kb_net_shutdown() - end waiting and receiving on a connection
 * @net: connected or not
 *
 * Messages can still be sent. The peer sees the end after kb_net_close().
 * Context: Process, sleeps; any thread, any number of times.
 */
void kb_net_shutdown(struct kb_net *net);

/**
 * kb_net_close() - close the socket
 * @net: the connection, used by no other thread; can be used again afterwards
 *
 * This clears an earlier kb_net_shutdown(). To end a connection for good, a caller
 * sets a flag before kb_net_shutdown(), which the thread checks after kb_net_close().
 * Context: Process, sleeps.
 */
void kb_net_close(struct kb_net *net);

#endif /* KOFIBLK_NET_H */
