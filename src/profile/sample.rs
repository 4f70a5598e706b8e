//! Samples, and what distinguishes them.

use std::sync::Arc;

use crate::base::define_id;

use super::{LineId, PathId};

define_id! {
    /// A row of [`Profile::events`](super::Profile::events).
    pub EventId
}

define_id! {
    /// A row of [`Profile::threads`](super::Profile::threads).
    pub ThreadId
}

/// A thread under one command name; a thread that changes its name has several rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// The command name at the time of the samples.
    pub comm: Arc<str>,
    /// What the process was started for, if it is a compiler or a linker and the recorder looked:
    /// `cc1 lib/parse.c`, `rustc serde`.
    pub job: Option<Arc<str>>,
    /// The number of the run, from 0: of several recordings each has its own threads
    /// ([`SumOfRuns`](super::SumOfRuns)).
    pub run: u32,
}

impl Thread {
    /// A thread of a process that is no compiler or linker.
    pub fn new(pid: i32, tid: i32, comm: impl Into<Arc<str>>) -> Thread {
        Thread {
            pid,
            tid,
            comm: comm.into(),
            job: None,
            run: 0,
        }
    }

    /// Returns what the process was started for; its command name where that is not known.
    pub fn command(&self) -> &Arc<str> {
        self.job.as_ref().unwrap_or(&self.comm)
    }
}

/// All samples that were equal in event, thread, path and line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The event.
    pub event: EventId,
    /// The thread.
    pub thread: ThreadId,
    /// Where it was taken.
    pub path: PathId,
    /// The source line of the innermost frame, where it is known.
    pub line: Option<LineId>,
    /// The sum of weights in the event's unit.
    pub weight: u64,
    /// The number of samples.
    pub count: u64,
    /// The sum of the squares of their weights.
    pub squares: u128,
}
