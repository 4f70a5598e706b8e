#!/usr/bin/env python3
"""Checks names on pages: check_names.py PROFTOOL RECORDING[=REGEX]...

At 40, 60, 80, 100 and 160 columns no text on a page of flat, report, cycles or tree may stand for two functions: the page is
held against the same page in 1000 columns, where no name is shortened. No two rows of a table of functions may have
one label, every label that is printed has to be accepted by detail, every ninth one and every shortened one also by
tree --root, annotate and as --focus, and no call may lose its arrow. In the tree a line of the project's own code has
to be among the first 20, if there is such code. Prints what is wrong, and a summary.

Each question about a label reads the recording again, which is nearly all of the time. So a label is asked about once,
whichever pages show it, and as many questions are asked at a time as there are processors.
"""
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

WIDTHS = (40, 60, 80, 100, 160)
WIDE = 1000
OWN_WITHIN = 20
EVERY = 9
PROFTOOL, RECORDINGS = sys.argv[1], sys.argv[2:]
VIEWS = (
    ("flat", ["function"]),
    ("report", ["function", "function ↳ calls"]),
    ("cycles", ["member", "function", "inside", "entry calls"]),
    ("tree", ["function ↳ calls"]),
)
# Tables with one row for each function.
ROWS_OF_FUNCTIONS = ("function", "member")
CALLS = ("inside", "entry calls")
NOT_FOUND = re.compile(r"functions match|no function in the selected samples")


def run(args, width=100):
    env = dict(os.environ, COLUMNS=str(width))
    done = subprocess.run([PROFTOOL, *args], capture_output=True, text=True, env=env)
    return done.returncode, done.stdout, done.stderr


def column(lines, title):
    """The texts of the column of this title in each table of a page, a list per table."""
    tables, at, end, rows = [], None, None, []
    for line in lines + [""]:
        found = re.search(r"(?:^|  )(" + re.escape(title) + r")(?=  |$)", line)
        if found and "%" in line:
            at = found.start(1)
            following = re.search(r"\S", line[found.end(1):])
            end = found.end(1) + following.start() if following else None
            rows = []
            tables.append(rows)
        elif not line.strip() or re.match(r" *(self %|total %|est. total %|%|calls) ", line):
            at = None
        elif line[:1].isalpha() or line.startswith(("…", "⋯ ", "≈", "≥:", "(", "[")):
            at = None
        elif at is not None and len(line) > at:
            text = line[at:end].strip()
            # Neither the number of rows that are left out nor a sentence below the table.
            if text and not re.match(r"…  |… [\d,]+ more", text) and "incomplete inside the cycle" not in text:
                rows.append(text)
    return tables


def bare(text):
    text = re.sub(r"^(⋯\d+ )?[│├└↳ ]*", "", text)
    text = text.lstrip("≈")
    text = re.sub(r" \[\d+\]$", "", text)
    text = re.sub(r" <cycle \d+>$", "", text)
    text = re.sub(r" \((inlined|inferred|frames missing|in the code|…|\+[^()]*)\)$", "", text)
    return re.sub(r"\.\.\. \([\d.]+ %\)$", "", text)


def names(text):
    """The functions of a row: itself, caller and callee, or the last of a folded chain."""
    parts = [bare(part) for part in bare(text).split(" → ")]
    return [part for part in parts if not part.startswith("⋯ ")]


def is_name(text):
    return text and not text.startswith("<")


def focused(recording, name):
    """Whether --focus with this label selects samples."""
    status, text, _ = run(["flat", recording, "--focus", name, "--format", "json", "--limit", "1"])
    return status == 0 and json.loads(text)["samples"] > 0


def accepted(recording, name, also):
    """The commands that refuse a label."""
    asked = [("detail", [name, recording, "--limit", "1"])]
    if also:
        asked.append(("tree", [recording, "--root", name, "--limit", "1"]))
        asked.append(("annotate", [name, recording, "--limit", "1"]))
    refused = []
    for command, args in asked:
        status, _, errors = run([command, *args])
        # A function of recordings without source or machine code has none to show; it has to be found all the same.
        if status != 0 and (command != "annotate" or NOT_FOUND.search(errors)):
            refused.append(command)
    if also and not focused(recording, name):
        refused.append("--focus")
    return refused


def main():
    wrong = pages = arrows = alike = 0
    total_labels = 0

    def complain(text):
        nonlocal wrong
        wrong += 1
        print(text, flush=True)

    for argument in RECORDINGS:
        recording, _, own = argument.partition("=")
        seen = {}
        for view, titles in VIEWS:
            wide = run([view, recording], WIDE)[1].split("\n")
            full = {title: column(wide, title) for title in titles}
            for width in WIDTHS:
                lines = run([view, recording], width)[1].split("\n")
                pages += 1
                # By what stands on the page, the functions that it stands for.
                stands_for = {}
                for title in titles:
                    tables = column(lines, title)
                    for place, rows in enumerate(tables):
                        functions = [bare(row) for row in rows]
                        if title in ROWS_OF_FUNCTIONS:
                            for name in {name for name in functions if functions.count(name) > 1}:
                                complain(f"{recording} {view} {width}: {functions.count(name)} rows are called {name}")
                        if title in CALLS:
                            for row in rows:
                                arrows += 1
                                if "→" not in row and not row.startswith(("<", "[")):
                                    complain(f"{recording} {view} {width}: no arrow: {row}")
                        for row in rows:
                            for name in filter(is_name, names(row)):
                                seen.setdefault(name, f"{view} {width}")
                        of_wide = full[title][place] if len(full[title]) == len(tables) else []
                        # The first screen of the report has fewer rows where there are more lines.
                        for row, whole in zip(rows, of_wide):
                            for name, label in zip(names(row), names(whole)):
                                stands_for.setdefault(name, set()).add(label)
                for name, whole in stands_for.items():
                    alike += 1
                    if len(whole) > 1:
                        complain(f"{recording} {view} {width}: {name} stands for {' and '.join(sorted(whole))}")
                if view == "tree" and own:
                    # As many rows as are on these lines, by the names that are not shortened.
                    rows = sum(map(len, column(lines[:OWN_WITHIN], titles[0])))
                    first = [name for row in sum(full[titles[0]], [])[:rows] for name in names(row)]
                    if not any(re.search(own, name) for name in first):
                        complain(f"{recording} tree {width}: no {own} in the first {OWN_WITHIN} lines")
        total_labels += len(seen)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            asked = [(name, "…" in name or place % EVERY == 0) for place, name in enumerate(seen)]
            refusals = pool.map(lambda it: accepted(recording, *it), asked)
            for name, refused in zip(seen, refusals):
                for command in refused:
                    complain(f"{recording} {seen[name]}: {command} refuses {name}")
    print(f"{pages} pages, {total_labels} labels, {alike} of a page, {arrows} arrows: {wrong} wrong")
    return wrong > 0


sys.exit(main())
