"""Exports: what each format costs, next to the tools that make theirs of the same recording."""

import os
import shlex
import sys
import tempfile

from costs import medians, peer, ratio

FLAT = "proftool flat"
FORMATS = ["folded", "pprof", "callgrind", "speedscope", "firefox", "otlp", "parquet", "perf-script", "svg", "html"]
# What makes of perf's text: folded stacks and a graph.
CONVERTERS = [("inferno-collapse-perf", ""), ("gprof2dot", " -f perf")]


def commands_for(file, cache, proftool, scratch):
    """The commands by name."""
    out = os.path.join(scratch, "out")
    commands = {FLAT: f"{proftool} flat {file}"}
    for name in FORMATS:
        commands[f"export --to {name}"] = f"{proftool} export --to {name} {file} -o {out}"
    perf, samply = peer("perf", cache), peer("samply", cache)
    if samply:
        saved = os.path.join(scratch, "profile.json.gz")
        commands["samply import, with symbols"] = (
            f"{samply} import {file} --save-only --unstable-presymbolicate -o {saved}"
        )
    for name, options in CONVERTERS if perf else []:
        path = peer(name, cache)
        if path:
            commands[f"perf script, {name}"] = f"{perf} script -i {file} --no-inline | {path}{options} >{out}"
    return commands


def exports(runs, cache, proftool, part):
    """Prints a table of recordings with frame pointers and of formats."""
    folder = os.path.join(cache, "data")
    print("| file | command | CPU s | elapsed s | peak MB | CPU, × flat |")
    print("|---|---|---|---|---|---|")
    kinds = ("100k", "1m")
    names = [name for name in os.listdir(folder) if name.split(".")[-2] in kinds and part in name]
    for name in sorted(names, key=lambda name: os.path.getsize(os.path.join(folder, name))):
        file = shlex.quote(os.path.join(folder, name))
        with tempfile.TemporaryDirectory() as scratch:
            costs = medians(commands_for(file, cache, proftool, scratch), runs)
        flat = costs[FLAT]
        for command, cost in costs.items():
            if isinstance(cost, str):
                print(f"| {name} | {command} | {cost} | | | |")
                continue
            times = "" if isinstance(flat, str) else ratio(cost.cpu, flat.cpu)
            print(f"| {name} | {command} | {cost.cpu:.2f} | {cost.elapsed:.2f} | {cost.peak_mb:.0f} | {times} |")
        sys.stdout.flush()
