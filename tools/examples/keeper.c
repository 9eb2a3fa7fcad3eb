// SPDX-License-Identifier: GPL-2.0-only
/*
 * keeper: a stand-in for systemd where there is none, such as in a test
 *
 * Runs a program, again and again until it ends well. Keeps one descriptor that
 * the program hands over by "FDSTORE=1" at $NOTIFY_SOCKET, and gives it to the
 * next run as descriptor 3, with $LISTEN_FDS and $LISTEN_PID.
 *
 *	gcc -O2 -o keeper tools/examples/keeper.c
 *	./keeper ./orders DIR
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int receive(int sock, int kept)
{
	char text[128] = "", control[CMSG_SPACE(sizeof(int))];
	struct iovec v = { text, sizeof(text) - 1 };
	struct msghdr m = {
		.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	int fd;

	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) < 0 || !CMSG_FIRSTHDR(&m) ||
	    !strstr(text, "FDSTORE=1"))
		return kept;
	if (kept >= 0)
		close(kept);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	kept = fcntl(fd, F_DUPFD_CLOEXEC, 10);	/* not 3 */
	close(fd);
	return kept;
}

static void start(char **argv, int kept)
{
	char pid[16];

	if (kept >= 0) {
		dup2(kept, 3);
		snprintf(pid, sizeof(pid), "%d", getpid());
		setenv("LISTEN_PID", pid, 1);
		setenv("LISTEN_FDS", "1", 1);
	}
	execvp(argv[0], argv);
	err(127, "%s", argv[0]);
}

int main(int argc, char **argv)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX, .sun_path = "@keeper" };
	struct pollfd p = { .events = POLLIN };
	int status, kept = -1;
	pid_t child;

	if (argc < 2)
		errx(2, "usage: keeper PROGRAM [ARGS]");
	setenv("NOTIFY_SOCKET", addr.sun_path, 1);
	addr.sun_path[0] = 0;
	p.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (bind(p.fd, (struct sockaddr *)&addr, offsetof(struct sockaddr_un, sun_path) + 7))
		err(1, "@keeper");
	do {
		child = fork();
		if (!child)
			start(argv + 1, kept);
		while (!waitpid(child, &status, WNOHANG))
			if (poll(&p, 1, 10) == 1)
				kept = receive(p.fd, kept);
	} while (!WIFEXITED(status) || WEXITSTATUS(status));
	return 0;
}
