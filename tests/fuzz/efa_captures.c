// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The parser of fabric efa with packets that libfabric sent, in tests/captures: each must be
 * accepted, have the recorded type, and be built to the same bytes.
 *
 *	efa_captures FILE...		lines of TYPE LENGTH HEX; # begins a comment
 *
 * The bytes may be only the beginning of a packet of that length; the rest, which is data, is
 * set to 0.
 *
 * Prints the number of packets of each type.
 */
#include "kernel.h"

#include <ctype.h>

#include "../../prov/efa/rdm/packet.c"
#include "../../prov/efa/rdm/parse.c"
#include "../../prov/efa/rdm/build.c"
#include "../kunit/efa_wire_cases.h"

static unsigned long seen[KEFA_PKT_TYPES];
static unsigned long bad;

static void complain(const char *file, unsigned int line, const char *what, const char *more)
{
	fprintf(stderr, "%s:%u: %s%s\n", file, line, what, more);
	bad++;
}

/* EAGER_MSGRTM, eager-msgrtm, or with _PKT behind it. */
static bool same_name(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
		if (toupper(*a) != *b && !(*a == '-' && *b == '_'))
			return false;
	return !*b && (!*a || !strcasecmp(a, "_pkt"));
}

static int digit(char c)
{
	if (!isxdigit(c))
		return -1;
	return isdigit(c) ? c - '0' : tolower(c) - 'a' + 10;
}

/* Copy to a buffer of exactly the size, so that the sanitizer detects reads beyond it. */
static u8 *packet(const char *length, const char *hex, size_t *len)
{
	char *end;
	size_t i;
	int high, low;
	u8 *buf;

	*len = strtoul(length, &end, 10);
	if (*end || !*len || *len > 65536 || strlen(hex) > 2 * *len)
		return NULL;
	buf = calloc(1, *len);
	assert(buf);
	for (i = 0; hex[2 * i]; i++) {
		high = digit(hex[2 * i]);
		low = high < 0 ? -1 : digit(hex[2 * i + 1]);
		if (low < 0) {
			free(buf);
			return NULL;
		}
		buf[i] = high << 4 | low;
	}
	return buf;
}

static void check(const char *file, unsigned int line, const char *name, u8 *buf, size_t len)
{
	static u8 out[WIRE_ROOM];
	struct kefa_pkt pkt;
	enum kefa_bad why = kefa_parse(buf, len, &pkt);
	size_t n;

	if (why) {
		complain(file, line, "refused: ", kefa_bad_text(why));
		return;
	}
	if (!same_name(name, pkt.row->name)) {
		complain(file, line, "it is a ", pkt.row->name);
		return;
	}
	seen[pkt.row->type]++;
	n = kefa_build(&pkt, out, sizeof(out));
	memcpy(out + n, pkt.data, pkt.data_len);
	wire_scrub(buf);
	if (n + pkt.data_len != len || memcmp(buf, out, len))
		complain(file, line, "built to other bytes", "");
}

static void read_file(const char *file)
{
	char *text = NULL, *name, *length, *hex, *rest;
	FILE *f = fopen(file, "r");
	unsigned int line = 0;
	size_t room = 0, len;
	u8 *buf;

	if (!f) {
		perror(file);
		exit(2);
	}
	while (getline(&text, &room, f) >= 0) {
		line++;
		text[strcspn(text, "#\r\n")] = 0;
		name = strtok_r(text, " \t", &rest);
		if (!name)
			continue;
		length = strtok_r(NULL, " \t", &rest);
		hex = length ? strtok_r(NULL, " \t", &rest) : NULL;
		buf = hex ? packet(length, hex, &len) : NULL;
		if (buf)
			check(file, line, name, buf, len);
		else
			complain(file, line, "no packet", "");
		free(buf);
	}
	free(text);
	fclose(f);
}

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		read_file(argv[i]);
	for (i = 0; i < KEFA_PKT_TYPES; i++)
		if (seen[i])
			printf("%s %lu\n", kefa_pkt_rows[i].name, seen[i]);
	return bad ? 1 : 0;
}
