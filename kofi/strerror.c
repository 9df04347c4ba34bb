// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Texts of errors, and their conversion to errnos. */
#include <linux/kernel.h>
#include <linux/string.h>
#include "kofi.h"

static const struct {
	int		err;
	const char	*text;
	int		as;	/* closest errno, or 0 if @err is an errno */
} kofi_errors[] = {
	{ FI_SUCCESS, "success" }, { FI_EPERM, "not permitted" }, { FI_ENOENT, "no such object" },
	{ FI_EINTR, "interrupted" }, { FI_EIO, "input/output error" },
	{ FI_E2BIG, "argument list too long" }, { FI_EAGAIN, "try again" },
	{ FI_ENOMEM, "out of memory" }, { FI_EACCES, "access denied" },
	{ FI_EFAULT, "bad address" }, { FI_EBUSY, "in use" }, { EEXIST, "exists already" },
	{ FI_ENODEV, "no such device" }, { FI_EINVAL, "invalid argument" },
	{ FI_ENOSPC, "no space left" }, { EDEADLK, "would wait for itself" },
	{ FI_ENOSYS, "not implemented" }, { FI_ENODATA, "nothing found" },
	{ FI_ENOMSG, "no such message" }, { FI_EPROTO, "protocol error" },
	{ FI_EOVERFLOW, "value too large" }, { FI_EMSGSIZE, "message too long" },
	{ FI_ENOPROTOOPT, "no such option" }, { EPROTONOSUPPORT, "peer lacks the feature" },
	{ FI_EOPNOTSUPP, "not supported" }, { FI_EADDRNOTAVAIL, "address not available" },
	{ FI_ENETDOWN, "network is down" }, { FI_ECONNABORTED, "connection aborted" },
	{ FI_ECONNRESET, "connection reset by peer" }, { FI_ENOBUFS, "no buffer space" },
	{ FI_ENOTCONN, "not connected" }, { FI_ETIMEDOUT, "timed out" },
	{ FI_ECONNREFUSED, "connection refused" }, { FI_ENETUNREACH, "network unreachable" },
	{ FI_EHOSTUNREACH, "host unreachable" }, { FI_EREMOTEIO, "remote input/output error" },
	{ FI_ECANCELED, "canceled" }, { FI_EKEYREJECTED, "key rejected" },
	{ FI_EOTHER, "unspecified error", EIO }, { FI_ETOOSMALL, "buffer too small", ERANGE },
	{ FI_EOPBADSTATE, "not permitted in this state", EINVAL },
	{ FI_EAVAIL, "error available", EIO }, { FI_EBADFLAGS, "flags not supported", EINVAL },
	{ FI_ENOEQ, "missing event queue", EINVAL }, { FI_EDOMAIN, "wrong domain", EXDEV },
	{ FI_ENOCQ, "missing completion queue", EINVAL }, { FI_ECRC, "data damaged", EBADMSG },
	{ FI_ETRUNC, "message truncated", EMSGSIZE }, { FI_ENOKEY, "no such key", ENOKEY },
	{ FI_ENOAV, "missing address vector", EINVAL }, { FI_EOVERRUN, "queue overrun", EOVERFLOW },
	{ FI_ENORX, "receiver not ready", ENOBUFS }, { FI_ENOMR, "no memory region left", ENOSPC },
};

/**
 * fi_strerror() - describe an error
 * @errnum: an errno or enum fi_errno, positive or negative
 *
 * fi_errno(3).
 *
 * Context: Any.
 * Return: the text, a constant.
 */
const char *fi_strerror(int errnum)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kofi_errors); i++)
		if (kofi_errors[i].err == errnum ||
		    kofi_errors[i].err == -errnum)
			return kofi_errors[i].text;
	return "unknown error";
}
EXPORT_SYMBOL_NS_GPL(fi_strerror, KOFI);

/**
 * fi_to_errno() - convert an error to an errno (kernel only)
 * @err: 0, an errno or enum fi_errno, positive or negative
 *
 * Context: Any.
 * Return: the closest errno, with the sign of @err; @err itself if it is an errno.
 */
int fi_to_errno(int err)
{
	unsigned int i;
	int as = EIO;

	if (err > -FI_EOTHER && err < FI_EOTHER)
		return err;
	for (i = 0; i < ARRAY_SIZE(kofi_errors); i++)
		if (kofi_errors[i].err == err || kofi_errors[i].err == -err)
			as = kofi_errors[i].as;
	return err < 0 ? -as : as;
}
EXPORT_SYMBOL_NS_GPL(fi_to_errno, KOFI);

/**
 * kofi_strerror() - describe a provider's error, for fi_cq_strerror() and fi_eq_strerror()
 * @fid: the queue
 * @prov_errno: from the error entry
 * @buf: takes the text, cut to @len; or NULL
 * @len: size of @buf in bytes
 *
 * A number that the provider doesn't know isn't an errno, and the text in @buf contains it. Only
 * the numbers of a provider without texts are errnos.
 *
 * Context: Any.
 * Return: the text without a number, a constant.
 */
const char *kofi_strerror(const struct fid *fid, int prov_errno, char *buf, size_t len)
{
	const struct kofi_provider *provider = fid->node->reg->provider;
	const char *text, *unknown = "unknown provider error";

	text = provider->strerror ? provider->strerror(prov_errno) : fi_strerror(prov_errno);
	if (buf && len && text)
		strscpy(buf, text, len);
	else if (buf && len)
		scnprintf(buf, len, "%s %d", unknown, prov_errno);
	return text ?: unknown;
}
EXPORT_SYMBOL_NS_GPL(kofi_strerror, KOFI);
