/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sessions of kofi_cm over pipes in memory. Either both sides are kofi_cm's, or a case plays one of
 * them and sees each byte.
 */
#ifndef CM_SCENE_H
#define CM_SCENE_H

#include <kunit/test.h>
#include "../../cm/cm.h"

#define CM_PIPE		4096
#define CM_SECRET	"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define CM_OTHER	"f00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

/**
 * struct cm_pipe - bytes in one direction
 * @buf: the bytes
 * @len: number of bytes
 * @closed: the writer has closed its end
 */
struct cm_pipe {
	u8	buf[CM_PIPE];
	size_t	len;
	bool	closed;
};

/**
 * struct cm_conn - a connection
 * @list: in the list of all, or of those to accept
 * @pipe: by writer: 0 the active side, 1 the passive one
 * @session: kofi_cm's sessions at the ends, or NULL
 * @cut: the network swallows what is written
 * @lock: protects all
 */
struct cm_conn {
	struct list_head	list;
	struct cm_pipe		pipe[2];
	struct kcm_session	*session[2];
	bool			cut;
	spinlock_t		lock;	/* protects all */
};

/**
 * struct cm_ulp - a ULP that counts its callbacks
 * @test: the test
 * @config: the service
 * @key: key of the secret, or NULL
 * @known: passive: clients are known
 * @keys_ret: passive: another result of keys, or 0
 * @s: the last session
 * @request_ret: result of request
 * @answers: request accepts at once
 * @holds: stop doesn't call kcm_gone()
 * @accepted_ret: result of accepted
 * @hello_ret: result of hello
 * @requests: number of calls, as those that follow
 * @accepteds: number of calls
 * @lives: number of calls
 * @notes: number of calls
 * @faileds: number of calls
 * @stops: number of calls
 * @end: argument of the last stop or failed; its data are in @data
 * @data: data of the last note, private data or end
 * @len: bytes of @data
 * @addr: first byte of the first address of the peer
 */
struct cm_ulp {
	struct kunit		*test;
	struct kcm_config	config;
	struct kulp_key		*key;
	bool			known;
	int			keys_ret;
	struct kcm_session	*s;
	int			request_ret;
	bool			answers;
	bool			holds;
	int			accepted_ret;
	int			hello_ret;
	unsigned int		requests;
	unsigned int		accepteds;
	unsigned int		lives;
	unsigned int		notes;
	unsigned int		faileds;
	unsigned int		stops;
	struct kcm_end		end;
	u8			data[KCM_NOTE_MAX];
	size_t			len;
	u8			addr;
};

/* Called by kcm_sock_adopt() after all else, if it is set. */
extern void (*cm_adopted)(struct cm_conn *conn);
/* The next call of this task that queues a session's work item lets it run first. */
extern struct task_struct *cm_hasty;
/* Called once, between the building of a message and its queueing, if it is set. */
extern void (*cm_built)(void);
/* The latest line of those that are limited in rate, without the limit. */
extern char cm_logged[512];
extern struct cm_ulp *cm_passive, *cm_active;
extern struct kcm_listener *cm_listener;

bool cm_all_gone(void);
int cm_scene_init(struct kunit *test);
void cm_scene_exit(struct kunit *test);
void cm_listen(struct kunit *test);
struct kcm_session *cm_connect(struct kunit *test);
struct cm_conn *cm_accepted(struct kunit *test, struct kcm_session **s);
struct cm_conn *cm_conn_of(struct kcm_session *s);
void cm_conn_close(struct cm_conn *conn, int side);
void cm_write(struct cm_conn *conn, int side, const void *buf, size_t len);
size_t cm_read(struct cm_conn *conn, int side, void *buf, size_t room);
void cm_play_passive(void);
struct cm_conn *cm_taken(struct kunit *test);

#define cm_soon(condition)						\
({									\
	unsigned long __end = jiffies + 10 * HZ;			\
									\
	while (!(condition) && time_before(jiffies, __end))		\
		usleep_range(500, 1000);				\
	(condition);							\
})

#endif /* CM_SCENE_H */
