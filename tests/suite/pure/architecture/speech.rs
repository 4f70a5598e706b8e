//! Only the command line speaks to a person about commands: string literals of the library name no
//! option, no setting of the kernel that root changes, and no command of ours. And only it and the
//! exporters write the marks beside names and the lines of trees: elsewhere they are values.
//!
//! Comments and docs may. So may tests, which stand behind `#[cfg(test)]` or in a file `tests.rs`.
//! There are no exceptions: a text that has to look like an option is built from data.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::map::Map;
use super::names::is_ident;
use super::source::Sources;
use super::tree::room_of;

/// Words of advice that are found anywhere in a text.
const WORDS: [&str; 4] = ["sysctl", "setcap", "ulimit", "proftool "];

/// Marks beside names, and what pages draw with lines.
const MARKS: [&str; 20] = [
    "→",
    "←",
    "↳",
    "▶",
    "⋯",
    "│",
    "─",
    "├",
    "└",
    "┼",
    "┬",
    "┴",
    "╭",
    "╰",
    "<cycle",
    "(inlined",
    "(inferred)",
    "(in the code)",
    "(frames missing)",
    "... (",
];

/// Tells each literal outside of the command line that names an option or a command.
pub fn check(map: &Map, sources: &Sources, told: &mut Vec<String>) {
    for (file, source) in sources {
        let is_outside = map.room(room_of(file)).is_some_and(|room| room.outside);
        if is_outside || file.ends_with("/tests.rs") {
            continue;
        }
        for (line, text) in &source.literals {
            let mark = MARKS.iter().find(|mark| text.contains(**mark));
            if let Some(mark) = mark.filter(|_| room_of(file) != "export") {
                told.push(format!(
                    "{file}:{line}: a text has `{mark}`; only `export` and `cli` write marks and lines"
                ));
            }
            if let Some(word) = spoken(text) {
                told.push(format!(
                    "{file}:{line}: a text names `{word}`; the library states facts, `cli` words advice"
                ));
            }
        }
    }
}

/// The string literals of a file with their lines, without docs and tests.
pub fn literals(stream: TokenStream) -> Vec<(usize, String)> {
    let mut literals = Vec::new();
    collect(stream, &mut literals);
    literals
}

fn collect(stream: TokenStream, literals: &mut Vec<(usize, String)>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                // `#` or `#!`, then the attribute.
                let is_inner =
                    matches!(tokens.get(at + 1), Some(TokenTree::Punct(p)) if p.as_char() == '!');
                let place = at + 1 + usize::from(is_inner);
                let Some(TokenTree::Group(attribute)) = tokens.get(place) else {
                    at += 1;
                    continue;
                };
                let mut words = attribute.stream().into_iter();
                let is_doc = words.next().is_some_and(|word| is_ident(&word, "doc"));
                if is_doc {
                    at = place + 1;
                } else if attribute.stream().to_string().replace(' ', "") == "cfg(test)" {
                    at = item_end(&tokens, place + 1);
                } else {
                    collect(attribute.stream(), literals);
                    at = place + 1;
                }
            }
            TokenTree::Group(group) => {
                collect(group.stream(), literals);
                at += 1;
            }
            TokenTree::Literal(literal) => {
                let line = literal.span().start().line;
                literals.extend(content(&literal.to_string()).map(|text| (line, text)));
                at += 1;
            }
            _ => at += 1,
        }
    }
}

/// Where the item ends that begins at `at`: behind its braces or its semicolon.
fn item_end(tokens: &[TokenTree], at: usize) -> usize {
    let is_end = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(mark) => mark.as_char() == ';',
        _ => false,
    };
    let end = tokens[at..].iter().position(is_end);
    end.map_or(tokens.len(), |end| at + end + 1)
}

/// The text of a literal of a string or a character as it stands in the source; `None` for other
/// literals. White space
/// that is escaped counts as such.
fn content(literal: &str) -> Option<String> {
    let quote = if literal.ends_with('\'') { '\'' } else { '"' };
    let start = literal.find(quote)?;
    let end = literal.rfind(quote).filter(|&end| end > start)?;
    let raw = literal[..start].contains('r');
    let text = &literal[start + 1..end];
    if raw {
        return Some(text.to_owned());
    }
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            // A line that goes on in the next one.
            ('\\', Some('\n')) => while chars.next_if(|c| c.is_whitespace()).is_some() {},
            ('\\', Some('n' | 't' | 'r')) => {
                chars.next();
                out.push(' ');
            }
            ('\\', Some('u')) => {
                let code: String = chars.by_ref().skip(2).take_while(|&c| c != '}').collect();
                out.extend(u32::from_str_radix(&code, 16).ok().and_then(char::from_u32));
            }
            ('\\', Some(_)) => out.extend(chars.next()),
            _ => out.push(c),
        }
    }
    Some(out)
}

/// The option or command that a text names.
fn spoken(text: &str) -> Option<String> {
    if text == "proftool" {
        return Some(text.to_owned());
    }
    let word = WORDS.iter().find(|word| text.contains(**word));
    word.map(|word| (*word).to_owned()).or_else(|| option(text))
}

/// The first word of a text that begins with one or two dashes and a letter.
fn option(text: &str) -> Option<String> {
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let starts = before.is_whitespace() || "(['\"`=,;:/".contains(before);
        before = c;
        if c != '-' || !starts {
            continue;
        }
        let rest = &text[at..];
        let dashes = rest.len() - rest.trim_start_matches('-').len();
        let name = &rest[dashes..];
        if dashes <= 2 && name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            return Some(rest[..dashes + end.unwrap_or(name.len())].to_owned());
        }
    }
    None
}
