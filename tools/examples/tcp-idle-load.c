// SPDX-License-Identifier: GPL-2.0-only
/*
 * tcp-idle-load: many connections to tcp-idle, to see that it does what it says
 *
 * Each connection makes a request; one in four makes two more, before its time
 * is over. Then all wait until the server hangs up. The last line says how many
 * requests were answered, how many connections were closed too early, and how
 * late the latest was. The exit status is 0 if all were answered and none early.
 *
 *	gcc -O2 -o tcp-idle-load tools/examples/tcp-idle-load.c
 *	./tcp-idle-load 7777 30 20000	# port, seconds, connections
 */
#define _GNU_SOURCE
#include <err.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS	2

struct connection {
	int fd;
	uint64_t asked_ns;	/* when the last request was made */
};

static unsigned int requests, answers, closed, early;
static uint64_t latest_ns;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void ask(struct connection *c)
{
	c->asked_ns = now_ns();
	send(c->fd, "x", 1, MSG_NOSIGNAL);
	requests++;
}

static void hear(struct connection *c, uint64_t idle_ns)
{
	char buf[16];
	ssize_t len = read(c->fd, buf, sizeof(buf));
	uint64_t silent_ns = now_ns() - c->asked_ns;

	if (len > 0) {
		answers += len;
		return;
	}
	closed++;
	if (silent_ns < idle_ns)
		early++;
	else if (silent_ns - idle_ns > latest_ns)
		latest_ns = silent_ns - idle_ns;
	close(c->fd);
	c->fd = -1;
}

int main(int argc, char **argv)
{
	struct rlimit files = { 1 << 16, 1 << 16 };
	struct sockaddr_in addr = { .sin_family = AF_INET }, from = addr;
	unsigned int nr, i, round = 0;
	struct epoll_event e, ev[512];
	uint64_t idle_ns, next_ns, now;
	struct connection *conn;
	int ep, n, one = 1;

	if (argc != 4)
		errx(2, "usage: tcp-idle-load PORT SECONDS CONNECTIONS");
	addr.sin_port = htons(atoi(argv[1]));
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	idle_ns = strtod(argv[2], NULL) * 1e9;
	nr = strtoul(argv[3], NULL, 0);
	conn = calloc(nr, sizeof(*conn));
	setrlimit(RLIMIT_NOFILE, &files);

	ep = epoll_create1(EPOLL_CLOEXEC);
	for (i = 0; i < nr; i++) {
		/* Few ports an address: the kernel searches long for the last ones. */
		from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + i / 4096);
		conn[i].fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		setsockopt(conn[i].fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
		if (conn[i].fd < 0 || bind(conn[i].fd, (struct sockaddr *)&from, sizeof(from)) ||
		    connect(conn[i].fd, (struct sockaddr *)&addr, sizeof(addr)))
			err(1, "connection %u", i);
		e = (struct epoll_event) { .events = EPOLLIN, .data.ptr = &conn[i] };
		epoll_ctl(ep, EPOLL_CTL_ADD, conn[i].fd, &e);
		ask(&conn[i]);
	}
	printf("tcp-idle-load: %u connections are open\n", nr);
	fflush(stdout);

	next_ns = now_ns() + idle_ns / 3;
	while (closed < nr) {
		now = now_ns();
		if (round < ROUNDS && now >= next_ns) {
			for (i = 0; i < nr; i += 4)
				ask(&conn[i]);
			next_ns += idle_ns / 3;
			round++;
		}
		n = epoll_wait(ep, ev, 512, round < ROUNDS ? 10 : (int)(idle_ns / 500000));
		if (!n && round == ROUNDS)
			errx(1, "%u connections stay open", nr - closed);
		for (i = 0; (int)i < n; i++)
			hear(ev[i].data.ptr, idle_ns);
	}
	printf("tcp-idle-load: %u of %u requests answered, %u connections closed, %u early, latest by %.1f ms\n",
	       answers, requests, closed, early, latest_ns / 1e6);
	return answers != requests || early;
}
