//! Control groups: their directories in the cgroup2 file system, and who is in them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::base::system_reason;
use crate::sampler::error::Error;

// The largest number of groups below one that are read.
const GROUPS: usize = 10_000;

/// The directory of a control group: the path itself if it leads to one, else below the cgroup2
/// file system.
pub(in crate::sampler) fn directory(path: &Path) -> Result<PathBuf, Error> {
    let refused = |reason: String| Error::Cgroup {
        path: path.to_owned(),
        reason,
    };
    let mounts = fs::read_to_string("/proc/self/mounts").map_err(|e| refused(system_reason(&e)))?;
    let mounted = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let place = words.next()?;
        (words.next()? == "cgroup2").then(|| PathBuf::from(place))
    });
    let mounted = mounted.ok_or_else(|| refused("no cgroup2 file system is mounted".into()))?;
    let directory = if path.starts_with(&mounted) {
        path.to_owned()
    } else {
        mounted.join(path.strip_prefix("/").unwrap_or(path))
    };
    match fs::metadata(directory.join("cgroup.procs")) {
        Ok(_) => Ok(directory),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(refused(format!(
            "there is no such control group below {}",
            mounted.display()
        ))),
        Err(error) => Err(refused(system_reason(&error))),
    }
}

/// Returns whether neither a control group nor any group below it has a process now. The root group
/// does not report this, and is never empty.
pub(in crate::sampler) fn is_empty(path: &Path) -> bool {
    let events = directory(path)
        .map(|group| fs::read_to_string(group.join("cgroup.events")))
        .ok()
        .and_then(Result::ok)
        .unwrap_or_default();
    events.lines().any(|line| line == "populated 0")
}

/// Returns the PIDs that are now in a control group and the groups below it, in ascending order.
/// Groups that cannot be read are skipped.
pub(in crate::sampler) fn processes(path: &Path) -> Vec<i32> {
    let mut waiting: Vec<PathBuf> = directory(path).into_iter().collect();
    let mut seen = waiting.len();
    let mut pids = Vec::new();
    while let Some(group) = waiting.pop() {
        let members = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        // 0 is a process outside of our PID namespace.
        pids.extend(
            members
                .lines()
                .filter_map(|line| line.parse().ok())
                .filter(|&pid: &i32| pid > 0),
        );
        let entries = fs::read_dir(&group).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        for below in below.take(GROUPS - seen) {
            seen += 1;
            waiting.push(below.path());
        }
    }
    pids.sort_unstable();
    pids
}
