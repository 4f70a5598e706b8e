//! Which functions of two builds are the same.

use super::{MILLISECOND, compared, of, run, run_of, sides};
use crate::compare::{Match, Verdict};

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
