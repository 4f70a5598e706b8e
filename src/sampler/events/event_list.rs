//! Several events as a person writes them at once.
//!
//! ```text
//! list   = item { "," item }
//! item   = event | "{" event { "," event } "}" [ ":" modifiers ]
//! event  = NAME [ ":" modifiers ] | PMU "/" terms "/" [ [ ":" ] modifiers ]
//! ```
//!
//! A comma within braces or slashes does not end an item.

use std::str::FromStr;

use super::error::EventError;
use super::event::EventSpec;
use super::modifiers::Modifiers;

/// Events and groups of events. The events of a group are on the counters together or not at all.
///
/// ```
/// use proftool::sampler::EventList;
/// let list: EventList = "cpu-clock,{page-faults,context-switches}:u".parse().unwrap();
/// let names: Vec<&str> = list.events().iter().map(|event| event.name()).collect();
/// assert_eq!(names, ["cpu-clock", "page-faults:u", "context-switches:u"]);
/// let members: Vec<bool> = list.events().iter().map(|event| event.is_member()).collect();
/// assert_eq!(members, [false, false, true]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventList(Vec<EventSpec>);

impl EventList {
    /// The events in the order in which they were given.
    pub fn events(&self) -> &[EventSpec] {
        &self.0
    }
}

impl FromStr for EventList {
    type Err = EventError;

    fn from_str(text: &str) -> Result<EventList, EventError> {
        let mut events = Vec::new();
        for item in split(text)? {
            match item.strip_prefix('{') {
                Some(group) => events.extend(parse_group(item, group)?),
                None => events.push(item.parse()?),
            }
        }
        Ok(EventList(events))
    }
}

/// The events of a group; `rest` is what follows its opening brace.
fn parse_group(item: &str, rest: &str) -> Result<Vec<EventSpec>, EventError> {
    let Some((inside, behind)) = rest.rsplit_once('}') else {
        return Err(syntax(item, "a group ends with }"));
    };
    let modifiers = match behind.strip_prefix(':') {
        Some(letters) if !letters.is_empty() => Modifiers::parse(item, letters)?,
        None if behind.is_empty() => Modifiers::default(),
        _ => return Err(syntax(item, "behind } come : and modifiers, or a comma")),
    };
    let mut events = Vec::new();
    for name in split(inside)? {
        events.push(name.parse::<EventSpec>()?.with_group(modifiers));
    }
    EventSpec::join(&mut events);
    Ok(events)
}

/// The parts between commas that stand neither in braces nor in slashes.
fn split(text: &str) -> Result<Vec<&str>, EventError> {
    let mut parts = Vec::new();
    let mut start = 0;
    let (mut in_braces, mut in_slashes) = (false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '/' => in_slashes = !in_slashes,
            '{' if !in_slashes => {
                if in_braces || at != start {
                    return Err(syntax(text, "a group begins an item, and holds none"));
                }
                in_braces = true;
            }
            '}' if !in_slashes => {
                if !in_braces {
                    return Err(syntax(text, "} ends no group"));
                }
                in_braces = false;
            }
            ',' if !in_braces && !in_slashes => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if in_braces {
        return Err(syntax(text, "a group ends with }"));
    }
    if in_slashes {
        return Err(syntax(text, "the terms of a PMU end with /"));
    }
    parts.push(&text[start..]);
    Ok(parts)
}

fn syntax(text: &str, problem: &'static str) -> EventError {
    EventError::Syntax {
        text: text.to_owned(),
        problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<EventSpec> {
        text.parse::<EventList>().unwrap().0
    }

    #[test]
    fn commas_divide_only_outside_of_braces_and_slashes() {
        let parts = split("cycles:u,{a,b}:S,cpu/event=1,umask=2/p,c").unwrap();
        assert_eq!(parts, ["cycles:u", "{a,b}:S", "cpu/event=1,umask=2/p", "c"]);
        assert_eq!(split("").unwrap(), [""]);
    }

    #[test]
    fn the_leader_samples_for_all_where_it_is_asked_to() {
        for text in ["{cpu-clock,page-faults}:S", "{cpu-clock:S,page-faults}"] {
            let events = parsed(text);
            assert!(events.iter().all(|event| event.reads), "{text}");
            assert_eq!(events.iter().filter(|event| event.is_member()).count(), 1);
        }
        assert!(parsed("{cpu-clock,cs}").iter().all(|event| !event.reads));
        // Nobody else is there to be read.
        assert!(!parsed("{cpu-clock}:S")[0].reads);
    }

    #[test]
    fn the_modifiers_of_a_group_are_those_of_each_event() {
        let events = parsed("{cpu-clock:p,cs}:uS");
        assert_eq!(
            (events[0].name(), events[1].name()),
            ("cpu-clock:up", "cs:u")
        );
        assert!(events.iter().all(|event| !event.modifiers.kernel()));
    }

    #[test]
    fn an_invalid_list_is_reported_in_one_line() {
        for text in [
            "{cycles",
            "cycles}",
            "{cycles}x",
            "{cycles}:",
            "{{cycles},cs}",
            "a{cycles}",
            "{}",
            "{cycles,}",
            "cycles,",
            ",",
            "cpu/event=1",
            "{cycles}:uz",
            "/",
            "{/}",
        ] {
            let error = text.parse::<EventList>().unwrap_err().to_string();
            assert_eq!(error.lines().count(), 1, "{text}: {error}");
        }
    }
}
