"""A program alone, and under recorders: what sampling it costs.

copies is proftool with --keep-copies. The slow-down is elapsed time over that of the program alone. The CPU time of the program is that
of the command that is recorded and all that it started; what the recorder took is the rest. The
kernel's work of taking samples is in the program's time.
"""

import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile

from costs import peer, progress, run

# Programs, and rounds of each that take some seconds: QuickJS in one thread, ripgrep in several, the
# Rust compiler, one that only starts others, a pool of eight threads, make -j4 with gcc.
PROGRAMS = {"qjs": 300, "rg": 3, "rustc": 1, "forks": 3000, "pool": 400, "build": 3}
STACKS = ("fp", "dwarf")
RATES = (99, 997, 4999)


class Turn:
    """One run: seconds that passed, CPU seconds of the program and of who recorded it."""

    def __init__(self, elapsed, program, recorder):
        self.elapsed, self.program, self.recorder = elapsed, program, recorder


def turn(command, times):
    """Runs a command that leaves the CPU times of the program in the file `times`; its Turn, or a
    word on why there is none."""
    cost = run(command)
    if isinstance(cost, str):
        return cost
    # The second line of bash's times: user and system time of all children.
    with open(times, encoding="ascii") as file:
        children = file.read().splitlines()[1].split()
    seconds = 0.0
    for part in children:
        minutes, rest = part.rstrip("s").split("m")
        seconds += 60 * int(minutes) + float(rest)
    return Turn(cost.elapsed, seconds, max(cost.cpu - seconds, 0.0))


def told(proftool, file):
    """Samples in a recording and samples lost."""
    answer = subprocess.run(
        [proftool, "info", "--format", "json", file], capture_output=True, check=False
    )
    try:
        answer = json.loads(answer.stdout)
    except ValueError:
        return 0, 0
    caveats = answer.get("caveats", [])
    return answer["samples"], sum(c["count"] for c in caveats if c["kind"] == "lost")


def recorders(proftool, perf, samply, stacks, rate):
    """The commands that record, without output and program."""
    own = f"{shlex.quote(proftool)} record -q -g {stacks} -F {rate}"
    yield "proftool", own
    if stacks == "dwarf":
        yield "copies", f"{own} --keep-copies"
    if perf:
        yield "perf", f"{perf} record -q --call-graph {stacks} -F {rate}"
    if samply and stacks == "dwarf":
        yield "samply", f"{samply} record --save-only -r {rate}"


def recording(runs, cache, proftool, part):
    """Prints a table of all programs, recorders, kinds of stacks and rates."""
    perf, samply = peer("perf", cache), peer("samply", cache)
    print("| program | stacks, Hz | recorder | slow-down | CPU, × alone | recorder CPU s | samples | bytes a sample | lost | flat CPU s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for program, rounds in PROGRAMS.items():
        if part not in program:
            continue
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            times = os.path.join(scratch, "times")
            path = shlex.quote(os.path.join(cache, "run", program))
            # In a shell of its own, which leaves the CPU times of its children.
            once = "bash -c " + shlex.quote(f"{path} {rounds}; times >{shlex.quote(times)}")
            commands = {("", "", "alone"): once}
            for stacks in STACKS:
                for rate in RATES:
                    for name, command in recorders(proftool, perf, samply, stacks, rate):
                        file = os.path.join(scratch, f"{name}.{stacks}.{rate}")
                        commands[stacks, rate, name] = f"{command} -o {file} -- {once}"
            rows(commands, runs, times, scratch, program, proftool)


def rows(commands, runs, times, scratch, program, proftool):
    """Runs all commands in turns and prints a line for each."""
    taken = {key: [] for key in commands}
    failed, losses = {}, {}
    for number in range(runs):
        for key, command in commands.items():
            if key in failed:
                continue
            progress(f"turn {number + 1} of {runs}: {program} {key}")
            result = turn(command, times)
            if isinstance(result, str):
                failed[key] = result
                continue
            taken[key].append(result)
            file = os.path.join(scratch, f"{key[2]}.{key[0]}.{key[1]}")
            if os.path.exists(file):
                samples, lost = told(proftool, file)
                flat = [run(f"{shlex.quote(proftool)} flat {file}") for _ in range(2)]
                flat = flat[-1].cpu if samples else 0
                losses.setdefault(key, []).append((samples, os.path.getsize(file), lost, flat))
    progress("")

    def median(key, of):
        return statistics.median(of(turn) for turn in taken[key])

    alone = ("", "", "alone")
    for key in commands:
        stacks, rate, name = key
        head = f"| {program} | {stacks} {rate} | {name} "
        if key in failed or alone in failed:
            print(f"{head}| {failed.get(key) or failed[alone]} | | | | | | |")
            continue
        slow = median(key, lambda t: t.elapsed) / median(alone, lambda t: t.elapsed)
        cpu = median(key, lambda t: t.program + t.recorder) / median(alone, lambda t: t.program)
        own = median(key, lambda t: t.recorder)
        row = f"{head}| {slow:.3f} | {cpu:.3f} | {own:.2f} "
        if key not in losses:
            print(f"{row}| | | | |")
            continue
        samples, size, lost, flat = map(statistics.median, zip(*losses[key]))
        if not samples:
            print(f"{row}| {size / 1e6:.1f} MB | | | |")
            continue
        print(f"{row}| {samples:.0f} | {size / samples:.0f} | {max(l[2] for l in losses[key])} | {flat:.2f} |")
        sys.stdout.flush()
