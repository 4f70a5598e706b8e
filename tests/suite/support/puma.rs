//! Cases of HP Puma's collapsing.

use proftool::analysis::tree::Collapse;
use proftool::profile::{EventId, Filter, Profile, Selection};

pub fn all(profile: &Profile) -> Selection {
    profile.select(EventId::new(0), &Filter::default())
}

/// Whether a call from the end of a way folds into what stands at this place of it, by the words of
/// the guide.
pub fn folds<F: PartialEq>(at: &[F], place: usize, collapse: Collapse) -> bool {
    match collapse {
        Collapse::None => false,
        Collapse::Direct => place + 1 == at.len(),
        Collapse::Conservative => at[place + 1..].iter().all(|cut| at[..=place].contains(cut)),
        Collapse::Full => true,
    }
}
