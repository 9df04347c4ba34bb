// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages between the two sides of a ULP: see <kofi/ulp_msg.h>. Pure functions without state or
 * allocation, which can be built in user space for fuzzing.
 */
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include <kofi/ulp_msg.h>

static_assert(sizeof(struct kulp_hdr) == 16);
static_assert(sizeof(struct kulp_challenge) == 120);
static_assert(sizeof(struct kulp_proof) == 48);

static bool kulp_get_field(const struct kulp_field *f, const void *from, void *to)
{
	size_t len;

	switch (f->how) {
	case KULP_NUMBER:
		if (f->len == sizeof(u16))
			*(u16 *)to = le16_to_cpu(*(const __le16 *)from);
		else if (f->len == sizeof(u32))
			*(u32 *)to = le32_to_cpu(*(const __le32 *)from);
		else
			*(u64 *)to = le64_to_cpu(*(const __le64 *)from);
		return true;
	case KULP_FLAG:
		*(bool *)to = *(const u8 *)from;
		return *(const u8 *)from <= 1;
	case KULP_ZERO:
		return !memchr_inv(from, 0, f->len);
	case KULP_TEXT:
		len = strnlen(from, f->len);
		if (len == f->len || memchr_inv(from + len, 0, f->len - len))
			return false;
	}
	memcpy(to, from, f->len);
	return true;
}

/* @to is zeroed. */
static void kulp_put_field(const struct kulp_field *f, void *to, const void *from)
{
	switch (f->how) {
	case KULP_NUMBER:
		if (f->len == sizeof(u16))
			*(__le16 *)to = cpu_to_le16(*(const u16 *)from);
		else if (f->len == sizeof(u32))
			*(__le32 *)to = cpu_to_le32(*(const u32 *)from);
		else
			*(__le64 *)to = cpu_to_le64(*(const u64 *)from);
		break;
	case KULP_FLAG:
		*(u8 *)to = *(const bool *)from;
		break;
	case KULP_TEXT:
		memcpy(to, from, strnlen(from, f->len - 1));
		break;
	case KULP_BYTES:
		memcpy(to, from, f->len);
	}
}

/**
 * kulp_parse_hdr() - parse the header of a message
 * @proto: the protocol
 * @buf: the whole message
 * @len: length of the message
 * @type: takes the type, which has a row in @proto
 * Context: Any.
 * Return: 0; -EPROTONOSUPPORT for another version of the protocol; or -EPROTO.
 */
int kulp_parse_hdr(const struct kulp_proto *proto, const void *buf, size_t len, u16 *type)
{
	const struct kulp_type *row;
	const struct kulp_hdr *hdr = buf;

	if (len < sizeof(*hdr) || le32_to_cpu(hdr->magic) != proto->magic)
		return -EPROTO;
	if (le16_to_cpu(hdr->version) != proto->version)
		return -EPROTONOSUPPORT;
	*type = le16_to_cpu(hdr->type);
	if (hdr->reserved || *type >= proto->ntypes || le32_to_cpu(hdr->len) != len)
		return -EPROTO;
	row = &proto->types[*type];
	return row->fields && len >= row->len && len <= row->len + row->tail ? 0 : -EPROTO;
}
EXPORT_SYMBOL_NS_GPL(kulp_parse_hdr, KOFI_ULP);

/**
 * kulp_parse() - parse a message of a given type
 * @proto: the protocol
 * @want: the type
 * @buf: the message
 * @len: length of the message
 * @msg: takes the contents of the message, in the structure of @want; undefined after an error
 * Context: Any.
 * Return: 0, or -EPROTO.
 */
int kulp_parse(const struct kulp_proto *proto, u16 want, const void *buf, size_t len, void *msg)
{
	const struct kulp_type *row = &proto->types[want];
	const struct kulp_field *f;
	u16 type;

	if (kulp_parse_hdr(proto, buf, len, &type) || type != want)
		return -EPROTO;
	for (f = row->fields; f->len; f++)
		if (!kulp_get_field(f, buf + f->wire, msg + f->host))
			return -EPROTO;
	return row->ok && !row->ok(msg, buf + row->len, len - row->len) ? -EPROTO : 0;
}
EXPORT_SYMBOL_NS_GPL(kulp_parse, KOFI_ULP);

/**
 * kulp_build() - build a message
 * @proto: the protocol
 * @type: type of the message
 * @buf: room for the message
 * @msg: contents of the message, in the structure of @type
 * @tail: what follows the fields
 * @len: bytes of @tail
 * Context: Any.
 * Return: length of the message.
 */
size_t kulp_build(const struct kulp_proto *proto, u16 type, void *buf, const void *msg,
		  const void *tail, size_t len)
{
	const struct kulp_type *row = &proto->types[type];
	struct kulp_hdr *hdr = buf;
	const struct kulp_field *f;

	memset(buf, 0, row->len);
	hdr->magic = cpu_to_le32(proto->magic);
	hdr->version = cpu_to_le16(proto->version);
	hdr->type = cpu_to_le16(type);
	hdr->len = cpu_to_le32(row->len + len);
	for (f = row->fields; f->len; f++)
		kulp_put_field(f, buf + f->wire, msg + f->host);
	if (len)
		memcpy(buf + row->len, tail, len);
	return row->len + len;
}
EXPORT_SYMBOL_NS_GPL(kulp_build, KOFI_ULP);

#define KULP_SAME(how, msg, field) \
	KULP_FIELD(how, struct msg, field, struct msg##_msg, field)

const struct kulp_field kulp_challenge_fields[] = {
	KULP_SAME(KULP_BYTES, kulp_challenge, nonce),
	KULP_SAME(KULP_BYTES, kulp_challenge, macs),
	KULP_SAME(KULP_FLAG, kulp_challenge, auth),
	KULP_RESERVED(struct kulp_challenge, reserved),
	{}
};
EXPORT_SYMBOL_NS_GPL(kulp_challenge_fields, KOFI_ULP);

const struct kulp_field kulp_proof_fields[] = {
	KULP_SAME(KULP_BYTES, kulp_proof, mac),
	{}
};
EXPORT_SYMBOL_NS_GPL(kulp_proof_fields, KOFI_ULP);

/**
 * kulp_challenge_ok() - check that there are no proofs without a secret
 * @parsed: a struct kulp_challenge_msg
 * @tail: what follows the message
 * @len: bytes of @tail, 0
 * Context: Any.
 * Return: whether the message is valid.
 */
bool kulp_challenge_ok(void *parsed, const void *tail, size_t len)
{
	const struct kulp_challenge_msg *msg = parsed;

	return msg->auth || !memchr_inv(msg->macs, 0, sizeof(msg->macs));
}
EXPORT_SYMBOL_NS_GPL(kulp_challenge_ok, KOFI_ULP);

/* Several errnos may map to one status, but each status maps to one errno. */
static const int kulp_errnos[KULP_STATUSES] = {
	[KULP_STS_OK]			= 0,
	[KULP_STS_IO]			= -EIO,
	[KULP_STS_NOTSUPP]		= -EOPNOTSUPP,
	[KULP_STS_TIMEOUT]		= -ETIMEDOUT,
	[KULP_STS_NOSPC]		= -ENOSPC,
	[KULP_STS_TRANSPORT]		= -ENOLINK,
	[KULP_STS_TARGET]		= -EREMOTEIO,
	[KULP_STS_RESV_CONFLICT]	= -EBADE,
	[KULP_STS_MEDIUM]		= -ENODATA,
	[KULP_STS_PROTECTION]		= -EILSEQ,
	[KULP_STS_NOMEM]		= -ENOMEM,
	[KULP_STS_INVAL]		= -EINVAL,
	[KULP_STS_READ_ONLY]		= -EROFS,
	[KULP_STS_NODEV]		= -ENODEV,
	[KULP_STS_NOENT]		= -ENOENT,
	[KULP_STS_ACCESS]		= -EACCES,
	[KULP_STS_BUSY]			= -EBUSY,
	[KULP_STS_STALE]		= -ESTALE,
	[KULP_STS_PROTO]		= -EPROTO,
};

/**
 * kulp_status_errno() - errno of a status
 * @status: enum kulp_status
 * Context: Any.
 * Return: 0, or a negative errno; -EIO for an unknown status.
 */
int kulp_status_errno(u16 status)
{
	return status < KULP_STATUSES ? kulp_errnos[status] : -EIO;
}
EXPORT_SYMBOL_NS_GPL(kulp_status_errno, KOFI_ULP);

/**
 * kulp_errno_status() - status of an errno
 * @err: 0, or a negative errno
 * Context: Any.
 * Return: enum kulp_status; KULP_STS_IO for an errno that has none.
 */
u16 kulp_errno_status(int err)
{
	u16 i;

	for (i = 0; i < KULP_STATUSES; i++)
		if (kulp_errnos[i] == err)
			return i;
	return KULP_STS_IO;
}
EXPORT_SYMBOL_NS_GPL(kulp_errno_status, KOFI_ULP);
