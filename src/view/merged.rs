//! Rows that stand for several functions with exactly the same samples.
//!
//! The functions with the largest totals begin with a chain such as `_start`, `__libc_start_main`,
//! `main`, `run`, in which each only calls the next. Their rows would repeat one fact, so functions
//! that only pass their samples on are folded into one row of the group, which states their number:
//!
//! - A function that recurses, or that has samples of its own, keeps its row, and so does a mark.
//! - All others of the group are folded into one row. If the group has functions of the program's
//!   own module (the one that holds `main`), it is one of these. It is a function that recurses,
//!   else one with samples of its own, else `main`, and of several the outermost.
//!
//! So no function is folded that has another share, another range, or samples of its own.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Subject;
use crate::analysis::inclusive::FunctionWeights;
use crate::analysis::report::Summary;
use crate::analysis::same_samples::Member;
use crate::base::IdVec;
use crate::profile::{FunctionId, FunctionKind, ModuleId};

/// A row, and the functions that are folded into it, outermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Merged {
    pub function: FunctionId,
    pub folded: Vec<FunctionId>,
}

/// At most `limit` rows for functions that are in order of decreasing total.
pub(super) fn rows(
    subject: &Subject,
    summary: &Summary,
    sorted: &[FunctionId],
    limit: Option<usize>,
) -> Vec<Merged> {
    let own = own_modules(subject);
    let mut folded_into: FxHashMap<FunctionId, Vec<FunctionId>> = FxHashMap::default();
    let mut folded: FxHashSet<FunctionId> = FxHashSet::default();
    for members in &summary.alike {
        if let Some((head, others)) = fold(subject, &summary.flat.weights, &own, members) {
            folded.extend(&others);
            folded_into.insert(head, others);
        }
    }
    let rows = sorted.iter().filter(|id| !folded.contains(id));
    let row = |&function: &FunctionId| Merged {
        folded: folded_into.remove(&function).unwrap_or_default(),
        function,
    };
    rows.take(limit.unwrap_or(usize::MAX)).map(row).collect()
}

/// Into which of these functions others are folded, and which; none where there is nothing to fold.
fn fold(
    subject: &Subject,
    weights: &FunctionWeights,
    own: &IdVec<ModuleId, bool>,
    members: &[Member],
) -> Option<(FunctionId, Vec<FunctionId>)> {
    let function = |id: FunctionId| &subject.profile.functions[id];
    let is_mark = |member: &Member| function(member.function).kind == FunctionKind::Mark;
    let has_own = |member: &Member| weights.self_samples[member.function] > 0;
    let code: Vec<Member> = members.iter().copied().filter(|m| !is_mark(m)).collect();
    // Of equals the first, which is the outermost.
    let head = code.iter().min_by_key(|member| {
        (
            !own[function(member.function).module],
            !member.recurses,
            !has_own(member),
            function(member.function).name != "main",
        )
    })?;
    let others: Vec<FunctionId> = code
        .iter()
        .filter(|member| member.function != head.function && !member.recurses && !has_own(member))
        .map(|member| member.function)
        .collect();
    (!others.is_empty()).then_some((head.function, others))
}

/// Whether each module is one that holds a `main`: the program's own, as far as its names say it.
fn own_modules(subject: &Subject) -> IdVec<ModuleId, bool> {
    let mut own = IdVec::filled(false, subject.profile.modules.len());
    for function in subject.profile.functions.iter() {
        own[function.module] |= function.name == "main";
    }
    own
}
