//! The calls that were inlined into a function.
//!
//! ```text
//!   subprogram main                     [0x00 .. 0x40)
//!   ├─ inlined_subroutine parse         [0x10 .. 0x30)   depth 0
//!   │  ├─ inlined_subroutine next       [0x10 .. 0x14)   depth 1
//!   │  └─ lexical_block
//!   │     └─ inlined_subroutine skip    [0x20 .. 0x24)   depth 1
//!   └─ inlined_subroutine report        [0x38 .. 0x40)   depth 0
//! ```
//!
//! The ranges are sorted by depth and then by address, so the chain of an address takes one binary
//! search for each of its depths.

use std::sync::{Arc, OnceLock};

use gimli::{Attribute, UnitOffset, UnitRef};

use super::Slice;
use super::definition::{self, Definition, Position};
use super::ranges::RangeAttributes;
use crate::binary::budget::Account;

// Calls nested deeper are left out. Compilers stay far below.
const DEPTH_LIMIT: usize = 512;

// Bytes of entries that are walked over before they are counted.
const PORTION: usize = 4096;

// A `DW_TAG_inlined_subroutine`.
#[derive(Debug)]
pub(super) struct Call<'b> {
    // Where its entry is in the unit.
    pub(super) offset: UnitOffset,
    // The function that was inlined, once it was asked for.
    pub(super) definition: OnceLock<Option<Arc<Definition<'b>>>>,
    // Where it is called.
    pub(super) from: Position,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    depth: u32,
    call: u32,
    begin: u64,
    end: u64,
}

#[derive(Debug, Default)]
pub(super) struct Inlines<'b> {
    calls: Vec<Call<'b>>,
    ranges: Vec<Range>,
}

impl<'b> Inlines<'b> {
    // Reads the entries below the function at `offset`, up to the first that cannot be read.
    pub(super) fn read(
        offset: UnitOffset,
        unit: UnitRef<'_, Slice<'b>>,
        account: &Account,
    ) -> Inlines<'b> {
        let mut inlines = Inlines::default();
        // What was read before an error stays.
        let _ = inlines.add_all(offset, unit, account);
        let key = |range: &Range| (range.depth, range.begin, range.call);
        inlines.ranges.sort_unstable_by_key(key);
        inlines.calls.shrink_to_fit();
        inlines.ranges.shrink_to_fit();
        inlines
    }

    fn add_all(
        &mut self,
        offset: UnitOffset,
        unit: UnitRef<'_, Slice<'b>>,
        account: &Account,
    ) -> gimli::Result<()> {
        let mut entries = unit.entries_raw(Some(offset))?;
        let Some(abbreviation) = entries.read_abbreviation()? else {
            return Ok(());
        };
        entries.skip_attributes(abbreviation.attributes())?;
        if !abbreviation.has_children() {
            return Ok(());
        }
        // The depths of the inlined calls around the next entry.
        let mut open: Vec<isize> = Vec::new();
        // The depth of a function inside the function, whose entries are not ours.
        let mut foreign: Option<isize> = None;
        let mut begin = offset;
        while !entries.is_empty() && entries.next_depth() > 0 {
            // Functions may be nested in one another, and each walks over all inside of it.
            let walked = entries.next_offset().0.saturating_sub(begin.0);
            if walked >= PORTION {
                begin = entries.next_offset();
                if !account.take(walked as u64) {
                    return Ok(());
                }
            }
            let offset = entries.next_offset();
            let depth = entries.next_depth();
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            while open.last().is_some_and(|&outer| outer >= depth) {
                open.pop();
            }
            if foreign.is_some_and(|outer| outer >= depth) {
                foreign = None;
            }
            let tag = abbreviation.tag();
            if tag == gimli::DW_TAG_subprogram && foreign.is_none() {
                foreign = Some(depth);
            }
            let wanted = tag == gimli::DW_TAG_inlined_subroutine && foreign.is_none();
            if !wanted || open.len() >= DEPTH_LIMIT || !account.take_entries(1) {
                entries.skip_attributes(abbreviation.attributes())?;
                continue;
            }
            let mut call = Call {
                offset,
                definition: OnceLock::new(),
                from: Position::default(),
            };
            let mut ranges = RangeAttributes::default();
            for spec in abbreviation.attributes() {
                let attribute = entries.read_attribute_inline(*spec)?;
                ranges.add(unit, &attribute);
                call.add(unit, &attribute);
            }
            let index = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
            let nested = u32::try_from(open.len()).unwrap_or(u32::MAX);
            ranges.each(unit, account, |begin, end| {
                self.ranges.push(Range {
                    depth: nested,
                    call: index,
                    begin,
                    end,
                });
            });
            self.calls.push(call);
            open.push(depth);
        }
        Ok(())
    }

    // Outermost first.
    pub(super) fn chain(&self, address: u64) -> Vec<usize> {
        let mut chain = Vec::new();
        let mut rest = self.ranges.as_slice();
        while let Ok(depth) = u32::try_from(chain.len()) {
            let after =
                rest.partition_point(|range| (range.depth, range.begin) <= (depth, address));
            let found = after.checked_sub(1).and_then(|last| rest.get(last));
            match found.filter(|range| range.depth == depth && range.end > address) {
                Some(range) => chain.push(range.call as usize),
                None => break,
            }
            rest = rest.get(after..).unwrap_or_default();
        }
        chain
    }

    pub(super) fn call(&self, index: usize) -> Option<&Call<'b>> {
        self.calls.get(index)
    }
}

impl Call<'_> {
    fn add(&mut self, unit: UnitRef<'_, Slice<'_>>, attribute: &Attribute<Slice<'_>>) {
        match attribute.name() {
            gimli::DW_AT_call_file => self.from.file = definition::file(unit, attribute.value()),
            gimli::DW_AT_call_line => {
                self.from.line = definition::number(attribute.udata_value());
            }
            gimli::DW_AT_call_column => {
                self.from.column = definition::number(attribute.udata_value());
            }
            _ => {}
        }
    }
}
