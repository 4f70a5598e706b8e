//! What is looked at: the file and the filters, the same for every view.

pub mod by;
pub mod focus;
pub(super) mod open;
pub mod time;
pub mod typed;

use std::cell::Cell;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Args, FromArgMatches, ValueEnum};
use proftool::analysis::owners::Owners;
use proftool::analysis::sampling_error::intervals::{self, Intervals};
use proftool::base::{Event, Unit, shell_quoted};
use proftool::input::TimeRange;
use proftool::input::folded::Weights;
use proftool::profile::{Counts, EventId, Filter, Profile, Selection, TimedRows, Weighing};
use regex::Regex;

use super::advice::Situation;
use super::answer::output::Inputs;
use super::choice;
use super::failure::{self, hinted};
use proftool::names::search::pattern;
use proftool::view::report::place_name;
use time::time_range;
use typed::{Given, Typed};

pub const DEFAULT_FILE: &str = "perf.data";

/// The file that is read.
#[derive(Args, Clone, Debug)]
pub struct InputFile {
    /// A recording or a profile; - is standard input.
    #[arg(default_value = DEFAULT_FILE)]
    file: PathBuf,
    /// Same as FILE, as in perf.
    #[arg(short, long, value_name = "FILE", conflicts_with = "file", help_heading = READING)]
    input: Option<PathBuf>,
}

impl InputFile {
    // The file, in whichever way it was named.
    pub fn path(&self) -> &Path {
        self.input.as_ref().unwrap_or(&self.file)
    }
}

// Empty for the one that is read by default.
pub fn file_in_command(file: &Path) -> String {
    if file == Path::new(DEFAULT_FILE) {
        return String::new();
    }
    shell_quoted(&file.to_string_lossy())
}

/// The files that are read as one.
#[derive(Args, Clone, Debug)]
struct InputFiles {
    /// Recordings of a program, added up; - is standard input.
    #[arg(default_value = DEFAULT_FILE)]
    file: Vec<PathBuf>,
    /// Same as FILE, as in perf.
    #[arg(short, long, value_name = "FILE", conflicts_with = "file", help_heading = READING)]
    input: Option<PathBuf>,
}

impl InputFiles {
    fn paths(&self) -> &[PathBuf] {
        match &self.input {
            Some(input) => std::slice::from_ref(input),
            None => &self.file,
        }
    }
}

/// The file, and which of its samples count.
#[derive(Args, Clone, Debug)]
pub struct Query {
    // The first, as those that follow take their values away from what was parsed.
    #[command(flatten)]
    typed: Typed,
    #[command(flatten)]
    input: InputFiles,
    /// Only stacks with a matching function. A label copied from a table selects its function.
    #[arg(long, value_name = "REGEX", value_parser = pattern, help_heading = FILTERS)]
    focus: Option<Regex>,
    /// Leave out stacks with a matching function.
    #[arg(long, value_name = "REGEX", value_parser = pattern, help_heading = FILTERS)]
    ignore: Option<Regex>,
    /// Only stacks through these programs, libraries or the kernel, by name or path; flat --by
    /// module lists them.
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = FILTERS)]
    module: Vec<String>,
    /// Only stacks with a function declared in these files, or below these directories; src/net
    /// matches anywhere in a path. Needs debug information.
    #[arg(long, value_name = "PATH", value_delimiter = ',', help_heading = FILTERS)]
    path: Vec<String>,
    /// Only these commands; a compiler also with its source or crate: "rustc serde".
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = FILTERS)]
    comm: Vec<String>,
    /// Only these processes.
    #[arg(long, value_delimiter = ',', help_heading = FILTERS)]
    pid: Vec<i32>,
    /// Only these threads.
    #[arg(long, value_delimiter = ',', help_heading = FILTERS)]
    tid: Vec<i32>,
    /// Only this range, in seconds after the first sample; either end can be omitted. A,B: times
    /// as perf script prints them.
    #[arg(long, value_name = "A..B", value_parser = time_range, help_heading = FILTERS)]
    time: Option<TimeRange>,
    /// The event to show, by its name (cycles, cycles:u) or its number in proftool info [default:
    /// the one of running threads with the most samples]
    #[arg(long, value_name = "NAME", help_heading = FILTERS)]
    event: Option<String>,
    /// Count inlined code for the function around it.
    #[arg(long, help_heading = READING)]
    no_inline: bool,
    /// Do not restore missing frames from the code.
    #[arg(long, help_heading = READING)]
    no_repair: bool,
    /// Search programs and libraries here first, then at the recorded path, if they have the
    /// recorded build ID there.
    #[arg(long, value_name = "DIR", help_heading = READING)]
    symfs: Option<PathBuf>,
    /// Neither use nor write the cache, ~/.cache/proftool.
    #[arg(long, help_heading = READING)]
    no_cache: bool,
    /// What is your own code: directories, crates, modules [default: what was compiled in the
    /// program's own directories]
    #[arg(long, value_name = "DIR|NAME", value_delimiter = ',', help_heading = READING)]
    own: Vec<String>,
    /// The program that made a gmon.out; needed to read one.
    #[arg(long, value_name = "PROGRAM", help_heading = READING)]
    pub binary: Option<PathBuf>,
    /// More gmon.out files of the program, to be added up.
    #[arg(long, value_name = "FILE", value_delimiter = ',', requires = "binary")]
    #[arg(help_heading = READING)]
    sum: Vec<PathBuf>,
    /// Unit of the figures [default: the event's own]
    #[arg(long, value_name = "UNIT", help_heading = READING)]
    unit: Option<Counting>,
    #[command(flatten)]
    folded: FoldedInput,
    /// The bytes that were read.
    #[arg(skip)]
    read: Cell<u64>,
}

/// How folded stacks are read.
#[derive(Args, Clone, Copy, Debug)]
pub struct FoldedInput {
    /// Unit of folded stacks, which do not state it [default: samples]
    #[arg(long, value_name = "UNIT", value_parser = choice::FOLDED_UNIT, help_heading = READING)]
    folded_unit: Option<Weights>,
}

impl FoldedInput {
    pub fn weights(self) -> Weights {
        self.folded_unit.unwrap_or_default()
    }
}

const FILTERS: &str = "Which samples";
const READING: &str = "How to read them";

/// The headings of the options that all views share.
pub const HEADINGS: [&str; 2] = [FILTERS, READING];

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Counting {
    /// Each sample counts 1.
    Samples,
    /// Of events that measure it.
    Time,
    Percent,
}

impl Query {
    // Of several the first.
    pub fn file(&self) -> &Path {
        self.files()
            .first()
            .map_or(Path::new(DEFAULT_FILE), PathBuf::as_path)
    }

    pub fn files(&self) -> &[PathBuf] {
        self.input.paths()
    }

    // The same question to another file.
    pub fn of_file(&self, file: &Path) -> Query {
        Query {
            input: InputFiles {
                file: vec![file.to_owned()],
                input: None,
            },
            ..self.clone()
        }
    }

    // The same question, with these filters in place of those of the same name. Nothing else is
    // accepted.
    pub fn with_filters(&self, words: &[String]) -> Result<Query, clap::Error> {
        let grammar = Query::augment_args(clap::Command::new("filters").no_binary_name(true));
        let matches = grammar.try_get_matches_from(words)?;
        let other = Query::from_arg_matches(&matches)?;
        let is_file = matches.value_source("file") == Some(ValueSource::CommandLine);
        if is_file || other.input.input.is_some() || !other.typed.0.iter().all(|it| it.is_filter) {
            return Err(clap::Error::raw(
                ErrorKind::UnknownArgument,
                "only filters choose samples: proftool help filters",
            ));
        }
        fn either<T: Clone>(new: Vec<T>, old: &[T]) -> Vec<T> {
            if new.is_empty() { old.to_vec() } else { new }
        }
        Ok(Query {
            focus: other.focus.or_else(|| self.focus.clone()),
            ignore: other.ignore.or_else(|| self.ignore.clone()),
            module: either(other.module, &self.module),
            path: either(other.path, &self.path),
            comm: either(other.comm, &self.comm),
            pid: either(other.pid, &self.pid),
            tid: either(other.tid, &self.tid),
            time: other.time.or(self.time),
            event: other.event.or_else(|| self.event.clone()),
            ..self.clone()
        })
    }

    pub fn inputs(&self) -> Inputs<'_> {
        let files = self.files().iter().chain(&self.sum).chain(&self.binary);
        Inputs {
            files: files.map(PathBuf::as_path).collect(),
            read: self.read.get(),
        }
    }

    // The samples of this event that are asked for, by time, where times are known.
    pub fn times<'a>(&self, profile: &'a Profile, event: EventId) -> Option<TimedRows<'a>> {
        profile.select_times(event, &self.filter(profile))
    }

    // How far the shares of functions may be off.
    pub fn intervals(&self, profile: &Profile, selection: &Selection) -> anyhow::Result<Intervals> {
        let event = self.event(profile)?;
        let times = event.and_then(|event| self.times(profile, event));
        let intervals = intervals::of(profile, selection, times.as_ref());
        intervals.context("intervals need several runs, or a file that states times")
    }

    // Whether samples are filtered by what calls were not counted by.
    pub fn picks_samples(&self) -> bool {
        let mut filters = self.typed.0.iter().filter(|given| given.is_filter);
        filters.any(|given| given.id != "event")
    }

    // Whether samples are filtered by the functions on their stacks.
    pub fn picks_stacks(&self) -> bool {
        let by_name = self.focus.is_some() || self.ignore.is_some();
        by_name || !self.module.is_empty() || !self.path.is_empty()
    }

    pub fn select(&self, profile: &Profile) -> anyhow::Result<Selection> {
        match self.event(profile)? {
            Some(event) => self.select_event(profile, event),
            None => Ok(Selection::nothing()),
        }
    }

    // Shown only in addition to the chosen event: blocked and preempted time, if no event was
    // chosen.
    pub fn off_cpu_events(&self, profile: &Profile) -> Vec<EventId> {
        let off_cpu = [Event::off_cpu(), Event::preempted()];
        let main = profile.main_event();
        let events = profile
            .events
            .enumerate()
            .filter(|(id, event)| off_cpu.contains(event) && Some(*id) != main)
            .filter(|_| self.event.is_none());
        events.map(|(id, _)| id).collect()
    }

    // Those of the event that is shown by default first; of the others only those with samples.
    pub fn selections(
        &self,
        profile: &Profile,
    ) -> anyhow::Result<Vec<(Option<EventId>, Selection)>> {
        let Some(first) = self.event(profile)? else {
            return Ok(vec![(None, Selection::nothing())]);
        };
        let mut selections = vec![(Some(first), self.select_event(profile, first)?)];
        if self.event.is_none() && self.unit != Some(Counting::Time) {
            let filter = self.filter(profile);
            let others = profile
                .events
                .ids()
                .filter(|&id| id != first)
                .map(|id| (Some(id), profile.select(id, &filter)));
            selections.extend(others.filter(|(_, selection)| selection.samples() > 0));
        }
        Ok(selections)
    }

    pub fn select_event(&self, profile: &Profile, event: EventId) -> anyhow::Result<Selection> {
        if self.picks_stacks() {
            let what = "a filter by function, module or path";
            self.refuse_without_stacks(profile, what)?;
        }
        if self.unit == Some(Counting::Time) && profile.events[event].unit != Unit::Nanoseconds {
            let text = format!(
                "the event {} does not measure time",
                profile.events[event].name
            );
            let hint = "record with a clock: proftool record -e cpu-clock -- COMMAND";
            return Err(hinted(text, Some(hint.into())));
        }
        let is_merged = !matches!(self.folded.folded_unit, None | Some(Weights::Samples));
        if is_merged && self.unit == Some(Counting::Samples) {
            let text = "folded stacks of time or bytes do not state the number of samples";
            return Err(hinted(text.into(), None));
        }
        let selection = profile.select(event, &self.filter(profile));
        if selection.samples() == 0 && profile.samples_by_event()[event] > 0 {
            failure::line("warning", "no sample passes the filters");
            let list = |words: &str| self.command(&format!("flat {words} --limit 0 --min 0"));
            let hints = [
                (
                    self.focus.is_some(),
                    "patterns match full names",
                    "--names full",
                ),
                (!self.module.is_empty(), "all modules", "--by module"),
                (
                    !self.path.is_empty(),
                    "files are known from debug info",
                    "--by file",
                ),
                (!self.comm.is_empty(), "all commands", "--by command"),
                (
                    !self.pid.is_empty() || !self.tid.is_empty(),
                    "all threads",
                    "--by thread",
                ),
            ];
            for (_, what, words) in hints.into_iter().filter(|hint| hint.0) {
                failure::line("hint", &format!("{what}: {}", list(words)));
            }
        }
        Ok(selection)
    }

    pub fn filter(&self, profile: &Profile) -> Filter {
        let event = self.event(profile).ok().flatten();
        let resolved = |regex: &Regex| focus::resolved(profile, event, regex);
        Filter {
            comms: self.comm.clone(),
            pids: self.pid.clone(),
            tids: self.tid.clone(),
            focus: self.focus.as_ref().map(resolved),
            ignore: self.ignore.as_ref().map(resolved),
            modules: modules_named(profile, &self.module),
            paths: self.path.clone(),
            weighing: match self.unit {
                Some(Counting::Samples) => Weighing::Samples,
                _ => Weighing::Weight,
            },
        }
    }

    pub fn own(&self) -> &[String] {
        &self.own
    }

    pub fn owners(&self, profile: &Profile) -> Owners {
        Owners::of_profile(profile, &self.own)
    }

    // The command that shows this file, for which advice is worded.
    pub fn shown_by(&self, command: &'static str) -> Situation {
        Situation::View {
            command,
            query: self.in_command(None),
            has_focus: self.focus.is_some(),
        }
    }

    pub fn percent_only(&self) -> bool {
        self.unit == Some(Counting::Percent)
    }

    // The file, as far as it has to be named in a further command, and what was given of the
    // options that are wanted there.
    fn repeated(&self, is_wanted: impl Fn(&Given) -> bool, event: Option<&str>) -> String {
        let files: Vec<String> = match self.files() {
            [file] => vec![file_in_command(file)],
            files => files
                .iter()
                .map(|it| shell_quoted(&it.to_string_lossy()))
                .collect(),
        };
        // One that was chosen is among the options.
        let event = event.filter(|_| self.event.is_none());
        let event = event.map(|event| format!("--event {}", shell_quoted(event)));
        let options = typed::joined(self.typed.0.iter().filter(|given| is_wanted(given)));
        let parts = files.into_iter().chain(event).chain([options]);
        let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
        parts.join(" ")
    }

    // A further command about the file, without the filters of this one.
    pub fn command(&self, words: &str) -> String {
        let command = format!("proftool {words} {}", self.file_in_command());
        command.trim_end().to_owned()
    }

    // The file, its event and how it is read, for a further command without the filters of this
    // one.
    pub fn file_in_command(&self) -> String {
        self.repeated(|given| !given.is_filter || given.id == "event", None)
    }

    // The file with all options that shaped this answer, for a further command about `event`, or
    // about the event of this command.
    pub fn in_command(&self, event: Option<&str>) -> String {
        self.repeated(|_| true, event)
    }

    // About all of the time.
    pub fn in_command_without_time(&self, event: Option<&str>) -> String {
        self.repeated(|given| given.id != "time", event)
    }

    // The filters that stay while a recording is browsed. The others can be changed there.
    pub fn lasting_filters(&self) -> String {
        let changed = ["focus", "time", "event"];
        let filters = self.typed.0.iter().filter(|given| given.is_filter);
        typed::joined(filters.filter(|given| !changed.contains(&&*given.id)))
    }

    // The time range that is asked for, as it was typed.
    pub fn time(&self) -> Option<&str> {
        self.typed.value("time")
    }

    // `profile` has counted calls in place of stacks, as of a gmon.out.
    pub fn refuse_without_stacks(&self, profile: &Profile, what: &str) -> anyhow::Result<()> {
        if !lacks_stacks(profile) {
            return Ok(());
        }
        let file = self.file_in_command();
        let text = format!("{what} needs call stacks, and a gmon.out has none");
        let hint = format!("for callers and callees with estimated times: proftool graph {file}");
        Err(hinted(text, Some(hint)))
    }

    // Refuses what needs stacks or counted calls, where there are neither.
    pub fn refuse_without_calls(&self, profile: &Profile, what: &str) -> anyhow::Result<()> {
        let counts = profile.counts.as_ref();
        if !lacks_stacks(profile) || counts.is_some_and(Counts::are_any) {
            return Ok(());
        }
        let file = self.file_in_command();
        let text = format!("{what} needs call stacks or counted calls, and the file has neither");
        let hint = format!(
            "build the whole program with -pg to count calls; for self time by function: \
             proftool flat {file}"
        );
        Err(hinted(text, Some(hint)))
    }

    pub fn event(&self, profile: &Profile) -> anyhow::Result<Option<EventId>> {
        let Some(name) = &self.event else {
            return Ok(profile.main_event());
        };
        let found = profile.events_named(name);
        if let [event] = found[..] {
            return Ok(Some(event));
        }
        let all: Vec<EventId> = profile.events.enumerate().map(|(id, _)| id).collect();
        let (text, listed) = if found.is_empty() {
            (
                format!("{} has no event {name}", self.file().display()),
                all,
            )
        } else {
            (format!("several events are named {name}"), found)
        };
        let list: Vec<String> = listed
            .iter()
            .map(|&id| {
                let name = &profile.events[id].name;
                format!("{name} (number {})", id.index())
            })
            .collect();
        Err(hinted(
            text,
            Some(format!("choose one of {}", list.join(", "))),
        ))
    }
}

// It has counted calls in their place, as that of a gmon.out.
fn lacks_stacks(profile: &Profile) -> bool {
    profile.counts.is_some()
        && profile
            .paths
            .enumerate()
            .all(|(_, path)| path.caller.is_none())
}

// The modules of these names; `libc`, as the first screen calls it, is `libc.so.6`.
pub fn modules_named(profile: &Profile, names: &[String]) -> Vec<String> {
    let modules = || profile.modules.iter();
    let found = names.iter().flat_map(|name| {
        let is_whole = modules().any(|it| it.name == *name || it.path == *name);
        let called = modules().filter(|it| !is_whole && place_name(&it.name) == name);
        let called: Vec<String> = called.map(|it| it.name.to_string()).collect();
        match called.is_empty() {
            true => vec![name.clone()],
            false => called,
        }
    });
    found.collect()
}
