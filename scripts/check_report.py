#!/usr/bin/env python3
"""check_report.py PROFTOOL RECORDING…: every statement of the first screen of `proftool report` against the JSON answers of other views.

Of each recording: what was recorded, each row of the lists, each step of the heaviest path, where the time is, how complete the
stacks are, the notes, and that each proposed command runs on the same samples. A line that is none of these is a fault, too.
Prints what is wrong and how many statements were checked; exit 1 if anything is wrong.
"""

import json
import os
import re
import shlex
import subprocess
import sys

NUMBER = r"(\d+(?:\.\d+)?)"


def run(proftool, *arguments):
    # Wide enough for whole names.
    environment = {**os.environ, "COLUMNS": "1000"}
    done = subprocess.run([proftool, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    return done.stdout if done.returncode == 0 else None


def is_named(label, shown):
    """Whether a label is shown so: whole, or with a part of it left out."""
    return re.fullmatch(".+".join(map(re.escape, shown.lstrip("≈").split("…"))), label)


class Screen:
    def __init__(self, proftool, recording):
        self.proftool, self.recording = proftool, recording
        self.checked, self.faults = 0, []
        every = ["--limit", "0", "--min", "0", "--names", "short"]
        self.report, self.flat = self.json("report", "--limit", "0"), self.json("flat", *every)
        self.modules, self.commands = self.json("flat", "--by", "module", *every), self.json("flat", "--by", "command", *every)
        self.tree = self.json("tree", "--collapse", self.collapse(), "--depth", "9999", *every)
        self.graph = self.json("graph", "--static", "off", "--limit", "0", "--names", "short")
        self.info = self.json("info")

    def json(self, view, *options):
        return self.answer(view, self.recording, *options)

    def answer(self, *arguments):
        text = run(self.proftool, *arguments, "--format", "json")
        return json.loads(text) if text else {}

    def collapse(self):
        return (self.report.get("hot_paths") or {}).get("collapse", "none")

    def expect(self, is_right, what):
        self.checked += 1
        if not is_right:
            self.faults.append(what)

    def share(self, weight):
        return 100 * weight / max(self.flat["total"], 1)

    def is_share(self, text, weight):
        """Whether a figure is a share to its last digit, of which the half may be rounded either way."""
        digits = len(text.partition(".")[2])
        return abs(float(text) - self.share(weight)) <= 0.5001 * 10**-digits

    def head(self, line):
        found = re.fullmatch(r"([\d,]+) samples? of (\S+), (.+?) in all(?:, recorded over (.+?))?(?:, (\d+) threads)?", line)
        if not found:
            return False
        samples, event, weight, _, threads = found.groups()
        self.expect(int(samples.replace(",", "")) == self.info["samples"] == self.flat["samples"], f"samples: {line}")
        self.expect(event == self.info["event"]["name"], f"event: {line}")
        seconds = re.fullmatch(NUMBER + r" (ns|µs|ms|s)", weight)
        if seconds:
            unit = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[seconds[2]]
            self.expect(abs(float(seconds[1]) * unit / max(self.flat["total"], 1) - 1) < 1e-3, f"weight: {line}")
        self.expect(threads is None or int(threads) == len(self.report["threads"]), f"threads: {line}")
        return True

    def row(self, titles, line):
        """A row of a list of functions or commands."""
        figures = re.match(rf"\s*{NUMBER}" + rf"\s+{NUMBER}" * (len(re.findall("%", titles)) - 1) + r"\s+(.+)", line)
        if not figures:
            self.expect(False, f"row: {line}")
            return
        *shares, rest = figures.groups()
        name, *others = re.split(r"\s{2,}", rest.strip())
        if "command" in titles:
            rows = [row["self"] for row in self.commands["functions"] if row["name"] == name]
            self.expect(any(self.is_share(shares[0], weight) for weight in rows), f"command: {line}")
            return
        keys = [title.split()[0] for title in re.findall(r"(?:self|total) %", titles)]
        rows = [row for row in self.flat["functions"] if is_named(row["label"], name)]
        self.expect(len(rows) == 1, f"{len(rows)} functions are named so: {line}")
        for row in rows[:1]:
            for key, share in zip(keys, shares):
                self.expect(self.is_share(share, row[key]), f"{key} is {self.share(row[key]):.3f}: {line}")
            graph = [it for it in self.graph.get("functions", []) if it["label"] == row["label"]]
            self.expect(all(it["total"] == row["total"] for it in graph), f"another total in graph: {line}")
            self.others(row, others, line)

    def others(self, row, others, line):
        """The hottest line and the module."""
        for other in others:
            place = re.fullmatch(r"(.+):(\d+)", other)
            if place:
                known = self.answer("detail", row["label"], self.recording, "--limit", "0").get("lines", [])
                lines = [it for it in known if it.get("line")]
                most = max((it["weight"] for it in lines), default=0)
                hottest = [f"{os.path.basename(it['file'])}:{it['line']}" for it in lines if it["weight"] == most]
                self.expect(other in hottest, f"hottest line {hottest}: {line}")
            else:
                self.expect(row["module"].strip("[]").startswith(other), f"module {row['module']}: {line}")

    def path(self, text):
        """Each step has its share in the tree, below the step before it."""
        below = self.tree["roots"]
        for step in text.split(" → "):
            name, share = step.rsplit(" ", 1)
            found, level = None, below
            while level and not found:
                found = next((it for it in level if is_named(it["label"], name) and self.is_share(share, it["total"])), None)
                level = [child for it in level for child in it["children"]]
            self.expect(found, f"not on the path: {step}")
            below = found["children"] if found else []

    def where(self, text):
        items = re.findall(rf"(?:^|, )(.+?) {NUMBER} %", text)
        weights = {row["name"].strip("[]"): row["self"] for row in self.modules["functions"]}
        for name, share in items:
            more = re.fullmatch(r"\d+ more", name)
            fit = [weight for module, weight in weights.items() if (module or "unknown").startswith(name)]
            self.expect(more or any(self.is_share(share, weight) for weight in fit), f"where: {name} {share}")
        self.expect(abs(sum(float(share) for _, share in items) - 100) < 0.06 * len(items), f"where: does not add up: {text}")

    def stacks(self, line):
        complete = re.match(rf"stacks: {NUMBER} % complete", line)
        if complete:
            quality = self.report["quality"]
            right = 100 * quality["rooted"]["samples"] / quality["stacks"]
            self.expect(abs(float(complete[1]) - right) <= 0.0501, f"complete: {right}: {line}")
        lower = re.search(rf"totals may be up to {NUMBER} points? too low", line)
        if lower:
            rows = [row["total_limit"] - row["total"] for row in self.flat["functions"] if row.get("total_limit")]
            self.expect(float(lower[1]) <= max(map(self.share, rows), default=0) + 0.5, f"too low: {line}")
        points = re.search(rf"±{NUMBER}(?: \(hottest ±{NUMBER}\)| points)", line)
        if points:
            most = self.report["sampling_error"]["points"]
            self.expect(abs(float(points[1]) - most) <= 0.0501, f"error of {most}: {line}")
            part = self.share(self.report["functions"][0]["self"]) / 100
            first = most * 2 * (part * (1 - part)) ** 0.5
            self.expect(not points[2] or abs(float(points[2]) - first) <= 0.0501, f"error of {first}: {line}")
        self.expect(complete or points or "No sampling error" in line, f"not understood: {line}")

    def note(self, text):
        texts = [caveat["text"] for caveat in self.report["caveats"]]
        is_count = re.fullmatch(r"\d+ more", text)
        self.expect(is_count or any(it.startswith(text.rstrip("…")) for it in texts), f"note: {text}")

    def next(self, command):
        words = shlex.split(command)
        self.expect(self.answer(*words[1:]).get("samples") == self.flat["samples"], f"command: {command}")

    def check(self):
        lines = run(self.proftool, "report", self.recording).splitlines()
        command = self.report.get("command")
        if command:
            self.expect(lines[0].rstrip("…") in command, f"command: {lines[0]}")
            lines = lines[1:]
        titles = before = ""
        for line in lines:
            start, _, rest = line.partition(": ")
            # What begins with spaces goes on with the line before it; a row does not.
            goes_on = before and line.startswith("      ") and not titles
            if not line.strip():
                titles = ""
            elif re.match(r"\s*((self|total) +%|% )", line):
                titles = line
            elif titles:
                self.row(titles, line)
            elif goes_on:
                getattr(self, before)(line.strip().removeprefix("→ "))
            elif start in ("heaviest path", "where", "note", "next"):
                before = start.split()[-1]
                getattr(self, before)(rest)
            elif start == "stacks" or line.startswith("±") or "sampling error" in line:
                self.stacks(line)
            elif start != "For better stacks" and not self.head(line):
                self.expect(False, f"not understood: {line}")
        return self.faults


def main():
    proftool, *recordings = sys.argv[1:]
    wrong = 0
    for recording in recordings:
        screen = Screen(os.path.abspath(proftool), recording)
        faults = screen.check()
        wrong += len(faults)
        print(f"{recording}: {screen.checked} statements, {len(faults)} wrong")
        for fault in faults:
            print(f"  {fault}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
