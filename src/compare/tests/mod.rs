//! Laws of comparisons, on runs that are made here.

mod calls;
mod lines;
mod matching;

use super::{Apart, Comparison, FunctionChange, Runs, Side, Verdict};
use crate::base::{Event, Sampling, WeightSum};
use crate::profile::{
    Builder, CallCount, Counts, EventId, Filter, Function, Module, Profile, Thread,
};

const MILLISECOND: u64 = 1_000_000;

/// A run: stacks by names, outermost first, each with its number of samples.
fn run(stacks: &[(&str, u64)]) -> Profile {
    run_of("app", stacks, &[])
}

fn run_of(module: &str, stacks: &[(&str, u64)], calls: &[(&str, u64)]) -> Profile {
    let mut builder = Builder::default();
    let event = builder.sampled_event(Event::named("cpu-clock"), Sampling::Drawn);
    let module = builder.module(Module {
        name: module.into(),
        path: module.into(),
    });
    let thread = builder.thread(Thread::new(1, 1, "app"));
    let mut numbers = std::collections::BTreeMap::new();
    let mut function = |builder: &mut Builder, name: &str| {
        *numbers
            .entry(name.to_owned())
            .or_insert_with(|| builder.function(Function::named(name, module)))
    };
    for &(stack, samples) in stacks {
        let mut path = None;
        for name in stack.split(';') {
            let function = function(&mut builder, name);
            path = Some(builder.path(path, function, false));
        }
        let path = path.expect("a stack has a frame");
        let weight = WeightSum::equal(samples * MILLISECOND, samples);
        builder.sample(event, thread, path, None, weight);
    }
    let calls = calls.iter().map(|&(name, calls)| CallCount {
        from: None,
        to: function(&mut builder, name),
        calls,
        is_least: false,
    });
    let calls: Vec<CallCount> = calls.collect();
    let mut profile = builder.finish();
    profile.counts = (!calls.is_empty()).then(|| Counts::of(calls));
    profile
}

fn compared(base: &[Profile], new: &[Profile]) -> Comparison {
    let mut runs = Runs::default();
    let mut event = None;
    for (side, profiles) in [(Side::Base, base), (Side::New, new)] {
        for profile in profiles {
            let selection = profile.select(EventId::new(0), &Filter::default());
            event = Some(selection.event().clone());
            runs.add(side, profile, &selection, None);
        }
    }
    Comparison::of(event.expect("a run"), &runs)
}

fn of<'a>(comparison: &'a Comparison, name: &str) -> &'a FunctionChange {
    let mut functions = comparison.functions.iter();
    functions
        .find(|it| &*it.name == name)
        .expect("the function is compared")
}

fn sides(make: impl Fn(u64, u64) -> Profile) -> [Vec<Profile>; 2] {
    [0, 1].map(|side| (0..8).map(|run| make(side, run)).collect())
}

#[test]
fn a_slower_leaf_is_named_and_its_callers_only_in_total() {
    let [base, new] = sides(|side, run_number| {
        let noise = run_number % 4;
        run(&[
            ("main;parse;lex", 200 + 30 * side + noise),
            ("main;emit", 500 + noise),
            ("main;parse", 100 - noise),
        ])
    });
    let comparison = compared(&base, &new);
    let lex = of(&comparison, "lex");
    assert_eq!(lex.own.verdict, Verdict::Worse);
    assert!((lex.own.percent().expect("a base") - 15.0).abs() < 1.0);
    assert_eq!(of(&comparison, "emit").own.verdict, Verdict::Same);
    let parse = of(&comparison, "parse");
    assert_eq!(parse.own.verdict, Verdict::Same);
    assert_eq!(parse.total.verdict, Verdict::Worse);
    assert_eq!(comparison.time.verdict, Verdict::Worse);
    assert_eq!(&*comparison.functions[0].name, "lex");
}

#[test]
fn no_difference_of_times_is_known_of_other_machines() {
    let [base, mut new] = sides(|side, number| {
        let stack = [("main;parse", 100 + 100 * side + number % 3)];
        run_of("app", &stack, &[("parse", 1000 * (side + 1))])
    });
    assert_eq!(compared(&base, &new).time.verdict, Verdict::Worse);
    let name = |new: &mut Vec<Profile>, host: &str| {
        let about = new.iter_mut().map(|profile| &mut profile.about);
        about.for_each(|about| about.host = Some(host.to_owned()));
    };
    let mut base = base;
    name(&mut base, "one");
    name(&mut new, "two");
    let comparison = compared(&base, &new);
    assert_eq!(comparison.apart, Some(Apart::Machines));
    let parse = of(&comparison, "parse");
    let changes = [comparison.time, parse.own, parse.total];
    let told = changes.map(|it| (it.verdict, it.more_runs));
    assert_eq!(told, [(Verdict::Undecided, None); 3]);
    let calls = parse.calls.expect("counted");
    assert_eq!(calls.changed(), Some([1000, 2000]));
}

#[test]
fn one_slow_function_makes_no_other_look_faster() {
    let [base, new] = sides(|side, number| {
        let noise = number % 3;
        run(&[
            ("main;a", 100 + 900 * side + noise),
            ("main;b", 100 + noise),
        ])
    });
    let comparison = compared(&base, &new);
    assert_eq!(of(&comparison, "a").own.verdict, Verdict::Worse);
    assert_ne!(of(&comparison, "b").own.verdict, Verdict::Better);
}

#[test]
fn the_cause_is_the_caller_for_which_a_function_got_slower() {
    let [base, new] = sides(|side, number| {
        let noise = number % 3;
        run(&[
            ("main;load;hash", 100 + 60 * side + noise),
            ("main;store;hash", 300 + noise),
        ])
    });
    let comparison = compared(&base, &new);
    let cause = of(&comparison, "hash").cause.as_ref().expect("one caller");
    assert_eq!(&*cause.caller.name, "load");
}

#[test]
fn single_runs_say_large_or_undecided() {
    let base = [run(&[("main;a", 500), ("main;b", 500)])];
    let little = compared(&base, &[run(&[("main;a", 560), ("main;b", 500)])]);
    assert_eq!(of(&little, "a").own.verdict, Verdict::Undecided);
    let much = compared(&base, &[run(&[("main;a", 1000), ("main;b", 500)])]);
    assert_eq!(of(&much, "a").own.verdict, Verdict::Large);
    assert_eq!(of(&much, "b").own.verdict, Verdict::Undecided);
}

#[test]
fn a_side_with_one_run_varies_as_the_other_does() {
    let noisy = |number: u64| run(&[("main;a", 400 + 40 * (number % 5))]);
    let base: Vec<Profile> = (0..10).map(noisy).collect();
    let comparison = compared(&base, &[run(&[("main;a", 560)])]);
    assert_eq!(of(&comparison, "a").own.verdict, Verdict::Undecided);
    let comparison = compared(&base, &[run(&[("main;a", 2000)])]);
    assert_eq!(of(&comparison, "a").own.verdict, Verdict::Worse);
}
