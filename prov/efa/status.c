// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion statuses of the device, whose numbers are ABI. */
#include "kefa.h"

/**
 * struct kefa_status - a completion status
 * @err: positive errno of an operation with this status
 * @text: description of the status
 */
struct kefa_status {
	int		err;
	const char	*text;
};

/* Documentation/efa.rst has the same table, with advice. */
static const struct kefa_status kefa_statuses[] = {
	[0]  = { 0, "Success" },
	[1]  = { ECANCELED, "Flushed during queue pair destroy" },
	[2]  = { EIO, "Internal queue pair error" },
	[3]  = { EOPNOTSUPP, "Unsupported operation" },
	[4]  = { EINVAL, "Invalid address handle" },
	[5]  = { EINVAL, "Local key isn't registered or doesn't match" },
	[6]  = { EMSGSIZE, "Message too long for the local queue pair" },
	[7]  = { EACCES, "Remote key isn't registered or doesn't allow it" },
	[8]  = { ECONNABORTED, "Remote connection aborted" },
	[9]  = { ECONNRESET, "Bad destination queue pair number or key" },
	[10] = { EAGAIN, "Receiver not ready" },
	[11] = { EMSGSIZE, "Receiver's buffer is too short" },
	[12] = { EIO, "Unexpected status from the responder" },
	[13] = { ETIMEDOUT, "Unresponsive remote" },
	[14] = { ENOTCONN, "Peer has no address handle for this device" },
	[15] = { EHOSTUNREACH, "Peer is unreachable" },
	[18] = { EPROTONOSUPPORT, "Feature mismatch with the peer" },
};

/**
 * kefa_status_errno() - convert a status to an errno
 * @status: raw status of the device
 *
 * Context: Any.
 * Return: positive errno, or 0 for success.
 */
int kefa_status_errno(u32 status)
{
	if (!status)
		return 0;
	return status < ARRAY_SIZE(kefa_statuses) && kefa_statuses[status].text ?
	       kefa_statuses[status].err : EIO;
}

/**
 * kefa_status_text() - describe a status
 * @status: fi_cq_err_entry.prov_errno
 *
 * Context: Any.
 * Return: the text, or NULL for an unknown number.
 */
const char *kefa_status_text(int status)
{
	return status >= 0 && status < ARRAY_SIZE(kefa_statuses) ?
	       kefa_statuses[status].text : NULL;
}
