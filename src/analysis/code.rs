//! The calls in code, in one value: the call graph, its cycles, and the part of it that samples
//! showed.

use super::coverage::Coverage;
use super::inclusive::{self, FunctionWeights};
use crate::base::IdVec;
use crate::callgraph::{CallArc, CallGraph, Cycles};
use crate::profile::{FunctionId, ModuleId, Profile, Selection};

/// What the figures cover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The modules of interest, empty for all; others count only at the other end of an arc.
    pub modules: Vec<ModuleId>,
    /// The functions from which calls are followed, for [`Summary::reached`]; empty for none.
    pub from: Vec<FunctionId>,
}

/// What the samples say of the graph.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The weights of the functions.
    pub weights: FunctionWeights,
    /// How much of the graph the samples touched.
    pub coverage: Coverage,
}

/// The call graph of a profile's code.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The whole graph.
    pub graph: CallGraph,
    /// The cycles that calls can form.
    pub cycles: Cycles,
    /// The modules of interest; empty for all.
    pub modules: Vec<ModuleId>,
    /// Whether a function is of one of them.
    pub within: IdVec<FunctionId, bool>,
    /// Whether calls lead to a function from [`Options::from`]; `None` if that is empty.
    pub reached: Option<IdVec<FunctionId, bool>>,
    /// What the samples say; `None` without samples.
    pub measured: Option<Measured>,
}

impl Summary {
    /// Computes all figures. A selection without samples gives the static graph alone. Linear in
    /// rows, paths, functions and arcs, apart from sorting.
    ///
    /// ```
    /// use proftool::analysis::code::{Options, Summary};
    /// use proftool::base::Id;
    /// use proftool::input::folded;
    /// use proftool::profile::{EventId, Filter, FunctionId};
    ///
    /// // main, a, b and c by order of appearance
    /// let profile = folded::read("main;a;b 2\nmain;c 1\n".as_bytes(), &mut |_| {}).unwrap();
    /// let selection = profile.select(EventId::new(0), &Filter::default());
    /// let options = Options { from: vec![FunctionId::new(1)], ..Options::default() };
    /// let summary = Summary::of(&profile, &selection, &options);
    /// let reached = summary.reached.as_ref().unwrap();
    /// assert_eq!(reached.iter().filter(|&&reached| reached).count(), 2);
    /// assert!(summary.is_root(&profile, FunctionId::new(0)));
    /// ```
    pub fn of(profile: &Profile, selection: &Selection, options: &Options) -> Summary {
        let graph = CallGraph::of(profile, selection);
        let of_modules = |f: &crate::profile::Function| {
            options.modules.is_empty() || options.modules.contains(&f.module)
        };
        let within: Vec<bool> = profile.functions.iter().map(of_modules).collect();
        let within: IdVec<FunctionId, bool> = within.into();
        let from = options.from.iter().copied();
        let has_samples = selection.samples() > 0;
        Summary {
            cycles: Cycles::find(&graph, CallArc::is_call),
            reached: (from.len() > 0).then(|| graph.reachable(from, CallArc::is_call)),
            measured: has_samples.then(|| Measured {
                weights: inclusive::by_function(profile, selection),
                coverage: Coverage::of(profile, selection, &graph, &within),
            }),
            modules: options.modules.clone(),
            within,
            graph,
        }
    }

    /// Whether nothing calls a function, or its cycle, from outside.
    pub fn is_root(&self, profile: &Profile, id: FunctionId) -> bool {
        let code = profile.code.functions.get(id).copied().flatten();
        if code.is_some_and(|code| code.imported) {
            return false;
        }
        let called_from_outside = |id: FunctionId| {
            let mut arcs = self.graph.arcs_to(id);
            arcs.any(|arc| arc.is_call() && arc.from != id && !self.cycles.share(arc.from, id))
        };
        match self.cycles.of()[id] {
            Some(cycle) => !self.cycles.members()[cycle]
                .iter()
                .any(|&id| called_from_outside(id)),
            None => !called_from_outside(id),
        }
    }
}
