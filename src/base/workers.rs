//! Threads: the one place where they are made.
//!
//! Anything may forbid another thread: a limit of processes of a user (`RLIMIT_NPROC`), of a
//! container (`pids.max`), of address space (`RLIMIT_AS`). So [`Workers::start`] and [`start`]
//! return the work where no thread can be made, and the caller does it itself, or does without it:
//!
//! ```
//! use proftool::base::workers;
//! let (mut one, mut other) = (0, 0);
//! workers::scope(|workers| {
//!     let started = workers.start(|| one = 1);
//!     other = 2;
//!     // Without a thread it is done now.
//!     if let Err(work) = started {
//!         work();
//!     }
//! });
//! assert_eq!((one, other), (1, 2));
//! ```
//!
//! The rule of the map: no other file makes threads (`tests/suite/pure/architecture.rs`).

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Scope, ScopedJoinHandle, Thread};

/// Makes threads that end before [`scope`] returns.
#[derive(Clone, Copy, Debug)]
pub struct Workers<'scope, 'env: 'scope>(&'scope Scope<'scope, 'env>);

/// A thread that ends before [`scope`] returns.
#[derive(Debug)]
pub struct Worker<'scope, T>(ScopedJoinHandle<'scope, T>);

/// A thread that ends when it likes.
#[derive(Debug)]
pub struct Task<T>(JoinHandle<T>);

/// Runs `work`, which may start threads that borrow what is outside of it. Returns when all of them
/// have ended. If one of them panics, so does this.
pub fn scope<'env, T>(work: impl for<'scope> FnOnce(Workers<'scope, 'env>) -> T) -> T {
    thread::scope(|scope| work(Workers(scope)))
}

impl<'scope, 'env> Workers<'scope, 'env> {
    /// Starts this work in a thread of its own.
    ///
    /// # Errors
    ///
    /// The work, where no thread can be made.
    pub fn start<T: Send + 'scope, F>(self, work: F) -> Result<Worker<'scope, T>, F>
    where
        F: FnOnce() -> T + Send + 'scope,
    {
        with_thread(work, |work| {
            let started = thread::Builder::new().spawn_scoped(self.0, work);
            started.ok().map(Worker)
        })
    }
}

/// Starts this work in a thread of its own, which nobody has to wait for.
///
/// # Errors
///
/// The work, where no thread can be made.
pub fn start<T: Send + 'static, F>(work: F) -> Result<Task<T>, F>
where
    F: FnOnce() -> T + Send + 'static,
{
    with_thread(work, |work| {
        thread::Builder::new().spawn(work).ok().map(Task)
    })
}

fn with_thread<'a, T, F: FnOnce() -> T + Send + 'a, Started>(
    work: F,
    make: impl FnOnce(Box<dyn FnOnce() -> T + Send + 'a>) -> Option<Started>,
) -> Result<Started, F> {
    let place = Arc::new(Mutex::new(Some(work)));
    let take = |place: &Mutex<Option<F>>| {
        let work = place.lock().unwrap_or_else(PoisonError::into_inner).take();
        work.expect("one of both takes it")
    };
    let given = Arc::clone(&place);
    make(Box::new(move || take(&given)())).ok_or_else(|| take(&place))
}

impl<T> Worker<'_, T> {
    /// Waits for the thread to end; what it returned.
    ///
    /// # Errors
    ///
    /// What it panicked with.
    pub fn join(self) -> thread::Result<T> {
        self.0.join()
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// The thread.
    pub fn thread(&self) -> &Thread {
        self.0.thread()
    }
}

impl<T> Task<T> {
    /// Waits for the thread to end; what it returned.
    ///
    /// # Errors
    ///
    /// What it panicked with.
    pub fn join(self) -> thread::Result<T> {
        self.0.join()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_given_back_where_there_is_no_thread() {
        let mut done = 0;
        let refused: Result<(), _> = with_thread(|| done += 1, |_| None);
        refused.unwrap_err()();
        assert_eq!(done, 1);
    }

    #[test]
    fn work_is_done_once_in_a_thread() {
        let own = thread::current().id();
        let other = scope(|workers| {
            let worker = workers.start(|| thread::current().id());
            worker.ok().map(|worker| worker.join().unwrap())
        });
        assert!(other.is_some_and(|other| other != own));
        let task = start(|| thread::current().id());
        assert!(task.ok().is_some_and(|task| task.join().unwrap() != own));
    }
}
