/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the suites of the EFA provider open on the fake device, and how they look. */
#ifndef KOFI_EFA_SCENE_H
#define KOFI_EFA_SCENE_H

#include <linux/slab.h>
#include <linux/string.h>
#include <kofi/cm.h>
#include <kofi/endpoint.h>
#include <kofi/eq.h>
#include <kofi/rma.h>
#include "efake.h"

#define EFA_DEVICE	"efake0"
#define EFA_BUF		SZ_64K
#define EFA_KEY		0x1234
#define EFA_RADDR	0x10000

/**
 * struct efa_opts - what a test wants to be different
 * @cq: of the completion queue; the helpers here read FI_CQ_FORMAT_DATA, which is
 *	what it has if nothing is said
 * @tx_size: sends, reads and writes that can be outstanding
 * @rx_size: receives
 * @mr_cnt: memory regions
 * @bind: flags besides the directions
 * @idle: don't enable the endpoint
 */
struct efa_opts {
	struct fi_cq_attr	cq;
	size_t			tx_size;
	size_t			rx_size;
	size_t			mr_cnt;
	u64			bind;
	bool			idle;
};

/**
 * struct efa_scene - an endpoint on a fake device, and all that it needs
 * @fake: the device
 * @info: what it was opened from
 * @fabric: its fabric
 * @eq: tells of devices
 * @domain: its domain
 * @av: its address vector
 * @cq: completions of both directions
 * @ep: the endpoint
 * @qp: its queue pair
 * @peer: an address in @av
 * @buf: physically contiguous memory of EFA_BUF bytes
 */
struct efa_scene {
	struct efake		*fake;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
	struct fid_domain	*domain;
	struct fid_av		*av;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
	struct efake_qp		*qp;
	fi_addr_t		peer;
	u8			*buf;
};

/**
 * struct efa_comp - what was read from a completion queue
 * @ret: what fi_cq_read() returned
 * @entry: the completion
 * @error: or, when @ret is -FI_EAVAIL, the error
 */
struct efa_comp {
	ssize_t			ret;
	struct fi_cq_data_entry	entry;
	struct fi_cq_err_entry	error;
};

/* The end of the case closes what is open then. */
struct efa_scene *efa_scene_new(struct kunit *test,
				const struct efa_opts *opts);
/* The same on a device that the test has made and published. */
struct efa_scene *efa_scene_on(struct kunit *test, struct efake *fake,
			       const struct efa_opts *opts);
/* One more endpoint, with the scene's queue and addresses. */
struct fid_ep *efa_scene_ep(struct kunit *test, struct efa_scene *scene,
			    u64 bind);

struct fi_info *efa_info(struct kunit *test, const char *device);
struct fi_efa_addr efa_addr(u8 gid, u16 qpn);
fi_addr_t efa_insert(struct kunit *test, struct efa_scene *scene, u8 gid,
		     u16 qpn);
struct efa_comp efa_read(struct efa_scene *scene);
/* Completions and errors that can be read. */
unsigned int efa_drain(struct efa_scene *scene);
void efa_fill(u8 *buf, size_t len, u8 seed);
bool efa_filled(const u8 *buf, size_t len, u8 seed);

/* Wait for the provider, then read: a completion of @ctx, an error, nothing. */
void efa_expect_done(struct kunit *test, struct efa_scene *scene, long ctx);
void efa_expect_error(struct kunit *test, struct efa_scene *scene, long ctx,
		      int err, int prov_errno);
/* The same without waiting. */
void efa_expect_error_now(struct kunit *test, struct efa_scene *scene, long ctx,
			  int err, int prov_errno);
void efa_expect_nothing(struct kunit *test, struct efa_scene *scene);

#define EFA_CLOSE(test, obj)						\
do {									\
	KUNIT_EXPECT_EQ(test, fi_close(&(obj)->fid), 0);		\
	(obj) = NULL;							\
} while (0)

static inline struct kefa_ep *efa_ep(struct efa_scene *scene)
{
	return container_of(scene->ep, struct kefa_ep, ep_fid);
}

static inline struct kefa_domain *efa_dom(struct efa_scene *scene)
{
	return container_of(scene->domain, struct kefa_domain, domain_fid);
}

static inline struct kofi_cq *efa_cq(struct efa_scene *scene)
{
	return container_of(scene->cq, struct kofi_cq, cq_fid);
}

/* Posts with a number for a context. */
static inline ssize_t efa_send(struct efa_scene *scene, size_t len, long ctx)
{
	return fi_send(scene->ep, scene->buf, len, NULL, scene->peer,
		       (void *)ctx);
}

static inline ssize_t efa_recv(struct efa_scene *scene, size_t len, long ctx)
{
	return fi_recv(scene->ep, scene->buf, len, NULL, FI_ADDR_UNSPEC,
		       (void *)ctx);
}

static inline ssize_t efa_write(struct efa_scene *scene, size_t len, long ctx)
{
	return fi_write(scene->ep, scene->buf, len, NULL, scene->peer,
			EFA_RADDR, EFA_KEY, (void *)ctx);
}

static inline ssize_t efa_get(struct efa_scene *scene, size_t len, long ctx)
{
	return fi_read(scene->ep, scene->buf, len, NULL, scene->peer,
		       EFA_RADDR, EFA_KEY, (void *)ctx);
}

#endif /* KOFI_EFA_SCENE_H */
