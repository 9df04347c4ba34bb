/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Counters of an endpoint of fabric efa: show.c. */
#ifndef KEFA_RDM_STATS_H
#define KEFA_RDM_STATS_H

#include "packet.h"

/**
 * enum kefa_drop - reason for dropping a valid packet
 * @KEFA_DROP_STRANGER: the sender is unknown, and the packet has no raw address
 * @KEFA_DROP_NO_AH: no address handle could be created for the peer
 * @KEFA_DROP_DEAD: the peer is dead
 * @KEFA_DROP_DUP: the message has arrived already
 * @KEFA_DROP_FAR: the message is too far ahead
 * @KEFA_DROP_STATE: no operation has the id, or the operation doesn't wait for such a packet
 * @KEFA_DROP_TYPE: the type isn't supported
 * @KEFA_DROP_LENGTH: the packet doesn't fit the message it claims to belong to
 * @KEFA_DROP_FULL: there is no memory for it, and the peer is in no address vector
 * @KEFA_DROP_GONE: the peer was removed while the packet was kept
 * @KEFA_DROP_LIAR: the packet can't be from the sender that it names
 * @KEFA_DROP_KEY: no region has the key that a read or write names, or not any more
 * @KEFA_DROP_ACCESS: the region isn't registered for that
 * @KEFA_DROP_RANGE: the memory isn't in the region
 * @KEFA_DROPS: number of reasons
 */
enum kefa_drop {
	KEFA_DROP_STRANGER,
	KEFA_DROP_NO_AH,
	KEFA_DROP_DEAD,
	KEFA_DROP_DUP,
	KEFA_DROP_FAR,
	KEFA_DROP_STATE,
	KEFA_DROP_TYPE,
	KEFA_DROP_LENGTH,
	KEFA_DROP_FULL,
	KEFA_DROP_GONE,
	KEFA_DROP_LIAR,
	KEFA_DROP_KEY,
	KEFA_DROP_ACCESS,
	KEFA_DROP_RANGE,
	KEFA_DROPS
};

/**
 * struct kefa_rdm_stats - counters of an endpoint; protected by kefa_ep.lock
 * @sent: packets passed to the device for the first time, by type
 * @received: valid packets, by type
 * @bad: invalid packets, by enum kefa_bad
 * @dropped: valid packets that were dropped, by enum kefa_drop
 * @copied: bytes that were copied for sending
 * @unexpected: messages that matched no receive
 * @early: packets that arrived before their turn
 * @rnr: packets that found the peer without a receive
 * @deaths: peers that died
 * @cut: peers that were declared dead because they used up the memory budget
 * @stalled: peers that were declared dead because a message of theirs made no progress
 * @full: times that the budget was used up
 * @shut: times that no receive was posted
 * @starved: messages that had to wait for room in a completion queue
 * @asked: packets that asked for a sign of life
 * @reads: reads that were posted
 * @writes: writes by the device that were posted
 * @unread: messages that couldn't be read
 * @sources: messages that were registered for reading
 * @waited: reads and writes by peers that had to wait for a slot, an operation, or room in a
 *	completion queue
 * @target_cut: reads and writes by peers that ended because they made no progress and others waited
 * @timed_out: reads and writes that ended because the peer didn't answer
 * @unsupported: packets that weren't sent because the peer doesn't support their type
 * @local: packets and whole messages to peers in the same kernel
 */
struct kefa_rdm_stats {
	u64	sent[KEFA_PKT_TYPES];
	u64	received[KEFA_PKT_TYPES];
	u64	bad[KEFA_BAD_REASONS];
	u64	dropped[KEFA_DROPS];
	u64	copied;
	u64	unexpected;
	u64	early;
	u64	rnr;
	u64	deaths;
	u64	cut;
	u64	stalled;
	u64	full;
	u64	shut;
	u64	starved;
	u64	asked;
	u64	reads;
	u64	writes;
	u64	unread;
	u64	sources;
	u64	waited;
	u64	target_cut;
	u64	timed_out;
	u64	unsupported;
	u64	local;
};

#endif /* KEFA_RDM_STATS_H */
