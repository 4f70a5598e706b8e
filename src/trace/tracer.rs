//! Takes records one by one and builds the trace.

mod chains;
mod copied;
pub(super) mod mappings;
mod moved;
mod switches;
pub(super) mod uncounted;

use linux_perf_event_reader::{AttrFlags, SampleFormat, constants};
use rustc_hash::FxHashMap;

use crate::base::{BuildId, CaveatKind, FileId, IdVec, utf8};
use crate::perfdata::{Body, CpuMode, Job, Reader, Record, Sample, Task};

use super::chain::{self, Space};
use super::counts::{Counts, weight_of};
use super::events::{event, sampling};
use super::jit::Dumps;
use super::known_chains::KnownChains;
use super::off_cpu::{OffCpu, SwitchStack};
use super::samples::{SampleKey, Samples};
use super::stack_copies::{Copy, StackCopies, Weights};
use super::stacks::{Stack, Stacks};
use super::threads::{Ended, Threads};
use super::time_range::{Scope, TimeRange};
use super::timed::TimedSamples;
use super::{AddressPathId, Image, Trace, TraceEventId, TraceThreadId};
use chains::{Ahead, ByChain};
use uncounted::Uncounted;

/// Builds a [`Trace`].
pub(super) struct Tracer<'o, 'scope, 'env> {
    pub(super) part: TimeRange,
    on_hit: &'o mut dyn FnMut(&Image),
    /// Code that processes generated, where files tell of it.
    pub(super) dumps: Dumps<'env>,
    pub(super) copies: Option<StackCopies<'scope, 'env>>,
    pub(super) trace: Trace,
    pub(super) threads: Threads,
    pub(super) stacks: Stacks,
    pub(super) known_chains: KnownChains,
    /// What was looked up ahead, kept for its memory.
    ahead: Vec<Option<Ahead>>,
    pub(super) samples: Samples,
    /// How many bytes of each stack were to be copied, by event.
    rooms: IdVec<TraceEventId, u64>,
    /// The builds that the recorder lists, by path; read when the first is asked for.
    builds: Option<FxHashMap<String, BuildId>>,
    /// Which file of a path has the build that is listed for it; `None` for one whose build its
    /// record tells.
    pub(super) has_listed_build: FxHashMap<String, Option<FileId>>,
    /// The last value of each counter that is read with its group, for each thread by itself where
    /// threads inherit them.
    pub(super) counters: FxHashMap<Option<i32>, FxHashMap<u64, u64>>,
    /// Time off the processor, if switches were asked for.
    pub(super) off_cpu: Option<OffCpu>,
    /// Processes and threads that have ended, where somebody wants to forget them.
    pub(super) ended: Option<Vec<Ended>>,
    /// Programs that were started, and files that were mapped in user space.
    pub(super) execs: u64,
    pub(super) ran_before: bool,
    pub(super) mapped: u64,
    pub(super) first_mapped: FxHashMap<FileId, u64>,
    /// Which files the programs have that were started later.
    pub(super) uncounted: Uncounted,
    pub(super) taken: u64,
    /// Samples that have a copy of the stack or registers, and those that the recorder has unwound.
    pub(super) copied: u64,
    pub(super) unwound: u64,
    pub(super) times: Option<(u64, u64)>,
    pub(super) timed: Option<TimedSamples>,
    pub(super) lost: Lost,
    pub(super) counts: Counts,
    pub(super) depths: Depths,
}

/// What was lost, as reported twice: by the kernel when it happened, and by the recorder at the
/// end, which counts all of it again.
#[derive(Debug, Default)]
pub(super) struct Lost {
    pub(super) records: u64,
    pub(super) samples: u64,
}

// `PERF_RECORD_MISC_LOST_SAMPLES_BPF`.
const LOST_SAMPLES_BPF: u16 = 1 << 15;

/// How deep the user's stacks are on the whole.
#[derive(Debug, Default)]
pub(super) struct Depths {
    pub(super) user_samples: u64,
    pub(super) shallow: u64,
}

impl<'o, 'scope, 'env> Tracer<'o, 'scope, 'env> {
    pub(super) fn new(
        Scope { part, keeps_times }: Scope,
        copies: Option<StackCopies<'scope, 'env>>,
        dumps: Dumps<'env>,
        on_hit: &'o mut dyn FnMut(&Image),
    ) -> Self {
        Tracer {
            part,
            on_hit,
            dumps,
            copies,
            trace: Trace::default(),
            threads: Threads::default(),
            stacks: Stacks::default(),
            known_chains: KnownChains::new(),
            ahead: Vec::new(),
            samples: Samples::default(),
            rooms: IdVec::default(),
            builds: None,
            has_listed_build: FxHashMap::default(),
            counters: FxHashMap::default(),
            off_cpu: None,
            ended: None,
            execs: 0,
            ran_before: false,
            mapped: 0,
            first_mapped: FxHashMap::default(),
            uncounted: Uncounted::default(),
            taken: 0,
            copied: 0,
            unwound: 0,
            times: None,
            timed: keeps_times.then(TimedSamples::new),
            lost: Lost::default(),
            counts: Counts::default(),
            depths: Depths::default(),
        }
    }

    /// Takes records that follow one another.
    pub(super) fn records(&mut self, reader: &Reader, records: &[Record<'_>]) {
        let mut ahead = std::mem::take(&mut self.ahead);
        self.look_ahead(records, &mut ahead);
        for (place, record) in records.iter().enumerate() {
            let ahead = ahead.get_mut(place).and_then(Option::take);
            self.record(reader, record, ahead);
        }
        self.ahead = ahead;
    }

    fn record(&mut self, reader: &Reader, record: &Record<'_>, ahead: Option<Ahead>) {
        match &record.body {
            Body::Sample(sample) => self.sample(reader, (record, sample), ahead),
            Body::Mapping(mapping) => self.mapping(reader, record, mapping),
            Body::Name {
                pid,
                tid,
                name,
                exec,
            } => {
                self.execs += u64::from(*exec);
                self.ran_before |= record.time == Some(0) && pid == tid && !exec;
                // The first is the command, unless it ran before.
                if *exec && (self.execs > 1 || self.ran_before) {
                    self.uncounted.exec(*pid);
                }
                // The recorder names what ran before at the time 0.
                if *exec || record.time == Some(0) && pid == tid {
                    let job = |time| Job::at(&reader.features().jobs, *pid, time);
                    let job = record.time.and_then(job);
                    self.threads.exec(*pid, job.map(|job| job.name.as_str()));
                }
                if *exec {
                    self.dumps.exec(*pid);
                    let process = self.stacks.processes.entry(*pid).or_default();
                    process.exec(record.time);
                }
                self.threads.name(*pid, *tid, &utf8(name));
            }
            Body::Fork(task) => {
                self.dumps
                    .advance(task.parent_pid, record.time, &mut self.stacks);
                self.fork(record, task);
            }
            Body::Exit(task) => {
                self.stacks.forget(task.tid);
                self.dumps.exit(task, record.time);
                if task.pid == task.tid {
                    self.uncounted.exit(task.pid);
                }
                if let Some(ended) = &mut self.ended {
                    ended.push(Ended {
                        pid: task.pid,
                        tid: task.tid,
                        gone: None,
                    });
                }
            }
            Body::Lost(count) => self.lost.records = self.lost.records.saturating_add(*count),
            // The recorder says until when it went on.
            Body::LostSamples(0) => {
                if let Some(time) = record.time.filter(|&time| time > 0) {
                    let (first, last) = self.times.get_or_insert((time, time));
                    *first = (*first).min(time);
                    *last = (*last).max(time);
                }
            }
            // What was filtered out on purpose is not lost.
            Body::LostSamples(count) if record.misc & LOST_SAMPLES_BPF == 0 => {
                self.lost.samples = self.lost.samples.saturating_add(*count);
            }
            Body::Read {
                pid: -1,
                value,
                id: Some(id),
            } => self.counts.read(reader, *id, *value),
            Body::Throttle { on: true } => self.trace.caveats.add(CaveatKind::Throttled, 1),
            Body::KernelSymbol {
                address,
                size,
                removed,
                name,
            } => {
                self.settle(reader);
                self.kernel_symbol(*address, u64::from(*size), *removed, name);
            }
            _ => {}
        }
        self.watch_switches(reader, record);
    }

    fn fork(&mut self, record: &Record<'_>, task: &Task) {
        if task.pid != task.parent_pid {
            // The recorder synthesizes such records for processes that ran before it; their
            // mappings follow.
            let copies = record.misc & constants::PERF_RECORD_MISC_FORK_EXEC == 0;
            // What ran before has the time 0.
            let time = record.time.filter(|&time| time > 0);
            self.stacks.fork(task.pid, task.parent_pid, copies, time);
        }
        let parent = (task.parent_pid, task.parent_tid);
        self.threads.fork((task.pid, task.tid), parent);
        // Numbers come again; what the new thread inherits counts from zero.
        self.counters.remove(&Some(task.tid));
    }

    fn sample(
        &mut self,
        reader: &Reader,
        (record, sample): (&Record<'_>, &Sample<'_>),
        ahead: Option<Ahead>,
    ) {
        self.learn_events(reader);
        let covered = self.covers(sample);
        self.taken += u64::from(covered);
        self.copied += u64::from(sample.user_registers.is_some());
        self.unwound += u64::from(sample.is_unwound);
        let deltas = self.deltas(reader, sample);
        let weight = weight_of(reader, sample);
        self.counts.sample(sample.event, weight);
        if deltas.is_none() {
            self.counts.period(sample.event, weight);
        }
        let is_switch = self.is_switch(reader, record, sample);
        if !covered && !is_switch {
            return;
        }
        let attr = &reader.events()[sample.event].attr;
        let pid = sample.pid.unwrap_or(-1);
        let tid = sample.tid.unwrap_or(pid);
        self.note_exec(record, pid);
        self.dumps.advance(pid, sample.time, &mut self.stacks);
        if sample.is_unwound
            && let Some(process) = self.stacks.processes.get_mut(&pid)
            && let Some(pc) = chain::program_counter(sample)
        {
            process.is_at(pc);
        }
        let is_copied = self.copies.is_some()
            && Copy::is_in(sample, attr, record.cpu_mode())
            && Space::of(record.cpu_mode()) != Space::Other;
        let copy = Copy::of(reader, sample).filter(|_| is_copied);
        let is_gone = copy.as_ref().is_some_and(|copy| self.is_gone(pid, copy));
        let is_copied = is_copied && !is_gone;
        if let Some(copy) = copy.filter(|_| is_copied) {
            let weights = match deltas {
                _ if !covered => Weights::Nothing,
                Some(deltas) => Weights::Group(deltas),
                None => Weights::One(sample.event, weight),
            };
            let switch = self
                .off_cpu
                .as_mut()
                .filter(|_| is_switch)
                .map(|off_cpu| off_cpu.awaits(tid));
            return self.copied(reader, record, sample, copy, weights, switch);
        }
        let thread = covered.then(|| self.threads.of(pid, tid));
        // A group's sample is counted for several events.
        let by_chain = match thread.filter(|_| deltas.is_none()) {
            Some(thread) => self.count_by_chain(record, sample, (pid, thread), (weight, ahead)),
            None => ByChain::New(None),
        };
        let key = match by_chain {
            ByChain::Counted(chain) => {
                // Its path is one more place in memory: few samples ask for it.
                if self.timed.is_some() || is_switch || is_copied {
                    let path = self.known_chains.stack(chain).path;
                    if let Some(thread) = thread {
                        self.note_time((sample.event, thread, path), self.since(sample), weight);
                    }
                    self.leaves_with(tid, path, is_switch, is_copied);
                }
                return;
            }
            ByChain::New(key) => key,
        };
        let mut stack = self.stacks.stack(record, sample, attr, (pid, tid));
        // Where the user's stack is a copy, the chain does not say how deep it is.
        let format = attr.sample_format();
        stack.has_user_frames &= !format.contains(SampleFormat::STACK_USER);
        self.stacks.tell_hits(self.on_hit);
        let Some(thread) = thread else {
            return self.leaves_with(tid, stack.path, is_switch, false);
        };
        self.leaves_with(tid, stack.path, is_switch, is_copied);
        if let Some(key) = key {
            let event = TraceEventId::new(sample.event);
            let path = stack.path;
            let counted = SampleKey {
                event,
                thread,
                path,
            };
            if self.known_chains.insert(key, stack, counted, weight) {
                self.note_time((sample.event, thread, path), self.since(sample), weight);
                return self.samples.take_room(event, weight);
            }
        }
        self.note(stack, 1, attr.sample_stack_user.into());
        let at = self.since(sample);
        for (event, weight) in deltas.unwrap_or_else(|| vec![(sample.event, weight)]) {
            self.note_time((event, thread, stack.path), at, weight);
            self.add(event, thread, stack.path, weight);
        }
    }

    /// How long after the beginning of the part of time a sample was taken, in nanoseconds.
    fn since(&self, sample: &Sample<'_>) -> Option<u64> {
        let begin = self.part.begin(self.times?.0);
        sample.time.map(|time| time.saturating_sub(begin))
    }

    fn note_time(
        &mut self,
        (event, thread, path): (usize, TraceThreadId, AddressPathId),
        at: Option<u64>,
        weight: u64,
    ) {
        if let Some(timed) = &mut self.timed {
            let event = TraceEventId::new(event);
            let key = SampleKey {
                event,
                thread,
                path,
            };
            timed.add(key, at, weight);
        }
    }

    /// Notes what a sample with a known path means besides its weight: that its thread leaves the
    /// processor there, or that its stack was copied in vain.
    fn leaves_with(&mut self, tid: i32, path: AddressPathId, is_switch: bool, is_copied: bool) {
        if let Some(off_cpu) = self.off_cpu.as_mut().filter(|_| is_switch) {
            let stack = SwitchStack::Known(path);
            off_cpu.switches().leaves_with(tid, stack);
        }
        if is_copied {
            self.trace.caveats.add(CaveatKind::NotUnwound, 1);
        }
    }

    fn covers(&mut self, sample: &Sample<'_>) -> bool {
        let Some(time) = sample.time else {
            // Nothing tells when it was: it is in the whole of time only.
            return self.part.is_all();
        };
        let (first, last) = self.times.get_or_insert((time, time));
        *first = (*first).min(time);
        *last = (*last).max(time);
        self.part.covers(*first, time)
    }

    /// For a sample that stands for all events of its group: each event with what its counter has
    /// gained since it was read last.
    fn deltas(&mut self, reader: &Reader, sample: &Sample<'_>) -> Option<Vec<(usize, u64)>> {
        let group = sample.read.filter(|read| read.group)?;
        let mut deltas = Vec::new();
        // Counters that threads inherit count for each thread by itself.
        let flags = reader.events()[sample.event].attr.flags();
        let thread = flags.contains(AttrFlags::INHERIT).then_some(sample.tid);
        for (id, value) in group.counters() {
            let Some((id, event)) = id.and_then(|id| Some((id, reader.event_of_id(id)?))) else {
                continue;
            };
            let last = self
                .counters
                .entry(thread.flatten())
                .or_default()
                .insert(id, value);
            let weight = value.saturating_sub(last.unwrap_or(0));
            if weight > 0 {
                deltas.push((event, weight));
            }
        }
        // Where the counters say nothing the sample still stands for its own event.
        (!deltas.is_empty()).then_some(deltas)
    }

    /// A sample in user space shows that a new program runs.
    pub(super) fn note_exec(&mut self, record: &Record<'_>, pid: i32) {
        if record.cpu_mode() == CpuMode::User
            && let Some(process) = self.stacks.processes.get_mut(&pid)
        {
            process.runs();
        }
    }

    pub(super) fn events(&self) -> usize {
        self.trace.events.len()
    }

    pub(super) fn learn_events(&mut self, reader: &Reader) {
        for description in &reader.events()[self.trace.events.len()..] {
            self.trace.events.push(event(description));
            self.trace.sampling.push(sampling(&description.attr));
            self.samples.add_event();
            self.rooms.push(description.attr.sample_stack_user.into());
            let flags = description.attr.flags();
            if self.off_cpu.is_none() && flags.contains(AttrFlags::CONTEXT_SWITCH) {
                self.off_cpu = Some(OffCpu::new(self.timed.is_some()));
            }
        }
    }

    /// Counts a sample.
    fn add(&mut self, event: usize, thread: TraceThreadId, path: AddressPathId, weight: u64) {
        let event = TraceEventId::new(event);
        let key = SampleKey {
            event,
            thread,
            path,
        };
        if !self.samples.add(key, weight) {
            self.trace.caveats.add(CaveatKind::WeightLimit, 1);
        }
    }

    /// Notes the flaws of a stack that so many samples have. If it was copied, at most `room` bytes
    /// of it were.
    fn note(&mut self, stack: Stack, count: u64, room: u64) {
        let caveats = &mut self.trace.caveats;
        if let Some(flaw) = stack.flaw {
            match self.stacks.detail(stack, room) {
                Some(detail) => caveats.add_detail(flaw, count, detail),
                None => caveats.add(flaw, count),
            }
        }
        if let Some(place) = stack.place {
            caveats.add(place, count);
        }
        if stack.has_user_frames {
            self.depths.user_samples = self.depths.user_samples.saturating_add(count);
            let shallow = if stack.is_shallow { count } else { 0 };
            self.depths.shallow = self.depths.shallow.saturating_add(shallow);
        }
    }
}
