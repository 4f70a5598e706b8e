//! The participants of sampling: the command, the session, the sender of signals, and the consumer
//! of samples.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use super::Session;
use super::bounds::{Bounds, End, Subject};
use super::options::Options;
use super::stop::Stop;
use crate::patch::CallCounter;
use crate::perfdata::writer::time_record;
use crate::sampler::calls::counting::Counting;
use crate::sampler::error::{Error, Note};
use crate::sampler::kernel;
use crate::sampler::kernel_images::KernelImages;
use crate::sampler::rights::Rights;
use crate::sampler::signals::Signals;
use crate::sampler::switches::Switches;
use crate::sampler::targets::child::{Child, Ending};
use crate::sampler::targets::command::Command;
use crate::sampler::targets::existing::Existing;
use crate::sampler::targets::target::Target;
use crate::sampler::user_share::UserShare;

// The longest time between two passes over the buffers. After each pass the file is consistent.
const PASS: Duration = Duration::from_millis(200);
// A wait that takes so much longer than it should is no accident of scheduling.
const LATE: Duration = Duration::from_secs(1);

pub(in crate::sampler) struct Open {
    pub(in crate::sampler) session: Session,
    pub(in crate::sampler) images: KernelImages,
    pub(in crate::sampler) existing: Existing,
    /// When nothing more was sampled, in nanoseconds of the clock of all records.
    pub(in crate::sampler) ended: u64,
    pub(in crate::sampler) user_share: UserShare,
    pub(in crate::sampler) switches: Switches,
    pub(in crate::sampler) counting: Option<Counting>,
    /// Whether the recording begins before the command is executed.
    pub(in crate::sampler) begins_with_exec: bool,
    ends_with_target: bool,
}

pub(in crate::sampler) trait Sink {
    fn begin(&mut self, open: &Open) -> io::Result<()>;
    fn pass(&mut self, open: &mut Open) -> io::Result<()>;
    fn finish(&mut self, open: &Open) -> io::Result<()>;
    /// Why nothing more is to come, if so.
    fn wants_end(&self) -> Option<End>;
}

/// The parties of a recording apart from the kernel: the command, if there is one, and the sender
/// of signals.
pub(in crate::sampler) struct Participants<'a> {
    command: Option<&'a Command>,
    planner: Option<&'a mut CallCounter>,
    counting: Option<Counting>,
    child: Option<Child>,
    started: bool,
    signals: Signals,
    stop: Stop,
    /// How long this process did not run although it was its turn.
    stood: Duration,
}

impl<'a> Participants<'a> {
    /// Holds the command back before it runs. `signals` are held back already.
    pub(in crate::sampler) fn gather(
        subject: Subject<'a>,
        mut planner: Option<&'a mut CallCounter>,
        signals: io::Result<Signals>,
    ) -> Result<Participants<'a>, Error> {
        let signals = signals.map_err(Error::system("hold signals back"))?;
        let counting = match (&mut planner, subject.command()) {
            (Some(planner), Some(command)) => Some(Counting::prepare(command, planner)?),
            _ => None,
        };
        let child = subject
            .command()
            .map(|command| Child::fork(command, signals.inherited()))
            .transpose()
            .map_err(Error::system("make a process"))?;
        Ok(Participants {
            command: subject.command(),
            planner,
            counting,
            child,
            started: false,
            signals,
            stop: Stop::default(),
            stood: Duration::ZERO,
        })
    }

    pub(in crate::sampler) fn is_stopped(&self) -> bool {
        self.stop.began()
    }

    pub(in crate::sampler) fn left_at(&self) -> Option<i32> {
        self.stop.over()
    }

    /// Waits for the delay, opens the session, looks at what is there, and lets the command run.
    pub(in crate::sampler) fn open(
        &mut self,
        options: &Options,
        subject: Subject<'_>,
        bounds: &Bounds,
        notes: &mut dyn FnMut(Note),
    ) -> Result<Open, Error> {
        if !bounds.delay.is_zero() {
            self.start()?;
            self.sleep(bounds.delay)?;
        }
        let target = match (subject, &self.child) {
            (Subject::Running { target, .. }, _) => target.clone(),
            (Subject::Command(_), Some(child)) if self.started => Target::Tree(child.pid()),
            (Subject::Command(_), Some(child)) => Target::Held(child.pid()),
            (Subject::Command(_), None) => return Err(Error::Ended),
        };
        let held = matches!(target, Target::Held(_));
        let mut session = Session::open(options, &target, notes)?;
        let mut user_share = UserShare::begin(&target);
        let switches = Switches::begin(&target);
        if held {
            self.start()?;
        }
        // The kernel's image is looked at while a command runs already. Nothing has been written
        // yet, so its records still come before all others.
        let mut images = KernelImages::default();
        if session.includes_kernel() {
            images = KernelImages::running();
            if images.mappings.is_empty() {
                notes(Note::HiddenKernel(Rights::look()));
            }
        }
        if let (Some(planner), Subject::Running { target, .. }) = (&mut self.planner, subject) {
            let counting = Counting::attach(only_process(target)?, planner)?;
            self.counting = Some(counting);
        }
        let mut existing = Existing::default();
        if !held {
            let begin = kernel::now();
            // Of a whole machine nearly all is blocked, and nobody asks for that.
            let blocked = options.off_cpu && !matches!(target, Target::Processors(_));
            existing = Existing::look(&target.existing(), session.includes_data(), blocked);
            existing.records.extend(time_record(begin));
            if existing.hidden > 0 {
                notes(Note::HiddenMappings {
                    processes: existing.hidden,
                    rights: Rights::look(),
                });
            }
            if existing.cut > 0 {
                notes(Note::CutMappings {
                    processes: existing.cut,
                });
            }
            session.skip_samples();
            user_share = UserShare::begin(&target);
            self.start()?;
        }
        let mut counting = self.counting.take();
        if let Some(counting) = counting.as_mut().filter(|_| !held) {
            counting
                .begin()
                .map_err(Error::counting("read the counters"))?;
        }
        notes(Note::Begun);
        Ok(Open {
            counting,
            session,
            images,
            existing,
            ended: 0,
            begins_with_exec: held,
            user_share,
            switches,
            ends_with_target: target.is_of_tasks() && matches!(subject, Subject::Running { .. }),
        })
    }

    /// Lets the command run, unless it does.
    fn start(&mut self) -> Result<(), Error> {
        if let (Some(child), Some(command), false) = (&mut self.child, self.command, self.started) {
            match (&mut self.planner, &mut self.counting) {
                (Some(planner), Some(counting)) => counting.start(child, command, planner)?,
                _ => child.start(command)?,
            }
            self.started = true;
        }
        Ok(())
    }

    fn sleep(&mut self, delay: Duration) -> Result<(), Error> {
        let begin = Instant::now();
        loop {
            if self.attend() {
                return Err(if self.stop.began() {
                    Error::Stopped
                } else {
                    Error::Ended
                });
            }
            if let (Some(planner), Some(counting)) = (&mut self.planner, &mut self.counting) {
                counting.attend(planner, self.child.as_mut());
            }
            let left = delay.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            self.pause(left.min(PASS));
        }
    }

    /// Samples until an end has come. Only the sink can fail.
    pub(in crate::sampler) fn run(
        &mut self,
        open: &mut Open,
        sink: &mut dyn Sink,
        bounds: &Bounds,
        notes: &mut dyn FnMut(Note),
    ) -> io::Result<End> {
        sink.begin(open)?;
        let begin = Instant::now();
        let end = loop {
            let left = bounds
                .duration
                .map(|duration| duration.saturating_sub(begin.elapsed()));
            let quiet = open.counting.as_ref().and_then(Counting::quiet);
            let timeouts = [left, quiet].into_iter().flatten();
            let timeout = timeouts.fold(PASS, Duration::min);
            let heard = open.counting.as_ref().map(Counting::heard);
            let others = [Some(self.signals.as_fd()), heard].into_iter().flatten();
            // A wait that fails returns at once, and must not make this loop spin.
            let waits = Instant::now();
            if open.session.wait(others, timeout).is_err() {
                std::thread::sleep(timeout);
            }
            let late = waits.elapsed().saturating_sub(timeout);
            if late > LATE {
                self.stood += late;
            }
            if let (Some(planner), Some(counting)) = (&mut self.planner, &mut open.counting) {
                counting.attend(planner, self.child.as_mut());
            }
            // The pass comes after the check for the end, so that it reads all that came before it.
            let over = self.attend();
            if let (Some(planner), Some(counting), false) =
                (&mut self.planner, &mut open.counting, over)
            {
                // What has come before the signal for it was taken note of would have to wait.
                counting.attend(planner, self.child.as_mut());
            }
            sink.pass(open)?;
            if over {
                break match self.child {
                    Some(_) if self.stop.over().is_none() => End::Command,
                    _ => End::Signal,
                };
            }
            self.say_what_is_awaited(notes);
            if open.ends_with_target && open.session.has_ended() {
                break End::Subject;
            }
            if left.is_some_and(|left| left.is_zero()) {
                break End::Duration;
            }
            if let Some(end) = sink.wants_end() {
                break end;
            }
        };
        open.session.stop();
        open.ended = kernel::now();
        if let Some(counting) = &mut open.counting {
            counting.end();
        }
        // The buffers still hold what was sampled since the last pass.
        sink.pass(open)?;
        if let (Some(counting), Some(planner)) = (&mut open.counting, &mut self.planner) {
            counting.conclude(planner);
        }
        sink.finish(open)?;
        Ok(end)
    }

    pub(in crate::sampler) fn stood(&self) -> Duration {
        self.stood
    }

    /// Asks the command and what it has started to end. A signal to end is one to wait no more.
    pub(in crate::sampler) fn ask(&mut self) {
        self.signals.hear_ends();
        if let Some(child) = &mut self.child {
            self.stop.ask(child);
        }
    }

    fn say_what_is_awaited(&mut self, notes: &mut dyn FnMut(Note)) {
        if let Some(child) = &mut self.child
            && child.ended().is_none()
            && self.stop.is_to_be_said()
        {
            notes(Note::Awaits(child.pid()));
        }
    }

    /// Does what signals demand. Tells whether the command has ended or is not waited for any more;
    /// where there is none, whether there was a signal to end.
    fn attend(&mut self) -> bool {
        self.stop.attend(self.child.as_mut(), &self.signals)
    }

    pub(in crate::sampler) fn goes_on(&mut self) -> bool {
        self.started
            && self
                .child
                .as_mut()
                .is_some_and(|child| child.ended().is_none())
    }

    /// Waits for a command to end that runs when it is not recorded any more. Calls are counted no
    /// more.
    pub(in crate::sampler) fn run_on(
        &mut self,
        counting: Option<Counting>,
        notes: &mut dyn FnMut(Note),
    ) -> Option<Ending> {
        let mut counting = counting.or_else(|| self.counting.take());
        if let Some(counting) = &mut counting {
            counting.end();
        }
        while self.goes_on() && self.stop.over().is_none() {
            self.pause(PASS);
            self.attend();
            self.say_what_is_awaited(notes);
            if let Some(counting) = &mut counting {
                counting.settle(self.child.as_mut());
            }
        }
        // What was seen since then may be how the command ended.
        if let Some(counting) = &mut counting {
            counting.settle(self.child.as_mut());
        }
        self.child.as_mut().and_then(Child::ended)
    }

    fn pause(&self, most: Duration) {
        let mut nothing = Vec::new();
        let heard = self.counting.as_ref().map(Counting::heard);
        let fds: Vec<_> = [Some(self.signals.as_fd()), heard]
            .into_iter()
            .flatten()
            .map(|fd| fd.as_raw_fd())
            .collect();
        if kernel::poll(&fds, most, &mut nothing).is_err() {
            std::thread::sleep(most);
        }
    }
}

fn only_process(target: &Target) -> Result<i32, Error> {
    match target {
        Target::Processes(pids) if pids.len() == 1 => Ok(pids[0]),
        _ => Err(Error::Counting {
            action: "count calls",
            reason: "that is possible in one command or one process".into(),
        }),
    }
}
