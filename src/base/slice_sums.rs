//! Weights by slices of time, in eight bytes where they fit.

// How many bits a small sum has for its slice, number and weight. One more says that it is
// elsewhere.
const SLICE: u32 = 8;
const COUNT: u32 = 15;
const WEIGHT: u32 = 40;
const ELSEWHERE: u64 = 1 << (SLICE + COUNT + WEIGHT);

/// What was in a slice of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceSum {
    /// The number of the slice.
    pub slice: u32,
    /// The sum of weights.
    pub weight: u64,
    /// The number of samples.
    pub count: u64,
}

/// A sum of [`SliceSums`]. Two halves, so that with another 32 bits it makes twelve bytes, not
/// sixteen.
#[derive(Clone, Copy, Debug)]
pub struct SmallSum([u32; 2]);

/// Sums of which there may be as many as a recording has samples: those that need more than eight
/// bytes are kept here.
///
/// ```
/// use proftool::base::{SliceSum, SliceSums};
/// let mut sums = SliceSums::default();
/// let second = SliceSum { slice: 3, weight: 1 << 60, count: 2 };
/// let second = sums.small(second);
/// assert_eq!(sums.get(second).weight, 1 << 60);
/// ```
#[derive(Clone, Debug, Default)]
pub struct SliceSums {
    large: Vec<SliceSum>,
}

impl SliceSums {
    /// The sum, made small.
    pub fn small(&mut self, sum: SliceSum) -> SmallSum {
        let SliceSum {
            slice,
            weight,
            count,
        } = sum;
        let fits = slice >> SLICE == 0 && count >> COUNT == 0 && weight >> WEIGHT == 0;
        let bits = if fits {
            u64::from(slice) << (COUNT + WEIGHT) | count << WEIGHT | weight
        } else {
            self.large.push(sum);
            ELSEWHERE | (self.large.len() as u64 - 1)
        };
        SmallSum([bits as u32, (bits >> 32) as u32])
    }

    /// A sum that was made small here.
    pub fn get(&self, small: SmallSum) -> SliceSum {
        let [low, high] = small.0;
        let bits = u64::from(high) << 32 | u64::from(low);
        if bits & ELSEWHERE != 0 {
            return self.large[(bits & !ELSEWHERE) as usize];
        }
        SliceSum {
            slice: (bits >> (COUNT + WEIGHT)) as u32,
            weight: bits & ((1 << WEIGHT) - 1),
            count: bits >> WEIGHT & ((1 << COUNT) - 1),
        }
    }

    /// Whether none needed more than eight bytes.
    pub fn are_small(&self) -> bool {
        self.large.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_what_they_were_up_to_the_largest() {
        let mut sums = SliceSums::default();
        let ends = |bits: u32, last: u64| [0, 1, (1 << bits) - 1, 1 << bits, last];
        for slice in ends(SLICE, u32::MAX.into()) {
            for weight in ends(WEIGHT, u64::MAX) {
                for count in ends(COUNT, u64::MAX) {
                    let sum = SliceSum {
                        slice: slice as u32,
                        weight,
                        count,
                    };
                    let small = sums.small(sum);
                    assert_eq!(sums.get(small), sum);
                }
            }
        }
        // Those of which each part fits are small.
        assert_eq!(sums.large.len(), 125 - 27);
    }
}
