// SPDX-License-Identifier: GPL-2.0-only
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <linux/hwtw.h>

int main(void)
{
	struct hwtw_timer timer = { .time_ns = 250000000, .user_data = 42 };
	struct hwtw_event event;
	int fd = open("/dev/hwtw", O_RDWR | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, HWTW_IOC_ARM, &timer) ||	/* due in 250 ms */
	    read(fd, &event, sizeof(event)) < 0)		/* sleeps until then */
		return 1;
	printf("timeout %d has expired\n", (int)event.user_data);
	return 0;
}
