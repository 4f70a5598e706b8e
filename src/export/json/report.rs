//! The report.
//!
//! | key | value |
//! |---|---|
//! | `command` | the recorded command, or null |
//! | `duration` | nanoseconds, or null |
//! | `functions` | rows of `flat` by self weight, each with `line {file, line, weight}\|null` |
//! | `by_total` | rows of `flat` by total, each with `folded [name]` |
//! | `by_total_rule` | the rule by which `folded` functions have no row of their own |
//! | `commands` | `[{name, weight}]` |
//! | `threads` | `[{pid, tid, name, weight}]` |
//! | `owners`, `through_project` | see [`owners`] |
//! | `quality` | `{stacks, calls {KEY: number}, KEY: {samples, text, remedy\|null}, …}\|null` |
//! | `waits` | `[{function, module, caller\|null, weight}]` |
//! | `hot_paths` | `{collapse, paths [{leaves, frames [FRAME]}]}\|null` |
//! | `sampling_error` | `{points, confidence, effective_samples}\|null` |
//! | `census` | `{complete, lost, throttled, intervals}\|null` |
//! | `next` | `[{command\|null, shows}]` |
//!
//! A row of `by_total` stands also for the functions in its `folded`: they were on the stack in
//! exactly the same samples. `quality`, with the keys of [`quality::lines`], is that of the whole
//! file, also where filters leave samples out. `waits` lists where threads leave the processor; it
//! is empty for events of running threads.
//!
//! `hot_paths` has the heaviest path of the call tree and the heaviest one that leaves it; `leaves`
//! is the number of the frame of the first at which the second does, from 0. FRAME is `{name,
//! module, level, total, indirect, self, other_callees, other_weight, other_weight_is_limit}`,
//! outermost first, with the figures of the tree.
//!
//! `sampling_error` is in percentage points around a share of one half, for independent samples;
//! where every event was recorded, or should have been, there is a `census` instead. Remedies and
//! commands are the caller's [`Advice`].

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde::Serialize;

use super::flat::FunctionItem;
use super::layout::{list, value};
use super::{owners, view_head};
use crate::analysis::sampling_error::{CONFIDENCE, SamplingError};
use crate::export::Advice;
use crate::export::shown::written;
use crate::view::Subject;
use crate::view::quality;
use crate::view::report::Report;

// Which functions share a row of `by_total`.
const BY_TOTAL_RULE: &str = "functions on exactly the same samples share a row if they have no \
                             self weight and do not recurse";

#[derive(Serialize)]
struct HotFunction<'a> {
    #[serde(flatten)]
    function: FunctionItem<'a>,
    line: Option<HotLine<'a>>,
}

#[derive(Serialize)]
struct HotLine<'a> {
    file: &'a str,
    line: u32,
    weight: u64,
}

#[derive(Serialize)]
struct Folded<'a> {
    #[serde(flatten)]
    function: FunctionItem<'a>,
    folded: &'a [String],
}

#[derive(Serialize)]
struct CommandItem<'a> {
    name: &'a str,
    weight: u64,
}

#[derive(Serialize)]
struct ThreadItem<'a> {
    pid: i32,
    tid: i32,
    name: &'a str,
    weight: u64,
}

#[derive(Serialize)]
struct CallsChecked {
    verified: u64,
    unchecked: u64,
    lacking: u64,
    ambiguous: u64,
    contradicted: u64,
}

#[derive(Serialize)]
struct QualityLine<'a> {
    samples: u64,
    text: &'a str,
    remedy: Option<String>,
}

#[derive(Serialize)]
struct WaitItem<'a> {
    function: &'a str,
    module: &'a str,
    caller: Option<&'a str>,
    weight: u64,
}

#[derive(Serialize)]
struct HotFrame<'a> {
    name: &'a str,
    module: &'a str,
    level: u32,
    total: u64,
    indirect: u64,
    #[serde(rename = "self")]
    own: u64,
    other_callees: usize,
    other_weight: u64,
    other_weight_is_limit: bool,
}

#[derive(Serialize)]
struct Sampled {
    points: f64,
    confidence: u32,
    effective_samples: f64,
}

#[derive(Serialize)]
struct Census {
    complete: bool,
    lost: u64,
    throttled: u64,
    intervals: u64,
}

#[derive(Serialize)]
struct NextItem<'a> {
    command: Option<String>,
    shows: &'a str,
}

/// Writes the document.
pub fn write(
    out: &mut dyn Write,
    subject: &Subject,
    report: &Report,
    advice: &dyn Advice,
) -> io::Result<()> {
    view_head(out, "report", subject, advice)?;
    let about = &subject.profile.about;
    out.write_all(b"\"command\":")?;
    value(out, &about.command.as_deref())?;
    out.write_all(b",\"duration\":")?;
    value(out, &about.duration)?;
    out.write_all(b",\n\"functions\":")?;
    let functions = report.functions.iter().map(|(row, line)| HotFunction {
        function: FunctionItem::of(subject, row),
        line: line.as_ref().map(|line| HotLine {
            file: &line.file,
            line: line.line,
            weight: line.weight,
        }),
    });
    list(out, functions)?;
    out.write_all(b",\n\"by_total\":")?;
    let by_total = report
        .by_total
        .rows
        .iter()
        .zip(&report.folded)
        .map(|(row, folded)| Folded {
            function: FunctionItem::of(subject, row),
            folded,
        });
    list(out, by_total)?;
    out.write_all(b",\n\"by_total_rule\":")?;
    value(out, &BY_TOTAL_RULE)?;
    out.write_all(b",\n\"commands\":")?;
    let commands = report.commands.iter();
    list(
        out,
        commands.map(|(name, weight)| CommandItem {
            name,
            weight: *weight,
        }),
    )?;
    out.write_all(b",\n\"threads\":")?;
    let threads = report.threads.iter().map(|&(id, weight)| {
        let thread = &subject.profile.threads[id];
        ThreadItem {
            pid: thread.pid,
            tid: thread.tid,
            name: &thread.comm,
            weight,
        }
    });
    list(out, threads)?;
    out.write_all(b",\n")?;
    owners::fields(out, &report.charged)?;
    out.write_all(b",\n\"quality\":")?;
    quality(out, subject, advice)?;
    out.write_all(b",\n\"waits\":")?;
    let waits = report.waits.iter().map(|&(wait, weight)| WaitItem {
        function: subject.name(wait.function),
        module: subject.module(wait.function),
        caller: wait.caller.map(|caller| subject.name(caller)),
        weight,
    });
    list(out, waits)?;
    out.write_all(b",\n\"hot_paths\":")?;
    hot_paths(out, subject, report)?;
    let (sampled, census) = sampling_error(&report.sampling_error);
    out.write_all(b",\n\"sampling_error\":")?;
    value(out, &sampled)?;
    out.write_all(b",\"census\":")?;
    value(out, &census)?;
    out.write_all(b",\n\"next\":")?;
    let next = report.next.iter().map(|question| NextItem {
        command: advice.command(question),
        shows: question.shows(),
    });
    list(out, next)?;
    out.write_all(b"}\n")
}

fn hot_paths(out: &mut dyn Write, subject: &Subject, report: &Report) -> io::Result<()> {
    let Some(paths) = &report.hot else {
        return out.write_all(b"null");
    };
    let nodes = &paths.tree.calls.nodes;
    let frame = |id| {
        let node = nodes.at(id);
        let rest = paths.rest[id];
        HotFrame {
            name: subject.name(node.function),
            module: subject.module(node.function),
            level: node.level,
            total: node.weight(),
            indirect: node.indirect,
            own: node.in_only,
            other_callees: rest.callees,
            other_weight: rest.weight,
            other_weight_is_limit: rest.is_limit,
        }
    };
    write!(
        out,
        "{{\"collapse\":\"{}\",\"paths\":[",
        paths.tree.calls.collapse.name()
    )?;
    out.write_all(b"\n{\"leaves\":null,\"frames\":")?;
    list(out, nodes.ids().take(paths.first).map(frame))?;
    let second = nodes.ids().nth(paths.first);
    if let Some(second) = second {
        let leaves = nodes.at(second).parent.map(|id| id.index());
        out.write_all(b"},\n{\"leaves\":")?;
        value(out, &leaves)?;
        out.write_all(b",\"frames\":")?;
        list(out, nodes.ids().skip(paths.first).map(frame))?;
    }
    out.write_all(b"}]}")
}

// A line of the page a line.
fn quality(out: &mut dyn Write, subject: &Subject, advice: &dyn Advice) -> io::Result<()> {
    let Some(quality) = &subject.profile.quality else {
        return out.write_all(b"null");
    };
    write!(out, "{{\"stacks\":{}", quality.stacks)?;
    out.write_all(b",\n\"calls\":")?;
    let calls = &quality.calls;
    let calls = CallsChecked {
        verified: calls.verified,
        unchecked: calls.unchecked,
        lacking: calls.lacking,
        ambiguous: calls.ambiguous,
        contradicted: calls.contradicted,
    };
    value(out, &calls)?;
    for line in quality::lines(subject.profile) {
        write!(out, ",\n\"{}\":", line.key)?;
        let text = written(&line.what);
        let line = QualityLine {
            samples: line.samples,
            text: &text.whole(),
            remedy: { line.remedy }.and_then(|it| advice.on_remedy(it, &BTreeSet::new())),
        };
        value(out, &line)?;
    }
    out.write_all(b"}")
}

// An error, a census, or neither.
fn sampling_error(error: &SamplingError) -> (Option<Sampled>, Option<Census>) {
    match *error {
        SamplingError::Unknown => (None, None),
        SamplingError::Sampled {
            effective_samples,
            half_width,
        } => {
            let sampled = Sampled {
                points: half_width * 100.0,
                confidence: CONFIDENCE,
                effective_samples,
            };
            (Some(sampled), None)
        }
        SamplingError::Census => {
            let census = Census {
                complete: true,
                lost: 0,
                throttled: 0,
                intervals: 0,
            };
            (None, Some(census))
        }
        SamplingError::IncompleteCensus {
            lost,
            throttled,
            intervals,
        } => {
            let census = Census {
                complete: false,
                lost,
                throttled,
                intervals,
            };
            (None, Some(census))
        }
    }
}
