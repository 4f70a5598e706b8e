//! The evidence for totals, where it is not the stacks of samples.

use super::page::Block;
use crate::analysis::inclusive::{Basis, FunctionWeights};
use crate::profile::FunctionId;

/// What the totals of a gmon.out are, in the words of every view.
pub(super) const ESTIMATED: &str = "estimated by gprof's propagation, which assumes that every \
    call of a function takes the same time";

/// How a total is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Total {
    /// From the stacks of samples.
    Measured,
    /// Estimated from numbers of calls; to the last digit.
    Estimated(f64),
    /// Not at all.
    Unknown,
}

impl Total {
    /// How the total of a function is known.
    pub(super) fn of(weights: &FunctionWeights, function: FunctionId) -> Total {
        match &weights.basis {
            Basis::Stacks => Total::Measured,
            Basis::Calls(estimates) => Total::Estimated(estimates[function]),
            Basis::Nothing => Total::Unknown,
        }
    }

    /// The name of the model that it comes from, as formats have it; `None` where it was measured.
    pub fn model(self) -> Option<&'static str> {
        match self {
            Total::Measured => None,
            Total::Estimated(_) => Some("propagated"),
            Total::Unknown => Some("none"),
        }
    }
}

/// Returns the line on totals that were estimated from a sample of what enters the cycles; `whole`
/// is the total weight.
pub(super) fn sampled(what: &str, standard_error: f64, whole: u64) -> Option<Block> {
    (standard_error > 0.0).then(|| {
        let percent = 100.0 * standard_error / whole.max(1) as f64;
        Block::Line(format!(
            "{what} in large cycles: estimated from a sample of their entry functions, standard \
             error up to {percent:.2} % of the total"
        ))
    })
}

/// Returns the line above a list of totals that are not measured.
pub(super) fn line(totals: Option<Total>) -> Option<Block> {
    match totals? {
        Total::Measured => None,
        Total::Estimated(_) => Some(Block::Line(format!("totals: {ESTIMATED}"))),
        Total::Unknown => Some(Block::Line(
            "totals: unknown, as there are no call stacks and no call counts".into(),
        )),
    }
}
