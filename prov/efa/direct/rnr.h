/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Resending to a receiver that was not ready: rnr.c. */
#ifndef KEFA_RNR_H
#define KEFA_RNR_H

#include <linux/types.h>
#include "../hw.h"

struct kefa_av_key;
struct kefa_ep;
struct kefa_op;
struct work_struct;

/* Delay before resending to a receiver that is not ready. */
#define KEFA_RNR_DELAY_MS	10

/**
 * struct kefa_resend - a work request that may have to be resent
 * @wr: the work request, with inline data in its own memory
 * @end: jiffies after which the operation fails; 0 until a receiver was not ready
 * @next: slot of the next waiting work request, plus 1; 0 for none
 * @counted: counted in kefa_direct.nrnr
 */
struct kefa_resend {
	struct kefa_wr	wr;
	unsigned long	end;
	u32		next;
	bool		counted;
};

int kefa_rnr_init(struct kefa_ep *ep);
void kefa_rnr_fini(struct kefa_ep *ep);
struct kefa_wr *kefa_rnr_wr(struct kefa_ep *ep, const struct kefa_op *op);
bool kefa_rnr_later(struct kefa_ep *ep, struct kefa_op *op);
void kefa_rnr_ended(struct kefa_ep *ep, const struct kefa_op *op);
void kefa_rnr_give_up(struct kefa_ep *ep, const struct kefa_av_key *key);
void kefa_rnr_work(struct work_struct *work);

#endif /* KEFA_RNR_H */
