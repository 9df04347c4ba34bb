/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The core's own declarations, file by file.
 *
 * Locks, outermost first; the core calls no provider under any of them:
 *
 *   kofi_registry_lock (mutex)	registry.c: registered providers and their users
 *   kofi_tree_lock (mutex)	node.c: the tree of objects, and their states
 *   kofi_connector_lock (mutex) connect/connector.c: the module for connections
 *   kofi_cq.lock (spinlock)	queue/cq.c: a completion queue's ring and notifier
 *   kofi_cq.sources_lock (spinlock) queue/source.c: a completion queue's sources
 *   kofi_eq.lock (spinlock)	queue/eq.c: an event queue's events and notifier
 *   kofi_notifiers_lock (spinlock) queue/work.c: queues whose handlers may be running
 *
 * No task holds two of the mutexes, or two of the spinlocks, at a time.
 */
#ifndef KOFI_CORE_H
#define KOFI_CORE_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <kofi/provider.h>
#include "queue/queue.h"

struct seq_file;

/* registry.c */

/**
 * struct kofi_reg - a registered provider
 * @provider: the provider, as passed to kofi_provider_register()
 * @id: sequence number of the registration
 * @list: in the registry, sorted by @id; under kofi_registry_lock
 * @users: number of open fabrics and running calls; under kofi_registry_lock
 */
struct kofi_reg {
	const struct kofi_provider	*provider;
	u64				id;
	struct list_head		list;
	unsigned int			users;
};

struct kofi_reg *kofi_reg_get(const char *name);
struct kofi_reg *kofi_reg_next(struct kofi_reg *reg);
void kofi_reg_put(struct kofi_reg *reg);
int kofi_registry_show(struct seq_file *s, void *unused);

/* match.c */

/* Longer values are cut. The longest is a list of capabilities. */
#define KOFI_VALUE_SIZE	192

/**
 * struct kofi_mismatch - the first field of an entry that doesn't match the hints
 * @type: name of the structure that has the field
 * @field: name of the field
 * @offer: the entry's value, as text
 * @hint: the hints' value, as text
 */
struct kofi_mismatch {
	const char	*type;
	const char	*field;
	char		offer[KOFI_VALUE_SIZE];
	char		hint[KOFI_VALUE_SIZE];
};

bool kofi_info_serves(const struct fi_info *info, const struct fi_info *hints,
		      struct kofi_mismatch *why);
void kofi_info_narrow(struct fi_info *info, const struct fi_info *hints);

/* node.c */

/**
 * enum kofi_state - state of an object
 * @KOFI_OPEN: objects can be bound to it; only endpoints leave this state
 * @KOFI_ENABLING: the provider is enabling the endpoint
 * @KOFI_ENABLED: the endpoint transfers data
 * @KOFI_DEAD: the device went away; the object can only be closed
 * @KOFI_STATES: number of states
 */
enum kofi_state {
	KOFI_OPEN,
	KOFI_ENABLING,
	KOFI_ENABLED,
	KOFI_DEAD,
	KOFI_STATES,
};

/**
 * struct kofi_node - an object's place in the tree of objects
 * @fid: the object
 * @parent: node of the object that this one was opened from; NULL for a fabric
 * @reg: registration of the object's provider
 * @refs: 1, plus 1 for each child, each object that it is bound to, and each region of
 *	fi_mr_alloc() that names it in @held
 * @id: the object's number in traces and debugfs
 * @state: state of the object; changed under kofi_tree_lock
 * @sibling: in @parent->children, or kofi_fabrics; under kofi_tree_lock
 * @children: nodes of the objects opened from this one; under kofi_tree_lock
 * @binds: list of struct kofi_bind, the objects bound to this one; under kofi_tree_lock
 * @caps: capabilities of an endpoint, from kofi_ep_caps()
 * @ep_type: type of an endpoint
 * @held: for a region of fi_mr_alloc(), the pinned node of its endpoint, or of its CQ if it
 *	has no endpoint
 * @connector: the module that opened the object, pinned; NULL for an object of the provider
 * @was_enabled: the provider has enabled the endpoint; under kofi_tree_lock
 * @device_events: the object is an event queue that gets FI_DEVICE_ARRIVED; under
 *	kofi_tree_lock
 */
struct kofi_node {
	struct fid			*fid;
	struct kofi_node		*parent;
	struct kofi_reg			*reg;
	refcount_t			refs;
	u32				id;
	enum kofi_state			state;
	struct list_head		sibling;
	struct list_head		children;
	struct list_head		binds;
	u64				caps;
	enum fi_ep_type			ep_type;
	struct kofi_node		*held;
	const struct kofi_connector	*connector;
	bool				was_enabled;
	bool				device_events;
};

/**
 * struct kofi_bind - one object bound to another
 * @list: in kofi_node.binds
 * @node: node of the bound object, pinned
 * @flags: flags of fi_ep_bind()
 * @pending: the provider hasn't accepted the binding yet; under kofi_tree_lock
 * @removed: for a domain, memory reserved for FI_DEVICE_REMOVED until it is written; under
 *	kofi_tree_lock
 */
struct kofi_bind {
	struct list_head	list;
	struct kofi_node	*node;
	u64			flags;
	bool			pending;
	struct kofi_eq_event	*removed;
};

extern struct mutex kofi_tree_lock;

int kofi_enter(const struct fid *fid, enum fi_class fclass);
int kofi_enter_ep(const struct fid *fid);
struct kofi_node *kofi_node_alloc(struct kofi_node *parent);
void kofi_node_free(struct kofi_node *node);
int kofi_node_publish(struct kofi_node *node, struct fid *fid,
		      enum fi_class fclass, void *context);
bool kofi_node_get(struct kofi_node *node);
void kofi_node_put(struct kofi_node *node);
void kofi_bind_free(struct kofi_bind *bind);
void kofi_node_set_state(struct kofi_node *node, enum kofi_state state);
struct fid_ep *kofi_to_ep(struct fid *fid);
const char *kofi_class_name(enum fi_class fclass);
int kofi_tree_show(struct seq_file *s, void *unused);

/* control.c */

/*
 * Common part of control calls: @enter checks the object. Then check that the provider has the op,
 * and the arguments; then call the op.
 */
#define KOFI_CALL(enter, ops, op, check, ...)				\
({									\
	int __ret = enter;						\
									\
	if (!__ret && !((ops) && (ops)->op))				\
		__ret = -EOPNOTSUPP;					\
	__ret ?: (check) ?: (ops)->op(__VA_ARGS__);			\
})

int kofi_check(bool valid, u64 bad_flags);
int kofi_check_room(const void *buf, const size_t *len);
int kofi_bind(struct fid *fid, struct fid *bfid, u64 flags, u64 role);
int kofi_enable_begin(struct kofi_node *node);
int kofi_enable_end(struct kofi_node *node, int ret);

/* connect/connector.c */

const struct kofi_connector *kofi_connector_get(void);
void kofi_connector_put(const struct kofi_connector *connector);
int kofi_connector_open(struct fid *parent, enum fi_class parent_class, struct fi_info *info,
			struct fid **fid, void *context);

/* debugfs.c */

void kofi_debugfs_init(void);
void kofi_debugfs_fini(void);

#endif /* KOFI_CORE_H */
