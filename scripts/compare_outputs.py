#!/usr/bin/env python3
"""compare_outputs.py OLD NEW FILE…: what two builds of proftool print about the same recordings, byte for byte: views, formats,
widths, exports; names the commands whose output, messages or exit status differ, with the first such line. Exit 1 if any does."""

import concurrent.futures
import itertools
import os
import subprocess
import sys
import tempfile

WIDTHS = (80, 160)
TABLES = [
    ["report"], ["flat"], ["flat", "--limit", "0"], ["flat", "--by", "module"], ["flat", "--by", "file"],
    ["flat", "--by", "line"], ["flat", "--by", "address"], ["flat", "--by", "thread"], ["flat", "--by", "command"],
    ["flat", "--names", "full"], ["flat", "--names", "mangled"], ["graph", "--limit", "20"], ["graph", "--static", "on"],
    ["graph", "--classic"], ["tree"], ["tree", "--bottom-up"], ["tree", "--collapse", "full"], ["tree", "--by", "module"],
    ["tree", "--collapse", "conservative"], ["tree", "--classic"], ["tree", "--unfold"], ["tree", "--root", "main"],
    ["cycles"], ["cycles", "--static", "on"], ["detail", "main"], ["annotate", "main"], ["info"], ["doctor"],
]  # fmt: skip
DOCUMENTS = [
    [*view, "--format", form]
    for view in (["flat"], ["graph"], ["tree"], ["tree", "--bottom-up"], ["cycles"], ["detail", "main"], ["report"])
    for form in ("json", "csv")
]
EXPORTS = [
    ["export", "--to", form, "-o", "-"]
    for form in ("folded", "speedscope", "callgrind", "dot", "firefox", "svg", "otlp", "perf-script", "pprof")
]
PAGES = [["report", "--html", "-"]]


def commands(files):
    for file in files:
        for view, width in itertools.product(TABLES, WIDTHS):
            yield [*view, file], width
        for command in DOCUMENTS + EXPORTS + PAGES:
            yield [*command, file], 100


def output(program, command, width, cache):
    env = dict(os.environ, COLUMNS=str(width), XDG_CACHE_HOME=cache, NO_COLOR="1")
    done = subprocess.run([program, *command], env=env, capture_output=True, stdin=subprocess.DEVNULL, timeout=300)
    return done.returncode, done.stdout, done.stderr.replace(program.encode(), b"proftool")


def first_difference(old, new):
    for name, a, b in zip(("status", "output", "messages"), old, new):
        if a == b:
            continue
        if name == "status":
            return f"status {a} and {b}"
        pairs = itertools.zip_longest(a.splitlines(), b.splitlines(), fillvalue=b"")
        line, (a, b) = next((n, pair) for n, pair in enumerate(pairs, 1) if pair[0] != pair[1])
        return f"{name}, line {line}:\n    - {a[:300].decode(errors='replace')}\n    + {b[:300].decode(errors='replace')}"


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    old, new, *files = sys.argv[1:]
    with tempfile.TemporaryDirectory() as room, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:

        def compare(case):
            command, width = case
            return case, first_difference(
                output(old, command, width, f"{room}/old"), output(new, command, width, f"{room}/new")
            )

        cases = list(commands(files))
        different = [(case, said) for case, said in pool.map(compare, cases) if said]
    for (command, width), said in different:
        print(f"COLUMNS={width} proftool {' '.join(command)}: {said}")
    print(f"{len(cases)} outputs, {len(different)} differ")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
