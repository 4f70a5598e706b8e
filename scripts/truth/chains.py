"""What stacks a phase may have, read from `PROGRAM --truth`, and how a recorded stack compares.

The lines and their chains are described in fixtures/programs/truth/phases.h. A stack is a tuple
of names as `plain` makes them, outermost first. A name that a tool put in without having found it
on the stack ends with INSERTED here.
"""

import collections
import functools
import re
import subprocess

INSERTED = "~"
RIGHT, MISSING, CUT, WRONG = "right", "missing", "cut", "wrong"
CLASSES = (RIGHT, MISSING, CUT, WRONG)

Element = collections.namedtuple("Element", "kind names count")
# A frame; several in turns; a function that is inlined; one that may be; foreign frames, one or
# more; foreign frames, any number.
FRAME, INLINED, MAYBE, SOME, ANY = "frame", "inlined", "maybe", "some", "any"
# How a function stands in a pattern if it is another program's, if it is another phase's, and if
# it is an `operator()`: that may be a library's, or a lambda, which has no better name in the debug
# information of GCC.
FOREIGN, ELSEWHERE, CALL = "\ue000", "\ue001", "\ue002"
ANY_FOREIGN = f"[{FOREIGN}{CALL}]"

# What calls main, also Rust's; and how tools call what is no function that they know.
STARTS = {"_start", "__libc_start_main", "__libc_start_call_main", "lang_start", "main"}
UNKNOWN = "[unknown]"

CLONE = re.compile(r" \[clone [^]]*\]|(?<=.)\.(?:cold|part|constprop|isra|llvm)(?:\.\d+)*\b")
CLOSURE = re.compile(r"\{\{closure\}\}|\{closure#\d+\}|\{lambda#\d+\}(?:::operator_call)?")


@functools.cache
def plain(name):
    """A function's last name: without arguments, templates, hashes and clones; a closure's with the
    function around it; `main` as a whole, as a Rust program has two."""
    name = re.sub(r"::h[0-9a-f]{16}$|@@?\w+[.\w]*$", "", CLONE.sub("", name.strip()))
    name = without_groups(without_groups(name.replace("operator()", "operator_call"), "()"), "<>")
    name = CLOSURE.sub("{closure}", name).removesuffix(" const").rpartition(" ")[2]
    parts = [part for part in name.split("::") if part]
    if not parts:
        return name
    if parts[-1] == "main":
        return name
    return "::".join(parts[-2:] if parts[-1] == "{closure}" else parts[-1:])


def without_groups(text, pair):
    """The text without what stands in brackets of this pair, and without the brackets."""
    kept, depth = [], 0
    for letter in text:
        depth += letter == pair[0]
        if not depth:
            kept.append(letter)
        depth -= bool(depth) and letter == pair[1]
    return "".join(kept)


def elements(chain):
    """The parts of a chain as a program tells it."""
    for word in chain.split(";"):
        if word in "+*":
            yield Element(SOME if word == "+" else ANY, (), 1)
            continue
        kind = {"[": INLINED, "?": MAYBE}.get(word[0], FRAME)
        names, _, count = word.strip("[]?").partition("*")
        yield Element(kind, tuple(names.split("|")), int(count or 1))


class Phase:
    """One phase: its name, what it shows, and its chains."""

    def __init__(self, name, shows, chains):
        self.name, self.shows, self.chains = name, shows, chains

    def names(self):
        return {name for chain in self.chains for element in chain for name in element.names}

    def has_inlined(self):
        return any(element.kind in (INLINED, MAYBE) for chain in self.chains for element in chain)


class Judge:
    """Classifies the stacks of a phase, as they are or with inlined functions; `known` are the
    names of all phases."""

    def __init__(self, phase, with_inlined, known):
        self.known = known
        self.letters = {name: chr(0xE003 + at) for at, name in enumerate(sorted(phase.names()))}
        chains = [list(self.as_read(chain, with_inlined)) for chain in phase.chains]
        self.roots = {self.letters[chain[0].names[0]] for chain in chains}
        self.right = re.compile("|".join(self.first(chain) for chain in chains))
        self.in_order = re.compile("|".join(map(self.gaps, chains)))

    @staticmethod
    def as_read(chain, with_inlined):
        for element in chain:
            if with_inlined and element.kind == MAYBE:
                yield element._replace(kind=FRAME)
            elif with_inlined or element.kind != INLINED:
                yield element

    def first(self, chain):
        """All beginnings of a chain that are not empty."""
        return f"{self.letters[chain[0].names[0]]}{self.beginnings(chain[1:])}"

    def beginnings(self, chain):
        """All beginnings of a chain, the empty one too."""
        if not chain:
            return ""
        (kind, names, count), rest = chain[0], self.beginnings(chain[1:])
        turn = [f"[{self.letters_of(name)}]" for name in names]
        if kind == SOME:
            return f"(?:{ANY_FOREIGN}+{rest})?"
        if kind == ANY:
            return f"{ANY_FOREIGN}*{rest}"
        if kind == MAYBE:
            return f"{turn[0]}?{rest}"
        if kind == INLINED:
            # No chain ends right before it: a tool that knows no inlined functions would be right.
            return f"{turn[0]}{rest}"
        part, turn, last = "", "".join(turn), turn[:-1]
        for one in reversed(last):
            part = f"(?:{one}{part})?"
        return f"(?:(?:{turn}){{{count}}}{rest}|(?:{turn}){{0,{count - 1}}}{part})"

    def letters_of(self, name):
        return self.letters[name] + CALL * name.endswith("{closure}")

    def gaps(self, chain):
        """All that is left of a chain if frames are left out anywhere, which may then come in any order
        where several take turns."""
        told = ""
        for kind, names, count in chain:
            if kind in (SOME, ANY):
                told += f"{ANY_FOREIGN}*"
            else:
                letters = "".join(map(self.letters_of, names))
                told += f"[{letters}]{{0,{count * len(names)}}}"
        return told

    def classify(self, stack):
        """RIGHT; MISSING, if frames are; CUT, if all are in order, and main is not reached; WRONG, if
        one is not of the chain or not at its place."""
        text = "".join(map(self.letter, stack))
        root = min((at for at in map(text.find, self.roots) if at >= 0), default=None)
        if root is not None:
            # What called main is not looked at.
            text, is_cut = text[root:], False
        else:
            # main itself is missing, if that which calls it is there. Otherwise the walk ended,
            # perhaps at something that is no function.
            above = stack[: len(text) - len(text.lstrip(FOREIGN))]
            is_cut = not any(name in STARTS for name in above)
            if not is_cut or all(name == UNKNOWN for name in above):
                text = text.lstrip(FOREIGN)
        if self.right.fullmatch(text):
            return RIGHT
        if not self.in_order.fullmatch(text):
            return WRONG
        return CUT if is_cut else MISSING

    def letter(self, name):
        name = name.removesuffix(INSERTED)
        if name == "operator_call":
            return CALL
        return self.letters.get(name) or (ELSEWHERE if name in self.known else FOREIGN)


def phases(program):
    """The phases of a program, by name."""
    told = subprocess.run([program, "--truth"], capture_output=True, check=True, text=True).stdout
    found = {}
    for line in told.splitlines():
        name, shows, chain = line.split("\t")
        found[name] = Phase(name, shows, [list(elements(one)) for one in chain.split(" ")])
    return found
