//! What to ask next: the rows that a page leaves out, and the views that answer further questions.

use proftool::base::shell_quoted;
use proftool::view::page::{HiddenBy, HiddenRows};
use proftool::view::question::Question;

use super::Situation;

/// Returns the options that show the rows that are left out.
pub fn hidden(rows: &HiddenRows, situation: &Situation) -> Option<String> {
    let all = match rows.by {
        HiddenBy::Limit => "--limit 0",
        HiddenBy::LimitOrShare => "--limit 0 --min 0",
    };
    match situation {
        Situation::View {
            command: "graph", ..
        } if rows.by == HiddenBy::LimitOrShare => {
            Some(format!("{all}. To see some: --function NAME"))
        }
        Situation::View { .. } | Situation::Callgraph => Some(all.to_owned()),
        _ => None,
    }
}

/// Returns the command that answers a question about the file that is shown.
pub fn command(question: &Question, situation: &Situation) -> Option<String> {
    let Situation::View { file, .. } = situation else {
        return None;
    };
    let focus;
    let (view, options) = match question {
        Question::CallTree => ("tree", ""),
        Question::AroundHottest(pattern) => {
            focus = format!("--focus {}", shell_quoted(pattern));
            ("tree", focus.as_str())
        }
        Question::CallersAndCallees { .. } => ("graph", ""),
        Question::Recursion => ("cycles", ""),
        Question::Totals => ("flat", "--sort total"),
        Question::FlameGraph => ("export", "--to svg -o flames.svg"),
    };
    let words: Vec<&str> = ["proftool", view, file, options]
        .into_iter()
        .filter(|word| !word.is_empty())
        .collect();
    Some(words.join(" "))
}
