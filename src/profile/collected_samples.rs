//! Samples while they are collected: sorted, equal ones added up.

use crate::base::WeightSum;

// With fewer rows than this, adding up equal rows saves nothing.
const FEW: usize = 4096;

/// Sums by what tells them apart.
///
/// They are a list that is sorted whenever it has doubled, rather than a table of hashes: there may
/// be millions of rows, most inputs bring them in order, and a table takes two to four times the
/// memory.
#[derive(Debug)]
pub(super) struct CollectedSamples<K> {
    rows: Vec<(K, WeightSum)>,
    /// How many there were when equal ones were added up last.
    distinct: usize,
}

impl<K: Ord + Copy> CollectedSamples<K> {
    /// Counts samples.
    pub(super) fn add(&mut self, key: K, sum: WeightSum) {
        if let Some((last, total)) = self.rows.last_mut()
            && *last == key
        {
            return total.add(sum);
        }
        if self.rows.len() >= FEW.max(2 * self.distinct) {
            self.add_up();
        }
        self.rows.push((key, sum));
    }

    fn add_up(&mut self) {
        self.rows.sort_unstable_by_key(|&(key, _)| key);
        self.rows.dedup_by(|(key, sum), (kept, total)| {
            let is_equal = key == kept;
            if is_equal {
                total.add(*sum);
            }
            is_equal
        });
        self.distinct = self.rows.len();
    }

    /// The rows in order.
    pub(super) fn into_rows(mut self) -> Vec<(K, WeightSum)> {
        self.add_up();
        self.rows
    }
}

impl<K> Default for CollectedSamples<K> {
    fn default() -> Self {
        CollectedSamples {
            rows: Vec::new(),
            distinct: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn each_key_has_one_row_with_all_its_samples(
            keys in proptest::collection::vec(0u32..300, 0..20_000),
        ) {
            let mut rows = CollectedSamples::default();
            let mut sums: BTreeMap<u32, WeightSum> = BTreeMap::new();
            for (weight, key) in (1..).zip(keys) {
                rows.add(key, WeightSum::of(weight));
                sums.entry(key).or_default().add(WeightSum::of(weight));
                prop_assert!(rows.rows.len() <= FEW.max(2 * sums.len()) + 1);
            }
            prop_assert_eq!(rows.into_rows(), sums.into_iter().collect::<Vec<_>>());
        }
    }
}
