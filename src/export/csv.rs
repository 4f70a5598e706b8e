//! Comma-separated values by RFC 4180: a heading, then one record a row. Lines end with a bare
//! newline, as everywhere on Linux.
//!
//! Numbers are whole and in the event's unit, shares are percentages with four decimals. Fields
//! with a comma, a quote or a space at an end are quoted; control characters and characters that
//! are not seen are written `\xNN` or `\u{NNNN}`, so a record is always one line.
//!
//! A spreadsheet takes a field that begins with `=`, `+`, `-` or `@` for a formula and executes it.
//! A text that begins so has a `'` before it (OWASP, "CSV Injection"). To get the text back, remove
//! one `'` from a field that begins with any number of `'` and one of these characters. Numbers are
//! written as they are.

use std::borrow::Cow;
use std::io::{self, Write};

use super::shown::Shown;
use crate::base::printable;
use crate::view::number;
use crate::view::table::{Cell, Table};

/// Writes the table.
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
        Cell::Text(text) => quoted(text),
        Cell::Name(name) => Cow::Owned(quoted(&Shown::what(&name.what).whole()).into_owned()),
        Cell::Weight(n) | Cell::Count(n) => Cow::Owned(n.to_string()),
        Cell::Index(n) => Cow::Owned(n.to_string()),
        Cell::Share { part, whole } | Cell::Limit { part, whole } => {
            Cow::Owned(number::percent(*part, *whole, 4))
        }
        Cell::Difference(n) => Cow::Owned(n.to_string()),
        Cell::Growth { difference, of } => {
            Cow::Owned(format!("{:.4}", 100.0 * *difference as f64 / *of as f64))
        }
        Cell::Factor { number, of } => Cow::Owned(format!("{:.4}", *number as f64 / *of as f64)),
        Cell::PerCall { weight, calls } => {
            Cow::Owned(format!("{:.3}", *weight as f64 / (*calls).max(1) as f64))
        }
    }
}

/// A text as a field.
///
/// ```
/// use proftool::export::csv::quoted;
/// assert_eq!(quoted("f(int, \"x\")"), "\"f(int, \"\"x\"\")\"");
/// assert_eq!(quoted("=cmd|' /C calc'!A0"), "'=cmd|' /C calc'!A0");
/// ```
pub fn quoted(text: &str) -> Cow<'_, str> {
    let mut text = printable(text);
    if is_like_formula(&text) {
        text = Cow::Owned(format!("'{text}"));
    }
    let plain = !text.contains([',', '"']) && text.trim() == text;
    if plain {
        text
    } else {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    }
}

// A spreadsheet would execute the text, or it looks like one that was defused. Tabs and returns,
// which some skip before a formula, are escaped already. The wide forms are those of East Asian
// keyboards, which some spreadsheets treat alike.
fn is_like_formula(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with([
        '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_escaped_and_can_be_restored() {
        for text in ["=1+1", "+1", "-2", "@SUM(A1)", "'=1", "''-x", "＝1"] {
            let field = quoted(text);
            assert_eq!(field.strip_prefix('\''), Some(text));
        }
        for text in ["main", "a=b", "'static", "f(-1)", "~operator+", ""] {
            assert_eq!(quoted(text).trim_matches('"'), text);
        }
        assert_eq!(quoted("\t=1"), "\\x09=1");
        assert_eq!(quoted("-a,b"), "\"'-a,b\"");
    }

    #[test]
    fn numbers_are_not_defused() {
        for (cell, written) in [
            (Cell::Count(7), "7"),
            (Cell::Share { part: 1, whole: 4 }, "25.0000"),
        ] {
            assert_eq!(field(&cell), written);
        }
    }
}
