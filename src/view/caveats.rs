//! What is not known, at the foot of a page.

use super::page::Block;
use crate::profile::Profile;

/// A note for each caveat of the profile, after an empty line.
pub fn foot(profile: &Profile) -> Vec<Block> {
    let mut blocks = notes(profile);
    if !blocks.is_empty() {
        blocks.insert(0, Block::Space);
    }
    blocks
}

/// A note for each caveat of the profile.
pub fn notes(profile: &Profile) -> Vec<Block> {
    let note = |caveat: &crate::base::Caveat| Block::Note {
        text: caveat.text(),
        hint: caveat.hint().map(str::to_owned),
    };
    profile.caveats.iter().map(note).collect()
}
