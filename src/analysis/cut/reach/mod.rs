//! Which functions can reach the functions in which stacks are cut.
//!
//! ```text
//!   main ─▶ parse ─▶ lex ─▶ fill ─(*hook)(…)─┐       certain: main, parse and lex reach fill
//!             │                              ▼       possible: all four reach what the hook may be
//!             └────▶ expr ⟲            ( indirect ) ─▶ on_data, compare, … : whose address is known
//! ```
//!
//! Calls that samples or the code show lead for certain. An indirect call leads to any function
//! whose address something in the code or data holds, that other files can find by name, or whose
//! code was not read. A function whose code was not read may make indirect calls, and if others of
//! its file were read, calls of any of the file's functions.
//!
//! The address that the entry of a program takes, of `main`, is handed to the start-up code only:
//! else every function that calls through some pointer could be one that calls `main`.
//!
//! Where code was only followed from the functions of samples (see [`Followed`](crate::profile::Followed)), other functions have
//! no rows, and it is not known whose addresses something holds: an indirect call may lead to any.
//!
//! Functions of the kernel call no function of a program, and every function of a program can get
//! into the kernel: by system calls, page faults and interrupts.

mod known;

use std::cmp::Reverse;

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use self::known::{Known, calls};
use super::{Cut, is_row};
use crate::base::{IdVec, define_id};
use crate::profile::{FunctionId, FunctionKind, Profile};

define_id! {
    /// A function of the profile, or behind the last of these one that only followed code has.
    Node
}

impl Node {
    fn of(function: FunctionId) -> Node {
        Node::new(function.index())
    }
}

/// Why it is not known whether a function can reach another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unknown {
    /// It leads to indirect calls.
    IndirectCall,
    /// It leads to code that was not read, its own perhaps.
    Code,
    /// It is a module, a file or a line, and it is only known which functions call each other.
    Rows,
}

impl Unknown {
    /// Its name, as formats have it.
    pub fn name(self) -> &'static str {
        match self {
            Unknown::IndirectCall => "indirect calls",
            Unknown::Code => "code not read",
            Unknown::Rows => "not known by module, file, line or address",
        }
    }
}

/// How many cut functions, or cycles of them, are distinguished; the last bit of a word is for all
/// others: they are the lightest, and a function that reaches one of them counts as one that
/// reaches all. That makes bounds larger, never too small.
const APART: usize = 63;

/// What stands outside of what is known: the ways that lead on from there are in [`Reach::of`].
mod way {
    /// An indirect call.
    pub const INDIRECT: u8 = 1;
    /// Code that was not read.
    pub const UNREAD: u8 = 2;
    /// To any function: unread code in a file whose other code was read, or code that is not known
    /// well enough to say what an indirect call may reach.
    pub const ANYWHERE: u8 = 4;
    /// Start-up code, which has the address of `main`.
    pub const START: u8 = 8;
}

/// What is reached from a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reached {
    /// The classes of cut functions, a bit each.
    classes: u64,
    /// The ways out of what is known.
    ways: u8,
}

impl Reached {
    fn add(&mut self, other: Reached) {
        self.classes |= other.classes;
        self.ways |= other.ways;
    }
}

/// Which classes of cut functions are reached from where.
pub(super) struct Reach {
    /// The class of each function, if stacks are cut in it.
    class: IdVec<FunctionId, u64>,
    certain: IdVec<Node, Reached>,
    possible: IdVec<FunctionId, u64>,
    /// Whether the code of the function itself was not read.
    unread: IdVec<FunctionId, bool>,
    /// The weight of the samples of each class.
    weights: [u64; APART + 1],
}

impl Reach {
    pub(super) fn of(profile: &Profile, cut_at: &IdVec<FunctionId, Cut>) -> Reach {
        let known = Known::of(profile);
        let calls = calls(profile, &known);
        let components = components(known.ways.len(), &calls);
        let (class, weights) = classes(cut_at, &components);
        let mut certain: IdVec<Node, Reached> = IdVec::filled(Reached::default(), known.ways.len());
        for id in certain.ids() {
            certain[id].ways = known.ways[id];
        }
        for (id, &class) in class.enumerate() {
            certain[Node::of(id)].classes = class;
        }
        // Callees come first. The members of a component all reach the same.
        let starts = starts(known.ways.len(), &calls);
        for members in &components {
            let mut all = Reached::default();
            for &member in members {
                all.add(certain[member]);
                let from = member.index();
                for &(_, callee) in &calls[starts[from] as usize..starts[from + 1] as usize] {
                    all.add(certain[callee]);
                }
            }
            for &member in members {
                certain[member] = all;
            }
        }
        let possible = possible(profile, &known, &certain, &class);
        Reach {
            class,
            certain,
            possible,
            unread: known.unread,
            weights,
        }
    }

    /// The class of a cut function, as a bit.
    pub(super) fn class(&self, cut_function: FunctionId) -> u64 {
        self.class[cut_function]
    }

    /// The classes that it reaches by calls that are known.
    pub(super) fn certain(&self, function: FunctionId) -> u64 {
        self.certain[Node::of(function)].classes
    }

    /// The classes that it may reach.
    pub(super) fn possible(&self, function: FunctionId) -> u64 {
        self.possible[function]
    }

    /// Why it is not known which of the possible ones it reaches.
    pub(super) fn reason(&self, function: FunctionId) -> Unknown {
        let indirect = self.certain[Node::of(function)].ways & way::INDIRECT != 0;
        if indirect && !self.unread[function] {
            Unknown::IndirectCall
        } else {
            Unknown::Code
        }
    }

    /// The weight of the samples of these classes.
    pub(super) fn weight(&self, mut classes: u64) -> u64 {
        let mut sum = 0;
        while classes != 0 {
            sum += self.weights[classes.trailing_zeros() as usize];
            classes &= classes - 1;
        }
        sum
    }
}

/// For each node where its calls begin; one more entry behind the last.
fn starts(nodes: usize, calls: &[(Node, Node)]) -> Vec<u32> {
    let mut starts = vec![0u32; nodes + 1];
    for &(from, _) in calls {
        starts[from.index() + 1] += 1;
    }
    for index in 1..starts.len() {
        starts[index] += starts[index - 1];
    }
    starts
}

/// The strongly connected components, callees first.
fn components(nodes: usize, calls: &[(Node, Node)]) -> Vec<Vec<Node>> {
    let mut graph = DiGraph::<(), ()>::with_capacity(nodes, calls.len());
    for _ in 0..nodes {
        graph.add_node(());
    }
    for &(from, to) in calls {
        let [from, to] = [from, to].map(|id| NodeIndex::new(id.index()));
        graph.add_edge(from, to, ());
    }
    let ids = |nodes: Vec<NodeIndex>| nodes.into_iter().map(|n| Node::new(n.index()));
    let components = kosaraju_scc(&graph).into_iter();
    components.map(|nodes| ids(nodes).collect()).collect()
}

/// The class of each cut function, and the weight of each class. The cut functions of one component
/// are one class: a function that reaches one of them reaches all.
fn classes(
    cut_at: &IdVec<FunctionId, Cut>,
    components: &[Vec<Node>],
) -> (IdVec<FunctionId, u64>, [u64; APART + 1]) {
    // Stacks are cut only in functions of the profile.
    let weight_of = |node: Node| {
        let is_function = node.index() < cut_at.len();
        if is_function {
            cut_at[FunctionId::new(node.index())].weight
        } else {
            0
        }
    };
    let mut cut: Vec<(u64, Node, &[Node])> = Vec::new();
    for members in components {
        let weight = members.iter().map(|&node| weight_of(node)).sum();
        if let Some(&first) = members.iter().min().filter(|_| weight > 0) {
            cut.push((weight, first, members));
        }
    }
    cut.sort_unstable_by_key(|&(weight, first, _)| (Reverse(weight), first));
    let mut class = IdVec::filled(0, cut_at.len());
    let mut weights = [0; APART + 1];
    for (place, (weight, _, members)) in cut.into_iter().enumerate() {
        let bit = place.min(APART);
        weights[bit] += weight;
        for member in members.iter().filter(|&&node| weight_of(node) > 0) {
            class[FunctionId::new(member.index())] = 1 << bit;
        }
    }
    (class, weights)
}

/// The classes that each function may reach, by calls that are known and by those that are not.
fn possible(
    profile: &Profile,
    known: &Known,
    certain: &IdVec<Node, Reached>,
    class: &IdVec<FunctionId, u64>,
) -> IdVec<FunctionId, u64> {
    // What is reached from an indirect call, and from start-up code; what either leads to.
    let mut indirect = Reached::default();
    let mut start = Reached::default();
    let mut all = 0;
    let mut kernel = 0;
    for (id, function) in profile.functions.enumerate() {
        if function.kind == FunctionKind::Mark || is_row(profile, id) {
            continue;
        }
        let reached = certain[Node::of(id)];
        all |= class[id];
        if known.kernel[id] {
            kernel |= class[id];
        }
        if known.target[id] {
            indirect.add(reached);
        }
        if known.main[id] {
            start.add(reached);
        }
    }
    // Either may lead to the other.
    for _ in 0..2 {
        let by_indirect = follow(indirect.ways, indirect, start, all);
        let by_start = follow(start.ways, indirect, start, all);
        indirect.add(by_indirect);
        start.add(by_start);
    }
    let mut possible = IdVec::filled(0, profile.functions.len());
    for id in possible.ids() {
        let reached = certain[Node::of(id)];
        let on = follow(reached.ways, indirect, start, all).classes;
        let copies = if known.copied[id] { all } else { 0 };
        possible[id] = reached.classes | on | copies | kernel;
    }
    possible
}

/// What these ways lead to.
fn follow(ways: u8, indirect: Reached, start: Reached, all: u64) -> Reached {
    let mut reached = Reached::default();
    if ways & (way::INDIRECT | way::UNREAD) != 0 {
        reached.add(indirect);
    }
    if ways & way::START != 0 {
        reached.add(start);
    }
    if ways & way::ANYWHERE != 0 {
        reached.classes |= all;
    }
    reached
}
