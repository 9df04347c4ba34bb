/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Input of a fuzz target:
 *
 *	TARGET < FILE			one message, for afl-fuzz and the like
 *	TARGET SEED COUNT FILE...	the files, and COUNT messages made of them
 *
 * With LIBFUZZER defined, libFuzzer provides the input. The target defines parse(), ROOM for the
 * longest message, and PASSED, the number of counters in passed[].
 */
#ifndef KOFI_FUZZ_DRIVE_H
#define KOFI_FUZZ_DRIVE_H

/* Copy to a buffer of exactly the size, so that the sanitizer detects reads beyond it. */
static void parse_exactly(const u8 *in, size_t len)
{
	u8 *copy = malloc(len ?: 1);

	if (!copy)
		abort();
	memcpy(copy, in, len);
	parse(copy, len);
	free(copy);
}

#ifdef LIBFUZZER
int LLVMFuzzerTestOneInput(const u8 *in, size_t len);

int LLVMFuzzerTestOneInput(const u8 *in, size_t len)
{
	if (len <= ROOM)
		parse_exactly(in, len);
	return 0;
}
#else
static u64 state;

static u64 number(u64 below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state * 0x2545f4914f6cdd1dULL >> 20) % below;
}

static size_t mutate(u8 *buf, size_t len)
{
	static const u64 odd[] = {
		0, 1, 2, 0x7f, 0x80, 0xff, 0x100, 511, 512, 513, 4095, 4096,
		0x7fff, 0x8000, 0xffff, 0x10000, 0x3fffff, 0x400000, 0x7fffffff,
		0x80000000, 0xffffffff, 0x7fffffffffffffff, 1ULL << 63, ~0ULL,
	};
	unsigned int changes = 1 + number(3);

	while (changes--) {
		size_t at = len ? number(len) : 0, width = 1 << number(4);
		u64 value = htole64(odd[number(ARRAY_SIZE(odd))]);

		switch (number(6)) {
		case 0:
			if (len)
				buf[at] ^= 1 << number(8);
			break;
		case 1:
			if (len)
				buf[at] = number(256);
			break;
		case 2:
			len = number(len + 1);
			break;
		case 3:
			at = number(ROOM - len + 1);
			at = at > 600 ? at % 600 : at;
			memset(buf + len, number(2) ? 0 : 0xff, at);
			len += at;
			break;
		default:
			at &= ~(width - 1);
			if (at + width <= len)
				memcpy(buf + at, &value, width);
		}
	}
	return len;
}

static size_t load(const char *name, u8 *buf)
{
	FILE *f = fopen(name, "rb");
	size_t len;

	if (!f) {
		perror(name);
		exit(2);
	}
	len = fread(buf, 1, ROOM, f);
	fclose(f);
	return len;
}

int main(int argc, char **argv)
{
	static u8 buf[ROOM], in[ROOM];
	unsigned long i, count;
	int files = argc - 3;
	size_t len;

	if (argc == 1) {
		parse_exactly(buf, fread(buf, 1, ROOM, stdin));
		return 0;
	}
	if (files < 1)
		return 2;
	state = strtoull(argv[1], NULL, 0) * 2 + 1;
	count = strtoul(argv[2], NULL, 0);
	for (i = 0; i < (unsigned long)files; i++) {
		len = load(argv[3 + i], buf);
		parse_exactly(buf, len);
	}
	for (i = 0; i < PASSED; i++)
		printf("%s%lu", i ? " " : "corpus: ", passed[i]);
	for (i = 0; i < count; i++) {
		/* Mutate one file several times before reading the next. */
		if (i % 1000 == 0)
			len = load(argv[3 + number(files)], in);
		memcpy(buf, in, len);
		parse_exactly(buf, mutate(buf, len));
	}
	for (i = 0; i < PASSED; i++)
		printf("%s%lu", i ? " " : "\npassed: ", passed[i]);
	printf("\n");
	return 0;
}
#endif /* LIBFUZZER */

#endif /* KOFI_FUZZ_DRIVE_H */
