/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Two endpoints of fabric efa on the fake device, and the network between them. */
#ifndef KOFI_EFA_RDM_SCENE_H
#define KOFI_EFA_RDM_SCENE_H

#include <linux/prandom.h>
#include <kofi/tagged.h>
#include "efa_rdm_theirs.h"
#include "efa_scene.h"
#include "../../prov/efa/rdm/rdm.h"

/* Try all moments and take all steps. Set by a parameter of the module. */
extern bool rdm_long;

#define RDM_SLID	7
/* With rdm_reading_pair(), messages of this length or more are read by their receiver. */
#define RDM_READ_FROM	20000

/**
 * struct rdm_opts - how a pair differs from the default one; 0 means the default
 * @caps: capabilities of the endpoints; all of them by default
 * @no_order: open the endpoints without FI_ORDER_SAS
 * @unlearned: the device's number of the endpoints' address handle isn't known yet
 * @stranger: don't insert the first endpoint's address at the second
 * @homogeneous: value of FI_OPT_EFA_HOMOGENEOUS_PEERS
 * @selective: bind the completion queues with FI_SELECTIVE_COMPLETION
 * @counted: bind a counter for sends and receives
 * @tx_size: number of sends that can be outstanding
 * @cq_size: number of entries of each completion queue
 * @depth: depth of the device's queues
 * @mtu: MTU of the device
 * @max_map: largest mapping in bytes
 * @linger_ms: longest time for which closing waits until answers are sent
 * @as_msg: value of KOFI_OPT_AS_MSG
 * @watch: value of KOFI_OPT_WATCH of the first endpoint, or NULL
 * @rma: the endpoints have RMA, and counters of it
 * @rdma: with @rma, value of FI_OPT_EFA_USE_DEVICE_RDMA
 * @min_read: value of FI_OPT_EFA_INTER_MIN_READ_MESSAGE_SIZE of the first endpoint
 * @local: the parameter local_transfer
 * @not_local: with @local, the second endpoint doesn't permit it
 * @sleepers: readers of the completion queues can sleep, and no counter is bound
 * @handler: handler of the completion queues, with FI_CQ_SOFTIRQ
 */
struct rdm_opts {
	u64	caps;
	bool	no_order;
	bool	unlearned;
	bool	stranger;
	bool	homogeneous;
	bool	selective;
	bool	counted;
	size_t	tx_size;
	size_t	cq_size;
	u32	depth;
	u32	mtu;
	size_t	max_map;
	u32	linger_ms;
	bool	as_msg;
	struct kofi_watch *watch;
	bool	rma;
	bool	rdma;
	size_t	min_read;
	bool	local;
	bool	not_local;
	bool	sleepers;
	void	(*handler)(struct fid_cq *cq, void *context);
};

/**
 * struct rdm_end - one of the endpoints, with the objects bound to it
 * @av: address vector
 * @cq: completion queue, with tags
 * @cntr: counter of sends and receives; NULL without rdm_opts.counted
 * @remote: counter of the bytes that peers read and write; NULL without rdm_opts.rma
 * @far: counter of the endpoint's own reads and writes; NULL without rdm_opts.rma
 * @ep: the endpoint
 * @qp: queue pair of the endpoint
 * @peer: address of the other endpoint, if it was inserted
 * @name: raw address of the endpoint
 * @packets: number of packets from it and to it that the network has delivered
 */
struct rdm_end {
	struct fid_av		*av;
	struct fid_cq		*cq;
	struct fid_cntr		*cntr;
	struct fid_cntr		*remote;
	struct fid_cntr		*far;
	struct fid_ep		*ep;
	struct efake_qp		*qp;
	fi_addr_t		peer;
	struct fi_efa_addr	name;
	unsigned int		packets;
};

/**
 * struct rdm_net - faults of the network, and counters
 * @rnd: random numbers
 * @reorder: number of packets in 1000 that are delivered out of order
 * @rnr: number of packets in 1000 that find no receive
 * @late: number of packets in 1000 whose sender sees the completion after the receiver has acted
 * @reads: number of reads so far
 * @bad_reads: number of reads, from the next one on, that are refused
 * @bad_read: number of reads in 1000 that are refused
 * @writes: number of writes by the device so far
 * @bad_writes: number of writes, from the next one on, that are refused
 * @lost: type of packets that complete with @status; 0 for none
 * @status: completion status of lost packets
 * @nlost: number of packets of type @lost still to be lost
 * @seen: number of delivered packets by type
 */
struct rdm_net {
	struct rnd_state	rnd;
	unsigned int		reorder;
	unsigned int		rnr;
	unsigned int		late;
	unsigned int		reads;
	unsigned int		bad_reads;
	unsigned int		bad_read;
	unsigned int		writes;
	unsigned int		bad_writes;
	u8			lost;
	u32			status;
	unsigned int		nlost;
	unsigned int		seen[256];
};

/**
 * struct rdm_pair - two endpoints and the network between them
 * @test: the test that owns the pair
 * @fake: the device
 * @info: info that the objects are opened with
 * @fabric: fabric of both endpoints
 * @domain: domain of both endpoints
 * @end: the endpoints
 * @net: the network
 * @theirs: what libfabric would have at both ends. A packet that it wouldn't expect when it arrives
 *	fails the case, until the test itself has completed a packet
 * @out: memory to send from
 * @in: memory to receive into
 */
struct rdm_pair {
	struct kunit		*test;
	struct efake		*fake;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct rdm_end		end[2];
	struct rdm_net		net;
	struct rdm_theirs	theirs;
	u8			*out;
	u8			*in;
};

/* Result of reading a completion queue. */
struct rdm_comp {
	ssize_t				ret;
	struct fi_cq_tagged_entry	entry;
	struct fi_cq_err_entry		error;
	fi_addr_t			src;
};

/* Open two endpoints. Whatever of them is still open is closed at the end of the case. */
struct rdm_pair *rdm_pair_new(struct kunit *test, const struct rdm_opts *opts);
/*
 * Have the endpoint check its peers now, if an operation waits for one. Checks never come by
 * themselves in time: how many a case sees doesn't depend on the machine's speed.
 */
void rdm_check_peers(struct kefa_rdm *rdm);
/* For cases with many pairs: the others leave theirs to the end of the case. */
void rdm_pair_end(struct rdm_pair *pair);
/* Open two endpoints and send one message, so that they have exchanged HANDSHAKEs. */
struct rdm_pair *rdm_ready_pair(struct kunit *test, const struct rdm_opts *opts);
/* Like rdm_ready_pair(), and long messages are read by their receiver. */
struct rdm_pair *rdm_reading_pair(struct kunit *test);
/* Map memory by its pages in reverse order, so that each is a piece of its own; for vunmap(). */
u8 *rdm_scattered(struct kunit *test, u8 *pages, size_t size);
/* Complete everything that an end has posted, without delivering it. */
void rdm_finish_sent(struct rdm_pair *pair, int at, u32 status);
/* Read completions up to an error or the last one. Return: @n plus the number of them. */
unsigned int rdm_read_all(struct rdm_end *end, unsigned int n);
/* Return: the number of ids that operations have used up. */
u32 rdm_uses(const struct kefa_rdm *rdm);
/* Deliver the oldest packet of an end to the other one. Return: whether there was one. */
bool rdm_deliver(struct rdm_pair *pair, int from);
/* Learn the number of the handle for a GID, as if peers with that GID had been heard before. */
void rdm_learn(struct rdm_pair *pair, const u8 *gid, u16 slid);
/* Deliver one packet. Return: whether there was one. */
bool rdm_step(struct rdm_pair *pair);
/* Return: whether an end sends packets again soon. */
bool rdm_waits(struct rdm_end *end);
/* Deliver packets and let the provider handle them until nothing is in flight. */
void rdm_run(struct rdm_pair *pair);
/*
 * Deliver until an end has posted a packet of a type, or a read if @type is 0. Return: its work
 * request, which isn't delivered, or NULL if there was none.
 */
struct efake_wr *rdm_run_until(struct rdm_pair *pair, int from, u8 type);
/* Return: the number of free regions that peers can read messages from. */
u32 rdm_regions(struct rdm_end *end);
/* Check that no resource of either end is in use. */
void rdm_expect_whole(struct kunit *test, struct rdm_pair *pair);
struct rdm_comp rdm_read(struct rdm_end *end);
void rdm_expect(struct kunit *test, struct rdm_end *end, long ctx, size_t len);
void rdm_expect_error(struct kunit *test, struct rdm_end *end, long ctx, int err);
void rdm_expect_nothing(struct kunit *test, struct rdm_end *end);
/* Have the second end receive these bytes as a packet of the first. */
void rdm_inject(struct rdm_pair *pair, const void *buf, size_t len);

static inline struct kefa_rdm *rdm_of(struct rdm_end *end)
{
	return to_kefa_rdm(to_kefa_ep(end->ep));
}

static inline ssize_t rdm_tsend(struct rdm_pair *pair, size_t len, u64 tag, long ctx)
{
	return fi_tsend(pair->end[0].ep, pair->out, len, NULL, pair->end[0].peer, tag,
			(void *)ctx);
}

static inline ssize_t rdm_trecv(struct rdm_pair *pair, size_t len, u64 tag, long ctx)
{
	return fi_trecv(pair->end[1].ep, pair->in, len, NULL, FI_ADDR_UNSPEC, tag, 0,
			(void *)ctx);
}

#endif /* KOFI_EFA_RDM_SCENE_H */
