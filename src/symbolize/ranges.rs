//! The code that ranges of totals need, where stacks are incomplete.

use crate::base::CaveatKind;
use crate::profile::{self, Builder, FunctionId};
use crate::trace::Trace;

use super::identity::Identities;
use super::repair::Followed;
use super::{Options, StaticCalls};

// If fewer than one sample in this number is cut, the code is not followed: that would take long
// for few samples. Without it the ranges are wider, and true.
const CUT_ONE_IN: u64 = 20;

/// Whether stacks were cut so often that the code is followed. Where frame pointers are missing,
/// most stacks are cut, too, and their programs are many (-a): that takes longer than recording
/// again.
///
/// Frames that are missing within stacks are no reason. What may be missing there is known already,
/// or nothing narrows it: between nearly all functions of a large program code leads through
/// pointers, or copies of what is inlined.
pub(super) fn are_needed(trace: &Trace, options: &Options) -> bool {
    // Where all of the code is read, there is nothing to follow.
    let is_asked_for = options.ranges && options.calls != StaticCalls::All;
    let cut: u64 = [
        CaveatKind::CutStack,
        CaveatKind::ShortCopy,
        CaveatKind::SignalStack,
    ]
    .into_iter()
    .map(|kind| trace.caveats.count(kind))
    .sum();
    let samples: u64 = trace.samples.iter().map(|sample| sample.count).sum();
    is_asked_for && cut > 0 && cut.saturating_mul(CUT_ONE_IN) >= samples
}

/// Hands over where functions lead. `inlined` are those of which samples show inlined copies.
pub(super) fn add(
    followed: &Followed,
    inlined: &[FunctionId],
    identities: &mut Identities,
    builder: &mut Builder,
) {
    let functions = followed
        .functions
        .iter()
        .map(|function| profile::FollowedFunction {
            function: identities.known(function.image, function.start),
            calls_unknown: function.calls_unknown,
            is_unread: function.is_unread,
        });
    let mut copied: Vec<FunctionId> = inlined.to_vec();
    copied.extend_from_slice(identities.copied());
    copied.sort_unstable();
    copied.dedup();
    builder.followed(profile::Followed {
        functions: functions.collect(),
        calls: followed.calls.clone(),
        copied,
    });
}
