//! Events open on a process, and the ring buffers into which they write.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use perf_event_open_sys::bindings::{self as sys, perf_event_attr};

use super::attr::{Allowed, Common, Rate, attr};
use super::error::{Error, Note, reason};
use super::event::EventSpec;
use super::kernel::{self, MoreFiles};
use super::ring::Ring;
use super::{host, limits};
use crate::perfdata::writer::EventDescription;

/// How much of a ring buffer is filled before the recorder is woken: one part of so many.
const WAKE_AT: usize = 4;

/// What to sample, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The events. With none, cycles, or the processor's clock where cycles cannot be counted.
    pub events: Vec<EventSpec>,
    /// How often. With `None`, at [`Options::FREQUENCY`], but events that are rare by nature
    /// (tracepoints, context switches) at each occurrence.
    pub rate: Option<Rate>,
    /// Whether each sample has its call chain, by frame pointers.
    pub call_chains: bool,
    /// Pages of each ring buffer, a power of two; by default [`Options::RING_BYTES`], and less
    /// where so much memory may not be locked.
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
            call_chains: true,
            ring_pages: None,
        }
    }
}

/// Sampling of one process and all that it starts.
///
/// The kernel begins to sample when the process calls `exec`. The records that it makes are
/// handed out as bytes by [`Session::drain`]; whoever takes them writes them to a file
/// ([`Writer`](crate::perfdata::Writer)) or reads them on the spot.
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
        let wanted_pages = options
            .ring_pages
            .unwrap_or(Options::RING_BYTES / page)
            .max(1)
            .next_power_of_two();
        let mut plan = Plan {
            events: options.events.clone(),
            precise: Vec::new(),
            cycles_by_default: options.events.is_empty(),
            processors: host::online_processors(),
            pid,
            common: Common {
                rate,
                rate_chosen: options.rate.is_some(),
                call_chains: options.call_chains,
                allowed: Allowed::ALL,
                watermark: watermark(wanted_pages * page),
            },
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
                    if pages < wanted_pages {
                        notes(Note::SmallerRings {
                            kib: pages * page / 1024,
                            wanted: wanted_pages * page / 1024,
                        });
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

type Opened = Vec<(perf_event_attr, Vec<OwnedFd>)>;

/// What is going to be opened; changed by each refusal until the kernel accepts it.
struct Plan {
    events: Vec<EventSpec>,
    precise: Vec<u64>,
    cycles_by_default: bool,
    processors: Vec<u32>,
    pid: i32,
    common: Common,
    files: Option<MoreFiles>,
}

impl Plan {
    fn open_all(&mut self, notes: &mut dyn FnMut(Note)) -> Result<Opened, Error> {
        'again: loop {
            let mut opened: Opened = Vec::new();
            for index in 0..self.events.len() {
                let attr = attr(
                    &self.events[index],
                    self.precise[index],
                    &self.common,
                    index == 0,
                );
                match self.open_everywhere(&attr) {
                    Ok(fds) => opened.push((attr, fds)),
                    Err(error) => {
                        drop(opened);
                        self.give_in(index, &error, notes)?;
                        continue 'again;
                    }
                }
            }
            return Ok(opened);
        }
    }

    fn open_everywhere(&self, attr: &perf_event_attr) -> io::Result<Vec<OwnedFd>> {
        self.processors
            .iter()
            .map(|&processor| kernel::open_event(attr, self.pid, processor as i32))
            .collect()
    }

    /// Takes back what may be the reason of a refusal.
    ///
    /// | refusal | taken back, in this order |
    /// |---|---|
    /// | EACCES, EPERM | the kernel |
    /// | EINVAL, E2BIG, EOPNOTSUPP, ENOENT, ENODEV | precision of the address |
    /// | EINVAL, E2BIG | what newer kernels added to attrs |
    /// | EOPNOTSUPP, ENOENT, ENODEV | cycles, if nobody asked for them by name |
    /// | EMFILE | the soft limit of open files |
    fn give_in(
        &mut self,
        index: usize,
        error: &io::Error,
        notes: &mut dyn FnMut(Note),
    ) -> Result<(), Error> {
        let event = &self.events[index];
        let allowed = self.common.allowed;
        let errno = error.raw_os_error().unwrap_or(0);
        let too_new = matches!(errno, libc::EINVAL | libc::E2BIG);
        let absent = matches!(errno, libc::EOPNOTSUPP | libc::ENOENT | libc::ENODEV);
        match errno {
            libc::EACCES | libc::EPERM if allowed.kernel && event.user => {
                self.common.allowed.kernel = false;
            }
            libc::EACCES | libc::EPERM if !event.user || self.needs_privilege(index) => {
                return Err(Error::KernelForbidden {
                    event: event.name.clone(),
                    paranoid: limits::paranoid(),
                });
            }
            libc::EACCES | libc::EPERM => {
                return Err(Error::Forbidden {
                    paranoid: limits::paranoid(),
                });
            }
            libc::ENOSYS => return Err(Error::NoPerfEvents),
            _ if (too_new || absent) && self.precise[index] > 0 => self.precise[index] -= 1,
            _ if too_new && allowed.older().is_some() => {
                self.common.allowed = allowed.older().unwrap_or(allowed);
            }
            _ if absent && self.cycles_by_default => {
                self.cycles_by_default = false;
                self.events[index] = EventSpec::cpu_clock();
                notes(Note::NoCycles);
            }
            _ if absent => {
                return Err(Error::Unsupported {
                    event: event.name.clone(),
                    hardware: event.is_hardware(),
                });
            }
            libc::EMFILE | libc::ENFILE => {
                if self.files.is_some() {
                    return Err(self.too_many_files());
                }
                self.files = Some(MoreFiles::allow().ok_or_else(|| self.too_many_files())?);
            }
            _ => {
                return Err(Error::Event {
                    event: event.name.clone(),
                    reason: reason(error),
                });
            }
        }
        Ok(())
    }

    /// Whether the event can only be had with privilege although it may be of user space: the
    /// kernel's tracepoints.
    fn needs_privilege(&self, index: usize) -> bool {
        self.events[index].kind == sys::PERF_TYPE_TRACEPOINT
    }

    fn too_many_files(&self) -> Error {
        Error::TooManyFiles {
            needed: self.events.len() * self.processors.len(),
        }
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

fn watermark(ring_bytes: usize) -> u32 {
    u32::try_from(ring_bytes / WAKE_AT).unwrap_or(u32::MAX / 2)
}

fn is_memory_limit(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EPERM | libc::ENOMEM | libc::EAGAIN)
    )
}
