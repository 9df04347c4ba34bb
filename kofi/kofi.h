/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The core's own declarations, file by file.
 *
 * Locks, outermost first; no provider is called under any of them:
 *
 *   kofi_registry_lock (mutex)	registry.c: who is registered, and in use
 *   kofi_tree_lock (mutex)	node.c: which object hangs where, and its state
 *   kofi_cq.lock (spinlock)	queue/cq.c: a completion queue's ring and notifier
 *   kofi_eq.lock (spinlock)	queue/eq.c: an event queue's events and notifier
 *   kofi_notifiers_lock (spinlock) queue/work.c: queues, whose handlers may be running
 *
 * The first two are never held together, and neither are the last three.
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
 * @provider: what it handed in
 * @id: larger than that of any earlier registration
 * @list: in the registry, by @id; kofi_registry_lock
 * @users: fabrics that are open, and calls that are running; kofi_registry_lock
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

const char *kofi_info_mismatch(const struct fi_info *info,
			       const struct fi_info *hints);
void kofi_info_narrow(struct fi_info *info, const struct fi_info *hints);

/* node.c */

/**
 * enum kofi_state - where an object is in its life
 * @KOFI_OPEN: it can be bound to, and is what all but endpoints stay
 * @KOFI_ENABLING: the provider is enabling the endpoint
 * @KOFI_ENABLED: the endpoint transfers data
 * @KOFI_DEAD: the device went away; the object can only be closed
 * @KOFI_STATES: how many there are
 */
enum kofi_state {
	KOFI_OPEN,
	KOFI_ENABLING,
	KOFI_ENABLED,
	KOFI_DEAD,
	KOFI_STATES,
};

/**
 * struct kofi_node - an object's place among the others
 * @fid: the object
 * @parent: what it was opened from; a fabric has none
 * @reg: its provider
 * @refs: 1, and 1 for each child and each object that it is bound to
 * @id: names it in traces and debugfs
 * @state: kofi_tree_lock to change
 * @sibling: in @parent->children, or kofi_fabrics; kofi_tree_lock
 * @children: what was opened from it; kofi_tree_lock
 * @binds: what is bound to it, struct kofi_bind; kofi_tree_lock
 * @caps: of an endpoint, as from kofi_ep_caps()
 * @ep_type: of an endpoint
 * @held: another node that is pinned: the endpoint or the CQ of an allocated region
 * @device_events: an event queue that a domain was bound to; kofi_tree_lock
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
	bool				device_events;
};

/**
 * struct kofi_bind - one object bound to another
 * @list: in kofi_node.binds
 * @node: what is bound, pinned
 * @flags: how
 * @pending: the provider hasn't accepted it yet; kofi_tree_lock
 * @removed: of a domain, which binds an event queue: room for the event that its device
 *	went away, until that is written; kofi_tree_lock
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

/* debugfs.c */

void kofi_debugfs_init(void);
void kofi_debugfs_fini(void);

#endif /* KOFI_CORE_H */
