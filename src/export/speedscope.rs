//! Stacks for <https://www.speedscope.app>, in its file format (the schema of 2019, the only one),
//! written for speedscope 1.25.
//!
//! Each thread is a profile of type `sampled`: the samples are stacks, the outermost function
//! first, each with its weight. As equal stacks are added up, the order of samples is that of the
//! call tree, and the horizontal axis is no time.
//!
//! What speedscope has no place for is under `proftool`, which it ignores, in each profile: the
//! event with its unit, the number of samples of each stack, and as pairs of a sample's and a
//! frame's place which frames were not recorded but restored from the code (`inferred`), or are not
//! called by the one outside of them (`frames_missing`).
//!
//! A frame is a function, with the file and line of its declaration or else with its module:
//! speedscope adds up by frame, so that lines of one function must not be frames of their own.

use std::io::{self, Write};

use serde::Serialize;

use crate::analysis::call_stacks::{CallStacks, StackSample};
use crate::base::{IdVec, Sampling, Unit};
use crate::profile::FunctionId;
use crate::view::Subject;

use super::json;
use super::naming::{MERGED, Naming, PRODUCER};

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: String,
    name: String,
    #[serde(rename = "activeProfileIndex")]
    active: usize,
    shared: Shared<'a>,
    profiles: Vec<Sampled>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
struct Sampled {
    r#type: &'static str,
    name: String,
    unit: &'static str,
    #[serde(rename = "startValue")]
    start: u64,
    #[serde(rename = "endValue")]
    end: u64,
    samples: Vec<Vec<u32>>,
    weights: Vec<u64>,
    proftool: Extension,
}

#[derive(Serialize)]
struct Extension {
    event: String,
    unit: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counts: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inferred: Vec<(usize, usize)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    frames_missing: Vec<(usize, usize)>,
}

/// Writes the stacks.
pub fn write(out: &mut dyn Write, subject: &Subject, stacks: &CallStacks) -> io::Result<()> {
    let naming = Naming::new(subject, stacks);
    let mut frames = Vec::new();
    let mut index_of: IdVec<FunctionId, Option<u32>> =
        IdVec::filled(None, subject.profile.functions.len());
    for frame in stacks.frames.iter() {
        let id = frame.function;
        if index_of[id].is_none() {
            index_of[id] = u32::try_from(frames.len()).ok();
            let declaration = naming.declaration(id);
            frames.push(Frame {
                name: naming.name(id),
                file: declaration.map(|line| &*line.file).or(naming.module(id)),
                line: declaration.map(|line| line.line),
            });
        }
    }
    let unit = match &subject.selection.event().unit {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Count(what) if what == "bytes" => "bytes",
        Unit::Count(_) | Unit::Samples => "none",
    };
    let mut profiles = Vec::new();
    for samples in stacks.samples.chunk_by(|a, b| a.thread == b.thread) {
        let weights: Vec<u64> = samples.iter().map(|sample| sample.weight).collect();
        let stack_of = |sample: &StackSample| {
            let frames = stacks.outwards(sample.stack);
            let mut stack: Vec<u32> = frames
                .filter_map(|(_, frame)| index_of[frame.function])
                .collect();
            stack.reverse();
            stack
        };
        profiles.push(Sampled {
            r#type: "sampled",
            name: naming.thread_name(samples[0].thread),
            unit,
            start: 0,
            end: weights
                .iter()
                .fold(0, |sum, &weight| sum.saturating_add(weight)),
            samples: samples.iter().map(stack_of).collect(),
            weights,
            proftool: extension(subject, stacks, samples),
        });
    }
    if profiles.is_empty() {
        // speedscope refuses a file without profiles.
        profiles.push(Sampled {
            r#type: "sampled",
            name: "no samples".into(),
            unit,
            start: 0,
            end: 0,
            samples: Vec::new(),
            weights: Vec::new(),
            proftool: extension(subject, stacks, &[]),
        });
    }
    let heaviest = (0..profiles.len())
        .rev()
        .max_by_key(|&index| profiles[index].end);
    let (name, version) = PRODUCER;
    let event = &subject.selection.event().name;
    let title = std::iter::once(format!("{event}: {MERGED}")).chain(naming.caveats());
    json::value(
        out,
        &File {
            schema: "https://www.speedscope.app/file-format-schema.json",
            exporter: format!("{name}@{version}"),
            name: title.collect::<Vec<_>>().join("; "),
            active: heaviest.unwrap_or(0),
            shared: Shared { frames },
            profiles,
        },
    )
}

fn extension(subject: &Subject, stacks: &CallStacks, samples: &[StackSample]) -> Extension {
    let event = subject.selection.event();
    let is_merged = subject.selection.sampling() == Sampling::Merged;
    let counted = samples.iter().filter(|_| !is_merged);
    let mut extension = Extension {
        event: event.name.clone(),
        unit: event.unit.to_string(),
        counts: counted.map(|sample| sample.count).collect(),
        inferred: Vec::new(),
        frames_missing: Vec::new(),
    };
    let paths = &subject.profile.paths;
    if !paths.has_inferred() && !paths.has_gaps() {
        return extension;
    }
    for (number, sample) in samples.iter().enumerate() {
        let depth = stacks.outwards(sample.stack).count();
        for (frame, place) in stacks.outwards(sample.stack).zip((0..depth).rev()) {
            if frame.1.inferred {
                extension.inferred.push((number, place));
            }
            if frame.1.across_gap {
                extension.frames_missing.push((number, place));
            }
        }
    }
    extension
}
