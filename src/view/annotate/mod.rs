//! One function from within: its source lines and its machine code, with their weights.

mod arrows;
mod code;
mod section;
mod shown;
mod skid;
mod source;

pub use self::code::{CodeLine, CodeView};
pub use self::section::{RowOf, Section, Weights};
pub use self::source::{FileView, SourceLine};

use std::sync::Arc;

use super::page::{Block, Page};
use super::table::{Cell, Column, Role, Table};
use super::{Figures, Subject, caveats, number};
use crate::analysis::annotate::{CodeWeights, Summary};
use crate::profile::{FunctionId, Listing, MadeCalls, NoSource, SourceText};

/// What the percentages are shares of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// The function's total: both columns are shares of the same weight, and can be compared.
    #[default]
    Total,
    /// The function's self weight, as in perf annotate. There are no shares of totals, which would
    /// exceed it.
    SelfWeight,
    /// All samples that are looked at, as in the list of functions.
    All,
}

/// What is shown of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// The maximum number of lines and of instructions with weight; `None` for all.
    pub limit: Option<usize>,
    /// What shares are of.
    pub base: Base,
    /// Only those whose self weight or total has at least this share, in percent.
    pub min: f64,
    /// The number of rows that are shown before and behind each of them; `usize::MAX` for all of
    /// the function.
    pub context: usize,
    /// Whether a page has the machine code. It has it in any case where no line is known.
    pub assembly: bool,
}

/// What there is beyond the weights.
#[derive(Clone, Debug, Default)]
pub struct Material {
    /// The machine code, if there is any.
    pub code: Option<Listing>,
    /// Its instructions in other functions, which it is inlined into.
    pub copies: Vec<InlinedCopy>,
    /// Else the reason, a lower-case fragment.
    pub no_code: Option<String>,
    /// The source files, or why there is no text, by their paths in debug information.
    pub sources: Vec<(String, Result<Arc<SourceText>, NoSource>)>,
}

/// The instructions of a function where it is inlined into another.
#[derive(Clone, Debug)]
pub struct InlinedCopy {
    /// The function in whose machine code they are.
    pub holder: FunctionId,
    /// The self weight of the function there.
    pub self_weight: u64,
    /// The instructions, with those of what is inlined into the function.
    pub code: Listing,
    /// Their weights.
    pub weights: CodeWeights,
}

/// An [`InlinedCopy`], named.
#[derive(Clone, Debug)]
pub struct CopyView {
    /// The instructions.
    pub code: CodeView,
    label: String,
}

/// A function from within, chosen and named.
#[derive(Clone, Debug)]
pub struct AnnotateView {
    /// The weights.
    pub summary: Summary,
    /// The source files that have lines of it: first the one that declares it, then by weight.
    pub files: Vec<FileView>,
    /// Its machine code; `None` where it was not asked for or cannot be had.
    pub code: Option<CodeView>,
    /// Its instructions in other functions, where machine code was asked for.
    pub copies: Vec<CopyView>,
    /// Its self weight in other functions that are not among these.
    pub not_listed: u64,
    /// Why there is no machine code, where it was asked for.
    pub no_code: Option<String>,
    options: Options,
    /// The weight of all samples that are looked at.
    all: u64,
    sources: Vec<(String, Result<Arc<SourceText>, NoSource>)>,
    label: String,
}

/// Chooses and names.
pub fn arrange(
    subject: &Subject,
    summary: Summary,
    material: Material,
    options: &Options,
) -> AnnotateView {
    let function = summary.function;
    let listing = material.code;
    let files = source::files(subject, &summary, listing.as_ref(), &material.sources);
    let weights = summary.code.as_ref();
    let listed: u64 = material.copies.iter().map(|copy| copy.self_weight).sum();
    let holders = material.copies.iter().map(|copy| copy.holder);
    let labels = subject.labels(holders);
    let copies = material.copies.into_iter().map(|copy| CopyView {
        code: CodeView::new(copy.code, Some(&copy.weights)),
        label: labels.of(copy.holder).to_owned(),
    });
    AnnotateView {
        copies: copies.collect(),
        not_listed: weights.map_or(0, |code| code.inlined_elsewhere - listed),
        code: listing.map(|listing| CodeView::new(listing, weights)),
        label: subject.labels([function]).of(function).to_owned(),
        sources: material.sources,
        options: *options,
        all: subject.selection.total(),
        files,
        no_code: material.no_code,
        summary,
    }
}

impl CopyView {
    /// What the function around it is called.
    pub fn holder_name(&self) -> &str {
        &self.label
    }
}

impl AnnotateView {
    /// What the function is called.
    pub fn name(&self) -> &str {
        &self.label
    }

    /// The text of a source line, where the file was found.
    pub fn text(&self, file: &str, line: u32) -> Option<&str> {
        let found = self.sources.iter().find(|(path, _)| path == file);
        found.and_then(|(_, source)| source.as_ref().ok()?.line(line))
    }

    /// The lines of a file that are asked for.
    pub fn lines_of<'a>(&self, file: &'a FileView) -> impl Iterator<Item = &'a SourceLine> {
        let whole = self.whole(false);
        let is_shown = shown::rows(&source::weights(&file.lines), whole, &self.options);
        let lines = file.lines.iter().zip(is_shown);
        lines.filter_map(|(line, is_shown)| is_shown.then_some(line))
    }

    /// The instructions of a listing that are asked for.
    pub fn instructions<'a>(&self, code: &'a CodeView) -> impl Iterator<Item = CodeLine<'a>> {
        let lines = code.lines().zip(code.shown(self));
        lines.filter_map(|(line, is_shown)| is_shown.then_some(line))
    }

    /// All lines and instructions, a record each.
    pub fn table(&self, subject: &Subject) -> Table {
        let mut table = Table::new(vec![
            Column::new("what", "what", Role::Name),
            Column::new("self_percent", "self %", Role::Heat),
            Column::new("total_percent", "total %", Role::Heat),
            Column::new("self", "self", Role::Figure),
            Column::new("total", "total", Role::Figure),
            Column::new("calls", "calls", Role::Figure),
            Column::new("file", "file", Role::Name),
            Column::new("line", "line", Role::Figure),
            Column::new("address", "address", Role::Figure),
            Column::new("text", "text", Role::Name),
            Column::new("callee", "callee", Role::Name),
            Column::new("inlined_into", "inlined into", Role::Name),
        ]);
        table.rows.extend(self.line_rows());
        if let Some(code) = &self.code {
            table.rows.extend(self.instruction_rows(code, None));
        }
        for copy in &self.copies {
            let rows = self.instruction_rows(&copy.code, Some(&copy.label));
            table.rows.extend(rows);
        }
        let table = if has_calls(subject) {
            table
        } else {
            table.without(&["calls"])
        };
        without_weights(self.without_totals(table), subject)
    }

    fn line_rows(&self) -> Vec<Vec<Cell>> {
        let whole = self.whole(false);
        let mut rows = Vec::new();
        for file in &self.files {
            for line in self.lines_of(file) {
                let row = TableRow {
                    calls: line.calls,
                    file: text(&file.file),
                    line: Cell::Count(line.line.into()),
                    text: self.text(&file.file, line.line).map_or(Cell::Nothing, text),
                    ..TableRow::of("line", (line.self_weight, line.total))
                };
                rows.push(row.cells(whole));
            }
        }
        // Self weight whose line is not known.
        for unknown in self.summary.lines.iter().filter(|row| row.line.is_none()) {
            let row = TableRow::of("line", (unknown.self_weight, unknown.total));
            rows.push(row.cells(whole));
        }
        rows
    }

    fn instruction_rows(&self, code: &CodeView, holder: Option<&str>) -> Vec<Vec<Cell>> {
        let whole = self.whole(true);
        let rows = self.instructions(code).map(|line| {
            let instruction = line.instruction;
            let position = code.listing.position_of(instruction);
            let row = TableRow {
                calls: instruction.calls,
                file: position.map_or(Cell::Nothing, |at| text(&code.listing.names[at.file])),
                line: position.map_or(Cell::Nothing, |at| Cell::Count(at.line.into())),
                address: text(&format!("{:#x}", instruction.address)),
                text: text(&instruction.text),
                callee: code.callee(instruction).map_or(Cell::Nothing, Cell::Text),
                holder: holder.map_or(Cell::Nothing, text),
                ..TableRow::of("instruction", (line.self_weight, Some(line.total)))
            };
            row.cells(whole)
        });
        rows.collect()
    }

    /// The weights that self weights and totals are shares of, of lines or of machine code.
    fn whole(&self, is_code: bool) -> (u64, u64) {
        let code = self.code.as_ref().filter(|_| is_code);
        let copies = self.copies.iter().map(|copy| copy.code.self_weight);
        let (own, total) = match code {
            _ if is_code && copies.len() > 0 => (
                code.map_or(0, |code| code.self_weight) + copies.sum::<u64>(),
                // Of one sample several can be on the stack.
                self.summary.total,
            ),
            Some(code) => (code.self_weight, code.total),
            None => (self.summary.self_weight, self.summary.total),
        };
        match self.options.base {
            Base::Total => (total, total),
            Base::SelfWeight => (own, total),
            Base::All => (self.all, self.all),
        }
    }

    /// Leaves the shares of totals out, if shares are of the self weight.
    fn without_totals(&self, table: Table) -> Table {
        match self.options.base {
            Base::SelfWeight => table.without(&["total_percent"]),
            Base::Total | Base::All => table,
        }
    }

    /// The page for people.
    pub fn page(&self, subject: &Subject) -> Page {
        let summary = &self.summary;
        let mut blocks = vec![Block::Line(subject.headline()), Block::Space];
        let heading = subject.with_module(&self.label, summary.function);
        blocks.push(Block::Heading(heading));
        let unit = &subject.selection.event().unit;
        let amount = |part| {
            let share = number::percent(part, subject.selection.total(), 2);
            format!("{share} % of all ({})", number::weight(part, unit))
        };
        blocks.push(Block::Line(format!(
            "self {}, total {}",
            amount(summary.self_weight),
            amount(summary.total)
        )));
        blocks.extend(self.body(subject));
        blocks.extend(caveats::foot_of(subject));
        Page {
            unit: unit.clone(),
            blocks,
        }
    }

    /// The page without what is above the first table, and without the notes at its foot.
    pub fn body(&self, subject: &Subject) -> Vec<Block> {
        let sections = self.sections(subject).into_iter();
        sections.map(|section| section.block).collect()
    }

    /// The same, with the parts that are figures.
    pub fn sections(&self, subject: &Subject) -> Vec<Section> {
        let mut sections = Vec::new();
        let knows_lines = !self.files.is_empty();
        let has_code = self.code.is_some() || !self.copies.is_empty();
        let shows_code = has_code && (self.options.assembly || !knows_lines);
        if shows_code {
            self.code_sections(subject, &mut sections);
        } else {
            source::sections(self, subject, &mut sections);
        }
        let mut say = |text: String| {
            sections.push(Block::Space.into());
            sections.push(Block::Line(text).into());
        };
        if !knows_lines {
            let why = match has_code {
                true => ": the file has no debug information for it",
                false => "",
            };
            say(format!("No source line of this function is known{why}."));
        }
        if let Some(reason) = &self.no_code
            && (self.options.assembly || !knows_lines)
        {
            say(format!("No machine code: {reason}."));
        }
        let is_table = |section: &Section| matches!(section.block, Block::Table(_));
        if sections.iter().any(is_table) {
            sections.push(Block::Space.into());
            let legend = self.legend(subject, shows_code);
            sections.push(Section::of_weights(legend));
            let note = skid::note(subject.selection.event());
            sections.extend(note.map(|note| Block::Line(note).into()));
        }
        sections
    }

    /// The machine code of the function, then its copies in others.
    fn code_sections(&self, subject: &Subject, sections: &mut Vec<Section>) {
        if let Some(code) = &self.code {
            sections.push(Block::Space.into());
            sections.push(Block::Heading(code.listing.file.clone()).into());
            code.sections(self, subject, sections);
        }
        for copy in &self.copies {
            sections.push(Block::Space.into());
            sections.push(Block::Heading(format!("Inlined into {}", copy.label)).into());
            copy.code.sections(self, subject, sections);
        }
        if self.not_listed > 0 {
            let weight = number::weight(self.not_listed, &subject.selection.event().unit);
            let text = format!("{weight}: {}", code::ELSEWHERE);
            sections.push(Section::of_weights(text));
        }
    }

    /// What the percentages are shares of.
    fn legend(&self, subject: &Subject, is_code: bool) -> String {
        let unit = &subject.selection.event().unit;
        let (own, total) = self.whole(is_code);
        let (whose, what) = if is_code {
            (
                "this machine code, with all that is inlined into it",
                "an instruction",
            )
        } else {
            ("the function", "a line")
        };
        let of = |base: &str, weight| format!("{base} ({})", number::weight(weight, unit));
        let base = match self.options.base {
            Base::Total => of(&format!("the total of {whose}"), total),
            Base::SelfWeight => {
                let base = of(&format!("the self weight of {whose}"), own);
                return format!("self %: share of {base}.");
            }
            Base::All => of("all samples", total),
        };
        format!(
            "self %, total %: shares of {base}. total: with what {what} calls; each sample counts \
             once."
        )
    }
}

/// The columns of figures of both tables.
fn figures(place: Column, text: &'static str) -> Vec<Column> {
    vec![
        Column::new("self_percent", "self %", Role::Heat),
        Column::new("total_percent", "total %", Role::Heat),
        place,
        Column::new("self", "self", Role::Figure),
        Column::new("total", "total", Role::Figure),
        Column::new("calls", "calls", Role::Figure),
        Column::new("text", text, Role::Code),
    ]
}

/// The cells of a row; figures of 0 are left out.
fn row(
    own: (u64, u64),
    total: (Option<u64>, u64),
    calls: Option<MadeCalls>,
    place: Cell,
    text: Cell,
) -> Vec<Cell> {
    let share = |part: u64, whole| match part {
        0 => Cell::Nothing,
        part => Cell::Share { part, whole },
    };
    let weight = |part: u64| match part {
        0 => Cell::Nothing,
        part => Cell::Weight(part),
    };
    let sum = total.0.unwrap_or(0);
    vec![
        share(own.0, own.1),
        share(sum, total.1),
        place,
        weight(own.0),
        weight(sum),
        calls.map_or(Cell::Nothing, made),
        text,
    ]
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

/// A row of the table of all lines and instructions.
struct TableRow {
    what: &'static str,
    self_weight: u64,
    total: Option<u64>,
    calls: Option<MadeCalls>,
    file: Cell,
    line: Cell,
    address: Cell,
    text: Cell,
    callee: Cell,
    holder: Cell,
}

impl TableRow {
    /// A row of weights only.
    fn of(what: &'static str, (self_weight, total): (u64, Option<u64>)) -> TableRow {
        TableRow {
            what,
            self_weight,
            total,
            calls: None,
            file: Cell::Nothing,
            line: Cell::Nothing,
            address: Cell::Nothing,
            text: Cell::Nothing,
            callee: Cell::Nothing,
            holder: Cell::Nothing,
        }
    }

    /// The cells, with shares of this self weight and total.
    fn cells(self, whole: (u64, u64)) -> Vec<Cell> {
        let share = |part, whole| Cell::Share { part, whole };
        let total = |cell: &dyn Fn(u64) -> Cell| self.total.map_or(Cell::Nothing, cell);
        vec![
            text(self.what),
            share(self.self_weight, whole.0),
            total(&|total| share(total, whole.1)),
            Cell::Weight(self.self_weight),
            total(&Cell::Weight),
            self.calls.map_or(Cell::Nothing, made),
            self.file,
            self.line,
            self.address,
            self.text,
            self.callee,
            self.holder,
        ]
    }
}

/// A number of calls.
fn made(calls: MadeCalls) -> Cell {
    if calls.is_least {
        Cell::Text(format!("≥{}", number::grouped(calls.calls)))
    } else {
        Cell::Count(calls.calls)
    }
}

/// Whether calls are known by call site.
fn has_calls(subject: &Subject) -> bool {
    let counts = subject.profile.counts.as_ref();
    counts.is_some_and(|counts| counts.have_sites())
}

fn without_weights(table: Table, subject: &Subject) -> Table {
    match subject.figures {
        Figures::All => table,
        Figures::Percent => table.without(&["self", "total"]),
    }
}

/// A source line as it can be shown: tabs go to columns of eight.
fn expanded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    for c in text.trim_end().chars() {
        let spaces = if c == '\t' { 8 - column % 8 } else { 0 };
        match c {
            '\t' => out.extend(std::iter::repeat_n(' ', spaces)),
            c => out.push(c),
        }
        column += spaces.max(1);
    }
    out
}
