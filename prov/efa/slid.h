/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The numbers of address handles in completions: slid.c. */
#ifndef KEFA_SLID_H
#define KEFA_SLID_H

#include <linux/types.h>

struct kefa_ah;
struct kefa_domain;

/* No address handle number: the device reports this while it doesn't know the number. */
#define KEFA_NO_SLID		0xffff

enum {
	/* Number of hash lists of a domain's numbers, as a power of two. */
	KEFA_SLID_BITS		= 8,
	/* Time after which completions surely have the number of a new address handle. */
	KEFA_SLID_LAG_MS	= 5000,
};

void kefa_slids_init(struct kefa_domain *dom);
bool kefa_slid_owner(struct kefa_domain *dom, u16 slid, u8 *gid);
bool kefa_slid_fits(struct kefa_domain *dom, u16 slid, const u8 *gid);
bool kefa_slid_learn(struct kefa_ah *ah, u16 slid);
bool kefa_slid_sure(struct kefa_ah *ah, u16 slid, bool confirms);
void kefa_slid_forget(struct kefa_ah *ah);

#endif /* KEFA_SLID_H */
