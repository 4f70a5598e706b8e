//! Parts of a recording by time.

/// A part of a recording, in nanoseconds from its first sample; an open end reaches to the end
/// of the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The first nanosecond.
    pub start: Option<u64>,
    /// The nanosecond after the last.
    pub end: Option<u64>,
}

impl TimeRange {
    /// Whether it leaves nothing out.
    pub fn is_all(self) -> bool {
        self == TimeRange::default()
    }

    /// How much of what went from `start` to `end` is in it, where it is counted from `first` on;
    /// `None` if nothing is.
    pub(super) fn overlap(self, first: u64, start: u64, end: u64) -> Option<u64> {
        let from = self
            .start
            .map_or(0, |at| first.saturating_add(at))
            .max(start);
        let to = self
            .end
            .map_or(u64::MAX, |at| first.saturating_add(at))
            .min(end);
        (from < to || self.is_all()).then(|| to.saturating_sub(from))
    }

    /// Whether a sample so many nanoseconds after the first one is in it.
    pub(super) fn covers(self, time: u64) -> bool {
        self.start.is_none_or(|start| time >= start) && self.end.is_none_or(|end| time < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_interval_counts_what_lies_in_the_range() {
        let range = |start, end| TimeRange { start, end };
        let all = TimeRange::default();
        assert_eq!(all.overlap(1000, 1010, 1015), Some(5));
        assert_eq!(all.overlap(1000, 1010, 1010), Some(0));
        // Counted from 1000 on: 1010 to 1020.
        let part = range(Some(10), Some(20));
        assert_eq!(part.overlap(1000, 1005, 1015), Some(5));
        assert_eq!(part.overlap(1000, 1012, 1013), Some(1));
        assert_eq!(part.overlap(1000, 900, 5000), Some(10));
        assert_eq!(part.overlap(1000, 1000, 1010), None);
        assert_eq!(part.overlap(1000, 1020, 1030), None);
        let open = range(Some(10), None);
        assert_eq!(open.overlap(u64::MAX, 0, u64::MAX), None);
        assert_eq!(open.overlap(0, 0, u64::MAX), Some(u64::MAX - 10));
    }
}
