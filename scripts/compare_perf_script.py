#!/usr/bin/env python3
"""compare_perf_script.py [--proftool BIN] [--perf BIN] FILE: totals against perf's own decoding.

For each function the number of samples that have it on their stack, each sample counted once:
as summed up here from `perf script`, and as `proftool flat` tells it, both without inlined calls,
by linkage names. Prints every difference; exit 0 if there is none, 1 if there are, 2 if it could
not be compared. Frames that perf cannot name (`[unknown]`) are left out: proftool tells them
apart by file and address, perf does not.

A return address that is the first byte of a function is that of a call at the very end of the
function before it. perf names the one behind it, proftool the one that made the call. Samples that
perf gives a name for this reason alone are told apart, and are no difference.

Functions that share a name are added up on our side as perf has only names; a sample with two of
them counts twice there, so names that more than one function has are told apart in the output.
"""

import argparse
import collections
import json
import re
import subprocess
import sys


# "comm tid", with the only frame behind it where a sample has no stack. `comm` may hold spaces.
HEADER = re.compile(r".*?\s-?\d+(?:\s+([0-9a-f]+ .*))?\s*")


def perf_totals(perf, file):
    """Samples, for each name the samples that have it, and those that have it only by return
    addresses at its first byte, from the text of perf script.

    A sample is a header, its frames each behind a tab, and an empty line if it has frames.
    """
    command = [perf, "script", "-i", file, "--no-inline", "--no-demangle", "-F", "comm,tid,ip,sym,symoff"]
    totals, misled = collections.Counter(), collections.Counter()
    samples, seen, starts, last_kernel = 0, set(), set(), None
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        for raw in process.stdout:
            line = raw.decode("utf-8", "replace").rstrip("\n")
            if line.startswith("\t"):
                # Only the first frame of the kernel's and of the user's part is no return address.
                kernel = line.strip().startswith("ffff")
                add_frame(seen, starts if kernel == last_kernel else seen, line)
                last_kernel = kernel
                continue
            last_kernel = None
            totals.update(seen)
            misled.update(starts - seen)
            seen.clear()
            starts.clear()
            if line:
                samples += 1
                header = HEADER.fullmatch(line)
                add_frame(seen, seen, (header and header.group(1)) or "")
    totals.update(seen)
    misled.update(starts - seen)
    if process.returncode != 0:
        print(f"perf script failed ({process.returncode})", file=sys.stderr)
        sys.exit(2)
    return samples, totals, misled


def add_frame(seen, starts, frame):
    """Adds the name of a frame "ip name+0xoffset", to `starts` if the offset is 0."""
    _, _, name = frame.strip().partition(" ")
    name, _, offset = name.strip().rpartition("+0x")
    name = name or offset
    name = unversioned(name.strip())
    if name and name != "[unknown]":
        (starts if offset == "0" else seen).add(name)


def unversioned(name):
    """`clock_gettime@@GLIBC_2.17` without its version, which perf shows for some files only."""
    return name.partition("@")[0] or name


def our_totals(proftool, file):
    """Samples, for each name our total, and names that several functions share."""
    command = [
        proftool, "flat", "--no-inline", "--unit", "samples", "--names", "mangled",
        "--format", "json", "--limit", "0", file,
    ]
    told = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if told.returncode != 0:
        print(f"proftool flat failed ({told.returncode})", file=sys.stderr)
        sys.exit(2)
    answer = json.loads(told.stdout)
    totals, homes = collections.Counter(), collections.Counter()
    for function in answer["functions"]:
        name = unversioned(function["name"])
        totals[name] += function["total"]
        homes[name] += 1
    return answer["samples"], totals, {name for name, count in homes.items() if count > 1}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--proftool", default="proftool")
    parser.add_argument("--perf", default="perf")
    parser.add_argument("file")
    args = parser.parse_args()
    try:
        samples, theirs, misled = perf_totals(args.perf, args.file)
        our_samples, ours, shared = our_totals(args.proftool, args.file)
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)

    different = 0
    if samples != our_samples:
        print(f"samples: perf {samples}, proftool {our_samples}")
        different += 1
    matched = 0
    for name in sorted(theirs, key=lambda name: (-theirs[name], name)):
        if ours[name] == theirs[name]:
            matched += 1
            continue
        note = " (several functions share the name)" if name in shared else ""
        print(f"{name}: perf {theirs[name]}, proftool {ours[name]}{note}")
        different += name not in shared
    for name in sorted(misled, key=lambda name: (-misled[name], name)):
        print(f"{name}: {misled[name]} more by perf, for return addresses at its first byte")
    print(f"{samples} samples, {len(theirs)} names, {matched} equal, {different} different")
    sys.exit(1 if different else 0)


main()
