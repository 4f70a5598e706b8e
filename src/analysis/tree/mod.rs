//! Call trees: from the outermost functions inwards, or from the innermost outwards.
//!
//! ```text
//!   top down                    bottom up
//!   main        10              lex      6
//!   └─ parse     9              ├─ parse 5     lex was called by parse
//!      ├─ lex    5              │  └─ main 5
//!      └─ eval   4              └─ eval  1
//!         └─ lex 1                 └─ parse 1
//!                                     └─ main 1
//! ```
//!
//! Top down, the roots' weights add up to the total; bottom up, a root's weight is the self
//! weight of its function. In both a sample is at most once in a node.
//!
//! # Recursion
//!
//! A tree of a program that recurses is as deep as its stacks. HP's Puma (*HP/PAK Performance
//! Analysis Tools User's Guide*, chapter 3, "How Puma Analyzes Recursive Procedures") folds it:
//! where a call leads to a function that stands above already, the tree gets a *stub*, and the
//! stack goes on from the node that stands there. [`Collapse`] says which calls are folded.
//!
//! ```text
//!   every call a node        collapsed (direct, conservative and full)
//!   main        6   0        main        6       0
//!   └─ r        6   1        └─ r        6       3
//!      ├─ r     4   1           ├─ s     1 (2)   3
//!      │  ├─ r  2   1           └─ r...              to level 2
//!      │  │  └─ s 1 1
//!      │  └─ s  1   1        six samples, one in each of main r, main r s, main r r, main r r s,
//!      └─ s     1   1        main r r r, main r r r s; in or under the node, and in it only
//! ```
//!
//! A sample counts once in each node that its stack passes: as *direct* if it got there by calls
//! alone, as *indirect* if it had gone through a stub before it first came there. So the nodes
//! under a node may together have more weight than it, but none has more, and what ends in the
//! nodes adds up to the total in every tree.
//!
//! # Shape
//!
//! A tree is an arena in the order in which it is shown: a node, then its children, the heaviest
//! first and stubs last. No node owns another, so nothing recurses, dropping included.

mod arcs;
mod at_most;
mod code;
mod column;
mod flame;
mod folded;
mod growth;
mod hot;
mod inwards;
mod nodes;
mod outwards;
mod repeats;
mod summary;

pub use arcs::TreeArc;
pub use at_most::at_most;
pub use flame::{FlameFrame, FlameLayout};
pub use folded::{Folded, FoldedNode};
pub use hot::{HotPaths, Rest, Role, hot_paths};
pub use nodes::Nodes;
pub use repeats::Repeats;
pub use summary::{Degree, Options, Summary};

use crate::base::{IdVec, define_id};
use crate::profile::{FunctionId, Links, PathId, PathWeights, Profile, Selection, Step};

define_id! {
    /// A node or stub of [`CallTree::nodes`].
    pub NodeId
}

/// In which direction a tree is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// From callers to callees: its roots are the functions in which stacks begin.
    #[default]
    TopDown,
    /// From callees to callers: its roots are the functions in which samples were taken.
    BottomUp,
}

/// How far recursion is collapsed in a call tree: Puma's degrees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collapse {
    /// Nothing: every call is a node of its own.
    #[default]
    None,
    /// Calls of a function by itself are folded: `main a a b` to `main a b`.
    Direct,
    /// Calls are folded if no name is lost by it: `main a b a b` to `main a b`, as the `a` between
    /// the two `b` stands above them too; `main a b a` stays, or `b` would be lost.
    Conservative,
    /// Every call of a function that stands above is folded; no name is twice on a way down.
    Full,
}

impl Collapse {
    /// All degrees, from the least to the most.
    pub const ALL: [Collapse; 4] = [
        Collapse::None,
        Collapse::Direct,
        Collapse::Conservative,
        Collapse::Full,
    ];

    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Collapse::None => "none",
            Collapse::Direct => "direct",
            Collapse::Conservative => "conservative",
            Collapse::Full => "full",
        }
    }
}

/// A function as it was reached by one chain of calls, or a stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The function.
    pub function: FunctionId,
    /// The node above it.
    pub parent: Option<NodeId>,
    /// How deep it is; 1 for a root.
    pub level: u32,
    /// Where a stub leads, above it. A stub has no weights but `passes`, and no children.
    pub stub: Option<NodeId>,
    /// Whether all its code was inlined into the caller's: the caller is the node above it top
    /// down, the one below it bottom up.
    pub inlined: bool,
    /// Whether only the code shows it, and no sample: see [`CallTree::with_code`].
    pub in_code: bool,
    /// The weight of the samples that passed it, each once, and arrived by calls alone.
    pub direct: u64,
    /// The weight of the samples that passed it, each once, and had gone through a stub before
    /// they first arrived; 0 where nothing is collapsed.
    pub indirect: u64,
    /// The weight of the samples that end here: top down, taken in the function itself; bottom
    /// up, in stacks that begin with it.
    pub in_only: u64,
    /// The weight of the samples that go on from here but were not followed.
    pub cut: u64,
    /// The part of its weight that rests on restored frames: that of the samples whose recorded
    /// stacks do not pass it.
    pub inferred: u64,
    /// Top down, the part of its weight that came across missing frames, not by a call of the node
    /// above it; bottom up not known, and 0.
    pub across_gap: u64,
    /// The weight of the samples that went through this stub, each once.
    pub passes: u64,
}

impl Node {
    /// The weight of the samples that passed it, each once; 0 for a stub.
    pub fn weight(&self) -> u64 {
        self.direct + self.indirect
    }

    // The weights that only some nodes have, in the order of their columns.
    fn rare_weights(&self) -> [u64; 5] {
        [
            self.indirect,
            self.in_only,
            self.cut,
            self.inferred,
            self.across_gap,
        ]
    }

    /// The weight by which the heaviest are chosen: of a stub, that of the samples that went
    /// through it. Never more than that of its parent.
    pub fn standing(&self) -> u64 {
        self.weight() + self.passes
    }
}

/// A call tree: see the [module's page](self).
#[derive(Clone, Debug)]
pub struct CallTree {
    /// How far recursion was collapsed.
    pub collapse: Collapse,
    /// The nodes in order of appearance: each before its children.
    pub nodes: Nodes,
}

impl CallTree {
    /// The roots, the heaviest first.
    pub fn roots(&self) -> impl Iterator<Item = NodeId> {
        self.siblings(0, self.nodes.len())
    }

    /// The children of a node, the heaviest first, stubs last.
    pub fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        self.siblings(node.index() + 1, self.nodes.end(node))
    }

    fn siblings(&self, first: usize, end: usize) -> impl Iterator<Item = NodeId> {
        let known = move |index: usize| (index < end).then(|| NodeId::new(index));
        std::iter::successors(known(first), move |&node| known(self.nodes.end(node)))
    }
}

/// How far a bottom-up tree is followed. Its size can grow with the square of the depth of the
/// stacks, so there has to be an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The deepest level, counted from 1.
    pub depth: u32,
    /// Nodes of a lesser weight are not followed further; where recursion is collapsed, this
    /// applies to roots only, as the weight of a node is known last.
    pub min: u64,
}

impl Default for Reach {
    fn default() -> Self {
        Reach { depth: 64, min: 0 }
    }
}

/// The stacks of a selection, from which trees are made.
///
/// ```
/// use proftool::analysis::tree::{Collapse, Node, Stacks};
/// use proftool::base::Id;
/// use proftool::input::folded;
/// use proftool::profile::{EventId, Filter};
///
/// let text = "main;r 1\nmain;r;s 1\nmain;r;r 1\nmain;r;r;s 1\nmain;r;r;r 1\nmain;r;r;r;s 1\n";
/// let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
/// let selection = profile.select(EventId::new(0), &Filter::default());
/// let tree = Stacks::new(&profile, &selection).top_down(Collapse::Full);
/// let row = |n: Node| (n.level, n.direct, n.indirect, n.in_only);
/// let rows: Vec<_> = tree.nodes.iter().map(row).collect();
/// assert_eq!(rows, [(1, 6, 0, 0), (2, 6, 0, 3), (3, 1, 2, 3), (3, 0, 0, 0)]);
/// let stub = tree.nodes.iter().last().unwrap();
/// assert_eq!((stub.stub, stub.passes), (Some(Id::new(1)), 4));
/// ```
#[derive(Clone, Debug)]
pub struct Stacks<'a> {
    profile: &'a Profile,
    selection: &'a Selection,
    // The weight of the samples taken at the end of a path or further in.
    total: IdVec<PathId, u64>,
    links: Links,
    // Where they begin, if not whole.
    root: Option<FunctionId>,
}

impl<'a> Stacks<'a> {
    /// The whole stacks.
    pub fn new(profile: &'a Profile, selection: &'a Selection) -> Stacks<'a> {
        let weights = PathWeights::of(profile, selection);
        Stacks {
            links: Links::new(profile, &weights),
            total: weights.into_totals(),
            root: None,
            profile,
            selection,
        }
    }

    /// The stacks with this function on them, from where it stands outermost.
    pub fn within(
        profile: &'a Profile,
        selection: &'a Selection,
        function: FunctionId,
    ) -> Stacks<'a> {
        let weights = PathWeights::of(profile, selection);
        Stacks {
            links: Links::within(profile, &weights, function),
            total: weights.into_totals(),
            root: Some(function),
            profile,
            selection,
        }
    }

    /// The weight of the samples that are looked at.
    pub fn weight(&self) -> u64 {
        self.links.outermost().map(|path| self.total[path]).sum()
    }

    /// Whether some function stands twice on some stack. Linear in paths.
    pub fn recurse(&self) -> bool {
        let mut depth = IdVec::filled(0u32, self.profile.functions.len());
        let mut recurse = false;
        self.links.walk(&self.profile.paths, |step| match step {
            Step::Enter(path) => {
                let depth = &mut depth[self.profile.paths[path].function];
                recurse |= *depth > 0;
                *depth += 1;
            }
            Step::Leave(path) => depth[self.profile.paths[path].function] -= 1,
        });
        recurse
    }

    /// The number of frames of the deepest stack.
    pub fn deepest(&self) -> u32 {
        let (mut depth, mut deepest) = (0u32, 0u32);
        self.links.walk(&self.profile.paths, |step| match step {
            Step::Enter(_) => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            Step::Leave(_) => depth -= 1,
        });
        deepest
    }

    /// How many of the heaviest nodes would repeat a function above them if nothing were collapsed,
    /// by which the degree can be chosen. Looks at the top of the tree only.
    pub fn repeats(&self) -> Repeats {
        repeats::repeats(self)
    }

    /// The tree from the outermost functions inwards. Linear in paths and functions in any degree.
    pub fn top_down(&self, collapse: Collapse) -> CallTree {
        inwards::tree(self, collapse)
    }

    /// The number of rows, stubs included, that [`Stacks::top_down`] gives, if no more than
    /// `most`. Takes about half the time of the tree.
    pub fn rows(&self, collapse: Collapse, most: usize) -> Option<usize> {
        inwards::rows(self, collapse, most)
    }

    /// The nodes of the tree that [`Stacks::top_down`] gives, without weights, and the node that
    /// each path leads to. Linear in paths.
    pub fn folded(&self, collapse: Collapse) -> Folded {
        folded::folded(self, collapse)
    }

    /// The calls of the tree that [`Stacks::top_down`] gives, its nodes merged to functions. The
    /// functions' own weights and totals are those of the stacks as they were: no degree makes a
    /// sample end elsewhere, or leave a function out.
    pub fn arcs(&self, collapse: Collapse) -> Vec<TreeArc> {
        arcs::arcs(self, collapse)
    }

    /// The tree of callers from the functions in which samples were taken outwards.
    pub fn bottom_up(&self, collapse: Collapse, reach: Reach) -> CallTree {
        match collapse {
            Collapse::None => outwards::tree(self, reach),
            _ => outwards::collapsed(self, collapse, reach),
        }
    }
}
