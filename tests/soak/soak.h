/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Traffic from many threads with every byte checked, on any provider, while
 * devices come and go. Some threads share a station, that is two endpoints with
 * their queues, so that posting and reading are concurrent too.
 */
#ifndef SOAK_H
#define SOAK_H

#include <linux/completion.h>
#include <linux/rwsem.h>
#include <kofi/cm.h>
#include <kofi/endpoint.h>
#include <kofi/eq.h>
#include <kofi/rma.h>
#include <kofi/tagged.h>

enum {
	SOAK_SHARE_MAX	= 32,
	SOAK_NAME_MAX	= 64,
};

/**
 * struct soak_op - an operation that is outstanding; its address is its context
 * @done: it has completed
 * @err: positive errno
 * @len: bytes that were received
 * @tag: of what was received
 * @src_addr: who sent it
 */
struct soak_op {
	struct completion	done;
	int			err;
	size_t			len;
	u64			tag;
	fi_addr_t		src_addr;
};

/**
 * struct soak_end - an endpoint and what belongs to it
 * @info: what it was opened from
 * @fabric: its fabric
 * @domain: its domain
 * @eq: hears of the device's removal
 * @av: has the other end's address
 * @cq: all that completes
 * @ep: the endpoint
 * @mr: @memory, for the other end; NULL in a fabric without RMA
 * @memory: a buffer for each thread
 * @name: its address
 * @name_len: length of @name
 * @peer: the other end
 * @removed: the event queue said that the device went away
 */
struct soak_end {
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct fid_eq		*eq;
	struct fid_av		*av;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
	struct fid_mr		*mr;
	u8			*memory;
	u8			name[SOAK_NAME_MAX];
	size_t			name_len;
	fi_addr_t		peer;
	bool			removed;
};

/**
 * struct soak_station - two ends, and the threads that share them
 * @sem: held for reading by who uses the ends, for writing to open and close
 * @handler: completions are read by handlers, not by the threads
 * @generation: how often it was opened; @sem
 * @open: the ends are there; @sem
 * @end: the two
 * @mr: of the second end: a region for each thread, for fi_mr_post_reg()
 */
struct soak_station {
	struct rw_semaphore	sem;	/* generation, open, end, mr */
	bool			handler;
	unsigned int		generation;
	bool			open;
	struct soak_end		end[2];
	struct fid_mr		*mr[SOAK_SHARE_MAX];
};

/* soak.c */

extern char *soak_provider;
extern char *soak_fabric;
extern unsigned int soak_max_len;
extern bool soak_rma;
extern unsigned int soak_share;

/* station.c */

int soak_station_init(struct soak_station *st, bool handler);
int soak_station_fini(struct soak_station *st);
int soak_station_open(struct soak_station *st);
int soak_station_close(struct soak_station *st);
int soak_wait(struct soak_station *st, struct soak_op *op,
	      struct fid_ep *taker);
void soak_pass(struct soak_station *st);

#endif /* SOAK_H */
