#!/usr/bin/env python3
"""make_seeds.py DIR: small sound recordings and linkage names to begin fuzzing with.

Writes DIR/perfdata/* (a file and a pipe in both byte orders, with every field of a sample and the
common records), DIR/demangle/*, DIR/jitdump/* (one file in both byte orders), and a few stacks in each of
DIR/pprof, DIR/speedscope, DIR/perf_script and DIR/folded. Made anew each time, so that no binary stands in the
repository.
"""

import gzip
import os
import struct
import sys

# enum perf_event_sample_format
IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD = 1, 2, 4, 8, 16, 32, 64, 128, 256
STREAM, RAW, BRANCHES, REGS, STACK, IDENTIFIER = 512, 1024, 2048, 4096, 8192, 1 << 16
FORMAT_ID = 4  # of read_format: each value with its id
SAMPLE_ID_ALL = 18  # a bit of the flags
USER_CONTEXT = (1 << 64) - 512


class Writer:
    """Structures in one byte order."""

    def __init__(self, order):
        self.order = order

    def pack(self, layout, *values):
        return struct.pack(self.order + layout, *values)

    def text(self, text):
        """A string with its end, filled up to 8 bytes."""
        raw = text.encode() + b"\0"
        return raw + bytes(-len(raw) % 8)

    def record(self, kind, body, misc=2):
        return self.pack("IHH", kind, misc, 8 + len(body)) + body

    def attr(self, sample_type):
        # Compilers lay out bit fields from the other end on big-endian machines.
        bit = SAMPLE_ID_ALL if self.order == "<" else 63 - SAMPLE_ID_ALL
        head = self.pack("IIQQQQQ", 1, 128, 0, 1000003, sample_type, FORMAT_ID, 1 << bit)
        return (head + self.pack("IIQQQQI", 0, 0, 0, 0, 0, 0x3, 16)).ljust(128, b"\0")

    def sample(self, sample_type, time, chain):
        fields = b""
        fields += self.pack("Q", 7) if sample_type & IDENTIFIER else b""
        fields += self.pack("Q", chain[0]) if sample_type & IP else b""
        fields += self.pack("II", 100, 101) if sample_type & TID else b""
        fields += self.pack("Q", time) if sample_type & TIME else b""
        for field in (ADDR, ID, STREAM):
            fields += self.pack("Q", 7) if sample_type & field else b""
        fields += self.pack("II", 1, 0) if sample_type & CPU else b""
        fields += self.pack("Q", 1000003) if sample_type & PERIOD else b""
        fields += self.pack("QQ", 5, 7) if sample_type & READ else b""
        if sample_type & CALLCHAIN:
            words = [USER_CONTEXT] + chain
            fields += self.pack(f"Q{len(words)}Q", len(words), *words)
        fields += self.pack("IIQ", 12, 1, 2) if sample_type & RAW else b""
        fields += self.pack("QQQQ", 1, chain[0], chain[-1], 0) if sample_type & BRANCHES else b""
        fields += self.pack("QQQ", 2, 1, 2) if sample_type & REGS else b""
        fields += self.pack("Q16sQ", 16, b"stack", 8) if sample_type & STACK else b""
        return self.record(9, fields)

    def records(self, sample_type):
        """A process that is named, mapped, sampled, forked and ended, with some losses."""
        trailer = b""
        trailer += self.pack("II", 100, 101) if sample_type & TID else b""
        trailer += self.pack("Q", 1) if sample_type & TIME else b""
        trailer += self.pack("Q", 7) if sample_type & ID else b""
        trailer += self.pack("Q", 7) if sample_type & STREAM else b""
        trailer += self.pack("II", 1, 0) if sample_type & CPU else b""
        trailer += self.pack("Q", 7) if sample_type & IDENTIFIER else b""
        task = self.pack("IIIIQ", 102, 100, 103, 101, 5)
        mapping = self.pack("IIQQQ", 100, 100, 0x400000, 0x1000, 0)
        mapping2 = self.pack("IIQQQIIQQII", 100, 100, 0x500000, 0x1000, 0, 8, 1, 9, 0, 5, 2)
        return b"".join([
            self.record(3, self.pack("II", 100, 101) + self.text("seed") + trailer),
            self.record(1, mapping + self.text("/bin/seed") + trailer),
            self.record(10, mapping2 + self.text("/lib/seed.so") + trailer),
            self.sample(sample_type, 10, [0x400100, 0x400200, 0x400300]),
            self.sample(sample_type, 9, [0x400110, 0x400200, 0x400200, 0x400300]),
            self.record(68, b"", 0),
            self.record(2, self.pack("QQ", 7, 3) + trailer),
            self.record(7, task + trailer),
            self.sample(sample_type, 20, [0x500100]),
            self.record(4, task + trailer),
            self.record(68, b"", 0),
        ])

    def file(self, sample_type):
        """header │ id │ attr │ records"""
        ids = self.pack("Q", 7)
        attrs_at = 104 + len(ids)
        attrs = self.attr(sample_type) + self.pack("QQ", 104, len(ids))
        data = self.records(sample_type)
        magic = self.pack("Q", 0x32454C4946524550)
        header = magic + self.pack(
            "12Q", 104, len(attrs), attrs_at, len(attrs), attrs_at + len(attrs), len(data),
            0, 0, 0, 0, 0, 0,
        )
        return header + ids + attrs + data

    def pipe(self, sample_type):
        magic = self.pack("QQ", 0x32454C4946524550, 16)
        attr = self.record(64, self.attr(sample_type) + self.pack("Q", 7), 0)
        arch = self.record(80, self.pack("QI", 6, 8) + self.text("x86_64"), 0)
        return magic + attr + arch + self.records(sample_type)

    def jitdump(self):
        """Two methods at one address, lines of the first, unwinding data, a move, the end."""

        def record(kind, time, body):
            return self.pack("IIQ", kind, 16 + len(body), time) + body

        def load(time, name, index):
            head = self.pack("IIQQQQ", 77, 77, 0x1000, 0x1000, 32, index)
            return record(0, time, head + name + b"\0" + bytes([0x90] * 32))

        lines = self.pack("QQ", 0x1000, 2)
        lines += self.pack("QII", 0x1000, 10, 0) + b"a.js\0"
        lines += self.pack("QII", 0x1008, 20, 0) + b"\xff\0"
        return b"".join([
            self.pack("IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 77, 1, 0),
            load(100, b"Old.run", 0),
            record(2, 150, lines),
            record(4, 150, self.pack("QQQ", 0, 0, 0)),
            load(200, b"JS:*new a.js:1:2", 1),
            record(1, 300, self.pack("IIQQQQQ", 77, 77, 0x5000, 0x1000, 0x5000, 32, 1)),
            record(3, 400, b""),
        ])


def varint(number):
    """An integer of protobuf."""
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def message(*fields):
    """A message of protobuf: pairs of a number and an integer or bytes."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def pprof():
    """main calls work, which has an inlined line, twice; the second sample has marks."""
    texts = ["", "cpu", "nanoseconds", "samples", "count", "main", "work", "/opt/app", "inferred", "ab12"]
    kind = lambda name, unit: message((1, name), (2, unit))
    line = lambda function, at: message((1, function), (2, at))
    fields = [(1, kind(3, 4)), (1, kind(1, 2))]
    fields += [(2, message((1, b"\x01\x02"), (2, varint(3) + varint(30))))]
    fields += [(2, message((1, b"\x02"), (2, varint(1) + varint(9)), (3, message((1, 8), (2, 5)))))]
    fields += [(3, message((1, 1), (5, 7), (6, 9), (7, 1)))]
    fields += [(4, message((1, 1), (2, 1), (3, 4096), (4, line(2, 3)), (4, line(1, 4))))]
    fields += [(4, message((1, 2), (2, 1), (4, line(1, 9))))]
    fields += [(5, message((1, 1), (2, 5), (4, 7), (5, 2))), (5, message((1, 2), (2, 6)))]
    fields += [(6, text.encode()) for text in texts] + [(10, 77), (14, 1)]
    return message(*fields)


SPEEDSCOPE = b"""{"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames":
[{"name": "main"}, {"name": "work", "file": "a.c", "line": 3}]}, "profiles": [{"type": "sampled",
"name": "app 1/2", "unit": "nanoseconds", "startValue": 0, "endValue": 12, "samples": [[0, 1], [0, 1, 1]],
"weights": [5, 7], "proftool": {"event": "cpu-clock", "unit": "ns", "counts": [1, 2],
"inferred": [[1, 1]], "frames_missing": [[0, 1]]}}, {"type": "evented", "name": "b", "unit": "none",
"startValue": 0, "endValue": 9, "events": [{"type": "O", "at": 0, "frame": 0},
{"type": "C", "at": 9, "frame": 0}]}]}"""

PERF_SCRIPT = b"""# a note
# frames: inferred 2; missing 1
my app  1/2 [003]    1.500000:     250000 cpu-clock:u:
\t          1139 leaf+0x2a (/opt/app)
\t          1180 inner (inlined)
\t          1190 [unknown] (/lib/libc.so.6)

cc 7 13.000001: cycles:  7f01 leaf+0x1b (/bin/my app)
"""

FOLDED = b"main;parse;~lex 12\nmain;[libc.so.6];[unknown] 3\n[truncated];a\\x3bb 1\nmain 0\nbad\n"


def main():
    folder = sys.argv[1]
    usual = IDENTIFIER | IP | TID | TIME | CPU | PERIOD | CALLCHAIN
    layouts = {
        "plain": IP | TID | TIME | PERIOD,
        "chain": usual,
        "stack": usual | REGS | STACK,
        "all": (1 << 14) - 1 | IDENTIFIER,
    }
    seeds = {}
    for order, end in (("<", "little"), (">", "big")):
        writer = Writer(order)
        for name, sample_type in layouts.items():
            seeds[f"perfdata/{name}.{end}.file"] = writer.file(sample_type)
            seeds[f"perfdata/{name}.{end}.pipe"] = writer.pipe(sample_type)
        seeds[f"jitdump/methods.{end}"] = writer.jitdump()
    seeds["pprof/plain"] = pprof()
    seeds["pprof/gzip"] = gzip.compress(pprof(), mtime=0)
    seeds["speedscope/both"] = SPEEDSCOPE
    seeds["perf_script/records"] = PERF_SCRIPT
    seeds["folded/lines"] = FOLDED
    names = [
        "main",
        "_ZN4core3fmt5write17h0123456789abcdefE",
        "_RNvC6_123foo3bar",
        "_RINvNtC3std3mem8align_ofdE",
        "_ZNSt6vectorIiSaIiEE9push_backERKi",
        "_ZZ4mainENKUlvE_clEv",
        "_ZN5shapes4DeepILi24EE5depthEd",
        "_ZSt4sortIN9__gnu_cxx17__normal_iteratorIPdSt6vectorIdSaIdEEEEZ5orderS5_EUlddE_EvT_S8_T0_",
    ]
    for at, name in enumerate(names):
        seeds[f"demangle/{at}"] = name.encode()
    for path, content in seeds.items():
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)


main()
