//! Whether a call through a pointer can lead to a function without a trace on the stack.
//!
//! ```text
//!   next ◀─jump─ f ◀─call─ g      f and g leave no frame between; if the address of one of the three
//!                                 is taken, what calls through a pointer may have called it
//! ```

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::code::{Code, Place};
use super::frames::Frames;
use crate::scan::{CallKind, Callee, Calls};

/// What a pointer can lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    /// Neither the function nor one that leads to it without a trace.
    Never,
    /// The function alone.
    Itself,
    /// A function that leads to it without a trace; or it is not known.
    Through,
}

/// More functions are not looked at.
const FUNCTIONS: usize = 256;

/// All calls of a file, from callees to callers.
pub(super) struct Callers {
    /// The starts of functions whose addresses are taken.
    pointed: FxHashSet<u64>,
    /// For the start of a function those of its callers, each with the stated address of the call;
    /// `None` for a jump.
    callers: FxHashMap<u64, Vec<(u64, Option<u64>)>>,
}

impl Callers {
    pub(super) fn of(calls: &Calls) -> Callers {
        let start = |id| calls.functions[id].symbol.start.0;
        let mut callers = Callers {
            pointed: FxHashSet::default(),
            callers: FxHashMap::default(),
        };
        for site in &calls.sites {
            let Callee::Function(callee) = site.callee else {
                continue;
            };
            let at = match site.kind {
                CallKind::Pointer => {
                    callers.pointed.insert(start(callee));
                    continue;
                }
                CallKind::Tail => None,
                CallKind::Call | CallKind::Import => Some(site.at.0),
            };
            let known = callers.callers.entry(start(callee)).or_default();
            known.push((start(site.caller), at));
        }
        for (id, function) in calls.functions.enumerate() {
            if function.pointers_in_data > 0 {
                callers.pointed.insert(start(id));
            }
        }
        callers
    }
}

/// What of a function can be called through a pointer; with `by_jumps_only` the frames of all that
/// call are on the stack.
pub(super) fn by_pointer(
    function: Place,
    by_jumps_only: bool,
    code: &mut Code,
    frames: &mut Frames,
) -> Reached {
    let image = function.image;
    let Some(callers): Option<Rc<Callers>> = code.callers(image) else {
        return Reached::Through;
    };
    let mut is_reached = false;
    let mut seen = vec![function.start];
    let mut at = 0;
    while let Some(&start) = seen.get(at) {
        at += 1;
        if callers.pointed.contains(&start) || code.is_exported(Place { image, start }) {
            match start == function.start {
                true => is_reached = true,
                false => return Reached::Through,
            }
        }
        for &(caller, call) in callers.callers.get(&start).into_iter().flatten() {
            let leaves_no_trace = match call {
                None => true,
                Some(_) if by_jumps_only => false,
                Some(call) => frames.has_frame(image, call) != Some(true),
            };
            if leaves_no_trace && !seen.contains(&caller) {
                seen.push(caller);
            }
        }
        if seen.len() > FUNCTIONS {
            return Reached::Through;
        }
    }
    match is_reached {
        true => Reached::Itself,
        false => Reached::Never,
    }
}
