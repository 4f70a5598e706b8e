//! A graph to be drawn: boxes, arrows, and frames around boxes that belong together.

use crate::names::Label;

/// A box.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// What it is about, its first line.
    pub name: Label,
    /// The lines of text below it.
    pub lines: Vec<String>,
    /// The tooltip; from outside.
    pub tooltip: String,
    /// How hot it is, from 0 to 1; `None` where that is not known.
    pub heat: Option<f64>,
    /// The frame that it is in, of [`Drawing::frames`].
    pub frame: Option<usize>,
}

/// An arrow.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrow {
    /// The box that it comes from.
    pub from: usize,
    /// The box that it leads to.
    pub to: usize,
    /// The text next to it, with what is to be said of the call; empty if there is no text.
    pub label: Label,
    /// The number of calls, which is next to it, too.
    pub calls: Option<String>,
    /// How hot it is, from 0 to 1; `None` where that is not known.
    pub heat: Option<f64>,
    /// Whether it stands for something else than calls that were seen: for calls that only the code
    /// has, or for what is folded.
    pub dashed: bool,
}

/// A graph to be drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawing {
    /// The boxes.
    pub nodes: Vec<Node>,
    /// The arrows, in an order that has no meaning.
    pub arrows: Vec<Arrow>,
    /// The titles of the frames.
    pub frames: Vec<String>,
}
