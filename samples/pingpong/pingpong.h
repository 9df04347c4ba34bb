/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofi_pingpong: two sides transfer data over a fabric, check and measure it. Each side is
 * an instance with one thread, which makes all fi_*() calls. Handlers only wake the thread,
 * and debugfs only reads results.
 *
 *	main.c		parameters, threads
 *	session.c	session with the other side, by kofi_cm
 *	wire.c		format of the messages
 *	data.c		contents of the buffers
 *	fabric.c	opening and closing of the fabric's objects
 *	connect.c	connections, if the endpoints have them
 *	flow.c		posting and completing, the same on both sides
 *	client.c	the client's side of the tests
 *	server.c	the server's side of the tests
 *	report.c	debugfs
 *
 * pp_instance.lock and pp_link.lock are never held together; no fi_*() call is made under them.
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
#include <kofi/session.h>
#include <kofi/ulp_net.h>
#include "wire.h"

struct dentry;
struct seq_file;
struct task_struct;

#define PP_MAX_SIZES	32
#define PP_DATA_MAX	256	/* bytes of private data of connections */
#define PP_MAX_ROWS	(PP_OPS * PP_MAX_SIZES)

/**
 * struct pp_config - module parameters
 * @prov: name of the provider, or NULL for any
 * @fabric: name of the fabric, or NULL for any
 * @domain: name of the domain, or NULL for any
 * @addr: the server's IP address
 * @port: the server's TCP port
 * @sizes: sizes of operations in bytes, instead of those from 0 to the limit
 * @nsizes: number of entries of @sizes
 * @ops: names of operations, instead of all
 * @nops: number of entries of @ops
 * @max_size: largest operation in bytes, 0 for the limit of fabric and memory
 * @iterations: operations per measurement
 * @depth: number of outstanding operations
 * @memory: KiB of buffers in each direction
 * @timeout: seconds without progress after which a session fails
 * @check: whether every byte is checked
 * @tagged: messages have tags if both sides set this
 * @dgram: messages are datagrams; both sides must set this
 * @connected: the endpoints are connected; both sides must set this
 */
struct pp_config {
	char		*prov;
	char		*fabric;
	char		*domain;
	char		*addr;
	ushort		port;
	uint		sizes[PP_MAX_SIZES];
	int		nsizes;
	char		*ops[PP_OPS];
	int		nops;
	uint		max_size;
	uint		iterations;
	uint		depth;
	uint		memory;
	uint		timeout;
	bool		check;
	bool		tagged;
	bool		dgram;
	bool		connected;
};

extern struct pp_config pp_config;

enum pp_state {
	PP_WAITING,	/* waiting for the other side */
	PP_RUNNING,
	PP_FINISHED,
	PP_BROKEN,
	PP_STATES,
};

/**
 * struct pp_row - results of one operation at one size
 * @op: the operation
 * @size: size of the operation in bytes
 * @checked: number of buffers checked on both sides
 * @bad: number of buffers with wrong data
 * @samples: number of latencies measured
 * @median: median of the latencies in ns
 * @p99: 99th percentile of the latencies in ns
 * @mean: mean of the latencies in ns
 * @streamed: number of operations of the stream
 * @stream_ns: duration of the stream in ns
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
 * struct pp_report - results of an instance, for debugfs
 * @state: state of the instance
 * @prov: provider in use
 * @fabric: fabric in use
 * @domain: domain in use
 * @max_msg: largest message of the fabric in bytes
 * @max_rma: largest RMA operation of the fabric in bytes
 * @limit: largest operation tested in bytes
 * @depth: number of outstanding operations
 * @tagged: messages had tags
 * @lossy: messages were datagrams
 * @sessions: number of sessions started
 * @tests: number of successful tests
 * @refused: number of invalid messages of peers
 * @arrived: number of messages and remote CQ data that arrived
 * @checked: number of buffers checked on this side
 * @bad: number of buffers with wrong data
 * @lost: number of the client's datagrams that didn't arrive
 * @extra: number of datagrams that arrived twice, or too late
 * @error: text of the session's first error
 * @nrows: number of entries of @rows
 * @rows: results; only for a client
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
	bool		lossy;
	u32		sessions;
	u32		tests;
	u32		refused;
	u64		arrived;
	u64		checked;
	u64		bad;
	u64		lost;
	u64		extra;
	char		error[160];
	u32		nrows;
	struct pp_row	rows[PP_MAX_ROWS];
};

/**
 * struct pp_addr - address of an endpoint
 * @len: its length in bytes
 * @bytes: the address
 */
struct pp_addr {
	size_t	len;
	u8	bytes[PP_ADDR_MAX];
};

/**
 * struct pp_link - session of an instance, as kofi_cm's callbacks see it
 * @lock: protects @cm, @hello, @addr, @ended, @closing, @notes and @nnotes
 * @cm: the session, or NULL; for a server from a client's request on
 * @session: the client's, for the callbacks that need its address vector
 * @hello: server: HELLO of the client that asks
 * @addr: server: address of its endpoint
 * @buf: HELLO of this side, while kofi_cm needs it
 * @live: both sides are ready
 * @ended: the session has ended
 * @closing: client: the endpoint is closed
 * @err: how it has ended, or why the last attempt has failed
 * @reason: the peer's reason
 * @notes: messages that have arrived
 * @nnotes: number of these
 */
struct pp_link {
	spinlock_t		lock;		/* protects most of what follows */
	struct kcm_session	*cm;
	struct pp_session	*session;
	struct pp_hello		hello;
	struct pp_addr		addr;
	u8			buf[PP_WIRE_MAX] __aligned(8);
	bool			live;
	bool			ended;
	bool			closing;
	int			err;
	enum kcm_reason		reason;
	struct list_head	notes;
	unsigned int		nnotes;
};

/**
 * struct pp_instance - a side
 * @name: name of the side: "server" or "client"
 * @run: function of the thread
 * @task: the thread
 * @wait: wait queue of the thread
 * @stopping: the thread must end
 * @lock: protects @report
 * @listener: the server's; NULL for a client
 * @link: session with the other side
 * @report: results for debugfs
 */
struct pp_instance {
	const char		*name;
	int			(*run)(struct pp_instance *inst);
	struct task_struct	*task;
	wait_queue_head_t	wait;
	bool			stopping;
	struct mutex		lock;	/* protects report */
	struct kcm_listener	*listener;
	struct pp_link		link;
	struct pp_report	report;
};

/**
 * struct pp_slot - an operation; its address is the operation's context
 * @recv: the operation is a receive
 * @busy: the operation is outstanding
 * @index: index of the slot and its buffer
 * @local: local memory of a write
 * @rma: the peer's memory for a write
 */
struct pp_slot {
	bool			recv;
	bool			busy;
	u32			index;
	struct kvec		local;
	struct fi_rma_iov	rma;
};

/**
 * struct pp_side - slots of one direction
 * @buf: buffers of the slots
 * @slots: array of self.depth slots
 * @free: stack of free slots
 * @nfree: number of free slots
 * @stride: distance between buffers in the current test
 * @prefix: bytes in front of the data in each buffer, for the provider
 */
struct pp_side {
	u8		*buf;
	struct pp_slot	*slots;
	u16		*free;
	u32		nfree;
	u32		stride;
	u32		prefix;
};

/**
 * struct pp_flow - a test, as one side sees it
 * @test: the test
 * @op: operation that this side posts
 * @check: data is written and checked
 * @tx_size: size of a posted operation in bytes
 * @tx_total: number of operations to post
 * @tx_posted: number of operations posted so far
 * @tx_done: number of posted operations that completed
 * @tx_start: number of operations that may be posted before the first arrival
 * @rx_size: size of an arriving message in bytes
 * @rx_total: number of messages, or remote CQ data, to arrive
 * @rx_posted: number of receives posted so far
 * @rx_needed: arriving messages or remote CQ data consume receives
 * @arrived: number of arrivals so far
 * @grant: number of operations that may be posted for each @per arrivals
 * @per: number of arrivals that allow @grant more operations
 * @tx_seed: seed of the data that this side sends
 * @rx_seed: seed of the data that arrives
 * @base: address of the remote memory
 * @key: key of the remote memory
 * @checked: number of buffers checked
 * @bad: number of buffers with wrong data
 * @posted: time of the last post, for latencies
 * @samples: latencies in ns, or NULL
 * @nsamples: number of entries of @samples in use
 * @quiet: nothing has completed for PP_SLICE_MS
 * @extra: number of datagrams that arrived twice, or too late
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
	bool		quiet;
	u32		extra;
};

enum {
	PP_EVENT_CQ,
	PP_EVENT_REMOVED,
	PP_EVENT_REQUEST,	/* a client requests a connection */
	PP_EVENT_CONNECTED,
	PP_EVENT_REFUSED,	/* there is no connection, or no more */
};

/**
 * struct pp_session - an endpoint and a peer
 * @inst: the instance
 * @self: HELLO message to the peer
 * @self_addr: address of the endpoint
 * @addr_format: its format
 * @peer: HELLO message from the peer
 * @peer_addr_of: address of the peer's endpoint
 * @info: entry of fi_getinfo()
 * @fabric: the fabric
 * @eq: event queue, which reports the device's removal, and a connection's events
 * @domain: the domain
 * @av: address vector, with only the peer's address
 * @cq: completion queue for all operations
 * @pep_lock: protects @pep, once it listens, from being closed while the handler uses it
 * @pep: passive endpoint of a server with connections
 * @request: entry of a request for a connection, or NULL
 * @ep: the endpoint; with connections, a server's is opened for a request
 * @peer_addr: the peer's fi_addr_t; unused with connections
 * @events: PP_EVENT bits, set by handlers
 * @rx_cq_data: the remote CQ data of a write consumes a receive
 * @lossy: messages are datagrams, so they may be lost or arrive twice. All receives stay posted
 *	from one test to the next
 * @tx: slots to send from
 * @rx: slots to receive into, and memory for the peer
 * @scratch: for receives that get no data, PP_SLOT_ALIGN bytes each
 * @seen: which messages of a test have arrived
 * @flow: the current test
 * @progress: time of the last completion, or of the test's beginning, in jiffies
 */
struct pp_session {
	struct pp_instance	*inst;
	struct pp_hello		self;
	struct pp_addr		self_addr;
	u32			addr_format;
	struct pp_hello		peer;
	struct pp_addr		peer_addr_of;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
	struct fid_domain	*domain;
	struct fid_av		*av;
	struct fid_cq		*cq;
	struct mutex		pep_lock;	/* protects pep */
	struct fid_pep		*pep;
	struct fi_info		*request;
	struct fid_ep		*ep;
	fi_addr_t		peer_addr;
	unsigned long		events;
	bool			rx_cq_data;
	bool			lossy;
	struct pp_side		tx;
	struct pp_side		rx;
	void			*scratch;
	unsigned long		*seen;
	struct pp_flow		flow;
	unsigned long		progress;
};

/* session.c */

int pp_listen(struct pp_instance *inst);
void pp_unlisten(struct pp_instance *inst);
int pp_connect(struct pp_session *s);
bool pp_wait_client(struct pp_instance *inst);
int pp_accept(struct pp_session *s);
void pp_shut_down(struct pp_instance *inst);
bool pp_connected(const struct pp_session *s);
bool pp_said_done(const struct pp_session *s);
bool pp_msg_waits(const struct pp_session *s);
int pp_msg_send(struct pp_session *s, const struct pp_msg *msg);
int pp_msg_recv(struct pp_session *s, struct pp_msg *msg);
int pp_msg_await(struct pp_session *s);
int pp_msg_expect(struct pp_session *s, enum pp_type type, struct pp_msg *msg);
int pp_hung_up(struct pp_session *s);
void pp_bye(struct pp_instance *inst, int err);
void pp_end(struct pp_instance *inst);
void pp_end_client(struct pp_instance *inst);

/* fabric.c */

int pp_open(struct pp_session *s);
int pp_meet(struct pp_session *s);
void pp_close(struct pp_session *s);
void pp_close_fid(struct fid *fid);

/* connect.c */

int pp_connect_open(struct pp_session *s);
int pp_join(struct pp_session *s);
void pp_connect_close(struct pp_session *s);
void pp_connect_event(struct pp_session *s, u32 event, const struct fi_eq_cm_entry *entry,
		      size_t len);

/* flow.c */

void pp_side_reset(struct pp_side *side, u32 size, u32 slots, bool check);
void pp_flow_sides(struct pp_session *s, u32 tx_slots, u32 rx_slots, u32 rx_size);
int pp_flow_start(struct pp_session *s);
int pp_flow_run(struct pp_session *s);

/* client.c, server.c */

int pp_client_run(struct pp_instance *inst);
int pp_server_run(struct pp_instance *inst);

/* report.c */

extern const char * const pp_op_names[PP_OPS];

enum pp_op pp_op_named(const char *name);
void pp_report_state(struct pp_instance *inst, enum pp_state state);
void pp_report_fabric(struct pp_session *s);
void pp_report_flow(struct pp_session *s);
void pp_report_lost(struct pp_session *s, u32 lost);
void pp_report_row(struct pp_instance *inst, const struct pp_row *row);
void pp_report_refused(struct pp_instance *inst);
__printf(3, 4)
void pp_report_error(struct pp_instance *inst, int err, const char *fmt, ...);
void pp_report_init(struct pp_instance *inst, struct dentry *parent);

#endif /* PINGPONG_H */
