//! What the tracer does about time off the processor.

use linux_perf_event_reader::constants;

use crate::perfdata::{Body, CpuMode, Reader, Record, Sample};

use super::super::off_cpu::Interval;
use super::Tracer;

impl Tracer<'_, '_, '_> {
    /// Takes in what a record that is not a sample says of where threads are.
    pub(super) fn watch_switches(&mut self, reader: &Reader, record: &Record<'_>) {
        self.learn_events(reader);
        if let Body::Switch { out, preempted } = record.body {
            return self.switch(record, out, preempted);
        }
        let Some(off_cpu) = &mut self.off_cpu else {
            return;
        };
        let switches = off_cpu.switches();
        match &record.body {
            // The recorder synthesizes this record for threads that existed before.
            Body::Fork(task) if record.misc & constants::PERF_RECORD_MISC_FORK_EXEC != 0 => {
                switches.forget(task.tid);
            }
            Body::Fork(task) => switches.fork(task.tid),
            Body::Name {
                tid, exec: true, ..
            } => switches.exec(*tid),
            Body::Exit(task) => switches.exit(task.tid),
            Body::Lost(_) => switches.lost(record.time, record.origin.cpu),
            // The recording went on until then, on all processors.
            Body::LostSamples(0) => {
                if let Some(time) = record.time.filter(|&time| time > 0) {
                    switches.seen(time, None);
                }
            }
            _ => {}
        }
    }

    pub(in crate::trace) fn goes_on_until(&mut self, time: u64) {
        if let Some(off_cpu) = self.off_cpu.as_mut().filter(|_| time > 0) {
            off_cpu.switches().seen(time, None);
        }
    }

    /// A thread leaves its processor or enters one.
    fn switch(&mut self, record: &Record<'_>, out: bool, preempted: bool) {
        let (Some(off_cpu), Some((pid, tid)), Some(time)) =
            (&mut self.off_cpu, record.origin.task, record.time)
        else {
            return;
        };
        if out && time == 0 {
            let thread = self.threads.of(pid, tid);
            off_cpu.switches().was_off(tid, thread);
            return;
        }
        off_cpu.switches().seen(time, record.origin.cpu);
        if tid <= 0 {
            return;
        }
        let (first, last) = self.times.get_or_insert((time, time));
        *first = (*first).min(time);
        *last = (*last).max(time);
        if out {
            let thread = self.threads.of(pid, tid);
            off_cpu.switches().leaves(tid, time, preempted, thread);
        } else if let Some(interval) = off_cpu.switches().enters(tid, time) {
            self.off_cpu_interval(interval);
        }
    }

    fn off_cpu_interval(&mut self, interval: Interval) {
        let Some(off_cpu) = &mut self.off_cpu else {
            return;
        };
        let first = self.times.map_or(0, |(first, _)| first);
        let stacks = &mut self.stacks;
        off_cpu.count(
            interval,
            (self.part, first),
            |name| stacks.mark(name),
            &mut self.trace.caveats,
        );
    }

    /// Takes in what a sample says of switches. Tells whether its thread leaves with its stack.
    pub(super) fn is_switch(
        &mut self,
        reader: &Reader,
        record: &Record<'_>,
        sample: &Sample<'_>,
    ) -> bool {
        let (Some(off_cpu), Some(tid)) = (&mut self.off_cpu, sample.tid.filter(|&tid| tid > 0))
        else {
            return false;
        };
        if let Some(time) = sample.time {
            off_cpu.switches().seen(time, sample.cpu);
        }
        if record.cpu_mode() == CpuMode::User {
            off_cpu.switches().runs(tid);
        }
        off_cpu.is_source(sample.event, reader.events())
    }

    /// Counts the threads that are off the processor to the end.
    pub(in crate::trace) fn finish_off_cpu(&mut self) {
        let untold = self.lost.samples > self.lost.records;
        let open = self
            .off_cpu
            .as_mut()
            .map(|off| off.switches().finish(untold));
        for interval in open.into_iter().flatten() {
            self.off_cpu_interval(interval);
        }
    }
}
