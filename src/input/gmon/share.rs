//! Which functions the ticks of a histogram belong to.
//!
//! A bucket that lies in several functions is shared in proportion to how much of each lies in it.
//! Places are counted in units of two bytes, as `profil` does; addresses and the ends of buckets
//! are rounded down to them:
//!
//! ```text
//!   bucket i      [low/2 + ⌊scale·i⌋, low/2 + ⌊scale·(i+1)⌋)
//!   scale         ⌊(high - low)/2⌋ / buckets
//!   function j    [start_j/2, end_j/2)
//!   share         ticks · overlap / scale                           gprof 2.40 (`hist.c`)
//!                 ticks · overlap / all overlaps                    otherwise
//! ```
//!
//! Where the scale is no whole number, gprof's shares of a bucket are a little more or less than
//! all of it. The other rule loses nothing, and gives nothing to the padding between functions,
//! which never runs.

use super::file::Histogram;

// A function or a part of it, in units of two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) start: u64,
    // The unit behind the last.
    pub(super) end: u64,
    pub(super) function: usize,
}

// What a share is in proportion to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    // The size of a bucket, as gprof computes it.
    Gprof,
    // What of the bucket lies in functions.
    Covered,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shares {
    // In the order of the functions; with fractions where buckets were shared.
    pub(super) ticks: Vec<f64>,
    pub(super) outside: f64,
}

// Extents are in order and share no unit. What lies in none of them belongs to the function that
// `beyond` names for its first unit, if any. Linear in buckets with ticks and the extents in each.
pub(super) fn of(
    histograms: &[Histogram],
    extents: &[Extent],
    functions: usize,
    rule: Rule,
    beyond: impl Fn(u64) -> Option<usize>,
) -> Shares {
    let mut shares = Shares {
        ticks: vec![0.0; functions],
        outside: 0.0,
    };
    for histogram in histograms {
        let scale = histogram.scale();
        if scale <= 0.0 {
            continue;
        }
        let end =
            |bucket: usize| (histogram.low / 2).saturating_add((scale * bucket as f64) as u64);
        for (bucket, &ticks) in histogram.ticks.iter().enumerate() {
            if ticks == 0 {
                continue;
            }
            let (low, high) = (end(bucket), end(bucket + 1));
            let first = extents.partition_point(|extent| extent.end <= low);
            let inside = extents[first..]
                .iter()
                .take_while(|extent| extent.start < high);
            let overlaps = inside.filter_map(|extent| {
                let overlap = high.min(extent.end).checked_sub(low.max(extent.start))?;
                (overlap > 0).then_some((extent.function, overlap))
            });
            let ticks = ticks as f64;
            let covered: u64 = overlaps.clone().map(|(_, overlap)| overlap).sum();
            // What of the bucket lies in no function; all of one that rounding left without width.
            let rest = high.saturating_sub(low).saturating_sub(covered);
            let whole = match rule {
                Rule::Gprof => scale,
                Rule::Covered => covered as f64,
            };
            for (function, overlap) in overlaps {
                shares.ticks[function] += overlap as f64 * ticks / whole;
            }
            let outside = match rule {
                _ if high == low => ticks,
                Rule::Gprof => rest as f64 * ticks / scale,
                Rule::Covered if covered == 0 => ticks,
                Rule::Covered => 0.0,
            };
            if outside > 0.0 {
                match beyond(low) {
                    Some(function) => shares.ticks[function] += outside,
                    None => shares.outside += outside,
                }
            }
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions(starts: &[u64], end: u64) -> Vec<Extent> {
        let ends = starts.iter().skip(1).copied().chain([end]);
        let functions = starts.iter().zip(ends).enumerate();
        let extents = functions.map(|(function, (start, end))| Extent {
            start: start / 2,
            end: end / 2,
            function,
        });
        extents.collect()
    }

    fn histogram(low: u64, high: u64, ticks: &[u64]) -> Histogram {
        Histogram {
            low,
            high,
            ticks: ticks.to_vec(),
        }
    }

    #[test]
    fn a_bucket_in_two_functions_is_shared_in_proportion() {
        // Buckets of 8 bytes; the second function starts 2 bytes into the second bucket.
        for rule in [Rule::Gprof, Rule::Covered] {
            let extents = functions(&[0, 10], 16);
            let shares = of(&[histogram(0, 16, &[3, 4])], &extents, 2, rule, |_| None);
            assert_eq!(shares.ticks, [3.0 + 1.0, 3.0]);
            assert_eq!(shares.outside, 0.0);
        }
    }

    #[test]
    fn ticks_outside_of_functions_are_not_lost() {
        let ticks = [histogram(0, 16, &[8, 8])];
        let shares = of(&ticks, &functions(&[4], 12), 1, Rule::Gprof, |_| None);
        assert_eq!(shares.ticks, [8.0]);
        assert_eq!(shares.outside, 8.0);
        for rule in [Rule::Gprof, Rule::Covered] {
            assert_eq!(of(&ticks, &[], 0, rule, |_| None).outside, 16.0);
        }
    }

    #[test]
    fn padding_between_functions_takes_no_ticks() {
        // The first function ends 2 bytes before the bucket, the second starts 2 bytes behind it.
        let mut extents = functions(&[0, 14], 20);
        extents[0].end = 5;
        let ticks = [histogram(0, 24, &[0, 9, 0])];
        let shares = of(&ticks, &extents, 2, Rule::Covered, |_| None);
        assert_eq!((shares.ticks, shares.outside), (vec![4.5, 4.5], 0.0));
    }

    #[test]
    fn addresses_at_the_end_of_memory_do_not_overflow() {
        let all = [histogram(u64::MAX - 9, u64::MAX, &[1, 1, 1, 1])];
        let extents = functions(&[u64::MAX - 5, u64::MAX - 1], u64::MAX);
        for rule in [Rule::Gprof, Rule::Covered] {
            let shares = of(&all, &extents, 2, rule, |_| None);
            let sum: f64 = shares.ticks.iter().sum();
            assert!((sum + shares.outside - 4.0).abs() < 1.0, "{shares:?}");
        }
    }
}
