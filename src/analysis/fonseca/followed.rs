//! From which entries of a cycle time is followed, where following all of them takes too long.
//!
//! Distances have to be found again from each entry, and no faster way to all of them is known. So
//! a large cycle is followed from a sample of its entries:
//!
//! ```text
//!   parts  a .40  b .25  c .05  d .05  e .05  f .05  g .05  h .05  i .05    at most 5 followed
//!          a and b stand for themselves; c to i are drawn from with equal steps:
//!          c d│e f│g h i   one of each step is followed and stands for .35 / 3
//! ```
//!
//! An entry whose part is no smaller than a step is always followed. Of the others each is followed
//! with a probability in proportion to its part (W. Madow, "On the theory of systematic sampling,
//! II", 1949), at a place in its step that is not the same in all, so that no regularity in the
//! order of functions is taken for one of the cycle. The places are fixed: the same graph gives the
//! same answer.

use crate::profile::FunctionId;

// Members and arcs that may be visited in all cycles: the entries of each times its size.
pub(super) const WORK: usize = 1 << 25;
// How many entries of a cycle are followed however large it is.
const LEAST: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Followed {
    pub entry: FunctionId,
    // The part of the cycle's time that it stands for.
    pub part: f64,
    // How often it was drawn; 0 if it stands for itself alone.
    pub draws: u32,
}

// So that `work` is kept to. Cycles are given by their numbers of entries and their sizes. Cycles
// with fewer entries leave more to the others.
pub(super) fn most(cycles: &[(usize, usize)], work: usize) -> usize {
    let needed = |most: usize| {
        let each = cycles.iter().map(|&(entries, size)| {
            let entries = entries.min(most);
            entries.saturating_mul(size)
        });
        each.fold(0, usize::saturating_add)
    };
    let all = cycles.iter().map(|cycle| cycle.0).max().unwrap_or(0);
    let (mut enough, mut too_many) = (LEAST, all.saturating_add(1));
    while enough + 1 < too_many {
        let middle = enough + (too_many - enough) / 2;
        if needed(middle) <= work {
            enough = middle;
        } else {
            too_many = middle;
        }
    }
    enough
}

// `most` of the entries or a few less: first those that stand for themselves, then those that were
// drawn, both in order of id. `entries` are all, with their parts, in order of id.
pub(super) fn choose(entries: &[(FunctionId, f64)], most: usize) -> Vec<Followed> {
    let itself = |&(entry, part): &(FunctionId, f64)| Followed {
        entry,
        part,
        draws: 0,
    };
    if entries.len() <= most {
        return entries.iter().map(itself).collect();
    }
    let mut heaviest: Vec<&(FunctionId, f64)> = entries.iter().collect();
    heaviest.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut rest: f64 = entries.iter().map(|entry| entry.1).sum();
    let mut certain = 0;
    // Two are drawn at least: one alone would not show how they differ.
    while certain + 2 < most && heaviest[certain].1 * (most - certain) as f64 >= rest {
        rest -= heaviest[certain].1;
        certain += 1;
    }
    let (certain, others) = heaviest.split_at_mut(certain);
    certain.sort_unstable_by_key(|entry| entry.0);
    others.sort_unstable_by_key(|entry| entry.0);
    let mut followed: Vec<Followed> = certain.iter().map(|&entry| itself(entry)).collect();
    let draws = most - followed.len();
    let step = others.iter().map(|entry| entry.1).sum::<f64>() / draws as f64;
    let (mut before, mut next) = (0.0, 0);
    for &&(entry, part) in others.iter() {
        before += part;
        let mut drawn = 0;
        while next < draws && place(next) * step < before {
            next += 1;
            drawn += 1;
        }
        if drawn > 0 {
            followed.push(Followed {
                entry,
                part: step * f64::from(drawn),
                draws: drawn,
            });
        }
    }
    followed
}

// Where in all steps, which are of length 1, the entry of a step is drawn: fractions of multiples
// of the golden ratio, which are spread evenly.
fn place(step: usize) -> f64 {
    let fraction = (step as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
    step as f64 + fraction as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(parts: &[f64]) -> Vec<(FunctionId, f64)> {
        let parts = parts.iter().enumerate();
        parts
            .map(|(at, &part)| (FunctionId::new(at), part))
            .collect()
    }

    #[test]
    fn heavy_entries_are_certain_and_the_parts_add_up() {
        let mut parts = vec![0.001; 400];
        parts[100] = 0.35;
        parts[300] = 0.25;
        let entries = entries(&parts);
        let followed = choose(&entries, 32);
        let certain: Vec<usize> = followed
            .iter()
            .filter(|f| f.draws == 0)
            .map(|f| f.entry.index())
            .collect();
        assert_eq!(certain, [100, 300]);
        assert_eq!(followed.iter().map(|f| f.draws).sum::<u32>(), 30);
        let sum: f64 = followed.iter().map(|f| f.part).sum();
        assert!((sum - 0.998).abs() < 1e-9, "{sum}");
        assert_eq!(choose(&entries[..3], 3).len(), 3);
    }

    #[test]
    fn small_cycles_leave_their_share_to_large_ones() {
        assert_eq!(most(&[(100, 1000)], 100_000), 100);
        assert_eq!(most(&[(100, 1000)], 50_000), 50);
        assert_eq!(most(&[(20, 100), (1000, 1000)], 102_000), 100);
        assert_eq!(most(&[(1000, 1_000_000)], 1), LEAST);
        assert_eq!(most(&[], 1), LEAST);
    }
}
