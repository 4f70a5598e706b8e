//! The reasons why calls are not counted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Why a call site is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Reason {
    /// Its function does not state where it ends: what looks like a call may be data behind it.
    NoBounds,
    /// No known way leads to it: it may be data that look like a call.
    Unreached,
    /// It is a jump of two bytes, or of another form that cannot lead to a stub.
    Form,
    /// It leads into the middle of a function.
    Inside,
    /// No stub is within its reach.
    Reach,
    /// The memory of the program differs from the file.
    Changed,
    /// It is code of another machine than x86-64.
    Machine,
}

/// The number of calls that are not counted, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftAlone {
    /// Direct calls.
    pub sites: BTreeMap<Reason, u64>,
    /// Calls through pointers, whose callees are known only at run time.
    pub indirect: u64,
}

impl LeftAlone {
    pub(super) fn add(&mut self, reason: Reason) {
        *self.sites.entry(reason).or_default() += 1;
    }

    pub(super) fn merge(&mut self, other: &LeftAlone) {
        for (&reason, count) in &other.sites {
            *self.sites.entry(reason).or_default() += count;
        }
        self.indirect = self.indirect.saturating_add(other.indirect);
    }
}
