//! Events open on a process, and the ring buffers into which they write.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use super::attr::{Allowed, Common, Rate};
use super::error::{Error, Note, reason};
use super::event::EventSpec;
use super::kernel::{self, MoreFiles};
use super::plan::{Opened, Plan};
use super::ring::Ring;
use super::stacks::Stacks;
use super::{host, limits};
use crate::perfdata::writer::EventDescription;

/// How much of a ring buffer is filled before the recorder is woken: one part of so many.
const WAKE_AT: usize = 4;
/// The most that a ring buffer takes unless it is asked for.
const RING_BYTES_MAX: usize = 16 << 20;
/// The most that all ring buffers together take unless it is asked for.
const RINGS_BYTES: usize = 256 << 20;

/// What to sample, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The events. With none, cycles, or the processor's clock where cycles cannot be counted.
    pub events: Vec<EventSpec>,
    /// How often. With `None`, at [`Options::FREQUENCY`], but events that are rare by nature
    /// (tracepoints, context switches) at each occurrence.
    pub rate: Option<Rate>,
    /// How each sample has its stack.
    pub stacks: Stacks,
    /// Pages of each ring buffer, a power of two; by default [`Options::RING_BYTES`], for copies
    /// of stacks as much as comes in a quarter of a second, and less where so much memory may
    /// not be locked.
    pub ring_pages: Option<usize>,
}

impl Options {
    /// Samples a second when nothing else is said: a prime, so as not to run in step with
    /// anything in the program.
    pub const FREQUENCY: u64 = 997;
    /// The size of the ring buffer of each processor when nothing else is said.
    pub const RING_BYTES: usize = 512 * 1024;
}

impl Default for Options {
    fn default() -> Options {
        Options {
            events: Vec::new(),
            rate: None,
            stacks: Stacks::FramePointers,
            ring_pages: None,
        }
    }
}

/// Sampling of one process and all that it starts.
///
/// The kernel begins to sample when the process calls `exec`. The records that it makes are
/// handed out as bytes by [`Session::drain`]; whoever takes them writes them to a file
/// ([`Writer`](crate::perfdata::writer::Writer)) or reads them on the spot.
#[derive(Debug)]
pub struct Session {
    events: Vec<EventDescription>,
    /// For each event its descriptors, one a processor.
    open: Vec<Vec<OwnedFd>>,
    rings: Vec<ProcessorRing>,
    allowed: Allowed,
    includes_kernel: bool,
    tracepoints: Vec<(String, String)>,
    _files: Option<MoreFiles>,
}

#[derive(Debug)]
struct ProcessorRing {
    ring: Ring,
    /// The descriptor to poll; -1 when all processes that it samples have ended. The kernel then
    /// reports POLLHUP at once and forever, and who goes on polling is never at rest again.
    polled: RawFd,
}

impl Session {
    /// Opens the events on process `pid`, one for each processor: only so can they be inherited
    /// and still write to a buffer.
    ///
    /// # Errors
    ///
    /// If the kernel does not let this user record, or does not have an event.
    pub fn open(
        options: &Options,
        pid: i32,
        notes: &mut dyn FnMut(Note),
    ) -> Result<Session, Error> {
        let rate = limits::rate(options.rate, notes)?;
        let page = kernel::page_size();
        let processors = host::online_processors();
        let usual = ring_bytes(options.stacks, rate, processors.len()) / page;
        let wanted_pages = options.ring_pages.unwrap_or(usual).max(1);
        let wanted_pages = wanted_pages.next_power_of_two();
        let mut plan = Plan {
            events: options.events.clone(),
            precise: Vec::new(),
            cycles_by_default: options.events.is_empty(),
            processors,
            pid,
            common: Common {
                rate,
                rate_chosen: options.rate.is_some(),
                stacks: options.stacks,
                max_stack: limits::max_stack().unwrap_or(0),
                allowed: Allowed::ALL,
                watermark: watermark(wanted_pages * page),
            },
            copies_refused: false,
            files: None,
        };
        if plan.cycles_by_default {
            plan.events.push(EventSpec::cycles());
        }
        plan.precise = plan
            .events
            .iter()
            .map(|event| {
                event
                    .precise
                    .unwrap_or(3 * u64::from(plan.cycles_by_default))
            })
            .collect();

        let mut pages = wanted_pages;
        loop {
            let opened = plan.open_all(notes)?;
            match Session::with_rings(&plan, opened, pages) {
                Ok(session) => {
                    // More than the least is asked for only to be sure.
                    let enough = match options.ring_pages {
                        Some(_) => wanted_pages,
                        None => wanted_pages.min(Options::RING_BYTES / page),
                    };
                    if pages < enough {
                        notes(Note::SmallerRings {
                            kib: pages * page / 1024,
                            wanted: wanted_pages * page / 1024,
                        });
                    }
                    if plan.copies_refused {
                        notes(Note::NoCopies);
                    }
                    if !plan.common.allowed.kernel && plan.events.iter().any(|event| event.kernel) {
                        notes(Note::UserOnly {
                            paranoid: limits::paranoid(),
                        });
                    }
                    return Ok(session.with_files(plan.files));
                }
                // More than may be locked in memory; the watermark goes with the size.
                Err(error) if pages > 1 && is_memory_limit(&error) => {
                    pages /= 2;
                    plan.common.watermark = watermark(pages * page);
                }
                Err(error) => {
                    return Err(Error::RingBuffer {
                        reason: reason(&error),
                    });
                }
            }
        }
    }

    fn with_rings(plan: &Plan, opened: Opened, pages: usize) -> io::Result<Session> {
        let mut rings = Vec::new();
        for processor in 0..opened[0].1.len() {
            let first = opened[0].1[processor].as_fd();
            rings.push(ProcessorRing {
                ring: Ring::map(first, pages)?,
                polled: first.as_raw_fd(),
            });
            for (_, fds) in &opened[1..] {
                kernel::redirect(fds[processor].as_fd(), first)?;
            }
        }
        let mut events = Vec::new();
        let mut open = Vec::new();
        for (spec, (attr, fds)) in plan.events.iter().zip(opened) {
            let ids = fds.iter().map(|fd| kernel::event_id(fd.as_fd()));
            events.push(EventDescription {
                name: shown_name(spec, plan.common.allowed.kernel),
                attr: kernel::attr_bytes(&attr),
                ids: ids.collect::<io::Result<_>>()?,
            });
            open.push(fds);
        }
        Ok(Session {
            events,
            open,
            rings,
            allowed: plan.common.allowed,
            includes_kernel: plan.common.allowed.kernel
                && plan.events.iter().any(|event| event.kernel),
            tracepoints: plan
                .events
                .iter()
                .filter_map(EventSpec::tracepoint)
                .collect(),
            _files: None,
        })
    }

    fn with_files(mut self, files: Option<MoreFiles>) -> Session {
        self._files = files;
        self
    }

    /// The events as a file describes them.
    pub fn events(&self) -> &[EventDescription] {
        &self.events
    }

    /// Whether samples in the kernel are recorded.
    pub fn includes_kernel(&self) -> bool {
        self.includes_kernel
    }

    /// System and event of those events that are tracepoints.
    pub(super) fn tracepoints(&self) -> &[(String, String)] {
        &self.tracepoints
    }

    /// Waits until a ring buffer is a quarter full, `other` can be read, or `timeout` is over.
    pub fn wait(&mut self, other: BorrowedFd<'_>, timeout: Duration) -> io::Result<()> {
        let mut fds: Vec<RawFd> = self.rings.iter().map(|ring| ring.polled).collect();
        fds.push(other.as_raw_fd());
        let mut revents = Vec::with_capacity(fds.len());
        kernel::poll(&fds, timeout, &mut revents)?;
        for (ring, revents) in self.rings.iter_mut().zip(revents) {
            if revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0 {
                ring.polled = -1;
            }
        }
        Ok(())
    }

    /// Hands out all records that have come since the last time, as slices of whole records in
    /// the order of each processor. Gives the number of bytes.
    ///
    /// # Errors
    ///
    /// The first error of `consume`.
    pub fn drain<E>(&mut self, consume: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<u64, E> {
        let mut bytes = 0;
        for ring in &mut self.rings {
            bytes += ring.ring.drain(consume)?;
        }
        Ok(bytes)
    }

    /// Stops sampling, also in processes that are still running.
    pub fn stop(&self) {
        for fd in self.open.iter().flatten() {
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
        let counts = self.open.iter().flatten().map(|fd| {
            // struct { u64 value; u64 id; u64 lost; }
            kernel::read_event(fd.as_fd()).map_or(0, |[_, _, lost]| lost)
        });
        Some(counts.sum())
    }
}

/// The event's name with the modifier that holds it to user space, when that was not asked for.
fn shown_name(event: &EventSpec, kernel: bool) -> String {
    if event.kernel && event.user && !kernel {
        let joint = if event.precise.is_some() { "" } else { ":" };
        format!("{}{joint}u", event.name)
    } else {
        event.name.clone()
    }
}

/// The size of each ring buffer when nothing is said. A recorder on a busy machine may have to
/// wait for its turn for a tenth of a second and more.
///
/// ```text
///   copies of 8 KiB    99 Hz   0.5 MiB        chains    any rate   0.5 MiB
///                     997 Hz     4 MiB
///                    4999 Hz    16 MiB
/// ```
fn ring_bytes(stacks: Stacks, rate: Rate, processors: usize) -> usize {
    let Stacks::Copies(size) = stacks else {
        return Options::RING_BYTES;
    };
    let hertz = match rate {
        Rate::Frequency(hertz) => hertz,
        // Nobody knows how often that is.
        Rate::Period(_) => Options::FREQUENCY,
    };
    let quarter_second = size.record_bytes().saturating_mul(hertz) / 4;
    let most = (RINGS_BYTES / processors.max(1)).min(RING_BYTES_MAX);
    let wanted = usize::try_from(quarter_second).unwrap_or(usize::MAX);
    wanted
        .clamp(Options::RING_BYTES, most.max(Options::RING_BYTES))
        .next_power_of_two()
}

fn watermark(ring_bytes: usize) -> u32 {
    u32::try_from(ring_bytes / WAKE_AT).unwrap_or(u32::MAX / 2)
}

fn is_memory_limit(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EPERM | libc::ENOMEM | libc::EAGAIN)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_grow_with_what_comes_in_a_second() {
        let copies = Stacks::Copies(Default::default());
        let size = |stacks, hertz, processors| {
            ring_bytes(stacks, Rate::Frequency(hertz), processors) >> 10
        };
        assert_eq!(size(Stacks::FramePointers, 4999, 2), 512);
        assert_eq!(size(copies, 99, 2), 512);
        assert_eq!(size(copies, 997, 2), 4096);
        assert_eq!(size(copies, 4999, 2), 16384);
        assert_eq!(size(copies, u64::MAX, 2), 16384);
        assert_eq!(size(copies, 4999, 128), 2048);
        assert_eq!(size(copies, 4999, 8192), 512);
        let period = ring_bytes(copies, Rate::Period(1), 2);
        assert_eq!(period, 4 << 20);
    }
}
