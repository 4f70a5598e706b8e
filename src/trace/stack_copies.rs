//! Samples with copied stacks, on their way through the workers that unwind them.
//!
//! A sample is counted at once except for its stack, which is added when its batch comes back.
//! Batches come back in order, and at places that depend on the recording alone: so does the trace.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use linux_perf_event_reader::{AttrFlags, SampleFormat};

use crate::base::{CallerBy, CaveatKind, CodeAddress, IdVec};
use crate::perfdata::{Attr, CpuMode, Reader, Record, Sample};
use crate::unwind::{Arch, End, Joined, Registers};

use super::chain::{self, Link};
use super::memory::Snapshot;
use super::off_cpu::Ticket;
use super::unwinders::{Batch, Job, Unwinders};
use super::{Image, ImageId, TraceThreadId};

// How much of stacks, and how many of them, make a batch.
const BATCH_BYTES: usize = 512 << 10;
const BATCH_JOBS: usize = 256;
// How many batches are in work.
const IN_WORK: u64 = 8;

/// A sample that waits for its stack.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) pid: i32,
    pub(super) tid: i32,
    pub(super) thread: TraceThreadId,
    /// What it counts for: events and weights.
    pub(super) weights: Weights,
    /// If the thread leaves its processor with it: the name under which its stack is awaited.
    pub(super) switch: Option<Ticket>,
    /// How long after the first sample it was taken, in nanoseconds.
    pub(super) at: Option<u64>,
    pub(super) copied: Copied,
    /// The links of its stack that are outside of user space: a range of those of the batch, empty
    /// until it is in one.
    pub(super) kernel: Range<usize>,
}

/// What is known of a copied stack besides its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Copied {
    /// How many bytes of the stack were to be copied.
    pub(super) room: u64,
    /// Whether none of them could be.
    pub(super) is_empty: bool,
    /// Whether the kernel was replacing the program: the old one's stack was gone already, and only
    /// where it was is known.
    pub(super) is_in_exec: bool,
    pub(super) is_in_kernel: bool,
    /// Whether the kernel has followed the frame pointers as well.
    pub(super) is_joined: bool,
    /// Whether the kernel's chain has as many frames as it may have.
    pub(super) is_chain_cut: bool,
}

impl Copied {
    /// Those of the unwound frames that are the program's, innermost first, and how the caller of
    /// each was found.
    pub(super) fn user_frames(
        self,
        frames: &[CodeAddress],
        joined: Joined,
    ) -> impl Iterator<Item = (CodeAddress, CallerBy)> {
        let most = if self.is_in_exec { 1 } else { usize::MAX };
        frames
            .iter()
            .take(most)
            .enumerate()
            .map(move |(number, &address)| {
                let caller_by = match number {
                    _ if number < joined.by_rules => CallerBy::Rules,
                    _ if number < joined.by_copy => CallerBy::Copy,
                    _ => CallerBy::FramePointer,
                };
                (address, caller_by)
            })
    }

    /// Why the outermost frame is not among them, if it is not.
    pub(super) fn flaw(self, joined: Joined) -> Option<CaveatKind> {
        match joined.end {
            _ if self.is_in_exec => None,
            End::Outermost => None,
            End::Chained => self.is_chain_cut.then_some(CaveatKind::CutStack),
            _ if self.is_empty => Some(CaveatKind::EmptyCopy),
            End::Copied if self.is_joined => Some(CaveatKind::ShortTop),
            End::Copied => Some(CaveatKind::ShortCopy),
            End::SignalStack => Some(CaveatKind::SignalStack),
            End::Limit => Some(CaveatKind::CutStack),
            End::Unruled => Some(CaveatKind::NoUnwindRules),
            End::Broken if self.is_joined => Some(CaveatKind::BrokenStack),
            End::Broken => Some(CaveatKind::BrokenCopy),
        }
    }
}

/// What a sample counts for.
#[derive(Debug)]
pub(super) enum Weights {
    /// Its own event.
    One(usize, u64),
    /// The events of its group.
    Group(Vec<(usize, u64)>),
    /// Nothing: only its stack is asked for.
    Nothing,
}

/// The samples of a batch.
#[derive(Debug, Default)]
struct Samples {
    waiting: Vec<Waiting>,
    links: Vec<Link>,
}

/// Where samples with copied stacks wait.
pub(super) struct StackCopies<'scope, 'env> {
    unwinders: Unwinders<'scope, 'env>,
    /// The batch that is being filled.
    open: Finished,
    /// The samples of the batches that are in work, in order.
    given: VecDeque<Samples>,
    /// Empty ones, for their memory.
    free: Vec<Finished>,
    snapshots: u32,
}

/// A copied stack that can be unwound.
pub(super) struct Copy<'a> {
    pub(super) program_counter: u64,
    registers: Registers,
    start: u64,
    bytes: &'a [u8],
    room: u64,
}

impl<'a> Copy<'a> {
    /// Whether a sample has a copied stack.
    pub(super) fn is_in(sample: &Sample<'_>, attr: &Attr, mode: CpuMode) -> bool {
        // One of a kernel thread has no registers of a user. A copy is empty where the page was not
        // in memory: then frame pointers are better, if the kernel followed them.
        let is_wanted = attr.sample_format().contains(SampleFormat::STACK_USER);
        sample.user_registers.is_some()
            && match sample.user_stack {
                Some(copy) if !copy.is_empty() => true,
                None if !is_wanted => false,
                _ => !chain::has_user_frames(sample, mode),
            }
    }

    /// That of a sample, if it is of a machine whose stacks are unwound.
    pub(super) fn of(reader: &Reader, sample: &Sample<'a>) -> Option<Copy<'a>> {
        let told = sample.user_registers?;
        let machine = reader.features().arch.as_deref();
        let arch = Arch::of_task(machine, told.abi, told.mask)?;
        if !reader.is_little_endian() {
            return None;
        }
        let registers = Registers::of_sample(arch, &told);
        Some(Copy {
            program_counter: registers.program_counter()?,
            start: registers.stack_pointer()?,
            registers,
            bytes: sample.user_stack.unwrap_or_default(),
            room: sample.user_stack_room,
        })
    }
}

impl Copy<'_> {
    /// What is to be unwound, in a process of this memory. `copied` becomes what is known of it
    /// besides, and what its chain has of callers is added to `callers`.
    pub(super) fn job(
        self,
        record: &Record<'_>,
        (sample, attr): (&Sample<'_>, &Attr),
        code: Arc<Snapshot>,
        copied: &mut Copied,
        callers: &mut Vec<u64>,
    ) -> Job {
        let mode = record.cpu_mode();
        let from = callers.len();
        let pc = self.program_counter;
        let follows = !attr.flags().contains(AttrFlags::EXCLUDE_CALLCHAIN_USER);
        copied.room = sample.user_stack_room;
        copied.is_empty = self.is_empty();
        copied.is_in_kernel = chain::is_in_kernel(mode, attr);
        copied.is_joined = follows && sample.callchain.is_some();
        copied.is_chain_cut = chain::user_callers(sample, mode, attr, pc, callers);
        Job {
            tid: sample.tid.unwrap_or(-1),
            code,
            registers: self.registers,
            start: self.start,
            bytes: record.share(self.bytes),
            is_full: self.bytes.len() as u64 >= self.room,
            callers: from..callers.len(),
        }
    }

    /// Whether nothing could be copied.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Goes back to the call site from which a stub was entered, which has pushed `pushed` bytes.
    pub(super) fn back_at(&mut self, (site, pushed): (u64, u64)) {
        const RSP: u16 = 7;
        if let Some(stack_pointer) = self.registers.stack_pointer() {
            let before = stack_pointer.wrapping_add(pushed);
            self.registers = self.registers.clone().with(RSP, before).at(site);
        }
    }
}

/// A sample whose stack was found.
pub(super) struct Unwound<'a> {
    pub(super) sample: &'a Waiting,
    /// The user's frames, innermost first.
    pub(super) frames: &'a [CodeAddress],
    /// How their callers were found.
    pub(super) joined: Joined,
    pub(super) memory: &'a Snapshot,
    /// The links outside of user space, outermost first.
    pub(super) kernel: &'a [Link],
}

/// A batch that has come back.
#[derive(Default)]
pub(super) struct Finished(Batch, Samples);

impl Finished {
    /// The samples, in the order of the recording.
    pub(super) fn samples(&self) -> impl Iterator<Item = Unwound<'_>> {
        let Finished(batch, samples) = self;
        let mut from = 0;
        let ends = batch.ends.iter().zip(&batch.jobs).zip(&samples.waiting);
        ends.map(move |((&(to, joined), job), sample)| {
            let frames = batch.frames.get(from..to).unwrap_or_default();
            from = to;
            Unwound {
                sample,
                frames,
                joined,
                memory: &job.code,
                kernel: samples.links.get(sample.kernel.clone()).unwrap_or_default(),
            }
        })
    }
}

impl<'scope, 'env> StackCopies<'scope, 'env> {
    pub(super) fn new(unwinders: Unwinders<'scope, 'env>) -> Self {
        StackCopies {
            unwinders,
            open: Finished::default(),
            given: VecDeque::new(),
            free: Vec::new(),
            snapshots: 0,
        }
    }

    pub(super) fn snapshots(&mut self) -> &mut u32 {
        &mut self.snapshots
    }

    /// Takes in a sample, whose process has this memory.
    pub(super) fn add(
        &mut self,
        record: &Record<'_>,
        (sample, attr): (&Sample<'_>, &Attr),
        copy: Copy<'_>,
        code: Arc<Snapshot>,
        mut waiting: Waiting,
    ) {
        let Finished(batch, samples) = &mut self.open;
        let links = samples.links.len();
        chain::links_of_kernel(sample, record.cpu_mode(), &mut samples.links);
        waiting.kernel = links..samples.links.len();
        batch.bytes += copy.bytes.len();
        let copied = &mut waiting.copied;
        let job = copy.job(record, (sample, attr), code, copied, &mut batch.callers);
        batch.jobs.push(job);
        samples.waiting.push(waiting);
    }

    /// The next batch that is to come back now, if one is. `images` are those that are known.
    pub(super) fn due(
        &mut self,
        images: &IdVec<ImageId, Image>,
        os_release: Option<&str>,
    ) -> Option<Finished> {
        let Finished(batch, _) = &self.open;
        if batch.bytes < BATCH_BYTES && batch.jobs.len() < BATCH_JOBS {
            return None;
        }
        self.unwinders.learn(images, os_release);
        self.give();
        if self.unwinders.in_work() > IN_WORK {
            self.take()
        } else {
            None
        }
    }

    pub(super) fn next(
        &mut self,
        images: &IdVec<ImageId, Image>,
        os_release: Option<&str>,
    ) -> Option<Finished> {
        if !self.open.0.jobs.is_empty() {
            self.unwinders.learn(images, os_release);
            if self.unwinders.in_work() == 0 {
                // A few stacks take less time than it takes to wake somebody.
                let mut closed = self.close();
                self.unwinders.unwind(&mut closed.0);
                return Some(closed);
            }
            self.give();
        }
        self.take()
    }

    /// Takes the open batch, and opens another.
    fn close(&mut self) -> Finished {
        let next = self.free.pop().unwrap_or_default();
        std::mem::replace(&mut self.open, next)
    }

    fn give(&mut self) {
        let Finished(batch, samples) = self.close();
        self.unwinders.give(batch);
        self.given.push_back(samples);
    }

    fn take(&mut self) -> Option<Finished> {
        let batch = self.unwinders.take()?;
        Some(Finished(batch, self.given.pop_front()?))
    }

    /// Takes back the memory of a batch.
    pub(super) fn free(&mut self, finished: Finished) {
        let Finished(mut batch, mut samples) = finished;
        batch.clear();
        samples.waiting.clear();
        samples.links.clear();
        self.free.push(Finished(batch, samples));
    }
}
