//! The call graph: one node a function, one arc for each pair and kind of call.
//!
//! ```text
//!   calls in the code        arcs                          cycles
//!   main ─▶ even             main ─▶ even   call, 2 sites
//!   main ─▶ even
//!   even ─▶ odd              even ─▶ odd    call, 1 site   {even, odd}
//!   odd  ─▶ even             odd  ─▶ even   tail, 1 site
//! ```
//!
//! Functions are those of a [`Profile`](crate::profile::Profile) and have its ids; the graph
//! adds columns beside that table. Arcs found in the code say what *may* be called; whether it
//! was is for samples to say.

mod cycles;

pub use cycles::find as find_cycles;

use crate::base::{Id, IdVec};
use crate::profile::FunctionId;

/// Where an arc comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ArcKind {
    /// The code calls the callee directly.
    Call,
    /// The code jumps to the callee, which returns to the caller's caller.
    Tail,
    /// The code calls the callee by name; the dynamic linker resolves it.
    Import,
}

impl ArcKind {
    /// Its name, as formats have it.
    pub fn name(self) -> &'static str {
        match self {
            ArcKind::Call => "call",
            ArcKind::Tail => "tail",
            ArcKind::Import => "import",
        }
    }
}

/// Calls of one kind from one function to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arc {
    /// The caller.
    pub from: FunctionId,
    /// The callee.
    pub to: FunctionId,
    /// How it is called.
    pub kind: ArcKind,
    /// In how many places the code does so.
    pub sites: u64,
}

/// What the code of a function says of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Its size in bytes; 0 for imported functions.
    pub size: u64,
    /// Whether only its name is known: another file defines it.
    pub imported: bool,
    /// Calls in it whose callees are not known.
    pub indirect_calls: u64,
    /// Jumps in it that may be tail calls, or the tables of switches.
    pub indirect_jumps: u64,
}

/// A call graph: see the [module's page](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallGraph {
    /// A row for each function of the profile.
    pub nodes: IdVec<FunctionId, Node>,
    /// The arcs, sorted by caller, callee and kind, each once.
    pub arcs: Vec<Arc>,
    /// Functions that all reach each other by calls, two or more each; members in order of id,
    /// cycles in order of their first members.
    pub cycles: Vec<Vec<FunctionId>>,
}

impl CallGraph {
    /// The graph of these functions and calls, one call a site.
    ///
    /// ```
    /// use proftool::base::{Id, IdVec};
    /// use proftool::callgraph::{ArcKind, CallGraph, Node};
    /// use proftool::profile::FunctionId;
    ///
    /// let nodes = IdVec::filled(Node::default(), 3);
    /// let [main, even, odd] = [0, 1, 2].map(FunctionId::new);
    /// let calls = [
    ///     (main, even, ArcKind::Call),
    ///     (main, even, ArcKind::Call),
    ///     (even, odd, ArcKind::Call),
    ///     (odd, even, ArcKind::Tail),
    /// ];
    /// let graph = CallGraph::new(nodes, calls);
    /// assert_eq!((graph.arcs.len(), graph.arcs[0].sites), (3, 2));
    /// assert_eq!(graph.cycles, [[even, odd]]);
    /// ```
    ///
    /// Calls of functions that have no node are left out.
    pub fn new(
        nodes: IdVec<FunctionId, Node>,
        calls: impl IntoIterator<Item = (FunctionId, FunctionId, ArcKind)>,
    ) -> CallGraph {
        let mut calls: Vec<_> = calls.into_iter().collect();
        calls.retain(|(from, to, _)| from.index().max(to.index()) < nodes.len());
        calls.sort_unstable();
        let arcs: Vec<Arc> = calls
            .chunk_by(|a, b| a == b)
            .map(|same| {
                let (from, to, kind) = same[0];
                Arc {
                    from,
                    to,
                    kind,
                    sites: same.len() as u64,
                }
            })
            .collect();
        let cycles = cycles::find(nodes.len(), arcs.iter().map(|arc| (arc.from, arc.to)));
        CallGraph {
            nodes,
            arcs,
            cycles,
        }
    }

    /// The arcs from a function.
    pub fn callees(&self, function: FunctionId) -> &[Arc] {
        let from = self.arcs.partition_point(|arc| arc.from < function);
        let to = self.arcs.partition_point(|arc| arc.from <= function);
        &self.arcs[from..to]
    }

    /// For each function the index of its cycle in [`CallGraph::cycles`].
    pub fn cycle_of(&self) -> IdVec<FunctionId, Option<usize>> {
        let mut of = IdVec::filled(None, self.nodes.len());
        for (index, members) in self.cycles.iter().enumerate() {
            for &member in members {
                of[member] = Some(index);
            }
        }
        of
    }
}
