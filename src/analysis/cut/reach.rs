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
//! Where code was only followed from the functions of samples (see [`Followed`]), other functions have
//! no rows, and it is not known whose addresses something holds: an indirect call may lead to any.
//!
//! Functions of the kernel call no function of a program, and every function of a program can get
//! into the kernel: by system calls, page faults and interrupts.

use std::cmp::Reverse;

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::{Cut, is_row};
use crate::base::{IdVec, define_id};
use crate::profile::{CallKind, Followed, FunctionId, FunctionKind, Profile};

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

/// How many calls away from the entry of a program the code is that may call `main`.
const START_UP_CALLS: usize = 4;

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
        match indirect && !self.unread[function] {
            true => Unknown::IndirectCall,
            false => Unknown::Code,
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

/// What the code says of each function.
struct Known {
    ways: IdVec<Node, u8>,
    /// The nodes of the functions that were followed.
    followed: Vec<Node>,
    /// Whether copies of it may be where nothing was read.
    copied: IdVec<FunctionId, bool>,
    unread: IdVec<FunctionId, bool>,
    kernel: IdVec<FunctionId, bool>,
    /// Whether an indirect call may be one of it.
    target: IdVec<FunctionId, bool>,
    /// Whether it is a function whose address the entry of a program takes.
    main: IdVec<FunctionId, bool>,
}

impl Known {
    fn of(profile: &Profile) -> Known {
        match &profile.code.followed {
            Some(followed) if !profile.code.is_whole => Known::of_followed(profile, followed),
            _ => Known::of_whole(profile),
        }
    }

    fn nothing(functions: usize) -> Known {
        Known {
            ways: IdVec::filled(0, functions),
            followed: Vec::new(),
            copied: IdVec::filled(false, functions),
            unread: IdVec::filled(false, functions),
            kernel: IdVec::filled(false, functions),
            target: IdVec::filled(false, functions),
            main: IdVec::filled(false, functions),
        }
    }

    /// By code that was followed from the functions of samples.
    fn of_followed(profile: &Profile, followed: &Followed) -> Known {
        let mut known = Known::nothing(profile.functions.len());
        let mut is_followed = IdVec::filled(false, profile.functions.len());
        for function in &followed.functions {
            let node = match function.function {
                Some(id) => {
                    is_followed[id] = true;
                    Node::of(id)
                }
                None => known.ways.push(0),
            };
            known.followed.push(node);
            // Of a function with several copies any may lead there.
            if function.calls_unknown {
                known.ways[node] |= way::INDIRECT | way::ANYWHERE;
            }
            if function.is_unread {
                known.ways[node] |= way::UNREAD | way::ANYWHERE;
            }
        }
        for (id, function) in profile.functions.enumerate() {
            known.kernel[id] = profile.code.kernel.binary_search(&function.module).is_ok();
        }
        for &id in &followed.copied {
            known.copied[id] = !known.kernel[id];
        }
        for (id, function) in profile.functions.enumerate() {
            known.unread[id] = !is_followed[id] && !function.is_cut_mark() && !is_row(profile, id);
            // What is only inlined is read with the functions that it is known to be in. They do
            // not lead where its other copies may.
            if known.unread[id] && !known.kernel[id] && !known.copied[id] {
                known.ways[Node::of(id)] = way::UNREAD | way::ANYWHERE;
            }
        }
        known
    }

    /// By all of the code, or by none.
    fn of_whole(profile: &Profile) -> Known {
        let code = &profile.code;
        let mut known = Known::nothing(profile.functions.len());
        let of = |id: FunctionId| {
            let known = code.functions.get(id).and_then(Option::as_ref);
            known.filter(|_| code.is_whole)
        };
        let mut is_read = IdVec::filled(false, profile.modules.len());
        for (id, function) in profile.functions.enumerate() {
            match of(id) {
                Some(code) if code.imported => known.ways[Node::of(id)] = way::UNREAD,
                Some(code) => {
                    is_read[function.module] = true;
                    known.target[id] = code.pointers_in_data > 0 || code.can_be_found;
                    known.ways[Node::of(id)] = match code.calls_indirectly() {
                        true => way::INDIRECT,
                        false => 0,
                    };
                }
                None => known.unread[id] = !function.is_cut_mark() && !is_row(profile, id),
            }
        }
        known.read_what_is_inlined(profile);
        for (id, function) in profile.functions.enumerate() {
            known.kernel[id] = code.kernel.binary_search(&function.module).is_ok();
            known.target[id] &= !known.kernel[id];
            if known.unread[id] && !known.kernel[id] {
                known.target[id] = true;
                known.ways[Node::of(id)] = way::UNREAD;
                if is_read[function.module] {
                    known.ways[Node::of(id)] |= way::ANYWHERE;
                }
            }
        }
        for call in code.calls.iter().filter(|call| !call.kind.is_call()) {
            match of(call.from).is_some_and(|code| code.is_entry) {
                true => known.main[call.to] = true,
                false => known.target[call.to] |= !known.kernel[call.to],
            }
        }
        known.start_up(profile);
        known
    }

    /// A function that exists only as copies in others was read with these. Which of their indirect
    /// calls are in the copy is not known: it may be all.
    fn read_what_is_inlined(&mut self, profile: &Profile) {
        let inlined = |kind: CallKind| kind == CallKind::Inlined;
        let code = &profile.code;
        let calls = code.calls.iter().filter(|call| inlined(call.kind));
        let mut copies: Vec<(FunctionId, FunctionId)> =
            calls.map(|call| (call.from, call.to)).collect();
        copies.sort_unstable();
        // Those that are read, or become so, and whose copies are to be looked at.
        let hosts = copies.iter().map(|&(host, _)| host);
        let mut open: Vec<FunctionId> = hosts.filter(|&host| !self.unread[host]).collect();
        let only_copies = self.unread.clone();
        open.dedup();
        while let Some(host) = open.pop() {
            let from = copies.partition_point(|&(from, _)| from < host);
            for &(_, copy) in copies[from..].iter().take_while(|(from, _)| *from == host) {
                if !only_copies[copy] {
                    continue;
                }
                let (host, node) = (Node::of(host), Node::of(copy));
                let ways = self.ways[node] | self.ways[host];
                if self.unread[copy] || ways != self.ways[node] {
                    self.unread[copy] = false;
                    self.ways[node] = ways;
                    open.push(copy);
                }
            }
        }
        for &(host, copy) in &copies {
            if self.unread[host] && only_copies[copy] {
                self.ways[Node::of(copy)] |= way::UNREAD;
            }
        }
    }

    /// The code between the entry of a program and `main`: what makes indirect calls there and is
    /// called from nowhere else.
    fn start_up(&mut self, profile: &Profile) {
        let code = &profile.code;
        let calls = code.calls.iter().filter(|call| call.kind.is_call());
        let mut calls: Vec<(FunctionId, FunctionId)> =
            calls.map(|call| (call.from, call.to)).collect();
        calls.dedup();
        let mut callers = IdVec::filled(0u32, profile.functions.len());
        for &(_, callee) in &calls {
            callers[callee] += 1;
        }
        let entries = code.functions.enumerate();
        let entries = entries.filter(|(_, code)| code.is_some_and(|code| code.is_entry));
        let mut open: Vec<FunctionId> = entries.map(|(id, _)| id).collect();
        for &entry in &open {
            self.ways[Node::of(entry)] |= way::START;
        }
        for _ in 0..START_UP_CALLS {
            let mut next = Vec::new();
            for &caller in &open {
                let from = calls.partition_point(|&(from, _)| from < caller);
                for &(_, callee) in calls[from..].iter().take_while(|(from, _)| *from == caller) {
                    callers[callee] -= 1;
                    if callers[callee] == 0 {
                        next.push(callee);
                    }
                }
            }
            for &callee in &next {
                let ways = &mut self.ways[Node::of(callee)];
                if *ways != 0 {
                    *ways |= way::START;
                }
            }
            open = next;
        }
    }
}

/// All calls that are known, sorted, each pair once: those that samples show, of any event and
/// thread, and those in the code.
fn calls(profile: &Profile, known: &Known) -> Vec<(Node, Node)> {
    let observed = profile.paths.enumerate().filter_map(|(_, path)| {
        let caller = profile.paths[path.caller?].function;
        let is_call = caller != path.function
            && !profile.functions[caller].is_cut_mark()
            && !is_row(profile, caller)
            && !is_row(profile, path.function);
        is_call.then_some((caller, path.function))
    });
    let code = &profile.code;
    let picks = |id: FunctionId| {
        let code = code.functions.get(id).copied().flatten();
        code.is_some_and(|code| code.picks)
    };
    let in_code = code.calls.iter();
    let in_code = in_code.filter(|call| call.kind.is_call() || picks(call.from));
    let in_code = in_code.map(|call| (call.from, call.to));
    let calls = observed.chain(in_code);
    let mut calls: Vec<(Node, Node)> = calls
        .map(|(from, to)| (Node::of(from), Node::of(to)))
        .collect();
    let followed = code.followed.as_ref().map(|followed| &followed.calls);
    for &(from, to) in followed.into_iter().flatten() {
        let node = |place: u32| known.followed.get(place as usize).copied();
        calls.extend(node(from).zip(node(to)));
    }
    calls.sort_unstable();
    calls.dedup();
    calls
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
