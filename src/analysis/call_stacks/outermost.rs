//! Calls by pairs of functions, each sample at the outermost call of the callee only.
//!
//! A reader of calls adds up what comes into a function over its arcs and takes the sum as the
//! function's total. Under recursion that is right only if a sample comes into each function once:
//!
//! ```text
//!   main ─▶ a ─▶ b ─▶ a ─▶ b        one sample: main→a and a→b count it, b→a does not
//! ```
//!
//! So what comes in over all arcs of a function, those from outside of all functions included, is
//! its total: the weight of the samples with the function anywhere on the stack, each once.

use std::collections::BTreeMap;

use crate::base::IdVec;
use crate::profile::{FunctionId, LineId, Profile};

use super::{CallStacks, StackId};

/// A function at a line of its code, where it is known.
pub type At = (FunctionId, Option<LineId>);

/// The weights of calls and of the functions themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutermostCalls {
    /// The weight taken in each function itself, by line.
    pub selves: BTreeMap<At, u64>,
    /// The weight that came into a callee by each call: of the caller with the line of the call
    /// (`None` for outermost frames), and the callee.
    pub calls: BTreeMap<(Option<At>, FunctionId), u64>,
}

impl OutermostCalls {
    /// Counts the calls. Linear in frames and samples.
    ///
    /// ```
    /// use proftool::analysis::call_stacks::{CallStacks, OutermostCalls};
    /// use proftool::analysis::tree::Collapse;
    /// use proftool::base::Id;
    /// use proftool::input::folded;
    /// use proftool::profile::{EventId, Filter, FunctionId};
    ///
    /// let profile = folded::read("main;a;b;a;b 5\n".as_bytes(), &mut |_| {}).unwrap();
    /// let selection = profile.select(EventId::new(0), &Filter::default());
    /// let stacks = CallStacks::of(&profile, &selection, Collapse::None);
    /// let calls = OutermostCalls::of(&profile, &stacks).calls;
    /// let [main, a, b] = [0, 1, 2].map(FunctionId::new);
    /// assert_eq!(calls[&(None, main)], 5);
    /// assert_eq!(calls[&(Some((main, None)), a)], 5);
    /// assert!(!calls.contains_key(&(Some((b, None)), a)));
    /// ```
    pub fn of(profile: &Profile, stacks: &CallStacks) -> OutermostCalls {
        let frames = &stacks.frames;
        let mut counted = OutermostCalls::default();
        let mut totals: IdVec<StackId, u64> = IdVec::filled(0, frames.len());
        for sample in &stacks.samples {
            let frame = &frames[sample.stack];
            let own = counted
                .selves
                .entry((frame.function, frame.line))
                .or_default();
            *own = own.saturating_add(sample.weight);
            totals[sample.stack] = totals[sample.stack].saturating_add(sample.weight);
        }
        // The first callee of each frame, and after a callee the next one of the same caller.
        let mut first: IdVec<StackId, Option<StackId>> = IdVec::filled(None, frames.len());
        let mut next: IdVec<StackId, Option<StackId>> = IdVec::filled(None, frames.len());
        let mut root = None;
        for (id, frame) in frames.enumerate().rev() {
            let head = match frame.caller {
                Some(caller) => {
                    totals[caller] = totals[caller].saturating_add(totals[id]);
                    &mut first[caller]
                }
                None => &mut root,
            };
            next[id] = head.replace(id);
        }
        let mut depth = IdVec::filled(0u32, profile.functions.len());
        let mut at = root;
        while let Some(mut id) = at {
            let frame = &frames[id];
            if depth[frame.function] == 0 && totals[id] > 0 {
                let caller = frame.caller.map(|caller| {
                    let caller = &frames[caller];
                    (caller.function, caller.line)
                });
                let sum = counted.calls.entry((caller, frame.function)).or_default();
                *sum = sum.saturating_add(totals[id]);
            }
            depth[frame.function] += 1;
            at = first[id];
            while at.is_none() {
                depth[frames[id].function] -= 1;
                at = next[id];
                match frames[id].caller {
                    Some(caller) if at.is_none() => id = caller,
                    _ => break,
                }
            }
        }
        counted
    }
}
