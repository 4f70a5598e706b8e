//! `proftool browse`.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use proftool::analysis::annotate::Sums;
use proftool::base::workers;
use proftool::compare::{Comparison, Runs, Side};
use proftool::input::{self, Audience, MachineCode, TimeRange};
use proftool::profile::{Counts, FunctionId, Profile, RowKind, RowLevel};
use proftool::view::Subject;
use proftool::view::compare::why;
use proftool::view::page::Page;

use super::annotate::{ListingArgs, Looking};
use super::compare::{self, Read};
use super::failure::{Misused, hinted};
use super::look::ScreenArgs;
use super::query::Query;
use super::query::by::{By, Rows};
use super::query::open::Needs;
use super::query::time::time_range;
use super::sources;
use super::top::{self, Changes, Seen, Shown, Source, Start, State, Written};

/// The arguments of `proftool browse`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = MANUAL)]
pub struct Args {
    #[command(flatten)]
    query: Query,
    /// Recordings of before: flat has both and verdicts.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    base: Vec<PathBuf>,
    #[command(flatten)]
    rows: Rows,
    #[command(flatten)]
    listing: ListingArgs,
    #[command(flatten)]
    screen: ScreenArgs,
}

const MANUAL: &str = "\
The screen is that of proftool top. 1 to 4 choose flat, graph, tree or cycles;
Enter shows a function in detail, a its source lines, a again its machine code.
/ filters lines, f stacks, t a command or thread, T the time. ? lists all keys,
q quits. Figures are those of the commands of these names; calls that only the
code has are left out (--static off).";

const EXAMPLES: &str = "\
Examples:
  proftool browse profile.pb.gz
  proftool browse --time 10..20
  proftool browse --by module
  proftool browse new.*.data --base old.*.data";

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if !top::can_be_drawn_on() {
        let asked = args.query.in_command(None);
        let hint = format!("for text: proftool report {asked}");
        let text = if io::stdout().is_terminal() {
            "browse cannot draw on this terminal: TERM is dumb or not set"
        } else {
            "browse needs a terminal on standard output"
        };
        return Err(hinted(text.into(), Some(hint.trim_end().into())));
    }
    let by = args.rows.by;
    // Before the file is read, which may take long.
    refuse_rows(by, &args.query)?;
    by.refuse_with(&[("--base", !args.base.is_empty())])?;
    // All that any of its views needs.
    let needs = Needs {
        ranges: true,
        ..Needs::ADDRESSES
    };
    let reading = args.query.reading(needs);
    let (profile, changes) = match args.base.is_empty() {
        true => (args.query.open(needs)?, None),
        false => {
            let (profile, changes) = args.compared(needs)?;
            (profile, Some(changes))
        }
    };
    args.query.refuse_rows(by, &profile)?;
    args.query.refuse_without_stacks(&profile, "browse")?;
    let event = args
        .query
        .event(&profile)?
        .map(|event| profile.events[event].name.clone());
    let filter = args.query.filter(&profile);
    let name = args.query.file().display().to_string();
    let picks = args.query.lasting_filters();
    let command = profile.about.command.clone();
    let rows = if by.is_other() {
        by.option().replace("--", "")
    } else {
        String::new()
    };
    let apart = changes.as_ref().and_then(|it| it.comparison.apart);
    let apart = apart.map(|it| format!(", {}", why(it)));
    // What is shown comes before where it was recorded: what is last is left out first.
    let base = match &*args.base {
        [] => String::new(),
        files => format!(
            "base {}{}",
            compare::named(files),
            apart.unwrap_or_default()
        ),
    };
    let parts: Vec<&str> = [
        &*base,
        &picks,
        &rows,
        command.as_deref().unwrap_or_default(),
    ]
    .into_iter()
    .filter(|part| !part.is_empty())
    .collect();
    let shown = Shown {
        target: name,
        how: parts.join(" \u{b7} "),
        situation: args.query.shown_by("report"),
    };
    let recording = Recording {
        path: args.query.file().to_owned(),
        reading,
        listing: args.listing.clone(),
        rows: by.kind(),
        is_fixed: changes.is_some() || args.query.files().len() > 1,
        latest: Arc::new(Mutex::new(Latest {
            seen: Arc::new(seen(1, by_rows(profile, by.kind()))),
            part: args.query.time().map(|time| format!("time {time} s")),
        })),
        asked: Arc::default(),
    };
    let start = Start {
        screen: args.screen,
        event,
        filter,
        time: args.query.time().unwrap_or_default().to_owned(),
        own: args.query.own().to_vec(),
        changes,
    };
    top::browse(&recording, &shown, start)?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    // The recordings added up, and what has changed since the other ones.
    fn compared(&self, needs: Needs) -> anyhow::Result<(Profile, Changes)> {
        let mut runs = Runs::default();
        let mut read = Read::for_views(needs);
        for (side, files) in [(Side::Base, &*self.base), (Side::New, self.query.files())] {
            for file in files {
                let query = self.query.of_file(file);
                read.add(&mut runs, side, &query, files.len() == 1)?;
            }
        }
        let event = read.event.context("the recordings have no samples")?;
        let profile = read.sum.unwrap_or_default().finish();
        let comparison = Comparison::of(event, &runs);
        let places = comparison.places(&runs, Side::New, &profile);
        Ok((profile, Changes { comparison, places }))
    }
}

// Rows that the views do not have, and filters that are about what rows replace.
fn refuse_rows(by: By, query: &Query) -> anyhow::Result<()> {
    if !by.is_other() {
        return Ok(());
    }
    if !by.kind().replaces_functions() {
        let text = format!(
            "browse has rows by function, module, file, line and address, not {}",
            by.option()
        );
        let hint = format!("proftool flat {}", by.option());
        return Err(hinted(text, Some(hint)));
    }
    if query.picks_stacks() {
        let text = format!(
            "filters by function, module or path need rows by function; leave out {}",
            by.option()
        );
        return Err(Misused(text).into());
    }
    Ok(())
}

fn by_rows(profile: Profile, rows: RowKind) -> Profile {
    match rows {
        RowKind::Function => profile,
        rows => profile.by_rows(rows, RowLevel::Alone, &[]).0,
    }
}

struct Recording {
    path: PathBuf,
    reading: input::Options,
    listing: ListingArgs,
    rows: RowKind,
    // It is several files, or compared with others: of the time that was read.
    is_fixed: bool,
    latest: Arc<Mutex<Latest>>,
    // The number of parts that were asked for.
    asked: Arc<AtomicU64>,
}

struct Latest {
    seen: Arc<Seen>,
    part: Option<String>,
}

// The profile as what was seen up to the end of the recording.
fn seen(number: u64, profile: Profile) -> Seen {
    let elapsed = Duration::from_nanos(profile.about.duration.unwrap_or(0));
    Seen::all_of(number, profile, elapsed)
}

fn locked(latest: &Mutex<Latest>) -> MutexGuard<'_, Latest> {
    latest.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Source for Recording {
    fn latest(&self) -> Option<Arc<Seen>> {
        Some(Arc::clone(&locked(&self.latest).seen))
    }

    fn set_half_life(&self, _: Option<Duration>) {}

    fn reset(&self) {}

    fn write(&self, _: &Seen, _: &std::path::Path) -> Result<Written, String> {
        Err("it is a recording already".into())
    }

    fn state(&self) -> State {
        State::Recorded(locked(&self.latest).part.clone())
    }

    fn stop(&self) {}

    fn annotated(
        &self,
        subject: &Subject,
        function: FunctionId,
        assembly: bool,
    ) -> Result<Page, String> {
        if self.rows != RowKind::Function {
            return Err("source lines and code are shown of functions: leave out --by".into());
        }
        let mut looking = Looking {
            sums: &Sums::of(subject.profile, subject.selection),
            code: &MachineCode::new(subject.profile, self.listing.syntax, &self.reading),
            sources: sources::files(
                self.listing.source.as_ref(),
                self.reading.symfs.as_deref(),
                Audience::Screen,
            ),
            owner: sources::owner(&self.path),
            left_out: BTreeMap::new(),
            with_inlined: assembly,
            with_copies: assembly,
        };
        Ok(looking.page(subject, function))
    }

    fn set_time(&self, range: &str) -> Result<(), String> {
        if self.is_fixed {
            return Err("these recordings were read as one; use --time".into());
        }
        let name = range.trim().to_owned();
        let time = match name.as_str() {
            "" => TimeRange::default(),
            name => time_range(name)?,
        };
        if self.path.as_os_str() == "-" {
            return Err("standard input cannot be read again; use --time".into());
        }
        let reading = input::Options {
            time,
            ..self.reading.clone()
        };
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let (path, latest, asked) = (self.path.clone(), self.latest.clone(), self.asked.clone());
        let rows = self.rows;
        locked(&self.latest).part = Some("reading \u{2026}".into());
        let read = move || {
            let read = input::open_with(&path, &reading, &mut |_, _| ());
            let mut latest = locked(&latest);
            if asked.load(Ordering::Relaxed) != number {
                return;
            }
            match read {
                Ok(mut profile) => {
                    // Counted calls are those of the whole time.
                    profile.counts = profile.counts.filter(|counts| !Counts::are_partial(counts));
                    let profile = by_rows(profile, rows);
                    let number = latest.seen.number + 1;
                    latest.seen = Arc::new(seen(number, profile));
                    latest.part = (!name.is_empty()).then(|| format!("time {name} s"));
                }
                Err(error) => latest.part = Some(format!("not read: {error}")),
            }
        };
        if let Err(read) = workers::start(read) {
            // The screen stands still meanwhile.
            read();
        }
        Ok(())
    }
}
