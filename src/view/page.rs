//! A page for people: headings, sentences and tables, one under the other.

use super::doctor::Status;
use super::table::Table;
use crate::base::Unit;

/// A part of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// A heading.
    Heading(String),
    /// A sentence or a line of facts.
    Line(String),
    /// A sentence with calls in it, whose names are shortened where the width does not suffice.
    Calls {
        /// What stands before them, without a space at its end.
        before: String,
        /// The calls, each `caller → callee`; commas are put between them.
        calls: Vec<String>,
        /// What follows.
        after: String,
    },
    /// A table.
    Table(Table),
    /// Something that a reader has to know to read the figures right, and what can be done.
    Note {
        /// What it is.
        text: String,
        /// What can be done about it.
        hint: Option<String>,
    },
    /// One thing that was looked at.
    Check {
        /// How it ended.
        status: Status,
        /// What was found.
        text: String,
        /// What to change.
        remedy: Option<String>,
    },
    /// Commands to go on with, each with what it shows.
    Commands(Vec<(String, &'static str)>),
    /// An empty line.
    Space,
}

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The unit of the weights in its tables.
    pub unit: Unit,
    /// The parts from top to bottom.
    pub blocks: Vec<Block>,
}
