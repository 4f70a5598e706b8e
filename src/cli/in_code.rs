//! Whether calls that only the code has are shown: the same choice for every view.

use clap::ValueEnum;
use proftool::input::StaticCalls;
use proftool::profile::Profile;

use super::query::Query;
use super::query::open::Needs;

/// Which calls of the code are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InCode {
    /// Calls between sampled functions; they form no cycles.
    Auto,
    /// All calls in the sampled files; they form cycles.
    On,
    Off,
}

impl InCode {
    // Reads the profile with these calls, and with what ranges need where the code is not to be
    // left out.
    pub fn open(self, query: &Query) -> anyhow::Result<Profile> {
        query.open(Needs {
            calls: self.calls(),
            ranges: self != InCode::Off,
            ..Needs::STACKS
        })
    }

    pub fn calls(self) -> StaticCalls {
        match self {
            InCode::Auto => StaticCalls::Sampled,
            InCode::On => StaticCalls::All,
            InCode::Off => StaticCalls::Off,
        }
    }
}
