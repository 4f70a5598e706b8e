//! What the kernel lets us open, found by asking: each refusal takes one wish back.

use std::io;

use perf_event_open_sys::bindings::{self as sys, perf_event_attr};

use super::attr::{Allowed, Common, attr};
use super::error::{Error, Note, reason};
use super::event::EventSpec;
use super::kernel::MoreFiles;
use super::limits;
use super::stacks::Stacks;

/// What is going to be opened; changed by each refusal until the kernel accepts it.
pub(super) struct Plan {
    pub(super) events: Vec<EventSpec>,
    pub(super) precise: Vec<u64>,
    pub(super) cycles_by_default: bool,
    /// Whether time off the processor is recorded too; the last event then is of its stacks, as
    /// long as the kernel is allowed.
    pub(super) off_cpu: bool,
    pub(super) processors: Vec<u32>,
    /// How many threads are sampled; 1 where it is processors.
    pub(super) tasks: usize,
    pub(super) common: Common,
    /// Whether copies of stacks were taken back.
    pub(super) copies_refused: bool,
    pub(super) files: Option<MoreFiles>,
}

impl Plan {
    /// The attrs to open, one an event; the first one also tracks what happens to processes.
    pub(super) fn attrs(&self) -> Vec<perf_event_attr> {
        let events = self.events.iter().zip(&self.precise).enumerate();
        let attrs =
            events.map(|(index, (event, &precise))| attr(event, precise, &self.common, index == 0));
        let mut attrs: Vec<perf_event_attr> = attrs.collect();
        self.ask_for_switches(&mut attrs);
        attrs
    }

    /// Takes back what may be the reason of a refusal.
    ///
    /// | refusal | taken back, in this order |
    /// |---|---|
    /// | EACCES, EPERM | the kernel |
    /// | EINVAL, E2BIG, EOPNOTSUPP, ENOENT, ENODEV | precision of the address |
    /// | EINVAL, E2BIG | what newer kernels added to attrs |
    /// | EINVAL, E2BIG, EOPNOTSUPP, ENOSYS | copies of stacks |
    /// | EOPNOTSUPP, ENOENT, ENODEV | cycles, if nobody asked for them by name |
    /// | EMFILE | the soft limit of open files |
    pub(super) fn give_in(
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
                self.take_kernel_back();
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
            // An architecture whose kernel cannot copy registers or stacks.
            libc::ENOSYS if self.copies() => self.take_copies_back(),
            libc::ENOSYS => return Err(Error::NoPerfEvents),
            _ if (too_new || absent) && self.precise[index] > 0 => self.precise[index] -= 1,
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
                    reason: reason(error),
                });
            }
        }
        Ok(())
    }

    fn copies(&self) -> bool {
        matches!(self.common.stacks, Stacks::Copies(_))
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

    /// Whether the event can only be had with privilege although it may be of user space: the
    /// kernel's tracepoints.
    fn needs_privilege(&self, index: usize) -> bool {
        self.events[index].kind == sys::PERF_TYPE_TRACEPOINT
    }

    fn too_many_files(&self) -> Error {
        Error::TooManyFiles {
            needed: self.events.len() * self.processors.len() * self.tasks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::attr::Rate;
    use super::*;

    fn plan() -> Plan {
        Plan {
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
    fn copies_are_the_last_thing_that_an_old_kernel_takes_away() {
        let mut plan = plan();
        let mut refusals = 0;
        while plan.copies() {
            let error = io::Error::from_raw_os_error(libc::EINVAL);
            plan.give_in(0, &error, &mut |_| ()).unwrap();
            refusals += 1;
        }
        // Twice precision, three times what is newer.
        assert_eq!((refusals, plan.precise[0]), (6, 0));
        assert!(plan.copies_refused);
        assert_eq!(plan.common.stacks, Stacks::FramePointers);
        assert!(plan.common.allowed.lost && !plan.common.allowed.kernel);
    }

    #[test]
    fn a_kernel_that_cannot_copy_stacks_is_not_one_without_events() {
        let mut plan = plan();
        let refusal = io::Error::from_raw_os_error(libc::ENOSYS);
        plan.give_in(0, &refusal, &mut |_| ()).unwrap();
        assert_eq!(plan.common.stacks, Stacks::FramePointers);
        let error = plan.give_in(0, &refusal, &mut |_| ()).unwrap_err();
        assert!(matches!(error, Error::NoPerfEvents));
    }

    #[test]
    fn switches_come_with_the_first_event_and_their_stacks_as_long_as_the_kernel_may_be_seen() {
        let mut plan = plan();
        plan.common.allowed.kernel = true;
        plan.add_off_cpu();
        let told = |plan: &Plan| -> Vec<(u64, u64, u64)> {
            let attrs = plan.attrs();
            let of = |attr: &perf_event_attr| (attr.config, attr.context_switch(), attr.freq());
            attrs.iter().map(of).collect()
        };
        // Context switches have number 3, and each is a sample.
        assert_eq!(told(&plan), [(0, 1, 1), (3, 0, 0)]);
        let refusal = io::Error::from_raw_os_error(libc::EACCES);
        plan.give_in(0, &refusal, &mut |_| ()).unwrap();
        assert_eq!(told(&plan), [(0, 1, 1)]);
        assert_eq!(plan.precise.len(), plan.events.len());
        assert!(!plan.has_switch_stacks());
    }
}
