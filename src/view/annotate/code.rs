//! The machine code of a function, with source lines between the instructions.

use std::borrow::Cow;

use super::{
    AnnotateView, RowOf, Section, Weights, arrows, expanded, figures, has_calls, row, shown,
    source, without_weights,
};
use crate::analysis::annotate::CodeWeights;
use crate::names::{Form, in_form, of_text, segments};
use crate::profile::{Instruction, Listing, Origin};
use crate::view::number;
use crate::view::page::Block;
use crate::view::table::{Cell, Column, Guide, Name, Role, Table, What};
use crate::view::{Names, Subject};

/// Machine code with its weights.
#[derive(Clone, Debug)]
pub struct CodeView {
    /// The code.
    pub listing: Listing,
    /// The weight of samples at addresses of the function that are in no instruction of the
    /// listing.
    pub outside: u64,
    /// The weight of the samples taken in all of this code.
    pub self_weight: u64,
    /// The same with what it calls.
    pub total: u64,
    /// The self weight of the function where it is inlined into others.
    pub inlined_elsewhere: u64,
    /// Self weight and total of each instruction.
    weights: Vec<(u64, u64)>,
}

/// An instruction and its weights.
#[derive(Clone, Copy, Debug)]
pub struct CodeLine<'a> {
    /// The instruction.
    pub instruction: &'a Instruction,
    /// The weight of the samples taken at it.
    pub self_weight: u64,
    /// The same with what it calls.
    pub total: u64,
}

/// The remark on the weight of a function where it is inlined into others.
pub const ELSEWHERE: &str =
    "self weight of the function where it is inlined into others, in their machine code.";
/// The remark on weight at other addresses.
pub const OUTSIDE: &str = "taken at addresses that are not in this list.";

/// What a reader has to know of code that is not that of a file which was mapped.
fn origin(origin: Origin) -> Option<String> {
    Some(match origin {
        Origin::Mapped => return None,
        Origin::KernelMemory => "Code of the running kernel as it is now. It can differ from the \
                                 code that was sampled where the kernel has changed it since \
                                 (tracing, static keys)."
            .into(),
        Origin::KernelFile => "Code of the kernel as it was built. It can differ from the code \
                               that ran, as the kernel changes it (alternatives, tracing, static \
                               keys)."
            .into(),
        Origin::JitDump { pieces: 0 | 1 } => "Addresses are offsets in this file.".into(),
        Origin::JitDump { pieces } => format!(
            "Addresses are offsets in this file. {pieces} pieces of code that have this name were \
             sampled."
        ),
    })
}

/// Names of more bytes lose the start of their path on a page.
const LONG: usize = 32;

/// The name of another function as it stands beside code, where there is little room: its last two
/// parts, if it is long.
fn brief(names: Names, name: &str) -> Cow<'_, str> {
    if names != Names::Short {
        return Cow::Borrowed(name);
    }
    let short = in_form(name, of_text(name), Form::Short);
    let last = match &segments(&short)[..] {
        [_, .., outer, own] if short.len() > LONG => Some(format!("…::{outer}::{own}")),
        _ => None,
    };
    last.map_or(short, Cow::Owned)
}

impl CodeView {
    pub(super) fn new(listing: Listing, of: Option<&CodeWeights>) -> CodeView {
        let mut weights = vec![(0, 0); listing.instructions.len()];
        let mut outside = 0;
        for at in of.iter().flat_map(|code| &code.addresses) {
            match listing.instruction_at(at.address) {
                Some(place) => {
                    let (own, total) = &mut weights[place];
                    *own += at.self_weight;
                    *total += at.total;
                }
                None => outside += at.self_weight,
            }
        }
        CodeView {
            listing,
            outside,
            self_weight: of.map_or(0, |code| code.self_weight),
            total: of.map_or(0, |code| code.total),
            inlined_elsewhere: of.map_or(0, |code| code.inlined_elsewhere),
            weights,
        }
    }

    /// All instructions in order of address.
    pub fn lines(&self) -> impl Iterator<Item = CodeLine<'_>> {
        let weighted = self.listing.instructions.iter().zip(&self.weights);
        weighted.map(|(instruction, &(self_weight, total))| CodeLine {
            instruction,
            self_weight,
            total,
        })
    }

    /// Which instructions are asked for.
    pub(super) fn shown(&self, view: &AnnotateView) -> Vec<bool> {
        shown::rows(&self.weights, view.whole(true), &view.options)
    }

    /// What an instruction calls, or jumps to outside of the listing: `parse`, `parse+0x12`.
    pub fn callee(&self, instruction: &Instruction) -> Option<String> {
        self.callee_named(instruction, Names::Full)
    }

    fn callee_named(&self, instruction: &Instruction, names: Names) -> Option<String> {
        let callee = instruction.callee?;
        let name = brief(names, &self.listing.names[callee.function]);
        Some(match callee.offset {
            0 => name.into_owned(),
            offset => format!("{name}+{offset:#x}"),
        })
    }

    /// What is shown of it.
    pub(super) fn sections(
        &self,
        view: &AnnotateView,
        subject: &Subject,
        sections: &mut Vec<Section>,
    ) {
        let whole = view.whole(true);
        let is_shown = self.shown(view);
        let address = Column::new("address", "address", Role::Figure);
        let mut table = Table::new(figures(address, "instruction"));
        // The rows of the table that are instructions, by address.
        let mut rows: Vec<(u64, usize)> = Vec::new();
        let mut rows_of = Vec::new();
        let mut last = None;
        let mut was_shown = true;
        for (number, (line, is_shown)) in self.lines().zip(is_shown).enumerate() {
            if !is_shown {
                if was_shown {
                    table.rows.push(source::gap());
                }
                (was_shown, last) = (false, None);
                continue;
            }
            was_shown = true;
            let instruction = line.instruction;
            if last != Some(instruction.position) {
                table.rows.extend(self.source(view, subject, instruction));
            }
            last = Some(instruction.position);
            rows.push((instruction.address, table.rows.len()));
            rows_of.resize(table.rows.len(), None);
            rows_of.push(Some(RowOf::Instruction(number)));
            let what = What::Instruction {
                text: instruction.text.to_string(),
                callee: self.callee_named(instruction, subject.names),
            };
            table.rows.push(row(
                (line.self_weight, whole.0),
                (Some(line.total), whole.1),
                instruction.calls,
                Cell::Text(format!("{:x}", instruction.address)),
                Cell::name(what),
            ));
        }
        self.draw(&mut table, &rows);
        rows_of.resize(table.rows.len(), None);
        sections.extend(origin(self.listing.origin).map(|text| Block::Line(text).into()));
        for file in &view.files {
            let texts = source::warnings(file);
            let texts = texts.map(|text| Block::Line(format!("{}: {text}", file.file)));
            sections.extend(texts.map(Section::from));
        }
        if table
            .rows
            .iter()
            .any(|row| row[0] != Cell::Nothing || row[1] != Cell::Nothing)
        {
            let table = if has_calls(subject) {
                table
            } else {
                table.without(&["calls"])
            };
            sections.push(Section {
                block: Block::Table(without_weights(view.without_totals(table), subject)),
                weights: Weights::Rows(rows_of),
            });
        }
        let unit = &subject.selection.event().unit;
        let mut note = |weight: u64, text: &str| {
            if weight > 0 {
                let text = format!("{}: {text}", number::weight(weight, unit));
                sections.push(Section::of_weights(text));
            }
        };
        note(self.outside, OUTSIDE);
        if self.listing.is_cut {
            let text = "The function has more code than is listed here.";
            sections.push(Block::Line(text.into()).into());
        }
    }

    /// A row with the source line of an instruction.
    fn source(
        &self,
        view: &AnnotateView,
        subject: &Subject,
        instruction: &Instruction,
    ) -> Option<Vec<Cell>> {
        let position = self.listing.position_of(instruction)?;
        let file = &self.listing.names[position.file];
        let name = file.rsplit('/').next().unwrap_or(file);
        let text = view
            .text(file, position.line)
            .map(|text| expanded(text.trim_start()));
        let inlined = position.inlined.map(|name| &self.listing.names[name]);
        let mut cells = vec![Cell::Nothing; 6];
        cells.push(Cell::Name(Box::new(Name {
            guide: Guide::None,
            what: What::Source {
                place: format!("{name}:{}", position.line),
                inlined: inlined.map(|name| brief(subject.names, name).into_owned()),
                text,
            },
            is_faint: true,
        })));
        Some(cells)
    }

    /// Puts arrows before the instructions; `rows` has those that are in the table, by address.
    fn draw(&self, table: &mut Table, rows: &[(u64, usize)]) {
        let row_of = |address: u64| {
            let place = rows.binary_search_by_key(&address, |&(address, _)| address);
            place.ok().map(|place| rows[place].1)
        };
        let jumps: Vec<(usize, usize)> = (self.listing.instructions.iter())
            .filter_map(|instruction| {
                Some((row_of(instruction.address)?, row_of(instruction.jump?)?))
            })
            .collect();
        let guides = arrows::beside(table.rows.len(), &jumps);
        for (row, lines) in table.rows.iter_mut().zip(guides) {
            let guide = Guide::Jumps(lines);
            match row.last_mut() {
                Some(Cell::Name(name)) => name.guide = guide,
                Some(cell) => *cell = Cell::beside(guide, ""),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_beside_code_keep_their_end() {
        let parse = "nl::json_abi_v3::basic_json<std::map, bool>::parse<std::string>(std::string)";
        for (name, expected) in [
            ("memcpy", "memcpy"),
            (
                "std::vector<int>::push_back(int const&)",
                "std::vector::push_back",
            ),
            (parse, "…::basic_json::parse"),
            (
                "hashbrown::raw::inner::RawTable<T,A>::reserve_rehash",
                "…::RawTable::reserve_rehash",
            ),
            (
                "a_function_of_c_with_a_name_of_many_words",
                "a_function_of_c_with_a_name_of_many_words",
            ),
        ] {
            assert_eq!(brief(Names::Short, name), expected, "{name}");
        }
        assert_eq!(brief(Names::Full, parse), parse);
    }
}
