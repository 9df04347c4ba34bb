/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Addresses of TCP connections, over which the two sides of a ULP set up a session. */
#ifndef KOFI_ULP_NET_H
#define KOFI_ULP_NET_H

#include <linux/socket.h>
#include <linux/types.h>

struct socket;

#define KULP_NET_NAME	64	/* an address as text */

/**
 * kulp_net_here() - check that a task means the network that connections and listeners use
 * Context: Process.
 * Return: whether the task is in the first network namespace, and not in a container.
 */
bool kulp_net_here(void);

/**
 * kulp_net_parse() - parse an address
 * @text: "10.0.0.1:4420" or "[fd00::1]:4420"
 * @addr: takes the address, the rest is zeroed. IPv4-mapped IPv6 is converted to IPv4
 * Context: Any.
 * Return: 0 or -EINVAL.
 */
int kulp_net_parse(const char *text, struct sockaddr_storage *addr);

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

#endif /* KOFI_ULP_NET_H */
