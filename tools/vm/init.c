// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of the test VM.
 *
 * /job holds what to do as NUL-terminated strings, told apart by their first
 * character:
 *	mFILE PARAMS	load a module
 *	eNAME=VALUE	set an environment variable
 *	wROWS COLS	the program is interactive, on a terminal of this size
 *	aARG		the program and its arguments, one each
 *
 * ttyS0 carries the kernel's log, ttyS2 the program's output as is, and ttyS1
 * what happened, a line per event, ending with "done". The host believes only
 * a complete report, so that a crash or a hang cannot pass for a success.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define MAX_MODULES	16
#define MAX_ARGS	256
#define KMEMLEAK	"/sys/kernel/debug/kmemleak"

static char job[128 * 1024];
static char *modules[MAX_MODULES];
static int nr_modules;
static char *args[MAX_ARGS + 1];
static int nr_args;
static struct winsize window;
static int report_fd = -1;
static int kmsg_fd = -1;

static void say(int fd, const char *prefix, const char *fmt, va_list ap)
{
	char line[512];
	size_t len;

	len = snprintf(line, sizeof(line), "%s", prefix);
	vsnprintf(line + len, sizeof(line) - len - 1, fmt, ap);
	strcat(line, "\n");
	if (write(fd, line, strlen(line)) < 0)
		errno = 0;	/* the host will miss the line */
}

/* An event for the host. */
static void __attribute__((format(printf, 1, 2))) report(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(report_fd, "", fmt, ap);
	va_end(ap);
}

/* A line in the kernel's log, for a human. */
static void __attribute__((format(printf, 1, 2))) note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(kmsg_fd, "<6>vm-init: ", fmt, ap);
	va_end(ap);
}

static void __attribute__((noreturn)) power_off(void)
{
	tcdrain(report_fd);
	/* Last in the log: the host takes a log without it for truncated. */
	note("end");
	usleep(100 * 1000);	/* PREEMPT_RT prints from a thread */
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

static int open_serial(const char *path)
{
	struct termios t;
	int fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return fd;
	tcgetattr(fd, &t);
	cfmakeraw(&t);
	t.c_cflag |= CLOCAL | CREAD;
	cfsetspeed(&t, B115200);
	tcsetattr(fd, TCSANOW, &t);
	return fd;
}

static void mount_all(void)
{
	static const struct {
		const char *type, *dir;
	} fs[] = {
		{ "devtmpfs", "/dev" },
		{ "proc", "/proc" },
		{ "sysfs", "/sys" },
		{ "debugfs", "/sys/kernel/debug" },
		{ "tracefs", "/sys/kernel/tracing" },
		{ "tmpfs", "/tmp" },
		{ "tmpfs", "/dev/shm" },
		{ "devpts", "/dev/pts" },
	};

	mkdir("/dev", 0755);
	for (size_t i = 0; i < sizeof(fs) / sizeof(fs[0]); i++) {
		mkdir(fs[i].dir, 0755);
		mount(fs[i].type, fs[i].dir, fs[i].type, 0, NULL);
	}
	chmod("/tmp", 01777);
	chmod("/dev/shm", 01777);
	if (symlink("/proc/self/fd", "/dev/fd"))
		note("no /dev/fd");
}

static ssize_t read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return -1;
	while ((n = read(fd, buf + len, size - 1 - len)) > 0)
		len += n;
	buf[len] = 0;
	close(fd);
	return len;
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	close(fd);
	return n < 0 ? -1 : 0;
}

static void read_job(void)
{
	ssize_t len = read_file("/job", job, sizeof(job));

	for (char *s = job; s < job + len; s += strlen(s) + 1) {
		if (*s == 'm' && nr_modules < MAX_MODULES)
			modules[nr_modules++] = s + 1;
		else if (*s == 'a' && nr_args < MAX_ARGS)
			args[nr_args++] = s + 1;
		else if (*s == 'e')
			putenv(s + 1);
		else if (*s == 'w')
			sscanf(s + 1, "%hu %hu", &window.ws_row, &window.ws_col);
	}
}

/* Splits "FILE PARAMS" and reduces FILE to the module's name in it. */
static char *module_params(char *file)
{
	char *params = strchr(file, ' ');

	if (!params)
		return "";
	*params = 0;
	return params + 1;
}

static void module_name(const char *file, char *name, size_t size)
{
	const char *base = strrchr(file, '/');

	snprintf(name, size, "%s", base ? base + 1 : file);
	name[strcspn(name, ".")] = 0;
	for (char *c = name; *c; c++)
		if (*c == '-')
			*c = '_';
}

static int load_module(char *file)
{
	const char *params = module_params(file);
	char name[64];
	int fd, err;

	module_name(file, name, sizeof(name));
	fd = open(file, O_RDONLY | O_CLOEXEC);
	err = fd < 0 ? -1 : syscall(SYS_finit_module, fd, params, 0);
	if (err)
		report("module %s not loaded: %s", name, strerror(errno));
	else
		report("module %s loaded", name);
	if (fd >= 0)
		close(fd);
	return err;
}

static void unload_module(const char *file)
{
	char name[64];
	int tries, err;

	module_name(file, name, sizeof(name));
	/* The last file of a killed process may take a moment to go. */
	for (tries = 0; tries < 300; tries++) {
		err = syscall(SYS_delete_module, name, O_NONBLOCK);
		if (!err || (errno != EAGAIN && errno != EBUSY))
			break;
		usleep(10 * 1000);
	}
	if (err)
		report("module %s not unloaded: %s", name, strerror(errno));
	else
		report("module %s unloaded", name);
}

static void __attribute__((noreturn)) exec_program(void)
{
	int fd = open_serial("/dev/ttyS2");
	struct termios t;

	setsid();
	if (window.ws_row) {
		ioctl(fd, TIOCSCTTY, 0);
		tcgetattr(fd, &t);
		t.c_iflag = ICRNL | IXON;
		t.c_oflag = 0;	/* the host's terminal adds the CRs */
		t.c_lflag = ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL |
			    ECHOKE | IEXTEN;
		tcsetattr(fd, TCSANOW, &t);
		ioctl(fd, TIOCSWINSZ, &window);
		dup2(fd, 0);
	} else {
		dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
	}
	dup2(fd, 1);
	dup2(fd, 2);
	execvp(args[0], args);
	fprintf(stderr, "%s: %s\n", args[0], strerror(errno));
	_exit(127);
}

static void run_program(void)
{
	pid_t child, pid;
	int status, fd;

	child = fork();
	if (child == 0)
		exec_program();
	do {
		pid = wait(&status);
	} while (pid != child);

	/* What it left behind could hold the modules. */
	kill(-1, SIGKILL);
	while (wait(NULL) > 0 || errno == EINTR)
		;

	fd = open("/dev/ttyS2", O_RDWR | O_NOCTTY | O_CLOEXEC);
	tcdrain(fd);
	close(fd);
	if (WIFEXITED(status))
		report("exit %d", WEXITSTATUS(status));
	else
		report("signal %d", WTERMSIG(status));
}

/* kmemleak only reports what has been lost for five seconds. */
static void check_leaks(void)
{
	static char buf[64 * 1024];
	int leaks = 0;

	if (access(KMEMLEAK, W_OK))
		return;
	write_file(KMEMLEAK, "scan");
	usleep(5500 * 1000);
	write_file(KMEMLEAK, "scan");
	write_file(KMEMLEAK, "scan");
	read_file(KMEMLEAK, buf, sizeof(buf));
	for (char *line = strtok(buf, "\n"); line; line = strtok(NULL, "\n")) {
		leaks += !strncmp(line, "unreferenced object", 19);
		note("%s", line);
	}
	report("leaks %d", leaks);
}

static void report_taint(void)
{
	char buf[32] = "";

	read_file("/proc/sys/kernel/tainted", buf, sizeof(buf));
	report("taint %ld", atol(buf));
}

int main(void)
{
	int loaded = 0;

	umask(022);
	mount_all();
	kmsg_fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	report_fd = open_serial("/dev/ttyS1");
	if (report_fd < 0) {
		note("no /dev/ttyS1: %s", strerror(errno));
		power_off();
	}
	/* From here on the log has everything, whatever the command line. */
	klogctl(8, NULL, 8);
	setenv("PATH", "/bin", 1);
	setenv("HOME", "/root", 1);
	read_job();

	report("booted");
	while (loaded < nr_modules && !load_module(modules[loaded]))
		loaded++;
	if (loaded == nr_modules && nr_args)
		run_program();
	while (loaded)
		unload_module(modules[--loaded]);
	check_leaks();
	report_taint();
	report("done");
	power_off();
}
