//! The weight of samples by the owner of the code.

use std::cmp::Reverse;

use super::{OwnerId, OwnerKind, Owners};
use crate::base::{IdVec, NO_ADDRESS};
use crate::profile::{Links, PathId, PathWeights, Profile, Selection, Step};

/// The weight of an owner's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The owner; `None` for stacks that are cut before any frame of a project or library.
    pub owner: Option<OwnerId>,
    /// The weight charged to it.
    pub weight: u64,
    /// The number of samples charged to it.
    pub samples: u64,
    /// The weight of the samples with its code on the stack, each counted once. 0 for cut stacks.
    pub total: u64,
}

/// The weight of samples by the owner of the code. Each sample is charged once: to the innermost
/// frame of a project or library, so that the time of the standard library, the C library and the
/// kernel counts for their callers. A complete stack without such a frame is charged to the owner
/// of its innermost frame.
///
/// ```
/// use proftool::analysis::owners::{Charged, Owners};
/// use proftool::base::Id;
/// use proftool::input::folded;
/// use proftool::profile::{EventId, Filter};
///
/// let text = "app::main;app::run;std::f(int) 3
/// app::main;app::run;mio::poll 2
/// [truncated];std::f(int) 1
/// ";
/// let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
/// let selection = profile.select(EventId::new(0), &Filter::default());
/// let charged = Charged::of(&profile, &selection, Owners::of_profile(&profile, &[]));
/// let weights: Vec<u64> = charged.shares.iter().map(|share| share.weight).collect();
/// assert_eq!(weights, [3, 2, 1]);
/// assert_eq!(charged.through_own, 5);
/// ```
#[derive(Clone, Debug)]
pub struct Charged {
    /// The owners.
    pub owners: Owners,
    /// The heaviest first, cut stacks last; the weights add up to the selection's total.
    pub shares: Vec<Share>,
    /// The weight of the samples with a function of the project on the stack.
    pub through_own: u64,
}

#[derive(Clone, Copy)]
enum Charge {
    To(OwnerId),
    // Nobody yet; whether the stack is cut.
    Open(bool),
}

impl Charged {
    /// Charges the samples of a selection. Linear in rows, paths and functions.
    pub fn of(profile: &Profile, selection: &Selection, owners: Owners) -> Charged {
        let count = owners.owners.len();
        let nothing = |owner| Share {
            owner,
            weight: 0,
            samples: 0,
            total: 0,
        };
        let mut shares: Vec<Share> = owners.owners.ids().map(|id| nothing(Some(id))).collect();
        let mut cut = nothing(None);
        let charges = charges(profile, &owners);
        for row in selection.rows() {
            let share = match charges[row.path] {
                Charge::To(owner) => Some(owner),
                Charge::Open(true) => None,
                Charge::Open(false) => Some(owners.id_of(profile.paths[row.path].function)),
            };
            let share = share
                .and_then(|owner| shares.get_mut(owner.index()))
                .unwrap_or(&mut cut);
            share.weight = share.weight.saturating_add(row.weight);
            share.samples = share.samples.saturating_add(row.samples);
        }
        let weights = PathWeights::of(profile, selection);
        let mut depth: IdVec<OwnerId, u32> = IdVec::filled(0, count);
        let (mut own_depth, mut through_own) = (0u32, 0u64);
        let links = Links::new(profile, &weights);
        links.walk(&profile.paths, |step| match step {
            Step::Enter(path) => {
                let owner = owners.id_of(profile.paths[path].function);
                if depth[owner] == 0 {
                    let total = &mut shares[owner.index()].total;
                    *total = total.saturating_add(weights.total(path));
                }
                depth[owner] += 1;
                if owners.owners[owner].kind == OwnerKind::Project {
                    if own_depth == 0 {
                        through_own = through_own.saturating_add(weights.total(path));
                    }
                    own_depth += 1;
                }
            }
            Step::Leave(path) => {
                let owner = owners.id_of(profile.paths[path].function);
                depth[owner] -= 1;
                own_depth -= u32::from(owners.owners[owner].kind == OwnerKind::Project);
            }
        });
        shares.retain(|share| share.samples > 0 || share.weight > 0);
        shares.sort_by(|a, b| {
            let key = |share: &Share| {
                let owner = share.owner.map(|id| &owners.owners[id]);
                (
                    Reverse(share.weight),
                    owner.map(|it| (it.name.clone(), it.kind)),
                )
            };
            key(a).cmp(&key(b))
        });
        // After the sorting: it belongs to nobody and stays last, however heavy.
        if cut.samples > 0 || cut.weight > 0 {
            shares.push(cut);
        }
        Charged {
            owners,
            shares,
            through_own,
        }
    }
}

// A path stands behind that of its caller.
fn charges(profile: &Profile, owners: &Owners) -> IdVec<PathId, Charge> {
    let mut charges: IdVec<PathId, Charge> = IdVec::default();
    for (_, path) in profile.paths.enumerate() {
        let owner = owners.id_of(path.function);
        let function = &profile.functions[path.function];
        let charge = match owners.owners[owner].kind {
            OwnerKind::Project | OwnerKind::Library => Charge::To(owner),
            OwnerKind::Mark if path.caller.is_none() => {
                Charge::Open(function.is_cut_mark() || function.name == NO_ADDRESS)
            }
            OwnerKind::Mark | OwnerKind::Standard | OwnerKind::Kernel => path
                .caller
                .map_or(Charge::Open(false), |caller| charges[caller]),
        };
        charges.push(charge);
    }
    charges
}
