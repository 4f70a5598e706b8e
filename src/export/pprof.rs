//! A profile for `go tool pprof` and what else reads pprof's format: see [`crate::pprof`].
//!
//! | in the file | is |
//! |---|---|
//! | sample types | `samples/count`, and the event in its unit, which is the default |
//! | location | a line of a function, with the calls that were inlined there; no addresses |
//! | mapping | a module, with its build ID |
//! | labels `pid`, `tid`, `comm` | the thread |
//! | label `inferred` | functions on the stack that were not recorded but restored from the code |
//! | label `frames_missing` | functions on the stack whose callers are not the frames above them |
//! | labels `inferred_frame`, `frames_missing_frame` | which frames those are: see below |
//! | period | the weight of every sample where all are equal, else the mean |
//! | comments | what is not known |
//!
//! The last labels count frames from the leaf, which is 1, and are there only where another frame
//! has the same name.
//!
//! Marks such as `[truncated]` are functions without a mapping. A system name is there only where
//! it differs from the name: an equal one would make pprof demangle it again, and drop parameters.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use crate::analysis::call_stacks::{CallStacks, StackFrame, StackId};
use crate::base::{IdVec, Interner, printable};
use crate::pprof::{self, Function, Label, Mapping, Profile, Sample, ValueType};
use crate::profile::{FunctionId, ModuleId, ThreadId};
use crate::view::Subject;

use super::locations::{Location, LocationId, Locations};
use super::naming::{MERGED, Measure, Measures, Naming, PRODUCER, SAMPLES, functions_of, number};

/// Writes the stacks as a compressed profile.
pub fn write(out: &mut dyn Write, subject: &Subject, stacks: &CallStacks) -> io::Result<()> {
    profile(subject, stacks).write(out)
}

fn profile(subject: &Subject, stacks: &CallStacks) -> Profile {
    let naming = Naming::new(subject, stacks);
    let measures = Measures::of(subject);
    let mut strings = Strings::default();
    let mut file = Profile::default();
    // The format demands that the first string is empty.
    strings.of("");
    if measures.has_count {
        file.sample_type.push(strings.value_type(SAMPLES));
    }
    let weight = strings.value_type(measures.weight);
    file.default_sample_type = weight.kind;
    file.sample_type.push(weight.clone());
    file.period_type = Some(weight);
    let (period, is_constant) = period(subject);
    file.period = period;
    file.time_nanos = signed(subject.profile.about.started.unwrap_or(0));
    file.duration_nanos = signed(subject.profile.about.duration.unwrap_or(0));
    let mut locations = Locations::of(&naming, stacks);
    for sample in &stacks.samples {
        let mut row = Sample {
            label: labels(&naming, stacks, sample.stack, sample.thread, &mut strings),
            ..Sample::default()
        };
        locations.walk(sample.stack, |location| {
            row.location_id.push(number(location))
        });
        if measures.has_count {
            row.value.push(signed(sample.count));
        }
        row.value.push(signed(sample.weight));
        file.sample.push(row);
    }
    describe(
        &mut file,
        &naming,
        stacks,
        &locations.into_rows(),
        &mut strings,
    );
    let (name, version) = PRODUCER;
    let varied = (!is_constant).then(|| "the period varies; the one stated is the mean".to_owned());
    let notes = [format!("{name} {version}"), MERGED.to_owned()];
    let command = subject
        .profile
        .about
        .command
        .as_deref()
        .map(|command| format!("command: {}", printable(command)));
    let notes = notes.into_iter().chain(varied).chain(command);
    for note in notes.chain(naming.caveats()) {
        file.comment.push(strings.of(&note));
    }
    file.string_table = strings.table();
    file
}

fn describe(
    file: &mut Profile,
    naming: &Naming,
    stacks: &CallStacks,
    locations: &IdVec<LocationId, Location>,
    strings: &mut Strings,
) {
    let profile = naming.profile;
    let mut modules: IdVec<ModuleId, Option<Mapping>> = IdVec::filled(None, profile.modules.len());
    for id in functions_of(stacks) {
        let function = &profile.functions[id];
        let name = naming.printable(id);
        let linkage = function.linkage_name.as_deref().map(printable);
        let declaration = naming.declaration(id);
        file.function.push(Function {
            id: number(id),
            name: strings.of(&name),
            system_name: linkage
                .filter(|linkage| *linkage != name)
                .map_or(0, |linkage| strings.of(&linkage)),
            filename: declaration.map_or(0, |line| strings.of(&printable(&line.file))),
            start_line: declaration.map_or(0, |line| line.line.into()),
        });
        if naming.module(id).is_some() && modules[function.module].is_none() {
            let module = &profile.modules[function.module];
            let build_id = profile
                .build_ids
                .get(function.module)
                .and_then(Option::as_ref);
            modules[function.module] = Some(Mapping {
                id: number(function.module),
                filename: strings.of(&printable(&module.path)),
                build_id: build_id.map_or(0, |id| strings.of(&id.to_string())),
                // What is there is all that is known: pprof should not look for more in the files.
                has_functions: true,
                has_filenames: true,
                has_line_numbers: true,
                has_inline_frames: true,
                ..Mapping::default()
            });
        }
    }
    for (id, location) in locations.enumerate() {
        let module = location.outermost().map(|id| profile.functions[id].module);
        let mapping = module.and_then(|module| modules[module].as_ref());
        let line = |&(function, line): &(FunctionId, Option<u32>)| pprof::Line {
            function_id: number(function),
            line: line.unwrap_or(0).into(),
        };
        file.location.push(pprof::Location {
            id: number(id),
            mapping_id: mapping.map_or(0, |mapping| mapping.id),
            line: location.functions.iter().map(line).collect(),
            ..Default::default()
        });
    }
    // pprof takes the first mapping for the program.
    let program = program(naming, stacks, &modules);
    let mapped = |id: ModuleId| modules[id].clone();
    let others = modules
        .enumerate()
        .map(|(id, _)| id)
        .filter(|id| Some(*id) != program);
    file.mapping = program
        .into_iter()
        .chain(others)
        .filter_map(mapped)
        .collect();
}

// The module that has the name of the heaviest command; if none has, the first that is a file.
fn program(
    naming: &Naming,
    stacks: &CallStacks,
    modules: &IdVec<ModuleId, Option<Mapping>>,
) -> Option<ModuleId> {
    let profile = naming.profile;
    let mut weights: BTreeMap<&str, u64> = BTreeMap::new();
    for sample in &stacks.samples {
        let weight = weights
            .entry(&profile.threads[sample.thread].comm)
            .or_default();
        *weight = weight.saturating_add(sample.weight);
    }
    let heaviest = weights.into_iter().max_by_key(|(_, weight)| *weight);
    let shown: Vec<ModuleId> = modules
        .enumerate()
        .filter(|(_, module)| module.is_some())
        .map(|(id, _)| id)
        .collect();
    let name = |id: &ModuleId| &*profile.modules[*id].name;
    // The kernel keeps no more than 15 bytes of a command.
    let is_command = |id: &&ModuleId| {
        let of = |comm: &str| name(id) == comm || comm.len() == 15 && name(id).starts_with(comm);
        heaviest.is_some_and(|(comm, _)| of(comm))
    };
    let is_file = |id: &&ModuleId| !name(id).starts_with('[');
    let mut ids = shown.iter();
    ids.find(is_command)
        .or_else(|| shown.iter().find(is_file))
        .copied()
}

// What is known of a sample besides its stack.
fn labels(
    naming: &Naming,
    stacks: &CallStacks,
    stack: StackId,
    thread: ThreadId,
    strings: &mut Strings,
) -> Vec<Label> {
    let mut labels = Vec::new();
    if let Some(thread) = naming.thread(thread) {
        for (key, id) in [("pid", thread.pid), ("tid", thread.tid)] {
            labels.push(Label {
                key: strings.of(key),
                num: id.into(),
                ..Label::default()
            });
        }
        labels.push(Label {
            key: strings.of("comm"),
            str: strings.of(&printable(&thread.comm)),
            ..Label::default()
        });
    }
    let paths = &naming.profile.paths;
    if !paths.has_inferred() && !paths.has_gaps() {
        return labels;
    }
    let mut special = |key: &str, key_of_frames: &str, is: fn(&StackFrame) -> bool| {
        let frames = || stacks.outwards(stack).map(|(_, frame)| frame).zip(1..);
        let mut functions: Vec<FunctionId> = frames()
            .filter(|(frame, _)| is(frame))
            .map(|(frame, _)| frame.function)
            .collect();
        functions.sort_unstable();
        functions.dedup();
        let names: BTreeSet<_> = functions.iter().map(|&id| naming.printable(id)).collect();
        for name in &names {
            labels.push(Label {
                key: strings.of(key),
                str: strings.of(name),
                ..Label::default()
            });
        }
        let is_named = |frame: &StackFrame| names.contains(&naming.printable(frame.function));
        // A name tells which frames are meant unless another frame has it too; then their numbers
        // do.
        if names.is_empty() || frames().all(|(frame, _)| is(frame) || !is_named(frame)) {
            return;
        }
        for (_, number) in frames().filter(|(frame, _)| is(frame)) {
            labels.push(Label {
                key: strings.of(key_of_frames),
                num: number,
                ..Label::default()
            });
        }
    };
    special("inferred", "inferred_frame", |frame| frame.inferred);
    let (key, key_of_frames) = ("frames_missing", "frames_missing_frame");
    special(key, key_of_frames, |frame| frame.across_gap);
    labels
}

// The weight of each sample, or their mean; and whether all are equal. 0 where it is not known.
fn period(subject: &Subject) -> (i64, bool) {
    let selection = subject.selection;
    let measures = Measures::of(subject);
    let (total, count) = (selection.total(), selection.samples());
    if !measures.has_count {
        return (i64::from(measures.weight == SAMPLES), true);
    }
    if count == 0 {
        return (0, true);
    }
    // Without spread, the squares add up to the square of the sum divided by the number.
    let square = u128::from(total) * u128::from(total);
    let is_constant = selection.squares().checked_mul(count.into()) == Some(square);
    (signed(total / count), is_constant)
}

// Totals of 63 bits and more are refused before.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[derive(Default)]
struct Strings {
    texts: Interner,
    table: Vec<Vec<u8>>,
}

impl Strings {
    fn of(&mut self, text: &str) -> i64 {
        let index = self.texts.intern(text).index();
        if index == self.table.len() {
            self.table.push(text.as_bytes().to_vec());
        }
        signed(index as u64)
    }

    fn value_type(&mut self, measure: Measure) -> ValueType {
        ValueType {
            kind: self.of(&printable(measure.kind)),
            unit: self.of(measure.unit),
        }
    }

    fn table(self) -> Vec<Vec<u8>> {
        self.table
    }
}
