// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fault injection and counters in debugfs.
 *
 * /sys/kernel/debug/efasim/DEVICE/
 *   faults/KNOB        value, see EFASIM_FAULTS
 *   faults/injected    value of each knob, and number of faults that it injected
 *   faults/seed        write to restart the random sequence
 *   counters           all counters
 *   memory             numbers of objects, and memory held for peers
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "priv.h"

/* In the order of the enumerations, which are generated from the same lists. */
#define FAULT_ROW(name, def) { #name, def },
#define STAT_NAME(name) #name,

static const struct {
	const char *name;
	u32 value;
} faults[EFASIM_FAULT_KNOBS] = {
	EFASIM_FAULTS(FAULT_ROW)
};

static const char * const stat_names[EFASIM_STATS] = {
	EFASIM_DEVICE_STATS(STAT_NAME)
	EFASIM_PORT_STATS(STAT_NAME)
	EFASIM_SIM_STATS(STAT_NAME)
};

/* Return: whether a fault happens now, in which case it is counted. */
bool efasim_fault(struct efasim_dev *dev, enum efasim_fault fault)
{
	u32 permille = READ_ONCE(dev->fault[fault]);

	lockdep_assert_held(&dev->lock);
	if (!permille || prandom_u32_state(&dev->rnd) % 1000 >= permille)
		return false;
	atomic64_inc(&dev->injected[fault]);
	return true;
}

static void seed_states(struct efasim_dev *dev, u32 seed)
{
	WRITE_ONCE(dev->seed, seed);
	prandom_seed_state(&dev->rnd, seed);
	prandom_seed_state(&dev->admin_rnd, seed);
}

void efasim_faults_init(struct efasim_dev *dev, u32 seed)
{
	int i;

	for (i = 0; i < EFASIM_FAULT_KNOBS; i++)
		dev->fault[i] = faults[i].value;
	seed_states(dev, seed);
}

static int injected_show(struct seq_file *s, void *unused)
{
	struct efasim_dev *dev = s->private;
	int i;

	for (i = 0; i < EFASIM_FAULT_KNOBS; i++)
		seq_printf(s, "%s %u %lld\n", faults[i].name,
			   READ_ONCE(dev->fault[i]),
			   atomic64_read(&dev->injected[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(injected);

static int counters_show(struct seq_file *s, void *unused)
{
	struct efasim_dev *dev = s->private;
	int i;

	for (i = 0; i < EFASIM_STATS; i++)
		seq_printf(s, "%s %lld\n", stat_names[i],
			   atomic64_read(&dev->stats[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

struct held {
	u32 in_flight;		/* sent and not acknowledged */
	u32 responses;		/* waiting for room in the window */
	u64 bytes;
};

static void add_txp(struct held *held, const struct efasim_txp *txp)
{
	held->bytes += struct_size(txp, buf, txp->len);
}

static void add_peer(struct held *held, const struct efasim_peer *peer)
{
	const struct efasim_lane_state *l;
	const struct efasim_txp *txp;
	u32 seq;

	for (l = peer->lane; l < peer->lane + EFASIM_LANES; l++) {
		for (seq = l->tx_una; seq != l->tx_next; seq++)
			add_txp(held, l->slot[seq % EFASIM_WINDOW]);
		held->in_flight += l->tx_next - l->tx_una;
	}
	list_for_each_entry(txp, &peer->resps, list)
		add_txp(held, txp);
	held->responses += peer->num_resps;
}

static int memory_show(struct seq_file *s, void *unused)
{
	struct efasim_dev *dev = s->private;
	const struct efasim_peer *peer;
	struct held held = { };
	unsigned long i;

	mutex_lock(&dev->lock);
	xa_for_each(&dev->peers, i, peer)
		add_peer(&held, peer);
	seq_printf(s, "queue_pairs %u\ncompletion_queues %u\nregions %u\nhandles %u\n",
		   dev->num_qp, dev->num_cq, dev->num_mr, dev->num_ah);
	seq_printf(s, "peers %u\nin_flight %u\nresponses %u\n",
		   dev->num_peers, held.in_flight, held.responses);
	seq_printf(s, "packet_bytes %llu\ndelayed %u\nlocal_queue %u\n",
		   held.bytes, dev->num_held, READ_ONCE(dev->rxq.count));
	mutex_unlock(&dev->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(memory);

static int seed_get(void *data, u64 *val)
{
	struct efasim_dev *dev = data;

	*val = READ_ONCE(dev->seed);
	return 0;
}

static int seed_set(void *data, u64 val)
{
	struct efasim_dev *dev = data;

	mutex_lock(&dev->lock);
	seed_states(dev, val);
	mutex_unlock(&dev->lock);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(seed_fops, seed_get, seed_set, "%llu\n");

/* Create a device's files in debugfs. The caller removes @dir. */
void efasim_debugfs_add(struct efasim_dev *dev, struct dentry *dir)
{
	struct dentry *knobs = debugfs_create_dir("faults", dir);
	int i;

	for (i = 0; i < EFASIM_FAULT_KNOBS; i++)
		debugfs_create_u32(faults[i].name, 0600, knobs,
				   &dev->fault[i]);
	debugfs_create_file("injected", 0400, knobs, dev, &injected_fops);
	debugfs_create_file_unsafe("seed", 0600, knobs, dev, &seed_fops);
	debugfs_create_file("counters", 0400, dir, dev, &counters_fops);
	debugfs_create_file("memory", 0400, dir, dev, &memory_fops);
}
