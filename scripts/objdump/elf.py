"""What an ELF file says of its functions and pointers, by way of `readelf`."""

import bisect
import collections
import os
import re
import struct
import subprocess

MACHINES = {3: "i386", 62: "x86-64", 183: "AArch64", 243: "RISC-V"}
# "Num: Value Size Type Bind Vis [<other>] Ndx Name [(version)]"
SYMBOL = re.compile(
    r"\s*\d+: ([0-9a-f]+)\s+(\w+)\s+(\w+)\s+(\w+)\s+(\w+)\s+(?:\[.*?\]\s+)?(\w+)(?: (.*))?"
)
# "Offset Info Type [Value Name + Addend | Addend]"; a resolver is told as "name()" or as a number
RELOCATION = re.compile(r"([0-9a-f]{8,16})  [0-9a-f]{8,16} (R_\w+)\s*(.*)")
FDE = re.compile(r"[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE cie=[0-9a-f]+ pc=([0-9a-f]+)\.\.([0-9a-f]+)")
# Parts that compilers split off: `f.cold`, `f.part.0`, `f.isra.0.cold.1`.
PART = re.compile(r"(?<=.)\.(?:cold|part|__part)(?:\.|$).*")
MAPPING = re.compile(r"\$[adtx](?:[.r].*)?")

Section = collections.namedtuple("Section", "name kind flags address offset size link")
Segment = collections.namedtuple("Segment", "kind flags offset address file_size size")
Symbol = collections.namedtuple("Symbol", "start size kind visibility section name")
EXECUTABLE, WRITABLE = 4, 1
LOAD, RELRO = 1, 0x6474E552
SHT_RELR = 19


def lines(command):
    """The lines that a program prints, as they come."""
    quiet = {"stderr": subprocess.DEVNULL, "env": {**os.environ, "LC_ALL": "C"}}
    with subprocess.Popen(command, stdout=subprocess.PIPE, **quiet) as process:
        for line in process.stdout:
            yield line.decode("utf-8", "replace").rstrip("\n")


def unversioned(name):
    """`free@@GLIBC_2.2.5` without its version."""
    return name.partition("@")[0] or name


class Elf:
    """Sections, segments, symbols, and what is in memory."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            self.bytes = file.read()
        if self.bytes[:4] != b"\x7fELF":
            raise ValueError("not an ELF file")
        self.wide = self.bytes[4] == 2
        self.order = "<" if self.bytes[5] == 1 else ">"
        self.kind, self.machine = self.unpack("HH", 16)
        self.sections, self.segments = self.read_sections(), self.read_segments()
        self.dynamic = self.symbols("--dyn-syms")
        self.symtab = self.symbols("--syms", ".symtab") + self.debug_symbols()

    def unpack(self, layout, at):
        return struct.unpack_from(self.order + layout, self.bytes, at)

    def read_sections(self):
        offset, = self.unpack("Q" if self.wide else "I", 40 if self.wide else 32)
        entry, count, names = self.unpack("HHH", 58 if self.wide else 46)
        raw = []
        for at in range(offset, offset + entry * count if offset else offset, entry):
            raw.append(self.unpack("IIQQQQI" if self.wide else "IIIIIII", at))
        start = raw[names][4] if raw else 0

        def name(at):
            return self.bytes[start + at:self.bytes.index(b"\0", start + at)].decode()
        return [Section(name(s[0]), *s[1:]) for s in raw]

    def read_segments(self):
        offset, = self.unpack("Q" if self.wide else "I", 32 if self.wide else 28)
        entry, count = self.unpack("HH", 54 if self.wide else 42)
        segments = []
        for at in range(offset, offset + entry * count, entry):
            if self.wide:
                kind, flags, start, address, _, file_size, size = self.unpack("IIQQQQQ", at)
            else:
                kind, start, address, _, file_size, size, flags = self.unpack("IIIIIII", at)
            segments.append(Segment(kind, flags, start, address, file_size, size))
        return segments

    def symbols(self, option, table=".dynsym", path=None):
        """The symbols of one table that readelf prints."""
        found, inside = [], False
        for line in lines(["readelf", "-W", option, path or self.path]):
            if line.startswith("Symbol table"):
                inside = f"'{table}'" in line
            # What other linkers leave without the mark of GNU.
            line = line.replace("<OS specific>: 10", "IFUNC")
            match = inside and SYMBOL.fullmatch(line)
            if match:
                value, size, kind, _, visibility, section, name = match.groups()
                name = re.sub(r" \(\d+\)$", "", name or "")
                size = int(size, 16 if size.startswith("0x") else 10)
                found.append(Symbol(int(value, 16), size, kind, visibility, section, name))
        return found

    def debug_symbols(self):
        """The symbols of a separate debug file, where there is one by build id."""
        for line in lines(["readelf", "-Wn", self.path]):
            match = re.search(r"Build ID: ([0-9a-f]{2})([0-9a-f]+)", line)
            if match:
                path = "/usr/lib/debug/.build-id/{}/{}.debug".format(*match.groups())
                return self.symbols("--syms", ".symtab", path) if os.path.exists(path) else []
        return []

    def section_at(self, address):
        for section in self.sections:
            if section.flags & 2 and section.address <= address < section.address + section.size:
                return section
        return None

    def word(self, address):
        """The pointer that the file has for this address."""
        for segment in self.segments:
            at = address - segment.address
            if segment.kind == LOAD and 0 <= at <= segment.file_size - (8 if self.wide else 4):
                return self.unpack("Q" if self.wide else "I", segment.offset + at)[0]
        return None

    def is_constant(self, address):
        """Whether nobody can write here once the file is loaded and linked."""
        section = self.section_at(address)
        if section and (not section.flags & WRITABLE or section.name in (".got", ".got.plt")):
            return True
        return any(
            s.kind == RELRO and s.address <= address < s.address + s.size for s in self.segments
        )


class Slots:
    """What relocations write into pointers: ("symbol", name), ("address", to) or ("ifunc", resolver)."""

    def __init__(self, elf):
        self.elf, self.targets = elf, {}
        for line in lines(["readelf", "-Wr", elf.path]):
            match = RELOCATION.fullmatch(line)
            if match:
                self.add(int(match[1], 16), match[2], match[3].split())
        for section in elf.sections:
            if section.kind == SHT_RELR:
                self.add_packed(section)

    def add(self, slot, kind, words):
        kind = re.sub(r"R_(X86_64|386|AARCH64|RISCV)_", "", kind)
        if kind in ("RELATIVE", "IRELATIVE"):
            # Without an addend of its own, the slot has it.
            to = int(words[-1], 16) if words and "()" not in words[-1] else self.elf.word(slot)
            self.targets[slot] = ("address" if kind == "RELATIVE" else "ifunc", to)
        elif kind in ("GLOB_DAT", "JUMP_SLOT", "64", "32", "ABS64") and len(words) > 1:
            if words[-2:] == ["+", "0"] or "+" not in words:
                self.targets[slot] = ("symbol", words[1])

    def add_packed(self, section):
        """An even word is a slot; the bits of an odd word tell of the 63 (31) words that follow."""
        size = 8 if self.elf.wide else 4
        at, words = 0, section.size // size
        layout = f"{words}{'Q' if self.elf.wide else 'I'}"
        for word in self.elf.unpack(layout, section.offset):
            if word & 1 == 0:
                slots, at = [word], word + size
            else:
                slots = [at + size * i for i in range(8 * size - 1) if word >> (i + 1) & 1]
                at += size * (8 * size - 1)
            for slot in slots:
                self.targets[slot] = ("address", self.elf.word(slot))

    def target(self, slot):
        """What a call through this slot reaches, if that never changes."""
        target = self.targets.get(slot)
        if target is None:
            # Without relocation a constant pointer is as it is in the file, if that is not moved.
            fixed = self.elf.kind == 2 and self.elf.is_constant(slot)
            to = self.elf.word(slot) if fixed else None
            return ("address", to) if to else None
        by_linker = target[0] == "ifunc" or self.elf.is_constant(slot)
        return target if by_linker else None


class Functions:
    """Functions by address: symbols with a size, labels outside of them; in a stripped file also
    what has unwind information and no symbol around it. Aliases are one function."""

    def __init__(self, elf):
        self.elf = elf
        self.code = sorted(
            (s.address, s.address + s.size) for s in elf.sections
            if s.flags & EXECUTABLE and not s.name.startswith((".plt", ".iplt"))
        )
        self.names, sizes = collections.defaultdict(list), {}
        labels = {}
        for symbol in elf.symtab + elf.dynamic:
            end = self.end_of_section(symbol.start)
            if not end or symbol.section in ("UND", "ABS") or not symbol.name:
                continue
            size = min(symbol.size, end - symbol.start)
            if symbol.kind in ("FUNC", "IFUNC"):
                sizes[symbol.start] = max(size, sizes.get(symbol.start, 0))
                self.names[symbol.start].append(unversioned(symbol.name))
            elif symbol.kind == "NOTYPE" and not symbol.name.startswith(".L"):
                if not MAPPING.fullmatch(symbol.name):
                    labels[symbol.start] = max(size, labels.get(symbol.start, 0))
                    self.names[symbol.start].append(unversioned(symbol.name))
        self.settle(sizes)
        for start, size in sorted(labels.items()):
            if self.function(start, only_sized=True) is None:
                sizes.setdefault(start, size)
        for start, size in [] if elf.symtab else self.unwind():
            if self.function(start, only_sized=True) is None and not sizes.get(start):
                sizes[start] = size
        self.settle(sizes)

    def end_of_section(self, address):
        at = bisect.bisect_right(self.code, (address, 1 << 65)) - 1
        return self.code[at][1] if at >= 0 and address < self.code[at][1] else None

    def settle(self, sizes):
        """Starts in order, each with its end and how far all before it reach."""
        self.starts = sorted(sizes)
        self.sized = {start for start in sizes if sizes[start]}
        self.ends, self.reach, reach = {}, [], 0
        following = self.starts[1:] + [1 << 65]
        for start, after in zip(self.starts, following):
            end = start + sizes[start] if sizes[start] else min(after, self.end_of_section(start))
            self.ends[start] = end
            reach = max(reach, end)
            self.reach.append(reach)

    def function(self, address, only_sized=False):
        """The start of the function that this is in: of several, the one that starts last."""
        at = bisect.bisect_right(self.starts, address) - 1
        while at >= 0 and self.reach[at] > address:
            start = self.starts[at]
            if address < self.ends[start] and (not only_sized or start in self.sized):
                return start
            at -= 1
        return None

    def unwind(self):
        """The bounds in .eh_frame."""
        inside = False
        for line in lines(["readelf", "-W", "--debug-dump=frames", self.elf.path]):
            if line.startswith("Contents of"):
                inside = ".eh_frame" in line
            match = inside and " FDE " in line and FDE.match(line)
            if match:
                start, end = int(match[1], 16), int(match[2], 16)
                room = self.end_of_section(start)
                if room and end > start:
                    yield start, min(end, room) - start

    def are_parts_of_one(self, a, b):
        """Whether a compiler split one function into these two."""
        names = [set(self.names.get(at, ())) for at in (a, b)]
        whole = [{PART.sub("", name) for name in some} for some in names]
        # Two whole functions of one name are two versions of it, or two that nobody else sees.
        return bool(whole[0] & whole[1]) and whole != names

    def wholes(self, leads):
        """Of the start of each part that of the function it was split off from: the one of its name;
        of several, the one that leads to it by `leads`, pairs of caller and callee."""
        by_name = collections.defaultdict(set)
        for start in self.starts:
            for name in self.names.get(start, ()):
                by_name[name].add(start)
        wholes = {}
        for start in self.starts:
            stems = {PART.sub("", name) for name in self.names.get(start, ())}
            if stems & set(self.names.get(start, ())):
                continue
            found = set().union(*(by_name[stem] for stem in stems)) if stems else set()
            if len(found) > 1:
                found = {whole for whole in found if (whole, start) in leads or (start, whole) in leads}
            if len(found) == 1:
                wholes[start] = found.pop()
        return wholes

    def name(self, start):
        names = self.names.get(start)
        return min(names, key=lambda n: (len(n), n)) if names else f"sub_{start:x}"
