#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""timers: /dev/hwtw from Python, with nothing but its standard library

    python3 tools/examples/timers.py 1 2.5 0.3      # seconds
"""
import ctypes
import fcntl
import os
import sys


class Timer(ctypes.Structure):          # struct hwtw_timer of linux/hwtw.h
    _fields_ = [("id", ctypes.c_uint64), ("user_data", ctypes.c_uint64),
                ("time_ns", ctypes.c_uint64), ("interval_ns", ctypes.c_uint64),
                ("flags", ctypes.c_uint32), ("state", ctypes.c_uint32)]


class Event(ctypes.Structure):          # struct hwtw_event
    _fields_ = [("user_data", ctypes.c_uint64), ("id", ctypes.c_uint64),
                ("expires_ns", ctypes.c_uint64), ("overruns", ctypes.c_uint32),
                ("flags", ctypes.c_uint32)]


ARM = 0xc028bd02                        # HWTW_IOC_ARM

fd = os.open("/dev/hwtw", os.O_RDWR | os.O_CLOEXEC)
ids = {}
for i, seconds in enumerate(sys.argv[1:]):
    timer = Timer(user_data=i, time_ns=int(float(seconds) * 1e9))
    fcntl.ioctl(fd, ARM, timer)         # OSError says what was wrong
    ids[timer.id] = seconds

while ids:                              # in asyncio: loop.add_reader(fd, ...)
    records = os.read(fd, 4096)
    for at in range(0, len(records), ctypes.sizeof(Event)):
        event = Event.from_buffer_copy(records, at)
        print(ids.pop(event.id), "s are over", flush=True)
