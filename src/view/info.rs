//! What an input holds, as a page for people and a table for spreadsheets.

use super::caveats;
use super::number;
use super::page::{Block, Page};
use super::table::{Cell, Column, Role, Table};
use crate::base::{Sampling, Unit};
use crate::profile::Contents;

/// The page: what it is, its events, its records, and what could not be read.
pub fn page(contents: &Contents) -> Page {
    let mut blocks = vec![Block::Line(headline(contents))];
    for (name, value) in &contents.circumstances {
        blocks.push(Block::Line(format!("{name}: {value}")));
    }
    if !contents.events.is_empty() {
        blocks.extend([Block::Space, Block::Table(events(contents))]);
    }
    if !contents.records.is_empty() {
        let mut records = Table::new(vec![
            Column::new("count", "records", Role::Figure),
            Column::new("type", "type", Role::Name),
        ]);
        for (name, count) in &contents.records {
            let cells = vec![Cell::Count(*count), Cell::Text(name.clone())];
            records.rows.push(cells);
        }
        blocks.extend([Block::Space, Block::Table(records)]);
    }
    if !contents.features.is_empty() {
        let features = format!("features: {}", contents.features.join(", "));
        blocks.extend([Block::Space, Block::Line(features)]);
    }
    blocks.extend(caveats::foot(&contents.caveats));
    Page {
        unit: Unit::Samples,
        blocks,
    }
}

/// The events with their samples.
pub fn events(contents: &Contents) -> Table {
    let mut table = Table::new(vec![
        Column::new("samples", "samples", Role::Figure),
        Column::new("total", "total", Role::Figure),
        Column::new("event", "event", Role::Name),
    ]);
    for held in &contents.events {
        let samples = match (held.sampling, &held.event.unit) {
            // Each line counts as one sample, which says nothing of how many there were.
            (Sampling::Merged, Unit::Nanoseconds | Unit::Count(_)) => Cell::Nothing,
            _ => Cell::Count(held.samples),
        };
        let total = number::weight(held.total, &held.event.unit);
        let total = match &held.event.unit {
            Unit::Nanoseconds => total,
            unit => format!("{total} {unit}"),
        };
        table.rows.push(vec![
            samples,
            Cell::Text(total),
            Cell::Text(held.event.name.clone()),
        ]);
    }
    table
}

fn headline(contents: &Contents) -> String {
    if let [held] = &contents.events[..]
        && held.sampling == Sampling::Merged
    {
        let unit = &held.event.unit;
        let amount = super::stated_amount(held.samples, held.total, unit);
        return format!("{}: {amount} ({})", contents.form, super::not_stated(unit));
    }
    let samples = super::counted_samples(contents.samples);
    let arch = match &contents.arch {
        Some(arch) => format!(" from {arch}"),
        None => String::new(),
    };
    format!("{}{arch}: {samples}", contents.form)
}
