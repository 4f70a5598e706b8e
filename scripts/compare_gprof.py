#!/usr/bin/env python3
"""Holds proftool's figures of random call graphs against those of GNU gprof.

usage: scripts/compare_gprof.py [GRAPHS [SEED]]        (500 graphs with seed 1)

One program of many functions is compiled, and for each graph a gmon.out is made for it: random arcs
between its functions, with recursion and cycles, and random ticks in random buckets. That takes
milliseconds, where a program for each graph would take a second; what matters to gprof is in the
gmon.out alone. Besides, one program in fifty is made at random, compiled with -pg and run, so that
the arcs are those that mcount counts.

Compared are, byte for byte, the texts of gprof -b -q, -q -z and -p with those of proftool --classic;
and, as numbers, every function, arc, count and cycle of gprof's listing with those of
proftool graph --format json, but for the self time of a cycle that nobody calls: there gprof prints 0.
Times are compared where buckets are whole units of two bytes: of others gprof shares out a little more
or less than it has, and proftool graph all of it.
PROFTOOL names another program than target/debug/proftool.
"""

import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROFTOOL = os.environ.get("PROFTOOL", os.path.join(ROOT, "target/debug/proftool"))
FUNCTIONS = 60
FLAGS = ["-O0", "-g", "-pg", "-w"]


def run(*args, cwd=None, stdin=""):
    done = subprocess.run(args, cwd=cwd, capture_output=True, input=stdin.encode())
    if done.returncode:
        sys.exit(f"{' '.join(args)}: {done.stderr.decode()}")
    return done.stdout.decode()


def compile_program(folder, name, source):
    path = os.path.join(folder, name)
    with open(path + ".c", "w") as file:
        file.write(source)
    run("gcc", *FLAGS, "-o", path, path + ".c")
    return path


def many_functions(rng):
    """Functions of different sizes, some local, some with a name that gprof ranks last."""
    lines = ["volatile int x;"]
    for i in range(FUNCTIONS):
        local = "static __attribute__((used)) " if i % 7 == 3 else ""
        name = f"_g{i}" if i % 9 == 4 else f"f{i}"
        lines.append(f"{local}void {name}(void) {{ {'x++; ' * rng.randint(1, 9)}}}")
    return "\n".join(lines + ["int main(void) { return 0; }"])


def random_program(rng):
    """Functions that call each other, and through pointers, until a budget is spent."""
    number = rng.randint(4, 12)
    lines = ["volatile int x; int budget = %d;" % rng.randint(50, 400)]
    lines += [f"void f{i}(int d);" for i in range(number)]
    lines.append("void (*pointers[])(int) = {%s};" % ", ".join(f"f{rng.randrange(number)}" for _ in range(4)))
    for i in range(number):
        body = []
        for _ in range(rng.randint(0, 3)):
            callee = f"f{rng.randrange(number)}"
            if rng.random() < 0.2:
                callee = f"pointers[{rng.randrange(4)}]"
            body.append(f"for (int i = 0; i < {rng.randint(1, 3)}; i++) {callee}(d - 1);")
        lines.append(f"void f{i}(int d) {{ x++; if (d <= 0 || budget-- <= 0) return; {' '.join(body)} }}")
    calls = " ".join(f"f{rng.randrange(number)}({rng.randint(1, 9)});" for _ in range(rng.randint(1, 4)))
    return "\n".join(lines + [f"int main(void) {{ {calls} return 0; }}"])


def symbols(program):
    rows = [line.split() for line in run("nm", "-n", program).splitlines()]
    rows = [(int(row[0], 16), row[2]) for row in rows if len(row) == 3 and row[1] in "tT"]
    return [(at, name) for at, name in rows if re.fullmatch(r"_?[fg]\d+|main", name)]


def histogram(rng, low, high):
    """A histogram with ticks here and there; buckets of 2 to 8 bytes, so some lie in two functions."""
    size = rng.choice([2, 4, 4, 8])
    ticks = [0] * ((high - low + size - 1) // size)
    # Sometimes a number of buckets that does not divide the code, as a program that ran has it.
    high = low + len(ticks) * size + rng.choice([0, 0, 2, 6])
    for _ in range(rng.randint(0, 60)):
        ticks[rng.randrange(len(ticks))] += rng.choice([1, 1, 2, 3, rng.randint(1, 300)])
    head = struct.pack("<BQQII", 0, low, high, len(ticks), 100) + b"seconds".ljust(15, b"\0") + b"s"
    return head + struct.pack(f"<{len(ticks)}H", *ticks)


def random_gmon(rng, functions):
    """Arcs among some of the functions: sparse or dense, forward only or with ways back."""
    low, high = functions[0][0], functions[-1][0] + 16
    chosen = rng.sample(functions, rng.randint(2, len(functions)))
    back = rng.choice([0.0, 0.05, 0.3, 1.0])
    arcs = {}
    for _ in range(rng.randint(1, 3 * len(chosen))):
        a, b = rng.choice(chosen), rng.choice(chosen)
        if chosen.index(b) < chosen.index(a) and rng.random() >= back:
            a, b = b, a
        count = rng.choice([1, 1, 2, 3, 10, rng.randint(1, 10**6), 0])
        arcs[(a[0] + rng.randint(1, 3), b[0])] = count
    records = list(arcs.items())
    rng.shuffle(records)
    body = b"".join(struct.pack("<BQQI", 1, a, b, n) for (a, b), n in records)
    return b"gmon" + struct.pack("<I", 1) + bytes(12) + histogram(rng, low, high) + body


def with_ticks(rng, gmon, functions):
    """A gmon.out of a run, with ticks instead of those that a run of no time has."""
    at = 20
    while gmon[at] == 0:
        number = struct.unpack_from("<I", gmon, at + 17)[0]
        at += 41 + 2 * number
    low, high = functions[0][0], functions[-1][0] + 16
    return gmon[:20] + histogram(rng, low, high) + gmon[at:]


NAME = re.compile(r"^(<cycle \d+ as a whole>|\S+)(?: <cycle (\d+)>)? [\[(]\d+[\])]$")


def parse(text):
    """The functions, cycles and callee lines of gprof's listing."""
    functions, cycles, arcs = {}, {}, {}
    listing = text.split("\f")[0].split("called     name\n")[1]
    for entry in listing.split("-----------------------------------------------\n"):
        primary = None
        for line in entry.splitlines():
            if "<spontaneous>" in line:
                continue
            is_primary = line.startswith("[")
            figures, name = line[:45], line[45:].strip()
            name, cycle = NAME.match(name).groups()
            words = (figures[6:] if is_primary else figures).split()
            if is_primary:
                words = words[1:]
                primary = (name, cycle)
            times = [float(words.pop(0)) for _ in range(2)] if words and "." in words[0] else None
            calls = re.match(r"(\d+)(?:([+/])(\d+))?", words[0]) if words else None
            calls = (int(calls[1]), calls[2], int(calls[3] or 0)) if calls else (0, None, 0)
            if is_primary and name.startswith("<cycle"):
                cycles[name.split()[1]] = {"times": times, "calls": calls[0], "inside": calls[2], "members": set()}
            elif is_primary:
                functions[name] = {"times": times, "calls": calls[0], "recursive": calls[2], "cycle": cycle}
            elif primary and primary[0].startswith("<cycle"):
                cycles[primary[0].split()[1]]["members"].add(name)
            elif primary:
                arcs[(primary[0], name)] = {"times": times, "calls": calls[0]}
    return functions, cycles, arcs


def has_whole_buckets(gmon):
    """Whether the buckets of a file's histogram are whole units of two bytes."""
    low, high, number = struct.unpack_from("<QQI", gmon, 21)
    return (high - low) // 2 % number == 0


def compare_numbers(text, document, with_times):
    """What differs between gprof's listing and the document, in words."""
    functions, cycles, arcs = parse(text)
    rows = document["functions"]
    ours = {row["name"]: row for row in rows}
    wrong = []

    def check(what, theirs, row, keys):
        if not with_times:
            return
        for value, key in zip(theirs, keys):
            # Two decimals of seconds; the last may be rounded either way.
            if abs(value - (row[key] or 0) / 1e9) > 0.00501:
                wrong.append(f"{what}: {key} {value}, not {(row[key] or 0) / 1e9}")

    for name, theirs in functions.items():
        row = ours.get(name)
        if row is None:
            wrong.append(f"{name} is missing")
            continue
        check(name, theirs["times"], row, ["self", "children"])
        if (theirs["calls"], theirs["recursive"]) != (row["calls"], row["recursive_calls"]):
            wrong.append(f"{name}: calls {theirs} {row}")
        if (theirs["cycle"] is None) != (row["cycle"] is None):
            wrong.append(f"{name}: cycle")
    found = {(rows[arc["from"]]["name"], rows[arc["to"]]["name"]): arc for arc in document["arcs"]}
    for pair, theirs in arcs.items():
        arc = found.get(pair)
        if arc is None:
            wrong.append(f"{pair} is missing")
        elif theirs["calls"] != arc["calls"]:
            wrong.append(f"{pair}: {theirs['calls']} calls, not {arc['calls']}")
        elif theirs["times"] is None:
            if arc["self"] is not None:
                wrong.append(f"{pair}: it is within a cycle")
        else:
            check(pair, theirs["times"], arc, ["self", "children"])
    members = {frozenset(rows[m]["name"] for m in cycle["members"]): cycle for cycle in document["cycles"]}
    for theirs in cycles.values():
        cycle = members.get(frozenset(theirs["members"]))
        if cycle is None:
            wrong.append(f"no cycle {sorted(theirs['members'])}")
            continue
        if theirs["calls"] > 0:
            check("cycle", theirs["times"], cycle, ["self", "children"])
        else:
            # gprof prints 0 as the self time of a cycle that nobody calls, whatever its members have.
            check("cycle", theirs["times"][1:], cycle, ["children"])
        if (theirs["calls"], theirs["inside"]) != (cycle["calls"], cycle["internal_calls"]):
            wrong.append(f"cycle {sorted(theirs['members'])}: calls")
    return wrong


def compare(program, gmon):
    """What differs for one gmon.out, in words."""
    wrong = []
    # Arcs without calls (as gprof -s -c leaves them) form cycles in gprof, and here when asked to.
    in_code = "on" if os.path.basename(program) == "many" else "off"
    texts = [
        (["-q"], ["graph"]),
        (["-q", "-z"], ["graph", "-z"]),
        (["-p"], ["flat"]),
    ]
    base = ["--binary", program, "--classic"]
    for options, view in texts:
        theirs = run("gprof", "-b", *options, program, gmon)
        if run(PROFTOOL, view[0], gmon, *base, *view[1:]) != theirs:
            wrong.append(f"gprof -b {' '.join(options)}: another text")
        if options == ["-q"]:
            args = ["--binary", program, "--static", in_code, "--format", "json"]
            with open(gmon, "rb") as file:
                with_times = has_whole_buckets(file.read(64))
            wrong += compare_numbers(theirs, json.loads(run(PROFTOOL, "graph", gmon, *args)), with_times)
    return wrong


def main():
    graphs = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    rng = random.Random(seed)
    different = programs = cycles = 0
    with tempfile.TemporaryDirectory() as folder:
        many = compile_program(folder, "many", many_functions(rng))
        functions = symbols(many)
        for number in range(graphs):
            program, gmon = many, random_gmon(rng, functions)
            if number % 50 == 49:
                programs += 1
                program = compile_program(folder, f"p{number}", random_program(rng))
                run(program, cwd=folder)
                with open(os.path.join(folder, "gmon.out"), "rb") as file:
                    gmon = with_ticks(rng, file.read(), symbols(program))
            path = os.path.join(folder, "random.gmon")
            with open(path, "wb") as file:
                file.write(gmon)
            cycles += " as a whole>" in run("gprof", "-b", "-q", program, path)
            wrong = compare(program, path)
            if wrong:
                different += 1
                kept = os.path.join(tempfile.gettempdir(), f"gprof-{seed}-{number}")
                run("cp", path, kept + ".gmon")
                run("cp", program, kept + ".prog")
                print(f"graph {number} ({kept}.gmon): {'; '.join(wrong[:5])}")
    print(f"{graphs} graphs, {programs} of them of programs that ran, {cycles} with cycles: {different} different")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
