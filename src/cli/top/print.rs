//! Prints the samples as tables, one after the other, where there is no terminal.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use proftool::analysis::flat::Summary;
use proftool::base::{Unit, shell_quoted};
use proftool::export::text;
use proftool::profile::{EventId, Filter, Profile, Selection};
use proftool::view::flat::{self, Sort};
use proftool::view::page::{Block, Page};
use proftool::view::{Names, Subject, caveats, number};

use super::super::advice::Situation;
use super::prepare;
use super::signals::Signals;
use super::source::{Seen, Source, State};
use super::text::{Shown, clock};

// The interval of checks whether sampling goes on.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    // Between two tables.
    pub interval: Duration,
    // The maximum number of rows of a table; `None` for all.
    pub limit: Option<usize>,
    pub sort: Sort,
    pub half_life: Option<Duration>,
    // `None` for the event with the most samples.
    pub event: Option<String>,
    pub text: text::Options,
}

// A table of each new moment with samples, one an interval at most, until the source ends, nobody
// reads on, or a signal comes; at last what is not known.
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
    let mut next = Instant::now();
    loop {
        // The state first: what is seen after the end is the last.
        let has_ended = source.state() != State::Running || signals.has_come();
        if has_ended || Instant::now() >= next {
            let newest = source.latest().filter(|seen| match &last {
                Some(last) if has_ended => !is_same(last, seen),
                Some(last) => last.number != seen.number && seen.samples > 0,
                None => seen.samples > 0 || has_ended,
            });
            if let Some(seen) = newest {
                if last.is_some() {
                    writeln!(out)?;
                }
                table(&seen, shown, options, out)?;
                out.flush()?;
                last = Some(seen);
                next = Instant::now() + options.interval;
            }
        }
        if has_ended {
            break;
        }
        std::thread::sleep(LOOK.min(options.interval));
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
    text::write(out, &page, &options.text, &Situation::Top)?;
    out.flush()
}

// The tables of two moments would have the same figures.
fn is_same(one: &Seen, other: &Seen) -> bool {
    let figures = |seen: &Seen| {
        let weights = seen.profile.samples.iter().map(|sample| sample.weight);
        let weight = weights.fold(0, u64::saturating_add);
        let losses = (seen.lost, seen.behind, seen.seldom);
        (seen.resets, seen.samples, weight, losses)
    };
    one.number == other.number || figures(one) == figures(other)
}

// Returns a line on the events that are not shown, and how to see them; `None` if all are shown.
fn others(profile: &Profile, shown: EventId) -> Option<String> {
    let mut weights = vec![0u64; profile.events.len()];
    for sample in &profile.samples {
        let weight = &mut weights[sample.event.index()];
        *weight = weight.saturating_add(sample.weight);
    }
    let mut others: Vec<_> = profile
        .events
        .enumerate()
        .filter(|(id, _)| *id != shown && weights[id.index()] > 0)
        .collect();
    // Times first: what is only counted is more often there for the sake of others.
    others.sort_by_key(|(_, event)| event.unit != Unit::Nanoseconds);
    let (_, first) = others.first()?;
    let told: Vec<String> = others
        .iter()
        .map(|(id, event)| {
            let weight = number::weight(weights[id.index()], &event.unit);
            format!("{} {weight}", event.name)
        })
        .collect();
    let name = shell_quoted(&first.name);
    Some(format!("also: {} (choose: --show {name})", told.join(", ")))
}

// A line with the time and the samples, one on other events, and the functions.
fn table(seen: &Seen, shown: &Shown, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let profile = &seen.profile;
    let event = prepare::event(profile, options.event.as_deref());
    let selection = match event {
        Some(event) => profile.select(event, &Filter::default()),
        None => Selection::nothing(),
    };
    let subject = Subject::new(profile, &selection, Names::Short);
    let summary = Summary::of(profile, &selection);
    let flat = flat::arrange(
        &subject,
        &summary,
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
            let samples = super::written::samples(seen.samples);
            let unit = &selection.event().unit;
            let weight = number::weight(selection.total(), unit);
            head.push_str(&format!(
                "{samples}, fading: {weight} of {} in all",
                selection.event().name
            ));
        }
    }
    for (count, what) in [(seen.lost, "lost"), (seen.behind, "left out")] {
        if count > 0 {
            head.push_str(&format!(", {} {what}", number::grouped(count)));
        }
    }
    if seen.seldom > 0 {
        head.push_str(&format!(", {}", super::text::seldom(seen.seldom)));
    }
    let is_table = |block: &Block| matches!(block, Block::Table(_));
    let mut blocks = vec![Block::Line(head)];
    if let Some(name) = &options.event
        && profile.event_named(name).is_none()
    {
        blocks.push(Block::Line(format!(
            "event {name} has no samples yet; showing {}",
            selection.event().name
        )));
    }
    let others = event.and_then(|event| others(profile, event));
    blocks.extend(others.map(Block::Line));
    blocks.extend(flat.page(&subject).blocks.into_iter().filter(is_table));
    if flat.hidden > 0 {
        let plural = if flat.hidden == 1 { "" } else { "s" };
        let more = number::grouped(flat.hidden as u64);
        blocks.push(Block::Line(format!("… {more} more function{plural}")));
    }
    let page = Page {
        unit: selection.event().unit.clone(),
        blocks,
    };
    text::write(out, &page, &options.text, &Situation::Top)
}
