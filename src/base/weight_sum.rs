//! The sum of the weights of samples, with the sum of their squares for the sampling error.

/// The weights of some samples, added up.
///
/// The sum of squares is exact: shares of few heavy samples are less certain than those of many
/// light ones, and a row that many samples share would otherwise hide that. It never exceeds the
/// square of the sum, so 128 bits hold it for every sum that fits 64 bits.
///
/// ```
/// use proftool::base::WeightSum;
/// let mut sum = WeightSum::of(3);
/// sum.add(WeightSum::of(4));
/// assert_eq!(sum, WeightSum { weight: 7, squares: 25, count: 2 });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WeightSum {
    /// The sum of the weights, in the event's unit.
    pub weight: u64,
    /// The sum of the squares of the weights.
    pub squares: u128,
    /// The number of samples.
    pub count: u64,
}

impl WeightSum {
    /// One sample of this weight.
    pub fn of(weight: u64) -> WeightSum {
        WeightSum {
            weight,
            squares: square(weight),
            count: 1,
        }
    }

    /// `count` samples of equal weight, which is `weight` together.
    pub fn equal(weight: u64, count: u64) -> WeightSum {
        WeightSum {
            weight,
            squares: square(weight) / u128::from(count.max(1)),
            count,
        }
    }

    /// Adds the samples of `other`.
    pub fn add(&mut self, other: WeightSum) {
        self.weight = self.weight.saturating_add(other.weight);
        self.squares = self.squares.saturating_add(other.squares);
        self.count = self.count.saturating_add(other.count);
    }

    /// These samples with at most this weight together.
    pub fn at_most(self, weight: u64) -> WeightSum {
        WeightSum {
            weight: self.weight.min(weight),
            squares: self.squares.min(square(weight)),
            ..self
        }
    }
}

fn square(weight: u64) -> u128 {
    u128::from(weight) * u128::from(weight)
}
