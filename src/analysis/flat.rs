//! The weights of all functions, in one value: the measured ones, and by how much totals may exceed
//! them.

use super::called::{self, Called};
use super::cut::{self, Hidden};
use super::inclusive::{self, FunctionWeights};
use super::sampling_error::intervals::Intervals;
use crate::base::IdVec;
use crate::profile::{FunctionId, Profile, Selection};

/// The figures of all functions.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The functions that are on the stack of some sample or were counted, in order of id.
    pub ran: Vec<FunctionId>,
    /// The weights of the functions.
    pub weights: FunctionWeights,
    /// The parts of totals that cut stacks hide.
    pub hidden: Hidden,
    /// The calls of functions, where calls were counted.
    pub calls: Option<IdVec<FunctionId, Called>>,
    /// How far the weights may be off, where that was asked for.
    pub intervals: Option<Intervals>,
}

impl Summary {
    /// Computes all figures. Linear in rows, paths, functions and calls.
    ///
    /// ```
    /// use proftool::analysis::flat::Summary;
    /// use proftool::base::Id;
    /// use proftool::input::folded;
    /// use proftool::profile::{EventId, Filter, FunctionId};
    ///
    /// let profile = folded::read("main;fib;fib 3\nmain 1\n".as_bytes(), &mut |_| {}).unwrap();
    /// let selection = profile.select(EventId::new(0), &Filter::default());
    /// let summary = Summary::of(&profile, &selection);
    /// assert_eq!(summary.weights.total[FunctionId::new(1)], 3);
    /// assert!(!summary.hidden.is_any());
    /// ```
    pub fn of(profile: &Profile, selection: &Selection) -> Summary {
        let weights = inclusive::by_function(profile, selection);
        Summary {
            ran: called::ran(profile, &weights),
            weights,
            hidden: cut::by_function(profile, selection),
            calls: called::by_function(profile, selection),
            intervals: None,
        }
    }
}
