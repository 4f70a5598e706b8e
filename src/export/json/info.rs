//! What an input holds: `form`, `arch`, `events [{name, unit, unit_assumed, samples, total}]`,
//! `records {TYPE: count}`, `features [name]`, `circumstances {name: value}`.

use std::io::{self, Write};

use super::{head, list, string};
use crate::base::{Event, Sampling, Unit};
use crate::export::Advice;
use crate::profile::Contents;

/// Writes the document. Its `event` is the one with the most samples.
///
/// # Errors
///
/// Those of `out`.
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
    let arch = contents.arch.as_deref().map(string);
    writeln!(
        out,
        "\"form\":{},\"arch\":{},",
        string(&contents.form),
        arch.as_deref().unwrap_or("null")
    )?;
    out.write_all(b"\"events\":")?;
    list(out, contents.events.iter(), |out, held| {
        write!(
            out,
            "{{\"name\":{},\"unit\":{},\"unit_assumed\":{},\"samples\":{},\"total\":{}}}",
            string(&held.event.name),
            string(&held.event.unit.to_string()),
            held.sampling.assumes(&held.event.unit),
            held.samples,
            held.total
        )
    })?;
    out.write_all(b",\n\"records\":{")?;
    for (i, (name, count)) in contents.records.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        write!(out, "{comma}{}:{count}", string(name))?;
    }
    out.write_all(b"},\n\"features\":")?;
    list(out, contents.features.iter(), |out, name| {
        out.write_all(string(name).as_bytes())
    })?;
    out.write_all(b",\n\"circumstances\":{")?;
    for (i, (name, value)) in contents.circumstances.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        write!(out, "{comma}{}:{}", string(name), string(value))?;
    }
    out.write_all(b"}}\n")
}
