//! Time inside of cycles, estimated for any number of graphs: what `compare_gprof2dot.py` holds
//! against gprof2dot. Reads graphs with counted calls on the standard input, functions by number:
//!
//! ```text
//!   graph 3            a graph of the functions 0, 1 and 2 begins
//!   self 0 120         their self times
//!   calls 0 1 4        function 0 called function 1 four times
//! ```
//!
//! and prints for each graph, by both rules, the totals of functions, arcs and cycles. A number
//! is as short as it can be read back.
//!
//! ```text
//!   graph
//!   sound function 0 240         gprof2dot function 0 240
//!   sound arc 0 1 120            gprof2dot arc 0 1 120
//!   sound cycle 1,2 120          gprof2dot cycle 1,2 120
//! ```

use std::io::{self, BufRead, Write};

use proftool::analysis::flow::Flow;
use proftool::analysis::fonseca::{self, Rule};
use proftool::base::{Event, IdVec};
use proftool::callgraph::CallGraph;
use proftool::profile::{Builder, EventId, Filter, Function, FunctionId, Module, Profile};

fn main() -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut graph: Option<Counted> = None;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let mut words = line.split_whitespace();
        let word = words.next();
        let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        match (word, &numbers[..], &mut graph) {
            (Some("graph"), &[functions], graph) => {
                if let Some(before) = graph.replace(Counted::new(functions as usize)) {
                    before.answer(&mut out)?;
                }
            }
            (Some("self"), &[function, time], Some(graph)) => {
                graph.self_weights[FunctionId::new(function as usize)] = time as f64;
            }
            (Some("calls"), &[from, to, calls], Some(graph)) => {
                let [from, to] = [from, to].map(|index| FunctionId::new(index as usize));
                graph.builder.count(Some(from), to, calls);
            }
            _ => return Err(io::Error::other(format!("not understood: {line}"))),
        }
    }
    if let Some(last) = graph {
        last.answer(&mut out)?;
    }
    out.flush()
}

/// A graph that is being read.
struct Counted {
    builder: Builder,
    self_weights: IdVec<FunctionId, f64>,
}

impl Counted {
    fn new(functions: usize) -> Counted {
        let mut builder = Builder::default();
        builder.event(Event::named("ticks"));
        let module = builder.module(Module {
            name: "app".into(),
            path: "/app".into(),
        });
        for index in 0..functions {
            builder.function(Function::named(format!("f{index}"), module));
        }
        Counted {
            builder,
            self_weights: IdVec::filled(0.0, functions),
        }
    }

    fn answer(self, out: &mut dyn Write) -> io::Result<()> {
        let profile: Profile = self.builder.finish();
        let selection = profile.select(EventId::new(0), &Filter::default());
        let graph = CallGraph::of(&profile, &selection);
        let flow = Flow::of_calls(&graph, profile.counts.as_ref());
        writeln!(out, "graph")?;
        for (name, rule) in [("sound", Rule::Sound), ("gprof2dot", Rule::Gprof2dot)] {
            let estimate = fonseca::estimate(&graph, &self.self_weights, &flow, rule);
            let times = &estimate.attribution;
            for function in graph.function_ids() {
                let (index, total) = (function.index(), times.total(function));
                writeln!(out, "{name} function {index} {total}")?;
            }
            for (id, arc) in graph.arcs().enumerate() {
                let total = times.arcs[id].map_or(0.0, |portion| portion.total());
                let (from, to) = (arc.from.index(), arc.to.index());
                writeln!(out, "{name} arc {from} {to} {total}")?;
            }
            for (id, cycle) in times.cycles.enumerate() {
                let members = estimate.cycles.members()[id].iter();
                let members: Vec<String> = members.map(|id| id.index().to_string()).collect();
                let total = cycle.portion.total();
                writeln!(out, "{name} cycle {} {total}", members.join(","))?;
            }
        }
        Ok(())
    }
}
