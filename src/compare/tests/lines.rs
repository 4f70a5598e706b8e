//! The lines on which differences are.

use super::{MILLISECOND, compared, of};
use crate::base::{Event, Sampling, WeightSum};
use crate::compare::Verdict;
use crate::profile::{Builder, Function, Line, Module, Profile, Thread};

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
