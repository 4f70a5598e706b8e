//! Reads the arguments of programs as they start, to distinguish the processes of a build.
//!
//! An event that counts nothing reports each exec to small ring buffers of its own. Each wakes the
//! recorder, as the arguments cannot be read once the program has ended.

use std::convert::Infallible;
use std::os::fd::{BorrowedFd, RawFd};
use std::path::Path;
use std::time::Duration;

use perf_event_open_sys::bindings::{self as sys, perf_event_attr};

use super::{ProcessorRing, to_poll};
use crate::files::read_list;
use crate::perfdata::raw::{self, Layouts, RawRecord};
use crate::perfdata::writer::{ATTR_SIZE, WriterEvent};
use crate::perfdata::{Body, Job};
use crate::sampler::events::attr::Common;
use crate::sampler::kernel;
use crate::sampler::rings::descriptors::{self, ThreadEvents, Wanted};
use crate::sampler::targets::job_name::job_name;
use crate::sampler::targets::target::Target;

// Running threads are not watched if there are more: each takes a descriptor per processor.
// Compilers have fewer.
const TASKS_MAX: usize = 16;
// The most jobs that are kept.
const JOBS_MAX: usize = 1 << 18;
// The most bytes of a process's arguments that are read. What compilers and linkers are named by
// stands near the beginning, and one argument has at most 128 KiB. A process may state that they
// have gigabytes.
const ARGUMENTS: usize = 256 << 10;
// How often arguments are looked for that the kernel has not put in place, and how long apart at
// most: it reports the exec a few microseconds before. The buffers are emptied meanwhile.
const LOOKS: u32 = 4;
const APART: Duration = Duration::from_millis(1);
// How many are looked at in a row.
const AT_ONCE: usize = 64;

#[derive(Debug)]
pub(in crate::sampler) struct Jobs {
    rows: Vec<ThreadEvents>,
    rings: Vec<ProcessorRing>,
    layouts: Layouts,
    found: Vec<Job>,
    /// Those whose arguments are not in place yet.
    awaited: Vec<Awaited>,
}

#[derive(Debug)]
struct Awaited {
    pid: i32,
    time: u64,
    looks: u32,
}

impl Jobs {
    /// Begins to watch a target; `None` where that cannot be had.
    pub(in crate::sampler) fn watch(
        target: &Target,
        cgroup: Option<BorrowedFd<'_>>,
        processors: &[u32],
        common: &Common,
    ) -> Option<Jobs> {
        if !target.inherits() && target.is_of_tasks() || target.tasks().len() > TASKS_MAX {
            return None;
        }
        let attr = attr(common);
        let events = [WriterEvent {
            name: String::new(),
            attr: kernel::attr_bytes(&attr),
            ids: Vec::new(),
        }];
        let wanted = [Wanted { attr, leader: None }];
        let (rows, rings) = descriptors::open(target, cgroup, &wanted, processors, 1).ok()?;
        let rings = rings.into_iter();
        let mut jobs = Jobs {
            rows,
            rings: rings
                .map(|ring| ProcessorRing { ring, polled: 0 })
                .collect(),
            layouts: Layouts::new(&events),
            found: Vec::new(),
            awaited: Vec::new(),
        };
        if !matches!(target, Target::Held(_)) {
            for pid in target.processes() {
                let looks = LOOKS;
                jobs.look_at(Awaited {
                    pid,
                    time: 0,
                    looks,
                });
            }
        }
        Some(jobs)
    }

    pub(super) fn to_poll(&self) -> impl Iterator<Item = RawFd> {
        to_poll(&self.rows, &self.rings)
    }

    pub(super) fn soon(&self) -> Option<Duration> {
        (!self.awaited.is_empty()).then_some(APART)
    }

    /// Looks at the programs that have started, where what was polled says that there are any.
    /// Returns whether it does.
    pub(super) fn look(&mut self, revents: &[i16]) -> bool {
        let has_started = revents.iter().any(|&revents| revents != 0);
        if !has_started && self.awaited.is_empty() {
            return false;
        }
        super::note_ended(&mut self.rings, revents);
        let mut execs = std::mem::take(&mut self.awaited);
        execs.extend(self.started());
        // What a process does now is not what it did before it started another program.
        for _ in 0..AT_ONCE {
            let Some(awaited) = execs.pop() else {
                break;
            };
            let (pid, counts) = (awaited.pid, (self.found.len(), self.awaited.len()));
            self.look_at(awaited);
            let since = self.started();
            if since.iter().any(|other| other.pid == pid) {
                self.found.truncate(counts.0);
                self.awaited.truncate(counts.1);
            }
            execs.retain(|other| other.pid != pid);
            execs.extend(since);
        }
        self.awaited.extend(execs);
        has_started
    }

    pub(in crate::sampler) fn found(&self) -> Vec<Job> {
        let mut found = self.found.clone();
        found.sort_by_key(|job| (job.time, job.pid));
        found
    }

    fn started(&mut self) -> Vec<Awaited> {
        let layout = self.layouts.shared();
        let mut started = Vec::new();
        for ring in &mut self.rings {
            let Ok(_) = ring.ring.drain(&mut |records: &[u8]| {
                let execs = raw::records(records).filter_map(|record: RawRecord<'_>| match record
                    .says(layout)?
                {
                    Body::Name {
                        pid, exec: true, ..
                    } => Some(Awaited {
                        pid,
                        time: record.time(layout)?,
                        looks: 0,
                    }),
                    _ => None,
                });
                started.extend(execs);
                Ok::<(), Infallible>(())
            });
        }
        started.sort_by_key(|it| it.time);
        started
    }

    fn look_at(&mut self, mut awaited: Awaited) {
        if self.found.len() >= JOBS_MAX {
            return;
        }
        let Awaited { pid, time, .. } = awaited;
        let path = format!("/proc/{pid}/cmdline");
        // One that has ended has none.
        let Ok(arguments) = read_list(Path::new(&path), ARGUMENTS, 0) else {
            return;
        };
        awaited.looks += 1;
        if arguments.bytes.is_empty() && awaited.looks < LOOKS {
            return self.awaited.push(awaited);
        }
        let name = job_name(&arguments.bytes);
        self.found.extend(name.map(|name| Job { time, pid, name }));
    }
}

/// Reports execs, and wakes the recorder for each.
fn attr(common: &Common) -> perf_event_attr {
    let mut attr = perf_event_attr {
        type_: sys::PERF_TYPE_SOFTWARE,
        config: u64::from(sys::PERF_COUNT_SW_DUMMY),
        size: ATTR_SIZE as u32,
        sample_type: u64::from(sys::PERF_SAMPLE_TID | sys::PERF_SAMPLE_TIME),
        ..Default::default()
    };
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    attr.set_comm(1);
    attr.set_comm_exec(1);
    attr.set_sample_id_all(1);
    attr.set_inherit(u64::from(common.inherit));
    attr.set_disabled(u64::from(!common.at_once));
    attr.set_enable_on_exec(u64::from(!common.at_once));
    attr.set_watermark(1);
    attr.__bindgen_anon_2.wakeup_watermark = 1;
    if common.allowed.clock {
        attr.set_use_clockid(1);
        attr.clockid = libc::CLOCK_MONOTONIC;
    }
    attr
}
