//! How much weight ends at each call path, and how much passes it.

use crate::base::IdVec;

use super::{PathId, Profile, Selection};

/// The weights of call paths.
#[derive(Clone, Debug)]
pub struct PathWeights {
    /// The weight of the samples taken at the end of the path.
    pub self_weight: IdVec<PathId, u64>,
    /// The weight of the samples taken at its end or further in.
    pub total: IdVec<PathId, u64>,
    /// The number of samples taken at its end or further in.
    pub samples: IdVec<PathId, u64>,
}

impl PathWeights {
    /// The weights of every call path of the profile. Linear in rows and paths.
    pub fn of(profile: &Profile, selection: &Selection) -> PathWeights {
        let paths = profile.paths.len();
        let mut self_weight = IdVec::filled(0u64, paths);
        let mut samples = IdVec::filled(0u64, paths);
        for row in selection.rows() {
            self_weight[row.path] += row.weight;
            samples[row.path] += row.samples;
        }
        let mut total = self_weight.clone();
        for (id, path) in profile.paths.enumerate().rev() {
            if let Some(caller) = path.caller {
                total[caller] += total[id];
                samples[caller] += samples[id];
            }
        }
        PathWeights {
            self_weight,
            total,
            samples,
        }
    }

    /// Whether some sample passes the path.
    pub fn is_taken(&self, path: PathId) -> bool {
        self.samples[path] > 0 || self.total[path] > 0
    }
}
