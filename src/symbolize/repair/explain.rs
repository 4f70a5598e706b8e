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

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::code::CodeReader;
use super::control_flow::{End, Finder, Step, Ways};
use super::frames::Frames;
use super::function_exits::FunctionStart;
use super::unknown_callers::{self, Entries};

/// A function that is missing, and how it was left.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// There are several possibilities, or too many to look at.
    Several,
    /// Nothing in the code does.
    None,
}

impl Explanation {
    /// What explains a stack if either does.
    pub(super) fn or(self, other: &Explanation) -> Explanation {
        match (self, other) {
            (Explanation::None, other) => other.clone(),
            (this, Explanation::None) => this,
            _ => Explanation::Several,
        }
    }
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
}

impl Explanations {
    pub(super) fn new() -> Explanations {
        Explanations {
            known: FxHashMap::default(),
            finder: Finder::new(),
            entries: FxHashMap::default(),
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
            return Explanation::Several;
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

    /// The owner's frame is there: only functions that made way are missing.
    fn by_jumps(&mut self, graph: &Graph) -> Explanation {
        let anywhere = self.anywhere(false);
        if graph.is_on_way[anywhere] && self.entries().owner {
            return Explanation::Several;
        }
        let chain = self.chain(graph, 0, self.goal(), |_| true);
        let missing = chain.and_then(|chain| self.missing(graph, &chain));
        missing.map_or(Explanation::Several, Explanation::One)
    }

    /// The owner is missing, with those that made way for it and those that it called.
    fn behind_an_owner(&mut self, graph: &Graph) -> Explanation {
        let (goal, anywhere) = (self.goal(), self.anywhere(true));
        if graph.is_on_way[self.anywhere(false)] {
            return Explanation::Several;
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
            return Explanation::Several;
        };
        let Some(first) = self.chain(graph, 0, owner, |index| !is_behind(index)) else {
            return Explanation::Several;
        };
        if let Some(second) = self.chain(graph, owner, goal, is_behind) {
            // Another function behind the owner is certain only if no signal leads to the next one.
            let is_direct = second.iter().skip(1).all(|&index| index >= goal);
            if is_direct || !self.entries().any_behind_owner() {
                let is_open = second.contains(&anywhere) && self.entries().behind_owner;
                let chain: Vec<usize> =
                    first.iter().chain(second.iter().skip(1)).copied().collect();
                let missing = self.missing(graph, &chain).filter(|_| !is_open);
                return missing.map_or(Explanation::Several, Explanation::One);
            }
        }
        // Whatever the owner called, it was on the stack.
        let calls_next = graph.steps(owner, goal).any(|step| step.is_call);
        match nodes.get(owner).filter(|_| owner == 0 && calls_next) {
            None => Explanation::Several,
            Some(node) => Explanation::One(vec![Missing {
                function: node.function,
                left_at: [].into(),
            }]),
        }
    }
}
