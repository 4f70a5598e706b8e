//! The weight of sets of places, of which some may be inside of others: each sample counts once.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::{PlaceId, Places, Selection};
use crate::base::IdVec;

/// The nesting of places, and the weight that passes each.
///
/// The places are numbered so that those inside of a place follow it: `first` is a place's own
/// number, and `size` the number of places at it and further in.
#[derive(Clone, Debug)]
pub struct PlaceWeights {
    weight: IdVec<PlaceId, u64>,
    is_taken: IdVec<PlaceId, bool>,
    first: IdVec<PlaceId, u32>,
    size: IdVec<PlaceId, u32>,
}

impl PlaceWeights {
    /// Of these samples. Linear in places and rows.
    pub fn of(places: &Places, selection: &Selection) -> PlaceWeights {
        let count = places.tree().len();
        let mut weight = IdVec::filled(0u64, count);
        let mut is_taken = IdVec::filled(false, count);
        let mut size = IdVec::filled(1u32, count);
        for row in selection.rows() {
            if let Some(place) = row.place {
                weight[place] += row.weight;
                is_taken[place] = true;
            }
        }
        for (id, place) in places.tree().enumerate().rev() {
            if let Some(caller) = place.caller {
                weight[caller] += weight[id];
                is_taken[caller] |= is_taken[id];
                size[caller] += size[id];
            }
        }
        let mut first = IdVec::filled(0u32, count);
        // The next number that is free under each place, and outside of all.
        let mut free = first.clone();
        let mut outside = 0;
        for (id, place) in places.tree().enumerate() {
            let next = match place.caller {
                Some(caller) => &mut free[caller],
                None => &mut outside,
            };
            first[id] = *next;
            *next += size[id];
            free[id] = first[id] + 1;
        }
        PlaceWeights {
            weight,
            is_taken,
            first,
            size,
        }
    }

    /// Whether any sample passes a place.
    pub fn has_samples(&self, place: PlaceId) -> bool {
        self.is_taken[place]
    }

    /// The weight of each key: of the samples that pass any of its places in `below`, and of those
    /// that end at one in `here` with the weight given there, each once.
    pub fn totals<K: Copy + Eq + Hash>(
        &self,
        below: impl Iterator<Item = (PlaceId, K)>,
        here: impl Iterator<Item = (PlaceId, K, u64)>,
    ) -> FxHashMap<K, u64> {
        let below = below.filter(|&(place, _)| self.is_taken[place]);
        let mut steps: Vec<(PlaceId, K, Option<u64>)> =
            below.map(|(place, key)| (place, key, None)).collect();
        steps.extend(here.map(|(place, key, weight)| (place, key, Some(weight))));
        // A place comes before what ends at it.
        steps.sort_by_key(|&(place, _, ends)| (self.first[place], ends.is_some()));
        let mut totals: FxHashMap<K, (u64, u32)> = FxHashMap::default();
        for (place, key, ends) in steps {
            let (total, end) = totals.entry(key).or_insert((0, 0));
            // Further in than the last one, its samples are counted already.
            if self.first[place] < *end {
                continue;
            }
            match ends {
                Some(weight) => *total += weight,
                None => {
                    *total += self.weight[place];
                    *end = self.first[place] + self.size[place];
                }
            }
        }
        let totals = totals.into_iter();
        totals.map(|(key, (total, _))| (key, total)).collect()
    }
}
