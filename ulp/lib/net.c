// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Addresses of TCP connections: see <kofi/ulp_net.h>. */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/inet.h>
#include <linux/net.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <net/ipv6.h>
#include <kofi/ulp_net.h>

/* Convert an IPv4-mapped IPv6 address to IPv4, so that equal addresses compare equal. */
static void kulp_net_unmap(struct sockaddr_storage *addr)
{
	struct sockaddr_in6 six = *(struct sockaddr_in6 *)addr;
	struct sockaddr_in *four = (struct sockaddr_in *)addr;

	if (addr->ss_family != AF_INET6 || !ipv6_addr_v4mapped(&six.sin6_addr))
		return;
	memset(addr, 0, sizeof(*addr));
	four->sin_family = AF_INET;
	four->sin_port = six.sin6_port;
	four->sin_addr.s_addr = six.sin6_addr.s6_addr32[3];
}

bool kulp_net_here(void)
{
	return net_eq(current->nsproxy->net_ns, &init_net);
}
EXPORT_SYMBOL_NS_GPL(kulp_net_here, KOFI_ULP);

int kulp_net_parse(const char *text, struct sockaddr_storage *addr)
{
	char host[KULP_NET_NAME];
	const char *port = strrchr(text, ':');
	bool six = *text == '[';
	size_t len;

	if (!port || !port[1])
		return -EINVAL;
	len = port - text;
	if (six) {
		if (len < 2 || text[len - 1] != ']')
			return -EINVAL;
		text++;
		len -= 2;
	}
	if (len >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	memset(addr, 0, sizeof(*addr));
	if (inet_pton_with_scope(&init_net, six ? AF_INET6 : AF_INET, host, port + 1, addr))
		return -EINVAL;
	kulp_net_unmap(addr);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kulp_net_parse, KOFI_ULP);

u64 kulp_sock_peer(struct socket *sock, char name[KULP_NET_NAME])
{
	struct sockaddr_storage addr;
	const struct in6_addr *six = &((struct sockaddr_in6 *)&addr)->sin6_addr;

	if (kernel_getpeername(sock, (struct sockaddr *)&addr) < 0) {
		strscpy(name, "?", KULP_NET_NAME);
		return 0;
	}
	snprintf(name, KULP_NET_NAME, "%pISpc", &addr);
	kulp_net_unmap(&addr);
	if (addr.ss_family == AF_INET)
		return be32_to_cpu(((struct sockaddr_in *)&addr)->sin_addr.s_addr);
	return (u64)be32_to_cpu(six->s6_addr32[0]) << 32 | be32_to_cpu(six->s6_addr32[1]);
}
EXPORT_SYMBOL_NS_GPL(kulp_sock_peer, KOFI_ULP);

int kulp_sock_names(struct socket *sock, struct sockaddr_storage *local,
		    struct sockaddr_storage *remote)
{
	int ret;

	memset(local, 0, sizeof(*local));
	memset(remote, 0, sizeof(*remote));
	ret = kernel_getsockname(sock, (struct sockaddr *)local);
	if (ret < 0)
		return ret;
	ret = kernel_getpeername(sock, (struct sockaddr *)remote);
	if (ret < 0)
		return ret;
	kulp_net_unmap(local);
	kulp_net_unmap(remote);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kulp_sock_names, KOFI_ULP);
