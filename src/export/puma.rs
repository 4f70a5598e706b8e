//! The call tree as the guide of HP's Puma prints it: in or under, in only, level and name.
//!
//! ```text
//! 6               0               1  main
//! 6               3               2   r
//! 1 (2)           3               3    s
//!                                 3    r...
//! ```
//!
//! In or under is what arrived by calls alone, and in brackets what arrived after a collapsed call.
//! A collapsed call has its level and name only.

use std::io::{self, Write};

use crate::base::{Unit, printable};
use crate::view::tree::Tree;
use crate::view::{Subject, number};

// The width of the first two columns in the guide; wider where figures need it.
const WIDTH: usize = 16;
// The level says how deep deeper ones are.
const INDENT: usize = 256;

/// Writes the nodes that are shown.
pub fn write(out: &mut dyn Write, subject: &Subject, tree: &Tree) -> io::Result<()> {
    let figure = |value: u64| match &subject.selection.event().unit {
        Unit::Nanoseconds if value > 0 => number::duration(value),
        _ => value.to_string(),
    };
    let figures = |id| {
        let node = tree.node(id);
        let passed = match node.indirect {
            0 => figure(node.direct),
            indirect => format!("{} ({})", figure(node.direct), figure(indirect)),
        };
        match node.stub {
            None => [passed, figure(node.in_only)],
            Some(_) => Default::default(),
        }
    };
    let mut widths = [WIDTH; 2];
    for id in tree.nodes() {
        for (width, text) in widths.iter_mut().zip(figures(id)) {
            *width = (*width).max(text.chars().count() + 1);
        }
    }
    for id in tree.nodes() {
        let node = tree.node(id);
        let [passed, own] = figures(id);
        let [first, second] = widths;
        let dots = if node.stub.is_some() { "..." } else { "" };
        writeln!(
            out,
            "{passed:<first$}{own:<second$}{} {:indent$}{}{dots}",
            node.level,
            "",
            printable(tree.name(id)),
            indent = INDENT.min(node.level as usize),
        )?;
    }
    Ok(())
}
