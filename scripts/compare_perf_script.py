#!/usr/bin/env python3
"""compare_perf_script.py [--proftool BIN] [--perf BIN] FILE: totals against perf's own decoding.

For each function the number of samples that have it on their stack, each sample counted once:
as summed up here from `perf script`, and as `proftool flat` tells it, both without inlined calls,
by file and symbol. Prints every difference; exit 0 if there is none, 1 if there are, 2 if it could
not be compared.

Symbols are told apart by their addresses in the file, from `nm` and /proc/kallsyms, so that each
side may show another of a function's names. A return address at the very start of a function
belongs to the call at the end of the function before it; perf gives it to the wrong one, and is
put right here. A stack with an address from PERF_CONTEXT_MAX upwards, as walks by frame pointers
through code without them can find, is thrown away by perf as a whole and kept by proftool up to
there: where ours is more by no more than such samples, that is no difference. Frames that perf cannot name (`[unknown]`) are left out, and so are functions that
share file and name, which it does not tell apart; they are counted.
"""

import argparse
import bisect
import collections
import functools
import json
import re
import subprocess
import sys


# "comm tid", with the only frame behind it where a sample has no stack. `comm` may hold spaces.
HEADER = re.compile(r".*?\s-?\d+(?:\s+([0-9a-f]+ .*))?\s*")
# "ip name+0xoffset (file)"; names and files may hold spaces and parentheses.
FRAME = re.compile(r"\s*[0-9a-f]+ (.*?)(?:\+(0x[0-9a-f]+))? \((.*)\)\s*")
KERNEL = "[kernel.kallsyms]"

# The paths of files by their names, as they are met.
paths = {}


@functools.cache
def symbols(home):
    """Of a file: the symbols' addresses by name; (address, name) of all, sorted; and the first
    address behind each whose size is known."""
    lines = []
    if home == KERNEL:
        with open("/proc/kallsyms", encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    else:
        for table in ([], ["--dynamic"]):
            command = ["nm", "--defined-only", "--print-size", *table, paths.get(home, home)]
            told = subprocess.run(command, capture_output=True, check=False)
            lines += told.stdout.decode("utf-8", "replace").splitlines()
    by_name, ends = collections.defaultdict(set), {}
    for line in lines:
        # "address [size] kind name"
        words = line.split()
        size = words.pop(1) if len(words) > 3 and is_hex(words[1]) and len(words[1]) > 1 else None
        if len(words) < 3 or words[1] not in "tTwWiuV":
            continue
        start = int(words[0], 16)
        by_name[unversioned(words[2])].add(start)
        if size is not None:
            ends[start] = max(ends.get(start, 0), start + int(size, 16))
    by_address = sorted({(at, name) for name, all_at in by_name.items() for at in all_at})
    return by_name, by_address, ends


def is_hex(word):
    return all(digit in "0123456789abcdef" for digit in word)


def function(home, name):
    """What stands for a function: its address where that is known and the only one."""
    found = symbols(home)[0].get(name, ())
    return home, (next(iter(found)) if len(found) == 1 else name)


def function_before(home, name):
    """The function that ends where another begins; None if there is none, or it is not known."""
    by_name, by_address, ends = symbols(home)
    found = by_name.get(name, ())
    if len(found) != 1:
        return None
    start = next(iter(found))
    at = bisect.bisect_left(by_address, (start, ""))
    if not at or ends.get(by_address[at - 1][0], start) < start:
        return None
    return function(home, by_address[at - 1][1])


def perf_totals(perf, file):
    """Samples, for each function the samples that have it, and names, from perf script's text.

    A sample is a header, its frames each behind a tab, and an empty line if it has frames.
    """
    fields = "comm,tid,ip,sym,symoff,dso"
    command = [perf, "script", "-i", file, "--no-inline", "--no-demangle", "--max-stack", "4096", "-F", fields]
    totals, names = collections.Counter(), {}
    samples, thrown_away, seen = 0, 0, set()

    def add_frame(frame, below):
        """Adds a frame and gives its file; `below` is the file of the one that it called, None for the first."""
        parts = FRAME.fullmatch(frame)
        if not parts:
            return None
        if parts.group(1) == "[unknown]":
            return home_of(parts.group(3))
        home, name = home_of(parts.group(3)), unversioned(parts.group(1))
        paths.setdefault(home, parts.group(3))
        # What the kernel interrupted is at an instruction, as the first frame is.
        is_return = below is not None and (below != KERNEL or home == KERNEL)
        is_after = is_return and parts.group(2) in (None, "0x0")
        key = function_before(home, name) if is_after else function(home, name)
        if key is not None:
            names.setdefault(key, name if not is_after else f"what is before {name}")
            seen.add(key)
        return home

    below = None
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        for raw in process.stdout:
            line = raw.decode("utf-8", "replace").rstrip("\n")
            if line.startswith("\t"):
                below = add_frame(line, below) or "[unknown]"
                continue
            totals.update(seen)
            seen.clear()
            # An empty line ends the frames of a sample; one that has none ends at once.
            thrown_away += bool(not line and below is None)
            below = None
            if line:
                samples += 1
                header = HEADER.fullmatch(line)
                below = add_frame((header and header.group(1)) or "", None)
    totals.update(seen)
    if process.returncode != 0:
        print(f"perf script failed ({process.returncode})", file=sys.stderr)
        sys.exit(2)
    return samples, thrown_away, totals, names


def home_of(path):
    """A file by its last name. The kernel is one file, whatever its image is called."""
    name = path.rpartition("/")[2]
    return KERNEL if name.startswith(("[kernel", "vmlinux")) else name


def unversioned(name):
    """`clock_gettime@@GLIBC_2.17` without its version, which perf shows for some files only."""
    return name if name.endswith("@plt") else name.partition("@")[0] or name


def our_totals(proftool, file):
    """Samples, our totals by function, and which of these are several functions."""
    command = [
        proftool, "flat", "--no-repair", "--no-inline", "--unit", "samples", "--names", "mangled",
        "--format", "json", "--limit", "0", file,
    ]
    told = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if told.returncode != 0:
        sys.stderr.buffer.write(told.stderr)
        print(f"proftool flat failed ({told.returncode})", file=sys.stderr)
        sys.exit(2)
    answer = json.loads(told.stdout)
    totals, functions = collections.Counter(), collections.Counter()
    for row in answer["functions"]:
        key = function(home_of(row["module"]), unversioned(row["name"]))
        totals[key] += row["total"]
        functions[key] += 1
    return answer["samples"], totals, {key for key, count in functions.items() if count > 1}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--proftool", default="proftool")
    parser.add_argument("--perf", default="perf")
    parser.add_argument("file")
    args = parser.parse_args()
    try:
        samples, thrown_away, theirs, names = perf_totals(args.perf, args.file)
        our_samples, ours, shared = our_totals(args.proftool, args.file)
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)

    equal = different = namesakes = kept = 0
    if samples != our_samples:
        print(f"samples: perf {samples}, proftool {our_samples}")
        different += 1
    for key in sorted(theirs, key=lambda key: (-theirs[key], names[key])):
        if ours[key] == theirs[key]:
            equal += 1
        elif key in shared:
            namesakes += 1
        elif 0 < ours[key] - theirs[key] <= thrown_away:
            kept += 1
        else:
            different += 1
            print(f"{names[key]} ({key[0]}): perf {theirs[key]}, proftool {ours[key]}")
    print(
        f"{samples} samples, {thrown_away} stacks thrown away by perf; {len(theirs)} functions: "
        f"{equal} equal, {kept} more by such stacks, {namesakes} with namesakes, {different} different"
    )
    sys.exit(1 if different else 0)


main()
