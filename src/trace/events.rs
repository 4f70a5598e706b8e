//! The events of a recording, as a profile has them.

use linux_perf_event_reader::{SampleFormat, constants};

use super::counts::counting;
use crate::base::{Counting, Event, Sampling, Unit};

/// The event in the profile's terms.
pub(super) fn event(description: &crate::perfdata::EventDescription) -> Event {
    // Without periods in its samples a sample counts one.
    let mut event = Event::named(&description.name);
    let attr = &description.attr;
    // Whatever it is called. Before it is `PERF_COUNT_SW_CPU_CLOCK`.
    let is_clock = attr.kind == constants::PERF_TYPE_SOFTWARE
        && attr.config <= constants::PERF_COUNT_SW_TASK_CLOCK;
    match (is_clock, event.base()) {
        (true, _) => event.unit = Unit::Nanoseconds,
        (false, base @ ("cpu-clock" | "task-clock")) => event.unit = Unit::Count(base.to_owned()),
        _ => {}
    }
    let format = attr.sample_format();
    // A group's samples have the values of all its counters.
    let has_values =
        format.contains(SampleFormat::READ) && attr.read_format & constants::PERF_FORMAT_GROUP != 0;
    let has_period = format.contains(SampleFormat::PERIOD) || has_values;
    if !has_period && attr.fixed_period().is_none() {
        event.unit = Unit::Samples;
    }
    event
}

/// How the samples of an event are chosen.
///
/// The kernel records each occurrence of a software event, a tracepoint or a breakpoint if the
/// period is 1. It does so for any fixed period if samples hold their period, which is then how
/// often the event occurred at once (`perf_swevent_event`). Clocks and counters of the processor
/// are always sampled: the shortest period of a clock is 10 µs, and a counter overflows on.
pub(super) fn sampling(attr: &crate::perfdata::Attr) -> Sampling {
    let is_countable = counting(attr) == Counting::Occurrences;
    let has_period = attr.sample_format().contains(SampleFormat::PERIOD);
    match attr.fixed_period() {
        Some(period) if is_countable && (period == 1 || has_period) => Sampling::Census,
        _ => Sampling::Drawn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perfdata::Attr;
    use linux_perf_event_reader::AttrFlags;

    fn attr(kind: u32, config: u64, period: u64) -> Attr {
        let mut attr = Attr::default();
        (attr.kind, attr.config, attr.period_or_frequency) = (kind, config, period);
        attr
    }

    #[test]
    fn clocks_are_known_by_number_and_not_by_name() {
        let named = |name: &str, attr: Attr| {
            let (name, ids) = (name.to_owned(), Vec::new());
            event(&crate::perfdata::EventDescription { name, attr, ids }).unit
        };
        let by_frequency = |kind, config| {
            let mut attr = attr(kind, config, 99);
            attr.sample_type = SampleFormat::PERIOD.bits();
            attr
        };
        assert_eq!(named("mine", by_frequency(1, 1)), Unit::Nanoseconds);
        assert_eq!(
            named("cpu-clock/freq=9/", by_frequency(1, 0)),
            Unit::Nanoseconds
        );
        let other = named("cpu-clock", by_frequency(0, 0));
        assert_eq!(other, Unit::Count("cpu-clock".into()));
    }

    #[test]
    fn only_countable_events_of_period_one_are_a_census() {
        const PAGE_FAULTS: u64 = 2;
        let census = |attr: &Attr| sampling(attr) == Sampling::Census;
        assert!(census(&attr(1, PAGE_FAULTS, 1)));
        assert!(census(&attr(2, 315, 1)));
        assert!(census(&attr(5, 0, 1)));
        // Every hundredth.
        assert!(!census(&attr(1, PAGE_FAULTS, 100)));
        // With their period in the samples the kernel writes one for each.
        let mut with_period = attr(1, PAGE_FAULTS, 100);
        with_period.sample_type = SampleFormat::PERIOD.bits();
        assert!(census(&with_period));
        // By frequency: the number is in Hz.
        let mut by_frequency = attr(1, PAGE_FAULTS, 1);
        by_frequency.set_flags(AttrFlags::FREQ);
        assert!(!census(&by_frequency));
        // Clocks and counters of the processor.
        assert!(!census(&attr(1, 0, 1)));
        assert!(!census(&attr(1, 1, 1)));
        assert!(!census(&attr(0, 0, 1)));
        assert!(!census(&attr(4, 0x1c2, 1)));
        // Counted along with a group, no period of its own.
        assert!(!census(&attr(1, PAGE_FAULTS, 0)));
    }
}
