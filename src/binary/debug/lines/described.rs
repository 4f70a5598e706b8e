//! The properties that distinguish a definition from others, read when they are needed.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::definition::{self, DebugFile, Definition, DefinitionId};
use super::unit::Unit;
use super::{Debug, DefinitionKey, Lines, scopes, stated, text};
use crate::base::{Language, Svma};

/// Where a function is in the source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Declared {
    /// It is declared there: file and line.
    At(String, u32),
    /// It is not stated; the first and the last line of a file that its code comes from.
    Lines(String, u32, u32),
}

/// What is known of a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Described {
    /// Identifies the unit in which it is defined. Two entries of one unit are two functions.
    pub unit: u64,
    /// The last entry of its chain, by which all copies of the function are known.
    pub root: DefinitionId,
    /// Whether no other function of the file has its linkage name.
    pub is_external: bool,
    /// Whether it was inlined somewhere in its unit.
    pub is_inlined: bool,
    /// The linkage name, not demangled.
    pub linkage_name: Option<String>,
    /// The name as the source has it, with template arguments, without what it is qualified by.
    pub name: Option<String>,
    /// The name for people where there is no linkage name, qualified as far as is known.
    pub qualified_name: Option<String>,
    /// The language of its unit, if that is known.
    pub language: Language,
    /// Where it is in the source.
    pub declared: Option<Declared>,
    /// Whether it is declared in the source that was compiled, not in a file that others include.
    pub is_of_main_source: bool,
    /// Whether its unit has code. One that link-time optimization made for copies has none.
    pub has_unit_code: bool,
    /// Whether it may be one of several instances of a template: without linkage name and types.
    pub may_be_instance: bool,
    /// Where its code starts, if it has code in its unit and may be any of several instances.
    pub code: Option<u64>,
    /// The directory in which the compiler of its unit ran.
    pub directory: Option<String>,
}

impl Lines<'_> {
    /// The definition of the function around `address`, by debug information.
    pub fn definition_at(&self, address: Svma) -> Option<DefinitionKey> {
        let kept = self.kept();
        if let Some(known) = kept.and_then(|kept| kept.around(address.0)) {
            return known;
        }
        let debug = self.debug()?;
        let mut units = units_at(debug, address);
        let found = units.find_map(|unit| unit.definition(address.0, debug));
        if let Some(kept) = kept {
            let name = found.and_then(Definition::any_name).map(text);
            let found = found.map(|found| (found.key(), name.as_deref()));
            kept.add_around(address.0, found);
        }
        found.map(Definition::key)
    }

    /// The source line of `address`: file and line.
    pub fn line_at(&self, address: Svma) -> Option<(&str, u32)> {
        let kept = self.kept();
        if let Some(known) = kept.and_then(|kept| kept.line(address.0)) {
            return known;
        }
        let debug = self.debug()?;
        let mut units = units_at(debug, address);
        let found = units.find_map(|unit| unit.row(address.0, debug));
        if let Some(kept) = kept {
            kept.add_line(address.0, found);
        }
        found
    }

    /// Returns the mangled linkage name of a definition, or else its plain name.
    pub fn name(&self, id: DefinitionId) -> Option<Cow<'_, str>> {
        if let Some(known) = self.kept().and_then(|kept| kept.name(id)) {
            return known.map(Cow::Borrowed);
        }
        let debug = self.debug()?;
        let definition = definition::of(definition::at(id, debug)?, debug)?;
        definition.any_name().map(text)
    }

    /// What is known of the definition with this id, which [`Lines::frames`] gave.
    pub fn describe(&self, id: DefinitionId) -> Option<Described> {
        let kept = self.kept();
        if let Some(known) = kept.and_then(|kept| kept.described(id)) {
            return known;
        }
        let described = self.debug().and_then(|debug| described(id, debug));
        if let Some(kept) = kept {
            kept.add_described(id, described.as_ref());
        }
        described
    }
}

fn described(id: DefinitionId, debug: &Debug<'_>) -> Option<Described> {
    let definition = definition::of(definition::at(id, debug)?, debug)?;
    let owned = |name: &[u8]| text(name).into_owned();
    let declared = declared(&definition, debug);
    let place = match &declared {
        Some(Declared::At(path, _) | Declared::Lines(path, ..)) => Some(stated::normal(path)),
        None => None,
    };
    let unit = unit_of(definition.root, debug);
    let main_source = unit.and_then(|unit| unit.main_source(debug));
    let functions = unit.map(|unit| unit.functions(debug));
    let may_be_instance = may_be_instance(&definition, debug);
    let origin = gimli::UnitOffset(definition.id.entry);
    let code = functions.filter(|_| may_be_instance);
    Some(Described {
        unit: definition.id.unit as u64 ^ (split_number(definition.id) << 40),
        root: definition.root,
        is_external: definition.is_external,
        is_inlined: definition.is_inlined,
        linkage_name: definition.linkage_name.map(owned),
        name: definition.name.map(owned),
        qualified_name: qualified(&definition, debug),
        language: definition::at(definition.root, debug)
            .map_or(Language::Unknown, |at| scopes::names_language(at.unit)),
        is_of_main_source: main_source.is_some_and(|main| Some(stated::normal(&main)) == place),
        has_unit_code: functions.is_some_and(|functions| !functions.is_empty()),
        may_be_instance,
        code: code.and_then(|functions| functions.start(origin)),
        declared,
        directory: unit_of(id, debug).and_then(|unit| unit.directory().map(owned)),
    })
}

fn may_be_instance(definition: &Definition<'_>, debug: &Debug<'_>) -> bool {
    let root = definition.root;
    if definition.linkage_name.is_some() || root.place == DebugFile::Supplement {
        return false;
    }
    let Some((at, unit)) = definition::at(root, debug).zip(unit_of(root, debug)) else {
        return false;
    };
    (scopes::names_language(at.unit) == Language::Cpp) && !unit.scopes(debug).has_types
}

fn split_number(id: DefinitionId) -> u64 {
    match id.place {
        DebugFile::Main => 0,
        DebugFile::Supplement => 1,
        DebugFile::Split(unit) => (unit as u64).saturating_add(2),
    }
}

fn units_at<'l, 'b>(debug: &'l Debug<'b>, address: Svma) -> impl Iterator<Item = &'l Unit<'b>> {
    let candidates = debug.units.candidates(address.0, debug);
    candidates.filter_map(|index| debug.units.unit(index, &debug.dwarf, &debug.account))
}

fn unit_of<'l, 'b>(id: DefinitionId, debug: &'l Debug<'b>) -> Option<&'l Unit<'b>> {
    let (units, dwarf) = match id.place {
        DebugFile::Main => (&debug.units, &debug.dwarf),
        DebugFile::Supplement => (debug.supplement.as_ref()?, debug.dwarf.sup()?),
        DebugFile::Split(index) => return debug.units.unit(index, &debug.dwarf, &debug.account),
    };
    let (index, _) = units.around(gimli::DebugInfoOffset(id.unit))?;
    units.unit(index, dwarf, &debug.account)
}

fn declared(definition: &Definition<'_>, debug: &Debug<'_>) -> Option<Declared> {
    if let Some((position, id)) = definition.declared {
        let path = unit_of(id, debug)?.path(position.file?, debug)?;
        return Some(Declared::At(path, position.line));
    }
    let unit = unit_of(definition.root, debug)?;
    if definition.root.place == DebugFile::Supplement {
        return None;
    }
    let at = definition::at(definition.root, debug)?;
    if let Some((file, line)) = scopes::closure_line(at, unit.scopes(debug)) {
        return Some(Declared::At(unit.path(file, debug)?, line));
    }
    let extent = unit.extent(gimli::UnitOffset(definition.id.entry), debug)?;
    let path = unit.path(extent.file, debug)?;
    Some(Declared::Lines(path, extent.first, extent.last))
}

fn qualified(definition: &Definition<'_>, debug: &Debug<'_>) -> Option<String> {
    let name = text(definition.name?);
    let at = definition::at(definition.root, debug)?;
    // C has no scopes; Rust and others write linkage names wherever they write scopes.
    if scopes::names_language(at.unit) != Language::Cpp
        || definition.linkage_name.is_some()
        || at.place == DebugFile::Supplement
    {
        return Some(name.into_owned());
    }
    let unit = unit_of(definition.root, debug)?;
    Some(scopes::qualified(at, &name, unit.scopes(debug), debug))
}
