// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * libfabric's side of the tests of reads and writes: it reads and writes the region of kofi_far,
 * has the kernel read and write its own memory, and compares each byte. Uses only the public API of
 * libfabric 1.14 or later.
 *
 * fi_far DOMAIN sizes [SIZE...]	each operation in both directions, at several offsets
 * fi_far DOMAIN many COUNT		many operations of this end, several at a time
 * fi_far DOMAIN die LINE TYPE OPERATION SIZE	repeat an operation until the kernel has
 *					"sent" or "received" a packet of this type; then kill
 *					itself. Operations of the kernel are kread, kwrite,
 *					kwritedata
 *
 * FI_FAR_DIR is the directory of kofi_far's parameters, and FI_ECHO_COUNTERS the file with the
 * kernel's packet counters. FI_FAR_DATA=0 leaves out this end's writes with data.
 */
#include <rdma/fi_rma.h>
#include "counters.h"
#include "far.h"

#define PATIENCE_S	200
#define EDGE		8192	/* bytes on either side that nothing may write */
#define AT_ONCE		8

static size_t size;		/* of the kernel's region */
static unsigned long base, key;	/* of the kernel's region */
static unsigned long posted, done, told, told_data;
static bool with_data = true;

static void give_up(const char *what, size_t len)
{
	fprintf(stderr, "%s of %zu bytes failed\n", what, len);
	exit(1);
}

/* --- progress --- */

static void progress(void)
{
	struct fi_cq_data_entry entry[8];
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret = fi_cq_read(cq, entry, 8), i;

	die_if_due();
	for (i = 0; i < ret; i++) {
		if (entry[i].flags & FI_REMOTE_WRITE)
			told_data = entry[i].data;
		else
			done++;
	}
	if (ret != -FI_EAVAIL)
		return;
	fi_cq_readerr(cq, &err, 0);
	fprintf(stderr, "completion in error: %s (%d)\n", fi_strerror(err.err), err.prov_errno);
	exit(1);
}

#define WAIT(what, len, cond) do {					\
	time_t wait_until = time(NULL) + PATIENCE_S;			\
	while (!(cond)) {						\
		progress();						\
		if (time(NULL) > wait_until)				\
			give_up(what, len);				\
	}								\
} while (0)

/* --- operations --- */

enum op { WRITE, WRITEDC, WRITEDATA, READ, OPS };

static const char * const names[] = { "write", "writedc", "writedata", "read" };

static void post(enum op op, unsigned char *local, size_t at, size_t len)
{
	struct iovec iov = { local, len };
	struct fi_rma_iov rma = { base + at, len, key };
	void *desc = fi_mr_desc(mr);
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = kernel, .rma_iov = &rma,
		.rma_iov_count = 1, .data = len,
	};
	unsigned long flags = FI_COMPLETION | (op == WRITEDC ? FI_DELIVERY_COMPLETE : 0) |
			 (op == WRITEDATA ? FI_REMOTE_CQ_DATA : 0);
	time_t until = time(NULL) + PATIENCE_S;
	long ret;

	do {
		ret = op == READ ? fi_readmsg(ep, &msg, flags) : fi_writemsg(ep, &msg, flags);
		if (ret == -FI_EAGAIN)
			progress();
	} while (ret == -FI_EAGAIN && time(NULL) < until);
	must(names[op], ret);
	posted++;
}

/* Carry out an operation of this end, whose memory is at the same offset as the kernel's. */
static void here(enum op op, unsigned char *local, size_t at, size_t len)
{
	post(op, local, at, len);
	WAIT(names[op], len, done == posted);
	if (op != WRITEDATA)
		return;
	told++;
	WAIT("writedata's end", len, strtoul(parameter("told"), NULL, 10) == told);
	if (strtoul(parameter("last"), NULL, 10) != len)
		give_up("writedata's data", len);
}

/* Have the kernel carry out an operation on this end's memory. */
static void there(const char *op, unsigned char *local, size_t at, size_t len)
{
	char command[200];
	int ret = 0;

	snprintf(command, sizeof(command), "%s %zu %zu %lu %lu", op, at, len, named(local),
		 fi_mr_key(mr));
	told_data = ~0UL;
	ask_kernel(command);
	WAIT(op, len, answered(&ret));
	must(op, -ret);
	if (!strcmp(op, "writedata"))
		WAIT("the kernel's data", len, told_data == len);
}

/* --- tests --- */

static void fill(unsigned char *p, size_t len, unsigned int seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (unsigned char)(i * 7 + i / 251 + seed);
}

static void compare(const unsigned char *a, const unsigned char *b, size_t len, const char *what)
{
	size_t i;

	for (i = 0; i < len && a[i] == b[i]; i++)
		;
	if (i == len)
		return;
	fprintf(stderr, "%s: byte %zu of %zu is different\n", what, i, len);
	exit(1);
}

/* The bytes around the memory of an operation. */
static void guard(unsigned char *in, size_t at, size_t len)
{
	memset(in + at - EDGE / 2, 0x6b, EDGE / 2);
	memset(in + at + len, 0x6b, EDGE / 2);
}

static void guarded(const unsigned char *in, size_t at, size_t len, const char *what)
{
	size_t i;

	for (i = 0; i < EDGE / 2; i++)
		if (in[at - EDGE / 2 + i] != 0x6b || in[at + len + i] != 0x6b) {
			fprintf(stderr, "%s of %zu bytes wrote too much\n", what, len);
			exit(1);
		}
}

/* Each operation that brings new data is checked by one of the other direction. */
static void one_size(size_t len, size_t off)
{
	unsigned char *out = buf, *in = buf + size;
	const size_t at = EDGE / 2 + off;
	static unsigned int seed;
	enum op op;

	for (op = WRITE; op < READ; op++) {
		if (op == WRITEDATA && !with_data)
			continue;
		fill(out + at, len, ++seed);
		here(op, out + at, at, len);
		guard(in, at, len);
		memset(in + at, 0, len);
		here(READ, in + at, at, len);
		/* A read may overtake a write whose delivery wasn't waited for. */
		if (op == WRITE)
			WAIT("write's arrival", len, (here(READ, in + at, at, len),
						      !memcmp(in + at, out + at, len)));
		compare(in + at, out + at, len, names[op]);
		guarded(in, at, len, "read");
		memset(in + at, 0, len);
		guard(in, at, len);
		there(op == WRITEDATA ? "writedata" : "write", in + at, at, len);
		compare(in + at, out + at, len, "the kernel's write");
		guarded(in, at, len, "the kernel's write");
	}
	fill(out + at, len, ++seed);
	there("read", out + at, at, len);
	memset(in + at, 0, len);
	here(READ, in + at, at, len);
	compare(in + at, out + at, len, "the kernel's read");
}

static void sizes(int count, char **arg)
{
	static const size_t offs[] = { 0, 1, 4095 };
	unsigned int i;
	size_t len;

	for (; count; count--, arg++) {
		len = strtoul(*arg, NULL, 0);
		/* Long ones take long. */
		for (i = len > 2000000; i < sizeof(offs) / sizeof(*offs); i += 1 + (len > 2000000))
			one_size(len, offs[i]);
		printf("same: %zu bytes\n", len);
		fflush(stdout);
	}
}

/* Slots, whose writes are read back together with those of others. */
static void at_once(unsigned int count)
{
	static const size_t lens[] = { 8, 600, 9000, 70000, 1, 4000, 30000, 66000 };
	const size_t slot = (size - EDGE) / AT_ONCE;
	unsigned int i, round;

	for (round = 0; round < count / AT_ONCE; round++) {
		for (i = 0; i < AT_ONCE; i++) {
			fill(buf + i * slot, lens[i], round + i);
			post(WRITEDC, buf + i * slot, i * slot, lens[i]);
		}
		WAIT("many writes", 0, done == posted);
		memset(buf + size, 0, size);
		for (i = 0; i < AT_ONCE; i++)
			post(READ, buf + size + i * slot, i * slot, lens[i]);
		WAIT("many reads", 0, done == posted);
		for (i = 0; i < AT_ONCE; i++)
			compare(buf + size + i * slot, buf + i * slot, lens[i], "one of many");
	}
}

static void die(const char *line, const char *type, const char *op, size_t len)
{
	time_t until = time(NULL) + PATIENCE_S;
	unsigned int i;

	die_line = line;
	die_type = type;
	while (time(NULL) <= until) {
		if (*op == 'k') {
			there(op + 1, buf + 1, 1, len);
			continue;
		}
		for (i = WRITE; strcmp(names[i], op); i++)
			;
		here(i, buf + 1, 1, len);
	}
	fprintf(stderr, "the kernel has never %s a %s\n", line, type);
	exit(1);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: fi_far DOMAIN WHAT ..., see the source\n");
		return 2;
	}
	start_server();
	size = strtoul(parameter("size"), NULL, 10);
	if (getenv("FI_FAR_DATA"))
		with_data = atoi(getenv("FI_FAR_DATA"));
	if (!strcmp(argv[2], "die") && argc == 7)
		die_before = counted(argv[3], argv[4]);
	open_all(argv[1], (struct fi_cq_attr) { .format = FI_CQ_FORMAT_DATA }, FI_RMA, FI_MR_LOCAL,
		 2 * size, 2 * size);
	if (sscanf(introduce_far(), "%lu %lu", &base, &key) != 2)
		must("region", -FI_EINVAL);
	told = strtoul(parameter("told"), NULL, 10);
	if (!strcmp(argv[2], "sizes"))
		sizes(argc - 3, argv + 3);
	else if (!strcmp(argv[2], "many") && argc == 4)
		at_once((unsigned int)strtoul(argv[3], NULL, 0));
	else if (!strcmp(argv[2], "die") && argc == 7)
		die(argv[3], argv[4], argv[5], strtoul(argv[6], NULL, 0));
	else
		must("WHAT", -FI_EINVAL);
	close_all();
	return 0;
}
