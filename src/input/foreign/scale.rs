//! Units of other profilers' numbers.

use crate::base::{Event, Unit};
use crate::input::parts::{Parts, within_64_bits};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    factor: u64,
}

impl Scale {
    pub fn of(name: &str, unit: &str) -> (Event, Scale) {
        let time = |factor| (Unit::Nanoseconds, factor);
        let (unit, factor) = match unit {
            "nanoseconds" | "ns" => time(1),
            "microseconds" | "us" => time(1_000),
            "milliseconds" | "ms" => time(1_000_000),
            "seconds" | "s" => time(1_000_000_000),
            "bytes" | "byte" | "B" => (Unit::Count("bytes".into()), 1),
            _ if name == "samples" => (Unit::Samples, 1),
            _ => (Unit::Count(name.to_owned()), 1),
        };
        let name = name.to_owned();
        (Event { name, unit }, Scale { factor })
    }

    // For weights that need not be whole.
    pub fn of_weights(name: &str, unit: &str, weights: &[f64]) -> (Event, Scale) {
        let (mut event, Scale { factor }) = Scale::of(name, unit);
        let parts = Parts::of(weights.iter().map(|weight| weight * factor as f64));
        event.unit = parts.unit(event.unit);
        let factor = factor * parts.number;
        (event, Scale { factor })
    }

    pub fn whole(self, value: u64) -> Option<u64> {
        value.checked_mul(self.factor)
    }

    // The nearest weight of a number that need not be whole; `None` for negative ones and those
    // that 64 bits cannot hold.
    pub fn nearest(self, value: f64) -> Option<u64> {
        within_64_bits(value * self.factor as f64)
    }
}
