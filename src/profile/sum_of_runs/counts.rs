//! Numbers of calls, added up.

use std::collections::BTreeMap;

use super::Ids;
use crate::profile::{Builder, CallCount, Counts, FunctionId, ModuleId, Profile, SiteCount};

/// Counts of all runs, where each has some.
#[derive(Debug, Default)]
pub(super) struct SummedCounts {
    calls: Vec<CallCount>,
    sites: BTreeMap<(ModuleId, u64), SiteCount>,
    uncounted: Vec<FunctionId>,
    /// Whether in some run not all functions were counted.
    is_partial: bool,
    /// In how many runs all calls of a function were counted. A run that has nothing of a function
    /// may not have counted its library.
    complete: BTreeMap<FunctionId, u32>,
}

impl SummedCounts {
    pub fn add(&mut self, profile: &Profile, counts: &Counts, ids: &Ids) {
        let function = |id: FunctionId| ids.functions[id];
        self.calls
            .extend(counts.calls().iter().map(|count| CallCount {
                from: count.from.map(function),
                to: function(count.to),
                ..*count
            }));
        for site in counts.sites() {
            let module = ids.modules[site.module];
            let sum = self
                .sites
                .entry((module, site.at))
                .or_insert_with(|| SiteCount {
                    module,
                    calls: 0,
                    between: None,
                    ..*site
                });
            sum.calls = sum.calls.saturating_add(site.calls);
            sum.is_least |= site.is_least;
            let between = site.between;
            sum.between = sum
                .between
                .or_else(|| between.map(|(from, to)| (function(from), function(to))));
        }
        self.uncounted
            .extend(counts.uncounted().iter().map(|&id| function(id)));
        self.is_partial |= counts.are_partial();
        let complete = profile.functions.ids().filter(|&id| counts.has_all_of(id));
        for function in complete.map(function) {
            *self.complete.entry(function).or_default() += 1;
        }
    }

    /// Returns the functions of which no call was counted.
    pub fn into_builder(self, builder: &mut Builder, runs: u32) -> Vec<FunctionId> {
        if self.is_partial {
            let complete = self.complete.into_iter();
            let complete = complete.filter(|(_, number)| *number == runs);
            builder.count_some(self.calls, complete.map(|(id, _)| id).collect());
            builder.count_sites(self.sites.into_values());
        } else {
            for count in self.calls {
                builder.count(count.from, count.to, count.calls);
            }
        }
        self.uncounted
    }
}
