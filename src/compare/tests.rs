//! Laws of comparisons, on runs that are made here.

use super::{Apart, Comparison, FunctionChange, Match, Runs, Side, Verdict, Work};
use crate::base::{Event, Sampling, WeightSum};
use crate::profile::{
    Builder, CallCount, Counts, EventId, Filter, Function, Line, Module, Profile, Thread,
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
fn clones_and_parts_are_their_function() {
    let [base, new] = sides(|side, number| {
        let parts: &[(&str, u64)] = match side {
            0 => &[("main;parse", 300)],
            _ => &[("main;parse.constprop.0", 200), ("main;parse.cold", 100)],
        };
        let mut stacks = parts.to_vec();
        stacks.push(("main;emit", 300 + number % 5));
        run(&stacks)
    });
    let comparison = compared(&base, &new);
    assert!(
        comparison
            .functions
            .iter()
            .all(|it| !it.own.verdict.is_change())
    );
    assert_eq!(
        of(&comparison, "parse.constprop.0").own.base,
        300.0 * MILLISECOND as f64
    );
    assert_eq!(of(&comparison, "parse.constprop.0").matched, Match::Name);
    assert_eq!(of(&comparison, "emit").matched, Match::Linkage);
}

#[test]
fn a_function_that_was_inlined_counts_for_its_caller() {
    let [base, new] = sides(|side, number| {
        let noise = number % 3;
        match side {
            0 => run(&[("main;parse;peek", 200 + noise), ("main;parse", 300)]),
            _ => run(&[("main;parse", 500 + noise)]),
        }
    });
    let comparison = compared(&base, &new);
    let parse = of(&comparison, "parse");
    assert_eq!(parse.own.verdict, Verdict::Same);
    assert_eq!(parse.absorbed, ["peek".into()]);
    assert!(
        comparison
            .functions
            .iter()
            .all(|it| !it.own.verdict.is_change())
    );
}

// One sample in one of many runs.
#[test]
fn a_function_that_was_seen_once_was_not_inlined() {
    let [base, new] = sides(|side, number| match (side, number) {
        (0, 3) => run(&[("main;parse;peek", 1), ("main;parse", 299)]),
        _ => run(&[("main;parse", 300)]),
    });
    let comparison = compared(&base, &new);
    assert!(of(&comparison, "parse").absorbed.is_empty());
    assert!(!of(&comparison, "peek").own.verdict.is_change());
}

#[test]
fn a_new_function_is_new_and_its_caller_has_not_changed() {
    let [base, new] = sides(|side, number| {
        let mut stacks = vec![("main;parse", 300 + number % 3)];
        if side == 1 {
            stacks.push(("main;parse;check", 200 + number % 2));
        }
        run(&stacks)
    });
    let comparison = compared(&base, &new);
    assert_eq!(of(&comparison, "check").own.verdict, Verdict::New);
    assert_eq!(of(&comparison, "parse").own.verdict, Verdict::Same);
}

#[test]
fn a_renamed_function_is_guessed_by_its_callers() {
    let [base, new] = sides(|side, number| {
        let name = ["main;parse;scan", "main;parse;tokenize"][side as usize];
        run(&[
            (name, 400 + number % 3),
            ("main;parse", 50),
            ("main;emit", 300),
        ])
    });
    let comparison = compared(&base, &new);
    let renamed = of(&comparison, "tokenize");
    assert_eq!(renamed.matched, Match::Guess);
    assert_eq!(renamed.was.as_deref(), Some("scan"));
    assert_eq!(renamed.own.verdict, Verdict::Same);
}

// Each alone would have any of the others as its likeness: leaves of one caller.
#[test]
fn of_several_renamed_functions_each_is_guessed_by_its_time() {
    let renamed = |names: [[&str; 2]; 2], times: [u64; 2]| {
        let [base, new] = sides(|side, number| {
            let stack = |name: &str| format!("main;{name}");
            let [first, second] = names[side as usize].map(stack);
            let leaves = [(first.as_str(), times[0] + number % 3), (&second, times[1])];
            run(&[leaves[0], leaves[1], ("main", 100)])
        });
        let comparison = compared(&base, &new);
        let was = |name: &str| of(&comparison, name).was.as_deref().map(str::to_owned);
        names[1].map(was)
    };
    let names = [["scan", "hash"], ["tokenize", "digest"]];
    let [scan, hash] = ["scan", "hash"].map(|name| Some(name.to_owned()));
    assert_eq!(renamed(names, [400, 100]), [scan, hash]);
    // Nothing tells which is which.
    assert_eq!(renamed(names, [200, 200]), [None, None]);
}

// Each of the functions takes 6 % more, less than by how much it varies; what one of two has more
// in a run, the other has less.
#[test]
fn a_cycle_has_changed_where_none_of_its_functions_is_known_to_have() {
    let [base, new] = sides(|side, number| {
        let of = |function: u64| {
            let is_more = ((number >> (function / 2)) + function) % 2 == 1;
            100 + 6 * side + if is_more { 16 } else { 0 } + number % 2
        };
        // Only the new side calls it in the circle.
        let unary = ["main;expr;unary", "main;expr;unary;expr;unary"][side as usize];
        run(&[
            ("main;expr;term;factor;expr", of(0)),
            ("main;expr;term;factor", of(1)),
            ("main;expr;term", of(2)),
            (unary, of(3)),
            ("main;emit", 500),
        ])
    });
    let comparison = compared(&base, &new);
    let [cycle] = &comparison.cycles[..] else {
        panic!("one cycle: {:?}", comparison.cycles);
    };
    let name = |place: usize| &*comparison.functions[place].name;
    let members = cycle
        .members
        .iter()
        .map(|(place, is_in)| (name(*place), *is_in));
    let mut members: Vec<_> = members.collect();
    members.sort_unstable();
    let both = [true; 2];
    let unary = ("unary", [false, true]);
    assert_eq!(
        members,
        [("expr", both), ("factor", both), ("term", both), unary]
    );
    for (name, _) in members {
        assert_eq!(of(&comparison, name).own.verdict, Verdict::Undecided);
    }
    let samples = [cycle.own.base, cycle.own.new].map(|it| it / MILLISECOND as f64);
    assert_eq!(samples, [434.0, 458.0]);
    assert_eq!(cycle.own.verdict, Verdict::Worse);
}

#[test]
fn a_program_is_the_same_under_another_name() {
    let [base, new] = sides(|side, number| {
        let module = ["old", "new"][side as usize];
        run_of(
            module,
            &[("main;a", 300 + number % 3), ("main;b", 100)],
            &[],
        )
    });
    let comparison = compared(&base, &new);
    assert_eq!(comparison.functions.len(), 3);
    assert!(
        comparison
            .functions
            .iter()
            .all(|it| it.own.verdict == Verdict::Same)
    );
}

#[test]
fn calls_that_repeat_are_compared_by_equality() {
    let counted =
        |parse, hash| run_of("app", &[("main", 100)], &[("parse", parse), ("hash", hash)]);
    let base = [counted(1000, 7), counted(1000, 9)];
    let new = [counted(2000, 8), counted(2000, 8)];
    let comparison = compared(&base, &new);
    let parse = of(&comparison, "parse").calls.expect("counted");
    assert_eq!(parse.changed(), Some([1000, 2000]));
    let hash = of(&comparison, "hash").calls.expect("counted");
    assert!(hash.varies && hash.changed().is_none());
    // Nobody knows whether those of a single run repeat.
    let once = compared(&base[..1], &new[..1]);
    assert_eq!(of(&once, "parse").calls.expect("counted").changed(), None);
}

#[test]
fn more_calls_are_of_the_caller_that_makes_them() {
    let counted = |by_load| {
        let mut profile = run(&[("main;load;parse", 100), ("main;store;parse", 100)]);
        let id = |name: &str| {
            let mut functions = profile.functions.enumerate();
            functions.find(|(_, it)| it.name == name).map(|(id, _)| id)
        };
        let to = id("parse").expect("a function");
        let call = |from: &str, calls| CallCount {
            from: id(from),
            to,
            calls,
            is_least: false,
        };
        profile.counts = Some(Counts::of(vec![call("load", by_load), call("store", 5)]));
        profile
    };
    let [base, new] = [10, 20].map(|calls| [counted(calls), counted(calls)]);
    let comparison = compared(&base, &new);
    let parse = of(&comparison, "parse");
    assert_eq!(parse.calls.expect("counted").changed(), Some([15, 25]));
    let by = parse.calls_by.as_ref().expect("one caller");
    assert_eq!(
        (&*by.caller.name, by.calls.changed()),
        ("load", Some([10, 20]))
    );
}

#[test]
fn a_function_that_is_called_through_a_pointer_has_no_number_of_calls() {
    let called = |counted: bool| {
        let mut profile = run_of("app", &[("main;load;parse", 100)], &[("load", 1)]);
        let parse = profile
            .functions
            .enumerate()
            .find(|(_, it)| it.name == "parse");
        let parse = parse.map(|(id, _)| id).expect("a function");
        let calls = CallCount {
            from: None,
            to: parse,
            calls: 500,
            is_least: false,
        };
        let all = profile.counts.take().expect("counts");
        let mut calls_made = all.calls().to_vec();
        calls_made.extend(Some(calls).filter(|_| counted));
        // All calls were counted of the others, and of this one where they are direct.
        let mut complete: Vec<_> = calls_made.iter().map(|it| it.to).collect();
        complete.sort_unstable();
        profile.counts = Some(Counts::of(calls_made).partial(complete));
        profile
    };
    let base = [called(true), called(true)];
    let comparison = compared(&base, &[called(false), called(false)]);
    let calls = of(&comparison, "parse").calls.expect("counted on one side");
    assert_eq!((calls.exact, calls.varies), ([Some(500), None], false));
    assert_eq!(calls.changed(), None);
    assert_eq!(
        of(&comparison, "load").calls.expect("counted").exact,
        [Some(1), Some(1)]
    );
    // Where one run counts all and another does not, nothing is known to vary.
    let mixed = compared(&base, &[called(false), called(true)]);
    assert!(!of(&mixed, "parse").calls.expect("counted").varies);
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

/// Runs of a function that is declared on a line, with samples on further ones.
fn runs_on_lines(declared: u32, lines: &[(u32, u64)]) -> Vec<Profile> {
    let run = |number: u64| {
        let line = |line: u32| Line {
            file: "app.c".into(),
            line,
        };
        let mut builder = Builder::default();
        let event = builder.sampled_event(Event::named("cpu-clock"), Sampling::Drawn);
        let module = builder.module(Module {
            name: "app".into(),
            path: "app".into(),
        });
        let parse = builder.function(Function {
            declared_at: Some(Box::new(line(declared))),
            ..Function::named("parse", module)
        });
        let thread = builder.thread(Thread::new(1, 1, "app"));
        let path = builder.path(None, parse, false);
        for (at, samples) in lines {
            let samples = samples + number % 3;
            let at = builder.line(line(*at));
            let weight = WeightSum::equal(samples * MILLISECOND, samples);
            builder.sample(event, thread, path, Some(at), weight);
        }
        builder.finish()
    };
    (0..6).map(run).collect()
}

// The function is 40 lines further down, and one of its lines takes longer.
#[test]
fn the_line_that_takes_longer_is_named_as_it_is_now() {
    let base = runs_on_lines(10, &[(12, 300), (15, 400)]);
    let new = runs_on_lines(50, &[(52, 300), (55, 600)]);
    let comparison = compared(&base, &new);
    let parse = of(&comparison, "parse");
    assert_eq!(parse.own.verdict, Verdict::Worse);
    let cause = parse.line.as_ref().expect("one line");
    assert_eq!((&*cause.line.file, cause.line.line), ("app.c", 55));
    assert_eq!(cause.change.difference(), 200.0 * MILLISECOND as f64);
}

// A line was inserted above it: no line of the function is what it was.
#[test]
fn no_line_is_named_where_lines_have_moved() {
    let base = runs_on_lines(10, &[(12, 300), (15, 400)]);
    let new = runs_on_lines(10, &[(12, 300), (16, 600)]);
    let comparison = compared(&base, &new);
    let parse = of(&comparison, "parse");
    assert_eq!((parse.own.verdict, &parse.line), (Verdict::Worse, &None));
}

#[test]
fn runs_that_did_more_are_compared_as_if_they_had_not() {
    let mut runs = Runs::default();
    let mut event = None;
    for (side, work) in [(Side::Base, 1000), (Side::New, 3000)] {
        for number in 0..6 {
            let profile = run(&[("main;parse", work + number), ("main", work / 5)]);
            let selection = profile.select(EventId::new(0), &Filter::default());
            event = Some(selection.event().clone());
            runs.add(side, &profile, &selection, None);
            runs.set_work(
                side,
                Work {
                    name: "parse".into(),
                    amount: work,
                },
            );
        }
    }
    let comparison = Comparison::of(event.expect("an event"), &runs);
    assert_eq!(comparison.work.as_ref().map(|it| it.amount), Some(1000));
    assert_eq!(comparison.time.verdict, Verdict::Same);
    assert_eq!(of(&comparison, "parse").own.verdict, Verdict::Same);
}

// What is divided by a number has its variance divided by the square of that.
#[test]
fn a_single_run_that_did_more_tells_more_about_each_piece_of_work() {
    let variances = |new_work: u64| {
        let mut runs = Runs::default();
        let mut event = None;
        for (side, work) in [(Side::Base, 1), (Side::New, new_work)] {
            let profile = run(&[("main;parse", 1000 * work)]);
            let selection = profile.select(EventId::new(0), &Filter::default());
            event = Some(selection.event().clone());
            runs.add(side, &profile, &selection, None);
            let name = "parse".into();
            runs.set_work(side, Work { name, amount: work });
        }
        let comparison = Comparison::of(event.expect("an event"), &runs);
        [comparison.time, of(&comparison, "parse").own].map(|change| {
            assert_eq!(change.difference(), 0.0);
            (change.interval[1] - change.interval[0]).powi(2)
        })
    };
    let (equal, more) = (variances(1), variances(9));
    for (equal, more) in equal.into_iter().zip(more) {
        // 1000 and 1000 samples; 1000 and 9000 that count a ninth each.
        let expected = (1000.0 + 9000.0 / 81.0) / 2000.0;
        assert!((more / equal - expected).abs() < 1e-9, "{}", more / equal);
    }
}

// Numbers that vary by one of a thousand: as small a difference may be chance in few runs.
#[test]
fn what_differs_by_no_more_than_what_varies_takes_more_runs() {
    let run = |load, parse, noise| {
        let calls = [("load", load), ("parse", parse), ("hash", 1000 + noise % 2)];
        run_of("app", &[("main", 100)], &calls)
    };
    let told = |runs: u64| {
        let side = |load, parse| (0..runs).map(move |it| run(load, parse, it)).collect();
        let (base, new): (Vec<Profile>, Vec<Profile>) = (side(1000, 1000), side(1001, 2000));
        let comparison = compared(&base, &new);
        ["load", "parse", "hash"].map(|name| of(&comparison, name).calls.expect(name).changed())
    };
    assert_eq!(told(2), [None, Some([1000, 2000]), None]);
    // Of a single run it is not known whether a difference is of the size of what varies.
    let new: Vec<Profile> = (0..3).map(|it| run(1001, 2000, it)).collect();
    let parse = of(&compared(&[run(1000, 1000, 0)], &new), "parse").calls;
    let parse = parse.expect("counted");
    assert_eq!((parse.is_repeated, parse.may_be_chance), (false, false));
    assert_eq!(told(6), [Some([1000, 1001]), Some([1000, 2000]), None]);
}
