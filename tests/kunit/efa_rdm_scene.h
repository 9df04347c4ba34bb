/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Two endpoints of fabric efa on the fake device, and the network between them. */
#ifndef KOFI_EFA_RDM_SCENE_H
#define KOFI_EFA_RDM_SCENE_H

#include <linux/prandom.h>
#include <kofi/tagged.h>
#include "efa_scene.h"
#include "../../prov/efa/rdm/rdm.h"

#define RDM_SLID	7
/* Messages of that length and more are read, with rdm_reading_pair(). */
#define RDM_READ_FROM	20000

/**
 * struct rdm_opts - what a test wants to be different
 * @caps: of the endpoints; 0 for all
 * @no_order: without FI_ORDER_SAS
 * @stranger: the second endpoint isn't told of the first
 * @homogeneous: FI_OPT_EFA_HOMOGENEOUS_PEERS
 * @selective: FI_SELECTIVE_COMPLETION
 * @counted: with a counter of messages, both ways
 * @tx_size: sends that can be outstanding
 * @cq_size: entries of each completion queue
 * @depth: of the device's queues
 * @mtu: and its MTU
 */
struct rdm_opts {
	u64	caps;
	bool	no_order;
	bool	stranger;
	bool	homogeneous;
	bool	selective;
	bool	counted;
	size_t	tx_size;
	size_t	cq_size;
	u32	depth;
	u32	mtu;
};

/**
 * struct rdm_end - one of the endpoints
 * @av: its address vector
 * @cq: its completions, with tags
 * @cntr: and how many there were, if that is counted
 * @ep: the endpoint
 * @qp: its queue pair
 * @peer: the other one's address, if it was told
 * @name: its own address
 */
struct rdm_end {
	struct fid_av		*av;
	struct fid_cq		*cq;
	struct fid_cntr		*cntr;
	struct fid_ep		*ep;
	struct efake_qp		*qp;
	fi_addr_t		peer;
	struct fi_efa_addr	name;
};

/**
 * struct rdm_net - what the network does to packets
 * @rnd: decides
 * @reorder: of 1000 packets so many don't go in their turn
 * @rnr: so many find no receive
 * @late: so many are delivered, and complete at some other time
 * @reads: reads that were done
 * @bad_reads: of the next ones so many are refused
 * @bad_read: of 1000 so many are
 * @lost: packets of this type complete with @status; 0 for none
 * @status: that
 * @nlost: how many
 * @seen: packets that were delivered, by type
 */
struct rdm_net {
	struct rnd_state	rnd;
	unsigned int		reorder;
	unsigned int		rnr;
	unsigned int		late;
	unsigned int		reads;
	unsigned int		bad_reads;
	unsigned int		bad_read;
	u8			lost;
	u32			status;
	unsigned int		nlost;
	unsigned int		seen[256];
};

/**
 * struct rdm_pair - both of them
 * @fake: the device
 * @info: what they were opened from
 * @fabric: their fabric
 * @domain: their domain
 * @end: the endpoints
 * @net: the network
 * @out: memory to send from
 * @in: memory to receive into
 */
struct rdm_pair {
	struct efake		*fake;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct rdm_end		end[2];
	struct rdm_net		net;
	u8			*out;
	u8			*in;
};

/* What was read from a completion queue. */
struct rdm_comp {
	ssize_t				ret;
	struct fi_cq_tagged_entry	entry;
	struct fi_cq_err_entry		error;
	fi_addr_t			src;
};

/* The end of the case closes what is open then. */
struct rdm_pair *rdm_pair_new(struct kunit *test, const struct rdm_opts *opts);
/* With both of them ready for each other; one message has gone. */
struct rdm_pair *rdm_ready_pair(struct kunit *test, const struct rdm_opts *opts);
/* And long messages are read. */
struct rdm_pair *rdm_reading_pair(struct kunit *test);
/* Everything that an end has sent is done, and hasn't arrived. */
void rdm_finish_sent(struct rdm_pair *pair, int at, u32 status);
/* Read completions. Return: @n, and how many there were before an error, or the last. */
unsigned int rdm_read_all(struct rdm_end *end, unsigned int n);
/* How often operations were used that others may know of. */
u32 rdm_uses(const struct kefa_rdm *rdm);
/* Deliver one packet. Return: whether there was one. */
bool rdm_step(struct rdm_pair *pair);
/* Deliver until nothing is under way any more, and let the provider deal with it. */
void rdm_run(struct rdm_pair *pair);
/*
 * Deliver, but for what is a packet of that type from that end, or a read if that is 0. Return: it,
 * or NULL.
 */
struct efake_wr *rdm_run_until(struct rdm_pair *pair, int from, u8 type);
/* Regions for reading that aren't in use. */
u32 rdm_regions(struct rdm_end *end);
/* Nothing of either end is in use. */
void rdm_expect_whole(struct kunit *test, struct rdm_pair *pair);
struct rdm_comp rdm_read(struct rdm_end *end);
void rdm_expect(struct kunit *test, struct rdm_end *end, long ctx, size_t len);
void rdm_expect_error(struct kunit *test, struct rdm_end *end, long ctx, int err);
void rdm_expect_nothing(struct kunit *test, struct rdm_end *end);
/* The second end sees a packet of the first's, whatever it says. */
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
