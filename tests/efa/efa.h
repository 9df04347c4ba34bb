/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Test cases of the EFA provider on a device, and the two ends between which they run.
 * The cases use only the public API.
 */
#ifndef KOFI_EFA_TEST_H
#define KOFI_EFA_TEST_H

#include <linux/bvec.h>
#include <linux/sizes.h>
#include <linux/types.h>
#include <kofi/cm.h>
#include <kofi/domain.h>
#include <kofi/efa_ext.h>
#include <kofi/endpoint.h>
#include <kofi/eq.h>
#include <kofi/rma.h>
#include <kofi/tagged.h>

#define ET_BUF		SZ_2M
#define ET_TIMEOUT	10000	/* ms */

/**
 * struct et_end - an endpoint and its objects
 * @info: entry that the objects were opened from
 * @fabric: the fabric
 * @eq: event queue for events of devices
 * @domain: the domain
 * @av: the address vector
 * @cq: completions of both directions, struct fi_cq_data_entry
 * @ep: the endpoint
 * @peer: the other end in @av
 * @buf: memory, physically contiguous in part, ET_BUF bytes
 * @small: memory, physically contiguous, 64 KiB
 */
struct et_end {
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
	struct fid_domain	*domain;
	struct fid_av		*av;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
	fi_addr_t		peer;
	u8			*buf;
	u8			*small;
};

struct et;

/**
 * struct et_case - a case
 * @name: name of the case
 * @run: runs the case
 * @bind: flags for binding the CQ, besides the directions
 * @rdm: the ends are of fabric efa, with tags, and not of efa-direct, with RMA
 * @caps: further capabilities of the ends
 * @alone: run only if requested by name, because it needs a removal, or no
 *         faults, or takes long
 */
struct et_case {
	const char	*name;
	void		(*run)(struct et *t);
	u64		bind;
	bool		rdm;
	u64		caps;
	bool		alone;
};

/**
 * struct et - a run of a case
 * @a: one end
 * @b: the other
 * @test: the case
 * @arg: number given with the case, or 0
 * @failed: number of failed expectations
 * @expects: number of expectations
 */
struct et {
	struct et_end		a;
	struct et_end		b;
	const struct et_case	*test;
	unsigned int		arg;
	unsigned int		failed;
	unsigned int		expects;
};

#define ET_EXPECT_EQ(t, got, want)					\
({									\
	long long __got = (got);					\
	long long __want = (want);					\
									\
	(t)->expects++;							\
	if (__got != __want)						\
		et_failed(t, __func__, __LINE__, #got " == " #want, __got); \
	__got == __want;						\
})

#define ET_EXPECT(t, cond)						\
({									\
	bool __ok = (cond);						\
									\
	(t)->expects++;							\
	if (!__ok)							\
		et_failed(t, __func__, __LINE__, #cond, 0);		\
	__ok;								\
})

/* main.c */

extern u32 et_depth;

void et_printf(const char *fmt, ...) __printf(1, 2);
void et_failed(struct et *t, const char *func, int line, const char *what,
	       long long got);

/* end.c */

int et_open(struct et_end *end, const char *device, const struct et_case *test);
int et_close(struct et_end *end);
int et_connect(struct et_end *end, struct et_end *other);
int et_wait(struct et_end *end, struct fi_cq_data_entry *entry);
int et_wait_err(struct et_end *end, struct fi_cq_err_entry *error);
bool et_quiet(struct et_end *end);
void et_fill(u8 *buf, size_t len, u8 seed);
bool et_filled(const u8 *buf, size_t len, u8 seed);

/* cases */

extern const struct et_case et_msg_cases[];
extern const struct et_case et_rma_cases[];
extern const struct et_case et_life_cases[];
extern const struct et_case et_removal_cases[];
extern const struct et_case et_peer_cases[];
extern const struct et_case et_rdm_cases[];
extern const struct et_case et_far_cases[];
extern const struct et_case et_atomic_cases[];

#endif /* KOFI_EFA_TEST_H */
