/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Error codes. Calls return 0 or a negative errno, as everywhere in the kernel;
 * libfabric's names are aliases. Errors without an errno are numbered from 256, with
 * libfabric's values.
 */
#ifndef KOFI_ERRNO_H
#define KOFI_ERRNO_H

#include <linux/errno.h>

#define FI_SUCCESS		0
#define FI_EPERM		EPERM
#define FI_ENOENT		ENOENT
#define FI_EINTR		EINTR
#define FI_EIO			EIO
#define FI_E2BIG		E2BIG
#define FI_EAGAIN		EAGAIN
#define FI_ENOMEM		ENOMEM
#define FI_EACCES		EACCES
#define FI_EFAULT		EFAULT
#define FI_EBUSY		EBUSY
#define FI_ENODEV		ENODEV
#define FI_EINVAL		EINVAL
#define FI_ENOSPC		ENOSPC
#define FI_ENOSYS		ENOSYS
#define FI_ENODATA		ENODATA
#define FI_ENOMSG		ENOMSG
#define FI_EPROTO		EPROTO
#define FI_EOVERFLOW		EOVERFLOW
#define FI_EMSGSIZE		EMSGSIZE
#define FI_ENOPROTOOPT		ENOPROTOOPT
#define FI_EOPNOTSUPP		EOPNOTSUPP
#define FI_EADDRNOTAVAIL	EADDRNOTAVAIL
#define FI_ENETDOWN		ENETDOWN
#define FI_ENETUNREACH		ENETUNREACH
#define FI_ECONNABORTED		ECONNABORTED
#define FI_ECONNRESET		ECONNRESET
#define FI_ENOBUFS		ENOBUFS
#define FI_ENOTCONN		ENOTCONN
#define FI_ETIMEDOUT		ETIMEDOUT
#define FI_ECONNREFUSED		ECONNREFUSED
#define FI_EHOSTUNREACH		EHOSTUNREACH
#define FI_EREMOTEIO		EREMOTEIO
#define FI_ECANCELED		ECANCELED
#define FI_EKEYREJECTED		EKEYREJECTED

/**
 * enum fi_errno - errors of fabrics that no errno describes
 * @FI_EOTHER: unspecified error
 * @FI_ETOOSMALL: the caller's buffer is too small; calls with a length argument
 *	store the needed length there
 * @FI_EOPBADSTATE: not permitted in the object's state, such as a post before
 *	fi_enable()
 * @FI_EAVAIL: an error entry is at the head of the queue, for fi_cq_readerr() or
 *	fi_eq_readerr(), or a counter's error value changed
 * @FI_EBADFLAGS: flags that are unknown to the call or not supported by the object
 * @FI_ENOEQ: an event queue is missing
 * @FI_EDOMAIN: the objects belong to different domains or fabrics
 * @FI_ENOCQ: a completion queue is missing
 * @FI_ECRC: data arrived damaged
 * @FI_ETRUNC: a message was longer than its receive buffer
 * @FI_ENOKEY: no such memory region key
 * @FI_ENOAV: an address vector is missing
 * @FI_EOVERRUN: events were lost because a queue was full
 * @FI_ENORX: the receiver had no buffer posted
 * @FI_ENOMR: no memory region is left
 *
 * The meanings are those of fi_errno(3). These values aren't errnos and must not reach
 * user space: see fi_to_errno().
 */
enum fi_errno {
	FI_EOTHER	= 256,
	FI_ETOOSMALL	= 257,
	FI_EOPBADSTATE	= 258,
	FI_EAVAIL	= 259,
	FI_EBADFLAGS	= 260,
	FI_ENOEQ	= 261,
	FI_EDOMAIN	= 262,
	FI_ENOCQ	= 263,
	FI_ECRC		= 264,
	FI_ETRUNC	= 265,
	FI_ENOKEY	= 266,
	FI_ENOAV	= 267,
	FI_EOVERRUN	= 268,
	FI_ENORX	= 269,
	FI_ENOMR	= 270,
};

/* Reference: page api/errno of kOFI's documentation; libfabric's fi_errno(3) */
const char *fi_strerror(int errnum);
int fi_to_errno(int err);

#endif /* KOFI_ERRNO_H */
