//! What has changed since other runs, for the flat view.

use proftool::base::IdVec;
use proftool::compare::{Change, Comparison};
use proftool::profile::FunctionId;

// A comparison of the runs that are shown with earlier ones, of all samples that options choose.
#[derive(Clone, Debug)]
pub struct Changes {
    pub comparison: Comparison,
    // By function of the profile that is shown, its place there.
    pub places: IdVec<FunctionId, Option<usize>>,
}

impl Changes {
    // The change of a function's self weight, a run.
    pub fn of(&self, function: FunctionId) -> Option<&Change> {
        let place = self.places[function]?;
        Some(&self.comparison.functions[place].own)
    }
}
