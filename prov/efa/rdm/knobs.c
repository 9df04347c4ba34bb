// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Parameters of the module that concern endpoints of fabric efa. Documentation/man/efa-knobs.txt
 * says what corresponds to each variable and option of fi_efa(7).
 */
#include <linux/moduleparam.h>
#include <linux/sizes.h>
#include "knobs.h"

/* Tests have another default, as most are about packets between endpoints in one kernel. */
#ifndef KEFA_LOCAL_TRANSFER
#define KEFA_LOCAL_TRANSFER	true
#endif

struct kefa_knobs kefa_knobs = {
	.rx_budget			= SZ_4M,
	.inter_max_medium_message_size	= SZ_64K,
	.tx_min_credits			= 32,
	.inter_min_read_message_size	= SZ_1M,
	.inter_min_read_write_size	= SZ_64K,
	.inter_read_segment_size	= SZ_1G,
	.read_regions			= 8,
	.max_timeout			= 1000000,
	.implicit_av_size		= 1024,
	.handshake_timeout		= 60,
	.rma_timeout			= 30,
	.local_transfer			= KEFA_LOCAL_TRANSFER,
};

module_param_named(rx_budget, kefa_knobs.rx_budget, uint, 0644);
MODULE_PARM_DESC(rx_budget, "Bytes of memory that unexpected messages of an endpoint of fabric efa may use");
module_param_named(inter_max_medium_message_size, kefa_knobs.inter_max_medium_message_size, uint,
		   0644);
MODULE_PARM_DESC(inter_max_medium_message_size, "Longest message that fabric efa sends without waiting for the receiver, in bytes");
module_param_named(tx_min_credits, kefa_knobs.tx_min_credits, uint, 0644);
MODULE_PARM_DESC(tx_min_credits, "Number of packets of a long message that a receiver of fabric efa grants at a time");
module_param_named(inter_min_read_message_size, kefa_knobs.inter_min_read_message_size, uint, 0644);
MODULE_PARM_DESC(inter_min_read_message_size, "Shortest message of fabric efa that its receiver reads by RDMA, in bytes");
module_param_named(inter_min_read_write_size, kefa_knobs.inter_min_read_write_size, uint, 0644);
MODULE_PARM_DESC(inter_min_read_write_size, "Shortest write of fabric efa that its target reads by RDMA, if the devices can read and not write, in bytes");
module_param_named(inter_read_segment_size, kefa_knobs.inter_read_segment_size, uint, 0644);
MODULE_PARM_DESC(inter_read_segment_size, "Maximum number of bytes of fabric efa that one RDMA read or write transfers");
module_param_named(runt_size, kefa_knobs.runt_size, uint, 0644);
MODULE_PARM_DESC(runt_size, "Bytes of a message of fabric efa that are sent before the receiver reads the rest by RDMA");
module_param_named(read_regions, kefa_knobs.read_regions, uint, 0644);
MODULE_PARM_DESC(read_regions, "Number of messages of an endpoint of fabric efa that peers can read at a time");
module_param_named(timeout_interval, kefa_knobs.timeout_interval, uint, 0644);
MODULE_PARM_DESC(timeout_interval, "First delay before packets of fabric efa to a peer without a receive are sent again, in microseconds; 0 for 40 to 120 at random");
module_param_named(max_timeout, kefa_knobs.max_timeout, uint, 0644);
MODULE_PARM_DESC(max_timeout, "Longest delay before packets of fabric efa to a peer without a receive are sent again, in microseconds");
module_param_named(implicit_av_size, kefa_knobs.implicit_av_size, uint, 0644);
MODULE_PARM_DESC(implicit_av_size, "Maximum number of peers of an endpoint of fabric efa that are in no address vector");
module_param_named(handshake_timeout, kefa_knobs.handshake_timeout, uint, 0644);
MODULE_PARM_DESC(handshake_timeout, "Seconds after which a peer of fabric efa that receives packets without sending its HANDSHAKE is dead, up to 120; 0 for no limit");
module_param_named(rma_timeout, kefa_knobs.rma_timeout, uint, 0644);
MODULE_PARM_DESC(rma_timeout, "Seconds after which a read or write by packets of fabric efa fails that its peer doesn't answer, up to 120; 0 for no limit");
module_param_named(local_transfer, kefa_knobs.local_transfer, bool, 0644);
MODULE_PARM_DESC(local_transfer, "Endpoints of fabric efa in one kernel communicate without the device (default 1)");
