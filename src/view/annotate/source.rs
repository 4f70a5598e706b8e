//! The source lines of a function.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    AnnotateView, RowOf, Section, Weights, expanded, figures, has_calls, row, shown,
    without_weights,
};
use crate::analysis::annotate::Summary;
use crate::profile::{Listing, MadeCalls, NoSource, SourceText};
use crate::view::Subject;
use crate::view::page::Block;
use crate::view::table::{Cell, Column, Role, Table};

/// The most lines from a function's first to its last between which gaps are filled.
const LONGEST: u32 = 1 << 20;

/// The lines of a function in one file.
#[derive(Clone, Debug, Default)]
pub struct FileView {
    /// The path in debug information.
    pub file: String,
    /// Where the file was found.
    pub found: Option<String>,
    /// Why there is no text of it, if there is none.
    pub no_text: Option<NoSource>,
    /// Whether the text is not that of a file but of the debug information of the program that
    /// `found` names.
    pub is_embedded: bool,
    /// Whether the source was written after the program: its lines may have moved.
    pub is_newer: bool,
    /// Whether the function has lines that the file does not have.
    pub is_short: bool,
    /// The lines that have weight or code of the function, in order.
    pub lines: Vec<SourceLine>,
}

/// A source line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceLine {
    /// The number, from 1.
    pub line: u32,
    /// The weight of the samples taken in it.
    pub self_weight: u64,
    /// The same with what it calls; `None` where it is not known.
    pub total: Option<u64>,
    /// How often the line calls, where that was counted: its own calls, not those of code that is
    /// inlined into it.
    pub calls: Option<MadeCalls>,
}

impl FileView {
    /// The weight of its heaviest line, and of all samples taken in it.
    fn weight(&self) -> (u64, u64) {
        let heaviest = self.lines.iter().filter_map(|line| line.total).max();
        let own = self.lines.iter().map(|line| line.self_weight).sum();
        (heaviest.unwrap_or(0).max(own), own)
    }
}

/// The files of the function's lines.
pub(super) fn files(
    subject: &Subject,
    summary: &Summary,
    listing: Option<&Listing>,
    sources: &[(String, Result<Arc<SourceText>, NoSource>)],
) -> Vec<FileView> {
    let profile = subject.profile;
    let mut lines: BTreeMap<&str, BTreeMap<u32, SourceLine>> = BTreeMap::new();
    for weights in &summary.lines {
        let Some(id) = weights.line else { continue };
        let at = &profile.lines[id];
        let line = SourceLine {
            line: at.line,
            self_weight: weights.self_weight,
            total: weights.total,
            calls: None,
        };
        lines.entry(&at.file).or_default().insert(at.line, line);
    }
    // A line that has code and no samples took 0, which is known; a line without code is not
    // listed.
    let has_totals = profile.places.is_some();
    let mut add = |file, line| {
        lines
            .entry(file)
            .or_default()
            .entry(line)
            .or_insert(SourceLine {
                line,
                self_weight: 0,
                total: has_totals.then_some(0),
                calls: None,
            });
    };
    if let Some(listing) = listing {
        for &(file, line) in &listing.lines {
            add(&listing.names[file], line);
        }
    }
    add_calls(subject, summary, listing, &mut lines);
    let declared = profile.functions[summary.function].declared_at.as_deref();
    let mut files: Vec<FileView> = lines
        .into_iter()
        .map(|(file, lines)| {
            let source = sources
                .iter()
                .find(|(path, _)| path == file)
                .map_or(Err(NoSource::NotFound), |(_, source)| {
                    source.as_deref().map_err(|&it| it)
                });
            let (source, no_text) = (source.ok(), source.err());
            let written = source.and_then(|source| source.modified);
            let built = listing.and_then(|listing| listing.modified);
            let last = lines.keys().next_back().copied().unwrap_or(0);
            FileView {
                file: file.to_owned(),
                found: source.map(|source| source.path.clone()),
                no_text,
                is_embedded: source.is_some_and(|source| source.is_embedded),
                is_newer: written
                    .zip(built)
                    .is_some_and(|(written, built)| written > built),
                is_short: source.is_some_and(|source| source.lines() < last as usize),
                lines: lines.into_values().collect(),
            }
        })
        .collect();
    files.sort_by_key(|file| {
        let is_declared = declared.is_some_and(|line| line.file == file.file);
        (!is_declared, Reverse(file.weight()))
    });
    files
}

/// Adds the counted calls of the lines, as far as they are in the function's own machine code.
fn add_calls(
    subject: &Subject,
    summary: &Summary,
    listing: Option<&Listing>,
    lines: &mut BTreeMap<&str, BTreeMap<u32, SourceLine>>,
) {
    let profile = subject.profile;
    let counts = profile.counts.as_ref().filter(|counts| counts.have_sites());
    let Some(listing) = listing.filter(|_| counts.is_some()) else {
        return;
    };
    // Where it is inlined, its lines make calls, too.
    let mut paths = profile.paths.enumerate().map(|(_, path)| path);
    let is_inlined = paths.any(|path| path.inlined && path.function == summary.function);
    for instruction in listing.instructions.iter().filter(|made| made.leaves) {
        let position = listing.position_of(instruction);
        let Some(position) = position.filter(|position| position.inlined.is_none()) else {
            continue;
        };
        let file = lines.get_mut(&listing.names[position.file]);
        let Some(line) = file.and_then(|lines| lines.get_mut(&position.line)) else {
            continue;
        };
        let calls = line.calls.get_or_insert_default();
        let made = instruction.calls.unwrap_or_default();
        calls.calls = calls.calls.saturating_add(made.calls);
        calls.is_least |= made.is_least || instruction.calls.is_none() || is_inlined;
    }
    for line in lines.values_mut().flat_map(BTreeMap::values_mut) {
        // At least 0 says nothing.
        line.calls = line.calls.filter(|made| made.calls > 0 || !made.is_least);
    }
}

/// Self weight and total of each line.
pub(super) fn weights(lines: &[SourceLine]) -> Vec<(u64, u64)> {
    let weights = lines.iter();
    weights
        .map(|line| (line.self_weight, line.total.unwrap_or(0)))
        .collect()
}

/// What is shown of all files.
pub(super) fn sections(view: &AnnotateView, subject: &Subject, sections: &mut Vec<Section>) {
    let whole = view.whole(false);
    for (number, file) in view.files.iter().enumerate() {
        let declared = subject.profile.functions[view.summary.function]
            .declared_at
            .as_deref()
            .filter(|line| line.file == file.file);
        let lines = filled(file, declared.map(|line| line.line));
        let is_shown = shown::rows(&weights(&lines), whole, &view.options);
        if !is_shown.contains(&true) {
            continue;
        }
        let line_column = Column::new("line", "line", Role::Figure);
        let has_calls = has_calls(subject);
        let mut table = Table::new(figures(line_column, "source"));
        let mut rows_of = Vec::new();
        let mut was_shown = true;
        for (line, is_shown) in lines.iter().zip(is_shown) {
            if is_shown {
                rows_of.push(Some(RowOf::Line {
                    file: number,
                    line: line.line,
                }));
                let text = view.text(&file.file, line.line).map(expanded);
                table.rows.push(row(
                    (line.self_weight, whole.0),
                    (line.total, whole.1),
                    line.calls,
                    Cell::Text(line.line.to_string()),
                    text.map_or(Cell::Nothing, Cell::Text),
                ));
            } else if was_shown {
                rows_of.push(None);
                table.rows.push(gap());
            }
            was_shown = is_shown;
        }
        sections.push(Block::Space.into());
        sections.extend(heading(file).into_iter().map(Section::from));
        let table = if has_calls {
            table
        } else {
            table.without(&["calls"])
        };
        let table = view.without_totals(table);
        sections.push(Section {
            block: Block::Table(without_weights(table, subject)),
            weights: Weights::Rows(rows_of),
        });
    }
    unknown(view, subject, sections);
}

/// A row for what is left out.
pub(super) fn gap() -> Vec<Cell> {
    let mut cells = vec![Cell::Nothing; 6];
    cells[2] = Cell::Text("…".into());
    cells.push(Cell::Nothing);
    cells
}

/// Where the lines of a file come from.
pub(super) fn heading(file: &FileView) -> Vec<Block> {
    let name = match &file.found {
        Some(program) if file.is_embedded => format!("{} (embedded in {program})", file.file),
        Some(found) if *found != file.file => format!("{} ({found})", file.file),
        _ => file.file.clone(),
    };
    let mut blocks = vec![Block::Heading(name)];
    blocks.extend(warnings(file).map(|text| Block::Line(text.into())));
    blocks
}

/// What is wrong with a source file.
pub(super) fn warnings(file: &FileView) -> impl Iterator<Item = &'static str> {
    let newer = "The source file is newer than the program: the text may not be what was compiled.";
    let short = "The source file has fewer lines than the program was compiled from.";
    let of_text = [(file.is_newer, newer), (file.is_short, short)].into_iter();
    let of_text = of_text.filter_map(|(is_so, text)| is_so.then_some(text));
    file.no_text
        .map(NoSource::sentence)
        .into_iter()
        .chain(of_text)
}

/// The weight whose lines are not known.
fn unknown(view: &AnnotateView, subject: &Subject, sections: &mut Vec<Section>) {
    let unknown = view.summary.lines.iter().find(|row| row.line.is_none());
    let Some(unknown) = unknown.filter(|_| !view.files.is_empty()) else {
        return;
    };
    let unit = &subject.selection.event().unit;
    let share = |part, whole| super::number::percent(part, whole, 2);
    let (own, total) = (unknown.self_weight, unknown.total.unwrap_or(0));
    if own > 0 || total > 0 {
        let (of_own, of_total) = view.whole(false);
        let text = format!(
            "Source line not known: self {} % ({}), total {} % ({}).",
            share(own, of_own),
            super::number::weight(own, unit),
            share(total, of_total),
            super::number::weight(total, unit),
        );
        sections.extend([Block::Space.into(), Section::of_weights(text)]);
    }
}

/// The lines of a file from the first that is known to the last, or the known ones alone where the
/// text is not there to fill the gaps.
fn filled(file: &FileView, declared: Option<u32>) -> Vec<SourceLine> {
    let (Some(first), Some(last)) = (file.lines.first(), file.lines.last()) else {
        return Vec::new();
    };
    let first = declared.map_or(first.line, |line| line.min(first.line));
    if file.found.is_none() || file.is_short || last.line - first > LONGEST {
        return file.lines.clone();
    }
    let mut known = file.lines.iter().peekable();
    (first..=last.line)
        .map(|line| {
            let found = known.next_if(|known| known.line <= line);
            found.copied().unwrap_or(SourceLine {
                line,
                ..SourceLine::default()
            })
        })
        .collect()
}
