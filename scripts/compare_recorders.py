#!/usr/bin/env python3
"""compare_recorders.py [--proftool BIN] [--perf BIN] [--runs N] [--sigmas S] [PART]: our recorder against perf's.

Both record the same programs in turns, with the same event (cpu-clock), rate and stacks, and
`proftool flat` reads both recordings. What is compared, for each program, way to record, stacks and rate:

  rate       samples a second of the program's processor time, as the kernel accounts it
  functions  self and total share of each function that has more than 1 % on either side
  records    COMM, MMAP2 (of code), FORK and EXIT of what happened while it was recorded
  perf       reads our file without a word on stderr
  lost       records that the kernel had no room for in our recording

A rate differs when Student's t for the two means, as standard deviations of a normal distribution,
is above S (4). A share differs when that is so and the difference is also above S of its binomial
standard errors. Records differ when no number of them was seen on both
sides. Whole processors see everybody, so there only what is of the program's own process is compared;
so do perf's records of a control group.

PART is a regular expression for "PROGRAM WAY STACKS HERTZ", such as 'qjs command' or 'pid dwarf'. The programs are in
${PROFTOOL_BENCH:-~/.cache/proftool-bench}; bench/workloads.sh makes them. Needs root for all but
commands, processes and threads. Exit 0 if nothing differs, 1 if something does, 2 if it could not be compared.
"""

import argparse
import collections
import contextlib
import json
import math
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

# Programs and their rounds: about a second of processor time each, and whether it is one process,
# which can be told from others on whole processors.
PROGRAMS = {"qjs": 150, "rg": 1, "pool": 200, "build": 1, "forks": 600}
ALONE = ("qjs", "pool")
# The ways that see everybody.
SHARED = ("all", "cpu")
# The ways to record, and which programs each is tried with.
WAYS = {
    "command": tuple(PROGRAMS),
    "pid": tuple(PROGRAMS),
    "tid": ("qjs",),
    "all": ALONE,
    "cpu": ("qjs",),
    "cgroup": ("pool", "build"),
}
STACKS = ("fp", "dwarf")
RATES = (997, 4999)
RECORDERS = ("proftool", "perf")
KINDS = ("COMM", "MMAP2", "FORK", "EXIT")
# Shares below this are not compared.
LEAST_SHARE = 0.01
# Two runs of one program never have the same rate by more than this part: the edges of the window.
LEAST_SPREAD = 0.001
# Of perf, for copies of stacks: its usual 512 KiB overflow.
PERF_BUFFER = {"fp": "512K", "dwarf": "16M"}

# Time, kind and process: "COMM[ exec]: NAME:PID/TID", "MMAP2 PID/TID: …", "FORK(PID:TID):…", "LOST …".
# Records of time 0 are of before.
RECORD = re.compile(rb"\s(\d+\.\d+): PERF_RECORD_(\w+)(?: exec)?(?:(?:: .*:|[ (])(-?\d+)[/:])?")
CODE = re.compile(rb"\]: [r-][w-]x[sp] ")

Turn = collections.namedtuple("Turn", "rate samples own total records lost")


class Failed(Exception):
    """Why something could not be recorded or read."""


class Cell:
    """One program, one way, one kind of stacks, one rate."""

    def __init__(self, program, way, stacks, rate):
        self.program, self.way, self.stacks, self.rate = program, way, stacks, rate

    def __str__(self):
        return f"{self.program} {self.way} {self.stacks} {self.rate}"

    def recorder(self, args, which, file, target):
        """The words that record into a file."""
        target = [] if target is None else target
        if which == "proftool":
            words = [args.proftool, "record", "-q", "-e", "cpu-clock", "-F", str(self.rate)]
            return [*words, "-g", self.stacks, "-o", file, *target]
        if target[:1] == ["--cgroup"]:
            target = ["-G", target[1], "-a"]
        words = [args.perf, "record", "-q", "-e", "cpu-clock", "-F", str(self.rate), "-m", PERF_BUFFER[self.stacks]]
        # Its search for build ids, and its cache of files, may fail and are of no use here. Its listener
        # for BPF programs is opened on the target and not inherited, and so keeps the kernel from
        # handing contexts from parent to child: other threads get the ticks than without it.
        return [*words, "-B", "-N", "--no-bpf-event", "--call-graph", self.stacks, "-o", file, *target]


def finish(process, which):
    """Waits for a recorder; its complaint is an exception."""
    _, said = process.communicate()
    # When what it records ends first, perf stops its command, and ends as that did.
    fine = (0, -signal.SIGTERM) if which == "perf" else (0,)
    if process.returncode not in fine:
        lines = said.decode("utf-8", "replace").strip().splitlines()
        raise Failed(f"{which}: {lines[0] if lines else process.returncode}")


def record_command(args, cell, which, file, words):
    """Records a command; seconds of processor time, and no process. A shell tells what its child took."""
    script = 'TIMEFORMAT="%U %S"; { time "$@" >/dev/null 2>&1; } 2>&"$TOLD"'
    reader, writer = os.pipe()
    command = cell.recorder(args, which, file, None)
    command += ["--", "bash", "-c", script, "bash", *words]
    env = dict(os.environ, TOLD=str(writer))
    with open(reader, encoding="ascii") as told:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, pass_fds=(writer,), env=env
        )
        os.close(writer)
        finish(process, which)
        return sum(map(float, told.read().split())), None


def processor_time(pid):
    """Seconds of processor time of a process that runs (clock_getcpuclockid)."""
    return time.clock_gettime(~pid << 3 | 2)


def is_asleep(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "S"


def record_running(args, cell, which, file, words):
    """Records a program that waits at a gate; seconds of processor time, and the process.

    The command that bounds the recording opens the gate, and ends when nobody holds the program's
    standard output any more.
    """
    gate, opener = os.pipe()
    ended, holder = os.pipe()
    pinned = ["taskset", "-c", "0"] if cell.way == "cpu" else []
    program = subprocess.Popen(
        [*pinned, "sh", "-c", 'read -r go; exec "$@" 2>/dev/null', "sh", *words],
        stdin=gate, stdout=holder, stderr=subprocess.DEVNULL,
    )
    os.close(gate)
    os.close(holder)
    try:
        pid = program.pid
        with control_group(cell.way == "cgroup", pid) as group:
            time.sleep(0.02)
            while not is_asleep(pid):
                time.sleep(0.001)
            before = processor_time(pid)
            target = {
                "pid": ["-p", str(pid)], "tid": ["-t", str(pid)], "all": ["-a"], "cpu": ["-C", "0"],
                "cgroup": ["--cgroup", group],
            }[cell.way]
            command = cell.recorder(args, which, file, target)
            waiter = f"echo go >&{opener}; exec {opener}>&-; cat <&{ended} >/dev/null"
            process = subprocess.Popen(
                [*command, "--", "bash", "-c", waiter],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, pass_fds=(opener, ended),
            )
            # With the last opener gone the program reads the end of the file and runs on.
            os.close(opener)
            opener = None
            finish(process, which)
            _, status, usage = os.wait4(pid, 0)
            program.returncode = os.waitstatus_to_exitcode(status)
    finally:
        if opener is not None:
            os.close(opener)
        os.close(ended)
        if program.returncode is None:
            program.kill()
            program.wait()
    return usage.ru_utime + usage.ru_stime - before, pid


@contextlib.contextmanager
def control_group(wanted, pid):
    """A control group of its own with the process in it; its path below the cgroup2 file system."""
    if not wanted:
        yield ""
        return
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        places = [line.split()[1] for line in mounts if line.split()[2] == "cgroup2"]
    if not places:
        raise Failed("no cgroup2 file system is mounted")
    name = f"compare-recorders-{os.getpid()}-{pid}"
    directory = os.path.join(places[0], name)
    try:
        os.mkdir(directory)
        with open(os.path.join(directory, "cgroup.procs"), "w", encoding="ascii") as members:
            members.write(str(pid))
    except OSError as error:
        raise Failed(f"control groups: {error}") from error
    try:
        yield name
    finally:
        # The recorder's events may still hold it for a moment.
        for _ in range(100):
            try:
                os.rmdir(directory)
                break
            except OSError:
                time.sleep(0.02)


def read(args, file, pid):
    """What `proftool flat` tells of a recording."""
    command = [args.proftool, "flat", "--format", "json", "--limit", "0", "--unit", "samples"]
    command += ["--pid", str(pid)] if pid else []
    told = subprocess.run([*command, file], capture_output=True, check=False)
    if told.returncode != 0:
        raise Failed(told.stderr.decode("utf-8", "replace").strip().splitlines()[0])
    return json.loads(told.stdout)


def records(args, file, pid):
    """How many records of each kind there are of what happened meanwhile, all or of a process, and
    how many of losses; what perf said on stderr."""
    command = [args.perf, "script", "-i", file, "-F", "comm,tid,time,event", "--show-task-events"]
    command += ["--show-mmap-events", "--show-lost-events"]
    told = subprocess.run(command, capture_output=True, check=False)
    counts, lost = collections.Counter(), 0
    for line in told.stdout.splitlines():
        found = RECORD.search(line)
        if not found:
            continue
        kind = found.group(2).decode()
        if kind.startswith("LOST"):
            lost += 1
        elif pid and found.group(3) != str(pid).encode():
            continue
        elif float(found.group(1)) > 0 and (kind != "MMAP2" or CODE.search(line)):
            counts[kind] += 1
    return counts, lost, told.stderr


def said(args, file, stacks):
    """What else perf says on stderr of our file, which should be nothing."""
    commands = [["report", "--stats", "-i", file]]
    # Unwinding copies in perf takes minutes.
    commands += [["script", "--no-inline", "-i", file]] if stacks == "fp" else []
    words = b""
    for command in commands:
        told = subprocess.run([args.perf, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        words += told.stderr
    return words


def turn(args, cell, which, scratch, complaints):
    """Records once and reads it."""
    file = os.path.join(scratch, f"{which}.data")
    words = [os.path.join(args.cache, "run", cell.program), str(PROGRAMS[cell.program])]
    record = record_command if cell.way == "command" else record_running
    seconds, pid = record(args, cell, which, file, words)
    answer = read(args, file, pid if cell.way in SHARED else None)
    counts, lost, noise = records(args, file, pid if cell.way in (*SHARED, "cgroup") else None)
    if which == "proftool":
        noise += said(args, file, cell.stacks)
        complaints.update(line for line in noise.decode("utf-8", "replace").splitlines() if line.strip())
    own, total = collections.Counter(), collections.Counter()
    for row in answer["functions"]:
        key = row["module"], row["name"]
        own[key] += row["self"]
        total[key] += row["total"]
    samples = answer["samples"]
    return Turn(samples / seconds, samples, own, total, counts, lost)


def tail(t, freedom):
    """The probability that |Student's t| is greater, by Simpson's rule over the angle atan(t / sqrt(freedom))."""
    angle, steps = math.atan(abs(t) / math.sqrt(freedom)), 2000
    # P(|T| < t) is the integral of cos^(freedom-1) from -angle to angle over that from -pi/2 to pi/2.
    width = (math.pi / 2 - angle) / steps
    of = lambda at: math.cos(at) ** (freedom - 1)
    inner = sum((4 if step % 2 else 2) * of(angle + step * width) for step in range(1, steps))
    area = (of(angle) + inner + of(math.pi / 2)) * width / 3
    whole = math.sqrt(math.pi) * math.exp(math.lgamma(freedom / 2) - math.lgamma((freedom + 1) / 2)) / 2
    return area / whole


def spread(values):
    return statistics.stdev(values) if len(values) > 1 else 0.0


def mean_sigmas(a, b, least=0.0):
    """By how many standard deviations of a normal distribution the means of two lists differ, by
    Welch's test; each list spreads by at least `least` of its mean. Infinite if neither spreads."""
    errors = [max(spread(x), least * statistics.mean(x)) ** 2 / len(x) for x in (a, b)]
    apart = statistics.mean(a) - statistics.mean(b)
    if not any(errors):
        return math.copysign(math.inf, apart) if apart else 0.0
    t = apart / math.sqrt(sum(errors))
    parts = sum(error**2 / (len(x) - 1) for error, x in zip(errors, (a, b)))
    chance = tail(t, sum(errors) ** 2 / parts)
    sigmas = statistics.NormalDist().inv_cdf(1 - max(chance / 2, 1e-15))
    return math.copysign(sigmas, t)


def rate_sigmas(ours, theirs):
    """By how many standard deviations the mean rates differ."""
    return mean_sigmas([turn.rate for turn in ours], [turn.rate for turn in theirs], LEAST_SPREAD)


def share_sigmas(ours, theirs, of):
    """(sigmas, function, our share, theirs) of each function that has its least share, worst first."""
    sides = []
    for turns in (ours, theirs):
        sums = sum((getattr(turn, of) for turn in turns), collections.Counter())
        sides.append((turns, sums, sum(turn.samples for turn in turns)))
    found = []
    for key in set(sides[0][1]) | set(sides[1][1]):
        shares = [sums[key] / samples for _, sums, samples in sides]
        if max(shares) < LEAST_SHARE:
            continue
        pooled = sum(sums[key] for _, sums, _ in sides) / sum(samples for *_, samples in sides)
        pooled = min(pooled, 1.0)
        error = math.sqrt(pooled * (1 - pooled) * sum(1 / samples for *_, samples in sides))
        sigmas = abs(shares[0] - shares[1]) / error if error > 0 else 0.0
        by_run = [[getattr(turn, of)[key] / turn.samples for turn in turns] for turns, *_ in sides]
        sigmas = min(sigmas, abs(mean_sigmas(*by_run)))
        found.append((sigmas, key, *shares))
    return sorted(found, key=lambda row: (-row[0], row[1]))


def compare(args, cell, ours, theirs, complaints):
    """Prints the row of a cell; gives its differences in words."""
    differences = []
    sigmas = rate_sigmas(ours, theirs)
    if abs(sigmas) > args.sigmas:
        differences.append(f"{cell}: the rates differ by {sigmas:.1f} sigmas")
    shares = {}
    for of, word in (("own", "self"), ("total", "total")):
        shares[of] = share_sigmas(ours, theirs, of)
        for far, (module, name), our, their in shares[of]:
            if far > args.sigmas:
                differences.append(f"{cell}: {word} of {name} ({module}): {our:.2%}, perf {their:.2%}, {far:.1f} sigmas")
    same = []
    if cell.way != "cgroup" or cell.program in ALONE:
        for kind in KINDS:
            our, their = ({turn.records[kind] for turn in turns} for turns in (ours, theirs))
            same.append(f"{max(our)}" if max(our) == max(their) else f"{max(our)}/{max(their)}")
            if max(our) < min(their) or max(their) < min(our):
                differences.append(f"{cell}: {kind} records: {sorted(our)}, perf {sorted(their)}")
    lost = [sum(turn.lost for turn in turns) for turns in (ours, theirs)]
    if lost[0]:
        differences.append(f"{cell}: {lost[0]} records of losses")
    differences += [f"{cell}: perf says of our file: {line}" for line in sorted(complaints)]

    def rate(turns):
        rates = [turn.rate for turn in turns]
        return f"{statistics.mean(rates):.0f} ± {spread(rates):.0f}"

    def worst(of):
        return f"{shares[of][0][0]:.1f} of {len(shares[of])}" if shares[of] else ""

    print(
        f"| {cell.program} | {cell.way} | {cell.stacks} {cell.rate} | {rate(ours)} | {rate(theirs)} | {sigmas:+.1f} "
        f"| {worst('own')} | {worst('total')} | {' '.join(same)} | {lost[0]}/{lost[1]} "
        f"| {'differs' if differences else 'same'} |",
        flush=True,
    )
    return differences


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--proftool", default="proftool")
    parser.add_argument("--perf", default="perf")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--sigmas", type=float, default=4.0)
    parser.add_argument("part", nargs="?", default="")
    args = parser.parse_args()
    if args.runs < 2:
        parser.error("a spread needs two runs")
    args.cache = os.environ.get("PROFTOOL_BENCH") or os.path.expanduser("~/.cache/proftool-bench")
    cells = [
        Cell(program, way, stacks, rate)
        for way, programs in WAYS.items() for program in programs for stacks in STACKS for rate in RATES
    ]
    cells = [cell for cell in cells if re.search(args.part, str(cell))]
    print("| program | way | stacks, Hz | samples a CPU second | perf | sigmas | worst self | worst total "
          f"| {' '.join(KINDS)} | lost | |\n|---|---|---|---|---|---|---|---|---|---|---|")
    differences, failures = [], []
    for cell in cells:
        turns, complaints = {which: [] for which in RECORDERS}, set()
        try:
            with tempfile.TemporaryDirectory() as scratch:
                for number in range(args.runs):
                    for which in RECORDERS[:: -1 if number % 2 else 1]:
                        turns[which].append(turn(args, cell, which, scratch, complaints))
        except (Failed, OSError) as error:
            failures.append(f"{cell}: {error}")
            continue
        if any(not turn.samples for which in RECORDERS for turn in turns[which]):
            failures.append(f"{cell}: a recording has no samples")
            continue
        differences += compare(args, cell, turns["proftool"], turns["perf"], complaints)
    print("\n".join(["", *differences, *failures]) if differences or failures else "\nnothing differs")
    sys.exit(1 if differences else 2 if failures or not cells else 0)


main()
