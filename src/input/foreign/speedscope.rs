//! The JSON of speedscope.
//!
//! A profile of type `sampled` has stacks with weights; one of type `evented` has the times at
//! which frames are entered and left, and its weights are the time between. Each profile is a
//! thread, and each unit an event. The format does not state how many samples a stack has. Weights
//! that are not whole are counted in parts of their unit: tenths, hundredths and so on, the same
//! ones in all profiles of that unit. What is entered and never left ends with the profile. Time
//! does not run backwards: an event with an earlier time than one before it happens at the time of
//! that one.
//!
//! Files of [`export::speedscope`](crate::export::speedscope) have more under `proftool`: that
//! number, the event, and which frames were restored or are called across missing ones.

use std::collections::HashMap;
use std::io::Read;

use serde::Deserialize;

use crate::base::{CaveatKind, Event, Unit, WeightSum};
use crate::profile::{Profile, ThreadId};

use super::scale::Scale;
use crate::input::Reason;
use crate::input::stacks::{Frame, StackBuilder};

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

// A profile of either type: what the other has is empty.
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
    #[serde(default, rename = "endValue")]
    end: Option<f64>,
    #[serde(default)]
    proftool: Option<Extension>,
}

impl OneProfile {
    // The times before each of the events, and the one behind the last; and how many events are
    // earlier than one before them.
    fn steps(&self) -> (Vec<f64>, u64) {
        let mut steps = Vec::new();
        let mut earlier = 0;
        let mut latest = self.events.first().map_or(0.0, |turn| turn.at);
        for turn in &self.events {
            earlier += u64::from(turn.at < latest);
            steps.push((turn.at - latest).max(0.0));
            latest = latest.max(turn.at);
        }
        steps.push(self.end.map_or(0.0, |end| (end - latest).max(0.0)));
        (steps, earlier)
    }
}

#[derive(Deserialize)]
struct Extension {
    event: String,
    unit: String,
    #[serde(default)]
    counts: Vec<u64>,
    #[serde(default)]
    inferred: Vec<(usize, usize)>,
    #[serde(default)]
    frames_missing: Vec<(usize, usize)>,
}

impl Extension {
    fn event(&self) -> Event {
        let unit = match &*self.unit {
            "ns" => Unit::Nanoseconds,
            "samples" => Unit::Samples,
            other => Unit::Count(other.to_owned()),
        };
        let name = self.event.clone();
        Event { name, unit }
    }
}

#[derive(Deserialize)]
struct Turn {
    r#type: char,
    at: f64,
    frame: usize,
}

pub(in crate::input) fn whole(input: impl Read) -> Result<Vec<u8>, Reason> {
    let mut bytes = Vec::new();
    input.take(MAX_SIZE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SIZE {
        Err(Reason::Unknown)
    } else {
        Ok(bytes)
    }
}

// Folded stacks may begin like a JSON document.
pub(in crate::input) fn is_document(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

// JavaScript cuts names between the two surrogates of a character (`"\ud83d"`), and writes what is
// left. Each such escape becomes U+FFFD, the replacement character.
fn with_whole_characters(mut bytes: Vec<u8>) -> Vec<u8> {
    // `\uXXXX`.
    const ESCAPE: usize = 6;
    const REPLACEMENT: &[u8; ESCAPE] = b"\\ufffd";
    let unit_at = |bytes: &[u8], at: usize| {
        let digits = bytes.get(at..at + ESCAPE)?.strip_prefix(b"\\u")?;
        let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
        u16::from_str_radix(str::from_utf8(digits).ok().filter(|_| is_hex)?, 16).ok()
    };
    let mut from = 0;
    while let Some(next) = next_backslash(&bytes, from) {
        let is_pair = |unit| {
            matches!(unit, 0xd800..=0xdbff)
                && matches!(unit_at(&bytes, next + ESCAPE), Some(0xdc00..=0xdfff))
        };
        let unit = unit_at(&bytes, next);
        from = match unit {
            Some(unit) if is_pair(unit) => next + 2 * ESCAPE,
            Some(unit) => {
                if matches!(unit, 0xd800..=0xdfff) {
                    bytes[next..next + ESCAPE].copy_from_slice(REPLACEMENT);
                }
                next + ESCAPE
            }
            // Another escape, of a backslash for example.
            None => next + 2,
        };
    }
    bytes
}

fn next_backslash(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    Some(from + rest.iter().position(|&byte| byte == b'\\')?)
}

pub(in crate::input) fn read(bytes: Vec<u8>) -> Result<Profile, Reason> {
    let bytes = with_whole_characters(bytes);
    let file: File = serde_json::from_slice(&bytes).map_err(|_| Reason::Unknown)?;
    drop(bytes);
    if !file.schema.contains("speedscope") {
        return Err(Reason::Unknown);
    }
    let mut stacks = StackBuilder::default();
    let frames = frames(&mut stacks, &file.shared.frames);
    let scales = scales(&file.profiles);
    for (index, profile) in file.profiles.iter().enumerate() {
        let thread = thread(&mut stacks, &profile.name, index);
        // The extension states the event, and its weights are whole.
        let scale = scales
            .get(&*profile.unit)
            .filter(|_| profile.proftool.is_none());
        let (event, scale) = scale
            .cloned()
            .unwrap_or_else(|| Scale::of(event_name(&profile.unit), &profile.unit));
        let weights_are_counts = event.unit == Unit::Samples;
        sampled(&mut stacks, &frames, thread, profile, (&event, scale));
        evented(&mut stacks, &frames, thread, profile, (&event, scale));
        let counts = profile
            .proftool
            .as_ref()
            .map_or(0, |more| more.counts.len());
        if counts < profile.samples.len() || !profile.events.is_empty() {
            stacks.count_is_not_stated(weights_are_counts);
        }
    }
    Ok(stacks.finish())
}

// Of each unit.
fn scales(profiles: &[OneProfile]) -> HashMap<&str, (Event, Scale)> {
    let mut weights: HashMap<&str, Vec<f64>> = HashMap::new();
    for profile in profiles.iter().filter(|it| it.proftool.is_none()) {
        let of_unit = weights.entry(&profile.unit).or_default();
        of_unit.extend(
            profile
                .weights
                .iter()
                .filter_map(serde_json::Number::as_f64),
        );
        of_unit.extend(profile.steps().0);
    }
    let scale = |(unit, weights): (_, Vec<f64>)| {
        (unit, Scale::of_weights(event_name(unit), unit, &weights))
    };
    weights.into_iter().map(scale).collect()
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
        frames.push(Frame::of(function));
    }
    frames
}

// The name that is written for the thread, else the profile's.
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

fn event_name(unit: &str) -> &'static str {
    match unit {
        "none" => "samples",
        "bytes" => "bytes",
        _ => "time",
    }
}

fn sampled(
    stacks: &mut StackBuilder,
    frames: &[Frame],
    thread: ThreadId,
    profile: &OneProfile,
    (event, scale): (&Event, Scale),
) {
    let OneProfile {
        samples,
        weights,
        proftool: more,
        ..
    } = profile;
    // Without a unit, the weight is the number of samples.
    let weights_are_counts = event.unit == Unit::Samples;
    let event = more
        .as_ref()
        .map_or_else(|| event.clone(), Extension::event);
    let event = stacks.event(event);
    if samples.len() != weights.len() {
        stacks.skip("samples without weights");
    }
    let places = |of: fn(&Extension) -> &[(usize, usize)]| {
        let mut places = more.as_ref().map_or(Vec::new(), |more| of(more).to_vec());
        places.sort_unstable();
        places
    };
    let inferred = places(|more| &more.inferred);
    let missing = places(|more| &more.frames_missing);
    let mut stack: Vec<Frame> = Vec::new();
    for (number, (sample, weight)) in samples.iter().zip(weights).enumerate() {
        // Integers first: a float has 53 bits.
        let whole = weight.as_u64().and_then(|weight| scale.whole(weight));
        let weight = whole.or_else(|| scale.nearest(weight.as_f64()?));
        stack.clear();
        stack.extend(sample.iter().filter_map(|&index| frames.get(index)));
        for place in of_sample(&inferred, number) {
            if let Some(frame) = stack.get_mut(place) {
                frame.inferred = true;
            }
        }
        for place in of_sample(&missing, number) {
            if let Some(frame) = stack.get_mut(place) {
                frame.across_gap = true;
            }
        }
        stack.reverse();
        let stated = more.as_ref().and_then(|more| more.counts.get(number));
        match weight {
            Some(0) if stated.is_none_or(|&count| count == 0) => {}
            Some(weight) if stack.len() == sample.len() => {
                let count = if weights_are_counts { weight } else { 1 };
                let count = stated.copied().unwrap_or(count);
                stacks.sample(event, thread, &stack, WeightSum::equal(weight, count));
            }
            _ => stacks.skip("a sample with a frame or weight that cannot be read"),
        }
    }
}

// Pairs are sorted.
fn of_sample(places: &[(usize, usize)], sample: usize) -> impl Iterator<Item = usize> {
    let from = places.partition_point(|&(of, _)| of < sample);
    let of_it = places[from..]
        .iter()
        .take_while(move |&&(of, _)| of == sample);
    of_it.map(|&(_, place)| place)
}

fn evented(
    stacks: &mut StackBuilder,
    frames: &[Frame],
    thread: ThreadId,
    profile: &OneProfile,
    (event, scale): (&Event, Scale),
) {
    if profile.events.is_empty() {
        return;
    }
    let event = stacks.event(event.clone());
    let (steps, earlier) = profile.steps();
    if earlier > 0 {
        stacks
            .builder
            .caveats()
            .add(CaveatKind::Disordered, earlier);
    }
    // Root first, each with its number in the file.
    let mut open: Vec<(usize, Frame)> = Vec::new();
    let mut stack = Vec::new();
    let turns = profile.events.iter().map(Some).chain([None]);
    for (turn, step) in turns.zip(steps) {
        let weight = scale.nearest(step);
        if let Some(weight) = weight.filter(|&weight| weight > 0 && !open.is_empty()) {
            stack.clear();
            stack.extend(open.iter().rev().map(|&(_, frame)| frame));
            stacks.sample(event, thread, &stack, WeightSum::equal(weight, 1));
        }
        let Some(turn) = turn else {
            break;
        };
        match (turn.r#type, frames.get(turn.frame)) {
            ('O', Some(&frame)) => open.push((turn.frame, frame)),
            ('C', Some(_)) if open.last().is_some_and(|&(index, _)| index == turn.frame) => {
                open.pop();
            }
            _ => stacks.skip("an event that opens or closes no frame"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_character_becomes_the_replacement_character() {
        for (written, read) in [
            (r"\ud83d", "\u{fffd}"),
            (r"\uDE00", "\u{fffd}"),
            (r"a\ud83d\ude00b", "a\u{1f600}b"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}\u{1f600}"),
            (r"\ude00\ud83d", "\u{fffd}\u{fffd}"),
            // Backslashes before a text that only looks like an escape.
            (r"\\ud83d", r"\ud83d"),
            (r"\\\ud83d\n", "\\\u{fffd}\n"),
            (r"\ud83d\\ude00", "\u{fffd}\\ude00"),
            (r"\u00e4", "\u{e4}"),
        ] {
            let bytes = with_whole_characters(format!("\"{written}\"").into_bytes());
            let text: String = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(text, read, "{written}");
        }
        for damaged in [r"\ud8", r"\u+d80", "\\", r"\ud83d\u", r"\u\ud800"] {
            with_whole_characters(damaged.into());
        }
    }
}
