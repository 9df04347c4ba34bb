/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Messages that the two sides of a ULP exchange over TCP. A table for each type of message says
 * where its fields are on the wire and in the host's structure. This header needs only types of the
 * kernel, so that a ULP's messages can be parsed in user space for fuzzing.
 */
#ifndef KOFI_ULP_MSG_H
#define KOFI_ULP_MSG_H

#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <linux/types.h>

#define KULP_ADDR_MAX	64	/* bytes for an endpoint's address, FI_ADDR_MAX or more */
#define KULP_NONCE	32
#define KULP_MAC	32	/* HMAC-SHA-256 */
#define KULP_SECRETS	2	/* secrets of a client at a time, to replace one by the other */

/**
 * struct kulp_hdr - the beginning of each message, little-endian; a MAC, if there is one, follows
 * @magic: number of the ULP's protocol
 * @version: version of the protocol
 * @type: the protocol's type of the message
 * @len: bytes of the message, with this header
 * @reserved: 0
 */
struct kulp_hdr {
	__le32	magic;
	__le16	version;
	__le16	type;
	__le32	len;
	__le32	reserved;
};

/**
 * enum kulp_how - how a field is converted
 * @KULP_NUMBER: a number of 2, 4 or 8 bytes, little-endian on the wire
 * @KULP_BYTES: bytes
 * @KULP_FLAG: a bool, on the wire a byte of 0 or 1
 * @KULP_TEXT: a text that ends with a NUL; the rest is 0
 * @KULP_ZERO: bytes of 0 that are only on the wire
 */
enum kulp_how {
	KULP_NUMBER,
	KULP_BYTES,
	KULP_FLAG,
	KULP_TEXT,
	KULP_ZERO,
};

/**
 * struct kulp_field - where a field is on the wire and in the host's structure
 * @wire: offset on the wire
 * @host: offset in the host's structure
 * @len: length of both; 0 at the end of a table
 * @how: enum kulp_how
 */
struct kulp_field {
	u16	wire;
	u16	host;
	u16	len;
	u16	how;
};

/* A field: a member of a structure on the wire, and the one that it becomes. */
#define KULP_FIELD(how, wire, field, host, member)				\
	{ offsetof(wire, field), offsetof(host, member), sizeof_field(wire, field) +	\
	  BUILD_BUG_ON_ZERO(sizeof_field(wire, field) != sizeof_field(host, member)), how }
#define KULP_RESERVED(wire, field)						\
	{ offsetof(wire, field), 0, sizeof_field(wire, field), KULP_ZERO }

/**
 * struct kulp_type - a type of message
 * @fields: its fields after the header; NULL if there is no such type
 * @ok: checks what concerns several fields, or what follows them; may be NULL. It may set members
 *	of the parsed message
 * @len: bytes of the fields, with the header
 * @tail: maximum bytes that follow the fields
 */
struct kulp_type {
	const struct kulp_field	*fields;
	bool			(*ok)(void *parsed, const void *tail, size_t len);
	u16			len;
	u16			tail;
};

/**
 * struct kulp_proto - a protocol
 * @magic: kulp_hdr.magic
 * @version: kulp_hdr.version
 * @ntypes: number of @types
 * @types: by kulp_hdr.type
 */
struct kulp_proto {
	u32			magic;
	u16			version;
	u16			ntypes;
	const struct kulp_type	*types;
};

/**
 * enum kulp_status - results in messages, because errnos differ between architectures
 * @KULP_STS_OK: success
 * @KULP_STS_IO: EIO, and errnos that have no status
 * @KULP_STS_NOTSUPP: EOPNOTSUPP
 * @KULP_STS_TIMEOUT: ETIMEDOUT
 * @KULP_STS_NOSPC: ENOSPC
 * @KULP_STS_TRANSPORT: ENOLINK
 * @KULP_STS_TARGET: EREMOTEIO
 * @KULP_STS_RESV_CONFLICT: EBADE
 * @KULP_STS_MEDIUM: ENODATA
 * @KULP_STS_PROTECTION: EILSEQ
 * @KULP_STS_NOMEM: ENOMEM
 * @KULP_STS_INVAL: EINVAL
 * @KULP_STS_READ_ONLY: EROFS
 * @KULP_STS_NODEV: ENODEV
 * @KULP_STS_NOENT: ENOENT
 * @KULP_STS_ACCESS: EACCES
 * @KULP_STS_BUSY: EBUSY
 * @KULP_STS_STALE: ESTALE
 * @KULP_STS_PROTO: EPROTO
 * @KULP_STATUSES: number of these
 */
enum kulp_status {
	KULP_STS_OK		= 0,
	KULP_STS_IO		= 1,
	KULP_STS_NOTSUPP	= 2,
	KULP_STS_TIMEOUT	= 3,
	KULP_STS_NOSPC		= 4,
	KULP_STS_TRANSPORT	= 5,
	KULP_STS_TARGET		= 6,
	KULP_STS_RESV_CONFLICT	= 7,
	KULP_STS_MEDIUM		= 8,
	KULP_STS_PROTECTION	= 9,
	KULP_STS_NOMEM		= 10,
	KULP_STS_INVAL		= 11,
	KULP_STS_READ_ONLY	= 12,
	KULP_STS_NODEV		= 13,
	KULP_STS_NOENT		= 14,
	KULP_STS_ACCESS		= 15,
	KULP_STS_BUSY		= 16,
	KULP_STS_STALE		= 17,
	KULP_STS_PROTO		= 18,
	KULP_STATUSES,
};

int kulp_status_errno(u16 status);
u16 kulp_errno_status(int err);

int kulp_parse_hdr(const struct kulp_proto *proto, const void *buf, size_t len, u16 *type);
int kulp_parse(const struct kulp_proto *proto, u16 want, const void *buf, size_t len, void *msg);
size_t kulp_build(const struct kulp_proto *proto, u16 type, void *buf, const void *msg,
		  const void *tail, size_t len);

/**
 * struct kulp_challenge - a server's answer to the first message of a client
 * @hdr: header, with the protocol's type
 * @nonce: random
 * @macs: the server's proofs, one for each secret; random for secrets that don't exist
 * @auth: 1 if there is a secret, 0 if all MACs are 0
 * @reserved: 0
 */
struct kulp_challenge {
	struct kulp_hdr hdr;
	__u8	nonce[KULP_NONCE];
	__u8	macs[KULP_SECRETS][KULP_MAC];
	__u8	auth;
	__u8	reserved[7];
};

/**
 * struct kulp_proof - a client's proof
 * @hdr: header, with the protocol's type
 * @mac: the proof, or 0 without a secret
 */
struct kulp_proof {
	struct kulp_hdr hdr;
	__u8	mac[KULP_MAC];
};

/**
 * struct kulp_challenge_msg - a parsed struct kulp_challenge
 * @nonce: random
 * @macs: proofs
 * @auth: there is a secret
 */
struct kulp_challenge_msg {
	u8	nonce[KULP_NONCE];
	u8	macs[KULP_SECRETS][KULP_MAC];
	bool	auth;
};

/**
 * struct kulp_proof_msg - a parsed struct kulp_proof
 * @mac: the proof
 */
struct kulp_proof_msg {
	u8	mac[KULP_MAC];
};

/* Rows of both for kulp_proto.types. */
#define KULP_CHALLENGE_TYPE \
	{ kulp_challenge_fields, kulp_challenge_ok, sizeof(struct kulp_challenge) }
#define KULP_PROOF_TYPE \
	{ kulp_proof_fields, NULL, sizeof(struct kulp_proof) }

extern const struct kulp_field kulp_challenge_fields[];
extern const struct kulp_field kulp_proof_fields[];
bool kulp_challenge_ok(void *parsed, const void *tail, size_t len);

#endif /* KOFI_ULP_MSG_H */
