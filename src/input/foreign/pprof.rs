//! pprof's profiles: what Go, perf_data_converter, Parca and others write.
//!
//! Each sample type is an event, in the order of the file with the default type first. If one of
//! several is `samples/count`, it is not an event but the number of samples of the others. Without
//! it every row counts as one sample, which is a caveat. The format has no time for a sample.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use flate2::read::MultiGzDecoder;

use crate::base::{BuildId, WeightSum, utf8};
use crate::pprof::{Location, Profile as File, Sample};
use crate::profile::{EventId, FunctionId, Line, ModuleId, Profile, ThreadId};

use super::scale::Scale;
use crate::input::Reason;
use crate::input::stacks::{Frame, StackBuilder};

const MAX_SIZE: u64 = 1 << 29;
// Two bytes of a file can be a message of 72.
const MAX_MEMORY: u64 = 1 << 31;

// Reads a compressed profile, or refuses what else is compressed with gzip.
pub(in crate::input) fn read_compressed(input: impl Read) -> Result<Profile, Reason> {
    let mut bytes = Vec::new();
    let mut limited = MultiGzDecoder::new(input).take(MAX_SIZE + 1);
    let is_whole = limited.read_to_end(&mut bytes).is_ok();
    let format = "gzip";
    if !is_whole || bytes.len() as u64 > MAX_SIZE {
        return Err(Reason::Compressed { format });
    }
    read(&bytes).map_err(|reason| match reason {
        Reason::Unknown => Reason::Compressed { format },
        other => other,
    })
}

pub(in crate::input) fn read_plain(input: impl Read) -> Result<Profile, Reason> {
    let mut bytes = Vec::new();
    input.take(MAX_SIZE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err(Reason::Unknown);
    }
    read(&bytes)
}

fn read(bytes: &[u8]) -> Result<Profile, Reason> {
    let file = File::read(bytes, MAX_MEMORY).ok_or(Reason::Unknown)?;
    if file.sample_type.is_empty()
        || file
            .string_table
            .first()
            .is_none_or(|text| !text.is_empty())
    {
        return Err(Reason::Unknown);
    }
    if is_several(&file) {
        return Err(Reason::Several { format: "pprof" });
    }
    let mut reader = Reader::new(&file);
    let types = reader.types();
    for sample in &file.sample {
        reader.sample(sample, &types);
    }
    if !types.iter().any(|t| t.count.is_some() || t.is_count) && !file.sample.is_empty() {
        reader.stacks.count_is_not_stated(false);
    }
    let stated = |ns: i64| u64::try_from(ns).ok().filter(|&ns| ns > 0);
    let about = reader.stacks.builder.about();
    about.duration = stated(file.duration_nanos);
    about.started = stated(file.time_nanos);
    Ok(reader.stacks.finish())
}

// Messages that follow each other are read as one with the fields of both, so that the second one's
// texts are no longer where it refers to them. Each table of texts begins with an empty one, and no
// sample has a value for the other one's types.
fn is_several(file: &File) -> bool {
    let tables = file.string_table.iter().filter(|text| text.is_empty());
    let has_fewer_values = |sample: &Sample| sample.value.len() < file.sample_type.len();
    tables.count() > 1 && !file.sample.is_empty() && file.sample.iter().all(has_fewer_values)
}

struct Type {
    event: EventId,
    scale: Scale,
    value: usize,
    count: Option<usize>,
    // Whether the values are numbers of samples themselves.
    is_count: bool,
}

type Home = (ModuleId, String);

// Keys of labels as places in the table of texts: of names, and of numbers of frames.
type Mark = [Option<i64>; 2];

struct Reader<'a> {
    file: &'a File,
    stacks: StackBuilder,
    homes: HashMap<u64, Home>,
    locations: HashMap<u64, &'a Location>,
    functions: HashMap<u64, &'a crate::pprof::Function>,
    known: HashMap<(u64, ModuleId), FunctionId>,
    // The labels of restored frames, and of those between which and their callers frames are
    // missing.
    marks: [Mark; 2],
    nowhere: ModuleId,
}

impl<'a> Reader<'a> {
    fn new(file: &'a File) -> Reader<'a> {
        let mut stacks = StackBuilder::default();
        let nowhere = stacks.module("");
        let key = |key: &str| {
            let mut texts = file.string_table.iter();
            let place = texts.position(|text| text == key.as_bytes());
            place.and_then(|place| i64::try_from(place).ok())
        };
        let mut reader = Reader {
            file,
            nowhere,
            stacks,
            homes: HashMap::new(),
            locations: file.location.iter().map(|it| (it.id, it)).collect(),
            functions: file.function.iter().map(|it| (it.id, it)).collect(),
            known: HashMap::new(),
            marks: [
                [key("inferred"), key("inferred_frame")],
                [key("frames_missing"), key("frames_missing_frame")],
            ],
        };
        for mapping in &file.mapping {
            let path = reader.text(mapping.filename);
            let module = reader.stacks.module(&path);
            if let Some(id) = build_id(&reader.text(mapping.build_id)) {
                reader.stacks.builder.build_id(module, &id);
            }
            reader.homes.insert(mapping.id, (module, path));
        }
        reader
    }

    fn text(&self, index: i64) -> String {
        let index = usize::try_from(index).ok();
        let text = index.and_then(|index| self.file.string_table.get(index));
        text.map_or(String::new(), |text| utf8(text).into_owned())
    }

    fn types(&mut self) -> Vec<Type> {
        let types = self.file.sample_type.iter().enumerate();
        let mut named: Vec<(usize, String, String)> = types
            .map(|(place, kind)| (place, self.text(kind.kind), self.text(kind.unit)))
            .collect();
        let is_count =
            |(_, kind, unit): &(usize, String, String)| kind == "samples" && unit == "count";
        let count = named
            .iter()
            .find(|named| is_count(named))
            .map(|named| named.0)
            .filter(|_| named.len() > 1);
        named.retain(|(place, ..)| Some(*place) != count);
        let default = self.text(self.file.default_sample_type);
        named.sort_by_key(|(place, kind, _)| (*kind != default, *place));
        let mut types = Vec::new();
        for named in named {
            let is_count = is_count(&named);
            let (value, kind, unit) = named;
            let kind = if kind.is_empty() {
                "values".to_owned()
            } else {
                kind
            };
            let (event, scale) = Scale::of(&kind, &unit);
            types.push(Type {
                event: self.stacks.event(event),
                scale,
                value,
                count,
                is_count,
            });
        }
        types
    }

    fn sample(&mut self, sample: &Sample, types: &[Type]) {
        let thread = self.thread(sample);
        let mut stack = Vec::new();
        for id in &sample.location_id {
            if let Some(&location) = self.locations.get(id) {
                self.frames(location, &mut stack);
            } else {
                self.stacks.skip("a location that is not in the file");
            }
        }
        for at in self.marked(sample, &stack, self.marks[0]) {
            stack[at].inferred = true;
        }
        for at in self.marked(sample, &stack, self.marks[1]) {
            stack[at].across_gap = true;
        }
        for kind in types {
            let at = |place: usize| sample.value.get(place).copied().unwrap_or(0);
            let weight = u64::try_from(at(kind.value)).ok();
            let Some(weight) = weight.and_then(|weight| kind.scale.whole(weight)) else {
                self.stacks
                    .skip("a value that is negative or exceeds 64 bits");
                continue;
            };
            let count = match kind.count {
                Some(place) => u64::try_from(at(place)).unwrap_or(0),
                None if kind.is_count => weight,
                None => u64::from(weight > 0),
            };
            if weight > 0 || count > 0 {
                let sum = WeightSum::equal(weight, count);
                self.stacks.sample(kind.event, thread, &stack, sum);
            }
        }
    }

    fn frames(&mut self, location: &'a Location, stack: &mut Vec<Frame>) {
        let home = self.homes.get(&location.mapping_id).cloned();
        let (module, path) = home.unwrap_or((self.nowhere, String::new()));
        if location.line.is_empty() {
            let what = if path.is_empty() {
                format!("{:#x}", location.address)
            } else {
                format!("{path} {:#x}", location.address)
            };
            stack.push(Frame::of(self.stacks.unnamed(&what, module)));
        }
        for (depth, line) in location.line.iter().enumerate() {
            let known = self.functions.get(&line.function_id).copied();
            let (name, file) = known.map_or_else(Default::default, |function| {
                (self.text(function.name), self.text(function.filename))
            });
            let key = (line.function_id, module);
            let function = match self.known.get(&key) {
                Some(&function) => function,
                None => {
                    let made = self.function(known, &name, &file, line.function_id, module);
                    self.known.insert(key, made);
                    made
                }
            };
            let number = u32::try_from(line.line)
                .ok()
                .filter(|&number| number > 0)
                .filter(|_| !file.is_empty());
            stack.push(Frame {
                line: number.map(|number| self.stacks.line(&file, number)),
                inlined: depth + 1 < location.line.len(),
                ..Frame::of(function)
            });
        }
    }

    fn function(
        &mut self,
        known: Option<&crate::pprof::Function>,
        name: &str,
        file: &str,
        id: u64,
        module: ModuleId,
    ) -> FunctionId {
        let Some(function) = known.filter(|_| !name.is_empty()) else {
            return self.stacks.unnamed(&format!("function {id}"), module);
        };
        let linkage = self.text(function.system_name);
        let linkage = Some(&*linkage).filter(|linkage| !linkage.is_empty() && *linkage != name);
        let line = u32::try_from(function.start_line)
            .ok()
            .filter(|&line| line > 0 && !file.is_empty());
        let declared_at = line.map(|line| Line {
            file: file.to_owned(),
            line,
        });
        self.stacks.new_function(name, linkage, declared_at, module)
    }

    // Tools call the labels of a thread differently.
    fn thread(&mut self, sample: &Sample) -> ThreadId {
        let (mut pid, mut tid, mut comm) = (0, 0, String::new());
        for label in &sample.label {
            let number = i32::try_from(label.num).unwrap_or(0);
            match &*self.text(label.key) {
                "pid" | "process_id" => pid = number,
                "tid" | "thread_id" | "thread id" => tid = number,
                "comm" | "thread" | "thread_comm" | "thread name" => comm = self.text(label.str),
                _ => {}
            }
        }
        self.stacks.thread(pid, tid, &comm)
    }

    // The frames that labels of this key name; where they do not tell which of several, labels of
    // the other key have their numbers.
    fn marked(&self, sample: &Sample, stack: &[Frame], mark: Mark) -> Vec<usize> {
        let [key, key_of_frames] = mark;
        if key.is_none() {
            return Vec::new();
        }
        let labels = |key| {
            let labels = sample.label.iter();
            labels.filter(move |label| Some(label.key) == key)
        };
        let names: HashSet<String> = labels(key).map(|label| self.text(label.str)).collect();
        if names.is_empty() {
            return Vec::new();
        }
        let numbered =
            labels(key_of_frames).map(|label| usize::try_from(label.num.saturating_sub(1)).ok());
        let numbered: Vec<usize> = numbered.flatten().filter(|&at| at < stack.len()).collect();
        if !numbered.is_empty() {
            return numbered;
        }
        let name = |frame: &Frame| self.stacks.builder.function_name(frame.function);
        let is_named = |at: &usize| names.contains(name(&stack[*at]));
        (0..stack.len()).filter(is_named).collect()
    }
}

fn build_id(text: &str) -> Option<BuildId> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8; 2]| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    BuildId::new(&bytes.filter(|_| rest.is_empty())?)
}
