//! Profiles from names and numbers.

use std::collections::HashMap;

use proftool::analysis::inclusive;
use proftool::base::{Event, IdVec, WeightSum};
use proftool::callgraph::{ArcId, CallGraph};
use proftool::profile::{
    Builder, CallKind, Filter, Function, FunctionId, Module, Profile, Selection, Thread,
};

/// What a profile is made from; names are functions.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// Stacks, outermost function first, and their weights; a sample has the weight 1.
    pub stacks: Vec<(Vec<String>, u64)>,
    /// Counted calls; a caller that is not known has no name.
    pub calls: Vec<(Option<String>, String, u64)>,
    /// Calls in the code.
    pub code: Vec<(String, String)>,
}

impl Parts {
    /// Adds folded stacks.
    pub fn stacks(mut self, folded: &str) -> Parts {
        for line in folded.lines() {
            let (stack, weight) = line.rsplit_once(' ').unwrap();
            let stack = stack.split(';').map(str::to_owned).collect();
            self.stacks.push((stack, weight.parse().unwrap()));
        }
        self
    }

    /// Adds counted calls: `main a 3` a line, `- main 1` where the caller is not known.
    pub fn calls(mut self, lines: &str) -> Parts {
        for line in lines.lines().filter(|line| !line.trim().is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [from, to, calls] = words[..] else {
                panic!("{line:?}")
            };
            let from = (from != "-").then(|| from.to_owned());
            self.calls
                .push((from, to.to_owned(), calls.parse().unwrap()));
        }
        self
    }

    /// The profile, its samples and its graph.
    pub fn build(&self) -> Built {
        let mut builder = Builder::default();
        let event = builder.event(Event::named("ticks"));
        let module = builder.module(Module {
            name: "prog".into(),
            path: "/prog".into(),
        });
        let thread = builder.thread(Thread::new(1, 1, "prog"));
        let mut known: HashMap<&str, FunctionId> = HashMap::new();
        let mut function = |name, builder: &mut Builder| {
            *known
                .entry(name)
                .or_insert_with(|| builder.function(Function::named(name, module)))
        };
        for (stack, weight) in &self.stacks {
            let mut path = None;
            for name in stack {
                let function = function(name, &mut builder);
                path = Some(builder.path(path, function, false));
            }
            if *weight > 0 {
                builder.sample(
                    event,
                    thread,
                    path.unwrap(),
                    None,
                    WeightSum::equal(*weight, *weight),
                );
            }
        }
        for (from, to, calls) in &self.calls {
            let from = from.as_ref().map(|from| function(from, &mut builder));
            let to = function(to, &mut builder);
            builder.count(from, to, *calls);
        }
        for (from, to) in &self.code {
            let [from, to] = [from, to].map(|name| function(name, &mut builder));
            builder.call(from, to, CallKind::Call);
        }
        let profile = builder.finish();
        let selection = profile.select(event, &Filter::default());
        let graph = CallGraph::of(&profile, &selection);
        Built {
            profile,
            selection,
            graph,
        }
    }
}

/// A profile with what belongs to it.
pub struct Built {
    pub profile: Profile,
    pub selection: Selection,
    pub graph: CallGraph,
}

impl Built {
    pub fn find(&self, name: &str) -> Option<FunctionId> {
        let mut ids = self.profile.functions.ids();
        ids.find(|&id| self.profile.functions[id].name == name)
    }

    pub fn function(&self, name: &str) -> FunctionId {
        self.find(name).unwrap_or_else(|| panic!("no {name}"))
    }

    pub fn name(&self, function: FunctionId) -> &str {
        &self.profile.functions[function].name
    }

    pub fn arc(&self, from: &str, to: &str) -> ArcId {
        let [a, b] = [from, to].map(|name| self.function(name));
        let arc = self.graph.arc_between(a, b);
        arc.unwrap_or_else(|| panic!("no {from} -> {to}"))
    }

    pub fn self_weights(&self) -> IdVec<FunctionId, f64> {
        let weights = inclusive::by_function(&self.profile, &self.selection).self_weight;
        let weights: Vec<f64> = weights.iter().map(|&weight| weight as f64).collect();
        weights.into()
    }
}
