#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""terminal_test.py HWTWCTL: what "hwtwctl monitor" does with a terminal.

There are no instances here: vm_test.sh has them, on the kernel's own terminal.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

LINE = b"COMMAND"


class Terminal:
    def __init__(self, rows, cols, term="xterm", arguments=("--interval", "1h")):
        self.master, self.slave = pty.openpty()
        self.resize(rows, cols)
        self.before = termios.tcgetattr(self.slave)
        self.pid = os.fork()
        if not self.pid:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            for fd in (0, 1, 2):
                os.dup2(self.slave, fd)
            # Its parent is in another session: as an orphan it could not be stopped.
            pid = os.fork()
            if pid:
                _, status = os.waitpid(pid, os.WUNTRACED)
                while os.WIFSTOPPED(status):
                    _, status = os.waitpid(pid, os.WUNTRACED)
                os._exit(os.waitstatus_to_exitcode(status) & 0xff)
            os.setpgid(0, 0)
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(0, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            os.environ["TERM"] = term
            os.execv(sys.argv[1], [sys.argv[1], "monitor", *arguments])

    def resize(self, rows, cols):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def read_until(self, text, seconds=60):
        got = b""
        end = time.monotonic() + seconds
        while text not in got:
            left = end - time.monotonic()
            assert left > 0 and select.select([self.master], [], [], left)[0], \
                f"no {text} in {got}"
            got += os.read(self.master, 65536)
        return got

    def key(self, key):
        os.write(self.master, key)

    def raw(self):
        return not termios.tcgetattr(self.slave)[3] & (termios.ICANON | termios.ECHO)

    def wait_for(self, what):
        end = time.monotonic() + 60
        while not what():
            assert time.monotonic() < end
            time.sleep(0.01)

    def ends(self, status=0):
        _, got = os.waitpid(self.pid, 0)
        assert os.waitstatus_to_exitcode(got) == status, got
        assert termios.tcgetattr(self.slave) == self.before, "the terminal is not as it was"
        os.close(self.master)
        os.close(self.slave)


def lines(data):
    return re.sub(rb"\x1b\[[0-9]*[A-Z]", b"", data).decode().split("\r\n")


def keys_and_sizes():
    t = Terminal(10, 80)
    got = t.read_until(b"\x1b[J")
    assert got.startswith(b"\x1b[2J\x1b[H"), got
    assert len(lines(got)[1]) == 80 and lines(got)[1].endswith(" MEM COMMAND"), got
    assert t.raw(), "keys wait for a line, or are shown"
    # The next look is in an hour. A key that sorts draws this one anew at once.
    t.key(b"m")
    t.read_until(b"\x1b[J")
    # So does a new size.
    t.resize(10, 120)
    assert "CLOCK" in lines(t.read_until(b"\x1b[J"))[1]
    t.resize(10, 20)
    got = lines(t.read_until(b"\x1b[J"))
    assert [len(line) for line in got] == [20, 20, 0], got
    t.resize(2, 80)
    got = lines(t.read_until(b"\x1b[J"))
    assert len(got) == 2 and "instances" in got[0] and not got[1], got
    t.resize(1, 80)
    got = lines(t.read_until(b"\x1b[J"))
    assert got == [""], got
    # A key that means nothing is no end. What ends it ends it.
    t.key(b"x\x1b[A")
    t.key(b"q")
    t.ends()


def stop_and_go_on():
    t = Terminal(24, 80)
    t.read_until(b"\x1b[J")
    t.key(b"\x1a")
    t.wait_for(lambda: termios.tcgetattr(t.slave) == t.before)
    os.killpg(os.tcgetpgrp(t.master), signal.SIGCONT)
    t.read_until(b"\x1b[J")
    assert t.raw(), "keys wait for a line, or are shown"
    t.key(b"\x03")
    t.ends()


def signals():
    for number in (signal.SIGTERM, signal.SIGHUP):
        t = Terminal(24, 80)
        t.read_until(b"\x1b[J")
        os.killpg(os.tcgetpgrp(t.master), number)
        t.ends()


def dumb():
    for term in ("dumb", ""):
        t = Terminal(24, 80, term, ("--interval", "100ms", "--count", "2"))
        got = t.read_until(LINE)
        got += t.read_until(LINE)
        assert b"\x1b" not in got, got
        t.ends()


def main():
    keys_and_sizes()
    stop_and_go_on()
    signals()
    dumb()


main()
