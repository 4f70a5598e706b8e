//! Shows a recording as `proftool top` shows a running program: each second a little more of it. For
//! work on the view where nothing can or need be sampled.
//!
//! ```text
//! cargo run --example top_replay -- FILE [STEPS [SECONDS [GATE]]]
//! cargo run --release --example top_replay -- FILE time
//! ```
//!
//! The recording is cut into so many steps (10), one more of which is seen after each interval (1 s).
//! With a gate each step behind the first waits, besides, until that file is there, and removes it.
//! Weights do not fade here; what is written is the recording. With `time` nothing is shown, but how
//! long it takes to make each view of the whole recording, and to draw it.

#[allow(dead_code, unused_imports, reason = "other commands use it")]
#[path = "../src/cli/advice/mod.rs"]
mod advice;
#[allow(dead_code, reason = "the program has arguments and commands beside it")]
#[path = "../src/cli/top"]
mod top {
    pub mod app;
    pub mod changes;
    pub mod cursor;
    pub mod cycles;
    pub mod draw;
    pub mod flat;
    pub mod graph;
    pub mod help;
    pub mod info;
    pub mod key;
    pub mod listing;
    pub mod pages;
    pub mod prepare;
    pub mod print;
    pub mod prompt;
    pub mod screen;
    pub mod signals;
    pub mod source;
    pub mod terminal;
    pub mod text;
    pub mod tree;
    pub mod wish;
    pub mod written;
}

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use proftool::base::Unit;
use proftool::export;
use proftool::input::{self, TimeRange};
use proftool::profile::Filter;
use proftool::view::flat::Sort;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use top::app::App;
use top::draw::{self, Paint};
use top::prepare::Preparer;
use top::source::{Seen, Source, State, Written};
use top::text::Shown;
use top::wish::View;
use top::{print, screen, terminal};

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args_os().skip(1);
    let file = PathBuf::from(args.next().context("a recording is needed")?);
    let args: Vec<_> = args.collect();
    if args.as_slice().first().is_some_and(|word| word == "time") {
        return time(&file);
    }
    let mut args = args.into_iter();
    let mut number = || {
        args.next()
            .map(|text| text.to_string_lossy().parse::<f64>())
    };
    let steps = number().transpose()?.unwrap_or(10.0) as u64;
    let seconds = number().transpose()?.unwrap_or(1.0);
    let interval = Duration::try_from_secs_f64(seconds)?;
    let gate = args.next().map(PathBuf::from);
    let replay = Replay {
        file,
        seen: Mutex::default(),
        from: AtomicU64::new(0),
        at: AtomicU64::new(0),
        resets: AtomicU64::new(0),
        steps,
        interval,
        gate,
        ends: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
    };
    let shown = Shown {
        target: format!("replay of {}", replay.file.display()),
        how: format!("in {steps} steps"),
        situation: advice::Situation::Top,
    };
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let signals = thread::scope(|scope| {
        scope.spawn(|| replay.run());
        if terminal::can_be_drawn_on() {
            let options = screen::Options {
                paint: Paint {
                    color: !no_color,
                    unicode: terminal::has_unicode(),
                },
                sort: Sort::SelfWeight,
                half_life: None,
                event: None,
                filter: Filter::default(),
                resolve: None,
                time: String::new(),
                own: Vec::new(),
                changes: None,
            };
            screen::show(&replay, &shown, &options)
        } else {
            let options = print::Options {
                interval,
                limit: Some(10),
                sort: Sort::SelfWeight,
                half_life: None,
                event: None,
                text: export::text::Options {
                    width: 100,
                    color: false,
                },
            };
            print::print(&replay, &shown, &options, &mut std::io::stdout().lock())
        }
    })?;
    signals.obey();
    Ok(())
}

/// Prints how long the views take: medians of a few, from what is seen to lines, and from lines to a
/// screen.
fn time(file: &Path) -> anyhow::Result<()> {
    const TIMES: usize = 9;
    let profile = input::open(file)?;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{} paths, {} functions, {} rows of samples",
        profile.paths.len(),
        profile.functions.len(),
        profile.samples.len()
    )?;
    let seen = Arc::new(Seen::all_of(1, profile, Duration::from_secs(1)));
    let shown = Shown {
        target: String::new(),
        how: String::new(),
        situation: advice::Situation::Top,
    };
    let paint = Paint {
        color: true,
        unicode: true,
    };
    for view in View::ALL {
        let (mut made, mut drawn) = (Vec::new(), Vec::new());
        let mut lines = 0;
        for _ in 0..TIMES {
            let mut app = App::new(Sort::SelfWeight, None);
            app.wish.view = view;
            app.see(Some(Arc::clone(&seen)));
            let began = Instant::now();
            let prepared = Preparer::default().prepare(&seen, &app.wish);
            made.push(began.elapsed());
            lines = prepared.listing.lines.len();
            let mut buffer = Buffer::empty(Rect::new(0, 0, 120, 40));
            let began = Instant::now();
            app.resize(draw::room(buffer.area));
            app.receive(prepared);
            draw::draw(&mut app, &shown, paint, &mut buffer);
            drawn.push(began.elapsed());
        }
        let median = |times: &mut Vec<Duration>| {
            times.sort();
            times[TIMES / 2].as_secs_f64() * 1e3
        };
        let (made, drawn) = (median(&mut made), median(&mut drawn));
        writeln!(
            out,
            "{:<7}{made:8.2} ms, drawn in {drawn:.2} ms; {lines} lines",
            view.name()
        )?;
    }
    Ok(())
}

/// A recording that is seen step by step.
struct Replay {
    file: PathBuf,
    seen: Mutex<Option<Arc<Seen>>>,
    /// The step with which what is seen begins, and the one before which it ends.
    from: AtomicU64,
    at: AtomicU64,
    resets: AtomicU64,
    steps: u64,
    interval: Duration,
    /// Who makes this file decides when the next step is seen.
    gate: Option<PathBuf>,
    ends: AtomicBool,
    /// The last step has been seen.
    is_over: AtomicBool,
}

impl Replay {
    fn run(&self) {
        let Some(whole) = self.open(TimeRange::default()) else {
            return;
        };
        let length = whole.about.duration.unwrap_or(0).max(1);
        let mut number = 0;
        while !self.ends.load(Ordering::Relaxed) && self.at.load(Ordering::Relaxed) < self.steps {
            let began = Instant::now();
            let at = self.at.fetch_add(1, Ordering::Relaxed) + 1;
            let resets = self.resets.load(Ordering::Relaxed);
            let from = self.from.load(Ordering::Relaxed);
            let moment = |step: u64| length / self.steps.max(1) * step;
            let is_last = at == self.steps && from == 0;
            let start = (from > 0).then(|| moment(from));
            let end = (!is_last).then(|| moment(at).max(1));
            // A recording shorter than its steps has some without a nanosecond.
            let Some(time) = TimeRange::after_first_sample(start, end) else {
                continue;
            };
            // What has no times is there at once.
            let profile = match self.open(time) {
                Some(profile) if !profile.samples.is_empty() || is_last => profile,
                _ if whole.about.duration.is_none() => whole.clone(),
                _ if at < self.steps => continue,
                _ => proftool::profile::Builder::default().finish(),
            };
            number += 1;
            let samples = profile.samples.iter().map(|sample| sample.count).sum();
            let seen = Seen {
                number,
                profile,
                elapsed: self.interval * u32::try_from(at - from).unwrap_or(u32::MAX),
                samples,
                lost: 0,
                behind: 0,
                seldom: 0,
                resets,
                half_life: None,
                until: 0,
            };
            *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(seen));
            self.is_over.store(at == self.steps, Ordering::Relaxed);
            while !self.ends.load(Ordering::Relaxed)
                && (began.elapsed() < self.interval || !self.may_pass())
            {
                thread::sleep(Duration::from_millis(20));
            }
        }
    }

    fn may_pass(&self) -> bool {
        let gate = self.gate.as_ref();
        gate.is_none_or(|gate| fs::remove_file(gate).is_ok())
    }

    fn open(&self, time: TimeRange) -> Option<proftool::profile::Profile> {
        let options = input::Options {
            time,
            ..input::Options::default()
        };
        input::open_with(&self.file, &options, &mut |_, _| {}).ok()
    }
}

impl Source for Replay {
    fn latest(&self) -> Option<Arc<Seen>> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set_half_life(&self, _: Option<Duration>) {}

    fn reset(&self) {
        self.from
            .store(self.at.load(Ordering::Relaxed), Ordering::Relaxed);
        self.resets.fetch_add(1, Ordering::Relaxed);
    }

    fn write(&self, seen: &Seen, path: &Path) -> Result<Written, String> {
        let bytes = fs::copy(&self.file, path).map_err(|error| error.to_string())?;
        let events = seen.profile.events.iter();
        let is_folded = events.into_iter().all(|event| event.unit == Unit::Samples);
        Ok(Written {
            samples: seen.samples,
            bytes,
            note: is_folded.then(|| "it has stacks without times".to_owned()),
        })
    }

    fn state(&self) -> State {
        match self.is_over.load(Ordering::Relaxed) {
            true => State::Ended("the recording is over".into()),
            false => State::Running,
        }
    }

    fn stop(&self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}
