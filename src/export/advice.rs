//! Advice that the calling program adds to the facts of an answer: what a user can do next.
//!
//! The library knows neither the commands nor the options of the program that uses it. Where a
//! page or a document has room for advice, its writer asks for it here.

use std::collections::BTreeSet;

use crate::base::{Caveat, Remedy, Runtime};
use crate::view::page::HiddenRows;
use crate::view::question::Question;

/// Advice on what pages and documents state as data. Each answer is a lower-case fragment, or
/// `None` where there is nothing to do.
pub trait Advice {
    /// Returns how a remedy is applied, for the code of these runtimes where they are known.
    fn on_remedy(&self, _remedy: Remedy, _runtimes: &BTreeSet<Runtime>) -> Option<String> {
        None
    }

    /// Returns what can be done about a caveat.
    fn on_caveat(&self, caveat: &Caveat) -> Option<String> {
        self.on_remedy(caveat.remedy()?, caveat.runtimes())
    }

    /// Returns what shows stacks as they were recorded, without restored frames.
    fn on_restored(&self) -> Option<String> {
        None
    }

    /// Returns how to see the rows that a page leaves out.
    fn on_hidden(&self, _rows: &HiddenRows) -> Option<String> {
        None
    }

    /// Returns how to see another event of the recording.
    fn on_events(&self) -> Option<String> {
        None
    }

    /// Returns the command that answers a further question.
    fn command(&self, _question: &Question) -> Option<String> {
        None
    }
}

/// No advice: facts only.
///
/// ```
/// use proftool::base::{CaveatKind, Caveats};
/// use proftool::export::{Advice, Facts};
/// let mut caveats = Caveats::default();
/// caveats.add(CaveatKind::Lost, 3);
/// assert_eq!(Facts.on_caveat(caveats.iter().next().unwrap()), None);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Facts;

impl Advice for Facts {}
