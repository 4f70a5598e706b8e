//! Finds the lists of code that a process generated, and whether they are of this process.

use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::binary::{Error, JitDump, PerfMap};
use crate::files::{LastLink, ProcessView, Root};

/// When a process ran, as far as its recording says. Its number and the name of its map may have
/// been another's before, and may be another's since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessTimes {
    /// When it started, or became the program that generated code.
    pub began: Option<SystemTime>,
    /// A time at which it had started.
    pub seen: Option<SystemTime>,
}

impl ProcessTimes {
    // A process that started then.
    fn may_be(self, started: Option<SystemTime>) -> bool {
        // The start of the machine is known to a second, and clocks are set.
        const SLACK: Duration = Duration::from_secs(5);
        let both = started.zip(self.seen);
        both.is_none_or(|(started, seen)| started <= seen + SLACK)
    }
}

// Reads the map of a process below its own root while it lives, else below `root`.
pub(super) fn read(root: &Root, pid: u32, times: ProcessTimes) -> Result<PerfMap, Error> {
    let view = process(root, pid, times);
    if let Some(view) = &view {
        let began = times.began.max(view.started);
        let path = view.perf_map();
        match PerfMap::read_below(&view.root, &path, Some(view.user), began) {
            Err(Error::NotFound) => {}
            result => return result,
        }
    }
    let began = times.began.filter(|_| is_here(root));
    let user = view.map(|view| view.user);
    PerfMap::read_below(root, &PerfMap::path(pid), user, began)
}

/// Reads the jitdump file of a process, which has mapped it by this path.
pub(super) fn read_dump(
    root: &Root,
    path: &Path,
    pid: i32,
    times: ProcessTimes,
) -> Result<JitDump, Error> {
    let pid = u32::try_from(pid).ok();
    let read =
        |root: &Root, user| JitDump::read_opened(root.open(path, LastLink::Refuse)?, path, user);
    let view = pid.and_then(|pid| process(root, pid, times));
    if let Some(view) = view.filter(|view| view.is_elsewhere) {
        match read(&view.root, Some(view.user)) {
            Err(Error::NotFound) => {}
            result => return result,
        }
    }
    read(root, None)
}

/// The process of this number, if it lives here and may be that of the recording.
fn process(root: &Root, pid: u32, times: ProcessTimes) -> Option<ProcessView> {
    let view = is_here(root).then(|| ProcessView::of(pid)).flatten();
    view.filter(|view| times.may_be(view.started))
}

/// Whether paths lead to files of this machine. What stands for `/` has those of another one.
fn is_here(root: &Root) -> bool {
    root.directory().is_none()
}
