//! OpenTelemetry's profiles, signal `v1development`, as a file: a `ProfilesData` in protobuf.
//!
//! The layout is that of `opentelemetry-proto` 1.9 (in PyPI's `opentelemetry-proto` 1.45); while it
//! is in development, collectors may want another one.
//!
//! Each of what is measured is a profile: the weight of samples, and their number where it is
//! known. All tables are in the dictionary, their first rows the zero values. Samples have neither
//! times nor links. Attributes:
//!
//! | of | key | is |
//! |---|---|---|
//! | samples | `process.pid`, `thread.id`, `thread.name` | the thread |
//! | mappings | `process.executable.build_id.gnu` | the build ID |
//! | locations | `proftool.inferred` | true where functions were restored from the code |
//! | the resource | `process.command_line`, `proftool.caveat.N` | the command; what is not known |

mod messages;

use std::collections::HashMap;
use std::io::{self, Write};

use prost::Message;

use crate::analysis::call_stacks::{CallStacks, StackId, StackSample};
use crate::base::{IdVec, Interner, printable};
use crate::profile::{FunctionId, ModuleId, ThreadId};
use crate::view::Subject;

use super::locations::{LocationId, Locations};
use super::naming::{Measure, Measures, Naming, PRODUCER, SAMPLES, functions_of};

use messages::{
    AnyValue, Attribute, Choice, Dictionary, Function, KeyValue, Line, Link, Location, Mapping,
    Profile, ProfilesData, Resource, ResourceProfiles, Sample, Scope, ScopeProfiles, Stack,
    ValueType,
};

/// Writes the profiles.
pub fn write(out: &mut dyn Write, subject: &Subject, stacks: &CallStacks) -> io::Result<()> {
    out.write_all(&data(subject, stacks).encode_to_vec())
}

fn data(subject: &Subject, stacks: &CallStacks) -> ProfilesData {
    let naming = Naming::new(subject, stacks);
    let mut tables = Tables::new();
    let stack_of = tables.stacks(&naming, stacks);
    let threads = tables.threads(&naming, stacks);
    let measures = Measures::of(subject);
    let profile = |tables: &mut Tables, measure: Measure, value: fn(&StackSample) -> u64| Profile {
        sample_type: Some(ValueType {
            type_strindex: tables.text(&printable(measure.kind)),
            unit_strindex: tables.text(measure.unit),
        }),
        samples: stacks
            .samples
            .iter()
            .map(|sample| Sample {
                stack_index: stack_of[sample.stack],
                attribute_indices: threads.get(&sample.thread).cloned().unwrap_or_default(),
                values: vec![i64::try_from(value(sample)).unwrap_or(i64::MAX)],
            })
            .collect(),
        duration_nano: subject.profile.about.duration.unwrap_or(0),
        attribute_indices: Vec::new(),
    };
    let mut profiles = vec![profile(&mut tables, measures.weight, |sample| {
        sample.weight
    })];
    if measures.has_count {
        profiles.push(profile(&mut tables, SAMPLES, |sample| sample.count));
    }
    let command = subject
        .profile
        .about
        .command
        .iter()
        .map(|command| ("process.command_line".to_owned(), command.clone()));
    let caveats = naming
        .caveats()
        .enumerate()
        .map(|(index, caveat)| (format!("proftool.caveat.{index}"), caveat));
    let attributes = command.chain(caveats).map(|(key, value)| KeyValue {
        key,
        value: Some(AnyValue {
            value: Some(Choice::Text(printable(&value).into_owned())),
        }),
    });
    let (name, version) = PRODUCER;
    ProfilesData {
        resource_profiles: vec![ResourceProfiles {
            resource: Some(Resource {
                attributes: attributes.collect(),
            }),
            scope_profiles: vec![ScopeProfiles {
                scope: Some(Scope {
                    name: name.into(),
                    version: version.into(),
                }),
                profiles,
            }],
        }],
        dictionary: Some(tables.finish()),
    }
}

struct Tables {
    dictionary: Dictionary,
    texts: Interner,
}

impl Tables {
    fn new() -> Tables {
        let mut texts = Interner::default();
        texts.intern("");
        Tables {
            dictionary: Dictionary {
                mapping_table: vec![Mapping::default()],
                location_table: vec![Location::default()],
                function_table: vec![Function::default()],
                link_table: vec![Link::default()],
                string_table: Vec::new(),
                attribute_table: vec![Attribute::default()],
                stack_table: vec![Stack::default()],
            },
            texts,
        }
    }

    fn finish(mut self) -> Dictionary {
        self.dictionary.string_table = self.texts.iter().map(str::to_owned).collect();
        self.dictionary
    }

    fn text(&mut self, text: &str) -> i32 {
        index(self.texts.intern(text).index())
    }

    fn attribute(&mut self, key: &str, value: Choice) -> i32 {
        let key_strindex = self.text(key);
        self.dictionary.attribute_table.push(Attribute {
            key_strindex,
            value: Some(AnyValue { value: Some(value) }),
        });
        index(self.dictionary.attribute_table.len() - 1)
    }

    // Stacks without samples keep row 0.
    fn stacks(&mut self, naming: &Naming, stacks: &CallStacks) -> IdVec<StackId, i32> {
        let mut rows = IdVec::filled(0, stacks.frames.len());
        let mut locations = Locations::of(naming, stacks);
        for sample in &stacks.samples {
            if rows[sample.stack] == 0 {
                let mut stack = Stack::default();
                // Row 0 is the zero value.
                let mut visit = |id: LocationId| stack.location_indices.push(index(id.index() + 1));
                locations.walk(sample.stack, &mut visit);
                self.dictionary.stack_table.push(stack);
                rows[sample.stack] = index(self.dictionary.stack_table.len() - 1);
            }
        }
        let functions = self.functions(naming, stacks);
        let mut inferred = None;
        let mut modules = HashMap::new();
        for location in locations.into_rows().iter() {
            let module = location
                .outermost()
                .filter(|&id| naming.module(id).is_some())
                .map(|id| naming.profile.functions[id].module);
            let mapping_index = module.map_or(0, |module| {
                *modules
                    .entry(module)
                    .or_insert_with(|| self.mapping(naming, module))
            });
            let mut attribute_indices = Vec::new();
            if location.inferred {
                let known = *inferred
                    .get_or_insert_with(|| self.attribute("proftool.inferred", Choice::Flag(true)));
                attribute_indices.push(known);
            }
            let line = |&(function, line): &(FunctionId, Option<u32>)| Line {
                function_index: functions.get(&function).copied().unwrap_or(0),
                line: line.unwrap_or(0).into(),
            };
            self.dictionary.location_table.push(Location {
                mapping_index,
                lines: location.functions.iter().map(line).collect(),
                attribute_indices,
            });
        }
        rows
    }

    fn mapping(&mut self, naming: &Naming, id: ModuleId) -> i32 {
        let module = &naming.profile.modules[id];
        let build_id = naming.profile.build_ids.get(id).and_then(Option::as_ref);
        let key = "process.executable.build_id.gnu";
        let build_id = build_id.map(|id| self.attribute(key, Choice::Text(id.to_string())));
        let filename_strindex = self.text(&printable(&module.path));
        self.dictionary.mapping_table.push(Mapping {
            filename_strindex,
            attribute_indices: build_id.into_iter().collect(),
        });
        index(self.dictionary.mapping_table.len() - 1)
    }

    fn functions(&mut self, naming: &Naming, stacks: &CallStacks) -> HashMap<FunctionId, i32> {
        let mut rows = HashMap::new();
        for id in functions_of(stacks) {
            let linkage = naming.profile.functions[id].linkage_name.as_deref();
            let declaration = naming.declaration(id);
            let function = Function {
                name_strindex: self.text(&naming.printable(id)),
                system_name_strindex: linkage.map_or(0, |name| self.text(&printable(name))),
                filename_strindex: declaration.map_or(0, |line| self.text(&printable(&line.file))),
                start_line: declaration.map_or(0, |line| line.line.into()),
            };
            self.dictionary.function_table.push(function);
            rows.insert(id, index(self.dictionary.function_table.len() - 1));
        }
        rows
    }

    fn threads(&mut self, naming: &Naming, stacks: &CallStacks) -> HashMap<ThreadId, Vec<i32>> {
        let mut rows = HashMap::new();
        for samples in stacks.samples.chunk_by(|a, b| a.thread == b.thread) {
            let id = samples[0].thread;
            if let Some(thread) = naming.thread(id) {
                let name = printable(&thread.comm).into_owned();
                let attributes = vec![
                    self.attribute("process.pid", Choice::Number(thread.pid.into())),
                    self.attribute("thread.id", Choice::Number(thread.tid.into())),
                    self.attribute("thread.name", Choice::Text(name)),
                ];
                rows.insert(id, attributes);
            }
        }
        rows
    }
}

// Tables have fewer than 2^31 rows, as each takes more than a byte.
fn index(row: usize) -> i32 {
    i32::try_from(row).unwrap_or(i32::MAX)
}
