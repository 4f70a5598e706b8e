//! Parts of a recording by time.

use std::ops::Range;

/// A part of a recording; the default is all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    start: Option<u64>,
    /// Behind the start, where both are there.
    end: Option<u64>,
    is_absolute: bool,
}

/// Which samples are read, and whether their times are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    pub part: TimeRange,
    /// Whether samples are counted by slices of time as well.
    pub keeps_times: bool,
}

impl From<TimeRange> for Scope {
    fn from(part: TimeRange) -> Scope {
        Scope {
            part,
            keeps_times: false,
        }
    }
}

impl TimeRange {
    /// The part from `start` to `end`, which is not in it, in nanoseconds after the first sample.
    /// It begins or ends with the recording where there is `None`. Returns `None` if nothing is in
    /// it.
    ///
    /// ```
    /// use proftool::input::TimeRange;
    ///
    /// let second = TimeRange::after_first_sample(Some(1_000_000_000), Some(2_000_000_000));
    /// assert_eq!(second.unwrap().end(), Some(2_000_000_000));
    /// assert!(TimeRange::after_first_sample(Some(5), Some(5)).is_none());
    /// ```
    pub fn after_first_sample(start: Option<u64>, end: Option<u64>) -> Option<TimeRange> {
        TimeRange::new(start, end, false)
    }

    /// The part from `start` to `end` in nanoseconds of the recorder's clock.
    pub fn of_clock(start: Option<u64>, end: Option<u64>) -> Option<TimeRange> {
        TimeRange::new(start, end, true)
    }

    fn new(start: Option<u64>, end: Option<u64>, is_absolute: bool) -> Option<TimeRange> {
        let is_empty = start.zip(end).is_some_and(|(start, end)| start >= end);
        (!is_empty).then_some(TimeRange {
            start,
            end,
            is_absolute,
        })
    }

    /// The first nanosecond.
    pub fn start(self) -> Option<u64> {
        self.start
    }

    /// The nanosecond after the last.
    pub fn end(self) -> Option<u64> {
        self.end
    }

    /// Whether these are times of the recorder's clock; else they count from the first sample.
    pub fn is_absolute(self) -> bool {
        self.is_absolute
    }

    /// Whether it leaves nothing out.
    pub fn is_all(self) -> bool {
        self.start.is_none() && self.end.is_none()
    }

    /// The range in times of the recorder's clock, whose first sample was taken at `first`.
    fn absolute(self, first: u64) -> (u64, u64) {
        let origin = if self.is_absolute { 0 } else { first };
        let at = |time: Option<u64>, open| time.map_or(open, |time| origin.saturating_add(time));
        (at(self.start, 0), at(self.end, u64::MAX))
    }

    /// When it begins by the recorder's clock: not before the first sample, which was taken at
    /// `first`.
    pub(super) fn begin(self, first: u64) -> u64 {
        self.absolute(first).0.max(first)
    }

    /// Where it begins and ends, in nanoseconds after the first sample, which was taken at `first`.
    pub(super) fn after(self, first: u64) -> (u64, Option<u64>) {
        let end = self
            .end
            .map(|_| self.absolute(first).1.saturating_sub(first));
        (self.begin(first) - first, end)
    }

    /// What of the time from `start` to `end` is in it, where it is counted from `first` on; `None`
    /// if nothing is.
    pub(super) fn overlap(self, first: u64, start: u64, end: u64) -> Option<Range<u64>> {
        let (begin, limit) = self.absolute(first);
        let (from, to) = (begin.max(start), limit.min(end));
        (from < to || self.is_all()).then(|| from..to.max(from))
    }

    pub(super) fn covers(self, first: u64, time: u64) -> bool {
        let (begin, limit) = self.absolute(first);
        begin <= time && (time < limit || self.end.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_of_an_interval_in_the_range_counts() {
        let range = |start, end| TimeRange::after_first_sample(start, end).unwrap();
        let all = TimeRange::default();
        assert_eq!(all.overlap(1000, 1010, 1015), Some(1010..1015));
        assert_eq!(all.overlap(1000, 1010, 1010), Some(1010..1010));
        // Counted from 1000 on: 1010 to 1020.
        let part = range(Some(10), Some(20));
        assert_eq!(part.overlap(1000, 1005, 1015), Some(1010..1015));
        assert_eq!(part.overlap(1000, 1012, 1013), Some(1012..1013));
        assert_eq!(part.overlap(1000, 900, 5000), Some(1010..1020));
        assert_eq!(part.overlap(1000, 1000, 1010), None);
        assert_eq!(part.overlap(1000, 1020, 1030), None);
        let open = range(Some(10), None);
        assert_eq!(open.overlap(u64::MAX, 0, u64::MAX), None);
        assert_eq!(open.overlap(0, 0, u64::MAX), Some(10..u64::MAX));
    }

    #[test]
    fn absolute_times_do_not_depend_on_the_first_sample() {
        let part = TimeRange::of_clock(Some(1010), Some(1020)).unwrap();
        for first in [0, 1000, 1015] {
            assert_eq!(part.overlap(first, 1005, 1015), Some(1010..1015));
            let covered = [1009, 1010, 1019, 1020].map(|time| part.covers(first, time));
            assert_eq!(covered, [false, true, true, false]);
        }
        assert_eq!(part.after(1000), (10, Some(20)));
        // It cannot begin before the first sample.
        assert_eq!(part.after(1015), (0, Some(5)));
        let relative = TimeRange {
            is_absolute: false,
            ..part
        };
        assert_eq!(relative.after(1000), (1010, Some(1020)));
        assert!(!relative.covers(1000, 1010) && relative.covers(1000, 2010));
    }
}
