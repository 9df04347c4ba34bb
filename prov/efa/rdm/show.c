// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Lines of an endpoint of fabric efa in debugfs. */
#include <linux/seq_file.h>
#include "rdm.h"

static const char * const kefa_drop_texts[KEFA_DROPS] = {
	[KEFA_DROP_STRANGER]	= "stranger",
	[KEFA_DROP_NO_AH]	= "no_ah",
	[KEFA_DROP_DEAD]	= "dead",
	[KEFA_DROP_DUP]		= "dup",
	[KEFA_DROP_FAR]		= "far",
	[KEFA_DROP_STATE]	= "state",
	[KEFA_DROP_TYPE]	= "type",
	[KEFA_DROP_LENGTH]	= "length",
	[KEFA_DROP_FULL]	= "full",
	[KEFA_DROP_GONE]	= "gone",
	[KEFA_DROP_LIAR]	= "liar",
	[KEFA_DROP_KEY]		= "key",
	[KEFA_DROP_ACCESS]	= "access",
	[KEFA_DROP_RANGE]	= "range",
};

static void kefa_show_types(struct seq_file *s, const char *what, const u64 *counts)
{
	const struct kefa_pkt_row *row;
	int type;

	seq_printf(s, "    %s", what);
	for (type = 0; type < KEFA_PKT_TYPES; type++) {
		row = kefa_row_of(type);
		if (row && counts[type])
			seq_printf(s, " %s %llu", row->name, counts[type]);
	}
	seq_putc(s, '\n');
}

static void kefa_show_states(struct seq_file *s, const struct kefa_rops *rops)
{
	u32 n[KEFA_ROP_STATES] = {}, i;

	for (i = 0; rops->ops && i < rops->size; i++)
		n[READ_ONCE(rops->ops[i].state)]++;
	seq_puts(s, "    states");
	for (i = KEFA_ROP_FREE + 1; i < KEFA_ROP_STATES; i++)
		if (n[i])
			seq_printf(s, " %s %u", kefa_rop_state_text(i), n[i]);
	seq_putc(s, '\n');
}

/**
 * kefa_rdm_show() - print an endpoint's lines
 * @s: the file
 * @ep: the endpoint
 *
 * Serves as kefa_ep_kind.show. Lists of counters omit those that are zero.
 *
 * Context: Process context, under kefa_dev.lock.
 */
void kefa_rdm_show(struct seq_file *s, struct kefa_ep *ep)
{
	const struct kefa_rdm *rdm = to_kefa_rdm(ep);
	const struct kefa_rdm_stats *st = &rdm->stats;
	int i;

	seq_printf(s, "    rdm: peers %u implicit %u ops %u posted %u buffers %u kept %llu\n",
		   rdm->peers.count, rdm->peers.implicit, rdm->rops.used, rdm->nposted,
		   rdm->nrs, rdm->kept);
	kefa_show_states(s, &rdm->rops);
	seq_printf(s, "    rnr %llu unexpected %llu early %llu copied %llu starved %llu full %llu shut %llu\n",
		   st->rnr, st->unexpected, st->early, st->copied, st->starved, st->full,
		   st->shut);
	seq_printf(s, "    deaths %llu cut %llu stalled %llu evicted %llu recalled %llu forgotten %llu liars %llu unseated %llu doubtful %llu\n",
		   st->deaths, st->cut, st->stalled, rdm->peers.stats.evicted,
		   rdm->peers.stats.recalled, rdm->peers.stats.forgotten,
		   rdm->peers.stats.liars, rdm->peers.stats.unseated,
		   rdm->peers.stats.doubtful);
	seq_printf(s, "    sources %llu of %u reads %llu writes %llu unread %llu asked %llu unsupported %llu local %llu\n",
		   st->sources, rdm->nsources, st->reads, st->writes, st->unread, st->asked,
		   st->unsupported, st->local);
	seq_printf(s, "    targets_free %u waited %llu target_cut %llu timed_out %llu\n",
		   rdm->ntargets, st->waited, st->target_cut, st->timed_out);
	kefa_show_types(s, "sent", st->sent);
	kefa_show_types(s, "received", st->received);
	seq_puts(s, "    refused");
	for (i = 1; i < KEFA_BAD_REASONS; i++)
		if (st->bad[i])
			seq_printf(s, " %s %llu", kefa_bad_text(i), st->bad[i]);
	seq_puts(s, "\n    dropped");
	for (i = 0; i < KEFA_DROPS; i++)
		if (st->dropped[i])
			seq_printf(s, " %s %llu", kefa_drop_texts[i], st->dropped[i]);
	seq_putc(s, '\n');
}
