/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Limits of sessions, and reasons for their end: see <kofi/session.h>. This header needs nothing of
 * the kernel, so that the messages can be parsed in user space for fuzzing.
 */
#ifndef KOFI_SESSION_TYPES_H
#define KOFI_SESSION_TYPES_H

#define KCM_SERVICE	32	/* bytes of the name of a service, with its NUL */
#define KCM_NAME	64	/* bytes of other names, with their NUL */
#define KCM_HOST	16	/* bytes of a host's permanent id */
#define KCM_ADDRS	16	/* most addresses of a side */
#define KCM_PRIV_MAX	1024	/* most bytes of private data */
#define KCM_NOTE_MAX	1024	/* most bytes of a note */
#define KCM_BYE_MAX	64	/* most bytes of data with a BYE */
#define KCM_SIP_KEY	16	/* bytes of kcm_mac_key() */

/**
 * enum kcm_reason - reason in a BYE
 * @KCM_BYE_DONE: the ULP needs the session no longer
 * @KCM_BYE_STOPPED: the service is being stopped
 * @KCM_BYE_REMOVED: the device or the network namespace is gone
 * @KCM_BYE_REPLACED: the client has begun another session
 * @KCM_BYE_PROTOCOL: a message was wrong
 * @KCM_BYE_FAILED: something failed
 * @KCM_BYES: number of these
 */
enum kcm_reason {
	KCM_BYE_DONE,
	KCM_BYE_STOPPED,
	KCM_BYE_REMOVED,
	KCM_BYE_REPLACED,
	KCM_BYE_PROTOCOL,
	KCM_BYE_FAILED,
	KCM_BYES,
};

#endif /* KOFI_SESSION_TYPES_H */
