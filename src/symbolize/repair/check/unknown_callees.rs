//! What may be missing where something was called that only a run can tell.

use std::rc::Rc;

use super::super::explanation::Explanation;
use super::super::explanation::left_anywhere;
use super::super::function_exits::FunctionStart;
use super::{Checks, Verdict};

impl Checks<'_, '_> {
    /// What the code says of a function that is next on the stack, at this stated address, where
    /// something was called that only a run can tell, but not that function.
    pub(super) fn called_unknown(
        &self,
        next: FunctionStart,
        at: u64,
        has_frame: Option<bool>,
    ) -> Verdict {
        match has_frame {
            Some(has_frame) if !self.is_overwritten(next.image, at, Some(has_frame)) => {
                Verdict::Lacks(self.explanations.of_unknown_call(next, !has_frame))
            }
            _ => Verdict::AMBIGUOUS,
        }
    }

    /// What the code says where `main` of one of several programs was called. It is missing; where
    /// the next function has a frame, it has made way, and with it only what jumps.
    pub(super) fn called_a_main(
        &self,
        next: FunctionStart,
        at: u64,
        has_frame: Option<bool>,
    ) -> Verdict {
        let found = match self.called_unknown(next, at, has_frame) {
            _ if has_frame != Some(true) => None,
            Verdict::Lacks(Explanation::One(certain)) => Some((certain, Rc::default())),
            Verdict::Lacks(Explanation::Several { certain, possible }) => {
                Some(certain).zip(possible)
            }
            _ => None,
        };
        let mains = self.code.mains();
        let mains = mains.and_then(|it| left_anywhere(it.into_iter(), false, self.code));
        let Some(((certain, others), mains)) = found.zip(mains) else {
            return Verdict::AMBIGUOUS;
        };
        Verdict::Lacks(Explanation::Several {
            certain,
            possible: Some(mains.iter().chain(&*others).cloned().collect()),
        })
    }
}
