//! Finds out what the kernel lets us open: each refusal drops one optional attribute and retries.

use std::io;

use perf_event_open_sys::bindings::{self as sys, perf_event_attr};

use crate::base::system_reason;
use crate::sampler::error::{Error, Note};
use crate::sampler::events::attr::{Allowed, Common, attr};
use crate::sampler::events::event::EventSpec;
use crate::sampler::events::rate::Rate;
use crate::sampler::events::stacks::Stacks;
use crate::sampler::kernel::MoreFiles;
use crate::sampler::limits;
use crate::sampler::rings::descriptors::Wanted;
use crate::sampler::rings::ring_size::fitting_copy;
use crate::sampler::session::options::Options;

/// What is going to be opened; changed by each refusal until the kernel accepts it.
pub(in crate::sampler) struct Request {
    pub(in crate::sampler) events: Vec<EventSpec>,
    pub(in crate::sampler) precise: Vec<u64>,
    pub(in crate::sampler) cycles_by_default: bool,
    /// Whether time off the processor is recorded too; the last event then is of its stacks, as
    /// long as the kernel is allowed.
    pub(in crate::sampler) off_cpu: bool,
    pub(in crate::sampler) processors: Vec<u32>,
    /// How many threads are sampled; 1 where it is processors.
    pub(in crate::sampler) tasks: usize,
    pub(in crate::sampler) common: Common,
    pub(in crate::sampler) copies_refused: bool,
    pub(in crate::sampler) files: Option<MoreFiles>,
}

impl Request {
    /// What to open, in order of the events; the first one also tracks what happens to processes.
    pub(in crate::sampler) fn wanted(&self) -> Vec<Wanted> {
        let leaders = leaders(&self.events);
        let events = self.events.iter().zip(leaders);
        let wanted = self.attrs().into_iter().zip(events);
        wanted
            .map(|(attr, (event, leader))| Wanted {
                attr,
                leader: event.member.then_some(leader),
            })
            .collect()
    }

    fn attrs(&self) -> Vec<perf_event_attr> {
        let events = self.events.iter().zip(&self.precise).enumerate();
        let attrs =
            events.map(|(index, (event, &precise))| attr(event, precise, &self.common, index == 0));
        let mut attrs: Vec<perf_event_attr> = attrs.collect();
        self.ask_for_switches(&mut attrs);
        attrs
    }

    /// Whether counts of groups are recorded of less than asked for: this kernel does not let
    /// threads inherit them.
    pub(in crate::sampler) fn lacks_inherited_reads(&self) -> bool {
        self.common.inherit
            && !self.common.allowed.inherited_reads
            && self.events.iter().any(|event| event.reads)
    }

    /// Takes back what may be the reason of a refusal.
    ///
    /// | refusal | taken back, in this order |
    /// |---|---|
    /// | EACCES, EPERM | the kernel |
    /// | EINVAL, E2BIG, EOPNOTSUPP, ENOENT, ENODEV | precision of the address |
    /// | EINVAL | the group, if it may be taken apart |
    /// | EINVAL, E2BIG | what newer kernels added to attrs |
    /// | EINVAL, E2BIG, EOPNOTSUPP, ENOSYS | copies of stacks |
    /// | EOPNOTSUPP, ENOENT, ENODEV | cycles, if nobody asked for them by name |
    /// | EMFILE | the soft limit of open files |
    pub(in crate::sampler) fn give_in(
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
            // What tracepoints tell of is the kernel's alone.
            libc::EACCES | libc::EPERM if event.kind == sys::PERF_TYPE_TRACEPOINT => {
                return Err(Error::TracepointForbidden {
                    event: event.name.clone(),
                    paranoid: limits::paranoid(),
                });
            }
            libc::EACCES | libc::EPERM if allowed.kernel && event.modifiers.user() => {
                self.take_kernel_back();
            }
            libc::EACCES | libc::EPERM if !event.modifiers.user() => {
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
            // An architecture whose kernel cannot copy registers or stacks.
            libc::ENOSYS if self.copies() => self.take_copies_back(),
            libc::ENOSYS => return Err(Error::NoPerfEvents),
            _ if (too_new || absent) && self.precise[index] > 0 => self.precise[index] -= 1,
            libc::EINVAL if event.member && event.modifiers.weak => {
                let group = self.ungroup(index);
                notes(Note::Ungrouped(group));
            }
            _ if too_new && allowed.older().is_some() => {
                self.common.allowed = allowed.older().unwrap_or(allowed);
            }
            // Whatever was taken back before was not the reason.
            _ if too_new && self.copies() => self.take_copies_back(),
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
                    reason: system_reason(error),
                });
            }
        }
        Ok(())
    }

    fn ungroup(&mut self, index: usize) -> Vec<String> {
        let leaders = leaders(&self.events);
        let group = self
            .events
            .iter_mut()
            .zip(&leaders)
            .filter(|(_, leader)| **leader == leaders[index]);
        group
            .map(|(event, _)| {
                (event.leads, event.member, event.reads) = (false, false, false);
                event.name.clone()
            })
            .collect()
    }

    fn copies(&self) -> bool {
        matches!(self.common.stacks, Stacks::Copies(_) | Stacks::Joined(_))
    }

    /// Copies less of each stack if ring buffers of this size do not hold enough samples, where
    /// that is allowed.
    pub(in crate::sampler) fn fit_copies(&mut self, options: &Options, ring_bytes: usize) {
        if let (true, Stacks::Copies(size), Rate::Frequency(hertz)) =
            (options.fit_copies, self.common.stacks, self.common.rate)
        {
            let fitting = fitting_copy(options.samples_per_second(hertz), ring_bytes);
            self.common.stacks = Stacks::Copies(size.min(fitting));
        }
    }

    /// Records stacks by frame pointers instead, and tries all else again.
    fn take_copies_back(&mut self) {
        self.common.stacks = Stacks::FramePointers;
        self.common.allowed = Allowed {
            kernel: self.common.allowed.kernel,
            ..Allowed::ALL
        };
        self.copies_refused = true;
    }

    fn too_many_files(&self) -> Error {
        Error::TooManyFiles {
            needed: self.events.len() * self.processors.len() * self.tasks,
        }
    }
}

/// For each event the index of the first of its group, its own where it is the first.
pub(in crate::sampler) fn leaders(events: &[EventSpec]) -> Vec<usize> {
    let mut leader = 0;
    let events = events.iter().enumerate();
    events
        .map(|(index, event)| {
            if !event.member {
                leader = index;
            }
            leader
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::events::event_list::EventList;
    use crate::sampler::events::stacks::CopySize;

    fn request() -> Request {
        Request {
            events: vec![EventSpec::cycles()],
            precise: vec![2],
            cycles_by_default: true,
            off_cpu: false,
            processors: vec![0],
            tasks: 1,
            common: Common {
                rate: Rate::Frequency(997),
                rate_chosen: false,
                stacks: Stacks::Copies(Default::default()),
                unwinds: false,
                max_stack: 127,
                allowed: Allowed {
                    kernel: false,
                    ..Allowed::ALL
                },
                watermark: 4096,
                at_once: false,
                inherit: true,
            },
            copies_refused: false,
            files: None,
        }
    }

    #[test]
    fn stack_copies_are_the_last_attribute_that_refusals_drop() {
        let mut request = request();
        let mut refusals = 0;
        while request.copies() {
            let error = io::Error::from_raw_os_error(libc::EINVAL);
            request.give_in(0, &error, &mut |_| ()).unwrap();
            refusals += 1;
        }
        // Twice precision, five times what is newer: the choice of the clock among it.
        assert_eq!((refusals, request.precise[0]), (8, 0));
        assert!(request.copies_refused);
        assert_eq!(request.common.stacks, Stacks::FramePointers);
        assert!(request.common.allowed.lost && !request.common.allowed.kernel);
    }

    #[test]
    fn copies_shrink_with_the_buffers_only_where_they_may() {
        let mut request = request();
        request.common.stacks = Stacks::Copies(CopySize::LARGEST);
        let options = |fit_copies| Options {
            fit_copies,
            ..Options::default()
        };
        request.fit_copies(&options(false), 1 << 20);
        assert_eq!(request.common.stacks, Stacks::Copies(CopySize::LARGEST));
        let mut sizes = Vec::new();
        for mib in [16, 2, 1, 16] {
            request.fit_copies(&options(true), mib << 20);
            let Stacks::Copies(size) = request.common.stacks else {
                panic!("{:?}", request.common.stacks);
            };
            sizes.push(size.bytes() >> 10);
        }
        assert_eq!(sizes, [60, 32, 16, 16]);
    }

    #[test]
    fn a_weak_group_that_is_refused_becomes_single_events() {
        let list: EventList = "cs,{cpu-clock,faults}:SW".parse().unwrap();
        let mut request = Request {
            events: list.events().to_vec(),
            precise: vec![0; 3],
            ..request()
        };
        assert_eq!(leaders(&request.events), [0, 1, 1]);
        let mut told = Vec::new();
        let refusal = io::Error::from_raw_os_error(libc::EINVAL);
        request
            .give_in(2, &refusal, &mut |note| told.push(note))
            .unwrap();
        let names = ["cpu-clock", "faults"].map(str::to_owned).to_vec();
        assert_eq!(told, [Note::Ungrouped(names)]);
        assert_eq!(leaders(&request.events), [0, 1, 2]);
        assert!(
            request
                .wanted()
                .iter()
                .all(|wanted| wanted.leader.is_none())
        );
    }

    #[test]
    fn a_kernel_that_cannot_copy_stacks_is_not_one_without_events() {
        let mut request = request();
        let refusal = io::Error::from_raw_os_error(libc::ENOSYS);
        request.give_in(0, &refusal, &mut |_| ()).unwrap();
        assert_eq!(request.common.stacks, Stacks::FramePointers);
        let error = request.give_in(0, &refusal, &mut |_| ()).unwrap_err();
        assert!(matches!(error, Error::NoPerfEvents));
    }

    #[test]
    fn switches_come_with_the_first_event_and_their_stacks_as_long_as_the_kernel_may_be_seen() {
        let mut request = request();
        request.common.allowed.kernel = true;
        request.add_off_cpu();
        let told = |request: &Request| -> Vec<(u64, u64, u64)> {
            let attrs = request.attrs();
            let of = |attr: &perf_event_attr| (attr.config, attr.context_switch(), attr.freq());
            attrs.iter().map(of).collect()
        };
        // Context switches have number 3, and each is a sample.
        assert_eq!(told(&request), [(0, 1, 1), (3, 0, 0)]);
        let refusal = io::Error::from_raw_os_error(libc::EACCES);
        request.give_in(0, &refusal, &mut |_| ()).unwrap();
        assert_eq!(told(&request), [(0, 1, 1)]);
        assert_eq!(request.precise.len(), request.events.len());
        assert!(!request.has_switch_stacks());
    }
}
