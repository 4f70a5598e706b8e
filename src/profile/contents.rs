//! What a recording holds, in words and numbers.

use crate::base::{Caveats, Event, Sampling};

/// An inventory of an input: the events, records and features from which a profile can be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// What kind of file it is, in a few words.
    pub form: String,
    /// The architecture of the machine that recorded, as `uname -m` prints it.
    pub arch: Option<String>,
    /// The events, in the file's order.
    pub events: Vec<EventContents>,
    /// The number of samples.
    pub samples: u64,
    /// How many records there are of each type, by name in order.
    pub records: Vec<(String, u64)>,
    /// The names of the optional parts that it has, in the file's order.
    pub features: Vec<String>,
    /// How it was made: names and values, for people.
    pub circumstances: Vec<(&'static str, String)>,
    /// What could not be read.
    pub caveats: Caveats,
}

/// What an input holds of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventContents {
    /// The event.
    pub event: Event,
    /// How its samples were chosen.
    pub sampling: Sampling,
    /// The number of its samples. A sample of a group of events counts for each of them.
    pub samples: u64,
    /// The sum of their weights, in the event's unit.
    pub total: u64,
}

impl Contents {
    /// Returns the event that views show by default, by the rule of [`Event::main`].
    pub fn main_event(&self) -> Option<&EventContents> {
        let events = self.events.iter().map(|held| (&held.event, held.samples));
        self.events.get(Event::main(events)?)
    }
}
