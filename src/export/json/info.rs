//! What an input holds: `form`, `arch`, `events [{name, unit, unit_assumed, samples, total}]`,
//! `records {TYPE: count}`, `features [name]`, `circumstances {name: value}`.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::layout::{list, value};
use super::{EventFields, head};
use crate::base::{Event, Sampling, Unit};
use crate::export::Advice;
use crate::profile::Contents;

#[derive(Serialize)]
struct EventItem<'a> {
    #[serde(flatten)]
    event: EventFields<'a>,
    samples: u64,
    total: u64,
}

// Names and what belongs to them, in their order.
struct Named<'a, K, V>(&'a [(K, V)]);

impl<K: Serialize, V: Serialize> Serialize for Named<'_, K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Writes the document. Its `event` is the one with the most samples.
pub fn write(out: &mut dyn Write, contents: &Contents, advice: &dyn Advice) -> io::Result<()> {
    let nothing = Event {
        name: "samples".into(),
        unit: Unit::Samples,
    };
    let main = contents.main_event();
    head(
        out,
        "info",
        main.map_or(&nothing, |main| &main.event),
        main.map_or(Sampling::Unknown, |main| main.sampling),
        main.map_or(0, |main| main.total),
        contents.samples,
        (&contents.caveats, advice),
    )?;
    out.write_all(b"\"form\":")?;
    value(out, &contents.form)?;
    out.write_all(b",\"arch\":")?;
    value(out, &contents.arch)?;
    out.write_all(b",\n\"events\":")?;
    let events = contents.events.iter().map(|held| EventItem {
        event: EventFields::of(&held.event, held.sampling),
        samples: held.samples,
        total: held.total,
    });
    list(out, events)?;
    out.write_all(b",\n\"records\":")?;
    value(out, &Named(&contents.records))?;
    out.write_all(b",\n\"features\":")?;
    list(out, &contents.features)?;
    out.write_all(b",\n\"circumstances\":")?;
    value(out, &Named(&contents.circumstances))?;
    out.write_all(b"}\n")
}
