//! What collapsing recursion costs: a million distinct stacks, 100 frames deep, of some functions (50)
//! that call each other, and one stack of 100 000 frames. For each degree the processor seconds of the tree
//! and of counting its rows, its rows, and the memory beyond that of the profile, in multiples of it.
//!
//! ```sh
//! cargo run --release --example collapse [STACKS [FUNCTIONS]]
//! ```

use proftool::analysis::tree::{Collapse, Stacks};
use proftool::base::{Event, WeightSum};
use proftool::profile::{
    Builder, EventId, Filter, Function, FunctionId, Module, PathId, Profile, Thread,
};

const DEPTH: usize = 100;
/// How many functions each one calls.
const CALLEES: u64 = 4;

fn main() {
    let number = |place| std::env::args().nth(place).and_then(|n| n.parse().ok());
    let functions = number(2).unwrap_or(50).max(1);
    let many = million(number(1).unwrap_or(1_000_000), functions);
    measure("a million stacks of 100 frames", &many);
    drop(many);
    measure("a stack of 100000 frames", &deep(100_000, functions));
}

/// Functions `f0`, `f1` and so on, and a way to add stacks of them.
fn builder(number: u64) -> (Builder, Vec<FunctionId>) {
    let mut builder = Builder::default();
    builder.event(Event::named("cpu-clock"));
    let module = builder.module(Module {
        name: "app".into(),
        path: "/app".into(),
    });
    let function = |i| Function {
        address: Some(i),
        ..Function::named(format!("f{i}"), module)
    };
    let functions = (0..number).map(|i| builder.function(function(i))).collect();
    builder.thread(Thread::new(1, 1, "app"));
    (builder, functions)
}

/// Each stack leaves the one before it at a random depth, mostly near its end, as samples do.
fn million(stacks: u64, number: u64) -> Profile {
    let (mut builder, functions) = builder(number);
    let thread = builder.thread(Thread::new(1, 1, "app"));
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) % below
    };
    let mut stack: Vec<(u64, PathId)> = Vec::new();
    for _ in 0..stacks {
        let new = if random(10) > 0 {
            random(10)
        } else {
            random(DEPTH as u64)
        };
        stack.truncate((DEPTH - 1).saturating_sub(new as usize));
        while stack.len() < DEPTH {
            let caller = stack.last().copied();
            let from = caller.map_or(0, |(function, _)| function);
            let callee = (from * 7 + random(CALLEES) * random(CALLEES) + 1) % number;
            let function = functions[callee as usize];
            let path = builder.path(caller.map(|(_, path)| path), function, false);
            stack.push((callee, path));
        }
        if let Some(&(_, path)) = stack.last() {
            builder.sample(EventId::new(0), thread, path, None, WeightSum::of(1));
        }
    }
    builder.finish()
}

/// One stack that goes round all functions.
fn deep(depth: usize, number: u64) -> Profile {
    let (mut builder, functions) = builder(number);
    let thread = builder.thread(Thread::new(1, 1, "app"));
    let mut path = None;
    for function in functions.iter().cycle().take(depth) {
        path = Some(builder.path(path, *function, false));
    }
    if let Some(path) = path {
        builder.sample(EventId::new(0), thread, path, None, WeightSum::of(1));
    }
    builder.finish()
}

#[expect(clippy::print_stdout, reason = "the figures are the program's answer")]
fn measure(what: &str, profile: &Profile) {
    let selection = profile.select(EventId::new(0), &Filter::default());
    let paths = profile.paths.len();
    let before = memory("VmRSS");
    println!(
        "{what}: {} stacks, {paths} paths, {before} MB",
        profile.samples.len()
    );
    println!("degree          seconds  counting      rows  more memory");
    for collapse in Collapse::ALL {
        // Sets the peak back to what is in use.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let start = processor();
        let stacks = Stacks::new(profile, &selection);
        let tree = stacks.top_down(collapse);
        let seconds = processor() - start;
        let more = memory("VmHWM").saturating_sub(before);
        let start = processor();
        let rows = stacks.rows(collapse, usize::MAX);
        let counting = processor() - start;
        assert_eq!(rows, Some(tree.nodes.len()));
        let rows = tree.nodes.len();
        println!(
            "{:<14}{seconds:>9.3}{counting:>10.3}{rows:>10}  {more} MB, {:.1} times",
            collapse.name(),
            more as f64 / before.max(1) as f64
        );
    }
}

/// The seconds that this thread has had a processor.
fn processor() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = times
        .split_whitespace()
        .next()
        .and_then(|n| n.parse::<f64>().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}

/// A figure of this process's memory, in MB.
fn memory(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(key));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) / 1024
}
