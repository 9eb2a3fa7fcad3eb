#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make_dumps.py DIR: files for tools/hwtwctl/vm_test.sh, good dumps and bad ones.

Made without hwtwctl, from what "hwtwctl dump --help" says of the format.
"""
import pathlib
import sys
import time
import zlib

HOUR = 3600 * 10**9
NEVER = 2**63 - 1


def dump(clock, timers, boot_id="00000000-0000-0000-0000-000000000000", clock_ns=1000 * 10**9,
         tick=65536, limit=10):
    # Made a hundred seconds ago.
    lines = ["hwtw-dump 1", f"boot_id {boot_id}", f"clock {clock}", f"clock_ns {clock_ns}",
             f"realtime_ns {time.time_ns() - 100 * 10**9}", f"tick_ns {tick}",
             f"max_timers {limit}", f"timers {len(timers)}"]
    lines += [" ".join(map(str, t)) for t in timers]
    return sign("".join(line + "\n" for line in lines))


def sign(text):
    return f"{text}crc32 {zlib.crc32(text.encode()):08x}\n".encode()


def body(data):
    return data[:data.rindex(b"crc32 ")].decode()


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.hwtw"):
        old.unlink()
    now = 1000 * 10**9
    good = dump("monotonic", [(5, 0, 1), (now + 50 * 10**9, 0, 2),
                              (now + HOUR + 100 * 10**9, 0, 3), (NEVER, 0, 4)])
    bad = {
        "empty": b"",
        "something_else": b"#!/bin/sh\nexit 0\n",
        "binary": bytes(range(256)),
        "version_2": sign(body(good).replace("hwtw-dump 1", "hwtw-dump 2")),
        "tail": good + b"1\n",
        "no_checksum": body(good).encode(),
        "unknown_clock": sign(body(good).replace("monotonic", "sundial")),
        "one_more_timer": sign(body(good) + "1 0 9\n"),
        "deadline_too_late": sign(body(good).replace(str(NEVER), str(NEVER + 1))),
        "negative": sign(body(good).replace("\n5 0 1\n", "\n-5 0 1\n")),
        "no_number": sign(body(good).replace("\n5 0 1\n", "\nx 0 1\n")),
        "two_numbers": sign(body(good).replace("\n5 0 1\n", "\n5 0\n")),
        "four_numbers": sign(body(good).replace("\n5 0 1\n", "\n5 0 1 2\n")),
        "nul": sign(body(good).replace("\n5 0 1\n", "\n5 0 1\0\n")),
        "huge_count": sign(body(good).replace("timers 4", "timers 18446744073709551615")),
    }
    lines = good.splitlines(keepends=True)
    for i in range(len(lines)):
        bad[f"without_line_{i + 1}"] = b"".join(lines[:i] + lines[i + 1:])
        bad[f"line_{i + 1}_twice"] = b"".join(lines[:i + 1] + lines[i:])
    for i in range(0, len(good), 9):
        bad[f"bit_flipped_in_byte_{i}"] = good[:i] + bytes([good[i] ^ 1]) + good[i + 1:]
    for i in range(1, len(good), 17):
        bad[f"cut_off_after_byte_{i}"] = good[:i]
    bad["cut_off_by_one"] = good[:-1]
    for name, data in bad.items():
        assert data != good, name
        (out / f"bad_{name}.hwtw").write_bytes(data)
    (out / "other_boot.hwtw").write_bytes(good)
    (out / "boottime.hwtw").write_bytes(dump("boottime", [(now + HOUR, 0, 1)]))


main()
