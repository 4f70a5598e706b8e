//! The commands that print the numbers of each view of a page.
//!
//! A command is a list of parts: what depends on the reader's choice, a function or a part of time,
//! stands between two of them.

use std::collections::BTreeMap;

use proftool::analysis::tree::Collapse;

use super::{CONTEXT, LINES, Query};

// By view, the parts of its command.
type Commands = BTreeMap<&'static str, Vec<String>>;

// Where a command has the function that it is about.
#[derive(Clone, Copy)]
enum Takes {
    // It is about all functions.
    NoFunction,
    // Before the file.
    FunctionFirst,
    // Behind everything.
    FunctionLast,
}

// The commands about all of the time that the page is about.
pub(super) fn of_all(query: &Query, event: Option<&str>) -> Commands {
    let what = query.in_command(event);
    let mut commands = Commands::new();
    for (key, view, takes, options) in views(LINES) {
        commands.insert(key, parts(view, takes, [&what, &options]));
    }
    let of_all = |view, options| parts(view, Takes::NoFunction, [&what, options]);
    commands.insert("cycles", of_all("cycles", "--limit 0"));
    commands.insert("report", of_all("report", "--limit 10"));
    commands
}

// The part stands at the end of the command.
pub(super) fn of_a_part(query: &Query, event: Option<&str>) -> Commands {
    let what = query.in_command_without_time(event);
    let mut commands = Commands::new();
    // The heaviest lines of a part may be others than those of the whole, which the page has.
    for (key, view, takes, options) in views(0) {
        let mut parts = parts(view, takes, [&what, &options]);
        if let Some(last) = parts.last_mut() {
            last.push_str(" --time ");
        }
        parts.push(String::new());
        commands.insert(key, parts);
    }
    commands
}

// The views with their options, the source with this number of lines.
fn views(lines: usize) -> Vec<(&'static str, &'static str, Takes, String)> {
    let mut views = Vec::new();
    let sorts = [
        ("flat-self", "self"),
        ("flat-total", "total"),
        ("flat-name", "name"),
    ];
    for (key, sort) in sorts {
        let options = format!("--sort {sort} --names full --limit 0");
        views.push((key, "flat", Takes::NoFunction, options));
    }
    for degree in Collapse::ALL {
        let key = match degree {
            Collapse::None => "tree-none",
            Collapse::Direct => "tree-direct",
            Collapse::Conservative => "tree-conservative",
            Collapse::Full => "tree-full",
        };
        let name = degree.name();
        let options = format!("--collapse {name} --unfold --names full --min 0.1 --limit 0");
        views.push((key, "tree", Takes::NoFunction, options));
    }
    let source = format!("--names full --limit {lines} --context {CONTEXT}");
    let code = format!("{source} --asm");
    let detail = "--names full --limit 0".to_owned();
    let graph = "--static off --names full --function".to_owned();
    views.extend([
        ("source", "annotate", Takes::FunctionFirst, source),
        ("code", "annotate", Takes::FunctionFirst, code),
        ("detail", "detail", Takes::FunctionFirst, detail),
        ("graph", "graph", Takes::FunctionLast, graph),
    ]);
    views
}

fn parts(view: &str, takes: Takes, words: [&str; 2]) -> Vec<String> {
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let words = words.join(" ");
    match takes {
        Takes::NoFunction => vec![format!("proftool {view} {words}")],
        Takes::FunctionFirst => vec![format!("proftool {view} "), format!(" {words}")],
        Takes::FunctionLast => vec![format!("proftool {view} {words} "), String::new()],
    }
}
