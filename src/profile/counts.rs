//! Calls that were counted, one by one, as gprof's instrumentation counts them.

use super::{FunctionId, ModuleId};

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
    /// Whether there may have been more: some of the places from which the one calls the other were
    /// not counted.
    pub is_least: bool,
}

/// How often the calls of one call site were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteCount {
    /// The module that the site is in.
    pub module: ModuleId,
    /// The stated address of the instruction.
    pub at: u64,
    /// The number of calls.
    pub calls: u64,
    /// Whether there may have been more: the site did not count all the time.
    pub is_least: bool,
    /// Where calls were made, the function whose machine code has the site, and the callee.
    pub between: Option<(FunctionId, FunctionId)>,
}

/// Exact numbers of calls. Samples cannot provide them: a stack shows which calls are active, not
/// how often they were made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    calls: Vec<CallCount>,
    /// Where not all calls were counted: the functions of which all were, in order.
    complete: Option<Vec<FunctionId>>,
    /// Functions that ran although no call of them was counted, in order.
    uncounted: Vec<FunctionId>,
    /// By call site, if that was asked for, in order of module and address.
    sites: Vec<SiteCount>,
}

impl Counts {
    /// Returns the counts in order of caller (those that are not known first) and callee, each pair
    /// once.
    pub fn calls(&self) -> &[CallCount] {
        &self.calls
    }

    /// Returns the count of a pair, if it was counted.
    pub fn between(&self, from: Option<FunctionId>, to: FunctionId) -> Option<&CallCount> {
        let place = self
            .calls
            .binary_search_by_key(&(from, to), |row| (row.from, row.to));
        self.calls.get(place.ok()?)
    }

    /// Returns the count of the call site at this stated address, if it was counted and sites were
    /// asked for.
    pub fn at(&self, module: ModuleId, at: u64) -> Option<&SiteCount> {
        let place = self
            .sites
            .binary_search_by_key(&(module, at), |site| (site.module, site.at));
        self.sites.get(place.ok()?)
    }

    /// The counts by call site, if they were asked for, in order of module and address.
    pub fn sites(&self) -> &[SiteCount] {
        &self.sites
    }

    /// Whether calls are known by call site.
    pub fn have_sites(&self) -> bool {
        !self.sites.is_empty()
    }

    /// Adds counts of call sites.
    #[must_use]
    pub fn with_sites(self, mut sites: Vec<SiteCount>) -> Counts {
        sites.sort_unstable();
        sites.dedup_by_key(|site| (site.module, site.at));
        Counts { sites, ..self }
    }

    /// Keeps the counts that `keep` picks.
    pub fn retain(&mut self, keep: impl FnMut(&CallCount) -> bool) {
        self.calls.retain(keep);
    }

    /// Whether pairs without a count may have called each other. In a gmon.out they have not: it
    /// counts all calls of instrumented functions.
    pub fn are_partial(&self) -> bool {
        self.complete.is_some()
    }

    /// Whether all calls of a function were counted, so that the sum of its counts is their number.
    pub fn has_all_of(&self, function: FunctionId) -> bool {
        let complete = self.complete.as_ref();
        complete.is_none_or(|complete| complete.binary_search(&function).is_ok())
    }

    /// Marks the counts as incomplete: pairs without a count may have called each other. All
    /// calls were counted only for the functions in `complete`.
    #[must_use]
    pub fn partial(self, mut complete: Vec<FunctionId>) -> Counts {
        complete.sort_unstable();
        complete.dedup();
        Counts {
            complete: Some(complete),
            ..self
        }
    }

    /// Adds functions of which no call was counted although they ran.
    #[must_use]
    pub fn with_uncounted(self, mut uncounted: Vec<FunctionId>) -> Counts {
        uncounted.sort_unstable();
        uncounted.dedup();
        Counts { uncounted, ..self }
    }

    /// The functions that ran although no call of them was counted: what has no counter called
    /// them, such as the C library. `main` is one.
    pub fn uncounted(&self) -> &[FunctionId] {
        &self.uncounted
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
    /// let count = |from, calls| CallCount { from, to: lex, calls, is_least: false };
    /// let counts = Counts::of(vec![count(main, 2), count(None, 1), count(main, 3)]);
    /// assert_eq!(counts.calls(), [count(None, 1), count(main, 5)]);
    /// ```
    pub fn of(mut calls: Vec<CallCount>) -> Counts {
        calls.sort_unstable();
        calls.dedup_by(|next, sum| {
            let same = (next.from, next.to) == (sum.from, sum.to);
            if same {
                sum.calls = sum.calls.saturating_add(next.calls);
                sum.is_least |= next.is_least;
            }
            same
        });
        Counts {
            calls,
            complete: None,
            uncounted: Vec::new(),
            sites: Vec::new(),
        }
    }
}
