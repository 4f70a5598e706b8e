#!/usr/bin/env python3
"""compare_cycles.py [--proftool BIN] [--verbose] RECORDING...

Every arc of every cycle, and every function that calls itself, against perf, objdump and LLVM.

`proftool cycles` names the arcs. For each of them this looks for two frames that follow each other on
a stack of `perf script --no-inline`, and asks the machine code (objdump) what the instruction before
the return address calls, or for an address at which the one function is inlined into the other
(llvm-symbolizer). Says how each arc is confirmed, and lists those that are not; exit 1 if there are.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys

from cycles.code import Code, LINK_MARK
from objdump.elf import lines

FRAME = re.compile(r"\s+([0-9a-f]+) (.*) \((.*)\)$")
HOWS = ("direct", "inlined", "inferred", "tail", "indirect", "generated", "static")


class Recording:
    """The distinct frames and pairs of frames of a recording, as perf has them."""

    def __init__(self, path):
        self.codes, self.pairs, self.leaves = {}, collections.Counter(), collections.Counter()
        chain = []
        command = ["perf", "script", "-i", path, "-F", "pid,ip,sym,symoff,dso", "--no-inline"]
        for line in lines(command):
            found = FRAME.fullmatch(line)
            if found:
                chain.append((found[3], int(found[1], 16), found[2]))
            elif not line.strip():
                self.add(chain)
                chain = []
        self.add(chain)
        self.shift = self.find_shift()

    def add(self, chain):
        for depth, (inner, outer) in enumerate(zip(chain, chain[1:])):
            self.pairs[outer, inner, depth == 0] += 1
        if chain:
            self.leaves[chain[0]] += 1

    def code(self, path):
        if path not in self.codes:
            try:
                self.codes[path] = Code(path)
            except (OSError, ValueError):
                self.codes[path] = None
        return self.codes[path]

    def find_shift(self):
        """What perf takes off return addresses: nothing from chains of frame pointers, 1 where it unwinds."""
        votes = collections.Counter()
        for (path, offset, _), _, _ in self.pairs:
            code = self.code(path)
            at = code and code.address(offset)
            if at:
                for shift in (0, 1):
                    before = code.raw(at + shift - 5, 5)
                    votes[shift] += before[:1] == b"\xe8"
            if sum(votes.values()) > 2000:
                break
        return max((0, 1), key=lambda shift: votes[shift])


def component(name):
    """The last part of a qualified name, without arguments."""
    before = None
    name = re.sub(r"^~", "", name)
    while name != before:
        before, name = name, re.sub(r"<[^<>]*>|\([^()]*\)", "", name)
    name = name.split("[")[0].strip()
    name = re.sub(r"(::|^)\{\{?closure(#\d+)?\}?\}$|(::|^)\{closure#\d+\}$", r"\1{closure}", name)
    return re.sub(r"::h[0-9a-f]{16}$", "", name).split("::")[-1].split(" ")[-1]


class Functions:
    """The functions that proftool says are in cycles, to be found by what others say of a frame."""

    def __init__(self, said):
        self.all, self.by_start, self.by_line, self.by_name = [], {}, collections.defaultdict(list), {}
        self.by_label = {}
        for figure in [f for c in said["cycles"] for f in c["figures"]] + said["recursive"]:
            key = (figure["label"], figure["module"])
            if key in self.by_label:
                continue
            self.by_label[key] = index = len(self.all)
            self.all.append(figure)
            if figure["address"] is not None:
                self.by_start[figure["module"], figure["address"]] = index
            if figure["decl_line"]:
                place = (os.path.basename(figure["decl_file"]), figure["decl_line"])
                self.by_line[place].append(index)
            self.by_name[LINK_MARK.sub("", figure["linkage_name"] or figure["name"])] = index
            self.by_name.setdefault(figure["name"], index)

    def inlined(self, frame):
        """The function of an inlined frame of DWARF."""
        found = self.by_name.get(frame.name)
        if found is not None and frame.name.startswith(("_Z", "_R")):
            return {found}
        candidates = self.by_line.get((os.path.basename(frame.file), frame.line), [])
        named = {i for i in candidates if component(self.all[i]["name"]) == component(frame.name)}
        return named or set(candidates) or ({found} if found is not None else set())

    def physical(self, code, start):
        module = os.path.basename(code.path)
        found = self.by_start.get((module, start))
        if found is not None:
            return {found}
        stems = code.stem(start)
        return {
            i for (m, a), i in self.by_start.items()
            if m == module and stems & code.stem(a)
        } if stems else set()


def classify(recording, functions, wanted):
    """Of each wanted arc how it is confirmed: a counter of ways."""
    hows = collections.defaultdict(collections.Counter)
    asked = collections.defaultdict(set)
    frames = {}
    for (outer, inner, is_leaf) in recording.pairs:
        for frame, is_exact in ((outer, False), (inner, is_leaf)):
            code = recording.code(frame[0])
            at = code and code.address(frame[1])
            if at is not None:
                look = at if is_exact else at + recording.shift - 1
                asked[frame[0]].add(look)
    inline = {path: recording.code(path).inline(ats) for path, ats in asked.items()}

    def at(frame, is_exact):
        """The functions of a frame, innermost first, as sets of indices; and where it is."""
        key = (frame, is_exact)
        if key not in frames:
            frames[key] = look_up(frame, is_exact)
        return frames[key]

    def look_up(frame, is_exact):
        code = recording.code(frame[0])
        address = code and code.address(frame[1])
        if address is None:
            name = re.sub(r"\+0x[0-9a-f]+$", "", frame[2])
            name = re.sub(r"^(JS|LazyCompile|Function|Script|Eval|RegExp):[*~^+]", r"\1:", name)
            found = functions.by_name.get(name)
            if found is None:
                ends = f"+{frame[1]:#x}"
                found = next((i for n, i in functions.by_name.items() if n.endswith(ends)), None)
            return [{found} if found is not None else set()], None, None
        look = address if is_exact else address + recording.shift - 1
        start = code.function(look)
        chain = [functions.inlined(frame) for frame in inline[frame[0]].get(look, [])[:-1]]
        chain.append(functions.physical(code, start) if start is not None else set())
        return chain, code, look

    def note(froms, tos, how):
        for a in froms:
            for b in tos:
                if (a, b) in wanted:
                    hows[a, b][how] += 1

    for (outer, inner, is_leaf), count in recording.pairs.items():
        out, code, look = at(outer, False)
        inn, inner_code, inner_look = at(inner, is_leaf)
        for chain in (out, inn):
            for i, callee in enumerate(chain):
                # A split-off part that was put back is a frame that proftool leaves out.
                for caller in chain[i + 1:i + 3]:
                    note(caller, callee, "inlined")
        if not any((a, b) in wanted for a in out[0] for b in inn[-1]):
            if code is not None:
                through(recording, functions, code, look, out[0], inn[-1], inner_code, inner_look, note)
            continue
        if code is None or inner_code is None:
            note(out[0], inn[-1], "generated")
            continue
        how = called(recording, code, look, inner_code, inner_look)
        if how == "indirect":
            taken = inner_code.is_taken(inner_code.function(inner_look) or 0)
            how = f"indirect, {taken}" if taken else "INDIRECT, BUT NO POINTER"
            if is_leaf:
                how += " (leaf)"
        note(out[0], inn[-1], how)
    return hows


def called(recording, code, look, inner_code, inner_look):
    """How the call before a return address leads to the function of another frame."""
    site = code.site(code.functions.function(look), look + 1)
    if site is None:
        return "NO CALL"
    if site[0] == "indirect":
        return "indirect"
    target = reached(recording, code, site)
    to = (inner_code, inner_code.function(inner_look))
    if to in target:
        return "direct"
    seen, open_ = set(target), list(target)
    while open_:
        at_code, start = open_.pop()
        for jump in at_code.jumps(start) if start is not None else ():
            if jump[0] == "indirect":
                return "tail, indirect"
            for place in reached(recording, at_code, jump):
                if place == to:
                    return "tail"
                if place not in seen and len(seen) < 200:
                    seen.add(place)
                    open_.append(place)
    return "CALLS ANOTHER"


def reached(recording, code, site):
    """The functions that a direct call or one by name leads to."""
    if site[0] == "direct":
        return {(code, code.function(to)) for to in site[1]}
    found = set()
    if site[0] == "import":
        for other in recording.codes.values():
            if other:
                found |= {(other, other.function(start)) for start in other.exports.get(site[1], ())}
    return found


def through(recording, functions, code, look, out, inn, inner_code, inner_look, note):
    """Arcs to and from functions that proftool puts between two frames."""
    site = code.site(code.functions.function(look), look + 1)
    if site is None or site[0] == "indirect":
        return
    for at_code, start in reached(recording, code, site):
        if start is not None:
            note(out, functions.physical(at_code, start), "inferred")


def static(recording, functions, a, b):
    """Whether the code of a function, or an inlined copy of it, calls or jumps to another."""
    target, module = functions.all[b]["address"], functions.all[b]["module"]
    if target is None:
        return None
    for code in filter(None, recording.codes.values()):
        if os.path.basename(code.path) != functions.all[a]["module"]:
            continue
        caller = functions.all[a]["address"]
        if caller is not None:
            calls, jumps = code.ways(caller)
            for site in [*calls.values(), *jumps]:
                for other, start in reached(recording, code, site):
                    if start == target and os.path.basename(other.path) == module:
                        return "static"
        if functions.all[a]["module"] != module:
            continue
        sites = [site for start in code.parts(target) for site in code.sites_of(start)]
        chains = code.inline(sites)
        for site in sites:
            found = [functions.inlined(frame) for frame in chains[site][:1]]
            start = code.function(site)
            if len(chains[site]) < 2 and start is not None:
                found = [functions.physical(code, start)]
            if found and a in found[0]:
                return "static"
    return None


def inlined(recording, functions, a, b):
    """Whether one function is inlined into another anywhere in the code of the cycles' members."""
    for code in filter(None, recording.codes.values()):
        if os.path.basename(code.path) != functions.all[a]["module"]:
            continue
        name = os.path.basename(code.path)
        for module, start in list(functions.by_start):
            if module != name:
                continue
            for part in code.parts(start):
                code.ways(part)
                for chain in code.inline(code.instructions[part]).values():
                    found = [functions.inlined(frame) for frame in chain[:-1]]
                    found.append(functions.physical(code, start))
                    if any(b in found[i] and a in found[i + 1] for i in range(len(found) - 1)):
                        return "inlined, not sampled"
    return None


def jumps_through_pointer(recording, functions, a, b):
    """Whether a function jumps through a pointer, and one leads to the other."""
    for code in filter(None, recording.codes.values()):
        start, to = functions.all[a]["address"], functions.all[b]["address"]
        if os.path.basename(code.path) != functions.all[a]["module"] or start is None or to is None:
            continue
        jumps = [jump for part in code.parts(start) for jump in code.jumps(part)]
        if any(jump[0] == "indirect" for jump in jumps) and code.is_taken(to):
            return "tail, indirect"
    return None


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--proftool", default="target/release/proftool")
    arguments.add_argument("--verbose", action="store_true", help="list every arc")
    arguments.add_argument("recordings", nargs="+")
    options = arguments.parse_args()
    bad = False
    for path in options.recordings:
        command = [options.proftool, "cycles", "--format", "json", path]
        said = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        functions = Functions(said)
        bad |= compare(path, said, functions, options.verbose)
    sys.exit(bad)


def compare(path, said, functions, verbose):
    wanted, gaps = {}, 0
    for number, cycle in enumerate(said["cycles"], 1):
        modules = {f["label"]: f["module"] for f in cycle["figures"]}
        for arc in cycle["arcs"]:
            ends = [functions.by_label[arc[e], modules[arc[e]]] for e in ("from_label", "to_label")]
            across_gaps = arc.get("across_gaps", 0)
            if across_gaps and across_gaps == arc["weight"]:
                gaps += 1
                continue
            wanted[tuple(ends)] = (f"cycle {number}", arc["weight"], arc["inferred"])
    for figure in said["recursive"]:
        if figure.get("only_across_gaps"):
            gaps += 1
            continue
        index = functions.by_label[figure["label"], figure["module"]]
        wanted[index, index] = ("self", figure["total"], 0)
    recording = Recording(path)
    hows = classify(recording, functions, wanted) if wanted else {}
    counts, unconfirmed = collections.Counter(), []
    for (a, b), (what, weight, inferred) in wanted.items():
        ways = hows.get((a, b), collections.Counter())
        best = next(
            (how for want in HOWS for how in ways if how.split(",")[0] == want and how != "inferred"), None
        )
        if best is None and (inferred or "inferred" in ways):
            best = static(recording, functions, a, b) and "inferred"
            best = best or jumps_through_pointer(recording, functions, a, b)
        best = best or static(recording, functions, a, b) or inlined(recording, functions, a, b)
        kind = "self" if what == "self" else "arc"
        counts[kind, best or "UNCONFIRMED"] += 1
        names = [functions.all[i]["label"] for i in (a, b)]
        line = f"   {what}: {names[0][-100:]} -> {names[1][-100:]} weight {weight} inferred {inferred}: {dict(ways)}"
        if best is None:
            unconfirmed.append(line)
        elif verbose:
            print(f"   {best}{line}")
    arcs = sum(n for (kind, _), n in counts.items() if kind == "arc")
    print(f"{os.path.basename(path)}: {len(said['cycles'])} cycles, {arcs} arcs, {len(said['recursive'])} self-recursive")
    print(f"  shown as no call, frames missing: {gaps}") if gaps else None
    for (kind, how), number in sorted(counts.items()):
        print(f"  {kind} {how}: {number}")
    print(*unconfirmed, sep="\n", end="\n" if unconfirmed else "")
    return bool(unconfirmed)


if __name__ == "__main__":
    main()
