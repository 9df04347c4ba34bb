/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofiblk's TCP connections, over which sessions are set up: whole messages of
 * a struct kb_net_hdr, and waiting that ends when it must.
 *
 * One thread at a time uses a connection; any other may shut it down, which ends
 * whatever that thread waits for.
 */
#ifndef KOFIBLK_NET_H
#define KOFIBLK_NET_H

#include <linux/mutex.h>
#include <linux/socket.h>
#include <linux/types.h>

struct socket;

#define KB_NET_NAME	64	/* an address as text */

/**
 * struct kb_net - a connection, or what accepts them
 * @lock: protects what follows against kb_net_shutdown()
 * @sock: the socket, or NULL
 * @shut: shut down, for good
 */
struct kb_net {
	struct mutex	lock;	/* protects what follows */
	struct socket	*sock;
	bool		shut;
};

/**
 * kb_net_init() - a connection that isn't one yet
 * @net: the connection
 *
 * Context: Any.
 */
void kb_net_init(struct kb_net *net);

/**
 * kb_net_parse() - an address from its text
 * @text: "10.0.0.1:4420" or "[fd00::1]:4420"
 * @addr: takes it, the rest zeroed; an IPv4 address that is mapped to IPv6 as itself
 *
 * Context: Any.
 * Return: 0 or -EINVAL.
 */
int kb_net_parse(const char *text, struct sockaddr_storage *addr);

/**
 * kb_net_connect() - connect
 * @net: from kb_net_init()
 * @addr: where to
 * @ms: how long at most
 *
 * Context: Process, sleeps; allocates with GFP_NOIO, and what TCP does itself
 * by the caller's scope.
 * Return: 0, -ESHUTDOWN after kb_net_shutdown(), -ETIMEDOUT, or another errno.
 */
int kb_net_connect(struct kb_net *net, const struct sockaddr_storage *addr,
		   unsigned int ms);

/**
 * kb_net_listen() - accept connections at an address
 * @net: from kb_net_init()
 * @addr: the address
 *
 * Context: Process, sleeps.
 * Return: 0 or a negative errno.
 */
int kb_net_listen(struct kb_net *net, const struct sockaddr_storage *addr);

/**
 * kb_net_accept() - wait for a connection
 * @listener: after kb_net_listen()
 * @net: from kb_net_init(), takes the connection
 *
 * Context: Process, sleeps until one comes or @listener is shut down.
 * Return: 0, -ESHUTDOWN after kb_net_shutdown() of either, or another errno.
 */
int kb_net_accept(struct kb_net *listener, struct kb_net *net);

/**
 * kb_net_name() - the peer's address as text
 * @net: connected
 * @name: takes it, "?" if there is none
 *
 * Context: Process, sleeps.
 */
void kb_net_name(struct kb_net *net, char name[KB_NET_NAME]);

/**
 * kb_net_peer() - the peer's address as a number
 * @net: connected
 *
 * What one host can choose freely is left out: the port, and the lower half of an
 * address of IPv6.
 *
 * Context: Process, sleeps.
 * Return: the number, 0 if there is no address.
 */
u64 kb_net_peer(struct kb_net *net);

/**
 * kb_net_send() - send a message
 * @net: connected
 * @buf: the message, of a struct kb_net_hdr and more
 * @len: its length
 *
 * Context: Process, sleeps, but not for longer than a few seconds.
 * Return: 0, -ESHUTDOWN, -ETIMEDOUT, or another errno; after any of them nothing
 * more can be sent.
 */
int kb_net_send(struct kb_net *net, const void *buf, size_t len);

/**
 * kb_net_recv() - receive a message
 * @net: connected
 * @buf: takes it
 * @room: bytes there, at least a struct kb_net_hdr
 * @ms: how long to wait for its first byte, 0 for ever; the rest must come within
 *	a few seconds
 *
 * Only the length is looked at: the message has as many bytes as it says.
 *
 * Context: Process, sleeps.
 * Return: its length, -ETIMEDOUT when there was no first byte, -EPROTO when it is
 * shorter than its header or longer than @room, -ECONNRESET at the connection's
 * end, -ECONNABORTED when the rest didn't come, -ESHUTDOWN, or another errno.
 * After all but -ETIMEDOUT nothing more can be received.
 */
int kb_net_recv(struct kb_net *net, void *buf, size_t room, unsigned int ms);

/**
 * kb_net_shutdown() - end all waiting for a connection, and receiving
 * @net: from kb_net_init(), connected or not
 *
 * Something can still be sent; kb_net_close() tells the peer of the end.
 *
 * Context: Process, sleeps; any thread, any number of times.
 */
void kb_net_shutdown(struct kb_net *net);

/**
 * kb_net_close() - give the socket back
 * @net: which no other thread is using; as after kb_net_init() then
 *
 * A kb_net_shutdown() that came before is forgotten: who wants an end for good
 * says so elsewhere first, and who closes looks there afterwards.
 *
 * Context: Process, sleeps.
 */
void kb_net_close(struct kb_net *net);

#endif /* KOFIBLK_NET_H */
