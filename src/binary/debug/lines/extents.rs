//! Which lines the code of a function comes from, where nothing says where it is declared
//! (line tables only, call operators under `-g1`).
//!
//! Seen are the first line of each inlined copy and the lines from which it calls what is inlined
//! into it in turn: one pass over the entries of the unit, one look at the line rows for each copy.

use gimli::{AttributeValue, UnitOffset, UnitRef};
use rustc_hash::FxHashMap;

use super::Slice;
use super::definition::{self, Position};
use super::line_rows::Rows;
use super::ranges::RangeAttributes;
use crate::binary::budget::Account;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) file: u64,
    pub(super) first: u32,
    pub(super) last: u32,
    // How often the file was seen.
    seen: u32,
}

// The lines of the functions of a unit, by the entries that their copies stem from.
#[derive(Debug, Default)]
pub(super) struct Extents(FxHashMap<UnitOffset, Vec<Extent>>);

// A function or copy around the next entry.
struct Open {
    depth: isize,
    origin: UnitOffset,
    // Where it begins, until a copy inside of it begins there too.
    begin: Option<u64>,
}

impl Extents {
    // The whole unit, up to the first entry that cannot be read.
    pub(super) fn read(
        unit: UnitRef<'_, Slice<'_>>,
        rows: &Rows<'_>,
        account: &Account,
    ) -> Extents {
        let mut extents = Extents::default();
        // What was read before an error stays.
        let _ = extents.add_all(unit, rows, account);
        extents
    }

    // The lines of the function, in the file that is seen most often.
    pub(super) fn of(&self, origin: UnitOffset) -> Option<Extent> {
        let files = self.0.get(&origin)?.iter();
        files
            .copied()
            .max_by_key(|e| (e.seen, std::cmp::Reverse(e.file)))
    }

    fn add_all(
        &mut self,
        unit: UnitRef<'_, Slice<'_>>,
        rows: &Rows<'_>,
        account: &Account,
    ) -> gimli::Result<()> {
        let mut entries = unit.entries_raw(None)?;
        let mut open: Vec<Open> = Vec::new();
        while !entries.is_empty() {
            let (offset, depth) = (entries.next_offset(), entries.next_depth());
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            while open.last().is_some_and(|outer| outer.depth >= depth) {
                self.close(open.pop(), rows);
            }
            let tag = abbreviation.tag();
            let is_copy = tag == gimli::DW_TAG_inlined_subroutine;
            if !is_copy && tag != gimli::DW_TAG_subprogram {
                entries.skip_attributes(abbreviation.attributes())?;
                continue;
            }
            let mut ranges = RangeAttributes::default();
            let (mut origin, mut from) = (offset, Position::default());
            for spec in abbreviation.attributes() {
                let attribute = entries.read_attribute_inline(*spec)?;
                ranges.add(unit, &attribute);
                match (attribute.name(), attribute.value()) {
                    (gimli::DW_AT_abstract_origin, AttributeValue::UnitRef(to)) => origin = to,
                    (gimli::DW_AT_call_file, value) => from.file = definition::file(unit, value),
                    (gimli::DW_AT_call_line, _) => {
                        from.line = definition::number(attribute.udata_value());
                    }
                    _ => {}
                }
            }
            let mut begin = None;
            ranges.each(unit, account, |start, _| {
                begin = Some(begin.map_or(start, |before: u64| before.min(start)));
            });
            if let Some(outer) = open.last_mut() {
                if is_copy && let Some(file) = from.file {
                    self.add(outer.origin, file, from.line);
                }
                // The line at this address is that of the inlined copy. It says nothing about the
                // function around it.
                if outer.begin == begin {
                    outer.begin = None;
                }
            }
            if abbreviation.has_children() {
                open.push(Open {
                    depth,
                    origin,
                    begin,
                });
            } else {
                let only = Open {
                    depth,
                    origin,
                    begin,
                };
                self.close(Some(only), rows);
            }
        }
        while !open.is_empty() {
            self.close(open.pop(), rows);
        }
        Ok(())
    }

    fn close(&mut self, open: Option<Open>, rows: &Rows<'_>) {
        let Some(open) = open else { return };
        if let Some(row) = open.begin.and_then(|begin| rows.at(begin)) {
            self.add(open.origin, row.file, row.line);
        }
    }

    fn add(&mut self, origin: UnitOffset, file: u64, line: u32) {
        if line == 0 {
            return;
        }
        let files = self.0.entry(origin).or_default();
        // Code of one function comes from few files; hostile input is not kept.
        let is_full = files.len() >= 8;
        match files.iter_mut().find(|extent| extent.file == file) {
            Some(extent) => {
                extent.first = extent.first.min(line);
                extent.last = extent.last.max(line);
                extent.seen = extent.seen.saturating_add(1);
            }
            None if !is_full => files.push(Extent {
                file,
                first: line,
                last: line,
                seen: 1,
            }),
            None => {}
        }
    }
}
