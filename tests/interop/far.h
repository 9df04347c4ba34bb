/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* kofi_far's parameters, by which it says what it has, and is told what to do. */
#ifndef INTEROP_FAR_H
#define INTEROP_FAR_H

#include "peer.h"

/* The other process, which writes the kernel's parameter go. */
static int ask, answer;

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

/* Carry out the parent's commands. It has no file of the device, which the parent opens later. */
static void start_server(void)
{
	char command[200];
	int to[2], from[2], ret;
	ssize_t n;

	signal(SIGCHLD, SIG_IGN);
	if (pipe(to) || pipe(from)) {
		perror("pipe");
		exit(1);
	}
	ask = to[1];
	answer = from[0];
	fcntl(answer, F_SETFL, O_NONBLOCK);
	if (fork()) {
		close(to[0]);
		close(from[1]);
		return;
	}
	close(to[1]);
	close(from[0]);
	while ((n = read(to[0], command, sizeof(command) - 1)) > 0) {
		command[n] = 0;
		ret = set("go", command);
		if (write(from[1], &ret, sizeof(ret)) != sizeof(ret))
			break;
	}
	_exit(0);
}

/* Have the kernel carry out an operation on memory of this end. answered() says when it has. */
static void ask_kernel(const char *command)
{
	if (write(ask, command, strlen(command)) < 0)
		must("write", -errno);
}

/* @ret becomes 0 or a positive errno. */
static bool answered(int *ret)
{
	return read(answer, ret, sizeof(*ret)) == sizeof(*ret);
}

/* Return: the address of memory of this end for the kernel, without FI_MR_VIRT_ADDR an offset. */
static unsigned long named(const unsigned char *local)
{
	return info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (unsigned long)local :
	       (unsigned long)(local - buf);
}

/* Tell each end the other's name. Return: the kernel's region, in decimal numbers. */
static const char *introduce_far(void)
{
	unsigned char name[NAME_LEN];
	char hex[2 * NAME_LEN + 1];
	unsigned int i;

	introduce(parameter("name"), name);
	for (i = 0; i < NAME_LEN; i++)
		sprintf(hex + (size_t)2 * i, "%02x", name[i]);
	must("peer", -set("peer", hex));
	return parameter("region");
}

#endif
