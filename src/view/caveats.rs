//! What is not known, at the foot of a page.

use super::page::Block;
use crate::base::{Caveat, Caveats};

/// A note for each caveat, after an empty line.
pub fn foot(caveats: &Caveats) -> Vec<Block> {
    let mut blocks = notes(caveats);
    if !blocks.is_empty() {
        blocks.insert(0, Block::Space);
    }
    blocks
}

/// A note for each caveat.
pub fn notes(caveats: &Caveats) -> Vec<Block> {
    let note = |caveat: &Caveat| Block::Note {
        text: caveat.text(),
        hint: caveat.hint().map(str::to_owned),
    };
    caveats.iter().map(note).collect()
}
