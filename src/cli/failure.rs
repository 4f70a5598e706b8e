//! What went wrong, in a line or two on stderr.

use std::io::{self, Write};
use std::process::ExitCode;

use proftool::base::printable;

use super::advice::inputs;

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Hinted {
    message: String,
    hint: String,
}

// A line on stderr; that it cannot be written is no reason to fail the command.
pub fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "proftool: {}", printable(text));
}

// A wrong use of the command line that only shows when it is acted on.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Misused(pub String);

// An error with a hint, if there is one.
pub fn hinted(message: String, hint: Option<String>) -> anyhow::Error {
    match hint {
        Some(hint) => Hinted { message, hint }.into(),
        None => anyhow::Error::msg(message),
    }
}

// Returns the exit status of failure, or of wrong usage. `show` is the command that shows a file,
// for advice.
pub fn say(error: &anyhow::Error, show: &str) -> ExitCode {
    let parts: Vec<String> = error
        .chain()
        .map(|part| fragment(&part.to_string()))
        .collect();
    line("proftool", &parts.join(": "));
    let hint = error.chain().find_map(|part| {
        let hinted = part.downcast_ref().map(|Hinted { hint, .. }| hint.clone());
        hinted.or_else(|| inputs::on_error(part.downcast_ref()?, show))
    });
    if let Some(hint) = hint {
        line("hint", &hint);
    }
    match error.downcast_ref::<Misused>() {
        Some(_) => ExitCode::from(2),
        None => ExitCode::FAILURE,
    }
}

// Errors are ignored: there is no other place to report them.
pub fn line(mark: &str, text: &str) {
    let _ = writeln!(io::stderr().lock(), "{mark}: {}", printable(text));
}

pub fn plain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", printable(text));
}

// The system's messages begin with a capital and end with a number.
pub fn fragment(message: &str) -> String {
    let message = match message.rfind(" (os error ") {
        Some(at) if message.ends_with(')') => &message[..at],
        _ => message,
    };
    let mut chars = message.chars();
    let (first, second) = (chars.next(), chars.next());
    match (first, second) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().collect::<String>() + &message[first.len_utf8()..]
        }
        _ => message.to_owned(),
    }
}
