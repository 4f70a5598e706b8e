//! A cache of call chains, with what was counted on each: most samples of a long recording repeat a
//! chain.

use std::hash::BuildHasher;
use std::hint::black_box;

use hashbrown::{DefaultHashBuilder, HashTable};
use twox_hash::XxHash3_128;

use crate::base::WeightSum;
use crate::perfdata::Words;

use super::samples::SampleKey;
use super::stacks::{Memory, Stack};
use super::{TraceEventId, TraceThreadId};

/// The stack of each chain and what its samples add up to, each time under the same circumstances.
///
/// A chain is known by 128 bits of hash with a seed that no file can foresee: that two differ and
/// agree in these will not happen.
pub(super) struct KnownChains {
    seeds: DefaultHashBuilder,
    /// The seed of the last circumstances: as a rule the next are the same.
    last: Option<(Circumstances, u64)>,
    counted: HashTable<Counted>,
    /// In order of appearance.
    chains: Vec<Chain>,
    /// What was counted on chains whose samples weigh differently.
    mixed: Vec<WeightSum>,
}

/// What the stack of a chain depends on apart from its addresses, and what its sample counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Circumstances {
    pub(super) pid: i32,
    pub(super) thread: TraceThreadId,
    pub(super) memory: Memory,
    /// The flags of the record.
    pub(super) misc: u16,
    pub(super) event: usize,
    /// The program counter, where the chain does not have it.
    pub(super) ip: Option<u64>,
    /// Whether the recorder has unwound it.
    pub(super) is_unwound: bool,
    /// Of a chain that is known by what it was before it went astray, whether it had two frames in
    /// user space at most.
    pub(super) is_shallow: Option<bool>,
}

/// Names a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(u128);

impl Key {
    /// The half by which the table is searched.
    fn short(self) -> u64 {
        self.0 as u64
    }
}

/// What a sample touches of a chain that occurred before. A long recording has more chains than the
/// caches of a processor hold, so this is what its samples cost.
#[derive(Clone, Copy, Debug)]
struct Counted {
    key: Key,
    chain: u32,
    /// How many samples were counted here since the sums were taken; [`MIXED`] once they weigh
    /// differently.
    count: u32,
    /// What each of them weighs; the place of their sum once they weigh differently.
    weight: u64,
}

// The count of a chain whose samples weigh differently. Those of a clock all weigh the same, so
// that few chains need a sum, which is one more place in memory.
const MIXED: u32 = u32::MAX;

const _: () = assert!(size_of::<Counted>() == 32);

/// A chain that occurred before: its stack, and the row that its samples belong to.
#[derive(Clone, Copy, Debug)]
struct Chain {
    stack: Stack,
    event: TraceEventId,
    thread: TraceThreadId,
}

impl Chain {
    fn sample(&self) -> SampleKey {
        SampleKey {
            event: self.event,
            thread: self.thread,
            path: self.stack.path,
        }
    }
}

impl KnownChains {
    pub(super) fn new() -> KnownChains {
        KnownChains {
            seeds: DefaultHashBuilder::default(),
            last: None,
            counted: HashTable::new(),
            chains: Vec::new(),
            mixed: Vec::new(),
        }
    }

    pub(super) fn key(&mut self, chain: Words<'_>, circumstances: Circumstances) -> Key {
        let last = self.last.filter(|(last, _)| *last == circumstances);
        let seed = match last {
            Some((_, seed)) => seed,
            None => {
                let seed = self.seeds.hash_one(circumstances);
                self.last = Some((circumstances, seed));
                seed
            }
        };
        Key(XxHash3_128::oneshot_with_seed(seed, chain.bytes()))
    }

    /// Has the processor fetch what [`count`](Self::count) needs of the chain of this name.
    pub(super) fn touch(&self, key: Key) {
        let known = self.counted.find(key.short(), |known| known.key == key);
        // Nobody needs it yet: without this nothing would be read.
        black_box(known.is_some());
    }

    /// Counts a sample of this weight on the chain of this name. Returns the place of the chain, if
    /// it is known.
    pub(super) fn count(&mut self, key: Key, weight: u64) -> Option<usize> {
        let known = self
            .counted
            .find_mut(key.short(), |known| known.key == key)?;
        if known.count == MIXED {
            // The place is that of a sum.
            if let Some(sum) = self.mixed.get_mut(known.weight as usize) {
                sum.add(WeightSum::of(weight));
            }
        } else if known.weight == weight && known.count < MIXED - 1 {
            known.count += 1;
        } else {
            let mut sum = sum_of(known);
            sum.add(WeightSum::of(weight));
            (known.count, known.weight) = (MIXED, self.mixed.len() as u64);
            self.mixed.push(sum);
        }
        Some(known.chain as usize)
    }

    pub(super) fn stack(&self, chain: usize) -> Stack {
        self.chains[chain].stack
    }

    /// How many chains it remembers.
    pub(super) fn len(&self) -> usize {
        self.chains.len()
    }

    /// Remembers a chain that is not known, with a sample of this weight. Returns whether there was
    /// room for it.
    #[must_use]
    pub(super) fn insert(
        &mut self,
        key: Key,
        stack: Stack,
        sample: SampleKey,
        weight: u64,
    ) -> bool {
        let Ok(chain) = u32::try_from(self.chains.len()) else {
            return false;
        };
        let SampleKey { event, thread, .. } = sample;
        self.chains.push(Chain {
            stack,
            event,
            thread,
        });
        let counted = Counted {
            key,
            chain,
            count: 1,
            weight,
        };
        let hash = |known: &Counted| known.key.short();
        self.counted.insert_unique(key.short(), counted, hash);
        true
    }

    /// Takes what was counted on each chain since the last time, by chain in order of appearance.
    pub(super) fn take_sums(&mut self) -> impl Iterator<Item = (Stack, SampleKey, WeightSum)> {
        let mut sums = vec![WeightSum::default(); self.chains.len()];
        for known in &mut self.counted {
            let sum = match known.count {
                MIXED => self
                    .mixed
                    .get_mut(known.weight as usize)
                    .map(std::mem::take),
                _ => Some(sum_of(known)),
            };
            if known.count != MIXED {
                known.count = 0;
            }
            if let (Some(place), Some(sum)) = (sums.get_mut(known.chain as usize), sum) {
                *place = sum;
            }
        }
        let sums = self.chains.iter().zip(sums);
        let counted = sums.filter(|(_, sum)| sum.count > 0);
        counted.map(|(chain, sum)| (chain.stack, chain.sample(), sum))
    }
}

fn sum_of(counted: &Counted) -> WeightSum {
    let count = u64::from(counted.count);
    WeightSum::equal(counted.weight.saturating_mul(count), count)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::{prop_assert_eq, proptest};

    use super::super::AddressPathId;
    use super::*;

    proptest! {
        #[test]
        fn a_chain_has_the_sum_of_its_samples(
            // Chains, with weights or with the wish to take what was counted.
            steps in proptest::collection::vec((0u128..6, 0u64..5), 0..300),
        ) {
            let mut chains = KnownChains::new();
            let (mut wanted, mut counted) = (BTreeMap::new(), BTreeMap::new());
            for (chain, weight) in steps.into_iter().chain([(0, 0)]) {
                if weight == 0 {
                    for (_, sample, sum) in chains.take_sums() {
                        let total: &mut WeightSum = counted.entry(sample.path).or_default();
                        total.add(sum);
                    }
                    prop_assert_eq!(&wanted, &counted);
                    continue;
                }
                let key = Key(chain << 60 | chain);
                let path = AddressPathId::new(chain as usize);
                if chains.count(key, weight).is_none() {
                    let stack = Stack {
                        path,
                        flaw: None,
                        place: None,
                        has_user_frames: false,
                        is_shallow: false,
                    };
                    let sample = SampleKey {
                        event: TraceEventId::new(0),
                        thread: TraceThreadId::new(0),
                        path,
                    };
                    assert!(chains.insert(key, stack, sample, weight));
                }
                let total: &mut WeightSum = wanted.entry(path).or_default();
                total.add(WeightSum::of(weight));
            }
        }
    }
}
