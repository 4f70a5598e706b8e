//! The samples that are being taken, as a source.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use proftool::base::shell_quoted;
use proftool::input;
use proftool::input::live::{self, Live};
use proftool::sampler::{
    Bounds, Command, CopySize, End, Ending, Error, Note, Options, Rate, Stacks, Target, Watched,
};

use super::super::{advice, failure, record};
use super::signals::Signals;
use super::source::{Seen, Source, State, Written};
use super::text::Shown;
use super::{TopArgs, terminal, watch};

// Until the view is closed. Errors are printed on stderr.
pub fn run(args: &TopArgs) -> anyhow::Result<ExitCode> {
    let mut left = None;
    let watched = sample(args, &mut left);
    // Only now everything that was started has ended.
    if let Some(signals) = left.transpose()? {
        signals.obey();
    }
    Ok(match watched {
        // Who is looking ends a command as well.
        Ok(Watched {
            end: End::Watcher, ..
        }) => ExitCode::SUCCESS,
        Ok(Watched { ending, .. }) => ExitCode::from(ending.map_or(0, Ending::status)),
        Err(error) => record::failed(&error),
    })
}

fn sample(args: &TopArgs, left: &mut Option<anyhow::Result<Signals>>) -> Result<Watched, Error> {
    let mut asked = args.sampling.asked(&args.command)?;
    if terminal::can_be_drawn_on() {
        // Two cannot have one terminal.
        asked.command = asked.command.map(Command::silent);
    }
    let subject = asked.subject()?;
    let (options, _) = args.sampling.options(subject, false);
    let bounds = Bounds {
        duration: args.duration,
        ..Bounds::default()
    };
    let reading = input::Options {
        inlines: !args.no_inline,
        repairs: !args.no_repair,
        ..input::Options::default()
    };
    let shown = Shown {
        target: named(&asked.target, args),
        how: how(&options),
        situation: advice::Situation::Top,
    };
    let how = (&options, subject, &bounds);
    let mut note = |note: Note| match note {
        Note::Begun => {}
        note => failure::tell(&advice::sampling::note(&note)),
    };
    live::watch(how, &reading, args.interval(), &mut note, |live| {
        *left = Some(watch(&Connected(live), &shown, args));
    })
}

fn named(target: &Option<Target>, args: &TopArgs) -> String {
    match target {
        Some(Target::Processes(pids)) if let [pid] = pids[..] => {
            let comm = std::fs::read_to_string(format!("/proc/{pid}/comm"));
            format!("process {pid} ({})", comm.unwrap_or_default().trim_end())
        }
        Some(_) => record::named(target),
        None => {
            let words: Vec<_> = args
                .command
                .iter()
                .map(|word| shell_quoted(&word.to_string_lossy()))
                .collect();
            words.join(" ")
        }
    }
}

fn how(options: &Options) -> String {
    let rate = match options.rate {
        None => format!("{} Hz", Options::FREQUENCY),
        Some(Rate::Frequency(hertz)) => format!("{hertz} Hz"),
        Some(Rate::Period(period)) => format!("one sample per {period} events"),
    };
    let stacks = match options.stacks {
        Stacks::None => "no stacks".to_owned(),
        Stacks::FramePointers | Stacks::Joined(_) => "stacks: frame pointers".to_owned(),
        Stacks::Copies(_) if options.fit_copies => "stacks: DWARF".to_owned(),
        Stacks::Copies(size) if size == CopySize::default() => "stacks: DWARF".to_owned(),
        Stacks::Copies(size) => format!("stacks: DWARF, {} bytes per sample", size.bytes()),
    };
    format!("{rate}, {stacks}")
}

struct Connected<'a>(&'a Live);

impl Source for Connected<'_> {
    fn latest(&self) -> Option<Arc<Seen>> {
        self.0.latest()
    }

    fn set_half_life(&self, half_life: Option<Duration>) {
        self.0.set_half_life(half_life);
    }

    fn reset(&self) {
        self.0.reset();
    }

    fn write(&self, seen: &Seen, path: &Path) -> Result<Written, String> {
        let written = self.0.write(seen, path).map_err(|error| match error {
            Error::Output { reason, .. } => reason,
            other => other.to_string(),
        })?;
        let mut let_go = (written.let_go > 0).then(|| {
            format!(
                "{} older samples are missing: memory for samples is limited",
                written.let_go
            )
        });
        if written.names_let_go {
            let note = let_go.get_or_insert_default();
            note.push_str("; code that was mapped long ago may have no names");
        }
        Ok(Written {
            samples: written.samples,
            bytes: written.bytes,
            note: let_go,
        })
    }

    fn state(&self) -> State {
        match self.0.outcome() {
            None if self.0.is_broken() => State::Ended("an internal error stopped it".into()),
            None => State::Running,
            Some(watched) => State::Ended(why(&watched)),
        }
    }

    fn stop(&self) {
        self.0.stop();
    }
}

// Why nothing more will come.
fn why(watched: &Watched) -> String {
    match (watched.end, watched.ending) {
        (End::Duration, _) => "the duration is over".into(),
        (End::Signal, _) => "a signal stopped it".into(),
        (_, Some(Ending::Exited(status))) => format!("the command exited with status {status}"),
        (_, Some(ending @ Ending::Signalled(number))) => match ending.signal_name() {
            Some(name) => format!("the command was killed by signal {number} ({name})"),
            None => format!("the command was killed by signal {number}"),
        },
        (_, None) => "all sampled processes have exited".into(),
    }
}
