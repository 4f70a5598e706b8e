#!/usr/bin/env python3
"""grow.py IN OUT TIMES [rounds|no-rounds|same-times]: repeats the samples of IN.

Each copy has later times than the one before. With `same-times` all copies have the same times, so everything
has to be sorted. `no-rounds` omits FINISHED_ROUND. Records other than samples are written once, first.
IN is a little-endian file of one kind of sample, with times, as perf and proftool write it.
"""

import struct
import sys

ATTRS, DATA = 24, 40
IDENTIFIER, IP, TID, TIME = 1 << 16, 1, 2, 4
SAMPLE, FINISHED_ROUND = 9, 68


def main():
    source, target, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
    order = sys.argv[4] if len(sys.argv) > 4 else "rounds"
    with open(source, "rb") as file:
        bytes_in = file.read()
    assert bytes_in[:8] == b"PERFILE2", "a little-endian file of version 2 is expected"
    (attrs,) = struct.unpack_from("<Q", bytes_in, ATTRS)
    start, size = struct.unpack_from("<QQ", bytes_in, DATA)
    (fields,) = struct.unpack_from("<Q", bytes_in, attrs + 24)
    assert fields & TIME, "samples have no time"
    place = 8 + 8 * sum(1 for field in (IDENTIFIER, IP, TID) if fields & field)

    others, samples, places, at = bytearray(), bytearray(), [], start
    while at < start + size:
        kind, _, length = struct.unpack_from("<IHH", bytes_in, at)
        record = bytes_in[at : at + length]
        if kind == SAMPLE:
            places.append(len(samples) + place)
            samples += record
        elif kind != FINISHED_ROUND:
            others += record
        elif order != "no-rounds":
            samples += record
        at += length

    when = [struct.unpack_from("<Q", samples, at)[0] for at in places]
    step = 0 if order == "same-times" else max(when) - min(when) + 1000
    with open(target, "wb") as file:
        file.write(bytes_in[:start] + others)
        for number in range(times):
            for at, time in zip(places, when):
                struct.pack_into("<Q", samples, at, time + number * step)
            file.write(samples)
        grown = file.tell() - start
        end = start + size
        count = sum(bin(byte).count("1") for byte in bytes_in[72:104])
        table = bytearray(bytes_in[end : end + 16 * count])
        for number in range(count):
            offset, length = struct.unpack_from("<QQ", table, 16 * number)
            struct.pack_into("<QQ", table, 16 * number, offset + grown - size, length)
        file.write(table + bytes_in[end + 16 * count :])
        file.seek(DATA + 8)
        file.write(struct.pack("<Q", grown))
    print(f"{len(places) * times} samples, {grown} bytes of data")


main()
