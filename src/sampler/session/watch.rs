//! Sampling for a watcher, without a file.

use std::convert::Infallible;
use std::io;
use std::ops::ControlFlow;

use super::bounds::{Bounds, End, Subject};
use super::counters::Counters;
use super::options::Options;
use super::participants::{Open, Participants, Sink};
use crate::perfdata::writer::{lost_samples_record, time_record};
use crate::sampler::error::{Error, Note};
use crate::sampler::kernel::{self, SoonerTurns};
use crate::sampler::output::history::History;
use crate::sampler::output::log::description;
use crate::sampler::signals::Signals;
use crate::sampler::targets::child::Ending;

/// What is known when sampling begins.
#[derive(Debug)]
pub struct Start {
    /// A perf.data file without samples: the events, the machine, the recorder.
    pub head: Vec<u8>,
    /// Records of what was there before: the kernel's images, the threads and mappings of what
    /// already runs.
    pub records: Vec<u8>,
    /// Where samples may be kept, to be written to a file later.
    pub history: History,
}

/// Gets samples while they are taken. The thread that empties the kernel's buffers calls it, and
/// they overflow if it is slow.
pub trait Watcher {
    /// Sampling has begun.
    fn begin(&mut self, start: Start);
    /// Whole records have come.
    fn records(&mut self, records: &[u8]);
    /// All buffers of the kernel were looked at once. `Break` ends the sampling, and with it the
    /// command.
    fn end_round(&mut self) -> ControlFlow<()>;
}

/// How watching ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// How the command ended, if there was one.
    pub ending: Option<Ending>,
    /// Why it ended.
    pub end: End,
}

/// Samples until the command ends, all that is sampled has ended, the bounds are reached, or the
/// watcher asks to stop. A command that still runs then is asked to end, as is what it has started,
/// by SIGTERM, and waited for. Signals to end this process are for its other threads: the one that
/// calls this holds them back. `notes` is called before the watcher is and after it.
///
/// # Errors
///
/// If the command cannot be started, the kernel does not let this user record, the target is not
/// there or ends before the sampling begins.
pub fn watch(
    options: &Options,
    subject: Subject<'_>,
    bounds: &Bounds,
    watcher: &mut dyn Watcher,
    notes: &mut dyn FnMut(Note),
) -> Result<Watched, Error> {
    let mut participants = Participants::gather(subject, None, Signals::hold_for_others())?;
    let mut open = match participants.open(options, subject, bounds, notes) {
        Ok(open) => open,
        Err(error) => {
            participants.run_on(None, notes);
            return Err(error);
        }
    };
    let mut audience = Audience {
        watcher,
        counters: Counters::default(),
        is_over: false,
    };
    let _turns = SoonerTurns::ask(true);
    let run = participants.run(&mut open, &mut audience, bounds, notes);
    let end = run.map_err(Error::system("describe this machine"))?;
    // It was run to be watched.
    participants.ask();
    Ok(Watched {
        ending: participants.run_on(None, notes),
        end,
    })
}

struct Audience<'a> {
    watcher: &'a mut dyn Watcher,
    counters: Counters,
    is_over: bool,
}

impl Sink for Audience<'_> {
    fn begin(&mut self, open: &Open) -> io::Result<()> {
        self.counters = Counters::new(open.session.events());
        let (head, records) = description(open)?;
        self.watcher.begin(Start {
            head,
            records,
            history: History::new(&open.session, &open.images, &open.existing),
        });
        Ok(())
    }

    fn pass(&mut self, open: &mut Open) -> io::Result<()> {
        let begin = kernel::now();
        let (watcher, counters) = (&mut *self.watcher, &mut self.counters);
        let counts = if counters.are_due() {
            counters.read(open, begin)
        } else {
            Vec::new()
        };
        let session = &mut open.session;
        let drained = session.drain(&mut |records| {
            counters.sampled(records);
            watcher.records(records);
            Ok::<(), Infallible>(())
        });
        let Ok(_) = drained;
        if session.has_switches() {
            watcher.records(&time_record(begin));
        }
        watcher.records(&counts);
        self.is_over |= self.watcher.end_round().is_break();
        Ok(())
    }

    fn finish(&mut self, open: &Open) -> io::Result<()> {
        self.watcher.records(&time_record(open.ended));
        let counts = self.counters.read(open, open.ended);
        self.watcher.records(&counts);
        // The kernel has not reported the last losses.
        let lost = open.session.lost().unwrap_or(0);
        if lost > 0 {
            self.watcher.records(&lost_samples_record(lost));
        }
        Ok(())
    }

    fn wants_end(&self) -> Option<End> {
        self.is_over.then_some(End::Watcher)
    }
}
