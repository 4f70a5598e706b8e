//! What may be missing between two frames.

use std::rc::Rc;

use super::code::Code;
use super::function_exits::FunctionStart;

/// A function that is missing, and how it was left.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Missing {
    pub(super) function: FunctionStart,
    /// The stated addresses behind the calls or jumps that may have left it; empty if it may have
    /// been left elsewhere.
    pub(super) left_at: Rc<[u64]>,
}

/// What explains a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Explanation {
    /// These functions are missing, outermost first.
    One(Vec<Missing>),
    /// There are several possibilities.
    Several {
        /// These functions are missing in all of them, outermost first.
        certain: Vec<Missing>,
        /// Behind these some of these may be missing; `None` if there may be others.
        possible: Option<Rc<[Missing]>>,
    },
    /// Nothing in the code does.
    None,
}

impl Explanation {
    pub(super) const ANYTHING: Explanation = Explanation::Several {
        certain: Vec::new(),
        possible: None,
    };

    /// The functions that are missing for certain, outermost first.
    pub(super) fn certain(&self) -> &[Missing] {
        match self {
            Explanation::One(certain) | Explanation::Several { certain, .. } => certain,
            Explanation::None => &[],
        }
    }

    /// What explains a stack if either does.
    pub(super) fn or(self, other: &Explanation) -> Explanation {
        match (self, other) {
            (Explanation::None, other) => other.clone(),
            (this, Explanation::None) => this,
            (this, other) => {
                let both = this.possible().zip(other.possible());
                let possible = both.map(|(these, others)| {
                    let others = others.into_iter().filter(|other| !these.contains(other));
                    these.iter().cloned().chain(others).collect()
                });
                Explanation::several(possible)
            }
        }
    }

    /// Several possibilities, of which these functions are; `None` if there may be others.
    pub(super) fn several(possible: Option<Rc<[Missing]>>) -> Explanation {
        Explanation::Several {
            certain: Vec::new(),
            possible,
        }
    }

    /// The functions that may be missing; `None` if there may be others.
    fn possible(&self) -> Option<Vec<Missing>> {
        match self {
            Explanation::One(missing) => Some(missing.clone()),
            Explanation::Several { certain, possible } => {
                let possible = possible.as_deref()?;
                Some(certain.iter().chain(possible).cloned().collect())
            }
            Explanation::None => Some(Vec::new()),
        }
    }
}

// The places at which functions are left that may be missing are not looked at if there are more.
const PLACES: usize = 256;

/// Functions with all places where they are left by jumps, and by calls if `by_calls_too`; `None`
/// if that is not known.
pub(super) fn left_anywhere(
    functions: impl Iterator<Item = FunctionStart>,
    by_calls_too: bool,
    code: &Code,
) -> Option<Rc<[Missing]>> {
    let mut places = 0;
    let missing = functions.map(|function| {
        let read = code.function(function).filter(|read| read.is_complete)?;
        let ways_out = read.ways_out.iter();
        let left_by = ways_out.filter(|out| by_calls_too || !out.is_call);
        let left_at: Rc<[u64]> = left_by
            .flat_map(|out| out.sites.iter().map(|site| site.end))
            .collect();
        places += left_at.len();
        (places <= PLACES).then_some(Missing { function, left_at })
    });
    missing.collect()
}
