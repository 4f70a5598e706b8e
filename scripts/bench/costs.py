"""What commands cost: run in turns, so that a busy machine is busy for all of them."""

import os
import shutil
import statistics
import subprocess
import sys
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


def ratio(cost, base):
    """How many times `base`; nothing where `base` is too small to be seen."""
    return f"{cost / base:.3g}" if base > 0 else ""
