//! One function: all that is known of it, in one value.

use super::call_sites::{self, CallSites};
use super::cut::{self, AtMost};
use super::detail::{self, Basis, Detail, Rule};
use super::lines::{self, LineWeight};
use crate::profile::{FunctionId, Profile, Selection};

/// The figures of one function.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Its times, callers, descendants and depths of recursion.
    pub detail: Detail,
    /// What its total is at most: more than the total where stacks were cut and the function may be
    /// among the callers that they lack. `None` where the total is estimated.
    pub total_max: Option<AtMost>,
    /// The lines from which it calls and is called; `None` where the input has no lines of calls.
    pub call_sites: Option<CallSites>,
    /// The source lines of its own weight, the hottest first; none where lines are not known.
    pub lines: Vec<LineWeight>,
}

impl Summary {
    /// Computes all figures of a function; `rule` says what descendants contribute where it
    /// recurses.
    ///
    /// ```
    /// use proftool::analysis::detail::Rule;
    /// use proftool::analysis::function::Summary;
    /// use proftool::base::Id;
    /// use proftool::input::folded;
    /// use proftool::profile::{EventId, Filter, FunctionId};
    ///
    /// let profile = folded::read("main;sum;sum 3\n".as_bytes(), &mut |_| {}).unwrap();
    /// let selection = profile.select(EventId::new(0), &Filter::default());
    /// let sum = Summary::of(&profile, &selection, FunctionId::new(1), Rule::Strict);
    /// assert!(sum.detail.recurses());
    /// // No stack was cut: the total is exact.
    /// assert_eq!(sum.total_max.and_then(|most| most.known()), Some(sum.detail.total));
    /// ```
    pub fn of(
        profile: &Profile,
        selection: &Selection,
        function: FunctionId,
        rule: Rule,
    ) -> Summary {
        let detail = detail::of(profile, selection, function, rule);
        let is_measured = detail.basis == Basis::Stacks;
        Summary {
            total_max: is_measured.then(|| {
                let hidden = cut::by_function(profile, selection);
                hidden.at_most[function].plus(detail.total)
            }),
            call_sites: call_sites::of(profile, selection, function),
            lines: lines::by_function(profile, selection).of(function).to_vec(),
            detail,
        }
    }
}
