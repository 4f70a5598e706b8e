//! The units of a file and which of them know an address.
//!
//! `.debug_aranges` says which addresses a unit covers without a look into the unit. Units that it
//! does not speak of (clang writes none) are opened for their own ranges, or as the last resort
//! for those of their line program.

use std::cmp::Reverse;
use std::sync::OnceLock;

use gimli::{
    DebugInfoOffset, Reader as _, Section as _, UnitHeader, UnitOffset, UnitSectionOffset, UnitType,
};

use super::abbreviations::Abbreviations;
use super::unit::Unit;
use super::{Debug, Slice};
use crate::binary::budget::Account;

// Units that may know an address and are asked.
const CANDIDATES: usize = 16;
// Ranges that are looked at for them.
const LOOKS: usize = 1024;

// Bytes of memory that a byte of the header of a line program takes at most: the name of a file has
// two, and becomes a value of some 100.
const FILE_FACTOR: u64 = 48;

// Opened when it is needed.
#[derive(Debug)]
struct LazyUnit<'b> {
    offset: usize,
    header: UnitHeader<Slice<'b>>,
    unit: OnceLock<Option<Box<Unit<'b>>>>,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    begin: u64,
    end: u64,
    unit: u32,
    // The greatest end of this range and all before it.
    reach: u64,
}

// The units of one `.debug_info` section, in order of offset.
#[derive(Debug)]
pub(super) struct Units<'b> {
    units: Vec<LazyUnit<'b>>,
    abbreviations: Abbreviations<'b>,
    ranges: OnceLock<Vec<Range>>,
}

impl<'b> Units<'b> {
    // Lists the units by their headers alone. The list ends where a header cannot be read.
    pub(super) fn list(dwarf: &gimli::Dwarf<Slice<'b>>) -> Units<'b> {
        let mut units = Vec::new();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let UnitSectionOffset(offset) = header.offset();
            units.push(LazyUnit {
                offset,
                header,
                unit: OnceLock::new(),
            });
        }
        let tables = units.iter().map(|unit| unit.header.debug_abbrev_offset().0);
        Units {
            abbreviations: Abbreviations::new(*dwarf.debug_abbrev.reader(), tables.collect()),
            units,
            ranges: OnceLock::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.units.len()
    }

    // `dwarf` is the file that this list was made of.
    pub(super) fn unit(
        &self,
        index: usize,
        dwarf: &gimli::Dwarf<Slice<'b>>,
        account: &Account,
    ) -> Option<&Unit<'b>> {
        let lazy = self.units.get(index)?;
        let unit = lazy.unit.get_or_init(|| {
            let table = lazy.header.debug_abbrev_offset().0;
            let abbreviations = self.abbreviations.table(table, account)?;
            let files = header_length(dwarf, &lazy.header, &abbreviations).unwrap_or(0);
            if !account.take(files.saturating_mul(FILE_FACTOR)) {
                return None;
            }
            let unit =
                gimli::Unit::new_with_abbreviations(dwarf, lazy.header, abbreviations).ok()?;
            Some(Box::new(Unit::new(index, unit)))
        });
        unit.as_deref()
    }

    // How many units describe functions, and how many of these do not say where any is declared:
    // they have line tables only.
    pub(super) fn with_functions(&self, account: &Account) -> (usize, usize) {
        let (mut all, mut bare) = (0, 0);
        for lazy in &self.units {
            let table = lazy.header.debug_abbrev_offset().0;
            let Some(table) = self.abbreviations.table(table, account) else {
                continue;
            };
            // Compilers number them from 1 without gaps.
            let numbered = (1..).map_while(|code| table.get(code));
            let (mut named, mut declared) = (false, false);
            for entry in numbered.filter(|entry| entry.tag() == gimli::DW_TAG_subprogram) {
                let has = |name| entry.attributes().iter().any(|spec| spec.name() == name);
                named |= has(gimli::DW_AT_name);
                declared |= has(gimli::DW_AT_decl_line);
            }
            all += usize::from(named);
            bare += usize::from(named && !declared);
        }
        (all, bare)
    }

    // The unit around an offset into the section, and the offset inside it.
    pub(super) fn around(
        &self,
        DebugInfoOffset(offset): DebugInfoOffset,
    ) -> Option<(usize, UnitOffset)> {
        let after = self.units.partition_point(|unit| unit.offset <= offset);
        let index = after.checked_sub(1)?;
        let inside = offset.checked_sub(self.units.get(index)?.offset)?;
        Some((index, UnitOffset(inside)))
    }

    // The one whose range starts last first.
    pub(super) fn candidates(
        &self,
        address: u64,
        debug: &Debug<'b>,
    ) -> impl Iterator<Item = usize> {
        let ranges = self.ranges.get_or_init(|| self.index(debug));
        let after = ranges.partition_point(|range| range.begin <= address);
        let before = ranges.get(..after).unwrap_or_default();
        let near = before.iter().rev().take(LOOKS);
        near.take_while(move |range| range.reach > address)
            .filter(move |range| range.end > address)
            .map(|range| range.unit as usize)
            .take(CANDIDATES)
    }

    fn index(&self, debug: &Debug<'b>) -> Vec<Range> {
        let mut ranges = Vec::new();
        let mut push = |unit: usize, begin, end| {
            let reach = 0;
            let unit = u32::try_from(unit).unwrap_or(u32::MAX);
            ranges.push(Range {
                begin,
                end,
                unit,
                reach,
            });
        };
        let mut known = vec![false; self.units.len()];
        let mut sets = debug.dwarf.debug_aranges.headers();
        while let Ok(Some(set)) = sets.next() {
            let DebugInfoOffset(offset) = set.debug_info_offset();
            let Ok(index) = self.units.binary_search_by_key(&offset, |unit| unit.offset) else {
                continue;
            };
            let mut entries = set.entries();
            // An entry that runs past the end of memory is an error that can be passed over; rustc
            // 1.89 wrote such. After any other error the iterator ends.
            while let Some(entry) = entries.next().transpose() {
                let Ok(entry) = entry else { continue };
                if entry.length() > 0 && debug.account.take_entries(1) {
                    push(index, entry.range().begin, entry.range().end);
                    known.get_mut(index).into_iter().for_each(|k| *k = true);
                }
            }
        }
        for (index, lazy) in self.units.iter().enumerate() {
            let has_code = matches!(
                lazy.header.type_(),
                UnitType::Compilation | UnitType::Skeleton(_)
            );
            if known.get(index) == Some(&true) || !has_code {
                continue;
            }
            if let Some(unit) = self.unit(index, &debug.dwarf, &debug.account) {
                unit.each_range(debug, |begin, end| push(index, begin, end));
            }
        }
        ranges.sort_unstable_by_key(|range| (range.begin, Reverse(range.end), range.unit));
        let mut reach = 0;
        for range in &mut ranges {
            reach = range.end.max(reach);
            range.reach = reach;
        }
        ranges
    }
}

// The length of the header of a unit's line program, with the names of its files. Opening a unit
// reads all of it, and many units may share one.
//
//   unit_length            4 bytes, or 0xffffffff and 8
//   version                2 bytes; from version 5 on then the sizes of addresses and segments
//   header_length          4 or 8 bytes: from here to the program
fn header_length(
    dwarf: &gimli::Dwarf<Slice<'_>>,
    header: &UnitHeader<Slice<'_>>,
    abbreviations: &gimli::Abbreviations,
) -> Option<u64> {
    let mut entries = header.entries_raw(abbreviations, None).ok()?;
    let abbreviation = entries.read_abbreviation().ok()??;
    let mut program = None;
    for spec in abbreviation.attributes() {
        let attribute = entries.read_attribute(*spec).ok()?;
        if attribute.name() == gimli::DW_AT_stmt_list {
            program = attribute.offset_value();
        }
    }
    let mut rest = *dwarf.debug_line.reader();
    rest.skip(program?).ok()?;
    let (_, format) = rest.read_initial_length().ok()?;
    if rest.read_u16().ok()? >= 5 {
        rest.skip(2).ok()?;
    }
    let length = rest.read_length(format).ok()?;
    Some(length.min(rest.len()) as u64)
}
