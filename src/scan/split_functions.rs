//! Functions that a compiler has split: which piece of code belongs to which function.
//!
//! ```text
//!   f:       …  jne f.cold ──▶ f.cold: call abort@plt
//!   f.mid:   …         ◀────── jmp f.mid            one function in two places
//! ```
//!
//! With symbols the names decide (`.cold`, `.part.0`), if one of the two goes to the other. Without
//! symbols there are only bounds. Nameless code is a part if all that refers to it are jumps of one
//! function, and either it jumps back into the middle of that one, or its unwind information says
//! that a frame is set up already where it begins. A function that is only ever reached by tail
//! calls does neither. A part that is called, or that never returns and begins without a frame,
//! cannot be distinguished from a function.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};

use super::CodeFunctionId;
use super::file_tables::FileTables;
use super::part_names::{is_moved, whole};
use super::resolve::{Kind, Site, Target};
use crate::base::{IdVec, Svma};
use crate::binary::SymbolSource;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum By {
    #[default]
    Nothing,
    One(CodeFunctionId),
    Many,
}

impl By {
    fn and(self, id: CodeFunctionId) -> By {
        match self {
            By::Nothing => By::One(id),
            By::One(known) if known == id => self,
            _ => By::Many,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Evidence {
    /// What jumps to its start; of a named part, the functions that it may belong to by name.
    entered: By,
    /// What jumps to its start, whatever its name.
    jumped: By,
    back: By,
    called: bool,
}

/// What the code that was read shows of parts.
pub(super) struct Traces<'a> {
    tables: &'a FileTables<'a>,
    /// What each function may be, once that is asked: names of large files take a while.
    may_be: IdVec<CodeFunctionId, Option<MayBe>>,
    evidence: IdVec<CodeFunctionId, Evidence>,
    /// Those that may be parts and are jumped to.
    jumped_to: Vec<CodeFunctionId>,
}

impl<'a> Traces<'a> {
    pub(super) fn new(tables: &'a FileTables<'a>) -> Traces<'a> {
        let count = tables.symbols.len();
        Traces {
            tables,
            may_be: IdVec::filled(None, count),
            evidence: IdVec::filled(Evidence::default(), count),
            jumped_to: Vec::new(),
        }
    }

    pub(super) fn add<'s>(&mut self, sites: impl Iterator<Item = &'s Site>) {
        for site in sites {
            let Target::Function(callee) = site.target else {
                continue;
            };
            if site.kind == Kind::Back {
                let known = &mut self.evidence[site.caller];
                known.back = known.back.and(callee);
                continue;
            }
            let may_be = self.may_be(callee);
            let known = &mut self.evidence[callee];
            if site.kind == Kind::Tail && may_be != MayBe::No && known.jumped == By::Nothing {
                self.jumped_to.push(callee);
            }
            match (may_be, site.kind) {
                (MayBe::Named, Kind::Call | Kind::Tail) if site.caller != callee => {
                    match site.kind {
                        Kind::Tail => known.jumped = known.jumped.and(site.caller),
                        _ => known.called = true,
                    }
                    let entered = known.entered;
                    self.evidence[callee].entered = self.nearer(entered, site.caller, callee);
                }
                (MayBe::Nameless, Kind::Tail) => {
                    known.jumped = known.jumped.and(site.caller);
                    known.entered = known.jumped;
                }
                (MayBe::Nameless, _) => known.called = true,
                _ => {}
            }
        }
    }

    /// The parts of a file of which all code was added.
    pub(super) fn parts(mut self, has_pointers: impl Fn(CodeFunctionId) -> bool) -> Parts<'a> {
        let all: Vec<CodeFunctionId> = self.tables.symbols.ids().collect();
        let wholes = self.wholes_by_name(&all);
        self.decide(&all, &wholes, has_pointers)
    }

    /// The functions that have to be parts of something or not for the calls of `read` to be
    /// known: these, and what they jump to.
    pub(super) fn asked(&self, read: &FxHashSet<CodeFunctionId>) -> Vec<CodeFunctionId> {
        let mut asked: Vec<CodeFunctionId> = read.iter().chain(&self.jumped_to).copied().collect();
        asked.sort_unstable();
        asked.dedup();
        asked
    }

    /// Those of these functions whose own code can show that they are no parts, and was not read.
    pub(super) fn unread(
        &mut self,
        asked: &[CodeFunctionId],
        read: &FxHashSet<CodeFunctionId>,
    ) -> FxHashSet<CodeFunctionId> {
        let unread = asked.iter().filter(|&&id| {
            let known = self.evidence[id];
            let is_nameless = self.may_be(id) == MayBe::Nameless;
            is_nameless && !known.called && known.entered != By::Many && !read.contains(&id)
        });
        unread.copied().collect()
    }

    /// The parts among these functions, if all code was added that shares a name with them. `None`
    /// where code that was not added may tell otherwise.
    pub(super) fn parts_among(mut self, asked: &[CodeFunctionId]) -> Option<Parts<'a>> {
        let wholes = self.wholes_by_name(asked);
        let is_open = asked.iter().any(|&id| {
            let known = self.evidence[id];
            match (self.may_be(id), known.entered) {
                (MayBe::No, _) | (MayBe::Named, By::One(_)) => false,
                (MayBe::Named, _) => self.whole_by_name(id, &wholes) == By::Nothing,
                (MayBe::Nameless, _) if known.called => false,
                (MayBe::Nameless, By::Many) => false,
                (MayBe::Nameless, _) if self.tables.symbols[id].begins_with_a_frame() => true,
                (MayBe::Nameless, By::Nothing) => known.back != By::Nothing,
                (MayBe::Nameless, by) => known.back == by,
            }
        });
        (!is_open).then(|| self.decide(asked, &wholes, |_| false))
    }

    fn may_be(&mut self, id: CodeFunctionId) -> MayBe {
        let tables = self.tables;
        *self.may_be[id].get_or_insert_with(|| {
            if tables.is_named_as_part(id) {
                MayBe::Named
            } else if tables.symbols[id].source == SymbolSource::Unwind && tables.name(id).is_none()
            {
                MayBe::Nameless
            } else {
                MayBe::No
            }
        })
    }

    /// Of the functions that refer to a part and share its name before the suffix, the one that it
    /// belongs to: the whole one before another part of it.
    fn nearer(&self, known: By, caller: CodeFunctionId, part: CodeFunctionId) -> By {
        let (Some(from), Some(name)) = (self.tables.name(caller), self.tables.name(part)) else {
            return known;
        };
        let name = whole(&name);
        if whole(&from) != name {
            return known;
        }
        let is_whole = |id: CodeFunctionId| {
            let known = self.tables.name(id);
            known.unwrap_or(Cow::Borrowed("")) == name
        };
        match known {
            By::One(before) if before != caller => match (is_whole(before), is_whole(caller)) {
                (true, true) => By::Many,
                (false, true) => By::One(caller),
                _ => known,
            },
            _ => known.and(caller),
        }
    }

    /// For the parts among these that nothing of their name enters, the functions of their names
    /// without the suffix.
    fn wholes_by_name(&mut self, asked: &[CodeFunctionId]) -> FxHashMap<String, By> {
        let mut wholes: FxHashMap<String, By> = FxHashMap::default();
        for &id in asked {
            let is_entered = matches!(self.evidence[id].entered, By::One(_));
            if !is_entered
                && self.may_be(id) == MayBe::Named
                && let Some(name) = self.tables.name(id)
            {
                wholes.insert(whole(&name).to_owned(), By::Nothing);
            }
        }
        if wholes.is_empty() {
            return wholes;
        }
        let names = wholes.keys().map(String::as_str).collect();
        for id in self.tables.named(&names) {
            let name = self.tables.name(id);
            if let Some(by) = name.and_then(|name| wholes.get_mut(&*name)) {
                *by = by.and(id);
            }
        }
        wholes
    }

    fn whole_by_name(&self, part: CodeFunctionId, wholes: &FxHashMap<String, By>) -> By {
        let name = self.tables.name(part);
        let known = name.and_then(|name| wholes.get(whole(&name)));
        known.copied().unwrap_or_default()
    }

    fn decide(
        &mut self,
        asked: &[CodeFunctionId],
        wholes: &FxHashMap<String, By>,
        has_pointers: impl Fn(CodeFunctionId) -> bool,
    ) -> Parts<'a> {
        let mut parts = Parts::none(self.tables);
        for &id in asked {
            let (known, may_be) = (self.evidence[id], self.may_be(id));
            parts.named |= may_be == MayBe::Named;
            let is_moved = || self.tables.name(id).is_some_and(|name| is_moved(&name));
            let by = match (known.entered, known.jumped) {
                (By::One(by), _) => by,
                (_, jumped) if may_be == MayBe::Named => {
                    match (self.whole_by_name(id, wholes), jumped) {
                        // It may be entered in its middle only.
                        (By::One(by), _) if is_moved() => by,
                        // A function goes by one of its names, and its part may be named after
                        // another.
                        (By::Nothing, By::One(by)) if !known.called => by,
                        _ => continue,
                    }
                }
                _ => continue,
            };
            let is_part = match may_be {
                MayBe::No => false,
                MayBe::Named => true,
                MayBe::Nameless => {
                    let symbol = &self.tables.symbols[id];
                    let inside = symbol.begins_with_a_frame() || known.back == By::One(by);
                    inside && !known.called && !has_pointers(id)
                }
            };
            if is_part {
                parts.whole[id] = by;
            }
        }
        parts.shorten();
        parts
    }
}

/// Which function each belongs to: itself, if it is no part.
pub(super) struct Parts<'a> {
    tables: &'a FileTables<'a>,
    whole: IdVec<CodeFunctionId, CodeFunctionId>,
    named: bool,
}

impl<'a> Parts<'a> {
    fn none(tables: &'a FileTables<'a>) -> Parts<'a> {
        let itself: Vec<CodeFunctionId> = tables.symbols.ids().collect();
        Parts {
            tables,
            whole: itself.into(),
            named: false,
        }
    }

    /// The parts that are known already: each with the function that it belongs to, by start.
    pub(super) fn known(tables: &'a FileTables<'a>, known: &[(Svma, Svma)]) -> Parts<'a> {
        let mut parts = Parts::none(tables);
        parts.named = true;
        for &(part, whole) in known {
            if let (Some(part), Some(whole)) = (tables.starting_at(part), tables.starting_at(whole))
            {
                parts.whole[part] = whole;
            }
        }
        parts
    }

    pub(super) fn tables(&self) -> &'a FileTables<'a> {
        self.tables
    }

    /// The parts of these functions, and these.
    pub(super) fn with_parts(&self, wholes: &[CodeFunctionId]) -> FxHashSet<CodeFunctionId> {
        let mut all: FxHashSet<CodeFunctionId> = wholes.iter().copied().collect();
        let parts = self
            .whole
            .enumerate()
            .filter(|(_, whole)| all.contains(whole));
        let parts: Vec<CodeFunctionId> = parts.map(|(part, _)| part).collect();
        all.extend(parts);
        all
    }

    /// Parts of parts belong to the function at the end; of a circle of parts, which nothing
    /// enters, to one of them.
    fn shorten(&mut self) {
        let mut on_path: IdVec<CodeFunctionId, bool> = IdVec::filled(false, self.whole.len());
        let mut path = Vec::new();
        for start in self.whole.ids() {
            // What has been shortened is one step from its end.
            let mut at = start;
            while !on_path[at] && self.whole[at] != at {
                on_path[at] = true;
                path.push(at);
                at = self.whole[at];
            }
            self.whole[at] = at;
            for id in path.drain(..) {
                self.whole[id] = at;
                on_path[id] = false;
            }
        }
    }

    pub(super) fn whole(&self, id: CodeFunctionId) -> CodeFunctionId {
        self.whole[id]
    }

    // Whether a reference to a function only holds the parts of one together. A call of the
    // function's own start from one of its parts is recursion, and so is a part's call of itself.
    pub(super) fn is_inner(&self, site: &Site) -> bool {
        let Target::Function(callee) = site.target else {
            return false;
        };
        let caller = site.caller;
        let one = self.whole(caller) == self.whole(callee);
        match site.kind {
            Kind::Back => true,
            Kind::Tail => one || self.named && self.share_a_name(caller, callee),
            Kind::Call => one && callee != caller && self.whole(callee) != callee,
            Kind::Import | Kind::Pointer | Kind::Inside => false,
        }
    }

    /// Whether these are two parts by name, also where the whole is not in the file.
    fn share_a_name(&self, a: CodeFunctionId, b: CodeFunctionId) -> bool {
        if !self.tables.may_share_a_name(a, b) {
            return false;
        }
        match (self.tables.name(a), self.tables.name(b)) {
            // Two whole functions of one name are two functions.
            (Some(a), Some(b)) => whole(&a) == whole(&b) && (whole(&a) != a || whole(&b) != b),
            _ => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MayBe {
    No,
    Named,
    Nameless,
}
