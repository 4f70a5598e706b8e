//! A cache of call chains: most samples of a long recording repeat one.

use std::hash::BuildHasher;

use hashbrown::DefaultHashBuilder;
use rustc_hash::FxHashMap;
use twox_hash::XxHash3_128;

use crate::perfdata::Words;

use super::samples::SampleId;
use super::stacks::{Memory, Stack};

/// What a chain was found to be, each time under the same circumstances.
///
/// A chain is known by 128 bits of hash with a seed that no file can foresee: that two differ and
/// agree in these will not happen.
pub(super) struct KnownChains {
    seeds: DefaultHashBuilder,
    chains: FxHashMap<u128, Met>,
}

/// What the stack of a chain depends on apart from its addresses, and what its sample counts for.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Circumstances {
    pub(super) pid: i32,
    pub(super) tid: i32,
    pub(super) memory: Memory,
    /// The flags of the record.
    pub(super) misc: u16,
    pub(super) event: usize,
    pub(super) ip: Option<u64>,
}

/// Names a chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key(u128);

/// A chain that occurred before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    pub(super) stack: Stack,
    /// The row of samples that it was counted in last.
    pub(super) sample: Option<SampleId>,
}

impl KnownChains {
    pub(super) fn new() -> KnownChains {
        KnownChains {
            seeds: DefaultHashBuilder::default(),
            chains: FxHashMap::default(),
        }
    }

    pub(super) fn key(&self, chain: Words<'_>, circumstances: Circumstances) -> Key {
        let seed = self.seeds.hash_one(circumstances);
        Key(XxHash3_128::oneshot_with_seed(seed, chain.bytes()))
    }

    pub(super) fn get(&self, key: Key) -> Option<Met> {
        self.chains.get(&key.0).copied()
    }

    /// How many chains it remembers.
    pub(super) fn len(&self) -> usize {
        self.chains.len()
    }

    pub(super) fn insert(&mut self, key: Key, met: Met) {
        self.chains.insert(key.0, met);
    }
}
