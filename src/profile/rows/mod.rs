//! A profile by other rows than functions: modules, files, lines, addresses, threads, commands,
//! events.
//!
//! The rows take the place of functions, so every analysis computes them as it computes functions:
//! a sample counts once in a row's total, however often the row is on its stack, and its self
//! weight is that of the samples whose innermost frame is in it.
//!
//! ```text
//!   by function      main ◀─ parse ◀─ memcpy ◀─ memcpy_fast
//!   by module        app             ◀─ libc                     neighbours of one module are one
//!   by line          app.c:9 ◀─ app.c:31 ◀─ [no line: libc] ◀─ [no line: libc]
//!   by thread        app 1/2                                     flat: the stack is left out
//!                    app 1/2 ◀─ main ◀─ parse ◀─ …               the thread calls what it runs
//! ```
//!
//! Frames of one file or module that call each other are one frame, so there are no calls within a
//! file or a module. Lines and addresses that call themselves are kept: they recurse. Marks such as
//! `[truncated]` keep their rows, and frames whose line or file is not known have one for each
//! module.

mod frames;
mod samples;

use super::collected_samples::CollectedSamples;
use super::{
    EventId, FunctionId, FunctionKind, LineId, PathId, PlaceId, Profile, Sample, SelectedRow,
    Selection, ThreadId,
};
use crate::base::{Event, Sampling, Unit, WeightSum};

/// What the functions of a profile stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// Functions themselves.
    #[default]
    Function,
    /// Program files, libraries, the kernel.
    Module,
    /// Source files.
    File,
    /// Source lines.
    Line,
    /// Stated addresses of machine code, of a call one inside of its instruction. Inlined calls are
    /// part of the function around them.
    Address,
    /// Threads, whatever their command names.
    Thread,
    /// Command names; of compilers and linkers with what they were started for, where that is
    /// known.
    Command,
    /// Events; every sample counts 1.
    Event,
}

impl RowKind {
    /// The word for one row, as JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            RowKind::Function => "function",
            RowKind::Module => "module",
            RowKind::File => "file",
            RowKind::Line => "line",
            RowKind::Address => "address",
            RowKind::Thread => "thread",
            RowKind::Command => "command",
            RowKind::Event => "event",
        }
    }

    /// Whether a row is a property of a whole sample, and not of a frame on its stack.
    pub fn is_of_samples(self) -> bool {
        matches!(self, RowKind::Thread | RowKind::Command | RowKind::Event)
    }

    /// Whether rows stand in place of the functions on stacks.
    pub fn replaces_functions(self) -> bool {
        self != RowKind::Function && !self.is_of_samples()
    }

    fn merges_calls(self) -> bool {
        matches!(self, RowKind::Module | RowKind::File)
    }
}

/// Where the rows of whole samples stand on stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowLevel {
    /// They are all of the stack.
    Alone,
    /// Outside of the outermost function.
    Outermost,
    /// Inside of the innermost function.
    Innermost,
}

impl Profile {
    /// Returns the profile by rows of another kind, with the samples of these selections as one. Of
    /// one event there is one selection; [`RowKind::Event`] takes those of all events that are to
    /// be shown, and then every sample counts 1. `level` is for [rows of whole
    /// samples](RowKind::is_of_samples).
    ///
    /// Lines and files need a profile with the lines of calls, addresses one with addresses; what
    /// is not known is a row of its own. Calls that were counted and calls in the code are between
    /// functions and left out where rows replace these.
    ///
    /// ```
    /// use proftool::analysis::inclusive;
    /// use proftool::base::Id;
    /// use proftool::input::folded;
    /// use proftool::profile::{EventId, Filter, FunctionId, RowKind, RowLevel};
    ///
    /// // Folded stacks know one module, which each sample counts for once.
    /// let text = "main;run;f;back;f 3\nmain 1\n";
    /// let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
    /// let event = EventId::new(0);
    /// let selection = profile.select(event, &Filter::default());
    /// let (profile, selection) =
    ///     profile.by_rows(RowKind::Module, RowLevel::Alone, &[(event, selection)]);
    /// let weights = inclusive::by_function(&profile, &selection);
    /// let rows = profile.functions.ids().map(|id| (weights.self_weight[id], weights.total[id]));
    /// assert_eq!(rows.collect::<Vec<_>>(), [(4, 4)]);
    /// ```
    pub fn by_rows(
        &self,
        kind: RowKind,
        level: RowLevel,
        of: &[(EventId, Selection)],
    ) -> (Profile, Selection) {
        match kind {
            RowKind::Function => {
                let selection = of.first().map(|(_, selection)| selection.clone());
                (self.clone(), selection.unwrap_or_else(Selection::nothing))
            }
            _ if kind.is_of_samples() => samples::regrouped(self, kind, level, of),
            _ => frames::regrouped(self, kind, of),
        }
    }

    /// Whether a function is a row that is no code: a mark, or what [whole
    /// samples](RowKind::is_of_samples) are grouped by.
    pub fn is_no_code(&self, function: FunctionId) -> bool {
        match self.functions[function].kind {
            FunctionKind::Mark => true,
            FunctionKind::Row => self.rows.is_of_samples(),
            FunctionKind::Named | FunctionKind::Unknown => false,
        }
    }

    /// The word for what a function of the profile stands for.
    pub fn row_name(&self, function: FunctionId) -> &'static str {
        match self.functions[function].kind {
            FunctionKind::Mark => "mark",
            FunctionKind::Row => self.rows.name(),
            FunctionKind::Unknown if self.rows.replaces_functions() => "unknown",
            FunctionKind::Named | FunctionKind::Unknown => RowKind::Function.name(),
        }
    }
}

/// Samples as other rows have them.
trait Regroup {
    /// The path of a sample by the new rows.
    fn path(
        &mut self,
        event: EventId,
        thread: ThreadId,
        at: (Option<PlaceId>, PathId, Option<LineId>),
    ) -> PathId;
}

/// The samples of the profile and of the selections, by the paths that `rows` has for them.
fn regroup(
    profile: &Profile,
    kind: RowKind,
    of: &[(EventId, Selection)],
    rows: &mut impl Regroup,
) -> (Vec<Sample>, Selection) {
    // Where events are rows, all samples are those of one event and count 1.
    let by_event = kind == RowKind::Event;
    // Samples before selections: the first sample of a row decides which row comes first.
    let samples = regrouped_samples(profile, by_event, rows);
    (samples, regrouped_selection(of, by_event, rows))
}

fn regrouped_samples(profile: &Profile, by_event: bool, rows: &mut impl Regroup) -> Vec<Sample> {
    let mut all: CollectedSamples<(EventId, ThreadId, PathId)> = CollectedSamples::default();
    let place = |at: usize| profile.places.as_ref()?.of_sample(at);
    for (at, sample) in profile.samples.iter().enumerate() {
        let path = rows.path(
            sample.event,
            sample.thread,
            (place(at), sample.path, sample.line),
        );
        let event = if by_event {
            EventId::new(0)
        } else {
            sample.event
        };
        let (weight, squares) = if by_event {
            (sample.count, u128::from(sample.count))
        } else {
            (sample.weight, sample.squares)
        };
        let count = sample.count;
        all.add(
            (event, sample.thread, path),
            WeightSum {
                weight,
                squares,
                count,
            },
        );
    }
    all.into_rows()
        .into_iter()
        .map(|((event, thread, path), sum)| Sample {
            event,
            thread,
            path,
            line: None,
            weight: sum.weight,
            count: sum.count,
            squares: sum.squares,
        })
        .collect()
}

fn regrouped_selection(
    of: &[(EventId, Selection)],
    by_event: bool,
    rows: &mut impl Regroup,
) -> Selection {
    let mut selected: CollectedSamples<(ThreadId, PathId)> = CollectedSamples::default();
    let mut selection = match of.first() {
        Some((_, first)) if !by_event => Selection {
            event: first.event().clone(),
            sampling: first.sampling(),
            ..Selection::nothing()
        },
        _ => Selection {
            event: all_events(),
            sampling: Sampling::Unknown,
            ..Selection::nothing()
        },
    };
    for (event, one) in of {
        for row in one.rows() {
            let path = rows.path(*event, row.thread, (row.place, row.path, row.line));
            let (weight, squares) = if by_event {
                (row.samples, u128::from(row.samples))
            } else {
                (row.weight, row.squares)
            };
            let sum = WeightSum {
                weight,
                squares,
                count: row.samples,
            };
            selected.add((row.thread, path), sum);
            selection.total = selection.total.saturating_add(weight);
            selection.samples = selection.samples.saturating_add(row.samples);
            selection.squares = selection.squares.saturating_add(squares);
        }
    }
    selection.rows = selected
        .into_rows()
        .into_iter()
        .map(|((thread, path), sum)| SelectedRow {
            path,
            thread,
            line: None,
            place: None,
            weight: sum.weight,
            samples: sum.count,
            squares: sum.squares,
        })
        .collect();
    selection
}

fn all_events() -> Event {
    Event {
        name: "all events".into(),
        unit: Unit::Samples,
    }
}
