//! A page for people: headings, sentences and tables, one under the other.

use super::table::Table;
use crate::base::Unit;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Nothing to change.
    Ok,
    /// Something will be missing or less than it could be.
    Warn,
    /// Answers will be wrong or there will be none.
    Bad,
}

impl Status {
    /// The word for it, as JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Warn => "warn",
            Status::Bad => "bad",
        }
    }
}

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
