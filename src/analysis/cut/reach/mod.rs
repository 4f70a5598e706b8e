//! Which functions can be in the holes of stacks: those that reach the function inside of the hole,
//! and are reached from the one outside of it, if there is one; or the known candidates, if the
//! code names them.
//!
//! ```text
//!   main ─▶ parse ─▶ lex ─▶ fill ─(*hook)(…)─┐     certain: main, parse and lex reach fill
//!             │                              ▼     possible: all four reach what the hook may be
//!             └────▶ expr ⟲            ( indirect ) ─▶ on_data, compare, …: known addresses
//! ```
//!
//! A call that samples or the code show certainly leads to its callee. An indirect call leads to
//! any function whose address something in the code or data holds, that other files can find by
//! name, or whose code was not read. A function whose code was not read may make indirect calls,
//! and if others of its file were read, calls of any of the file's functions.
//!
//! The entry of a program takes the address of `main` and passes it only to the start-up code.
//! Without this exception every function with an indirect call could be a caller of `main`.
//!
//! Where code was only followed from the functions of samples (see
//! [`Followed`](crate::profile::Followed)), other functions have no rows, and it is not known whose
//! addresses are taken: an indirect call may lead to any of them.
//!
//! Functions of the kernel call no function of a program, and every function of a program can get
//! into the kernel: by system calls, page faults and interrupts.

mod known;

use std::cmp::Reverse;

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::FxHashMap;

use self::known::{Known, calls};
use super::holes::{Hole, Holes};
use super::is_row;
use crate::base::{IdVec, define_id};
use crate::profile::{FunctionId, FunctionKind, Profile};

define_id! {
    // A function of the profile, or behind the last of these one that only followed code has.
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

// How many holes are distinguished, those between the same cycles being one; the last bit of a word
// is for all others: they are the lightest, and a function that may be in one of them counts as one
// that may be in all. That makes bounds larger, never too small.
const APART: usize = 63;

// What stands outside of what is known: the ways that lead on from there are in [`Reach::of`].
mod way {
    // An indirect call.
    pub const INDIRECT: u8 = 1;
    // Code that was not read.
    pub const UNREAD: u8 = 2;
    // To any function: unread code in a file whose other code was read, or code that is not known
    // well enough to say what an indirect call may reach.
    pub const ANYWHERE: u8 = 4;
    // Start-up code, which has the address of `main`.
    pub const START: u8 = 8;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reached {
    // The classes of holes inside of which a function of these stands, a bit each.
    classes: u64,
    // The ways out of what is known.
    ways: u8,
}

impl Reached {
    fn add(&mut self, other: Reached) {
        self.classes |= other.classes;
        self.ways |= other.ways;
    }
}

pub(super) struct Reach {
    // The class of each hole, by its place.
    classes: Vec<u64>,
    // What each node reaches by calls that are known.
    certain: IdVec<Node, Reached>,
    // The classes with functions inside of them that each function can be in, by calls that are
    // known.
    certainly_in: IdVec<FunctionId, u64>,
    possibly_in: IdVec<FunctionId, u64>,
    // Whether the code of the function itself was not read.
    unread: IdVec<FunctionId, bool>,
}

impl Reach {
    pub(super) fn of(profile: &Profile, holes: &Holes) -> Reach {
        let known = Known::of(profile);
        let calls = calls(profile, &known);
        let components = components(known.ways.len(), &calls);
        let classes = classes(holes, &components, known.ways.len());
        let calls = Calls {
            starts: starts(known.ways.len(), &calls),
            calls,
            components,
        };
        let mut certain: IdVec<Node, Reached> = IdVec::filled(Reached::default(), known.ways.len());
        for id in certain.ids() {
            certain[id].ways = known.ways[id];
        }
        let mut inside = IdVec::filled(0, profile.functions.len());
        let mut outside: IdVec<Node, u64> = IdVec::filled(0, known.ways.len());
        // Nothing is known of what called outside of a cut.
        let mut anywhere = 0;
        // Where the candidates are known, nothing else is to be found out.
        let mut candidate: IdVec<FunctionId, u64> = IdVec::filled(0, profile.functions.len());
        for ((hole, _), &class) in holes.iter().zip(&classes) {
            if let Some(candidates) = hole.candidates {
                for &function in &profile.function_sets[candidates] {
                    candidate[function] |= class;
                }
                continue;
            }
            inside[hole.inner] |= class;
            match hole.outer {
                Some(outer) => outside[Node::of(outer)] |= class,
                None => anywhere |= class,
            }
        }
        for (id, &class) in inside.enumerate() {
            certain[Node::of(id)].classes = class;
        }
        calls.to_callers(&mut certain);
        let leads_to = leads_to(profile, &known, &certain, &inside);
        calls.to_callees(&mut outside);
        let mut certainly_in = IdVec::filled(0, profile.functions.len());
        for id in certainly_in.ids() {
            let from = outside[Node::of(id)] | anywhere;
            certainly_in[id] = certain[Node::of(id)].classes & from;
        }
        led_to(profile, &known, &calls, &mut outside);
        let mut possibly_in = leads_to;
        for id in certainly_in.ids() {
            possibly_in[id] &= outside[Node::of(id)] | anywhere;
        }
        for (function, &classes) in candidate.enumerate() {
            certainly_in[function] |= classes;
            possibly_in[function] |= classes;
        }
        Reach {
            classes,
            certain,
            certainly_in,
            possibly_in,
            unread: known.unread,
        }
    }

    // The class of a hole, as a bit.
    pub(super) fn class(&self, hole: usize) -> u64 {
        self.classes[hole]
    }

    // The classes of the holes that it can be in by calls that are known.
    pub(super) fn certain(&self, function: FunctionId) -> u64 {
        self.certainly_in[function]
    }

    pub(super) fn possible(&self, function: FunctionId) -> u64 {
        self.possibly_in[function]
    }

    // Why it is not known which of the possible ones it is in.
    pub(super) fn reason(&self, function: FunctionId) -> Unknown {
        let indirect = self.certain[Node::of(function)].ways & way::INDIRECT != 0;
        if indirect && !self.unread[function] {
            Unknown::IndirectCall
        } else {
            Unknown::Code
        }
    }
}

struct Calls {
    // Sorted.
    calls: Vec<(Node, Node)>,
    // For each node where its calls begin; one more entry behind the last.
    starts: Vec<u32>,
    // Strongly connected, callees first.
    components: Vec<Vec<Node>>,
}

impl Calls {
    fn callees(&self, node: Node) -> &[(Node, Node)] {
        let from = node.index();
        &self.calls[self.starts[from] as usize..self.starts[from + 1] as usize]
    }

    // Gives each node what its callees have, and theirs. The members of a component all reach the
    // same.
    fn to_callers(&self, reached: &mut IdVec<Node, Reached>) {
        for members in &self.components {
            let mut all = Reached::default();
            for &member in members {
                all.add(reached[member]);
                for &(_, callee) in self.callees(member) {
                    all.add(reached[callee]);
                }
            }
            for &member in members {
                reached[member] = all;
            }
        }
    }

    // Gives each node the classes that its callers have, and theirs.
    fn to_callees(&self, classes: &mut IdVec<Node, u64>) {
        for members in self.components.iter().rev() {
            let all = members.iter().fold(0, |all, &member| all | classes[member]);
            if all == 0 {
                continue;
            }
            for &member in members {
                classes[member] = all;
                for &(_, callee) in self.callees(member) {
                    classes[callee] |= all;
                }
            }
        }
    }
}

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

// Holes between functions of the same components are one class: whatever can be in one of them can
// be in all. So are those with the same candidates.
fn classes(holes: &Holes, components: &[Vec<Node>], nodes: usize) -> Vec<u64> {
    let mut component: IdVec<Node, u32> = IdVec::filled(0, nodes);
    for (number, members) in (0..).zip(components) {
        for &member in members {
            component[member] = number;
        }
    }
    let ends = |hole: Hole| {
        let of = |function| component[Node::of(function)];
        match hole.candidates {
            Some(candidates) => (None, None, Some(candidates)),
            None => (hole.outer.map(of), Some(of(hole.inner)), None),
        }
    };
    // A list that is sorted, as there may be a hole for each of millions of addresses: two tables
    // took 150 bytes for each.
    let holes_in_order = holes.iter().enumerate();
    let mut alike: Vec<_> = holes_in_order
        .map(|(place, (hole, cut))| (ends(hole), place, cut.weight))
        .collect();
    alike.sort_unstable();
    alike.dedup_by(|(other, _, weight), (ends, _, sum)| {
        let is_alike = other == ends;
        if is_alike {
            *sum = sum.saturating_add(*weight);
        }
        is_alike
    });
    // The heaviest come first; of those that weigh the same, the first.
    alike.sort_unstable_by_key(|&(_, first, weight)| (Reverse(weight), first));
    let apart = alike.iter().take(APART).enumerate();
    let bits: FxHashMap<_, u64> = apart.map(|(rank, &(ends, ..))| (ends, 1 << rank)).collect();
    let others = 1 << APART;
    let bit = |hole| bits.get(&ends(hole)).copied().unwrap_or(others);
    holes.iter().map(|(hole, _)| bit(hole)).collect()
}

// For each node the classes of holes whose outer function leads to it, by calls that are known and
// by those that are not. `outside` has what calls that are known tell.
fn led_to(profile: &Profile, known: &Known, calls: &Calls, outside: &mut IdVec<Node, u64>) {
    let all = outside.iter().fold(0, |all, classes| all | classes);
    loop {
        let (mut indirect, mut start, mut anywhere) = (0, 0, 0);
        for (node, &classes) in outside.enumerate() {
            let ways = known.ways[node];
            if ways & (way::INDIRECT | way::UNREAD) != 0 {
                indirect |= classes;
            }
            if ways & way::START != 0 {
                start |= classes;
            }
            if ways & way::ANYWHERE != 0 {
                anywhere |= classes;
            }
        }
        let mut is_more = false;
        for (id, function) in profile.functions.enumerate() {
            if function.kind == FunctionKind::Mark || is_row(profile, id) {
                continue;
            }
            let mut led = anywhere;
            if known.target[id] {
                led |= indirect;
            }
            if known.main[id] {
                led |= start;
            }
            // Copies may be anywhere, and everything leads into the kernel.
            if known.copied[id] || known.kernel[id] {
                led |= all;
            }
            let classes = &mut outside[Node::of(id)];
            is_more |= led & !*classes != 0;
            *classes |= led;
        }
        if !is_more {
            return;
        }
        calls.to_callees(outside);
    }
}

// The classes of holes to whose inner function each function may lead, by calls that are known and
// by those that are not.
fn leads_to(
    profile: &Profile,
    known: &Known,
    certain: &IdVec<Node, Reached>,
    inside: &IdVec<FunctionId, u64>,
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
        all |= inside[id];
        if known.kernel[id] {
            kernel |= inside[id];
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
