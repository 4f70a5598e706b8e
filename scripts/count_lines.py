#!/usr/bin/env python3
"""count_lines.py [DIR]: lines of the Rust files below DIR (src) by kind, with unit tests apart; lines over 100 columns; functions
over 100 lines."""

import collections
import pathlib
import re
import sys


def kind(line):
    if not line:
        return "blank"
    if line.startswith(("///", "//!")):
        return "doc"
    return "comment" if line.startswith("//") else "code"


def count(text, lines, long_functions, name):
    is_test = awaits = False
    opened = []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        lines["over 100 columns"] += len(line) > 100
        what = kind(stripped)
        if awaits and what == "code":
            is_test = is_test or bool(re.match(r"(pub(\(.*\))? )?mod \w+ \{", stripped))
            awaits = False
        awaits = awaits or stripped == "#[cfg(test)]"
        lines["tests" if is_test else what] += 1
        is_test = is_test and line != "}"
        indent = len(line) - len(line.lstrip())
        begins = re.match(r"\s*(pub(\(.*?\))? )?(const |unsafe |async )*fn (\w+)", line)
        if begins and not is_test and not line.endswith((";", "}")):
            opened.append((indent, number, begins[4]))
        if stripped.startswith(")") and stripped.endswith(";") and opened and opened[-1][0] == indent:
            opened.pop()  # declared only
        if stripped == "}" and opened and opened[-1][0] == indent:
            _, first, function = opened.pop()
            if number - first >= 100:
                long_functions.append(f"{name}:{first} {function} {number - first + 1}")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "src")
    lines, long_functions = collections.Counter(), []
    for path in sorted(root.rglob("*.rs")):
        count(path.read_text(), lines, long_functions, path)
    print(*(f"{name} {lines[name]}" for name in ("code", "doc", "comment", "tests", "blank", "over 100 columns")), sep="\n")
    print(f"comment / code {lines['comment'] / lines['code']:.2%}", *long_functions, sep="\n")


if __name__ == "__main__":
    main()
