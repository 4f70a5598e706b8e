//! What may be missing where something was called that only a run can tell.

use std::rc::Rc;

use super::super::explanation::left_anywhere;
use super::super::function_exits::FunctionStart;
use super::{Checks, Explanation, Verdict};

impl Checks<'_> {
    /// What the code says of a function that is next on the stack, at this stated address, where something
    /// was called that only a run can tell, but not that function.
    pub(super) fn called_unknown(
        &mut self,
        next: FunctionStart,
        at: u64,
        has_frame: Option<bool>,
    ) -> Verdict {
        let Some(has_frame) = has_frame else {
            return Verdict::AMBIGUOUS;
        };
        let found =
            self.explanations
                .of_unknown_call(next, !has_frame, &mut self.code, &mut self.frames);
        match found {
            _ if self.is_overwritten(next.image, at, Some(has_frame)) => Verdict::AMBIGUOUS,
            Explanation::One(missing) => Verdict::Missing(missing),
            Explanation::Several { certain, possible } => Verdict::Ambiguous { certain, possible },
            Explanation::None => Verdict::AMBIGUOUS,
        }
    }

    /// The same where `main` of one of several programs was called. It is missing; where the next function
    /// has a frame, it has made way, and with it only what jumps.
    pub(super) fn called_a_main(
        &mut self,
        next: FunctionStart,
        at: u64,
        has_frame: Option<bool>,
    ) -> Verdict {
        let found = match self.called_unknown(next, at, has_frame) {
            _ if has_frame != Some(true) => None,
            Verdict::Missing(certain) => Some((certain, Rc::default())),
            Verdict::Ambiguous { certain, possible } => possible.map(|it| (certain, it)),
            _ => None,
        };
        let mains = self.code.mains();
        let mains = mains.and_then(|it| left_anywhere(it.into_iter(), false, &mut self.code));
        let Some(((certain, others), mains)) = found.zip(mains) else {
            return Verdict::AMBIGUOUS;
        };
        Verdict::Ambiguous {
            certain,
            possible: Some(mains.iter().chain(&*others).cloned().collect()),
        }
    }
}
