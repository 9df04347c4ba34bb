/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Objects that the suites of the EFA provider open on the fake device, and checks of them. */
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
 * struct efa_opts - settings of a test that differ from the defaults
 * @cq: attributes of the completion queue; the default format is FI_CQ_FORMAT_DATA, which
 *	the helpers here read
 * @tx_size: maximum of outstanding sends, reads and writes
 * @rx_size: maximum of outstanding receives
 * @mr_cnt: maximum of memory regions
 * @bind: flags of binding the completion queue besides the directions
 * @dgram: the endpoint is one of datagrams
 * @prefix: bytes in front of a received datagram
 * @idle: don't enable the endpoint
 */
struct efa_opts {
	struct fi_cq_attr	cq;
	size_t			tx_size;
	size_t			rx_size;
	size_t			mr_cnt;
	u64			bind;
	bool			dgram;
	u32			prefix;
	bool			idle;
};

/**
 * struct efa_scene - an endpoint on a fake device, with all objects that it needs
 * @fake: the device
 * @info: fi_info that the objects were opened with
 * @fabric: fabric of the endpoint
 * @eq: event queue of the fabric
 * @domain: domain of the endpoint
 * @av: address vector of the endpoint
 * @cq: completion queue of both directions
 * @ep: the endpoint
 * @qp: queue pair of the endpoint
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
 * struct efa_comp - result of reading a completion queue
 * @ret: return value of fi_cq_read()
 * @entry: the completion, if @ret is 1
 * @error: the error, if @ret is -FI_EAVAIL
 */
struct efa_comp {
	ssize_t			ret;
	struct fi_cq_data_entry	entry;
	struct fi_cq_err_entry	error;
};

/* Open a scene. The end of the case closes it. */
struct efa_scene *efa_scene_new(struct kunit *test,
				const struct efa_opts *opts);
/* Open a scene on a device that the test has created and published. */
struct efa_scene *efa_scene_on(struct kunit *test, struct efake *fake,
			       const struct efa_opts *opts);
/* Open another endpoint with the scene's completion queue and address vector. */
struct fid_ep *efa_scene_ep(struct kunit *test, struct efa_scene *scene,
			    u64 bind);
/* Open and enable another endpoint, with a queue or counter of its own for sends. */
struct fid_ep *efa_scene_apart(struct kunit *test, struct efa_scene *scene, struct fid_cq *rx,
			       struct fid *tx, u64 flags);

struct fi_info *efa_info(struct kunit *test, const char *device);
struct fi_efa_addr efa_addr(u8 gid, u16 qpn);
fi_addr_t efa_insert(struct kunit *test, struct efa_scene *scene, u8 gid,
		     u16 qpn);
struct efa_comp efa_read_cq(struct fid_cq *cq);
/* Return: number of completions and errors that can be read. */
unsigned int efa_drain_cq(struct fid_cq *cq);
void efa_fill(u8 *buf, size_t len, u8 seed);
bool efa_filled(const u8 *buf, size_t len, u8 seed);

/* Wait for the provider, then read: a completion of @ctx, an error, nothing. */
void efa_expect_done(struct kunit *test, struct efa_scene *scene, long ctx);
void efa_expect_error(struct kunit *test, struct efa_scene *scene, long ctx,
		      int err, int prov_errno);
/* Read without waiting. */
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

/* The same for the scene's queue. */
static inline struct efa_comp efa_read(struct efa_scene *scene)
{
	return efa_read_cq(scene->cq);
}

static inline unsigned int efa_drain(struct efa_scene *scene)
{
	return efa_drain_cq(scene->cq);
}

/* Post with a number as the context. */
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
