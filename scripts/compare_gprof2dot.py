#!/usr/bin/env python3
"""Holds our estimate of time inside cycles, in the mode that is to be gprof2dot's, against gprof2dot.

usage: scripts/compare_gprof2dot.py [GRAPHS [SEED]]    (500 graphs with seed 1)

Random call graphs have exact counts of calls and exact self times. gprof2dot is called as a module
(pip install gprof2dot), by the steps that its own reader of gprof's text takes, but for the cycles,
which it finds itself: nothing is rounded on the way. Ours are those of the example `estimate`, which
cargo build --example estimate makes; ESTIMATE names another one.

Compared are the totals of every function, every arc and every cycle, to a billionth. Where all calls
were counted at least once and every cycle is entered, the two rules of ours are one, and that is
compared too. gprof2dot gives up (an assertion fails) on some graphs that have arcs without calls; these
are counted and replaced.
"""

import collections
import os
import random
import sys

from compare_gprof import ROOT, run

try:
    import gprof2dot
except ImportError:
    sys.exit("gprof2dot is not installed")

ESTIMATE = os.environ.get("ESTIMATE", os.path.join(ROOT, "target/debug/examples/estimate"))
EXACT = 1e-9


class Graph:
    """Functions are numbers; `arcs` has the calls of each pair."""

    def __init__(self, rng):
        self.rng = rng
        self.self_times = [rng.choice([0, 1, rng.randint(0, 100), rng.randint(0, 10**7)]) for _ in range(rng.randint(3, 30))]
        self.arcs = {}

    def call(self, a, b):
        self.arcs[a, b] = self.rng.choice([1, 1, 2, 3, 10, self.rng.randint(1, 10**6)])

    def ring(self, members):
        for a, b in zip(members, members[1:] + members[:1]):
            self.call(a, b)

    def text(self):
        lines = [f"graph {len(self.self_times)}"]
        lines += [f"self {f} {time}" for f, time in enumerate(self.self_times)]
        lines += [f"calls {a} {b} {calls}" for (a, b), calls in self.arcs.items()]
        return "\n".join(lines) + "\n"


def random_graph(rng):
    """Calls forward, in two of three graphs with cycles planted into them."""
    graph = Graph(rng)
    functions = range(len(graph.self_times))
    for _ in range(rng.randint(0, 3 * len(functions))):
        a, b = sorted(rng.sample(functions, 2))
        graph.call(a, b)
    if rng.random() < 0.4:
        f = rng.choice(functions)
        graph.call(f, f)
    if rng.random() < 2 / 3:
        some = rng.sample(functions, rng.randint(2, min(9, len(functions))))
        graph.ring(some)
        kind = rng.choice(["ring", "overlapping", "entered", "dense", "uncalled"])
        if kind == "overlapping":
            others = [f for f in functions if f not in some]
            graph.ring([rng.choice(some)] + rng.sample(others, rng.randint(0, min(4, len(others)))))
        elif kind == "entered":
            for member in rng.sample(some, rng.randint(2, len(some))):
                outside = [f for f in functions if f not in some]
                if outside:
                    graph.call(rng.choice(outside), member)
        elif kind == "dense":
            for _ in range(rng.randint(1, 3 * len(some))):
                graph.call(rng.choice(some), rng.choice(some))
        elif kind == "uncalled":
            into = [(a, b) for a, b in graph.arcs if b in some and a not in some]
            for arc in into:
                del graph.arcs[arc]
    if rng.random() < 0.1:
        never = rng.choice([0.2, 0.8])
        for arc in list(graph.arcs):
            if rng.random() < never:
                graph.arcs[arc] = 0
    return graph


def theirs(graph):
    """gprof2dot's totals, in the shape of ours."""
    profile = gprof2dot.Profile()
    for f, time in enumerate(graph.self_times):
        function = gprof2dot.Function(f, f"f{f}")
        function[gprof2dot.TIME] = float(time)
        profile.add_function(function)
    for (a, b), calls in graph.arcs.items():
        call = gprof2dot.Call(b)
        call[gprof2dot.CALLS] = calls
        profile.functions[a].add_call(call)
    profile.validate()
    profile.find_cycles()
    profile.aggregate(gprof2dot.TIME)
    profile.ratio(gprof2dot.TIME_RATIO, gprof2dot.TIME)
    profile.call_ratios(gprof2dot.CALLS)
    profile.integrate(gprof2dot.TOTAL_TIME, gprof2dot.TIME)
    totals = {}
    for function in profile.functions.values():
        totals["function", str(function.id)] = function[gprof2dot.TOTAL_TIME]
        for call in function.calls.values():
            # An arc of a cycle that carries nothing has no total there.
            time = call[gprof2dot.TOTAL_TIME] if gprof2dot.TOTAL_TIME in call else 0.0
            totals["arc", f"{function.id} {call.callee_id}"] = time
    for cycle in profile.cycles:
        members = sorted(function.id for function in cycle.functions)
        totals["cycle", ",".join(map(str, members))] = cycle[gprof2dot.TOTAL_TIME]
    return totals


def ours(graphs):
    """For each graph our totals by rule."""
    answers = []
    for line in run(ESTIMATE, stdin="".join(graph.text() for graph in graphs)).splitlines():
        if line == "graph":
            answers.append({"sound": {}, "gprof2dot": {}})
        else:
            rule, kind, rest = line.split(" ", 2)
            name, total = rest.rsplit(" ", 1)
            answers[-1][rule][kind, name] = float(total)
    return answers


def differences(one, other):
    """What two sets of totals differ in, in words."""
    wrong = [f"{' '.join(key)} is in one alone" for key in one.keys() ^ other.keys()]
    for key in one.keys() & other.keys():
        if abs(one[key] - other[key]) > EXACT * max(abs(one[key]), abs(other[key])):
            wrong.append(f"{' '.join(key)}: {one[key]!r}, not {other[key]!r}")
    return sorted(wrong)


def kinds(graph, totals):
    """What kinds of recursion there are in a graph."""
    found = set()
    if any(a == b for a, b in graph.arcs):
        found.add("self recursion")
    for kind, name in totals:
        if kind == "cycle":
            members = set(map(int, name.split(",")))
            inside = [arc for arc in graph.arcs if members >= set(arc) and arc[0] != arc[1]]
            entered = {b for a, b in graph.arcs if b in members and a not in members}
            found.add("cycle")
            if len(inside) > len(members):
                found.add("overlapping cycles")
            if len(entered) > 1:
                found.add("cycle entered at several members")
            if not entered:
                found.add("cycle nobody calls")
    if 0 in graph.arcs.values():
        found.add("arc without calls")
    return found


def main():
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    rng = random.Random(seed)
    graphs, expected, gave_up = [], [], 0
    while len(graphs) < number:
        graph = random_graph(rng)
        try:
            expected.append(theirs(graph))
        except AssertionError:
            gave_up += 1
            continue
        graphs.append(graph)
    different = alike = figures = 0
    seen = collections.Counter()
    answers = ours(graphs)
    if len(answers) != number:
        sys.exit(f"{len(answers)} answers for {number} graphs")
    for place, (graph, totals, answer) in enumerate(zip(graphs, expected, answers)):
        figures += len(totals)
        found = kinds(graph, totals)
        seen.update(found)
        wrong = differences(totals, answer["gprof2dot"])
        if not found & {"arc without calls", "cycle nobody calls"}:
            alike += 1
            wrong += [f"the other rule: {what}" for what in differences(totals, answer["sound"])]
        if wrong:
            different += 1
            print(f"graph {place}: {'; '.join(wrong[:5])}\n{graph.text()}", end="")
    print(f"{number} graphs, {figures} totals: {different} different")
    print(", ".join(f"{kind} in {times}" for kind, times in sorted(seen.items())))
    print(f"by the other rule alike in {alike}; gprof2dot gave up on {gave_up} more")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
