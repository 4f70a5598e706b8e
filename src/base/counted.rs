//! The samples of an event, compared with the kernel's own count.

use super::CaveatKind;

// Weights of occurrences that differ from the count by more than this part are reported.
const OCCURRENCES: f64 = 0.02;
// Processor time that is in no sample is reported from this part on where its cause is known, and
// from so many periods on.
const MISSED: f64 = 0.02;
const MISSED_PERIODS: f64 = 10.0;
// The most that a switch between threads takes from the samples, in nanoseconds: the kernel lets no
// clock interrupt sooner after it.
const SWITCH: f64 = 10_000.0;
// The part of sampled events, of which each thread ends with up to one period that is in no sample.
const DRAWN: f64 = 0.10;
// The part where the count is an estimate.
const ESTIMATED: f64 = 0.25;
// With fewer samples of a drawn event to be expected nothing is reported.
const LEAST_EXPECTED: f64 = 50.0;
const LEAST_EXPECTED_ESTIMATED: f64 = 200.0;

/// What an event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Processor time, in nanoseconds.
    Clock,
    /// Processor time in user space. The kernel's count of it is an estimate.
    UserClock,
    /// Software events: faults, switches, tracepoints. Each occurrence can be recorded.
    Occurrences,
    /// Hardware events: cycles, cache misses.
    Hardware,
}

impl Counting {
    /// Returns what an event counts whose `perf_event_attr` has this `type` and `config`, and
    /// `exclude_kernel` or not.
    ///
    /// ```
    /// use proftool::base::Counting;
    /// assert_eq!(Counting::of(1, 0, false), Counting::Clock); // cpu-clock
    /// assert_eq!(Counting::of(1, 1, true), Counting::UserClock); // task-clock:u
    /// assert_eq!(Counting::of(1, 2, true), Counting::Occurrences); // page-faults:u
    /// assert_eq!(Counting::of(5, 0, false), Counting::Occurrences); // a breakpoint
    /// assert_eq!(Counting::of(0, 0, false), Counting::Hardware); // cycles
    /// ```
    pub fn of(kind: u32, config: u64, excludes_kernel: bool) -> Counting {
        // PERF_TYPE_*, and of software events PERF_COUNT_SW_CPU_CLOCK and TASK_CLOCK.
        const SOFTWARE: u32 = 1;
        const TRACEPOINT: u32 = 2;
        const BREAKPOINT: u32 = 5;
        match (kind, config, excludes_kernel) {
            (SOFTWARE, 0 | 1, true) => Counting::UserClock,
            (SOFTWARE, 0 | 1, false) => Counting::Clock,
            (SOFTWARE | TRACEPOINT | BREAKPOINT, ..) => Counting::Occurrences,
            _ => Counting::Hardware,
        }
    }

    /// Returns the weight of a sample that was requested with this number, a frequency or a period;
    /// `None` where the kernel chooses it. The kernel turns the frequency of a clock into a fixed
    /// period.
    pub fn period(self, by_frequency: bool, number: u64) -> Option<u64> {
        let is_clock = matches!(self, Counting::Clock | Counting::UserClock);
        match (by_frequency, is_clock) {
            (true, true) => 1_000_000_000u64.checked_div(number),
            (true, false) => None,
            (false, _) => Some(number).filter(|&period| period > 0),
        }
    }
}

/// The sum of an event's samples and the kernel's own count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// What the event counts.
    pub counting: Counting,
    /// What the kernel counted while the event was recorded.
    pub counted: u64,
    /// The sum of the weights of the samples.
    pub sampled: u64,
    /// The number of samples.
    pub samples: u64,
    /// The weight of a sample as it was asked for, where that is known.
    pub period: Option<u64>,
    /// How many threads ended.
    pub ended: u64,
    /// How often threads switched to others, where that is known.
    pub switches: Option<u64>,
}

impl Counted {
    /// Returns the caveat, with its detail, where the two differ by more than sampling explains.
    ///
    /// ```
    /// use proftool::base::{Counted, Counting};
    /// let faults = |sampled| Counted {
    ///     counting: Counting::Occurrences,
    ///     counted: 245,
    ///     sampled,
    ///     samples: 40,
    ///     period: None,
    ///     ended: 0,
    ///     switches: None,
    /// };
    /// let (_, text) = faults(430).caveat("page-faults").unwrap();
    /// assert_eq!(text, "page-faults: 430 in samples, 245 counted (+75.5 %)");
    /// assert!(faults(244).caveat("page-faults").is_none());
    /// ```
    pub fn caveat(&self, event: &str) -> Option<(CaveatKind, String)> {
        let (sampled, counted) = (self.sampled as f64, self.counted as f64);
        let difference = sampled - counted;
        if self.counting == Counting::Clock && difference < 0.0 {
            return self.missed(event, -difference);
        }
        let tolerated = match self.counting {
            Counting::Occurrences => OCCURRENCES,
            _ => {
                let (tolerated, least) = match self.counting {
                    Counting::UserClock => (ESTIMATED, LEAST_EXPECTED_ESTIMATED),
                    _ => (DRAWN, LEAST_EXPECTED),
                };
                let mean = (self.samples > 0).then(|| sampled / self.samples as f64);
                let period = mean.or(self.period.map(|period| period as f64))?;
                if counted / period.max(1.0) < least {
                    return None;
                }
                tolerated
            }
        };
        if difference.abs() <= tolerated * counted.max(1.0) {
            return None;
        }
        let share = match self.counted {
            0 => String::new(),
            _ => format!(" ({:+.1} %)", 100.0 * difference / counted),
        };
        Some(match self.counting {
            // The estimate may be low.
            Counting::UserClock if difference > 0.0 => return None,
            Counting::UserClock => (
                CaveatKind::MissedTime,
                format!(
                    "{event}: {} of ≈ {} used in user space{share}",
                    milliseconds(self.sampled),
                    milliseconds(self.counted)
                ),
            ),
            Counting::Clock => (
                CaveatKind::Miscounted,
                format!(
                    "{event}: {} in samples, {} used{share}",
                    milliseconds(self.sampled),
                    milliseconds(self.counted)
                ),
            ),
            _ => (
                CaveatKind::Miscounted,
                format!(
                    "{event}: {} in samples, {} counted{share}",
                    self.sampled, self.counted
                ),
            ),
        })
    }
}

impl Counted {
    /// Processor time of which so much is in no sample, by its cause.
    fn missed(&self, event: &str, missed: f64) -> Option<(CaveatKind, String)> {
        let counted = self.counted as f64;
        let period = self.period.map(|period| period as f64);
        let period =
            period.or((self.samples > 0).then(|| self.sampled as f64 / self.samples as f64))?;
        if counted < LEAST_EXPECTED * period
            || missed < MISSED * counted
            || missed < MISSED_PERIODS * period
        {
            return None;
        }
        // What each may have cost at most: where both suffice, the larger one.
        let ends = self.ended as f64 * period;
        let switches = self.switches.unwrap_or(0) as f64 * SWITCH;
        let kind = if ends.max(switches) >= missed {
            if ends >= switches {
                CaveatKind::ShortThreads
            } else {
                CaveatKind::MissedSwitches
            }
        } else if missed > DRAWN * counted {
            CaveatKind::MissedTime
        } else {
            // Without a cause little can be done about little.
            return None;
        };
        let share = 100.0 * missed / counted;
        let used = milliseconds(self.counted);
        Some((
            kind,
            format!("{event}: {share:.1} % of {used} is in no sample"),
        ))
    }
}

fn milliseconds(nanoseconds: u64) -> String {
    format!("{:.1} ms", nanoseconds as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(counted: u64, samples: u64) -> Option<CaveatKind> {
        let counted = Counted {
            counting: Counting::Clock,
            counted,
            sampled: samples * 1_000_000,
            samples,
            period: Some(1_000_000),
            ended: 0,
            switches: None,
        };
        counted.caveat("cpu-clock").map(|(kind, _)| kind)
    }

    #[test]
    fn a_clock_may_differ_by_a_tenth() {
        assert_eq!(clock(100_000_000, 91), None);
        assert_eq!(clock(100_000_000, 89), Some(CaveatKind::MissedTime));
        assert_eq!(clock(100_000_000, 20), Some(CaveatKind::MissedTime));
        assert_eq!(clock(100_000_000, 120), Some(CaveatKind::Miscounted));
        let user = Counted {
            counting: Counting::UserClock,
            counted: 1_000_000_000,
            sampled: 760_000_000,
            samples: 760,
            period: None,
            ended: 0,
            switches: None,
        };
        assert_eq!(user.caveat("cpu-clock:u"), None);
        let few = Counted {
            sampled: 300_000_000,
            samples: 300,
            ..user
        };
        let (kind, text) = few.caveat("cpu-clock:u").unwrap();
        assert_eq!(kind, CaveatKind::MissedTime);
        assert!(text.contains("300.0 ms of ≈ 1000.0 ms"), "{text}");
        // Too few to tell.
        assert_eq!(clock(40_000_000, 10), None);
        assert_eq!(clock(49_000_000, 0), None);
        assert_eq!(clock(51_000_000, 0), Some(CaveatKind::MissedTime));
    }

    #[test]
    fn missed_time_has_a_cause() {
        let cause = |ended, switches| {
            let counted = Counted {
                counting: Counting::Clock,
                counted: 1_000_000_000,
                sampled: 900_000_000,
                samples: 900,
                period: Some(1_000_000),
                ended,
                switches,
            };
            counted.caveat("cpu-clock").map(|(kind, _)| kind)
        };
        assert_eq!(cause(100, Some(10_000)), Some(CaveatKind::ShortThreads));
        assert_eq!(cause(99, Some(10_000)), Some(CaveatKind::MissedSwitches));
        assert_eq!(cause(100, Some(20_000)), Some(CaveatKind::MissedSwitches));
        assert_eq!(cause(99, Some(9_999)), None);
        assert_eq!(cause(99, None), None);
    }

    #[test]
    fn counts_of_zero_give_no_caveat() {
        assert_eq!(clock(0, 0), None);
        let nothing = Counted {
            counting: Counting::Occurrences,
            counted: 0,
            sampled: 0,
            samples: 0,
            period: None,
            ended: 0,
            switches: None,
        };
        assert_eq!(nothing.caveat("page-faults"), None);
    }
}
