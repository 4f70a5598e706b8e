//! What is recorded, from when to when, and why it ended.

use std::time::Duration;

use crate::sampler::targets::command::Command;
use crate::sampler::targets::target::Target;

/// What is recorded.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// A command, from its exec on, and all that it starts.
    Command(&'a Command),
    /// What already runs.
    Running {
        /// Who is sampled.
        target: &'a Target,
        /// A command that is run meanwhile: the recording ends when it does.
        while_runs: Option<&'a Command>,
    },
}

impl<'a> Subject<'a> {
    pub(in crate::sampler) fn command(self) -> Option<&'a Command> {
        match self {
            Subject::Command(command) => Some(command),
            Subject::Running { while_runs, .. } => while_runs,
        }
    }
}

/// When to begin and to end, in addition to the start and end of the subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// How long to wait before the recording begins; a command runs meanwhile.
    pub delay: Duration,
    /// How long to record.
    pub duration: Option<Duration>,
    /// The most bytes of the file. The recording ends at the first record that it has no room
    /// for; later ones are left out. Only the head, what runs already, and build ids may be larger
    /// than that: without them no record could be read. `None` ends it before the disk is full:
    /// [`End::Disk`].
    pub max_bytes: Option<u64>,
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The command ended.
    Command,
    /// All that was sampled has ended.
    Subject,
    /// A signal came, and there was no command that it would have ended.
    Signal,
    /// [`Bounds::duration`].
    Duration,
    /// [`Bounds::max_bytes`].
    Size,
    /// The file system, of 64 MiB or more, had only this many bytes left: 5 % of it, 1 GiB, or
    /// half of what was free, whatever is least.
    Disk {
        /// In bytes.
        left: u64,
    },
    /// The watcher asked to stop.
    Watcher,
}
