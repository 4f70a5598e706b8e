//! Errors in the names of events.

use std::path::PathBuf;

// The letters with what they mean, for who has given another one.
const LETTERS: &str = "u (user space), k (kernel), h (hypervisor), G (guests), \
    H (host), p to ppp (precise address), P (as precise as can be), S (only the leader of the \
    group samples), D (pinned to its counter), e (alone on the counters), W (ungrouped if the \
    group does not fit)";

/// Why a text names no event to sample.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// There is no such event.
    #[error(transparent)]
    Unknown {
        /// Its name, and names like it.
        #[from]
        source: UnknownEvent,
    },
    /// This user may not look tracepoints up.
    #[error("tracepoint {event}: {} cannot be read by this user", tracefs.display())]
    Hidden {
        /// The tracepoint.
        event: String,
        /// Where tracefs is mounted.
        tracefs: PathBuf,
        /// The number of this process's group, to which tracefs can be given.
        group: u32,
    },
    /// A letter behind the name means nothing.
    #[error("{event}: there is no modifier {letter:?}; those that exist are: {LETTERS}")]
    Modifier {
        /// The event or group.
        event: String,
        /// The letter.
        letter: char,
    },
    /// The terms of a PMU's event are invalid.
    #[error("{event}: {problem}")]
    Terms {
        /// The event.
        event: String,
        /// What is wrong.
        problem: String,
    },
    /// Braces, slashes or commas are in the wrong place.
    #[error("{text:?} is not a list of events: {problem}")]
    Syntax {
        /// What was given.
        text: String,
        /// What is wrong.
        problem: &'static str,
    },
}

/// A name that no event of this machine has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown event {name:?}{}", did_you_mean(.near))]
#[non_exhaustive]
pub struct UnknownEvent {
    /// The name that was given.
    pub name: String,
    /// The names most like it, nearest first.
    pub near: Vec<String>,
    /// Where it was looked for.
    pub searched: Searched,
}

/// Where the name of an event was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Searched {
    /// Among the events that the kernel's interface names.
    BuiltIn,
    /// Among the tracepoints.
    Tracepoints,
    /// Nowhere: it would be a tracepoint, and tracefs is not mounted.
    NoTracefs,
}

fn did_you_mean(near: &[String]) -> String {
    match near {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(" or ")),
    }
}
