//! Which entries of debug information are copies of one function.
//!
//! ```text
//!   inlined copy in a.c ─┐
//!   inlined copy in b.c ─┼─▶ definition ─▶ key ─▶ class ─▶ start of the out-of-line copy, if any
//!   code of f ───────────┘                  │
//!                                           ├─ External  linkage name: one in the file
//!                                           ├─ Declared  name, file and line, and the unit if
//!                                           │            the file is the unit's main source
//!                                           └─ Entry     nothing is known but the entry itself
//! ```
//!
//! Names alone never make two definitions one. Different linkage names are different functions, so
//! a symbol stands for a linkage name that debug information leaves out. A header's `static inline`
//! function that is compiled twice is one function, as name and declaration are equal. Where debug
//! information does not say where functions are declared (line tables only), two definitions of
//! different units are one if they have the same name and their code comes from overlapping lines
//! of one file. All instances of a template have its name and its lines, so in C++ each such entry
//! is a function of its own.
//!
//! A clone that compilers make for some callers (`f.constprop.0`, `f.isra.0`) has a definition too,
//! that of `f`: it is `f`. A part of a function that was moved elsewhere is not a copy.

mod key;

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::base::Svma;
use crate::binary::{Declared, DefinitionId, Described, Lines};
use crate::trace::ImageId;

use self::key::{Declaration, Key, first_lines};
use super::limits::TextLeft;
use super::names::{Names, without_link_mark};

// How many functions of one name are compared with a definition.
const CANDIDATES: usize = 64;

/// Functions that debug information knows.
#[derive(Default)]
pub(super) struct FunctionCopies {
    by_definition: FxHashMap<(ImageId, DefinitionId), Option<usize>>,
    by_key: FxHashMap<(ImageId, Key), usize>,
    /// The units that have functions of their own by a declaration, each once.
    units: FxHashMap<(ImageId, Declaration), Vec<u64>>,
    by_code: FxHashMap<(ImageId, u64), DefinitionId>,
    /// The classes of these, by where that code starts.
    instances: FxHashMap<(ImageId, u64), usize>,
    classes: Vec<Class>,
    first_copies: FxHashMap<(ImageId, u64), u64>,
    /// The linkage names of the functions whose clones start there.
    cloned: FxHashMap<(ImageId, u64), String>,
    pub(super) text: TextLeft,
}

/// One function.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) name: String,
    /// Its template arguments, as the source language writes them: `<alloc::string::String>`.
    pub(super) arguments: Option<String>,
    pub(super) declared: Option<(String, u32)>,
    /// Whether this is from debug information.
    pub(super) is_declared: bool,
    /// The number of the class, equal for all its copies.
    pub(super) id: usize,
    pub(super) start: Option<u64>,
    pub(super) described: Described,
}

/// Where to look for an out-of-line copy.
pub(super) struct CopySource<'p, 'a> {
    pub(super) image: ImageId,
    pub(super) lines: &'p Lines<'a>,
    pub(super) names: &'p Names<'a>,
}

impl FunctionCopies {
    /// Takes note of the definitions of an image that samples hit, and of the functions with code,
    /// by start and symbol, that stem from them.
    pub(super) fn learn(
        &mut self,
        place: &CopySource<'_, '_>,
        definitions: &[DefinitionId],
        code: &[(u64, Cow<'_, str>, DefinitionId)],
    ) {
        let mut described: Vec<(DefinitionId, Described)> = definitions
            .iter()
            .filter_map(|&id| Some((id, self.describe(place, id)?)))
            .collect();
        // Units that were repeated come after those that have the code.
        described.sort_by_key(|(_, described)| !described.has_unit_code);
        let first_lines = first_lines(&described);
        for (id, described) in described {
            let first = first_lines.get(&described.root).cloned();
            self.add(place, id, described, first);
        }
        // A copy under the function's own name is the first, wherever its clones are.
        for is_clone in [false, true] {
            for (start, symbol, id) in code {
                let (&start, &id) = (start, id);
                let of = if is_clone {
                    original(symbol)
                } else {
                    Some(symbol.as_ref())
                };
                let class = self.by_definition.get(&(place.image, id));
                let (Some(of), Some(class)) = (of, class.copied().flatten()) else {
                    continue;
                };
                if self.classes.get(class).is_some_and(|c| c.is_of(of)) {
                    self.add_start(place.image, class, start);
                    if is_clone {
                        self.cloned.insert((place.image, start), of.to_owned());
                    }
                }
            }
        }
    }

    /// The number of the class of a definition that was asked for before.
    pub(super) fn known(&self, image: ImageId, id: DefinitionId) -> Option<usize> {
        self.by_definition.get(&(image, id)).copied().flatten()
    }

    pub(super) fn cloned(&self, image: ImageId, start: u64) -> Option<&str> {
        self.cloned.get(&(image, start)).map(String::as_str)
    }

    pub(super) fn class(&mut self, place: &CopySource<'_, '_>, id: DefinitionId) -> Option<&Class> {
        let known = self.by_definition.get(&(place.image, id)).copied();
        let class = match known {
            Some(class) => class,
            None => {
                let described = self.describe(place, id);
                described.and_then(|described| {
                    let first_line = match &described.declared {
                        Some(Declared::Lines(file, first, _)) => Some((file.clone(), *first)),
                        _ => None,
                    };
                    self.add(place, id, described, first_line)
                })
            }
        };
        self.by_definition.insert((place.image, id), class);
        self.classes.get(class?)
    }

    pub(super) fn first_copy(&self, image: ImageId, start: u64) -> u64 {
        let first = self.first_copies.get(&(image, start));
        first.copied().unwrap_or(start)
    }

    /// Where functions start of which other copies are known.
    pub(super) fn starts(&self) -> impl Iterator<Item = (ImageId, u64)> {
        let starts = self.first_copies.keys().chain(self.instances.keys());
        starts.copied()
    }

    /// The number of the class whose code starts here, if no sample was taken in that code and only
    /// its symbol names the inlined copies.
    pub(super) fn inlined_at(&self, image: ImageId, start: u64) -> Option<usize> {
        let class = *self.instances.get(&(image, start))?;
        let is_inlined = self.classes.get(class)?.start.is_none();
        is_inlined.then_some(class)
    }

    /// What debug information says of a definition, as long as there is room for names.
    fn describe(&mut self, place: &CopySource<'_, '_>, id: DefinitionId) -> Option<Described> {
        if !self.text.has_names(place.image, id) {
            return None;
        }
        let mut described = place.lines.describe(id)?;
        if let Some(start) = described.code {
            let root = self.by_code.entry((place.image, start));
            // Where the linker folded the code of several functions, its name is that of one.
            if *root.or_insert(described.root) == described.root {
                described.linkage_name = linkage_name(place, &described, start);
            }
        }
        let texts = [
            &described.linkage_name,
            &described.name,
            &described.qualified_name,
        ];
        let bytes: usize = texts.into_iter().flatten().map(String::len).sum();
        let path = match &described.declared {
            Some(Declared::At(path, _) | Declared::Lines(path, ..)) => path.len(),
            None => 0,
        };
        self.text.take_name(bytes.saturating_add(path));
        Some(described)
    }

    fn add(
        &mut self,
        place: &CopySource<'_, '_>,
        id: DefinitionId,
        described: Described,
        first_line: Option<(String, u32)>,
    ) -> Option<usize> {
        let starts = out_of_line(place, &described);
        let code = described.code.filter(|_| described.linkage_name.is_some());
        let mut key = Key::of(&described, first_line.as_ref());
        if let Key::Declared { declaration, unit } = &mut key
            && described.is_of_main_source
        {
            let units = self.units.entry((place.image, declaration.clone()));
            let units = units.or_default();
            if described.has_unit_code || !starts.is_empty() {
                *unit = Some(described.unit);
                if !units.contains(&described.unit) {
                    units.push(described.unit);
                }
            } else if let [only] = units[..] {
                // Link-time optimization repeats units for what it inlines elsewhere.
                *unit = Some(only);
            }
        }
        let class = match self.by_key.get(&(place.image, key.clone())) {
            Some(&known) => known,
            None => {
                // What has no name is no function of its own.
                let class = self.classes.len();
                self.classes.push(Class::new(class, described, first_line)?);
                self.by_key.insert((place.image, key), class);
                class
            }
        };
        self.by_definition.insert((place.image, id), Some(class));
        if let Some(code) = code {
            self.instances.insert((place.image, code), class);
        }
        for start in starts {
            self.add_start(place.image, class, start);
        }
        Some(class)
    }

    fn add_start(&mut self, image: ImageId, class: usize, start: u64) {
        let Some(class) = self.classes.get_mut(class) else {
            return;
        };
        match class.start {
            Some(first) if first != start => {
                self.first_copies.insert((image, start), first);
            }
            _ => class.start = Some(start),
        }
    }
}

impl Class {
    fn new(id: usize, described: Described, first_line: Option<(String, u32)>) -> Option<Class> {
        let name = described
            .linkage_name
            .as_ref()
            .or(described.qualified_name.as_ref())?
            .clone();
        let arguments = described.name.as_ref().and_then(|name| {
            let at = name.find('<').filter(|&at| at > 0 && name.ends_with('>'))?;
            (!name.starts_with("operator")).then(|| name.split_at(at).1.to_owned())
        });
        let declared = match &described.declared {
            Some(Declared::At(file, line)) => Some((file.clone(), *line)),
            Some(Declared::Lines(file, first, _)) => {
                Some(first_line.unwrap_or_else(|| (file.clone(), *first)))
            }
            None => None,
        };
        Some(Class {
            name,
            arguments,
            declared,
            is_declared: matches!(described.declared, Some(Declared::At(..))),
            id,
            start: None,
            described,
        })
    }

    /// The name in the source, where the linkage name leaves out what the function is: a closure,
    /// the body of an `async` function, or one that such a body is an argument of.
    pub(super) fn source_name(&self) -> Option<&str> {
        let name = self.described.name.as_deref();
        let says_more = |name: &&str| {
            name.starts_with("{closure#") || name.contains("{async_") || name.contains("{gen_")
        };
        name.filter(says_more)
    }

    pub(super) fn is_inlined(&self) -> bool {
        self.described.is_inlined
    }

    /// Whether a symbol is the function's own, not that of a clone or a part.
    fn is_of(&self, symbol: &str) -> bool {
        let symbol = without_link_mark(without_version(symbol));
        if let Some(linkage_name) = &self.described.linkage_name {
            return without_link_mark(linkage_name) == symbol
                || variants(linkage_name).iter().any(|name| name == symbol);
        }
        let name = self.described.name.as_deref();
        name.is_some_and(|name| name == symbol || is_linkage_name(symbol, name))
    }

    pub(super) fn is_of_part(&self, symbol: &str) -> bool {
        let stem = symbol
            .get(1..)
            .and_then(|rest| rest.find('.'))
            .map_or(symbol, |at| symbol.split_at(at.saturating_add(1)).0);
        self.is_of(symbol) || self.is_of(stem)
    }
}

/// Whether a symbol may be the linkage name of a function without one in the debug information: it
/// has the plain name in it.
fn is_linkage_name(symbol: &str, name: &str) -> bool {
    // The entry of the code itself leads to the definition, so this is only to tell the function
    // from its clones.
    let plain = name.split('<').next().unwrap_or(name);
    let part = match plain {
        "operator()" => "clE".to_owned(),
        plain => format!("{}{plain}", plain.len()),
    };
    symbol.starts_with("_Z") && !symbol.contains('.') && symbol.contains(&part)
}

fn linkage_name(place: &CopySource<'_, '_>, described: &Described, start: u64) -> Option<String> {
    let symbol = place.names.at(place.image, start)?;
    let symbol = without_link_mark(without_version(&symbol));
    let symbol = original(symbol).unwrap_or(symbol);
    let name = described.name.as_deref()?;
    is_linkage_name(symbol, name).then(|| symbol.to_owned())
}

/// The starts of the out-of-line copies of a definition, in order.
fn out_of_line(place: &CopySource<'_, '_>, described: &Described) -> Vec<u64> {
    let linkage_name = described.linkage_name.as_deref();
    let name = linkage_name.or(described.name.as_deref());
    let Some(name) = name.filter(|_| !described.may_be_instance) else {
        return Vec::new();
    };
    let mut starts: Vec<u64> = place.names.starts(place.image, name).collect();
    for name in linkage_name.map(variants).unwrap_or_default() {
        starts.extend(place.names.starts(place.image, &name));
    }
    if described.is_external && linkage_name.is_some() && starts.len() == 1 {
        return starts;
    }
    starts.truncate(CANDIDATES);
    starts.retain(|&start| match place.lines.definition_at(Svma(start)) {
        Some(found) => found.root == described.root,
        // Line tables alone leave out functions into which nothing is inlined.
        None => match (&described.declared, place.lines.line_at(Svma(start))) {
            (Some(Declared::Lines(file, first, _)), Some((path, line))) => {
                path == file && line <= *first
            }
            _ => false,
        },
    });
    starts.sort_unstable();
    starts.dedup();
    // The kinds of a constructor are functions of their own: what is inlined is one of them.
    if linkage_name.is_some_and(|name| !variants(name).is_empty()) {
        starts.truncate(1);
    }
    starts
}

fn variants(linkage_name: &str) -> Vec<String> {
    let kinds: [(&str, &[&str]); 2] = [("C4E", &["C1E", "C2E"]), ("D4E", &["D1E", "D2E", "D0E"])];
    for (all, kinds) in kinds {
        if let Some((before, after)) = linkage_name.rsplit_once(all) {
            let name = |kind: &&str| format!("{before}{kind}{after}");
            return kinds.iter().map(name).collect();
        }
    }
    Vec::new()
}

pub(super) fn is_clone(symbol: &str) -> bool {
    original(symbol).is_some()
}

/// The name of the function that a clone by its name is all of: `f` of `f.isra.0` and of
/// `f.constprop.0.isra.0`.
fn original(symbol: &str) -> Option<&str> {
    // A part (`f.part.0`, `f.cold`) is not all of it.
    let mut name = symbol;
    while let Some((before, number)) = name.rsplit_once('.')
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        let marks = [".isra", ".constprop", ".lto_priv"].into_iter();
        let Some(stem) = marks.filter_map(|mark| before.strip_suffix(mark)).next() else {
            break;
        };
        name = stem;
    }
    let is_part = name.contains(".part.") || name.contains(".cold");
    (name.len() < symbol.len() && !name.is_empty() && !is_part).then_some(name)
}

fn without_version(symbol: &str) -> &str {
    symbol.split_once('@').map_or(symbol, |(name, _)| name)
}
