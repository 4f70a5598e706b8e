//! The sentences of the view.

use std::time::Duration;

use proftool::base::{CaveatKind, Unit};
use proftool::view::flat::Sort;
use proftool::view::number;

use super::app::App;
use super::listing::Whole;
use super::source::{Seen, State};
use super::wish::Wish;
use super::written::samples;

/// What is sampled, as a person names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The command, or what already runs: `./app --its-option`, `process 4711 (app)`.
    pub target: String,
    /// How samples are taken: `997 Hz, stacks: frame pointers`.
    pub how: String,
}

/// A time as a clock shows it: `1:05`, `2:00:00`.
pub fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        hours => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// A short time: `10 s`, `2.5 s`.
fn seconds(time: Duration) -> String {
    let text = format!("{:.1}", time.as_secs_f64());
    format!("{} s", text.strip_suffix(".0").unwrap_or(&text))
}

/// Since when is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// Since the sampling began.
    Start,
    /// Since the last reset.
    Reset,
    /// Until a reset that is not the last.
    BeforeReset,
    /// Until a reset whose first samples are not there yet.
    Anew,
}

impl Since {
    /// Since when the figures of this moment are counted.
    pub fn of(app: &App, seen: &Seen) -> Since {
        match (app.is_outdated(seen), seen.resets) {
            (true, _) if app.is_paused() => Since::BeforeReset,
            (true, _) => Since::Anew,
            (false, 0) => Since::Start,
            (false, _) => Since::Reset,
        }
    }
}

/// What 100 % is, the most important first: what is left out at the end is least missed. `count` is
/// the number of samples that make it.
pub fn whole(whole: &Whole, wish: &Wish, count: u64, since: Since) -> Vec<String> {
    let weight = match &whole.unit {
        Unit::Samples => String::new(),
        Unit::Nanoseconds => format!("{} of ", number::weight(whole.weight, &whole.unit)),
        Unit::Count(what) if *what == whole.event => {
            format!("{} ", number::weight(whole.weight, &whole.unit))
        }
        Unit::Count(what) => {
            format!("{} {what} of ", number::weight(whole.weight, &whole.unit))
        }
    };
    let mut parts = vec![match whole.unit {
        Unit::Samples => format!("100 % = {}", samples(whole.weight)),
        _ => format!("100 % = {weight}{}", whole.event),
    }];
    if let Some(focus) = &wish.focus {
        let share = number::percent(whole.weight, whole.all, 2);
        parts.push(format!("{share} % of all: stacks with /{focus}/"));
    }
    let since = match since {
        Since::Start => Some("since the start"),
        Since::Reset => Some("since the reset"),
        Since::BeforeReset => {
            parts.push("before the reset".into());
            None
        }
        Since::Anew => {
            parts[0].insert_str(0, "until then ");
            parts.insert(0, "resetting …".into());
            None
        }
    }
    .map(str::to_owned);
    match wish.half_life {
        Some(time) => parts.push(format!("halved every {}", seconds(time))),
        None if whole.unit == Unit::Samples => parts.extend(since),
        None => {
            parts.push(samples(count));
            parts.extend(since);
        }
    }
    parts
}

/// Whether it runs, and how long.
pub fn state(app: &App) -> String {
    let elapsed = app.latest().map_or(Duration::ZERO, |seen| seen.elapsed);
    if app.is_paused() {
        let at = app.current().map_or(Duration::ZERO, |seen| seen.elapsed);
        return format!("PAUSED {} of {}", clock(at), clock(elapsed));
    }
    match &app.state {
        State::Running => clock(elapsed),
        State::Ended(_) => format!("ended {}", clock(elapsed)),
    }
}

/// What is sampled and how that goes, the most important first.
pub fn facts(app: &App, shown: &Shown) -> Vec<String> {
    let mut parts = vec![shown.target.clone()];
    if let State::Ended(why) = &app.state {
        parts.push(why.clone());
    }
    let Some(seen) = app.current() else {
        parts.push(shown.how.clone());
        return parts;
    };
    let losses = [
        (seen.lost, "lost"),
        (seen.behind, "left out: they arrived too fast"),
    ];
    for (count, what) in losses.iter().filter(|(count, _)| *count > 0) {
        parts.push(format!("{} {what}", number::grouped(*count)));
    }
    // The whole warning is on the page of the key i.
    let differences = [
        (CaveatKind::MissedTime, "samples miss processor time (i)"),
        (CaveatKind::Miscounted, "samples differ from the count (i)"),
    ];
    let caveats = &seen.profile.caveats;
    for (_, what) in differences
        .iter()
        .filter(|(kind, _)| caveats.count(*kind) > 0)
    {
        parts.push((*what).into());
    }
    let elapsed = seen.elapsed.as_secs_f64();
    if elapsed > 0.0 {
        let rate = (seen.samples as f64 / elapsed).round() as u64;
        parts.push(format!("{} samples/s", number::grouped(rate)));
    }
    if seen.lost == 0 && seen.behind == 0 {
        parts.push("no losses".into());
    }
    if seen.seldom > 0 {
        parts.push(seldom(seen.seldom));
    }
    parts.push(match app.wish.half_life {
        Some(_) => "fading".into(),
        None => "cumulative".into(),
    });
    parts.push(shown.how.clone());
    parts
}

/// So many samples became one stack.
pub fn seldom(count: u64) -> String {
    format!("{} of rare stacks", number::grouped(count))
}

/// The word for an order.
pub fn sort(sort: Sort) -> &'static str {
    match sort {
        Sort::SelfWeight => "self",
        Sort::Total => "total",
        Sort::Name => "name",
        Sort::Samples => "samples",
    }
}

/// The keys of a view, the most important first.
pub fn keys(app: &App) -> Vec<(&'static str, &'static str)> {
    use super::wish::View;
    let mut keys = vec![("?", "help"), ("q", "quit")];
    keys.extend(match app.wish.view {
        View::Flat => [("Enter", "graph"), ("s", "sort")],
        View::Graph => [("Enter", "walk"), ("Bksp", "back")],
        View::Tree => [("e", "hot path"), ("c", "collapse")],
        View::Cycles => [("Enter", "graph"), ("i", "info")],
    });
    keys.extend([("/", "filter"), ("f", "focus")]);
    keys.push(if app.is_paused() {
        ("p", "resume")
    } else {
        ("p", "pause")
    });
    keys.push(match app.wish.half_life {
        Some(_) => ("d", "cumulate"),
        None => ("d", "fade"),
    });
    keys.extend([("z", "zero"), ("w", "write"), ("i", "info")]);
    if app.wish.view == View::Cycles {
        keys.pop();
    }
    keys
}

/// What the keys do.
pub const HELP: &str = "\
VIEWS
  1 2 3 4    flat, graph, tree, cycles; Tab and Shift-Tab switch between them
  Enter      flat: callers and callees of the function
             graph: go to this caller or callee
             tree: open or close; on f... go to the nearest f above
             cycles: callers and callees of the function, or of the callee
  g          callers and callees of the function, from any view
  Backspace  graph: back to the previous function, and finally to flat

MOVING
  arrows j k PgUp PgDn    Home: always the first line
  The selected function stays selected when the order changes.

WHAT IS SHOWN
  /          show only functions whose full name matches a regular
             expression; percentages do not change
  f          show only stacks with such a function; they are then 100 %
  Esc        clear the filter; again: clear the focus
  s          flat: sort by self weight, by total, by name
  c          tree: collapse recursion: none, direct, conservative, full
  e          tree: open the heaviest path from here
  right left tree: open; close, or go to the line above
  E          the next event, if several are sampled

TIME
  p Space    pause the display; sampling continues
  d          fade weights with a half-life, or count all samples in full
  < >        halve, double the half-life
  z          zero: count from now on

  w          write all samples since the start or the reset, without fading or
             filter, as a recording for the other commands
  i          how reliable the stacks are, and what is unknown
  Ctrl-L     redraw the screen
  Ctrl-Z     stop, with the command that was started; fg continues
  q Ctrl-C   quit, and end the command that was started

FIGURES
  self       weight of the samples taken in the function itself
  total      weight of the samples with the function on the stack; a sample
             counts once, however often the function is on its stack
  at most    the total if the function was on every incomplete stack that may
             lack it; ? if it is unknown whether it can be that large
  ≈f         most samples lacked this frame of f; it was restored from the code
  f... (N %) tree: a collapsed call of f, which N % of the samples passed;
             their stacks continue under the nearest f above
  via collapsed %  tree: the part of total % that came through such calls
  children   graph: weight of the function's callees when called by this caller
  outside    cycles: weight of callees outside the cycle
  fonseca    cycles: an estimate of the total from the weights of calls";
