"""The calls of a file, found with objdump and readelf only."""

import collections

from objdump.code import Stubs, objdump_for, steps
from objdump.elf import Elf, Functions, Slots, unversioned

# The size of a direct call.
CALL_SIZE = {3: 5, 62: 5, 183: 4, 243: 4}
# Of each arc so many sites are kept to be shown.
SHOWN = 3


class Oracle:
    """Arcs by (caller, callee, kind): callers are addresses, callees are addresses of functions,
    ("ifunc", address) for what is chosen at the start, or the name of an import. What a part of a
    function calls, `f.cold` or `f.part.0`, counts as called by the whole; and that the whole calls
    a part of itself is no call."""

    def __init__(self, path, objdump=None):
        self.elf = Elf(path)
        self.objdump = objdump or objdump_for(self.elf.machine)
        self.functions, self.slots = Functions(self.elf), Slots(self.elf)
        self.known = set(self.functions.starts)
        self.sites = collections.defaultdict(int)
        self.examples = collections.defaultdict(list)
        self.unknown = {what: collections.Counter() for what in ("call", "jump")}
        self.unknown_examples = {what: collections.defaultdict(list) for what in ("call", "jump")}
        self.astray, self.inside, self.outside, self.instructions = [], 0, 0, 0
        self.own, self.ifuncs = {}, {}
        self.starts_by_name = collections.defaultdict(set)
        for symbol in self.elf.dynamic:
            if symbol.section != "UND" and symbol.start in self.known:
                kinds = {"FUNC": self.own, "IFUNC": self.ifuncs}
                kinds.get(symbol.kind, {})[symbol.name] = symbol.start
        self.by_name = self.names_of_chosen()
        self.scan()

    def names_of_chosen(self):
        """What a name of an import stands for, where the file itself chooses the function."""
        names, found = {}, set()
        for kinds in (("IFUNC",), ("FUNC", "NOTYPE")):
            for symbol in self.elf.symtab + self.elf.dynamic:
                if symbol.kind in kinds and symbol.start in (found or self.known):
                    name = unversioned(symbol.name).removesuffix("_ifunc")
                    names.setdefault(name, ("ifunc", symbol.start))
            # Other names of those that choose.
            found = found or {start for _, start in names.values()}
            if not found:
                break
        return names

    def scan(self):
        self.stubs, found = Stubs(self.elf), []
        for at, section, text, step in steps(self.elf, self.objdump):
            if section.startswith((".plt", ".iplt")):
                self.stubs.add(at, text, step)
                continue
            caller = self.functions.function(at)
            if caller is None:
                self.outside += 1
                continue
            self.instructions += 1
            what, to = step
            # Most jumps stay in their function: these need not be kept.
            if what != "jump" or self.functions.function(to) != caller:
                found.append((caller, at, text, what, to))
        leads = {(caller, self.functions.function(to)) for caller, _, _, _, to in found if to}
        self.wholes = self.functions.wholes(leads)
        for caller, at, text, what, to in found:
            self.take(at, text, caller, what, to)

    def whole(self, callee):
        """The function that a part is of; what is no part, itself."""
        return self.wholes.get(callee, callee)

    def key(self, caller, callee, kind):
        """An arc by the whole functions; None for the call of a part by its own function. A jump to
        such a part stays what it is, to be seen where it is told as a tail call."""
        inside = callee in self.wholes and self.whole(callee) == self.whole(caller)
        if inside and kind == "call":
            return None
        return self.whole(caller), callee if inside else self.whole(callee), kind

    def fold(self, told):
        """Takes functions that are not among those told as parts: named ones of their wholes, nameless
        ones of the only function that jumps to them. Those that several jump to, or that are called,
        stay what they are."""
        callers = collections.defaultdict(set)
        for caller, callee, kind in self.sites:
            callers[callee].add((caller, kind))
        owners = {}
        for start in self.known - told:
            by = callers[start]
            if start not in self.functions.names and len(by) == 1 and next(iter(by))[1] == "tail":
                owners[start] = next(iter(by))[0]
        for part in self.known - told - owners.keys():
            for name in self.functions.names.get(part, ()):
                # A part of a part that is told: f.part.0.cold.
                owner = self.by_stem(name.removesuffix(".cold"))
                if name.endswith(".cold") and self.whole(owner) in told:
                    owners[part] = self.whole(owner)
        self.known -= owners.keys() | (self.wholes.keys() - told)
        for key in [key for key in self.sites if key[0] in owners or key[1] in owners]:
            caller, callee, kind = key
            sites, examples = self.sites.pop(key), self.examples.pop(key)
            whole = owners.get(caller, caller)
            # That the whole goes to its part is no call, nor is the way back; recursion is one.
            if kind == "tail" and (owners.get(callee) == whole or callee == whole):
                continue
            key = whole, owners.get(callee, callee), kind
            self.sites[key] += sites
            self.examples[key] += examples
        for counts in self.unknown.values():
            for part, owner in owners.items():
                counts[owner] += counts.pop(part, 0)

    def by_stem(self, stem):
        """The only function that has exactly this name."""
        if not self.starts_by_name:
            for start, names in self.functions.names.items():
                for name in names:
                    self.starts_by_name[name].add(start)
        starts = self.starts_by_name[stem]
        return min(starts) if len(starts) == 1 else None

    def take(self, at, text, part, what, to):
        caller = self.whole(part)
        verb, _, how = what.partition(" ")
        if how == "slot":
            target = self.slots.target(to)
        else:
            target = ("address", to) if to is not None else None
        callee = target and self.callee(target)
        if callee is None:
            if how:
                self.unknown[verb][caller] += 1
                self.note(self.unknown_examples[verb][caller], at, text)
                return
            if verb != "call" or to == at + CALL_SIZE[self.elf.machine]:
                # The call of the next instruction is how code of 32 bits finds out where it is.
                return
            # Into the middle of another function: a call of it.
            callee = self.functions.function(to) if to is not None else None
            if callee is None or callee not in self.known or self.whole(callee) == caller:
                self.astray.append((at, text))
                return
            self.inside += 1
            callee = "call", callee
        kind, callee = callee
        if verb == "jump" and kind == "call":
            if callee == part or self.functions.are_parts_of_one(part, callee):
                if how:
                    self.unknown[verb][caller] += 1
                return
            kind = "tail"
        key = self.key(part, callee, kind)
        if key is None:
            return
        self.sites[key] += 1
        self.note(self.examples[key], at, text)

    @staticmethod
    def note(examples, at, text):
        if len(examples) < SHOWN:
            examples.append((at, text))

    def callee(self, target):
        """The kind and the callee of a target, if anything starts there."""
        what, to = target
        if what == "symbol":
            for table, make in ((self.own, lambda a: a), (self.ifuncs, lambda a: ("ifunc", a))):
                if to in table:
                    return "import", make(table[to])
            return "import", unversioned(to)
        if what == "ifunc":
            return "import", ("ifunc", to)
        slot = self.stubs.slot(to)
        if slot is not None:
            target = self.slots.target(slot)
            if target is None or target[0] == "address":
                return None
            return self.callee(target)
        return ("call", to) if to in self.known else None

    def import_by_name(self, name):
        """What proftool means by the name of an import."""
        if name.startswith("*ABS*+0x"):
            return "ifunc", int(name[8:], 16)
        name = unversioned(name)
        return self.by_name.get(name, name)

    def callee_name(self, callee):
        if isinstance(callee, str):
            return callee
        if isinstance(callee, tuple):
            return f"{self.functions.name(callee[1])} (chosen at the start)"
        return f"{callee:x} {self.functions.name(callee)}"
