// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Closing of endpoints and removal of devices: at full depth, in each state, with a dead
 * admin queue, with handlers and sleepers. Each operation completes once, as its context
 * shows.
 */
#include <linux/bitmap.h>
#include <linux/completion.h>
#include <linux/mm.h>
#include "crew.h"
#include "efa_scene.h"

#define CONTEXTS	1024

/**
 * struct tally - results of operations
 * @posted: contexts that are in use
 * @seen: contexts that completed
 * @done: number of successful completions
 * @err: number of completions with the expected errno
 * @wrong: number of completions that came twice, with another error, or for no operation
 */
struct tally {
	DECLARE_BITMAP(posted, CONTEXTS);
	DECLARE_BITMAP(seen, CONTEXTS);
	unsigned int	done;
	unsigned int	err;
	unsigned int	wrong;
};

static void tally_one(struct tally *tally, void *context)
{
	unsigned long ctx = (unsigned long)context;

	if (ctx >= CONTEXTS || !test_bit(ctx, tally->posted) ||
	    __test_and_set_bit(ctx, tally->seen))
		tally->wrong++;
}

static void tally_all(struct efa_scene *scene, struct tally *tally, int err)
{
	struct efa_comp comp;

	while ((comp = efa_read(scene)).ret != -EAGAIN) {
		if (comp.ret == 1) {
			tally_one(tally, comp.entry.op_context);
			tally->done++;
			continue;
		}
		tally_one(tally, comp.error.op_context);
		if (comp.error.err == err)
			tally->err++;
		else
			tally->wrong++;
	}
}

/* Check that all operations completed once, @done of them with success. */
static void expect_tally(struct kunit *test, struct efa_scene *scene,
			 struct tally *tally, int err, unsigned int done)
{
	unsigned int posted = bitmap_weight(tally->posted, CONTEXTS);

	tally_all(scene, tally, err);
	KUNIT_EXPECT_EQ(test, tally->wrong, 0);
	KUNIT_EXPECT_EQ(test, tally->done, done);
	KUNIT_EXPECT_EQ(test, tally->err, posted - done);
	KUNIT_EXPECT_TRUE(test, bitmap_equal(tally->posted, tally->seen,
					     CONTEXTS));
	KUNIT_EXPECT_EQ(test, atomic_read(&efa_cq(scene)->credits),
			efa_cq(scene)->attr.size);
}

static struct tally *tally_new(struct kunit *test)
{
	struct tally *tally = kunit_kzalloc(test, sizeof(*tally), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, tally);
	return tally;
}

/* Post operations of each kind until the queues are full. */
static void fill_up(struct kunit *test, struct efa_scene *scene,
		    struct tally *tally)
{
	struct kvec iov[3] = {
		{ scene->buf, 10 }, { scene->buf + 20, 10 },
		{ scene->buf + 40, 10 },
	};
	struct fi_rma_iov rma = { EFA_RADDR, 30, EFA_KEY };
	struct fi_msg_rma msg = {
		.addr = scene->peer, .rma_iov = &rma, .rma_iov_count = 1,
	};
	unsigned long ctx;
	ssize_t ret = 0;

	for (ctx = 1; ctx < CONTEXTS && !ret; ctx++) {
		__set_bit(ctx, tally->posted);
		msg.context = (void *)ctx;
		switch (ctx % 5) {
		case 0:
			ret = efa_send(scene, 100, ctx);
			break;
		case 1:
			ret = efa_get(scene, 100, ctx);
			break;
		case 2:
			iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, iov, 3, 30);
			ret = fi_writemsg(scene->ep, &msg, FI_COMPLETION);
			break;
		case 3:
			ret = efa_send(scene, 8, ctx);
			break;
		default:
			iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, iov, 3, 30);
			ret = fi_writemsg(scene->ep, &msg, FI_INJECT |
					  FI_COMPLETION);
		}
	}
	__clear_bit(ctx - 1, tally->posted);
	KUNIT_EXPECT_EQ(test, ret, -EAGAIN);
	for (ctx = 900; ctx < 900 + EFAKE_RX_DEPTH; ctx++) {
		KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, ctx), 0);
		__set_bit(ctx, tally->posted);
	}
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 1), -EAGAIN);
	KUNIT_EXPECT_GE(test, scene->qp->nsent + scene->qp->nrecvs, 64);
}

/* --- close --- */

static void close_at_depth(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct tally *tally = tally_new(test);

	fill_up(test, scene, tally);
	EFA_CLOSE(test, scene->ep);
	expect_tally(test, scene, tally, ECANCELED, 0);
	KUNIT_EXPECT_EQ(test, scene->fake->nmaps, 1);
}

/* Completions that the device has written before the close aren't lost. */
static void close_takes(struct kunit *test, u64 bind)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) { .bind = bind });
	struct tally *tally = tally_new(test);
	unsigned int i, whole = 0;

	KUNIT_EXPECT_EQ(test, efa_ep(scene)->split, !!bind);
	fill_up(test, scene, tally);
	/* No event is raised, as if it came too late. */
	scene->qp->armed = false;
	scene->qp->tx_armed = false;
	for (i = 0; i < 10; i++)
		efake_wr_done(efake_recv(scene->qp, 0), 0);
	for (i = 0; i < 7; i++)
		efake_wr_done(efake_sent(scene->qp, 0), 0);
	/* 1 read, 3 parts of a write, 1 send, 1 inject, 1 send */
	whole = 10 + 5;
	EFA_CLOSE(test, scene->ep);
	expect_tally(test, scene, tally, ECANCELED, whole);
}

static void close_takes_what_is_done(struct kunit *test)
{
	close_takes(test, 0);
}

static void close_takes_what_is_late(struct kunit *test)
{
	close_takes(test, FI_LAZY_COMPLETION);
}

static void close_refused(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct tally *tally = tally_new(test);

	scene->fake->pci = true;
	fill_up(test, scene, tally);
	scene->fake->refuse = EFAKE_REFUSE_ALL;
	EFA_CLOSE(test, scene->ep);
	KUNIT_EXPECT_FALSE(test, scene->fake->master);
	expect_tally(test, scene, tally, ENODEV, 0);
	KUNIT_EXPECT_TRUE(test, efa_dom(scene)->refused.broken);
}

/*
 * A queue pair in error: the errors that it reports are passed on, and operations without a
 * completion end when the endpoint is closed.
 */
static void qp_in_error(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct efake *fake = scene->fake;
	unsigned long i;

	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, i), 0);
		KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 100 + i), 0);
	}
	efake_wr_done(efake_sent(scene->qp, 2), 2);
	efa_expect_error(test, scene, 2, EIO, 2);
	efake_wr_done(efake_sent(scene->qp, 0), 1);
	efa_expect_error(test, scene, 0, ECANCELED, 1);
	efake_wr_done(efake_recv(scene->qp, 1), 1);
	efa_expect_error(test, scene, 101, ECANCELED, 1);

	fake->refuse = BIT(EFAKE_POST_SEND) | BIT(EFAKE_POST_RECV);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 4), 0);
	efa_expect_error(test, scene, 4, ENODEV, 0);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 104), 0);
	efa_expect_error(test, scene, 104, ENODEV, 0);
	fake->refuse = 0;
	efa_expect_nothing(test, scene);
	EFA_CLOSE(test, scene->ep);
	KUNIT_EXPECT_EQ(test, efa_drain(scene), 5);
	KUNIT_EXPECT_EQ(test, atomic_read(&efa_cq(scene)->credits),
			efa_cq(scene)->attr.size);
}

static void close_idle(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.idle = true,
	});

	EFA_CLOSE(test, scene->ep);
	KUNIT_EXPECT_EQ(test, efake_calls(scene->fake, EFAKE_QP_CREATE), 1);
	efa_expect_nothing(test, scene);
}

/* An endpoint whose enable failed is unchanged. */
static void enable_fails(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.idle = true,
	});

	efake_fail(scene->fake, EFAKE_QP_CREATE, 1, -ENOSPC);
	KUNIT_EXPECT_EQ(test, fi_enable(scene->ep), -ENOSPC);
	efake_fail(scene->fake, EFAKE_QP_START, 1, -EIO);
	KUNIT_EXPECT_EQ(test, fi_enable(scene->ep), -EIO);
	efake_fail(scene->fake, EFAKE_DMA_MAP, 1, -EIO);
	KUNIT_EXPECT_EQ(test, fi_enable(scene->ep), -ENOMEM);
	KUNIT_EXPECT_EQ(test, scene->fake->nmaps, 1);
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	scene->qp = efake_last_qp(scene->fake);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 8, 1), 0);
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efa_expect_done(test, scene, 1);
}

/* Creation of a queue pair fails halfway, and destroying the rest fails as well. */
static void enable_fails_and_is_refused(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.idle = true,
	});

	efake_fail(scene->fake, EFAKE_QP_START, 1, -EIO);
	scene->fake->refuse = BIT(EFAKE_QP_DESTROY);
	scene->fake->refusal = -EIO;
	KUNIT_EXPECT_EQ(test, fi_enable(scene->ep), -EIO);
	KUNIT_EXPECT_EQ(test, scene->fake->dev->set_aside, 1);
	scene->fake->refuse = 0;
	/* The next endpoint can be enabled. */
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	scene->qp = efake_last_qp(scene->fake);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 8, 1), 0);
	EFA_CLOSE(test, scene->ep);
	efa_expect_error(test, scene, 1, ECANCELED, 0);
}

static void domain_fails(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct efake *fake = scene->fake;
	struct fid_domain *domain = NULL;

	efake_fail(fake, EFAKE_PD_CREATE, 1, -ENOSPC);
	KUNIT_EXPECT_EQ(test, fi_domain(scene->fabric, scene->info, &domain,
					NULL), -ENOSPC);
	efake_fail(fake, EFAKE_QP_CREATE, 1, -ENOSPC);
	KUNIT_EXPECT_EQ(test, fi_domain(scene->fabric, scene->info, &domain,
					NULL), -ENOSPC);
	efake_fail(fake, EFAKE_DMA_MAP, 1, -EIO);
	KUNIT_EXPECT_EQ(test, fi_domain(scene->fabric, scene->info, &domain,
					NULL), -ENOMEM);
	efake_fail(fake, EFAKE_QP_START, 1, -EIO);
	fake->refuse = BIT(EFAKE_QP_DESTROY);
	fake->refusal = -EIO;
	KUNIT_EXPECT_EQ(test, fi_domain(scene->fabric, scene->info, &domain,
					NULL), -EIO);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&fake->lost), 1);
	fake->refuse = 0;
}

/* --- removal --- */

static void expect_gone(struct kunit *test, struct efa_scene *scene)
{
	struct fi_eq_device_entry event;
	struct fi_av_attr attr = { };
	struct fid_av *av;
	u32 type;

	/* Other events may have arrived before. */
	do {
		KUNIT_ASSERT_EQ(test, fi_eq_read(scene->eq, &type, &event,
						 sizeof(event), 0),
				sizeof(event));
	} while (type == FI_DEVICE_ARRIVED);
	KUNIT_EXPECT_EQ(test, type, FI_DEVICE_REMOVED);
	KUNIT_EXPECT_PTR_EQ(test, event.fid, &scene->domain->fid);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 8, 1), -ENODEV);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 8, 1), -ENODEV);
	KUNIT_EXPECT_EQ(test, efa_write(scene, 8, 1), -ENODEV);
	KUNIT_EXPECT_EQ(test, fi_av_open(scene->domain, &attr, &av, NULL),
			-ENODEV);
	KUNIT_EXPECT_EQ(test, fi_enable(scene->ep), -ENODEV);
	KUNIT_EXPECT_EQ(test, scene->fake->nmaps, 0);
}

/* The provider itself returns -ENODEV, because data calls don't go through the core. */
static void posted_before_enable(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) { .idle = true });
	struct kvec iov = { scene->buf, 8 };
	struct fi_msg msg = { .addr = scene->peer };

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, 8);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 8, 1), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 8, 1), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, efa_write(scene, 8, 1), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, efa_get(scene, 8, 1), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_sendmsg(scene->ep, &msg, 0), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 8, scene->peer),
			-FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, atomic_read(&efa_cq(scene)->credits),
			(int)efa_cq(scene)->attr.size);
}

/* Bits of a removal's circumstances. */
#define FULL	BIT(0)	/* operations are outstanding, at full depth */
#define DONE	BIT(1)	/* some of them are done, but not polled */
#define IDLE	BIT(2)	/* the endpoint isn't enabled */
#define DEAD	BIT(3)	/* the admin queue is dead */
#define PCI	BIT(4)	/* the device can be silenced */
#define REGION	BIT(5)	/* memory is registered */
#define LAZY	BIT(6)	/* nobody waits for sends */

static const struct removal {
	const char	*desc;
	u32		how;
} removals[] = {
	{ "not enabled", IDLE },
	{ "idle", 0 },
	{ "idle, dead", DEAD },
	{ "idle, dead, pci", DEAD | PCI },
	{ "full", FULL },
	{ "full, region", FULL | REGION },
	{ "full, done in part", FULL | DONE },
	{ "full, done in part, lazy", FULL | DONE | LAZY },
	{ "full, pci", FULL | PCI },
	{ "full, dead", FULL | DEAD },
	{ "full, dead, done in part", FULL | DEAD | DONE },
	{ "full, dead, done in part, lazy", FULL | DEAD | DONE | LAZY },
	{ "full, dead, pci", FULL | DEAD | PCI },
	{ "full, dead, pci, region", FULL | DEAD | PCI | REGION },
};

KUNIT_ARRAY_PARAM_DESC(removal, removals, desc);

static void remove_when(struct kunit *test)
{
	u32 how = ((const struct removal *)test->param_value)->how;
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.bind = how & LAZY ? FI_LAZY_COMPLETION : 0, .idle = how & IDLE,
	});
	struct tally *tally = tally_new(test);
	struct efake *fake = scene->fake;
	struct fid_mr *mr = NULL;

	fake->pci = how & PCI;
	if (how & REGION)
		KUNIT_ASSERT_EQ(test, fi_mr_reg(scene->domain, scene->buf, 99,
						FI_REMOTE_READ, 0, 0, 0, &mr,
						NULL), 0);
	if (how & FULL)
		fill_up(test, scene, tally);
	if (how & DONE) {
		scene->qp->armed = false;
		scene->qp->tx_armed = false;
		efake_wr_done(efake_recv(scene->qp, 0), 0);
		efake_wr_done(efake_sent(scene->qp, 0), 0);
	}
	if (how & DEAD)
		fake->refuse = EFAKE_REFUSE_ALL;
	efake_remove(fake);
	KUNIT_EXPECT_EQ(test, fake->master, !(how & DEAD) || !(how & PCI));
	expect_gone(test, scene);
	expect_tally(test, scene, tally, ENODEV, how & DONE ? 2 : 0);
	if (mr) {
		KUNIT_EXPECT_EQ(test, fi_mr_key(mr), FI_KEY_NOTAVAIL);
		KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	}
	/* No more completions come later. */
	EFA_CLOSE(test, scene->ep);
	KUNIT_EXPECT_EQ(test, efa_read(scene).ret, -EAGAIN);
}

/* Repeated removal of a device that comes back with the same name. */
static void remove_and_return(struct kunit *test)
{
	struct efa_scene *scene;
	struct tally *tally;
	struct efake *fake;
	int i;

	for (i = 0; i < 20; i++) {
		fake = efake_make(test, EFA_DEVICE);
		efake_publish(fake);
		fake->pci = true;
		scene = efa_scene_on(test, fake, NULL);
		tally = tally_new(test);
		fill_up(test, scene, tally);
		if (i % 4 == 3)
			fake->refuse = EFAKE_REFUSE_ALL;
		efake_remove(fake);
		expect_gone(test, scene);
		expect_tally(test, scene, tally, ENODEV, 0);
	}
}

/* Two endpoints, two domains, one device; and another device. */
static void remove_one_of_two(struct kunit *test)
{
	struct efa_scene *one = efa_scene_new(test, NULL), *same, *other;
	struct efake *fake = efake_make(test, "efake1");
	struct tally *tally[3];
	int i;

	for (i = 0; i < 3; i++)
		tally[i] = tally_new(test);
	efake_publish(fake);
	other = efa_scene_on(test, fake, NULL);
	same = efa_scene_on(test, one->fake, NULL);
	fill_up(test, one, tally[0]);
	fill_up(test, same, tally[1]);
	fill_up(test, other, tally[2]);
	efake_remove(one->fake);
	expect_gone(test, one);
	expect_gone(test, same);
	expect_tally(test, one, tally[0], ENODEV, 0);
	expect_tally(test, same, tally[1], ENODEV, 0);
	efa_expect_nothing(test, other);
	while (other->qp->nsent)
		efake_wr_done(efake_sent(other->qp, 0), 0);
	efake_settle();
	tally_all(other, tally[2], ECANCELED);
	EFA_CLOSE(test, other->ep);
	expect_tally(test, other, tally[2], ECANCELED, tally[2]->done);
	KUNIT_EXPECT_EQ(test, tally[2]->err, EFAKE_RX_DEPTH);
}

/**
 * struct haunted - memory that a device may still reach after its use
 * @page: pages of the ULP
 * @mr: region of the last page
 */
struct haunted {
	struct page	*page[3];
	struct fid_mr	*mr;
};

static struct haunted *haunted_make(struct kunit *test, struct efa_scene *scene)
{
	struct haunted *h = kunit_kzalloc(test, sizeof(*h), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, h);
	for (i = 0; i < 3; i++) {
		h->page[i] = alloc_page(GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, h->page[i]);
	}
	KUNIT_EXPECT_EQ(test, fi_recv(scene->ep, page_address(h->page[0]), 64,
				      NULL, FI_ADDR_UNSPEC, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_read(scene->ep, page_address(h->page[1]), 64,
				      NULL, scene->peer, EFA_RADDR, EFA_KEY,
				      NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 200,
					scene->peer), 0);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(scene->domain,
					page_address(h->page[2]), PAGE_SIZE,
					FI_REMOTE_WRITE, 0, 0, 0, &h->mr, NULL),
			0);
	return h;
}

/* The ULP frees its memory, but the device can still reach it. */
static void expect_kept(struct kunit *test, struct efa_scene *scene,
			struct haunted *h)
{
	int i;

	for (i = 0; i < 3; i++)
		put_page(h->page[i]);
	/* KASAN would report an access to a free page. */
	KUNIT_EXPECT_EQ(test, efake_haunt(scene->fake), 4);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, page_ref_count(h->page[i]), 1);
		KUNIT_EXPECT_STREQ(test, page_address(h->page[i]), "ghost");
		put_page(h->page[i]);
	}
}

static void remove_haunted(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct haunted *h = haunted_make(test, scene);

	scene->fake->refuse = EFAKE_REFUSE_ALL;
	efake_remove(scene->fake);
	KUNIT_EXPECT_EQ(test, fi_close(&h->mr->fid), 0);
	expect_kept(test, scene, h);
}

/* A device without bus mastering can't reach the pages. */
static void remove_silenced(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct haunted *h = haunted_make(test, scene);
	int i;

	scene->fake->pci = true;
	scene->fake->refuse = EFAKE_REFUSE_ALL;
	efake_remove(scene->fake);
	KUNIT_EXPECT_EQ(test, fi_close(&h->mr->fid), 0);
	KUNIT_EXPECT_EQ(test, efake_haunt(scene->fake), 0);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, page_ref_count(h->page[i]), 1);
		put_page(h->page[i]);
	}
}

/* A region that the device neither invalidates nor destroys, while it works otherwise. */
static void close_haunted(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct haunted *h = haunted_make(test, scene);

	scene->fake->status = 2;
	scene->fake->refuse = EFAKE_REFUSE_ALL;
	KUNIT_EXPECT_EQ(test, fi_close(&h->mr->fid), 0);
	EFA_CLOSE(test, scene->ep);
	expect_kept(test, scene, h);
	KUNIT_EXPECT_EQ(test, efa_drain(scene), 3);
}

/* In an allocation of several pages only the first page has a reference count. */
static void keep_what_cannot_be(struct kunit *test)
{
	struct page *pages = alloc_pages(GFP_KERNEL, 1);
	phys_addr_t phys;

	KUNIT_ASSERT_NOT_NULL(test, pages);
	phys = page_to_phys(pages);
	KUNIT_EXPECT_EQ(test, kefa_keep(phys + PAGE_SIZE - 10, 74), 64);
	KUNIT_EXPECT_EQ(test, page_ref_count(pages), 2);
	KUNIT_EXPECT_EQ(test, page_ref_count(pages + 1), 0);
	put_page(pages);
	__free_pages(pages, 1);
}

/* --- a device that is given up --- */

static void close_region(struct kofi_thread *thread)
{
	struct fid_mr *mr = thread->arg;

	thread->ret = fi_close(&mr->fid);
}

static int find_device(void)
{
	struct fi_info *hints, *info = NULL;
	int ret;

	hints = fi_allocinfo_for(FI_EFA_PROV_NAME, NULL, EFA_DEVICE);
	if (!hints)
		return -ENOMEM;
	hints->mode = FI_RX_CQ_DATA;
	ret = fi_getinfo(fi_version(), NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	fi_freeinfo(info);
	return ret;
}

/*
 * A device that was given up can't report completions: outstanding operations of all users
 * end, the users are notified, and no new user finds the device or waits for it.
 */
static void refused_and_given_up(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_ep *other = efa_scene_ep(test, scene, 0);
	struct fid_domain *domain;
	struct kofi_thread thread;
	struct fid_mr *mr;

	KUNIT_ASSERT_EQ(test, fi_enable(other), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(other, scene->buf, 64, NULL,
				      FI_ADDR_UNSPEC, (void *)5), 0);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(scene->domain, scene->buf, 64,
					FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL),
			0);
	scene->fake->pci = true;
	scene->fake->refuse = EFAKE_REFUSE_ALL;
	scene->fake->manual_mr = true;
	KUNIT_EXPECT_EQ(test, fi_close(&scene->ep->fid), 0);
	scene->ep = other;
	efake_settle_all();
	efa_expect_error(test, scene, 5, ENODEV, 0);
	expect_gone(test, scene);
	KUNIT_EXPECT_EQ(test, find_device(), -ENODATA);
	KUNIT_EXPECT_EQ(test, fi_domain(scene->fabric, scene->info, &domain,
					NULL), -ENODEV);
	kofi_thread_start(test, &thread, close_region, mr);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 0);
	KUNIT_EXPECT_FALSE(test, scene->fake->master);
	/* The later removal raises no second event. */
	efake_remove(scene->fake);
	efa_expect_nothing(test, scene);
}

/* --- tasks that wait or work at removal --- */

static struct completion handler_in, handler_out;

static void stay(struct fid_cq *cq, void *context)
{
	complete(&handler_in);
	wait_for_completion(&handler_out);
}

static void let_go(void *unused)
{
	complete_all(&handler_out);
}

/* remove() doesn't wait for a ULP's handler. */
static void remove_in_handler(struct kunit *test)
{
	struct tally *tally = tally_new(test);
	struct efa_scene *scene;

	init_completion(&handler_in);
	init_completion(&handler_out);
	scene = efa_scene_new(test, &(struct efa_opts) {
		.cq = { .wait_obj = FI_WAIT_UNSPEC, .handler = stay },
	});
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, let_go, NULL), 0);
	fill_up(test, scene, tally);
	efake_wr_done(efake_recv(scene->qp, 0), 0);
	KUNIT_EXPECT_TRUE(test, kofi_completed(&handler_in));
	efake_remove(scene->fake);
	expect_gone(test, scene);
	expect_tally(test, scene, tally, ENODEV, 1);
}

static void sleep_on_cq(struct kofi_thread *thread)
{
	struct efa_scene *scene = thread->arg;
	struct fi_cq_data_entry entry;

	thread->ret = fi_cq_sread(scene->cq, &entry, 1, NULL, KOFI_NEVER_MS);
}

static void sleep_on_eq(struct kofi_thread *thread)
{
	struct efa_scene *scene = thread->arg;
	struct fi_eq_device_entry event;
	u32 type;

	thread->ret = fi_eq_sread(scene->eq, &type, &event, sizeof(event),
				  KOFI_NEVER_MS, FI_PEEK);
}

static void remove_under_sleepers(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.wait_obj = FI_WAIT_UNSPEC,
	});
	struct kofi_thread cq, eq;

	kofi_thread_start(test, &cq, sleep_on_cq, scene);
	kofi_thread_start(test, &eq, sleep_on_eq, scene);
	KUNIT_EXPECT_TRUE(test,
			  kofi_soon(kofi_sleepers(&efa_cq(scene)->notifier.wait)));
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&eq, 20));
	efake_remove(scene->fake);
	kofi_thread_join(test, &cq);
	kofi_thread_join(test, &eq);
	KUNIT_EXPECT_EQ(test, cq.ret, -ENODEV);
	KUNIT_EXPECT_EQ(test, eq.ret, sizeof(struct fi_eq_device_entry));
	expect_gone(test, scene);
}

static struct kunit_case life_cases[] = {
	KUNIT_CASE(posted_before_enable),
	KUNIT_CASE(close_at_depth),
	KUNIT_CASE(close_takes_what_is_done),
	KUNIT_CASE(close_takes_what_is_late),
	KUNIT_CASE(close_refused),
	KUNIT_CASE(qp_in_error),
	KUNIT_CASE(close_idle),
	KUNIT_CASE(enable_fails),
	KUNIT_CASE(enable_fails_and_is_refused),
	KUNIT_CASE(domain_fails),
	KUNIT_CASE_PARAM(remove_when, removal_gen_params),
	KUNIT_CASE(remove_and_return),
	KUNIT_CASE(remove_one_of_two),
	KUNIT_CASE(remove_haunted),
	KUNIT_CASE(remove_silenced),
	KUNIT_CASE(close_haunted),
	KUNIT_CASE(keep_what_cannot_be),
	KUNIT_CASE(refused_and_given_up),
	KUNIT_CASE(remove_in_handler),
	KUNIT_CASE(remove_under_sleepers),
	{}
};

static struct kunit_suite life_suite = {
	.name = "kefa_life",
	.test_cases = life_cases,
};

kunit_test_suite(life_suite);
