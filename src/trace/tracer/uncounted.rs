//! Which files run in programs whose calls are not counted, in recordings with counted calls.
//!
//! A program that is started by exec has none of the stubs of the one before. It maps its files,
//! and if it is followed, stubs after them.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

/// The files of programs that were started by exec and have no stubs.
#[derive(Debug, Default)]
pub(in crate::trace) struct Uncounted {
    /// What these have mapped so far, by process.
    running: FxHashMap<i32, FxHashSet<Arc<str>>>,
    ended: FxHashSet<Arc<str>>,
}

impl Uncounted {
    /// A process executes a program.
    pub(super) fn exec(&mut self, pid: i32) {
        self.exit(pid);
        self.running.insert(pid, FxHashSet::default());
    }

    pub(super) fn map(&mut self, pid: i32, path: &Arc<str>) {
        if let Some(files) = self.running.get_mut(&pid) {
            files.insert(Arc::clone(path));
        }
    }

    /// The calls of a process are counted.
    pub(super) fn map_stubs(&mut self, pid: i32) {
        self.running.remove(&pid);
    }

    pub(super) fn exit(&mut self, pid: i32) {
        self.ended
            .extend(self.running.remove(&pid).unwrap_or_default());
    }

    pub(in crate::trace) fn has(&self, path: &str) -> bool {
        let mut running = self.running.values();
        self.ended.contains(path) || running.any(|files| files.contains(path))
    }
}
