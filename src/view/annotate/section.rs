//! The blocks about a function, and which parts of them are figures: a page for a browser replaces
//! these.

use crate::view::page::Block;

/// A block.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The block.
    pub block: Block,
    /// Which parts of it are weights.
    pub weights: Weights,
}

/// Which parts of a block are weights of samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Weights {
    /// Nothing.
    None,
    /// A sentence has some.
    Sentence,
    /// A table has some; for each row what it is about, if it has figures.
    Rows(Vec<Option<RowOf>>),
}

/// What a row of a table is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOf {
    /// A source line.
    Line {
        /// The file, as in [`AnnotateView::files`](super::AnnotateView::files).
        file: usize,
        /// The number, from 1.
        line: u32,
    },
    /// An instruction, as in the listing.
    Instruction(usize),
}

impl Section {
    /// A sentence with weights.
    pub(super) fn of_weights(text: String) -> Section {
        Section {
            block: Block::Line(text),
            weights: Weights::Sentence,
        }
    }
}

impl From<Block> for Section {
    fn from(block: Block) -> Section {
        Section {
            block,
            weights: Weights::None,
        }
    }
}
