//! A recording from its beginning to its end: one command, one file.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::time::Duration;

use super::child::{Child, Ending};
use super::command::Command;
use super::error::{Error, Note, reason};
use super::kernel;
use super::kernel_images::KernelImages;
use super::log::Log;
use super::output::Output;
use super::session::{Options, Session};
use super::signals::Signals;
use super::stop::Stop;

/// The longest time between two passes over the buffers, after each of which the file is true.
const PASS: Duration = Duration::from_millis(200);

/// What became of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recording {
    /// The samples in the file.
    pub samples: u64,
    /// Records that the kernel had no room for, samples above all.
    pub lost: u64,
    /// How often the kernel held an event back because it took too much time.
    pub throttled: u64,
    /// The size of the file.
    pub bytes: u64,
    /// How the command ended.
    pub ending: Ending,
    /// Whether a signal to the recorder ended it.
    pub interrupted: bool,
}

/// Records `command` into a perf.data file at `path`, until the command ends.
///
/// INT, TERM and HUP end the recording, and with it the command and what it has started: they get
/// a SIGTERM (after a Ctrl-C, which they got themselves, only when the command does not end
/// within two seconds), and two seconds later, or when the signal comes once more, a SIGKILL.
/// When the command ends by itself, processes that it has left in the background are left alone;
/// they are not recorded any more.
///
/// While it goes on, the records are in `path` with `.part` appended. The file has its true data
/// size five times a second and can be read even if this process is killed, in which case the
/// command gets a SIGTERM from the kernel. (The kernel sends it when the *thread* that called
/// this function ends, however it does.) At the end the part file takes the name `path`, and what
/// had the name is kept with `.old` appended.
///
/// # Errors
///
/// If the command cannot be started, the kernel does not let this user record, or the file
/// cannot be written. What was at `path` is then still there. When it is the writing that fails,
/// the command has run on to its end.
pub fn record(
    options: &Options,
    command: &Command,
    path: &Path,
    notes: &mut dyn FnMut(Note),
) -> Result<Recording, Error> {
    let failed = |error: io::Error| Error::Output {
        path: path.to_owned(),
        reason: reason(&error),
    };
    let (output, file, other) = Output::create(path).map_err(failed)?;
    if let Some(other) = other {
        notes(Note::Unfinished(other));
    }
    let signals = Signals::hold().map_err(Error::system("hold signals back"))?;
    let mut child =
        Child::fork(command, signals.inherited()).map_err(Error::system("make a process"))?;
    let mut session = Session::open(options, child.pid(), notes)?;
    let mut log = Log::new(file, session.events()).map_err(failed)?;
    child.start(command)?;
    let mut recorder = Recorder {
        session: &mut session,
        child: &mut child,
        signals: &signals,
        stop: Stop::default(),
    };
    match recorder.run(&mut log, notes) {
        Ok(()) => {
            let interrupted = recorder.stop.began();
            let (tally, bytes) = (log.tally(), log.file_size());
            let recording = Recording {
                samples: tally.samples,
                lost: tally.lost(),
                throttled: tally.throttled,
                bytes,
                ending: child.join(),
                interrupted,
            };
            output.commit().map_err(failed)?;
            Ok(recording)
        }
        Err(error) => {
            let reason = reason(&error);
            notes(Note::OutputFailed {
                path: path.to_owned(),
                reason: reason.clone(),
            });
            recorder.run_on();
            Err(Error::Interrupted {
                path: path.to_owned(),
                reason,
                kept: log.salvage().then(|| output.keep_part()),
            })
        }
    }
}

/// What takes part in a recording while the command runs.
struct Recorder<'a> {
    session: &'a mut Session,
    child: &'a mut Child,
    signals: &'a Signals,
    stop: Stop,
}

impl Recorder<'_> {
    /// Records until the command has ended, and finishes the file. Only writing can fail.
    fn run(&mut self, log: &mut Log<File>, notes: &mut dyn FnMut(Note)) -> io::Result<()> {
        // The kernel's image is looked at while the command runs already. Nothing has been
        // written yet, so its records still come before all others.
        let mut images = KernelImages::default();
        if self.session.includes_kernel() {
            images = KernelImages::running();
            if images.mappings.is_empty() {
                notes(Note::HiddenKernel);
            }
        }
        log.begin(&images)?;
        loop {
            if self.session.wait(self.signals.as_fd(), PASS).is_err() {
                std::thread::sleep(PASS);
            }
            let ended = self.stop.attend(self.child, self.signals);
            log.pass(self.session)?;
            if ended {
                break;
            }
        }
        self.session.stop();
        log.pass(self.session)?;
        log.finish(self.session, &images)
    }

    /// Waits for the command to end when it is not recorded any more.
    fn run_on(&mut self) {
        self.session.stop();
        let mut nothing = Vec::new();
        while !self.stop.attend(self.child, self.signals) {
            if kernel::poll(&[self.signals.as_fd().as_raw_fd()], PASS, &mut nothing).is_err() {
                std::thread::sleep(PASS);
            }
        }
    }
}
