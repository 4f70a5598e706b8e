//! The call graph: one node per function, one arc per pair of caller and callee, from all sources.
//!
//! ```text
//!   samples                 code                     arcs
//!   main;parse;lex 5        main  ─▶ parse  2 sites  main  ─▶ parse  weight 9  2 sites   both
//!   main;parse;eval 4       parse ─▶ lex    1 site   parse ─▶ lex    weight 5  1 site    both
//!                           lex   ─▶ die    1 site   parse ─▶ eval   weight 4  0 sites   observed
//!                                                    lex   ─▶ die    weight 0  1 site    code
//! ```
//!
//! The functions are those of a [`Profile`], with its ids. Facts about a single function are in the
//! profile; results of analyses are in columns of their own. The weight of an arc is that of the
//! samples with the two functions next to each other on their stacks. A sample counts once for an
//! arc, however often its stack has it. A weight is never a number of calls: stacks do not show
//! that.
//!
//! [`Cycles`] are found in the graph, over the arcs that the caller chooses.

mod calls;
mod components;
mod cycles;
mod observed;
mod ordered;

pub use calls::{Calls, CallsOfCycle, CallsOfFunction};
pub use components::cycles_of;
pub use cycles::{CycleId, Cycles, GroupId};

use crate::base::{IdVec, define_id};
use crate::profile::{CallKind, FunctionId, Profile, Selection};

define_id! {
    /// A row of [`CallGraph::arcs`].
    pub ArcId
}

/// The evidence for an arc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// Samples show it; the code that was looked at does not contain it.
    Observed,
    /// The code contains it, or at least takes the callee's address; no sample shows it.
    Code,
    /// Samples show it and the code contains it.
    Both,
    /// The code contains it, and it is the only explanation of the stacks of samples, which show
    /// the functions around it.
    Inferred,
    /// Samples show the two next to each other, and the caller calls through a pointer there: what
    /// it called may have jumped on to the callee.
    Pointer,
}

impl Origin {
    /// Returns its name in JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Observed => "observed",
            Origin::Code => "code",
            Origin::Both => "both",
            Origin::Inferred => "inferred",
            Origin::Pointer => "pointer",
        }
    }
}

/// A caller and a callee as a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallArc {
    /// The caller.
    pub from: FunctionId,
    /// The callee.
    pub to: FunctionId,
    /// The weight of the samples that show it, each counted once.
    pub weight: u64,
    /// The part of this weight that rests on restored frames.
    pub inferred: u64,
    /// The part of this weight whose stacks show the two next to each other only because frames are
    /// missing between them: there the caller called something else.
    pub across_gaps: u64,
    /// The part of this weight whose stacks show the callee next on the stack where the caller
    /// calls through a pointer: what it called may have jumped on to the callee.
    pub through_pointer: u64,
    /// The number of these samples.
    pub samples: u64,
    /// The number of calls, where they were counted.
    pub calls: Option<u64>,
    /// Whether there may have been more calls than these.
    pub calls_are_least: bool,
    /// Whether the callee interrupted the caller: nothing was called, so the arc forms no cycle.
    pub is_interrupt: bool,
    /// The number of places in the code, by kind in the order of [`CallKind::ALL`].
    sites: [u32; CallKind::ALL.len()],
}

impl CallArc {
    fn new(from: FunctionId, to: FunctionId) -> CallArc {
        CallArc {
            from,
            to,
            weight: 0,
            inferred: 0,
            across_gaps: 0,
            through_pointer: 0,
            samples: 0,
            calls: None,
            calls_are_least: false,
            is_interrupt: false,
            sites: [0; CallKind::ALL.len()],
        }
    }

    /// The caller and the callee.
    pub fn pair(&self) -> (FunctionId, FunctionId) {
        (self.from, self.to)
    }

    /// Whether a function calls itself.
    pub fn is_self(&self) -> bool {
        self.from == self.to
    }

    /// The number of places in the code of this kind.
    pub fn sites_of(&self, kind: CallKind) -> u64 {
        u64::from(self.sites[kind as usize])
    }

    /// The number of call sites in the code; taking a pointer is not a call.
    pub fn sites(&self) -> u64 {
        let calls = CallKind::ALL.into_iter().filter(|kind| kind.is_call());
        calls.map(|kind| self.sites_of(kind)).sum()
    }

    /// Whether samples or counts show it.
    pub fn is_observed(&self) -> bool {
        self.weight > 0 || self.samples > 0 || self.is_counted()
    }

    /// Whether it is a call for certain: it was observed, or the code calls. What is left are
    /// pointers that are taken.
    pub fn is_call(&self) -> bool {
        self.is_observed() || self.sites() > 0
    }

    /// Whether it is no call as far as is known: frames are missing between the two on all stacks
    /// that show it, and the code has no such call. The caller still leads to the callee, by way of
    /// functions that are not known.
    pub fn is_gap(&self) -> bool {
        self.across_gaps > 0
            && self.across_gaps == self.weight
            && self.sites() == 0
            && !self.is_counted()
    }

    /// Whether it is a call only if what the caller called through a pointer was the callee, on all
    /// stacks that show it.
    pub fn is_through_pointer(&self) -> bool {
        let unproven = self.through_pointer.saturating_add(self.across_gaps);
        self.through_pointer > 0 && unproven == self.weight && !self.is_counted()
    }

    fn is_counted(&self) -> bool {
        self.calls.is_some_and(|calls| calls > 0)
    }

    /// Returns the evidence for it, as text for people.
    pub fn evidence(&self) -> &'static str {
        let is_sampled = self.weight > 0 || self.samples > 0;
        match (self.origin(), is_sampled) {
            (Origin::Inferred, _) => "inferred",
            (Origin::Pointer, _) => "pointer",
            (Origin::Code, _) => "static",
            (Origin::Observed, true) => "sampled",
            (Origin::Observed, false) => "counted",
            (Origin::Both, true) => "sampled + static",
            (Origin::Both, false) => "counted + static",
        }
    }

    /// The evidence for it.
    pub fn origin(&self) -> Origin {
        if self.is_through_pointer() {
            return Origin::Pointer;
        }
        if self.inferred > 0 && self.inferred == self.weight {
            return Origin::Inferred;
        }
        match (
            self.is_observed(),
            self.sites.iter().any(|&sites| sites > 0),
        ) {
            (true, true) => Origin::Both,
            (true, false) => Origin::Observed,
            (false, _) => Origin::Code,
        }
    }
}

/// A call graph: see the [module's page](self).
#[derive(Clone, Debug, Default)]
pub struct CallGraph {
    /// The arcs, sorted by caller and callee, one a pair.
    arcs: IdVec<ArcId, CallArc>,
    /// For each function where its outgoing arcs begin; one more entry behind the last.
    outgoing: Vec<u32>,
    /// The arcs, sorted by callee and caller.
    incoming: Vec<ArcId>,
    /// For each function where its arcs in `incoming` begin; one more entry behind the last.
    incoming_starts: Vec<u32>,
}

impl CallGraph {
    /// The graph of a profile: what the selected samples show, what the code contains, and what was
    /// counted.
    ///
    /// ```
    /// use proftool::base::Id;
    /// use proftool::callgraph::CallGraph;
    /// use proftool::input::folded;
    /// use proftool::profile::{EventId, Filter, FunctionId};
    ///
    /// // main, a and b by order of appearance
    /// let text = "main;a;b;a;b 3\nmain;a 1\n";
    /// let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
    /// let graph = CallGraph::of(&profile, &profile.select(EventId::new(0), &Filter::default()));
    /// let arcs = graph.arcs().iter();
    /// let arcs: Vec<_> = arcs.map(|arc| (arc.from.index(), arc.to.index(), arc.weight)).collect();
    /// assert_eq!(arcs, [(0, 1, 4), (1, 2, 3), (2, 1, 3)]);
    /// ```
    pub fn of(profile: &Profile, selection: &Selection) -> CallGraph {
        let observed = observed::arcs(profile, selection);
        let in_code = profile
            .code
            .calls()
            .iter()
            .map(|call| ((call.from, call.to), call));
        let mut arcs = with(observed, in_code, |arc, call| {
            arc.sites[call.kind as usize] = u32::try_from(call.sites).unwrap_or(u32::MAX);
        });
        if let Some(counts) = &profile.counts {
            let counted = counts
                .calls()
                .iter()
                .filter_map(|count| Some(((count.from?, count.to), count)));
            arcs = with(arcs, counted, |arc, count| {
                (arc.calls, arc.calls_are_least) = (Some(count.calls), count.is_least);
            });
            if !counts.are_partial() {
                arcs.iter_mut()
                    .for_each(|arc| arc.calls = arc.calls.or(Some(0)));
            }
        }
        let code = &profile.code;
        if !code.interrupts().is_empty() {
            let is_entry = |function| code.is_interrupt(function);
            // What an entry calls first may be an entry of older kernels by its name.
            let is_interrupt = |arc: &CallArc| is_entry(arc.to) && !is_entry(arc.from);
            arcs.iter_mut()
                .for_each(|arc| arc.is_interrupt = is_interrupt(arc));
        }
        CallGraph::from_sorted(profile.functions.len(), arcs.into())
    }

    /// The graph without the arcs that `deleted` picks, as if they had not been seen (gprof's
    /// `-k`). The functions stay. Ids of arcs are those of the new graph.
    pub fn without(mut self, deleted: impl Fn(&CallArc) -> bool) -> CallGraph {
        let functions = self.functions();
        self.arcs.retain(|arc| !deleted(arc));
        CallGraph::from_sorted(functions, self.arcs)
    }

    /// The arc from one function to another, if there is one.
    pub fn arc_between(&self, from: FunctionId, to: FunctionId) -> Option<ArcId> {
        let std::ops::Range { mut start, mut end } = range(&self.outgoing, from);
        while start < end {
            let middle = start + (end - start) / 2;
            let arc = ArcId::new(middle);
            match self.arcs[arc].to.cmp(&to) {
                std::cmp::Ordering::Less => start = middle + 1,
                std::cmp::Ordering::Equal => return Some(arc),
                std::cmp::Ordering::Greater => end = middle,
            }
        }
        None
    }

    /// The graph of `functions` functions with these arcs, sorted by caller and callee, each pair
    /// once.
    fn from_sorted(functions: usize, arcs: IdVec<ArcId, CallArc>) -> CallGraph {
        let starts = |end: &dyn Fn(&CallArc) -> FunctionId| {
            let mut starts = vec![0u32; functions + 1];
            for arc in &arcs {
                starts[end(arc).index() + 1] += 1;
            }
            for i in 0..functions {
                starts[i + 1] += starts[i];
            }
            starts
        };
        let outgoing = starts(&|arc| arc.from);
        let incoming_starts = starts(&|arc| arc.to);
        let incoming = arcs.ids().collect();
        let incoming = ordered::ordered_by(incoming, functions, |id| arcs[id].to.index());
        CallGraph {
            arcs,
            outgoing,
            incoming,
            incoming_starts,
        }
    }

    /// The arcs, sorted by caller and callee, one for each pair.
    #[inline]
    pub fn arcs(&self) -> &IdVec<ArcId, CallArc> {
        &self.arcs
    }

    /// The number of functions, those without arcs included.
    pub fn functions(&self) -> usize {
        self.outgoing.len().saturating_sub(1)
    }

    /// The ids of the functions, those without arcs included.
    pub fn function_ids(
        &self,
    ) -> impl DoubleEndedIterator<Item = FunctionId> + ExactSizeIterator + use<> {
        (0..self.functions()).map(FunctionId::new)
    }

    /// The arcs from a function, in order of callee.
    pub fn callees(
        &self,
        function: FunctionId,
    ) -> impl DoubleEndedIterator<Item = ArcId> + ExactSizeIterator + use<> {
        let range = range(&self.outgoing, function);
        range.map(ArcId::new)
    }

    /// The arcs to a function, in order of caller.
    pub fn callers(
        &self,
        function: FunctionId,
    ) -> impl DoubleEndedIterator<Item = ArcId> + ExactSizeIterator + Clone {
        let range = range(&self.incoming_starts, function);
        self.incoming[range].iter().copied()
    }

    /// The arcs of [`CallGraph::callees`].
    pub fn arcs_from(&self, function: FunctionId) -> impl ExactSizeIterator<Item = &CallArc> {
        self.callees(function).map(|arc| &self.arcs[arc])
    }

    /// The arcs of [`CallGraph::callers`].
    pub fn arcs_to(&self, function: FunctionId) -> impl ExactSizeIterator<Item = &CallArc> {
        self.callers(function).map(|arc| &self.arcs[arc])
    }

    /// The functions that can be reached from these over arcs that `follows` lets pass,
    /// themselves included.
    pub fn reachable(
        &self,
        from: impl IntoIterator<Item = FunctionId>,
        follows: impl Fn(&CallArc) -> bool,
    ) -> IdVec<FunctionId, bool> {
        let mut reached = IdVec::filled(false, self.functions());
        let mut waiting: Vec<FunctionId> = Vec::new();
        let mut visit = |id: FunctionId, waiting: &mut Vec<FunctionId>| {
            if !std::mem::replace(&mut reached[id], true) {
                waiting.push(id);
            }
        };
        from.into_iter().for_each(|id| visit(id, &mut waiting));
        while let Some(id) = waiting.pop() {
            for arc in self.callees(id).map(|arc| &self.arcs[arc]) {
                if follows(arc) {
                    visit(arc.to, &mut waiting);
                }
            }
        }
        reached
    }
}

fn range(starts: &[u32], function: FunctionId) -> std::ops::Range<usize> {
    let at = function.index();
    starts[at] as usize..starts[at + 1] as usize
}

/// Puts rows of one more source to arcs; both are sorted by caller and callee, and the arcs stay
/// so.
fn with<T>(
    arcs: Vec<CallArc>,
    rows: impl Iterator<Item = ((FunctionId, FunctionId), T)>,
    put: impl Fn(&mut CallArc, T),
) -> Vec<CallArc> {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return arcs;
    }
    let mut all: Vec<CallArc> = Vec::with_capacity(arcs.len().max(rows.size_hint().0));
    let mut arcs = arcs.into_iter().peekable();
    for (pair, row) in rows {
        while let Some(arc) = arcs.next_if(|arc| arc.pair() <= pair) {
            all.push(arc);
        }
        match all.last_mut() {
            Some(last) if last.pair() == pair => put(last, row),
            _ => {
                let mut arc = CallArc::new(pair.0, pair.1);
                put(&mut arc, row);
                all.push(arc);
            }
        }
    }
    all.extend(arcs);
    all
}
