//! Workers that unwind copied stacks, a batch at a time.
//!
//! ```text
//!   the reading thread ──batch──▶ todo ──▶ workers, and the reading thread when it has to wait
//!          ▲                                  │
//!          └── in order ◀── done ◀────────────┘
//! ```

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};

use crate::base::workers::Workers;
use crate::base::{CodeAddress, FileOffset, IdVec};
use crate::perfdata::SharedBytes;
use crate::unwind::{CodeAt, Joined, ProcessCode, Registers, Rules, StackCopy, Unwinder};

use super::memory::Snapshot;
use super::{Image, ImageId, ImageKind};

/// Where the unwinding rules of images come from.
pub trait RuleSource: Sync {
    /// The rules of an image, which is a file or the vdso, and where known the release of the
    /// kernel that it ran under. `None`: there are none, or the file is not the one that ran.
    fn rules(&self, image: &Image, os_release: Option<&str>) -> Option<Arc<Rules>>;

    /// Whether the file of an image is there, and is the one that ran.
    fn can_read(&self, _: &Image) -> bool {
        true
    }
}

/// How copied stacks are unwound.
#[derive(Clone, Copy)]
pub struct Unwinding<'a> {
    /// Where rules come from.
    pub rules: &'a dyn RuleSource,
    /// How many workers unwind, the reading thread included. The result does not depend on it.
    pub workers: NonZeroUsize,
}

/// A stack to be unwound.
pub(super) struct Job {
    pub(super) tid: i32,
    pub(super) code: Arc<Snapshot>,
    pub(super) registers: Registers,
    /// The address of the first byte of the copy.
    pub(super) start: u64,
    pub(super) bytes: SharedBytes,
    pub(super) is_full: bool,
    /// Where in the callers of the batch those are that the kernel found by frame pointers.
    pub(super) callers: Range<usize>,
}

/// Stacks to be unwound, and what became of them.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) jobs: Vec<Job>,
    /// How many bytes the copies have together.
    pub(super) bytes: usize,
    /// Return addresses of the kernel's chains, innermost first.
    pub(super) callers: Vec<u64>,
    /// The frames of all jobs, innermost first.
    pub(super) frames: Vec<CodeAddress>,
    pub(super) ends: Vec<(usize, Joined)>,
}

impl Batch {
    /// Forgets everything but the memory that it was in.
    pub(super) fn clear(&mut self) {
        self.jobs.clear();
        self.bytes = 0;
        self.callers.clear();
        self.frames.clear();
        self.ends.clear();
    }
}

/// The rules of an image, found when they are needed first.
struct ImageRules {
    image: Image,
    os_release: Option<Arc<str>>,
    rules: OnceLock<Option<Arc<Rules>>>,
}

/// What workers share.
struct Shared<'a> {
    source: &'a dyn RuleSource,
    images: Mutex<Vec<Arc<ImageRules>>>,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    todo: VecDeque<(u64, Batch)>,
    done: HashMap<u64, Batch>,
    is_closed: bool,
    /// A worker has panicked: what it had will never be done.
    is_broken: bool,
}

/// The workers. Each batch starts one more, as long as there are any to be started.
pub(super) struct Unwinders<'scope, 'env> {
    scope: Workers<'scope, 'env>,
    shared: Arc<Shared<'env>>,
    /// How many are yet to be started.
    helpers: usize,
    own: Worker,
    next_given: u64,
    next_taken: u64,
}

/// One worker's own.
#[derive(Default)]
struct Worker {
    unwinder: Unwinder,
    images: Vec<Arc<ImageRules>>,
}

/// The code of a process as workers see it.
struct Memory<'a> {
    snapshot: &'a Snapshot,
    images: &'a [Arc<ImageRules>],
    source: &'a dyn RuleSource,
}

impl ProcessCode for Memory<'_> {
    fn number(&self) -> u32 {
        self.snapshot.number
    }

    fn place(&self, address: u64) -> CodeAt<'_> {
        let Some((id, offset)) = self.snapshot.find(address) else {
            return CodeAt::Unmapped;
        };
        let ruled = || {
            let image = self.images.get(id.index())?;
            let has_rules = matches!(image.image.kind, ImageKind::File | ImageKind::Vdso);
            let find = || {
                let release = image.os_release.as_deref();
                has_rules.then(|| self.source.rules(&image.image, release))?
            };
            let rules = image.rules.get_or_init(find).as_deref()?;
            Some(CodeAt::Ruled {
                file: u32::try_from(id.index()).ok()?,
                rules,
                address: rules.svma(FileOffset(offset))?,
            })
        };
        ruled().unwrap_or(CodeAt::Unruled)
    }
}

impl Worker {
    fn unwind(&mut self, batch: &mut Batch, shared: &Shared<'_>) {
        {
            let images = shared.images.lock().expect("no worker panics");
            let new = images.get(self.images.len()..).unwrap_or_default();
            self.images.extend_from_slice(new);
        }
        for job in &batch.jobs {
            let code = Memory {
                snapshot: &job.code,
                images: &self.images,
                source: shared.source,
            };
            let stack = StackCopy {
                thread: job.tid,
                start: job.start,
                bytes: &job.bytes,
                is_full: job.is_full,
            };
            let registers = job.registers.clone();
            let frames = &mut batch.frames;
            let callers = batch.callers.get(job.callers.clone()).unwrap_or_default();
            let joined = self.unwinder.join(&code, registers, stack, callers, frames);
            batch.ends.push((frames.len(), joined));
        }
    }
}

impl Shared<'_> {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no worker panics")
    }

    /// Works until the queue is closed.
    fn help(&self) {
        /// Tells the others when this worker panics.
        struct Guard<'a, 'b>(&'a Shared<'b>);
        impl Drop for Guard<'_, '_> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    self.0.queue().is_broken = true;
                    self.0.changed.notify_all();
                }
            }
        }
        let _guard = Guard(self);
        let mut worker = Worker::default();
        let mut queue = self.queue();
        loop {
            if let Some((number, mut batch)) = queue.todo.pop_front() {
                drop(queue);
                worker.unwind(&mut batch, self);
                queue = self.queue();
                queue.done.insert(number, batch);
                self.changed.notify_all();
            } else if queue.is_closed {
                return;
            } else {
                queue = self.changed.wait(queue).expect("no worker panics");
            }
        }
    }
}

impl<'scope, 'env> Unwinders<'scope, 'env> {
    pub(super) fn new(scope: Workers<'scope, 'env>, how: Unwinding<'env>) -> Self {
        Unwinders {
            scope,
            shared: Arc::new(Shared {
                source: how.rules,
                images: Mutex::default(),
                queue: Mutex::default(),
                changed: Condvar::new(),
            }),
            helpers: how.workers.get() - 1,
            own: Worker::default(),
            next_given: 0,
            next_taken: 0,
        }
    }

    /// Announces the images that appeared since the last call.
    pub(super) fn learn(&mut self, images: &IdVec<ImageId, Image>, os_release: Option<&str>) {
        let mut known = self.shared.images.lock().expect("no worker panics");
        if images.len() == known.len() {
            return;
        }
        let os_release: Option<Arc<str>> = os_release.map(Arc::from);
        let new: Vec<_> = images
            .iter()
            .skip(known.len())
            .map(|image| {
                Arc::new(ImageRules {
                    image: image.clone(),
                    os_release: os_release.clone(),
                    rules: OnceLock::new(),
                })
            })
            .collect();
        known.extend(new);
    }

    /// How many batches were given and not yet taken back.
    pub(super) fn in_work(&self) -> u64 {
        self.next_given - self.next_taken
    }

    pub(super) fn give(&mut self, batch: Batch) {
        if self.helpers > 0 {
            let shared = self.shared.clone();
            // Without a thread, the reading one does the work when it has to wait.
            self.helpers = match self.scope.start(move || shared.help()) {
                Ok(_) => self.helpers - 1,
                Err(_) => 0,
            };
        }
        self.shared.queue().todo.push_back((self.next_given, batch));
        self.next_given += 1;
        self.shared.changed.notify_all();
    }

    /// Takes the next batch back; `None` when the workers have no batch.
    pub(super) fn take(&mut self) -> Option<Batch> {
        // What the workers have not begun is done here meanwhile.
        if self.in_work() == 0 {
            return None;
        }
        let number = self.next_taken;
        self.next_taken += 1;
        let mut queue = self.shared.queue();
        loop {
            assert!(!queue.is_broken, "no worker panics");
            if let Some(batch) = queue.done.remove(&number) {
                return Some(batch);
            }
            if let Some((other, mut batch)) = queue.todo.pop_front() {
                drop(queue);
                self.own.unwind(&mut batch, &self.shared);
                queue = self.shared.queue();
                queue.done.insert(other, batch);
            } else {
                queue = self.shared.changed.wait(queue).expect("no worker panics");
            }
        }
    }

    #[cfg(feature = "record")]
    pub(super) fn can_read(&self, image: &Image) -> bool {
        self.shared.source.can_read(image)
    }

    pub(super) fn unwind(&mut self, batch: &mut Batch) {
        self.own.unwind(batch, &self.shared);
    }
}

impl Drop for Unwinders<'_, '_> {
    fn drop(&mut self) {
        // After a panic elsewhere the lock may be gone; then nobody waits for it.
        if let Ok(mut queue) = self.shared.queue.lock() {
            queue.is_closed = true;
            queue.todo.clear();
        }
        self.shared.changed.notify_all();
    }
}
