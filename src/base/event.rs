//! What was sampled, and in which unit its weights count.

use std::fmt;

/// What one unit of weight is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Nanoseconds: clock events (`cpu-clock`, `task-clock`).
    Nanoseconds,
    /// Occurrences of a counted thing, named in the plural: `cycles`, `page-faults`.
    Count(String),
    /// Samples: nothing is known but that one was taken.
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

/// An event that was sampled, as the recording names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// perf's name: `cycles`, `cpu-clock:u`, `sched:sched_switch`.
    pub name: String,
    /// The unit of its weights.
    pub unit: Unit,
}

impl Event {
    /// The event of this name; clock events count nanoseconds, others count themselves.
    ///
    /// ```
    /// use proftool::base::{Event, Unit};
    /// assert_eq!(Event::named("cpu-clock:u").unit, Unit::Nanoseconds);
    /// assert_eq!(Event::named("cycles:ppp").unit, Unit::Count("cycles".into()));
    /// ```
    pub fn named(name: &str) -> Event {
        let base = match name.rsplit_once(':') {
            Some((base, modifiers)) if modifiers.chars().all(|c| "ukhvGHIpPSDWeb".contains(c)) => {
                base
            }
            _ => name,
        };
        let unit = match base {
            "cpu-clock" | "task-clock" => Unit::Nanoseconds,
            _ => Unit::Count(base.to_owned()),
        };
        Event {
            name: name.to_owned(),
            unit,
        }
    }
}
