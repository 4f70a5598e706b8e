#!/usr/bin/env python3
"""compare_perf_unwind.py [--stacks BIN] [--perf BIN] [--show N] FILE…: unwound stacks against perf's.

FILEs are recordings with copied user stacks (perf record --call-graph dwarf). For every sample the
addresses in user space at which frames are looked up, as the example `unwind_stacks` finds them
and as `perf script` does, from the innermost outwards. Counts those that are equal, those where one
is the beginning of the other, and those that differ, by where and how ours end; prints the first N
of those that are no better. Exit 0 if none differ or are deeper in perf, 1 if some do, 2 if it
could not be compared.

An address that was interrupted by a signal is looked up by perf one byte before itself, as if it
were behind a call: a distance of one is no difference.
"""

import argparse
import collections
import re
import subprocess
import sys

KERNEL = 1 << 63
# "tid seconds.fraction:", with the only frame behind it where a sample has no stack.
HEADER = re.compile(r"\s*(-?\d+)\s+(\d+)\.(\d+):\s*([0-9a-f]+)?\s*")
NANOSECONDS = 9


def perf_stacks(perf, file):
    """Thread, time and user addresses of each sample of perf script's text."""
    command = [perf, "script", "-i", file, "--no-inline", "--max-stack", "65536", "--ns", "-F", "tid,time,ip"]
    sample = None
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        for line in process.stdout:
            header = HEADER.fullmatch(line)
            if header and "." in line:
                if sample:
                    yield sample
                tid, seconds, fraction, ip = header.groups()
                sample = (int(tid), int(seconds + fraction.ljust(NANOSECONDS, "0")), [])
                if ip:
                    sample[2].append(int(ip, 16))
            elif line.strip() and sample:
                sample[2].append(int(line.split()[0], 16))
    if sample:
        yield sample
    if process.returncode != 0:
        sys.exit(f"perf script failed ({process.returncode})")


def our_stacks(stacks, file):
    """Thread, time, how it ends, and addresses, of each sample with a copied stack."""
    with subprocess.Popen([stacks, file], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            tid, time, end, *frames = line.split()
            yield int(tid), int(time), end, [int(frame, 16) for frame in frames]
    if process.returncode != 0:
        sys.exit(f"{stacks} failed ({process.returncode})")


def same(ours, theirs):
    return all(abs(a - b) <= 1 for a, b in zip(ours, theirs))


def kind(ours, theirs):
    if not same(ours, theirs):
        return "different"
    if len(ours) == len(theirs):
        return "equal"
    return "ours deeper" if len(ours) > len(theirs) else "theirs deeper"


def compare(args, file):
    """Prints the counts of a file; whether nothing is worse than perf's."""
    by_sample = collections.defaultdict(list)
    for tid, time, end, frames in our_stacks(args.stacks, file):
        by_sample[tid, time].append((end, frames))
    counts, ends, shown = collections.Counter(), collections.Counter(), 0
    for tid, time, addresses in perf_stacks(args.perf, file):
        found = by_sample.get((tid, time))
        if not found:
            counts["without a copy"] += 1
            continue
        end, ours = found.pop(0)
        theirs = [address for address in addresses if address < KERNEL]
        what = kind(ours, theirs)
        counts[what] += 1
        ends[what, end] += 1
        if what in ("different", "theirs deeper") and shown < args.show:
            shown += 1
            print(f"{what}: thread {tid} at {time}, ours ends {end}")
            for a, b in list(zip(ours + [0] * len(theirs), theirs + [0] * len(ours)))[: max(len(ours), len(theirs))]:
                print(f"  {a:16x} {b:16x}{'' if abs(a - b) <= 1 else '  *'}")
    compared = sum(counts.values()) - counts["without a copy"]
    left = sum(map(len, by_sample.values()))
    print(f"{file}: {compared} stacks compared, {counts['without a copy']} without a copy, {left} ours alone")
    for what in ("equal", "ours deeper", "theirs deeper", "different"):
        how = ", ".join(f"{end} {n}" for (w, end), n in sorted(ends.items()) if w == what)
        share = 100 * counts[what] / compared if compared else 0
        print(f"  {what:13} {counts[what]:7} {share:6.2f} %  {how}")
    return not (counts["different"] or counts["theirs deeper"] or left) and compared > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--stacks", default="target/release/examples/unwind_stacks")
    parser.add_argument("--perf", default="perf")
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    try:
        sound = [compare(args, file) for file in args.files]
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    sys.exit(0 if all(sound) else 1)


main()
