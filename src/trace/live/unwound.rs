//! Records on their way to a file: copies of stacks become the frames that they hold.

use std::sync::Arc;

use crate::base::workers::Workers;
use crate::base::{CallerBy, CaveatKind, CodeAddress};
use crate::perfdata::raw::unwound::{UserFrames, append, append_copy, append_sample};
use crate::perfdata::{Body, Feed, Reader, Record, Sample};

use super::super::chain::{self, Space};
use super::super::jit::Dumps;
use super::super::memory::Snapshot;
use super::super::stack_copies::{Copied, Copy};
use super::super::time_range::Scope;
use super::super::tracer::Tracer;
use super::super::unwinders::{Batch, Unwinders};
use super::super::{Image, ImageKind, Unwinding};

/// Takes the records of a recording as they are made, and hands them out again in order of time,
/// with what was found in copies of stacks in their place.
///
/// The frames are those that a reader of the copies would find, as it is the same code that finds
/// them: at the same place among the changes of memory, by the same rules.
pub struct UnwoundRecords<'o, 'scope, 'env> {
    feed: Feed,
    pass: Pass<'o, 'scope, 'env>,
}

/// What records go through.
struct Pass<'o, 'scope, 'env> {
    tracer: Tracer<'o, 'scope, 'env>,
    unwinders: Unwinders<'scope, 'env>,
    /// One stack at a time.
    batch: Batch,
    user: UserFrames,
    snapshots: u32,
    is_late: bool,
    kept: u64,
    out: Vec<u8>,
}

impl<'o, 'scope, 'env> UnwoundRecords<'o, 'scope, 'env> {
    /// Begins. `head` describes the events and the machine, `records` what was there before.
    pub fn new(
        head: Reader,
        records: Vec<u8>,
        scope: Workers<'scope, 'env>,
        unwinding: Unwinding<'env>,
        on_hit: &'o mut dyn FnMut(&Image),
    ) -> Self {
        let mut tracer = Tracer::new(Scope::default(), None, Dumps::growing(None), on_hit);
        tracer.ended = Some(Vec::new());
        let mut unwound = UnwoundRecords {
            feed: Feed::new(head),
            pass: Pass {
                tracer,
                unwinders: Unwinders::new(scope, unwinding),
                batch: Batch::default(),
                user: UserFrames::default(),
                snapshots: 0,
                is_late: false,
                kept: 0,
                out: Vec::new(),
            },
        };
        let pass = &mut unwound.pass;
        let visit = &mut |reader: &Reader, records: &[Record<'_>]| pass.records(reader, records);
        unwound.feed.append(records, visit);
        // They are in the file already.
        unwound.pass.out.clear();
        unwound
    }

    /// Takes the records of a round, in which all buffers of the kernel were read once. Returns
    /// those that are complete by it: what came before the round before has ended. Where it
    /// `is_late`, all copies are kept as they are, which takes hardly any time.
    pub fn round(&mut self, records: Vec<u8>, is_late: bool) -> Vec<u8> {
        let UnwoundRecords { feed, pass } = self;
        pass.is_late = is_late;
        let visit = &mut |reader: &Reader, records: &[Record<'_>]| pass.records(reader, records);
        feed.append(records, visit);
        feed.end_round(visit);
        let is_there = |tid: i32| std::path::Path::new(&format!("/proc/{tid}")).exists();
        pass.tracer.forget_ended(feed.handed_out(), &is_there);
        std::mem::take(&mut pass.out)
    }

    /// Returns what is left: nothing more is to come.
    pub fn finish(&mut self) -> Vec<u8> {
        let UnwoundRecords { feed, pass } = self;
        feed.finish(&mut |reader: &Reader, records: &[Record<'_>]| pass.records(reader, records));
        std::mem::take(&mut pass.out)
    }

    /// Memory that records were in, to be used for others.
    pub fn spare(&mut self) -> Vec<u8> {
        self.feed.spare()
    }

    /// How many samples have kept their copies so far.
    pub fn kept(&self) -> u64 {
        self.pass.kept
    }
}

impl Pass<'_, '_, '_> {
    fn records(&mut self, reader: &Reader, records: &[Record<'_>]) {
        let all = records.iter();
        all.for_each(|record| self.record(reader, record));
    }

    fn record(&mut self, reader: &Reader, record: &Record<'_>) {
        let Body::Sample(sample) = &record.body else {
            self.tracer.records(reader, std::slice::from_ref(record));
            return append(record, &mut self.out);
        };
        if self.sample(reader, record, sample).is_none() {
            self.kept += u64::from(sample.user_registers.is_some());
            append_copy(record, sample, &mut self.out);
        }
    }

    /// Appends a sample with frames in the place of its copy; `None`, with nothing appended, where
    /// it has no copy, or has to keep it.
    fn sample(&mut self, reader: &Reader, record: &Record<'_>, sample: &Sample<'_>) -> Option<()> {
        let (mode, attr) = (record.cpu_mode(), &reader.events()[sample.event].attr);
        let pid = sample.pid.unwrap_or(-1);
        self.tracer.note_exec(record, pid);
        self.user.clear();
        if Space::of(mode) == Space::Other {
            return None;
        }
        if !Copy::is_in(sample, attr, mode) {
            // Nothing could be copied. What frame pointers led to is the user's part already.
            let process = self.tracer.stacks.processes.get(&pid);
            let is_code = |address| process.is_some_and(|it| it.find(address).is_some());
            let all = chain::addresses(sample.callchain?, mode);
            let mut is_known = false;
            for (_, _, address) in all.filter(|&(_, space, _)| space == Space::User) {
                if is_known && !is_code(address) {
                    self.user.end(CaveatKind::BrokenStack);
                    break;
                }
                is_known |= is_code(address);
                self.user.push(address, CallerBy::FramePointer);
            }
            return append_sample(record, sample, self.user.words()?, &mut self.out);
        }
        let mut copy = Copy::of(reader, sample)?;
        if self.tracer.is_gone(pid, &copy) {
            return append_sample(record, sample, &[], &mut self.out);
        }
        // A copy that is kept says as much of whether a new program runs.
        let stacks = &mut self.tracer.stacks;
        let (code, is_in_exec) = stacks.memory_at(pid, &mut copy, &mut self.snapshots);
        if self.is_late {
            return None;
        }
        let mut copied = Copied {
            is_in_exec,
            ..Copied::default()
        };
        self.batch.clear();
        let callers = &mut self.batch.callers;
        let memory = code.clone();
        let job = copy.job(record, (sample, attr), memory, &mut copied, callers);
        self.batch.jobs.push(job);
        let release = reader.features().os_release.as_deref();
        self.unwinders.learn(stacks.images.rows(), release);
        self.unwinders.unwind(&mut self.batch);
        let &(_, joined) = self.batch.ends.first()?;
        let frames = copied.user_frames(&self.batch.frames, joined);
        let mut flaw = copied.flaw(joined);
        for (number, (address, caller_by)) in frames.enumerate() {
            // Where a frame pointer leads astray the words are data of the program.
            if number > joined.by_copy && code.find(address.lookup()).is_none() {
                flaw = Some(CaveatKind::BrokenStack);
                break;
            }
            self.user.push(address, caller_by);
        }
        if flaw == Some(CaveatKind::NoUnwindRules) && self.lacks_file(&code) {
            return None;
        }
        if let Some(flaw) = flaw {
            self.user.end(flaw);
        }
        append_sample(record, sample, self.user.words()?, &mut self.out)
    }

    /// Whether the outermost frame is in a file that cannot be read now: a reader may have it.
    fn lacks_file(&self, code: &Arc<Snapshot>) -> bool {
        let outermost = self.batch.frames.last().copied().map(CodeAddress::lookup);
        let image = outermost.and_then(|address| code.find(address));
        image.is_some_and(|(image, _)| {
            let image = &self.tracer.stacks.images.rows()[image];
            image.kind == ImageKind::File && !self.unwinders.can_read(image)
        })
    }
}
