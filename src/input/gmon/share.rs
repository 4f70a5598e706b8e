//! Which functions the ticks of a histogram belong to.
//!
//! A bucket that lies in two functions is shared in proportion, as gprof 2.40 does (`hist.c`,
//! read, and compared by running it). It counts in units of two bytes and rounds addresses and the ends of
//! buckets down to them:
//!
//! ```text
//!   bucket i      [low/2 + ⌊scale·i⌋, low/2 + ⌊scale·(i+1)⌋)      scale = ⌊(high - low)/2⌋ / buckets
//!   function j    [start_j/2, start_{j+1}/2)
//!   share         ticks · overlap / scale
//! ```
//!
//! Where the scale is no whole number, the shares of a bucket are a little more or less than all of
//! it. They are left so: seconds of a function are gprof's.

use super::file::Histogram;
use crate::binary::GprofSymbols;

/// The ticks of each function, and those that belong to none.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shares {
    /// In the order of the functions; with fractions where buckets were shared.
    pub(super) ticks: Vec<f64>,
    /// The rest.
    pub(super) outside: f64,
}

/// Shares the ticks out. Linear in buckets with ticks and the functions in each.
pub(super) fn of(histograms: &[Histogram], functions: &GprofSymbols) -> Shares {
    let starts: Vec<u64> = functions.rows.iter().map(|row| row.start.0 / 2).collect();
    let mut shares = Shares {
        ticks: vec![0.0; starts.len()],
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
            // What of the bucket lies in no function; all of one that rounding left without width.
            let mut rest = high.saturating_sub(low);
            if rest == 0 {
                shares.outside += ticks as f64;
            }
            let first = starts.partition_point(|&start| start <= low);
            for place in first.saturating_sub(1)..starts.len() {
                if starts[place] >= high {
                    break;
                }
                let next = starts.get(place + 1).copied();
                let next = next.unwrap_or(functions.end.0 / 2);
                let overlap = high.min(next).saturating_sub(low.max(starts[place]));
                if overlap > 0 {
                    shares.ticks[place] += overlap as f64 * ticks as f64 / scale;
                    rest = rest.saturating_sub(overlap);
                }
            }
            shares.outside += rest as f64 * ticks as f64 / scale;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Svma;
    use crate::binary::GprofSymbol;

    fn functions(starts: &[u64], end: u64) -> GprofSymbols {
        let rows = starts
            .iter()
            .map(|&start| GprofSymbol::new(Svma(start), "f"));
        GprofSymbols {
            rows: rows.collect(),
            end: Svma(end),
        }
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
        let shares = of(&[histogram(0, 16, &[3, 4])], &functions(&[0, 10], 16));
        assert_eq!(shares.ticks, [3.0 + 1.0, 3.0]);
        assert_eq!(shares.outside, 0.0);
    }

    #[test]
    fn ticks_outside_of_functions_are_not_lost() {
        let shares = of(&[histogram(0, 16, &[8, 8])], &functions(&[4], 12));
        assert_eq!(shares.ticks, [8.0]);
        assert_eq!(shares.outside, 8.0);
        let none = of(&[histogram(0, 16, &[8, 8])], &functions(&[], 12));
        assert_eq!(none.outside, 16.0);
    }

    #[test]
    fn addresses_at_the_very_end_do_no_harm() {
        let all = histogram(u64::MAX - 9, u64::MAX, &[1, 1, 1, 1]);
        let shares = of(&[all], &functions(&[u64::MAX - 5, u64::MAX - 1], u64::MAX));
        let sum: f64 = shares.ticks.iter().sum();
        assert!((sum + shares.outside - 4.0).abs() < 1.0, "{shares:?}");
    }
}
