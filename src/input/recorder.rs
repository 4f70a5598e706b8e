//! Recordings whose stacks are unwound while they are made.
//!
//! ```text
//!   kernel ─▶ sampler ──records of a pass──▶ unwinder, a thread of its own
//!                │ ◀──the same, in order, frames in place of copies──┘
//!                ▼
//!             perf.data
//! ```
//!
//! The thread that empties the kernel's buffers does nothing else than write. Where the unwinder
//! cannot keep up, copies stay in the file: nothing is lost, and a reader unwinds them.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

use crate::base::workers::{self, Worker, Workers};
use crate::binary::Finder;
use crate::perfdata::Reader;
use crate::sampler::Stage;
use crate::symbolize::Library;
use crate::trace::{Image, Recording, Unwinding, UnwoundRecords};

use super::{Options, recording};

// With more bytes of records than this before it, the unwinder leaves copies as they are.
const LATE: usize = 32 << 20;
// With more, the buffers are not emptied until it has caught up.
const MOST: usize = 96 << 20;

/// Calls `record`, which is to call [`record`](crate::sampler::record), with a stage that unwinds
/// copies of stacks, or with none, if they are not to be unwound.
pub fn unwinding<T>(unwinds: bool, record: impl FnOnce(Option<&mut dyn Stage>) -> T) -> T {
    if !unwinds {
        return record(None);
    }
    workers::scope(|workers| {
        let mut unwinder = Unwinder::new(workers);
        let result = record(Some(&mut unwinder));
        unwinder.join();
        result
    })
}

/// The unwinder, as the sampler sees it.
struct Unwinder<'scope, 'env> {
    workers: Workers<'scope, 'env>,
    thread: Option<Worker<'scope, ()>>,
    waiting: Arc<AtomicUsize>,
    /// To the thread; `None` before the beginning and after the end.
    given: Option<Sender<Vec<u8>>>,
    done: Option<Receiver<Done>>,
    ready: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    kept: u64,
}

/// The records of a round, and how many samples have kept their copies up to them.
struct Done {
    records: Vec<u8>,
    kept: u64,
    spare: Vec<u8>,
}

impl<'scope, 'env> Unwinder<'scope, 'env> {
    fn new(workers: Workers<'scope, 'env>) -> Self {
        Unwinder {
            workers,
            thread: None,
            waiting: Arc::default(),
            given: None,
            done: None,
            ready: VecDeque::new(),
            spare: Vec::new(),
            kept: 0,
        }
    }

    /// Waits until the thread is gone, not only its work. A command that is left behind becomes the
    /// child of any thread that is there when the recorder's own ends, and would get the kernel's
    /// SIGTERM once more when that ends.
    fn join(mut self) {
        self.given = None;
        self.done = None;
        if let Some(Err(panic)) = self.thread.take().map(Worker::join) {
            std::panic::resume_unwind(panic);
        }
    }

    fn note(&mut self, done: Done) {
        self.kept = done.kept;
        self.spare.push(done.spare);
        self.ready.push_back(done.records);
    }
}

impl Stage for Unwinder<'_, '_> {
    fn begin(&mut self, head: Vec<u8>, records: Vec<u8>) -> bool {
        let (give, given) = mpsc::channel();
        let (does, done) = mpsc::channel();
        let waiting = self.waiting.clone();
        let work = move || unwind((head, records), &given, &does, &waiting);
        self.thread = self.workers.start(work).ok();
        if self.thread.is_some() {
            (self.given, self.done) = (Some(give), Some(done));
        }
        self.thread.is_some()
    }

    fn room(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    fn give(&mut self, records: Vec<u8>) {
        let Some(given) = &self.given else { return };
        let bytes = records.len();
        let before = self.waiting.fetch_add(bytes, Ordering::Relaxed);
        // The thread is there until there is nothing more to give.
        let _ = given.send(records);
        if before + bytes > MOST
            && let Some(done) = self.done.as_ref().and_then(|done| done.recv().ok())
        {
            self.note(done);
        }
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        if self.ready.is_empty() {
            let done = self.done.as_ref()?;
            let done = match self.given {
                Some(_) => done.try_recv().ok()?,
                None => done.recv().ok()?,
            };
            self.note(done);
        }
        self.ready.pop_front()
    }

    fn end(&mut self) {
        self.given = None;
    }

    fn kept(&self) -> u64 {
        self.kept
    }
}

fn unwind(
    (head, records): (Vec<u8>, Vec<u8>),
    given: &Receiver<Vec<u8>>,
    does: &Sender<Done>,
    waiting: &AtomicUsize,
) {
    let head = Reader::from_bytes(head).expect("the recorder has made it");
    let options = Options::default();
    let stated = Recording::stated(&head);
    let library: &Library = &recording::library(&options, Finder::new(None)).for_recording(stated);
    let unwinding = Unwinding {
        rules: library,
        // This thread.
        workers: NonZeroUsize::MIN,
    };
    let mut on_hit = |_: &Image| ();
    workers::scope(|scope| {
        let mut unwound = UnwoundRecords::new(head, records, scope, unwinding, &mut on_hit);
        for records in given {
            let bytes = records.len();
            let is_late = waiting.load(Ordering::Relaxed) > LATE.max(bytes);
            let records = unwound.round(records, is_late);
            waiting.fetch_sub(bytes, Ordering::Relaxed);
            let (kept, spare) = (unwound.kept(), unwound.spare());
            let done = Done {
                records,
                kept,
                spare,
            };
            if does.send(done).is_err() {
                return;
            }
        }
        let records = unwound.finish();
        let _ = does.send(Done {
            records,
            kept: unwound.kept(),
            spare: Vec::new(),
        });
    });
}
