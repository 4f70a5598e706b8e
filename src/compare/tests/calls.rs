//! Numbers of calls, and weights per work.

use super::{compared, of, run, run_of};
use crate::compare::{Comparison, Runs, Side, Verdict, Work};
use crate::profile::{CallCount, Counts, EventId, Filter, Profile};

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
