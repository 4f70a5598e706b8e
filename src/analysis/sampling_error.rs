//! How far shares may be off because not every event was recorded.
//!
//! A share p of n independent samples of equal weight has a standard error of √(p (1 - p) / n).
//! Where weights w differ, n is the effective number of samples (Σ w)² / Σ w² (L. Kish, "Survey
//! sampling", 1965, section 11.7): ten samples of weight 1,000 among a thousand of weight 1 say
//! little more than ten samples do.
//!
//! 95 of 100 estimates are within 1.96 standard errors of the truth, if samples are independent.
//! Those of one run seldom are: what was running at one sample is likely to run at the next. The
//! figure is therefore always shown with this assumption.
//!
//! A census, which records every event, has no such error. It may still be incomplete.

pub mod intervals;

use crate::base::{CaveatKind, Sampling};
use crate::profile::{Profile, Selection};

/// The part of estimates that are within the stated error, in percent.
pub const CONFIDENCE: u32 = 95;
// Standard errors on each side of an estimate that hold the truth with [`CONFIDENCE`].
const WIDTH: f64 = 1.96;

/// What can be said of the error of shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SamplingError {
    /// Nothing: there are no samples, or it is not known how they were taken.
    Unknown,
    /// Every event was recorded.
    Census,
    /// Every event should have been recorded, but some were lost: not by chance, so no error can be
    /// computed.
    IncompleteCensus {
        /// The number of records that were lost. They may be of other kinds and events.
        lost: u64,
        /// How often the kernel held the event back.
        throttled: u64,
        /// The number of intervals off the processor whose end or start is not known.
        intervals: u64,
    },
    /// The samples were drawn.
    Sampled {
        /// The effective number of samples, at least 1.
        effective_samples: f64,
        /// The half-width of the interval around one half, the least certain share; 0 to 1.
        half_width: f64,
    },
}

/// What can be said of the shares of a selection.
///
/// ```
/// use proftool::analysis::sampling_error::{SamplingError, of};
/// use proftool::base::{Event, Sampling, WeightSum};
/// use proftool::profile::{Builder, Filter, Function, Module, Thread};
///
/// let mut builder = Builder::default();
/// let event = builder.sampled_event(Event::named("cycles"), Sampling::Drawn);
/// # let module = builder.module(Module { name: "app".into(), path: "/bin/app".into() });
/// # let main = builder.function(Function::named("main", module));
/// # let thread = builder.thread(Thread::new(1, 1, "app"));
/// # let path = builder.path(None, main, false);
/// builder.sample(event, thread, path, None, WeightSum::equal(10_000, 10));
/// builder.sample(event, thread, path, None, WeightSum::equal(990, 990));
/// let profile = builder.finish();
/// let SamplingError::Sampled { effective_samples, half_width } =
///     of(&profile, &profile.select(event, &Filter::default())) else { panic!() };
/// assert_eq!(effective_samples.round(), 12.0);
/// assert_eq!((half_width * 1000.0).round(), 282.0);
/// ```
pub fn of(profile: &Profile, selection: &Selection) -> SamplingError {
    if selection.samples() == 0 || selection.total() == 0 {
        return SamplingError::Unknown;
    }
    match selection.sampling() {
        Sampling::Unknown | Sampling::Merged => SamplingError::Unknown,
        Sampling::Census => {
            let count = |kind| profile.caveats.count(kind);
            let lost = count(CaveatKind::Lost);
            let throttled = count(CaveatKind::Throttled);
            let intervals = count(CaveatKind::UnsureSwitch);
            if lost == 0 && throttled == 0 && intervals == 0 {
                return SamplingError::Census;
            }
            SamplingError::IncompleteCensus {
                lost,
                throttled,
                intervals,
            }
        }
        Sampling::Drawn => {
            let number = effective_number(selection.total() as f64, selection.squares() as f64);
            SamplingError::Sampled {
                effective_samples: number.max(1.0),
                half_width: WIDTH * standard_error(0.5, number),
            }
        }
    }
}

// (Σ w)² / Σ w².
pub(super) fn effective_number(weight: f64, squares: f64) -> f64 {
    if squares > 0.0 {
        weight * weight / squares
    } else {
        0.0
    }
}

// The standard error of a share, 0 to 1, of that many samples.
pub(super) fn standard_error(share: f64, number: f64) -> f64 {
    let variance = share * (1.0 - share) / number.max(1.0);
    variance.max(0.0).sqrt()
}
