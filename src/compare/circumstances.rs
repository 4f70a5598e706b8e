//! Whether the times of two sides can be compared at all.
//!
//! On another machine, or an hour later, a program takes another time without being another
//! program, and that repeats in all runs of a side: their variance does not tell. Only what is
//! counted stays comparable.

use std::collections::BTreeSet;

use crate::profile::About;

/// The longest time between the runs of two sides, in nanoseconds.
const LONGEST: u64 = 3600 * 1_000_000_000;

/// Why times differ whether or not the program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// The sides were recorded on different machines.
    Machines,
    /// More than an hour was between the runs of one side and those of the other.
    Times,
}

impl Apart {
    /// Returns what is between two sides, as far as their recordings state where and when they were
    /// made.
    pub fn of(sides: [&[About]; 2]) -> Option<Apart> {
        let [base, new] = sides.map(machines);
        if !base.is_empty() && !new.is_empty() && base != new {
            return Some(Apart::Machines);
        }
        let [base, new] = sides.map(span);
        let ([from, to], [new_from, new_to]) = (base?, new?);
        let between = new_from.saturating_sub(to).max(from.saturating_sub(new_to));
        (between > LONGEST).then_some(Apart::Times)
    }

    /// The word for it in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Apart::Machines => "machines",
            Apart::Times => "times",
        }
    }
}

// By name and processor.
fn machines(side: &[About]) -> BTreeSet<(&str, &str)> {
    let machines = side.iter().filter_map(|about| {
        let [host, processor] = [&about.host, &about.processor].map(Option::as_deref);
        Some((host?, processor.unwrap_or_default()))
    });
    machines.collect()
}

// From the start of the first run to the end of the last.
fn span(side: &[About]) -> Option<[u64; 2]> {
    let started: Option<Vec<u64>> = side.iter().map(|about| about.started).collect();
    let ends = side.iter().filter_map(|about| {
        let started = about.started?;
        Some(started.saturating_add(about.duration.unwrap_or(0)))
    });
    Some([started?.into_iter().min()?, ends.max()?])
}

#[cfg(test)]
mod tests {
    use super::Apart;
    use crate::profile::About;

    const MINUTE: u64 = 60 * 1_000_000_000;

    fn run(host: &str, minute: u64) -> About {
        About {
            host: Some(host.to_owned()),
            started: Some(minute * MINUTE),
            duration: Some(MINUTE),
            ..About::default()
        }
    }

    #[test]
    fn runs_in_turn_or_one_side_after_the_other_are_comparable() {
        let apart = |base: [u64; 2], new: [u64; 2]| {
            let [base, new] = [base, new].map(|side| side.map(|minute| run("one", minute)));
            Apart::of([&base, &new])
        };
        assert_eq!(apart([0, 4], [2, 6]), None);
        assert_eq!(apart([0, 2], [4, 6]), None);
        assert_eq!(apart([0, 2], [63, 65]), None);
        assert_eq!(apart([0, 2], [64, 65]), Some(Apart::Times));
        assert_eq!(apart([64, 65], [0, 2]), Some(Apart::Times));
    }

    #[test]
    fn other_machines_are_known_by_name_or_processor() {
        let both = [run("one", 0), run("two", 1)];
        assert_eq!(Apart::of([&both[..1], &both[1..]]), Some(Apart::Machines));
        assert_eq!(Apart::of([&both, &both]), None);
        let of = |processor: &str| About {
            processor: Some(processor.to_owned()),
            ..run("one", 0)
        };
        assert_eq!(Apart::of([&[of("a")], &[of("b")]]), Some(Apart::Machines));
    }

    #[test]
    fn what_recordings_do_not_state_keeps_nothing_apart() {
        let unknown = [About::default()];
        assert_eq!(Apart::of([&unknown, &[run("one", 900)]]), None);
        assert_eq!(Apart::of([&unknown, &unknown]), None);
    }
}
