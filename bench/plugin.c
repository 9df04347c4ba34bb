// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A plugin for QEMU's TCG that counts instructions by address, without changes to the
 * counted code. Marks, which are nops to the guest (see bench.h), begin and end windows.
 *
 * The plugin counts translation blocks, which are straight pieces of code. Blocks of the
 * kernel proper are counted separately for each caller, which is the block of a module
 * that ran last before. So work that the kernel does for one module can be distinguished
 * from work for another, without unwinding the guest's stack.
 *
 *   qemu-system-x86_64 -plugin plugin.so,out=FILE[,lines=on]
 *
 * For each window FILE has a line "W" and then a line for each pair of blocks:
 *   ADDRESS INSTRUCTIONS EXECUTIONS CALLER MOVED LOCKED
 * MOVED are the bytes that a string instruction moves each time the block runs: it
 * ends a block, and each repetition is another block's execution. LOCKED are its locked
 * read-modify-writes.
 *
 * With lines=on FILE also has, for each cache line that two CPUs wrote, a line for each
 * block of each CPU that wrote it:
 *   L ADDRESS CPU BLOCK CALLER LOCKED
 * LOCKED tells whether it used a locked read-modify-write.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))

/* The part of QEMU's plugin interface, version 1, that the plugin uses. */
typedef uint64_t plugin_id;
typedef void (*trans_fn)(plugin_id id, void *tb);
typedef void (*exec_fn)(unsigned int cpu, void *data);
typedef void (*mem_fn)(unsigned int cpu, uint32_t info, uint64_t addr, void *data);

enum { NO_REGS };
enum { MEM_WRITES = 2 };

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, trans_fn fn);
void qemu_plugin_register_vcpu_tb_exec_cb(void *tb, exec_fn fn, int flags,
					  void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(void *insn, exec_fn fn, int flags,
					    void *data);
void qemu_plugin_register_vcpu_mem_cb(void *insn, mem_fn fn, int flags, int what,
				      void *data);
bool qemu_plugin_mem_is_store(uint32_t info);
size_t qemu_plugin_tb_n_insns(const void *tb);
uint64_t qemu_plugin_tb_vaddr(const void *tb);
void *qemu_plugin_tb_get_insn(const void *tb, size_t i);
const void *qemu_plugin_insn_data(const void *insn);
size_t qemu_plugin_insn_size(const void *insn);

PUBLIC int qemu_plugin_version = 1;

/* nopl imm32(%rax): the upper half identifies a mark, the lower half is its kind. */
#define MARK_SIZE	7
#define MARK_MAGIC	0x6b620000u

enum mark { MARK_BEGIN = 1, MARK_PAUSE, MARK_RESUME, MARK_END, MARKS };

/* Address ranges of modules and of the kernel in x86-64 Linux. */
#define MODULES_START	0xffffffffc0000000ull
#define MODULES_END	0xffffffffff000000ull

struct block;

/* Number of executions of a block with a caller. */
struct pair {
	struct pair *next;
	struct block *block;
	struct block *caller;
	uint64_t count;
};

struct block {
	struct block *next;
	uint64_t addr;
	uint32_t insns;
	uint32_t moved;
	uint32_t locked;
	bool module;
	struct pair *pairs;	/* the most recently used one first */
};

#define CPUS	2

struct writer {
	struct writer *next;
	struct block *block;
	struct block *caller;
	bool locked;
};

/* A cache line that was written in this window, by CPU. */
struct line {
	struct line *next;
	uint64_t addr;
	struct writer *writers[CPUS];
};

#define BUCKETS	(1u << 16)
#define KERNEL_START	0xffff800000000000ull

static struct block *table[BUCKETS];
static struct pair **touched;
static size_t num_touched, max_touched;
static struct block *last[CPUS];	/* last block of a module */
static struct block *now[CPUS];
static struct line *lines[BUCKETS];
static bool want_lines;
static bool counting;
static unsigned long windows;
static FILE *out;

static void *must(void *mem)
{
	if (mem)
		return mem;
	fprintf(stderr, "plugin: no memory\n");
	exit(1);
}

static struct block *find_block(uint64_t addr, uint32_t insns)
{
	uint32_t hash = (addr * 0x9e3779b97f4a7c15ull) >> 48;
	struct block *b;

	for (b = table[hash]; b; b = b->next)
		if (b->addr == addr && b->insns == insns)
			return b;
	b = must(calloc(1, sizeof(*b)));
	b->addr = addr;
	b->insns = insns;
	b->module = addr >= MODULES_START && addr < MODULES_END;
	b->next = table[hash];
	table[hash] = b;
	return b;
}

static struct pair *find_pair(struct block *b, struct block *caller)
{
	struct pair **where, *p;

	for (where = &b->pairs; (p = *where); where = &p->next)
		if (p->caller == caller)
			break;
	if (p && where == &b->pairs)
		return p;
	if (p) {
		*where = p->next;
	} else {
		p = must(calloc(1, sizeof(*p)));
		p->block = b;
		p->caller = caller;
	}
	p->next = b->pairs;
	b->pairs = p;
	return p;
}

static void touch(struct pair *p)
{
	if (num_touched == max_touched) {
		max_touched = max_touched ? 2 * max_touched : 4096;
		touched = must(realloc(touched, max_touched * sizeof(*touched)));
	}
	touched[num_touched++] = p;
}

static void on_block(unsigned int cpu, void *data)
{
	struct block *b = data;
	struct pair *p;

	now[cpu % CPUS] = b;
	if (b->module)
		last[cpu % CPUS] = b;
	if (!counting)
		return;
	p = find_pair(b, b->module ? NULL : last[cpu % CPUS]);
	if (!p->count++)
		touch(p);
}

static void add_writer(struct writer **writers, struct block *block, struct block *caller,
		       bool locked)
{
	struct writer *w;

	for (w = *writers; w; w = w->next)
		if (w->block == block && w->caller == caller) {
			w->locked |= locked;
			return;
		}
	w = must(calloc(1, sizeof(*w)));
	w->block = block;
	w->caller = caller;
	w->locked = locked;
	w->next = *writers;
	*writers = w;
}

static void on_write(unsigned int cpu, uint32_t info, uint64_t addr, void *locked)
{
	uint64_t at = addr >> 6;
	uint32_t hash = (at * 0x9e3779b97f4a7c15ull) >> 48;
	struct line *l;

	/* Ignore reads, and addresses behind the modules, which are per-CPU registers. */
	if (!counting || cpu >= CPUS || !now[cpu] || addr >= MODULES_END ||
	    !qemu_plugin_mem_is_store(info))
		return;
	for (l = lines[hash]; l; l = l->next)
		if (l->addr == at)
			break;
	if (!l) {
		l = must(calloc(1, sizeof(*l)));
		l->addr = at;
		l->next = lines[hash];
		lines[hash] = l;
	}
	add_writer(&l->writers[cpu], now[cpu], now[cpu]->module ? NULL : last[cpu], locked);
}

static void dump_lines(void)
{
	struct writer *w;
	struct line *l;
	size_t i;
	int cpu;

	for (i = 0; want_lines && i < BUCKETS; i++)
		for (l = lines[i]; l; l = l->next) {
			if (!l->writers[0] || !l->writers[1])
				continue;
			for (cpu = 0; cpu < CPUS; cpu++)
				for (w = l->writers[cpu]; w; w = w->next)
					fprintf(out, "L %lx %x %lx %lx %x\n", l->addr << 6,
						cpu, w->block->addr,
						w->caller ? w->caller->addr : 0, w->locked);
		}
}

static void forget(void)
{
	struct writer *w;
	struct line *l;
	size_t i;
	int cpu;

	for (i = 0; want_lines && i < BUCKETS; i++)
		while ((l = lines[i])) {
			lines[i] = l->next;
			for (cpu = 0; cpu < CPUS; cpu++)
				while ((w = l->writers[cpu])) {
					l->writers[cpu] = w->next;
					free(w);
				}
			free(l);
		}

	for (i = 0; i < num_touched; i++)
		touched[i]->count = 0;
	num_touched = 0;
}

static void dump(void)
{
	size_t i;

	fprintf(out, "W %lu\n", windows++);
	for (i = 0; i < num_touched; i++) {
		struct pair *p = touched[i];

		fprintf(out, "%lx %x %lx %lx %x %x\n", p->block->addr,
			p->block->insns, p->count,
			p->caller ? p->caller->addr : 0, p->block->moved,
			p->block->locked);
	}
	dump_lines();
	fflush(out);
}

static void on_mark(unsigned int cpu, void *data)
{
	switch ((uintptr_t)data) {
	case MARK_BEGIN:
		forget();
		counting = true;
		break;
	case MARK_PAUSE:
		counting = false;
		break;
	case MARK_RESUME:
		counting = true;
		break;
	case MARK_END:
		counting = false;
		dump();
		break;
	}
}

/* Return: the kind of mark that an instruction is, or 0. */
static uintptr_t mark_of(const void *insn)
{
	const uint8_t *bytes = qemu_plugin_insn_data(insn);
	uint32_t word;

	if (qemu_plugin_insn_size(insn) != MARK_SIZE || bytes[0] != 0x0f ||
	    bytes[1] != 0x1f || bytes[2] != 0x80)
		return 0;
	memcpy(&word, bytes + 3, sizeof(word));
	word ^= MARK_MAGIC;
	return word < MARKS ? word : 0;
}

/* Return: bytes that one repetition of "rep movs" moves, or 0 for another instruction. */
static uint32_t moved_by(const void *insn)
{
	const uint8_t *bytes = qemu_plugin_insn_data(insn);
	size_t i, last = qemu_plugin_insn_size(insn) - 1;
	uint32_t size = 4;
	bool rep = false;

	for (i = 0; i < last; i++) {
		if (bytes[i] == 0xf3)
			rep = true;
		else if (bytes[i] == 0x66)
			size = 2;
		else if ((bytes[i] & 0xf8) == 0x48)	/* REX.W */
			size = 8;
		else
			return 0;
	}
	if (!rep || (bytes[last] != 0xa4 && bytes[last] != 0xa5))
		return 0;
	return bytes[last] == 0xa4 ? 1 : size;
}

static bool is_prefix(uint8_t byte)
{
	switch (byte) {
	case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65:
	case 0x66: case 0x67: case 0xf0: case 0xf2: case 0xf3:
		return true;
	default:
		return false;
	}
}

/* Return: whether an instruction is a locked read-modify-write of memory. */
static bool is_locked(const void *insn)
{
	const uint8_t *bytes = qemu_plugin_insn_data(insn);
	size_t i, size = qemu_plugin_insn_size(insn);

	for (i = 0; i < size && is_prefix(bytes[i]); i++)
		if (bytes[i] == 0xf0)
			return true;
	if (i < size && (bytes[i] & 0xf0) == 0x40)	/* REX */
		i++;
	/* xchg with memory is locked without a prefix. */
	return i + 1 < size && (bytes[i] & 0xfe) == 0x86 && bytes[i + 1] < 0xc0;
}

static void on_translate(plugin_id id, void *tb)
{
	size_t i, n = qemu_plugin_tb_n_insns(tb);
	struct block *b = find_block(qemu_plugin_tb_vaddr(tb), n);
	uintptr_t mark;
	void *insn;

	/* Set it each time, because the code at an address may have changed. */
	b->moved = moved_by(qemu_plugin_tb_get_insn(tb, n - 1));
	b->locked = 0;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, NO_REGS, b);
	for (i = 0; i < n; i++) {
		insn = qemu_plugin_tb_get_insn(tb, i);
		b->locked += is_locked(insn);
		if (want_lines && b->addr >= KERNEL_START)
			qemu_plugin_register_vcpu_mem_cb(insn, on_write, NO_REGS, MEM_WRITES,
							 (void *)(uintptr_t)is_locked(insn));
		mark = mark_of(insn);
		if (mark)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark,
							       NO_REGS,
							       (void *)mark);
	}
}

PUBLIC int qemu_plugin_install(plugin_id id, const void *info, int argc,
			       char **argv)
{
	want_lines = argc == 2 && !strcmp(argv[1], "lines=on");
	if (argc != 1 + want_lines || strncmp(argv[0], "out=", 4)) {
		fprintf(stderr, "plugin: out=FILE is needed\n");
		return -1;
	}
	out = fopen(argv[0] + 4, "w");
	if (!out) {
		perror(argv[0] + 4);
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
