//! The section that says what compilers and linkers were started for.
//!
//! Only proftool writes and reads it. The kernel tells the name of a program, and nothing tells its
//! arguments once it has ended.

use super::super::cursor::Cursor;
use super::super::error::Flaw;

/// What a process does from one exec to the next, if it is a compiler or a linker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The time of the exec in nanoseconds, by the clock of the samples; 0 if it was before the recording.
    pub time: u64,
    /// The process.
    pub pid: i32,
    /// The program and what it was given: `cc1 lib/parse.c`, `rustc serde`.
    pub name: String,
}

impl Job {
    /// The furthest that the time of a job may be from that of the exec's record. The kernel gives each
    /// event that it tells of an exec the time anew.
    pub(crate) const TOLERANCE: u64 = 1_000_000;

    /// Reads the section; the jobs are in order of time.
    pub(super) fn read(mut c: Cursor<'_>) -> Result<Vec<Job>, Flaw> {
        let count = c.u32("the number of jobs")?;
        // Each takes 16 bytes and more: a count beyond that ends in an error.
        let jobs = (0..count).map(|_| {
            Ok(Job {
                time: c.u64("the time of a job")?,
                pid: c.i32("the process of a job")?,
                name: c.header_string("the name of a job")?,
            })
        });
        let mut jobs = jobs.collect::<Result<Vec<_>, Flaw>>()?;
        jobs.sort_by_key(|job| (job.time, job.pid));
        Ok(jobs)
    }
}
