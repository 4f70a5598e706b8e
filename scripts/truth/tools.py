"""The profilers: how each records a program, and how the stacks of its recording are read.

Each has `record`, which makes a recording of a command; `readings`, the names of the columns that
come of it; and `read`, which gives such a column's stacks as a Counter of (phase, stack), with phases
as the threads are called, and stacks as `chains` wants them. All raise Failed.
"""

import bisect
import collections
import gzip
import json
import os
import re
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

    def readings(self):
        return [self.name]

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

    def repairs(self):
        return "--no-repair" in run([self.proftool, "export", "--help"])

    def readings(self):
        """Stacks as they were recorded, and, by proftools that do that, repaired."""
        return [f"{self.name} raw", *([self.name] if self.repairs() else [])]

    def record(self, out, command):
        run([self.proftool, "record", "-q", "-e", "cpu-clock:u", "-F", HERTZ, *self.how, "-o", out, "--", *command])

    def read(self, recording, phases, reading, with_inlined):
        stacks = collections.Counter()
        options = ["--to", "folded", "--unit", "samples"]
        if reading.endswith(" raw") and self.repairs():
            options.append("--no-repair")
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
    """`samply import` of what perf recorded with as much stack as `samply record` takes, which needs
    no privileges that way. Symbolized here: its profile has addresses in files, of calls themselves."""

    def __init__(self, samply, perf, name):
        self.samply, self.name = samply, name
        self.recorder = Perf(perf, name, "-m", "4096", "--sample-cpu", "--call-graph", "dwarf,32000")

    def readings(self):
        return [self.name]

    def record(self, out, command):
        run([self.samply, "--version"])
        perf_data, profile = f"{out}.data", f"{out}.json.gz"
        self.recorder.record(perf_data, command)
        # By processors, for only then do stacks have the thread's name of their time.
        run([self.samply, "import", "--save-only", "--per-cpu-threads", "-o", profile, perf_data])
        os.remove(perf_data)
        os.replace(profile, out)

    def read(self, recording, _phases, _reading, with_inlined):
        if with_inlined:
            raise Failed("inlined functions are not in the profile")
        with gzip.open(recording, "rt", encoding="utf-8") as file:
            profile = json.load(file)
        symbols = [Symbols(lib["path"], lib.get("codeId")) for lib in profile["libs"]]
        kernel = {at for at, category in enumerate(profile["meta"]["categories"]) if category["name"] == "Kernel"}
        stacks = collections.Counter()
        for thread in profile["threads"]:
            # The thread of all processors has each sample a second time.
            if not re.match(r"CPU \d", thread["name"]):
                continue
            for at, count in collections.Counter(thread["samples"]["stack"]).items():
                if at is not None:
                    label, *names = self.names(thread, at, symbols, kernel)
                    stacks[label.partition(" (")[0], tuple(names)] += count
        return stacks

    @staticmethod
    def names(thread, at, symbols, kernel):
        """The names of a stack, outermost first; the first is the thread's."""
        stacks, frames, functions = thread["stackTable"], thread["frameTable"], thread["funcTable"]
        names = []

        def label(function):
            return thread["stringArray"][functions["name"][function]]

        while at is not None:
            frame, at = stacks["frame"][at], stacks["prefix"][at]
            if frames["category"][frame] in kernel:
                continue
            function = frames["func"][frame]
            resource = functions["resource"][function]
            if at is None:
                names.append(label(function))
            elif resource in (None, -1):
                # `(200 frames elided)` stands for the middle of a deep stack, and is no function.
                if not label(function).endswith("elided)"):
                    names.append(UNKNOWN)
            else:
                lib = thread["resourceTable"]["lib"][resource]
                names.append(symbols[lib].name(frames["address"][frame]))
        return reversed(names)


class Symbols:
    """The functions of a file, by nm; of its debug file where the system has one."""

    def __init__(self, path, build_id):
        self.starts, self.found = [], {}
        files = [path]
        if build_id:
            files.append(f"/usr/lib/debug/.build-id/{build_id[:2].lower()}/{build_id[2:].lower()}.debug")
        for file in filter(os.path.exists, files):
            for options in ([], ["--dynamic"]):
                told = subprocess.run(
                    ["nm", "--defined-only", "--print-size", "--demangle", *options, file],
                    capture_output=True, check=False, text=True, errors="replace",
                ).stdout
                self.add(told)
        self.starts = sorted(self.found)

    def add(self, told):
        """Takes the lines `address size kind name`."""
        for line in told.splitlines():
            words = line.split(" ", 3)
            if len(words) == 4 and words[2] in "tTwWiu":
                start = int(words[0], 16)
                self.found.setdefault(start, (start + int(words[1], 16), plain(words[3])))

    def name(self, address):
        at = bisect.bisect_right(self.starts, address) - 1
        if at < 0:
            return UNKNOWN
        end, name = self.found[self.starts[at]]
        return name if address < end else UNKNOWN
