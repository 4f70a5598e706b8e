//! What was sampled, and in which unit its weights count.

use std::fmt;

/// What one unit of weight is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Nanoseconds: clock events (`cpu-clock`, `task-clock`), time off the processor.
    Nanoseconds,
    /// Occurrences of a counted thing, named in the plural: `cycles`, `page-faults`.
    Count(String),
    /// Samples, each counted as 1, where no other unit is known.
    Samples,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Nanoseconds => "ns",
            Unit::Count(what) => what,
            Unit::Samples => "samples",
        })
    }
}

/// How the samples of an event were chosen from all its occurrences. The sampling error of a share
/// depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sampling {
    /// Not known: weights from elsewhere need not count samples at all.
    #[default]
    Unknown,
    /// Weights were added up before they were read, and the number of samples was not stated.
    Merged,
    /// Some occurrences were recorded, others were not.
    Drawn,
    /// Each occurrence was recorded, or should have been: period 1, intervals between switches.
    Census,
}

impl Sampling {
    /// Whether this unit of weights is assumed and not stated: the weights of folded stacks count
    /// as samples unless a unit is given.
    ///
    /// ```
    /// use proftool::base::{Sampling, Unit};
    /// assert!(Sampling::Merged.assumes(&Unit::Samples));
    /// assert!(!Sampling::Merged.assumes(&Unit::Nanoseconds));
    /// ```
    pub fn assumes(self, unit: &Unit) -> bool {
        self == Sampling::Merged && *unit == Unit::Samples
    }
}

/// An event that was sampled, as the recording names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// perf's name: `cycles`, `cpu-clock:u`, `sched:sched_switch`.
    pub name: String,
    /// The unit of its weights.
    pub unit: Unit,
}

// Names of events that tell of threads that do not run, whose numbers say nothing of how much was
// sampled of those that do. `offcpu-time` is that of `perf record --off-cpu`.
const OFF_PROCESSOR: [&str; 6] = [
    OFF_CPU,
    PREEMPTED,
    "offcpu-time",
    "context-switches",
    "cs",
    "sched:sched_switch",
];
const OFF_CPU: &str = "off-cpu";
const PREEMPTED: &str = "preempted";

// Whether a term of an event tells how it is sampled, and not which event it is (perf's
// `config_term_names`).
fn is_of_sampling(term: &str) -> bool {
    let name = term.split_once('=').map_or(term, |(name, _)| name);
    [
        "period",
        "freq",
        "name",
        "time",
        "call-graph",
        "stack-size",
        "max-stack",
        "nr",
        "inherit",
        "no-inherit",
        "overwrite",
        "no-overwrite",
        "percore",
        "aux-output",
        "aux-sample-size",
    ]
    .contains(&name)
}

impl Event {
    /// Time in which a thread was blocked: it slept or waited, and did not ask for a processor.
    pub fn off_cpu() -> Event {
        Event::named(OFF_CPU)
    }

    /// Time in which a thread could have run and another had the processor.
    pub fn preempted() -> Event {
        Event::named(PREEMPTED)
    }

    /// Returns the index of the event to show by default; each event comes with its number of
    /// samples. It is the first of those with the most samples. If off-CPU time was recorded as
    /// well, it is the event that samples running threads, even if there are more switches than
    /// samples. If no thread ran, it is `off-cpu`.
    ///
    /// ```
    /// use proftool::base::Event;
    /// let [clock, switches] = ["cpu-clock", "context-switches"].map(Event::named);
    /// let off = Event::off_cpu();
    /// assert_eq!(Event::main([(&clock, 5), (&switches, 9)].into_iter()), Some(1));
    /// assert_eq!(Event::main([(&clock, 5), (&switches, 9), (&off, 9)].into_iter()), Some(0));
    /// assert_eq!(Event::main([(&clock, 0), (&switches, 9), (&off, 8)].into_iter()), Some(2));
    /// assert_eq!(Event::main([(&switches, 9), (&off, 8)].into_iter()), Some(0));
    /// ```
    pub fn main<'a>(events: impl Iterator<Item = (&'a Event, u64)> + Clone) -> Option<usize> {
        let both = events.clone().any(|(event, _)| event.name == OFF_CPU);
        let has_other = events.clone().any(|(event, _)| !event.is_off_processor());
        let rank = |(event, samples): (&Event, u64)| {
            let base = event.base();
            let is_off = both && OFF_PROCESSOR.contains(&base);
            let is_wait = has_other && samples > 0 && base == OFF_CPU;
            (samples > 0 && !is_off, is_wait, samples)
        };
        let most = events.clone().map(rank).max()?;
        events.clone().map(rank).position(|one| one == most)
    }

    /// Whether its samples are threads that leave their processor: each stack then ends in the
    /// scheduler.
    pub fn is_off_processor(&self) -> bool {
        OFF_PROCESSOR.contains(&self.base())
    }

    /// The name without modifiers and terms of its sampling: `cycles` of `cycles:u` and of
    /// `cycles/freq=99/u`.
    pub fn base(&self) -> &str {
        if let Some((base, rest)) = self.name.split_once('/')
            && let Some((terms, _)) = rest.split_once('/')
            && terms.split(',').all(is_of_sampling)
        {
            return base;
        }
        match self.name.rsplit_once(':') {
            Some((base, modifiers)) if modifiers.chars().all(|c| "ukhvGHIpPSDWeb".contains(c)) => {
                base
            }
            _ => &self.name,
        }
    }

    /// The event of this name; clock events count nanoseconds, others count themselves.
    ///
    /// ```
    /// use proftool::base::{Event, Unit};
    /// assert_eq!(Event::named("cpu-clock:u").unit, Unit::Nanoseconds);
    /// assert_eq!(Event::named("cycles:ppp").unit, Unit::Count("cycles".into()));
    /// assert_eq!(Event::named("task-clock/freq=99/u").unit, Unit::Nanoseconds);
    /// assert_eq!(Event::named("cpu/cycles/").base(), "cpu/cycles/");
    /// ```
    pub fn named(name: &str) -> Event {
        let mut event = Event {
            name: name.to_owned(),
            unit: Unit::Nanoseconds,
        };
        let is_time = ["cpu-clock", "task-clock", OFF_CPU, PREEMPTED, "offcpu-time"];
        if !is_time.contains(&event.base()) {
            event.unit = Unit::Count(event.base().to_owned());
        }
        event
    }
}
