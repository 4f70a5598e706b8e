#!/usr/bin/env python3
"""measure.py reading|recording|scanning|all RUNS CACHE PROFTOOL PART: times proftool beside its peers.

Called by ../bench.sh. The commands of one file take turns, so that a busy machine is busy for all
of them, and the medians of RUNS turns are compared. CPU is user and system time of the command
and all that it started; the peak is that of its largest process, and never below this program's own
15 MB or so, which a child is born with. Ratios are of CPU time, and of
elapsed time where they say so, against `proftool flat`: above 1, the peer costs more.
"""

import glob
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

LIMIT_SECONDS = 600


class Cost:
    """What one run took."""

    def __init__(self, cpu, elapsed, peak_mb):
        self.cpu, self.elapsed, self.peak_mb = cpu, elapsed, peak_mb


def run(command):
    """Runs a shell command in a session of its own; its Cost, or a word on why there is none."""
    start = time.monotonic()
    with open(os.devnull, "r+b") as null:
        child = subprocess.Popen(
            ["bash", "-o", "pipefail", "-c", command],
            stdin=null, stdout=null, stderr=null, start_new_session=True,
        )
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        elapsed = time.monotonic() - start
        if pid:
            break
        if elapsed > LIMIT_SECONDS:
            os.killpg(child.pid, 9)
            os.wait4(child.pid, 0)
            child.returncode = -9
            return f"stopped after {LIMIT_SECONDS} s"
        time.sleep(0.002)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        return f"failed ({child.returncode})"
    return Cost(usage.ru_utime + usage.ru_stime, elapsed, usage.ru_maxrss / 1024)


def progress(text):
    """Says what runs now, where a person sees it."""
    if sys.stderr.isatty():
        print(f"{text:<79}", end="\r", file=sys.stderr)


def medians(commands, runs):
    """For each name the median Cost of `runs` turns, or the word on why there is none."""
    taken = {name: [] for name in commands}
    failed = {}
    for turn in range(runs):
        for name, command in commands.items():
            if name in failed:
                continue
            progress(f"turn {turn + 1} of {runs}: {name}")
            cost = run(command)
            if isinstance(cost, str):
                failed[name] = cost
            else:
                taken[name].append(cost)
    progress("")

    def median(name):
        if name in failed:
            return failed[name]
        middle = lambda of: statistics.median(getattr(cost, of) for cost in taken[name])
        return Cost(middle("cpu"), middle("elapsed"), middle("peak_mb"))

    return {name: median(name) for name in commands}


def peer(name, cache):
    """Where a peer's program is; nothing, and a word, if it is not here."""
    path = shutil.which(name, path=os.path.join(cache, "bin")) or shutil.which(name)
    if path is None:
        print(f"bench: {name} is not here; it is left out", file=sys.stderr)
    return path


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


def ratio(cost, base):
    """How many times `base`; nothing where `base` is too small to be seen."""
    return f"{cost / base:.3g}" if base > 0 else ""


def losses(proftool, file):
    """Samples in a recording and samples lost, as text."""
    told = subprocess.run(
        [proftool, "flat", "--format", "json", "--limit", "1", file], capture_output=True, check=False
    )
    try:
        answer = json.loads(told.stdout)
    except ValueError:
        return "?", "?"
    lost = sum(caveat["count"] for caveat in answer["caveats"] if caveat["kind"] == "lost")
    return str(answer["samples"]), str(lost)


def recording(runs, cache, proftool, part):
    """A program alone, and under recorders: what sampling it costs."""
    perf = peer("perf", cache)
    print("| program | recorder | CPU s | elapsed s | CPU, × alone | samples | lost |")
    print("|---|---|---|---|---|---|---|")
    # Rounds that take some seconds each.
    for program, rounds in {"qjs": 300, "rg": 25, "rustc": 1}.items():
        if part not in program:
            continue
        once = shlex.quote(os.path.join(cache, "run", program)) + f" {rounds}"
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            commands = {"alone": once}
            files = {}
            for stacks, rates in {"fp": (997, 4999), "dwarf": (99, 997, 4999)}.items():
                for rate in rates:
                    recorders = {"proftool": f"{proftool} record -g {stacks} -F {rate}"}
                    if perf:
                        recorders["perf"] = f"{perf} record --call-graph {stacks} -F {rate}"
                    for recorder, command in recorders.items():
                        name = " ".join([recorder] + command.split()[1:])
                        files[name] = os.path.join(scratch, f"{recorder}.{stacks}.{rate}")
                        commands[name] = f"{command} -o {files[name]} -- {once}"
            costs = medians(commands, runs)
            alone = costs["alone"]
            for command, cost in costs.items():
                if isinstance(cost, str):
                    print(f"| {program} | {command} | {cost} | | | | |")
                    continue
                samples, lost = losses(proftool, files[command]) if command in files else ("", "")
                times = "" if isinstance(alone, str) else ratio(cost.cpu, alone.cpu)
                print(
                    f"| {program} | {command} | {cost.cpu:.2f} | {cost.elapsed:.2f} "
                    f"| {times} | {samples} | {lost} |"
                )
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
