//! A bound on what debug information may cost.
//!
//! A few bytes of DWARF can ask for much: a million inlined calls may share one list of a million
//! ranges. Every row, range and entry that is kept takes from one tank; when it is empty, what is
//! not yet read stays unknown.

use std::sync::atomic::{AtomicI64, Ordering};

/// Things that are kept, of some 24 bytes each: 32 million, 800 MB.
const KEPT_LIMIT: i64 = 1 << 25;

/// What is left in the tank.
#[derive(Debug)]
pub(super) struct Fuel(AtomicI64);

impl Default for Fuel {
    fn default() -> Fuel {
        Fuel(AtomicI64::new(KEPT_LIMIT))
    }
}

impl Fuel {
    /// Takes `n`; `false` when the tank was empty before.
    pub(super) fn take(&self, n: u32) -> bool {
        if self.is_spent() {
            return false;
        }
        // Some threads may come here together and leave it a little below zero.
        self.0.fetch_sub(i64::from(n), Ordering::Relaxed);
        true
    }

    /// Whether the tank is empty.
    pub(super) fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) <= 0
    }
}
