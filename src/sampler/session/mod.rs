//! A session: events open on a target, and the ring buffers into which they write; and a recording
//! around it, from its beginning to its end.
//!
//! ```text
//!   options, bounds  what was asked for           request       what the kernel lets us open
//!   recording        into a file                  watch         for someone who takes the records
//!   participants     the command, the session, signals: what both of them wait for
//!   opening          asks for it, and for less with each refusal
//!   off_cpu          switches, and the events     stop, cost    its end, and what it took
//!   budget           how much is kept of copies whose size adapts
//!   jobs             what compilers and linkers were started for
//! ```
//!
//! Only this folder decides when something happens; it calls events, targets, rings and output.

pub(super) mod bounds;
mod budget;
mod chosen_rate;
pub(super) mod cost;
mod counters;
mod jobs;
pub(super) mod off_cpu;
mod opening;
pub(super) mod options;
pub(super) mod participants;
pub(super) mod recording;
mod request;
mod stop;
pub(super) mod watch;

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use budget::Budget;
use jobs::Jobs;

use super::counts::{self, Count};
use super::events::attr::Allowed;
use super::events::event::EventSpec;
use super::events::stacks::Stacks;
use super::kernel::{self, MoreFiles};
use super::rings::descriptors::ThreadEvents;
use super::rings::duplicate_samples::{self, DuplicateSamples};
use super::rings::ring::Ring;
use super::user_share::UserShare;
use crate::base::Counting;
use crate::perfdata::raw::trimmed::Trimmer;
use crate::perfdata::raw::{self, RawRecord};
use crate::perfdata::writer::WriterEvent;
use crate::perfdata::{Job, Mover};

/// Sampling of a [`Target`](super::Target).
///
/// The records that the kernel makes are handed out as bytes by [`Session::drain`]. The caller
/// writes them to a file ([`Writer`](crate::perfdata::writer::Writer)) or reads them at once.
#[derive(Debug)]
pub struct Session {
    specs: Vec<EventSpec>,
    events: Vec<WriterEvent>,
    rows: Vec<ThreadEvents>,
    rings: Vec<ProcessorRing>,
    duplicates: DuplicateSamples,
    /// Records without samples of the time before [`Session::skip_samples`].
    early: Vec<u8>,
    allowed: Allowed,
    stacks: Stacks,
    unwinds: bool,
    /// Moves copies to where only who knows of them looks, if there are any beside chains.
    mover: Option<Mover>,
    /// Takes the room out that copies do not fill, if there are any.
    trimmer: Option<Trimmer>,
    budget: Option<Budget>,
    opened: Instant,
    includes_kernel: bool,
    has_switches: bool,
    tracepoints: Vec<(String, String)>,
    groups: Vec<(usize, usize)>,
    jobs: Option<Jobs>,
    before: Vec<Option<Count>>,
    _files: Option<MoreFiles>,
}

#[derive(Debug)]
struct ProcessorRing {
    ring: Ring,
    // The row whose first event is polled: the first row whose thread, or a thread that inherited
    // from it, still exists. For the others the kernel reports POLLHUP at once and forever, so
    // polling them would never block again.
    polled: usize,
}

impl Session {
    /// The events as a file describes them.
    pub fn events(&self) -> &[WriterEvent] {
        &self.events
    }

    /// Whether samples in the kernel are recorded.
    pub fn includes_kernel(&self) -> bool {
        self.includes_kernel
    }

    pub(super) fn has_switches(&self) -> bool {
        self.has_switches
    }

    pub(super) fn tracepoints(&self) -> &[(String, String)] {
        &self.tracepoints
    }

    pub(super) fn includes_data(&self) -> bool {
        matches!(self.stacks, Stacks::Copies(_)) && !self.unwinds
    }

    /// Waits until a ring buffer is a quarter full, one of `others` can be read, or `timeout` is
    /// over.
    pub fn wait<'o>(
        &mut self,
        others: impl IntoIterator<Item = BorrowedFd<'o>>,
        timeout: Duration,
    ) -> io::Result<()> {
        let begin = Instant::now();
        let others: Vec<RawFd> = others.into_iter().map(|fd| fd.as_raw_fd()).collect();
        loop {
            let mut fds: Vec<RawFd> = to_poll(&self.rows, &self.rings).collect();
            fds.extend(&others);
            let awaited = fds.len();
            fds.extend(self.jobs.iter().flat_map(Jobs::to_poll));
            let mut revents = Vec::with_capacity(fds.len());
            let left = timeout.saturating_sub(begin.elapsed());
            let soon = self.jobs.as_ref().and_then(Jobs::soon);
            kernel::poll(&fds, soon.map_or(left, |soon| soon.min(left)), &mut revents)?;
            let (revents, of_jobs) = revents.split_at(awaited.min(revents.len()));
            note_ended(&mut self.rings, revents);
            let jobs = self.jobs.as_mut();
            let has_started = jobs.is_some_and(|jobs| jobs.look(of_jobs));
            let is_for_jobs = has_started || soon.is_some();
            // An exec alone is no reason to go over all buffers.
            if !is_for_jobs || left.is_zero() || revents.iter().any(|&revents| revents != 0) {
                return Ok(());
            }
        }
    }

    pub(super) fn jobs(&self) -> Vec<Job> {
        self.jobs.as_ref().map(Jobs::found).unwrap_or_default()
    }

    /// Whether all threads that are sampled have ended, as far as [`Session::wait`] has seen.
    pub fn has_ended(&self) -> bool {
        self.rings.iter().all(|ring| ring.polled >= self.rows.len())
    }

    /// Hands out all records that have come since the last time, as slices of whole records in
    /// the order of each processor. Gives the number of bytes.
    ///
    /// # Errors
    ///
    /// The first error of `consume`.
    pub fn drain<E>(&mut self, consume: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<u64, E> {
        let mut bytes = 0;
        let consume = &mut |records: &[u8]| {
            bytes += records.len() as u64;
            consume(records)
        };
        if !self.early.is_empty() {
            consume(&self.early)?;
            self.early = Vec::new();
        }
        let duplicates = &mut self.duplicates;
        let (mut moved, mut trimmed);
        let consume: &mut dyn FnMut(&[u8]) -> Result<(), E> =
            match (&mut self.mover, &mut self.trimmer) {
                (Some(mover), _) => {
                    moved = |records: &[u8]| mover.pass_on(records, consume);
                    &mut moved
                }
                (None, Some(trimmer)) => {
                    trimmed = |records: &[u8]| trimmer.pass_on(records, consume);
                    &mut trimmed
                }
                (None, None) => consume,
            };
        for ring in &mut self.rings {
            if duplicates.is_empty() {
                ring.ring.drain(consume)?;
            } else {
                ring.ring.drain(&mut |records: &[u8]| {
                    raw::filter(records, &mut |record| duplicates.admits(record), consume)
                })?;
            }
        }
        if let (Some(budget), Some(trimmer)) = (&mut self.budget, &mut self.trimmer) {
            trimmer.keep(budget.spend(bytes, self.opened.elapsed()).bytes() as usize);
        }
        Ok(bytes)
    }

    /// From now on copies are handed out without what programs were started with.
    pub(in crate::sampler) fn clear_arguments(&mut self) {
        self.trimmer.iter_mut().for_each(Trimmer::clear_arguments);
    }

    /// Appends all records that have come since the last time to `out`, as [`Session::drain`] hands
    /// them out.
    pub(in crate::sampler) fn drain_into(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.early);
        let (duplicates, trimmer) = (&mut self.duplicates, &mut self.trimmer);
        let take = &mut |records: &[u8]| {
            match trimmer {
                Some(trimmer) => trimmer.append(records, out),
                None => out.extend_from_slice(records),
            }
            Ok::<(), Infallible>(())
        };
        for ring in &mut self.rings {
            let passed = ring.ring.drain(&mut |records: &[u8]| {
                raw::filter(records, &mut |record| duplicates.admits(record), take)
            });
            let Ok(_) = passed;
        }
    }

    /// The number of copies of which less was kept than there was, to keep within the budget.
    pub(super) fn shortened(&self) -> u64 {
        self.trimmer.as_ref().map_or(0, Trimmer::shortened)
    }

    /// The most bytes that [`Session::drain`] hands out the next time.
    pub(super) fn most_drained(&self) -> u64 {
        let rings = self.rings.iter().map(|ring| ring.ring.size());
        self.early.len() as u64 + rings.sum::<u64>()
    }

    // Leaves out the samples and switches so far; everything else is kept. The events of a running
    // target are opened one after the other, and the first would have samples for longer than the
    // last.
    pub(super) fn skip_samples(&mut self) {
        let (early, duplicates) = (&mut self.early, &mut self.duplicates);
        let mut admits = |record: RawRecord<'_>| {
            !duplicate_samples::is_of_time(record) && duplicates.admits(record)
        };
        for ring in &mut self.rings {
            let kept = ring.ring.drain(&mut |records: &[u8]| {
                raw::filter(records, &mut admits, &mut |records| {
                    early.extend_from_slice(records);
                    Ok::<(), Infallible>(())
                })
            });
            let Ok(_) = kept;
        }
        self.before = counts::read(&self.specs, &self.rows);
    }

    /// Returns what each event has counted while its samples were taken; `None` if it is read with
    /// a group, or cannot be read.
    pub(super) fn counts(&self, user: &UserShare) -> Vec<Option<Count>> {
        let mut counts = counts::since(counts::read(&self.specs, &self.rows), &self.before);
        for (count, spec) in counts.iter_mut().zip(&self.specs) {
            // A clock counts all time, whatever part of it is sampled.
            if Counting::of(spec.kind, spec.config[0], false) == Counting::Clock {
                let kernel = counts_kernel(spec) && self.allowed.kernel;
                *count = match (spec.modifiers.user(), kernel) {
                    (true, true) => *count,
                    (true, false) => user.read().zip(*count).map(|(part, it)| it.part(part)),
                    (false, _) => None,
                };
            }
        }
        counts
    }

    pub(super) fn event(&self, index: usize) -> Option<(&EventSpec, &WriterEvent)> {
        self.specs.get(index).zip(self.events.get(index))
    }

    /// Lets the leaders of groups count, which have waited for their members.
    fn start_groups(&self) {
        let rows = self.rows.iter();
        let events = rows.flat_map(|row| self.specs.iter().zip(&row.events));
        for fd in events
            .filter(|(event, _)| event.leads)
            .flat_map(|(_, fds)| fds)
        {
            // An event whose processes have all ended cannot be started any more.
            let _ = kernel::enable(fd.as_fd());
        }
    }

    /// Stops sampling, also in processes that are still running.
    pub fn stop(&self) {
        for fd in self.descriptors() {
            // An event whose processes have all ended is stopped already.
            let _ = kernel::disable(fd.as_fd());
        }
    }

    /// How many records the kernel could not write to the ring buffers, by its own count; `None`
    /// where it does not count (before Linux 6.0).
    pub fn lost(&self) -> Option<u64> {
        if !self.allowed.lost {
            return None;
        }
        let rows = self.rows.iter();
        let counts = rows
            .flat_map(|row| self.specs.iter().zip(&row.events))
            .flat_map(|(event, fds)| fds.iter().map(move |fd| (event, fd)));
        Some(counts.map(|(event, fd)| self.lost_by(event, fd)).sum())
    }

    /// What an event counts as lost; of a group that is read as one, all that its leader tells.
    ///
    /// ```c
    /// struct { u64 value; u64 id; u64 lost; }
    /// struct { u64 nr; struct { u64 value; u64 id; u64 lost; } values[nr]; }
    /// ```
    fn lost_by(&self, event: &EventSpec, fd: &OwnedFd) -> u64 {
        if event.reads && event.member {
            return 0;
        }
        let words = kernel::read_event(fd.as_fd(), 1 + 3 * self.specs.len()).unwrap_or_default();
        let values = words.get(usize::from(event.reads)..).unwrap_or_default();
        values.chunks_exact(3).map(|value| value[2]).sum()
    }

    /// How many ring buffers there are, the bytes of each, and the most that were waiting in one.
    pub(super) fn rings(&self) -> (usize, u64, u64) {
        let rings = self.rings.iter().map(|ring| &ring.ring);
        let fullest = rings.clone().map(Ring::fullest).max();
        let size = rings.map(Ring::size).next();
        (self.rings.len(), size.unwrap_or(0), fullest.unwrap_or(0))
    }

    pub(super) fn groups(&self) -> &[(usize, usize)] {
        &self.groups
    }

    fn descriptors(&self) -> impl Iterator<Item = &OwnedFd> {
        self.rows.iter().flat_map(|row| row.events.iter().flatten())
    }
}

fn to_poll(rows: &[ThreadEvents], rings: &[ProcessorRing]) -> impl Iterator<Item = RawFd> {
    let rings = (0..).zip(rings);
    rings.map(|(processor, ring)| polled(rows, ring, processor))
}

/// Goes on to the next row where what was polled has ended.
fn note_ended(rings: &mut [ProcessorRing], revents: &[i16]) {
    for (ring, revents) in rings.iter_mut().zip(revents) {
        if revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0 {
            ring.polled += 1;
        }
    }
}

/// The descriptor to poll for a ring buffer; -1, which is passed over, when all have ended.
fn polled(rows: &[ThreadEvents], ring: &ProcessorRing, processor: usize) -> RawFd {
    let fds = rows.get(ring.polled).and_then(|row| row.events.first());
    fds.and_then(|fds| fds.get(processor))
        .map_or(-1, AsRawFd::as_raw_fd)
}

fn counts_kernel(event: &EventSpec) -> bool {
    event.modifiers.kernel()
}
