//! How much weight ends at each call path, and how much passes it.

use crate::base::IdVec;

use super::{PathId, Profile, Selection};

/// The weights of call paths.
#[derive(Clone, Debug)]
pub struct PathWeights {
    self_weight: IdVec<PathId, u64>,
    /// No less than the sum of the totals of the paths that go one call further.
    total: IdVec<PathId, u64>,
    samples: IdVec<PathId, u64>,
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

    /// The weight of the samples taken at the end of the path.
    #[inline]
    pub fn self_weight(&self, path: PathId) -> u64 {
        self.self_weight[path]
    }

    /// The weight of the samples taken at its end or further in.
    #[inline]
    pub fn total(&self, path: PathId) -> u64 {
        self.total[path]
    }

    /// The number of samples taken at its end or further in.
    #[inline]
    pub fn samples(&self, path: PathId) -> u64 {
        self.samples[path]
    }

    /// The totals of all paths, where the rest is no longer needed.
    pub fn into_totals(self) -> IdVec<PathId, u64> {
        self.total
    }

    /// Whether some sample passes the path.
    #[inline]
    pub fn is_taken(&self, path: PathId) -> bool {
        self.samples[path] > 0 || self.total[path] > 0
    }
}
