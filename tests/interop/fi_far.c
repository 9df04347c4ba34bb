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
#include <errno.h>
#include <fcntl.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME_LEN	32
#define PATIENCE_S	200
#define EDGE		8192	/* bytes on either side that nothing may write */
#define AT_ONCE		8

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;
static struct fid_mr *mr;
static fi_addr_t kernel;
static unsigned char *buf;
static size_t size;		/* of the kernel's region */
static unsigned long base, key;	/* of the kernel's region */
static unsigned long posted, done, told, told_data;
static bool with_data = true;
static const char *die_line, *die_type;
static long die_before;
/* The other process, which writes the kernel's parameter go. */
static int ask, answer;

static void must(const char *what, long ret)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-ret));
	exit(1);
}

static void give_up(const char *what, size_t len)
{
	fprintf(stderr, "%s of %zu bytes failed\n", what, len);
	exit(1);
}

/* --- the kernel's parameters and counters --- */

static const char *parameter(const char *name)
{
	static char text[200];
	char path[200];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", getenv("FI_FAR_DIR"), name);
	file = fopen(path, "r");
	if (!file || !fgets(text, sizeof(text), file)) {
		perror(path);
		exit(1);
	}
	fclose(file);
	return text;
}

/* Return: 0 or a positive errno. */
static int set(const char *name, const char *value)
{
	char path[200];
	int fd, ret = 0;

	snprintf(path, sizeof(path), "%s/%s", getenv("FI_FAR_DIR"), name);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		ret = errno;
	close(fd);
	return ret;
}

static long counted(const char *line, const char *type)
{
	static const char blanks[] = { ' ', 10, 0 };
	FILE *file = fopen(getenv("FI_ECHO_COUNTERS"), "r");
	char text[4096], *word, *save;
	long n = 0;

	if (!file) {
		perror("FI_ECHO_COUNTERS");
		exit(1);
	}
	while (fgets(text, sizeof(text), file)) {
		word = strtok_r(text, blanks, &save);
		if (!word || strcmp(word, line))
			continue;
		while (word && strcmp(word, type))
			word = strtok_r(NULL, blanks, &save);
		if (word)
			n = strtol(strtok_r(NULL, blanks, &save), NULL, 10);
		break;
	}
	fclose(file);
	return n;
}

/* Carry out the parent's commands. It has no file of the device, which the parent opens later. */
static void serve(int in, int out)
{
	char command[200];
	ssize_t n;
	int ret;

	while ((n = read(in, command, sizeof(command) - 1)) > 0) {
		command[n] = 0;
		ret = set("go", command);
		if (write(out, &ret, sizeof(ret)) != sizeof(ret))
			break;
	}
	_exit(0);
}

static void start_server(void)
{
	int to[2], from[2];

	if (pipe(to) || pipe(from)) {
		perror("pipe");
		exit(1);
	}
	if (!fork()) {
		close(to[1]);
		close(from[0]);
		serve(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	ask = to[1];
	answer = from[0];
	fcntl(answer, F_SETFL, O_NONBLOCK);
}

/* --- opening --- */

static void open_all(const char *name)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_DATA, .size = 4096 };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_info *hints = fi_allocinfo();

	hints->fabric_attr->prov_name = strdup("efa");
	hints->domain_attr->name = strdup(name);
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
				      FI_MR_LOCAL;
	hints->ep_attr->type = FI_EP_RDM;
	/* Of version 2's fabrics only one has tags. */
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA;
	must("fi_getinfo", fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	must("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
	must("fi_domain", fi_domain(fabric, info, &domain, NULL));
	must("fi_av_open", fi_av_open(domain, &av_attr, &av, NULL));
	must("fi_cq_open", fi_cq_open(domain, &cq_attr, &cq, NULL));
	must("fi_endpoint", fi_endpoint(domain, info, &ep, NULL));
	must("bind av", fi_ep_bind(ep, &av->fid, 0));
	must("bind cq", fi_ep_bind(ep, &cq->fid, FI_SEND | FI_RECV));
	must("fi_enable", fi_enable(ep));
	buf = aligned_alloc(4096, 2 * size);
	if (!buf)
		exit(1);
	memset(buf, 0, 2 * size);
	must("fi_mr_reg", fi_mr_reg(domain, buf, 2 * size, FI_READ | FI_WRITE | FI_REMOTE_READ |
				    FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL));
}

static void introduce(void)
{
	unsigned char name[NAME_LEN];
	size_t len = sizeof(name);
	char hex[2 * NAME_LEN + 1];
	const char *theirs = parameter("name");
	unsigned int i, byte;

	for (i = 0; i < NAME_LEN; i++) {
		if (sscanf(theirs + 2 * i, "%2x", &byte) != 1)
			must("name", -FI_EINVAL);
		name[i] = (unsigned char)byte;
	}
	if (fi_av_insert(av, name, 1, &kernel, 0, NULL) != 1)
		must("fi_av_insert", -FI_EINVAL);
	must("fi_getname", fi_getname(&ep->fid, name, &len));
	for (i = 0; i < NAME_LEN; i++)
		sprintf(hex + 2 * i, "%02x", name[i]);
	must("peer", -set("peer", hex));
	if (sscanf(parameter("region"), "%lu %lu", &base, &key) != 2)
		must("region", -FI_EINVAL);
	told = strtoul(parameter("told"), NULL, 10);
}

/* --- progress --- */

static void progress(void)
{
	struct fi_cq_data_entry entry[8];
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret = fi_cq_read(cq, entry, 8), i;

	if (die_line && counted(die_line, die_type) > die_before)
		raise(SIGKILL);
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

static bool answered(int *ret)
{
	return read(answer, ret, sizeof(*ret)) == sizeof(*ret);
}

/* Have the kernel carry out an operation on this end's memory. */
static void there(const char *op, unsigned char *local, size_t at, size_t len)
{
	char command[200];
	int ret = 0;

	/* Without FI_MR_VIRT_ADDR the address is an offset. */
	snprintf(command, sizeof(command), "%s %zu %zu %lu %lu", op, at, len,
		 info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (unsigned long)local :
		 (unsigned long)(local - buf), fi_mr_key(mr));
	told_data = ~0UL;
	if (write(ask, command, strlen(command)) < 0)
		give_up("write", len);
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
	signal(SIGCHLD, SIG_IGN);
	start_server();
	size = strtoul(parameter("size"), NULL, 10);
	if (getenv("FI_FAR_DATA"))
		with_data = atoi(getenv("FI_FAR_DATA"));
	if (!strcmp(argv[2], "die") && argc == 7)
		die_before = counted(argv[3], argv[4]);
	open_all(argv[1]);
	introduce();
	if (!strcmp(argv[2], "sizes"))
		sizes(argc - 3, argv + 3);
	else if (!strcmp(argv[2], "many") && argc == 4)
		at_once((unsigned int)strtoul(argv[3], NULL, 0));
	else if (!strcmp(argv[2], "die") && argc == 7)
		die(argv[3], argv[4], argv[5], strtoul(argv[6], NULL, 0));
	else
		must("WHAT", -FI_EINVAL);
	fi_close(&ep->fid);
	fi_close(&mr->fid);
	fi_close(&cq->fid);
	fi_close(&av->fid);
	fi_close(&domain->fid);
	fi_close(&fabric->fid);
	fi_freeinfo(info);
	return 0;
}
