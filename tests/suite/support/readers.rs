//! Small readers of the formats, each by the arithmetic of the tool that it is written for.

/// The parts of OpenTelemetry's messages that totals need, written down again from the specification.
mod otlp_messages {
    use prost::Message;

    #[derive(Clone, PartialEq, Message)]
    pub struct Data {
        #[prost(message, repeated, tag = "1")]
        pub resources: Vec<Resource>,
        #[prost(message, required, tag = "2")]
        pub dictionary: Dictionary,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Resource {
        #[prost(message, repeated, tag = "2")]
        pub scopes: Vec<Scope>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Scope {
        #[prost(message, repeated, tag = "2")]
        pub profiles: Vec<Profile>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Profile {
        #[prost(message, repeated, tag = "2")]
        pub samples: Vec<Sample>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Sample {
        #[prost(int32, tag = "1")]
        pub stack: i32,
        #[prost(int64, repeated, tag = "4")]
        pub values: Vec<i64>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Dictionary {
        #[prost(message, repeated, tag = "2")]
        pub locations: Vec<Location>,
        #[prost(message, repeated, tag = "3")]
        pub functions: Vec<Function>,
        #[prost(string, repeated, tag = "5")]
        pub strings: Vec<String>,
        #[prost(message, repeated, tag = "7")]
        pub stacks: Vec<Stack>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Location {
        #[prost(message, repeated, tag = "3")]
        pub lines: Vec<Line>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Line {
        #[prost(int32, tag = "1")]
        pub function: i32,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Function {
        #[prost(int32, tag = "1")]
        pub name: i32,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Stack {
        #[prost(int32, repeated, tag = "1")]
        pub locations: Vec<i32>,
    }
}

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use proftool::pprof;
use prost::Message;
use serde_json::Value;

/// A function with its weights.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    pub name: String,
    pub own: u64,
    pub total: u64,
}

/// The format; whether names are escaped to be printed; whether functions of one name stay apart; the
/// reader.
pub type Reader = (&'static str, bool, bool, fn(&[u8]) -> Vec<Row>);

pub const ALL: [Reader; 6] = [
    ("pprof", true, true, pprof),
    ("callgrind", true, true, callgrind),
    ("speedscope", false, true, speedscope),
    ("firefox", false, true, firefox),
    ("otlp", true, true, otlp),
    ("perf-script", true, false, perf_script),
];

/// The names alone with their own weights: where functions of one name cannot be told apart, totals
/// overlap.
pub fn names(rows: &[Row]) -> Vec<Row> {
    let mut own: BTreeMap<&str, u64> = BTreeMap::new();
    for row in rows {
        *own.entry(&row.name).or_default() += row.own;
    }
    let row = |(name, own): (&str, u64)| Row {
        name: name.to_owned(),
        own,
        total: 0,
    };
    own.into_iter().map(row).filter(|row| row.own > 0).collect()
}

/// Adds up stacks, leaf first, of whatever tells functions apart.
pub fn added<K: Ord + Clone>(
    stacks: impl IntoIterator<Item = (Vec<K>, u64)>,
    name: impl Fn(&K) -> String,
) -> Vec<Row> {
    let mut sums: BTreeMap<K, (u64, u64)> = BTreeMap::new();
    for (stack, weight) in stacks {
        sums.entry(stack[0].clone()).or_default().0 += weight;
        for function in stack.into_iter().collect::<BTreeSet<K>>() {
            sums.entry(function).or_default().1 += weight;
        }
    }
    let rows = sums.iter().map(|(function, &(own, total))| Row {
        name: name(function),
        own,
        total,
    });
    rows.collect()
}

pub fn unzipped(file: &[u8]) -> Vec<u8> {
    // Flags, time and system of the header are 0, 0 and "unknown": nothing of the run is in the bytes.
    assert_eq!(file[3..8], [0; 5]);
    assert_eq!(file[9], 255);
    let mut bytes = Vec::new();
    let mut gzip = flate2::read::GzDecoder::new(file);
    gzip.read_to_end(&mut bytes).unwrap();
    bytes
}

pub fn pprof_file(file: &[u8]) -> pprof::Profile {
    pprof::Profile::decode(&unzipped(file)[..]).unwrap()
}

pub fn pprof(file: &[u8]) -> Vec<Row> {
    let file = pprof_file(file);
    let kind = file.sample_type.iter();
    let place = kind
        .map(|t| t.kind)
        .position(|kind| kind == file.default_sample_type)
        .unwrap();
    let stack = |sample: &pprof::Sample| {
        let locations = sample.location_id.iter();
        let lines = locations.flat_map(|&id| &file.location[id as usize - 1].line);
        let stack: Vec<u64> = lines.map(|line| line.function_id).collect();
        (stack, sample.value[place] as u64)
    };
    added(file.sample.iter().map(stack), |&id| {
        let function = file
            .function
            .iter()
            .find(|function| function.id == id)
            .unwrap();
        String::from_utf8(file.string_table[function.name as usize].clone()).unwrap()
    })
}

/// As `callgrind_annotate` does: what came in over calls is a function's total, else its own cost is.
pub fn callgrind(file: &[u8]) -> Vec<Row> {
    let text = String::from_utf8(file.to_vec()).unwrap();
    let mut known: BTreeMap<(&str, String), String> = BTreeMap::new();
    let mut named = |context: &'static str, text: &str| {
        let (number, name) = text.split_once(')').unwrap();
        match name.trim_start() {
            "" => known[&(context, number.to_owned())].clone(),
            name => {
                known.insert((context, number.to_owned()), name.to_owned());
                name.to_owned()
            }
        }
    };
    let (mut file, mut at, mut callee_file) = (String::new(), Default::default(), String::new());
    let mut callee: (String, String) = Default::default();
    let mut is_call = false;
    let mut own: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut came_in: BTreeMap<(String, String), u64> = BTreeMap::new();
    let body = text
        .lines()
        .skip_while(|line| !line.starts_with("summary:"))
        .skip(1);
    for line in body.filter(|line| !line.is_empty()) {
        let (key, value) = line.split_once('=').unwrap_or(("", line));
        match key {
            "ob" | "cob" => drop(named("ob", value)),
            "fl" => file = named("fl", value),
            "fn" => {
                at = (file.clone(), named("fn", value));
                own.entry(at.clone()).or_default();
            }
            "cfi" => callee_file = named("fl", value),
            "cfn" => callee = (callee_file.clone(), named("fn", value)),
            "calls" => is_call = !value.starts_with('0'),
            _ => {
                let cost: u64 = line.split_once(' ').unwrap().1.parse().unwrap();
                let sum = match is_call {
                    true => came_in.entry(callee.clone()).or_default(),
                    false => own.entry(at.clone()).or_default(),
                };
                *sum += cost;
                is_call = false;
            }
        }
    }
    let rows = own.into_iter().filter(|((_, name), _)| name != "(root)");
    let rows = rows.map(|(function, own)| Row {
        total: came_in.get(&function).copied().unwrap_or(own),
        name: function.1,
        own,
    });
    rows.collect()
}

pub fn numbers(value: &Value) -> Vec<Option<usize>> {
    let values = value.as_array().unwrap().iter();
    values
        .map(|value| value.as_u64().map(|n| n as usize))
        .collect()
}

pub fn speedscope(file: &[u8]) -> Vec<Row> {
    let file: Value = serde_json::from_slice(file).unwrap();
    let mut stacks = Vec::new();
    for profile in file["profiles"].as_array().unwrap() {
        let weights = profile["weights"].as_array().unwrap().iter();
        let weights = weights.map(|weight| weight.as_u64().unwrap());
        let end = profile["endValue"].as_u64().unwrap();
        assert_eq!(weights.clone().sum::<u64>(), end);
        for (stack, weight) in profile["samples"].as_array().unwrap().iter().zip(weights) {
            let stack: Vec<usize> = numbers(stack).into_iter().rev().flatten().collect();
            stacks.push((stack, weight));
        }
    }
    let frames = &file["shared"]["frames"];
    added(stacks, |&frame| {
        frames[frame]["name"].as_str().unwrap().to_owned()
    })
}

pub fn firefox_file(file: &[u8]) -> Value {
    serde_json::from_slice(&unzipped(file)).unwrap()
}

/// Functions of one name, file and library are one function to the Firefox Profiler.
pub fn firefox(file: &[u8]) -> Vec<Row> {
    let file = firefox_file(file);
    let mut stacks = Vec::new();
    for thread in file["threads"].as_array().unwrap() {
        let text = |index: Option<usize>| {
            index.map(|index| thread["stringArray"][index].as_str().unwrap().to_owned())
        };
        let prefixes = numbers(&thread["stackTable"]["prefix"]);
        let frames = numbers(&thread["stackTable"]["frame"]);
        let funcs = numbers(&thread["frameTable"]["func"]);
        let names = numbers(&thread["funcTable"]["name"]);
        let files = numbers(&thread["funcTable"]["fileName"]);
        let resources = numbers(&thread["funcTable"]["resource"]);
        let libraries = numbers(&thread["resourceTable"]["lib"]);
        let weights = thread["samples"]["weight"].as_array().unwrap();
        let is_time = thread["samples"]["weightType"] == "tracing-ms";
        let rows = numbers(&thread["samples"]["stack"]);
        for (mut row, weight) in rows.into_iter().zip(weights) {
            let mut stack = Vec::new();
            while let Some(at) = row {
                let func = funcs[frames[at].unwrap()].unwrap();
                let library = resources[func].and_then(|resource| libraries[resource]);
                stack.push((text(names[func]).unwrap(), text(files[func]), library));
                row = prefixes[at];
            }
            let weight = weight.as_f64().unwrap();
            let weight = if is_time { weight * 1e6 } else { weight };
            stacks.push((stack, weight.round() as u64));
        }
    }
    added(stacks, |(name, ..)| name.clone())
}

/// The first profile, which is that of the weights.
pub fn otlp(file: &[u8]) -> Vec<Row> {
    let data = otlp_messages::Data::decode(file).unwrap();
    let tables = &data.dictionary;
    assert_eq!(tables.strings[0], "");
    assert_eq!(tables.locations[0], Default::default());
    assert_eq!(tables.functions[0], Default::default());
    assert_eq!(tables.stacks[0], Default::default());
    let stack = |sample: &otlp_messages::Sample| {
        let locations = tables.stacks[sample.stack as usize].locations.iter();
        let lines = locations.flat_map(|&id| &tables.locations[id as usize].lines);
        let stack: Vec<i32> = lines.map(|line| line.function).collect();
        (stack, sample.values[0] as u64)
    };
    let profile = &data.resources[0].scopes[0].profiles[0];
    added(profile.samples.iter().map(stack), |&id| {
        let function = &tables.functions[id as usize];
        tables.strings[function.name as usize].clone()
    })
}

/// As `stackcollapse-perf.pl` does, with periods.
pub fn perf_script(file: &[u8]) -> Vec<Row> {
    let text = String::from_utf8(file.to_vec()).unwrap();
    let mut stacks = Vec::new();
    for record in text.split("\n\n") {
        let mut lines = record.lines().filter(|line| !line.starts_with('#'));
        let Some(head) = lines.next() else { continue };
        let (_, counted) = head.split_once(" 0.000000: ").unwrap();
        let period = counted.split_whitespace().next().unwrap().parse().unwrap();
        let frame = |line: &str| {
            let (_, named) = line.trim_start().split_once(' ').unwrap();
            named.rsplit_once(" (").unwrap().0.to_owned()
        };
        stacks.push((lines.map(frame).collect::<Vec<_>>(), period));
    }
    added(stacks, |name| name.clone())
}
