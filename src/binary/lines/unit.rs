//! One compilation unit: its functions, its line rows, its part in another file.

use std::sync::OnceLock;

use gimli::{AttributeValue, DwarfFileType, UnitRef};

use super::functions::Functions;
use super::names::{self, Place};
use super::ranges::RangeAttributes;
use super::rows::Rows;
use super::{Debug, InlineFrame, Slice, text};

/// A unit and what has been read of it.
#[derive(Debug)]
pub(super) struct Unit<'b> {
    /// Its number among the units of its file.
    index: usize,
    main: gimli::Unit<Slice<'b>>,
    split: OnceLock<Option<Box<Split<'b>>>>,
    functions: OnceLock<Functions<'b>>,
    rows: OnceLock<Option<Rows<'b>>>,
}

/// The part of a unit that stands in a `.dwo` or `.dwp` file: everything but its line rows.
#[derive(Debug)]
struct Split<'b> {
    dwarf: gimli::Dwarf<Slice<'b>>,
    unit: gimli::Unit<Slice<'b>>,
}

impl<'b> Unit<'b> {
    pub(super) fn new(index: usize, main: gimli::Unit<Slice<'b>>) -> Unit<'b> {
        Unit {
            index,
            main,
            split: OnceLock::new(),
            functions: OnceLock::new(),
            rows: OnceLock::new(),
        }
    }

    /// The unit as it stands in the file itself. `dwarf` is that file.
    pub(super) fn main<'u>(&'u self, dwarf: &'u gimli::Dwarf<Slice<'b>>) -> UnitRef<'u, Slice<'b>> {
        UnitRef::new(dwarf, &self.main)
    }

    /// Adds the frames of `address`; `false` when the unit does not know it.
    pub(super) fn frames<'l>(
        &'l self,
        address: u64,
        debug: &'l Debug<'b>,
        out: &mut Vec<InlineFrame<'l>>,
    ) -> bool {
        let split = self.split(debug);
        let (unit, place) = match split {
            Some(split) => (UnitRef::new(&split.dwarf, &split.unit), Place::Split),
            None => (self.main(&debug.dwarf), Place::Main),
        };
        let rows = self.rows(debug);
        let row = rows.and_then(|rows| rows.at(address));
        let (mut file, mut line) = row.map_or((None, 0), |row| (Some(row.file), row.line));
        let functions = self
            .functions
            .get_or_init(|| Functions::read(unit, &debug.fuel));
        let Some(function) = functions.at(address) else {
            if row.is_none() {
                return false;
            }
            out.push(InlineFrame {
                function: None,
                file: rows.and_then(|rows| rows.path(file?, self.main(&debug.dwarf))),
                line: (line != 0).then_some(line),
            });
            return true;
        };
        let inlines = function.inlines(unit, &debug.fuel);
        let mut chain = inlines.chain(address);
        let name = |inlined: Option<usize>| {
            let cell = match inlined {
                Some(call) => &inlines.call(call)?.name,
                None => &function.name,
            };
            *cell.get_or_init(|| {
                let offset = match inlined {
                    Some(call) => inlines.call(call)?.offset,
                    None => function.offset,
                };
                names::of(offset, unit, place, debug)
            })
        };
        loop {
            let inlined = chain.pop();
            out.push(InlineFrame {
                function: name(inlined).map(text),
                file: rows.and_then(|rows| rows.path(file?, self.main(&debug.dwarf))),
                line: (line != 0).then_some(line),
            });
            let Some(call) = inlined.and_then(|call| inlines.call(call)) else {
                return true;
            };
            (file, line) = (call.file, call.line);
        }
    }

    fn rows(&self, debug: &Debug<'b>) -> Option<&Rows<'b>> {
        let rows = self.rows.get_or_init(|| {
            let program = self.main.line_program.clone()?;
            Some(Rows::read(program, &debug.fuel))
        });
        rows.as_ref()
    }

    /// Calls `add` with each range of addresses, as (begin, end), that the unit says it covers.
    pub(super) fn each_range(&self, debug: &Debug<'b>, mut add: impl FnMut(u64, u64)) {
        let unit = self.main(&debug.dwarf);
        let mut ranges = RangeAttributes::default();
        let read = (|| {
            let mut entries = unit.entries_raw(None)?;
            if let Some(abbreviation) = entries.read_abbreviation()? {
                for spec in abbreviation.attributes() {
                    ranges.add(unit, &entries.read_attribute(*spec)?);
                }
            }
            gimli::Result::Ok(())
        })();
        if read.is_ok() && ranges.each(unit, &debug.fuel, &mut add) {
            return;
        }
        for (begin, end) in self.rows(debug).into_iter().flat_map(Rows::ranges) {
            add(begin, end);
        }
    }

    fn split(&self, debug: &Debug<'b>) -> Option<&Split<'b>> {
        let split = self.split.get_or_init(|| {
            let dwarf = self.split_dwarf(debug)?;
            let header = dwarf.units().next().ok().flatten()?;
            let mut unit = dwarf.unit(header).ok()?;
            if unit.dwo_id != self.main.dwo_id {
                return None;
            }
            unit.copy_relocated_attributes(&self.main);
            Some(Box::new(Split { dwarf, unit }))
        });
        split.as_deref()
    }

    /// The file with the other part of this unit: the package beside the program, else the
    /// object file that the unit names.
    fn split_dwarf(&self, debug: &Debug<'b>) -> Option<gimli::Dwarf<Slice<'b>>> {
        let id = self.main.dwo_id?;
        if debug.dwarf.file_type == DwarfFileType::Dwo {
            return None;
        }
        if let Some(package) = &debug.package
            && let Ok(Some(dwarf)) = package.find_cu(id, &debug.dwarf)
        {
            return Some(dwarf);
        }
        let unit = self.main(&debug.dwarf);
        let name: AttributeValue<Slice<'b>> = unit.dwo_name().ok()??;
        let name = names::string(name, unit)?;
        let directory = self.main.comp_dir.map(|directory| directory.slice());
        let mut dwarf = debug
            .info
            .split(self.index, debug.units.len(), directory, name)?;
        dwarf.make_dwo(&debug.dwarf);
        Some(dwarf)
    }
}
