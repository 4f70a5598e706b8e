//! Sites that were given up, and the processes that still have their stubs.

use std::time::Instant;

use super::limit::SiteOfFile;

/// Sites that were given up and still lead to their stubs.
#[derive(Debug, Default)]
pub(super) struct GivenUp {
    pub(super) first: Option<i32>,
    pub(super) processes: Vec<Process>,
    pub(super) tried: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) sites: Vec<SiteOfFile>,
    pub(super) tries: u32,
}

impl GivenUp {
    /// This process and its descendants count.
    pub(super) fn begin(&mut self, pid: i32) {
        self.first = Some(pid);
    }
}
