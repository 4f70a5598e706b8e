//! Calls by line: worked examples, laws over random recursive stacks, and a recorded program against
//! its source and addr2line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use proftool::analysis::call_sites::{self, CallSite};
use proftool::analysis::detail::{self, Rule};
use proftool::analysis::function::Summary;
use proftool::analysis::{inclusive, lines};
use proftool::base::{Event, WeightSum};
use proftool::callgraph::CallGraph;
use proftool::export::{Facts, csv, json, text};
use proftool::input::folded;
use proftool::profile::{
    Builder, EventId, Filter, Function, FunctionId, Line, LineId, Module, Profile, Selection,
    Thread, Weighing,
};
use proftool::view::detail::{Options, arrange};
use proftool::view::{Names, Subject};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, proptest};
use regex::Regex;

use crate::support::call_sites::{of, recorded, succeeded};
use crate::support::cli::{fixture, proftool};
use crate::support::{golden, skipped};

/// A frame: the function, the line of its caller that it was called from, and whether it is inlined
/// there.
type Frame = (usize, Option<u32>, bool);

/// Samples of one stack: outermost frame first; event, thread, weight and number.
type Taken = (Vec<Frame>, usize, usize, u64, u64);

/// The profile of these samples, with their places or without; functions are called `f0`, `f1`, …
fn build(samples: &[Taken], placed: bool) -> Profile {
    let mut builder = Builder::default();
    let events = ["cpu-clock", "faults"].map(|name| builder.event(Event::named(name)));
    let module = builder.module(Module {
        name: "app".into(),
        path: "/app".into(),
    });
    let functions: Vec<FunctionId> = (0..5)
        .map(|i| builder.function(Function::named(format!("f{i}"), module)))
        .collect();
    let threads = [0, 1].map(|tid| builder.thread(Thread::new(1, tid, format!("t{tid}"))));
    for (stack, event, thread, weight, count) in samples {
        let (mut path, mut place, mut last) = (None, None, None);
        for &(function, line, inlined) in stack {
            let line = line.map(|line| {
                builder.line(Line {
                    file: "a.c".into(),
                    line,
                })
            });
            let here = builder.path(path, functions[function], inlined && path.is_some());
            let from = line.filter(|_| path.is_some());
            place = placed.then(|| builder.place(place, here, from));
            (path, last) = (Some(here), line);
        }
        let (event, thread) = (events[*event], threads[*thread]);
        let fits = match placed {
            true => builder.sample_at(
                event,
                thread,
                place.unwrap(),
                last,
                WeightSum::equal(*weight, *count),
            ),
            false => builder.sample(
                event,
                thread,
                path.unwrap(),
                last,
                WeightSum::equal(*weight, *count),
            ),
        };
        assert!(fits);
    }
    builder.finish()
}

/// `f1@12 5` for each: callee or caller, line and weight; `i` behind what is inlined.
fn told(profile: &Profile, sites: &[CallSite]) -> String {
    let one = |site: &CallSite| {
        let name = &profile.functions[site.function].name;
        let line = site.line.map(|line| profile.lines[line].line.to_string());
        let line = line.unwrap_or("?".into());
        let inlined = if site.inlined { "i" } else { "" };
        format!("{name}@{line} {}{inlined}", site.weight)
    };
    sites.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Stacks as `f0 9:f1 4:f2! 5`: lines before functions, `!` behind inlined ones, then the weight.
fn stacks(text: &str) -> Vec<Taken> {
    let frame = |word: &str| -> Frame {
        let (line, function) = word.split_once(':').unwrap_or(("", word));
        let inlined = function.ends_with('!');
        let function = function.trim_start_matches('f').trim_end_matches('!');
        (function.parse().unwrap(), line.parse().ok(), inlined)
    };
    let stack = |line: &str| {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let frames = stack.split(' ').map(frame).collect();
        (frames, 0, 0, weight.parse().unwrap(), 1)
    };
    text.split('\n').map(stack).collect()
}

#[test]
fn a_sample_counts_once_for_a_line_and_a_callee() {
    // stacks, function, calls that it makes, calls by which it is reached
    let cases = [
        // Two lines with one callee, and one line with two.
        (
            "f0 9:f1 4:f2 1\nf0 9:f1 7:f2 2\nf0 9:f1 7:f3 4",
            1,
            "f3@7 4, f2@7 2, f2@4 1",
            "f0@9 7",
        ),
        // The same call again further in is no second weight; another line is.
        (
            "f0 9:f1 4:f1 4:f1 8\nf0 9:f1 4:f1 6:f1 1",
            1,
            "f1@4 9, f1@6 1",
            "f1@4 9, f0@9 9, f1@6 1",
        ),
        // Through another function.
        (
            "f0 1:f1 2:f2 3:f1 2:f2 5:f3 10",
            2,
            "f1@3 10, f3@5 10",
            "f1@2 10",
        ),
        // Beside the first, not under it: both count.
        (
            "f0 1:f1 4:f2 3\nf0 2:f1 4:f2 5",
            1,
            "f2@4 8",
            "f0@2 5, f0@1 3",
        ),
        // Lines that are not known are one, and inlined is what nobody calls there.
        (
            "f0 f1 2:f2! 3\nf0 f1 f2 1\nf0 f1 2:f3 2\nf0 f1 2:f3! 2",
            1,
            "f3@2 4, f2@2 3i, f2@? 1",
            "f0@? 8",
        ),
        // The outermost function has no caller, and the leaf no callee.
        ("f0 1:f1 1", 0, "f1@1 1", ""),
        ("f0 1:f1 1", 1, "", "f0@1 1"),
    ];
    for (text, function, made, received) in cases {
        let profile = build(&stacks(text), true);
        let sites = of(&profile, &Filter::default(), function);
        assert_eq!(told(&profile, &sites.made), made, "{text}");
        assert_eq!(told(&profile, &sites.received), received, "{text}");
    }
}

#[test]
fn filters_and_units_are_those_of_all_views() {
    let mut samples = stacks("f0 9:f1 4:f2 5\nf0 9:f1 4:f2 6:f3 7\nf0 8:f1 4:f2 1\nf0 9:f1 4:f2 2");
    (samples[2].2, samples[2].4) = (1, 3);
    samples[3].1 = 1;
    let profile = build(&samples, true);
    let matching = |name: &str| Some(Regex::new(name).unwrap());
    let all = Filter::default();
    let cases = [
        (all.clone(), "f2@4 13", "f0@9 12, f0@8 1"),
        (
            Filter {
                comms: vec!["t1".into()],
                ..all.clone()
            },
            "f2@4 1",
            "f0@8 1",
        ),
        (
            Filter {
                focus: matching("f3"),
                ..all.clone()
            },
            "f2@4 7",
            "f0@9 7",
        ),
        (
            Filter {
                ignore: matching("f3"),
                ..all.clone()
            },
            "f2@4 6",
            "f0@9 5, f0@8 1",
        ),
        (
            Filter {
                weighing: Weighing::Samples,
                ..all.clone()
            },
            "f2@4 5",
            "f0@8 3, f0@9 2",
        ),
    ];
    for (filter, made, received) in cases {
        let sites = of(&profile, &filter, 1);
        assert_eq!(told(&profile, &sites.made), made, "{filter:?}");
        assert_eq!(told(&profile, &sites.received), received, "{filter:?}");
    }
    let faults = profile.select(EventId::new(1), &all);
    let sites = call_sites::of(&profile, &faults, FunctionId::new(1)).unwrap();
    assert_eq!(told(&profile, &sites.made), "f2@4 2");
}

#[test]
fn a_stack_of_100_000_calls_works() {
    let mut stack: Vec<Frame> = vec![(0, None, false)];
    for level in 0..50_000 {
        stack.push((1, Some(1 + level % 7), false));
        stack.push((2, Some(9), false));
    }
    let profile = build(&[(stack, 0, 0, 5, 1)], true);
    let sites = of(&profile, &Filter::default(), 1);
    assert_eq!(told(&profile, &sites.made), "f2@9 5");
    assert_eq!(sites.received.len(), 8);
    assert!(sites.received.iter().all(|site| site.weight == 5));
}

#[test]
fn folded_stacks_have_no_lines_of_calls() {
    let profile = folded::read(&b"main;a;b 3\n"[..], &mut |_| {}).unwrap();
    let selection = profile.select(EventId::new(0), &Filter::default());
    let a = FunctionId::new(1);
    assert_eq!(call_sites::of(&profile, &selection, a), None);
    let file = fixture("recursion");
    let output = proftool(&["detail", "a", &file]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Contributions") && !text.contains("Source lines"));
}

#[test]
fn the_page_shows_lines_what_is_inlined_and_what_is_hidden() {
    let samples = stacks(
        "f0 9:f1 4:f2 5\nf0 9:f1 4:f2! 7\nf0 9:f1 5:f3! 6\nf0 8:f1 f2 4\n\
         f0 7:f1! 6:f1 6:f4 3\nf0 7:f1! 5:f4 1",
    );
    let profile = build(&samples, true);
    let selection = profile.select(EventId::new(0), &Filter::default());
    let subject = Subject::new(&profile, &selection, Names::Short);
    let function = FunctionId::new(1);
    let summary = Summary::of(&profile, &selection, function, Rule::Strict);
    let options = Options {
        limit: Some(4),
        min: 0.0,
    };
    let view = arrange(&subject, summary, &options);
    let mut out = Vec::new();
    let look = text::Options {
        width: 80,
        color: false,
    };
    text::write(&mut out, &view.page(&subject), &look, &Facts).unwrap();
    csv::write(&mut out, &view.table(&subject)).unwrap();
    json::detail::write(&mut out, &subject, &view, &Facts).unwrap();
    let told = String::from_utf8_lossy(&out);
    assert!(golden::holds("call-sites.detail.txt", &out), "{told}");
}

/// By line and other end, the weight and whether all is inlined.
type Sites = BTreeMap<(usize, Option<u32>), (u64, bool)>;

/// What a function calls and is called by, each stack looked at by itself.
fn oracle(samples: &[Taken], event: usize, function: usize) -> [Sites; 2] {
    let mut sides = [Sites::new(), Sites::new()];
    for (stack, _, _, weight, _) in samples.iter().filter(|sample| sample.1 == event) {
        let mut once = BTreeSet::new();
        for pair in stack.windows(2) {
            let ((caller, ..), (callee, line, inlined)) = (pair[0], pair[1]);
            let ends = [(0, caller, callee), (1, callee, caller)];
            for (side, ours, other) in ends.into_iter().filter(|end| end.1 == function) {
                let site = sides[side].entry((other, line)).or_insert((0, true));
                site.1 &= inlined;
                if once.insert((side, ours, other, line)) {
                    site.0 += weight;
                }
            }
        }
    }
    sides
}

fn found(profile: &Profile, sites: &[CallSite]) -> Sites {
    let line = |line: LineId| profile.lines[line].line;
    sites
        .iter()
        .map(|site| {
            let key = (site.function.index(), site.line.map(line));
            (key, (site.weight, site.inlined))
        })
        .collect()
}

fn samples() -> impl Strategy<Value = Vec<Taken>> {
    let frame = (0..5usize, option::of(1..4u32), any::<bool>());
    vec(
        (vec(frame, 1..12), 0..2usize, 0..2usize, 0..9u64, 1..3u64),
        1..16,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_line_equals_a_count_stack_by_stack(samples in samples()) {
        let profile = build(&samples, true);
        for event in 0..2 {
            let selection = profile.select(EventId::new(event), &Filter::default());
            for function in profile.functions.ids() {
                let sites = call_sites::of(&profile, &selection, function).unwrap();
                let ours = [&sites.made, &sites.received].map(|side| found(&profile, side));
                prop_assert_eq!(ours, oracle(&samples, event, function.index()));
                for side in [&sites.made, &sites.received] {
                    prop_assert!(side.is_sorted_by(|a, b| a.weight >= b.weight));
                }
            }
        }
    }

    #[test]
    fn the_lines_of_a_pair_together_have_the_weight_of_its_arc(samples in samples()) {
        let profile = build(&samples, true);
        let selection = profile.select(EventId::new(0), &Filter::default());
        let graph = CallGraph::of(&profile, &selection);
        let mut sums: BTreeMap<(FunctionId, FunctionId), [(u64, u64); 2]> = BTreeMap::new();
        for function in profile.functions.ids() {
            let sites = call_sites::of(&profile, &selection, function).unwrap();
            let made = sites.made.iter().map(|site| (0, (function, site.function), site));
            let received = sites.received.iter().map(|site| (1, (site.function, function), site));
            for (side, pair, site) in made.chain(received) {
                let (sum, most) = &mut sums.entry(pair).or_default()[side];
                *sum += site.weight;
                *most = (*most).max(site.weight);
            }
        }
        prop_assert_eq!(sums.len(), graph.arcs().len());
        for arc in graph.arcs().iter() {
            let [made, received] = sums[&arc.pair()];
            prop_assert_eq!(made, received);
            prop_assert!(made.1 <= arc.weight && arc.weight <= made.0);
        }
    }

    #[test]
    fn places_change_nothing_else(samples in samples(), counted in any::<bool>()) {
        let weighing = if counted { Weighing::Samples } else { Weighing::Weight };
        let [with, without] = [true, false].map(|placed| build(&samples, placed));
        prop_assert!(without.places.is_none());
        let rows = with.samples.len();
        prop_assert_eq!(with.places.as_ref().unwrap().of_sample(rows), None);
        for event in [0, 1].map(EventId::new) {
            let filter = Filter { weighing, ..Filter::default() };
            let select = |profile: &Profile| profile.select(event, &filter);
            let [ours, theirs] = [select(&with), select(&without)];
            prop_assert_eq!((ours.total(), ours.samples()), (theirs.total(), theirs.samples()));
            // Each place is on the path of its sample.
            let places = with.places.as_ref().unwrap();
            for row in ours.rows() {
                prop_assert_eq!(places.tree()[row.place.unwrap()].path, row.path);
            }
            for function in with.functions.ids() {
                let figures = |profile: &Profile, selection: &Selection| {
                    let own = lines::by_function(profile, selection).of(function).to_vec();
                    let detail = detail::of(profile, selection, function, Rule::Strict);
                    let totals = inclusive::by_function(profile, selection);
                    (own, detail, totals.total[function])
                };
                prop_assert_eq!(figures(&with, &ours), figures(&without, &theirs));
            }
        }
    }
}

#[test]
fn addr2line_finds_the_same_calls_by_line() {
    for tool in ["python3", "perf", "addr2line", "readelf", "nm"] {
        if !succeeded(Command::new(tool).arg("--version").output()) {
            skipped(&format!("{tool} does not work here"));
            return;
        }
    }
    for options in ["-O0", "-O1"] {
        let Some((program, recording)) = recorded("lines-by-addr2line", options) else {
            return;
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/compare_call_lines.py");
        let mut compare = Command::new("python3");
        compare.arg(script);
        compare.args(["--proftool", env!("CARGO_BIN_EXE_proftool")]);
        let output = compare.args([recording, program]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(told.ends_with(", 0 differ\n"), "{options}: {output:?}");
        assert!(told.contains(" 6 functions (0 left out), "), "{told}");
    }
}
