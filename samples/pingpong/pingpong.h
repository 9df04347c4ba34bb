/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofi_pingpong: two sides move data over whatever fabric there is, measure and
 * check it. Each side is an instance with one thread, which makes every call but
 * those of the handlers (they only wake it) and of debugfs (which only reads).
 *
 *	main.c		parameters, threads
 *	session.c	TCP: connections and messages
 *	wire.c		what the messages are
 *	data.c		what fills the buffers
 *	fabric.c	from fi_getinfo() to an endpoint, and back
 *	flow.c		posting and completing, the same on both sides
 *	client.c	which tests there are
 *	server.c	their other side
 *	report.c	debugfs
 *
 * pp_instance.lock is the only lock; no fi_*() call is made under it.
 */
#ifndef PINGPONG_H
#define PINGPONG_H

#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/wait.h>
#include <kofi/cm.h>
#include <kofi/endpoint.h>
#include <kofi/eq.h>
#include <kofi/rma.h>
#include <kofi/tagged.h>
#include "wire.h"

struct dentry;
struct seq_file;
struct socket;
struct task_struct;

#define PP_MAX_SIZES	32
#define PP_MAX_ROWS	(PP_OPS * PP_MAX_SIZES)

/**
 * struct pp_config - module parameters
 * @prov: provider, or NULL for any
 * @fabric: fabric, or NULL
 * @domain: domain, or NULL
 * @addr: the server's IP address
 * @port: the server's TCP port
 * @sizes: bytes of operations, instead of those from 0 to the limit
 * @nsizes: entries of @sizes
 * @max_size: longest operation, 0 for what fabric and memory allow
 * @iterations: operations of a measurement
 * @depth: operations outstanding
 * @memory: KiB of buffers in each direction
 * @timeout: seconds without progress
 * @check: whether every byte is checked
 * @tagged: messages have tags, if the other side wants them, too
 */
struct pp_config {
	char		*prov;
	char		*fabric;
	char		*domain;
	char		*addr;
	ushort		port;
	uint		sizes[PP_MAX_SIZES];
	int		nsizes;
	uint		max_size;
	uint		iterations;
	uint		depth;
	uint		memory;
	uint		timeout;
	bool		check;
	bool		tagged;
};

extern struct pp_config pp_config;

enum pp_state {
	PP_WAITING,	/* for the other side */
	PP_RUNNING,
	PP_FINISHED,
	PP_BROKEN,
	PP_STATES,
};

/**
 * struct pp_row - results of one operation at one size
 * @op: the operation
 * @size: its bytes
 * @checked: buffers checked, on both sides
 * @bad: of them with wrong data
 * @samples: latencies measured
 * @median: of them, in ns
 * @p99: likewise
 * @mean: likewise
 * @streamed: operations of the stream
 * @stream_ns: how long they took
 */
struct pp_row {
	enum pp_op	op;
	u32		size;
	u32		checked;
	u32		bad;
	u32		samples;
	u32		median;
	u32		p99;
	u32		mean;
	u32		streamed;
	u64		stream_ns;
};

/**
 * struct pp_report - what debugfs shows of an instance
 * @state: where it is
 * @prov: provider in use
 * @fabric: fabric in use
 * @domain: domain in use
 * @max_msg: longest message that the fabric offers
 * @max_rma: longest RMA operation
 * @limit: longest operation tested
 * @depth: operations outstanding
 * @tagged: messages had tags
 * @sessions: that were begun
 * @tests: that went well
 * @refused: messages of peers that can't be right
 * @arrived: messages and remote CQ data
 * @checked: buffers checked here
 * @bad: of them with wrong data
 * @error: why it failed, as text
 * @nrows: entries of @rows
 * @rows: results, a client's alone
 */
struct pp_report {
	enum pp_state	state;
	char		prov[FI_NAME_MAX];
	char		fabric[FI_NAME_MAX];
	char		domain[FI_NAME_MAX];
	u64		max_msg;
	u64		max_rma;
	u64		limit;
	u32		depth;
	bool		tagged;
	u32		sessions;
	u32		tests;
	u32		refused;
	u64		arrived;
	u64		checked;
	u64		bad;
	char		error[160];
	u32		nrows;
	struct pp_row	rows[PP_MAX_ROWS];
};

/**
 * struct pp_instance - a side
 * @name: "server" or "client"
 * @run: what its thread does
 * @task: its thread
 * @wait: where that sleeps
 * @stopping: it shall end
 * @lock: protects what follows
 * @listener: to be shut down in order to stop
 * @sock: likewise
 * @report: for debugfs
 */
struct pp_instance {
	const char		*name;
	int			(*run)(struct pp_instance *inst);
	struct task_struct	*task;
	wait_queue_head_t	wait;
	bool			stopping;
	struct mutex		lock;	/* protects what follows */
	struct socket		*listener;
	struct socket		*sock;
	struct pp_report	report;
};

/**
 * struct pp_slot - an operation; its address is the context that comes back
 * @recv: it is a receive
 * @busy: posted, and not completed
 * @index: which buffer it has
 */
struct pp_slot {
	bool	recv;
	bool	busy;
	u32	index;
};

/**
 * struct pp_side - slots of one direction
 * @buf: their buffers
 * @slots: self.depth of them
 * @free: stack of those that aren't posted
 * @nfree: its height
 * @stride: distance of buffers, of the current test
 */
struct pp_side {
	u8		*buf;
	struct pp_slot	*slots;
	u16		*free;
	u32		nfree;
	u32		stride;
};

/**
 * struct pp_flow - a test, as one side sees it
 * @test: the test
 * @op: what this side posts
 * @check: data is written and looked at
 * @tx_size: bytes of an operation posted
 * @tx_total: how many
 * @tx_posted: how many so far
 * @tx_done: of them completed
 * @tx_start: how many may be posted before anything arrives
 * @rx_size: bytes of a message that arrives
 * @rx_total: how many messages, or remote CQ data, will arrive
 * @rx_posted: receives so far
 * @rx_needed: arrivals take receives
 * @arrived: how many did
 * @grant: operations that may be posted for each @per arrivals
 * @per: see there
 * @tx_seed: of the data that this side sends
 * @rx_seed: of the data that arrives
 * @base: remote address
 * @key: its key
 * @checked: buffers looked at
 * @bad: of them with wrong data
 * @posted: when the last operation was, for latencies
 * @samples: latencies in ns, or NULL
 * @nsamples: its entries in use
 */
struct pp_flow {
	struct pp_test	test;
	enum pp_op	op;
	bool		check;
	u32		tx_size;
	u32		tx_total;
	u32		tx_posted;
	u32		tx_done;
	u32		tx_start;
	u32		rx_size;
	u32		rx_total;
	u32		rx_posted;
	bool		rx_needed;
	u32		arrived;
	u32		grant;
	u32		per;
	u64		tx_seed;
	u64		rx_seed;
	u64		base;
	u64		key;
	u32		checked;
	u32		bad;
	ktime_t		posted;
	u32		*samples;
	u32		nsamples;
};

enum {
	PP_EVENT_CQ,
	PP_EVENT_REMOVED,
};

/**
 * struct pp_session - an endpoint and a peer
 * @inst: whose it is
 * @sock: connection to the peer
 * @self: what the peer is told
 * @peer: what the peer said
 * @info: what fi_getinfo() found
 * @fabric: opened from it
 * @eq: tells of the device's removal
 * @domain: opened
 * @av: has the peer's address alone
 * @cq: for all
 * @ep: the endpoint
 * @peer_addr: the peer
 * @events: PP_EVENT bits, set by handlers
 * @rx_cq_data: remote CQ data takes a receive
 * @tx: slots to send from
 * @rx: slots to receive into, and memory for the peer
 * @scratch: for receives that get no data, PP_SLOT_ALIGN bytes each
 * @seen: which messages of a test have arrived
 * @flow: the current test
 * @progress: when something last happened
 */
struct pp_session {
	struct pp_instance	*inst;
	struct socket		*sock;
	struct pp_hello		self;
	struct pp_hello		peer;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
	struct fid_domain	*domain;
	struct fid_av		*av;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
	fi_addr_t		peer_addr;
	unsigned long		events;
	bool			rx_cq_data;
	struct pp_side		tx;
	struct pp_side		rx;
	void			*scratch;
	unsigned long		*seen;
	struct pp_flow		flow;
	unsigned long		progress;
};

/* main.c */

int pp_nap(struct pp_instance *inst, unsigned int ms);

/* session.c */

int pp_listen(struct pp_instance *inst);
int pp_accept(struct pp_instance *inst, struct socket **sock);
int pp_connect(struct pp_instance *inst, struct socket **sock);
void pp_hang_up(struct pp_instance *inst, struct socket **published);
void pp_shut_down(struct pp_instance *inst);
bool pp_connected(const struct pp_session *s);
int pp_msg_send(struct pp_session *s, const struct pp_msg *msg);
int pp_msg_recv(struct pp_session *s, struct pp_msg *msg);
int pp_msg_expect(struct pp_session *s, enum pp_type type, struct pp_msg *msg);
int pp_hung_up(struct pp_session *s);
int pp_hello(struct pp_session *s);
void pp_bye(struct pp_session *s, int err);

/* fabric.c */

int pp_open(struct pp_session *s);
int pp_meet(struct pp_session *s);
void pp_close(struct pp_session *s);
void pp_close_fid(struct fid *fid);

/* flow.c */

void pp_side_reset(struct pp_side *side, u32 size, u32 slots, bool check);
int pp_flow_start(struct pp_session *s);
int pp_flow_run(struct pp_session *s);

/* client.c, server.c */

int pp_client_run(struct pp_instance *inst);
int pp_server_run(struct pp_instance *inst);

/* report.c */

extern const char * const pp_op_names[PP_OPS];

void pp_report_state(struct pp_instance *inst, enum pp_state state);
void pp_report_fabric(struct pp_session *s);
void pp_report_flow(struct pp_session *s);
void pp_report_row(struct pp_instance *inst, const struct pp_row *row);
void pp_report_refused(struct pp_instance *inst);
__printf(3, 4)
void pp_report_error(struct pp_instance *inst, int err, const char *fmt, ...);
void pp_report_init(struct pp_instance *inst, struct dentry *parent);

#endif /* PINGPONG_H */
