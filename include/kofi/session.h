/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sessions between two ULPs, in kofi_cm.ko, namespace KOFI_CM. A session is set up over TCP: both
 * sides prove that they know a secret, exchange the addresses of their endpoints and private data,
 * and wait until nothing of an earlier session of the same client runs. Then each side notices the
 * other one's end. Data travels over the fabric; kofi_cm knows only addresses.
 *
 *	active				passive
 *	HELLO		->				name, addresses, private data
 *			<-	CHALLENGE		the passive side's proof
 *	AUTH		->				the active side's proof
 *					(earlier sessions of this client end)
 *			<-	ACCEPT or REJECT	addresses, private data
 *	READY		->				"your endpoints are in my address vector"
 *	NOTE, PING	<->	NOTE, PONG
 *	BYE		<->	BYE			with a reason
 *
 * The callbacks of a session are called in process context, one at a time, in a noio scope, and
 * may sleep. The session's messages wait meanwhile.
 */
#ifndef KOFI_SESSION_H
#define KOFI_SESSION_H

#include <linux/socket.h>
#include <linux/types.h>
#include <kofi/session_types.h>
#include <kofi/ulp_auth.h>

struct kcm_listener;
struct kcm_session;
struct net;

/**
 * struct kcm_addrs - addresses of the endpoints of a side
 * @format: enum fi_addr_format
 * @len: bytes of an address, at most KULP_ADDR_MAX
 * @count: number of addresses, at most KCM_ADDRS
 * @addr: the addresses, one after the other
 */
struct kcm_addrs {
	u32		format;
	u16		len;
	u16		count;
	const u8	*addr;
};

/**
 * struct kcm_peer - facts about the other side, valid during a callback
 * @name: the active side's name, or "" on the active side
 * @instance: the part of the service that the active side asks for, such as a disk
 * @host: the active side's host; the same for all its sessions
 * @from: IP address and port as text
 * @addrs: addresses of its endpoints
 * @priv: private data of HELLO or ACCEPT
 * @priv_len: bytes of @priv
 * @key: passive side, in kcm_ops.request: that of the keys of kcm_ops.keys whose secret the client
 *	has proved to know, or NULL if it needs none
 */
struct kcm_peer {
	const char		*name;
	const char		*instance;
	const u8		*host;
	const char		*from;
	struct kcm_addrs	addrs;
	const void		*priv;
	size_t			priv_len;
	struct kulp_key		*key;
};

/**
 * struct kcm_end - how a session, or an attempt to begin one, has ended
 * @err: negative errno: -ESHUTDOWN if this side ended it, -ECONNABORTED if the peer said BYE,
 *	-ETIMEDOUT if the peer was silent, -ECONNRESET if its connection ended, -EPROTO if it sent
 *	something wrong; the errno of a REJECT; or an errno of a socket or a callback
 * @reason: reason of a BYE in either direction
 * @refused: the passive side has sent REJECT
 * @final: no further attempt is made. A refusal is final only if it is proven to come from a peer
 *	that knows the secret, and the peer says so
 * @data: data of the peer's BYE or REJECT, valid during the callback
 * @len: bytes of @data
 * @why: text of a REJECT, or ""
 */
struct kcm_end {
	int		err;
	enum kcm_reason	reason;
	bool		refused;
	bool		final;
	const void	*data;
	size_t		len;
	char		why[KCM_NAME];
};

/**
 * struct kcm_ops - callbacks of a ULP
 * @keys: passive side: get the keys of the secrets of a client. The session puts their references.
 *	Return the number of keys, 0 if the client needs no secret, or -EACCES for an unknown
 *	client, who doesn't learn that it is unknown. Any other negative errno refuses the client at
 *	once, such as -ENOENT if there is no such instance
 * @request: passive side: a client has proved who it is, and earlier sessions of it have ended.
 *	The ULP calls kcm_accept() or kcm_reject(), now or later, also from other threads. Return 0,
 *	or a negative errno as a short form of kcm_reject(), which lets the client try again
 * @hello: active side: get the addresses and private data for an attempt. They stay valid until
 *	the next call or until the session is freed. An error fails the attempt
 * @accepted: active side: the peer has accepted. The ULP inserts the peer's addresses, and is
 *	ready for its messages. An error ends the attempt
 * @live: both sides are ready. On the passive side this comes after the peer has inserted the
 *	addresses: before, RMA to it isn't possible, because a target must know the initiator. May
 *	be NULL
 * @note: a note of the peer; may be NULL if there are none
 * @failed: active side: an attempt has failed, before @accepted or by its error; another one
 *	follows. May be NULL
 * @stop: the session has ended. Called once for each successful @accepted or @request, unless
 *	kcm_reject() was called, and once with kcm_end.final after the last attempt. The ULP ends
 *	its operations and then calls kcm_gone(), now or later. No callback comes in between
 */
struct kcm_ops {
	int	(*keys)(struct kcm_listener *l, const struct kcm_peer *peer,
			struct kulp_key *keys[KULP_SECRETS]);
	int	(*request)(struct kcm_session *s, const struct kcm_peer *peer);
	int	(*hello)(struct kcm_session *s, struct kcm_addrs *addrs,
			 const void **priv, size_t *len);
	int	(*accepted)(struct kcm_session *s, const struct kcm_peer *peer);
	void	(*live)(struct kcm_session *s);
	void	(*note)(struct kcm_session *s, const void *data, size_t len);
	void	(*failed)(struct kcm_session *s, const struct kcm_end *end);
	void	(*stop)(struct kcm_session *s, const struct kcm_end *end);
};

/**
 * struct kcm_config - properties of a service, the same for its listeners and its clients. It stays
 *	valid until they are gone
 * @net: network namespace
 * @service: name of the service. Services can share a TCP port
 * @version_min: oldest version of the service's protocol that this side speaks
 * @version: newest one; a session has the newest that both sides speak
 * @keep_alive_ms: a peer that is silent for one and a half times as long is dead, in milliseconds;
 *	a session has the smaller value of both sides; at least 100
 * @replace_ms: how long a client may wait for the end of its earlier session, in milliseconds
 * @max_sessions: most sessions of a listener; 0 for no limit
 * @ops: callbacks
 */
struct kcm_config {
	struct net		*net;
	const char		*service;
	u16			version_min;
	u16			version;
	u32			keep_alive_ms;
	u32			replace_ms;
	u32			max_sessions;
	const struct kcm_ops	*ops;
};

/**
 * struct kcm_client - an active side, copied by kcm_connect()
 * @to: the passive side's address
 * @from: the address to connect from; AF_UNSPEC for any
 * @name: name, for which the passive side has the secret
 * @instance: the part of the service that is asked for; may be ""
 * @host: permanent id of this host
 * @key: key of the secret, or NULL. kcm_connect() takes a reference of its own
 * @retry_ms: a failed attempt is repeated after a random time between half of this and this, in
 *	milliseconds
 * @give_up_ms: the time without a live session after which no more attempts are made, in
 *	milliseconds; 0 for never
 */
struct kcm_client {
	struct sockaddr_storage	to;
	struct sockaddr_storage	from;
	const char		*name;
	const char		*instance;
	u8			host[KCM_HOST];
	struct kulp_key		*key;
	u32			retry_ms;
	u32			give_up_ms;
};

int kcm_listen(const struct kcm_config *config, const struct sockaddr_storage *addr,
	       void *context, struct kcm_listener **listener);
void kcm_unlisten(struct kcm_listener *l);
void *kcm_listener_context(const struct kcm_listener *l);

int kcm_connect(const struct kcm_config *config, const struct kcm_client *client, void *context,
		struct kcm_session **session);
void kcm_disconnect(struct kcm_session *s);

int kcm_accept(struct kcm_session *s, const struct kcm_addrs *addrs, const void *priv, size_t len);
bool kcm_reject(struct kcm_session *s, int err, bool again, u32 after_ms, const char *why,
		const void *priv, size_t len);
int kcm_note(struct kcm_session *s, const void *data, size_t len);
void kcm_heard(struct kcm_session *s);
void kcm_bye(struct kcm_session *s, enum kcm_reason reason, bool again, const void *data,
	     size_t len);
void kcm_gone(struct kcm_session *s);

void kcm_set_context(struct kcm_session *s, void *context);
void *kcm_context(const struct kcm_session *s);
struct kcm_listener *kcm_session_listener(const struct kcm_session *s);
int kcm_names(const struct kcm_session *s, struct sockaddr_storage *local,
	      struct sockaddr_storage *remote);
u64 kcm_id(const struct kcm_session *s);
u16 kcm_version(const struct kcm_session *s);
const u8 *kcm_mac_key(const struct kcm_session *s);

#endif /* KOFI_SESSION_H */
