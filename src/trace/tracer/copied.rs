//! Samples whose stacks were copied: they wait until these are unwound.

use super::Tracer;
use crate::perfdata::{Reader, Record, Sample};
use crate::trace::off_cpu::Ticket;
use crate::trace::stack_copies::{Copied, Copy, Finished, Waiting, Weights};

impl Tracer<'_, '_, '_> {
    pub(super) fn copied(
        &mut self,
        reader: &Reader,
        record: &Record<'_>,
        sample: &Sample<'_>,
        mut copy: Copy<'_>,
        weights: Weights,
        switch: Option<Ticket>,
    ) {
        let at = self.since(sample);
        let Some(copies) = &mut self.copies else {
            return;
        };
        let pid = sample.pid.unwrap_or(-1);
        let tid = sample.tid.unwrap_or(pid);
        let (code, is_in_exec) = self.stacks.memory_at(pid, &mut copy, copies.snapshots());
        let waiting = Waiting {
            pid,
            tid,
            thread: self.threads.of(pid, tid),
            weights,
            switch,
            at,
            copied: Copied {
                is_in_exec,
                ..Copied::default()
            },
            kernel: 0..0,
        };
        let attr = &reader.events()[sample.event].attr;
        copies.add(record, (sample, attr), copy, code, waiting);
        let release = reader.features().os_release.as_deref();
        if let Some(finished) = copies.due(self.stacks.images.rows(), release) {
            self.unwound(finished);
        }
    }

    /// Whether the kernel is replacing the program, so that there is no stack of a user.
    pub(in crate::trace) fn is_gone(&self, pid: i32, copy: &Copy<'_>) -> bool {
        let process = self.stacks.processes.get(&pid);
        copy.is_empty() && process.is_some_and(|process| process.is_in_exec())
    }

    /// Waits for all copied stacks: the trace is finished, or the kernel's part of them is found in
    /// what is about to change. A process's memory they have as it was.
    pub(in crate::trace) fn settle(&mut self, reader: &Reader) {
        let release = reader.features().os_release.as_deref();
        let next = |tracer: &mut Self| {
            let images = tracer.stacks.images.rows();
            tracer.copies.as_mut()?.next(images, release)
        };
        while let Some(finished) = next(self) {
            self.unwound(finished);
        }
    }

    /// Counts the samples of a batch.
    fn unwound(&mut self, finished: Finished) {
        for unwound in finished.samples() {
            let Waiting { thread, at, .. } = *unwound.sample;
            let room = unwound.sample.copied.room;
            let stack = self.stacks.unwound(&unwound);
            self.stacks.tell_hits(self.on_hit);
            if let (Some(ticket), Some(off_cpu)) = (unwound.sample.switch, &mut self.off_cpu) {
                off_cpu.resolve(ticket, stack.path, &mut self.trace.caveats);
            }
            if matches!(unwound.sample.weights, Weights::Nothing) {
                continue;
            }
            self.note(stack, 1, room);
            match &unwound.sample.weights {
                &Weights::One(event, weight) => {
                    self.note_time((event, thread, stack.path), at, weight);
                    self.add(event, thread, stack.path, weight);
                }
                Weights::Group(deltas) => {
                    for &(event, weight) in deltas {
                        self.note_time((event, thread, stack.path), at, weight);
                        self.add(event, thread, stack.path, weight);
                    }
                }
                Weights::Nothing => {}
            }
        }
        if let Some(copies) = &mut self.copies {
            copies.free(finished);
        }
    }
}
