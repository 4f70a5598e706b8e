#!/usr/bin/env python3
"""measure.py reading|recording|scanning|all RUNS CACHE PROFTOOL PART: times proftool beside its peers.

Called by ../bench.sh. The commands of one file take turns, so that a busy machine is busy for all
of them, and the medians of RUNS turns are compared. CPU is user and system time of the command
and all that it started; the peak is that of its largest process, and never below this program's own
15 MB or so, which a child is born with. Ratios are of CPU time, and of
elapsed time where they say so, against `proftool flat`: above 1, the peer costs more.
"""

import glob
import os
import shlex
import subprocess
import sys
import tempfile

from costs import medians, peer, progress, ratio
from recording import recording


def reading(runs, cache, proftool, part):
    """Opening a recording and saying where the time went."""
    perf, samply = peer("perf", cache), peer("samply", cache)
    inferno = peer("inferno-collapse-perf", cache)
    folder = os.path.join(cache, "data")
    print("| file | command | CPU s | elapsed s | peak MB | CPU, × flat | elapsed, × flat |")
    print("|---|---|---|---|---|---|---|")
    # Small files first, so that something is seen soon.
    names = [name for name in os.listdir(folder) if name.endswith(".data") and part in name]
    for name in sorted(names, key=lambda name: os.path.getsize(os.path.join(folder, name))):
        path = os.path.join(folder, name)
        file = shlex.quote(path)
        with tempfile.TemporaryDirectory() as scratch:
            commands = {
                "bare loop": f"{cache}/bin/bare_loop {file}",
                "proftool flat": f"{proftool} flat {file}",
                "proftool flat --no-inline": f"{proftool} flat --no-inline {file}",
            }
            if perf:
                report = f"{perf} report --stdio -i {file}"
                commands["perf report -g caller --no-inline"] = f"{report} -g caller --no-inline"
                commands["perf report"] = report
            if perf and inferno:
                commands["perf script, inferno"] = f"{perf} script -i {file} | {inferno}"
            if samply:
                saved = os.path.join(scratch, "profile.json.gz")
                commands["samply import"] = f"{samply} import {file} --save-only -o {saved}"
            costs = medians(commands, runs)
        flat = costs["proftool flat"]
        size = os.path.getsize(path) / 1e6
        for command, cost in costs.items():
            head = f"| {name}, {size:.0f} MB | {command} "
            if isinstance(cost, str):
                print(f"{head}| {cost} | | | | |")
                continue
            row = f"{head}| {cost.cpu:.2f} | {cost.elapsed:.2f} | {cost.peak_mb:.0f} "
            if isinstance(flat, str):
                print(f"{row}| | |")
            else:
                cpu, elapsed = ratio(cost.cpu, flat.cpu), ratio(cost.elapsed, flat.elapsed)
                print(f"{row}| {cpu} | {elapsed} |")
        sys.stdout.flush()


# What scanning is measured on: some megabytes of code, some ten, and over a hundred in the file.
CODE = [
    "/usr/lib/x86_64-linux-gnu/libpython3*.so.1.0",
    "/usr/bin/gdb",
    "/usr/lib/jvm/*/lib/server/libjvm.so",
    "~/.rustup/toolchains/stable-*/lib/librustc_driver-*.so",
]
# objdump disassembles no more than this of a file: it takes a minute for 60 MB.
OBJDUMP_BYTES = 8_000_000


def text_section(path):
    """Address and size of .text, by objdump."""
    told = subprocess.run(["objdump", "-h", "-j", ".text", path], capture_output=True, text=True, check=True)
    for line in told.stdout.splitlines():
        words = line.split()
        if len(words) > 3 and words[1] == ".text":
            return int(words[3], 16), int(words[2], 16)
    raise SystemExit(f"bench: {path} has no .text")


def scanning(runs, proftool, part):
    """Finding calls in machine code: megabytes a second of CPU time, and of time on two processors."""
    speed = os.environ["SCAN_SPEED"]
    extra = os.environ.get("PROFTOOL_CODE", "").split(":")
    files = [found for one in CODE + extra for found in sorted(glob.glob(os.path.expanduser(one)))[:1]]
    print("| file | what | code MB | seconds | MB/s | × objdump | peak MB |")
    print("|---|---|---|---|---|---|---|")
    for path in files:
        if part not in path or not os.path.isfile(path):
            continue
        file = shlex.quote(path)
        start, size = text_section(path)
        size = min(size, OBJDUMP_BYTES)
        objdump = f"objdump -d --no-show-raw-insn -j .text --stop-address={start + size} {file}"
        stripped = tempfile.NamedTemporaryFile()
        subprocess.run(["strip", "-o", stripped.name, path], check=True, stderr=subprocess.DEVNULL)
        commands = {"objdump": objdump, "callgraph": f"{proftool} callgraph {file} --format json"}
        commands["callgraph, stripped"] = f"{proftool} callgraph {stripped.name} --format json"
        costs = medians(commands, runs)
        inner = {"iced-x86": [], "scan, 1 worker": [], "scan, 2 workers": []}
        for turn in range(runs):
            progress(f"turn {turn + 1} of {runs}: scan")
            for workers in (1, 2):
                told = subprocess.run([speed, path, str(workers)], capture_output=True, text=True, check=True)
                code, bare, scan = (float(word) for word in told.stdout.split()[:3])
                inner[f"scan, {workers} worker{'s' * (workers - 1)}"].append(scan)
                inner["iced-x86"].append(bare)
        progress("")
        rows = [(name, code, statistics.median(taken), "") for name, taken in inner.items()]
        for name, cost in costs.items():
            if isinstance(cost, str):
                print(f"| {os.path.basename(path)} | {name} | {cost} | | | | |")
                continue
            told = f"{cost.peak_mb:.0f}"
            megabytes = size / 1e6 if name == "objdump" else code
            rows.append((name, megabytes, cost.cpu if name == "objdump" else cost.elapsed, told))
        base = next((megabytes / seconds for name, megabytes, seconds, _ in rows if name == "objdump"), None)
        for name, megabytes, seconds, told in rows:
            times = ratio(megabytes / seconds, base) if base else ""
            print(
                f"| {os.path.basename(path)} | {name} | {megabytes:.1f} | {seconds:.3f} "
                f"| {megabytes / seconds:.0f} | {times} | {told} |"
            )
        sys.stdout.flush()


def main():
    what, runs, cache, proftool, part = sys.argv[1:]
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, median of {runs}\n")
    if what in ("reading", "all"):
        reading(int(runs), cache, shlex.quote(proftool), part)
    if what == "all":
        print()
    if what in ("recording", "all"):
        recording(int(runs), cache, proftool, part)
    if what == "all":
        print()
    if what in ("scanning", "all"):
        scanning(int(runs), shlex.quote(proftool), part)


main()
