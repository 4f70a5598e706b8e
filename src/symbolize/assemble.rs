//! Builds the profile from the resolved addresses: address paths become call paths.

use rustc_hash::FxHashSet;

use crate::base::{CaveatKind, IdVec};
use crate::profile::{AddressId, Builder, CallPath, PathId, Slices, Thread, TimedSample};
use crate::trace::{AddressPathId, FrameId, ImageId, Times, Trace};

use super::address_lookup::AllAnswers;
use super::caveats::{correct, note_limits, note_problems, note_runtimes, note_unchecked};
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

/// Builds all of the profile that the trace is needed for.
pub(super) fn profile<'h>(
    (trace, times): (&Trace, Option<Times>),
    (checked, followed): (&Checked, Option<&Followed>),
    addresses_of_images: DistinctAddresses,
    name_sources: &'h IdVec<ImageId, NameSource>,
    names: &'h Names<'h>,
    answers: AllAnswers<'h>,
    options: &Options,
) -> Builder {
    let mut builder = Builder::default();
    *builder.caveats() = trace.caveats.clone();
    correct(&checked.corrections, builder.caveats());
    let mut identities = Identities::new(
        &trace.images,
        name_sources,
        names,
        answers.lines,
        &mut builder,
    );
    let mut resolution = resolve(
        checked,
        &addresses_of_images,
        &answers.by_chunk,
        &mut identities,
        &mut builder,
    );
    drop(addresses_of_images);
    let cut_below = resolution.limit_inlined(checked);
    if let Some(followed) = followed {
        ranges::add(
            followed,
            resolution.inlined(),
            &mut identities,
            &mut builder,
        );
    }
    counted::add(trace, name_sources, &mut identities, options, &mut builder);
    if options.calls != StaticCalls::Off {
        let contained = resolution.contained();
        let scanned = code::scan(name_sources, options.workers, |binary, error| {
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
            &mut builder,
        );
    }
    name_for_people(&mut builder, options.workers);
    note_limits(
        trace,
        &answers.by_chunk,
        cut_below,
        &mut identities,
        &mut builder,
    );
    identities.complete(&mut builder);
    kernel_entries::note(&mut builder);
    if options.repairs && trace.has_user_stacks() {
        builder.quality(checked.quality);
        // Short stacks that begin where the program does are whole.
        if checked.quality.rooted * 2 > checked.quality.stacks {
            builder.caveats().dismiss(CaveatKind::NoFramePointers);
        }
    }
    let is_named = |frame| resolution.is_named(frame);
    nameless::note(trace, checked, name_sources, is_named, &mut builder);
    folded::note(trace, checked, name_sources, &mut builder);
    note_problems(trace, name_sources, &mut builder);
    note_unchecked(trace, name_sources, &mut builder);
    note_runtimes(trace, checked, &mut builder);
    note_reused(trace, checked, &resolution, &mut builder);

    let events: Vec<_> = trace
        .events
        .enumerate()
        .map(|(id, event)| {
            let sampling = trace.sampling.get(id).copied().unwrap_or_default();
            builder.sampled_event(event.clone(), sampling)
        })
        .collect();
    let threads: Vec<_> = trace
        .threads
        .iter()
        .map(|t| {
            builder.thread(Thread {
                pid: t.pid,
                tid: t.tid,
                comm: t.comm.clone(),
                job: t.job.clone(),
            })
        })
        .collect();
    let paths = call_paths(checked, &resolution, &mut builder);
    let has_call_lines = options.lines == SourceLines::OfCalls;
    let addresses = stated_addresses(checked, name_sources, options, &mut builder);
    let places = has_call_lines.then(|| {
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
        places::of_paths(&checked.paths, &paths, lines, &mut builder)
    });
    for sample in &trace.samples {
        let path = checked.now[sample.path];
        let frame = checked.paths[path].frame;
        let event = events[sample.event.index()];
        let thread = threads[sample.thread.index()];
        let line = resolution.line(frame);
        let (path, sum) = (path.index(), sample.sum());
        match &places {
            Some(places) => builder.sample_at(event, thread, places[path], line, sum),
            None => builder.sample(event, thread, paths[path], line, sum),
        };
    }
    if let Some(times) = times {
        let slices = Slices {
            length: times.slice,
            start: times.start,
            end: times.end,
        };
        let samples = times.into_last_first().map(|sample| {
            let path = checked.now[sample.path];
            let frame = checked.paths[path].frame;
            TimedSample {
                event: events[sample.event.index()],
                thread: threads[sample.thread.index()],
                path: paths[path.index()],
                place: places.as_ref().map(|places| places[path.index()]),
                line: resolution.line(frame),
                slice: sample.slice,
                weight: sample.weight,
                count: sample.count,
            }
        });
        builder.times(slices, samples);
    }
    builder
}

/// Makes the call path of each path of the checked stacks.
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

/// The addresses of frames by which their code can be found again; none where they are not needed.
fn stated_addresses(
    checked: &Checked,
    name_sources: &IdVec<ImageId, NameSource>,
    options: &Options,
    builder: &mut Builder,
) -> IdVec<FrameId, Option<AddressId>> {
    let mut addresses = IdVec::new();
    if options.lines == SourceLines::OfCalls && options.addresses {
        for frame in &checked.frames {
            let stated = name_sources[frame.image].stated(frame.address.lookup());
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
