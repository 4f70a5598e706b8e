//! The definition that a function's entry comes from. Frames with one definition are one function.
//!
//! ```text
//!   inlined_subroutine ─abstract_origin─▶ subprogram ─specification─▶ subprogram (declaration)
//!   subprogram (with code) ─────────────▶     │                         linkage_name _ZN3Foo3barEv
//!                                          decl_line 12                 name         bar
//! ```
//!
//! The out-of-line copy of a function and all its inlined copies lead to the same last entry, its
//! root, whatever the function is called. Names, the declaration and linkage come from the first
//! entry on the way that has them.

use std::sync::{Arc, PoisonError};

use gimli::{AttributeValue, DebugInfoOffset, UnitOffset, UnitRef};
use serde::{Deserialize, Serialize};

use super::{Debug, DefinitionKey, Slice, names};

// Steps along a chain.
const STEPS: usize = 16;

// It decides what the references of an entry mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum DebugFile {
    Main,
    Supplement,
    // The `.dwo` or `.dwp` part of this unit: references do not leave the unit.
    #[serde(skip)]
    Split(usize),
}

/// Identifies an entry of one file's debug information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DefinitionId {
    pub(super) place: DebugFile,
    // The offset of its unit's header, then that of the entry in the unit.
    pub(super) unit: usize,
    pub(super) entry: usize,
}

impl DefinitionId {
    /// Whether both entries stand in one unit.
    pub fn is_of_unit(self, other: DefinitionId) -> bool {
        (self.place, self.unit) == (other.place, other.unit)
    }
}

// A position in the source, as numbers of one unit; 0 stands for an unknown line or column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) file: Option<u64>,
    pub(super) line: u32,
    pub(super) column: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Definition<'b> {
    // The entry that the names and the declaration were read from.
    pub(super) id: DefinitionId,
    // The last entry of the chain. Frames with one root are one function.
    pub(super) root: DefinitionId,
    // Whether other units can call it by its name, which therefore is the only one in its module.
    pub(super) is_external: bool,
    // Whether it was inlined somewhere in its unit.
    pub(super) is_inlined: bool,
    pub(super) linkage_name: Option<&'b [u8]>,
    pub(super) name: Option<&'b [u8]>,
    // Where it is declared, and the unit that numbers the file.
    pub(super) declared: Option<(Position, DefinitionId)>,
}

impl<'b> Definition<'b> {
    pub(super) fn key(&self) -> DefinitionKey {
        DefinitionKey {
            id: self.id,
            root: self.root,
        }
    }

    // The linkage name; where there is none, the plain name.
    pub(super) fn any_name(&self) -> Option<&'b [u8]> {
        self.linkage_name.or(self.name)
    }
}

struct Entry<'b> {
    linkage_name: Option<&'b [u8]>,
    name: Option<&'b [u8]>,
    is_external: bool,
    is_inlined: bool,
    declared: Position,
    origin: Option<AttributeValue<Slice<'b>>>,
}

#[derive(Clone, Copy)]
pub(super) struct At<'d, 'b> {
    pub(super) offset: UnitOffset,
    pub(super) unit: UnitRef<'d, Slice<'b>>,
    pub(super) place: DebugFile,
}

impl At<'_, '_> {
    pub(super) fn id(&self) -> DefinitionId {
        let header = self.unit.header.debug_info_offset();
        DefinitionId {
            place: self.place,
            unit: header.map_or(0, |offset| offset.0),
            entry: self.offset.0,
        }
    }
}

// Each definition is read once and shared by all copies.
pub(super) fn of<'d, 'b>(at: At<'d, 'b>, debug: &'d Debug<'b>) -> Option<Arc<Definition<'b>>> {
    let first = entry(at)?;
    let mut at = at;
    let mut first = Some(first);
    // A copy without a name of its own is its origin: read that one once for all copies.
    if let Some(copy) = &first
        && copy.linkage_name.is_none()
        && copy.name.is_none()
        && copy.declared.line == 0
        && let Some(origin) = copy.origin
    {
        at = follow(origin, at, debug)?;
        first = None;
    }
    let id = at.id();
    let definitions = || {
        let known = debug.definitions.lock();
        known.unwrap_or_else(PoisonError::into_inner)
    };
    if let Some(known) = definitions().get(&id) {
        return Some(known.clone());
    }
    // The lock is free meanwhile: another thread may read the same entry, and the first one counts.
    let first = match first {
        Some(first) => first,
        None => entry(at)?,
    };
    let definition = Arc::new(read(at, first, debug));
    Some(definitions().entry(id).or_insert(definition).clone())
}

fn read<'d, 'b>(at: At<'d, 'b>, first: Entry<'b>, debug: &'d Debug<'b>) -> Definition<'b> {
    let id = at.id();
    let mut found = Definition {
        id,
        root: id,
        is_external: false,
        is_inlined: false,
        linkage_name: None,
        name: None,
        declared: None,
    };
    let (mut at, mut here) = (at, first);
    for _ in 0..STEPS {
        found.root = at.id();
        found.is_external |= here.is_external;
        found.is_inlined |= here.is_inlined;
        found.linkage_name = found.linkage_name.or(here.linkage_name);
        found.name = found.name.or(here.name);
        if found.declared.is_none() && here.declared.line > 0 {
            found.declared = Some((here.declared, at.id()));
        }
        let next = here.origin.and_then(|origin| follow(origin, at, debug));
        let Some((next, entry)) = next.and_then(|next| Some((next, entry(next)?))) else {
            break;
        };
        (at, here) = (next, entry);
    }
    found
}

fn follow<'d, 'b>(
    reference: AttributeValue<Slice<'b>>,
    from: At<'d, 'b>,
    debug: &'d Debug<'b>,
) -> Option<At<'d, 'b>> {
    match reference {
        AttributeValue::UnitRef(offset) => Some(At { offset, ..from }),
        AttributeValue::DebugInfoRef(target) => elsewhere(target, from.place, debug),
        AttributeValue::DebugInfoRefSup(target) => elsewhere(target, DebugFile::Supplement, debug),
        _ => None,
    }
}

fn elsewhere<'d, 'b>(
    target: DebugInfoOffset,
    place: DebugFile,
    debug: &'d Debug<'b>,
) -> Option<At<'d, 'b>> {
    let (units, dwarf) = match place {
        DebugFile::Main => (&debug.units, &debug.dwarf),
        DebugFile::Supplement => (debug.supplement.as_ref()?, debug.dwarf.sup()?),
        DebugFile::Split(_) => return None,
    };
    let (index, offset) = units.around(target)?;
    let unit = units.unit(index, dwarf, &debug.account)?.main(dwarf);
    Some(At {
        offset,
        unit,
        place,
    })
}

pub(super) fn at<'d, 'b>(id: DefinitionId, debug: &'d Debug<'b>) -> Option<At<'d, 'b>> {
    if let DebugFile::Split(index) = id.place {
        let unit = debug
            .units
            .unit(index, &debug.dwarf, &debug.account)?
            .entries(debug)
            .0;
        let offset = UnitOffset(id.entry);
        let place = id.place;
        return Some(At {
            offset,
            unit,
            place,
        });
    }
    elsewhere(
        DebugInfoOffset(id.unit.checked_add(id.entry)?),
        id.place,
        debug,
    )
}

fn entry<'b>(at: At<'_, 'b>) -> Option<Entry<'b>> {
    let mut entries = at.unit.entries_raw(Some(at.offset)).ok()?;
    let abbreviation = entries.read_abbreviation().ok()??;
    let mut found = Entry {
        linkage_name: None,
        name: None,
        is_external: false,
        is_inlined: false,
        declared: Position::default(),
        origin: None,
    };
    for spec in abbreviation.attributes() {
        let attribute = entries.read_attribute(*spec).ok()?;
        let value = attribute.value();
        match attribute.name() {
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                found.linkage_name = names::string(value, at.unit);
            }
            gimli::DW_AT_name => found.name = names::string(value, at.unit),
            gimli::DW_AT_external => found.is_external = value == AttributeValue::Flag(true),
            gimli::DW_AT_inline => {
                let inlined = [gimli::DW_INL_inlined, gimli::DW_INL_declared_inlined];
                found.is_inlined = inlined
                    .iter()
                    .any(|&kind| value == AttributeValue::Inline(kind));
            }
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                found.origin = Some(value);
            }
            gimli::DW_AT_decl_file => found.declared.file = file(at.unit, value),
            gimli::DW_AT_decl_line => found.declared.line = number(attribute.udata_value()),
            gimli::DW_AT_decl_column => found.declared.column = number(attribute.udata_value()),
            _ => {}
        }
    }
    Some(found)
}

// Index 0 meant no file before DWARF 5 and means the first file since.
pub(super) fn file(unit: UnitRef<'_, Slice<'_>>, value: AttributeValue<Slice<'_>>) -> Option<u64> {
    match value {
        AttributeValue::FileIndex(index) if index > 0 || unit.header.version() >= 5 => Some(index),
        _ => None,
    }
}

// 0 for none and for those that cannot be.
pub(super) fn number(value: Option<u64>) -> u32 {
    value
        .and_then(|value| u32::try_from(value).ok())
        .unwrap_or(0)
}
