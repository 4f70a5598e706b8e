//! The functions through which unknown code may reach a function: by a pointer, out of a library,
//! from a signal.
//!
//! ```text
//!   anywhere ─▶ g ─jump─▶ f ─call─▶ next      f keeps no frame there, or is the missing owner
//! ```
//!
//! Unknown code can enter a function whose address is taken or that other files can find. So the
//! search goes back over the calls and jumps of one file, from the function that is next on the
//! stack, and checks which of the functions on the way can be entered. Other files call by name,
//! and named functions count as entries; so no other file has to be searched.

use std::rc::Rc;

use rustc_hash::FxHashSet;

use super::callers::Callers;
use super::code::Code;
use super::function_exits::FunctionStart;
use crate::trace::ImageId;

/// Which functions, entered from somewhere unknown, lead to the function that is next on the stack
/// and leave no frame in between but the owner's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entries {
    pub(super) itself: bool,
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

    pub(super) fn any_behind_owner(self) -> bool {
        self.itself || self.behind_owner
    }
}

// More functions are not looked at.
const FUNCTIONS: usize = 256;

/// A function by its start, and whether the frame pointer is that of a caller when it goes on: then
/// it is behind the owner.
type Node = (u64, bool);

/// What comes before the function that is next on the stack.
struct Before<'c, 'h> {
    code: &'c Code<'h>,
    image: ImageId,
    callers: Rc<Callers>,
}

impl<'c, 'h> Before<'c, 'h> {
    /// `None` where it is not known.
    fn of(next: FunctionStart, code: &'c Code<'h>) -> Option<Before<'c, 'h>> {
        // Calls by way of a linkage table are known by the function that is called, not by the stub
        // in which a sample can be taken.
        let image = next.image;
        let callers = code.callers(image)?;
        callers.is_function(next.start).then_some(())?;
        Some(Before {
            code,
            image,
            callers,
        })
    }

    /// What calls a function or jumps to it without a frame that the chain would have shown:
    ///
    /// ```text
    ///   caller ─jump─▶ (f, b)                    (caller, b)       it made way
    ///   caller ─call, no frame─▶ (f, behind)     (caller, behind)  its frame is its caller's
    ///   caller ─call, a frame──▶ (f, behind)     (caller, not)     it is the owner
    ///   caller ─call─▶ (f, not)                  none              the frame would be its own
    /// ```
    fn nodes(&self, (start, is_behind): Node) -> impl Iterator<Item = Node> {
        let calls = self.callers.of_function(start);
        calls.flat_map(move |(caller, call)| {
            let ways = match call {
                None => [Some(is_behind), None],
                // The rules are not asked for every call of a file.
                Some(_) if !is_behind => [None, None],
                Some(call) => match self.code.frames.has_frame(self.image, call) {
                    Some(has_frame) => [Some(!has_frame), None],
                    None => [Some(true), Some(false)],
                },
            };
            ways.into_iter().flatten().map(move |way| (caller, way))
        })
    }
}

/// The function that every way into `next` from somewhere unknown enters first or goes through
/// next, the outermost one; `None` if `next` itself may be entered, or several others lead to it.
/// `is_owner_missing` as for [`entries`].
pub(super) fn only_entry(
    next: FunctionStart,
    is_owner_missing: bool,
    code: &Code,
) -> Option<FunctionStart> {
    let before = Before::of(next, code)?;
    let mut at = (next.start, is_owner_missing);
    let mut seen = vec![at];
    while !before.callers.may_be_entered(at.0) {
        let mut nodes: Vec<Node> = before.nodes(at).filter(|node| *node != at).collect();
        nodes.dedup();
        let &[only] = nodes.as_slice() else {
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
    let (image, is_other) = (next.image, seen.len() > 1 && !is_behind);
    is_other.then_some(FunctionStart { image, start })
}

/// The functions that may have been between something unknown and `next`; `None` if there may be
/// others, or they are too many. `is_owner_missing` as for [`entries`].
pub(super) fn leading_to(
    next: FunctionStart,
    is_owner_missing: bool,
    code: &Code,
) -> Option<Vec<FunctionStart>> {
    let before = Before::of(next, code)?;
    let mut seen = vec![(next.start, is_owner_missing)];
    let mut at = 0;
    while let Some(&node) = seen.get(at) {
        // Any function that calls through a pointer may be the owner.
        if node.1 && before.callers.may_be_entered(node.0) || seen.len() > FUNCTIONS {
            return None;
        }
        at += 1;
        for node in before.nodes(node) {
            if !seen.contains(&node) {
                seen.push(node);
            }
        }
    }
    let (image, starts) = (next.image, seen.iter().skip(1).map(|&(start, _)| start));
    let mut functions: Vec<_> = starts.map(|start| FunctionStart { image, start }).collect();
    functions.sort_unstable();
    functions.dedup();
    Some(functions)
}

/// What leads to a function from somewhere unknown. `is_owner_missing`: whether the frame that the
/// frame pointer points to there is that of a caller.
pub(super) fn entries(next: FunctionStart, is_owner_missing: bool, code: &Code) -> Entries {
    let Some(before) = Before::of(next, code) else {
        return Entries::ALL;
    };
    let mut entries = Entries::default();
    let mut seen = vec![(next.start, is_owner_missing)];
    let mut known: FxHashSet<Node> = seen.iter().copied().collect();
    let mut at = 0;
    while let Some(&node) = seen.get(at) {
        if before.callers.may_be_entered(node.0) {
            match (at, node.1) {
                (0, _) => entries.itself = true,
                (_, true) => entries.behind_owner = true,
                (_, false) => entries.owner = true,
            }
        }
        if entries == Entries::ALL {
            return entries;
        }
        at += 1;
        seen.extend(before.nodes(node).filter(|node| known.insert(*node)));
        if seen.len() > FUNCTIONS {
            return Entries::ALL;
        }
    }
    // Any function with a frame may call what can be entered.
    entries.owner |= is_owner_missing && entries.any_behind_owner();
    entries
}
