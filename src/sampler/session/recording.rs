//! A recording from its beginning to its end: one subject, one file.

use std::io;
use std::path::Path;
use std::time::Duration;

use super::bounds::{Bounds, End, Subject};
use super::cost::{Costs, Meter};
use super::options::Options;
use super::participants::Participants;
use crate::base::{Caveats, system_reason};
use crate::patch::CallCounter;
use crate::sampler::error::{Error, Note};
use crate::sampler::kernel::SoonerTurns;
use crate::sampler::output::file::Output;
use crate::sampler::output::log::Log;
use crate::sampler::output::log::limit::Disk;
use crate::sampler::output::staged::{Stage, Staged};
use crate::sampler::signals::Signals;
use crate::sampler::targets::child::Ending;

// Up to this level compression takes so little time that the recorder may go before others.
const QUICK_COMPRESSION: u8 = 3;

/// The result of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recording {
    /// The samples in the file.
    pub samples: u64,
    /// Records that the kernel had no room for, samples above all.
    pub lost: u64,
    /// The number of stacks that were shortened to record no more than
    /// [`Options::COPIED_PER_SECOND`].
    pub shortened: u64,
    /// The number of samples whose stacks were not unwound, and are in the file as copies; `None`
    /// if no copies were to be unwound.
    pub kept_copies: Option<u64>,
    /// How often the kernel throttled an event because it took too much time.
    pub throttled: u64,
    /// The size of the file.
    pub bytes: u64,
    /// How the command ended, if there was one.
    pub ending: Option<Ending>,
    /// Why the recording ended.
    pub end: End,
    /// Whether a signal to the recorder ended it.
    pub interrupted: bool,
    /// The second signal to the recorder, at which the command was not waited for any more. It gets
    /// a SIGTERM from the kernel when the recorder has ended.
    pub left_at: Option<i32>,
    /// How long the recorder did not run although it was its turn: somebody had stopped it, or it
    /// got no processor. The buffers were not emptied meanwhile.
    pub stood: Duration,
    /// Whether the kernel stopped recording the command as it started: nothing was mapped. It does
    /// so where a program gains privileges or may not be read (`begin_new_exec`).
    pub stopped_at_exec: bool,
    /// Events whose samples do not add up to the kernel's own count. Reading the file finds them as
    /// well.
    pub caveats: Caveats,
    /// Its costs.
    pub costs: Costs,
}

/// Records into a perf.data file at `path`, until the command ends, all that is sampled has
/// ended, or the bounds are reached. In the latter cases a command that is still there is left
/// alone, and waited for.
///
/// A Ctrl-C reaches the command by itself. INT, TERM and HUP that are sent to the recorder alone
/// are passed on to it, once, as a SIGTERM. Then the recorder goes on until the command ends, and a
/// note says after a second what it waits for. At a second signal it completes the file and returns
/// ([`Recording::left_at`]). Other signals that would end it are passed on as they are, and what
/// the command sends to its own process group is not passed on. Processes that the command has left
/// in the background are left alone; they are not recorded any more. Nothing is ever sent to what
/// ran already.
///
/// Records go through `stage`, if there is one.
///
/// With a `planner`, the command counts its calls from its start on. They are in the file only when
/// it is whole.
///
/// While it goes on, the records are in `path` with `.part` appended. The file has its true data
/// size five times a second and can be read even if this process is killed, in which case the
/// command gets a SIGTERM from the kernel. (The kernel sends it when the *thread* that called
/// this function ends, however it does.) Until it is whole the file says that it is not: reading it
/// gives [`CaveatKind::Unfinished`](crate::base::CaveatKind::Unfinished). At the end the part file
/// takes the name `path`, and what had the name is kept with `.old` appended.
///
/// # Errors
///
/// If the command cannot be started, the kernel does not let this user record, the target is not
/// there or ends before the recording begins, or the file cannot be written. What was at `path`
/// is then still there. A command that runs already when recording fails has run on to its end.
/// What was recorded before the failure is kept, and the error says where
/// ([`Error::Interrupted`], [`Error::Unnamed`]).
pub fn record<'a>(
    options: &Options,
    subject: Subject<'a>,
    bounds: &Bounds,
    path: &Path,
    planner: Option<&'a mut CallCounter>,
    stage: Option<&mut dyn Stage>,
    notes: &mut dyn FnMut(Note),
) -> Result<Recording, Error> {
    let failed = |error: io::Error| Error::Output {
        path: path.to_owned(),
        reason: system_reason(&error),
    };
    // SIGXFSZ is held back before the first byte is written: a limit is an error, not the end.
    let signals = Signals::hold();
    let (mut output, file, other) = Output::create(path)?;
    if let Some(other) = other {
        notes(Note::Unfinished(other));
    }
    let mut participants = Participants::gather(subject, planner, signals)?;
    let opened = participants
        .open(options, subject, bounds, notes)
        .and_then(|open| {
            let disk = Disk::of(&file);
            let mut log = Log::new(file, open.session.events()).map_err(failed)?;
            log.compress(options.compression).map_err(failed)?;
            log.limit(bounds.max_bytes, disk);
            // Its thread is there before this one asks for turns that others do not have.
            let staged = Staged::new(log, stage, &open).map_err(failed)?;
            Ok((open, staged))
        });
    let (mut open, mut staged) = opened.inspect_err(|_| {
        participants.run_on(None, notes);
    })?;
    let meter = Meter::start();
    // The command is forked already. Where it has hundreds of threads that want to run, the
    // buffers would be full before it is the recorder's turn.
    let is_quick = options
        .compression
        .is_none_or(|level| level <= QUICK_COMPRESSION);
    let _turns = SoonerTurns::ask(is_quick);
    output.begin();
    let run = participants.run(&mut open, &mut staged, bounds, notes);
    let (kept_copies, mut log) = (staged.kept(), staged.log);
    match run {
        Ok(end) => {
            let mut costs = meter.read(&open.session, &log);
            let interrupted = participants.is_stopped();
            let caveats = std::mem::take(&mut log.caveats);
            let (tally, bytes, file) = log.into_parts();
            let committed = output.commit(&file);
            if participants.goes_on() && participants.left_at().is_none() {
                notes(Note::CommandGoesOn);
            }
            let ending = participants.run_on(open.counting.take(), notes);
            if end == End::Command && matches!(subject, Subject::Command(_)) {
                costs.program = Some(Costs::commands());
            }
            let stopped_at_exec = matches!(subject, Subject::Command(_))
                && !matches!(end, End::Size | End::Disk { .. })
                && ending.is_some()
                && tally.is_empty();
            let recording = Recording {
                samples: tally.samples,
                lost: tally.lost(),
                shortened: open.session.shortened(),
                kept_copies,
                throttled: tally.throttled,
                bytes,
                ending,
                end,
                interrupted,
                left_at: participants.left_at(),
                stood: participants.stood(),
                stopped_at_exec,
                caveats,
                costs,
            };
            committed.map(|()| recording)
        }
        Err(error) => {
            let reason = system_reason(&error);
            notes(Note::OutputFailed {
                path: path.to_owned(),
                reason: reason.clone(),
                command_goes_on: participants.goes_on(),
            });
            open.session.stop();
            // The command may run on, and nobody would answer it.
            if let Some(counting) = &mut open.counting {
                counting.end();
            }
            // Before anything is waited for: the recorder may be killed while it waits.
            log.salvage();
            let has_recorded = log.has_recorded();
            let (_, _, file) = log.into_parts();
            let kept = output.keep_part(&file, has_recorded);
            participants.run_on(open.counting.take(), notes);
            Err(Error::Interrupted {
                path: path.to_owned(),
                reason,
                kept,
            })
        }
    }
}
