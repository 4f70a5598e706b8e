//! What a gmon.out holds, without the program that made it.

use super::super::Reason;
use super::file::{Gmon, Histogram, Shape};
use super::{Named, rounded};
use crate::base::{Caveats, Event, Sampling, Unit};
use crate::profile::{Contents, EventContents};

// Word size and byte order are the first in which the file can be read without a fault.
pub(in crate::input) fn of(file: &Named) -> Result<Contents, Reason> {
    let shapes = [(true, false), (false, false), (true, true), (false, true)];
    let mut first = None;
    for (wide, big_endian) in shapes {
        let shape = Shape { wide, big_endian };
        let (mut gmon, mut caveats) = (Gmon::default(), Caveats::default());
        match gmon.add(&file.bytes, shape, &file.name, &mut caveats) {
            Ok(()) if caveats.is_empty() => return Ok(arrange(&gmon, shape, caveats)),
            Ok(()) => first = first.or(Some((gmon, shape, caveats))),
            Err(_) => {}
        }
    }
    match first {
        Some((gmon, shape, caveats)) => Ok(arrange(&gmon, shape, caveats)),
        None => Err(Reason::Gmon {
            problem: "its header cannot be read".into(),
        }),
    }
}

fn arrange(gmon: &Gmon, shape: Shape, caveats: Caveats) -> Contents {
    let bits = if shape.wide { 64 } else { 32 };
    let order = if shape.big_endian { "big" } else { "little" };
    let ticks = gmon
        .histograms
        .iter()
        .flat_map(|histogram| &histogram.ticks);
    let samples = ticks.fold(0u64, |sum, ticks| sum.saturating_add(*ticks));
    let rate = f64::from(gmon.rate.unwrap_or(1));
    let calls = gmon
        .arcs
        .iter()
        .fold(0u64, |sum, arc| sum.saturating_add(arc.count));
    let buckets: usize = gmon
        .histograms
        .iter()
        .map(|histogram| histogram.ticks.len())
        .sum();
    let bucket = gmon.histograms.first().map_or(0.0, Histogram::scale) * 2.0;
    Contents {
        form: format!("gmon.out, {bits}-bit, {order}-endian"),
        arch: None,
        events: vec![EventContents {
            event: Event {
                name: "profil".into(),
                unit: Unit::Nanoseconds,
            },
            sampling: Sampling::Unknown,
            samples,
            total: rounded(samples as f64 * 1e9 / rate),
        }],
        samples,
        records: vec![
            ("arc".into(), gmon.arcs.len() as u64),
            ("basic block".into(), gmon.blocks),
            ("histogram".into(), gmon.histograms.len() as u64),
        ],
        features: Vec::new(),
        circumstances: vec![
            ("rate", format!("{rate} ticks a second")),
            ("buckets", format!("{buckets} of {bucket} bytes")),
            ("calls", calls.to_string()),
        ],
        caveats,
    }
}
