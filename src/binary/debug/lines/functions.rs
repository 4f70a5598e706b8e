//! The functions of a unit by address.

use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

use gimli::{AttributeValue, UnitOffset, UnitRef};

use super::Slice;
use super::definition::Definition;
use super::inlines::Inlines;
use super::ranges::RangeAttributes;
use crate::binary::budget::Account;

// Ranges before an address. Functions do not overlap in sound files; where the linker folded equal
// ones, a few share a range.
const LOOKS: usize = 16;

// A `DW_TAG_subprogram` with code.
#[derive(Debug)]
pub(super) struct Function<'b> {
    // Where its entry is in the unit.
    pub(super) offset: UnitOffset,
    // What it is, once it was asked for.
    pub(super) definition: OnceLock<Option<Arc<Definition<'b>>>>,
    inlines: OnceLock<Inlines<'b>>,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    begin: u64,
    end: u64,
    function: u32,
}

#[derive(Debug, Default)]
pub(super) struct Functions<'b> {
    functions: Vec<Function<'b>>,
    ranges: Vec<Range>,
    // Where functions start, by the entry that states what they are: their own, or the one that it
    // refers to. Sorted.
    starts: Vec<(UnitOffset, u64)>,
}

impl<'b> Functions<'b> {
    // The whole unit, up to the first entry that cannot be read.
    pub(super) fn read(unit: UnitRef<'_, Slice<'b>>, account: &Account) -> Functions<'b> {
        let mut all = Functions::default();
        // What was read before an error stays.
        let _ = all.add_all(unit, account);
        let key = |range: &Range| (range.begin, Reverse(range.end), Reverse(range.function));
        all.ranges.sort_unstable_by_key(key);
        all.starts.sort_unstable();
        all
    }

    fn add_all(&mut self, unit: UnitRef<'_, Slice<'b>>, account: &Account) -> gimli::Result<()> {
        let mut entries = unit.entries_raw(None)?;
        while !entries.is_empty() {
            let offset = entries.next_offset();
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            if abbreviation.tag() != gimli::DW_TAG_subprogram {
                entries.skip_attributes(abbreviation.attributes())?;
                continue;
            }
            let mut ranges = RangeAttributes::default();
            let mut origin = offset;
            for spec in abbreviation.attributes() {
                let attribute = entries.read_attribute_inline(*spec)?;
                ranges.add(unit, &attribute);
                if let gimli::DW_AT_abstract_origin | gimli::DW_AT_specification = attribute.name()
                    && let AttributeValue::UnitRef(stated) = attribute.value()
                {
                    origin = stated;
                }
            }
            let mut start = None;
            let function = u32::try_from(self.functions.len()).unwrap_or(u32::MAX);
            let any = ranges.each(unit, account, |begin, end| {
                start = start.or(Some(begin));
                self.ranges.push(Range {
                    begin,
                    end,
                    function,
                });
            });
            // The linker marks functions that it dropped with 0.
            let start = start.filter(|&start| start > 0);
            self.starts.extend(start.map(|start| (origin, start)));
            if any {
                self.functions.push(Function {
                    offset,
                    definition: OnceLock::new(),
                    inlines: OnceLock::new(),
                });
            }
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    // The code that the entry at `origin` is about.
    pub(super) fn start(&self, origin: UnitOffset) -> Option<u64> {
        let at = self.starts.partition_point(|&(known, _)| known < origin);
        let &(found, start) = self.starts.get(at)?;
        (found == origin).then_some(start)
    }

    pub(super) fn at(&self, address: u64) -> Option<&Function<'b>> {
        let after = self.ranges.partition_point(|range| range.begin <= address);
        let before = self.ranges.get(..after)?;
        let mut near = before.iter().rev().take(LOOKS);
        let range = near.find(|range| range.end > address)?;
        self.functions.get(range.function as usize)
    }
}

impl<'b> Function<'b> {
    pub(super) fn inlines(&self, unit: UnitRef<'_, Slice<'b>>, account: &Account) -> &Inlines<'b> {
        self.inlines
            .get_or_init(|| Inlines::read(self.offset, unit, account))
    }
}
