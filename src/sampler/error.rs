//! Errors of recording, and notes on it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::base::system_reason;

use super::events::stacks::CopySize;
use super::rights::Rights;
use super::targets::command_error::CommandError;

// How many of the processes that are left out are named.
const LEFT_OUT_NAMED: usize = 4;

/// Why a recording could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The command cannot be started.
    #[error(transparent)]
    Command {
        /// Why.
        #[from]
        source: CommandError,
    },
    /// The output cannot be made or written.
    #[error("could not write {}: {reason}", path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The system lets this process have no further thread.
    #[error("no thread can be made, and live views need several")]
    NoThread,
    /// The output could not be written to its end.
    #[error(
        "could not write {}: {reason}; the recording ends there{}",
        path.display(),
        kept.as_ref().map_or(String::new(), |kept| format!(
            "; what was recorded before is in {}", kept.display()
        ))
    )]
    Interrupted {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
        /// Where the records are that were written before.
        kept: Option<PathBuf>,
    },
    /// An earlier recording is in the way: it could not be kept.
    #[error(
        "could not keep the earlier recording {} as {}: {reason}",
        path.display(), old.display()
    )]
    EarlierStays {
        /// The output, which the earlier recording has now.
        path: PathBuf,
        /// The name that the earlier recording would get.
        old: PathBuf,
        /// Why it cannot.
        reason: String,
    },
    /// The recording is whole, but could not get its name.
    #[error(
        "the recording is complete, but could not be named {}: {reason}; it is in {}",
        path.display(), kept.display()
    )]
    Unnamed {
        /// The name that it should have.
        path: PathBuf,
        /// What the system says.
        reason: String,
        /// Where it is.
        kept: PathBuf,
    },
    /// The part file was removed by someone, and could not be saved under another name.
    #[error(
        "the recording {} was removed while it was being made, and could not be saved again: \
         {reason}",
        path.display()
    )]
    Gone {
        /// The output.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// This user may not record at all.
    #[error("the kernel does not let this user record{}", at_level(*paranoid))]
    Forbidden {
        /// The value of the setting, if it can be read.
        paranoid: Option<i32>,
    },
    /// This user may not record the kernel, and the event is of the kernel alone.
    #[error(
        "event {event} occurs in the kernel, and this user may record user space only{}",
        at_level(*paranoid)
    )]
    KernelForbidden {
        /// The event's name.
        event: String,
        /// The value of the setting, if it can be read.
        paranoid: Option<i32>,
    },
    /// This user may not record tracepoints.
    #[error(
        "the kernel does not let this user record the fields of tracepoint {event}{}",
        at_level(*paranoid)
    )]
    TracepointForbidden {
        /// The event's name.
        event: String,
        /// The value of the setting, if it can be read.
        paranoid: Option<i32>,
    },
    /// This user may not record whole processors.
    #[error("the kernel does not let this user record whole processors{}", at_level(*paranoid))]
    SystemForbidden {
        /// The value of the setting, if it can be read.
        paranoid: Option<i32>,
    },
    /// This user may not look into a thread.
    #[error(
        "the kernel does not let this user record process {tid}{}",
        user.map_or(String::new(), |user| format!(", which belongs to user {user}"))
    )]
    TaskForbidden {
        /// The thread.
        tid: i32,
        /// The number of its user.
        user: Option<u32>,
    },
    /// There is no such process or thread.
    #[error("there is no {} {number}", if *thread { "thread" } else { "process" })]
    NoTask {
        /// Its number.
        number: i32,
        /// Whether it is a thread.
        thread: bool,
    },
    /// It has ended, and its parent has not asked how.
    #[error(
        "{} {number} has ended; its parent has not read its exit status (a zombie)",
        if *thread { "thread" } else { "process" }
    )]
    Zombie {
        /// Its number.
        number: i32,
        /// Whether it is a thread.
        thread: bool,
    },
    /// No process has this name.
    #[error("no process is named {name:?}")]
    NoneNamed {
        /// The name.
        name: String,
    },
    /// What was to be recorded has ended before the recording began.
    #[error("the target ended before the recording began")]
    Ended,
    /// A signal came before the recording began.
    #[error("stopped before the recording began")]
    Stopped,
    /// There is no such processor.
    #[error(
        "there is no processor {processor}; online: {}",
        online.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
    )]
    NoProcessor {
        /// Its number.
        processor: u32,
        /// The numbers of those that are.
        online: Vec<u32>,
    },
    /// The control group cannot be recorded.
    #[error("could not record the control group {}: {reason}", path.display())]
    Cgroup {
        /// The path as it was given.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The kernel has no `perf_event_open`.
    #[error("perf_event_open is missing: the kernel lacks it, or a sandbox hides it")]
    NoPerfEvents,
    /// The machine has no such event.
    #[error("event {event} is not supported on this machine")]
    Unsupported {
        /// The event's name.
        event: String,
        /// Whether a counter of the processor would be needed.
        hardware: bool,
    },
    /// The kernel refused an event for another reason.
    #[error("could not open event {event}: {reason}")]
    Event {
        /// The event's name.
        event: String,
        /// What the system says.
        reason: String,
    },
    /// Each event needs a file descriptor for each thread that runs and each processor.
    #[error("too many open files: {needed} are needed (events × threads × processors)")]
    TooManyFiles {
        /// How many descriptors the events need.
        needed: usize,
    },
    /// The ring buffers could not be made, however small.
    #[error("could not map a ring buffer: {reason}")]
    RingBuffer {
        /// What the system says.
        reason: String,
    },
    /// The frequency is above what the kernel allows.
    #[error(
        "frequency {wanted} is above the limit of {limit} in \
         /proc/sys/kernel/perf_event_max_sample_rate"
    )]
    Frequency {
        /// What was asked for.
        wanted: u64,
        /// What is allowed.
        limit: u64,
    },
    /// The process cannot be traced, which is needed to make it count its calls.
    #[error(
        "could not trace the process to count its calls: {reason}{}",
        scope.map_or(String::new(), |scope| format!(
            " (/proc/sys/kernel/yama/ptrace_scope is {scope})"
        ))
    )]
    NotTraced {
        /// What the system says.
        reason: String,
        /// The value of the setting, if there is one.
        scope: Option<i32>,
    },
    /// The calls of the command cannot be counted.
    #[error("could not {action}: {reason}")]
    Counting {
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        reason: String,
    },
    /// The system refused something that every recording needs.
    #[error("could not {action}: {reason}")]
    System {
        /// What was tried.
        action: &'static str,
        /// What the system says.
        reason: String,
    },
}

impl Error {
    pub(super) fn counting(action: &'static str) -> impl Fn(io::Error) -> Error {
        move |error| Error::Counting {
            action,
            reason: system_reason(&error),
        }
    }

    pub(super) fn system(action: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |error| Error::System {
            action,
            reason: system_reason(&error),
        }
    }
}

/// Something about a recording that its user should know. Each is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// There is no counter of cycles; the clock is sampled in its place.
    NoCycles,
    /// This user may not record the kernel.
    UserOnly(Rights),
    /// This user may not record the kernel, where the stacks of switches are taken: time off the
    /// processor has none.
    NoSwitchStacks(Rights),
    /// The kernel cannot copy registers and stacks; frame pointers are followed in their place.
    NoCopies,
    /// These events were to be a group, and do not fit on the counters together.
    Ungrouped(Vec<String>),
    /// The kernel does not let threads inherit a group whose leader samples for all.
    GroupsNotInherited,
    /// The kernel hides its addresses, so its samples will have no names.
    HiddenKernel(Rights),
    /// Of the processes that were named, some belong to others and may not be recorded.
    LeftOut {
        /// Their numbers, and those of their users where they are known.
        processes: Vec<(i32, Option<u32>)>,
        /// How many were named.
        of: usize,
    },
    /// What is mapped in some running processes may not be read.
    HiddenMappings {
        /// The number of such processes.
        processes: usize,
        /// The rights with which it was tried.
        rights: Rights,
    },
    /// Some running processes have too many mappings to read all.
    CutMappings {
        /// The number of such processes.
        processes: usize,
    },
    /// The ring buffers are smaller than wanted.
    SmallerRings {
        /// Their size in KiB.
        kib: usize,
        /// The size that was wanted.
        wanted: usize,
    },
    /// The limit of locked memory is too low for ring buffers that hold enough copies of the
    /// requested size.
    SmallerCopies {
        /// Their size.
        size: CopySize,
    },
    /// The kernel's limit is below the usual frequency.
    LowerFrequency {
        /// The limit, at which is sampled.
        limit: u64,
    },
    /// There is a part file of an earlier recording to the same output.
    Unfinished(PathBuf),
    /// The recording begins now.
    Begun,
    /// The recording is whole; the command goes on.
    CommandGoesOn,
    /// The recorder has got a signal to end, and waits for the command, which has this number.
    Awaits(i32),
    /// The output cannot be written any more.
    OutputFailed {
        /// The output.
        path: PathBuf,
        /// What the system says.
        reason: String,
        /// Whether there is a command that goes on.
        command_goes_on: bool,
    },
}

impl Note {
    /// Returns whether the user waits, or the recording will lack something that they expect, so
    /// that the note is shown even with quiet output.
    pub fn is_essential(&self) -> bool {
        matches!(
            self,
            Note::OutputFailed { .. }
                | Note::Awaits(_)
                | Note::NoCopies
                | Note::GroupsNotInherited
                | Note::HiddenMappings { .. }
                | Note::CutMappings { .. }
                | Note::LeftOut { .. }
        )
    }
}

/// Writes the fact as one lower-case line.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::NoCycles => f.write_str(
                "no hardware cycle counter (a virtual machine?); sampling cpu-clock instead",
            ),
            Note::UserOnly(rights) => {
                f.write_str("recording user space only")?;
                write_paranoid(f, rights)
            }
            Note::NoSwitchStacks(rights) => {
                f.write_str("off-CPU time is recorded by thread, without stacks")?;
                write_paranoid(f, rights)
            }
            Note::NoCopies => f.write_str(
                "this kernel does not copy registers and stacks into samples; recording stacks by \
                 frame pointers instead",
            ),
            Note::Ungrouped(names) => write!(
                f,
                "{} do not fit on the counters together; each is sampled separately",
                names.join(", ")
            ),
            Note::GroupsNotInherited => f.write_str(
                "this kernel (before Linux 6.12) samples groups with :S only in threads that exist \
                 when the recording begins",
            ),
            Note::HiddenKernel(_) => {
                f.write_str("the kernel hides its addresses: kernel functions will have no names")
            }
            Note::LeftOut { processes, of } => write!(
                f,
                "left out {} of {of} processes, which this user may not record: {}",
                processes.len(),
                named(processes),
            ),
            Note::HiddenMappings { processes, .. } => write!(
                f,
                "the mappings of {processes} running process{} cannot be read: their code will \
                 have no names",
                if *processes == 1 { "" } else { "es" },
            ),
            Note::CutMappings { processes } => write!(
                f,
                "{processes} running process{} too many mappings to read all: some code will have \
                 no names",
                if *processes == 1 { " has" } else { "es have" },
            ),
            Note::SmallerRings { kib, wanted } => write!(
                f,
                "ring buffers of {kib} KiB per processor instead of {wanted} (limit of locked \
                 memory)"
            ),
            Note::SmallerCopies { size } => write!(
                f,
                "at most {size} of each stack are copied (limit of locked memory)"
            ),
            Note::LowerFrequency { limit } => write!(
                f,
                "sampling at {limit} Hz, the limit in /proc/sys/kernel/perf_event_max_sample_rate"
            ),
            Note::Unfinished(path) => write!(
                f,
                "{} is left from another recording, which still runs or was killed",
                path.display()
            ),
            Note::Begun => f.write_str("recording"),
            Note::CommandGoesOn => f.write_str("the recording has ended; the command continues"),
            Note::Awaits(pid) => write!(
                f,
                "waiting for the command to end (process {pid}); a second signal or Ctrl-C ends \
                 the recording without it"
            ),
            Note::OutputFailed {
                path,
                reason,
                command_goes_on,
            } => {
                let then = if *command_goes_on {
                    "the command continues unrecorded"
                } else {
                    "nothing more is recorded"
                };
                write!(f, "could not write {}: {reason}; {then}", path.display())
            }
        }
    }
}

// The first of these processes, each with its user.
fn named(processes: &[(i32, Option<u32>)]) -> String {
    let first = processes.iter().take(LEFT_OUT_NAMED);
    let named: Vec<String> = first
        .map(|(pid, user)| match user {
            Some(user) => format!("{pid} of user {user}"),
            None => pid.to_string(),
        })
        .collect();
    let more = if processes.len() > named.len() {
        ", …"
    } else {
        ""
    };
    format!("{}{more}", named.join(", "))
}

fn at_level(paranoid: Option<i32>) -> String {
    paranoid.map_or(String::new(), |level| {
        format!(": /proc/sys/kernel/perf_event_paranoid is {level}")
    })
}

fn write_paranoid(f: &mut fmt::Formatter<'_>, rights: &Rights) -> fmt::Result {
    match rights.paranoid {
        Some(level) => write!(f, " (kernel.perf_event_paranoid is {level})"),
        None => Ok(()),
    }
}
