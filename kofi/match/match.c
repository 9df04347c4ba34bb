// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Matching of receives and messages, fi_msg(3) and fi_tagged(3). Receives and messages
 * are hashed by tag and peer. A bucket has one entry for each key, and a ring links the
 * entries of the same key, oldest first. So the length of a bucket is its number of keys,
 * however many equal tags a peer sends.
 *
 * A message is in the table twice: once for receives from any peer and once for receives
 * from its peer. A receive with ignored bits is in a list instead, and searches a list.
 */
#include <linux/hash.h>
#include <linux/lockdep.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/random.h>
#include <kofi/match.h>

/* The KUnit suite counts the comparisons. */
#ifndef KOFI_MATCH_COMPARED
#define KOFI_MATCH_COMPARED()	do { } while (0)
#endif

/* Operations, whose size is limited, embed a receive. */
static_assert(sizeof(struct kofi_match_recv) <= 80);

/*
 * Hashes the tag alone. The source, a number that the provider chose, selects the bucket.
 *
 * Multiplication by a secret odd number is universal hashing: two tags that are chosen without
 * knowing the number get the same top n bits with a probability of at most 2 / 2^n. The steps
 * before it lose nothing. They keep tags at regular distances from gathering in few buckets,
 * also if the tags differ only in high bits.
 */
static u32 kofi_match_hash(const struct kofi_match *match, u64 tag)
{
	tag ^= tag >> 32;
	tag *= match->secret[0];
	tag ^= tag >> 32;
	return upper_32_bits(tag * match->secret[1]);
}

static struct hlist_head *kofi_match_head(const struct kofi_match *match, u32 hash, u64 src)
{
	const u64 mixed = (u32)(hash + lower_32_bits(src) * GOLDEN_RATIO_32);

	return &match->table[mixed >> match->shift];
}

static struct hlist_head *kofi_match_bucket(const struct kofi_match *match, u64 tag, u64 src)
{
	return kofi_match_head(match, kofi_match_hash(match, tag), src);
}

/* Return: the oldest entry with a key, or NULL. */
static struct kofi_match_link *kofi_match_first(const struct hlist_head *bucket, u64 tag,
						u64 src, u32 kind)
{
	struct kofi_match_link *link;

	hlist_for_each_entry(link, bucket, bucket) {
		KOFI_MATCH_COMPARED();
		if (link->tag == tag && link->src == src && link->kind == kind)
			return link;
	}
	return NULL;
}

static void kofi_match_add(struct hlist_head *bucket, struct kofi_match_link *link)
{
	struct kofi_match_link *first = kofi_match_first(bucket, link->tag, link->src,
							 link->kind);

	if (first)
		list_add_tail(&link->same, &first->same);
	else
		hlist_add_head(&link->bucket, bucket);
}

/* Unlink an entry. The next entry with the same key takes its place in the bucket. */
static void kofi_match_del(struct kofi_match_link *link)
{
	const bool alone = list_empty(&link->same);

	if (!hlist_unhashed(&link->bucket)) {
		if (!alone)
			hlist_add_behind(&list_next_entry(link, same)->bucket,
					 &link->bucket);
		hlist_del_init(&link->bucket);
	}
	if (!alone)
		list_del_init(&link->same);
}

/**
 * kofi_match_init() - initialize an empty table
 * @match: the table, zeroed
 * @lock: the provider's lock, under which it makes all calls with @match
 * @table: zeroed array of @heads buckets, which the provider frees
 * @heads: number of buckets from kofi_match_heads(), a power of two
 *
 * Context: Any.
 */
void kofi_match_init(struct kofi_match *match, spinlock_t *lock,
		     struct hlist_head *table, size_t heads)
{
	int i;

	match->lock = lock;
	match->table = table;
	match->shift = 32 - ilog2(heads);
	for (i = 0; i < ARRAY_SIZE(match->secret); i++)
		match->secret[i] = get_random_u64() | 1;
	INIT_LIST_HEAD(&match->wild);
	for (i = 0; i < KOFI_MATCH_LISTS; i++)
		INIT_LIST_HEAD(&match->msgs[i]);
}
EXPORT_SYMBOL_NS_GPL(kofi_match_init, KOFI_PROVIDER);

/**
 * kofi_match_msg_init() - initialize a message
 * @msg: the message
 * @what: has FI_TAGGED if the message is tagged
 * @src: number of the sender, as in kofi_match_recv_init(), or FI_ADDR_UNSPEC for a peer
 *	that no receive can name
 * @tag: the tag; unused for untagged messages
 *
 * Context: Any.
 */
void kofi_match_msg_init(struct kofi_match_msg *msg, u64 what, fi_addr_t src, u64 tag)
{
	bool tagged = what & FI_TAGGED;
	u32 kind = KOFI_MATCH_KIND_MSG | (tagged ? KOFI_MATCH_KIND_TAGGED : 0);

	tag = tagged ? tag : 0;
	kofi_match_link_init(&msg->any, tag, FI_ADDR_UNSPEC, kind);
	kofi_match_link_init(&msg->from, tag, src, kind);
	INIT_LIST_HEAD(&msg->list);
}
EXPORT_SYMBOL_NS_GPL(kofi_match_msg_init, KOFI_PROVIDER);

static struct kofi_match_recv *kofi_match_recv_of(struct kofi_match_link *link)
{
	return link ? container_of(link, struct kofi_match_recv, link) : NULL;
}

/* Return: whether a receive takes a message of the same kind with that tag and source. */
static bool kofi_match_fits(const struct kofi_match_recv *recv, u64 tag, u64 src)
{
	KOFI_MATCH_COMPARED();
	return !((recv->link.tag ^ tag) & ~recv->ignore) &&
	       (recv->link.src == FI_ADDR_UNSPEC || recv->link.src == src);
}

/* Return: the oldest receive that matches, or NULL. @wild is set if it has ignored bits. */
static __always_inline struct kofi_match_recv *
kofi_match_find_recv(const struct kofi_match *match, u64 tag, u64 src, u32 kind, bool *wild)
{
	const u32 hash = kofi_match_hash(match, tag);
	struct kofi_match_recv *found, *recv;

	found = kofi_match_recv_of(kofi_match_first(kofi_match_head(match, hash, FI_ADDR_UNSPEC),
						    tag, FI_ADDR_UNSPEC, kind));
	if (match->directed && src != FI_ADDR_UNSPEC) {
		recv = kofi_match_recv_of(kofi_match_first(kofi_match_head(match, hash, src),
							   tag, src, kind));
		if (!found || (recv && recv->seq < found->seq))
			found = recv;
	}
	if (!kind || list_empty(&match->wild))
		return found;
	list_for_each_entry(recv, &match->wild, link.same) {
		if (found && found->seq < recv->seq)
			break;
		if (kofi_match_fits(recv, tag, src)) {
			*wild = true;
			return recv;
		}
	}
	return found;
}

/* Return: the oldest message that matches, or NULL. @bucket is the receive's bucket. */
static struct kofi_match_msg *kofi_match_find_msg(const struct kofi_match *match,
						  const struct hlist_head *bucket,
						  const struct kofi_match_recv *recv)
{
	struct kofi_match_link *link;
	struct kofi_match_msg *msg;

	if (!recv->ignore) {
		link = kofi_match_first(bucket, recv->link.tag, recv->link.src,
					recv->link.kind | KOFI_MATCH_KIND_MSG);
		if (!link)
			return NULL;
		return recv->link.src == FI_ADDR_UNSPEC ?
		       container_of(link, struct kofi_match_msg, any) :
		       container_of(link, struct kofi_match_msg, from);
	}
	list_for_each_entry(msg, &match->msgs[KOFI_MATCH_TAGGED], list)
		if (kofi_match_fits(recv, msg->from.tag, msg->from.src))
			return msg;
	return NULL;
}

/**
 * kofi_match_remove() - remove a receive
 * @match: the endpoint's table
 * @recv: the receive; need not be posted
 *
 * Context: Under the provider's lock.
 */
void kofi_match_remove(struct kofi_match *match, struct kofi_match_recv *recv)
{
	lockdep_assert_held(match->lock);
	if (!hlist_unhashed(&recv->link.bucket) || !list_empty(&recv->link.same))
		match->directed -= !recv->ignore && recv->link.src != FI_ADDR_UNSPEC;
	kofi_match_del(&recv->link);
}
EXPORT_SYMBOL_NS_GPL(kofi_match_remove, KOFI_PROVIDER);

/*
 * Have the next entry with the same key take an entry's place. The ring has no head, and hlist has
 * no function for that.
 */
static __always_inline void kofi_match_succeed(struct kofi_match_link *link)
{
	struct hlist_node **pprev = link->bucket.pprev, *after = link->bucket.next;
	struct kofi_match_link *next = list_next_entry(link, same);
	struct list_head *last = link->same.prev;

	next->bucket.next = after;
	next->bucket.pprev = pprev;
	*pprev = &next->bucket;
	if (unlikely(after))
		after->pprev = &next->bucket.next;
	next->same.prev = last;
	last->next = &next->same;
	INIT_LIST_HEAD(&link->same);
}

/* Take a receive with ignored bits, which is in a list. */
static noinline struct kofi_match_recv *kofi_match_take_wild(struct kofi_match *match,
							     struct kofi_match_recv *recv)
{
	kofi_match_remove(match, recv);
	return recv;
}

/**
 * kofi_match_remove_msg() - remove a message
 * @match: the endpoint's table
 * @msg: the message, claimed or not; need not be waiting
 *
 * Context: Under the provider's lock.
 */
void kofi_match_remove_msg(struct kofi_match *match, struct kofi_match_msg *msg)
{
	lockdep_assert_held(match->lock);
	kofi_match_del(&msg->any);
	kofi_match_del(&msg->from);
	list_del_init(&msg->list);
}
EXPORT_SYMBOL_NS_GPL(kofi_match_remove_msg, KOFI_PROVIDER);

/* Handle any receive; kofi_match_post() handles the most frequent case itself. */
static noinline struct kofi_match_msg *kofi_match_post_any(struct kofi_match *match,
							   struct hlist_head *bucket,
							   struct kofi_match_recv *recv)
{
	struct kofi_match_msg *msg = kofi_match_find_msg(match, bucket, recv);

	if (msg) {
		kofi_match_remove_msg(match, msg);
		return msg;
	}
	recv->seq = ++match->seq;
	if (recv->ignore) {
		list_add_tail(&recv->link.same, &match->wild);
		return NULL;
	}
	kofi_match_add(bucket, &recv->link);
	match->directed += recv->link.src != FI_ADDR_UNSPEC;
	return NULL;
}

/* Add a receive to those with the same key. Inline, unlike list_add_tail() with its checks. */
static __always_inline void kofi_match_again(struct list_head *first, struct list_head *new)
{
	struct list_head *last = first->prev;

	new->next = first;
	new->prev = last;
	last->next = new;
	first->prev = new;
}

/**
 * kofi_match_post() - post a receive
 * @match: the endpoint's table
 * @recv: the receive, not posted
 *
 * The receive takes the oldest message that matches, or is posted if there is none. The
 * provider posts a multi-receive buffer again until this returns NULL or the buffer is
 * full.
 *
 * Context: Under the provider's lock.
 * Return: the message, removed from the table; or NULL, and @recv is posted.
 */
struct kofi_match_msg *kofi_match_post(struct kofi_match *match,
				       struct kofi_match_recv *recv)
{
	const u64 tag = recv->link.tag, src = recv->link.src;
	struct kofi_match_link *link;
	struct hlist_head *bucket;

	lockdep_assert_held(match->lock);
	bucket = kofi_match_bucket(match, tag, src);
	if (unlikely(recv->ignore))
		return kofi_match_post_any(match, bucket, recv);
	hlist_for_each_entry(link, bucket, bucket) {
		KOFI_MATCH_COMPARED();
		if (link->tag != tag || link->src != src)
			continue;
		if (link->kind != recv->link.kind)
			return kofi_match_post_any(match, bucket, recv);
		/* No message waits that the earlier receive would have taken. */
		kofi_match_again(&link->same, &recv->link.same);
		goto posted;
	}
	/* Nothing in the bucket has the receive's key. */
	hlist_add_head(&recv->link.bucket, bucket);
posted:
	recv->seq = ++match->seq;
	if (src != FI_ADDR_UNSPEC)
		match->directed++;
	return NULL;
}
EXPORT_SYMBOL_NS_GPL(kofi_match_post, KOFI_PROVIDER);

/**
 * kofi_match_find() - find a receive for a message that arrived
 * @match: the endpoint's table
 * @what: has FI_TAGGED if the message is tagged
 * @src: the sender, as in kofi_match_msg_init()
 * @tag: the tag; 0 for untagged messages
 *
 * The oldest receive that matches takes the message and is removed. A multi-receive buffer
 * stays posted until kofi_match_remove(), which the provider calls when less than
 * FI_OPT_MIN_MULTI_RECV is left of it.
 *
 * Context: Under the provider's lock.
 * Return: the receive; or NULL, and the provider calls kofi_match_wait() or drops the message.
 */
struct kofi_match_recv *kofi_match_find(struct kofi_match *match, u64 what, fi_addr_t src,
					u64 tag)
{
	struct kofi_match_recv *recv;
	bool wild = false;

	lockdep_assert_held(match->lock);
	recv = kofi_match_find_recv(match, tag, src,
				    what & FI_TAGGED ? KOFI_MATCH_KIND_TAGGED : 0, &wild);
	if (!recv || recv->link.multi)
		return recv;
	if (unlikely(wild))
		return kofi_match_take_wild(match, recv);
	if (likely(list_empty(&recv->link.same)))
		__hlist_del(&recv->link.bucket);
	else
		kofi_match_succeed(&recv->link);
	if (recv->link.src != FI_ADDR_UNSPEC)
		match->directed--;
	INIT_HLIST_NODE(&recv->link.bucket);
	return recv;
}
EXPORT_SYMBOL_NS_GPL(kofi_match_find, KOFI_PROVIDER);

/**
 * kofi_match_wait() - add a message that waits for a receive
 * @match: the endpoint's table
 * @msg: the message, initialised by kofi_match_msg_init(). kofi_match_find() has returned NULL
 *	for it, and no receive was posted since then
 *
 * Context: Under the provider's lock.
 */
void kofi_match_wait(struct kofi_match *match, struct kofi_match_msg *msg)
{
	const u32 hash = kofi_match_hash(match, msg->from.tag);
	const bool tagged = msg->from.kind & KOFI_MATCH_KIND_TAGGED;

	lockdep_assert_held(match->lock);
	kofi_match_add(kofi_match_head(match, hash, FI_ADDR_UNSPEC), &msg->any);
	if (msg->from.src != FI_ADDR_UNSPEC)
		kofi_match_add(kofi_match_head(match, hash, msg->from.src), &msg->from);
	list_add_tail(&msg->list,
		      &match->msgs[tagged ? KOFI_MATCH_TAGGED : KOFI_MATCH_UNTAGGED]);
}
EXPORT_SYMBOL_NS_GPL(kofi_match_wait, KOFI_PROVIDER);

/**
 * kofi_match_arrive() - find a receive for a message that arrived, or have the message wait
 * @match: the endpoint's table
 * @msg: the message, initialised by kofi_match_msg_init()
 *
 * Calls kofi_match_find(), and kofi_match_wait() if that finds no receive.
 *
 * Context: Under the provider's lock.
 * Return: the receive; or NULL, and @msg waits for a receive.
 */
struct kofi_match_recv *kofi_match_arrive(struct kofi_match *match,
					  struct kofi_match_msg *msg)
{
	const u64 what = msg->from.kind & KOFI_MATCH_KIND_TAGGED ? FI_TAGGED : FI_MSG;
	struct kofi_match_recv *recv;

	recv = kofi_match_find(match, what, msg->from.src, msg->from.tag);
	if (!recv)
		kofi_match_wait(match, msg);
	return recv;
}
EXPORT_SYMBOL_NS_GPL(kofi_match_arrive, KOFI_PROVIDER);

/* Claim a message: from now on only the context finds it. */
static void kofi_match_claim(struct kofi_match *match, struct kofi_match_msg *msg,
			     void *context)
{
	kofi_match_remove_msg(match, msg);
	msg->any.tag = (uintptr_t)context;
	msg->any.kind |= KOFI_MATCH_KIND_CLAIMED;
	kofi_match_add(kofi_match_bucket(match, msg->any.tag, FI_ADDR_UNSPEC), &msg->any);
	list_add_tail(&msg->list, &match->msgs[KOFI_MATCH_CLAIMED]);
}

/**
 * kofi_match_peek() - find a waiting or a claimed message
 * @match: the endpoint's table
 * @recv: describes the message, as for kofi_match_post(); isn't posted
 * @flags: FI_PEEK, optionally with FI_CLAIM or FI_DISCARD; or FI_CLAIM, optionally with
 *	FI_DISCARD. Other flags are ignored
 *
 * fi_tagged(3). FI_PEEK finds the oldest message that matches @recv. The message keeps
 * waiting; FI_CLAIM reserves it for a call with FI_CLAIM but not FI_PEEK and with the same
 * context and kind of message; FI_DISCARD removes it. FI_CLAIM without FI_PEEK finds the
 * oldest message that was claimed with @recv's context, and removes it.
 *
 * Context: Under the provider's lock.
 * Return: the message; or NULL, and the operation completes with FI_ENOMSG.
 */
struct kofi_match_msg *kofi_match_peek(struct kofi_match *match,
				       struct kofi_match_recv *recv, u64 flags)
{
	u64 context = (uintptr_t)recv->context;
	struct kofi_match_link *link;
	struct hlist_head *bucket;
	struct kofi_match_msg *msg;

	lockdep_assert_held(match->lock);
	if (flags & FI_PEEK) {
		bucket = kofi_match_bucket(match, recv->link.tag, recv->link.src);
		msg = kofi_match_find_msg(match, bucket, recv);
	} else {
		bucket = kofi_match_bucket(match, context, FI_ADDR_UNSPEC);
		link = kofi_match_first(bucket, context, FI_ADDR_UNSPEC,
					recv->link.kind | KOFI_MATCH_KIND_MSG |
					KOFI_MATCH_KIND_CLAIMED);
		msg = link ? container_of(link, struct kofi_match_msg, any) : NULL;
	}
	if (!msg)
		return NULL;
	if (!(flags & FI_PEEK) || flags & FI_DISCARD)
		kofi_match_remove_msg(match, msg);
	else if (flags & FI_CLAIM)
		kofi_match_claim(match, msg, recv->context);
	return msg;
}
EXPORT_SYMBOL_NS_GPL(kofi_match_peek, KOFI_PROVIDER);

static struct kofi_match_recv *kofi_match_older(struct kofi_match_recv *found,
						struct kofi_match_link *link,
						void *context)
{
	struct kofi_match_recv *recv = kofi_match_recv_of(link);

	if (recv->context != context || (found && found->seq < recv->seq))
		return found;
	return recv;
}

/**
 * kofi_match_cancel() - find and remove a receive for fi_cancel()
 * @match: the endpoint's table
 * @context: context of the receive
 *
 * Searches the whole table.
 *
 * Context: Under the provider's lock.
 * Return: the oldest posted receive with this context, or NULL.
 */
struct kofi_match_recv *kofi_match_cancel(struct kofi_match *match, void *context)
{
	struct kofi_match_link *link, *other;
	struct kofi_match_recv *found = NULL;
	u32 i;

	lockdep_assert_held(match->lock);
	list_for_each_entry(link, &match->wild, same)
		found = kofi_match_older(found, link, context);
	for (i = 0; i < 1UL << (32 - match->shift); i++) {
		hlist_for_each_entry(link, &match->table[i], bucket) {
			if (link->kind & KOFI_MATCH_KIND_MSG)
				continue;
			found = kofi_match_older(found, link, context);
			list_for_each_entry(other, &link->same, same)
				found = kofi_match_older(found, other, context);
		}
	}
	if (found)
		kofi_match_remove(match, found);
	return found;
}
EXPORT_SYMBOL_NS_GPL(kofi_match_cancel, KOFI_PROVIDER);

/**
 * kofi_match_cancel_tag() - find and remove a receive with one tag
 * @match: the endpoint's table
 * @tag: the tag, of which the receive ignores no bits, for messages of any peer
 * @context: context of the receive
 *
 * Searches only the receives with the tag.
 *
 * Context: Under the provider's lock.
 * Return: the oldest such receive with this context, or NULL.
 */
struct kofi_match_recv *kofi_match_cancel_tag(struct kofi_match *match, u64 tag, void *context)
{
	const u64 any = FI_ADDR_UNSPEC;
	struct kofi_match_link *first, *link;
	struct kofi_match_recv *recv;

	lockdep_assert_held(match->lock);
	first = kofi_match_first(kofi_match_bucket(match, tag, any), tag, any,
				 KOFI_MATCH_KIND_TAGGED);
	if (!first)
		return NULL;
	link = first;
	do {
		recv = kofi_match_recv_of(link);
		if (recv->context == context) {
			kofi_match_remove(match, recv);
			return recv;
		}
		link = list_next_entry(link, same);
	} while (link != first);
	return NULL;
}
EXPORT_SYMBOL_NS_GPL(kofi_match_cancel_tag, KOFI_PROVIDER);

/**
 * kofi_match_pop_msg() - remove any message, when the endpoint is closed
 * @match: the endpoint's table
 *
 * Context: Under the provider's lock.
 * Return: the oldest message of a list, or NULL when none is left. Claimed messages are
 * included.
 */
struct kofi_match_msg *kofi_match_pop_msg(struct kofi_match *match)
{
	struct kofi_match_msg *msg = NULL;
	int i;

	lockdep_assert_held(match->lock);
	for (i = 0; i < KOFI_MATCH_LISTS && !msg; i++)
		msg = list_first_entry_or_null(&match->msgs[i], struct kofi_match_msg,
					       list);
	if (msg)
		kofi_match_remove_msg(match, msg);
	return msg;
}
EXPORT_SYMBOL_NS_GPL(kofi_match_pop_msg, KOFI_PROVIDER);
