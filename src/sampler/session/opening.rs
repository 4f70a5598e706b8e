//! Opening a session: asks for everything, and for less with each refusal.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

use super::budget::Budget;
use super::jobs::Jobs;
use super::options::Options;
use super::request::{Request, leaders};
use crate::base::system_reason;
use crate::perfdata::Mover;
use crate::perfdata::raw::Layouts;
use crate::perfdata::raw::trimmed::Trimmer;
use crate::perfdata::writer::WriterEvent;
use crate::sampler::error::{Error, Note};
use crate::sampler::events::attr::{Allowed, Common, attr_in_file};
use crate::sampler::events::event::EventSpec;
use crate::sampler::events::modifiers::Modifiers;
use crate::sampler::events::stacks::Stacks;
use crate::sampler::kernel;
use crate::sampler::rights::Rights;
use crate::sampler::rings::descriptors::{self, Refusal, ThreadEvents, Wanted};
use crate::sampler::rings::duplicate_samples::DuplicateSamples;
use crate::sampler::rings::ring::Ring;
use crate::sampler::rings::ring_size::{is_memory_limit, ring_bytes, ring_bytes_max, watermark};
use crate::sampler::targets::cgroup;
use crate::sampler::targets::target::{self, Target};
use crate::sampler::{host, limits};

use super::{ProcessorRing, Session, chosen_rate, counts_kernel, off_cpu};

impl Session {
    /// Opens the events on a target, for each thread one for each processor: only so can they be
    /// inherited and still write to a buffer.
    ///
    /// # Errors
    ///
    /// If the kernel does not let this user record the target, or does not have an event; if
    /// there is no such target, or it has ended.
    pub fn open(
        options: &Options,
        target: &Target,
        notes: &mut dyn FnMut(Note),
    ) -> Result<Session, Error> {
        target.check()?;
        let cgroup = match target {
            Target::Cgroup(path) => {
                let opened = cgroup::directory(path).and_then(|directory| {
                    File::open(directory).map_err(|error| Error::Cgroup {
                        path: path.clone(),
                        reason: system_reason(&error),
                    })
                });
                Some(opened?)
            }
            _ => None,
        };
        let cgroup = cgroup.as_ref().map(AsFd::as_fd);
        let rate = chosen_rate::rate(options.rate, notes)?;
        let page = kernel::page_size();
        let processors = processors(target)?;
        let mut usual = ring_bytes(options.stacks, rate, processors.len());
        let by_occurrence = options.rate.is_none() && options.events.iter().any(|event| event.each);
        if options.off_cpu || by_occurrence {
            usual = off_cpu::ring_bytes(usual, ring_bytes_max(processors.len()));
        }
        let wanted_pages = options
            .ring_pages
            .unwrap_or(usual / page)
            .max(1)
            .next_power_of_two();
        let mut request = Request {
            events: options.events.clone(),
            precise: Vec::new(),
            cycles_by_default: options.events.is_empty(),
            off_cpu: false,
            processors,
            tasks: target.tasks().len().max(1),
            common: Common {
                rate,
                rate_chosen: options.rate.is_some(),
                stacks: options.stacks,
                unwinds: options.unwinds,
                max_stack: limits::max_stack().unwrap_or(0),
                allowed: Allowed::ALL,
                watermark: watermark(wanted_pages * page),
                at_once: !matches!(target, Target::Held(_)),
                inherit: target.inherits(),
            },
            copies_refused: false,
            files: None,
        };
        if request.cycles_by_default {
            request.events.push(EventSpec::cycles());
        }
        request.precise = request
            .events
            .iter()
            .map(|event| {
                event
                    .modifiers
                    .precise()
                    .unwrap_or(3 * u64::from(request.cycles_by_default))
            })
            .collect();
        if options.off_cpu {
            request.add_off_cpu();
        }

        let mut pages = wanted_pages;
        loop {
            let wanted = request.wanted();
            let opened = descriptors::open(target, cgroup, &wanted, &request.processors, pages)
                .and_then(|(rows, rings)| {
                    Session::with_rows(&request, &wanted, rows, rings).map_err(Refusal::Ring)
                });
            match opened {
                Ok(mut session) => {
                    if let (true, false, Stacks::Copies(size)) =
                        (options.fit_copies, options.unwinds, request.common.stacks)
                    {
                        session.budget = Some(Budget::new(Options::COPIED_PER_SECOND, size));
                    }
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
                    if let (Stacks::Copies(asked), Stacks::Copies(size)) =
                        (options.stacks, request.common.stacks)
                        && size < asked
                    {
                        notes(Note::SmallerCopies { size });
                    }
                    if request.copies_refused {
                        notes(Note::NoCopies);
                    }
                    if !request.common.allowed.kernel && request.events.iter().any(counts_kernel) {
                        notes(Note::UserOnly(Rights::look()));
                    }
                    if request.lacks_inherited_reads() {
                        notes(Note::GroupsNotInherited);
                    }
                    if request.common.at_once {
                        session.start_groups();
                    }
                    if options.off_cpu && !request.has_switch_stacks() {
                        notes(Note::NoSwitchStacks(Rights::look()));
                    }
                    // After the buffers for samples: both are memory of which there is only so
                    // much.
                    session.jobs =
                        Jobs::watch(target, cgroup, &request.processors, &request.common);
                    session._files = request.files;
                    return Ok(session);
                }
                Err(Refusal::Event(index, tid, error)) => request
                    .give_in(index, &error, notes)
                    .map_err(|error| of_target(error, target, tid))?,
                // More than may be locked in memory; the watermark goes with the size.
                Err(Refusal::Ring(error)) if pages > 1 && is_memory_limit(&error) => {
                    pages /= 2;
                    request.common.watermark = watermark(pages * page);
                    request.fit_copies(options, pages * page);
                }
                Err(Refusal::Ring(error)) => {
                    return Err(Error::RingBuffer {
                        reason: system_reason(&error),
                    });
                }
                Err(Refusal::Ended) => return Err(Error::Ended),
            }
        }
    }

    fn with_rows(
        request: &Request,
        wanted: &[Wanted],
        rows: Vec<ThreadEvents>,
        rings: Vec<Ring>,
    ) -> io::Result<Session> {
        let mut events: Vec<WriterEvent> = request
            .events
            .iter()
            .zip(wanted)
            .map(|(spec, wanted)| WriterEvent {
                name: shown_name(spec, request.common.allowed.kernel),
                attr: kernel::attr_bytes(&attr_in_file(wanted.attr, &request.common)),
                ids: Vec::new(),
            })
            .collect();
        let mut duplicates = DuplicateSamples::new(Layouts::new(&events).shared());
        for row in &rows {
            let mut own = Vec::new();
            for (event, fds) in events.iter_mut().zip(&row.events) {
                let ids = fds
                    .iter()
                    .map(|fd| kernel::event_id(fd.as_fd()))
                    .collect::<io::Result<Vec<u64>>>()?;
                own.extend(&ids);
                event.ids.extend(ids);
            }
            // It appeared while events were opened, so it may have inherited them as well.
            if row.late {
                duplicates.expect(row.tid, own);
            }
        }
        let rings = rings.into_iter();
        let is_joined = matches!(request.common.stacks, Stacks::Joined(_));
        let moves = is_joined && !request.common.unwinds;
        let trims = request.common.stacks.are_copied() && !moves;
        let keeps = request.common.unwinds;
        let trimmer = trims.then(|| Trimmer::new(&events).keeping_arguments(keeps));
        let mover = moves.then(|| {
            let attrs = wanted.iter().map(|wanted| kernel::attr_bytes(&wanted.attr));
            Mover::new(&attrs.collect::<Vec<_>>(), &events)
        });
        Ok(Session {
            events,
            mover,
            trimmer,
            budget: None,
            opened: Instant::now(),
            rows,
            rings: rings
                .map(|ring| ProcessorRing { ring, polled: 0 })
                .collect(),
            duplicates,
            early: Vec::new(),
            allowed: request.common.allowed,
            stacks: request.common.stacks,
            unwinds: request.common.unwinds,
            includes_kernel: request.common.allowed.kernel
                && request.events.iter().any(counts_kernel),
            has_switches: request.off_cpu,
            specs: request.events.clone(),
            groups: groups(&request.events),
            before: Vec::new(),
            jobs: None,
            tracepoints: request
                .events
                .iter()
                .filter_map(EventSpec::tracepoint)
                .collect(),
            _files: None,
        })
    }
}

fn processors(target: &Target) -> Result<Vec<u32>, Error> {
    let online = host::online_processors();
    let Target::Processors(Some(chosen)) = target else {
        return Ok(online);
    };
    match chosen.iter().find(|processor| !online.contains(processor)) {
        Some(&processor) => Err(Error::NoProcessor { processor, online }),
        None => Ok(chosen.clone()),
    }
}

fn of_target(error: Error, target: &Target, tid: i32) -> Error {
    match (error, target) {
        (Error::Forbidden { paranoid }, Target::Processors(_) | Target::Cgroup(_)) => {
            Error::SystemForbidden { paranoid }
        }
        // Some distributions refuse everything at 3 and above.
        (
            Error::Forbidden { paranoid },
            Target::Processes(_) | Target::Tree(_) | Target::Threads(_),
        ) if paranoid.is_none_or(|level| level < 3) => Error::TaskForbidden {
            tid,
            user: target::user(tid),
        },
        (error, _) => error,
    }
}

fn groups(events: &[EventSpec]) -> Vec<(usize, usize)> {
    let leaders = leaders(events);
    let groups = leaders
        .chunk_by(|one, other| one == other)
        .map(|group| (group[0], group.len()));
    groups.filter(|(_, events)| *events > 1).collect()
}

/// The event's name with the modifier that holds it to user space, when that was not asked for.
fn shown_name(event: &EventSpec, kernel: bool) -> String {
    if counts_kernel(event) && event.modifiers.user() && !kernel {
        event.clone().with_group(Modifiers::user_only()).name
    } else {
        event.name.clone()
    }
}
