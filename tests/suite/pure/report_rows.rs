//! Which functions the report's list by total shows, and which it folds into others.

use std::collections::{BTreeMap, BTreeSet};

use proftool::analysis::owners::Owners;
use proftool::analysis::report::Summary;
use proftool::base::{Event, WeightSum};
use proftool::export::{Facts, text};
use proftool::input::folded;
use proftool::profile::{Builder, EventId, Filter, Function, Module, Profile, Thread};
use proftool::view::report::{self, Report};
use proftool::view::{Names, Subject};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, prop_assert, prop_assert_eq, proptest};

/// The report of folded stacks with so many rows, and its page.
fn report_of(stacks: &str, limit: Option<usize>) -> (Report, String) {
    let profile = folded::read(stacks.as_bytes(), &mut |_| {}).unwrap();
    report_on(&profile, limit)
}

fn report_on(profile: &Profile, limit: Option<usize>) -> (Report, String) {
    let selection = profile.select(EventId::new(0), &Filter::default());
    let subject = Subject::new(profile, &selection, Names::Full);
    let options = report::Options {
        limit,
        ..report::Options::default()
    };
    let owners = Owners::of_profile(profile, &[]);
    let summary = Summary::of(profile, &selection, owners, false);
    let report = report::arrange(&subject, &summary, &options);
    let page = report.page(&subject);
    let mut out = Vec::new();
    let options = text::Options {
        width: 80,
        color: false,
    };
    text::write(&mut out, &page, &options, &Facts).unwrap();
    (report, String::from_utf8(out).unwrap())
}

/// The rows by total, each with what is folded into it.
fn rows(report: &Report) -> Vec<(&str, Vec<&str>)> {
    let names = report
        .by_total
        .rows
        .iter()
        .map(|row| row.name.text.as_str());
    let folded = report.folded.iter();
    names
        .zip(folded.map(|names| names.iter().map(String::as_str).collect()))
        .collect()
}

#[test]
fn equal_totals_of_other_samples_stay_two_rows() {
    let stacks = "x;a 30\nx;b 20\nyyyy;c 40\nyyyy;d 10\n";
    let (report, page) = report_of(stacks, Some(10));
    let names: Vec<&str> = rows(&report).iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["x", "yyyy", "c", "a", "b", "d"]);
    assert!(!page.contains("same samples"), "{page}");
}

#[test]
fn functions_that_only_pass_samples_on_are_merged_and_counted() {
    let stacks = "_start;main;run;a 6\n_start;main;run;b 4\n";
    let (report, page) = report_of(stacks, Some(10));
    let expected = [
        ("main", vec!["_start", "run"]),
        ("a", vec![]),
        ("b", vec![]),
    ];
    assert_eq!(rows(&report), expected);
    assert!(page.contains("10  main (+2)\n"), "{page}");
    assert!(page.contains("exactly the same samples"), "{page}");
}

#[test]
fn without_main_the_outermost_function_stands_for_the_others() {
    let (report, _) = report_of("first;second;third;a 6\nfirst;second;third;b 4\n", None);
    assert_eq!(rows(&report)[0], ("first", vec!["second", "third"]));
}

#[test]
fn functions_that_recurse_or_have_self_time_keep_their_row() {
    let stacks = "main;run;eval;eval;busy 6\nmain;run;eval;idle 4\n";
    let (report, _) = report_of(stacks, None);
    // Of those on all samples eval recurses.
    assert_eq!(rows(&report)[0], ("eval", vec!["main", "run"]));
    let (report, _) = report_of("main;run;busy 10\n", None);
    assert_eq!(rows(&report), [("busy", vec!["main", "run"])]);
    let (report, _) = report_of("a;b 5\nb;a 5\n", None);
    assert_eq!(rows(&report), [("a", vec![]), ("b", vec![])]);
}

#[test]
fn a_library_does_not_stand_for_the_programs_own_function() {
    let mut builder = Builder::default();
    let event = builder.event(Event::named("cpu-clock"));
    let thread = builder.thread(Thread::new(1, 1, "app"));
    let mut path = None;
    for (name, module) in [("_start", "libc"), ("main", "app"), ("qsort", "libc")] {
        let module = builder.module(Module {
            name: module.into(),
            path: module.into(),
        });
        let function = builder.function(Function::named(name, module));
        path = Some(builder.path(path, function, false));
    }
    builder.sample(event, thread, path.unwrap(), None, WeightSum::equal(10, 10));
    let (report, _) = report_on(&builder.finish(), None);
    assert_eq!(rows(&report), [("qsort", vec![]), ("main", vec!["_start"])]);
}

#[test]
fn folded_rows_leave_room_for_others() {
    let mut stacks = String::new();
    for i in 0..12 {
        stacks.push_str(&format!("main;w{i};v{i};u{i} {}\n", 100 - i));
    }
    let (report, _) = report_of(&stacks, Some(10));
    assert_eq!(report.by_total.rows.len(), 10);
    // Each of the twelve chains is one row: its leaf.
    assert_eq!(rows(&report)[9], ("u8", vec!["w8", "v8"]));
    assert_eq!(report.by_total.hidden, 1 + 3 * 12 - 10 - 2 * 9);
}

/// Stacks of a few functions, so that some share all samples.
fn stacks() -> impl Strategy<Value = Vec<(Vec<usize>, u64)>> {
    let stack = vec(0..9usize, 1..7);
    vec((stack, 1..4u64), 1..8)
}

const MAIN: usize = 9;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_largest_totals_are_listed_or_merged_with_one_on_the_same_samples(
        stacks in stacks(),
        is_below_main in proptest::bool::ANY,
        limit in 1..11usize,
    ) {
        let stacks: Vec<(Vec<String>, u64)> = stacks
            .iter()
            .map(|(stack, weight)| {
                let main = is_below_main.then_some(&MAIN);
                let name = |&function: &usize| match function {
                    MAIN => "main".to_owned(),
                    other => format!("f{other}"),
                };
                (main.into_iter().chain(stack).map(name).collect(), *weight)
            })
            .collect();
        let text: String = stacks
            .iter()
            .map(|(stack, weight)| format!("{} {weight}\n", stack.join(";")))
            .collect();
        // By function: the stacks with it, and its total.
        let mut on: BTreeMap<&str, (BTreeSet<&[String]>, u64)> = BTreeMap::new();
        for (stack, weight) in &stacks {
            let names: BTreeSet<&str> = stack.iter().map(String::as_str).collect();
            for name in names {
                let entry = on.entry(name).or_default();
                entry.0.insert(stack);
                entry.1 += weight;
            }
        }
        let keeps_a_row = |name: &str| stacks.iter().any(|(stack, _)| {
            let times = stack.iter().filter(|frame| *frame == name).count();
            times > 1 || stack.last().is_some_and(|leaf| leaf == name)
        });

        let (whole, _) = report_of(&text, None);
        let mut listed: Vec<&str> = Vec::new();
        for (name, folded) in rows(&whole) {
            listed.push(name);
            for other in folded {
                listed.push(other);
                prop_assert_eq!(&on[other], &on[name], "{} is folded into {}", other, name);
                prop_assert!(!keeps_a_row(other), "{} is folded", other);
            }
        }
        listed.sort_unstable();
        prop_assert_eq!(listed, on.keys().copied().collect::<Vec<_>>());

        let (report, page) = report_of(&text, Some(limit));
        prop_assert_eq!(rows(&report), rows(&whole)[..limit.min(rows(&whole).len())].to_vec());
        for (name, (_, total)) in &on {
            let is_larger = report.by_total.rows.last().is_some_and(|last| *total > last.total);
            let is_in = rows(&report).iter().any(|(row, folded)| row == name || folded.contains(name));
            prop_assert!(is_in || !is_larger, "{} of {} is missing:\n{}", name, total, page);
        }
        let is_folded = rows(&report).iter().any(|(_, folded)| !folded.is_empty());
        prop_assert_eq!(page.contains("exactly the same samples"), is_folded);
    }
}
