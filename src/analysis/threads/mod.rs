//! The weight of each thread and of each command name.

pub mod timeline;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::base::IdVec;
use crate::profile::{Profile, Selection, ThreadId};

/// The weight of each thread, with the heaviest first; threads without samples are left out.
pub fn by_thread(profile: &Profile, selection: &Selection) -> Vec<(ThreadId, u64)> {
    let mut weights = IdVec::filled(0u64, profile.threads.len());
    let mut present = IdVec::filled(false, profile.threads.len());
    for row in selection.rows() {
        weights[row.thread] += row.weight;
        present[row.thread] = true;
    }
    let ids = profile.threads.ids().filter(|&id| present[id]);
    let mut rows: Vec<(ThreadId, u64)> = ids.map(|id| (id, weights[id])).collect();
    let name = |id: ThreadId| {
        let thread = &profile.threads[id];
        (&thread.comm, thread.pid, thread.tid)
    };
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| name(a.0).cmp(&name(b.0))));
    rows
}

/// The weight of each command name, with the heaviest first; for compilers and linkers that of each
/// input they were started for, where it is known.
pub fn by_command<'a>(profile: &'a Profile, selection: &Selection) -> Vec<(&'a str, u64)> {
    let mut weights: BTreeMap<&str, u64> = BTreeMap::new();
    for (thread, weight) in by_thread(profile, selection) {
        *weights
            .entry(profile.threads[thread].command())
            .or_default() += weight;
    }
    let mut rows: Vec<(&str, u64)> = weights.into_iter().collect();
    rows.sort_by_key(|&(_, weight)| Reverse(weight));
    rows
}
