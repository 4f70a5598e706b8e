//! The hottest functions from within in a page, with the numbers of their sums by time.

use std::collections::HashMap;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::analysis::threads::timeline::{AskedFunction, Part};
use crate::export::Advice;
use crate::profile::{LineId, Profile};
use crate::view::annotate::{AnnotateView, CodeView, RowOf, Weights};

use super::functions::Functions;
use super::{EventViews, Part as Shown, Within, parts_of};

#[derive(Serialize)]
pub(super) struct Source {
    function: u64,
    lines: Option<Vec<Shown>>,
    code: Option<Vec<Shown>>,
    // The numbers of other sums by time: of what has no line, of the machine code, of the function
    // where it is inlined into others, and of addresses that are in no instruction.
    sums: [usize; 4],
}

impl Source {
    pub fn shown_mut(&mut self) -> impl Iterator<Item = &mut Shown> {
        self.lines.iter_mut().chain(&mut self.code).flatten()
    }
}

// The functions, and what is asked for of them by time.
#[derive(Default)]
pub(super) struct Sources {
    pub sources: Vec<Source>,
    pub asked: Vec<AskedFunction>,
    // How many parts are asked for.
    parts: usize,
}

impl Sources {
    pub fn add(
        &mut self,
        event: &EventViews,
        within: &Within,
        functions: &Functions,
        advice: &dyn Advice,
    ) {
        let profile = event.subject.profile;
        let mut numbers = Numbers {
            is_timed: profile.times.is_some(),
            before: self.parts,
            parts: Vec::new(),
            known: FxHashMap::default(),
        };
        let mut sums = [0; 4];
        let lines = within.lines.as_ref().map(|view| {
            if view.summary.lines.iter().any(|row| row.line.is_none()) {
                sums[0] = numbers.number(Part::Line(None));
            }
            let ids = line_ids(profile, view);
            shown(event, view, advice, |row| match row {
                RowOf::Line { file, line } => {
                    let id = *ids.get(&(view.files[file].file.as_str(), line))?;
                    Some(numbers.number(Part::Line(Some(id))))
                }
                RowOf::Instruction(_) => None,
            })
        });
        let mut instructions = Vec::new();
        let code = within.code.as_ref().map(|view| {
            let mut is_taken = Vec::new();
            if let Some(code) = &view.code {
                let listed = code.listing.instructions.iter();
                instructions.extend(listed.map(|it| it.address..it.address + u64::from(it.length)));
                is_taken.extend(code.lines().map(|line| line.total > 0));
                others(code, &mut numbers, &mut sums);
            }
            shown(event, view, advice, |row| match row {
                RowOf::Instruction(place) if is_taken[place] => {
                    Some(numbers.number(Part::Instruction(place)))
                }
                _ => None,
            })
        });
        self.parts += numbers.parts.len();
        self.asked.push(AskedFunction {
            function: within.function,
            parts: numbers.parts,
            instructions,
        });
        self.sources.push(Source {
            function: functions.place(within.function),
            lines,
            code,
            sums,
        });
    }
}

struct Numbers {
    is_timed: bool,
    // How many other functions have.
    before: usize,
    parts: Vec<Part>,
    known: FxHashMap<Part, usize>,
}

impl Numbers {
    // The number of a part, from 1 on; 0 where no times are known.
    fn number(&mut self, part: Part) -> usize {
        if !self.is_timed {
            return 0;
        }
        *self.known.entry(part).or_insert_with(|| {
            self.parts.push(part);
            self.before + self.parts.len()
        })
    }
}

// Lines that have weight, by file and number.
fn line_ids<'a>(profile: &'a Profile, view: &AnnotateView) -> HashMap<(&'a str, u32), LineId> {
    let ids = view.summary.lines.iter().filter_map(|row| row.line);
    let at = |id: LineId| (profile.lines[id].file.as_str(), profile.lines[id].line);
    ids.map(|id| (at(id), id)).collect()
}

// The sums of machine code that are not about one instruction.
fn others(code: &CodeView, numbers: &mut Numbers, sums: &mut [usize; 4]) {
    sums[1] = numbers.number(Part::Code);
    if code.inlined_elsewhere > 0 {
        sums[2] = numbers.number(Part::Elsewhere);
    }
    if code.outside > 0 {
        sums[3] = numbers.number(Part::Outside);
    }
}

// What is shown of a function, with the numbers of rows.
fn shown(
    event: &EventViews,
    view: &AnnotateView,
    advice: &dyn Advice,
    mut number: impl FnMut(RowOf) -> Option<usize>,
) -> Vec<Shown> {
    let unit = &event.subject.selection.event().unit;
    let mut shown = Vec::new();
    for section in view.sections(&event.subject) {
        for part in parts_of(&section.block, unit, advice) {
            shown.push(match (part, &section.weights) {
                (Shown::Plain(text), Weights::Sentence) => Shown::OfWeights(text),
                (mut part, Weights::Rows(rows_of)) => {
                    if let Shown::Table { parts, .. } = &mut part {
                        let number = |row: &Option<RowOf>| row.and_then(&mut number).unwrap_or(0);
                        *parts = rows_of.iter().map(number).collect();
                    }
                    part
                }
                (part, _) => part,
            });
        }
    }
    shown
}
