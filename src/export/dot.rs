//! A drawing in Graphviz's language.
//!
//! ```text
//!   digraph {
//!     subgraph cluster_0 { label="cycle 1" n3 n4 }
//!     n0 [label="main\n100.0%", fillcolor="0.000 0.800 0.900"];
//!     n0 -> n3 [label="60.0%", penwidth=2.8];
//!   }
//! ```
//!
//! Hot functions and arcs are red and thick, cold ones blue and thin, as in gprof2dot. Names from
//! outside are quoted; backslashes in them are doubled, so that none of Graphviz's escapes can
//! begin.

use std::borrow::Cow;
use std::io::{self, Write};

use super::shown::written;
use crate::base::printable;
use crate::names::INFERRED;
use crate::view::drawing::{Arrow, Drawing, Node};

/// Writes the drawing.
pub fn write(out: &mut dyn Write, drawing: &Drawing) -> io::Result<()> {
    out.write_all(
        b"digraph {\n  graph [fontname=\"Helvetica\", nodesep=0.125, ranksep=0.25];\n  \
          node [fontname=\"Helvetica\", fontsize=10, shape=box, style=filled, fillcolor=white, \
          fontcolor=black];\n  edge [fontname=\"Helvetica\", fontsize=10];\n",
    )?;
    for (frame, title) in drawing.frames.iter().enumerate() {
        write!(
            out,
            "  subgraph cluster_{frame} {{\n    label={};\n    style=rounded;\n   ",
            quoted(title)
        )?;
        for (index, _) in inside(drawing, frame) {
            write!(out, " n{index};")?;
        }
        out.write_all(b"\n  }\n")?;
    }
    for (index, node) in drawing.nodes.iter().enumerate() {
        write_node(out, index, node)?;
    }
    for arrow in &drawing.arrows {
        write_arrow(out, arrow)?;
    }
    out.write_all(b"}\n")
}

fn inside(drawing: &Drawing, frame: usize) -> impl Iterator<Item = (usize, &Node)> {
    let nodes = drawing.nodes.iter().enumerate();
    nodes.filter(move |(_, node)| node.frame == Some(frame))
}

fn write_node(out: &mut dyn Write, index: usize, node: &Node) -> io::Result<()> {
    let mark = if node.name.is_restored { INFERRED } else { "" };
    let name = format!("{mark}{}", written(&node.name).whole());
    let lines = [&name].into_iter().chain(&node.lines);
    let lines: Vec<Cow<'_, str>> = lines.map(|line| escaped(line)).collect();
    write!(out, "  n{index} [label=\"{}\"", lines.join("\\n"))?;
    if !node.tooltip.is_empty() {
        write!(out, ", tooltip={}", quoted(&node.tooltip))?;
    }
    if let Some(heat) = node.heat {
        write!(out, ", fillcolor=\"{}\", fontcolor=white", color(heat))?;
    }
    out.write_all(b"];\n")
}

fn write_arrow(out: &mut dyn Write, arrow: &Arrow) -> io::Result<()> {
    write!(out, "  n{} -> n{} [", arrow.from, arrow.to)?;
    let mut comma = "";
    let label = written(&arrow.label).whole().into_owned();
    let label = [Some(label).filter(|it| !it.is_empty()), arrow.calls.clone()];
    let label: Vec<String> = label.into_iter().flatten().collect();
    if !label.is_empty() {
        write!(out, "label={}", quoted(&label.join(" ")))?;
        comma = ", ";
    }
    if let Some(heat) = arrow.heat {
        let width = 0.5 + 3.5 * heat.clamp(0.0, 1.0).sqrt();
        write!(out, "{comma}color=\"{}\", penwidth={width:.2}", color(heat))?;
        comma = ", ";
    }
    if arrow.dashed {
        write!(out, "{comma}style=dashed")?;
    }
    out.write_all(b"];\n")
}

// From dark blue through green to red: hue, saturation and value.
fn color(heat: f64) -> String {
    let heat = heat.clamp(0.0, 1.0).sqrt();
    format!(
        "{:.3} {:.3} {:.3}",
        0.66 * (1.0 - heat),
        0.8,
        0.4 + 0.4 * heat
    )
}

/// A text as a quoted string of the language.
///
/// ```
/// use proftool::export::dot::quoted;
/// assert_eq!(quoted("operator\"\"_x\\l"), r#""operator\"\"_x\\l""#);
/// ```
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

fn escaped(text: &str) -> Cow<'_, str> {
    let text = printable(text);
    if !text.contains(['"', '\\']) {
        return text;
    }
    Cow::Owned(text.replace('\\', "\\\\").replace('"', "\\\""))
}
