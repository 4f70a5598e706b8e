//! Weights that are not whole: counted in parts of their unit, so that each keeps its share.

use crate::base::Unit;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    // How many are one unit.
    pub number: u64,
    name: &'static str,
}

const fn parts(number: u64, name: &'static str) -> Parts {
    Parts { number, name }
}

const WHOLE: Parts = parts(1, "");
const PARTS: [Parts; 6] = [
    WHOLE,
    parts(10, "tenths"),
    parts(100, "hundredths"),
    parts(1_000, "thousandths"),
    parts(1_000_000, "millionths"),
    parts(1_000_000_000, "billionths"),
];
// How much of the sum rounding may change: what is left of a difference of times is no weight.
const TOLERANCE: f64 = 1e-4;

impl Parts {
    // The largest ones in which weights are whole within the tolerance, else the smallest of which
    // 64 bits hold the sum.
    pub fn of(weights: impl Iterator<Item = f64> + Clone) -> Parts {
        let weights = weights.filter(|weight| *weight > 0.0);
        let sum: f64 = weights.clone().sum();
        let is_held = |parts: &&Parts| within_64_bits(sum * parts.number as f64).is_some();
        let is_whole = |parts: &&Parts| {
            let scaled = weights.clone().map(|weight| weight * parts.number as f64);
            let rounded: f64 = scaled.map(|weight| (weight - weight.round()).abs()).sum();
            rounded <= sum * parts.number as f64 * TOLERANCE
        };
        let largest = PARTS.iter().filter(is_held).find(is_whole);
        let found = largest.or_else(|| PARTS.iter().rfind(is_held));
        found.copied().unwrap_or(WHOLE)
    }

    pub fn unit(self, unit: Unit) -> Unit {
        if self == WHOLE {
            return unit;
        }
        Unit::Count(format!("{} of {unit}", self.name))
    }
}

// The nearest whole number; `None` for negative ones and those that 64 bits cannot hold.
pub(super) fn within_64_bits(weight: f64) -> Option<u64> {
    let weight = weight.round();
    (0.0..1.8e19).contains(&weight).then_some(weight as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_large_as_the_weights_permit() {
        for (weights, number) in [
            (&[][..], 1),
            (&[3.0, 0.0, 1e18], 1),
            (&[0.4, 0.4, 1.4], 10),
            (&[1.0, 0.25], 100),
            (&[1.0, 0.0125], 1_000_000),
            (&[1.0 / 3.0], 1_000_000),
            (&[123_456.789], 1),
            (&[5.0, 5e-11], 1),
            (&[0.4; 30_000], 10),
            // No parts are small enough, and no sum is.
            (&[1e-12], 1_000_000_000),
            (&[f64::MAX, 0.5], 1),
        ] {
            assert_eq!(
                Parts::of(weights.iter().copied()).number,
                number,
                "{weights:?}"
            );
        }
    }
}
