//! What to ask next: the rows that a page leaves out, and the views that answer further questions.

use proftool::base::shell_quoted;
use proftool::view::page::{HiddenBy, HiddenRows};
use proftool::view::question::Question;

use super::Situation;

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

pub fn command(question: &Question, situation: &Situation) -> Option<String> {
    let Situation::View {
        query, has_focus, ..
    } = situation
    else {
        return None;
    };
    let around = |pattern: &str| {
        let pattern = shell_quoted(pattern);
        // A command has one focus, which is given already.
        if *has_focus {
            (format!("detail {pattern}"), String::new())
        } else {
            ("tree".to_owned(), format!("--focus {pattern}"))
        }
    };
    let fixed = |view: &str, options: &str| (view.to_owned(), options.to_owned());
    let (view, options) = match question {
        Question::CallTree => fixed("tree", ""),
        Question::AroundHottest(pattern) => around(pattern),
        Question::Below(label) => ("tree".into(), format!("--root {}", shell_quoted(label))),
        Question::Detail(label) => (format!("detail {}", shell_quoted(label)), String::new()),
        Question::CallersAndCallees { .. } => fixed("graph", ""),
        Question::Recursion => fixed("cycles", ""),
        Question::Totals => fixed("flat", "--sort total"),
        Question::FlameGraph => fixed("export", "--to svg -o flames.svg"),
    };
    let words: Vec<&str> = ["proftool", &view, query, &options]
        .into_iter()
        .filter(|word| !word.is_empty())
        .collect();
    Some(words.join(" "))
}
