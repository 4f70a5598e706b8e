//! What the formats of call stacks have in common: the names of functions, modules and units.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use crate::analysis::call_stacks::CallStacks;
use crate::base::{Id, Sampling, Unit, printable};
use crate::names::Labels;
use crate::profile::{FunctionId, FunctionKind, Line, LineId, Profile, Thread, ThreadId};
use crate::view::{Names, Subject};

// Formats have a place for the name and the version of the program.
pub(super) const PRODUCER: (&str, &str) = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));

// What each reader has to know of any file.
pub(super) const MERGED: &str =
    "equal stacks are added up: samples are in no order, and have no time";

// Full and mangled names as they are, as the formats keep functions of one name apart by other
// means; short ones as labels, which are distinct.
pub(super) struct Naming<'a> {
    pub profile: &'a Profile,
    subject: &'a Subject<'a>,
    labels: Option<Labels>,
}

impl<'a> Naming<'a> {
    pub fn new(subject: &'a Subject<'a>, stacks: &CallStacks) -> Naming<'a> {
        let functions = || stacks.frames.iter().map(|frame| frame.function);
        Naming {
            profile: subject.profile,
            subject,
            labels: (subject.names == Names::Short).then(|| subject.labels(functions())),
        }
    }

    pub fn name(&self, function: FunctionId) -> &str {
        match &self.labels {
            Some(labels) => labels.of(function),
            None => self.subject.name(function),
        }
    }

    // Safe to print.
    pub fn printable(&self, function: FunctionId) -> Cow<'_, str> {
        printable(self.name(function))
    }

    // `None` where the function has no module.
    pub fn module(&self, function: FunctionId) -> Option<&'a str> {
        let module = &self.profile.modules[self.profile.functions[function].module];
        (!module.path.is_empty()).then_some(&*module.path)
    }

    pub fn declaration(&self, function: FunctionId) -> Option<&'a Line> {
        self.profile.functions[function].declared_at.as_deref()
    }

    // The number of a line, where it is in the function's own file. Code from a macro may be in
    // another one, for which formats of lines have no place.
    pub fn line_in(&self, function: FunctionId, line: Option<LineId>) -> Option<u32> {
        let declared = self.declaration(function)?;
        let line = &self.profile.lines[line?];
        (line.file == declared.file).then_some(line.line)
    }

    // A property of each function by which readers tell functions apart: the plain one, and where
    // several functions are equal by `key` one that `numbered` makes with the place of the function
    // among them.
    pub fn apart<K: Hash + Ord, T>(
        &self,
        functions: Vec<FunctionId>,
        key: impl Fn(FunctionId) -> K,
        plain: impl Fn(FunctionId) -> T,
        numbered: impl Fn(FunctionId, usize) -> T,
    ) -> HashMap<FunctionId, T> {
        let mut equal: BTreeMap<K, Vec<FunctionId>> = BTreeMap::new();
        for id in functions {
            equal.entry(key(id)).or_default().push(id);
        }
        let mut told = HashMap::new();
        for ids in equal.into_values() {
            if let [id] = ids[..] {
                told.insert(id, plain(id));
                continue;
            }
            for (index, id) in ids.into_iter().enumerate() {
                told.insert(id, numbered(id, index + 1));
            }
        }
        told
    }

    pub fn is_mark(&self, function: FunctionId) -> bool {
        self.profile.functions[function].kind == FunctionKind::Mark
    }

    // Folded stacks have no threads.
    pub fn thread(&self, thread: ThreadId) -> Option<&'a Thread> {
        let thread = &self.profile.threads[thread];
        (thread.pid != 0 || thread.tid != 0 || !thread.comm.is_empty()).then_some(thread)
    }

    // `app 4711/4712`, or `all threads` where threads are not known.
    pub fn thread_name(&self, thread: ThreadId) -> String {
        match self.thread(thread) {
            Some(thread) => {
                let comm = printable(&thread.comm);
                format!("{comm} {}/{}", thread.pid, thread.tid)
            }
            None => "all threads".into(),
        }
    }

    // What is not known of the profile, a sentence each.
    pub fn caveats(&self) -> impl Iterator<Item = String> {
        let caveats = self.profile.caveats.iter();
        caveats.map(|caveat| printable(&caveat.to_string()).into_owned())
    }
}

// How a value is called and in which unit it counts, in the words of pprof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measure<'a> {
    pub kind: &'a str,
    pub unit: &'a str,
}

pub(super) const SAMPLES: Measure<'static> = Measure {
    kind: "samples",
    unit: "count",
};

// The weight of samples, and the number of samples where it is known and not the same.
pub(super) struct Measures<'a> {
    pub weight: Measure<'a>,
    pub has_count: bool,
}

impl<'a> Measures<'a> {
    pub fn of(subject: &Subject<'a>) -> Measures<'a> {
        let event = subject.selection.event();
        let unit = match &event.unit {
            Unit::Samples => {
                return Measures {
                    weight: SAMPLES,
                    has_count: false,
                };
            }
            Unit::Nanoseconds => "nanoseconds",
            Unit::Count(what) if what == "bytes" => "bytes",
            Unit::Count(_) => "count",
        };
        Measures {
            weight: Measure {
                kind: &event.name,
                unit,
            },
            has_count: subject.selection.sampling() != Sampling::Merged,
        }
    }
}

// The functions on these stacks, in order.
pub(super) fn functions_of(stacks: &CallStacks) -> Vec<FunctionId> {
    let mut functions: Vec<FunctionId> = stacks.frames.iter().map(|f| f.function).collect();
    functions.sort_unstable();
    functions.dedup();
    functions
}

// The number of a row in formats that count from 1.
pub(super) fn number(id: impl Id) -> u64 {
    id.index() as u64 + 1
}
