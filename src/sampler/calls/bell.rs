//! The bell: a page of memory that is shared with programs, by which they report to the recorder
//! and get answers.
//!
//! ```text
//!   0   lock      the thread that rings; 0 if it is free
//!   4   thread    24  process     as the program knows them
//!   8   open      whether somebody listens
//!   12  hears     whether somebody listens to what is about to be executed
//!   16  ring      1: it waits for an answer
//!   20  kind      1 libraries were loaded, 2 a program is to be executed, 3 that has failed; the
//!                 recorder sets it to 0 if it does not follow
//!   32  path      the address of the path of the program to be executed
//!   40  timeout   seconds and nanoseconds for which a program waits
//! ```
//!
//! A thread waits for the word `ring` to change (`futex`), and makes a descriptor readable.
#![expect(unsafe_code, reason = "eventfd has no safe interface")]

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::page::Page;
use crate::base::workers::{self, Task};
use crate::sampler::kernel::check;

// Where the page begins in the shared memory, behind the page of the code that rings.
const OFFSET: u64 = 4096;
// How many seconds a program waits for an answer.
const PATIENCE: u32 = 20;
// How often the recorder looks where no thread listens.
const LOOK: Duration = Duration::from_millis(5);

pub(super) const LOCK: usize = 0;
pub(super) const THREAD: usize = 4;
pub(super) const OPEN: usize = 8;
pub(super) const HEARS_EXECS: usize = 12;
pub(super) const RING: usize = 16;
pub(super) const KIND: usize = 20;
pub(super) const PROCESS: usize = 24;
pub(super) const PATH: usize = 32;
pub(super) const TIMEOUT: usize = 40;

// The value of `ring` when nobody listens any more.
const CLOSED: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Loads,
    Execs,
    /// It is still the same program.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) kind: Kind,
    pub(super) pid: i32,
    pub(super) thread: i32,
    /// The address in its memory of the path of what is to be executed.
    pub(super) path: u64,
}

#[derive(Debug)]
pub(super) struct Bell {
    page: Arc<Page>,
    heard: Arc<File>,
    ear: Option<Ear>,
    /// Whether a program had waited for too long when the bell was closed.
    was_left: bool,
}

#[derive(Debug)]
enum Ear {
    Thread(Task<()>),
    // The recorder, which looks every `LOOK`: no thread can be made.
    Recorder,
}

impl Bell {
    pub(super) fn hang(shared: &File) -> io::Result<Bell> {
        let page = Arc::new(Page::map(shared, OFFSET)?);
        page.word(TIMEOUT).store(PATIENCE, Ordering::Relaxed);
        // SAFETY: no memory is passed.
        let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        Ok(Bell {
            page,
            // SAFETY: the kernel has just made `fd` for us, and nothing else knows of it.
            heard: Arc::new(unsafe { File::from_raw_fd(fd) }),
            ear: None,
            was_left: false,
        })
    }

    /// Whether programs report what they are about to execute, while somebody listens.
    pub(super) fn hear_execs(&self, hears: bool) {
        self.set(HEARS_EXECS, u32::from(hears));
    }

    pub(super) fn listen(&mut self) {
        if self.ear.is_some() {
            return;
        }
        let (page, heard) = (Arc::clone(&self.page), Arc::clone(&self.heard));
        let ear = workers::start(move || hear(&page, &heard));
        self.ear = Some(ear.map_or(Ear::Recorder, Ear::Thread));
        self.page.word(OPEN).store(1, Ordering::Release);
    }

    /// How long nobody needs to look for a report, if the descriptor does not become readable.
    pub(super) fn quiet(&self) -> Option<Duration> {
        matches!(self.ear, Some(Ear::Recorder)).then_some(LOOK)
    }

    pub(super) fn heard(&self) -> BorrowedFd<'_> {
        self.heard.as_fd()
    }

    pub(super) fn report(&self) -> Option<Report> {
        let mut count = [0; 8];
        // It says when the descriptor was made readable, which does not matter.
        let _ = (&*self.heard).read(&mut count);
        self.waiting()
    }

    /// What [`Bell::report`] returns, without another look at the descriptor.
    pub(super) fn waiting(&self) -> Option<Report> {
        let number = |at| self.page.word(at).load(Ordering::Acquire);
        if number(RING) != 1 {
            return None;
        }
        let path = u64::from(number(PATH)) | u64::from(number(PATH + 4)) << 32;
        Some(Report {
            kind: match number(KIND) {
                1 => Kind::Loads,
                2 => Kind::Execs,
                _ => Kind::Failed,
            },
            pid: number(PROCESS).cast_signed(),
            thread: number(THREAD).cast_signed(),
            path,
        })
    }

    /// Whether programs still wait for answers; they do not if one has had none for long.
    pub(super) fn is_open(&self) -> bool {
        self.page.word(OPEN).load(Ordering::Acquire) != 0
    }

    pub(super) fn answer(&self) {
        self.set(RING, 0);
    }

    // Lets who is about to execute a program do so without being followed: it frees the lock
    // itself.
    pub(super) fn let_go(&self) {
        self.page.word(KIND).store(0, Ordering::Release);
        self.answer();
    }

    /// Frees the lock of a thread that has executed a program, or has ended.
    pub(super) fn free(&self) {
        self.set(LOCK, 0);
    }

    /// The thread that has the lock, as its program knows it; 0 if it is free.
    pub(super) fn holder(&self) -> i32 {
        self.page.word(LOCK).load(Ordering::Acquire).cast_signed()
    }

    pub(super) fn free_from(&self, holder: i32) {
        let (relaxed, holder) = (Ordering::Relaxed, holder.cast_unsigned());
        let lock = self.page.word(LOCK);
        if lock
            .compare_exchange(holder, 0, Ordering::AcqRel, relaxed)
            .is_ok()
        {
            self.page.wake(LOCK);
        }
    }

    pub(super) fn was_left(&self) -> bool {
        self.was_left
    }

    pub(super) fn close(&mut self) {
        self.was_left |= self.ear.is_some() && !self.is_open();
        self.set(OPEN, 0);
        self.set(HEARS_EXECS, 0);
        self.set(RING, CLOSED);
        self.set(LOCK, 0);
        if let Some(Ear::Thread(ear)) = self.ear.take() {
            // It has nothing to say.
            let _ = ear.join();
        }
    }

    fn set(&self, at: usize, value: u32) {
        self.page.word(at).store(value, Ordering::Release);
        self.page.wake(at);
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.close();
    }
}

/// Makes the descriptor readable each time when somebody rings, until the bell is closed.
fn hear(page: &Page, heard: &File) {
    loop {
        let ring = page.word(RING).load(Ordering::Acquire);
        match ring {
            CLOSED => return,
            // Another program may ring as soon as one was answered: each time may be the first.
            1 => {
                // It is full if nobody has looked for long; then it is readable.
                let _ = (&mut &*heard).write(&1u64.to_ne_bytes());
            }
            _ => {}
        }
        page.wait(RING, ring);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::sampler::calls::shared_memory;

    #[test]
    fn who_rings_is_heard_and_answered() {
        let shared = shared_memory::make().unwrap();
        let mut bell = Bell::hang(&shared).unwrap();
        bell.listen();
        assert!(bell.is_open());
        assert_eq!(bell.report(), None);
        // As a program does it, in its own mapping of the memory.
        let program = Page::map(&shared, OFFSET).unwrap();
        let ringing = workers::start(move || {
            for (at, value) in [(KIND, 2), (PROCESS, 77), (THREAD, 78), (PATH + 4, 1)] {
                program.word(at).store(value, Ordering::Release);
            }
            program.word(RING).store(1, Ordering::Release);
            program.wake(RING);
            while program.word(RING).load(Ordering::Acquire) == 1 {
                program.wait(RING, 1);
            }
        });
        let mut revents = Vec::new();
        let fds = [bell.heard().as_raw_fd()];
        while crate::sampler::kernel::poll(&fds, std::time::Duration::from_secs(1), &mut revents)
            .is_ok()
            && revents[0] == 0
        {}
        let report = bell.report().unwrap();
        let expected = Report {
            kind: Kind::Execs,
            pid: 77,
            thread: 78,
            path: 1 << 32,
        };
        assert_eq!(report, expected);
        bell.answer();
        assert!(ringing.is_ok_and(|thread| thread.join().is_ok()));
        assert_eq!(bell.report(), None);
        bell.close();
        assert!(!bell.is_open());
    }
}
