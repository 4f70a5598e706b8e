//! Builds the profile from the resolved addresses, in three phases:
//!
//! ```text
//!   addresses, names, calls   ─▶ functions   ══▶ Resolution of frames: functions, inlined, lines
//!   what was not found, why   ─▶ caveats
//!   stacks, times             ─▶ stacks      call paths and places, then samples on them
//! ```

use rustc_hash::FxHashSet;

use crate::base::{CaveatKind, IdVec};
use crate::profile::{
    AddressId, Builder, CallPath, EventId, LineId, PathId, PlaceId, Slices, Thread, ThreadId,
    TimedSample,
};
use crate::trace::{
    AddressPathId, FrameId, ImageId, ImageKind, Times, Trace, TraceEventId, TraceThreadId,
};

use super::address_lookup::AllAnswers;
use super::caveats::{
    correct, note_limits, note_problems, note_runtimes, note_unchecked, note_without_rules,
};
use super::definitions::Definitions;
use super::demangled::name_for_people;
use super::distinct_addresses::DistinctAddresses;
use super::identity::Identities;
use super::name_source::NameSource;
use super::names::Names;
use super::places::{self, FrameLines};
use super::repair::{Checked, Followed};
use super::resolution::{Resolution, resolve};
use super::{Options, SourceLines, StaticCalls};
use super::{code, counted, folded, kernel_entries, nameless, ranges};

/// What a profile is built from.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) trace: &'a Trace,
    pub(super) checked: &'a Checked,
    pub(super) name_sources: &'a IdVec<ImageId, NameSource>,
    pub(super) options: &'a Options,
}

/// Adds the functions, and all that is known of them but samples: calls that were counted and those
/// in the code, names, what was left out of debug information.
pub(super) fn functions<'h>(
    parts: Parts<'h>,
    followed: Option<&Followed>,
    addresses: DistinctAddresses,
    names: &'h Names<'h>,
    answers: AllAnswers<'h>,
    builder: &mut Builder,
) -> Resolution {
    let Parts {
        trace,
        checked,
        name_sources,
        options,
    } = parts;
    *builder.caveats() = trace.caveats.clone();
    correct(&checked.corrections, builder.caveats());
    let mut identities =
        Identities::new(&trace.images, name_sources, names, answers.lines, builder);
    keep_generated_code(trace, &identities, builder);
    let by_chunk = &answers.by_chunk;
    let mut resolution = resolve(checked, &addresses, by_chunk, &mut identities, builder);
    drop(addresses);
    let cut_below = resolution.limit_inlined(checked);
    if let Some(followed) = followed {
        ranges::add(followed, resolution.inlined(), &mut identities, builder);
    }
    counted::add(trace, name_sources, &mut identities, options, builder);
    if options.calls != StaticCalls::Off {
        let contained = resolution.contained();
        let chosen = (options.calls == StaticCalls::Sampled).then(|| identities.starts());
        let scanned = code::scan(name_sources, chosen, options.workers, |binary, error| {
            let detail = format!("{}: {error}", binary.path().display());
            let caveats = builder.caveats();
            caveats.add_detail(CaveatKind::UnscannedBinary, 1, detail);
        });
        let definitions = Definitions::new(code::binaries(&scanned), None);
        code::add(
            &scanned,
            contained,
            &definitions,
            &mut identities,
            options,
            builder,
        );
    }
    name_for_people(builder, options.workers);
    note_limits(trace, by_chunk, cut_below, &mut identities, builder);
    identities.complete(builder);
    kernel_entries::note(builder);
    resolution
}

/// Adds what is to be said of the stacks and of the files with their functions.
pub(super) fn caveats(parts: Parts, resolution: &Resolution, builder: &mut Builder) {
    let Parts {
        trace,
        checked,
        name_sources,
        options,
    } = parts;
    if options.repairs && trace.has_user_stacks() {
        builder.quality(checked.quality);
        // Short stacks that begin where the program does are whole.
        if checked.quality.rooted * 2 > checked.quality.stacks {
            builder.caveats().dismiss(CaveatKind::NoFramePointers);
        }
    }
    let is_named = |frame| resolution.is_named(frame);
    nameless::note(trace, checked, name_sources, is_named, builder);
    folded::note(trace, checked, name_sources, builder);
    note_problems(trace, name_sources, builder);
    note_unchecked(trace, name_sources, builder);
    note_runtimes(trace, checked, builder);
    note_without_rules(trace, name_sources, builder);
    note_reused(trace, checked, resolution, builder);
}

/// The stacks of a profile: for each address path where its samples belong.
pub(super) struct Stacks<'a> {
    checked: &'a Checked,
    resolution: &'a Resolution,
    events: IdVec<TraceEventId, EventId>,
    threads: IdVec<TraceThreadId, ThreadId>,
    paths: Vec<PathId>,
    /// Where lines of calls are asked for.
    places: Option<Vec<PlaceId>>,
}

/// Adds events, threads, call paths and places.
pub(super) fn stacks<'a>(
    parts: Parts<'a>,
    resolution: &'a Resolution,
    builder: &mut Builder,
) -> Stacks<'a> {
    let Parts { trace, checked, .. } = parts;
    let mut events = IdVec::new();
    for (id, event) in trace.events.enumerate() {
        let sampling = trace.sampling.get(id).copied().unwrap_or_default();
        events.push(builder.sampled_event(event.clone(), sampling));
    }
    let mut threads = IdVec::new();
    for thread in &trace.threads {
        threads.push(builder.thread(Thread {
            pid: thread.pid,
            tid: thread.tid,
            comm: thread.comm.clone(),
            job: thread.job.clone(),
            run: 0,
        }));
    }
    let paths = call_paths(checked, resolution, builder);
    let has_call_lines = parts.options.lines == SourceLines::OfCalls;
    let places = has_call_lines.then(|| {
        let addresses = stated_addresses(parts, builder);
        let lines = |frame| {
            if checked.is_place(frame) {
                FrameLines {
                    address: addresses.get(frame).copied().flatten(),
                    ..resolution.lines(frame)
                }
            } else {
                FrameLines::default()
            }
        };
        places::of_paths(&checked.paths, &paths, lines, builder)
    });
    Stacks {
        checked,
        resolution,
        events,
        threads,
        paths,
        places,
    }
}

impl Stacks<'_> {
    pub(super) fn add_samples(&self, trace: &Trace, times: Option<Times>, builder: &mut Builder) {
        for sample in &trace.samples {
            let (event, thread) = (self.events[sample.event], self.threads[sample.thread]);
            let path = self.checked.now[sample.path];
            let (line, sum) = (self.line(path), sample.sum());
            match &self.places {
                Some(places) => builder.sample_at(event, thread, places[path.index()], line, sum),
                None => builder.sample(event, thread, self.paths[path.index()], line, sum),
            };
        }
        let Some(times) = times else {
            return;
        };
        let slices = Slices {
            length: times.slice,
            start: times.start,
            end: times.end,
        };
        let samples = times.into_last_first().map(|sample| {
            let path = self.checked.now[sample.path];
            TimedSample {
                event: self.events[sample.event],
                thread: self.threads[sample.thread],
                path: self.paths[path.index()],
                place: self.places.as_ref().map(|places| places[path.index()]),
                line: self.line(path),
                slice: sample.slice,
                weight: sample.weight,
                count: sample.count,
            }
        });
        builder.times(slices, samples);
    }

    fn line(&self, path: AddressPathId) -> Option<LineId> {
        self.resolution.line(self.checked.paths[path].frame)
    }
}

fn call_paths(checked: &Checked, resolution: &Resolution, builder: &mut Builder) -> Vec<PathId> {
    let mut paths: Vec<PathId> = Vec::with_capacity(checked.paths.len());
    // Paths on which it is not known what is inlined at the call that leads on.
    let mut is_part: FxHashSet<AddressPathId> = FxHashSet::default();
    for (id, path) in checked.paths.enumerate() {
        let caller = path.caller.map(|caller| paths[caller.index()]);
        let mut inlined = resolution.inlined_at(path.frame);
        let state = checked.states[id];
        let inferred = state.inferred;
        if inferred && !checked.is_place(path.frame) {
            let places = checked.places_of(id).unwrap_or_default();
            let (at_all, is_more) = resolution.inlined_at_all(places);
            inlined = at_all;
            if is_more {
                is_part.insert(id);
            }
        }
        let restored_in_part = path.caller.filter(|caller| is_part.contains(caller));
        let across_gap = caller.is_some() && state.across_gap;
        let candidates = (across_gap || restored_in_part.is_some())
            .then(|| resolution.candidates(checked, id, restored_in_part))
            .flatten()
            .map(|functions| builder.function_set(functions));
        let here = builder.path_of(CallPath {
            caller,
            function: resolution.physical(path.frame),
            inlined: false,
            inferred,
            across_gap,
            through_pointer: caller.is_some() && state.through_pointer,
            may_lack_inlined: restored_in_part.is_some(),
            candidates,
        });
        paths.push(inlined.iter().fold(here, |caller, &function| {
            builder.path_of(CallPath {
                inlined: true,
                inferred,
                ..CallPath::of(Some(caller), function)
            })
        }));
    }
    paths
}

fn keep_generated_code(trace: &Trace, identities: &Identities, builder: &mut Builder) {
    for (id, image) in trace.images.enumerate() {
        if let ImageKind::JitDump { pid, .. } = image.kind {
            let mut kept = trace.jit_dumps.iter();
            let kept = kept.find(|kept| kept.pid == pid && *kept.path == *image.path);
            if let Some(kept) = kept {
                builder.generated_code(identities.module(id), kept.bytes.clone());
            }
        }
    }
}

fn stated_addresses(parts: Parts, builder: &mut Builder) -> IdVec<FrameId, Option<AddressId>> {
    let mut addresses = IdVec::new();
    if parts.options.addresses {
        for frame in &parts.checked.frames {
            let stated = parts.name_sources[frame.image].stated(frame.address.lookup());
            addresses.push(stated.map(|stated| builder.address(stated)));
        }
    }
    addresses
}

/// Counts the samples whose stacks have frames that may be of several functions.
fn note_reused(trace: &Trace, checked: &Checked, resolution: &Resolution, builder: &mut Builder) {
    let is_ambiguous = |frame| resolution.is_ambiguous(frame);
    if !checked.frames.ids().any(is_ambiguous) {
        return;
    }
    let mut on_path: Vec<bool> = Vec::with_capacity(checked.paths.len());
    for (_, path) in checked.paths.enumerate() {
        let above = path.caller.is_some_and(|caller| on_path[caller.index()]);
        on_path.push(above || is_ambiguous(path.frame));
    }
    let samples = trace.samples.iter();
    let reused = samples.filter(|sample| on_path[checked.now[sample.path].index()]);
    let count = reused.map(|sample| sample.count).sum();
    if count > 0 {
        builder.caveats().add(CaveatKind::ReusedCode, count);
    }
}
