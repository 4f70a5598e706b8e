//! How a running process sees files and its own number: in a container, otherwise than others do.
//!
//! ```text
//! /proc/PID/root       where its paths begin; can be walked, whatever it is
//! /proc/PID/status     NStgid: 1208 1    its number here, and in each inner PID namespace
//! /proc/PID/stat       when it started, in ticks after the start of the machine
//! ```

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Root;

/// What a process sees of itself and of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessView {
    /// Where its paths begin.
    pub root: Root,
    /// Its number in the innermost of its PID namespaces.
    pub pid: u32,
    /// The user that it runs as.
    pub user: u32,
    /// When it started, to about a second.
    pub started: Option<SystemTime>,
    /// Whether its paths or its number are others than here.
    pub is_elsewhere: bool,
}

impl ProcessView {
    /// Looks at the process of this number; `None` if it has ended or may not be looked at.
    pub fn of(pid: u32) -> Option<ProcessView> {
        let process = directory(pid);
        let task = directory(living_thread(pid)?);
        let status = fs::read_to_string(task.join("status")).unwrap_or_default();
        let inner = status.lines().find_map(|line| {
            let numbers = line.strip_prefix("NStgid:")?;
            numbers.split_whitespace().last()?.parse().ok()
        });
        let inner = inner.unwrap_or(pid);
        let place = |task: &Path| Some((fs::read_link(task.join("ns/mnt")).ok()?, root_of(task)?));
        let own = place(Path::new("/proc/self"));
        Some(ProcessView {
            root: Root::at(&task.join("root")),
            pid: inner,
            user: fs::metadata(&process).ok()?.uid(),
            started: started(&process),
            is_elsewhere: inner != pid || place(&task) != own,
        })
    }

    /// Where the process lists the code that it generates, as it sees it.
    pub fn perf_map(&self) -> PathBuf {
        PathBuf::from(format!("/tmp/perf-{}.map", self.pid))
    }
}

/// Whether a file of this path is a list of generated code with times, by its name:
/// `jit-PID.dump`. The process maps the file, so that recordings name it.
pub fn is_jit_dump(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let pid = name.and_then(|name| name.strip_prefix("jit-")?.strip_suffix(".dump"));
    pid.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()))
}

fn root_of(task: &Path) -> Option<PathBuf> {
    fs::read_link(task.join("root")).ok()
}

fn directory(id: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{id}"))
}

/// A thread of a process by whose number `/proc` still shows memory and files: the first one,
/// unless it has ended before the others. `None` if all have, or it may not be known.
pub fn living_thread(pid: u32) -> Option<u32> {
    // No more threads are looked at.
    const MOST: usize = 64;
    if root_of(&directory(pid)).is_some() {
        return Some(pid);
    }
    let tasks = fs::read_dir(directory(pid).join("task")).ok()?;
    let tasks = tasks.filter_map(Result::ok).take(MOST);
    let mut ids = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
    ids.find(|&id| root_of(&directory(id)).is_some())
}

/// The 22nd field of `stat`, behind the name in parentheses, which may have any byte.
fn started(process: &Path) -> Option<SystemTime> {
    // The kernel states times to users in hundredths of a second (`USER_HZ`).
    const TICK: u64 = 10;
    let stat = fs::read(process.join("stat")).ok()?;
    let name = stat.iter().rposition(|&byte| byte == b')')?;
    let fields = String::from_utf8_lossy(&stat[name + 1..]);
    let ticks: u64 = fields.split_whitespace().nth(19)?.parse().ok()?;
    let after = Duration::from_millis(ticks.checked_mul(TICK)?);
    machine_started()?.checked_add(after)
}

fn machine_started() -> Option<SystemTime> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let seconds = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_sees_what_it_sees() {
        let own = fs::read_link("/proc/self").unwrap();
        let pid: u32 = own.to_str().unwrap().parse().unwrap();
        let view = ProcessView::of(pid).unwrap();
        assert!(!view.is_elsewhere && view.pid == pid, "{view:?}");
        let age = view.started.unwrap().elapsed().unwrap_or_default();
        assert!(age < Duration::from_secs(3600), "{view:?}");
        assert_eq!(ProcessView::of(i32::MAX as u32), None);
    }
}
