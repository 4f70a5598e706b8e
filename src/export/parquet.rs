//! Stacks as a table in Apache Parquet, for databases: DuckDB, ClickHouse and what else reads it.
//!
//! A row is a stack on one thread. Texts are UTF-8 and safe to print.
//!
//! | column | type | is |
//! |---|---|---|
//! | `event`, `unit` | text | what was sampled, and the unit of `value` |
//! | `host`, `command` | text or null | the machine, and the command that was recorded |
//! | `time` | timestamp (UTC, µs) or null | the first sample of the recording |
//! | `comm`, `pid`, `tid` | text and 32-bit numbers, or null | the thread |
//! | `self_function` | struct | the innermost function: `function`, `module` or null |
//! | `build_id` | text or null | the build of its module, in hexadecimal |
//! | `value` | 64-bit number | the sum of weights, in the event's unit |
//! | `count` | 64-bit number or null | the number of samples, where it is known |
//! | `stack_functions` | list of structs | each function once: `function`, `module` |
//! | `stack` | list of structs | the frames, outermost first: see below |
//!
//! A frame is `function`, `module`; whether it is `inlined` into its caller, `inferred` (not
//! recorded but restored from the code), or `frames_missing` between it and its caller.
//!
//! The total of a function is the sum of `value` over the rows with it in `stack_functions`: under
//! recursion, that counts each sample once. Where several functions of a module share a name,
//! `function` is the label that is theirs alone.
//!
//! Rows are in order of `comm`, `self_function`, `pid` and `tid`, which the file states, so that
//! the statistics of row groups and pages tell a reader which of them it can leave out. The footer
//! has the keys `proftool.version` and `proftool.caveat.N`, what is not known.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use crate::analysis::call_stacks::{CallStacks, StackFrame, StackSample};
use crate::base::{IdVec, Sampling, printable};
use crate::profile::{FunctionId, ModuleId, ThreadId};
use crate::view::Subject;

use super::naming::{MERGED, Naming, PRODUCER, functions_of};

// The most rows and frames of a row group: a reader leaves out whole ones.
const GROUP_ROWS: usize = 1 << 15;
const GROUP_FRAMES: usize = 1 << 20;
// The smallest part that a reader can leave out.
const PAGE_ROWS: usize = 1 << 12;

const SCHEMA: &str = "
message stacks {
  REQUIRED BYTE_ARRAY event (STRING);
  REQUIRED BYTE_ARRAY unit (STRING);
  OPTIONAL BYTE_ARRAY host (STRING);
  OPTIONAL BYTE_ARRAY command (STRING);
  OPTIONAL INT64 time (TIMESTAMP(MICROS, true));
  OPTIONAL BYTE_ARRAY comm (STRING);
  OPTIONAL INT32 pid;
  OPTIONAL INT32 tid;
  REQUIRED GROUP self_function {
    REQUIRED BYTE_ARRAY function (STRING);
    OPTIONAL BYTE_ARRAY module (STRING);
  }
  OPTIONAL BYTE_ARRAY build_id (STRING);
  REQUIRED INT64 value;
  OPTIONAL INT64 count;
  REQUIRED GROUP stack_functions (LIST) {
    REPEATED GROUP list {
      REQUIRED GROUP element {
        REQUIRED BYTE_ARRAY function (STRING);
        OPTIONAL BYTE_ARRAY module (STRING);
      }
    }
  }
  REQUIRED GROUP stack (LIST) {
    REPEATED GROUP list {
      REQUIRED GROUP element {
        REQUIRED BYTE_ARRAY function (STRING);
        OPTIONAL BYTE_ARRAY module (STRING);
        REQUIRED BOOLEAN inlined;
        REQUIRED BOOLEAN inferred;
        REQUIRED BOOLEAN frames_missing;
      }
    }
  }
}";

// The columns that rows are sorted by, as the places of their values among all.
const SORTED_BY: [i32; 5] = [5, 8, 9, 6, 7];

// Statistics of these columns would say nothing: a list has functions from all over.
const LISTS: [&str; 7] = [
    "stack_functions.list.element.function",
    "stack_functions.list.element.module",
    "stack.list.element.function",
    "stack.list.element.module",
    "stack.list.element.inlined",
    "stack.list.element.inferred",
    "stack.list.element.frames_missing",
];

/// Writes the stacks.
///
/// # Errors
///
/// Those of `out`, and of a value of more than 63 bits.
pub fn write(out: &mut dyn Write, subject: &Subject, stacks: &CallStacks) -> io::Result<()> {
    let bytes = file(subject, stacks).map_err(io::Error::other)?;
    out.write_all(&bytes)
}

fn file(subject: &Subject, stacks: &CallStacks) -> Result<Vec<u8>> {
    let table = Table::of(subject, stacks);
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties(&table)?))?;
    let mut rest = &*table.rows;
    while !rest.is_empty() {
        let mut frames = 0;
        let is_in = |sample: &&StackSample| {
            frames += table.stacks.outwards(sample.stack).count();
            frames <= GROUP_FRAMES
        };
        let rows = rest.iter().take(GROUP_ROWS).take_while(is_in).count();
        let (rows, others) = rest.split_at(rows.max(1));
        rest = others;
        let mut group = file.next_row_group()?;
        table.group(rows, &mut group)?;
        group.close()?;
    }
    file.into_inner()
}

fn properties(table: &Table) -> Result<WriterProperties> {
    let (name, version) = PRODUCER;
    let fact = |key: String, value: String| KeyValue::new(key, value);
    let version_fact = fact("proftool.version".into(), version.to_owned());
    let notes = std::iter::once(MERGED.to_owned())
        .chain(table.naming.caveats())
        .zip(0..)
        .map(|(note, number)| fact(format!("proftool.caveat.{number}"), note));
    let sorting = SORTED_BY.map(|column_idx| SortingColumn {
        column_idx,
        descending: false,
        nulls_first: true,
    });
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("{name} version {version}"))
        .set_key_value_metadata(Some(std::iter::once(version_fact).chain(notes).collect()))
        .set_sorting_columns(Some(sorting.to_vec()))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS);
    for list in LISTS {
        let path = ColumnPath::from(list.split('.').map(str::to_owned).collect::<Vec<_>>());
        properties = properties.set_column_statistics_enabled(path, EnabledStatistics::None);
    }
    Ok(properties.build())
}

#[derive(Clone)]
struct Name {
    function: ByteArray,
    module: Option<ByteArray>,
}

impl Name {
    fn bytes(&self) -> (&[u8], Option<&[u8]>) {
        let module = self.module.as_ref();
        (self.function.data(), module.map(ByteArray::data))
    }
}

struct Thread {
    comm: ByteArray,
    pid: i32,
    tid: i32,
}

type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

struct Table<'a> {
    subject: &'a Subject<'a>,
    stacks: &'a CallStacks,
    naming: Naming<'a>,
    names: IdVec<FunctionId, Option<Name>>,
    threads: IdVec<ThreadId, Option<Thread>>,
    rows: Vec<StackSample>,
}

impl<'a> Table<'a> {
    fn of(subject: &'a Subject, stacks: &'a CallStacks) -> Table<'a> {
        let naming = Naming::new(subject, stacks);
        let profile = subject.profile;
        let key = |id| (naming.printable(id).into_owned(), naming.module(id));
        let name = |id, function: &str| Name {
            function: text(function),
            module: naming.module(id).map(text),
        };
        let named = naming.apart(
            functions_of(stacks),
            key,
            |id| name(id, naming.name(id)),
            |id, _| name(id, profile.name(id)),
        );
        let mut names = IdVec::filled(None, profile.functions.len());
        for (id, name) in named {
            names[id] = Some(name);
        }
        let threads = profile.threads.enumerate().map(|(id, _)| {
            let thread = naming.thread(id)?;
            Some(Thread {
                comm: text(&thread.comm),
                pid: thread.pid,
                tid: thread.tid,
            })
        });
        let mut table = Table {
            threads: threads.collect::<Vec<_>>().into(),
            subject,
            stacks,
            naming,
            names,
            rows: Vec::new(),
        };
        let mut rows = stacks.samples.clone();
        // Equal ones stay in order of thread and stack.
        rows.sort_by(|a, b| table.order(a).cmp(&table.order(b)));
        table.rows = rows;
        table
    }

    fn order(&self, sample: &StackSample) -> impl Ord {
        let thread = self.threads[sample.thread].as_ref();
        let comm = thread.map(|thread| thread.comm.data());
        let name = self.name(self.leaf(sample)).map(Name::bytes);
        (comm, name, thread.map(|thread| (thread.pid, thread.tid)))
    }

    fn leaf(&self, sample: &StackSample) -> FunctionId {
        self.stacks.frames[sample.stack].function
    }

    // All on stacks have one.
    fn name(&self, function: FunctionId) -> Option<&Name> {
        self.names[function].as_ref()
    }

    // Column by column in the order of the schema.
    fn group(&self, rows: &[StackSample], group: &mut Group) -> Result<()> {
        let (event, about) = (self.subject.selection.event(), &self.subject.profile.about);
        let same = |value: &str| vec![text(value); rows.len()];
        column::<ByteArrayType>(group, &same(&event.name), None, None)?;
        column::<ByteArrayType>(group, &same(&event.unit.to_string()), None, None)?;
        let host = about.host.as_deref().map(text);
        optional::<ByteArrayType>(group, rows.iter().map(|_| host.clone()))?;
        let command = about.command.as_deref().map(text);
        optional::<ByteArrayType>(group, rows.iter().map(|_| command.clone()))?;
        let microseconds = about.started.and_then(|ns| i64::try_from(ns / 1000).ok());
        optional::<Int64Type>(group, rows.iter().map(|_| microseconds))?;
        let threads = rows.iter().map(|row| self.threads[row.thread].as_ref());
        let comms = threads.clone().map(|thread| Some(thread?.comm.clone()));
        optional::<ByteArrayType>(group, comms)?;
        optional::<Int32Type>(group, threads.clone().map(|thread| Some(thread?.pid)))?;
        optional::<Int32Type>(group, threads.map(|thread| Some(thread?.tid)))?;
        let selves: Vec<FunctionId> = rows.iter().map(|row| self.leaf(row)).collect();
        self.names(group, &selves, None)?;
        let profile = self.subject.profile;
        let build_ids: IdVec<ModuleId, Option<ByteArray>> = profile
            .build_ids
            .iter()
            .map(|id| id.as_ref().map(|id| text(&id.to_string())))
            .collect::<Vec<_>>()
            .into();
        let build_id = |id: &FunctionId| build_ids.get(profile.functions[*id].module)?.clone();
        optional::<ByteArrayType>(group, selves.iter().map(build_id))?;
        let values = rows.iter().map(|row| signed(row.weight));
        column::<Int64Type>(group, &values.collect::<Result<Vec<_>>>()?, None, None)?;
        let is_merged = self.subject.selection.sampling() == Sampling::Merged;
        let counts = rows
            .iter()
            .map(|row| (!is_merged).then(|| signed(row.count)))
            .map(Option::transpose);
        optional::<Int64Type>(group, counts.collect::<Result<Vec<_>>>()?.into_iter())?;

        let (mut functions, mut starts) = (Vec::new(), Vec::new());
        let (mut frames, mut starts_of_frames) = (Vec::new(), Vec::new());
        for row in rows {
            let from = frames.len();
            frames.extend(self.stacks.outwards(row.stack).map(|(_, frame)| *frame));
            // The stacks go outwards; the lists begin with the outermost frame.
            frames[from..].reverse();
            starts_of_frames.extend(levels(frames.len() - from));
            // Each function once, so that unnesting the list counts a sample once in a total.
            let mut once: Vec<FunctionId> = frames[from..].iter().map(|f| f.function).collect();
            once.sort_unstable();
            once.dedup();
            starts.extend(levels(once.len()));
            functions.append(&mut once);
        }
        self.names(group, &functions, Some(&starts))?;
        let functions: Vec<FunctionId> = frames.iter().map(|frame| frame.function).collect();
        self.names(group, &functions, Some(&starts_of_frames))?;
        let all = vec![1; frames.len()];
        let flags: [fn(&StackFrame) -> bool; 3] = [
            |frame| frame.inlined,
            |frame| frame.inferred,
            |frame| frame.across_gap,
        ];
        for flag in flags {
            let flags: Vec<bool> = frames.iter().map(flag).collect();
            column::<BoolType>(group, &flags, Some(&all), Some(&starts_of_frames))?;
        }
        Ok(())
    }

    // The columns of a struct, in lists where `starts` are the repetition levels of these.
    fn names(
        &self,
        group: &mut Group,
        functions: &[FunctionId],
        starts: Option<&[i16]>,
    ) -> Result<()> {
        let names = functions.iter().filter_map(|&id| self.name(id));
        // In a list, an element is defined at level 1.
        let present = i16::from(starts.is_some());
        let texts: Vec<ByteArray> = names.clone().map(|name| name.function.clone()).collect();
        let defined = vec![present; texts.len()];
        column::<ByteArrayType>(group, &texts, starts.map(|_| &*defined), starts)?;
        let modules = names.map(|name| name.module.as_ref());
        let defined: Vec<i16> = modules
            .clone()
            .map(|module| present + i16::from(module.is_some()))
            .collect();
        let texts: Vec<ByteArray> = modules.flatten().cloned().collect();
        column::<ByteArrayType>(group, &texts, Some(&defined), starts)
    }
}

// 0 begins a row.
fn levels(length: usize) -> impl Iterator<Item = i16> {
    (0..length).map(|at| i16::from(at > 0))
}

fn text(text: &str) -> ByteArray {
    ByteArray::from(printable(text).as_bytes().to_vec())
}

fn signed(value: u64) -> Result<i64> {
    i64::try_from(value).map_err(|_| ParquetError::General("a value of more than 63 bits".into()))
}

// Each value may be missing.
fn optional<T: DataType>(
    group: &mut Group,
    values: impl ExactSizeIterator<Item = Option<T::T>>,
) -> Result<()> {
    let mut defined = Vec::with_capacity(values.len());
    let mut present = Vec::with_capacity(values.len());
    for value in values {
        defined.push(i16::from(value.is_some()));
        present.extend(value);
    }
    column::<T>(group, &present, Some(&defined), None)
}

fn column<T: DataType>(
    group: &mut Group,
    values: &[T::T],
    defined: Option<&[i16]>,
    repeated: Option<&[i16]>,
) -> Result<()> {
    let missing = || ParquetError::General("more columns than the schema has".into());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, defined, repeated)?;
    column.close()
}
