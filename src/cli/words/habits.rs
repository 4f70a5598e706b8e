//! What users of other profilers type: the error names the command that answers it here.

use std::ffi::OsString;
use std::path::Path;

use clap::Error;
use clap::error::{ContextKind, ContextValue};
use proftool::base::shell_quoted;

// What was meant, and the command for it, to which the file's name is added.
type Answer = (&'static str, &'static str);

fn command(name: &str) -> Option<Answer> {
    Some(match name {
        "script" => ("stacks as text", "export --to perf-script"),
        "load" | "import" => ("to explore a recording", "browse"),
        "flamegraph" => ("a flame graph", "export --to svg -o flame.svg"),
        "web" | "http" => ("a page for a browser", "export --to html -o page.html"),
        _ => return None,
    })
}

fn option(name: &str, value: &str) -> Option<Answer> {
    Some(match name {
        "--no-children" => ("functions by self time", "flat"),
        "--children" => ("functions by total time", "flat --sort total"),
        "-s" | "--sort" => sorted_by(value)?,
        "-g" | "--call-graph" => ("the calls", "tree"),
        "-G" | "--inverted" => ("from what is hot to its callers", "tree --bottom-up"),
        "-n" | "--show-nr-samples" => ("numbers of samples", "flat --sort samples"),
        "--percent-limit" => ("rows from 1 % on", "flat --min 1"),
        "--dsos" => ("stacks through one of these", "flat --module NAME"),
        "--symbols" | "--symbol-filter" => ("stacks through a function", "flat --focus REGEX"),
        _ => return None,
    })
}

// perf sorts by several keys, of which the first is what matters.
fn sorted_by(keys: &str) -> Option<Answer> {
    Some(match keys.split(',').next()? {
        "dso" => ("programs and libraries", "flat --by module"),
        "comm" => ("commands", "flat --by command"),
        "pid" | "tid" => ("threads", "flat --by thread"),
        "srcline" => ("source lines", "flat --by line"),
        "srcfile" => ("source files", "flat --by file"),
        "sym" | "symbol" | "self" | "overhead" => option("--no-children", "")?,
        "total" => option("--children", "")?,
        _ => return None,
    })
}

/// Adds to an error what answers a word of another tool.
pub fn answered(mut error: Error, args: &[OsString]) -> Error {
    let text = |kind| match error.get(kind) {
        // An option that is known has its value behind it: `--sort <SORT>`.
        Some(ContextValue::String(text)) => text.split(' ').next().map(str::to_owned),
        _ => None,
    };
    let found = if let Some(name) = text(ContextKind::InvalidSubcommand) {
        command(&name)
    } else if let Some(name) = text(ContextKind::InvalidArg)
        // Options of perf record are others.
        && !args.get(1).is_some_and(|command| command == "record" || command == "top")
    {
        let typed = args.iter().position(|word| *word == *name);
        let next = typed.and_then(|at| args.get(at + 1)?.to_str());
        let value = text(ContextKind::InvalidValue);
        option(&name, value.as_deref().or(next).unwrap_or_default())
    } else {
        None
    };
    let words = args.iter().skip(2).filter_map(|word| word.to_str());
    let mut files = words.filter(|word| Path::new(word).is_file());
    let tip = match found {
        Some((what, command)) => {
            let file = files.next().map(shell_quoted);
            let words = [Some(format!("{what}: proftool {command}")), file];
            words.into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
        None if text(ContextKind::InvalidSubcommand).as_deref() == Some("diff") => {
            // Those that perf compares.
            let old = files.next().unwrap_or("perf.data.old");
            let new = files.next().unwrap_or("perf.data");
            let [old, new] = [old, new].map(shell_quoted);
            format!("what has changed: proftool compare --base {old} --new {new}")
        }
        None => return error,
    };
    error.insert(
        ContextKind::Suggested,
        ContextValue::StyledStrs(vec![tip.into()]),
    );
    // What clap would suggest in its place.
    for kind in [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedValue,
        ContextKind::SuggestedSubcommand,
        ContextKind::Usage,
    ] {
        error.remove(kind);
    }
    error
}
