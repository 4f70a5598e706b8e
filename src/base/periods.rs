//! The periods of an event's samples, and those that are far above all others.

// A period has at least this many binary digits more than the median if it is far above the others,
// where the recorder asks for one period: about 128 times as much.
const DIGITS_ABOVE_CONSTANT: usize = 8;
// Where the kernel chooses the periods, or where they count what happened at once, they vary more.
const DIGITS_ABOVE_CHOSEN: usize = 16;
// A chosen period is not remarkable with fewer binary digits: seconds of a processor's cycles.
const DIGITS_OF_CHOSEN: usize = 37;
// With fewer samples none is remarkable.
const LEAST_CONSTANT: u64 = 3;
const LEAST_CHOSEN: u64 = 20;
// More samples than this part are not remarkable: periods of this event do vary.
const MOST: u64 = 100;
// Periods that are a smaller part of the total matter little.
const LEAST_PART: u128 = 10;

/// The sums of all periods of an event, by size.
#[derive(Clone, Debug)]
pub struct Periods {
    by_digits: [(u64, u128); 65],
}

/// A few periods that are far above the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlyingPeriods {
    /// How many they are.
    pub count: u64,
    /// What they add up to.
    pub sum: u128,
    /// The number of the other samples.
    pub others: u64,
    /// What the others add up to.
    pub sum_of_others: u128,
}

impl Default for Periods {
    fn default() -> Periods {
        Periods {
            by_digits: [(0, 0); 65],
        }
    }
}

impl Periods {
    /// Counts a sample with this period.
    pub fn add(&mut self, period: u64) {
        let digits = (u64::BITS - period.leading_zeros()) as usize;
        let (count, sum) = &mut self.by_digits[digits];
        *count = count.saturating_add(1);
        *sum = sum.saturating_add(period.into());
    }

    /// Returns the periods that are far above the others: at most one in a hundred, with at least a
    /// tenth of the total. `is_constant` states that the kernel gives each sample the same period:
    /// it does for clocks, and where no frequency is asked for.
    ///
    /// ```
    /// use proftool::base::Periods;
    /// let mut periods = Periods::default();
    /// (0..1000).for_each(|_| periods.add(1_000_000));
    /// assert_eq!(periods.outlying(true), None);
    /// periods.add(1 << 60);
    /// let outlying = periods.outlying(true).unwrap();
    /// assert_eq!((outlying.count, outlying.others), (1, 1000));
    /// ```
    pub fn outlying(&self, is_constant: bool) -> Option<OutlyingPeriods> {
        let sums = |of: &[(u64, u128)]| {
            of.iter().fold((0_u64, 0_u128), |all, one| {
                (all.0.saturating_add(one.0), all.1.saturating_add(one.1))
            })
        };
        let (samples, total) = sums(&self.by_digits);
        let (least, above, from) = match is_constant {
            true => (LEAST_CONSTANT, DIGITS_ABOVE_CONSTANT, 0),
            false => (LEAST_CHOSEN, DIGITS_ABOVE_CHOSEN, DIGITS_OF_CHOSEN),
        };
        if samples < least {
            return None;
        }
        let mut before = 0_u64;
        let median = self.by_digits.iter().position(|(count, _)| {
            before = before.saturating_add(*count);
            before > samples / 2
        })?;
        // A median of 0 is no measure.
        let first = (median > 0).then(|| (median + above).max(from))?;
        let (count, sum) = sums(self.by_digits.get(first..)?);
        let is_few = count > 0 && count <= (samples / MOST).max(1);
        let matters = sum.saturating_mul(LEAST_PART) >= total;
        (is_few && matters).then(|| OutlyingPeriods {
            count,
            sum,
            others: samples - count,
            sum_of_others: total - sum,
        })
    }
}

impl OutlyingPeriods {
    /// Returns what they are, for an event of this name; `is_time` states that periods are
    /// nanoseconds.
    ///
    /// ```
    /// use proftool::base::OutlyingPeriods;
    /// let outlying = OutlyingPeriods {
    ///     count: 1,
    ///     sum: 9_000_000_000,
    ///     others: 1000,
    ///     sum_of_others: 1_000_000_000,
    /// };
    /// let text = outlying.detail("cpu-clock", true);
    /// let start = "cpu-clock: 9000.000 ms, 90.0 % of the total; ";
    /// assert_eq!(text.strip_prefix(start), Some("each of the others 1.000 ms on average"));
    /// ```
    pub fn detail(&self, event: &str, is_time: bool) -> String {
        let amount = |amount: f64| match is_time {
            true => format!("{:.3} ms", amount / 1e6),
            false => format!("{amount:.0}"),
        };
        let sum = self.sum as f64;
        let share = 100.0 * sum / (sum + self.sum_of_others as f64);
        let mean = self.sum_of_others as f64 / self.others.max(1) as f64;
        format!(
            "{event}: {}, {share:.1} % of the total; each of the others {} on average",
            amount(sum),
            amount(mean)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outlying(periods: &[(u64, u64)], is_constant: bool) -> Option<u64> {
        let mut sums = Periods::default();
        for &(period, count) in periods {
            (0..count).for_each(|_| sums.add(period));
        }
        sums.outlying(is_constant).map(|outlying| outlying.count)
    }

    #[test]
    fn few_periods_far_above_the_others_are_found() {
        let ms = 1_000_000;
        assert_eq!(outlying(&[(ms, 1000), (1 << 60, 1)], true), Some(1));
        assert_eq!(outlying(&[(ms, 1000), (u64::MAX, 3)], true), Some(3));
        assert_eq!(outlying(&[(ms, 1000), (10_000 * ms, 1)], true), Some(1));
        assert_eq!(outlying(&[(ms, 2), (1 << 60, 1)], true), Some(1));
        assert_eq!(outlying(&[(4 * ms, 1000), (1 << 50, 2)], false), Some(2));
    }

    #[test]
    fn periods_that_vary_are_not_remarkable() {
        let ms = 1_000_000;
        assert_eq!(outlying(&[(ms, 1000)], true), None);
        // Too small a part of the total, or too close to the others.
        assert_eq!(outlying(&[(ms, 100_000), (500 * ms, 1)], true), None);
        assert_eq!(outlying(&[(ms, 100), (50 * ms, 1)], true), None);
        assert_eq!(outlying(&[(ms, 50), (1000 * ms, 2)], true), None);
        // The kernel begins with a period of 1 when it looks for one, on each processor.
        assert_eq!(outlying(&[(1, 500), (40_000_000, 4)], false), None);
        assert_eq!(outlying(&[(0, 500), (1 << 60, 1)], true), None);
        assert_eq!(outlying(&[], true), None);
    }
}
