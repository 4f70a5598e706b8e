//! One compilation unit: its functions, its line rows, its part in another file.

use std::sync::{Arc, OnceLock};

use gimli::{AttributeValue, DwarfFileType, UnitOffset, UnitRef};

use super::definition::{self, At, DebugFile, Definition, Position};
use super::extents::{Extent, Extents};
use super::functions::Functions;
use super::line_rows::{self, Rows};
use super::names;
use super::ranges::RangeAttributes;
use super::scopes::Scopes;
use super::{Debug, InlineFrame, Slice, text};

#[derive(Debug)]
pub(super) struct Unit<'b> {
    // Its number among the units of its file.
    index: usize,
    main: gimli::Unit<Slice<'b>>,
    split: OnceLock<Option<Box<Split<'b>>>>,
    functions: OnceLock<Functions<'b>>,
    rows: OnceLock<Option<Rows<'b>>>,
    scopes: OnceLock<Scopes>,
    extents: OnceLock<Extents>,
}

// The part of a unit that stands in a `.dwo` or `.dwp` file: everything but its line rows.
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
            scopes: OnceLock::new(),
            extents: OnceLock::new(),
        }
    }

    // The unit as it stands in the file itself. `dwarf` is that file.
    pub(super) fn main<'u>(&'u self, dwarf: &'u gimli::Dwarf<Slice<'b>>) -> UnitRef<'u, Slice<'b>> {
        UnitRef::new(dwarf, &self.main)
    }

    // Adds the frames of `address`, with their files and lines if these are wanted; `false` when
    // the unit does not know it.
    pub(super) fn frames<'l>(
        &'l self,
        address: u64,
        lines: bool,
        debug: &'l Debug<'b>,
        out: &mut Vec<InlineFrame<'l>>,
    ) -> bool {
        let (unit, place) = self.entries(debug);
        let function = self.functions(debug).at(address);
        let rows = (lines || function.is_none())
            .then(|| self.rows(debug))
            .flatten();
        let row = rows.and_then(|rows| rows.at(address));
        let (mut file, mut line) = row.map_or((None, 0), |row| (Some(row.file), row.line));
        let Some(function) = function else {
            if row.is_none() {
                return false;
            }
            // With line tables only (-g1, assembler) a unit has lines without functions.
            out.push(InlineFrame {
                function: None,
                definition: None,
                is_split_off: false,
                file: rows
                    .filter(|_| lines)
                    .and_then(|rows| rows.path(file?, self.main(&debug.dwarf), &debug.account)),
                line: (lines && line != 0).then_some(line),
            });
            return true;
        };
        let inlines = function.inlines(unit, &debug.account);
        let mut chain = inlines.chain(address);
        let definition = |cell: &'l OnceLock<Option<Arc<Definition<'b>>>>, offset| {
            let at = At {
                offset,
                unit,
                place,
            };
            cell.get_or_init(|| definition::of(at, debug)).as_deref()
        };
        let of_call = |call: usize| {
            let call = inlines.call(call)?;
            definition(&call.definition, call.offset)
        };
        let of_function = || definition(&function.definition, function.offset);
        loop {
            let call = chain.pop();
            let definition = call.map_or_else(of_function, of_call);
            let from = call
                .and_then(|call| inlines.call(call))
                .map(|call| call.from);
            let is_split_off = from.is_some_and(|from| {
                let around = chain.last().copied().map_or_else(of_function, of_call);
                is_split_off(definition, around, from)
            });
            out.push(InlineFrame {
                function: definition.and_then(|d| d.any_name()).map(text),
                definition: definition.map(Definition::key),
                is_split_off,
                file: rows
                    .and_then(|rows| rows.path(file?, self.main(&debug.dwarf), &debug.account)),
                line: (lines && line != 0).then_some(line),
            });
            let Some(from) = from else {
                return true;
            };
            // The line table has only the innermost position. The position in the function around
            // an inlined call is where that call was made.
            (file, line) = (from.file, from.line);
        }
    }

    pub(super) fn definition<'l>(
        &'l self,
        address: u64,
        debug: &'l Debug<'b>,
    ) -> Option<&'l Definition<'b>> {
        let function = self.functions(debug).at(address)?;
        let (unit, place) = self.entries(debug);
        let offset = function.offset;
        let at = At {
            offset,
            unit,
            place,
        };
        let cell = &function.definition;
        cell.get_or_init(|| definition::of(at, debug)).as_deref()
    }

    pub(super) fn functions<'l>(&'l self, debug: &'l Debug<'b>) -> &'l Functions<'b> {
        self.functions
            .get_or_init(|| Functions::read(self.entries(debug).0, &debug.account))
    }

    // The part of the unit with the entries of functions.
    pub(super) fn entries<'l>(
        &'l self,
        debug: &'l Debug<'b>,
    ) -> (UnitRef<'l, Slice<'b>>, DebugFile) {
        match self.split(debug) {
            Some(split) => (
                UnitRef::new(&split.dwarf, &split.unit),
                DebugFile::Split(self.index),
            ),
            None => (self.main(&debug.dwarf), DebugFile::Main),
        }
    }

    pub(super) fn scopes(&self, debug: &Debug<'b>) -> &Scopes {
        self.scopes
            .get_or_init(|| Scopes::read(self.entries(debug).0, &debug.account))
    }

    // The lines of the function whose copies stem from the entry at `origin`.
    pub(super) fn extent(&self, origin: UnitOffset, debug: &Debug<'b>) -> Option<Extent> {
        let rows = self.rows(debug)?;
        let extents = self
            .extents
            .get_or_init(|| Extents::read(self.entries(debug).0, rows, &debug.account));
        extents.of(origin)
    }

    pub(super) fn directory(&self) -> Option<&'b [u8]> {
        self.main.comp_dir.map(|directory| directory.slice())
    }

    pub(super) fn main_source(&self, debug: &Debug<'b>) -> Option<String> {
        let name = self.entries(debug).0.name?;
        let mut path = String::new();
        for part in self.directory().into_iter().chain([name.slice()]) {
            line_rows::join(&mut path, &text(part));
        }
        Some(path)
    }

    pub(super) fn path(&self, file: u64, debug: &Debug<'b>) -> Option<String> {
        let header = self.main.line_program.as_ref()?.header();
        line_rows::path(header, file, self.main(&debug.dwarf))
    }

    // `DW_LNCT_LLVM_source`, by the file's path.
    pub(super) fn embedded_source(
        &self,
        path: &str,
        limit: usize,
        debug: &Debug<'b>,
    ) -> Option<&'b [u8]> {
        let header = self.main.line_program.as_ref()?.header();
        if !header.file_has_source() {
            return None;
        }
        let unit = self.main(&debug.dwarf);
        // Files may be listed twice, and not each time with their text.
        (0..=header.file_names().len() as u64).find_map(|file| {
            let source = header.file(file)?.source()?;
            let is_it = line_rows::path(header, file, unit).as_deref() == Some(path);
            let text = names::string_up_to(limit, source, unit).filter(|_| is_it)?;
            // A text that was cut would be taken for the whole; without one the string is empty.
            (!text.is_empty() && text.len() < limit).then_some(text)
        })
    }

    // The line row of `address`, as path and line.
    pub(super) fn row(&self, address: u64, debug: &Debug<'b>) -> Option<(&str, u32)> {
        let rows = self.rows(debug)?;
        let row = rows.at(address).filter(|row| row.line > 0)?;
        Some((
            rows.path(row.file, self.main(&debug.dwarf), &debug.account)?,
            row.line,
        ))
    }

    fn rows(&self, debug: &Debug<'b>) -> Option<&Rows<'b>> {
        let rows = self.rows.get_or_init(|| {
            let program = self.main.line_program.clone()?;
            Some(Rows::read(program, &debug.account))
        });
        rows.as_ref()
    }

    // Calls `add` with each range of addresses, as (begin, end), that the unit says it covers.
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
        if read.is_ok() && ranges.each(unit, &debug.account, &mut add) {
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

    // The package next to the program, else the object file that the unit names.
    fn split_dwarf(&self, debug: &Debug<'b>) -> Option<gimli::Dwarf<Slice<'b>>> {
        let id = self.main.dwo_id?;
        if let Some(kept) = debug.kept {
            kept.depends_on_others();
        }
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

// GCC calls the part that it split off a function (`f.part.0`), and put back into it, as if from
// where `f` is declared; a call that the source has, which may be recursion that was inlined, has
// the position of its own. Where nothing is known of the position, a part is the better guess:
// compilers know it of calls.
fn is_split_off(
    inlined: Option<&Definition<'_>>,
    around: Option<&Definition<'_>>,
    from: Position,
) -> bool {
    let (Some(inlined), Some(around)) = (inlined, around) else {
        return false;
    };
    if inlined.root != around.root {
        return false;
    }
    let Some((declared, _)) = inlined.declared else {
        return from.line == 0;
    };
    let is_column = [from.column, 0].contains(&declared.column) || from.column == 0;
    from.line == 0 || from.line == declared.line && is_column
}
