//! `proftool top` shows a running program live, and `proftool browse` a recording on the same
//! screen.
//!
//! ```text
//!   source ──▶ Seen ──▶ prepare: flat, graph, tree, cycles ──▶ Listing ──▶ draw ──▶ screen
//!                          ▲ Wish                                 │
//!                          └────────────── app ◀── keys ◀─────────┘
//! ```
//!
//! [`source`] is where samples come from, [`live`] the one that takes them; [`app`] is what is on
//! the screen and what keys do to it, and knows no terminal; [`prepare`] asks the analyses that the
//! other commands ask; [`screen`] has the terminal and the threads. Without a terminal [`print`]
//! writes tables.

mod app;
mod changes;
mod cursor;
mod cycles;
mod draw;
mod flat;
mod graph;
mod help;
mod info;
mod key;
mod listing;
mod live;
mod pages;
mod prepare;
mod print;
mod prompt;
mod screen;
mod signals;
mod source;
mod terminal;
#[cfg(test)]
mod tests;
mod text;
mod tree;
mod wish;
mod written;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use proftool::export;
use proftool::profile::Filter;

pub use self::changes::Changes;
use self::draw::Paint;
use self::signals::Signals;
pub use self::source::{Seen, Source, State, Written};
pub use self::terminal::can_be_drawn_on;
pub use self::text::Shown;
use super::look::{self, ScreenArgs};
use super::query::focus;
use super::record::target::seconds;
use super::sampling::SamplingArgs;

/// The arguments of `proftool top`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = MANUAL)]
pub struct TopArgs {
    #[command(flatten)]
    pub sampling: SamplingArgs,

    /// End after this time, and the command, too.
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<Duration>,

    /// Time between refreshes [default: 1; tables: 2]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub interval: Option<Duration>,

    /// Let a sample count half after this time.
    ///
    /// [default: no fading]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub half_life: Option<Duration>,

    /// Rows of tables, 0 for all.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,

    /// The event to show first.
    ///
    /// One of -e, off-cpu, preempted [default: the one with the most samples].
    #[arg(long, value_name = "EVENT")]
    pub show: Option<String>,

    /// Count inlined code for the function around it.
    #[arg(long)]
    pub no_inline: bool,

    /// Do not restore missing frames from the code.
    #[arg(long)]
    pub no_repair: bool,

    #[command(flatten)]
    pub screen: ScreenArgs,

    /// What to run and watch, with its arguments.
    #[arg(
        required_unless_present = "TargetArgs",
        trailing_var_arg = true,
        value_name = "COMMAND"
    )]
    pub command: Vec<OsString>,
}

const MANUAL: &str = "\
The keys 1 to 4 choose flat, graph, tree or cycles, ? lists all keys, q quits.
The views are those of the commands of these names, for all samples so far;
with --half-life, or after d, old samples fade. w writes a recording of all
samples since the start or the last reset, unfaded and unfiltered. They are
kept in at most 128 MiB; w reports how many older ones were dropped. The rarest
stacks of very many are merged into [seldom].

Ctrl-Z stops top and its command, without samples until fg. If standard output
is no terminal, or TERM is dumb, a table is printed every --interval.

The exit status is that of the command, or 128 plus the number of the signal
that killed it or top. It is 0 without a command or after q, 125 if sampling
failed or the target does not exist, 126 if the command cannot be run, 127 if
it is not found.";

const EXAMPLES: &str = "\
Examples:
  proftool top ./app --its-option
  proftool top -p 4711 --half-life 5    mostly the last seconds of a process
  proftool top -a -d 10 > tables        a table every two seconds";

impl TopArgs {
    fn interval(&self) -> Duration {
        let usual = if terminal::can_be_drawn_on() { 1 } else { 2 };
        self.interval.unwrap_or(Duration::from_secs(usual))
    }
}

pub fn run(args: &TopArgs) -> anyhow::Result<ExitCode> {
    live::run(args)
}

// What a recording is shown with at first.
#[derive(Clone, Debug)]
pub struct Start {
    pub screen: ScreenArgs,
    // `None` for the one with the most samples.
    pub event: Option<String>,
    pub filter: Filter,
    // The part of the time that was read; all, if it is empty.
    pub time: String,
    // Directories and names that are the user's own code; none to tell by debug information.
    pub own: Vec<String>,
    // What has changed since other runs, if it is compared with some.
    pub changes: Option<Changes>,
}

// Shows a recording on a terminal until it is left. A signal that ended it is obeyed.
pub fn browse(source: &dyn Source, shown: &Shown, start: Start) -> anyhow::Result<()> {
    let options = screen::Options {
        paint: Paint {
            color: start.screen.colors.on_stdout(),
            unicode: terminal::has_unicode(),
        },
        sort: start.screen.sort,
        half_life: None,
        event: start.event,
        filter: start.filter,
        resolve: Some(focus::resolved),
        time: start.time,
        own: start.own,
        changes: start.changes.map(Arc::new),
    };
    screen::show(source, shown, &options)?.obey();
    Ok(())
}

// Shows the source until it is left: on a terminal with keys, elsewhere as tables.
fn watch(source: &dyn Source, shown: &Shown, args: &TopArgs) -> anyhow::Result<Signals> {
    let color = args.screen.colors.on_stdout();
    if terminal::can_be_drawn_on() {
        let paint = Paint {
            color,
            unicode: terminal::has_unicode(),
        };
        let options = screen::Options {
            paint,
            sort: args.screen.sort,
            half_life: args.half_life,
            event: args.show.clone(),
            filter: Filter::default(),
            resolve: Some(focus::resolved),
            time: String::new(),
            own: Vec::new(),
            changes: None,
        };
        screen::show(source, shown, &options)
    } else {
        let options = print::Options {
            interval: args.interval(),
            limit: (args.limit > 0).then_some(args.limit),
            sort: args.screen.sort,
            half_life: args.half_life,
            event: args.show.clone(),
            text: export::text::Options {
                width: look::width(),
                color,
            },
        };
        print::print(source, shown, &options, &mut io::stdout().lock())
    }
}
