#!/usr/bin/env python3
"""compare_errors.py synthetic|pool|exact|builds …: how often `proftool compare` is wrong.

    compare_errors.py synthetic [PAIRS]          runs that are made here, with known truth
    compare_errors.py pool FILES… [--pairs N]    recorded runs of one program, in two random halves; what
                                                 `perf diff` (of one run a side) and `pprof -diff_base`
                                                 list of the same pairs, too, where they are there
    compare_errors.py exact [PAIRS]              counted calls of two runs a side, under load
    compare_errors.py builds [RUNS]              one program built twice: elsewhere, linked in another order,
                                                 with a function renamed, inlined, split

Prints the part of pairs in which something is reported although nothing has changed (at most 5 %),
the part in which a change of 5 % in one leaf is found, with the number of runs that proftool asked
for (at least 80 %), and the part of 95 % intervals that hold the truth (93 to 97 %).

PROFTOOL names the program to be tested; the release build of this clone otherwise.
"""

import argparse
import json
import math
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROFTOOL = os.environ.get("PROFTOOL", str(HERE.parent / "target/release/proftool"))
CHANGES = {"better", "worse", "new", "gone", "large"}
SAMPLES = 10_000
FUNCTIONS = 60
# The leaf that changes has a fifth of the samples.
LEAF = "f0"


def compare(base, new):
    command = [PROFTOOL, "compare", "--format", "json", "--base", *base, "--new", *new]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout)


def reported(document):
    """What a comparison says has changed."""
    found = [it["name"] for it in document["functions"] if it["verdict"] in CHANGES]
    found += ["total of " + it["name"] for it in document["functions"]
              if it["total_change"]["verdict"] in CHANGES]
    found += ["cycle of " + it["members"][0]["name"] for it in document["cycles"] if it["verdict"] in CHANGES]
    return found + (["time"] if document["time"]["verdict"] in CHANGES else [])


def poisson(mean):
    if mean > 50:
        return max(0, round(random.gauss(mean, math.sqrt(mean))))
    limit, number, product = math.exp(-mean), 0, random.random()
    while product > limit:
        number, product = number + 1, product * random.random()
    return number


class Program:
    """Functions with shares of the time, and how far runs vary: more than by chance."""

    def __init__(self):
        rest = [1 / (rank + 2) ** 1.2 for rank in range(FUNCTIONS - 1)]
        self.shares = [0.2] + [0.8 * it / sum(rest) for it in rest]
        self.wobble = random.uniform(0.0, 0.02)
        self.extra = [random.uniform(0.0, 0.84) for _ in self.shares]

    def means(self, slower):
        means = [SAMPLES * share for share in self.shares]
        means[0] *= slower
        return means

    def run(self, path, slower=1.0):
        machine = random.gauss(1.0, self.wobble)
        lines = []
        for number, mean in enumerate(self.means(slower)):
            # The variance of the counts is 1 to 1.84 times that of independent samples.
            spread = random.gauss(1.0, math.sqrt(self.extra[number] / mean))
            count = poisson(max(mean * machine * spread, 0.0))
            group = f"g{number % 7}"
            if count:
                lines.append(f"main;{group};f{number} {count}\n")
        path.write_text("".join(lines))
        return str(path)


def synthetic(pairs):
    random.seed(1)
    false, asked, found, named, covered, intervals, needed = 0, 0, 0, 0, 0, 0, []
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        for pair in range(pairs):
            program = Program()
            runs = random.choice([3, 5, 10])
            side = lambda name, number, slower=1.0: [
                program.run(place / f"{name}{it}.folded", slower) for it in range(number)]
            document = compare(side("a", runs), side("b", runs))
            said = reported(document)
            if said:
                false += 1
                print(f"pair {pair} ({runs} runs): {said}")
            means = dict(zip((f"f{it}" for it in range(FUNCTIONS)), program.means(1.0)))
            for it in document["functions"]:
                if means.get(it["name"], 0) > 20:
                    intervals += 1
                    covered += it["change"]["low"] <= 0 <= it["change"]["high"]
            # A change, with as many runs as are asked for after five.
            base, new = side("c", 5), side("d", 5, 1.05)
            leaf = next(it for it in compare(base, new)["functions"] if it["name"] == LEAF)
            more = leaf["more_runs"] or 0
            asked += 1
            needed.append(5 + more)
            if more:
                document = compare(side("e", 5 + more), side("f", 5 + more, 1.05))
                leaf = next(it for it in document["functions"] if it["name"] == LEAF)
                others = [it["name"] for it in document["functions"]
                          if it["verdict"] in CHANGES and it["name"] != LEAF]
            else:
                others = []
            found += leaf["verdict"] == "worse"
            named += not others
    needed.sort()
    print(f"A/A: {false} of {pairs} pairs with a change ({100 * false / pairs:.1f} %)")
    print(f"A/B: {found} of {asked} found ({100 * found / asked:.1f} %), "
          f"nothing else named in {named}; runs a side: median {needed[len(needed) // 2]}, "
          f"most {needed[-1]}")
    print(f"intervals: {covered} of {intervals} hold the truth ({100 * covered / intervals:.2f} %)")


def lines_of(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return done.stdout.decode(errors="replace").splitlines()


def perf_diff(base, new):
    """The largest difference between two runs, in percent of all."""
    lines = lines_of("perf", "diff", "-f", "-c", "delta-abs", base[0], new[0])
    found = [re.match(r"\s+(?:[\d.]+%)?\s+([+-][\d.]+)%", line) for line in lines]
    return max((abs(float(it[1])) for it in found if it), default=0.0)


def pprof(base, new):
    """The largest difference between two sums of runs, in percent of the base."""
    with tempfile.TemporaryDirectory() as place:
        sums = [str(pathlib.Path(place) / name) for name in ("base.pb.gz", "new.pb.gz")]
        # It takes one file as the base.
        for into, files in zip(sums, (base, new)):
            lines_of(PROFTOOL, "export", "--to", "pprof", "-o", into, *files)
        lines = lines_of("go", "tool", "pprof", "-top", "-sample_index=1", "-nodefraction=0",
                         f"-diff_base={sums[0]}", sums[1])
    found = [re.match(r"\s*-?[\d.]+\w*\s+(-?[\d.]+)%", line) for line in lines]
    return max((abs(float(it[1])) for it in found if it), default=0.0)


def pool(files, pairs, runs):
    random.seed(2)
    false = 0
    peers = {"perf diff": ("perf", perf_diff), "pprof -diff_base": ("go", pprof)}
    peers = {name: peer for name, (tool, peer) in peers.items() if shutil.which(tool)}
    listed = {name: [] for name in peers}
    for pair in range(pairs):
        drawn = random.sample(files, 2 * runs)
        base, new = drawn[:runs], drawn[runs:]
        said = reported(compare(base, new))
        if said:
            false += 1
            print(f"pair {pair}: {said[:6]}")
        for name, peer in peers.items():
            listed[name].append(peer(base, new))
    print(f"A/A: {false} of {pairs} pairs of {runs} runs with a change ({100 * false / pairs:.1f} %)")
    for name, largest in listed.items():
        largest.sort()
        # What is listed is not said to be a change; a reader can only go by its size.
        above = ", ".join(f"{100 * sum(it >= least for it in largest) / pairs:.0f} % with one of {least} % or more"
                          for least in (0.5, 1, 2))
        print(f"{name}: the largest listed difference is {largest[pairs // 2]:.2f} % in the median; {above}")


COUNTED = r"""
#include <stdlib.h>
#include <string.h>
static int less(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
__attribute__((noinline)) int leaf(int x) { return x * 31 + 7; }
__attribute__((noinline)) int walk(int n) { return n < 2 ? leaf(n) : walk(n - 1) ^ walk(n - 2); }
int main(int argc, char **argv) {
    int numbers[5000], sum = walk(18);
    for (int i = 0; i < 5000; i++) numbers[i] = leaf(i * 7919 % 5003);
    qsort(numbers, 5000, sizeof *numbers, less);
    if (argc > 1) sum += leaf(argc);
    return sum == numbers[0] && sum == 1;
}
"""


def exact(pairs):
    random.seed(3)
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        (place / "a.c").write_text(COUNTED)
        subprocess.run(["gcc", "-O1", "-o", place / "a", place / "a.c"], check=True)
        busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(8)]

        def record(name, *arguments):
            file = str(place / name)
            command = [PROFTOOL, "record", "--quiet", "--counts", "--counts-limit", "none", "-o", file, "--"]
            subprocess.run([*command, place / "a", *arguments], check=True, stderr=subprocess.DEVNULL)
            return file

        try:
            old = [record(f"old{it}.data") for it in range(40)]
            new = [record(f"new{it}.data", "more") for it in range(40)]
        finally:
            for it in busy:
                it.kill()

        def changed(base, new):
            functions = compare(base, new)["functions"]
            calls = lambda it, side: it[side]["calls"]
            return {it["name"]: (calls(it, "base"), calls(it, "new")) for it in functions
                    if it["exact"] and calls(it, "base") != calls(it, "new")}

        alarms, found = 0, 0
        for _ in range(pairs):
            drawn = random.sample(old, 4)
            alarms += bool(changed(drawn[:2], drawn[2:]))
            said = changed(random.sample(old, 2), random.sample(new, 2))
            base, more = said.get("leaf", (0, 0))
            found += more == base + 1 and len(said) == 1
    print(f"exact: {alarms} of {pairs} A/A pairs with a change; one call more found in {found} of {pairs}")


# A function that calls one that is inlined or not, one that has another name, and one with a rare part.
BUILT = {
    "leaf.c": r"""
unsigned long leaf(unsigned long x) { for (int i = 0; i < 400; i++) x = x * 31 + i; return x; }
unsigned long OTHER(unsigned long x) { for (int i = 0; i < 300; i++) x ^= x * 7 + i; return x; }
""",
    "app.c": r"""
#include <stdio.h>
#include <stdlib.h>
unsigned long leaf(unsigned long), OTHER(unsigned long);
static unsigned long count;
__attribute__((noinline, cold)) static void seldom(void) { count++; }
static inline INLINE unsigned long step(unsigned long x) { for (int i = 0; i < 500; i++) x += x * 3 ^ i; return x; }
__attribute__((noinline)) unsigned long walk(unsigned long x) {
    x = leaf(x) + step(x) + OTHER(x);
    for (int i = 0; i < 200; i++) x = x * 5 + i;
    if (__builtin_expect_with_probability(x & 1, 0, 1.0)) {
        for (int i = 0; i < 400; i++) x = x * 3 ^ i;
        seldom();
    }
    return x;
}
int main(void) {
    unsigned long x = 1;
    for (int i = 0; i < 60000; i++) x = walk(x);
    return x == 1;
}
""",
}


WHOLE = "-fno-reorder-blocks-and-partition"


def build(place, order=("app.c", "leaf.c"), other="other", inline="noinline", options=("-g", WHOLE)):
    place.mkdir(parents=True)
    for name, text in BUILT.items():
        (place / name).write_text(text)
    defines = [f"-DOTHER={other}", f"-DINLINE=__attribute__(({inline}))"]
    subprocess.run(["gcc", "-w", "-O2", *options, *defines, "-o", "app", *order], cwd=place, check=True)
    return str(place / "app")


def builds(runs):
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        base = build(place / "base")
        cases = {
            "built again": build(place / "again"),
            "in another directory, linked in another order": build(place / "a/b/c", order=("leaf.c", "app.c")),
            "a function renamed": build(place / "renamed", other="otherwise"),
            "a function inlined": build(place / "inlined", inline="always_inline"),
            "a function inlined, no debug information":
                build(place / "bare", inline="always_inline", options=["-g0", WHOLE]),
            "a part split off": build(place / "split", options=["-g"]),
            "a part split off, no debug information": build(place / "bare_split", options=["-g0"]),
            "other alignment": build(place / "aligned", options=["-g", WHOLE, "-falign-functions=64"]),
        }
        for name, new in cases.items():
            command = [PROFTOOL, "compare", "--format", "json", "--runs", str(runs), "--record", "-F 4999",
                       "--", base, ":::", new]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
            document = json.loads(done.stdout)
            functions = document["functions"]
            was = [f"{it['name']} was {it['was']} ({it['match']})" for it in functions if it["was"]]
            within = [f"{it['name']} has {', '.join(it['absorbed'])}" for it in functions if it["absorbed"]]
            said = reported(document)
            print(f"{name}: {', '.join(said) or 'no change'}; {'; '.join(was + within) or 'all by name'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    kinds.add_parser("synthetic").add_argument("pairs", type=int, nargs="?", default=500)
    recorded = kinds.add_parser("pool")
    recorded.add_argument("files", nargs="+")
    recorded.add_argument("--pairs", type=int, default=200)
    recorded.add_argument("--runs", type=int, default=10)
    kinds.add_parser("exact").add_argument("pairs", type=int, nargs="?", default=200)
    kinds.add_parser("builds").add_argument("runs", type=int, nargs="?", default=10)
    args = parser.parse_args()
    if args.kind == "synthetic":
        synthetic(args.pairs)
    elif args.kind == "exact":
        exact(args.pairs)
    elif args.kind == "builds":
        builds(args.runs)
    else:
        if len(args.files) < 2 * args.runs:
            sys.exit("too few runs for two sides")
        pool(args.files, args.pairs, args.runs)


if __name__ == "__main__":
    main()
