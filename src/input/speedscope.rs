//! The JSON of speedscope.
//!
//! A profile of type `sampled` has stacks with weights; one of type `evented` has the times at which frames
//! are entered and left, and its weights are the time between. Each profile is a thread, and each unit an
//! event. The format does not state how many samples a stack has.

use std::io::Read;

use serde::Deserialize;

use crate::base::WeightSum;
use crate::profile::{Profile, ThreadId};

use super::Reason;
use super::stacks::{Frame, Scale, StackBuilder};

/// The largest file that is read.
const MAX_SIZE: u64 = 1 << 29;

#[derive(Deserialize)]
struct File {
    #[serde(rename = "$schema")]
    schema: String,
    shared: Shared,
    profiles: Vec<OneProfile>,
}

#[derive(Deserialize)]
struct Shared {
    frames: Vec<NamedFrame>,
}

#[derive(Deserialize)]
struct NamedFrame {
    name: String,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    line: Option<f64>,
}

/// A profile of either type: what the other has is empty.
#[derive(Deserialize)]
struct OneProfile {
    #[serde(default)]
    name: String,
    unit: String,
    #[serde(default)]
    samples: Vec<Vec<usize>>,
    #[serde(default)]
    weights: Vec<serde_json::Number>,
    #[serde(default)]
    events: Vec<Turn>,
}

#[derive(Deserialize)]
struct Turn {
    r#type: char,
    at: f64,
    frame: usize,
}

/// Whether these are the first bytes of a JSON object.
pub(super) fn is_object(head: &[u8]) -> bool {
    let mut bytes = head.iter().filter(|byte| !byte.is_ascii_whitespace());
    bytes.next() == Some(&b'{') && bytes.next() == Some(&b'"')
}

/// Reads the stacks.
///
/// # Errors
///
/// [`Reason::Unknown`] if it is another document or no document.
pub(super) fn read(input: impl Read) -> Result<Profile, Reason> {
    let mut bytes = Vec::new();
    input.take(MAX_SIZE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err(Reason::Unknown);
    }
    let file: File = serde_json::from_slice(&bytes).map_err(|_| Reason::Unknown)?;
    if !file.schema.contains("speedscope") {
        return Err(Reason::Unknown);
    }
    let mut stacks = StackBuilder::default();
    let frames = frames(&mut stacks, &file.shared.frames);
    for (index, profile) in file.profiles.iter().enumerate() {
        let thread = thread(&mut stacks, &profile.name, index);
        sampled(&mut stacks, &frames, thread, profile);
        evented(&mut stacks, &frames, thread, profile);
        stacks.count_is_not_stated(profile.unit == "none");
    }
    Ok(stacks.finish())
}

fn frames(stacks: &mut StackBuilder, named: &[NamedFrame]) -> Vec<Frame> {
    let nowhere = stacks.module("");
    let mut frames = Vec::new();
    for (index, frame) in named.iter().enumerate() {
        let line = frame.line.filter(|line| (1.0..4e9).contains(line));
        let file = frame.file.as_deref().filter(|file| !file.is_empty());
        let declared_at = file.zip(line).map(|(file, line)| crate::profile::Line {
            file: file.to_owned(),
            line: line as u32,
        });
        // A file without a line is the module, as far as it can be known.
        let module = match (file, &declared_at) {
            (Some(file), None) => stacks.module(file),
            _ => nowhere,
        };
        let function = match crate::base::placeholder(&frame.name) {
            Some(_) => stacks.unnamed(&format!("frame {index}"), module),
            None => stacks.new_function(&frame.name, None, declared_at, module),
        };
        frames.push(Frame {
            function,
            line: None,
            inlined: false,
            inferred: false,
        });
    }
    frames
}

/// The thread that a profile is of: the name that is written for it, else its name alone.
fn thread(stacks: &mut StackBuilder, name: &str, index: usize) -> ThreadId {
    let ids = |(comm, ids): (&str, &str)| {
        let (pid, tid) = ids.split_once('/')?;
        Some((pid.parse().ok()?, tid.parse().ok()?, comm.to_owned()))
    };
    let written = name.rsplit_once(' ').and_then(ids);
    let unnamed = i32::try_from(index + 1).unwrap_or(i32::MAX);
    let (pid, tid, comm) = written.unwrap_or((0, unnamed, name.to_owned()));
    stacks.thread(pid, tid, &comm)
}

/// The name of the event whose values are in this unit.
fn event_name(unit: &str) -> &'static str {
    match unit {
        "none" => "samples",
        "bytes" => "bytes",
        _ => "time",
    }
}

fn sampled(stacks: &mut StackBuilder, frames: &[Frame], thread: ThreadId, profile: &OneProfile) {
    let OneProfile {
        unit,
        samples,
        weights,
        ..
    } = profile;
    let (event, scale) = Scale::of(event_name(unit), unit);
    let event = stacks.event(event);
    if samples.len() != weights.len() {
        stacks.skip("samples without weights");
    }
    let mut stack = Vec::new();
    for (sample, weight) in samples.iter().zip(weights) {
        let whole = weight.as_u64().and_then(|weight| scale.whole(weight));
        let weight = whole.or_else(|| scale.nearest(weight.as_f64()?));
        stack.clear();
        stack.extend(sample.iter().rev().filter_map(|&index| frames.get(index)));
        match weight {
            Some(0) => {}
            Some(weight) if stack.len() == sample.len() => {
                let count = if unit == "none" { weight } else { 1 };
                stacks.sample(event, thread, &stack, WeightSum::equal(weight, count));
            }
            _ => stacks.skip("a sample with a frame or weight that cannot be read"),
        }
    }
}

fn evented(stacks: &mut StackBuilder, frames: &[Frame], thread: ThreadId, profile: &OneProfile) {
    let (event, scale) = Scale::of(event_name(&profile.unit), &profile.unit);
    let event = stacks.event(event);
    // Root first, each with its number in the file.
    let mut open: Vec<(usize, Frame)> = Vec::new();
    let mut stack = Vec::new();
    let mut since: Option<f64> = None;
    for turn in &profile.events {
        let weight = since.and_then(|since| scale.nearest(turn.at - since));
        if let Some(weight) = weight.filter(|&weight| weight > 0 && !open.is_empty()) {
            stack.clear();
            stack.extend(open.iter().rev().map(|&(_, frame)| frame));
            stacks.sample(event, thread, &stack, WeightSum::equal(weight, 1));
        }
        since = Some(turn.at);
        match (turn.r#type, frames.get(turn.frame)) {
            ('O', Some(&frame)) => open.push((turn.frame, frame)),
            ('C', Some(_)) if open.last().is_some_and(|&(index, _)| index == turn.frame) => {
                open.pop();
            }
            _ => stacks.skip("an event that opens or closes no frame"),
        }
    }
}
