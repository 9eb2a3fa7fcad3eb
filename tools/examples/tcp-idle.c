// SPDX-License-Identifier: GPL-2.0-only
/*
 * tcp-idle: an echo server that closes connections which are silent too long
 *
 * Each connection has a timer, moved on by each request. One epoll instance
 * waits for connections, requests and timeouts alike. What a round of events
 * does to the timers goes to the kernel in one call.
 *
 *	gcc -O2 -Iuapi -o tcp-idle tools/examples/tcp-idle.c
 *	./tcp-idle 7777 30		# port, seconds
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/hwtw.h>

#define BATCH	1024

static uint64_t idle_ns;
static int timers;
static uint64_t *timer_of;		/* id, by descriptor of the connection */
static struct hwtw_op ops[BATCH];
static unsigned int nr_ops;

static void submit(void)
{
	struct hwtw_submit s = { .ops = (uintptr_t)ops, .nr = nr_ops };
	unsigned int i;

	if (ioctl(timers, HWTW_IOC_SUBMIT, &s))
		err(1, "HWTW_IOC_SUBMIT");
	for (i = 0; i < nr_ops; i++) {
		int fd = ops[i].timer.user_data;

		if (ops[i].opcode != HWTW_OP_ARM)
			continue;
		if (!ops[i].result)
			timer_of[fd] = ops[i].timer.id;
		else
			shutdown(fd, SHUT_RDWR);	/* no timeout, no service */
	}
	nr_ops = 0;
}

static void queue(uint32_t opcode, int fd)
{
	if (nr_ops == BATCH)
		submit();
	ops[nr_ops++] = (struct hwtw_op) {
		.opcode = opcode,
		.timer = {
			.id = timer_of[fd],
			.user_data = fd,
			.time_ns = opcode == HWTW_OP_CANCEL ? 0 : idle_ns,
		},
	};
}

static void watch(int ep, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e))
		err(1, "epoll_ctl");
}

static void on_connections(int ep, int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		timer_of[fd] = 0;
		queue(HWTW_OP_ARM, fd);
		watch(ep, fd);
	}
}

static void on_request(int fd)
{
	char buf[4096];
	ssize_t len = read(fd, buf, sizeof(buf));

	if (len > 0 && send(fd, buf, len, MSG_NOSIGNAL) == len) {
		queue(HWTW_OP_REARM, fd);
		return;
	}
	queue(HWTW_OP_CANCEL, fd);
	close(fd);
}

/*
 * After submit(): a connection that spoke or went in this round has no timeout
 * in these records, even if it had expired, so no descriptor is closed that is
 * another connection's by now.
 */
static void on_timeouts(void)
{
	struct hwtw_event ev[BATCH];
	ssize_t len, i;

	while ((len = read(timers, ev, sizeof(ev))) > 0)
		for (i = 0; i < len / (ssize_t)sizeof(*ev); i++)
			close(ev[i].user_data);
}

int main(int argc, char **argv)
{
	struct rlimit files = { 1 << 16, 1 << 16 };
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct epoll_event events[BATCH / 2];
	int ep, listener, one = 1, i, n;

	if (argc != 3)
		errx(2, "usage: tcp-idle PORT SECONDS");
	addr.sin_port = htons(atoi(argv[1]));
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	idle_ns = strtod(argv[2], NULL) * 1e9;
	if (setrlimit(RLIMIT_NOFILE, &files))
		getrlimit(RLIMIT_NOFILE, &files);
	timer_of = calloc(files.rlim_cur, sizeof(*timer_of));

	timers = open("/dev/hwtw", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (timers < 0)
		err(1, "/dev/hwtw");
	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&addr, sizeof(addr)) || listen(listener, 4096))
		err(1, "port %s", argv[1]);
	ep = epoll_create1(EPOLL_CLOEXEC);
	watch(ep, listener);
	watch(ep, timers);

	for (;;) {
		n = epoll_wait(ep, events, BATCH / 2, -1);
		for (i = 0; i < n; i++) {
			if (events[i].data.fd == listener)
				on_connections(ep, listener);
			else if (events[i].data.fd != timers)
				on_request(events[i].data.fd);
		}
		submit();
		on_timeouts();
	}
}
