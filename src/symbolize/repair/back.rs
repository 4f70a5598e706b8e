//! Whether a call through a pointer can lead to a function without a trace on the stack.
//!
//! ```text
//!   next ◀─jump─ f ◀─call─ g      f and g leave no frame between; if the address of one of the three
//!                                 is taken, what calls through a pointer may have called it
//! ```

use std::rc::Rc;

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
    /// The starts of functions whose addresses are taken, sorted.
    pointed: Vec<u64>,
    /// The starts of callee and caller, and the stated address of the call, `None` for a jump;
    /// sorted.
    calls: Vec<(u64, u64, Option<u64>)>,
}

impl Callers {
    pub(super) fn of(calls: &Calls) -> Callers {
        let start = |id| calls.functions[id].symbol.start.0;
        let mut callers = Callers {
            pointed: Vec::new(),
            calls: Vec::with_capacity(calls.sites.len()),
        };
        for site in &calls.sites {
            let Callee::Function(callee) = site.callee else {
                continue;
            };
            let at = match site.kind {
                CallKind::Pointer => {
                    callers.pointed.push(start(callee));
                    continue;
                }
                CallKind::Tail => None,
                CallKind::Call | CallKind::Import => Some(site.at.0),
            };
            callers.calls.push((start(callee), start(site.caller), at));
        }
        for (id, function) in calls.functions.enumerate() {
            if function.pointers_in_data > 0 {
                callers.pointed.push(start(id));
            }
        }
        callers.pointed.sort_unstable();
        callers.calls.sort_unstable();
        callers
    }

    /// The calls of the function that starts here.
    fn of_function(&self, start: u64) -> impl Iterator<Item = (u64, Option<u64>)> {
        let from = self.calls.partition_point(|&(callee, ..)| callee < start);
        let calls = self.calls.get(from..).unwrap_or_default().iter();
        let calls = calls.take_while(move |&&(callee, ..)| callee == start);
        calls.map(|&(_, caller, at)| (caller, at))
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
        if callers.pointed.binary_search(&start).is_ok() || code.is_exported(Place { image, start })
        {
            match start == function.start {
                true => is_reached = true,
                false => return Reached::Through,
            }
        }
        for (caller, call) in callers.of_function(start) {
            let leaves_no_trace = match call {
                None => true,
                Some(_) if by_jumps_only || seen.contains(&caller) => false,
                Some(call) => frames.has_frame(image, call) != Some(true),
            };
            if leaves_no_trace && !seen.contains(&caller) && seen.len() <= FUNCTIONS {
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
