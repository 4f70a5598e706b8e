#!/usr/bin/env python3
"""compare_slow_down.py [--proftool BIN] [--runs N]: the slow-down that `record -v` estimates, against the clock.

A program with a fixed amount of work prints the processor time that it used. It runs alone and recorded
in turns, N times each (15). The measured slow-down is the ratio of the two medians; the estimate is the
median of those that `proftool record -v -g fp -F 9973` prints. Use a quiet machine.

Exit 0 if the estimate is within a factor of two of what was measured, 1 if not, 2 if it could not be compared: without a
compiler, without the right to record, or where equal runs differ by as much as the slow-down.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(__file__).parent.parent / "fixtures/programs/spin.c"


def run(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    if done.returncode:
        print(f"could not run {command[0]}: {done.stderr.strip()}")
        sys.exit(2)
    return done


def middle_half(values):
    """The distance between the quartiles, in percent of the median."""
    first, median, third = statistics.quantiles(values, n=4)
    return 100 * (third - first) / median


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--proftool", default="proftool")
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        program = directory + "/spin"
        run(["gcc", "-O1", "-fno-omit-frame-pointer", PROGRAM, "-o", program])
        record = [options.proftool, "record", "-v", "-g", "fp", "-F", "9973", "-o", directory + "/perf.data", program]
        alone, recorded, estimates = [], [], []
        for _ in range(max(options.runs, 3)):
            alone.append(int(run([program]).stdout))
            done = run(record)
            recorded.append(int(done.stdout))
            estimates.append(float(re.findall(r"≈ ([0-9.]+)", done.stderr)[-1]))
    measured = 100 * (statistics.median(recorded) / statistics.median(alone) - 1)
    estimate = statistics.median(estimates)
    noise = max(middle_half(alone), middle_half(recorded))
    print(f"estimated {estimate:.1f} %, measured {measured:.1f} %; equal runs differ by {noise:.1f} % (middle half)")
    if noise >= measured:
        print("the machine is too busy to measure it")
        return 2
    return 0 if 0.5 <= estimate / measured <= 2 else 1


if __name__ == "__main__":
    sys.exit(main())
