/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef INTEROP_COUNTERS_H
#define INTEROP_COUNTERS_H

#include "peer.h"

/* Kill this process when the kernel's counter of @die_type in @die_line exceeds @die_before. */
static const char *die_line, *die_type;
static long die_before;

/* Return: the kernel's counter of packets of a type, in the line "sent" or "received". */
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

static void die_if_due(void)
{
	if (die_line && counted(die_line, die_type) > die_before)
		raise(SIGKILL);
}

#endif
