#!/usr/bin/env python3
"""compare_truth.py [OPTION…]: how many of the sampled stacks are right, by profiler.

Builds the programs of fixtures/programs/truth, which know their own chains of calls, in several
ways, records each with each profiler, and compares every stack with the chain that its phase has.
A stack is right if it is a chain of its phase from main up to and including some frame; what
called main is not looked at. What is not right is one of

  missing  frames of the chain are left out between main and the leaf
  cut      main is not there, and the rest is in order
  wrong    a function that is not of the chain, or not at this place

Rows of the table are programs, builds and phases. A cell is the share of right stacks and, behind
a slash, of wrong ones, in percent; behind a second slash, where a tool repaired stacks, of those
with an inserted frame. `*` marks less than 50 samples, `-` none. Chains are those of the source:
a function that ended in a tail call is part of it, though its frame is gone.

--inlined adds a row with inlined functions for each phase that has some. --examples shows for each
cell the stack that was most often missing, cut and wrong. Exit status 2 if nothing could be
compared.
"""

import argparse
import collections
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True

from truth.builds import BUILDS, build  # noqa: E402
from truth.chains import CLASSES, INSERTED, RIGHT, WRONG, Judge, phases  # noqa: E402
from truth.tools import Failed, Perf, Proftool, Samply  # noqa: E402

FEW = 50
# How the row of a phase ends that shows it with inlined functions.
INLINED_ROW = ", inlined"
Cell = collections.namedtuple("Cell", "counts inserted examples")


def tools(args):
    """The profilers that are asked for; each makes one recording of a program, and reads it in one
    way or more."""
    every = [
        Perf(args.perf, "perf fp", "--call-graph", "fp"),
        Perf(args.perf, "perf dwarf 8K", "--call-graph", "dwarf,8192"),
        Perf(args.perf, "perf dwarf 64K", "-m", "4096", "--call-graph", "dwarf,65528"),
        Samply(args.samply, args.perf, "samply import"),
        Proftool(args.proftool, "proftool fp", "-g", "fp"),
        Proftool(args.proftool, "proftool dwarf", "-m", "4096", "-g", "dwarf"),
    ]
    return [tool for tool in every if re.search(args.tools, tool.name)]


def cell(stacks, judge, phase):
    """What became of the samples of a phase."""
    counts, inserted, most = collections.Counter(), 0, {}
    for (of, stack), count in stacks.items():
        if of != phase:
            continue
        verdict = judge.classify(stack)
        counts[verdict] += count
        if any(name.endswith(INSERTED) for name in stack):
            inserted += count
        if verdict != RIGHT:
            most[verdict] = max(most.get(verdict, (0, ())), (count, stack))
    return Cell(counts, inserted, most)


def short(stack):
    """A stack with equal neighbours told once."""
    told = []
    for name in stack:
        if told and told[-1][0] == name:
            told[-1][1] += 1
        else:
            told.append([name, 1])
    frames = [name if count == 1 else f"{name}*{count}" for name, count in told]
    return ";".join(frames if len(frames) < 20 else [*frames[:8], "…", *frames[-8:]])


class Table:
    """Cells by row and column, in the order of their coming."""

    def __init__(self):
        self.rows, self.columns, self.cells = [], [], {}

    def add(self, row, column, value):
        if row not in self.rows:
            self.rows.append(row)
        if column not in self.columns:
            self.columns.append(column)
        self.cells[row, column] = value

    def text(self, row, column):
        value = self.cells.get((row, column))
        total = sum(value.counts.values()) if value else 0
        if not total:
            return "-"
        shares = [value.counts[RIGHT], value.counts[WRONG]]
        if column.startswith("proftool") and not column.endswith(" raw"):
            shares.append(value.inserted)
        few = "*" if total < FEW else ""
        return "/".join(f"{100 * share / total:.0f}" for share in shares) + few

    def print(self):
        width = max(len(row[2]) for row in self.rows) + 2
        group = None
        for row in self.rows:
            if row[:2] != group:
                group = row[:2]
                heads = "".join(f"{column:>{len(column) + 2}}" for column in self.columns)
                print(f"\n{' '.join(group):{width}}{heads}")
            cells = (f"{self.text(row, column):>{len(column) + 2}}" for column in self.columns)
            print(f"{row[2]:{width}}{''.join(cells)}")

    def print_sums(self):
        """The means of each column, in which each row counts alike; without those of inlined functions,
        which not every profiler has."""
        plain_rows = [row for row in self.rows if not row[2].endswith(INLINED_ROW)]
        print("\nmean of rows, percent    " + "".join(f"{name:>10}" for name in (*CLASSES, "inserted", "rows")))
        for column in self.columns:
            sums, rows = collections.Counter(), 0
            for row in plain_rows:
                value = self.cells.get((row, column))
                total = sum(value.counts.values()) if value else 0
                if total:
                    rows += 1
                    for name in CLASSES:
                        sums[name] += value.counts[name] / total
                    sums["inserted"] += value.inserted / total
            if rows:
                shares = "".join(f"{100 * sums[name] / rows:10.1f}" for name in (*CLASSES, "inserted"))
                print(f"{column:25}{shares}{rows:10}")

    def print_examples(self):
        for row in self.rows:
            for column in self.columns:
                value = self.cells.get((row, column))
                total = sum(value.counts.values()) if value else 0
                for verdict, (_, stack) in (value.examples if value else {}).items():
                    share = 100 * value.counts[verdict] / total
                    print(f"{' '.join(row)}, {column}: {verdict} {share:.0f} %: {short(stack)}")


def measure(table, program, label, tool, args, directory):
    """Records a program with a tool, and adds what its readings give."""
    told = phases(program)
    known = {name for phase in told.values() for name in phase.names()}
    recording = os.path.join(directory, "recording")
    chosen = [phase for phase in told.values() if re.search(args.phases, phase.name)]
    if not chosen:
        return
    tool.record(recording, [os.path.abspath(program), str(args.seconds), *(phase.name for phase in chosen)])
    for column in tool.readings():
        for with_inlined in (False, True) if args.inlined else (False,):
            shown = [phase for phase in chosen if phase.has_inlined() or not with_inlined]
            if not shown:
                continue
            try:
                stacks = tool.read(recording, [phase.name for phase in shown], column, with_inlined)
            except Failed as error:
                print(f"{column}: {error}", file=sys.stderr)
                continue
            for phase in shown:
                name = f"{phase.name} {phase.shows}" + (INLINED_ROW if with_inlined else "")
                judge = Judge(phase, with_inlined, known)
                table.add((*label, name), column, cell(stacks, judge, phase.name))
    os.remove(recording)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--proftool", default="proftool")
    parser.add_argument("--perf", default="perf")
    parser.add_argument("--samply", default="samply")
    parser.add_argument("--seconds", type=float, default=0.3, help="processor time of each phase")
    parser.add_argument("--builds", default="", metavar="REGEX", help="only these: `calls O2`, `traits` …")
    parser.add_argument("--tools", default="", metavar="REGEX", help="only these: `perf fp`, `proftool` …")
    parser.add_argument("--phases", default="", metavar="REGEX", help="only these: `p03`")
    parser.add_argument("--inlined", action="store_true", help="also with inlined functions")
    parser.add_argument("--examples", action="store_true", help="show stacks that are not right")
    parser.add_argument("--keep", metavar="DIR", help="where the programs are built, to be kept")
    args = parser.parse_args()

    unavailable, table = {}, Table()
    with tempfile.TemporaryDirectory() as directory:
        programs = args.keep or directory
        os.makedirs(programs, exist_ok=True)
        for what in BUILDS:
            if not re.search(args.builds, f"{what.program} {what.name}"):
                continue
            program, why = build(what, programs)
            if not program:
                print(f"left out: {why}", file=sys.stderr)
                continue
            for tool in tools(args):
                if tool.name in unavailable:
                    continue
                print(f"{what.program} {what.name}: {tool.name}", file=sys.stderr)
                try:
                    measure(table, program, (what.program, what.name), tool, args, directory)
                except Failed as error:
                    unavailable[tool.name] = str(error)
    if not table.rows:
        print("nothing could be compared", file=sys.stderr)
        sys.exit(2)
    table.print()
    table.print_sums()
    for name, why in unavailable.items():
        print(f"not available: {name}: {why}")
    if args.examples:
        print()
        table.print_examples()


main()
