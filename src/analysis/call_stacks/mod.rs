//! The distinct call stacks of a selection, from which every format of stacks is written.
//!
//! ```text
//!   frames   0 main:9        caller: none           samples   thread 1  stack 1  weight 5
//!            1 parse:31      caller: 0                        thread 1  stack 2  weight 4
//!            2 lex:7         caller: 1                        thread 2  stack 2  weight 1
//! ```
//!
//! A stack is the id of its innermost frame; the frame's caller is a stack, too. A frame has the
//! line at which it was executing: the call that it was in, or for the innermost the line of the
//! sample. Lines of calls are there if the profile was read with them. A frame of collapsed
//! recursion has the line of the innermost of its calls.
//!
//! A profile adds equal samples up, so none of this has times.

mod outermost;

pub use outermost::{At, OutermostCalls};

use crate::base::{Distinct, IdVec, define_id};
use crate::profile::{
    FunctionId, LineId, PathId, PlaceId, Profile, SelectedRow, Selection, ThreadId,
};

use super::tree::{Collapse, Folded, FoldedNode, NodeId, Stacks};

define_id! {
    /// A row of [`CallStacks::frames`], and the stack that it is the innermost frame of.
    pub StackId
}

/// A frame, with the stack of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackFrame {
    /// The stack of its caller; `None` for an outermost frame. It has the smaller id.
    pub caller: Option<StackId>,
    /// The function.
    pub function: FunctionId,
    /// The line at which the frame was executing, where it is known.
    pub line: Option<LineId>,
    /// Whether the function's code was inlined into the caller's.
    pub inlined: bool,
    /// Whether it was not recorded but restored from the code.
    pub inferred: bool,
    /// Whether frames are missing between it and its caller.
    pub across_gap: bool,
}

/// The samples of one thread on one stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackSample {
    /// The thread.
    pub thread: ThreadId,
    /// The stack.
    pub stack: StackId,
    /// The sum of weights in the selection's unit.
    pub weight: u64,
    /// The number of samples.
    pub count: u64,
}

/// Distinct stacks with their weights: see the [module's page](self).
#[derive(Clone, Debug)]
pub struct CallStacks {
    /// The frames; the caller of a frame always has the smaller id.
    pub frames: IdVec<StackId, StackFrame>,
    /// By thread and stack, each pair once; their weights add up to the selection's total.
    pub samples: Vec<StackSample>,
}

impl CallStacks {
    /// Collects the stacks of a selection. Linear in rows, paths and places.
    ///
    /// ```
    /// use proftool::analysis::call_stacks::CallStacks;
    /// use proftool::analysis::tree::Collapse;
    /// use proftool::base::Id;
    /// use proftool::input::folded;
    /// use proftool::profile::{EventId, Filter};
    ///
    /// let profile = folded::read("main;fib;fib 3\nmain;fib 1\n".as_bytes(), &mut |_| {}).unwrap();
    /// let selection = profile.select(EventId::new(0), &Filter::default());
    /// let stacks = CallStacks::of(&profile, &selection, Collapse::None);
    /// assert_eq!((stacks.frames.len(), stacks.samples.len()), (3, 2));
    /// let stacks = CallStacks::of(&profile, &selection, Collapse::Direct);
    /// assert_eq!((stacks.frames.len(), stacks.samples[0].weight), (2, 4));
    /// ```
    pub fn of(profile: &Profile, selection: &Selection, collapse: Collapse) -> CallStacks {
        let (frames, mut samples) = match collapse {
            Collapse::None => whole(profile, selection),
            _ => collapsed(profile, selection, collapse),
        };
        samples.sort_unstable_by_key(|sample| (sample.thread, sample.stack));
        samples.dedup_by(|next, sum| {
            let same = (next.thread, next.stack) == (sum.thread, sum.stack);
            if same {
                sum.weight = sum.weight.saturating_add(next.weight);
                sum.count = sum.count.saturating_add(next.count);
            }
            same
        });
        CallStacks { frames, samples }
    }

    /// The frames of a stack from the innermost outwards, each with the stack that it ends.
    pub fn outwards(&self, stack: StackId) -> impl Iterator<Item = (StackId, &StackFrame)> {
        let first = Some((stack, &self.frames[stack]));
        std::iter::successors(first, |(_, frame)| {
            frame.caller.map(|caller| (caller, &self.frames[caller]))
        })
    }
}

type Collected = (IdVec<StackId, StackFrame>, Vec<StackSample>);

fn whole(profile: &Profile, selection: &Selection) -> Collected {
    let mut frames: Distinct<StackId, StackFrame> = Distinct::default();
    let add = |frames: &mut Distinct<StackId, StackFrame>, caller, path: PathId, line| {
        let path = &profile.paths[path];
        frames.id_of(StackFrame {
            caller,
            function: path.function,
            line,
            inlined: path.inlined,
            inferred: path.inferred,
            across_gap: path.across_gap,
        })
    };
    // Callers come before callees, so one pass from the last row finds all that are needed, and one
    // from the first adds them after their callers.
    let nowhere = IdVec::default();
    let tree = profile
        .places
        .as_ref()
        .map_or(&nowhere, |places| places.tree());
    let mut places = IdVec::filled(false, tree.len());
    let mut paths = IdVec::filled(false, profile.paths.len());
    for row in selection.rows() {
        match row.place {
            Some(place) => places[place] = true,
            None => paths[row.path] = true,
        }
    }
    for (id, place) in tree.enumerate().rev() {
        if let Some(caller) = place.caller.filter(|_| places[id]) {
            places[caller] = true;
        }
    }
    for (id, path) in profile.paths.enumerate().rev() {
        if let Some(caller) = path.caller.filter(|_| paths[id]) {
            paths[caller] = true;
        }
    }
    // The stack that each place or path was called from.
    let mut callers_of_places: IdVec<PlaceId, Option<StackId>> = IdVec::filled(None, tree.len());
    for (id, place) in tree.enumerate().filter(|&(id, _)| places[id]) {
        callers_of_places[id] = place.caller.map(|caller| {
            let outside = callers_of_places[caller];
            add(&mut frames, outside, tree[caller].path, place.line)
        });
    }
    let mut callers_of_paths: IdVec<PathId, Option<StackId>> =
        IdVec::filled(None, profile.paths.len());
    for (id, path) in profile.paths.enumerate().filter(|&(id, _)| paths[id]) {
        callers_of_paths[id] = path
            .caller
            .map(|caller| add(&mut frames, callers_of_paths[caller], caller, None));
    }
    let sample = |row: &SelectedRow| {
        let caller = match row.place {
            Some(place) => callers_of_places[place],
            None => callers_of_paths[row.path],
        };
        StackSample {
            thread: row.thread,
            stack: add(&mut frames, caller, row.path, row.line),
            weight: row.weight,
            count: row.samples,
        }
    };
    let samples = selection.rows().iter().map(sample).collect();
    (frames.into_rows(), samples)
}

fn collapsed(profile: &Profile, selection: &Selection, collapse: Collapse) -> Collected {
    let folded = Stacks::new(profile, selection).folded(collapse);
    let mut frames: Distinct<StackId, StackFrame> = Distinct::default();
    // A frame counts as restored, or as called across missing frames, if all that are folded into
    // it do.
    let mut recorded = IdVec::filled(false, folded.nodes.len());
    let mut adjacent = IdVec::filled(false, folded.nodes.len());
    for (id, path) in profile.paths.enumerate() {
        if let Some(node) = folded.of_paths[id] {
            recorded[node] |= !path.inferred;
            adjacent[node] |= !path.across_gap;
        }
    }
    let mut stacks: IdVec<_, Option<StackId>> = IdVec::filled(None, folded.nodes.len());
    let frame_of = |frames: &mut Distinct<StackId, StackFrame>, caller, id, line| {
        let node: &FoldedNode = &folded.nodes[id];
        frames.id_of(StackFrame {
            caller,
            function: node.function,
            line,
            inlined: node.inlined,
            inferred: !recorded[id],
            across_gap: !adjacent[id],
        })
    };
    // Nodes come after their callers, and stubs are no nodes of their own.
    for (id, node) in folded.nodes.enumerate() {
        if !node.is_stub {
            let caller = node.caller.and_then(|caller| stacks[caller]);
            stacks[id] = Some(frame_of(&mut frames, caller, id, None));
        }
    }
    let mut samples = Vec::with_capacity(selection.rows().len());
    let mut chain = Vec::new();
    for row in selection.rows() {
        let Some(node) = folded.of_paths[row.path] else {
            continue;
        };
        let mut stack = folded.nodes[node].caller.and_then(|caller| stacks[caller]);
        if let Some(place) = row.place {
            chain.clear();
            lines_of_calls(profile, &folded, place, node, &mut chain);
            stack = None;
            for &(node, line) in chain.iter().rev() {
                stack = Some(frame_of(&mut frames, stack, node, line));
            }
        }
        samples.push(StackSample {
            thread: row.thread,
            stack: frame_of(&mut frames, stack, node, row.line),
            weight: row.weight,
            count: row.samples,
        });
    }
    (frames.into_rows(), samples)
}

// Adds the nodes above `node`, which `place` leads to, from the innermost, each with the line of
// the call that leads out of it. Of several calls that are folded into a node, that is the
// innermost.
fn lines_of_calls(
    profile: &Profile,
    folded: &Folded,
    place: PlaceId,
    node: NodeId,
    chain: &mut Vec<(NodeId, Option<LineId>)>,
) {
    let nowhere = IdVec::default();
    let tree = (profile.places.as_ref()).map_or(&nowhere, |places| places.tree());
    let (mut place, mut above) = (place, folded.nodes[node].caller);
    while let (Some(node), Some(caller)) = (above, tree[place].caller) {
        if folded.of_paths[tree[caller].path] == Some(node) {
            chain.push((node, tree[place].line));
            above = folded.nodes[node].caller;
        }
        place = caller;
    }
    while let Some(node) = above {
        chain.push((node, None));
        above = folded.nodes[node].caller;
    }
}
