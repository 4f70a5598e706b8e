//! graph_scale [ROUNDS]: how time through calls grows with the graph.
//!
//! Makes profiles of three shapes in growing sizes, and prints for each step the least processor
//! time of ROUNDS (5) in milliseconds, and how it grows: the slope of log time over log size from the
//! line that fits best. 1 is linear; caches that the largest does not fit make it a little more.
//! Much more is made of pages that the system has to clear: where memory that was given back is kept,
//! the steps themselves are seen (glibc:
//! `GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=8589934592`).
//!
//! ```text
//!   chain  f0 ─▶ f1 ─▶ … one stack as deep as the program has functions
//!   cycle  the same, and the last calls the first: all are members
//!   arcs   twelve distinct arcs out of each function, on as many short stacks
//! ```

#![allow(clippy::print_stdout)]

use proftool::analysis::flow::Flow;
use proftool::analysis::fonseca::{self, Rule};
use proftool::analysis::{measured, propagation, recursion};
use proftool::base::{Event, WeightSum};
use proftool::callgraph::{CallGraph, Cycles};
use proftool::profile::{
    Builder, EventId, Filter, Function, FunctionId, Module, PathId, Profile, Thread,
};

/// The steps that are measured, in order.
const STEPS: [&str; 6] = [
    "graph",
    "cycles",
    "measured",
    "propagation",
    "recursion",
    "fonseca",
];

/// A profile under construction.
struct Maker {
    builder: Builder,
    functions: Vec<FunctionId>,
}

impl Maker {
    fn new(functions: usize) -> Maker {
        let mut builder = Builder::default();
        let module = builder.module(Module {
            name: "app".into(),
            path: "/app".into(),
        });
        builder.event(Event::named("cycles"));
        let functions =
            (0..functions).map(|i| builder.function(Function::named(format!("f{i}"), module)));
        let functions = functions.collect();
        Maker { builder, functions }
    }

    fn stack(&mut self, functions: impl Iterator<Item = usize>) {
        let thread = self.builder.thread(Thread::new(1, 1, "app"));
        let mut last: Option<PathId> = None;
        for function in functions {
            last = Some(self.builder.path(last, self.functions[function], false));
        }
        if let Some(path) = last {
            let event = EventId::new(0);
            self.builder
                .sample(event, thread, path, None, WeightSum::of(1000));
        }
    }

    fn calls(&mut self, from: usize, to: usize) {
        let [from, to] = [from, to].map(|at| self.functions[at]);
        self.builder.count(Some(from), to, 1);
    }
}

fn chain(size: usize) -> Profile {
    let mut maker = Maker::new(size);
    maker.stack(0..size);
    (1..size).for_each(|at| maker.calls(at - 1, at));
    maker.builder.finish()
}

fn cycle(size: usize) -> Profile {
    let mut maker = Maker::new(size);
    maker.stack((0..size).chain([0]));
    (0..size).for_each(|at| maker.calls(at, (at + 1) % size));
    maker.builder.finish()
}

fn arcs(size: usize) -> Profile {
    let out = 12;
    let functions = size / out;
    let mut maker = Maker::new(functions);
    for from in 0..functions {
        for step in 0..out {
            let to = (from + 1 + step * 7919) % functions;
            maker.stack([from, to].into_iter());
            maker.calls(from, to);
        }
    }
    maker.builder.finish()
}

/// How long this thread has been running on a processor (`/proc/PID/schedstat`): others may be busy
/// here too.
fn processor_seconds() -> f64 {
    // The kernel brings the figure up to date when the thread gives way.
    std::thread::yield_now();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = stat.split(' ').next().and_then(|word| word.parse().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}

/// The seconds that each step takes, and the numbers of arcs and of members of cycles.
fn measure(profile: &Profile) -> ([f64; STEPS.len()], usize, usize) {
    let mut seconds = [0.0; STEPS.len()];
    let selection = profile.select(EventId::new(0), &Filter::default());
    let mut start = processor_seconds();
    let mut lap = |step: usize| {
        let now = processor_seconds();
        seconds[step] = now - start;
        start = now;
    };
    let graph = CallGraph::of(profile, &selection);
    lap(0);
    let cycles = Cycles::find(&graph, |arc| arc.is_call());
    lap(1);
    let times = measured::attribute(profile, &selection, &graph, &cycles);
    lap(2);
    let flow = Flow::of_calls(&graph, profile.counts.as_ref());
    let own: Vec<f64> = times.functions.iter().map(|f| f.self_weight).collect();
    let own = own.into();
    propagation::propagate(&graph, &cycles, &own, &flow);
    lap(3);
    recursion::depths(profile, &selection, &cycles);
    lap(4);
    fonseca::estimate(&graph, &own, &flow, Rule::Sound);
    lap(5);
    let members = cycles.members().iter().map(Vec::len).sum();
    (seconds, graph.arcs().len(), members)
}

/// The slope of the line through the logarithms, by least squares.
fn slope(points: Vec<(f64, f64)>) -> f64 {
    let count = points.len() as f64;
    let logs = points.iter().map(|(x, y)| (x.ln(), y.ln()));
    let logs: Vec<(f64, f64)> = logs.collect();
    let mean_x = logs.iter().map(|log| log.0).sum::<f64>() / count;
    let mean_y = logs.iter().map(|log| log.1).sum::<f64>() / count;
    let both = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y));
    let width = logs.iter().map(|(x, _)| (x - mean_x).powi(2));
    both.sum::<f64>() / width.sum::<f64>()
}

/// A shape, and how a profile of it and of a size is made.
type Shape = (&'static str, fn(usize) -> Profile, usize);

const SHAPES: [Shape; 3] = [
    ("chain", chain, 1_000_000),
    ("cycle", cycle, 1_000_000),
    ("arcs", arcs, 4_000_000),
];

fn main() {
    let rounds = std::env::args()
        .nth(1)
        .and_then(|rounds| rounds.parse().ok());
    let rounds: usize = rounds.unwrap_or(5);
    print!("{:<6} {:>9} {:>9}", "shape", "arcs", "members");
    STEPS.iter().for_each(|step| print!(" {step:>12}"));
    println!(" {:>12}", "all, ms");
    for (name, make, largest) in SHAPES {
        let mut rows: Vec<(usize, Vec<f64>)> = Vec::new();
        for size in [16, 8, 4, 2, 1].map(|part| largest / part) {
            let profile = make(size);
            let mut least = vec![f64::INFINITY; STEPS.len() + 1];
            let (mut arcs, mut members) = (0, 0);
            for _ in 0..rounds {
                let (seconds, found, inside) = measure(&profile);
                (arcs, members) = (found, inside);
                let all = seconds.iter().sum();
                for (least, seconds) in least.iter_mut().zip(seconds.into_iter().chain([all])) {
                    *least = least.min(seconds);
                }
            }
            print!("{name:<6} {arcs:>9} {members:>9}");
            least
                .iter()
                .for_each(|seconds| print!(" {:>12.2}", seconds * 1e3));
            println!();
            rows.push((arcs, least));
        }
        print!("{name:<6} {:>19}", "slope");
        for step in 0..=STEPS.len() {
            let points = rows.iter().map(|(arcs, least)| (*arcs as f64, least[step]));
            print!(" {:>12.2}", slope(points.collect()));
        }
        println!();
    }
}
