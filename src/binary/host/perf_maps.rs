//! Finds the map of code that a process generated, and whether it is of this process.

use std::time::{Duration, SystemTime};

use crate::binary::{Error, PerfMap};
use crate::files::{ProcessView, Root};

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

// Below the process's own root while it lives, else below `root`.
pub(super) fn read(root: &Root, pid: u32, times: ProcessTimes) -> Result<PerfMap, Error> {
    // What stands for `/` has the files of another machine.
    let is_here = root.directory().is_none();
    let view = is_here.then(|| ProcessView::of(pid)).flatten();
    let view = view.filter(|view| times.may_be(view.started));
    if let Some(view) = &view {
        let began = times.began.max(view.started);
        let path = view.perf_map();
        match PerfMap::read_below(&view.root, &path, Some(view.user), began) {
            Err(Error::NotFound) => {}
            result => return result,
        }
    }
    let began = times.began.filter(|_| is_here);
    let user = view.map(|view| view.user);
    PerfMap::read_below(root, &PerfMap::path(pid), user, began)
}
