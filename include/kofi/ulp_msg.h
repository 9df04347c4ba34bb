/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the messages have in common that the two sides of a ULP exchange over TCP. This header
 * needs only types of the kernel, so that a ULP's messages can be parsed in user space for fuzzing.
 */
#ifndef KOFI_ULP_MSG_H
#define KOFI_ULP_MSG_H

#include <linux/types.h>

#define KULP_ADDR_MAX	64	/* bytes of an endpoint's address */
#define KULP_NONCE	32
#define KULP_MAC	32	/* HMAC-SHA-256 */

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

#endif /* KOFI_ULP_MSG_H */
