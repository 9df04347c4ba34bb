/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Parameters of the module that concern endpoints of fabric efa: knobs.c. */
#ifndef KEFA_RDM_KNOBS_H
#define KEFA_RDM_KNOBS_H

#include <linux/types.h>

/*
 * The members have the parameters' names, which knobs.c describes. They can change at any time;
 * an endpoint reads them once, when it is opened or enabled.
 */
struct kefa_knobs {
	unsigned int rx_budget;
	unsigned int inter_max_medium_message_size;
	unsigned int tx_min_credits;
	unsigned int inter_min_read_message_size;
	unsigned int inter_min_read_write_size;
	unsigned int inter_read_segment_size;
	unsigned int runt_size;
	unsigned int read_regions;
	unsigned int timeout_interval;
	unsigned int max_timeout;
	unsigned int implicit_av_size;
	unsigned int handshake_timeout;
	unsigned int rma_timeout;
	bool local_transfer;
};

extern struct kefa_knobs kefa_knobs;

#endif /* KEFA_RDM_KNOBS_H */
