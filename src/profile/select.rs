//! The samples that a view is about: one event's, after filters.

use regex::Regex;

use crate::base::{Event, IdVec, Sampling, Unit};

use super::{
    EventId, Function, FunctionId, LineId, Module, PathId, PlaceId, Profile, Sample, ThreadId,
};

/// What a sample counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weighing {
    /// Its weight in the event's unit.
    #[default]
    Weight,
    /// One.
    Samples,
}

/// Which samples to look at. Empty fields let everything pass.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only these command names, or what processes were started for. The kernel keeps 15 bytes of a
    /// name.
    pub comms: Vec<String>,
    /// Only these processes.
    pub pids: Vec<i32>,
    /// Only these threads.
    pub tids: Vec<i32>,
    /// Only stacks in which some function's name matches; or all of its
    /// [distinct name](Profile::name).
    pub focus: Option<Regex>,
    /// No stacks in which some function's name, or all of its distinct name, matches.
    pub ignore: Option<Regex>,
    /// Only stacks with a function in one of these modules, which are given by name or path.
    pub modules: Vec<String>,
    /// Only stacks with a function that is declared in one of these files, or below one of these
    /// directories. A relative path stands for any file whose path has its parts in a row.
    pub paths: Vec<String>,
    /// What a sample counts.
    pub weighing: Weighing,
}

/// Returns the regular expression that matches this name and no other. A filter by the pattern of a
/// [distinct name](Profile::name) selects this function alone, although others may share
/// its name.
///
/// ```
/// assert_eq!(proftool::profile::pattern_of("f(int)"), r"^f\(int\)$");
/// ```
pub fn pattern_of(name: &str) -> String {
    format!("^{}$", regex::escape(name))
}

/// One selected row: a distinct path (with leaf line and place) and its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectedRow {
    /// Where the samples were taken.
    pub path: PathId,
    /// The thread.
    pub thread: ThreadId,
    /// The source line of the innermost frame.
    pub line: Option<LineId>,
    /// The path with the lines of its calls, where the profile has them.
    pub place: Option<PlaceId>,
    /// The sum of weights in the selection's unit.
    pub weight: u64,
    /// The number of samples.
    pub samples: u64,
    /// The sum of the squares of their weights.
    pub squares: u128,
}

/// The samples of one event that pass a filter.
#[derive(Clone, Debug)]
pub struct Selection {
    pub(super) event: Event,
    pub(super) rows: Vec<SelectedRow>,
    pub(super) total: u64,
    pub(super) samples: u64,
    pub(super) squares: u128,
    pub(super) sampling: Sampling,
}

impl Selection {
    /// The event, in the unit in which rows and total count.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The weighted rows, in order of thread, path and line; no row has weight 0 and samples 0.
    pub fn rows(&self) -> &[SelectedRow] {
        &self.rows
    }

    /// The sum of all weights.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The number of samples.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The sum of the squares of the samples' weights.
    pub fn squares(&self) -> u128 {
        self.squares
    }

    /// How the samples were chosen.
    pub fn sampling(&self) -> Sampling {
        self.sampling
    }

    /// Only the samples of these threads.
    pub fn of_threads(mut self, is_asked_for: impl Fn(ThreadId) -> bool) -> Selection {
        self.rows.retain(|row| is_asked_for(row.thread));
        let sum = |of: fn(&SelectedRow) -> u64| {
            let parts = self.rows.iter().map(of);
            parts.fold(0, u64::saturating_add)
        };
        self.total = sum(|row| row.weight);
        self.samples = sum(|row| row.samples);
        let squares = self.rows.iter().map(|row| row.squares);
        self.squares = squares.fold(0, u128::saturating_add);
        self
    }

    /// The selection from a profile without events.
    pub fn nothing() -> Selection {
        Selection {
            event: Event {
                name: "samples".into(),
                unit: Unit::Samples,
            },
            rows: Vec::new(),
            total: 0,
            samples: 0,
            squares: 0,
            sampling: Sampling::Unknown,
        }
    }
}

impl Profile {
    /// The samples of `event` that pass `filter`.
    ///
    /// The sum of the rows' weights is the selection's total.
    pub fn select(&self, event: EventId, filter: &Filter) -> Selection {
        let is_asked_for = self.passing(filter);
        let passes = |(_, s): &(usize, &Sample)| s.event == event && is_asked_for(s.thread, s.path);
        let mut selection = Selection {
            event: self.events[event].clone(),
            rows: Vec::new(),
            total: 0,
            samples: 0,
            squares: 0,
            sampling: self.sampling.get(event).copied().unwrap_or_default(),
        };
        if filter.weighing == Weighing::Samples {
            selection.event.unit = Unit::Samples;
        }
        let place = |row| self.places.as_ref()?.of_sample(row);
        let samples = || self.samples.iter().enumerate().filter(passes);
        selection.rows.reserve_exact(samples().count());
        for (at, sample) in samples() {
            let (weight, squares) = match filter.weighing {
                Weighing::Weight => (sample.weight, sample.squares),
                Weighing::Samples => (sample.count, u128::from(sample.count)),
            };
            selection.rows.push(SelectedRow {
                path: sample.path,
                thread: sample.thread,
                line: sample.line,
                place: place(at),
                weight,
                samples: sample.count,
                squares,
            });
            selection.total = selection.total.saturating_add(weight);
            selection.samples = selection.samples.saturating_add(sample.count);
            selection.squares = selection.squares.saturating_add(squares);
        }
        selection
    }

    /// The number of samples of each event.
    pub fn samples_by_event(&self) -> IdVec<EventId, u64> {
        let mut counts = IdVec::filled(0u64, self.events.len());
        for sample in &self.samples {
            counts[sample.event] = counts[sample.event].saturating_add(sample.count);
        }
        counts
    }

    /// Returns the event to show by default, by the rule of [`Event::main`].
    pub fn main_event(&self) -> Option<EventId> {
        let counts = self.samples_by_event();
        let events = self.events.iter().zip(counts.iter().copied());
        Event::main(events).map(EventId::new)
    }

    /// The events that `name` stands for: those of exactly this name; else those of this name
    /// without modifiers, as `cycles` is for `cycles:u`; else the one of this number, counted from
    /// 0. Of several those with samples.
    pub fn events_named(&self, name: &str) -> Vec<EventId> {
        let ids = |test: &dyn Fn(&Event) -> bool| -> Vec<EventId> {
            let matching = self.events.enumerate().filter(|(_, event)| test(event));
            matching.map(|(id, _)| id).collect()
        };
        let mut found = ids(&|event| event.name == name);
        if found.is_empty() {
            found = ids(&|event| event.base() == name);
        }
        if found.is_empty() {
            let number = name
                .parse::<usize>()
                .ok()
                .filter(|&number| number < self.events.len());
            found.extend(number.map(EventId::new));
        }
        if found.len() > 1 {
            let counts = self.samples_by_event();
            if found.iter().any(|&id| counts[id] > 0) {
                found.retain(|&id| counts[id] > 0);
            }
        }
        found
    }

    /// The first event that `name` stands for.
    pub fn event_named(&self, name: &str) -> Option<EventId> {
        self.events_named(name).first().copied()
    }

    pub(super) fn passing(&self, filter: &Filter) -> impl Fn(ThreadId, PathId) -> bool + use<> {
        let threads = self.passing_threads(filter);
        let focus = filter.focus.as_ref().map(|r| self.paths_through(r));
        let ignore = filter.ignore.as_ref().map(|r| self.paths_through(r));
        let homes = self.paths_in(&filter.modules, &filter.paths);
        move |thread, path| {
            threads[thread]
                && focus.as_ref().is_none_or(|f| f[path])
                && ignore.as_ref().is_none_or(|i| !i[path])
                && homes.iter().all(|home| home[path])
        }
    }

    fn passing_threads(&self, filter: &Filter) -> IdVec<ThreadId, bool> {
        let passes = |t: &super::Thread| {
            (filter.comms.is_empty()
                || filter
                    .comms
                    .iter()
                    .any(|comm| is_named(&t.comm, comm) || **comm == **t.command()))
                && (filter.pids.is_empty() || filter.pids.contains(&t.pid))
                && (filter.tids.is_empty() || filter.tids.contains(&t.tid))
        };
        self.threads.iter().map(passes).collect::<Vec<_>>().into()
    }

    /// For each path, whether a function on it matches.
    fn paths_through(&self, regex: &Regex) -> IdVec<PathId, bool> {
        self.paths_with(&self.matching(regex))
    }

    /// For each function, in order of id, whether its name matches, or all of its
    /// [distinct name](Profile::name).
    pub fn matching(&self, regex: &Regex) -> Vec<bool> {
        // A label has to match as a whole: no pattern for a name should hit the module or the file
        // in the label of another function.
        let is_whole = |label: &str| {
            let found = regex.find(label);
            found.is_some_and(|found| found.len() == label.len())
        };
        let matches = |(id, function): (FunctionId, &Function)| {
            regex.is_match(&function.name)
                || self
                    .distinct_names
                    .of(id)
                    .is_some_and(|it| is_whole(&it.text))
        };
        let is_labelled = |id: &FunctionId| pattern_of(self.name(*id)) == regex.as_str();
        let may_be_pattern = regex.as_str().starts_with('^') && regex.as_str().ends_with('$');
        let mut ids = self.functions.ids();
        let only = ids.find(|id| may_be_pattern && is_labelled(id));
        match only {
            Some(only) => self.functions.ids().map(|id| id == only).collect(),
            None => self.functions.enumerate().map(matches).collect(),
        }
    }

    fn paths_with(&self, functions: &[bool]) -> IdVec<PathId, bool> {
        let mut with = IdVec::filled(false, self.paths.len());
        for (id, path) in self.paths.enumerate() {
            with[id] = functions[path.function.index()] || path.caller.is_some_and(|c| with[c]);
        }
        with
    }

    /// For each path, whether a function on it is in one of these modules; and whether one is
    /// declared below one of these paths.
    fn paths_in(&self, modules: &[String], paths: &[String]) -> Vec<IdVec<PathId, bool>> {
        // What is not asked for is left out.
        let mut found = Vec::new();
        if !modules.is_empty() {
            let is_in = |function: &Function| {
                let Module { name, path } = &self.modules[function.module];
                modules.iter().any(|it| it == name || it == path)
            };
            let matching: Vec<bool> = self.functions.iter().map(is_in).collect();
            found.push(self.paths_with(&matching));
        }
        if !paths.is_empty() {
            let is_in = |function: &Function| {
                let file = function.declared_at.as_ref().map(|line| &line.file);
                file.is_some_and(|file| paths.iter().any(|path| is_below(file, path)))
            };
            let matching: Vec<bool> = self.functions.iter().map(is_in).collect();
            found.push(self.paths_with(&matching));
        }
        found
    }
}

/// Whether a file is this file, or below this directory.
fn is_below(file: &str, path: &str) -> bool {
    // A relative path may stand anywhere in that of the file.
    let (of_file, wanted) = (parts(file), parts(path));
    if path.starts_with('/') {
        file.starts_with('/') && of_file.starts_with(&wanted)
    } else {
        let mut windows = of_file.windows(wanted.len().max(1));
        wanted.is_empty() || windows.any(|window| window == wanted)
    }
}

fn parts(path: &str) -> Vec<&str> {
    let parts = path.split('/');
    parts.filter(|part| !["", "."].contains(part)).collect()
}

/// Whether a thread has the name, as far as the kernel keeps it.
fn is_named(comm: &str, name: &str) -> bool {
    // `TASK_COMM_LEN` without the byte behind a name.
    const KEPT: usize = 15;
    comm == name || comm.len() == KEPT && name.as_bytes().starts_with(comm.as_bytes())
}
