//! How weight is shared among callers: the result of every model of time through calls.
//!
//! ```text
//!   column     of a function, or of a cycle as a whole      of an arc caller ─▶ callee
//!   self       its own weight                               the part of the callee's self
//!   children   weight that came up from its callees         the part of the callee's children
//!   root       weight that no caller accounts for           that the caller accounts for
//! ```
//!
//! The models are [`measured`](super::measured) (whole stacks: nothing is assumed),
//! [`propagation`](super::propagation) (gprof's: every call of a function takes the same time) and
//! [`fonseca`](super::fonseca) (gprof's, carried on inside cycles). All keep these laws, in which a
//! *group* is a cycle or a function outside of all cycles:
//!
//! - the self weights add up to the total weight;
//! - what the arcs into a group and its root have adds up to the group's self and children;
//! - what the members of a cycle have adds up to what the cycle has.
//!
//! A member's children are what arrives from callees outside of its cycle; arcs between members
//! have a weight of their own in Fonseca's model only.
//!
//! Weights are `f64` in the event's unit, because models divide.

use std::cmp::Reverse;
use std::ops::{Add, AddAssign, Mul};

use crate::base::IdVec;
use crate::callgraph::{ArcId, CycleId, Cycles};
use crate::profile::FunctionId;

/// Weight in two parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Portion {
    /// Own weight.
    pub self_weight: f64,
    /// Weight of callees.
    pub children: f64,
}

impl Portion {
    /// Both parts together.
    pub fn total(self) -> f64 {
        self.self_weight + self.children
    }

    pub(super) fn of(self_weight: u64, total: u64) -> Portion {
        Portion {
            self_weight: self_weight as f64,
            children: total.saturating_sub(self_weight) as f64,
        }
    }
}

impl Add for Portion {
    type Output = Portion;
    fn add(self, other: Portion) -> Portion {
        Portion {
            self_weight: self.self_weight + other.self_weight,
            children: self.children + other.children,
        }
    }
}

impl AddAssign for Portion {
    fn add_assign(&mut self, other: Portion) {
        *self = *self + other;
    }
}

impl Mul<f64> for Portion {
    type Output = Portion;
    fn mul(self, factor: f64) -> Portion {
        Portion {
            self_weight: self.self_weight * factor,
            children: self.children * factor,
        }
    }
}

/// A cycle as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CycleWeight {
    /// What its members have together.
    pub portion: Portion,
    /// The part that no caller accounts for. It can be more than its members have as roots: where
    /// it is not known through which member the cycle was entered, the part belongs to the cycle
    /// alone.
    pub root: Portion,
}

/// The result of a model: see the [module's page](self).
#[derive(Clone, Debug, Default)]
pub struct Attribution {
    /// By function: its own weight, and what came from its callees (of a member of a cycle: from
    /// those outside of the cycle).
    pub functions: IdVec<FunctionId, Portion>,
    /// By function: the weight of its group that no caller accounts for and that began with this
    /// function (gprof's `<spontaneous>`).
    pub roots: IdVec<FunctionId, Portion>,
    /// By function: the weight of all samples with the function on the stack, each once, also of
    /// members of cycles; `None` where the model cannot tell.
    pub totals: Option<IdVec<FunctionId, f64>>,
    /// By cycle.
    pub cycles: IdVec<CycleId, CycleWeight>,
    /// By arc: what of its callee (of the whole cycle of its callee, if it is in one) the caller
    /// accounts for. `None` where a function calls itself and, except in Fonseca's model, inside
    /// cycles.
    pub arcs: IdVec<ArcId, Option<Portion>>,
    /// The largest standard error of a total, where [Fonseca's model](super::fonseca) followed only
    /// a sample of what enters a cycle; 0 where nothing was sampled.
    pub standard_error: f64,
}

impl Attribution {
    /// The total of a function: the model's own if it has one, else self plus children.
    pub fn total(&self, function: FunctionId) -> f64 {
        match &self.totals {
            Some(totals) => totals[function],
            None => self.functions[function].total(),
        }
    }

    /// The weight of a function's group: of its cycle as a whole, or of the function alone.
    pub fn of_group(&self, cycles: &Cycles, function: FunctionId) -> Portion {
        match cycles.of()[function] {
            Some(cycle) => self.cycles[cycle].portion,
            None => self.functions[function],
        }
    }
}

/// The cycles in the order of the numbers that views give them, from 1: by decreasing total, then
/// by the alphabetically first name of a member. `ranks` are
/// [`name_ranks`](super::inclusive::name_ranks).
pub fn cycle_order(
    attribution: &Attribution,
    cycles: &Cycles,
    ranks: &IdVec<FunctionId, u32>,
) -> Vec<CycleId> {
    let first = |cycle: CycleId| cycles.members()[cycle].iter().map(|&id| ranks[id]).min();
    let mut order: Vec<(Reverse<Ordered>, Option<u32>, CycleId)> = cycles
        .members()
        .ids()
        .map(|id| {
            let total = attribution.cycles[id].portion.total();
            (Reverse(Ordered(total)), first(id), id)
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, _, id)| id).collect()
}

// `f64` in the order of numbers.
struct Ordered(f64);

impl Ord for Ordered {
    fn cmp(&self, other: &Ordered) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Ordered) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ordered {
    fn eq(&self, other: &Ordered) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ordered {}
