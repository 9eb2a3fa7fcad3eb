// SPDX-License-Identifier: GPL-2.0-only
/*
 * orders: cancel orders that are not paid in time, and survive one's own death
 *
 * Reads DIR/events, a log that others append to:
 *	new ORDER MILLISECONDS
 *	paid ORDER
 *	end
 * and appends to DIR/journal what it decided, each line once:
 *	new ORDER DEADLINE EVENTS	EVENTS: how much of the log is done
 *	paid ORDER EVENTS
 *	late ORDER EVENTS		paid after it was cancelled
 *	cancel ORDER NOW
 * The journal is the truth, the kernel keeps the time. A line is on disk before
 * anything follows from it, so whatever was going on when the program died is
 * seen at its next start: timers of orders that are not open are cancelled, open
 * orders without a timer get one. There are none to get if a supervisor kept
 * the descriptor: /dev/hwtw went on counting, and the orders that came due wait
 * to be read. DIR/checkpoint saves reading the whole journal: the live timers,
 * as HWTW_IOC_LIST tells them.
 *
 *	gcc -O2 -Iuapi -o orders tools/examples/orders.c
 *	./orders DIR		# or as a service with FileDescriptorStoreMax=1
 */
#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <linux/hwtw.h>

#define MAX_ORDERS	(1 << 17)
#define BATCH		256
#define CHECKPOINT	16384		/* bytes of journal between two */

static struct order {
	uint64_t deadline;
	uint64_t timer;			/* its id, 0: none yet */
	bool open;
} orders[MAX_ORDERS];

static int timers, events, journal;
static long long events_done, journal_len, checkpoint_len;
static unsigned int nr_open, nr_kept, nr_armed;
static bool ended;
static struct hwtw_op ops[BATCH];	/* that follow from ... */
static unsigned int nr_ops;
static char lines[BATCH * 80];		/* ... what is not on disk yet */
static size_t lines_len;

/* The deadlines mean something at the next boot too: those of a wall clock. */
static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static struct order *order_of(unsigned long long nr)
{
	if (nr >= MAX_ORDERS)
		errx(1, "order %llu: there may be %d", nr, MAX_ORDERS);
	return &orders[nr];
}

static void set_open(struct order *o, bool open)
{
	nr_open += open - o->open;
	o->open = open;
}

/*
 * What is decided, and then done
 */

static void commit(void)
{
	struct hwtw_submit s = { .ops = (uintptr_t)ops, .nr = nr_ops };
	unsigned int i;

	if (lines_len) {
		if (write(journal, lines, lines_len) != (ssize_t)lines_len || fdatasync(journal))
			err(1, "journal");
		journal_len += lines_len;
		lines_len = 0;
	}
	if (nr_ops && ioctl(timers, HWTW_IOC_SUBMIT, &s))
		err(1, "HWTW_IOC_SUBMIT");
	for (i = 0; i < nr_ops; i++) {
		if (ops[i].opcode != HWTW_OP_ARM)
			continue;
		if (ops[i].result)
			errx(1, "HWTW_OP_ARM: %s", strerror(-ops[i].result));
		orders[ops[i].timer.user_data].timer = ops[i].timer.id;
	}
	nr_ops = 0;
}

static void __attribute__((format(printf, 1, 2))) note(const char *fmt, ...)
{
	va_list ap;

	if (sizeof(lines) - lines_len < 80)
		commit();
	va_start(ap, fmt);
	lines_len += vsnprintf(lines + lines_len, 80, fmt, ap);
	va_end(ap);
}

static void queue(uint32_t opcode, uint64_t id, unsigned long long order)
{
	if (nr_ops == BATCH)
		commit();
	ops[nr_ops] = (struct hwtw_op) { .opcode = opcode, .timer.id = id };
	if (opcode == HWTW_OP_ARM) {
		ops[nr_ops].timer.user_data = order;
		ops[nr_ops].timer.time_ns = orders[order].deadline;
		ops[nr_ops].timer.flags = HWTW_TIMER_ABS;
	}
	nr_ops++;
}

static bool on_events(void)
{
	char buf[4096], *line = buf, *end;
	ssize_t len = pread(events, buf, sizeof(buf) - 1, events_done);
	unsigned long long nr, ms;

	buf[len > 0 ? len : 0] = 0;
	for (; (end = strchr(line, '\n')); line = end + 1) {
		if (!strncmp(line, "end", 3)) {
			ended = true;
			break;
		}
		events_done += end + 1 - line;
		if (sscanf(line, "new %llu %llu", &nr, &ms) == 2) {
			struct order *o = order_of(nr);

			o->deadline = now_ns() + ms * 1000000;
			set_open(o, true);
			note("new %llu %llu %lld\n", nr, (unsigned long long)o->deadline,
			     events_done);
			queue(HWTW_OP_ARM, 0, nr);
		} else if (sscanf(line, "paid %llu", &nr) == 1) {
			struct order *o = order_of(nr);

			note("%s %llu %lld\n", o->open ? "paid" : "late", nr, events_done);
			if (!o->open)
				continue;
			if (!o->timer)
				commit();
			set_open(o, false);
			queue(HWTW_OP_CANCEL, o->timer, nr);
		}
	}
	return line != buf;
}

/* A record that was read is gone from the kernel, but its order is open until noted. */
static bool on_timeouts(void)
{
	struct hwtw_event ev[BATCH];
	ssize_t len = read(timers, ev, sizeof(ev)), i;

	for (i = 0; i < len / (ssize_t)sizeof(*ev); i++) {
		set_open(&orders[ev[i].user_data], false);
		note("cancel %llu %llu\n", (unsigned long long)ev[i].user_data,
		     (unsigned long long)now_ns());
	}
	return len > 0;
}

/*
 * Checkpoint and recovery
 */

/* With nothing under way the live timers are the open orders. */
static void checkpoint(void)
{
	struct hwtw_timer t[BATCH];
	struct hwtw_list l = { .timers = (uintptr_t)t };
	FILE *f = fopen("checkpoint.new", "w");
	unsigned int i;

	if (!f)
		err(1, "checkpoint.new");
	fprintf(f, "%lld %lld\n", journal_len, events_done);
	do {
		l.nr = BATCH;
		if (ioctl(timers, HWTW_IOC_LIST, &l))
			err(1, "HWTW_IOC_LIST");
		for (i = 0; i < l.nr; i++)
			fprintf(f, "%llu %llu\n", (unsigned long long)t[i].user_data,
				(unsigned long long)t[i].time_ns);
	} while (l.cursor);
	if (fflush(f) || fsync(fileno(f)) || fclose(f) || rename("checkpoint.new", "checkpoint"))
		err(1, "checkpoint");
	checkpoint_len = journal_len;
}

static void replay(void)
{
	unsigned long long nr, deadline;
	FILE *f = fopen("checkpoint", "r");
	long long done;
	char line[80], word[8];

	if (f) {
		if (fscanf(f, "%lld %lld", &journal_len, &events_done) != 2)
			errx(1, "checkpoint is damaged");
		for (; fscanf(f, "%llu %llu", &nr, &deadline) == 2; set_open(order_of(nr), true))
			order_of(nr)->deadline = deadline;
		fclose(f);
	}
	checkpoint_len = journal_len;
	f = fopen("journal", "r");
	for (fseek(f, journal_len, SEEK_SET); fgets(line, sizeof(line), f);) {
		if (!strchr(line, '\n'))
			break;		/* died while it wrote that */
		journal_len += strlen(line);
		if (sscanf(line, "%7s %llu %llu %lld", word, &nr, &deadline, &done) < 3)
			errx(1, "journal is damaged: %s", line);
		if (!strcmp(word, "new"))
			order_of(nr)->deadline = deadline;
		set_open(order_of(nr), !strcmp(word, "new"));
		if (strcmp(word, "cancel"))
			events_done = strcmp(word, "new") ? (long long)deadline : done;
	}
	fclose(f);
	if (ftruncate(journal, journal_len))
		err(1, "journal");
}

/* Bring the kernel's timers in line with the orders, whatever there is of them. */
static void reconcile(void)
{
	struct hwtw_timer t[BATCH];
	struct hwtw_list l = { .timers = (uintptr_t)t };
	unsigned int i;

	do {
		l.nr = BATCH;
		if (ioctl(timers, HWTW_IOC_LIST, &l))
			err(1, "HWTW_IOC_LIST");
		for (i = 0; i < l.nr; i++) {
			struct order *o = order_of(t[i].user_data);

			if (o->open && !o->timer) {
				o->timer = t[i].id;
				nr_kept++;
			} else {
				queue(HWTW_OP_CANCEL, t[i].id, 0);
			}
		}
	} while (l.cursor);
	for (i = 0; i < MAX_ORDERS; i++) {
		if (!orders[i].open || orders[i].timer)
			continue;
		queue(HWTW_OP_ARM, 0, i);
		nr_armed++;
	}
	commit();
}

/*
 * The descriptor: the one that the supervisor kept, or a new one that it keeps.
 * With libsystemd this is sd_listen_fds() and sd_pid_notify_with_fds().
 */

static void store(int fd)
{
	const char *path = getenv("NOTIFY_SOCKET"), text[] = "FDSTORE=1\nFDNAME=timers";
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {};
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct iovec v = { (char *)text, strlen(text) };
	struct msghdr m = {
		.msg_name = &addr,
		.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (!path)
		return;
	strncpy(addr.sun_path, path, sizeof(addr.sun_path) - 1);
	m.msg_namelen = offsetof(struct sockaddr_un, sun_path) + strlen(addr.sun_path);
	if (path[0] == '@')
		addr.sun_path[0] = 0;
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	if (sendmsg(sock, &m, 0) < 0)
		warn("%s", path);
	close(sock);
}

static int kept_or_new(void)
{
	const char *pid = getenv("LISTEN_PID"), *nr = getenv("LISTEN_FDS");
	struct hwtw_setup s = { .clockid = CLOCK_REALTIME };
	int fd;

	if (pid && nr && atoi(pid) == getpid() && atoi(nr) == 1)
		return 3;
	fd = open("/dev/hwtw", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		err(1, "/dev/hwtw");
	if (ioctl(fd, HWTW_IOC_SETUP, &s))
		err(1, "HWTW_IOC_SETUP");
	store(fd);
	return fd;
}

int main(int argc, char **argv)
{
	struct pollfd p = { .events = POLLIN };
	bool busy;

	if (argc != 2 || chdir(argv[1]))
		errx(2, "usage: orders DIR");
	events = open("events", O_RDONLY | O_CLOEXEC);
	journal = open("journal", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (events < 0 || journal < 0)
		err(1, "%s", argv[1]);
	timers = p.fd = kept_or_new();
	replay();
	reconcile();
	printf("orders: %u open, %u had their timer, %u got one\n", nr_open, nr_kept, nr_armed);
	fflush(stdout);

	while (!ended || nr_open) {
		busy = on_events();
		commit();		/* nothing that was paid comes out below */
		busy |= on_timeouts();
		commit();
		if (journal_len - checkpoint_len > CHECKPOINT)
			checkpoint();
		if (!busy)
			poll(&p, 1, 10);
	}
	return 0;
}
