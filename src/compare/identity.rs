//! What a function is called in any build.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::Side;
use crate::base::Language;
use crate::names::stem;
use crate::profile::{Function, FunctionKind, Line, Profile};

/// The name of all code of a module that has no symbols: its addresses differ from build to build.
pub(super) const NO_SYMBOL: &str = "[no symbol]";

/// A function as it is recognized in other builds: clones and parts that the compiler split off are
/// one with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    /// The name without what differs from build to build.
    pub stem: Box<str>,
    /// The module, without the version of a library.
    pub module: Box<str>,
    /// The last part of the path of the file that declares it, as directories differ.
    pub file: Option<Box<str>>,
}

impl Identity {
    // `None` for marks, which are no functions.
    fn of(profile: &Profile, function: &Function) -> Option<Identity> {
        let file = match function.kind {
            FunctionKind::Mark => return None,
            FunctionKind::Unknown => None,
            FunctionKind::Named | FunctionKind::Row => {
                let line = function.declared_at.as_ref();
                line.map(|line| line.file.rsplit('/').next().unwrap_or(&line.file))
            }
        };
        Some(Identity {
            stem: stem(name(function)).into(),
            module: without_version(&profile.modules[function.module].name).into(),
            file: file.map(Into::into),
        })
    }
}

fn name(function: &Function) -> &str {
    match function.kind {
        FunctionKind::Unknown => NO_SYMBOL,
        _ => &function.name,
    }
}

/// What a side shows of it.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    /// The full name, as it is in the side's first run that has it.
    pub name: Box<str>,
    /// The name in the symbol table, where it differs.
    pub linkage_name: Option<Box<str>>,
    /// The module's name.
    pub module: Box<str>,
    /// What the name is written in.
    pub language: Language,
    /// Where it is declared, if that is known.
    pub declared_at: Option<Box<Line>>,
}

/// The functions of all runs, numbered.
#[derive(Debug, Default)]
pub(super) struct Identities {
    numbers: FxHashMap<Identity, u32>,
    shown: Vec<(Identity, [Option<Shown>; 2])>,
}

impl Identities {
    /// The number of a function; `None` for marks, which are no functions.
    pub fn number(&mut self, side: Side, profile: &Profile, function: &Function) -> Option<u32> {
        let identity = Identity::of(profile, function)?;
        let next = self.shown.len() as u32;
        let number = *self.numbers.entry(identity.clone()).or_insert(next);
        if number == next {
            self.shown.push((identity, [None, None]));
        }
        let shown = &mut self.shown[number as usize].1[side as usize];
        shown.get_or_insert_with(|| Shown {
            name: name(function).into(),
            linkage_name: function.linkage_name.clone(),
            module: profile.modules[function.module].name.as_str().into(),
            language: function.language,
            declared_at: function.declared_at.clone(),
        });
        Some(number)
    }

    /// The number that a function has already.
    pub fn find(&self, profile: &Profile, function: &Function) -> Option<u32> {
        self.numbers.get(&Identity::of(profile, function)?).copied()
    }

    pub fn len(&self) -> usize {
        self.shown.len()
    }

    pub fn identity(&self, number: u32) -> &Identity {
        &self.shown[number as usize].0
    }

    /// What a side shows of a function; `None` if it does not have it.
    pub fn shown(&self, side: Side, number: u32) -> Option<&Shown> {
        self.shown[number as usize].1[side as usize].as_ref()
    }
}

// `libz.so.1.2.13` and `libz.so.1.3` are one library, and generated code is that of any process.
fn without_version(module: &str) -> Cow<'_, str> {
    if module.starts_with('[') {
        let letters = module.chars().filter(|c| !c.is_ascii_digit());
        return letters.collect::<String>().into();
    }
    match module.find(".so.") {
        Some(end) => module[..end + ".so".len()].into(),
        None => module.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_the_same_in_any_version() {
        assert_eq!(without_version("libz.so.1.2.13"), "libz.so");
        assert_eq!(without_version("libz.so"), "libz.so");
        assert_eq!(without_version("app-2"), "app-2");
        assert_eq!(without_version("[generated 4711]"), "[generated ]");
    }
}
