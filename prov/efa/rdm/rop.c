// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations: their slots, ids and states. An id is sent to peers, and their packets return it, but
 * they can't be trusted. It consists of the slot's number and the number of its uses.
 */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "rop.h"

#define S(state)	BIT(KEFA_ROP_##state)

/* States of an operation before it takes a message that has arrived. */
#define ARRIVED		(S(FREE) | S(LISTED))

const u32 kefa_rop_from[KEFA_ROP_STATES] = {
	[KEFA_ROP_FREE]		= S(WAIT) | S(POSTED) | S(ACK) | S(INVAL) | S(LISTED) |
				  S(DATA_RX) | S(READING) | S(OWES) | S(UNTOLD) | S(SINK) |
				  S(DYING),
	[KEFA_ROP_WAIT]		= S(FREE) | S(REG) | S(INVAL),
	[KEFA_ROP_REG]		= S(FREE) | S(WAIT),
	[KEFA_ROP_RDMA]		= S(FREE) | S(WAIT),
	[KEFA_ROP_POSTED]	= S(FREE) | S(WAIT) | S(RDMA) | S(DATA_TX),
	[KEFA_ROP_GRANT]	= S(FREE) | S(WAIT) | S(INVAL) | S(DATA_TX),
	[KEFA_ROP_DATA_TX]	= S(FREE) | S(WAIT) | S(GRANT),
	[KEFA_ROP_ACK]		= S(FREE) | S(WAIT) | S(REG) | S(DATA_TX),
	[KEFA_ROP_INVAL]	= S(ACK),
	[KEFA_ROP_LISTED]	= S(FREE),
	[KEFA_ROP_DATA_RX]	= ARRIVED | S(WAIT) | S(ACK) | S(NACKED),
	[KEFA_ROP_READING]	= ARRIVED | S(DATA_RX),
	[KEFA_ROP_NACKED]	= S(READING),
	[KEFA_ROP_OWES]		= S(FREE) | S(LISTED) | S(DATA_RX) | S(READING) |
				  S(NACKED) | S(SINK),
	[KEFA_ROP_UNTOLD]	= S(DATA_RX) | S(READING),
	[KEFA_ROP_SINK]		= S(FREE) | S(LISTED) | S(DATA_RX) | S(READING) | S(NACKED),
	[KEFA_ROP_DYING]	= S(WAIT) | S(REG) | S(RDMA) | S(POSTED) | S(GRANT) | S(DATA_TX) |
				  S(ACK) | S(INVAL) | S(DATA_RX) | S(READING) | S(NACKED) |
				  S(OWES) | S(SINK),
};

static const char * const kefa_rop_state_texts[KEFA_ROP_STATES] = {
	[KEFA_ROP_FREE]		= "free",
	[KEFA_ROP_WAIT]		= "wait",
	[KEFA_ROP_REG]		= "reg",
	[KEFA_ROP_RDMA]		= "rdma",
	[KEFA_ROP_POSTED]	= "posted",
	[KEFA_ROP_GRANT]	= "grant",
	[KEFA_ROP_DATA_TX]	= "data_tx",
	[KEFA_ROP_ACK]		= "ack",
	[KEFA_ROP_INVAL]	= "inval",
	[KEFA_ROP_LISTED]	= "listed",
	[KEFA_ROP_DATA_RX]	= "data_rx",
	[KEFA_ROP_READING]	= "reading",
	[KEFA_ROP_NACKED]	= "nacked",
	[KEFA_ROP_OWES]		= "owes",
	[KEFA_ROP_UNTOLD]	= "untold",
	[KEFA_ROP_SINK]		= "sink",
	[KEFA_ROP_DYING]	= "dying",
};

/**
 * kefa_rop_state_text() - get the name of a state, for debugfs
 * @state: the state
 *
 * Context: Any.
 * Return: the name, a single word.
 */
const char *kefa_rop_state_text(enum kefa_rop_state state)
{
	return kefa_rop_state_texts[state];
}

/**
 * kefa_rops_init() - allocate the operations of an endpoint
 * @rops: operations of the endpoint
 * @lock: lock of the endpoint
 * @size: number of operations, at most 65536
 *
 * Context: Process context; sleeps.
 * Return: 0, or -ENOMEM.
 */
int kefa_rops_init(struct kefa_rops *rops, spinlock_t *lock, u32 size)
{
	u32 i;

	rops->lock = lock;
	rops->size = size;
	rops->used = 0;
	rops->free = NULL;
	rops->free_tail = &rops->free;
	rops->ops = kvcalloc(size, sizeof(*rops->ops), GFP_KERNEL);
	if (!rops->ops)
		return -ENOMEM;
	for (i = 0; i < size; i++) {
		rops->ops[i].gen = 1;
		*rops->free_tail = &rops->ops[i];
		rops->free_tail = &rops->ops[i].next;
	}
	return 0;
}

/**
 * kefa_rops_fini() - undo kefa_rops_init()
 * @rops: operations of the endpoint, all free
 *
 * Context: Process context.
 */
void kefa_rops_fini(struct kefa_rops *rops)
{
	WARN_ON_ONCE(rops->used);
	kvfree(rops->ops);
	rops->ops = NULL;
}

/**
 * kefa_rop_take() - begin an operation
 * @rops: operations of the endpoint
 * @state: first state of the operation
 *
 * Context: Under the endpoint's lock.
 * Return: the operation, in no list, with all fields before @next 0 except @gen and @state; or NULL
 * if none is free.
 */
struct kefa_rop *kefa_rop_take(struct kefa_rops *rops, enum kefa_rop_state state)
{
	struct kefa_rop *rop = kefa_rop_get(rops);
	u16 gen;

	if (!rop)
		return NULL;
	gen = rop->gen;
	memset(rop, 0, offsetof(struct kefa_rop, recv));
	rop->gen = gen;
	/* A receive's @recv, which shares memory with the list entries, is set by the caller. */
	if (state != KEFA_ROP_LISTED)
		kefa_rop_unlist(rop);
	kefa_rop_set_state(rops, rop, state);
	return rop;
}

/**
 * kefa_rop_find() - find an operation by an id that a peer has sent
 * @rops: operations of the endpoint
 * @id: the id
 *
 * The caller checks that the operation is one with that peer, and waits for such a packet. Posted
 * receives aren't found, because no peer knows their ids.
 *
 * Context: Under the endpoint's lock.
 * Return: the operation, or NULL if none has the id now.
 */
struct kefa_rop *kefa_rop_find(const struct kefa_rops *rops, u32 id)
{
	const u32 slot = id & 0xffff;
	struct kefa_rop *rop;

	lockdep_assert_held(rops->lock);
	if (slot >= rops->size)
		return NULL;
	rop = &rops->ops[slot];
	if (rop->gen != id >> 16 || rop->state == KEFA_ROP_FREE || rop->state == KEFA_ROP_LISTED)
		return NULL;
	return rop;
}

/**
 * kefa_rop_end() - free an operation if it has ended
 * @rops: operations of the endpoint
 * @rop: the operation; if it has ended, it must be in no list or table
 *
 * An operation has ended when its protocol and all its work requests have ended, it owes no
 * answers, and its completion was written.
 *
 * Context: Under the endpoint's lock.
 * Return: whether the operation was freed.
 */
bool kefa_rop_end(struct kefa_rops *rops, struct kefa_rop *rop)
{
	const u8 over = KEFA_ROP_OVER | KEFA_ROP_TOLD;

	lockdep_assert_held(rops->lock);
	if ((rop->flags & over) != over || rop->wrs || rop->owes)
		return false;
	kefa_rop_set_state(rops, rop, KEFA_ROP_FREE);
	rop->gen++;
	rop->next = NULL;
	*rops->free_tail = rop;
	rops->free_tail = &rop->next;
	rops->used--;
	return true;
}
