//! Comma-separated values by RFC 4180: a heading, then one record a row. Lines end with a bare
//! newline, as everywhere on Linux.
//!
//! Numbers are whole and in the event's unit, shares are percentages with four decimals. Fields
//! with a comma, a quote or a space at an end are quoted; control characters are written
//! `\xNN`, so a record is always one line. A name that begins with `=` is left as it is: what a
//! spreadsheet does with it is for the spreadsheet to be asked.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::base::printable;
use crate::view::number;
use crate::view::table::{Cell, Table};

/// Writes the table.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, table: &Table) -> io::Result<()> {
    let keys = table.columns.iter().map(|column| Cow::Borrowed(column.key));
    record(out, keys)?;
    for row in &table.rows {
        record(out, row.iter().map(field))?;
    }
    Ok(())
}

fn record<'a>(out: &mut dyn Write, fields: impl Iterator<Item = Cow<'a, str>>) -> io::Result<()> {
    for (i, field) in fields.enumerate() {
        if i > 0 {
            out.write_all(b",")?;
        }
        out.write_all(field.as_bytes())?;
    }
    out.write_all(b"\n")
}

fn field(cell: &Cell) -> Cow<'_, str> {
    match cell {
        Cell::Nothing => Cow::Borrowed(""),
        Cell::Text(text) | Cell::Branch { text, .. } | Cell::Faint { text, .. } => quoted(text),
        Cell::Weight(n) | Cell::Count(n) => Cow::Owned(n.to_string()),
        Cell::Share { part, whole } | Cell::Limit { part, whole } => {
            Cow::Owned(number::percent(*part, *whole, 4))
        }
    }
}

/// A text as a field.
///
/// ```
/// use proftool::export::csv::quoted;
/// assert_eq!(quoted("f(int, \"x\")"), "\"f(int, \"\"x\"\")\"");
/// ```
pub fn quoted(text: &str) -> Cow<'_, str> {
    let text = printable(text);
    let plain = !text.contains([',', '"']) && text.trim() == text;
    if plain {
        text
    } else {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    }
}
