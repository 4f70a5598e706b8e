//! Counts the samples that have frames without names, and why, in one walk over the stacks.

use crate::base::{CaveatKind, IdVec};
use crate::profile::Builder;
use crate::trace::{FrameId, ImageId, ImageKind, Trace};

use super::name_source::NameSource;
use super::repair::Checked;
use super::samples_by::{SamplesBy, samples_below, walk};

/// Counts the samples whose stacks have frames without names, by reason, and for each reason by
/// image.
pub(super) fn note(
    trace: &Trace,
    checked: &Checked,
    name_sources: &IdVec<ImageId, NameSource>,
    is_named: impl Fn(FrameId) -> bool,
    builder: &mut Builder,
) {
    // A sample counts once for a reason and once for an image, whatever the number of its frames
    // there.
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
    let mut by_image = SamplesBy::new(kind_of.len());
    let mut by_kind = SamplesBy::new(kinds.len());
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

/// Returns why addresses of an image have no names; `None` if that is reported elsewhere.
fn reason(trace: &Trace, image: ImageId, name_source: &NameSource) -> Option<(CaveatKind, String)> {
    let image = &trace.images[image];
    match (name_source, image.kind) {
        (NameSource::None(Some(why)), _) => Some((**why).clone()),
        (_, ImageKind::Guest | ImageKind::Unmapped { .. } | ImageKind::Mark) => None,
        (_, ImageKind::Generated { pid })
        | (NameSource::PerfMap(_), ImageKind::Replaced { pid }) => {
            Some((CaveatKind::GeneratedCode, format!("process {pid}")))
        }
        (_, ImageKind::Replaced { .. }) => Some((CaveatKind::ReplacedText, image.path.to_string())),
        _ => Some((CaveatKind::NoSymbols, image.path.to_string())),
    }
}
