"""The programs of fixtures/programs/truth, built in several ways."""

import collections
import os
import shutil
import subprocess

SOURCES = os.path.join(os.path.dirname(__file__), "../../fixtures/programs/truth")
C = ["-g", "-Wall", "-Wextra", "-Wl,--build-id"]
CXX = [*C, "-std=c++17"]
RUST = ["--edition", "2024", "-g", "-C", "link-arg=-Wl,--build-id"]
FP = "-fno-omit-frame-pointer"

Build = collections.namedtuple("Build", "program name flags")
BUILDS = [
    Build("calls", "O0", ["-O0"]),
    Build("calls", "O2", ["-O2"]),
    Build("calls", "O2-fp", ["-O2", FP]),
    Build("calls", "O2-fp-notail", ["-O2", FP, "-fno-optimize-sibling-calls"]),
    Build("objects", "O0", ["-O0"]),
    Build("objects", "O2", ["-O2"]),
    Build("objects", "O2-fp", ["-O2", FP]),
    Build("traits", "debug", []),
    Build("traits", "release", ["-O"]),
    Build("traits", "release-fp", ["-O", "-C", "force-frame-pointers=yes"]),
]


def build(what, directory):
    """Builds a program in a directory; gives its path, or None and why not."""
    name = f"{what.program}-{what.name}"
    out = os.path.join(directory, name)
    if what.program == "calls":
        library, frameless = f"lib{name}.so", os.path.join(directory, f"{name}.frameless.o")
        commands = [
            ["gcc", *C, *what.flags, "-fPIC", "-shared", f"-Wl,-soname,{library}", source("library.c"),
             "-o", os.path.join(directory, library)],
            ["gcc", *C[:-1], *what.flags, "-fomit-frame-pointer", "-c", source("frameless.c"), "-o", frameless],
            ["gcc", *C, *what.flags, source("calls.c"), frameless, os.path.join(directory, library),
             "-Wl,-rpath,$ORIGIN", "-o", out],
        ]
    elif what.program == "objects":
        commands = [["g++", *CXX, *what.flags, source("objects.cpp"), "-o", out]]
    else:
        commands = [["rustc", *RUST, *what.flags, source("traits.rs"), "-o", out]]
    for command in commands:
        if shutil.which(command[0]) is None:
            return None, f"no {command[0]}"
        done = subprocess.run(command, capture_output=True, check=False, text=True)
        if done.returncode != 0:
            return None, f"{' '.join(command)}: {done.stderr.strip()}"
    return out, ""


def source(name):
    return os.path.normpath(os.path.join(SOURCES, name))
