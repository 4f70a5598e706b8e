"""What the machine code of an x86-64 file says about one call, or about the pointers to a function."""

import bisect
import collections
import json
import os
import re
import subprocess

from objdump.elf import EXECUTABLE, Elf, Functions, PART, Slots, lines, unversioned

JUMP = re.compile(r"\s*([0-9a-f]+):\t(?:(?:bnd|notrack|rep\w*|data16|cs) )*(j[a-z]+)[lqw]? +(.*)")
CALL = re.compile(r"\s*([0-9a-f]+):\t(?:(?:bnd|notrack|rep\w*|data16|cs|rex(?:\.\w+)?) )*call[lqw]? +(.*)")
LEA = re.compile(rb"[\x48\x4c]\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d]", re.S)
DIRECT = re.compile(rb"(?=([\xe8\xe9]|\x0f[\x80-\x8f]))", re.S)
LINK_MARK = re.compile(r"\.(?:llvm|lto_priv)\.\d+$")

Frame = collections.namedtuple("Frame", "name file line")


class Code:
    """One file: its functions, what is before a return address, and who jumps where."""

    def __init__(self, path):
        self.path, self.elf = path, Elf(path)
        self.slots, self.functions = Slots(self.elf), Functions(self.elf)
        self.text = [s for s in self.elf.sections if s.flags & EXECUTABLE and s.kind != 8]
        self.exports = collections.defaultdict(set)
        for symbol in self.elf.dynamic + self.elf.symtab:
            if symbol.section not in ("UND", "ABS"):
                self.exports[unversioned(symbol.name)].add(symbol.start)
        self.exported = {s.start for s in self.elf.dynamic if s.section not in ("UND", "ABS")}
        self.stems = collections.defaultdict(set)
        for start, names in self.functions.names.items():
            for name in names:
                self.stems[name].add(start)
        self.instructions, self.by_whole = {}, None
        self.known_ways, self.known_frames, self.leas, self.direct = {}, {}, None, None

    def address(self, offset):
        """The stated address of an offset in the file."""
        for segment in self.elf.segments:
            if segment.kind == 1 and 0 <= offset - segment.offset < segment.file_size:
                return offset - segment.offset + segment.address
        return None

    def raw(self, address, size):
        for section in self.text:
            at = address - section.address
            if 0 <= at and at + size <= section.size:
                return self.elf.bytes[section.offset + at:section.offset + at + size]
        return b""

    def whole(self, start):
        """Returns the start of the whole function: its own start, unless it is a part such as f.cold."""
        for name in self.functions.names.get(start, ()):
            stem = PART.sub("", name)
            if stem != name and len(self.stems.get(stem, ())) == 1:
                return next(iter(self.stems[stem]))
        return start

    def function(self, address):
        start = self.functions.function(address)
        return None if start is None else self.whole(start)

    def parts(self, start):
        """The starts of a function and of the parts that were split off."""
        if self.by_whole is None:
            self.by_whole = collections.defaultdict(set)
            for part in self.functions.starts:
                self.by_whole[self.whole(part)].add(part)
        return self.by_whole.get(start, {start})

    def stem(self, start):
        """The names of a function without what compilers add to those of copies and parts."""
        names = self.functions.names.get(start, ())
        return {re.sub(r"\.(?:constprop|isra|part|cold|llvm|lto_priv)\b.*", "", n) for n in names}

    def site(self, start, end):
        """What the call that ends here is, in the function that starts there: ("direct", addresses),
        ("import", name), ("indirect", None), or None if no call ends here."""
        return self.ways(start)[0].get(end)

    def jumps(self, start):
        """Where a function jumps to outside of itself, as `site` says it."""
        return self.ways(start)[1]

    def ways(self, start):
        if start not in self.known_ways:
            self.known_ways[start] = self.read(start)
        return self.known_ways[start]

    def read(self, start):
        calls, jumps, ends = {}, [], self.functions.ends
        end = ends.get(start)
        if end is None:
            return calls, jumps
        command = ["objdump", "-d", "-w", "--no-show-raw-insn", f"--start-address={start}",
                   f"--stop-address={end}", self.path]
        before, here = None, self.instructions.setdefault(start, [])
        for line in lines(command):
            at, colon, text = line.partition(":\t")
            if not colon:
                continue
            here.append(int(at, 16))
            if before is not None:
                calls[int(at, 16)] = before
                before = None
            found = CALL.fullmatch(line.rstrip())
            if found:
                before = self.leads(found[2])
            found = JUMP.fullmatch(line.rstrip())
            if found:
                to = self.leads(found[3])
                if to[0] != "direct" or not start <= min(to[1]) < end:
                    jumps.append(to)
        if before is not None:
            calls[end] = before
        return calls, jumps

    def leads(self, operand):
        if operand.startswith("*"):
            slot = re.search(r"\(%rip\) +# (?:0x)?([0-9a-f]+)", operand)
            return self.through(int(slot[1], 16)) if slot else ("indirect", None)
        to = re.match(r"(?:0x)?([0-9a-f]+)", operand)
        if not to:
            return ("indirect", None)
        to = int(to[1], 16)
        section = self.elf.section_at(to)
        if section and section.name.startswith((".plt", ".iplt")):
            return self.stub(to)
        return ("direct", {to})

    def through(self, slot):
        target = self.slots.target(slot)
        if target is None or target[1] is None:
            return ("indirect", None)
        if target[0] == "symbol":
            return ("import", unversioned(target[1]))
        return ("indirect", None) if target[0] == "ifunc" else ("direct", {target[1]})

    def stub(self, address):
        code = self.raw(address, 16)
        at = code.find(b"\xff\x25")
        if at < 0:
            return ("indirect", None)
        to = int.from_bytes(code[at + 2:at + 6], "little", signed=True)
        return self.through(address + at + 6 + to)

    def sites_of(self, target):
        """The addresses of what may be direct calls of and jumps to an address."""
        if self.direct is None:
            self.direct = collections.defaultdict(list)
            for section in self.text:
                code = self.elf.bytes[section.offset:section.offset + section.size]
                for found in DIRECT.finditer(code):
                    field = found.end(1)
                    end = field + 4
                    to = int.from_bytes(code[field:end], "little", signed=True)
                    self.direct[section.address + end + to].append(section.address + found.start())
        return self.direct.get(target, ())

    def is_taken(self, start):
        """Whether the address of a function is in data, loaded by code, or other files may find it."""
        if start in self.exported:
            return "exported"
        if any(target == ("address", start) for target in self.slots.targets.values()):
            return "pointer in data"
        if self.leas is None:
            self.leas = set()
            for section in self.text:
                code = self.elf.bytes[section.offset:section.offset + section.size]
                for found in LEA.finditer(code):
                    end = found.end() + 4
                    to = int.from_bytes(code[found.end():end], "little", signed=True)
                    self.leas.add(section.address + end + to)
        if start in self.leas:
            return "address loaded"
        if self.elf.kind == 2 and start < 1 << 32:
            if self.elf.bytes.find(start.to_bytes(4, "little")) >= 0:
                return "constant"
        return None

    def inline(self, addresses):
        """Of each address the functions there by DWARF, innermost first."""
        new = sorted(set(addresses) - self.known_frames.keys())
        command = ["llvm-symbolizer", "--output-style=JSON", "--no-demangle", "-e", self.path]
        query = "".join(f"{address:#x}\n" for address in new)
        said = subprocess.run(command, input=query, capture_output=True, text=True, check=False).stdout
        for address, line in zip(new, said.splitlines()):
            frames = [
                Frame(f["FunctionName"], os.path.normpath(f["StartFileName"] or ""), f["StartLine"])
                for f in json.loads(line).get("Symbol", [])
            ]
            self.known_frames[address] = frames
        return {address: self.known_frames.get(address, []) for address in addresses}
