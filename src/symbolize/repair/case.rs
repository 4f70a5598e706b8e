//! One search: which functions were between the called one and the next one on the stack, either
//! with the owner's frame missing or without.
//!
//! ```text
//!   called ─▶ a ─▶ goal        on the way: called, a          certain: both
//!          ─▶ b                not on it, and no alternative
//!          ─(*hook)(…)         on it if pointers lead to the goal, or to what leads there
//! ```

use std::rc::Rc;

use super::code::Code;
use super::control_flow::{End, Node, Step, Ways};
use super::explanation::{Explanation, Missing, left_anywhere};
use super::function_exits::FunctionStart;
use super::unknown_callers::{self, Entries};

/// One question, with one answer to whether the owner is missing.
pub(super) struct Case<'s, 'h> {
    pub(super) ways: &'s Ways,
    pub(super) next: FunctionStart,
    pub(super) is_owner_missing: bool,
    pub(super) stub: Option<String>,
    /// Whether the dynamic linker may run `next` when something is called for the first time.
    pub(super) may_link: bool,
    /// What leads to `next` from somewhere unknown. To find it out takes long.
    pub(super) entries: &'s dyn Fn() -> Entries,
    pub(super) code: &'s Code<'h>,
}

/// The ways that lead to the next function, as a graph of indices: those of nodes, and then
/// [`Case::goal`] and the places from which unknown code goes on.
struct Graph {
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

    fn steps(&self, from: usize, to: usize) -> impl Iterator<Item = &Step> {
        let steps = self.to[from].iter();
        steps.filter_map(move |(other, step)| step.as_ref().filter(|_| *other == to))
    }
}

impl Case<'_, '_> {
    fn is_goal(&self, node: &Node) -> bool {
        node.function == self.next && node.is_behind == self.is_owner_missing
    }

    fn goal(&self) -> usize {
        self.ways.nodes.len()
    }

    /// Where unknown code goes on, behind the owner or not.
    fn anywhere(&self, is_behind: bool) -> usize {
        self.goal() + 1 + usize::from(is_behind)
    }

    fn entries(&self) -> Entries {
        (self.entries)()
    }

    pub(super) fn explain(&self) -> Explanation {
        if self
            .ways
            .nodes
            .first()
            .is_some_and(|node| self.is_goal(node))
        {
            return Explanation::None;
        }
        let graph = self.graph();
        match (graph.is_on_way.first(), self.is_owner_missing) {
            (Some(true), true) => self.behind_an_owner(&graph),
            (Some(true), false) => self.by_jumps(&graph),
            _ => Explanation::None,
        }
    }

    fn graph(&self) -> Graph {
        let (goal, size) = (self.goal(), self.goal() + 3);
        let mut to: Vec<Vec<(usize, Option<Step>)>> = vec![Vec::new(); size];
        let mut goes_anywhere = false;
        for (index, (node, steps)) in self.ways.nodes.iter().zip(&self.ways.steps).enumerate() {
            let from = if self.is_goal(node) { goal } else { index };
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

    fn leads(&self, step: &Step) -> [Option<usize>; 2] {
        let fits = step.is_behind == self.is_owner_missing;
        let anywhere = Some(self.anywhere(step.is_behind));
        match &step.to {
            &End::Node(index) => {
                let is_goal = self.is_goal(&self.ways.nodes[index]);
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
            if from < self.goal() {
                missing.push(self.left(graph, from, &[to])?);
            }
        }
        Some(missing)
    }

    /// The function of a node, left for any of these; `None` if a step is none of whole functions.
    fn left(&self, graph: &Graph, from: usize, to: &[usize]) -> Option<Missing> {
        let steps = || to.iter().flat_map(|&to| graph.steps(from, to));
        if steps().any(|step| step.keeps_frame) {
            return None;
        }
        let mut left_at: Vec<u64> = steps().flat_map(|step| &*step.sites).copied().collect();
        left_at.sort_unstable();
        left_at.dedup();
        Some(Missing {
            function: self.ways.nodes[from].function,
            left_at: left_at.into(),
        })
    }

    /// Several possibilities, with what is certain of them: the functions on the ways.
    fn several(&self, graph: &Graph, certain: Vec<Missing>) -> Explanation {
        Explanation::Several {
            possible: self.possible(graph, &certain),
            certain,
        }
    }

    /// The functions that may be missing besides those that are certain; `None` if there may be
    /// others.
    fn possible(&self, graph: &Graph, certain: &[Missing]) -> Option<Rc<[Missing]>> {
        let mut functions: Vec<FunctionStart> = Vec::new();
        if self.goes_anywhere(graph) {
            // What a file calls or jumps to by name may be as much as its file has.
            if self.is_owner_missing || self.leaves_by_name(graph) {
                return None;
            }
            let next = self.next;
            functions = unknown_callers::leading_to(next, false, self.code)?;
        }
        // A signal may have arrived in any that had no owner outside of it.
        let may_be_signal = self.is_owner_missing && self.entries().any_behind_owner();
        let nodes = self.ways.nodes.iter().enumerate();
        let nodes = nodes
            .filter(|(index, node)| graph.is_on_way[*index] || may_be_signal && !node.is_behind);
        functions.extend(nodes.map(|(_, node)| node.function));
        let is_certain = |function: &FunctionStart| {
            let mut certain = certain.iter();
            certain.any(|certain| certain.function == *function)
        };
        functions.retain(|function| !is_certain(function));
        functions.sort_unstable();
        functions.dedup();
        let by_calls_too = self.is_owner_missing;
        left_anywhere(functions.into_iter(), by_calls_too, self.code)
    }

    /// Whether a way leads through unknown code.
    fn goes_anywhere(&self, graph: &Graph) -> bool {
        [false, true]
            .into_iter()
            .any(|is_behind| graph.is_on_way[self.anywhere(is_behind)])
    }

    /// Whether a way leads through unknown code that is found by its name.
    fn leaves_by_name(&self, graph: &Graph) -> bool {
        let anywhere = [false, true].map(|is_behind| self.anywhere(is_behind));
        let nodes = (0..self.goal()).filter(|&node| graph.is_on_way[node]);
        nodes.into_iter().any(|node| {
            let mut steps = anywhere.iter().flat_map(|&to| graph.steps(node, to));
            steps.any(|step| matches!(step.to, End::Named { .. }))
        })
    }

    /// The functions that every way goes through, from the one that was called on, and the index of
    /// the last if it is left by whole functions.
    fn certain(&self, graph: &Graph) -> (Vec<Missing>, Option<usize>) {
        let mut certain: Vec<Missing> = Vec::new();
        let mut seen = vec![0];
        let mut at = 0;
        loop {
            let next = graph.next(at);
            let Some(left) = self.left(graph, at, &next) else {
                return (certain, None);
            };
            certain.push(left);
            match *next {
                [only] if only < self.goal() && !seen.contains(&only) => {
                    seen.push(only);
                    at = only;
                }
                _ => return (certain, Some(at)),
            }
        }
    }

    /// Whether this node leads to the next function at once, and else only through a pointer: as
    /// with calls through pointers, what else may be behind these is not asked.
    fn leads_at_once(&self, graph: &Graph, node: usize) -> bool {
        let (goal, anywhere) = (self.goal(), self.anywhere(false));
        let next = graph.next(node);
        next.iter().all(|&to| to == goal || to == anywhere)
            && (next.contains(&goal) || self.entries().itself)
            && !graph
                .steps(node, anywhere)
                .any(|step| matches!(step.to, End::Named { .. }))
    }

    /// The owner's frame is there: only functions that made way are missing.
    fn by_jumps(&self, graph: &Graph) -> Explanation {
        let goes_on = graph.is_on_way[self.anywhere(false)] && self.entries().owner;
        let chain = self.chain(graph, 0, self.goal(), |_| true);
        let missing = chain.and_then(|chain| self.missing(graph, &chain));
        match missing.filter(|_| !goes_on) {
            Some(missing) => Explanation::One(missing),
            // What was called has made way, whatever for.
            None => {
                let (certain, last) = self.certain(graph);
                match last {
                    Some(last) if self.leads_at_once(graph, last) => Explanation::One(certain),
                    _ => self.several(graph, certain),
                }
            }
        }
    }

    /// The owner is missing, with those that made way for it and those that it called.
    fn behind_an_owner(&self, graph: &Graph) -> Explanation {
        let (goal, anywhere) = (self.goal(), self.anywhere(true));
        if graph.is_on_way[self.anywhere(false)] {
            return self.several(graph, Vec::new());
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
                let may_own = bounds.is_none_or(|(from, to)| {
                    self.code.frames.may_have_frame(function.image, from, to)
                });
                if may_own && !owners.contains(&index) {
                    owners.push(index);
                }
            }
        }
        let &[owner] = owners.as_slice() else {
            return self.several(graph, Vec::new());
        };
        let Some(first) = self.chain(graph, 0, owner, |index| !is_behind(index)) else {
            return self.several(graph, Vec::new());
        };
        if let Some(second) = self.chain(graph, owner, goal, is_behind) {
            // Another function behind the owner is certain only if no signal leads to the next one.
            let is_direct = second.iter().skip(1).all(|&index| index >= goal);
            if is_direct || !self.entries().any_behind_owner() {
                let is_open = second.contains(&anywhere) && self.entries().behind_owner;
                let chain: Vec<usize> =
                    first.iter().chain(second.iter().skip(1)).copied().collect();
                let missing = self.missing(graph, &chain).filter(|_| !is_open);
                return missing.map_or_else(|| self.several(graph, Vec::new()), Explanation::One);
            }
        }
        // Whatever the owner called, it was on the stack; what that made way for may have been,
        // too.
        let owners = nodes.get(owner).filter(|_| owner == 0).map(|node| Missing {
            function: node.function,
            left_at: [].into(),
        });
        self.several(graph, owners.into_iter().collect())
    }
}
