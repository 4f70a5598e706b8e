//! Self and total weights: folded stacks in, a table of numbers out.

use std::collections::BTreeMap;

use proftool::analysis::inclusive;
use proftool::input;
use proftool::profile::{EventId, Filter, Profile};

use crate::support::{cases, profile_of};

/// Self and total of each function by name.
fn weights(profile: &Profile) -> BTreeMap<String, (u64, u64)> {
    let selection = profile.select(EventId::new(0), &Filter::default());
    let weights = inclusive::by_function(profile, &selection);
    let row = |id| {
        let name = profile.functions[id].name.clone();
        (name, (weights.self_weight[id], weights.total[id]))
    };
    weights.present().map(row).collect()
}

#[test]
fn a_sample_counts_once_however_often_the_function_is_on_its_stack() {
    // stacks, then function, self, total
    let cases = [
        // Without recursion total is self and what is called.
        ("m 1;m;a 6;m;a;b 30", "m 1 37;a 6 36;b 30 30"),
        // a calls b calls a: 3 is in a's total once.
        ("m;a;b;a 3;m;a 1", "m 0 4;a 4 4;b 0 3"),
        // Direct recursion.
        ("r 1;r;r 1;r;r;r 1", "r 3 3"),
        // Recursion through two branches of one caller.
        ("m;a;x;a 2;m;a;y;a 3;m;y 4", "m 0 9;a 5 5;x 0 2;y 4 7"),
        // The same function outermost in one stack and under another one in the next.
        ("a;b 1;b;a 2", "a 2 3;b 1 3"),
        // Quantify's first sequence: A is called again by C.
        (
            "main;A 32;main;A;B 17;main;A;B;C 23;main;A;B;C;A 32;main;A;B;C;A;D 14",
            "main 0 118;A 64 118;B 17 86;C 23 69;D 14 14",
        ),
        // Puma's second example: one stack through a b c twice.
        ("main;a;b;c;b;a;d;c 1", "main 0 1;a 0 1;b 0 1;c 1 1;d 0 1"),
    ];
    for (stacks, table) in cases {
        let text = lines(stacks);
        let expected: BTreeMap<String, (u64, u64)> = table.split(';').map(row).collect();
        assert_eq!(weights(&profile_of(&text)), expected, "{text}");
    }
}

/// `a;b 12;c 3` as lines: a part with a space ends a stack.
fn lines(stacks: &str) -> String {
    let mut text = String::new();
    for part in stacks.split(';') {
        text.push_str(part);
        text.push(if part.contains(' ') { '\n' } else { ';' });
    }
    text
}

fn row(text: &str) -> (String, (u64, u64)) {
    let mut parts = text.split(' ');
    let name = parts.next().unwrap().to_owned();
    let mut number = || parts.next().unwrap().parse().unwrap();
    (name, (number(), number()))
}

#[test]
fn a_stack_of_100_000_frames_is_walked_without_recursion() {
    let mut stack = String::from("main");
    for _ in 0..50_000 {
        stack.push_str(";f;g");
    }
    let expected = [("f", 0, 5), ("g", 5, 5), ("main", 0, 5)];
    let expected: BTreeMap<String, (u64, u64)> = expected
        .map(|(name, own, total)| (name.to_owned(), (own, total)))
        .into();
    assert_eq!(weights(&profile_of(&format!("{stack} 5\n"))), expected);
}

/// Each case has `stacks.folded` and `measured.json` with `functions {NAME: {self, incl}}`, and some have
/// a recording of the same stacks.
#[test]
fn reference_cases_agree() {
    for case in cases("stacks.folded") {
        let stacks = std::fs::read_to_string(case.join("stacks.folded")).unwrap();
        let measured = std::fs::read_to_string(case.join("measured.json")).unwrap();
        let measured: serde_json::Value = serde_json::from_str(&measured).unwrap();
        let functions = measured["functions"].as_object().unwrap();
        let expected = functions.iter().map(|(name, f)| {
            let figures = (f["self"].as_u64().unwrap(), f["incl"].as_u64().unwrap());
            (name.clone(), figures)
        });
        let expected = expected.collect();
        assert_eq!(
            weights(&profile_of(&stacks)),
            expected,
            "{}",
            case.display()
        );
        let recording = case.join("perf.data");
        if recording.exists() {
            let options = input::Options {
                symfs: Some(case.clone()),
                ..input::Options::default()
            };
            let profile = input::open_with(&recording, &options, &mut |_, _| ()).unwrap();
            assert_eq!(weights(&profile), expected, "{}", recording.display());
        }
    }
}
