// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hints of fi_getinfo(3): which entries match, and how a matching entry is reduced to what
 * the hints ask for. The functions are pure. They follow the rules of attr.c, and a few more
 * that need several fields. A zero field or a missing attribute of hints asks for nothing.
 */
#include <linux/string.h>
#include "attr.h"
#include "kofi.h"

#define KOFI_MSG_DIRS	(FI_SEND | FI_RECV)
#define KOFI_RMA_DIRS	(FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

/* An entry has these capabilities only if hints ask for them. Others are set by default. */
#define KOFI_PRIMARY	(FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | \
			 FI_DIRECTED_RECV | KOFI_MSG_DIRS | KOFI_RMA_DIRS)

/* Secondary capabilities that need a request as well, because they slow down each receive. */
#define KOFI_SOURCES	(FI_SOURCE | FI_SOURCE_ERR)

/* Capabilities that concern only the receiving or only the sending side. */
#define KOFI_RX_ONLY	(FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | \
			 FI_MULTI_RECV | KOFI_SOURCES | FI_RMA_EVENT | \
			 FI_DIRECTED_RECV)
#define KOFI_TX_ONLY	(FI_SEND | FI_READ | FI_WRITE | FI_FENCE)

/* Registration modes that only matter to the target of RMA. */
#define KOFI_MR_TARGET	(FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | \
			 FI_MR_RMA_EVENT)

static u8 kofi_level(const struct kofi_name *names, u64 value)
{
	for (; names->name; names++)
		if (names->value == value)
			return names->level;
	return 0;
}

static bool kofi_field_serves(const struct kofi_field *field, const void *have,
			      const void *want)
{
	u64 h = kofi_field_get(field, have), w = kofi_field_get(field, want);

	switch (field->rule) {
	case KOFI_MAX:
		return w <= h;
	case KOFI_SUBSET:
		return !(w & ~h);
	case KOFI_SAME:
		return !w || !h || w == h;
	case KOFI_IS:
		return !w || w == h;
	case KOFI_LEVEL:
		return kofi_level(field->names, w) >=
		       kofi_level(field->names, h);
	default:
		return true;
	}
}

static bool kofi_name_serves(const struct kofi_field *field, const void *have,
			     const void *want)
{
	const char *h = *(const char **)(have + field->offset);
	const char *w = *(const char **)(want + field->offset);

	return field->rule != KOFI_IS || !w || (h && !strcasecmp(h, w));
}

/* Report a field that doesn't match. Return: false. */
static bool kofi_refuse(struct kofi_mismatch *why, const struct kofi_struct *type,
			const struct kofi_field *field, const void *have, const void *want)
{
	why->type = type->title;
	why->field = field->name;
	kofi_field_text(field, have, why->offer, sizeof(why->offer));
	kofi_field_text(field, want, why->hint, sizeof(why->hint));
	return false;
}

/* The same for a field whose rule is code. */
static bool kofi_refuse_named(struct kofi_mismatch *why, const struct kofi_struct *type,
			      const char *name, const void *have, const void *want)
{
	const struct kofi_field *field = type->fields;

	while (strcmp(field->name, name))
		field++;
	return kofi_refuse(why, type, field, have, want);
}

static bool kofi_struct_serves(const struct kofi_struct *type, const void *have,
			       const void *want, struct kofi_mismatch *why)
{
	const struct kofi_field *field;

	for (field = type->fields; want && field->name; field++)
		if (!(field->show == KOFI_STR ? kofi_name_serves :
						kofi_field_serves)(field, have,
								   want))
			return kofi_refuse(why, type, field, have, want);
	return true;
}

/* Modes for targets of RMA don't concern a caller that isn't a target. */
static u32 kofi_needed_mr_mode(u32 mr_mode, u64 caps)
{
	const u64 target = FI_REMOTE_READ | FI_REMOTE_WRITE;

	if (caps & (FI_RMA | FI_ATOMIC) &&
	    (caps & target || !(caps & (FI_READ | FI_WRITE))))
		return mr_mode;
	return caps ? mr_mode & ~KOFI_MR_TARGET : mr_mode;
}

/* A table serves as a map: a caller that asks for a map must take any fi_addr_t. */
static bool kofi_av_type_serves(enum fi_av_type have, enum fi_av_type want)
{
	return have != FI_AV_MAP || want != FI_AV_TABLE;
}

static bool kofi_domain_serves(const struct fi_domain_attr *have,
			       const struct fi_domain_attr *want, u64 caps,
			       struct kofi_mismatch *why)
{
	u32 mr_mode = kofi_needed_mr_mode(have->mr_mode, caps);

	if (!want)
		return true;
	if (!kofi_struct_serves(&kofi_domain_struct, have, want, why))
		return false;
	if (!kofi_av_type_serves(have->av_type, want->av_type))
		return kofi_refuse_named(why, &kofi_domain_struct, "av_type", have, want);
	/* Zero hints don't imply that the caller registers all local memory. */
	if ((want->mr_mode && mr_mode & ~want->mr_mode) ||
	    mr_mode & ~want->mr_mode & FI_MR_LOCAL)
		return kofi_refuse_named(why, &kofi_domain_struct, "mr_mode", have, want);
	if (want->mode && have->mode & ~want->mode)
		return kofi_refuse_named(why, &kofi_domain_struct, "mode", have, want);
	return true;
}

/* Without RMA the order of transfers to a peer's memory has no meaning. */
static struct fi_ep_attr kofi_ep_hints(const struct fi_info *hints)
{
	struct fi_ep_attr want = *hints->ep_attr;

	if (!(hints->caps & (FI_RMA | FI_ATOMIC))) {
		want.max_order_raw_size = 0;
		want.max_order_war_size = 0;
		want.max_order_waw_size = 0;
	}
	return want;
}

static bool kofi_ep_serves(const struct fi_info *info, const struct fi_info *hints,
			   struct kofi_mismatch *why)
{
	struct fi_ep_attr have = *info->ep_attr, want;

	if (!hints->ep_attr)
		return true;
	want = kofi_ep_hints(hints);
	/* The domain limits the contexts of an endpoint. */
	have.tx_ctx_cnt = info->domain_attr->max_ep_tx_ctx;
	have.rx_ctx_cnt = info->domain_attr->max_ep_rx_ctx;
	/* The highest bit of a tag format is the number of bits in a tag. */
	if (hints->caps & FI_TAGGED && fls64(want.mem_tag_format) > fls64(have.mem_tag_format))
		return kofi_refuse_named(why, &kofi_ep_struct, "mem_tag_format", &have, &want);
	return kofi_struct_serves(&kofi_ep_struct, &have, &want, why);
}

static_assert(offsetof(struct fi_tx_attr, caps) == offsetof(struct fi_rx_attr, caps));
static_assert(offsetof(struct fi_tx_attr, mode) == offsetof(struct fi_rx_attr, mode));

/*
 * @have and @want are of @type, for either direction: in both types caps and mode have the same
 * place. @other has the capabilities of the other direction.
 */
static bool kofi_side_serves(const struct kofi_struct *type, const void *have, const void *want,
			     u64 other, u64 mode, struct kofi_mismatch *why)
{
	const struct fi_tx_attr *h = have, *w = want;

	if (!want)
		return true;
	if (w->caps & ~h->caps & ~other)
		return kofi_refuse_named(why, type, "caps", have, want);
	if (h->mode & ~(w->mode ?: mode))
		return kofi_refuse_named(why, type, "mode", have, want);
	return kofi_struct_serves(type, have, want, why);
}

static bool kofi_is_sockaddr(u32 format)
{
	return format >= FI_SOCKADDR && format <= FI_SOCKADDR_IN6;
}

/* FI_SOCKADDR covers FI_SOCKADDR_IN and FI_SOCKADDR_IN6, in hints and in entries. */
static bool kofi_addr_format_serves(u32 have, u32 want)
{
	if (!want || !have || want == have)
		return true;
	return kofi_is_sockaddr(want) && kofi_is_sockaddr(have) &&
	       (want == FI_SOCKADDR || have == FI_SOCKADDR);
}

/**
 * kofi_info_serves() - compare an entry with hints
 * @info: a provider's entry, with all its attributes
 * @hints: the caller's hints, or NULL
 * @why: takes the first field that doesn't match
 *
 * Context: Any.
 * Return: whether the entry matches.
 */
bool kofi_info_serves(const struct fi_info *info, const struct fi_info *hints,
		      struct kofi_mismatch *why)
{
	if (!hints)
		return true;
	if (info->mode & ~hints->mode)
		return kofi_refuse_named(why, &kofi_info_struct, "mode", info, hints);
	if (!kofi_addr_format_serves(info->addr_format, hints->addr_format))
		return kofi_refuse_named(why, &kofi_info_struct, "addr_format", info, hints);
	return kofi_struct_serves(&kofi_info_struct, info, hints, why) &&
	       kofi_struct_serves(&kofi_fabric_struct, info->fabric_attr,
				  hints->fabric_attr, why) &&
	       kofi_domain_serves(info->domain_attr, hints->domain_attr, hints->caps, why) &&
	       kofi_ep_serves(info, hints, why) &&
	       kofi_side_serves(&kofi_tx_struct, info->tx_attr, hints->tx_attr, KOFI_RX_ONLY,
				hints->mode, why) &&
	       kofi_side_serves(&kofi_rx_struct, info->rx_attr, hints->rx_attr, KOFI_TX_ONLY,
				hints->mode, why);
}

static u64 kofi_both_ways(u64 caps, u64 all)
{
	if (caps & (FI_MSG | FI_TAGGED) && !(caps & KOFI_MSG_DIRS))
		caps |= all & KOFI_MSG_DIRS;
	if (caps & (FI_RMA | FI_ATOMIC) && !(caps & KOFI_RMA_DIRS))
		caps |= all & KOFI_RMA_DIRS;
	return caps;
}

/**
 * kofi_ep_caps() - capabilities of an endpoint with their directions
 * @caps: fi_info.caps: a kind of transfer without direction means all directions, and 0
 *	means @all
 * @all: capabilities of the provider
 *
 * fi_getinfo(3).
 *
 * Context: Any.
 * Return: the capabilities with their directions.
 */
u64 kofi_ep_caps(u64 caps, u64 all)
{
	return caps ? kofi_both_ways(caps, all) : all;
}
EXPORT_SYMBOL_NS_GPL(kofi_ep_caps, KOFI_PROVIDER);

/* Reduce the capabilities @have to @want and to those that entries have by default. */
static u64 kofi_narrow_caps(u64 info_caps, u64 want, u64 have)
{
	u64 free = have & ~KOFI_PRIMARY, caps;

	if (want)
		caps = (want & have & KOFI_PRIMARY) |
		       (free & (want | ~KOFI_SOURCES));
	else
		caps = (info_caps & have & KOFI_PRIMARY) | free;
	return kofi_both_ways(caps, have);
}

static void kofi_narrow_struct(const struct kofi_struct *type, void *have,
			       const void *want)
{
	const struct kofi_field *field;

	for (field = type->fields; want && field->name; field++)
		if (field->take && kofi_field_get(field, want))
			memcpy(have + field->offset, want + field->offset,
			       field->size);
}

/**
 * kofi_info_narrow() - reduce an entry to what the hints ask for
 * @info: a copy of a matching entry
 * @hints: the caller's hints, or NULL
 *
 * Context: Any.
 */
void kofi_info_narrow(struct fi_info *info, const struct fi_info *hints)
{
	static const struct fi_info nothing;
	const struct fi_tx_attr *tx;
	const struct fi_rx_attr *rx;
	struct fi_ep_attr ep;

	hints = hints ?: &nothing;
	tx = hints->tx_attr;
	rx = hints->rx_attr;
	info->caps = kofi_narrow_caps(info->caps, hints->caps, info->caps);
	info->tx_attr->caps = kofi_narrow_caps(info->caps, tx ? tx->caps : 0,
					       info->tx_attr->caps);
	info->rx_attr->caps = kofi_narrow_caps(info->caps, rx ? rx->caps : 0,
					       info->rx_attr->caps);
	info->domain_attr->mr_mode =
		kofi_needed_mr_mode(info->domain_attr->mr_mode, info->caps);
	/*
	 * Unlike limits, default flags are copied even if zero. Without hints FI_INJECT
	 * must not be a default, because it limits the size of messages, nor FI_MULTI_RECV,
	 * because a plain receive is for one message.
	 */
	if (tx)
		info->tx_attr->op_flags = tx->op_flags;
	else
		info->tx_attr->op_flags &= ~FI_INJECT;
	if (rx)
		info->rx_attr->op_flags = rx->op_flags;
	else
		info->rx_attr->op_flags &= ~FI_MULTI_RECV;
	kofi_narrow_struct(&kofi_tx_struct, info->tx_attr, tx);
	kofi_narrow_struct(&kofi_rx_struct, info->rx_attr, rx);
	if (hints->ep_attr) {
		ep = kofi_ep_hints(hints);
		kofi_narrow_struct(&kofi_ep_struct, info->ep_attr, &ep);
	}
	kofi_narrow_struct(&kofi_domain_struct, info->domain_attr,
			   hints->domain_attr);
	if (hints->domain_attr && !info->domain_attr->av_type)
		info->domain_attr->av_type = hints->domain_attr->av_type;
}
