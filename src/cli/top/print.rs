//! What is seen as tables, one after the other, where there is no terminal.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use proftool::analysis::inclusive;
use proftool::base::Unit;
use proftool::export::text;
use proftool::profile::{Filter, Selection};
use proftool::view::flat::{self, Sort};
use proftool::view::page::{Block, Page};
use proftool::view::{Figures, Names, Subject, caveats, number};

use super::screen::Signals;
use super::source::{Seen, Source, State};
use super::text::{Shown, clock};

/// How often is looked whether there will be more.
const LOOK: Duration = Duration::from_millis(50);

/// How it is printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The time between two tables.
    pub interval: Duration,
    /// The rows of a table; none for all.
    pub limit: Option<usize>,
    /// Their order.
    pub sort: Sort,
    /// How weights fade.
    pub half_life: Option<Duration>,
    /// How text is written.
    pub text: text::Options,
}

/// Prints a table every interval until the source ends, nobody reads on, or a signal comes; at last
/// what is not known.
///
/// # Errors
///
/// Those of `out`.
pub fn print(
    source: &dyn Source,
    shown: &Shown,
    options: &Options,
    out: &mut dyn Write,
) -> anyhow::Result<Signals> {
    let signals = Signals::watch().context("could not watch for signals")?;
    source.set_half_life(options.half_life);
    let printed = tables(source, shown, options, &signals, out);
    source.stop();
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("could not write the output")
        }
        _ => Ok(signals),
    }
}

fn tables(
    source: &dyn Source,
    shown: &Shown,
    options: &Options,
    signals: &Signals,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut last: Option<Arc<Seen>> = None;
    let mut next = Instant::now() + options.interval;
    loop {
        // The state first: what is seen after the end is the last.
        let has_ended = source.state() != State::Running || signals.has_come();
        if has_ended || Instant::now() >= next {
            next += options.interval;
            let newest = source.latest();
            let number = |seen: &Option<Arc<Seen>>| seen.as_ref().map(|seen| seen.number);
            if number(&newest) != number(&last) {
                if last.is_some() {
                    writeln!(out)?;
                }
                last = newest;
                if let Some(seen) = &last {
                    table(seen, shown, options, out)?;
                    out.flush()?;
                }
            }
        }
        if has_ended {
            break;
        }
        let rest = next.saturating_duration_since(Instant::now());
        std::thread::sleep(rest.min(LOOK));
    }
    let mut blocks = Vec::new();
    if let Some(seen) = &last {
        blocks.extend(caveats::foot(&seen.profile.caveats));
    }
    if let State::Ended(why) = source.state() {
        blocks.extend([Block::Space, Block::Line(why)]);
    }
    let page = Page {
        unit: Unit::Samples,
        blocks,
    };
    text::write(out, &page, &options.text)?;
    out.flush()
}

/// A line with the time and the samples, and the functions.
fn table(seen: &Seen, shown: &Shown, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let profile = &seen.profile;
    let selection = match profile.main_event() {
        Some(event) => profile.select(event, &Filter::default()),
        None => Selection::nothing(),
    };
    let subject = Subject {
        profile,
        selection: &selection,
        names: Names::Short,
        figures: Figures::All,
    };
    let weights = inclusive::by_function(profile, &selection);
    let flat = flat::arrange(
        &subject,
        &weights,
        &flat::Options {
            sort: options.sort,
            limit: options.limit,
            min: 0.0,
        },
    );
    let mut head = format!("{}  {}: ", clock(seen.elapsed), shown.target);
    match options.half_life {
        None => head.push_str(&subject.headline()),
        Some(_) => {
            let samples = super::text::samples(seen.samples);
            let unit = &selection.event.unit;
            let weight = number::weight(selection.total, unit);
            head.push_str(&format!(
                "{samples}, fading: {weight} of {} in all",
                selection.event.name
            ));
        }
    }
    for (count, what) in [(seen.lost, "lost"), (seen.behind, "left out")] {
        if count > 0 {
            head.push_str(&format!(", {} {what}", number::grouped(count)));
        }
    }
    let is_table = |block: &Block| matches!(block, Block::Table(_));
    let mut blocks = vec![Block::Line(head)];
    blocks.extend(flat.page(&subject).blocks.into_iter().filter(is_table));
    if flat.hidden > 0 {
        let plural = if flat.hidden == 1 { "" } else { "s" };
        let more = number::grouped(flat.hidden as u64);
        blocks.push(Block::Line(format!("… {more} more function{plural}")));
    }
    let page = Page {
        unit: selection.event.unit.clone(),
        blocks,
    };
    text::write(out, &page, &options.text)
}
