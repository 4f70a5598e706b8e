//! A function that is named on the command line.

use std::process::ExitCode;

use proftool::analysis::inclusive::{self, FunctionWeights};
use proftool::profile::FunctionId;
use proftool::view::Subject;
use proftool::view::number;
use proftool::view::search::{self, Found};

use super::failure;

/// How many functions are told where a name is not enough.
const TOLD: usize = 20;

/// The exit status where several functions fit.
const NOT_EXACT: u8 = 2;

/// The function that `text` names among those of the selected samples; or, after saying on stderr
/// which ones fit as well or have similar names, the exit status.
pub fn find(subject: &Subject, text: &str) -> Result<FunctionId, ExitCode> {
    let weights = inclusive::by_function(subject.profile, subject.selection);
    let mut candidates: Vec<FunctionId> = weights.present().collect();
    let ranks = inclusive::name_ranks(subject.profile);
    candidates.sort_by_key(|&id| (std::cmp::Reverse(weights.total[id]), ranks[id]));
    match search::find(subject, &candidates, text) {
        Found::One(function) => Ok(function),
        Found::Several(fitting) => {
            several(subject, &weights, text, &fitting);
            Err(NOT_EXACT.into())
        }
        Found::Nothing(similar) => {
            let message = format!("no function of the selected samples is called {text}");
            failure::line("proftool", &message);
            let hint = match similar.is_empty() {
                true => "proftool flat --names full shows them all".to_owned(),
                false => format!("similar names: {}", similar.join(", ")),
            };
            failure::line("hint", &hint);
            Err(ExitCode::FAILURE)
        }
    }
}

fn several(
    subject: &Subject,
    weights: &FunctionWeights,
    text: &str,
    fitting: &[(FunctionId, String)],
) {
    let message = format!("{} functions fit {text}; total and name:", fitting.len());
    failure::line("proftool", &message);
    let whole = subject.selection.total;
    for (function, label) in fitting.iter().take(TOLD) {
        let share = number::percent(weights.total[*function], whole, 2);
        failure::plain(&format!("{share:>7} %  {label}"));
    }
    if fitting.len() > TOLD {
        failure::plain(&format!("           … {} more", fitting.len() - TOLD));
    }
    failure::line(
        "hint",
        "give one of these names as it stands here, in quotes",
    );
}
