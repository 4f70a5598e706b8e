//! Counts the samples that have frames without names, and why, in one walk over the stacks.

use crate::base::{CaveatKind, IdVec};
use crate::profile::Builder;
use crate::trace::{AddressPathId, AddressPaths, FrameId, ImageId, ImageKind, Trace};

use super::name_source::NameSource;
use super::repair::Checked;

/// Counts the samples whose stacks have frames without names, by reason, and for each reason by
/// image. A sample counts once for a reason and once for an image, whatever the number of its frames
/// there.
pub(super) fn note(
    trace: &Trace,
    checked: &Checked,
    name_sources: &IdVec<ImageId, NameSource>,
    is_named: impl Fn(FrameId) -> bool,
    builder: &mut Builder,
) {
    let mut lacking = IdVec::filled(false, trace.images.len());
    for (id, frame) in checked.frames.enumerate() {
        lacking[frame.image] |= !is_named(id);
    }
    let reason = |image: ImageId| reason(trace, image, &name_sources[image]);
    // There are few kinds of reasons: a list of them, and for each image the index of its reason.
    let mut kinds: Vec<CaveatKind> = Vec::new();
    let mut kind_of: IdVec<ImageId, Option<u8>> = IdVec::filled(None, lacking.len());
    for image in lacking.ids().filter(|&image| lacking[image]) {
        kind_of[image] = reason(image).map(|(kind, _)| {
            let known = kinds.iter().position(|&known| known == kind);
            let place = known.unwrap_or_else(|| {
                kinds.push(kind);
                kinds.len() - 1
            });
            place as u8
        });
    }
    if kinds.is_empty() {
        return;
    }
    let mut by_image = Lacking::new(kind_of.len());
    let mut by_kind = Lacking::new(kinds.len());
    let samples = samples_below(trace, checked);
    walk(&checked.paths, |path, enters| {
        let frame = checked.paths[path].frame;
        let image = checked.frames[frame].image;
        let Some(kind) = kind_of[image].filter(|_| !is_named(frame)) else {
            return;
        };
        for (lacking, place) in [(&mut by_image, image.index()), (&mut by_kind, kind.into())] {
            if enters {
                lacking.enter(place, samples[path])
            } else {
                lacking.leave(place)
            }
        }
    });
    let mut order: Vec<usize> = (0..kinds.len()).collect();
    order.sort_unstable_by_key(|&place| kinds[place]);
    for place in order {
        let of_kind = kind_of
            .enumerate()
            .filter(|&(_, &kind)| kind.map(usize::from) == Some(place));
        let counted = of_kind.filter(|(image, _)| by_image.samples[image.index()] > 0);
        let details = counted.filter_map(|(image, _)| {
            let (_, detail) = reason(image)?;
            Some((detail, by_image.samples[image.index()]))
        });
        let count = by_kind.samples[place];
        if count > 0 {
            (builder.caveats()).add_once(kinds[place], count, details);
        }
    }
}

/// Samples whose stacks lack names, by reason.
struct Lacking {
    /// How many frames without a name are on the way to the path at hand.
    depth: Vec<u32>,
    /// The samples below the outermost of them.
    samples: Vec<u64>,
}

impl Lacking {
    fn new(reasons: usize) -> Lacking {
        Lacking {
            depth: vec![0; reasons],
            samples: vec![0; reasons],
        }
    }

    fn enter(&mut self, reason: usize, samples: u64) {
        if self.depth[reason] == 0 {
            self.samples[reason] = self.samples[reason].saturating_add(samples);
        }
        self.depth[reason] += 1;
    }

    fn leave(&mut self, reason: usize) {
        self.depth[reason] -= 1;
    }
}

/// The number of samples on each path and those that go on from it.
fn samples_below(trace: &Trace, checked: &Checked) -> IdVec<AddressPathId, u64> {
    let mut samples: IdVec<AddressPathId, u64> = IdVec::filled(0, checked.paths.len());
    for sample in &trace.samples {
        let path = checked.now[sample.path];
        samples[path] = samples[path].saturating_add(sample.count);
    }
    for (id, path) in checked.paths.enumerate().rev() {
        if let Some(caller) = path.caller {
            samples[caller] = samples[caller].saturating_add(samples[id]);
        }
    }
    samples
}

/// Enters each path after its caller and leaves it after its callees; `visit` hears which of the two.
fn walk(paths: &AddressPaths, mut visit: impl FnMut(AddressPathId, bool)) {
    let mut first: IdVec<AddressPathId, Option<AddressPathId>> = IdVec::filled(None, paths.len());
    let mut next = first.clone();
    let mut outermost = None;
    for (id, path) in paths.enumerate().rev() {
        let place = match path.caller {
            Some(caller) => &mut first[caller],
            None => &mut outermost,
        };
        next[id] = place.replace(id);
    }
    let mut at = outermost;
    while let Some(mut path) = at {
        visit(path, true);
        at = first[path];
        while at.is_none() {
            visit(path, false);
            at = next[path];
            match paths[path].caller {
                Some(caller) if at.is_none() => path = caller,
                _ => break,
            }
        }
    }
}

/// Returns why addresses of an image have no names; `None` if that is reported elsewhere.
fn reason(trace: &Trace, image: ImageId, name_source: &NameSource) -> Option<(CaveatKind, String)> {
    let image = &trace.images[image];
    match (name_source, image.kind) {
        (NameSource::None(Some(why)), _) => Some((**why).clone()),
        (_, ImageKind::Guest | ImageKind::Unmapped { .. } | ImageKind::Mark) => None,
        (_, ImageKind::Generated { pid }) => {
            Some((CaveatKind::GeneratedCode, format!("process {pid}")))
        }
        _ => Some((CaveatKind::NoSymbols, image.path.to_string())),
    }
}
