//! The sentences of the view.

use std::time::Duration;

use proftool::base::{CaveatKind, Unit};
use proftool::view::flat::Sort;
use proftool::view::number;

use super::super::advice::Situation;
use super::app::{App, Overlay};
use super::listing::Whole;
use super::prepare::Prepared;
use super::source::{Seen, State};
use super::wish::{View, Who, Wish};
use super::written::samples;

#[derive(Clone, Debug)]
pub struct Shown {
    // The command, or what already runs: `./app --its-option`, `process 4711 (app)`.
    pub target: String,
    // How samples are taken: `997 Hz, stacks: frame pointers`.
    pub how: String,
    // For whom advice is worded.
    pub situation: Situation,
}

// `1:05`, `2:00:00`.
pub fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        hours => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

// `10 s`, `2.5 s`.
pub fn seconds(time: Duration) -> String {
    let text = format!("{:.1}", time.as_secs_f64());
    format!("{} s", text.strip_suffix(".0").unwrap_or(&text))
}

// The time since which samples are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    // The sampling began.
    Start,
    // The last reset.
    Reset,
    // Until a reset that is not the last.
    BeforeReset,
    // Until a reset whose first samples are not there yet.
    Anew,
    Recorded,
}

impl Since {
    pub fn of(app: &App, seen: &Seen) -> Since {
        match (app.is_outdated(seen), seen.resets) {
            _ if app.is_recording() => Since::Recorded,
            (true, _) if app.is_paused() => Since::BeforeReset,
            (true, _) => Since::Anew,
            (false, 0) => Since::Start,
            (false, _) => Since::Reset,
        }
    }
}

// The most important first: what is left out at the end is least missed. `count` is the number of
// samples that make the whole, and `half_life` the time in which their weights halve.
pub fn whole(
    whole: &Whole,
    wish: &Wish,
    (count, half_life): (u64, Option<Duration>),
    since: Since,
) -> Vec<String> {
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
    if let Some(picked) = picked(wish) {
        let share = number::percent(whole.weight, whole.all, 2);
        parts.push(format!("{share} % of all: {picked}"));
    }
    let since = match since {
        Since::Start => Some("since the start"),
        Since::Reset => Some("since the reset"),
        Since::Recorded => None,
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
    match half_life {
        Some(time) => parts.push(format!("halved every {}", seconds(time))),
        None if whole.unit == Unit::Samples => parts.extend(since),
        None => {
            parts.push(samples(count));
            parts.extend(since);
        }
    }
    parts
}

// `stacks with /parse/, thread 4711`.
pub fn picked(wish: &Wish) -> Option<String> {
    let focus = { wish.focus.as_ref() }.map(|focus| format!("stacks with /{focus}/"));
    let who = wish.who.as_ref().map(|who| match who {
        Who::Command(name) => format!("command {name}"),
        Who::Process(pid) => format!("process {pid}"),
        Who::Thread(tid) => format!("thread {tid}"),
    });
    let parts: Vec<String> = [who, focus].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

pub fn state(app: &App) -> String {
    let elapsed = app.latest().map_or(Duration::ZERO, |seen| seen.elapsed);
    let at = app.on_screen().map_or(Duration::ZERO, |seen| seen.elapsed);
    if app.is_paused() {
        return format!("PAUSED {} of {}", clock(at), clock(elapsed));
    }
    match &app.state {
        State::Running => clock(at),
        State::Ended(_) => format!("ended {}", clock(elapsed)),
        State::Recorded(_) => String::new(),
    }
}

// The most important first.
pub fn facts(app: &App, shown: &Shown) -> Vec<String> {
    let mut parts = vec![shown.target.clone()];
    match &app.state {
        State::Running => {}
        State::Ended(why) => parts.push(why.clone()),
        State::Recorded(part) => {
            parts.extend(part.clone());
            parts.push(shown.how.clone());
            parts.retain(|part| !part.is_empty());
            return parts;
        }
    }
    let Some(seen) = app.on_screen() else {
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
        (CaveatKind::ShortThreads, "samples miss ends of threads (i)"),
        (CaveatKind::MissedSwitches, "samples miss switches (i)"),
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
    parts.push(match seen.half_life {
        Some(_) => "fading".into(),
        None => "cumulative".into(),
    });
    parts.push(shown.how.clone());
    parts
}

pub fn empty(app: &App, shown: &Prepared) -> &'static str {
    let has_samples = shown.whole.samples > 0;
    let recorded = match &app.state {
        State::Recorded(part) => Some(part),
        _ => None,
    };
    match (recorded, app.wish.view) {
        _ if shown.is_gone && recorded.is_some() => {
            "it is on no stack that is shown; Backspace goes back"
        }
        _ if shown.is_gone => "no stack has the function at the moment; Backspace goes back",
        _ if has_samples && app.wish.search.is_on() => "no line matches; Esc shows all",
        (_, View::Cycles) if has_samples => "no function is on a stack more than once",
        _ if has_samples => "nothing to show",
        _ if app.wish.focus.is_some() => "no sample passes; Esc clears the focus",
        _ if app.wish.who.is_some() => "no sample passes; Esc clears the thread",
        (Some(Some(_)), _) => "no samples in this time; Esc shows all",
        (Some(None), _) => "there are no samples; i says why, if that is known",
        _ if matches!(app.state, State::Ended(_)) => {
            "there are no samples; i says why, if that is known"
        }
        (None, _) => "no samples yet",
    }
}

// The number of samples whose stacks were merged into one, in words.
pub fn seldom(count: u64) -> String {
    format!("{} of rare stacks", number::grouped(count))
}

pub fn order(wish: &Wish) -> &'static str {
    match wish.sort {
        _ if wish.by_change => "change",
        Sort::SelfWeight => "self",
        Sort::Total => "total",
        Sort::Name => "name",
        Sort::Samples => "samples",
    }
}

// The most important first.
pub fn keys(app: &App) -> Vec<(&'static str, &'static str)> {
    let close = ("Esc", "close");
    match app.overlay {
        None => {}
        Some((Overlay::Page, _)) => {
            let page = [
                ("a", "source, assembly"),
                ("Enter", "detail"),
                ("/", "find"),
            ];
            return [&[close][..], &page, &[("n", "next"), ("?", "help")]].concat();
        }
        Some((overlay, _)) => {
            let other = match overlay {
                Overlay::Help => ("i", "info"),
                _ => ("?", "help"),
            };
            return vec![close, ("PgDn", "on"), ("PgUp", "back"), other];
        }
    }
    if app.is_recording() {
        return keys_of_recording(app.wish.view);
    }
    let mut keys = vec![("?", "help"), ("q", "quit")];
    keys.extend(match app.wish.view {
        View::Flat => [("Enter", "graph"), ("s", "sort")],
        View::Graph => [("Enter", "walk"), ("Bksp", "back")],
        View::Tree => [("e", "hot path"), ("c", "collapse")],
        View::Cycles => [("Enter", "graph"), ("i", "info")],
    });
    keys.extend([("/", "filter"), ("f", "focus")]);
    let has_ended = matches!(app.state, State::Ended(_));
    if app.is_paused() {
        keys.push(("p", "resume"));
    } else if !has_ended {
        keys.push(("p", "pause"));
    }
    if !has_ended {
        keys.push(match app.wish.half_life {
            Some(_) => ("d", "cumulate"),
            None => ("d", "fade"),
        });
        keys.push(("z", "zero"));
    }
    keys.extend([("w", "write"), ("i", "info")]);
    if app.wish.view == View::Cycles {
        keys.pop();
    }
    keys
}

// The most important first.
fn keys_of_recording(view: View) -> Vec<(&'static str, &'static str)> {
    let mut keys = vec![("?", "help"), ("q", "quit")];
    keys.extend([("Enter", "detail"), ("a", "annotate")]);
    keys.extend(match view {
        View::Flat => [("s", "sort"), ("g", "graph")],
        View::Graph => [("g", "walk"), ("Bksp", "back")],
        View::Tree => [("Space", "open"), ("e", "hot path")],
        View::Cycles => [("g", "graph"), ("i", "info")],
    });
    keys.extend([("/", "filter"), ("f", "focus"), ("t", "thread")]);
    keys.extend([("T", "time"), ("i", "info")]);
    keys
}
