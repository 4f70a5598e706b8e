//! Stacks for <https://profiler.firefox.com>: a processed profile, `preprocessedProfileVersion` 55,
//! compressed with gzip. The Firefox Profiler upgrades older versions when it loads them.
//!
//! | in the file | is |
//! |---|---|
//! | thread | a thread with samples of an event; events after the first are in the thread's name |
//! | weight | milliseconds (`tracing-ms`) for time, else the number of samples or bytes |
//! | time | 0 of every sample: equal stacks are added up, and have no time |
//! | library | the module, with its build ID |
//! | category | user or kernel code, restored functions, marks such as `[truncated]` |
//! | markers of the main thread | what is not known, as lost samples, with its number |
//! | extra information | the same, as text |
//!
//! The Firefox Profiler makes functions of one name and library one unless their files differ.
//! Where these are equal as well, the file has the function's address.
//!
//! The tables are written here and not with `fxprof-processed-profile`: its weights have 32 bits,
//! and frames that are known by name have neither library nor file there.

mod tables;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, BufWriter, Write};

use flate2::{Compression, GzBuilder};
use serde::Serialize;
use serde_json::{Value, json};

use crate::analysis::call_stacks::{CallStacks, StackSample};
use crate::base::{BuildId, printable};
use crate::profile::{FunctionId, ModuleId, ThreadId};
use crate::view::Subject;

use super::json;
use super::naming::{MERGED, Naming, PRODUCER, functions_of};
use tables::{CAVEAT, Tables, Thread, UNKNOWN, Weight};

const VERSION: u32 = 55;

// The categories of frames, by index.
const CATEGORIES: [(&str, &str); 4] = [
    ("User", "blue"),
    ("Kernel", "orange"),
    ("Restored from the code", "yellow"),
    ("Mark", "grey"),
];

/// An event of the profile: a thread of the document for each thread with samples of it.
#[derive(Clone, Copy, Debug)]
pub struct Track<'a> {
    /// The samples of the event.
    pub subject: &'a Subject<'a>,
    /// Their stacks.
    pub stacks: &'a CallStacks,
}

/// Writes an event and `others` of the same profile, such as off-CPU time, compressed.
pub fn write(out: &mut dyn Write, first: Track, others: &[Track]) -> io::Result<()> {
    let Track { subject, stacks } = first;
    let naming = Naming::new(subject, stacks);
    let weights = stacks
        .samples
        .chunk_by(|a, b| a.thread == b.thread)
        .map(|samples| {
            let sum = samples
                .iter()
                .fold(0u64, |sum, sample| sum.saturating_add(sample.weight));
            (sum, Reverse(samples[0].thread))
        });
    let main = weights.max().map(|(_, Reverse(thread))| thread);
    let mut threads = Vec::new();
    for (place, track) in std::iter::once(&first).chain(others).enumerate() {
        threads.extend(track.threads(place == 0, main));
    }
    // A thread's events next to each other.
    threads.sort_by_key(|(id, _)| *id);
    let threads: Vec<Thread> = threads.into_iter().map(|(_, thread)| thread).collect();
    let (name, version) = PRODUCER;
    let notes: Vec<Value> = std::iter::once(MERGED.to_owned())
        .chain(naming.caveats())
        .map(|note| json!({"label": "Note", "format": "string", "value": note}))
        .collect();
    let categories: Vec<Value> = CATEGORIES
        .iter()
        .map(|(name, color)| json!({"name": name, "color": color, "subcategories": ["Other"]}))
        .collect();
    let document = json!({
        "meta": {
            "categories": categories,
            "debug": false,
            "extensions": {"baseURL": [], "id": [], "length": 0, "name": []},
            "extra": [{"label": "Recording", "entries": notes}],
            "importedFrom": format!("{name} {version}"),
            "interval": 1.0,
            "markerSchema": [marker_schema()],
            "pausedRanges": [],
            "preprocessedProfileVersion": VERSION,
            "processType": 0,
            "product": subject.selection.event().name,
            "sampleUnits": {"eventDelay": "ms", "threadCPUDelta": "ns", "time": "ms"},
            "sourceCodeIsNotOnSearchfox": true,
            "startTime": subject.profile.about.started.map_or(0.0, |ns| (ns / 1_000_000) as f64),
            "symbolicated": true,
            "usesOnlyOneStackType": true,
            "version": 24,
        },
        "counters": [],
        "libs": libraries(&naming),
        "pages": [],
        "profilerOverhead": [],
    });
    let document = Document {
        facts: document,
        threads,
    };
    // No file name, time or operating system in the header: they would differ between equal runs.
    let gzip = GzBuilder::new()
        .mtime(0)
        .operating_system(255)
        .write(out, Compression::new(6));
    // The compressor clears its buffer for each write, and JSON is written number by number.
    let mut buffered = BufWriter::with_capacity(1 << 16, gzip);
    json::value(&mut buffered, &document)?;
    buffered.into_inner()?.finish()?.flush()
}

impl Track<'_> {
    // The threads with samples, by their ids. `main` is the one that the profiler shows at once,
    // with the markers.
    fn threads(&self, is_first: bool, main: Option<ThreadId>) -> Vec<(ThreadId, Thread)> {
        let Track { subject, stacks } = *self;
        let naming = Naming::new(subject, stacks);
        let event = subject.selection.event();
        let weight = Weight::in_unit(&event.unit);
        let files = files(&naming, stacks);
        let samples = stacks.samples.chunk_by(|a, b| a.thread == b.thread);
        let thread = |samples: &[StackSample]| {
            let id = samples[0].thread;
            let mut tables = Tables::new(&naming, stacks, &files);
            let plain = naming.thread_name(id);
            let name = if is_first {
                plain
            } else {
                format!("{plain} ({})", printable(&event.name))
            };
            let is_main = is_first && main == Some(id);
            (id, tables.thread(samples, name, weight, is_main))
        };
        samples.map(thread).collect()
    }
}

// How the profiler shows a caveat.
fn marker_schema() -> Value {
    json!({
        "name": CAVEAT,
        "display": ["marker-chart", "marker-table", "timeline-overview"],
        "tooltipLabel": "{marker.data.fact}",
        "tableLabel": "{marker.data.fact}",
        "chartLabel": "{marker.data.fact}",
        "fields": [
            {"key": "count", "label": "Number", "format": "integer"},
            {"key": "fact", "label": "Of the whole recording", "format": "string"},
        ],
    })
}

// The modules, by their number in the profile.
fn libraries(naming: &Naming) -> Vec<Value> {
    let modules = naming.profile.modules.enumerate();
    let library = |(id, module): (ModuleId, &crate::profile::Module)| {
        let build_id = naming.profile.build_ids.get(id).and_then(Option::as_ref);
        json!({
            "arch": "",
            "name": module.name,
            "path": module.path,
            "debugName": module.name,
            "debugPath": module.path,
            "breakpadId": build_id.map(breakpad_id).unwrap_or_default(),
            "codeId": build_id.map(BuildId::to_string),
        })
    };
    let unknown = json!({"arch": "", "name": UNKNOWN, "path": UNKNOWN, "debugName": UNKNOWN,
        "debugPath": UNKNOWN, "breakpadId": "", "codeId": null});
    modules.map(library).chain([unknown]).collect()
}

// A build ID as Breakpad writes it: 16 bytes, of which the first three fields are little-endian,
// and an age.
fn breakpad_id(build_id: &BuildId) -> String {
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(build_id.bytes()) {
        *to = *from;
    }
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    format!("{digits}0")
}

// It differs where name and library do not.
fn files(naming: &Naming, stacks: &CallStacks) -> HashMap<FunctionId, Option<String>> {
    let declared = |id| naming.declaration(id).map(|line| line.file.clone());
    naming.apart(
        functions_of(stacks),
        |id| (naming.name(id).to_owned(), naming.module(id), declared(id)),
        declared,
        |id, number| {
            let file = declared(id).unwrap_or_default();
            let address = naming.profile.functions[id].address.unwrap_or(0);
            Some(format!("{file} [{address:#x} #{number}]"))
        },
    )
}

#[derive(Serialize)]
struct Document {
    #[serde(flatten)]
    facts: Value,
    threads: Vec<Thread>,
}
