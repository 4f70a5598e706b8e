//! Folded stacks: `main;parse;lex 12`, the outermost function first.
//!
//! Every program that draws flame graphs can read it, and so can
//! [`input::folded`](crate::input::folded), which finds the same functions, totals and cycles in
//! it. A line has only functions, no command and no module; each by its label, so that two
//! functions of one name stay apart.
//!
//! A `~` precedes the name of a restored function. The frame `[frames missing]` stands between two
//! functions if frames are missing between them in all of these samples, so that the outer one did
//! not call the inner one: `main;[frames missing];lex 12`. Incomplete stacks begin with
//! `[truncated]` or `[broken stack]`.
//!
//! | in a name | is written |
//! |---|---|
//! | `;` | `\x3b` |
//! | control characters, newline, marks that reorder text | `\xNN`, above `ff` `\u{NNNN}` |
//! | a backslash before `x` or `u{` | `\x5c` |
//! | the first character of what would be read as a mark, a placeholder or as with `~` | `\xNN` |

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use crate::analysis::tree::CallTree;
use crate::base::{FRAMES_MISSING, is_mark, is_unsafe_char, placeholder};
use crate::profile::FunctionKind;
use crate::view::Subject;
use crate::view::label;

/// The mark before the name of a restored function, which other tools use too. A name that starts
/// with it is escaped.
pub const INFERRED: char = '~';

/// Writes the stacks of a top-down tree, the heaviest branches first.
pub fn write(out: &mut dyn Write, subject: &Subject, tree: &CallTree) -> io::Result<()> {
    let labels = subject.labels(tree.nodes.iter().map(|node| node.function));
    // The stack of the last node, and how long it was at each level.
    let mut stack = String::new();
    let mut lengths: Vec<usize> = Vec::new();
    for node in tree.nodes.iter() {
        lengths.truncate(node.level as usize - 1);
        stack.truncate(lengths.last().copied().unwrap_or(0));
        if !lengths.is_empty() {
            stack.push(';');
        }
        if node.across_gap > 0 && node.across_gap == node.weight() {
            stack.push_str(FRAMES_MISSING);
            stack.push(';');
        }
        if label::is_inferred(node.inferred, node.weight()) {
            stack.push(INFERRED);
        }
        let function = &subject.profile.functions[node.function];
        stack.push_str(&frame(labels.of(node.function), function.kind));
        lengths.push(stack.len());
        if node.in_only > 0 {
            out.write_all(stack.as_bytes())?;
            writeln!(out, " {}", node.in_only)?;
        }
    }
    Ok(())
}

/// What stands in a stack for a function of this label.
///
/// Marks and placeholders stand as they are. The name of any other function that would be read as
/// one of these, or as marked, is written with its first character escaped.
///
/// ```
/// use proftool::export::folded::frame;
/// use proftool::profile::FunctionKind::{Mark, Named};
/// assert_eq!(frame("[truncated]", Mark), "[truncated]");
/// assert_eq!(frame("unknown", Named), "\\x75nknown");
/// assert_eq!(frame("~A", Named), "\\x7eA");
/// ```
pub fn frame(label: &str, kind: FunctionKind) -> Cow<'_, str> {
    let is_itself = match kind {
        FunctionKind::Mark => is_mark(label),
        FunctionKind::Unknown => placeholder(label).is_some() && label != FRAMES_MISSING,
        FunctionKind::Named | FunctionKind::Row => false,
    };
    let means_more = label.starts_with(INFERRED) || is_mark(label) || placeholder(label).is_some();
    let first = label.chars().next().filter(|_| means_more && !is_itself);
    match first {
        Some(first) if first.is_ascii() => {
            let rest = escaped(&label[1..]);
            Cow::Owned(format!("\\x{:02x}{rest}", u32::from(first)))
        }
        _ => escaped(label),
    }
}

/// A name as it stands in a stack.
///
/// ```
/// use proftool::export::folded::escaped;
/// assert_eq!(escaped("a;b\n"), "a\\x3bb\\x0a");
/// assert_eq!(escaped("operator\\"), "operator\\");
/// ```
pub fn escaped(name: &str) -> Cow<'_, str> {
    let special = |c: char| is_unsafe_char(c) || c == ';' || c == '\\';
    if !name.contains(special) {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len() + 16);
    for (at, c) in name.char_indices() {
        let rest = &name[at + c.len_utf8()..];
        let like_an_escape = rest.starts_with('x') || rest.starts_with("u{");
        let code = u32::from(c);
        let written = match c {
            '\\' if !like_an_escape => out.write_char(c),
            _ if !special(c) => out.write_char(c),
            _ if code <= 0xff => write!(out, "\\x{code:02x}"),
            _ => write!(out, "\\u{{{code:x}}}"),
        };
        written.expect("writing to a String does not fail");
    }
    Cow::Owned(out)
}
