//! All figures of a call tree, in one value: its nodes, their upper bounds, and why recursion is
//! collapsed as far as it is.

use super::{CallTree, Collapse, Direction, NodeId, Reach, Repeats, Stacks};
use crate::analysis::cut::{self, AtMost};
use crate::base::IdVec;
use crate::callgraph::CallGraph;
use crate::profile::FunctionId;

/// By what the degree is chosen in which recursion is collapsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Degree {
    /// By the [`Repeats`] of stacks that recurse.
    #[default]
    ByRepeats,
    /// This one for stacks that recurse.
    OfRecursion(Collapse),
    /// This one for any stacks.
    Fixed(Collapse),
}

/// Which tree is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Its direction.
    pub direction: Direction,
    /// How far recursion is collapsed.
    pub degree: Degree,
    /// Bottom up, how far callers are followed.
    pub reach: Reach,
    /// Top down, up to which number the rows of other degrees are counted; `None` for not at all.
    pub counted: Option<usize>,
    /// Top down, whether callees that only the code has are added: see [`CallTree::with_code`].
    pub with_code: bool,
}

impl Options {
    /// A tree from callers to callees in this degree.
    pub fn of(degree: Collapse) -> Options {
        Options {
            degree: Degree::Fixed(degree),
            ..Options::default()
        }
    }
}

/// The figures of a call tree.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The tree.
    pub calls: CallTree,
    /// Its direction.
    pub direction: Direction,
    /// What the weights of its nodes are at most; `None` where no stacks are cut.
    pub at_most: Option<IdVec<NodeId, AtMost>>,
    /// The function that the stacks begin at, with the weight of the samples that have it; `None`
    /// where whole stacks are shown.
    pub root: Option<(FunctionId, u64)>,
    /// Whether some function is on some stack more than once.
    pub recurses: bool,
    /// Why the degree was chosen, if it was by this.
    pub repeats: Option<Repeats>,
    /// Where stacks recurse: the rows that the tree has in each degree of [`Collapse::ALL`], as far
    /// as they were counted.
    pub rows: Option<[Option<usize>; 4]>,
    /// Bottom up, the number of frames of the deepest stack.
    pub deepest: u32,
}

impl Summary {
    /// Makes the tree of these stacks. Linear in paths and functions, and for a tree of callers in
    /// its nodes, whose number can grow with the square of the depth.
    ///
    /// ```
    /// use proftool::analysis::tree::{Collapse, Options, Stacks, Summary};
    /// use proftool::input::folded;
    /// use proftool::profile::{EventId, Filter};
    ///
    /// let profile = folded::read("main;fib;fib 3\nmain 1\n".as_bytes(), &mut |_| {}).unwrap();
    /// let selection = profile.select(EventId::new(0), &Filter::default());
    /// let stacks = Stacks::new(&profile, &selection);
    /// let summary = Summary::of(stacks, &Options::default());
    /// // One of three nodes repeats a function, too few to collapse recursion.
    /// assert_eq!(summary.repeats.map(|it| (it.nodes, it.repeating)), Some((3, 1)));
    /// assert_eq!(summary.calls.collapse, Collapse::None);
    /// ```
    pub fn of(stacks: Stacks, options: &Options) -> Summary {
        let (profile, selection) = (stacks.profile, stacks.selection);
        let root = stacks.root.map(|function| (function, stacks.weight()));
        let recurses = stacks.recurse();
        let mut repeats = None;
        let degree = match options.degree {
            Degree::Fixed(degree) => degree,
            Degree::OfRecursion(degree) if recurses => degree,
            Degree::ByRepeats if recurses => repeats.insert(stacks.repeats()).degree(),
            Degree::OfRecursion(_) | Degree::ByRepeats => Collapse::None,
        };
        let mut rows = None;
        let mut deepest = 0;
        let calls = match options.direction {
            Direction::BottomUp => {
                deepest = stacks.deepest();
                stacks.bottom_up(degree, options.reach)
            }
            Direction::TopDown => {
                let calls = stacks.top_down(degree);
                rows = options.counted.filter(|_| recurses).map(|most| {
                    Collapse::ALL.map(|other| match other == degree {
                        true => Some(calls.nodes.len()),
                        false => stacks.rows(other, most),
                    })
                });
                match options.with_code {
                    true => calls.with_code(&CallGraph::of(profile, selection)),
                    false => calls,
                }
            }
        };
        drop(stacks);
        let direction = options.direction;
        let is_cut = cut::is_any(profile);
        let at_most = is_cut.then(|| super::at_most(profile, selection, &calls, direction));
        Summary {
            calls,
            direction,
            at_most,
            root,
            recurses,
            repeats,
            rows,
            deepest,
        }
    }

    /// What the weight of a node is at most: more than it where stacks are cut, and samples may
    /// have passed the node outside of the cut.
    pub fn at_most(&self, node: NodeId) -> AtMost {
        let known = self.at_most.as_ref().map(|at_most| at_most[node]);
        known.unwrap_or_else(|| AtMost {
            weight: self.calls.nodes.at(node).weight(),
            unknown: None,
        })
    }
}
