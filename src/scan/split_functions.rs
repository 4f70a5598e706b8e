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
use std::cell::OnceCell;

use rustc_hash::{FxHashMap, FxHashSet};

use super::resolve::{Kind, Site, Target};
use super::{CodeFunction, CodeFunctionId};
use crate::base::IdVec;
use crate::binary::{Binary, SymbolSource};

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
    /// What jumps to the start of a named part, whatever its name.
    jumped: By,
    back: By,
    called: bool,
}

/// Which function each belongs to: itself, if it is no part.
pub(super) struct Parts<'a> {
    binary: &'a Binary,
    whole: IdVec<CodeFunctionId, CodeFunctionId>,
    named: bool,
}

impl<'a> Parts<'a> {
    pub(super) fn find<'s>(
        binary: &'a Binary,
        functions: &IdVec<CodeFunctionId, CodeFunction>,
        sites: impl Iterator<Item = &'s Site>,
    ) -> Parts<'a> {
        let may_be: Vec<MayBe> = functions
            .iter()
            .map(|function| match binary.function_name(&function.symbol) {
                Some(name) if whole(&name) != &*name => MayBe::Named,
                None if function.symbol.source == SymbolSource::Unwind => MayBe::Nameless,
                _ => MayBe::No,
            })
            .collect();
        let may_be: IdVec<CodeFunctionId, MayBe> = may_be.into();
        let itself: Vec<CodeFunctionId> = functions.ids().collect();
        let mut parts = Parts {
            binary,
            whole: itself.into(),
            named: false,
        };
        if may_be.iter().all(|&may_be| may_be == MayBe::No) {
            return parts;
        }
        parts.named = may_be.iter().any(|&may_be| may_be == MayBe::Named);
        let mut evidence: IdVec<CodeFunctionId, Evidence> =
            IdVec::filled(Evidence::default(), functions.len());
        for site in sites {
            let Target::Function(callee) = site.target else {
                continue;
            };
            if site.kind == Kind::Back {
                let known = &mut evidence[site.caller];
                known.back = known.back.and(callee);
                continue;
            }
            let known = &mut evidence[callee];
            match (may_be[callee], site.kind) {
                (MayBe::Named, Kind::Call | Kind::Tail) if site.caller != callee => {
                    match site.kind {
                        Kind::Tail => known.jumped = known.jumped.and(site.caller),
                        _ => known.called = true,
                    }
                    let entered = known.entered;
                    evidence[callee].entered =
                        parts.nearer(functions, entered, site.caller, callee);
                }
                (MayBe::Nameless, Kind::Tail) => known.entered = known.entered.and(site.caller),
                (MayBe::Nameless, _) => known.called = true,
                _ => {}
            }
        }
        let wholes = OnceCell::new();
        let wholes = || wholes.get_or_init(|| wholes_by_name(binary, functions, &may_be));
        for (id, function) in functions.enumerate() {
            let known = evidence[id];
            let named = || match may_be[id] {
                MayBe::Named => binary.function_name(&function.symbol),
                _ => None,
            };
            let by = match (known.entered, known.jumped) {
                (By::One(by), _) => by,
                (_, jumped) => {
                    let Some(name) = named() else { continue };
                    match (wholes().get(whole(&name)), jumped) {
                        // It may be entered in its middle only.
                        (Some(By::One(by)), _) if is_moved(&name) => *by,
                        (Some(_), _) => continue,
                        // A function goes by one of its names, and its part may be named after
                        // another.
                        (None, By::One(by)) if !known.called => by,
                        (None, _) => continue,
                    }
                }
            };
            let is_part = match may_be[id] {
                MayBe::No => false,
                MayBe::Named => true,
                MayBe::Nameless => {
                    let inside = function.symbol.begins_with_a_frame() || known.back == By::One(by);
                    inside && !known.called && function.pointers_in_data == 0
                }
            };
            if is_part {
                parts.whole[id] = by;
            }
        }
        parts.shorten();
        parts
    }

    /// Of the functions that refer to a part and share its name before the suffix, the one that it
    /// belongs to: the whole one before another part of it.
    fn nearer(
        &self,
        functions: &IdVec<CodeFunctionId, CodeFunction>,
        known: By,
        caller: CodeFunctionId,
        part: CodeFunctionId,
    ) -> By {
        let (Some(from), Some(name)) = (
            self.binary.function_name(&functions[caller].symbol),
            self.binary.function_name(&functions[part].symbol),
        ) else {
            return known;
        };
        let name = whole(&name);
        if whole(&from) != name {
            return known;
        }
        let is_whole = |id: CodeFunctionId| {
            let known = self.binary.function_name(&functions[id].symbol);
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
    pub(super) fn is_inner(
        &self,
        functions: &IdVec<CodeFunctionId, CodeFunction>,
        site: &Site,
    ) -> bool {
        let Target::Function(callee) = site.target else {
            return false;
        };
        let caller = site.caller;
        let one = self.whole(caller) == self.whole(callee);
        match site.kind {
            Kind::Back => true,
            Kind::Tail => one || self.named && self.share_a_name(functions, caller, callee),
            Kind::Call => one && callee != caller && self.whole(callee) != callee,
            Kind::Import | Kind::Pointer | Kind::Inside => false,
        }
    }

    /// Whether these are two parts by name, also where the whole is not in the file.
    fn share_a_name(
        &self,
        functions: &IdVec<CodeFunctionId, CodeFunction>,
        a: CodeFunctionId,
        b: CodeFunctionId,
    ) -> bool {
        let name = |id| self.binary.function_name(&functions[id].symbol);
        match (name(a), name(b)) {
            // Two whole functions of one name are two functions.
            (Some(a), Some(b)) => whole(&a) == whole(&b) && (whole(&a) != a || whole(&b) != b),
            _ => false,
        }
    }
}

pub(super) fn split(binary: &Binary) -> FxHashSet<String> {
    let names = binary
        .functions()
        .iter()
        .filter_map(|function| binary.function_name(function));
    names
        .filter_map(|name| {
            let of = whole(&name);
            (of != name).then(|| of.to_owned())
        })
        .collect()
}

/// The functions that are no parts by name, by name.
fn wholes_by_name<'a>(
    binary: &'a Binary,
    functions: &IdVec<CodeFunctionId, CodeFunction>,
    may_be: &IdVec<CodeFunctionId, MayBe>,
) -> FxHashMap<Cow<'a, str>, By> {
    let mut wholes: FxHashMap<Cow<'a, str>, By> = FxHashMap::default();
    for (id, function) in functions.enumerate() {
        if may_be[id] == MayBe::No
            && let Some(name) = binary.function_name(&function.symbol)
        {
            let by = wholes.entry(name).or_default();
            *by = by.and(id);
        }
    }
    wholes
}

// Whether a part by name is code that was moved out of the way: `.part` may be a function that
// others call too.
fn is_moved(part: &str) -> bool {
    let mark = part.get(whole(part).len()..).unwrap_or_default();
    let moved = [".cold", ".warm", ".__part"];
    moved.iter().any(|moved| mark.starts_with(moved))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MayBe {
    No,
    Named,
    Nameless,
}

// The name of the function that a part belongs to. GCC and LLVM name parts `.cold`, `.cold.1`,
// `.part.0`, BOLT `.warm`; versions of a function for some arguments, `.constprop.0` and `.isra.0`,
// are functions of their own, unless they are versions of a part.
pub(super) fn whole(name: &str) -> &str {
    let mut from = 0;
    while let Some(dot) = name[from..].find('.').map(|dot| from + dot) {
        let suffix = &name[dot..];
        let is_part = |mark: &str| {
            suffix
                .strip_prefix(mark)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let marks = [".cold", ".part", ".__part", ".warm"];
        if dot > 0 && marks.into_iter().any(is_part) {
            return &name[..dot];
        }
        from = dot + 1;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn parts_belong_to_their_function() {
        let cases = [
            ("f", "f"),
            ("f.cold", "f"),
            ("f.cold.1", "f"),
            ("f.warm", "f"),
            ("f.part.0", "f"),
            ("f.part.0.isra.0.cold", "f"),
            ("f.constprop.0", "f.constprop.0"),
            ("f.constprop.0.cold", "f.constprop.0"),
            ("f.colder", "f.colder"),
            (".cold", ".cold"),
            ("é.cold.é", "é"),
        ];
        for (name, of) in cases {
            assert_eq!(whole(name), of, "{name}");
        }
    }
}
