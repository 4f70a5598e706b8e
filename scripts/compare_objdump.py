#!/usr/bin/env python3
"""compare_objdump.py [--proftool P] [--objdump O] [--stripped-copy] [--examples N] BINARY…: the call
graph against objdump.

Finds the calls of each file anew, from `objdump -d` and `readelf` alone, and compares them with
`proftool callgraph`: functions by address, the number of sites of every arc (caller, callee,
kind), and the indirect calls and jumps of each function. Prints for each file a table and examples
of each difference; exit 1 if anything is missed or invented, 2 if a file could not be compared,
0 if all is equal.

What objdump knows: calls and jumps to a constant address, through a stub of a linkage table, and
through a pointer that a relocation binds and that nobody can write to. A callee that proftool found behind a
register is beyond it. Such an arc has no address in our answer, so the books of its caller are
kept: what it has in excess of objdump's arcs counts as `beyond` only as far as objdump shows
indirect calls (or jumps) in the same function that proftool no longer counts as unknown. Arcs of
kind `pointer` are no calls that an instruction shows; they are counted, and not compared. What is
called by a part of a function (`f.cold`, `f.part.0`) may be told of the part or of the whole.

--stripped-copy compares each file once more without its symbols, and tells how many of the calls
that are known with symbols proftool still finds.
"""

import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

from objdump.arcs import Oracle  # noqa: E402
from objdump.elf import MACHINES, Elf  # noqa: E402

KINDS = ("call", "tail", "import")
Row = collections.namedtuple("Row", "what theirs ours missed invented beyond")


class Answer:
    """What `proftool callgraph` says, in the oracle's terms."""

    def __init__(self, proftool, path, oracle):
        command = [proftool, "callgraph", path, "--format", "json", "--names", "mangled", "--limit", "0"]
        told = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if told.returncode != 0:
            raise ValueError(told.stderr.decode("utf-8", "replace").partition("\n")[0])
        answer = json.loads(told.stdout)
        caveats = {caveat["kind"]: caveat["count"] for caveat in answer["caveats"]}
        self.astray = caveats.get("astray-calls", 0)
        self.inside = caveats.get("inside-calls", 0)
        ends, self.starts = [], set()
        self.unknown = {"call": collections.Counter(), "jump": collections.Counter()}
        self.names = {}
        for function in answer["functions"]:
            at = function["address"]
            imported = function["imported"]
            ends.append(oracle.import_by_name(function["linkage_name"]) if imported else at)
            if not imported:
                self.starts.add(at)
                self.names[at] = function["linkage_name"]
                self.unknown["call"][oracle.whole(at)] += function["indirect_calls"]
                self.unknown["jump"][oracle.whole(at)] += function["indirect_jumps"]
        self.sites, self.others = collections.Counter(), collections.Counter()
        for arc in answer["arcs"]:
            key = oracle.key(ends[arc["from"]], ends[arc["to"]], arc["kind"])
            if arc["kind"] not in KINDS:
                self.others[arc["kind"]] += arc["sites"]
            elif key is not None:
                self.sites[key] += arc["sites"]


class Comparison:
    """The differences between the two, and their examples."""

    def __init__(self, oracle, answer):
        self.oracle, self.answer = oracle, answer
        self.rows, self.examples = [], []
        oracle.fold(answer.starts)
        known = oracle.known
        self.rows.append(Row("functions", len(known), len(answer.starts),
                             len(known - answer.starts), len(answer.starts - known), 0))
        for at in sorted(known - answer.starts):
            self.example("functions", "missed", f"{at:x} {oracle.functions.name(at)}")
        for at in sorted(answer.starts - known):
            self.example("functions", "invented", f"{at:x} {answer.names[at]}")
        beyond = self.arcs()
        self.unknown(beyond)
        self.astray()

    def example(self, *parts):
        self.examples.append(parts)

    def arcs(self):
        """Compares the arcs; gives what is beyond objdump, by caller and verb."""
        oracle, answer = self.oracle, self.answer
        resolved = {
            verb: oracle.unknown[verb] - answer.unknown[verb] for verb in ("call", "jump")
        }
        beyond = {"call": collections.Counter(), "jump": collections.Counter()}
        for kind in KINDS:
            ours = {key: sites for key, sites in answer.sites.items() if key[2] == kind}
            theirs = {key: sites for key, sites in oracle.sites.items() if key[2] == kind}
            missed = invented = more = 0
            for key in sorted(ours.keys() | theirs.keys(), key=lambda key: (key[0], str(key[1]))):
                caller, callee, _ = key
                less = theirs.get(key, 0) - ours.get(key, 0)
                arc = f"{caller:x} {oracle.functions.name(caller)} -> {oracle.callee_name(callee)}"
                if less > 0:
                    missed += less
                    where = "; ".join(f"{at:x}: {text}" for at, text in oracle.examples[key])
                    self.example(kind, "missed", f"{less} of {theirs[key]}: {arc} at {where}")
                extra = max(-less, 0)
                for verb in {"call": ["call"], "tail": ["jump"], "import": ["call", "jump"]}[kind]:
                    by_flow = min(extra, resolved[verb][caller])
                    resolved[verb][caller] -= by_flow
                    beyond[verb][caller] += by_flow
                    more += by_flow
                    extra -= by_flow
                if extra:
                    invented += extra
                    indirect = oracle.unknown["call"][caller] + oracle.unknown["jump"][caller]
                    self.example(kind, "invented", f"{extra} of {ours[key]}: {arc} ({indirect} indirect there)")
            self.rows.append(Row(kind, sum(theirs.values()), sum(ours.values()), missed, invented, more))
        return beyond

    def unknown(self, beyond):
        """Compares what is not known, apart from what was found beyond objdump."""
        for verb in ("call", "jump"):
            theirs, ours = self.oracle.unknown[verb], self.answer.unknown[verb]
            what = f"indirect {verb}"
            missed, invented = theirs - ours - beyond[verb], ours - theirs
            for name, counts in (("missed", missed), ("invented", invented)):
                for at in sorted(counts):
                    where = "; ".join(f"{a:x}: {t}" for a, t in self.oracle.unknown_examples[verb][at])
                    self.example(what, name, f"{counts[at]}: in {at:x} {self.oracle.functions.name(at)}, such as {where}")
            self.rows.append(Row(what, theirs.total(), ours.total(), missed.total(), invented.total(), 0))

    def astray(self):
        """Compares the numbers of calls into the middle of functions, and of those to none."""
        for what, theirs, ours in (("inside", self.oracle.inside, self.answer.inside),
                                   ("astray", len(self.oracle.astray), self.answer.astray)):
            self.rows.append(Row(what, theirs, ours, max(theirs - ours, 0), max(ours - theirs, 0), 0))
        theirs, ours = len(self.oracle.astray), self.answer.astray
        for at, text in self.oracle.astray if theirs != ours else []:
            self.example("astray", "expected", f"{at:x}: {text}")

    def differs(self):
        return any(row.missed or row.invented for row in self.rows)

    def show(self, shown):
        print(f"  {'':14}{'objdump':>10}{'proftool':>10}{'missed':>9}{'invented':>9}{'beyond':>9}")
        for row in self.rows:
            print(f"  {row.what:14}{row.theirs:10}{row.ours:10}{row.missed:9}{row.invented:9}{row.beyond:9}")
        others = "".join(f", {n} sites of kind {kind}" for kind, n in sorted(self.answer.others.items()))
        print(f"  {self.oracle.outside} calls and jumps outside of functions{others}")
        counts = collections.Counter()
        for what, how, text in self.examples:
            counts[what, how] += 1
            if counts[what, how] <= shown:
                print(f"  {what} {how}: {text}")


def compare(args, path, title):
    """Compares one file; gives 0, 1 or 2, and what was compared."""
    try:
        oracle = Oracle(path, args.objdump)
        machine = MACHINES.get(oracle.elf.machine, oracle.elf.machine)
        symbols = "with symbols" if oracle.elf.symtab else "without symbols"
        print(f"{title}: {machine}, {symbols}, {oracle.instructions} calls and jumps", flush=True)
        comparison = Comparison(oracle, Answer(args.proftool, path, oracle))
    except (OSError, ValueError, KeyError) as error:
        print(f"{title}: could not be compared: {error}")
        return 2, None
    comparison.show(args.examples)
    return int(comparison.differs()), comparison


def forget_build_id(path):
    """Makes sure that no debug file is found; without moving anything, as removing a section would."""
    for section in Elf(path).sections:
        if section.name == ".note.gnu.build-id":
            with open(path, "r+b") as file:
                file.seek(section.offset + section.size - 4)
                file.write(b"none")


def compare_stripped(args, path, whole):
    """Compares a copy without symbols."""
    with tempfile.TemporaryDirectory() as directory:
        copy = os.path.join(directory, os.path.basename(path))
        shutil.copyfile(path, copy)
        strip = (args.objdump or whole.oracle.objdump).replace("objdump", "strip")
        if subprocess.run([strip, "-s", copy], stderr=subprocess.DEVNULL, check=False).returncode:
            print(f"{path}, stripped: could not be compared: {strip} failed")
            return 2
        forget_build_id(copy)
        result, stripped = compare(args, copy, f"{path}, stripped")
        if stripped:
            known = {key: n for key, n in whole.oracle.sites.items() if key[2] == "call"}
            kept = sum(min(n, stripped.answer.sites[key]) for key, n in known.items())
            print(f"  of {sum(known.values())} direct calls with symbols, {kept} are found without")
        return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--proftool", default="proftool")
    parser.add_argument("--objdump", help="instead of that for the file's machine")
    parser.add_argument("--stripped-copy", action="store_true", help="compare also without symbols")
    parser.add_argument("--examples", type=int, default=5, metavar="N", help="of each difference")
    parser.add_argument("binary", nargs="+")
    args = parser.parse_args()
    results = []
    for path in args.binary:
        result, whole = compare(args, path, path)
        results.append(result)
        if args.stripped_copy and whole and whole.oracle.elf.symtab:
            results.append(compare_stripped(args, path, whole))
    print(f"{results.count(0)} equal, {results.count(1)} different, {results.count(2)} not compared")
    sys.exit(1 if 1 in results else 2 if 2 in results else 0)


main()
