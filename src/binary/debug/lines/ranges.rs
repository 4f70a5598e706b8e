//! The addresses that an entry covers: `DW_AT_low_pc`, `DW_AT_high_pc`, `DW_AT_ranges`.

use gimli::{Attribute, AttributeValue, RangeListsOffset, UnitRef};

use super::Slice;
use crate::binary::budget::Account;

// The attributes of one entry that say which addresses it covers.
#[derive(Default)]
pub(super) struct RangeAttributes {
    low: Option<u64>,
    high: Option<u64>,
    size: Option<u64>,
    list: Option<RangeListsOffset<usize>>,
}

impl RangeAttributes {
    // Takes note of an attribute if it is one of these.
    pub(super) fn add<'b>(
        &mut self,
        unit: UnitRef<'_, Slice<'b>>,
        attribute: &Attribute<Slice<'b>>,
    ) {
        match attribute.name() {
            gimli::DW_AT_low_pc => self.low = address(unit, attribute),
            gimli::DW_AT_high_pc => match attribute.value() {
                AttributeValue::Udata(size) => self.size = Some(size),
                _ => self.high = address(unit, attribute),
            },
            gimli::DW_AT_ranges => {
                self.list = unit.attr_ranges_offset(attribute.value()).ok().flatten();
            }
            _ => {}
        }
    }

    // Calls `add` for each range, as (begin, end). Returns whether there was one.
    pub(super) fn each(
        &self,
        unit: UnitRef<'_, Slice<'_>>,
        account: &Account,
        mut add: impl FnMut(u64, u64),
    ) -> bool {
        let mut any = false;
        let mut one = |begin, end| {
            if begin < end && account.take_entries(1) {
                add(begin, end);
                any = true;
            }
        };
        if let Some(list) = self.list {
            let (Ok(mut ranges), Ok(mut rows)) = (unit.ranges(list), unit.raw_ranges(list)) else {
                return false;
            };
            // Many entries may share one list, whose rows may all be empty: each row counts.
            while let Ok(Some(row)) = rows.next()
                && account.take_entries(1)
            {
                match ranges.convert_raw(row) {
                    Ok(Some(range)) => one(range.begin, range.end),
                    Ok(None) => {}
                    Err(_) => break,
                }
            }
        } else if let (Some(low), Some(high)) = (self.low, self.high) {
            one(low, high);
        } else if let (Some(low), Some(size)) = (self.low, self.size) {
            // The linker marks functions that it dropped with -1; those wrap and are no range.
            one(low, low.wrapping_add(size));
        }
        any
    }
}

fn address<'b>(unit: UnitRef<'_, Slice<'b>>, attribute: &Attribute<Slice<'b>>) -> Option<u64> {
    match attribute.value() {
        AttributeValue::Addr(address) => Some(address),
        AttributeValue::DebugAddrIndex(index) => unit.address(index).ok(),
        _ => None,
    }
}
