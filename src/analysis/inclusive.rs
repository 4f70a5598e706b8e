//! Self and total weight, of call paths and of functions.
//!
//! The total of a function is the weight of all samples that have it anywhere on their stack;
//! each sample counts **once**, however often the function stands there. Over call paths that is
//! a walk through the tree of calls: a path adds its weight to its function only if no path
//! above it is the same function's.
//!
//! ```text
//!   main            total(main) += 10
//!   └─ fib          total(fib)  += 9      the outermost fib on this path
//!      └─ fib                             already counted above
//!         └─ add    total(add)  += 2
//! ```

mod hottest;

use super::estimated;
use crate::base::IdVec;
use crate::profile::{FunctionId, Links, PathWeights, Profile, Selection, Step};

pub use hottest::HotFunction;

/// The evidence for totals.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Basis {
    /// The stacks of samples.
    #[default]
    Stacks,
    /// Numbers of calls, by which gprof estimates them. These are the estimates, which
    /// [`FunctionWeights::total`] has as whole numbers.
    Calls(IdVec<FunctionId, f64>),
    /// Nothing: there are neither stacks nor calls, and totals are the self weights.
    Nothing,
}

/// The weights of functions.
#[derive(Clone, Debug)]
pub struct FunctionWeights {
    /// The evidence for the totals.
    pub basis: Basis,
    /// The weight of the samples taken in the function itself.
    pub self_weight: IdVec<FunctionId, u64>,
    /// The weight of the samples with the function on the stack, each counted once.
    pub total: IdVec<FunctionId, u64>,
    /// The part of the total that rests on restored frames: the weight of the samples whose
    /// recorded stacks do not have the function.
    pub inferred: IdVec<FunctionId, u64>,
    /// The number of samples taken in the function itself.
    pub self_samples: IdVec<FunctionId, u64>,
    /// The number of samples with the function on the stack, each counted once.
    pub samples: IdVec<FunctionId, u64>,
}

impl FunctionWeights {
    /// The functions that are on the stack of some sample, in order of id.
    pub fn present(&self) -> impl Iterator<Item = FunctionId> {
        self.samples
            .enumerate()
            .filter(|&(id, samples)| *samples > 0 || self.total[id] > 0)
            .map(|(id, _)| id)
    }
}

/// The weights of every function of the profile. Linear in rows, paths and functions.
///
/// ```
/// use proftool::analysis::inclusive;
/// use proftool::base::Id;
/// use proftool::input::folded;
/// use proftool::profile::{EventId, Filter, FunctionId};
///
/// // main, a and b by order of appearance; a and b call each other
/// let text = "main;a;b;a 3\nmain;a 1\n";
/// let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
/// let selection = profile.select(EventId::new(0), &Filter::default());
/// let weights = inclusive::by_function(&profile, &selection);
/// let [main, a, b] = [0, 1, 2].map(FunctionId::new);
/// assert_eq!([weights.total[main], weights.total[a], weights.total[b]], [4, 4, 3]);
/// assert_eq!(weights.self_weight[a], 4);
/// ```
pub fn by_function(profile: &Profile, selection: &Selection) -> FunctionWeights {
    let of_path = PathWeights::of(profile, selection);
    let functions = profile.functions.len();
    let mut weights = FunctionWeights {
        basis: Basis::Stacks,
        self_weight: IdVec::filled(0, functions),
        total: IdVec::filled(0, functions),
        inferred: IdVec::filled(0, functions),
        self_samples: IdVec::filled(0, functions),
        samples: IdVec::filled(0, functions),
    };
    for row in selection.rows() {
        let function = profile.paths[row.path].function;
        weights.self_weight[function] += row.weight;
        weights.self_samples[function] += row.samples;
    }
    let mut depth = IdVec::filled(0u32, functions);
    let links = Links::new(profile, &of_path);
    links.walk(&profile.paths, |step| match step {
        Step::Enter(path) => {
            let function = profile.paths[path].function;
            // Samples of inner frames of a function are among those of its outermost.
            if depth[function] == 0 {
                weights.total[function] += of_path.total(path);
                weights.samples[function] += of_path.samples(path);
            }
            depth[function] += 1;
        }
        Step::Leave(path) => depth[profile.paths[path].function] -= 1,
    });
    if estimated::is_needed(profile, selection) {
        estimate(profile, selection, &mut weights);
    }
    if profile.paths.has_inferred() {
        // A sample rests on restored frames alone if no recorded frame of the function is on its
        // stack. So the outermost frames are looked for once more, among the recorded ones only.
        weights.inferred = weights.total.clone();
        links.walk(&profile.paths, |step| match step {
            Step::Enter(id) if !profile.paths[id].inferred => {
                let function = profile.paths[id].function;
                if depth[function] == 0 {
                    weights.inferred[function] -= of_path.total(id);
                }
                depth[function] += 1;
            }
            Step::Leave(id) if !profile.paths[id].inferred => {
                depth[profile.paths[id].function] -= 1;
            }
            _ => {}
        });
    }
    weights
}

// Puts estimates in place of totals that no stack shows.
fn estimate(profile: &Profile, selection: &Selection, weights: &mut FunctionWeights) {
    if !profile.counts.iter().any(|counts| counts.are_any()) {
        weights.basis = Basis::Nothing;
        return;
    }
    let own: IdVec<FunctionId, f64> = weights
        .self_weight
        .iter()
        .map(|&weight| weight as f64)
        .collect::<Vec<_>>()
        .into();
    let estimate = estimated::of(profile, selection, &own);
    let totals: IdVec<FunctionId, f64> = own
        .ids()
        .map(|id| estimate.attribution.total(id))
        .collect::<Vec<_>>()
        .into();
    for (id, total) in totals.enumerate() {
        weights.total[id] = total.round() as u64;
    }
    weights.basis = Basis::Calls(totals);
}

/// The place of every function in the order of [`Profile::compare_names`], which is quicker where
/// only a few functions are ordered.
pub fn name_ranks(profile: &Profile) -> IdVec<FunctionId, u32> {
    let mut order: Vec<FunctionId> = profile.functions.ids().collect();
    order.sort_unstable_by(|&a, &b| profile.compare_names(a, b));
    let mut ranks = IdVec::filled(0, order.len());
    for (rank, id) in (0u32..).zip(order) {
        ranks[id] = rank;
    }
    ranks
}
