//! What is not known, at the foot of a page.

use super::Subject;
use super::page::Block;
use crate::base::{Caveat, Caveats};
use crate::profile::Profile;

/// A note for each caveat of a view's profile, after an empty line. Caveats are counted over the whole
/// file; where less is shown that is said.
pub fn foot_of(subject: &Subject) -> Vec<Block> {
    let mut blocks = foot(&subject.profile.caveats);
    if !blocks.is_empty() && subject.is_part() {
        let scope = "Notes describe the whole file, not only the samples shown:";
        blocks.insert(1, Block::Line(scope.into()));
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

/// The same where room is short: what is about few of the stacks is in one note, without advice.
pub fn notes_in_brief(profile: &Profile) -> Vec<Block> {
    let stacks = profile.quality.map_or(0, |quality| quality.stacks);
    let is_minor = |caveat: &&Caveat| {
        let is_few = caveat.count.saturating_mul(20) < stacks;
        is_few && caveat.kind.is_minor()
    };
    let (minor, others): (Vec<&Caveat>, Vec<&Caveat>) = profile.caveats.iter().partition(is_minor);
    if minor.len() < 2 {
        return notes(&profile.caveats);
    }
    let mut blocks: Vec<Block> = others.into_iter().cloned().map(Block::Caveat).collect();
    blocks.push(Block::FewSamples(minor.into_iter().cloned().collect()));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::CaveatKind;
    use crate::profile::Quality;

    #[test]
    fn notes_about_few_samples_share_one_and_none_is_lost() {
        let mut profile = Profile {
            quality: Some(Quality {
                stacks: 1000,
                ..Quality::default()
            }),
            ..Profile::default()
        };
        profile.caveats.add(CaveatKind::BrokenStack, 49);
        profile.caveats.add(CaveatKind::GeneratedCode, 50);
        profile.caveats.add(CaveatKind::Lost, 1);
        assert_eq!(notes_in_brief(&profile), notes(&profile.caveats));
        profile.caveats.add(CaveatKind::CutStack, 3);
        let blocks = notes_in_brief(&profile);
        let kinds = |caveats: &[Caveat]| caveats.iter().map(|it| it.kind).collect::<Vec<_>>();
        let [first @ .., Block::FewSamples(few)] = &blocks[..] else {
            panic!("{blocks:?}");
        };
        let mut few = kinds(few);
        few.sort_unstable();
        assert_eq!(few, [CaveatKind::CutStack, CaveatKind::BrokenStack]);
        let is = |kind| {
            first
                .iter()
                .any(|block| matches!(block, Block::Caveat(it) if it.kind == kind))
        };
        assert!(first.len() == 2 && is(CaveatKind::Lost) && is(CaveatKind::GeneratedCode));
    }
}
