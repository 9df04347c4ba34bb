// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Matching of receives and messages, fi_msg(3) and fi_tagged(3). Receives and messages
 * are hashed by tag and peer. In a bucket there is one entry of each key; the
 * others of that key are in a ring with it, oldest first. So a bucket is as long as it
 * has keys, however many equal tags a peer sends.
 *
 * A message is there twice: for receives from anybody and for those from its peer. A
 * receive with ignored bits is in a list instead, and looks through a list.
 */
#include <linux/hash.h>
#include <linux/lockdep.h>
#include <linux/module.h>
#include <linux/random.h>
#include <kofi/match.h>

/* The suite counts how many entries are compared. */
#ifndef KOFI_MATCH_COMPARED
#define KOFI_MATCH_COMPARED()	do { } while (0)
#endif

/* Bits of kofi_match_link.kind, which isn't hashed: a call looks in one bucket only. */
enum {
	KIND_TAGGED	= BIT(0),
	KIND_MSG	= BIT(1),	/* else a receive */
	KIND_CLAIMED	= BIT(2),	/* with KIND_MSG */
};

/* Posted receives are part of operations, whose size is limited. */
static_assert(sizeof(struct kofi_match_recv) <= 80);

/* Of the tag alone: the source, which is a number of the provider's, moves the bucket only. */
static u32 kofi_match_hash(const struct kofi_match *match, u64 tag)
{
	return hsiphash_2u32(lower_32_bits(tag), upper_32_bits(tag), &match->seed);
}

static struct hlist_head *kofi_match_head(const struct kofi_match *match, u32 hash, u64 src)
{
	return &match->table[(hash + lower_32_bits(src) * GOLDEN_RATIO_32) & match->mask];
}

static struct hlist_head *kofi_match_bucket(const struct kofi_match *match, u64 tag, u64 src)
{
	return kofi_match_head(match, kofi_match_hash(match, tag), src);
}

/* Return: the oldest of a key, or NULL. */
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

/* The next of the same key takes the place in the bucket. */
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

static void kofi_match_link_init(struct kofi_match_link *link, u64 tag, u64 src, u32 kind)
{
	INIT_HLIST_NODE(&link->bucket);
	INIT_LIST_HEAD(&link->same);
	link->tag = tag;
	link->src = src;
	link->kind = kind;
	link->multi = false;
}

/**
 * kofi_match_init() - begin with no receives and no messages
 * @match: zeroed
 * @lock: the provider's, under which all calls with @match are made
 * @table: so many buckets, zeroed; the provider's to be freed
 * @heads: a power of two, by kofi_match_heads()
 *
 * Context: Any.
 */
void kofi_match_init(struct kofi_match *match, spinlock_t *lock,
		     struct hlist_head *table, size_t heads)
{
	int i;

	match->lock = lock;
	match->table = table;
	match->mask = heads - 1;
	get_random_bytes(&match->seed, sizeof(match->seed));
	INIT_LIST_HEAD(&match->wild);
	for (i = 0; i < KOFI_MATCH_LISTS; i++)
		INIT_LIST_HEAD(&match->msgs[i]);
}
EXPORT_SYMBOL_NS_GPL(kofi_match_init, KOFI_PROVIDER);

/**
 * kofi_match_recv_init() - describe a receive
 * @recv: the receive
 * @what: has FI_TAGGED, or the receive takes untagged messages
 * @src: the peer whose messages it takes, by any number that the provider has for
 *	a peer and uses for no other, or FI_ADDR_UNSPEC for all messages
 * @tag: the tag; without meaning if untagged
 * @ignore: bits of it that don't matter, likewise
 * @context: of the operation
 *
 * The provider sets @recv->link.multi, if the buffer shall take messages until
 * kofi_match_remove() is called.
 *
 * Context: Any.
 */
void kofi_match_recv_init(struct kofi_match_recv *recv, u64 what, fi_addr_t src,
			  u64 tag, u64 ignore, void *context)
{
	bool tagged = what & FI_TAGGED;

	kofi_match_link_init(&recv->link, tagged ? tag : 0, src,
			     tagged ? KIND_TAGGED : 0);
	recv->ignore = tagged ? ignore : 0;
	recv->context = context;
}
EXPORT_SYMBOL_NS_GPL(kofi_match_recv_init, KOFI_PROVIDER);

/**
 * kofi_match_msg_init() - describe a message
 * @msg: the message
 * @what: has FI_TAGGED, or the message is untagged
 * @src: who sent it, as in kofi_match_recv_init(); or FI_ADDR_UNSPEC for a peer that
 *	no receive can name
 * @tag: the tag; without meaning if untagged
 *
 * Context: Any.
 */
void kofi_match_msg_init(struct kofi_match_msg *msg, u64 what, fi_addr_t src, u64 tag)
{
	bool tagged = what & FI_TAGGED;
	u32 kind = KIND_MSG | (tagged ? KIND_TAGGED : 0);

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

/* What a list is searched for; kind and list are the same already. */
static bool kofi_match_fits(const struct kofi_match_recv *recv, u64 tag, u64 src)
{
	KOFI_MATCH_COMPARED();
	return !((recv->link.tag ^ tag) & ~recv->ignore) &&
	       (recv->link.src == FI_ADDR_UNSPEC || recv->link.src == src);
}

/* Return: the oldest receive that fits, or NULL. */
static struct kofi_match_recv *kofi_match_find_recv(const struct kofi_match *match,
						    const struct kofi_match_key *key)
{
	struct kofi_match_recv *found, *recv;

	found = kofi_match_recv_of(kofi_match_first(kofi_match_head(match, key->hash,
								    FI_ADDR_UNSPEC),
						    key->tag, FI_ADDR_UNSPEC, key->kind));
	if (match->directed && key->src != FI_ADDR_UNSPEC) {
		recv = kofi_match_recv_of(kofi_match_first(kofi_match_head(match, key->hash,
									   key->src),
							   key->tag, key->src, key->kind));
		if (!found || (recv && recv->seq < found->seq))
			found = recv;
	}
	if (!key->kind)
		return found;
	list_for_each_entry(recv, &match->wild, link.same) {
		if (found && found->seq < recv->seq)
			break;
		if (kofi_match_fits(recv, key->tag, key->src))
			return recv;
	}
	return found;
}

/* Return: the oldest message that fits, or NULL. @bucket is the receive's. */
static struct kofi_match_msg *kofi_match_find_msg(const struct kofi_match *match,
						  const struct hlist_head *bucket,
						  const struct kofi_match_recv *recv)
{
	struct kofi_match_link *link;
	struct kofi_match_msg *msg;

	if (!recv->ignore) {
		link = kofi_match_first(bucket, recv->link.tag, recv->link.src,
					recv->link.kind | KIND_MSG);
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
 * kofi_match_remove() - take a receive off
 * @match: the endpoint's
 * @recv: the receive; one that isn't posted may be named, too
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

/**
 * kofi_match_remove_msg() - take a message off
 * @match: the endpoint's
 * @msg: the message, claimed or not; one that isn't waiting may be named, too
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

/**
 * kofi_match_post() - post a receive
 * @match: the endpoint's
 * @recv: the receive, not posted
 *
 * It takes the oldest message that it fits, or is posted if there is none. A
 * multi-receive buffer with room for more is then posted again, and so on until it
 * has taken all messages that it fits, or has no room.
 *
 * Context: Under the provider's lock.
 * Return: the message, which isn't waiting any more; or NULL, and @recv is posted.
 */
struct kofi_match_msg *kofi_match_post(struct kofi_match *match,
				       struct kofi_match_recv *recv)
{
	struct hlist_head *bucket;
	struct kofi_match_msg *msg;

	lockdep_assert_held(match->lock);
	bucket = kofi_match_bucket(match, recv->link.tag, recv->link.src);
	msg = kofi_match_find_msg(match, bucket, recv);
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
EXPORT_SYMBOL_NS_GPL(kofi_match_post, KOFI_PROVIDER);

/**
 * kofi_match_find() - look for a receive for a message that came
 * @match: the endpoint's
 * @key: set to what the message is found by, for kofi_match_wait()
 * @what: has FI_TAGGED, or the message is untagged
 * @src: as in kofi_match_msg_init()
 * @tag: likewise
 *
 * The oldest receive that fits takes the message. It isn't posted any more, unless it is a
 * multi-receive buffer: that keeps its place until kofi_match_remove(), which the
 * provider calls when less room is left than FI_OPT_MIN_MULTI_RECV says.
 *
 * Context: Under the provider's lock.
 * Return: the receive; or NULL, and the message is to wait, or is forgotten.
 */
struct kofi_match_recv *kofi_match_find(struct kofi_match *match, struct kofi_match_key *key,
					u64 what, fi_addr_t src, u64 tag)
{
	const bool tagged = what & FI_TAGGED;
	struct kofi_match_recv *recv;

	lockdep_assert_held(match->lock);
	key->tag = tagged ? tag : 0;
	key->src = src;
	key->kind = tagged ? KIND_TAGGED : 0;
	key->hash = kofi_match_hash(match, key->tag);
	recv = kofi_match_find_recv(match, key);
	if (recv && !recv->link.multi)
		kofi_match_remove(match, recv);
	return recv;
}
EXPORT_SYMBOL_NS_GPL(kofi_match_find, KOFI_PROVIDER);

/**
 * kofi_match_wait() - have a message wait for a receive
 * @match: the endpoint's
 * @key: the message's, that kofi_match_find() found no receive for; no receive was posted
 *	since
 * @msg: takes its place; nothing of it was set
 *
 * Context: Under the provider's lock.
 */
void kofi_match_wait(struct kofi_match *match, const struct kofi_match_key *key,
		     struct kofi_match_msg *msg)
{
	const u32 kind = KIND_MSG | key->kind;

	lockdep_assert_held(match->lock);
	kofi_match_link_init(&msg->any, key->tag, FI_ADDR_UNSPEC, kind);
	kofi_match_link_init(&msg->from, key->tag, key->src, kind);
	kofi_match_add(kofi_match_head(match, key->hash, FI_ADDR_UNSPEC), &msg->any);
	if (key->src != FI_ADDR_UNSPEC)
		kofi_match_add(kofi_match_head(match, key->hash, key->src), &msg->from);
	list_add_tail(&msg->list,
		      &match->msgs[key->kind ? KOFI_MATCH_TAGGED : KOFI_MATCH_UNTAGGED]);
}
EXPORT_SYMBOL_NS_GPL(kofi_match_wait, KOFI_PROVIDER);

/**
 * kofi_match_arrive() - a message came
 * @match: the endpoint's
 * @msg: the message, from kofi_match_msg_init()
 *
 * kofi_match_find(), and kofi_match_wait() if there is no receive.
 *
 * Context: Under the provider's lock.
 * Return: the receive; or NULL, and @msg waits for one.
 */
struct kofi_match_recv *kofi_match_arrive(struct kofi_match *match,
					  struct kofi_match_msg *msg)
{
	const u64 what = msg->from.kind & KIND_TAGGED ? FI_TAGGED : FI_MSG;
	struct kofi_match_recv *recv;
	struct kofi_match_key key;

	recv = kofi_match_find(match, &key, what, msg->from.src, msg->from.tag);
	if (!recv)
		kofi_match_wait(match, &key, msg);
	return recv;
}
EXPORT_SYMBOL_NS_GPL(kofi_match_arrive, KOFI_PROVIDER);

/* From here on it is found by the context alone. */
static void kofi_match_claim(struct kofi_match *match, struct kofi_match_msg *msg,
			     void *context)
{
	kofi_match_remove_msg(match, msg);
	msg->any.tag = (uintptr_t)context;
	msg->any.kind |= KIND_CLAIMED;
	kofi_match_add(kofi_match_bucket(match, msg->any.tag, FI_ADDR_UNSPEC), &msg->any);
	list_add_tail(&msg->list, &match->msgs[KOFI_MATCH_CLAIMED]);
}

/**
 * kofi_match_peek() - look for a message, or at one that was claimed
 * @match: the endpoint's
 * @recv: which message it is, as for kofi_match_post(); it isn't posted
 * @flags: FI_PEEK, and perhaps FI_CLAIM or FI_DISCARD; or FI_CLAIM, and perhaps
 *	FI_DISCARD. Others don't matter
 *
 * fi_tagged(3). With FI_PEEK the oldest message that @recv fits: it goes on waiting;
 * with FI_CLAIM too, for none but a call with FI_CLAIM, without FI_PEEK, and the same
 * context, tagged or not as this one; with FI_DISCARD it doesn't wait any more. With
 * FI_CLAIM alone the oldest message that was claimed by @recv's context, which doesn't
 * wait any more, either.
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
					recv->link.kind | KIND_MSG | KIND_CLAIMED);
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
 * kofi_match_cancel() - take a receive off that its caller doesn't want any more
 * @match: the endpoint's
 * @context: the receive's
 *
 * fi_cancel() of a receive. It looks at all that there is.
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
	for (i = 0; i <= match->mask; i++) {
		hlist_for_each_entry(link, &match->table[i], bucket) {
			if (link->kind & KIND_MSG)
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
 * kofi_match_pop_msg() - take any message off, when the endpoint is closed
 * @match: the endpoint's
 *
 * Context: Under the provider's lock.
 * Return: the oldest of one of the lists, claimed messages among them; or NULL when
 * none waits any more.
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
