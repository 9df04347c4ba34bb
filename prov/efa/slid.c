// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The numbers of address handles in completions (ib_wc.slid). The completion of a received packet
 * has the number of the handle for the sender's GID. The device sets it, so the sender can't forge
 * it; but the driver doesn't tell the number of a new handle. It is learned from packets that claim
 * a GID, and belongs to one GID, as a GID has one handle in a domain.
 *
 * Whoever is first could claim another's GID. So a number is learned in two steps. A packet that
 * claims the GID binds it: another number can still take its place. It is confirmed (kefa_ah.sure)
 * once a packet of that number shows that the sender has exchanged HANDSHAKEs with an endpoint: the
 * endpoint's went to the GID. A confirmed number stays until the handle is destroyed; then it is
 * forgotten, because the device may give it to another handle.
 *
 * The device reports no number for GIDs without a handle, and for a moment after a handle was
 * created. So a packet without a number isn't from a GID whose handle has existed for a while.
 */
#include <linux/hash.h>
#include <linux/rhashtable.h>
#include <linux/string.h>
#include "ah.h"
#include "domain.h"
#include "trace.h"

static struct hlist_head *kefa_slid_list(struct kefa_domain *dom, u16 slid)
{
	return &dom->slids[hash_32(slid, KEFA_SLID_BITS)];
}

static struct kefa_ah *kefa_slid_find(struct kefa_domain *dom, u16 slid)
{
	struct kefa_ah *ah;

	lockdep_assert_held(&dom->slid_lock);
	hlist_for_each_entry(ah, kefa_slid_list(dom, slid), by_slid)
		if (ah->slid == slid)
			return ah;
	return NULL;
}

static void kefa_slid_trace(const struct kefa_ah *ah, u16 slid, const char *what)
{
	trace_kefa_slid(ah->dom->dev->name, ah->gid, slid, what);
}

/**
 * kefa_slids_init() - initialize a domain's numbers of address handles
 * @dom: the domain
 *
 * Context: Process context.
 */
void kefa_slids_init(struct kefa_domain *dom)
{
	spin_lock_init(&dom->slid_lock);
	hash_init(dom->slids);
}

/**
 * kefa_slid_owner() - find the GID that a number belongs to
 * @dom: the domain
 * @slid: the number, from a completion
 * @gid: takes the GID, if it is known
 *
 * Context: Any; takes kefa_domain.slid_lock.
 * Return: whether it is known.
 */
bool kefa_slid_owner(struct kefa_domain *dom, u16 slid, u8 *gid)
{
	const struct kefa_ah *ah = NULL;

	spin_lock_bh(&dom->slid_lock);
	if (slid != KEFA_NO_SLID)
		ah = kefa_slid_find(dom, slid);
	if (ah)
		memcpy(gid, ah->gid, sizeof(ah->gid));
	spin_unlock_bh(&dom->slid_lock);
	return ah;
}

/**
 * kefa_slid_fits() - check whether a packet may come from a GID
 * @dom: the domain
 * @slid: number in the packet's completion
 * @gid: the GID
 *
 * Context: Any; takes kefa_domain.slid_lock.
 * Return: whether nothing that is known contradicts it: the number belongs to no other GID, and
 * the GID has no other confirmed number, nor has had a handle for long if there is no number.
 */
bool kefa_slid_fits(struct kefa_domain *dom, u16 slid, const u8 *gid)
{
	const struct kefa_ah *ah, *owner = NULL;
	bool fits = true;

	rcu_read_lock();
	spin_lock_bh(&dom->slid_lock);
	if (slid != KEFA_NO_SLID)
		owner = kefa_slid_find(dom, slid);
	ah = owner ?: kefa_ah_find(dom, gid);
	if (owner)
		fits = !memcmp(owner->gid, gid, sizeof(owner->gid));
	else if (ah && slid == KEFA_NO_SLID)
		fits = time_before(jiffies, ah->since + msecs_to_jiffies(KEFA_SLID_LAG_MS));
	else if (ah)
		fits = !ah->sure;
	spin_unlock_bh(&dom->slid_lock);
	rcu_read_unlock();
	return fits;
}

/**
 * kefa_slid_learn() - bind a number to an address handle
 * @ah: the address handle, with a reference
 * @slid: number in the completion of a packet that claims the handle's GID
 *
 * A number that isn't confirmed yet is replaced.
 *
 * Context: Any; takes kefa_domain.slid_lock.
 * Return: whether the number belongs to the handle now.
 */
bool kefa_slid_learn(struct kefa_ah *ah, u16 slid)
{
	struct kefa_domain *dom = ah->dom;
	const struct kefa_ah *owner;
	bool learns;

	spin_lock_bh(&dom->slid_lock);
	owner = kefa_slid_find(dom, slid);
	learns = !owner && !ah->sure;
	if (learns) {
		hash_del(&ah->by_slid);
		WRITE_ONCE(ah->slid, slid);
		hlist_add_head(&ah->by_slid, kefa_slid_list(dom, slid));
	}
	spin_unlock_bh(&dom->slid_lock);
	if (learns)
		kefa_slid_trace(ah, slid, "learned");
	return learns || owner == ah;
}

/**
 * kefa_slid_sure() - check whether a number surely belongs to an address handle
 * @ah: the address handle, with a reference
 * @slid: number in the completion of a packet
 * @confirms: the packet confirms the number, if the number belongs to the handle
 *
 * Context: Any; takes kefa_domain.slid_lock.
 * Return: whether the number is confirmed.
 */
bool kefa_slid_sure(struct kefa_ah *ah, u16 slid, bool confirms)
{
	bool sure;

	spin_lock_bh(&ah->dom->slid_lock);
	confirms = confirms && !ah->sure && ah->slid == slid;
	if (confirms)
		WRITE_ONCE(ah->sure, true);
	sure = ah->sure && ah->slid == slid;
	spin_unlock_bh(&ah->dom->slid_lock);
	if (confirms)
		kefa_slid_trace(ah, slid, "confirmed");
	return sure;
}

/**
 * kefa_slid_forget() - forget the number of an address handle that is destroyed
 * @ah: the address handle
 *
 * Context: Process context, under kefa_dev.lock; takes kefa_domain.slid_lock.
 */
void kefa_slid_forget(struct kefa_ah *ah)
{
	u16 slid;

	spin_lock_bh(&ah->dom->slid_lock);
	hash_del(&ah->by_slid);
	slid = ah->slid;
	WRITE_ONCE(ah->slid, KEFA_NO_SLID);
	WRITE_ONCE(ah->sure, false);
	spin_unlock_bh(&ah->dom->slid_lock);
	if (slid != KEFA_NO_SLID)
		kefa_slid_trace(ah, slid, "forgotten");
}
