/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Traffic from many threads with every byte checked, on any provider, while devices are removed
 * and come back. Some threads share a station, which is two endpoints with their queues, so
 * that posts and reads are concurrent, too.
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
 * struct soak_op - an outstanding operation, whose address is its context
 * @done: the operation has completed
 * @err: positive errno, or 0
 * @len: number of bytes received
 * @tag: tag of the received message
 * @src_addr: sender of the received message
 */
struct soak_op {
	struct completion	done;
	int			err;
	size_t			len;
	u64			tag;
	fi_addr_t		src_addr;
};

/**
 * struct soak_end - an endpoint with its objects
 * @info: fi_info that the objects were opened with
 * @fabric: fabric of the endpoint
 * @domain: domain of the endpoint
 * @eq: event queue, for removal of the device
 * @av: address vector with the other end's address
 * @cq: completion queue of all operations
 * @ep: the endpoint
 * @mr: region of @memory, for the other end; NULL in a fabric without RMA
 * @memory: a buffer for each thread
 * @name: address of the endpoint
 * @name_len: length of @name
 * @peer: address of the other end in @av
 * @removed: the event queue reported removal of the device
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
 * @sem: held for reading to use the ends, for writing to open and close them
 * @handler: handlers read completions, not the threads
 * @generation: number of times that the station was opened; under @sem
 * @open: the ends are open; under @sem
 * @end: the two ends
 * @mr: a region of the second end for each thread, for fi_mr_post_reg()
 */
struct soak_station {
	struct rw_semaphore	sem;	/* protects generation, open, end, mr */
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
