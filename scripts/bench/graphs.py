"""Large call graphs: what `cycles` and `graph` take for a million arcs that are one cycle."""

import os
import random
import sys
import tempfile

from costs import medians

# Most CPU seconds that are wanted, by shape.
SHAPES = {"ring of 100k": 1, "random, 100k arcs": None, "random, 1M arcs": 2}


def write(path, shape):
    """Writes folded stacks of a shape; the random ones have five arcs to a function."""
    with open(path, "w", encoding="ascii") as file:
        if shape.startswith("ring"):
            size = 100_000
            file.writelines(f"f{at};f{(at + 1) % size} 1\n" for at in range(size))
            return
        arcs = 1_000_000 if "1M" in shape else 100_000
        chance = random.Random(1)
        functions = arcs // 5
        for _ in range(arcs):
            pair = chance.randrange(functions), chance.randrange(functions)
            file.write("f%d;f%d 1\n" % pair)


def graphs(runs, proftool, part):
    """Prints a table of shapes and views."""
    print("| graph | command | CPU s | peak MB | wanted |")
    print("|---|---|---|---|---|")
    for shape, most in SHAPES.items():
        if part not in shape:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, "graph.folded")
            write(path, shape)
            costs = medians({view: f"{proftool} {view} {path}" for view in ("graph", "cycles")}, runs)
        for view, cost in costs.items():
            if isinstance(cost, str):
                print(f"| {shape} | {view} | {cost} | | |")
                continue
            wanted = f"at most {most} s" if most and view == "cycles" else ""
            print(f"| {shape} | {view} | {cost.cpu:.2f} | {cost.peak_mb:.0f} | {wanted} |")
        sys.stdout.flush()
