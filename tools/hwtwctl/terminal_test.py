#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""terminal_test.py HWTWCTL: "hwtwctl monitor" on a terminal of 10 lines and 60 columns."""
import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time


def read_until(fd, text, seconds=60):
    got = b""
    end = time.monotonic() + seconds
    while text not in got:
        left = end - time.monotonic()
        assert left > 0 and select.select([fd], [], [], left)[0], f"no {text} in {got}"
        got += os.read(fd, 65536)
    return got


def main():
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 60, 0, 0))
    before = termios.tcgetattr(slave)
    pid = os.fork()
    if not pid:
        os.setsid()
        for fd in (0, 1, 2):
            os.dup2(slave, fd)
        os.execv(sys.argv[1], [sys.argv[1], "monitor", "--interval", "1h"])
    got = read_until(master, b"COMMAND")
    assert got.startswith(b"\x1b[2J\x1b[H"), got
    now = termios.tcgetattr(slave)
    assert not now[3] & (termios.ICANON | termios.ECHO), "keys wait for a line, or are shown"
    # A key that sorts draws anew at once, one that ends it ends it.
    os.write(master, b"m")
    read_until(master, b"COMMAND")
    os.write(master, b"q")
    _, status = os.waitpid(pid, 0)
    assert status == 0, status
    assert termios.tcgetattr(slave) == before, "the terminal is not as it was"


main()
