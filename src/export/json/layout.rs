//! The layout of values in a document.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use crate::base::is_unsafe_char;

// Every character that is not safe to print is escaped, and floats have as few digits as tell them
// apart, without an exponent.
#[derive(Default)]
struct Printable {
    // The braces of the outermost object are left out.
    is_open: bool,
    // The number of objects around what is written.
    depth: usize,
}

impl Formatter for Printable {
    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        if self.is_open && self.depth == 1 {
            Ok(())
        } else {
            out.write_all(b"{")
        }
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if self.is_open && self.depth == 0 {
            Ok(())
        } else {
            out.write_all(b"}")
        }
    }

    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        write!(out, "{value}")
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(place) = rest.find(is_unsafe_char) {
            let (safe, unsafe_on) = rest.split_at(place);
            out.write_all(safe.as_bytes())?;
            let mut chars = unsafe_on.chars();
            if let Some(c) = chars.next() {
                // Beyond 16 bits as a pair of surrogates (RFC 8259, section 7).
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            }
            rest = chars.as_str();
        }
        out.write_all(rest.as_bytes())
    }
}

// Writes a value on the line.
pub fn value(out: &mut dyn Write, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Printable::default()))?;
    Ok(())
}

// Writes the fields of a struct into the object that is open; commas around them are the caller's.
pub fn fields(out: &mut dyn Write, fields: &impl Serialize) -> io::Result<()> {
    let format = Printable {
        is_open: true,
        depth: 0,
    };
    fields.serialize(&mut Serializer::with_formatter(out, format))?;
    Ok(())
}

// An item a line.
pub fn list<T: Serialize>(
    out: &mut dyn Write,
    items: impl IntoIterator<Item = T>,
) -> io::Result<()> {
    list_with(out, items, |out, item| value(out, &item))
}

// Each item from a line of its own on.
pub fn list_with<T>(
    out: &mut dyn Write,
    items: impl IntoIterator<Item = T>,
    mut item: impl FnMut(&mut dyn Write, T) -> io::Result<()>,
) -> io::Result<()> {
    out.write_all(b"[")?;
    for (i, it) in items.into_iter().enumerate() {
        out.write_all(if i > 0 { b",\n" } else { b"\n" })?;
        item(out, it)?;
    }
    out.write_all(b"]")
}
