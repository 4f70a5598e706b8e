//! Call chains that were met before: most samples of a long recording repeat one.

use std::hash::{BuildHasher, RandomState};

use rustc_hash::{FxBuildHasher, FxHashMap};
use twox_hash::XxHash3_128;

use crate::perfdata::Words;

use super::AddressPathId;
use super::chain::Shape;

/// The path of each chain. A chain is known by 128 bits of hash with a seed that no file can
/// foresee: that two differ and agree in these will not happen.
pub(super) struct Remembered {
    seed: u64,
    paths: FxHashMap<u128, (AddressPathId, Shape)>,
}

/// What the path of a chain depends on beside its addresses.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Circumstances {
    pub(super) pid: i32,
    /// How often the process's memory and the kernel's had changed.
    pub(super) generations: (u32, u32),
    /// The flags of the record.
    pub(super) misc: u16,
    pub(super) event: usize,
}

/// Names a chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key(u128);

impl Remembered {
    pub(super) fn new() -> Remembered {
        Remembered {
            seed: RandomState::new().hash_one(0),
            paths: FxHashMap::default(),
        }
    }

    pub(super) fn key(&self, chain: Words<'_>, circumstances: Circumstances) -> Key {
        let seed = self.seed ^ FxBuildHasher.hash_one(circumstances);
        Key(XxHash3_128::oneshot_with_seed(seed, chain.bytes()))
    }

    pub(super) fn get(&self, key: Key) -> Option<(AddressPathId, Shape)> {
        self.paths.get(&key.0).copied()
    }

    pub(super) fn insert(&mut self, key: Key, path: AddressPathId, shape: Shape) {
        self.paths.insert(key.0, (path, shape));
    }
}
