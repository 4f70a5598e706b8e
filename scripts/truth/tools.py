"""The profilers: how each records a program, and how the stacks of its recording are read.

Stacks are read as a Counter of (phase, stack) with phases as the threads are called and stacks as
`chains` wants them.
"""

import bisect
import collections
import gzip
import json
import os
import re
import shutil
import subprocess

from truth.chains import INSERTED, UNKNOWN, plain

HERTZ = "997"
# Deeper than any chain; perf's own limit is the kernel's for frame pointers.
MAX_STACK = "6000"
# "ip name (file)" of perf script; an inlined function has `inlined` for a file.
PERF_FRAME = re.compile(r"\s+[0-9a-f]+ (.*) \((.*)\)")


class Failed(Exception):
    """A tool that is not there, or cannot do this."""


def run(command):
    """Output of a command, which must succeed."""
    try:
        done = subprocess.run(command, capture_output=True, check=False, text=True, errors="replace")
    except OSError as error:
        raise Failed(str(error)) from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise Failed(f"{command[0]} {command[1]}: {said[0] if said else done.returncode}")
    return done.stdout


class Perf:
    """`perf record` and `perf script`."""

    def __init__(self, perf, name, *how):
        self.perf, self.name, self.how = perf, name, how
        self.readings = {name: ()}

    def record(self, out, command):
        event = ["-e", "cpu-clock:u", "-F", HERTZ]
        run([self.perf, "record", "-q", *event, *self.how, "-o", out, "--", *command])

    def read(self, recording, _phases, _reading, with_inlined):
        inlined = [] if with_inlined else ["--no-inline"]
        fields = ["-F", "comm,ip,sym,dso", "--max-stack", MAX_STACK]
        text = run([self.perf, "script", "-i", recording, *inlined, *fields])
        stacks, phase, stack = collections.Counter(), None, []
        # A line with the thread's name, a line for each frame, leaf first, and an empty one.
        for line in [*text.splitlines(), ""]:
            frame = PERF_FRAME.fullmatch(line)
            if frame:
                stack.append(plain(frame[1]))
            elif line.strip():
                phase = line.strip()
            elif phase is not None:
                stacks[phase, tuple(reversed(stack))] += 1
                phase, stack = None, []
        return stacks


class Proftool:
    """`proftool record` and `proftool export --to folded`."""

    def __init__(self, proftool, name, *how):
        self.proftool, self.name, self.how = proftool, name, how
        # With a repair of stacks both are read, by what they are called and by their options.
        if "--no-repair" in run([proftool, "export", "--help"]):
            self.readings = {f"{name} raw": ("--no-repair",), name: ()}
        else:
            self.readings = {f"{name} raw": ()}

    def record(self, out, command):
        run([self.proftool, "record", "-q", "-e", "cpu-clock:u", "-F", HERTZ, *self.how, "-o", out, "--", *command])

    def read(self, recording, phases, reading, with_inlined):
        stacks = collections.Counter()
        options = ["--to", "folded", "--unit", "samples", *self.readings[reading]]
        if not with_inlined:
            options.append("--no-inline")
        for phase in phases:
            try:
                text = run([self.proftool, "export", *options, "--comm", phase, recording])
            except Failed:
                # So it says of a phase without samples.
                continue
            for line in text.splitlines():
                stack, _, count = line.rpartition(" ")
                stacks[phase, tuple(map(self.frame, stack.split(";")))] += round(float(count))
        return stacks

    @staticmethod
    def frame(name):
        """A frame of a folded stack; inserted ones have a mark before or after the name."""
        bare = name.strip(INSERTED + " ")
        # Such as `[truncated stack]`, in the place of frames that are not known.
        if bare.startswith("["):
            return UNKNOWN
        return plain(bare) + (INSERTED if bare != name else "")


class Samply:
    """`samply record`, symbolized here: its profile has addresses in files."""

    def __init__(self, samply, name):
        self.samply, self.name = samply, name
        self.readings = {name: ()}

    def record(self, out, command):
        run([self.samply, "record", "--save-only", "-r", HERTZ, "-o", f"{out}.json.gz", "--", *command])
        os.replace(f"{out}.json.gz", out)

    def read(self, recording, phases, _reading, with_inlined):
        if with_inlined:
            raise Failed("samply's inlined functions are not read here")
        with gzip.open(recording, "rt", encoding="utf-8") as file:
            profile = json.load(file)
        stacks = collections.Counter()
        for thread in profile["threads"]:
            stacks.update(self.thread_stacks(profile, thread, phases))
        return stacks
