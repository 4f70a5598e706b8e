//! What is sampled and how: the arguments that `record` and `top` have in common.

use std::ffi::OsString;

use clap::Args;
use proftool::frame_pointers::verdict::Time;
use proftool::sampler::{
    Command, CommandError, Error, EventError, EventList, NoCopySize, Options, Rate, Stacks,
    Subject, Target, largest_copy,
};

use super::advice;
use super::record::target::TargetArgs;
use super::stack_choice::{self, Wanted};

/// How to sample, and what already runs.
#[derive(Args, Debug)]
pub struct SamplingArgs {
    /// Samples per second of run time [default: 997].
    ///
    /// Of faults, switches and tracepoints each occurrence is recorded.
    #[arg(short = 'F', long = "freq", value_name = "HZ", conflicts_with = "period",
          value_parser = clap::value_parser!(u64).range(1..))]
    frequency: Option<u64>,

    /// One sample per PERIOD events (clocks: nanoseconds).
    #[arg(short = 'c', long = "count", value_name = "PERIOD",
          value_parser = clap::value_parser!(u64).range(1..))]
    period: Option<u64>,

    /// Events to sample [default: cycles, else cpu-clock].
    ///
    /// Names as in perf, separated by commas, with modifiers (cycles:u) and groups ('{A,B}:S'): see
    /// proftool help events.
    #[arg(short, long, value_name = "EVENT", value_parser = events)]
    event: Vec<EventList>,

    /// Stacks: auto (default), fp, dwarf, none.
    ///
    /// auto chooses by the program's code. fp[,BYTES] follows frame pointers, and unwinds BYTES
    /// (256) of the top of the stack for callers that these skip. dwarf[,BYTES] unwinds the stack,
    /// for programs without frame pointers (all of it, as far as buffers allow).
    #[arg(short = 'g', long = "call-graph", value_name = "HOW", default_value = "auto",
          hide_default_value = true, value_parser = call_graph)]
    call_graph: CallGraph,

    /// Also record where threads are blocked or preempted.
    ///
    /// The events are off-cpu and preempted: see proftool help off-cpu.
    #[arg(long)]
    off_cpu: bool,

    /// Pages of each processor's buffer, a power of two.
    ///
    /// Other numbers are rounded up [default: 512 KiB; a quarter of a second of samples with
    /// -g dwarf, eight times as much with --off-cpu; at most 16 MiB].
    #[arg(short = 'm', long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    mmap_pages: Option<u32>,

    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallGraph {
    // By what the functions of the program keep.
    Auto,
    // By copies whose size adapts.
    Copies,
    Chosen(Stacks),
}

fn call_graph(how: &str) -> Result<CallGraph, String> {
    let stacks = match how.split_once(',') {
        None if how == "auto" => return Ok(CallGraph::Auto),
        None if how == "fp" => Stacks::frame_pointers(),
        Some(("fp", "0")) => Stacks::FramePointers,
        Some(("fp", bytes)) => {
            let size = bytes.parse().map_err(|e: NoCopySize| e.to_string())?;
            Stacks::Joined(size)
        }
        None if how == "none" => Stacks::None,
        None if how == "dwarf" => return Ok(CallGraph::Copies),
        Some(("dwarf", bytes)) => {
            let size = bytes.parse().map_err(|e: NoCopySize| e.to_string())?;
            Stacks::Copies(size)
        }
        _ => return Err("not one of auto, fp, fp,BYTES, dwarf, dwarf,BYTES, none".into()),
    };
    Ok(CallGraph::Chosen(stacks))
}

fn events(names: &str) -> Result<EventList, String> {
    names.parse().map_err(
        |error: EventError| match advice::sampling::on_event(&error) {
            Some(hint) => format!("{error}\nhint: {hint}"),
            None => error.to_string(),
        },
    )
}

#[derive(Debug)]
pub struct Asked {
    pub command: Option<Command>,
    pub target: Option<Target>,
}

impl Asked {
    // An error if there is neither a command nor a target.
    pub fn subject(&self) -> Result<Subject<'_>, Error> {
        match (&self.target, &self.command) {
            (None, Some(command)) => Ok(Subject::Command(command)),
            (Some(target), command) => Ok(Subject::Running {
                target,
                while_runs: command.as_ref(),
            }),
            // The arguments demand one of them.
            (None, None) => Err(CommandError::Unusable {
                problem: "there is none".into(),
            }
            .into()),
        }
    }
}

impl SamplingArgs {
    // The target, and the program of the command with these words. An error if one is not there.
    pub fn asked(&self, words: &[OsString]) -> Result<Asked, Error> {
        let command = if words.is_empty() {
            None
        } else {
            Some(Command::find(words)?)
        };
        let target = self.target.target()?;
        if let Some(target) = &target {
            target.check()?;
        }
        Ok(Asked { command, target })
    }

    // How to sample this subject, and whether copies of stacks are unwound meanwhile, if there are
    // any; where stacks are chosen by its code, a line that says why so.
    pub fn options(&self, subject: Subject<'_>, unwinds: bool) -> (Options, Option<String>) {
        let events = self.event.iter().flat_map(EventList::events);
        let mut options = Options {
            events: events.cloned().collect(),
            rate: match (self.frequency, self.period) {
                (Some(frequency), _) => Some(Rate::Frequency(frequency)),
                (None, Some(period)) => Some(Rate::Period(period)),
                (None, None) => None,
            },
            stacks: Stacks::None,
            unwinds: false,
            fit_copies: matches!(self.call_graph, CallGraph::Auto | CallGraph::Copies),
            ring_pages: self.mmap_pages.map(|pages| pages as usize),
            off_cpu: self.off_cpu,
            compression: None,
        };
        let wanted = Wanted {
            time: self.time(),
            largest: largest_copy(&options),
            unwinds,
        };
        let (stacks, why) = match (self.call_graph, subject) {
            (CallGraph::Chosen(stacks), _) => (stacks, None),
            (CallGraph::Copies, _) => (Stacks::Copies(wanted.largest), None),
            (CallGraph::Auto, Subject::Command(command)) => {
                let (stacks, why) = stack_choice::choose(&command.code_file(), wanted);
                (stacks, Some(why))
            }
            (CallGraph::Auto, Subject::Running { target, .. }) => {
                let (stacks, why) = stack_choice::choose_running(target, wanted);
                (stacks, Some(why))
            }
        };
        options.stacks = stacks;
        options.unwinds = unwinds && stacks.are_copied();
        options.compression = self.compression(stacks);
        (options, why)
    }

    pub fn time(&self) -> Time {
        if self.off_cpu {
            Time::OffCpu
        } else {
            Time::OnCpu
        }
    }

    // The level unless one is given. Threads that wait for each other switch 100 000 times a
    // second, with 8 KiB of stack each. As such stacks repeat, compression shrinks them by a factor
    // of 20 and more, to less than a file with frame pointers takes.
    fn compression(&self, stacks: Stacks) -> Option<u8> {
        let unasked = self.off_cpu && self.call_graph == CallGraph::Auto;
        (unasked && matches!(stacks, Stacks::Copies(_))).then_some(1)
    }
}
