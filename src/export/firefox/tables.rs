//! A thread of the document, with all of its tables.

use std::collections::HashMap;

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::{Value, json};

use crate::analysis::call_stacks::{CallStacks, StackId, StackSample};
use crate::base::{Distinct, Interner, Unit, define_id, printable};
use crate::profile::{FunctionId, ModuleId};

use super::super::naming::Naming;

// What the module of functions without one is called. Without a library, profiler-cli would take
// what stands before a `!` in the name for it, as in `operator!=`.
pub(super) const UNKNOWN: &str = "[unknown]";

// The kind of a marker that has something which is not known of the recording.
pub(super) const CAVEAT: &str = "Caveat";

// The phase of a marker at one time.
const INSTANT: u32 = 0;

// The index of the category of marks.
const MARK: u32 = 3;

define_id! {
    // A row of a thread's table of functions.
    FuncId
}

define_id! {
    // A row of a thread's table of frames.
    FrameId
}

define_id! {
    // A row of a thread's table of stacks.
    RowId
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    Milliseconds,
    Samples,
    Bytes,
}

impl Weight {
    pub fn in_unit(unit: &Unit) -> Weight {
        match unit {
            Unit::Nanoseconds => Weight::Milliseconds,
            Unit::Count(what) if what == "bytes" => Weight::Bytes,
            Unit::Count(_) | Unit::Samples => Weight::Samples,
        }
    }

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

pub(super) struct Tables<'a> {
    naming: &'a Naming<'a>,
    stacks: &'a CallStacks,
    files: &'a HashMap<FunctionId, Option<String>>,
    strings: Interner,
    funcs: Distinct<FuncId, FunctionId>,
    // The function, the line, how many calls it is inlined, its category.
    frames: Distinct<FrameId, (FuncId, Option<u32>, u32, u32)>,
    rows: Distinct<RowId, (Option<RowId>, FrameId)>,
    known: FxHashMap<StackId, (RowId, u32)>,
}

// Its long tables are columns: a JSON value takes 32 bytes.
#[derive(Serialize)]
pub(super) struct Thread {
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
    pub fn new(
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

    // One thread has to be the main thread of its process for the profiler to show it at once.
    pub fn thread(
        &mut self,
        samples: &[StackSample],
        name: String,
        weight: Weight,
        is_main: bool,
    ) -> Thread {
        let stack: Vec<usize> = samples
            .iter()
            .map(|sample| self.row(sample.stack).index())
            .collect();
        let thread = samples.first().and_then(|s| self.naming.thread(s.thread));
        let functions = self.functions();
        let markers = self.markers(is_main);
        let rows = self.rows.rows();
        let prefix: Vec<Option<usize>> =
            rows.iter().map(|(row, _)| row.map(RowId::index)).collect();
        let frame: Vec<usize> = rows.iter().map(|(_, frame)| frame.index()).collect();
        let frames = self.frames.rows();
        let category: Vec<u32> = rows.iter().map(|&(_, frame)| frames[frame].3).collect();
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
            "markers": markers,
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

    // The caveats are of the whole recording, and have no time.
    fn markers(&mut self, is_main: bool) -> Value {
        let caveats = self.naming.profile.caveats.iter().filter(|_| is_main);
        let (mut names, mut data) = (Vec::new(), Vec::new());
        for caveat in caveats {
            names.push(self.strings.intern(caveat.kind.name()).index());
            let fact = caveat.to_string();
            data.push(json!({"type": CAVEAT, "count": caveat.count, "fact": printable(&fact)}));
        }
        let length = names.len();
        let none: Vec<Option<f64>> = vec![None; length];
        json!({"length": length, "category": vec![MARK; length], "data": data, "endTime": none,
            "name": names, "phase": vec![INSTANT; length], "startTime": vec![0.0; length]})
    }

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
                MARK
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
        let places = modules
            .iter()
            .map(|id| id.map_or(all.len(), |id| id.index()));
        let libraries = json!({"length": modules.len(), "name": library_names,
            "lib": places.collect::<Vec<_>>(),
            "host": vec![None::<u32>; modules.len()], "type": vec![1; modules.len()]});
        (functions, libraries)
    }
}
