//! The functions through which unknown code may reach a function: by a pointer, out of a library,
//! from a signal.
//!
//! ```text
//!   anywhere ─▶ g ─jump─▶ f ─call─▶ next      f keeps no frame there, or f's is the frame whose owner is missing
//! ```
//!
//! Unknown code can enter a function whose address is taken or that other files can find. So the
//! search goes back over the calls and jumps of one file, from the function that is next on the
//! stack, and checks which of the functions on the way can be entered. Other files call by name,
//! and named functions count as entries; so no other file has to be searched.

use std::rc::Rc;

use rustc_hash::FxHashSet;

use super::callers::Callers;
use super::code::CodeReader;
use super::frames::Frames;
use super::function_exits::FunctionStart;
use crate::trace::ImageId;

/// Which functions, entered from somewhere unknown, lead to the function that is next on the stack
/// and leave no frame in between but the owner's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entries {
    /// The function itself.
    pub(super) itself: bool,
    /// Others, behind the frame of the owner.
    pub(super) behind_owner: bool,
    /// Functions that are or become the owner; where no owner is missing, functions that jump.
    pub(super) owner: bool,
}

impl Entries {
    const ALL: Entries = Entries {
        itself: true,
        behind_owner: true,
        owner: true,
    };

    /// Whether one is behind the frame of the owner.
    pub(super) fn any_behind_owner(self) -> bool {
        self.itself || self.behind_owner
    }
}

/// More functions are not looked at.
const FUNCTIONS: usize = 256;

/// The function that every way into `next` from somewhere unknown enters first or goes through next,
/// the outermost one; `None` if `next` itself may be entered, or several others lead to it.
/// `is_owner_missing` as for [`entries`].
pub(super) fn only_entry(
    next: FunctionStart,
    is_owner_missing: bool,
    code: &mut CodeReader,
    frames: &mut Frames,
) -> Option<FunctionStart> {
    let image = next.image;
    let callers = code.callers(image)?;
    callers.functions.binary_search(&next.start).ok()?;
    let mut at = (next.start, is_owner_missing);
    let mut seen = vec![at];
    while !callers.may_be_entered(at.0) {
        let mut before = Vec::new();
        for (caller, call) in callers.of_function(at.0) {
            let ways = ways_before(at.1, call, image, frames);
            before.extend(ways.into_iter().flatten().map(|way| (caller, way)));
        }
        before.retain(|before| *before != at);
        before.dedup();
        let &[only] = before.as_slice() else {
            return None;
        };
        // What goes round is entered in a way that is not seen.
        if seen.contains(&only) || seen.len() > FUNCTIONS {
            return None;
        }
        seen.push(only);
        at = only;
    }
    // Entered behind the owner: any function that calls through a pointer can be that.
    let (start, is_behind) = at;
    let is_other = seen.len() > 1 && !is_behind;
    is_other.then_some(FunctionStart { image, start })
}

/// The functions that may have been between something unknown and `next`; `None` if there may be
/// others, or they are too many. `is_owner_missing` as for [`entries`].
pub(super) fn leading_to(
    next: FunctionStart,
    is_owner_missing: bool,
    code: &mut CodeReader,
    frames: &mut Frames,
) -> Option<Vec<FunctionStart>> {
    let image = next.image;
    let callers = code.callers(image)?;
    callers.functions.binary_search(&next.start).ok()?;
    let mut seen = vec![(next.start, is_owner_missing)];
    let mut at = 0;
    while let Some(&(start, is_behind)) = seen.get(at) {
        // Any function that calls through a pointer may be the owner.
        if is_behind && callers.may_be_entered(start) || seen.len() > FUNCTIONS {
            return None;
        }
        at += 1;
        for (caller, call) in callers.of_function(start) {
            let ways = ways_before(is_behind, call, image, frames);
            for way in ways.into_iter().flatten() {
                if !seen.contains(&(caller, way)) {
                    seen.push((caller, way));
                }
            }
        }
    }
    let starts = seen.iter().skip(1).map(|&(start, _)| start);
    let mut functions: Vec<_> = starts.map(|start| FunctionStart { image, start }).collect();
    functions.sort_unstable();
    functions.dedup();
    Some(functions)
}

/// Whether the frame pointer is that of a caller in what made this call, `None` for a jump, of a
/// function of which that is known: both may be. Nothing if the call would have left a frame.
fn ways_before(
    is_behind: bool,
    call: Option<u64>,
    image: ImageId,
    frames: &mut Frames,
) -> [Option<bool>; 2] {
    match call {
        None => [Some(is_behind), None],
        // Only behind the owner it matters whether there is a frame: the rules are not asked
        // for every call of a file.
        Some(_) if !is_behind => [None, None],
        Some(call) => match frames.has_frame(image, call) {
            Some(true) => [Some(false), None],
            Some(false) => [Some(true), None],
            None => [Some(true), Some(false)],
        },
    }
}

/// What leads to a function from somewhere unknown. `is_owner_missing`: whether the frame that the
/// frame pointer points to there is that of a caller.
pub(super) fn entries(
    next: FunctionStart,
    is_owner_missing: bool,
    code: &mut CodeReader,
    frames: &mut Frames,
) -> Entries {
    let image = next.image;
    let Some(callers): Option<Rc<Callers>> = code.callers(image) else {
        return Entries::ALL;
    };
    // Calls by way of a linkage table are known by the function that is called, not by the stub in
    // which a sample can be taken.
    if callers.functions.binary_search(&next.start).is_err() {
        return Entries::ALL;
    }
    let mut entries = Entries::default();
    // Functions, each with whether its frame pointer is that of a caller.
    let mut seen = vec![(next.start, is_owner_missing)];
    let mut known: FxHashSet<(u64, bool)> = seen.iter().copied().collect();
    let mut at = 0;
    while let Some(&(start, is_behind)) = seen.get(at) {
        if callers.may_be_entered(start) {
            match (at, is_behind) {
                (0, _) => entries.itself = true,
                (_, true) => entries.behind_owner = true,
                (_, false) => entries.owner = true,
            }
        }
        if entries == Entries::ALL {
            return entries;
        }
        at += 1;
        for (caller, call) in callers.of_function(start) {
            let ways = ways_before(is_behind, call, image, frames);
            for way in ways.into_iter().flatten() {
                if known.insert((caller, way)) {
                    seen.push((caller, way));
                }
            }
        }
        if seen.len() > FUNCTIONS {
            return Entries::ALL;
        }
    }
    // Any function with a frame may call what can be entered.
    entries.owner |= is_owner_missing && entries.any_behind_owner();
    entries
}
