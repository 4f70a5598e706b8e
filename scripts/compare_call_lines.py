#!/usr/bin/env python3
"""compare_call_lines.py [--proftool BIN] [--perf BIN] [--addr2line BIN] RECORDING PROGRAM

Calls by line against addr2line.

For each function of PROGRAM and each line of it, the number of samples in which it calls another
function of PROGRAM from there, each sample counted once: as summed up here from the raw chains of
`perf script -D` and the inlined frames of `addr2line -i`, and as `proftool detail` tells it, of both
ends of each call. Prints every difference; exit 0 if there is none, 1 if there are, 2 if it could not
be compared.

The address of what was interrupted is looked up as it is, a return address one byte before it.
Functions that addr2line cannot name are left out. That of binutils tells some inlined functions of
C++ apart by the wrong names; LLVM's (`--addr2line llvm-addr2line`) does not.
"""

import argparse
import bisect
import collections
import json
import os
import re
import subprocess
import sys

MAPPING = re.compile(
    r".*PERF_RECORD_MMAP2? (-?\d+)/-?\d+: \[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ (?:0x)?([0-9a-f]+)[^\]]*\]: (\S+) (.*)"
)
SAMPLE = re.compile(r".*PERF_RECORD_SAMPLE\(IP, 0x[0-9a-f]+\): (-?\d+)/-?\d+: 0x([0-9a-f]+)")
LINK = re.compile(r"\.+ +\d+: ([0-9a-f]{16})$")
SEGMENT = re.compile(r"\s*LOAD\s+0x([0-9a-f]+) 0x([0-9a-f]+) 0x[0-9a-f]+ 0x([0-9a-f]+) ")
# Numbers from here upwards say what the links behind them are.
CONTEXTS = 2**64 - 4095
# The second is what stands before the linkage table, which has no names there.
NO_NAMES = ("??", "_init")


def told(command):
    return subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "replace")


def chains(perf, recording, program):
    """For each sample, from the leaf outwards, the offsets in the program that are to be looked up;
    None for what is not in it."""
    lines = told([perf, "script", "-D", "-i", recording]).splitlines()
    mappings = collections.defaultdict(list)
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if mapping := MAPPING.match(line):
            start, length, offset = (int(mapping[i], 16) for i in (2, 3, 4))
            if "x" in mapping[5]:
                here = mapping[6] == program
                mappings[mapping[1]].append((start, start + length, offset, here))
            continue
        sample = SAMPLE.match(line)
        if not sample:
            continue
        chain, exact = [], True
        while at < len(lines) and lines[at].startswith("."):
            link = LINK.match(lines[at])
            at += 1
            if not link:
                continue
            address = int(link[1], 16)
            if address >= CONTEXTS:
                exact = True
                continue
            address -= not exact
            exact = False
            found = None
            for start, end, offset, here in reversed(mappings[sample[1]]):
                if start <= address < end:
                    found = address - start + offset if here else None
                    break
            chain.append(found)
        yield chain


def names_of_same_code(program):
    """By the first of them, the symbols at each address: identical code may have several."""
    by_address = collections.defaultdict(set)
    for words in map(str.split, told(["nm", "--defined-only", program]).splitlines()):
        if words[1] in "tTwWi":
            by_address[words[0]].add(words[2])
    return {min(names): sorted(names) for names in by_address.values()}


def inlined_frames(addr2line, program, offsets):
    """Of each file offset the frames there, outermost first: name and line."""
    segments = [
        tuple(int(n, 16) for n in m.groups())
        for m in map(SEGMENT.match, told(["readelf", "-lW", program]).splitlines())
        if m
    ]

    def address(offset):
        for start, virtual, size in segments:
            if start <= offset < start + size:
                return offset - start + virtual
        return 0

    offsets = sorted(offsets)
    query = "\n".join(hex(address(offset)) for offset in offsets)
    command = [addr2line, "-a", "-i", "-f", "-e", program]
    run = subprocess.run(command, input=query.encode(), capture_output=True, check=True)
    frames, each = [], iter(run.stdout.decode().splitlines())
    for line in each:
        if line.startswith("0x"):
            frames.append([])
            continue
        name, place = line, next(each)
        place = re.sub(r" \(discriminator \d+\)$", "", place)
        file, _, number = place.rpartition(":")
        known = number.isdigit() and int(number) > 0
        frames[-1].append((name, (os.path.normpath(file), int(number)) if known else None))
    assert len(frames) == len(offsets)
    symbols = sorted(
        (int(words[0], 16), words[2])
        for words in map(str.split, told(["nm", "--defined-only", program]).splitlines())
        if words[1] in "tTwWi"
    )
    answers = {}
    for offset, there in zip(offsets, frames):
        # The function itself goes by its symbol: `f.llvm.123` is plain `f` to addr2line.
        symbol = bisect.bisect_right(symbols, (address(offset), "\x7f")) - 1
        name, line = there[-1]
        if symbol >= 0 and symbols[symbol][1].startswith(name):
            name = re.sub(r"\.(cold|warm).*", "", symbols[symbol][1])
        answers[offset] = [(name, line), *there[-2::-1]]
    return answers


def detail(proftool, recording, names):
    """What proftool says of the function that has one of these names; None where it knows none."""
    for name in names:
        command = [proftool, "detail", "--no-repair", name, recording]
        command += ["--format", "json", "--names", "mangled", "--unit", "samples"]
        answer = subprocess.run(command, capture_output=True, check=False)
        if answer.returncode == 0:
            document = json.loads(answer.stdout)
            if document["function"]["linkage_name"] == name:
                return document
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--proftool", default="target/release/proftool")
    parser.add_argument("--perf", default="perf")
    parser.add_argument("--addr2line", default="addr2line")
    parser.add_argument("recording")
    parser.add_argument("program")
    args = parser.parse_args()
    args.program = os.path.realpath(args.program)

    samples = collections.Counter(map(tuple, chains(args.perf, args.recording, args.program)))
    offsets = {offset for chain in samples for offset in chain if offset is not None}
    if not offsets:
        print("no sample is in the program", file=sys.stderr)
        sys.exit(2)
    frames = inlined_frames(args.addr2line, args.program, offsets)
    aliases = names_of_same_code(args.program)
    first = {name: names[0] for names in aliases.values() for name in names}
    expected = collections.Counter()
    for chain, count in samples.items():
        # From the outermost address inwards.
        calls, caller = set(), (None, None)
        for offset in reversed(chain):
            if offset is None:
                caller = (None, None)
                continue
            for name, line in frames[offset]:
                name = None if name in NO_NAMES else first.get(name, name)
                if caller[0] and name:
                    calls.add((caller[0], caller[1], name))
                caller = (name, line)
        for call in calls:
            expected[call] += count

    functions = {end for caller, _, callee in expected for end in (caller, callee)}
    shown = {"call_sites": {}, "called_from": {}}
    left_out = set()
    for function in sorted(functions):
        answer = detail(args.proftool, args.recording, aliases.get(function, [function]))
        if not answer:
            left_out.add(function)
            continue
        for side, other in (("call_sites", "callee"), ("called_from", "caller")):
            for row in answer[side]:
                line = (os.path.normpath(row["file"]), row["line"]) if row["file"] else None
                end = first.get(row[other], row[other])
                ends = (function, end) if other == "callee" else (end, function)
                shown[side][ends[0], line, ends[1]] = row["weight"]

    differences = 0
    compared = 0
    for side, ours in shown.items():
        own = 0 if side == "call_sites" else 2
        for call in sorted(expected.keys() | ours.keys(), key=str):
            if call[own] in left_out or call[0] not in functions or call[2] not in functions:
                continue
            compared += 1
            if expected[call] != ours.get(call, 0):
                differences += 1
                print(f"{side} {call}: addr2line {expected[call]}, proftool {ours.get(call, 0)}")
    print(
        f"{sum(samples.values())} samples, {len(functions)} functions ({len(left_out)} left out), "
        f"{compared} calls by line compared, {differences} differ"
    )
    sys.exit(differences > 0)


if __name__ == "__main__":
    main()
