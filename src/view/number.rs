//! Numbers for people.

use crate::base::Unit;

pub use crate::base::grouped;

/// `part` of `whole` in percent, rounded half up to `decimals` places; 0 of nothing is 0.
///
/// ```
/// use proftool::view::number::percent;
/// assert_eq!(percent(1, 3, 2), "33.33");
/// assert_eq!(percent(1, 800, 2), "0.13");
/// assert_eq!(percent(0, 0, 1), "0.0");
/// ```
pub fn percent(part: u64, whole: u64, decimals: u32) -> String {
    let scale = 10u128.pow(decimals);
    let whole = u128::from(whole.max(1));
    let units = (u128::from(part) * 100 * scale * 2 + whole) / (whole * 2);
    let width = decimals as usize;
    if width == 0 {
        return units.to_string();
    }
    format!("{}.{:0width$}", units / scale, units % scale)
}

/// A weight as a whole number.
pub(super) fn rounded(weight: f64) -> u64 {
    weight.round() as u64
}

/// A part that cannot be larger, but whether it can be as large is not known: `? 97.31`.
pub fn limit(part: u64, whole: u64) -> String {
    format!("? {}", percent(part, whole, 2))
}

/// A weight in its unit: times as `1.234 s`, counts as `12.3 M`, samples as they are.
///
/// ```
/// use proftool::base::Unit;
/// use proftool::view::number::weight;
/// assert_eq!(weight(1_234_567_890, &Unit::Nanoseconds), "1.235 s");
/// assert_eq!(weight(12_345_678, &Unit::Nanoseconds), "12.35 ms");
/// assert_eq!(weight(12_345_678, &Unit::Count("cycles".into())), "12.35 M");
/// assert_eq!(weight(12_345_678, &Unit::Samples), "12,345,678");
/// ```
pub fn weight(value: u64, unit: &Unit) -> String {
    match unit {
        Unit::Nanoseconds => {
            let steps = [(1_000_000_000, " s"), (1_000_000, " ms"), (1_000, " µs")];
            scaled(value, &steps).unwrap_or_else(|| format!("{value} ns"))
        }
        Unit::Count(_) if value >= 100_000 => {
            let steps = [
                (1_000_000_000_000, " T"),
                (1_000_000_000, " G"),
                (1_000_000, " M"),
                (1_000, " k"),
            ];
            scaled(value, &steps).unwrap_or_else(|| grouped(value))
        }
        _ => grouped(value),
    }
}

/// A weight in its unit, divided by a number of things; small ones with three digits.
///
/// ```
/// use proftool::base::Unit;
/// use proftool::view::number::weight_per;
/// assert_eq!(weight_per(72_220_000, 29_860_703, &Unit::Nanoseconds), "2.42 ns");
/// assert_eq!(weight_per(4_000_000, 2, &Unit::Nanoseconds), "2.000 ms");
/// ```
pub fn weight_per(value: u64, things: u64, unit: &Unit) -> String {
    let each = value as f64 / things.max(1) as f64;
    if each >= 1000.0 || value == 0 {
        return weight(rounded(each), unit);
    }
    let decimals = match each {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    let suffix = if *unit == Unit::Nanoseconds {
        " ns"
    } else {
        ""
    };
    format!("{each:.decimals$}{suffix}")
}

/// A weight less another, with its sign.
///
/// ```
/// use proftool::base::Unit;
/// use proftool::view::number::difference;
/// assert_eq!(difference(-12_345_678, &Unit::Nanoseconds), "-12.35 ms");
/// assert_eq!(difference(3, &Unit::Samples), "+3");
/// assert_eq!(difference(0, &Unit::Nanoseconds), "0 ns");
/// ```
pub fn difference(value: i64, unit: &Unit) -> String {
    format!("{}{}", sign(value), weight(value.unsigned_abs(), unit))
}

/// A difference in percent of what it is counted from, with its sign.
///
/// ```
/// use proftool::view::number::growth;
/// assert_eq!(growth(1, 16), "+6.3");
/// assert_eq!(growth(-1, 2), "-50.0");
/// ```
pub fn growth(difference: i64, of: u64) -> String {
    format!(
        "{}{}",
        sign(difference),
        percent(difference.unsigned_abs(), of, 1)
    )
}

/// A number in units of another.
///
/// ```
/// use proftool::view::number::factor;
/// assert_eq!(factor(4, 2), "2.00 ×");
/// ```
pub fn factor(number: u64, of: u64) -> String {
    let factor = number as f64 / of.max(1) as f64;
    format!("{factor:.2} ×")
}

fn sign(value: i64) -> &'static str {
    match value {
        0 => "",
        1.. => "+",
        _ => "-",
    }
}

/// A duration in nanoseconds.
pub fn duration(nanoseconds: u64) -> String {
    weight(nanoseconds, &Unit::Nanoseconds)
}

/// `value` with four digits in the first step that it reaches.
fn scaled(value: u64, steps: &[(u64, &str)]) -> Option<String> {
    let &(step, suffix) = steps.iter().find(|(step, _)| value >= *step)?;
    let decimals: u32 = match value / step {
        0..10 => 3,
        10..100 => 2,
        100..1000 => 1,
        _ => 0,
    };
    let scale = 10u128.pow(decimals);
    let step = u128::from(step);
    let units = (u128::from(value) * scale * 2 + step) / (step * 2);
    let (whole, part) = (units / scale, units % scale);
    if decimals == 0 {
        return Some(format!("{whole}{suffix}"));
    }
    let width = decimals as usize;
    Some(format!("{whole}.{part:0width$}{suffix}"))
}
