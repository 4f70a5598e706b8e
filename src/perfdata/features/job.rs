//! The section with the inputs of compilers and linkers.
//!
//! Only proftool writes and reads it. The kernel reports the name of a program, but its arguments
//! cannot be read once it has ended.

use super::super::cursor::Cursor;
use super::super::error::Flaw;

/// What a process does from one exec to the next, if it is a compiler or a linker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The time of the exec in nanoseconds, by the clock of the samples; 0 if it was before the
    /// recording.
    pub time: u64,
    pub pid: i32,
    /// The program and what it was given: `cc1 lib/parse.c`, `rustc serde`.
    pub name: String,
}

impl Job {
    /// Reads the section; the jobs are in order of time.
    pub(super) fn read(mut c: Cursor<'_>) -> Result<Vec<Job>, Flaw> {
        let count = c.u32("the number of jobs")?;
        // Each takes 16 bytes and more: a count beyond that ends in an error.
        let mut jobs = (0..count)
            .map(|_| {
                Ok(Job {
                    time: c.u64("the time of a job")?,
                    pid: c.i32("the process of a job")?,
                    name: c.header_string("the name of a job")?,
                })
            })
            .collect::<Result<Vec<_>, Flaw>>()?;
        jobs.sort_by_key(|job| (job.time, job.pid));
        Ok(jobs)
    }

    /// What a process does from the exec on that has a record of this time. The jobs are in order
    /// of time.
    pub(crate) fn at(jobs: &[Job], pid: i32, time: u64) -> Option<&Job> {
        // Nanoseconds. The kernel reads the clock for each event that reports an exec, and the two
        // readings were up to 18 µs apart. A shell needs some 600 µs until it starts a compiler, so
        // a wider window would name the shell after it.
        const APART: u64 = 100_000;
        let first = jobs.partition_point(|job| job.time < time.saturating_sub(APART));
        let near = jobs[first..]
            .iter()
            .take_while(|job| job.time <= time.saturating_add(APART));
        near.filter(|job| job.pid == pid)
            .min_by_key(|job| job.time.abs_diff(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_belongs_to_the_nearest_exec_of_its_process() {
        let job = |time, pid, name: &str| Job {
            time,
            pid,
            name: name.to_owned(),
        };
        let jobs = [
            job(900_000, 8, "cc1 other.c"),
            job(1_000_000, 7, "gcc x.c"),
            job(1_060_000, 7, "cc1 x.c"),
        ];
        let at = |pid, time| Job::at(&jobs, pid, time).map(|job| job.name.as_str());
        assert_eq!(at(7, 1_000_018), Some("gcc x.c"));
        assert_eq!(at(7, 1_050_000), Some("cc1 x.c"));
        assert_eq!(at(8, 899_990), Some("cc1 other.c"));
        // The shell that became the compiler 600 µs later.
        assert_eq!(at(7, 400_000), None);
        assert_eq!(at(9, 1_000_000), None);
        assert_eq!(at(7, u64::MAX), None);
        assert_eq!(at(7, 0), None);
    }
}
