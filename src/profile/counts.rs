//! Calls that were counted, one by one, as gprof's instrumentation counts them.

use super::FunctionId;

/// How often one function called another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallCount {
    /// The caller; `None` where it is not known: code that was not instrumented, or has no name
    /// (gprof's `<spontaneous>`).
    pub from: Option<FunctionId>,
    /// The callee.
    pub to: FunctionId,
    /// The number of calls.
    pub calls: u64,
}

/// Exact numbers of calls. Samples cannot give them: a stack shows who is being called, not how
/// often.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    calls: Vec<CallCount>,
}

impl Counts {
    /// Returns the counts in order of caller (those that are not known first) and callee, each pair
    /// once.
    pub fn calls(&self) -> &[CallCount] {
        &self.calls
    }

    /// Keeps the counts that `keep` picks.
    pub fn retain(&mut self, keep: impl FnMut(&CallCount) -> bool) {
        self.calls.retain(keep);
    }

    /// Whether a call of one function by another was counted.
    pub fn are_any(&self) -> bool {
        self.calls
            .iter()
            .any(|count| count.from.is_some() && count.calls > 0)
    }

    /// The counts of these calls, in any order; those of one pair are added.
    ///
    /// ```
    /// use proftool::base::Id;
    /// use proftool::profile::{CallCount, Counts, FunctionId};
    ///
    /// let (main, lex) = (Some(FunctionId::new(0)), FunctionId::new(1));
    /// let count = |from, calls| CallCount { from, to: lex, calls };
    /// let counts = Counts::of(vec![count(main, 2), count(None, 1), count(main, 3)]);
    /// assert_eq!(counts.calls(), [count(None, 1), count(main, 5)]);
    /// ```
    pub fn of(mut calls: Vec<CallCount>) -> Counts {
        calls.sort_unstable();
        calls.dedup_by(|next, sum| {
            let same = (next.from, next.to) == (sum.from, sum.to);
            if same {
                sum.calls = sum.calls.saturating_add(next.calls);
            }
            same
        });
        Counts { calls }
    }
}
