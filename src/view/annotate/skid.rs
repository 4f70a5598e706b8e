//! How far from its cause a sample may be.

use crate::base::Event;

/// Software events that are counted where they happen, and no interrupt is waited for.
const AT_THE_CAUSE: [&str; 10] = [
    "off-cpu",
    "preempted",
    "page-faults",
    "faults",
    "minor-faults",
    "major-faults",
    "context-switches",
    "cs",
    "alignment-faults",
    "emulation-faults",
];

/// A note that samples can lie behind what took the time; none for events whose samples do not.
pub(super) fn note(event: &Event) -> Option<String> {
    let (name, modifiers) = event.name.split_once(':').unwrap_or((&event.name, ""));
    // Behind the name of a group of tracepoints stands the name of one of them.
    let is_modifier = |c: char| "ukhGHIpPSDWeb".contains(c);
    let is_tracepoint = !modifiers.chars().all(is_modifier);
    let is_precise = modifiers.contains(['p', 'P']);
    if is_tracepoint || is_precise || AT_THE_CAUSE.contains(&name) {
        return None;
    }
    let text = "A sample counts for the instruction at which the program was interrupted. Unless \
                the event is precise, that can be one or a few instructions after the one that \
                took the time, and so the line after it.";
    Some(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precise_events_and_tracepoints_have_no_skid() {
        let has_note = |name: &str| note(&Event::named(name)).is_some();
        for name in ["cycles", "cpu-clock", "cycles:u", "cpu-clock:uk"] {
            assert!(has_note(name), "{name}");
        }
        for name in [
            "cycles:pp",
            "cycles:uP",
            "sched:sched_switch",
            "page-faults:u",
            "off-cpu",
        ] {
            assert!(!has_note(name), "{name}");
        }
    }
}
