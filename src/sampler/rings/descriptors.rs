//! The descriptors of events, opened for one thread after the other.
//!
//! ```text
//!              processor 0        processor 1
//!   thread 70  event 0, event 1   event 0, event 1    the first row has the ring buffers mapped
//!   thread 71  event 0, event 1   event 0, event 1    later ones write into those
//! ```
//!
//! A thread that is made while this goes on inherits the events of its maker, if the maker had
//! them already; nobody can tell. So threads are listed and opened again until there is no new
//! one, and what comes of a thread twice is taken out (`duplicate_samples`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use perf_event_open_sys::bindings::perf_event_attr;
use rustc_hash::FxHashSet;

use super::ring::Ring;
use crate::sampler::kernel::{self, Who};
use crate::sampler::targets::target::Target;

// How often threads are listed at most. Where threads come and go all the time there are always new
// ones, but their makers have been opened long ago.
const ROUNDS: usize = 8;

#[derive(Clone, Copy, Debug)]
pub(in crate::sampler) struct Wanted {
    pub(in crate::sampler) attr: perf_event_attr,
    pub(in crate::sampler) leader: Option<usize>,
}

/// The events of one thread; of everybody where whole processors are sampled.
#[derive(Debug)]
pub(in crate::sampler) struct ThreadEvents {
    pub(in crate::sampler) tid: i32,
    /// Whether it was found only when other threads had been opened already.
    pub(in crate::sampler) late: bool,
    /// For each event its descriptors, one a processor.
    pub(in crate::sampler) events: Vec<Vec<OwnedFd>>,
}

#[derive(Debug)]
pub(in crate::sampler) enum Refusal {
    /// The event of this index was refused for a thread.
    Event(usize, i32, io::Error),
    Ring(io::Error),
    Ended,
}

pub(in crate::sampler) type Opened = (Vec<ThreadEvents>, Vec<Ring>);

pub(in crate::sampler) fn open(
    target: &Target,
    cgroup: Option<BorrowedFd<'_>>,
    events: &[Wanted],
    processors: &[u32],
    pages: usize,
) -> Result<Opened, Refusal> {
    let mut opening = Opening {
        wanted: events,
        processors,
        pages,
        rows: Vec::new(),
        rings: Vec::new(),
    };
    if !target.is_of_tasks() {
        opening.row(cgroup.map_or(Who::Everyone, Who::Cgroup), 0, false)?;
        return Ok((opening.rows, opening.rings));
    }
    let mut known = FxHashSet::default();
    let rounds = if target.inherits() { ROUNDS } else { 1 };
    for _ in 0..rounds {
        let mut tasks = target.tasks();
        tasks.retain(|&tid| known.insert(tid));
        if tasks.is_empty() {
            break;
        }
        let late = !opening.rows.is_empty();
        for tid in tasks {
            match opening.row(Who::Task(tid), tid, late) {
                // It has ended meanwhile.
                Err(Refusal::Event(_, _, error)) if error.raw_os_error() == Some(libc::ESRCH) => {}
                other => other?,
            }
        }
    }
    if opening.rows.is_empty() {
        Err(Refusal::Ended)
    } else {
        Ok((opening.rows, opening.rings))
    }
}

struct Opening<'a> {
    wanted: &'a [Wanted],
    processors: &'a [u32],
    pages: usize,
    rows: Vec<ThreadEvents>,
    rings: Vec<Ring>,
}

impl Opening<'_> {
    /// Opens all events for one thread. Each writes to the buffer of its processor as soon as it
    /// is open.
    fn row(&mut self, who: Who<'_>, tid: i32, late: bool) -> Result<(), Refusal> {
        let mut events: Vec<Vec<OwnedFd>> = Vec::new();
        for (index, wanted) in self.wanted.iter().enumerate() {
            let leaders = wanted.leader.and_then(|leader| events.get(leader));
            let mut fds = Vec::with_capacity(self.processors.len());
            for (at, &processor) in self.processors.iter().enumerate() {
                let leader = leaders
                    .and_then(|fds: &Vec<OwnedFd>| fds.get(at))
                    .map(AsFd::as_fd);
                let fd = kernel::open_event(&wanted.attr, who, processor as i32, leader)
                    .map_err(|error| Refusal::Event(index, tid, error))?;
                // The buffer of this processor belongs to its first event.
                let first = self.rows.first().map_or(&events, |row| &row.events).first();
                match first.and_then(|fds| fds.get(at)) {
                    Some(first) => {
                        kernel::redirect(fd.as_fd(), first.as_fd()).map_err(Refusal::Ring)?;
                    }
                    None => {
                        let ring = Ring::map(fd.as_fd(), self.pages).map_err(Refusal::Ring)?;
                        self.rings.push(ring);
                    }
                }
                fds.push(fd);
            }
            events.push(fds);
        }
        self.rows.push(ThreadEvents { tid, late, events });
        Ok(())
    }
}
