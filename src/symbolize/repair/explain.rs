//! What must have been between two frames, where the code leaves one possibility.
//!
//! ```text
//!   recorded      main ─────────────────▶ leaf     but the call in main is one of work
//!   in the code   main ─call─▶ work ─call─▶ leaf   work's frame is missing: leaf keeps none
//!                 main ─call─▶ work ─jump─▶ leaf   work has made way for leaf
//! ```
//!
//! A frame is missing from a chain of frame pointers where the function behind it has none of its
//! own at the moment: the chain then goes through the frame of the function that called it, its
//! owner, whose return address nobody reads.
//!
//! Of all [ways](super::control_flow) from the function that was called to the one that is next on the
//! stack, functions are put in only if every way goes through them. Unknown code
//! is part of these ways: a call or jump through a pointer, a library that calls back, and a signal,
//! which may arrive anywhere. It leads on wherever something [may be entered](super::unknown_callers) from
//! which the next function is reached. So a function that jumps through a pointer may have made way
//! for any function whose address is taken, and nothing is put in; but calls through pointers never
//! change who the owner is.
//!
//! Where something unknown was called, functions are put in from the [only one](unknown_callers::only_entry)
//! on that every way to the next function comes through. Where several ways are left, the functions on
//! them are noted: they are all that may be missing.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::code::CodeReader;
use super::control_flow::{End, Finder, Step, Ways};
use super::frames::Frames;
use super::function_exits::FunctionStart;
use super::unknown_callers::{self, Entries};

/// A function that is missing, and how it was left.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Missing {
    pub(super) function: FunctionStart,
    /// The stated addresses behind the calls or jumps that may have left it; empty if it may have
    /// been left elsewhere.
    pub(super) left_at: Rc<[u64]>,
}

/// What explains a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Explanation {
    /// These functions are missing, outermost first.
    One(Vec<Missing>),
    /// There are several possibilities, of which these functions are; `None` if there may be others.
    Several(Option<Rc<[Missing]>>),
    /// Nothing in the code does.
    None,
}

impl Explanation {
    /// What explains a stack if either does.
    pub(super) fn or(self, other: &Explanation) -> Explanation {
        match (self, other) {
            (Explanation::None, other) => other.clone(),
            (this, Explanation::None) => this,
            (this, other) => {
                let both = this.candidates().zip(other.candidates());
                Explanation::Several(both.map(|(these, others)| {
                    let others = others.iter().filter(|other| !these.contains(other));
                    these.iter().chain(others).cloned().collect()
                }))
            }
        }
    }

    /// The functions that may be missing; `None` if there may be others.
    fn candidates(&self) -> Option<&[Missing]> {
        match self {
            Explanation::One(missing) => Some(missing),
            Explanation::Several(candidates) => candidates.as_deref(),
            Explanation::None => Some(&[]),
        }
    }
}

/// The places at which functions are left that may be missing are not looked at if there are more.
const PLACES: usize = 256;

/// These functions, left anywhere; by jumps only, or by calls as well. `None` if that is not known.
fn left_anywhere(
    functions: impl Iterator<Item = FunctionStart>,
    by_calls_too: bool,
    code: &mut CodeReader,
) -> Option<Rc<[Missing]>> {
    let mut places = 0;
    let missing = functions.map(|function| {
        let read = code.function(function).filter(|read| read.is_complete)?;
        let ways_out = read.ways_out.iter();
        let left_by = ways_out.filter(|out| by_calls_too || !out.is_call);
        let left_at: Rc<[u64]> = left_by
            .flat_map(|out| out.sites.iter().map(|site| site.end))
            .collect();
        places += left_at.len();
        (places <= PLACES).then_some(Missing { function, left_at })
    });
    missing.collect()
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    /// The function that was called.
    pub(super) called: FunctionStart,
    /// The next function on the stack.
    pub(super) next: FunctionStart,
    /// Whether the frame of what called `next` is missing; `None` if that is not known.
    pub(super) is_caller_missing: Option<bool>,
}

/// Answers questions, each once.
pub(super) struct Explanations {
    known: FxHashMap<Question, Explanation>,
    finder: Finder,
    /// What leads to functions from somewhere unknown, by whether the owner is missing.
    entries: FxHashMap<(FunctionStart, bool), Entries>,
    only_entries: FxHashMap<(FunctionStart, bool), Option<FunctionStart>>,
    candidates: FxHashMap<(FunctionStart, bool), Option<Rc<[Missing]>>>,
}

impl Explanations {
    pub(super) fn new() -> Explanations {
        Explanations {
            known: FxHashMap::default(),
            finder: Finder::new(),
            entries: FxHashMap::default(),
            only_entries: FxHashMap::default(),
            candidates: FxHashMap::default(),
        }
    }

    pub(super) fn of<'h>(
        &mut self,
        question: Question,
        code: &mut CodeReader<'h>,
        frames: &mut Frames<'h>,
    ) -> Explanation {
        if let Some(known) = self.known.get(&question) {
            return known.clone();
        }
        let found = self.find(question, code, frames);
        self.known.insert(question, found.clone());
        found
    }

    /// What leads to a function from somewhere unknown, by jumps alone.
    pub(super) fn entries(
        &mut self,
        next: FunctionStart,
        code: &mut CodeReader,
        frames: &mut Frames,
    ) -> Entries {
        let entries = self.entries.entry((next, false));
        *entries.or_insert_with(|| unknown_callers::entries(next, false, code, frames))
    }

    /// What explains a stack on which something unknown was called, but not `next`: what every way into
    /// that function goes through.
    pub(super) fn of_unknown_call<'h>(
        &mut self,
        next: FunctionStart,
        is_caller_missing: bool,
        code: &mut CodeReader<'h>,
        frames: &mut Frames<'h>,
    ) -> Explanation {
        let entry = self.only_entries.entry((next, is_caller_missing));
        let entry = *entry
            .or_insert_with(|| unknown_callers::only_entry(next, is_caller_missing, code, frames));
        let Some(called) = entry else {
            return Explanation::Several(self.candidates(next, is_caller_missing, code, frames));
        };
        let question = Question {
            called,
            next,
            is_caller_missing: Some(is_caller_missing),
        };
        match self.of(question, code, frames) {
            Explanation::None => Explanation::Several(None),
            found => found,
        }
    }

    /// The functions that may have been between something unknown that was called and `next`; `None` if
    /// there may be others. What was called and has made way for one of these by a jump through a
    /// pointer is not counted.
    fn candidates<'h>(
        &mut self,
        next: FunctionStart,
        is_caller_missing: bool,
        code: &mut CodeReader<'h>,
        frames: &mut Frames<'h>,
    ) -> Option<Rc<[Missing]>> {
        let known = self.candidates.get(&(next, is_caller_missing));
        if let Some(known) = known {
            return known.clone();
        }
        let leading = unknown_callers::leading_to(next, is_caller_missing, code, frames);
        let found =
            leading.and_then(|leading| left_anywhere(leading.into_iter(), is_caller_missing, code));
        self.candidates
            .insert((next, is_caller_missing), found.clone());
        found
    }

    fn find<'h>(
        &mut self,
        question: Question,
        code: &mut CodeReader<'h>,
        frames: &mut Frames<'h>,
    ) -> Explanation {
        let missing = question.is_caller_missing;
        let by_jumps_only = missing == Some(false);
        let ways = self
            .finder
            .ways(question.called, by_jumps_only, code, frames);
        let Some(ways) = ways else {
            return Explanation::Several(None);
        };
        let cases = [false, true]
            .into_iter()
            .filter(|case| missing.is_none_or(|missing| missing == *case));
        let mut found = Explanation::None;
        for is_owner_missing in cases {
            let mut case = Case {
                ways: &ways,
                next: question.next,
                is_owner_missing,
                stub: code.stub(question.next),
                may_link: code.may_run_while_linking(question.next),
                entries: &mut self.entries,
                code,
                frames,
            };
            found = found.or(&case.explain());
        }
        found
    }
}

/// One question, with one answer to whether the owner is missing.
struct Case<'s, 'h> {
    ways: &'s Ways,
    next: FunctionStart,
    is_owner_missing: bool,
    /// The name that `next` stands for, if it is a stub.
    stub: Option<String>,
    /// Whether the dynamic linker may run `next` when something is called for the first time.
    may_link: bool,
    entries: &'s mut FxHashMap<(FunctionStart, bool), Entries>,
    code: &'s mut CodeReader<'h>,
    frames: &'s mut Frames<'h>,
}

/// The ways that lead to the next function, as a graph of indices: those of nodes, and then
/// [`Case::goal`] and the places from which unknown code goes on.
struct Graph {
    /// For each index where it leads, with the step.
    to: Vec<Vec<(usize, Option<Step>)>>,
    /// Whether it leads to the goal.
    is_on_way: Vec<bool>,
}

impl Graph {
    /// The different indices on the way that follow one, in order.
    fn next(&self, index: usize) -> Vec<usize> {
        let on_way = self.to[index].iter().map(|&(to, _)| to);
        let mut next: Vec<usize> = on_way.filter(|&to| self.is_on_way[to]).collect();
        next.sort_unstable();
        next.dedup();
        next
    }

    /// The steps from one index to another.
    fn steps(&self, from: usize, to: usize) -> impl Iterator<Item = &Step> {
        let steps = self.to[from].iter();
        steps.filter_map(move |(other, step)| step.as_ref().filter(|_| *other == to))
    }
}

impl Case<'_, '_> {
    fn goal(&self) -> usize {
        self.ways.nodes.len()
    }

    /// Where unknown code goes on, behind the owner or not.
    fn anywhere(&self, is_behind: bool) -> usize {
        self.goal() + 1 + usize::from(is_behind)
    }

    fn entries(&mut self) -> Entries {
        let key = (self.next, self.is_owner_missing);
        if let Some(&known) = self.entries.get(&key) {
            return known;
        }
        let found =
            unknown_callers::entries(self.next, self.is_owner_missing, self.code, self.frames);
        self.entries.insert(key, found);
        found
    }

    fn explain(&mut self) -> Explanation {
        let is_next = |node: &super::control_flow::Node| {
            node.function == self.next && node.is_behind == self.is_owner_missing
        };
        if self.ways.nodes.first().is_some_and(is_next) {
            return Explanation::None;
        }
        let graph = self.graph();
        match (graph.is_on_way.first(), self.is_owner_missing) {
            (Some(true), true) => self.behind_an_owner(&graph),
            (Some(true), false) => self.by_jumps(&graph),
            _ => Explanation::None,
        }
    }

    fn graph(&mut self) -> Graph {
        let (goal, size) = (self.goal(), self.goal() + 3);
        let mut to: Vec<Vec<(usize, Option<Step>)>> = vec![Vec::new(); size];
        let mut goes_anywhere = false;
        for (index, (node, steps)) in self.ways.nodes.iter().zip(&self.ways.steps).enumerate() {
            let is_goal = node.function == self.next && node.is_behind == self.is_owner_missing;
            let from = if is_goal { goal } else { index };
            for step in steps {
                let leads = self.leads(step);
                goes_anywhere |= leads.contains(&Some(self.anywhere(step.is_behind)));
                let leads = leads.into_iter().flatten();
                to[from].extend(leads.map(|leads| (leads, Some(step.clone()))));
            }
        }
        if goes_anywhere {
            let entries = self.entries();
            let is_open = if self.is_owner_missing {
                [entries.owner, entries.any_behind_owner()]
            } else {
                [entries.itself || entries.owner, false]
            };
            for (is_behind, is_open) in [false, true].into_iter().zip(is_open) {
                if is_open {
                    to[self.anywhere(is_behind)].push((goal, None));
                }
            }
        }
        let mut from = vec![Vec::new(); size];
        for (index, leads) in to.iter().enumerate() {
            for &(leads, _) in leads {
                from[leads].push(index);
            }
        }
        // Backwards from the goal: a node that does not lead there is on no way, and must not count
        // as an alternative to those that do.
        let mut is_on_way = vec![false; size];
        is_on_way[goal] = true;
        let mut open = vec![goal];
        while let Some(index) = open.pop() {
            for &before in &from[index] {
                if !std::mem::replace(&mut is_on_way[before], true) {
                    open.push(before);
                }
            }
        }
        Graph { to, is_on_way }
    }

    /// The indices that a step leads to.
    fn leads(&self, step: &Step) -> [Option<usize>; 2] {
        let fits = step.is_behind == self.is_owner_missing;
        let anywhere = Some(self.anywhere(step.is_behind));
        match &step.to {
            &End::Node(index) => {
                let node = self.ways.nodes[index];
                let is_goal = fits && node.function == self.next;
                [Some(if is_goal { self.goal() } else { index }), None]
            }
            End::Named {
                name,
                to,
                is_followed,
            } => {
                let is_stub = self.stub.as_deref() == Some(&**name);
                let is_next = fits && (is_stub || *to == Some(self.next));
                // The first call by a name goes through the dynamic linker.
                let goes_on = self.may_link || !is_followed && !is_next;
                [is_next.then_some(self.goal()), anywhere.filter(|_| goes_on)]
            }
            End::Unknown => [anywhere, None],
        }
    }

    /// The only chain of indices from one to another, both included, through those that pass;
    /// `None` if there are several or one goes round.
    fn chain(
        &self,
        graph: &Graph,
        from: usize,
        to: usize,
        passes: impl Fn(usize) -> bool,
    ) -> Option<Vec<usize>> {
        let mut chain = vec![from];
        let mut at = from;
        while at != to {
            let mut next = graph.next(at).into_iter().filter(|&next| passes(next));
            let only = next.next()?;
            if next.next().is_some() || chain.contains(&only) {
                return None;
            }
            chain.push(only);
            at = only;
        }
        let leads_on = graph.next(to).into_iter().any(passes);
        (!leads_on).then_some(chain)
    }

    /// What is missing along a chain, its end left out; `None` if a step of it is none of whole
    /// functions.
    fn missing(&self, graph: &Graph, chain: &[usize]) -> Option<Vec<Missing>> {
        let mut missing = Vec::new();
        for pair in chain.windows(2) {
            let &[from, to] = pair else { return None };
            let Some(node) = self.ways.nodes.get(from) else {
                continue;
            };
            let mut left_at: Vec<u64> = Vec::new();
            for step in graph.steps(from, to) {
                if step.keeps_frame {
                    return None;
                }
                left_at.extend(step.sites.iter());
            }
            left_at.sort_unstable();
            left_at.dedup();
            missing.push(Missing {
                function: node.function,
                left_at: left_at.into(),
            });
        }
        Some(missing)
    }

    /// Several possibilities: the functions on the ways.
    fn several(&mut self, graph: &Graph) -> Explanation {
        let goes_anywhere =
            [false, true].map(|is_behind| graph.is_on_way[self.anywhere(is_behind)]);
        if goes_anywhere.contains(&true) {
            return Explanation::Several(None);
        }
        // A signal may have arrived in any that had no owner outside of it.
        let may_be_signal = self.is_owner_missing && self.entries().any_behind_owner();
        let nodes = self.ways.nodes.iter().enumerate();
        let mut functions: Vec<FunctionStart> = nodes
            .filter(|(index, node)| graph.is_on_way[*index] || may_be_signal && !node.is_behind)
            .map(|(_, node)| node.function)
            .collect();
        functions.sort_unstable();
        functions.dedup();
        let by_calls_too = self.is_owner_missing;
        Explanation::Several(left_anywhere(
            functions.into_iter(),
            by_calls_too,
            self.code,
        ))
    }

    /// The owner's frame is there: only functions that made way are missing.
    fn by_jumps(&mut self, graph: &Graph) -> Explanation {
        let anywhere = self.anywhere(false);
        if graph.is_on_way[anywhere] && self.entries().owner {
            return self.several(graph);
        }
        let chain = self.chain(graph, 0, self.goal(), |_| true);
        let missing = chain.and_then(|chain| self.missing(graph, &chain));
        missing.map_or_else(|| self.several(graph), Explanation::One)
    }

    /// The owner is missing, with those that made way for it and those that it called.
    fn behind_an_owner(&mut self, graph: &Graph) -> Explanation {
        let (goal, anywhere) = (self.goal(), self.anywhere(true));
        if graph.is_on_way[self.anywhere(false)] {
            return self.several(graph);
        }
        let nodes = &self.ways.nodes;
        let is_behind = |index: usize| nodes.get(index).is_none_or(|node| node.is_behind);
        let before: Vec<usize> = (0..nodes.len()).filter(|&node| !is_behind(node)).collect();
        let mut owners: Vec<usize> = before
            .iter()
            .copied()
            .filter(|&node| graph.next(node).into_iter().any(is_behind))
            .collect();
        if before.len() > 1 && self.entries().any_behind_owner() {
            // A signal may have arrived in any of them while it had a frame.
            for &index in &before {
                let function = nodes[index].function;
                let bounds = self.code.bounds(function);
                let may_own = bounds
                    .is_none_or(|(from, to)| self.frames.may_have_frame(function.image, from, to));
                if may_own && !owners.contains(&index) {
                    owners.push(index);
                }
            }
        }
        let &[owner] = owners.as_slice() else {
            return self.several(graph);
        };
        let Some(first) = self.chain(graph, 0, owner, |index| !is_behind(index)) else {
            return self.several(graph);
        };
        if let Some(second) = self.chain(graph, owner, goal, is_behind) {
            // Another function behind the owner is certain only if no signal leads to the next one.
            let is_direct = second.iter().skip(1).all(|&index| index >= goal);
            if is_direct || !self.entries().any_behind_owner() {
                let is_open = second.contains(&anywhere) && self.entries().behind_owner;
                let chain: Vec<usize> =
                    first.iter().chain(second.iter().skip(1)).copied().collect();
                let missing = self.missing(graph, &chain).filter(|_| !is_open);
                return missing.map_or_else(|| self.several(graph), Explanation::One);
            }
        }
        // Whatever the owner called, it was on the stack.
        let calls_next = graph.steps(owner, goal).any(|step| step.is_call);
        match nodes.get(owner).filter(|_| owner == 0 && calls_next) {
            None => self.several(graph),
            Some(node) => Explanation::One(vec![Missing {
                function: node.function,
                left_at: [].into(),
            }]),
        }
    }
}
