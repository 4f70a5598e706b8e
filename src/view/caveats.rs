//! What is not known, at the foot of a page.

use super::Subject;
use super::page::Block;
use crate::base::Caveats;

/// A note for each notable caveat of a view's profile, after an empty line. Caveats are counted
/// over the whole file; where less is shown that is said.
pub fn foot_of(subject: &Subject) -> Vec<Block> {
    let caveats = subject.profile.caveats.notable();
    let mut blocks: Vec<Block> = caveats.cloned().map(Block::Caveat).collect();
    if !blocks.is_empty() && subject.is_part() {
        let scope = "Notes describe the whole file, not only the samples shown:";
        blocks.insert(0, Block::Line(scope.into()));
    }
    if !blocks.is_empty() {
        blocks.insert(0, Block::Space);
    }
    blocks
}

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
    caveats.iter().cloned().map(Block::Caveat).collect()
}
