//! Tables where there is no terminal.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proftool::base::{Event, Unit};
use proftool::export::text;
use proftool::view::flat::Sort;

use super::super::print::{self, Options};
use super::super::source::{Seen, Source, State, Written};
use super::super::text::Shown;
use super::stage::{CALCULATOR, LATER, seen};

// Sees one thing after the other, and has ended with the last.
struct Script {
    seen: Vec<Arc<Seen>>,
    at: AtomicUsize,
    stops: AtomicUsize,
}

impl Script {
    fn new(stacks: &[&str]) -> Script {
        let seen = (1..)
            .zip(stacks)
            .map(|(number, stacks)| seen(number, stacks));
        Script {
            seen: seen.collect(),
            at: AtomicUsize::new(0),
            stops: AtomicUsize::new(0),
        }
    }
}

impl Source for Script {
    fn latest(&self) -> Option<Arc<Seen>> {
        let at = self.at.fetch_add(1, Ordering::Relaxed);
        let last = self.seen.len().checked_sub(1)?;
        self.seen.get(at.min(last)).cloned()
    }

    fn set_half_life(&self, _: Option<Duration>) {}

    fn reset(&self) {}

    fn write(&self, _: &Seen, _: &Path) -> Result<Written, String> {
        Err("a script writes nothing".into())
    }

    fn state(&self) -> State {
        if self.at.load(Ordering::Relaxed) + 1 >= self.seen.len() {
            State::Ended("the command exited with status 0".into())
        } else {
            State::Running
        }
    }

    fn stop(&self) {
        self.stops.fetch_add(1, Ordering::Relaxed);
    }
}

fn options(half_life: Option<Duration>) -> Options {
    Options {
        interval: Duration::from_millis(1),
        limit: Some(2),
        sort: Sort::SelfWeight,
        half_life,
        event: None,
        text: text::Options {
            width: 80,
            color: false,
        },
    }
}

fn shown() -> Shown {
    Shown {
        target: "./calc".into(),
        how: "997 Hz".into(),
        situation: super::super::super::advice::Situation::Top,
    }
}

#[test]
fn a_table_is_printed_for_each_update_and_the_end_is_reported() {
    let script = Script::new(&[CALCULATOR, LATER]);
    let mut out = Vec::new();
    print::print(&script, &shown(), &options(None), &mut out).unwrap();
    let expected = "\
0:05  ./calc: 754 samples of cpu-clock, 7.540 s in all
self %  total %     self    total  function  module
 31.83    46.42  2.400 s  3.500 s  lookup    calc
 23.87    23.87  1.800 s  1.800 s  sum       calc
… 10 more functions

0:10  ./calc: 1,226 samples of cpu-clock, 12.26 s in all
self %  total %     self    total  function  module
 73.41    73.41  9.000 s  9.000 s  lex       calc
 20.39    20.39  2.500 s  2.500 s  lookup    calc
… 6 more functions

the command exited with status 0
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
    assert_eq!(script.stops.load(Ordering::Relaxed), 1);
}

#[test]
fn faded_weights_are_labelled_and_old_tables_are_not_repeated() {
    let mut script = Script::new(&[CALCULATOR]);
    script.seen = vec![script.seen.remove(0); 3];
    let mut out = Vec::new();
    let half_life = Some(Duration::from_secs(5));
    print::print(&script, &shown(), &options(half_life), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let head = "0:05  ./calc: 754 samples, fading: 7.540 s of cpu-clock in all\n";
    assert!(text.starts_with(head), "{text}");
    assert_eq!(text.matches("./calc").count(), 1, "{text}");
}

#[test]
fn no_table_is_printed_before_the_first_sample() {
    let script = Script::new(&["", "", CALCULATOR, "", LATER]);
    let mut out = Vec::new();
    print::print(&script, &shown(), &options(None), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with("0:15  ./calc: 754 samples"), "{text}");
    assert_eq!(text.matches("./calc").count(), 2, "{text}");
}

#[test]
fn the_end_does_not_repeat_the_last_table() {
    let script = Script::new(&[CALCULATOR, CALCULATOR]);
    let mut out = Vec::new();
    print::print(&script, &shown(), &options(None), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.matches("./calc").count(), 1, "{text}");
}

#[test]
fn other_events_are_named_and_can_be_chosen() {
    let mut script = Script::new(&[CALCULATOR]);
    let seen = Arc::make_mut(&mut script.seen[0]);
    let mut blocked = Event::named("off-cpu");
    blocked.unit = Unit::Nanoseconds;
    let blocked = seen.profile.events.push(blocked);
    // An event without samples is not shown.
    seen.profile.events.push(Event::named("page-faults"));
    seen.seldom = 3;
    let mut sample = seen.profile.samples[0];
    (sample.event, sample.weight, sample.count) = (blocked, 3_200_000_000, 3);
    seen.profile.samples.push(sample);
    let printed = |event: Option<&str>| {
        let options = Options {
            event: event.map(str::to_owned),
            ..options(None)
        };
        let mut out = Vec::new();
        script.at.store(0, Ordering::Relaxed);
        print::print(&script, &shown(), &options, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let text = printed(None);
    let head = "0:05  ./calc: 754 samples of cpu-clock, 7.540 s in all, 3 of rare stacks\n\
                also: off-cpu 3.200 s (choose: --show off-cpu)\nself %";
    assert!(text.starts_with(head), "{text}");
    let text = printed(Some("off-cpu"));
    assert!(text.contains("3.200 s off-CPU, in 3 samples"), "{text}");
    assert!(
        text.contains("\nalso: cpu-clock 7.540 s (choose: --show cpu-clock)\n"),
        "{text}"
    );
    let text = printed(Some("cache-misses"));
    assert!(
        text.contains("\nevent cache-misses has no samples yet; showing cpu-clock\n"),
        "{text}"
    );
    assert!(text.contains("samples of cpu-clock"), "{text}");
}

struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let script = Script::new(&[CALCULATOR, LATER]);
    print::print(&script, &shown(), &options(None), &mut Closed).unwrap();
    assert_eq!(script.stops.load(Ordering::Relaxed), 1);
}

#[test]
fn an_end_without_samples_is_reported() {
    let script = Script::new(&[]);
    let mut out = Vec::new();
    print::print(&script, &shown(), &options(None), &mut out).unwrap();
    assert_eq!(out, b"\nthe command exited with status 0\n");
}
