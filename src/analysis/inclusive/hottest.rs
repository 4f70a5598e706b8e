//! The functions in which most of the time is spent.

use std::cmp::Reverse;

use super::by_function;
use crate::profile::{Filter, FunctionId, Profile};

/// A function and its weights, in the unit of the profile's main event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotFunction<'a> {
    /// Which function, for what else the profile knows of it.
    pub id: FunctionId,
    /// What to call it: [`Profile::name`].
    pub name: &'a str,
    /// The weight of the samples taken in the function itself.
    pub self_weight: u64,
    /// The weight of the samples with the function on the stack, each counted once.
    pub total: u64,
}

impl Profile {
    /// At most `number` functions of the main event, the largest self weight first; none without
    /// samples. [`by_function`] has all weights, of other events and of filtered samples.
    pub fn hottest(&self, number: usize) -> Vec<HotFunction<'_>> {
        let Some(event) = self.main_event() else {
            return Vec::new();
        };
        let weights = by_function(self, &self.select(event, &Filter::default()));
        let mut hottest: Vec<HotFunction<'_>> = weights
            .present()
            .map(|id| HotFunction {
                id,
                name: self.name(id),
                self_weight: weights.self_weight[id],
                total: weights.total[id],
            })
            .collect();
        hottest.sort_by(|a, b| {
            let weight = |it: &HotFunction<'_>| Reverse((it.self_weight, it.total));
            (weight(a).cmp(&weight(b))).then_with(|| self.compare_names(a.id, b.id))
        });
        hottest.truncate(number);
        hottest
    }
}
