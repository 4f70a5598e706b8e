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
    pub fn of<'a>(sides: [impl Iterator<Item = &'a About> + Clone; 2]) -> Option<Apart> {
        let differ = |what: fn(&About) -> Option<&str>| {
            let [base, new] = sides.clone().map(|side| side.filter_map(what).collect());
            are_other(&base, &new)
        };
        if differ(|it| it.host.as_deref()) || differ(|it| it.processor.as_deref()) {
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

// What no run of a side states does not differ.
fn are_other(base: &BTreeSet<&str>, new: &BTreeSet<&str>) -> bool {
    !base.is_empty() && !new.is_empty() && base != new
}

// From the start of the first run to the end of the last.
fn span<'a>(side: impl Iterator<Item = &'a About> + Clone) -> Option<[u64; 2]> {
    let started: Option<Vec<u64>> = side.clone().map(|about| about.started).collect();
    let ends = side.filter_map(|about| {
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
            Apart::of([base.iter(), new.iter()])
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
        assert_eq!(
            Apart::of([both[..1].iter(), both[1..].iter()]),
            Some(Apart::Machines)
        );
        assert_eq!(Apart::of([both.iter(), both.iter()]), None);
        let of = |processor: &str| About {
            processor: Some(processor.to_owned()),
            ..run("one", 0)
        };
        let [a, b, unknown] = [[of("a")], [of("b")], [run("one", 0)]];
        let apart = |base: &[About; 1], new: &[About; 1]| Apart::of([base.iter(), new.iter()]);
        assert_eq!(apart(&a, &b), Some(Apart::Machines));
        // Not every recorder states it.
        assert_eq!(apart(&a, &unknown), None);
    }

    #[test]
    fn what_recordings_do_not_state_keeps_nothing_apart() {
        let unknown = [About::default()];
        let known = [run("one", 900)];
        assert_eq!(Apart::of([unknown.iter(), known.iter()]), None);
        assert_eq!(Apart::of([unknown.iter(), unknown.iter()]), None);
    }
}
