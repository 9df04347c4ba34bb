/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For providers only: matching of receives and messages, fi_msg(3) and fi_tagged(3).
 * Symbols are in the namespace KOFI_PROVIDER.
 */
#ifndef KOFI_MATCH_H
#define KOFI_MATCH_H

#include <linux/bits.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/spinlock.h>
#include <kofi/fabric.h>

/* Bits of kofi_match_link.kind. The kind isn't hashed, so that a call searches one bucket. */
enum {
	KOFI_MATCH_KIND_TAGGED	= BIT(0),
	KOFI_MATCH_KIND_MSG	= BIT(1),	/* a message; without it a receive */
	KOFI_MATCH_KIND_CLAIMED	= BIT(2),	/* a claimed message; with KOFI_MATCH_KIND_MSG */
};

/**
 * struct kofi_match_link - link of a receive or a message into the table
 * @bucket: in a bucket of kofi_match.table, which has only the oldest entry of each key
 * @same: ring of the entries with the same key, oldest first; for a receive with ignored
 *	bits, in kofi_match.wild
 * @tag: the tag; for a claimed message the context of the claim
 * @src: the peer, or FI_ADDR_UNSPEC for any
 * @kind: receive or message, and tagged, untagged or claimed
 * @multi: the receive stays posted after it has taken a message
 */
struct kofi_match_link {
	struct hlist_node	bucket;
	struct list_head	same;
	u64			tag;
	u64			src;
	u32			kind;
	bool			multi;
};

/**
 * struct kofi_match_recv - a receive, for providers to embed
 * @link: link into the table
 * @seq: sequence number, in the order in which receives were posted
 * @ignore: bits of the tag that the receive ignores
 * @context: for kofi_match_cancel(), and for claims
 */
struct kofi_match_recv {
	struct kofi_match_link	link;
	u64			seq;
	u64			ignore;
	void			*context;
};

/**
 * struct kofi_match_msg - a message, for providers to embed
 * @any: link for receives from any peer; for a claimed message, link for its claim
 * @from: link for directed receives
 * @list: in one of kofi_match.msgs
 */
struct kofi_match_msg {
	struct kofi_match_link	any;
	struct kofi_match_link	from;
	struct list_head	list;
};

/**
 * enum kofi_match_list - the lists of messages
 * @KOFI_MATCH_UNTAGGED: untagged messages that no receive has taken
 * @KOFI_MATCH_TAGGED: tagged messages that no receive has taken
 * @KOFI_MATCH_CLAIMED: claimed messages
 * @KOFI_MATCH_LISTS: number of lists
 */
enum kofi_match_list {
	KOFI_MATCH_UNTAGGED,
	KOFI_MATCH_TAGGED,
	KOFI_MATCH_CLAIMED,
	KOFI_MATCH_LISTS,
};

/**
 * struct kofi_match - the receives and messages of an endpoint, for providers to embed
 * @lock: the provider's lock, which protects the structure and everything linked to it
 * @table: buckets
 * @secret: random odd numbers that tags are multiplied by, so that no peer can choose tags that
 *	share a bucket
 * @shift: the bucket of a 32-bit hash is its value shifted right by this
 * @seq: sequence number of the latest receive
 * @directed: number of receives in @table that name a peer
 * @wild: receives with ignored bits, oldest first
 * @msgs: messages by enum kofi_match_list, oldest first
 *
 * A receive takes the oldest message that matches it, and the oldest receive that matches
 * takes a message, so no matching pair of a receive and a message is ever in the table.
 * Finding a tag takes the same time for any number of tags, receives and messages. Only
 * receives with ignored bits are searched one by one, and search messages one by one.
 */
struct kofi_match {
	spinlock_t		*lock;	/* the provider's lock */
	struct hlist_head	*table;
	u64			secret[2];
	u32			shift;
	u64			seq;
	u32			directed;
	struct list_head	wild;
	struct list_head	msgs[KOFI_MATCH_LISTS];
};

/**
 * kofi_match_heads() - number of buckets for a table
 * @recvs: maximum number of posted receives
 * @msgs: expected number of waiting messages; more of them take longer to find
 *
 * A comparison with another entry of a bucket is likely to miss the cache, so few buckets should
 * have more than one.
 *
 * Context: Any.
 * Return: a power of two, so that a bucket has at most a quarter of a receive and half a message
 * on average.
 */
static inline size_t kofi_match_heads(size_t recvs, size_t msgs)
{
	return roundup_pow_of_two(max_t(size_t, 4 * recvs + 4 * msgs, 2));
}

void kofi_match_init(struct kofi_match *match, spinlock_t *lock,
		     struct hlist_head *table, size_t heads);
void kofi_match_msg_init(struct kofi_match_msg *msg, u64 what, fi_addr_t src, u64 tag);

struct kofi_match_msg *kofi_match_post(struct kofi_match *match,
				       struct kofi_match_recv *recv);
struct kofi_match_recv *kofi_match_find(struct kofi_match *match, u64 what, fi_addr_t src,
					u64 tag);
void kofi_match_wait(struct kofi_match *match, struct kofi_match_msg *msg);
struct kofi_match_recv *kofi_match_arrive(struct kofi_match *match,
					  struct kofi_match_msg *msg);
struct kofi_match_msg *kofi_match_peek(struct kofi_match *match,
				       struct kofi_match_recv *recv, u64 flags);
struct kofi_match_recv *kofi_match_cancel(struct kofi_match *match, void *context);
struct kofi_match_recv *kofi_match_cancel_tag(struct kofi_match *match, u64 tag, void *context);
void kofi_match_remove(struct kofi_match *match, struct kofi_match_recv *recv);
void kofi_match_remove_msg(struct kofi_match *match, struct kofi_match_msg *msg);
struct kofi_match_msg *kofi_match_pop_msg(struct kofi_match *match);

/**
 * kofi_match_link_init() - initialize a link that is in no list
 * @link: the link
 * @tag: the tag, or 0 for an untagged message
 * @src: the peer, or FI_ADDR_UNSPEC
 * @kind: KOFI_MATCH_KIND_TAGGED and so on
 *
 * Context: Any.
 */
static inline void kofi_match_link_init(struct kofi_match_link *link, u64 tag, u64 src, u32 kind)
{
	INIT_HLIST_NODE(&link->bucket);
	INIT_LIST_HEAD(&link->same);
	link->tag = tag;
	link->src = src;
	link->kind = kind;
	link->multi = false;
}

/**
 * kofi_match_recv_init() - initialize a receive
 * @recv: the receive
 * @what: has FI_TAGGED if the receive takes tagged messages
 * @src: number with which the provider identifies the peer whose messages the receive
 *	takes, or FI_ADDR_UNSPEC for any peer
 * @tag: the tag; unused for untagged messages
 * @ignore: bits of the tag that the receive ignores; unused for untagged messages
 * @context: context of the operation
 *
 * The provider sets @recv->link.multi if the buffer takes messages until
 * kofi_match_remove() is called.
 *
 * Context: Any.
 */
static inline void kofi_match_recv_init(struct kofi_match_recv *recv, u64 what, fi_addr_t src,
					u64 tag, u64 ignore, void *context)
{
	const bool tagged = what & FI_TAGGED;

	kofi_match_link_init(&recv->link, tagged ? tag : 0, src,
			     tagged ? KOFI_MATCH_KIND_TAGGED : 0);
	recv->ignore = tagged ? ignore : 0;
	recv->context = context;
}

/**
 * kofi_match_flags_ok() - check that a receive's flags are consistent
 * @flags: operation flags
 *
 * FI_DISCARD discards the message that FI_PEEK finds or FI_CLAIM names, so it requires
 * exactly one of them. A receive with one of these flags posts no buffer.
 *
 * Context: Any.
 * Return: true if the flags are consistent; otherwise the call fails with -FI_EBADFLAGS.
 */
static inline bool kofi_match_flags_ok(u64 flags)
{
	switch (flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)) {
	case 0:
		return true;
	case FI_DISCARD:
	case FI_PEEK | FI_CLAIM | FI_DISCARD:
		return false;
	default:
		return !(flags & FI_MULTI_RECV);
	}
}

#endif /* KOFI_MATCH_H */
