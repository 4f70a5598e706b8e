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
use std::time::Duration;

use clap::Args;
use proftool::export;
use proftool::profile::Filter;

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
#[command(after_help = EXAMPLES)]
pub struct TopArgs {
    #[command(flatten)]
    pub sampling: SamplingArgs,

    /// Stop after this time, and end the command
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<Duration>,

    /// Refresh interval [default: 1; tables: 2]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub interval: Option<Duration>,

    /// Let old samples fade: time after which a sample counts half [default: no fading]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub half_life: Option<Duration>,

    /// Number of table rows if standard output is not a terminal, 0 for all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,

    /// The event to show first if several are sampled: a name of -e, off-cpu, preempted
    /// [default: the event with the most samples]
    #[arg(long, value_name = "EVENT")]
    pub show: Option<String>,

    /// Attribute inlined code to the function that contains it
    #[arg(long)]
    pub no_inline: bool,

    /// Show stacks as sampled, without restoring missing frames from the code
    #[arg(long)]
    pub no_repair: bool,

    #[command(flatten)]
    pub screen: ScreenArgs,

    /// The command to run, with its arguments
    #[arg(
        required_unless_present = "TargetArgs",
        trailing_var_arg = true,
        value_name = "COMMAND"
    )]
    pub command: Vec<OsString>,
}

const EXAMPLES: &str = "\
On a terminal, the keys 1 to 4 choose the view (flat, graph, tree, cycles), ?
lists all keys, and q quits. The views show what the commands of these names
show, for all samples so far; with --half-life, or after the key d, old samples
fade. The key w writes a recording of all samples since the start or the last
reset, unfaded and unfiltered. Until then top keeps them in memory, compressed
to at most 128 MiB; it drops the oldest beyond that, and w reports how many. If
there are very many different stacks, the rarest are merged into one, [seldom].

Ctrl-Z stops top and the command that it started: neither is sampled until fg.
Targets that ran before continue, and samples that do not fit into the buffers
count as lost. If the terminal goes away, top ends as with SIGHUP.

If standard output is not a terminal, or TERM is dumb, top prints a table of
functions every --interval.

The exit status is that of the command, or 128 plus the signal number if a
signal killed it or top. It is 0 without a command, or if you quit with q. It
is 125 if sampling failed or the target does not exist, 126 if the command
cannot be run, and 127 if it is not found.

Examples:
  proftool top ./app --its-option      run a command and watch it
  proftool top -p 4711                 watch a running process
  proftool top -a --half-life 5        the whole machine, mostly the last seconds
  proftool top -p 4711 -d 10 > tables  one table every two seconds";

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
