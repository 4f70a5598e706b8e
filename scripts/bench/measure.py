#!/usr/bin/env python3
"""measure.py reading|recording|scanning|graphs|exports|all RUNS CACHE PROFTOOL PART: compares the cost of proftool and its peers.

Called by ../bench.sh. The commands of one file take turns, so that a busy machine is busy for all
of them, and the medians of RUNS turns are compared. CPU is user and system time of the command
and all that it started; the peak is that of its largest process, and never below this program's own
15 MB or so, which a child is born with. Ratios are of CPU time, and of
elapsed time where they say so, against `proftool flat`: above 1, the peer costs more.
"""

import glob
import os
import shlex
import statistics
import subprocess
import sys
import tempfile

from costs import medians, peer, progress, ratio
from exports import exports
from graphs import graphs
from recording import recording


FLAT = "proftool flat"
BARE, BARE_SYMBOLS = "bare loop", "bare loop, distinct stacks, symbols"
PERF_TOTALS = "perf report --children -g none --no-inline"
PERF_CALLERS = "perf report -g caller --no-inline"
PERF_SCRIPT = "perf script --no-inline"
PERF_REPORT = "perf report"
SAMPLY = "samply import, with symbols"

# How many times the CPU of `proftool flat` a peer is to take: by kind of recording, and by peer.
# Of the bare reader it is the reverse, and the most that is wanted.
TARGETS = {
    "100k": {SAMPLY: 5, PERF_TOTALS: 8},
    "1m": {SAMPLY: 8, PERF_CALLERS: 30, BARE_SYMBOLS: 1.5},
    "dwarf": {SAMPLY: 2, PERF_SCRIPT: 4},
    "small": {PERF_REPORT: 2.5},
}


def peers_of(kind, cache, file, scratch):
    """The commands that answer the question of `flat` for a recording, by name."""
    perf, samply = peer("perf", cache), peer("samply", cache)
    report = f"{perf} report --stdio -i {file}"
    script = f"{perf} script -i {file}"
    if perf and kind == "dwarf":
        yield PERF_SCRIPT, f"{script} --no-inline"
    elif perf and kind == "small":
        yield PERF_REPORT, report
    elif perf:
        yield PERF_TOTALS, f"{report} --children -g none --no-inline"
        yield PERF_CALLERS, f"{report} -g caller --no-inline"
    if perf and kind == "100k":
        # With the functions that perf's script resolves; a million samples take minutes.
        for name, command in (("inferno-collapse-perf", ""), ("gprof2dot", " -f perf")):
            path = peer(name, cache)
            if path:
                yield f"perf script, {name}", f"{script} --no-inline | {path}{command}"
    if samply:
        saved = os.path.join(scratch, "profile.json.gz")
        yield SAMPLY, f"{samply} import {file} --save-only --unstable-presymbolicate -o {saved}"


def reading(runs, cache, proftool, part):
    """Opening a recording and saying where the time went."""
    bare = os.environ["BARE_LOOP"]
    folder = os.path.join(cache, "data")
    print("| file | command | CPU s | elapsed s | peak MB | CPU, × flat | elapsed, × flat |")
    print("|---|---|---|---|---|---|---|")
    # Small files first, so that something is seen soon.
    names = [name for name in os.listdir(folder) if name.endswith(".data") and part in name]
    rows = []
    for name in sorted(names, key=lambda name: os.path.getsize(os.path.join(folder, name))):
        path = os.path.join(folder, name)
        file = shlex.quote(path)
        kind = name.split(".")[-2]
        with tempfile.TemporaryDirectory() as scratch:
            commands = {
                BARE: f"{bare} {file}",
                FLAT: f"{proftool} flat {file}",
                "proftool flat --no-inline": f"{proftool} flat --no-inline {file}",
            }
            if kind != "dwarf":
                commands[BARE_SYMBOLS] = f"{bare} {file} symbols"
            commands.update(peers_of(kind, cache, file, scratch))
            costs = medians(commands, runs)
        flat = costs[FLAT]
        size = os.path.getsize(path) / 1e6
        for command, cost in costs.items():
            head = f"| {name}, {size:.0f} MB | {command} "
            if isinstance(cost, str):
                print(f"{head}| {cost} | | | | |")
                continue
            row = f"{head}| {cost.cpu:.2f} | {cost.elapsed:.2f} | {cost.peak_mb:.0f} "
            if isinstance(flat, str):
                print(f"{row}| | |")
                continue
            cpu, elapsed = ratio(cost.cpu, flat.cpu), ratio(cost.elapsed, flat.elapsed)
            print(f"{row}| {cpu} | {elapsed} |")
            target = TARGETS.get(kind, {}).get(command)
            if command == BARE_SYMBOLS and target:
                rows.append((name, "flat, over " + command, ratio(flat.cpu, cost.cpu), f"at most {target}"))
            elif target:
                rows.append((name, command + ", over flat", cpu, f"at least {target}"))
        sys.stdout.flush()
    print("\n| file | CPU of | ratio | wanted |")
    print("|---|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")


# What scanning is measured on: some megabytes of code, some ten, and over a hundred in the file.
CODE = [
    "/usr/lib/x86_64-linux-gnu/libpython3*.so.1.0",
    "/usr/bin/gdb",
    "/usr/lib/jvm/*/lib/server/libjvm.so",
    "~/.rustup/toolchains/stable-*/lib/librustc_driver-*.so",
]


def scanning(runs, proftool, part):
    """Finding the calls in machine code, in CPU seconds next to those of objdump on the same file, and of
    iced-x86 decoding the same functions and nothing else."""
    speed = os.environ["SCAN_SPEED"]
    extra = os.environ.get("PROFTOOL_CODE", "").split(":")
    files = [found for one in CODE + extra for found in sorted(glob.glob(os.path.expanduser(one)))[:1]]
    print("| file | what | CPU s | elapsed s | code MB/s | × iced-x86 | peak MB |")
    print("|---|---|---|---|---|---|---|")
    for path in files:
        if part not in path or not os.path.isfile(path):
            continue
        file, name = shlex.quote(path), os.path.basename(path)
        with tempfile.TemporaryDirectory() as scratch:
            stripped = os.path.join(scratch, "stripped")
            subprocess.run(["strip", "-o", stripped, path], check=True, stderr=subprocess.DEVNULL)
            costs = medians(
                {
                    "callgraph": f"{proftool} callgraph {file} --format json",
                    "callgraph, stripped": f"{proftool} callgraph {stripped} --format json",
                },
                runs,
            )
        # Half a minute for 60 MB of code, so one turn has to do.
        objdump = f"objdump -d --no-show-raw-insn {file}"
        costs.update(medians({"objdump -d, one turn": objdump}, 1))
        bare, scan, code = [], [], 0
        for turn in range(runs):
            progress(f"turn {turn + 1} of {runs}: scan")
            told = subprocess.run([speed, path], capture_output=True, text=True, check=True)
            code, *seconds = (float(word) for word in told.stdout.split()[:3])
            bare.append(seconds[0])
            scan.append(seconds[1])
        progress("")
        base = statistics.median(bare)
        rows = [("iced-x86", base, "", ""), ("scan", statistics.median(scan), "", "")]
        for what, cost in costs.items():
            if isinstance(cost, str):
                print(f"| {name} | {what} | {cost} | | | | |")
            else:
                rows.append((what, cost.cpu, f"{cost.elapsed:.2f}", f"{cost.peak_mb:.0f}"))
        for what, cpu, elapsed, peak in rows:
            print(
                f"| {name} | {what} | {cpu:.3f} | {elapsed} | {code / cpu:.0f} "
                f"| {ratio(cpu, base)} | {peak} |"
            )
        sys.stdout.flush()


def main():
    what, runs, cache, proftool, part = sys.argv[1:]
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, median of {runs}\n")
    parts = {
        "reading": lambda: reading(int(runs), cache, shlex.quote(proftool), part),
        "recording": lambda: recording(int(runs), cache, proftool, part),
        "scanning": lambda: scanning(int(runs), shlex.quote(proftool), part),
        "graphs": lambda: graphs(int(runs), shlex.quote(proftool), part),
        "exports": lambda: exports(int(runs), cache, shlex.quote(proftool), part),
    }
    for name, measure in parts.items():
        if what in (name, "all"):
            measure()
            print()


main()
