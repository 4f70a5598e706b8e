"""What the lines of `objdump -d -w --no-show-raw-insn` say about calls, for each machine.

A step is (what, to): `call` and `jump` to an address, `call slot` and `jump slot` through the
pointer at an address, `call unknown` and `jump unknown` where no address is told.
"""

import re
import shutil

from objdump.elf import lines

OBJDUMPS = {183: "aarch64-linux-gnu-objdump", 243: "riscv64-linux-gnu-objdump"}
SECTION = re.compile(r"Disassembly of section (.*):")

X86 = re.compile(
    r"(?:(?:bnd|notrack|addr16|addr32|data16|rex(?:\.\w+)?|rep\w*|lock|[c-gs]s|xacquire|xrelease) )*"
    r"(call|j[a-z]+|loop[a-z]*|xbegin)[lqw]?(?:,p[nt])? +(.*)"
)
X86_SLOT = re.compile(r"\*-?(?:0x)?[0-9a-f]+\(%rip\) +# (?:0x)?([0-9a-f]+).*|\*0x([0-9a-f]+)")
ADDRESS = re.compile(r"(?:.*,\s*)?(?:0x)?([0-9a-f]+)(?: <.*>)?")
# `b.eq 1000 <f>  // b.none`: a second name of the instruction.
COMMENT = re.compile(r"\s+// .*")
ARM = re.compile(r"(bl|b|bc?\.\w+|cbn?z|tbn?z|blr\w*|br|bra[ab]z?)\t(.*)")
RISCV = re.compile(r"(jalr?|jr?|c\.jalr?|c\.jr?|b\w+|tail|call)\t(.*)")
NOTE = re.compile(r"(.*?)\s+# (?:0x)?([0-9a-f]+)(?: <.*>)?")


def x86(text):
    match = X86.fullmatch(text)
    if not match:
        return None
    what = "call" if match[1] == "call" else "jump"
    if match[2].startswith("*"):
        slot = X86_SLOT.fullmatch(match[2])
        return (what + " slot", int(slot[1] or slot[2], 16)) if slot else (what + " unknown", None)
    return constant(what, match[2])


def aarch64(text):
    match = ARM.fullmatch(text)
    if not match:
        return None
    if match[1].startswith(("blr", "br")):
        return ("call unknown" if match[1].startswith("blr") else "jump unknown"), None
    return constant("call" if match[1] == "bl" else "jump", COMMENT.sub("", match[2]))


def riscv(text):
    match = RISCV.fullmatch(text)
    if not match:
        return None
    name, operands = match[1].removeprefix("c."), match[2]
    if (name, operands) == ("jr", "t0"):
        # The other register that calls may leave their return address in.
        return None
    if name in ("jalr", "jr"):
        what = "call" if name == "jalr" else "jump"
        # `auipc` before it tells the address, which objdump then notes.
        note = NOTE.fullmatch(operands)
        return (what, int(note[2], 16)) if note else (what + " unknown", None)
    return constant("call" if name in ("jal", "call") else "jump", operands)


def constant(what, operands):
    match = ADDRESS.fullmatch(operands)
    return (what, int(match[1], 16)) if match else None


STEPS = {3: x86, 62: x86, 183: aarch64, 243: riscv}
# What a line must have to be looked at more closely.
HINTS = {3: ("call", "j", "loop", "xb"), 62: ("call", "j", "loop", "xb"), 183: ("b", "c", "t"), 243: ("j", "b", "c", "t")}


def objdump_for(machine):
    """The objdump for a machine: the one of its cross tools if there is one."""
    return OBJDUMPS.get(machine) if shutil.which(OBJDUMPS.get(machine, "")) else "objdump"


def steps(elf, objdump):
    """(address, section, text, step) of each instruction; the step is None for most."""
    step, hints, section = STEPS[elf.machine], HINTS[elf.machine], ""
    for line in lines([objdump, "-d", "-w", "--no-show-raw-insn", elf.path]):
        at, tab, text = line.partition(":\t")
        if not tab:
            match = SECTION.fullmatch(line)
            section = match[1] if match else section
            continue
        found = step(text.rstrip()) if any(hint in text for hint in hints) else None
        if found or section.startswith((".plt", ".iplt")):
            yield int(at, 16), section, text.rstrip(), found


class Stubs:
    """The stubs of linkage tables: the slot that is jumped through from an address in one."""

    # A stub has no more instructions before its jump.
    LONGEST = 4
    PAGE = re.compile(r"(?:adrp\tx16, |auipc\tt3,)(?:0x)?([0-9a-f]+).*")
    LOAD = re.compile(r"ldr\tx17, \[x16(?:, #(-?\d+))?\].*|l[dw]\tt3,(-?\d+)\(t3\).*")
    BY_EBX = re.compile(r"(?:bnd )?jmp +\*(-?0x[0-9a-f]+)\(%ebx\)")

    def __init__(self, elf):
        self.elf, self.code, self.at = elf, [], {}
        tables = {s.name: s.address for s in elf.sections}
        self.ebx = tables.get(".got.plt", tables.get(".got"))

    def add(self, address, text, step):
        self.at[address] = len(self.code)
        self.code.append((address, text, step))

    def slot(self, address):
        """The slot of the stub that starts here, if one does."""
        if address not in self.at:
            return None
        page, start = None, self.at[address]
        slot = None
        for at, text, step in self.code[start:start + self.LONGEST]:
            by_ebx = self.BY_EBX.fullmatch(text)
            load, adrp = self.LOAD.fullmatch(text), self.PAGE.fullmatch(text)
            if by_ebx and self.ebx is not None:
                return self.ebx + int(by_ebx[1], 16)
            if step and step[0] == "jump slot":
                return step[1]
            if adrp:
                page = int(adrp[1], 16)
                if self.elf.machine == 243:
                    page = at + ((page ^ 0x80000) - 0x80000 << 12)
            elif load and page is not None:
                slot = page + int(load[1] or load[2] or "0")
            elif step:
                return slot if step[0] in ("jump unknown", "call unknown") else None
        return slot
