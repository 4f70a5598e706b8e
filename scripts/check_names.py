#!/usr/bin/env python3
"""Checks names on pages: check_names.py PROFTOOL RECORDING...

At 80, 100 and 160 columns no two rows of flat, report and cycles may have one label, every label that is
printed has to be accepted by detail, and no call may lose its arrow. In the tree a line of the project's own code
has to be among the first 20, if there is such code. Prints what is wrong, and a summary.
"""
import os
import re
import subprocess
import sys

WIDTHS = (80, 100, 160)
PROFTOOL, RECORDINGS = sys.argv[1], sys.argv[2:]


def run(args, width=100):
    env = dict(os.environ, COLUMNS=str(width))
    done = subprocess.run([PROFTOOL, *args], capture_output=True, text=True, env=env)
    return done.returncode, done.stdout


def column(lines, title):
    """The texts of the column of this title in each table of a page, a list per table."""
    tables, at, end, rows = [], None, None, []
    for line in lines + [""]:
        found = re.search(r"(?:^|  )(" + title + r")(?=  |$)", line)
        if found and "%" in line:
            at = found.start(1)
            following = re.search(r"\S", line[found.end(1):])
            end = found.end(1) + following.start() if following else None
            rows = []
            tables.append(rows)
        elif not line.strip() or re.match(r" *(self %|total %|est. total %|%|calls) ", line):
            at = None
        elif line[:1].isalpha() or line.startswith(("…", "⋯", "≈", "(")):
            at = None
        elif at is not None and len(line) > at:
            text = line[at:end].strip()
            if text and not text.startswith("…  ") and not re.match(r"… [\d,]+ more", text):
                rows.append(text)
    return tables


def bare(text):
    text = re.sub(r"^[│├└↳ ]*", "", text)
    text = text.lstrip("≈")
    text = re.sub(r" \[\d+\]$", "", text)
    text = re.sub(r" <cycle \d+>$", "", text)
    text = re.sub(r" \((inlined|inferred|frames missing|in the code|\+[^()]*)\)$", "", text)
    return re.sub(r"\.\.\. \([\d.]+ %\)$", "", text)


def main():
    wrong = pages = labels = arrows = 0

    def complain(text):
        nonlocal wrong
        wrong += 1
        print(text)

    for recording in RECORDINGS:
        known = {}
        _, flat = run(["flat", recording, "--format", "json", "--limit", "0"])
        for width in WIDTHS:
            seen = set()
            for view, titles in (("flat", ["function"]), ("report", ["function"]), ("cycles", ["member", "function"])):
                lines = run([view, recording], width)[1].split("\n")
                pages += 1
                for title in titles:
                    for rows in column(lines, title):
                        names = [bare(row) for row in rows]
                        seen.update(names)
                        for name in {name for name in names if names.count(name) > 1}:
                            complain(f"{recording} {view} {width}: {names.count(name)} rows are called {name}")
                if view == "cycles":
                    for title in ("inside", "entry calls"):
                        for rows in column(lines, title):
                            for row in rows:
                                # A sentence below the table.
                                if " incomplete inside the cycle" in row:
                                    continue
                                arrows += 1
                                if "→" not in row and not row.startswith(("<", "[")):
                                    complain(f"{recording} cycles {width}: no arrow: {row}")
            lines = run(["tree", recording], width)[1].split("\n")
            pages += 1
            start = next((i for i, line in enumerate(lines) if "function ↳" in line), 0)
            tree = [bare(row) for rows in column(lines, "function ↳ calls") for row in rows]
            seen.update(name.split(" → ")[-1] for name in tree)
            for name in seen:
                if name not in known:
                    known[name] = run(["detail", name, recording, "--limit", "1"])[0]
                    labels += 1
                    if known[name] != 0:
                        complain(f"{recording} {width}: detail refuses {name}")
    print(f"{pages} pages, {labels} labels, {arrows} arrows: {wrong} wrong")
    return wrong > 0


sys.exit(main())
