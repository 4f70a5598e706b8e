//! From answers to the profile: address paths become call paths.

use std::borrow::Cow;

use rustc_hash::FxHashSet;

use crate::base::{CaveatKind, IdVec, Interner, NameId};
use crate::binary::DefinitionId;
use crate::profile::{
    AddressId, Builder, CallPath, FunctionId, Line, LineId, PathId, Slices, Thread, TimedSample,
};
use crate::trace::{AddressPathId, FrameId, ImageId, Trace};

use super::address_lookup::{AllAnswers, Answers, ByChunk, Physical};
use super::caveats::{correct, note_limits, note_problems, note_unchecked};
use super::definitions::Definitions;
use super::demangled::name_for_people;
use super::distinct_addresses::DistinctAddresses;
use super::identity::Identities;
use super::limits::{self, TextLeft};
use super::name_source::NameSource;
use super::names::Names;
use super::places::{self, FrameLines};
use super::repair::{Checked, Followed};
use super::{Options, SourceLines, StaticCalls};
use super::{code, counted, interrupts, nameless, ranges};

/// What one address is: a physical function and the calls inlined there.
#[derive(Clone, Copy, Debug)]
struct Resolved {
    physical: FunctionId,
    /// The calls inlined there, outermost first, in [`Resolution::inlined`].
    inlined: (u32, u32),
    line: Option<LineId>,
    named: bool,
    /// Whether the name may belong to any of several functions.
    ambiguous: bool,
}

/// What every address is.
struct Resolution {
    frames: IdVec<FrameId, Option<Resolved>>,
    inlined: Vec<FunctionId>,
    /// Where it is asked for, the line of each of these calls.
    call_lines: Vec<Option<LineId>>,
}

impl Resolution {
    /// The lines of the calls at an address.
    fn lines(&self, frame: FrameId) -> FrameLines<'_> {
        self.frames[frame].map_or(FrameLines::default(), |resolved| FrameLines {
            innermost: resolved.line,
            inlined: (self.call_lines)
                .get(resolved.inlined.0 as usize..resolved.inlined.1 as usize)
                .unwrap_or_default(),
            address: None,
        })
    }
}

impl Resolution {
    /// The calls that are inlined at an address, outermost first.
    fn inlined_at(&self, place: FrameId) -> &[FunctionId] {
        let (from, to) = self.frames[place].map_or((0, 0), |resolved| resolved.inlined);
        let inlined = self.inlined.get(from as usize..to as usize);
        inlined.unwrap_or_default()
    }

    /// The function at an address and the calls that are inlined there.
    fn all_at(&self, place: FrameId) -> impl Iterator<Item = FunctionId> {
        let physical = self.frames[place].map(|resolved| resolved.physical);
        physical
            .into_iter()
            .chain(self.inlined_at(place).iter().copied())
    }

    /// The functions of which some are missing outside of the innermost frame of a path, `None` if there may
    /// be others: between the stack's frames, and inlined at the call in its caller, if that was
    /// restored in part.
    fn candidates(
        &self,
        checked: &Checked,
        path: AddressPathId,
        restored_in_part: Option<AddressPathId>,
    ) -> Option<Vec<FunctionId>> {
        let mut functions = Vec::new();
        if checked.across_gap[path] {
            let places = checked.candidates(path)?;
            functions.extend(places.iter().flat_map(|&place| self.all_at(place)));
        }
        if let Some(caller) = restored_in_part {
            let places = checked.places_of(caller);
            if places.is_empty() {
                return None;
            }
            functions.extend(places.iter().flat_map(|&place| self.inlined_at(place)));
        }
        Some(functions)
    }

    /// The calls that are inlined at each of these addresses, outermost first, and whether there are
    /// others at some, or the addresses are not known.
    fn inlined_at_all(&self, places: &[FrameId]) -> (&[FunctionId], bool) {
        let inlined = |place: &FrameId| self.inlined_at(*place);
        let Some((first, others)) = places.split_first() else {
            return (&[], true);
        };
        let first = inlined(first);
        let shared = others.iter().map(|other| {
            let both = first.iter().zip(inlined(other));
            both.take_while(|(one, other)| one == other).count()
        });
        let shared = shared.min().unwrap_or(first.len());
        let is_more = places.iter().any(|place| inlined(place).len() > shared);
        (&first[..shared], is_more)
    }
}

/// Builds all of the profile that the trace is needed for.
pub(super) fn profile<'h>(
    trace: &Trace,
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
    let cut_below = limit_inlined(&mut resolution, checked);
    if let Some(followed) = followed {
        ranges::add(followed, &resolution.inlined, &mut identities, &mut builder);
    }
    counted::add(trace, name_sources, &mut identities, options, &mut builder);
    if options.calls != StaticCalls::Off {
        let contained = contained(&resolution);
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
    interrupts::note(&mut builder);
    if options.repairs && trace.caveats.count(CaveatKind::NoStacks) == 0 {
        builder.quality(checked.quality);
        // Short stacks that begin where the program does are whole.
        if checked.quality.rooted * 2 > checked.quality.stacks {
            builder.caveats().dismiss(CaveatKind::NoFramePointers);
        }
    }
    let is_named =
        |frame| resolution.frames[frame].is_some_and(|resolved: Resolved| resolved.named);
    nameless::note(trace, checked, name_sources, is_named, &mut builder);
    note_problems(trace, name_sources, &mut builder);
    note_unchecked(trace, name_sources, &mut builder);
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
    let mut paths: Vec<PathId> = Vec::with_capacity(checked.paths.len());
    // Paths on which it is not known what is inlined at the call that leads on.
    let mut is_part: FxHashSet<AddressPathId> = FxHashSet::default();
    for (id, path) in checked.paths.enumerate() {
        let caller = path.caller.map(|caller| paths[caller.index()]);
        let resolved = resolution.frames[path.frame].expect("every frame was planned for");
        let (from, to) = resolved.inlined;
        let mut inlined = &resolution.inlined[from as usize..to as usize];
        let inferred = checked.inferred[id];
        if inferred && !checked.is_place(path.frame) {
            let (at_all, is_more) = resolution.inlined_at_all(checked.places_of(id));
            inlined = at_all;
            if is_more {
                is_part.insert(id);
            }
        }
        let restored_in_part = path.caller.filter(|caller| is_part.contains(caller));
        let across_gap = caller.is_some() && checked.across_gap[id];
        let candidates = (across_gap || restored_in_part.is_some())
            .then(|| resolution.candidates(checked, id, restored_in_part))
            .flatten()
            .map(|functions| builder.function_set(functions));
        let here = builder.path_of(CallPath {
            caller,
            function: resolved.physical,
            inlined: false,
            inferred,
            across_gap,
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
        let line = resolution.frames[frame].and_then(|resolved| resolved.line);
        let (path, sum) = (path.index(), sample.sum());
        match &places {
            Some(places) => builder.sample_at(event, thread, places[path], line, sum),
            None => builder.sample(event, thread, paths[path], line, sum),
        };
    }
    if let Some(times) = &trace.times {
        builder.slices(Slices {
            length: times.slice,
            start: times.start,
            end: times.end,
        });
        builder.timed(times.samples.iter().map(|sample| {
            let path = checked.now[sample.path];
            let frame = checked.paths[path].frame;
            TimedSample {
                event: events[sample.event.index()],
                thread: threads[sample.thread.index()],
                path: paths[path.index()],
                place: places.as_ref().map(|places| places[path.index()]),
                line: resolution.frames[frame].and_then(|resolved| resolved.line),
                slice: sample.slice,
                weight: sample.weight,
                count: sample.count,
            }
        }));
    }
    builder
}

/// The addresses of frames by which their code can be found again; none where nobody asks.
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

/// What the sampled places show to be inlined into what: caller and callee, each pair once.
fn contained(resolution: &Resolution) -> FxHashSet<(FunctionId, FunctionId)> {
    let mut contained = FxHashSet::default();
    for resolved in resolution.frames.iter().flatten() {
        let (from, to) = resolved.inlined;
        let mut caller = resolved.physical;
        for &function in &resolution.inlined[from as usize..to as usize] {
            contained.insert((caller, function));
            caller = function;
        }
    }
    contained
}

fn resolve(
    checked: &Checked,
    addresses_of_images: &DistinctAddresses,
    answers: &ByChunk,
    identities: &mut Identities,
    builder: &mut Builder,
) -> Resolution {
    let mut resolution = Resolution {
        frames: IdVec::filled(None, checked.frames.len()),
        inlined: Vec::new(),
        call_lines: Vec::new(),
    };
    for (image, plan) in addresses_of_images.enumerate() {
        let answers = answers.of_image(image);
        learn(image, answers.clone(), identities);
        let mut addresses = plan.iter();
        for answers in answers {
            let mut inlined = answers.inlined.iter();
            // Each definition is asked for once, when it is first needed.
            let mut functions = vec![None; answers.definitions.len()];
            let mut call_lines = answers.call_lines.iter();
            for physical in &answers.physical {
                let &(_, frame) = addresses.next().expect("no more answers than addresses");
                let described = named(image, physical, answers, identities);
                let name = described.as_deref();
                let function =
                    identities.physical(builder, checked.frames[frame], physical.bounds, name);
                if let (Some((start, _)), Some(name)) = (physical.bounds, name) {
                    let definition = physical
                        .definition
                        .map(|place| answers.definitions[place as usize]);
                    identities.declare(function, image, start, name, definition);
                }
                let from = resolution.inlined.len() as u32;
                for &place in inlined.by_ref().take(physical.inlined as usize) {
                    let place = place as usize;
                    let line = call_lines.next();
                    let found = *functions[place].get_or_insert_with(|| {
                        identities.inlined(builder, image, answers.definitions[place])
                    });
                    let Some(found) = found else { continue };
                    resolution.inlined.push(found);
                    let line = line.map(|line| {
                        line_of(*line, &answers.names, identities.text_left(), builder)
                    });
                    resolution.call_lines.extend(line);
                }
                let left = identities.text_left();
                let line = line_of(physical.line, &answers.names, left, builder);
                resolution.frames[frame] = Some(Resolved {
                    physical: function,
                    inlined: (from, resolution.inlined.len() as u32),
                    line,
                    named: name.is_some(),
                    ambiguous: physical.is_ambiguous,
                });
            }
        }
        // Where there is nothing to look up in, there are no answers.
        for &(_, frame) in addresses {
            let end = resolution.inlined.len() as u32;
            resolution.frames[frame] = Some(Resolved {
                physical: identities.physical(builder, checked.frames[frame], None, None),
                inlined: (end, end),
                line: None,
                named: false,
                ambiguous: false,
            });
        }
    }
    resolution
}

/// The linkage name of what is at an address: that of its symbol, else that of its definition.
fn named<'n>(
    image: ImageId,
    physical: &Physical,
    answers: &'n Answers,
    identities: &mut Identities,
) -> Option<Cow<'n, str>> {
    if let Some(name) = physical.name {
        return Some(Cow::Borrowed(&answers.names[name]));
    }
    let definition = answers.definitions.get(physical.definition? as usize)?;
    identities.name(image, *definition).map(Cow::Owned)
}

/// Cuts what is inlined at addresses where the stacks would have too much of it together. Returns
/// the depth below which it is left out.
fn limit_inlined(resolution: &mut Resolution, checked: &Checked) -> Option<usize> {
    let mut uses: IdVec<FrameId, u64> = IdVec::filled(0, resolution.frames.len());
    for path in checked.paths.iter() {
        uses[path.frame] += 1;
    }
    let frames = &resolution.frames;
    let inlined = |frame: FrameId| {
        let (from, to) = frames[frame].map_or((0, 0), |resolved| resolved.inlined);
        to.saturating_sub(from) as usize
    };
    let depth = limits::depth_on_stacks(inlined, &uses)?;
    for resolved in resolution.frames.iter_mut().flatten() {
        let (from, to) = resolved.inlined;
        let end = from.saturating_add(u32::try_from(depth).unwrap_or(u32::MAX));
        if end < to {
            resolved.inlined = (from, end);
            let line = resolution.call_lines.get(end as usize);
            resolved.line = line.copied().flatten();
        }
    }
    Some(depth)
}

/// Lets the definitions of an image be known before its functions are made, so that these do not
/// depend on which of their copies comes first.
fn learn<'a>(
    image: ImageId,
    answers: impl Iterator<Item = &'a Answers>,
    identities: &mut Identities,
) {
    let mut definitions: Vec<DefinitionId> = Vec::new();
    let mut code = Vec::new();
    for answers in answers {
        definitions.extend(&answers.definitions);
        for physical in &answers.physical {
            if let (Some((start, _)), Some(place)) = (physical.bounds, physical.definition)
                && let Some(name) = named(image, physical, answers, identities)
            {
                code.push((start, name, answers.definitions[place as usize]));
            }
        }
    }
    definitions.sort_unstable();
    definitions.dedup();
    code.sort_unstable();
    code.dedup();
    identities.learn(image, &definitions, &code);
}

/// A line as the profile has it.
fn line_of(
    line: Option<(NameId, u32)>,
    names: &Interner,
    left: &mut TextLeft,
    builder: &mut Builder,
) -> Option<LineId> {
    let (file, line) = line?;
    let file = names[file].to_owned();
    let bytes = file.len();
    if !left.has_path(bytes) {
        return None;
    }
    let line = builder.line(Line { file, line });
    left.take_path(line, bytes);
    Some(line)
}

/// Counts the samples whose stacks have frames that may be of several functions.
fn note_reused(trace: &Trace, checked: &Checked, resolution: &Resolution, builder: &mut Builder) {
    let is_ambiguous = |frame| resolution.frames[frame].is_some_and(|frame| frame.ambiguous);
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
