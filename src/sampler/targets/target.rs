//! What is sampled: a command that is held before its exec, or processes that already run.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::cgroup;
use super::descendants;
use crate::base::utf8;
use crate::sampler::capabilities;
use crate::sampler::error::{Error, Note};
use crate::sampler::status::field;

// The longest name that the kernel keeps of a process.
const NAME_MAX: usize = 15;

/// Who is sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A process of ours that has not called exec yet, and all that it starts. Sampling begins
    /// with the exec.
    Held(i32),
    /// Processes that run, with the threads and processes that they start from now on.
    Processes(Vec<i32>),
    /// A process that runs and what it has started, as [`Target::Processes`].
    Tree(i32),
    /// Threads that run, and nothing that they start. The kernel does not report libraries that
    /// other threads of the process load from now on.
    Threads(Vec<i32>),
    /// All that runs on these processors; on all processors with `None`.
    Processors(Option<Vec<u32>>),
    /// All that runs in a control group and those below it: a directory of the cgroup2 file
    /// system, or its path in it.
    Cgroup(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sampler) struct Group {
    pub(in crate::sampler) pid: i32,
    pub(in crate::sampler) threads: Vec<i32>,
}

impl Target {
    /// The processes that have this name now, as `/proc/PID/comm` and `ps -o comm` have it. Those
    /// that this user may not record are left out and reported, unless there are no others.
    ///
    /// # Errors
    ///
    /// If there is no other process than this one.
    pub fn named(name: &str) -> Result<(Target, Option<Note>), Error> {
        let mut kept = NAME_MAX.min(name.len());
        while !name.is_char_boundary(kept) {
            kept -= 1;
        }
        let own = std::process::id() as i32;
        let mut found = processes();
        found.retain(|&pid| {
            let comm = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
            pid != own && comm.strip_suffix(b"\n").unwrap_or(&comm) == &name.as_bytes()[..kept]
        });
        if found.is_empty() {
            return Err(Error::NoneNamed {
                name: name.to_owned(),
            });
        }
        // If only zombies have the name, `check` reports them.
        if found.iter().any(|&pid| !has_ended(pid, false)) {
            found.retain(|&pid| !has_ended(pid, false));
        }
        let (permitted, others): (Vec<i32>, Vec<i32>) =
            found.iter().partition(|&&pid| capabilities::permits(pid));
        Ok(if permitted.is_empty() || others.is_empty() {
            (Target::Processes(found), None)
        } else {
            let of = found.len();
            let processes = others.iter().map(|&pid| (pid, user(pid))).collect();
            let note = Note::LeftOut { processes, of };
            (Target::Processes(permitted), Some(note))
        })
    }

    /// Returns whether it is a control group without any process now.
    pub fn is_empty_group(&self) -> bool {
        matches!(self, Target::Cgroup(path) if cgroup::is_empty(path))
    }

    pub(in crate::sampler) fn is_of_tasks(&self) -> bool {
        !matches!(self, Target::Processors(_) | Target::Cgroup(_))
    }

    pub(in crate::sampler) fn inherits(&self) -> bool {
        self.is_of_tasks() && !matches!(self, Target::Threads(_))
    }

    /// Checks that every process or thread exists and has not ended.
    ///
    /// # Errors
    ///
    /// The first that does not exist or has ended.
    pub fn check(&self) -> Result<(), Error> {
        let (numbers, thread) = match self {
            Target::Processes(pids) => (pids, false),
            Target::Threads(tids) => (tids, true),
            _ => return Ok(()),
        };
        let there = |number: i32| Path::new(&format!("/proc/{number}")).is_dir();
        for &number in numbers {
            if !there(number) {
                return Err(Error::NoTask { number, thread });
            }
            if has_ended(number, thread) {
                return Err(Error::Zombie { number, thread });
            }
        }
        Ok(())
    }

    /// Returns the processes whose threads may be sampled now; of threads, the threads.
    pub fn processes(&self) -> Vec<i32> {
        match self {
            Target::Held(pid) => vec![*pid],
            Target::Processes(pids) | Target::Threads(pids) => pids.clone(),
            Target::Tree(pid) => tree(*pid),
            Target::Processors(_) => processes(),
            Target::Cgroup(path) => cgroup::processes(path),
        }
    }

    pub(in crate::sampler) fn tasks(&self) -> Vec<i32> {
        match self {
            Target::Held(pid) => vec![*pid],
            Target::Threads(tids) => tids.clone(),
            Target::Processes(pids) => pids.iter().flat_map(|&pid| threads(pid)).collect(),
            Target::Tree(pid) => tree(*pid).into_iter().flat_map(threads).collect(),
            Target::Processors(_) | Target::Cgroup(_) => Vec::new(),
        }
    }

    /// Everybody who may be seen in samples and runs now, with all threads where all are meant.
    /// Of a control group that is everybody: a process may enter it at any time.
    pub(in crate::sampler) fn existing(&self) -> Vec<Group> {
        let whole = |pids: Vec<i32>| -> Vec<Group> {
            pids.into_iter()
                .map(|pid| Group {
                    pid,
                    threads: threads(pid),
                })
                .collect()
        };
        match self {
            Target::Held(_) => Vec::new(),
            Target::Processes(pids) => whole(pids.iter().map(|&pid| leader(pid)).collect()),
            Target::Tree(pid) => whole(tree(*pid)),
            Target::Threads(tids) => tids
                .iter()
                .map(|&tid| Group {
                    pid: leader(tid),
                    threads: vec![tid],
                })
                .collect(),
            Target::Processors(_) | Target::Cgroup(_) => whole(processes()),
        }
    }
}

/// Whether a thread, or every thread of a process, has ended and is still there for its exit status
/// to be read. The first thread of a process may end before the others.
fn has_ended(number: i32, thread: bool) -> bool {
    // "PID (NAME) STATE …"; the name may hold spaces and parentheses.
    let is_zombie = |tid: i32| {
        let stat = fs::read(format!("/proc/{tid}/stat")).unwrap_or_default();
        let after = stat.iter().rposition(|&byte| byte == b')');
        let state = after.and_then(|at| stat.get(at + 2));
        matches!(state, Some(b'Z' | b'X'))
    };
    is_zombie(number) && (thread || threads(number).into_iter().all(is_zombie))
}

fn processes() -> Vec<i32> {
    numbered(Path::new("/proc"))
}

fn threads(pid: i32) -> Vec<i32> {
    numbered(Path::new(&format!("/proc/{pid}/task")))
}

fn tree(pid: i32) -> Vec<i32> {
    let mut all = vec![pid];
    all.extend(descendants::of(pid));
    all
}

fn leader(tid: i32) -> i32 {
    let status = fs::read(format!("/proc/{tid}/status")).unwrap_or_default();
    let leader = field(&utf8(&status), "Tgid").and_then(|number| number.parse().ok());
    leader.unwrap_or(tid)
}

pub(in crate::sampler) fn user(tid: i32) -> Option<u32> {
    Some(fs::metadata(format!("/proc/{tid}/stat")).ok()?.uid())
}

fn numbered(directory: &Path) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::workers;

    #[test]
    fn this_process_has_its_threads() {
        let pid = std::process::id() as i32;
        let target = Target::Processes(vec![pid]);
        assert!(target.check().is_ok());
        assert!(target.tasks().contains(&pid));
        let group = &target.existing()[0];
        assert!(group.pid == pid && group.threads.contains(&pid));
        // A thread is not a process: it belongs to one.
        let other = workers::start(move || {
            let tid: i32 = fs::read_link("/proc/thread-self")
                .unwrap()
                .file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .parse()
                .unwrap();
            Target::Threads(vec![tid]).existing()
        });
        let Ok(Ok(other)) = other.map(|thread| thread.join()) else {
            panic!("no other thread");
        };
        assert!(other[0].pid == pid && other[0].threads != [pid]);
    }

    #[test]
    fn missing_targets_are_reported() {
        let gone = Target::Processes(vec![1, i32::MAX]);
        let message = gone.check().unwrap_err().to_string();
        assert_eq!(message, "there is no process 2147483647");
        let gone = Target::Threads(vec![-7]);
        let message = gone.check().unwrap_err().to_string();
        assert_eq!(message, "there is no thread -7");
        let error = Target::named("no such name").unwrap_err();
        assert_eq!(error.to_string(), "no process is named \"no such name\"");
    }
}
