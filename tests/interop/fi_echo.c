// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * libfabric's side of the tests with the kernel: send messages to kofi_echo, which sends them
 * back, and compare each byte. Uses only the public API of libfabric 1.14 or later.
 *
 * fi_echo DOMAIN NAME sizes [SIZE...]	one of each kind: tagged or not, with or without
 *					delivery complete
 * fi_echo DOMAIN NAME many COUNT	many messages, as many at a time as there are buffers
 * fi_echo DOMAIN NAME unexpected COUNT	send messages, and receive them only at end of input
 * fi_echo DOMAIN NAME forever		send messages until killed
 * fi_echo DOMAIN NAME die WHAT TYPE SIZE	send messages until the kernel has "sent" or
 *					"received" a packet of this type; then kill itself
 *
 * NAME is the kernel's address in hexadecimal. FI_ECHO_MAX is the length of buffers; if it is
 * more than 64 KiB there are fewer of them, and "many" sends some long messages. Messages of
 * more than 4 MiB are only sent tagged. FI_ECHO_COUNTERS is the file with the kernel's packet
 * counters. With FI_ECHO_NO_DESC receive buffers aren't registered beforehand; then the program
 * prints "ready" and waits for end of input first.
 */
#include <rdma/fi_tagged.h>
#include "counters.h"

#define ECHO_HELLO	0x48454c4c4fULL
#define ECHO_DC		0x4000000000000000ULL
#define WINDOW		64
#define PATIENCE_S	600
#define LONG_MAX_SIZE	(4u << 20)

static size_t max_size = 65536;
static unsigned int window = WINDOW;
static unsigned int sent, received;
static bool no_desc;
/* For each slot: its message came back. */
static bool back[WINDOW];

static unsigned char *out(unsigned int slot)
{
	return buf + (size_t)(slot % window) * max_size;
}

static unsigned char *in(unsigned int slot)
{
	return buf + (size_t)(window + slot % window) * max_size;
}

static void progress(void)
{
	struct fi_cq_tagged_entry entry[8];
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret = fi_cq_read(cq, entry, 8), i;

	die_if_due();
	for (i = 0; i < ret; i++)
		if (entry[i].flags & FI_SEND) {
			sent++;
		} else {
			received++;
			back[(uintptr_t)entry[i].op_context] = true;
		}
	if (ret != -FI_EAVAIL)
		return;
	fi_cq_readerr(cq, &err, 0);
	fprintf(stderr, "completion in error: %s (%d)\n", fi_strerror(err.err), err.prov_errno);
	exit(1);
}

/* Repeat a call while it returns -FI_EAGAIN, and make progress meanwhile. */
#define POST(what, call) do {				\
	long post_ret;					\
	time_t post_until = time(NULL) + PATIENCE_S;	\
	while ((post_ret = (call)) == -FI_EAGAIN &&	\
	       time(NULL) < post_until)			\
		progress();				\
	must(what, post_ret);				\
} while (0)

static void wait_for(const char *what, unsigned int sends, unsigned int receives)
{
	time_t until = time(NULL) + PATIENCE_S;

	while (sent < sends || received < receives) {
		progress();
		if (time(NULL) <= until)
			continue;
		fprintf(stderr, "%s: %u of %u sent, %u of %u came back\n", what, sent, sends,
			received, receives);
		exit(1);
	}
}

static void *context(unsigned int slot)
{
	back[slot % window] = false;
	return (void *)(uintptr_t)(slot % window);
}

static void wait_back(const char *what, unsigned int slot)
{
	time_t until = time(NULL) + PATIENCE_S;

	while (!back[slot % window]) {
		progress();
		if (time(NULL) <= until)
			continue;
		fprintf(stderr, "%s: the message in slot %u didn't come back, %u did\n", what, slot,
			received);
		exit(1);
	}
}

static void fill(unsigned char *p, size_t len, unsigned int seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (unsigned char)(i * 7 + i / 251 + seed);
}

static void post(unsigned int slot, size_t len, bool tagged, __u64 tag, __u64 flags)
{
	struct iovec iov = { out(slot), len };
	void *desc = fi_mr_desc(mr);
	struct fi_msg msg = { &iov, &desc, 1, kernel, NULL, 0 };
	struct fi_msg_tagged tmsg = { &iov, &desc, 1, kernel, tag, 0, NULL, 0 };
	void *in_desc = no_desc ? NULL : desc;

	fill(out(slot), len, slot);
	memset(in(slot), 0, len);
	if (tagged) {
		POST("fi_trecv", fi_trecv(ep, in(slot), max_size, in_desc, FI_ADDR_UNSPEC, tag, 0,
					  context(slot)));
		POST("fi_tsendmsg", fi_tsendmsg(ep, &tmsg, flags));
	} else {
		POST("fi_recv", fi_recv(ep, in(slot), max_size, in_desc, FI_ADDR_UNSPEC,
					context(slot)));
		POST("fi_sendmsg", fi_sendmsg(ep, &msg, flags));
	}
}

static void compare(unsigned int slot, size_t len, const char *what)
{
	if (!memcmp(in(slot), out(slot), len))
		return;
	fprintf(stderr, "%s of %zu bytes came back different\n", what, len);
	exit(1);
}

static void hello(const char *hex)
{
	const size_t len = NAME_LEN;

	introduce(hex, out(0));
	POST("fi_trecv", fi_trecv(ep, in(0), max_size, fi_mr_desc(mr), FI_ADDR_UNSPEC,
				  ECHO_HELLO, 0, context(0)));
	POST("hello", fi_tsend(ep, out(0), len, fi_mr_desc(mr), kernel, ECHO_HELLO, NULL));
	wait_for("hello", 1, 0);
	wait_back("hello", 0);
	compare(0, len, "hello");
}

static void sizes(int count, char **arg)
{
	static const char * const names[] = {
		"untagged", "tagged", "untagged, delivery complete", "tagged, delivery complete",
	};
	unsigned int way, before;
	size_t len;

	for (; count; count--, arg++) {
		len = strtoul(*arg, NULL, 0);
		for (way = 0; way < 4; way++) {
			if (len > LONG_MAX_SIZE && !(way & 1))
				continue;
			before = sent;
			post(way, len, way & 1, 100 + way + (way & 2 ? ECHO_DC : 0),
			     way & 2 ? FI_DELIVERY_COMPLETE : 0);
			wait_for(names[way], before + 1, 0);
			wait_back(names[way], way);
			compare(way, len, names[way]);
		}
		printf("same: %zu bytes\n", len);
		fflush(stdout);
	}
}

static void send_many(unsigned int count)
{
	static const size_t shorts[] = { 8, 600, 9000, 8, 20000, 100, 1, 4000 };
	static const size_t longs[] = { 8, 600, 100000, 8, 20000, 400000, 1, 66000 };
	const size_t *lens = max_size < longs[5] ? shorts : longs;
	unsigned int i, done = 0, base = sent;

	for (i = 0; done < count; i++) {
		if (i >= window || i >= count) {
			wait_back("many", done);
			compare(done, lens[done % 8], "one of many");
			done++;
		}
		if (i < count)
			post(i, lens[i % 8], true, 1000 + i, 0);
	}
	wait_for("many", base + count, 0);
}

/* Each message has another tag and other data. */
static void send_unexpected(unsigned int count)
{
	unsigned int i, base = sent;
	char line[8];

	for (i = 0; i < count; i++) {
		fill(out(i), 8, i);
		POST("fi_tsend", fi_tsend(ep, out(i), 8, fi_mr_desc(mr), kernel, 5000 + i, NULL));
		if (i % window == window - 1)
			wait_for("unexpected", base + i + 1, 0);
	}
	wait_for("unexpected", base + count, 0);
	printf("sent: %u\n", count);
	fflush(stdout);
	while (read(0, line, sizeof(line)) > 0)
		;
	for (i = 0; i < count; i++) {
		fill(out(i), 8, i);
		POST("fi_trecv", fi_trecv(ep, in(i), max_size, fi_mr_desc(mr), FI_ADDR_UNSPEC,
					  5000 + i, 0, context(i)));
		wait_back("back", i);
		compare(i, 8, "an unexpected one");
	}
}

/* Send messages until progress() kills the process; fail if that doesn't happen. */
static void die(const char *line, const char *type, size_t len)
{
	time_t until = time(NULL) + PATIENCE_S;
	unsigned int i, before;

	die_line = line;
	die_type = type;
	for (i = 0; time(NULL) <= until; i++) {
		before = sent;
		post(i, len, true, 100 + (i & 1 ? ECHO_DC : 0), i & 1 ? FI_DELIVERY_COMPLETE : 0);
		wait_for("die", before + 1, 0);
		wait_back("die", i);
	}
	fprintf(stderr, "the kernel has never %s a %s\n", line, type);
	exit(1);
}

static void wait_for_input(void)
{
	char line[8];

	printf("ready\n");
	fflush(stdout);
	while (read(0, line, sizeof(line)) > 0)
		;
}

int main(int argc, char **argv)
{
	size_t half;

	if (argc < 4) {
		fprintf(stderr, "usage: fi_echo DOMAIN NAME WHAT ..., see the source\n");
		return 2;
	}
	no_desc = getenv("FI_ECHO_NO_DESC");
	if (getenv("FI_ECHO_MAX"))
		max_size = strtoul(getenv("FI_ECHO_MAX"), NULL, 0);
	if (max_size > 65536)
		window = max_size > LONG_MAX_SIZE ? 2 : 16;
	if (!strcmp(argv[3], "die") && argc == 7)
		die_before = counted(argv[4], argv[5]);
	half = window * max_size;
	open_all(argv[1], (struct fi_cq_attr) { .format = FI_CQ_FORMAT_TAGGED }, 0,
		 no_desc ? 0 : FI_MR_LOCAL, 2 * half, no_desc ? half : 2 * half);
	hello(argv[2]);
	if (no_desc)
		wait_for_input();
	if (!strcmp(argv[3], "sizes"))
		sizes(argc - 4, argv + 4);
	else if (!strcmp(argv[3], "many") && argc == 5)
		send_many((unsigned int)strtoul(argv[4], NULL, 0));
	else if (!strcmp(argv[3], "unexpected") && argc == 5)
		send_unexpected((unsigned int)strtoul(argv[4], NULL, 0));
	else if (!strcmp(argv[3], "die") && argc == 7)
		die(argv[4], argv[5], strtoul(argv[6], NULL, 0));
	else
		for (;;)
			send_many(64);
	close_all();
	return 0;
}
