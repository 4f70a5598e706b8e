//! Strings of debug information, wherever they stand.

use gimli::{AttributeValue, Section as _, UnitRef};

use super::Slice;
use crate::binary::elf::fields::c_string;

const LENGTH_LIMIT: usize = 64 << 10;

// Wherever they stand. The search for their end is bounded.
pub(super) fn string<'b>(
    value: AttributeValue<Slice<'b>>,
    unit: UnitRef<'_, Slice<'b>>,
) -> Option<&'b [u8]> {
    string_up_to(LENGTH_LIMIT, value, unit)
}

pub(super) fn string_up_to<'b>(
    limit: usize,
    value: AttributeValue<Slice<'b>>,
    unit: UnitRef<'_, Slice<'b>>,
) -> Option<&'b [u8]> {
    let (section, offset) = match value {
        AttributeValue::String(bytes) => {
            let bytes = bytes.slice();
            return bytes.get(..bytes.len().min(limit));
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
    c_string(bytes.get(..bytes.len().min(limit))?, 0)
}
