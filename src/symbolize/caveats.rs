//! Adds the caveats about files to a profile.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;

use crate::base::{CaveatKind, Caveats, Detail, IdVec, Runtime, grouped};
use crate::profile::Builder;
use crate::trace::{ImageId, ImageKind, Trace};

use super::address_lookup::ByChunk;
use super::identity::Identities;
use super::name_source::NameSource;
use super::repair::{Checked, Correction};

/// Tells what was left out of debug information, as it was too much.
pub(super) fn note_limits(
    trace: &Trace,
    answers: &ByChunk,
    cut_on_stacks: Option<usize>,
    identities: &mut Identities,
    builder: &mut Builder,
) {
    let mut files: BTreeMap<ImageId, Vec<String>> = BTreeMap::new();
    let mut depths: BTreeMap<ImageId, usize> = BTreeMap::new();
    for &(image, ref answers) in answers.iter() {
        // What is left out on all stacks is reported once.
        let depth = answers.cut_below;
        if let Some(depth) = depth.filter(|&depth| cut_on_stacks.is_none_or(|all| depth < all)) {
            let least = depths.entry(image).or_insert(depth);
            *least = depth.min(*least);
        }
    }
    for (image, depth) in depths {
        let detail = format!("calls inlined more than {depth} deep");
        files.entry(image).or_default().push(detail);
    }
    for (image, count) in identities.text_left().nameless() {
        let detail = format!("names of {} functions, too long together", grouped(count));
        files.entry(image).or_default().push(detail);
    }
    let lineless = identities.text_left().lineless;
    let caveats = builder.caveats();
    for (image, details) in &files {
        let path = &trace.images[*image].path;
        let details = details
            .iter()
            .map(|detail| (format!("{path}: {detail}"), 1));
        caveats.add_once(CaveatKind::DebugInfoLimit, 1, details);
    }
    let lines = || {
        let lineless = grouped(lineless);
        format!("source lines of {lineless} addresses, their paths too long together")
    };
    let calls = |depth| format!("calls inlined more than {depth} deep, too many on all stacks");
    let of_all = [(lineless > 0).then(lines), cut_on_stacks.map(calls)];
    for detail in of_all.into_iter().flatten() {
        caveats.add_detail(CaveatKind::DebugInfoLimit, 1, detail);
    }
}

/// Tells which debug information could not be read.
pub(super) fn note_problems(
    trace: &Trace,
    name_sources: &IdVec<ImageId, NameSource>,
    builder: &mut Builder,
) {
    for (image, name_source) in name_sources.enumerate() {
        let (kind, problems) = match name_source {
            NameSource::Binary(binary, _) => (CaveatKind::BadDebugInfo, binary.problems()),
            NameSource::JitDump(dump) => (CaveatKind::BadJitDump, dump.problems().to_vec()),
            _ => continue,
        };
        if problems.is_empty() {
            continue;
        }
        let path = &trace.images[image].path;
        let details = problems
            .iter()
            .map(|problem| (format!("{path}: {problem}"), 1));
        builder.caveats().add_once(kind, 1, details);
    }
}

/// Tells of files without a build ID that may not be those that ran.
pub(super) fn note_unchecked(
    trace: &Trace,
    name_sources: &IdVec<ImageId, NameSource>,
    builder: &mut Builder,
) {
    for (image, name_source) in trace.images.iter().zip(name_sources) {
        if let Some(doubt) = name_source.doubt() {
            let detail = format!("{}: {doubt}", image.path);
            builder
                .caveats()
                .add_detail(CaveatKind::UncheckedBinary, 1, detail);
        }
    }
}

/// Tells files whose code has no unwind information from those that could not be read.
pub(super) fn note_without_rules(
    trace: &Trace,
    name_sources: &IdVec<ImageId, NameSource>,
    builder: &mut Builder,
) {
    let is_there = |file: &str| {
        let mut images = trace.images.iter().zip(name_sources);
        images.any(|(image, name_source)| {
            *image.path == *file && matches!(name_source, NameSource::Binary(_, None))
        })
    };
    let caveats = builder.caveats();
    caveats.note_files(CaveatKind::NoUnwindRules, is_there);
}

/// States which runtimes made the code in no file that caveats are about.
pub(super) fn note_runtimes(trace: &Trace, checked: &Checked, builder: &mut Builder) {
    let hit: FxHashSet<ImageId> = checked.frames.iter().map(|frame| frame.image).collect();
    let images = hit.into_iter().map(|image| trace.images[image].kind);
    let processes: FxHashSet<i32> = images.filter_map(ImageKind::generated_by).collect();
    let of_files = processes
        .iter()
        .filter_map(|pid| trace.generators.get(pid))
        .flat_map(|generator| generator.runtimes.iter().copied());
    let threads = trace.threads.iter();
    let of_names = threads
        .filter(|thread| processes.contains(&thread.pid))
        .filter_map(|thread| Runtime::of_name(&thread.comm));
    let runtimes: BTreeSet<Runtime> = of_files.chain(of_names).collect();
    for kind in [
        CaveatKind::GeneratedCode,
        CaveatKind::ReplacedText,
        CaveatKind::ReusedCode,
        CaveatKind::BrokenStack,
        CaveatKind::NoUnwindRules,
    ] {
        builder.caveats().note_runtimes(kind, &runtimes);
    }
}

/// Counts samples by what has turned out to be true of their stacks. That a broken one reached a
/// limit, too, is of no interest: what it had outside of the break was no stack.
pub(super) fn correct(corrections: &[Correction], caveats: &mut Caveats) {
    for &Correction {
        recorded,
        now,
        are_in_generated,
        samples,
    } in corrections
    {
        if let Some(recorded) = recorded {
            caveats.take(recorded, samples);
        }
        match now {
            Some(now) if are_in_generated => caveats.add_detail(now, samples, Detail::NoFile),
            Some(now) => caveats.add(now, samples),
            None => {}
        }
    }
}
