//! Stacks for <https://profiler.firefox.com>: a processed profile, `preprocessedProfileVersion` 55,
//! compressed with gzip. The Firefox Profiler upgrades older versions when it loads them.
//!
//! | in the file | is |
//! |---|---|
//! | thread | a thread with samples |
//! | weight | milliseconds (`tracing-ms`) for time, else the number of samples or bytes |
//! | time | 0 of every sample: equal stacks are added up, and have no time |
//! | library | the module, with its build ID |
//! | category | user or kernel code, functions restored from the code, marks such as `[truncated]` |
//! | extra information | what is not known |
//!
//! The Firefox Profiler makes functions of one name and library one unless their files differ. Where these
//! are equal as well, the file has the function's address.
//!
//! The tables are written here and not with `fxprof-processed-profile`: its weights have 32 bits, and frames
//! that are known by name have neither library nor file there.

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};

use flate2::{Compression, GzBuilder};
use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::{Value, json};

use crate::analysis::call_stacks::{CallStacks, StackId, StackSample};
use crate::base::{BuildId, Distinct, Interner, Unit, define_id};
use crate::profile::{FunctionId, ModuleId};
use crate::view::Subject;

use super::json;
use super::naming::{MERGED, Naming, PRODUCER, functions_of};

/// What the module of functions without one is called. Without a library, profiler-cli would take what
/// stands before a `!` in the name for it, as in `operator!=`.
const UNKNOWN: &str = "[unknown]";

/// The version of the format.
const VERSION: u32 = 55;

/// The categories of frames, by index.
const CATEGORIES: [(&str, &str); 4] = [
    ("User", "blue"),
    ("Kernel", "orange"),
    ("Restored from the code", "yellow"),
    ("Mark", "grey"),
];

define_id! {
    /// A row of a thread's table of functions.
    FuncId
}

define_id! {
    /// A row of a thread's table of frames.
    FrameId
}

define_id! {
    /// A row of a thread's table of stacks.
    RowId
}

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weight {
    Milliseconds,
    Samples,
    Bytes,
}

impl Weight {
    fn name(self) -> &'static str {
        match self {
            Weight::Milliseconds => "tracing-ms",
            Weight::Samples => "samples",
            Weight::Bytes => "bytes",
        }
    }

    fn of(self, sample: &StackSample) -> Value {
        match self {
            // Exact up to 104 days.
            Weight::Milliseconds => json!(sample.weight as f64 / 1e6),
            Weight::Samples => json!(sample.count),
            Weight::Bytes => json!(sample.weight),
        }
    }
}

/// Writes the stacks as a compressed document.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, subject: &Subject, stacks: &CallStacks) -> io::Result<()> {
    let naming = Naming::new(subject, stacks);
    let weight = match &subject.selection.event().unit {
        Unit::Nanoseconds => Weight::Milliseconds,
        Unit::Count(what) if what == "bytes" => Weight::Bytes,
        Unit::Count(_) | Unit::Samples => Weight::Samples,
    };
    let files = files(&naming, stacks);
    let samples = stacks.samples.chunk_by(|a, b| a.thread == b.thread);
    let heaviest = samples
        .clone()
        .map(|samples| {
            samples
                .iter()
                .fold(0u64, |sum, s| sum.saturating_add(s.weight))
        })
        .enumerate()
        .max_by_key(|&(index, weight)| (weight, std::cmp::Reverse(index)));
    let threads: Vec<Thread> = samples
        .enumerate()
        .map(|(index, samples)| {
            let mut tables = Tables::new(&naming, stacks, &files);
            tables.thread(
                samples,
                weight,
                heaviest.is_some_and(|(most, _)| most == index),
            )
        })
        .collect();
    let (name, version) = PRODUCER;
    let notes = std::iter::once(MERGED.to_owned()).chain(naming.caveats());
    let notes: Vec<Value> = notes
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
            "markerSchema": [],
            "pausedRanges": [],
            "preprocessedProfileVersion": VERSION,
            "processType": 0,
            "product": subject.selection.event().name,
            "sampleUnits": {"eventDelay": "ms", "threadCPUDelta": "ns", "time": "ms"},
            "sourceCodeIsNotOnSearchfox": true,
            "startTime": 0.0,
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

/// The modules, by their number in the profile.
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

/// A build ID as Breakpad writes it: 16 bytes, of which the first three fields are little-endian, and an age.
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

/// The file of each function, which differs where name and library do not.
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

/// The tables of a thread.
struct Tables<'a> {
    naming: &'a Naming<'a>,
    stacks: &'a CallStacks,
    files: &'a HashMap<FunctionId, Option<String>>,
    strings: Interner,
    funcs: Distinct<FuncId, FunctionId>,
    /// The function, the line, how many calls it is inlined, its category.
    frames: Distinct<FrameId, (FuncId, Option<u32>, u32, u32)>,
    rows: Distinct<RowId, (Option<RowId>, FrameId)>,
    known: FxHashMap<StackId, (RowId, u32)>,
}

#[derive(Serialize)]
struct Document {
    #[serde(flatten)]
    facts: Value,
    threads: Vec<Thread>,
}

/// A thread. Its long tables are columns: a JSON value takes 32 bytes.
#[derive(Serialize)]
struct Thread {
    #[serde(flatten)]
    facts: Value,
    samples: Samples,
    #[serde(rename = "stackTable")]
    stack_table: StackTable,
    #[serde(rename = "frameTable")]
    frame_table: FrameTable,
}

#[derive(Serialize)]
struct Samples {
    length: usize,
    stack: Vec<usize>,
    time: Vec<f64>,
    weight: Vec<Value>,
    #[serde(rename = "weightType")]
    weight_type: &'static str,
}

#[derive(Serialize)]
struct StackTable {
    length: usize,
    prefix: Vec<Option<usize>>,
    frame: Vec<usize>,
    category: Vec<u32>,
    subcategory: Vec<u32>,
}

#[derive(Serialize)]
struct FrameTable {
    length: usize,
    address: Vec<i32>,
    #[serde(rename = "inlineDepth")]
    inline_depth: Vec<u32>,
    category: Vec<u32>,
    subcategory: Vec<u32>,
    func: Vec<usize>,
    #[serde(rename = "nativeSymbol")]
    native_symbol: Vec<Option<u32>>,
    #[serde(rename = "innerWindowID")]
    inner_window: Vec<u32>,
    line: Vec<Option<u32>>,
    column: Vec<Option<u32>>,
}

impl<'a> Tables<'a> {
    fn new(
        naming: &'a Naming<'a>,
        stacks: &'a CallStacks,
        files: &'a HashMap<FunctionId, Option<String>>,
    ) -> Tables<'a> {
        Tables {
            naming,
            stacks,
            files,
            strings: Interner::default(),
            funcs: Distinct::default(),
            frames: Distinct::default(),
            rows: Distinct::default(),
            known: FxHashMap::default(),
        }
    }

    /// The thread with its samples. One thread has to be the main thread of its process for the profiler to
    /// show it at once.
    fn thread(&mut self, samples: &[StackSample], weight: Weight, is_main: bool) -> Thread {
        let stack: Vec<usize> = samples
            .iter()
            .map(|sample| self.row(sample.stack).index())
            .collect();
        let thread = samples.first().and_then(|s| self.naming.thread(s.thread));
        let name = samples
            .first()
            .map(|sample| self.naming.thread_name(sample.thread));
        let functions = self.functions();
        let rows = self.rows.rows();
        let prefix: Vec<Option<usize>> =
            rows.iter().map(|(row, _)| row.map(RowId::index)).collect();
        let frame: Vec<usize> = rows.iter().map(|(_, frame)| frame.index()).collect();
        let frames = self.frames.rows();
        let category = rows.iter().map(|&(_, frame)| frames[frame].3);
        let category: Vec<u32> = category.collect();
        let facts = json!({
            "name": name,
            "isMainThread": is_main,
            "processName": thread.map_or("", |thread| &*thread.comm),
            "processType": "default",
            "processStartupTime": 0,
            "processShutdownTime": null,
            "registerTime": 0,
            "unregisterTime": null,
            "pid": thread.map_or(0, |thread| thread.pid).to_string(),
            "tid": thread.map_or(0, |thread| thread.tid).to_string(),
            "pausedRanges": [],
            "markers": {"length": 0, "category": [], "data": [], "endTime": [], "name": [],
                "phase": [], "startTime": []},
            "nativeSymbols": {"length": 0, "address": [], "functionSize": [], "libIndex": [],
                "name": []},
            "funcTable": functions.0,
            "resourceTable": functions.1,
            "stringArray": self.strings.iter().collect::<Vec<&str>>(),
        });
        Thread {
            facts,
            samples: Samples {
                length: samples.len(),
                stack,
                time: vec![0.0; samples.len()],
                weight: samples.iter().map(|sample| weight.of(sample)).collect(),
                weight_type: weight.name(),
            },
            stack_table: StackTable {
                length: rows.len(),
                prefix,
                frame,
                category,
                subcategory: vec![0; rows.len()],
            },
            frame_table: self.frame_table(),
        }
    }

    /// The row of a stack.
    fn row(&mut self, stack: StackId) -> RowId {
        let mut missing = Vec::new();
        let mut below = None;
        for (id, _) in self.stacks.outwards(stack) {
            below = self.known.get(&id).copied();
            if below.is_some() {
                break;
            }
            missing.push(id);
        }
        for id in missing.into_iter().rev() {
            let frame = &self.stacks.frames[id];
            let depth = match below {
                Some((_, depth)) if frame.inlined => depth + 1,
                _ => 0,
            };
            let module = &self.naming.profile.functions[frame.function].module;
            let category = if self.naming.is_mark(frame.function) {
                3
            } else if frame.inferred {
                2
            } else {
                u32::from(self.naming.profile.modules[*module].is_kernel())
            };
            let func = self.funcs.id_of(frame.function);
            let line = self.naming.line_in(frame.function, frame.line);
            let frame = self.frames.id_of((func, line, depth, category));
            let row = self.rows.id_of((below.map(|(row, _)| row), frame));
            self.known.insert(id, (row, depth));
            below = Some((row, depth));
        }
        below.map_or_else(|| RowId::new(0), |(row, _)| row)
    }

    fn frame_table(&self) -> FrameTable {
        let rows = self.frames.rows();
        let length = rows.len();
        FrameTable {
            length,
            address: vec![-1; length],
            inline_depth: rows.iter().map(|row| row.2).collect(),
            category: rows.iter().map(|row| row.3).collect(),
            subcategory: vec![0; length],
            func: rows.iter().map(|row| row.0.index()).collect(),
            native_symbol: vec![None; length],
            inner_window: vec![0; length],
            line: rows.iter().map(|row| row.1).collect(),
            column: vec![None; length],
        }
    }

    /// The tables of functions and of libraries.
    fn functions(&mut self) -> (Value, Value) {
        let mut resources: Distinct<RowId, Option<ModuleId>> = Distinct::default();
        let length = self.funcs.rows().len();
        let (mut names, mut files, mut lines, mut homes) = (vec![], vec![], vec![], vec![]);
        for &id in self.funcs.rows().iter() {
            names.push(self.strings.intern(self.naming.name(id)).index());
            let file = self.files.get(&id).and_then(Option::as_deref);
            files.push(file.map(|file| self.strings.intern(file).index()));
            lines.push(self.naming.declaration(id).map(|line| line.line));
            let module = self.naming.profile.functions[id].module;
            homes.push(match self.naming.module(id) {
                Some(_) => resources.id_of(Some(module)).index(),
                None => resources.id_of(None).index(),
            });
        }
        let modules = resources.into_rows();
        let all = &self.naming.profile.modules;
        let name = |id: &Option<ModuleId>| {
            let name = id.map_or(UNKNOWN, |id| &all[id].name);
            self.strings.intern(name).index()
        };
        let library_names: Vec<usize> = modules.iter().map(name).collect();
        let none: Vec<Option<u32>> = vec![None; length];
        let functions = json!({"length": length, "name": names, "isJS": vec![false; length],
            "relevantForJS": vec![false; length], "resource": homes, "fileName": files,
            "lineNumber": lines, "columnNumber": none});
        let libraries = json!({"length": modules.len(), "name": library_names,
            "lib": modules.iter().map(|id| id.map_or(all.len(), |id| id.index())).collect::<Vec<_>>(),
            "host": vec![None::<u32>; modules.len()], "type": vec![1; modules.len()]});
        (functions, libraries)
    }
}
