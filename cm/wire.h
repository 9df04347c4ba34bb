/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Messages of a session over TCP, little-endian: see <kofi/session.h> for their order. Each begins
 * with a struct kulp_hdr, whose version and type keep their offsets in all versions. Messages after
 * AUTH have a MAC behind the header.
 *
 * Messages aren't trusted: kcm_types checks each field. Needs only types of the kernel, so that the
 * parser can be built in user space for fuzzing.
 */
#ifndef KCM_WIRE_H
#define KCM_WIRE_H

#include <linux/types.h>
#include <kofi/session_types.h>
#include <kofi/ulp_msg.h>

#define KCM_MAGIC	0x4d434f6b	/* "kOCM" */
#define KCM_VERSION	1

enum kcm_type {
	KCM_HELLO = 1,
	KCM_CHALLENGE,
	KCM_AUTH,
	KCM_ACCEPT,
	KCM_READY,
	KCM_REJECT,
	KCM_NOTE,
	KCM_BYE,
	KCM_PING,
	KCM_PONG,
	KCM_TYPES,
};

/**
 * struct kcm_wire_hello - a client asks for a session; addresses and private data follow
 * @hdr: header
 * @nonce: random
 * @service: name of the service
 * @name: name of the client
 * @instance: part of the service
 * @host: the client's host
 * @keep_alive: milliseconds
 * @addr_format: format of the addresses
 * @addr_len: bytes of an address
 * @addr_count: number of addresses
 * @priv_len: bytes of private data
 * @version_min: oldest version of the service
 * @version: newest version of the service
 * @reserved: 0
 */
struct kcm_wire_hello {
	struct kulp_hdr	hdr;
	u8	nonce[KULP_NONCE];
	char	service[KCM_SERVICE];
	char	name[KCM_NAME];
	char	instance[KCM_NAME];
	u8	host[KCM_HOST];
	__le32	keep_alive;
	__le32	addr_format;
	__le16	addr_len;
	__le16	addr_count;
	__le16	priv_len;
	__le16	version_min;
	__le16	version;
	u8	reserved[6];
};

/**
 * struct kcm_wire_accept - the session is accepted; addresses and private data follow
 * @hdr: header
 * @mac: MAC of the message
 * @session: number of the session, random
 * @keep_alive: milliseconds
 * @addr_format: format of the addresses
 * @addr_len: bytes of an address
 * @addr_count: number of addresses
 * @priv_len: bytes of private data
 * @version: version of the service
 */
struct kcm_wire_accept {
	struct kulp_hdr	hdr;
	u8	mac[KULP_MAC];
	__le64	session;
	__le32	keep_alive;
	__le32	addr_format;
	__le16	addr_len;
	__le16	addr_count;
	__le16	priv_len;
	__le16	version;
};

/**
 * struct kcm_wire_ready - the client has inserted the addresses
 * @hdr: header
 * @mac: MAC of the message
 */
struct kcm_wire_ready {
	struct kulp_hdr	hdr;
	u8	mac[KULP_MAC];
};

/**
 * struct kcm_wire_reject - there is no session; private data follows
 * @hdr: header
 * @mac: MAC of the message; 0 before AUTH
 * @after_ms: the client should wait that long before its next attempt
 * @status: enum kulp_status
 * @version_min: oldest version of the service
 * @version: newest version of the service
 * @priv_len: bytes of private data
 * @again: another attempt may succeed
 * @reserved: 0
 * @why: text for the log
 */
struct kcm_wire_reject {
	struct kulp_hdr	hdr;
	u8	mac[KULP_MAC];
	__le32	after_ms;
	__le16	status;
	__le16	version_min;
	__le16	version;
	__le16	priv_len;
	u8	again;
	u8	reserved[3];
	char	why[KCM_NAME];
};

/**
 * struct kcm_wire_note - NOTE, PING or PONG; the data of a note follows
 * @hdr: header
 * @mac: MAC of the message
 * @number: 1, 2, ... for NOTE, BYE, PING and PONG of a direction
 */
struct kcm_wire_note {
	struct kulp_hdr	hdr;
	u8	mac[KULP_MAC];
	__le64	number;
};

/**
 * struct kcm_wire_bye - the session ends; data follows
 * @hdr: header
 * @mac: MAC of the message
 * @number: as in struct kcm_wire_note
 * @reason: enum kcm_reason
 * @again: another session may be set up
 * @reserved: 0
 */
struct kcm_wire_bye {
	struct kulp_hdr	hdr;
	u8	mac[KULP_MAC];
	__le64	number;
	u8	reason;
	u8	again;
	u8	reserved[6];
};

/* Parsed messages. Addresses and private data point into the message. */

struct kcm_hello_msg {
	u8		nonce[KULP_NONCE];
	char		service[KCM_SERVICE];
	char		name[KCM_NAME];
	char		instance[KCM_NAME];
	u8		host[KCM_HOST];
	u32		keep_alive;
	u32		addr_format;
	u16		addr_len;
	u16		addr_count;
	u16		priv_len;
	u16		version_min;
	u16		version;
	const u8	*addrs;
	const u8	*priv;
};

struct kcm_accept_msg {
	u64		session;
	u32		keep_alive;
	u32		addr_format;
	u16		addr_len;
	u16		addr_count;
	u16		priv_len;
	u16		version;
	const u8	*addrs;
	const u8	*priv;
};

struct kcm_reject_msg {
	u32		after_ms;
	u16		status;
	u16		version_min;
	u16		version;
	u16		priv_len;
	bool		again;
	char		why[KCM_NAME];
	const u8	*priv;
};

struct kcm_note_msg {
	u64		number;
	const u8	*data;
	u16		len;
};

struct kcm_bye_msg {
	u64		number;
	u8		reason;		/* enum kcm_reason */
	bool		again;
	const u8	*data;
	u16		len;
};

#define KCM_TAIL_MAX	(KCM_ADDRS * KULP_ADDR_MAX + KCM_PRIV_MAX)
#define KCM_MSG_MAX	(sizeof(struct kcm_wire_hello) + KCM_TAIL_MAX)
#define KCM_KEEP_ALIVE_MIN	100		/* milliseconds */
#define KCM_KEEP_ALIVE_MAX	3600000

extern const struct kulp_proto kcm_proto;

int kcm_wire_expect(const struct kulp_hdr *hdr, u32 types, u32 *len);

#endif /* KCM_WIRE_H */
