//! The names of functions: often not in their own entry but in the one it stems from.
//!
//! ```text
//!   inlined_subroutine ─abstract_origin─▶ subprogram ─specification─▶ subprogram (declaration)
//!                                                                       linkage_name _ZN3Foo3barEv
//!                                                                       name         bar
//! ```

use gimli::{AttributeValue, DebugInfoOffset, Section as _, UnitOffset, UnitRef};

use super::{Debug, Slice};
use crate::binary::fields::c_string;

/// How many steps are gone for a name.
const STEPS: usize = 16;
/// How long a name may be.
const LENGTH_LIMIT: usize = 64 << 10;

/// The file in which an entry stands, which decides what its references mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The file with the debug information.
    Main,
    /// A `.dwo` or `.dwp` file: references do not leave the unit.
    Split,
    /// The supplementary file.
    Supplement,
}

/// What an entry says of its name.
struct Entry<'b> {
    name: Option<&'b [u8]>,
    origin: Option<AttributeValue<Slice<'b>>>,
}

/// The linkage name of the function whose entry is at `offset` of `unit`, else its plain name.
pub(super) fn of<'d, 'b>(
    offset: UnitOffset,
    unit: UnitRef<'d, Slice<'b>>,
    place: Place,
    debug: &'d Debug<'b>,
) -> Option<&'b [u8]> {
    let (mut unit, mut place, mut offset) = (unit, place, offset);
    for _ in 0..STEPS {
        let entry = entry(offset, unit)?;
        if entry.name.is_some() {
            return entry.name;
        }
        match entry.origin? {
            AttributeValue::UnitRef(inside) => offset = inside,
            AttributeValue::DebugInfoRef(target) => {
                (unit, offset) = follow(target, place, debug)?;
            }
            AttributeValue::DebugInfoRefSup(target) => {
                place = Place::Supplement;
                (unit, offset) = follow(target, place, debug)?;
            }
            _ => return None,
        }
    }
    None
}

/// The unit around an offset into `.debug_info`.
fn follow<'d, 'b>(
    target: DebugInfoOffset,
    place: Place,
    debug: &'d Debug<'b>,
) -> Option<(UnitRef<'d, Slice<'b>>, UnitOffset)> {
    let (units, dwarf) = match place {
        Place::Main => (&debug.units, &debug.dwarf),
        Place::Supplement => (debug.supplement.as_ref()?, debug.dwarf.sup()?),
        Place::Split => return None,
    };
    let (index, offset) = units.around(target)?;
    Some((units.unit(index, dwarf)?.main(dwarf), offset))
}

fn entry<'b>(offset: UnitOffset, unit: UnitRef<'_, Slice<'b>>) -> Option<Entry<'b>> {
    let mut entries = unit.entries_raw(Some(offset)).ok()?;
    let abbreviation = entries.read_abbreviation().ok()??;
    let mut found = Entry {
        name: None,
        origin: None,
    };
    for spec in abbreviation.attributes() {
        let attribute = entries.read_attribute(*spec).ok()?;
        match attribute.name() {
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                if let Some(name) = string(attribute.value(), unit) {
                    found.name = Some(name);
                    return Some(found);
                }
            }
            gimli::DW_AT_name => found.name = string(attribute.value(), unit),
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                found.origin = Some(attribute.value());
            }
            _ => {}
        }
    }
    Some(found)
}

/// The bytes of a string attribute, wherever they stand. The search for their end is bounded.
pub(super) fn string<'b>(
    value: AttributeValue<Slice<'b>>,
    unit: UnitRef<'_, Slice<'b>>,
) -> Option<&'b [u8]> {
    let (section, offset) = match value {
        AttributeValue::String(bytes) => {
            let bytes = bytes.slice();
            return bytes.get(..bytes.len().min(LENGTH_LIMIT));
        }
        AttributeValue::DebugStrRef(offset) => (unit.dwarf.debug_str.reader(), offset.0),
        AttributeValue::DebugStrOffsetsIndex(index) => {
            let offset = unit.string_offset(index).ok()?;
            (unit.dwarf.debug_str.reader(), offset.0)
        }
        AttributeValue::DebugStrRefSup(offset) => (unit.dwarf.sup()?.debug_str.reader(), offset.0),
        AttributeValue::DebugLineStrRef(offset) => (unit.dwarf.debug_line_str.reader(), offset.0),
        _ => return None,
    };
    let bytes: &'b [u8] = section.slice().get(offset..)?;
    c_string(bytes.get(..bytes.len().min(LENGTH_LIMIT))?, 0)
}
