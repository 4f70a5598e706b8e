#!/usr/bin/env python3
"""check_readme.py PROFTOOL: runs the commands of README.md, in their order, in an empty directory.

Commands are the lines of sh blocks, without what installs proftool, and all code that begins with `proftool` and has nothing
to fill in. Programs of fixtures/programs are built where they are named, and recorded where a command records no other one.
Prints each command with its exit status; exit 1 if one fails.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILDS = {".c": ["gcc", "-O2", "-g", "-fno-optimize-sibling-calls", "-pthread", "-o"], ".rs": ["rustc", "-O", "-g", "-o"]}
# Places to fill in, parts that may be left out, and commands that show a terminal.
OPEN = re.compile(r"[\[\]|…]|\b[A-Z]{2,}\b|proftool (?:top|browse)\b")
# A block of commands, and code in a line or on one of its own.
PARTS = re.compile(r"```sh\n(?P<block>.*?)```|`(?P<code>proftool [^`\n]+)`|^(?P<line>proftool [^\n]+)$", re.S | re.M)
PROGRAM = re.compile(r"fixtures/programs/(\w+)(\.c|\.rs)")


def commands(text):
    """The commands, each with the program that its section is about."""
    for section in text.split("\n## "):
        program = PROGRAM.search(section)
        for part in PARTS.finditer(section):
            if part["block"]:
                yield program, part["block"].strip().split('/bin:$PATH" && ')[-1]
            elif not OPEN.search(command := part["code"] or part["line"]):
                yield program, command


def main():
    tool = os.path.abspath(sys.argv[1])
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        text = file.read()
    failed, room = 0, tempfile.mkdtemp()
    try:
        os.makedirs(os.path.join(room, "bin"))
        os.symlink(tool, os.path.join(room, "bin", "proftool"))
        os.symlink(os.path.join(ROOT, "fixtures"), os.path.join(room, "fixtures"))
        environment = {**os.environ, "HOME": room, "PATH": f"{room}/bin:{os.environ['PATH']}", "PAGER": "cat"}
        # Compilers are found by the home of the user.
        for name, directory in (("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")):
            environment.setdefault(name, os.path.expanduser(f"~/{directory}"))
        for program, command in commands(text):
            if program and not os.path.exists(os.path.join(room, program[1])):
                source = os.path.join(ROOT, program[0])
                subprocess.run([*BUILDS[program[2]], program[1], source], cwd=room, check=True)
            if re.fullmatch(r"proftool record(?: -\S+)*", command):
                command += f" -- ./{program[1]}"
            done = subprocess.run(command, shell=True, cwd=room, env=environment, capture_output=True, text=True, check=False)
            print(f"{done.returncode}  {command}")
            if done.returncode:
                failed += 1
                print(done.stderr)
    finally:
        shutil.rmtree(room)
    sys.exit(1 if failed else 0)


main()
