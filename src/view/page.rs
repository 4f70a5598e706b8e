//! A page for people: headings, sentences and tables, one under the other.

use super::number;
use super::question::Question;
use super::table::{Call, Table};
use crate::base::{Caveat, Remedy, Unit};
use crate::names::Label;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Nothing to change.
    Ok,
    /// Nothing to change, and yet not what everyone expects.
    Note,
    /// Something will be missing or less than it could be.
    Warn,
    /// Results will be wrong or missing.
    Bad,
}

impl Status {
    /// The word for it, as JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Note => "note",
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
        /// The calls; commas are put between them.
        calls: Vec<Call>,
        /// What follows.
        after: String,
    },
    /// A chain of calls, each with the weight that goes through it; as many as two lines have room
    /// for.
    Path {
        /// What it is.
        title: &'static str,
        /// The functions, outermost first.
        steps: Vec<(Label, u64)>,
        /// What the weights are parts of.
        whole: u64,
    },
    /// A table.
    Table(Table),
    /// What a column of the page's tables means; left out if there is no room for the column.
    Legend {
        /// The key of the column.
        key: &'static str,
        /// What it means.
        text: String,
    },
    /// A fact that is needed to interpret the figures.
    Caveat(Caveat),
    /// The same in one sentence, without what can be done about it.
    Brief(Caveat),
    /// What a mark beside names means.
    Meaning(Meaning),
    /// Rows that the page leaves out.
    Hidden(HiddenRows),
    /// The other events of the recording, each with its number of samples.
    OtherEvents(Vec<(String, u64)>),
    /// What would make stacks more reliable.
    BetterStacks(Remedy),
    /// What would help against this, without the fact itself.
    RemedyOf(Caveat),
    /// One thing that was looked at.
    Check {
        /// How it ended.
        status: Status,
        /// What was found.
        text: String,
        /// What to change.
        remedy: Option<String>,
    },
    /// Questions to ask next.
    Next(Vec<Question>),
    /// The same as commands alone, a line each.
    NextInBrief(Vec<Question>),
    /// An empty line.
    Space,
}

/// Marks beside names whose meaning a page states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// That of a restored function.
    Restored,
    /// [`Mark::ByCode`](crate::names::Mark::ByCode).
    ByCode,
    /// [`Mark::AcrossGap`](crate::names::Mark::AcrossGap).
    AcrossGap,
    /// [`Mark::ThroughPointer`](crate::names::Mark::ThroughPointer).
    ThroughPointer,
    /// [`Mark::Collapsed`](crate::names::Mark::Collapsed).
    Collapsed,
    /// [`Mark::Same`](crate::names::Mark::Same), and that with a number.
    Same,
    /// [`What::Fold`](super::table::What::Fold).
    Fold,
}

/// Rows that a page leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenRows {
    /// The number of rows.
    pub count: u64,
    /// What one row is, and what several are: `function`, `functions`.
    pub noun: (&'static str, &'static str),
    /// What leaves them out.
    pub by: HiddenBy,
}

/// What leaves rows out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HiddenBy {
    /// The largest number of rows.
    Limit,
    /// The largest number of rows, or the smallest share.
    LimitOrShare,
}

impl HiddenRows {
    /// How many there are, in words: `3 more functions`.
    pub fn words(&self) -> String {
        let (one, several) = self.noun;
        let noun = if self.count == 1 { one } else { several };
        format!("{} more {noun}", number::grouped(self.count))
    }

    /// Returns the block that states this many rows; nothing for none.
    pub(super) fn block(
        count: usize,
        noun: (&'static str, &'static str),
        by: HiddenBy,
    ) -> Option<Block> {
        let count = count as u64;
        (count > 0).then_some(Block::Hidden(HiddenRows { count, noun, by }))
    }
}

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The unit of the weights in its tables.
    pub unit: Unit,
    /// The parts from top to bottom.
    pub blocks: Vec<Block>,
}
